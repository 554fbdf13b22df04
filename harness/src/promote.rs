//! From bytes that a fuzzer found to a codec case: made smaller while our codec reads them alike, the rule that they fall
//! under, and the published case that they are nearest to. What other codecs say of them is asked in [`crate::attest`].

use crate::derive::{Derived, fields_of};
use crate::names::kebab;
use crate::vector::{Part, PartLayout, Vector};
use codec::{
    AnomalyKind, ApiVersion, DecodeError, DecodeErrorKind, Element, Layout, MessageSpec, Protocol, Tree, Value, View,
    WireType,
};
use std::collections::{BTreeMap, BTreeSet};

/// Candidates tried at most while bytes are made smaller; some microseconds each.
const TRIES: usize = 2_000_000;
/// The longest bytes of which a count and a run somewhere behind it are taken down together: there are many pairs.
const COUNTED: usize = 128;
/// The longest run of bytes that is taken out together with a count or a length before it.
const RUN: usize = 48;

/// How our codec reads bytes: what stays the same while they are made smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reading {
    /// Why, without how many bytes are left, and the field.
    Refused(DecodeErrorKind, Place),
    /// The liberties they take.
    Liberties(BTreeSet<AnomalyKind>),
    /// They are valid: what they say.
    Valid(Vec<Value>),
}

/// Where bytes are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    /// In the header of a frame.
    header: bool,
    /// Path of the field, without indexes.
    path: String,
    /// An element of the array of that path, not the array itself.
    element: bool,
    /// The input has what is missing, but the tagged field that it belongs to ends before.
    beyond_tag: bool,
}

/// Bytes of one part of a message at one version.
pub struct Find<'p> {
    spec: &'p MessageSpec,
    version: ApiVersion,
    part: Part,
    layout: PartLayout,
    bytes: Vec<u8>,
}

