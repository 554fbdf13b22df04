//! Attestation: valid codec vectors, encoded and decoded once more by the independent codecs that made them.
//!
//! An author confirms a vector when it writes the value as these very bytes and reads the bytes as the value. Some can
//! do one of the two only, since their library has no more; that is said, not passed over.

use crate::adapter::{self, Adapter, PeerVersion};
use crate::matrix::{Candidate, candidates};
use crate::output;
use crate::process::interrupted;
use crate::results::{Level, Op, Outcome, Role, Verdict};
use crate::vector::{Allowed, Expected, Part, Source, Vector, Vectors};
use crate::verdict::{self, Observation};
use anyhow::Context as _;
use codec::{ApiKey, ApiVersion, MessageKind, Protocol};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Deadline of one question.
const DEADLINE: Duration = Duration::from_secs(5);

/// What an author says of a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The same bytes and the same value. Where its library has one direction only: which, and why.
    Confirmed(Option<String>),
    /// Other bytes, another value, or a refusal.
    Disagrees(String),
    /// It could not be asked here, or does not have this; why.
    NotRun(String),
    /// No codec that can be run here: it was recorded once.
    Recorded,
}

/// A valid vector and what was found of its authors.
#[derive(Debug)]
pub struct Attested<'c> {
    /// The vector.
    pub case: &'c Vector,
    /// Its authors and, where others were asked as well, those: by name.
    pub authors: BTreeMap<String, Standing>,
}

/// What came of asking.
#[derive(Debug)]
pub struct Attestation<'c> {
    /// The valid vectors, by id.
    pub vectors: Vec<Attested<'c>>,
    /// Authors that did not run at all, and what to do about it.
    pub not_run: BTreeMap<String, String>,
    /// `sources.json`, for the families.
    pub sources: &'c BTreeMap<String, Source>,
}

/// The numbers of the last line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Valid vectors.
    pub valid: usize,
    /// Those whose confirming or recorded authors are of two families.
    pub two_families: usize,
    /// Those with an author that disagrees.
    pub disagree: usize,
    /// Those of which no author was asked again, or that miss a family since its author was not.
    pub not_rerun: usize,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts { valid, two_families, disagree, not_rerun } = self;
        write!(f, "{valid} valid, {two_families} by >= 2 families, {disagree} disagree, {not_rerun} not re-run")
    }
}

/// What a case's `source` should say instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The file below `vectors/codec`.
    pub file: String,
    /// The case's id in it.
    pub case: String,
    /// What `source` says now.
    pub was: Vec<String>,
    /// Codecs that confirm it at each of its versions and are not named.
    pub add: Vec<String>,
    /// Authors that disagree at one of its versions.
    pub remove: Vec<String>,
    /// Whether nobody is taken out, or authors of two families are left.
    pub sound: bool,
}

impl Change {
    /// What `source` should say.
    pub fn source(&self) -> Vec<String> {
        let kept = self.was.iter().filter(|author| !self.remove.contains(author));
        let mut source: Vec<String> = kept.chain(&self.add).cloned().collect();
        source.sort();
        source
    }
}

impl Attested<'_> {
    /// The authors that `source` names.
    fn named(&self) -> impl Iterator<Item = (&String, &Standing)> {
        self.authors.iter().filter(|(author, _)| self.case.source.contains(author))
    }

    /// Families of the named authors of which something holds.
    fn families<'s>(
        &'s self,
        sources: &'s BTreeMap<String, Source>,
        holds: impl Fn(&Standing) -> bool,
    ) -> BTreeSet<&'s str> {
        let holding = self.named().filter(|(_, standing)| holds(standing));
        holding.filter_map(|(author, _)| family(sources, author)).collect()
    }
}

