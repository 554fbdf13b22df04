//! The commands that show and make bytes: `decode`, `encode`, `layout`. Expected offsets, sizes and values come from
//! published byte listings and captured frames, not from this program's output.

use codec::{ApiVersion, FrameLayout, MessageKind, Protocol, encode, encode_frame};
use kafka_conform::definitions::bundled;
use kafka_conform::dump::{Kind, Line, Message, Parts, example_value, object_tree};
use serde_json::{Value as Json, json};
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// AlterConfigs v2, the smallest request and response.
const ALTER_CONFIGS_REQUEST: &str = "00000015 0021 0002 00000000 0000 00 02 00 01 02 01 01 00 00 00 00";
const ALTER_CONFIGS_RESPONSE: &str = "00000011 00000000 00 00000000 02 0000 01 00 01 00 00";

fn binary() -> String {
    // At run time: the compiler wrapper is a shell script, and shells drop variables with a hyphen.
    std::env::var("CARGO_BIN_EXE_kafka-conform").expect("cargo says where the binary is")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env_remove("CLICOLOR");
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).stdin(Stdio::null()).output().expect("the binary runs")
}

fn run_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("piped").write_all(input).expect("it reads its input");
    child.wait_with_output().expect("it ends")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("output is text")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("errors are text")
}

/// Exit code, and what is said about it.
fn check_failure(arguments: &[&str], code: i32, says: &[&str]) {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    for text in says {
        assert!(stderr(&output).contains(text), "{arguments:?} does not say {text:?}: {}", stderr(&output));
    }
}

