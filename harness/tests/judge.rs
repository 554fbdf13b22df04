//! The judge: what each observation of a codec is worth, what a broken case file is told, and that our own codec passes.

use codec::Protocol;
use kafka_conform::adapter::{Answer, Handshake, LINE_LIMIT, VALUES_LIMIT};
use kafka_conform::cases::{Cases, Texts};
use kafka_conform::ids::Ids;
use kafka_conform::results::{Class, Level, Op, Verdict};
use kafka_conform::vector::{Files, Vector, Vectors};
use kafka_conform::verdict::{self, Observation};
use kafka_conform::{definitions, reference};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

static CASES: LazyLock<Cases> =
    LazyLock::new(|| Cases::bundled(definitions::bundled()).unwrap_or_else(|lints| panic!("{}", lints.join("\n"))));

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn case(id: &str) -> &'static Vector {
    CASES.vector(id).unwrap_or_else(|| panic!("no case {id}"))
}

fn judged(id: &str, op: Op, seen: &Observation) -> (Verdict, Option<Class>) {
    let outcome = verdict::judge(case(id), op, seen, "peer@1", Level::Must, Duration::ZERO);
    assert_eq!(outcome.severity, outcome.class.map(Class::severity));
    (outcome.verdict, outcome.class)
}

#[test]
fn the_reference_passes_every_codec_case() {
    let protocol = definitions::bundled();
    let handshake: Handshake = serde_json::from_value(reference::handshake(protocol)).unwrap();
    let mut judged = 0;
    for case in &CASES.vectors.cases {
        for &op in verdict::operations(case) {
            assert!(verdict::declared(case, op, &handshake), "{}", case.id);
            let answer = Answer::Line(reference::answer(protocol, &verdict::request(case, op)));
            let outcome = verdict::judge(case, op, &answer.into(), "reference", Level::Observed, Duration::ZERO);
            assert!(matches!(outcome.verdict, Verdict::Pass | Verdict::Variant), "{outcome:?}");
            judged += 1;
        }
    }
    assert!(judged > 1000, "{judged}");
}

const SMALLEST: &str = "codec/alter-configs-request/v2/each-field";

#[test]
fn what_ends_a_process_is_severe_whatever_was_asked() {
    for id in [SMALLEST, "codec/describe-configs-request/v4/keys-minus-2-compact"] {
        assert_eq!(judged(id, Op::Decode, &Observation::Crashed("x".into())), (Verdict::Fail, Some(Class::Crash)));
        assert_eq!(judged(id, Op::Decode, &Observation::Hung(Duration::ZERO)), (Verdict::Fail, Some(Class::Hang)));
        assert_eq!(judged(id, Op::Decode, &Observation::Memory(1)), (Verdict::Fail, Some(Class::Memory)));
    }
}

#[test]
fn a_codec_that_is_not_asked_or_broken_is_never_a_pass() {
    assert_eq!(judged(SMALLEST, Op::Decode, &Observation::Undeclared("x".into())), (Verdict::Unsupported, None));
    // What it declares it was asked for; that it may lack is a part, or a way to be given what no value can be.
    for op in [Op::Decode, Op::Encode] {
        assert_eq!(judged(SMALLEST, op, &Observation::Unsupported("x".into())), (Verdict::HarnessError, None));
    }
    assert_eq!(judged(SMALLEST, Op::Recode, &Observation::Unsupported("x".into())), (Verdict::Unsupported, None));
    let others = CASES.vectors.cases.iter().filter(|case| case.part.name() != "body" || case.rule.id == "unknown-tags");
    for case in others {
        let op = if case.rule.id == "unknown-tags" { Op::Encode } else { Op::Decode };
        assert_eq!(judged(&case.id, op, &Observation::Unsupported("x".into())), (Verdict::Unsupported, None));
    }
    assert_eq!(judged(SMALLEST, Op::Decode, &Observation::Gone("x".into())), (Verdict::NotRun, None));
    assert_eq!(judged(SMALLEST, Op::Decode, &Observation::Broken("x".into())), (Verdict::HarnessError, None));
    // An echo answers decode with bytes and encode with a value.
    assert_eq!(judged(SMALLEST, Op::Decode, &Observation::Bytes(vec![])), (Verdict::HarnessError, None));
    assert_eq!(judged(SMALLEST, Op::Encode, &Observation::Value(json!({}), 0)), (Verdict::HarnessError, None));
}

/// An answer as its adapter gave it.
fn answered(id: &str, op: Op, answer: Json) -> (Verdict, Option<Class>) {
    judged(id, op, &Answer::Line(answer).into())
}

#[test]
fn null_beside_a_value_is_neither_a_refusal_nor_an_excuse() {
    let invalid = CASES.vectors.cases.iter().find(|case| case.rule.id == "truncated").expect("there is one");
    for key in ["error", "unsupported", "panic", "bytes", "refused"] {
        let seen = answered(&invalid.id, Op::Decode, json!({ "id": 1, "value": {}, key: null }));
        assert_eq!(seen, (Verdict::Fail, Some(Class::InventedValue)), "{key}");
        let value = case(SMALLEST).value.clone();
        let seen = answered(SMALLEST, Op::Decode, json!({ "id": 1, "value": value, key: null, "left": null }));
        assert_eq!(seen, (Verdict::Pass, None), "{key}");
    }
    let seen = answered(&invalid.id, Op::Decode, json!({ "id": 1, "error": "no", "value": null, "left": null }));
    assert_eq!(seen, (Verdict::Pass, None));
}

fn with(value: &Json, field: &str, other: Json) -> Json {
    let mut value = value.clone();
    value[field] = other;
    value
}

fn with_type(value: &Json, other: Json) -> Json {
    let mut value = value.clone();
    value["Resources"][0]["ResourceType"] = other;
    value
}

#[test]
fn an_answer_that_is_none_is_the_adapters_fault() {
    let value = case(SMALLEST).value.clone().expect("it has a value");
    for broken in [
        json!({ "id": 1 }),
        json!({ "id": 1, "value": null, "error": null }),
        json!({ "id": 1, "value": value, "error": "no" }),
        json!({ "id": 1, "value": value, "unsupported": "no" }),
        json!({ "id": 1, "value": value, "bytes": "00" }),
        json!({ "id": 1, "error": "no", "panic": "no" }),
        json!({ "id": 1, "error": false }),
        json!({ "id": 1, "refused": "no" }),
        json!({ "id": 1, "value": value, "left": "0" }),
        json!({ "id": 1, "value": value, "left": -1 }),
        json!({ "id": 1, "value": value, "left": 0.5 }),
        // Values of another JSON type than the field's type is written in.
        json!({ "id": 1, "value": with(&value, "ValidateOnly", json!(0)) }),
        json!({ "id": 1, "value": with(&value, "ValidateOnly", json!("false")) }),
        json!({ "id": 1, "value": with(&value, "Resources", json!({})) }),
        json!({ "id": 1, "value": with_type(&value, json!(2.0)) }),
        json!({ "id": 1, "value": with_type(&value, json!("two")) }),
        json!({ "id": 1, "value": with_type(&value, json!(true)) }),
    ] {
        assert_eq!(answered(SMALLEST, Op::Decode, broken.clone()), (Verdict::HarnessError, None), "{broken}");
    }
}

