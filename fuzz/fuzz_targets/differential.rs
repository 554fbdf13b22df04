#![no_main]
//! Any bytes as any message, read by us and by the crate kafka-protocol: what we call canonical it takes, as the same
//! value, and writes back to the same bytes. The input is that of `decode`.
//!
//! Bytes that our codec refuses, or takes with an anomaly, are not given to it: it aborts where a count is greater than
//! what is there, which is listed with its proof in `adapters/kafka-protocol/adapter.toml`.

#[path = "../../adapters/kafka-protocol/src/messages.rs"]
#[expect(dead_code)]
mod messages;
#[path = "../../adapters/kafka-protocol/src/value.rs"]
#[expect(dead_code)]
mod value;

use bytes::{Bytes, BytesMut};
use codec::properties::named_message;
use codec::{AbsentFields, Value};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((layout, bytes)) = named_message(kafka_conform_fuzz::protocol(), data) else { return };
    let version = layout.version().0;
    let kind = messages::all().find(|kind| *kind.name == *layout.spec().name);
    let Some(kind) = kind.filter(|kind| (kind.versions.min..=kind.versions.max).contains(&version)) else { return };
    let Ok(decoded) = codec::decode(&layout, bytes) else { return };
    if decoded.tree.anomaly_count() > 0 {
        return;
    }
    let theirs = match (kind.read)(&mut Bytes::copy_from_slice(bytes), version) {
        Ok(theirs) => theirs,
        Err(error) => panic!("{layout}: kafka-protocol refuses what is canonical: {error:#}"),
    };
    let ours = decoded.view().value().to_json();
    let json = theirs.json();
    let read = Value::from_json(&layout, &json, AbsentFields::Drop)
        .unwrap_or_else(|error| panic!("{layout}: kafka-protocol's value is none of this version: {error}: {json}"));
    assert_eq!(read.to_json(), ours, "{layout}: kafka-protocol reads another value");
    let mut again = BytesMut::new();
    match theirs.write(&mut again, version) {
        Ok(()) => assert_eq!(codec::hex(&again), codec::hex(bytes), "{layout}: kafka-protocol writes other bytes"),
        Err(error) => panic!("{layout}: kafka-protocol does not write what it read: {error:#}"),
    }
});