impl<'p> Find<'p> {
    /// The error says why the part has no layout.
    pub fn new(
        protocol: &Protocol,
        spec: &'p MessageSpec,
        version: ApiVersion,
        part: Part,
        bytes: &[u8],
    ) -> Result<Find<'p>, codec::SpecError> {
        let layout = PartLayout::new(protocol, spec, version, part)?;
        Ok(Find { spec, version, part, layout, bytes: bytes.to_vec() })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes the bytes smaller, and what is left of them plainer, while the reading stays the same. Valid bytes stay as they
    /// are: what they say is what was found.
    pub fn minimise(&mut self) {
        let want = self.read(&self.bytes);
        if matches!(want, Reading::Valid(_)) {
            return;
        }
        let sized = self.part == Part::Frame && size(&self.bytes) == self.bytes.len().checked_sub(4);
        let fit = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            let length = u32::try_from(bytes.len().saturating_sub(4)).unwrap_or(u32::MAX);
            if let Some(prefix) = bytes.first_chunk_mut().filter(|_| sized) {
                *prefix = length.to_be_bytes();
            }
            bytes
        };
        let smaller = minimise(&self.bytes, if sized { 4 } else { 0 }, &mut |bytes| self.read(&fit(bytes)) == want);
        self.bytes = fit(&smaller);
    }

    fn read(&self, bytes: &[u8]) -> Reading {
        let refused = |error: DecodeError, header| {
            use DecodeErrorKind::*;
            // A length stands before what it claims, in five bytes at most; what is left counts from its end.
            let rest = bytes.len().saturating_sub(error.offset);
            let beyond_tag = match error.kind {
                Truncated { needed, left } => left < rest && needed <= rest,
                LengthExceedsInput { claimed, left } | CountExceedsInput { claimed, left } => {
                    left + 5 < rest && claimed + 5 <= rest as u64
                }
                _ => false,
            };
            let kind = match error.kind {
                Truncated { needed, .. } => Truncated { needed, left: 0 },
                LengthExceedsInput { claimed, .. } => LengthExceedsInput { claimed, left: 0 },
                CountExceedsInput { claimed, .. } => CountExceedsInput { claimed, left: 0 },
                TagExceedsInput { tag, claimed, .. } => TagExceedsInput { tag, claimed, left: 0 },
                FrameLength { size, left } if size > left => FrameLength { size: 1, left: 0 },
                kind => kind,
            };
            let element = error.path.ends_with(']');
            Reading::Refused(kind, Place { header, path: plain(&error.path), element, beyond_tag })
        };
        let taken = |views: &[View]| {
            let anomalies = views.iter().flat_map(|view| view.tree().anomalies());
            let mut kinds: BTreeSet<AnomalyKind> = anomalies.map(|anomaly| anomaly.kind).collect();
            // A tag that stands twice with another between is out of order to our codec, and under two rules.
            if kinds.contains(&AnomalyKind::TagsUnordered) && views.iter().any(some_path_twice) {
                kinds.insert(AnomalyKind::TagRepeated);
            }
            // A default that is sent is valid, and no more than that where something else is odd.
            match kinds.iter().any(|kind| kind.is_acceptable()) {
                true => Reading::Liberties(kinds),
                false => Reading::Valid(views.iter().map(View::value).collect()),
            }
        };
        match &self.layout {
            PartLayout::Single(layout) => match codec::decode(layout, bytes) {
                Ok(decoded) => taken(&[decoded.view()]),
                Err(error) => refused(error, false),
            },
            PartLayout::Frame(layout) => match codec::decode_frame(layout, bytes) {
                Ok(frame) => taken(&[frame.header(), frame.body()]),
                Err(error) => {
                    let header = codec::decode_prefix_into(&layout.header, bytes, 4, &mut Tree::new()).is_err();
                    refused(error, header)
                }
            },
        }
    }

    /// The case, without value and authors. `known` are the published cases. The error says why the bytes are no case yet.
    pub fn case(&self, known: &[&Vector], slug: Option<String>) -> Result<Derived, String> {
        let same = |case: &&&Vector| {
            case.spec.name == self.spec.name && case.version == self.version && case.part == self.part
        };
        let known: Vec<&Vector> = known.iter().filter(same).copied().collect();
        if let Some(case) = known.iter().find(|case| case.bytes.as_deref() == Some(&self.bytes)) {
            return Err(format!("{} has these very bytes", case.id));
        }
        let (rule, Place { header, path, .. }) = self.rule()?;
        let message = match (header || self.part == Part::Header, self.spec.name.ends_with("Request")) {
            (false, _) => &self.spec.name,
            (true, true) => "RequestHeader",
            (true, false) => "ResponseHeader",
        };
        let fields = path.split('.').filter(|step| !step.is_empty());
        let cite = std::iter::once(message).chain(fields).collect::<Vec<_>>().join(".");
        let nearest = known
            .iter()
            .filter(|case| case.rule.result == crate::vector::Expected::Valid)
            .filter_map(|case| Some((change(case.bytes.as_deref()?, &self.bytes), *case)))
            .min_by_key(|((_, was, with), case)| (was.len() + with.len(), case.id.clone()));
        let version = self.version.0;
        let slug = slug.unwrap_or_else(|| {
            let place = if path.is_empty() { String::new() } else { format!("-{}", kebab(&path.replace('.', ""))) };
            let base = format!("found{place}-{rule}");
            let taken = |slug: &str| known.iter().any(|case| case.slug() == slug);
            let numbered = (2..).map(|number| format!("{base}-{number}"));
            std::iter::once(base.clone()).chain(numbered).find(|slug| !taken(slug)).unwrap_or(base)
        });
        Ok(Derived {
            slug,
            rule,
            versions: (version, version),
            cite: vec![cite],
            requires: String::new(),
            bytes: BTreeMap::from([(version, self.bytes.clone())]),
            value: None,
            values: Vec::new(),
            parent: nearest.as_ref().map(|(_, case)| case.slug().to_owned()),
            mutation: nearest.map(|((at, was, with), _)| mutation(at, was, with)),
            cuts: BTreeMap::new(),
        })
    }

    /// The rule that the bytes fall under, and the field where they are refused.
    fn rule(&self) -> Result<(&'static str, Place), String> {
        Ok(match self.read(&self.bytes) {
            Reading::Refused(kind, place) => (self.refusal(kind, &place)?, place),
            Reading::Liberties(kinds) => {
                let rules = kinds.iter().filter(|kind| kind.is_acceptable()).map(|kind| kind.rule());
                match rules.collect::<Vec<_>>().as_slice() {
                    [rule] => (rule, Place::default()),
                    rules => {
                        return Err(format!("a case is about one rule; these fall under {}", rules.join(", ")));
                    }
                }
            }
            Reading::Valid(values) => (valid(&values, &self.layout, &self.bytes), Place::default()),
        })
    }

    /// What our codec reads, in JSON; `None` where it refuses.
    pub fn value(&self) -> Option<serde_json::Value> {
        let decoded = self.layout.decode(&self.bytes).ok()?;
        Some(self.layout.to_json(&decoded.value))
    }

    /// The rule of what is refused.
    fn refusal(&self, kind: DecodeErrorKind, place: &Place) -> Result<&'static str, String> {
        use DecodeErrorKind::*;
        let layout = match &self.layout {
            PartLayout::Single(layout) => layout,
            PartLayout::Frame(layout) if place.header => &layout.header,
            PartLayout::Frame(layout) => &layout.body,
        };
        let field = field(layout, place);
        let no_null =
            if field.is_some_and(|field| field.array) { "null-array-not-nullable" } else { "null-not-nullable" };
        // In 32 bits with a sign, where readers take one off: 2^31-1 is still there, what is above is negative.
        let negative = |claimed: u64| claimed > i32::MAX as u64;
        Ok(match kind {
            _ if place.beyond_tag => "tag-size-mismatch",
            // Of what is no array, tagged fields are counted.
            CountExceedsInput { claimed, .. } if !field.is_some_and(|field| field.array) => {
                if negative(claimed) {
                    "tag-count-negative"
                } else {
                    "truncated"
                }
            }
            LengthExceedsInput { claimed, .. } | CountExceedsInput { claimed, .. }
                if field.is_some_and(|field| field.compact) && negative(claimed) =>
            {
                if field.is_some_and(|field| field.nullable) { "negative-length-nullable" } else { no_null }
            }
            Truncated { .. } | VarintTruncated | LengthExceedsInput { .. } | CountExceedsInput { .. } => "truncated",
            TagExceedsInput { .. } => "truncated",
            // Nothing of that size is there, or it says nothing.
            FrameLength { size, left } if size > left => "truncated",
            FrameSize { .. } => "truncated",
            // What is read ends where the size says, and what is left over is not read.
            FrameLength { size, .. } => {
                let cut = self.bytes.get(..4 + size).unwrap_or_default();
                match self.read(cut) {
                    Reading::Refused(kind, place) => return self.refusal(kind, &place),
                    _ => "left-over",
                }
            }
            VarintTooLong => "uvarint-overlong",
            NegativeLength(_) | NullNotAllowed => no_null,
            TagSectionMissing => "missing-tag-section",
            InputTooLarge => return Err("no rule is about inputs of 4 GiB".into()),
        })
    }
}

