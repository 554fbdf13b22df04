//! Our own codec as a peer: the same requests and answers as any adapter, so that it is judged by the same function.

use crate::vector::{Part, PartLayout};
use codec::{AbsentFields, ApiVersion, Protocol};
use serde_json::{Map, Value as Json, json};

/// Its name among the peers.
pub const NAME: &str = "reference";

/// The handshake.
pub fn handshake(protocol: &Protocol) -> Json {
    let supports: Map<String, Json> = protocol
        .messages()
        .map(|spec| {
            let versions = spec.valid_versions.to_string();
            (spec.name.to_string(), json!({ "decode": versions, "encode": versions }))
        })
        .collect();
    json!({
        "protocol": 1, "peer": NAME, "version": env!("CARGO_PKG_VERSION"), "language": "rust",
        "supports": supports, "operations": {},
    })
}

/// Answers one request of the adapter protocol; the id is copied.
pub fn answer(protocol: &Protocol, request: &Json) -> Json {
    let mut answer = match answer_body(protocol, request) {
        Ok(answer) => answer,
        Err(Refusal::Unsupported(why)) => json!({ "unsupported": why }),
        Err(Refusal::Error(why)) => json!({ "error": why }),
    };
    answer["id"] = request["id"].clone();
    answer
}

enum Refusal {
    Unsupported(String),
    Error(String),
}

fn answer_body(protocol: &Protocol, request: &Json) -> Result<Json, Refusal> {
    let error = |why: &dyn std::fmt::Display| Refusal::Error(why.to_string());
    let op = request["op"].as_str().unwrap_or_default();
    if !matches!(op, "decode" | "encode" | "recode") {
        return Err(Refusal::Unsupported(format!("no operation {op:?}")));
    }
    let message = request["message"].as_str().unwrap_or_default();
    let spec = protocol.message(message).ok_or_else(|| Refusal::Unsupported(format!("no message {message:?}")))?;
    let version = request["version"].as_i64().and_then(|version| i16::try_from(version).ok());
    let version = version.map(ApiVersion).filter(|&version| spec.valid_versions.contains(version));
    let version =
        version.ok_or_else(|| Refusal::Unsupported(format!("{message} has no version {}", request["version"])))?;
    let part: Part = serde_json::from_value(request["part"].clone()).map_err(|what| error(&what))?;
    let layout = PartLayout::new(protocol, spec, version, part).map_err(|what| error(&what))?;
    if op == "encode" {
        let value = layout.from_json(&request["value"], AbsentFields::Keep).map_err(|what| error(&what))?;
        let bytes = layout.encode(&value).map_err(|what| error(&what))?;
        return Ok(json!({ "bytes": codec::hex(&bytes) }));
    }
    let bytes = codec::parse_hex(request["bytes"].as_str().unwrap_or_default()).map_err(|what| error(&what))?;
    let decoded = layout.decode(&bytes).map_err(|what| error(&what))?;
    if op == "recode" {
        let bytes = layout.encode(&decoded.value).map_err(|what| error(&what))?;
        return Ok(json!({ "bytes": codec::hex(&bytes) }));
    }
    Ok(json!({ "value": layout.to_json(&decoded.value), "left": decoded.left }))
}
