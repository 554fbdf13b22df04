//! What a case expects of an answer: paths to values, and what those values must be.
//!
//! A path names fields as the definition does: `Results[0].ErrorCode`, `Results[0].Configs[Name=retention.ms].Value`,
//! `Results[ResourceType=2,ResourceName=t].Configs[].Name`. `[n]` is an element by its number, `[Key=value,..]` every
//! element whose fields are written like this, `[]` every element.

mod types;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use codec::{FieldSpec, FieldType, MessageSpec, VersionRange};
use serde_json::Value as Json;

/// A path into a decoded message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<PathPart>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PathPart {
    Field(String),
    Index(usize),
    Match(Vec<(String, String)>),
    Every,
}

impl Path {
    /// Takes a path apart; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Path, String> {
        let wrong = |what: &str| Err(format!("path {text:?}: {what}"));
        let (mut parts, mut rest) = (Vec::new(), text);
        loop {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, mut after) = rest.split_at(end);
            if name.is_empty() {
                return wrong("a field name is missing");
            }
            parts.push(PathPart::Field(name.to_owned()));
            while let Some(bracket) = after.strip_prefix('[') {
                let Some((inside, behind)) = bracket.split_once(']') else { return wrong("a ] is missing") };
                let Some(part) = selector(inside) else {
                    return wrong("in brackets stands a number, Key=value pairs, or nothing");
                };
                parts.push(part);
                after = behind;
            }
            match after.strip_prefix('.') {
                Some(next) => rest = next,
                None if after.is_empty() => return Ok(Path(parts)),
                None => return wrong("a dot is missing behind ]"),
            }
        }
    }

    /// The values it leads to, in the message's order.
    pub fn find<'v>(&self, message: &'v Json) -> Vec<&'v Json> {
        self.0.iter().fold(vec![message], |values, part| values.into_iter().flat_map(|v| part.step(v)).collect())
    }

    /// Whether it may lead to more than one value.
    fn is_plural(&self) -> bool {
        self.0.contains(&PathPart::Every)
    }

    /// The name of its last field.
    pub fn last_field(&self) -> &str {
        let name = |part: &PathPart| if let PathPart::Field(name) = part { Some(name.len()) } else { None };
        let last = self.0.iter().rposition(|part| name(part).is_some()).expect("a path begins with a field");
        let PathPart::Field(name) = &self.0[last] else { unreachable!("rposition found a field") };
        name
    }

    /// The versions of `spec` that have every field it names. An error names the first field that there is none of.
    pub fn versions(&self, spec: &MessageSpec) -> Result<VersionRange, String> {
        let mut versions = spec.valid_versions;
        let mut fields: &[FieldSpec] = &spec.fields;
        let no_field = |name: &str| format!("path {self}: {} has no field {name} there", spec.name);
        let find = |fields: &[FieldSpec], name: &str| -> Result<usize, String> {
            fields.iter().position(|field| &*field.name == name).ok_or_else(|| no_field(name))
        };
        for part in &self.0 {
            match part {
                PathPart::Field(name) => {
                    let field = &fields[find(fields, name)?];
                    versions = versions.intersect(field.versions);
                    fields = struct_fields(spec, &field.field_type);
                }
                PathPart::Match(pairs) => {
                    for (name, _) in pairs {
                        versions = versions.intersect(fields[find(fields, name)?].versions);
                    }
                }
                PathPart::Index(_) | PathPart::Every => {}
            }
        }
        Ok(versions)
    }
}

fn struct_fields<'s>(spec: &'s MessageSpec, field_type: &FieldType) -> &'s [FieldSpec] {
    let found = field_type.struct_name().and_then(|name| spec.structs.get(name));
    found.map_or(&[], |structure| &structure.fields)
}

fn selector(inside: &str) -> Option<PathPart> {
    if inside.is_empty() {
        return Some(PathPart::Every);
    }
    if let Ok(index) = inside.parse() {
        return Some(PathPart::Index(index));
    }
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    inside.split(',').map(pair).collect::<Option<_>>().map(PathPart::Match)
}

impl PathPart {
    fn step<'v>(&self, value: &'v Json) -> Vec<&'v Json> {
        let elements = value.as_array().map(Vec::as_slice).unwrap_or_default();
        match self {
            PathPart::Field(name) => value.get(name).into_iter().collect(),
            PathPart::Index(index) => elements.get(*index).into_iter().collect(),
            PathPart::Every => elements.iter().collect(),
            PathPart::Match(pairs) => elements
                .iter()
                .filter(|element| pairs.iter().all(|(name, text)| element.get(name).is_some_and(|v| is_text(v, text))))
                .collect(),
        }
    }
}

