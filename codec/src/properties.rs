//! The laws of the codec, called by tests, proptest and fuzz targets alike. Each panics with what broke when it does not
//! hold.

use crate::error::{AnomalyKind, DecodeError};
use crate::layout::{Element, Fixed, Layout, StructLayout, WireType};
use crate::tree::{AbsentFields, Anomalies, Float64, StructValue, Tree, Value};
use crate::{
    ApiKey, ApiVersion, MessageKind, Protocol, decode_frame, decode_into, encode, encode_frame, encode_view, hex,
    split_frame, validate,
};
use std::sync::Arc;

/// Nodes that a message of `input` bytes may have at most: one for the message, and for each byte the deepest chain of
/// structs that can start there. Memory is this times the size of a node, doubled where the vector grows.
pub fn most_nodes(layout: &Layout, input: usize) -> usize {
    1 + input * (1 + layout.structs().len())
}

/// Bytes decode without a panic, within the memory bound, and obey the round-trip laws.
pub fn decode_is_total(layout: &Layout, bytes: &[u8]) {
    let mut tree = Tree::new();
    let decoded = decode_into(layout, bytes, 0, &mut tree);
    assert!(
        tree.nodes().len() <= most_nodes(layout, bytes.len()),
        "{layout}: {} nodes for {} bytes",
        tree.nodes().len(),
        bytes.len()
    );
    assert!(tree.anomalies().len() <= Tree::ANOMALIES_KEPT && tree.anomaly_count() >= tree.anomalies().len());
    validating_says_the_same(layout, bytes, &decoded, &tree);
    let Ok(end) = decoded else { return };
    assert!(end <= bytes.len());
    let view = crate::View::new(layout, bytes, &tree);
    // Of a tag given twice one path leads to two nodes, and the last counts.
    // Such a tag is out of order, where another stands between.
    let may_be_twice = |kind| matches!(kind, AnomalyKind::TagRepeated | AnomalyKind::TagsUnordered);
    let twice = tree.anomalies().iter().any(|anomaly| may_be_twice(anomaly.kind));
    if tree.nodes().len() <= MOST_NODES_BY_PATH && !twice {
        paths_lead_to_their_nodes(view);
    }
    let value = view.value();
    // What was read has an encoding, whatever liberties were taken; only tags given twice are merged.
    let from_tree =
        encode_view(view).unwrap_or_else(|error| panic!("{layout}: a decoded tree does not encode: {error}"));
    let from_value =
        encode(layout, &value).unwrap_or_else(|error| panic!("{layout}: a decoded value does not encode: {error}"));
    assert_eq!(hex(&from_tree), hex(&from_value), "{layout}: tree and value encode differently");
    if tree.anomaly_count() == 0 {
        assert_eq!(hex(&from_tree), hex(bytes), "{layout}: canonical bytes changed in a round trip");
    }
    value_round_trips(layout, &value);
    changes_and_changes_back(layout, value, &from_value);
}

/// The same end or error, and the same anomalies, come of reading without a tree.
fn validating_says_the_same(layout: &Layout, bytes: &[u8], decoded: &Result<usize, DecodeError>, tree: &Tree) {
    let mut anomalies = Anomalies::new();
    let validated = validate(layout, bytes, 0, &mut anomalies);
    assert_eq!(&validated, decoded, "{layout}: validating and decoding differ");
    assert_eq!(anomalies.kept(), tree.anomalies(), "{layout}: validating finds other anomalies than decoding");
    assert_eq!((anomalies.count(), anomalies.is_valid()), (tree.anomaly_count(), tree.is_valid()), "{layout}");
}

/// Larger trees are not asked for each node by its path, which takes the square of their number.
const MOST_NODES_BY_PATH: usize = 64;

/// Each field and element is found again by its path.
fn paths_lead_to_their_nodes(view: crate::View) {
    let span = |node: crate::NodeRef| (node.node().start, node.node().end);
    view.walk(&mut |path, _, node| {
        if !path.contains("_tags") {
            assert_eq!(view.get(path).map(span), Some(span(node)), "{path} leads elsewhere");
        }
    });
}

/// Bytes do not come from a copy of the input: with one field changed others come out, changed back the same again.
fn changes_and_changes_back(layout: &Layout, mut value: Value, bytes: &[u8]) {
    if !flip_first_scalar(&mut value) {
        return;
    }
    let changed =
        encode(layout, &value).unwrap_or_else(|error| panic!("{layout}: a changed value does not encode: {error}"));
    assert_ne!(hex(&changed), hex(bytes), "{layout}: a changed field does not change the bytes");
    flip_first_scalar(&mut value);
    let again = encode(layout, &value).unwrap_or_else(|error| panic!("{layout}: {error}"));
    assert_eq!(hex(&again), hex(bytes), "{layout}: a field changed and changed back changes the bytes");
}

