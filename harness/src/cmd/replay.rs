//! `replay`: one case against one peer, and everything that was said.

use super::matrix::{Select, bundled_cases, select_cases};
use super::{Exit, Failure, Outcome};
use crate::matrix::{Bench, Candidate, Plan, Recorder, candidates};
use crate::names::Globs;
use crate::results::{Level, Status, Verdict};
use crate::{definitions, output, process};
use indicatif::{MultiProgress, ProgressDrawTarget};
use std::path::PathBuf;

/// Run one case against one peer and show what was asked, what was due, and what came.
#[derive(clap::Args)]
#[command(after_help = "Example:
  kafka-conform replay codec/alter-configs-request/v2/smallest --peer kafka-protocol")]
pub struct Args {
    /// The case's id, or a glob
    case: String,
    /// The peer, by name or name@version
    #[arg(long, value_name = "NAME")]
    peer: String,
    /// Seed of correlation ids, scratch names and generated requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    let cases = bundled_cases()?;
    let select =
        Select { out: PathBuf::new(), case: vec![args.case], skip: Vec::new(), level: Level::Must, seed: args.seed };
    let selected = select_cases(&cases, &[], &select)?;
    let globs = Globs::new(std::slice::from_ref(&args.peer)).map_err(|error| Failure::usage(format!("{error:#}")))?;
    let all = candidates();
    let roles: Vec<_> =
        cases.list().into_iter().filter(|case| selected.contains(&case.id)).map(|case| case.role).collect();
    let named: Vec<Candidate> = all.iter().filter(|candidate| globs.matches(&candidate.name())).cloned().collect();
    if named.is_empty() {
        let names: Vec<String> = all.iter().map(Candidate::name).collect();
        return Err(Failure::unknown("peer", &args.peer, names.iter().map(String::as_str)));
    }
    let peers: Vec<Candidate> = named.into_iter().filter(|candidate| roles.contains(&candidate.role())).collect();
    if peers.is_empty() {
        return Err(Failure::nothing_selected(format!("{} is not judged by cases of this kind", args.peer)));
    }
    process::catch_interrupts()?;
    let plan = Plan { level: Level::Must, jobs: 1, seed: args.seed, publish: false };
    let bench = Bench {
        protocol: definitions::bundled(),
        cases: &cases,
        plan: &plan,
        selected,
        recorder: Recorder::in_memory(),
        progress: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
    };
    let results = bench.run(&peers)?;
    for outcome in &results.outcomes {
        output::print(&(escaped(&serde_json::to_string_pretty(outcome)?) + "\n"))?;
    }
    if let Some(peer) = results.peers.iter().find(|peer| peer.status == Status::NotRun) {
        return Err(anyhow::anyhow!("{} did not run: {}", peer.peer, peer.why.as_deref().unwrap_or_default()).into());
    }
    let failed =
        results.outcomes.iter().any(|outcome| matches!(outcome.verdict, Verdict::Fail | Verdict::UnexpectedPass));
    Ok(if failed { Exit::Failed } else { Exit::Expected })
}

/// JSON without the control characters that JSON may hold as they are: DEL and those past ASCII, which steer some
/// terminals.
fn escaped(json: &str) -> String {
    let shown = |character: char| match character {
        '\u{7f}'..='\u{9f}' => format!("\\u{:04x}", u32::from(character)),
        other => other.to_string(),
    };
    json.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_for_a_terminal_is_the_same_json() {
        let value = serde_json::json!("a\u{9b}2J\u{7f}\u{1b}[m\u{e4}\n");
        let text = escaped(&serde_json::to_string_pretty(&value).expect("it is JSON"));
        assert!(!text.contains(char::is_control), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("it is JSON"), value);
    }
}
