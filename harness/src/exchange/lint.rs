//! What must hold of an exchange case beyond its shape: it can be sent, judged and traced, and asks for the consent it needs.

use std::cell::RefCell;
use std::collections::BTreeSet;

use codec::{AbsentFields, ApiVersion, MessageKind, MessageSpec, Protocol, Value, encode};
use serde_json::Value as Json;

use super::{Case, Consent, LONGEST_MS, Send, Step, StepVersion, VARIABLES, Wrong, substitute};
use crate::cite::{self, Authority};
use crate::expect::{Expect, Path, map_text};
use crate::results::Level;

/// APIs that change something.
const WRITING: &[&str] = &["AlterConfigs", "IncrementalAlterConfigs", "CreateTopics", "DeleteTopics"];
/// Resource types that are the broker's own: BROKER, BROKER_LOGGER.
const BROKER_RESOURCES: [i64; 2] = [4, 8];

struct Lint<'l> {
    protocol: &'l Protocol,
    case: &'l Case,
    wrong: Vec<Wrong>,
}

/// What is wrong with a case that could be read. `request` is that of the API under test.
pub(super) fn lint(protocol: &Protocol, case: &Case, request: &MessageSpec) -> Vec<Wrong> {
    let mut lint = Lint { protocol, case, wrong: Vec::new() };
    lint.case(request);
    lint.wrong
}

