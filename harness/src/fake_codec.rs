//! Peers that are wrong in one known way, to test the tester: a plain codec over the same layouts as the reference, in
//! which a switch turns one fault on, and the check that a case about that very fault catches it.

mod faults;
mod plain;

pub use faults::{FAULTS, Switch};

use crate::adapter::{Answer, LINE_LIMIT, Launch};
use crate::cases::Cases;
use crate::matrix::{Bench, Plan, Recorder};
use crate::names::kebab;
use crate::results::{Class, Level, Outcome, Role, Verdict};
use crate::vector::{Part, Vector};
use crate::verdict::{self, Observation};
use crate::{definitions, reference};
use codec::{AbsentFields, ApiVersion, Protocol};
use globset::{Glob, GlobMatcher};
use indicatif::{MultiProgress, ProgressDrawTarget};
use plain::Stop;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// A fault, and how it must be found out.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    name: &'static str,
    /// What is wrong, in a few words.
    pub what: &'static str,
    /// Public reports of such a fault.
    pub reports: &'static [&'static str],
    /// What must catch it.
    pub due: Due,
    /// What turns it on; without it this is a peer without fault.
    pub switch: Option<Switch>,
}

/// What must catch a fault. It is not enough that some case fails: the case must be about what is wrong.
#[derive(Clone, Copy, Debug)]
pub enum Due {
    /// A case of this rule, whose id the glob matches, with a deviation of this class.
    Case {
        /// Id of the rule.
        rule: &'static str,
        /// Glob of case ids.
        cases: &'static str,
        /// The class.
        class: Class,
    },
    /// The suite says that the adapter does not keep to its protocol.
    Adapter,
}

impl Fault {
    /// No fault at all: the control.
    pub const CONTROL: Fault = Fault { name: "None", what: "no fault", reports: &[], due: Due::Adapter, switch: None };

    /// Its name in commands.
    pub fn name(&self) -> String {
        kebab(self.name)
    }

    /// Whether it can only be told from outside the process.
    fn needs_a_process(&self) -> bool {
        matches!(self.due, Due::Adapter | Due::Case { class: Class::Crash | Class::Hang, .. })
    }
}

/// What a faulty peer does with a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// It answers.
    Answer(Json),
    /// It ends as if it had failed.
    Ends,
    /// It dies.
    Aborts,
    /// It never answers.
    Hangs,
    /// It repeats a line without end, which nobody asked for.
    Floods(&'static str),
}

