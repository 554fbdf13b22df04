//! Apache Kafka's own broker as a peer: class path from Maven, fresh storage, start, readiness, stop.
//!
//! A broker never outlives us: it is stopped by `Broker::stop`, killed on drop, and a small guard process ends it when this
//! process dies in any other way, SIGKILL included.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::adapter::{self, Manifest, Requirement};
use crate::process::{Guarded, interrupted};

const POM: &str = include_str!("../../adapters/apache-kafka/pom.xml");
const SERVER_PROPERTIES: &str = include_str!("../../adapters/apache-kafka/server.properties");
const LOG4J_PROPERTIES: &str = include_str!("../../adapters/apache-kafka/log4j.properties");

/// The manifest's name.
const NAME: &str = "apache-kafka";
/// The node id that `server.properties` gives the broker.
pub const NODE_ID: i32 = 1;
/// Any 16 bytes in URL-safe base64; the same each run, so that answers that hold it do not differ.
const CLUSTER_ID: &str = "abcdefghijklmnopqrstuv";
/// 60 MB on a fresh machine: minutes on a slow line.
const BUILD_DEADLINE: Duration = Duration::from_secs(900);
const FORMAT_DEADLINE: Duration = Duration::from_secs(60);
const START_DEADLINE: Duration = Duration::from_secs(60);
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// Another process may take a noted port before the broker binds it.
const START_ATTEMPTS: usize = 3;
const POLL: Duration = Duration::from_millis(20);

/// Why there is no broker; each says what to do.
#[derive(Debug)]
pub enum BrokerError {
    /// A program that building or running needs is absent or too old: `hint` says what to install.
    Missing {
        /// The program.
        tool: String,
        /// What to install.
        hint: String,
    },
    /// Not a release that the manifest lists.
    UnknownVersion {
        /// What was asked for.
        version: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Maven found no class path.
    Build {
        /// The release.
        version: String,
        /// The end of what Maven said.
        log: String,
    },
    /// The broker did not come up, or not as ours.
    Start {
        /// The release.
        version: String,
        /// What went wrong, one sentence.
        reason: String,
        /// The end of the broker's log.
        log: String,
    },
    /// A file or process operation failed.
    Io {
        /// What was being done.
        doing: String,
        /// The cause.
        error: io::Error,
    },
}

impl BrokerError {
    /// One sentence without logs, paths and ports, for a report.
    pub fn summary(&self) -> String {
        match self {
            BrokerError::Missing { tool, hint } => format!("{tool} not found: {hint}"),
            BrokerError::UnknownVersion { version, known } => {
                format!("no release {version} in the manifest, which lists {}", known.join(", "))
            }
            BrokerError::Build { version, .. } => {
                format!("Maven could not resolve Apache Kafka {version}: check the network and Maven's settings")
            }
            BrokerError::Start { version, reason, .. } => format!("Apache Kafka {version} did not start: {reason}"),
            BrokerError::Io { doing, error } => format!("{doing}: {}", error.kind()),
        }
    }
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrokerError::Io { doing, error } => write!(f, "{doing}: {error}"),
            BrokerError::Build { log, .. } | BrokerError::Start { log, .. } if !log.is_empty() => {
                write!(f, "{}\n{log}", self.summary())
            }
            _ => f.write_str(&self.summary()),
        }
    }
}

impl std::error::Error for BrokerError {}

fn doing<T>(what: impl Into<String>, result: io::Result<T>) -> Result<T, BrokerError> {
    result.map_err(|error| BrokerError::Io { doing: what.into(), error })
}

fn manifest() -> &'static Manifest {
    let ours = adapter::manifests().iter().find(|manifest| manifest.name == NAME);
    ours.unwrap_or_else(|| unreachable!("the manifest is compiled in"))
}

/// The releases that can be started, in the manifest's order.
pub fn versions() -> Vec<String> {
    manifest().versions.clone()
}

/// Whether the programs are there that the manifest requires, Java in version 17 or later.
pub fn check_tools() -> Result<(), BrokerError> {
    manifest().requires.iter().try_for_each(check_tool)
}

fn check_tool(required: &Requirement) -> Result<(), BrokerError> {
    let missing = || BrokerError::Missing { tool: required.tool.clone(), hint: required.hint.clone() };
    required.is_met().then_some(()).ok_or_else(missing)
}

/// One release's jars, resolved by Maven.
#[derive(Clone, Debug)]
pub struct Installation {
    version: String,
    class_path: String,
}