impl Lint<'_> {
    fn wrong(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.wrong.push((place.into(), what.into()));
    }

    fn case(&mut self, request: &MessageSpec) {
        let case = self.case;
        let kebab_case = |slug: &str| {
            !slug.is_empty() && slug.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        if !kebab_case(&case.slug) {
            self.wrong("id", "an id is lower-case words, digits and dashes");
        }
        if case.versions.is_none() || case.versions.is_open() {
            self.wrong("versions", "the versions of a case have two ends");
            return;
        }
        if !case.unadvertised && !request.valid_versions.includes(case.versions) {
            self.wrong("versions", format!("{} has versions {}", case.api, request.valid_versions));
            return;
        }
        if !case.requires.ends_with('.') || case.requires.len() < 20 {
            self.wrong("requires", "one sentence is due, with a full stop");
        }
        self.cite();
        if case.steps.is_empty() {
            self.wrong("steps", "a case has at least one step");
        }
        for (index, step) in case.steps.iter().enumerate() {
            let place = format!("steps[{index}]");
            if step.expect.is_none() {
                self.wrong(place.as_str(), "a step has something to expect");
            }
            if step.pipelined && (step.within_ms > 0 || index + 1 == case.steps.len()) {
                self.wrong(place.as_str(), "a pipelined step is followed by another and is not repeated");
            }
            if step.needs && (step.pipelined || index + 1 == case.steps.len()) {
                self.wrong(place.as_str(), "a step that the case needs comes before others, and is not pipelined");
            }
            self.step(&place, step);
        }
        for (index, step) in case.finally.iter().enumerate() {
            let place = format!("finally[{index}]");
            if step.expect.is_some() || step.pipelined {
                self.wrong(place.as_str(), "what is sent at the end is not judged");
            }
            self.step(&place, step);
        }
        for (index, variant) in case.variants.iter().enumerate() {
            let place = format!("variants[{index}]");
            match case.steps.get(variant.step) {
                Some(step) => self.expect(&format!("{place}.expect"), step, &variant.expect),
                None => self.wrong(place, format!("there is no step {}", variant.step)),
            }
        }
    }

    fn cite(&mut self) {
        let (case, protocol) = (self.case, self.protocol);
        let apis = case.steps.iter().chain(&case.finally).map(|step| step.api.as_str());
        let apis: BTreeSet<&str> = apis.chain([case.api.as_str()]).collect();
        // Versions that are not advertised may be some that no definition has.
        let own = (!case.unadvertised).then_some((case.api.as_str(), case.versions));
        let about = |spec: &MessageSpec| cite::in_conversation(spec, &apis, own);
        let mut binding = false;
        for cite in &case.cite {
            match cite::check(protocol, cite, &about) {
                Ok(authority) => binding |= authority == Authority::Binding,
                Err(what) => self.wrong("cite", what),
            }
        }
        if self.case.cite.is_empty() || self.case.level == Level::Must && !binding {
            self.wrong("cite", "a case cites a source, and a must one that binds: a definition, the guide or a KIP");
        }
    }

    /// The versions a step's request can have, by what the definitions know.
    fn versions(&self, step: &Step, request: &MessageSpec) -> Vec<ApiVersion> {
        match step.version {
            StepVersion::Case => self.case.versions.iter().collect(),
            StepVersion::Max => request.valid_versions.highest().into_iter().collect(),
            StepVersion::Exact(version) => vec![version],
        }
    }

    fn step(&mut self, place: &str, step: &Step) {
        let Some(request) = self.protocol.api(&step.api, MessageKind::Request) else {
            self.wrong(format!("{place}.api"), format!("there is no definition of {:?}", step.api));
            return;
        };
        self.consent(place, step);
        let times = [
            ("within_ms", step.within_ms),
            ("deadline_ms", step.deadline_ms.unwrap_or(1)),
            ("after_ms", step.after_ms),
        ];
        for (name, time) in times.into_iter().filter(|(_, time)| *time > LONGEST_MS) {
            self.wrong(format!("{place}.{name}"), format!("at most {LONGEST_MS} ms, not {time}"));
        }
        if step.deadline_ms == Some(0) {
            self.wrong(format!("{place}.deadline_ms"), "an answer takes its time");
        }
        for variable in variables_in(step) {
            let known = VARIABLES.iter().find(|known| variable.starts_with(**known));
            match known {
                None => self.wrong(
                    place,
                    format!("${variable} is no variable: there are $topic $node $other_node $prefix $advertised"),
                ),
                Some(&"topic") if self.case.topic.is_none() => self.wrong(place, "$topic without a topic in `given`"),
                Some(_) => {}
            }
        }
        for version in self.versions(step, request) {
            let send_place = || format!("{place}.send");
            match &step.send {
                Send::Value(json) => {
                    let example = map_text(json, &|text| substitute(text, &example_variable));
                    let encoded = self.protocol.layout(&request.name, version).map_err(|error| error.to_string());
                    let encoded = encoded.and_then(|layout| {
                        let value = Value::from_json(&layout, &example, AbsentFields::Keep);
                        value.and_then(|value| encode(&layout, &value)).map_err(|error| error.to_string())
                    });
                    if let Err(what) = encoded {
                        self.wrong(send_place(), format!("version {version}: {what}"));
                    }
                }
                Send::Body(bodies) if !bodies.iter().any(|(range, _)| range.contains(version)) => {
                    self.wrong(send_place(), format!("no bytes for version {version}"));
                }
                Send::Body(_) | Send::Frame(_) => {}
            }
        }
        if let Some(expect) = &step.expect {
            self.expect(&format!("{place}.expect"), step, expect);
        }
    }

    fn expect(&mut self, place: &str, step: &Step, expect: &Expect) {
        let Expect::Values(paths) = expect else { return };
        let (Some(request), Some(response)) =
            (self.protocol.api(&step.api, MessageKind::Request), self.protocol.api(&step.api, MessageKind::Response))
        else {
            return;
        };
        let mut compared = Vec::new();
        for (text, matcher) in paths {
            let holds = |path: Path| {
                matcher.can_hold(&path, response)?;
                path.versions(response)
            };
            match Path::parse(text).and_then(holds) {
                Ok(versions) => compared.push(versions),
                Err(what) => self.wrong(place, what),
            }
        }
        for version in self.versions(step, request) {
            // An answer in a version that no definition has is one of version 0 (KIP-511).
            let known = response.valid_versions.contains(version);
            if known && !compared.is_empty() && !compared.iter().any(|versions| versions.contains(version)) {
                self.wrong(place, format!("version {version} has none of these fields"));
            }
        }
    }

    fn consent(&mut self, place: &str, step: &Step) {
        let consent = self.case.consent;
        let broker_resource = |json: &Json| {
            let resources = json.get("Resources").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
            let types = resources.iter().filter_map(|resource| resource.get("ResourceType").and_then(Json::as_i64));
            types.into_iter().any(|resource_type| BROKER_RESOURCES.contains(&resource_type))
        };
        let writes = WRITING.contains(&step.api.as_str());
        let broker_write = writes && matches!(&step.send, Send::Value(json) if broker_resource(json));
        let mutated = step.header_version.is_some() || step.cut > 0 || !step.append.is_empty();
        let raw = !matches!(step.send, Send::Value(_)) || self.case.unadvertised;
        // ApiVersions may be asked above the maximum, in bytes or not: that is how a conversation starts.
        if consent != Consent::Hostile && (mutated || raw && step.api != "ApiVersions") {
            self.wrong(place, "bytes and versions that are no good request need consent \"hostile\"");
        }
        if broker_write && consent != Consent::BrokerWrites {
            self.wrong(place, "a change of the broker's own configs needs consent \"broker-writes\"");
        }
        if writes && consent == Consent::Describe {
            self.wrong(place, "a change needs consent \"writes\"");
        }
    }
}

