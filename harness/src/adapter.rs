//! A peer as a process of its own: its manifest, how it is built and started, and the JSON lines it speaks. Whatever a
//! peer does, die, hang, flood, or eat memory, is an [`Answer`], never our failure.

mod line;

pub use line::{LINE_LIMIT, Said, VALUES_LIMIT, cut, values};

use crate::names::Globs;
use crate::patience::Patience;
use crate::process::{Guarded, interrupted};
use crate::results::{Class, Role};
use anyhow::{Context as _, bail};
use codec::VersionRange;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The manifests compiled in.
const MANIFESTS: &[&str] = &[
    include_str!("../../adapters/apache-kafka/adapter.toml"),
    include_str!("../../adapters/kafka-clients/adapter.toml"),
    include_str!("../../adapters/kafka-protocol/adapter.toml"),
    include_str!("../../adapters/kafka-python/adapter.toml"),
    include_str!("../../adapters/kmsg/adapter.toml"),
    include_str!("../../adapters/librdkafka/adapter.toml"),
    include_str!("../../adapters/rust-rdkafka/adapter.toml"),
];

/// Time a build may take: librdkafka is a minute, jars on a slow line are more.
const BUILD_DEADLINE: Duration = Duration::from_secs(1800);
/// Time from start to handshake: a JVM on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// Resident memory that a peer may take, with all that it started: 1 GiB.
const MEMORY_LIMIT: u64 = 1 << 30;
/// How often a peer that is waited for is looked after.
const WATCH: Duration = Duration::from_millis(50);
/// Bytes in a peer's name, version or language.
const NAME_LIMIT: usize = 200;
/// Why a peer was not asked after the user wanted us to stop.
const INTERRUPTED: &str = "the run was interrupted";
/// Lines that nobody asked for, blank ones too, within one answer.
const STRAYS: usize = 100;
/// How much of a peer's standard error is kept.
const STDERR_KEPT: usize = 4096;

/// A peer's manifest, `adapters/<peer>/adapter.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Its name; rows are `name@version`.
    pub name: String,
    /// What it is judged as.
    pub role: Vec<Role>,
    /// The language it is written in.
    pub language: String,
    /// Each is a row.
    pub versions: Vec<String>,
    /// Whose codec it is, for independence.
    pub family: String,
    /// Whether this repository can build it with Rust and a C compiler alone.
    pub bundled: bool,
    /// Whether a `matrix` without options runs it; bundled ones are run.
    #[serde(default)]
    pub default: bool,
    /// Whether it reaches internals of the library.
    #[serde(default)]
    pub internal: bool,
    /// Tools that must be there.
    #[serde(default)]
    pub requires: Vec<Requirement>,
    /// A build folder that several peers share, where they have the same dependencies; its own name unless given.
    pub build_folder: Option<String>,
    /// Where its build breaks in a folder whose path has white space: what breaks there, with its verb.
    pub breaks_at_spaces: Option<String>,
    /// Commands that build it; `{dir}`, `{build}` and `{version}` are filled in.
    #[serde(default)]
    pub build: Vec<Vec<String>>,
    /// The command that runs it.
    pub run: Vec<String>,
    /// Its environment, beside ours.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Deviations that are known, each with its proof.
    #[serde(default)]
    pub known: Vec<Known>,
}

/// A tool that a peer needs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The program.
    pub tool: String,
    /// Arguments with which it ends with 0 when it is there.
    pub args: Vec<String>,
    /// What to do when it is not.
    pub hint: String,
}

impl Requirement {
    /// Whether the tool is there, and, where it is Java, new enough. It is asked once in the life of this process.
    pub fn is_met(&self) -> bool {
        static ASKED: Mutex<BTreeMap<(String, Vec<String>), bool>> = Mutex::new(BTreeMap::new());
        let mut asked = ASKED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *asked.entry((self.tool.clone(), self.args.clone())).or_insert_with(|| {
            let Ok(output) = Command::new(&self.tool).args(&self.args).stdin(Stdio::null()).output() else {
                return false;
            };
            // `java -version` writes to stderr.
            let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
            let enough = self.tool != "java" || java_major(&text).is_some_and(|major| major >= 17);
            output.status.success() && enough
        })
    }
}

