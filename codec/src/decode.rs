//! Layout and bytes to tree and anomalies. Lenient as far as meaning allows, and every liberty is recorded: valid bytes
//! decode without acceptable anomalies, acceptable bytes with some, invalid bytes do not decode.

use crate::error::{AnomalyKind, DecodeError, DecodeErrorKind};
use crate::layout::{Bools, Element, Field, Fixed, Layout, RunField, Step, StructLayout, WireType};
use crate::tree::{Anomalies, Node, NodeKind, Tree, View, offset};
use crate::wire::{Reader, ascii_prefix, is_utf8_slow};
use std::cmp::Ordering;

/// A decoded message with a tree of its own.
#[derive(Clone, Debug)]
pub struct Decoded<'a> {
    layout: &'a Layout,
    bytes: &'a [u8],
    /// The tree.
    pub tree: Tree,
    /// Offset after the message: bytes from there on are left over.
    pub end: usize,
}

impl Decoded<'_> {
    /// The way to read it.
    pub fn view(&self) -> View<'_> {
        View::new(self.layout, self.bytes, &self.tree)
    }

    /// Bytes after the message.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.end
    }
}

/// Decodes a whole message; left-over bytes are an anomaly.
pub fn decode<'a>(layout: &'a Layout, bytes: &'a [u8]) -> Result<Decoded<'a>, DecodeError> {
    let mut tree = Tree::new();
    let end = decode_into(layout, bytes, 0, &mut tree)?;
    Ok(Decoded { layout, bytes, tree, end })
}

/// Decodes a whole message from offset `start` on into a tree that is reused, and returns the offset after it. Left-over
/// bytes are an anomaly. On an error the tree holds what was read so far.
pub fn decode_into(layout: &Layout, bytes: &[u8], start: usize, tree: &mut Tree) -> Result<usize, DecodeError> {
    let end = decode_prefix_into(layout, bytes, start, tree)?;
    if end < bytes.len() {
        tree.anomalies.add(end, bytes.len(), AnomalyKind::LeftOver);
    }
    Ok(end)
}

/// Like [`decode_into`], for a message that something else follows, such as a header.
pub fn decode_prefix_into(layout: &Layout, bytes: &[u8], start: usize, tree: &mut Tree) -> Result<usize, DecodeError> {
    tree.clear();
    let Tree { nodes, anomalies } = std::mem::take(tree);
    let mut decoder = Decoder::new(layout, bytes, nodes, anomalies);
    let decoded = decoder.message(start);
    (tree.nodes, tree.anomalies) = (decoder.nodes, decoder.anomalies);
    decoded.map_err(|Fault { offset, field, kind }| DecodeError { path: tree.open_path(layout, field), offset, kind })
}

/// Reads a whole message without keeping it: the same offset, anomalies or error that [`decode_into`] gives, in less time,
/// and nothing is allocated but for an error's path and for the first anomalies ever. `anomalies` is reused.
///
/// An error costs a second reading, which finds its path.
pub fn validate(layout: &Layout, bytes: &[u8], start: usize, anomalies: &mut Anomalies) -> Result<usize, DecodeError> {
    anomalies.clear();
    let mut decoder = Decoder::new(layout, bytes, Unrecorded, std::mem::take(anomalies));
    let validated = decoder.message(start);
    *anomalies = decoder.anomalies;
    match validated {
        Ok(end) => {
            if end < bytes.len() {
                anomalies.add(end, bytes.len(), AnomalyKind::LeftOver);
            }
            Ok(end)
        }
        // Where it was in the message only a tree knows.
        Err(Fault { offset, kind, .. }) => Err(match decode_into(layout, bytes, start, &mut Tree::new()) {
            Err(error) => error,
            Ok(_) => DecodeError { path: String::new(), offset, kind },
        }),
    }
}

/// Where the decode loop puts the nodes it has read.
trait Nodes {
    fn leaf(&mut self, start: usize, end: usize, field: u16, kind: NodeKind, element: bool);
    /// A run of fixed-size fields, the first of them at `start`.
    fn run(&mut self, start: usize, fields: &[RunField]);
    /// A node whose end is not known yet, but that it goes on from `so_far`; gives its number.
    fn open(&mut self, start: usize, so_far: usize, field: u16, kind: NodeKind, element: bool) -> usize;
    fn close(&mut self, index: usize, end: usize);
    /// Takes back the node of this number, the last one.
    fn take_back(&mut self, index: usize);
}

