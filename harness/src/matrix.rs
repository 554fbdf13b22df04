//! The main job: which peers, which cases, run them all, and gather what came of it.

use crate::adapter::{self, Adapter, Answer, Handshake, Launch, Manifest, PeerVersion, Said};
use crate::cases::Cases;
use crate::client_case::{self, Client, ClientCase};
use crate::names::Globs;
use crate::patience::Patience;
use crate::process::interrupted;
use crate::report::{explain, words};
use crate::results::{EVIDENCE_KEPT, Level, Outcome, Peer, Results, Role, Row, Run, SENTENCE_KEPT, Status, Verdict};
use crate::vector::Vector;
use crate::verdict::{self, Observation};
use crate::{apache_kafka, exchange, live_broker, output, reference};
use anyhow::Context as _;
use codec::{Layout, MessageKind, Protocol};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Why peers are not run after the user wanted us to stop.
const INTERRUPTED: &str = "the run was interrupted";
/// Deadline of one codec case.
const CASE_DEADLINE: Duration = Duration::from_secs(5);

/// About how much memory the evidence of one peer may take before only the start of each piece is kept: more than real
/// peers have given, and what thousands of cases come to is bounded.
const EVIDENCE_OF_PEER: usize = 128 << 20;

/// How a run goes about it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The lowest level that gives `fail`.
    pub level: Level,
    /// Peers at a time.
    pub jobs: usize,
    /// Seed of everything that is made up.
    pub seed: u64,
    /// Whether the results may be published: then bytes that crash, hang or exhaust a peer are left out until its
    /// maintainers had them.
    pub publish: bool,
}

impl Plan {
    /// The options of `certify` that it follows from, but for those that say the same as none.
    fn options(&self) -> Vec<String> {
        let level = (self.level != Level::Must).then(|| format!("--level {}", words::word(self.level)));
        let seed = (self.seed != 1).then(|| format!("--seed {}", self.seed));
        level.into_iter().chain(seed).collect()
    }

    /// The first row of a run that goes so over these cases.
    pub fn row(&self, cases: &Cases, partial: bool) -> Run {
        Run {
            suite: env!("CARGO_PKG_VERSION").to_owned(),
            cases_sha256: cases.sha256.clone(),
            seed: self.seed,
            level: self.level,
            partial,
        }
    }
}

/// A peer in one role.
#[derive(Clone, Debug)]
pub enum Candidate {
    /// Our own codec.
    Reference,
    /// A peer with a manifest.
    Manifest(PeerVersion, Role),
}

impl Candidate {
    /// `name@version`, or `reference`.
    pub fn name(&self) -> String {
        match self {
            Candidate::Reference => reference::NAME.to_owned(),
            Candidate::Manifest(peer, _) => peer.name(),
        }
    }

    /// What it is judged as.
    pub fn role(&self) -> Role {
        match self {
            Candidate::Reference => Role::Codec,
            Candidate::Manifest(_, role) => *role,
        }
    }

    /// Whether a run without options has it.
    pub fn is_default(&self) -> bool {
        match self {
            Candidate::Reference => true,
            Candidate::Manifest(peer, _) => peer.manifest.bundled || peer.manifest.default,
        }
    }

    fn row(&self, status: Status, why: Option<String>) -> Peer {
        let (language, internal) = match self {
            Candidate::Reference => ("rust".to_owned(), false),
            Candidate::Manifest(peer, _) => (peer.manifest.language.clone(), peer.manifest.internal),
        };
        Peer {
            peer: self.name(),
            role: self.role(),
            language,
            status,
            why,
            internal,
            certified: false,
            options: Vec::new(),
        }
    }
}

/// Every peer in each of its roles.
pub fn candidates() -> Vec<Candidate> {
    let mut all = vec![Candidate::Reference];
    for manifest in adapter::manifests() {
        let manifest: Arc<Manifest> = Arc::new(manifest.clone());
        for version in &manifest.versions {
            for &role in &manifest.role {
                let peer = PeerVersion { manifest: manifest.clone(), version: version.clone() };
                all.push(Candidate::Manifest(peer, role));
            }
        }
    }
    all.sort_by_key(|candidate| (candidate.role(), candidate.name()));
    all
}

/// Where rows go while a run goes on, and where they are gathered.
pub struct Recorder {
    rows: Mutex<Gathered>,
}

struct Gathered {
    /// What makes the file and its first row, until there is something to append.
    open: Option<Box<dyn FnOnce() -> std::io::Result<File> + Send>>,
    file: Option<File>,
    peers: Vec<Peer>,
    outcomes: Vec<Outcome>,
    /// About how much memory the evidence of each peer takes.
    taken: BTreeMap<(Role, String), usize>,
    trouble: Option<std::io::Error>,
}

