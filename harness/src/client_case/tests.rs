use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use codec::{AbsentFields, Value, decode_frame, encode_frame, parse_hex};
use serde_json::json;

use super::*;
use crate::adapter::{Answer, OperationSupport};
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
        ("/cite", json!(["KAFKA-18659"]), "one that binds"),
        ("/cite", json!(["KIP-482", "somewhere"]), "not a field of a definition"),
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
        ("/drive/timeout_ms", json!(u64::MAX), "1 to 60000"),
        ("/expect", json!({ "within_ms": 15_001 }), "expect.within_ms: a time is of 1 to 15000 ms"),
        ("/expect", json!({ "within_ms": 0 }), "expect.within_ms: a time is of 1 to"),
        ("/expect", json!({ "reported": { "Results[0].ErrorCode": "three" } }), "\"three\" is never there"),
        ("/expect", json!({ "sent": { "Resources[0].ResourceType": "TOPIC" } }), "\"TOPIC\" is never there"),
        ("/expect", json!({ "sent": { "Resources.ResourceType": { "absent": true } } }), "brackets say of which"),
        ("/cite", json!(["DescribeConfigsRequest", "AlterConfigsResponse"]), "nothing to do with AlterConfigsResponse"),
        ("/expect", json!({ "outcome": "open" }), "expect: "),
        ("/expect", json!({ "outcome": [] }), "something must be due"),
        ("/expect", json!({ "sent": { "Resources": { "is": 1 } } }), "unknown matcher"),
        ("/expect", json!({ "sent": { "Results": 1 } }), "has no field Results"),
        ("/broker/replies/0/versions", json!("5+"), "broker.replies[0].versions: DescribeConfigs has versions 0-4"),
        ("/expect", json!({ "shown": ["Valu"] }), "have no field \"Valu\""),
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

fn config() -> Json {
    json!({ "Name": "k", "Value": "v", "ReadOnly": true, "ConfigSource": 1, "IsSensitive": false })
}

fn config_with(field: &str, value: Json) -> Json {
    let mut config = config();
    config[field] = value;
    config
}

fn right() -> Answer {
    shows(json!([config()]))
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
    judged_at(case, fake, json!({ "keys": true }), Level::Must)
}