/// Whether two nodes have one path: a tagged field that stands twice.
fn some_path_twice(view: &View) -> bool {
    let mut paths = BTreeSet::new();
    let mut twice = false;
    view.walk(&mut |path, _, _| twice |= !paths.insert(path.to_owned()));
    twice
}

/// The size that a frame states.
fn size(bytes: &[u8]) -> Option<usize> {
    usize::try_from(i32::from_be_bytes(*bytes.first_chunk()?)).ok()
}

/// A path without indexes.
fn plain(path: &str) -> String {
    let mut steps = path.split('[');
    let first = steps.next().unwrap_or_default().to_owned();
    steps.fold(first, |path, step| path + step.split_once(']').map_or("", |(_, rest)| rest))
}

/// What a field's length may be.
#[derive(Clone, Copy)]
struct Counted {
    array: bool,
    compact: bool,
    nullable: bool,
}

/// The field or element at a place.
fn field(layout: &Layout, place: &Place) -> Option<Counted> {
    let mut structure = layout.root();
    let mut found = None;
    for step in place.path.split('.') {
        let numbers = structure.fields.iter().chain(&structure.tagged);
        let field = numbers.map(|&number| layout.field(number)).find(|field| &*field.name == step)?;
        let nullable = field.wire.nullable();
        let (array, compact, inner) = match field.wire {
            WireType::Fixed(_) => (false, false, None),
            WireType::String { compact, .. } | WireType::Bytes { compact, .. } => (false, compact, None),
            WireType::Struct { id, .. } => (false, true, Some(id)),
            WireType::Array { compact, element: Element::Struct(id), .. } => (true, compact, Some(id)),
            WireType::Array { compact, .. } => (true, compact, None),
        };
        found = Some(Counted { array, compact, nullable });
        if let Some(id) = inner {
            structure = layout.structure(id);
        }
    }
    // No element may be null.
    found.map(|field| match place.element {
        true => Counted { array: false, nullable: false, ..field },
        false => field,
    })
}

