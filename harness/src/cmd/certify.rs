//! `certify`: judge somebody's own codec, client or broker.

use super::matrix::{Select, bundled_cases, finish, judged, select_cases};
use super::{Exit, Failure, Outcome};
use crate::adapter::{Known, Launch, Proof};
use crate::exchange::Consent;
use crate::live_broker::Target;
use crate::matrix::{Plan, mark_known};
use crate::results::{Results, Role, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::ToSocketAddrs;
use std::path::PathBuf;

/// Judge your own codec, client or broker, and write a report.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kafka-conform certify codec -- ./my-adapter
  kafka-conform certify client -- python3 my_adapter.py
  kafka-conform certify broker 127.0.0.1:9092
  kafka-conform certify broker 127.0.0.1:9092 --allow-writes --allow-hostile

An adapter is a program that speaks JSON lines on standard input and output; docs/formats.md has the protocol.
A broker is only asked what you allow: without options, well-formed ApiVersions, Metadata and DescribeConfigs requests.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// A codec behind an adapter that COMMAND starts
    Codec(AdapterArgs),
    /// An admin client behind an adapter that COMMAND starts
    Client(AdapterArgs),
    /// A broker that listens at HOST:PORT
    Broker(BrokerArgs),
}

#[derive(clap::Args)]
struct AdapterArgs {
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    known: KnownArgs,
    /// The command that starts the adapter
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(clap::Args)]
struct BrokerArgs {
    /// Where it listens
    #[arg(value_name = "HOST:PORT")]
    address: String,
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    known: KnownArgs,
    /// Its name in the report
    #[arg(long, default_value = "broker", value_name = "NAME")]
    name: String,
    /// Its version in the report
    #[arg(long, default_value = "unknown", value_name = "VERSION")]
    broker_version: String,
    /// Scratch topics may be created, altered and deleted
    #[arg(long)]
    allow_writes: bool,
    /// The broker's own configs may be altered and set back
    #[arg(long)]
    allow_broker_writes: bool,
    /// Malformed requests and versions that were not advertised may be sent
    #[arg(long)]
    allow_hostile: bool,
}

