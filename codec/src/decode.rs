//! Layout and bytes to tree and anomalies. Lenient as far as meaning allows, and every liberty is recorded: valid bytes
//! decode without acceptable anomalies, acceptable bytes with some, invalid bytes do not decode.

use crate::error::{AnomalyKind, DecodeError, DecodeErrorKind};
use crate::layout::{Element, Field, Fixed, Layout, Step, StructLayout, WireType};
use crate::tree::{Node, NodeKind, Tree, View, offset};
use crate::wire::{Reader, is_utf8};

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
        tree.anomaly(end, bytes.len(), AnomalyKind::LeftOver);
    }
    Ok(end)
}

/// Like [`decode_into`], for a message that something else follows, such as a header.
pub fn decode_prefix_into(layout: &Layout, bytes: &[u8], start: usize, tree: &mut Tree) -> Result<usize, DecodeError> {
    tree.clear();
    if u32::try_from(bytes.len()).is_err() {
        return Err(DecodeError { path: String::new(), offset: 0, kind: DecodeErrorKind::InputTooLarge });
    }
    let mut decoder = Decoder {
        layout,
        reader: Reader::at(bytes, start),
        tree: std::mem::take(tree),
        stop: Fault { offset: 0, field: Node::NO_FIELD, kind: DecodeErrorKind::InputTooLarge },
    };
    let root = decoder.open(Node::NO_FIELD, NodeKind::Struct, false);
    let decoded = decoder.structure(layout.root());
    if decoded.is_ok() {
        decoder.close(root);
    }
    let Decoder { reader, stop: Fault { offset, field, kind }, .. } = decoder;
    *tree = decoder.tree;
    match decoded {
        Ok(()) => Ok(reader.position()),
        Err(Stop) => Err(DecodeError { path: tree.open_path(layout, field), offset, kind }),
    }
}

/// Decoding stopped; [`Decoder::stop`] says why. Kept out of the `Result`, which stays one byte in the hot paths.
struct Stop;

struct Fault {
    offset: usize,
    field: u16,
    kind: DecodeErrorKind,
}

struct Decoder<'a> {
    layout: &'a Layout,
    reader: Reader<'a>,
    /// Owned while decoding: reached through a reference, its lengths would be read and written around every node.
    tree: Tree,
    stop: Fault,
}

impl<'a> Decoder<'a> {
    #[cold]
    #[inline(never)]
    fn fail(&mut self, offset: usize, field: u16, kind: DecodeErrorKind) -> Stop {
        self.stop = Fault { offset, field, kind };
        Stop
    }

    #[inline(always)]
    fn leaf(&mut self, field: u16, kind: NodeKind, element: bool, start: usize) {
        let next = offset(self.tree.nodes.len()) + 1;
        let (start, end) = (offset(start), offset(self.reader.position()));
        self.tree.nodes.push(Node { start, end, next, field, kind, element });
    }

    #[inline(always)]
    fn open(&mut self, field: u16, kind: NodeKind, element: bool) -> usize {
        let index = self.tree.nodes.len();
        let start = offset(self.reader.position());
        self.tree.nodes.push(Node { start, end: start, next: Node::OPEN, field, kind, element });
        index
    }

    #[inline(always)]
    fn close(&mut self, index: usize) {
        let (end, next) = (offset(self.reader.position()), offset(self.tree.nodes.len()));
        if let Some(node) = self.tree.nodes.get_mut(index) {
            (node.end, node.next) = (end, next);
        }
    }

    /// A varint; its odd forms are recorded.
    #[inline(always)]
    fn uvarint(&mut self, field: u16) -> Result<u32, Stop> {
        match self.reader.short_uvarint() {
            Some(value) => Ok(value),
            None => self.long_uvarint(field),
        }
    }

    #[inline(never)]
    fn long_uvarint(&mut self, field: u16) -> Result<u32, Stop> {
        let start = self.reader.position();
        let uvarint = self.reader.uvarint().map_err(|kind| self.fail(start, field, kind))?;
        if uvarint.not_minimal {
            self.tree.anomaly(start, self.reader.position(), AnomalyKind::VarintNotMinimal);
        }
        if uvarint.high_bits {
            self.tree.anomaly(start, self.reader.position(), AnomalyKind::VarintHighBits);
        }
        Ok(uvarint.value)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self, field: u16) -> Result<[u8; N], Stop> {
        self.reader.array().map_err(|kind| self.fail(self.reader.position(), field, kind))
    }

