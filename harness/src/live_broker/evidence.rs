//! What an outcome shows of an answer: no secrets, nothing that differs by machine or moment, and not too much.

use std::collections::HashSet;

use codec::{Frame, Protocol, decode_frame, hex};
use serde_json::Value as Json;

use super::message::{Request, response_layout};
use crate::exchange::{Send, Step};
use crate::results::{cut_short, kept};

/// The most bytes of a frame that an outcome shows.
const FRAME_SHOWN: usize = 4096;
/// The most bytes of a value, in JSON, that an outcome shows.
const VALUE_SHOWN: usize = 64 * 1024;

/// An answer with what may not be shown, or differs from run to run, blanked in its bytes.
pub struct Masked {
    /// The frame.
    pub frame: Vec<u8>,
    /// Its body; `None` where it cannot be decoded.
    pub body: Option<Json>,
}

/// The `ConfigType` of passwords (KIP-569).
const PASSWORD: i64 = 9;
/// Fields that differ by machine or moment.
const MACHINE_FIELDS: &[&str] = &["Host", "Port", "ClusterId", "TopicId", "FinalizedFeaturesEpoch", "ThrottleTimeMs"];

/// The passwords that this suite's own broker is started with.
const SERVER_PROPERTIES: &str = include_str!("../../../adapters/apache-kafka/server.properties");

/// The values that no answer may hold: the passwords of our own broker, and those that a case sets.
pub fn known_secrets(steps: &[Step]) -> Vec<String> {
    let lines = SERVER_PROPERTIES.lines().filter_map(|line| line.split_once('='));
    let mut secrets: Vec<String> =
        lines.filter(|(name, _)| is_password(name)).map(|(_, value)| value.to_owned()).collect();
    for step in steps {
        let Send::Value(body) = &step.send else { continue };
        for resource in body["Resources"].as_array().into_iter().flatten() {
            for config in resource["Configs"].as_array().into_iter().flatten() {
                if let (Some(name), Some(value)) = (config["Name"].as_str(), config["Value"].as_str())
                    && is_password(name)
                    && !value.is_empty()
                {
                    secrets.push(value.to_owned());
                }
            }
        }
    }
    secrets
}

/// Whether a config holds a password by its name, as all do that Kafka defines with that type and a value of one line.
fn is_password(config: &str) -> bool {
    config.ends_with(".password")
}

/// Whether bytes hold one of these secrets in clear, wherever it stands.
pub fn shows_secret(bytes: &[u8], secrets: &[String]) -> bool {
    secrets.iter().any(|secret| bytes.windows(secret.len()).any(|window| window == secret.as_bytes()))
}

/// Blanks, in the bytes of an answer: values of sensitive configs, and whatever names a machine, a port or a moment.
pub fn mask(protocol: &Protocol, port: u16, secrets: &[String], request: &Request, bytes: &[u8]) -> Masked {
    let Ok(layout) = response_layout(protocol, request, bytes) else {
        return Masked { frame: Vec::new(), body: None };
    };
    let Ok(frame) = decode_frame(&layout, bytes) else {
        // Undecodable bytes may hold anything: only their beginning is shown, up to the first result.
        return Masked { frame: bytes.iter().copied().take(16).collect(), body: None };
    };
    let port = port.to_string();
    let secret = secret_entries(&frame);
    let mut masked = bytes.to_vec();
    frame.body().walk(&mut |path, _, node| {
        let Some(field) = node.layout_field() else { return };
        let by_name = MACHINE_FIELDS.contains(&&*field.name);
        // A value belongs to the entry, or to the synonym of an entry, whose path its own begins with.
        let is_secret =
            || path.ends_with(".Value") && path.match_indices('.').any(|(dot, _)| secret.contains(&path[..dot]));
        // Paths of a machine, addresses, or the port of this run.
        let of_machine = |text: &str| text.contains('/') || text.contains(&port);
        let known = |text: &str| shows_secret(text.as_bytes(), secrets);
        let hidden = by_name || node.text().is_some_and(|text| of_machine(text) || known(text) || is_secret());
        if hidden && !node.is_null() && node.children().next().is_none() {
            let (start, end) = (node.node().start as usize + node.prefix_size(), node.node().end as usize);
            let blank = if node.text().is_some() { b'*' } else { 0 };
            masked[start..end].fill(blank);
        }
    });
    let body = decode_frame(&layout, &masked).ok().map(|frame| frame.body().value().to_json());
    Masked { frame: masked, body }
}

/// Paths of the config entries that are flagged as sensitive, or are passwords by their type.
fn secret_entries(frame: &Frame) -> HashSet<String> {
    let mut entries = HashSet::new();
    frame.body().walk(&mut |path, _, node| {
        let flagged = path.strip_suffix(".IsSensitive").filter(|_| node.integer() != Some(0));
        let typed = path.strip_suffix(".ConfigType").filter(|_| node.integer() == Some(PASSWORD));
        entries.extend(flagged.or(typed).map(str::to_owned));
    });
    entries
}

/// Bytes as hex for an outcome, cut where there are very many.
pub fn evidence(bytes: &[u8]) -> String {
    match bytes.get(..FRAME_SHOWN) {
        Some(beginning) if bytes.len() > FRAME_SHOWN => cut_short(&hex(beginning), bytes.len()),
        _ => hex(bytes),
    }
}

/// A value for an outcome, as the beginning of its text where it is very large: a broker may answer megabytes to every
/// case, and all outcomes are held until the run ends.
pub fn value_evidence(value: Json) -> Json {
    let text = value.to_string();
    if text.len() <= VALUE_SHOWN {
        return value;
    }
    kept(text, VALUE_SHOWN).into()
}
