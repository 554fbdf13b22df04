//! Errors by who is to blame: [`SpecError`] our definitions, [`DecodeError`] the peer's bytes, [`EncodeError`] the
//! caller's value; and [`Anomaly`], what the decoder took although it could have refused it.

use std::fmt;

/// A definition that cannot be used: which one, where in it, what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The message and the field path in it, `DescribeConfigsResponse.Results.Configs`.
    pub place: String,
    /// What is wrong.
    pub kind: SpecErrorKind,
}

/// What is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecErrorKind {
    /// The text is not JSON, or not of the shape of a definition.
    Syntax(String),
    /// A version range is not one.
    Versions(String),
    /// A type is neither primitive nor a struct of the message.
    UnknownType(String),
    /// A default does not fit its field's type.
    Default(String),
    /// Two fields, structs, messages or tags have one name or number.
    Duplicate(String),
    /// A tagged field where the message is not flexible, without a tag, or with tagged versions it does not have.
    Tag(String),
    /// Nullable versions on a type that has no null.
    Nullable,
    /// A message, struct or field whose name is no name: paths could not be read.
    Name(String),
    /// A struct that holds itself.
    Recursive(String),
    /// Structs in structs beyond [`MessageSpec::LEVELS`](crate::MessageSpec::LEVELS).
    TooDeep,
    /// An array whose elements may take no bytes: its count could not be checked against the input.
    EmptyElement(String),
    /// More fields than [`MessageSpec::PLACES`](crate::MessageSpec::PLACES), or than a layout can number.
    TooLarge,
    /// The message does not have this version.
    NoSuchVersion(i16),
    /// No definition of this name.
    NoSuchMessage(String),
}

impl fmt::Display for SpecErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecErrorKind::Syntax(text) => write!(f, "not a message definition: {text}"),
            SpecErrorKind::Versions(text) => f.write_str(text),
            SpecErrorKind::UnknownType(name) => write!(f, "no type and no struct of this message is called {name:?}"),
            SpecErrorKind::Default(text) => write!(f, "the default {text} does not fit the type"),
            SpecErrorKind::Duplicate(name) => write!(f, "{name} is there twice"),
            SpecErrorKind::Tag(text) => f.write_str(text),
            SpecErrorKind::Nullable => f.write_str("this type has no null, but nullableVersions are given"),
            SpecErrorKind::Recursive(name) => write!(f, "struct {name} holds itself"),
            SpecErrorKind::EmptyElement(name) => {
                write!(f, "an element {name} may take no bytes, so no count of them can be checked")
            }
            SpecErrorKind::Name(name) => {
                write!(f, "{name:?} is no name: a letter, then letters and digits, all of them ASCII")
            }
            SpecErrorKind::TooDeep => {
                write!(f, "structs are nested more than {} deep", crate::MessageSpec::LEVELS)
            }
            SpecErrorKind::TooLarge => write!(
                f,
                "more than {} fields, when each struct is counted wherever it stands",
                crate::MessageSpec::PLACES
            ),
            SpecErrorKind::NoSuchVersion(version) => write!(f, "there is no version {version}"),
            SpecErrorKind::NoSuchMessage(name) => write!(f, "there is no message called {name:?}"),
        }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)
    }
}

impl std::error::Error for SpecError {}

/// Bytes that are not a message of the layout they were read with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Path of the field that could not be read, `Results[0].Configs[2].Value`; empty for the message itself.
    pub path: String,
    /// Offset into the input, in bytes, where reading it failed.
    pub offset: usize,
    /// What is wrong there.
    pub kind: DecodeErrorKind,
}