    #[inline(always)]
    fn structure(&mut self, structure: &StructLayout) -> Result<(), Stop> {
        for step in &structure.steps {
            match *step {
                // The commonest step comes first.
                Step::Field { field, wire: WireType::String { compact: true, nullable } } => {
                    self.compact_string(field, nullable, false)?;
                }
                Step::Run { first, count, size } => self.run(structure, first, count, size)?,
                Step::Field { field, wire } => self.value(field, wire, false)?,
            }
        }
        if structure.flexible { self.tag_section(structure) } else { Ok(()) }
    }

    /// A run of fixed-size fields: one bounds check for all of them.
    #[inline(always)]
    fn run(&mut self, structure: &StructLayout, first: u16, count: u16, size: u32) -> Result<(), Stop> {
        let start = self.reader.position();
        let (first, count) = (usize::from(first), usize::from(count));
        let fields = structure.run.get(first..first + count).unwrap_or_default();
        let Ok(bytes) = self.reader.take(size as usize) else {
            return Err(self.run_truncated(structure, first, count));
        };
        let mut at = start;
        for field in fields {
            let end = at + usize::from(field.size);
            let next = offset(self.tree.nodes.len()) + 1;
            let (kind, element) = (NodeKind::Leaf, false);
            self.tree.nodes.push(Node { start: offset(at), end: offset(end), next, field: field.field, kind, element });
            if field.bool && bytes.get(at - start).is_some_and(|&byte| byte > 1) {
                self.tree.anomaly(at, end, AnomalyKind::BoolNotZeroOrOne);
            }
            at = end;
        }
        Ok(())
    }

    /// Reads what is there of a run field by field, so that the error names the field that is cut.
    #[cold]
    #[inline(never)]
    fn run_truncated(&mut self, structure: &StructLayout, first: usize, count: usize) -> Stop {
        for field in structure.run.get(first..first + count).unwrap_or_default() {
            let start = self.reader.position();
            match self.reader.take(field.size.into()) {
                Ok(_) => self.leaf(field.field, NodeKind::Leaf, false, start),
                Err(kind) => return self.fail(start, field.field, kind),
            }
        }
        unreachable!("the run did not fit")
    }

    /// A field of any type, or, with `element`, an element of the array of that field.
    #[inline(never)]
    fn value(&mut self, field: u16, wire: WireType, element: bool) -> Result<(), Stop> {
        match wire {
            WireType::Fixed(fixed) => {
                let start = self.reader.position();
                let bytes = match self.reader.take(fixed.size().into()) {
                    Ok(bytes) => bytes,
                    Err(kind) => return Err(self.fail(start, field, kind)),
                };
                self.leaf(field, NodeKind::Leaf, element, start);
                if fixed == Fixed::Bool {
                    self.check_bools(start, bytes);
                }
                Ok(())
            }
            WireType::String { compact: true, nullable } => self.compact_string(field, nullable, element),
            WireType::String { compact: false, nullable } => {
                let start = self.reader.position();
                let length = i16::from_be_bytes(self.array(field)?);
                self.text(field, nullable, element, start, length.into())
            }
            WireType::Bytes { compact, nullable, .. } => {
                let start = self.reader.position();
                let length = self.length(field, compact)?;
                match self.present(field, nullable, start, length)? {
                    Some(length) => self.octets(field, start, length).map(|_| ())?,
                    None => return self.null(field, element, start),
                }
                self.leaf(field, NodeKind::Leaf, element, start);
                Ok(())
            }
            WireType::Struct { id, nullable } => self.struct_field(field, id, nullable),
            WireType::Array { compact, nullable, element } => self.array_field(field, compact, nullable, element),
        }
    }

    #[inline(always)]
    fn compact_string(&mut self, field: u16, nullable: bool, element: bool) -> Result<(), Stop> {
        let start = self.reader.position();
        let Some(text) = self.reader.short_compact() else {
            return self.other_compact_string(field, nullable, element);
        };
        if !is_utf8(text) {
            self.tree.anomaly(start, self.reader.position(), AnomalyKind::NotUtf8);
        }
        self.leaf(field, NodeKind::Leaf, element, start);
        Ok(())
    }

    /// A compact string that is long, null, or not there.
    #[inline(never)]
    fn other_compact_string(&mut self, field: u16, nullable: bool, element: bool) -> Result<(), Stop> {
        let start = self.reader.position();
        let length = self.uvarint(field)?;
        if length == 0 {
            if !nullable {
                return Err(self.fail(start, field, DecodeErrorKind::NullNotAllowed));
            }
            return self.null(field, element, start);
        }
        let length = length - 1;
        let text = self.octets(field, start, length)?;
        if !is_utf8(text) {
            self.tree.anomaly(start, self.reader.position(), AnomalyKind::NotUtf8);
        }
        if length > 32_767 {
            self.tree.anomaly(start, self.reader.position(), AnomalyKind::StringLong);
        }
        self.leaf(field, NodeKind::Leaf, element, start);
        Ok(())
    }

