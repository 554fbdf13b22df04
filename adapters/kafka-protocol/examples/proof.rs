//! Shows two faults of the crate `kafka-protocol` by itself.
//!
//! `plain` and `compact`: a count of two thousand million topics in a MetadataRequest of a few bytes is believed before the
//! bytes that follow it are looked at, and the process aborts. Publicly reported: kafka-protocol-rs/kafka-protocol-rs#152.
//! `null`: a null name of a topic, which DeleteTopicsResponse has from version 6 on, is written in version 3.
//!
//! `cargo run --release --locked --example proof null` from this folder; the other two in a shell with
//! `ulimit -v 4194304`, so that they do not depend on how much memory the machine promises.

use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsResponse, MetadataRequest};
use kafka_protocol::protocol::{Decodable, Encodable};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("null") => null_name(),
        // The plain count of version 1, and the compact one of version 9, which is read elsewhere.
        Some("compact") => count(&[0xff, 0xff, 0xff, 0xff, 0x07], 9),
        _ => count(&[0x7f, 0xff, 0xff, 0xff], 1),
    }
}

fn count(mut bytes: &[u8], version: i16) {
    let decoded = MetadataRequest::decode(&mut bytes, version);
    println!("{:?}", decoded.map(|_| "taken").map_err(|error| error.to_string()));
}

fn null_name() {
    let topic = DeletableTopicResult::default().with_name(None);
    let response = DeleteTopicsResponse::default().with_responses(vec![topic]);
    let mut out = Vec::new();
    match response.encode(&mut out, 3) {
        // Behind the throttle time and the count.
        Ok(()) => println!("version 3 has no null name, and wrote {:02x} {:02x}", out[8], out[9]),
        Err(error) => println!("refused: {error}"),
    }
}