impl Attestation<'_> {
    /// The numbers of the last line.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts { valid: self.vectors.len(), ..Counts::default() };
        for vector in &self.vectors {
            counts.two_families += usize::from(self.proven(vector).len() >= 2);
            let disagrees = |(_, standing): (_, &Standing)| matches!(standing, Standing::Disagrees(_));
            counts.disagree += usize::from(vector.named().any(disagrees));
            counts.not_rerun += usize::from(self.not_rerun(vector));
        }
        counts
    }

    /// Families that vouch for a vector: confirmed now, or recorded.
    fn proven<'s>(&'s self, vector: &'s Attested<'_>) -> BTreeSet<&'s str> {
        vector.families(self.sources, |standing| matches!(standing, Standing::Confirmed(_) | Standing::Recorded))
    }

    fn not_rerun(&self, vector: &Attested<'_>) -> bool {
        let asked = |(_, standing): (_, &Standing)| matches!(standing, Standing::Confirmed(_) | Standing::Disagrees(_));
        let proven = self.proven(vector).len();
        let unasked = vector.families(self.sources, |standing| !matches!(standing, Standing::Disagrees(_))).len();
        !vector.named().any(asked) || proven < 2 && unasked > proven
    }

    /// A line for each problem: case, author, what.
    pub fn problems(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.not_run.iter().map(|(author, why)| format!("{author}: not re-run: {why}")).collect();
        for vector in &self.vectors {
            let id = &vector.case.id;
            let not_rerun = self.not_rerun(vector);
            for (author, standing) in vector.named() {
                match standing {
                    Standing::Disagrees(what) => lines.push(format!("{id}: {author}: {what}")),
                    Standing::NotRun(why) if not_rerun && !self.not_run.contains_key(author) => {
                        lines.push(format!("{id}: {author}: not re-run: {why}"));
                    }
                    _ => {}
                }
            }
            if vector.named().all(|(_, standing)| *standing == Standing::Recorded) {
                lines.push(format!("{id}: not re-run: all of its authors are recordings"));
            }
            let proven = self.proven(vector);
            if proven.len() < 2 && !not_rerun {
                let names: Vec<&str> = proven.into_iter().collect();
                let families =
                    if names.is_empty() { "by none".to_owned() } else { format!("by {} alone", names.join(", ")) };
                lines.push(format!("{id}: not vouched for by two families: {families}"));
            }
        }
        lines
    }

    /// What is as good as it gets, but less than both ways by everybody: how often, by author and reason.
    pub fn notes(&self) -> Vec<String> {
        let mut partly: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut recorded = 0;
        for vector in &self.vectors {
            for (author, standing) in vector.named() {
                match standing {
                    Standing::Confirmed(Some(how)) => *partly.entry((author, how)).or_default() += 1,
                    Standing::NotRun(why) if !self.not_rerun(vector) && !self.not_run.contains_key(author) => {
                        *partly.entry((author, why)).or_default() += 1;
                    }
                    _ => {}
                }
            }
            let now = vector.families(self.sources, |standing| matches!(standing, Standing::Confirmed(_)));
            recorded += usize::from(now.len() < 2 && self.proven(vector).len() >= 2);
        }
        let mut notes: Vec<String> =
            partly.iter().map(|((author, how), count)| format!("note: {author}: {count} vectors: {how}")).collect();
        if recorded > 0 {
            notes.push(format!("note: {recorded} vectors have their second family from recorded bytes"));
        }
        notes
    }

    /// Codecs that were asked, are not named as authors, and disagree.
    pub fn dissent(&self) -> Vec<String> {
        let unnamed = self.vectors.iter().flat_map(|vector| {
            vector.authors.iter().filter_map(|(author, standing)| match standing {
                Standing::Disagrees(what) if !vector.case.source.contains(author) => {
                    Some(format!("{}: {author}, which is not named as author: {what}", vector.case.id))
                }
                _ => None,
            })
        });
        unnamed.collect()
    }

    /// What the `source` of cases should say instead; only of cases that were asked about at each of their versions.
    pub fn changes(&self, all: &Vectors) -> Vec<Change> {
        let mut versions: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for case in &all.cases {
            *versions.entry(case.place()).or_default() += 1;
        }
        let mut groups: BTreeMap<(&str, &str), Vec<&Attested<'_>>> = BTreeMap::new();
        for vector in &self.vectors {
            groups.entry(vector.case.place()).or_default().push(vector);
        }
        groups.retain(|place, group| versions.get(place) == Some(&group.len()));
        let change = |(&(message, slug), group): (&(&str, &str), &Vec<&Attested<'_>>)| {
            let was = &group[0].case.source;
            let says = |author: &String, what: &dyn Fn(&Standing) -> bool| {
                group.iter().filter(|vector| vector.authors.get(author).is_some_and(what)).count()
            };
            let confirms = |author: &String| says(author, &|it| matches!(it, Standing::Confirmed(_))) == group.len();
            let disagrees = |author: &String| says(author, &|it| matches!(it, Standing::Disagrees(_))) > 0;
            let asked: BTreeSet<&String> = group.iter().flat_map(|vector| vector.authors.keys()).collect();
            let add = asked.iter().filter(|author| !was.contains(author) && confirms(author));
            let mut change = Change {
                file: format!("{message}.json"),
                case: slug.to_owned(),
                was: was.clone(),
                add: add.map(|author| (*author).clone()).collect(),
                remove: was.iter().filter(|author| disagrees(author)).cloned().collect(),
                sound: true,
            };
            change.sound = change.remove.is_empty() || families(self.sources, &change.source()).len() >= 2;
            change
        };
        groups.iter().map(change).filter(|change| !change.add.is_empty() || !change.remove.is_empty()).collect()
    }
}

