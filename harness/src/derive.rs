//! Cases that follow from the definitions alone: each field at each of its boundaries, each length, count and tag wrong
//! in each way, each value that has no encoding. What the case files lack of them is added; authors are asked elsewhere.

use crate::adapter;
use crate::names::kebab;
use crate::recipe;
use crate::vector::Vector;
use codec::{
    AbsentFields, ApiVersion, Element, FieldDefault, FieldSpec, FieldType, Fixed, Layout, MessageSpec, NodeKind,
    NodeRef, Protocol, Value, WireType,
};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Lengths of text and bytes at which something changes: a compact length grows a byte at 127 and 16,383.
const LENGTHS: [usize; 4] = [1, 126, 127, 128];
/// Those that are asked for at the last plain and the last flexible version only: cases of this size cost their keep in
/// every run.
const LONG_LENGTHS: [usize; 4] = [16_382, 16_383, 16_384, 32_767];
/// ApiVersions, DescribeConfigs, AlterConfigs and IncrementalAlterConfigs.
const CONFIG_APIS: [i16; 4] = [18, 32, 33, 44];
/// Numbers of elements; a compact count of 127 takes a second byte.
const COUNTS: [usize; 4] = [2, 126, 127, 128];
/// More elements than a thousand or 1,024, at which some stop; asked for at the last plain and the last flexible version
/// only, and of one list where all are of structs.
const MANY: usize = 1_025;
/// Elements whose compact count is the last of two bytes and the first of three; asked for at the last flexible version only,
/// of one list whose elements are small and have no key, which some make slow.
const VERY_MANY: [usize; 2] = [16_382, 16_383];
/// JSON values and bytes that an element of it has at most: an adapter's line holds four times as many values as there are
/// elements, where it may show more of a struct than there is; and each run reads and writes all of the bytes several times.
const SMALL: [usize; 2] = [1, 4];
/// What somebody may tidy up in a text, which nobody may: blanks at its ends, a tab, line ends, accents composed and not,
/// letters whose other case is longer.
const UNTIDY: &str = " \t\u{a0}e\u{301}\u{e9}\u{212b}\r\n\n\ra  \u{fb01}\u{130}\u{df}\u{200b}\"\\\u{fffd}\u{85}\r\n ";
/// The uuid that ends with a one.
const UUID_OF_ONE: [u8; 16] = 1_u128.to_be_bytes();
/// A byte order mark at its start, which is text like any other there, and another one.
const MARKED: &str = "\u{feff}a\u{feff}";
/// Before the slug of a parent that is new as well, while slugs are not final.
const NEW: char = '+';
/// The greatest tag that a field may have (KIP-482 leaves out the highest).
const HIGHEST_TAG: u32 = i32::MAX as u32 - 1;

/// A case at one or several versions, without authors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    /// Its slug, the last part of its ids.
    pub slug: String,
    /// The rule.
    pub rule: &'static str,
    /// The lowest and the highest version.
    pub versions: (i16, i16),
    /// Citations.
    pub cite: Vec<String>,
    /// What a correct codec does.
    pub requires: String,
    /// Bytes by version; none where a value must be refused.
    pub bytes: BTreeMap<i16, Vec<u8>>,
    /// The value, long ones as recipes.
    pub value: Option<Json>,
    /// Several readings.
    pub values: Vec<Json>,
    /// Id of the case that was changed.
    pub parent: Option<String>,
    /// How.
    pub mutation: Option<String>,
    /// Lengths of those prefixes of the bytes that are the cases, in place of the bytes themselves, by version.
    pub cuts: BTreeMap<i16, BTreeSet<usize>>,
}

/// A case at one version, before versions that say the same are joined.
#[derive(Clone, Debug, Default)]
struct Made {
    slug: String,
    rule: &'static str,
    path: String,
    also_cite: Option<&'static str>,
    requires: String,
    bytes: Option<Vec<u8>>,
    value: Option<Json>,
    values: Vec<Json>,
    mutation: Option<String>,
    /// The message that was changed, where it is not the smallest one.
    parent: Option<Vec<u8>>,
    cuts: BTreeSet<usize>,
}

/// The derived cases of a message that `known` lacks: none has their bytes, or their value where one must be refused.
pub fn missing(protocol: &Protocol, spec: &MessageSpec, known: &[&Vector]) -> Result<Vec<Derived>, codec::SpecError> {
    let mut derived: Vec<Derived> = Vec::new();
    let layouts = spec.valid_versions.iter().map(|version| protocol.layout(&spec.name, version));
    let layouts = layouts.collect::<Result<Vec<_>, _>>()?;
    for (index, layout) in layouts.iter().enumerate() {
        // What an encoding does at its limits shows in its last version, where cases of size are worth their cost.
        let edge = layouts.get(index + 1).is_none_or(|next| next.flexible() != layout.flexible());
        // Header 0 goes with one request alone, which fixes two of its three numbers.
        let of_one_request = &*spec.name == "RequestHeader" && layout.version() == ApiVersion(0);
        let version = layout.version();
        let of_version: Vec<&Vector> =
            known.iter().copied().filter(|case| case.version == version && case.part.name() == "body").collect();
        let mut maker = Maker::new(layout, &layouts, unused_tag(spec));
        if of_one_request {
            maker.header_of_one_request();
        } else if edge || config_api(spec) || lacks_tags(spec, version) {
            maker.all(edge);
        } else {
            maker.between_edges();
        }
        let parent_of = |bytes: &Vec<u8>| {
            let known = of_version.iter().find(|case| case.bytes.as_ref() == Some(bytes));
            let made = || maker.made.iter().find(|case| case.bytes.as_ref() == Some(bytes));
            known.map(|case| case.slug().to_owned()).or_else(|| made().map(|case| format!("{NEW}{}", case.slug)))
        };
        let smallest = parent_of(&maker.bytes).unwrap_or_default();
        let parents: Vec<String> = maker
            .made
            .iter()
            .map(|case| case.parent.as_ref().map_or_else(|| smallest.clone(), |of| parent_of(of).unwrap_or_default()))
            .collect();
        let mut bytes: BTreeSet<Vec<u8>> = of_version.iter().filter_map(|case| case.bytes.clone()).collect();
        // What is left out of a value has its default.
        let whole = |value: &Json| {
            Value::from_json(layout, value, AbsentFields::Keep).map_or_else(|_| value.clone(), |value| value.to_json())
        };
        let values = of_version.iter().filter(|case| case.bytes.is_none()).filter_map(|case| case.value.as_ref());
        let mut refused: BTreeSet<String> = values.map(|value| whole(value).to_string()).collect();
        for (mut case, parent) in maker.made.into_iter().zip(parents) {
            let new = match (&case.bytes, &case.value) {
                (Some(whole), _) if !case.cuts.is_empty() => {
                    case.cuts.retain(|cut| whole.get(..*cut).is_some_and(|prefix| !bytes.contains(prefix)));
                    !case.cuts.is_empty()
                }
                (Some(whole), _) => bytes.insert(whole.clone()),
                (None, value) => {
                    let value = value.as_ref().and_then(|value| recipe::expand(value).ok()).unwrap_or_default();
                    refused.insert(whole(&value).to_string())
                }
            };
            if !new {
                continue;
            }
            push(&mut derived, spec, version, case, &parent);
        }
    }
    Ok(with_unique_slugs(derived, known))
}

/// The config APIs, the handshake of versions, the headers, and the one request with a header of its own are derived at
/// every version, what they stand on at the last plain and the last flexible one.
fn config_api(spec: &MessageSpec) -> bool {
    spec.api_key.is_none_or(|key| key.0 == 7 || CONFIG_APIS.contains(&key.0))
}

/// Whether a later version has tagged fields that this one, flexible as well, lacks.
fn lacks_tags(spec: &MessageSpec, version: ApiVersion) -> bool {
    let structs = spec.structs.values().map(|structure| &structure.fields);
    let mut fields = structs.chain([&spec.fields]).flatten();
    spec.flexible_versions.contains(version)
        && fields.any(|field| field.tag.is_some() && !field.versions.contains(version))
}

/// The fields that a struct of a layout has in any version; its number is 0 for the message itself.
pub fn fields_of(layout: &Layout, id: u16) -> &[FieldSpec] {
    let spec = layout.spec();
    let inner = spec.structs.get(&layout.structure(id).name).filter(|_| id > 0);
    inner.map_or(&spec.fields, |structure| &structure.fields)
}

