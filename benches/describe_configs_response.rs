//! A whole message beside the peers': DescribeConfigsResponse at every version, 300 configs or 12, in 53 kB or 2 kB at
//! version 4. What each function does is in `README.md`.

use codec::{
    Anomalies, Layout, NodeKind, NodeRef, Tree, Value, View, decode_into, deserialize, encode_into, serialize_into,
};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use kafka_conform_benches::describe_configs::{DEFINITION, Response, SHAPES, Shape, bytes, response};
use kafka_conform_benches::peers::{Input, Peer};
use kafka_conform_benches::{for_each_peer, layout, sum_of_fields, yardstick};
use messages::{DescribeConfigsResponse, Message};
use std::hint::black_box;
use std::time::Duration;

/// One message in all the forms it is measured in.
struct Case {
    name: &'static str,
    version: i16,
    layout: Layout,
    bytes: Vec<u8>,
    input: Input,
    response: Response<'static>,
    value: Value,
}

impl Case {
    fn new(shape: Shape) -> Case {
        let Shape { name, version, .. } = shape;
        let layout = layout(DEFINITION, version);
        let response = response(shape);
        let bytes = bytes(&response, version);
        let mut tree = Tree::new();
        decode_into(&layout, &bytes, 0, &mut tree).expect("a message");
        let value = View::new(&layout, &bytes, &tree).value();
        Case { name, version, layout, input: Input::new(&bytes), bytes, response, value }
    }

    fn group<'c>(&self, criterion: &'c mut Criterion, what: &str) -> BenchmarkGroup<'c, WallTime> {
        let mut group = criterion.benchmark_group(format!("describe-configs/{what}/{}", self.name));
        group.throughput(Throughput::Bytes(self.bytes.len() as u64));
        group
    }

    /// Whether the version has all fields of [`Response`].
    fn has_all_fields(&self) -> bool {
        self.version >= 3
    }

    /// Whether the peers have the version.
    fn is_of_peers(&self) -> bool {
        self.version >= 1
    }
}

/// Looks at every field: the sum of all integers and of the lengths of all texts. Decoding has checked that text is
/// UTF-8; as a `&str`, which `length` may ask for, it is checked once more.
fn sum(node: NodeRef<'_>, length: fn(NodeRef<'_>) -> Option<usize>) -> i64 {
    let mut total = 0;
    for child in node.children() {
        total += match child.node().kind {
            NodeKind::Null => 0,
            NodeKind::Leaf => match child.integer() {
                Some(integer) => integer,
                None => length(child).expect("text") as i64,
            },
            _ => sum(child, length),
        };
    }
    total
}

fn octets(node: NodeRef<'_>) -> Option<usize> {
    node.octets().map(<[u8]>::len)
}

fn text(node: NodeRef<'_>) -> Option<usize> {
    node.text().map(str::len)
}