impl Recorder {
    /// Only gathers.
    pub fn in_memory() -> Recorder {
        Recorder::with(None)
    }

    /// Appends to the file that `open` makes, which is asked for when the first row is there: a run that never began
    /// leaves an earlier report alone.
    pub fn appending(open: impl FnOnce() -> std::io::Result<File> + Send + 'static) -> Recorder {
        Recorder::with(Some(Box::new(open)))
    }

    fn with(open: Option<Box<dyn FnOnce() -> std::io::Result<File> + Send>>) -> Recorder {
        let gathered = Gathered {
            open,
            file: None,
            peers: Vec::new(),
            outcomes: Vec::new(),
            taken: BTreeMap::new(),
            trouble: None,
        };
        Recorder { rows: Mutex::new(gathered) }
    }

    fn append(gathered: &mut Gathered, row: &Row) {
        // A file that a row is missing from is not written on.
        if gathered.trouble.is_some() {
            return;
        }
        match gathered.open.take().map(|open| open()) {
            Some(Ok(file)) => gathered.file = Some(file),
            Some(Err(error)) => gathered.trouble = Some(error),
            None => {}
        }
        let Some(file) = &mut gathered.file else { return };
        let line = serde_json::to_string(row).unwrap_or_default() + "\n";
        if let Err(error) = file.write_all(line.as_bytes()) {
            gathered.trouble = Some(explain(Path::new("results.jsonl"), error));
        }
    }

    fn rows(&self) -> std::sync::MutexGuard<'_, Gathered> {
        self.rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn peer(&self, peer: Peer) {
        let mut gathered = self.rows();
        Recorder::append(&mut gathered, &Row::Peer(peer.clone()));
        gathered.peers.push(peer);
    }

    fn outcome(&self, outcome: Outcome) {
        let mut gathered = self.rows();
        // By peer, so that what is cut does not depend on what runs beside it.
        let taken = gathered.taken.entry((outcome.role, outcome.peer.clone())).or_default();
        let most = if *taken < EVIDENCE_OF_PEER { EVIDENCE_KEPT } else { SENTENCE_KEPT };
        let (outcome, takes) = outcome.bounded(most);
        *taken += takes;
        Recorder::append(&mut gathered, &Row::Outcome(outcome.clone()));
        gathered.outcomes.push(outcome);
    }

    /// Whether a row could not be written.
    fn failed(&self) -> bool {
        self.rows().trouble.is_some()
    }
}

/// Rows could not be written, which stopped the run: what it found until then.
#[derive(Debug)]
pub struct Unwritten {
    /// A partial run.
    pub results: Results,
    error: std::io::Error,
}

impl std::fmt::Display for Unwritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the run was stopped: {}", self.error)
    }
}

impl std::error::Error for Unwritten {}

/// Everything a run is made from.
pub struct Bench<'a> {
    /// Definitions.
    pub protocol: &'static Protocol,
    /// Cases.
    pub cases: &'a Cases,
    /// The plan.
    pub plan: &'a Plan,
    /// The cases that the plan selects.
    pub selected: BTreeSet<String>,
    /// Where rows go.
    pub recorder: Recorder,
    /// Progress bars; hidden where nobody looks.
    pub progress: MultiProgress,
}

