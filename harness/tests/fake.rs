//! The tester is tested: each faulty codec is caught by a case about its fault, and a codec without fault is not.

use kafka_conform::cases::Cases;
use kafka_conform::cite;
use kafka_conform::definitions::bundled;
use kafka_conform::fake_codec::{Due, FAULTS, Fault, Found, Switch, check};
use kafka_conform::results::Class;
use std::collections::BTreeSet;
use std::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_kafka-conform");

fn cases() -> Cases {
    Cases::bundled(bundled()).unwrap_or_else(|lints| panic!("{}", lints.join("\n")))
}

fn fault(switch: Switch) -> Fault {
    *FAULTS.iter().find(|fault| fault.switch == Some(switch)).expect("every switch has a fault")
}

fn found(fault: Fault, cases: &Cases) -> Found {
    let mut found = check(&[fault], cases, BINARY).unwrap_or_else(|error| panic!("{error:#}"));
    found.remove(0)
}

#[test]
fn every_fault_is_caught_and_the_control_is_clean() {
    let output = Command::new(BINARY).args(["fake", "codec", "--check"]).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let count = FAULTS.len();
    assert_eq!(said.lines().last(), Some(format!("{count} of {count}, control clean").as_str()));
    for (fault, line) in FAULTS.iter().zip(said.lines()) {
        assert!(line.starts_with(&format!("{} caught-by ", fault.name())), "{line}");
    }
}

#[test]
fn there_are_many_faults_and_half_of_them_were_seen_in_public() {
    let reported: Vec<&Fault> = FAULTS.iter().filter(|fault| !fault.reports.is_empty()).collect();
    assert!(FAULTS.len() >= 45 && reported.len() >= 22, "{} faults, {} reported", FAULTS.len(), reported.len());
    for report in reported.iter().flat_map(|fault| fault.reports) {
        assert_eq!(cite::check(bundled(), report, &|_| cite::About::Nothing), Ok(cite::Authority::Report), "{report}");
    }
    let names: BTreeSet<String> = FAULTS.iter().map(Fault::name).collect();
    assert_eq!(names.len(), FAULTS.len());
    assert!(!names.contains(&Fault::CONTROL.name()));
}

#[test]
fn the_report_of_each_fault_is_cited_by_a_case() {
    let cases = cases();
    let cited: BTreeSet<&str> =
        cases.vectors.cases.iter().flat_map(|case| &case.info.cite).map(String::as_str).collect();
    let reports: BTreeSet<&str> = FAULTS.iter().flat_map(|fault| fault.reports).copied().collect();
    assert_eq!(reports.difference(&cited).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn a_fault_that_is_not_there_is_not_caught() {
    let cases = cases();
    // One that is judged in this process, one that needs its own, and one that the probe finds.
    for switch in [Switch::NullTextEmpty, Switch::NullArrayCrashes, Switch::Echo] {
        let mut neutral = fault(switch);
        assert!(found(neutral, &cases).is_caught(), "{switch:?}");
        neutral.switch = None;
        assert_eq!(found(neutral, &cases), Found::Nothing(None), "{switch:?}");
    }
}

#[test]
fn it_is_not_enough_that_some_case_fails() {
    let cases = cases();
    for (rule, glob, class) in [
        ("well-formed", "*", Class::TooLenient),
        ("truncated", "*", Class::WrongValue),
        ("well-formed", "codec/request-header/*", Class::WrongValue),
        ("no-such-rule", "*", Class::WrongValue),
    ] {
        let mut fault = fault(Switch::SeveralKeysLost);
        fault.due = Due::Case { rule, cases: glob, class };
        let found = found(fault, &cases);
        assert!(matches!(&found, Found::Nothing(Some(other)) if other.contains("describe-configs-request")), "{found}");
    }
}

#[test]
fn an_unknown_fault_is_a_mistake_and_the_nearest_are_named() {
    let output = Command::new(BINARY).args(["fake", "codec", "--fault", "lier"]).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("liar"), "{output:?}");
}

#[test]
fn the_list_has_a_line_for_each_fault() {
    let output = Command::new(BINARY).args(["fake", "codec", "--list"]).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.lines().count(), FAULTS.len());
    let line = said.lines().find(|line| line.starts_with("varint-unbounded ")).unwrap_or_default();
    assert!(line.ends_with("(tulios/kafkajs#1793)"), "{line}");
}
