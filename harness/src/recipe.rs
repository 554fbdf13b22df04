//! Long bytes and values as the case files write them, and written out: what repeats, and what repeats but for a number
//! that counts up.

use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// What recipes may make of a few bytes: of hex so many bytes; of a value so many in texts and names, and [`NODE`] for each
/// value within.
pub const EXPANDED_LIMIT: usize = 4 << 20;
/// What a value takes beside its text: some fraction of what it takes in memory.
const NODE: usize = 16;

/// What is said of a recipe that makes more than [`EXPANDED_LIMIT`].
pub fn too_large() -> String {
    format!("more than {} MiB", EXPANDED_LIMIT >> 20)
}

/// What is said of a recipe that makes nothing, however often: it hides that there is nothing.
fn makes_nothing() -> String {
    "what repeats is not empty, and is there at least once".to_owned()
}

/// Plain hex of more bytes than this is looked at for what could be a recipe.
const LONG: usize = 256;
/// The longest unit that is looked for: elements of the smallest kind are shorter.
const LONGEST_UNIT: usize = 96;
/// The digit of a counter in hex.
const DIGIT: char = '_';

/// Hex, or parts of which some repeat.
#[derive(Deserialize)]
#[serde(untagged, expecting = "bytes are hex, or a list of hex and {\"repeat\": n, \"bytes\": hex}")]
pub enum Bytes {
    /// Hex.
    Hex(String),
    /// Parts to join.
    Parts(Vec<Part>),
}

/// A part of bytes.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a part of bytes is hex, or {\"repeat\": n, \"bytes\": hex} with from and base of a number that counts up"
)]
pub enum Part {
    /// Hex.
    Hex(String),
    /// What repeats.
    Repeat(Repeat),
}

/// Hex so many times. Each `_` in it is a digit of a number that counts up, filled with zeros in front.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// How many times.
    repeat: usize,
    /// Hex, with `_` for digits.
    bytes: String,
    /// The first number.
    #[serde(default)]
    from: u64,
    /// What the number is written in: 16, as it stands in an integer, or 10, the digits of a text, each behind a 3.
    #[serde(default = "sixteen")]
    base: u64,
}

fn sixteen() -> u64 {
    16
}

impl Bytes {
    /// All of the bytes. The error says what is no hex or makes too much.
    pub fn expand(&self) -> Result<Vec<u8>, String> {
        match self {
            Bytes::Hex(text) => codec::parse_hex(text),
            Bytes::Parts(parts) => parts.iter().try_fold(Vec::new(), |mut out, part| {
                match part {
                    Part::Hex(text) => out.extend(codec::parse_hex(text)?),
                    Part::Repeat(repeat) => repeat.expand(&mut out)?,
                }
                if out.len() > EXPANDED_LIMIT { Err(too_large()) } else { Ok(out) }
            }),
        }
    }

    /// Whether there is long hex that would be shorter as a recipe.
    pub fn is_longer_than_needed(&self) -> bool {
        let long = |text: &String| {
            let bytes = (text.len() > 2 * LONG).then(|| codec::parse_hex(text).ok()).flatten();
            bytes.is_some_and(|bytes| bytes.len() > LONG && of_bytes(&bytes).is_array())
        };
        match self {
            Bytes::Hex(text) => long(text),
            Bytes::Parts(parts) => parts.iter().any(|part| matches!(part, Part::Hex(text) if long(text))),
        }
    }
}

