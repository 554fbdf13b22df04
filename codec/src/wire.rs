//! The primitive types of the protocol guide, read from a slice and written to a buffer: the hot paths.

use crate::error::{DecodeErrorKind, EncodeErrorKind, Unwinding};

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

    /// An unsigned varint of up to 5 bytes, low group first. 300 is `ac 02`. A continuation bit on the 5th byte is an
    /// error; bits beyond the 32nd and needless bytes are reported.
    #[inline(always)]
    pub fn uvarint(&mut self) -> Result<Uvarint, DecodeErrorKind> {
        // One byte or two, as nearly all are, by branches: the next read need not wait for how many there were.
        let (value, not_minimal);
        (value, not_minimal, self.rest) = match *self.rest {
            [byte @ 0..0x80, ref rest @ ..] => (u32::from(byte), false, rest),
            [low, high @ 0..0x80, ref rest @ ..] => (u32::from(low & 0x7f) | u32::from(high) << 7, high == 0, rest),
            _ => return self.long_uvarint(),
        };
        Ok(Uvarint { value, not_minimal, high_bits: false })
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
            // A lone byte 0 is not read here.
            not_minimal: final_byte == 0,
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

/// How many bytes at the start are ASCII.
#[inline(never)]
pub(crate) fn ascii_prefix(bytes: &[u8]) -> usize {
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let high = |word: &[u8; 8]| u64::from_le_bytes(*word) & HIGH;
    // Blocks of eight words, then words, then bytes.
    let (blocks, _) = bytes.as_chunks::<64>();
    let is_ascii = |block: &&[u8; 64]| block.as_chunks::<8>().0.iter().fold(0, |all, word| all | high(word)) == 0;
    let mut ascii = 64 * blocks.iter().take_while(is_ascii).count();
    let (words, rest) = bytes.get(ascii..).unwrap_or_default().as_chunks::<8>();
    for word in words {
        match high(word) {
            0 => ascii += 8,
            high => return ascii + high.trailing_zeros() as usize / 8,
        }
    }
    ascii + rest.iter().take_while(|byte| byte.is_ascii()).count()
}

/// Whether the bytes are UTF-8: ASCII first, since nearly all Kafka text is.
#[inline(always)]
pub fn is_utf8(bytes: &[u8]) -> bool {
    is_ascii(bytes) || is_utf8_slow(bytes)
}

/// Whether bytes that are likely not all ASCII are UTF-8. In nearly all text nothing can be wrong but where characters start
/// and end; that is looked at a block at a time, each byte beside the three before it, which compilers make vector
/// instructions of. The standard library, which goes byte by byte through such text, sees to the rest.
#[inline(never)]
pub(crate) fn is_utf8_slow(bytes: &[u8]) -> bool {
    let (&[first, second, third, ..], Some(last)) = (bytes, bytes.last_chunk()) else {
        return std::str::from_utf8(bytes).is_ok();
    };
    // No text starts within a character: what is before it counts as ASCII.
    let (mut misplaced, mut rare) = look_at(&[0, 0, 0, first, second, third]);
    // The last window may look at some bytes once more, which changes nothing.
    let windows = bytes.windows(BEFORE + BLOCK).step_by(BLOCK).filter_map(<[u8]>::first_chunk::<{ BEFORE + BLOCK }>);
    for window in windows.chain([last]) {
        let (more_misplaced, more_rare) = look_at(window);
        (misplaced, rare) = (misplaced | more_misplaced, rare | more_rare);
    }
    // No text ends within a character.
    let cut = matches!(bytes, [.., 0xf0..=0xff, _, _] | [.., 0xe0..=0xff, _] | [.., 0xc0..=0xff]);
    misplaced < 0x80 && !cut && (rare == 0 || std::str::from_utf8(bytes).is_ok())
}

/// How many bytes are looked at together, and how many before each it is compared with.
const BLOCK: usize = 32;
const BEFORE: usize = 3;

/// With its highest bit, whether a byte is to continue a character, given those one, two and three before it: that bit is
/// left where the first starts any character, the second one of three bytes at least, and the third one of four.
#[inline(always)]
fn due(one: u8, two: u8, three: u8) -> u8 {
    one.saturating_sub(0xc0 - 0x80) | two.saturating_sub(0xe0 - 0x80) | three.saturating_sub(0xf0 - 0x80)
}

/// Whether a byte starts a character whose second byte is restricted, or none.
#[inline(always)]
fn is_rare(byte: u8) -> bool {
    (byte & 0xfe == 0xc0) | (byte == 0xe0) | (byte == 0xed) | (byte >= 0xf0)
}

/// Of all but the first three bytes of a window: with its highest bit, whether any continues a character where none is to
/// be continued, or the other way round; and whether any starts a character whose second byte is restricted, or none.
#[inline(always)]
fn look_at<const SIZE: usize>(window: &[u8; SIZE]) -> (u8, u8) {
    let (three, two, one) = (window.iter(), window.iter().skip(1), window.iter().skip(2));
    let bytes = window.iter().skip(BEFORE).zip(one).zip(two.zip(three));
    bytes.fold((0, 0), |(misplaced, rare), ((&byte, &one), (&two, &three))| {
        let continues = if byte & 0xc0 == 0x80 { 0x80 } else { 0 };
        (misplaced | (due(one, two, three) ^ continues), rare | u8::from(is_rare(byte)))
    })
}

/// The offset after what was written, or why it was not.
pub type Written = Result<usize, Unwinding>;

/// A buffer that primitives are written to. Each write takes the offset to write at and gives the one after what it wrote,
/// which the caller keeps in a register: each write waits for the one before it.
///
/// What is written goes to a place that is there already, a few bytes at a time, rather than to the end of a `Vec`, whose
/// length would be read and written around every byte.
#[derive(Debug, Default)]
pub struct Writer {
    /// What is written, and after it what may be overwritten.
    bytes: Vec<u8>,
}

impl Writer {
    /// Writes to these bytes, mostly from their end on; their capacity is used.
    pub fn new(bytes: Vec<u8>) -> Writer {
        Writer { bytes }
    }

    /// The bytes up to offset `end`, which all that counts is before.
    pub fn into_bytes(mut self, end: usize) -> Vec<u8> {
        self.bytes.truncate(end);
        self.bytes
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, at: usize, size: usize) {
        const LEAST: usize = 64;
        let needed = at.saturating_add(size);
        let twice = self.bytes.len() * 2 + LEAST;
        // No more is made ready than the output may need, and nothing is allocated while there is capacity.
        let capacity = self.bytes.capacity();
        let size = if needed <= capacity { twice.min(capacity) } else { twice };
        self.bytes.resize(size.max(needed), 0);
    }

    /// So many bytes.
    #[inline(always)]
    pub fn array<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> usize {
        if let Some(end) = array(&mut self.bytes, at, bytes) {
            return end;
        }
        self.grow(at, N);
        array(&mut self.bytes, at, bytes).unwrap_or(at)
    }

    /// Bytes as they are.
    #[inline(never)]
    pub fn slice(&mut self, at: usize, bytes: &[u8]) -> usize {
        let end = at + bytes.len();
        if self.bytes.len() < end {
            self.grow(at, bytes.len());
        }
        if let Some(room) = self.bytes.get_mut(at..end) {
            room.copy_from_slice(bytes);
        }
        end
    }

    /// Text of a usual size, 4 to 126 bytes, and before it its length: in one byte and one too great, which is the compact
    /// form, or as an int16. `None` of any other, or where there is no room left: it is not written.
    // Little code, to be inlined where text is written. Two halves that overlap are cheaper to copy than by a call.
    #[inline(always)]
    fn usual_text<const COMPACT: bool>(&mut self, at: usize, text: &[u8]) -> Option<usize> {
        let size = text.len();
        if size > 126 {
            return None;
        }
        #[allow(clippy::cast_possible_truncation, reason = "at most 126")]
        let length = size as u8;
        let prefix = if COMPACT { 1 } else { 2 };
        let room = self.bytes.get_mut(at..)?.get_mut(..prefix + size)?;
        if COMPACT {
            *room.first_chunk_mut()? = [length + 1];
        } else {
            *room.first_chunk_mut()? = [0, length];
        }
        let room = room.get_mut(prefix..)?;
        macro_rules! in_halves_of {
            ($size:literal) => {{
                *room.first_chunk_mut::<$size>()? = *text.first_chunk()?;
                *room.last_chunk_mut::<$size>()? = *text.last_chunk()?;
            }};
        }
        if size >= 32 {
            room.copy_from_slice(text);
        } else if size >= 16 {
            in_halves_of!(16);
        } else if size >= 8 {
            in_halves_of!(8);
        } else {
            in_halves_of!(4);
        }
        Some(at + prefix + size)
    }

    /// An unsigned varint, in as few bytes as it takes.
    #[inline(always)]
    pub fn uvarint(&mut self, at: usize, value: u32) -> usize {
        if value < 0x80 {
            return self.array(at, [(value & 0x7f) as u8]);
        }
        // Where there is place for the second byte, there is for the first.
        if value < 0x4000
            && let Some(second) = self.bytes.get_mut(at + 1)
        {
            *second = (value >> 7 & 0x7f) as u8;
            if let Some(first) = self.bytes.get_mut(at) {
                *first = (value & 0x7f) as u8 | 0x80;
                return at + 2;
            }
        }
        self.long_uvarint(at, value)
    }

    /// One of three bytes or more, or where there is little room left.
    #[inline(never)]
    fn long_uvarint(&mut self, at: usize, value: u32) -> usize {
        // Eight bytes at once, of which those that count stay: cheaper than a loop, whose end is hard to predict.
        let (bytes, size) = uvarint_bytes(value);
        self.array(at, bytes);
        at + size
    }

    /// Text and its length before it: compact, or as an int16.
    #[inline(always)]
    pub fn text<const COMPACT: bool>(&mut self, at: usize, text: &[u8]) -> Written {
        match self.usual_text::<COMPACT>(at, text) {
            Some(end) => Ok(end),
            None => self.other_text::<COMPACT>(at, text),
        }
    }

    #[inline(never)]
    fn other_text<const COMPACT: bool>(&mut self, at: usize, text: &[u8]) -> Written {
        if COMPACT {
            return self.octets::<true>(at, text);
        }
        let length = i16::try_from(text.len()).map_err(|_| EncodeErrorKind::StringTooLong(text.len()))?;
        let at = self.array(at, length.to_be_bytes());
        Ok(self.slice(at, text))
    }

    /// Bytes and their length before them: compact, or as an int32.
    #[inline(never)]
    pub fn octets<const COMPACT: bool>(&mut self, at: usize, octets: &[u8]) -> Written {
        let at = self.length::<COMPACT>(at, octets.len())?;
        Ok(self.slice(at, octets))
    }

    /// A length or count, of 2^31-1 at most: compact, which is one more as a uvarint, or as an int32.
    #[inline(always)]
    pub fn length<const COMPACT: bool>(&mut self, at: usize, length: usize) -> Written {
        let length = sayable(length)?;
        Ok(if COMPACT { self.uvarint(at, length + 1) } else { self.array(at, length.to_be_bytes()) })
    }

    /// A tag section: how many there are, and each by ascending tag with its payload.
    pub fn tags<'a>(&mut self, at: usize, count: usize, tags: impl Iterator<Item = (u32, &'a [u8])>) -> Written {
        let mut at = self.uvarint(at, sayable(count)?);
        for (tag, payload) in tags {
            at = self.uvarint(at, tag);
            at = self.uvarint(at, sayable(payload.len())?);
            at = self.slice(at, payload);
        }
        Ok(at)
    }

    /// What was written between two offsets.
    pub(crate) fn written(&self, start: usize, end: usize) -> &[u8] {
        self.bytes.get(start..end).unwrap_or_default()
    }
}

