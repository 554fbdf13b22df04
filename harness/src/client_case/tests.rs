use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use codec::parse_hex;
use serde_json::json;

use super::*;
use crate::adapter::Answer;
use crate::definitions;
use crate::results::{Class, Outcome, Verdict};

fn lint(case: Json) -> Vec<String> {
    let text = json!({ "api": "DescribeConfigs", "cases": [case] }).to_string();
    match load(&[("some.json", &text)], definitions::bundled()) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(LintError::to_string).collect(),
    }
}

fn good() -> Json {
    let config = json!({ "Name": "k", "Value": "v", "ReadOnly": true, "ConfigSource": 1, "Synonyms": [] });
    json!({
        "id": "some-case", "versions": "1", "level": "must", "cite": ["DescribeConfigsResponse.Results"],
        "requires": "A client does what it should do.",
        "drive": { "resources": [{ "ResourceType": 2, "ResourceName": "t" }] },
        "broker": { "replies": [{ "value": { "Results": [
            { "ErrorCode": 0, "ResourceType": 2, "ResourceName": "t", "Configs": [config] },
        ] } }] },
    })
}

fn changed(pointer: &str, value: Json) -> Json {
    let mut case = good();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match case.pointer_mut(parent).unwrap() {
        Json::Array(elements) => elements[key.parse::<usize>().unwrap()] = value,
        parent => parent[key] = value,
    }
    case
}

/// Name and text of each case file.
fn files() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/client");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let read = |entry: std::fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), std::fs::read_to_string(entry.path()).unwrap())
    };
    entries.map(read).collect()
}

fn bundled() -> Vec<ClientCase> {
    let files = files();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    load(&files, definitions::bundled()).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(LintError::to_string).collect::<Vec<_>>().join("\n"));
    })
}

#[test]
fn bundled_files_follow_their_schema() {
    let schema = serde_json::from_str(include_str!("../../../vectors/client.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, text) in files() {
        let file: Json = serde_json::from_str(&text).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&file).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {}", errors.join("\n"));
    }
    assert!(!validator.is_valid(&json!({ "api": "DescribeConfigs", "cases": [{ "id": "x" }] })));
    assert!(!validator.is_valid(&json!({ "api": "DescribeConfigs", "cases": [changed("/drive/opp", json!("x"))] })));
}

#[test]
fn every_version_of_the_config_apis_has_cases() {
    let cases = bundled();
    for (_, api) in OPERATIONS {
        let spec = definitions::bundled().api(api, MessageKind::Request).unwrap();
        for version in spec.valid_versions.iter() {
            let count = cases.iter().filter(|case| case.api == api && case.versions.contains(version)).count();
            assert!(count >= 15, "{api} {version}: {count} cases");
        }
    }
}

#[test]
fn errors_say_file_case_place_and_fault() {
    assert_eq!(lint(good()), Vec::<String>::new());
    let errors = lint(changed("/expect", json!({ "reported": { "Results[0].ErrorCod": 3 } })));
    let want = "some.json: some-case: expect.reported: path Results[0].ErrorCod: DescribeConfigsResponse has no field \
                ErrorCod there";
    assert_eq!(errors, [want]);
    let errors = lint(changed("/broker/replies/0", json!({ "value": { "Results": [{ "Errorcode": 0 }] } })));
    assert!(
        errors[0].starts_with("some.json: some-case: broker.replies[0].value: version 1: Results[0]"),
        "{errors:?}"
    );
    let errors = load(&[("some.json", "{\"api\":")], definitions::bundled()).unwrap_err();
    assert!(errors[0].to_string().starts_with("some.json: EOF while parsing"), "{}", errors[0]);
    let two = json!({ "api": "DescribeConfigs", "cases": [good(), good()] }).to_string();
    let errors = load(&[("some.json", &two)], definitions::bundled()).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "some.json: some-case: id: there is another case of DescribeConfigs with this id"
    );
}