/// Resolves the jars of `version` with Maven into `build`, the build folder of this peer and version, or takes what an
/// earlier call left there. The first call on a machine downloads about 60 MB.
pub fn install(version: &str, build: &Path) -> Result<Installation, BrokerError> {
    // Two Maven processes that fill one local repository at the same time can disturb each other.
    static ONE_MAVEN: Mutex<()> = Mutex::new(());
    let _one_maven = ONE_MAVEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());

    let manifest = manifest();
    if !manifest.versions.iter().any(|known| known == version) {
        return Err(BrokerError::UnknownVersion { version: version.into(), known: manifest.versions.clone() });
    }
    let build = doing("finding the build folder", fs::create_dir_all(build).and_then(|()| fs::canonicalize(build)))?;
    let stamp = format!("{version}\n{POM}");
    let (stamp_file, class_path_file) = (build.join("stamp"), build.join("cp.txt"));
    if fs::read_to_string(&stamp_file).is_ok_and(|found| found == stamp)
        && let Some(class_path) = usable_class_path(&class_path_file)
    {
        // Maven is not needed any more; Java is.
        manifest.requires.iter().filter(|required| required.tool == "java").try_for_each(check_tool)?;
        return Ok(Installation { version: version.into(), class_path });
    }

    manifest.requires.iter().try_for_each(check_tool)?;
    let _ = fs::remove_file(&stamp_file);
    doing("writing pom.xml into the build folder", fs::write(build.join("pom.xml"), POM))?;
    let folder = build.display().to_string();
    let log = build.join("build.log");
    for command in &manifest.build {
        let command = fill(command, &[("version", version), ("dir", &folder), ("build", &folder)]);
        if !succeeds(&command, &log, BUILD_DEADLINE)? {
            return Err(BrokerError::Build { version: version.into(), log: tail(&log) });
        }
    }
    let class_path = usable_class_path(&class_path_file)
        .ok_or_else(|| BrokerError::Build { version: version.into(), log: tail(&log) })?;
    doing("writing the build folder's stamp", fs::write(&stamp_file, stamp))?;
    Ok(Installation { version: version.into(), class_path })
}

/// The class path in `file` if each of its jars is (still) there.
fn usable_class_path(file: &Path) -> Option<String> {
    let class_path = fs::read_to_string(file).ok()?.trim().to_owned();
    let jars: Vec<&Path> = class_path.split(':').map(Path::new).collect();
    (!class_path.is_empty() && jars.iter().all(|jar| jar.is_file())).then_some(class_path)
}

fn fill(words: &[String], variables: &[(&str, &str)]) -> Vec<String> {
    words.iter().map(|word| fill_text(word, variables)).collect()
}