/// What a peer with this fault does with its request `number`, the first after the handshake being 1.
pub fn act(protocol: &Protocol, fault: Option<Switch>, request: Json, number: usize) -> Deed {
    // The probe comes first: the third line after the handshake is the second of a case.
    let third = number == 3;
    match fault {
        Some(Switch::Echo) => return Deed::Answer(request),
        Some(Switch::Crasher) if third => return Deed::Ends,
        Some(Switch::Sleeper) if third => return Deed::Hangs,
        Some(Switch::Flooder) if third => return Deed::Floods(r#"{"id":0,"value":{}}"#),
        Some(Switch::BlankLines) if third => return Deed::Floods(""),
        Some(Switch::Liar) => return Deed::Answer(lie(protocol, &request)),
        _ => {}
    }
    let mut answer = match answer(protocol, fault, &request) {
        Ok(answer) => answer,
        Err(Stop::Refused(why)) => json!({ "error": why }),
        Err(Stop::Panicked(what)) => json!({ "panic": what }),
        Err(Stop::Aborted) => return Deed::Aborts,
        Err(Stop::Hung) => return Deed::Hangs,
    };
    answer["id"] = request["id"].clone();
    match fault {
        Some(Switch::WrongIds) => answer["id"] = (request["id"].as_u64().unwrap_or(0) + 1).into(),
        Some(Switch::ValueAndError) if answer["value"].is_object() => answer["error"] = "but something is wrong".into(),
        Some(Switch::Bloated) if answer["value"].is_object() => answer["value"] = "x".repeat(LINE_LIMIT - 100).into(),
        _ => {}
    }
    Deed::Answer(answer)
}

/// The handshake of a peer with this fault.
pub fn handshake(protocol: &Protocol, fault: &Fault) -> Json {
    let mut handshake = reference::handshake(protocol);
    handshake["peer"] = format!("fake-{}", fault.name()).into();
    if fault.switch == Some(Switch::BadRanges) {
        handshake["supports"]["DescribeConfigsResponse"]["decode"] = "0..4".into();
    }
    handshake
}

fn answer(protocol: &Protocol, fault: Option<Switch>, request: &Json) -> Result<Json, Stop> {
    let op = request["op"].as_str().unwrap_or_default();
    let spec = request["message"].as_str().and_then(|name| protocol.message(name));
    let version = request["version"].as_i64().and_then(|version| i16::try_from(version).ok()).map(ApiVersion);
    let part = serde_json::from_value::<Part>(request["part"].clone());
    let (Some(spec), Some(version), Ok(part), "decode" | "encode" | "recode") = (spec, version, part, op) else {
        return Ok(json!({ "unsupported": "no such message, version, part or operation" }));
    };
    let refused = |why: String| Stop::Refused(why);
    let mut layout = plain::layout(fault, protocol, spec, version, part).map_err(|error| refused(error.to_string()))?;
    if op == "encode" {
        let value = layout.from_json(&request["value"], AbsentFields::Keep);
        let bytes = plain::encode(fault, &layout, &value.map_err(|error| refused(error.to_string()))?)?;
        return Ok(json!({ "bytes": codec::hex(&bytes) }));
    }
    let bytes = codec::parse_hex(request["bytes"].as_str().unwrap_or_default()).map_err(refused)?;
    if fault == Some(Switch::RejectionInAskedVersion) && part == Part::Body && bytes.starts_with(&[0, 35]) {
        let asked = spec.valid_versions.iter().last().unwrap_or(version);
        layout = plain::layout(fault, protocol, spec, asked, part).map_err(|error| refused(error.to_string()))?;
    }
    let (values, left) = plain::decode(fault, &layout, &bytes)?;
    if op == "recode" {
        return Ok(json!({ "bytes": codec::hex(&plain::encode(fault, &layout, &values)?) }));
    }
    Ok(json!({ "value": layout.to_json(&values), "left": left }))
}

/// The value of all defaults, whatever was asked.
fn lie(protocol: &Protocol, request: &Json) -> Json {
    let mut request = request.clone();
    let op = request["op"].clone();
    request["op"] = "encode".into();
    request["value"] = json!({});
    let encoded = reference::answer(protocol, &request);
    if op != "decode" || encoded.get("bytes").is_none() {
        return encoded;
    }
    request["op"] = op;
    request["bytes"] = encoded["bytes"].clone();
    reference::answer(protocol, &request)
}

/// What came of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A case that is about it: its id, and the class.
    By(String, Class),
    /// The suite would not believe the adapter.
    Disbelieved(String),
    /// Not by a case that is about it; perhaps by another.
    Nothing(Option<String>),
}

impl Found {
    /// Whether it was caught as it must be.
    pub fn is_caught(&self) -> bool {
        !matches!(self, Found::Nothing(_))
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::By(case, class) => write!(f, "{case} ({})", kebab(&format!("{class:?}"))),
            Found::Disbelieved(why) => write!(f, "the probe ({why})"),
            Found::Nothing(None) => f.write_str("NOTHING"),
            Found::Nothing(Some(other)) => write!(f, "NOTHING that is about it, only {other}"),
        }
    }
}

/// Judges each fault; `program` is this very binary, which those that die or hang run in.
pub fn check(faults: &[Fault], cases: &Cases, program: &str) -> anyhow::Result<Vec<Found>> {
    let found = |fault: &Fault| match fault.needs_a_process() {
        true => outside(fault, cases, program),
        false => within(fault, cases),
    };
    std::thread::scope(|scope| {
        // Those in a process of their own mostly wait for a deadline.
        let waiting: Vec<_> =
            faults.iter().map(|fault| fault.needs_a_process().then(|| scope.spawn(move || found(fault)))).collect();
        let pairs = faults.iter().zip(waiting);
        pairs
            .map(|(fault, waiting)| match waiting {
                Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                None => found(fault),
            })
            .collect()
    })
}

/// What is held against a peer without fault, which must be nothing. It may differ where a rule leaves it free.
pub fn control(cases: &Cases, program: &str) -> anyhow::Result<Vec<String>> {
    let few = selected(&Fault { due: Due::Adapter, ..Fault::CONTROL }, cases)?;
    let outcomes = certify(&Fault::CONTROL.name(), few, cases, program)?;
    let within = cases.vectors.cases.iter().flat_map(|case| outcomes_of(case, None));
    let bad = within.chain(outcomes).filter(|outcome| !matches!(outcome.verdict, Verdict::Pass | Verdict::Variant));
    Ok(bad.map(|outcome| format!("{}: {}", outcome.case, outcome.detail.unwrap_or_default())).collect())
}

