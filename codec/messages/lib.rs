//! The messages as structs, generated from the definitions when this is built: a new API is a definition, not code.
//!
//! A struct has every field of every version, named as Rust names fields; its default is the definition's. Text and bytes are
//! borrowed. [`Message::encode_into`] is compiled for the message, which is the quickest way to write one; it gives the very
//! bytes that [`codec::encode()`] gives for the same value, and an error where that gives one. They are read by
//! [`codec::deserialize`]. Unknown tagged fields have no place here: a [`codec::Value`] and a [`codec::Tree`] keep them.
//!
//! A message is in a module of its name, with the structs that it is made of as its definition calls them.
//!
//! In `Cargo.toml`, with the paths to a checkout:
//!
//! ```toml
//! codec = { path = "kafka-conform/codec", package = "kafka-conform-codec" }
//! messages = { path = "kafka-conform/codec/messages", package = "kafka-conform-messages" }
//! ```
//!
//! ```
//! use codec::ApiVersion;
//! use messages::Message;
//! use messages::describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource};
//!
//! let topic = DescribeConfigsResource { resource_type: 2, resource_name: "t1", ..Default::default() };
//! let request = DescribeConfigsRequest { resources: vec![topic], include_synonyms: true, ..Default::default() };
//! let bytes = request.encode(ApiVersion(4))?;
//! // One resource: type 2, "t1", no keys; synonyms, no documentation.
//! assert_eq!(bytes, [2, 2, 3, b't', b'1', 1, 0, 1, 0, 0]);
//!
//! let layout = DescribeConfigsRequest::layout(ApiVersion(4))?;
//! let decoded = codec::decode(&layout, &bytes)?;
//! assert_eq!(codec::deserialize::<DescribeConfigsRequest>(decoded.view())?, request);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use codec::wire::{Writer, Written};
use codec::{ApiKey, ApiVersion, EncodeError, EncodeErrorKind, Layout, MessageSpec, SpecError, Unwinding};
use std::ops::RangeInclusive;
use std::sync::Arc;

include!(concat!(env!("OUT_DIR"), "/messages.rs"));

/// A message of the protocol.
pub trait Message {
    /// Its name, which is that of its definition.
    const NAME: &'static str;
    /// Its definition.
    const DEFINITION: &'static str;
    /// The API it belongs to; headers belong to none.
    const API_KEY: Option<ApiKey>;
    /// The versions it has.
    const VERSIONS: RangeInclusive<i16>;

    /// The layout of a version, to read it with: made anew by each call, so keep it.
    fn layout(version: ApiVersion) -> Result<Layout, SpecError> {
        Layout::new(&Arc::new(MessageSpec::parse(Self::DEFINITION)?), version)
    }

    /// Writes it as a version that it has, from offset `at` on.
    fn write(&self, out: &mut Writer, at: usize, version: i16) -> Written;

    /// Encodes it.
    fn encode(&self, version: ApiVersion) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        self.encode_into(version, &mut out)?;
        Ok(out)
    }

    /// Encodes it after what `out` holds. On an error `out` is as it was.
    ///
    /// A field that the version lacks is dropped where the definition says that it may be, or where it is at its default.
    fn encode_into(&self, version: ApiVersion, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let before = out.len();
        let mut writer = Writer::new(std::mem::take(out));
        let written = match Self::VERSIONS.contains(&version.0) {
            true => self.write(&mut writer, before, version.0),
            false => Err(EncodeErrorKind::NoSuchVersion(version.0).into()),
        };
        *out = writer.into_bytes(*written.as_ref().unwrap_or(&before));
        written.map(|_| ()).map_err(Unwinding::into_error)
    }
}

/// The elements of an array: for what is generated.
#[doc(hidden)]
#[inline(always)]
pub fn elements<T>(
    out: &mut Writer,
    mut at: usize,
    elements: &[T],
    write: impl Fn(&mut Writer, usize, &T) -> Written,
) -> Written {
    for (index, element) in elements.iter().enumerate() {
        at = write(out, at, element).map_err(|error| error.in_element(index))?;
    }
    Ok(at)
}

/// What a tagged field holds, apart: for what is generated.
#[doc(hidden)]
pub fn payload(write: impl FnOnce(&mut Writer, usize) -> Written) -> Result<Vec<u8>, Unwinding> {
    let mut out = Writer::default();
    let end = write(&mut out, 0)?;
    Ok(out.into_bytes(end))
}
