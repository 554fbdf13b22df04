//! Layout and a source of values to bytes. From a value every length, count and number is written anew, so that a round trip
//! proves something. From a tree likewise, but that a struct whose every byte stands in the input as it would be written is
//! copied at once; the laws hold the two against each other.

use crate::error::{EncodeError, EncodeErrorKind};
use crate::layout::{Bools, Element, Field, Fixed, Layout, RunField, Step, StructLayout, WireType};
use crate::tree::{
    Node, NodeKind, NodeRef, StructValue, Unwinding, Value, View, content_in, count_in, integer_in, offset, tagged_in,
};
use crate::wire::{Reader, write_uvarint};
use std::borrow::Cow;
use std::sync::Arc;

/// What can be encoded: a node of a decoded tree, or an owned value.
pub trait Source<'a>: Copy {
    /// Encodes it after what `out` holds. On an error `out` is as it was.
    fn encode_into(self, layout: &Layout, out: &mut Vec<u8>) -> Result<(), EncodeError>;
}

impl<'a> Source<'a> for &'a Value {
    fn encode_into(self, layout: &Layout, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode_values(layout, self, out)
    }
}

/// Only with the layout that it was decoded with: otherwise it is an error.
impl<'a> Source<'a> for NodeRef<'a> {
    fn encode_into(self, layout: &Layout, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let (view, number) = self.place();
        encode_values(layout, Place { view: &view, at: number.into() }, out)
    }
}

/// Encodes an owned value.
pub fn encode(layout: &Layout, value: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    encode_into(layout, value, &mut out)?;
    Ok(out)
}

/// Encodes a decoded tree anew.
pub fn encode_view(view: View<'_>) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::with_capacity(view.bytes().len());
    encode_into(view.layout(), view.root(), &mut out)?;
    Ok(out)
}

/// Encodes from any source, after what `out` holds. On an error `out` is as it was.
pub fn encode_into<'a, S: Source<'a>>(layout: &Layout, source: S, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    source.encode_into(layout, out)
}

fn encode_values<'a, S: Values<'a>>(layout: &Layout, values: S, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let before = out.len();
    let mut encoder = Encoder { layout, out: std::mem::take(out) };
    let encoded = encoder.structure(layout.root(), values);
    *out = encoder.out;
    encoded.map_err(|error| {
        out.truncate(before);
        error.into_error()
    })
}

/// The payload of a tagged field.
pub(crate) fn payload(layout: &Layout, field: &Field, value: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder { layout, out: Vec::new() };
    encoder.value(field, field.wire, value).map_err(Unwinding::into_error)?;
    Ok(encoder.out)
}

/// How the encode loop reads a value, its type known from the layout.
pub(crate) trait Values<'a>: Copy {
    /// A walk over the fields of a struct, in layout order.
    type Fields;
    /// The elements of an array.
    type Elements: Iterator<Item = Self>;

    /// The bytes of a struct of this layout, if they are at hand as they would be written.
    fn as_written(self, layout: &Layout, structure: &StructLayout) -> Option<&'a [u8]>;
    /// Whether it is null.
    fn is_null(self) -> bool;
    /// A bool or integer.
    fn integer(self, fixed: Fixed) -> Option<i64>;
    /// A float64's bits.
    fn float_bits(self) -> Option<u64>;
    /// A uuid.
    fn uuid(self) -> Option<[u8; 16]>;
    /// Text.
    fn text(self, compact: bool) -> Option<&'a [u8]>;
    /// Bytes or records.
    fn octets(self, compact: bool) -> Option<&'a [u8]>;
    /// An array's count and elements.
    fn elements(self, compact: bool, element: Element) -> Option<(usize, Self::Elements)>;
    /// The fields of a struct of this layout.
    fn fields(self, layout: &Layout) -> Option<Self::Fields>;
    /// The next untagged field of a walk; `None` where it is missing.
    fn field(fields: &mut Self::Fields, field: &Field) -> Option<Self>;
    /// The tagged fields, in the order of the struct's; the walk is past the untagged ones.
    fn tagged(fields: &mut Self::Fields, layout: &Layout, structure: &StructLayout) -> Vec<Option<Self>>;
    /// After the walk: is there a field that the layout does not have and that may not be dropped?
    fn finish(self, fields: Self::Fields, structure: &StructLayout) -> Result<(), EncodeErrorKind>;
    /// Unknown tagged fields by ascending tag; the walk is past the untagged fields.
    fn unknown_tags(self, fields: &Self::Fields) -> Result<Vec<(u32, &'a [u8])>, EncodeErrorKind>;
}

