//! The unsigned varint of KIP-482, beside those of prost, krabka and three crates of nothing else. A million values, so that
//! no branch predictor learns them by heart. kafka-protocol and odradek keep their own private or generic over buffers: they
//! are measured with what is built of it, in the other benches.

use codec::wire::{Reader, Writer};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use integer_encoding::VarInt;
use kafka_conform_benches::uvarints::{bytes, mostly_short, values};
use std::hint::black_box;
use std::time::Duration;

const VALUES: usize = 1_000_000;

/// Name and values of each shape.
fn shapes() -> [(&'static str, Vec<u32>); 5] {
    let values = |size| values(VALUES, size);
    [
        ("1-byte", values(|_| 1)),
        ("95-5-mix", values(mostly_short)),
        ("50-50-mix", values(|random| random % 2 + 1)),
        ("uniform-1-5-byte", values(|random| random % 5 + 1)),
        ("5-byte", values(|_| 5)),
    ]
}

type Decode = fn(&[u8]) -> u64;
type Encode = fn(&[u32], &mut Vec<u8>);

/// Declares a decoder: `$bytes` is what is left, and the block gives one value and moves it on.
macro_rules! decoder {
    (|$bytes:ident| $next:expr) => {{
        #[inline(never)]
        fn decode(mut $bytes: &[u8]) -> u64 {
            let mut sum = 0_u64;
            while !$bytes.is_empty() {
                let value: u32 = $next;
                sum = sum.wrapping_mul(CHECK).wrapping_add(value.into());
            }
            sum
        }
        decode as Decode
    }};
}

/// Makes the sum depend on the order of values; one multiplication, the same for all.
const CHECK: u64 = 3;

fn decode_ours(bytes: &[u8]) -> u64 {
    let mut reader = Reader::new(bytes);
    let mut sum = 0_u64;
    while reader.left() > 0 {
        let value = reader.uvarint().expect("a varint").value;
        sum = sum.wrapping_mul(CHECK).wrapping_add(value.into());
    }
    sum
}

fn decoders() -> [(&'static str, Decode); 6] {
    [
        ("ours", decode_ours),
        ("prost", decoder!(|bytes| prost::encoding::decode_varint(&mut bytes).expect("a varint") as u32)),
        ("krabka", decoder!(|bytes| krabka_protocol::primitives::varint::get_uvarint(&mut bytes).expect("a varint"))),
        (
            "unsigned-varint",
            decoder!(|bytes| {
                let (value, rest) = unsigned_varint::decode::u32(bytes).expect("a varint");
                bytes = rest;
                value
            }),
        ),
        ("leb128", decoder!(|bytes| leb128::read::unsigned(&mut bytes).expect("a varint") as u32)),
        (
            "integer-encoding",
            decoder!(|bytes| {
                let (value, size) = u32::decode_var(bytes).expect("a varint");
                bytes = &bytes[size..];
                value
            }),
        ),
    ]
}

fn encoders() -> [(&'static str, Encode); 6] {
    fn encode_integer(values: &[u32], out: &mut Vec<u8>) {
        let mut bytes = [0; 10];
        values.iter().for_each(|&value| {
            let size = value.encode_var(&mut bytes);
            out.extend_from_slice(&bytes[..size]);
        });
    }
    [
        ("ours", |values, out| {
            let start = out.len();
            let mut writer = Writer::new(std::mem::take(out));
            let end = values.iter().fold(start, |at, &value| writer.uvarint(at, value));
            *out = writer.into_bytes(end);
        }),
        ("prost", |values, out| values.iter().for_each(|&value| prost::encoding::encode_varint(value.into(), out))),
        ("krabka", |values, out| {
            values.iter().for_each(|&value| krabka_protocol::primitives::varint::put_uvarint(out, value))
        }),
        ("unsigned-varint", |values, out| {
            let mut bytes = unsigned_varint::encode::u32_buffer();
            values.iter().for_each(|&value| out.extend_from_slice(unsigned_varint::encode::u32(value, &mut bytes)));
        }),
        ("leb128", |values, out| {
            values.iter().for_each(|&value| _ = leb128::write::unsigned(out, value.into()).expect("written"))
        }),
        ("integer-encoding", encode_integer),
    ]
}

fn uvarint(criterion: &mut Criterion) {
    for (shape, values) in shapes() {
        let bytes = bytes(&values);
        check(&values, &bytes);
        let mut group = criterion.benchmark_group(format!("uvarint/decode/{shape}"));
        group.throughput(Throughput::Elements(VALUES as u64));
        for (name, decode) in decoders() {
            group.bench_function(name, |bencher| bencher.iter(|| decode(black_box(&bytes))));
        }
        group.finish();
        let mut out = Vec::with_capacity(bytes.len() + 16);
        let mut group = criterion.benchmark_group(format!("uvarint/encode/{shape}"));
        group.throughput(Throughput::Elements(VALUES as u64));
        for (name, encode) in encoders() {
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    out.clear();
                    encode(black_box(&values), black_box(&mut out));
                })
            });
        }
        group.finish();
    }
}

/// All read the values, all write the bytes.
fn check(values: &[u32], bytes: &[u8]) {
    let sum = values.iter().fold(0_u64, |sum, &value| sum.wrapping_mul(CHECK).wrapping_add(value.into()));
    for (name, decode) in decoders() {
        assert_eq!(decode(bytes), sum, "{name}");
    }
    for (name, encode) in encoders() {
        let mut out = Vec::new();
        encode(values, &mut out);
        assert!(out == bytes, "{name}");
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(50);
    targets = uvarint
}
criterion_main!(benches);