/// Whether a value is written like this in a path.
fn is_text(value: &Json, text: &str) -> bool {
    match value {
        Json::String(value) => value == text,
        Json::Null => text == "null",
        Json::Bool(value) => text.parse() == Ok(*value),
        Json::Number(number) => text.parse().is_ok_and(|text: serde_json::Number| text == *number),
        Json::Array(_) | Json::Object(_) => false,
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            match part {
                PathPart::Field(name) if index == 0 => f.write_str(name)?,
                PathPart::Field(name) => write!(f, ".{name}")?,
                PathPart::Index(number) => write!(f, "[{number}]")?,
                PathPart::Every => f.write_str("[]")?,
                PathPart::Match(pairs) => {
                    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
                    write!(f, "[{}]", pairs.join(","))?;
                }
            }
        }
        Ok(())
    }
}

/// What the value at a path must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Matcher {
    /// This value; for a path with `[]` these values in any order.
    Is(Json),
    /// `{"not": ..}`: there is a value, and it is another.
    Not(Box<Matcher>),
    /// `{"one_of": [..]}`: one of these values.
    OneOf(Vec<Json>),
    /// `{"all": ..}`: each value at the path; satisfied where there is none.
    All(Box<Matcher>),
    /// `{"includes": [..]}`: these are among the values at the path.
    Includes(Vec<Json>),
    /// `{"subset_of": [..]}`: the values at the path are among these.
    SubsetOf(Vec<Json>),
    /// `{"nonempty": true}`: text, an array or a list of values that is not empty.
    Nonempty,
    /// `{"distinct": true}`: there are values at the path, and each is there once.
    Distinct,
    /// `{"absent": true}`: the path leads nowhere.
    Absent,
    /// `{"among": path}`: there are values at the path, and each is among those at the other path of the same message.
    Among(Path),
    /// `{"at_least": n}`: a number that is not below.
    AtLeast(i64),
    /// `{"ascending": [..]}`: a structure whose fields of these names are numbers, none below the one before.
    Ascending(Vec<String>),
}

impl Matcher {
    /// Reads a matcher; an object is one of those above, anything else a value.
    pub fn parse(json: &Json) -> Result<Matcher, String> {
        let Some(object) = json.as_object() else { return Ok(Matcher::Is(json.clone())) };
        let mut entries = object.iter();
        let (Some((name, argument)), None) = (entries.next(), entries.next()) else {
            return Err("a matcher has one key".to_owned());
        };
        let list = || {
            argument.as_array().cloned().ok_or_else(|| format!("matcher {name:?} is followed by an array of values"))
        };
        match name.as_str() {
            "not" => Ok(Matcher::Not(Box::new(Matcher::parse(argument)?))),
            "all" => Ok(Matcher::All(Box::new(Matcher::parse(argument)?))),
            "one_of" => Ok(Matcher::OneOf(list()?)),
            "includes" => Ok(Matcher::Includes(list()?)),
            "subset_of" => Ok(Matcher::SubsetOf(list()?)),
            "nonempty" if argument == true => Ok(Matcher::Nonempty),
            "distinct" if argument == true => Ok(Matcher::Distinct),
            "absent" if argument == true => Ok(Matcher::Absent),
            "among" => argument.as_str().ok_or("among is a path".to_owned()).and_then(Path::parse).map(Matcher::Among),
            "at_least" if argument.is_i64() => Ok(Matcher::AtLeast(argument.as_i64().unwrap_or_default())),
            "ascending" => {
                let names = list()?.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
                names
                    .filter(|names| names.len() > 1)
                    .map(Matcher::Ascending)
                    .ok_or("ascending are fields by name".into())
            }
            _ => Err(format!(
                "unknown matcher {name:?}: there are not, one_of, all, includes, subset_of, nonempty, distinct, absent \
                 (these three with true), at_least (with a number), ascending, among"
            )),
        }
    }

