//! A layout as a `Serializer`: straight to bytes where the fields of a struct come in the layout's order.

use crate::encode::{Encoder, wrong_type};
use crate::error::{EncodeError, EncodeErrorKind};
use crate::layout::{Field, Fixed, Layout, StructLayout, WireType};
use crate::tree::{Float64, Unwinding, Value, parse_uuid, untyped};
use serde::ser::{self, Impossible, Serialize};
use std::fmt;

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
    Encoder::run(layout, out, |encoder| value.serialize(To { encoder, wire, field: None }))
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

/// Where one value is to be written, and as what.
struct To<'e, 'l> {
    encoder: &'e mut Encoder<'l>,
    wire: WireType,
    /// The field it is of; `None` for the message itself and for elements.
    field: Option<&'l Field>,
}

impl<'e, 'l> To<'e, 'l> {
    /// A scalar, text or null.
    #[inline]
    fn value(self, value: &Value) -> Result<(), Unwinding> {
        match (self.field, self.wire) {
            (_, WireType::Fixed(fixed)) => self.encoder.fixed(fixed, value),
            (Some(field), wire) => self.encoder.value(wire, field.tag.is_some(), value),
            (None, _) if *value == Value::Null => Err(EncodeErrorKind::NullNotAllowed.into()),
            (None, _) => Err(self.wrong_type()),
        }
    }

    #[cold]
    fn wrong_type(&self) -> Unwinding {
        wrong_type(self.wire.name())
    }

    #[inline]
    fn integer(self, value: impl TryInto<i64>) -> Result<(), Unwinding> {
        match (value.try_into(), self.wire) {
            (Ok(value), WireType::Fixed(fixed)) => self.encoder.integer(fixed, value),
            (Err(_), WireType::Fixed(fixed)) => Err(EncodeErrorKind::OutOfRange(fixed.name()).into()),
            _ => Err(self.wrong_type()),
        }
    }

    fn structure(self) -> Result<Fields<'e, 'l>, Unwinding> {
        let WireType::Struct { id, nullable } = self.wire else { return Err(self.wrong_type()) };
        if nullable {
            // 1 in both forms of the marker (KIP-893).
            self.encoder.out.array([1]);
        }
        let structure = self.encoder.layout.structure(id);
        let (scattered, tagged) = (Vec::new(), Vec::new());
        Ok(Fields { encoder: self.encoder, structure, next: 0, scattered, tagged, key: None })
    }

    fn sequence(self, count: Option<usize>) -> Result<Sequence<'e, 'l>, Unwinding> {
        let (compact, of) = match self.wire {
            WireType::Array { compact, element, .. } => (compact, Of::Elements(element.wire(compact))),
            WireType::Bytes { compact, .. } => (compact, Of::Octets),
            WireType::Fixed(Fixed::Uuid) => (false, Of::Uuid),
            _ => return Err(self.wrong_type()),
        };
        let start = self.encoder.out.position();
        let expected = count.unwrap_or_default();
        if !matches!(of, Of::Uuid) {
            self.encoder.length(compact, expected)?;
        }
        Ok(Sequence { encoder: self.encoder, compact, of, start, expected, count: 0 })
    }
}

impl<'e, 'l> ser::Serializer for To<'e, 'l> {
    type Ok = ();
    type Error = Unwinding;
    type SerializeSeq = Sequence<'e, 'l>;
    type SerializeTuple = Sequence<'e, 'l>;
    type SerializeTupleStruct = Sequence<'e, 'l>;
    type SerializeTupleVariant = Impossible<(), Unwinding>;
    type SerializeMap = Fields<'e, 'l>;
    type SerializeStruct = Fields<'e, 'l>;
    type SerializeStructVariant = Impossible<(), Unwinding>;

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<(), Unwinding> {
        match self.wire {
            WireType::Fixed(Fixed::Bool) => self.encoder.out.array([value.into()]),
            _ => return Err(self.wrong_type()),
        }
        Ok(())
    }

    #[inline]
    fn serialize_i8(self, value: i8) -> Result<(), Unwinding> {
        self.integer(value)
    }

    #[inline]
    fn serialize_i16(self, value: i16) -> Result<(), Unwinding> {
        self.integer(value)
    }

    #[inline]
    fn serialize_i32(self, value: i32) -> Result<(), Unwinding> {
        self.integer(value)
    }

