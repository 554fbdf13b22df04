//! Judges what a client sent and what it showed: pure functions of the case, the broker's record and the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use codec::{AbsentFields, DecodeErrorKind, MessageKind, Protocol, Value, VersionRange, decode_frame, hex};
use serde_json::{Value as Json, json};

use super::compare::{
    Deviation, Truth, deviation, differs, error_code, find, identity, in_fixed_order, is_failure, result_of,
    without_empty_keys,
};
use super::run::is_of;
use super::{ClientCase, Due, OPTIONS};
use crate::adapter::{self, Answer, Said};
use crate::results::Class;
use crate::scripted_broker::{Exchange, Request};

/// Why a case did not pass.
pub(super) enum Stopped {
    /// By the client's own declaration.
    Unsupported(String),
    /// The client is not there any more.
    NotRun(String),
    /// The adapter did not keep to its protocol.
    Broken(String),
    /// The client is not as it should be.
    Deviation(Box<Deviation>),
}

impl From<Box<Deviation>> for Stopped {
    fn from(deviation: Box<Deviation>) -> Stopped {
        Stopped::Deviation(deviation)
    }
}

/// What came of the operation, as the client shows it.
enum Shown<'a> {
    /// It said no and sent nothing.
    Refused(&'a str),
    /// It failed as a whole.
    Failed { text: &'a str, code: Option<i64> },
    /// A result for each resource.
    Results(&'a [Json]),
}

/// What a client is judged by.
pub(super) struct Judge<'a> {
    pub protocol: &'static Protocol,
    pub case: &'a ClientCase,
    /// The versions that the broker advertised, by API.
    pub advertised: BTreeMap<String, VersionRange>,
    /// The fields of results that the client declares to show; `None` is all.
    pub shows: Option<BTreeSet<String>>,
    /// Whether the client was ever seen to send the operation's API.
    pub sends: bool,
    /// What the broker recorded.
    pub exchanges: &'a [Exchange],
}

/// Whether a text can be the name or version of a client's software (KIP-511).
fn names_software(text: &str) -> bool {
    let plain = |end: Option<char>| end.is_some_and(|character| character.is_ascii_alphanumeric());
    let inside = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '.');
    plain(text.chars().next()) && plain(text.chars().last()) && text.chars().all(inside)
}

impl<'a> Judge<'a> {
    /// Judges what came of the operation after `elapsed`.
    pub(super) fn judge(&self, answer: &Answer, elapsed: Duration) -> Result<(), Stopped> {
        let line = match answer {
            Answer::Line(line) => line,
            Answer::Crashed(how) => return Err(deviation(Class::Crash, format!("the client died: {how}")).into()),
            Answer::Hung(_) => {
                let what = format!(
                    "no answer within three times the {} ms that the client was given, and 5 s",
                    self.case.operation.timeout_ms
                );
                return Err(deviation(Class::Hang, what).into());
            }
            Answer::Memory(_) => return Err(deviation(Class::Memory, "the client went over its memory cap").into()),
            Answer::Garbage(what) => return Err(Stopped::Broken(what.clone())),
            Answer::Gone(why) => return Err(Stopped::NotRun(why.clone())),
        };
        let said = Said::of(line);
        if let Ok(Said::Unsupported(why)) = said {
            return Err(Stopped::Unsupported(why.to_owned()));
        }
        // What the client sent was seen, whatever its adapter makes of the rest.
        self.requests()?;
        let called = self.called().next().is_some();
        let shown = match said.map_err(Stopped::Broken)? {
            Said::Panic(panic) => {
                return Err(deviation(Class::Panic, format!("panic: {panic}")).got(line.clone()).into());
            }
            Said::Refused(why) if called => Shown::Failed { text: why, code: None },
            Said::Refused(why) => Shown::Refused(why),
            Said::Error(text, code) => Shown::Failed { text, code },
            Said::Value(value, _) => {
                let results = value.get("Results").or(value.get("Responses")).and_then(Json::as_array);
                let none = || format!("a value without results: {}", adapter::cut(&line.to_string()));
                Shown::Results(results.ok_or_else(none).map_err(Stopped::Broken)?)
            }
            Said::Bytes(_) | Said::Unsupported(_) => {
                return Err(Stopped::Broken("bytes are what codecs answer".to_owned()));
            }
        };
        self.shown(&shown)?;
        for (path, matcher) in &self.case.expect.reported {
            let value = line.get("value").unwrap_or(&Json::Null);
            // What a client does not show is no fault.
            if let Err(found) = matcher.check(path, value)
                && !path.find(value).is_empty()
            {
                let path = path.to_string();
                let what = format!("{path} is shown with another value than the answer means");
                return Err(differs(Class::WrongValue, &path, &matcher.to_json(), &found.to_json(), what).into());
            }
        }
        if elapsed > Duration::from_millis(self.case.expect.within_ms) {
            let what = format!("it took more than {} ms", self.case.expect.within_ms);
            return Err(deviation(Class::NoAnswer, what).into());
        }
        Ok(())
    }

