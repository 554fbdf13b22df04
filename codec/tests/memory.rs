//! What decoding allocates: no more than a constant times the input, whatever the input claims, and nothing where the
//! tree is reused.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

use allocation_counter::{AllocationInfo, measure};
use codec::{
    Anomalies, ApiVersion, DecodeErrorKind, FRAME_SIZE_LIMIT, Layout, MessageSpec, Node, Protocol, Tree, Value,
    decode_frame, decode_into, encode, split_frame, validate,
};
use std::sync::{Arc, LazyLock};

/// A vector that grows node by node doubles, so all its allocations together, each counted as if none were ever given
/// back, come to less than four times what it holds in the end: 1/2 + 1/4 + ... before the last one, which is up to
/// twice too large.
const GROWTH: usize = 4;
/// Nodes for each byte of input in the bundled definitions: one for a field of one byte, and one for the struct that
/// begins with it. Longer fields and tag sections have fewer.
const NODES_PER_BYTE: usize = 2;
/// Beside the nodes: the node of the message itself, 64 anomalies, and the path of an error, all grown from nothing.
const CONSTANT: usize = GROWTH * (size_of::<Node>() * 4 + 64 * 16 + 256);

/// Most bytes that decoding `input` bytes of a bundled message may allocate in all.
fn most(input: usize) -> usize {
    GROWTH * size_of::<Node>() * NODES_PER_BYTE * input + CONSTANT
}

/// Every bundled message at every version.
static LAYOUTS: LazyLock<Vec<Layout>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| std::fs::read_to_string(&path).unwrap())
        .collect();
    let protocol = Protocol::parse(texts.iter().map(|text| ("schemas", text.as_str()))).unwrap();
    let lower = |spec: &Arc<MessageSpec>| spec.valid_versions.iter().map(|version| layout(spec, version)).collect();
    let mut layouts: Vec<Layout> = protocol.messages().flat_map::<Vec<Layout>, _>(lower).collect();
    layouts.sort_by_key(Layout::to_string);
    assert!(layouts.len() > 80, "the bundled definitions are there");
    layouts
});

fn layout(spec: &Arc<MessageSpec>, version: ApiVersion) -> Layout {
    Layout::new(spec, version).unwrap_or_else(|error| panic!("{error}"))
}

fn defined(text: &str, version: i16) -> Layout {
    layout(&Arc::new(MessageSpec::parse(text).unwrap_or_else(|error| panic!("{error}"))), ApiVersion(version))
}

/// Decodes into a new tree: what that allocated, and how many nodes came of it.
fn decoding(layout: &Layout, bytes: &[u8]) -> (AllocationInfo, usize) {
    let mut nodes = 0;
    let allocated = measure(|| {
        let mut tree = Tree::new();
        let _ = std::hint::black_box(decode_into(layout, bytes, 0, &mut tree));
        nodes = tree.nodes().len();
    });
    (allocated, nodes)
}

fn check(layout: &Layout, bytes: &[u8]) {
    let (allocated, nodes) = decoding(layout, bytes);
    let most = most(bytes.len());
    assert!(
        allocated.bytes_total <= most as u64,
        "{layout}: {} bytes allocated for {} bytes of input and {nodes} nodes, {most} at most: {}",
        allocated.bytes_total,
        bytes.len(),
        codec::hex(&bytes[..bytes.len().min(200)]),
    );
    assert!(nodes <= 1 + NODES_PER_BYTE * bytes.len(), "{layout}: {nodes} nodes for {} bytes", bytes.len());
}

/// The value with each of its arrays, at every level, `count` times as long.
fn longer(value: &Value, count: usize) -> Value {
    match value {
        Value::Array(elements) => {
            let elements: Vec<Value> = elements.iter().map(|element| longer(element, count)).collect();
            Value::Array(elements.iter().cycle().take(elements.len() * count).cloned().collect())
        }
        Value::Struct(structure) => {
            let mut structure = structure.clone();
            structure.fields.iter_mut().for_each(|(_, field)| *field = longer(field, count));
            Value::Struct(structure)
        }
        other => other.clone(),
    }
}

fn encoded(layout: &Layout, value: &Value) -> Vec<u8> {
    encode(layout, value).unwrap_or_else(|error| panic!("{layout}: {error}"))
}

fn uvarint(value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::wire::write_uvarint(&mut bytes, value);
    bytes
}

#[test]
fn ordinary_messages_allocate_a_constant_times_their_size() {
    for layout in LAYOUTS.iter() {
        for count in [0, 1, 2, 12] {
            check(layout, &encoded(layout, &longer(&layout.smallest_instance(), count)));
        }
    }
}

#[test]
fn the_densest_message_meets_the_bound_and_does_not_pass_it() {
    // Structs of one byte each: two nodes a byte, which no bundled definition comes near.
    let densest = r#"{ "name": "Densest", "type": "data", "validVersions": "0", "flexibleVersions": "none", "fields": [
        { "name": "A", "type": "[]S", "versions": "0+", "fields": [{ "name": "B", "type": "int8", "versions": "0+" }] }] }"#;
    let layout = defined(densest, 0);
    for count in [1_000_u32, 65_536, 65_537, 300_000] {
        let bytes = [count.to_be_bytes().as_slice(), &vec![0; count as usize]].concat();
        check(&layout, &bytes);
        assert_eq!(decoding(&layout, &bytes).1, 2 + 2 * count as usize);
    }
}

