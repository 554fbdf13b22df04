//! A decoded message as a `Deserializer`.

use crate::error::push_name;
use crate::layout::{Element, Fixed, StructLayout, WireType};
use crate::tree::{Node, NodeKind, Value, View, content_in, count_in, integer_in};
use serde::de::value::{BorrowedStrDeserializer, SeqDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt;

/// Reads a decoded message as a type of the caller's. A tagged field that is absent has its default; unknown tagged fields
/// are passed over; a uuid is 16 bytes.
pub fn deserialize<'de, T: Deserialize<'de>>(view: View<'de>) -> Result<T, DeserializeError> {
    T::deserialize(view)
}

/// A type that does not fit a message, or a value of it that does not fit the type.
// Boxed, since results that hold it are returned for every field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeserializeError(Box<(String, String)>);

impl DeserializeError {
    /// Path of the field, `Results[0].Configs[2].Value`; empty for the message itself.
    pub fn path(&self) -> &str {
        &self.0.0
    }

    /// What is wrong, in serde's words.
    pub fn message(&self) -> &str {
        &self.0.1
    }

    #[cold]
    #[inline(never)]
    fn in_field(mut self, name: &str) -> DeserializeError {
        let inner = std::mem::replace(&mut self.0.0, name.to_owned());
        match inner.starts_with('[') {
            true => self.0.0.push_str(&inner),
            false if inner.is_empty() => {}
            false => push_name(&mut self.0.0, &inner),
        }
        self
    }

    #[cold]
    #[inline(never)]
    fn in_element(self, index: usize) -> DeserializeError {
        self.in_field(&format!("[{index}]"))
    }
}

impl Error for DeserializeError {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> DeserializeError {
        DeserializeError(Box::new((String::new(), message.to_string())))
    }
}

impl fmt::Display for DeserializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path().is_empty() {
            write!(f, "{}: ", self.path())?;
        }
        f.write_str(self.message())
    }
}

impl std::error::Error for DeserializeError {}

#[cold]
#[inline(never)]
fn misread() -> DeserializeError {
    Error::custom("the tree is not of this message")
}

impl<'de> Deserializer<'de> for View<'de> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        let wire = WireType::Struct { id: 0, nullable: false };
        Part { view: &self, number: 0, wire }.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        let wire = WireType::Struct { id: 0, nullable: false };
        Part { view: &self, number: 0, wire }.deserialize_struct(name, fields, visitor)
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A node, small enough to be passed in registers, and its type.
#[derive(Clone, Copy)]
struct Part<'r, 'de> {
    view: &'r View<'de>,
    number: u32,
    wire: WireType,
}

impl<'r, 'de> Part<'r, 'de> {
    #[inline(always)]
    fn node(self) -> Result<&'de Node, DeserializeError> {
        self.view.tree().nodes().get(self.number as usize).ok_or_else(misread)
    }

    /// Its bytes; `None` where it is null.
    #[inline(always)]
    fn bytes(self) -> Result<Option<&'de [u8]>, DeserializeError> {
        let node = self.node()?;
        if node.kind == NodeKind::Null {
            return Ok(None);
        }
        let bytes = self.view.bytes().get(node.start as usize..node.end as usize);
        bytes.map(Some).ok_or_else(misread)
    }

    #[inline(always)]
    fn fields(self, id: u16) -> Result<FieldsOf<'r, 'de>, DeserializeError> {
        let structure = self.view.layout().structure(id);
        let next = self.number + 1;
        let upto = self.node()?.next;
        Ok(FieldsOf { view: self.view, structure, parent: self.number, next, upto, tagged: 0, value: Next::None })
    }

    /// Elements that have nodes.
    #[inline(always)]
    fn elements(self, bytes: &[u8], compact: bool, wire: WireType) -> Result<ElementsOf<'r, 'de>, DeserializeError> {
        let left = count_in(bytes, compact).ok_or_else(misread)?;
        let (next, upto) = (self.number + 1, self.node()?.next);
        Ok(ElementsOf { view: self.view, wire, next, upto, index: 0, left })
    }
}

/// What is the same for each part of a message, of whatever kind.
macro_rules! same_for_all_parts {
    () => {
        #[inline]
        fn deserialize_newtype_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            visitor: V,
        ) -> Result<V::Value, DeserializeError> {
            visitor.visit_newtype_struct(self)
        }

        #[inline]
        fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DeserializeError> {
            self.deserialize_seq(visitor)
        }

        fn is_human_readable(&self) -> bool {
            false
        }
    };
}

