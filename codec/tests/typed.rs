//! A user's own types, read from messages and written as messages.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

use codec::{
    AbsentFields, ApiVersion, EncodeErrorKind, Fixed, Layout, MessageSpec, StructValue, Value, WireType, decode,
    deserialize, encode, hex, parse_hex, properties, serialize,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, LazyLock};

fn layout(text: &str, version: i16) -> Layout {
    let spec = MessageSpec::parse(text).unwrap_or_else(|error| panic!("{error}"));
    Layout::new(&Arc::new(spec), ApiVersion(version)).unwrap_or_else(|error| panic!("{error}"))
}

/// Every type there is; two tagged fields; one field that only the second version has, one that it may drop.
const MIXED: &str = r#"{ "name": "Mixed", "type": "data", "validVersions": "0-1", "flexibleVersions": "1+", "fields": [
    { "name": "Flag", "type": "bool", "versions": "0+" },
    { "name": "Small", "type": "int8", "versions": "0+" },
    { "name": "Port", "type": "uint16", "versions": "0+", "default": "9092" },
    { "name": "Large", "type": "int64", "versions": "0+" },
    { "name": "Real", "type": "float64", "versions": "0+" },
    { "name": "Id", "type": "uuid", "versions": "0+" },
    { "name": "Blob", "type": "bytes", "versions": "0+", "nullableVersions": "0+" },
    { "name": "Numbers", "type": "[]int32", "versions": "0+" },
    { "name": "Inner", "type": "Inner", "versions": "0+", "nullableVersions": "0+", "fields": [
      { "name": "Name", "type": "string", "versions": "0+" }]},
    { "name": "Late", "type": "int16", "versions": "1+" },
    { "name": "Lax", "type": "int16", "versions": "1+", "ignorable": true },
    { "name": "First", "type": "string", "versions": "1+", "taggedVersions": "1+", "tag": 0, "default": "one" },
    { "name": "Second", "type": "int32", "versions": "1+", "taggedVersions": "1+", "tag": 1 }] }"#;

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Mixed<'a> {
    flag: bool,
    small: i8,
    port: u16,
    large: i64,
    real: f64,
    id: [u8; 16],
    blob: Option<Vec<u8>>,
    numbers: Vec<i32>,
    #[serde(borrow)]
    inner: Option<Inner<'a>>,
    late: i16,
    lax: i16,
    first: String,
    second: i32,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Inner<'a> {
    name: &'a str,
}

fn mixed() -> Mixed<'static> {
    Mixed {
        flag: true,
        small: -2,
        port: 0xabcd,
        large: 1,
        real: 1.0,
        id: [7; 16],
        blob: Some(vec![0, 255]),
        numbers: vec![1, -1],
        inner: Some(Inner { name: "x" }),
        late: 3,
        lax: 4,
        first: "one".to_owned(),
        second: 5,
    }
}

/// [`mixed`] at version 1, by hand: its first tag is at its default and left out.
const MIXED_1: &str = "01 fe abcd 0000000000000001 3ff0000000000000 07070707070707070707070707070707 0300ff
    0300000001ffffffff 01 0278 00 0003 0004 01 01 04 00000005";

