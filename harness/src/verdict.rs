//! What a codec did with a case, and what that is worth: pure functions from observation to verdict.

use crate::adapter::{self, Answer, Said};
use crate::report::words::word;
use crate::results::{At, Class, Level, Op, Outcome, Role, Verdict};
use crate::vector::{Allowed, Expected, Part, Vector};
use codec::{AbsentFields, EncodeErrorKind, Value};
use serde_json::{Value as Json, json};
use std::cell::LazyCell;
use std::time::Duration;

/// What came of asking a codec.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// A value and the bytes left after it.
    Value(Json, u64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// It said no.
    Refused(String),
    /// It panicked, and the adapter caught it.
    Panicked(String),
    /// It says that it does not have this message, version, part or operation.
    Unsupported(String),
    /// It was not asked: it does not declare this.
    Undeclared(String),
    /// It died.
    Crashed(String),
    /// No answer in time.
    Hung(Duration),
    /// It went over its memory cap.
    Memory(u64),
    /// Its adapter did not keep to the protocol.
    Broken(String),
    /// It is not there any more.
    Gone(String),
}

impl From<Answer> for Observation {
    fn from(answer: Answer) -> Observation {
        let line = match answer {
            Answer::Line(line) => line,
            Answer::Crashed(how) => return Observation::Crashed(how),
            Answer::Hung(limit) => return Observation::Hung(limit),
            Answer::Memory(bytes) => return Observation::Memory(bytes),
            Answer::Garbage(what) => return Observation::Broken(what),
            Answer::Gone(why) => return Observation::Gone(why),
        };
        match Said::of(&line) {
            Ok(Said::Value(value, left)) => Observation::Value(value.clone(), left),
            Ok(Said::Bytes(hex)) => codec::parse_hex(hex).map_or_else(Observation::Broken, Observation::Bytes),
            Ok(Said::Error(why, _)) => Observation::Refused(why.to_owned()),
            Ok(Said::Panic(what)) => Observation::Panicked(what.to_owned()),
            Ok(Said::Unsupported(why)) => Observation::Unsupported(why.to_owned()),
            Ok(Said::Refused(_)) => Observation::Broken("refused is what clients answer".to_owned()),
            Err(what) => Observation::Broken(what),
        }
    }
}

/// The operations that a case is judged by.
pub fn operations(case: &Vector) -> &'static [Op] {
    match case.rule.result {
        Expected::Valid => &[Op::Decode, Op::Encode, Op::Recode],
        Expected::Acceptable | Expected::Invalid => &[Op::Decode],
        Expected::Refused => &[Op::Encode],
    }
}

/// The request of the adapter protocol.
pub fn request(case: &Vector, op: Op) -> Json {
    let mut request = json!({ "message": &*case.spec.name, "version": case.version.0, "part": case.part.name() });
    let bytes = || codec::hex(case.bytes.as_deref().unwrap_or_default());
    match op {
        Op::Encode => {
            request["op"] = "encode".into();
            request["value"] = stated(case);
        }
        Op::Recode => {
            request["op"] = "recode".into();
            request["bytes"] = bytes().into();
        }
        _ => {
            request["op"] = "decode".into();
            request["bytes"] = bytes().into();
        }
    }
    request
}

/// The case's value with every field of this version stated, and those that it states beside them.
fn stated(case: &Vector) -> Json {
    let json = case.value.clone().unwrap_or(Json::Null);
    match case.layout.from_json(&json, AbsentFields::Keep) {
        Ok(value) => case.layout.to_json(&value),
        _ => json,
    }
}

/// A finding, before it is an outcome.
struct Finding {
    verdict: Verdict,
    class: Option<Class>,
    at: Option<At>,
    want: Option<Json>,
    got: Option<Json>,
    detail: Option<String>,
}

impl Finding {
    fn pass() -> Finding {
        Finding { verdict: Verdict::Pass, class: None, at: None, want: None, got: None, detail: None }
    }

