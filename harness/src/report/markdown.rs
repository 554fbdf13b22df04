//! `matrix.md`: the tables and the deviations, for a repository page or a mail.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::NON_AFFILIATION;
use super::matrix::{Counts, Matrix, RoleMatrix, Row};
use super::words::{deviates, place, plural, replay, sign, visible_line, word};
use crate::results::{CaseInfo, Outcome, Verdict};

/// The text of `matrix.md`.
pub fn render(matrix: &Matrix, cases: &BTreeMap<String, CaseInfo>) -> String {
    let mut page = String::new();
    let (ran, not_run) = matrix.ran_and_not_run();
    let run = matrix.run;
    let _ = write!(
        page,
        "# Kafka protocol conformance\n\n\
         Suite {}, cases `{}`, level {}. Peers: {ran} ran, {not_run} not run. Outcomes: {}.\n\n",
        text(&run.suite),
        code(&run.cases_sha256),
        word(run.level),
        matrix.counts().sentence()
    );
    if run.partial {
        page += "**The run was interrupted: what is missing was not judged.**\n\n";
    }
    let signs: Vec<_> =
        super::words::WORST_FIRST.iter().map(|&verdict| format!("{} {}", sign(verdict), word(verdict))).collect();
    let _ = write!(
        page,
        "A cell shows its worst verdict, and how many of the outcomes that the peer claims to support pass.\n\
         Signs: {}.\n\n{NON_AFFILIATION}\n",
        signs.join(", ")
    );
    page += "\n<!-- summary -->\n";
    for role in &matrix.roles {
        summary(&mut page, role);
    }
    page += "\n<!-- /summary -->\n\n<details><summary>By version</summary>\n";
    for role in &matrix.roles {
        table(&mut page, role);
    }
    page += "\n</details>\n";
    if matrix.rows().any(|row| !row.ran()) {
        page += "\n## Not run\n\n";
        for row in matrix.rows().filter(|row| !row.ran()) {
            let _ = writeln!(page, "- {} ({}): {}", text(&row.peer.peer), word(row.peer.role), text(row.why()));
        }
    }
    if matrix.rows().any(|row| row.given_up().is_some()) {
        page += "\n## Not judged to the end\n\n";
        for (row, why) in matrix.rows().filter_map(|row| Some((row, row.given_up()?))) {
            let _ = writeln!(page, "- {} ({}): {}", text(&row.peer.peer), word(row.peer.role), text(why));
        }
    }
    if let Some(coverage) = matrix.coverage {
        let _ = write!(
            page,
            "\n## Coverage of the codec cases\n\n\
             {}. A mutant is a layout that is wrong in one thing; what no case catches is an untested rule.\n",
            coverage.all
        );
        if !coverage.untested.is_empty() {
            page += "\nUntested:\n\n";
        }
        for mutant in &coverage.untested {
            let _ = writeln!(page, "- {}", text(mutant));
        }
        page += "\n| message | mutants | caught |\n| --- | --- | --- |\n";
        for (message, tally) in &coverage.messages {
            let _ = writeln!(page, "| {} | {} | {} |", text(message), tally.mutants, tally.caught);
        }
    }
    page += "\n## Deviations\n";
    let deviating = matrix.rows().filter(|row| row.outcomes().any(|outcome| deviates(outcome.verdict)));
    let before = page.len();
    for row in deviating {
        deviations(&mut page, row, cases);
    }
    if page.len() == before {
        page += "\nNone.\n";
    }
    page
}

/// A column an API: narrow enough for a README.
fn summary(page: &mut String, role: &RoleMatrix) {
    let _ = write!(page, "\n| {} | language |", plural(role.role));
    let apis: Vec<&str> = role.apis().into_keys().collect();
    for api in &apis {
        let _ = write!(page, " {} |", text(api));
    }
    let _ = write!(page, "\n| --- | --- |{}\n", " --- |".repeat(apis.len()));
    for row in &role.rows {
        let _ = write!(page, "| {} | {} |", text(&row.peer.peer), text(&row.peer.language));
        for api in &apis {
            let _ = write!(page, " {} |", super::terminal::cell(row, api).0.replace('\n', "<br>"));
        }
        page.push('\n');
    }
}

fn table(page: &mut String, role: &RoleMatrix) {
    let _ = write!(page, "\n### {} by version\n\n| peer | language |", plural(role.role));
    for (api, version) in &role.columns {
        let _ = write!(page, " {} v{version} |", text(api));
    }
    let _ = write!(page, "\n| --- | --- |{}\n", " --- |".repeat(role.columns.len()));
    for row in &role.rows {
        let internal = if row.peer.internal { " (internals)" } else { "" };
        let _ = write!(page, "| {}{internal} | {} |", text(&row.peer.peer), text(&row.peer.language));
        for column in &role.columns {
            let cell = match row.cells.get(column) {
                Some(outcomes) => cell(&Counts::of(outcomes.iter().copied())),
                None if row.ran() => String::new(),
                None => format!("{} not-run", sign(Verdict::NotRun)),
            };
            let _ = write!(page, " {cell} |");
        }
        page.push('\n');
    }
}

/// `✗ fail 29/34`; `✓ 34/34` needs no word; `– unsupported` has no numbers.
fn cell(counts: &Counts) -> String {
    match counts.worst() {
        None => String::new(),
        Some(verdict @ Verdict::Unsupported) => format!("{} unsupported", sign(verdict)),
        Some(verdict) => {
            let word = if verdict == Verdict::Pass { String::new() } else { word(verdict) + " " };
            format!("{} {word}{}/{}", sign(verdict), counts.get(Verdict::Pass), counts.claimed())
        }
    }
}

fn deviations(page: &mut String, row: &Row, cases: &BTreeMap<String, CaseInfo>) {
    let _ = write!(page, "\n### {} ({})\n\n", text(&row.peer.peer), word(row.peer.role));
    let mut by_case: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in row.outcomes().filter(|outcome| deviates(outcome.verdict)) {
        by_case.entry(&outcome.case).or_default().push(outcome);
    }
    for (case, outcomes) in by_case {
        let _ = writeln!(page, "- `{}` ({})", code(case), word(outcomes[0].level));
        if let Some(info) = cases.get(case) {
            let cite: Vec<_> = info.cite.iter().map(|cite| text(cite)).collect();
            let _ = writeln!(page, "  - requires: {} ({})", text(&info.requires), cite.join("; "));
        }
        for outcome in &outcomes {
            let verdict = outcome.verdict;
            let _ =
                write!(page, "  - {} **{}** {} v{}", sign(verdict), word(verdict), word(outcome.op), outcome.version);
            if let Some(class) = outcome.class {
                let _ = write!(page, ", {} (severity {})", word(class), class.severity());
            }
            if let Some(place) = place(outcome) {
                let _ = write!(page, ", `{}`", code(&place));
            }
            let _ = writeln!(page, ": {}", text(outcome.detail.as_deref().unwrap_or("no detail")));
        }
        let _ = writeln!(page, "  - `{}`", code(&replay(outcomes[0], &row.peer)));
    }
}

/// Text that Markdown and HTML take literally, on one line.
fn text(raw: &str) -> String {
    let mut escaped = String::with_capacity(raw.len());
    for character in visible_line(raw).chars() {
        match character {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Text for between backticks.
fn code(raw: &str) -> String {
    visible_line(raw).replace('`', "'")
}
