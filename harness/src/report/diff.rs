//! What changed between two runs.

use std::collections::BTreeMap;
use std::fmt;

use super::words::{rank, visible_line, word};
use crate::results::{Class, Op, Outcome, Results, Role, Status, Verdict};

/// What is one and the same outcome in two runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// What the peer was judged as.
    pub role: Role,
    /// `name@version`.
    pub peer: String,
    /// Case id.
    pub case: String,
    /// API version.
    pub version: i16,
    /// What the peer was asked to do.
    pub op: Op,
}

/// A judgement, as far as runs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The class of fault.
    pub class: Option<Class>,
}

/// An outcome that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which outcome.
    pub key: Key,
    /// Before; none where the case was not there.
    pub before: Option<Judgement>,
    /// After; none where the case is gone.
    pub after: Option<Judgement>,
}

/// A peer that one of the runs lacks, or that did not run in one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerChange {
    /// What it is judged as.
    pub role: Role,
    /// `name@version`.
    pub peer: String,
    /// Before; none where it was not there.
    pub before: Option<Status>,
    /// After; none where it is gone.
    pub after: Option<Status>,
}

/// What changed between two runs; `Display` writes it for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// A sentence for each reason why the runs are only partly comparable.
    pub cautions: Vec<String>,
    /// Peers that came, went, or changed between run and not run.
    pub peers: Vec<PeerChange>,
    /// Fails that were none before, and fails of cases that are new. Outcomes of new peers are here too.
    pub new_fails: Vec<Change>,
    /// What deviated and now passes (or takes an allowed liberty).
    pub fixed: Vec<Change>,
    /// Every other change of verdict or class.
    pub other: Vec<Change>,
    /// Outcomes of peers that ran both times which the second run lacks.
    pub vanished: Vec<Change>,
    /// How many outcomes are new without being fails.
    pub added: usize,
}

/// Compares run `b` with the earlier run `a`.
pub fn diff(a: &Results, b: &Results) -> Diff {
    let mut diff = Diff { cautions: cautions(a, b), peers: peer_changes(a, b), ..Diff::default() };
    let (before, after) = (judgements(a), judgements(b));
    for (key, &now) in &after {
        let change = Change { key: key.clone(), before: before.get(key).copied(), after: Some(now) };
        match change.before {
            Some(then) if then == now => {}
            Some(then) if is_fail(now.verdict) && !is_fail(then.verdict) => diff.new_fails.push(change),
            Some(then) if is_good(now.verdict) && rank(then.verdict) < rank(Verdict::NotRun) => diff.fixed.push(change),
            Some(_) => diff.other.push(change),
            None if is_fail(now.verdict) => diff.new_fails.push(change),
            None => diff.added += 1,
        }
    }
    // The outcomes of a peer that is gone or did not run are told by one line on the peer.
    let lost = |key: &Key| {
        diff.peers
            .iter()
            .any(|peer| (peer.role, &peer.peer, peer.after != Some(Status::Ran)) == (key.role, &key.peer, true))
    };
    let vanished = before.iter().filter(|(key, _)| !after.contains_key(key) && !lost(key));
    let vanished = vanished.map(|(key, &then)| Change { key: key.clone(), before: Some(then), after: None }).collect();
    diff.vanished = vanished;
    diff
}

fn is_fail(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Fail | Verdict::UnexpectedPass | Verdict::HarnessError)
}

fn is_good(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::Variant)
}

fn judgements(results: &Results) -> BTreeMap<Key, Judgement> {
    let judged = |outcome: &Outcome| {
        let key = Key {
            role: outcome.role,
            peer: outcome.peer.clone(),
            case: outcome.case.clone(),
            version: outcome.version,
            op: outcome.op,
        };
        (key, Judgement { verdict: outcome.verdict, class: outcome.class })
    };
    results.outcomes.iter().map(judged).collect()
}

fn cautions(a: &Results, b: &Results) -> Vec<String> {
    let mut cautions = Vec::new();
    if a.run.cases_sha256 != b.run.cases_sha256 {
        cautions.push("the cases are not the same: a change may be the case's, not the peer's".into());
    }
    if a.run.level != b.run.level {
        cautions.push(format!("judged at level {} before, {} after", word(a.run.level), word(b.run.level)));
    }
    for (run, name) in [(&a.run, "first"), (&b.run, "second")] {
        if run.partial {
            cautions.push(format!("the {name} run was interrupted: what is missing was not judged"));
        }
    }
    cautions
}

fn peer_changes(a: &Results, b: &Results) -> Vec<PeerChange> {
    let mut statuses: BTreeMap<(Role, &str), [Option<Status>; 2]> = BTreeMap::new();
    for (side, results) in [a, b].into_iter().enumerate() {
        for peer in &results.peers {
            statuses.entry((peer.role, &peer.peer)).or_default()[side] = Some(peer.status);
        }
    }
    let changed = statuses.into_iter().filter(|(_, [before, after])| before != after);
    changed.map(|((role, peer), [before, after])| PeerChange { role, peer: peer.to_string(), before, after }).collect()
}

impl Diff {
    /// True when both runs judged the same in the same way.
    pub fn is_empty(&self) -> bool {
        *self == Diff { cautions: self.cautions.clone(), ..Diff::default() }
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for caution in &self.cautions {
            writeln!(f, "note: {caution}")?;
        }
        for change in &self.peers {
            writeln!(f, "{change}")?;
        }
        let parts = [
            ("new fails", &self.new_fails),
            ("fixed", &self.fixed),
            ("changed otherwise", &self.other),
            ("vanished", &self.vanished),
        ];
        for (title, changes) in parts.into_iter().filter(|(_, changes)| !changes.is_empty()) {
            writeln!(f, "{title} ({}):", changes.len())?;
            for change in changes {
                writeln!(f, "  {change}")?;
            }
        }
        if self.added > 0 {
            writeln!(f, "new outcomes that are no fails: {}", self.added)?;
        }
        if self.is_empty() {
            writeln!(f, "no change")?;
        }
        Ok(())
    }
}

impl fmt::Display for PeerChange {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let what = match (self.before, self.after) {
            (None, Some(Status::Ran)) => "new peer",
            (None, Some(Status::NotRun)) => "new peer, not run",
            (_, None) => "peer vanished",
            (Some(_), Some(Status::Ran)) => "peer ran, did not before",
            (Some(_), Some(Status::NotRun)) => "peer did not run, did before",
        };
        write!(f, "{what}: {} ({})", visible_line(&self.peer), word(self.role))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Key { peer, case, version, op, .. } = &self.key;
        write!(f, "{} {} v{version} {}: ", visible_line(peer), visible_line(case), word(op))?;
        let side = |judgement: Option<Judgement>| match judgement {
            None => "absent".to_string(),
            Some(Judgement { verdict, class: None }) => word(verdict),
            Some(Judgement { verdict, class: Some(class) }) => format!("{} ({})", word(verdict), word(class)),
        };
        write!(f, "{} -> {}", side(self.before), side(self.after))
    }
}