    #[inline(always)]
    fn text(&mut self, field: u16, nullable: bool, element: bool, start: usize, length: i32) -> Result<(), Stop> {
        let Some(length) = self.present(field, nullable, start, length.into())? else {
            return self.null(field, element, start);
        };
        if !is_utf8(self.octets(field, start, length)?) {
            self.tree.anomaly(start, self.reader.position(), AnomalyKind::NotUtf8);
        }
        self.leaf(field, NodeKind::Leaf, element, start);
        Ok(())
    }

    /// A null leaf, already read.
    #[inline(always)]
    fn null(&mut self, field: u16, element: bool, start: usize) -> Result<(), Stop> {
        self.leaf(field, NodeKind::Null, element, start);
        Ok(())
    }

    /// A length or count as a signed number, -1 for null: compact 0 is null, compact n is n - 1.
    #[inline(always)]
    fn length(&mut self, field: u16, compact: bool) -> Result<i64, Stop> {
        if compact {
            Ok(i64::from(self.uvarint(field)?) - 1)
        } else {
            Ok(i32::from_be_bytes(self.array(field)?).into())
        }
    }

    /// `None` for null; refuses null and negative lengths where null is not allowed.
    #[inline(always)]
    fn present(&mut self, field: u16, nullable: bool, start: usize, length: i64) -> Result<Option<u32>, Stop> {
        if let Ok(length) = u32::try_from(length) {
            return Ok(Some(length));
        }
        self.absent(field, nullable, start, length)
    }

    #[inline(never)]
    fn absent(&mut self, field: u16, nullable: bool, start: usize, length: i64) -> Result<Option<u32>, Stop> {
        if !nullable {
            let kind = match i32::try_from(length) {
                Ok(-1) | Err(_) => DecodeErrorKind::NullNotAllowed,
                Ok(length) => DecodeErrorKind::NegativeLength(length),
            };
            return Err(self.fail(start, field, kind));
        }
        if length < -1 {
            self.tree.anomaly(start, self.reader.position(), AnomalyKind::LengthBelowNull);
        }
        Ok(None)
    }