#[test]
fn every_right_answer_is_far_from_the_limits_of_a_line() {
    for case in &CASES.vectors.cases {
        for &op in verdict::operations(case) {
            let answer = reference::answer(definitions::bundled(), &verdict::request(case, op)).to_string();
            assert!(answer.len() < LINE_LIMIT / 16, "{}: {} bytes", case.id, answer.len());
            let values = answer.matches(['[', '{', ',']).count();
            // Of 16,383 elements each is one value, which no adapter shows more of.
            let far = if case.id.contains("-1638") { VALUES_LIMIT / 3 } else { VALUES_LIMIT / 8 };
            assert!(values < far, "{}: {values} values", case.id);
        }
    }
}

#[test]
fn a_valid_case_wants_its_value_and_its_bytes() {
    let case = case(SMALLEST);
    let (value, bytes) = (case.value.clone().unwrap(), case.bytes.clone().unwrap());
    assert_eq!(judged(SMALLEST, Op::Decode, &Observation::Value(value.clone(), 0)), (Verdict::Pass, None));
    assert_eq!(judged(SMALLEST, Op::Encode, &Observation::Bytes(bytes.clone())), (Verdict::Pass, None));
    // One bit, one byte missing, one byte more, one field changed, bytes said to be left: each is found.
    let mut flipped = bytes.clone();
    flipped[2] ^= 1;
    let fails = |op, seen| judged(SMALLEST, op, &seen).1;
    assert_eq!(fails(Op::Encode, Observation::Bytes(flipped)), Some(Class::WrongBytes));
    assert_eq!(fails(Op::Encode, Observation::Bytes(bytes[..bytes.len() - 1].to_vec())), Some(Class::WrongBytes));
    assert_eq!(fails(Op::Recode, Observation::Bytes([bytes.as_slice(), &[0]].concat())), Some(Class::WrongBytes));
    let mut changed = value.clone();
    changed["ValidateOnly"] = (!changed["ValidateOnly"].as_bool().unwrap()).into();
    assert_eq!(fails(Op::Decode, Observation::Value(changed, 0)), Some(Class::WrongValue));
    assert_eq!(fails(Op::Decode, Observation::Value(value.clone(), 1)), Some(Class::WrongValue));
    assert_eq!(fails(Op::Decode, Observation::Refused("no".into())), Some(Class::TooStrict));
    assert_eq!(fails(Op::Decode, Observation::Panicked("no".into())), Some(Class::Panic));
    let far = |number: i64| Observation::Value(with_type(&value, number.into()), 0);
    assert_eq!(fails(Op::Decode, far(128)), Some(Class::WrongValue), "no int8");
    let tags = json!([{ "tag": 1_u64 << 32, "hex": "" }]);
    assert_eq!(fails(Op::Decode, Observation::Value(with(&value, "_tags", tags), 0)), Some(Class::WrongValue));
    let mut unknown = value;
    unknown["Nonsense"] = 1.into();
    assert_eq!(fails(Op::Decode, Observation::Value(unknown, 0)), Some(Class::WrongValue));
}

#[test]
fn placeholders_for_fields_of_other_versions_are_no_fault() {
    let id = "codec/describe-configs-request/v0/each-field-v0";
    let mut value = case(id).value.clone().unwrap();
    value["IncludeSynonyms"] = true.into();
    value["IncludeDocumentation"] = false.into();
    assert_eq!(judged(id, Op::Decode, &Observation::Value(value, 0)), (Verdict::Pass, None));
}

#[test]
fn null_is_not_empty() {
    let cases = CASES.vectors.cases.iter().filter(|case| &*case.spec.name == "DescribeConfigsResponse");
    let with_null = cases.filter(|case| case.rule.id == "well-formed" && case.part.name() == "body").find_map(|case| {
        let mut value = case.value.clone()?;
        let field = value.pointer_mut("/Results/0/ErrorMessage").filter(|field| field.is_null())?;
        *field = "".into();
        Some((case.id.as_str(), value))
    });
    let (id, value) = with_null.expect("a case with a null message");
    assert_eq!(judged(id, Op::Decode, &Observation::Value(value, 0)), (Verdict::Fail, Some(Class::WrongValue)));
}

#[test]
fn a_value_from_bytes_that_are_not_there_is_invented() {
    let truncated = CASES.vectors.cases.iter().find(|case| case.rule.id == "truncated").expect("a truncated case");
    let seen = Observation::Value(json!({}), 0);
    assert_eq!(judged(&truncated.id, Op::Decode, &seen), (Verdict::Fail, Some(Class::InventedValue)));
    assert_eq!(judged(&truncated.id, Op::Decode, &Observation::Refused("no".into())), (Verdict::Pass, None));
}

#[test]
fn leniency_against_a_should_differs_and_does_not_fail() {
    let null = CASES.vectors.cases.iter().find(|case| case.rule.id == "null-array-not-nullable").expect("a case");
    let seen = Observation::Value(json!({}), 0);
    assert_eq!(judged(&null.id, Op::Decode, &seen), (Verdict::Differs, Some(Class::TooLenient)));
    let outcome = verdict::judge(null, Op::Decode, &seen, "peer@1", Level::Should, Duration::ZERO);
    assert_eq!(outcome.verdict, Verdict::Fail);
}

#[test]
fn unknown_tags_may_be_dropped_but_not_misread() {
    let tagged = CASES.vectors.cases.iter().filter(|case| case.rule.id == "unknown-tags" && case.part.name() == "body");
    let tagged = tagged.into_iter().find(|case| case.value.as_ref().is_some_and(|value| value.get("_tags").is_some()));
    let tagged = tagged.expect("a case with tags at the top");
    let mut value = tagged.value.clone().unwrap();
    value.as_object_mut().unwrap().remove("_tags");
    let dropped = strip_tags(&value);
    assert_eq!(judged(&tagged.id, Op::Decode, &Observation::Value(dropped, 0)), (Verdict::Variant, None));
    let mut other = tagged.value.clone().unwrap();
    other["_tags"][0]["hex"] = "ff00ff00ff".into();
    assert_eq!(judged(&tagged.id, Op::Decode, &Observation::Value(other, 0)), (Verdict::Fail, Some(Class::WrongValue)));
}

