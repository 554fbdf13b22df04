//! A message at one version: which fields, compact or not, nullable or not, tagged by tag number. Version arithmetic
//! ends here; the decode and encode loops see no version.

use crate::error::{SpecError, SpecErrorKind};
use crate::spec::{FieldDefault, FieldSpec, FieldType, MessageSpec};
use crate::tree::{Float64, StructValue, Value, parse_uuid};
use crate::version::ApiVersion;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// How a field is written at one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WireType {
    /// A type of always the same size.
    Fixed(Fixed),
    /// Text: length, then UTF-8.
    String {
        /// Length as uvarint of length + 1 instead of int16.
        compact: bool,
        /// Whether null is allowed.
        nullable: bool,
    },
    /// Bytes: length, then bytes.
    Bytes {
        /// Length as uvarint of length + 1 instead of int32.
        compact: bool,
        /// Whether null is allowed.
        nullable: bool,
        /// Record batches, which the codec does not open.
        records: bool,
    },
    /// A struct in place.
    Struct {
        /// Which, of [`Layout::structs`].
        id: u16,
        /// Whether a marker comes first: int8 -1 null, 1 present; uvarint 0, 1 in a tagged field (KIP-893).
        nullable: bool,
    },
    /// Count, then elements.
    Array {
        /// Count as uvarint of count + 1 instead of int32.
        compact: bool,
        /// Whether null is allowed.
        nullable: bool,
        /// What it holds.
        element: Element,
    },
}

/// What an array holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Element {
    /// A type of always the same size.
    Fixed(Fixed),
    /// Text, never null.
    String,
    /// Bytes, never null.
    Bytes,
    /// Structs, by number in [`Layout::structs`].
    Struct(u16),
}

impl Element {
    /// The type of one, in an array of this form: never null.
    #[inline(always)]
    pub(crate) fn wire(self, compact: bool) -> WireType {
        match self {
            Element::Fixed(fixed) => WireType::Fixed(fixed),
            Element::String => WireType::String { compact, nullable: false },
            Element::Bytes => WireType::Bytes { compact, nullable: false, records: false },
            Element::Struct(id) => WireType::Struct { id, nullable: false },
        }
    }
}

/// A type of always the same size, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the type of the same name in the definition language")]
pub enum Fixed {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    Uuid,
}

impl Fixed {
    /// Encoded size in bytes.
    pub fn size(self) -> u8 {
        match self {
            Fixed::Bool | Fixed::Int8 => 1,
            Fixed::Int16 | Fixed::Uint16 => 2,
            Fixed::Int32 | Fixed::Uint32 => 4,
            Fixed::Int64 | Fixed::Float64 => 8,
            Fixed::Uuid => 16,
        }
    }

    /// Its name in the definition language.
    pub fn name(self) -> &'static str {
        match self {
            Fixed::Bool => "bool",
            Fixed::Int8 => "int8",
            Fixed::Int16 => "int16",
            Fixed::Uint16 => "uint16",
            Fixed::Int32 => "int32",
            Fixed::Uint32 => "uint32",
            Fixed::Int64 => "int64",
            Fixed::Float64 => "float64",
            Fixed::Uuid => "uuid",
        }
    }

    /// Least and greatest value of an integer type; of a bool 0 and 1.
    pub fn integer_range(self) -> Option<(i64, i64)> {
        Some(match self {
            Fixed::Bool => (0, 1),
            Fixed::Int8 => (i8::MIN.into(), i8::MAX.into()),
            Fixed::Int16 => (i16::MIN.into(), i16::MAX.into()),
            Fixed::Uint16 => (0, u16::MAX.into()),
            Fixed::Int32 => (i32::MIN.into(), i32::MAX.into()),
            Fixed::Uint32 => (0, u32::MAX.into()),
            Fixed::Int64 => (i64::MIN, i64::MAX),
            Fixed::Float64 | Fixed::Uuid => return None,
        })
    }

    pub(crate) fn of(field_type: &FieldType) -> Option<Fixed> {
        Some(match field_type {
            FieldType::Bool => Fixed::Bool,
            FieldType::Int8 => Fixed::Int8,
            FieldType::Int16 => Fixed::Int16,
            FieldType::Uint16 => Fixed::Uint16,
            FieldType::Int32 => Fixed::Int32,
            FieldType::Uint32 => Fixed::Uint32,
            FieldType::Int64 => Fixed::Int64,
            FieldType::Float64 => Fixed::Float64,
            FieldType::Uuid => Fixed::Uuid,
            _ => return None,
        })
    }

    fn zero(self) -> Value {
        match self {
            Fixed::Bool => Value::Bool(false),
            Fixed::Float64 => Value::Float(Float64::from(0.0)),
            Fixed::Uuid => Value::Uuid([0; 16]),
            _ => Value::Integer(0),
        }
    }
}

impl WireType {
    /// Whether null is allowed.
    pub fn nullable(self) -> bool {
        match self {
            WireType::Fixed(_) => false,
            WireType::String { nullable, .. }
            | WireType::Bytes { nullable, .. }
            | WireType::Struct { nullable, .. }
            | WireType::Array { nullable, .. } => nullable,
        }
    }

