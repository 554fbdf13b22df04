//! The adapter protocol for a client: JSON lines in, JSON lines out, one operation at a time.
//!
//! This file knows no library. `adapters/librdkafka` and `adapters/rust-rdkafka` hold the same text, because a copy of
//! either folder alone must build.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// An operation of an admin client, named as on the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the protocol's names of its APIs")]
pub enum Api {
    /// DescribeConfigs (key 32).
    DescribeConfigs,
    /// AlterConfigs (key 33).
    AlterConfigs,
    /// IncrementalAlterConfigs (key 44).
    IncrementalAlterConfigs,
}

impl Api {
    /// The field of the response that holds one element a resource.
    fn elements(self) -> &'static str {
        match self {
            Api::DescribeConfigs => "Results",
            Api::AlterConfigs | Api::IncrementalAlterConfigs => "Responses",
        }
    }
}

/// What an operation asks of the client.
#[derive(Debug, Deserialize)]
pub struct Operation {
    /// Which call to make.
    #[serde(rename = "op")]
    pub api: Api,
    /// `host:port`, a comma between several.
    pub bootstrap: String,
    /// The resources of the request, in the order the answer is to have.
    #[serde(default)]
    pub resources: Vec<Resource>,
    /// Synonyms are wanted (DescribeConfigs).
    #[serde(default)]
    #[allow(dead_code, reason = "librdkafka asks for them whenever the version has them")]
    pub synonyms: bool,
    /// Documentation is wanted (DescribeConfigs).
    #[serde(default)]
    pub documentation: bool,
    /// The broker is to check only and change nothing (AlterConfigs, IncrementalAlterConfigs).
    #[serde(default)]
    pub validate_only: bool,
    /// Time the client is given for the whole call, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u32,
}

fn default_timeout_ms() -> u32 {
    5_000
}

/// A resource of a request, in the definition's names.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Resource {
    /// The resource type as it is on the wire: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
    #[serde(default)]
    pub resource_type: i8,
    /// The name: a topic, a node id as text, a group.
    #[serde(default)]
    pub resource_name: String,
    /// The configs to describe; none means all of them.
    #[serde(default)]
    pub configuration_keys: Option<Vec<String>>,
    /// The configs to alter.
    #[serde(default)]
    pub configs: Vec<Config>,
}

/// A config of an alter request, in the definition's names.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Config {
    /// The config's name.
    #[serde(default)]
    pub name: String,
    /// The new value, or null.
    #[serde(default)]
    pub value: Option<String>,
    /// What to do (IncrementalAlterConfigs): 0 set, 1 delete, 2 append, 3 subtract.
    #[serde(default)]
    #[allow(dead_code, reason = "not every client has IncrementalAlterConfigs")]
    pub config_operation: i8,
}

/// A result for one resource as the client shows it.
#[derive(Debug)]
pub struct Shown {
    /// The resource type as on the wire.
    pub resource_type: i64,
    /// The name, text as shown.
    pub resource_name: Value,
    /// All fields shown, in definition names.
    pub fields: Value,
}

/// Why a call gave no results.
#[derive(Debug)]
pub enum Failure {
    /// The call failed, `code` if the failure carries one of the broker's.
    Error {
        /// Text as shown by the client.
        text: String,
        /// The broker's error code.
        code: Option<i32>,
    },
    /// The client refused it before the request was sent.
    Refused(String),
    /// The client has no way to express what was asked, so it was not asked.
    Unsupported(String),
}

/// A client library to be driven.
pub trait Peer {
    /// A client object of the library.
    type Client;

    /// The answer to `start`.
    fn introduce(&self) -> Value;

    /// A new client object for this operation's `bootstrap`.
    fn connect(&self, operation: &Operation) -> Result<Self::Client, Failure>;

    /// Makes the call and waits for as long as the library takes. The results are in the library's order.
    fn call(&self, client: &Self::Client, operation: &Operation) -> Result<Vec<Shown>, Failure>;
}

/// Serves the lines of standard input until `stop` or the end of input. Returns the exit code of the process: 0, or 2
/// for a line that is not of this protocol.
pub fn serve<P: Peer>(peer: &P) -> u8 {
    // The clients that outlive their operation, by the name given in `client`.
    let mut clients = BTreeMap::new();
    for line in io::stdin().lock().lines() {
        let message = match line.map_err(|e| e.to_string()).and_then(|line| parse(&line)) {
            Ok(message) => message,
            Err(why) => {
                eprintln!("{why}");
                return 2;
            }
        };
        let answer = match message["op"].as_str() {
            Some("stop") => return 0,
            Some("start") if message["protocol"] != 1 => {
                eprintln!("protocol {} is not spoken here, only 1", message["protocol"]);
                return 2;
            }
            Some("start") => peer.introduce(),
            _ => {
                let outcome = catch_unwind(AssertUnwindSafe(|| operate(peer, &mut clients, &message)))
                    .unwrap_or_else(|panic| json!({ "panic": panic_text(panic.as_ref()) }));
                match with_id(&message, outcome) {
                    Some(answer) => answer,
                    None => continue,
                }
            }
        };
        if let Err(e) = write_line(&answer) {
            eprintln!("standard output: {e}");
            return 2;
        }
    }
    0
}