impl<'de> Deserializer<'de> for Part<'_, 'de> {
    type Error = DeserializeError;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        let Some(bytes) = self.bytes()? else { return visitor.visit_unit() };
        match self.wire {
            WireType::Fixed(fixed) => Scalar { bytes, fixed }.deserialize_any(visitor),
            WireType::String { compact, .. } => {
                let content = content_in(bytes, compact, 2).ok_or_else(misread)?;
                match std::str::from_utf8(content) {
                    Ok(text) => visitor.visit_borrowed_str(text),
                    Err(_) => visitor.visit_borrowed_bytes(content),
                }
            }
            WireType::Bytes { compact, .. } => {
                visitor.visit_borrowed_bytes(content_in(bytes, compact, 4).ok_or_else(misread)?)
            }
            WireType::Struct { id, .. } => visitor.visit_map(self.fields(id)?),
            WireType::Array { compact, element, .. } => match element {
                Element::Fixed(fixed) => {
                    // They are the last of its bytes.
                    let size = usize::from(fixed.size());
                    let count = count_in(bytes, compact).ok_or_else(misread)?;
                    let from =
                        count.checked_mul(size).and_then(|size| bytes.len().checked_sub(size)).ok_or_else(misread)?;
                    let elements = bytes.get(from..).unwrap_or_default().chunks_exact(size);
                    visitor.visit_seq(ScalarsOf { elements, fixed, index: 0 })
                }
                element => visitor.visit_seq(self.elements(bytes, compact, element.wire(compact))?),
            },
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.node()?.kind {
            NodeKind::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    /// Bytes and uuids are also read as sequences of bytes, since that is what `Vec<u8>` and `[u8; 16]` ask for.
    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match (self.wire, self.bytes()?) {
            (WireType::Bytes { compact, .. }, Some(bytes)) => {
                let content = content_in(bytes, compact, 4).ok_or_else(misread)?;
                visitor.visit_seq(SeqDeserializer::new(content.iter().copied()))
            }
            (WireType::Fixed(fixed), Some(bytes)) => Scalar { bytes, fixed }.deserialize_seq(visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    /// Fields are told by name, unless the type has them all and in this order: then that saves looking for each.
    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        let WireType::Struct { id, .. } = self.wire else { return self.deserialize_any(visitor) };
        let structure = self.view.layout().structure(id);
        let numbers = structure.fields.iter().chain(&structure.tagged);
        let names = numbers.map(|&number| &*self.view.layout().field(number).name);
        if self.node()?.kind != NodeKind::Null && names.eq(fields.iter().copied()) {
            return visitor.visit_seq(self.fields(id)?);
        }
        self.deserialize_any(visitor)
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_unit()
    }

    same_for_all_parts!();

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple_struct map enum identifier
    }
}

/// A value of a type of always the same size.
#[derive(Clone, Copy)]
struct Scalar<'de> {
    bytes: &'de [u8],
    fixed: Fixed,
}

impl<'de> Deserializer<'de> for Scalar<'de> {
    type Error = DeserializeError;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.fixed {
            Fixed::Float64 => {
                let bits = self.bytes.try_into().map_err(|_| misread())?;
                visitor.visit_f64(f64::from_be_bytes(bits))
            }
            Fixed::Uuid => visitor.visit_borrowed_bytes(self.bytes),
            Fixed::Bool => visitor.visit_bool(integer_in(self.bytes, Fixed::Bool).ok_or_else(misread)? != 0),
            fixed => visitor.visit_i64(integer_in(self.bytes, fixed).ok_or_else(misread)?),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.fixed {
            Fixed::Uuid => visitor.visit_seq(SeqDeserializer::new(self.bytes.iter().copied())),
            _ => self.deserialize_any(visitor),
        }
    }

    same_for_all_parts!();

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple_struct map struct enum identifier ignored_any
    }
}

/// Elements that have no nodes.
struct ScalarsOf<'de> {
    elements: std::slice::ChunksExact<'de, u8>,
    fixed: Fixed,
    index: usize,
}

impl<'de> SeqAccess<'de> for ScalarsOf<'de> {
    type Error = DeserializeError;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DeserializeError> {
        let Some(bytes) = self.elements.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        let element = Scalar { bytes, fixed: self.fixed };
        seed.deserialize(element).map(Some).map_err(|error| error.in_element(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.elements.len())
    }
}

/// Elements that have nodes.
struct ElementsOf<'r, 'de> {
    view: &'r View<'de>,
    wire: WireType,
    /// The next node.
    next: u32,
    /// The node after the last.
    upto: u32,
    index: usize,
    left: usize,
}

