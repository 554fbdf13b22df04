//! What the codec cases cover, measured: a layout that is wrong in one thing must be caught by a case, or the rule it
//! breaks is untested.

use crate::vector::{Allowed, Expected, Part, PartLayout, Vector, Vectors};
use codec::mutant::{Mutant, Mutation, mutants};
use codec::{AbsentFields, ApiVersion, DecodeErrorKind, Element, FrameLayout, Layout, PathStep, Protocol, WireType};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A mutant of one message at one version, and the case that caught it.
#[derive(Clone, Debug)]
pub struct Covered {
    /// The message.
    pub message: String,
    /// The version.
    pub version: ApiVersion,
    /// Where it is wrong, `DescribeConfigsResult.ErrorMessage`.
    pub place: String,
    /// What is wrong.
    pub mutation: Mutation,
    /// Id of a case that catches it.
    pub caught_by: Option<String>,
}

impl fmt::Display for Covered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} v{} {}: {}", self.message, self.version, self.place, self.mutation)
    }
}

/// How many mutants there are and how many of them a case catches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All.
    pub mutants: usize,
    /// Those that a case catches.
    pub caught: usize,
}

impl Tally {
    fn count(&mut self, mutant: &Covered) {
        self.mutants += 1;
        self.caught += usize::from(mutant.caught_by.is_some());
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} mutants, {} caught", self.mutants, self.caught)
    }
}

/// What the codec cases cover, as reports tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Of all messages.
    #[serde(flatten)]
    pub all: Tally,
    /// By message.
    pub messages: BTreeMap<String, Tally>,
    /// The mutants that no case catches: untested rules.
    pub untested: Vec<String>,
}

impl Coverage {
    /// Adds up mutants.
    pub fn of(mutants: &[Covered]) -> Coverage {
        let mut coverage = Coverage::default();
        for mutant in mutants {
            coverage.all.count(mutant);
            coverage.messages.entry(mutant.message.clone()).or_default().count(mutant);
            if mutant.caught_by.is_none() {
                coverage.untested.push(mutant.to_string());
            }
        }
        coverage
    }
}

/// Every mutant of every definition, and what catches it.
pub fn measure(protocol: &Protocol, vectors: &Vectors) -> Result<Vec<Covered>, codec::SpecError> {
    // The cases that read a message at a version: its own, and for headers those of whole frames.
    let mut cases: BTreeMap<(String, i16), Vec<&Vector>> = BTreeMap::new();
    for case in &vectors.cases {
        for layout in layouts(case) {
            cases.entry((layout.spec().name.to_string(), layout.version().0)).or_default().push(case);
        }
    }
    // The smallest first: most mutants are caught by one of those, and large ones take their time.
    for cases in cases.values_mut() {
        cases.sort_by_key(|case| case.bytes.as_ref().map_or(usize::MAX, Vec::len));
    }
    let mut covered = Vec::new();
    for spec in protocol.messages() {
        for version in spec.valid_versions.iter() {
            let layout = protocol.layout(&spec.name, version)?;
            let cases = cases.get(&(spec.name.to_string(), version.0)).map(Vec::as_slice).unwrap_or_default();
            for mutant in mutants(&layout) {
                let by = cases.iter().find(|case| catches(case, &layout, &mutant));
                covered.push(Covered {
                    message: spec.name.to_string(),
                    version,
                    place: mutant.place,
                    mutation: mutant.mutation,
                    caught_by: by.map(|case| case.id.clone()),
                });
            }
        }
    }
    Ok(covered)
}

fn layouts(case: &Vector) -> Vec<&Arc<Layout>> {
    match &case.layout {
        PartLayout::Single(layout) => vec![layout],
        PartLayout::Frame(frame) => vec![&frame.header, &frame.body],
    }
}

/// Whether a codec with the mutant's layout would be found out by a case.
fn catches(case: &Vector, right: &Arc<Layout>, mutant: &Mutant) -> bool {
    let Some(wrong) = &mutant.layout else { return refused_there(case, right, mutant) };
    let wrong = Arc::new(wrong.clone());
    let exchange = |layout: &Arc<Layout>| {
        let same = layout.spec().name == right.spec().name && layout.version() == right.version();
        if same { wrong.clone() } else { layout.clone() }
    };
    let layout = match &case.layout {
        PartLayout::Single(layout) => PartLayout::Single(exchange(layout)),
        PartLayout::Frame(frame) => {
            PartLayout::Frame(FrameLayout { header: exchange(&frame.header), body: exchange(&frame.body) })
        }
    };
    let value = case.value.as_ref().map(|json| layout.from_json(json, AbsentFields::Keep));
    let decoded = case.bytes.as_deref().map(|bytes| layout.decode(bytes));
    match (case.rule.result, decoded, value) {
        (Expected::Valid, Some(Ok(decoded)), Some(Ok(value))) => {
            let encoded = layout.encode(&value).ok();
            // Tags at their default need not be written again, so there only the value tells.
            let same_bytes = case.rule.id != "well-formed" || encoded == case.bytes;
            decoded.left > 0 || decoded.value != value || !same_bytes
        }
        (Expected::Valid, ..) => true,
        (Expected::Invalid, decoded, _) => matches!(decoded, Some(Ok(_))),
        // A right encoder need not refuse it.
        (Expected::Refused, ..) if case.rule.outcomes.contains(&Allowed::TagsDroppedOrKept) => false,
        (Expected::Refused, _, value) => {
            value.is_some_and(|value| value.is_ok_and(|value| layout.encode(&value).is_ok()))
        }
        // What may be refused catches nothing by being refused.
        (Expected::Acceptable, Some(Ok(decoded)), Some(Ok(value))) => decoded.value != value,
        (Expected::Acceptable, ..) => false,
    }
}

/// Whether a case has in this field, or in an element of it, what must be refused: a length or count that must not be
/// believed, or a null that may not be.
fn refused_there(case: &Vector, right: &Layout, mutant: &Mutant) -> bool {
    use DecodeErrorKind::{CountExceedsInput, LengthExceedsInput, NullNotAllowed};
    let (Expected::Invalid, Some(bytes)) = (case.rule.result, &case.bytes) else { return false };
    let Err(error) = case.layout.decode(bytes) else { return false };
    let refused = match mutant.mutation {
        Mutation::Nullable => error.kind == NullNotAllowed,
        _ => matches!(error.kind, CountExceedsInput { .. } | LengthExceedsInput { .. }),
    };
    refused
        && error.path.ends_with(']') == mutant.element
        && mutant.field.is_some()
        && field_at(right, &error.path) == mutant.field
        && (case.part == Part::Body || layouts(case).iter().any(|layout| layout.spec().name == right.spec().name))
}

/// Number of the field at a path of a decode error.
fn field_at(layout: &Layout, path: &str) -> Option<u16> {
    let mut structure = layout.root();
    let mut found = None;
    for step in PathStep::parse(path)? {
        let PathStep::Field(name) = step else { continue };
        let mut numbers = structure.fields.iter().chain(&structure.tagged).copied();
        let number = numbers.find(|&number| *layout.field(number).name == *name)?;
        found = Some(number);
        if let WireType::Struct { id, .. } | WireType::Array { element: Element::Struct(id), .. } =
            layout.field(number).wire
        {
            structure = layout.structure(id);
        }
    }
    found
}
