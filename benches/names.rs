//! DeleteTopicsRequest v4: the message that is nothing but compact strings.

use crate::push_uvarint;

/// The definition.
pub const DEFINITION: &str = include_str!("../schemas/DeleteTopicsRequest.json");

/// How many names there are.
pub const NAMES: usize = 1_000;

/// What names are made of that are ASCII.
pub const ASCII: &str = "retention.ms-0123_TOPIC";

/// A thousand names of 8 to 40 bytes in no order of size.
pub fn names(characters: &str) -> Vec<String> {
    let characters: Vec<char> = characters.chars().collect();
    let name = |index: usize| {
        let length = 8 + index * 7_919 % 33;
        let mut name = String::new();
        for character in characters.iter().cycle().skip(index % characters.len()) {
            // What does not fit any more is filled up with one-byte letters.
            name.push(if name.len() + character.len_utf8() > length { 'x' } else { *character });
            if name.len() == length {
                break;
            }
        }
        name
    };
    (0..NAMES).map(name).collect()
}

/// The message as bytes, written by none of the codecs: the names, a timeout of 30,000 ms, no tagged fields.
pub fn bytes(names: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    push_uvarint(&mut out, names.len() as u32 + 1);
    for name in names {
        push_uvarint(&mut out, name.len() as u32 + 1);
        out.extend_from_slice(name.as_bytes());
    }
    out.extend([0, 0, 0x75, 0x30, 0]);
    out
}
