//! `certify`: judge somebody's own codec, client or broker.

use super::matrix::{Select, bundled_cases, finish, judged, select_cases};
use super::{Exit, Failure, Outcome};
use crate::adapter::{Known, Launch, Proof, check_name};
use crate::cases::Cases;
use crate::exchange::{Case, Consent};
use crate::live_broker::{self, Target};
use crate::matrix::{Plan, mark_known};
use crate::output;
use crate::results::{Results, Role, Verdict};
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// Judge your own codec, client or broker, and write a report.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kafka-conform certify codec -- ./my-adapter
  kafka-conform certify client -- python3 my_adapter.py
  kafka-conform certify broker 127.0.0.1:9092
  kafka-conform certify broker 127.0.0.1:9092 --allow-writes --allow-hostile

An adapter is a program that speaks JSON lines on standard input and output; docs/formats.md has the protocol.
A broker is only asked what you allow: without options, well-formed ApiVersions, Metadata and DescribeConfigs requests,
and one SaslHandshake where Metadata is cut off. Its listener must be one without TLS and SASL.")]
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
    /// Reads `--known`, and looks whether `--write-known` has a folder: a run may take long.
    fn load(&self, cases: &Cases) -> Result<Vec<Known>, Failure> {
        if let Some(path) = &self.write_known {
            let wrong = |what: &str| Failure::usage(format!("--write-known {}: {what}", path.display()));
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if path.is_dir() {
                return Err(wrong("it is a folder; give the name of a file"));
            }
            if !folder.is_dir() {
                return Err(wrong(&format!("there is no folder {}: make it", folder.display())));
            }
        }
        let Some(path) = &self.known else { return Ok(Vec::new()) };
        let ids: Vec<String> = cases.list().into_iter().map(|case| case.id).collect();
        read_known(path, &ids).map_err(|what| Failure::usage(format!("--known {}: {what}", path.display())))
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
        std::fs::write(path, text).with_context(|| format!("--write-known {}", path.display()))?;
        Ok(())
    }
}

/// The entries of a file.
fn parse_known(path: &Path) -> Result<Vec<Known>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let file: KnownFile = toml::from_str(&text).map_err(|error| error.to_string())?;
    Ok(file.known)
}

/// The entries of a file, filled in and about cases that there are.
fn read_known(path: &Path, ids: &[String]) -> Result<Vec<Known>, String> {
    let known = parse_known(path)?;
    for (number, entry) in (1..).zip(&known) {
        if let Some(what) = entry.lint(ids.iter().map(String::as_str)).first() {
            return Err(format!("entry {number}: {what}"));
        }
    }
    Ok(known)
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
    let cases = bundled_cases()?;
    let known = args.known.load(&cases)?;
    let selected = select_cases(&cases, &[role], &args.select)?;
    let plan = Plan { level: args.select.level, jobs: 1, seed: args.select.seed, publish: false };
    let launch = Launch { command: args.command, env: BTreeMap::new() };
    let results = judged(&cases, &plan, selected, &args.select, |bench| bench.certify(role, launch))?;
    end(results, &cases, &args.select, &args.known, &known, &Lacking::default())
}

fn broker(args: BrokerArgs) -> Outcome {
    let named = [("--name", &args.name), ("--broker-version", &args.broker_version)];
    for (option, text) in named {
        check_name(text).map_err(|why| Failure::usage(format!("{option} {why}")))?;
    }
    let unresolved =
        |what: String| Failure { exit: Exit::Environment, error: anyhow::anyhow!("{}: {what}", args.address) };
    let addresses: Vec<SocketAddr> = args
        .address
        .to_socket_addrs()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidInput => {
                Failure::usage(format!("{}: {error}: give HOST:PORT, such as 127.0.0.1:9092", args.address))
            }
            _ => unresolved(format!("{error}: is the name of the host right?")),
        })?
        .collect();
    if addresses.is_empty() {
        return Err(unresolved("the name has no address".to_owned()));
    }
    let cases = bundled_cases()?;
    let known = args.known.load(&cases)?;
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
    let host = args.address.rsplit_once(':').map(|(host, _)| host.to_owned());
    let target = Target {
        addresses,
        host,
        peer: format!("{}@{}", args.name, args.broker_version),
        release,
        run_id: Some(format!("{started:x}")),
    };
    let given = consents.clone();
    let results = judged(&cases, &plan, selected, &args.select, |bench| bench.certify_broker(target, given))?;
    let lacking = Lacking::of(&results, &cases, &consents);
    end(results, &cases, &args.select, &args.known, &known, &lacking)
}

/// The cases that were not run for want of consent, and what would give it.
#[derive(Default)]
struct Lacking {
    cases: usize,
    options: BTreeSet<&'static str>,
}

impl Lacking {
    fn of(results: &Results, cases: &Cases, consents: &BTreeSet<Consent>) -> Lacking {
        let of_case = |case: &Case| case.versions.iter().map(|version| case.id(version)).collect::<Vec<_>>();
        let options: BTreeMap<String, Vec<&str>> = cases
            .exchanges
            .iter()
            .flat_map(|case| of_case(case).into_iter().map(|id| (id, case.lacking(consents))))
            .filter(|(_, options)| !options.is_empty())
            .collect();
        let unasked = results.outcomes.iter().filter(|outcome| outcome.verdict == Verdict::NotRun);
        unasked.filter_map(|outcome| options.get(&outcome.case)).fold(Lacking::default(), |mut lacking, options| {
            lacking.cases += 1;
            lacking.options.extend(options);
            lacking
        })
    }