/// Flips the lowest bit of the first bool, integer or uuid; false where there is none.
fn flip_first_scalar(value: &mut Value) -> bool {
    match value {
        Value::Bool(value) => *value = !*value,
        Value::Integer(value) => *value ^= 1,
        Value::Uuid(uuid) => uuid.iter_mut().take(1).for_each(|byte| *byte ^= 1),
        Value::Array(elements) => return elements.iter_mut().any(flip_first_scalar),
        Value::Struct(value) => return value.fields.iter_mut().any(|(_, value)| flip_first_scalar(value)),
        Value::Null | Value::Float(_) | Value::String(_) | Value::Bytes(_) => return false,
    }
    true
}

/// What the input of a fuzz target names: kind (0 request, 1 response, 2 request header, 3 response header), API key as
/// int16, version; and the bytes after that. What names no message stands for one that exists; `None` where the bytes
/// are too few.
pub fn named_message<'i>(protocol: &Protocol, input: &'i [u8]) -> Option<(Arc<Layout>, &'i [u8])> {
    let [kind, high, low, version, rest @ ..] = input else { return None };
    let key = ApiKey(i16::from_be_bytes([*high, *low]));
    let spec = match kind % 4 {
        0 => protocol.api_by_key(key, MessageKind::Request),
        1 => protocol.api_by_key(key, MessageKind::Response),
        2 => protocol.message("RequestHeader"),
        _ => protocol.message("ResponseHeader"),
    };
    let some = || protocol.messages().nth(usize::from(*low) % protocol.messages().count().max(1));
    let spec = spec.or_else(some)?;
    let versions: Vec<ApiVersion> = spec.valid_versions.iter().collect();
    let version = versions.get(usize::from(*version) % versions.len().max(1))?;
    match protocol.layout(&spec.name, *version) {
        Ok(layout) => Some((layout, rest)),
        Err(error) => panic!("a bundled definition does not lower: {error}"),
    }
}

/// The fuzz target `decode`: a [`named_message`], and the bytes of it.
pub fn decode_any_is_total(protocol: &Protocol, input: &[u8]) {
    if let Some((layout, bytes)) = named_message(protocol, input) {
        decode_is_total(&layout, bytes);
    }
}

/// The fuzz target `roundtrip`: a [`named_message`], and the choices that [`arbitrary_value`] makes its value of. The
/// value has an encoding, comes back from it, and comes back from its JSON form.
pub fn any_value_round_trips(protocol: &Protocol, input: &[u8]) {
    let Some((layout, mut choices)) = named_message(protocol, input) else { return };
    let value = arbitrary_value(&layout, &mut |below| {
        // As many bytes as the number needs, so that a change of one byte changes one choice.
        let bytes = (u64::BITS - below.saturating_sub(1).leading_zeros()).div_ceil(8) as usize;
        let (taken, rest) = choices.split_at(bytes.min(choices.len()));
        choices = rest;
        taken.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)) % below.max(1)
    });
    if let Err(error) = encode(&layout, &value) {
        panic!("{layout}: an arbitrary value does not encode: {error}");
    }
    value_round_trips(&layout, &value);
    let json = value.to_json();
    let again = Value::from_json(&layout, &json, AbsentFields::Keep)
        .unwrap_or_else(|error| panic!("{layout}: a value's JSON form is not read: {error}: {json}"));
    // Which NaN it is has no JSON form, so the forms are compared.
    assert_eq!(again.to_json(), json, "{layout}: a value changed in its JSON form");
}

/// The fuzz target `frames`: the greatest size allowed as uint16, the size of the pieces, a stream of requests. Taken
/// apart as it comes in pieces, the stream gives the same frames as taken apart whole; the frames and what is left make up
/// the stream; and a frame that decodes without anomalies encodes to the same bytes.
pub fn frames_come_apart_alike(protocol: &Protocol, input: &[u8]) {
    let [high, low, piece, stream @ ..] = input else { return };
    let limit = u32::from(u16::from_be_bytes([*high, *low]));
    let (frames, left, error) = frames(stream, limit);
    assert_eq!(hex(&[frames.concat(), left.to_vec()].concat()), hex(stream), "frames and rest are not the stream");
    let (mut buffered, mut found, mut failed) = (Vec::new(), Vec::new(), None);
    for piece in stream.chunks(usize::from(*piece).max(1)) {
        if failed.is_some() {
            break;
        }
        buffered.extend_from_slice(piece);
        let (more, left, error) = self::frames(&buffered, limit);
        found.extend(more.iter().map(|frame| frame.to_vec()));
        failed = error;
        buffered = left.to_vec();
    }
    assert_eq!(found, frames, "other frames come out of pieces");
    assert_eq!(failed, error, "another error comes out of pieces");
    // Nothing more is read after an error.
    assert!(left.starts_with(&buffered), "something else is left of pieces");
    assert!(error.is_some() || left.len() == buffered.len(), "less is left of pieces");
    for frame in frames {
        assert!(frame.len() <= 4 + limit as usize, "a frame is over the limit");
        frame_is_total(protocol, frame);
    }
}

