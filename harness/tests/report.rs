//! The reports, on rows such as a real run gives: all verdicts, a peer that did not run, hostile text, long bytes.
//!
//! `index.html` of the sample stays in cargo's `tmp` folder for a look with a browser.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kafka_conform::coverage::{Coverage, Tally};
use kafka_conform::report::{self, terminal};
use kafka_conform::results::{At, CaseInfo, Class, Level, Op, Outcome, Peer, Results, Role, Run, Status, Verdict};
use serde_json::{Value as Json, json};

const HOSTILE: &str = "<script>alert('x')</script> & \"quoted\" | `tick` \u{1b}[31mred\u{0} ]]>\u{ffff}";

fn peer(name: &str, role: Role, language: &str) -> Peer {
    let status = Status::Ran;
    Peer {
        peer: name.into(),
        role,
        language: language.into(),
        status,
        why: None,
        internal: false,
        certified: false,
        options: Vec::new(),
    }
}

fn absent(name: &str, role: Role, language: &str, why: &str) -> Peer {
    Peer { status: Status::NotRun, why: Some(why.into()), ..peer(name, role, language) }
}

/// A passing decode of `DescribeConfigsResponse`; tests say what is different.
fn pass(name: &str, version: i16, slug: &str) -> Outcome {
    Outcome {
        peer: name.into(),
        role: Role::Codec,
        message: "DescribeConfigsResponse".into(),
        api: "DescribeConfigs".into(),
        version,
        case: format!("codec/describe-configs-response/v{version}/{slug}"),
        op: Op::Decode,
        level: Level::Must,
        verdict: Verdict::Pass,
        class: None,
        severity: None,
        at: None,
        sent: None,
        want: None,
        got: None,
        detail: None,
        refused: None,
        elapsed_ms: 3,
    }
}

fn judged(outcome: Outcome, verdict: Verdict, class: Option<Class>, detail: &str) -> Outcome {
    Outcome { verdict, class, severity: class.map(Class::severity), detail: Some(detail.into()), ..outcome }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A response as it stands on the wire: throttle, one result, topic "orders", two configs.
fn response_bytes() -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 2, 0, 0, 1, 2, 7];
    bytes.extend(b"orders");
    bytes.push(3);
    for (name, value) in [("cleanup.policy", "compact"), ("retention.ms", "604800000")] {
        bytes.push(name.len() as u8 + 1);
        bytes.extend(name.as_bytes());
        bytes.push(value.len() as u8 + 1);
        bytes.extend(value.as_bytes());
        bytes.extend([0, 1, 0, 1, 2, 0, 0]);
    }
    bytes.extend([0, 0]);
    bytes
}

fn run() -> Run {
    let cases_sha256 = "3f9a6c0d51b2e4778899aabbccddeeff00112233445566778899aabbccddeeff".into();
    Run { suite: "0.1.0".into(), cases_sha256, seed: 1, level: Level::Must, partial: false }
}

