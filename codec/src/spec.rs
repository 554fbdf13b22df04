//! Message definitions: one message, all its versions, as Kafka's definition language states it. What is wrong with a
//! definition is found here, once; whoever holds a [`MessageSpec`] need not check again.

use crate::error::{SpecError, SpecErrorKind};
use crate::layout::Fixed;
use crate::version::{ApiKey, VersionRange};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a message is for; definition attribute `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageKind {
    /// Body of a request.
    Request,
    /// Body of a response.
    Response,
    /// Request or response header.
    Header,
    /// A structure that is stored or embedded, with a version of its own.
    Data,
    /// A record of the metadata log.
    Metadata,
    /// The key of a coordinator's record.
    CoordinatorKey,
    /// The value of a coordinator's record.
    CoordinatorValue,
}

/// A message definition.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageSpec {
    /// `name`, which is also the file's name.
    pub name: Arc<str>,
    /// `type`.
    pub kind: MessageKind,
    /// `apiKey`, of requests and responses.
    pub api_key: Option<ApiKey>,
    /// `listeners`: where a request is served.
    pub listeners: Vec<String>,
    /// `validVersions`; `none` for an API that was removed.
    pub valid_versions: VersionRange,
    /// `flexibleVersions`: versions with compact lengths and tagged fields (KIP-482).
    pub flexible_versions: VersionRange,
    /// `deprecatedVersions`.
    pub deprecated_versions: VersionRange,
    /// `latestVersionUnstable`: the highest version may still change and is never held against a peer.
    pub latest_version_unstable: bool,
    /// What the message is for, in this project's words.
    pub about: Option<Arc<str>>,
    /// What changed in each version, in this project's words.
    pub history: BTreeMap<i16, String>,
    /// The message's own fields.
    pub fields: Vec<FieldSpec>,
    /// Every struct of the message by name: `commonStructs` and those defined in place.
    pub structs: BTreeMap<Arc<str>, StructSpec>,
}

/// A struct of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct StructSpec {
    /// Its name.
    pub name: Arc<str>,
    /// `versions` of a common struct; all versions for one defined in place.
    pub versions: VersionRange,
    /// Its fields in wire order.
    pub fields: Vec<FieldSpec>,
}

/// A field of a message or struct.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldSpec {
    /// `name`.
    pub name: Arc<str>,
    /// `type`.
    pub field_type: FieldType,
    /// `versions` that have it.
    pub versions: VersionRange,
    /// `nullableVersions`; may be wider than `versions`.
    pub nullable_versions: VersionRange,
    /// `taggedVersions`: where it is a tagged field.
    pub tagged_versions: VersionRange,
    /// `tag`.
    pub tag: Option<u32>,
    /// `flexibleVersions` of the field, where it differs from the message's (ClientId has none).
    pub flexible_versions: Option<VersionRange>,
    /// `default`, checked against the type.
    pub default: FieldDefault,
    /// `ignorable`: an encoder may drop it from a version that lacks it.
    pub ignorable: bool,
    /// `mapKey`.
    pub map_key: bool,
    /// `entityType`.
    pub entity_type: Option<String>,
    /// `about`, in this project's words.
    pub about: Option<Arc<str>>,
}

/// The type of a field, before any version is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the type of the same name in the definition language")]
pub enum FieldType {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    Uuid,
    String,
    Bytes,
    Records,
    /// A struct of the message, by name.
    Struct(Arc<str>),
    /// `[]T`; an array of arrays does not exist.
    Array(Box<FieldType>),
}

/// A field's default, as parsed from `default`; it is zero, empty or the struct of defaults unless stated.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldDefault {
    /// Not stated: zero, "", empty, false, the struct of defaults; null for records.
    Zero,
    /// `null`.
    Null,
    /// A number, or a bool as 0 and 1.
    Integer(i64),
    /// A float64.
    Float(f64),
    /// Text.
    Text(String),
}

impl FieldType {
    fn parse(text: &str) -> Result<FieldType, String> {
        Ok(match text {
            "bool" => FieldType::Bool,
            "int8" => FieldType::Int8,
            "int16" => FieldType::Int16,
            "uint16" => FieldType::Uint16,
            "int32" => FieldType::Int32,
            "uint32" => FieldType::Uint32,
            "int64" => FieldType::Int64,
            "float64" => FieldType::Float64,
            "uuid" => FieldType::Uuid,
            "string" => FieldType::String,
            "bytes" => FieldType::Bytes,
            "records" => FieldType::Records,
            _ => match text.strip_prefix("[]") {
                Some(element) => match FieldType::parse(element)? {
                    FieldType::Array(_) => return Err(text.to_owned()),
                    element => FieldType::Array(Box::new(element)),
                },
                None if text.starts_with(|first: char| first.is_ascii_uppercase()) => FieldType::Struct(text.into()),
                None => return Err(text.to_owned()),
            },
        })
    }

    /// The struct that a field of this type, or its elements, are made of.
    pub fn struct_name(&self) -> Option<&Arc<str>> {
        match self {
            FieldType::Struct(name) => Some(name),
            FieldType::Array(element) => element.struct_name(),
            _ => None,
        }
    }

    /// Least and greatest value of an integer type.
    pub fn integer_range(&self) -> Option<(i64, i64)> {
        Fixed::of(self)?.integer_range()
    }

    /// Whether the type has a null at all.
    pub fn has_null(&self) -> bool {
        matches!(
            self,
            FieldType::String | FieldType::Bytes | FieldType::Records | FieldType::Struct(_) | FieldType::Array(_)
        )
    }
}

/// The definition's text as it is written, before anything is checked.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawMessage {
    name: String,
    #[serde(rename = "type")]
    kind: MessageKind,
    api_key: Option<i16>,
    #[serde(default)]
    listeners: Vec<String>,
    valid_versions: String,
    flexible_versions: Option<String>,
    deprecated_versions: Option<String>,
    #[serde(default)]
    latest_version_unstable: bool,
    about: Option<String>,
    #[serde(default)]
    history: BTreeMap<i16, String>,
    #[serde(default)]
    fields: Vec<RawField>,
    #[serde(default)]
    common_structs: Vec<RawStruct>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawStruct {
    name: String,
    versions: String,
    fields: Vec<RawField>,
    // Said of a struct in some releases; it has no meaning for the wire.
    #[serde(rename = "about")]
    _about: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawField {
    name: String,
    #[serde(rename = "type")]
    field_type: String,
    versions: Option<String>,
    nullable_versions: Option<String>,
    tagged_versions: Option<String>,
    #[serde(default, deserialize_with = "plain_or_text")]
    tag: Option<u32>,
    flexible_versions: Option<String>,
    default: Option<Json>,
    #[serde(default, deserialize_with = "plain_or_text")]
    ignorable: Option<bool>,
    #[serde(default, deserialize_with = "plain_or_text")]
    map_key: Option<bool>,
    entity_type: Option<String>,
    // How Java holds it in memory.
    #[serde(rename = "zeroCopy")]
    _zero_copy: Option<bool>,
    about: Option<String>,
    #[serde(default)]
    fields: Vec<RawField>,
}

/// A number or bool, also when it is written as text.
fn plain_or_text<'de, D: serde::Deserializer<'de>, T: serde::de::DeserializeOwned>(
    json: D,
) -> Result<Option<T>, D::Error> {
    use serde::de::Error as _;
    let plain = match Json::deserialize(json)? {
        Json::String(text) => serde_json::from_str(&text).map_err(D::Error::custom)?,
        plain => plain,
    };
    serde_json::from_value(plain).map(Some).map_err(D::Error::custom)
}

impl MessageSpec {
    /// How deep structs may stand in one another. Apache Kafka's own go to a handful; each takes two levels in JSON, of
    /// which readers commonly take 128, and one call in every walk over a message.
    pub const LEVELS: usize = 32;
    /// How many fields a message may have when each struct is counted wherever it stands. That is what its default and
    /// its smallest instance grow to, and structs that hold two of another double it at each level.
    pub const PLACES: usize = 16_384;

    /// Parses one definition: JSON with whole-line `//` comments.
    pub fn parse(text: &str) -> Result<MessageSpec, SpecError> {
        // Comments become empty lines, so that the line numbers of syntax errors stay right.
        let json: Vec<&str> =
            text.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line }).collect();
        // Released definitions hold an attribute twice (the last counts), tags and bools as text, and now and then
        // something after the end: all of it is taken, as Kafka's own generator takes it.
        let json = Json::deserialize(&mut serde_json::Deserializer::from_str(&json.join("\n")))
            .and_then(serde_json::from_value);
        let raw: RawMessage = json.map_err(|error| fault("definition", SpecErrorKind::Syntax(error.to_string())))?;
        let place = raw.name.clone();
        check_name(&place, &raw.name)?;
        let valid_versions = versions(&place, &raw.valid_versions)?;
        let optional =
            |text: &Option<String>| text.as_deref().map_or(Ok(VersionRange::NONE), |text| versions(&place, text));
        let flexible_versions = optional(&raw.flexible_versions)?;
        let deprecated_versions = optional(&raw.deprecated_versions)?;
        let mut structs = BTreeMap::new();
        for common in raw.common_structs {
            let place = format!("{place}.{}", common.name);
            check_name(&place, &common.name)?;
            let versions = versions(&place, &common.versions)?;
            let name: Arc<str> = common.name.as_str().into();
            let fields = fields(&place, common.fields, flexible_versions, &mut structs)?;
            if structs.insert(name.clone(), StructSpec { name, versions, fields }).is_some() {
                return Err(fault(&place, SpecErrorKind::Duplicate(format!("struct {}", common.name))));
            }
        }
        let fields = fields(&place, raw.fields, flexible_versions, &mut structs)?;
        let spec = MessageSpec {
            name: raw.name.into(),
            kind: raw.kind,
            api_key: raw.api_key.map(ApiKey),
            listeners: raw.listeners,
            valid_versions,
            flexible_versions,
            deprecated_versions,
            latest_version_unstable: raw.latest_version_unstable,
            about: raw.about.map(Into::into),
            history: raw.history,
            fields,
            structs,
        };
        let mut extents = Extents { structs: &spec.structs, known: BTreeMap::new(), open: Vec::new() };
        extents.of_fields(&spec.fields, &spec.name)?;
        // A common struct that no field is made of has to be right all the same.
        for name in spec.structs.keys() {
            extents.of_struct(name, &format!("{}.{name}", spec.name))?;
        }
        Ok(spec)
    }

    /// The API's name: the message's without `Request` or `Response`.
    pub fn api_name(&self) -> &str {
        match self.kind {
            MessageKind::Request => self.name.strip_suffix("Request").unwrap_or(&self.name),
            MessageKind::Response => self.name.strip_suffix("Response").unwrap_or(&self.name),
            _ => &self.name,
        }
    }
}