/// A tag that no struct of the message declares at any version.
fn unused_tag(spec: &MessageSpec) -> u32 {
    let of = |fields: &[FieldSpec]| fields.iter().filter_map(|field| field.tag).max();
    let highest = spec.structs.values().filter_map(|structure| of(&structure.fields)).max().max(of(&spec.fields));
    highest.map_or(9, |tag| tag + 10)
}

/// Adds a case: to the one before it at the version before, where they say the same.
fn push(derived: &mut Vec<Derived>, spec: &MessageSpec, version: ApiVersion, case: Made, parent: &str) {
    let Made { slug, rule, path, also_cite, requires, bytes, value, values, mutation, parent: _, cuts } = case;
    let field: Vec<&str> = path.split('.').map(|step| step.split('[').next().unwrap_or(step)).collect();
    let field = field
        .iter()
        .filter(|step| !step.is_empty() && **step != "_tags")
        .fold(spec.name.to_string(), |all, step| all + "." + step);
    let cite: Vec<String> = [field].into_iter().chain(also_cite.map(str::to_owned)).collect();
    let parent = (mutation.is_some() && !parent.is_empty()).then(|| parent.to_owned());
    let same = derived.iter_mut().find(|other| {
        other.slug == slug
            && other.versions.1 + 1 == version.0
            && (&other.cite, &other.requires, &other.value, &other.values) == (&cite, &requires, &value, &values)
            && (&other.parent, &other.mutation) == (&parent, &mutation)
    });
    let case = match same {
        Some(case) => case,
        None => {
            let versions = (version.0, version.0);
            let (bytes, cuts) = (BTreeMap::new(), BTreeMap::new());
            derived.push(Derived {
                slug,
                rule,
                versions,
                cite,
                requires,
                bytes,
                value,
                values,
                parent,
                mutation,
                cuts,
            });
            let Some(case) = derived.last_mut() else { return };
            case
        }
    };
    case.versions.1 = version.0;
    case.bytes.extend(bytes.map(|bytes| (version.0, bytes)));
    if !cuts.is_empty() {
        case.cuts.insert(version.0, cuts);
    }
}

/// Ids are unique in a file: of several cases with one slug, and where the file has it already, each says its version.
fn with_unique_slugs(mut derived: Vec<Derived>, known: &[&Vector]) -> Vec<Derived> {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for case in &derived {
        *count.entry(case.slug.clone()).or_default() += 1;
    }
    let taken: BTreeSet<&str> = known.iter().map(|case| case.slug()).collect();
    // Of prefixes each has its length at the end.
    let is_length = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let of_prefix = |other: &&str, slug: &str| {
        other.strip_prefix(slug).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_length)
    };
    let is_taken = |slug: &str| taken.contains(slug) || taken.iter().any(|other| of_prefix(other, slug));
    let named = |slug: &str, version: i16| match count.get(slug) {
        Some(2..) => format!("{slug}-v{version}"),
        _ if is_taken(slug) => format!("{slug}-v{version}"),
        _ => slug.to_owned(),
    };
    // A parent is found by its slug, among what is new by that of the same version.
    let valid = derived.iter().filter(|case| case.mutation.is_none() && !case.bytes.is_empty());
    let new: Vec<(String, i16, i16, String)> = valid
        .map(|case| (case.slug.clone(), case.versions.0, case.versions.1, named(&case.slug, case.versions.0)))
        .collect();
    for case in &mut derived {
        let of = new.iter().find(|(slug, lowest, highest, _)| {
            case.parent.as_ref().and_then(|parent| parent.strip_prefix(NEW)) == Some(slug)
                && (*lowest..=*highest).contains(&case.versions.0)
        });
        if let Some((.., slug)) = of {
            case.parent = Some(slug.clone());
        }
        case.slug = named(&case.slug, case.versions.0);
    }
    derived
}

/// Unknown tagged fields by tag.
type Tags = Vec<(u32, Vec<u8>)>;

/// Makes the cases of one layout.
struct Maker<'l> {
    layout: &'l Layout,
    /// The layouts of all versions.
    others: &'l [std::sync::Arc<Layout>],
    /// A tag that nobody declares.
    tag: u32,
    /// The smallest message.
    smallest: Value,
    /// Its bytes.
    bytes: Vec<u8>,
    made: Vec<Made>,
}

/// A field as it is reached in a value, or an element of one that is no struct: the message that holds it, and its path.
struct Place<'l> {
    base: Value,
    path: String,
    field: &'l codec::Field,
    /// Its type; of an element that of the element.
    wire: WireType,
}

impl Place<'_> {
    /// What sentences call it.
    fn name(&self) -> String {
        name(&self.path, Some(self.wire))
    }

    /// A slug of what is at this place.
    fn slug(&self, what: &str) -> String {
        slug(&self.path, Some(self.wire), what)
    }

    /// Its tag, where it is a tagged field.
    fn tag(&self) -> Option<u32> {
        self.field.tag.filter(|_| !self.path.ends_with(']'))
    }
}

/// A struct as it is reached in a value.
struct Reached {
    base: Value,
    path: String,
    /// Its number in the layout.
    id: u16,
}

