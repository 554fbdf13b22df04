//! Outcomes arranged as people read them: a table a role, a row a peer, a column an API at a version.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::words;
use crate::coverage::Coverage;
use crate::results::kept;
use crate::results::{Class, Outcome, Peer, Results, Role, Run, Status, Verdict};

/// An API at a version: `("DescribeConfigs", 4)`.
pub type Column<'a> = (&'a str, i16);

/// A whole run, arranged. Borrows the rows.
pub struct Matrix<'a> {
    /// What was run.
    pub run: &'a Run,
    /// The roles that have at least one peer.
    pub roles: Vec<RoleMatrix<'a>>,
    /// What the codec cases catch and what they leave untested, where the report tells of it.
    pub coverage: Option<&'a Coverage>,
}

/// The peers of one role.
pub struct RoleMatrix<'a> {
    /// The role.
    pub role: Role,
    /// Every column that any of the peers has an outcome in.
    pub columns: BTreeSet<Column<'a>>,
    /// The peers, by name.
    pub rows: Vec<Row<'a>>,
}

/// One peer in one role.
pub struct Row<'a> {
    /// The peer; made up from its outcomes if the file lost its row.
    pub peer: Cow<'a, Peer>,
    /// Its outcomes by column, in file order.
    pub cells: BTreeMap<Column<'a>, Vec<&'a Outcome>>,
}

/// What many fails of one peer have in common.
#[derive(Debug, PartialEq, Eq)]
pub struct Cause<'a> {
    /// How many cases fail so.
    pub cases: usize,
    /// Their class.
    pub class: Option<Class>,
    /// What their outcomes say.
    pub detail: &'a str,
}

/// So many cases with the same reason are summed up: two are seen at a glance.
const MANY: usize = 3;

/// How many outcomes have which verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Verdict, usize>);

impl<'a> Matrix<'a> {
    /// Arranges `results`, whatever the order of its rows.
    pub fn of(results: &'a Results) -> Matrix<'a> {
        let mut roles: BTreeMap<Role, BTreeMap<&str, Row>> = BTreeMap::new();
        for peer in &results.peers {
            let row = Row { peer: Cow::Borrowed(peer), cells: BTreeMap::new() };
            roles.entry(peer.role).or_default().insert(&peer.peer, row);
        }
        for outcome in &results.outcomes {
            let rows = roles.entry(outcome.role).or_default();
            let row = rows.entry(&outcome.peer).or_insert_with(|| Row::without_peer(outcome));
            row.cells.entry((&outcome.api, outcome.version)).or_default().push(outcome);
        }
        let roles = roles.into_iter().map(|(role, rows)| RoleMatrix {
            role,
            columns: rows.values().flat_map(|row| row.cells.keys().copied()).collect(),
            rows: rows.into_values().collect(),
        });
        Matrix { run: &results.run, roles: roles.collect(), coverage: None }
    }

    /// All rows of all roles.
    pub fn rows(&self) -> impl Iterator<Item = &Row<'a>> {
        self.roles.iter().flat_map(|role| &role.rows)
    }

    /// The peer of an outcome.
    pub fn peer_of(&self, outcome: &Outcome) -> Cow<'a, Peer> {
        let row = self.rows().find(|row| row.peer.role == outcome.role && row.peer.peer == outcome.peer);
        row.map_or_else(|| Cow::Owned(Row::made_up(outcome)), |row| row.peer.clone())
    }

    /// The verdicts of the whole run.
    pub fn counts(&self) -> Counts {
        Counts::of(self.rows().flat_map(Row::outcomes))
    }

    /// How many peers ran, and how many did not.
    pub fn ran_and_not_run(&self) -> (usize, usize) {
        let ran = self.rows().filter(|row| row.ran()).count();
        (ran, self.rows().count() - ran)
    }

    /// The text of `matrix.json`: every peer with the ten verdict counts of each API and version.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            suite: &'a str,
            cases_sha256: &'a str,
            level: crate::results::Level,
            partial: bool,
            peers: Vec<Entry<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            coverage: Option<&'a Coverage>,
        }
        #[derive(Serialize)]
        struct Entry<'a> {
            #[serde(flatten)]
            peer: &'a Peer,
            apis: BTreeMap<&'a str, BTreeMap<i16, BTreeMap<Verdict, usize>>>,
        }
        fn entry<'r>(row: &'r Row) -> Entry<'r> {
            let mut apis: BTreeMap<&str, BTreeMap<_, _>> = BTreeMap::new();
            for (&(api, version), outcomes) in &row.cells {
                let counts = Counts::of(outcomes.iter().copied());
                // Every verdict is there, so that readers need not know which ones may be missing.
                let all = words::WORST_FIRST.iter().map(|&verdict| (verdict, counts.get(verdict))).collect();
                apis.entry(api).or_default().insert(version, all);
            }
            Entry { peer: &row.peer, apis }
        }
        let document = Document {
            suite: &self.run.suite,
            cases_sha256: &self.run.cases_sha256,
            level: self.run.level,
            partial: self.run.partial,
            peers: self.rows().map(entry).collect(),
            coverage: self.coverage,
        };
        serde_json::to_string_pretty(&document).expect("counts are plain data") + "\n"
    }
}