impl Repeat {
    fn expand(&self, out: &mut Vec<u8>) -> Result<(), String> {
        let Repeat { repeat, bytes, from, base } = self;
        let unit = codec::parse_hex(&bytes.replace(DIGIT, "0"))?;
        if unit.is_empty() || *repeat == 0 {
            return Err(makes_nothing());
        }
        if unit.len().saturating_mul(*repeat).saturating_add(out.len()) > EXPANDED_LIMIT {
            return Err(too_large());
        }
        let nibbles = bytes.chars().filter(|digit| !digit.is_whitespace());
        let places = nibbles.enumerate().filter(|(_, digit)| *digit == DIGIT).map(|(place, _)| place);
        let places: Vec<usize> = places.collect();
        if !matches!(base, 10 | 16) {
            return Err(format!("base {base}: a number that counts up is written in base 10 or 16"));
        }
        if places.is_empty() {
            if (*from, *base) != (0, sixteen()) {
                return Err(format!(
                    "from and base are of a number that counts up, and there is no {DIGIT} for a digit"
                ));
            }
            out.extend(unit.repeat(*repeat));
            return Ok(());
        }
        let end = from.checked_add(*repeat as u64).ok_or_else(too_large)?;
        for number in *from..end {
            let start = out.len();
            out.extend(&unit);
            // The last digit first.
            let rest = places.iter().rev().fold(number, |rest, place| {
                let digit = (rest % base) as u8;
                if let Some(byte) = out.get_mut(start + place / 2) {
                    *byte |= if place % 2 == 0 { digit << 4 } else { digit };
                }
                rest / base
            });
            if rest > 0 {
                return Err(format!("{number} has more than {} digits", places.len()));
            }
        }
        Ok(())
    }
}

/// Lengths such as `0-12,14`, each range by its ends. The error says what is no range.
pub fn lengths(text: &str) -> Result<Vec<RangeInclusive<usize>>, String> {
    let range = |range: &str| {
        let (lowest, highest) = range.split_once('-').unwrap_or((range, range));
        Some(lowest.parse().ok()?..=highest.parse().ok()?).filter(|range| !range.is_empty())
    };
    text.split(',').map(|text| range(text).ok_or_else(|| format!("{text:?} is no range of lengths"))).collect()
}

