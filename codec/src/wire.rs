//! The primitive types of the protocol guide, read from a slice and written to a buffer: the hot paths.

use crate::error::DecodeErrorKind;

/// Reads primitives from a slice. A failed read leaves the position where the field starts.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// What is left. Held instead of a position, since a read then takes one bounds check.
    rest: &'a [u8],
    /// Offset after `rest`.
    end: usize,
}

/// A uvarint as read: its value, and whether it was written as an encoder would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uvarint {
    /// The low 32 bits.
    pub value: u32,
    /// In more bytes than it needs: `80 00` is 0.
    pub not_minimal: bool,
    /// Bits beyond the 32nd in the 5th byte, which are not in `value`.
    pub high_bits: bool,
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, end: bytes.len() }
    }

    /// Reads from `position` on; past the end nothing is left.
    pub fn at(bytes: &'a [u8], position: usize) -> Reader<'a> {
        Reader { rest: bytes.get(position..).unwrap_or_default(), end: bytes.len() }
    }

    /// Offset of the next byte.
    #[inline(always)]
    pub fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    /// Bytes left.
    #[inline(always)]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// A reader of the next `size` bytes only, or of all that are left where these are fewer.
    pub(crate) fn first(&self, size: usize) -> Reader<'a> {
        let rest = self.rest.get(..size).unwrap_or(self.rest);
        Reader { rest, end: self.position() + rest.len() }
    }

    /// The next `length` bytes.
    #[inline(always)]
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeErrorKind> {
        match self.rest.split_at_checked(length) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(DecodeErrorKind::Truncated { needed: length, left: self.left() }),
        }
    }

    /// The next `N` bytes.
    #[inline(always)]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeErrorKind> {
        match self.rest.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(DecodeErrorKind::Truncated { needed: N, left: self.left() }),
        }
    }

    /// A uvarint of one byte, as nearly all are; `None`, and nothing read, where it is longer or not there.
    #[inline(always)]
    pub(crate) fn short_uvarint(&mut self) -> Option<u32> {
        match self.rest.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.rest = rest;
                Some(byte.into())
            }
            _ => None,
        }
    }

    /// The content of a compact string or bytes of up to 126 bytes, as nearly all are; `None`, and nothing read, where
    /// it is longer, null, or not there.
    #[inline(always)]
    pub(crate) fn short_compact(&mut self) -> Option<&'a [u8]> {
        let mut rest = *self;
        let length = rest.short_uvarint()?.checked_sub(1)?;
        let content = rest.take(length as usize).ok()?;
        *self = rest;
        Some(content)
    }

    /// An unsigned varint of up to 5 bytes, low group first. 300 is `ac 02`. A continuation bit on the 5th byte is an
    /// error; bits beyond the 32nd and needless bytes are reported.
    #[inline(always)]
    pub fn uvarint(&mut self) -> Result<Uvarint, DecodeErrorKind> {
        match self.short_uvarint() {
            Some(value) => Ok(Uvarint { value, not_minimal: false, high_bits: false }),
            None => self.long_uvarint(),
        }
    }

    #[inline]
    fn long_uvarint(&mut self) -> Result<Uvarint, DecodeErrorKind> {
        let mut bytes = [0xff; 8];
        match self.rest.first_chunk() {
            Some(all) => bytes = *all,
            // The end of the input; what is not there looks as if another byte followed.
            None => bytes.iter_mut().zip(self.rest).for_each(|(byte, there)| *byte = *there),
        }
        let word = u64::from_le_bytes(bytes);
        // Without a loop, whose end is hard to predict: the first of five bytes without a continuation bit is the last.
        let last = match !word & 0x80_8080_8080 {
            0 if self.left() < 5 => return Err(DecodeErrorKind::VarintTruncated),
            0 => return Err(DecodeErrorKind::VarintTooLong),
            ends => ends.trailing_zeros() / 8,
        };
        self.rest = self.rest.get(last as usize + 1..).unwrap_or_default();
        let bytes = word & (u64::MAX >> (56 - 8 * last));
        let final_byte = bytes >> (8 * last);
        // In the 5th byte the three bits above the 32nd fall off.
        let value = bytes & 0x7f
            | bytes >> 1 & 0x3f80
            | bytes >> 2 & 0x1f_c000
            | bytes >> 3 & 0xfe0_0000
            | bytes >> 4 & 0xf000_0000;
        Ok(Uvarint {
            value: u32::try_from(value).unwrap_or_default(),
            not_minimal: final_byte == 0 && last > 0,
            high_bits: last == 4 && final_byte > 0x0f,
        })
    }
}