/// All read what was written, look at the same, and write the same bytes.
fn check(case: &Case) {
    let Case { version, layout, bytes, .. } = case;
    let mut tree = Tree::new();
    let end = decode_into(layout, bytes, 0, &mut tree).expect("a message");
    assert_eq!((end, tree.anomaly_count()), (bytes.len(), 0));
    let mut anomalies = Anomalies::new();
    assert_eq!(codec::validate(layout, bytes, 0, &mut anomalies), Ok(bytes.len()));
    assert_eq!(anomalies.count(), 0);
    let view = View::new(layout, bytes, &tree);
    let want = json(&case.response, *version);
    assert_eq!(case.value.to_json(), want);
    // That it is a default says ConfigSource from version 1 on.
    let defaults = if *version >= 1 { 0 } else { 2 * case.response.results[0].configs.len() as i64 };
    for length in [octets as fn(NodeRef<'_>) -> Option<usize>, text] {
        assert_eq!(sum(view.root(), length) - defaults, sum_of_fields!(&case.response));
    }
    assert_eq!(yardstick::decode(bytes, *version).as_ref(), Some(&case.response));

    let mut out = Vec::new();
    encode_into(layout, &case.value, &mut out).expect("a value that was read");
    assert_eq!(&out, bytes);
    out.clear();
    encode_into(layout, view.root(), &mut out).expect("a tree that was read");
    assert_eq!(&out, bytes);

    out.clear();
    let message: DescribeConfigsResponse = deserialize(view).expect("a message");
    message.encode_into(layout.version(), &mut out).expect("a message");
    assert_eq!(&out, bytes);

    if case.has_all_fields() {
        assert_eq!(deserialize(view).as_ref(), Ok(&case.response));
    }
    if *version > 0 {
        out.clear();
        serialize_into(layout, &case.response, &mut out).expect("a message");
        assert_eq!(&out, bytes);
    }

    if case.is_of_peers() {
        for_each_peer!(P {
            let message = P::decode_configs(&case.input, *version);
            let mut read = P::response(&message);
            // What stands for a text that the version lacks differs.
            let configs = read.results.iter_mut().flat_map(|result| &mut result.configs);
            configs.filter(|_| *version < 3).for_each(|config| config.documentation = None);
            assert!(read == case.response, "{}", P::NAME);
            assert_eq!(P::sum(&message), sum_of_fields!(&case.response), "{}", P::NAME);
            out.clear();
            P::encode_configs(&message, *version, &mut out);
            assert!(&out == bytes, "{}", P::NAME);
        });
    }
}

/// The message by the definition's names, with the fields of its version only.
fn json(response: &Response<'_>, version: i16) -> serde_json::Value {
    let mut json = serde_json::to_value(response).expect("a value");
    for config in json["Results"][0]["Configs"].as_array_mut().expect("an array") {
        let config = config.as_object_mut().expect("an object");
        let lacking: &[&str] = match version {
            3.. => &[],
            1.. => &["ConfigType", "Documentation"],
            _ => &["ConfigType", "Documentation", "ConfigSource", "Synonyms"],
        };
        config.retain(|name, _| !lacking.contains(&name.as_str()));
        if version == 0 {
            config.insert("IsDefault".to_owned(), true.into());
        }
    }
    json
}

/// What all peers do to decode, which is compared with more than one of ours.
fn decode_of_peers(group: &mut BenchmarkGroup<'_, WallTime>, case: &Case) {
    let Case { input, version, .. } = case;
    if case.is_of_peers() {
        for_each_peer!(P {
            group.bench_function(P::NAME, |bencher| bencher.iter(|| P::decode_configs(black_box(input), *version)));
        });
    }
}

fn decode(criterion: &mut Criterion, case: &Case) {
    let Case { layout, bytes, version, .. } = case;
    let mut tree = Tree::new();
    let mut group = case.group(criterion, "decode");
    group.bench_function("ours", |bencher| {
        bencher.iter(|| decode_into(black_box(layout), black_box(bytes), 0, black_box(&mut tree)))
    });
    group.bench_function("yardstick", |bencher| bencher.iter(|| yardstick::decode(black_box(bytes), *version)));
    decode_of_peers(&mut group, case);
    group.finish();
}

fn validate(criterion: &mut Criterion, case: &Case) {
    let Case { layout, bytes, version, .. } = case;
    let mut anomalies = Anomalies::new();
    let mut group = case.group(criterion, "validate");
    group.bench_function("ours", |bencher| {
        bencher.iter(|| codec::validate(black_box(layout), black_box(bytes), 0, black_box(&mut anomalies)))
    });
    group.bench_function("yardstick", |bencher| bencher.iter(|| yardstick::decode(black_box(bytes), *version)));
    group.finish();
}

fn decode_and_read(criterion: &mut Criterion, case: &Case) {
    let Case { layout, bytes, version, input, .. } = case;
    let mut tree = Tree::new();
    let mut group = case.group(criterion, "decode-and-read");
    for (name, length) in [("ours", octets as fn(NodeRef<'_>) -> Option<usize>), ("ours-as-str", text)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let read = decode_into(black_box(layout), black_box(bytes), 0, black_box(&mut tree));
                read.map(|_| sum(View::new(layout, bytes, &tree).root(), length))
            })
        });
    }
    group.bench_function("yardstick", |bencher| {
        bencher.iter(|| yardstick::decode(black_box(bytes), *version).map(|message| sum_of_fields!(&message)))
    });
    if case.is_of_peers() {
        for_each_peer!(P {
            let read = || P::sum(&P::decode_configs(black_box(input), *version));
            group.bench_function(P::NAME, |bencher| bencher.iter(read));
        });
    }
    group.finish();
}

/// Into structs of a user, as peers have them; at versions that have all their fields.
fn decode_typed(criterion: &mut Criterion, case: &Case) {
    let Case { layout, bytes, version, .. } = case;
    let mut tree = Tree::new();
    let mut group = case.group(criterion, "decode-typed");
    group.bench_function("ours", |bencher| {
        bencher.iter(|| {
            let read = decode_into(black_box(layout), black_box(bytes), 0, black_box(&mut tree));
            read.map(|_| _ = black_box(deserialize::<Response>(View::new(layout, bytes, &tree))))
        })
    });
    group.bench_function("yardstick", |bencher| bencher.iter(|| yardstick::decode(black_box(bytes), *version)));
    decode_of_peers(&mut group, case);
    group.finish();
}

fn encode(criterion: &mut Criterion, case: &Case) {
    let Case { layout, bytes, version, input, value, response, .. } = case;
    let mut tree = Tree::new();
    decode_into(layout, bytes, 0, &mut tree).expect("a message");
    let view = View::new(layout, bytes, &tree);
    let mut out = Vec::with_capacity(bytes.len());
    let mut group = case.group(criterion, "encode");
    group.bench_function("ours-from-tree", |bencher| {
        bencher.iter(|| {
            out.clear();
            encode_into(black_box(layout), black_box(view).root(), black_box(&mut out))
        })
    });
    group.bench_function("ours-from-value", |bencher| {
        bencher.iter(|| {
            out.clear();
            encode_into(black_box(layout), black_box(value), black_box(&mut out))
        })
    });
    let message: DescribeConfigsResponse = deserialize(view).expect("a message");
    group.bench_function("ours-from-message", |bencher| {
        bencher.iter(|| {
            out.clear();
            black_box(&message).encode_into(layout.version(), black_box(&mut out))
        })
    });
    group.bench_function("ours-from-struct", |bencher| {
        bencher.iter(|| {
            out.clear();
            serialize_into(black_box(layout), black_box(response), black_box(&mut out))
        })
    });
    if case.is_of_peers() {
        for_each_peer!(P {
            let message = P::decode_configs(input, *version);
            group.bench_function(P::NAME, |bencher| {
                bencher.iter(|| {
                    out.clear();
                    P::encode_configs(black_box(&message), *version, black_box(&mut out));
                })
            });
        });
    }
    group.finish();
}

fn describe_configs_response(criterion: &mut Criterion) {
    for case in SHAPES.map(Case::new) {
        check(&case);
        decode(criterion, &case);
        validate(criterion, &case);
        decode_and_read(criterion, &case);
        if case.has_all_fields() {
            decode_typed(criterion, &case);
        }
        encode(criterion, &case);
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(50);
    targets = describe_configs_response
}
criterion_main!(benches);
