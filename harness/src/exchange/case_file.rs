//! What the case files of brokers and clients have in common: `{"api": ..., "cases": [...]}`, read case by case so that
//! each error has its place.

use codec::{MessageKind, MessageSpec, Protocol, VersionRange};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

use super::LintError;
use crate::ids;
use crate::names::kebab;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(rename = "$schema")]
    _schema: Option<String>,
    api: String,
    cases: Vec<Json>,
}

/// A hash of what makes each case of files of a role that load, by role, API and id: `broker/alter-configs/unknown-topic`.
/// Wording and citations are not part of it, nor how the range of versions is written. The error is that they do not load.
pub fn contents(role: &str, files: &[(&str, &str)]) -> Result<BTreeMap<String, String>, String> {
    let mut contents = BTreeMap::new();
    for (file, text) in files {
        let raw: RawFile = serde_json::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        for mut case in raw.cases {
            let id = format!("{role}/{}/{}", kebab(&raw.api), case["id"].as_str().unwrap_or_default());
            for variant in case.get_mut("variants").and_then(Json::as_array_mut).into_iter().flatten() {
                variant.as_object_mut().into_iter().for_each(|variant| drop(variant.remove("note")));
            }
            if let Some(case) = case.as_object_mut() {
                ["id", "requires", "cite"].into_iter().for_each(|wording| drop(case.remove(wording)));
            }
            if let Some(Ok(range)) = case["versions"].as_str().map(str::parse::<VersionRange>) {
                case["versions"] = range.to_string().into();
            }
            contents.insert(id, ids::hash(case));
        }
    }
    Ok(contents)
}

/// A place in a case, and what is wrong there.
pub(crate) type Wrong = (String, String);

/// A result whose error has its place.
pub(crate) fn at<T>(place: impl Into<String>, result: Result<T, impl ToString>) -> Result<T, Wrong> {
    result.map_err(|what| (place.into(), what.to_string()))
}

/// A case that has an id of its own within its API.
pub(crate) trait Identified {
    /// File, API and slug.
    fn identity(&self) -> (&str, &str, &str);
}

/// Loads files, each a name and its text: `read` makes a case of its JSON, given file and API, `lint` looks at it beside
/// the API's request. Every error found is given.
pub(crate) fn load<C: Identified>(
    files: &[(&str, &str)],
    protocol: &Protocol,
    read: &dyn Fn(&str, &str, &Json) -> Result<C, Wrong>,
    lint: &dyn Fn(&MessageSpec, &C) -> Vec<Wrong>,
) -> Result<Vec<C>, Vec<LintError>> {
    let (mut cases, mut errors) = (Vec::new(), Vec::new());
    for (file, text) in files {
        load_file(file, text, protocol, read, lint, &mut cases, &mut errors);
    }
    let mut seen = BTreeSet::new();
    for case in &cases {
        let (file, api, slug) = case.identity();
        if !seen.insert((api, slug)) {
            let what = format!("there is another case of {api} with this id");
            errors.push(LintError { file: file.to_owned(), case: slug.to_owned(), place: "id".into(), what });
        }
    }
    if errors.is_empty() { Ok(cases) } else { Err(errors) }
}

fn load_file<C>(
    file: &str,
    text: &str,
    protocol: &Protocol,
    read: &dyn Fn(&str, &str, &Json) -> Result<C, Wrong>,
    lint: &dyn Fn(&MessageSpec, &C) -> Vec<Wrong>,
    cases: &mut Vec<C>,
    errors: &mut Vec<LintError>,
) {
    let file_error =
        |place: &str, what: String| LintError { file: file.to_owned(), case: String::new(), place: place.into(), what };
    let raw: RawFile = match serde_json::from_str(text) {
        Ok(raw) => raw,
        Err(error) => return errors.push(file_error("", error.to_string())),
    };
    let (Some(request), Some(_)) =
        (protocol.api(&raw.api, MessageKind::Request), protocol.api(&raw.api, MessageKind::Response))
    else {
        return errors.push(file_error("api", format!("there is no definition of {:?}", raw.api)));
    };
    for (number, json) in raw.cases.iter().enumerate() {
        let id = json.get("id").and_then(Json::as_str).map_or_else(|| format!("cases[{number}]"), str::to_owned);
        let error = |(place, what)| LintError { file: file.to_owned(), case: id.clone(), place, what };
        match read(file, &raw.api, json) {
            Ok(case) => {
                errors.extend(lint(request, &case).into_iter().map(error));
                cases.push(case);
            }
            Err(wrong) => errors.push(error(wrong)),
        }
    }
}