/// Lengths as the files write them.
pub fn of_lengths(lengths: &BTreeSet<usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &length in lengths {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == length => *last = length,
            _ => ranges.push((length, length)),
        }
    }
    let text =
        |&(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// A value with its recipes written out: `{"repeat": n, "text": ".."}` is long text, `[{"repeat": n, "value": ..}]` a
/// list of n equal elements, and with `"count": FIELD` elements whose field counts up from 0. The error is that they make
/// too much, or that there is no such field.
pub fn expand(json: &Json) -> Result<Json, String> {
    let mut room = EXPANDED_LIMIT;
    expand_within(json, &mut room)
}

/// An element of a list of which one field counts up from 0: a number, or one in digits where `value` has text there.
fn counted(value: &Json, field: &str, number: usize) -> Result<Json, String> {
    let mut value = value.clone();
    let place = value.get_mut(field).ok_or_else(|| format!("count: the elements have no {field}"))?;
    *place = if place.is_string() { number.to_string().into() } else { number.into() };
    Ok(value)
}

/// Takes what it makes off `room`, before it is made.
fn expand_within(json: &Json, room: &mut usize) -> Result<Json, String> {
    let take = |room: &mut usize, what: usize| -> Result<(), String> {
        *room = room.checked_sub(what).ok_or_else(too_large)?;
        Ok(())
    };
    let times = |object: &serde_json::Map<String, Json>, members: usize| {
        let times = object.get("repeat").filter(|_| object.len() == members)?.as_u64()?;
        Some(usize::try_from(times).unwrap_or(usize::MAX))
    };
    take(room, NODE)?;
    Ok(match json {
        Json::Array(elements) => {
            if let [Json::Object(object)] = elements.as_slice()
                && let count = object.get("count").and_then(Json::as_str)
                && let members = if count.is_some() { 3 } else { 2 }
                && let (Some(times), Some(value)) = (times(object, members), object.get("value"))
            {
                if times == 0 {
                    return Err(makes_nothing());
                }
                let before = *room;
                let value = expand_within(value, room)?;
                take(room, (before - *room).saturating_mul(times - 1))?;
                let Some(field) = count else { return Ok(vec![value; times].into()) };
                return (0..times).map(|number| counted(&value, field, number)).collect();
            }
            elements.iter().map(|element| expand_within(element, room)).collect::<Result<_, _>>()?
        }
        Json::Object(object) => {
            if let (Some(times), Some(text)) = (times(object, 2), object.get("text").and_then(Json::as_str)) {
                if text.is_empty() || times == 0 {
                    return Err(makes_nothing());
                }
                take(room, text.len().saturating_mul(times))?;
                return Ok(text.repeat(times).into());
            }
            let mut fields = serde_json::Map::with_capacity(object.len());
            for (name, value) in object {
                take(room, name.len())?;
                fields.insert(name.clone(), expand_within(value, room)?);
            }
            Json::Object(fields)
        }
        other => {
            take(room, other.as_str().map_or(0, str::len))?;
            other.clone()
        }
    })
}

/// A value with recipes in place of long text of one character and long lists of one element.
pub fn of_value(json: &Json) -> Json {
    match json {
        Json::String(text) if text.len() > 64 && text.bytes().all(|byte| text.as_bytes().first() == Some(&byte)) => {
            json!({ "repeat": text.len(), "text": &text[..1] })
        }
        Json::Array(elements) => match elements.split_first() {
            Some((first, rest)) if rest.len() >= 16 && rest.iter().all(|element| element == first) => {
                json!([{ "repeat": elements.len(), "value": of_value(first) }])
            }
            Some((first, rest))
                if rest.len() >= 127
                    && let Some(field) = counting(elements) =>
            {
                json!([{ "repeat": elements.len(), "value": of_value(first), "count": field }])
            }
            _ => elements.iter().map(of_value).collect(),
        },
        Json::Object(object) => match object.get("hex").and_then(Json::as_str) {
            Some(hex) if hex.len() > 128 && hex.as_bytes().chunks(2).all(|pair| pair == &hex.as_bytes()[..2]) => {
                let mut recipe = object.clone();
                recipe.insert("hex".to_owned(), json!({ "repeat": hex.len() / 2, "text": &hex[..2] }));
                Json::Object(recipe)
            }
            _ => object.iter().map(|(name, value)| (name.clone(), of_value(value))).collect(),
        },
        other => other.clone(),
    }
}

/// The one field in which elements differ, counting up from 0.
fn counting(elements: &[Json]) -> Option<&str> {
    let first = elements.first()?.as_object()?;
    let counts = |field: &&String| {
        let mut expected = elements.first().cloned().unwrap_or_default();
        elements.iter().enumerate().all(|(number, element)| {
            let text = first.get(*field).is_some_and(Json::is_string);
            expected[field.as_str()] = if text { number.to_string().into() } else { number.into() };
            *element == expected
        })
    };
    first.keys().find(counts).map(String::as_str)
}

/// Bytes as the files write them: hex, or where a few bytes repeat many times, perhaps but for a number that counts up,
/// parts.
pub fn of_bytes(bytes: &[u8]) -> Json {
    let mut parts: Vec<Json> = Vec::new();
    let mut plain = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        // What makes the most, of the shortest unit.
        let longest = (1..=rest.len().min(LONGEST_UNIT))
            .filter_map(|unit| Run::of(rest, unit))
            .filter(|run| run.count > 2 && run.unit * run.count > 64)
            .max_by_key(|run| (run.unit * run.count, std::cmp::Reverse(run.unit), run.counter.is_none()));
        match longest {
            Some(run) => {
                if !plain.is_empty() {
                    parts.push(codec::hex(&std::mem::take(&mut plain)).into());
                }
                parts.push(run.recipe(rest));
                rest = &rest[run.unit * run.count..];
            }
            None => {
                plain.push(rest[0]);
                rest = &rest[1..];
            }
        }
    }
    if parts.is_empty() {
        return codec::hex(&plain).into();
    }
    if !plain.is_empty() {
        parts.push(codec::hex(&plain).into());
    }
    parts.into()
}

/// Bytes at the start of others that repeat.
struct Run {
    /// Length of what repeats.
    unit: usize,
    /// How often it stands there.
    count: usize,
    /// The number in which they differ.
    counter: Option<Counter>,
}

/// A number that counts up.
#[derive(Clone, Copy)]
struct Counter {
    /// Offset and length of its bytes in the unit.
    at: usize,
    size: usize,
    /// 10 for digits of a text, 16 for an integer.
    base: u64,
    /// The first one.
    from: u64,
}

