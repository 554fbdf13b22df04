//! The scripted broker over a raw socket. Every byte here was written by hand from the protocol guide and the message
//! definitions: the codec that the broker is built on is not asked.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use codec::{ApiKey, ApiVersion, VersionRange, parse_hex};
use kafka_conform::definitions;
use kafka_conform::scripted_broker::{Reply, Script, ScriptedBroker};
use serde_json::{Value as Json, json};

/// `ApiVersions` v0, correlation id 7, client id "test".
const API_VERSIONS_V0: &str = "0000000e 0012 0000 00000007 0004 74657374";
/// Its answer from a broker with ApiVersions 0-3, Metadata 0-1 and DescribeConfigs 0-4.
const API_VERSIONS_V0_ANSWER: &str = "0000001c 00000007 0000 00000003 0003 0000 0001 0012 0000 0003 0020 0000 0004";
/// `DescribeConfigs` v1 of topic "t", all keys, without synonyms; correlation id 10.
const DESCRIBE_V1: &str = "0000001b 0020 0001 0000000a 0004 74657374 00000001 02 0001 74 ffffffff 00";
/// Its answer: one config "k" with value "v" from source 1.
const DESCRIBE_V1_ANSWER: &str =
    "00000025 0000000a 00000000 00000001 0000 ffff 02 0001 74 00000001 0001 6b 0001 76 00 01 00 00000000";

fn describe_value() -> Json {
    let config = json!({
        "Name": "k", "Value": "v", "ReadOnly": false, "IsDefault": false, "ConfigSource": 1, "IsSensitive": false,
        "Synonyms": [], "ConfigType": 2, "Documentation": null,
    });
    json!({ "Results": [
        { "ErrorCode": 0, "ErrorMessage": null, "ResourceType": 2, "ResourceName": "t", "Configs": [config] },
        { "ErrorCode": 3, "ErrorMessage": null, "ResourceType": 2, "ResourceName": "other", "Configs": [] },
    ] })
}

fn broker(replies: &[Json]) -> ScriptedBroker {
    let range = |text: &str| text.parse::<VersionRange>().unwrap();
    let caps = BTreeMap::from([(3, range("0-1")), (18, range("0-3")), (32, range("0-4"))]);
    let replies = replies.iter().map(|reply| serde_json::from_value::<Reply>(reply.clone()).unwrap()).collect();
    ScriptedBroker::start(definitions::bundled(), Script { caps, topics: vec!["t".into()], replies }).unwrap()
}

fn describe_reply(extra: Json) -> Vec<Json> {
    let mut reply = json!({ "api": "DescribeConfigs", "value": describe_value() });
    reply.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    vec![reply]
}