impl<'l> Maker<'l> {
    fn new(layout: &'l Layout, others: &'l [std::sync::Arc<Layout>], tag: u32) -> Maker<'l> {
        let smallest = layout.smallest_instance();
        let bytes = codec::encode(layout, &smallest).unwrap_or_default();
        Maker { layout, others, tag, smallest, bytes, made: Vec::new() }
    }

    /// A header that goes with ControlledShutdown version 0 alone: of its three numbers one is free.
    fn header_of_one_request(&mut self) {
        for (name, number) in [("RequestApiKey", 7), ("RequestApiVersion", 0)] {
            self.smallest = with(&self.smallest, name, Value::Integer(number));
        }
        self.bytes = codec::encode(self.layout, &self.smallest).unwrap_or_default();
        let smallest = self.smallest.clone();
        let requires = "The header of ControlledShutdown version 0 ends with the correlation id.";
        self.valid("smallest", "well-formed", "", None, &smallest, requires.into());
        let (mut places, mut structs) = (Vec::new(), Vec::new());
        self.reach(0, &smallest, "", &mut places, &mut structs);
        for place in places.iter().filter(|place| place.path == "CorrelationId") {
            self.boundaries(place, true);
        }
        self.cuts();
    }

    /// Of a version that little is derived for: fields that it is the last to lack, and elements that are text, which no
    /// other case of such a version is about.
    fn between_edges(&mut self) {
        let (mut places, mut structs) = (Vec::new(), Vec::new());
        let smallest = self.smallest.clone();
        self.reach(0, &smallest, "", &mut places, &mut structs);
        let next = ApiVersion(self.layout.version().0 + 1);
        for reached in &structs {
            self.absent_fields(reached, |field| field.versions.contains(next));
        }
        let text = |place: &Place<'_>| place.path.ends_with(']') && !matches!(place.wire, WireType::Fixed(_));
        if places.iter().any(text) {
            self.smallest_case();
            self.mutations(|edit| {
                edit.slug.ends_with("-element-null") || edit.slug.ends_with("-element-claims-past-end")
            });
        }
    }

    /// The smallest message, which the changed ones are changed of.
    fn smallest_case(&mut self) {
        let requires = "The smallest legal message, one element in each array, is read and written.";
        self.valid("smallest", "well-formed", "", None, &self.smallest.clone(), requires.into());
    }

    fn all(&mut self, edge: bool) {
        self.smallest_case();
        let smallest = self.smallest.clone();
        let (mut places, mut structs) = (Vec::new(), Vec::new());
        self.reach(0, &smallest, "", &mut places, &mut structs);
        for place in &places {
            self.boundaries(place, edge);
        }
        for reached in &structs {
            if self.layout.structure(reached.id).flexible {
                self.unknown_tags(&reached.base, &reached.path, edge);
                self.tags_of_other_versions(reached);
            }
        }
        if edge {
            self.many_elements(&places);
            self.very_many_elements(&places);
        }
        for reached in &structs {
            self.absent_fields(reached, |_| true);
        }
        self.mutations(|_| true);
        for place in &places {
            self.tagged_mutations(place);
        }
        self.cuts();
    }

    /// Every field that a value of this layout can hold, with a value in which the way to it exists; and every struct, the
    /// same way.
    fn reach(&self, id: u16, base: &Value, path: &str, places: &mut Vec<Place<'l>>, structs: &mut Vec<Reached>) {
        let layout = self.layout;
        let structure = layout.structure(id);
        structs.push(Reached { base: base.clone(), path: path.to_owned(), id });
        for &number in structure.fields.iter().chain(&structure.tagged) {
            let field = layout.field(number);
            let path = if path.is_empty() { field.name.to_string() } else { format!("{path}.{}", field.name) };
            places.push(Place { base: base.clone(), path: path.clone(), field, wire: field.wire });
            let one = || with(base, &path, layout.smallest_value(field.wire));
            let (inner, step) = match field.wire {
                WireType::Struct { id, .. } => (id, ""),
                WireType::Array { element: Element::Struct(id), .. } => (id, "[0]"),
                WireType::Array { compact, element, .. } => {
                    let wire = element_wire(element, compact);
                    places.push(Place { base: one(), path: format!("{path}[0]"), field, wire });
                    continue;
                }
                _ => continue,
            };
            let base = one();
            self.reach(inner, &base, &format!("{path}{step}"), places, structs);
        }
    }

    /// A message of more than 64 KiB: three elements, each with a text of the greatest length.
    fn over_64_kib(&mut self, place: &Place<'_>) {
        let Place { base, path, field, .. } = place;
        let WireType::Array { element: Element::Struct(id), .. } = field.wire else { return };
        let mut fields = self.layout.structure(id).fields.iter().map(|&number| self.layout.field(number));
        let Some(text) = fields.find(|field| matches!(field.wire, WireType::String { .. })) else { return };
        let Value::Array(one) = self.layout.smallest_value(field.wire) else { return };
        let long = |letter: &str| {
            one.iter().map(|one| with(one, &text.name, Value::String(letter.repeat(32_767)))).collect::<Vec<_>>()
        };
        let value = with(base, path, Value::Array(["a", "b", "c"].into_iter().flat_map(long).collect()));
        let requires = format!("A message may be larger than 64 KiB: here {} has long text.", plain(path));
        self.valid(&format!("{}-over-64-kib", kebab_path(path)), "well-formed", path, None, &value, requires);
    }

    /// So many elements: equal ones, but where they have a key, which counts up.
    fn elements(&self, wire: WireType, count: usize) -> Option<Vec<Value>> {
        let Value::Array(one) = self.layout.smallest_value(wire) else { return None };
        let one = one.into_iter().next()?;
        let WireType::Array { element: Element::Struct(id), .. } = wire else { return Some(vec![one; count]) };
        let structure = self.layout.structure(id);
        let mut fields = structure.fields.iter().map(|&number| self.layout.field(number));
        let is_key = |field: &&codec::Field| field.map_key && field.wire != WireType::Fixed(Fixed::Int8);
        let Some(key) = fields.find(is_key) else { return Some(vec![one; count]) };
        let numbered = |number: usize| {
            let text = matches!(key.wire, WireType::String { .. });
            let number = i64::try_from(number).ok()?;
            let value = if text { Value::String(number.to_string()) } else { Value::Integer(number) };
            Some(with(&one, &key.name, value))
        };
        if count == 1 {
            return Some(vec![one]);
        }
        // 126 says nothing that 127 and 128 do not.
        (count != 126).then(|| (0..count).filter_map(numbered).collect())
    }

    /// A value that every codec must write as one and the same bytes, and read back.
    fn valid(
        &mut self,
        slug: &str,
        rule: &'static str,
        path: &str,
        also: Option<&'static str>,
        value: &Value,
        requires: String,
    ) {
        let Ok(bytes) = codec::encode(self.layout, value) else { return };
        let Some(stated) = self.stated(&bytes) else { return };
        self.made.push(Made {
            slug: slug.to_owned(),
            rule,
            path: path.to_owned(),
            also_cite: also,
            requires,
            bytes: Some(bytes),
            value: Some(stated),
            ..Made::default()
        });
    }

    /// What bytes say, every field stated, long parts as recipes; `None` where they say nothing.
    fn stated(&self, bytes: &[u8]) -> Option<Json> {
        let decoded = codec::decode(self.layout, bytes).ok()?;
        Some(recipe::of_value(&decoded.view().value().to_json()))
    }

    fn boundaries(&mut self, place: &Place<'_>, edge: bool) {
        let Place { base, path, field, wire } = place;
        let name = place.name();
        let slug = |what: &str| place.slug(what);
        let as_it_is = |what: &str| format!("{name} may be {what}: it is read and written as it is.");
        let long = if edge { &LONG_LENGTHS } else { self.between() };
        let mut put = |what: &str, value: Value, requires: String| {
            // A tagged field at its default is left out, which the smallest message shows already.
            if place.tag().is_none() || value != field.default {
                self.valid(&slug(what), "well-formed", path, None, &with(base, path, value), requires);
            }
        };
        match *wire {
            WireType::Fixed(Fixed::Bool) => put("true", Value::Bool(true), as_it_is("true")),
            WireType::Fixed(Fixed::Uuid) => {
                put("one", Value::Uuid(UUID_OF_ONE), as_it_is("the uuid of one"));
                put("ones", Value::Uuid([255; 16]), as_it_is("a uuid of ones alone"));
            }
            WireType::Fixed(Fixed::Float64) => {
                for (what, number) in [
                    ("min", f64::MIN),
                    ("max", f64::MAX),
                    ("tenth", 0.1),
                    ("minus-zero", -0.0),
                    ("infinite", f64::INFINITY),
                ] {
                    put(what, Value::Float(number.into()), as_it_is(&format!("{number:e}")));
                }
            }
            WireType::Fixed(fixed) => {
                let Some((lowest, highest)) = fixed.integer_range() else { return };
                let numbers = [("min", lowest), ("minus-one", -1), ("zero", 0), ("one", 1), ("max", highest)];
                for (what, number) in numbers {
                    // That of the smallest message is zero, but where it is a tagged field, which is left out.
                    let new = number != 0 || what == "zero" && place.tag().is_some();
                    if (lowest..=highest).contains(&number) && new {
                        put(what, Value::Integer(number), as_it_is(&number.to_string()));
                    }
                }
            }
            WireType::String { compact, nullable } => {
                if nullable {
                    put("null", Value::Null, as_it_is("null, which is not the empty text"));
                }
                if place.tag().is_some() {
                    // Elsewhere the smallest message has it.
                    put("empty", Value::String(String::new()), as_it_is("empty"));
                }
                for (what, text) in [("multi-byte", "grün 水 😀"), ("nul-inside", "a\0b")] {
                    put(what, Value::String(text.into()), as_it_is("any UTF-8"));
                }
                for length in LENGTHS.iter().chain(long) {
                    put(
                        &length.to_string(),
                        Value::String("a".repeat(*length)),
                        as_it_is(&format!("of {length} bytes")),
                    );
                }
                let requires = format!(
                    "{name} may be any UTF-8: blanks, line ends and accents are read and written as they are, and nothing is trimmed."
                );
                put("untidy", Value::String(UNTIDY.into()), requires);
                let requires =
                    format!("A byte order mark at the start of {name} is part of it: it is read and written.");
                put("byte-order-mark", Value::String(MARKED.into()), requires);
                self.too_long(place, compact);
            }
            WireType::Bytes { nullable, records, .. } => {
                if nullable {
                    put("null", Value::Null, as_it_is("null, which is not empty"));
                }
                if !records {
                    put("every-byte", Value::Bytes((0..=255).rev().collect()), as_it_is("any bytes"));
                }
                for length in LENGTHS.iter().chain(long).filter(|_| !records) {
                    put(
                        &length.to_string(),
                        Value::Bytes(vec![0xfe; *length]),
                        as_it_is(&format!("of {length} bytes")),
                    );
                }
            }
            WireType::Struct { nullable, .. } => {
                if nullable {
                    put("null", Value::Null, as_it_is("null"));
                }
            }
            WireType::Array { nullable, .. } => {
                if nullable {
                    put("null", Value::Null, as_it_is("null, which is not the empty list"));
                }
                put("empty", Value::Array(Vec::new()), as_it_is("empty"));
                // The smallest message has one element, but in a tagged field, which is left out.
                let one = place.tag().map(|_| 1);
                for count in one.into_iter().chain(COUNTS) {
                    let Some(elements) = self.elements(field.wire, count) else { continue };
                    self.counted_elements(place, count, &with(base, path, Value::Array(elements)));
                }
                self.orders(place);
                if edge && !path.contains('.') {
                    self.over_64_kib(place);
                }
            }
        }
        if !wire.nullable() && !matches!(wire, WireType::Fixed(_)) {
            let value = with(base, path, Value::Null);
            let requires = format!("An encoder refuses a null {name}: this version has no null there.");
            let slug = format!("encode-{}", place.slug("null"));
            self.refused(&slug, "encode-not-encodable", path, &value, requires);
        }
        if let Some(tag) = place.tag() {
            self.explicit_default(place, tag);
        }
    }

    /// Lists of more than a thousand: each of what is no struct; where there is none, that whose structs are the smallest,
    /// their own lists empty.
    fn many_elements(&mut self, places: &[Place<'_>]) {
        let lists = places.iter().filter_map(|place| {
            let WireType::Array { element, .. } = place.wire else { return None };
            let mut elements = self.elements(place.wire, MANY)?;
            elements.iter_mut().for_each(empty_lists);
            let value = with(&place.base, &place.path, Value::Array(elements));
            Some((place, matches!(element, Element::Struct(_)), value))
        });
        let (structs, plain): (Vec<_>, Vec<_>) = lists.partition(|(_, structs, _)| *structs);
        let size = |value: &Value| codec::encode(self.layout, value).map_or(usize::MAX, |bytes| bytes.len());
        let smallest = structs.into_iter().min_by_key(|(.., value)| size(value)).filter(|_| plain.is_empty());
        for (place, _, value) in plain.into_iter().chain(smallest) {
            self.counted_elements(place, MANY, &value);
        }
    }

    /// Lists whose compact count takes a third byte: of the message's smallest elements, where they are small enough.
    fn very_many_elements(&mut self, places: &[Place<'_>]) {
        if !self.layout.flexible() {
            return;
        }
        let has_key = |element: Element| match element {
            Element::Struct(id) => {
                self.layout.structure(id).fields.iter().any(|&number| self.layout.field(number).map_key)
            }
            _ => false,
        };
        let of_count = |place: &Place<'_>, count: usize| {
            let mut elements = self.elements(place.wire, count)?;
            elements.iter_mut().for_each(empty_lists);
            Some(with(&place.base, &place.path, Value::Array(elements)))
        };
        // A few show how large the element is, in JSON and in bytes.
        let size = |place: &Place<'_>| {
            let sizes = |count: usize| {
                let value = of_count(place, count)?;
                let bytes = codec::encode(self.layout, &value).ok()?.len();
                Some([adapter::values(&value.to_json().to_string()), bytes])
            };
            let ([more, longer], [few, short]) = (sizes(3)?, sizes(2)?);
            Some([more - few, longer - short])
        };
        let lists = places.iter().filter(
            |place| matches!(place.wire, WireType::Array { element, .. } if !has_key(element) && place.tag().is_none()),
        );
        let sized = lists
            .filter_map(|place| Some((size(place)?, place)))
            .filter(|(size, _)| size[0] <= SMALL[0] && size[1] <= SMALL[1]);
        let Some((_, place)) = sized.min_by_key(|(size, _)| *size) else { return };
        let values = VERY_MANY.map(|count| (count, of_count(place, count)));
        for (count, value) in values {
            if let Some(value) = value {
                self.counted_elements(place, count, &value);
            }
        }
    }

    /// A value with a list of so many elements.
    fn counted_elements(&mut self, place: &Place<'_>, count: usize, value: &Value) {
        let name = place.name();
        let requires = match count {
            1 => format!("{name} may have one element: it is read and written."),
            _ => format!("{name} may have {count} elements: each is read and written."),
        };
        self.valid(&place.slug(&count.to_string()), "well-formed", &place.path, None, value, requires);
    }

    /// Elements in an order that no sorting gives, and one of them twice, which only those with a key may not be.
    fn orders(&mut self, place: &Place<'_>) {
        let Place { base, path, field, .. } = place;
        let Some((elements, keyed)) = self.three_elements(field.wire) else { return };
        let name = place.name();
        let of = |numbers: &[usize]| {
            let elements = numbers.iter().filter_map(|&number| elements.get(number).cloned());
            with(base, path, Value::Array(elements.collect()))
        };
        let requires = format!("The order of {name} says something: it is neither sorted nor turned round.");
        self.valid(&place.slug("unordered"), "well-formed", path, None, &of(&[2, 0, 1]), requires);
        if !keyed {
            let requires = format!("{name} may have an element twice: both are read and written, each in its place.");
            self.valid(&place.slug("repeated"), "well-formed", path, None, &of(&[1, 0, 1]), requires);
        }
    }

    /// Three different elements in ascending order, and whether they have a key. Structs differ in their key, else in their
    /// first text or integer, else in how many elements their first list has.
    fn three_elements(&self, wire: WireType) -> Option<([Value; 3], bool)> {
        let WireType::Array { compact, element, .. } = wire else { return None };
        let Element::Struct(id) = element else {
            return Some((self.three_values(element_wire(element, compact))?, false));
        };
        let one = self.layout.smallest_value(WireType::Struct { id, nullable: false });
        let fields = self.layout.structure(id).fields.iter().map(|&number| self.layout.field(number));
        let fields: Vec<&codec::Field> = fields.collect();
        let is_list = |field: &codec::Field| matches!(field.wire, WireType::Array { .. });
        let plain = |field: &codec::Field| !is_list(field) && self.three_values(field.wire).is_some();
        // A key of int8 is a type beside a name.
        let key = fields.iter().find(|field| field.map_key && field.wire != WireType::Fixed(Fixed::Int8));
        let differs = key.or_else(|| fields.iter().find(|field| plain(field)));
        let field = differs.or_else(|| fields.iter().find(|field| is_list(field)))?;
        Some((self.three_values(field.wire)?.map(|value| with(&one, &field.name, value)), key.is_some()))
    }

    /// Three different values of a type in ascending order, of a list by length; none of a type that has no order.
    fn three_values(&self, wire: WireType) -> Option<[Value; 3]> {
        Some(match wire {
            WireType::Fixed(fixed) if fixed.integer_range().is_some() => [1, 2, 3].map(Value::Integer),
            WireType::Fixed(Fixed::Uuid) => [[1; 16], [2; 16], [3; 16]].map(Value::Uuid),
            WireType::String { .. } => ["a", "b", "c"].map(|text| Value::String(text.to_owned())),
            WireType::Bytes { records: false, .. } => [1, 2, 3].map(|byte| Value::Bytes(vec![byte])),
            WireType::Array { .. } => {
                let Value::Array(one) = self.layout.smallest_value(wire) else { return None };
                [0, 1, 2].map(|count| Value::Array(one.iter().cycle().take(count).cloned().collect()))
            }
            _ => return None,
        })
    }

    /// The long lengths that matter between the last plain and the last flexible version as well.
    fn between(&self) -> &'static [usize] {
        let config_api = self.layout.spec().api_key.is_some_and(|key| CONFIG_APIS.contains(&key.0));
        if config_api { LONG_LENGTHS.get(1..).unwrap_or_default() } else { &[] }
    }

    /// Text that an int16 cannot count is no text; a compact length can, and Kafka's own code refuses it all the same.
    fn too_long(&mut self, place: &Place<'_>, compact: bool) {
        let Place { base, path, .. } = place;
        let value = with(base, path, Value::String("a".repeat(32_768)));
        let name = place.name();
        if compact {
            let Ok(bytes) = codec::encode(self.layout, &value) else { return };
            let value = self.stated(&bytes);
            self.made.push(Made {
                slug: place.slug("32768"),
                rule: "compact-string-long",
                path: path.clone(),
                also_cite: Some("guide:protocol-primitive-types"),
                requires: format!("{name} of 32768 bytes is more than text may have, though its length can say so: it is refused or read whole."),
                bytes: Some(bytes),
                value,
                mutation: Some(format!("{name} made 32768 bytes long")),
                ..Made::default()
            });
        } else {
            let requires = format!(
                "An encoder refuses {name} of 32768 bytes, which an int16 length cannot say, and does not let the length wrap."
            );
            let slug = format!("encode-{}", place.slug("32768"));
            self.refused(&slug, "encode-not-encodable", path, &value, requires);
        }
    }

    /// A value that an encoder must refuse.
    fn refused(&mut self, slug: &str, rule: &'static str, path: &str, value: &Value, requires: String) {
        self.made.push(Made {
            slug: slug.to_owned(),
            rule,
            path: path.to_owned(),
            requires,
            value: Some(recipe::of_value(&value.to_json())),
            ..Made::default()
        });
    }

    /// A tagged field that stands there with its default.
    fn explicit_default(&mut self, place: &Place<'_>, tag: u32) {
        let Place { base, path, field, .. } = place;
        let Ok(bytes) = codec::encode(self.layout, base) else { return };
        let holder = path.rsplit_once('.').map_or("", |(holder, _)| holder);
        let Some(end) = tag_section(self.layout, &bytes, holder) else { return };
        let size = u32::try_from(field.default_bytes.len()).unwrap_or(u32::MAX);
        let section = tagged_fields(&[tagged_field(tag, size, &field.default_bytes)]);
        let Some(bytes) = replaced(&bytes, end..end + 1, &section) else { return };
        let name = plain(path);
        let value = self.stated(&bytes);
        self.made.push(Made {
            slug: format!("{}-default-sent", kebab_path(path)),
            rule: "known-tag-default",
            path: path.clone(),
            also_cite: Some("KIP-482"),
            requires: format!("{name} may be sent with its default, though encoders leave it out."),
            bytes: Some(bytes),
            value,
            mutation: Some(format!("{name} sent with its default")),
            ..Made::default()
        });
    }

    /// Unknown tagged fields at the end of a struct.
    fn unknown_tags(&mut self, base: &Value, path: &str, edge: bool) {
        let tag = self.tag;
        let of = if path.is_empty() { "the message".to_owned() } else { plain(path) };
        let prefix = if path.is_empty() { "unknown".to_owned() } else { format!("{}-unknown", kebab_path(path)) };
        let mut sets: Vec<(&str, &str, Tags)> = vec![
            ("tag", "one", vec![(tag, vec![0xaa])]),
            ("tag-empty", "one without content", vec![(tag, Vec::new())]),
            ("tags", "three", vec![(tag, vec![1]), (tag + 1, Vec::new()), (200, vec![2, 3])]),
            ("tag-highest", "one of the highest number there is", vec![(HIGHEST_TAG, vec![0xaa, 0xbb])]),
            ("tag-128", "one of 128 bytes", vec![(tag, vec![0xcc; 128])]),
        ];
        let declared = |number: u32| self.layout.fields().iter().any(|field| field.tag == Some(number));
        if !declared(0) && self.tag == 9 {
            sets.push(("tag-zero", "one numbered 0", vec![(0, vec![0xaa])]));
        }
        if edge {
            sets.push(("tag-16384", "one of 16384 bytes", vec![(tag, vec![0xcc; 16_384])]));
        }
        for (slug, what, tags) in sets {
            let requires = format!(
                "Unknown tagged fields of {of}, here {what}, are skipped by their size, and what follows is read right."
            );
            let value = with_tags(base, path, tags);
            self.valid(&format!("{prefix}-{slug}"), "unknown-tags", path, Some("KIP-482"), &value, requires);
        }
        if path.is_empty() {
            let descending = with_tags(base, path, vec![(tag + 1, vec![2]), (tag, vec![1])]);
            let requires =
                "An encoder that is given tagged fields out of order refuses or writes them in ascending order.";
            self.refused("encode-tags-descending", "encode-tags-unordered", path, &descending, requires.to_owned());
        }
    }

    /// Tags that the struct has in other versions alone: with what stands there then, and with what never does.
    fn tags_of_other_versions(&mut self, reached: &Reached) {
        let Reached { base, path, id } = reached;
        let Ok(bytes) = codec::encode(self.layout, base) else { return };
        let Some(at) = tag_section(self.layout, &bytes, path) else { return };
        let declared: Vec<u32> =
            self.layout.structure(*id).tagged.iter().filter_map(|&n| self.layout.field(n).tag).collect();
        for field in fields_of(self.layout, *id) {
            let Some(tag) = field.tag.filter(|tag| !declared.contains(tag)) else { continue };
            let Some(content) = self.content_of_other_version(path, &field.name) else { continue };
            let holder = if path.is_empty() { "the message".to_owned() } else { plain(path) };
            for (slug, what, content) in
                [("", "with what it holds there", content), ("-one-byte", "with a single byte", vec![0xaa])]
            {
                let section =
                    tagged_fields(&[tagged_field(tag, u32::try_from(content.len()).unwrap_or(u32::MAX), &content)]);
                let Some(changed) = replaced(&bytes, at..at + 1, &section) else { continue };
                let value = self.stated(&changed);
                let slug = format!("tag-{tag}-of-other-version{slug}");
                self.made.push(Made {
                    slug: if path.is_empty() { slug } else { format!("{}-{slug}", kebab_path(path)) },
                    rule: "tag-of-other-version",
                    path: path.clone(),
                    also_cite: Some("KIP-482"),
                    requires: format!(
                        "Tag {tag} of {holder}, which other versions declare and this one does not, is refused, skipped by its size or read as they have it, and what follows is read right."
                    ),
                    bytes: Some(changed),
                    value,
                    mutation: Some(format!("tagged field {tag} of another version added to {holder}, {what}")),
                    ..Made::default()
                });
            }
        }
    }

    /// What a tagged field that this version lacks holds in the first that has it, where it is not its default.
    fn content_of_other_version(&self, holder: &str, name: &str) -> Option<Vec<u8>> {
        self.others.iter().find_map(|layout| {
            let field = layout.fields().iter().find(|field| *field.name == *name && field.tag.is_some())?;
            let path = if holder.is_empty() { name.to_owned() } else { format!("{holder}.{name}") };
            let value = match field.wire {
                WireType::Fixed(Fixed::Uuid) => Value::Uuid(UUID_OF_ONE),
                wire => layout.smallest_value(wire),
            };
            let bytes = codec::encode(layout, &with(&layout.smallest_instance(), &path, value)).ok()?;
            let decoded = codec::decode(layout, &bytes).ok()?;
            let node = decoded.view().get(&path)?.node();
            bytes.get(node.start as usize..node.end as usize).map(<[u8]>::to_vec)
        })
    }

    /// Fields of other versions, given to this one's encoder.
    fn absent_fields(&mut self, reached: &Reached, wanted: impl Fn(&FieldSpec) -> bool) {
        let Reached { base, path, id } = reached;
        let version = self.layout.version();
        for field in fields_of(self.layout, *id) {
            if field.versions.contains(version) || field.ignorable || !wanted(field) {
                continue;
            }
            // Something else than the default, which says nothing and may be left out.
            let value = match (&field.field_type, &field.default) {
                (FieldType::Bool, default) => Value::Bool(*default != FieldDefault::Integer(1)),
                (FieldType::String, default) => {
                    Value::String(if *default == FieldDefault::Text("x".into()) { "y" } else { "x" }.into())
                }
                (kind, default) if kind.integer_range().is_some() => {
                    Value::Integer(if *default == FieldDefault::Integer(7) { 8 } else { 7 })
                }
                (FieldType::Array(_), _) => match self.of_other_version(path, &field.name) {
                    Some(value) => value,
                    None => continue,
                },
                _ => continue,
            };
            let path = if path.is_empty() { field.name.to_string() } else { format!("{path}.{}", field.name) };
            let requires = format!(
                "{} is not in this version: an encoder refuses it or leaves it out, and writes no byte of it.",
                plain(&path)
            );
            let slug = format!("encode-{}-not-in-version", kebab_path(&path));
            self.refused(&slug, "encode-field-not-in-version", &path, &with(base, &path, value), requires);
        }
    }

    /// The smallest value of a field that this version lacks, as the next version has it that does.
    fn of_other_version(&self, holder: &str, name: &str) -> Option<Value> {
        self.others.iter().find_map(|layout| {
            let mut value = layout.smallest_instance();
            let Value::Struct(fields) = at(&mut value, holder)? else { return None };
            // A tagged field is at its default, which says nothing.
            let tagged = layout.fields().iter().find(|field| *field.name == *name && field.tag.is_some());
            tagged.map(|field| layout.smallest_value(field.wire)).or_else(|| fields.get(name).cloned())
        })
    }

    /// The smallest message with each length, count, flag and tag section wrong in each way.
    fn mutations(&mut self, wanted: impl Fn(&Edit) -> bool) {
        let mut edits = Vec::new();
        if let Ok(decoded) = codec::decode(self.layout, &self.bytes) {
            let mut edit =
                |path: &str, node: NodeRef<'_>| self.edits_of(node, &self.bytes, &mut Edits::new(path, &mut edits));
            decoded.view().walk(&mut |path, _, node| edit(path, node));
        }
        let mut whole = Edits::new("", &mut edits);
        for (slug, more, mutation) in [
            ("one-byte-left-over", vec![0], "a zero byte added at the end"),
            ("bytes-left-over", vec![0xff; 4], "four bytes ff added at the end"),
        ] {
            let requires = "Bytes after the message are refused or reported, and do not change what was read.";
            let end = self.bytes.len();
            whole.add(slug, "left-over", end..end, more, requires.to_owned(), mutation.to_owned());
        }
        for edit in edits.into_iter().filter(wanted) {
            let Some(changed) = replaced(&self.bytes, edit.span.clone(), &edit.with) else { continue };
            self.mutated(&self.smallest.clone(), None, edit, changed);
        }
    }

    /// The same of a known tagged field that is there, and the varints before it.
    fn tagged_mutations(&mut self, place: &Place<'_>) {
        let Some(tag) = place.tag() else { return };
        let base = with(&place.base, &place.path, self.present(place));
        let holder = place.path.rsplit_once('.').map_or("", |(holder, _)| holder);
        let both = with_tags(&base, holder, vec![(self.tag, vec![0xaa])]);
        let requires = format!("{} stands before an unknown tagged field of a higher number.", place.name());
        let slug = place.slug("and-unknown-tag");
        self.valid(&slug, "unknown-tags", &place.path, Some("KIP-482"), &both, requires);
        let Ok(bytes) = codec::encode(self.layout, &base) else { return };
        let Ok(decoded) = codec::decode(self.layout, &bytes) else { return };
        let view = decoded.view();
        let Some(content) = view.get(&place.path) else { return };
        let content = content.node().start as usize..content.node().end as usize;
        let Ok(size) = u32::try_from(content.len()) else { return };
        let before = tagged_field(tag, size, &[]).len();
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        view.walk(&mut |path, _, node| {
            if path.strip_prefix(&place.path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])) {
                self.edits_of(node, &bytes, &mut Edits::new(path, &mut inside));
            }
        });
        let name = place.name();
        let mut edits = Edits::new(&place.path, &mut outside);
        let number = content.start - before;
        for (what, slug, at) in
            [("number", "known-tag-number-", number), ("size", "known-tag-size-", number + varint(tag).len())]
        {
            if let Some(&byte) = bytes.get(at).filter(|byte| **byte < 0x80) {
                edits.varint(slug, &format!("{what} of the tagged field"), &name, at, byte);
            }
        }
        // The size goes with what is inside; nothing else of the section does.
        let resized = |edit: &Edit| {
            let inside = replaced(bytes.get(..content.end)?, edit.span.clone(), &edit.with)?;
            let inside = inside.get(content.start..)?;
            let field = tagged_field(tag, u32::try_from(inside.len()).ok()?, inside);
            Some([bytes.get(..number)?, &field, bytes.get(content.end..)?].concat())
        };
        let inside = inside.into_iter().filter_map(|edit| resized(&edit).map(|changed| (edit, changed)));
        let outside = outside
            .into_iter()
            .filter_map(|edit| replaced(&bytes, edit.span.clone(), &edit.with).map(|changed| (edit, changed)));
        let all: Vec<(Edit, Vec<u8>)> = inside.chain(outside).collect();
        for (edit, changed) in all {
            self.mutated(&base, Some(&bytes), edit, changed);
        }
    }

    /// A value of a tagged field that is not its default: the smallest that there is.
    fn present(&self, place: &Place<'_>) -> Value {
        let smallest = self.layout.smallest_value(place.wire);
        match &place.field.default {
            default if *default != smallest => smallest,
            Value::Bool(_) => Value::Bool(true),
            Value::Integer(_) => Value::Integer(1),
            Value::Uuid(_) => Value::Uuid(UUID_OF_ONE),
            Value::Struct(fields) => {
                let number = fields.fields.iter().find(|(_, value)| matches!(value, Value::Integer(_)));
                number.map_or(smallest.clone(), |(name, _)| with(&smallest, name, Value::Integer(1)))
            }
            _ => Value::String("a".to_owned()),
        }
    }

    /// A changed message: of the smallest one, unless another parent is given.
    fn mutated(&mut self, base: &Value, parent: Option<&Vec<u8>>, edit: Edit, changed: Vec<u8>) {
        let (value, values) = self.readings(base, &edit, &changed);
        let also_cite = (edit.rule.contains("tag") || edit.rule.contains("uvarint")).then_some("KIP-482");
        self.made.push(Made {
            slug: edit.slug,
            rule: edit.rule,
            path: edit.path,
            also_cite,
            requires: edit.requires,
            bytes: Some(changed),
            value,
            values,
            mutation: Some(edit.mutation),
            parent: parent.cloned(),
            ..Made::default()
        });
    }

    /// The right readings of changed bytes that a codec may take; none of those that it must refuse.
    fn readings(&self, base: &Value, edit: &Edit, changed: &[u8]) -> (Option<Json>, Vec<Json>) {
        let json = |value: &Value| {
            let bytes = codec::encode(self.layout, value).unwrap_or_default();
            self.stated(&bytes)
        };
        let tagged = |tags: Tags| json(&with_tags(base, &edit.path, tags));
        let tag = self.tag;
        match edit.rule {
            _ if !edit.tags.is_empty() => (tagged(edit.tags.clone()), Vec::new()),
            _ if edit.null => (json(&with(base, &edit.path, Value::Null)), Vec::new()),
            "bool-other" => (json(&with(base, &edit.path, Value::Bool(true))), Vec::new()),
            "uvarint-non-minimal" | "uvarint-high-bits" | "left-over" => (json(base), Vec::new()),
            "tag-repeated" => {
                let steps = edit.path.split('.').filter(|step| !step.is_empty());
                let pointer: String = steps.map(|step| format!("/{}", step.replace("[0]", "/0"))).collect();
                let kept = |payloads: &[u8]| {
                    let tags = payloads.iter().map(|byte| json!({ "tag": tag, "hex": codec::hex(&[*byte]) }));
                    let mut whole = json(base)?;
                    whole.pointer_mut(&pointer)?["_tags"] = tags.collect();
                    Some(whole)
                };
                (None, [kept(&[0xaa, 0xbb]), kept(&[0xaa]), kept(&[0xbb])].into_iter().flatten().collect())
            }
            "tag-reserved" | "not-utf8" | "struct-marker" | "nan-payload" => (self.stated(changed), Vec::new()),
            _ => (None, Vec::new()),
        }
    }

    /// Everything that may be wrong with one node of a message.
    fn edits_of(&self, node: NodeRef<'_>, bytes: &[u8], edits: &mut Edits<'_>) {
        let (start, end) = (node.node().start as usize, node.node().end as usize);
        let left = bytes.len() - start;
        let Some(wire) = node.wire() else { return };
        let name = name(edits.path, Some(wire));
        let mut edits = edits.of(wire);
        let (counted, compact, nullable, array) = match wire {
            WireType::Fixed(Fixed::Bool) => {
                for (slug, byte) in [("2", 2u8), ("255", 255)] {
                    let requires = format!("Any flag but 0 is true, {name} as well: {byte} is not false.");
                    edits.add(
                        slug,
                        "bool-other",
                        start..start + 1,
                        vec![byte],
                        requires,
                        format!("{name} made {byte}"),
                    );
                }
                return;
            }
            WireType::Struct { nullable, .. } => {
                if nullable && node.node().kind == NodeKind::Struct {
                    let requires =
                        format!("A marker of {name} other than absent and present is refused or means present.");
                    let mutation = format!("the marker of {name} made 2");
                    edits.add("marker-2", "struct-marker", start..start + 1, vec![2], requires, mutation);
                }
                let flexible = node.structure().is_some_and(|structure| structure.flexible);
                // A section that holds a known tag is changed in the message without one.
                let empty = node.children().all(|child| child.node().kind != NodeKind::TagSection);
                if flexible && empty {
                    self.tag_edits(&name, end - 1, bytes.len(), &mut edits);
                }
                return;
            }
            WireType::Fixed(Fixed::Float64) => {
                for (slug, bits) in [
                    ("nan-payload", 0x7ff8_0000_0000_0001u64),
                    ("nan-signalling", 0x7ff0_0000_0000_0001),
                    ("nan-negative", 0xfff8_0000_0000_0000),
                ] {
                    let requires = format!("{name} may be any of the numbers that are none: each is read as one.");
                    let mutation = format!("{name} made the NaN of the bits {bits:016x}");
                    edits.add(slug, "nan-payload", start..start + 8, bits.to_be_bytes().to_vec(), requires, mutation);
                }
                return;
            }
            WireType::Fixed(_) => return,
            WireType::String { compact, nullable } => ("length", compact, nullable, false),
            WireType::Bytes { compact, nullable, .. } => ("length", compact, nullable, false),
            WireType::Array { compact, nullable, .. } => ("count", compact, nullable, true),
        };
        let size = node.prefix_size();
        let wide = if array || matches!(wire, WireType::Bytes { .. }) { 4 } else { 2 };
        let encoded = |number: i64| -> Vec<u8> {
            if compact {
                varint(u32::try_from(number + 1).unwrap_or(u32::MAX))
            } else {
                number.to_be_bytes()[8 - wide..].to_vec()
            }
        };
        let past = format!(
            "The {counted} of {name} is not believed: nothing is read past the end, and nothing is reserved for it."
        );
        let one_more = i64::try_from(left - size + 1).unwrap_or(i64::MAX);
        let mut claims = vec![("past-end", one_more)];
        if compact || wide == 4 {
            claims.extend([("100-million", 100_000_000), ("2-31-minus-1", i64::from(i32::MAX))]);
        } else {
            claims.push(("highest", 32_767));
        }
        for (slug, claim) in claims {
            let mutation = format!("the {counted} of {name} made {claim}, with {} bytes left", left - size);
            edits.add(
                &format!("claims-{slug}"),
                "truncated",
                start..start + size,
                encoded(claim),
                past.clone(),
                mutation,
            );
        }
        let no_null = if array { "null-array-not-nullable" } else { "null-not-nullable" };
        if !nullable {
            let requires = format!("{name} has no null in this version: a null there is refused.");
            edits.add("null", no_null, start..end, encoded(-1), requires, format!("{name} made null"));
        }
        // The greatest compact length is what 32 bits with a sign call -2.
        let (slug, below, said) = match compact {
            true => ("claims-2-32-minus-2", i64::from(u32::MAX) - 1, "4294967294 (-2 in 32 bits)"),
            false => ("minus-2", -2, "-2"),
        };
        let requires = match nullable {
            true => format!("A {counted} of {name} of {said} is refused or null: nothing of that size is there."),
            false => format!("A {counted} of {name} of {said} is refused: this version has no null there."),
        };
        let rule = if nullable { "negative-length-nullable" } else { no_null };
        let mutation = format!("the {counted} of {name} made {said}");
        // In place of all of it: what follows must not be taken for what a null has not.
        edits.put(slug, rule, start..end, encoded(below), requires.clone(), mutation).null = nullable;
        if compact && nullable {
            let requires = format!(
                "A varint with needless bytes, here the {counted} of a null {name}, is refused or stands for the same."
            );
            let mutation = format!("{name} made null, its {counted} written in five bytes");
            let with = vec![0x80, 0x80, 0x80, 0x80, 0];
            edits.put("null-five-bytes", "uvarint-non-minimal", start..end, with, requires, mutation).null = true;
        } else if !compact {
            let lowest = if wide == 4 { i64::from(i32::MIN) } else { i64::from(i16::MIN) };
            let mutation = format!("the {counted} of {name} made {lowest}");
            let requires = requires.replace("of -2 is", &format!("of {lowest} is"));
            edits.put("lowest", rule, start..end, encoded(lowest), requires, mutation).null = nullable;
        }
        if let WireType::String { compact, .. } = wire {
            for (slug, text) in
                [("overlong-utf8", "c080"), ("surrogate", "eda080"), ("cut-utf8", "e282"), ("not-utf8", "fffe")]
            {
                let text = codec::parse_hex(text).unwrap_or_default();
                let length = i64::try_from(text.len()).unwrap_or_default();
                debug_assert_eq!(compact, size == 1);
                let requires = format!(
                    "Text of {name} that is not UTF-8 is refused, kept as it is, or shown with replacement characters, and what follows is read right."
                );
                let mutation = format!("{name} made the bytes {}", codec::hex(&text));
                edits.add(slug, "not-utf8", start..end, [encoded(length), text].concat(), requires, mutation);
            }
        }
        if compact && let [first] = bytes.get(start..start + size).unwrap_or_default() {
            edits.varint("", counted, &name, start, *first);
        }
    }

    /// Everything that may be wrong with a tag section, which is the zero byte at `at`.
    fn tag_edits(&self, name: &str, at: usize, length: usize, edits: &mut Edits<'_>) {
        let tag = self.tag;
        let left = length - at - 1;
        let mut add =
            |slug: &str, rule, with, requires, mutation| edits.add(slug, rule, at..at + 1, with, requires, mutation);
        let past = |what: &str| {
            format!(
                "The {what} of {name} is not believed: nothing is read past the end, and nothing is reserved for it."
            )
        };
        let one_more = u32::try_from(left + 1).unwrap_or(u32::MAX);
        for (slug, count) in [("tags-past-end", one_more), ("tags-2-31-minus-1", i32::MAX as u32)] {
            let mutation = format!("the count of tagged fields of {name} made {count}, with {left} bytes left");
            add(slug, "truncated", varint(count), past("count of tagged fields"), mutation);
        }
        let mutation = format!("the count of tagged fields of {name} made 4294967295 (-1 in 32 bits)");
        let requires = past("count of tagged fields");
        add("tags-2-32-minus-1", "tag-count-negative", varint(u32::MAX), requires, mutation);
        for (slug, size) in [
            ("tag-size-past-end", one_more),
            ("tag-size-2-31-minus-1", i32::MAX as u32),
            ("tag-size-2-32-minus-1", u32::MAX),
        ] {
            let mutation = format!("a tagged field added to {name} that claims {size} bytes, with {left} left");
            let section = tagged_fields(&[tagged_field(tag, size, &[])]);
            add(slug, "truncated", section, past("size of a tagged field"), mutation);
        }
        let (first, second) = (tagged_field(tag, 1, &[0xaa]), tagged_field(tag + 1, 1, &[0xbb]));
        let requires = format!("Tagged fields of {name} out of order are refused, or all are read.");
        let mutation = format!("tagged fields {} and {tag} added to {name} in this order", tag + 1);
        let unordered = tagged_fields(&[second, first.clone()]);
        edits.put("tags-unordered", "tags-unordered", at..at + 1, unordered, requires, mutation).tags =
            vec![(tag, vec![0xaa]), (tag + 1, vec![0xbb])];
        let mut add =
            |slug: &str, rule, with, requires, mutation| edits.add(slug, rule, at..at + 1, with, requires, mutation);
        let requires = format!(
            "A tagged field of {name} that stands there twice is refused, or all, the first or the last are kept."
        );
        let mutation = format!("tagged field {tag} added to {name} twice");
        let twice = tagged_fields(&[first, tagged_field(tag, 1, &[0xbb])]);
        add("tag-repeated", "tag-repeated", twice, requires, mutation);
        for (slug, number) in [("tag-2-31-minus-1", i32::MAX as u32), ("tag-2-32-minus-1", u32::MAX)] {
            let requires = format!("Tags of {name} are numbers below 2147483647: a greater one is refused or kept.");
            let mutation = format!("tagged field {number} added to {name}");
            add(slug, "tag-reserved", tagged_fields(&[tagged_field(number, 1, &[0xaa])]), requires, mutation);
        }
        edits.varint("tags-", "count of tagged fields", name, at, 0);
        // Of a struct inside, the config APIs stand for all.
        if !edits.path.is_empty() && !config_api(self.layout.spec()) {
            return;
        }
        let number = u8::try_from(tag).unwrap_or(0x7f);
        for (prefix, what, byte) in [("unknown-tag-number-", "number", number), ("unknown-tag-size-", "size", 1)] {
            let first = edits.made.len();
            edits.varint(prefix, &format!("{what} of a tagged field"), name, at, byte);
            for edit in edits.made.iter_mut().skip(first) {
                let odd = std::mem::take(&mut edit.with);
                let field = if what == "number" { [odd, vec![1]] } else { [vec![number], odd] };
                edit.with = [vec![1], field.concat(), vec![0xaa]].concat();
                edit.mutation = format!("a tagged field {number} added, {}", edit.mutation);
                if edit.rule != "uvarint-overlong" {
                    edit.tags = vec![(number.into(), vec![0xaa])];
                }
            }
        }
    }

    /// Every proper prefix of the smallest message.
    fn cuts(&mut self) {
        let bytes = self.bytes.clone();
        let tags_due = |cut: &usize| {
            let prefix = bytes.get(..*cut).unwrap_or_default();
            let error = codec::decode(self.layout, prefix).err();
            error.is_some_and(|error| error.kind == codec::DecodeErrorKind::TagSectionMissing)
        };
        let (untagged, cut): (BTreeSet<usize>, BTreeSet<usize>) = (0..bytes.len()).partition(tags_due);
        let whole = [
            (
                "cut-at",
                "truncated",
                cut,
                "A message that ends early is refused, wherever it ends.",
                "cut off at this offset",
            ),
            (
                "cut-before-tags",
                "missing-tag-section",
                untagged,
                "A flexible struct ends with the count of its tagged fields, if only zero.",
                "cut off where the count of tagged fields is due",
            ),
        ];
        for (slug, rule, cuts, requires, mutation) in whole {
            if !cuts.is_empty() {
                self.made.push(Made {
                    slug: slug.to_owned(),
                    rule,
                    requires: requires.to_owned(),
                    bytes: Some(bytes.clone()),
                    mutation: Some(mutation.to_owned()),
                    cuts,
                    ..Made::default()
                });
            }
        }
    }
}

