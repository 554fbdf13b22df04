//! Plays the client to a real broker: runs exchange cases over sockets and judges the answers.
//!
//! One connection a case, every wait with a deadline. Names, correlation ids and the order of everything come from the
//! seed and the case, so that two runs differ in nothing but time.

mod connection;
mod conversation;
mod environment;
mod evidence;
mod message;
mod node;
mod own_request;
mod presence;
mod synonyms;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use codec::{ApiKey, ApiVersion, MessageKind, Protocol, VersionRange};
use serde_json::{Value as Json, json};

use self::conversation::CaseRun;
pub use self::environment::refused;
use self::node::Nodes;
use self::own_request::{Refused, Why};
use self::presence::LastSent;
use crate::exchange::{Case, Consent};
use crate::patience::Patience;
use crate::results::{Level, Outcome, Verdict};

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(5);
/// APIs that the harness itself stands on.
const API_VERSIONS: &str = "ApiVersions";
const METADATA: &str = "Metadata";

/// A broker to judge.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it may listen: a name has several addresses, of which the first is taken that answers.
    pub addresses: Vec<SocketAddr>,
    /// The host as it was given, where it was: a cluster's brokers are told apart by their names.
    pub host: Option<String>,
    /// `name@version`, for the outcomes.
    pub peer: String,
    /// The release, where the broker is known to be Apache Kafka's own: variants are keyed by it.
    pub release: Option<String>,
    /// Goes into names of scratch topics on a broker that is not ours, where an earlier run may have left some.
    pub run_id: Option<String>,
}

/// How cases are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Correlation ids and names come from it.
    pub seed: u64,
    /// What the broker's owner agreed to; `Consent::Describe` is always there.
    pub consents: BTreeSet<Consent>,
    /// The lowest level whose deviations are a `fail`.
    pub level: Level,
}

/// Why a broker cannot be judged at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    what: String,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Unreachable {}

/// A broker that answered ApiVersions, and what it advertised.
#[derive(Debug)]
pub struct LiveBroker<'p> {
    protocol: &'p Protocol,
    target: Target,
    /// The one of the target's addresses that answered.
    address: SocketAddr,
    settings: Settings,
    advertised: BTreeMap<ApiKey, VersionRange>,
    /// The same as its first answer has it: the array `ApiKeys`.
    listed: Json,
    /// What is wrong with its first answer, after which the cases of ApiVersions version 0 alone can be run.
    unmet: Option<String>,
    /// Node ids of its cluster, once Metadata was answered.
    nodes: OnceCell<Nodes>,
    /// What it was sent last, for the case that finds it gone.
    last_sent: RefCell<LastSent>,
    /// Why nothing can be asked of it any more.
    gone: OnceCell<String>,
    /// For answers that are due; whether one comes where none is due is soon known.
    patience: RefCell<Patience>,
}

/// Runs every case at all its versions, in the order given, against one broker.
pub fn run(
    target: Target,
    protocol: &Protocol,
    cases: &[Case],
    settings: Settings,
) -> Result<Vec<Outcome>, Unreachable> {
    let broker = LiveBroker::connect(target, protocol, settings)?;
    Ok(cases.iter().flat_map(|case| broker.run(case)).collect())
}