impl Nodes for Vec<Node> {
    #[inline(always)]
    fn leaf(&mut self, start: usize, end: usize, field: u16, kind: NodeKind, element: bool) {
        let next = offset(self.len()) + 1;
        self.push(Node { start: offset(start), end: offset(end), next, field, kind, element });
    }

    #[inline(always)]
    fn run(&mut self, start: usize, fields: &[RunField]) {
        let (start, next) = (offset(start), offset(self.len()) + 1);
        self.extend(fields.iter().zip(next..).map(|(field, next)| Node {
            start: start + field.start,
            end: start + field.end,
            next,
            field: field.field,
            kind: NodeKind::Leaf,
            element: false,
        }));
    }

    #[inline(always)]
    fn open(&mut self, start: usize, so_far: usize, field: u16, kind: NodeKind, element: bool) -> usize {
        let index = self.len();
        self.push(Node { start: offset(start), end: offset(so_far), next: Node::OPEN, field, kind, element });
        index
    }

    #[inline(always)]
    fn close(&mut self, index: usize, end: usize) {
        let next = offset(self.len());
        if let Some(node) = self.get_mut(index) {
            (node.end, node.next) = (offset(end), next);
        }
    }

    fn take_back(&mut self, index: usize) {
        self.truncate(index);
    }
}

/// Keeps no nodes.
struct Unrecorded;

impl Nodes for Unrecorded {
    #[inline(always)]
    fn leaf(&mut self, _: usize, _: usize, _: u16, _: NodeKind, _: bool) {}
    #[inline(always)]
    fn run(&mut self, _: usize, _: &[RunField]) {}
    #[inline(always)]
    fn open(&mut self, _: usize, _: usize, _: u16, _: NodeKind, _: bool) -> usize {
        0
    }
    #[inline(always)]
    fn close(&mut self, _: usize, _: usize) {}
    fn take_back(&mut self, _: usize) {}
}

/// Decoding stopped; [`Decoder::stop`] says why. Kept out of the `Result`, which stays one byte in the hot paths.
struct Stop;

#[derive(Clone, Copy)]
struct Fault {
    offset: usize,
    field: u16,
    kind: DecodeErrorKind,
}

/// The offset that reading has come to. It is handed from call to call rather than kept in the [`Decoder`], so that it stays
/// in a register: each read waits for the one before it.
type At = Result<usize, Stop>;

struct Decoder<'a, N> {
    layout: &'a Layout,
    /// What is read from: the input, or within a tagged field the input up to its end.
    input: &'a [u8],
    /// Owned while decoding: reached through a reference, its length would be read and written around every node.
    nodes: N,
    anomalies: Anomalies,
    /// There is no byte but ASCII between the last text looked at and this offset.
    ascii_until: usize,
    stop: Fault,
}

