//! `results.jsonl`: what a run found, a JSON object a line. Every report is a function of these rows and of the cases.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::HashSet;

/// One line of `results.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[allow(clippy::large_enum_variant, reason = "rows are made one at a time and outcomes are nearly all of them")]
pub enum Row {
    /// The first line: what was run.
    Run(Run),
    /// One judged implementation.
    Peer(Peer),
    /// One case at one version against one peer.
    Outcome(Outcome),
}

/// What was run, so that two files can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Version of this suite.
    pub suite: String,
    /// SHA-256 over every case and definition, in hex: results of different hashes are not comparable.
    pub cases_sha256: String,
    /// Seed of correlation ids, scratch names and generated requests.
    pub seed: u64,
    /// The lowest level that gives `fail`.
    pub level: Level,
    /// True when the run was interrupted: what is missing was not judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// One judged implementation, `name@version`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// `name@version`, `reference` for our own codec.
    pub peer: String,
    /// What it was judged as.
    pub role: Role,
    /// The language it is written in, lower case.
    pub language: String,
    /// Whether it ran.
    pub status: Status,
    /// Why it did not run, one sentence that says what to do; of one that ran, why it was given up.
    pub why: Option<String>,
    /// True when it was reached through internals of a library that its users cannot call.
    #[serde(default)]
    pub internal: bool,
    /// True when `certify` judged it: its name is what it or its owner says, and only they can start it again.
    #[serde(default)]
    pub certified: bool,
    /// The options that `certify` judged it with, where they are not what it judges with without options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// Whether a peer ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It was judged.
    Ran,
    /// It was not; `Peer::why` says why.
    NotRun,
}

/// What an implementation is judged as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A library that turns bytes into values and back.
    Codec,
    /// A server on a port.
    Broker,
    /// An admin client.
    Client,
}

/// How binding a case is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A correct peer can be harmed or misled otherwise.
    Must,
    /// The definition's letter; liberal readers harm nobody.
    Should,
    /// What named Apache Kafka releases do.
    Observed,
}

/// What a peer was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Bytes to value.
    Decode,
    /// Value to bytes.
    Encode,
    /// Bytes to bytes inside the library.
    Recode,
    /// A scripted conversation with a broker.
    Exchange,
    /// A scripted conversation with a client.
    Drive,
}

/// The judgement of one case at one version against one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As required.
    Pass,
    /// Against a `must`.
    Fail,
    /// Against a `should`, or unlike the named Apache Kafka releases.
    Differs,
    /// An allowed liberty; `detail` says which.
    Variant,
    /// By the peer's own declaration.
    Unsupported,
    /// `detail` says why.
    NotRun,
    /// A `fail` that is listed with its proof; still red on the page.
    Known,
    /// A listed deviation that did not show.
    UnexpectedPass,
    /// Judged differently on repetition.
    Flaky,
    /// Our own fault.
    HarnessError,
}

/// What kind of fault a `fail`, `differs` or `known` is, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The process died.
    Crash,
    /// No answer within the deadline.
    Hang,
    /// It went over its memory cap.
    Memory,
    /// A panic or unchecked exception that the library's user must catch.
    Panic,
    /// Another value than the bytes hold, silently.
    WrongValue,
    /// Values read from bytes that are not there.
    InventedValue,
    /// Other bytes than the value has.
    WrongBytes,
    /// An error reported as success.
    ErrorHidden,
    /// Nothing came back where an answer is due.
    NoAnswer,
    /// The connection was closed where an answer is due.
    Closed,
    /// An answer, but not this one.
    WrongAnswer,
    /// Part of the value was dropped.
    Lossy,
    /// Refused what must be taken.
    TooStrict,
    /// Took what must be refused.
    TooLenient,
}

impl Class {
    /// Severity 1 (worst) to 4, the one table for it.
    pub fn severity(self) -> u8 {
        match self {
            Class::Crash | Class::Hang | Class::Memory => 1,
            Class::Panic | Class::WrongValue | Class::InventedValue | Class::WrongBytes | Class::ErrorHidden => 2,
            Class::NoAnswer | Class::Closed | Class::WrongAnswer | Class::Lossy => 3,
            Class::TooStrict | Class::TooLenient => 4,
        }
    }
}

/// Where in the message a deviation is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// Field path, `Results[0].Configs[2].Value`.
    pub path: String,
    /// Offset into `sent` (or `want` when nothing was sent), in bytes.
    pub offset: Option<u64>,
    /// Length in bytes.
    pub length: Option<u64>,
}