/// What a struct comes to, written out.
#[derive(Clone, Copy, Default)]
struct Extent {
    /// How many structs stand in one another in it.
    levels: usize,
    /// Its fields and those of the structs in it, wherever they stand.
    places: usize,
}

/// Checks what only shows when all structs are known: that each there is, none holds itself, and none is too deep or too
/// large. Each struct is looked at once, however many fields are made of it.
struct Extents<'s> {
    structs: &'s BTreeMap<Arc<str>, StructSpec>,
    known: BTreeMap<&'s str, Extent>,
    /// The structs being looked at, each in the one before.
    open: Vec<&'s str>,
}

impl<'s> Extents<'s> {
    fn of_fields(&mut self, fields: &'s [FieldSpec], place: &str) -> Result<Extent, SpecError> {
        let mut extent = Extent { levels: 0, places: fields.len() };
        for field in fields {
            let Some(name) = field.field_type.struct_name() else { continue };
            let place = format!("{place}.{}", field.name);
            let inner = self.of_struct(name, &place)?;
            extent.levels = extent.levels.max(1 + inner.levels);
            extent.places = extent.places.saturating_add(inner.places);
            if extent.levels > MessageSpec::LEVELS {
                return Err(fault(&place, SpecErrorKind::TooDeep));
            }
        }
        if extent.places > MessageSpec::PLACES {
            return Err(fault(place, SpecErrorKind::TooLarge));
        }
        Ok(extent)
    }

