//! The laws over every bundled definition and a definition that has every wire type.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

use codec::{
    AbsentFields, AnomalyKind, ApiVersion, DecodeErrorKind, EncodeErrorKind, Layout, MessageSpec, Node, NodeKind,
    Protocol, StructValue, Tree, Value, decode, decode_into, encode, encode_view, hex, parse_hex, properties,
};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

/// Everything a definition can say: tagged structs with defaults of their own, nullable structs in both forms (KIP-893),
/// common structs in common structs, a field that is never compact, nullable versions wider than versions.
const EVERYTHING: &str = r#"{
  "name": "Everything", "type": "data", "validVersions": "0-2", "flexibleVersions": "1+",
  "commonStructs": [
    { "name": "Inner", "versions": "0+", "fields": [{ "name": "Port", "type": "uint16", "versions": "0+", "default": "9092" }] },
    { "name": "Outer", "versions": "0+", "fields": [
      { "name": "In", "type": "Inner", "versions": "0+" },
      { "name": "Names", "type": "[]string", "versions": "0+", "nullableVersions": "0+" },
      { "name": "Note", "type": "string", "versions": "1+", "taggedVersions": "1+", "tag": 3, "default": "none" }
    ]}
  ],
  "fields": [
    { "name": "Flag", "type": "bool", "versions": "0+", "default": "true" },
    { "name": "Small", "type": "int8", "versions": "0+" },
    { "name": "Medium", "type": "uint32", "versions": "0+" },
    { "name": "Large", "type": "int64", "versions": "0+" },
    { "name": "Real", "type": "float64", "versions": "0+" },
    { "name": "Id", "type": "uuid", "versions": "0+" },
    { "name": "Plain", "type": "string", "versions": "0+", "nullableVersions": "0+", "flexibleVersions": "none" },
    { "name": "Blob", "type": "bytes", "versions": "0+" },
    { "name": "Batch", "type": "records", "versions": "0+", "nullableVersions": "0+" },
    { "name": "Maybe", "type": "Outer", "versions": "0+", "nullableVersions": "0+" },
    { "name": "Outers", "type": "[]Outer", "versions": "0+" },
    { "name": "Flags", "type": "[]bool", "versions": "0+" },
    { "name": "Numbers", "type": "[]int32", "versions": "0+", "nullableVersions": "0+" },
    { "name": "Blobs", "type": "[]bytes", "versions": "0+" },
    { "name": "Late", "type": "int16", "versions": "2+", "nullableVersions": "none", "default": "-1", "ignorable": true },
    { "name": "Strict", "type": "int16", "versions": "2+" },
    { "name": "TaggedMaybe", "type": "Inner", "versions": "1+", "nullableVersions": "1+", "taggedVersions": "1+", "tag": 0, "default": "null" },
    { "name": "Tagged", "type": "Inner", "versions": "1+", "taggedVersions": "1+", "tag": 1 },
    { "name": "TaggedText", "type": "string", "versions": "1+", "nullableVersions": "1+", "taggedVersions": "1+", "tag": 2, "default": "null" },
    { "name": "TaggedOuter", "type": "Outer", "versions": "2+", "taggedVersions": "2+", "tag": 5 }
  ]
}"#;

fn everything(version: i16) -> Layout {
    let spec = MessageSpec::parse(EVERYTHING).unwrap_or_else(|error| panic!("{error}"));
    Layout::new(&Arc::new(spec), ApiVersion(version)).unwrap_or_else(|error| panic!("{error}"))
}

/// Every bundled message at every version, and `Everything`.
static LAYOUTS: LazyLock<Vec<Arc<Layout>>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas");
    let mut texts: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{folder}: {error}"))
        .map(|entry| entry.unwrap_or_else(|error| panic!("{error}")).path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            (path.display().to_string(), std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}")))
        })
        .collect();
    texts.sort();
    let protocol = Protocol::parse(texts.iter().map(|(file, text)| (file.as_str(), text.as_str())))
        .unwrap_or_else(|error| panic!("{error}"));
    let versions = |spec: &Arc<MessageSpec>| {
        spec.valid_versions.iter().map(|version| (spec.name.clone(), version)).collect::<Vec<_>>()
    };
    let mut layouts: Vec<Arc<Layout>> = protocol
        .messages()
        .flat_map(versions)
        .map(|(name, version)| protocol.layout(&name, version).unwrap_or_else(|error| panic!("{error}")))
        .collect();
    layouts.extend((0..3).map(|version| Arc::new(everything(version))));
    layouts
});

#[test]
fn smallest_and_default_instances_round_trip_in_every_layout() {
    assert!(LAYOUTS.len() > 80, "the bundled definitions are there");
    for layout in LAYOUTS.iter() {
        properties::value_round_trips(layout, &layout.smallest_instance());
        properties::value_round_trips(layout, &layout.default_value());
        let bytes = encode(layout, &layout.smallest_instance()).unwrap_or_else(|error| panic!("{layout}: {error}"));
        properties::decode_is_total(layout, &bytes);
        for length in 0..bytes.len() {
            let cut = bytes.get(..length).unwrap_or_default();
            assert!(decode(layout, cut).is_err(), "{layout}: cut after {length} of {} bytes and taken", bytes.len());
        }
    }
}