fn sample() -> Results {
    let slugs = ["well-formed", "null-documentation", "unknown-tags", "truncated", "two-synonyms"];
    let mut outcomes = Vec::new();
    for name in ["reference", "kafka-clients@4.4.0", "kmsg@1.15.1", "kio@0.6.5", "kafka-node@5.0.0"] {
        for version in 0..=4 {
            for slug in slugs {
                for op in [Op::Decode, Op::Encode, Op::Recode] {
                    outcomes.push(Outcome { op, ..pass(name, version, slug) });
                }
            }
        }
        for version in 0..=1 {
            let case = format!("codec/incremental-alter-configs-request/v{version}/subtract");
            outcomes.push(Outcome {
                message: "IncrementalAlterConfigsRequest".into(),
                api: "IncrementalAlterConfigs".into(),
                case,
                ..pass(name, version, "-")
            });
        }
    }
    let mut set = |name: &str, version: i16, slug: &str, op: Op, new: &dyn Fn(Outcome) -> Outcome| {
        let place = outcomes.iter().position(|outcome| {
            (outcome.peer.as_str(), outcome.version, outcome.op) == (name, version, op)
                && outcome.case.ends_with(&format!("/{slug}"))
        });
        let place = place.unwrap_or_else(|| panic!("no {slug} v{version} of {name}"));
        outcomes[place] = new(outcomes[place].clone());
    };
    let sent = response_bytes();
    let mut got = sent.clone();
    got[9] = 0x2a;
    got.splice(60..62, []);
    let at = |path: &str, offset, length| Some(At { path: path.into(), offset, length });
    set("kmsg@1.15.1", 4, "truncated", Op::Decode, &|outcome| Outcome {
        at: at("Results[0].Configs[1].Value", Some(46), Some(10)),
        sent: Some(hex(&sent[..50])),
        want: Some(json!("refused")),
        got: Some(json!({"ThrottleTimeMs": 0, "Results": [{"ResourceName": HOSTILE}]})),
        ..judged(outcome, Verdict::Fail, Some(Class::InventedValue), HOSTILE)
    });
    set("kmsg@1.15.1", 4, "well-formed", Op::Recode, &|outcome| Outcome {
        at: at("Results[0].ResourceName", Some(9), Some(7)),
        sent: Some(hex(&sent)),
        want: Some(json!(hex(&sent))),
        got: Some(json!({ "bytes": hex(&got) })),
        ..judged(outcome, Verdict::Fail, Some(Class::WrongBytes), "The name's length is 41 where the name has 6 bytes.")
    });
    set("kmsg@1.15.1", 3, "unknown-tags", Op::Recode, &|outcome| {
        judged(outcome, Verdict::Variant, None, "unknown tags dropped")
    });
    set("kmsg@1.15.1", 2, "null-documentation", Op::Decode, &|outcome| Outcome {
        level: Level::Should,
        sent: Some(hex(&sent)),
        want: Some(json!({"Results": [{"ErrorCode": 0, "Configs": [{"Name": "retention.ms", "Value": null}]}]})),
        got: Some(json!({"Results": [{"ErrorCode": 0, "Configs": [{"Name": "retention.ms", "Value": ""}]}]})),
        ..judged(outcome, Verdict::Differs, Some(Class::WrongValue), "A null value came back as an empty one.")
    });
    set("kafka-clients@4.4.0", 4, "unknown-tags", Op::Encode, &|outcome| Outcome {
        want: Some(json!(hex(&[0x5a; 5000]))),
        got: Some(json!(hex(&[&[0x5a; 300][..], &[0x5b]].concat()))),
        ..judged(outcome, Verdict::Known, Some(Class::TooStrict), "It refuses to write a tag twice; KAFKA-00000.")
    });
    set("kio@0.6.5", 1, "well-formed", Op::Decode, &|outcome| {
        judged(outcome, Verdict::UnexpectedPass, None, "The entry for DescribeConfigs v1 matches nothing.")
    });
    set("kio@0.6.5", 2, "well-formed", Op::Decode, &|outcome| {
        judged(outcome, Verdict::Flaky, None, "pass, then no-answer")
    });
    set("kio@0.6.5", 3, "well-formed", Op::Decode, &|outcome| {
        judged(outcome, Verdict::HarnessError, None, "The adapter's answer had no id.")
    });
    set("kio@0.6.5", 4, "well-formed", Op::Decode, &|outcome| {
        judged(outcome, Verdict::NotRun, None, "The deadline of the whole run had passed.")
    });
    for outcome in &mut outcomes {
        if outcome.peer.starts_with("kafka-node") && (outcome.op == Op::Encode || outcome.version > 2) {
            *outcome = judged(outcome.clone(), Verdict::Unsupported, None, "decodes responses v0-2 only");
        }
    }
    outcomes.push(Outcome {
        role: Role::Broker,
        message: "DescribeConfigsRequest".into(),
        case: "broker/describe-configs/v4/unknown-topic".into(),
        op: Op::Exchange,
        ..pass("apache-kafka@3.9.2", 4, "-")
    });
    let mut peers: Vec<_> = [
        ("reference", "rust"),
        ("kafka-clients@4.4.0", "java"),
        ("kmsg@1.15.1", "go"),
        ("kio@0.6.5", "python"),
        ("kafka-node@5.0.0", "javascript"),
    ]
    .map(|(name, language)| peer(name, Role::Codec, language))
    .to_vec();
    peers[4].internal = true;
    peers.push(absent("tshark@4.0.17", Role::Codec, "c", "tshark is not installed: apt install tshark."));
    peers.push(peer("apache-kafka@3.9.2", Role::Broker, "java"));
    peers.push(absent("apache-kafka@4.4.0", Role::Broker, "java", "Maven is missing: install it <or> set MVN."));
    let mut results = Results { run: run(), peers, outcomes };
    results.sort();
    results
}

fn cases(results: &Results) -> BTreeMap<String, CaseInfo> {
    let info = |case: &str| CaseInfo {
        requires: format!("A correct peer does what {} says.", case.rsplit('/').next().unwrap()),
        cite: vec!["DescribeConfigsResponse.Results.Configs.Documentation".into(), "KIP-569".into()],
    };
    results.outcomes.iter().map(|outcome| (outcome.case.clone(), info(&outcome.case))).collect()
}

/// As if the codec cases left seven rules of two messages untested.
fn coverage() -> Coverage {
    let messages = [("AlterConfigsRequest", 40, 38), ("MetadataResponse", 60, 55)];
    let messages = messages
        .map(|(message, mutants, caught)| (message.to_owned(), Tally { mutants, caught }))
        .into_iter()
        .collect();
    let mutant = |number| format!("MetadataResponse v{number} Topics.<Name>: no tag section");
    Coverage { all: Tally { mutants: 100, caught: 93 }, messages, untested: (0..7).map(mutant).collect() }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("report").join(name)
}

/// Writes the reports of `results` and returns one of them.
fn written(results: &Results, folder_name: &str, file: &str) -> String {
    let out = folder(folder_name);
    report::write(&out, results, &cases(results), Some(&coverage())).unwrap();
    std::fs::read_to_string(out.join(file)).unwrap()
}

fn without_ansi(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn five_files_and_nothing_else_are_written() {
    written(&sample(), "files", "index.html");
    let mut names: Vec<_> =
        folder("files").read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["index.html", "junit.xml", "matrix.json", "matrix.md", "results.jsonl"]);
}

#[test]
fn results_jsonl_reads_back() {
    let text = written(&sample(), "jsonl", "results.jsonl");
    assert_eq!(Results::from_jsonl(&text).unwrap(), sample());
}

