//! What a client case must keep to.

use codec::{AbsentFields, ApiVersion, MessageKind, MessageSpec, Protocol, Value, VersionRange, encode, parse_hex};
use serde_json::Value as Json;

use std::collections::BTreeSet;

use super::{ClientCase, Due, LONGEST_MS, Wrong};
use crate::cite::{self, Authority};
use crate::expect::Path;
use crate::results::Level;
use crate::scripted_broker::fitting_value;

/// Everything that is wrong with a case, each with its place. `request` is that of the API under test.
pub(super) fn check(protocol: &Protocol, request: &MessageSpec, case: &ClientCase) -> Vec<Wrong> {
    let mut lint = Lint { protocol, case, wrong: Vec::new() };
    lint.case(request);
    lint.wrong
}

struct Lint<'a> {
    protocol: &'a Protocol,
    case: &'a ClientCase,
    wrong: Vec<Wrong>,
}

impl Lint<'_> {
    fn wrong(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.wrong.push((place.into(), what.into()));
    }

    fn case(&mut self, request: &MessageSpec) {
        let case = self.case;
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if case.slug.is_empty() || !case.slug.chars().all(letters) {
            self.wrong("id", "an id is of lower-case letters, digits and dashes");
        }
        if case.versions.is_none() || case.versions.is_open() || !request.valid_versions.includes(case.versions) {
            let what = format!("{} has versions {}, and a case some of them", case.api, request.valid_versions);
            return self.wrong("versions", what);
        }
        if case.caps.contains_key(&case.api) && case.versions.lowest() != case.versions.highest() {
            self.wrong("versions", "a case that sets what the broker advertises of its own API has one version");
        }
        self.cite();
        if !case.requires.ends_with('.') || case.requires.lines().count() != 1 {
            self.wrong("requires", "it is one sentence");
        }
        self.drive();
        self.broker();
        self.expect();
    }

    fn cite(&mut self) {
        let case = self.case;
        let apis = case.replies.iter().map(|reply| reply.api.as_str());
        let apis: BTreeSet<&str> = apis.chain([case.api.as_str(), case.operation.api, "Metadata"]).collect();
        let about = |spec: &MessageSpec| cite::in_conversation(spec, &apis, Some((&case.api, case.versions)));
        let checked: Vec<_> = case.cite.iter().map(|cite| cite::check(self.protocol, cite, &about)).collect();
        let binding = checked.contains(&Ok(Authority::Binding));
        if checked.is_empty() || self.case.level == Level::Must && !binding {
            self.wrong("cite", "a case cites a source, and a must one that binds: a definition, the guide or a KIP");
        }
        for what in checked.into_iter().filter_map(Result::err) {
            self.wrong("cite", what);
        }
    }

    /// The versions of an API that the broker may speak in this case.
    fn spoken(&self, spec: &MessageSpec) -> Vec<ApiVersion> {
        let advertised = |version| {
            let range = self.case.advertised(self.protocol, version).get(spec.api_name()).copied();
            range.unwrap_or(VersionRange::NONE).intersect(spec.valid_versions)
        };
        let ranges: Vec<VersionRange> = self.case.versions.iter().map(advertised).collect();
        spec.valid_versions.iter().filter(|version| ranges.iter().any(|range| range.contains(*version))).collect()
    }

    /// Checks that a message can be encoded at each version that it may be sent in.
    fn encodes(&mut self, place: &str, spec: &MessageSpec, json: &Json) {
        for version in self.spoken(spec) {
            let encoded = self.protocol.layout(&spec.name, version).map_err(|error| error.to_string());
            let encoded = encoded.and_then(|layout| {
                let value = match spec.kind {
                    MessageKind::Request => Value::from_json(&layout, json, AbsentFields::Keep),
                    _ => fitting_value(&layout, json),
                };
                value.and_then(|value| encode(&layout, &value)).map_err(|error| error.to_string())
            });
            if let Err(what) = encoded {
                return self.wrong(place, format!("version {version}: {what}"));
            }
        }
    }

    fn drive(&mut self) {
        let operation = &self.case.operation;
        if !(1..=LONGEST_MS).contains(&operation.timeout_ms) {
            self.wrong("drive.timeout_ms", format!("a time is of 1 to {LONGEST_MS} ms"));
        }
        if operation.resources().is_empty() {
            self.wrong("drive.resources", "a list of at least one resource");
        }
        let api = operation.api;
        let Some(spec) = self.protocol.api(api, MessageKind::Request).cloned() else {
            return self.wrong("drive.op", format!("there is no definition of {api}"));
        };
        let body = serde_json::json!({ "Resources": operation.message.get("resources") });
        self.encodes("drive.resources", &spec, &body);
    }

    fn broker(&mut self) {
        let case = self.case;
        for api in case.caps.keys().filter(|api| self.protocol.api(api, MessageKind::Request).is_none()) {
            self.wrong(format!("broker.caps.{api}"), "there is no definition of this API");
        }
        for (index, reply) in case.replies.iter().enumerate() {
            let place = format!("broker.replies[{index}]");
            let Some(spec) = self.protocol.api(&reply.api, MessageKind::Response).cloned() else {
                self.wrong(place, format!("there is no definition of {:?}", reply.api));
                continue;
            };
            let forms = [reply.value.is_some(), reply.hex.is_some(), reply.frame.is_some()];
            if forms.into_iter().filter(|form| *form).count() > 1 {
                self.wrong(&place, "value, hex and frame exclude each other");
            }
            for hex in [&reply.hex, &reply.frame].into_iter().flatten() {
                if let Err(what) = parse_hex(hex) {
                    self.wrong(&place, what);
                }
            }
            for (name, body) in [("value", &reply.value), ("stray", &reply.stray)] {
                if let Some(body) = body {
                    self.encodes(&format!("{place}.{name}"), &spec, body);
                }
            }
            if reply.delay_ms > LONGEST_MS {
                self.wrong(format!("{place}.delay_ms"), format!("at most {LONGEST_MS} ms"));
            }
            if reply.versions.is_some_and(|versions| versions.intersect(spec.valid_versions).is_none()) {
                let what = format!("{} has versions {}", spec.api_name(), spec.valid_versions);
                self.wrong(format!("{place}.versions"), what);
            }
            if reply.split == Some(0) || reply.times == Some(0) {
                self.wrong(&place, "split and times are at least 1");
            }
        }
        let answered = case.replies.iter().any(|reply| reply.api == case.operation.api);
        if case.expect.outcome.contains(&Due::Answer) && !answered {
            self.wrong("broker.replies", format!("none answers {}", case.operation.api));
        }
    }

    fn expect(&mut self) {
        let case = self.case;
        if case.expect.outcome.is_empty() {
            self.wrong("expect.outcome", "something must be due");
        }
        let longest = case.operation.timeout_ms.saturating_mul(3);
        if !(1..=longest).contains(&case.expect.within_ms) {
            self.wrong(
                "expect.within_ms",
                format!("a time is of 1 to {longest} ms, three times the client's own limit"),
            );
        }
        for api in &case.expect.sent_none {
            if self.protocol.api(api, MessageKind::Request).is_none() {
                self.wrong("expect.sent_none", format!("there is no definition of {api:?}"));
            }
        }
        for field in &case.expect.shown {
            let spec = self.protocol.api(case.operation.api, MessageKind::Response);
            let of_result = ["Results[]", "Results[].Configs[]", "Responses[]"].iter().any(|place| {
                let path = Path::parse(&format!("{place}.{field}"));
                path.is_ok_and(|path| spec.is_some_and(|spec| path.versions(spec).is_ok()))
            });
            if !of_result {
                self.wrong("expect.shown", format!("results of {} have no field {field:?}", case.operation.api));
            }
        }
        let lists = [
            ("sent", MessageKind::Request, &case.expect.sent),
            ("reported", MessageKind::Response, &case.expect.reported),
        ];
        for (name, kind, paths) in lists {
            let Some(spec) = self.protocol.api(case.operation.api, kind).cloned() else { continue };
            for (path, matcher) in paths {
                if let Err(what) = matcher.can_hold(path, &spec) {
                    self.wrong(format!("expect.{name}"), what);
                }
            }
        }
    }
}