#[test]
fn the_deepest_structs_go_through_bytes_and_json() {
    let mut structs =
        vec![r#"{"name":"S0","versions":"0+","fields":[{"name":"F","type":"bytes","versions":"0+"}]}"#.to_owned()];
    structs.extend((1..MessageSpec::LEVELS).map(|level| {
        let inner = level - 1;
        format!(
            r#"{{"name":"S{level}","versions":"0+","fields":[{{"name":"F","type":"[]S{inner}","versions":"0+"}}]}}"#
        )
    }));
    let text = format!(
        r#"{{"name":"Deep","type":"data","validVersions":"0","flexibleVersions":"0+","commonStructs":[{}],
            "fields":[{{"name":"F","type":"[]S{}","versions":"0+"}}]}}"#,
        structs.join(","),
        MessageSpec::LEVELS - 1
    );
    let spec = MessageSpec::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let layout = Layout::new(&Arc::new(spec), ApiVersion(0)).unwrap_or_else(|error| panic!("{error}"));
    let value = layout.smallest_instance();
    properties::value_round_trips(&layout, &value);
    // As a line of results holds it, which any JSON reader must be able to take.
    let line = serde_json::json!({ "want": { "body": value.to_json() } }).to_string();
    let read: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Value::from_json(&layout, &read["want"]["body"], AbsentFields::Keep), Ok(value));
}

