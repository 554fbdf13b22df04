//! What a decoded message is: a flat tree of spans over the input ([`Tree`]), the way to read it ([`View`], [`NodeRef`]),
//! and owned values ([`Value`]) with their JSON form.

use crate::error::{Anomaly, AnomalyKind, EncodeError, EncodeErrorKind, Unwinding, push_name};
use crate::layout::{Element, Field, Fixed, Layout, StructLayout, WireType};
use crate::wire::Reader;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::sync::Arc;

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A scalar, text, bytes, or an array of fixed-size elements.
    Leaf,
    /// A null.
    Null,
    /// The message, a struct field, or a struct in an array.
    Struct,
    /// An array whose elements are nodes.
    Array,
    /// A tag section that holds tags, or whose count is written in an odd way; a plain `00` at the end of a struct has
    /// no node.
    TagSection,
    /// An unknown tagged field: tag, size and payload.
    UnknownTag,
}

/// One node, 16 bytes: the tree is a `Vec` of them in pre-order.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Offset of the first byte, length prefix included.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
    /// Number of the node after this one's subtree.
    pub next: u32,
    /// Number of the field in the layout; [`Node::NO_FIELD`] for the message, tag sections and unknown tags.
    pub field: u16,
    /// What it stands for.
    pub kind: NodeKind,
    /// Whether it is an element of the array of that field.
    pub element: bool,
}

impl Node {
    /// In place of a field number.
    pub const NO_FIELD: u16 = u16::MAX;
    /// In place of `next` while the subtree is being read; what stays open is where decoding failed.
    pub(crate) const OPEN: u32 = u32::MAX;

    /// Whether decoding failed inside it: its end is not known, and fields or elements may be missing.
    pub fn is_open(&self) -> bool {
        self.next == Self::OPEN
    }
}

/// The nodes and anomalies of one decoded message. It holds offsets only, so that it is reused without allocation.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) anomalies: Anomalies,
}

impl Tree {
    /// Anomalies kept at most; more are counted.
    pub const ANOMALIES_KEPT: usize = Anomalies::KEPT;

    /// An empty tree, to decode into.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// The nodes in pre-order; the first is the message itself.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The first [`Tree::ANOMALIES_KEPT`] anomalies, in the order they were met.
    pub fn anomalies(&self) -> &[Anomaly] {
        self.anomalies.kept()
    }

    /// How many anomalies there were, kept or not.
    pub fn anomaly_count(&self) -> usize {
        self.anomalies.count()
    }

    /// Whether the bytes are valid rather than merely acceptable: no decoder may refuse them.
    pub fn is_valid(&self) -> bool {
        self.anomalies.is_valid()
    }

    /// Path of the place where decoding stopped: the nodes still open, then the field that failed.
    pub(crate) fn open_path(&self, layout: &Layout, failed: u16) -> String {
        let mut path = String::new();
        let mut open = (0_u32..).zip(&self.nodes).filter(|(_, node)| node.next == Node::OPEN).peekable();
        while let Some((index, node)) = open.next() {
            match node.kind {
                NodeKind::Array => {
                    push_name(&mut path, &layout.field(node.field).name);
                    let upto = open.peek().map_or(offset(self.nodes.len()), |&(next, _)| next);
                    let _ = write!(path, "[{}]", self.children(index, upto).count());
                }
                NodeKind::Struct if !node.element && node.field != Node::NO_FIELD => {
                    push_name(&mut path, &layout.field(node.field).name);
                }
                _ => {}
            }
        }
        // A failed element has no name of its own: its array is open and named.
        let array_open = self.nodes.iter().rev().find(|node| node.next == Node::OPEN);
        let in_array = array_open.is_some_and(|node| node.kind == NodeKind::Array && node.field == failed);
        if failed != Node::NO_FIELD && !in_array {
            push_name(&mut path, &layout.field(failed).name);
        }
        path
    }

    /// Numbers of the children of a node, up to a node number.
    fn children(&self, parent: u32, upto: u32) -> impl Iterator<Item = u32> {
        let mut next = parent + 1;
        std::iter::from_fn(move || {
            let child = next;
            if child >= upto {
                return None;
            }
            next = self.nodes.get(child as usize)?.next;
            Some(child)
        })
    }
}

/// The liberties that bytes took, of which the first are kept and all are counted: reused without allocation.
#[derive(Clone, Debug, Default)]
pub struct Anomalies {
    kept: Vec<Anomaly>,
    count: usize,
}

impl Anomalies {
    /// How many are kept at most; more are counted.
    pub const KEPT: usize = 64;

    /// None, to [`validate`](crate::validate) with.
    pub fn new() -> Anomalies {
        Anomalies::default()
    }

    /// The first [`Anomalies::KEPT`], in the order they were met.
    pub fn kept(&self) -> &[Anomaly] {
        &self.kept
    }

