//! A message as people read it: every byte with its field, value and meaning. [`Message`] takes bytes apart as far as
//! they go, [`Line`]s are what is in them, and [`object_tree`], [`byte_rows`] and [`wire_diagram`] draw that.

mod diagram;
mod error_name;
mod example;
mod lines;
mod records;
mod render;
mod value_text;

pub use diagram::{json_text, schema_text, wire_diagram};
pub use error_name::error_name;
pub use example::example_value;
pub use lines::{Kind, Line};
pub use render::{byte_rows, hex_rows, legend, object_tree};

use codec::{
    ApiVersion, DecodeError, DecodeErrorKind, Layout, MessageSpec, Protocol, SpecError, Tree, View, decode_into,
    decode_prefix_into, response_version,
};
use lines::Remarked;
use std::cell::OnceCell;
use std::sync::Arc;

/// What stands before the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The four bytes of the frame's size.
    pub size: bool,
    /// The request or response header.
    pub header: bool,
}

/// A layout and the tree of what was read with it.
#[derive(Debug)]
struct Part {
    layout: Arc<Layout>,
    tree: Tree,
    end: usize,
}

/// A message taken apart as far as its bytes go.
#[derive(Debug)]
pub struct Message<'a> {
    bytes: &'a [u8],
    parts: Parts,
    header: Option<Part>,
    body: Option<Part>,
    /// Why reading stopped, worst first; a frame whose size is wrong is still read as far as possible.
    errors: Vec<Fault>,
    /// What takes a walk over all lines, once it was asked for.
    remarked: OnceCell<Vec<Remarked>>,
    kinds: OnceCell<Vec<Kind>>,
}

/// What is wrong with the bytes, and in which part.
#[derive(Debug)]
struct Fault {
    in_header: bool,
    error: DecodeError,
}

/// A liberty the bytes took, with the field it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The liberty; its offsets count from the first byte given.
    pub anomaly: codec::Anomaly,
    /// Path of the innermost field around it; those of header fields start with `header.`.
    pub path: String,
}

impl<'a> Message<'a> {
    fn unread(parts: Parts, bytes: &'a [u8]) -> Message<'a> {
        let (remarked, kinds) = (OnceCell::new(), OnceCell::new());
        Message { bytes, parts, header: None, body: None, errors: Vec::new(), remarked, kinds }
    }

    /// Reads a message of a version. An ApiVersions answer that refuses the version is read in its v0 form (KIP-511).
    pub fn read(
        protocol: &Protocol,
        spec: &MessageSpec,
        version: ApiVersion,
        parts: Parts,
        bytes: &'a [u8],
    ) -> Result<Message<'a>, SpecError> {
        let mut message = Message::unread(parts, bytes);
        let Some((mut start, end)) = message.read_size() else { return Ok(message) };
        // Bytes beyond the frame are no part of the message.
        let framed = bytes.get(..end).unwrap_or(bytes);
        if parts.header {
            let header = protocol.frame_layout(spec, version)?.header;
            match message.read_header(header, framed, start) {
                Some(end) => start = end,
                None => return Ok(message),
            }
        }
        let version = response_version(spec, version, framed.get(start..).unwrap_or_default());
        let (layout, mut tree) = (protocol.layout(&spec.name, version)?, Tree::new());
        let end = decode_into(&layout, framed, start, &mut tree).unwrap_or_else(|error| {
            let end = error.offset;
            message.errors.push(Fault { in_header: false, error });
            end
        });
        message.body = Some(Part { layout, tree, end });
        Ok(message)
    }

