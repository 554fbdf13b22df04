//! Compact strings of 8 to 40 bytes beside the peers'. The string types of some are private, so all read and write the
//! message that is nothing but compact strings: DeleteTopicsRequest v4. `ours-primitive` is our string reading alone.

use codec::wire::{Reader, is_utf8};
use codec::{Layout, Tree, Value, View, decode_into, deserialize, encode_into};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kafka_conform_benches::names::{ASCII, DEFINITION, NAMES, bytes, names};
use kafka_conform_benches::peers::{Input, Peer};
use kafka_conform_benches::{for_each_peer, layout};
use messages::{DeleteTopicsRequest, Message};
use std::hint::black_box;
use std::time::Duration;

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

fn compact_string(criterion: &mut Criterion) {
    let layout = layout(DEFINITION, 4);
    for (shape, characters) in
        [("8-40-ascii", ASCII), ("8-40-multi-byte", "größe-ñandú-数据-x"), ("8-40-cyrillic", "заказыиплатежи")]
    {
        let names = names(characters);
        let bytes = bytes(&names);
        let input = Input::new(&bytes);
        let value = check(&layout, &names, &bytes, &input);

        let mut tree = Tree::new();
        decode_into(&layout, &bytes, 0, &mut tree).expect("a message");
        let mut group = criterion.benchmark_group(format!("compact-string/decode/{shape}"));
        group.throughput(Throughput::Elements(NAMES as u64));
        group.bench_function("ours", |bencher| {
            bencher.iter(|| decode_into(black_box(&layout), black_box(&bytes), 0, black_box(&mut tree)))
        });
        group.bench_function("ours-primitive", |bencher| {
            bencher.iter(|| read_names(black_box(&bytes), |name| _ = black_box(name)))
        });
        for_each_peer!(P {
            group.bench_function(P::NAME, |bencher| bencher.iter(|| P::decode_names(black_box(&input))));
        });
        group.finish();

        let view = View::new(&layout, &bytes, &tree);
        let mut out = Vec::with_capacity(bytes.len());
        let mut group = criterion.benchmark_group(format!("compact-string/encode/{shape}"));
        group.throughput(Throughput::Elements(NAMES as u64));
        group.bench_function("ours-from-tree", |bencher| {
            bencher.iter(|| {
                out.clear();
                encode_into(black_box(&layout), black_box(view).root(), black_box(&mut out))
            })
        });
        group.bench_function("ours-from-value", |bencher| {
            bencher.iter(|| {
                out.clear();
                encode_into(black_box(&layout), black_box(&value), black_box(&mut out))
            })
        });
        let message: DeleteTopicsRequest = deserialize(view).expect("a message");
        group.bench_function("ours-from-message", |bencher| {
            bencher.iter(|| {
                out.clear();
                black_box(&message).encode_into(layout.version(), black_box(&mut out))
            })
        });
        for_each_peer!(P {
            let message = P::decode_names(&input);
            group.bench_function(P::NAME, |bencher| {
                bencher.iter(|| {
                    out.clear();
                    P::encode_names(black_box(&message), black_box(&mut out));
                })
            });
        });
        group.finish();
    }
}

/// All read the names and write the bytes; our value, to encode.
fn check(layout: &Layout, names: &[String], bytes: &[u8], input: &Input) -> Value {
    let mut tree = Tree::new();
    decode_into(layout, bytes, 0, &mut tree).expect("a message");
    assert_eq!(tree.anomaly_count(), 0);
    let view = View::new(layout, bytes, &tree);
    let ours: Vec<_> = view.get("TopicNames").expect("a field").elements().filter_map(|name| name.text()).collect();
    assert_eq!(ours, names);
    let mut primitive = Vec::new();
    read_names(bytes, |name| primitive.push(String::from_utf8_lossy(name).into_owned()));
    assert_eq!(primitive, names);

    let value = view.value();
    let mut out = Vec::new();
    encode_into(layout, &value, &mut out).expect("a value that was read");
    assert_eq!(out, bytes);
    out.clear();
    encode_into(layout, view.root(), &mut out).expect("a tree that was read");
    assert_eq!(out, bytes);

    out.clear();
    let message: DeleteTopicsRequest = deserialize(view).expect("a message");
    message.encode_into(layout.version(), &mut out).expect("a message");
    assert_eq!(out, bytes);

    for_each_peer!(P {
        let message = P::decode_names(input);
        assert_eq!(P::names(&message), names, "{}", P::NAME);
        out.clear();
        P::encode_names(&message, &mut out);
        assert_eq!(out, bytes, "{}", P::NAME);
    });
    value
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(50);
    targets = compact_string
}
criterion_main!(benches);