/// The names behind each `$` in what a step sends and expects, up to the end of the word.
fn variables_in(step: &Step) -> BTreeSet<String> {
    let found = RefCell::new(BTreeSet::new());
    let note = |text: &str| {
        for word in text.split('$').skip(1) {
            let name: String = word.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            found.borrow_mut().insert(name);
        }
        String::new()
    };
    if let Send::Value(json) = &step.send {
        map_text(json, &note);
    }
    if let Some(expect) = &step.expect {
        note(&expect.to_json().to_string());
    }
    found.into_inner()
}

fn example_variable(name: &str) -> String {
    if name.ends_with("node") { "1".to_owned() } else { "example".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Cases;
    use crate::definitions;
    use crate::exchange::{LintError, load};
    use serde_json::json;

    fn lint(case: Json) -> Vec<String> {
        let text = json!({ "api": "DescribeConfigs", "cases": [case] }).to_string();
        match load(&[("some.json", &text)], definitions::bundled()) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.iter().map(LintError::to_string).collect(),
        }
    }

    fn good() -> Json {
        json!({
            "id": "some-case", "versions": "0-4", "level": "must", "cite": ["DescribeConfigsRequest.Resources"],
            "requires": "A broker does what it should do.",
            "steps": [{
                "send": { "Resources": [{ "ResourceType": 2, "ResourceName": "$prefix-x" }] },
                "expect": { "Results[0].ErrorCode": 3 },
            }],
        })
    }

    fn changed(pointer: &str, value: Json) -> Vec<String> {
        let mut case = good();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        case.pointer_mut(parent).unwrap()[key] = value;
        lint(case)
    }

    #[test]
    fn bundled_cases_lint() {
        let cases = Cases::bundled(definitions::bundled());
        assert!(cases.is_ok(), "{}", cases.err().unwrap_or_default().join("\n"));
    }

    #[test]
    fn bundled_files_follow_their_schema() {
        let schema = serde_json::from_str(include_str!("../../../vectors/broker.schema.json")).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/broker");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let file: Json = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let errors: Vec<String> =
                validator.iter_errors(&file).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(errors.is_empty(), "{}: {}", path.display(), errors.join("\n"));
        }
        assert!(!validator.is_valid(&json!({ "api": "ApiVersions", "cases": [{ "id": "x" }] })));
    }

    #[test]
    fn good_case_has_no_errors() {
        assert_eq!(lint(good()), Vec::<String>::new());
    }

    #[test]
    fn errors_say_file_case_place_and_fault() {
        let errors = changed("/steps/0/expect", json!({ "Results[0].ErrorCod": 3 }));
        let want = "some.json: some-case: steps[0].expect: path Results[0].ErrorCod: DescribeConfigsResponse has no field ErrorCod there";
        assert_eq!(errors, [want]);
        let errors = changed("/steps/0/send", json!({ "Resources": [{ "ResourceTyp": 2 }] }));
        assert_eq!(errors.len(), 5);
        assert!(errors[0].starts_with("some.json: some-case: steps[0].send: version 0: Resources[0]"), "{}", errors[0]);
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert!(changed("/retries", json!(1))[0].contains("unknown field `retries`"));
        let errors = changed("/steps/0/wihtin_ms", json!(1));
        assert!(errors[0].starts_with("some.json: some-case: steps[0]: unknown field `wihtin_ms`"), "{}", errors[0]);
        assert!(changed("/level", json!("may"))[0].contains("unknown variant `may`"));
        let errors = load(&[("some.json", "{\"api\":")], definitions::bundled()).unwrap_err();
        assert!(errors[0].to_string().starts_with("some.json: EOF while parsing"), "{}", errors[0]);
    }

    #[test]
    fn each_fault_is_found() {
        for (pointer, value, what) in [
            ("/id", json!("Some Case"), "an id is"),
            ("/versions", json!("0-9"), "DescribeConfigs has versions 0-4"),
            ("/versions", json!("0+"), "two ends"),
            ("/versions", json!("a"), "not a version range"),
            ("/cite", json!([]), "cites a source"),
            ("/cite", json!(["apache/kafka#9046"]), "one that binds"),
            ("/cite", json!(["KIP-482", "somewhere"]), "not a field of a definition"),
            ("/cite", json!(["DescribeConfigsRequest.Nothing"]), "has no field Nothing"),
            ("/requires", json!("It works"), "one sentence"),
            ("/steps", json!([]), "at least one step"),
            ("/steps/0/expect", json!("open"), "expected are"),
            ("/steps/0/expect", json!({ "Results[0].ErrorCode": { "is": 1 } }), "unknown matcher"),
            ("/steps/0/api", json!("Describe"), "no definition"),
            ("/steps/0/version", json!("min"), "a version is"),
            ("/steps/0/send", json!({ "hex": "0" }), "steps[0].send"),
            ("/steps/0/send", json!({ "hex": { "0-3": "00" } }), "no bytes for version 4"),
            ("/steps/0/send", json!({ "hex": "00000000" }), "hostile"),
            ("/steps/0/cut", json!(1), "hostile"),
            ("/steps/0/deadline_ms", json!(60_001), "steps[0].deadline_ms: at most 60000 ms"),
            ("/steps/0/deadline_ms", json!(u64::MAX), "steps[0].deadline_ms: at most 60000 ms"),
            ("/steps/0/deadline_ms", json!(0), "steps[0].deadline_ms"),
            ("/steps/0/within_ms", json!(60_001), "steps[0].within_ms: at most 60000 ms"),
            ("/steps/0/after_ms", json!(60_001), "steps[0].after_ms: at most 60000 ms"),
            ("/steps/0/expect", json!({ "Results[0].ErrorCode": "three" }), "\"three\" is never there"),
            ("/steps/0/expect", json!({ "Results[0].ErrorMessage": 3 }), "3 is never there"),
            ("/steps/0/expect", json!({ "Results.ErrorCode": { "absent": true } }), "brackets say of which"),
            (
                "/cite",
                json!(["DescribeConfigsRequest", "MetadataResponse.Topics"]),
                "nothing to do with MetadataResponse",
            ),
            ("/steps/0/pipelined", json!(true), "followed by another"),
            ("/steps/0/needs", json!(true), "comes before others"),
            ("/steps/0/send", json!({ "Resources": [{ "ResourceName": "$tpoic" }] }), "no variable"),
            ("/steps/0/send", json!({ "Resources": [{ "ResourceName": "$topic" }] }), "without a topic"),
            ("/steps/0/send", json!({ "Resources": [], "IncludeSynonyms": true }), "version 0"),
            ("/steps/0/expect", json!({ "Results[0].Configs[].ConfigType": 1 }), "version 2 has none"),
            ("/variants", json!([{ "step": 3, "expect": 3, "note": "n" }]), "no step 3"),
            (
                "/variants",
                json!([{ "expect": { "ThrottleTimeMs": "0" }, "note": "n" }]),
                "variants[0].expect: path Throt",
            ),
            ("/variants", json!([{ "releases": "new", "expect": 3, "note": "n" }]), "releases \"new\""),
        ] {
            let errors = changed(pointer, value.clone());
            assert!(errors.iter().any(|error| error.contains(what)), "{pointer} {value}: {errors:?}");
        }
    }

    #[test]
    fn writes_need_their_consent() {
        let alter = json!({ "Resources": [{ "ResourceType": 4, "ResourceName": "$node", "Configs": [] }] });
        let mut case = good();
        case["steps"] = json!([{ "api": "AlterConfigs", "send": alter, "expect": 0 }]);
        assert!(lint(case.clone()).iter().any(|error| error.contains("\"broker-writes\"")));
        case["consent"] = json!("broker-writes");
        assert_eq!(lint(case), Vec::<String>::new());
    }
}