    /// How many there were, kept or not.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether the bytes are valid rather than merely acceptable: no decoder may refuse them.
    pub fn is_valid(&self) -> bool {
        // Of more anomalies than are kept some may be acceptable ones, so they are taken to be.
        self.count <= Self::KEPT && !self.kept.iter().any(|anomaly| anomaly.kind.is_acceptable())
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.count = 0;
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn add(&mut self, start: usize, end: usize, kind: AnomalyKind) {
        self.count += 1;
        if self.kept.len() < Self::KEPT {
            self.kept.push(Anomaly { start: offset(start), end: offset(end), kind });
        }
    }
}

/// An offset as nodes hold it; inputs of 4 GiB are refused before.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "inputs of 4 GiB and more are refused")]
pub(crate) fn offset(position: usize) -> u32 {
    position as u32
}

/// A decoded message: layout, input and tree, which belong together.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    layout: &'a Layout,
    bytes: &'a [u8],
    tree: &'a Tree,
}

impl<'a> View<'a> {
    /// Reads `tree`, which `bytes` were decoded into with `layout`.
    pub fn new(layout: &'a Layout, bytes: &'a [u8], tree: &'a Tree) -> View<'a> {
        View { layout, bytes, tree }
    }

    /// Its layout.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The input.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its tree.
    pub fn tree(&self) -> &'a Tree {
        self.tree
    }