    /// What values of it are called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            WireType::Fixed(fixed) => fixed.name(),
            WireType::String { .. } => "string",
            WireType::Bytes { .. } => "bytes",
            WireType::Struct { .. } => "struct",
            WireType::Array { .. } => "array",
        }
    }
}

/// A field of a layout.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name, verbatim from the definition.
    pub name: Arc<str>,
    /// How it is written.
    pub wire: WireType,
    /// Its tag, where it is a tagged field at this version.
    pub tag: Option<u32>,
    /// Its default, which a missing field means.
    pub default: Value,
    /// The encoded default of a tagged field: such a field is left out. Empty for fields that are not tagged.
    pub default_bytes: Vec<u8>,
    /// What it means, from the definition.
    pub about: Option<Arc<str>>,
    /// Whether it is a key of the array that its struct is an element of.
    pub map_key: bool,
}

/// A field of the definition that this version lacks.
#[derive(Clone, Debug)]
pub(crate) struct AbsentField {
    pub name: Arc<str>,
    pub ignorable: bool,
    pub default: Value,
    /// How many untagged fields of the struct come before it.
    pub place: usize,
}

impl AbsentField {
    /// Whether a value may be left out: it may be dropped, or is its default.
    pub(crate) fn may_lack(&self, value: &Value) -> bool {
        self.ignorable || is_default(value, &self.default)
    }
}

/// Whether a value means the same as a default. It may have come without its type, as JSON or by serde.
fn is_default(value: &Value, default: &Value) -> bool {
    match (default, value) {
        // A missing field has its default.
        (Value::Struct(default), Value::Struct(value)) => {
            let field =
                |(name, value): &(Arc<str>, Value)| default.get(name).is_some_and(|default| is_default(value, default));
            value.tags.is_empty() && value.fields.iter().all(field)
        }
        (Value::Bytes(default), Value::Array(value)) => {
            value.iter().eq(default.iter().map(|&byte| Value::Integer(byte.into())).collect::<Vec<_>>().iter())
        }
        (Value::Uuid(default), Value::Array(value)) => {
            value.iter().eq(default.map(|byte| Value::Integer(byte.into())).iter())
        }
        (Value::Uuid(default), Value::String(value)) => parse_uuid(value) == Some(*default),
        (Value::Bytes(default), Value::String(value)) => value.as_bytes() == default,
        (Value::Integer(default), Value::String(value)) => value.parse() == Ok(*default),
        (Value::Float(default), Value::Integer(value)) => {
            // Whole numbers come as such.
            i32::try_from(*value).is_ok_and(|value| Float64::from(f64::from(value)) == *default)
        }
        (default, value) => value == default,
    }
}

/// What may come next where fields come in the order of the definition.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    pub name: Arc<str>,
    /// How it is written; `None` if this version lacks it and it may be dropped.
    pub wire: Option<WireType>,
}

/// A struct of a layout; number 0 is the message itself.
#[derive(Clone, Debug)]
pub struct StructLayout {
    /// Its name.
    pub name: Arc<str>,
    /// Its untagged fields in wire order, as numbers of [`Layout::fields`].
    pub fields: Vec<u16>,
    /// Its tagged fields by ascending tag.
    pub tagged: Vec<u16>,
    /// Whether it ends with a tag section.
    pub flexible: bool,
    /// The least number of bytes an instance takes.
    pub smallest: u32,
    /// Names of all its fields at this version, those of the untagged ones first.
    pub(crate) names: Vec<Arc<str>>,
    /// Types of its untagged fields.
    pub(crate) wires: Vec<WireType>,
    /// Its untagged fields in the order of the definition, and between them those that this version may drop.
    pub(crate) due: Vec<Due>,
    pub(crate) absent: Vec<AbsentField>,
    pub(crate) steps: Vec<Step>,
}

/// What the decode loop does next in a struct: one step for a run of fixed-size fields, one for each other field.
// With a tag of its own, which is found with one comparison.
#[derive(Clone, Debug)]
#[repr(u8)]
pub(crate) enum Step {
    /// Fields of fixed sizes, `size` bytes in all.
    Run { fields: Vec<RunField>, size: u32, bools: Bools },
    /// A string.
    String { field: u16, compact: bool, nullable: bool },
    /// One field of any other type.
    Field { field: u16, wire: WireType },
}

/// Which bytes of a run are bools, all of them among the first eight: as a little-endian number of these, the bits that are
/// set in no bool but an odd one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bools(u64);

impl Bools {
    /// Where one more may stand.
    const UPTO: u32 = 8;

    /// Whether all that are there, in the bytes from the start of the run on, are 0 or 1; false where that is not certain.
    #[inline(always)]
    pub(crate) fn are_usual(self, bytes: &[u8]) -> bool {
        self.0 == 0 || bytes.first_chunk().is_some_and(|bytes| u64::from_le_bytes(*bytes) & self.0 == 0)
    }
}

