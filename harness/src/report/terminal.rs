//! The summary at the end of a run, for a terminal.

use comfy_table::{Cell, Color, ContentArrangement, Table, presets};

use super::matrix::{Counts, Matrix, RoleMatrix, Row};
use super::words::{self, plural, sign, visible_line, word};
use crate::coverage::Coverage;
use crate::results::{Outcome, Results, Verdict};

/// Columns of a terminal that does not tell its width, or of a pipe.
const FALLBACK_WIDTH: u16 = 80;

/// A table for each role, what the codec cases leave untested, then as last lines the counts, `peers: N ran, M not run`, and why each of the latter did not.
/// As wide as the terminal. Colours are ANSI escapes: print through `anstream`, which drops them where they do not belong.
pub fn summary(results: &Results, coverage: Option<&Coverage>) -> String {
    summary_at(results, coverage, Table::new().width().unwrap_or(FALLBACK_WIDTH))
}

/// [`summary`] for a terminal of `width` columns: tables that do not fit are continued below.
pub fn summary_at(results: &Results, coverage: Option<&Coverage>, width: u16) -> String {
    let matrix = Matrix::of(results);
    let mut text = String::new();
    for role in &matrix.roles {
        text += &format!("{}\n", plural(role.role));
        for table in tables(role, width) {
            text += &format!("{table}\n");
        }
        text.push('\n');
    }
    if results.run.partial {
        text += "The run was interrupted: what is missing was not judged.\n";
    }
    const NAMED: usize = 5;
    let bad: Vec<&Outcome> = results
        .outcomes
        .iter()
        .filter(|outcome| matches!(outcome.verdict, Verdict::Fail | Verdict::UnexpectedPass))
        .collect();
    for outcome in bad.iter().take(NAMED) {
        let detail = visible_line(outcome.detail.as_deref().unwrap_or_default());
        text += &format!(
            "{}: {} {}: {detail}\n  {}\n",
            word(outcome.verdict),
            visible_line(&outcome.peer),
            visible_line(&outcome.case),
            visible_line(&words::replay(outcome, &matrix.peer_of(outcome)))
        );
    }
    if bad.len() > NAMED {
        text += &format!("and {} more: see the report\n", bad.len() - NAMED);
    }
    let causes: Vec<_> =
        matrix.rows().flat_map(|row| row.causes().into_iter().map(move |cause| (row, cause))).collect();
    for (row, cause) in causes.iter().take(NAMED) {
        text += &format!("fail: {}: {}\n", visible_line(&row.peer.peer), cause.sentence());
    }
    if causes.len() > NAMED {
        text += &format!("and {} more reasons that cases share: see the report\n", causes.len() - NAMED);
    }
    if let Some(coverage) = coverage {
        let untested = coverage.untested.iter();
        text.extend(untested.clone().take(NAMED).map(|mutant| format!("untested: {mutant}\n")));
        if untested.len() > NAMED {
            text += &format!("and {} more untested: see the report\n", untested.len() - NAMED);
        }
        text += &format!("coverage of the codec cases: {}\n", coverage.all);
    }
    let counts = matrix.counts();
    let shown = words::WORST_FIRST
        .iter()
        .map(|&verdict| (verdict, counts.get(verdict)))
        // These two are looked for even when there are none.
        .filter(|&(verdict, count)| count > 0 || matches!(verdict, Verdict::Pass | Verdict::Fail))
        .map(|(verdict, count)| paint(verdict, count, &format!("{count} {}", word(verdict))));
    text += &format!("{}\n", shown.collect::<Vec<_>>().join(", "));
    let (ran, not_run) = matrix.ran_and_not_run();
    text += &format!("peers: {ran} ran, {not_run} not run\n");
    for row in matrix.rows().filter(|row| !row.ran()) {
        text += &format!(
            "not run: {} ({}): {}\n",
            visible_line(&row.peer.peer),
            word(row.peer.role),
            visible_line(row.why())
        );
    }
    for (row, why) in matrix.rows().filter_map(|row| Some((row, row.given_up()?))) {
        text += &format!(
            "not judged to the end: {} ({}): {}\n",
            visible_line(&row.peer.peer),
            word(row.peer.role),
            visible_line(why)
        );
    }
    text
}

