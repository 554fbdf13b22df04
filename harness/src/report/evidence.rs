//! The evidence of one deviation, as the page shows it: what was sent, wanted and got, and where they differ.

use serde_json::Value as Json;

use super::bytes::{self, Marks};
use crate::results::Outcome;

/// How many differing values are listed for one outcome.
const LISTED_VALUES: usize = 12;

/// How much of one JSON value or text is shown, in bytes.
const SHOWN_TEXT: usize = 4096;

/// What shows an outcome's deviation; each part is there if the outcome has it.
#[derive(Default)]
pub struct Evidence {
    /// What was sent; left out where it equals `want`.
    pub sent: Option<Shown>,
    /// What was due.
    pub want: Option<Shown>,
    /// What came.
    pub got: Option<Shown>,
    /// How the bytes wanted and got differ, in words.
    pub note: Option<String>,
    /// Path, wanted, got of the first values that differ.
    pub values: Vec<[String; 3]>,
    /// How many more differ.
    pub more_values: usize,
    /// Whether the place of the deviation is marked in a dump.
    pub at: bool,
    /// Whether differing bytes are marked in the dumps.
    pub differ: bool,
}

/// Something under a heading, in fixed pitch.
pub struct Shown {
    /// The heading.
    pub title: &'static str,
    /// How long it is and whether it is cut.
    pub note: String,
    /// Safe HTML.
    pub html: String,
    /// As wide as a row of bytes.
    pub bytes: bool,
}

/// About how many characters of HTML an outcome takes that is told in full.
pub fn cost(outcome: &Outcome) -> usize {
    // A byte takes two digits in the row and some five characters of HTML with offset, text column and marks.
    let hex = outcome.sent.as_ref().map_or(0, |hex| hex.len().min(bytes::SHOWN_DIGITS) * 5 / 2);
    let json = |value: &Option<Json>| match value {
        None => 0,
        Some(Json::String(text)) => text.len().min(SHOWN_TEXT) * 5 / 2,
        // Pretty printing adds line ends and indentation.
        Some(value) => (value.to_string().len() * 2).min(SHOWN_TEXT),
    };
    1000 + hex + json(&outcome.want) + json(&outcome.got)
}

/// Prepares what the outcome holds; nothing in it needs escaping any more but `note` and `values`.
pub fn evidence(outcome: &Outcome) -> Evidence {
    let sent = outcome.sent.as_deref().map(|hex| bytes::parse(hex).ok_or(hex));
    let (want, got) = (outcome.want.as_ref(), outcome.got.as_ref());
    let (want_bytes, got_bytes) = (want.and_then(bytes_in), got.and_then(bytes_in));
    let at = outcome.at.as_ref().and_then(|at| {
        let start = usize::try_from(at.offset?).ok()?;
        let length = usize::try_from(at.length.unwrap_or(1)).ok()?;
        Some(start..start.saturating_add(length))
    });
    let mut evidence = Evidence::default();
    let (mut want_marks, mut got_marks) = (Marks::default(), Marks::default());
    if let (Some(want), Some(got)) = (&want_bytes, &got_bytes) {
        (want_marks.differ, got_marks.differ) = bytes::differences(want, got);
        got_marks.fold = true;
        evidence.note = bytes::difference_sentence(want, got);
        evidence.differ = evidence.note.is_some();
    } else if let (Some(want), Some(got)) = (want, got) {
        let mut values = Vec::new();
        value_differences(String::new(), want, got, &mut values);
        // A single difference at the root is what the two texts below say anyway.
        values.retain(|[path, ..]| !path.is_empty());
        evidence.more_values = values.len().saturating_sub(LISTED_VALUES);
        values.truncate(LISTED_VALUES);
        evidence.values = values;
    }
    // The same bytes twice would only be longer.
    let as_sent = want_bytes.is_some() && sent.as_ref().and_then(|sent| sent.as_ref().ok()) == want_bytes.as_ref();
    evidence.at = at.is_some() && (matches!(sent, Some(Ok(_))) || want_bytes.is_some());
    if as_sent || sent.is_none() {
        want_marks.at = at;
    } else {
        let marks = Marks { at, ..Marks::default() };
        evidence.sent = sent.map(|sent| match sent {
            Ok(bytes) => dump("sent", &bytes, &marks),
            Err(text) => plain("sent", text),
        });
    }
    let show = |title, value: Option<&Json>, bytes: Option<Vec<u8>>, marks: &Marks| match (bytes, value) {
        (Some(bytes), _) => Some(dump(title, &bytes, marks)),
        (None, Some(Json::String(text))) => Some(plain(title, text)),
        (None, Some(value)) => Some(plain(title, &pretty(value))),
        (None, None) => None,
    };
    evidence.want = show(if as_sent { "want, as sent" } else { "want" }, want, want_bytes, &want_marks);
    evidence.got = show("got", got, got_bytes, &got_marks);
    evidence
}

/// The bytes of a value that is nothing but bytes: hex, or an object with hex as its only member `bytes` or `hex`.
fn bytes_in(value: &Json) -> Option<Vec<u8>> {
    match value {
        Json::String(hex) => bytes::parse(hex),
        Json::Object(members) if members.len() == 1 => {
            members.get("bytes").or(members.get("hex"))?.as_str().and_then(bytes::parse)
        }
        _ => None,
    }
}

/// Collects every leaf in which two values differ.
fn value_differences(path: String, want: &Json, got: &Json, found: &mut Vec<[String; 3]>) {
    match (want, got) {
        (Json::Object(want), Json::Object(got)) => {
            let names: Vec<_> = want.keys().chain(got.keys().filter(|name| !want.contains_key(*name))).collect();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                pair_differences(path, want.get(name), got.get(name), found);
            }
        }
        (Json::Array(want), Json::Array(got)) => {
            for index in 0..want.len().max(got.len()) {
                pair_differences(format!("{path}[{index}]"), want.get(index), got.get(index), found);
            }
        }
        _ if want != got => found.push([path, brief(Some(want)), brief(Some(got))]),
        _ => {}
    }
}

fn pair_differences(path: String, want: Option<&Json>, got: Option<&Json>, found: &mut Vec<[String; 3]>) {
    match (want, got) {
        (Some(want), Some(got)) => value_differences(path, want, got, found),
        _ => found.push([path, brief(want), brief(got)]),
    }
}

/// A value on one line, cut to what a table cell bears.
fn brief(value: Option<&Json>) -> String {
    let Some(value) = value else { return "absent".into() };
    let text = value.to_string();
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn pretty(value: &Json) -> String {
    serde_json::to_string_pretty(value).expect("a JSON value can be written")
}

fn dump(title: &'static str, bytes: &[u8], marks: &Marks) -> Shown {
    Shown { title, note: bytes::length_note(bytes), html: bytes::html(bytes, marks), bytes: true }
}

fn plain(title: &'static str, text: &str) -> Shown {
    let mut end = text.len().min(SHOWN_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let note = match end == text.len() {
        true => String::new(),
        false => format!("{} bytes of text, cut: the first {end} are shown", text.len()),
    };
    let html = text[..end].replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    Shown { title, note, html, bytes: false }
}