#[test]
fn every_type_is_read_and_written() {
    let layout = layout(MIXED, 1);
    let bytes = parse_hex(MIXED_1).unwrap_or_else(|error| panic!("{error}"));
    let decoded = decode(&layout, &bytes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(deserialize(decoded.view()), Ok(mixed()));
    assert_eq!(serialize(&layout, &mixed()).map(|bytes| hex(&bytes)), Ok(hex(&bytes)));
}

#[test]
fn nulls_are_none_and_absent_tags_are_defaults() {
    let layout = layout(MIXED, 1);
    let value = Mixed { blob: None, inner: None, first: "two".to_owned(), second: 0, ..mixed() };
    let bytes = "01 fe abcd 0000000000000001 3ff0000000000000 07070707070707070707070707070707 00
        0300000001ffffffff ff 0003 0004 01 00 04 0474776f";
    let bytes = parse_hex(bytes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(serialize(&layout, &value).map(|bytes| hex(&bytes)), Ok(hex(&bytes)));
    let decoded = decode(&layout, &bytes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(deserialize(decoded.view()), Ok(value));
}

#[test]
fn a_type_with_fewer_fields_reads_those_and_writes_defaults() {
    #[derive(Debug, PartialEq, Deserialize, Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Few {
        numbers: Vec<i32>,
        small: i8,
    }
    let layout = layout(MIXED, 0);
    // The port's default is 9092, which is 2384.
    let bytes = "00 05 2384 0000000000000000 0000000000000000 00000000000000000000000000000000 00000000
        00000001 00000007 01 0000";
    let bytes = parse_hex(bytes).unwrap_or_else(|error| panic!("{error}"));
    let few = Few { numbers: vec![7], small: 5 };
    assert_eq!(serialize(&layout, &few).map(|bytes| hex(&bytes)), Ok(hex(&bytes)));
    let decoded = decode(&layout, &bytes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(deserialize(decoded.view()), Ok(few));
}

#[test]
fn fields_that_the_version_lacks_are_dropped_or_refused() {
    let layout = layout(MIXED, 0);
    let refused = |value: Mixed| serialize(&layout, &value).map(drop).map_err(|error| (error.path, error.kind));
    let tags_at_default = || Mixed { second: 0, ..mixed() };
    assert_eq!(refused(Mixed { late: 0, lax: 9, first: "one".to_owned(), ..tags_at_default() }), Ok(()));
    let late = EncodeErrorKind::FieldNotInVersion("Late".to_owned());
    assert_eq!(refused(tags_at_default()), Err((String::new(), late)));
    let second = EncodeErrorKind::FieldNotInVersion("Second".to_owned());
    assert_eq!(refused(Mixed { late: 0, ..mixed() }), Err((String::new(), second)));
}

#[test]
fn an_error_that_is_passed_over_is_told_all_the_same() {
    /// Goes on after a field that the message does not have, or whose value does not fit.
    struct Careless(&'static str, i64);
    impl Serialize for Careless {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeStruct;
            let mut fields = serializer.serialize_struct("Careless", 3)?;
            let _ = fields.serialize_field(self.0, &self.1);
            fields.serialize_field("Small", &1)?;
            fields.end()
        }
    }
    /// Goes on after an element.
    struct CarelessList;
    impl Serialize for CarelessList {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeSeq;
            let mut elements = serializer.serialize_seq(Some(2))?;
            let _ = elements.serialize_element("one");
            elements.serialize_element(&1)?;
            elements.end()
        }
    }
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Numbers {
        numbers: CarelessList,
    }
    let layout = layout(MIXED, 1);
    let mut out = vec![0xaa; 10];
    for careless in [Careless("Nope", 1), Careless("Flag", 7), Careless("Second", 1 << 40)] {
        // That, or what comes of having gone on.
        assert!(codec::serialize_into(&layout, &careless, &mut out).is_err(), "{}", careless.0);
        assert_eq!(out, [0xaa; 10]);
    }
    let result = codec::serialize_into(&layout, &Numbers { numbers: CarelessList }, &mut out);
    let passed_over = EncodeErrorKind::Text("an error was passed over".to_owned());
    assert_eq!((result.map_err(|error| error.kind), out), (Err(passed_over), vec![0xaa; 10]));
}

#[test]
fn the_default_of_a_tagged_struct_leaves_out_the_tagged_fields_within() {
    let definition = r#"{ "name": "Nested", "type": "data", "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "Outer", "type": "Outer", "versions": "0+", "taggedVersions": "0+", "tag": 0, "fields": [
            { "name": "Number", "type": "int8", "versions": "0+" },
            { "name": "Inner", "type": "Inner", "versions": "0+", "taggedVersions": "0+", "tag": 0, "fields": [
                { "name": "Size", "type": "int16", "versions": "0+", "taggedVersions": "0+", "tag": 0 }]}]}]}"#;
    let layout = layout(definition, 0);
    assert_eq!(encode(&layout, &layout.default_value()), Ok(vec![0]));
    for json in
        [serde_json::json!({}), serde_json::json!({ "Outer": {} }), serde_json::json!({ "Outer": { "Inner": {} } })]
    {
        assert_eq!(serialize(&layout, &json), Ok(vec![0]), "{json}");
    }
    let decoded = decode(&layout, &[0]).unwrap();
    assert_eq!(encode(&layout, &decoded.view().value()), Ok(vec![0]));
    // One tag, number 0, 2 bytes: the number 0 and no tags, which is the default; with a number of 1 it is not.
    let anomalies = |bytes: &[u8]| decode(&layout, bytes).unwrap().tree.anomaly_count();
    assert_eq!((anomalies(&[1, 0, 2, 0, 0]), anomalies(&[1, 0, 2, 1, 0])), (1, 0));

    // What is borrowed does not hang on whether the field was there.
    #[derive(Debug, PartialEq, Deserialize)]
    struct Borrowing<'a> {
        #[serde(rename = "Outer", borrow)]
        outer: std::collections::BTreeMap<&'a str, serde::de::IgnoredAny>,
    }
    for bytes in [&[0][..], &[1, 0, 2, 1, 0]] {
        let decoded = decode(&layout, bytes).unwrap();
        let read: Borrowing = deserialize(decoded.view()).unwrap();
        assert_eq!(read.outer.keys().collect::<Vec<_>>(), [&"Inner", &"Number"]);
    }
}

