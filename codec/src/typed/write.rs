//! A layout as a `Serializer`: straight to bytes where the fields of a struct come in the layout's order.

use crate::encode::{Encoder, wrong_type};
use crate::error::{EncodeError, EncodeErrorKind, Unwinding};
use crate::layout::{Due, Field, Fixed, Layout, StructLayout, WireType};
use crate::tree::{Float64, Value, parse_uuid, untyped};
use crate::wire::Written;
use serde::ser::{self, Impossible, Serialize};
use std::fmt;
use std::hint::cold_path;

/// Writes a value of a type of the caller's as a message.
pub fn serialize<T: Serialize + ?Sized>(layout: &Layout, value: &T) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    serialize_into(layout, value, &mut out)?;
    Ok(out)
}

/// The same after what `out` holds. On an error `out` is as it was.
///
/// A field that the value lacks has its default; one that the version lacks is dropped where the definition says that it may
/// be, or where it is at its default. Quickest where fields stand in the order of the definition.
pub fn serialize_into<T: Serialize + ?Sized>(layout: &Layout, value: &T, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let wire = WireType::Struct { id: 0, nullable: false };
    Encoder::run(layout, out, |encoder, at| value.serialize(To { encoder, at, wire, tagged: false }))
}

impl fmt::Display for Unwinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

impl std::error::Error for Unwinding {}

impl ser::Error for Unwinding {
    fn custom<T: fmt::Display>(message: T) -> Unwinding {
        EncodeErrorKind::Text(message.to_string()).into()
    }
}

/// Where one value is to be written, and as what. The offset goes in and comes out by value, as in the [`Encoder`].
struct To<'e, 'l> {
    encoder: &'e mut Encoder<'l>,
    at: usize,
    wire: WireType,
    /// Whether it is that of a tagged field.
    tagged: bool,
}

impl<'e, 'l> To<'e, 'l> {
    /// A scalar, text or null.
    #[inline(never)]
    fn value(self, value: &Value) -> Written {
        self.encoder.value(self.at, self.wire, self.tagged, value)
    }

    #[cold]
    #[inline(never)]
    fn wrong_type(&self) -> Unwinding {
        wrong_type(self.wire.name())
    }

    #[cold]
    #[inline(never)]
    fn uuid_text(self, text: &str) -> Written {
        match (self.wire, parse_uuid(text)) {
            (WireType::Fixed(Fixed::Uuid), Some(uuid)) => self.value(&Value::Uuid(uuid)),
            (WireType::Fixed(Fixed::Uuid), None) => {
                Err(EncodeErrorKind::Text(format!("{text:?} is not a uuid")).into())
            }
            _ => Err(self.wrong_type()),
        }
    }

    /// An integer of whatever type, which may be another than the field's.
    #[inline(never)]
    fn integer(self, value: impl TryInto<i64>) -> Written {
        match (value.try_into(), self.wire) {
            (Ok(value), WireType::Fixed(fixed)) => self.encoder.integer(self.at, fixed, value),
            (Err(_), WireType::Fixed(fixed)) => Err(EncodeErrorKind::OutOfRange(fixed.name()).into()),
            _ => Err(self.wrong_type()),
        }
    }

    #[inline(always)]
    fn structure(self) -> Result<Fields<'e, 'l>, Unwinding> {
        let WireType::Struct { id, nullable } = self.wire else { return Err(self.wrong_type()) };
        // 1 in both forms of the marker (KIP-893).
        let at = if nullable { self.encoder.out.array(self.at, [1]) } else { self.at };
        let structure = self.encoder.layout.structure(id);
        Ok(Fields { encoder: self.encoder, structure, progress: Progress { at, due: structure.due.iter(), odd: None } })
    }

    #[inline(always)]
    fn sequence(self, count: Option<usize>) -> Result<Sequence<'e, 'l>, Unwinding> {
        let (compact, of) = match self.wire {
            WireType::Array { compact, element, .. } => (compact, Of::Elements(element.wire(compact))),
            WireType::Bytes { compact, .. } => (compact, Of::Octets),
            WireType::Fixed(Fixed::Uuid) => (false, Of::Uuid),
            _ => return Err(self.wrong_type()),
        };
        let expected = count.unwrap_or_default();
        let at = match of {
            Of::Uuid => self.at,
            Of::Elements(_) | Of::Octets => self.encoder.length(self.at, compact, expected)?,
        };
        Ok(Sequence { encoder: self.encoder, compact, of, start: self.at, at, expected, count: 0 })
    }
}

