//! Layout and bytes to tree and anomalies. Lenient as far as meaning allows, and every liberty is recorded: valid bytes
//! decode without acceptable anomalies, acceptable bytes with some, invalid bytes do not decode.

use crate::error::{AnomalyKind, DecodeError, DecodeErrorKind};
use crate::layout::{Bools, Element, Field, Fixed, Layout, RunField, Step, StructLayout, WireType};
use crate::tree::{Anomalies, Node, NodeKind, Tree, View, offset};
use crate::wire::{Reader, ascii_prefix, is_utf8_slow};
use std::cmp::Ordering;
use std::hint::cold_path;

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
    let Tree { nodes, mut anomalies } = std::mem::take(tree);
    anomalies.clear();
    let mut decoder = Decoder::new(layout, bytes, Kept { nodes, count: 0 }, anomalies);
    let decoded = decoder.message(start);
    (tree.nodes, tree.anomalies) = (decoder.nodes.into_nodes(), decoder.anomalies);
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
    type Places<'n>: Places
    where
        Self: 'n;

    fn leaf(&mut self, start: usize, end: usize, field: u16, kind: NodeKind, element: bool);
    /// A node whose end is not known yet, but that it goes on from `so_far`; gives its number.
    fn open(&mut self, start: usize, so_far: usize, field: u16, kind: NodeKind, element: bool) -> usize;
    fn close(&mut self, index: usize, end: usize);
    /// Takes back the node of this number, the last one.
    fn take_back(&mut self, index: usize);
    /// Places for some more.
    fn places(&mut self) -> Self::Places<'_>;
}

/// Some places for nodes, one at least. They are there already, so that all there is to count stays in registers.
trait Places {
    /// Place of a struct in an array.
    type Place;

    /// Gives `end`; `None` where there is no place left.
    fn leaf(&mut self, start: usize, end: usize, field: u16, kind: NodeKind, element: bool) -> Option<usize>;
    /// Fixed-size fields, the first of them at `start`: all or none. Gives `end`.
    fn run(&mut self, start: usize, end: usize, fields: &[RunField]) -> Option<usize>;
    fn open(&mut self) -> Option<Self::Place>;
    fn close(&mut self, place: Self::Place, start: usize, end: usize, field: u16);
    /// The struct is not read to its end; gives the number of its node, which is open.
    fn leave(&mut self, place: Self::Place, start: usize, field: u16) -> usize;
    /// No more nodes are put there.
    fn done(self);
}

/// The nodes of a tree. They go to places that are there already rather than to the end of a `Vec`, whose length would be
/// read and written around every node.
struct Kept {
    /// Up to `count` the nodes; after it what may be overwritten.
    nodes: Vec<Node>,
    count: usize,
}

impl Kept {
    /// What stands where nothing was read to yet.
    const FREE: Node = Node { start: 0, end: 0, next: 0, field: Node::NO_FIELD, kind: NodeKind::Null, element: false };

    fn into_nodes(mut self) -> Vec<Node> {
        self.nodes.truncate(self.count);
        self.nodes
    }

    #[inline(always)]
    fn put(&mut self, node: Node) {
        if self.count >= self.nodes.len() {
            self.grow();
        }
        if let Some(place) = self.nodes.get_mut(self.count) {
            *place = node;
        }
        self.count += 1;
    }

    /// Makes places where there are none. Nothing is allocated while there is capacity, and no more is made ready than is
    /// soon written to.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        const AHEAD: usize = 64;
        self.nodes.reserve(1);
        let ready = (self.nodes.len() + AHEAD).min(self.nodes.capacity());
        self.nodes.resize(ready, Kept::FREE);
    }
}

impl Nodes for Kept {
    type Places<'n> = KeptPlaces<'n>;

    #[inline(always)]
    fn leaf(&mut self, start: usize, end: usize, field: u16, kind: NodeKind, element: bool) {
        let next = offset(self.count) + 1;
        self.put(Node { start: offset(start), end: offset(end), next, field, kind, element });
    }

