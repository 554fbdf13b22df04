//! Real Apache Kafka brokers from Maven: they start, are judged, are stopped, and leave nothing running.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kafka_conform::apache_kafka::{self, Broker, BrokerError};
use kafka_conform::cases::Cases;
use kafka_conform::definitions;
use kafka_conform::exchange::{Case, Consent};
use kafka_conform::expect::{Expect, Matcher};
use kafka_conform::live_broker::{self, Settings, Target, Unreachable};
use kafka_conform::results::{Level, Outcome, Verdict};

/// A broker of that release with some properties of its own, or `None` with the reason printed where Java, Maven or the
/// network is missing.
fn start(version: &str, properties: &str) -> Option<Broker> {
    let build = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("apache-kafka").join(version);
    let installation = match apache_kafka::check_tools().and_then(|()| apache_kafka::install(version, &build)) {
        Ok(installation) => installation,
        Err(why @ (BrokerError::Missing { .. } | BrokerError::Build { .. })) => {
            println!("not-run: {}", why.summary());
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    Some(Broker::start_with(&installation, properties).unwrap_or_else(|error| panic!("{error}")))
}

fn exchanges() -> Vec<Case> {
    Cases::bundled(definitions::bundled()).unwrap_or_else(|errors| panic!("{}", errors.join("\n"))).exchanges
}

fn judge(broker: &Broker, cases: &[Case]) -> Vec<Outcome> {
    try_judge(broker, cases).unwrap_or_else(|error| panic!("{error}"))
}

fn try_judge(broker: &Broker, cases: &[Case]) -> Result<Vec<Outcome>, Unreachable> {
    let target = Target {
        addresses: vec![broker.address()],
        host: None,
        peer: format!("apache-kafka@{}", broker.version()),
        release: Some(broker.version().to_owned()),
        run_id: None,
    };
    let consents = BTreeSet::from([Consent::Describe, Consent::Writes, Consent::BrokerWrites, Consent::Hostile]);
    let settings = Settings { seed: 1, consents, level: Level::Must };
    live_broker::run(target, definitions::bundled(), cases, settings)
}

/// The listener that the suite is told of wants PLAIN; the controller's stays as it is.
const SASL: &str = r#"
listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.enabled.mechanisms=PLAIN
listener.name.plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b" user_a="b";
"#;

#[test]
fn a_listener_that_wants_sasl_is_not_judged_by_what_it_refuses() {
    let Some(broker) = start("4.4.0", SASL) else { return };
    let error = try_judge(&broker, &exchanges()).expect_err("it hears nobody who has not authenticated");
    assert!(error.to_string().contains("wants SASL authentication"), "{error}");
    stop(broker);
}

fn stop(broker: Broker) {
    let process = Path::new("/proc").join(broker.pid().to_string());
    assert!(broker.stop().expect("the broker can be stopped"), "SIGTERM was not enough");
    assert!(!process.exists(), "the broker's process is still there");
}

/// Some cases of each kind: asked, written, refused, hostile.
const SOME: &[&str] = &[
    "unknown-topic",
    "broker-all-keys",
    "topic-listed-keys",
    "alter-then-describe",
    "replaces-the-whole-set",
    "validate-only-changes-nothing",
    "delete-reverts",
    "above-maximum",
    "body-cut-by-one-byte",
    "frame-size-negative",
];

#[test]
fn broker_is_judged_and_stopped() {
    let Some(broker) = start("4.4.0", "") else { return };
    let mut cases = exchanges();
    cases.retain(|case| SOME.contains(&case.slug.as_str()));
    let outcomes = judge(&broker, &cases);
    let not_passed: Vec<String> = outcomes
        .iter()
        .filter(|outcome| !matches!(outcome.verdict, Verdict::Pass | Verdict::Unsupported | Verdict::NotRun))
        .map(|outcome| format!("{}: {:?} {:?}", outcome.case, outcome.verdict, outcome.detail))
        .collect();
    assert!(not_passed.is_empty(), "{not_passed:#?}");
    assert!(outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Pass).count() > 30);

    // A case that cannot fail proves nothing: with its expectations turned round each must fail.
    let reversed: Vec<Case> = cases.iter().filter(|case| case.slug.contains("topic")).map(reversed).collect();
    let outcomes = judge(&broker, &reversed);
    let judged = outcomes.iter().filter(|outcome| outcome.verdict != Verdict::Unsupported);
    for outcome in judged {
        let found = matches!(outcome.verdict, Verdict::Fail | Verdict::Differs);
        assert!(found && outcome.sent.is_some() && outcome.got.is_some(), "{}: {outcome:?}", outcome.case);
    }
    stop(broker);
}

/// The case with another error code due in its first step.
fn reversed(case: &Case) -> Case {
    let mut case = case.clone();
    case.steps[0].expect = Some(Expect::Error(77));
    case.steps[0].within_ms = 0;
    case.steps[0].needs = false;
    case.variants.clear();
    case
}

#[test]
#[ignore = "all cases, twice, on both releases: the matrix runs them too"]
fn every_case_twice_on_each_release() {
    let cases = exchanges();
    std::thread::scope(|scope| {
        for version in ["3.9.2", "4.4.0"] {
            let cases = &cases;
            scope.spawn(move || {
                let Some(broker) = start(version, "") else { return };
                let [first, second] = [(); 2].map(|()| {
                    let mut outcomes = judge(&broker, cases);
                    outcomes.iter_mut().for_each(|outcome| outcome.elapsed_ms = 0);
                    outcomes
                });
                stop(broker);
                for (one, other) in first.iter().zip(&second) {
                    assert_eq!(one, other, "two runs differ");
                }
                for outcome in &first {
                    assert!(!matches!(outcome.verdict, Verdict::Fail | Verdict::HarnessError), "{outcome:?}");
                }
            });
        }
    });
}

/// The case at one expectation turned into one that the same answer cannot meet, for each of its expectations.
fn broken(case: &Case) -> Vec<(String, Case)> {
    let mut broken = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        let expect = step.expect.as_ref().expect("linted");
        let mut with = |what: String, expect: Expect| {
            let mut case = case.clone();
            case.steps[index].expect = Some(expect);
            case.steps[index].within_ms = 0;
            case.steps[index].needs = false;
            case.variants.clear();
            broken.push((format!("step {index} {what}"), case));
        };
        match expect {
            Expect::Values(values) => {
                for (path, matcher) in values {
                    let mut values = values.clone();
                    values.insert(path.clone(), opposite(matcher));
                    with(path.clone(), Expect::Values(values));
                }
            }
            Expect::Closed => with("closed".into(), Expect::Silent),
            Expect::Silent => with("silent".into(), Expect::Closed),
            Expect::Error(code) => with(code.to_string(), Expect::Error(77)),
        }
    }
    broken
}

