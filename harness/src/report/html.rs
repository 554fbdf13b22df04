//! `index.html`: one file, readable offline and without scripts, from the matrix down to the bytes.
//!
//! Its size is bounded: passing outcomes are counted by case and a list that an earlier peer has too is a link, the text
//! of a case stands once for each peer it deviates on, and evidence is shown until [`EVIDENCE_BUDGET`] is used up, first
//! for the first outcome of every kind.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;

use super::NON_AFFILIATION;
use super::evidence::{Evidence, cost, evidence};
use super::matrix::{Cause, Column, Counts, Matrix, RoleMatrix, Row};
use super::words::{self, deviates, plural, sign, word};
use crate::coverage::Coverage;
use crate::results::{CaseInfo, Class, Outcome, Role, Run, Verdict};

/// Roughly how much evidence the page holds, in characters of HTML.
const EVIDENCE_BUDGET: usize = 3_000_000;

/// How many reasons that cases share are told of a peer.
const CAUSES: usize = 10;

/// The text of `index.html`.
pub fn render(matrix: &Matrix, cases: &BTreeMap<String, CaseInfo>) -> String {
    let evident = evident(matrix);
    let (ran, not_run) = matrix.ran_and_not_run();
    let outcomes = matrix.rows().flat_map(Row::outcomes);
    let page = Page {
        run: matrix.run,
        hash: matrix.run.cases_sha256.get(..12).unwrap_or(&matrix.run.cases_sha256),
        level: word(matrix.run.level),
        non_affiliation: NON_AFFILIATION,
        ran,
        not_run,
        case_count: outcomes.map(|outcome| &outcome.case).collect::<BTreeSet<_>>().len(),
        legend: legend(&matrix.counts()),
        faults: faults(matrix),
        roles: matrix.roles.iter().map(|role| role_part(role, cases, &evident)).collect(),
        catalogue: catalogue(matrix, cases),
        coverage: matrix.coverage,
    };
    // All of it at once, so that no name, text or path of others is forgotten.
    words::visible(&page.render().expect("the template writes plain data into memory"))
}

#[derive(Template)]
#[template(path = "index.html")]
struct Page<'a> {
    run: &'a Run,
    hash: &'a str,
    level: String,
    non_affiliation: &'a str,
    ran: usize,
    not_run: usize,
    case_count: usize,
    legend: Vec<LegendLine>,
    faults: Vec<FaultLine<'a>>,
    roles: Vec<RolePart<'a>>,
    catalogue: Vec<CatalogueGroup<'a>>,
    coverage: Option<&'a Coverage>,
}

struct LegendLine {
    word: String,
    sign: &'static str,
    meaning: &'static str,
    count: usize,
}

/// All deviations of one class.
struct FaultLine<'a> {
    class: String,
    severity: u8,
    meaning: &'static str,
    /// `3 fail, 1 known`.
    counts: String,
    peers: Vec<PeerLink<'a>>,
}

#[derive(Clone)]
struct PeerLink<'a> {
    id: String,
    peer: &'a str,
}

struct RolePart<'a> {
    word: String,
    title: &'static str,
    /// APIs with their versions.
    apis: Vec<(&'a str, Vec<i16>)>,
    columns: usize,
    peers: Vec<PeerPart<'a>>,
}

struct PeerPart<'a> {
    id: String,
    peer: &'a str,
    language: &'a str,
    internal: bool,
    ran: bool,
    why: &'a str,
    sentence: String,
    /// What many of its fails have in common, and how many reasons more there are.
    causes: Vec<String>,
    more_causes: usize,
    worst: String,
    sign: &'static str,
    /// One for each column of the role.
    cells: Vec<Option<CellPart<'a>>>,
}

struct CellPart<'a> {
    id: String,
    api: &'a str,
    version: i16,
    /// True for the first version of an API: a rule stands before it.
    first: bool,
    worst: String,
    sign: &'static str,
    passed: usize,
    claimed: usize,
    sentence: String,
    deviations: Vec<CasePart<'a>>,
    notes: Vec<NotePart>,
    passing: Vec<PassingPart<'a>>,
}

/// The deviations of one case.
struct CasePart<'a> {
    case: &'a str,
    level: String,
    info: Option<&'a CaseInfo>,
    outcomes: Vec<OutcomePart<'a>>,
    replay: String,
}

