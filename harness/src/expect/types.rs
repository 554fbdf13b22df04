//! Whether what a case expects can be there at all, by the types of the definition: a text never equals a number, and a path
//! that passes over an array leads nowhere.

use codec::{FieldSpec, FieldType, MessageSpec, parse_uuid, uuid_text};
use serde_json::Value as Json;

use super::{Matcher, Path, PathPart, struct_fields};
use crate::exchange::ADVERTISED;

/// Past it in either direction an integer is a string of digits in JSON.
const EXACT_IN_JSON: u64 = 1 << 53;

/// What stands where a path leads.
#[derive(Clone, Copy)]
struct Place<'s> {
    spec: &'s MessageSpec,
    field_type: &'s FieldType,
    nullable: bool,
}

impl Path {
    fn place<'s>(&self, spec: &'s MessageSpec) -> Result<Place<'s>, String> {
        let wrong = |what: String| Err(format!("path {self}: {what}"));
        let find = |fields: &'s [FieldSpec], name: &str| -> Result<Place<'s>, String> {
            let field = fields.iter().find(|field| &*field.name == name);
            let field = field.ok_or_else(|| format!("path {self}: {} has no field {name} there", spec.name))?;
            Ok(Place { spec, field_type: &field.field_type, nullable: !field.nullable_versions.is_none() })
        };
        let mut place: Option<Place<'s>> = None;
        for part in &self.0 {
            let next = match (part, place.map(|place| place.field_type)) {
                (PathPart::Field(name), None) => find(&spec.fields, name)?,
                (PathPart::Field(name), Some(FieldType::Array(_))) => {
                    return wrong(format!("{name} is of an element of an array: brackets say of which"));
                }
                (PathPart::Field(name), Some(within)) => find(struct_fields(spec, within), name)?,
                (_, Some(FieldType::Array(element))) => {
                    let fields = struct_fields(spec, element);
                    if let PathPart::Match(pairs) = part {
                        for (name, text) in pairs {
                            if !find(fields, name)?.fits_text(text) {
                                return wrong(format!("{name} is never {text:?}"));
                            }
                        }
                    }
                    Place { spec, field_type: element, nullable: false }
                }
                (_, _) => return wrong("brackets stand behind an array".to_owned()),
            };
            place = Some(next);
        }
        Ok(place.expect("a path begins with a field"))
    }
}

impl Place<'_> {
    /// Whether a text in brackets can be what stands here.
    fn fits_text(self, text: &str) -> bool {
        // Variables stand for names and for numbers.
        let variable = text.contains('$');
        variable
            || self.nullable && text == "null"
            || match self.field_type {
                FieldType::String => true,
                FieldType::Uuid => self.fits(&text.into()),
                FieldType::Bool => text.parse::<bool>().is_ok(),
                _ => self.fits(&text.into()) || text.parse::<serde_json::Number>().is_ok_and(|n| self.fits(&n.into())),
            }
    }

    /// Whether a value can be what stands here, as an answer has it in JSON.
    fn fits(self, value: &Json) -> bool {
        let digits = |text: &str| text.parse::<i64>().ok().filter(|number| number.to_string() == text);
        match (self.field_type, value) {
            (_, Json::Null) => self.nullable,
            (FieldType::Bool, Json::Bool(_)) | (FieldType::String, Json::String(_)) => true,
            (FieldType::Float64, Json::Number(_)) => true,
            (FieldType::Float64, Json::String(text)) => ["NaN", "Infinity", "-Infinity"].contains(&text.as_str()),
            (FieldType::Uuid, Json::String(text)) => parse_uuid(text).is_some_and(|uuid| uuid_text(&uuid) == *text),
            (FieldType::Bytes | FieldType::Records, Json::Object(object)) => {
                object.len() == 1 && object.get("hex").is_some_and(Json::is_string)
            }
            (FieldType::Array(element), Json::Array(elements)) => {
                let element = Place { field_type: element, nullable: false, ..self };
                elements.iter().all(|value| element.fits(value))
            }
            (FieldType::Struct(_), Json::Object(object)) => object.iter().all(|(name, value)| {
                let field = struct_fields(self.spec, self.field_type).iter().find(|field| *field.name == **name);
                field.is_some_and(|field| {
                    let nullable = !field.nullable_versions.is_none();
                    Place { field_type: &field.field_type, nullable, ..self }.fits(value)
                })
            }),
            (integer, Json::Number(number)) => {
                let range = integer.integer_range().zip(number.as_i64());
                range.is_some_and(|((least, greatest), number)| {
                    (least..=greatest).contains(&number) && number.unsigned_abs() <= EXACT_IN_JSON
                })
            }
            (integer, Json::String(text)) => {
                let range = integer.integer_range().zip(digits(text));
                range.is_some_and(|((least, greatest), number)| {
                    (least..=greatest).contains(&number) && number.unsigned_abs() > EXACT_IN_JSON
                })
            }
            _ => false,
        }
    }
}

