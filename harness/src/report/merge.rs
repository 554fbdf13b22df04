//! Several `results.jsonl` of one suite as one, for runs spread over machines.

use std::collections::BTreeSet;

use super::words::word;
use crate::results::{Results, Role};

/// The union of the peers of several runs, sorted. The first run's seed stands for all; one partial run makes the whole
/// partial.
///
/// Refused, with a sentence that says what to do: no runs, different cases, suite versions or levels (their verdicts are
/// not comparable), and a peer that is in two runs in the same role, be it by outcomes alone: which of two judgements
/// counts is not for a merge to say.
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
        let known: BTreeSet<_> = peers(&merged).collect();
        if let Some((role, peer)) = peers(&next).find(|peer| known.contains(peer)) {
            return Err(format!("{peer} ({}) is in two of the runs: leave it out of one of them", word(role)));
        }
        merged.run.partial |= next.run.partial;
        merged.peers.extend(next.peers);
        merged.outcomes.extend(next.outcomes);
    }
    merged.sort();
    Ok(merged)
}

/// Who is in a run. One that was killed has outcomes of peers that it has no row of: that is written when a peer is done.
fn peers(results: &Results) -> impl Iterator<Item = (Role, &str)> {
    let judged = results.outcomes.iter().map(|outcome| (outcome.role, outcome.peer.as_str()));
    results.peers.iter().map(|peer| (peer.role, peer.peer.as_str())).chain(judged)
}
