//! A whole message, beside kafka-protocol's: DescribeConfigsResponse v4 of 300 configs, each with two synonyms and 80
//! bytes of documentation, 53 kB.

use bytes::Bytes;
use codec::{ApiVersion, Layout, MessageSpec, NodeKind, NodeRef, Tree, Value, View, decode_into, encode_into};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kafka_protocol::messages::DescribeConfigsResponse;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;

const CONFIGS: u32 = 300;
const ASCII: &str = "How long a closed segment is kept, in milliseconds, before it may be deleted, -1";
const MULTI_BYTE: &str = "Größe der Äcker, über alle Maße hinaus; ñandú 数据保留时间 (毫秒)";

/// The message as bytes, written by hand from the definition.
fn message(documentation: &str) -> Vec<u8> {
    fn uvarint(out: &mut Vec<u8>, mut value: usize) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }
    fn string(out: &mut Vec<u8>, text: &str) {
        uvarint(out, text.len() + 1);
        out.extend_from_slice(text.as_bytes());
    }
    let mut out = vec![0, 0, 0, 0]; // ThrottleTimeMs
    uvarint(&mut out, 2); // Results: one
    out.extend([0, 0, 0, 2]); // ErrorCode, ErrorMessage null, ResourceType topic
    string(&mut out, "orders");
    uvarint(&mut out, CONFIGS as usize + 1);
    for config in 0..CONFIGS {
        string(&mut out, &format!("some.config.number.{config}"));
        string(&mut out, &(config * 10_000).to_string());
        out.extend([0, 5, 0]); // ReadOnly, ConfigSource default, IsSensitive
        uvarint(&mut out, 3); // Synonyms: two
        for synonym in 0..2 {
            string(&mut out, &format!("log.some.config.{config}.{synonym}"));
            string(&mut out, &(config * 1_000).to_string());
            out.extend([4, 0]); // Source, no tagged fields
        }
        out.push(5); // ConfigType LONG
        string(&mut out, documentation);
        out.push(0);
    }
    out.extend([0, 0]); // no tagged fields in the result, none in the message
    out
}

fn layout() -> Layout {
    let spec = MessageSpec::parse(include_str!("../schemas/DescribeConfigsResponse.json")).expect("a definition");
    Layout::new(&Arc::new(spec), ApiVersion(4)).expect("version 4")
}

fn decode_theirs(mut bytes: Bytes) -> DescribeConfigsResponse {
    DescribeConfigsResponse::decode(&mut bytes, 4).expect("a message")
}

/// Looks at every field: the sum of all integers and of the lengths of all texts. Decoding has checked that text is
/// UTF-8; as a `&str`, which `length` may ask for, it is checked once more.
fn read_ours(node: NodeRef<'_>, length: fn(NodeRef<'_>) -> Option<usize>) -> i64 {
    let mut sum = 0;
    for child in node.children() {
        sum += match child.node().kind {
            NodeKind::Null => 0,
            NodeKind::Leaf => match child.integer() {
                Some(integer) => integer,
                None => length(child).expect("text") as i64,
            },
            _ => read_ours(child, length),
        };
    }
    sum
}

fn octets(node: NodeRef<'_>) -> Option<usize> {
    node.octets().map(<[u8]>::len)
}

fn text(node: NodeRef<'_>) -> Option<usize> {
    node.text().map(str::len)
}

fn read_theirs(message: &DescribeConfigsResponse) -> i64 {
    let text = |text: &Option<StrBytes>| text.as_ref().map_or(0, |text| text.len());
    let mut sum = i64::from(message.throttle_time_ms);
    for result in &message.results {
        sum += i64::from(result.error_code) + i64::from(result.resource_type);
        sum += (text(&result.error_message) + result.resource_name.len()) as i64;
        for config in &result.configs {
            sum += i64::from(config.read_only) + i64::from(config.is_sensitive);
            sum += i64::from(config.config_source) + i64::from(config.config_type);
            sum += (config.name.len() + text(&config.value) + text(&config.documentation)) as i64;
            for synonym in &config.synonyms {
                sum += i64::from(synonym.source) + (synonym.name.len() + text(&synonym.value)) as i64;
            }
        }
    }
    sum
}