fn opposite(matcher: &Matcher) -> Matcher {
    let impossible = || serde_json::json!("impossible");
    match matcher {
        Matcher::Is(serde_json::Value::Array(_)) => Matcher::Is(serde_json::json!([impossible()])),
        Matcher::Is(_)
        | Matcher::OneOf(_)
        | Matcher::Not(_)
        | Matcher::Nonempty
        | Matcher::Among(_)
        | Matcher::AtLeast(_)
        | Matcher::Ascending(_) => Matcher::Is(impossible()),
        Matcher::All(_) => Matcher::All(Box::new(Matcher::Is(impossible()))),
        Matcher::Includes(_) => Matcher::Includes(vec![impossible()]),
        Matcher::SubsetOf(_) => Matcher::SubsetOf(Vec::new()),
        Matcher::Absent => Matcher::Nonempty,
        Matcher::Distinct => Matcher::Absent,
    }
}

#[test]
#[ignore = "minutes: each expectation of each case, broken"]
fn every_expectation_can_fail() {
    let Some(broker) = start("3.9.2", "") else { return };
    let cases = exchanges();
    let mut vacuous = Vec::new();
    for case in &cases {
        for (what, case) in broken(case) {
            // A path that one version lacks is compared at another.
            let outcomes = judge(&broker, std::slice::from_ref(&case));
            let judged = outcomes.iter().filter(|o| !matches!(o.verdict, Verdict::Unsupported | Verdict::NotRun));
            let (all, passed) = judged.fold((0, 0), |(all, passed), outcome| {
                (all + 1, passed + usize::from(matches!(outcome.verdict, Verdict::Pass | Verdict::Variant)))
            });
            if all > 0 && all == passed {
                vacuous.push(format!("{} {}: {what}", case.api, case.slug));
            }
        }
    }
    stop(broker);
    assert!(vacuous.is_empty(), "{}", vacuous.join("\n"));
}