/// The major version in the first line of `java -version`: 17 for `openjdk version "17.0.15"`, 8 for `"1.8.0_402"`.
fn java_major(text: &str) -> Option<u32> {
    let version = text.split('"').nth(1)?;
    let mut numbers = version.split(['.', '-', '_', '+']).map(|number| number.parse().ok());
    match numbers.next()?? {
        1 => numbers.next()?,
        major => Some(major),
    }
}

/// A known deviation: one entry is one fault.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Case ids or globs.
    pub cases: Vec<String>,
    /// How many outcomes they select at present: one more or fewer shows.
    pub count: usize,
    /// The peer's version.
    pub version: String,
    /// The class of each.
    pub class: Class,
    /// What is wrong, in one sentence.
    pub why: String,
    /// `never`, a date, or a link.
    pub reported: String,
    /// How it shows without this suite.
    pub proof: Proof,
}

impl Known {
    /// What is wrong with the entry, beside the cases there are: one that is mistyped would stand for nothing, or for more
    /// than it says.
    pub fn lint<'c>(&self, ids: impl Iterator<Item = &'c str> + Clone) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.cases.is_empty() {
            wrong.push("cases is empty".to_owned());
        }
        for pattern in &self.cases {
            match Globs::new(std::slice::from_ref(pattern)) {
                Err(error) => wrong.push(format!("cases: {error:#}")),
                Ok(globs) if !ids.clone().any(|id| globs.matches(id)) => {
                    wrong.push(format!("cases: no case has an id like {pattern:?}: `kafka-conform list` shows all"));
                }
                Ok(_) => {}
            }
        }
        if self.count == 0 {
            wrong.push("count is 0: an entry stands for at least one outcome".to_owned());
        }
        if self.proof.run.is_empty() || self.proof.shows.is_empty() {
            wrong.push(
                "proof is not filled in: `run`, the command that shows the fault, and `shows`, what it prints"
                    .to_owned(),
            );
        }
        let digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
        let date = |text: &str| {
            let parts: Vec<&str> = text.split('-').collect();
            matches!(parts[..], [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
        };
        let link = |text: &str| text.starts_with("https://") || text.starts_with("http://");
        if self.reported != "never" && !date(&self.reported) && !link(&self.reported) {
            let due = "never, a date such as 2026-01-31, or a link";
            wrong.push(format!("reported is {:?}, and should be {due}", self.reported));
        }
        wrong
    }
}

/// A command that shows a fault without this suite.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The command, in the peer's folder; `{dir}`, `{build}` and `{version}` are filled in.
    pub run: Vec<String>,
    /// What it prints when the fault is there.
    pub shows: String,
}

impl Manifest {
    /// The manifest of an adapter that only its handshake is known of.
    pub fn of_stranger(handshake: &Handshake, role: Role) -> Manifest {
        Manifest {
            name: handshake.peer.clone(),
            role: vec![role],
            language: handshake.language.clone(),
            versions: vec![handshake.version.clone()],
            family: handshake.peer.clone(),
            bundled: false,
            default: false,
            internal: handshake.internal,
            requires: Vec::new(),
            build_folder: None,
            breaks_at_spaces: None,
            build: Vec::new(),
            run: Vec::new(),
            env: BTreeMap::new(),
            known: Vec::new(),
        }
    }
}

/// The manifests compiled in, by name.
pub fn manifests() -> &'static [Manifest] {
    static PARSED: LazyLock<Vec<Manifest>> = LazyLock::new(|| {
        let parse =
            |text: &&str| toml::from_str(text).unwrap_or_else(|error| unreachable!("manifests are tested: {error}"));
        MANIFESTS.iter().map(parse).collect()
    });
    &PARSED
}

/// One row of the matrix: a peer at one of its versions.
#[derive(Clone, Debug)]
pub struct PeerVersion {
    /// Its manifest.
    pub manifest: Arc<Manifest>,
    /// The version.
    pub version: String,
}

impl PeerVersion {
    /// `name@version`.
    pub fn name(&self) -> String {
        format!("{}@{}", self.manifest.name, self.version)
    }

    /// The first tool that is missing: which, and what to do.
    pub fn missing_tool(&self) -> Option<String> {
        let missing = self.manifest.requires.iter().find(|required| !required.is_met())?;
        Some(format!("{} is not there: {}", missing.tool, missing.hint))
    }