    /// The message itself.
    pub fn root(&self) -> NodeRef<'a> {
        self.node(0)
    }

    pub(crate) fn node(&self, index: u32) -> NodeRef<'a> {
        let absent =
            Node { start: 0, end: 0, next: index + 1, field: Node::NO_FIELD, kind: NodeKind::Null, element: false };
        let node = self.tree.nodes.get(index as usize).copied().unwrap_or(absent);
        NodeRef { view: *self, index, node, fixed: None }
    }

    /// The message as an owned value; a tagged field that is absent has its default.
    pub fn value(&self) -> Value {
        self.root().value()
    }

    /// The node at a path such as `Results[0].Configs[Name=retention.ms].Value`.
    pub fn get(&self, path: &str) -> Option<NodeRef<'a>> {
        let mut node = self.root();
        for step in PathStep::parse(path)? {
            node = match step {
                PathStep::Field(name) => node.field(name)?,
                PathStep::Index(index) => node.elements().nth(index)?,
                PathStep::Match(keys) => node.elements().find(|element| {
                    keys.iter()
                        .all(|(name, wanted)| element.field(name).is_some_and(|field| field.value().is_text(wanted)))
                })?,
            };
        }
        Some(node)
    }

    /// Calls `visit` with each node, its path, and its depth, in pre-order.
    pub fn walk(&self, visit: &mut dyn FnMut(&str, usize, NodeRef<'a>)) {
        self.walk_node(self.root(), String::new(), 0, visit);
    }

    fn walk_node(
        &self,
        node: NodeRef<'a>,
        path: String,
        depth: usize,
        visit: &mut dyn FnMut(&str, usize, NodeRef<'a>),
    ) {
        visit(&path, depth, node);
        for (index, child) in node.children().enumerate() {
            let mut path = path.clone();
            match child.node.kind {
                NodeKind::TagSection => push_name(&mut path, "_tags"),
                NodeKind::UnknownTag => {
                    let _ = write!(path, "[{}]", child.unknown_tag().map_or(0, |(tag, _)| tag));
                }
                _ if child.node.element => {
                    let _ = write!(path, "[{index}]");
                }
                _ => {
                    // A known tagged field stands in the tag section but is named like any other.
                    if let Some(outer) = path.strip_suffix("_tags") {
                        path = outer.strip_suffix('.').unwrap_or(outer).to_owned();
                    }
                    push_name(&mut path, &self.layout.field(child.node.field).name);
                }
            }
            self.walk_node(child, path, depth + 1, visit);
        }
    }
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep<'p> {
    /// A field of a struct.
    Field(&'p str),
    /// An element by number.
    Index(usize),
    /// The first element whose fields have these values, written as text: `[ResourceType=2,ResourceName=t1]`.
    Match(Vec<(&'p str, &'p str)>),
}

impl<'p> PathStep<'p> {
    /// Takes a path apart; `None` when it is not one.
    pub fn parse(path: &'p str) -> Option<Vec<PathStep<'p>>> {
        let mut steps = Vec::new();
        let mut rest = path;
        while !rest.is_empty() {
            if let Some(bracket) = rest.strip_prefix('[') {
                let (inside, after) = bracket.split_once(']')?;
                steps.push(match inside.parse() {
                    Ok(index) => PathStep::Index(index),
                    Err(_) => {
                        PathStep::Match(inside.split(',').map(|pair| pair.split_once('=')).collect::<Option<_>>()?)
                    }
                });
                rest = after;
            } else {
                let name_end = rest.find(['.', '[']).unwrap_or(rest.len());
                let (name, after) = rest.split_at_checked(name_end)?;
                if name.is_empty() {
                    return None;
                }
                steps.push(PathStep::Field(name));
                rest = after;
            }
            if let Some(after) = rest.strip_prefix('.') {
                if after.is_empty() || after.starts_with(['.', '[']) {
                    return None;
                }
                rest = after;
            }
        }
        Some(steps)
    }
}

/// A node of a [`View`], with its bytes at hand; scalars are read when asked for.
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'a> {
    view: View<'a>,
    index: u32,
    node: Node,
    /// Set on an element of an array of fixed-size elements, which has no node of its own.
    fixed: Option<Fixed>,
}

impl<'a> NodeRef<'a> {
    /// The node.
    #[inline]
    pub fn node(&self) -> Node {
        self.node
    }

    /// The message it is of, and its number there.
    pub(crate) fn place(&self) -> (View<'a>, u32) {
        (self.view, self.index)
    }

    /// Its field in the layout, if it has one.
    #[inline]
    pub fn layout_field(&self) -> Option<&'a Field> {
        (self.node.field != Node::NO_FIELD).then(|| self.view.layout.field(self.node.field))
    }

    /// The type of this very node: an element's, where it is one; `None` for tag sections and unknown tags.
    #[inline]
    pub fn wire(&self) -> Option<WireType> {
        if let Some(fixed) = self.fixed {
            return Some(WireType::Fixed(fixed));
        }
        let Some(field) = self.layout_field() else {
            return (self.node.kind == NodeKind::Struct).then_some(WireType::Struct { id: 0, nullable: false });
        };
        Some(match field.wire {
            WireType::Array { compact, element, .. } if self.node.element => element.wire(compact),
            wire => wire,
        })
    }

    /// The struct it is an instance of.
    pub fn structure(&self) -> Option<&'a StructLayout> {
        match (self.node.kind, self.wire()) {
            (NodeKind::Struct, Some(WireType::Struct { id, .. })) => Some(self.view.layout.structure(id)),
            _ => None,
        }
    }

    /// All its bytes, length prefix included.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.view.bytes.get(self.node.start as usize..self.node.end as usize).unwrap_or_default()
    }

    /// Whether it is null.
    #[inline]
    pub fn is_null(&self) -> bool {
        self.node.kind == NodeKind::Null
    }

    /// An integer or bool.
    #[inline]
    pub fn integer(&self) -> Option<i64> {
        let Some(WireType::Fixed(fixed)) = self.wire() else { return None };
        integer_in(self.bytes(), fixed)
    }

    /// A float64.
    pub fn float(&self) -> Option<f64> {
        let Some(WireType::Fixed(Fixed::Float64)) = self.wire() else { return None };
        Some(f64::from_be_bytes(self.bytes().try_into().ok()?))
    }

    /// A uuid's 16 bytes.
    pub fn uuid(&self) -> Option<[u8; 16]> {
        let Some(WireType::Fixed(Fixed::Uuid)) = self.wire() else { return None };
        self.bytes().try_into().ok()
    }

    /// The content of text, bytes and records, without its length; `None` for null.
    #[inline]
    pub fn octets(&self) -> Option<&'a [u8]> {
        match (self.node.kind, self.wire()?) {
            (NodeKind::Leaf, WireType::String { compact, .. }) => content_in(self.bytes(), compact, 2),
            (NodeKind::Leaf, WireType::Bytes { compact, .. }) => content_in(self.bytes(), compact, 4),
            _ => None,
        }
    }

    /// The content of text that is UTF-8.
    #[inline]
    pub fn text(&self) -> Option<&'a str> {
        match self.wire()? {
            WireType::String { .. } => std::str::from_utf8(self.octets()?).ok(),
            _ => None,
        }
    }

    /// Size of the length, count or marker before its content, in bytes.
    pub fn prefix_size(&self) -> usize {
        match self.wire() {
            Some(WireType::String { compact: false, .. }) => 2,
            Some(WireType::Bytes { compact: false, .. } | WireType::Array { compact: false, .. }) => 4,
            Some(WireType::String { .. } | WireType::Bytes { .. } | WireType::Array { .. }) => {
                varint_size(self.bytes())
            }
            Some(WireType::Struct { nullable: true, .. }) => 1,
            _ => 0,
        }
    }

    /// Tag and payload of an unknown tagged field.
    pub fn unknown_tag(&self) -> Option<(u32, &'a [u8])> {
        if self.node.kind != NodeKind::UnknownTag {
            return None;
        }
        let mut reader = Reader::new(self.bytes());
        let tag = reader.uvarint().ok()?.value;
        reader.uvarint().ok()?;
        Some((tag, self.bytes().get(reader.position()..)?))
    }

    /// The nodes directly below it: fields, then a tag section; elements; tagged fields.
    #[inline]
    pub fn children(&self) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        self.child_nodes()
    }

    /// The elements of an array; none for null.
    #[inline]
    pub fn elements(&self) -> Elements<'a> {
        match (self.node.kind, self.wire()) {
            (NodeKind::Leaf, Some(WireType::Array { element: Element::Fixed(fixed), .. })) => {
                let start = self.node.start + offset(self.prefix_size());
                Elements { view: self.view, next: start, upto: self.node.end, fixed: Some((fixed, self.index)) }
            }
            (NodeKind::Array, _) => self.child_nodes(),
            _ => Elements { view: self.view, next: 0, upto: 0, fixed: None },
        }
    }

    /// The same, as a walk that has a name.
    #[inline]
    fn child_nodes(&self) -> Elements<'a> {
        // What has no node has no nodes below it either.
        let upto = if self.fixed.is_some() { 0 } else { self.node.next };
        Elements { view: self.view, next: self.index + 1, upto, fixed: None }
    }

    /// How many elements an array holds; `None` for null and for what is no array.
    #[inline]
    pub fn count(&self) -> Option<usize> {
        match (self.node.kind, self.wire()?) {
            (NodeKind::Leaf | NodeKind::Array, WireType::Array { compact, .. }) => count_in(self.bytes(), compact),
            _ => None,
        }
    }

    /// A field of a struct by name; `None` where it has none, or where a tagged field is absent.
    pub fn field(&self, name: &str) -> Option<NodeRef<'a>> {
        let structure = self.structure()?;
        let number = structure
            .fields
            .iter()
            .chain(&structure.tagged)
            .copied()
            .find(|&number| &*self.view.layout.field(number).name == name)?;
        self.field_node(number)
    }

    /// A field of a struct by number; of a tag given twice, the last.
    pub(crate) fn field_node(&self, number: u16) -> Option<NodeRef<'a>> {
        let mut found = None;
        for child in self.children() {
            if child.node.kind == NodeKind::TagSection {
                found = child.children().filter(|tagged| tagged.node.field == number).last().or(found);
            } else if child.node.field == number {
                found = Some(child);
            }
        }
        found
    }

    /// The unknown tagged fields of a struct by ascending tag; of a tag given twice, the last.
    pub fn unknown_tags(&self) -> Vec<(u32, &'a [u8])> {
        let Some(section) = self.children().find(|child| child.node.kind == NodeKind::TagSection) else {
            return Vec::new();
        };
        let mut tags: Vec<(u32, &[u8])> = section.children().filter_map(|child| child.unknown_tag()).collect();
        tags.sort_by_key(|&(tag, _)| tag);
        tags.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                *earlier = *later;
            }
            same
        });
        tags
    }

    /// The node as an owned value.
    pub fn value(&self) -> Value {
        if self.is_null() {
            return Value::Null;
        }
        match self.wire() {
            Some(WireType::Fixed(Fixed::Bool)) => Value::Bool(self.integer() == Some(1)),
            Some(WireType::Fixed(Fixed::Float64)) => Value::Float(Float64::from(self.float().unwrap_or_default())),
            Some(WireType::Fixed(Fixed::Uuid)) => Value::Uuid(self.uuid().unwrap_or_default()),
            Some(WireType::Fixed(_)) => Value::Integer(self.integer().unwrap_or_default()),
            Some(WireType::String { .. }) => match self.text() {
                Some(text) => Value::String(text.to_owned()),
                None => Value::Bytes(self.octets().unwrap_or_default().to_vec()),
            },
            Some(WireType::Bytes { .. }) => Value::Bytes(self.octets().unwrap_or_default().to_vec()),
            Some(WireType::Array { .. }) => Value::Array(self.elements().map(|element| element.value()).collect()),
            Some(WireType::Struct { id, .. }) => self.struct_value(self.view.layout.structure(id)),
            None => Value::Null,
        }
    }

    fn struct_value(&self, structure: &StructLayout) -> Value {
        let mut fields = Vec::with_capacity(structure.fields.len() + structure.tagged.len());
        for child in self.children().filter(|child| child.node.kind != NodeKind::TagSection) {
            fields.push((self.view.layout.field(child.node.field).name.clone(), child.value()));
        }
        let section = self.children().find(|child| child.node.kind == NodeKind::TagSection);
        let nodes = section.into_iter().flat_map(|section| section.children()).map(|node| (node.node.field, node));
        let tagged = tagged_in(self.view.layout, structure, nodes);
        for (&number, node) in structure.tagged.iter().zip(tagged) {
            let field = self.view.layout.field(number);
            let value = node.map_or_else(|| field.default.clone(), |node| node.value());
            fields.push((field.name.clone(), value));
        }
        let tags = self.unknown_tags().into_iter().map(|(tag, payload)| (tag, payload.to_vec())).collect();
        Value::Struct(StructValue { fields, tags })
    }
}