    fn of(verdict: Verdict, detail: impl Into<String>) -> Finding {
        Finding { verdict, detail: Some(detail.into()), ..Finding::pass() }
    }

    /// Against the case: `fail` at the levels that fail, `differs` below.
    fn against(class: Class, detail: impl Into<String>) -> Finding {
        Finding { class: Some(class), ..Finding::of(Verdict::Fail, detail) }
    }

    fn variant(detail: impl Into<String>) -> Finding {
        Finding::of(Verdict::Variant, detail)
    }
}

/// Judges one observation. `fails` is the lowest level that gives `fail`.
pub fn judge(case: &Vector, op: Op, seen: &Observation, peer: &str, fails: Level, elapsed: Duration) -> Outcome {
    let mut finding = find(case, op, seen);
    // No input of any kind may crash, hang or exhaust memory: that is always a must.
    let level = match finding.class {
        Some(Class::Crash | Class::Hang | Class::Memory) => Level::Must,
        // A value read from bytes that are not there misleads whoever uses it, whatever rule was broken.
        Some(Class::InventedValue | Class::WrongBytes | Class::WrongValue) => Level::Must,
        _ => case.level,
    };
    if finding.verdict == Verdict::Fail && level > fails {
        finding.verdict = Verdict::Differs;
    }
    let evidence = finding.verdict != Verdict::Pass && finding.verdict != Verdict::Unsupported;
    let sent = match op {
        Op::Encode => None,
        _ => case.bytes.as_deref().map(codec::hex),
    };
    Outcome {
        peer: peer.to_owned(),
        role: Role::Codec,
        message: case.spec.name.to_string(),
        api: case.spec.api_name().to_owned(),
        version: case.version.0,
        case: case.id.clone(),
        op,
        level,
        verdict: finding.verdict,
        class: finding.class,
        severity: finding.class.map(Class::severity),
        at: finding.at,
        sent: sent.filter(|_| evidence),
        want: finding.want.or_else(|| want(case, op)).filter(|_| evidence),
        got: finding.got.or_else(|| got(seen)).filter(|_| evidence),
        detail: finding.detail,
        refused: None,
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
    }
}

/// What was due, for the evidence.
fn want(case: &Vector, op: Op) -> Option<Json> {
    match (case.rule.result, op) {
        (Expected::Invalid | Expected::Refused, _) => Some("refuse".into()),
        (_, Op::Decode) => case.value.clone(),
        _ => case.bytes.as_deref().map(|bytes| codec::hex(bytes).into()),
    }
}

fn got(seen: &Observation) -> Option<Json> {
    Some(match seen {
        Observation::Value(value, 0) => value.clone(),
        Observation::Value(value, left) => json!({ "value": value, "left": left }),
        Observation::Bytes(bytes) => codec::hex(bytes).into(),
        Observation::Refused(why) => json!({ "error": why }),
        Observation::Panicked(what) => json!({ "panic": what }),
        Observation::Crashed(how) => json!({ "crashed": how }),
        Observation::Hung(limit) => json!({ "no answer within ms": limit.as_millis() as u64 }),
        Observation::Memory(_) => json!({ "over the memory cap": true }),
        Observation::Unsupported(_) | Observation::Undeclared(_) | Observation::Broken(_) | Observation::Gone(_) => {
            return None;
        }
    })
}

/// Whether a peer that declares a message at a version must have this: it may lack headers and frames, an operation of its
/// own to recode, and a way to be given unknown tags or what no value can be.
fn must_have(case: &Vector, op: Op) -> bool {
    let plain =
        |json: &Json| case.layout.from_json(json, AbsentFields::Drop).is_ok_and(|v| v.iter().all(|v| tags(v) == 0));
    case.part == Part::Body
        && match op {
            Op::Decode => true,
            Op::Encode => case.rule.result == Expected::Valid && case.value.as_ref().is_some_and(plain),
            _ => false,
        }
}