    /// The JSON form it was read from.
    pub fn to_json(&self) -> Json {
        let one = |name: &str, argument: Json| serde_json::json!({ name: argument });
        match self {
            Matcher::Is(value) => value.clone(),
            Matcher::Not(inner) => one("not", inner.to_json()),
            Matcher::All(inner) => one("all", inner.to_json()),
            Matcher::OneOf(values) => one("one_of", values.clone().into()),
            Matcher::Includes(values) => one("includes", values.clone().into()),
            Matcher::SubsetOf(values) => one("subset_of", values.clone().into()),
            Matcher::Nonempty => one("nonempty", true.into()),
            Matcher::Distinct => one("distinct", true.into()),
            Matcher::Absent => one("absent", true.into()),
            Matcher::Among(path) => one("among", path.to_string().into()),
            Matcher::AtLeast(least) => one("at_least", (*least).into()),
            Matcher::Ascending(names) => one("ascending", names.clone().into()),
        }
    }

    /// The same with each text replaced by `f` of it.
    pub fn map_text(&self, f: &dyn Fn(&str) -> String) -> Matcher {
        let list = |values: &[Json]| values.iter().map(|value| map_text(value, f)).collect();
        match self {
            Matcher::Is(value) => Matcher::Is(map_text(value, f)),
            Matcher::Not(inner) => Matcher::Not(Box::new(inner.map_text(f))),
            Matcher::All(inner) => Matcher::All(Box::new(inner.map_text(f))),
            Matcher::OneOf(values) => Matcher::OneOf(list(values)),
            Matcher::Includes(values) => Matcher::Includes(list(values)),
            Matcher::SubsetOf(values) => Matcher::SubsetOf(list(values)),
            Matcher::Nonempty
            | Matcher::Distinct
            | Matcher::Absent
            | Matcher::Among(_)
            | Matcher::AtLeast(_)
            | Matcher::Ascending(_) => self.clone(),
        }
    }

    /// Judges what `path` leads to in `message`. `Err` holds what is there: `null` with `absent` true where nothing is.
    pub fn check(&self, path: &Path, message: &Json) -> Result<(), Found> {
        let values = path.find(message);
        let satisfied = match self {
            Matcher::Absent => values.is_empty(),
            Matcher::All(inner) => values.iter().all(|value| inner.takes(value)),
            Matcher::Includes(wanted) => wanted.iter().all(|want| values.contains(&want)),
            Matcher::SubsetOf(allowed) => values.iter().all(|value| allowed.contains(value)),
            Matcher::Among(other) => {
                let others = other.find(message);
                !values.is_empty() && values.iter().all(|value| others.contains(value))
            }
            Matcher::Nonempty if path.is_plural() => !values.is_empty(),
            Matcher::Distinct => {
                let mut seen = HashSet::new();
                !values.is_empty() && values.iter().all(|value| seen.insert(value.to_string()))
            }
            Matcher::Is(Json::Array(wanted)) if path.is_plural() => same_in_any_order(&values, wanted),
            other => matches!(values.as_slice(), [value] if other.takes(value)),
        };
        if satisfied { Ok(()) } else { Err(Found::new(path, &values)) }
    }

    fn takes(&self, value: &Json) -> bool {
        match self {
            Matcher::Is(wanted) => value == wanted,
            Matcher::Not(inner) => !inner.takes(value),
            Matcher::OneOf(allowed) => allowed.contains(value),
            Matcher::Nonempty => match value {
                Json::String(text) => !text.is_empty(),
                Json::Array(elements) => !elements.is_empty(),
                _ => false,
            },
            Matcher::AtLeast(least) => value.as_i64().is_some_and(|value| value >= *least),
            Matcher::Ascending(names) => {
                let numbers: Option<Vec<i64>> = names.iter().map(|name| value.get(name)?.as_i64()).collect();
                numbers.is_some_and(|numbers| numbers.is_sorted())
            }
            Matcher::All(_)
            | Matcher::Includes(_)
            | Matcher::SubsetOf(_)
            | Matcher::Distinct
            | Matcher::Absent
            | Matcher::Among(_) => false,
        }
    }
}

/// What stands where a path leads.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// One value.
    One(Json),
    /// Several, in a fixed order: the message's own may be that of a hash map.
    Several(Vec<Json>),
}

impl Found {
    fn new(path: &Path, values: &[&Json]) -> Found {
        match values {
            [] if !path.is_plural() => Found::Nothing,
            [value] if !path.is_plural() => Found::One((*value).clone()),
            several => {
                let mut several: Vec<Json> = several.iter().map(|value| (*value).clone()).collect();
                several.sort_by_key(Json::to_string);
                Found::Several(several)
            }
        }
    }

    /// What is there, for a report; an absent value is `{"absent": true}`.
    pub fn to_json(&self) -> Json {
        match self {
            Found::Nothing => serde_json::json!({ "absent": true }),
            Found::One(value) => value.clone(),
            Found::Several(values) => values.clone().into(),
        }
    }
}