#[test]
fn a_bool_may_be_given_as_a_number() {
    let definition = r#"{ "name": "Flag", "type": "data", "validVersions": "0", "flexibleVersions": "none", "fields": [
        { "name": "Flag", "type": "bool", "versions": "0+" }] }"#;
    let layout = layout(definition, 0);
    let StructValue { mut fields, tags } = layout.default_value().as_struct().unwrap().clone();
    for (number, encoded) in [(0, Some("00")), (1, Some("01")), (2, None), (-1, None)] {
        fields[0].1 = Value::Integer(number);
        let value = Value::Struct(StructValue { fields: fields.clone(), tags: tags.clone() });
        let json = serde_json::json!({ "Flag": number });
        for bytes in [encode(&layout, &value), serialize(&layout, &json)] {
            let due = encoded.map(str::to_owned).ok_or(EncodeErrorKind::OutOfRange("bool"));
            assert_eq!(bytes.map(|bytes| hex(&bytes)).map_err(|error| error.kind), due, "{number}");
        }
    }
}

#[test]
fn a_field_that_the_version_lacks_may_be_at_its_default_in_any_form() {
    let definition = r#"{ "name": "Later", "type": "data", "validVersions": "0-1", "flexibleVersions": "none", "fields": [
        { "name": "Number", "type": "int8", "versions": "0+" },
        { "name": "Inner", "type": "Inner", "versions": "1+", "fields": [
            { "name": "Size", "type": "int32", "versions": "0+", "default": "-1" },
            { "name": "Real", "type": "float64", "versions": "0+", "default": "2" }]},
        { "name": "Id", "type": "uuid", "versions": "1+" },
        { "name": "Large", "type": "int64", "versions": "1+", "default": "9223372036854775807" },
        { "name": "Blob", "type": "bytes", "versions": "1+" }] }"#;
    let layout = layout(definition, 0);
    let encoded = |json: &serde_json::Value| {
        let value = Value::from_json(&layout, json, AbsentFields::Keep);
        let by_value = value.and_then(|value| encode(&layout, &value));
        assert_eq!(by_value.is_ok(), serialize(&layout, json).is_ok(), "{json}");
        by_value.map(|bytes| hex(&bytes)).map_err(|error| error.kind)
    };
    let zeros = [0; 16];
    for default in [
        serde_json::json!({ "Inner": {} }),
        serde_json::json!({ "Inner": { "Size": -1 } }),
        serde_json::json!({ "Inner": { "Size": -1, "Real": 2.0 } }),
        serde_json::json!({ "Inner": { "Real": 2 } }),
        serde_json::json!({ "Id": zeros }),
        serde_json::json!({ "Id": "AAAAAAAAAAAAAAAAAAAAAA" }),
        serde_json::json!({ "Large": i64::MAX }),
        serde_json::json!({ "Large": "9223372036854775807" }),
        serde_json::json!({ "Blob": [] }),
        serde_json::json!({ "Blob": "" }),
        serde_json::json!({ "Blob": { "hex": "" } }),
    ] {
        assert_eq!(encoded(&default), Ok("00".to_owned()), "{default}");
    }
    for (field, other) in [
        ("Inner", serde_json::json!({ "Size": 0 })),
        ("Inner", serde_json::json!({ "Real": 2.5 })),
        ("Inner", serde_json::json!({ "Nope": -1 })),
        ("Inner", serde_json::json!(null)),
        ("Id", serde_json::json!(&zeros[1..])),
        ("Id", serde_json::json!("AAAAAAAAAAAAAAAAAAAAAQ")),
        ("Large", serde_json::json!("0")),
        ("Blob", serde_json::json!([0])),
    ] {
        let refused = EncodeErrorKind::FieldNotInVersion(field.to_owned());
        assert_eq!(encoded(&serde_json::json!({ field: other })), Err(refused), "{field} {other}");
    }
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct TooLarge {
        large: u128,
    }
    let error = serialize(&layout, &TooLarge { large: u128::MAX }).unwrap_err();
    assert_eq!(error.path, "Large", "{error}");
}