/// Bytes changed in one place.
struct Edit {
    slug: String,
    rule: &'static str,
    path: String,
    /// What is replaced, by offset.
    span: Range<usize>,
    with: Vec<u8>,
    requires: String,
    mutation: String,
    /// The unknown tagged fields that the place has if that is taken.
    tags: Tags,
    /// Whether the place is null if that is taken.
    null: bool,
}

/// The changes at one path.
struct Edits<'e> {
    path: &'e str,
    /// Type of what is there.
    wire: Option<WireType>,
    made: &'e mut Vec<Edit>,
}

impl<'e> Edits<'e> {
    fn new(path: &'e str, made: &'e mut Vec<Edit>) -> Edits<'e> {
        Edits { path, wire: None, made }
    }

    /// The same, where the type is known.
    fn of(&mut self, wire: WireType) -> Edits<'_> {
        Edits { path: self.path, wire: Some(wire), made: self.made }
    }

    fn add(
        &mut self,
        slug: &str,
        rule: &'static str,
        span: Range<usize>,
        with: Vec<u8>,
        requires: String,
        mutation: String,
    ) {
        self.put(slug, rule, span, with, requires, mutation);
    }

    /// The same, to say more of it.
    fn put(
        &mut self,
        what: &str,
        rule: &'static str,
        span: Range<usize>,
        with: Vec<u8>,
        requires: String,
        mutation: String,
    ) -> &mut Edit {
        let slug = if self.path.is_empty() { what.to_owned() } else { slug(self.path, self.wire, what) };
        let (path, tags, null) = (self.path.to_owned(), Tags::new(), false);
        self.made.push(Edit { slug, rule, path, span, with, requires, mutation, tags, null });
        let last = self.made.len() - 1;
        &mut self.made[last]
    }

    /// The varint `byte` at `at` written in each way that is not its own.
    fn varint(&mut self, prefix: &str, counted: &str, name: &str, at: usize, byte: u8) {
        let more = byte | 0x80;
        let forms: [(&str, &'static str, Vec<u8>, &str); 4] = [
            ("two-bytes", "uvarint-non-minimal", vec![more, 0], "written in two bytes"),
            ("five-bytes", "uvarint-non-minimal", vec![more, 0x80, 0x80, 0x80, 0], "written in five bytes"),
            ("six-bytes", "uvarint-overlong", vec![more, 0x80, 0x80, 0x80, 0x80, 0], "written in six bytes"),
            ("bit-32", "uvarint-high-bits", vec![more, 0x80, 0x80, 0x80, 0x10], "given bit 32"),
        ];
        for (slug, rule, with, how) in forms {
            let requires = match rule {
                "uvarint-non-minimal" => format!(
                    "A varint with needless bytes, here the {counted} of {name}, is refused or stands for the same number."
                ),
                "uvarint-overlong" => {
                    format!("A varint ends with its fifth byte at the latest: a longer {counted} of {name} is refused.")
                }
                _ => format!(
                    "A varint stands for 32 bits: a bit above them in the {counted} of {name} is refused or has no meaning."
                ),
            };
            let mutation = format!("the {counted} of {name} {how}");
            self.add(&format!("{prefix}{slug}"), rule, at..at + 1, with, requires, mutation);
        }
    }
}

