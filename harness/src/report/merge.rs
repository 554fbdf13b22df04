//! Several `results.jsonl` of one suite as one, for runs spread over machines.

use std::collections::BTreeSet;

use super::words::word;
use crate::results::Results;

/// The union of the peers of several runs, sorted. The first run's seed stands for all; one partial run makes the whole
/// partial.
///
/// Refused, with a sentence that says what to do: no runs, different cases, suite versions or levels (their verdicts are
/// not comparable), and a peer that is in two runs in the same role.
pub fn merge(runs: Vec<Results>) -> Result<Results, String> {
    let mut runs = runs.into_iter();
    let mut merged = runs.next().ok_or("nothing to merge: give at least one results.jsonl")?;
    for next in runs {
        let (ours, theirs) = (&merged.run, &next.run);
        if ours.cases_sha256 != theirs.cases_sha256 {
            return Err(format!(
                "the runs are of different cases ({} and {}): run both with the same build of the suite",
                ours.cases_sha256, theirs.cases_sha256
            ));
        }
        if ours.suite != theirs.suite {
            return Err(format!(
                "the runs are of different suite versions ({} and {}): run both with the same one",
                ours.suite, theirs.suite
            ));
        }
        if ours.level != theirs.level {
            return Err(format!(
                "the runs were judged at different levels ({} and {}): run both with the same --level",
                word(ours.level),
                word(theirs.level)
            ));
        }
        let known: BTreeSet<_> = merged.peers.iter().map(|peer| (peer.role, peer.peer.as_str())).collect();
        if let Some(twice) = next.peers.iter().find(|peer| known.contains(&(peer.role, peer.peer.as_str()))) {
            return Err(format!(
                "{} ({}) is in two of the runs: leave it out of one of them",
                twice.peer,
                word(twice.role)
            ));
        }
        merged.run.partial |= next.run.partial;
        merged.peers.extend(next.peers);
        merged.outcomes.extend(next.outcomes);
    }
    merged.sort();
    Ok(merged)
}