impl Bench<'_> {
    /// Runs every candidate and gives the results, known deviations marked.
    pub fn run(self, candidates: &[Candidate]) -> anyhow::Result<Results> {
        let checkout = adapter::checkout();
        let mut ready = Vec::new();
        for candidate in candidates {
            if self.stopped() {
                self.recorder.peer(candidate.row(Status::NotRun, Some(INTERRUPTED.to_owned())));
                continue;
            }
            match self.prepare(candidate, checkout.as_deref()) {
                Ok(()) => ready.push(candidate.clone()),
                Err(error) => self.recorder.peer(candidate.row(Status::NotRun, Some(why_not_run(&error)))),
            }
        }
        // Brokers take longest: first, so that the codecs run beside them.
        ready.sort_by_key(|candidate| std::cmp::Reverse(candidate.role() == Role::Broker));
        let jobs = self.plan.jobs.clamp(1, ready.len().max(1));
        let share = (cores() / jobs).max(1);
        let queue = Mutex::new(ready.into_iter());
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
                        let Some(candidate) = next.filter(|_| !self.stopped()) else { return };
                        self.judge(&candidate, checkout.as_deref(), share);
                    }
                });
            }
        });
        for candidate in queue.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            self.recorder.peer(candidate.row(Status::NotRun, Some(INTERRUPTED.to_owned())));
        }
        let (publish, whole) = (self.plan.publish, self.selected.len() == self.cases.list().len() && !self.stopped());
        let (mut results, trouble) = self.gathered();
        for manifest in adapter::manifests() {
            mark_known(&mut results, &manifest.name, &manifest.known, whole);
            if publish {
                withhold(&mut results, manifest);
            }
        }
        written(results, trouble)
    }

    /// Whether no further case is to be judged: the user says so, or what is found cannot be written.
    fn stopped(&self) -> bool {
        interrupted() || self.recorder.failed()
    }

    /// The results, sorted, and why not all of them could be written.
    fn gathered(self) -> (Results, Option<std::io::Error>) {
        let partial = self.stopped();
        let Bench { cases, plan, recorder, .. } = self;
        let gathered = recorder.rows.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut results = Results { run: plan.row(cases, partial), peers: gathered.peers, outcomes: gathered.outcomes };
        results.sort();
        (results, gathered.trouble)
    }

    /// A line on standard error where no progress bar can be drawn, such as in the log of a CI.
    fn say(&self, text: &str) {
        if !self.progress.is_hidden() || self.plan.publish {
            self.warn(text);
        }
    }

    fn warn(&self, text: &str) {
        let text = &crate::report::words::visible(text);
        match self.progress.is_hidden() {
            true => output::tell(text),
            false => drop(self.progress.println(text)),
        }
    }

    /// Says, when a peer lets a deadline pass for the first time, why the run is slow and how long it may be.
    fn warn_of_waits(&self, peer: &str, before: u32, now: u32) {
        if before == 0 && now > 0 {
            let limit = (Patience::WAITS * Patience::WAIT).as_secs();
            self.warn(&format!(
                "{peer} gave no answer in time; it is given up when it was waited for so for {limit} s in all"
            ));
        }
    }

    fn spinner(&self, text: String) -> ProgressBar {
        let bar = self.progress.add(ProgressBar::new_spinner());
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg} {elapsed}").unwrap_or(ProgressStyle::default_spinner()),
        );
        bar.enable_steady_tick(Duration::from_millis(120));
        bar.set_message(crate::report::words::visible_line(&text));
        bar
    }

    /// Makes sure that a peer is built. The error is why it cannot run.
    fn prepare(&self, candidate: &Candidate, checkout: Option<&Path>) -> anyhow::Result<()> {
        let Candidate::Manifest(peer, role) = candidate else { return Ok(()) };
        if let Some(missing) = peer.missing_tool() {
            anyhow::bail!(missing);
        }
        let checkout = checkout.context("adapters are built from a checkout of this repository: run it there")?;
        let started = Instant::now();
        let bar = self.spinner(format!("building {}", peer.name()));
        if !peer.is_built(checkout) {
            self.say(&format!("building {} (once; it may take minutes)", peer.name()));
        }
        let built = build(peer, *role, checkout);
        bar.finish_and_clear();
        if started.elapsed() > Duration::from_secs(2) {
            self.say(&format!("built {} in {:.0} s", peer.name(), started.elapsed().as_secs_f32()));
        }
        built
    }

    /// Judges a candidate; `cores` are there for it.
    fn judge(&self, candidate: &Candidate, checkout: Option<&Path>, cores: usize) {
        let started = Instant::now();
        let bar = self.spinner(format!("judging {}", candidate.name()));
        let judged = match candidate {
            Candidate::Reference => {
                self.judge_reference(&bar, cores);
                Ok(None)
            }
            Candidate::Manifest(peer, role) => match checkout {
                None => Err(anyhow::anyhow!("adapters are built from a checkout of this repository: run it there")),
                Some(checkout) => match role {
                    Role::Codec => self.judge_codec(candidate, peer.launch(checkout), &bar, cores),
                    Role::Broker => self.judge_broker(candidate, peer, checkout, &bar),
                    Role::Client => self.judge_client(candidate, peer.launch(checkout), &bar),
                },
            },
        };
        match judged {
            Ok(given_up) => self.recorder.peer(candidate.row(Status::Ran, given_up)),
            Err(error) => self.recorder.peer(candidate.row(Status::NotRun, Some(why_not_run(&error)))),
        }
        bar.finish_and_clear();
        if started.elapsed() > Duration::from_secs(2) {
            self.say(&format!("judged {} in {:.1} s", candidate.name(), started.elapsed().as_secs_f32()));
        }
    }

    fn vectors(&self) -> impl Iterator<Item = &Vector> {
        self.cases.vectors.cases.iter().filter(|case| self.selected.contains(&case.id))
    }

    fn judge_reference(&self, bar: &ProgressBar, cores: usize) {
        let handshake = match Handshake::read(reference::handshake(self.protocol)) {
            Ok(handshake) => handshake,
            Err(error) => unreachable!("our own handshake is right: {error}"),
        };
        in_parts(cores, |part| {
            let mut ask = |request: Json| Observation::from(Answer::Line(reference::answer(self.protocol, &request)));
            let cases = self.vectors().skip(part).step_by(cores);
            self.judge_vectors(reference::NAME, &handshake, cases, &mut ask, bar);
        });
    }

    /// Starts a codec's adapter in each of at most so many processes, probes it, and judges it, each process by its share of the
    /// cases. Gives why it was given up, if it was.
    fn judge_codec(
        &self,
        candidate: &Candidate,
        launch: Launch,
        bar: &ProgressBar,
        processes: usize,
    ) -> anyhow::Result<Option<String>> {
        const WORTH_A_PROCESS: usize = 1_000;
        let processes = processes.min(1 + self.vectors().count() / WORTH_A_PROCESS);
        let name = &candidate.name();
        let given_up = in_parts(processes, |part| -> anyhow::Result<Option<String>> {
            let mut adapter = Adapter::start(launch.clone())?;
            probe(self.protocol, &mut adapter)?;
            let handshake = adapter.handshake().clone();
            let cases = self.vectors().skip(part).step_by(processes);
            let mut ask = |request| self.ask(name, &mut adapter, request, CASE_DEADLINE).into();
            self.judge_vectors(name, &handshake, cases, &mut ask, bar);
            let given_up = adapter.given_up().map(one_line);
            adapter.stop();
            Ok(given_up)
        });
        Ok(given_up.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().next())
    }

    fn ask(&self, peer: &str, adapter: &mut Adapter, request: Json, deadline: Duration) -> Answer {
        let before = adapter.waits();
        let answer = adapter.ask(request, deadline);
        self.warn_of_waits(peer, before, adapter.waits());
        answer
    }

    fn judge_vectors<'v>(
        &self,
        peer: &str,
        handshake: &Handshake,
        cases: impl Iterator<Item = &'v Vector>,
        ask: &mut dyn FnMut(Json) -> Observation,
        bar: &ProgressBar,
    ) {
        for case in cases {
            for &op in verdict::operations(case) {
                if self.stopped() {
                    return;
                }
                bar.set_message(format!("judging {peer}: {}", case.id));
                let started = Instant::now();
                let seen = if verdict::declared(case, op, handshake) {
                    ask(verdict::request(case, op))
                } else {
                    Observation::Undeclared(format!("{peer} does not have {} version {}", case.spec.name, case.version))
                };
                self.recorder.outcome(verdict::judge(case, op, &seen, peer, self.plan.level, started.elapsed()));
            }
        }
    }

    /// The gentle ones first: a broker that ends, or is given up, was then judged by what anybody may ask.
    fn exchanges(&self) -> impl Iterator<Item = (&exchange::Case, codec::ApiVersion)> {
        let mut cases: Vec<&exchange::Case> = self.cases.exchanges.iter().collect();
        cases.sort_by_key(|case| case.needs().last().copied());
        let cases = cases.into_iter().flat_map(|case| case.versions.iter().map(move |version| (case, version)));
        cases.filter(|(case, version)| self.selected.contains(&case.id(*version)))
    }

    fn judge_broker(
        &self,
        candidate: &Candidate,
        peer: &PeerVersion,
        checkout: &Path,
        bar: &ProgressBar,
    ) -> anyhow::Result<Option<String>> {
        if self.exchanges().next().is_none() {
            return Ok(None);
        }
        bar.set_message(format!("starting {}", candidate.name()));
        let installation = apache_kafka::install(&peer.version, &peer.build_folder(checkout))?;
        let broker = apache_kafka::Broker::start(&installation)?;
        let target = live_broker::Target {
            addresses: vec![broker.address()],
            host: None,
            peer: candidate.name(),
            release: Some(peer.version.clone()),
            run_id: None,
        };
        // The broker is ours, so everything may be done to it.
        let consents = [
            exchange::Consent::Describe,
            exchange::Consent::Writes,
            exchange::Consent::BrokerWrites,
            exchange::Consent::Hostile,
        ];
        let judged = self.judge_exchanges(target, consents.into(), bar);
        broker.stop()?;
        judged
    }

    /// Judges whatever listens at the target's address. Gives why it was given up, if it was.
    pub fn judge_exchanges(
        &self,
        target: live_broker::Target,
        consents: BTreeSet<exchange::Consent>,
        bar: &ProgressBar,
    ) -> anyhow::Result<Option<String>> {
        let name = target.peer.clone();
        let settings = live_broker::Settings { seed: self.plan.seed, consents, level: self.plan.level };
        let broker = live_broker::LiveBroker::connect(target, self.protocol, settings)?;
        for (case, version) in self.exchanges() {
            if self.stopped() {
                break;
            }
            bar.set_message(format!("judging {name}: {}", case.id(version)));
            let before = broker.waits();
            self.recorder.outcome(broker.run_version(case, version));
            self.warn_of_waits(&name, before, broker.waits());
        }
        Ok(broker.given_up())
    }

    fn client_cases(&self) -> impl Iterator<Item = (&ClientCase, codec::ApiVersion)> {
        let cases = self.cases.clients.iter().flat_map(|case| case.versions.iter().map(move |version| (case, version)));
        cases.filter(|(case, version)| self.selected.contains(&case.id(*version)))
    }

    /// Starts a client's adapter, probes it, finds out which versions it has, and drives it through the cases. Gives why
    /// it was given up, if it was.
    fn judge_client(&self, candidate: &Candidate, launch: Launch, bar: &ProgressBar) -> anyhow::Result<Option<String>> {
        let name = candidate.name();
        let mut adapter = Adapter::start(launch)?;
        probe(self.protocol, &mut adapter)?;
        if self.client_cases().next().is_some() {
            bar.set_message(format!("meeting {name}"));
            let operations = adapter.handshake().operations.clone();
            let mut drive = |message, limit| self.ask(&name, &mut adapter, message, limit);
            let client = Client::meet(self.protocol, &name, &operations, &mut drive).context("meeting the client")?;
            for (case, version) in self.client_cases() {
                if self.stopped() {
                    break;
                }
                bar.set_message(format!("judging {name}: {}", case.id(version)));
                let started = Instant::now();
                let fails = self.plan.level;
                let mut outcome = client_case::run(self.protocol, case, version, &client, fails, &mut drive);
                outcome.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.recorder.outcome(outcome);
            }
        }
        let given_up = adapter.given_up().map(one_line);
        adapter.stop();
        Ok(given_up)
    }

    /// Judges a codec or client that somebody else's command starts.
    pub fn certify(self, role: Role, launch: Launch) -> anyhow::Result<Results> {
        let bar = self.spinner("starting the adapter".to_owned());
        let adapter = Adapter::start(launch.clone())?;
        let handshake = adapter.handshake().clone();
        adapter.stop();
        if let Some(note) = without_definition(&handshake, self.protocol) {
            bar.suspend(|| output::tell(note));
        }
        let peer = PeerVersion {
            manifest: Arc::new(Manifest::of_stranger(&handshake, role)),
            version: handshake.version.clone(),
        };
        let candidate = Candidate::Manifest(peer, role);
        let given_up = match role {
            Role::Codec => self.judge_codec(&candidate, launch, &bar, 1)?,
            Role::Client => self.judge_client(&candidate, launch, &bar)?,
            Role::Broker => unreachable!("a broker is reached by its address"),
        };
        bar.finish_and_clear();
        let options = self.plan.options();
        self.recorder.peer(Peer { certified: true, options, ..candidate.row(Status::Ran, given_up) });
        let (results, trouble) = self.gathered();
        written(results, trouble)
    }

    /// Judges a broker that somebody else runs.
    pub fn certify_broker(
        self,
        target: live_broker::Target,
        consents: BTreeSet<exchange::Consent>,
    ) -> anyhow::Result<Results> {
        let bar = self.spinner(format!("judging {}", target.peer));
        let peer = target.peer.clone();
        let allowed = consents.iter().filter_map(|consent| consent.option()).map(str::to_owned);
        let options = self.plan.options().into_iter().chain(allowed).collect();
        let why = self.judge_exchanges(target, consents, &bar)?;
        bar.finish_and_clear();
        self.recorder.peer(Peer {
            peer,
            role: Role::Broker,
            language: "unknown".to_owned(),
            status: Status::Ran,
            why,
            internal: false,
            certified: true,
            options,
        });
        let (results, trouble) = self.gathered();
        written(results, trouble)
    }
}