fn describe_configs_response(criterion: &mut Criterion) {
    let layout = layout();
    for (shape, documentation) in [("ascii", ASCII), ("multi-byte", MULTI_BYTE)] {
        let bytes = message(documentation);
        let mut tree = Tree::new();
        let (value, theirs) = check(&layout, &bytes);

        let shared = Bytes::from(bytes.clone());
        let mut group = criterion.benchmark_group(format!("describe-configs-response/decode/{shape}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("ours", |bencher| {
            bencher.iter(|| decode_into(black_box(&layout), black_box(&bytes), 0, black_box(&mut tree)))
        });
        group.bench_function("kafka-protocol", |bencher| bencher.iter(|| decode_theirs(black_box(&shared).clone())));
        group.finish();

        let mut group = criterion.benchmark_group(format!("describe-configs-response/decode-and-read/{shape}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        for (name, length) in [("ours", octets as fn(NodeRef<'_>) -> Option<usize>), ("ours-as-str", text)] {
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    let read = decode_into(black_box(&layout), black_box(&bytes), 0, black_box(&mut tree));
                    read.map(|_| read_ours(View::new(&layout, &bytes, &tree).root(), length))
                })
            });
        }
        group.bench_function("kafka-protocol", |bencher| {
            bencher.iter(|| read_theirs(&decode_theirs(black_box(&shared).clone())))
        });
        group.finish();

        let view = View::new(&layout, &bytes, &tree);
        let mut out = Vec::with_capacity(bytes.len());
        let mut group = criterion.benchmark_group(format!("describe-configs-response/encode/{shape}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("ours", |bencher| {
            bencher.iter(|| {
                out.clear();
                encode_into(black_box(&layout), black_box(&value), black_box(&mut out))
            })
        });
        group.bench_function("ours-from-tree", |bencher| {
            bencher.iter(|| {
                out.clear();
                encode_into(black_box(&layout), black_box(view).root(), black_box(&mut out))
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

/// Both read the same, field by field, and write the same bytes; the value of each codec, to encode.
fn check(layout: &Layout, bytes: &[u8]) -> (Value, DescribeConfigsResponse) {
    let mut tree = Tree::new();
    decode_into(layout, bytes, 0, &mut tree).expect("a message");
    assert_eq!(tree.anomaly_count(), 0);
    let view = View::new(layout, bytes, &tree);
    let value = view.value();
    let theirs = decode_theirs(Bytes::copy_from_slice(bytes));
    assert_eq!(value.to_json(), json(&theirs));
    assert_eq!(read_ours(view.root(), octets), read_theirs(&theirs));
    assert_eq!(read_ours(view.root(), text), read_theirs(&theirs));

    let mut out = Vec::new();
    encode_into(layout, &value, &mut out).expect("a value that was read");
    assert_eq!(out, bytes);
    out.clear();
    encode_into(layout, view.root(), &mut out).expect("a tree that was read");
    assert_eq!(out, bytes);
    out.clear();
    theirs.encode(&mut out, 4).expect("a value that was read");
    assert_eq!(out, bytes);
    (value, theirs)
}

/// Their value, by the definition's names.
fn json(message: &DescribeConfigsResponse) -> serde_json::Value {
    let config = |config: &DescribeConfigsResourceResult| {
        let synonyms = config.synonyms.iter().map(
            |synonym| json!({ "Name": &*synonym.name, "Value": synonym.value.as_deref(), "Source": synonym.source }),
        );
        json!({
            "Name": &*config.name,
            "Value": config.value.as_deref(),
            "ReadOnly": config.read_only,
            "ConfigSource": config.config_source,
            "IsSensitive": config.is_sensitive,
            "Synonyms": synonyms.collect::<Vec<_>>(),
            "ConfigType": config.config_type,
            "Documentation": config.documentation.as_deref(),
        })
    };
    let results = message.results.iter().map(|result| {
        json!({
            "ErrorCode": result.error_code,
            "ErrorMessage": result.error_message.as_deref(),
            "ResourceType": result.resource_type,
            "ResourceName": &*result.resource_name,
            "Configs": result.configs.iter().map(config).collect::<Vec<_>>(),
        })
    });
    json!({ "ThrottleTimeMs": message.throttle_time_ms, "Results": results.collect::<Vec<_>>() })
}

criterion_group!(benches, describe_configs_response);
criterion_main!(benches);
