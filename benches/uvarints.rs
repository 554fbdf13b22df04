//! Unsigned varints, as values and as bytes.

use crate::push_uvarint;

/// Xorshift: the same numbers in every run.
fn random_numbers() -> impl Iterator<Item = u32> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    })
}

/// A value that takes `size` bytes, 1 to 5.
fn of_size(size: u32, random: u32) -> u32 {
    let least = if size == 1 { 0 } else { 1 << (7 * (size - 1)) };
    let greatest = if size == 5 { u32::MAX } else { (1 << (7 * size)) - 1 };
    least + random % (greatest - least)
}

/// Of 100 values, 95 of one byte and 5 of two: as lengths and counts in messages are.
pub fn mostly_short(random: u32) -> u32 {
    if random % 100 < 95 { 1 } else { 2 }
}

/// So many values, each of the bytes that `size` makes of a random number: 1 to 5.
pub fn values(count: usize, size: fn(u32) -> u32) -> Vec<u32> {
    let (mut sizes, mut numbers) = (random_numbers(), random_numbers().skip(count));
    let value = |_| Some(of_size(size(sizes.next()?), numbers.next()?));
    (0..count).filter_map(value).collect()
}

/// The bytes, written by none of the encoders measured.
pub fn bytes(values: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|&value| push_uvarint(&mut out, value));
    out
}
