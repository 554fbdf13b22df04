//! The words, signs and sentences by which reports show verdicts, classes and roles: each in one place.

use std::sync::LazyLock;

use serde::Serialize;

use crate::results::{Class, Outcome, Peer, Role, Verdict};

/// Every verdict, worst first. `unsupported` is last: what a peer does not claim to do says nothing against what it
/// does, so a cell shows it only when there is nothing else.
pub const WORST_FIRST: [Verdict; 10] = [
    Verdict::Fail,
    Verdict::UnexpectedPass,
    Verdict::Known,
    Verdict::HarnessError,
    Verdict::Flaky,
    Verdict::Differs,
    Verdict::NotRun,
    Verdict::Variant,
    Verdict::Pass,
    Verdict::Unsupported,
];

/// Place in [`WORST_FIRST`], 0 the worst.
pub fn rank(verdict: Verdict) -> usize {
    WORST_FIRST.iter().position(|&each| each == verdict).expect("WORST_FIRST holds every verdict")
}

/// The name that results.jsonl uses, `unexpected-pass`.
pub fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => unreachable!("verdicts, classes, roles, levels and operations are unit variants"),
    }
}

/// One character, so that colour is never the only sign.
pub fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✓",
        Verdict::Fail => "✗",
        Verdict::Differs => "≠",
        Verdict::Variant => "~",
        Verdict::Unsupported => "–",
        Verdict::NotRun => "○",
        Verdict::Known => "K",
        Verdict::UnexpectedPass => "!",
        Verdict::Flaky => "?",
        Verdict::HarnessError => "H",
    }
}

/// What a verdict means, for a legend.
pub fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "as required",
        Verdict::Fail => "against a must: a correct peer can be harmed or misled",
        Verdict::Differs => "against a should, or unlike the named Apache Kafka releases",
        Verdict::Variant => "an allowed liberty",
        Verdict::Unsupported => "not offered, by the peer's own declaration",
        Verdict::NotRun => "not judged; says why",
        Verdict::Known => "a fail that is listed with its proof",
        Verdict::UnexpectedPass => "a listed deviation that did not show",
        Verdict::Flaky => "judged differently when repeated",
        Verdict::HarnessError => "a fault of this suite or its surroundings",
    }
}

/// Whether reports show the evidence of such an outcome and not only count it.
pub fn deviates(verdict: Verdict) -> bool {
    !matches!(verdict, Verdict::Pass | Verdict::Variant | Verdict::Unsupported | Verdict::NotRun)
}

/// What a class of fault means, for a legend.
pub fn class_meaning(class: Class) -> &'static str {
    match class {
        Class::Crash => "the process died",
        Class::Hang => "no answer within the deadline",
        Class::Memory => "went over its memory cap",
        Class::Panic => "a panic or unchecked exception that the user must catch",
        Class::WrongValue => "silently another value than the bytes hold, or state wrongly changed",
        Class::InventedValue => "values read from bytes that are not there",
        Class::WrongBytes => "other bytes than the value has",
        Class::ErrorHidden => "an error reported as success",
        Class::NoAnswer => "nothing came where an answer is due",
        Class::Closed => "the connection was closed where an answer is due",
        Class::WrongAnswer => "an answer, but not the right one",
        Class::Lossy => "part of the value was dropped",
        Class::TooStrict => "refused what must be taken",
        Class::TooLenient => "took what must be refused",
    }
}

/// Heading of a role's part of a report.
pub fn plural(role: Role) -> &'static str {
    match role {
        Role::Codec => "Codecs",
        Role::Broker => "Brokers",
        Role::Client => "Clients",
    }
}

/// `Results[0].ErrorCode at offset 31, 2 bytes`, as far as the outcome says where it deviates.
pub fn place(outcome: &Outcome) -> Option<String> {
    let at = outcome.at.as_ref()?;
    let mut place = at.path.clone();
    if let Some(offset) = at.offset {
        place += &format!("{}offset {offset}", if place.is_empty() { "" } else { " at " });
        if let Some(length) = at.length {
            place += &format!(", {length} byte{}", if length == 1 { "" } else { "s" });
        }
    }
    (!place.is_empty()).then_some(place)
}

/// Text of others with control characters as visible signs, so that it neither steers a terminal nor hides in a page; line
/// ends and tabs stay.
pub fn visible(text: &str) -> String {
    let shown = |character| match character {
        '\n' | '\t' => character,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(character)).expect("control pictures are characters"),
        '\x7f' => '␡',
        // The rest of the control characters, and those that turn the direction of what follows.
        _ if character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
            '\u{fffd}'
        }
        _ => character,
    };
    text.chars().map(shown).collect()
}

/// [`visible`] on one line.
pub fn visible_line(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

/// Names of the peers that `replay` knows; others are started by their own command.
static OURS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let manifests = crate::adapter::manifests().iter().map(|peer| peer.name.clone());
    manifests.chain([crate::reference::NAME.to_owned()]).collect()
});

/// The command that repeats one case against one peer, which is in the same run.
pub fn replay(outcome: &Outcome, peer: &Peer) -> String {
    let name = outcome.peer.split('@').next().unwrap_or_default();
    let options: String = peer.options.iter().map(|option| format!(" {option}")).collect();
    let ours = !peer.certified && OURS.iter().any(|ours| ours == name);
    match outcome.role {
        _ if ours => format!("kafka-conform replay {} --peer {}", outcome.case, outcome.peer),
        Role::Broker => format!("kafka-conform certify broker HOST:PORT --case {}{options}", outcome.case),
        role => format!("kafka-conform certify {} --case {}{options} -- COMMAND", word(role), outcome.case),
    }
}