/// What is wrong with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeErrorKind {
    /// A fixed-size field needs more bytes than are left.
    Truncated {
        /// Bytes the field takes.
        needed: usize,
        /// Bytes left.
        left: usize,
    },
    /// The input ends inside a varint.
    VarintTruncated,
    /// A varint goes on after its last possible byte (the 5th).
    VarintTooLong,
    /// A length is greater than the bytes left.
    LengthExceedsInput {
        /// The claim.
        claimed: u64,
        /// Bytes left.
        left: usize,
    },
    /// A count of elements or tags is greater than the bytes left could hold.
    CountExceedsInput {
        /// The claim.
        claimed: u64,
        /// Bytes left.
        left: usize,
    },
    /// A negative length or count where null is not allowed.
    NegativeLength(i32),
    /// A null where null is not allowed.
    NullNotAllowed,
    /// Nothing is left where the count of tagged fields is due.
    TagSectionMissing,
    /// A tagged field claims more bytes than are left.
    TagExceedsInput {
        /// The tag.
        tag: u32,
        /// The claim.
        claimed: u32,
        /// Bytes left.
        left: usize,
    },
    /// The frame size is negative or above the limit.
    FrameSize {
        /// The size claimed.
        size: i32,
        /// The greatest size allowed.
        limit: u32,
    },
    /// The frame size and the bytes that follow it differ.
    FrameLength {
        /// The size claimed.
        size: usize,
        /// The bytes that follow.
        left: usize,
    },
    /// The input is 4 GiB or more: offsets are 32 bits.
    InputTooLarge,
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use DecodeErrorKind::*;
        match *self {
            Truncated { needed, left } => write!(f, "needs {needed} bytes, {left} left"),
            VarintTruncated => f.write_str("the input ends inside a varint"),
            VarintTooLong => f.write_str("a varint goes on after its 5th byte"),
            LengthExceedsInput { claimed, left } => write!(f, "claims {claimed} bytes, {left} left"),
            CountExceedsInput { claimed, left } => {
                write!(f, "claims {claimed} elements, more than the {left} bytes left can hold")
            }
            NegativeLength(length) => write!(f, "length {length} where null is not allowed"),
            NullNotAllowed => f.write_str("null where null is not allowed"),
            TagSectionMissing => f.write_str("the input ends where the count of tagged fields is due"),
            TagExceedsInput { tag, claimed, left } => write!(f, "tag {tag} claims {claimed} bytes, {left} left"),
            FrameSize { size, limit } => write!(f, "frame size {size} is not between 0 and {limit}"),
            FrameLength { size, left } => write!(f, "the frame size says {size} bytes, {left} follow"),
            InputTooLarge => f.write_str("the input is 4 GiB or more"),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{} ", self.path)?;
        }
        write!(f, "at {:#x}: {}", self.offset, self.kind)
    }
}

impl std::error::Error for DecodeError {}

/// A liberty the bytes took. Where a rule lets a decoder refuse it, [`AnomalyKind::is_acceptable`] is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Offset of its first byte in the input.
    pub start: u32,
    /// Offset after its last byte.
    pub end: u32,
    /// What it is.
    pub kind: AnomalyKind,
}

/// What the decoder took although it could have refused it, or although encoding would not give it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnomalyKind {
    /// A bool other than 0 and 1, read as true.
    BoolNotZeroOrOne,
    /// A varint in more bytes than it needs.
    VarintNotMinimal,
    /// Bits beyond the 32nd in a varint's 5th byte, ignored.
    VarintHighBits,
    /// A length below -1, read as null.
    LengthBelowNull,
    /// A nullable struct's marker other than -1 and 1 (0 and 1 in a tagged field), read as present.
    StructMarker,
    /// Text that is not UTF-8, kept as raw bytes.
    NotUtf8,
    /// A compact string over 32,767 bytes.
    StringLong,
    /// A tag below the one before it.
    TagsUnordered,
    /// A tag equal to the one before it; the last one counts.
    TagRepeated,
    /// A tag of 2^31-1 or above.
    TagReserved,
    /// A known tagged field that takes fewer bytes than its size says; the rest is skipped.
    TagSizeMismatch,
    /// Bytes after the end of the message.
    LeftOver,
    /// A known tagged field sent with its default, which encoders leave out. Valid, but not given back by encoding.
    TagWithDefault,
}

impl AnomalyKind {
    /// Whether a decoder may refuse bytes for this. [`AnomalyKind::TagWithDefault`] alone is valid.
    pub fn is_acceptable(self) -> bool {
        self != AnomalyKind::TagWithDefault
    }

    /// The rule of `vectors/rules.json` that it falls under.
    pub fn rule(self) -> &'static str {
        match self {
            AnomalyKind::BoolNotZeroOrOne => "bool-other",
            AnomalyKind::VarintNotMinimal => "uvarint-non-minimal",
            AnomalyKind::VarintHighBits => "uvarint-high-bits",
            AnomalyKind::LengthBelowNull => "negative-length-nullable",
            AnomalyKind::StructMarker => "struct-marker",
            AnomalyKind::NotUtf8 => "not-utf8",
            AnomalyKind::StringLong => "compact-string-long",
            AnomalyKind::TagsUnordered => "tags-unordered",
            AnomalyKind::TagRepeated => "tag-repeated",
            AnomalyKind::TagReserved => "tag-reserved",
            AnomalyKind::TagSizeMismatch => "tag-size-mismatch",
            AnomalyKind::LeftOver => "left-over",
            AnomalyKind::TagWithDefault => "known-tag-default",
        }
    }
}