/// The known tagged fields of a tag section, given with their field's number, in the order of the struct's; of a tag given
/// twice, the last. One walk for all of them, since there may be many on either side.
pub(crate) fn tagged_in<T: Copy>(
    layout: &Layout,
    structure: &StructLayout,
    section: impl Iterator<Item = (u16, T)>,
) -> Vec<Option<T>> {
    let mut tagged = vec![None; structure.tagged.len()];
    for (number, node) in section.filter(|&(number, _)| number != Node::NO_FIELD) {
        let place = layout.field(number).tag.and_then(|tag| layout.tagged_place(structure, tag));
        if let Some(found) = place.and_then(|place| tagged.get_mut(place)) {
            *found = Some(node);
        }
    }
    tagged
}

/// A bool or integer that takes all of `bytes`.
#[inline(always)]
pub(crate) fn integer_in(bytes: &[u8], fixed: Fixed) -> Option<i64> {
    Some(match fixed {
        Fixed::Bool => (u8::from_be_bytes(bytes.try_into().ok()?) != 0).into(),
        Fixed::Int8 => i8::from_be_bytes(bytes.try_into().ok()?).into(),
        Fixed::Int16 => i16::from_be_bytes(bytes.try_into().ok()?).into(),
        Fixed::Uint16 => u16::from_be_bytes(bytes.try_into().ok()?).into(),
        Fixed::Int32 => i32::from_be_bytes(bytes.try_into().ok()?).into(),
        Fixed::Uint32 => u32::from_be_bytes(bytes.try_into().ok()?).into(),
        Fixed::Int64 => i64::from_be_bytes(bytes.try_into().ok()?),
        Fixed::Float64 | Fixed::Uuid => return None,
    })
}