/// A message of tagged fields only, in the order given.
fn tagged_fields(tags: &[u32]) -> Layout {
    let fields: Vec<String> = tags
        .iter()
        .map(|tag| format!(r#"{{"name":"T{tag}","type":"string","versions":"0+","taggedVersions":"0+","tag":{tag}}}"#))
        .collect();
    let text = format!(
        r#"{{"name":"Tagged","type":"data","validVersions":"0","flexibleVersions":"0+","fields":[{}]}}"#,
        fields.join(",")
    );
    let spec = MessageSpec::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    Layout::new(&Arc::new(spec), ApiVersion(0)).unwrap_or_else(|error| panic!("{error}"))
}

proptest! {
    /// Tags are found by halving; here each is looked for from the first to the last, as the definition has them.
    #[test]
    fn tags_are_those_that_a_linear_search_finds(
        declared in prop::collection::btree_set(0_u32..24, 0..12).prop_map(|tags| tags.into_iter().collect::<Vec<_>>()).prop_shuffle(),
        sent in prop::collection::vec((0_u32..24, "[a-z]{0,3}"), 0..40),
    ) {
        let layout = tagged_fields(&declared);
        // A tag's payload is a compact string; all numbers here fit one byte.
        let byte = |number: usize| u8::try_from(number).unwrap_or_else(|error| panic!("{error}"));
        let mut bytes = vec![byte(sent.len())];
        for (tag, text) in &sent {
            bytes.extend([byte(*tag as usize), byte(text.len() + 1), byte(text.len() + 1)]);
            bytes.extend(text.bytes());
        }
        let decoded = decode(&layout, &bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let last = |tag: u32| sent.iter().rev().find(|(other, _)| *other == tag).map(|(_, text)| text.as_str());
        let value = decoded.view().value();
        let value = value.as_struct().ok_or_else(|| TestCaseError::fail("not a struct"))?;
        for &tag in &declared {
            let name = format!("T{tag}");
            prop_assert_eq!(value.get(&name), Some(&Value::String(last(tag).unwrap_or_default().to_owned())));
            prop_assert_eq!(decoded.view().get(&name).and_then(|node| node.text()), last(tag));
        }
        let unknown: Vec<(u32, Vec<u8>)> = (0..24)
            .filter(|tag| !declared.contains(tag))
            .filter_map(|tag| last(tag).map(|text| (tag, [&[byte(text.len() + 1)], text.as_bytes()].concat())))
            .collect();
        prop_assert_eq!(&value.tags, &unknown);
        // Encoded from the tree, as from the value: each tag once, in order, and none at its default.
        let due: Vec<(u32, &str)> = (0..24)
            .filter_map(|tag| Some((tag, last(tag)?)))
            .filter(|(tag, text)| !declared.contains(tag) || !text.is_empty())
            .collect();
        let mut again = vec![byte(due.len())];
        for (tag, text) in due {
            again.extend([byte(tag as usize), byte(text.len() + 1), byte(text.len() + 1)]);
            again.extend(text.bytes());
        }
        prop_assert_eq!(hex(&encode_view(decoded.view()).map_err(|error| TestCaseError::fail(error.to_string()))?), hex(&again));
        prop_assert_eq!(hex(&encode(&layout, &decoded.view().value()).map_err(|error| TestCaseError::fail(error.to_string()))?), hex(&again));
    }
}

proptest! {
    /// Text is looked at in blocks that reach past it; here each is given to the standard library by itself.
    #[test]
    fn text_is_judged_as_the_standard_library_judges_it(
        texts in prop::collection::vec(
            prop_oneof![
                3 => "[a-z]{0,150}".prop_map(String::into_bytes),
                2 => "[a-zäß数据🦀\u{900}\u{d7ff}]{0,60}".prop_map(String::into_bytes),
                1 => ("[aä数🦀]{0,30}", 0_usize..90).prop_map(|(text, size)| text.bytes().take(size).collect()),
                1 => prop::collection::vec(any::<u8>(), 0..50),
            ],
            0..40,
        ),
        compact: bool,
    ) {
        // A list of names and a timeout.
        let layout = bundled("DeleteTopicsRequest", if compact { 4 } else { 3 });
        let number = |number: usize| u32::try_from(number).unwrap_or_else(|error| panic!("{error}"));
        let mut bytes = Vec::new();
        let mut not_utf8 = Vec::new();
        if compact {
            codec::wire::write_uvarint(&mut bytes, number(texts.len() + 1));
        } else {
            bytes.extend(number(texts.len()).to_be_bytes());
        }
        for text in &texts {
            let start = number(bytes.len());
            if compact {
                codec::wire::write_uvarint(&mut bytes, number(text.len() + 1));
            } else {
                bytes.extend(number(text.len()).to_be_bytes().iter().skip(2));
            }
            bytes.extend(text);
            if std::str::from_utf8(text).is_err() {
                not_utf8.push(start..number(bytes.len()));
            }
        }
        bytes.extend([0, 0, 0, 0]);
        bytes.extend(compact.then_some(0));
        let decoded = decode(&layout, &bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let found: Vec<_> = decoded.tree.anomalies().iter().map(|anomaly| anomaly.start..anomaly.end).collect();
        prop_assert!(decoded.tree.anomalies().iter().all(|anomaly| anomaly.kind == AnomalyKind::NotUtf8));
        prop_assert_eq!(found, not_utf8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_obey_the_laws(index: prop::sample::Index, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        properties::decode_is_total(index.get::<Arc<Layout>>(&LAYOUTS), &bytes);
    }

    #[test]
    fn nearly_right_bytes_obey_the_laws(index: prop::sample::Index, seed: u64, at: prop::sample::Index, byte: u8) {
        let layout = index.get(LAYOUTS.as_slice());
        let value = properties::arbitrary_value(layout, &mut choices(seed));
        let mut bytes = encode(layout, &value).map_err(|error| TestCaseError::fail(error.to_string()))?;
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        properties::decode_is_total(layout, &bytes);
    }

    #[test]
    fn any_value_round_trips_through_bytes_and_json(index: prop::sample::Index, seed: u64) {
        let layout = index.get(LAYOUTS.as_slice());
        let value = properties::arbitrary_value(layout, &mut choices(seed));
        prop_assert!(encode(layout, &value).is_ok());
        properties::value_round_trips(layout, &value);
        if !has_nan(&value) {
            let again = Value::from_json(layout, &value.to_json(), AbsentFields::Keep);
            prop_assert_eq!(again, Ok(value));
        }
    }
}

/// Numbers from a seed, by splitmix64.
fn choices(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % below.max(1)
    }
}

fn has_nan(value: &Value) -> bool {
    match value {
        Value::Float(bits) => f64::from(*bits).is_nan(),
        Value::Array(elements) => elements.iter().any(has_nan),
        Value::Struct(value) => value.fields.iter().any(|(_, value)| has_nan(value)),
        _ => false,
    }
}

fn bundled(message: &str, version: i16) -> Arc<Layout> {
    let wanted = |layout: &&Arc<Layout>| &*layout.spec().name == message && layout.version() == ApiVersion(version);
    LAYOUTS.iter().find(wanted).cloned().unwrap_or_else(|| panic!("{message} v{version} is bundled"))
}

/// What decoding gives: the anomalies of bytes that are taken, or path, offset and kind of the error.
fn outcome(layout: &Layout, bytes: &str) -> Result<Vec<AnomalyKind>, (String, usize, DecodeErrorKind)> {
    let bytes = parse_hex(bytes).unwrap_or_else(|error| panic!("{error}"));
    properties::decode_is_total(layout, &bytes);
    match decode(layout, &bytes) {
        Ok(decoded) => Ok(decoded.tree.anomalies().iter().map(|anomaly| anomaly.kind).collect()),
        Err(error) => Err((error.path, error.offset, error.kind)),
    }
}

#[test]
fn every_liberty_is_recorded() {
    // AlterConfigsRequest v2: Resources [{2, "t", [{"k", "v"}]}], ValidateOnly.
    let layout = bundled("AlterConfigsRequest", 2);
    let check =
        |bytes: &str, anomalies: &[AnomalyKind]| assert_eq!(outcome(&layout, bytes), Ok(anomalies.to_vec()), "{bytes}");
    use AnomalyKind::*;
    check("02 02 0274 02 026b 0276 00 00 00 00", &[]);
    check("02 02 0274 02 026b 0276 00 00 02 00", &[BoolNotZeroOrOne]);
    check("8200 02 0274 02 026b 0276 00 00 00 00", &[VarintNotMinimal]);
    check("8280808070 02 0274 02 026b 0276 00 00 00 00", &[VarintHighBits]);
    check("02 02 0274 02 026b 02ff 00 00 00 00", &[NotUtf8]);
    check("02 02 0274 02 026b 0276 00 00 00 02 090161 0900", &[TagRepeated]);
    check("02 02 0274 02 026b 0276 00 00 00 02 090161 0800", &[TagsUnordered]);
    check("02 02 0274 02 026b 0276 00 00 00 01 ffffffff07 00", &[TagReserved]);
    check("02 02 0274 02 026b 0276 00 00 00 01 feffffff07 00", &[]);
    check("02 02 0274 02 026b 0276 00 00 00 8000", &[VarintNotMinimal]);
    check("02 02 0274 02 026b 0276 00 00 00 00 00", &[LeftOver]);
    let long = format!("02 02 0274 02 026b 818002 {} 00 00 00 00", "61".repeat(32_768));
    check(&long, &[StringLong]);
    let longest = format!("02 02 0274 02 026b 808002 {} 00 00 00 00", "61".repeat(32_767));
    check(&longest, &[]);
    // DescribeConfigsRequest v1: a null array of keys is -1, and anything below it says the same.
    let layout = bundled("DescribeConfigsRequest", 1);
    assert_eq!(outcome(&layout, "00000001 02 000174 fffffffe 00"), Ok(vec![LengthBelowNull]));
    // ApiVersionsResponse v3: tag 1 is an int64 with default -1; tag 3 is a bool.
    let layout = bundled("ApiVersionsResponse", 3);
    assert_eq!(outcome(&layout, "0000 01 00000000 01 0108ffffffffffffffff"), Ok(vec![TagWithDefault]));
    assert_eq!(outcome(&layout, "0000 01 00000000 01 03020100"), Ok(vec![TagSizeMismatch]));
    // A nullable struct's marker is present unless it is -1.
    let layout = everything(0);
    let bytes = encode(&layout, &layout.smallest_instance()).unwrap_or_else(|error| panic!("{error}"));
    let marker = decode(&layout, &bytes)
        .unwrap_or_else(|error| panic!("{error}"))
        .view()
        .get("Maybe")
        .map(|node| node.node().start);
    let mut odd = bytes;
    odd[marker.unwrap_or_else(|| panic!("Maybe is there")) as usize] = 7;
    assert_eq!(outcome(&layout, &hex(&odd)), Ok(vec![StructMarker]));
}

#[test]
fn a_liberty_spans_the_bytes_that_took_it() {
    use AnomalyKind::*;
    let check = |message: &str, version: i16, bytes: &str, spans: &[(AnomalyKind, u32, u32)]| {
        let layout = bundled(message, version);
        let bytes = parse_hex(bytes).unwrap_or_else(|error| panic!("{error}"));
        let decoded = decode(&layout, &bytes).unwrap_or_else(|error| panic!("{error}"));
        let found = decoded.tree.anomalies().iter().map(|anomaly| (anomaly.kind, anomaly.start, anomaly.end));
        assert_eq!(found.collect::<Vec<_>>(), spans, "{}", hex(&bytes));
    };
    let request = |bytes: &str, spans: &[(AnomalyKind, u32, u32)]| check("AlterConfigsRequest", 2, bytes, spans);
    request("8200 02 0274 02 026b 0276 00 00 00 00", &[(VarintNotMinimal, 0, 2)]);
    request("02 02 0274 8280808070 026b 0276 00 00 00 00", &[(VarintHighBits, 4, 9)]);
    request("02 02 0274 02 026b 02ff 00 00 00 00", &[(NotUtf8, 7, 9)]);
    request("02 02 0274 02 026b 830061ff 00 00 00 00", &[(VarintNotMinimal, 7, 9), (NotUtf8, 7, 11)]);
    request("02 02 0274 02 026b 0276 00 00 02 00", &[(BoolNotZeroOrOne, 11, 12)]);
    request("02 02 0274 02 026b 0276 00 00 00 8000", &[(VarintNotMinimal, 12, 14)]);
    request("02 02 0274 02 026b 0276 00 00 00 02 090161 0900", &[(TagRepeated, 16, 18)]);
    request("02 02 0274 02 026b 0276 00 00 00 02 090161 0800", &[(TagsUnordered, 16, 18)]);
    request("02 02 0274 02 026b 0276 00 00 00 01 ffffffff07 0161", &[(TagReserved, 13, 19)]);
    request("02 02 0274 02 026b 0276 00 00 00 00 0102", &[(LeftOver, 13, 15)]);
    let long = format!("02 02 0274 02 026b 818002 {} 00 00 00 00", "61".repeat(32_768));
    request(&long, &[(StringLong, 7, 7 + 3 + 32_768)]);
    check("AlterConfigsRequest", 0, "00000001 02 000174 00000001 00016b fffe 00", &[(LengthBelowNull, 15, 17)]);
    check("DescribeConfigsRequest", 1, "00000001 02 000174 fffffffe 00", &[(LengthBelowNull, 8, 12)]);
    check("ApiVersionsResponse", 3, "0000 01 00000000 01 0108ffffffffffffffff", &[(TagWithDefault, 10, 18)]);
    check("ApiVersionsResponse", 3, "0000 01 00000000 01 03020100", &[(TagSizeMismatch, 11, 12)]);
}

#[test]
fn a_tag_section_is_kept_where_it_says_anything() {
    let layout = bundled("AlterConfigsRequest", 2);
    for (section, sections) in [("00", 0), ("8000", 1), ("01 0900", 1)] {
        let bytes = parse_hex(&format!("02 02 0274 02 026b 0276 00 00 00 {section}")).unwrap_or_default();
        let decoded = decode(&layout, &bytes).unwrap_or_else(|error| panic!("{error}"));
        let kept = decoded.tree.nodes().iter().filter(|node| node.kind == NodeKind::TagSection).count();
        assert_eq!(kept, sections, "{section}");
    }
}

#[test]
fn what_follows_a_message_is_left() {
    let layout = bundled("AlterConfigsRequest", 2);
    let message = "02 02 0274 02 026b 0276 00 00 00 00";
    for (more, left) in [("", 0), ("07", 1), ("0000ff", 3)] {
        let bytes = parse_hex(&format!("{message}{more}")).unwrap_or_else(|error| panic!("{error}"));
        let decoded = decode(&layout, &bytes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((decoded.end, decoded.left()), (13, left));
    }
}

#[test]
fn errors_name_the_field_the_offset_and_the_claim() {
    use DecodeErrorKind::*;
    let layout = bundled("AlterConfigsRequest", 2);
    let check = |bytes: &str, path: &str, offset: usize, kind: DecodeErrorKind| {
        assert_eq!(outcome(&layout, bytes), Err((path.to_owned(), offset, kind)), "{bytes}");
    };
    check("", "Resources", 0, VarintTruncated);
    check("00", "Resources", 0, NullNotAllowed);
    check("05 02 0274", "Resources", 0, CountExceedsInput { claimed: 4, left: 3 });
    check("ffffffff0f", "Resources", 0, CountExceedsInput { claimed: 0xffff_fffe, left: 0 });
    check("ffffffffff00", "Resources", 0, VarintTooLong);
    check(
        "02 02 0274 03 026b 0276 00 01 2a",
        "Resources[0].Configs[1].Value",
        11,
        LengthExceedsInput { claimed: 41, left: 0 },
    );
    check("02 02 0274 02 00 0276 00 00 00 00", "Resources[0].Configs[0].Name", 5, NullNotAllowed);
    check("02 02 0274 02 026b 0276 00 00", "ValidateOnly", 11, Truncated { needed: 1, left: 0 });
    check("02 02 0274 02 026b 0276 00 00 00", "", 12, TagSectionMissing);
    check("02 02 0274 02 026b 0276 00 00 00 05", "", 12, CountExceedsInput { claimed: 5, left: 0 });
    // Two tags take four bytes at least.
    check("02 02 0274 02 026b 0276 00 00 00 02 0900 09", "", 12, CountExceedsInput { claimed: 2, left: 3 });
    check("02 02 0274 02 026b 0276 00 00 00 01 0905 00", "", 13, TagExceedsInput { tag: 9, claimed: 5, left: 1 });
    let layout = bundled("DescribeConfigsRequest", 1);
    let kind = outcome(&layout, "00000001 02 fffe 00000000 00");
    assert_eq!(kind, Err(("Resources[0].ResourceName".to_owned(), 5, NegativeLength(-2))));
    let text = decode(&layout, &[0, 0, 0, 1, 2, 0, 40, 1, 2, 3, 4]).map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(text, Err("Resources[0].ResourceName at 0x5: claims 40 bytes, 4 left".to_owned()));
}

#[test]
fn values_without_an_encoding_are_refused() {
    let refused = |message: &str, version: i16, json: &str| {
        let layout = bundled(message, version);
        let json = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}"));
        let encoded = Value::from_json(&layout, &json, AbsentFields::Keep).and_then(|value| encode(&layout, &value));
        encoded.map(|bytes| hex(&bytes)).map_err(|error| (error.path, error.kind))
    };
    let resource = |name: &str| format!(r#"{{"Resources":[{{"ResourceType":2,"ResourceName":{name}}}]}}"#);
    let at = |path: &str, kind| Err((path.to_owned(), kind));
    use EncodeErrorKind::*;
    assert_eq!(
        refused("DescribeConfigsRequest", 4, &resource("null")),
        at("Resources[0].ResourceName", NullNotAllowed)
    );
    assert_eq!(refused("DescribeConfigsRequest", 4, r#"{"Resources":null}"#), at("Resources", NullNotAllowed));
    let long = resource(&format!("\"{}\"", "a".repeat(32_768)));
    assert_eq!(refused("DescribeConfigsRequest", 1, &long), at("Resources[0].ResourceName", StringTooLong(32_768)));
    assert!(refused("DescribeConfigsRequest", 4, &long).is_ok());
    let synonyms = r#"{"Resources":[],"IncludeSynonyms":true}"#;
    assert_eq!(refused("DescribeConfigsRequest", 0, synonyms), at("", FieldNotInVersion("IncludeSynonyms".to_owned())));
    assert_eq!(
        refused("DescribeConfigsRequest", 0, r#"{"Resources":[],"IncludeSynonyms":false}"#),
        Ok("00000000".to_owned())
    );
    assert_eq!(refused("DescribeConfigsRequest", 0, r#"{"Nope":1}"#), at("", UnknownField("Nope".to_owned())));
    assert_eq!(
        refused("AlterConfigsResponse", 0, r#"{"ThrottleTimeMs":2147483648}"#),
        at("ThrottleTimeMs", OutOfRange("int32"))
    );
    assert_eq!(refused("AlterConfigsResponse", 0, r#"{"ThrottleTimeMs":"x"}"#), at("ThrottleTimeMs", Type("int32")));
    assert_eq!(refused("ApiVersionsResponse", 3, r#"{"_tags":[{"tag":1,"hex":""}]}"#), at("", Tag(1)));
    assert_eq!(
        refused("ApiVersionsResponse", 3, r#"{"_tags":[{"tag":9,"hex":""},{"tag":9,"hex":""}]}"#),
        at("", Tag(9))
    );
    assert_eq!(
        refused("ApiVersionsResponse", 0, r#"{"_tags":[{"tag":9,"hex":""}]}"#),
        at("", FieldNotInVersion("_tags".to_owned()))
    );
}

/// Each struct of a value, the innermost first.
fn each_struct(value: &mut Value, change: &mut dyn FnMut(&mut StructValue)) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| each_struct(element, change)),
        Value::Struct(value) => {
            value.fields.iter_mut().for_each(|(_, field)| each_struct(field, change));
            change(value);
        }
        _ => {}
    }
}

#[test]
fn fields_of_a_value_go_by_name_in_any_order_and_those_that_are_missing_have_their_defaults() {
    for layout in LAYOUTS.iter() {
        for seed in 0..4 {
            let value = properties::arbitrary_value(layout, &mut choices(seed));
            let bytes = encode(layout, &value);
            assert!(bytes.is_ok(), "{layout}");
            let same = |change: &mut dyn FnMut(&mut StructValue)| {
                let mut value = value.clone();
                each_struct(&mut value, change);
                assert_eq!(encode(layout, &value), bytes, "{layout}: {value:?}");
            };
            same(&mut |value| value.fields.reverse());
            same(&mut |value| value.fields.sort_by(|(one, _), (other, _)| one.cmp(other)));
            same(&mut |value| value.fields.iter_mut().skip(1).for_each(|(name, _)| *name = Arc::from(&**name)));
            same(&mut |value| value.tags.reverse());
        }
        let default = layout.default_value();
        let fields = default.as_struct().map(|value| value.fields.clone()).unwrap_or_default();
        for there in 0..=fields.len() {
            let part = StructValue { fields: fields.iter().take(there).cloned().collect(), tags: Vec::new() };
            assert_eq!(encode(layout, &Value::Struct(part)), encode(layout, &default), "{layout}: {there} fields");
        }
    }
}

#[test]
fn fields_that_a_message_does_not_have_are_refused_wherever_they_stand() {
    let refused = |version: i16, fields: Vec<(Arc<str>, Value)>, name: &str| {
        let layout = bundled("DescribeConfigsRequest", version);
        let error =
            encode(&layout, &Value::Struct(StructValue { fields, tags: Vec::new() })).map_err(|error| error.kind);
        assert_eq!(error, Err(EncodeErrorKind::UnknownField(name.to_owned())));
    };
    let default = bundled("DescribeConfigsRequest", 4).default_value();
    let fields = default.as_struct().map(|value| value.fields.clone()).unwrap_or_default();
    for place in 0..=fields.len() {
        for (name, value) in [(Arc::from("Nope"), Value::Integer(1)), fields[0].clone(), fields[2].clone()] {
            let mut fields = fields.clone();
            fields.insert(place, (name.clone(), value));
            refused(4, fields, &name);
        }
    }
    refused(4, vec![("Nope".into(), Value::Null)], "Nope");
    // A field of another version is passed over, once.
    let synonyms = (Arc::from("IncludeSynonyms"), Value::Bool(false));
    refused(0, vec![synonyms.clone(), ("Nope".into(), Value::Null)], "Nope");
    refused(0, vec![fields[0].clone(), synonyms.clone(), synonyms], "IncludeSynonyms");
}

#[test]
fn a_value_of_another_type_is_refused_by_the_name_of_the_type() {
    let types = [
        ("Flag", "bool"),
        ("Medium", "uint32"),
        ("Real", "float64"),
        ("Id", "uuid"),
        ("Plain", "string"),
        ("Blob", "bytes"),
        ("Batch", "bytes"),
        ("Maybe", "struct"),
        ("Outers", "array"),
        ("Numbers", "array"),
        ("TaggedText", "string"),
        ("Tagged", "struct"),
    ];
    for version in [1, 2] {
        for (field, wanted) in types {
            let other = if wanted == "array" { Value::Uuid([0; 16]) } else { Value::Array(Vec::new()) };
            let fields = vec![(Arc::from(field), other)];
            let error = encode(&everything(version), &Value::Struct(StructValue { fields, tags: Vec::new() }));
            let error = error.map_err(|error| (error.path, error.kind));
            assert_eq!(error, Err((field.to_owned(), EncodeErrorKind::Type(wanted))));
        }
    }
}

#[test]
fn a_length_grows_a_byte_where_the_guide_says() {
    let name = |size: usize| Value::String("x".repeat(size));
    let layout = everything(1);
    let due = |size: usize| match size + 1 {
        short @ ..0x80 => format!("{short:02x}"),
        // Seven bits a byte, the low ones first.
        long @ ..0x4000 => format!("{:02x}{:02x}", long & 0x7f | 0x80, long >> 7),
        longer => format!("{:02x}{:02x}{:02x}", longer & 0x7f | 0x80, longer >> 7 & 0x7f | 0x80, longer >> 14),
    };
    for size in [0, 1, 2, 125, 126, 127, 128, 129, 255, 256, 16_381, 16_382, 16_383, 16_384] {
        let hexes = "78".repeat(size);
        let written = |field: &str, value: Value| {
            let fields = vec![(Arc::from(field), value)];
            let bytes = encode(&layout, &Value::Struct(StructValue { fields, tags: Vec::new() }));
            hex(&bytes.unwrap_or_else(|error| panic!("{error}")))
        };
        let names = StructValue { fields: vec![("Names".into(), Value::Array(vec![name(size)]))], tags: Vec::new() };
        // 9092, one name, no tags.
        let outer = format!("01 2384 00 02 {}{hexes} 00", due(size)).replace(' ', "");
        assert!(written("Maybe", Value::Struct(names)).contains(&outer), "{size}");
        assert!(written("Blob", Value::Bytes(vec![0x78; size])).contains(&format!("{}{hexes}", due(size))), "{size}");
        // Never compact.
        assert!(written("Plain", name(size)).contains(&format!("{size:04x}{hexes}")), "{size}");
        let topics = vec![(
            "Topics".into(),
            Value::Array(vec![Value::Struct(StructValue {
                fields: vec![("Name".into(), name(size))],
                tags: Vec::new(),
            })]),
        )];
        let metadata =
            encode(&bundled("MetadataRequest", 9), &Value::Struct(StructValue { fields: topics, tags: Vec::new() }));
        let metadata = hex(&metadata.unwrap_or_else(|error| panic!("{error}")));
        assert!(metadata.starts_with(&format!("02{}{hexes}00", due(size))), "{size}");
    }
}

#[test]
fn a_tree_encodes_as_its_value_does_however_far_it_was_read_and_a_part_of_it_is_no_message() {
    let layout = bundled("AlterConfigsRequest", 2);
    let bytes = parse_hex("02 02 0274 02 026b 0276 00 00 01 00").unwrap_or_else(|error| panic!("{error}"));
    let mut tree = Tree::new();
    for length in 0..=bytes.len() {
        let read = decode_into(&layout, &bytes[..length], 0, &mut tree);
        assert_eq!(read.is_ok(), length == bytes.len());
        let view = codec::View::new(&layout, &bytes[..length], &tree);
        assert_eq!(encode_view(view), encode(&layout, &view.value()), "{length}");
    }
    let view = codec::View::new(&layout, &bytes, &tree);
    for part in ["Resources", "Resources[0]", "Resources[0].Configs[0].Name", "ValidateOnly"] {
        let node = view.get(part).unwrap_or_else(|| panic!("{part} is there"));
        let mut out = vec![7];
        assert!(codec::encode_into(&layout, node, &mut out).is_err(), "{part}");
        assert_eq!(out, [7]);
    }
    let mut out = vec![7];
    assert_eq!(codec::encode_into(&layout, view.root(), &mut out), Ok(()));
    assert_eq!(out, [&[7], &bytes[..]].concat());
}

#[test]
fn tags_are_written_in_ascending_order_and_defaults_left_out() {
    let layout = bundled("ApiVersionsResponse", 3);
    let json = serde_json::json!({ "FinalizedFeaturesEpoch": 1, "ZkMigrationReady": true, "_tags": [{ "tag": 9, "hex": "ff" }, { "tag": 4, "hex": "" }] });
    let value = Value::from_json(&layout, &json, AbsentFields::Keep).unwrap_or_else(|error| panic!("{error}"));
    // ErrorCode, no keys, ThrottleTimeMs; four tags: 1 of 8 bytes, 3 of 1, 4 of none, 9 of 1.
    let bytes = encode(&layout, &value).map(|bytes| hex(&bytes));
    assert_eq!(bytes, Ok(format!("0000 01 00000000 04 0108{}01 030101 0400 0901ff", "00".repeat(7)).replace(' ', "")));
}

#[test]
fn nullable_structs_have_two_forms() {
    // KIP-893: an int8 marker in place, a uvarint inside a tagged field's payload.
    let text = r#"{"name":"T","type":"data","validVersions":"0","flexibleVersions":"0+","fields":[
        {"name":"A","type":"S","versions":"0+","nullableVersions":"0+","fields":[{"name":"Port","type":"uint16","versions":"0+"}]},
        {"name":"B","type":"S","versions":"0+","nullableVersions":"0+","taggedVersions":"0+","tag":0,"default":"null"},
        {"name":"C","type":"S","versions":"0+","nullableVersions":"0+","taggedVersions":"0+","tag":1}]}"#;
    let spec = MessageSpec::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let layout = Layout::new(&Arc::new(spec), ApiVersion(0)).unwrap_or_else(|error| panic!("{error}"));
    let check = |json: serde_json::Value, bytes: &str| {
        let value = Value::from_json(&layout, &json, AbsentFields::Keep).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(encode(&layout, &value).map(|bytes| hex(&bytes)), Ok(bytes.replace(' ', "")));
        assert_eq!(outcome(&layout, bytes), Ok(vec![]), "{bytes}");
    };
    check(serde_json::json!({ "A": null }), "ff 00");
    check(serde_json::json!({ "A": { "Port": 258 } }), "01 0102 00 00");
    // A tagged field is written when it differs from its default: null for B, the struct of defaults for C.
    check(serde_json::json!({ "A": null, "B": { "Port": 258 }, "C": null }), "ff 02 00 04 01 0102 00 01 01 00");
    check(serde_json::json!({ "A": null, "B": null, "C": { "Port": 0 } }), "ff 00");
}

#[test]
fn a_reused_tree_gives_the_same_as_a_new_one() {
    let mut tree = Tree::new();
    for layout in LAYOUTS.iter() {
        for value in [layout.smallest_instance(), layout.default_value()] {
            let bytes = encode(layout, &value).unwrap_or_else(|error| panic!("{error}"));
            let end = decode_into(layout, &bytes, 0, &mut tree).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((end, codec::View::new(layout, &bytes, &tree).value()), (bytes.len(), value));
        }
    }
}

/// Structs of strings and fixed-size fields alone, and strings.
const LISTS: &str = r#"{
  "name": "Lists", "type": "data", "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    { "name": "Rows", "type": "[]Row", "versions": "0+", "fields": [
      { "name": "Name", "type": "string", "versions": "0+" },
      { "name": "Text", "type": "string", "versions": "0+", "nullableVersions": "0+" },
      { "name": "Flag", "type": "bool", "versions": "0+" },
      { "name": "Number", "type": "int16", "versions": "0+" },
      { "name": "Last", "type": "bool", "versions": "0+" }
    ]},
    { "name": "Texts", "type": "[]string", "versions": "0+" }
  ]
}"#;

/// Elements are read in a row while all is as usual. Where that ends, by what is unusual or for want of places for nodes or of
/// text that was looked at, must not show.
#[test]
#[allow(clippy::cast_possible_truncation, reason = "all numbers are small")]
fn an_element_is_read_the_same_wherever_it_stands() {
    let spec = Arc::new(MessageSpec::parse(LISTS).unwrap_or_else(|error| panic!("{error}")));
    let long = "y".repeat(200);
    let texts: [&[u8]; 8] =
        [b"", b"a", b"log.retention", "größe".as_bytes(), b"\xff", b"x\xc3", long.as_bytes(), b"ok"];
    for (version, seed) in (0..2).flat_map(|version| (0..40).map(move |seed| (version, seed))) {
        let layout = Layout::new(&spec, ApiVersion(version)).unwrap_or_else(|error| panic!("{error}"));
        let flexible = version == 1;
        let count = |count: usize| match (flexible, count + 1) {
            (false, _) => u32::try_from(count).unwrap_or_default().to_be_bytes().to_vec(),
            (true, count @ ..0x80) => vec![count as u8],
            (true, count) => vec![count as u8 | 0x80, (count >> 7) as u8],
        };
        let mut choose = choices(seed);
        // Some messages are nearly all usual, some hardly.
        let odds = [2, 5, 40][seed as usize % 3];
        let text = |choose: &mut dyn FnMut(u64) -> u64| {
            let text = if choose(odds) == 0 { texts[choose(8) as usize] } else { &texts[2][..choose(14) as usize] };
            let length = if flexible { count(text.len()) } else { vec![0, text.len() as u8] };
            [length, text.to_vec()].concat()
        };
        let row = |choose: &mut dyn FnMut(u64) -> u64| {
            let name = text(choose);
            let null = if flexible { vec![0] } else { vec![0xff; 2] };
            let value = if choose(4) == 0 { null } else { text(choose) };
            let flags = [u8::from(choose(odds) == 0) + 1, choose(256) as u8, choose(256) as u8, choose(2) as u8];
            let tags: &[u8] = match (flexible, choose(odds)) {
                (false, _) => &[],
                (true, 0) => &[1, 7, 1, 9],
                (true, _) => &[0],
            };
            [name, value, flags.to_vec(), tags.to_vec()].concat()
        };
        let rows: Vec<Vec<u8>> = (0..300).map(|_| row(&mut choose)).collect();
        let strings: Vec<Vec<u8>> = (0..300).map(|_| text(&mut choose)).collect();
        let end: &[u8] = if flexible { &[0] } else { &[] };
        let message = |rows: &[Vec<u8>], strings: &[Vec<u8>]| {
            [count(rows.len()), rows.concat(), count(strings.len()), strings.concat(), end.to_vec()].concat()
        };
        let read = |bytes: &[u8]| {
            let decoded = decode(&layout, bytes).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(decoded.left(), 0);
            decoded.tree
        };
        let whole = message(&rows, &strings);
        let tree = read(&whole);
        // The message, and its two arrays; each element follows with what it holds.
        let (mut number, mut at, mut anomalies) = (2, count(rows.len()).len(), 0);
        let lists = [(&rows, true), (&strings, false)];
        for (list, are_rows) in lists {
            for element in list {
                let one = std::slice::from_ref(element);
                let alone = if are_rows { message(one, &[]) } else { message(&[], one) };
                let alone = read(&alone);
                let (skipped, nodes) =
                    if are_rows { (2, &alone.nodes()[2..alone.nodes().len() - 1]) } else { (3, &alone.nodes()[3..]) };
                let before = nodes[0].start;
                for (node, (found, due)) in tree.nodes()[number..].iter().zip(nodes).enumerate() {
                    let shifted = |node: &Node, start: u32, first: usize| {
                        (
                            node.start - start,
                            node.end - start,
                            node.next as usize - first,
                            node.field,
                            node.kind,
                            node.element,
                        )
                    };
                    let (found, due) = (shifted(found, at as u32, number), shifted(due, before, skipped));
                    assert_eq!(found, due, "{layout}, seed {seed}: node {node} of {}", hex(element));
                }
                (number, at, anomalies) = (number + nodes.len(), at + element.len(), anomalies + alone.anomaly_count());
            }
            (number, at) = (number + 1, at + count(strings.len()).len());
        }
        assert_eq!((number, tree.anomaly_count()), (tree.nodes().len() + 1, anomalies));
    }
}

#[test]
fn what_was_read_before_an_error_is_in_the_tree() {
    let layout = bundled("DescribeConfigsRequest", 3);
    let (bytes, mut tree) = ([0, 0, 0, 0, 1], Tree::new());
    let error = decode_into(&layout, &bytes, 0, &mut tree).map_err(|error| (error.path, error.offset));
    assert_eq!(error, Err(("IncludeDocumentation".to_owned(), 5)));
    let nodes: Vec<_> = tree.nodes().iter().map(|node| (node.start, node.end, node.is_open())).collect();
    assert_eq!(nodes, [(0, 0, true), (0, 4, false), (4, 5, false)]);
}

#[test]
fn the_null_of_one_form_is_none_in_the_other() {
    let definition = r#"{ "name": "Texts", "type": "data", "validVersions": "0-1", "flexibleVersions": "1+", "fields": [
        { "name": "Text", "type": "string", "versions": "0+", "nullableVersions": "0+" },
        { "name": "Number", "type": "int8", "versions": "0+" }]}"#;
    let spec = Arc::new(MessageSpec::parse(definition).unwrap());
    let [plain, compact] = [0, 1].map(|version| Layout::new(&spec, ApiVersion(version)).unwrap());
    let value = |layout: &Layout, bytes: &[u8]| decode(layout, bytes).map(|decoded| decoded.view().value().to_json());
    // 00 00 is an empty text, ff ff the length -1; compact, 00 is null, and ff ff 03 begins a text of 65,534 bytes.
    assert_eq!(value(&plain, &[0, 0, 7]), Ok(serde_json::json!({ "Text": "", "Number": 7 })));
    assert_eq!(value(&plain, &[0xff, 0xff, 7]), Ok(serde_json::json!({ "Text": null, "Number": 7 })));
    assert_eq!(value(&compact, &[0, 7, 0]), Ok(serde_json::json!({ "Text": null, "Number": 7 })));
    let error = value(&compact, &[0xff, 0xff, 3, 0, 0]).unwrap_err();
    assert_eq!((&*error.path, error.kind), ("Text", DecodeErrorKind::LengthExceedsInput { claimed: 65_534, left: 2 }));
}