    /// Folder of its build in a checkout.
    pub fn build_folder(&self, checkout: &Path) -> PathBuf {
        let folder = self.manifest.build_folder.as_ref().unwrap_or(&self.manifest.name);
        checkout.join("target/peers").join(folder).join(self.version_folder())
    }

    fn version_folder(&self) -> String {
        if self.manifest.build_folder.is_some() { "shared".to_owned() } else { self.version.clone() }
    }

    /// Fills `{dir}`, `{build}` and `{version}` into a command.
    pub fn fill(&self, command: &[String], checkout: &Path) -> Vec<String> {
        let dir = checkout.join("adapters").join(&self.manifest.name);
        let build = self.build_folder(checkout);
        let fill = |word: &String| {
            word.replace("{dir}", &dir.to_string_lossy())
                .replace("{build}", &build.to_string_lossy())
                .replace("{version}", &self.version)
        };
        command.iter().map(fill).collect()
    }

    /// Builds it; the tools it needs are there. The error ends with the last lines the build printed.
    pub fn build(&self, checkout: &Path) -> anyhow::Result<()> {
        let build = self.build_folder(checkout);
        if let Some(what) = &self.manifest.breaks_at_spaces
            && build.to_string_lossy().contains(char::is_whitespace)
        {
            bail!(
                "{} cannot be built in a folder whose path has spaces ({what}): move this checkout to a path without",
                self.name()
            );
        }
        std::fs::create_dir_all(&build).with_context(|| format!("making the build folder {}", build.display()))?;
        for command in &self.manifest.build {
            let command = self.fill(command, checkout);
            run_to_end(&command, &checkout.join("adapters").join(&self.manifest.name), BUILD_DEADLINE)
                .with_context(|| format!("building {}", self.name()))?;
        }
        Ok(())
    }

    /// Whether some source of it was built here before.
    pub fn is_built(&self, checkout: &Path) -> bool {
        let build = self.build_folder(checkout);
        build.join(format!("{}.stamp", self.name())).is_file() || build.join("stamp").is_file()
    }

    /// Builds it unless this very source was built before.
    pub fn build_if_changed(&self, checkout: &Path) -> anyhow::Result<()> {
        let stamp = self.build_folder(checkout).join(format!("{}.stamp", self.name()));
        // Peers that share a build folder share source too.
        let shares = |other: &&Manifest| {
            other.name == self.manifest.name
                || other.build_folder.is_some() && other.build_folder == self.manifest.build_folder
        };
        let names = manifests().iter().filter(shares).map(|other| checkout.join("adapters").join(&other.name));
        let source = source_hash(names.collect())?;
        if std::fs::read_to_string(&stamp).is_ok_and(|built| built == source) {
            return Ok(());
        }
        self.build(checkout)?;
        std::fs::write(&stamp, source).with_context(|| format!("writing {}", stamp.display()))
    }

    /// How it is started.
    pub fn launch(&self, checkout: &Path) -> Launch {
        Launch { command: self.fill(&self.manifest.run, checkout), env: self.manifest.env.clone() }
    }
}

/// SHA-256 over the files of adapters, but for what was built there by hand.
fn source_hash(mut folders: Vec<PathBuf>) -> anyhow::Result<String> {
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() && entry.file_name() != "target" => folders.push(entry.path()),
                kind if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        digest.update(file.to_string_lossy().as_bytes());
        digest.update(std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?);
    }
    Ok(codec::hex(&digest.finalize()))
}

/// Runs a command to its end and returns what it printed; both streams, last lines in the error.
pub fn run_to_end(command: &[String], folder: &Path, limit: Duration) -> anyhow::Result<String> {
    let (status, text) = run(command, folder, limit)?;
    if !status.success() {
        let lines: Vec<&str> = text.lines().collect();
        bail!("{} ended with {status}:\n{}", command[0], lines[lines.len().saturating_sub(20)..].join("\n"));
    }
    Ok(text)
}

/// Runs a proof and returns what it printed, and how it ended: a crash may be what it proves.
pub fn run_proof(command: &[String], folder: &Path, limit: Duration) -> anyhow::Result<String> {
    let (status, text) = run(command, folder, limit)?;
    Ok(format!("{text}{status}"))
}