/// The families of authors.
pub fn families<'s>(sources: &'s BTreeMap<String, Source>, authors: &[String]) -> BTreeSet<&'s str> {
    authors.iter().filter_map(|author| family(sources, author)).collect()
}

/// The family of an author.
fn family<'s>(sources: &'s BTreeMap<String, Source>, author: &str) -> Option<&'s str> {
    Some(&sources.get(author.split('@').next()?)?.family)
}

/// Asks the authors of the selected valid vectors, and with `others` every codec that `sources.json` lists about all of
/// them. The error is that the user wants us to stop.
pub fn attest<'c>(
    protocol: &Protocol,
    all: &'c Vectors,
    selected: &BTreeSet<String>,
    others: bool,
    progress: &MultiProgress,
) -> anyhow::Result<Attestation<'c>> {
    let valid = |case: &&Vector| case.rule.result == Expected::Valid && selected.contains(&case.id);
    let cases: Vec<&Vector> = all.cases.iter().filter(valid).collect();
    let codecs: Vec<PeerVersion> = candidates().into_iter().filter_map(codec).collect();
    let listed = |peer: &&PeerVersion| {
        all.sources.get(&peer.manifest.name).is_some_and(|source| source.versions.contains(&peer.version))
    };
    let checkout = adapter::checkout();
    let mut not_run = BTreeMap::new();
    let mut ready = Vec::new();
    for peer in codecs.iter().filter(listed) {
        let wanted = |case: &&Vector| others || case.source.contains(&peer.name());
        let questions: Vec<&Vector> = cases.iter().copied().filter(wanted).collect();
        if questions.is_empty() || interrupted() {
            continue;
        }
        match prepare(peer, checkout.as_deref(), progress) {
            Ok(launch) => ready.push((peer.name(), launch, questions)),
            Err(error) => _ = not_run.insert(peer.name(), one_line(&error)),
        }
    }
    let said = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (name, launch, questions) in ready {
            let said = &said;
            scope.spawn(move || {
                let bar = spinner(progress, format!("asking {name}"));
                let standings = examine(protocol, &name, launch, &questions, &bar);
                bar.finish_and_clear();
                said.lock().unwrap_or_else(PoisonError::into_inner).push((name, standings));
            });
        }
    });
    anyhow::ensure!(!interrupted(), "interrupted: nothing was changed");
    let mut standings = BTreeMap::new();
    for (name, said) in said.into_inner().unwrap_or_else(PoisonError::into_inner) {
        match said {
            Ok(said) => _ = standings.insert(name, said),
            Err(error) => _ = not_run.insert(name, one_line(&error)),
        }
    }
    let is_codec = |author: &str| codecs.iter().any(|peer| author.split('@').next() == Some(&peer.manifest.name));
    let vectors = cases.into_iter().map(|case| {
        let asked = standings.iter().filter_map(|(name, said)| Some((name.clone(), said.get(&*case.id)?.clone())));
        let mut authors: BTreeMap<String, Standing> = asked.collect();
        for author in &case.source {
            authors.entry(author.clone()).or_insert_with(|| match not_run.get(author) {
                Some(why) => Standing::NotRun(why.clone()),
                None if is_codec(author) => Standing::NotRun("this version of it cannot be run here".to_owned()),
                None => Standing::Recorded,
            });
        }
        Attested { case, authors }
    });
    Ok(Attestation { vectors: vectors.collect(), not_run, sources: &all.sources })
}