fn fill_text(text: &str, variables: &[(&str, &str)]) -> String {
    variables.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// A running broker. Dropping it kills it; `stop` lets it end by itself.
#[derive(Debug)]
pub struct Broker {
    process: Guarded,
    version: String,
    address: SocketAddr,
    unchecked: Option<&'static str>,
    log: PathBuf,
    // Last: the folder goes when the process is gone.
    _data: TempDir,
}

impl Broker {
    /// Formats fresh storage in a temporary folder, starts a broker on free loopback ports and waits until it answers
    /// ApiVersions on a port that is its own.
    pub fn start(installation: &Installation) -> Result<Broker, BrokerError> {
        Broker::start_with(installation, "")
    }

    /// [`Broker::start`] with properties added to ours, over which they go.
    pub fn start_with(installation: &Installation, properties: &str) -> Result<Broker, BrokerError> {
        let mut attempt = 1;
        loop {
            match Broker::try_start(installation, properties)? {
                Ok(broker) => return Ok(broker),
                Err(PortTaken { .. }) if attempt < START_ATTEMPTS => attempt += 1,
                Err(PortTaken { log }) => {
                    let reason = format!("its ports were taken by another process, {START_ATTEMPTS} times: try again");
                    return Err(BrokerError::Start { version: installation.version.clone(), reason, log });
                }
            }
        }
    }

    fn try_start(installation: &Installation, more: &str) -> Result<Result<Broker, PortTaken>, BrokerError> {
        let version = &installation.version;
        let failed = |reason: &str, log: &Path| BrokerError::Start {
            version: version.clone(),
            reason: reason.into(),
            log: tail(log),
        };
        let data = doing(
            "making a temporary folder for the broker's data",
            tempfile::Builder::new().prefix("kafka-conform-broker-").tempdir(),
        )?;
        let folder = data.path().display().to_string();
        let log = data.path().join("broker.log");
        let (port, controller_port) = doing("finding free ports on 127.0.0.1", free_ports())?;
        let properties = fill_text(
            SERVER_PROPERTIES,
            &[("port", &port.to_string()), ("controller_port", &controller_port.to_string()), ("data", &folder)],
        );
        let properties_file = data.path().join("server.properties");
        doing("writing server.properties", fs::write(&properties_file, properties + more))?;
        doing("writing log4j.properties", fs::write(data.path().join("log4j.properties"), LOG4J_PROPERTIES))?;

        let variables = [("classpath", installation.class_path.as_str()), ("data", &folder), ("version", version)];
        let run = fill(&manifest().run, &variables);
        if !succeeds(&format_command(&run), &log, FORMAT_DEADLINE)? {
            return Err(failed("its storage could not be formatted", &log));
        }

        let mut process = spawn(&run, &log)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            if doing("waiting for the broker", process.try_wait())?.is_some() {
                let log = tail(&log);
                return if log.contains("Address already in use") {
                    Ok(Err(PortTaken { log }))
                } else {
                    Err(BrokerError::Start { version: version.clone(), reason: "it ended by itself".into(), log })
                };
            }
            if answers_api_versions(address) {
                break;
            }
            if interrupted() {
                return Err(failed("it was stopped on request", &log));
            }
            if Instant::now() > deadline {
                return Err(failed(&format!("no answer within {} s", START_DEADLINE.as_secs()), &log));
            }
            sleep(POLL);
        }
        let unchecked = match listens(process.pid(), port) {
            Some(true) => None,
            Some(false) => return Ok(Err(PortTaken { log: tail(&log) })),
            None => Some("which process listens is not known on this system"),
        };
        Ok(Ok(Broker { process, version: version.clone(), address, unchecked, log, _data: data }))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its release, `4.4.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The process id of the JVM.
    pub fn pid(&self) -> u32 {
        self.process.pid().as_raw_nonzero().get().unsigned_abs()
    }

    /// Why it was not checked that the process listening at `address` is this one; `None` when it was.
    pub fn unchecked(&self) -> Option<&'static str> {
        self.unchecked
    }

    /// The end of its log.
    pub fn log_tail(&self) -> String {
        tail(&self.log)
    }

    /// Asks it to end (SIGTERM), waits ten seconds, then kills it. True when it ended by itself.
    pub fn stop(mut self) -> Result<bool, BrokerError> {
        // The process is our child and not yet waited for, so that the id is still its own.
        if doing("waiting for the broker", self.process.try_wait())?.is_none() {
            let signalled = kill_process(self.process.pid(), Signal::TERM);
            doing("sending SIGTERM to the broker", signalled.map_err(io::Error::from))?;
        }
        Ok(doing("waiting for the broker", self.process.wait(STOP_DEADLINE))?.is_some())
    }
}

struct PortTaken {
    log: String,
}

/// `StorageTool format` in the same JVM settings as the broker's: the main class and its arguments are exchanged.
fn format_command(run: &[String]) -> Vec<String> {
    let (properties, before) = run.split_last().expect("the run command ends with its properties file");
    let (_main_class, java) = before.split_last().expect("and the main class before it");
    let tool = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", properties];
    java.iter().cloned().chain(tool.map(String::from)).collect()
}

/// Two ports nobody listens on just now.
fn free_ports() -> io::Result<(u16, u16)> {
    let (first, second) = (TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
    Ok((first.local_addr()?.port(), second.local_addr()?.port()))
}

/// Whether something at `address` answers an ApiVersions v0 request with the same correlation id and error 0.
fn answers_api_versions(address: SocketAddr) -> bool {
    // Size, API key 18, version 0, correlation id, client id "up".
    const REQUEST: [u8; 16] = *b"\x00\x00\x00\x0c\x00\x12\x00\x00\x75\x70\x75\x70\x00\x02up";
    let ask = || -> io::Result<bool> {
        let wait = Duration::from_secs(2);
        let mut stream = TcpStream::connect_timeout(&address, wait)?;
        stream.set_read_timeout(Some(wait))?;
        stream.set_write_timeout(Some(wait))?;
        stream.write_all(&REQUEST)?;
        let mut answer = [0; 10];
        stream.read_exact(&mut answer)?;
        Ok(answer[4..10] == *b"\x75\x70\x75\x70\x00\x00")
    };
    ask().unwrap_or(false)
}

/// Whether process `pid` holds the socket that listens on `port`: the socket's inode stands in `/proc/net/tcp` or `tcp6`
/// and among the process's descriptors. `None` where there is no `/proc`.
fn listens(pid: Pid, port: u16) -> Option<bool> {
    let tables: Vec<String> =
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().filter_map(|table| fs::read_to_string(table).ok()).collect();
    if tables.is_empty() {
        return None;
    }
    let sockets: Vec<String> = tables
        .iter()
        .flat_map(|table| table.lines().skip(1))
        .filter_map(|line| listening_inode(line, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let descriptors = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).ok()?;
    let held = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    Some(held.into_iter().any(|target| sockets.iter().any(|socket| target == Path::new(socket))))
}

/// The inode of one line of `/proc/net/tcp` if it is a socket listening on `port`. Columns: number, local address:port in
/// hex, remote, state (0A is LISTEN), queues, timer, retransmits, uid, timeout, inode.
fn listening_inode(line: &str, port: u16) -> Option<&str> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let (_, local_port) = columns.get(1)?.rsplit_once(':')?;
    let is_it = *columns.get(3)? == "0A" && u16::from_str_radix(local_port, 16) == Ok(port);
    is_it.then_some(*columns.get(9)?)
}

/// The last lines of a log, for an error.
fn tail(log: &Path) -> String {
    const LINES: usize = 20;
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Starts `command` with its output appended to `log`.
fn spawn(command: &[String], log: &Path) -> Result<Guarded, BrokerError> {
    let (program, arguments) = command.split_first().expect("a command has a program");
    let output = doing("opening a log file", File::options().create(true).append(true).open(log))?;
    let errors = doing("opening a log file", output.try_clone())?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(output).stderr(errors);
    doing(format!("starting {program}"), Guarded::spawn(&mut command))
}

/// Whether a command ended well within its time; the word to stop ends it too.
fn succeeds(command: &[String], log: &Path, limit: Duration) -> Result<bool, BrokerError> {
    let mut process = spawn(command, log)?;
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline && !interrupted() {
        if let Some(status) = doing("waiting for a process", process.try_wait())? {
            return Ok(status.success());
        }
        sleep(POLL);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_parses_and_names_a_profile_for_each_version() {
        for version in versions() {
            assert!(POM.contains(&format!("<id>kafka-{version}</id>")), "pom.xml has no profile for {version}");
        }
    }

    #[test]
    fn unknown_version_is_refused_by_name() {
        let build = tempfile::tempdir().unwrap();
        let error = install("1.0.0", build.path()).unwrap_err();
        assert_eq!(error.summary(), "no release 1.0.0 in the manifest, which lists 3.9.2, 4.4.0");
    }

    #[test]
    fn storage_tool_takes_the_place_of_the_broker() {
        let run: Vec<String> = ["java", "-cp", "a:b", "kafka.Kafka", "p"].map(String::from).into();
        let want = ["java", "-cp", "a:b", "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", "p"];
        assert_eq!(format_command(&run), want);
    }

    #[test]
    fn listening_inode_wants_state_and_port() {
        let line =
            "   0: 0100007F:A3B1 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 31337 1 0";
        assert_eq!(listening_inode(line, 0xa3b1), Some("31337"));
        assert_eq!(listening_inode(line, 0xa3b2), None);
        assert_eq!(listening_inode(&line.replace(" 0A ", " 01 "), 0xa3b1), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn own_listener_is_recognised_and_other_ports_are_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let us = rustix::process::getpid();
        assert_eq!(listens(us, port), Some(true));
        drop(listener);
        assert_eq!(listens(us, port), Some(false));
    }

    /// Not a test of its own: what `dying_ends_the_child` starts and kills.
    #[test]
    #[ignore = "started by dying_ends_the_child"]
    fn hold_a_child() {
        let folder = tempfile::tempdir().unwrap();
        let process = spawn(&["sleep".to_owned(), "600".to_owned()], &folder.path().join("log")).unwrap();
        println!("\nchild {}", process.pid().as_raw_nonzero());
        sleep(Duration::from_secs(600));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn dying_ends_the_child() {
        use std::io::{BufRead, BufReader};
        let mut us = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "apache_kafka::tests::hold_a_child", "--ignored", "--nocapture"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(us.stdout.take().unwrap()).lines();
        let child = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("child ")?.parse::<i32>().ok());
        us.kill().unwrap();
        us.wait().unwrap();
        // Whoever adopted the child may leave it a zombie: gone is what has no command line any more.
        let command_line = PathBuf::from(format!("/proc/{}/cmdline", child.expect("it said which child it has")));
        let deadline = Instant::now() + Duration::from_secs(10);
        while fs::read(&command_line).is_ok_and(|line| !line.is_empty()) {
            assert!(Instant::now() < deadline, "the child outlived its parent");
            sleep(POLL);
        }
    }
}