#[test]
fn huge_counts_and_lengths_allocate_nothing_of_their_size() {
    // As int32 where lengths are plain, as uvarint of one more where they are compact, at every offset of the message:
    // so also where each count, length, tag number and tag size stands, at every level.
    let claims: [u32; 4] = [100_000_000, i32::MAX.unsigned_abs() - 1, i32::MAX.unsigned_abs(), u32::MAX - 1];
    let mut refused = 0;
    for layout in LAYOUTS.iter() {
        let bytes = encoded(layout, &longer(&layout.smallest_instance(), 2));
        for offset in 0..=bytes.len() {
            for claim in claims {
                let (before, after) = bytes.split_at(offset);
                let plain = [before, &claim.to_be_bytes(), after.get(4..).unwrap_or_default()].concat();
                let compact = [before, &uvarint(claim + 1), after.get(1..).unwrap_or_default()].concat();
                let tagged = [before, &[1, 99], &uvarint(claim), after.get(1..).unwrap_or_default()].concat();
                for bytes in [plain, compact, tagged] {
                    check(layout, &bytes);
                    let kind = decode_into(layout, &bytes, 0, &mut Tree::new()).map_err(|error| error.kind);
                    use DecodeErrorKind::{CountExceedsInput, LengthExceedsInput, TagExceedsInput};
                    let claimed = |kind| {
                        matches!(kind, CountExceedsInput { .. } | LengthExceedsInput { .. } | TagExceedsInput { .. })
                    };
                    refused += usize::from(kind.is_err_and(claimed));
                }
            }
        }
    }
    assert!(refused > 10_000, "the claims were where lengths and counts are: {refused}");
}

#[test]
fn a_huge_claim_before_much_input_allocates_no_more_than_that_input_has() {
    let zeros = vec![0; 1 << 18];
    for layout in LAYOUTS.iter() {
        let bytes = encoded(layout, &layout.smallest_instance());
        for offset in 0..bytes.len() {
            // What may fit into the input just so, and what does not.
            for claim in [20_000_u32, 1 << 18, 100_000_000] {
                let plain = [&bytes[..offset], &claim.to_be_bytes(), &zeros].concat();
                check(layout, &plain);
            }
            check(layout, &[&bytes[..offset], uvarint(120_001).as_slice(), &zeros].concat());
        }
    }
}

#[test]
fn a_thousand_oddities_keep_sixty_four() {
    let odd = r#"{ "name": "Odd", "type": "data", "validVersions": "0", "flexibleVersions": "none", "fields": [
        { "name": "A", "type": "[]bool", "versions": "0+" }] }"#;
    let layout = defined(odd, 0);
    let bytes = [1_000_000_u32.to_be_bytes().as_slice(), &vec![2; 1_000_000]].concat();
    let (allocated, nodes) = decoding(&layout, &bytes);
    assert!(nodes == 2 && allocated.bytes_total <= CONSTANT as u64, "{allocated:?}");
}

#[test]
fn decoding_into_a_used_tree_allocates_nothing() {
    for layout in LAYOUTS.iter() {
        let large = encoded(layout, &longer(&layout.smallest_instance(), 6));
        let small = encoded(layout, &layout.default_value());
        let mut tree = Tree::new();
        decode_into(layout, &large, 0, &mut tree).unwrap();
        for bytes in [&large, &small, &large] {
            let allocated = measure(|| {
                decode_into(layout, bytes, 0, &mut tree).unwrap();
            });
            assert_eq!(allocated.count_total, 0, "{layout}: {allocated:?}");
        }
    }
}

#[test]
fn validating_allocates_nothing() {
    for layout in LAYOUTS.iter() {
        let bytes = encoded(layout, &longer(&layout.smallest_instance(), 6));
        let mut anomalies = Anomalies::new();
        let allocated = measure(|| assert_eq!(validate(layout, &bytes, 0, &mut anomalies), Ok(bytes.len())));
        assert_eq!((allocated.count_total, anomalies.count()), (0, 0), "{layout}: {allocated:?}");
        // One byte too many is an anomaly, for which there is room the second time.
        let bytes = [bytes, vec![0]].concat();
        assert!(validate(layout, &bytes, 0, &mut anomalies).is_ok());
        let allocated = measure(|| assert!(validate(layout, &bytes, 0, &mut anomalies).is_ok()));
        assert_eq!((allocated.count_total, anomalies.count()), (0, 1), "{layout}: {allocated:?}");
    }
}

#[test]
fn a_frame_size_reserves_nothing() {
    let limit = FRAME_SIZE_LIMIT;
    // Incomplete, as large as is allowed: there is only more to wait for.
    for size in [4, 100_000_000, limit] {
        let stream = [&size.to_be_bytes()[..], &[0; 3]].concat();
        let allocated = measure(|| assert!(split_frame(&stream, limit).unwrap().is_none()));
        assert_eq!(allocated.count_total, 0, "{size}");
    }
    // Refused: the error holds the word "size".
    for size in [limit + 1, i32::MAX.unsigned_abs(), u32::MAX - 1, u32::MAX] {
        let stream = [&size.to_be_bytes()[..], &[0; 3]].concat();
        let allocated = measure(|| assert!(split_frame(&stream, limit).is_err()));
        assert!(allocated.bytes_total <= 16, "{size}: {allocated:?}");
    }
}

#[test]
fn a_whole_frame_with_a_huge_size_reserves_nothing() {
    let find = |name: &str| LAYOUTS.iter().find(|layout| layout.to_string() == name).unwrap();
    let part = |name: &str| Arc::new(find(name).clone());
    let layout = codec::FrameLayout { header: part("ResponseHeader v1"), body: part("DescribeConfigsResponse v4") };
    for size in [100_000_000, i32::MAX.unsigned_abs(), u32::MAX - 1] {
        let bytes = [&size.to_be_bytes()[..], &[0; 20]].concat();
        let allocated = measure(|| assert!(decode_frame(&layout, &bytes).is_err()));
        assert!(allocated.bytes_total <= 16, "{size}: {allocated:?}");
    }
}