fn run(command: &[String], folder: &Path, limit: Duration) -> anyhow::Result<(ExitStatus, String)> {
    let Some((program, arguments)) = command.split_first() else { bail!("an empty command") };
    let output = tempfile::NamedTempFile::new().context("making a file for a command's output")?;
    let append = || OpenOptions::new().append(true).open(output.path());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(append()?).stderr(append()?);
    let mut process = Guarded::spawn(&mut command).with_context(|| format!("starting {program}"))?;
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = process.try_wait()? {
            break status;
        }
        if crate::process::interrupted() {
            bail!("{program} was stopped on request");
        }
        if Instant::now() > deadline {
            bail!("{program} did not end within {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Ok((status, String::from_utf8_lossy(&std::fs::read(output.path())?).into_owned()))
}

/// The checkout that adapters are built from: the nearest folder above the working folder that holds them, else the one
/// this binary was built in.
pub fn checkout() -> Option<PathBuf> {
    let holds = |folder: &Path| folder.join("adapters/librdkafka/adapter.toml").is_file();
    let here = std::env::current_dir().ok()?;
    if let Some(found) = here.ancestors().find(|folder| holds(folder)) {
        return Some(found.to_path_buf());
    }
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    holds(built_in).then(|| built_in.to_path_buf())
}

/// A command and its environment.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment beside ours.
    pub env: BTreeMap<String, String>,
}

/// What a peer says of itself at the start.
#[derive(Clone, Debug, Deserialize)]
pub struct Handshake {
    /// Protocol number.
    pub protocol: u32,
    /// Its name.
    pub peer: String,
    /// Its version.
    pub version: String,
    /// Its language.
    #[serde(default)]
    pub language: String,
    /// What it decodes and encodes, by message.
    #[serde(default)]
    pub supports: BTreeMap<String, Supported>,
    /// What it does as a client.
    #[serde(default)]
    pub operations: BTreeMap<String, OperationSupport>,
    /// Whether it reaches internals of the library.
    #[serde(default)]
    pub internal: bool,
}

/// Version ranges of one message; what is not declared is [`VersionRange::NONE`]. A range that is mistyped is an error: it
/// must not count as a version that the peer does not have.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Supported {
    /// What it decodes.
    #[serde(default = "no_version", deserialize_with = "range")]
    pub decode: VersionRange,
    /// What it encodes.
    #[serde(default = "no_version", deserialize_with = "range")]
    pub encode: VersionRange,
}

fn no_version() -> VersionRange {
    VersionRange::NONE
}

fn range<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VersionRange, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map_or(Ok(VersionRange::NONE), |text| text.parse().map_err(D::Error::custom))
}

/// What an operation of a client can be asked for, and what it shows. Other keys are mistyped: a case must not be left out
/// for that.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OperationSupport {
    /// Whether single configs can be asked for by their names.
    pub keys: bool,
    /// Whether synonyms can be asked for.
    pub synonyms: bool,
    /// Whether documentation can be asked for.
    pub documentation: bool,
    /// Whether it can ask for an alteration to be validated only.
    pub validate_only: bool,
    /// The fields of results that it shows; all where it does not say.
    pub shows: Option<BTreeSet<String>>,
}

impl OperationSupport {
    /// Whether it has an option, by its name in the protocol of adapters.
    pub fn has(&self, option: &str) -> bool {
        match option {
            "keys" => self.keys,
            "synonyms" => self.synonyms,
            "documentation" => self.documentation,
            "validate_only" => self.validate_only,
            _ => false,
        }
    }
}

impl Handshake {
    /// Reads the answer to `start`; an error says which member of it is wrong.
    pub fn read(answer: Json) -> anyhow::Result<Handshake> {
        let handshake: Handshake = serde_path_to_error::deserialize(answer)
            .map_err(|error| anyhow::anyhow!("the handshake is not one: {error}"))?;
        anyhow::ensure!(handshake.protocol == 1, "it speaks protocol {}, not 1", handshake.protocol);
        let members = [("peer", &handshake.peer), ("version", &handshake.version), ("language", &handshake.language)];
        for (what, text) in members {
            check_name(text).map_err(|why| anyhow::anyhow!("the handshake's {what} {why}"))?;
        }
        Ok(handshake)
    }