/// A fixed-size field in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunField {
    pub field: u16,
    pub fixed: Fixed,
    /// Offset of its first byte in the run, and after its last one.
    pub start: u32,
    pub end: u32,
}

/// A message at one version.
#[derive(Clone, Debug)]
pub struct Layout {
    spec: Arc<MessageSpec>,
    version: ApiVersion,
    flexible: bool,
    fields: Vec<Field>,
    structs: Vec<StructLayout>,
}

impl Layout {
    /// Lowers a definition to one of its versions.
    pub fn new(spec: &Arc<MessageSpec>, version: ApiVersion) -> Result<Layout, SpecError> {
        if !spec.valid_versions.contains(version) {
            return Err(SpecError { place: spec.name.to_string(), kind: SpecErrorKind::NoSuchVersion(version.0) });
        }
        let mut lowering = Lowering {
            spec,
            version,
            flexible: spec.flexible_versions.contains(version),
            fields: Vec::new(),
            structs: Vec::new(),
            by_name: BTreeMap::new(),
        };
        lowering.structure(spec.name.clone(), &spec.fields, &spec.name)?;
        let Lowering { flexible, fields, structs, .. } = lowering;
        let mut layout = Layout { spec: spec.clone(), version, flexible, fields, structs };
        layout.encode_tagged_defaults()?;
        Ok(layout)
    }

    /// The definition it comes from.
    pub fn spec(&self) -> &Arc<MessageSpec> {
        &self.spec
    }

    /// The version it is of.
    pub fn version(&self) -> ApiVersion {
        self.version
    }

    /// Whether the version is flexible: compact lengths, tag sections (KIP-482).
    pub fn flexible(&self) -> bool {
        self.flexible
    }

    /// Every field of every struct; nodes and structs name them by number.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Every struct; number 0 is the message itself.
    pub fn structs(&self) -> &[StructLayout] {
        &self.structs
    }

    /// The message itself as a struct.
    pub fn root(&self) -> &StructLayout {
        self.structure(0)
    }

    /// A field by number.
    pub fn field(&self, number: u16) -> &Field {
        match self.fields.get(usize::from(number)) {
            Some(field) => field,
            None => unreachable!("field numbers come from this layout"),
        }
    }

    /// A struct by number.
    pub fn structure(&self, number: u16) -> &StructLayout {
        match self.structs.get(usize::from(number)) {
            Some(structure) => structure,
            None => unreachable!("struct numbers come from this layout"),
        }
    }

    /// The type as the definition language writes it, nullable strings as `nullable_string`.
    pub fn type_name(&self, wire: WireType) -> String {
        match wire {
            WireType::Fixed(fixed) => fixed.name().to_owned(),
            WireType::String { .. } => "string".to_owned(),
            WireType::Bytes { records: true, .. } => "records".to_owned(),
            WireType::Bytes { .. } => "bytes".to_owned(),
            WireType::Struct { id, .. } => self.structure(id).name.to_string(),
            WireType::Array { element, compact, .. } => format!("[]{}", self.type_name(element.wire(compact))),
        }
    }

    /// Place in [`StructLayout::tagged`] of the field with this tag. Those who send bytes choose how many tags there are,
    /// so each is found by halving.
    #[inline]
    pub(crate) fn tagged_place(&self, structure: &StructLayout, tag: u32) -> Option<usize> {
        structure.tagged.binary_search_by_key(&Some(tag), |&number| self.field(number).tag).ok()
    }

    /// The least number of bytes an element takes; never 0.
    pub(crate) fn smallest_element(&self, compact: bool, element: Element) -> usize {
        match element {
            Element::Fixed(fixed) => fixed.size().into(),
            Element::String if !compact => 2,
            Element::Bytes if !compact => 4,
            Element::String | Element::Bytes => 1,
            Element::Struct(id) => self.structure(id).smallest as usize,
        }
    }

    /// The value of all defaults.
    pub fn default_value(&self) -> Value {
        self.default_struct(0)
    }

    fn default_struct(&self, id: u16) -> Value {
        default_struct(&self.fields, self.structure(id))
    }

    /// The smallest legal instance: one element in each array, "" even where null would do, zeros, and for records one
    /// empty batch. Tagged fields are left at their defaults, which is absent.
    pub fn smallest_instance(&self) -> Value {
        self.smallest_struct(0)
    }

    /// The smallest value of a type, as [`Layout::smallest_instance`] has it: not null, one element.
    pub fn smallest_value(&self, wire: WireType) -> Value {
        match wire {
            WireType::Fixed(fixed) => fixed.zero(),
            WireType::String { .. } => Value::String(String::new()),
            WireType::Bytes { records: true, .. } => Value::Bytes(empty_record_batch()),
            WireType::Bytes { .. } => Value::Bytes(Vec::new()),
            WireType::Struct { id, .. } => self.smallest_struct(id),
            WireType::Array { element, compact, .. } => Value::Array(vec![self.smallest_value(element.wire(compact))]),
        }
    }