/// The frames at the start of a stream, what follows them, and why it is no frame where that is certain.
fn frames(mut stream: &[u8], limit: u32) -> (Vec<&[u8]>, &[u8], Option<DecodeError>) {
    let mut frames = Vec::new();
    loop {
        match split_frame(stream, limit) {
            Ok(Some((frame, rest))) => {
                frames.push(frame);
                stream = rest;
            }
            Ok(None) => return (frames, stream, None),
            Err(error) => return (frames, stream, Some(error)),
        }
    }
}

/// A frame is read as the request that it says it is, without a panic and, without anomalies, to the same bytes again.
fn frame_is_total(protocol: &Protocol, frame: &[u8]) {
    let Some([k0, k1, v0, v1]) = frame.get(4..).and_then(<[u8]>::first_chunk) else { return };
    let (key, version) = (i16::from_be_bytes([*k0, *k1]), ApiVersion(i16::from_be_bytes([*v0, *v1])));
    let Some(spec) = protocol.api_by_key(ApiKey(key), MessageKind::Request) else { return };
    let Ok(layout) = protocol.frame_layout(spec, version) else { return };
    let Ok(read) = decode_frame(&layout, frame) else { return };
    assert!(read.body_start <= read.end && read.end <= frame.len(), "{}: the spans of a frame", layout.body);
    let again = encode_frame(&layout, &read.header().value(), &read.body().value())
        .unwrap_or_else(|error| panic!("{}: a decoded frame does not encode: {error}", layout.body));
    if read.header.anomaly_count() + read.body.anomaly_count() == 0 {
        assert_eq!(hex(&again), hex(frame), "{}: a canonical frame changed in a round trip", layout.body);
    }
}

/// A value that encodes decodes to itself, without anomalies but those that values can hold: text that is not UTF-8,
/// long strings, reserved tags.
pub fn value_round_trips(layout: &Layout, value: &Value) {
    let Ok(bytes) = encode(layout, value) else { return };
    let mut tree = Tree::new();
    let end = decode_into(layout, &bytes, 0, &mut tree)
        .unwrap_or_else(|error| panic!("{layout}: encoded bytes do not decode: {error}: {}", hex(&bytes)));
    assert_eq!(end, bytes.len(), "{layout}: encoded bytes are left over: {}", hex(&bytes));
    for anomaly in tree.anomalies() {
        use AnomalyKind::{NotUtf8, StringLong, TagReserved};
        let held = matches!(anomaly.kind, NotUtf8 | StringLong | TagReserved);
        assert!(held, "{layout}: encoded bytes have an anomaly: {}: {}", anomaly.kind, hex(&bytes));
    }
    let view = crate::View::new(layout, &bytes, &tree);
    assert_eq!(view.value(), in_order(value), "{layout}: a value changed in a round trip: {}", hex(&bytes));
    let again = encode_view(view).unwrap_or_else(|error| panic!("{layout}: {error}"));
    assert_eq!(hex(&again), hex(&bytes), "{layout}: encoding a second time gives other bytes");
}

/// The same with unknown tags by ascending tag, which is how they are written in whatever order they are given.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Array(elements) => Value::Array(elements.iter().map(in_order).collect()),
        Value::Struct(StructValue { fields, tags }) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), in_order(value))).collect();
            let mut tags = tags.clone();
            tags.sort_by_key(|&(tag, _)| tag);
            Value::Struct(StructValue { fields, tags })
        }
        other => other.clone(),
    }
}

/// Clears the unknown tagged fields, which structs of Rust have no place for.
pub fn clear_unknown_tags(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(clear_unknown_tags),
        Value::Struct(value) => {
            value.tags.clear();
            value.fields.iter_mut().for_each(|(_, field)| clear_unknown_tags(field));
        }
        _ => {}
    }
}