/// What follows the length of text, bytes or records; a length that is not compact takes `plain` bytes.
#[inline(always)]
pub(crate) fn content_in(bytes: &[u8], compact: bool, plain: usize) -> Option<&[u8]> {
    match bytes {
        [0..0x80, content @ ..] if compact => Some(content),
        _ => bytes.get(if compact { varint_size(bytes) } else { plain }..),
    }
}

/// The count that an array starts with.
#[inline(always)]
pub(crate) fn count_in(bytes: &[u8], compact: bool) -> Option<usize> {
    let mut reader = Reader::new(bytes);
    if compact {
        reader.uvarint().ok().map(|count| count.value.saturating_sub(1) as usize)
    } else {
        reader.array().ok().map(|count| u32::from_be_bytes(count) as usize)
    }
}

/// Bytes that the varint at the start takes.
fn varint_size(bytes: &[u8]) -> usize {
    let mut reader = Reader::new(bytes);
    let _ = reader.uvarint();
    reader.position()
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    view: View<'a>,
    /// The next node's number, or the next offset where elements have no node.
    next: u32,
    /// Where it ends, likewise.
    upto: u32,
    /// Type of elements that have no node, and the number of their array's node.
    fixed: Option<(Fixed, u32)>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = NodeRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<NodeRef<'a>> {
        let view = self.view;
        if let Some((fixed, index)) = self.fixed {
            let (start, end) = (self.next, self.next + u32::from(fixed.size()));
            if end > self.upto {
                return None;
            }
            self.next = end;
            let node =
                Node { start, end, kind: NodeKind::Leaf, element: true, ..*view.tree.nodes.get(index as usize)? };
            return Some(NodeRef { view, index, node, fixed: Some(fixed) });
        }
        if self.next >= self.upto {
            return None;
        }
        // A node that decoding failed inside has no end: there the nodes there are end it.
        let (index, node) = (self.next, *view.tree.nodes.get(self.next as usize)?);
        self.next = node.next;
        Some(NodeRef { view, index, node, fixed: None })
    }
}

/// A float64 compared by its bits, so that a NaN equals itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Float64(pub u64);

impl From<f64> for Float64 {
    fn from(value: f64) -> Float64 {
        Float64(value.to_bits())
    }
}

impl From<Float64> for f64 {
    fn from(value: Float64) -> f64 {
        f64::from_bits(value.0)
    }
}

/// An owned value of any field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Null.
    Null,
    /// A bool.
    Bool(bool),
    /// Any integer type.
    Integer(i64),
    /// A float64.
    Float(Float64),
    /// Text.
    String(String),
    /// Bytes, records, and text that is not UTF-8.
    Bytes(Vec<u8>),
    /// A uuid.
    Uuid([u8; 16]),
    /// An array.
    Array(Vec<Value>),
    /// A struct.
    Struct(StructValue),
}

/// The value of a struct: its fields by name in layout order, and the unknown tagged fields it came with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StructValue {
    /// Fields by name; one that is missing has its default.
    pub fields: Vec<(Arc<str>, Value)>,
    /// Unknown tagged fields by tag.
    pub tags: Vec<(u32, Vec<u8>)>,
}

impl StructValue {
    /// A field by name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(field, _)| &**field == name).map(|(_, value)| value)
    }

    /// A field by name, to change.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.fields.iter_mut().find(|(field, _)| &**field == name).map(|(_, value)| value)
    }
}

/// What to do with a field of the definition that the version at hand lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentFields {
    /// Keep it: encoding then refuses it unless it is ignorable or at its default.
    Keep,
    /// Drop it: a decoder may show placeholders for fields that were not on the wire.
    Drop,
}