fn strip_tags(json: &Json) -> Json {
    match json {
        Json::Array(elements) => elements.iter().map(strip_tags).collect(),
        Json::Object(object) => object
            .iter()
            .filter(|(name, _)| *name != "_tags")
            .map(|(name, value)| (name.clone(), strip_tags(value)))
            .collect(),
        other => other.clone(),
    }
}

#[test]
fn a_flag_of_two_is_true() {
    let id = CASES.vectors.cases.iter().find(|case| case.rule.id == "bool-other").map(|case| case.id.as_str());
    let id = id.expect("a case with a flag of two");
    let ours = reference::answer(definitions::bundled(), &verdict::request(case(id), Op::Decode));
    let mut falsified = ours["value"].clone();
    assert_eq!(judged(id, Op::Decode, &Observation::Value(falsified.clone(), 0)), (Verdict::Pass, None));
    assert!(falsify(&mut falsified));
    assert_eq!(judged(id, Op::Decode, &Observation::Value(falsified, 0)), (Verdict::Fail, Some(Class::WrongValue)));
}

fn falsify(json: &mut Json) -> bool {
    match json {
        Json::Bool(value) => std::mem::replace(value, false),
        Json::Array(elements) => elements.iter_mut().any(falsify),
        Json::Object(object) => object.iter_mut().any(|(_, value)| falsify(value)),
        _ => false,
    }
}

#[test]
fn case_ids_are_unique_and_every_case_says_what_and_why() {
    let list = CASES.list();
    for pair in list.windows(2) {
        assert_ne!(pair[0].id, pair[1].id);
    }
    assert!(list.iter().all(|case| !case.info.requires.is_empty() && !case.info.cite.is_empty()));
}

#[test]
fn files_obey_their_published_schemas() {
    let read = |path: &str| -> Json {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        serde_json::from_str(&text).unwrap()
    };
    let in_folder = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(format!("{ROOT}/vectors/{folder}")).unwrap();
        entries.map(|entry| entry.unwrap().path().display().to_string()).collect()
    };
    let one = |file: &str| vec![format!("{ROOT}/vectors/{file}")];
    let wrong_case = json!({ "cases": [{ "id": 1 }] });
    let wrong_rule = |result: &str, outcomes: Json| {
        let (sentence, level, authority) = ("As above.", "must", "KIP-482");
        json!([{ "id": "a", "sentence": sentence, "result": result, "outcomes": outcomes, "level": level, "authority": authority }])
    };
    let wrong_source =
        json!({ "sources": [{ "name": "a", "versions": [], "family": "a", "definitions": "own", "what": "A." }] });
    for (name, files, wrong) in [
        ("codec", in_folder("codec"), vec![wrong_case.clone()]),
        ("broker", in_folder("broker"), vec![wrong_case.clone()]),
        ("client", in_folder("client"), vec![wrong_case]),
        (
            "rules",
            one("rules.json"),
            vec![wrong_rule("valid", json!(["refuse"])), wrong_rule("invalid", json!(["value"]))],
        ),
        ("sources", one("sources.json"), vec![wrong_source]),
    ] {
        let schema = read(&format!("{ROOT}/vectors/{name}.schema.json"));
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(!files.is_empty());
        for path in files {
            let json = read(&path);
            let errors = validator.iter_errors(&json);
            let wrong: Vec<String> = errors.map(|error| format!("{} at {}", error, error.instance_path())).collect();
            assert!(wrong.is_empty(), "{path}: {wrong:?}");
        }
        assert!(wrong.iter().all(|wrong| !validator.is_valid(wrong)), "{name}.schema.json refuses something");
    }
}

/// What docs/formats.md leaves to the author of a codec case, and what it does not, schema and loader see alike.
#[test]
fn schema_and_lint_take_the_same_codec_cases() {
    let schema: Json = serde_json::from_str(kafka_conform::bundled::text("codec.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let valid = json!({
        "id": "no-resources", "rule": "well-formed", "versions": "4", "cite": ["DescribeConfigsRequest.Resources"],
        "requires": "No resources is an empty array.", "bytes": { "4": "01 00 00 00" },
        "value": { "Resources": [], "IncludeSynonyms": false, "IncludeDocumentation": false },
        "source": ["kafka-clients@4.4.0", "kmsg@1.15.1"],
    });
    let invalid = json!({
        "id": "cut", "rule": "truncated", "versions": "4", "cite": ["DescribeConfigsRequest.Resources"],
        "requires": "An array that is cut is refused.", "bytes": { "4": "02" }, "source": ["kmsg@1.15.1"],
    });
    let with = |case: &Json, key: &str, value: Json| {
        let mut case = case.clone();
        case[key] = value;
        case
    };
    let recipe = |repeat: u64, bytes: &str| json!({ "4": ["01000000", { "repeat": repeat, "bytes": bytes }] });
    for (case, taken) in [
        (valid.clone(), true),
        (with(&valid, "part", "body".into()), true),
        (with(&valid, "part", "all".into()), false),
        (with(&valid, "requires", "No full stop".into()), false),
        (with(&valid, "source", json!(["kmsg@1.15.1"])), false),
        (with(&with(&valid, "source", json!(["kmsg@1.15.1"])), "reasoning", "Nobody else.".into()), true),
        (with(&valid, "source", json!(["kmsg@1.15.1", "kafka-clients@4.4.0", "kmsg@1.15.1"])), false),
        (invalid.clone(), true),
        (with(&invalid, "source", json!([])), false),
        (with(&invalid, "bytes", recipe(0, "00")), false),
    ] {
        let file = json!({ "message": "DescribeConfigsRequest", "cases": [case] });
        let lints = lints(case.clone());
        assert_eq!((validator.is_valid(&file), lints.is_empty()), (taken, taken), "{case}: {lints:?}");
    }
    // What only the lint can say.
    let empty = lints(with(&invalid, "bytes", recipe(1_000_000_000_000, "")));
    assert!(empty.iter().any(|lint| lint.contains("what repeats is not empty")), "{empty:?}");
}

#[test]
fn the_schema_of_codec_cases_has_the_rules() {
    let schema: Json = serde_json::from_str(kafka_conform::bundled::text("codec.schema.json")).unwrap();
    let listed = schema.pointer("/$defs/case/properties/rule/enum").unwrap().as_array().unwrap();
    let listed: BTreeSet<&str> = listed.iter().map(|rule| rule.as_str().unwrap()).collect();
    assert_eq!(listed, CASES.vectors.rules.keys().map(String::as_str).collect());
}

