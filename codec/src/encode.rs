//! Layout and a source of values to bytes. From a value every length, count and number is written anew, so that a round trip
//! proves something. A tree without anomalies is copied: decoding has found each byte of it to be as it would be written.

use crate::error::{EncodeError, EncodeErrorKind, Unwinding};
use crate::layout::{Element, Field, Fixed, Layout, StructLayout, WireType};
use crate::tree::{NodeRef, StructValue, Value, View};
use crate::wire::{Writer, Written};
use std::borrow::Cow;
use std::sync::Arc;

/// What can be encoded: a node of a decoded tree, or an owned value.
pub trait Source<'a>: Copy {
    /// Encodes it after what `out` holds. On an error `out` is as it was.
    fn encode_into(self, layout: &Layout, out: &mut Vec<u8>) -> Result<(), EncodeError>;
}

impl<'a> Source<'a> for &'a Value {
    fn encode_into(self, layout: &Layout, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        Encoder::run(layout, out, |encoder, at| encoder.structure(at, layout.root(), self))
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
    Encoder::apart(layout, |encoder| encoder.value(0, field.wire, field.tag.is_some(), value))
        .map_err(Unwinding::into_error)
}

/// The offset that writing has come to is handed from call to call rather than kept here, so that it stays in a register.
pub(crate) struct Encoder<'l> {
    pub(crate) layout: &'l Layout,
    pub(crate) out: Writer,
    /// An error was given to code of the caller's, which is to hand it on.
    failed: bool,
}