impl<'de> SeqAccess<'de> for ElementsOf<'_, 'de> {
    type Error = DeserializeError;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DeserializeError> {
        if self.next >= self.upto {
            return Ok(None);
        }
        let element = Part { view: self.view, number: self.next, wire: self.wire };
        let index = self.index;
        self.next = element.node()?.next;
        (self.index, self.left) = (index + 1, self.left.saturating_sub(1));
        seed.deserialize(element).map(Some).map_err(|error| error.in_element(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The fields of a struct: those that are there, then the tagged ones, each with its default where it is absent.
struct FieldsOf<'r, 'de> {
    view: &'r View<'de>,
    structure: &'de StructLayout,
    parent: u32,
    /// The next node.
    next: u32,
    /// The node after the last.
    upto: u32,
    /// Place of the next tagged field.
    tagged: usize,
    value: Next<'de>,
}

/// The value that is due.
#[derive(Clone, Copy)]
enum Next<'de> {
    None,
    /// Number of its node and of its field.
    Node(u32, u16),
    /// The default of a field.
    Default(u16, &'de Value),
}

impl<'de> FieldsOf<'_, 'de> {
    /// The next tagged field.
    #[inline(never)]
    fn advance_tagged(&mut self) -> Next<'de> {
        let Some(&field) = self.structure.tagged.get(self.tagged) else { return Next::None };
        self.tagged += 1;
        match self.view.node(self.parent).field_node(field) {
            Some(node) => Next::Node(node.place().1, field),
            None => Next::Default(field, &self.view.layout().field(field).default),
        }
    }

    /// Goes to the next field, and gives its number.
    #[inline(always)]
    fn advance(&mut self) -> Option<u16> {
        let there = (self.next < self.upto).then(|| self.view.tree().nodes().get(self.next as usize)).flatten();
        self.value = match there {
            Some(node) if node.kind != NodeKind::TagSection => {
                let number = std::mem::replace(&mut self.next, node.next);
                Next::Node(number, node.field)
            }
            _ => self.advance_tagged(),
        };
        match self.value {
            Next::Node(_, field) | Next::Default(field, _) => Some(field),
            Next::None => None,
        }
    }

    #[inline(always)]
    fn value<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DeserializeError> {
        let (field, value) = match self.value {
            Next::Node(number, field) => {
                let wire = self.view.layout().field(field).wire;
                (field, seed.deserialize(Part { view: self.view, number, wire }))
            }
            Next::Default(field, value) => (field, seed.deserialize(DefaultOf(value))),
            Next::None => return Err(misread()),
        };
        value.map_err(|error| error.in_field(&self.view.layout().field(field).name))
    }
}

impl<'de> MapAccess<'de> for FieldsOf<'_, 'de> {
    type Error = DeserializeError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DeserializeError> {
        let Some(field) = self.advance() else { return Ok(None) };
        let name = &*self.view.layout().field(field).name;
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DeserializeError> {
        self.value(seed)
    }
}

impl<'de> SeqAccess<'de> for FieldsOf<'_, 'de> {
    type Error = DeserializeError;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DeserializeError> {
        match self.advance() {
            Some(_) => self.value(seed).map(Some),
            None => Ok(None),
        }
    }
}

/// The default of a tagged field that is absent.
#[derive(Clone, Copy)]
struct DefaultOf<'de>(&'de Value);

impl<'de> Deserializer<'de> for DefaultOf<'de> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64((*value).into()),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Value::Uuid(uuid) => visitor.visit_borrowed_bytes(uuid),
            Value::Array(elements) => visitor.visit_seq(SeqDeserializer::new(elements.iter().map(DefaultOf))),
            Value::Struct(value) => {
                let fields = value.fields.iter().map(|(name, value)| (Name(name), DefaultOf(value)));
                visitor.visit_map(serde::de::value::MapDeserializer::new(fields))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if *self.0 == Value::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.0 {
            Value::Bytes(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied())),
            Value::Uuid(uuid) => visitor.visit_seq(SeqDeserializer::new(uuid.iter().copied())),
            _ => self.deserialize_any(visitor),
        }
    }

    same_for_all_parts!();

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple_struct map struct enum identifier ignored_any
    }
}

/// The name of a field in a default, borrowed like all names.
struct Name<'de>(&'de str);

impl<'de> serde::de::IntoDeserializer<'de, DeserializeError> for Name<'de> {
    type Deserializer = BorrowedStrDeserializer<'de, DeserializeError>;

    fn into_deserializer(self) -> BorrowedStrDeserializer<'de, DeserializeError> {
        BorrowedStrDeserializer::new(self.0)
    }
}

impl<'de> serde::de::IntoDeserializer<'de, DeserializeError> for DefaultOf<'de> {
    type Deserializer = DefaultOf<'de>;

    fn into_deserializer(self) -> DefaultOf<'de> {
        self
    }
}