/// Outcomes that are told by one reason: variants, unsupported, not run, and deviations past the budget.
struct NotePart {
    verdict: String,
    sign: &'static str,
    detail: String,
    cases: String,
    count: usize,
    /// True when there is more to see than the page has room for.
    short: bool,
}

/// The passing outcomes of one message.
#[derive(Clone)]
struct PassingPart<'a> {
    message: &'a str,
    count: usize,
    list: Passing<'a>,
}

#[derive(Clone)]
enum Passing<'a> {
    /// Case names.
    Names(String),
    /// The same names as in this peer's cell of the same column.
    SameAs(PeerLink<'a>),
}

/// The lists so far, by column, message and text, with the first cell that has it.
type Lists<'a> = BTreeMap<(Column<'a>, &'a str, String), PeerLink<'a>>;

struct OutcomePart<'a> {
    verdict: String,
    sign: &'static str,
    class: Option<String>,
    severity: Option<u8>,
    op: String,
    place: Option<String>,
    detail: Option<&'a str>,
    evidence: Evidence,
}

struct CatalogueGroup<'a> {
    id: String,
    title: String,
    cases: Vec<CatalogueCase<'a>>,
}

struct CatalogueCase<'a> {
    name: String,
    versions: String,
    level: String,
    info: Option<&'a CaseInfo>,
    sentence: String,
}

fn legend(counts: &Counts) -> Vec<LegendLine> {
    let shown = [Verdict::Pass, Verdict::Variant, Verdict::Differs, Verdict::Fail, Verdict::Known];
    let rest = words::WORST_FIRST.into_iter().filter(|verdict| !shown.contains(verdict));
    let line = |verdict| LegendLine {
        word: word(verdict),
        sign: sign(verdict),
        meaning: words::meaning(verdict),
        count: counts.get(verdict),
    };
    shown.into_iter().chain(rest).map(line).collect()
}

fn faults<'a>(matrix: &'a Matrix) -> Vec<FaultLine<'a>> {
    let mut classes: BTreeMap<Class, (Vec<&Outcome>, BTreeMap<String, &'a str>)> = BTreeMap::new();
    for row in matrix.rows() {
        for outcome in row.outcomes().filter(|outcome| deviates(outcome.verdict)) {
            let Some(class) = outcome.class else { continue };
            let (outcomes, peers) = classes.entry(class).or_default();
            outcomes.push(outcome);
            peers.insert(peer_id(row), &row.peer.peer);
        }
    }
    let line = |(class, (outcomes, peers)): (Class, (Vec<&Outcome>, BTreeMap<String, &'a str>))| FaultLine {
        class: word(class),
        severity: class.severity(),
        meaning: words::class_meaning(class),
        counts: Counts::of(outcomes).sentence(),
        peers: peers.into_iter().map(|(id, peer)| PeerLink { id, peer }).collect(),
    };
    classes.into_iter().map(line).collect()
}

fn role_part<'a>(role: &'a RoleMatrix<'a>, cases: &'a BTreeMap<String, CaseInfo>, evident: &Evident) -> RolePart<'a> {
    let apis: Vec<_> = role.apis().into_iter().collect();
    let mut lists = Lists::new();
    let peer = |row: &'a Row<'a>| {
        let counts = Counts::of(row.outcomes());
        let causes = row.causes();
        let worst = if row.ran() { counts.worst() } else { Some(Verdict::NotRun) };
        let cell = |&(api, version): &Column<'a>| {
            row.cells.get(&(api, version))?;
            let first = apis.iter().any(|(name, versions)| *name == api && versions[0] == version);
            Some(cell_part(row, (api, version), first, &mut lists, cases, evident))
        };
        PeerPart {
            id: peer_id(row),
            peer: &row.peer.peer,
            language: &row.peer.language,
            internal: row.peer.internal,
            ran: row.ran(),
            why: row.why(),
            sentence: row.given_up().map_or_else(|| counts.sentence(), |why| format!("{}; {why}", counts.sentence())),
            causes: causes.iter().take(CAUSES).map(Cause::sentence).collect(),
            more_causes: causes.len().saturating_sub(CAUSES),
            worst: worst.map(word).unwrap_or_default(),
            sign: worst.map_or("", sign),
            cells: role.columns.iter().map(cell).collect(),
        }
    };
    RolePart {
        word: word(role.role),
        title: plural(role.role),
        columns: role.columns.len(),
        peers: role.rows.iter().map(peer).collect(),
        apis,
    }
}