/// Judges a fault in this process, by the cases that are about it first.
fn within(fault: &Fault, cases: &Cases) -> anyhow::Result<Found> {
    let due = Caught::new(fault)?;
    let (about, others): (Vec<&Vector>, Vec<&Vector>) = cases.vectors.cases.iter().partition(|case| due.is_about(case));
    let mut outcomes = about.iter().flat_map(|case| outcomes_of(case, fault.switch));
    if let Some(outcome) = outcomes.find(|outcome| due.is_it(outcome)) {
        return Ok(Found::By(outcome.case, due.class));
    }
    let outcomes = about.iter().chain(&others).flat_map(|case| outcomes_of(case, fault.switch));
    let mut outcomes = outcomes.filter(|outcome| outcome.class.is_some());
    Ok(Found::Nothing(outcomes.next().map(|outcome| named(&outcome))))
}

fn named(outcome: &Outcome) -> String {
    let class = outcome.class.map_or_else(|| "harness-error".to_owned(), |class| kebab(&format!("{class:?}")));
    format!("{} ({class})", outcome.case)
}

/// The outcomes of a case with a peer that has this fault.
fn outcomes_of(case: &Vector, fault: Option<Switch>) -> impl Iterator<Item = Outcome> {
    verdict::operations(case).iter().map(move |&op| {
        let seen = match act(definitions::bundled(), fault, verdict::request(case, op), 0) {
            Deed::Answer(answer) => Observation::from(Answer::Line(answer)),
            Deed::Ends | Deed::Aborts => Observation::Crashed("in a process of its own it would".to_owned()),
            Deed::Hangs => Observation::Hung(Duration::ZERO),
            Deed::Floods(_) => Observation::Broken("answers without end".to_owned()),
        };
        verdict::judge(case, op, &seen, "fake", Level::Observed, Duration::ZERO)
    })
}

/// Judges a fault in a process of its own, by a few cases that are about it.
fn outside(fault: &Fault, cases: &Cases, program: &str) -> anyhow::Result<Found> {
    let name = fault.switch.map_or_else(|| Fault::CONTROL.name(), |_| fault.name());
    let outcomes = certify(&name, selected(fault, cases)?, cases, program);
    if let Due::Adapter = fault.due {
        return Ok(match outcomes {
            Err(error) => Found::Disbelieved(format!("{error:#}")),
            Ok(outcomes) => {
                let error = outcomes.into_iter().find(|outcome| outcome.verdict == Verdict::HarnessError);
                error.map_or(Found::Nothing(None), |outcome| Found::Disbelieved(outcome.detail.unwrap_or_default()))
            }
        });
    }
    let (due, outcomes) = (Caught::new(fault)?, outcomes?);
    Ok(match outcomes.iter().find(|outcome| due.is_it(outcome)) {
        Some(outcome) => Found::By(outcome.case.clone(), due.class),
        None => Found::Nothing(outcomes.iter().find(|outcome| outcome.verdict != Verdict::Pass).map(named)),
    })
}

/// One case about the fault, or one that any peer has to pass: what hangs costs its deadline at each.
fn selected(fault: &Fault, cases: &Cases) -> anyhow::Result<BTreeSet<String>> {
    let due = match fault.due {
        Due::Case { .. } => Caught::new(fault)?,
        Due::Adapter => Caught::new(&Fault { due: ANY, ..*fault })?,
    };
    Ok(cases.vectors.cases.iter().filter(|case| due.is_about(case)).take(1).map(|case| case.id.clone()).collect())
}

/// A case that every peer has.
const ANY: Due = Due::Case { rule: "well-formed", cases: "codec/describe-configs-response/*", class: Class::Crash };

fn certify(fault: &str, selected: BTreeSet<String>, cases: &Cases, program: &str) -> anyhow::Result<Vec<Outcome>> {
    let plan = Plan { level: Level::Must, jobs: 1, seed: 1, publish: false };
    let bench = Bench {
        protocol: definitions::bundled(),
        cases,
        plan: &plan,
        selected,
        recorder: Recorder::in_memory(),
        progress: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()),
    };
    let command = [program, "fake", "codec", "--fault", fault].map(str::to_owned).to_vec();
    Ok(bench.certify(Role::Codec, Launch { command, env: BTreeMap::new() })?.outcomes)
}

/// A fault's [`Due::Case`], ready to be compared.
struct Caught {
    rule: &'static str,
    cases: GlobMatcher,
    class: Class,
}

impl Caught {
    fn new(fault: &Fault) -> anyhow::Result<Caught> {
        let Due::Case { rule, cases, class } = fault.due else { anyhow::bail!("{} has no case", fault.name()) };
        Ok(Caught { rule, cases: Glob::new(cases)?.compile_matcher(), class })
    }

    fn is_about(&self, case: &Vector) -> bool {
        case.rule.id == self.rule && self.cases.is_match(&case.id)
    }

    /// Whether this is the deviation, of a case that is about it.
    fn is_it(&self, outcome: &Outcome) -> bool {
        outcome.class == Some(self.class)
    }
}