/// One case at one version against one peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// `name@version`.
    pub peer: String,
    /// What the peer was judged as.
    pub role: Role,
    /// The message the case is about; for an exchange the request under test.
    pub message: String,
    /// The API it belongs to, `DescribeConfigs`; a header's own name for headers.
    pub api: String,
    /// The API version.
    pub version: i16,
    /// Case id, `codec/describe-configs-response/v4/null-documentation`.
    pub case: String,
    /// What the peer was asked to do.
    pub op: Op,
    /// How binding the case is.
    pub level: Level,
    /// The judgement.
    pub verdict: Verdict,
    /// What kind of fault, for `fail`, `differs` and `known`.
    pub class: Option<Class>,
    /// `Class::severity`.
    pub severity: Option<u8>,
    /// Where the deviation is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
    /// What was sent to the peer, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// What was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub want: Option<Json>,
    /// What came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got: Option<Json>,
    /// One sentence for a person; holds no port, process id, path or time of day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The error code by which a broker's surroundings refuse what a case that is `not-run` asks for, such as 29 for want
    /// of an ACL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<i16>,
    /// How long the peer took, in milliseconds: the only field in which two runs of one commit differ.
    pub elapsed_ms: u64,
}

/// How much is kept of what came, and of what was due, in bytes: more than the longest right answer to a case takes.
pub const EVIDENCE_KEPT: usize = 192 << 10;
/// How much is kept of a sentence or a path, in bytes, and of all evidence where a peer gave too much of it.
pub const SENTENCE_KEPT: usize = 4 << 10;

impl Outcome {
    /// The same with at most so many bytes of each piece of evidence, and about what it takes in memory: a peer may
    /// answer megabytes in every case, and all outcomes of a run are there at once. What is longer becomes a text that
    /// ends with how long it was.
    pub fn bounded(self, most: usize) -> (Outcome, usize) {
        let mut taken = 0;
        let mut evidence = |json: Json| {
            let (json, takes) = bounded(json, most);
            taken += takes;
            json
        };
        let (want, got) = (self.want.map(&mut evidence), self.got.map(&mut evidence));
        let at = self.at.map(|at| At { path: kept(at.path, SENTENCE_KEPT), ..at });
        let detail = self.detail.map(|text| kept(text, SENTENCE_KEPT));
        (Outcome { at, want, got, detail, ..self }, taken)
    }
}

/// Evidence of at most so many bytes, and about what it takes in memory. A value of two bytes takes some hundred in a
/// tree, so that what is short may still have to become a text.
fn bounded(json: Json, most: usize) -> (Json, usize) {
    let text = match json {
        Json::String(text) => text,
        json => {
            let text = json.to_string();
            let takes = text.len() + 100 * crate::adapter::values(&text);
            if text.len() <= most && takes <= 4 * most {
                return (json, takes);
            }
            text
        }
    };
    let text = kept(text, most);
    let takes = text.len();
    (Json::String(text), takes)
}

/// A text, cut where it is longer than `most` bytes: copied, since the start of a large block keeps its hole from being
/// used again.
pub(crate) fn kept(text: String, most: usize) -> String {
    match text.len() {
        length if length > most => cut_short(&text[..text.floor_char_boundary(most)], length),
        _ => text,
    }
}

/// The beginning of something that has so many bytes.
pub(crate) fn cut_short(beginning: &str, bytes: usize) -> String {
    format!("{beginning}... (cut, {bytes} bytes in all)")
}

/// A whole `results.jsonl`.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The first line.
    pub run: Run,
    /// The judged implementations, by name and role.
    pub peers: Vec<Peer>,
    /// The outcomes, in the order of `Results::sort`.
    pub outcomes: Vec<Outcome>,
}

impl Results {
    /// Brings rows into the one order that files have: peers by role and name, outcomes by role, peer, case, version, op.
    pub fn sort(&mut self) {
        self.peers.sort_by(|a, b| (a.role, &a.peer).cmp(&(b.role, &b.peer)));
        self.outcomes.sort_by(|a, b| a.key().cmp(&b.key()));
    }

    /// The text of `results.jsonl`, in the present order of the rows.
    pub fn to_jsonl(&self) -> String {
        let rows = std::iter::once(Row::Run(self.run.clone()))
            .chain(self.peers.iter().cloned().map(Row::Peer))
            .chain(self.outcomes.iter().cloned().map(Row::Outcome));
        rows.map(|row| serde_json::to_string(&row).expect("rows are plain data") + "\n").collect()
    }