#[test]
fn reports_do_not_depend_on_the_order_of_rows() {
    let mut reversed = sample();
    reversed.outcomes.reverse();
    reversed.peers.reverse();
    for file in ["results.jsonl", "matrix.json", "matrix.md", "junit.xml", "index.html"] {
        assert_eq!(written(&sample(), "order-a", file), written(&reversed, "order-b", file), "{file}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named_with_advice() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = report::write(&file.path().join("out"), &sample(), &BTreeMap::new(), None).unwrap_err().to_string();
    assert!(error.contains(&file.path().join("out").display().to_string()), "{error}");
    assert!(error.contains("choose another folder"), "{error}");
}

#[test]
fn a_file_that_cannot_be_replaced_is_named_and_leaves_nothing_partial() {
    let out = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(out.path().join("matrix.md/in-the-way")).unwrap();
    let error = report::write(out.path(), &sample(), &BTreeMap::new(), None).unwrap_err().to_string();
    assert!(error.contains("matrix.md"), "{error}");
    assert!(!out.path().join(".matrix.md.partial").exists());
}

#[test]
fn a_full_disk_is_named_as_such() {
    // /dev/full takes no byte; the temporary file is a link to it.
    let out = tempfile::tempdir().unwrap();
    if !Path::new("/dev/full").exists() {
        return eprintln!("not-run: no /dev/full here");
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("/dev/full", out.path().join(".index.html.partial")).unwrap();
    let error = report::write(out.path(), &sample(), &BTreeMap::new(), None).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert!(error.to_string().contains("index.html"), "{error}");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert!(!out.path().join("index.html").exists());
}

#[test]
fn matrix_json_counts_every_verdict_by_peer_api_and_version() {
    let document: Json = serde_json::from_str(&written(&sample(), "json", "matrix.json")).unwrap();
    assert_eq!(document["suite"], "0.1.0");
    assert_eq!(document["cases_sha256"], run().cases_sha256);
    let peers = document["peers"].as_array().unwrap();
    assert_eq!(peers.len(), 8);
    let find = |name: &str| peers.iter().find(|peer| peer["peer"] == name).unwrap();
    let kmsg = find("kmsg@1.15.1");
    assert_eq!((&kmsg["role"], &kmsg["status"], &kmsg["language"]), (&json!("codec"), &json!("ran"), &json!("go")));
    // 5 cases x 3 operations, two of which fail at version 4.
    let expected = json!({"pass": 13, "fail": 2, "differs": 0, "variant": 0, "unsupported": 0, "not-run": 0, "known": 0,
        "unexpected-pass": 0, "flaky": 0, "harness-error": 0});
    assert_eq!(kmsg["apis"]["DescribeConfigs"]["4"], expected);
    assert_eq!(kmsg["apis"]["DescribeConfigs"]["3"]["variant"], 1);
    let versions: Vec<_> = kmsg["apis"]["DescribeConfigs"].as_object().unwrap().keys().collect();
    assert_eq!(versions, ["0", "1", "2", "3", "4"]);
    let tshark = find("tshark@4.0.17");
    assert_eq!(tshark["status"], "not-run");
    assert_eq!(tshark["why"], "tshark is not installed: apt install tshark.");
    assert_eq!(tshark["apis"], json!({}));
    assert_eq!(find("kafka-node@5.0.0")["internal"], true);
}

#[test]
fn versions_past_nine_stay_in_numeric_order() {
    let outcomes = [10, 9, 2].map(|version| pass("kmsg@1.15.1", version, "a")).to_vec();
    let results = Results { run: run(), peers: vec![peer("kmsg@1.15.1", Role::Codec, "go")], outcomes };
    let text = written(&results, "versions", "matrix.md");
    assert!(text.contains("| DescribeConfigs v2 | DescribeConfigs v9 | DescribeConfigs v10 |"), "{text}");
    assert!(without_ansi(&terminal::summary_at(&results, None, 80)).contains("3/3 v2,9-10"));
}

#[test]
fn the_markdown_tables_have_a_row_a_peer_with_worst_verdict_and_numbers() {
    let text = written(&sample(), "md", "matrix.md");
    let rows = |name: &str| text.lines().filter(|line| line.starts_with(&format!("| {name}"))).collect::<Vec<_>>();
    let row = |name: &str| rows(name).last().unwrap().to_string();
    // The summary, a column an API, then the table by version.
    assert_eq!(rows("kmsg@1.15.1")[0], "| kmsg@1.15.1 | go | 71/75 v0-4<br>✗ 2 fail v4 | 2/2 v0-1 |");
    assert_eq!(
        row("kmsg@1.15.1"),
        "| kmsg@1.15.1 | go | ✓ 15/15 | ✓ 15/15 | ≠ differs 14/15 | ~ variant 14/15 | ✗ fail 13/15 | ✓ 1/1 | ✓ 1/1 |"
    );
    // Encoding is not claimed: 10 of the 15 are.
    assert!(row("kafka-node@5.0.0 (internals)").contains("| ✓ 10/10 | ✓ 10/10 | ✓ 10/10 | – unsupported |"));
    assert!(row("tshark@4.0.17").contains("○ not-run") && !row("tshark@4.0.17").contains('✓'));
    assert!(text.contains("- tshark@4.0.17 (codec): tshark is not installed: apt install tshark."));
    assert!(text.contains("is a trademark of the Apache Software Foundation"));
    assert!(text.contains("not a certificate of the ASF"));
}

#[test]
fn the_markdown_lists_each_deviation_with_its_requirement_and_source() {
    let text = written(&sample(), "md-list", "matrix.md");
    let deviations = text.split_once("## Deviations").unwrap().1;
    assert_eq!(deviations.matches("\n### ").count(), 3, "kafka-clients, kio, kmsg");
    assert!(deviations.contains("- `codec/describe-configs-response/v4/truncated` (must)\n  - requires: A correct peer does what truncated says. (DescribeConfigsResponse.Results.Configs.Documentation; KIP-569)\n"));
    assert!(
        deviations
            .contains("✗ **fail** recode v4, wrong-bytes (severity 2), `Results[0].ResourceName at offset 9, 7 bytes`")
    );
    assert!(deviations.contains("K **known** encode v4, too-strict (severity 4): It refuses to write a tag twice"));
    assert!(deviations.contains("≠ **differs** decode v2, wrong-value"));
    assert!(
        deviations.contains("`kafka-conform replay codec/describe-configs-response/v4/truncated --peer kmsg@1.15.1`")
    );
}

#[test]
fn hostile_text_is_escaped_everywhere() {
    for file in ["matrix.md", "junit.xml", "index.html"] {
        let text = written(&sample(), "hostile", file);
        assert!(!text.contains("<script>alert"), "{file}");
        assert!(text.contains("alert("), "{file} must still show it");
        assert!(!text.contains(['\u{1b}', '\u{0}']), "{file}");
    }
    let xml = written(&sample(), "hostile", "junit.xml");
    assert!(!xml.contains('\u{ffff}'));
    let mut shown = sample();
    shown.peers[0].why = Some("\u{1b}[2J gone\u{7}".into());
    shown.peers[0].status = Status::NotRun;
    assert!(!terminal::summary_at(&shown, None, 80).contains("\u{1b}[2J"));
}

#[test]
fn junit_fails_what_fails_and_skips_what_was_not_judged() {
    let xml = written(&sample(), "junit", "junit.xml");
    assert_eq!(xml.matches("<testsuite ").count(), 8);
    // Two fails, one unexpected pass, one harness error.
    assert_eq!(xml.matches("<failure ").count(), 4);
    assert!(xml.contains("<failure message=\"unexpected-pass: The entry"));
    assert!(xml.contains("<failure message=\"harness-error: The adapter"));
    assert!(xml.contains("<skipped message=\"known deviation: It refuses to write a tag twice; KAFKA-00000.\"/>"));
    assert!(xml.contains("<skipped message=\"not-run: The deadline of the whole run had passed.\"/>"));
    assert!(xml.contains("<skipped message=\"not run: tshark is not installed: apt install tshark.\"/>"));
    // One known, one flaky, one not-run, two absent peers, and what kafka-node does not claim: 15 encodes, decode and
    // recode of 5 cases at 2 versions.
    assert_eq!(xml.matches("<skipped ").count(), 3 + 2 + 25 + 20);
    assert_eq!(xml.matches("<testcase ").count(), sample().outcomes.len() + 2);
}

#[test]
fn the_page_is_one_file_that_needs_no_other() {
    let page = written(&sample(), "page", "index.html");
    for outside in ["http://", "https://", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("not a certificate of the ASF"));
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn every_link_of_the_page_leads_to_an_id() {
    let page = written(&sample(), "links", "index.html");
    let ids: Vec<_> = page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let unique: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "ids are unique");
    let links: Vec<_> = page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    // A link for each of the 5 ran codecs' 7 cells and the broker's one, beside those to peers and parts.
    assert!(links.len() > 36);
    for link in links {
        assert!(ids.contains(&link), "#{link}");
    }
}

#[test]
fn a_failing_cell_opens_to_its_evidence() {
    let page = written(&sample(), "cell", "index.html");
    let cell = page.split("id=\"codec/kmsg@1.15.1/DescribeConfigs/4\"").nth(1).unwrap();
    let cell = cell.split("id=\"codec/kmsg@1.15.1/IncrementalAlterConfigs/0\"").next().unwrap();
    for part in [
        "A correct peer does what truncated says.",
        "Level must. Source: DescribeConfigsResponse.Results.Configs.Documentation; KIP-569",
        "<b>invented-value</b> <span class=\"soft\">(severity 2)</span>",
        "<code>Results[0].Configs[1].Value at offset 46, 10 bytes</code>",
        "first difference at 0x09; 2 bytes fewer than wanted",
        "kafka-conform replay codec/describe-configs-response/v4/well-formed --peer kmsg@1.15.1",
        // Row 0 of the bytes wanted: the name's length differs and is where the deviation is said to be.
        "<i>0000</i>  00 00 00 00 02 00 00 01 02 <b><u>07 6f 72 64 65 72 73</u></b>  ·········<b><u>·orders</u></b>\n",
        "<b>DescribeConfigsResponse</b>: null-documentation\u{a0}×3, truncated\u{a0}×2",
    ] {
        assert!(cell.contains(part), "{part}\n{cell}");
    }
}

#[test]
fn differing_values_are_listed_by_path() {
    let page = written(&sample(), "values", "index.html");
    assert!(page.contains("<td>Results[0].Configs[0].Value</td><td>null</td><td>&#34;&#34;</td>"), "{page}");
}

#[test]
fn long_hex_is_cut_with_a_note() {
    let page = written(&sample(), "long", "index.html");
    assert!(page.contains("5000 bytes, cut: the first 2048 are shown"));
    assert!(page.contains("<i>07f0</i>") && !page.contains("<i>0800</i>"));
}

#[test]
fn a_peer_that_did_not_run_stands_in_the_page_with_the_reason() {
    let page = written(&sample(), "absent", "index.html");
    let row = page.lines().find(|line| line.contains("tshark@4.0.17")).unwrap();
    let reason = page.lines().find(|line| line.contains("tshark is not installed")).unwrap();
    assert!(reason.contains("not run:") && !reason.contains("✓") && !row.contains("class=\"pass"));
    assert!(page.contains("Maven is missing: install it &#60;or&#62; set MVN."));
}

#[test]
fn thirty_peers_with_three_thousand_outcomes_each_stay_below_a_few_megabytes() {
    let mut results = Results { run: run(), peers: vec![], outcomes: vec![] };
    let sent = response_bytes();
    for number in 0..30 {
        let name = format!("some-client-library@1.{number}.0");
        results.peers.push(peer(&name, Role::Codec, "go"));
        for case in 0..3000_i16 {
            let (api, version) = (case % 12, case % 5);
            let mut outcome = pass(&name, version, &format!("some-requirement-number-{}", case / 3));
            outcome.api = format!("SomeApi{api}");
            outcome.message = format!("SomeApi{api}Response");
            outcome.case = format!("codec/some-api-{api}-response/v{version}/some-requirement-number-{}", case / 3);
            outcome.op = [Op::Decode, Op::Encode, Op::Recode][case as usize % 3];
            // One in ten fails, with bytes: 9,000 outcomes.
            if case % 10 == 0 {
                outcome.sent = Some(hex(&sent));
                outcome.want = Some(json!(hex(&sent)));
                outcome.got = Some(json!(hex(&sent[1..])));
                outcome = judged(outcome, Verdict::Fail, Some(Class::WrongBytes), "The first byte is missing.");
            }
            results.outcomes.push(outcome);
        }
    }
    let page = report::html::render(&report::matrix::Matrix::of(&results), &cases(&results));
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert!(page.contains("shortened to keep the page small"));
    // What does not fit is told in short, not dropped: each of the 300 fails of each peer is named in the peer's part.
    for number in 0..30 {
        let part =
            page.split(&format!("<div class=\"body\" id=\"codec/some-client-library@1.{number}.0\"")).nth(1).unwrap();
        let part = part.split("<details><summary><b>some-client-library@").next().unwrap();
        // A peer without a manifest is started by its owner's command.
        assert!(part.contains("kafka-conform certify codec --case "), "some of it in full");
        for fail in (0..3000).step_by(10) {
            assert!(part.contains(&format!("some-requirement-number-{}", fail / 3)), "{number} {fail}");
        }
    }
}

#[test]
fn the_summary_ends_with_counts_peers_and_reasons() {
    let text = without_ansi(&terminal::summary_at(&sample(), None, 80));
    let last: Vec<_> = text.lines().rev().take(4).collect();
    assert_eq!(last[0], "not run: apache-kafka@4.4.0 (broker): Maven is missing: install it <or> set MVN.");
    assert_eq!(last[1], "not run: tshark@4.0.17 (codec): tshark is not installed: apt install tshark.");
    assert_eq!(last[2], "peers: 6 ran, 2 not run");
    // 5 peers x (5 versions x 5 cases x 3 operations + 2) + 1 = 386, less the nine and the 45 below.
    assert_eq!(
        last[3],
        "2 fail, 1 unexpected-pass, 1 known, 1 harness-error, 1 flaky, 1 differs, 1 not-run, 1 variant, 332 pass, 45 unsupported"
    );
    assert!(text.contains("75/75 v0-4"), "{text}");
    assert!(text.contains("✗ 2 fail v4"), "{text}");
    assert!(text.contains("○ not run"), "{text}");
}

#[test]
fn the_summary_fits_its_width() {
    for width in [60, 80, 132] {
        let text = without_ansi(&terminal::summary_at(&sample(), None, width));
        let tables = text.lines().filter(|line| line.starts_with(['│', '┌', '├', '╞', '└']));
        for line in tables {
            assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
        }
        assert!(text.contains("Incremental"), "{text}");
    }
}

#[test]
fn a_diff_tells_new_fails_fixes_what_vanished_and_new_peers() {
    let before = sample();
    let mut after = sample();
    let find = |results: &Results, verdict| {
        results.outcomes.iter().position(|outcome| outcome.verdict == verdict).expect("the sample has it")
    };
    let fixed = find(&after, Verdict::Differs);
    after.outcomes[fixed].verdict = Verdict::Pass;
    after.outcomes[fixed].class = None;
    let reference = after.outcomes.iter().position(|outcome| outcome.peer == "reference").unwrap();
    after.outcomes[reference].verdict = Verdict::Fail;
    after.outcomes[reference].class = Some(Class::Lossy);
    let gone = after.outcomes.iter().rposition(|outcome| outcome.peer == "reference").unwrap();
    after.outcomes.remove(gone);
    after.peers.push(peer("sarama@1.61.1", Role::Codec, "go"));
    after.outcomes.push(pass("sarama@1.61.1", 4, "well-formed"));
    after.peers.retain(|peer| peer.role == Role::Codec);
    after.outcomes.retain(|outcome| outcome.role == Role::Codec);
    let diff = report::diff(&before, &after);
    assert_eq!((diff.new_fails.len(), diff.fixed.len(), diff.vanished.len(), diff.added), (1, 1, 1, 1), "{diff}");
    assert_eq!(diff.new_fails[0].key.peer, "reference");
    assert_eq!(diff.peers.len(), 3, "{diff}");
    let text = diff.to_string();
    assert!(text.contains("new peer: sarama@1.61.1 (codec)"), "{text}");
    assert!(text.contains("peer vanished: apache-kafka@3.9.2 (broker)"), "{text}");
    assert!(text.contains("v0 decode: pass -> fail (lossy)"), "{text}");
    assert!(text.contains("v2 decode: differs (wrong-value) -> pass"), "{text}");
    assert_eq!(report::diff(&before, &before).to_string(), "no change\n");
}

#[test]
fn a_diff_of_different_cases_says_so() {
    let mut other = sample();
    other.run.cases_sha256 = "00".into();
    assert!(report::diff(&sample(), &other).to_string().starts_with("note: the cases are not the same"));
}

#[test]
fn merging_joins_peers_and_refuses_what_cannot_be_compared() {
    let split = |keep: fn(Role) -> bool| {
        let mut results = sample();
        results.peers.retain(|peer| keep(peer.role));
        results.outcomes.retain(|outcome| keep(outcome.role));
        results
    };
    let codecs = split(|role| role == Role::Codec);
    let brokers = split(|role| role == Role::Broker);
    assert_eq!(report::merge(vec![brokers.clone(), codecs.clone()]), Ok(sample()));
    let twice = report::merge(vec![sample(), brokers.clone()]).unwrap_err();
    assert!(twice.contains("apache-kafka@3.9.2 (broker) is in two of the runs"), "{twice}");
    let mut other = brokers.clone();
    other.run.cases_sha256 = "00".into();
    assert!(report::merge(vec![codecs.clone(), other]).unwrap_err().contains("different cases"));
    let mut stricter = brokers;
    stricter.run.level = Level::Should;
    assert!(report::merge(vec![codecs, stricter]).unwrap_err().contains("different levels (must and should)"));
    assert!(report::merge(vec![]).is_err());
}

#[test]
fn no_peers_and_no_outcomes_give_reports_all_the_same() {
    let empty = Results { run: Run { partial: true, ..run() }, peers: vec![], outcomes: vec![] };
    assert!(written(&empty, "empty", "index.html").contains("The run was interrupted"));
    assert!(terminal::summary_at(&empty, None, 80).ends_with("0 fail, 0 pass\npeers: 0 ran, 0 not run\n"));
}

#[test]
fn coverage_stands_in_every_report_that_is_given_it() {
    let json: Json = serde_json::from_str(&written(&sample(), "coverage", "matrix.json")).unwrap();
    assert_eq!((&json["coverage"]["mutants"], &json["coverage"]["caught"]), (&json!(100), &json!(93)));
    assert_eq!(json["coverage"]["messages"]["AlterConfigsRequest"], json!({ "mutants": 40, "caught": 38 }));
    assert_eq!(json["coverage"]["untested"].as_array().unwrap().len(), 7);
    let markdown = written(&sample(), "coverage", "matrix.md");
    assert!(markdown.contains("100 mutants, 93 caught"), "{markdown}");
    assert!(markdown.contains("- MetadataResponse v6 Topics.&lt;Name&gt;: no tag section\n"), "{markdown}");
    assert!(markdown.contains("| AlterConfigsRequest | 40 | 38 |"), "{markdown}");
    let page = written(&sample(), "coverage", "index.html");
    assert!(page.contains("<b>100</b> mutants, <b>93</b> caught"));
    assert!(page.contains("<a href=\"#coverage\">") && page.contains("id=\"coverage\""));
    assert_eq!(page.matches("<li>MetadataResponse v").count(), 7);
    assert!(!page.contains("<Name>"));
    let text = without_ansi(&terminal::summary_at(&sample(), Some(&coverage()), 80));
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| *line == "coverage of the codec cases: 100 mutants, 93 caught").unwrap();
    assert_eq!(lines[at - 1], "and 2 more untested: see the report");
    assert_eq!(lines[at - 2], "untested: MetadataResponse v4 Topics.<Name>: no tag section");
    // The counts come next, and the rest as ever.
    assert!(lines[at + 1].starts_with("2 fail,") && lines[at + 2].starts_with("peers: "), "{text}");
    let without = folder("no-coverage");
    report::write(&without, &sample(), &cases(&sample()), None).unwrap();
    for file in ["matrix.json", "matrix.md", "index.html"] {
        assert!(!std::fs::read_to_string(without.join(file)).unwrap().contains("overage"), "{file}");
    }
}

#[test]
fn a_killed_run_is_read_as_far_as_it_went() {
    let whole = Results { run: Run { partial: false, ..run() }, ..sample() };
    let text = whole.to_jsonl().replacen("\u{1b}", "\\u001b", usize::MAX);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len() - 1];
    let cut_to = |length: usize| &text.as_bytes()[..text.len() - 1 - last.len() + length];
    // Wherever the last row is cut, inside a character too, the rows before it are there.
    for length in 1..last.len() {
        let results = Results::from_jsonl(cut_to(length)).unwrap_or_else(|error| panic!("{length}: {error}"));
        assert!(results.run.partial, "{length}");
        assert_eq!(results.outcomes, whole.outcomes[..whole.outcomes.len() - 1]);
    }
    // Cut between rows or before the line end, no row is lost; that more are missing is said by the first row.
    assert_eq!(Results::from_jsonl(cut_to(last.len())), Ok(whole.clone()));
    assert_eq!(Results::from_jsonl(cut_to(0)).unwrap().outcomes.len(), whole.outcomes.len() - 1);
    // A broken row that others follow is no cut.
    let broken = text.replacen(lines[9], &lines[9][..20], 1);
    assert!(Results::from_jsonl(&broken).unwrap_err().starts_with("line 10: "));
    assert!(Results::from_jsonl(&text.as_bytes()[..30]).unwrap_err().contains("is this a results.jsonl?"));
}

#[test]
fn one_case_is_judged_once() {
    let text = sample().to_jsonl();
    let outcome = text.lines().find(|line| line.contains("\"outcome\"")).unwrap();
    let again = Results::from_jsonl(format!("{text}{outcome}\n")).unwrap_err();
    assert!(again.contains("a second time"), "{again}");
    let peer = text.lines().nth(1).unwrap();
    assert!(Results::from_jsonl(format!("{text}{peer}\n")).unwrap_err().contains("a second time"));
    assert!(Results::from_jsonl(format!("{text}{text}")).unwrap_err().contains("report merge"));
    // A killed run has no row of the peer that was being judged.
    let mut killed = sample();
    killed.run.partial = true;
    killed.peers.retain(|peer| peer.peer != "reference");
    let mut codecs = sample();
    codecs.peers.retain(|peer| peer.peer == "reference");
    codecs.outcomes.retain(|outcome| outcome.peer == "reference");
    for runs in [vec![killed.clone(), codecs.clone()], vec![codecs, killed]] {
        let refused = report::merge(runs).unwrap_err();
        assert!(refused.contains("reference (codec) is in two of the runs"), "{refused}");
    }
}

#[test]
fn a_new_run_takes_the_pages_of_the_earlier_one_away() {
    let out = tempfile::tempdir().unwrap();
    report::write(out.path(), &sample(), &cases(&sample()), None).unwrap();
    std::fs::write(out.path().join("notes.txt"), "mine").unwrap();
    drop(kafka_conform::matrix::open_results(out.path(), &Run { partial: true, ..run() }).unwrap());
    let mut names: Vec<_> =
        out.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["notes.txt", "results.jsonl"]);
    let text = std::fs::read_to_string(out.path().join("results.jsonl")).unwrap();
    assert_eq!(Results::from_jsonl(&text).unwrap().outcomes, []);
}