impl<'a, N: Nodes> Decoder<'a, N> {
    fn new(layout: &'a Layout, input: &'a [u8], nodes: N, anomalies: Anomalies) -> Decoder<'a, N> {
        let stop = Fault { offset: 0, field: Node::NO_FIELD, kind: DecodeErrorKind::InputTooLarge };
        Decoder { layout, input, nodes, anomalies, ascii_until: 0, stop }
    }

    /// The message from offset `start` on, and the offset after it.
    fn message(&mut self, start: usize) -> Result<usize, Fault> {
        if u32::try_from(self.input.len()).is_err() {
            return Err(self.stop);
        }
        let start = start.min(self.input.len());
        let root = self.nodes.open(start, start, Node::NO_FIELD, NodeKind::Struct, false);
        let layout = self.layout;
        let end = self.structure(start, layout.root()).map_err(|Stop| self.stop)?;
        self.nodes.close(root, end);
        Ok(end)
    }

    #[cold]
    #[inline(never)]
    fn fail(&mut self, offset: usize, field: u16, kind: DecodeErrorKind) -> Stop {
        self.stop = Fault { offset, field, kind };
        Stop
    }

    /// Bytes left from an offset on.
    #[inline(always)]
    fn left(&self, at: usize) -> usize {
        self.input.len() - at
    }

    /// The offset after `size` more bytes.
    #[inline(always)]
    fn pass(&mut self, at: usize, field: u16, size: usize) -> At {
        let left = self.left(at);
        if size > left {
            return Err(self.fail(at, field, DecodeErrorKind::Truncated { needed: size, left }));
        }
        Ok(at + size)
    }

    #[inline(always)]
    fn array<const SIZE: usize>(&mut self, at: usize, field: u16) -> Result<[u8; SIZE], Stop> {
        match self.input.get(at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => Ok(*bytes),
            None => Err(self.fail(at, field, DecodeErrorKind::Truncated { needed: SIZE, left: self.left(at) })),
        }
    }

    #[inline(always)]
    fn leaf(&mut self, start: usize, end: usize, field: u16, element: bool) -> At {
        self.nodes.leaf(start, end, field, NodeKind::Leaf, element);
        Ok(end)
    }

    #[inline(always)]
    fn null(&mut self, start: usize, end: usize, field: u16, element: bool) -> At {
        self.nodes.leaf(start, end, field, NodeKind::Null, element);
        Ok(end)
    }

    /// Records text that is not UTF-8, given the offsets of its length, of itself and after it. Nearly all is ASCII, and so
    /// is what stands between, so that the input is looked through block by block, ahead of what is read, rather than text
    /// by text.
    #[inline(always)]
    fn check_text(&mut self, start: usize, from: usize, end: usize) {
        if end > self.ascii_until {
            self.look_ahead(start, from, end);
        }
    }

    #[inline(never)]
    fn look_ahead(&mut self, start: usize, from: usize, end: usize) {
        // No further than that, since a message may be the small start of a large input.
        const AHEAD: usize = 1_024;
        let from = from.max(self.ascii_until);
        let upto = from.saturating_add(AHEAD).max(end).min(self.input.len());
        self.ascii_until = from + ascii_prefix(self.input.get(from..upto).unwrap_or_default());
        if self.ascii_until < end {
            let rest = self.input.get(self.ascii_until..end).unwrap_or_default();
            if !is_utf8_slow(rest) {
                self.anomalies.add(start, end, AnomalyKind::NotUtf8);
            }
        }
    }

    /// A varint and the offset after it; its odd forms are recorded.
    #[inline(always)]
    fn uvarint(&mut self, at: usize, field: u16) -> Result<(u32, usize), Stop> {
        match self.input.get(at) {
            Some(&byte) if byte < 0x80 => Ok((byte.into(), at + 1)),
            _ => self.long_uvarint(at, field),
        }
    }

    #[inline(never)]
    fn long_uvarint(&mut self, at: usize, field: u16) -> Result<(u32, usize), Stop> {
        let mut reader = Reader::at(self.input, at);
        let uvarint = reader.uvarint().map_err(|kind| self.fail(at, field, kind))?;
        let end = reader.position();
        if uvarint.not_minimal {
            self.anomalies.add(at, end, AnomalyKind::VarintNotMinimal);
        }
        if uvarint.high_bits {
            self.anomalies.add(at, end, AnomalyKind::VarintHighBits);
        }
        Ok((uvarint.value, end))
    }

    #[inline(always)]
    fn structure(&mut self, mut at: usize, structure: &StructLayout) -> At {
        for step in &structure.steps {
            at = match *step {
                Step::CompactString { field, nullable } => self.compact_string(at, field, nullable, false)?,
                Step::PlainString { field, nullable } => self.plain_string(at, field, nullable, false)?,
                Step::Run { first, count, size, bools } => self.run(at, structure, first, count, size, bools)?,
                Step::Field { field, wire } => self.value(at, field, wire)?,
            };
        }
        if structure.flexible { self.tag_section(at, structure) } else { Ok(at) }
    }

    /// A run of fixed-size fields: one bounds check for all of them.
    #[inline(always)]
    fn run(&mut self, at: usize, structure: &StructLayout, first: u16, count: u16, size: u32, bools: Bools) -> At {
        let (first, count) = (usize::from(first), usize::from(count));
        let fields = structure.run.get(first..first + count).unwrap_or_default();
        if size as usize > self.left(at) {
            return Err(self.run_truncated(at, fields));
        }
        self.nodes.run(at, fields);
        if !self.input.get(at..).is_some_and(|bytes| bools.are_usual(bytes)) {
            self.check_run(at, fields);
        }
        Ok(at + size as usize)
    }

    /// Records which bools of a run are neither 0 nor 1.
    #[inline(never)]
    fn check_run(&mut self, at: usize, fields: &[RunField]) {
        for field in fields.iter().filter(|field| field.fixed == Fixed::Bool) {
            self.check_bools(at + field.start as usize, at + field.end as usize);
        }
    }

    /// Reads what is there of a run field by field, so that the error names the field that is cut.
    #[cold]
    #[inline(never)]
    fn run_truncated(&mut self, mut at: usize, fields: &[RunField]) -> Stop {
        for field in fields {
            match self.pass(at, field.field, field.fixed.size().into()) {
                Ok(end) => {
                    self.nodes.leaf(at, end, field.field, NodeKind::Leaf, false);
                    at = end;
                }
                Err(stop) => return stop,
            }
        }
        unreachable!("the run did not fit")
    }

    /// A field of any type.
    #[inline(never)]
    fn value(&mut self, at: usize, field: u16, wire: WireType) -> At {
        match wire {
            WireType::Fixed(fixed) => {
                let end = self.pass(at, field, fixed.size().into())?;
                if fixed == Fixed::Bool {
                    self.check_bools(at, end);
                }
                self.leaf(at, end, field, false)
            }
            WireType::String { compact: true, nullable } => self.compact_string(at, field, nullable, false),
            WireType::String { compact: false, nullable } => self.plain_string(at, field, nullable, false),
            WireType::Bytes { compact, nullable, .. } => self.bytes(at, field, compact, nullable, false),
            WireType::Struct { id, nullable } => self.struct_field(at, field, id, nullable),
            WireType::Array { compact, nullable, element } => self.array_field(at, field, compact, nullable, element),
        }
    }

    #[inline(always)]
    fn compact_string(&mut self, at: usize, field: u16, nullable: bool, element: bool) -> At {
        // The length + 1, which is also the size with the byte it stands in.
        match self.input.get(at) {
            Some(&size @ 1..0x80) if usize::from(size) <= self.left(at) => {
                let end = at + usize::from(size);
                self.check_text(at, at + 1, end);
                self.leaf(at, end, field, element)
            }
            _ => self.other_compact_string(at, field, nullable, element),
        }
    }

    /// A compact string that is long, null, or not there.
    #[inline(never)]
    fn other_compact_string(&mut self, at: usize, field: u16, nullable: bool, element: bool) -> At {
        let (length, from) = self.uvarint(at, field)?;
        let Some(length) = length.checked_sub(1) else {
            if !nullable {
                return Err(self.fail(at, field, DecodeErrorKind::NullNotAllowed));
            }
            return self.null(at, from, field, element);
        };
        let end = self.octets(at, from, field, length)?;
        self.check_text(at, from, end);
        if length > 32_767 {
            self.anomalies.add(at, end, AnomalyKind::StringLong);
        }
        self.leaf(at, end, field, element)
    }

    #[inline(always)]
    fn plain_string(&mut self, at: usize, field: u16, nullable: bool, element: bool) -> At {
        if let Some(length) = self.input.get(at..).and_then(<[u8]>::first_chunk)
            && let Ok(length) = usize::try_from(i16::from_be_bytes(*length))
            && length <= self.left(at + 2)
        {
            let end = at + 2 + length;
            self.check_text(at, at + 2, end);
            return self.leaf(at, end, field, element);
        }
        self.other_plain_string(at, field, nullable, element)
    }

    /// A string with an int16 length that is null or not there.
    #[inline(never)]
    fn other_plain_string(&mut self, at: usize, field: u16, nullable: bool, element: bool) -> At {
        let length = i16::from_be_bytes(self.array(at, field)?);
        if let Some(length) = self.present(at, at + 2, field, nullable, length.into())? {
            self.octets(at, at + 2, field, length)?;
        }
        self.null(at, at + 2, field, element)
    }

    #[inline(always)]
    fn bytes(&mut self, at: usize, field: u16, compact: bool, nullable: bool, element: bool) -> At {
        let (length, from) = self.length(at, field, compact)?;
        let Some(length) = self.present(at, from, field, nullable, length)? else {
            return self.null(at, from, field, element);
        };
        let end = self.octets(at, from, field, length)?;
        self.leaf(at, end, field, element)
    }

    /// A length or count as a signed number, -1 for null: compact 0 is null, compact n is n - 1. And the offset after it.
    #[inline(always)]
    fn length(&mut self, at: usize, field: u16, compact: bool) -> Result<(i64, usize), Stop> {
        if compact {
            let (length, end) = self.uvarint(at, field)?;
            Ok((i64::from(length) - 1, end))
        } else {
            Ok((i32::from_be_bytes(self.array(at, field)?).into(), at + 4))
        }
    }

    /// `None` for null; refuses null and negative lengths where null is not allowed. The length stands from `at` to `from`.
    #[inline(always)]
    fn present(
        &mut self,
        at: usize,
        from: usize,
        field: u16,
        nullable: bool,
        length: i64,
    ) -> Result<Option<u32>, Stop> {
        if let Ok(length) = u32::try_from(length) {
            return Ok(Some(length));
        }
        self.absent(at, from, field, nullable, length)
    }

    #[inline(never)]
    fn absent(&mut self, at: usize, from: usize, field: u16, nullable: bool, length: i64) -> Result<Option<u32>, Stop> {
        if !nullable {
            let kind = match i32::try_from(length) {
                Ok(-1) | Err(_) => DecodeErrorKind::NullNotAllowed,
                Ok(length) => DecodeErrorKind::NegativeLength(length),
            };
            return Err(self.fail(at, field, kind));
        }
        if length < -1 {
            self.anomalies.add(at, from, AnomalyKind::LengthBelowNull);
        }
        Ok(None)
    }

    /// Passes over the content of text, bytes or records, whose length stands from `at` to `from`.
    #[inline(always)]
    fn octets(&mut self, at: usize, from: usize, field: u16, length: u32) -> At {
        let left = self.left(from);
        if length as usize > left {
            return Err(self.fail(at, field, DecodeErrorKind::LengthExceedsInput { claimed: length.into(), left }));
        }
        Ok(from + length as usize)
    }

    fn struct_field(&mut self, at: usize, field: u16, id: u16, nullable: bool) -> At {
        let index = self.nodes.open(at, at, field, NodeKind::Struct, false);
        let mut from = at;
        if nullable {
            // KIP-893: -1 is null and 1 is present; inside a tagged field the marker is a uvarint 0 or 1.
            let tagged = self.layout.field(field).tag.is_some();
            let (marker, usual);
            (marker, usual, from) = if tagged {
                let (marker, end) = self.uvarint(at, Node::NO_FIELD)?;
                (i64::from(marker) - 1, 0, end)
            } else {
                (i8::from_be_bytes(self.array(at, Node::NO_FIELD)?).into(), 1, at + 1)
            };
            if marker == -1 {
                self.nodes.take_back(index);
                return self.null(at, from, field, false);
            }
            if marker != usual {
                self.anomalies.add(at, from, AnomalyKind::StructMarker);
            }
        }
        let layout = self.layout;
        let end = self.structure(from, layout.structure(id))?;
        self.nodes.close(index, end);
        Ok(end)
    }

    #[inline(always)]
    fn array_field(&mut self, start: usize, field: u16, compact: bool, nullable: bool, element: Element) -> At {
        let (length, mut at) = self.length(start, field, compact)?;
        let Some(count) = self.present(start, at, field, nullable, length)? else {
            return self.null(start, at, field, false);
        };
        let layout = self.layout;
        // A count is a claim: it is checked against what the bytes left can hold before anything is done with it.
        let left = self.left(at);
        if u64::from(count) * layout.smallest_element(compact, element) as u64 > left as u64 {
            let kind = DecodeErrorKind::CountExceedsInput { claimed: count.into(), left };
            return Err(self.fail(start, field, kind));
        }
        if let Element::Fixed(fixed) = element {
            // Within the input: the count was checked against the bytes left.
            let end = at + count as usize * usize::from(fixed.size());
            if fixed == Fixed::Bool {
                self.check_bools(at, end);
            }
            return self.leaf(start, end, field, false);
        }
        let array = self.nodes.open(start, at, field, NodeKind::Array, false);
        match element {
            Element::Struct(id) => {
                let structure = layout.structure(id);
                for _ in 0..count {
                    let index = self.nodes.open(at, at, field, NodeKind::Struct, true);
                    at = self.structure(at, structure)?;
                    self.nodes.close(index, at);
                }
            }
            Element::String if compact => {
                for _ in 0..count {
                    at = self.compact_string(at, field, false, true)?;
                }
            }
            Element::String => {
                for _ in 0..count {
                    at = self.plain_string(at, field, false, true)?;
                }
            }
            Element::Bytes => {
                for _ in 0..count {
                    at = self.bytes(at, field, compact, false, true)?;
                }
            }
            Element::Fixed(_) => unreachable!("returned above"),
        }
        self.nodes.close(array, at);
        Ok(at)
    }

    /// Records which of the bools from `at` to `end` are neither 0 nor 1.
    #[inline(never)]
    fn check_bools(&mut self, at: usize, end: usize) {
        let bools = self.input.get(at..end).unwrap_or_default();
        for (index, _) in (at..).zip(bools).filter(|&(_, &byte)| byte > 1) {
            self.anomalies.add(index, index + 1, AnomalyKind::BoolNotZeroOrOne);
        }
    }

    #[inline(always)]
    fn tag_section(&mut self, at: usize, structure: &StructLayout) -> At {
        match self.input.get(at) {
            Some(0) => Ok(at + 1),
            _ => self.tags(at, structure),
        }
    }

    /// A tag section that holds tags, whose count is oddly written, or that is not there.
    #[inline(never)]
    fn tags(&mut self, start: usize, structure: &StructLayout) -> At {
        if self.left(start) == 0 {
            return Err(self.fail(start, Node::NO_FIELD, DecodeErrorKind::TagSectionMissing));
        }
        let (count, mut at) = self.uvarint(start, Node::NO_FIELD)?;
        let left = self.left(at);
        // A tagged field takes two bytes at least: its tag and its size.
        if count as usize > left / 2 {
            let kind = DecodeErrorKind::CountExceedsInput { claimed: count.into(), left };
            return Err(self.fail(start, Node::NO_FIELD, kind));
        }
        let section = self.nodes.open(start, at, Node::NO_FIELD, NodeKind::TagSection, false);
        let mut before = None;
        for _ in 0..count {
            let (tag, size_at) = self.uvarint(at, Node::NO_FIELD)?;
            let (size, payload) = self.uvarint(size_at, Node::NO_FIELD)?;
            let left = self.left(payload);
            if size as usize > left {
                let kind = DecodeErrorKind::TagExceedsInput { tag, claimed: size, left };
                return Err(self.fail(at, Node::NO_FIELD, kind));
            }
            let end = payload + size as usize;
            match before.cmp(&Some(tag)) {
                Ordering::Less => {}
                Ordering::Equal => self.anomalies.add(at, end, AnomalyKind::TagRepeated),
                Ordering::Greater => self.anomalies.add(at, end, AnomalyKind::TagsUnordered),
            }
            before = Some(tag);
            if tag >= i32::MAX.unsigned_abs() {
                self.anomalies.add(at, payload, AnomalyKind::TagReserved);
            }
            let layout = self.layout;
            let known = layout.tagged_place(structure, tag).and_then(|place| structure.tagged.get(place).copied());
            match known {
                Some(number) => self.known_tag(payload, end, number, layout.field(number))?,
                None => self.nodes.leaf(at, end, Node::NO_FIELD, NodeKind::UnknownTag, false),
            }
            at = end;
        }
        self.nodes.close(section, at);
        Ok(at)
    }

    /// A declared tagged field. It is read within its payload; bytes of it that it does not use are skipped.
    fn known_tag(&mut self, at: usize, end: usize, number: u16, field: &Field) -> Result<(), Stop> {
        let whole = self.input;
        self.input = whole.get(..end).unwrap_or(whole);
        let used = self.value(at, number, field.wire)?;
        self.input = whole;
        if used < end {
            self.anomalies.add(used, end, AnomalyKind::TagSizeMismatch);
        } else if whole.get(at..end) == Some(&field.default_bytes) {
            self.anomalies.add(at, end, AnomalyKind::TagWithDefault);
        }
        Ok(())
    }
}