    fn smallest_struct(&self, id: u16) -> Value {
        let structure = self.structure(id);
        let untagged = structure.fields.iter().map(|&number| {
            let field = self.field(number);
            (field.name.clone(), self.smallest_value(field.wire))
        });
        let tagged = structure.tagged.iter().map(|&number| {
            let field = self.field(number);
            (field.name.clone(), field.default.clone())
        });
        Value::Struct(StructValue { fields: untagged.chain(tagged).collect(), tags: Vec::new() })
    }

    /// A copy that differs in one thing; it is planned anew. `None` where it could not be read: an element without bytes.
    pub(crate) fn altered(&self, alter: impl FnOnce(&mut Vec<Field>, &mut Vec<StructLayout>)) -> Option<Layout> {
        let mut layout = self.clone();
        alter(&mut layout.fields, &mut layout.structs);
        let Layout { fields, structs, .. } = &mut layout;
        for structure in structs {
            structure.tagged.sort_by_key(|&number| fields.get(usize::from(number)).and_then(|field| field.tag));
        }
        // A struct may hold one with a lower number, so one pass need not be enough.
        for _ in 0..layout.structs.len() {
            for id in (0..layout.structs.len()).rev() {
                plan(&layout.fields, &mut layout.structs, u16::try_from(id).ok()?);
            }
        }
        let element = |field: &Field| match field.wire {
            WireType::Array { element: Element::Struct(id), .. } => layout.structure(id).smallest > 0,
            _ => true,
        };
        if !layout.fields.iter().all(element) {
            return None;
        }
        layout.encode_tagged_defaults().ok()?;
        Some(layout)
    }

    /// A tagged field at its default is left out, so its encoded default is kept to compare with. Where that holds tagged
    /// fields of its own, they are left out of it: it is right when theirs are, one level of nesting later.
    fn encode_tagged_defaults(&mut self) -> Result<(), SpecError> {
        loop {
            let mut encoded = Vec::new();
            for (number, field) in self.fields.iter().enumerate().filter(|(_, field)| field.tag.is_some()) {
                let bytes = crate::encode::payload(self, field, &field.default).map_err(|error| SpecError {
                    place: format!("{}.{}", self.spec.name, field.name),
                    kind: SpecErrorKind::Default(error.to_string()),
                })?;
                if bytes != field.default_bytes {
                    encoded.push((number, bytes));
                }
            }
            if encoded.is_empty() {
                return Ok(());
            }
            for (number, bytes) in encoded {
                if let Some(field) = self.fields.get_mut(number) {
                    field.default_bytes = bytes;
                }
            }
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} v{}", self.spec.name, self.version)
    }
}

fn default_struct(fields: &[Field], structure: &StructLayout) -> Value {
    let of = |&number: &u16| fields.get(usize::from(number)).map(|field| (field.name.clone(), field.default.clone()));
    let fields = structure.fields.iter().chain(&structure.tagged).filter_map(of).collect();
    Value::Struct(StructValue { fields, tags: Vec::new() })
}

struct Lowering<'s> {
    spec: &'s MessageSpec,
    version: ApiVersion,
    flexible: bool,
    fields: Vec<Field>,
    structs: Vec<StructLayout>,
    by_name: BTreeMap<Arc<str>, u16>,
}