    fn of_struct(&mut self, name: &'s str, place: &str) -> Result<Extent, SpecError> {
        if let Some(&extent) = self.known.get(name) {
            return Ok(extent);
        }
        let Some(spec) = self.structs.get(name) else {
            return Err(fault(place, SpecErrorKind::UnknownType(name.to_owned())));
        };
        if self.open.contains(&name) {
            return Err(fault(place, SpecErrorKind::Recursive(name.to_owned())));
        }
        // Found while going down, so that a long chain ends here and not at the end of the stack.
        if self.open.len() > MessageSpec::LEVELS {
            return Err(fault(place, SpecErrorKind::TooDeep));
        }
        self.open.push(name);
        let extent = self.of_fields(&spec.fields, place)?;
        self.open.pop();
        self.known.insert(name, extent);
        Ok(extent)
    }
}

fn fault(place: &str, kind: SpecErrorKind) -> SpecError {
    SpecError { place: place.to_owned(), kind }
}

/// Names are what Apache Kafka's generator takes for fields: nothing in them has a meaning in paths.
fn check_name(place: &str, name: &str) -> Result<(), SpecError> {
    let letters = name.bytes().all(|letter| letter.is_ascii_alphanumeric());
    match name.bytes().next() {
        Some(first) if letters && first.is_ascii_alphabetic() => Ok(()),
        _ => Err(fault(place, SpecErrorKind::Name(name.to_owned()))),
    }
}