/// The role's table, cut between APIs into as many as the width needs, each with the peers in front.
fn tables(role: &RoleMatrix, width: u16) -> Vec<Table> {
    let apis: Vec<_> = role.apis().into_keys().collect();
    let columns: Vec<Vec<(String, Color)>> = apis
        .iter()
        .map(|api| {
            let cells = role.rows.iter().map(|row| cell(row, api));
            std::iter::once((words_on_lines(&visible_line(api)), Color::Reset)).chain(cells).collect()
        })
        .collect();
    // A column takes its longest line, a blank on each side and a rule.
    let room = |cells: &[(String, Color)]| {
        3 + cells.iter().flat_map(|(text, _)| text.lines()).map(|line| line.chars().count()).max().unwrap_or(0)
    };
    let peers: Vec<_> = std::iter::once("peer".to_string())
        .chain(role.rows.iter().map(|row| visible_line(&row.peer.peer)))
        .map(|name| (name, Color::Reset))
        .collect();
    let mut tables = Vec::new();
    let mut rest = columns.as_slice();
    loop {
        let mut taken = 0;
        let mut used = 1 + room(&peers);
        while taken < rest.len() && (taken == 0 || used + room(&rest[taken]) <= usize::from(width)) {
            used += room(&rest[taken]);
            taken += 1;
        }
        let (now, later) = rest.split_at(taken);
        tables.push(table(&peers, now, width));
        rest = later;
        if rest.is_empty() {
            return tables;
        }
    }
}

fn table(peers: &[(String, Color)], columns: &[Vec<(String, Color)>], width: u16) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).enforce_styling();
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    let line = |number: usize| {
        std::iter::once(&peers[number]).chain(columns.iter().map(move |column| &column[number])).map(|(text, color)| {
            let cell = Cell::new(text);
            if *color == Color::Reset { cell } else { cell.fg(*color) }
        })
    };
    table.set_header(line(0).collect::<Vec<_>>());
    table.add_rows((1..peers.len()).map(|number| line(number).collect::<Vec<_>>()));
    table
}

/// `34/34 v0-4`, and on a second line how often the worst verdict occurs and at which versions: `✗ 5 fail v3-4`.
pub(super) fn cell(row: &Row, api: &str) -> (String, Color) {
    if !row.ran() {
        return (format!("{} not run", sign(Verdict::NotRun)), color(Verdict::NotRun));
    }
    let outcomes: Vec<&Outcome> = row.outcomes().filter(|outcome| outcome.api == api).collect();
    let counts = Counts::of(outcomes.iter().copied());
    let versions = |keep: &dyn Fn(Verdict) -> bool| {
        let mut versions: Vec<_> =
            outcomes.iter().filter(|outcome| keep(outcome.verdict)).map(|outcome| outcome.version).collect();
        versions.dedup();
        ranges(&versions)
    };
    let Some(worst) = counts.worst() else { return (String::new(), Color::Reset) };
    if worst == Verdict::Unsupported {
        return (format!("{} {}", sign(worst), word(worst)), color(worst));
    }
    let claimed = versions(&|verdict| verdict != Verdict::Unsupported);
    let mut text = format!("{}/{} v{claimed}", counts.get(Verdict::Pass), counts.claimed());
    if worst != Verdict::Pass {
        let here = versions(&|verdict| verdict == worst);
        text += &format!("\n{} {} {} v{here}", sign(worst), counts.get(worst), word(worst));
    }
    (text, color(worst))
}

/// Ascending versions as Kafka writes ranges: `0-2,4`.
pub fn ranges(versions: &[i16]) -> String {
    let runs = versions.chunk_by(|a, b| i32::from(*b) - i32::from(*a) == 1);
    let runs = runs.map(|run| match run {
        [only] => only.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// `IncrementalAlterConfigs` on three lines, so that a column is as narrow as its numbers.
fn words_on_lines(api: &str) -> String {
    let mut lines = String::new();
    let mut before = None;
    for character in api.chars() {
        if character.is_uppercase() && before.is_some_and(char::is_lowercase) {
            lines.push('\n');
        }
        lines.push(character);
        before = Some(character);
    }
    lines
}

fn color(verdict: Verdict) -> Color {
    match verdict {
        Verdict::Pass => Color::DarkGreen,
        Verdict::Fail | Verdict::Known | Verdict::UnexpectedPass | Verdict::HarnessError => Color::DarkRed,
        Verdict::Differs | Verdict::Flaky => Color::DarkYellow,
        Verdict::Variant => Color::DarkCyan,
        Verdict::Unsupported | Verdict::NotRun => Color::DarkGrey,
    }
}

/// Colours a count that is not zero, with the escapes that [`color`] has in tables.
fn paint(verdict: Verdict, count: usize, text: &str) -> String {
    let code = match color(verdict) {
        _ if count == 0 => return text.to_string(),
        Color::DarkGreen => 32,
        Color::DarkRed => 31,
        Color::DarkYellow => 33,
        Color::DarkCyan => 36,
        _ => 90,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}
