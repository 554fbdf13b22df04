//! Layout and a source of values to bytes. From a value every length, count and number is written anew, so that a round trip
//! proves something. A tree without anomalies is copied: decoding has found each byte of it to be as it would be written.

use crate::error::{EncodeError, EncodeErrorKind};
use crate::layout::{Element, Field, Fixed, Layout, StructLayout, WireType};
use crate::tree::{NodeRef, StructValue, Unwinding, Value, View};
use crate::wire::{Writer, array, prefixed};
use std::borrow::Cow;
use std::sync::Arc;

/// What can be encoded: a node of a decoded tree, or an owned value.
pub trait Source<'a>: Copy {
    /// Encodes it after what `out` holds. On an error `out` is as it was.
    fn encode_into(self, layout: &Layout, out: &mut Vec<u8>) -> Result<(), EncodeError>;
}

impl<'a> Source<'a> for &'a Value {
    fn encode_into(self, layout: &Layout, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        Encoder::run(layout, out, |encoder| encoder.structure(layout.root(), self))
    }
}

/// Only with the layout that it was decoded with: otherwise it is an error.
impl<'a> Source<'a> for NodeRef<'a> {
    fn encode_into(self, layout: &Layout, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let (view, number) = self.place();
        if !std::ptr::eq(view.layout(), layout) {
            return Err(wrong_type("struct").into_error());
        }
        let whole = number == 0 && !self.node().is_open();
        if whole && view.tree().anomaly_count() == 0 {
            out.extend_from_slice(self.bytes());
            return Ok(());
        }
        self.value().encode_into(layout, out)
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

/// The payload of a tagged field.
pub(crate) fn payload(layout: &Layout, field: &Field, value: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    Encoder::run(layout, &mut out, |encoder| encoder.value(field.wire, field.tag.is_some(), value))?;
    Ok(out)
}

pub(crate) struct Encoder<'l> {
    pub(crate) layout: &'l Layout,
    pub(crate) out: Writer,
}

