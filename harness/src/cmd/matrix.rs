//! `matrix`: judge every peer and write the report.

use super::{Exit, Failure, Outcome};
use crate::cases::Cases;
use crate::coverage::{self, Coverage};
use crate::matrix::{Bench, Candidate, Plan, Recorder, Unwritten, candidates, check_folder, open_results};
use crate::names::{Globs, is_glob};
use crate::results::{Level, Peer, Results, Role, Status, Verdict};
use crate::{definitions, output, process, report};
use indicatif::{MultiProgress, ProgressDrawTarget};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Judge codecs, brokers and clients, and write a report.
///
/// Without options: everything this repository bundles, and Apache Kafka's brokers and Java codec where Java and Maven
/// are there. Peers are built on demand; what cannot run is a row `not-run` that says why.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kafka-conform matrix
  kafka-conform matrix --peer kafka-protocol --peer 'kafka-clients@*' --role codec
  kafka-conform matrix --case 'codec/describe-configs-response/*' --out report

Exit codes: 0 as expected; 1 a fail or an unexpected pass; 2 usage;
3 the environment, or a peer asked for by name did not run; 4 nothing selected.")]
pub struct Args {
    #[command(flatten)]
    select: Select,
    /// Judge these peers, by name, name@version or glob; repeatable
    #[arg(long, value_name = "NAME|GLOB")]
    peer: Vec<String>,
    /// End with 3 unless these peers ran; repeatable
    #[arg(long, value_name = "NAME|GLOB")]
    require: Vec<String>,
    /// Judge as codec, broker or client only; repeatable
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Vec<Role>,
    /// Judge every peer there is, also those that are not run by default
    #[arg(long)]
    all: bool,
    /// Peers at a time
    #[arg(long, value_name = "N", default_value_t = std::thread::available_parallelism().map_or(2, usize::from))]
    jobs: usize,
}

