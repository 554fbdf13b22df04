//! JSON in which a key is given twice: readers keep the last of the two, or the first, and say nothing.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// Whether each object of a text names each of its keys once; the error says which is there twice, with line and column,
/// or why the text is no JSON.
pub fn given_once(text: &str) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Keys.deserialize(&mut deserializer)?;
    deserializer.end()
}

/// Any value: passed over but for the keys of objects.
struct Keys;

impl<'de> DeserializeSeed<'de> for Keys {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} is given twice")));
            }
            seen.insert(key);
            members.next_value_seed(Keys)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element_seed(Keys)?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_given_twice_is_found_wherever_it_stands() {
        for once in
            ["{}", r#"[{"a":1},{"a":2}]"#, r#"{"a":{"a":{"a":[null,true,-1,1.5,"a"]}}}"#, "18446744073709551615"]
        {
            assert!(given_once(once).is_ok(), "{once}");
        }
        for twice in [r#"{"a":1,"a":1}"#, r#"[0,{"b":{"a":[],"c":0,"a":[]}}]"#, r#"{"a":1,"\u0061":2}"#] {
            let error = given_once(twice).unwrap_err().to_string();
            assert!(error.starts_with("the key \"a\" is given twice at line 1 column "), "{twice}: {error}");
        }
        assert!(given_once("{} {}").is_err());
    }
}
