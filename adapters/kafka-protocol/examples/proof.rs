//! Shows three faults of the crate `kafka-protocol` by itself.
//!
//! `plain` and `compact`: a count of two thousand million topics in a MetadataRequest of a few bytes is believed before the
//! bytes that follow it are looked at, and the process aborts. Publicly reported: kafka-protocol-rs/kafka-protocol-rs#152.
//! `null`: a null name of a topic, which DeleteTopicsResponse has from version 6 on, is written in version 3.
//! `marker`: a nullable struct, here the cursor of DescribeTopicPartitionsRequest, is marked by ff for null and 01 for present
//! (KIP-893). Any other byte is read as null and the struct behind it as the fields that follow; kafka-clients and kmsg read
//! the struct.
//!
//! `cargo run --release --locked --example proof null` from this folder; `plain` and `compact` in a shell with
//! `ulimit -v 4194304`, so that they do not depend on how much memory the machine promises.

use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsResponse, DescribeTopicPartitionsRequest, MetadataRequest};
use kafka_protocol::protocol::{Decodable, Encodable};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("null") => null_name(),
        Some("marker") => marker(),
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

fn marker() {
    // No topics, a limit of 0, and a cursor: its marker, an empty name, partition 0, no tagged fields. Then those of the request.
    let mut bytes: &[u8] = &[1, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0];
    match DescribeTopicPartitionsRequest::decode(&mut bytes, 0) {
        Ok(request) => {
            let cursor = if request.cursor.is_some() { "present" } else { "null" };
            println!("a cursor marked 2 is read as {cursor}, and {} bytes are left", bytes.len());
        }
        Err(error) => println!("refused: {error}"),
    }
}