fn cell_part<'a>(
    row: &'a Row<'a>,
    (api, version): Column<'a>,
    first: bool,
    lists: &mut Lists<'a>,
    cases: &'a BTreeMap<String, CaseInfo>,
    evident: &Evident,
) -> CellPart<'a> {
    let outcomes = &row.cells[&(api, version)];
    let counts = Counts::of(outcomes.iter().copied());
    let worst = counts.worst().expect("a cell is made by its first outcome");
    let id = format!("{}/{}/{version}", peer_id(row), id_text(api));
    let mut deviating: BTreeMap<&str, Vec<&'a Outcome>> = BTreeMap::new();
    let mut notes: BTreeMap<(usize, Option<Class>, &str), Vec<&Outcome>> = BTreeMap::new();
    let mut passing: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for &outcome in outcomes {
        match outcome.verdict {
            Verdict::Pass => passing.entry(&outcome.message).or_default().push(outcome),
            _ if evident.contains(&std::ptr::from_ref(outcome)) => {
                deviating.entry(&outcome.case).or_default().push(outcome);
            }
            verdict => {
                let detail = outcome.detail.as_deref().unwrap_or("no detail");
                notes.entry((words::rank(verdict), outcome.class, detail)).or_default().push(outcome);
            }
        }
    }
    let note = |((rank, class, detail), outcomes): ((usize, Option<Class>, &str), Vec<&Outcome>)| NotePart {
        verdict: word(words::WORST_FIRST[rank]),
        sign: sign(words::WORST_FIRST[rank]),
        detail: class.map_or(String::new(), |class| word(class) + ": ") + detail,
        count: outcomes.len(),
        cases: names(&outcomes),
        short: deviates(words::WORST_FIRST[rank]),
    };
    let here = PeerLink { id: id.clone(), peer: &row.peer.peer };
    let mut passes = |(message, outcomes): (&'a str, Vec<&Outcome>)| {
        let names = names(&outcomes);
        let list = match lists.get(&((api, version), message, names.clone())) {
            Some(earlier) => Passing::SameAs(earlier.clone()),
            None => {
                lists.insert(((api, version), message, names.clone()), here.clone());
                Passing::Names(names)
            }
        };
        PassingPart { message, count: outcomes.len(), list }
    };
    let mut deviations: Vec<_> =
        deviating.into_iter().map(|(case, outcomes)| (gravity(&outcomes), case, outcomes)).collect();
    deviations.sort_by_key(|&(gravity, case, _)| (gravity, case));
    CellPart {
        id,
        api,
        version,
        first,
        worst: word(worst),
        sign: sign(worst),
        passed: counts.get(Verdict::Pass),
        claimed: counts.claimed(),
        sentence: counts.sentence(),
        deviations: deviations.into_iter().map(|(_, case, outcomes)| case_part(case, outcomes, row, cases)).collect(),
        notes: notes.into_iter().map(note).collect(),
        passing: passing.into_iter().map(&mut passes).collect(),
    }
}

/// Worst first: verdict, then severity.
fn gravity(outcomes: &[&Outcome]) -> (usize, u8) {
    let each = outcomes.iter().map(|outcome| (words::rank(outcome.verdict), outcome.class.map_or(5, Class::severity)));
    each.min().expect("a case is here because of an outcome")
}

fn case_part<'a>(
    case: &'a str,
    outcomes: Vec<&'a Outcome>,
    row: &Row,
    cases: &'a BTreeMap<String, CaseInfo>,
) -> CasePart<'a> {
    let part = |outcome: &&'a Outcome| OutcomePart {
        verdict: word(outcome.verdict),
        sign: sign(outcome.verdict),
        class: outcome.class.map(word),
        severity: outcome.class.map(Class::severity),
        op: word(outcome.op),
        place: words::place(outcome),
        detail: outcome.detail.as_deref(),
        evidence: evidence(outcome),
    };
    CasePart {
        case,
        level: word(outcomes[0].level),
        info: cases.get(case),
        outcomes: outcomes.iter().map(part).collect(),
        replay: words::replay(outcomes[0], &row.peer),
    }
}