#[test]
fn a_report_that_cannot_be_written_leaves_the_earlier_one_whole() {
    let out = tempfile::tempdir().unwrap();
    report::write(out.path(), &sample(), &cases(&sample()), None).unwrap();
    let before = |name: &str| std::fs::read(out.path().join(name)).unwrap();
    let earlier = ["results.jsonl", "matrix.json", "matrix.md", "junit.xml"].map(before);
    std::fs::create_dir(out.path().join(".index.html.partial")).unwrap();
    let mut other = sample();
    other.outcomes.truncate(1);
    report::write(out.path(), &other, &cases(&other), None).unwrap_err();
    assert_eq!(["results.jsonl", "matrix.json", "matrix.md", "junit.xml"].map(before), earlier);
}

#[test]
fn no_text_of_a_peer_steers_a_terminal_or_a_page() {
    const STEERING: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}1A\u{7f}\r\u{202e}";
    let mut hostile = sample();
    for (number, peer) in hostile.peers.iter_mut().enumerate() {
        peer.peer = format!("{STEERING}{number}@{STEERING}");
        peer.language = STEERING.into();
        peer.why = Some(STEERING.into());
    }
    hostile.peers[0].status = Status::NotRun;
    for (number, outcome) in hostile.outcomes.iter_mut().enumerate() {
        outcome.peer = hostile.peers[1 + number % 3].peer.clone();
        outcome.role = hostile.peers[1 + number % 3].role;
        outcome.api = STEERING.into();
        outcome.case = format!("{STEERING}{number}");
        outcome.detail = Some(STEERING.into());
    }
    hostile.outcomes[0].verdict = Verdict::Fail;
    let steers =
        |text: &str| text.contains(['\u{7}', '\u{9b}', '\u{7f}', '\r', '\u{202e}']) || text.contains("\u{1b}]");
    // Colours are ours: what is left after taking them out must be harmless, and they are nothing but colours.
    let summary = terminal::summary_at(&hostile, Some(&coverage()), 200);
    assert!(!steers(&summary) && !summary.contains("\u{1b}[2J"), "{summary:?}");
    assert!(!without_ansi(&summary).contains('\u{1b}'));
    for name in ["index.html", "matrix.md"] {
        let page = written(&hostile, "steering", name);
        let line = page.lines().find(|line| steers(line) || line.contains('\u{1b}'));
        assert_eq!(line, None, "{name}");
    }
    for (before, after) in [(&sample(), &hostile), (&hostile, &sample())] {
        let diff = report::diff(before, after).to_string();
        assert!(!steers(&diff) && !diff.contains('\u{1b}'), "{diff:?}");
    }
    let mut changed = hostile.clone();
    changed.outcomes.iter_mut().for_each(|outcome| outcome.verdict = Verdict::Flaky);
    let diff = report::diff(&hostile, &changed).to_string();
    assert!(diff.lines().count() > 100 && !steers(&diff) && !diff.contains('\u{1b}'), "{diff:?}");
}

