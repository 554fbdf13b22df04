//! Which case each id stands for, `vectors/ids.txt`. Results of different releases are compared by id, so that an
//! id never changes its meaning: a case that asks something else gets an id of its own, and the old one is retired.

use codec::hex;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// In place of the hash of an id that no case has any more.
const RETIRED: &str = "retired";

const HEAD: &str = "# Each case, and a hash of what makes it that case, or: retired. Codec cases go by message and id,\n\
    # others by role, API and id, rules by rule/ and id.\n\
    # docs/formats.md says more; `kafka-conform vectors lint --record` adds what is new.\n";

/// Ids, each with the hash that it was recorded with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// `None` where the id is retired.
    hashes: BTreeMap<String, Option<String>>,
}

/// A short hash of what makes a case: the same whatever the order of its members and the white space in its hex.
pub fn hash(mut content: Json) -> String {
    content.sort_all_objects();
    close_up(&mut content, false);
    hex(&Sha256::digest(content.to_string()))[..8].to_owned()
}

/// Takes the white space out of hex.
fn close_up(json: &mut Json, is_hex: bool) {
    match json {
        Json::String(text) if is_hex => text.retain(|digit| !digit.is_whitespace()),
        Json::Array(elements) => elements.iter_mut().for_each(|element| close_up(element, is_hex)),
        Json::Object(members) => {
            members.iter_mut().for_each(|(name, member)| {
                close_up(member, is_hex || ["hex", "frame", "append"].contains(&name.as_str()))
            });
        }
        _ => {}
    }
}

impl Ids {
    /// Reads the file: a line for each id, in ascending order, and lines of remarks. The error names the line.
    pub fn parse(text: &str) -> Result<Ids, String> {
        let mut hashes: BTreeMap<String, Option<String>> = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let is_hash = |hash: &str| hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            let hash = match line.split_once(' ') {
                Some((_, RETIRED)) => None,
                Some((_, hash)) if is_hash(hash) => Some(hash.to_owned()),
                _ => return Err(format!("line {}: not an id, a blank, and 8 hex digits or {RETIRED:?}", number + 1)),
            };
            let id = line.split(' ').next().unwrap_or_default();
            if hashes.last_key_value().is_some_and(|(last, _)| last.as_str() >= id) {
                return Err(format!("line {}: ids stand in ascending order, each once", number + 1));
            }
            hashes.insert(id.to_owned(), hash);
        }
        Ok(Ids { hashes })
    }

    /// The file.
    pub fn to_text(&self) -> String {
        let line = |(id, hash): (&String, &Option<String>)| format!("{id} {}\n", hash.as_deref().unwrap_or(RETIRED));
        self.hashes.iter().map(line).fold(HEAD.to_owned(), |text, line| text + &line)
    }

    /// Adds the ids that are not there, and changes no other: how many they were. `cases` has the hash of each.
    pub fn record(&mut self, cases: &BTreeMap<String, String>) -> usize {
        let before = self.hashes.len();
        for (id, hash) in cases {
            self.hashes.entry(id.clone()).or_insert_with(|| Some(hash.clone()));
        }
        self.hashes.len() - before
    }

    /// What is wrong with the ids of `cases`, by id, and what to do about it.
    pub fn lints(&self, cases: &BTreeMap<String, String>) -> Vec<(String, &'static str)> {
        let of_case = cases.iter().filter_map(|(id, hash)| {
            let what = match self.hashes.get(id) {
                Some(Some(recorded)) if recorded == hash => return None,
                Some(Some(_)) => {
                    "what makes the case is something else than this id stands for: \
                     give the case a new id, and write \"retired\" in place of this one's hash"
                }
                Some(None) => "this id is retired: give the case a new one",
                None => "this id is not recorded: run `kafka-conform vectors lint --record`",
            };
            Some((id.clone(), what))
        });
        let gone = self.hashes.iter().filter(|(id, hash)| hash.is_some() && !cases.contains_key(*id));
        let gone =
            gone.map(|(id, _)| (id.clone(), "no case has this id any more: write \"retired\" in place of its hash"));
        of_case.chain(gone).collect()
    }
}
