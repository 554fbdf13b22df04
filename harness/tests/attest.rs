//! `vectors export` and `vectors attest`: what is handed out, and whether the authors of valid vectors confirm them.
//! Real codecs are asked where Java, Maven and Go are there.

use indicatif::{MultiProgress, ProgressDrawTarget};
use kafka_conform::attest::{Attestation, Change, Counts, Standing, attest, rewrite};
use kafka_conform::cases::Cases;
use kafka_conform::definitions::bundled;
use kafka_conform::vector::{Expected, Files, Vector, Vectors};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

static CASES: LazyLock<Cases> = LazyLock::new(|| Cases::bundled(bundled()).expect("the bundled cases lint"));

fn command(arguments: &[&str]) -> Command {
    let binary = std::env::var_os("CARGO_BIN_EXE_kafka-conform").expect("cargo says where the binary is");
    let mut command = Command::new(binary);
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it prints text")
}

/// One test at a time builds codecs and asks them.
static BUILDING: Mutex<()> = Mutex::new(());

/// Whether codecs of both families can be built here.
fn codecs_are_here() -> bool {
    let there = |tool: &str, argument: &str| {
        let mut command = Command::new(tool);
        command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let here = there("java", "-version") && there("mvn", "-version") && there("go", "version");
    if !here {
        println!("not-run: Java 17, Maven and Go are needed to ask authors");
    }
    here
}

fn hidden() -> MultiProgress {
    MultiProgress::with_draw_target(ProgressDrawTarget::hidden())
}

#[test]
fn export_has_a_line_for_every_vector_in_the_order_of_their_ids() {
    let output = run(&["vectors", "export", "--format", "jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let lines: Vec<Json> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted());
    assert_eq!(ids, CASES.vectors.cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>());
    let known: BTreeSet<&str> = ids.iter().copied().collect();
    for (line, case) in lines.iter().zip(&CASES.vectors.cases) {
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        let want = [
            "id", "message", "api_key", "version", "part", "rule", "result", "level", "outcomes", "requires", "cite",
            "bytes", "value", "values", "source", "parent", "mutation",
        ];
        assert_eq!(keys, want, "{line}");
        assert_eq!(line["bytes"], case.bytes.as_deref().map_or(Json::Null, |bytes| codec::hex(bytes).into()));
        assert_eq!(line["value"], case.value.clone().unwrap_or_default());
        assert!(line["parent"].as_str().is_none_or(|parent| known.contains(parent)), "{line}");
    }
    let null = lines.iter().find(|line| line["id"] == "codec/describe-configs-response/v4/null-documentation");
    let null = null.expect("a published case");
    assert_eq!((&null["result"], &null["version"], &null["api_key"]), (&json!("valid"), &json!(4), &json!(32)));
}

#[test]
fn export_goes_to_a_file_or_says_that_it_cannot_and_does_not_mind_a_reader_that_stops() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vectors.jsonl");
    let output = run(&["vectors", "export", "--out", file.to_str().unwrap()]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), CASES.vectors.cases.len());
    let output = run(&["vectors", "export", "--out", folder.path().join("none/vectors.jsonl").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("cannot be written"), "{output:?}");
    let mut child = command(&["vectors", "export"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn attest_without_tools_says_what_to_install() {
    let empty = tempfile::tempdir().unwrap();
    let arguments = ["vectors", "attest", "--check", "--case", "codec/describe-configs-response/v4/null-documentation"];
    let output = command(&arguments).env("PATH", empty.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.contains("go is not there: install Go") && said.contains("java is not there: install Java"), "{said}");
    assert_eq!(said.lines().last(), Some("1 valid, 0 by >= 2 families, 0 disagree, 1 not re-run"));
}

#[test]
fn attest_selects_valid_cases_by_name_and_glob() {
    for (case, code) in
        [("codec/nothing/v0/such", 2), ("codec/nothing/*", 4), ("codec/*truncated*", 4), ("broker/*", 4)]
    {
        let output = run(&["vectors", "attest", "--check", "--case", case]);
        assert_eq!(output.status.code(), Some(code), "{case}: {output:?}");
    }
}

#[test]
fn real_authors_confirm_bodies_frames_headers_and_tags() {
    if !codecs_are_here() {
        return;
    }
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let cases = ["codec/request-header/*", "codec/describe-configs-re*/v4/*", "codec/create-topics-response/v5/*"];
    let output = run(&[&["vectors", "attest", "--check"][..], &cases.map(|case| ["--case", case]).concat()].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let last = text(&output.stdout).lines().last().unwrap();
    let valid: usize = last.split(' ').next().unwrap().parse().unwrap();
    assert!(valid > 20, "{last}");
    assert_eq!(last, format!("{valid} valid, {valid} by >= 2 families, 0 disagree, 0 not re-run"));
}

#[test]
fn an_author_of_other_bytes_or_another_value_is_found_out() {
    if !codecs_are_here() {
        return;
    }
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut vectors = Cases::bundled(bundled()).unwrap().vectors;
    let id = "codec/describe-configs-response/v4/null-documentation";
    let case = vectors.cases.iter_mut().find(|case| case.id == id).unwrap();
    // The throttle time comes first: bytes and value no longer agree.
    case.bytes.as_mut().unwrap()[3] ^= 1;
    let selected = BTreeSet::from([id.to_owned()]);
    let found = attest(bundled(), &vectors, &selected, false, &hidden()).unwrap();
    assert_eq!(found.counts(), Counts { valid: 1, two_families: 0, disagree: 1, not_rerun: 0 });
    let problems = found.problems();
    assert!(problems.iter().any(|line| line.contains("another value at ThrottleTimeMs")), "{problems:?}");
}

/// An attestation of one case, whose authors stand so.
fn attested(id: &str, standings: &[(&str, Standing)]) -> Attestation<'static> {
    let case = CASES.vectors.cases.iter().find(|case| case.id == id).expect("a case");
    let authors: BTreeMap<String, Standing> =
        standings.iter().map(|(author, standing)| ((*author).to_owned(), standing.clone())).collect();
    Attestation {
        vectors: vec![kafka_conform::attest::Attested { case, authors }],
        not_run: BTreeMap::new(),
        sources: &CASES.vectors.sources,
    }
}

/// A valid case that these authors, and nobody else, are named for.
fn case_of(authors: &[&str]) -> &'static str {
    let mut found = CASES.vectors.cases.iter().filter(|case| case.rule.result == Expected::Valid);
    &found.find(|case| case.source == authors).expect("a case of these authors").id
}

#[test]
fn counts_are_honest_about_families_and_about_who_was_not_asked() {
    let (java, go) = ("kafka-clients@3.9.2", "kmsg@1.15.1");
    let id = case_of(&[java, go]);
    let not_run = || Standing::NotRun("go is not there".to_owned());
    let check = |java_stands: Standing, go_stands: Standing, two_families, disagree, not_rerun| {
        let found = attested(id, &[(java, java_stands), (go, go_stands)]);
        assert_eq!(found.counts(), Counts { valid: 1, two_families, disagree, not_rerun });
        assert_eq!(found.problems().is_empty(), two_families == 1 && disagree + not_rerun == 0);
    };
    let other = || Standing::Disagrees("encode: other bytes".to_owned());
    check(Standing::Confirmed(None), Standing::Confirmed(None), 1, 0, 0);
    check(Standing::Confirmed(None), Standing::Recorded, 1, 0, 0);
    check(Standing::Confirmed(None), not_run(), 0, 0, 1);
    check(not_run(), not_run(), 0, 0, 1);
    check(Standing::Recorded, Standing::Recorded, 1, 0, 1);
    check(Standing::Confirmed(None), other(), 0, 1, 0);
}

#[test]
fn changes_add_who_confirms_and_take_out_who_disagrees_where_two_families_are_left() {
    let (java, newer, go) = ("kafka-clients@3.9.2", "kafka-clients@4.4.0", "kmsg@1.15.1");
    let single = |case: &&Vector| {
        let slug = case.id.rsplit('/').next();
        let same = |other: &&Vector| other.spec.name == case.spec.name && other.id.rsplit('/').next() == slug;
        case.source == [java, newer, go] && CASES.vectors.cases.iter().filter(same).count() == 1
    };
    let case = CASES.vectors.cases.iter().find(single).expect("a case of one version");
    let other = || Standing::Disagrees("decode: another value".to_owned());
    let confirmed = || Standing::Confirmed(None);
    let found = attested(&case.id, &[(java, other()), (newer, confirmed()), (go, confirmed())]);
    let [change] = &found.changes(&CASES.vectors)[..] else { panic!("one change") };
    assert_eq!((change.source(), change.sound), (vec![newer.to_owned(), go.to_owned()], true));
    let found = attested(&case.id, &[(java, confirmed()), (newer, confirmed()), (go, other())]);
    assert!(!found.changes(&CASES.vectors)[0].sound);
    let extra = "kafka-clients@9.9.9";
    let found =
        attested(&case.id, &[(java, confirmed()), (newer, confirmed()), (go, confirmed()), (extra, confirmed())]);
    assert_eq!(found.changes(&CASES.vectors)[0].add, [extra]);
}

#[test]
fn rewriting_changes_the_source_and_not_a_character_more() {
    let text = r#"{
  "message": "M",
  "cases": [
    {
      "id": "one",
      "value": {"id": "two", "source": ["a@1"]},
      "source": ["a@1", "c@1"]
    },
    {
      "id": "two",
      "source": ["a@1", "c@1"],
      "mutation":   "spaces stay"
    }
  ]
}
"#;
    let change = |case: &str, was: &[&str]| Change {
        file: "m.json".to_owned(),
        case: case.to_owned(),
        was: was.iter().map(|&author| author.to_owned()).collect(),
        add: vec!["b@1".to_owned()],
        remove: vec!["c@1".to_owned()],
        sound: true,
    };
    let new = rewrite(text, &[change("two", &["a@1", "c@1"])]).unwrap();
    assert_eq!(new, text.replace(r#"["a@1", "c@1"],"#, r#"["a@1", "b@1"],"#));
    assert!(rewrite(text, &[change("two", &["a@1"])]).is_err(), "the file changed meanwhile");
    assert!(rewrite(text, &[change("three", &["a@1", "c@1"])]).is_err());
    let folded = text.replace(r#"["a@1", "c@1"],"#, "[\n        \"a@1\", \"c@1\"\n      ],");
    assert!(rewrite(&folded, &[change("two", &["a@1", "c@1"])]).is_err(), "written otherwise");
}

/// A checkout of its own with one file of cases, beside the adapters of ours and what is built of them.
fn checkout_of(file: &str) -> tempfile::TempDir {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("adapters"), folder.path().join("adapters")).unwrap();
    std::os::unix::fs::symlink(root.join("target"), folder.path().join("target")).unwrap();
    std::fs::create_dir_all(folder.path().join("vectors/codec")).unwrap();
    std::fs::copy(root.join("vectors/codec").join(file), folder.path().join("vectors/codec").join(file)).unwrap();
    folder
}

/// A find by hand from the definition: two results of IncrementalAlterConfigs v1, of which the second claims a message of 125 bytes
/// and has five. It is the input of the target `decode`: a response, key 44, version 1.
const FIND: &str = "01 002c 01 00000000 03 0000 02 61 02 02 62 00 0007 7e 6c6f737400";

#[test]
fn a_find_becomes_a_case_that_lints_and_goes_to_its_file_where_another_codec_refuses_as_well() {
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let built = run(&["peers", "build", "kafka-protocol"]);
    assert_eq!(built.status.code(), Some(0), "{built:?}");
    let checkout = checkout_of("incremental-alter-configs-response.json");
    std::fs::write(checkout.path().join("find"), codec::parse_hex(FIND).unwrap()).unwrap();
    let promote = |options: &[&str]| {
        let arguments = ["vectors", "promote", "find"].iter().chain(options).copied().collect::<Vec<_>>();
        command(&arguments).current_dir(checkout.path()).output().unwrap()
    };
    let shown = promote(&["--id", "fuzz-message-past-end"]);
    assert_eq!(shown.status.code(), Some(0), "{shown:?}");
    assert!(text(&shown.stderr).contains("kafka-protocol@0.18.0: decode: pass"), "{shown:?}");
    let case: Json = serde_json::from_str(text(&shown.stdout)).unwrap();
    assert_eq!((&case["id"], &case["rule"]), (&json!("fuzz-message-past-end"), &json!("truncated")));
    assert_eq!(
        (&case["versions"], &case["cite"]),
        (&json!("1"), &json!(["IncrementalAlterConfigsResponse.Responses.ErrorMessage"]))
    );
    // One response is left of two: no throttling, a count, error 0, the claim of 125 bytes, and what the count needs.
    let bytes = codec::parse_hex(case["bytes"]["1"].as_str().unwrap()).unwrap();
    assert!(bytes.starts_with(&[0, 0, 0, 0, 2, 0, 0, 0x7e]) && bytes.len() < 14, "{case}");
    assert!(case["mutation"].as_str().unwrap().ends_with("(found by fuzzing)"), "{case}");

    let path = checkout.path().join("vectors/codec/incremental-alter-configs-response.json");
    let before = std::fs::read_to_string(&path).unwrap();
    let written = promote(&["--write"]);
    assert_eq!((written.status.code(), text(&written.stdout)), (Some(0), ""), "{written:?}");
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(before.trim_end().trim_end_matches(['}', ']', '\n', ' '])), "what was there stays");
    let files = [("incremental-alter-configs-response.json", after.as_str())];
    let rules = kafka_conform::bundled::text("rules.json");
    let sources = kafka_conform::bundled::text("sources.json");
    let loaded = Vectors::load(bundled(), rules, sources, &Files::read(&files)).expect("what is written lints");
    assert!(loaded.cases.iter().any(|case| case.bytes.as_deref() == Some(&bytes)));
}

#[test]
fn what_is_published_already_or_falls_under_several_rules_is_no_case() {
    let folder = tempfile::tempdir().unwrap();
    let promote = |hex: &str| {
        std::fs::write(folder.path().join("find"), codec::parse_hex(hex).unwrap()).unwrap();
        let arguments = ["vectors", "promote", "find", "--message", "DescribeConfigsRequest", "--version", "1"];
        let output = command(&arguments).current_dir(folder.path()).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""), "{output:?}");
        text(&output.stderr).to_owned()
    };
    let no_resources = CASES.vectors.cases.iter().find(|case| {
        &*case.spec.name == "DescribeConfigsRequest"
            && case.version.0 == 1
            && case.value.is_some()
            && case.rule.result == Expected::Valid
    });
    let published = no_resources.expect("there are valid cases");
    let said = promote(&codec::hex(published.bytes.as_deref().unwrap()));
    assert!(said.contains(&format!("{} has these very bytes", published.id)), "{said}");
    // A flag of 2, and a byte too many.
    let said = promote("00000000 02 00");
    assert!(said.contains("a case is about one rule; these fall under bool-other, left-over"), "{said}");
}
