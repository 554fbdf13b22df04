//! `junit.xml`: a test suite a peer, a test case an outcome, for continuous integration that knows nothing of Kafka.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::matrix::{Matrix, Row};
use super::words::{place, replay, word};
use crate::results::{Outcome, Verdict};

/// The text of `junit.xml`. `fail`, `unexpected-pass` and `harness-error` are failures; `known`, `flaky`, `not-run` and
/// `unsupported` are skipped with the reason; `differs` and `variant` succeed and say so in their output.
pub fn render(matrix: &Matrix) -> String {
    let mut report = Report::new("kafka-conform");
    report.add_test_suites(matrix.rows().map(suite));
    report.to_string().expect("quick-junit writes any report into memory")
}

fn suite(row: &Row) -> TestSuite {
    let role = word(row.peer.role);
    let mut suite = TestSuite::new(format!("{role} {}", clean(&row.peer.peer)));
    suite.add_property(Property::new("role", &role));
    suite.add_property(Property::new("language", clean(&row.peer.language)));
    suite.add_property(Property::new("internal", row.peer.internal.to_string()));
    if !row.ran() {
        // Without a test case the peer would look as if nothing were missing.
        let mut status = TestCaseStatus::skipped();
        status.set_message(format!("not run: {}", clean(row.why())));
        let mut absent = TestCase::new("peer runs", status);
        absent.set_classname(clean(&row.peer.peer));
        suite.add_test_case(absent);
    }
    suite.add_test_cases(row.outcomes().map(|outcome| test_case(outcome, row)));
    // Files of others may hold any number.
    suite.set_time(row.outcomes().map(elapsed).fold(Duration::ZERO, Duration::saturating_add));
    suite
}

fn test_case(outcome: &Outcome, row: &Row) -> TestCase {
    let verdict = word(outcome.verdict);
    let detail = clean(outcome.detail.as_deref().unwrap_or("no detail"));
    let status = match outcome.verdict {
        Verdict::Pass | Verdict::Differs | Verdict::Variant => TestCaseStatus::success(),
        Verdict::Fail | Verdict::UnexpectedPass | Verdict::HarnessError => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(format!("{verdict}: {detail}"));
            status.set_type(outcome.class.map_or(verdict.clone(), word));
            status.set_description(clean(&evidence(outcome, row)));
            status
        }
        Verdict::Known | Verdict::Flaky | Verdict::NotRun | Verdict::Unsupported => {
            let what = if outcome.verdict == Verdict::Known { "known deviation" } else { &verdict };
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("{what}: {detail}"));
            status
        }
    };
    // One case at one version is judged once for each operation.
    let name = format!("{} {}", clean(&outcome.case), word(outcome.op));
    let mut case = TestCase::new(name, status);
    case.set_classname(clean(&format!("{}.{}", outcome.peer, outcome.api)));
    case.set_time(elapsed(outcome));
    if matches!(outcome.verdict, Verdict::Differs | Verdict::Variant) {
        case.set_system_out(format!("{verdict}: {detail}"));
    }
    case
}

/// What is at hand to understand a failure, a line each.
fn evidence(outcome: &Outcome, row: &Row) -> String {
    let mut lines = vec![format!("level: {}", word(outcome.level))];
    lines.extend(place(outcome).map(|place| format!("place: {place}")));
    lines.extend(outcome.sent.as_ref().map(|sent| format!("sent: {sent}")));
    lines.extend(outcome.want.as_ref().map(|want| format!("want: {want}")));
    lines.extend(outcome.got.as_ref().map(|got| format!("got: {got}")));
    lines.push(format!("replay: {}", replay(outcome, &row.peer)));
    lines.join("\n")
}

/// XML cannot hold U+FFFE and U+FFFF in any form; quick-junit takes care of the other control characters.
fn clean(text: &str) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

fn elapsed(outcome: &Outcome) -> Duration {
    Duration::from_millis(outcome.elapsed_ms)
}