pub(crate) struct Encoder<'l> {
    pub(crate) layout: &'l Layout,
    /// Owned while encoding: reached through a reference, its length would be read and written around every byte.
    pub(crate) out: Vec<u8>,
}

impl<'l> Encoder<'l> {
    fn structure<'a, S: Values<'a>>(&mut self, structure: &'l StructLayout, source: S) -> Result<(), Unwinding> {
        if let Some(written) = source.as_written(self.layout, structure) {
            self.out.extend_from_slice(written);
            return Ok(());
        }
        let layout = self.layout;
        let mut fields = source.fields(layout).ok_or_else(|| wrong_type("struct"))?;
        for &number in &structure.fields {
            let field = layout.field(number);
            let encoded = match S::field(&mut fields, field) {
                Some(value) => match field.wire {
                    // The commonest types come first, without a call.
                    WireType::String { compact: true, nullable } => self.string(true, nullable, value),
                    WireType::Fixed(fixed) => self.fixed(fixed, value),
                    wire => self.value(field, wire, value),
                },
                None => self.default(field),
            };
            encoded.map_err(|error| error.in_field(&field.name))?;
        }
        if structure.flexible {
            let unknown = source.unknown_tags(&fields)?;
            if structure.tagged.is_empty() && unknown.is_empty() {
                self.out.push(0);
            } else {
                fields = self.tag_section::<S>(structure, unknown, fields)?;
            }
        }
        Ok(source.finish(fields, structure)?)
    }

    #[inline(always)]
    fn string<'a, S: Values<'a>>(&mut self, compact: bool, nullable: bool, value: S) -> Result<(), Unwinding> {
        match value.text(compact) {
            Some(text) => self.text(compact, text),
            None if value.is_null() => self.null(compact, nullable, &[0xff; 2]),
            None => Err(wrong_type("string")),
        }
    }

    /// A field that the source does not have.
    #[cold]
    #[inline(never)]
    pub(crate) fn default(&mut self, field: &'l Field) -> Result<(), Unwinding> {
        self.value(field, field.wire, &field.default)
    }

