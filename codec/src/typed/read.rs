//! A decoded message as a `Deserializer`.

use crate::layout::{Fixed, Layout, WireType};
use crate::tree::{Elements, NodeKind, NodeRef, Value, View, push_name};
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeserializeError {
    /// Path of the field, `Results[0].Configs[2].Value`; empty for the message itself.
    pub path: String,
    /// What is wrong, in serde's words.
    pub message: String,
}

impl DeserializeError {
    #[cold]
    fn within(self, mut outer: String) -> DeserializeError {
        if !self.path.is_empty() {
            if self.path.starts_with('[') { outer.push_str(&self.path) } else { push_name(&mut outer, &self.path) }
        }
        DeserializeError { path: outer, ..self }
    }
}

impl Error for DeserializeError {
    fn custom<T: fmt::Display>(message: T) -> DeserializeError {
        DeserializeError { path: String::new(), message: message.to_string() }
    }
}

impl fmt::Display for DeserializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

impl std::error::Error for DeserializeError {}

impl<'de> Deserializer<'de> for View<'de> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        self.root().deserialize_any(visitor)
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> Deserializer<'de> for NodeRef<'de> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if self.is_null() {
            return visitor.visit_unit();
        }
        let misread = || DeserializeError::custom("the tree is not of this message");
        match self.wire() {
            Some(WireType::Fixed(Fixed::Float64)) => visitor.visit_f64(self.float().ok_or_else(misread)?),
            Some(WireType::Fixed(Fixed::Bool)) => visitor.visit_bool(self.integer().ok_or_else(misread)? != 0),
            Some(WireType::Fixed(Fixed::Uuid)) => visitor.visit_borrowed_bytes(self.bytes()),
            Some(WireType::Fixed(_)) => visitor.visit_i64(self.integer().ok_or_else(misread)?),
            Some(WireType::String { .. }) => match self.text() {
                Some(text) => visitor.visit_borrowed_str(text),
                None => visitor.visit_borrowed_bytes(self.octets().ok_or_else(misread)?),
            },
            Some(WireType::Bytes { .. }) => visitor.visit_borrowed_bytes(self.octets().ok_or_else(misread)?),
            Some(WireType::Array { .. }) => {
                let left = self.count().unwrap_or_default();
                visitor.visit_seq(ElementsOf { elements: self.elements(), next: 0, left })
            }
            Some(WireType::Struct { .. }) => visitor.visit_map(FieldsOf::new(self)),
            None => Err(misread()),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_newtype_struct(self)
    }

    /// Bytes and uuids are also read as sequences of bytes, since that is what `Vec<u8>` and `[u8; 16]` ask for.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.wire() {
            Some(WireType::Bytes { .. }) => match self.octets() {
                Some(octets) => visitor.visit_seq(SeqDeserializer::new(octets.iter().copied())),
                None => self.deserialize_any(visitor),
            },
            Some(WireType::Fixed(Fixed::Uuid)) => visitor.visit_seq(SeqDeserializer::new(self.bytes().iter().copied())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DeserializeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple_struct map struct enum identifier
    }
}

struct ElementsOf<'de> {
    elements: Elements<'de>,
    next: usize,
    left: usize,
}

impl<'de> SeqAccess<'de> for ElementsOf<'de> {
    type Error = DeserializeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DeserializeError> {
        let Some(element) = self.elements.next() else { return Ok(None) };
        let index = self.next;
        (self.next, self.left) = (index + 1, self.left.saturating_sub(1));
        seed.deserialize(element).map(Some).map_err(|error| error.within(format!("[{index}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The fields of a struct: those that are there, then the tagged ones, each with its default where it is absent.
struct FieldsOf<'de> {
    parent: NodeRef<'de>,
    layout: &'de Layout,
    children: Elements<'de>,
    /// The tagged fields that are still to come.
    tagged: std::slice::Iter<'de, u16>,
    next: Option<(&'de str, Content<'de>)>,
}

#[derive(Clone, Copy)]
enum Content<'de> {
    Node(NodeRef<'de>),
    Default(&'de Value),
}

impl<'de> FieldsOf<'de> {
    fn new(parent: NodeRef<'de>) -> FieldsOf<'de> {
        let tagged = parent.structure().map(|structure| structure.tagged.iter()).unwrap_or_default();
        let (view, _) = parent.place();
        FieldsOf { parent, layout: view.layout(), children: parent.child_nodes(), tagged, next: None }
    }

    fn advance(&mut self) -> Option<(&'de str, Content<'de>)> {
        if let Some(child) = self.children.find(|child| child.node().kind != NodeKind::TagSection) {
            return Some((&child.layout_field()?.name, Content::Node(child)));
        }
        let number = *self.tagged.next()?;
        let field = self.layout.field(number);
        let content = self.parent.field_node(number).map_or(Content::Default(&field.default), Content::Node);
        Some((&field.name, content))
    }
}

impl<'de> MapAccess<'de> for FieldsOf<'de> {
    type Error = DeserializeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DeserializeError> {
        self.next = self.advance();
        match self.next {
            Some((name, _)) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DeserializeError> {
        let Some((name, content)) = self.next.take() else { return Err(Error::custom("a value before its key")) };
        match content {
            Content::Node(node) => seed.deserialize(node),
            Content::Default(value) => seed.deserialize(DefaultOf(value)),
        }
        .map_err(|error| error.within(name.to_owned()))
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
                let fields = value.fields.iter().map(|(name, value)| (&**name, DefaultOf(value)));
                visitor.visit_map(serde::de::value::MapDeserializer::new(fields))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if *self.0 == Value::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.0 {
            Value::Bytes(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied())),
            Value::Uuid(uuid) => visitor.visit_seq(SeqDeserializer::new(uuid.iter().copied())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DeserializeError> {
        self.deserialize_seq(visitor)
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> serde::de::IntoDeserializer<'de, DeserializeError> for DefaultOf<'de> {
    type Deserializer = DefaultOf<'de>;

    fn into_deserializer(self) -> DefaultOf<'de> {
        self
    }
}