impl<'l> Encoder<'l> {
    /// Lets `write` write after what `out` holds. On an error `out` is as it was.
    pub(crate) fn run(
        layout: &'l Layout,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Encoder<'l>, usize) -> Written,
    ) -> Result<(), EncodeError> {
        let before = out.len();
        let mut encoder = Encoder { layout, out: Writer::new(std::mem::take(out)), failed: false };
        let written = write(&mut encoder, before).and_then(|end| encoder.unless_failed(end));
        *out = encoder.out.into_bytes(*written.as_ref().unwrap_or(&before));
        written.map(|_| ()).map_err(Unwinding::into_error)
    }

    /// What `write` writes from offset 0 on, alone.
    pub(crate) fn apart(
        layout: &'l Layout,
        write: impl FnOnce(&mut Encoder<'l>) -> Written,
    ) -> Result<Vec<u8>, Unwinding> {
        let mut encoder = Encoder { layout, out: Writer::default(), failed: false };
        let end = write(&mut encoder).and_then(|end| encoder.unless_failed(end))?;
        Ok(encoder.out.into_bytes(end))
    }

    /// Notes an error that code of the caller's is given, and may keep to itself.
    #[cold]
    pub(crate) fn failed(&mut self, error: Unwinding) -> Unwinding {
        self.failed = true;
        error
    }

    fn unless_failed(&self, end: usize) -> Written {
        match self.failed {
            true => Err(EncodeErrorKind::Text("an error was passed over".to_owned()).into()),
            false => Ok(end),
        }
    }

    #[inline(always)]
    fn structure(&mut self, mut at: usize, structure: &'l StructLayout, value: &Value) -> Written {
        let Value::Struct(value) = value else { return Err(wrong_type("struct")) };
        // Values are mostly in layout order, with the layout's own names.
        let due = structure.names.iter().zip(&structure.wires);
        let mut in_order = 0;
        for ((name, &wire), (own, value)) in due.zip(&value.fields) {
            if !Arc::ptr_eq(own, name) {
                break;
            }
            in_order += 1;
            at = self.value(at, wire, false, value).map_err(|error| error.in_field(name))?;
        }
        // No more than those: then it has no tagged fields either.
        let all = in_order == structure.fields.len() && in_order == value.fields.len();
        if !all || !value.tags.is_empty() {
            return self.rest(at, structure, value, in_order);
        }
        Ok(if structure.flexible { self.out.array(at, [0]) } else { at })
    }

    /// What follows the first fields of a struct, which were in order.
    #[inline(never)]
    fn rest(&mut self, mut at: usize, structure: &'l StructLayout, value: &StructValue, in_order: usize) -> Written {
        let mut fields = Fields { all: &value.fields, next: in_order, found: in_order };
        for (name, &wire) in structure.names.iter().zip(&structure.wires).skip(in_order) {
            let written = match fields.named(name) {
                Some(value) => self.value(at, wire, false, value),
                None => self.missing(at, structure, name),
            };
            at = written.map_err(|error| error.in_field(name))?;
        }
        if structure.flexible {
            at = self.tag_section(at, structure, value, &mut fields)?;
        }
        check_strays(value, fields.found, structure)?;
        Ok(at)
    }

    /// An untagged field that the value does not have.
    #[cold]
    #[inline(never)]
    fn missing(&mut self, at: usize, structure: &'l StructLayout, name: &Arc<str>) -> Written {
        let layout = self.layout;
        let mut fields = structure.fields.iter().map(|&number| layout.field(number));
        match fields.find(|field| Arc::ptr_eq(&field.name, name)) {
            Some(field) => self.default(at, field),
            None => unreachable!("names are those of the fields"),
        }
    }

    /// The default of a field.
    #[cold]
    #[inline(never)]
    pub(crate) fn default(&mut self, at: usize, field: &'l Field) -> Written {
        self.value(at, field.wire, false, &field.default)
    }

    #[inline(never)]
    fn tag_section<'a>(
        &mut self,
        at: usize,
        structure: &'l StructLayout,
        value: &'a StructValue,
        fields: &mut Fields<'a>,
    ) -> Written {
        let layout = self.layout;
        let mut tags: Vec<(u32, Cow<'_, [u8]>)> = Vec::new();
        for field in structure.tagged.iter().map(|&number| layout.field(number)) {
            let Some(value) = fields.named(&field.name) else { continue };
            let payload = Encoder::apart(layout, |encoder| encoder.value(0, field.wire, true, value))
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
        self.out.tags(at, tags.len(), tags.iter().map(|(tag, payload)| (*tag, &**payload)))
    }

    /// A value of any type, or null; a struct has another marker where its field is `tagged`. What is commonest is written
    /// in place.
    #[inline(always)]
    pub(crate) fn value(&mut self, at: usize, wire: WireType, tagged: bool, value: &Value) -> Written {
        match (wire, value) {
            (WireType::String { compact, .. }, Value::String(text)) => self.text(at, compact, text.as_bytes()),
            (WireType::Fixed(fixed), &Value::Integer(value)) => self.integer(at, fixed, value),
            (WireType::Fixed(Fixed::Bool), &Value::Bool(value)) => Ok(self.out.array(at, [value.into()])),
            _ => self.other_value(at, wire, tagged, value),
        }
    }

    #[inline(never)]
    fn other_value(&mut self, mut at: usize, wire: WireType, tagged: bool, value: &Value) -> Written {
        match (wire, value) {
            (wire, Value::Null) => self.null(at, wire, tagged),
            (WireType::Fixed(Fixed::Float64), Value::Float(value)) => Ok(self.out.array(at, value.0.to_be_bytes())),
            (WireType::Fixed(Fixed::Uuid), Value::Uuid(uuid)) => Ok(self.out.array(at, *uuid)),
            (WireType::Fixed(fixed), &Value::Bool(value)) => self.integer(at, fixed, value.into()),
            // Text that is not UTF-8.
            (WireType::String { compact, .. }, Value::Bytes(text)) => self.text(at, compact, text),
            (WireType::Bytes { compact, .. }, Value::Bytes(bytes)) => self.octets(at, compact, bytes),
            (WireType::Struct { id, nullable }, value) => {
                if nullable {
                    // 1 in both forms: the int8 marker, and the uvarint of a tagged field (KIP-893).
                    at = self.out.array(at, [1]);
                }
                self.structure(at, self.layout.structure(id), value)
            }
            (WireType::Array { compact, element, .. }, Value::Array(elements)) => {
                at = self.length(at, compact, elements.len())?;
                if let Element::Struct(id) = element {
                    let structure = self.layout.structure(id);
                    for (index, value) in elements.iter().enumerate() {
                        let written = match value {
                            Value::Null => Err(EncodeErrorKind::NullNotAllowed.into()),
                            value => self.structure(at, structure, value),
                        };
                        at = written.map_err(|error| error.in_element(index))?;
                    }
                    return Ok(at);
                }
                let wire = element.wire(compact);
                for (index, value) in elements.iter().enumerate() {
                    at = self.value(at, wire, false, value).map_err(|error| error.in_element(index))?;
                }
                Ok(at)
            }
            (wire, _) => Err(wrong_type(wire.name())),
        }
    }

    #[inline(never)]
    pub(crate) fn null(&mut self, at: usize, wire: WireType, tagged: bool) -> Written {
        if !wire.nullable() {
            return Err(EncodeErrorKind::NullNotAllowed.into());
        }
        Ok(match wire {
            WireType::String { compact: false, .. } => self.out.array(at, [0xff; 2]),
            WireType::Bytes { compact: false, .. } | WireType::Array { compact: false, .. } => {
                self.out.array(at, [0xff; 4])
            }
            WireType::Struct { .. } if !tagged => self.out.array(at, [0xff]),
            _ => self.out.array(at, [0]),
        })
    }

    #[inline(always)]
    pub(crate) fn text(&mut self, at: usize, compact: bool, text: &[u8]) -> Written {
        if compact { self.out.text::<true>(at, text) } else { self.out.text::<false>(at, text) }
    }

    pub(crate) fn octets(&mut self, at: usize, compact: bool, octets: &[u8]) -> Written {
        if compact { self.out.octets::<true>(at, octets) } else { self.out.octets::<false>(at, octets) }
    }

    #[inline(always)]
    pub(crate) fn length(&mut self, at: usize, compact: bool, length: usize) -> Written {
        if compact { self.out.length::<true>(at, length) } else { self.out.length::<false>(at, length) }
    }

    /// A bool or an integer.
    #[inline(always)]
    pub(crate) fn integer(&mut self, at: usize, fixed: Fixed, value: i64) -> Written {
        macro_rules! integer {
            ($type:ty) => {
                match <$type>::try_from(value) {
                    Ok(value) => return Ok(self.out.array(at, value.to_be_bytes())),
                    Err(_) => {}
                }
            };
        }
        match fixed {
            Fixed::Bool => match value {
                0 | 1 => return Ok(self.out.array(at, [(value == 1).into()])),
                _ => {}
            },
            Fixed::Int8 => integer!(i8),
            Fixed::Int16 => integer!(i16),
            Fixed::Uint16 => integer!(u16),
            Fixed::Int32 => integer!(i32),
            Fixed::Uint32 => integer!(u32),
            Fixed::Int64 => return Ok(self.out.array(at, value.to_be_bytes())),
            Fixed::Float64 | Fixed::Uuid => return Err(wrong_type(fixed.name())),
        }
        Err(EncodeErrorKind::OutOfRange(fixed.name()).into())
    }
}

#[cold]
#[inline(never)]
pub(crate) fn wrong_type(wanted: &'static str) -> Unwinding {
    EncodeErrorKind::Type(wanted).into()
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
        if !absent.may_lack(value) {
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
