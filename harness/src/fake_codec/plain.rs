//! A plain second codec over the same layouts: value by value, without spans, with a switch at each place where
//! implementers go wrong. Without a switch it does what the reference does, which the control of `fake codec --check`
//! proves over every case.

use super::Switch::{self, *};
use crate::vector::{Part, PartLayout};
use codec::{
    ApiVersion, Element, EncodeErrorKind, Field, Fixed, Float64, FrameLayout, Layout, MessageKind, MessageSpec,
    Protocol, SpecError, StructLayout, StructValue, Value, VersionRange, WireType, header_version,
};
use std::sync::Arc;

/// Why there is no answer.
pub(super) enum Stop {
    /// It says no.
    Refused(String),
    /// It panicked, which its adapter would catch.
    Panicked(&'static str),
    /// The process dies.
    Aborted,
    /// It never ends.
    Hung,
}

type Done<T> = Result<T, Stop>;

fn refused<T>(why: &str) -> Done<T> {
    Err(Stop::Refused(why.to_owned()))
}

/// The layouts of a part of a message, as a codec with this fault has them.
pub(super) fn layout(
    fault: Option<Switch>,
    protocol: &Protocol,
    spec: &MessageSpec,
    version: ApiVersion,
    part: Part,
) -> Result<PartLayout, SpecError> {
    let body = match fault {
        Some(DeclaredTagInEveryVersion) => Arc::new(Layout::new(&Arc::new(tags_in_every_version(spec)), version)?),
        _ => protocol.layout(&spec.name, body_version(fault, spec, version))?,
    };
    if part == Part::Body {
        return Ok(PartLayout::Single(body));
    }
    let request = spec.kind == MessageKind::Request;
    let header = match fault {
        Some(ApiVersionAsHeaderVersion) => ApiVersion(version.0.min(if request { 2 } else { 1 })),
        Some(RequestHeaderStaysOld) if request => ApiVersion(1),
        Some(ResponseHeaderStaysOld) if !request => ApiVersion(0),
        Some(ApiVersionsHeaderFlexible) if !request => ApiVersion(spec.flexible_versions.contains(version).into()),
        _ => header_version(spec, version),
    };
    let header = protocol.layout(if request { "RequestHeader" } else { "ResponseHeader" }, header)?;
    Ok(match part {
        Part::Header => PartLayout::Single(header),
        _ => PartLayout::Frame(FrameLayout { header, body }),
    })
}

/// The definition with each tagged field in every version that can have some.
fn tags_in_every_version(spec: &MessageSpec) -> MessageSpec {
    let mut spec = spec.clone();
    let lowest = spec.flexible_versions.lowest();
    let structs = spec.structs.values_mut().flat_map(|structure| &mut structure.fields);
    for field in spec.fields.iter_mut().chain(structs) {
        // Not one that is untagged at first.
        let ever_tagged = !field.tagged_versions.is_none() && field.tagged_versions.includes(field.versions);
        if let (true, Some(lowest), Some(highest)) = (ever_tagged, lowest, field.versions.highest()) {
            (field.versions, field.tagged_versions) =
                (VersionRange::new(lowest, highest), VersionRange::new(lowest, highest));
        }
    }
    spec
}

fn body_version(fault: Option<Switch>, spec: &MessageSpec, version: ApiVersion) -> ApiVersion {
    let described = &*spec.name == "DescribeConfigsResponse";
    match (fault, version.0) {
        (Some(VersionTwoReadAsThree), 2) if described => ApiVersion(3),
        (Some(VersionThreeReadAsTwo), 3) if described => ApiVersion(2),
        (Some(FlexibleVersionReadAsPlain), above @ 1..) if spec.flexible_versions.contains(version) => {
            let plain = (0..above)
                .rev()
                .map(ApiVersion)
                .find(|&version| spec.valid_versions.contains(version) && !spec.flexible_versions.contains(version));
            plain.unwrap_or(version)
        }
        _ => version,
    }
}

/// Decodes a part; gives its values, one a layout, and how many bytes are left.
pub(super) fn decode(fault: Option<Switch>, layout: &PartLayout, bytes: &[u8]) -> Done<(Vec<Value>, usize)> {
    let mut reader = Reader { bytes, at: 0 };
    let values = match layout {
        PartLayout::Single(layout) => vec![message(fault, layout, &mut reader)?],
        PartLayout::Frame(frame) => {
            let own = if fault == Some(FrameSizeCountsItself) { 4 } else { 0 };
            let size = i64::from(i32::from_be_bytes(reader.array()?)) - own;
            if size != reader.left() as i64 && fault != Some(FrameSizeIgnored) {
                return refused("the frame's size is not that of what follows");
            }
            vec![message(fault, &frame.header, &mut reader)?, message(fault, &frame.body, &mut reader)?]
        }
    };
    let left = if fault == Some(LeftOverHidden) { 0 } else { reader.left() };
    Ok((values, left))
}

fn message<'a>(fault: Option<Switch>, layout: &'a Layout, reader: &mut Reader<'a>) -> Done<Value> {
    let mut decoder = Decoder { fault, layout, reader: *reader, depth: 0 };
    let value = decoder.structure(layout.root());
    *reader = decoder.reader;
    value
}