fn codec(candidate: Candidate) -> Option<PeerVersion> {
    match candidate {
        Candidate::Manifest(peer, Role::Codec) => Some(peer),
        _ => None,
    }
}

/// Builds a codec where that is due. The error says what is missing.
fn prepare(peer: &PeerVersion, checkout: Option<&Path>, progress: &MultiProgress) -> anyhow::Result<adapter::Launch> {
    if let Some(missing) = peer.missing_tool() {
        anyhow::bail!(missing);
    }
    let checkout = checkout.context("adapters are built from a checkout of this repository: run it there")?;
    if !peer.is_built(checkout) && progress.is_hidden() {
        output::tell(format_args!("building {} (once; it may take minutes)", peer.name()));
    }
    let bar = spinner(progress, format!("building {}", peer.name()));
    let built = peer.build_if_changed(checkout);
    bar.finish_and_clear();
    built.map(|()| peer.launch(checkout))
}

fn spinner(progress: &MultiProgress, text: String) -> ProgressBar {
    let bar = progress.add(ProgressBar::new_spinner());
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
    bar.set_style(style.unwrap_or(ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar.set_message(text);
    bar
}

/// An error on one line.
fn one_line(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    adapter::cut(&text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" | "))
}

/// Asks one codec about vectors; stops early where the user wants that.
fn examine<'c>(
    protocol: &Protocol,
    peer: &str,
    launch: adapter::Launch,
    cases: &[&'c Vector],
    bar: &ProgressBar,
) -> anyhow::Result<BTreeMap<&'c str, Standing>> {
    let mut adapter = Adapter::start(launch)?;
    let mut found = BTreeMap::new();
    for case in cases {
        if interrupted() {
            break;
        }
        bar.set_message(format!("asking {peer}: {}", case.id));
        let [decode, encode] = [Op::Decode, Op::Encode].map(|op| judged(protocol, peer, &mut adapter, case, op));
        found.insert(case.id.as_str(), standing(case, &decode, &encode));
    }
    adapter.stop();
    Ok(found)
}

/// Asks a codec one thing, and judges its answer.
fn judged(protocol: &Protocol, peer: &str, adapter: &mut Adapter, case: &Vector, op: Op) -> Outcome {
    let started = Instant::now();
    let mut seen = if verdict::declared(case, op, adapter.handshake()) {
        Observation::from(adapter.ask(verdict::request(case, op), DEADLINE))
    } else {
        Observation::Undeclared(format!("it has no {} version {}", case.spec.name, case.version))
    };
    if op == Op::Encode && matches!(seen, Observation::Unsupported(_) | Observation::Undeclared(_)) {
        let mut ask = |request: Json| Observation::from(adapter.ask(request, DEADLINE));
        seen = header_in_frame(protocol, case, &mut ask).unwrap_or(seen);
    }
    verdict::judge(case, op, &seen, peer, Level::Must, started.elapsed())
}

/// What a codec says of a case that is not published yet.
#[derive(Debug)]
pub struct Opinion {
    /// `name@version`.
    pub author: String,
    /// Whose codec it is.
    pub family: String,
    /// Of each operation that the case is judged by.
    pub outcomes: Vec<Outcome>,
    /// Whether it vouches for the case: a valid one it confirms as an author does, of others it does what the rule asks.
    pub confirms: bool,
    /// Whether it ended, hung or took too much memory, and its maintainers do not know such a thing of it.
    pub unreported: bool,
}