impl Matcher {
    /// Whether there is a message of `spec` that satisfies it at `path`; the error says what can never be there.
    pub fn can_hold(&self, path: &Path, spec: &MessageSpec) -> Result<(), String> {
        let place = path.place(spec)?;
        let never = |value: &Json| format!("path {path}: {value} is never there, by the definition");
        let all_fit = |values: &[Json]| match values.iter().find(|value| !place.fits(value)) {
            Some(value) => Err(never(value)),
            None => Ok(()),
        };
        match self {
            Matcher::Is(Json::String(text)) if text.strip_prefix('$') == Some(ADVERTISED) => Ok(()),
            Matcher::Is(Json::Array(values)) if path.is_plural() => all_fit(values),
            Matcher::Among(other) if other.place(spec)?.field_type != place.field_type => {
                Err(format!("path {path}: what is at {other} is of another type"))
            }
            Matcher::OneOf(values) | Matcher::Includes(values) | Matcher::SubsetOf(values) => all_fit(values),
            Matcher::Nonempty if path.is_plural() => Ok(()),
            Matcher::Distinct | Matcher::Absent | Matcher::Among(_) => Ok(()),
            Matcher::All(inner) => inner.can_hold_of_one(path, place),
            other => other.can_hold_of_one(path, place),
        }
    }