#[test]
fn a_certified_peer_is_replayed_by_its_own_command_whatever_it_calls_itself() {
    let bad = Outcome { verdict: Verdict::Fail, peer: "kmsg@1.15.1".into(), ..pass("kmsg@1.15.1", 0, "case") };
    let judged = |certified| {
        let peer = Peer { certified, ..peer("kmsg@1.15.1", Role::Codec, "go") };
        Results { run: run(), peers: vec![peer], outcomes: vec![bad.clone()] }
    };
    let ours = format!("kafka-conform replay {} --peer kmsg@1.15.1", bad.case);
    let theirs = format!("kafka-conform certify codec --case {} -- COMMAND", bad.case);
    for (certified, due, other) in [(false, &ours, &theirs), (true, &theirs, &ours)] {
        let results = judged(certified);
        let mut texts: Vec<String> =
            ["index.html", "matrix.md", "junit.xml"].map(|name| written(&results, "replayed", name)).to_vec();
        texts.push(terminal::summary_at(&results, None, 200));
        for text in texts {
            let text = text.replace("&gt;", ">");
            assert!(text.contains(due.as_str()) && !text.contains(other.as_str()), "{certified}: {text}");
        }
    }
}

#[test]
fn a_certified_peer_is_replayed_with_the_options_that_judging_depends_on() {
    for (role, due) in [(Role::Broker, "certify broker HOST:PORT --case"), (Role::Client, "certify client --case")] {
        let options = vec!["--level should".to_owned(), "--allow-writes".to_owned()];
        let peer = Peer { certified: true, options, ..peer("own@1", role, "unknown") };
        let bad = Outcome { verdict: Verdict::Fail, role, ..pass("own@1", 0, "case") };
        let results = Results { run: run(), peers: vec![peer], outcomes: vec![bad.clone()] };
        let text = terminal::summary_at(&results, None, 200);
        let due = format!("kafka-conform {due} {} --level should --allow-writes", bad.case);
        assert!(text.contains(&due), "{due}: {text}");
        // And after it was written and read again.
        let row = serde_json::to_string(&results.peers[0]).expect("it is JSON");
        assert_eq!(serde_json::from_str::<Peer>(&row).expect("it is a peer"), results.peers[0]);
    }
}

