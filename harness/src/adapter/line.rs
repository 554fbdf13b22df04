//! One line of a peer: parsed within bounds, and what an answer says.

use serde_json::Value as Json;

/// Bytes in a line. The longest right answer to a case is some 130 KB of hex; a client that shows all configs of a large
/// cluster stays far below.
pub const LINE_LIMIT: usize = 4 << 20;
/// JSON values in a line. The right answers have up to some sixteen thousand. A value of two bytes takes some 300 as a tree, and its
/// struct of defaults more, so that the length alone would be no bound.
pub const VALUES_LIMIT: usize = 1 << 16;

/// Parses a line. The error says what is wrong with it.
pub fn parse(line: &str) -> Result<Json, String> {
    let values = values(line);
    if values > VALUES_LIMIT {
        return Err(format!("a line of {values} JSON values, where {VALUES_LIMIT} is the most: {}", cut(line)));
    }
    serde_json::from_str(line).map_err(|error| format!("a line that is not JSON ({error}): {}", cut(line)))
}

/// At least as many as the JSON values in a line: each but the first follows a bracket or a comma outside of texts.
pub fn values(line: &str) -> usize {
    let (mut count, mut in_text, mut escaped) = (1, false, false);
    for byte in line.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' | b',' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

/// What an answer says: exactly one of its keys holds something.
#[derive(Clone, Debug, PartialEq)]
pub enum Said<'a> {
    /// A value and how many bytes are left after it.
    Value(&'a Json, u64),
    /// Bytes, in hex.
    Bytes(&'a str),
    /// The library said no; a client may give the broker's error code.
    Error(&'a str, Option<i64>),
    /// It panicked, or threw what its user could not expect, and the adapter caught it.
    Panic(&'a str),
    /// It has no such message, version, part, operation or option.
    Unsupported(&'a str),
    /// A client said no before anything was sent.
    Refused(&'a str),
}

impl<'a> Said<'a> {
    const KEYS: [&'static str; 6] = ["value", "bytes", "error", "panic", "unsupported", "refused"];

    /// Reads an answer. `null` counts as not there: some JSON writers state the fields that they do not have. The error
    /// says how the adapter broke the protocol.
    pub fn of(answer: &'a Json) -> Result<Said<'a>, String> {
        let stated = |key: &str| answer.get(key).filter(|value| !value.is_null());
        let mut said = Said::KEYS.into_iter().filter_map(|key| Some((key, stated(key)?)));
        let Some((key, value)) = said.next() else {
            return Err(format!("an answer without {}: {}", Said::KEYS.join(", "), cut(&answer.to_string())));
        };
        if let Some((second, _)) = said.next() {
            return Err(format!("an answer with both {key} and {second}: {}", cut(&answer.to_string())));
        }
        let wrong = |key: &str, what: &str, value: &Json| format!("{key} is not {what}: {}", cut(&value.to_string()));
        let left = match stated("left") {
            Some(left) => left.as_u64().ok_or_else(|| wrong("left", "a number of bytes", left))?,
            None => 0,
        };
        let code = match stated("code") {
            Some(code) => Some(code.as_i64().ok_or_else(|| wrong("code", "an error code", code))?),
            None => None,
        };
        if key == "value" {
            return Ok(Said::Value(value, left));
        }
        let text = value.as_str().ok_or_else(|| wrong(key, "a text", value))?;
        Ok(match key {
            "bytes" => Said::Bytes(text),
            "error" => Said::Error(text, code),
            "panic" => Said::Panic(text),
            "unsupported" => Said::Unsupported(text),
            _ => Said::Refused(text),
        })
    }

    /// Whether a line that is not the answer asked for was meant as one.
    pub fn is_meant(line: &Json) -> bool {
        line.get("id").is_some() || Said::KEYS.iter().any(|key| line.get(key).is_some())
    }
}

/// The start of a text that may be long.
pub fn cut(text: &str) -> String {
    const KEPT: usize = 300;
    let text = text.trim();
    if text.len() <= KEPT { text.to_owned() } else { format!("{}...", &text[..text.floor_char_boundary(KEPT)]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn brackets_and_commas_in_texts_are_no_values() {
        assert_eq!(values("7"), 1);
        assert_eq!(values(r#"{"a":[1,2],"b":"x"}"#), 5);
        assert_eq!(values(r#"{"a":"[{,\",[\\"}"#), 2);
        let text = json!({ "id": 1, "error": "[,{".repeat(VALUES_LIMIT) }).to_string();
        assert!(parse(&text).is_ok());
    }

    #[test]
    fn a_line_of_too_many_values_is_not_built() {
        // A third of the length limit, and some 200 MiB as a tree.
        let depth = 100;
        let nested = "[".repeat(depth) + &"]".repeat(depth);
        let line = format!("[{}]", vec![nested; VALUES_LIMIT / 10].join(","));
        assert!(line.len() < LINE_LIMIT);
        assert!(parse(&line).is_err_and(|what| what.contains("JSON values")));
        let most = format!("[{}]", vec!["0"; VALUES_LIMIT - 1].join(","));
        assert!(parse(&most).is_ok());
    }

    #[test]
    fn an_answer_says_one_thing() {
        let value = json!({ "A": 1 });
        let said = |answer: Json| Said::of(&answer).map(|said| format!("{said:?}"));
        assert_eq!(Said::of(&json!({ "id": 1, "value": value, "left": 3 })), Ok(Said::Value(&value, 3)));
        assert_eq!(Said::of(&json!({ "value": value, "error": null, "left": null })), Ok(Said::Value(&value, 0)));
        assert_eq!(Said::of(&json!({ "error": "no", "code": 29, "value": null })), Ok(Said::Error("no", Some(29))));
        for (broken, says) in [
            (json!({ "id": 1 }), "without value, bytes, error"),
            (json!({ "id": 1, "error": null, "value": null }), "without value, bytes, error"),
            (json!([1]), "without value, bytes, error"),
            (json!({ "value": {}, "error": "no" }), "both value and error"),
            (json!({ "value": {}, "unsupported": false }), "both value and unsupported"),
            (json!({ "bytes": "00", "refused": "no" }), "both bytes and refused"),
            (json!({ "error": {} }), "error is not a text: {}"),
            (json!({ "bytes": [0] }), "bytes is not a text: [0]"),
            (json!({ "value": {}, "left": -1 }), "left is not a number of bytes: -1"),
            (json!({ "value": {}, "left": "3" }), "left is not a number of bytes: \"3\""),
            (json!({ "value": {}, "left": 1.5 }), "left is not a number of bytes: 1.5"),
            (json!({ "error": "no", "code": "29" }), "code is not an error code: \"29\""),
        ] {
            let what = said(broken.clone());
            assert!(what.as_ref().is_err_and(|what| what.contains(says)), "{broken}: {what:?}");
        }
    }
}