/// What `matrix` and `certify` have in common.
#[derive(clap::Args, Clone)]
pub struct Select {
    /// Folder of the report; it is made when it is not there
    #[arg(long, value_name = "DIR", default_value = "conform-report")]
    pub out: PathBuf,
    /// Run these cases only, by id or glob; repeatable
    #[arg(long, value_name = "ID|GLOB")]
    pub case: Vec<String>,
    /// Leave these cases out, by id or glob; repeatable
    #[arg(long, value_name = "ID|GLOB")]
    pub skip: Vec<String>,
    /// The lowest level whose deviations are a fail: must, should or observed
    #[arg(long, value_name = "LEVEL", default_value = "must", value_parser = level)]
    pub level: Level,
    /// Seed of correlation ids, scratch names and generated requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

fn role(text: &str) -> Result<Role, String> {
    serde_json::from_value(text.into()).map_err(|_| "a role is codec, broker or client".to_owned())
}

fn level(text: &str) -> Result<Level, String> {
    serde_json::from_value(text.into()).map_err(|_| "a level is must, should or observed".to_owned())
}

/// The bundled cases; what is wrong with them is said with file and place.
pub fn bundled_cases() -> Result<Cases, Failure> {
    Cases::bundled(definitions::bundled()).map_err(|lints| Failure {
        exit: Exit::Environment,
        error: anyhow::anyhow!("broken cases:\n{}", lints.join("\n")),
    })
}

/// Ids of the cases that `--case` and `--skip` select.
pub fn select_cases(cases: &Cases, roles: &[Role], select: &Select) -> Result<BTreeSet<String>, Failure> {
    let list = cases.list();
    for text in select.case.iter().chain(&select.skip).filter(|text| !is_glob(text)) {
        if !list.iter().any(|case| case.id == **text) {
            return Err(Failure::unknown("case", text, list.iter().map(|case| case.id.as_str())));
        }
    }
    let globs = |texts: &[String]| Globs::new(texts).map_err(|error| Failure::usage(format!("{error:#}")));
    let (wanted, skipped) = (globs(&select.case)?, globs(&select.skip)?);
    let selected: BTreeSet<String> = list
        .into_iter()
        .filter(|case| roles.is_empty() || roles.contains(&case.role))
        .filter(|case| (wanted.is_empty() || wanted.matches(&case.id)) && !skipped.matches(&case.id))
        .map(|case| case.id)
        .collect();
    if selected.is_empty() {
        return Err(Failure::nothing_selected("no case is selected: `kafka-conform list` shows what there is"));
    }
    Ok(selected)
}

/// Peers by `--peer` and `--role`, or the default ones.
fn select_peers(args: &Args) -> Result<Vec<Candidate>, Failure> {
    let all = candidates();
    let stem = |name: &str| name.split('@').next().unwrap_or_default().to_owned();
    for text in args.peer.iter().chain(&args.require).filter(|text| !is_glob(text)) {
        if !all.iter().any(|candidate| candidate.name() == **text || stem(&candidate.name()) == **text) {
            let names: Vec<String> = all.iter().map(Candidate::name).collect();
            return Err(Failure::unknown("peer", text, names.iter().map(String::as_str)));
        }
    }
    let globs = |texts: &[String]| Globs::new(texts).map_err(|error| Failure::usage(format!("{error:#}")));
    let (wanted, required) = (globs(&args.peer)?, globs(&args.require)?);
    for (texts, globs) in [(&args.peer, &wanted), (&args.require, &required)] {
        if !texts.is_empty() && !all.iter().any(|candidate| globs.matches(&candidate.name())) {
            return Err(Failure::nothing_selected(
                "no peer is selected: `kafka-conform peers list` shows what there is",
            ));
        }
    }
    let selected: Vec<Candidate> = all
        .into_iter()
        .filter(|candidate| args.role.is_empty() || args.role.contains(&candidate.role()))
        .filter(|candidate| {
            let name = candidate.name();
            required.matches(&name)
                || if args.peer.is_empty() { args.all || candidate.is_default() } else { wanted.matches(&name) }
        })
        .collect();
    if selected.is_empty() {
        return Err(Failure::nothing_selected("no peer is selected in these roles"));
    }
    Ok(selected)
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    let cases = bundled_cases()?;
    let peers = select_peers(&args)?;
    let selected = select_cases(&cases, &args.role, &args.select)?;
    // Whoever is asked nothing is not in the report.
    let roles: BTreeSet<Role> =
        cases.list().iter().filter(|case| selected.contains(&case.id)).map(|case| case.role).collect();
    let peers: Vec<Candidate> = peers.into_iter().filter(|candidate| roles.contains(&candidate.role())).collect();
    if peers.is_empty() {
        return Err(Failure::nothing_selected("none of these peers is judged by the selected cases"));
    }
    let plan = Plan { level: args.select.level, jobs: args.jobs, seed: args.select.seed, publish: true };
    let named: Vec<String> = args.peer.iter().chain(&args.require).cloned().collect();
    let results = judged(&cases, &plan, selected, &args.select, |bench| bench.run(&peers))?;
    let exit = finish(&results, &cases, &args.select, &named)?;
    if results.peers.iter().any(|peer| peer.status == Status::Ran) {
        return Ok(exit);
    }
    if results.run.partial {
        let error = anyhow::anyhow!("the run was interrupted before a peer was judged");
        return Err(Failure { exit: Exit::Environment, error });
    }
    let why = |peer: &Peer| format!("  {}: {}", peer.peer, peer.why.as_deref().unwrap_or_default());
    let lines: Vec<String> = results.peers.iter().map(why).collect();
    let error = anyhow::anyhow!("no peer could run; the README says what is needed:\n{}", lines.join("\n"));
    Err(Failure { exit: Exit::Environment, error })
}

/// Makes the bench, catches Ctrl-C, and opens `results.jsonl` to append to.
pub fn judged(
    cases: &Cases,
    plan: &Plan,
    selected: BTreeSet<String>,
    select: &Select,
    run: impl FnOnce(Bench<'_>) -> anyhow::Result<Results>,
) -> Result<Results, Failure> {
    process::catch_interrupts()?;
    let first = plan.row(cases, true);
    check_folder(&select.out)?;
    let out = select.out.clone();
    let progress = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
    let bench = Bench {
        protocol: definitions::bundled(),
        cases,
        plan,
        selected,
        recorder: Recorder::appending(move || open_results(&out, &first)),
        progress,
    };
    let error = match run(bench) {
        Ok(results) => return Ok(results),
        Err(error) => error,
    };
    let failed = |error: anyhow::Error| Failure { exit: Exit::Environment, error };
    match error.downcast::<Unwritten>() {
        Err(error) => Err(failed(error)),
        Ok(unwritten) => {
            // What was found until then, as far as there is room for it: each file is replaced whole or not at all.
            let coverage = coverage_for(&unwritten.results, cases).unwrap_or_default();
            let told = match report::write(&select.out, &unwritten.results, &cases.infos(), coverage.as_ref()) {
                Ok(()) => format!("a partial report is in {}", select.out.display()),
                Err(error) => format!("nor can the whole of a partial report: {error}"),
            };
            Err(failed(anyhow::anyhow!("{unwritten}; {told}")))
        }
    }
}

/// What the codec cases cover, for a report that tells of codecs.
pub fn coverage_for(results: &Results, cases: &Cases) -> Result<Option<Coverage>, codec::SpecError> {
    if results.peers.iter().all(|peer| peer.role != Role::Codec) {
        return Ok(None);
    }
    Ok(Some(Coverage::of(&coverage::measure(definitions::bundled(), &cases.vectors)?)))
}

/// Writes the report, prints the summary, and says how the run ends.
pub fn finish(results: &Results, cases: &Cases, select: &Select, named: &[String]) -> Outcome {
    let coverage = coverage_for(results, cases)?;
    report::write(&select.out, results, &cases.infos(), coverage.as_ref())?;
    let summary = report::terminal::summary(results, coverage.as_ref());
    output::print(&format!("{summary}report: {}\n", select.out.join("index.html").display()))?;
    let globs = Globs::new(named).map_err(|error| Failure::usage(format!("{error:#}")))?;
    let missing = results.peers.iter().any(|peer| peer.status == Status::NotRun && globs.matches(&peer.peer));
    let bad = |verdict| matches!(verdict, Verdict::Fail | Verdict::UnexpectedPass);
    let given_up = results.peers.iter().any(|peer| peer.status == Status::Ran && peer.why.is_some());
    // Of a broker, cases that need more consent are not run; a codec or client was given up.
    let unjudged = |outcome: &crate::results::Outcome| match outcome.verdict {
        Verdict::HarnessError => true,
        Verdict::NotRun => outcome.role != Role::Broker,
        _ => false,
    };
    Ok(if results.outcomes.iter().any(|outcome| bad(outcome.verdict)) {
        Exit::Failed
    } else if missing || given_up || results.run.partial || results.outcomes.iter().any(unjudged) {
        Exit::Environment
    } else {
        Exit::Expected
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Run;

    #[test]
    fn a_peer_that_was_given_up_is_no_success() {
        let cases = bundled_cases().unwrap_or_else(|failure| panic!("{:#}", failure.error));
        let run = Run {
            suite: String::new(),
            cases_sha256: cases.sha256.clone(),
            seed: 1,
            level: Level::Must,
            partial: false,
        };
        let peer = |why: Option<&str>| Peer {
            peer: "some@1".to_owned(),
            role: Role::Broker,
            language: "c".to_owned(),
            status: Status::Ran,
            why: why.map(str::to_owned),
            internal: false,
            certified: true,
            options: Vec::new(),
        };
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let out = folder.path().to_owned();
        let select = Select { out, case: Vec::new(), skip: Vec::new(), level: Level::Must, seed: 1 };
        let exit = |why: Option<&str>| {
            let results = Results { run: run.clone(), peers: vec![peer(why)], outcomes: Vec::new() };
            finish(&results, &cases, &select, &[]).unwrap_or_else(|failure| panic!("{:#}", failure.error))
        };
        assert!(matches!(exit(None), Exit::Expected));
        assert!(matches!(exit(Some("given up after 30 deadlines")), Exit::Environment));
        for page in ["index.html", "matrix.md"] {
            let text = std::fs::read_to_string(folder.path().join(page)).expect("the report was written");
            assert!(text.contains("given up after 30 deadlines"), "{page}");
        }
    }
}