fn same_in_any_order(values: &[&Json], wanted: &[Json]) -> bool {
    let sorted = |texts: Vec<String>| {
        let mut texts = texts;
        texts.sort();
        texts
    };
    sorted(values.iter().map(|v| v.to_string()).collect()) == sorted(wanted.iter().map(Json::to_string).collect())
}

/// The same value with each text in it replaced by `f` of it; names of fields stay.
pub fn map_text(value: &Json, f: &dyn Fn(&str) -> String) -> Json {
    match value {
        Json::String(text) => f(text).into(),
        Json::Array(elements) => elements.iter().map(|element| map_text(element, f)).collect(),
        Json::Object(object) => object.iter().map(|(name, value)| (name.clone(), map_text(value, f))).collect(),
        other => other.clone(),
    }
}

/// What is due in reply to a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// The connection is closed without a byte.
    Closed,
    /// Nothing comes, and the connection stays.
    Silent,
    /// An answer with this error code: its own, or that of each of its results.
    Error(i16),
    /// An answer with these values. Paths that the version at hand lacks are not compared.
    Values(BTreeMap<String, Matcher>),
}

impl Expect {
    /// Reads the JSON form: `"closed"`, `"silent"`, an error code, or an object of paths.
    pub fn parse(json: &Json) -> Result<Expect, String> {
        match json {
            Json::String(word) if word == "closed" => Ok(Expect::Closed),
            Json::String(word) if word == "silent" => Ok(Expect::Silent),
            Json::Number(code) => {
                let code = code.as_i64().and_then(|code| i16::try_from(code).ok());
                Ok(Expect::Error(code.ok_or("an error code is an int16")?))
            }
            Json::Object(paths) if !paths.is_empty() => {
                let entry = |(path, matcher): (&String, &Json)| {
                    Path::parse(path)?;
                    let matcher = Matcher::parse(matcher).map_err(|what| format!("{path}: {what}"))?;
                    Ok((path.clone(), matcher))
                };
                paths.iter().map(entry).collect::<Result<_, String>>().map(Expect::Values)
            }
            _ => Err("expected are \"closed\", \"silent\", an error code, or paths and their values".to_owned()),
        }
    }

