//! The unsigned varint of KIP-482, beside prost's. A million values, so that no branch predictor learns them by heart.
//! kafka-protocol keeps its own private: it is measured with what is built of it, in the other benches.

use codec::wire::{Reader, write_uvarint};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use prost::encoding::{decode_varint, encode_varint};
use std::hint::black_box;

const VALUES: usize = 1_000_000;

/// Xorshift: the same numbers in every run.
fn random_numbers() -> impl Iterator<Item = u32> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    })
}

/// A value that takes `size` bytes, 1 to 5.
fn of_size(size: u32, random: u32) -> u32 {
    let least = if size == 1 { 0 } else { 1 << (7 * (size - 1)) };
    let greatest = if size == 5 { u32::MAX } else { (1 << (7 * size)) - 1 };
    least + random % (greatest - least)
}

/// Name and values of each shape.
fn shapes() -> [(&'static str, Vec<u32>); 3] {
    let values = |size: fn(u32) -> u32| {
        let (mut sizes, mut numbers) = (random_numbers(), random_numbers().skip(VALUES));
        let value = |_| Some(of_size(size(sizes.next()?), numbers.next()?));
        (0..VALUES).filter_map(value).collect()
    };
    [
        ("1-byte", values(|_| 1)),
        ("95-5-mix", values(|random| if random % 100 < 95 { 1 } else { 2 })),
        ("uniform-1-5-byte", values(|random| random % 5 + 1)),
    ]
}

/// The bytes, written by neither of the encoders measured.
fn bytes(values: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    for &value in values {
        let groups = (1..5).take_while(|group| value >> (7 * group) > 0).count();
        out.extend((0..groups).map(|group| (value >> (7 * group)) as u8 | 0x80));
        out.push((value >> (7 * groups)) as u8);
    }
    out
}

fn decode_ours(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(move || (reader.left() > 0).then(|| reader.uvarint().expect("a varint").value))
}

fn decode_prost(mut bytes: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || (!bytes.is_empty()).then(|| decode_varint(&mut bytes).expect("a varint") as u32))
}

fn sum(values: impl Iterator<Item = u32>) -> u64 {
    values.map(u64::from).sum()
}

fn encode_ours(values: &[u32], out: &mut Vec<u8>) {
    out.clear();
    values.iter().for_each(|&value| write_uvarint(out, value));
}

fn encode_prost(values: &[u32], out: &mut Vec<u8>) {
    out.clear();
    values.iter().for_each(|&value| encode_varint(value.into(), out));
}

fn uvarint(criterion: &mut Criterion) {
    for (shape, values) in shapes() {
        let bytes = bytes(&values);
        check(&values, &bytes);
        let mut group = criterion.benchmark_group(format!("uvarint/decode/{shape}"));
        group.throughput(Throughput::Elements(VALUES as u64));
        group.bench_function("ours", |bencher| bencher.iter(|| sum(decode_ours(black_box(&bytes)))));
        group.bench_function("prost", |bencher| bencher.iter(|| sum(decode_prost(black_box(&bytes)))));
        group.finish();
        let mut out = Vec::with_capacity(bytes.len());
        let mut group = criterion.benchmark_group(format!("uvarint/encode/{shape}"));
        group.throughput(Throughput::Elements(VALUES as u64));
        group.bench_function("ours", |bencher| bencher.iter(|| encode_ours(black_box(&values), black_box(&mut out))));
        group.bench_function("prost", |bencher| bencher.iter(|| encode_prost(black_box(&values), black_box(&mut out))));
        group.finish();
    }
}

/// Both read the values, both write the bytes.
fn check(values: &[u32], bytes: &[u8]) {
    assert!(decode_ours(bytes).eq(values.iter().copied()));
    assert!(decode_prost(bytes).eq(values.iter().copied()));
    for encode in [encode_ours, encode_prost] {
        let mut out = Vec::new();
        encode(values, &mut out);
        assert_eq!(out, bytes);
    }
}

criterion_group!(benches, uvarint);
criterion_main!(benches);