/// The rule that valid bytes are about.
fn valid(values: &[Value], layout: &PartLayout, bytes: &[u8]) -> &'static str {
    fn any(value: &Value, what: &dyn Fn(&Value) -> bool) -> bool {
        what(value)
            || match value {
                Value::Array(elements) => elements.iter().any(|element| any(element, what)),
                Value::Struct(value) => value.fields.iter().any(|(_, field)| any(field, what)),
                _ => false,
            }
    }
    let some = |what: &dyn Fn(&Value) -> bool| values.iter().any(|value| any(value, what));
    let not_canonical = layout.decode(bytes).is_ok_and(|decoded| !decoded.canonical);
    if some(&|value| matches!(value, Value::Float(float) if f64::from(*float).is_nan())) {
        "nan-payload"
    } else if layout.layouts().iter().zip(values).any(|((_, layout), value)| has_tag_of_other_version(layout, 0, value))
    {
        "tag-of-other-version"
    } else if some(&|value| matches!(value, Value::Struct(value) if !value.tags.is_empty())) {
        "unknown-tags"
    } else if not_canonical {
        "known-tag-default"
    } else {
        "well-formed"
    }
}

/// Whether a struct, or one inside of it, has a tag as an unknown one that other versions of it declare.
fn has_tag_of_other_version(layout: &Layout, id: u16, value: &Value) -> bool {
    let Value::Struct(value) = value else { return false };
    let declared = |tag: u32| fields_of(layout, id).iter().any(|field| field.tag == Some(tag));
    let structure = layout.structure(id);
    let mut fields = structure.fields.iter().chain(&structure.tagged).map(|&number| layout.field(number));
    value.tags.iter().any(|&(tag, _)| declared(tag))
        || fields.any(|field| match (field.wire, value.get(&field.name)) {
            (WireType::Struct { id, .. }, Some(inner)) => has_tag_of_other_version(layout, id, inner),
            (WireType::Array { element: Element::Struct(id), .. }, Some(Value::Array(elements))) => {
                elements.iter().any(|element| has_tag_of_other_version(layout, id, element))
            }
            _ => false,
        })
}

/// Offset of the first difference, what stood there, and what stands there instead.
fn change<'a>(was: &'a [u8], is: &'a [u8]) -> (usize, &'a [u8], &'a [u8]) {
    let start = was.iter().zip(is).take_while(|(was, is)| was == is).count();
    let (was, is) = (was.get(start..).unwrap_or_default(), is.get(start..).unwrap_or_default());
    let end = was.iter().rev().zip(is.iter().rev()).take_while(|(was, is)| was == is).count();
    (start, was.get(..was.len() - end).unwrap_or_default(), is.get(..is.len() - end).unwrap_or_default())
}