impl fmt::Display for AnomalyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AnomalyKind::BoolNotZeroOrOne => "bool other than 0 and 1, read as true",
            AnomalyKind::VarintNotMinimal => "varint in more bytes than it needs",
            AnomalyKind::VarintHighBits => "bits beyond the 32nd in a varint, ignored",
            AnomalyKind::LengthBelowNull => "length below -1, read as null",
            AnomalyKind::StructMarker => "unusual marker of a nullable struct, read as present",
            AnomalyKind::NotUtf8 => "text that is not UTF-8",
            AnomalyKind::StringLong => "compact string over 32,767 bytes",
            AnomalyKind::TagsUnordered => "tag below the one before it",
            AnomalyKind::TagRepeated => "tag given twice",
            AnomalyKind::TagReserved => "tag of 2^31-1 or above",
            AnomalyKind::TagSizeMismatch => "tagged field shorter than its size, rest skipped",
            AnomalyKind::LeftOver => "bytes after the end of the message",
            AnomalyKind::TagWithDefault => "tagged field sent with its default",
        })
    }
}

/// A value that has no encoding in the layout it was given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// Path of the value, `Resources[0].ResourceName`; empty for the message itself.
    pub path: String,
    /// What is wrong with it.
    pub kind: EncodeErrorKind,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeErrorKind {
    /// A null where null is not allowed.
    NullNotAllowed,
    /// A value of another type than the field's, named here.
    Type(&'static str),
    /// A number outside its type's range.
    OutOfRange(&'static str),
    /// A string over 32,767 bytes where the length is an int16.
    StringTooLong(usize),
    /// A length or count over 2^31-1.
    TooLong(usize),
    /// A name the definition does not have.
    UnknownField(String),
    /// A field that is not in this version, not ignorable, and not at its default.
    FieldNotInVersion(String),
    /// An unknown tag with the number of a declared one, or given twice.
    Tag(u32),
    /// Text for a value that cannot be read: hex, a number or a uuid.
    Text(String),
    /// A version that the message does not have.
    NoSuchVersion(i16),
}

impl fmt::Display for EncodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeErrorKind::NullNotAllowed => f.write_str("null where null is not allowed"),
            EncodeErrorKind::Type(wanted) => write!(f, "not of type {wanted}"),
            EncodeErrorKind::OutOfRange(wanted) => write!(f, "out of the range of {wanted}"),
            EncodeErrorKind::StringTooLong(length) => {
                write!(f, "{length} bytes of text, 32767 is the most an int16 length can say")
            }
            EncodeErrorKind::TooLong(length) => write!(f, "{length} is more than a length can say"),
            EncodeErrorKind::UnknownField(name) => write!(f, "there is no field {name:?}"),
            EncodeErrorKind::FieldNotInVersion(name) => {
                write!(f, "field {name:?} is not in this version and is not at its default")
            }
            EncodeErrorKind::Tag(tag) => write!(f, "tag {tag} is declared, or given twice"),
            EncodeErrorKind::Text(text) => f.write_str(text),
            EncodeErrorKind::NoSuchVersion(version) => write!(f, "there is no version {version}"),
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { self.kind.fmt(f) } else { write!(f, "{}: {}", self.path, self.kind) }
    }
}

impl std::error::Error for EncodeError {}

/// An error of an encoder on its way out, which gathers the path while it unwinds: success pays nothing for it. Boxed, since
/// results that hold it are returned for every field.
#[derive(Debug)]
pub struct Unwinding(Box<(EncodeErrorKind, Vec<String>)>);

impl From<EncodeErrorKind> for Unwinding {
    #[cold]
    #[inline(never)]
    fn from(kind: EncodeErrorKind) -> Unwinding {
        Unwinding(Box::new((kind, Vec::new())))
    }
}

impl Unwinding {
    /// It comes out of a field of this name.
    #[cold]
    #[inline(never)]
    pub fn in_field(mut self, name: &str) -> Unwinding {
        self.0.1.push(name.to_owned());
        self
    }

    /// It comes out of an element of an array.
    #[cold]
    #[inline(never)]
    pub fn in_element(mut self, index: usize) -> Unwinding {
        self.0.1.push(format!("[{index}]"));
        self
    }

    /// What is wrong.
    pub fn kind(&self) -> &EncodeErrorKind {
        &self.0.0
    }

    /// It has come out.
    pub fn into_error(self) -> EncodeError {
        let (kind, steps) = *self.0;
        let mut path = String::new();
        for step in steps.iter().rev() {
            if step.starts_with('[') { path.push_str(step) } else { push_name(&mut path, step) }
        }
        EncodeError { path, kind }
    }
}

pub(crate) fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}