/// Integers of Rust, mostly for a field of that very type.
macro_rules! serialize_integers {
    ($($method:ident: $integer:ty = $fixed:ident),*) => {$(
        #[inline(always)]
        fn $method(self, value: $integer) -> Written {
            match self.wire {
                WireType::Fixed(Fixed::$fixed) => Ok(self.encoder.out.array(self.at, value.to_be_bytes())),
                _ => self.integer(value),
            }
        }
    )*};
}

impl<'e, 'l> ser::Serializer for To<'e, 'l> {
    type Ok = usize;
    type Error = Unwinding;
    type SerializeSeq = Sequence<'e, 'l>;
    type SerializeTuple = Sequence<'e, 'l>;
    type SerializeTupleStruct = Sequence<'e, 'l>;
    type SerializeTupleVariant = Impossible<usize, Unwinding>;
    type SerializeMap = Entries<'e, 'l>;
    type SerializeStruct = Fields<'e, 'l>;
    type SerializeStructVariant = Impossible<usize, Unwinding>;

    #[inline(always)]
    fn serialize_bool(self, value: bool) -> Written {
        match self.wire {
            WireType::Fixed(Fixed::Bool) => Ok(self.encoder.out.array(self.at, [value.into()])),
            _ => Err(self.wrong_type()),
        }
    }

    serialize_integers!(serialize_i8: i8 = Int8, serialize_i16: i16 = Int16, serialize_i32: i32 = Int32);
    serialize_integers!(serialize_i64: i64 = Int64, serialize_u16: u16 = Uint16, serialize_u32: u32 = Uint32);

    fn serialize_u8(self, value: u8) -> Written {
        self.integer(value)
    }

    fn serialize_u64(self, value: u64) -> Written {
        self.integer(value)
    }

    fn serialize_f32(self, value: f32) -> Written {
        self.value(&Value::Float(Float64::from(f64::from(value))))
    }

    fn serialize_f64(self, value: f64) -> Written {
        self.value(&Value::Float(Float64::from(value)))
    }

    fn serialize_char(self, value: char) -> Written {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline(always)]
    fn serialize_str(self, value: &str) -> Written {
        match self.wire {
            WireType::String { compact, .. } => self.encoder.text(self.at, compact, value.as_bytes()),
            _ => self.uuid_text(value),
        }
    }

    fn serialize_bytes(self, value: &[u8]) -> Written {
        match (self.wire, <[u8; 16]>::try_from(value)) {
            (WireType::Bytes { compact, .. }, _) => self.encoder.octets(self.at, compact, value),
            // Text that is not UTF-8.
            (WireType::String { compact, .. }, _) => self.encoder.text(self.at, compact, value),
            (WireType::Fixed(Fixed::Uuid), Ok(uuid)) => self.value(&Value::Uuid(uuid)),
            _ => Err(self.wrong_type()),
        }
    }

    #[inline(always)]
    fn serialize_none(self) -> Written {
        self.encoder.null(self.at, self.wire, self.tagged)
    }