    #[inline(always)]
    fn octets(&mut self, field: u16, start: usize, length: u32) -> Result<&'a [u8], Stop> {
        match self.reader.take(length as usize) {
            Ok(octets) => Ok(octets),
            Err(_) => {
                let kind = DecodeErrorKind::LengthExceedsInput { claimed: length.into(), left: self.reader.left() };
                Err(self.fail(start, field, kind))
            }
        }
    }

    fn struct_field(&mut self, field: u16, id: u16, nullable: bool) -> Result<(), Stop> {
        let start = self.reader.position();
        let index = self.open(field, NodeKind::Struct, false);
        if nullable {
            // KIP-893: -1 is null and 1 is present; inside a tagged field the marker is a uvarint 0 or 1.
            let marker = if self.layout.field(field).tag.is_some() {
                i64::from(self.uvarint(Node::NO_FIELD)?) - 1
            } else {
                i8::from_be_bytes(self.array(Node::NO_FIELD)?).into()
            };
            let usual = if self.layout.field(field).tag.is_some() { 0 } else { 1 };
            if marker == -1 {
                self.tree.nodes.truncate(index);
                return self.null(field, false, start);
            }
            if marker != usual {
                self.tree.anomaly(start, self.reader.position(), AnomalyKind::StructMarker);
            }
        }
        let layout = self.layout;
        self.structure(layout.structure(id))?;
        self.close(index);
        Ok(())
    }

    fn array_field(&mut self, field: u16, compact: bool, nullable: bool, element: Element) -> Result<(), Stop> {
        let start = self.reader.position();
        let length = self.length(field, compact)?;
        let Some(count) = self.present(field, nullable, start, length)? else {
            return self.null(field, false, start);
        };
        let layout = self.layout;
        // A count is a claim: it is checked against what the bytes left can hold before anything is done with it.
        let left = self.reader.left();
        if count as usize > left / layout.smallest_element(compact, element) {
            let kind = DecodeErrorKind::CountExceedsInput { claimed: count.into(), left };
            return Err(self.fail(start, field, kind));
        }
        if let Element::Fixed(fixed) = element {
            let first = self.reader.position();
            // Cannot fail: the count was checked against the bytes left.
            let bytes = self.reader.take(count as usize * usize::from(fixed.size())).unwrap_or_default();
            self.leaf(field, NodeKind::Leaf, false, start);
            if fixed == Fixed::Bool {
                self.check_bools(first, bytes);
            }
            return Ok(());
        }
        let array = self.open(field, NodeKind::Array, false);
        if let Some(node) = self.tree.nodes.get_mut(array) {
            node.start = offset(start);
        }
        match element {
            Element::Struct(id) => {
                let structure = layout.structure(id);
                for _ in 0..count {
                    let index = self.open(field, NodeKind::Struct, true);
                    self.structure(structure)?;
                    self.close(index);
                }
            }
            Element::String if compact => {
                for _ in 0..count {
                    self.compact_string(field, false, true)?;
                }
            }
            Element::String => {
                for _ in 0..count {
                    self.value(field, WireType::String { compact, nullable: false }, true)?;
                }
            }
            Element::Bytes => {
                for _ in 0..count {
                    self.bytes_element(field, compact)?;
                }
            }
            Element::Fixed(_) => unreachable!("returned above"),
        }
        self.close(array);
        Ok(())
    }

    fn bytes_element(&mut self, field: u16, compact: bool) -> Result<(), Stop> {
        let start = self.reader.position();
        let length = self.length(field, compact)?;
        if let Some(length) = self.present(field, false, start, length)? {
            self.octets(field, start, length)?;
        }
        self.leaf(field, NodeKind::Leaf, true, start);
        Ok(())
    }

    /// Records which of these bools, the first at offset `first`, are neither 0 nor 1.
    #[inline(never)]
    fn check_bools(&mut self, first: usize, bools: &[u8]) {
        for (index, _) in (first..).zip(bools).filter(|&(_, &byte)| byte > 1) {
            self.tree.anomaly(index, index + 1, AnomalyKind::BoolNotZeroOrOne);
        }
    }

    #[inline(always)]
    fn tag_section(&mut self, structure: &StructLayout) -> Result<(), Stop> {
        let start = self.reader.position();
        match self.reader.short_uvarint() {
            Some(0) => Ok(()),
            Some(count) => self.tags(structure, start, count),
            None if self.reader.left() == 0 => {
                Err(self.fail(start, Node::NO_FIELD, DecodeErrorKind::TagSectionMissing))
            }
            None => {
                let count = self.long_uvarint(Node::NO_FIELD)?;
                self.tags(structure, start, count)
            }
        }
    }

    #[inline(never)]
    fn tags(&mut self, structure: &StructLayout, start: usize, count: u32) -> Result<(), Stop> {
        let left = self.reader.left();
        // A tagged field takes two bytes at least: its tag and its size.
        if count as usize > left / 2 {
            let kind = DecodeErrorKind::CountExceedsInput { claimed: count.into(), left };
            return Err(self.fail(start, Node::NO_FIELD, kind));
        }
        let section = self.open(Node::NO_FIELD, NodeKind::TagSection, false);
        if let Some(node) = self.tree.nodes.get_mut(section) {
            node.start = offset(start);
        }
        let mut before = None;
        for _ in 0..count {
            let start = self.reader.position();
            let tag = self.uvarint(Node::NO_FIELD)?;
            let size = self.uvarint(Node::NO_FIELD)?;
            let payload = self.reader.position();
            let end = payload + size as usize;
            let mut after = self.reader;
            let Ok(bytes) = after.take(size as usize) else {
                let kind = DecodeErrorKind::TagExceedsInput { tag, claimed: size, left: self.reader.left() };
                return Err(self.fail(start, Node::NO_FIELD, kind));
            };
            match before {
                Some(before) if before == tag => self.tree.anomaly(start, end, AnomalyKind::TagRepeated),
                Some(before) if before > tag => self.tree.anomaly(start, end, AnomalyKind::TagsUnordered),
                _ => {}
            }
            before = Some(tag);
            if tag >= i32::MAX.unsigned_abs() {
                self.tree.anomaly(start, payload, AnomalyKind::TagReserved);
            }
            let layout = self.layout;
            let known = layout.tagged_place(structure, tag).and_then(|place| structure.tagged.get(place).copied());
            if let Some(number) = known {
                self.known_tag(number, layout.field(number), bytes)?;
            }
            self.reader = after;
            if known.is_none() {
                self.leaf(Node::NO_FIELD, NodeKind::UnknownTag, false, start);
            }
        }
        self.close(section);
        Ok(())
    }

    /// A declared tagged field. It is read within its payload; bytes of it that it does not use are skipped.
    fn known_tag(&mut self, number: u16, field: &Field, payload: &[u8]) -> Result<(), Stop> {
        self.reader = self.reader.first(payload.len());
        let start = self.reader.position();
        self.value(number, field.wire, false)?;
        let (used, left) = (self.reader.position(), self.reader.left());
        if payload == field.default_bytes && left == 0 {
            self.tree.anomaly(start, used, AnomalyKind::TagWithDefault);
        }
        if left > 0 {
            self.tree.anomaly(used, used + left, AnomalyKind::TagSizeMismatch);
        }
        Ok(())
    }
}