fn connect(broker: &ScriptedBroker) -> TcpStream {
    let socket = TcpStream::connect(broker.address()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

fn send(socket: &mut TcpStream, hex: &str) {
    socket.write_all(&parse_hex(hex).unwrap()).unwrap();
}

/// Reads one frame, size included; empty where the connection ends first.
fn read(socket: &mut TcpStream) -> Vec<u8> {
    let mut size = [0; 4];
    if socket.read_exact(&mut size).is_err() {
        return Vec::new();
    }
    let mut frame = size.to_vec();
    frame.resize(4 + u32::from_be_bytes(size) as usize, 0);
    socket.read_exact(&mut frame[4..]).unwrap();
    frame
}

fn read_to_end(socket: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = socket.read_to_end(&mut bytes);
    bytes
}

fn plain(hex: &str) -> String {
    hex.replace(' ', "")
}

#[track_caller]
fn check(broker: &ScriptedBroker, request: &str, answer: &str) {
    let mut socket = connect(broker);
    send(&mut socket, request);
    assert_eq!(codec::hex(&read(&mut socket)), plain(answer));
}

#[test]
fn api_versions_lists_what_the_script_has() {
    check(&broker(&[]), API_VERSIONS_V0, API_VERSIONS_V0_ANSWER);
    // Version 3: header v2 with tags, client software "a" "1"; the answer is flexible behind a header v0 (KIP-511).
    check(
        &broker(&[]),
        "00000014 0012 0003 00000008 0004 74657374 00 02 61 02 31 00",
        "00000021 00000008 0000 04 0003 0000 0001 00 0012 0000 0003 00 0020 0000 0004 00 00000000 00",
    );
}

#[test]
fn api_versions_above_the_maximum_is_error_35_in_v0_form() {
    let answer = "00000010 00000008 0023 00000001 0012 0000 0003";
    check(&broker(&[]), "00000014 0012 0004 00000008 0004 74657374 00 02 61 02 31 00", answer);
    // A version that no definition has, and a body that cannot be read.
    check(&broker(&[]), "00000010 0012 007f 00000008 0000 00 deadbeef 00", answer);
    let broker = broker(&[]);
    let mut socket = connect(&broker);
    send(&mut socket, "00000014 0012 0004 00000008 0004 74657374 00 02 61 02 31 00");
    read(&mut socket);
    send(&mut socket, API_VERSIONS_V0);
    assert_eq!(codec::hex(&read(&mut socket)), plain(API_VERSIONS_V0_ANSWER), "the connection stays");
}

#[test]
fn metadata_names_the_broker_itself_as_node_1_and_controller() {
    let broker = broker(&[]);
    let port = format!("{:08x}", broker.address().port());
    let node = format!("00000001 00000001 0009 3132372e302e302e31 {port} ffff 00000001");
    let t = "0000 0001 74 00 00000001 0000 00000000 00000001 00000001 00000001 00000001 00000001";
    // Version 1 of topics "t" and "x"; the second is not there.
    check(
        &broker,
        "00000018 0003 0001 00000009 0004 74657374 00000002 0001 74 0001 78",
        &format!("00000053 00000009 {node} 00000002 {t} 0003 0001 78 00 00000000"),
    );
    // Version 1: null is all topics, an empty list none.
    let all = format!("00000049 00000009 {node} 00000001 {t}");
    check(&broker, "00000012 0003 0001 00000009 0004 74657374 ffffffff", &all);
    let none = format!("00000025 00000009 {node} 00000000");
    check(&broker, "00000012 0003 0001 00000009 0004 74657374 00000000", &none);
}

#[test]
fn metadata_version_0_takes_an_empty_list_for_all_topics() {
    let broker = broker(&[]);
    let port = format!("{:08x}", broker.address().port());
    check(
        &broker,
        "00000012 0003 0000 00000009 0004 74657374 00000000",
        &format!(
            "00000042 00000009 00000001 00000001 0009 3132372e302e302e31 {port} 00000001 0000 0001 74 00000001 0000 \
             00000000 00000001 00000001 00000001 00000001 00000001"
        ),
    );
}

#[test]
fn an_api_or_version_that_is_not_advertised_is_not_answered() {
    let broker = broker(&describe_reply(json!({})));
    for request in [
        "00000010 0021 0000 0000000a 0000 00000000 00 00", // AlterConfigs v0
        "0000000a 0020 0005 0000000a 0000",                // DescribeConfigs v5
        "0000000a 03e7 0000 0000000a 0000",                // API 999
        "0000000a ffff ffff 0000000a 0000",
    ] {
        let mut socket = connect(&broker);
        send(&mut socket, request);
        assert_eq!(read_to_end(&mut socket), [0; 0], "{request}");
    }
    assert!(broker.exchanges().iter().all(|exchange| exchange.answer.is_none()));
}

#[test]
fn a_value_is_sent_for_the_resources_asked_without_fields_the_version_lacks() {
    let broker = broker(&describe_reply(json!({ "header": { "_tags": [{ "tag": 2, "hex": "aabb" }] } })));
    check(&broker, DESCRIBE_V1, DESCRIBE_V1_ANSWER);
    // Version 0: IsDefault in place of source and synonyms.
    check(
        &broker,
        "0000001a 0020 0000 0000000a 0004 74657374 00000001 02 0001 74 ffffffff",
        "00000021 0000000a 00000000 00000001 0000 ffff 02 0001 74 00000001 0001 6b 0001 76 00 00 00",
    );
    // Version 4 is flexible: tags in the header, compact strings.
    check(
        &broker,
        "00000018 0020 0004 0000000a 0004 74657374 00 02 02 02 74 00 00 00 00 00",
        "00000022 0000000a 01 02 02 aabb 00000000 02 0000 00 02 02 74 02 02 6b 02 76 00 01 00 01 02 00 00 00 00",
    );
}

#[test]
fn results_nobody_asked_for_are_sent_on_demand() {
    check(
        &broker(&describe_reply(json!({ "unasked": true }))),
        DESCRIBE_V1,
        "00000035 0000000a 00000000 00000002 0000 ffff 02 0001 74 00000001 0001 6b 0001 76 00 01 00 00000000 \
         0003 ffff 02 0005 6f74686572 00000000",
    );
}

#[test]
fn hex_is_a_body_and_frame_all_bytes() {
    let body = [json!({ "api": "DescribeConfigs", "hex": "c0ffee" })];
    check(&broker(&body), DESCRIBE_V1, "00000007 0000000a c0ffee");
    let frame = [json!({ "api": "DescribeConfigs", "frame": "00000002 abcd" })];
    check(&broker(&frame), DESCRIBE_V1, "00000002 abcd");
}

#[test]
fn truncate_writes_the_size_anew_and_cut_does_not() {
    let truncated = "00000020 0000000a 00000000 00000001 0000 ffff 02 0001 74 00000001 0001 6b 0001 76 00 01";
    check(&broker(&describe_reply(json!({ "truncate": 5 }))), DESCRIBE_V1, truncated);
    let broker = broker(&describe_reply(json!({ "cut": 10 })));
    let mut socket = connect(&broker);
    send(&mut socket, DESCRIBE_V1);
    assert_eq!(codec::hex(&read_to_end(&mut socket)), plain("00000025 0000000a 0000"));
    let whole = broker.exchanges()[0].answer.clone().unwrap();
    assert_eq!(codec::hex(&whole), plain(DESCRIBE_V1_ANSWER), "the record holds the answer before it is cut");
}

#[test]
fn delay_makes_an_answer_late_and_split_makes_pieces() {
    let broker = broker(&describe_reply(json!({ "delay_ms": 150, "split": 1 })));
    let started = Instant::now();
    check(&broker, DESCRIBE_V1, DESCRIBE_V1_ANSWER);
    assert!(started.elapsed() >= Duration::from_millis(150));
}

#[test]
fn close_and_silent_send_nothing() {
    let closing = broker(&describe_reply(json!({ "close": true })));
    let mut socket = connect(&closing);
    send(&mut socket, DESCRIBE_V1);
    assert_eq!(read_to_end(&mut socket), [0; 0]);
    let silent = broker(&describe_reply(json!({ "silent": true })));
    let mut socket = connect(&silent);
    send(&mut socket, DESCRIBE_V1);
    send(&mut socket, API_VERSIONS_V0);
    assert_eq!(codec::hex(&read(&mut socket)), plain(API_VERSIONS_V0_ANSWER), "the connection stays");
}

#[test]
fn wrong_correlation_ids_are_those_of_no_request() {
    let answer = DESCRIBE_V1_ANSWER.replacen("0000000a", "000f424a", 1);
    check(&broker(&describe_reply(json!({ "wrong_correlation": true }))), DESCRIBE_V1, &answer);
    let broker = broker(&describe_reply(json!({ "stray": { "Results": [] } })));
    let mut socket = connect(&broker);
    send(&mut socket, DESCRIBE_V1);
    assert_eq!(codec::hex(&read(&mut socket)), plain("0000000c 000f424a 00000000 00000000"));
    assert_eq!(codec::hex(&read(&mut socket)), plain(DESCRIBE_V1_ANSWER));
}

#[test]
fn a_held_answer_is_overtaken_by_the_next_or_sent_at_last() {
    let broker = broker(&describe_reply(json!({ "hold": true, "times": 2 })));
    let mut socket = connect(&broker);
    send(&mut socket, DESCRIBE_V1);
    send(&mut socket, API_VERSIONS_V0);
    assert_eq!(codec::hex(&read(&mut socket)), plain(API_VERSIONS_V0_ANSWER));
    assert_eq!(codec::hex(&read(&mut socket)), plain(DESCRIBE_V1_ANSWER));
    send(&mut socket, DESCRIBE_V1);
    assert_eq!(codec::hex(&read(&mut socket)), plain(DESCRIBE_V1_ANSWER), "nothing came to overtake it");
}

#[test]
fn times_limits_a_reply_to_the_first_requests() {
    let mut replies = vec![json!({ "api": "DescribeConfigs", "times": 1, "hex": "01" })];
    replies.extend(describe_reply(json!({})));
    let broker = broker(&replies);
    check(&broker, DESCRIBE_V1, "00000005 0000000a 01");
    check(&broker, DESCRIBE_V1, DESCRIBE_V1_ANSWER);
}

#[test]
fn versions_limits_a_reply_to_requests_of_these() {
    let refusal = json!({ "ErrorCode": 35, "ApiKeys": [] });
    let broker = broker(&[json!({ "api": "ApiVersions", "versions": "1+", "times": 1, "value": refusal })]);
    check(&broker, API_VERSIONS_V0, API_VERSIONS_V0_ANSWER);
    check(&broker, "0000000e 0012 0001 00000007 0004 74657374", "0000000a 00000007 0023 00000000");
    let whole = "00000020 00000007 0000 00000003 0003 0000 0001 0012 0000 0003 0020 0000 0004 00000000";
    check(&broker, "0000000e 0012 0001 00000007 0004 74657374", whole);
    assert!(serde_json::from_value::<Reply>(json!({ "versions": "some" })).is_err());
}

#[test]
fn the_record_says_what_is_delivered() {
    for (how, delivered) in [
        (json!({}), true),
        (json!({ "split": 1 }), true),
        (json!({ "close": true }), false),
        (json!({ "silent": true }), false),
        (json!({ "cut": 10 }), false),
        (json!({ "wrong_correlation": true }), false),
    ] {
        let broker = broker(&describe_reply(how.clone()));
        let mut socket = connect(&broker);
        send(&mut socket, DESCRIBE_V1);
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        read_to_end(&mut socket);
        assert_eq!(broker.exchanges()[0].delivered, delivered, "{how}");
    }
}

#[test]
fn requests_are_recorded_decoded() {
    let broker = broker(&describe_reply(json!({})));
    let mut socket = connect(&broker);
    send(&mut socket, API_VERSIONS_V0);
    read(&mut socket);
    // A bool of 2, which is an anomaly, then a count that promises more than there is.
    send(&mut socket, &DESCRIBE_V1.replace("ffffffff 00", "ffffffff 02"));
    read(&mut socket);
    send(&mut socket, "0000000e 0020 0001 0000000b 0000 7fffffff");
    read(&mut socket);
    let exchanges = broker.exchanges();
    let apis: Vec<_> = exchanges.iter().map(|exchange| exchange.api).collect();
    let describe = Some((ApiKey(32), ApiVersion(1)));
    assert_eq!(apis, [Some((ApiKey(18), ApiVersion(0))), describe, describe]);
    let request = exchanges[1].decoded.as_ref().unwrap();
    assert_eq!(request.header["ClientId"], "test");
    assert_eq!(request.header["CorrelationId"], 10);
    let resource = json!({ "ResourceType": 2, "ResourceName": "t", "ConfigurationKeys": null });
    assert_eq!(request.body, json!({ "Resources": [resource], "IncludeSynonyms": true }));
    assert_eq!(request.anomalies, ["bool other than 0 and 1, read as true at 0x1e"]);
    let wrong = exchanges[2].decoded.as_ref().unwrap_err();
    assert_eq!(wrong, "Resources at 0xe: claims 2147483647 elements, more than the 0 bytes left can hold");
    assert_eq!(codec::hex(&exchanges[2].request), "0000000e002000010000000b00007fffffff");
}

#[test]
fn hostile_bytes_end_the_connection_and_nothing_else() {
    let broker = broker(&describe_reply(json!({})));
    for bytes in [
        "ffffffff",                         // size -1
        "80000000",                         // the lowest size
        "7fffffff 0012",                    // a size of 2 GiB
        "00100001",                         // one above the limit
        "00000000",                         // an empty frame
        "00000007 0012 0000 000000",        // a header that is cut short
        "474554202f20485454502f312e310d0a", // a browser
        "160301020001fc0303",               // TLS
    ] {
        let mut socket = connect(&broker);
        send(&mut socket, bytes);
        assert_eq!(read_to_end(&mut socket), [0; 0], "{bytes}");
    }
    // A request that is never finished.
    let mut socket = connect(&broker);
    send(&mut socket, "0000001b 0020 0001");
    drop(socket);
    check(&broker, API_VERSIONS_V0, API_VERSIONS_V0_ANSWER);
    assert!(broker.exchanges().iter().filter(|exchange| exchange.decoded.is_err()).count() >= 8);
}

#[test]
fn no_body_makes_the_broker_panic() {
    let broker = broker(&describe_reply(json!({})));
    // A generator of its own keeps the bytes the same in every run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()
    };
    for round in 0..300_usize {
        let (key, versions) = [(18_u16, 6), (3, 3), (32, 6), (1000, 2)][round % 4];
        let mut frame = [key.to_be_bytes(), u16::to_be_bytes(u16::try_from(round).unwrap() % versions)].concat();
        for _ in 0..(round % 9) {
            frame.extend(random());
        }
        let mut socket = connect(&broker);
        let size = u32::try_from(frame.len()).unwrap().to_be_bytes();
        socket.write_all(&[&size[..], &frame].concat()).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        read_to_end(&mut socket);
    }
    check(&broker, API_VERSIONS_V0, API_VERSIONS_V0_ANSWER);
}

#[test]
fn the_record_is_bounded() {
    let broker = broker(&[]);
    let mut socket = connect(&broker);
    let request = parse_hex(API_VERSIONS_V0).unwrap();
    let mut answered = 0;
    while socket.write_all(&request).is_ok() && !read(&mut socket).is_empty() {
        answered += 1;
        assert!(answered < 10_000, "the broker goes on for ever");
    }
    assert_eq!(broker.exchanges().len(), answered);
}

#[test]
fn the_broker_ends_with_its_guard() {
    let broker = broker(&describe_reply(json!({ "silent": true, "delay_ms": 60_000 })));
    let mut socket = connect(&broker);
    send(&mut socket, DESCRIBE_V1);
    let address = broker.address();
    let started = Instant::now();
    drop(broker);
    assert_eq!(read_to_end(&mut socket), [0; 0]);
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(TcpStream::connect(address).is_err());
}