/// A value of a layout made from a seed, always the same one.
pub fn seeded_value(layout: &Layout, mut seed: u64) -> Value {
    arbitrary_value(layout, &mut |below| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (seed >> 33) % below.max(1)
    })
}

/// A value of a layout made from choices: each call of `choose(n)` gives a number below `n`. Every value it makes has an
/// encoding; small and boundary values are frequent.
pub fn arbitrary_value(layout: &Layout, choose: &mut dyn FnMut(u64) -> u64) -> Value {
    Chooser { layout, choose }.structure(layout.root())
}

struct Chooser<'l, 'c> {
    layout: &'l Layout,
    choose: &'c mut dyn FnMut(u64) -> u64,
}

impl Chooser<'_, '_> {
    fn structure(&mut self, structure: &StructLayout) -> Value {
        let mut fields = Vec::new();
        for &number in structure.fields.iter().chain(&structure.tagged) {
            let field = self.layout.field(number);
            let default = field.tag.is_some() && (self.choose)(2) == 0;
            let value = if default { field.default.clone() } else { self.value(field.wire) };
            fields.push((field.name.clone(), value));
        }
        let mut tags = Vec::new();
        if structure.flexible {
            let declared = structure.tagged.iter().filter_map(|&number| self.layout.field(number).tag).max();
            let mut tag = declared.map_or(0, |tag| tag + 1);
            for _ in 0..(self.choose)(8).saturating_sub(5) {
                tag += u32::try_from((self.choose)(1 << 20)).unwrap_or(0);
                let size = (self.choose)(4);
                tags.push((tag, self.octets(size)));
                tag += 1;
            }
        }
        Value::Struct(StructValue { fields, tags })
    }

    fn value(&mut self, wire: WireType) -> Value {
        if wire.nullable() && (self.choose)(4) == 0 {
            return Value::Null;
        }
        match wire {
            WireType::Fixed(fixed) => self.fixed(fixed),
            WireType::String { .. } => Value::String(self.text()),
            WireType::Bytes { .. } => self.bytes(),
            WireType::Struct { id, .. } => self.structure(self.layout.structure(id)),
            WireType::Array { element, .. } => {
                let count = (self.choose)(4);
                Value::Array((0..count).map(|_| self.element(element)).collect())
            }
        }
    }

    fn element(&mut self, element: Element) -> Value {
        match element {
            Element::Fixed(fixed) => self.fixed(fixed),
            Element::String => Value::String(self.text()),
            Element::Bytes => self.bytes(),
            Element::Struct(id) => self.structure(self.layout.structure(id)),
        }
    }

    fn fixed(&mut self, fixed: Fixed) -> Value {
        let bits = u32::from(fixed.size()) * 8;
        match fixed {
            Fixed::Bool => Value::Bool((self.choose)(2) == 1),
            Fixed::Float64 => Value::Float(Float64((self.choose)(u64::MAX))),
            Fixed::Uuid => Value::Uuid(std::array::from_fn(|_| self.byte())),
            Fixed::Uint16 | Fixed::Uint32 => {
                let greatest = (1_i64 << bits) - 1;
                let value = [0, 1, greatest, i64::try_from((self.choose)(1 << bits)).unwrap_or(0)];
                Value::Integer(self.one_of(&value))
            }
            _ => {
                let (least, greatest) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
                let any = (self.choose)(u64::MAX).cast_signed() >> (64 - bits);
                Value::Integer(self.one_of(&[least, -1, 0, 1, greatest, any]))
            }
        }
    }

    fn one_of(&mut self, values: &[i64]) -> i64 {
        let index = usize::try_from((self.choose)(values.len() as u64)).unwrap_or(0);
        values.get(index).copied().unwrap_or(0)
    }

    fn text(&mut self) -> String {
        // Around where a compact length grows a byte, and mostly short.
        let length = match (self.choose)(16) {
            0 => 126 + (self.choose)(4),
            _ => (self.choose)(12),
        };
        (0..length).map(|_| self.character()).collect()
    }

    fn bytes(&mut self) -> Value {
        let size = (self.choose)(20);
        Value::Bytes(self.octets(size))
    }

    fn byte(&mut self) -> u8 {
        u8::try_from((self.choose)(256)).unwrap_or(0)
    }

    fn character(&mut self) -> char {
        let index = usize::try_from((self.choose)(7)).unwrap_or(0);
        ['a', 'Z', '.', '\0', 'ä', '漢', '🦀'].get(index).copied().unwrap_or('a')
    }

    fn octets(&mut self, size: u64) -> Vec<u8> {
        (0..size).map(|_| self.byte()).collect()
    }
}
