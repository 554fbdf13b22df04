//! The adapter protocol over the crate kafka-protocol: one JSON line in, one out.

mod messages;
mod value;

use std::any::Any;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use crate::messages::{Message, MessageType};
use crate::value::{Refusal, bad, hex, unhex};

/// The pinned release stands in the lock file, so that what is reported is what was linked.
const LOCK: &str = include_str!("../Cargo.lock");

fn main() -> ExitCode {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = match line {
            Ok(line) => line,
            Err(error) => return quit(&format!("not a JSON line: {error}")),
        };
        if line.trim().is_empty() {
            continue;
        }
        let asked: Value = match serde_json::from_str(&line) {
            Ok(asked) => asked,
            Err(error) => return quit(&format!("not a JSON line: {error}")),
        };
        let answer = match asked["op"].as_str() {
            Some("stop") => return ExitCode::SUCCESS,
            Some("start") if asked["protocol"] != 1 => {
                return quit(&format!("speaks adapter protocol 1, asked for {}", asked["protocol"]));
            }
            Some("start") => handshake(),
            op => answer(op.unwrap_or_default(), &asked),
        };
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            break; // nobody listens any more
        }
    }
    ExitCode::SUCCESS
}

fn quit(why: &str) -> ExitCode {
    eprintln!("kafka-protocol adapter: {why}");
    ExitCode::from(2)
}

fn handshake() -> Value {
    let version = LOCK.split("name = \"kafka-protocol\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    let supports = messages::all().map(|kind| {
        let versions = format!("{}-{}", kind.versions.min, kind.versions.max);
        (kind.name.to_owned(), json!({"decode": versions, "encode": versions}))
    });
    json!({"protocol": 1, "peer": "kafka-protocol", "version": version, "language": "rust",
        "supports": supports.collect::<serde_json::Map<_, _>>(), "operations": {}})
}

fn answer(op: &str, asked: &Value) -> Value {
    let outcome = catch_unwind(AssertUnwindSafe(|| perform(op, asked)));
    let mut answer = match outcome {
        Ok(Ok(answer)) => answer,
        Ok(Err(Refusal::Unsupported(why))) => json!({"unsupported": why}),
        Ok(Err(Refusal::Error(why))) => json!({"error": why}),
        Err(panic) => json!({"panic": panic_text(&*panic)}),
    };
    if let Some(id) = asked.get("id") {
        answer["id"] = id.clone();
    }
    answer
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without text")
}

fn perform(op: &str, asked: &Value) -> Result<Value, Refusal> {
    let name = asked["message"].as_str().unwrap_or_default();
    let kind = messages::all().find(|kind| kind.name == name);
    let kind = kind.ok_or_else(|| Refusal::Unsupported(format!("no message {name}")))?;
    let version = asked["version"].as_i64().and_then(|version| i16::try_from(version).ok());
    let version =
        version.filter(|version| (kind.versions.min..=kind.versions.max).contains(version)).ok_or_else(|| {
            Refusal::Unsupported(format!("{name} has versions {}-{}", kind.versions.min, kind.versions.max))
        })?;
    let part = Part::new(asked["part"].as_str().unwrap_or("body"), kind, version)?;
    match op {
        "decode" => {
            let mut bytes = Bytes::from(unhex(asked["bytes"].as_str().unwrap_or_default())?);
            let value = part.json(&part.read(&mut bytes)?);
            Ok(json!({"value": value, "left": bytes.remaining()}))
        }
        "encode" => Ok(json!({"bytes": hex(&part.write(&part.parse(&asked["value"])?)?)})),
        "recode" => {
            let mut bytes = Bytes::from(unhex(asked["bytes"].as_str().unwrap_or_default())?);
            let found = part.read(&mut bytes)?;
            Ok(json!({"bytes": hex(&part.write(&found)?), "left": bytes.remaining()}))
        }
        _ => Err(Refusal::Unsupported(format!("no operation {op}"))),
    }
}

/// A message at a version, and whether it is the header or the body.
type Section = (&'static str, MessageType, i16);

/// What a request is about: a body, a header, or a frame (size, header, body), at one version.
struct Part {
    sections: Vec<Section>,
    framed: bool,
}

impl Part {
    fn new(part: &str, kind: MessageType, version: i16) -> Result<Self, Refusal> {
        let header = || -> Result<Section, Refusal> {
            let header_version =
                kind.header.ok_or_else(|| Refusal::Unsupported(format!("{} has no header", kind.name)))?;
            let header = if kind.name.ends_with("Request") { "RequestHeader" } else { "ResponseHeader" };
            let header = messages::all().find(|kind| kind.name == header).expect("both headers are listed");
            Ok(("header", header, header_version(version)))
        };
        match part {
            "body" => Ok(Part { sections: vec![("body", kind, version)], framed: false }),
            "header" => Ok(Part { sections: vec![header()?], framed: false }),
            "frame" => Ok(Part { sections: vec![header()?, ("body", kind, version)], framed: true }),
            _ => Err(Refusal::Unsupported(format!("no part {part}"))),
        }
    }

    /// Reads the sections and leaves the rest in `bytes`.
    fn read(&self, bytes: &mut Bytes) -> Result<Vec<Box<dyn Message>>, Refusal> {
        if !self.framed {
            return self.read_sections(bytes);
        }
        // The crate knows no frames, so that the size is read here.
        let size = bytes.try_get_i32().map_err(bad)?;
        let size = usize::try_from(size).ok().filter(|size| *size <= bytes.len());
        let mut inner = bytes.split_to(size.ok_or_else(|| bad("the frame size is not the size of what follows"))?);
        let found = self.read_sections(&mut inner)?;
        *bytes = [inner, bytes.clone()].concat().into();
        Ok(found)
    }

    fn read_sections(&self, bytes: &mut Bytes) -> Result<Vec<Box<dyn Message>>, Refusal> {
        self.sections.iter().map(|(_, kind, version)| Ok((kind.read)(bytes, *version)?)).collect()
    }

    fn write(&self, messages: &[Box<dyn Message>]) -> Result<Vec<u8>, Refusal> {
        let mut bytes = BytesMut::new();
        for (message, (_, _, version)) in messages.iter().zip(&self.sections) {
            message.write(&mut bytes, *version)?;
        }
        if !self.framed {
            return Ok(bytes.to_vec());
        }
        let mut frame = Vec::new();
        frame.put_i32(i32::try_from(bytes.len()).map_err(bad)?);
        frame.put(bytes);
        Ok(frame)
    }

    fn json(&self, messages: &[Box<dyn Message>]) -> Value {
        let mut each =
            self.sections.iter().zip(messages).map(|((name, _, _), message)| ((*name).to_owned(), message.json()));
        if self.framed { Value::Object(each.collect()) } else { each.next().expect("a part has a section").1 }
    }

    fn parse(&self, value: &Value) -> Result<Vec<Box<dyn Message>>, Refusal> {
        if !self.framed {
            return Ok(vec![(self.sections[0].1.parse)(value)?]);
        }
        let parts = value.as_object().ok_or_else(|| bad("a frame is an object"))?;
        if let Some(name) = parts.keys().find(|name| !["header", "body"].contains(&name.as_str())) {
            return Err(bad(format!("a frame has header and body, not {name}")));
        }
        let empty = json!({});
        self.sections.iter().map(|(name, kind, _)| (kind.parse)(parts.get(*name).unwrap_or(&empty))).collect()
    }
}