    /// Versions of a message that it decodes or encodes.
    pub fn range(&self, message: &str, encode: bool) -> VersionRange {
        let supported = self.supports.get(message);
        supported.map_or(VersionRange::NONE, |supported| if encode { supported.encode } else { supported.decode })
    }
}

/// Whether a text can be the name, version or language of a peer, which are part of every outcome, page and command.
pub fn check_name(text: &str) -> Result<(), String> {
    if text.len() > NAME_LIMIT {
        return Err(format!("has over {NAME_LIMIT} bytes: {}", cut(text)));
    }
    if text.contains(char::is_control) {
        return Err(format!("has control characters: {text:?}"));
    }
    Ok(())
}

/// What a broken adapter is called, in whatever role.
pub fn broke_protocol(what: &str) -> String {
    format!("the adapter broke the protocol: {what}")
}

/// What came of asking a peer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A JSON object with the asked id.
    Line(Json),
    /// It ended; how, and its last words.
    Crashed(String),
    /// Nothing within the deadline.
    Hung(Duration),
    /// It went over the memory cap.
    Memory(u64),
    /// It wrote what is not an answer.
    Garbage(String),
    /// It was not asked, or not to the end: it was given up, or the run was interrupted.
    Gone(String),
}

impl Answer {
    /// In words.
    pub fn told(&self) -> String {
        match self {
            Answer::Line(line) => cut(&line.to_string()),
            Answer::Crashed(how) => format!("it ended: {how}"),
            Answer::Hung(limit) => format!("nothing came within {} ms", limit.as_millis()),
            Answer::Memory(bytes) => format!("it took {} MiB of memory", bytes >> 20),
            Answer::Garbage(what) => format!("it wrote {what}"),
            Answer::Gone(why) => why.clone(),
        }
    }
}

/// A running peer. It is started again after it was lost, as often as the budget allows.
pub struct Adapter {
    launch: Launch,
    restarts_left: u32,
    patience: Patience,
    /// Why it is not asked any more.
    given_up: Option<String>,
    running: Option<Running>,
    handshake: Handshake,
    next_id: u64,
}

struct Running {
    process: Guarded,
    /// To the thread that writes: a peer that does not read must not block us.
    requests: SyncSender<String>,
    lines: Receiver<Result<String, String>>,
    stderr: Arc<Mutex<String>>,
    /// The thread that reads it.
    stderr_read: JoinHandle<()>,
}

impl Adapter {
    /// Times a peer is started again within a run.
    pub const RESTARTS: u32 = 500;

    /// Starts a peer and shakes hands.
    pub fn start(launch: Launch) -> anyhow::Result<Adapter> {
        let (running, handshake) = Running::start(&launch)?;
        Ok(Adapter {
            launch,
            restarts_left: Adapter::RESTARTS,
            patience: Patience::new(),
            given_up: None,
            running: Some(running),
            handshake,
            next_id: 1,
        })
    }

    /// What it said of itself.
    pub fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// How many deadlines it let pass.
    pub fn waits(&self) -> u32 {
        self.patience.count()
    }

    /// Why it is not asked any more; `None` while it is.
    pub fn given_up(&self) -> Option<&str> {
        self.given_up.as_deref()
    }

    /// Asks and waits. `request` is an object; its id is set here.
    pub fn ask(&mut self, mut request: Json, deadline: Duration) -> Answer {
        if interrupted() {
            return Answer::Gone(INTERRUPTED.to_owned());
        }
        let mut running = match self.running() {
            Ok(running) => running,
            Err(why) => return Answer::Gone(why),
        };
        let id = self.next_id;
        self.next_id += 1;
        request["id"] = id.into();
        let started = Instant::now();
        let answer = running.ask(&request, id, deadline);
        if matches!(answer, Answer::Line(_)) {
            self.running = Some(running);
            return answer;
        }
        // Whatever state it is in, the next case gets a fresh process.
        drop(running);
        if started.elapsed() >= deadline {
            self.patience.passed(deadline);
            self.given_up = self.patience.at_end();
        }
        answer
    }

