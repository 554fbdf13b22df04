//! Shows a fault of the crate `kafka-protocol` by itself: a count of 2^31-1 topics in four bytes of a MetadataRequest is
//! believed before the bytes that follow it are looked at, and the process aborts. Publicly reported:
//! kafka-protocol-rs/kafka-protocol-rs#152.
//!
//! `cargo run --release --locked --example proof` from this folder, in a shell with `ulimit -v 4194304`, so that it does
//! not depend on how much memory the machine promises.

use kafka_protocol::messages::MetadataRequest;
use kafka_protocol::protocol::Decodable;

fn main() {
    let mut bytes: &[u8] = &i32::MAX.to_be_bytes();
    println!("{:?}", MetadataRequest::decode(&mut bytes, 1).map(|_| "taken").map_err(|error| error.to_string()));
}