fn versions(place: &str, text: &str) -> Result<VersionRange, SpecError> {
    text.parse()
        .map_err(|error: crate::version::VersionRangeError| fault(place, SpecErrorKind::Versions(error.to_string())))
}

fn fields(
    place: &str,
    raw: Vec<RawField>,
    flexible: VersionRange,
    structs: &mut BTreeMap<Arc<str>, StructSpec>,
) -> Result<Vec<FieldSpec>, SpecError> {
    let mut names = BTreeSet::new();
    let mut tags = BTreeSet::new();
    let mut fields = Vec::with_capacity(raw.len());
    for raw in raw {
        let place = format!("{place}.{}", raw.name);
        let here = |kind| fault(&place, kind);
        check_name(&place, &raw.name)?;
        if !names.insert(raw.name.clone()) {
            return Err(here(SpecErrorKind::Duplicate(format!("field {}", raw.name))));
        }
        let range = |text: &Option<String>, absent| text.as_deref().map_or(Ok(absent), |text| versions(&place, text));
        let field_type = FieldType::parse(&raw.field_type).map_err(|text| here(SpecErrorKind::UnknownType(text)))?;
        let tagged_versions = range(&raw.tagged_versions, VersionRange::NONE)?;
        // Where a field is always tagged, its versions may be left out.
        let field_versions = range(&raw.versions, tagged_versions)?;
        let nullable_versions = range(&raw.nullable_versions, VersionRange::NONE)?;
        let flexible_versions = raw.flexible_versions.as_deref().map(|text| versions(&place, text)).transpose()?;
        match raw.tag {
            None if !tagged_versions.is_none() => {
                return Err(here(SpecErrorKind::Tag("taggedVersions without a tag".to_owned())));
            }
            Some(_) if tagged_versions.is_none() => {
                return Err(here(SpecErrorKind::Tag("a tag without taggedVersions".to_owned())));
            }
            Some(_) if !flexible.includes(tagged_versions) => {
                return Err(here(SpecErrorKind::Tag(format!(
                    "tagged in versions {tagged_versions}, flexible are only {flexible}"
                ))));
            }
            Some(_) if !field_versions.includes(tagged_versions) => {
                return Err(here(SpecErrorKind::Tag(format!(
                    "tagged in versions {tagged_versions}, it is there only in {field_versions}"
                ))));
            }
            Some(tag) if !tags.insert(tag) => return Err(here(SpecErrorKind::Duplicate(format!("tag {tag}")))),
            _ => {}
        }
        if !nullable_versions.is_none() && !field_type.has_null() {
            return Err(here(SpecErrorKind::Nullable));
        }
        if !raw.fields.is_empty() {
            let Some(name) = field_type.struct_name().cloned() else {
                return Err(here(SpecErrorKind::UnknownType(format!("{} with fields", raw.field_type))));
            };
            let inner = self::fields(&place, raw.fields, flexible, structs)?;
            let spec = StructSpec { name: name.clone(), versions: field_versions, fields: inner };
            if structs.insert(name.clone(), spec).is_some() {
                return Err(here(SpecErrorKind::Duplicate(format!("struct {name}"))));
            }
        }
        let default = default(&field_type, &raw.default, nullable_versions).ok_or_else(|| {
            here(SpecErrorKind::Default(raw.default.map(|json| json.to_string()).unwrap_or_default()))
        })?;
        fields.push(FieldSpec {
            name: raw.name.into(),
            field_type,
            versions: field_versions,
            nullable_versions,
            tagged_versions,
            tag: raw.tag,
            flexible_versions,
            default,
            ignorable: raw.ignorable.unwrap_or(false),
            map_key: raw.map_key.unwrap_or(false),
            entity_type: raw.entity_type,
            about: raw.about.map(Into::into),
        });
    }
    Ok(fields)
}