/// Encodes a part. What has no encoding is found by the reference, unless the fault is to let it through.
pub(super) fn encode(fault: Option<Switch>, layout: &PartLayout, values: &[Value]) -> Done<Vec<u8>> {
    if let Err(error) = layout.encode(values) {
        let through = match error.kind {
            EncodeErrorKind::NullNotAllowed => matches!(fault, Some(NullWrittenWhereForbidden | NullWrittenAsEmpty)),
            EncodeErrorKind::StringTooLong(_) => fault == Some(TextLengthWraps),
            EncodeErrorKind::FieldNotInVersion(_) => fault == Some(LaterFieldWritten),
            _ => false,
        };
        if !through {
            return Err(Stop::Refused(error.to_string()));
        }
    }
    let mut out = Vec::new();
    match (layout, values) {
        (PartLayout::Frame(frame), [header, body]) => {
            out.extend([0; 4]);
            Encoder { fault, layout: &frame.header, out: &mut out, depth: 0 }.message(header)?;
            Encoder { fault, layout: &frame.body, out: &mut out, depth: 0 }.message(body)?;
            let own = if fault == Some(FrameSizeCountsItself) { 0 } else { 4 };
            let size = i32::try_from(out.len() - own).unwrap_or(i32::MAX);
            out.splice(..4, size.to_be_bytes());
        }
        (PartLayout::Single(layout), [value]) => {
            Encoder { fault, layout, out: &mut out, depth: 0 }.message(value)?;
        }
        _ => unreachable!("a part has as many values as layouts"),
    }
    Ok(out)
}

/// The field that a fault leaves out.
fn left_out(fault: Option<Switch>) -> Option<&'static str> {
    Some(match fault? {
        ThrottleTimeForgotten => "ThrottleTimeMs",
        DocumentationMissing => "Documentation",
        ConfigTypeMissing => "ConfigType",
        SynonymsMissing => "Synonyms",
        _ => return None,
    })
}

/// Whether a struct of a message has a tag section.
fn has_tag_section(fault: Option<Switch>, structure: &StructLayout, depth: usize) -> bool {
    structure.flexible && !(fault == Some(InnerTagSectionForgotten) && depth > 0)
}

/// How a field's length or count is written.
fn is_compact(fault: Option<Switch>, layout: &Layout, field: &Field, compact: bool, depth: usize) -> bool {
    match fault {
        Some(ClientIdCompact) if &*field.name == "ClientId" => layout.flexible(),
        Some(InnerCountPlain) if matches!(field.wire, WireType::Array { .. }) => compact && depth == 0,
        _ => compact,
    }
}

/// What a fault makes of text, in either direction.
fn tidied(fault: Option<Switch>, text: String) -> String {
    match fault {
        Some(TextTrimmed) => text.trim().to_owned(),
        // One of the many pairs that normal form C composes stands for all.
        Some(AccentsComposed) => text.replace("e\u{301}", "\u{e9}"),
        Some(ByteOrderMarkDropped) => text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned(),
        Some(LineEndsUnified) => text.replace("\r\n", "\n"),
        _ => text,
    }
}

/// What a fault makes of a list, in either direction.
fn listed(fault: Option<Switch>, mut elements: Vec<Value>) -> Vec<Value> {
    match fault {
        Some(IntegerListsSorted) => elements.sort_by_key(|element| match element {
            Value::Integer(number) => Some(*number),
            _ => None,
        }),
        Some(LongListsCut) => elements.truncate(1_000),
        Some(VeryLongListsCut) => elements.truncate(10_000),
        _ => {}
    }
    elements
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Bytes,
    Array,
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn take(&mut self, length: usize) -> Done<&'a [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..length)) {
            Some(taken) => {
                self.at += length;
                Ok(taken)
            }
            None => refused("more bytes are needed than are left"),
        }
    }

    fn array<const N: usize>(&mut self) -> Done<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }
}

