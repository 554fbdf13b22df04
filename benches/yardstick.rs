//! The yardstick: a decoder of DescribeConfigsResponse alone, written by hand for speed. It borrows its text from the input
//! and checks what any decoder has to: lengths and counts against what is left, nulls, UTF-8. It is as strict as it can be:
//! no form of bytes but the usual one is taken, tagged fields that are sent are refused.

use crate::describe_configs::{Config, ResourceResult, Response, Synonym};
use codec::wire::is_utf8;

/// Decodes the bytes of a version; `None` where they are not the message.
pub fn decode(bytes: &[u8], version: i16) -> Option<Response<'_>> {
    let mut reader = Reader { rest: bytes };
    let response = match version {
        4 => reader.response::<4>(),
        3 => reader.response::<3>(),
        1 | 2 => reader.response::<1>(),
        0 => reader.response::<0>(),
        _ => None,
    };
    response.filter(|_| reader.rest.is_empty())
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    #[inline(always)]
    fn bool(&mut self) -> Option<bool> {
        match self.array()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    #[inline(always)]
    fn uvarint(&mut self) -> Option<u32> {
        match self.array()? {
            [byte] if byte < 0x80 => Some(byte.into()),
            [byte] => self.long_uvarint(byte),
        }
    }

    #[inline(never)]
    fn long_uvarint(&mut self, first: u8) -> Option<u32> {
        let mut value = u32::from(first & 0x7f);
        for shift in [7, 14, 21, 28] {
            let [byte] = self.array()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    #[inline(always)]
    fn count<const V: i16>(&mut self, smallest: usize) -> Option<usize> {
        let count = if V >= 4 { self.uvarint()?.checked_sub(1)? } else { u32::from_be_bytes(self.array()?) } as usize;
        (count <= self.rest.len() / smallest).then_some(count)
    }

    #[inline(always)]
    fn nullable_text<const V: i16>(&mut self) -> Option<Option<&'a str>> {
        let length = if V >= 4 {
            match self.uvarint()?.checked_sub(1) {
                Some(length) => length as usize,
                None => return Some(None),
            }
        } else {
            match i16::from_be_bytes(self.array()?) {
                -1 => return Some(None),
                length => usize::try_from(length).ok()?,
            }
        };
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        if !is_utf8(text) {
            return None;
        }
        // SAFETY: it has just been found to be UTF-8. The check of the standard library is slower on short texts, and the
        // yardstick is to be as fast as is known to be possible.
        #[allow(unsafe_code)]
        Some(Some(unsafe { std::str::from_utf8_unchecked(text) }))
    }

    #[inline(always)]
    fn text<const V: i16>(&mut self) -> Option<&'a str> {
        self.nullable_text::<V>()?
    }

    #[inline(always)]
    fn no_tags<const V: i16>(&mut self) -> Option<()> {
        (V < 4 || self.array()? == [0]).then_some(())
    }

    fn response<const V: i16>(&mut self) -> Option<Response<'a>> {
        let throttle_time_ms = i32::from_be_bytes(self.array()?);
        let count = self.count::<V>(6)?;
        let mut results = Vec::with_capacity(count);
        for _ in 0..count {
            results.push(self.result::<V>()?);
        }
        self.no_tags::<V>()?;
        Some(Response { throttle_time_ms, results })
    }

    fn result<const V: i16>(&mut self) -> Option<ResourceResult<'a>> {
        let error_code = i16::from_be_bytes(self.array()?);
        let error_message = self.nullable_text::<V>()?;
        let resource_type = i8::from_be_bytes(self.array()?);
        let resource_name = self.text::<V>()?;
        let count = self.count::<V>(7)?;
        let mut configs = Vec::with_capacity(count);
        for _ in 0..count {
            configs.push(self.config::<V>()?);
        }
        self.no_tags::<V>()?;
        Some(ResourceResult { error_code, error_message, resource_type, resource_name, configs })
    }

    #[inline(always)]
    fn config<const V: i16>(&mut self) -> Option<Config<'a>> {
        let name = self.text::<V>()?;
        let value = self.nullable_text::<V>()?;
        let read_only = self.bool()?;
        let config_source = if V >= 1 { i8::from_be_bytes(self.array()?) } else { self.bool().map(|_| -1)? };
        let is_sensitive = self.bool()?;
        let mut synonyms = Vec::new();
        if V >= 1 {
            let count = self.count::<V>(4)?;
            synonyms.reserve_exact(count);
            for _ in 0..count {
                synonyms.push(self.synonym::<V>()?);
            }
        }
        let config_type = if V >= 3 { i8::from_be_bytes(self.array()?) } else { 0 };
        let documentation = if V >= 3 { self.nullable_text::<V>()? } else { None };
        self.no_tags::<V>()?;
        Some(Config { name, value, read_only, config_source, is_sensitive, synonyms, config_type, documentation })
    }

    #[inline(always)]
    fn synonym<const V: i16>(&mut self) -> Option<Synonym<'a>> {
        let name = self.text::<V>()?;
        let value = self.nullable_text::<V>()?;
        let source = i8::from_be_bytes(self.array()?);
        self.no_tags::<V>()?;
        Some(Synonym { name, value, source })
    }
}