fn find(case: &Vector, op: Op, seen: &Observation) -> Finding {
    match seen {
        // It is asked for nothing else than what it declares.
        Observation::Unsupported(why) if must_have(case, op) => {
            let (message, version) = (&case.spec.name, case.version);
            let what =
                format!("it declares to {} {message} version {version}, and then not to have it: {why}", word(op));
            Finding::of(Verdict::HarnessError, adapter::broke_protocol(&what))
        }
        Observation::Unsupported(why) | Observation::Undeclared(why) => Finding::of(Verdict::Unsupported, why),
        Observation::Gone(why) => Finding::of(Verdict::NotRun, why),
        Observation::Broken(what) => Finding::of(Verdict::HarnessError, adapter::broke_protocol(what)),
        Observation::Crashed(how) => Finding::against(Class::Crash, format!("the process ended: {how}")),
        Observation::Hung(limit) => Finding::against(Class::Hang, format!("no answer within {} ms", limit.as_millis())),
        Observation::Memory(_) => Finding::against(Class::Memory, "it took more than its memory cap"),
        Observation::Panicked(what) => Finding::against(Class::Panic, format!("it panicked: {what}")),
        Observation::Refused(why) => refused(case, why),
        Observation::Value(value, left) if op == Op::Decode => decoded(case, value, *left),
        Observation::Bytes(bytes) if op != Op::Decode => encoded(case, op, bytes),
        Observation::Value(..) | Observation::Bytes(_) => {
            let what = adapter::broke_protocol("it answered another operation than was asked");
            Finding::of(Verdict::HarnessError, what)
        }
    }
}

fn allows(case: &Vector, allowed: Allowed) -> bool {
    case.rule.outcomes.contains(&allowed)
}

fn refused(case: &Vector, why: &str) -> Finding {
    match case.rule.result {
        Expected::Invalid | Expected::Refused => Finding::pass(),
        Expected::Acceptable if allows(case, Allowed::Refuse) => Finding::variant("refused, which the rule allows"),
        Expected::Acceptable | Expected::Valid => Finding::against(Class::TooStrict, format!("refused: {why}")),
    }
}

fn decoded(case: &Vector, json: &Json, left: u64) -> Finding {
    if case.rule.result == Expected::Invalid {
        // Where bytes are missing, whatever was given in their place was made up. A tag section holds no value to make up.
        let class = if case.rule.id == "truncated" { Class::InventedValue } else { Class::TooLenient };
        return Finding::against(class, "decoded without an error");
    }
    let got = match case.layout.from_json(json, AbsentFields::Drop) {
        // Peers show unknown tags in wire order or by number: the order is a shim's affair.
        Ok(got) => by_tag(got),
        // How a value is written as JSON is the adapter's affair, and not the library's.
        Err(error) if matches!(error.kind, EncodeErrorKind::Type(_) | EncodeErrorKind::Text(_)) => {
            let what = format!("the value is not written as its types are: {error}");
            return Finding::of(Verdict::HarnessError, adapter::broke_protocol(&what));
        }
        Err(error) => {
            return Finding::against(Class::WrongValue, format!("a value the definition does not have: {error}"));
        }
    };
    let Some(bytes) = &case.bytes else { unreachable!("a case to decode has bytes") };
    // Of valid bytes nothing is left over.
    let ours = LazyCell::new(|| case.layout.decode(bytes).ok());
    let due = if case.rule.result == Expected::Valid { Some(0) } else { ours.as_ref().map(|ours| ours.left as u64) };
    if let Some(due) = due
        && left != due
        && !allows(case, Allowed::EitherReading)
    {
        return Finding::against(Class::WrongValue, format!("{due} bytes are left over, it says {left}"));
    }
    let read = |json: &Json| case.layout.from_json(json, AbsentFields::Keep).ok().map(by_tag);
    if case.values.iter().any(|json| read(json).as_ref() == Some(&got)) {
        return Finding::pass();
    }
    let stated = case.value.as_ref().or(case.values.first()).and_then(read);
    let Some(want) = stated.or_else(|| ours.as_ref().map(|ours| by_tag(ours.value.clone()))) else {
        // Acceptable bytes that we refuse and that have no one right reading.
        return Finding::variant("took bytes that may be refused");
    };
    let Some(path) = case.layout.first_difference(&want, &got) else { return Finding::pass() };
    if without_tags(&want) == without_tags(&got) {
        let dropped = got.iter().all(|value| tags(value) == 0);
        if allows(case, Allowed::TagsDroppedOrKept) && dropped {
            return Finding::variant("unknown tags dropped");
        }
        if case.rule.result == Expected::Acceptable && dropped {
            return Finding::variant("unknown tags dropped");
        }
    }
    if allows(case, Allowed::ReplacementChar) && with_replacements(&want) == with_replacements(&got) {
        return Finding::variant("U+FFFD in place of what is not UTF-8");
    }
    let span = span_of(case, &path);
    Finding {
        at: Some(At {
            offset: span.map(|(start, _)| start as u64),
            length: span.map(|(_, length)| length as u64),
            path: path.clone(),
        }),
        ..Finding::against(Class::WrongValue, format!("another value at {path}"))
    }
}