impl Lowering<'_> {
    /// Lowers a struct and, before its own smallest size is known, everything in it.
    fn structure(&mut self, name: Arc<str>, specs: &[FieldSpec], place: &str) -> Result<u16, SpecError> {
        let id = number(self.structs.len(), place)?;
        self.structs.push(StructLayout {
            name,
            fields: Vec::new(),
            tagged: Vec::new(),
            flexible: self.flexible,
            smallest: 0,
            names: Vec::new(),
            wires: Vec::new(),
            due: Vec::new(),
            absent: Vec::new(),
            steps: Vec::new(),
        });
        let (mut untagged, mut tagged, mut absent) = (Vec::new(), Vec::new(), Vec::new());
        for spec in specs {
            let place = format!("{place}.{}", spec.name);
            if !spec.versions.contains(self.version) {
                let default = self.absent_default(spec, &place)?;
                let (name, place) = (spec.name.clone(), untagged.len());
                absent.push(AbsentField { name, ignorable: spec.ignorable, default, place });
                continue;
            }
            let is_tagged = spec.tagged_versions.contains(self.version);
            let wire = self.wire(spec, &place)?;
            let default = self.default(spec, &spec.field_type, &place)?;
            if default == Value::Null && !wire.nullable() {
                return Err(SpecError { place, kind: SpecErrorKind::Default("null".to_owned()) });
            }
            let field = number(self.fields.len(), &place)?;
            self.fields.push(Field {
                name: spec.name.clone(),
                wire,
                tag: spec.tag.filter(|_| is_tagged),
                default,
                default_bytes: Vec::new(),
                about: spec.about.clone(),
                map_key: spec.map_key,
            });
            if is_tagged { tagged.push((spec.tag, field)) } else { untagged.push(field) }
        }
        tagged.sort_unstable();
        let Some(structure) = self.structs.get_mut(usize::from(id)) else { unreachable!("pushed above") };
        structure.fields = untagged;
        structure.tagged = tagged.into_iter().map(|(_, field)| field).collect();
        structure.absent = absent;
        plan(&self.fields, &mut self.structs, id);
        Ok(id)
    }

    fn named_struct(&mut self, name: &Arc<str>, place: &str) -> Result<u16, SpecError> {
        if let Some(&id) = self.by_name.get(name) {
            return Ok(id);
        }
        let Some(spec) = self.spec.structs.get(name) else { unreachable!("struct names are checked on parse") };
        let id = self.structure(name.clone(), &spec.fields, place)?;
        self.by_name.insert(name.clone(), id);
        Ok(id)
    }

    fn wire(&mut self, spec: &FieldSpec, place: &str) -> Result<WireType, SpecError> {
        let compact = match spec.flexible_versions {
            Some(own) => own.contains(self.version),
            None => self.flexible,
        };
        let nullable = spec.nullable_versions.contains(self.version);
        Ok(match &spec.field_type {
            FieldType::String => WireType::String { compact, nullable },
            FieldType::Bytes => WireType::Bytes { compact, nullable, records: false },
            FieldType::Records => WireType::Bytes { compact, nullable, records: true },
            FieldType::Struct(name) => WireType::Struct { id: self.named_struct(name, place)?, nullable },
            FieldType::Array(element) => {
                let element = match &**element {
                    FieldType::String => Element::String,
                    FieldType::Bytes | FieldType::Records => Element::Bytes,
                    FieldType::Struct(name) => {
                        let id = self.named_struct(name, place)?;
                        if self.structs.get(usize::from(id)).is_none_or(|structure| structure.smallest == 0) {
                            let kind = SpecErrorKind::EmptyElement(name.to_string());
                            return Err(SpecError { place: place.to_owned(), kind });
                        }
                        Element::Struct(id)
                    }
                    other => match Fixed::of(other) {
                        Some(fixed) => Element::Fixed(fixed),
                        None => unreachable!("an array of arrays is refused on parse"),
                    },
                };
                WireType::Array { compact, nullable, element }
            }
            other => match Fixed::of(other) {
                Some(fixed) => WireType::Fixed(fixed),
                None => unreachable!("every other type is matched above"),
            },
        })
    }

    /// The default of a field that this version lacks. What a struct would hold is not lowered: at this version it may not
    /// even be countable. It is made of all its fields, of whatever version.
    fn absent_default(&mut self, spec: &FieldSpec, place: &str) -> Result<Value, SpecError> {
        let (FieldDefault::Zero, FieldType::Struct(name)) = (&spec.default, &spec.field_type) else {
            return self.default(spec, &spec.field_type, place);
        };
        let fields = self.spec.structs.get(name).map(|part| part.fields.as_slice()).unwrap_or_default();
        let fields = fields.iter().map(|field| Ok((field.name.clone(), self.absent_default(field, place)?)));
        Ok(Value::Struct(StructValue { fields: fields.collect::<Result<_, SpecError>>()?, tags: Vec::new() }))
    }

    fn default(&mut self, spec: &FieldSpec, field_type: &FieldType, place: &str) -> Result<Value, SpecError> {
        Ok(match (&spec.default, field_type) {
            (FieldDefault::Null, _) => Value::Null,
            (FieldDefault::Integer(value), FieldType::Bool) => Value::Bool(*value != 0),
            (FieldDefault::Integer(value), _) => Value::Integer(*value),
            (FieldDefault::Float(value), _) => Value::Float(Float64::from(*value)),
            (FieldDefault::Text(text), _) => Value::String(text.clone()),
            (FieldDefault::Zero, FieldType::String) => Value::String(String::new()),
            (FieldDefault::Zero, FieldType::Records) if spec.nullable_versions.contains(self.version) => Value::Null,
            (FieldDefault::Zero, FieldType::Bytes | FieldType::Records) => Value::Bytes(Vec::new()),
            (FieldDefault::Zero, FieldType::Array(_)) => Value::Array(Vec::new()),
            (FieldDefault::Zero, FieldType::Struct(name)) => {
                let id = self.named_struct(name, place)?;
                match self.structs.get(usize::from(id)) {
                    Some(structure) => default_struct(&self.fields, structure),
                    None => unreachable!("lowered just now"),
                }
            }
            (FieldDefault::Zero, other) => match Fixed::of(other) {
                Some(fixed) => fixed.zero(),
                None => unreachable!("every other type is matched above"),
            },
        })
    }
}