impl<'p> LiveBroker<'p> {
    /// Asks the broker what it advertises (ApiVersions v0), at the first of its addresses that answers.
    pub fn connect(target: Target, protocol: &'p Protocol, settings: Settings) -> Result<LiveBroker<'p>, Unreachable> {
        let mut tried = Vec::new();
        for &address in &target.addresses {
            let mut broker = LiveBroker {
                protocol,
                target: target.clone(),
                address,
                settings: settings.clone(),
                advertised: BTreeMap::from([(ApiKey(18), VersionRange::new(ApiVersion(0), ApiVersion(0)))]),
                listed: Json::Null,
                unmet: None,
                nodes: OnceCell::new(),
                last_sent: RefCell::default(),
                gone: OnceCell::new(),
                patience: RefCell::default(),
            };
            match broker.meet() {
                Ok(()) => return Ok(broker),
                Err(what) => tried.push((address, what)),
            }
        }
        let what = match tried.as_slice() {
            [(_, what)] => what.clone(),
            several => {
                several.iter().map(|(address, what)| format!("{address}: {what}")).collect::<Vec<_>>().join("; ")
            }
        };
        Err(Unreachable { what: format!("{}: {what}", target.peer) })
    }

    fn meet(&mut self) -> Result<(), String> {
        let answer = match self.ask(API_VERSIONS, &json!({})) {
            Ok(answer) => answer.body,
            Err(Refused { what, why: Why::Misread | Why::OtherId, .. }) => {
                // A Kafka broker it is, and what it does wrong is for the cases to say.
                self.unmet = Some(what);
                return Ok(());
            }
            Err(Refused { what, why: Why::NoConnection(_), .. }) => {
                return Err(format!("{what}: is the broker up, and is this where it listens?"));
            }
            Err(Refused { what, .. }) => {
                return Err(format!("{what}: is this a Kafka broker's listener without TLS? The suite speaks no TLS"));
            }
        };
        if answer["ErrorCode"] != 0 {
            return Err(format!("ApiVersions version 0 is answered with error {}", answer["ErrorCode"]));
        }
        let number = |json: &Json| json.as_i64().and_then(|number| i16::try_from(number).ok());
        for api in answer["ApiKeys"].as_array().into_iter().flatten() {
            if let (Some(key), Some(lowest), Some(highest)) =
                (number(&api["ApiKey"]), number(&api["MinVersion"]), number(&api["MaxVersion"]))
            {
                let range = VersionRange::new(ApiVersion(lowest), ApiVersion(highest));
                self.advertised.insert(ApiKey(key), range);
            }
        }
        self.listed = answer["ApiKeys"].clone();
        if self.wants_sasl() {
            let what = "this listener wants SASL authentication before anything else, and the suite has none: \
                        give one without";
            return Err(what.to_owned());
        }
        Ok(())
    }

    /// Whether only those are heard who authenticate first (KIP-43): others are cut off, and there is a SaslHandshake to
    /// be had, which is an illegal state (34) on a listener without SASL.
    fn wants_sasl(&self) -> bool {
        if self.highest(METADATA).is_none() || !matches!(self.nodes(), Err(Refused { why: Why::Closed, .. })) {
            return false;
        }
        const NO_ERROR: i64 = 0;
        const UNSUPPORTED_SASL_MECHANISM: i64 = 33;
        let handshake = self.ask("SaslHandshake", &json!({ "Mechanism": "kafka-conform" }));
        let error = handshake.ok().and_then(|answer| answer.body["ErrorCode"].as_i64());
        error.is_some_and(|error| [NO_ERROR, UNSUPPORTED_SASL_MECHANISM].contains(&error))
    }

    /// How many deadlines of answers that are due it let pass.
    pub fn waits(&self) -> u32 {
        self.patience.borrow().count()
    }

    /// Why it is not asked any more, although it is there; `None` while it is.
    pub fn given_up(&self) -> Option<String> {
        self.patience.borrow().at_end()
    }

    /// The versions of an API that the broker advertises.
    pub fn advertised(&self, api: &str) -> VersionRange {
        let key = self.protocol.api(api, MessageKind::Request).and_then(|spec| spec.api_key);
        key.and_then(|key| self.advertised.get(&key)).copied().unwrap_or(VersionRange::NONE)
    }

    /// Runs a case at each of its versions.
    pub fn run(&self, case: &Case) -> Vec<Outcome> {
        case.versions.iter().map(|version| self.run_version(case, version)).collect()
    }

    /// Runs a case at one version.
    pub fn run_version(&self, case: &Case, version: ApiVersion) -> Outcome {
        let started = Instant::now();
        let mut outcome = self.judge(case, version);
        outcome.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        outcome
    }

    fn judge(&self, case: &Case, version: ApiVersion) -> Outcome {
        let mut run = CaseRun::new(self, case, version);
        if let Some((verdict, why)) = run.obstacle() {
            return run.outcome(verdict, Some(why));
        }
        if let Some(why) = self.gone.get() {
            return run.outcome(Verdict::NotRun, Some(format!("the broker is gone: {why}")));
        }
        if let Some(why) = self.given_up() {
            return run.outcome(Verdict::NotRun, Some(why));
        }
        let (mut attempt, mut presence) = (run.attempt(), None);
        if attempt.is_none() {
            // A broker may be slow to take a connection, or just be started again.
            let now = self.presence();
            if now.is_there() {
                attempt = run.attempt();
            } else {
                presence = Some(now);
            }
        }
        let mut outcome = attempt
            .unwrap_or_else(|| run.outcome(Verdict::NotRun, Some("the broker took no connection at first".to_owned())));
        // No input may end or hang a broker, whatever the level; hostile input may while the answer is as expected.
        let as_expected = matches!(outcome.verdict, Verdict::Pass | Verdict::Variant | Verdict::Unsupported);
        if case.consent == Consent::Hostile || !as_expected {
            self.doubt(&mut outcome, presence.unwrap_or_else(|| self.presence()));
        }
        if self.gone.get().is_none() {
            run.clean_up();
        }
        outcome
    }

    /// The highest version of an API that both sides have.
    fn highest(&self, api: &str) -> Option<ApiVersion> {
        let request = self.protocol.api(api, MessageKind::Request)?;
        self.advertised(api).intersect(request.valid_versions).highest()
    }
}

#[cfg(test)]
mod tests {
    use super::connection::{Connection, Received};
    use super::conversation::{has_error, has_one_value_each, has_results_of};
    use super::evidence::{known_secrets, mask, shows_secret};
    use super::message::{Answer, Request, encode_json, set_size};
    use super::own_request::CORRELATION_OF_OUR_OWN;
    use super::*;
    use crate::cases::Cases;
    use crate::definitions;
    use crate::expect::Path;
    use crate::results::Class;
    use codec::header_version;
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::LazyLock;