#[test]
fn any_elapsed_time_gives_a_report() {
    // A thousand of them and more are past what a duration holds.
    let outcome = |number| Outcome { elapsed_ms: u64::MAX, ..pass("reference", 0, &format!("case-{number}")) };
    let outcomes = (0..2_000).map(outcome).collect();
    let long = Results { run: run(), peers: vec![peer("reference", Role::Codec, "rust")], outcomes };
    assert_eq!(written(&long, "elapsed", "junit.xml").matches("<testcase ").count(), 2_000);
}

#[test]
fn many_fails_with_one_reason_are_summed_up() {
    let closed = "the broker's node id is not known: Metadata version 13: the connection is closed";
    let fail = |peer: &str, number: usize, detail: &str| {
        let outcome = pass(peer, 4, &format!("case-{number}"));
        judged(outcome, Verdict::Fail, Some(Class::Closed), detail)
    };
    let mut results = sample();
    let peers = ["cut@1", "other@1"];
    results.peers = peers.map(|name| peer(name, Role::Codec, "c")).into();
    results.outcomes = (0..12).map(|number| fail("cut@1", number, closed)).collect();
    // Once more of a case that is counted, two that share another reason, and one of another peer.
    results.outcomes.push(Outcome { op: Op::Recode, ..fail("cut@1", 3, closed) });
    results.outcomes.extend([20, 21].map(|number| fail("cut@1", number, "another reason")));
    results.outcomes.push(fail("other@1", 0, closed));
    results
        .outcomes
        .extend((30..33).map(|number| fail("other@1", number, &format!("{HOSTILE}\n{}", "x".repeat(9_000)))));
    let text = terminal::summary(&results, None);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(" cases: ")).collect();
    assert_eq!(lines[0], format!("fail: cut@1: 12 cases: closed: {closed}"));
    assert!(lines[1].starts_with("fail: other@1: 3 cases: closed: <script>") && lines.len() == 2, "{lines:?}");
    assert!(lines[1].len() < 600 && lines[1].ends_with("bytes in all)"), "{}", lines[1]);
    // The list of outcomes is there all the same.
    assert!(text.contains("fail: cut@1 codec/describe-configs-response/v4/case-0: "));
    let page = written(&results, "causes", "index.html");
    assert!(
        page.contains("<li>12 cases: closed: the broker&#39;s node id is not known: Metadata version 13: "),
        "{page}"
    );
    assert_eq!(page.matches(" cases: closed: ").count(), 2);
    assert!(!page.contains("<script>alert"));
}