/// The type of an element that is no struct.
fn element_wire(element: Element, compact: bool) -> WireType {
    match element {
        Element::Fixed(fixed) => WireType::Fixed(fixed),
        Element::Bytes => WireType::Bytes { compact, nullable: false, records: false },
        _ => WireType::String { compact, nullable: false },
    }
}

fn varint(number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    codec::wire::write_uvarint(&mut out, number);
    out
}

/// A tagged field that claims so many bytes.
fn tagged_field(tag: u32, size: u32, payload: &[u8]) -> Vec<u8> {
    [varint(tag), varint(size), payload.to_vec()].concat()
}

/// A tag section.
fn tagged_fields(fields: &[Vec<u8>]) -> Vec<u8> {
    [varint(u32::try_from(fields.len()).unwrap_or_default()), fields.concat()].concat()
}

/// Offset of the count of tagged fields, a zero, of the struct at a path.
fn tag_section(layout: &Layout, bytes: &[u8], path: &str) -> Option<usize> {
    let decoded = codec::decode(layout, bytes).ok()?;
    let view = decoded.view();
    let node = if path.is_empty() { view.root() } else { view.get(path)? };
    let at = (node.node().end as usize).checked_sub(1)?;
    (bytes.get(at) == Some(&0)).then_some(at)
}

