//! Layout and a source of values to bytes. Every length, count and number is written anew; only text, bytes and unknown
//! tags are copied, so that a round trip proves something.

use crate::error::{EncodeError, EncodeErrorKind};
use crate::layout::{Element, Field, Fixed, Layout, StructLayout, WireType};
use crate::tree::{Elements, NodeKind, NodeRef, Unwinding, Value, View};
use crate::wire::write_uvarint;
use std::sync::Arc;

/// Where encoded values come from: a decoded tree or an owned value.
pub trait Source<'a>: Copy {
    /// A walk over the fields of a struct, in layout order.
    type Fields;
    /// The elements of an array.
    type Elements: Iterator<Item = Self>;

    /// Whether it is null.
    fn is_null(self) -> bool;
    /// A bool or integer.
    fn integer(self) -> Option<i64>;
    /// A float64's bits.
    fn float_bits(self) -> Option<u64>;
    /// A uuid.
    fn uuid(self) -> Option<[u8; 16]>;
    /// Text.
    fn text(self) -> Option<&'a [u8]>;
    /// Bytes or records.
    fn octets(self) -> Option<&'a [u8]>;
    /// An array's count and elements.
    fn elements(self) -> Option<(usize, Self::Elements)>;
    /// A struct's fields.
    fn fields(self) -> Option<Self::Fields>;
    /// The next field of a walk, which is number `number` of the layout; `None` where it is missing.
    fn field(fields: &mut Self::Fields, number: u16, field: &Field) -> Option<Self>;
    /// After the walk: is there a field that the layout does not have and that may not be dropped?
    fn finish(self, fields: Self::Fields, structure: &StructLayout) -> Result<(), EncodeErrorKind>;
    /// Unknown tagged fields by ascending tag.
    fn unknown_tags(self) -> Result<Vec<(u32, &'a [u8])>, EncodeErrorKind>;
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
    let before = out.len();
    let mut encoder = Encoder { layout, out };
    encoder.structure(layout.root(), source).map_err(|error| {
        encoder.out.truncate(before);
        error.into_error()
    })
}

/// The payload of a tagged field.
pub(crate) fn payload(layout: &Layout, field: &Field, value: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    Encoder { layout, out: &mut out }.value(field, field.wire, value).map_err(Unwinding::into_error)?;
    Ok(out)
}

struct Encoder<'l, 'o> {
    layout: &'l Layout,
    out: &'o mut Vec<u8>,
}