/// A change of bytes in words.
fn mutation(at: usize, was: &[u8], with: &[u8]) -> String {
    let (was, with) = (codec::hex(was), codec::hex(with));
    match (was.as_str(), with.as_str()) {
        ("", with) => format!("{with} put in at offset {at}"),
        (was, "") => format!("{was} taken out at offset {at}"),
        (was, with) => format!("{was} at offset {at} made {with}"),
    }
}

/// The smallest and plainest bytes that are found by taking runs out, with the count or length before them or without, and
/// by making bytes zero, for all of which `same` holds. The first `kept` bytes stay.
fn minimise(bytes: &[u8], kept: usize, same: &mut dyn FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut best = bytes.to_vec();
    let mut tries = 0;
    let mut better = |best: &mut Vec<u8>, candidate: Vec<u8>| {
        tries += 1;
        let better = tries <= TRIES && same(&candidate);
        if better {
            *best = candidate;
        }
        better
    };
    loop {
        let before = best.clone();
        // What does not matter becomes zero, so that it is not taken for a count.
        for at in kept..best.len() {
            let mut candidate = best.clone();
            match candidate.get_mut(at) {
                Some(byte) if *byte != 0 => *byte = 0,
                _ => continue,
            }
            better(&mut best, candidate);
        }
        // An element less and its count, a character less and its length; what encloses them may count its bytes as well. First,
        // since bytes alone may leave nothing for a smaller count.
        let mut counter = kept;
        while counter < best.len() && best.len() <= COUNTED {
            let mut found = false;
            'runs: for run in (1..=RUN.min(best.len())).rev() {
                let by_length = u8::try_from(run).ok();
                for by in [Some(1), by_length.filter(|run| *run > 1)].into_iter().flatten() {
                    let less = best.get(counter).and_then(|byte| byte.checked_sub(by));
                    let Some(value) = less else { continue };
                    // A length stands right before what it counts, a count somewhere before.
                    let last = if by == 1 { best.len().saturating_sub(run) } else { counter + 1 };
                    for at in counter + 1..=last {
                        if at + run > best.len() {
                            break;
                        }
                        let mut candidate = without(&best, at, run);
                        if let Some(byte) = candidate.get_mut(counter) {
                            *byte = value;
                        }
                        if better(&mut best, candidate) {
                            found = true;
                            break 'runs;
                        }
                    }
                }
            }
            counter += usize::from(!found);
        }
        let mut run = best.len().saturating_sub(kept);
        while run > 0 {
            let mut at = kept;
            while at + run <= best.len() {
                let candidate = without(&best, at, run);
                at += usize::from(!better(&mut best, candidate));
            }
            run /= 2;
        }
        if best == before {
            return best;
        }
    }
}

