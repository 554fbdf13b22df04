//! The crate's values to and from the suite's JSON.

use bytes::Bytes;
use kafka_protocol::messages::{BrokerId, TopicName};
use kafka_protocol::protocol::StrBytes;
use serde_json::{Value, json};
use uuid::Uuid;

/// Why there is no answer.
#[derive(Debug)]
pub enum Refusal {
    /// The library does not have it.
    Unsupported(String),
    /// The library said no, or no value of it can hold what was asked.
    Error(String),
}

impl From<anyhow::Error> for Refusal {
    fn from(error: anyhow::Error) -> Self {
        Refusal::Error(format!("{error:#}"))
    }
}

/// A refusal by this adapter: the fault is in the JSON, not in the library.
pub fn bad(why: impl std::fmt::Display) -> Refusal {
    Refusal::Error(format!("adapter: {why}"))
}

/// A value of the crate that has a JSON form.
pub trait Json: Sized {
    /// Its JSON form; nothing the crate holds is left out.
    fn json(&self) -> Value;
    /// The value that JSON stands for.
    fn parse(value: &Value) -> Result<Self, Refusal>;
}

impl Json for bool {
    fn json(&self) -> Value {
        json!(self)
    }
    fn parse(value: &Value) -> Result<Self, Refusal> {
        value.as_bool().ok_or_else(|| bad(format!("not a boolean: {value}")))
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Json for $type {
            fn json(&self) -> Value {
                // Beyond 2^53 a JSON number is not exact in every reader.
                let exact = (*self as i64).unsigned_abs() <= 1 << 53;
                if exact { json!(self) } else { json!(self.to_string()) }
            }
            fn parse(value: &Value) -> Result<Self, Refusal> {
                let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
                let number = number.ok_or_else(|| bad(format!("not an integer: {value}")))?;
                number.try_into().map_err(|_| bad(format!("{number} is no {}", stringify!($type))))
            }
        }
    )*};
}
integers!(i8, i16, i32, i64);

impl Json for f64 {
    fn json(&self) -> Value {
        match *self {
            number if number.is_nan() => json!("NaN"),
            f64::INFINITY => json!("Infinity"),
            f64::NEG_INFINITY => json!("-Infinity"),
            number => json!(number),
        }
    }
    fn parse(value: &Value) -> Result<Self, Refusal> {
        let number = match value.as_str() {
            Some("NaN") => Some(f64::NAN),
            Some("Infinity") => Some(f64::INFINITY),
            Some("-Infinity") => Some(f64::NEG_INFINITY),
            _ => value.as_f64(),
        };
        number.ok_or_else(|| bad(format!("not a number: {value}")))
    }
}

impl Json for StrBytes {
    fn json(&self) -> Value {
        json!(self.as_str())
    }
    fn parse(value: &Value) -> Result<Self, Refusal> {
        if let Some(text) = value.as_str() {
            return Ok(StrBytes::from_string(text.to_owned()));
        }
        StrBytes::from_utf8(Bytes::parse(value)?)
            .map_err(|_| Refusal::Unsupported("a StrBytes holds no bytes that are not UTF-8".to_owned()))
    }
}

impl Json for Bytes {
    fn json(&self) -> Value {
        json!({"hex": hex(self)})
    }
    fn parse(value: &Value) -> Result<Self, Refusal> {
        let text = value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("hex")?.as_str());
        Ok(unhex(text.ok_or_else(|| bad(format!("neither text nor {{\"hex\": ...}}: {value}")))?)?.into())
    }
}

impl Json for Uuid {
    fn json(&self) -> Value {
        json!(self.hyphenated().to_string())
    }
    fn parse(value: &Value) -> Result<Self, Refusal> {
        let text = value.as_str().unwrap_or_default();
        let uuid =
            if text.len() == 22 { base64url(text) } else { Uuid::try_parse(text).ok().filter(|_| text.len() == 36) };
        uuid.ok_or_else(|| bad(format!("not a uuid: {value}")))
    }
}

/// Kafka's short text of a uuid: base64url, whose 22 digits hold 132 bits, the last four of them padding.
fn base64url(text: &str) -> Option<Uuid> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut digits = text.bytes().map(|character| DIGITS.iter().position(|digit| *digit == character));
    let high = digits.by_ref().take(21).try_fold(0_u128, |bits, digit| Some(bits << 6 | digit? as u128))?;
    Some(Uuid::from_u128(high << 2 | digits.next()?? as u128 >> 4))
}

macro_rules! wrappers {
    ($($wrapper:ty),*) => {$(
        impl Json for $wrapper {
            fn json(&self) -> Value {
                self.0.json()
            }
            fn parse(value: &Value) -> Result<Self, Refusal> {
                Ok(Self(Json::parse(value)?))
            }
        }
    )*};
}
wrappers!(BrokerId, TopicName);

impl<T: Json> Json for Option<T> {
    fn json(&self) -> Value {
        self.as_ref().map_or(Value::Null, Json::json)
    }
    fn parse(value: &Value) -> Result<Self, Refusal> {
        if value.is_null() { Ok(None) } else { T::parse(value).map(Some) }
    }
}

impl<T: Json> Json for Vec<T> {
    fn json(&self) -> Value {
        self.iter().map(Json::json).collect()
    }
    fn parse(value: &Value) -> Result<Self, Refusal> {
        let elements = value.as_array().ok_or_else(|| bad(format!("not an array: {value}")))?;
        elements
            .iter()
            .enumerate()
            .map(|(index, element)| T::parse(element).map_err(|error| at(&format!("[{index}]"), error)))
            .collect()
    }
}

/// Says where in the value a refusal of this adapter arose.
pub fn at(place: &str, refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Error(why) => bad(format!("{place} {}", why.trim_start_matches("adapter: "))),
        unsupported => unsupported,
    }
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes of hex text, which may hold spaces.
pub fn unhex(text: &str) -> Result<Vec<u8>, Refusal> {
    let digits: Option<Vec<u8>> =
        text.chars().filter(|c| *c != ' ').map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or_else(|| bad("not hex"))?;
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