#[test]
fn each_fault_of_a_case_is_found() {
    for (pointer, value, what) in [
        ("/id", json!("Some Case"), "an id is"),
        ("/versions", json!("0-9"), "DescribeConfigs has versions 0-4"),
        ("/versions", json!("0+"), "DescribeConfigs has versions 0-4"),
        ("/versions", json!("a"), "not a version range"),
        ("/level", json!("may"), "unknown variant `may`"),
        ("/cite", json!([]), "cites a source"),
        ("/cite", json!(["KAFKA-1"]), "one that binds"),
        ("/cite", json!(["KIP-1", "somewhere"]), "not a field of a definition"),
        ("/requires", json!("It works"), "one sentence"),
        ("/retries", json!(1), "unknown field `retries`"),
        ("/drive/op", json!("describe"), "drive.op: an operation is one of describe_configs"),
        ("/drive/key", json!("k"), "drive: unknown field `key`"),
        ("/drive/resources", json!([]), "at least one resource"),
        ("/drive/resources", json!([{ "ResourceTyp": 2 }]), "drive.resources: version 1"),
        ("/drive/timeout_ms", json!(0), "1 to 60000"),
        ("/broker/caps", json!({ "Describe": "0" }), "broker.caps.Describe: there is no definition"),
        ("/broker/caps", json!({ "Metadata": "x" }), "broker.caps.Metadata"),
        ("/broker/replies", json!([]), "none answers DescribeConfigs"),
        ("/broker/replies/0/api", json!("Describe"), "broker.replies[0]: there is no definition"),
        ("/broker/replies/0/hex", json!("00"), "exclude each other"),
        ("/broker/replies/0", json!({ "hex": "0" }), "broker.replies[0]: an odd number"),
        ("/broker/replies/0/split", json!(0), "at least 1"),
        ("/broker/replies/0/later", json!(0), "broker.replies[0]: unknown field `later`"),
        ("/broker/replies/0/delay_ms", json!(70_000), "at most 60000 ms"),
        ("/expect", json!({ "outcome": "open" }), "expect: "),
        ("/expect", json!({ "outcome": [] }), "something must be due"),
        ("/expect", json!({ "sent": { "Resources": { "is": 1 } } }), "unknown matcher"),
        ("/expect", json!({ "sent": { "Results": 1 } }), "has no field Results"),
        ("/expect", json!({ "sent_none": ["Describe"] }), "no definition of \"Describe\""),
    ] {
        let errors = lint(changed(pointer, value.clone()));
        assert!(errors.iter().any(|error| error.contains(what)), "{pointer} {value}: {errors:?}");
    }
    let mut case = changed("/broker/caps", json!({ "DescribeConfigs": "2-4" }));
    case["versions"] = "1-2".into();
    assert!(lint(case)[0].contains("has one version"));
}

/// A client that was made for the purpose: asks for the versions, sends a request written by hand, and shows this.
struct Fake<'a> {
    request: &'a str,
    shows: Answer,
}

const APIVERSIONS: &str = "0000000a 0012 0000 00000001 0000";
/// DescribeConfigs v1 of topic "t", all keys, no synonyms.
const DESCRIBE: &str = "00000017 0020 0001 00000002 0000 00000001 02 0001 74 ffffffff 00";

fn shows(configs: Json) -> Answer {
    let result = json!({ "ErrorCode": 0, "ResourceType": 2, "ResourceName": "t", "Configs": configs });
    Answer::Line(json!({ "id": 1, "value": { "Results": [result] } }))
}

fn right() -> Answer {
    shows(json!([{ "Name": "k", "Value": "v", "ReadOnly": true }]))
}

fn exchange(bootstrap: &str, request: &str) {
    let mut socket = TcpStream::connect(bootstrap).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.write_all(&parse_hex(request).unwrap()).unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    // One answer, or the end of the connection.
    let mut size = [0; 4];
    if socket.read_exact(&mut size).is_ok() {
        let _ = socket.read_exact(&mut vec![0; u32::from_be_bytes(size) as usize]);
    }
}

fn judged(case: Json, fake: Fake<'_>) -> Outcome {
    let text = json!({ "api": "DescribeConfigs", "cases": [case] }).to_string();
    let protocol = definitions::bundled();
    let case = load(&[("some.json", &text)], protocol).unwrap().remove(0);
    let operations = BTreeMap::from([("describe_configs".to_owned(), json!({ "keys": true }))]);
    let version = case.versions.lowest().unwrap();
    // Met as one that has every version.
    let client = Client::meet(protocol, "fake@1", &operations, &mut |_, _| right()).unwrap();
    run(protocol, &case, version, &client, &mut |message, _| {
        let bootstrap = message["bootstrap"].as_str().unwrap();
        exchange(bootstrap, APIVERSIONS);
        if !fake.request.is_empty() {
            exchange(bootstrap, fake.request);
        }
        fake.shows.clone()
    })
}

#[track_caller]
fn check(case: Json, request: &str, shows: Answer, class: Option<Class>) -> Outcome {
    let outcome = judged(case, Fake { request, shows });
    assert_eq!(outcome.class, class, "{outcome:?}");
    assert_eq!(outcome.verdict, if class.is_some() { Verdict::Fail } else { Verdict::Pass }, "{outcome:?}");
    outcome
}