#[test]
fn what_does_not_fit_is_refused_with_its_path() {
    let layout = layout(MIXED, 1);
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Odd<T> {
        numbers: T,
    }
    fn refused<T: Serialize>(layout: &Layout, numbers: T) -> Result<String, (String, EncodeErrorKind)> {
        serialize(layout, &Odd { numbers }).map(|bytes| hex(&bytes)).map_err(|error| (error.path, error.kind))
    }
    let at = |path: &str, kind| Err((path.to_owned(), kind));
    assert_eq!(refused(&layout, [1_i64, 1 << 31]), at("Numbers[1]", EncodeErrorKind::OutOfRange("int32")));
    assert_eq!(refused(&layout, "1"), at("Numbers", EncodeErrorKind::Type("array")));
    assert_eq!(refused(&layout, None::<i32>), at("Numbers", EncodeErrorKind::NullNotAllowed));
    assert_eq!(refused(&layout, [None::<i32>]), at("Numbers[0]", EncodeErrorKind::NullNotAllowed));
    let json = serde_json::json!({ "Nope": 1 });
    let nope = EncodeErrorKind::UnknownField("Nope".to_owned());
    assert_eq!(serialize(&layout, &json).map_err(|error| (error.path, error.kind)), Err((String::new(), nope)));

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Narrow {
        #[serde(rename = "Numbers")]
        _numbers: Vec<u8>,
    }
    let bytes = serialize(&layout, &mixed()).unwrap_or_else(|error| panic!("{error}"));
    let decoded = decode(&layout, &bytes).unwrap_or_else(|error| panic!("{error}"));
    let error = deserialize::<Narrow>(decoded.view()).map_err(|error| error.path().to_owned());
    assert_eq!(error, Err("Numbers[1]".to_owned()));
}

#[test]
fn a_count_that_was_not_told_is_put_in_after_the_elements() {
    struct Untold(usize);
    impl Serialize for Untold {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            // A filter does not tell how many pass it.
            serializer.collect_seq((0..self.0).filter(|_| true))
        }
    }
    #[derive(Serialize)]
    struct Names {
        #[serde(rename = "A")]
        numbers: Untold,
    }
    let text = r#"{ "name": "T", "type": "data", "validVersions": "0-1", "flexibleVersions": "1+", "fields": [
        { "name": "A", "type": "[]int8", "versions": "0+" }] }"#;
    let numbers = || Names { numbers: Untold(3) };
    assert_eq!(serialize(&layout(text, 0), &numbers()).map(|bytes| hex(&bytes)), Ok("00000003000102".to_owned()));
    assert_eq!(serialize(&layout(text, 1), &numbers()).map(|bytes| hex(&bytes)), Ok("0400010200".to_owned()));
    // 128 and the one more of a compact count take two bytes: 81 01.
    let many = serialize(&layout(text, 1), &Names { numbers: Untold(128) }).map(|bytes| hex(&bytes));
    assert!(many.is_ok_and(|bytes| bytes.starts_with("8101000102") && bytes.len() == 2 * (2 + 128 + 1)));
}

/// Every bundled message that JSON has all types of, at every version.
static LAYOUTS: LazyLock<Vec<Layout>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas");
    let files = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{error}")).map(|entry| entry.unwrap().path());
    let json = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let mut layouts: Vec<Layout> = json
        .flat_map(|path| {
            let spec = Arc::new(MessageSpec::parse(&std::fs::read_to_string(&path).unwrap()).unwrap());
            spec.valid_versions.iter().map(|version| Layout::new(&spec, version).unwrap()).collect::<Vec<_>>()
        })
        .filter(|layout| {
            let lacking = |wire| {
                matches!(wire, WireType::Bytes { .. } | WireType::Fixed(Fixed::Uuid | Fixed::Float64))
                    || matches!(wire, WireType::Array { element, .. }
                        if !matches!(element, codec::Element::Struct(_) | codec::Element::String | codec::Element::Fixed(Fixed::Int8 | Fixed::Int16 | Fixed::Int32 | Fixed::Int64)))
            };
            !layout.fields().iter().any(|field| lacking(field.wire))
        })
        .collect();
    layouts.sort_by_key(Layout::to_string);
    assert!(layouts.len() > 40, "{}", layouts.len());
    layouts
});

/// The same with the fields of each struct in the opposite order.
fn reversed(json: &serde_json::Value) -> serde_json::Value {
    match json {
        serde_json::Value::Array(elements) => elements.iter().map(reversed).collect(),
        serde_json::Value::Object(fields) => {
            fields.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect()
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// serde_json's `Value` is a type like any other here.
    #[test]
    fn any_value_goes_through_a_type_of_its_own(index: prop::sample::Index, seed: u64) {
        let layout = index.get(LAYOUTS.as_slice());
        let mut value = properties::seeded_value(layout, seed);
        properties::clear_unknown_tags(&mut value);
        let bytes = encode(layout, &value).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let decoded = decode(layout, &bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let json: serde_json::Value =
            deserialize(decoded.view()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let again = serialize(layout, &json).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(hex(&again), hex(&bytes));
        let again = serialize(layout, &reversed(&json)).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(hex(&again), hex(&bytes));
    }
}