    #[inline(never)]
    fn tag_section<'a, S: Values<'a>>(
        &mut self,
        structure: &'l StructLayout,
        unknown: Vec<(u32, &'a [u8])>,
        mut fields: S::Fields,
    ) -> Result<S::Fields, Unwinding> {
        let mut tags: Vec<(u32, Cow<'_, [u8]>)> = Vec::new();
        for (&number, value) in structure.tagged.iter().zip(S::tagged(&mut fields, self.layout, structure)) {
            let (field, Some(value)) = (self.layout.field(number), value) else { continue };
            let mut payload = Encoder { layout: self.layout, out: Vec::new() };
            payload.value(field, field.wire, value).map_err(|error| error.in_field(&field.name))?;
            if payload.out != field.default_bytes {
                tags.extend(field.tag.map(|tag| (tag, payload.out.into())));
            }
        }
        if !unknown.is_empty() {
            let declared = |tag| self.layout.tagged_place(structure, tag).is_some();
            if let Some(&(tag, _)) = unknown.iter().find(|&&(tag, _)| declared(tag)) {
                return Err(EncodeErrorKind::Tag(tag).into());
            }
            tags.extend(unknown.into_iter().map(|(tag, payload)| (tag, payload.into())));
            tags.sort_by_key(|&(tag, _)| tag);
        }
        self.tags(tags.len(), tags.iter().map(|(tag, payload)| (*tag, &**payload)))?;
        Ok(fields)
    }

    /// A tag section: how many there are, and each by ascending tag with its payload.
    pub(crate) fn tags<'a>(
        &mut self,
        count: usize,
        tags: impl Iterator<Item = (u32, &'a [u8])>,
    ) -> Result<(), Unwinding> {
        write_uvarint(&mut self.out, length(count)?);
        for (tag, payload) in tags {
            write_uvarint(&mut self.out, tag);
            write_uvarint(&mut self.out, length(payload.len())?);
            self.out.extend_from_slice(payload);
        }
        Ok(())
    }

    #[inline(never)]
    pub(crate) fn value<'a, S: Values<'a>>(
        &mut self,
        field: &'l Field,
        wire: WireType,
        value: S,
    ) -> Result<(), Unwinding> {
        match wire {
            WireType::Fixed(fixed) => self.fixed(fixed, value),
            WireType::String { compact, nullable } => self.string(compact, nullable, value),
            WireType::Bytes { compact, nullable, .. } => {
                if value.is_null() {
                    return self.null(compact, nullable, &[0xff; 4]);
                }
                self.octets(compact, value.octets(compact).ok_or_else(|| wrong_type("bytes"))?)
            }
            WireType::Struct { id, nullable } => {
                let tagged = field.tag.is_some();
                if value.is_null() {
                    return self.null(tagged, nullable, &[0xff]);
                }
                if nullable {
                    // 1 in both forms: the int8 marker, and the uvarint of a tagged field (KIP-893).
                    self.out.push(1);
                }
                self.structure(self.layout.structure(id), value)
            }
            WireType::Array { compact, nullable, element } => {
                if value.is_null() {
                    return self.null(compact, nullable, &[0xff; 4]);
                }
                let (count, elements) = value.elements(compact, element).ok_or_else(|| wrong_type("array"))?;
                self.length(compact, count)?;
                for (index, value) in elements.enumerate() {
                    self.element(compact, element, value).map_err(|error| error.in_element(index))?;
                }
                Ok(())
            }
        }
    }

    fn element<'a, S: Values<'a>>(&mut self, compact: bool, element: Element, value: S) -> Result<(), Unwinding> {
        if value.is_null() {
            return Err(EncodeErrorKind::NullNotAllowed.into());
        }
        match element {
            Element::Fixed(fixed) => self.fixed(fixed, value),
            Element::String => self.text(compact, value.text(compact).ok_or_else(|| wrong_type("string"))?),
            Element::Bytes => self.octets(compact, value.octets(compact).ok_or_else(|| wrong_type("bytes"))?),
            Element::Struct(id) => self.structure(self.layout.structure(id), value),
        }
    }

    fn null(&mut self, compact: bool, nullable: bool, plain: &[u8]) -> Result<(), Unwinding> {
        if !nullable {
            return Err(EncodeErrorKind::NullNotAllowed.into());
        }
        self.out.extend_from_slice(if compact { &[0] } else { plain });
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn text(&mut self, compact: bool, text: &[u8]) -> Result<(), Unwinding> {
        if compact {
            self.length(true, text.len())?;
        } else {
            let length = i16::try_from(text.len()).map_err(|_| EncodeErrorKind::StringTooLong(text.len()))?;
            self.out.extend_from_slice(&length.to_be_bytes());
        }
        self.out.extend_from_slice(text);
        Ok(())
    }

    pub(crate) fn octets(&mut self, compact: bool, octets: &[u8]) -> Result<(), Unwinding> {
        self.length(compact, octets.len())?;
        self.out.extend_from_slice(octets);
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn length(&mut self, compact: bool, count: usize) -> Result<(), Unwinding> {
        let count = length(count)?;
        if compact {
            write_uvarint(&mut self.out, count + 1);
        } else {
            self.out.extend_from_slice(&count.to_be_bytes());
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn fixed<'a, S: Values<'a>>(&mut self, fixed: Fixed, value: S) -> Result<(), Unwinding> {
        let wanted = || wrong_type(fixed.name());
        match fixed {
            Fixed::Float64 => self.out.extend_from_slice(&value.float_bits().ok_or_else(wanted)?.to_be_bytes()),
            Fixed::Uuid => self.out.extend_from_slice(&value.uuid().ok_or_else(wanted)?),
            _ => return self.integer(fixed, value.integer(fixed).ok_or_else(wanted)?),
        }
        Ok(())
    }

    /// A bool or an integer.
    #[inline(always)]
    pub(crate) fn integer(&mut self, fixed: Fixed, value: i64) -> Result<(), Unwinding> {
        let out_of_range = || Unwinding::from(EncodeErrorKind::OutOfRange(fixed.name()));
        macro_rules! integer {
            ($type:ty) => {
                self.out.extend_from_slice(&<$type>::try_from(value).map_err(|_| out_of_range())?.to_be_bytes())
            };
        }
        match fixed {
            Fixed::Bool => match value {
                0 | 1 => self.out.push((value == 1).into()),
                _ => return Err(out_of_range()),
            },
            Fixed::Int8 => integer!(i8),
            Fixed::Int16 => integer!(i16),
            Fixed::Uint16 => integer!(u16),
            Fixed::Int32 => integer!(i32),
            Fixed::Uint32 => integer!(u32),
            Fixed::Int64 => integer!(i64),
            Fixed::Float64 | Fixed::Uuid => return Err(wrong_type(fixed.name())),
        }
        Ok(())
    }
}

#[cold]
#[inline(never)]
pub(crate) fn wrong_type(wanted: &'static str) -> Unwinding {
    EncodeErrorKind::Type(wanted).into()
}

/// A length or count: 2^31-1 at most.
#[inline(always)]
fn length(length: usize) -> Result<u32, Unwinding> {
    match i32::try_from(length) {
        Ok(length) => Ok(length.unsigned_abs()),
        Err(_) => Err(EncodeErrorKind::TooLong(length).into()),
    }
}

impl<'a> Values<'a> for &'a Value {
    /// The fields of the value, how far the walk is, and how many of them the layout asked for.
    type Fields = (&'a [(Arc<str>, Value)], usize, usize);
    type Elements = std::slice::Iter<'a, Value>;

    #[inline(always)]
    fn as_written(self, _: &Layout, _: &StructLayout) -> Option<&'a [u8]> {
        None
    }

    #[inline(always)]
    fn is_null(self) -> bool {
        matches!(self, Value::Null)
    }

    fn integer(self, _: Fixed) -> Option<i64> {
        if let Value::Integer(value) = self {
            return Some(*value);
        }
        if let Value::Bool(value) = self { Some((*value).into()) } else { None }
    }

    fn float_bits(self) -> Option<u64> {
        match self {
            Value::Float(value) => Some(value.0),
            _ => None,
        }
    }

    fn uuid(self) -> Option<[u8; 16]> {
        match self {
            Value::Uuid(uuid) => Some(*uuid),
            _ => None,
        }
    }

    fn text(self, _: bool) -> Option<&'a [u8]> {
        match self {
            Value::String(text) => Some(text.as_bytes()),
            // Text that is not UTF-8.
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn octets(self, _: bool) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn elements(self, _: bool, _: Element) -> Option<(usize, Self::Elements)> {
        match self {
            Value::Array(elements) => Some((elements.len(), elements.iter())),
            _ => None,
        }
    }

    fn fields(self, _: &Layout) -> Option<Self::Fields> {
        self.as_struct().map(|value| (value.fields.as_slice(), 0, 0))
    }

    #[inline(always)]
    fn field(fields: &mut Self::Fields, field: &Field) -> Option<Self> {
        let (all, next, found) = fields;
        // Values are mostly in layout order, with the layout's own names: then the next one is the one.
        let (at, value) = match all.get(*next) {
            Some((name, value)) if Arc::ptr_eq(name, &field.name) => (*next, value),
            _ => field_named(all, *next, &field.name)?,
        };
        *next = at + 1;
        *found += 1;
        Some(value)
    }

    fn tagged(fields: &mut Self::Fields, layout: &Layout, structure: &StructLayout) -> Vec<Option<Self>> {
        structure.tagged.iter().map(|&number| Self::field(fields, layout.field(number))).collect()
    }

    #[inline(always)]
    fn finish(self, (all, _, found): Self::Fields, structure: &StructLayout) -> Result<(), EncodeErrorKind> {
        match self {
            Value::Struct(value) if found < all.len() || !structure.flexible && !value.tags.is_empty() => {
                check_strays(value, found, structure)
            }
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn unknown_tags(self, _: &Self::Fields) -> Result<Vec<(u32, &'a [u8])>, EncodeErrorKind> {
        match self {
            Value::Struct(StructValue { tags, .. }) if !tags.is_empty() => sorted_tags(tags),
            _ => Ok(Vec::new()),
        }
    }
}

/// Number and value of the field of this name, the next one before all others.
#[inline(never)]
fn field_named<'a>(all: &'a [(Arc<str>, Value)], next: usize, name: &Arc<str>) -> Option<(usize, &'a Value)> {
    let at = match all.get(next) {
        Some((other, _)) if other == name => next,
        _ => all.iter().position(|(other, _)| other == name)?,
    };
    all.get(at).map(|(_, value)| (at, value))
}

/// What is wrong with a struct that holds more than the layout asked for, if anything.
#[inline(never)]
fn check_strays(value: &StructValue, found: usize, structure: &StructLayout) -> Result<(), EncodeErrorKind> {
    let all = &value.fields;
    if !structure.flexible && !value.tags.is_empty() {
        return Err(EncodeErrorKind::FieldNotInVersion("_tags".to_owned()));
    }
    let mut unknown = all.len() - found;
    for absent in &structure.absent {
        let Some((_, value)) = all.iter().find(|(name, _)| *name == absent.name) else { continue };
        unknown -= 1;
        if !absent.ignorable && *value != absent.default {
            return Err(EncodeErrorKind::FieldNotInVersion(absent.name.to_string()));
        }
    }
    if unknown == 0 {
        return Ok(());
    }
    let known = |name: &Arc<str>, names: &mut Vec<Arc<str>>| {
        // A name given twice counts as unknown the second time.
        let first = !names.contains(name);
        names.push(name.clone());
        first
    };
    let mut names = Vec::new();
    let stray = all.iter().find(|(name, _)| {
        !known(name, &mut names)
            || !structure.names.contains(name) && !structure.absent.iter().any(|absent| absent.name == *name)
    });
    Err(EncodeErrorKind::UnknownField(stray.map(|(name, _)| name.to_string()).unwrap_or_default()))
}

/// Unknown tagged fields by ascending tag, none given twice.
#[inline(never)]
fn sorted_tags(tags: &[(u32, Vec<u8>)]) -> Result<Vec<(u32, &[u8])>, EncodeErrorKind> {
    let mut tags: Vec<(u32, &[u8])> = tags.iter().map(|(tag, payload)| (*tag, payload.as_slice())).collect();
    tags.sort_by_key(|&(tag, _)| tag);
    match tags.iter().zip(tags.iter().skip(1)).find(|(one, other)| one.0 == other.0) {
        Some((twice, _)) => Err(EncodeErrorKind::Tag(twice.0)),
        None => Ok(tags),
    }
}

/// A place in a decoded tree, small enough to be passed in registers.
#[derive(Clone, Copy)]
struct Place<'a> {
    view: &'a View<'a>,
    /// Number of the node. An element of an array of fixed-size elements has none: there it is the offset past
    /// [`Place::NO_NODE`], which is above the number of any node.
    at: u64,
}

impl<'a> Place<'a> {
    const NO_NODE: u64 = 1 << 32;

    #[inline(always)]
    fn node(self) -> Option<&'a Node> {
        self.view.tree().nodes().get(usize::try_from(self.at).ok()?)
    }

    #[inline(always)]
    fn bytes_of(self, node: &Node) -> Option<&'a [u8]> {
        self.view.bytes().get(node.start as usize..node.end as usize)
    }

    /// Its bytes, if it is a leaf.
    #[inline(always)]
    fn leaf(self) -> Option<&'a [u8]> {
        self.bytes_of(self.node().filter(|node| node.kind == NodeKind::Leaf)?)
    }

    #[inline(always)]
    fn fixed(self, fixed: Fixed) -> Option<&'a [u8]> {
        match self.at.checked_sub(Place::NO_NODE) {
            None => self.leaf(),
            Some(offset) => self.view.bytes().get(usize::try_from(offset).ok()?..)?.get(..fixed.size().into()),
        }
    }

    /// The nodes directly below.
    #[inline(always)]
    fn children(self) -> Places<'a> {
        let upto = self.node().map_or(0, |node| node.next.into());
        Places { view: self.view, next: self.at + 1, upto, size: 0 }
    }
}

/// A walk over the children of a node or over the elements of an array.
#[derive(Clone)]
struct Places<'a> {
    view: &'a View<'a>,
    /// The next place.
    next: u64,
    /// Where it ends.
    upto: u64,
    /// Size of elements that have no node; 0 for nodes.
    size: u64,
}