    fn options(&self) -> String {
        self.options.iter().copied().collect::<Vec<_>>().join(", ")
    }
}

fn end(
    mut results: Results,
    cases: &Cases,
    select: &Select,
    files: &KnownArgs,
    known: &[Known],
    lacking: &Lacking,
) -> Outcome {
    let name = results.peers.first().map(|peer| peer.peer.split('@').next().unwrap_or_default().to_owned());
    mark_known(&mut results, &name.unwrap_or_default(), known, select.case.is_empty() && select.skip.is_empty());
    let exit = finish(&results, cases, select, &[])?;
    files.write(&results)?;
    if let Some(why) = nothing_judged(&results, lacking) {
        return Err(Failure { exit: Exit::Environment, error: anyhow::anyhow!("nothing was judged: {why}") });
    }
    if lacking.cases > 0 {
        let plural = if lacking.cases == 1 { "case was" } else { "cases were" };
        output::tell(format_args!("{} {plural} not run for want of consent ({})", lacking.cases, lacking.options()));
    }
    for (why, cases) in live_broker::refused(&results.outcomes) {
        let plural = if cases == 1 { "case was" } else { "cases were" };
        output::tell(format_args!("{cases} {plural} not run: {why}"));
    }
    Ok(exit)
}

/// Why nothing was judged, and what to do; `None` where something was.
fn nothing_judged(results: &Results, lacking: &Lacking) -> Option<String> {
    use Verdict::{HarnessError, NotRun, Unsupported};
    let first = |verdict| results.outcomes.iter().find(|outcome| outcome.verdict == verdict);
    let tell = |outcome: &crate::results::Outcome| {
        format!("{}: {}", outcome.case, outcome.detail.as_deref().unwrap_or("no reason is given"))
    };
    if results.outcomes.iter().any(|outcome| !matches!(outcome.verdict, Unsupported | NotRun | HarnessError)) {
        return None;
    }
    Some(if results.run.partial {
        "the run was interrupted before".to_owned()
    } else if let Some(broken) = first(HarnessError) {
        format!("the adapter, or this suite, is at fault in every case that was run; the first is {}", tell(broken))
    } else if lacking.cases > 0 {
        format!("each case that the broker has the versions for needs consent ({})", lacking.options())
    } else if let Some(not_run) = first(NotRun) {
        format!("no case could be run; the first is {}", tell(not_run))
    } else if let Some(unsupported) = first(Unsupported) {
        format!("the peer has nothing that the selected cases are about; the first is {}", tell(unsupported))
    } else {
        "no case was run".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Class, Level, Op, Run};

    #[test]
    fn deviations_that_were_written_are_read_again_whatever_they_say() {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let file = folder.path().join("known.toml");
        let files = KnownArgs { known: None, write_known: Some(file.clone()) };
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
            refused: None,
            elapsed_ms: 0,
        };
        let results = Results { run, peers: Vec::new(), outcomes: details.iter().enumerate().map(outcome).collect() };
        files.write(&results).expect("the folder is writable");
        let read = parse_known(&file).unwrap_or_else(|what| panic!("{what}"));
        // It is to be filled in before it is believed.
        let ids: Vec<String> = results.outcomes.iter().map(|outcome| outcome.case.clone()).collect();
        assert!(read_known(&file, &ids).expect_err("there is no proof").contains("proof is not filled in"));
        let told: Vec<_> = read.iter().map(|known| (known.why.as_str(), known.class, known.count)).collect();
        assert_eq!(told, details.map(|detail| (detail, Class::WrongValue, 1)));
        let places: Vec<_> = read.iter().map(|known| (known.version.clone(), known.cases.clone())).collect();
        let due = |number| (format!("1\u{1b}{number}"), vec![format!("codec/m/v0/\"{number}\u{7}")]);
        assert_eq!(places, (0..details.len()).map(due).collect::<Vec<_>>());
    }

    #[test]
    fn an_entry_that_is_mistyped_is_refused() {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let path = folder.path().join("known.toml");
        let ids = ["codec/m/v0/a".to_owned(), "codec/m/v0/b".to_owned()];
        let read = |from: &str, to: &str| {
            let entry = "[[known]]\ncases = [\"codec/m/v0/a\"]\ncount = 1\nversion = \"1\"\nclass = \"crash\"\nwhy = \"w\"\n\
                         reported = \"never\"\nproof = { run = [\"./proof\"], shows = \"bad\" }\n";
            assert!(entry.contains(from));
            std::fs::write(&path, entry.replace(from, to)).expect("it is ours");
            read_known(&path, &ids).map(|entries| entries.len())
        };
        for (from, to) in [("v0/a", "v0/*"), ("never", "2026-11-30"), ("never", "https://example.org/issues/1")] {
            assert_eq!(read(from, to), Ok(1), "{to}");
        }
        let refused = [
            ("v0/a", "v0/c", "no case has an id like \"codec/m/v0/c\""),
            ("v0/a", "v9/*", "no case has an id like"),
            ("v0/a", "[", "is not a glob"),
            ("[\"codec/m/v0/a\"]", "[]", "cases is empty"),
            ("count = 1", "count = 0", "count is 0"),
            ("count = 1", "count = -1", "count = -1"),
            ("never", "soon", "reported is \"soon\""),
            ("never", "2026-11-3", "reported is"),
            ("crash", "crushed", "unknown variant"),
            ("[\"./proof\"]", "[]", "proof is not filled in"),
            ("\"bad\"", "\"\"", "proof is not filled in"),
        ];
        for (from, to, says) in refused {
            let what = read(from, to).expect_err(to);
            assert!(what.contains(says), "{to}: {what}");
        }
    }
}