impl Value {
    /// The fields of a struct.
    pub fn as_struct(&self) -> Option<&StructValue> {
        match self {
            Value::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    /// Whether the value is written like this: how paths match keys.
    pub fn is_text(&self, text: &str) -> bool {
        match self {
            Value::Null => text == "null",
            Value::Bool(value) => text == value.to_string(),
            Value::Integer(value) => text == value.to_string(),
            Value::String(value) => text == value,
            Value::Uuid(uuid) => parse_uuid(text).as_ref() == Some(uuid),
            _ => false,
        }
    }

    /// The JSON form: bytes and text that is not UTF-8 as `{"hex": ..}`, a uuid as its usual text, integers past 2^53
    /// and NaN and infinities as strings, unknown tags as `"_tags": [{"tag": 9, "hex": ".."}]`.
    pub fn to_json(&self) -> Json {
        match serde_json::to_value(self) {
            Ok(json) => json,
            Err(_) => unreachable!("names are text, and numbers that JSON lacks are written as text"),
        }
    }

    /// Reads the JSON form of a message. A missing field gets its default; an unknown name is an error.
    pub fn from_json(layout: &Layout, json: &Json, absent: AbsentFields) -> Result<Value, EncodeError> {
        FromJson { layout, absent }.structure(json, layout.root()).map_err(Unwinding::into_error)
    }
}

/// As [`Value::to_json`] has it, for a writer that need not hold it whole.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Integer(value) if value.unsigned_abs() <= 1 << 53 => serializer.serialize_i64(*value),
            Value::Integer(value) => serializer.collect_str(value),
            Value::Float(value) => match f64::from(*value) {
                value if value.is_nan() => serializer.serialize_str("NaN"),
                f64::INFINITY => serializer.serialize_str("Infinity"),
                f64::NEG_INFINITY => serializer.serialize_str("-Infinity"),
                value => serializer.serialize_f64(value),
            },
            Value::String(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => serializer.collect_map([("hex", hex(bytes))]),
            Value::Uuid(uuid) => serializer.serialize_str(&uuid_text(uuid)),
            Value::Array(elements) => serializer.collect_seq(elements),
            Value::Struct(value) => {
                let mut object = serializer.serialize_map(None)?;
                for (name, value) in &value.fields {
                    object.serialize_entry(&**name, value)?;
                }
                if !value.tags.is_empty() {
                    let tags = value.tags.iter().map(|(tag, payload)| json!({ "tag": tag, "hex": hex(payload) }));
                    object.serialize_entry("_tags", &tags.collect::<Vec<_>>())?;
                }
                object.end()
            }
        }
    }
}

struct FromJson<'l> {
    layout: &'l Layout,
    absent: AbsentFields,
}

impl FromJson<'_> {
    fn structure(&self, json: &Json, structure: &StructLayout) -> Result<Value, Unwinding> {
        let object = json.as_object().ok_or(EncodeErrorKind::Type("struct"))?;
        let mut fields = Vec::with_capacity(structure.fields.len() + structure.tagged.len());
        let mut used = 0;
        for &number in structure.fields.iter().chain(&structure.tagged) {
            let field = self.layout.field(number);
            let value = match object.get(&*field.name) {
                Some(json) => {
                    used += 1;
                    self.value(json, field.wire).map_err(|error| error.in_field(&field.name))?
                }
                None => field.default.clone(),
            };
            fields.push((field.name.clone(), value));
        }
        let mut tags = Vec::new();
        if let Some(json) = object.get("_tags") {
            used += 1;
            tags = unknown_tags(json).map_err(|kind| Unwinding::from(kind).in_field("_tags"))?;
        }
        if used < object.len() {
            for (name, json) in object {
                let known = |&number: &u16| *self.layout.field(number).name == **name;
                if name == "_tags" || structure.fields.iter().chain(&structure.tagged).any(known) {
                    continue;
                }
                let Some(field) = structure.absent.iter().find(|field| *field.name == **name) else {
                    return Err(EncodeErrorKind::UnknownField(name.clone()).into());
                };
                if self.absent == AbsentFields::Keep {
                    fields.push((field.name.clone(), untyped(json)));
                }
            }
        }
        Ok(Value::Struct(StructValue { fields, tags }))
    }

    fn value(&self, json: &Json, wire: WireType) -> Result<Value, Unwinding> {
        if json.is_null() {
            return Ok(Value::Null);
        }
        Ok(match wire {
            WireType::Fixed(fixed) => fixed_value(json, fixed)?,
            WireType::String { .. } => match text_or_hex(json, "string")? {
                // Hex is for text that is not UTF-8, but harmless for any other.
                Value::Bytes(bytes) => {
                    String::from_utf8(bytes).map_or_else(|error| Value::Bytes(error.into_bytes()), Value::String)
                }
                text => text,
            },
            WireType::Bytes { .. } => match text_or_hex(json, "bytes, written as {\"hex\": \"..\"}")? {
                bytes @ Value::Bytes(_) => bytes,
                _ => return Err(EncodeErrorKind::Type("bytes, written as {\"hex\": \"..\"}").into()),
            },
            WireType::Struct { id, .. } => self.structure(json, self.layout.structure(id))?,
            WireType::Array { element, compact, .. } => {
                let elements = json.as_array().ok_or(EncodeErrorKind::Type("array"))?;
                let wire = element.wire(compact);
                let element =
                    |(index, json)| self.value(json, wire).map_err(|error: Unwinding| error.in_element(index));
                Value::Array(elements.iter().enumerate().map(element).collect::<Result<_, _>>()?)
            }
        })
    }
}