fn judged_at(case: Json, fake: Fake<'_>, options: Json, fails: Level) -> Outcome {
    let text = json!({ "api": "DescribeConfigs", "cases": [case] }).to_string();
    let protocol = definitions::bundled();
    let case = load(&[("some.json", &text)], protocol).unwrap().remove(0);
    let operations = BTreeMap::from([("describe_configs".to_owned(), serde_json::from_value(options).unwrap())]);
    let version = case.versions.lowest().unwrap();
    // Met as one that has every version.
    let client = Client::meet(protocol, "fake@1", &operations, &mut |_, _| right()).unwrap();
    run(protocol, &case, version, &client, fails, &mut |message, _| {
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
    // Placeholders of fields that this version lacks are no fault, nor is what follows from a field that came.
    for (field, value) in [("IsDefault", json!(false)), ("ConfigType", json!(0)), ("Documentation", Json::Null)] {
        check(good(), DESCRIBE, shows(json!([config_with(field, value)])), None);
    }
    // Nor the fields that the client declares not to show.
    let shown = || Fake { request: DESCRIBE, shows: shows(json!([{ "Name": "k", "Value": "v" }])) };
    let outcome = judged_at(good(), shown(), json!({ "shows": ["Value"] }), Level::Must);
    assert_eq!(outcome.verdict, Verdict::Pass, "{outcome:?}");
    let outcome = judged_at(good(), shown(), json!({ "shows": ["Value", "ReadOnly"] }), Level::Must);
    assert_eq!((outcome.verdict, outcome.class), (Verdict::Fail, Some(Class::Lossy)), "{outcome:?}");
    let about = changed("/expect", json!({ "shown": ["ReadOnly"] }));
    let outcome = judged_at(about, shown(), json!({ "shows": ["Value"] }), Level::Must);
    assert_eq!(outcome.verdict, Verdict::Unsupported);
}

/// ApiVersions v3 of a software's name and version, as text of under 127 bytes.
fn api_versions_3(name: &str, version: &str) -> String {
    let text = |text: &str| format!("{:02x}{}", text.len() + 1, codec::hex(text.as_bytes()));
    let rest = format!("0012 0003 00000001 0000 00 {} {} 00", text(name), text(version));
    let size = parse_hex(&rest).unwrap().len();
    format!("{size:08x} {rest}")
}

#[test]
fn a_software_name_that_no_broker_lets_in_is_a_fault() {
    let with = |name, software| {
        let mut case = good();
        case["broker"]["caps"] = json!({ "ApiVersions": "0-4" });
        let text = json!({ "api": "DescribeConfigs", "cases": [case] }).to_string();
        let protocol = definitions::bundled();
        let case = load(&[("some.json", &text)], protocol).unwrap().remove(0);
        let operations = BTreeMap::from([("describe_configs".to_owned(), OperationSupport::default())]);
        let client = Client::meet(protocol, "fake@1", &operations, &mut |_, _| right()).unwrap();
        let version = case.versions.lowest().unwrap();
        run(protocol, &case, version, &client, Level::Must, &mut |message, _| {
            let bootstrap = message["bootstrap"].as_str().unwrap();
            exchange(bootstrap, &api_versions_3(name, software));
            exchange(bootstrap, DESCRIBE);
            right()
        })
    };
    for (name, version) in [("a", "1"), ("apache-kafka-java", "4.4.0-SNAPSHOT"), ("x.y-z", "v1.0")] {
        assert_eq!(with(name, version).verdict, Verdict::Pass, "{name} {version}");
    }
    for (name, version) in
        [("", "1"), ("a", ""), ("my client", "1"), ("a!", "1"), ("a-", "1"), (".a", "1"), ("a", "v_1")]
    {
        let outcome = with(name, version);
        assert_eq!((outcome.verdict, outcome.class), (Verdict::Fail, Some(Class::WrongBytes)), "{outcome:?}");
    }
}

#[test]
fn fields_that_did_not_come_are_invented() {
    for (field, value) in [
        ("IsDefault", json!(true)),
        ("ConfigType", json!(9)),
        ("Documentation", json!("made up")),
        ("NoSuchField", json!({})),
    ] {
        check(good(), DESCRIBE, shows(json!([config_with(field, value)])), Some(Class::InventedValue));
    }
    let mut case = good();
    case["versions"] = "0".into();
    let describe = "00000016 0020 0000 00000002 0000 00000001 02 0001 74 ffffffff";
    let of_v0 = |source: i64| {
        let mut config = config_with("IsDefault", json!(false));
        config["ConfigSource"] = source.into();
        shows(json!([config]))
    };
    check(case.clone(), describe, of_v0(0), None);
    check(case.clone(), describe, of_v0(1), None);
    check(case, describe, of_v0(5), Some(Class::InventedValue));
}

#[test]
fn a_result_says_whose_it_is_and_comes_once() {
    let with = |change: &dyn Fn(&mut Vec<Json>)| {
        let Answer::Line(mut line) = right() else { unreachable!() };
        change(line["value"]["Results"].as_array_mut().unwrap());
        Answer::Line(line)
    };
    let nameless = with(&|results| drop(results[0].as_object_mut().unwrap().remove("ResourceName")));
    check(good(), DESCRIBE, nameless, Some(Class::Lossy));
    check(good(), DESCRIBE, with(&|results| results[0]["ResourceName"] = "u".into()), Some(Class::WrongValue));
    check(good(), DESCRIBE, with(&|results| results.push(results[0].clone())), Some(Class::InventedValue));
}

#[test]
fn nothing_is_shown_of_what_was_not_asked_for() {
    let error = |more: Json| {
        let mut result = json!({ "ResourceType": 2, "ResourceName": "t", "error": "timed out" });
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line(json!({ "value": { "Results": [result] } }))
    };
    let values = || error(json!({ "Configs": [{ "Name": "k", "Value": "w" }] }));
    check(good(), "", error(json!({})), Some(Class::TooStrict));
    check(good(), "", values(), Some(Class::InventedValue));
    check(good(), DESCRIBE, values(), Some(Class::InventedValue));
    for due in ["failed", "refused"] {
        let case = changed("/expect", json!({ "outcome": due, "sent_none": [] }));
        check(case, "", values(), Some(Class::InventedValue));
    }
    check(changed("/expect", json!({ "outcome": "refused" })), "", error(json!({})), None);
    let mut cut = changed("/broker/replies/0/cut", json!(20));
    cut["expect"] = json!({ "outcome": "failed" });
    check(cut.clone(), DESCRIBE, error(json!({})), None);
    check(cut.clone(), DESCRIBE, values(), Some(Class::InventedValue));
    check(cut, "", error(json!({})), Some(Class::TooStrict));
}

#[test]
fn the_level_decides_what_fails() {
    let case = changed("/level", json!("should"));
    let lossy = || Fake { request: DESCRIBE, shows: shows(json!([])) };
    let verdict = |level: Level| judged_at(case.clone(), lossy(), json!({}), level).verdict;
    assert_eq!(
        [Level::Must, Level::Should, Level::Observed].map(verdict),
        [Verdict::Differs, Verdict::Fail, Verdict::Fail]
    );
    let invented = Fake { request: "", shows: right() };
    let outcome = judged_at(case.clone(), invented, json!({}), Level::Must);
    assert_eq!((outcome.level, outcome.verdict), (Level::Must, Verdict::Fail), "a value that never came misleads");
}

#[test]
fn another_value_is_wrong_and_located() {
    let outcome = check(good(), DESCRIBE, shows(json!([config_with("Value", json!("w"))])), Some(Class::WrongValue));
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
    let more = json!([config(), config_with("Name", json!("l"))]);
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
    let result = |name: &str, value: Json| {
        line(json!({ "value": { "Results": [{ "ResourceType": 2, "ResourceName": "t", name: value }] } }))
    };
    let code = |code: i16| result("ErrorCode", code.into());
    check(failing(), DESCRIBE, code(3), None);
    check(failing(), DESCRIBE, code(0), Some(Class::ErrorHidden));
    check(failing(), DESCRIBE, code(40), Some(Class::WrongValue));
    check(good(), DESCRIBE, code(3), Some(Class::WrongValue));
    check(failing(), DESCRIBE, line(json!({ "error": "no such topic", "code": 3 })), None);
    check(failing(), DESCRIBE, line(json!({ "error": "no such topic", "code": 4 })), Some(Class::WrongValue));
    check(failing(), DESCRIBE, result("error", "no such topic".into()), None);
    check(good(), DESCRIBE, result("error", "no".into()), Some(Class::TooStrict));
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
fn synonyms_and_documentation_may_be_asked_for_unasked() {
    check(good(), &DESCRIBE.replace("ffffffff 00", "ffffffff 01"), right(), None);
    let mut case = good();
    case["versions"] = "3".into();
    let describe = "00000018 0020 0003 00000002 0000 00000001 02 0001 74 ffffffff 00 01";
    check(case, describe, shows(json!([config_with("ConfigType", json!(0))])), None);
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
    let broken = [Answer::Garbage("no JSON".into()), line(json!({ "id": 1 }))];
    for shows in broken {
        assert_eq!(judged(good(), Fake { request: "", shows }).verdict, Verdict::HarnessError);
    }
}

#[test]
fn an_adapter_that_breaks_the_protocol_is_no_fault_of_the_client_nor_a_case_not_run() {
    let value = || json!({ "Results": [] });
    for broken in [
        Answer::Garbage("a line that is not JSON".into()),
        line(json!({ "id": 1 })),
        line(json!({ "id": 1, "error": null })),
        line(json!({ "id": 1, "value": value(), "error": "no" })),
        line(json!({ "id": 1, "value": value(), "unsupported": "no" })),
        line(json!({ "id": 1, "value": [] })),
        line(json!({ "id": 1, "bytes": "00" })),
        line(json!({ "id": 1, "error": 29 })),
        line(json!({ "id": 1, "error": "no", "code": "29" })),
    ] {
        let outcome = judged(good(), Fake { request: "", shows: broken.clone() });
        assert_eq!((outcome.verdict, outcome.class), (Verdict::HarnessError, None), "{broken:?}");
        let detail = outcome.detail.unwrap_or_default();
        assert!(detail.starts_with("the adapter broke the protocol: "), "{detail}");
    }
}

#[test]
fn a_version_that_was_refused_when_met_is_unsupported() {
    let text = json!({ "api": "DescribeConfigs", "cases": [good()] }).to_string();
    let protocol = definitions::bundled();
    let case = load(&[("some.json", &text)], protocol).unwrap().remove(0);
    let operations = BTreeMap::from([("describe_configs".to_owned(), OperationSupport::default())]);
    let refuse = &mut |_: Json, _: Duration| line(json!({ "refused": "no common version" }));
    let client = Client::meet(protocol, "fake@1", &operations, refuse).unwrap();
    let outcome =
        run(protocol, &case, ApiVersion(1), &client, Level::Must, &mut |_, _| unreachable!("it is not asked"));
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

/// A small honest client on the suite's codec, which speaks ApiVersions in version 0 alone, and what is wrong with it.
struct Small {
    fault: &'static str,
}

impl Small {
    /// The next whole answer to a request that is encoded here; what goes wrong is a text.
    fn exchange(socket: &mut TcpStream, api: &str, version: ApiVersion, id: i32, body: &Json) -> Result<Json, String> {
        let protocol = definitions::bundled();
        let layout =
            |kind| protocol.frame_layout(protocol.api(api, kind).unwrap(), version).map_err(|error| error.to_string());
        let request = layout(MessageKind::Request)?;
        let value = |layout, json: &Json| Value::from_json(layout, json, AbsentFields::Drop).unwrap();
        let key = protocol.api(api, MessageKind::Request).unwrap().api_key.unwrap().0;
        let header = json!({ "RequestApiKey": key, "RequestApiVersion": version.0, "CorrelationId": id });
        let frame = encode_frame(&request, &value(&request.header, &header), &value(&request.body, body)).unwrap();
        let text = |error: std::io::Error| error.to_string();
        socket.write_all(&frame).map_err(text)?;
        loop {
            let mut frame = vec![0; 4];
            socket.read_exact(&mut frame).map_err(text)?;
            frame.resize(4 + u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize, 0);
            socket.read_exact(&mut frame[4..]).map_err(text)?;
            let response = layout(MessageKind::Response)?;
            if frame.get(4..8) == Some(&id.to_be_bytes()) {
                let decoded = decode_frame(&response, &frame).map_err(|error| error.to_string())?;
                return Ok(decoded.body().value().to_json());
            }
        }
    }

    fn drive(&self, message: &Json) -> Answer {
        let (_, api) = OPERATIONS.into_iter().find(|(op, _)| message["op"] == *op).unwrap();
        let results = if api == "DescribeConfigs" { "Results" } else { "Responses" };
        let resources = message["resources"].as_array().unwrap();
        let failed = |text: &str| {
            let result = |resource: &Json| {
                let mut result =
                    json!({ "ResourceType": resource["ResourceType"], "ResourceName": resource["ResourceName"] });
                result["error"] = text.into();
                if self.fault == "failvalues" {
                    result["Configs"] = json!([{ "Name": "retention.ms", "Value": "666" }]);
                }
                result
            };
            line(json!({ "value": { results: resources.iter().map(result).collect::<Vec<_>>() } }))
        };
        if self.fault == "mute" {
            return failed("timed out");
        }
        match self.call(message, api, results) {
            Ok(answer) => answer,
            Err(text) if self.fault == "failvalues" => failed(&text),
            Err(text) => line(json!({ "error": text })),
        }
    }

    fn call(&self, message: &Json, api: &str, results: &str) -> Result<Answer, String> {
        let protocol = definitions::bundled();
        let bootstrap = message["bootstrap"].as_str().unwrap().split(',').next().unwrap();
        let mut socket = TcpStream::connect(bootstrap).map_err(|error| error.to_string())?;
        let limit = Duration::from_millis(message["timeout_ms"].as_u64().unwrap());
        socket.set_read_timeout(Some(limit)).unwrap();
        let versions = Small::exchange(&mut socket, "ApiVersions", ApiVersion(0), 1, &json!({}));
        let guess = json!({ "ApiKeys": [{ "ApiKey": 32, "MinVersion": 0, "MaxVersion": 4 }] });
        let versions = if self.fault == "guesses" { versions.unwrap_or(guess) } else { versions? };
        if self.fault == "refuses" {
            return Ok(line(json!({ "refused": "nothing to do" })));
        }
        let spec = protocol.api(api, MessageKind::Request).unwrap();
        let key = spec.api_key.unwrap().0;
        let offered = versions["ApiKeys"].as_array().unwrap().iter().find(|entry| entry["ApiKey"] == key);
        let end = |name: &str| offered.map_or(-1, |entry| entry[name].as_i64().unwrap());
        let common = |version: &ApiVersion| (end("MinVersion")..=end("MaxVersion")).contains(&version.0.into());
        let Some(version) = spec.valid_versions.iter().filter(common).last() else {
            return Ok(line(json!({ "refused": "no common version" })));
        };
        let mut asked = message["resources"].as_array().unwrap().clone();
        if self.fault == "dupres" {
            asked.extend(asked.clone());
        }
        let mut body = json!({ "Resources": asked });
        for (option, field) in OPTIONS {
            if (option == "validate_only") != (api == "DescribeConfigs") {
                body[field] = json!(message[option] == json!(true));
            }
        }
        if self.fault == "sendtwice" && api != "DescribeConfigs" {
            Small::exchange(&mut socket, api, version, 2, &body)?;
        }
        let answer = Small::exchange(&mut socket, api, version, 3, &body)?;
        let of = |asked: &Json| {
            let fits =
                |result: &&Json| ["ResourceType", "ResourceName"].iter().all(|name| result[*name] == asked[*name]);
            answer[results].as_array().unwrap().iter().rfind(fits).cloned().unwrap_or_default()
        };
        let mut shown: Vec<Json> = message["resources"].as_array().unwrap().iter().map(of).collect();
        for result in &mut shown {
            // A client has no use for tags that it does not know.
            result.as_object_mut().unwrap().remove("_tags");
            let names = |result: &Json| -> Option<Json> {
                Some(result["Configs"].as_array()?.iter().map(|config| json!({ "Name": config["Name"] })).collect())
            };
            match self.fault {
                "names" if api == "DescribeConfigs" => result["Configs"] = names(result).unwrap(),
                "bare" => {
                    let mut bare = json!({ "ErrorCode": result["ErrorCode"] });
                    bare["Configs"] = names(result).unwrap_or(json!([]));
                    *result = bare;
                }
                "invent" => {
                    for config in result["Configs"].as_array_mut().into_iter().flatten() {
                        let config = config.as_object_mut().unwrap();
                        config.entry("Documentation").or_insert_with(|| "invented".into());
                        config.entry("ConfigType").or_insert_with(|| 9.into());
                    }
                }
                _ => {}
            }
        }
        if self.fault == "showdup" {
            shown.extend(shown.clone());
        }
        Ok(line(json!({ "value": { results: shown } })))
    }

    /// The ids of the cases that it fails, among those that pass `of`, at each of their versions.
    fn fails(&self, of: impl Fn(&ClientCase) -> bool) -> Vec<String> {
        let protocol = definitions::bundled();
        let options =
            OperationSupport { keys: true, synonyms: true, documentation: true, validate_only: true, shows: None };
        let operations = OPERATIONS.map(|(operation, _)| (operation.to_owned(), options.clone())).into();
        let drive = &mut |message: Json, _| self.drive(&message);
        // Met as an honest one: what it has is not the question.
        let honest = &mut |message: Json, _| Small { fault: "" }.drive(&message);
        let client = Client::meet(protocol, "small@1", &operations, honest).unwrap();
        let mut fails = Vec::new();
        for case in bundled().iter().filter(|case| of(case)) {
            for version in case.versions.iter() {
                let outcome = run(protocol, case, version, &client, Level::Must, drive);
                match outcome.verdict {
                    Verdict::Fail => fails.push(outcome.case),
                    Verdict::Pass | Verdict::Differs => {}
                    _ => panic!("{outcome:?}"),
                }
            }
        }
        fails
    }
}

#[test]
fn an_honest_client_fails_nothing() {
    assert_eq!(Small { fault: "" }.fails(|_| true), Vec::<String>::new());
}

#[test]
fn what_no_source_demands_is_left_to_the_client() {
    let one = |api: &'static str, slug: &'static str| move |case: &ClientCase| case.api == api && case.slug == slug;
    let none = Vec::<String>::new();
    assert_eq!(Small { fault: "refuses" }.fails(one("AlterConfigs", "no-configs")), none);
    assert_eq!(Small { fault: "guesses" }.fails(one("ApiVersions", "truncated")), none);
    for case in bundled().iter().filter(|case| ["closed", "cut-off", "no-answer"].contains(&case.slug.as_str())) {
        assert_eq!(case.level, Level::Should, "{}: no source sets a client's time limit", case.file);
    }
}

/// Checks that a fault fails each of these cases, `API/slug`, at every version.
#[track_caller]
fn caught(fault: &'static str, cases: &[&str]) {
    let of = |case: &ClientCase| cases.contains(&format!("{}/{}", kebab(&case.api), case.slug).as_str());
    let versions: usize = bundled().iter().filter(|case| of(case)).map(|case| case.versions.iter().count()).sum();
    let fails = Small { fault }.fails(of);
    assert!(versions >= cases.len() && fails.len() == versions, "{fault}: of {versions} only {fails:?}");
}

#[test]
fn a_client_that_never_connects_fails() {
    let cases = [
        "describe-configs/topic",
        "describe-configs/truncated-to-nothing",
        "describe-configs/not-advertised",
        "describe-configs/wrong-correlation-id",
        "alter-configs/topic",
        "alter-configs/resource-error",
        "alter-configs/versions-unknown",
        "incremental-alter-configs/two-resources-one-bad",
        "api-versions/highest",
        "api-versions/unsupported-empty-list",
    ];
    caught("mute", &cases);
}

/// Whatever words it has for it: what a client shows that never sends anything shows nothing of the protocol.
#[test]
fn a_client_that_never_sends_passes_nothing() {
    let protocol = definitions::bundled();
    let operations = OPERATIONS.map(|(operation, _)| (operation.to_owned(), OperationSupport::default())).into();
    for answer in [json!({ "error": "no" }), json!({ "refused": "no" })] {
        let drive = &mut |_: Json, _: Duration| line(answer.clone());
        let client = Client::meet(protocol, "mute@1", &operations, drive).unwrap();
        for case in bundled() {
            for version in case.versions.iter() {
                let outcome = run(protocol, &case, version, &client, Level::Must, drive);
                assert_ne!(outcome.verdict, Verdict::Pass, "{answer}: {outcome:?}");
            }
        }
    }
}

/// It is offered three versions and hangs at each; a fourth is not tried, and nothing is said of the others.
#[test]
fn a_client_that_hangs_is_met_in_part_only() {
    let protocol = definitions::bundled();
    let operations = OPERATIONS.map(|(operation, _)| (operation.to_owned(), OperationSupport::default())).into();
    let mut offered = 0;
    let mut hang = |_: Json, limit: Duration| {
        offered += 1;
        Answer::Hung(limit)
    };
    let client = Client::meet(protocol, "deaf@1", &operations, &mut hang).unwrap();
    let cases = bundled();
    let mut judge = |api: &str, version: i16| {
        let case = cases.iter().find(|case| case.api == api && case.slug == "topic").unwrap();
        let outcome = run(protocol, case, ApiVersion(version), &client, Level::Must, &mut hang);
        (outcome.verdict, outcome.class, outcome.detail.unwrap())
    };
    assert_eq!((judge("DescribeConfigs", 0).0, judge("DescribeConfigs", 2).1), (Verdict::Fail, Some(Class::Hang)));
    for (api, version) in [("DescribeConfigs", 3), ("AlterConfigs", 0)] {
        let (verdict, _, detail) = judge(api, version);
        let why = format!("the client was not offered version {version} of {api}: it hung 3 times in a row");
        assert_eq!((verdict, detail), (Verdict::NotRun, why));
    }
    assert_eq!(offered, 3 + 2);
    // Once is not in a row: all versions are offered.
    let mut offered = 0;
    let mut once = |_: Json, limit: Duration| {
        offered += 1;
        if offered % 3 == 0 { line(json!({ "error": "no" })) } else { Answer::Hung(limit) }
    };
    Client::meet(protocol, "slow@1", &operations, &mut once).unwrap();
    assert_eq!(offered, 5 + 3 + 2);
}

#[test]
fn values_beside_a_failure_fail() {
    caught("failvalues", &["describe-configs/truncated-in-configs", "describe-configs/wrong-correlation-id"]);
    caught("failvalues", &["alter-configs/truncated-in-result", "describe-configs/cut-off", "alter-configs/cut-off"]);
}

#[test]
fn what_is_sent_twice_fails() {
    caught("sendtwice", &["alter-configs/topic", "incremental-alter-configs/operation-append"]);
    caught("dupres", &["describe-configs/topic", "alter-configs/topic", "incremental-alter-configs/operation-append"]);
}

#[test]
fn what_is_shown_in_part_or_twice_fails() {
    let about_fields =
        ["null-value", "sensitive", "config-source", "config-type", "synonyms", "documentation", "topic"];
    let about_fields = about_fields.map(|slug| format!("describe-configs/{slug}"));
    let about_fields = about_fields.each_ref().map(String::as_str);
    caught("names", &about_fields);
    caught("bare", &about_fields);
    caught("bare", &["alter-configs/topic", "incremental-alter-configs/resource-error"]);
    caught("showdup", &["describe-configs/topic", "alter-configs/topic", "describe-configs/two-resources-one-bad"]);
}

#[test]
fn what_is_made_up_fails() {
    let fails = Small { fault: "invent" }.fails(|case| case.slug == "topic" && case.api == "DescribeConfigs");
    assert_eq!(fails.len(), 3, "versions 0 to 2 have neither type nor documentation: {fails:?}");
}