fn written(results: Results, trouble: Option<std::io::Error>) -> anyhow::Result<Results> {
    match trouble {
        None => Ok(results),
        Some(error) => Err(Unwritten { results, error }.into()),
    }
}

/// Builds a peer unless this very source was built before.
pub fn build(peer: &PeerVersion, role: Role, checkout: &Path) -> anyhow::Result<()> {
    if role == Role::Broker {
        apache_kafka::install(&peer.version, &peer.build_folder(checkout))?;
        return Ok(());
    }
    peer.build_if_changed(checkout)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does so many parts of something at once, each told its number, and gives what came of each in order.
fn in_parts<T: Send>(parts: usize, part: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let part = &part;
    std::thread::scope(|scope| {
        let begun: Vec<_> = (0..parts).map(|number| scope.spawn(move || part(number))).collect();
        begun.into_iter().map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// What is to be said of the messages of a handshake that no case is about; one that is mistyped is among them.
fn without_definition(handshake: &Handshake, protocol: &Protocol) -> Option<String> {
    const NAMED: usize = 5;
    let names: Vec<&String> = handshake.supports.keys().filter(|name| protocol.message(name).is_none()).collect();
    let first = names.iter().take(NAMED).map(|name| words::visible_line(name)).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty())
        .then(|| format!("the handshake's supports names messages without a definition here: {first}{more}"))
}

/// Adapters are probed before they are believed: what they do not know is `unsupported`, and they do not echo.
fn probe(protocol: &Protocol, adapter: &mut Adapter) -> anyhow::Result<()> {
    let request = json!({ "op": "decode", "message": "NoSuchMessage", "version": 0, "part": "body", "bytes": "00" });
    match adapter.ask(request, CASE_DEADLINE) {
        Answer::Line(line) if line.get("op").is_some() => anyhow::bail!("the adapter echoes what it is asked"),
        Answer::Line(line) => match Said::of(&line) {
            Ok(Said::Unsupported(_)) => {}
            Ok(_) => anyhow::bail!(
                "the adapter must answer `unsupported` to a message that does not exist, not {}",
                adapter::cut(&line.to_string())
            ),
            Err(what) => anyhow::bail!(adapter::broke_protocol(&what)),
        },
        other => anyhow::bail!("the adapter did not answer a probe: {}", other.told()),
    }
    // No value is written as part of itself, so who gives a cut message back has read nothing.
    let Some((layout, cut)) = cut_message(protocol, adapter.handshake()) else { return Ok(()) };
    let (message, version) = (&*layout.spec().name, layout.version().0);
    let request = json!({ "op": "recode", "message": message, "version": version, "part": "body", "bytes": cut });
    if let Answer::Line(line) = adapter.ask(request, CASE_DEADLINE)
        && line.get("bytes").and_then(Json::as_str).is_some_and(|bytes| bytes.eq_ignore_ascii_case(&cut))
    {
        anyhow::bail!(
            "the adapter gives {message} version {version} back as it was, cut off in the middle, when asked to recode it"
        );
    }
    Ok(())
}

/// The first message that a peer decodes and encodes whose smallest instance is one that can be cut, without its last
/// byte, in hex.
fn cut_message(protocol: &Protocol, handshake: &Handshake) -> Option<(Arc<Layout>, String)> {
    let both = |message: &str| handshake.range(message, false).intersect(handshake.range(message, true));
    let mut layouts = protocol.messages().filter(|spec| spec.kind != MessageKind::Header).flat_map(|spec| {
        let versions = spec.valid_versions.intersect(both(&spec.name));
        versions.iter().filter_map(|version| protocol.layout(&spec.name, version).ok())
    });
    layouts.find_map(|layout| {
        let mut bytes = codec::encode(&layout, &layout.smallest_instance()).ok()?;
        bytes.pop()?;
        (!bytes.is_empty()).then(|| (layout, codec::hex(&bytes)))
    })
}

/// Marks listed deviations: `known` in place of `fail`, and `unexpected-pass` where one did not show. What shows more
/// often than it is listed stays a `fail`.
pub fn mark_known(results: &mut Results, name: &str, known: &[adapter::Known], whole: bool) {
    for entry in known {
        let peer = format!("{name}@{}", entry.version);
        let Ok(globs) = Globs::new(&entry.cases) else { continue };
        let mut left = entry.count;
        let mut selected = 0;
        for outcome in
            results.outcomes.iter_mut().filter(|outcome| outcome.peer == peer && globs.matches(&outcome.case))
        {
            selected += 1;
            if outcome.verdict == Verdict::Fail && outcome.class == Some(entry.class) && left > 0 {
                outcome.verdict = Verdict::Known;
                let seen = outcome.detail.take().unwrap_or_default();
                outcome.detail =
                    Some(if seen.is_empty() { entry.why.clone() } else { format!("{} ({seen})", entry.why) });
                left -= 1;
            }
        }
        // A run of some cases, or of a peer that did not run, says nothing about those that are missing.
        if left == 0 || selected == 0 || !whole {
            continue;
        }
        let shown = entry.count - left;
        let passing = |outcome: &&mut Outcome| {
            outcome.peer == peer && globs.matches(&outcome.case) && outcome.verdict == Verdict::Pass
        };
        if let Some(outcome) = results.outcomes.iter_mut().find(passing) {
            outcome.verdict = Verdict::UnexpectedPass;
            outcome.detail = Some(format!("{shown} of {} listed deviations show: {}", entry.count, entry.why));
        }
    }
}

/// Leaves out the bytes of faults that crash, hang or exhaust a peer, unless its manifest says that they were reported.
pub fn withhold(results: &mut Results, manifest: &Manifest) {
    for outcome in &mut results.outcomes {
        let Some((_, version)) = outcome.peer.split_once('@').filter(|(name, _)| *name == manifest.name) else {
            continue;
        };
        let reported = |entry: &adapter::Known| {
            let listed = || Globs::new(&entry.cases).is_ok_and(|globs| globs.matches(&outcome.case));
            entry.version == version && entry.reported != "never" && Some(entry.class) == outcome.class && listed()
        };
        if outcome.severity == Some(1) && !manifest.known.iter().any(reported) {
            (outcome.sent, outcome.want, outcome.got, outcome.at) = (None, None, None, None);
            outcome.detail = Some("bytes are left out until the maintainers had them; replay shows them".to_owned());
        }
    }
}

/// Why a peer is not run: what was stopped because the user wants us to stop is nobody's fault.
fn why_not_run(error: &anyhow::Error) -> String {
    if interrupted() { INTERRUPTED.to_owned() } else { one_line(&format!("{error:#}")) }
}

/// A text without line breaks or paths of this machine, for `why`.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut text = lines.join(" | ");
    if let Ok(here) = std::env::current_dir() {
        text = text.replace(&here.to_string_lossy().into_owned(), ".");
    }
    adapter::cut(&text)
}

/// Makes the folder of a report and says whether `results.jsonl` can be written there, without touching one that is and
/// without leaving one: a run may end before it has a row.
pub fn check_folder(out: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(out)
        .with_context(|| format!("{} cannot be made: choose another folder with --out", out.display()))?;
    // Of two runs at once the report of one would be lost. Not every file system has locks.
    if let Ok(folder) = File::open(out) {
        if matches!(folder.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
            anyhow::bail!(
                "another run writes to {}: wait for its end, or choose another folder with --out",
                out.display()
            );
        }
        // Until this process ends.
        std::mem::forget(folder);
    }
    let path = out.join("results.jsonl");
    let writable = match File::create_new(&path) {
        Ok(_) => std::fs::remove_file(&path),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            File::options().append(true).open(&path).map(drop)
        }
        Err(error) => Err(error),
    };
    writable.with_context(|| format!("{} cannot be written: choose another folder with --out", path.display()))?;
    // Pages are made at the end only, which is late to find out.
    Ok(crate::report::check_pages(out)?)
}

/// Makes `results.jsonl` and writes the first row. What an earlier run was made into goes first, since this one may be
/// killed before it is made into anything.
pub fn open_results(out: &Path, run: &Run) -> std::io::Result<File> {
    crate::report::remove_pages(out)?;
    let path = out.join("results.jsonl");
    let line = serde_json::to_string(&Row::Run(run.clone()))? + "\n";
    let begun = File::create(&path).and_then(|mut file| file.write_all(line.as_bytes()).map(|()| file));
    begun.map_err(|error| {
        // Rows of no run are no results.
        let _ = std::fs::remove_file(&path);
        explain(&path, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Class, Op};

    fn outcome(case: &str, verdict: Verdict, class: Option<Class>) -> Outcome {
        Outcome {
            peer: "peer@1".to_owned(),
            role: Role::Codec,
            message: "M".to_owned(),
            api: "M".to_owned(),
            version: 0,
            case: case.to_owned(),
            op: Op::Decode,
            level: Level::Must,
            verdict,
            class,
            severity: class.map(Class::severity),
            at: None,
            sent: Some("00".to_owned()),
            want: None,
            got: None,
            detail: Some("seen".to_owned()),
            refused: None,
            elapsed_ms: 0,
        }
    }

    fn results(outcomes: Vec<Outcome>) -> Results {
        let run =
            Run { suite: String::new(), cases_sha256: String::new(), seed: 1, level: Level::Must, partial: false };
        Results { run, peers: Vec::new(), outcomes }
    }

    fn known(cases: &[&str], count: usize, class: &str, reported: &str) -> adapter::Known {
        let entry = json!({ "cases": cases, "count": count, "version": "1", "class": class, "why": "w", "reported": reported,
            "proof": { "run": [], "shows": "" } });
        serde_json::from_value(entry).unwrap()
    }

    fn verdicts(results: &Results) -> Vec<Verdict> {
        results.outcomes.iter().map(|outcome| outcome.verdict).collect()
    }

    #[test]
    fn listed_deviations_are_known_and_one_more_is_a_fail() {
        use Verdict::*;
        let fail = |case| outcome(case, Fail, Some(Class::WrongValue));
        let mut run = results(vec![fail("codec/a"), fail("codec/b"), fail("codec/c"), fail("other/d")]);
        mark_known(&mut run, "peer", &[known(&["codec/*"], 2, "wrong-value", "never")], true);
        assert_eq!(verdicts(&run), [Known, Known, Fail, Fail]);
    }

    #[test]
    fn a_listed_deviation_of_another_class_or_version_is_a_fail() {
        let mut run = results(vec![outcome("codec/a", Verdict::Fail, Some(Class::Crash))]);
        mark_known(&mut run, "peer", &[known(&["codec/a"], 1, "wrong-value", "never")], true);
        assert_eq!(verdicts(&run), [Verdict::Fail]);
        let mut other = results(vec![Outcome {
            peer: "peer@2".to_owned(),
            ..outcome("codec/a", Verdict::Fail, Some(Class::WrongValue))
        }]);
        mark_known(&mut other, "peer", &[known(&["codec/a"], 1, "wrong-value", "never")], true);
        assert_eq!(verdicts(&other), [Verdict::Fail]);
    }

    #[test]
    fn a_listed_deviation_that_does_not_show_is_an_unexpected_pass_in_a_whole_run_only() {
        use Verdict::*;
        let entry = [known(&["codec/*"], 2, "wrong-value", "never")];
        let outcomes = || vec![outcome("codec/a", Fail, Some(Class::WrongValue)), outcome("codec/b", Pass, None)];
        let mut whole = results(outcomes());
        mark_known(&mut whole, "peer", &entry, true);
        assert_eq!(verdicts(&whole), [Known, UnexpectedPass]);
        let mut part = results(outcomes());
        mark_known(&mut part, "peer", &entry, false);
        assert_eq!(verdicts(&part), [Known, Pass]);
    }

    #[test]
    fn a_run_whose_rows_cannot_be_written_stops_and_keeps_what_it_found() {
        let cases = Cases::bundled(crate::definitions::bundled()).unwrap();
        let selected: BTreeSet<String> =
            cases.list().into_iter().filter(|case| case.role == Role::Codec).map(|case| case.id).collect();
        let all = selected.len();
        let plan = Plan { level: Level::Must, jobs: 1, seed: 1, publish: false };
        // Rows go down a pipe whose reader leaves after the first hundred.
        let (reader, writer) = std::io::pipe().unwrap();
        let reading = std::thread::spawn(move || {
            std::io::BufRead::lines(std::io::BufReader::with_capacity(64, reader)).take(100).for_each(drop);
        });
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let bench = Bench {
            protocol: crate::definitions::bundled(),
            cases: &cases,
            plan: &plan,
            selected,
            recorder: Recorder::appending(move || Ok(file)),
            progress: MultiProgress::with_draw_target(indicatif::ProgressDrawTarget::hidden()),
        };
        let error = bench.run(&[Candidate::Reference]).unwrap_err();
        assert!(error.to_string().contains("cannot write results.jsonl"), "{error}");
        let kept = error.downcast::<Unwritten>().unwrap().results;
        assert!(kept.run.partial && kept.peers.len() == 1);
        assert!(kept.outcomes.len() >= 100 && kept.outcomes.len() < all, "{} of {all}", kept.outcomes.len());
        reading.join().unwrap();
    }

    #[test]
    fn bytes_of_severe_faults_are_withheld_until_they_are_reported() {
        let mut manifest = Manifest::of_stranger(
            &serde_json::from_value(json!({ "protocol": 1, "peer": "peer", "version": "1" })).unwrap(),
            Role::Codec,
        );
        let crash = || {
            results(vec![
                outcome("codec/a", Verdict::Fail, Some(Class::Crash)),
                outcome("codec/b", Verdict::Fail, Some(Class::WrongValue)),
            ])
        };
        let sent =
            |results: &Results| results.outcomes.iter().map(|outcome| outcome.sent.is_some()).collect::<Vec<_>>();
        let mut run = crash();
        withhold(&mut run, &manifest);
        assert_eq!(sent(&run), [false, true]);
        manifest.known = vec![known(&["codec/a"], 1, "crash", "never")];
        let mut run = crash();
        withhold(&mut run, &manifest);
        assert_eq!(sent(&run), [false, true]);
        manifest.known = vec![known(&["codec/a"], 1, "crash", "2026-11-30")];
        let mut run = crash();
        withhold(&mut run, &manifest);
        assert_eq!(sent(&run), [true, true]);
    }
}