    /// The running peer, started again where it was lost; or why it is given up.
    fn running(&mut self) -> Result<Running, String> {
        if let Some(why) = &self.given_up {
            return Err(why.clone());
        }
        if let Some(running) = self.running.take() {
            return Ok(running);
        }
        let why = match self.restarts_left.checked_sub(1) {
            None => format!("it was started again {} times, and lost each time", Adapter::RESTARTS),
            Some(left) => {
                self.restarts_left = left;
                match Running::start(&self.launch) {
                    Ok((running, _)) => return Ok(running),
                    // Each further attempt might cost as long as a start may take.
                    Err(error) => format!("it could not be started again: {error:#}"),
                }
            }
        };
        self.given_up = Some(why.clone());
        Err(why)
    }

    /// Asks it to stop, and whether it did so by itself with status 0.
    pub fn stop(mut self) -> bool {
        let Some(mut running) = self.running.take() else { return true };
        let _ = running.requests.try_send(json!({ "op": "stop" }).to_string() + "\n");
        drop(running.requests);
        running.process.wait(Duration::from_secs(5)).ok().flatten().is_some_and(|status| status.success())
    }
}

impl Running {
    fn start(launch: &Launch) -> anyhow::Result<(Running, Handshake)> {
        let Some((program, arguments)) = launch.command.split_first() else { bail!("the command is empty") };
        let mut command = Command::new(program);
        // What a dying peer says must not depend on how our user likes backtraces.
        command.args(arguments).env("RUST_BACKTRACE", "0").envs(&launch.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Guarded::spawn(&mut command).with_context(|| format!("starting {program}"))?;
        let child = process.child();
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("all three are piped");
        };
        let (requests, to_write) = sync_channel::<String>(4);
        std::thread::spawn(move || {
            for line in to_write {
                if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
                    return;
                }
            }
        });
        // Bounded, so that a peer that floods us waits instead of filling our memory: one line waits here, one to be
        // put here, and one is being judged.
        let (sender, lines) = sync_channel(1);
        std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                let read = stdout.by_ref().take(LINE_LIMIT as u64).read_until(b'\n', &mut line);
                let line = match read {
                    Ok(0) | Err(_) => return,
                    Ok(_) if line.last() != Some(&b'\n') && line.len() >= LINE_LIMIT => {
                        Err(format!("a line of over {} MiB", LINE_LIMIT >> 20))
                    }
                    Ok(_) => String::from_utf8(line).map_err(|_| "a line that is not UTF-8".to_owned()),
                };
                let broken = line.is_err();
                if sender.send(line).is_err() || broken {
                    return;
                }
            }
        });
        let kept = Arc::new(Mutex::new(String::new()));
        let stderr_kept = kept.clone();
        let stderr_read = std::thread::spawn(move || {
            let mut stderr = BufReader::new(stderr);
            let mut chunk = [0; 1024];
            while let Ok(read @ 1..) = stderr.read(&mut chunk) {
                let mut kept = stderr_kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                kept.push_str(&String::from_utf8_lossy(&chunk[..read]));
                if kept.len() > STDERR_KEPT {
                    let cut = kept.ceil_char_boundary(kept.len() - STDERR_KEPT);
                    kept.drain(..cut);
                }
            }
        });
        let mut running = Running { process, requests, lines, stderr: kept, stderr_read };
        let handshake = match running.exchange(&json!({ "op": "start", "protocol": 1 }), START_DEADLINE, |_| true) {
            Answer::Line(line) => line,
            other => bail!("{program} gave no handshake: {}", other.told()),
        };
        Ok((running, Handshake::read(handshake)?))
    }

    fn ask(&mut self, request: &Json, id: u64, deadline: Duration) -> Answer {
        self.exchange(request, deadline, |line| line.get("id").and_then(Json::as_u64) == Some(id))
    }

    fn exchange(&mut self, request: &Json, limit: Duration, is_answer: impl Fn(&Json) -> bool) -> Answer {
        // A line to a peer that is gone cannot be written; how it ended is found below.
        let _ = self.requests.try_send(request.to_string() + "\n");
        let deadline = Instant::now() + limit;
        let mut watch = Instant::now() + WATCH;
        let (mut strays, mut meant, mut gone) = (0, None, false);
        loop {
            // First of all, so that no line that comes at the right time puts it off.
            if interrupted() {
                return Answer::Gone(INTERRUPTED.to_owned());
            }
            let now = Instant::now();
            if now >= watch {
                watch = now + WATCH;
                if let Some(memory) = self.process.memory(MEMORY_LIMIT).filter(|&memory| memory > MEMORY_LIMIT) {
                    return Answer::Memory(memory);
                }
            }
            if now >= deadline {
                let wrong = |line| format!("no answer to what was asked within {} ms, but {line}", limit.as_millis());
                return meant.map_or(Answer::Hung(limit), |line| Answer::Garbage(wrong(line)));
            }
            let stray = match self.lines.recv_timeout(WATCH.min(deadline - now)) {
                Ok(Ok(line)) if line.trim().is_empty() => "blank lines".to_owned(),
                Ok(Ok(line)) => match line::parse(&line) {
                    Ok(json) if is_answer(&json) => return Answer::Line(json),
                    // An answer to what was not asked: a few may come, a flood may not.
                    Ok(json) => {
                        let text = cut(&line);
                        if Said::is_meant(&json) {
                            meant = Some(text.clone());
                        }
                        text
                    }
                    Err(what) => return Answer::Garbage(what),
                },
                Ok(Err(what)) => return Answer::Garbage(what),
                Err(RecvTimeoutError::Disconnected) => return self.crashed(),
                Err(RecvTimeoutError::Timeout) => {
                    // A child of a dead peer may hold its output open. What it wrote before it died has been read by
                    // the second time.
                    if gone {
                        return self.crashed();
                    }
                    gone = matches!(self.process.try_wait(), Ok(Some(_)));
                    continue;
                }
            };
            strays += 1;
            if strays > STRAYS {
                return Answer::Garbage(format!("lines that nobody asked for: {stray}"));
            }
        }
    }

    /// How a peer that is gone ended, and its last words.
    fn crashed(&mut self) -> Answer {
        let status = self.process.wait(Duration::from_secs(2)).ok().flatten();
        // Its last words are complete when its end of the pipe is closed.
        let deadline = Instant::now() + Duration::from_secs(1);
        while !self.stderr_read.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        let how = status.map_or("it closed its output".to_owned(), |status| status.to_string());
        let said = self.stderr.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A Rust program's last line is a hint how to get more of them.
        let telling = |line: &&str| !line.trim().is_empty() && !line.starts_with("note: ");
        let last = said.lines().rfind(telling).unwrap_or_default();
        Answer::Crashed(if last.is_empty() { how } else { format!("{how}: {}", cut(last)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_major_reads_old_and_new_numbering() {
        assert_eq!(java_major("openjdk version \"17.0.15\" 2025-04-15"), Some(17));
        assert_eq!(java_major("java version \"1.8.0_402\""), Some(8));
        assert_eq!(java_major("openjdk version \"21-ea\" 2023-09-19"), Some(21));
        assert_eq!(java_major("not java"), None);
    }

    #[test]
    fn a_build_that_breaks_at_spaces_is_not_begun_there() {
        let folder = tempfile::Builder::new().prefix("a checkout").tempdir().unwrap();
        for name in ["librdkafka", "rust-rdkafka"] {
            let manifest = Arc::new(manifests().iter().find(|manifest| manifest.name == name).unwrap().clone());
            let peer = PeerVersion { version: manifest.versions[0].clone(), manifest };
            let error = format!("{:#}", peer.build(folder.path()).unwrap_err());
            let says = ["has spaces", "librdkafka's configure script", "move this checkout"];
            assert!(says.iter().all(|text| error.contains(text)), "{error}");
            assert!(!peer.build_folder(folder.path()).exists());
        }
    }

    #[test]
    fn each_known_deviation_is_about_cases_that_there_are() {
        let cases = crate::cases::Cases::bundled(crate::definitions::bundled()).unwrap();
        let list = cases.list();
        for manifest in manifests() {
            for entry in &manifest.known {
                let wrong = entry.lint(list.iter().map(|case| case.id.as_str()));
                assert!(wrong.is_empty(), "{}: {}: {wrong:?}", manifest.name, entry.why);
                assert!(manifest.versions.contains(&entry.version), "{}: {}", manifest.name, entry.version);
            }
        }
    }

    #[test]
    fn manifests_parse_and_name_each_peer_once() {
        let manifests = manifests();
        let mut names: Vec<&str> = manifests.iter().map(|manifest| manifest.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), MANIFESTS.len());
        assert!(manifests.iter().all(|manifest| !manifest.versions.is_empty() && !manifest.run.is_empty()));
    }
}