    #[inline(always)]
    fn open(&mut self, start: usize, so_far: usize, field: u16, kind: NodeKind, element: bool) -> usize {
        let index = self.count;
        self.put(Node { start: offset(start), end: offset(so_far), next: Node::OPEN, field, kind, element });
        index
    }

    #[inline(always)]
    fn close(&mut self, index: usize, end: usize) {
        let next = offset(self.count);
        if let Some(node) = self.nodes.get_mut(index) {
            (node.end, node.next) = (offset(end), next);
        }
    }

    fn take_back(&mut self, index: usize) {
        self.count = index;
    }

    #[inline(always)]
    fn places(&mut self) -> KeptPlaces<'_> {
        if self.count >= self.nodes.len() {
            self.grow();
        }
        let free = self.nodes.get_mut(self.count..).unwrap_or_default();
        KeptPlaces { free, next: offset(self.count), count: &mut self.count }
    }
}

/// Places for nodes.
struct KeptPlaces<'n> {
    free: &'n mut [Node],
    /// Number of the node after the first of them.
    next: u32,
    count: &'n mut usize,
}

impl<'n> Places for KeptPlaces<'n> {
    type Place = (&'n mut Node, u32);

    #[inline(always)]
    fn leaf(&mut self, start: usize, end: usize, field: u16, kind: NodeKind, element: bool) -> Option<usize> {
        let (place, free) = std::mem::take(&mut self.free).split_first_mut()?;
        self.free = free;
        self.next += 1;
        *place = Node { start: offset(start), end: offset(end), next: self.next, field, kind, element };
        Some(end)
    }

    #[inline(always)]
    fn run(&mut self, start: usize, end: usize, fields: &[RunField]) -> Option<usize> {
        let start = offset(start);
        let (places, free) = std::mem::take(&mut self.free).split_at_mut_checked(fields.len())?;
        self.free = free;
        for (place, field) in places.iter_mut().zip(fields) {
            self.next += 1;
            *place = Node {
                start: start + field.start,
                end: start + field.end,
                next: self.next,
                field: field.field,
                kind: NodeKind::Leaf,
                element: false,
            };
        }
        Some(end)
    }

    #[inline(always)]
    fn open(&mut self) -> Option<(&'n mut Node, u32)> {
        let (place, free) = std::mem::take(&mut self.free).split_first_mut()?;
        self.free = free;
        let number = self.next;
        self.next += 1;
        Some((place, number))
    }

    #[inline(always)]
    fn close(&mut self, (place, _): (&'n mut Node, u32), start: usize, end: usize, field: u16) {
        let (start, end, next) = (offset(start), offset(end), self.next);
        *place = Node { start, end, next, field, kind: NodeKind::Struct, element: true };
    }

    #[inline(always)]
    fn leave(&mut self, (place, number): (&'n mut Node, u32), start: usize, field: u16) -> usize {
        let start = offset(start);
        *place = Node { start, end: start, next: Node::OPEN, field, kind: NodeKind::Struct, element: true };
        number as usize
    }

    #[inline(always)]
    fn done(self) {
        *self.count = self.next as usize;
    }
}

/// Keeps no nodes.
struct Unrecorded;

impl Nodes for Unrecorded {
    type Places<'n> = Unrecorded;

    #[inline(always)]
    fn leaf(&mut self, _: usize, _: usize, _: u16, _: NodeKind, _: bool) {}
    #[inline(always)]
    fn open(&mut self, _: usize, _: usize, _: u16, _: NodeKind, _: bool) -> usize {
        0
    }
    #[inline(always)]
    fn close(&mut self, _: usize, _: usize) {}
    fn take_back(&mut self, _: usize) {}
    #[inline(always)]
    fn places(&mut self) -> Unrecorded {
        Unrecorded
    }
}

impl Places for Unrecorded {
    type Place = ();

    #[inline(always)]
    fn leaf(&mut self, _: usize, end: usize, _: u16, _: NodeKind, _: bool) -> Option<usize> {
        Some(end)
    }
    #[inline(always)]
    fn open(&mut self) -> Option<()> {
        Some(())
    }
    #[inline(always)]
    fn close(&mut self, _: (), _: usize, _: usize, _: u16) {}
    #[inline(always)]
    fn leave(&mut self, _: (), _: usize, _: u16) -> usize {
        0
    }
    #[inline(always)]
    fn run(&mut self, _: usize, end: usize, _: &[RunField]) -> Option<usize> {
        Some(end)
    }
    #[inline(always)]
    fn done(self) {}
}

/// Reads what is in its usual form: all there, short, well written, ASCII. All it needs stays in registers, so it calls
/// nothing and records no anomalies: it stops before any other field, which the [`Decoder`] then reads.
struct Usual<'a, P> {
    input: &'a [u8],
    ascii_until: usize,
    nodes: P,
}

impl<P: Places> Usual<'_, P> {
    /// Reads fields of a struct; gives where it came to and the steps that are left.
    #[inline(always)]
    fn steps<'s>(&mut self, mut at: usize, mut steps: &'s [Step]) -> (usize, &'s [Step]) {
        loop {
            while let [step, rest @ ..] = steps {
                let read = match step {
                    Step::String { field, compact, .. } => {
                        let end = if *compact { self.compact_ascii(at) } else { self.plain_ascii(at) };
                        end.and_then(|end| self.nodes.leaf(at, end, *field, NodeKind::Leaf, false))
                    }
                    Step::Run { fields, size, bools } => {
                        self.run(at, *size, *bools).and_then(|end| self.nodes.run(at, end, fields))
                    }
                    Step::Field { .. } => None,
                };
                let Some(end) = read else { break };
                (at, steps) = (end, rest);
            }
            // Out of the inner loop, which is the faster for it.
            let [Step::String { field, compact, nullable }, rest @ ..] = steps else { return (at, steps) };
            let null = if *nullable { self.null(at, *compact) } else { None };
            let Some(end) = null.and_then(|end| self.nodes.leaf(at, end, *field, NodeKind::Null, false)) else {
                return (at, steps);
            };
            (at, steps) = (end, rest);
        }
    }