fn line(json: Json) -> Answer {
    Answer::Line(json)
}

#[test]
fn a_client_that_shows_what_came_passes() {
    check(good(), DESCRIBE, right(), None);
    // Fields that are not shown are no fault, nor are those that this version lacks.
    check(good(), DESCRIBE, shows(json!([{ "Name": "k", "Value": "v", "IsDefault": true, "ConfigType": 2 }])), None);
}

#[test]
fn another_value_is_wrong_and_located() {
    let outcome = check(good(), DESCRIBE, shows(json!([{ "Name": "k", "Value": "w" }])), Some(Class::WrongValue));
    assert_eq!((outcome.want, outcome.got), (Some(json!("v")), Some(json!("w"))));
    let at = outcome.at.unwrap();
    assert_eq!(at.path, "Results[0].Configs[Name=k].Value");
    let sent = parse_hex(&outcome.sent.unwrap()).unwrap();
    let (offset, length) = (at.offset.unwrap() as usize, at.length.unwrap() as usize);
    assert_eq!(codec::hex(&sent[offset..offset + length]), "000176");
    assert_eq!(sent[4..8], [0; 4], "the correlation id is the client's");
}

#[test]
fn entries_that_are_lost_or_made_up_are_found() {
    check(good(), DESCRIBE, shows(json!([])), Some(Class::Lossy));
    let more = json!([{ "Name": "k", "Value": "v" }, { "Name": "l", "Value": "v" }]);
    check(good(), DESCRIBE, shows(more), Some(Class::InventedValue));
    check(good(), "", right(), Some(Class::InventedValue));
    check(good(), DESCRIBE, line(json!({ "value": { "Results": [] } })), Some(Class::Lossy));
}

#[test]
fn errors_are_shown_as_errors() {
    let failing = || {
        let mut case = changed("/broker/replies/0/value/Results/0/ErrorCode", json!(3));
        case["broker"]["replies"][0]["value"]["Results"][0]["Configs"] = json!([]);
        case
    };
    let code = |code: i16| line(json!({ "value": { "Results": [{ "ErrorCode": code, "ResourceName": "t" }] } }));
    check(failing(), DESCRIBE, code(3), None);
    check(failing(), DESCRIBE, code(0), Some(Class::ErrorHidden));
    check(failing(), DESCRIBE, code(40), Some(Class::WrongValue));
    check(good(), DESCRIBE, code(3), Some(Class::WrongValue));
    check(failing(), DESCRIBE, line(json!({ "error": "no such topic", "code": 3 })), None);
    check(failing(), DESCRIBE, line(json!({ "error": "no such topic", "code": 4 })), Some(Class::WrongValue));
    check(failing(), DESCRIBE, line(json!({ "value": { "Results": [{ "error": "no such topic" }] } })), None);
    check(good(), DESCRIBE, line(json!({ "value": { "Results": [{ "error": "no" }] } })), Some(Class::TooStrict));
}

#[test]
fn giving_up_is_too_strict() {
    check(good(), DESCRIBE, line(json!({ "error": "timed out" })), Some(Class::TooStrict));
    check(good(), "", line(json!({ "refused": "no" })), Some(Class::TooStrict));
    let refusing = changed("/expect", json!({ "outcome": "refused" }));
    check(refusing.clone(), "", line(json!({ "refused": "no" })), None);
    check(refusing, DESCRIBE, line(json!({ "refused": "no" })), Some(Class::WrongBytes));
}

#[test]
fn bytes_that_were_not_due_are_wrong() {
    let outcome = check(good(), &DESCRIBE.replace("0020 0001", "0020 0002"), right(), Some(Class::WrongBytes));
    assert_eq!(outcome.detail.as_deref(), Some("DescribeConfigs version 2 was sent, and 1 was advertised"));
    let evidence = outcome.got.unwrap();
    assert_eq!(evidence["request"], "000000170020000200000000000000000001020001 74ffffffff00".replace(' ', ""));
    for request in [
        &DESCRIBE.replace("ffffffff 00", "ffffffff 02"), // an anomaly
        &DESCRIBE.replace("00000001 02", "00000009 02"), // a count that is too large
        &DESCRIBE.replace("0001 74", "0001 75"),         // another topic
        "0000000a 0021 0000 00000002 0000",              // AlterConfigs v0 without a body
        "0000000a 0999 0000 00000002 0000",              // an API that there is not
        "00000002 0020",                                 // no header
        "ffffffff",                                      // no frame
        "00000017 0020",                                 // half a frame
    ] {
        check(good(), request, right(), Some(Class::WrongBytes));
    }
}