    /// The same of a single value.
    fn can_hold_of_one(&self, path: &Path, place: Place) -> Result<(), String> {
        let is_integer = |field_type: &FieldType| field_type.integer_range().is_some();
        let fields = struct_fields(place.spec, place.field_type);
        let never =
            |what: &dyn std::fmt::Display| Err(format!("path {path}: {what} is never there, by the definition"));
        match self {
            Matcher::Is(value) if !place.fits(value) => never(value),
            Matcher::OneOf(values) => match values.iter().find(|value| !place.fits(value)) {
                Some(value) => never(value),
                None => Ok(()),
            },
            Matcher::Not(inner) => inner.can_hold_of_one(path, place),
            Matcher::Nonempty if !matches!(place.field_type, FieldType::String | FieldType::Array(_)) => {
                never(&"a text or an array")
            }
            Matcher::AtLeast(_) if !is_integer(place.field_type) => never(&"a number"),
            Matcher::Ascending(names) => {
                let is_number =
                    |name: &&String| fields.iter().any(|field| *field.name == ***name && is_integer(&field.field_type));
                match names.iter().find(|name| !is_number(name)) {
                    Some(name) => never(&format_args!("a number {name}")),
                    None => Ok(()),
                }
            }
            Matcher::Is(_) | Matcher::Nonempty | Matcher::AtLeast(_) => Ok(()),
            Matcher::All(_)
            | Matcher::Includes(_)
            | Matcher::SubsetOf(_)
            | Matcher::Distinct
            | Matcher::Absent
            | Matcher::Among(_) => {
                Err(format!("path {path}: within \"not\" and \"all\" stands what is said of one value"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions;
    use codec::MessageKind;
    use serde_json::json;

    fn can_hold(api: &str, path: &str, matcher: Json) -> Result<(), String> {
        let spec = definitions::bundled().api(api, MessageKind::Response).unwrap();
        Matcher::parse(&matcher).unwrap().can_hold(&Path::parse(path).unwrap(), spec)
    }

    #[test]
    fn values_of_the_field_s_type_can_be_there() {
        for (path, matcher) in [
            ("ThrottleTimeMs", json!(0)),
            ("Results[0].ErrorCode", json!({ "not": 0 })),
            ("Results[0].ErrorMessage", json!(null)),
            ("Results[0].Configs[Name=retention.ms,IsSensitive=false].Value", json!("1")),
            ("Results[ResourceType=2,ResourceName=$topic].Configs[].Name", json!(["a", "b"])),
            ("Results[ResourceType=4,ResourceName=$node].Configs[].Synonyms[]", json!({ "nonempty": true })),
            ("Results[].Configs[].ConfigSource", json!({ "all": { "one_of": [1, -1] } })),
            ("Results[0].Configs[Value=null].Synonyms", json!([])),
            ("Results[].ResourceName", json!({ "among": "Results[].Configs[].Name" })),
            ("Results[0].Configs[]", json!({ "includes": [{ "Name": "a", "Value": null, "ReadOnly": false }] })),
            ("Results[0].ErrorCode", json!({ "at_least": 1 })),
        ] {
            assert_eq!(can_hold("DescribeConfigs", path, matcher.clone()), Ok(()), "{path} {matcher}");
        }
        assert_eq!(can_hold("ApiVersions", "ApiKeys[]", json!("$advertised")), Ok(()));
        assert_eq!(can_hold("ApiVersions", "FinalizedFeaturesEpoch", json!(-1)), Ok(()));
        assert_eq!(can_hold("ApiVersions", "FinalizedFeaturesEpoch", json!("9223372036854775807")), Ok(()));
        let id = "00000000-0000-0000-0000-000000000001";
        assert_eq!(can_hold("Metadata", &format!("Topics[TopicId={id}].TopicId"), json!(id)), Ok(()));
    }

    #[test]
    fn what_the_definition_excludes_is_found() {
        for (path, matcher, what) in [
            ("ThrottleTimeMs", json!("0"), "\"0\" is never there"),
            ("ThrottleTimeMs", json!(null), "null is never there"),
            ("ThrottleTimeMs", json!(1.5), "1.5 is never there"),
            ("Results[0].ErrorCode", json!("$node"), "\"$node\" is never there"),
            ("Results[0].ErrorCode", json!(40_000), "40000 is never there"),
            ("Results[0].ErrorCode", json!({ "not": "0" }), "\"0\" is never there"),
            ("Results[0].ErrorCode", json!({ "one_of": [0, "1"] }), "\"1\" is never there"),
            ("Results[0].ErrorCode", json!({ "nonempty": true }), "a text or an array"),
            ("Results[0].ResourceName", json!(1), "1 is never there"),
            ("Results[0].ResourceName", json!({ "at_least": 1 }), "a number is never there"),
            ("Results[0].Configs[].Name", json!([1]), "1 is never there"),
            ("Results[0].Configs[].Name", json!({ "includes": [null] }), "null is never there"),
            ("Results[0].Configs[].Name", json!({ "subset_of": [true] }), "true is never there"),
            ("Results[0].Configs[].Name", json!({ "all": 1 }), "1 is never there"),
            ("Results[0].Configs[].Name", json!({ "all": { "distinct": true } }), "said of one value"),
            ("Results[0].Configs[].Name", json!({ "among": "Results[].ErrorCode" }), "of another type"),
            ("Results[0].Configs[]", json!({ "all": { "ascending": ["ConfigType", "Name"] } }), "a number Name"),
            ("Results[0].Configs[]", json!({ "includes": [{ "Name": 1 }] }), "is never there"),
            ("Results[0].Configs[]", json!({ "includes": [{ "Nam": "a" }] }), "is never there"),
            ("Results[0].Configs[IsSensitive=1].Value", json!("1"), "IsSensitive is never \"1\""),
            ("Results[ResourceType=topic].ErrorCode", json!(0), "ResourceType is never \"topic\""),
            ("Results[Configs=x].ErrorCode", json!(0), "Configs is never \"x\""),
            ("Results.ErrorCode", json!(0), "an element of an array"),
            ("Results[0].Configs.Name", json!({ "absent": true }), "an element of an array"),
            ("Results[0][0].ErrorCode", json!(0), "brackets stand behind an array"),
            ("Results[0].ErrorCode[0]", json!({ "absent": true }), "brackets stand behind an array"),
            ("Results[0].ErrorCode.Value", json!(0), "no field Value"),
        ] {
            let found = can_hold("DescribeConfigs", path, matcher.clone()).unwrap_err();
            assert!(found.contains(what), "{path} {matcher}: {found}");
        }
        assert!(can_hold("ApiVersions", "FinalizedFeaturesEpoch", json!("1")).is_err());
        assert!(can_hold("Metadata", "Topics[0].TopicId", json!("x")).is_err());
    }
}