/// Asks every codec that is built about one case; and why others were not asked, by name.
pub fn opinions(protocol: &Protocol, case: &Vector) -> (Vec<Opinion>, BTreeMap<String, String>) {
    let (mut opinions, mut not_run) = (Vec::new(), BTreeMap::new());
    let checkout = adapter::checkout();
    for peer in candidates().into_iter().filter_map(codec) {
        let name = peer.name();
        let built = checkout.as_deref().filter(|checkout| peer.missing_tool().is_none() && peer.is_built(checkout));
        let Some(checkout) = built else {
            not_run.insert(name.clone(), format!("it is not built: kafka-conform peers build {name}"));
            continue;
        };
        match opinion(protocol, &peer, peer.launch(checkout), case) {
            Ok(opinion) => opinions.push(opinion),
            Err(error) => _ = not_run.insert(name, one_line(&error)),
        }
    }
    (opinions, not_run)
}

fn opinion(protocol: &Protocol, peer: &PeerVersion, launch: adapter::Launch, case: &Vector) -> anyhow::Result<Opinion> {
    let mut adapter = Adapter::start(launch)?;
    let author = peer.name();
    let ask = |op: &Op| judged(protocol, &author, &mut adapter, case, *op);
    let outcomes: Vec<Outcome> = verdict::operations(case).iter().map(ask).collect();
    adapter.stop();
    let confirms = match outcomes.as_slice() {
        [decode, encode, _] => matches!(standing(case, decode, encode), Standing::Confirmed(_)),
        outcomes => outcomes.iter().all(|outcome| matches!(outcome.verdict, Verdict::Pass | Verdict::Variant)),
    };
    let reported = |outcome: &Outcome| {
        let of = |known: &&adapter::Known| known.version == peer.version && Some(known.class) == outcome.class;
        peer.manifest.known.iter().filter(of).any(|known| known.reported != "never")
    };
    let unreported = outcomes.iter().any(|outcome| outcome.severity == Some(1) && !reported(outcome));
    Ok(Opinion { author, family: peer.manifest.family.clone(), outcomes, confirms, unreported })
}