impl<'l> Encoder<'l> {
    /// Lets `write` write after what `out` holds. On an error `out` is as it was.
    pub(crate) fn run(
        layout: &'l Layout,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Encoder<'l>) -> Result<(), Unwinding>,
    ) -> Result<(), EncodeError> {
        let before = out.len();
        let mut encoder = Encoder { layout, out: Writer::after(std::mem::take(out)) };
        let written = write(&mut encoder);
        *out = encoder.out.into_bytes();
        written.map_err(|error| {
            out.truncate(before);
            error.into_error()
        })
    }

    /// What `write` writes, alone.
    pub(crate) fn apart(
        layout: &'l Layout,
        write: impl FnOnce(&mut Encoder<'l>) -> Result<(), Unwinding>,
    ) -> Result<Vec<u8>, Unwinding> {
        let mut encoder = Encoder { layout, out: Writer::after(Vec::new()) };
        write(&mut encoder)?;
        Ok(encoder.out.into_bytes())
    }

    #[inline(always)]
    fn structure(&mut self, structure: &'l StructLayout, value: &Value) -> Result<(), Unwinding> {
        let Value::Struct(value) = value else { return Err(wrong_type("struct")) };
        // Values are mostly in layout order, with the layout's own names.
        let due = structure.names.iter().zip(&structure.wires);
        let mut in_order = 0;
        let (mut room, mut at) = self.out.room();
        for ((name, &wire), (own, value)) in due.zip(&value.fields) {
            if !Arc::ptr_eq(own, name) {
                break;
            }
            in_order += 1;
            if let Some(end) = quick(room, at, wire, value) {
                at = end;
                continue;
            }
            self.out.advance(at);
            self.value(wire, false, value).map_err(|error| error.in_field(name))?;
            (room, at) = self.out.room();
        }
        self.out.advance(at);
        // No more than those: then it has no tagged fields either.
        let all = in_order == structure.fields.len() && in_order == value.fields.len();
        if !all || !value.tags.is_empty() {
            return self.rest(structure, value, in_order);
        }
        if structure.flexible {
            self.out.array([0]);
        }
        Ok(())
    }

    /// What follows the first fields of a struct, which were in order.
    #[inline(never)]
    fn rest(&mut self, structure: &'l StructLayout, value: &StructValue, in_order: usize) -> Result<(), Unwinding> {
        let mut fields = Fields { all: &value.fields, next: in_order, found: in_order };
        for (name, &wire) in structure.names.iter().zip(&structure.wires).skip(in_order) {
            let written = match fields.named(name) {
                Some(value) => self.value(wire, false, value),
                None => self.missing(structure, name),
            };
            written.map_err(|error| error.in_field(name))?;
        }
        if structure.flexible {
            self.tag_section(structure, value, &mut fields)?;
        }
        check_strays(value, fields.found, structure)
    }

    /// An untagged field that the value does not have.
    #[cold]
    #[inline(never)]
    fn missing(&mut self, structure: &'l StructLayout, name: &Arc<str>) -> Result<(), Unwinding> {
        let layout = self.layout;
        let mut fields = structure.fields.iter().map(|&number| layout.field(number));
        match fields.find(|field| Arc::ptr_eq(&field.name, name)) {
            Some(field) => self.default(field),
            None => unreachable!("names are those of the fields"),
        }
    }

    /// The default of a field.
    #[cold]
    #[inline(never)]
    pub(crate) fn default(&mut self, field: &'l Field) -> Result<(), Unwinding> {
        self.value(field.wire, false, &field.default)
    }

    #[inline(never)]
    fn tag_section<'a>(
        &mut self,
        structure: &'l StructLayout,
        value: &'a StructValue,
        fields: &mut Fields<'a>,
    ) -> Result<(), Unwinding> {
        let layout = self.layout;
        let mut tags: Vec<(u32, Cow<'_, [u8]>)> = Vec::new();
        for field in structure.tagged.iter().map(|&number| layout.field(number)) {
            let Some(value) = fields.named(&field.name) else { continue };
            let payload = Encoder::apart(layout, |encoder| encoder.value(field.wire, true, value))
                .map_err(|error| error.in_field(&field.name))?;
            if payload != field.default_bytes {
                tags.extend(field.tag.map(|tag| (tag, payload.into())));
            }
        }
        if !value.tags.is_empty() {
            let unknown = sorted_tags(&value.tags)?;
            let declared = |tag| layout.tagged_place(structure, tag).is_some();
            if let Some(&(tag, _)) = unknown.iter().find(|&&(tag, _)| declared(tag)) {
                return Err(EncodeErrorKind::Tag(tag).into());
            }
            tags.extend(unknown.into_iter().map(|(tag, payload)| (tag, payload.into())));
            tags.sort_by_key(|&(tag, _)| tag);
        }
        self.tags(tags.len(), tags.iter().map(|(tag, payload)| (*tag, &**payload)))
    }

    /// A tag section: how many there are, and each by ascending tag with its payload.
    pub(crate) fn tags<'a>(
        &mut self,
        count: usize,
        tags: impl Iterator<Item = (u32, &'a [u8])>,
    ) -> Result<(), Unwinding> {
        self.out.uvarint(length(count)?);
        for (tag, payload) in tags {
            self.out.uvarint(tag);
            self.out.uvarint(length(payload.len())?);
            self.out.slice(payload);
        }
        Ok(())
    }

    /// A value of any type, or null; a struct has another marker where its field is `tagged`.
    #[inline(never)]
    pub(crate) fn value(&mut self, wire: WireType, tagged: bool, value: &Value) -> Result<(), Unwinding> {
        if let Value::Null = value {
            return self.null(wire, tagged);
        }
        match (wire, value) {
            (WireType::Fixed(fixed), value) => self.fixed(fixed, value),
            (WireType::String { compact, .. }, Value::String(text)) => self.text(compact, text.as_bytes()),
            // Text that is not UTF-8.
            (WireType::String { compact, .. }, Value::Bytes(text)) => self.text(compact, text),
            (WireType::Bytes { compact, .. }, Value::Bytes(bytes)) => self.octets(compact, bytes),
            (WireType::Struct { id, nullable }, value) => {
                if nullable {
                    // 1 in both forms: the int8 marker, and the uvarint of a tagged field (KIP-893).
                    self.out.array([1]);
                }
                self.structure(self.layout.structure(id), value)
            }
            (WireType::Array { compact, element, .. }, Value::Array(elements)) => {
                self.length(compact, elements.len())?;
                if let Element::Struct(id) = element {
                    let structure = self.layout.structure(id);
                    for (index, value) in elements.iter().enumerate() {
                        let written = match value {
                            Value::Null => Err(EncodeErrorKind::NullNotAllowed.into()),
                            value => self.structure(structure, value),
                        };
                        written.map_err(|error| error.in_element(index))?;
                    }
                    return Ok(());
                }
                let wire = element.wire(compact);
                for (index, value) in elements.iter().enumerate() {
                    self.value(wire, false, value).map_err(|error| error.in_element(index))?;
                }
                Ok(())
            }
            (WireType::String { .. } | WireType::Bytes { .. } | WireType::Array { .. }, _) => {
                Err(wrong_type(wire.name()))
            }
        }
    }

    fn null(&mut self, wire: WireType, tagged: bool) -> Result<(), Unwinding> {
        if !wire.nullable() {
            return Err(EncodeErrorKind::NullNotAllowed.into());
        }
        match wire {
            WireType::String { compact: false, .. } => self.out.array([0xff; 2]),
            WireType::Bytes { compact: false, .. } | WireType::Array { compact: false, .. } => {
                self.out.array([0xff; 4])
            }
            WireType::Struct { .. } if !tagged => self.out.array([0xff]),
            _ => self.out.array([0]),
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn text(&mut self, compact: bool, text: &[u8]) -> Result<(), Unwinding> {
        if compact {
            return self.octets(true, text);
        }
        let length = i16::try_from(text.len()).map_err(|_| EncodeErrorKind::StringTooLong(text.len()))?;
        self.out.prefixed(length.to_be_bytes(), text);
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn octets(&mut self, compact: bool, octets: &[u8]) -> Result<(), Unwinding> {
        match short_length(octets) {
            Some(length) if compact => self.out.prefixed([length], octets),
            _ => {
                self.length(compact, octets.len())?;
                self.out.slice(octets);
            }
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn length(&mut self, compact: bool, count: usize) -> Result<(), Unwinding> {
        let count = length(count)?;
        if compact {
            self.out.uvarint(count + 1)
        } else {
            self.out.array(count.to_be_bytes())
        }
        Ok(())
    }

    pub(crate) fn fixed(&mut self, fixed: Fixed, value: &Value) -> Result<(), Unwinding> {
        match (fixed, value) {
            (Fixed::Float64, Value::Float(value)) => self.out.array(value.0.to_be_bytes()),
            (Fixed::Uuid, Value::Uuid(uuid)) => self.out.array(*uuid),
            (_, &Value::Integer(value)) => return self.integer(fixed, value),
            (_, &Value::Bool(value)) => return self.integer(fixed, value.into()),
            _ => return Err(wrong_type(fixed.name())),
        }
        Ok(())
    }

    /// A bool or an integer.
    #[inline(always)]
    pub(crate) fn integer(&mut self, fixed: Fixed, value: i64) -> Result<(), Unwinding> {
        let out_of_range = || Unwinding::from(EncodeErrorKind::OutOfRange(fixed.name()));
        macro_rules! integer {
            ($type:ty) => {
                self.out.array(<$type>::try_from(value).map_err(|_| out_of_range())?.to_be_bytes())
            };
        }
        match fixed {
            Fixed::Bool => match value {
                0 | 1 => self.out.array([(value == 1).into()]),
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

/// The compact length of what has one of a single byte: how many bytes it has, and 1.
#[inline(always)]
fn short_length(octets: &[u8]) -> Option<u8> {
    u8::try_from(octets.len() + 1).ok().filter(|&length| length < 0x80)
}

/// Writes what is commonest and fits into `room`, from `at` on: the offset after it. `None` for all else.
#[inline(always)]
fn quick(room: &mut [u8], at: usize, wire: WireType, value: &Value) -> Option<usize> {
    match (wire, value) {
        (WireType::String { compact: true, .. }, Value::String(text)) => {
            prefixed(room, at, [short_length(text.as_bytes())?], text.as_bytes())
        }
        (WireType::String { compact: false, .. }, Value::String(text)) => {
            prefixed(room, at, i16::try_from(text.len()).ok()?.to_be_bytes(), text.as_bytes())
        }
        (WireType::Fixed(fixed), &Value::Integer(value)) => match fixed {
            Fixed::Int8 => array(room, at, i8::try_from(value).ok()?.to_be_bytes()),
            Fixed::Int16 => array(room, at, i16::try_from(value).ok()?.to_be_bytes()),
            Fixed::Int32 => array(room, at, i32::try_from(value).ok()?.to_be_bytes()),
            Fixed::Int64 => array(room, at, value.to_be_bytes()),
            _ => None,
        },
        (WireType::Fixed(Fixed::Bool), &Value::Bool(value)) => array(room, at, [value.into()]),
        _ => None,
    }
}

/// The fields of a struct's value: how far the walk is, and how many the layout asked for.
struct Fields<'a> {
    all: &'a [(Arc<str>, Value)],
    next: usize,
    found: usize,
}

impl<'a> Fields<'a> {
    /// The field of this name.
    fn named(&mut self, name: &Arc<str>) -> Option<&'a Value> {
        let at = match self.all.get(self.next) {
            Some((other, _)) if other == name => self.next,
            _ => self.all.iter().position(|(other, _)| other == name)?,
        };
        let (_, value) = self.all.get(at)?;
        self.next = at + 1;
        self.found += 1;
        Some(value)
    }
}

/// What is wrong with a struct that holds more than the layout asked for, if anything.
fn check_strays(value: &StructValue, found: usize, structure: &StructLayout) -> Result<(), Unwinding> {
    let all = &value.fields;
    if !structure.flexible && !value.tags.is_empty() {
        return Err(EncodeErrorKind::FieldNotInVersion("_tags".to_owned()).into());
    }
    let mut unknown = all.len() - found;
    for absent in &structure.absent {
        let Some((_, value)) = all.iter().find(|(name, _)| *name == absent.name) else { continue };
        unknown -= 1;
        if !absent.ignorable && *value != absent.default {
            return Err(EncodeErrorKind::FieldNotInVersion(absent.name.to_string()).into());
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
    Err(EncodeErrorKind::UnknownField(stray.map(|(name, _)| name.to_string()).unwrap_or_default()).into())
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