impl Run {
    /// Units that are equal, or differ in one number. It goes up by one from the first to the second, which shows in its
    /// last byte alone: where it does not, a run begins one further on.
    fn of(bytes: &[u8], unit: usize) -> Option<Run> {
        let (first, second) = (bytes.get(..unit)?, bytes.get(unit..2 * unit)?);
        let Some(last) = first.iter().zip(second).position(|(first, second)| first != second) else {
            let count = bytes.chunks_exact(unit).take_while(|chunk| *chunk == first).count();
            return Some(Run { unit, count, counter: None });
        };
        if first[last + 1..] != second[last + 1..] {
            return None;
        }
        let numbers = [10, 16].into_iter().flat_map(|base| (1..=(last + 1).min(4)).map(move |size| (base, size)));
        let runs = numbers.filter_map(|(base, size)| {
            let at = last + 1 - size;
            let from = number(base, &first[at..=last])?;
            let counts = |(index, chunk): &(usize, &[u8])| {
                let rest_is_equal = chunk[..at] == first[..at] && chunk[last + 1..] == first[last + 1..];
                rest_is_equal && number(base, &chunk[at..=last]) == Some(from + *index as u64)
            };
            let count = bytes.chunks_exact(unit).enumerate().take_while(counts).count();
            Some(Run { unit, count, counter: Some(Counter { at, size, base, from }) })
        });
        // Of those that go as far the shortest number.
        runs.max_by_key(|run| (run.count, std::cmp::Reverse(run.counter.map(|counter| counter.size))))
    }

    fn recipe(&self, bytes: &[u8]) -> Json {
        let hex = codec::hex(&bytes[..self.unit]);
        let Some(Counter { at, size, base, from }) = self.counter else {
            return json!({ "repeat": self.count, "bytes": hex });
        };
        let digits = if base == 10 { "3_" } else { "__" }.repeat(size);
        let hex = [&hex[..2 * at], &digits, &hex[2 * (at + size)..]].concat();
        let mut recipe = json!({ "repeat": self.count, "bytes": hex });
        if from > 0 {
            recipe["from"] = from.into();
        }
        if base == 10 {
            recipe["base"] = base.into();
        }
        recipe
    }
}