    /// The JSON form it was read from.
    pub fn to_json(&self) -> Json {
        match self {
            Expect::Closed => "closed".into(),
            Expect::Silent => "silent".into(),
            Expect::Error(code) => (*code).into(),
            Expect::Values(paths) => paths.iter().map(|(path, matcher)| (path.clone(), matcher.to_json())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message() -> Json {
        json!({ "Results": [
            { "ErrorCode": 0, "ResourceType": 2, "ResourceName": "t", "Configs": [
                { "Name": "a", "Value": "1", "IsSensitive": false },
                { "Name": "b", "Value": null, "IsSensitive": true },
            ] },
            { "ErrorCode": 42, "ResourceType": 4, "ResourceName": "1", "Configs": [] },
        ] })
    }

    fn check(path: &str, matcher: Json) -> Result<(), Found> {
        Matcher::parse(&matcher).unwrap().check(&Path::parse(path).unwrap(), &message())
    }

    #[test]
    fn index_and_key_lead_to_one_value() {
        assert_eq!(check("Results[1].ErrorCode", json!(42)), Ok(()));
        assert_eq!(check("Results[ResourceType=4,ResourceName=1].ErrorCode", json!(42)), Ok(()));
        assert_eq!(check("Results[0].Configs[Name=a].Value", json!("1")), Ok(()));
        assert_eq!(check("Results[0].Configs[Name=b].Value", json!(null)), Ok(()));
        assert_eq!(check("Results[0].Configs[Name=a].Value", json!("2")), Err(Found::One(json!("1"))));
        assert_eq!(check("Results[0].Configs[Name=c].Value", json!(null)), Err(Found::Nothing));
    }

    #[test]
    fn not_and_one_of_need_a_value() {
        assert_eq!(check("Results[1].ErrorCode", json!({ "not": 0 })), Ok(()));
        assert_eq!(check("Results[2].ErrorCode", json!({ "not": 0 })), Err(Found::Nothing));
        assert_eq!(check("Results[1].ErrorCode", json!({ "one_of": [40, 42] })), Ok(()));
        assert_eq!(check("Results[2].ErrorCode", json!({ "absent": true })), Ok(()));
    }

    #[test]
    fn lists_are_compared_in_any_order() {
        assert_eq!(check("Results[].ErrorCode", json!([42, 0])), Ok(()));
        assert_eq!(check("Results[].ErrorCode", json!([0])), Err(Found::Several(vec![json!(0), json!(42)])));
        assert_eq!(check("Results[0].Configs[].Name", json!({ "includes": ["b"] })), Ok(()));
        assert_eq!(check("Results[0].Configs[].Name", json!({ "subset_of": ["b", "a", "c"] })), Ok(()));
        assert!(check("Results[0].Configs[].Name", json!({ "subset_of": ["b"] })).is_err());
        assert_eq!(check("Results[0].Configs[].Name", json!({ "nonempty": true })), Ok(()));
        assert!(check("Results[1].Configs[].Name", json!({ "nonempty": true })).is_err());
        assert_eq!(check("Results[1].Configs", json!([])), Ok(()));
        assert_eq!(check("Results[0].Configs[].Name", json!({ "distinct": true })), Ok(()));
        assert!(check("Results[1].Configs[].Name", json!({ "distinct": true })).is_err());
        let twice = json!({ "Results": [{ "Name": "a" }, { "Name": "b" }, { "Name": "a" }] });
        let found = Matcher::Distinct.check(&Path::parse("Results[].Name").unwrap(), &twice);
        assert_eq!(found, Err(Found::Several(vec![json!("a"), json!("a"), json!("b")])));
    }

    #[test]
    fn all_judges_each_matching_element() {
        assert_eq!(check("Results[0].Configs[IsSensitive=true].Value", json!({ "all": null })), Ok(()));
        assert!(check("Results[0].Configs[IsSensitive=false].Value", json!({ "all": null })).is_err());
        assert_eq!(check("Results[1].Configs[].Value", json!({ "all": { "not": 1 } })), Ok(()));
    }

    #[test]
    fn values_are_among_those_of_another_path() {
        let twice = json!({ "Leaders": [1, 2, 1], "Brokers": [{ "NodeId": 1 }, { "NodeId": 2 }, { "NodeId": 3 }] });
        let check = |path: &str, other: &str| {
            let matcher = Matcher::parse(&json!({ "among": other })).unwrap();
            matcher.check(&Path::parse(path).unwrap(), &twice).is_ok()
        };
        assert!(check("Leaders[]", "Brokers[].NodeId"));
        assert!(!check("Brokers[].NodeId", "Leaders[]"));
        assert!(!check("Nothing[]", "Leaders[]"));
    }

    #[test]
    fn numbers_are_compared_with_a_bound_and_with_each_other() {
        assert_eq!(check("Results[1].ErrorCode", json!({ "at_least": 42 })), Ok(()));
        assert_eq!(check("Results[1].ErrorCode", json!({ "at_least": 43 })), Err(Found::One(json!(42))));
        assert!(check("Results[2].ErrorCode", json!({ "at_least": 0 })).is_err());
        assert_eq!(check("Results[]", json!({ "all": { "ascending": ["ErrorCode", "ErrorCode"] } })), Ok(()));
        assert_eq!(check("Results[0]", json!({ "ascending": ["ErrorCode", "ResourceType"] })), Ok(()));
        assert!(check("Results[0]", json!({ "ascending": ["ResourceType", "ErrorCode"] })).is_err());
        assert!(check("Results[0]", json!({ "ascending": ["ErrorCode", "Missing"] })).is_err());
    }

    #[test]
    fn broken_paths_and_matchers_are_refused() {
        for path in ["", ".", "A.", "A[", "A[x]", "A[0]B", "A..B", "[0]"] {
            assert!(Path::parse(path).is_err(), "{path}");
        }
        for matcher in [
            json!({}),
            json!({ "is": 1 }),
            json!({ "not": 1, "all": 2 }),
            json!({ "one_of": 1 }),
            json!({ "at_least": "x" }),
            json!({ "ascending": ["A"] }),
        ] {
            assert!(Matcher::parse(&matcher).is_err(), "{matcher}");
        }
        for expect in [json!("open"), json!({}), json!(40_000), json!(null)] {
            assert!(Expect::parse(&expect).is_err(), "{expect}");
        }
    }

    #[test]
    fn paths_are_written_as_read() {
        for path in
            ["Results[0].Configs[Name=a.b].Value", "Responses[ResourceType=2,ResourceName=t].ErrorCode", "A[].B"]
        {
            assert_eq!(Path::parse(path).unwrap().to_string(), path);
        }
        assert_eq!(Path::parse("A[0].B[Name=x]").unwrap().last_field(), "B");
    }
}