    fn exchanges() -> &'static [Case] {
        static CASES: LazyLock<Cases> =
            LazyLock::new(|| Cases::bundled(definitions::bundled()).unwrap_or_else(|errors| panic!("{errors:?}")));
        &CASES.exchanges
    }

    fn target(addresses: Vec<SocketAddr>) -> Target {
        Target { addresses, host: None, peer: "some@1".into(), release: None, run_id: None }
    }

    fn request(api: &str, version: i16) -> Request {
        Request::new(definitions::bundled(), api, ApiVersion(version), 9, &json!({})).unwrap()
    }

    fn answer(api: &str, version: i16, body: &Json) -> Vec<u8> {
        let protocol = definitions::bundled();
        let response = protocol.api(api, MessageKind::Response).unwrap();
        let mut frame = vec![0; 4];
        let header = header_version(response, ApiVersion(version));
        frame.extend(encode_json(protocol, "ResponseHeader", header, &json!({ "CorrelationId": 9 })).unwrap());
        frame.extend(encode_json(protocol, &response.name, ApiVersion(version), body).unwrap());
        set_size(&mut frame);
        frame
    }

    #[test]
    fn secrets_and_traces_of_the_machine_are_blanked_in_value_and_bytes() {
        let entry = |name: &str, value: &str, sensitive: bool| {
            let synonym = json!({ "Name": name, "Value": value, "Source": 4 });
            json!({ "Name": name, "Value": value, "IsSensitive": sensitive, "Synonyms": [synonym] })
        };
        let configs = [
            entry("password", "hunter2", true),
            entry("log.dirs", "/data/x", false),
            entry("listeners", "PLAINTEXT:41999", false),
            entry("retention.ms", "1000", false),
        ];
        for version in [1, 4] {
            let body = json!({ "Results": [{ "ResourceType": 4, "ResourceName": "1", "Configs": configs }] });
            let frame = answer("DescribeConfigs", version, &body);
            let masked = mask(definitions::bundled(), 41999, &[], &request("DescribeConfigs", version), &frame);
            let values = Path::parse("Results[0].Configs[].Value").unwrap();
            let synonyms = Path::parse("Results[0].Configs[].Synonyms[].Value").unwrap();
            let body = masked.body.unwrap();
            let shown = ["*******", "*******", "***************", "1000"].map(Json::from);
            assert_eq!(values.find(&body), shown.iter().collect::<Vec<_>>());
            assert_eq!(synonyms.find(&body), shown.iter().collect::<Vec<_>>());
            let bytes = String::from_utf8_lossy(&masked.frame).into_owned();
            assert!(!["hunter2", "/data", "41999"].iter().any(|secret| bytes.contains(secret)), "{bytes}");
        }
    }

    #[test]
    fn passwords_that_are_not_flagged_are_found_and_blanked() {
        let cases = exchanges();
        let case = cases.iter().find(|case| case.slug == "password-is-never-shown").unwrap();
        let secrets = known_secrets(&case.steps);
        assert_eq!(secrets, ["static-secret-never-shown", "conform-secret"]);
        let entry = |name: &str, value: &str, config_type: i8| json!({ "Name": name, "Value": value, "IsSensitive": false, "ConfigType": config_type });
        let configs = [
            entry("some", "a static-secret-never-shown", 2),
            entry("other.password", "hunter2", 9),
            entry("retention.ms", "1000", 5),
        ];
        let body = json!({ "Results": [{ "ResourceType": 4, "ResourceName": "1", "Configs": configs }] });
        let frame = answer("DescribeConfigs", 4, &body);
        assert!(shows_secret(&frame, &secrets) && !shows_secret(&frame, &secrets[1..]));
        let masked = mask(definitions::bundled(), 41999, &secrets, &request("DescribeConfigs", 4), &frame);
        let bytes = String::from_utf8_lossy(&masked.frame).into_owned();
        assert!(!bytes.contains("never-shown") && !bytes.contains("hunter2") && bytes.contains("1000"), "{bytes}");
    }