/// Defaults are written as JSON bool, number, string ("-1", "0x7fffffff", "true", "null") or null.
fn default(field_type: &FieldType, json: &Option<Json>, nullable: VersionRange) -> Option<FieldDefault> {
    let text = match json {
        None => return Some(FieldDefault::Zero),
        Some(Json::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    if text == "null" && field_type.has_null() {
        return (!nullable.is_none()).then_some(FieldDefault::Null);
    }
    if text.is_empty() && *field_type != FieldType::String {
        return Some(FieldDefault::Zero);
    }
    match field_type {
        FieldType::Bool => text.parse::<bool>().ok().map(|value| FieldDefault::Integer(value.into())),
        FieldType::Float64 => decimal(&text).map(FieldDefault::Float),
        FieldType::String => Some(FieldDefault::Text(text)),
        _ => {
            let (least, greatest) = field_type.integer_range()?;
            let value = integer(&text)?;
            (least..=greatest).contains(&value).then_some(FieldDefault::Integer(value))
        }
    }
}

/// An integer literal: digits with or without a minus, or `0x` and hex digits. `from_str` alone takes a plus too, and a
/// sign after the `0x`.
fn integer(text: &str) -> Option<i64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let magnitude = if radix == 10 { digits.strip_prefix('-').unwrap_or(digits) } else { digits };
    let plain = magnitude.chars().all(|digit| digit.is_digit(radix));
    if plain { i64::from_str_radix(digits, radix).ok() } else { None }
}

/// A float64 literal: a finite decimal number without a plus before it.
fn decimal(text: &str) -> Option<f64> {
    let plain = !text.starts_with('+')
        && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
    text.parse().ok().filter(|value: &f64| plain && value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(fields: &str) -> Result<MessageSpec, SpecErrorKind> {
        let text = format!(
            r#"{{"name":"T","type":"data","validVersions":"0-3","flexibleVersions":"2+","fields":[{fields}]}}"#
        );
        MessageSpec::parse(&text).map_err(|error| error.kind)
    }

    #[test]
    fn defaults_are_read_in_every_spelling() {
        let spec = parse(
            r#"{"name":"A","type":"int32","versions":"0+","default":"0x7fffffff"},{"name":"B","type":"bool","versions":"0+","default":true},
               {"name":"C","type":"string","versions":"0+","nullableVersions":"0+","default":"null"},{"name":"D","type":"int64","versions":"0+","default":-1}"#,
        );
        let defaults: Vec<FieldDefault> =
            spec.unwrap_or_else(|kind| panic!("{kind}")).fields.into_iter().map(|field| field.default).collect();
        use FieldDefault::*;
        assert_eq!(defaults, [Integer(i32::MAX.into()), Integer(1), Null, Integer(-1)]);
    }

    #[test]
    fn a_definition_that_cannot_be_right_is_refused() {
        let kind = |fields| match parse(fields) {
            Ok(_) => panic!("taken: {fields}"),
            Err(kind) => kind,
        };
        use SpecErrorKind::*;
        assert!(matches!(kind(r#"{"name":"A","type":"int32","versions":"0+","tag":0,"taggedVersions":"1+"}"#), Tag(_)));
        assert!(matches!(kind(r#"{"name":"A","type":"int32","versions":"0+","taggedVersions":"2+"}"#), Tag(_)));
        assert_eq!(kind(r#"{"name":"A","type":"int32","versions":"0+","nullableVersions":"0+"}"#), Nullable);
        assert!(matches!(kind(r#"{"name":"A","type":"int8","versions":"0+","default":"128"}"#), Default(_)));
        assert!(matches!(kind(r#"{"name":"A","type":"Nope","versions":"0+"}"#), UnknownType(_)));
        assert!(matches!(kind(r#"{"name":"A","type":"[][]int8","versions":"0+"}"#), UnknownType(_)));
        assert!(matches!(
            kind(r#"{"name":"A","type":"int8","versions":"0+"},{"name":"A","type":"int8","versions":"0+"}"#),
            Duplicate(_)
        ));
        assert!(matches!(kind(r#"{"name":"A","type":"int8","versions":"zero"}"#), Versions(_)));
        assert!(matches!(
            kind(r#"{"name":"A","type":"S","versions":"0+","fields":[{"name":"B","type":"[]S","versions":"0+"}]}"#),
            Recursive(_)
        ));
        assert!(matches!(kind(r#"{"name":"A","type":"int8","versions":"0+","surprise":1}"#), Syntax(_)));
        assert!(matches!(kind(r#"{"name":"A","type":"int8","versions":"3+","taggedVersions":"2+","tag":0}"#), Tag(_)));
    }

    #[test]
    fn what_is_no_literal_is_no_default() {
        let parse_default = |field_type: &str, default: &str| {
            parse(&format!(r#"{{"name":"A","type":"{field_type}","versions":"0+","default":{default}}}"#))
                .map(|spec| spec.fields.into_iter().map(|field| field.default).collect::<Vec<_>>())
        };
        let refused = [r#""--5""#, r#""+5""#, r#""0x-5""#, r#""0x+5""#, r#""-0x5""#, r#""0x""#, r#""-""#, r#"" 5""#]
            .into_iter()
            // -2^127 and 2^127 - 1: their negation, or they themselves, fit no integer that is read on the way.
            .chain([r#""-170141183460469231731687303715884105728""#, r#""170141183460469231731687303715884105727""#])
            .chain([r#""-0x80000000000000000000000000000000""#, "-170141183460469231731687303715884105728"])
            .map(|default| ("int64", default));
        let floats = [r#""inf""#, r#""NaN""#, r#""+1""#, r#""1e999""#, r#""1_0""#, r#""-""#];
        for (field_type, default) in refused.chain(floats.map(|default| ("float64", default))) {
            let found = parse_default(field_type, default);
            assert!(matches!(found, Err(SpecErrorKind::Default(_))), "{default}: {found:?}");
        }
        let taken = |field_type, default| parse_default(field_type, default).unwrap_or_else(|kind| panic!("{kind}"));
        assert_eq!(taken("int64", r#""-9223372036854775808""#), [FieldDefault::Integer(i64::MIN)]);
        assert_eq!(taken("int64", r#""0x7fffffffffffffff""#), [FieldDefault::Integer(i64::MAX)]);
        assert_eq!(taken("float64", r#""-1.5e+2""#), [FieldDefault::Float(-150.0)]);
    }

    #[test]
    fn names_that_would_break_paths_are_refused() {
        for name in ["", "_tags", "a.b", "x[0]", "[0]", "0a", "a b", "a-b", "\u{e4}", "A_B"] {
            let field = format!(r#"{{"name":"{name}","type":"int8","versions":"0+"}}"#);
            let message = format!(r#"{{"name":"{name}","type":"data","validVersions":"0"}}"#);
            let common = format!(
                r#"{{"name":"T","type":"data","validVersions":"0","commonStructs":[{{"name":"{name}","versions":"0+","fields":[]}}]}}"#
            );
            assert_eq!(parse(&field).map(|_| ()), Err(SpecErrorKind::Name(name.to_owned())));
            for text in [message, common] {
                let kind = MessageSpec::parse(&text).map(|_| ()).map_err(|error| error.kind);
                assert_eq!(kind, Err(SpecErrorKind::Name(name.to_owned())), "{text}");
            }
        }
        assert!(parse(r#"{"name":"a0B","type":"int8","versions":"0+"}"#).is_ok());
    }

    /// A message whose structs stand in one another, `width` fields of the next in each.
    fn chain(levels: usize, width: usize, field_type: &str) -> Result<MessageSpec, SpecErrorKind> {
        let fields = |next: usize| {
            let field = |at| format!(r#"{{"name":"F{at}","type":"{field_type}S{next}","versions":"0+"}}"#);
            (0..width).map(field).collect::<Vec<_>>().join(",")
        };
        let mut structs: Vec<String> = (1..levels)
            .map(|level| format!(r#"{{"name":"S{level}","versions":"0+","fields":[{}]}}"#, fields(level + 1)))
            .collect();
        structs.push(format!(
            r#"{{"name":"S{levels}","versions":"0+","fields":[{{"name":"F","type":"int8","versions":"0+"}}]}}"#
        ));
        let text = format!(
            r#"{{"name":"T","type":"data","validVersions":"0","commonStructs":[{}],"fields":[{}]}}"#,
            structs.join(","),
            fields(1)
        );
        MessageSpec::parse(&text).map_err(|error| error.kind)
    }

    #[test]
    fn structs_are_nested_only_so_deep() {
        for field_type in ["", "[]"] {
            assert!(chain(MessageSpec::LEVELS, 1, field_type).is_ok());
            let deeper = chain(MessageSpec::LEVELS + 1, 1, field_type);
            assert_eq!(deeper.map(|_| ()), Err(SpecErrorKind::TooDeep), "{field_type}");
        }
        assert_eq!(chain(100_000, 1, "").map(|_| ()), Err(SpecErrorKind::TooDeep));
        // In place they are as deep as their JSON, whose reader has a limit of its own.
        let nested = |levels: usize| {
            let open: String = (0..levels)
                .map(|level| format!(r#"{{"name":"F","type":"S{level}","versions":"0+","fields":["#))
                .collect();
            parse(&format!(r#"{open}{{"name":"F","type":"int8","versions":"0+"}}{}"#, "]}".repeat(levels)))
        };
        assert!(nested(MessageSpec::LEVELS).is_ok());
        assert_eq!(nested(MessageSpec::LEVELS + 1).map(|_| ()), Err(SpecErrorKind::TooDeep));
        assert!(matches!(nested(100_000), Err(SpecErrorKind::Syntax(_))));
        let arrays = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(MessageSpec::parse(&arrays), Err(SpecError { kind: SpecErrorKind::Syntax(_), .. })));
    }

    #[test]
    fn structs_that_double_are_refused_at_once() {
        for field_type in ["", "[]"] {
            // 2 + 4 + ... + 2^12, and 2^12 for what is in the innermost.
            assert!(chain(12, 2, field_type).is_ok());
            assert_eq!(chain(14, 2, field_type).map(|_| ()), Err(SpecErrorKind::TooLarge));
            assert_eq!(chain(MessageSpec::LEVELS, 2, field_type).map(|_| ()), Err(SpecErrorKind::TooLarge));
            // Too deep as well: what is found first is said.
            assert!(chain(40, 2, field_type).is_err());
        }
    }
}