/// A length or count: 2^31-1 at most.
#[inline(always)]
fn sayable(length: usize) -> Result<u32, Unwinding> {
    match i32::try_from(length) {
        Ok(length) => Ok(length.unsigned_abs()),
        Err(_) => Err(EncodeErrorKind::TooLong(length).into()),
    }
}

/// Writes so many bytes to `room` from `at` on: the offset after them; `None` if there is no place.
#[inline(always)]
fn array<const N: usize>(room: &mut [u8], at: usize, bytes: [u8; N]) -> Option<usize> {
    *room.get_mut(at..)?.first_chunk_mut()? = bytes;
    Some(at + N)
}

/// Writes an unsigned varint at the end of `out`, in as few bytes as it takes.
pub fn write_uvarint(out: &mut Vec<u8>, value: u32) {
    let (bytes, size) = uvarint_bytes(value);
    out.extend(bytes.iter().take(size));
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
    fn what_is_read_is_left_behind() {
        let bytes = [1, 2, 3, 4, 5];
        let mut reader = Reader::at(&bytes, 1);
        assert_eq!((reader.position(), reader.left()), (1, 4));
        assert_eq!(reader.take(2), Ok(&[2, 3][..]));
        assert_eq!((reader.position(), reader.left()), (3, 2));
        assert_eq!(reader.take(3), Err(DecodeErrorKind::Truncated { needed: 3, left: 2 }));
        assert_eq!(reader.array::<4>(), Err(DecodeErrorKind::Truncated { needed: 4, left: 2 }));
        assert_eq!((reader.position(), reader.left()), (3, 2), "a failed read takes nothing");
        assert_eq!(reader.array(), Ok([4, 5]));
        assert_eq!((reader.position(), reader.left()), (5, 0));
        assert_eq!(Reader::at(&bytes, 6).left(), 0);
        for (bytes, value, size) in
            [(&[5, 3][..], 5, 1), (&[0x85, 3, 3], 5 + (3 << 7), 2), (&[0x80, 0x80, 1, 0xff], 1 << 14, 3)]
        {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.uvarint().map(|uvarint| uvarint.value), Ok(value));
            assert_eq!(reader.position(), size);
        }
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
        assert_eq!(read(&[0xff; 5]), Err(DecodeErrorKind::VarintTooLong));
        assert_eq!(read(&[0xff; 4]), Err(DecodeErrorKind::VarintTruncated));
        assert_eq!(read(&[0x80, 0x80]), Err(DecodeErrorKind::VarintTruncated));
        assert_eq!(read(&[]), Err(DecodeErrorKind::VarintTruncated));
    }

    /// As the guide has it: seven bits a byte, the low ones first, the highest bit where another byte follows.
    fn uvarint(mut value: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        bytes.push((value & 0x7f) as u8);
        bytes
    }

    #[test]
    fn a_written_uvarint_is_what_the_guide_says_and_read_back() {
        let powers = (0..32).map(|bit| 1_u32 << bit);
        for value in powers.flat_map(|power| [power, power - 1, power + 1, power.wrapping_mul(0x5555), !power]) {
            let (mut out, mut writer) = (vec![7], Writer::new(vec![7]));
            write_uvarint(&mut out, value);
            let end = writer.uvarint(1, value);
            assert_eq!((out.split_off(1), writer.written(1, end)), (uvarint(value), &*uvarint(value)));
            assert_eq!(read(&uvarint(value)), Ok((value, false, false)));
        }
    }

    #[test]
    fn what_is_written_comes_after_what_there_was() {
        for before in [0, 1, 63, 64, 65, 130] {
            for length in 0..100_u8 {
                let (before, bytes): (Vec<u8>, Vec<u8>) = (vec![0xee; before], (0..length).collect());
                let mut writer = Writer::new(before.clone());
                let mut at = writer.array(before.len(), [1, 2, 3]);
                at = writer.slice(at, &bytes);
                let due = [&before, &[1, 2, 3][..], &bytes].concat();
                assert_eq!((at, writer.written(before.len(), at)), (due.len(), &due[before.len()..]));
                // What came after it is forgotten.
                assert_eq!(writer.array(at, [6]), at + 1);
                assert_eq!(writer.into_bytes(at), due);
            }
        }
    }

    #[test]
    fn text_of_a_usual_size_is_written_with_its_length() {
        for size in 0..=255_u8 {
            let text: Vec<u8> = (0..size).map(|byte| byte ^ 0x55).collect();
            for (compact, length) in [(true, vec![size.wrapping_add(1)]), (false, vec![0, size])] {
                let due = [&[1, 2, 3][..], &length, &text].concat();
                let write = |writer: &mut Writer| match compact {
                    true => writer.usual_text::<true>(3, &text),
                    false => writer.usual_text::<false>(3, &text),
                };
                let mut writer = Writer::new([&due[..3], &[0xee; 300][..]].concat());
                let end = write(&mut writer);
                assert_eq!(end, (4..=126).contains(&size).then_some(due.len()), "{size}");
                if let Some(end) = end {
                    assert_eq!(writer.written(0, end), due);
                    assert_eq!(writer.written(due.len(), 303), vec![0xee; 303 - due.len()]);
                }
                for (room, end) in [(due.len(), end), (due.len() - 1, None), (4, None), (3, None), (2, None)] {
                    assert_eq!(write(&mut Writer::new(vec![0xee; room])), end, "{size} in {room}");
                }
            }
        }
    }

    #[test]
    fn room_is_made_seldom_and_not_while_there_is_capacity() {
        let bytes = Vec::with_capacity(1_000);
        let (place, capacity) = (bytes.as_ptr(), bytes.capacity());
        let mut writer = Writer::new(bytes);
        let end = (0..capacity).fold(0, |at, _| writer.array(at, [1]));
        let bytes = writer.into_bytes(end);
        assert_eq!((bytes.as_ptr(), bytes.capacity(), bytes.len()), (place, capacity, capacity));

        let (mut writer, mut grown) = (Writer::default(), Vec::new());
        for at in 0..100_000 {
            let end = writer.array(at, [1]);
            let room = writer.bytes.len();
            assert!(room <= 2 * end + 64, "{room} bytes are ready for {end}");
            if grown.last() != Some(&room) {
                grown.push(room);
            }
        }
        assert!(grown.len() <= 11, "{grown:?}");
    }

    #[test]
    fn utf8_is_what_the_standard_library_takes_for_it() {
        // The characters around which a rule changes, and bytes that no character has, at every place of a text of a few
        // blocks.
        let characters =
            ["\0", "\u{7f}", "\u{80}", "\u{7ff}", "\u{800}", "\u{fff}", "\u{1000}", "\u{d7ff}", "\u{e000}"];
        let more = ["\u{ffff}", "\u{10000}", "\u{3ffff}", "\u{40000}", "\u{fffff}", "\u{100000}", "\u{10ffff}"];
        let second = [0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0];
        let pairs: Vec<[u8; 4]> =
            (0x80..=0xff).flat_map(|first| second.map(|second| [first, second, 0x80, 0x80])).collect();
        let cut = pairs.iter().flat_map(|pair| (1..=4).filter_map(|size| pair.get(..size)));
        let pieces: Vec<&[u8]> = characters.iter().chain(&more).map(|text| text.as_bytes()).chain(cut).collect();
        // First bytes between which nothing changes are all tried at one place only.
        let tells = |piece: &[u8]| {
            matches!(piece, [0..=0x80 | 0xbf..=0xc2 | 0xdf..=0xe1 | 0xec..=0xf1 | 0xf3..=0xf5 | 0xff, ..])
        };
        let (mut right, mut wrong) = (0, 0);
        for length in [0, 34, 70] {
            // Around where blocks and texts begin and end.
            for place in (0..=length).filter(|place| (place + 4) % 32 < 9 || length - place < 4) {
                for piece in pieces.iter().filter(|piece| (length, place) == (70, 33) || tells(piece)) {
                    let text = [&vec![b'a'; place][..], piece, &vec![b'z'; length - place][..]].concat();
                    let is_utf8 = std::str::from_utf8(&text).is_ok();
                    assert_eq!((is_utf8_slow(&text), super::is_utf8(&text)), (is_utf8, is_utf8), "{text:x?}");
                    *if is_utf8 { &mut right } else { &mut wrong } += 1;
                }
            }
        }
        assert!(right > 2_000 && wrong > 10_000, "{right} {wrong}");
    }

    #[test]
    fn a_fault_is_found_at_every_place_and_two_do_not_make_up_for_each_other() {
        // Well placed but of no character, and misplaced.
        let faults: [&[u8]; 7] =
            [b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xc3", b"\xe1\x80"];
        let text = |size: usize| vec![b' '; size];
        for fault in faults {
            for place in 0..=200 {
                assert!(!is_utf8_slow(&[&text(place), fault, &text(200 - place)].concat()), "{fault:x?} at {place}");
            }
            for (place, between) in (0..40).flat_map(|place| (0..70).map(move |between| (place, between))) {
                let text = [&text(place), fault, &text(between), fault, b"z"].concat();
                assert!(!is_utf8_slow(&text), "{text:x?}");
            }
        }
    }

    #[test]
    fn ascii_is_found_at_every_length_and_place() {
        for length in 0..140 {
            let mut text = vec![b'a'; length];
            assert!(is_ascii(&text) && ascii_prefix(&text) == length);
            for place in 0..length {
                text[place] = 0x80;
                // One more, wherever it stands, changes nothing.
                for other in place..length {
                    text[other] = 0xff;
                    assert!(!is_ascii(&text) && ascii_prefix(&text) == place, "{length} {place} {other}");
                    text[other] = if other == place { 0x80 } else { b'a' };
                }
                text[place] = b'a';
            }
        }
    }
}