    /// Reads `results.jsonl`. A last line that was cut off, as by a kill or a full disk, is left out, and the run is then
    /// partial. Errors name the line: what is no row, a second run, and a peer or outcome that is there twice.
    pub fn from_jsonl(text: impl AsRef<[u8]>) -> Result<Results, String> {
        let mut run = None;
        let (mut peers, mut outcomes): (Vec<Peer>, Vec<Outcome>) = (Vec::new(), Vec::new());
        let (mut seen_peers, mut seen_outcomes, mut cut) = (HashSet::new(), HashSet::new(), false);
        for (number, line) in text.as_ref().split_inclusive(|&byte| byte == b'\n').enumerate() {
            let here = |what: String| format!("line {}: {what}", number + 1);
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(Row::Run(_)) if run.is_some() => {
                    return Err(here("a second run: `report merge` puts runs together".to_owned()));
                }
                Ok(Row::Run(row)) => run = Some(row),
                Ok(Row::Peer(row)) => {
                    if !seen_peers.insert((row.role, row.peer.clone())) {
                        return Err(here(format!("{:?} is there a second time", row.peer)));
                    }
                    peers.push(row);
                }
                Ok(Row::Outcome(row)) => {
                    let (role, peer, case, version, op) = row.key();
                    if !seen_outcomes.insert((role, peer.to_owned(), case.to_owned(), version, op)) {
                        return Err(here(format!("{peer:?} is judged by {case:?} a second time")));
                    }
                    outcomes.push(row);
                }
                // No part of a row is a row, so one that lacks only its line end is whole.
                Err(_) if !line.ends_with(b"\n") => cut = true,
                Err(error) => return Err(here(error.to_string())),
            }
        }
        let mut run: Run = run.ok_or("no line of type \"run\": is this a results.jsonl?")?;
        run.partial |= cut;
        Ok(Results { run, peers, outcomes })
    }
}

impl Outcome {
    /// What a run has one outcome of, in the order of files.
    pub fn key(&self) -> (Role, &str, &str, i16, Op) {
        (self.role, &self.peer, &self.case, self.version, self.op)
    }
}

/// What a report tells of a case beside its outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseInfo {
    /// One sentence: what a correct implementation does.
    pub requires: String,
    /// Definition fields, KIPs, guide sections, public reports.
    pub cite: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcome(got: Json, detail: String) -> Outcome {
        let row = json!({ "peer": "p@1", "role": "codec", "message": "M", "api": "M", "version": 0, "case": "c",
            "op": "decode", "level": "must", "verdict": "fail", "class": null, "severity": null, "elapsed_ms": 0,
            "at": { "path": detail, "offset": 1, "length": 2 }, "got": got, "detail": detail });
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn long_evidence_is_cut_and_says_so() {
        let detail = "\u{e9}".repeat(100_000);
        for (got, length) in [(json!("x".repeat(1 << 20)), 1 << 20), (json!(vec![0; 1 << 20]), (2 << 20) + 1)] {
            let (cut, taken) = outcome(got, detail.clone()).bounded(EVIDENCE_KEPT);
            assert!((EVIDENCE_KEPT..EVIDENCE_KEPT + 100).contains(&taken), "{taken}");
            let Some(Json::String(text)) = &cut.got else { panic!("{:?}", cut.got) };
            assert!(text.ends_with(&format!("... (cut, {length} bytes in all)")));
            assert!(serde_json::to_string(&cut).unwrap().len() < 256 << 10);
            assert!(cut.detail.is_some_and(|detail| detail.ends_with("... (cut, 200000 bytes in all)")));
        }
    }

    #[test]
    fn evidence_of_ordinary_size_stays_as_it_is() {
        // 32,768 characters, the longest text of a case, as the bytes of an answer.
        let whole = outcome(json!("61".repeat(1 << 15)), "another value at Results".to_owned());
        assert_eq!(whole.clone().bounded(EVIDENCE_KEPT).0, whole);
        let whole = outcome(json!({ "value": { "A": [1, null] }, "left": 1 }), String::new());
        assert_eq!(whole.clone().bounded(EVIDENCE_KEPT).0, whole);
    }

    #[test]
    fn a_short_text_of_many_values_is_kept_as_a_text() {
        // 128 KiB of text, and some 20 MiB as a tree.
        let values: Vec<Json> = (0..1 << 15).map(|_| json!([[]])).collect();
        let (cut, taken) = outcome(Json::Array(values), String::new()).bounded(EVIDENCE_KEPT);
        assert!(cut.got.is_some_and(|got| got.is_string()) && taken <= EVIDENCE_KEPT, "{taken}");
    }
}