impl<'a> Iterator for Places<'a> {
    type Item = Place<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Place<'a>> {
        if self.next >= self.upto {
            return None;
        }
        let place = Place { view: self.view, at: self.next };
        self.next = if self.size == 0 { place.node()?.next.into() } else { self.next + self.size };
        Some(place)
    }
}

impl<'a> Values<'a> for Place<'a> {
    /// The children from the next one on.
    type Fields = Places<'a>;
    type Elements = Places<'a>;

    fn as_written(self, layout: &Layout, structure: &StructLayout) -> Option<&'a [u8]> {
        let node = self.node().filter(|node| node.kind == NodeKind::Struct)?;
        // The marker of a nullable struct stands before its first field, and has been written.
        let field = (node.field != Node::NO_FIELD && !node.element).then(|| layout.field(node.field));
        let marked = field.is_some_and(|field| field.wire.nullable());
        let start = if marked { node.start + 1 } else { node.start };
        if !std::ptr::eq(self.view.layout(), layout) {
            return None;
        }
        let unchanged = Unchanged { layout, nodes: self.view.tree().nodes(), bytes: self.view.bytes() };
        let number = u32::try_from(self.at).ok()?;
        let (_, end) = match layout.flexible() {
            true => unchanged.structures::<true>(structure, number, start, 1)?,
            false => unchanged.structures::<false>(structure, number, start, 1)?,
        };
        self.view.bytes().get(start as usize..end as usize)
    }

    #[inline(always)]
    fn is_null(self) -> bool {
        self.node().is_some_and(|node| node.kind == NodeKind::Null)
    }

    #[inline(always)]
    fn integer(self, fixed: Fixed) -> Option<i64> {
        integer_in(self.fixed(fixed)?, fixed)
    }

    fn float_bits(self) -> Option<u64> {
        self.fixed(Fixed::Float64)?.try_into().ok().map(u64::from_be_bytes)
    }

    fn uuid(self) -> Option<[u8; 16]> {
        self.fixed(Fixed::Uuid)?.try_into().ok()
    }

    #[inline(always)]
    fn text(self, compact: bool) -> Option<&'a [u8]> {
        content_in(self.leaf()?, compact, 2)
    }

    #[inline(always)]
    fn octets(self, compact: bool) -> Option<&'a [u8]> {
        content_in(self.leaf()?, compact, 4)
    }

    #[inline(always)]
    fn elements(self, compact: bool, element: Element) -> Option<(usize, Self::Elements)> {
        let node = self.node().filter(|node| matches!(node.kind, NodeKind::Array | NodeKind::Leaf))?;
        let count = count_in(self.bytes_of(node)?, compact)?;
        let Element::Fixed(fixed) = element else { return Some((count, self.children())) };
        // They are the last of its bytes.
        let (size, upto) = (u64::from(fixed.size()), Place::NO_NODE + u64::from(node.end));
        Some((count, Places { view: self.view, next: upto.saturating_sub(count as u64 * size), upto, size }))
    }

    #[inline(always)]
    fn fields(self, layout: &Layout) -> Option<Self::Fields> {
        // Types are taken from the layout at hand, so it has to be the one that the tree was decoded with.
        let decoded_with = std::ptr::eq(self.view.layout(), layout);
        (decoded_with && self.node()?.kind == NodeKind::Struct).then(|| self.children())
    }

    #[inline(always)]
    fn field(children: &mut Self::Fields, _: &Field) -> Option<Self> {
        children.next()
    }

    fn tagged(children: &mut Self::Fields, layout: &Layout, structure: &StructLayout) -> Vec<Option<Self>> {
        // The tag section is the only child left.
        let nodes = children.clone().flat_map(Place::children);
        tagged_in(layout, structure, nodes.filter_map(|place| Some((place.node()?.field, place))))
    }

    #[inline(always)]
    fn finish(self, _: Self::Fields, _: &StructLayout) -> Result<(), EncodeErrorKind> {
        Ok(())
    }

    #[inline(always)]
    fn unknown_tags(self, children: &Self::Fields) -> Result<Vec<(u32, &'a [u8])>, EncodeErrorKind> {
        // Whatever follows the untagged fields is the tag section.
        match u32::try_from(self.at) {
            Ok(number) if children.next < children.upto => Ok(self.view.node(number).unknown_tags()),
            _ => Ok(Vec::new()),
        }
    }
}