/// Offset and length of the field at a path, in the case's bytes.
fn span_of(case: &Vector, path: &str) -> Option<(usize, usize)> {
    use crate::vector::PartLayout;
    let bytes = case.bytes.as_deref()?;
    let span = |view: codec::View, path: &str| {
        let node = view.get(path)?.node();
        Some((node.start as usize, (node.end - node.start) as usize))
    };
    match &case.layout {
        PartLayout::Single(layout) => span(codec::decode(layout, bytes).ok()?.view(), path),
        PartLayout::Frame(layout) => {
            let frame = codec::decode_frame(layout, bytes).ok()?;
            match path.split_once('.')? {
                ("header", path) => span(frame.header(), path),
                (_, path) => span(frame.body(), path),
            }
        }
    }
}

fn encoded(case: &Vector, op: Op, bytes: &[u8]) -> Finding {
    if case.rule.result == Expected::Refused {
        return must_refuse(case, bytes);
    }
    let Some(want) = &case.bytes else { unreachable!("a case to encode has bytes") };
    if bytes == want {
        return Finding::pass();
    }
    let (Ok(ours), Ok(theirs)) = (case.layout.decode(want), case.layout.decode(bytes)) else {
        return at_difference(case, want, bytes, Class::WrongBytes, "bytes that do not decode");
    };
    if theirs.left > 0 {
        return at_difference(case, want, bytes, Class::WrongBytes, "bytes after the end of the message");
    }
    if ours.value == theirs.value && allows(case, Allowed::DefaultKeptOrDropped) && (theirs.canonical || theirs.valid) {
        return Finding::variant("the default of a tagged field kept or dropped otherwise");
    }
    if without_tags(&ours.value) == without_tags(&theirs.value) && theirs.valid && ours.value != theirs.value {
        let dropped = theirs.value.iter().all(|value| tags(value) == 0);
        return match (dropped, allows(case, Allowed::TagsDroppedOrKept), op) {
            (true, true, _) => Finding::variant("unknown tags dropped"),
            (true, false, _) => at_difference(case, want, bytes, Class::Lossy, "unknown tags dropped"),
            _ => at_difference(case, want, bytes, Class::WrongBytes, "other unknown tags"),
        };
    }
    at_difference(case, want, bytes, Class::WrongBytes, "other bytes")
}