fn replaced(bytes: &[u8], span: Range<usize>, with: &[u8]) -> Option<Vec<u8>> {
    Some([bytes.get(..span.start)?, with, bytes.get(span.end..)?].concat())
}

/// A path without its brackets, as sentences have it.
fn plain(path: &str) -> String {
    path.replace("[0]", "")
}

/// What sentences call the place of a type: an element that is no struct `Field[]`.
fn name(path: &str, wire: Option<WireType>) -> String {
    match path {
        "" => "the message".to_owned(),
        _ if is_plain_element(path, wire) => plain(path) + "[]",
        _ => plain(path),
    }
}

/// The slug of what is at the place of a type.
fn slug(path: &str, wire: Option<WireType>, what: &str) -> String {
    let element = if is_plain_element(path, wire) { "-element" } else { "" };
    format!("{}{element}-{what}", kebab_path(path))
}

/// Whether this is an element that is no struct.
fn is_plain_element(path: &str, wire: Option<WireType>) -> bool {
    path.ends_with(']') && wire.is_some_and(|wire| !matches!(wire, WireType::Struct { .. }))
}

fn kebab_path(path: &str) -> String {
    plain(path).split('.').map(kebab).collect::<Vec<_>>().join("-")
}

/// The field or element that a path leads to, to change; tagged fields that are absent are made.
fn at<'v>(value: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    path.split('.').filter(|step| !step.is_empty()).try_fold(value, |value, step| {
        let (name, element) = step.strip_suffix("[0]").map_or((step, false), |name| (name, true));
        let Value::Struct(fields) = value else { return None };
        if fields.get(name).is_none() {
            fields.fields.push((name.into(), Value::Null));
        }
        match (fields.get_mut(name)?, element) {
            (Value::Array(elements), true) => elements.first_mut(),
            (_, true) => None,
            (field, false) => Some(field),
        }
    })
}

/// Leaves the lists of a struct without elements.
fn empty_lists(element: &mut Value) {
    let Value::Struct(element) = element else { return };
    let lists = element.fields.iter_mut().filter_map(|(_, field)| match field {
        Value::Array(elements) => Some(elements),
        _ => None,
    });
    lists.for_each(Vec::clear);
}

fn with(base: &Value, path: &str, new: Value) -> Value {
    let mut value = base.clone();
    if let Some(place) = at(&mut value, path) {
        *place = new;
    }
    value
}

fn with_tags(base: &Value, path: &str, tags: Tags) -> Value {
    let mut value = base.clone();
    if let Some(Value::Struct(place)) = at(&mut value, path) {
        place.tags = tags;
    }
    value
}