impl<'l> Encoder<'l, '_> {
    fn structure<'a, S: Source<'a>>(&mut self, structure: &'l StructLayout, source: S) -> Result<(), Unwinding> {
        let mut fields = source.fields().ok_or(EncodeErrorKind::Type("struct"))?;
        for &number in &structure.fields {
            let field = self.layout.field(number);
            match S::field(&mut fields, number, field) {
                Some(value) => self.value(field, field.wire, value),
                None => self.value(field, field.wire, &field.default),
            }
            .map_err(|error| error.in_field(&field.name))?;
        }
        if structure.flexible {
            self.tag_section(structure, source, &mut fields)?;
        }
        Ok(source.finish(fields, structure)?)
    }

    fn tag_section<'a, S: Source<'a>>(
        &mut self,
        structure: &'l StructLayout,
        source: S,
        fields: &mut S::Fields,
    ) -> Result<(), Unwinding> {
        let mut tags: Vec<(u32, std::borrow::Cow<'_, [u8]>)> = Vec::new();
        for &number in &structure.tagged {
            let field = self.layout.field(number);
            let Some(value) = S::field(fields, number, field) else { continue };
            let mut payload = Vec::new();
            Encoder { layout: self.layout, out: &mut payload }
                .value(field, field.wire, value)
                .map_err(|error| error.in_field(&field.name))?;
            if payload != field.default_bytes {
                tags.extend(field.tag.map(|tag| (tag, payload.into())));
            }
        }
        let unknown = source.unknown_tags()?;
        if !unknown.is_empty() {
            let declared = |tag| structure.tagged.iter().any(|&number| self.layout.field(number).tag == Some(tag));
            if let Some(&(tag, _)) = unknown.iter().find(|&&(tag, _)| declared(tag)) {
                return Err(EncodeErrorKind::Tag(tag).into());
            }
            tags.extend(unknown.into_iter().map(|(tag, payload)| (tag, payload.into())));
            tags.sort_by_key(|&(tag, _)| tag);
        }
        write_uvarint(self.out, length(tags.len())?);
        for (tag, payload) in tags {
            write_uvarint(self.out, tag);
            write_uvarint(self.out, length(payload.len())?);
            self.out.extend_from_slice(&payload);
        }
        Ok(())
    }

    #[inline]
    fn value<'a, S: Source<'a>>(&mut self, field: &'l Field, wire: WireType, value: S) -> Result<(), Unwinding> {
        match wire {
            WireType::Fixed(fixed) => Ok(self.fixed(fixed, value)?),
            WireType::String { compact, nullable } => {
                if value.is_null() {
                    return Ok(self.null(compact, nullable, &[0xff; 2])?);
                }
                Ok(self.text(compact, value.text().ok_or(EncodeErrorKind::Type("string"))?)?)
            }
            WireType::Bytes { compact, nullable, .. } => {
                if value.is_null() {
                    return Ok(self.null(compact, nullable, &[0xff; 4])?);
                }
                Ok(self.octets(compact, value.octets().ok_or(EncodeErrorKind::Type("bytes"))?)?)
            }
            WireType::Struct { id, nullable } => {
                let tagged = field.tag.is_some();
                if value.is_null() {
                    return Ok(self.null(tagged, nullable, &[0xff])?);
                }
                if nullable {
                    // 1 in both forms: the int8 marker, and the uvarint of a tagged field (KIP-893).
                    self.out.push(1);
                }
                self.structure(self.layout.structure(id), value)
            }
            WireType::Array { compact, nullable, element } => {
                if value.is_null() {
                    return Ok(self.null(compact, nullable, &[0xff; 4])?);
                }
                let (count, elements) = value.elements().ok_or(EncodeErrorKind::Type("array"))?;
                self.length(compact, count)?;
                for (index, value) in elements.enumerate() {
                    self.element(compact, element, value).map_err(|error| error.in_element(index))?;
                }
                Ok(())
            }
        }
    }

    fn element<'a, S: Source<'a>>(&mut self, compact: bool, element: Element, value: S) -> Result<(), Unwinding> {
        if value.is_null() {
            return Err(EncodeErrorKind::NullNotAllowed.into());
        }
        match element {
            Element::Fixed(fixed) => Ok(self.fixed(fixed, value)?),
            Element::String => Ok(self.text(compact, value.text().ok_or(EncodeErrorKind::Type("string"))?)?),
            Element::Bytes => Ok(self.octets(compact, value.octets().ok_or(EncodeErrorKind::Type("bytes"))?)?),
            Element::Struct(id) => self.structure(self.layout.structure(id), value),
        }
    }

    fn null(&mut self, compact: bool, nullable: bool, plain: &[u8]) -> Result<(), EncodeErrorKind> {
        if !nullable {
            return Err(EncodeErrorKind::NullNotAllowed);
        }
        self.out.extend_from_slice(if compact { &[0] } else { plain });
        Ok(())
    }

    #[inline(always)]
    fn text(&mut self, compact: bool, text: &[u8]) -> Result<(), EncodeErrorKind> {
        if compact {
            self.length(true, text.len())?;
        } else {
            let length = i16::try_from(text.len()).map_err(|_| EncodeErrorKind::StringTooLong(text.len()))?;
            self.out.extend_from_slice(&length.to_be_bytes());
        }
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn octets(&mut self, compact: bool, octets: &[u8]) -> Result<(), EncodeErrorKind> {
        self.length(compact, octets.len())?;
        self.out.extend_from_slice(octets);
        Ok(())
    }

    #[inline(always)]
    fn length(&mut self, compact: bool, count: usize) -> Result<(), EncodeErrorKind> {
        let count = length(count)?;
        if compact {
            write_uvarint(self.out, count + 1);
        } else {
            self.out.extend_from_slice(&count.to_be_bytes());
        }
        Ok(())
    }

    #[inline(always)]
    fn fixed<'a, S: Source<'a>>(&mut self, fixed: Fixed, value: S) -> Result<(), EncodeErrorKind> {
        let wanted = EncodeErrorKind::Type(fixed.name());
        macro_rules! integer {
            ($type:ty) => {{
                let value = value.integer().ok_or(wanted)?;
                let value = <$type>::try_from(value).map_err(|_| EncodeErrorKind::OutOfRange(fixed.name()))?;
                self.out.extend_from_slice(&value.to_be_bytes())
            }};
        }
        match fixed {
            Fixed::Bool => match value.integer().ok_or(wanted)? {
                value @ (0 | 1) => self.out.push((value == 1).into()),
                _ => return Err(EncodeErrorKind::OutOfRange(fixed.name())),
            },
            Fixed::Int8 => integer!(i8),
            Fixed::Int16 => integer!(i16),
            Fixed::Uint16 => integer!(u16),
            Fixed::Int32 => integer!(i32),
            Fixed::Uint32 => integer!(u32),
            Fixed::Int64 => integer!(i64),
            Fixed::Float64 => self.out.extend_from_slice(&value.float_bits().ok_or(wanted)?.to_be_bytes()),
            Fixed::Uuid => self.out.extend_from_slice(&value.uuid().ok_or(wanted)?),
        }
        Ok(())
    }
}

/// A length or count: 2^31-1 at most.
#[inline(always)]
fn length(length: usize) -> Result<u32, EncodeErrorKind> {
    i32::try_from(length).map(i32::unsigned_abs).map_err(|_| EncodeErrorKind::TooLong(length))
}

impl<'a> Source<'a> for &'a Value {
    /// The fields of the value, how far the walk is, and how many of them the layout asked for.
    type Fields = (&'a [(Arc<str>, Value)], usize, usize);
    type Elements = std::slice::Iter<'a, Value>;

    fn is_null(self) -> bool {
        *self == Value::Null
    }

    fn integer(self) -> Option<i64> {
        match self {
            Value::Integer(value) => Some(*value),
            Value::Bool(value) => Some((*value).into()),
            _ => None,
        }
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

    fn text(self) -> Option<&'a [u8]> {
        match self {
            Value::String(text) => Some(text.as_bytes()),
            // Text that is not UTF-8.
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn octets(self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn elements(self) -> Option<(usize, Self::Elements)> {
        match self {
            Value::Array(elements) => Some((elements.len(), elements.iter())),
            _ => None,
        }
    }

    fn fields(self) -> Option<Self::Fields> {
        self.as_struct().map(|value| (value.fields.as_slice(), 0, 0))
    }

    fn field(fields: &mut Self::Fields, _number: u16, field: &Field) -> Option<Self> {
        let (all, next, found) = fields;
        // Values are mostly in layout order, with the layout's own names: then the next one is the one.
        let at = match all.get(*next) {
            Some((name, _)) if Arc::ptr_eq(name, &field.name) || *name == field.name => *next,
            _ => all.iter().position(|(name, _)| *name == field.name)?,
        };
        *next = at + 1;
        *found += 1;
        all.get(at).map(|(_, value)| value)
    }

    fn finish(self, (all, _, found): Self::Fields, structure: &StructLayout) -> Result<(), EncodeErrorKind> {
        if found == all.len() && (structure.flexible || self.as_struct().is_none_or(|value| value.tags.is_empty())) {
            return Ok(());
        }
        if !structure.flexible && self.as_struct().is_some_and(|value| !value.tags.is_empty()) {
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

    fn unknown_tags(self) -> Result<Vec<(u32, &'a [u8])>, EncodeErrorKind> {
        let Some(value) = self.as_struct() else { return Ok(Vec::new()) };
        let mut tags: Vec<(u32, &[u8])> = value.tags.iter().map(|(tag, payload)| (*tag, payload.as_slice())).collect();
        tags.sort_by_key(|&(tag, _)| tag);
        match tags.iter().zip(tags.iter().skip(1)).find(|(one, other)| one.0 == other.0) {
            Some((twice, _)) => Err(EncodeErrorKind::Tag(twice.0)),
            None => Ok(tags),
        }
    }
}

impl<'a> Source<'a> for NodeRef<'a> {
    /// The struct, and its children from the next one on.
    type Fields = (NodeRef<'a>, Elements<'a>);
    type Elements = Elements<'a>;

    fn is_null(self) -> bool {
        NodeRef::is_null(&self)
    }

    fn integer(self) -> Option<i64> {
        NodeRef::integer(&self)
    }

    fn float_bits(self) -> Option<u64> {
        self.bytes().try_into().ok().map(u64::from_be_bytes)
    }

    fn uuid(self) -> Option<[u8; 16]> {
        NodeRef::uuid(&self)
    }

    fn text(self) -> Option<&'a [u8]> {
        NodeRef::octets(&self)
    }

    fn octets(self) -> Option<&'a [u8]> {
        NodeRef::octets(&self)
    }

    fn elements(self) -> Option<(usize, Self::Elements)> {
        self.count().map(|count| (count, NodeRef::elements(&self)))
    }

    fn fields(self) -> Option<Self::Fields> {
        (self.node().kind == NodeKind::Struct).then(|| (self, self.child_nodes()))
    }

    fn field((structure, children): &mut Self::Fields, number: u16, field: &Field) -> Option<Self> {
        if field.tag.is_some() { structure.field_node(number) } else { children.next() }
    }

    fn finish(self, _: Self::Fields, _: &StructLayout) -> Result<(), EncodeErrorKind> {
        Ok(())
    }

    fn unknown_tags(self) -> Result<Vec<(u32, &'a [u8])>, EncodeErrorKind> {
        Ok(NodeRef::unknown_tags(&self))
    }
}