fn fixed_value(json: &Json, fixed: Fixed) -> Result<Value, EncodeErrorKind> {
    let wanted = EncodeErrorKind::Type(fixed.name());
    Ok(match fixed {
        Fixed::Bool => Value::Bool(json.as_bool().ok_or(wanted)?),
        Fixed::Float64 => Value::Float(Float64::from(match json.as_str() {
            Some("NaN") => f64::NAN,
            Some("Infinity") => f64::INFINITY,
            Some("-Infinity") => f64::NEG_INFINITY,
            Some(_) => return Err(wanted),
            None => json.as_f64().ok_or(wanted)?,
        })),
        Fixed::Uuid => {
            let text = json.as_str().ok_or(wanted)?;
            Value::Uuid(parse_uuid(text).ok_or_else(|| EncodeErrorKind::Text(format!("{text:?} is not a uuid")))?)
        }
        _ => match json.as_str() {
            Some(digits) => Value::Integer(digits.parse().map_err(|_| wanted)?),
            None if json.is_u64() || json.is_i64() => {
                Value::Integer(json.as_i64().ok_or(EncodeErrorKind::OutOfRange(fixed.name()))?)
            }
            None => return Err(wanted),
        },
    })
}

/// A field that the version lacks, which is only compared with its default.
pub(crate) fn untyped(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::Integer(value),
            None => Value::Float(Float64::from(number.as_f64().unwrap_or(f64::NAN))),
        },
        Json::String(text) => Value::String(text.clone()),
        Json::Array(elements) => Value::Array(elements.iter().map(untyped).collect()),
        Json::Object(object) => match text_or_hex(json, "bytes") {
            Ok(bytes) => bytes,
            Err(_) => Value::Struct(StructValue {
                fields: object.iter().map(|(name, json)| (name.as_str().into(), untyped(json))).collect(),
                tags: Vec::new(),
            }),
        },
    }
}

fn text_or_hex(json: &Json, wanted: &'static str) -> Result<Value, EncodeErrorKind> {
    match json {
        Json::String(text) => Ok(Value::String(text.clone())),
        Json::Object(object) if object.len() == 1 => {
            let text = object.get("hex").and_then(Json::as_str).ok_or(EncodeErrorKind::Type(wanted))?;
            Ok(Value::Bytes(parse_hex(text).map_err(EncodeErrorKind::Text)?))
        }
        _ => Err(EncodeErrorKind::Type(wanted)),
    }
}

fn unknown_tags(json: &Json) -> Result<Vec<(u32, Vec<u8>)>, EncodeErrorKind> {
    let wanted = || EncodeErrorKind::Type("array of {\"tag\": number, \"hex\": \"..\"}");
    let tag = |json: &Json| {
        let number = json.get("tag").and_then(Json::as_u64).ok_or_else(wanted)?;
        let number = u32::try_from(number).map_err(|_| EncodeErrorKind::OutOfRange("tag"))?;
        let text = json.get("hex").and_then(Json::as_str).ok_or_else(wanted)?;
        Ok((number, parse_hex(text).map_err(EncodeErrorKind::Text)?))
    };
    json.as_array().ok_or_else(wanted)?.iter().map(tag).collect()
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' - 10 + value };
    let mut text = vec![0; bytes.len() * 2];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    String::from_utf8(text).unwrap_or_else(|_| unreachable!("digits are text"))
}

/// In place of a digit's value where there is no digit: more than two digits come to.
const NO_DIGIT: u8 = 0xff;

/// Reads hex; white space anywhere is skipped. The error says what is wrong and where.
pub fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => NO_DIGIT,
    };
    // Almost all hex there is comes in pairs without spaces.
    let mut bytes = vec![0; text.len() / 2];
    let mut seen = if text.len().is_multiple_of(2) { 0 } else { NO_DIGIT };
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { continue };
        let (high, low) = (value(*high), value(*low));
        seen |= high | low;
        *byte = high << 4 | low & 15;
    }
    if seen < 16 {
        return Ok(bytes);
    }
    bytes.clear();
    let mut high = None;
    for (place, digit) in text.char_indices().filter(|(_, digit)| !digit.is_whitespace()) {
        let value = digit.to_digit(16).ok_or_else(|| format!("{digit:?} at character {place} is not a hex digit"))?;
        let value = u8::try_from(value).map_err(|_| "not a hex digit")?;
        match high.take() {
            None => high = Some(value),
            Some(high) => bytes.push(high << 4 | value),
        }
    }
    if high.is_some() {
        return Err("an odd number of hex digits".to_owned());
    }
    Ok(bytes)
}