struct Decoder<'a> {
    fault: Option<Switch>,
    layout: &'a Layout,
    reader: Reader<'a>,
    /// How many arrays it is inside of.
    depth: usize,
}

impl Decoder<'_> {
    fn is(&self, fault: Switch) -> bool {
        self.fault == Some(fault)
    }

    fn structure(&mut self, structure: &StructLayout) -> Done<Value> {
        let layout = self.layout;
        let mut value = StructValue::default();
        for &number in &structure.fields {
            let field = layout.field(number);
            let read = match left_out(self.fault) {
                Some(name) if name == &*field.name => field.default.clone(),
                _ => {
                    let read = self.value(field, field.wire)?;
                    self.seen(field, read)?
                }
            };
            value.fields.push((field.name.clone(), read));
        }
        if self.is(MinAndMaxSwapped)
            && let (Some(min), Some(max)) = (value.get("MinVersion").cloned(), value.get("MaxVersion").cloned())
        {
            let swapped = [("MinVersion", max), ("MaxVersion", min)];
            swapped
                .into_iter()
                .for_each(|(name, other)| value.get_mut(name).into_iter().for_each(|it| *it = other.clone()));
        }
        if self.is(FlagsShifted) {
            let flags: Vec<usize> =
                (0..value.fields.len()).filter(|&at| matches!(value.fields[at].1, Value::Bool(_))).collect();
            for pair in flags.windows(2) {
                value.fields[pair[0]].1 = value.fields[pair[1]].1.clone();
            }
        }
        let header_ends = match value.get("ClientId") {
            Some(Value::Null) => self.is(HeaderEndsAtNullClientId),
            Some(Value::String(text)) => text.is_empty() && self.is(HeaderEndsAtEmptyClientId),
            _ => false,
        };
        let mut known = Vec::new();
        if has_tag_section(self.fault, structure, self.depth) && !header_ends {
            self.tag_section(structure, &mut known, &mut value.tags)?;
        }
        for &number in &structure.tagged {
            let field = layout.field(number);
            let read =
                known.iter().rev().find(|(known, _)| *known == number).map(|(_, value): &(u16, Value)| value.clone());
            let absent = match &*field.name {
                "FinalizedFeaturesEpoch" if self.is(AbsentEpochZero) => Value::Integer(0),
                _ => field.default.clone(),
            };
            value.fields.push((field.name.clone(), read.unwrap_or(absent)));
        }
        Ok(Value::Struct(value))
    }

    /// What the fault makes of a field that was read right.
    fn seen(&self, field: &Field, value: Value) -> Done<Value> {
        let Some(fault) = self.fault else { return Ok(value) };
        Ok(match (fault, &*field.name, value) {
            (ErrorMessageNeverNull, "ErrorMessage", Value::Null) => Value::String(String::new()),
            (ResultErrorsHidden, "ErrorCode", _) if self.depth > 0 => Value::Integer(0),
            (NullValuePanics, "Value", Value::Null) => return Err(Stop::Panicked("a value is null")),
            (NullKeysPanic, "ConfigurationKeys", Value::Null) => return Err(Stop::Panicked("keys are null")),
            (SeveralKeysLost, "ConfigurationKeys", Value::Array(keys)) if keys.len() > 1 => Value::Array(Vec::new()),
            (DefaultFlagUnset, "IsDefault", _) => Value::Bool(false),
            (SourceAsDefaultFlag, "ConfigSource", Value::Integer(source)) => Value::Integer((source != 0).into()),
            (ConfigTypeZero, "ConfigType", _) => Value::Integer(0),
            (ResourceTypesClosed, "ResourceType", Value::Integer(other)) if other != 2 && other != 4 => {
                return refused("not a resource type");
            }
            (OperationsClosed, "ConfigOperation", Value::Integer(other)) if !(0..=3).contains(&other) => {
                return Err(Stop::Panicked("not an operation"));
            }
            (SourcesClosed, "ConfigSource" | "Source", Value::Integer(other)) if !(0..=9).contains(&other) => {
                return Err(Stop::Panicked("not a source"));
            }
            (ErrorCodesClosed, "ErrorCode", Value::Integer(other)) if other > 150 => {
                return refused("not an error code");
            }
            (_, _, value) => value,
        })
    }

    fn value(&mut self, field: &Field, wire: WireType) -> Done<Value> {
        match wire {
            WireType::Fixed(fixed) => self.fixed(fixed),
            WireType::String { compact, nullable } => {
                let Some(length) = self.length(field, compact, nullable, Kind::Text)? else { return Ok(Value::Null) };
                self.text(length)
            }
            WireType::Bytes { compact, nullable, .. } => {
                let Some(length) = self.length(field, compact, nullable, Kind::Bytes)? else { return Ok(Value::Null) };
                Ok(Value::Bytes(self.octets(length)?.to_vec()))
            }
            WireType::Struct { id, nullable } => {
                if nullable {
                    let tagged = field.tag.is_some();
                    let marker =
                        if tagged { i64::from(self.uvarint()?) - 1 } else { self.reader.array::<1>()?[0] as i8 as i64 };
                    if marker == -1 {
                        return Ok(Value::Null);
                    }
                }
                self.structure(self.layout.structure(id))
            }
            WireType::Array { compact, nullable, element } => self.array(field, compact, nullable, element),
        }
    }

    fn fixed(&mut self, fixed: Fixed) -> Done<Value> {
        let size = usize::from(fixed.size());
        let lenient = self.is(MissingNumbersZero) || self.pads_header();
        let mut bytes = match self.reader.left() {
            left if left < size && lenient => [self.reader.take(left)?, &vec![0; size - left]].concat(),
            _ => self.reader.take(size)?.to_vec(),
        };
        if self.is(LittleEndian) && fixed == Fixed::Int32 {
            bytes.reverse();
        }
        let unsigned = bytes.iter().take(8).fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
        let signed = (unsigned << (64 - 8 * size.min(8))).cast_signed() >> (64 - 8 * size.min(8));
        let low = unsigned.cast_signed();
        Ok(match fixed {
            Fixed::Bool if unsigned > 1 && self.is(OtherBoolsRefused) => return refused("neither 0 nor 1"),
            Fixed::Bool if self.is(OtherBoolsFalse) => Value::Bool(unsigned == 1),
            Fixed::Bool => Value::Bool(unsigned != 0),
            Fixed::Int8 if self.is(Int8Unsigned) => Value::Integer(low),
            Fixed::Int16 if self.is(Int16Unsigned) => Value::Integer(low),
            Fixed::Int32 if self.is(Int32Unsigned) => Value::Integer(low),
            // Ten bits are lost at the top of the range.
            Fixed::Int64 if self.is(Int64AsDouble) && signed.unsigned_abs() > 1 << 53 => {
                Value::Integer(signed >> 10 << 10)
            }
            Fixed::Int8 | Fixed::Int16 | Fixed::Int32 | Fixed::Int64 => Value::Integer(signed),
            Fixed::Uint16 | Fixed::Uint32 => Value::Integer(low),
            Fixed::Float64 => Value::Float(Float64(unsigned)),
            Fixed::Uuid => {
                if self.is(UuidHalvesSwapped) {
                    bytes.rotate_left(8);
                }
                Value::Uuid(bytes.try_into().unwrap_or_default())
            }
        })
    }

    /// Whether a header's numbers are zero where they are missing.
    fn pads_header(&self) -> bool {
        self.is(ShortHeaderZeroFilled) && self.layout.spec().kind == MessageKind::Header
    }

    /// A varint of at most five bytes; bits beyond the 32nd are dropped.
    fn uvarint(&mut self) -> Done<u32> {
        let mut value = 0_u32;
        for group in 0.. {
            if self.reader.left() == 0 && self.is(VarintPastEnd) {
                return Ok(value);
            }
            if group == 5 && !self.is(VarintUnbounded) {
                return refused("a varint of more than five bytes");
            }
            let [byte] = self.reader.array()?;
            value |= u32::from(byte & 0x7f).checked_shl(7 * group).unwrap_or(0);
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    /// A length or count that can be had; `None` is null.
    fn length(&mut self, field: &Field, compact: bool, nullable: bool, kind: Kind) -> Done<Option<usize>> {
        let past_end = self.reader.left() == 0;
        if past_end && (kind == Kind::Array && self.is(ArrayPastEndEmpty) || self.pads_header()) {
            return Ok(Some(0));
        }
        let length = if is_compact(self.fault, self.layout, field, compact, self.depth) {
            let length = self.uvarint()?;
            let without_one = match kind {
                Kind::Array => self.is(ArrayCountWithoutPlusOne),
                _ => self.is(TextLengthWithoutPlusOne),
            };
            match self.is(VarintSigned) {
                true => i64::from(length.cast_signed()) - 1,
                false => i64::from(length) - i64::from(!without_one),
            }
        } else if kind == Kind::Text || kind == Kind::Bytes && self.is(BytesLengthInt16) {
            i64::from(i16::from_be_bytes(self.reader.array()?))
        } else {
            i64::from(i32::from_be_bytes(self.reader.array()?))
        };
        let array = kind == Kind::Array;
        match length {
            // A guard that looks at the upper side only.
            ..-1 if self.is(VarintSigned) && compact => Ok(Some(0)),
            ..0 if !nullable => match self.fault {
                Some(NullArrayCrashes) if array => Err(Stop::Aborted),
                Some(NullArrayLoops) if array => Err(Stop::Hung),
                Some(ForbiddenNullArrayEmpty) if array => Ok(Some(0)),
                Some(ForbiddenNullTextEmpty) if !array => Ok(Some(0)),
                _ => refused("null is not allowed"),
            },
            ..-1 if self.is(NegativeLengthEmpty) => Ok(Some(0)),
            ..-1 if self.is(NegativeClientIdPanics) && &*field.name == "ClientId" => {
                Err(Stop::Panicked("a slice of negative length"))
            }
            ..0 => match self.fault {
                Some(NullTextEmpty) if !array => Ok(Some(0)),
                Some(NullArrayEmpty) if array => Ok(Some(0)),
                Some(NullArrayRefused) if array => refused("a null array"),
                _ => Ok(None),
            },
            0 if self.is(EmptyTextNull) && kind == Kind::Text && nullable => Ok(None),
            0 if self.is(EmptyArrayNull) && array && nullable => Ok(None),
            _ => self.there(length, kind).map(Some),
        }
    }

    /// Whether so many bytes or elements can be there.
    fn there(&self, length: i64, kind: Kind) -> Done<usize> {
        let left = self.reader.left();
        match usize::try_from(length) {
            Ok(length) if length <= left => Ok(length),
            _ => match (self.fault, kind) {
                (Some(OuterCountBelieved), Kind::Array) if self.depth == 0 => Err(Stop::Aborted),
                (Some(InnerCountBelieved), Kind::Array) if self.depth > 0 => Err(Stop::Aborted),
                (Some(LengthBelieved), Kind::Text | Kind::Bytes) => Err(Stop::Aborted),
                (Some(TextPastEndCut), Kind::Text) => Ok(left),
                (Some(CountPastEndCut), Kind::Array) => Ok(left),
                _ => refused("a length or count past the end"),
            },
        }
    }

    fn octets(&mut self, length: usize) -> Done<Vec<u8>> {
        Ok(self.reader.take(length)?.to_vec())
    }

    fn text(&mut self, length: usize) -> Done<Value> {
        let mut bytes = self.octets(length)?;
        if self.is(TextEndsAtNul) {
            bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
        }
        if self.is(TextAsLatin) {
            return Ok(Value::String(bytes.into_iter().map(char::from).collect()));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Value::String(tidied(self.fault, text))),
            Err(_) if self.is(BadTextPanics) => Err(Stop::Panicked("invalid UTF-8")),
            Err(error) => Ok(Value::Bytes(error.into_bytes())),
        }
    }

    fn array(&mut self, field: &Field, compact: bool, nullable: bool, element: Element) -> Done<Value> {
        let Some(count) = self.length(field, compact, nullable, Kind::Array)? else { return Ok(Value::Null) };
        let mut elements: Vec<Value> = Vec::new();
        self.depth += 1;
        for _ in 0..count {
            if self.reader.left() == 0 && self.is(CountPastEndCut) {
                break;
            }
            let value = match element {
                Element::Fixed(fixed) => self.fixed(fixed)?,
                Element::String => self.value(field, WireType::String { compact, nullable: false })?,
                Element::Bytes => self.value(field, WireType::Bytes { compact, nullable: false, records: false })?,
                Element::Struct(id) => self.structure(self.layout.structure(id))?,
            };
            if self.is(DuplicatesMerged)
                && let Element::Struct(id) = element
            {
                let key = self.key(id, &value);
                elements.retain(|earlier| key.is_empty() || self.key(id, earlier) != key);
            }
            elements.push(value);
        }
        self.depth -= 1;
        Ok(Value::Array(listed(self.fault, elements)))
    }

    /// The values of the map keys of an element.
    fn key(&self, id: u16, value: &Value) -> Vec<Value> {
        let keys = self.layout.structure(id).fields.iter().map(|&number| self.layout.field(number));
        let keys = keys.filter(|field| field.map_key);
        keys.filter_map(|field| value.as_struct()?.get(&field.name).cloned()).collect()
    }

    fn tag_section(
        &mut self,
        structure: &StructLayout,
        known: &mut Vec<(u16, Value)>,
        unknown: &mut Vec<(u32, Vec<u8>)>,
    ) -> Done<()> {
        let layout = self.layout;
        if self.is(TagSectionOneByte) {
            return self.reader.take(1).map(|_| ());
        }
        if self.is(MissingTagSectionTaken) && self.reader.left() == 0 {
            return Ok(());
        }
        let mut count = self.uvarint()?;
        if self.is(TagCountPlusOne) {
            count = count.saturating_sub(1);
        }
        if self.is(VarintSigned) && count > i32::MAX.unsigned_abs() {
            count = 0;
        }
        if count as usize > self.reader.left() / 2 {
            return refused("more tags than bytes");
        }
        for _ in 0..count {
            let (tag, mut size) = (self.uvarint()?, self.uvarint()? as usize);
            if self.is(TagSizePlusOne) {
                size = size.saturating_sub(1);
            }
            if self.is(TagSizeBelieved) && size > self.reader.left() {
                return Err(Stop::Aborted);
            }
            if self.is(TagPastEndCut) {
                size = size.min(self.reader.left());
            }
            let payload = self.reader.take(size)?;
            let lost = self.is(KnownTagsLostAfterUnknown) && !unknown.is_empty();
            let declared = |&number: &u16| !lost && layout.field(number).tag == Some(tag);
            let number = structure.tagged.iter().copied().find(declared);
            match number {
                Some(number) => {
                    let mut inner = Decoder { reader: Reader { bytes: payload, at: 0 }, ..*self };
                    known.push((number, inner.value(layout.field(number), layout.field(number).wire)?));
                }
                _ if self.is(UnknownTagsRefused) => return refused("an unknown tag"),
                _ => unknown.push((tag, payload.to_vec())),
            }
            if self.is(UnknownTagEndsSection) && number.is_none() {
                break;
            }
        }
        // Of a tag given twice the last one counts.
        unknown.reverse();
        unknown.sort_by_key(|&(tag, _)| tag);
        unknown.dedup_by_key(|&mut (tag, _)| tag);
        Ok(())
    }
}

