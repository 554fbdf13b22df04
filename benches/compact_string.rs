//! Compact strings of 8 to 40 bytes, beside kafka-protocol's. Its string type is private, so both codecs read and write
//! the message that is nothing but compact strings: DeleteTopicsRequest v4. `ours-primitive` is our string reading alone.

use bytes::Bytes;
use codec::wire::{Reader, is_utf8};
use codec::{ApiVersion, Layout, MessageSpec, Tree, Value, View, decode_into, encode_into};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kafka_protocol::messages::DeleteTopicsRequest;
use kafka_protocol::protocol::{Decodable, Encodable};
use std::hint::black_box;
use std::sync::Arc;

const NAMES: usize = 1_000;

/// A thousand names of 8 to 40 bytes in no order of size.
fn names(characters: &str) -> Vec<String> {
    let characters: Vec<char> = characters.chars().collect();
    let name = |index: usize| {
        let length = 8 + index * 7_919 % 33;
        let mut name = String::new();
        for character in characters.iter().cycle().skip(index % characters.len()) {
            // What does not fit any more is filled up with one-byte letters.
            name.push(if name.len() + character.len_utf8() > length { 'x' } else { *character });
            if name.len() == length {
                break;
            }
        }
        name
    };
    (0..NAMES).map(name).collect()
}

/// The message as bytes, written by neither codec: count + 1 as uvarint, each name with its length + 1 in one byte, the
/// timeout of 30,000 ms, no tagged fields.
fn bytes(names: &[String]) -> Vec<u8> {
    let count = names.len() + 1;
    let mut out = vec![(count & 0x7f) as u8 | 0x80, (count >> 7) as u8];
    for name in names {
        out.push(name.len() as u8 + 1);
        out.extend_from_slice(name.as_bytes());
    }
    out.extend([0, 0, 0x75, 0x30, 0]);
    out
}

fn layout() -> Layout {
    let spec = MessageSpec::parse(include_str!("../schemas/DeleteTopicsRequest.json")).expect("a definition");
    Layout::new(&Arc::new(spec), ApiVersion(4)).expect("version 4")
}

/// The names, read as the codec reads them, without a tree.
fn read_names(bytes: &[u8], mut each: impl FnMut(&[u8])) {
    let mut reader = Reader::new(bytes);
    let count = reader.uvarint().expect("a count").value - 1;
    for _ in 0..count {
        let length = reader.uvarint().expect("a length").value - 1;
        let name = reader.take(length as usize).expect("a name");
        assert!(is_utf8(name));
        each(name);
    }
}

fn decode_theirs(mut bytes: Bytes) -> DeleteTopicsRequest {
    DeleteTopicsRequest::decode(&mut bytes, 4).expect("a message")
}

fn compact_string(criterion: &mut Criterion) {
    let layout = layout();
    for (shape, characters) in [("8-40-ascii", "retention.ms-0123_TOPIC"), ("8-40-multi-byte", "größe-ñandú-数据-x")]
    {
        let names = names(characters);
        let bytes = bytes(&names);
        let (value, theirs) = check(&layout, &names, &bytes);

        let mut tree = Tree::new();
        let shared = Bytes::from(bytes.clone());
        let mut group = criterion.benchmark_group(format!("compact-string/decode/{shape}"));
        group.throughput(Throughput::Elements(NAMES as u64));
        group.bench_function("ours", |bencher| {
            bencher.iter(|| decode_into(black_box(&layout), black_box(&bytes), 0, black_box(&mut tree)))
        });
        group.bench_function("ours-primitive", |bencher| {
            bencher.iter(|| read_names(black_box(&bytes), |name| _ = black_box(name)))
        });
        group.bench_function("kafka-protocol", |bencher| bencher.iter(|| decode_theirs(black_box(&shared).clone())));
        group.finish();

        let mut out = Vec::with_capacity(bytes.len());
        let mut group = criterion.benchmark_group(format!("compact-string/encode/{shape}"));
        group.throughput(Throughput::Elements(NAMES as u64));
        group.bench_function("ours", |bencher| {
            bencher.iter(|| {
                out.clear();
                encode_into(black_box(&layout), black_box(&value), black_box(&mut out))
            })
        });
        group.bench_function("kafka-protocol", |bencher| {
            bencher.iter(|| {
                out.clear();
                black_box(&theirs).encode(black_box(&mut out), 4)
            })
        });
        group.finish();
    }
}

/// All read the same names, all write the same bytes; the value of each codec, to encode.
fn check(layout: &Layout, names: &[String], bytes: &[u8]) -> (Value, DeleteTopicsRequest) {
    let mut tree = Tree::new();
    decode_into(layout, bytes, 0, &mut tree).expect("a message");
    assert_eq!(tree.anomaly_count(), 0);
    let view = View::new(layout, bytes, &tree);
    let ours: Vec<_> = view.get("TopicNames").expect("a field").elements().filter_map(|name| name.text()).collect();
    assert_eq!(ours, names);
    let mut primitive = Vec::new();
    read_names(bytes, |name| primitive.push(String::from_utf8_lossy(name).into_owned()));
    assert_eq!(primitive, names);
    let theirs = decode_theirs(Bytes::copy_from_slice(bytes));
    assert_eq!(theirs.topic_names.iter().map(|name| name.to_string()).collect::<Vec<_>>(), names);

    let value = view.value();
    let mut out = Vec::new();
    encode_into(layout, &value, &mut out).expect("a value that was read");
    assert_eq!(out, bytes);
    out.clear();
    theirs.encode(&mut out, 4).expect("a value that was read");
    assert_eq!(out, bytes);
    (value, theirs)
}

criterion_group!(benches, compact_string);
criterion_main!(benches);