impl Cause<'_> {
    /// `12 cases: closed: step 1: the connection is closed`, on one line and not too long.
    pub fn sentence(&self) -> String {
        const SHOWN: usize = 400;
        let class = self.class.map_or(String::new(), |class| format!("{}: ", words::word(class)));
        let detail = kept(words::visible_line(self.detail), SHOWN);
        format!("{} cases: {class}{detail}", self.cases)
    }
}

impl RoleMatrix<'_> {
    /// The columns grouped by API: `[("DescribeConfigs", [0, 1, 2, 3, 4])]`.
    pub fn apis(&self) -> BTreeMap<&str, Vec<i16>> {
        let mut apis: BTreeMap<&str, Vec<i16>> = BTreeMap::new();
        for &(api, version) in &self.columns {
            apis.entry(api).or_default().push(version);
        }
        apis
    }
}

impl<'a> Row<'a> {
    /// What can be said of a peer whose row is lost.
    fn made_up(outcome: &Outcome) -> Peer {
        Peer {
            peer: outcome.peer.clone(),
            role: outcome.role,
            language: String::new(),
            status: Status::Ran,
            why: None,
            internal: false,
            certified: false,
            options: Vec::new(),
        }
    }

    fn without_peer(outcome: &Outcome) -> Row<'a> {
        Row { peer: Cow::Owned(Row::made_up(outcome)), cells: BTreeMap::new() }
    }

    /// Whether the peer was judged.
    pub fn ran(&self) -> bool {
        self.peer.status == Status::Ran
    }

    /// Why it was given up while it was judged, if it was.
    pub fn given_up(&self) -> Option<&str> {
        self.peer.why.as_deref().filter(|_| self.ran())
    }

    /// Why it was not judged, in one sentence.
    pub fn why(&self) -> &str {
        self.peer.why.as_deref().unwrap_or("no reason was given")
    }

    /// The reasons that many of its fails share, most cases first.
    pub fn causes(&self) -> Vec<Cause<'a>> {
        let mut causes: BTreeMap<(Option<Class>, &str), BTreeSet<&str>> = BTreeMap::new();
        for outcome in self.outcomes().filter(|outcome| outcome.verdict == Verdict::Fail) {
            if let Some(detail) = &outcome.detail {
                causes.entry((outcome.class, detail)).or_default().insert(&outcome.case);
            }
        }
        let many = causes.into_iter().filter(|(_, cases)| cases.len() >= MANY);
        let mut many: Vec<_> =
            many.map(|((class, detail), cases)| Cause { cases: cases.len(), class, detail }).collect();
        many.sort_by_key(|cause| std::cmp::Reverse(cause.cases));
        many
    }

    /// All outcomes of this peer, by column.
    pub fn outcomes(&self) -> impl Iterator<Item = &'a Outcome> {
        self.cells.values().flatten().copied()
    }
}

impl Counts {
    /// Counts verdicts.
    pub fn of<'o>(outcomes: impl IntoIterator<Item = &'o Outcome>) -> Counts {
        let mut counts = Counts::default();
        for outcome in outcomes {
            *counts.0.entry(outcome.verdict).or_default() += 1;
        }
        counts
    }

    /// How many outcomes have this verdict.
    pub fn get(&self, verdict: Verdict) -> usize {
        self.0.get(&verdict).copied().unwrap_or(0)
    }

    /// The worst verdict there is, none without outcomes.
    pub fn worst(&self) -> Option<Verdict> {
        self.0.keys().copied().min_by_key(|&verdict| words::rank(verdict))
    }

    /// How many outcomes a pass was possible in: all but the unsupported ones.
    pub fn claimed(&self) -> usize {
        self.0.values().sum::<usize>() - self.get(Verdict::Unsupported) - self.get(Verdict::NotRun)
    }

    /// The verdicts that occur, worst first, with how often.
    pub fn present(&self) -> impl Iterator<Item = (Verdict, usize)> {
        words::WORST_FIRST.iter().map(|&verdict| (verdict, self.get(verdict))).filter(|&(_, count)| count > 0)
    }

    /// `5 fail, 29 pass`.
    pub fn sentence(&self) -> String {
        let parts: Vec<_> =
            self.present().map(|(verdict, count)| format!("{count} {}", words::word(verdict))).collect();
        if parts.is_empty() { "nothing judged".into() } else { parts.join(", ") }
    }
}
