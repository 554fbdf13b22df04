//! Frames and headers: the size before a message, and which header version goes with which API version. The only
//! version arithmetic outside `layout.rs`.

use crate::error::{DecodeError, DecodeErrorKind};
use crate::layout::Layout;
use crate::spec::{MessageKind, MessageSpec};
use crate::tree::{Tree, View};
use crate::version::{ApiKey, ApiVersion};
use crate::{EncodeError, Value, decode, encode};
use std::sync::Arc;

/// Key of ControlledShutdown.
const CONTROLLED_SHUTDOWN: ApiKey = ApiKey(7);
/// Key of ApiVersions.
const API_VERSIONS: ApiKey = ApiKey(18);
/// The error code of an ApiVersions response to a version the broker does not have.
pub const UNSUPPORTED_VERSION: i16 = 35;
/// Default limit of a frame's size in bytes, the broker's own `socket.request.max.bytes`: 100 MiB.
pub const FRAME_SIZE_LIMIT: u32 = 100 * 1024 * 1024;

/// The version of the header that goes with a request or response of this version: request header 2 and response
/// header 1 where the version is flexible, 1 and 0 where it is not.
pub fn header_version(spec: &MessageSpec, version: ApiVersion) -> ApiVersion {
    let flexible = spec.flexible_versions.contains(version);
    match (spec.kind, spec.api_key) {
        // Before there was a client id in the header, ControlledShutdown v0 was sent without one.
        (MessageKind::Request, Some(CONTROLLED_SHUTDOWN)) if version == ApiVersion(0) => ApiVersion(0),
        (MessageKind::Request, _) => ApiVersion(if flexible { 2 } else { 1 }),
        // KIP-511: a client reads this response before it knows any version, so its header stays v0.
        (_, Some(API_VERSIONS)) => ApiVersion(0),
        _ => ApiVersion(flexible.into()),
    }
}

/// The version an ApiVersions response is really in: v0 with error 35 when the broker does not have the version asked
/// (KIP-511). `body` starts after the header.
pub fn response_version(spec: &MessageSpec, asked: ApiVersion, body: &[u8]) -> ApiVersion {
    let refused = matches!(body, [high, low, ..] if i16::from_be_bytes([*high, *low]) == UNSUPPORTED_VERSION);
    if spec.api_key == Some(API_VERSIONS) && spec.kind == MessageKind::Response && refused {
        return ApiVersion(0);
    }
    asked
}

/// Header and body layouts of one request or response at one version.
#[derive(Clone, Debug)]
pub struct FrameLayout {
    /// The header's.
    pub header: Arc<Layout>,
    /// The body's.
    pub body: Arc<Layout>,
}

/// A decoded frame: size, header, body.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    layout: &'a FrameLayout,
    bytes: &'a [u8],
    /// Tree of the header; offsets count from the start of the frame.
    pub header: Tree,
    /// Tree of the body; offsets count from the start of the frame.
    pub body: Tree,
    /// Offset of the body.
    pub body_start: usize,
    /// Offset after the body.
    pub end: usize,
}

impl Frame<'_> {
    /// The header, to read.
    pub fn header(&self) -> View<'_> {
        View::new(&self.layout.header, self.bytes, &self.header)
    }

    /// The body, to read.
    pub fn body(&self) -> View<'_> {
        View::new(&self.layout.body, self.bytes, &self.body)
    }
}

/// A whole frame, size included, and what follows it.
pub type FrameAndRest<'a> = (&'a [u8], &'a [u8]);

/// Takes the first frame off a stream, size included: `None` while it is not complete. A size that is negative or above
/// `limit` is an error at once, before anything is waited for or reserved.
pub fn split_frame(stream: &[u8], limit: u32) -> Result<Option<FrameAndRest<'_>>, DecodeError> {
    let Some(size) = stream.first_chunk::<4>() else { return Ok(None) };
    let size = i32::from_be_bytes(*size);
    let length = match usize::try_from(size) {
        Ok(length) if length <= limit as usize => length,
        _ => {
            let kind = DecodeErrorKind::FrameSize { size, limit };
            return Err(DecodeError { path: "size".to_owned(), offset: 0, kind });
        }
    };
    Ok(stream.split_at_checked(4 + length))
}

/// Decodes a whole frame, size included.
pub fn decode_frame<'a>(layout: &'a FrameLayout, bytes: &'a [u8]) -> Result<Frame<'a>, DecodeError> {
    let size_error = |kind| DecodeError { path: "size".to_owned(), offset: 0, kind };
    let Some(size) = bytes.first_chunk::<4>() else {
        return Err(size_error(DecodeErrorKind::Truncated { needed: 4, left: bytes.len() }));
    };
    let (size, left) = (i32::from_be_bytes(*size), bytes.len() - 4);
    match usize::try_from(size) {
        Err(_) => return Err(size_error(DecodeErrorKind::FrameSize { size, limit: FRAME_SIZE_LIMIT })),
        Ok(size) if size != left => return Err(size_error(DecodeErrorKind::FrameLength { size, left })),
        Ok(_) => {}
    }
    decode_message(layout, bytes, 4)
}

/// Decodes header and body from offset `start` on, where no size, or one already looked at, stands before them.
pub fn decode_message<'a>(layout: &'a FrameLayout, bytes: &'a [u8], start: usize) -> Result<Frame<'a>, DecodeError> {
    let (mut header, mut body) = (Tree::new(), Tree::new());
    let body_start = decode::decode_prefix_into(&layout.header, bytes, start, &mut header)?;
    let end = decode::decode_into(&layout.body, bytes, body_start, &mut body)?;
    Ok(Frame { layout, bytes, header, body, body_start, end })
}

/// Encodes a frame: size, header, body.
pub fn encode_frame(layout: &FrameLayout, header: &Value, body: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut out = vec![0; 4];
    encode::encode_into(&layout.header, header, &mut out)?;
    encode::encode_into(&layout.body, body, &mut out)?;
    let length = out.len() - 4;
    let size = i32::try_from(length)
        .map_err(|_| EncodeError { path: String::new(), kind: crate::EncodeErrorKind::TooLong(length) })?;
    if let Some(prefix) = out.first_chunk_mut::<4>() {
        *prefix = size.to_be_bytes();
    }
    Ok(out)
}