    /// The offset after a compact string that was looked at and is ASCII.
    #[inline(always)]
    fn compact_ascii(&self, at: usize) -> Option<usize> {
        // The length + 1, which is also the size with the byte it stands in; the first byte of a longer one is not ASCII.
        let size = *self.input.get(at)?;
        let end = at + usize::from(size);
        (size > 0 && end <= self.ascii_until).then_some(end)
    }

    /// The same of a string with an int16 length.
    #[inline(always)]
    fn plain_ascii(&self, at: usize) -> Option<usize> {
        let from = at + 2;
        // Of a negative length not even the first byte is ASCII.
        let end = from + usize::from(u16::from_be_bytes(*self.input.get(at..from)?.first_chunk()?));
        (end <= self.ascii_until).then_some(end)
    }

    /// The offset after a string that is null.
    #[inline(always)]
    fn null(&self, at: usize, compact: bool) -> Option<usize> {
        match self.input.get(at..)? {
            [0, ..] if compact => Some(at + 1),
            [0xff, 0xff, ..] if !compact => Some(at + 2),
            _ => None,
        }
    }

    /// The offset after a string that has to be looked at and is UTF-8: a call, worth it only where little else is going on.
    #[inline(always)]
    fn other_text(&mut self, at: usize, compact: bool) -> Option<usize> {
        cold_path();
        let (from, length) = if compact {
            let length @ 1..0x80 = *self.input.get(at)? else { return None };
            (at + 1, usize::from(length) - 1)
        } else {
            let from = at + 2;
            let length = i16::from_be_bytes(*self.input.get(at..from)?.first_chunk()?);
            (from, usize::try_from(length).ok()?)
        };
        let end = from + length;
        if end > self.input.len() {
            return None;
        }
        if end > self.ascii_until {
            self.ascii_until = look_ahead(self.input, self.ascii_until, from, end)?;
        }
        Some(end)
    }