fn parse(line: &str) -> Result<Value, String> {
    match serde_json::from_str(line) {
        Ok(message @ Value::Object(_)) => Ok(message),
        Ok(_) => Err("not a JSON object".to_owned()),
        Err(e) => Err(format!("not a JSON line: {e}")),
    }
}

/// The outcome with the message's id in front. None when nobody waits: a `close` without an id.
fn with_id(message: &Value, outcome: Value) -> Option<Value> {
    let id = message.get("id");
    if id.is_none() && message["op"] == "close" {
        return None;
    }
    let mut answer = Map::new();
    answer.extend(id.map(|id| ("id".to_owned(), id.clone())));
    if let Value::Object(outcome) = outcome {
        answer.extend(outcome);
    }
    Some(Value::Object(answer))
}

/// Carries out one message; the answer's fields beside `id`.
fn operate<P: Peer>(peer: &P, clients: &mut BTreeMap<String, P::Client>, message: &Value) -> Value {
    let name = message.get("client").and_then(Value::as_str);
    if message["op"] == "close" {
        return match name.and_then(|name| clients.remove(name)) {
            Some(_client) => json!({ "value": {} }),
            None => json!({ "error": "no such client is open" }),
        };
    }
    let operation = match Operation::deserialize(message) {
        Ok(operation) => operation,
        Err(e) => return json!({ "unsupported": e.to_string() }),
    };
    match perform(peer, clients, name, &operation) {
        Ok(elements) => json!({ "value": { operation.api.elements(): elements } }),
        Err(Failure::Error { text, code: None }) => json!({ "error": text }),
        Err(Failure::Error { text, code: Some(code) }) => json!({ "error": text, "code": code }),
        Err(Failure::Refused(why)) => json!({ "refused": why }),
        Err(Failure::Unsupported(why)) => json!({ "unsupported": why }),
    }
}

/// Makes the call with the named client, which is made at its first use, or with one of its own. That one ends before
/// the answer is given, so that what goes wrong while it ends is seen with the operation it belongs to.
fn perform<P: Peer>(
    peer: &P,
    clients: &mut BTreeMap<String, P::Client>,
    name: Option<&str>,
    operation: &Operation,
) -> Result<Vec<Value>, Failure> {
    let shown = match name {
        None => peer.call(&peer.connect(operation)?, operation)?,
        Some(name) => {
            if !clients.contains_key(name) {
                clients.insert(name.to_owned(), peer.connect(operation)?);
            }
            peer.call(&clients[name], operation)?
        }
    };
    Ok(in_order_asked(&operation.resources, shown))
}

/// One element for each resource asked, in that order, then the results nobody asked for.
fn in_order_asked(asked: &[Resource], shown: Vec<Shown>) -> Vec<Value> {
    let mut shown: Vec<Option<Shown>> = shown.into_iter().map(Some).collect();
    let mut elements = Vec::with_capacity(asked.len());
    for resource in asked {
        let found = shown.iter_mut().find(|slot| {
            slot.as_ref().is_some_and(|s| {
                s.resource_type == i64::from(resource.resource_type) && s.resource_name == resource.resource_name
            })
        });
        elements.push(match found.and_then(Option::take) {
            Some(result) => result.fields,
            None => json!({
                "ResourceType": resource.resource_type,
                "ResourceName": resource.resource_name,
                "error": "the client shows no result for this resource",
            }),
        });
    }
    elements.extend(shown.into_iter().flatten().map(|result| result.fields));
    elements
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic without a text".to_owned())
}

fn write_line(answer: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{answer}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(asked: &str, shown: &str, elements: Value) {
        let topic = |name: char| Resource {
            resource_type: 2,
            resource_name: name.into(),
            configuration_keys: None,
            configs: Vec::new(),
        };
        let asked: Vec<Resource> = asked.chars().map(topic).collect();
        let result = |(place, name): (usize, char)| Shown {
            resource_type: 2,
            resource_name: name.to_string().into(),
            fields: json!([name, place]),
        };
        let shown = shown.chars().enumerate().map(result).collect();
        assert_eq!(Value::Array(in_order_asked(&asked, shown)), elements);
    }

    #[test]
    fn results_come_in_the_order_asked() {
        check("ab", "ba", json!([["a", 1], ["b", 0]]));
    }

    #[test]
    fn a_resource_asked_twice_takes_two_results() {
        check("aa", "aa", json!([["a", 0], ["a", 1]]));
    }

    #[test]
    fn results_nobody_asked_for_come_last() {
        check("a", "xa", json!([["a", 1], ["x", 0]]));
    }

    #[test]
    fn a_missing_result_is_an_error_of_its_resource() {
        let error = "the client shows no result for this resource";
        check("ab", "b", json!([{ "ResourceType": 2, "ResourceName": "a", "error": error }, ["b", 0]]));
    }

    #[test]
    fn a_close_without_an_id_is_not_answered() {
        assert_eq!(with_id(&json!({ "op": "close", "client": "a" }), json!({ "value": {} })), None);
    }
}