/// A library may write headers in frames only. Then it is asked for a frame and for the frame's body alone: what stands
/// between size and body is its header. `None` where that is no way either.
fn header_in_frame(
    protocol: &Protocol,
    case: &Vector,
    ask: &mut dyn FnMut(Json) -> Observation,
) -> Option<Observation> {
    let header = verdict::request(case, Op::Encode)["value"].clone();
    let number = |name: &str| i16::try_from(header.get(name)?.as_i64()?).ok();
    let (spec, version) = match case.part {
        Part::Header => (&case.spec, case.version),
        Part::Body if &*case.spec.name == "RequestHeader" => {
            let key = Some(ApiKey(number("RequestApiKey")?));
            let goes_with = |spec: &&Arc<codec::MessageSpec>| spec.kind == MessageKind::Request && spec.api_key == key;
            let spec = protocol.messages().find(goes_with)?;
            (spec, ApiVersion(number("RequestApiVersion")?))
        }
        _ => return None,
    };
    let layout = protocol.frame_layout(spec, version).ok()?;
    if spec.kind != MessageKind::Request || (case.part == Part::Body && layout.header.version() != case.version) {
        return None;
    }
    let body = layout.body.default_value().to_json();
    let mut encode = |part: &str, value: Json| {
        let request =
            json!({ "op": "encode", "message": &*spec.name, "version": version.0, "part": part, "value": value });
        match ask(request) {
            Observation::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    };
    let frame = encode("frame", json!({ "header": header, "body": body }))?;
    let body = encode("body", body)?;
    let (size, rest) = frame.split_first_chunk()?;
    let header = match u32::from_be_bytes(*size) as usize {
        size if size == rest.len() => rest.strip_suffix(body.as_slice())?,
        // kmsg leaves off after header 0, and has filled in no size by then.
        0 if layout.header.version() == ApiVersion(0) => rest,
        _ => return None,
    };
    Some(Observation::Bytes(header.to_vec()))
}

/// What one direction came to.
enum Way {
    Same,
    /// The library does not have it, or does not keep what it is about.
    Lacks(String),
    NotRun(String),
    Other(String),
}

impl Way {
    fn of(outcome: &Outcome) -> Way {
        let detail = outcome.detail.clone().unwrap_or_default();
        match outcome.verdict {
            Verdict::Pass => Way::Same,
            Verdict::Variant | Verdict::Unsupported => Way::Lacks(detail),
            Verdict::NotRun | Verdict::HarnessError => Way::NotRun(detail),
            _ => {
                let op = serde_json::to_value(outcome.op).unwrap_or_default();
                let got = outcome.got.as_ref().map(|got| format!("; got {}", adapter::cut(&got.to_string())));
                Way::Other(format!("{}: {detail}{}", op.as_str().unwrap_or_default(), got.unwrap_or_default()))
            }
        }
    }
}

/// What both directions together say. An author must write the bytes, but for tagged fields that may be left out, unknown
/// ones and those at their default: there leaving them out is right as well, and reading them is all that can be asked.
fn standing(case: &Vector, decode: &Outcome, encode: &Outcome) -> Standing {
    let leaves_out = [Allowed::DefaultKeptOrDropped, Allowed::TagsDroppedOrKept];
    let may_leave_out = leaves_out.iter().any(|allowed| case.rule.outcomes.contains(allowed));
    match (Way::of(decode), Way::of(encode)) {
        (Way::Other(decode), Way::Other(encode)) => Standing::Disagrees(format!("{decode}; {encode}")),
        (Way::Other(what), _) | (_, Way::Other(what)) => Standing::Disagrees(what),
        (Way::NotRun(why), _) | (_, Way::NotRun(why)) => Standing::NotRun(why),
        (Way::Same, Way::Same) => Standing::Confirmed(None),
        (Way::Lacks(why), Way::Same) => Standing::Confirmed(Some(format!("encoded only: {why}"))),
        (Way::Same, Way::Lacks(why)) if may_leave_out => Standing::Confirmed(Some(format!("decoded only: {why}"))),
        (Way::Same, Way::Lacks(why)) => Standing::NotRun(format!("it decodes, but does not encode: {why}")),
        (Way::Lacks(why), Way::Lacks(_)) => Standing::NotRun(why),
    }
}

/// Puts other authors into a case file's text, and changes nothing else. The error is that the file is not written as
/// its neighbours are, with `id` and `source` on lines of their own, or is not what the sources were compared with.
pub fn rewrite(text: &str, changes: &[Change]) -> Result<String, String> {
    const INDENT: &str = "      ";
    let member = |line: &str, name: &str| -> Option<(Json, bool)> {
        let value = line.strip_prefix(INDENT)?.strip_prefix(&format!("\"{name}\": "))?;
        let (value, comma) = value.strip_suffix(',').map_or((value, false), |value| (value, true));
        Some((serde_json::from_str(value).ok()?, comma))
    };
    let mut due: BTreeMap<&str, &Change> = changes.iter().map(|change| (change.case.as_str(), change)).collect();
    let mut current = String::new();
    let mut lines = Vec::new();
    for line in text.split('\n') {
        if let Some((Json::String(id), _)) = member(line, "id") {
            current = id;
        }
        match member(line, "source") {
            Some((was, comma)) if due.get(current.as_str()).is_some_and(|change| was == json!(change.was)) => {
                let source = due.remove(current.as_str()).map(Change::source).unwrap_or_default();
                let source = source.iter().map(|author| format!("{author:?}")).collect::<Vec<_>>().join(", ");
                lines.push(format!("{INDENT}\"source\": [{source}]{}", if comma { "," } else { "" }));
            }
            _ => lines.push(line.to_owned()),
        }
    }
    if let Some(case) = due.keys().next() {
        return Err(format!("{case}: its source is not on a line of its own, or changed since this binary was built"));
    }
    let new = lines.join("\n");
    let parse = |text: &str| serde_json::from_str::<Json>(text).map_err(|error| error.to_string());
    let mut want = parse(text)?;
    for case in want["cases"].as_array_mut().into_iter().flatten() {
        if let Some(change) = changes.iter().find(|change| case["id"] == change.case.as_str()) {
            case["source"] = json!(change.source());
        }
    }
    if parse(&new)? != want {
        return Err("it is not written as the other files are".to_owned());
    }
    Ok(new)
}