    #[inline]
    fn serialize_i64(self, value: i64) -> Result<(), Unwinding> {
        self.integer(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), Unwinding> {
        self.integer(value)
    }

    fn serialize_u16(self, value: u16) -> Result<(), Unwinding> {
        self.integer(value)
    }

    fn serialize_u32(self, value: u32) -> Result<(), Unwinding> {
        self.integer(value)
    }

    fn serialize_u64(self, value: u64) -> Result<(), Unwinding> {
        self.integer(value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Unwinding> {
        self.value(&Value::Float(Float64::from(f64::from(value))))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Unwinding> {
        self.value(&Value::Float(Float64::from(value)))
    }

    fn serialize_char(self, value: char) -> Result<(), Unwinding> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Unwinding> {
        match self.wire {
            WireType::String { compact, .. } => self.encoder.text(compact, value.as_bytes()),
            WireType::Fixed(Fixed::Uuid) => match parse_uuid(value) {
                Some(uuid) => self.value(&Value::Uuid(uuid)),
                None => Err(EncodeErrorKind::Text(format!("{value:?} is not a uuid")).into()),
            },
            _ => Err(self.wrong_type()),
        }
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Unwinding> {
        match (self.wire, <[u8; 16]>::try_from(value)) {
            (WireType::Bytes { compact, .. }, _) => self.encoder.octets(compact, value),
            // Text that is not UTF-8.
            (WireType::String { compact, .. }, _) => self.encoder.text(compact, value),
            (WireType::Fixed(Fixed::Uuid), Ok(uuid)) => self.value(&Value::Uuid(uuid)),
            _ => Err(self.wrong_type()),
        }
    }

    #[inline]
    fn serialize_none(self) -> Result<(), Unwinding> {
        self.value(&Value::Null)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unwinding> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unwinding> {
        self.value(&Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Unwinding> {
        Err(self.wrong_type())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<(), Unwinding> {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Unwinding> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Unwinding> {
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
    ) -> Result<Impossible<(), Unwinding>, Unwinding> {
        Err(self.wrong_type())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields<'e, 'l>, Unwinding> {
        self.structure()
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
    ) -> Result<Impossible<(), Unwinding>, Unwinding> {
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
    /// The count that stands there.
    expected: usize,
    count: usize,
}

impl Sequence<'_, '_> {
    #[inline]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwinding> {
        let index = self.count;
        self.count += 1;
        let wire = match self.of {
            Of::Elements(wire) => wire,
            Of::Octets | Of::Uuid => return self.octet(value).map_err(|error| error.in_element(index)),
        };
        value.serialize(To { encoder: self.encoder, wire, field: None }).map_err(|error| error.in_element(index))
    }

    /// A byte, which the protocol has no number type for: the lower half of a wider one.
    fn octet<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwinding> {
        let at = self.encoder.out.position();
        value.serialize(To { encoder: self.encoder, wire: WireType::Fixed(Fixed::Uint16), field: None })?;
        let &[0, byte] = self.encoder.out.written(at) else {
            return Err(EncodeErrorKind::OutOfRange("byte").into());
        };
        self.encoder.out.back_to(at);
        self.encoder.out.array([byte]);
        Ok(())
    }

    fn finish(self) -> Result<(), Unwinding> {
        match self.of {
            Of::Uuid if self.count == 16 => return Ok(()),
            Of::Uuid => return Err(wrong_type("uuid")),
            Of::Elements(_) | Of::Octets if self.count == self.expected => return Ok(()),
            _ => {}
        }
        // The count was not known before, or was not told right.
        let before = Encoder::apart(self.encoder.layout, |encoder| encoder.length(self.compact, self.expected))?;
        let elements = self.encoder.out.written(self.start).to_vec();
        self.encoder.out.back_to(self.start);
        self.encoder.length(self.compact, self.count)?;
        self.encoder.out.slice(elements.get(before.len()..).unwrap_or_default());
        Ok(())
    }
}

/// serde's three kinds of sequence are one here.
macro_rules! serialize_elements {
    ($($kind:ident by $method:ident),*) => {$(
        impl ser::$kind for Sequence<'_, '_> {
            type Ok = ();
            type Error = Unwinding;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwinding> {
                self.element(value)
            }

            fn end(self) -> Result<(), Unwinding> {
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
    /// How many of the untagged fields are written.
    next: usize,
    /// Those after them, once one did not come in its turn, by their place.
    scattered: Vec<Option<Vec<u8>>>,
    /// The tagged fields that came, by number, and their payloads.
    tagged: Vec<(u16, Vec<u8>)>,
    /// The key of a map whose value is still to come.
    key: Option<String>,
}

impl<'l> Fields<'_, 'l> {
    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Unwinding> {
        if let Some(&number) = self.structure.fields.get(self.next)
            && let field = self.encoder.layout.field(number)
            && *field.name == *name
            && self.scattered.is_empty()
        {
            self.next += 1;
            return value
                .serialize(To { encoder: self.encoder, wire: field.wire, field: Some(field) })
                .map_err(|error| error.in_field(name));
        }
        self.other_field(name, value)
    }

    /// A field that does not come in its turn, is tagged, or is not one of this version.
    #[inline(never)]
    fn other_field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Unwinding> {
        let (layout, structure) = (self.encoder.layout, self.structure);
        let is_it = |&number: &u16| *layout.field(number).name == *name;
        let payload = |field: &'l Field| {
            let write =
                |encoder: &mut Encoder<'l>| value.serialize(To { encoder, wire: field.wire, field: Some(field) });
            Encoder::apart(layout, write).map_err(|error| error.in_field(name))
        };
        if let Some(place) = structure.fields.iter().position(is_it) {
            self.scattered.resize(structure.fields.len(), None);
            return match (structure.fields.get(place), self.scattered.get_mut(place)) {
                (Some(&number), Some(written @ None)) if place >= self.next => {
                    *written = Some(payload(layout.field(number))?);
                    Ok(())
                }
                _ => Err(EncodeErrorKind::UnknownField(name.to_owned()).into()),
            };
        }
        if let Some(&number) = structure.tagged.iter().find(|number| is_it(number)) {
            if self.tagged.iter().any(|&(other, _)| other == number) {
                return Err(EncodeErrorKind::UnknownField(name.to_owned()).into());
            }
            self.tagged.push((number, payload(layout.field(number))?));
            return Ok(());
        }
        let Some(absent) = structure.absent.iter().find(|absent| *absent.name == *name) else {
            return Err(EncodeErrorKind::UnknownField(name.to_owned()).into());
        };
        if absent.ignorable {
            return Ok(());
        }
        let value = serde_json::to_value(value).map_err(<Unwinding as ser::Error>::custom)?;
        // Bytes come as numbers.
        let none = absent.default == Value::Bytes(Vec::new()) && value.as_array().is_some_and(Vec::is_empty);
        if none || untyped(&value) == absent.default {
            return Ok(());
        }
        Err(EncodeErrorKind::FieldNotInVersion(name.to_owned()).into())
    }

    #[inline]
    fn finish(mut self) -> Result<(), Unwinding> {
        if self.next < self.structure.fields.len() {
            self.rest()?;
        }
        if !self.structure.flexible {
            return Ok(());
        }
        if self.tagged.is_empty() {
            self.encoder.out.array([0]);
            return Ok(());
        }
        self.tags()
    }

    /// The untagged fields after the first that did not come in its turn.
    #[inline(never)]
    fn rest(&mut self) -> Result<(), Unwinding> {
        for (place, &number) in self.structure.fields.iter().enumerate().skip(self.next) {
            match self.scattered.get(place) {
                Some(Some(bytes)) => self.encoder.out.slice(bytes),
                _ => self.encoder.default(self.encoder.layout.field(number))?,
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn tags(mut self) -> Result<(), Unwinding> {
        let layout = self.encoder.layout;
        self.tagged.retain(|(number, payload)| *payload != layout.field(*number).default_bytes);
        self.tagged.sort_by_key(|&(number, _)| layout.field(number).tag);
        let tags = self.tagged.iter().filter_map(|(number, payload)| Some((layout.field(*number).tag?, &**payload)));
        self.encoder.tags(self.tagged.len(), tags)
    }
}

impl ser::SerializeStruct for Fields<'_, '_> {
    type Ok = ();
    type Error = Unwinding;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Unwinding> {
        self.field(name, value)
    }

    #[inline]
    fn end(self) -> Result<(), Unwinding> {
        self.finish()
    }
}

impl ser::SerializeMap for Fields<'_, '_> {
    type Ok = ();
    type Error = Unwinding;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unwinding> {
        match serde_json::to_value(key) {
            Ok(serde_json::Value::String(name)) => self.key = Some(name),
            _ => return Err(wrong_type("field name")),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwinding> {
        let name = self.key.take().ok_or_else(|| wrong_type("field name"))?;
        self.field(&name, value)
    }

    fn end(self) -> Result<(), Unwinding> {
        self.finish()
    }
}