/// The usual text of a uuid, 8-4-4-4-12.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let digits = hex(uuid);
    let mut text = String::with_capacity(36);
    for (place, digit) in digits.chars().enumerate() {
        if matches!(place, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    text
}

/// Reads a uuid as 8-4-4-4-12 or in the 22 characters of base64url that Kafka's tools print.
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    if text.len() == 22 {
        let mut digits = Vec::with_capacity(22);
        for digit in text.bytes() {
            digits.push(base64_digit(digit)?);
        }
        // 22 digits are 132 bits; the last four are padding and the rest is shifted in without them.
        let (last, whole) = digits.split_last()?;
        let bits = whole.iter().fold(0_u128, |bits, &digit| bits << 6 | u128::from(digit));
        return (last & 0x0f == 0).then(|| (bits << 2 | u128::from(last >> 4)).to_be_bytes());
    }
    let parts: Vec<&str> = text.split('-').collect();
    let shape = parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]);
    if !shape {
        return None;
    }
    parse_hex(&parts.concat()).ok()?.try_into().ok()
}

fn base64_digit(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_decoding_failed_in_is_read_as_far_as_it_goes() {
        let text = r#"{"name":"T","type":"data","validVersions":"0","fields":[
            {"name":"A","type":"[]string","versions":"0+"}]}"#;
        let spec = crate::MessageSpec::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let layout = Layout::new(&Arc::new(spec), crate::ApiVersion(0)).unwrap_or_else(|error| panic!("{error}"));
        // Two elements are due; the second claims three bytes of two.
        let bytes = [0, 0, 0, 2, 0, 1, b'x', 0, 3, b'y', b'z'];
        let mut tree = Tree::new();
        assert!(crate::decode_into(&layout, &bytes, 0, &mut tree).is_err());
        let view = View::new(&layout, &bytes, &tree);
        let array = view.get("A").unwrap_or_else(|| panic!("A is there"));
        assert!(view.root().node().is_open() && array.node().is_open());
        assert_eq!(array.elements().map(|element| element.text()).collect::<Vec<_>>(), [Some("x")]);
        assert!(view.get("A[1]").is_none());
    }

    #[test]
    fn uuids_are_read_in_both_spellings() {
        let uuid = [0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xfe];
        // The second spelling by `base64 | tr '+/' '-_'` over the 16 bytes.
        assert_eq!(parse_uuid("ff010203-0405-0607-0809-0a0b0c0d0efe"), Some(uuid));
        assert_eq!(parse_uuid("_wECAwQFBgcICQoLDA0O_g"), Some(uuid));
        assert_eq!(parse_uuid(&uuid_text(&uuid)), Some(uuid));
        assert_eq!(parse_uuid("AAAAAAAAAAAAAAAAAAAAAQ"), Some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
        for text in ["", "AAAAAAAAAAAAAAAAAAAAAB", "ff0102030405-0607-0809-0a0b0c0d0efe", "_wECAwQFBgcICQoLDA0O+g"] {
            assert_eq!(parse_uuid(text), None, "{text}");
        }
    }

    #[test]
    fn hex_skips_white_space_and_names_what_is_wrong() {
        assert_eq!(parse_hex(" 00 0a\nFF "), Ok(vec![0, 10, 255]));
        assert!(parse_hex("0").is_err() && parse_hex("0g").is_err());
        for character in (0..=u8::MAX).map(char::from).filter(|character| !character.is_whitespace()) {
            let value = character.to_digit(16);
            let read = |text: String| parse_hex(&text).ok().map(|bytes| u32::from(bytes[0]));
            assert_eq!(read(format!("{character}5")), value.map(|value| value * 16 + 5), "{character:?}");
            assert_eq!(read(format!("5{character}")), value.map(|value| 80 + value), "{character:?}");
        }
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let text: String = all.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((hex(&all), parse_hex(&text)), (text.clone(), Ok(all.clone())));
        assert_eq!(parse_hex(&text.to_uppercase()), Ok(all));
    }

    #[test]
    fn paths_are_taken_apart() {
        use PathStep::*;
        assert_eq!(
            PathStep::parse("Results[0].Configs[Name=retention.ms].Value"),
            Some(vec![
                Field("Results"),
                Index(0),
                Field("Configs"),
                Match(vec![("Name", "retention.ms")]),
                Field("Value")
            ])
        );
        assert_eq!(PathStep::parse(""), Some(vec![]));
        for path in ["a..b", "a.", "a[", "a[b]", ".a", "a.[0]"] {
            assert_eq!(PathStep::parse(path), None, "{path}");
        }
    }
}