struct Encoder<'a> {
    fault: Option<Switch>,
    layout: &'a Layout,
    out: &'a mut Vec<u8>,
    /// How many arrays it is inside of.
    depth: usize,
}

impl Encoder<'_> {
    fn is(&self, fault: Switch) -> bool {
        self.fault == Some(fault)
    }

    fn message(&mut self, value: &Value) -> Done<()> {
        self.structure(self.layout.root(), value)
    }

    fn structure(&mut self, structure: &StructLayout, value: &Value) -> Done<()> {
        let layout = self.layout;
        let Value::Struct(value) = value else { return refused("not a struct") };
        let given = |field: &Field| value.get(&field.name).unwrap_or(&field.default).clone();
        for &number in &structure.fields {
            let field = layout.field(number);
            if left_out(self.fault) == Some(&*field.name) {
                continue;
            }
            let given = self.given(field, given(field))?;
            self.value(field, field.wire, &given)?;
        }
        if self.is(LaterFieldWritten) {
            // Whatever the value has beside the version's fields, as if the next version's were known already.
            let later = value.fields.iter().filter(|(name, _)| {
                !structure.fields.iter().chain(&structure.tagged).any(|&number| layout.field(number).name == *name)
            });
            for (_, value) in later {
                if let Value::Bool(flag) = value {
                    self.out.push((*flag).into());
                }
            }
        }
        if !has_tag_section(self.fault, structure, self.depth) {
            return Ok(());
        }
        let mut tags = value.tags.clone();
        for &number in &structure.tagged {
            let field = layout.field(number);
            let given = given(field);
            if given != field.default {
                let mut payload = Vec::new();
                let mut inner = Encoder { fault: self.fault, layout, out: &mut payload, depth: self.depth };
                inner.value(field, field.wire, &given)?;
                tags.push((field.tag.unwrap_or_default(), payload));
            }
        }
        if !self.is(TagsWrittenAsGiven) {
            tags.sort_by_key(|&(tag, _)| tag);
        }
        if self.is(TagsWrittenDescending) {
            tags.reverse();
        }
        let count = tags.len() + usize::from(self.is(TagCountPlusOne));
        self.uvarint(count);
        for (tag, payload) in tags {
            self.uvarint(tag as usize);
            self.uvarint(payload.len() + usize::from(self.is(TagSizePlusOne)));
            self.out.extend(payload);
        }
        Ok(())
    }

    /// What the fault makes of a field before it is written.
    fn given(&self, field: &Field, value: Value) -> Done<Value> {
        let Some(fault) = self.fault else { return Ok(value) };
        Ok(match (fault, &*field.name, value) {
            (ValidateOnlyForgotten, "ValidateOnly", _) => Value::Bool(false),
            (DocumentationNeverNull, "Documentation", Value::Null) => Value::String(String::new()),
            (DefaultAsOverride, "ConfigSource", Value::Integer(5)) => Value::Integer(1),
            (EmptyNameSpelledOut, "ResourceName", Value::String(name)) if name.is_empty() => {
                Value::String("<default>".to_owned())
            }
            (NullClientIdPanics, "ClientId", Value::Null) => return Err(Stop::Panicked("the client id is null")),
            (_, _, value) => value,
        })
    }

    #[allow(clippy::cast_possible_truncation, reason = "lengths were checked by the reference, or are meant to wrap")]
    fn uvarint(&mut self, value: usize) {
        codec::wire::write_uvarint(self.out, value as u32);
    }

    #[allow(clippy::cast_possible_truncation, reason = "lengths were checked by the reference, or are meant to wrap")]
    fn length(&mut self, field: &Field, compact: bool, kind: Kind, length: Option<usize>) -> Done<()> {
        if is_compact(self.fault, self.layout, field, compact, self.depth) {
            if self.is(CompactLengthOneByte) && length.is_some_and(|length| length > 126) {
                return Err(Stop::Panicked("a length beyond the byte reserved for it"));
            }
            let without_one = match kind {
                Kind::Array => self.is(ArrayCountWithoutPlusOne),
                _ => self.is(TextLengthWithoutPlusOne),
            };
            let written = length.map_or(0, |length| length + usize::from(!without_one));
            if kind == Kind::Array && self.is(CompactCountTwoBytes) && written >= 1 << 14 {
                let low = (written & 0x7f) as u8;
                self.out.extend([low | 0x80, (written >> 7 & 0x7f) as u8]);
                return Ok(());
            }
            self.uvarint(written);
        } else if kind == Kind::Text || kind == Kind::Bytes && self.is(BytesLengthInt16) {
            self.out.extend(length.map_or(-1, |length| length as i16).to_be_bytes());
        } else {
            self.out.extend(length.map_or(-1, |length| length as i32).to_be_bytes());
        }
        Ok(())
    }

    fn value(&mut self, field: &Field, wire: WireType, value: &Value) -> Done<()> {
        match (wire, value) {
            (WireType::Fixed(fixed), value) => self.fixed(fixed, value),
            (WireType::Struct { id, nullable }, value) => {
                let present = *value != Value::Null;
                match (nullable, field.tag) {
                    (false, _) => {}
                    (true, Some(_)) => self.out.push(present.into()),
                    (true, None) => self.out.push(if present { 1 } else { 0xff }),
                }
                if present { self.structure(self.layout.structure(id), value) } else { Ok(()) }
            }
            (WireType::String { compact, nullable }, value) => self.octets(field, compact, nullable, Kind::Text, value),
            (WireType::Bytes { compact, nullable, .. }, value) => {
                self.octets(field, compact, nullable, Kind::Bytes, value)
            }
            (WireType::Array { compact, nullable, .. }, Value::Null) => {
                let empty = !nullable && self.is(NullWrittenAsEmpty);
                self.length(field, compact, Kind::Array, empty.then_some(0))
            }
            (WireType::Array { compact, element, .. }, Value::Array(elements)) => {
                let elements = listed(self.fault, elements.clone());
                self.length(field, compact, Kind::Array, Some(elements.len()))?;
                self.depth += 1;
                for value in &elements {
                    match element {
                        Element::Fixed(fixed) => self.fixed(fixed, value)?,
                        Element::String => self.value(field, WireType::String { compact, nullable: false }, value)?,
                        Element::Bytes => {
                            self.value(field, WireType::Bytes { compact, nullable: false, records: false }, value)?;
                        }
                        Element::Struct(id) => self.structure(self.layout.structure(id), value)?,
                    }
                }
                self.depth -= 1;
                Ok(())
            }
            (WireType::Array { .. }, _) => refused("not an array"),
        }
    }

    fn octets(&mut self, field: &Field, compact: bool, nullable: bool, kind: Kind, value: &Value) -> Done<()> {
        let bytes = match value {
            Value::Null if !nullable && self.is(NullWrittenAsEmpty) => Some(Vec::new()),
            Value::Null => None,
            Value::String(text) if text.is_empty() && nullable && self.is(EmptyTextWrittenNull) => None,
            Value::String(text) if self.is(TextToAscii) => {
                Some(text.chars().map(|char| if char.is_ascii() { char as u8 } else { b'?' }).collect())
            }
            Value::String(text) => Some(tidied(self.fault, text.clone()).into_bytes()),
            Value::Bytes(bytes) => Some(bytes.clone()),
            _ => return refused("neither text nor bytes"),
        };
        let length = match value {
            Value::String(text) if self.is(LengthInCharacters) => Some(text.chars().count()),
            _ => bytes.as_ref().map(Vec::len),
        };
        self.length(field, compact, kind, length)?;
        self.out.extend(bytes.unwrap_or_default());
        Ok(())
    }

    fn fixed(&mut self, fixed: Fixed, value: &Value) -> Done<()> {
        let mut bytes = match value {
            Value::Bool(flag) => vec![u8::from(*flag)],
            Value::Integer(value) => value.to_be_bytes().into_iter().skip(8 - usize::from(fixed.size())).collect(),
            Value::Float(float) => float.0.to_be_bytes().to_vec(),
            Value::Uuid(uuid) => uuid.to_vec(),
            _ => return refused("not a number"),
        };
        match fixed {
            Fixed::Int32 if self.is(LittleEndian) => bytes.reverse(),
            Fixed::Uuid if self.is(UuidHalvesSwapped) => bytes.rotate_left(8),
            _ => {}
        }
        self.out.extend(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tagged_field_is_declared_in_every_version_that_has_tags() {
        let definition = r#"{ "apiKey": 999, "type": "request", "name": "SomeRequest", "validVersions": "0-4",
            "listeners": ["broker"], "flexibleVersions": "2+", "fields": [
            { "name": "Plain", "type": "int8", "versions": "3+" },
            { "name": "Later", "type": "int8", "versions": "4+", "taggedVersions": "4+", "tag": 0 },
            { "name": "Inner", "type": "[]Inner", "versions": "0+", "fields": [
                { "name": "Name", "type": "string", "versions": "0+" },
                { "name": "Always", "type": "int8", "versions": "2+", "taggedVersions": "2+", "tag": 0 },
                { "name": "Later", "type": "int8", "versions": "3+", "taggedVersions": "3+", "tag": 1 }] }] }"#;
        let protocol = Protocol::parse([("SomeRequest.json", definition)]).unwrap();
        let spec = protocol.message("SomeRequest").unwrap();
        let tagged = |fault, version| {
            let layout = layout(fault, &protocol, spec, ApiVersion(version), Part::Body).unwrap();
            let [(_, layout)] = layout.layouts()[..] else { unreachable!("a body is one") };
            let fields = layout.fields().iter();
            fields.filter(|field| field.tag.is_some()).map(|field| field.name.to_string()).collect::<Vec<_>>()
        };
        let fault = Some(DeclaredTagInEveryVersion);
        assert_eq!((tagged(None, 2).len(), tagged(None, 3).len(), tagged(None, 4).len()), (1, 2, 3));
        for version in 2..=4 {
            assert_eq!(tagged(fault, version).len(), 3, "{version}");
        }
        assert!(tagged(fault, 0).is_empty() && tagged(fault, 1).is_empty());
    }
}