    #[inline(always)]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Written {
        Err(self.wrong_type())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Written {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Written {
        Err(self.wrong_type())
    }

    fn serialize_seq(self, count: Option<usize>) -> Result<Sequence<'e, 'l>, Unwinding> {
        self.sequence(count)
    }

    fn serialize_tuple(self, count: usize) -> Result<Sequence<'e, 'l>, Unwinding> {
        self.sequence(Some(count))
    }

    fn serialize_tuple_struct(self, _: &'static str, count: usize) -> Result<Sequence<'e, 'l>, Unwinding> {
        self.sequence(Some(count))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<usize, Unwinding>, Unwinding> {
        Err(self.wrong_type())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'e, 'l>, Unwinding> {
        Ok(Entries { fields: self.structure()?, key: None })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields<'e, 'l>, Unwinding> {
        self.structure()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<usize, Unwinding>, Unwinding> {
        Err(self.wrong_type())
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// What a sequence of values becomes.
#[derive(Clone, Copy)]
enum Of {
    Elements(WireType),
    Octets,
    Uuid,
}

struct Sequence<'e, 'l> {
    encoder: &'e mut Encoder<'l>,
    compact: bool,
    of: Of,
    /// Where the count stands.
    start: usize,
    at: usize,
    /// The count that stands there.
    expected: usize,
    count: usize,
}

impl Sequence<'_, '_> {
    #[inline(always)]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwinding> {
        let index = self.count;
        self.count += 1;
        let written = match self.of {
            Of::Elements(wire) => value.serialize(To { encoder: self.encoder, at: self.at, wire, tagged: false }),
            Of::Octets | Of::Uuid => octet(self.encoder, self.at, value),
        };
        self.at = written.map_err(|error| self.encoder.failed(error.in_element(index)))?;
        Ok(())
    }

    #[inline(always)]
    fn finish(self) -> Written {
        match self.of {
            Of::Elements(_) | Of::Octets if self.count == self.expected => Ok(self.at),
            _ => self.count_again(),
        }
    }

    /// The count was not known before, or was not told right.
    #[inline(never)]
    fn count_again(self) -> Written {
        match self.of {
            Of::Uuid if self.count == 16 => return Ok(self.at),
            Of::Uuid => return Err(wrong_type("uuid")),
            Of::Elements(_) | Of::Octets => {}
        }
        let before = Encoder::apart(self.encoder.layout, |encoder| encoder.length(0, self.compact, self.expected))?;
        let elements = self.encoder.out.written(self.start + before.len(), self.at).to_vec();
        let at = self.encoder.length(self.start, self.compact, self.count)?;
        Ok(self.encoder.out.slice(at, &elements))
    }
}

/// A byte, which the protocol has no number type for: the lower half of a wider one.
#[inline(never)]
fn octet<T: Serialize + ?Sized>(encoder: &mut Encoder<'_>, at: usize, value: &T) -> Written {
    let end = value.serialize(To { encoder, at, wire: WireType::Fixed(Fixed::Uint16), tagged: false })?;
    match encoder.out.written(at, end) {
        &[0, byte] => Ok(encoder.out.array(at, [byte])),
        _ => Err(EncodeErrorKind::OutOfRange("byte").into()),
    }
}

/// serde's three kinds of sequence are one here.
macro_rules! serialize_elements {
    ($($kind:ident by $method:ident),*) => {$(
        impl ser::$kind for Sequence<'_, '_> {
            type Ok = usize;
            type Error = Unwinding;

            #[inline(always)]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwinding> {
                self.element(value)
            }

            #[inline(always)]
            fn end(self) -> Written {
                self.finish()
            }
        }
    )*};
}

serialize_elements!(SerializeSeq by serialize_element, SerializeTuple by serialize_element, SerializeTupleStruct by serialize_field);

/// The fields of a struct.
struct Fields<'e, 'l> {
    encoder: &'e mut Encoder<'l>,
    structure: &'l StructLayout,
    progress: Progress<'l>,
}

/// How far a struct is written.
#[derive(Default)]
struct Progress<'l> {
    at: usize,
    /// What is still due while fields come in their turn.
    due: std::slice::Iter<'l, Due>,
    odd: Option<Box<Odd>>,
}

/// Fields of a struct that have to wait.
#[derive(Default)]
struct Odd {
    /// Once an untagged field did not come in its turn: it and those after it by their place, none of which is due.
    scattered: Vec<Option<Vec<u8>>>,
    /// The tagged fields that came, by number, and their payloads.
    tagged: Vec<(u16, Vec<u8>)>,
}

impl<'l> Progress<'l> {
    /// A field that does not come in its turn, is tagged, or is not one of this version.
    // By value, so that the common case can be kept in registers.
    #[inline(never)]
    fn other_field<T: Serialize + ?Sized>(
        mut self,
        encoder: &mut Encoder<'l>,
        structure: &'l StructLayout,
        name: &str,
        value: &T,
    ) -> Result<Progress<'l>, Unwinding> {
        let layout = encoder.layout;
        // Those that the version may drop need not come.
        let skipped = self.due.clone().take_while(|due| due.wire.is_none() && *due.name != *name).count();
        if let Some((due, rest)) = self.due.as_slice().get(skipped..).and_then(<[Due]>::split_first)
            && *due.name == *name
        {
            self.due = rest.iter();
            if let Some(wire) = due.wire {
                let written = value.serialize(To { encoder, at: self.at, wire, tagged: false });
                self.at = written.map_err(|error| error.in_field(name))?;
            }
            return Ok(self);
        }
        let is_it = |&number: &u16| *layout.field(number).name == *name;
        let payload = |field: &'l Field| {
            let (wire, tagged) = (field.wire, field.tag.is_some());
            Encoder::apart(layout, |encoder| value.serialize(To { encoder, at: 0, wire, tagged }))
                .map_err(|error| error.in_field(name))
        };
        let unknown = || Err(EncodeErrorKind::UnknownField(name.to_owned()).into());
        if let Some(place) = structure.fields.iter().position(is_it) {
            let next = structure.fields.len() - self.due.clone().filter(|due| due.wire.is_some()).count();
            let odd = self.odd.get_or_insert_default();
            if odd.scattered.is_empty() {
                // The places before that are taken.
                odd.scattered.resize(next, Some(Vec::new()));
                odd.scattered.resize(structure.fields.len(), None);
                self.due = [].iter();
            }
            return match (structure.fields.get(place), odd.scattered.get_mut(place)) {
                (Some(&number), Some(written @ None)) => {
                    *written = Some(payload(layout.field(number))?);
                    Ok(self)
                }
                _ => unknown(),
            };
        }
        if let Some(&number) = structure.tagged.iter().find(|number| is_it(number)) {
            let odd = self.odd.get_or_insert_default();
            if odd.tagged.iter().any(|&(other, _)| other == number) {
                return unknown();
            }
            odd.tagged.push((number, payload(layout.field(number))?));
            return Ok(self);
        }
        let Some(absent) = structure.absent.iter().find(|absent| *absent.name == *name) else { return unknown() };
        if absent.ignorable {
            return Ok(self);
        }
        let custom = |error| <Unwinding as ser::Error>::custom::<serde_json::Error>(error).in_field(name);
        let value = serde_json::to_value(value).map_err(custom)?;
        if absent.may_lack(&untyped(&value)) {
            return Ok(self);
        }
        Err(EncodeErrorKind::FieldNotInVersion(name.to_owned()).into())
    }

    /// What follows the untagged fields that came in their turn.
    #[inline(never)]
    fn rest(self, encoder: &mut Encoder<'l>, structure: &'l StructLayout) -> Written {
        let (layout, mut at) = (encoder.layout, self.at);
        let Odd { scattered, mut tagged } = *self.odd.unwrap_or_default();
        let next = structure.fields.len() - self.due.clone().filter(|due| due.wire.is_some()).count();
        let waiting = structure.fields.iter().enumerate().skip(if scattered.is_empty() { next } else { 0 });
        for (place, &number) in waiting {
            at = match scattered.get(place) {
                Some(Some(bytes)) => encoder.out.slice(at, bytes),
                _ => encoder.default(at, layout.field(number))?,
            }
        }
        if !structure.flexible {
            return Ok(at);
        }
        tagged.retain(|(number, payload)| *payload != layout.field(*number).default_bytes);
        tagged.sort_by_key(|&(number, _)| layout.field(number).tag);
        let tags = tagged.iter().filter_map(|(number, payload)| Some((layout.field(*number).tag?, &**payload)));
        encoder.out.tags(at, tagged.len(), tags)
    }
}

impl Fields<'_, '_> {
    #[inline(always)]
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Unwinding> {
        let Some(due) = self.progress.due.as_slice().first().filter(|due| *due.name == *name) else {
            cold_path();
            let progress = std::mem::take(&mut self.progress);
            let progress = progress.other_field(self.encoder, self.structure, name, value);
            self.progress = progress.map_err(|error| self.encoder.failed(error))?;
            return Ok(());
        };
        self.progress.due.next();
        if let Some(wire) = due.wire {
            let written = value.serialize(To { encoder: self.encoder, at: self.progress.at, wire, tagged: false });
            self.progress.at = written.map_err(|error| self.encoder.failed(error.in_field(name)))?;
        }
        Ok(())
    }

    #[inline(always)]
    fn finish(self) -> Written {
        let Fields { encoder, structure, progress } = self;
        if progress.due.len() > 0 || progress.odd.is_some() {
            return progress.rest(encoder, structure);
        }
        Ok(if structure.flexible { encoder.out.array(progress.at, [0]) } else { progress.at })
    }
}

impl ser::SerializeStruct for Fields<'_, '_> {
    type Ok = usize;
    type Error = Unwinding;

    #[inline(always)]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Unwinding> {
        self.field(name, value)
    }

    #[inline(always)]
    fn end(self) -> Written {
        self.finish()
    }
}

/// The fields of a struct, as a map.
struct Entries<'e, 'l> {
    fields: Fields<'e, 'l>,
    /// The key whose value is still to come.
    key: Option<String>,
}

impl ser::SerializeMap for Entries<'_, '_> {
    type Ok = usize;
    type Error = Unwinding;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unwinding> {
        match serde_json::to_value(key) {
            Ok(serde_json::Value::String(name)) => self.key = Some(name),
            _ => return Err(self.fields.encoder.failed(wrong_type("field name"))),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwinding> {
        let Some(name) = self.key.take() else { return Err(self.fields.encoder.failed(wrong_type("field name"))) };
        self.fields.field(&name, value)
    }

    fn end(self) -> Written {
        self.fields.finish()
    }
}