#[derive(clap::Args)]
struct KnownArgs {
    /// A file of known deviations, [[known]] entries as in a manifest
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Write the deviations of this run as such a file, to be filled in
    #[arg(long, value_name = "FILE")]
    write_known: Option<PathBuf>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct KnownFile {
    #[serde(default)]
    known: Vec<Known>,
}

impl KnownArgs {
    fn load(&self) -> Result<Vec<Known>, Failure> {
        let Some(path) = &self.known else { return Ok(Vec::new()) };
        let text =
            std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        let file: KnownFile =
            toml::from_str(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        Ok(file.known)
    }

    fn write(&self, results: &Results) -> Result<(), Failure> {
        let Some(path) = &self.write_known else { return Ok(()) };
        let entry = |outcome: &crate::results::Outcome| {
            let (_, version) = outcome.peer.split_once('@').unwrap_or((&outcome.peer, ""));
            Some(Known {
                cases: vec![outcome.case.clone()],
                count: 1,
                version: version.to_owned(),
                class: outcome.class?,
                why: outcome.detail.clone().unwrap_or_default(),
                reported: "never".to_owned(),
                proof: Proof { run: Vec::new(), shows: String::new() },
            })
        };
        let fails = results.outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Fail);
        let entries = toml::to_string(&KnownFile { known: fails.filter_map(entry).collect() })?;
        let text = format!(
            "# Each entry is one fault: merge those that are, say why, and give a proof that needs no suite.\n\n{entries}"
        );
        std::fs::write(path, text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    }
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    match args.what {
        What::Codec(args) => adapter(args, Role::Codec),
        What::Client(args) => adapter(args, Role::Client),
        What::Broker(args) => broker(args),
    }
}

fn adapter(args: AdapterArgs, role: Role) -> Outcome {
    let known = args.known.load()?;
    let cases = bundled_cases()?;
    let selected = select_cases(&cases, &[role], &args.select)?;
    let plan = Plan { level: args.select.level, jobs: 1, seed: args.select.seed, publish: false };
    let launch = Launch { command: args.command, env: BTreeMap::new() };
    let results = judged(&cases, &plan, selected, &args.select, |bench| bench.certify(role, launch))?;
    end(results, &cases, &args.select, &args.known, &known)
}

fn broker(args: BrokerArgs) -> Outcome {
    let known = args.known.load()?;
    let unresolved =
        |what: String| Failure { exit: Exit::Environment, error: anyhow::anyhow!("{}: {what}", args.address) };
    let address = args
        .address
        .to_socket_addrs()
        .map_err(|error| unresolved(format!("{error}; give HOST:PORT, such as 127.0.0.1:9092")))?
        .next()
        .ok_or_else(|| unresolved("the name has no address".to_owned()))?;
    let cases = bundled_cases()?;
    let selected = select_cases(&cases, &[Role::Broker], &args.select)?;
    let allowed = [
        (true, Consent::Describe),
        (args.allow_writes, Consent::Writes),
        (args.allow_broker_writes, Consent::BrokerWrites),
        (args.allow_hostile, Consent::Hostile),
    ];
    let consents: BTreeSet<Consent> =
        allowed.iter().filter(|(allowed, _)| *allowed).map(|&(_, consent)| consent).collect();
    let plan = Plan { level: args.select.level, jobs: 1, seed: args.select.seed, publish: false };
    // Only apache-kafka may have the variants of Apache Kafka's releases.
    let release = (args.name == "apache-kafka").then(|| args.broker_version.clone());
    let started =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let target = Target {
        address,
        peer: format!("{}@{}", args.name, args.broker_version),
        release,
        run_id: Some(format!("{started:x}")),
    };
    let results = judged(&cases, &plan, selected, &args.select, |bench| bench.certify_broker(target, consents))?;
    end(results, &cases, &args.select, &args.known, &known)
}

fn end(
    mut results: Results,
    cases: &crate::cases::Cases,
    select: &Select,
    files: &KnownArgs,
    known: &[Known],
) -> Outcome {
    let name = results.peers.first().map(|peer| peer.peer.split('@').next().unwrap_or_default().to_owned());
    mark_known(&mut results, &name.unwrap_or_default(), known, select.case.is_empty() && select.skip.is_empty());
    files.write(&results)?;
    let judged = |verdict| !matches!(verdict, Verdict::Unsupported | Verdict::NotRun);
    if !results.outcomes.iter().any(|outcome| judged(outcome.verdict)) {
        finish(&results, cases, select, &[])?;
        let error = anyhow::anyhow!(
            "nothing was judged: the handshake declares no message or operation that there are cases of"
        );
        return Err(Failure { exit: Exit::Environment, error });
    }
    let unasked = results.outcomes.iter().filter(|outcome| outcome.verdict == Verdict::NotRun).count();
    if unasked > 0 && results.peers.iter().any(|peer| peer.role == Role::Broker) {
        anstream::eprintln!(
            "{unasked} cases were not run: they need more consent (--allow-writes, --allow-broker-writes, --allow-hostile)"
        );
    }
    finish(&results, cases, select, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Class, Level, Op, Run};

    #[test]
    fn deviations_that_were_written_are_read_again_whatever_they_say() {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let file = Some(folder.path().join("known.toml"));
        let files = KnownArgs { known: file.clone(), write_known: file };
        let run =
            Run { suite: String::new(), cases_sha256: String::new(), seed: 1, level: Level::Must, partial: false };
        let details = ["plain", "\u{0}\u{1b}[2J\u{7f}\u{9b}\r\n\t", "\"\"\" ''' \\ # [[known]]", "\u{fffe}\u{1f980}"];
        let outcome = |(number, detail): (usize, &&str)| crate::results::Outcome {
            peer: format!("peer@1\u{1b}{number}"),
            role: Role::Codec,
            message: String::new(),
            api: String::new(),
            version: 0,
            case: format!("codec/m/v0/\"{number}\u{7}"),
            op: Op::Decode,
            level: Level::Must,
            verdict: Verdict::Fail,
            class: Some(Class::WrongValue),
            severity: Some(2),
            at: None,
            sent: None,
            want: None,
            got: None,
            detail: Some((*detail).to_owned()),
            elapsed_ms: 0,
        };
        let results = Results { run, peers: Vec::new(), outcomes: details.iter().enumerate().map(outcome).collect() };
        files.write(&results).expect("the folder is writable");
        let read = files.load().unwrap_or_else(|failure| panic!("{:#}", failure.error));
        let told: Vec<_> = read.iter().map(|known| (known.why.as_str(), known.class, known.count)).collect();
        assert_eq!(told, details.map(|detail| (detail, Class::WrongValue, 1)));
        let places: Vec<_> = read.iter().map(|known| (known.version.clone(), known.cases.clone())).collect();
        let due = |number| (format!("1\u{1b}{number}"), vec![format!("codec/m/v0/\"{number}\u{7}")]);
        assert_eq!(places, (0..details.len()).map(due).collect::<Vec<_>>());
    }
}