/// Whether all bytes are ASCII: up to 16 at a time, and the last ones overlap those before, which is cheaper than byte
/// by byte.
#[inline(always)]
pub fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH: u128 = u128::from_ne_bytes([0x80; 16]);
    let high = if let (Some(first), Some(last)) = (bytes.first_chunk::<16>(), bytes.last_chunk::<16>()) {
        let ends = u128::from_ne_bytes(*first) | u128::from_ne_bytes(*last);
        let (chunks, _) = bytes.as_chunks::<16>();
        chunks.iter().skip(1).fold(ends, |high, chunk| high | u128::from_ne_bytes(*chunk))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (u64::from_ne_bytes(*first) | u64::from_ne_bytes(*last)).into()
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (u32::from_ne_bytes(*first) | u32::from_ne_bytes(*last)).into()
    } else {
        bytes.iter().fold(0, |high, &byte| high | u128::from(byte))
    };
    high & HIGH == 0
}

/// Whether the bytes are UTF-8: ASCII first, since nearly all Kafka text is.
#[inline(always)]
pub fn is_utf8(bytes: &[u8]) -> bool {
    is_ascii(bytes) || is_utf8_slow(bytes)
}

#[inline(never)]
fn is_utf8_slow(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

/// Writes an unsigned varint in as few bytes as it takes.
#[inline(always)]
pub fn write_uvarint(out: &mut Vec<u8>, value: u32) {
    if value < 0x80 {
        out.push((value & 0x7f) as u8);
        return;
    }
    // Eight bytes at once, of which those that count stay: cheaper than a loop, whose end is hard to predict.
    let (bytes, size) = uvarint_bytes(value);
    let end = out.len() + size;
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

/// A uvarint's bytes, and how many of them it takes.
#[inline(always)]
fn uvarint_bytes(value: u32) -> ([u8; 8], usize) {
    let value = u64::from(value);
    // Each group of seven bits to a byte of its own.
    let groups = value & 0x7f
        | (value << 1) & 0x7f00
        | (value << 2) & 0x7f_0000
        | (value << 3) & 0x7f00_0000
        | (value << 4) & 0xf_0000_0000;
    let last = (63 - (groups | 1).leading_zeros()) / 8;
    // All but the last byte say that another one follows.
    let more = 0x80_8080_8080 & ((1 << (8 * last)) - 1);
    ((groups | more).to_le_bytes(), last as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<(u32, bool, bool), DecodeErrorKind> {
        Reader::new(bytes).uvarint().map(|uvarint| (uvarint.value, uvarint.not_minimal, uvarint.high_bits))
    }

    #[test]
    fn uvarints_are_read_as_the_guide_says() {
        assert_eq!(read(&[0]), Ok((0, false, false)));
        assert_eq!(read(&[0x7f]), Ok((127, false, false)));
        assert_eq!(read(&[0x80, 1]), Ok((128, false, false)));
        assert_eq!(read(&[0xac, 2]), Ok((300, false, false)));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok((u32::MAX, false, false)));
    }

    #[test]
    fn odd_uvarints_are_reported() {
        assert_eq!(read(&[0x80, 0]), Ok((0, true, false)));
        assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0]), Ok((0, true, false)));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x7f]), Ok((u32::MAX, false, true)));
        assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x10]), Ok((0, false, true)));
        assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]), Err(DecodeErrorKind::VarintTooLong));
        assert_eq!(read(&[0x80, 0x80]), Err(DecodeErrorKind::VarintTruncated));
        assert_eq!(read(&[]), Err(DecodeErrorKind::VarintTruncated));
    }

    #[test]
    fn a_written_uvarint_is_read_back_and_minimal() {
        for value in (0..32).flat_map(|bit| [1_u32 << bit, (1 << bit) - 1, u32::MAX >> bit]) {
            let mut out = Vec::new();
            write_uvarint(&mut out, value);
            assert_eq!(read(&out), Ok((value, false, false)));
            assert_eq!(out.len(), (32 - (value | 1).leading_zeros()).div_ceil(7) as usize);
        }
    }

    #[test]
    fn ascii_is_found_at_every_length_and_place() {
        for length in 0..40 {
            let mut text = vec![b'a'; length];
            assert!(is_ascii(&text));
            for place in 0..length {
                text[place] = 0x80;
                assert!(!is_ascii(&text), "{length} {place}");
                text[place] = b'a';
            }
        }
    }
}