fn without(bytes: &[u8], at: usize, run: usize) -> Vec<u8> {
    [bytes.get(..at).unwrap_or_default(), bytes.get(at + run..).unwrap_or_default()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Cases;
    use crate::definitions::bundled;

    /// The published cases were sorted under their rules without this.
    #[test]
    fn published_bytes_fall_under_their_rule() {
        let cases = Cases::bundled(bundled()).expect("the bundled cases lint");
        let mut wrong = BTreeMap::new();
        let mut right = BTreeSet::new();
        for case in &cases.vectors.cases {
            let Some(bytes) = &case.bytes else { continue };
            let find = Find::new(bundled(), &case.spec, case.version, case.part, bytes).expect("a published version");
            match find.rule() {
                Ok((rule, _)) if rule == case.rule.id => _ = right.insert(rule),
                found => _ = wrong.insert(&case.id, (&case.rule.id, found.map(|(rule, _)| rule))),
            }
        }
        let text: Vec<String> = wrong.iter().map(|(id, what)| format!("{id}: {what:?}")).collect();
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.vectors.cases.len(), text.join("\n"));
        assert_eq!(right.len(), 23, "each rule about bytes has a case: {right:?}");
    }

    fn find<'p>(message: &str, version: i16, part: Part, bytes: &[u8]) -> Find<'p> {
        let spec = bundled().message(message).expect("a bundled message");
        Find::new(bundled(), spec, ApiVersion(version), part, bytes).expect("a published version")
    }

    /// Bytes by hand, from the definition.
    #[test]
    fn what_the_reading_does_not_need_is_taken_out() {
        // DescribeConfigsRequest v1: two resources "ab" and "t", no keys; the flag is 2. One flag alone needs no resource.
        let bytes = [0, 0, 0, 2, 2, 0, 2, b'a', b'b', 255, 255, 255, 255, 2, 0, 1, b't', 255, 255, 255, 255, 2];
        let mut odd = find("DescribeConfigsRequest", 1, Part::Body, &bytes);
        odd.minimise();
        assert_eq!(odd.bytes(), [0, 0, 0, 0, 2]);
        // The second name claims 9 bytes and has 4. One resource will do; a count that 7 bytes for each do not follow would
        // be refused itself.
        let first = [2, 0, 8, b'a', b'b', b'c', b'd', b'e', b'f', b'g', b'h', 255, 255, 255, 255];
        let bytes = [[0, 0, 0, 2].as_slice(), &first, &[2, 0, 9, b't', b'u', b'v', b'w']].concat();
        let mut cut = find("DescribeConfigsRequest", 1, Part::Body, &bytes);
        cut.minimise();
        let smallest = [0, 0, 0, 1, 0, 0, 9, 0, 0, 0, 0];
        assert_eq!(cut.bytes(), smallest);
        // The same in a frame, whose size is made to say what is left; header v1, of 10 bytes without a client id.
        let frame = [[0, 0, 0, 37, 0, 32, 0, 1, 0, 0, 0, 7, 0, 1, b'c'].as_slice(), &bytes].concat();
        let mut cut = find("DescribeConfigsRequest", 1, Part::Frame, &frame);
        cut.minimise();
        assert_eq!(cut.bytes(), [[0, 0, 0, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].as_slice(), &smallest].concat());
        // Valid bytes are what they are.
        let bytes = [0, 0, 0, 1, 2, 0, 1, b't', 255, 255, 255, 255, 1];
        let mut valid = find("DescribeConfigsRequest", 1, Part::Body, &bytes);
        valid.minimise();
        assert_eq!(valid.bytes(), bytes);
    }

    /// ResponseHeader v1 with the unknown tags 3, 9 and 3 again, each of one byte.
    #[test]
    fn a_tag_that_stands_twice_with_another_between_is_both_unordered_and_repeated() {
        let twice = find("ResponseHeader", 1, Part::Body, &[0, 0, 0, 7, 3, 3, 1, 0xa, 9, 1, 0xb, 3, 1, 0xc]);
        assert_eq!(
            twice.rule().unwrap_err(),
            "a case is about one rule; these fall under tags-unordered, tag-repeated"
        );
        let unordered = find("ResponseHeader", 1, Part::Body, &[0, 0, 0, 7, 2, 9, 1, 0xb, 3, 1, 0xc]);
        assert_eq!(unordered.rule().map(|(rule, _)| rule), Ok("tags-unordered"));
    }

    #[test]
    fn changes_are_said_exactly() {
        let said = |was: &[u8], is: &[u8]| {
            let (at, was, with) = change(was, is);
            mutation(at, was, with)
        };
        assert_eq!(said(&[1, 2, 3], &[1, 9, 9, 3]), "02 at offset 1 made 0909");
        assert_eq!(said(&[1, 2], &[1, 2, 3]), "03 put in at offset 2");
        assert_eq!(said(&[1, 1, 1], &[1]), "0101 taken out at offset 1");
    }
}
