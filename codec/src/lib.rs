//! Reference codec of the Kafka protocol. A message definition is parsed once ([`MessageSpec`]), lowered once per
//! version ([`Layout`]), and two loops walk the layout: [`decode()`] gives a flat [`Tree`] of spans with every liberty
//! the bytes took as an [`Anomaly`], or with [`validate`] these alone; [`encode()`] writes bytes from a tree or a
//! [`Value`]. Structs of a user are read and written by serde, with an example in [`typed`]. A new API is a definition,
//! not code. There is no I/O here, and no peer is known.

pub mod decode;
pub mod encode;
mod error;
mod layout;
mod message;
pub mod mutant;
pub mod properties;
mod protocol;
mod spec;
mod tree;
pub mod typed;
mod version;
pub mod wire;

pub use decode::{Decoded, decode, decode_into, decode_prefix_into, validate};
pub use encode::{encode, encode_into, encode_view};
pub use error::{
    Anomaly, AnomalyKind, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, SpecError, SpecErrorKind,
    Unwinding,
};
pub use layout::{Element, Field, Fixed, Layout, StructLayout, WireType, empty_record_batch};
pub use message::{
    FRAME_SIZE_LIMIT, Frame, FrameAndRest, FrameLayout, UNSUPPORTED_VERSION, decode_frame, decode_message,
    encode_frame, header_version, response_version, split_frame,
};
pub use protocol::Protocol;
pub use spec::{FieldDefault, FieldSpec, FieldType, MessageKind, MessageSpec, StructSpec};
pub use tree::{
    AbsentFields, Anomalies, Elements, Float64, Node, NodeKind, NodeRef, PathStep, StructValue, Tree, Value, View, hex,
    parse_hex, parse_uuid, uuid_text,
};
pub use typed::{DeserializeError, deserialize, serialize, serialize_into};
pub use version::{ApiKey, ApiVersion, VersionRange, VersionRangeError};