    /// The exchanges of the API that the operation calls.
    fn called(&self) -> impl Iterator<Item = &'a Exchange> {
        let (protocol, api) = (self.protocol, self.case.operation.api);
        self.exchanges.iter().filter(move |exchange| is_of(exchange, protocol, api))
    }

    fn name(&self, exchange: &Exchange) -> Option<&str> {
        let (key, _) = exchange.api?;
        self.protocol.api_by_key(key, MessageKind::Request).map(|spec| spec.api_name())
    }

    /// Judges what was sent: only what was advertised, well-formed, and what was asked for.
    fn requests(&self) -> Result<(), Box<Deviation>> {
        for exchange in self.exchanges {
            self.request(exchange)?;
        }
        for api in &self.case.expect.sent_none {
            if let Some(exchange) = self.exchanges.iter().find(|exchange| is_of(exchange, self.protocol, api)) {
                let what = format!("{api} was sent, where the client must do without");
                return Err(deviation(Class::WrongBytes, what).got(evidence(exchange)));
            }
        }
        let requests: Vec<&Request> = self.called().filter_map(|exchange| exchange.decoded.as_ref().ok()).collect();
        for request in &requests {
            for (option, field) in OPTIONS {
                self.option(request, option, field)?;
            }
            for (path, matcher) in &self.case.expect.sent {
                if let Err(found) = matcher.check(path, &request.body) {
                    let what = format!("the request has another {path} than asked for");
                    let (want, got) = (matcher.to_json(), found.to_json());
                    return Err(differs(Class::WrongBytes, &path.to_string(), &want, &got, what));
                }
            }
        }
        if requests.is_empty() { Ok(()) } else { self.resources(&requests) }
    }

    fn request(&self, exchange: &Exchange) -> Result<(), Box<Deviation>> {
        let wrong = |what: String| deviation(Class::WrongBytes, what).got(evidence(exchange));
        let Some((key, version)) = exchange.api else {
            let what = exchange.decoded.as_ref().err().map_or("", String::as_str);
            return Err(wrong(format!("bytes that are no request: {what}")));
        };
        let Some(api) = self.name(exchange) else {
            return Err(wrong(format!("a request of API {key}, which was not advertised")));
        };
        let range = self.advertised.get(api).copied().unwrap_or(VersionRange::NONE);
        if !range.contains(version) {
            // KIP-511: a client may begin with an ApiVersions that the broker does not have.
            let above = api == "ApiVersions" && range.highest().is_some_and(|highest| version.0 > highest.0);
            if !above {
                return Err(wrong(format!("{api} version {version} was sent, and {range} was advertised")));
            }
            let known = self.protocol.api_by_key(key, MessageKind::Request);
            if !known.is_some_and(|spec| spec.valid_versions.contains(version)) {
                return Ok(());
            }
        }
        match &exchange.decoded {
            Err(what) => Err(wrong(format!("{api} version {version} does not decode: {what}"))),
            Ok(request) => {
                if let Some(anomaly) = request.anomalies.first() {
                    return Err(wrong(format!("{api} version {version} holds {anomaly}")));
                }
                // KIP-511: an answer to others is INVALID_REQUEST (42), and no real broker lets such a client in.
                let names =
                    ["ClientSoftwareName", "ClientSoftwareVersion"].into_iter().filter(|_| api == "ApiVersions");
                let text = |field| request.body.get(field).and_then(Json::as_str);
                match names.filter_map(|field| Some((field, text(field)?))).find(|(_, text)| !names_software(text)) {
                    Some((field, text)) => {
                        let what = "letters, digits, - and . are all that it may have, and neither sign at its ends";
                        Err(wrong(format!("{field} is {text:?}: {what} (KIP-511)")))
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// An option is sent as it was asked for, where the version has its field.
    fn option(&self, request: &Request, option: &str, field: &str) -> Result<(), Box<Deviation>> {
        let Some(sent) = request.body.get(field) else { return Ok(()) };
        let asked = self.case.operation.option(option);
        // A client may always ask for these, and leave them out of what it shows.
        let harmless = option == "synonyms" || option == "documentation";
        if *sent == Json::Bool(asked) || harmless && !asked {
            return Ok(());
        }
        let what = format!("the client was asked for {option}: {asked}, and sent {field}: {sent}");
        Err(differs(Class::WrongBytes, field, &asked.into(), sent, what))
    }

    /// The resources sent are those asked for, in one request or in several.
    fn resources(&self, requests: &[&Request]) -> Result<(), Box<Deviation>> {
        let operation = &self.case.operation;
        let spec = self.protocol.api(operation.api, MessageKind::Request);
        let layout = spec.and_then(|spec| self.protocol.layout(&spec.name, spec.valid_versions.highest()?).ok());
        let Some(layout) = layout else { return Ok(()) };
        // Through the codec, so that fields left out of the case have their defaults.
        let asked = json!({ "Resources": operation.message.get("resources") });
        let asked = Value::from_json(&layout, &asked, AbsentFields::Drop).map(|value| value.to_json());
        let list = |body: &Json| -> Vec<String> {
            let resources = body.get("Resources").and_then(Json::as_array);
            resources.into_iter().flatten().map(|resource| without_empty_keys(resource).to_string()).collect()
        };
        let json = |texts: &mut dyn Iterator<Item = &String>| -> Json {
            texts.filter_map(|text| serde_json::from_str::<Json>(text).ok()).collect()
        };
        let asked = list(&asked.unwrap_or_default());
        let wrong = |got: &[String], what: &str| {
            differs(Class::WrongBytes, "Resources", &json(&mut asked.iter()), &json(&mut got.iter()), what)
        };
        let mut sent = BTreeSet::new();
        for request in requests {
            let resources = list(&request.body);
            let distinct: BTreeSet<&String> = resources.iter().collect();
            if distinct.len() < resources.len() {
                return Err(wrong(&resources, "the request names a resource twice"));
            }
            sent.extend(resources);
        }
        if sent != asked.iter().cloned().collect() {
            let sent: Vec<String> = sent.into_iter().collect();
            return Err(wrong(&sent, "the request names other resources, keys or configs than asked for"));
        }
        self.altered_once()
    }

    /// What was altered is not altered again: an operation such as append does something else the second time.
    fn altered_once(&self) -> Result<(), Box<Deviation>> {
        if self.case.operation.api == "DescribeConfigs" {
            return Ok(());
        }
        let truths = self.truths(|exchange| exchange.delivered);
        for resource in self.case.operation.resources() {
            let done = |truth: &&Truth<'_>| identity(&truth.value) == identity(resource) && error_code(truth) == 0;
            let count = truths.iter().filter(done).count();
            if count > 1 {
                let what = "a resource is altered again, after the broker said that it was";
                return Err(differs(Class::WrongBytes, "Resources", &1.into(), &count.into(), what));
            }
        }
        Ok(())
    }

    /// Judges what the client shows.
    fn shown(&self, shown: &Shown<'_>) -> Result<(), Box<Deviation>> {
        let due = &self.case.expect.outcome;
        let called = self.called().next().is_some();
        match shown {
            // Nothing was sent, which is what matters; a client may have no error of its own for a refusal.
            Shown::Refused(text) | Shown::Failed { text, .. } if !called => self.not_sent((*text).into()),
            Shown::Results(results) if !called && is_failure(results) => {
                self.identities(results)?;
                self.not_sent(results.iter().map(in_fixed_order).collect())
            }
            Shown::Refused(_) | Shown::Failed { .. } if due.contains(&Due::Failed) => Ok(()),
            Shown::Refused(text) => self.failed(text, None),
            Shown::Failed { text, code } => self.failed(text, *code),
            Shown::Results(results) if due.contains(&Due::Answer) => match self.results(results) {
                Err(_) if due.contains(&Due::Failed) && is_failure(results) => self.identities(results),
                judged => judged,
            },
            Shown::Results(results) if is_failure(results) => self.identities(results),
            Shown::Results(results) => {
                let other = self.case.replies.iter().any(|reply| reply.wrong_correlation || reply.stray.is_some());
                let (class, what) = if other {
                    (Class::WrongValue, "the client shows what came for another request")
                } else if self.called().any(|exchange| self.lacks_tags_only(exchange)) {
                    (Class::TooLenient, "the client takes an answer that ends before its tagged fields")
                } else {
                    (Class::InventedValue, "the client shows success, where no whole answer came")
                };
                Err(deviation(class, what).got(results.iter().map(in_fixed_order).collect()))
            }
        }
    }

    /// The client said no, or failed, before it sent the request.
    fn not_sent(&self, got: Json) -> Result<(), Box<Deviation>> {
        let due = &self.case.expect.outcome;
        if !due.contains(&Due::Refused) {
            return Err(deviation(Class::TooStrict, "the client gives up before it sends the request").got(got));
        }
        // What the broker has, a client knows only from the broker; its own operation it may turn down at once, but from
        // one that never sends it, a refusal proves nothing.
        let of_the_broker = !self.case.caps.is_empty() || self.case.api != self.case.operation.api;
        if self.exchanges.is_empty() && (of_the_broker || !self.sends) {
            let what = "the client says no and sent nothing, so that it cannot know what the broker has";
            return Err(deviation(Class::TooStrict, what).got(got));
        }
        Ok(())
    }

    /// Each result shown says whose it is, and they come in the order asked, one for each resource.
    fn identities(&self, shown: &[Json]) -> Result<(), Box<Deviation>> {
        for (index, resource) in self.case.operation.resources().iter().enumerate() {
            let absent = Json::Null;
            let result = shown.get(index).unwrap_or(&absent);
            for name in ["ResourceType", "ResourceName"] {
                let (path, want) = (format!("[{index}].{name}"), &resource[name]);
                match result.get(name) {
                    Some(got) if got == want => {}
                    Some(got) => {
                        let what = "a result is shown as that of another resource";
                        return Err(differs(Class::WrongValue, &path, want, got, what));
                    }
                    None => {
                        let what = "a result is shown without its resource, or not at all";
                        return Err(differs(Class::Lossy, &path, want, &Json::Null, what));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a field of a result that came has to be shown.
    fn must_show(&self, field: &str) -> bool {
        let operation = &self.case.operation;
        // What a client need not have asked for, it need not show.
        let option = OPTIONS.iter().find(|(option, _)| match field {
            "Synonyms" => *option == "synonyms",
            "Documentation" => *option == "documentation",
            _ => false,
        });
        let asked = option.is_none_or(|(option, _)| operation.option(option));
        // Unknown tagged fields are nobody's to show.
        let known = field != "_tags";
        let always = ["ResourceType", "ResourceName", "Name"].contains(&field);
        known && asked && (always || self.shows.as_ref().is_none_or(|shows| shows.contains(field)))
    }

    /// Whether an answer has all its values, and ends where a count of tagged fields is due.
    fn lacks_tags_only(&self, exchange: &Exchange) -> bool {
        let Some((frame, (key, version))) = exchange.answer.as_deref().zip(exchange.api) else { return false };
        let spec = self.protocol.api_by_key(key, MessageKind::Response);
        let layout = spec.and_then(|spec| self.protocol.frame_layout(spec, version).ok());
        let error = layout.and_then(|layout| decode_frame(&layout, frame).err());
        error.is_some_and(|error| error.kind == DecodeErrorKind::TagSectionMissing)
    }

    /// The whole call failed where an answer is due: right if that is what the broker answered for every resource.
    fn failed(&self, text: &str, code: Option<i64>) -> Result<(), Box<Deviation>> {
        let truths = self.truths(|_| true);
        let codes: Vec<i64> =
            self.case.operation.resources().iter().filter_map(|r| find(&truths, r)).map(error_code).collect();
        let got = json!({ "error": text, "code": code });
        if codes.is_empty() || codes.iter().all(|code| *code == 0) {
            return Err(deviation(Class::TooStrict, "the call failed, where the answer holds no error").got(got));
        }
        if codes.contains(&0) {
            let what = "the call failed as a whole, and the good results are lost";
            return Err(deviation(Class::Lossy, what).got(got));
        }
        match code.filter(|code| !codes.contains(code)) {
            Some(_) => {
                let what = "the call failed with another error code than the broker's";
                Err(differs(Class::WrongValue, "ErrorCode", &codes.into(), &got, what))
            }
            None => Ok(()),
        }
    }

    /// What the broker answered in these exchanges, by resource; of several answers for one, the last comes first.
    fn truths(&self, of: impl Fn(&Exchange) -> bool) -> Vec<Truth<'a>> {
        let mut truths = Vec::new();
        for exchange in self.called().filter(|exchange| of(exchange)) {
            let Some((frame, (key, version))) = exchange.answer.as_deref().zip(exchange.api) else { continue };
            let Some(spec) = self.protocol.api_by_key(key, MessageKind::Response) else { continue };
            let Ok(layout) = self.protocol.frame_layout(spec, version) else { continue };
            let Ok(decoded) = decode_frame(&layout, frame) else { continue };
            let body = decoded.body().value().to_json();
            for name in ["Results", "Responses"] {
                for (index, value) in body.get(name).and_then(Json::as_array).into_iter().flatten().enumerate() {
                    let path = format!("{name}[{index}]");
                    truths.insert(0, Truth { path, value: value.clone(), frame, layout: layout.clone() });
                }
            }
        }
        truths
    }

    /// Compares the results shown with those of the broker.
    fn results(&self, shown: &[Json]) -> Result<(), Box<Deviation>> {
        let truths = self.truths(|_| true);
        let must_show = |field: &str| self.must_show(field);
        let asked = self.case.operation.resources();
        for (index, resource) in asked.iter().enumerate() {
            let absent = Json::Null;
            let result = shown.get(index).unwrap_or(&absent);
            match find(&truths, resource) {
                Some(truth) => result_of(truth, result, &must_show)?,
                None if is_failure(std::slice::from_ref(result)) => {
                    let what = "the client shows a failure, where the broker answers all that is asked";
                    return Err(deviation(Class::TooStrict, what).got(in_fixed_order(result)));
                }
                None => {
                    let what = "a result is shown for a resource that the broker did not answer";
                    return Err(deviation(Class::InventedValue, what).got(in_fixed_order(result)));
                }
            }
        }
        self.identities(shown)?;
        for (index, result) in shown.iter().enumerate().skip(asked.len()) {
            let before = shown.iter().take(index).filter(|other| identity(other) == identity(result)).count();
            let came = truths.iter().filter(|truth| identity(&truth.value) == identity(result)).nth(before);
            match came {
                Some(truth) => result_of(truth, result, &must_show)?,
                None => {
                    let what = "a result is shown that neither was asked for nor came, or more often than it came";
                    return Err(deviation(Class::InventedValue, what).got(in_fixed_order(result)));
                }
            }
        }
        Ok(())
    }
}

/// A request as evidence: its bytes, but for the correlation id, which the client chose.
fn evidence(exchange: &Exchange) -> Json {
    let mut request = exchange.request.clone();
    if let Some(correlation_id) = request.get_mut(8..12) {
        correlation_id.fill(0);
    }
    json!({ "request": hex(&request) })
}
