//! What an entry of DescribeConfigs says against its own synonyms: they are listed in order of precedence (KIP-226), so that
//! the first is the one in force.

use serde_json::Value as Json;

use super::conversation::{Mismatch, TOPIC};
use super::message::Answer;
use crate::results::Class;

/// Source of a setting that the topic has itself.
const DYNAMIC_TOPIC_CONFIG: i64 = 1;
/// Apache Kafka up to 3.9 goes by another value than the one that is set, where that is too old for it.
const OVERRULED: &str = "message.format.version";

/// Each entry with synonyms has the source of the first, and its value unless it is sensitive; a synonym that is the
/// topic's own setting has the entry's name.
pub(super) fn agrees_with_synonyms(answer: &Answer) -> Result<(), Mismatch> {
    let results = answer.body.get("Results").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    for (number, result) in results.iter().enumerate() {
        for entry in result.get("Configs").and_then(Json::as_array).into_iter().flatten() {
            if let Some(what) = contradiction(&result["ResourceType"], entry) {
                let what = format!("Results[{number}].Configs[Name={}] {what}", entry["Name"].as_str().unwrap_or("?"));
                return Err(Mismatch::contradiction(Class::WrongValue, what));
            }
        }
    }
    Ok(())
}

fn contradiction(resource_type: &Json, entry: &Json) -> Option<&'static str> {
    let synonyms = entry.get("Synonyms")?.as_array()?;
    let first = synonyms.first()?;
    if synonyms.iter().any(|synonym| synonym["Source"] == DYNAMIC_TOPIC_CONFIG && synonym["Name"] != entry["Name"]) {
        return Some("has a setting of the topic's among its synonyms that is of another config");
    }
    if entry["ConfigSource"] != first["Source"] {
        return Some("has another source than the first of its synonyms");
    }
    let comparable = is_same_setting(resource_type, entry["Name"].as_str()?, first["Name"].as_str()?);
    if comparable && entry["IsSensitive"] == false && !is_same_value(&entry["Value"], &first["Value"]) {
        return Some("has another value than the first of its synonyms");
    }
    None
}

/// Whether a synonym's value is that of the entry. Of a broker's entry only its own name tells: log.retention.ms is unset
/// where log.retention.hours is set. A topic's is the broker's in the same unit: retention.ms of log.retention.ms.
fn is_same_setting(resource_type: &Json, entry: &str, synonym: &str) -> bool {
    let unit = |name: &str| name.rsplit('.').next().map(str::to_owned);
    let inherited = *resource_type == TOPIC && unit(entry) == unit(synonym);
    entry != OVERRULED && (entry == synonym || inherited)
}

/// Whether two texts are one value: synonyms may be as they stand in a file, with blanks, `TRUE` or `0.50`.
fn is_same_value(entry: &Json, synonym: &Json) -> bool {
    let (Some(entry), Some(synonym)) = (entry.as_str(), synonym.as_str()) else { return entry == synonym };
    let elements = |text: &str| text.split(',').map(|element| element.trim().to_owned()).collect::<Vec<_>>();
    let is_bool = |text: &str| ["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word));
    let same = |(one, other): (&String, &String)| {
        let numbers = || match (one.parse::<i64>(), other.parse::<i64>()) {
            (Ok(one), Ok(other)) => one == other,
            _ => matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if one == other),
        };
        one == other || is_bool(one) && one.eq_ignore_ascii_case(other) || numbers()
    };
    let (entry, synonym) = (elements(entry), elements(synonym));
    entry.len() == synonym.len() && entry.iter().zip(&synonym).all(same)
}

#[cfg(test)]
mod tests {
    use super::super::conversation::BROKER;
    use super::*;
    use serde_json::json;

    /// An entry (name, value, source) with synonyms of the same shape.
    fn says(resource_type: i64, entry: (&str, Json, i64), synonyms: &[(&str, Json, i64)]) -> Option<&'static str> {
        let synonym =
            |(name, value, source): &(&str, Json, i64)| json!({ "Name": name, "Value": value, "Source": source });
        let (name, value, source) = entry;
        let synonyms: Vec<Json> = synonyms.iter().map(synonym).collect();
        let entry = json!({
            "Name": name, "Value": value, "ConfigSource": source, "IsSensitive": false, "Synonyms": synonyms,
        });
        contradiction(&json!(resource_type), &entry)
    }

    #[test]
    fn what_is_in_force_is_the_first_synonym() {
        let own = ("retention.ms", json!("6"), 1);
        let inherited = ("log.retention.ms", json!("7"), 5);
        let synonyms = [own.clone(), inherited.clone()];
        assert_eq!(says(TOPIC, own.clone(), &synonyms), None);
        assert!(says(TOPIC, ("retention.ms", json!("7"), 1), &synonyms).unwrap().contains("value"));
        assert!(says(TOPIC, ("retention.ms", json!(null), 1), &synonyms).unwrap().contains("value"));
        assert!(says(TOPIC, ("retention.ms", json!("6"), 5), &synonyms).unwrap().contains("source"));
        assert!(says(TOPIC, ("segment.ms", json!("6"), 1), &synonyms).unwrap().contains("another config"));
        // After a DELETE, and with the broker's value changed by one digit.
        assert_eq!(says(TOPIC, ("retention.ms", json!("7"), 5), std::slice::from_ref(&inherited)), None);
        assert!(says(TOPIC, ("retention.ms", json!("71"), 5), &[inherited]).is_some());
        assert_eq!(says(TOPIC, ("flush.ms", json!("9"), 5), &[]), None);
    }

    #[test]
    fn a_synonym_in_another_unit_has_another_value() {
        let hours = [("log.retention.hours", json!("168"), 4)];
        assert_eq!(says(TOPIC, ("retention.ms", json!("604800000"), 4), &hours), None);
        assert_eq!(says(BROKER, ("log.retention.ms", json!(null), 4), &hours), None);
        assert!(says(BROKER, ("log.retention.hours", json!("169"), 4), &hours).is_some());
        let scheduler = [("log.flush.scheduler.interval.ms", json!("5"), 4)];
        assert_eq!(says(BROKER, ("log.flush.interval.ms", json!(null), 4), &scheduler), None);
    }

    #[test]
    fn a_value_may_be_written_otherwise_in_a_file() {
        for (entry, synonym) in [("true", "TRUE"), ("0.5", "0.50 "), ("a,b", "a, b"), ("168", " 168"), ("", " ")] {
            assert!(is_same_value(&json!(entry), &json!(synonym)), "{entry}");
        }
        for (entry, synonym) in
            [("gzip", "GZIP"), ("1", "true"), ("a,b", "b,a"), ("9007199254740993", "9007199254740992")]
        {
            assert!(!is_same_value(&json!(entry), &json!(synonym)), "{entry}");
        }
    }
}