/// Finds out whether the input, as a tree has it, is what would be written: each length, count and marker is in its usual form
/// and leads to where the nodes end, and there are no tags.
#[derive(Clone, Copy)]
struct Unchanged<'a> {
    layout: &'a Layout,
    nodes: &'a [Node],
    bytes: &'a [u8],
}

/// Number of the next node and offset of the next byte; `None` where something would be written otherwise.
type Next = Option<(u32, u32)>;

impl Unchanged<'_> {
    #[inline(always)]
    fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get(number as usize)
    }

    #[inline(always)]
    fn bytes(&self, start: u32, end: u32) -> Option<&[u8]> {
        self.bytes.get(start as usize..end as usize)
    }

    /// So many structs in a row, the node of the first with this number, its first field at this offset. Most of their strings
    /// are compact, or most are not.
    fn structures<const COMPACT: bool>(
        &self,
        structure: &StructLayout,
        mut number: u32,
        mut at: u32,
        count: u32,
    ) -> Next {
        let Unchanged { nodes, bytes, .. } = *self;
        for _ in 0..count {
            let node = nodes.get(number as usize)?;
            number += 1;
            for step in &structure.steps {
                match *step {
                    Step::CompactString { .. } if COMPACT => {
                        // The length + 1, which is also the size with the byte it stands in.
                        if let (Some(node), Some(&size)) = (nodes.get(number as usize), bytes.get(at as usize))
                            && node.end == at.wrapping_add(u32::from(size))
                            && matches!(size, 1..0x80)
                        {
                            (number, at) = (number + 1, node.end);
                            continue;
                        }
                    }
                    Step::Run { first, count, size, bools } => {
                        let (next, end) = (number + u32::from(count), at.wrapping_add(size));
                        let last = nodes.get(next as usize - 1)?;
                        if last.end != end || !self.bools_are_usual(bools, at, structure, first, count) {
                            return None;
                        }
                        (number, at) = (next, end);
                        continue;
                    }
                    Step::PlainString { .. } if !COMPACT => {
                        let length = bytes.get(at as usize..).and_then(<[u8]>::first_chunk);
                        if let (Some(node), Some(&length)) = (nodes.get(number as usize), length)
                            && node.end == at.wrapping_add(2 + u32::from(u16::from_be_bytes(length)))
                            && node.kind == NodeKind::Leaf
                        {
                            (number, at) = (number + 1, node.end);
                            continue;
                        }
                    }
                    _ => {}
                }
                (number, at) = self.step::<COMPACT>(*step, number, at)?;
            }
            if structure.flexible {
                if bytes.get(at as usize) != Some(&0) {
                    return None;
                }
                at += 1;
            }
            if node.end != at {
                return None;
            }
        }
        Some((number, at))
    }

    /// A step that takes longer.
    fn step<const COMPACT: bool>(&self, step: Step, number: u32, at: u32) -> Next {
        match step {
            Step::CompactString { nullable, .. } => self.octets(number, at, true, nullable, 0),
            Step::Field { field, wire } => self.value::<COMPACT>(field, wire, number, at),
            Step::PlainString { nullable, .. } => self.plain_string(number, at, nullable),
            Step::Run { .. } => None,
        }
    }

    #[inline(always)]
    fn bools_are_usual(&self, bools: Bools, at: u32, structure: &StructLayout, first: u16, count: u16) -> bool {
        // Near the end of the input they are looked at one by one.
        self.bytes.get(at as usize..).is_some_and(|bytes| bools.are_usual(bytes))
            || self.each_is_usual(at, structure.run.get(first.into()..usize::from(first) + usize::from(count)))
    }

    #[inline(never)]
    fn each_is_usual(&self, at: u32, fields: Option<&[RunField]>) -> bool {
        let is_usual =
            |field: &RunField| self.bytes.get(at as usize + field.start as usize).is_some_and(|&byte| byte <= 1);
        fields.is_some_and(|fields| fields.iter().filter(|field| field.fixed == Fixed::Bool).all(is_usual))
    }

    #[inline(always)]
    fn compact_string(&self, number: u32, at: u32, nullable: bool) -> Next {
        let node = self.node(number)?;
        match self.bytes.get(at as usize) {
            Some(&size @ 1..0x80) if node.end == at.wrapping_add(u32::from(size)) => Some((number + 1, node.end)),
            _ => self.octets(number, at, true, nullable, 0),
        }
    }

    #[inline(always)]
    fn plain_string(&self, number: u32, at: u32, nullable: bool) -> Next {
        let node = self.node(number)?;
        match self.bytes.get(at as usize..).and_then(<[u8]>::first_chunk) {
            Some(&[high @ 0..0x80, low])
                if node.end == at.wrapping_add(2 + u32::from(u16::from_be_bytes([high, low]))) =>
            {
                Some((number + 1, node.end))
            }
            _ => self.octets(number, at, false, nullable, 2),
        }
    }

    /// A string, bytes or a null; a length that is not compact takes `plain` bytes.
    #[inline(never)]
    fn octets(&self, number: u32, at: u32, compact: bool, nullable: bool, plain: usize) -> Next {
        let node = self.node(number).filter(|node| node.start == at)?;
        let bytes = self.bytes(at, node.end)?;
        let usual = match node.kind {
            NodeKind::Null => nullable && bytes == if compact { &[0] } else { [0xff; 4].get(..plain)? },
            NodeKind::Leaf if compact => {
                let (length, from) = self.usual_length(at)?;
                u64::from(from) + u64::from(length) == u64::from(node.end)
            }
            NodeKind::Leaf => {
                let length = bytes.get(..plain)?.iter().fold(0, |length, &byte| length << 8 | u64::from(byte));
                length + plain as u64 == bytes.len() as u64
            }
            _ => false,
        };
        usual.then_some((number + 1, node.end))
    }

    /// A compact length or count, and the offset after it, if it takes as few bytes as it can.
    #[inline(always)]
    fn usual_length(&self, at: u32) -> Option<(u32, u32)> {
        let mut reader = Reader::at(self.bytes, at as usize);
        let uvarint = reader.uvarint().ok().filter(|uvarint| !uvarint.not_minimal && !uvarint.high_bits)?;
        Some((uvarint.value.checked_sub(1)?, offset(reader.position())))
    }

    fn value<const COMPACT: bool>(&self, field: u16, wire: WireType, number: u32, at: u32) -> Next {
        match wire {
            WireType::Array { compact, nullable, element } => {
                self.array::<COMPACT>(number, at, compact, nullable, element)
            }
            WireType::Bytes { compact, nullable, .. } => self.octets(number, at, compact, nullable, 4),
            WireType::Struct { id, nullable } => {
                let node = self.node(number).filter(|node| node.start == at)?;
                let marker = self.bytes.get(at as usize);
                let from = match node.kind {
                    NodeKind::Null if nullable && self.layout.field(field).tag.is_none() => {
                        return (marker == Some(&0xff)).then_some((number + 1, at + 1));
                    }
                    NodeKind::Struct if nullable => (marker == Some(&1)).then_some(at + 1)?,
                    NodeKind::Struct => at,
                    _ => return None,
                };
                self.structures::<COMPACT>(self.layout.structure(id), number, from, 1)
            }
            // Strings and numbers have steps of their own.
            WireType::String { .. } | WireType::Fixed(_) => None,
        }
    }

    #[inline(always)]
    fn array<const COMPACT: bool>(
        &self,
        number: u32,
        at: u32,
        compact: bool,
        nullable: bool,
        element: Element,
    ) -> Next {
        let node = self.node(number).filter(|node| node.start == at)?;
        if node.kind == NodeKind::Null {
            return self.octets(number, at, compact, nullable, 4);
        }
        let (count, mut from) = if compact {
            self.usual_length(at)?
        } else {
            (u32::from_be_bytes(*self.bytes.get(at as usize..)?.first_chunk()?), at + 4)
        };
        let mut next = number + 1;
        match element {
            Element::Struct(id) => {
                (next, from) = self.structures::<COMPACT>(self.layout.structure(id), next, from, count)?;
            }
            Element::String if compact => {
                for _ in 0..count {
                    (next, from) = self.compact_string(next, from, false)?;
                }
            }
            Element::String => {
                for _ in 0..count {
                    (next, from) = self.plain_string(next, from, false)?;
                }
            }
            Element::Bytes => {
                for _ in 0..count {
                    (next, from) = self.octets(next, from, compact, false, 4)?;
                }
            }
            Element::Fixed(fixed) => {
                let elements = self.bytes(from, node.end)?;
                let usual = fixed != Fixed::Bool || elements.iter().all(|&byte| byte <= 1);
                if !usual || elements.len() as u64 != u64::from(count) * u64::from(fixed.size()) {
                    return None;
                }
                from = node.end;
            }
        }
        (node.next == next && node.end == from).then_some((next, from))
    }
}