    #[test]
    fn very_many_secrets_are_blanked_in_time() {
        let entry = |index: usize| {
            let (name, value) = (format!("password.{index}"), format!("hunter{index}"));
            let synonym = json!({ "Name": name, "Value": value, "Source": 4 });
            json!({ "Name": name, "Value": value, "IsSensitive": true, "Synonyms": [synonym] })
        };
        let configs: Vec<Json> = (0..50_000).map(entry).collect();
        let body = json!({ "Results": [{ "ResourceType": 4, "ResourceName": "1", "Configs": configs }] });
        let frame = answer("DescribeConfigs", 4, &body);
        let started = Instant::now();
        let masked = mask(definitions::bundled(), 41999, &[], &request("DescribeConfigs", 4), &frame);
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        assert!(!shows_secret(&masked.frame, &["hunter".to_owned()]));
        assert_eq!(masked.frame.len(), frame.len());
    }

    #[test]
    fn very_large_answers_are_cut_in_what_is_kept() {
        const APIS: usize = 100_000;
        let many = |frame: &[u8]| {
            if own(frame) {
                return honest(frame);
            }
            // The first entry, again and again.
            let mut answer = honest(frame)?;
            let api: [u8; 6] = answer[14..20].try_into().unwrap();
            answer.splice(10.., u32::try_from(APIS).unwrap().to_be_bytes().into_iter().chain(api.repeat(APIS)));
            set_size(&mut answer);
            Some(answer)
        };
        let target = target(vec![broker(many)]);
        let settings = Settings { seed: 1, consents: BTreeSet::new(), level: Level::Must };
        let broker = LiveBroker::connect(target, definitions::bundled(), settings).unwrap();
        let mut case = with_need(json!({ "ApiKeys[].ApiKey": [1] }));
        case.steps.remove(1);
        case.steps[0].needs = false;
        let outcome = broker.run_version(&case, ApiVersion(0));
        assert_eq!(outcome.verdict, Verdict::Fail, "{:?}", outcome.detail);
        let kept = serde_json::to_string(&outcome).unwrap();
        assert!(kept.len() < 100 * 1024, "{} bytes", kept.len());
        let got = outcome.got.unwrap();
        // `[18,18,...]`, and size, correlation id, error and count before the entries.
        let values = format!("... (cut, {} bytes in all)", APIS * 3 + 1);
        let frame = format!("... (cut, {} bytes in all)", APIS * 6 + 14);
        assert!(got["values"]["ApiKeys[].ApiKey"].as_str().unwrap().ends_with(&values));
        assert!(got["frame"].as_str().unwrap().ends_with(&frame));
    }

    #[test]
    fn results_are_those_of_the_resources_asked() {
        let resource = |kind: i64, name: &str| json!({ "ResourceType": kind, "ResourceName": name });
        let (one, two) = (resource(2, "a"), resource(4, "a"));
        let odd = resource(99, "a");
        let asked = json!({ "Resources": [one, two, odd] });
        for (api, version, list) in [
            ("DescribeConfigs", 1, "Results"),
            ("AlterConfigs", 2, "Responses"),
            ("IncrementalAlterConfigs", 1, "Responses"),
        ] {
            let judge = |results: Json| {
                let frame = answer(api, version, &json!({ list: results }));
                let answer = Answer::read(definitions::bundled(), &request(api, version), &frame).unwrap();
                has_results_of(&asked, &answer).is_ok()
            };
            assert!(judge(json!([one, two, odd])) && judge(json!([odd, two, one])));
            assert!(judge(json!([resource(0, "a"), two, one])), "an unknown type comes back as such");
            for wrong in [
                json!([]),
                json!([one, odd]),
                json!([one, one, odd]),
                json!([one, two, two, odd]),
                json!([one, two, odd, resource(2, "nobody-asked")]),
                json!([one, resource(4, "b"), odd]),
                json!([resource(8, "a"), two, odd]),
                json!([one, resource(0, "a"), odd]),
                json!([one, two, resource(0, "b")]),
            ] {
                assert!(!judge(wrong.clone()), "{api}: {wrong}");
            }
        }
    }

    #[test]
    fn a_config_has_one_value_in_force() {
        let judge = |names: &[(&str, Option<&str>)], other: &[(&str, Option<&str>)]| {
            let configs = |entries: &[(&str, Option<&str>)]| -> Json {
                entries.iter().map(|(name, value)| json!({ "Name": name, "Value": value })).collect()
            };
            let results = [configs(names), configs(other)].map(|configs| json!({ "Configs": configs }));
            let frame = answer("DescribeConfigs", 1, &json!({ "Results": results }));
            let answer = Answer::read(definitions::bundled(), &request("DescribeConfigs", 1), &frame).unwrap();
            has_one_value_each(&answer).is_ok()
        };
        assert!(judge(&[("a", Some("1")), ("b", Some("2"))], &[("a", Some("3"))]));
        assert!(judge(&[("a", Some("1")), ("a", Some("1"))], &[]), "listed again, which `distinct` is for");
        assert!(!judge(&[], &[("a", Some("1")), ("b", None), ("a", Some("2"))]));
        assert!(!judge(&[("a", Some("1")), ("a", None)], &[]));
    }