    /// Reads the start that every request has: size, API key, API version, correlation id.
    pub fn read_request_start(protocol: &Protocol, size: bool, bytes: &'a [u8]) -> Result<Message<'a>, SpecError> {
        let parts = Parts { size, header: true };
        let mut message = Message::unread(parts, bytes);
        if let Some((start, end)) = message.read_size() {
            let header = protocol.layout("RequestHeader", ApiVersion(0))?;
            message.read_header(header, bytes.get(..end).unwrap_or(bytes), start);
        }
        Ok(message)
    }

    /// Looks at the size: where the header starts and where the frame ends, or `None` where nothing can follow.
    fn read_size(&mut self) -> Option<(usize, usize)> {
        if !self.parts.size {
            return Some((0, self.bytes.len()));
        }
        let mut fault = |kind| {
            let error = DecodeError { path: "size".to_owned(), offset: 0, kind };
            self.errors.push(Fault { in_header: false, error });
        };
        let Some(size) = self.bytes.first_chunk::<4>() else {
            fault(DecodeErrorKind::Truncated { needed: 4, left: self.bytes.len() });
            return None;
        };
        let (size, left) = (i32::from_be_bytes(*size), self.bytes.len() - 4);
        let Ok(length) = usize::try_from(size) else {
            fault(DecodeErrorKind::FrameSize { size, limit: codec::FRAME_SIZE_LIMIT });
            return None;
        };
        if length != left {
            fault(DecodeErrorKind::FrameLength { size: length, left });
        }
        Some((4, 4 + length.min(left)))
    }

    fn read_header(&mut self, layout: Arc<Layout>, framed: &[u8], start: usize) -> Option<usize> {
        let mut tree = Tree::new();
        let read = decode_prefix_into(&layout, framed, start, &mut tree);
        let end = match &read {
            Ok(end) => *end,
            Err(error) => error.offset,
        };
        self.header = Some(Part { layout, tree, end });
        read.map_err(|error| self.errors.push(Fault { in_header: true, error })).ok()
    }

    /// The bytes it was read from.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The header, as far as it was read.
    pub fn header(&self) -> Option<View<'_>> {
        self.header.as_ref().map(|part| View::new(&part.layout, self.bytes, &part.tree))
    }

    /// The body, as far as it was read.
    pub fn body(&self) -> Option<View<'_>> {
        self.body.as_ref().map(|part| View::new(&part.layout, self.bytes, &part.tree))
    }

    /// What is wrong with the bytes, worst first; paths of header fields start with `header.`.
    pub fn errors(&self) -> Vec<DecodeError> {
        let outer = |fault: &Fault| match fault.in_header {
            true => DecodeError { path: lines::join("header", &fault.error.path), ..fault.error.clone() },
            false => fault.error.clone(),
        };
        self.errors.iter().map(outer).collect()
    }

    /// Every liberty kept, header first, with the field it is in.
    pub fn remarks(&self) -> Vec<Remark> {
        self.remarked().iter().map(|remarked| remarked.remark.clone()).collect()
    }

    fn remarked(&self) -> &[Remarked] {
        self.remarked.get_or_init(|| lines::remarked(self))
    }

    /// How many liberties were met, kept or not.
    pub fn anomaly_count(&self) -> usize {
        [&self.header, &self.body].into_iter().flatten().map(|part| part.tree.anomaly_count()).sum()
    }

    /// Whether the bytes are valid rather than merely acceptable.
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty() && [&self.header, &self.body].into_iter().flatten().all(|part| part.tree.is_valid())
    }

    /// What is in it, a line for each field, length and tag, in wire order. `protocol` gives the names of API keys. A line
    /// takes some hundred times the bytes that it tells of, so they are made and handed out one by one.
    pub fn each_line(&self, protocol: Option<&Protocol>, visit: &mut dyn FnMut(Line)) {
        lines::each_line(self, protocol, visit);
    }

    /// What each byte belongs to: that of the innermost line around it.
    fn kinds(&self) -> &[Kind] {
        self.kinds.get_or_init(|| {
            let mut kinds = vec![Kind::Unread; self.bytes.len()];
            self.each_line(None, &mut |line| {
                if let Some(bytes) = kinds.get_mut(line.span) {
                    bytes.fill(line.kind);
                }
            });
            kinds
        })
    }
}