#[test]
fn synonyms_may_be_asked_for_unasked() {
    check(good(), &DESCRIBE.replace("ffffffff 00", "ffffffff 01"), right(), None);
}

#[test]
fn a_failure_must_be_told() {
    let cut = || {
        let mut case = changed("/broker/replies/0/cut", json!(20));
        case["expect"] = json!({ "outcome": "failed" });
        case
    };
    check(cut(), DESCRIBE, line(json!({ "error": "closed" })), None);
    check(cut(), DESCRIBE, right(), Some(Class::InventedValue));
    check(cut(), "", line(json!({ "error": "closed" })), Some(Class::TooStrict));
    let mut other = changed("/broker/replies/0/wrong_correlation", json!(true));
    other["expect"] = json!({ "outcome": "failed" });
    check(other, DESCRIBE, right(), Some(Class::WrongValue));
}

#[test]
fn crash_hang_memory_and_panic_are_told_apart() {
    check(good(), DESCRIBE, Answer::Crashed("signal: 11".into()), Some(Class::Crash));
    check(good(), DESCRIBE, Answer::Hung(Duration::from_secs(20)), Some(Class::Hang));
    check(good(), DESCRIBE, Answer::Memory(1 << 31), Some(Class::Memory));
    check(good(), DESCRIBE, line(json!({ "panic": "index out of bounds" })), Some(Class::Panic));
    let observed = changed("/level", json!("observed"));
    let crash = check(observed.clone(), DESCRIBE, Answer::Crashed("signal: 11".into()), Some(Class::Crash));
    assert_eq!(crash.level, Level::Must, "no input may do that");
    let differs = judged(observed, Fake { request: DESCRIBE, shows: shows(json!([])) });
    assert_eq!(differs.verdict, Verdict::Differs);
}

#[test]
fn what_a_client_does_not_have_is_unsupported() {
    for drive in [
        json!({ "op": "alter_configs", "resources": [{ "ResourceType": 2, "ResourceName": "t" }] }),
        json!({ "resources": [{ "ResourceType": 2, "ResourceName": "t" }], "synonyms": true }),
    ] {
        let mut case = changed("/drive", drive);
        case["broker"] = json!({});
        case["expect"] = json!({ "outcome": "failed" });
        let outcome = judged(case, Fake { request: "", shows: right() });
        assert_eq!(outcome.verdict, Verdict::Unsupported, "{outcome:?}");
    }
    let unsupported = Fake { request: "", shows: line(json!({ "unsupported": "no such thing" })) };
    assert_eq!(judged(good(), unsupported).verdict, Verdict::Unsupported);
    let gone = Fake { request: "", shows: Answer::Gone("lost".into()) };
    assert_eq!(judged(good(), gone).verdict, Verdict::NotRun);
}

#[test]
fn a_version_that_was_refused_when_met_is_unsupported() {
    let text = json!({ "api": "DescribeConfigs", "cases": [good()] }).to_string();
    let protocol = definitions::bundled();
    let case = load(&[("some.json", &text)], protocol).unwrap().remove(0);
    let operations = BTreeMap::from([("describe_configs".to_owned(), json!({}))]);
    let refuse = &mut |_: Json, _: Duration| line(json!({ "refused": "no common version" }));
    let client = Client::meet(protocol, "fake@1", &operations, refuse).unwrap();
    let outcome = run(protocol, &case, ApiVersion(1), &client, &mut |_, _| unreachable!("it is not asked"));
    assert_eq!(outcome.verdict, Verdict::Unsupported);
    assert_eq!(outcome.detail.as_deref(), Some("the client has no version 1 of DescribeConfigs"));
}

#[test]
fn details_hold_nothing_that_changes_from_run_to_run() {
    let outcome =
        judged(good(), Fake { request: DESCRIBE, shows: line(json!({ "error": "failed: 127.0.0.1:80: after 12ms" })) });
    assert_eq!(outcome.got.unwrap()["error"], "failed: 127.0.0.1:80: after Nms");
}

#[test]
fn ids_hold_role_api_version_and_slug() {
    let cases = bundled();
    let case = cases.iter().find(|case| case.slug == "resource-error" && case.api == "DescribeConfigs").unwrap();
    assert_eq!(case.id(ApiVersion(1)), "client/describe-configs/v1/resource-error");
}