/// The number that bytes hold: an integer, or in base 10 the digits of a text.
fn number(base: u64, bytes: &[u8]) -> Option<u64> {
    bytes.iter().try_fold(0, |number, &byte| match base {
        10 => byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')),
        _ => Some(number * 256 + u64::from(byte)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_written_out() {
        assert_eq!(expand(&json!({ "repeat": 3, "text": "ab" })), Ok(json!("ababab")));
        let list = json!({ "A": [{ "repeat": 2, "value": { "N": 1 } }], "B": [{ "repeat": 2 }] });
        assert_eq!(expand(&list), Ok(json!({ "A": [{ "N": 1 }, { "N": 1 }], "B": [{ "repeat": 2 }] })));
        let counted = json!([{ "repeat": 2, "value": { "N": "", "I": 7, "V": 1 }, "count": "N" }]);
        assert_eq!(expand(&counted), Ok(json!([{ "N": "0", "I": 7, "V": 1 }, { "N": "1", "I": 7, "V": 1 }])));
        let counted = json!([{ "repeat": 2, "value": { "N": "", "I": 7 }, "count": "I" }]);
        assert_eq!(expand(&counted), Ok(json!([{ "N": "", "I": 0 }, { "N": "", "I": 1 }])));
        assert!(expand(&json!([{ "repeat": 2, "value": { "N": "" }, "count": "M" }])).is_err());
    }

    #[test]
    fn what_repeats_is_there() {
        for value in [
            json!([{ "repeat": 0, "value": 1 }]),
            json!({ "repeat": 0, "text": "a" }),
            json!({ "A": { "repeat": 1_000_000_000_000_u64, "text": "" } }),
        ] {
            assert_eq!(expand(&value), Err(makes_nothing()), "{value}");
        }
        for part in [
            json!({ "repeat": 0, "bytes": "00" }),
            json!({ "repeat": 1_000_000_000_000_u64, "bytes": "" }),
            json!({ "repeat": 1, "bytes": " " }),
        ] {
            let recipe: Bytes = serde_json::from_value(json!(["00", part])).unwrap();
            assert_eq!(recipe.expand(), Err(makes_nothing()), "{part}");
        }
    }

    #[test]
    fn long_texts_and_names_count_for_what_they_take() {
        let text = "x".repeat(10_000);
        for value in [json!(text), json!({ text.clone(): 0 }), json!({ "A": 0, "B": "", "C": null, "D": [] })] {
            assert!(expand(&json!([{ "repeat": 100, "value": value }])).is_ok());
            assert_eq!(expand(&json!([{ "repeat": 1_000_000, "value": value }])), Err(too_large()));
        }
    }

    #[test]
    fn bytes_are_written_out() {
        let expand = |parts: Json| serde_json::from_value::<Bytes>(parts).map_err(|error| error.to_string())?.expand();
        let hex = |parts: Json| expand(parts).map(|bytes| codec::hex(&bytes));
        assert_eq!(hex(json!(["01", { "repeat": 2, "bytes": "0a 0b" }, "02 03"])), Ok("010a0b0a0b0203".to_owned()));
        assert_eq!(hex(json!([{ "repeat": 3, "bytes": "____ ff", "from": 254 }])), Ok("00feff00ffff0100ff".to_owned()));
        let digits = json!([{ "repeat": 3, "bytes": "03 3_3_", "from": 9, "base": 10 }]);
        assert_eq!(hex(digits), Ok("033039033130033131".to_owned()));
        for wrong in [
            json!({ "repeat": 2, "bytes": "__", "from": 255 }),
            json!({ "repeat": 2, "bytes": "3_", "from": 9, "base": 10 }),
            json!({ "repeat": 2, "bytes": "________________", "from": u64::MAX }),
            json!({ "repeat": 2, "bytes": "00", "from": 1 }),
            json!({ "repeat": 2, "bytes": "00", "base": 10 }),
            json!({ "repeat": 2, "bytes": "__", "base": 2 }),
            json!({ "repeat": 2, "bytes": "_" }),
            json!({ "repeat": 2, "bytes": "__", "count": "Name" }),
        ] {
            assert!(expand(json!([wrong])).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_that_repeat_or_count_become_recipes_of_themselves() {
        let numbered = |written: &dyn Fn(usize) -> Vec<u8>| -> Vec<u8> { (0..1_025).flat_map(written).collect() };
        let text = |number: usize| {
            let digits = number.to_string();
            [&[digits.len() as u8 + 1], digits.as_bytes(), &[1, 0]].concat()
        };
        let integer = |number: usize| [&[0, 0], &(number as u32).to_be_bytes()[..], &[0, 7]].concat();
        let equal = |_: usize| vec![1, 2, 3];
        let cases: [(Vec<u8>, usize); 3] = [(numbered(&text), 6), (numbered(&integer), 2), (numbered(&equal), 2)];
        for (elements, parts) in cases {
            let bytes = [&[0x81, 0x08][..], &elements, &[9, 9]].concat();
            let recipe = of_bytes(&bytes);
            assert!(recipe.as_array().is_some_and(|found| found.len() <= parts + 1), "{recipe}");
            assert_eq!(serde_json::from_value::<Bytes>(recipe).unwrap().expand(), Ok(bytes));
        }
        // Nothing repeats or counts.
        let bytes: Vec<u8> = (0..600u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        assert_eq!(of_bytes(&bytes), json!(codec::hex(&bytes)));
        let plain = |bytes: &[u8]| Bytes::Hex(codec::hex(bytes)).is_longer_than_needed();
        assert_eq!(
            [plain(&bytes), plain(&numbered(&text)), plain(&[0; 256]), plain(&[0; 257])],
            [false, true, false, true]
        );
    }

    /// Each would fill the memory of any machine, or take for ever.
    #[test]
    fn recipes_of_too_much_are_said_to_be_that() {
        let million = 1 << 20;
        let nested = json!([{ "repeat": million, "value": [{ "repeat": million, "value": 1 }] }]);
        let texts = json!([{ "repeat": million, "value": { "repeat": million, "text": "a" } }]);
        for value in [nested, texts, json!({ "repeat": u64::MAX, "text": "ab" })] {
            assert_eq!(expand(&value), Err("more than 4 MiB".to_owned()), "{value}");
        }
        let part = json!({ "repeat": 3 << 20, "bytes": "00" });
        let recipe: Bytes = serde_json::from_value(json!([part, part])).unwrap();
        assert_eq!(recipe.expand(), Err("more than 4 MiB".to_owned()));
        let counted: Bytes = serde_json::from_value(json!([{ "repeat": u64::MAX, "bytes": "____" }])).unwrap();
        assert_eq!(counted.expand(), Err("more than 4 MiB".to_owned()));
    }
}