    #[test]
    fn api_versions_refusal_is_read_in_version_0() {
        let frame = answer("ApiVersions", 0, &json!({ "ErrorCode": 35 }));
        let read = Answer::read(definitions::bundled(), &request("ApiVersions", 4), &frame).unwrap();
        assert_eq!((read.version, read.body["ErrorCode"].as_i64()), (ApiVersion(0), Some(35)));
        assert!(has_error(&read, 35).is_ok() && has_error(&read, 0).is_err());
    }

    #[test]
    fn error_code_of_results_needs_a_result() {
        let read = |body: Json| {
            let frame = answer("AlterConfigs", 2, &body);
            Answer::read(definitions::bundled(), &request("AlterConfigs", 2), &frame).unwrap()
        };
        assert!(has_error(&read(json!({ "Responses": [{ "ErrorCode": 42 }] })), 42).is_ok());
        assert!(has_error(&read(json!({ "Responses": [{ "ErrorCode": 42 }, { "ErrorCode": 0 }] })), 42).is_err());
        assert!(has_error(&read(json!({ "Responses": [] })), 42).is_err());
    }

    /// The answer to a request's frame; `None` hangs up.
    type Reply = fn(&[u8]) -> Option<Vec<u8>>;

    /// A broker that answers every request, of which there are only ApiVersions v0, by `reply`.
    fn broker(reply: Reply) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut connection = Connection::over(stream);
                while let Received::Frame(frame) = connection.receive(ANSWER * 2) {
                    let Some(answer) = reply(&frame) else { break };
                    connection.send(&answer);
                }
            }
        });
        address
    }

    /// An honest answer to ApiVersions v0 that advertises just that.
    fn honest(frame: &[u8]) -> Option<Vec<u8>> {
        let api = json!({ "ApiKey": 18, "MinVersion": 0, "MaxVersion": 0 });
        let mut answer = answer("ApiVersions", 0, &json!({ "ErrorCode": 0, "ApiKeys": [api] }));
        answer[4..8].copy_from_slice(&frame[8..12]);
        Some(answer)
    }

    fn judge(slug: &str, reply: Reply) -> Outcome {
        let cases = exchanges();
        let case = cases.iter().find(|case| case.slug == slug && case.api == "ApiVersions").unwrap();
        judge_case(case, reply)
    }

    fn judge_case(case: &Case, reply: Reply) -> Outcome {
        let target = target(vec![broker(reply)]);
        let consents = BTreeSet::from([Consent::Describe, Consent::Hostile]);
        let settings = Settings { seed: 1, consents, level: Level::Must };
        let broker = LiveBroker::connect(target, definitions::bundled(), settings).unwrap();
        broker.run_version(case, ApiVersion(0))
    }

    /// A case of ApiVersions.
    fn case_of(json: &Json) -> Case {
        let text = json!({ "api": "ApiVersions", "cases": [json] }).to_string();
        crate::exchange::load(&[("some.json", &text)], definitions::bundled()).unwrap().remove(0)
    }

    fn level_of(slug: &str) -> Level {
        exchanges().iter().find(|case| case.slug == slug && case.api == "ApiVersions").unwrap().level
    }

    /// A case of two steps, the first of which it needs.
    fn with_need(expect: Json) -> Case {
        let steps = json!([
            { "send": {}, "expect": expect, "needs": true },
            { "send": {}, "expect": { "ErrorCode": 0 } },
        ]);
        let case = json!({
            "id": "some-case", "versions": "0", "level": "must", "cite": ["KIP-35"],
            "requires": "A broker does what it should do.", "steps": steps,
        });
        case_of(&case)
    }

    /// The harness's own requests have another correlation id than a case's.
    fn own(frame: &[u8]) -> bool {
        frame[8..12] == CORRELATION_OF_OUR_OWN.to_be_bytes()
    }

    #[test]
    fn honest_broker_passes() {
        let outcome = judge("answered", honest);
        assert_eq!((outcome.verdict, outcome.sent), (Verdict::Pass, None));
    }

    #[test]
    fn faults_are_classed() {
        let wrong_id = |frame: &[u8]| {
            let mut answer = honest(frame)?;
            answer[7] ^= u8::from(!own(frame));
            Some(answer)
        };
        let hangs_up = |frame: &[u8]| if own(frame) { honest(frame) } else { None };
        let wrong_code = |frame: &[u8]| {
            let mut answer = honest(frame)?;
            answer[9] = if own(frame) { 0 } else { 42 };
            Some(answer)
        };
        let left_over = |frame: &[u8]| {
            let mut answer = honest(frame)?;
            if !own(frame) {
                answer.push(0);
                set_size(&mut answer);
            }
            Some(answer)
        };
        let cut_short = |frame: &[u8]| {
            let mut answer = honest(frame)?;
            if !own(frame) {
                answer.pop();
                set_size(&mut answer);
            }
            Some(answer)
        };
        let twice = |frame: &[u8]| {
            let answer = honest(frame)?;
            Some(if own(frame) { answer } else { [answer.clone(), answer].concat() })
        };
        let faults: [(Reply, Class); 6] = [
            (twice, Class::WrongAnswer),
            (wrong_id, Class::WrongAnswer),
            (hangs_up, Class::Closed),
            (wrong_code, Class::WrongAnswer),
            (left_over, Class::WrongBytes),
            (cut_short, Class::WrongBytes),
        ];
        for (reply, class) in faults {
            let outcome = judge("answered", reply);
            assert_eq!((outcome.verdict, outcome.class), (Verdict::Fail, Some(class)), "{outcome:?}");
            assert!(outcome.sent.is_some() && outcome.want.is_some() && outcome.got.is_some(), "{outcome:?}");
        }
    }

    /// The honest answer to what a case asks, changed.
    fn changed(frame: &[u8], change: fn(&mut Vec<u8>)) -> Option<Vec<u8>> {
        let mut answer = honest(frame)?;
        if !own(frame) {
            change(&mut answer);
        }
        Some(answer)
    }

    #[test]
    fn breaches_of_the_protocol_fail_whatever_the_level() {
        let faults: [(Reply, Class); 9] = [
            (|frame| changed(frame, |answer| answer[7] ^= 1), Class::WrongAnswer),
            (|frame| changed(frame, |answer| *answer = answer.repeat(2)), Class::WrongAnswer),
            // More or fewer bytes than the message has, and a count that no bytes are behind.
            (|frame| changed(frame, |answer| resize(answer, -1)), Class::WrongBytes),
            (|frame| changed(frame, |answer| resize(answer, 1)), Class::WrongBytes),
            (|frame| changed(frame, |answer| answer[10] = 0x7f), Class::WrongBytes),
            // A size that is negative, above the limit, never reached; half a size.
            (|frame| changed(frame, |answer| answer[0] = 0xff), Class::WrongBytes),
            (|frame| changed(frame, |answer| answer[0] = 0x02), Class::WrongBytes),
            (|frame| changed(frame, |answer| answer[3] += 1), Class::NoAnswer),
            (|frame| changed(frame, |answer| answer.truncate(2)), Class::NoAnswer),
        ];
        assert_eq!(level_of("each-api-once"), Level::Should);
        assert_eq!(judge("each-api-once", honest).verdict, Verdict::Pass);
        for (number, (reply, class)) in faults.into_iter().enumerate() {
            let outcome = judge("each-api-once", reply);
            let found = (outcome.level, outcome.verdict, outcome.class);
            assert_eq!(found, (Level::Must, Verdict::Fail, Some(class)), "{number}: {outcome:?}");
        }
    }

    fn resize(frame: &mut Vec<u8>, by: isize) {
        frame.resize(frame.len().checked_add_signed(by).unwrap(), 0);
        set_size(frame);
    }

    #[test]
    fn other_deviations_fail_by_the_level_of_the_case() {
        let differs: [(&str, Reply, Class); 5] = [
            ("each-api-once", |frame| own(frame).then(|| honest(frame))?, Class::Closed),
            ("each-api-once", |frame| changed(frame, |answer| answer[9] = 42), Class::WrongAnswer),
            // These are no requests with a header, so that no answer can be held to them.
            (
                "unknown-api-key",
                |frame| changed(frame, |answer| *answer = b"HTTP/1.1 400 Bad Request".to_vec()),
                Class::WrongBytes,
            ),
            ("header-without-client-id", |frame| changed(frame, |answer| answer[7] ^= 1), Class::TooLenient),
            ("header-without-client-id", |frame| changed(frame, |answer| resize(answer, -1)), Class::TooLenient),
        ];
        for (number, (slug, reply, class)) in differs.into_iter().enumerate() {
            let outcome = judge(slug, reply);
            assert_eq!((outcome.verdict, outcome.class), (Verdict::Differs, Some(class)), "{number}: {outcome:?}");
            assert_eq!(outcome.level, level_of(slug));
        }
    }

    #[test]
    fn an_api_that_is_listed_twice_fails_where_its_ranges_are_two() {
        // AlterConfigs twice, each time to one of these versions.
        fn listing(frame: &[u8], highest: [u8; 2]) -> Option<Vec<u8>> {
            let mut answer = honest(frame)?;
            if !own(frame) {
                let entry = |highest: u8| [0, 33, 0, 0, 0, highest];
                answer[13] = 3;
                answer.extend(highest.map(entry).concat());
                set_size(&mut answer);
            }
            Some(answer)
        }
        let judge = |slug: &str, reply: Reply| {
            let outcome = judge(slug, reply);
            (outcome.level, outcome.verdict, outcome.class)
        };
        let same: Reply = |frame| listing(frame, [0, 0]);
        assert_eq!(judge("each-api-once", same), (Level::Should, Verdict::Differs, Some(Class::WrongAnswer)));
        assert_eq!(judge("answered", same), (Level::Must, Verdict::Pass, None));
        let fail = (Level::Must, Verdict::Fail, Some(Class::WrongValue));
        let others: [Reply; 2] = [|frame| listing(frame, [0, 1]), |frame| listing(frame, [1, 0])];
        for other in others {
            assert_eq!(judge("ranges-are-in-order", other), fail);
            assert_eq!(judge("answered", other), fail);
        }
    }

    #[test]
    fn error_codes_that_the_guide_does_not_list_differ_whatever_the_level() {
        let case = |level: &str, steps: Json| {
            case_of(&json!({
                "id": "some-case", "versions": "0", "level": level, "cite": ["KIP-35"],
                "requires": "A broker does what it should do.", "steps": steps,
                "variants": [{ "step": 0, "expect": { "ErrorCode": { "one_of": [1, 138] } }, "note": "Another code." }],
            }))
        };
        fn answering(frame: &[u8], code: i16) -> Option<Vec<u8>> {
            let mut answer = honest(frame)?;
            if !own(frame) {
                answer[8..10].copy_from_slice(&code.to_be_bytes());
            }
            Some(answer)
        }
        let judge = |level: &str, expect: &Json, reply: Reply| {
            let outcome = judge_case(&case(level, json!([{ "send": {}, "expect": expect }])), reply);
            (outcome.level, outcome.verdict, outcome.class)
        };
        let pass = |level| (level, Verdict::Pass, None);
        let differs = (Level::Should, Verdict::Differs, Some(Class::WrongAnswer));
        // Any error is due, or none is looked at.
        for indifferent in [json!({ "ErrorCode": { "not": 0 } }), json!({ "ApiKeys[].ApiKey": [18] })] {
            assert_eq!(judge("must", &indifferent, |frame| answering(frame, -1)), pass(Level::Must));
            assert_eq!(judge("must", &indifferent, |frame| answering(frame, 136)), pass(Level::Must));
            assert_eq!(judge("must", &indifferent, |frame| answering(frame, 999)), differs);
            assert_eq!(judge("observed", &indifferent, |frame| answering(frame, -2)), differs);
        }
        // A code is due, and it is another.
        let fail = (Level::Must, Verdict::Fail, Some(Class::WrongAnswer));
        assert_eq!(judge("must", &json!(42), |frame| answering(frame, 999)), fail);
        assert_eq!(judge("must", &json!(0), |frame| answering(frame, 999)), fail);
        // It may be due, in a release that knows more.
        assert_eq!(judge("must", &json!(42), |frame| answering(frame, 138)), differs);
        assert_eq!(judge("must", &json!(42), |frame| answering(frame, 1)).1, Verdict::Variant);
        // What else is wrong behind it is worse, and is found.
        let steps = json!([
            { "send": {}, "expect": { "ErrorCode": { "not": 0 } } }, { "send": {}, "expect": { "ErrorCode": 0 } },
        ]);
        let outcome = judge_case(&case("must", steps), |frame| answering(frame, 999));
        assert_eq!((outcome.level, outcome.verdict), (Level::Must, Verdict::Fail), "{outcome:?}");
        let outcome =
            judge_case(&case("must", json!([{ "send": {}, "expect": { "ErrorCode": { "not": 0 } } }])), |frame| {
                answering(frame, 999)
            });
        assert_eq!(outcome.at.unwrap().path, "ErrorCode");
        let what = "ErrorCode is 999, which is none of the protocol guide's error codes";
        assert_eq!(outcome.detail.as_deref(), Some(what));
        assert!(outcome.got.unwrap()["frame"].is_string());
    }

    #[test]
    fn an_answer_to_a_malformed_body_is_held_to_the_protocol_too() {
        let case = json!({
            "id": "some-case", "versions": "0", "level": "observed", "consent": "hostile", "cite": ["KIP-35"],
            "requires": "A broker closes the connection.",
            "steps": [{ "send": {}, "append": "00", "expect": "closed" }],
        });
        let judge = |reply: Reply| {
            let outcome = judge_case(&case_of(&case), reply);
            (outcome.level, outcome.verdict, outcome.class.unwrap())
        };
        assert_eq!(judge(honest), (Level::Observed, Verdict::Differs, Class::TooLenient));
        let breach = |class| (Level::Must, Verdict::Fail, class);
        assert_eq!(judge(|frame| changed(frame, |answer| answer[7] ^= 1)), breach(Class::WrongAnswer));
        assert_eq!(judge(|frame| changed(frame, |answer| resize(answer, -1))), breach(Class::WrongBytes));
    }

    #[test]
    fn what_a_case_needs_makes_it_unsupported_and_nothing_else_does() {
        let judge = |expect: Json, reply: Reply| {
            let target = target(vec![broker(reply)]);
            let settings = Settings { seed: 1, consents: BTreeSet::new(), level: Level::Must };
            let broker = LiveBroker::connect(target, definitions::bundled(), settings).unwrap();
            broker.run_version(&with_need(expect), ApiVersion(0)).verdict
        };
        let hangs_up = |frame: &[u8]| if own(frame) { honest(frame) } else { None };
        assert_eq!(judge(json!({ "ErrorCode": 0 }), honest), Verdict::Pass);
        assert_eq!(judge(json!({ "ErrorCode": 1 }), honest), Verdict::Unsupported);
        assert_eq!(judge(json!({ "ErrorCode": 1 }), hangs_up), Verdict::Fail);
    }

    #[test]
    fn a_broker_that_lets_too_many_deadlines_pass_is_given_up() {
        let silent = |frame: &[u8]| Some(if own(frame) { honest(frame)? } else { Vec::new() });
        let target = target(vec![broker(silent)]);
        let consents = BTreeSet::from([Consent::Describe, Consent::Hostile]);
        let settings = Settings { seed: 1, consents, level: Level::Must };
        let broker = LiveBroker::connect(target, definitions::bundled(), settings).unwrap();
        for _ in 1..Patience::WAITS {
            broker.patience.borrow_mut().passed(Patience::WAIT);
        }
        let run = |slug: &str| {
            let case = exchanges().iter().find(|case| case.slug == slug && case.api == "ApiVersions").unwrap();
            let outcome = broker.run_version(case, ApiVersion(0));
            (outcome.verdict, outcome.class, outcome.detail.unwrap_or_default())
        };
        // Where no answer is due, none is waited for in vain.
        assert_eq!(run("header-without-client-id").1, Some(Class::NoAnswer));
        assert_eq!((run("answered").1, broker.waits()), (Some(Class::NoAnswer), 30));
        let why = "given up after 30 deadlines that passed without an answer".to_owned();
        assert_eq!(run("answered"), (Verdict::NotRun, None, why.clone()));
        assert_eq!(broker.given_up(), Some(why));
    }

    #[test]
    fn secret_that_is_shown_fails_whatever_the_level() {
        let leaks = |frame: &[u8]| {
            let mut answer = honest(frame)?;
            if !own(frame) {
                answer.extend_from_slice(b"static-secret-never-shown");
                set_size(&mut answer);
            }
            Some(answer)
        };
        let outcome = judge("ranges-hold-the-config-apis", leaks);
        assert_eq!(level_of("ranges-hold-the-config-apis"), Level::Observed);
        let found = (outcome.level, outcome.verdict, outcome.class);
        assert_eq!(found, (Level::Must, Verdict::Fail, Some(Class::WrongValue)), "{outcome:?}");
    }

    #[test]
    fn what_is_not_advertised_is_unsupported() {
        let target = target(vec![broker(honest)]);
        let settings = Settings { seed: 1, consents: BTreeSet::new(), level: Level::Must };
        let outcomes = run(target, definitions::bundled(), exchanges(), settings).unwrap();
        let verdict = |case: &str| outcomes.iter().find(|outcome| outcome.case == case).unwrap().verdict;
        assert_eq!(verdict("broker/alter-configs/v2/alter-then-describe"), Verdict::Unsupported);
        assert_eq!(verdict("broker/api-versions/v0/frame-size-zero"), Verdict::NotRun);
        assert_eq!(verdict("broker/api-versions/v0/answered"), Verdict::Pass);
        assert!(!outcomes.iter().any(|outcome| outcome.verdict == Verdict::HarnessError));
    }

    #[test]
    fn nobody_listening_is_unreachable() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let target = target(vec![address]);
        let settings = Settings { seed: 1, consents: BTreeSet::new(), level: Level::Must };
        let error = LiveBroker::connect(target, definitions::bundled(), settings).unwrap_err();
        let says = "some@1: no connection: connection refused: is the broker up, and is this where it listens?";
        assert_eq!(error.to_string(), says);
    }

    #[test]
    fn the_first_address_that_answers_is_taken() {
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let settings = || Settings { seed: 1, consents: BTreeSet::new(), level: Level::Must };
        let connect = |addresses| LiveBroker::connect(target(addresses), definitions::bundled(), settings());
        let (other, right) = (broker(|_| None), broker(honest));
        let found = connect(vec![closed, other, right]).unwrap();
        assert_eq!(found.address, right);
        assert_eq!(found.run_version(&with_need(json!({ "ErrorCode": 0 })), ApiVersion(0)).verdict, Verdict::Pass);
        let error = connect(vec![closed, other]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("{closed}: no connection")) && error.contains(&format!("{other}: ApiVersions")),
            "{error}"
        );
    }
}