/// Works out what the loops do in a struct, and its smallest size; the structs it holds are planned before.
fn plan(fields: &[Field], structs: &mut [StructLayout], id: u16) {
    let Some(structure) = structs.get(usize::from(id)) else { return };
    let mut smallest = u32::from(structure.flexible);
    let mut steps: Vec<Step> = Vec::new();
    let all = structure.fields.iter().chain(&structure.tagged).filter_map(|&number| fields.get(usize::from(number)));
    let names = all.map(|field| field.name.clone()).collect();
    let (mut wires, mut due) = (Vec::new(), Vec::new());
    let mut absent = structure.absent.iter().filter(|absent| absent.ignorable).peekable();
    let dropped = |absent: &AbsentField| Due { name: absent.name.clone(), wire: None };
    for (place, &number) in structure.fields.iter().enumerate() {
        let Some(field) = fields.get(usize::from(number)) else { continue };
        due.extend(std::iter::from_fn(|| absent.next_if(|absent| absent.place <= place)).map(dropped));
        due.push(Due { name: field.name.clone(), wire: Some(field.wire) });
        smallest = smallest.saturating_add(smallest_field(structs, field.wire));
        wires.push(field.wire);
        let fixed = match field.wire {
            WireType::Fixed(fixed) => fixed,
            wire => {
                steps.push(match wire {
                    WireType::String { compact, nullable } => Step::String { field: number, compact, nullable },
                    wire => Step::Field { field: number, wire },
                });
                continue;
            }
        };
        let bool = fixed == Fixed::Bool;
        if !matches!(steps.last(), Some(&Step::Run { size, .. }) if !bool || size < Bools::UPTO) {
            steps.push(Step::Run { fields: Vec::new(), size: 0, bools: Bools(0) });
        }
        if let Some(Step::Run { fields, size, bools }) = steps.last_mut() {
            let end = *size + u32::from(fixed.size());
            fields.push(RunField { field: number, fixed, start: *size, end });
            if bool {
                bools.0 |= 0xfe << (8 * *size);
            }
            *size = end;
        }
    }
    due.extend(absent.map(dropped));
    if let Some(structure) = structs.get_mut(usize::from(id)) {
        (structure.smallest, structure.steps) = (smallest, steps);
        (structure.names, structure.wires, structure.due) = (names, wires, due);
    }
}

fn smallest_field(structs: &[StructLayout], wire: WireType) -> u32 {
    match wire {
        WireType::Fixed(fixed) => fixed.size().into(),
        WireType::String { compact: false, .. } => 2,
        WireType::Bytes { compact: false, .. } | WireType::Array { compact: false, .. } => 4,
        WireType::String { .. } | WireType::Bytes { .. } | WireType::Array { .. } => 1,
        WireType::Struct { nullable: true, .. } => 1,
        WireType::Struct { id, .. } => structs.get(usize::from(id)).map_or(0, |structure| structure.smallest),
    }
}

fn number(length: usize, place: &str) -> Result<u16, SpecError> {
    // The highest number is kept free for nodes without a field.
    u16::try_from(length)
        .ok()
        .filter(|&number| number < u16::MAX)
        .ok_or_else(|| SpecError { place: place.to_owned(), kind: SpecErrorKind::TooLarge })
}

/// An empty record batch of magic 2: 61 bytes, no producer, CRC-32C over attributes to the end (protocol guide,
/// "Record Batch").
pub fn empty_record_batch() -> Vec<u8> {
    let mut after_crc = Vec::with_capacity(40);
    after_crc.extend([0; 2 + 4 + 8 + 8]); // attributes, last offset delta, base and greatest timestamp
    after_crc.extend([0xff; 8 + 2 + 4]); // producer id, producer epoch and base sequence: none
    after_crc.extend([0; 4]); // no records
    let mut batch = vec![0; 8]; // base offset
    batch.extend(49_u32.to_be_bytes()); // bytes that follow
    batch.extend([0; 4]); // partition leader epoch
    batch.push(2); // magic
    batch.extend(crc32c(&after_crc).to_be_bytes());
    batch.extend(after_crc);
    batch
}