/// `null-documentation, truncated ×3`: case names, with the number of outcomes where there are several.
fn names(outcomes: &[&Outcome]) -> String {
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in outcomes {
        *counted.entry(slug(outcome)).or_default() += 1;
    }
    let names = counted.into_iter().map(|(name, count)| match count {
        1 => name.to_string(),
        _ => format!("{name}\u{a0}×{count}"),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// The outcomes whose evidence is shown, by address; only asked for membership.
type Evident = BTreeSet<*const Outcome>;

/// Chooses within [`EVIDENCE_BUDGET`]: all peers in turn, and of each peer the first outcome of every case name and class
/// before the second ones, so that what is shortened resembles what is not.
fn evident(matrix: &Matrix) -> Evident {
    let mut queue = Vec::new();
    for row in matrix.rows() {
        let mut seen: BTreeMap<_, usize> = BTreeMap::new();
        let mut turns = Vec::new();
        for outcome in row.outcomes().filter(|outcome| deviates(outcome.verdict)) {
            let nth = seen.entry((slug(outcome), outcome.class)).or_default();
            turns.push((*nth, gravity(&[outcome]), outcome));
            *nth += 1;
        }
        turns.sort_by_key(|&(nth, gravity, _)| (nth, gravity));
        queue.extend(turns.into_iter().enumerate().map(|(turn, (.., outcome))| (turn, outcome)));
    }
    queue.sort_by_key(|&(turn, _)| turn);
    let mut left = EVIDENCE_BUDGET;
    let affordable = queue.into_iter().map_while(|(_, outcome)| {
        left = left.checked_sub(cost(outcome))?;
        Some(std::ptr::from_ref(outcome))
    });
    affordable.collect()
}

/// The last part of the case id.
fn slug(outcome: &Outcome) -> &str {
    outcome.case.rsplit('/').next().unwrap_or(&outcome.case)
}

fn catalogue<'a>(matrix: &'a Matrix, cases: &'a BTreeMap<String, CaseInfo>) -> Vec<CatalogueGroup<'a>> {
    // Cases that differ in their version only and have the same text are one line.
    type Texts<'a> = BTreeMap<(String, &'a str, &'a [String]), Vec<&'a Outcome>>;
    let mut groups: BTreeMap<(Role, &str), Texts> = BTreeMap::new();
    for outcome in matrix.rows().flat_map(Row::outcomes) {
        let (requires, cite) =
            cases.get(&outcome.case).map_or(("", &[][..]), |info| (info.requires.as_str(), info.cite.as_slice()));
        let group = groups.entry((outcome.role, &outcome.message)).or_default();
        group.entry((without_version(&outcome.case), requires, cite)).or_default().push(outcome);
    }
    let line = |((name, ..), outcomes): ((String, &str, &[String]), Vec<&'a Outcome>)| {
        let versions: BTreeSet<_> = outcomes.iter().map(|outcome| outcome.version).collect();
        CatalogueCase {
            name,
            versions: super::terminal::ranges(&versions.into_iter().collect::<Vec<_>>()),
            level: word(outcomes[0].level),
            info: cases.get(&outcomes[0].case),
            sentence: Counts::of(outcomes).sentence(),
        }
    };
    let group = |((role, message), texts): ((Role, &str), Texts<'a>)| CatalogueGroup {
        id: format!("cases/{}/{}", word(role), id_text(message)),
        title: format!("{message} ({})", word(role)),
        cases: texts.into_iter().map(line).collect(),
    };
    groups.into_iter().map(group).collect()
}

/// `codec/describe-configs-response/v4/null-documentation` without its `v4`.
fn without_version(case: &str) -> String {
    let is_version = |part: &str| part.strip_prefix('v').is_some_and(|digits| digits.parse::<u16>().is_ok());
    case.split('/').filter(|part| !is_version(part)).collect::<Vec<_>>().join("/")
}

fn peer_id(row: &Row) -> String {
    format!("{}/{}", word(row.peer.role), id_text(&row.peer.peer))
}

/// Text for an id and the link to it, which hold neither spaces nor anything that a link escapes.
fn id_text(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || "@._-".contains(c) { c } else { '_' }).collect()
}