fn decode_json(arguments: &[&str], code: i32) -> Json {
    let output = run(&[&["decode", "--format", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Name, offset and length of each line of an object tree, in order.
fn tree(text: &str) -> Vec<(String, usize, usize)> {
    let line = |line: &str| {
        let (before, after) = line.split_once("[0x")?;
        let (offset, rest) = after.split_once(", ")?;
        let (length, _) = rest.split_once("B]")?;
        let name = before.trim_start_matches(['|', '+', '-', ' ']).split_whitespace().next()?;
        Some((name.to_owned(), usize::from_str_radix(offset, 16).ok()?, length.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn owned(lines: &[(&str, usize, usize)]) -> Vec<(String, usize, usize)> {
    lines.iter().map(|&(name, offset, length)| (name.to_owned(), offset, length)).collect()
}

/// Lines of the published listing of AlterConfigs v2.
const REQUEST_TREE: &[(&str, usize, usize)] = &[
    ("AlterConfigsRequest", 0x00, 25),
    ("Frame", 0x00, 4),
    ("size", 0x00, 4),
    ("RequestHeader", 0x04, 11),
    ("RequestApiKey", 0x04, 2),
    ("RequestApiVersion", 0x06, 2),
    ("CorrelationId", 0x08, 4),
    ("ClientId", 0x0c, 2),
    ("tagged_fields", 0x0e, 1),
    ("AlterConfigsRequest", 0x0f, 10),
    ("Resources", 0x0f, 8),
    ("length", 0x0f, 1),
    ("AlterConfigsResource[0]", 0x10, 7),
    ("ResourceType", 0x10, 1),
    ("ResourceName", 0x11, 1),
    ("Configs", 0x12, 4),
    ("length", 0x12, 1),
    ("AlterableConfig[0]", 0x13, 3),
    ("Name", 0x13, 1),
    ("Value", 0x14, 1),
    ("tagged_fields", 0x15, 1),
    ("tagged_fields", 0x16, 1),
    ("ValidateOnly", 0x17, 1),
    ("tagged_fields", 0x18, 1),
];
const RESPONSE_TREE: &[(&str, usize, usize)] = &[
    ("AlterConfigsResponse", 0x00, 21),
    ("Frame", 0x00, 4),
    ("size", 0x00, 4),
    ("ResponseHeader", 0x04, 5),
    ("CorrelationId", 0x04, 4),
    ("tagged_fields", 0x08, 1),
    ("AlterConfigsResponse", 0x09, 12),
    ("ThrottleTimeMs", 0x09, 4),
    ("Responses", 0x0d, 7),
    ("length", 0x0d, 1),
    ("AlterConfigsResourceResponse[0]", 0x0e, 6),
    ("ErrorCode", 0x0e, 2),
    ("ErrorMessage", 0x10, 1),
    ("ResourceType", 0x11, 1),
    ("ResourceName", 0x12, 1),
    ("tagged_fields", 0x13, 1),
    ("tagged_fields", 0x14, 1),
];

#[test]
fn layout_of_alter_configs_is_that_of_the_published_listing() {
    let output = run(&["layout", "AlterConfigs", "2"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    assert_eq!(tree(text), owned(&[REQUEST_TREE, RESPONSE_TREE].concat()));
    let facts = [
        ("API key", "33"),
        ("encoded at", "v2"),
        ("flexible versions", "2+"),
        ("headers", "request v2, response v1"),
        ("request versions", "0-2"),
        ("response versions", "0-2"),
        ("request size", "25 bytes"),
        ("response size", "21 bytes"),
    ];
    for (name, value) in facts {
        let stated = text.lines().find_map(|line| line.trim_start().strip_prefix(name)).map(str::trim);
        assert_eq!(stated, Some(value), "{name}");
    }
    for values in [
        "int32                   = 21 ",
        "= 33 (AlterConfigs) ",
        "= \"\" (int16 len=0) ",
        "= 2 (compact, n+1) ",
        "= \"\" (compact, len+1=1) ",
        "= false ",
        "AlterConfigsRequest v2, request header v2, 25 bytes on the wire",
        "AlterConfigsResponse v2, response header v1, 21 bytes on the wire",
        "0000  00 00 00 15 00 21 00 02 00 00 00 00 00 00 00 02 ",
        "0010  00 01 02 01 01 00 00 00 00 ",
        "0000  00 00 00 11 00 00 00 00 00 00 00 00 00 02 00 00 ",
        "0010  01 00 01 00 00 ",
        // Frame, header, body and tagged fields, a letter a byte.
        "  ffffhhhhhhhhhhtb  ",
        "\"flexibleVersions\": \"2+\",",
        "// Version 2: ",
        "\"type\": \"[]AlterableConfig\"",
    ] {
        assert!(text.contains(values), "{values:?} is missing:\n{text}");
    }
    assert!(text.lines().all(|line| line.trim_end() == line), "no line ends with blanks");
}

#[test]
fn an_api_goes_by_name_key_or_message() {
    let by_name = run(&["layout", "AlterConfigs", "2", "--request"]);
    assert_eq!(tree(stdout(&by_name)), owned(REQUEST_TREE));
    assert_eq!(run(&["layout", "33", "v2", "--request"]).stdout, by_name.stdout);
    let by_message = run(&["layout", "AlterConfigsResponse", "2"]);
    assert_eq!(tree(stdout(&by_message)), owned(RESPONSE_TREE));
}

#[test]
fn a_header_is_a_message_of_its_own() {
    let output = run(&["layout", "RequestHeader", "2"]);
    let fields =
        [("RequestHeader", 0, 11), ("RequestApiKey", 0, 2), ("RequestApiVersion", 2, 2), ("CorrelationId", 4, 4)];
    let rest = [("ClientId", 8, 2), ("tagged_fields", 10, 1)];
    assert_eq!(tree(stdout(&output)), owned(&[&fields[..], &rest[..]].concat()));
}

#[test]
fn the_diagram_of_describe_configs_is_the_published_one() {
    let output = run(&["layout", "DescribeConfigs", "4", "--response", "--diagram"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    // The order of the wire: what is in an array stands below it.
    let fields = [
        ("message_size", "int32 · 4B"),
        ("CorrelationId", "int32 · 4B"),
        ("tagged", "var"),
        ("ThrottleTimeMs", "int32 · 4B"),
        ("Results", "array (compact)"),
        ("ErrorCode", "int16 · 2B"),
        ("ErrorMessage?", "string (compact)"),
        ("ResourceType", "int8 · 1B"),
        ("ResourceName", "string (compact)"),
        ("Configs", "array (compact)"),
        ("Name", "string (compact)"),
        ("Value?", "string (compact)"),
        ("ReadOnly", "bool · 1B"),
        ("ConfigSource", "int8 · 1B"),
        ("IsSensitive", "bool · 1B"),
        ("Synonyms", "array (compact)"),
        ("Name", "string (compact)"),
        ("Value?", "string (compact)"),
        ("Source", "int8 · 1B"),
        ("tagged", "var"),
        ("ConfigType", "int8 · 1B"),
        ("Documentation?", "string (compact)"),
        ("tagged", "var"),
        ("tagged", "var"),
        ("tagged", "var"),
    ];
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ") && !line.contains("+-")).collect();
    assert_eq!(rows.len(), fields.len(), "{text}");
    for (row, (name, type_name)) in rows.iter().zip(fields) {
        let row = row.trim_matches(['|', ' ']);
        let rest = row.strip_prefix(name).unwrap_or_else(|| panic!("{name} is not in {row:?}"));
        assert!(rest.trim_start().starts_with(type_name), "{row:?} is not {type_name}");
    }
    let schema = r#"{
  "ThrottleTimeMs": int32,
  "Results": [{
      "ErrorCode": int16,
      "ErrorMessage": string?,
      "ResourceType": int8,
      "ResourceName": string,
      "Configs": [{
          "Name": string,
          "Value": string?,
          "ReadOnly": bool,
          "ConfigSource": int8,
          "IsSensitive": bool,
          "Synonyms": [{
              "Name": string,
              "Value": string?,
              "Source": int8
          }],
          "ConfigType": int8,
          "Documentation": string?
      }]
  }]
}"#;
    assert!(text.contains(schema), "{text}");
    let (_, example) = text.split_once("\nexample\n").expect("there is an example");
    let example: Json = serde_json::from_str(example).expect("the example is JSON");
    let keys = |json: &Json| json.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>().join(" "));
    assert_eq!(keys(&example).as_deref(), Some("ThrottleTimeMs Results"));
    let result = &example["Results"][0];
    assert_eq!(keys(result).as_deref(), Some("ErrorCode ErrorMessage ResourceType ResourceName Configs"));
    let config = &result["Configs"][0];
    let names = "Name Value ReadOnly ConfigSource IsSensitive Synonyms ConfigType Documentation";
    assert_eq!(keys(config).as_deref(), Some(names));
    assert_eq!(keys(&config["Synonyms"][0]).as_deref(), Some("Name Value Source"));
    assert_eq!(config["Synonyms"][0]["Value"], "604800000");
}

#[test]
fn every_message_has_a_layout_and_a_diagram_at_every_version() {
    for spec in bundled().messages() {
        for version in spec.valid_versions.iter() {
            for extra in [&[][..], &["--diagram"]] {
                let version = version.to_string();
                let output = run(&[&["layout", &spec.name, &version], extra].concat());
                assert_eq!(output.status.code(), Some(0), "{} {version} {extra:?}: {output:?}", spec.name);
            }
        }
    }
}

#[test]
fn decode_places_every_field() {
    for (direction, frame, expected) in [
        (&["--request"][..], ALTER_CONFIGS_REQUEST, REQUEST_TREE),
        (&["--response", "--api", "AlterConfigs", "--version", "2"], ALTER_CONFIGS_RESPONSE, RESPONSE_TREE),
    ] {
        let output = run(&[&["decode"], direction, &[frame]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(tree(stdout(&output)), owned(expected));
        assert!(stdout(&output).starts_with("AlterConfigs") && stdout(&output).contains(": valid\n"));
    }
}

#[test]
fn json_output_has_values_places_and_paths() {
    let json = decode_json(&["--request", ALTER_CONFIGS_REQUEST], 0);
    let keys: Vec<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, ["message", "version", "header", "value", "nodes", "anomalies", "error"]);
    assert_eq!(json["message"], "AlterConfigsRequest");
    assert_eq!(json["version"], 2);
    assert_eq!(
        json["header"],
        json!({ "RequestApiKey": 33, "RequestApiVersion": 2, "CorrelationId": 0, "ClientId": "" })
    );
    let resource = json!({ "ResourceType": 0, "ResourceName": "", "Configs": [{ "Name": "", "Value": "" }] });
    assert_eq!(json["value"], json!({ "Resources": [resource], "ValidateOnly": false }));
    assert_eq!((&json["anomalies"], &json["error"]), (&json!([]), &Json::Null));
    let nodes = json["nodes"].as_array().expect("nodes");
    for (path, type_name, offset, length) in [
        ("size", "int32", 0, 4),
        ("header.RequestApiKey", "int16", 4, 2),
        ("header.ClientId", "string", 12, 2),
        ("header._tags", "uvarint", 14, 1),
        ("", "struct", 15, 10),
        ("Resources", "[]AlterConfigsResource", 15, 8),
        ("Resources.length", "uvarint", 15, 1),
        ("Resources[0]", "AlterConfigsResource", 16, 7),
        ("Resources[0].Configs[0].Value", "string", 20, 1),
        ("Resources[0].Configs[0]._tags", "uvarint", 21, 1),
        ("ValidateOnly", "bool", 23, 1),
        ("_tags", "uvarint", 24, 1),
    ] {
        let node = json!({ "path": path, "type": type_name, "offset": offset, "length": length });
        assert!(nodes.contains(&node), "{node} is not in {nodes:?}");
    }
    // Every line of the listing but the message's own and the frame's.
    assert_eq!(nodes.len(), REQUEST_TREE.len() - 2);
}

#[test]
fn captured_frames_decode_to_what_was_meant() {
    // A null and an empty client id before a header's tag section.
    for (frame, client_id) in [
        ("000000100012000300000001ffff000278023100", Json::Null),
        ("0000001000120003000000010000000278023100", json!("")),
    ] {
        let json = decode_json(&["--request", frame], 0);
        assert_eq!(json["header"]["ClientId"], client_id);
        assert_eq!(json["value"], json!({ "ClientSoftwareName": "x", "ClientSoftwareVersion": "1" }));
    }
    let java = "0000002b0012000300000000000761646d696e2d3100126170616368652d6b61666b612d6a61766106332e332e3100";
    let json = decode_json(&["--request", java], 0);
    assert_eq!(json["header"]["ClientId"], "admin-1");
    assert_eq!(json["value"], json!({ "ClientSoftwareName": "apache-kafka-java", "ClientSoftwareVersion": "3.3.1" }));
    let describe = "000000170020000400000001ffff000202056e6f70650000000000";
    let json = decode_json(&["--request", describe], 0);
    assert_eq!(
        json["value"]["Resources"][0],
        json!({ "ResourceType": 2, "ResourceName": "nope", "ConfigurationKeys": null })
    );
    // The answers of DescribeConfigs v3 and v4 with and without documentation.
    let v3 = "0000003a0000000100000000000000010000ffff020005616c70686100000001000c726574656e74696f6e2e6d7300043130303000\
              01000000000005ffff";
    let json = decode_json(&["--response", "--api", "32", "--version", "3", v3], 0);
    let config = &json["value"]["Results"][0]["Configs"][0];
    assert_eq!((&config["ConfigType"], &config["Documentation"]), (&json!(5), &Json::Null));
    let v4 =
        "00000031000000010000000000020000000206616c706861020d726574656e74696f6e2e6d73053130303000010001050264000000";
    let json = decode_json(&["--response", "--api", "DescribeConfigs", "--version", "4", v4], 0);
    let config = &json["value"]["Results"][0]["Configs"][0];
    assert_eq!((&config["Value"], &config["Documentation"]), (&json!("1000"), &json!("d")));
}

#[test]
fn an_unknown_tag_is_kept_and_placed() {
    let frame = "0000001c00200004000000010001740109027a7a0202056e6f70650000000000";
    let json = decode_json(&["--request", frame], 0);
    assert_eq!(json["header"]["_tags"], json!([{ "tag": 9, "hex": "7a7a" }]));
    let tag = json!({ "path": "header._tags[9]", "type": "tagged field", "offset": 16, "length": 4 });
    assert!(json["nodes"].as_array().expect("nodes").contains(&tag));
    assert_eq!(json["anomalies"], json!([]));
}

#[test]
fn liberties_are_told_with_rule_and_place() {
    let cases = [
        // Two bytes after the body.
        ("0000001a0020000400000001000174000202056e6f70650000000000dead", "left-over", "", 28, 2),
        // The count of the resources in two bytes.
        ("00000019002000040000000100017400820002056e6f70650000000000", "uvarint-non-minimal", "Resources", 16, 2),
        // A bool of 2.
        ("00000015 0021 0002 00000000 0000 00 02 00 01 02 01 01 00 00 02 00", "bool-other", "ValidateOnly", 23, 1),
        // Keys with a count of -2.
        (
            "0000001b0020000100000001000174000000010200046e6f7065fffffffe00",
            "negative-length-nullable",
            "Resources[0].ConfigurationKeys",
            26,
            4,
        ),
    ];
    for (frame, rule, path, offset, length) in cases {
        let json = decode_json(&["--request", frame], 0);
        assert_eq!(json["error"], Json::Null);
        let anomaly = &json["anomalies"][0];
        assert_eq!(
            (&anomaly["rule"], &anomaly["path"], &anomaly["offset"], &anomaly["length"]),
            (&json!(rule), &json!(path), &json!(offset), &json!(length))
        );
        assert!(anomaly["what"].is_string());
        let text = run(&["decode", "--request", frame]);
        assert_eq!(text.status.code(), Some(0));
        assert!(stdout(&text).contains(&format!("(rule {rule})")), "{}", stdout(&text));
        assert!(stdout(&text).contains("<-- ") && stdout(&text).contains("^^"), "it is pointed at");
    }
}

#[test]
fn bytes_that_do_not_decode_give_the_tree_so_far() {
    let cases = [
        // A client id written compact.
        (
            "0000002a00120003000000000861646d696e2d3100126170616368652d6b61666b612d6a61766106332e332e3100",
            "header.ClientId",
            12,
            "length-exceeds-input",
        ),
        // No tag section in the header, so that all after it is read wrong.
        ("0000001700200004000000010001740202056e6f70650000000000", "Resources", 25, "null-not-allowed"),
        // Count and size of tagged fields written plus one.
        ("000000140012000300000001000174000278023102050261", "", 20, "count-exceeds-input"),
        ("0000001000120003000000010001740000023100", "ClientSoftwareName", 16, "null-not-allowed"),
        // Counts that go on after the 5th byte, end inside, or are beyond the input.
        ("00000012002000040000000100017400808080808001", "Resources", 16, "varint-too-long"),
        ("0000000d00200004000000010001740080", "Resources", 16, "varint-truncated"),
        ("00000011002000040000000100017400ffffffff0f", "Resources", 16, "count-exceeds-input"),
        ("0000001500210002000000010001740002020261ffffffff07", "Resources[0].Configs", 20, "count-exceeds-input"),
        (
            "000000190020000400000001000174000202056e6f7065020000000000",
            "Resources[0].ConfigurationKeys[0]",
            24,
            "null-not-allowed",
        ),
        ("000000100020000100000001000174fffffffe00", "Resources", 15, "negative-length"),
        // A tag that claims more than there is; a correlation id cut; no API key; no size.
        ("000000140012000300000001000174000278023101056461", "", 21, "tag-exceeds-input"),
        ("0000000700120000000000", "header.CorrelationId", 8, "truncated"),
        ("00000000", "header.RequestApiKey", 4, "truncated"),
        ("0000", "size", 0, "truncated"),
        ("ffffffff", "size", 0, "frame-size"),
        // The last byte is missing; text of another protocol.
        ("00000015 0021 0002 00000000 0000 00 02 00 01 02 01 01 00 00 00", "size", 0, "frame-length"),
        ("474554202f20485454502f312e310d0a0d0a", "size", 0, "frame-length"),
    ];
    for (frame, path, offset, kind) in cases {
        let json = decode_json(&["--request", frame], 1);
        let error = &json["error"];
        assert_eq!(
            (&error["path"], &error["offset"], &error["kind"]),
            (&json!(path), &json!(offset), &json!(kind)),
            "{frame}"
        );
        assert_eq!(json["value"], Json::Null);
        let text = run(&["decode", "--request", frame]);
        assert_eq!(text.status.code(), Some(1));
        let told = format!("invalid: {}", error["text"].as_str().expect("a sentence"));
        assert!(stdout(&text).contains(&told), "{told:?} is not in {}", stdout(&text));
        assert!(stdout(&text).contains("^^") && stdout(&text).contains("<-- "), "{}", stdout(&text));
    }
    // What was read before it is there.
    let output = run(&["decode", "--request", "0000001500210002000000010001740002020261ffffffff07"]);
    assert!(tree(stdout(&output)).contains(&("ResourceName".to_owned(), 18, 2)));
    let configs = stdout(&output).lines().find(|line| line.contains("Configs  ")).expect("the field that failed");
    assert!(configs.contains("not read") && configs.contains("[0x0014]"), "{configs}");
    // An array that reading stopped in says how many it claims: one, in plain form and in compact.
    for (arguments, size) in [
        (["--response", "--body", "00000000 00000001 0003 ffff 02 0005"], "4B"),
        (["--request", "--body", "02 02 00 01 01 01"], "1B"),
    ] {
        let version = if size == "4B" { "0" } else { "2" };
        let output = run(&[&["decode", "--api", "AlterConfigs", "--version", version][..], &arguments].concat());
        let length = stdout(&output).lines().find(|line| line.contains("- length")).expect("the array was begun");
        assert!(length.contains("one element follows") && length.contains(size), "{length}");
    }
}

#[test]
fn every_cut_of_a_body_is_told_and_placed() {
    let body = "02 02 0274 02 0266 0237 00 00 01 00".replace(' ', "");
    let arguments = ["--request", "--api", "33", "--version", "2", "--body"];
    assert_eq!(decode_json(&[&arguments[..], &[&body]].concat(), 0)["error"], Json::Null);
    for digits in (2..body.len()).step_by(2) {
        let json = decode_json(&[&arguments[..], &[&body[..digits]]].concat(), 1);
        let offset = json["error"]["offset"].as_u64().expect("an offset");
        assert!(offset <= digits as u64 / 2, "{json}");
    }
}

#[test]
fn an_answer_with_error_35_is_read_as_v0() {
    let frame = "0000001000000001002300000001001200000004";
    for version in ["5", "3", "0"] {
        let json = decode_json(&["--response", "--api", "ApiVersions", "--version", version, frame], 0);
        assert_eq!(json["version"], 0);
        assert_eq!(
            json["value"],
            json!({ "ErrorCode": 35, "ApiKeys": [{ "ApiKey": 18, "MinVersion": 0, "MaxVersion": 4 }] })
        );
    }
    let text = run(&["decode", "--response", "--api", "18", "--version", "3", frame]);
    assert!(stdout(&text).contains("v0 form") && stdout(&text).contains("35 (UNSUPPORTED_VERSION)"));
}

#[test]
fn what_a_request_frame_asks_for_may_be_unknown() {
    for (frame, kind, says) in [
        ("000000100012007f0000000100017400deadbeef", "unknown-version", "0-5"),
        ("000000180020000500000001000174000202056e6f70650000000000", "unknown-version", "0-4"),
        ("0000000b0012ffff00000001000174", "unknown-version", "0-5"),
        ("0000000b03e7000000000001000174", "unknown-api", "999"),
    ] {
        check_failure(&["decode", "--request", frame], 2, &[says]);
        let json = decode_json(&["--request", frame], 2);
        assert_eq!(json["error"]["kind"], kind);
        // The first eight bytes are the same for all requests.
        assert_eq!(json["header"]["CorrelationId"], 1);
    }
}

#[test]
fn bytes_come_from_arguments_standard_input_and_files() {
    let expected = run(&["decode", "--request", ALTER_CONFIGS_REQUEST]).stdout;
    let words: Vec<&str> = ALTER_CONFIGS_REQUEST.split(' ').collect();
    assert_eq!(run(&[&["decode", "--request"], &words[..]].concat()).stdout, expected);
    let upper = format!("0x{}", ALTER_CONFIGS_REQUEST.to_uppercase());
    assert_eq!(run(&["decode", "--request", &upper]).stdout, expected);
    let input = ALTER_CONFIGS_REQUEST.replace(' ', "\n") + "\n";
    assert_eq!(run_with_input(&["decode", "--request", "-"], input.as_bytes()).stdout, expected);

    let folder = tempfile::tempdir().expect("a folder");
    let (text, raw) = (folder.path().join("frame.hex"), folder.path().join("frame.bin"));
    std::fs::write(&text, &input).expect("written");
    std::fs::write(&raw, codec::parse_hex(ALTER_CONFIGS_REQUEST).expect("hex")).expect("written");
    for file in [text, raw] {
        assert_eq!(run(&["decode", "--request", &format!("@{}", file.display())]).stdout, expected);
    }
}

#[test]
fn wrong_usage_says_what_to_do() {
    check_failure(&["decode", "--request", "0g"], 2, &["'g'", "hex digits", "@FILE"]);
    check_failure(&["decode", "--request", "000"], 2, &["odd number"]);
    check_failure(&["decode", "--request", "@no-such-file"], 2, &["no-such-file"]);
    check_failure(&["decode", "00"], 2, &["--request", "--response"]);
    check_failure(&["decode", "--request", "--response", "00"], 2, &["--response"]);
    check_failure(&["decode", "--request"], 2, &["HEX"]);
    check_failure(&["decode", "--response", "00"], 2, &["--api and --version"]);
    check_failure(&["decode", "--response", "--api", "DescribeConfigs", "00"], 2, &["--version"]);
    check_failure(&["decode", "--request", "--body", "--version", "2", "00"], 2, &["--api"]);
    check_failure(
        &["decode", "--response", "--api", "DescribeConfig", "--version", "4", "00"],
        2,
        &["DescribeConfigs"],
    );
    check_failure(&["decode", "--response", "--api", "99", "--version", "4", "00"], 2, &["32 DescribeConfigs"]);
    check_failure(&["decode", "--response", "--api", "32", "--version", "5", "00"], 2, &["0-4"]);
    check_failure(&["decode", "--response", "--api", "32", "--version", "x", "00"], 2, &["version"]);
    check_failure(&["decode", "--request", "--api", "AlterConfigsResponse", "00"], 2, &["response"]);
    check_failure(&["layout", "DescribeConfig", "4"], 2, &["DescribeConfigs"]);
    check_failure(&["layout", "DescribeConfigRequest", "4"], 2, &["DescribeConfigsRequest"]);
    check_failure(&["layout", "99", "4"], 2, &["33 AlterConfigs"]);
    check_failure(&["layout", "AlterConfigs", "3"], 2, &["0-2"]);
    check_failure(&["layout", "AlterConfigs", "-1"], 2, &["0-2"]);
    check_failure(&["layout", "AlterConfigs"], 2, &["VERSION"]);
    let input = run_with_input(&["decode", "--request", "-"], b"not hex");
    assert_eq!(input.status.code(), Some(2));
    assert!(stderr(&input).contains("standard input is not hex"));
}

#[test]
fn encode_writes_the_published_bytes() {
    let request = r#"{ "Resources": [{ "Configs": [{}] }] }"#;
    let hex = ALTER_CONFIGS_REQUEST.replace(' ', "") + "\n";
    let output = run(&["encode", "--request", "--api", "AlterConfigs", "--version", "2", request]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), hex.as_str()), "{output:?}");
    // Alone, and without the size.
    let output = run(&["encode", "--request", "--api", "33", "--version", "2", "--body", request]);
    assert_eq!(stdout(&output), format!("{}\n", &hex[30..].trim_end()));
    let output = run(&["encode", "--request", "--api", "33", "--version", "2", "--no-size", request]);
    assert_eq!(stdout(&output), &hex[8..]);
    let response = r#"{ "Responses": [{ "ErrorMessage": "" }] }"#;
    let output = run(&["encode", "--response", "--api", "AlterConfigs", "--version", "2", response]);
    assert_eq!(stdout(&output), ALTER_CONFIGS_RESPONSE.replace(' ', "") + "\n");
    // A frame that Java sent, header fields given, from standard input.
    let value = br#"{ "ClientSoftwareName": "apache-kafka-java", "ClientSoftwareVersion": "3.3.1" }"#;
    let header = r#"{ "ClientId": "admin-1" }"#;
    let arguments = ["encode", "--request", "--api", "ApiVersions", "--version", "3", "--header", header, "-"];
    let java = "0000002b0012000300000000000761646d696e2d3100126170616368652d6b61666b612d6a61766106332e332e3100\n";
    assert_eq!(stdout(&run_with_input(&arguments, value)), java);
}

#[test]
fn encode_and_decode_are_each_others_reverse_for_every_example() {
    for spec in bundled().messages().filter(|spec| spec.api_key.is_some()) {
        let version = spec.valid_versions.highest().expect("it has versions").to_string();
        let direction = if spec.kind == MessageKind::Request { "--request" } else { "--response" };
        let layout = bundled().layout(&spec.name, spec.valid_versions.highest().expect("as above")).expect("lowers");
        let value = example_value(&layout).to_json();
        let target = [direction, "--api", spec.api_name(), "--version", &version];
        let output = run(&[&["encode"], &target[..], &[&value.to_string()]].concat());
        assert_eq!(output.status.code(), Some(0), "{}: {output:?}", spec.name);
        let json = decode_json(&[&target[..], &[stdout(&output).trim()]].concat(), 0);
        assert_eq!(json["value"], value, "{}", spec.name);
    }
}

#[test]
fn a_value_without_an_encoding_is_refused_with_its_path() {
    let describe = ["encode", "--response", "--api", "DescribeConfigs", "--version", "4", "--body"];
    let check = |arguments: &[&str], value: &str, code: i32, says: &[&str]| {
        check_failure(&[arguments, &[value]].concat(), code, says);
    };
    check(&describe, r#"{ "Results": [{ "ResourceName": null }] }"#, 1, &["Results[0].ResourceName", "null"]);
    check(&describe, r#"{ "Results": [{ "ErrorCode": 40000 }] }"#, 1, &["Results[0].ErrorCode", "int16"]);
    check(&describe, r#"{ "Results": [{}, { "Surprise": 1 }] }"#, 1, &["Results[1]", "Surprise"]);
    check(&describe, "[]", 1, &["struct"]);
    check(&describe, "{", 2, &["not JSON"]);
    check(&describe, "@no-such-file", 2, &["no-such-file"]);
    let old = ["encode", "--request", "--api", "DescribeConfigs", "--version", "1"];
    check(&old, r#"{ "IncludeDocumentation": true }"#, 1, &["IncludeDocumentation", "not in this version"]);
    let header = [&old[..], &["--header", r#"{ "CorrelationId": "x" }"#]].concat();
    check(&header, "{}", 1, &["header.CorrelationId"]);
    check(&["encode", "--request", "--api", "Nope", "--version", "1"], "{}", 2, &["no API is called"]);
    check(&["encode", "--request", "--api", "33", "--version", "9"], "{}", 2, &["0-2"]);
    check(&["encode", "--api", "33", "--version", "2"], "{}", 2, &["--request"]);
    let both = ["encode", "--request", "--api", "33", "--version", "2", "--body", "--header", "{}"];
    check(&both, "{}", 2, &["--header"]);
}

#[test]
fn colours_are_for_terminals_only() {
    let invalid = "0000001500210002000000010001740002020261ffffffff07";
    for arguments in [&["layout", "AlterConfigs", "2"][..], &["decode", "--request", invalid]] {
        assert!(!stdout(&run(arguments)).contains('\x1b'), "a pipe gets plain text");
        let forced = command(arguments).env("CLICOLOR_FORCE", "1").output().expect("runs");
        assert!(stdout(&forced).contains('\x1b'));
        let plain = anstream::adapter::strip_str(stdout(&forced)).to_string();
        assert_eq!(plain, stdout(&run(arguments)), "colours are all that differs");
    }
    let plain = command(&["layout", "AlterConfigs", "2"]).env("NO_COLOR", "1").output().expect("runs");
    assert!(!stdout(&plain).contains('\x1b'));
}

#[test]
fn text_from_the_wire_does_not_reach_the_terminal_raw() {
    // A topic called ESC [ 2 J.
    let output =
        run(&["decode", "--request", "--api", "32", "--version", "4", "--body", "02 02 051b5b324a 00 00 00 00 00"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!stdout(&output).contains('\x1b') && stdout(&output).contains(r#""\u{1b}[2J""#), "{}", stdout(&output));
}

#[test]
fn a_reader_that_stops_is_no_error() {
    // More than a pipe holds, to a reader that is gone.
    let elements = "0261".repeat(3000);
    let body = format!("02 02 0274 b917 {elements} 00 00 00 00");
    let mut child = command(&["decode", "--request", "--api", "32", "--version", "4", "--body", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    child.stdin.take().expect("piped").write_all(body.as_bytes()).expect("it reads its input");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        return eprintln!("not-run: no /dev/full here");
    };
    let out = tempfile::tempdir().expect("there is a temporary folder");
    let folder = out.path().to_str().expect("it is a plain path");
    let rows = out.path().join("results.jsonl");
    let rows = rows.to_str().expect("it is a plain path");
    let fake = binary();
    let case = "codec/alter-configs-request/v2/smallest";
    let commands: &[&[&str]] = &[
        &["--help"],
        &["list"],
        &["explain", case],
        &["layout", "AlterConfigs", "2"],
        &["decode", "--request", "--api", "32", "--version", "1", "--body", "00000000 00"],
        &["encode", "--response", "--api", "33", "--version", "2", "{\"Responses\":[]}"],
        &["peers", "list"],
        &["replay", case, "--peer", "reference"],
        &["matrix", "--peer", "reference", "--case", case, "--out", folder],
        &["certify", "codec", "--case", case, "--out", folder, "--", &fake, "fake", "codec"],
        &["report", "render", "--out", folder, rows],
        &["report", "diff", rows, rows],
        &["vectors", "lint"],
        &["vectors", "export"],
        &["coverage", "AlterConfigsRequest"],
        &["fake", "codec", "--list"],
    ];
    for arguments in commands {
        let mut command = command(arguments);
        let output = command.stdout(full.try_clone().expect("it is open")).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {output:?}");
        assert!(stderr(&output).contains("cannot write to standard output: No space left"), "{}", stderr(&output));
    }
    // What is beside the output may be lost.
    let mut command = command(&["decode", "--request", "--api", "no", "00"]);
    let output = command.stderr(full).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn an_address_that_is_none_is_a_mistake_of_usage() {
    for address in ["localhost", "127.0.0.1:port", "127.0.0.1:65536", ""] {
        check_failure(&["certify", "broker", address], 2, &["give HOST:PORT, such as 127.0.0.1:9092"]);
    }
}

#[test]
fn help_has_examples() {
    for name in ["decode", "encode", "layout"] {
        let output = run(&[name, "--help"]);
        assert!(stdout(&output).contains("Examples:\n  kafka-conform "), "{}", stdout(&output));
    }
}

/// Lines that nothing is inside of cover each byte once, in order.
fn check_covered(lines: &[Line], length: usize) {
    let mut position = 0;
    for (index, line) in lines.iter().enumerate() {
        if lines.get(index + 1).is_none_or(|next| next.depth <= line.depth) {
            assert_eq!(line.span.start, position, "{line:?}");
            position = line.span.end;
        }
    }
    assert_eq!(position, length);
}

#[test]
fn each_byte_of_a_frame_has_one_line() {
    let parts = Parts { size: true, header: true };
    for spec in bundled().messages().filter(|spec| spec.api_key.is_some()) {
        for version in spec.valid_versions.iter() {
            let frame = bundled().frame_layout(spec, version).expect("lowers");
            let (header, body) = (example_value(&frame.header), example_value(&frame.body));
            let bytes = encode_frame(&frame, &header, &body).expect("an example encodes");
            let message = Message::read(bundled(), spec, version, parts, &bytes).expect("lowers");
            assert!(message.is_valid(), "{} v{version}: {:?}", spec.name, message.errors());
            check_covered(&all_lines(&message), bytes.len());
        }
    }
}

fn all_lines(message: &Message<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    message.each_line(Some(bundled()), &mut |line| lines.push(line));
    lines
}

fn tree_text(message: &Message<'_>) -> String {
    let mut tree = Vec::new();
    object_tree(message, None, &mut tree).expect("memory takes it");
    String::from_utf8(tree).expect("a tree is text")
}

/// Memory is bounded by a small constant times the input: the lines of a dump, which take hundreds of times the bytes that
/// they tell of, are never all there.
#[cfg(target_os = "linux")]
#[test]
fn a_long_message_is_shown_without_being_held_as_lines() {
    // AlterConfigs v0: resources of eight configs each, names and values of four bytes.
    let short = |text: &str| [&i16::try_from(text.len()).expect("short").to_be_bytes()[..], text.as_bytes()].concat();
    let configs: Vec<u8> = (0..8).flat_map(|_| [short("name"), short("text")].concat()).collect();
    let resource = [&[2][..], &short("topic"), &8_i32.to_be_bytes(), &configs].concat();
    let count: i32 = 1_800;
    let resources = resource.repeat(usize::try_from(count).expect("positive"));
    let message = [&[0, 33, 0, 0, 0, 0, 0, 1, 0, 0][..], &count.to_be_bytes(), &resources, &[0]].concat();
    let size = i32::try_from(message.len()).expect("small").to_be_bytes();
    let mut file = tempfile::NamedTempFile::new().expect("there is a temporary folder");
    file.write_all(&[&size[..], &message].concat()).expect("it is writable");
    let input = format!("@{}", file.path().display());
    for format in ["text", "json"] {
        let decode = command(&["decode", "--request", "--format", format, &input]);
        // The program itself takes 25 MB of addresses; the message of 195 kB used to take 50 (text) and 120 (JSON) more.
        let mut capped = Command::new("bash");
        capped.args(["-c", "ulimit -v 46000; exec \"$0\" \"$@\""]).arg(decode.get_program()).args(decode.get_args());
        let output = capped.stdin(Stdio::null()).output().expect("bash runs");
        assert!(output.status.success(), "{format}: {}", stderr(&output));
        assert!(stdout(&output).contains("Resources[1799].Configs[7].Value") || format == "text");
        assert!(stdout(&output).lines().count() > 30_000 || format == "json");
    }
}

/// Everything that the bundled messages have too little of: nullable structs plain and tagged, records, elements of
/// each kind.
fn protocol() -> Protocol {
    let text = r#"{ "name": "Everything", "type": "data", "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "Maybe", "type": "Inner", "versions": "0+", "nullableVersions": "0+", "fields": [
          { "name": "A", "type": "int32", "versions": "0+" } ] },
        { "name": "Records", "type": "records", "versions": "0+", "nullableVersions": "0+" },
        { "name": "Numbers", "type": "[]int16", "versions": "0+" },
        { "name": "Blobs", "type": "[]bytes", "versions": "0+" },
        { "name": "Real", "type": "float64", "versions": "0+" },
        { "name": "Id", "type": "uuid", "versions": "0+" },
        { "name": "Far", "type": "Outer", "versions": "0+", "nullableVersions": "0+", "taggedVersions": "0+", "tag": 3,
          "default": "null", "fields": [
          { "name": "B", "type": "string", "versions": "0+" },
          { "name": "Deep", "type": "[]Deepest", "versions": "0+", "taggedVersions": "0+", "tag": 0, "fields": [
            { "name": "C", "type": "int8", "versions": "0+" } ] } ] }
    ] }"#;
    Protocol::parse([("Everything.json", text)]).expect("a definition")
}

#[test]
fn every_type_is_shown_whole_and_cut() {
    let protocol = protocol();
    let spec = protocol.message("Everything").expect("it is there");
    let layout = protocol.layout(&spec.name, ApiVersion(0)).expect("lowers");
    let bytes = encode(&layout, &example_value(&layout)).expect("an example encodes");
    let parts = Parts { size: false, header: false };
    let message = Message::read(&protocol, spec, ApiVersion(0), parts, &bytes).expect("lowers");
    assert!(message.is_valid());
    let lines = all_lines(&message);
    check_covered(&lines, bytes.len());
    let value = |path: &str| {
        let line = lines.iter().find(|line| line.path.as_deref() == Some(path));
        line.unwrap_or_else(|| panic!("no {path} in\n{}", tree_text(&message))).value.as_str()
    };
    assert_eq!((value("Maybe.marker"), value("Far.marker"), value("Far.Deep[0].C")), ("1", "1", "0"));
    assert_eq!((value("Records[0].magic"), value("Records[0].baseOffset")), ("2", "0"));
    assert_eq!((value("Records[0].producerId"), value("Records[0].batchLength")), ("-1", "49"));
    assert_eq!((value("Numbers[0]"), value("Blobs[0]")), ("1", "1 byte 78 (compact, len+1=2)"));
    assert!(lines.iter().any(|line| line.kind == Kind::Records && line.span.len() == 61));
    // Each cut stops somewhere, and what was read before it is still shown.
    for length in 0..bytes.len() {
        let cut = &bytes[..length];
        let message = Message::read(&protocol, spec, ApiVersion(0), parts, cut).expect("lowers");
        let errors = message.errors();
        assert_eq!(errors.len(), 1, "cut after {length}");
        let lines = all_lines(&message);
        let last = lines.last().expect("a line");
        assert!(last.error.is_some() && last.span.start == errors[0].offset, "{}", tree_text(&message));
        assert!(lines.iter().all(|line| line.span.start <= line.span.end && line.span.end <= length));
    }
}

#[test]
fn a_null_struct_and_null_records_are_null() {
    let protocol = protocol();
    let spec = protocol.message("Everything").expect("it is there");
    let bytes = [&[0xff, 0, 1, 1][..], &[0; 24], &[0]].concat();
    let parts = Parts { size: false, header: false };
    let message = Message::read(&protocol, spec, ApiVersion(0), parts, &bytes).expect("lowers");
    assert!(message.is_valid(), "{:?}", message.errors());
    let lines = all_lines(&message);
    check_covered(&lines, bytes.len());
    let values: Vec<&str> = lines.iter().take(3).map(|line| line.value.as_str()).collect();
    assert_eq!(values, ["", "null (int8 -1)", "null (compact, len+1=0)"]);
}

#[test]
fn frames_know_both_layouts() {
    // The header of ApiVersions responses stays v0 (KIP-511).
    let spec = bundled().api("ApiVersions", MessageKind::Response).expect("it is there");
    let FrameLayout { header, body } = bundled().frame_layout(spec, ApiVersion(3)).expect("lowers");
    assert_eq!((header.version(), body.version()), (ApiVersion(0), ApiVersion(3)));
}