/// What the lint says of one case file over DescribeConfigsRequest.
fn lints(case: Json) -> Vec<String> {
    let protocol: &Protocol = definitions::bundled();
    let text = |name: &str| std::fs::read_to_string(format!("{ROOT}/vectors/{name}")).unwrap();
    let file = json!({ "message": "DescribeConfigsRequest", "cases": [case] }).to_string();
    match Vectors::load(
        protocol,
        &text("rules.json"),
        &text("sources.json"),
        &Files::read(&[("describe-configs-request.json", &file)]),
    ) {
        Ok(_) => Vec::new(),
        Err(lints) => lints.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn rules_and_sources_are_there_once() {
    let (rules, sources) = (kafka_conform::bundled::text("rules.json"), kafka_conform::bundled::text("sources.json"));
    let load = |rules: &Json, sources: &Json| {
        let files = Files::read(&[]);
        let loaded = Vectors::load(definitions::bundled(), &rules.to_string(), &sources.to_string(), &files);
        loaded.err().into_iter().flatten().map(|lint| lint.to_string()).collect::<Vec<_>>()
    };
    let (rules, sources): (Json, Json) = (serde_json::from_str(rules).unwrap(), serde_json::from_str(sources).unwrap());
    assert_eq!(load(&rules, &sources), [""; 0]);
    let mut twice = rules.clone();
    let mut again = rules[3].clone();
    again["level"] = "observed".into();
    twice.as_array_mut().unwrap().push(again);
    assert_eq!(load(&twice, &sources), ["rules.json: truncated: this id is there twice"]);
    let mut twice = rules.clone();
    twice[0]["outcomes"] = json!(["value", "recode-same", "value"]);
    assert_eq!(load(&twice, &sources), ["rules.json: well-formed: outcomes: \"value\" is there twice"]);
    let mut twice = sources.clone();
    let mut again = sources["sources"][1].clone();
    again["family"] = "another".into();
    twice["sources"].as_array_mut().unwrap().push(again);
    assert_eq!(load(&rules, &twice), ["sources.json: kafka-clients: this name is there twice"]);
    let mut twice = sources.clone();
    twice["sources"][1]["versions"] = json!(["4.4.0", "4.4.0"]);
    let lints = load(&rules, &twice);
    assert_eq!(lints, ["sources.json: kafka-clients: version 4.4.0 is there twice"]);
}

/// A key that is given twice is read as either of both; each file is looked at, and each place in it.
#[test]
fn keys_are_given_once_in_every_file() {
    let bundled = Texts::bundled;
    assert!(bundled().lint(definitions::bundled()).is_ok());
    let lints = |texts: Texts| texts.lint(definitions::bundled()).err().unwrap_or_default();
    let twice = |text: &str, key: &str| {
        let (before, after) = text.split_once(&format!("\"{key}\":")).unwrap();
        format!("{before}\"{key}\": null, \"{key}\":{after}")
    };
    let (rules, sources) = (twice(bundled().rules, "level"), twice(bundled().sources, "family"));
    let (value, send) = (twice(bundled().codec[0].1, "value"), twice(bundled().broker[0].1, "ResourceName"));
    let reply = twice(bundled().client[0].1, "ErrorCode");
    let replaced = |mut files: Vec<(&'static str, &'static str)>, text: String| {
        files[0].1 = text.leak();
        files
    };
    let (codec, broker) = (replaced(bundled().codec, value), replaced(bundled().broker, send));
    for (texts, file, key) in [
        (Texts { rules: &rules, ..bundled() }, "rules.json: ", "level"),
        (Texts { sources: &sources, ..bundled() }, "sources.json: ", "family"),
        (Texts { codec, ..bundled() }, "codec/alter-client-quotas-request.json: ", "value"),
        (Texts { broker, ..bundled() }, "broker/alter-configs.json: ", "ResourceName"),
        (Texts { client: replaced(bundled().client, reply), ..bundled() }, "client/alter-configs.json: ", "ErrorCode"),
    ] {
        let lints = lints(texts);
        let want = format!("{file}the key \"{key}\" is given twice at line ");
        assert!(matches!(&lints[..], [lint] if lint.starts_with(&want)), "{lints:?}");
    }
}

#[test]
fn what_lists_citations_lists_what_is_cited() {
    let citations = format!("{}hearsay\nKIP-1\n", Texts::bundled().citations);
    let lints = Texts { citations: &citations, ..Texts::bundled() }.lint(definitions::bundled()).err().unwrap();
    assert!(lints[0].ends_with("\"hearsay\": not KIP-n, KAFKA-n or owner/repository#n"), "{lints:?}");
    assert!(lints[1].ends_with("\"KIP-1\": no case cites it") && lints.len() == 2, "{lints:?}");
}

/// A case with some of its members replaced.
fn with_all(case: &Json, members: &[(&str, Json)]) -> Json {
    let mut case = case.clone();
    members.iter().for_each(|(key, value)| case[*key] = value.clone());
    case
}

#[test]
fn the_lint_names_file_case_and_fault() {
    let good = json!({
        "id": "no-resources", "rule": "well-formed", "versions": "4", "cite": ["DescribeConfigsRequest.Resources"],
        "requires": "No resources is an empty array.", "bytes": { "4": "01 00 00 00" },
        "value": { "Resources": [], "IncludeSynonyms": false, "IncludeDocumentation": false },
        "source": ["kafka-clients@4.4.0", "kmsg@1.15.1"],
    });
    assert_eq!(lints(good.clone()), Vec::<String>::new());
    let with = |key: &str, value: Json| {
        let mut case = good.clone();
        case[key] = value;
        lints(case)
    };
    let says = |lints: Vec<String>, what: &str| {
        assert!(lints.iter().any(|lint| lint.contains(what)), "{what:?} is not in {lints:?}");
        assert!(lints.iter().all(|lint| lint.starts_with("describe-configs-request.json: ")), "{lints:?}");
    };
    says(with("bytes", json!({ "4": "01 00 00 0" })), "odd number of hex digits");
    says(with("bytes", json!({ "4": "01 01 00 00" })), "value and bytes differ at IncludeSynonyms");
    says(with("bytes", json!({ "4": "01 00 00" })), "at 0x3");
    says(with("bytes", json!({})), "bytes for version 4 are missing");
    says(with("bytes", json!({ "4": "01000000", "3": "00" })), "not in versions 4");
    says(with("rule", "no-such-rule".into()), "no rule is called");
    says(with("rule", "truncated".into()), "the bytes decode, the rule says invalid");
    says(with("versions", "4-9".into()), "not all in 0-4");
    says(with("cite", json!(["DescribeConfigsRequest.Nothing"])), "cite");
    says(with("cite", json!([])), "at least one source");
    says(with("cite", json!(["KIP-482", "KIP-482"])), "\"KIP-482\" is there twice");
    says(with("cite", json!(["DescribeConfigsResponse"])), "nothing to do with DescribeConfigsResponse");
    says(with("cite", json!(["RequestHeader.ClientId"])), "nothing to do with RequestHeader");
    let older = json!({ "1": "00000000 00", "4": "01 00 00 00" });
    let mut case = with_all(&good, &[("versions", "1-4".into()), ("bytes", older)]);
    case["cite"] = json!(["DescribeConfigsRequest.IncludeDocumentation"]);
    says(lints(case), "version 1 of DescribeConfigsRequest, which the case has, lacks this field");
    says(with("cite", json!(["apache/kafka#9046", "KAFKA-18659"])), "cite what binds");
    says(with("cite", json!(["KIP-99999"])), "not in vectors/citations.txt");
    says(with("cite", json!(["KIP-482", "owner/repository#1"])), "not in vectors/citations.txt");
    says(with("requires", "".into()), "requires");
    says(with("requires", "No full stop".into()), "requires");
    says(with("source", json!(["kafka-clients@4.4.0"])), "two families");
    says(with("source", json!(["kafka-clients@4.4.0", "kafka-python@3.0.12"])), "definitions of its own");
    says(with("source", json!(["kafka-clients@4.4.0", "kmsg@9.9.9"])), "no version");
    says(with("source", json!(["reference@0.1.0", "kmsg@1.15.1"])), "vouches for nothing");
    says(with("id", "No Slug".into()), "an id is made of");
    says(with("value", json!({ "Resources": [], "Nonsense": 1 })), "no field");
    says(with("parent", "nowhere".into()), "there is no case \"nowhere\"");
    says(with("surprise", 1.into()), "unknown field `surprise`");

    // A case that is a mutation of another says of which and how, unless somebody made it.
    let mut cut = good.clone();
    for member in ["value", "source"] {
        cut.as_object_mut().unwrap().remove(member);
    }
    cut["rule"] = "truncated".into();
    cut["bytes"] = json!({ "4": "01 00" });
    for (parent, mutation) in [(None, None), (Some("no-resources"), None), (None, Some("cut"))] {
        let mut case = cut.clone();
        parent.into_iter().for_each(|parent| case["parent"] = parent.into());
        mutation.into_iter().for_each(|mutation| case["mutation"] = mutation.into());
        says(lints(case), "parent and mutation, or a source, are missing");
    }
}

#[test]
fn what_is_asked_twice_is_refused() {
    let case = |id: &str, keys: Json| {
        json!({
            "id": id, "rule": "encode-not-encodable", "versions": "4", "cite": ["DescribeConfigsRequest.Resources"],
            "requires": "An encoder refuses a null.",
            "value": { "Resources": keys, "IncludeSynonyms": false, "IncludeDocumentation": false },
        })
    };
    let load = |cases: [Json; 2]| {
        let file = json!({ "message": "DescribeConfigsRequest", "cases": cases }).to_string();
        CASES.vectors.unasked(definitions::bundled(), &Files::read(&[("describe-configs-request.json", &file)]))
    };
    let nameless = json!([{ "ResourceType": 2, "ResourceName": null, "ConfigurationKeys": null }]);
    assert!(load([case("one", Json::Null), case("other", nameless)]).is_ok());
    let lints = load([case("one", Json::Null), case("other", Json::Null)]).unwrap_err();
    assert!(lints.iter().any(|lint| lint.what.starts_with("the same value as codec/")), "{lints:?}");
}

#[test]
fn prefixes_and_recipes_are_written_out() {
    let case = |cuts: &str| {
        json!({
            "id": "cut-at", "rule": "truncated", "versions": "4", "cite": ["DescribeConfigsRequest"], "requires": "As above.",
            "bytes": { "4": ["02 02", { "repeat": 3, "bytes": "01" }] }, "cuts": { "4": cuts }, "parent": "smallest", "mutation": "cut",
        })
    };
    let file = |case: Json| json!({ "message": "DescribeConfigsRequest", "cases": [case] }).to_string();
    let loaded = CASES
        .vectors
        .unasked(definitions::bundled(), &Files::read(&[("describe-configs-request.json", &file(case("0-1,3")))]))
        .unwrap_or_else(|lints| panic!("{lints:?}"));
    let cases: Vec<(&str, &[u8])> =
        loaded.cases.iter().map(|case| (case.id.as_str(), case.bytes.as_deref().unwrap())).collect();
    let id = "codec/describe-configs-request/v4/cut-at";
    let wanted: [(&str, &[u8]); 3] =
        [(&format!("{id}-0"), &[]), (&format!("{id}-1"), &[2]), (&format!("{id}-3"), &[2, 2, 1])];
    assert_eq!(cases, wanted);
    for cuts in ["", "x", "3-1", "0-5", "-1", "1,,2"] {
        assert!(lints(case(cuts)).iter().any(|lint| lint.contains("cuts of version 4")), "{cuts}");
    }
    let long = |bytes: Json| {
        json!({
            "id": "long", "rule": "left-over", "versions": "4", "cite": ["DescribeConfigsRequest"], "requires": "As above.",
            "bytes": { "4": bytes }, "parent": "smallest", "mutation": "bytes added",
        })
    };
    let overlong = |bytes: Json| {
        let file = file(long(bytes));
        Files::read(&[("describe-configs-request.json", &file)]).overlong()
    };
    let lints = overlong(json!(format!("01000000{}", "ff".repeat(300))));
    assert!(lints[0].what.starts_with("bytes of version 4: write what repeats or counts up"), "{lints:?}");
    assert_eq!(overlong(json!(["01000000", { "repeat": 300, "bytes": "ff" }])), Vec::new());
    let recipes = json!([[{ "repeat": 2, "value": { "a": { "repeat": 3, "text": "xy" } } }], { "hex": { "repeat": 2, "text": "0a" } }]);
    let wanted = json!([[{ "a": "xyxyxy" }, { "a": "xyxyxy" }], { "hex": "0a0a" }]);
    assert_eq!(kafka_conform::recipe::expand(&recipes), Ok(wanted));
}

#[test]
fn nothing_that_follows_from_the_definitions_is_missing() {
    let protocol = definitions::bundled();
    for spec in protocol.messages() {
        let known: Vec<&Vector> = CASES.vectors.cases.iter().filter(|case| case.spec.name == spec.name).collect();
        let missing = kafka_conform::derive::missing(protocol, spec, &known).unwrap();
        assert!(missing.is_empty(), "{}: {:?}", spec.name, missing.iter().map(|case| &case.slug).collect::<Vec<_>>());
    }
}

#[test]
fn without_cases_each_kind_is_derived() {
    let protocol = definitions::bundled();
    let derived =
        kafka_conform::derive::missing(protocol, protocol.message("DescribeConfigsRequest").unwrap(), &[]).unwrap();
    // A slug that several versions need says which it is of.
    let of = |slug: &str, version: i16| {
        let named = |case: &&kafka_conform::derive::Derived| {
            case.slug.strip_prefix(slug).is_some_and(|rest| rest.is_empty() || rest.starts_with("-v"))
                && (case.versions.0..=case.versions.1).contains(&version)
        };
        derived.iter().find(named).unwrap_or_else(|| panic!("no {slug} of version {version}"))
    };
    let bytes = |slug: &str, version: i16| &of(slug, version).bytes[&version];
    // Made by hand from the guide: one resource of type 0 with the name "" and one key "", no options.
    assert_eq!(*bytes("smallest", 4), [2, 0, 1, 2, 1, 0, 0, 0, 0]);
    assert_eq!(*bytes("smallest", 0), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    // Eight bytes follow the count of resources: one more is too many, which as a compact count is ten.
    assert_eq!(bytes("resources-claims-past-end", 4)[0], 10);
    assert_eq!(bytes("resources-resource-name-127", 4)[2..4], [0x80, 0x01]);
    assert_eq!(*bytes("resources-configuration-keys-null", 4), [2, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(*bytes("include-synonyms-2", 4), [2, 0, 1, 2, 1, 0, 2, 0, 0]);
    assert_eq!(*bytes("tags-unordered", 4), [2, 0, 1, 2, 1, 0, 0, 0, 2, 10, 1, 0xbb, 9, 1, 0xaa]);
    assert_eq!(*bytes("unknown-tag-size-two-bytes", 4), [2, 0, 1, 2, 1, 0, 0, 0, 1, 9, 0x81, 0, 0xaa]);
    // Four bytes follow the length of the key: five are claimed, which as a compact length is six.
    assert_eq!(*bytes("resources-configuration-keys-element-claims-past-end", 4), [2, 0, 1, 2, 6, 0, 0, 0, 0]);
    assert_eq!(*bytes("resources-configuration-keys-element-null", 0), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff]);
    assert_eq!(*bytes("resources-lowest", 0), [0x80, 0, 0, 0]);
    assert_eq!(
        *bytes("resources-configuration-keys-null-five-bytes", 4),
        [2, 0, 1, 0x80, 0x80, 0x80, 0x80, 0, 0, 0, 0, 0]
    );
    let cuts = |slug: &str| of(slug, 4).cuts[&4].iter().copied().collect::<Vec<_>>();
    assert_eq!((cuts("cut-at"), cuts("cut-before-tags")), (vec![0, 1, 2, 3, 4, 6, 7], vec![5, 8]));
    let rules: std::collections::BTreeSet<&str> = derived.iter().map(|case| case.rule).collect();
    let wanted = [
        "bool-other",
        "compact-string-long",
        "encode-field-not-in-version",
        "encode-not-encodable",
        "encode-tags-unordered",
        "left-over",
        "missing-tag-section",
        "negative-length-nullable",
        "not-utf8",
        "null-array-not-nullable",
        "null-not-nullable",
        "tag-count-negative",
        "tag-repeated",
        "tag-reserved",
        "tags-unordered",
        "truncated",
        "unknown-tags",
        "uvarint-high-bits",
        "uvarint-non-minimal",
        "uvarint-overlong",
        "well-formed",
    ];
    assert_eq!(rules.into_iter().collect::<Vec<_>>(), wanted);
}

#[test]
fn how_many_replacement_characters_stand_for_bad_bytes_is_left_open() {
    let id = "codec/describe-configs-request/v4/resources-resource-name-surrogate-v3";
    let case = case(id);
    for (text, class) in [
        ("\u{fffd}", None),
        ("\u{fffd}\u{fffd}\u{fffd}", None),
        ("", Some(Class::WrongValue)),
        ("?", Some(Class::WrongValue)),
    ] {
        let mut value = case.value.clone().unwrap();
        value["Resources"][0]["ResourceName"] = text.into();
        assert_eq!(judged(id, Op::Decode, &Observation::Value(value, 0)).1, class, "{text:?}");
    }
}

#[test]
fn the_same_bytes_are_not_two_cases() {
    let case = |id: &str| {
        json!({
            "id": id, "rule": "well-formed", "versions": "4", "cite": ["KIP-482"], "requires": "As above.", "bytes": { "4": "01000000" },
            "value": {}, "source": ["kafka-clients@4.4.0", "kmsg@1.15.1"],
        })
    };
    let file = json!({ "message": "DescribeConfigsRequest", "cases": [case("one"), case("two")] }).to_string();
    let text = |name: &str| std::fs::read_to_string(format!("{ROOT}/vectors/{name}")).unwrap();
    let files = [("describe-configs-request.json", file.as_str())];
    let lints = Vectors::load(definitions::bundled(), &text("rules.json"), &text("sources.json"), &Files::read(&files))
        .unwrap_err();
    assert!(lints.iter().any(|lint| lint.what.contains("the same bytes as")), "{lints:?}");
}

#[test]
fn every_layout_that_is_wrong_in_one_thing_is_caught_by_a_case() {
    let covered = kafka_conform::coverage::measure(definitions::bundled(), &CASES.vectors).unwrap();
    assert!(covered.len() > 2000, "{}", covered.len());
    let untested: Vec<_> = covered.iter().filter(|mutant| mutant.caught_by.is_none()).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

/// Versions that are the same on the wire, by what the definitions say changed: the first two of DescribeConfigs,
/// AlterConfigs and ApiVersions went up for quotas alone (KIP-219), later ones of ApiVersions for what a broker may list.
const SAME_ON_THE_WIRE: [(&str, &[i16]); 7] = [
    ("DescribeConfigsRequest", &[1, 2]),
    ("DescribeConfigsResponse", &[1, 2]),
    ("AlterConfigsRequest", &[0, 1]),
    ("AlterConfigsResponse", &[0, 1]),
    ("ApiVersionsRequest", &[0, 1, 2]),
    ("ApiVersionsResponse", &[1, 2]),
    ("ApiVersionsResponse", &[3, 4, 5]),
];

#[test]
fn versions_that_are_the_same_on_the_wire_are_so_in_layouts_and_cases() {
    let protocol = definitions::bundled();
    let layout = |message: &str, version| protocol.layout(message, codec::ApiVersion(version)).unwrap();
    for (message, versions) in SAME_ON_THE_WIRE {
        let bodies = |version| {
            CASES.vectors.cases.iter().filter(move |case| {
                &*case.spec.name == message && case.version.0 == version && case.part.name() == "body"
            })
        };
        let [first, rest @ ..] = versions else { panic!("{message}: no versions") };
        let by_value = |version| -> BTreeMap<String, BTreeSet<&[u8]>> {
            let mut found = BTreeMap::<String, BTreeSet<&[u8]>>::new();
            for case in bodies(version).filter(|case| case.rule.id == "well-formed") {
                let value = case.value.as_ref().unwrap().to_string();
                found.entry(value).or_default().insert(case.bytes.as_deref().unwrap());
            }
            found
        };
        for other in rest {
            // One value, one encoding; and whatever is a case at one version is read alike at the other.
            let (one, two) = (by_value(*first), by_value(*other));
            let shared: Vec<_> = one.keys().filter(|value| two.contains_key(*value)).collect();
            assert!(!shared.is_empty(), "{message} {first} and {other}: no case has both");
            for value in shared {
                assert_eq!((one[value].len(), &one[value]), (1, &two[value]), "{message} {first} and {other}: {value}");
            }
            let (one, two) = (layout(message, *first), layout(message, *other));
            for case in bodies(*first).chain(bodies(*other)) {
                let Some(bytes) = &case.bytes else {
                    let value = case.value.as_ref().unwrap();
                    let encoded = [&one, &two].map(|layout| {
                        codec::encode(layout, &codec::Value::from_json(layout, value, codec::AbsentFields::Keep).ok()?)
                            .ok()
                    });
                    assert_eq!(encoded[0], encoded[1], "{}", case.id);
                    continue;
                };
                let [one, two] = [&one, &two].map(|layout| {
                    let decoded = codec::decode(layout, bytes).map_err(|error| error.to_string())?;
                    let value = decoded.view().value();
                    Ok::<_, String>((decoded.left(), codec::encode(layout, &value).ok(), value.to_json()))
                });
                assert_eq!(one, two, "{}", case.id);
            }
        }
    }
}

#[test]
fn known_tags_are_changed_inside_and_their_size_goes_with_them() {
    let protocol = definitions::bundled();
    let derived =
        kafka_conform::derive::missing(protocol, protocol.message("ApiVersionsResponse").unwrap(), &[]).unwrap();
    let of = |slug: &str| derived.iter().find(|case| case.slug == slug).unwrap_or_else(|| panic!("no {slug}"));
    // By hand: no error, one API, no throttle time, and tag 0: one feature, its name "", its versions 0 to 0.
    let with = |tag: &str| codec::parse_hex(&format!("0000 02 0000 0000 0000 00 00000000 01 {tag}")).unwrap();
    assert_eq!(of("supported-features-1").bytes[&3], with("00 07 02 01 0000 0000 00"));
    let claims = of("supported-features-claims-100-million");
    assert_eq!(claims.bytes[&3], with("00 0a 81c2d72f 01 0000 0000 00"));
    assert_eq!((claims.parent.as_deref(), claims.rule), (Some("supported-features-1"), "truncated"));
    let bit_32 = of("supported-features-known-tag-number-bit-32");
    assert_eq!(bit_32.bytes[&3], with("8080808010 07 02 01 0000 0000 00"));
    assert_eq!(bit_32.value, of("supported-features-1").value);
    assert_eq!(of("zk-migration-ready-255").bytes[&3], with("03 01 ff"));
    assert_eq!(of("supported-features-tags-2-32-minus-1").bytes[&3], with("00 0b 02 01 0000 0000 ffffffff0f"));
}

#[test]
fn tags_given_out_of_order_are_refused_sorted_or_dropped() {
    let id = "codec/describe-configs-request/v4/encode-tags-descending";
    // One resource of type 0 with the name "" and the key "", no options; tag 10 was given before tag 9.
    let written =
        |tags: &str| Observation::Bytes(codec::parse_hex(&format!("02 00 01 02 01 00 00 00 {tags}")).unwrap());
    let said = |tags: &str| judged(id, Op::Encode, &written(tags));
    assert_eq!(judged(id, Op::Encode, &Observation::Refused("no".into())), (Verdict::Pass, None));
    assert_eq!(said("02 09 01 01 0a 01 02"), (Verdict::Variant, None));
    assert_eq!(said("00"), (Verdict::Variant, None));
    assert_eq!(said("02 0a 01 02 09 01 01"), (Verdict::Fail, Some(Class::WrongBytes)));
    assert_eq!(said("01 0a 01 02"), (Verdict::Fail, Some(Class::WrongBytes)));
}

#[test]
fn unknown_tags_are_written_in_ascending_order_however_they_are_given() {
    let case = case("codec/api-versions-response/v3/known-and-unknown-tags");
    let mut value = case.value.clone().unwrap();
    value["_tags"].as_array_mut().unwrap().reverse();
    assert_ne!(value, case.value.clone().unwrap());
    let given = case.layout.from_json(&value, codec::AbsentFields::Keep).unwrap();
    assert_eq!(case.layout.encode(&given).unwrap(), case.bytes.clone().unwrap());
}

/// Hash of a case by its id in a file of DescribeConfigsRequest, that is not linted for authors.
fn contents(case: Json) -> BTreeMap<String, String> {
    let file = json!({ "message": "DescribeConfigsRequest", "cases": [case] }).to_string();
    let files = [("describe-configs-request.json", file.as_str())];
    let loaded = CASES.vectors.unasked(definitions::bundled(), &Files::read(&files));
    loaded.unwrap_or_else(|lints| panic!("{lints:?}"));
    Files::read(&files).contents().unwrap()
}

#[test]
fn an_id_stands_for_one_case_for_ever() {
    let good = json!({
        "id": "one", "rule": "well-formed", "versions": "4", "cite": ["KIP-482"], "requires": "As above.",
        "bytes": { "4": "01 00 00 00" }, "value": { "Resources": [], "IncludeSynonyms": false, "IncludeDocumentation": false },
    });
    let with = |changes: &[(&str, Json)]| {
        let mut case = good.clone();
        changes.iter().for_each(|(key, value)| case[*key] = value.clone());
        contents(case)
    };
    let recorded = contents(good.clone());
    let mut ids = Ids::default();
    assert_eq!(ids.lints(&recorded).len(), 1, "an id that is not recorded");
    assert_eq!((ids.record(&recorded), ids.record(&recorded)), (1, 0));
    assert_eq!(Ids::parse(&ids.to_text()).as_ref(), Ok(&ids));
    let says = |ids: &Ids, contents: &BTreeMap<String, String>| -> String {
        ids.lints(contents).iter().map(|(id, what)| format!("{id}: {what}")).collect::<Vec<_>>().join(" | ")
    };
    assert_eq!(says(&ids, &recorded), "");

    // Who made it, where it was seen and how it is said is not what it is.
    for (key, value) in [
        ("source", json!(["kafka-clients@4.4.0"])),
        ("cite", json!(["KIP-482", "apache/kafka#9046"])),
        ("requires", json!("Said otherwise.")),
        ("bytes", json!({ "4": "0100 0000" })),
        ("bytes", json!({ "4": ["01", { "repeat": 3, "bytes": "00" }] })),
        ("versions", json!("4-4")),
        ("part", json!("body")),
        ("value", json!({ "IncludeDocumentation": false, "IncludeSynonyms": false, "Resources": [] })),
    ] {
        assert_eq!(with(&[(key, value)]), recorded, "{key}");
    }
    let resource = json!([{ "ResourceType": 0, "ResourceName": "", "ConfigurationKeys": [] }]);
    let of_two = |resources: Json| {
        let value = json!({ "Resources": resources, "IncludeSynonyms": false, "IncludeDocumentation": false });
        with(&[("bytes", json!({ "4": "03 00010100 00010100 000000" })), ("value", value)])
    };
    assert_eq!(of_two(json!([{ "repeat": 2, "value": resource[0] }])), of_two(json!([resource[0], resource[0]])));
    // Anything else makes it another case.
    for changes in [
        vec![
            ("bytes", json!({ "4": "0200010100000000" })),
            ("value", json!({ "Resources": resource, "IncludeSynonyms": false, "IncludeDocumentation": false })),
        ],
        vec![("versions", json!("3-4")), ("bytes", json!({ "3": "000000000000", "4": "01000000" }))],
        vec![("rule", json!("truncated")), ("bytes", json!({ "4": "010000" })), ("value", Json::Null)],
        vec![("cuts", json!({ "4": "0-2" })), ("rule", json!("truncated")), ("value", Json::Null)],
        vec![("cuts", json!({ "4": "0-1" })), ("rule", json!("truncated")), ("value", Json::Null)],
    ] {
        let changed = with(&changes);
        assert!(says(&ids, &changed).contains("give the case a new id"), "{changes:?}");
        let mut again = ids.clone();
        assert_eq!((again.record(&changed), &again), (0, &ids), "recording changes no id");
    }
    let different: BTreeSet<String> = [json!({ "4": "0-1" }), json!({ "4": "0-2" })]
        .map(|cuts| with(&[("cuts", cuts), ("rule", json!("truncated")), ("value", Json::Null)]))
        .into_iter()
        .flat_map(BTreeMap::into_values)
        .collect();
    assert_eq!(different.len(), 2);

    let prefixes =
        |cuts: &str| with(&[("cuts", json!({ "4": cuts })), ("rule", json!("truncated")), ("value", Json::Null)]);
    assert_eq!(prefixes("0-2"), prefixes("0-1,2"), "the same lengths");

    // An id without a case is retired, and does not come back.
    assert!(says(&ids, &BTreeMap::new()).contains("describe-configs-request/one: no case has this id any more"));
    let hash = &recorded["describe-configs-request/one"];
    let mut retired = Ids::parse(&ids.to_text().replace(hash, "retired")).unwrap();
    assert_eq!(says(&retired, &BTreeMap::new()), "");
    assert!(says(&retired, &recorded).contains("this id is retired: give the case a new one"));
    assert_eq!(retired.record(&recorded), 0);
    assert!(says(&retired, &recorded).contains("retired"));
    for text in
        ["a", "a b", "a 0123456", "b 01234567\na 01234567", "a 01234567\na 89abcdef", "a  01234567", " 01234567 "]
    {
        assert!(Ids::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn an_id_of_a_broker_or_client_case_stands_for_all_but_its_wording() {
    let good = json!({
        "id": "one", "versions": "1", "level": "must", "cite": ["KIP-133"], "requires": "As above.",
        "steps": [{ "send": { "hex": "00 01" }, "expect": "closed" }],
        "variants": [{ "expect": 42, "note": "Older ones." }],
    });
    let of = |case: Json| {
        let file = json!({ "api": "AlterConfigs", "cases": [case] }).to_string();
        kafka_conform::exchange::contents("broker", &[("alter-configs.json", &file)]).unwrap()
    };
    let with = |pointer: &str, value: Json| {
        let mut case = good.clone();
        *case.pointer_mut(pointer).unwrap() = value;
        of(case)
    };
    let recorded = of(good.clone());
    assert_eq!(recorded.keys().collect::<Vec<_>>(), ["broker/alter-configs/one"]);
    for (pointer, value) in [
        ("/cite", json!(["KIP-226"])),
        ("/requires", json!("Said otherwise.")),
        ("/variants/0/note", json!("Newer ones.")),
        ("/versions", json!("1-1")),
        ("/steps/0/send/hex", json!("0001")),
        ("/steps/0", json!({ "expect": "closed", "send": { "hex": "0001" } })),
    ] {
        assert_eq!(with(pointer, value), recorded, "{pointer}");
    }
    for (pointer, value) in [
        ("/versions", json!("1-2")),
        ("/level", json!("should")),
        ("/steps/0/send/hex", json!("0002")),
        ("/steps/0/expect", json!("silent")),
        ("/variants/0/expect", json!(43)),
        ("/variants", json!([])),
    ] {
        assert_ne!(with(pointer, value), recorded, "{pointer}");
    }
}

#[test]
fn every_id_is_recorded() {
    let ids = Ids::parse(Cases::bundled_ids()).unwrap();
    let (_, contents) = Texts::bundled().lint(definitions::bundled()).unwrap_or_else(|lints| panic!("{lints:?}"));
    assert_eq!(ids.lints(&contents), Vec::new());
    assert_eq!(ids.to_text(), Cases::bundled_ids());
    let mut of_files: BTreeSet<&str> = contents.keys().map(|id| id.split('/').next().unwrap()).collect();
    let of = |role: &str| contents.keys().filter(|id| id.split('/').next() == Some(role)).count();
    let rules = CASES.vectors.rules.len();
    assert_eq!((of("broker"), of("client"), of("rule")), (CASES.exchanges.len(), CASES.clients.len(), rules));
    assert!(["broker", "client", "rule"].into_iter().all(|kind| of_files.remove(kind)));
    assert_eq!(of_files.len(), std::fs::read_dir(format!("{ROOT}/vectors/codec")).unwrap().count());
}