    /// The offset after a run whose bools are 0 or 1: one bounds check for all fields.
    #[inline(always)]
    fn run(&self, at: usize, size: u32, bools: Bools) -> Option<usize> {
        let end = at + size as usize;
        (end <= self.input.len() && bools.are_usual(self.input.get(at..)?)).then_some(end)
    }

    #[inline(always)]
    fn done(self) -> usize {
        self.nodes.done();
        self.ascii_until
    }
}

/// Looks at text that stands from `from` to `end`: the offset up to which there is now known to be no byte but ASCII after
/// it; `None` where it is not UTF-8. Nearly all text is ASCII, and so is what stands between, so that the input is looked
/// through block by block, ahead of what is read, rather than text by text.
#[inline(never)]
fn look_ahead(input: &[u8], ascii_until: usize, from: usize, end: usize) -> Option<usize> {
    // No further than that, since a message may be the small start of a large input.
    const AHEAD: usize = 1_024;
    let from = from.max(ascii_until);
    let upto = from.saturating_add(AHEAD).max(end).min(input.len());
    let ascii_until = from + ascii_prefix(input.get(from..upto).unwrap_or_default());
    let is_utf8 = ascii_until >= end || is_utf8_slow(input.get(ascii_until..end).unwrap_or_default());
    is_utf8.then_some(ascii_until)
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
    nodes: N,
    anomalies: Anomalies,
    /// There is no byte but ASCII between the last text looked at and this offset, which is within the input.
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

    /// Records text that is not UTF-8, given the offsets of its length, of itself and after it.
    fn check_text(&mut self, start: usize, from: usize, end: usize) {
        if end > self.ascii_until {
            match look_ahead(self.input, self.ascii_until, from, end) {
                Some(ascii_until) => self.ascii_until = ascii_until,
                None => self.anomalies.add(start, end, AnomalyKind::NotUtf8),
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
    fn structure(&mut self, at: usize, structure: &StructLayout) -> At {
        let (at, steps) = self.usual_steps(at, &structure.steps);
        self.rest_of_structure(at, structure, steps)
    }

    #[inline(always)]
    fn usual(&mut self) -> Usual<'_, N::Places<'_>> {
        Usual { input: self.input, ascii_until: self.ascii_until, nodes: self.nodes.places() }
    }

    #[inline(always)]
    fn usual_steps<'s>(&mut self, at: usize, steps: &'s [Step]) -> (usize, &'s [Step]) {
        let mut usual = self.usual();
        let read = usual.steps(at, steps);
        self.ascii_until = usual.done();
        read
    }

    /// What is left of a struct from a step on that is not in its usual form.
    #[inline(always)]
    fn rest_of_structure(&mut self, mut at: usize, structure: &StructLayout, mut steps: &[Step]) -> At {
        while let [step, rest @ ..] = steps {
            at = match step {
                Step::String { field, compact, nullable } => self.string(at, *field, *compact, *nullable, false)?,
                Step::Run { fields, size, .. } => self.run(at, fields, *size)?,
                Step::Field { field, wire } => self.value(at, *field, *wire)?,
            };
            (at, steps) = self.usual_steps(at, rest);
        }
        if structure.flexible { self.tag_section(at, structure) } else { Ok(at) }
    }

    /// So many structs in an array.
    #[inline(always)]
    fn structs(&mut self, mut at: usize, field: u16, count: u32, structure: &StructLayout) -> At {
        let mut left = count;
        while left > 0 {
            let mut usual = self.usual();
            let mut opened = None;
            while left > 0
                && let Some(place) = usual.nodes.open()
            {
                left -= 1;
                let (upto, steps) = usual.steps(at, &structure.steps);
                let end = match steps {
                    [] if !structure.flexible => Some(upto),
                    [] if usual.input.get(upto) == Some(&0) => Some(upto + 1),
                    _ => None,
                };
                let Some(end) = end else {
                    opened = Some((usual.nodes.leave(place, at, field), steps));
                    at = upto;
                    break;
                };
                usual.nodes.close(place, at, end, field);
                at = end;
            }
            self.ascii_until = usual.done();
            if let Some((index, steps)) = opened {
                at = self.rest_of_structure(at, structure, steps)?;
                self.nodes.close(index, at);
            }
        }
        Ok(at)
    }

    /// A run of fixed-size fields, field by field, so that an error names the field that is cut. Bools of such a run are not
    /// looked at.
    #[inline(never)]
    fn run(&mut self, mut at: usize, fields: &[RunField], size: u32) -> At {
        let is_cut = size as usize > self.left(at);
        for field in fields {
            let end = self.pass(at, field.field, field.fixed.size().into())?;
            if field.fixed == Fixed::Bool && !is_cut {
                self.check_bools(at, end);
            }
            at = self.leaf(at, end, field.field, false)?;
        }
        Ok(at)
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
            WireType::String { compact, nullable } => self.string(at, field, compact, nullable, false),
            WireType::Bytes { compact, nullable, .. } => self.bytes(at, field, compact, nullable, false),
            WireType::Struct { id, nullable } => self.struct_field(at, field, id, nullable),
            WireType::Array { compact, nullable, element } => self.array_field(at, field, compact, nullable, element),
        }
    }

    fn string(&mut self, at: usize, field: u16, compact: bool, nullable: bool, element: bool) -> At {
        if compact {
            self.compact_string(at, field, nullable, element)
        } else {
            self.plain_string(at, field, nullable, element)
        }
    }

    #[inline(never)]
    fn compact_string(&mut self, at: usize, field: u16, nullable: bool, element: bool) -> At {
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

    #[inline(never)]
    fn plain_string(&mut self, at: usize, field: u16, nullable: bool, element: bool) -> At {
        let length = i16::from_be_bytes(self.array(at, field)?);
        let from = at + 2;
        let Some(length) = self.present(at, from, field, nullable, length.into())? else {
            return self.null(at, from, field, element);
        };
        let end = self.octets(at, from, field, length)?;
        self.check_text(at, from, end);
        self.leaf(at, end, field, element)
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
                at = self.structs(at, field, count, layout.structure(id))?;
            }
            Element::String if compact => at = self.strings::<true>(at, field, count)?,
            Element::String => at = self.strings::<false>(at, field, count)?,
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

    /// So many strings in an array.
    #[inline(never)]
    fn strings<const COMPACT: bool>(&mut self, mut at: usize, field: u16, count: u32) -> At {
        let mut left = count;
        loop {
            let mut usual = self.usual();
            while left > 0 {
                let ascii = if COMPACT { usual.compact_ascii(at) } else { usual.plain_ascii(at) };
                let read = ascii.or_else(|| usual.other_text(at, COMPACT));
                let Some(end) = read.and_then(|end| usual.nodes.leaf(at, end, field, NodeKind::Leaf, true)) else {
                    break;
                };
                (at, left) = (end, left - 1);
            }
            self.ascii_until = usual.done();
            if left == 0 {
                return Ok(at);
            }
            (at, left) = (self.string(at, field, COMPACT, false, true)?, left - 1);
        }
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
        let (whole, ascii_until) = (self.input, self.ascii_until);
        (self.input, self.ascii_until) = (whole.get(..end).unwrap_or(whole), ascii_until.min(end));
        let used = self.value(at, number, field.wire)?;
        (self.input, self.ascii_until) = (whole, ascii_until.max(self.ascii_until));
        if used < end {
            self.anomalies.add(used, end, AnomalyKind::TagSizeMismatch);
        } else if whole.get(at..end) == Some(&field.default_bytes) {
            self.anomalies.add(at, end, AnomalyKind::TagWithDefault);
        }
        Ok(())
    }
}
