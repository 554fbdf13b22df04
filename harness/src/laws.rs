//! What must hold of the parts that read foreign bytes, called by tests and fuzz targets alike. Each panics with what
//! broke when it does not hold. Those of the codec are in [`codec::properties`].

use std::sync::{Arc, LazyLock};

use codec::properties::{decode_is_total, named_message, value_round_trips};
use codec::{AbsentFields, ApiVersion, Layout, MessageKind, MessageSpec, Protocol, Value};
use serde_json::Value as Json;

use crate::bundled;
use crate::cases::Cases;
use crate::client_case::{self, ClientCase};
use crate::scripted_broker::{Script, converse};
use crate::vector::{Files, Vectors};
use crate::{definitions, exchange};

/// The fuzz target `json`: which loader, then a text. Definitions, rules, sources, cases and values are refused or loaded,
/// and what is loaded can be used.
pub fn loaders_are_total(input: &[u8]) {
    let Some((loader, text)) = input.split_first() else { return };
    let protocol = definitions::bundled();
    if loader % 7 == 6 {
        return value_is_total(protocol, text);
    }
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (rules, sources) = (bundled::text("rules.json"), bundled::text("sources.json"));
    match loader % 7 {
        0 => definition_is_total(text),
        1 => drop(Vectors::load(protocol, rules, sources, &Files::read(&[("describe-configs-response.json", text)]))),
        2 => drop(Vectors::load(protocol, text, sources, &Files::read(&[]))),
        3 => drop(Vectors::load(protocol, rules, text, &Files::read(&[]))),
        4 => drop(exchange::load(&[("describe-configs.json", text)], protocol)),
        _ => drop(client_case::load(&[("describe-configs.json", text)], protocol)),
    }
}

/// A definition that parses has a default value at its versions, and reads bytes.
fn definition_is_total(text: &str) {
    let Ok(spec) = MessageSpec::parse(text).map(Arc::new) else { return };
    let versions = spec.valid_versions;
    let ends = [versions.lowest(), versions.highest()];
    for version in versions.iter().take(4).chain(ends.into_iter().flatten()) {
        let Ok(layout) = Layout::new(&spec, version) else { continue };
        value_round_trips(&layout, &layout.default_value());
        for byte in [0, 1, 0xff] {
            decode_is_total(&layout, &[byte; 24]);
        }
    }
}

/// A value in JSON of a message named as for the codec's targets is refused or read; what encodes comes back.
fn value_is_total(protocol: &Protocol, input: &[u8]) {
    let Some((layout, text)) = named_message(protocol, input) else { return };
    let Ok(json) = serde_json::from_slice::<Json>(text) else { return };
    let dropped = Value::from_json(&layout, &json, AbsentFields::Drop);
    if let Ok(value) = &dropped {
        value_round_trips(&layout, value);
    }
    // A field of another version that may be ignored is stated, and not written.
    let Ok(kept) = Value::from_json(&layout, &json, AbsentFields::Keep) else { return };
    if let Ok(bytes) = codec::encode(&layout, &kept) {
        let dropped = dropped.unwrap_or_else(|error| panic!("{layout}: what is kept cannot be dropped: {error}"));
        assert_eq!(
            codec::encode(&layout, &dropped).as_ref(),
            Ok(&bytes),
            "{layout}: a field that is ignored is written"
        );
    }
}

static CLIENT_CASES: LazyLock<Vec<(ClientCase, ApiVersion)>> = LazyLock::new(|| {
    let cases = Cases::bundled(definitions::bundled()).unwrap_or_else(|lints| panic!("{}", lints.join("\n")));
    let versions =
        |case: ClientCase| -> Vec<_> { case.versions.iter().map(|version| (case.clone(), version)).collect() };
    cases.clients.into_iter().flat_map(versions).collect()
});

/// The script that a number stands for, without its pauses: 0 that of an honest broker that has everything, others those of
/// the client cases.
fn script(protocol: &Protocol, number: usize) -> Script {
    let mut script = match CLIENT_CASES.get(number.wrapping_sub(1) % CLIENT_CASES.len().max(1)) {
        Some((case, version)) if number > 0 => case.script(protocol, *version),
        _ => {
            let requests = protocol.messages().filter(|spec| spec.kind == MessageKind::Request);
            let caps = requests.filter_map(|spec| Some((spec.api_key?.0, spec.valid_versions))).collect();
            Script { caps, topics: vec!["t".to_owned()], replies: Vec::new() }
        }
    };
    for reply in &mut script.replies {
        (reply.delay_ms, reply.split) = (0, None);
    }
    script
}

/// The fuzz target `scripted_broker`: the number of a script as uint16, the size of the pieces, what a client sends. The
/// broker records what came, byte for byte and however it came; and as an honest one it answers each request in order, with
/// its correlation id, in the version asked and without an anomaly.
pub fn scripted_broker_keeps_to_its_script(input: &[u8]) {
    let [high, low, piece, sent @ ..] = input else { return };
    let number = usize::from(u16::from_be_bytes([*high, *low]));
    let protocol = definitions::bundled();
    let (exchanges, answers) = converse(protocol, script(protocol, number), sent, usize::MAX);
    let again = converse(protocol, script(protocol, number), sent, (*piece).into());
    assert!(again == (exchanges.clone(), answers.clone()), "what comes in pieces is taken otherwise");
    let mut rest = sent;
    for exchange in &exchanges {
        rest = rest.strip_prefix(exchange.request.as_slice()).expect("the record is what was sent, in order");
    }
    if number > 0 {
        return;
    }
    let mut answers = answers.as_slice();
    for exchange in exchanges.iter().filter(|exchange| exchange.delivered) {
        let answer = exchange.answer.as_deref().unwrap_or_default();
        answers = answers.strip_prefix(answer).expect("what is recorded as delivered is sent, in order");
        assert_eq!(exchange.request.get(8..12), answer.get(4..8), "the correlation id of the answer");
        let (key, version) = exchange.api.expect("what is answered has a header");
        let spec = protocol.api_by_key(key, MessageKind::Response).expect("what is answered has a definition");
        let body = answer.get(8..).unwrap_or_default();
        let layout = protocol.frame_layout(spec, codec::response_version(spec, version, body));
        let layout = layout.unwrap_or_else(|error| panic!("{error}"));
        let frame = codec::decode_frame(&layout, answer).unwrap_or_else(|error| panic!("{}: {error}", layout.body));
        let anomalies = frame.header.anomaly_count() + frame.body.anomaly_count();
        assert_eq!(anomalies, 0, "{}: anomalies in an answer", layout.body);
    }
    assert!(answers.is_empty(), "more is sent than is recorded");
}