/// An encoder that took a value without an encoding.
fn must_refuse(case: &Vector, bytes: &[u8]) -> Finding {
    let json = case.value.clone().unwrap_or(Json::Null);
    let left_out = match case.layout.from_json(&json, AbsentFields::Drop) {
        Ok(value) => case.layout.encode(&value).is_ok_and(|without| without == bytes),
        Err(_) => false,
    };
    if allows(case, Allowed::TagsDroppedOrKept) {
        // Our own encoder sorts them.
        let value = case.layout.from_json(&json, AbsentFields::Drop).unwrap_or_default();
        let dropped = case.layout.encode(&without_tags(&value)).is_ok_and(|without| without == bytes);
        return match (left_out, dropped) {
            (true, _) => Finding::variant("tagged fields written in ascending order"),
            (_, true) => Finding::variant("unknown tags dropped"),
            _ => Finding::against(Class::WrongBytes, "tagged fields written out of order"),
        };
    }
    if left_out && allows(case, Allowed::Value) {
        return Finding::variant("left out what the version lacks");
    }
    if left_out {
        return Finding::against(Class::TooLenient, "encoded without what the version lacks");
    }
    Finding::against(Class::WrongBytes, "encoded a value that has no encoding")
}

fn at_difference(case: &Vector, want: &[u8], got: &[u8], class: Class, detail: &str) -> Finding {
    let place = case.layout.locate(want, got);
    let detail = match &place {
        Some((path, ..)) if !path.is_empty() => format!("{detail}, from {path} on"),
        _ => detail.to_owned(),
    };
    let at = place.map(|(path, offset, length)| At { path, offset: Some(offset as u64), length: Some(length as u64) });
    Finding { at, ..Finding::against(class, detail) }
}

/// The values with every unknown tag left out.
fn without_tags(values: &[Value]) -> Vec<Value> {
    rewritten(values.to_vec(), &|value| {
        if let Value::Struct(value) = value {
            value.tags.clear();
        }
    })
}

/// The values with unknown tags by number.
fn by_tag(values: Vec<Value>) -> Vec<Value> {
    rewritten(values, &|value| {
        if let Value::Struct(value) = value {
            value.tags.sort_by_key(|&(tag, _)| tag);
        }
    })
}

/// The values with U+FFFD for what is not UTF-8.
fn with_replacements(values: &[Value]) -> Vec<Value> {
    rewritten(values.to_vec(), &|value| {
        // How many U+FFFD stand for a run of bad bytes is everybody's own affair.
        let text = match value {
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::String(text) if text.contains(char::REPLACEMENT_CHARACTER) => text.clone(),
            _ => return,
        };
        let mut chars: Vec<char> = text.chars().collect();
        chars.dedup_by(|next, last| (*next, *last) == (char::REPLACEMENT_CHARACTER, char::REPLACEMENT_CHARACTER));
        *value = Value::String(chars.into_iter().collect());
    })
}

/// The values after a change to each, and to each within.
fn rewritten(mut values: Vec<Value>, change: &dyn Fn(&mut Value)) -> Vec<Value> {
    values.iter_mut().for_each(|value| rewrite(value, change));
    values
}

fn rewrite(value: &mut Value, change: &dyn Fn(&mut Value)) {
    change(value);
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| rewrite(element, change)),
        Value::Struct(fields) => fields.fields.iter_mut().for_each(|(_, field)| rewrite(field, change)),
        _ => {}
    }
}

/// How many unknown tags a value holds.
fn tags(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(tags).sum(),
        Value::Struct(value) => value.tags.len() + value.fields.iter().map(|(_, field)| tags(field)).sum::<usize>(),
        _ => 0,
    }
}

/// Whether a peer can be asked this: its own declaration, so that nothing is held against what it never claimed.
pub fn declared(case: &Vector, op: Op, handshake: &crate::adapter::Handshake) -> bool {
    let ranges = match op {
        Op::Encode => vec![handshake.range(&case.spec.name, true)],
        Op::Recode => vec![handshake.range(&case.spec.name, true), handshake.range(&case.spec.name, false)],
        _ => vec![handshake.range(&case.spec.name, false)],
    };
    ranges.iter().all(|range| range.contains(case.version))
}