/// CRC-32C (Castagnoli), bit by bit: only ever run over 40 bytes.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32c_is_castagnoli() {
        // The check value of the CRC catalogue, and the 32 zero bytes of RFC 3720 B.4.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(empty_record_batch().len(), 61);
    }

    fn layout(fields: &str, version: i16) -> Result<Layout, SpecErrorKind> {
        let text = format!(
            r#"{{"name":"T","type":"data","validVersions":"0-3","flexibleVersions":"2+","fields":[{fields}]}}"#
        );
        let spec = MessageSpec::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        Layout::new(&Arc::new(spec), ApiVersion(version)).map_err(|error| error.kind)
    }

    #[test]
    fn an_array_of_elements_without_bytes_is_refused() {
        let fields =
            r#"{"name":"A","type":"[]S","versions":"0+","fields":[{"name":"B","type":"int8","versions":"1+"}]}"#;
        assert!(matches!(layout(fields, 0), Err(SpecErrorKind::EmptyElement(_))));
        // A byte of their own, or the tag section of a flexible version, makes them countable.
        assert!(layout(fields, 1).is_ok() && layout(fields, 2).is_ok());
    }

    fn of(fields: &str, version: i16) -> Layout {
        layout(fields, version).unwrap_or_else(|kind| panic!("{kind}"))
    }

    #[test]
    fn each_type_of_a_fixed_size_is_as_the_guide_has_it() {
        let integer = Value::Integer(0);
        let types = [
            ("bool", 1, Some((0, 1)), Value::Bool(false)),
            ("int8", 1, Some((-128, 127)), integer.clone()),
            ("int16", 2, Some((-32_768, 32_767)), integer.clone()),
            ("uint16", 2, Some((0, 65_535)), integer.clone()),
            ("int32", 4, Some((-2_147_483_648, 2_147_483_647)), integer.clone()),
            ("uint32", 4, Some((0, 4_294_967_295)), integer.clone()),
            ("int64", 8, Some((-9_223_372_036_854_775_808, 9_223_372_036_854_775_807)), integer),
            ("float64", 8, None, Value::Float(Float64::from(0.0))),
            ("uuid", 16, None, Value::Uuid([0; 16])),
        ];
        for (name, size, range, zero) in types {
            let layout = of(
                &format!(
                    r#"{{"name":"A","type":"{name}","versions":"0+"}},{{"name":"B","type":"[]{name}","versions":"0+"}}"#
                ),
                0,
            );
            let [one, array] = layout.fields() else { panic!("two fields") };
            let WireType::Fixed(fixed) = one.wire else { panic!("{name}") };
            assert_eq!((fixed.name(), fixed.size(), fixed.integer_range(), &one.default), (name, size, range, &zero));
            assert_eq!(
                (layout.type_name(one.wire), layout.type_name(array.wire)),
                (name.to_owned(), format!("[]{name}"))
            );
            assert_eq!(layout.smallest_element(false, Element::Fixed(fixed)), usize::from(size));
            assert_eq!(layout.smallest_value(array.wire), Value::Array(vec![zero]));
            assert_eq!((one.wire.nullable(), layout.root().smallest), (false, u32::from(size) + 4));
        }
    }

    #[test]
    fn types_of_other_sizes_go_by_their_names_and_claim_a_length_at_least() {
        let fields = r#"{"name":"A","type":"string","versions":"0+","nullableVersions":"1+"},
            {"name":"B","type":"bytes","versions":"0+"},{"name":"C","type":"records","versions":"0+"},
            {"name":"D","type":"S","versions":"0+","fields":[{"name":"E","type":"int8","versions":"0+"}]},
            {"name":"F","type":"[]string","versions":"0+"},{"name":"G","type":"[]bytes","versions":"0+"},
            {"name":"H","type":"[]S","versions":"0+"}"#;
        // Of plain lengths a string's takes two bytes and any other four; each compact one takes a byte at least, as does a
        // struct's tag section.
        for (version, sizes, smallest) in [(0, [2, 4, 1], 2 + 4 + 4 + 1 + 3 * 4), (2, [1, 1, 2], 1 + 1 + 1 + 2 + 3 + 1)]
        {
            let layout = of(fields, version);
            let names: Vec<_> =
                layout.root().fields.iter().map(|&id| layout.type_name(layout.field(id).wire)).collect();
            assert_eq!(names, ["string", "bytes", "records", "S", "[]string", "[]bytes", "[]S"]);
            let elements = [Element::String, Element::Bytes, Element::Struct(1)];
            assert_eq!(elements.map(|element| layout.smallest_element(version == 2, element)), sizes);
            assert_eq!((layout.structs().len(), layout.root().smallest), (2, smallest));
            assert_eq!(
                (layout.flexible(), layout.version(), &*layout.spec().name),
                (version == 2, ApiVersion(version), "T")
            );
            assert_eq!((layout.to_string(), layout.field(0).wire.nullable()), (format!("T v{version}"), version == 2));
        }
    }

    #[test]
    fn a_field_has_its_default_or_that_of_its_type() {
        let fields = r#"{"name":"A","type":"bool","versions":"0+","default":"true"},
            {"name":"B","type":"bool","versions":"0+","default":"false"},
            {"name":"C","type":"records","versions":"0+","nullableVersions":"1+"},
            {"name":"D","type":"string","versions":"0+","nullableVersions":"1+"}"#;
        let [none, text] = [Value::Bytes(Vec::new()), Value::String(String::new())];
        for (version, records) in [(0, &none), (1, &Value::Null)] {
            let layout = of(fields, version);
            let defaults: Vec<_> = layout.fields().iter().map(|field| &field.default).collect();
            assert_eq!(defaults, [&Value::Bool(true), &Value::Bool(false), records, &text]);
        }
        let null = r#"{"name":"A","type":"string","versions":"0+","nullableVersions":"1+","default":"null"}"#;
        assert!(matches!(layout(null, 0), Err(SpecErrorKind::Default(_))));
        assert_eq!(of(null, 1).field(0).default, Value::Null);
    }

    #[test]
    fn a_field_of_another_version_is_not_lowered() {
        // At version 0 its array would hold elements without bytes.
        let fields = r#"{"name":"A","type":"S","versions":"1+","fields":[{"name":"B","type":"[]E","versions":"0+",
            "fields":[{"name":"C","type":"int8","versions":"1+"}]}]}"#;
        assert!(of(fields, 0).fields().is_empty() && of(fields, 1).fields().len() == 3);
    }

    #[test]
    fn numbers_leave_one_free_that_means_no_field() {
        assert_eq!(number(65_534, "").map_err(|error| error.kind), Ok(65_534));
        for many in [65_535, 65_536] {
            assert_eq!(number(many, "").map_err(|error| error.kind), Err(SpecErrorKind::TooLarge));
        }
    }

    #[test]
    fn bools_are_looked_at_together_while_they_are_among_the_first_eight_bytes() {
        let field = |name: &str, kind: &str| format!(r#"{{"name":"{name}","type":"{kind}","versions":"0+"}}"#);
        let steps = |kinds: &[&str]| {
            let fields: Vec<_> = ["A", "B", "C", "D"].iter().zip(kinds).map(|(name, kind)| field(name, kind)).collect();
            of(&fields.join(","), 0).root().steps.clone()
        };
        let steps = |kinds: &[&str]| -> Vec<_> {
            let run = |step: &Step| match step {
                Step::Run { fields, size, bools } => (fields.len(), *size, bools.0),
                _ => panic!("{kinds:?}"),
            };
            steps(kinds).iter().map(run).collect()
        };
        assert_eq!(steps(&["int64", "int32"]), [(2, 12, 0)]);
        assert_eq!(steps(&["bool", "int16", "bool"]), [(3, 4, 0xfe0000fe)]);
        assert_eq!(steps(&["int32", "int16", "int8", "bool"]), [(4, 8, 0xfe << 56)]);
        assert_eq!(steps(&["int64", "bool", "bool"]), [(1, 8, 0), (2, 2, 0xfefe)]);

        let bools = Bools(0xfe00_00fe);
        assert!(bools.are_usual(&[1, 7, 7, 1, 7, 7, 7, 7]) && bools.are_usual(&[0; 9]));
        for odd in [2, 0x80, 0xfe, 0xff] {
            assert!(!bools.are_usual(&[odd, 0, 0, 0, 0, 0, 0, 0]) && !bools.are_usual(&[0, 0, 0, odd, 0, 0, 0, 0]));
            assert!(!bools.are_usual(&[odd, 0, 0, odd, 0, 0, 0, 0]));
        }
        assert!(!bools.are_usual(&[0; 7]), "not certain");
        assert!(Bools(0).are_usual(&[]) && Bools(0).are_usual(&[9; 9]));
    }

    #[test]
    fn an_altered_layout_is_planned_anew() {
        let fields = r#"{"name":"A","type":"[]S","versions":"0+","fields":[
            {"name":"B","type":"int8","versions":"2+","taggedVersions":"2+","tag":0},
            {"name":"C","type":"int8","versions":"2+","taggedVersions":"2+","tag":1,"default":"5"}]}"#;
        let layout = of(fields, 2);
        let without_tags = |structs: &mut Vec<StructLayout>| structs.iter_mut().for_each(|one| one.flexible = false);
        assert!(layout.altered(|_, structs| without_tags(structs)).is_none(), "an element would have no bytes");
        let Some(altered) = layout.altered(|fields, structs| {
            fields.iter_mut().for_each(|field| field.tag = field.tag.map(|tag| 9 - tag));
            structs.iter_mut().take(1).for_each(|one| one.flexible = false);
        }) else {
            panic!("it can be read")
        };
        assert_eq!(
            altered.structure(1).tagged.iter().map(|&id| altered.field(id).tag).collect::<Vec<_>>(),
            [Some(8), Some(9)]
        );
        assert_eq!(
            altered.fields().iter().map(|field| field.default_bytes.clone()).collect::<Vec<_>>(),
            [vec![0], vec![5], vec![]]
        );
        assert_eq!((layout.root().smallest, altered.root().smallest), (2, 1));
    }

    #[test]
    fn runs_of_fixed_fields_are_one_step() {
        let fields = r#"{"name":"A","type":"int32","versions":"0+"},{"name":"B","type":"bool","versions":"1+"},
                        {"name":"C","type":"string","versions":"0+"},{"name":"D","type":"uuid","versions":"0+"}"#;
        let layout = of(fields, 1);
        let [Step::Run { fields: before, size: 5, .. }, Step::String { .. }, Step::Run { fields: after, size: 16, .. }] =
            layout.root().steps.as_slice()
        else {
            panic!("{:?}", layout.root().steps)
        };
        let places = |fields: &[RunField]| -> Vec<_> {
            fields.iter().map(|field| (field.field, field.fixed, field.start, field.end)).collect()
        };
        assert_eq!(places(before), [(0, Fixed::Int32, 0, 4), (1, Fixed::Bool, 4, 5)]);
        assert_eq!(places(after), [(3, Fixed::Uuid, 0, 16)]);
        assert_eq!(layout.root().smallest, 5 + 2 + 16);
    }
}
