//! One case at one version on one broker: its scratch topic, its conversation, and the judgement.

use std::collections::{BTreeMap, HashMap};
use std::thread::sleep;
use std::time::{Duration, Instant};

use codec::{ApiVersion, MessageKind, VersionRange, hex};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::connection::{Connection, Received};
use super::environment::refusal;
use super::evidence::{evidence, known_secrets, mask, shows_secret, value_evidence};
use super::message::{Answer, Body, Request};
use super::own_request::{Refused, Seen, Why};
use super::synonyms::agrees_with_synonyms;
use super::{ANSWER, API_VERSIONS, LiveBroker, METADATA};
use crate::dump::error_name;
use crate::exchange::{ADVERTISED, Case, Consent, Send, Step, StepVersion, substitute};
use crate::expect::{Expect, Found, Matcher, Path, map_text};
use crate::results::{At, Class, Level, Op, Outcome, Role, Verdict};

/// How long nothing must come where nothing is due.
const SILENCE: Duration = Duration::from_millis(300);
/// How long the socket is looked at, when a case is through, for what nobody asked.
const LAST_LOOK: Duration = Duration::from_millis(3);
/// How long a change may take to be seen, and a scratch topic to be there.
const VISIBLE: Duration = Duration::from_secs(5);
const CREATE_TOPICS: &str = "CreateTopics";
const DELETE_TOPICS: &str = "DeleteTopics";
const DESCRIBE_CONFIGS: &str = "DescribeConfigs";
const TOPIC_ALREADY_EXISTS: i64 = 36;
/// Resource types.
pub(super) const TOPIC: i64 = 2;
pub(super) const BROKER: i64 = 4;

/// What the variables of one case at one version stand for.
struct Names {
    prefix: String,
    /// The broker's id, and one that no broker has, where the case wants them.
    node: Option<i64>,
    other_node: Option<i64>,
    correlation: i32,
}

impl Names {
    fn new(broker: &LiveBroker, case: &Case, version: ApiVersion) -> Names {
        let digest = Sha256::digest(format!("{}/{}", broker.settings.seed, case.id(version)));
        let run_id = broker.target.run_id.as_deref().map(|id| format!("-{id}")).unwrap_or_default();
        Names {
            prefix: format!("conform{run_id}-{}", hex(&digest[..6])),
            node: None,
            other_node: None,
            correlation: i32::from_be_bytes([digest[6] & 0x7f, digest[7], digest[8], digest[9]]),
        }
    }

    fn topic(&self) -> String {
        format!("{}-topic", self.prefix)
    }

    fn text(&self, text: &str) -> String {
        let id = |name: &str, id: Option<i64>| id.map_or_else(|| format!("${name}"), |id| id.to_string());
        substitute(text, &|name| match name {
            "topic" => self.topic(),
            "prefix" => self.prefix.clone(),
            "node" => id(name, self.node),
            "other_node" => id(name, self.other_node),
            name => format!("${name}"),
        })
    }
}

/// One case at one version on one broker.
pub struct CaseRun<'r, 'p> {
    broker: &'r LiveBroker<'p>,
    case: &'r Case,
    version: ApiVersion,
    names: Names,
    /// What may have to be undone: a topic was asked for, the conversation was begun.
    topic_asked: bool,
    conversed: bool,
}

impl<'r, 'p> CaseRun<'r, 'p> {
    /// Names what the case needs.
    pub fn new(broker: &'r LiveBroker<'p>, case: &'r Case, version: ApiVersion) -> CaseRun<'r, 'p> {
        let names = Names::new(broker, case, version);
        CaseRun { broker, case, version, names, topic_asked: false, conversed: false }
    }
}

impl CaseRun<'_, '_> {
    /// Why the case cannot run here.
    pub fn obstacle(&self) -> Option<(Verdict, String)> {
        let (case, broker) = (self.case, self.broker);
        if let Some(what) = broker.unmet.as_ref().filter(|_| case.api != API_VERSIONS || self.version != ApiVersion(0))
        {
            return Some((Verdict::NotRun, format!("the broker does not say what it has: {what}")));
        }
        let advertised = broker.advertised(&case.api);
        let has = advertised.contains(self.version);
        if case.unadvertised && has {
            let why = format!("the case is about versions that are not advertised, and {} {advertised} is", case.api);
            return Some((Verdict::Unsupported, why));
        }
        if !case.unadvertised && !has {
            let why = match advertised.is_none() {
                true => format!("the broker does not advertise {}", case.api),
                false => format!("the broker advertises {} {advertised}", case.api),
            };
            return Some((Verdict::Unsupported, why));
        }
        let has = |step: &Step| match step.version {
            StepVersion::Case => true,
            StepVersion::Max => broker.highest(&step.api).is_some(),
            StepVersion::Exact(version) => case.unadvertised || broker.advertised(&step.api).contains(version),
        };
        let steps = case.steps.iter().chain(&case.finally).find(|step| !has(step)).map(|step| &*step.api);
        let wants_node = self.wants("$node") || self.wants("$other_node");
        let own = [(METADATA, wants_node), (CREATE_TOPICS, case.topic.is_some())];
        let own = own.into_iter().find(|&(api, wanted)| wanted && broker.highest(api).is_none()).map(|(api, _)| api);
        if let Some(api) = steps.or(own) {
            let why = format!("the case needs {api}, of which the broker advertises {}", broker.advertised(api));
            return Some((Verdict::Unsupported, why));
        }
        if let Some(option) = case.lacking(&broker.settings.consents).first() {
            return Some((Verdict::NotRun, format!("not without {option}")));
        }
        None
    }

    /// Whether texts of the case hold a variable.
    fn wants(&self, variable: &str) -> bool {
        self.case.steps.iter().chain(&self.case.finally).any(|step| holds(step, variable))
    }

    pub fn outcome(&self, verdict: Verdict, detail: Option<String>) -> Outcome {
        let request = self.broker.protocol.api(&self.case.api, MessageKind::Request);
        Outcome {
            peer: self.broker.target.peer.clone(),
            role: Role::Broker,
            message: request.map_or_else(|| self.case.api.clone(), |spec| spec.name.to_string()),
            api: self.case.api.clone(),
            version: self.version.0,
            case: self.case.id(self.version),
            op: Op::Exchange,
            level: self.case.level,
            verdict,
            class: None,
            severity: None,
            at: None,
            sent: None,
            want: None,
            got: None,
            detail,
            refused: None,
            elapsed_ms: 0,
        }
    }

    /// What the case stands on, and the conversation; `None` where there was no connection to have it on.
    pub fn attempt(&mut self) -> Option<Outcome> {
        let (own, other) = (self.wants("$node"), self.wants("$other_node"));
        if (own || other) && self.names.other_node.is_none() {
            const LACK: &str = "the broker's node id is not known";
            match self.broker.nodes() {
                Ok(nodes) => {
                    if let (true, Err(why)) = (own, &nodes.own) {
                        return Some(self.outcome(Verdict::NotRun, Some(format!("{LACK}: {why}"))));
                    }
                    self.names.node = nodes.own.as_ref().ok().copied();
                    self.names.other_node = Some(nodes.other);
                }
                Err(refused) => return self.unprepared(LACK, refused),
            }
        }
        if let Some(configs) = &self.case.topic {
            self.topic_asked = true;
            if let Err(refused) = self.create_topic(configs) {
                return self.unprepared("the scratch topic could not be created", refused);
            }
        }
        let mut connection = Connection::open(self.broker.address).ok()?;
        self.conversed = true;
        let outcome = self.converse(&mut connection);
        self.broker.remember(|| self.case.id(self.version), connection.sent());
        Some(outcome)
    }

    /// What comes of a case that lacks what it stands on: the broker's fault where the request for it has no answer, and
    /// not where it says why not.
    fn unprepared(&self, lack: &str, refused: Refused) -> Option<Outcome> {
        let Refused { what, why, seen } = refused;
        let detail = format!("{lack}: {what}");
        match (why, why.fault(), seen) {
            (Why::NoConnection(_), ..) => None,
            (_, Some((class, must)), Some(seen)) => {
                let Seen { sent, want, got } = *seen;
                Some(self.deviation(Deviation {
                    class,
                    path: None,
                    detail,
                    sent,
                    want,
                    got,
                    again: false,
                    instead: None,
                    refused: None,
                    level: must.then_some(Level::Must),
                }))
            }
            _ => {
                let refused = if let Why::Error(code) = why { code } else { None };
                Some(Outcome { refused, ..self.outcome(Verdict::NotRun, Some(detail)) })
            }
        }
    }

    /// The conversation: steps in order until one is not as expected.
    fn converse(&self, connection: &mut Connection) -> Outcome {
        let mut taken = Taken::default();
        let mut index = 0;
        while index < self.case.steps.len() {
            // Pipelined steps and the one they lead to.
            let length = self.case.steps[index..].iter().take_while(|step| step.pipelined).count() + 1;
            let group = &self.case.steps[index..(index + length).min(self.case.steps.len())];
            match self.group(connection, index, group) {
                Ok(more) => taken.extend(more),
                Err(GroupError::Ours(what)) => return self.outcome(Verdict::HarnessError, Some(what)),
                Err(GroupError::Deviation(deviation)) => {
                    return match deviation.instead {
                        Some(verdict) => {
                            Outcome { refused: deviation.refused, ..self.outcome(verdict, Some(deviation.detail)) }
                        }
                        None => self.deviation(*deviation),
                    };
                }
            }
            index += group.len();
        }
        if let Some(deviation) = self.left_unread(connection) {
            return self.deviation(deviation);
        }
        match taken {
            Taken { unlisted: Some(deviation), .. } => self.deviation(*deviation),
            Taken { notes, .. } if notes.is_empty() => self.outcome(Verdict::Pass, None),
            Taken { notes, .. } => self.outcome(Verdict::Variant, Some(notes.join("; "))),
        }
    }

    fn deviation(&self, deviation: Deviation) -> Outcome {
        let level = deviation.level.unwrap_or(self.case.level);
        let fails = level <= self.broker.settings.level;
        let mut outcome = self.outcome(if fails { Verdict::Fail } else { Verdict::Differs }, Some(deviation.detail));
        outcome.level = level;
        outcome.class = Some(deviation.class);
        outcome.severity = Some(deviation.class.severity());
        outcome.at = deviation.path.map(|path| At { path, offset: None, length: None });
        outcome.sent = Some(deviation.sent);
        outcome.want = Some(deviation.want);
        outcome.got = Some(deviation.got);
        outcome
    }

    /// What came behind the last answer: each request has one answer.
    fn left_unread(&self, connection: &mut Connection) -> Option<Deviation> {
        let last = self.case.steps.last()?;
        if last.expect == Some(Expect::Closed) {
            return None;
        }
        match connection.receive(LAST_LOOK) {
            Received::Closed | Received::Silent => None,
            Received::Frame(_) | Received::Unfinished | Received::Broken(_) => Some(Deviation {
                class: Class::WrongAnswer,
                path: None,
                detail: "behind the last answer comes something that nobody asked for".to_owned(),
                sent: evidence(&connection.sent().concat()),
                want: "silent".into(),
                got: "an answer".into(),
                again: false,
                instead: None,
                refused: None,
                // Where each request is well formed, the client takes it for the answer to the next one.
                level: (self.case.consent != Consent::Hostile).then_some(Level::Must),
            }),
        }
    }

    /// Sends the requests of a group together and judges the answers in order.
    fn group(&self, connection: &mut Connection, first: usize, group: &[Step]) -> Result<Taken, GroupError> {
        let mut requests = Vec::new();
        for (offset, step) in group.iter().enumerate() {
            requests.push(self.request(first + offset, step).map_err(GroupError::Ours)?);
        }
        let bytes: Vec<u8> = requests.iter().flat_map(|request| request.frame.iter().copied()).collect();
        let deadline =
            Instant::now() + Duration::from_millis(group.iter().map(|step| step.within_ms).max().unwrap_or(0));
        let mut pause = Duration::from_millis(2);
        sleep(Duration::from_millis(group.iter().map(|step| step.after_ms).sum()));
        loop {
            connection.send(&bytes);
            let mut taken = Taken::default();
            let mut deviation = None;
            for (offset, (step, request)) in group.iter().zip(&requests).enumerate() {
                match self.step(connection, first + offset, step, request) {
                    Ok(more) => taken.extend(more),
                    Err(found) => {
                        deviation = Some(found);
                        break;
                    }
                }
            }
            match deviation {
                None => return Ok(taken),
                Some(found) if !found.again || Instant::now() + pause >= deadline => {
                    return Err(GroupError::Deviation(found));
                }
                Some(_) => sleep(pause),
            }
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Waits for one answer and judges it.
    fn step(
        &self,
        connection: &mut Connection,
        index: usize,
        step: &Step,
        request: &Request,
    ) -> Result<Taken, Box<Deviation>> {
        let Some(expect) = &step.expect else { return Ok(Taken::default()) };
        let patience = match (expect, step.deadline_ms) {
            (Expect::Silent, _) => SILENCE,
            (_, Some(milliseconds)) => Duration::from_millis(milliseconds),
            _ => ANSWER,
        };
        let received = connection.receive(patience);
        if is_due(expect) && matches!(received, Received::Silent | Received::Unfinished) {
            self.broker.patience.borrow_mut().passed(patience);
        }
        let answer = match &received {
            Received::Frame(frame) => Some(Answer::read(self.broker.protocol, request, frame)),
            _ => None,
        };
        let variants = || self.case.variants.iter().filter(|variant| variant.step == index);
        let judged = self.compare(expect, request, &received, answer.as_ref());
        // What a broker breaks at level must it breaks for everybody.
        let breaks = judged.as_ref().is_err_and(|mismatch| mismatch.must);
        if let Some(Ok(answer)) = &answer
            && is_due(expect)
            && !breaks
        {
            let expected: Vec<&Expect> = variants().map(|variant| &variant.expect).chain([expect]).collect();
            if let Some(refusal) = refusal(&request.api, &answer.body, &expected) {
                let plain = Mismatch::plain(Class::WrongAnswer, refusal.text());
                let refused = Mismatch { refused: Some(refusal.code), ..plain };
                return Err(Box::new(self.explain(index, step, request, expect, &received, refused)));
            }
        }
        let taken = |note: Option<String>| {
            let body = answer.as_ref().and_then(|answer| Some(&answer.as_ref().ok()?.body));
            let code = body.and_then(unlisted_code).filter(|_| request.is_defined());
            let unlisted = code.map(|(path, code)| {
                let what = format!("{path} is {code}, which is none of the protocol guide's error codes");
                let plain = Mismatch::plain(Class::WrongAnswer, what);
                let deviation = self.explain(index, step, request, expect, &received, plain);
                // The guide lists the codes in use, and later releases add some: whoever knows no such code takes it for
                // an unknown error, as kafka-clients does, and is not harmed.
                Box::new(Deviation { path: Some(path), level: Some(Level::Should), ..deviation })
            });
            Taken { notes: note.into_iter().collect(), unlisted }
        };
        let mismatch = match judged {
            Ok(()) => {
                let liberty = answer.as_ref().and_then(|answer| answer.as_ref().ok()?.liberty.clone());
                return Ok(taken(liberty));
            }
            Err(mismatch) => mismatch,
        };
        for variant in variants() {
            // A broker that is no Apache release may behave like any of them.
            let its_release = self.broker.target.release.as_deref();
            let applies = match (&variant.releases, its_release) {
                (Some(releases), Some(release)) => releases.contain(release),
                _ => true,
            };
            if applies && self.compare(&variant.expect, request, &received, answer.as_ref()).is_ok() {
                return Ok(taken(Some(variant.note.clone())));
            }
        }
        Err(Box::new(self.explain(index, step, request, expect, &received, mismatch)))
    }

    fn compare(
        &self,
        expect: &Expect,
        request: &Request,
        received: &Received,
        answer: Option<&Result<Answer, String>>,
    ) -> Result<(), Mismatch> {
        let plain = |class: Class, what: String| Err(Mismatch::plain(class, what));
        if let Received::Frame(frame) = received
            && shows_secret(frame, &known_secrets(&self.case.steps))
        {
            let what = "the answer shows a secret in clear".to_owned();
            return Err(Mismatch { must: true, ..Mismatch::plain(Class::WrongValue, what) });
        }
        // Whoever answers a request that is told from others keeps to the framing, the definition and the correlation id,
        // at whatever level the case is. What comes back for bytes that are no request, such as HTTP, is not held to it.
        let is_bound = is_due(expect) || request.has_header();
        let breach = |class: Class, what: String| Err(Mismatch { must: is_bound, ..Mismatch::plain(class, what) });
        let answer = match (expect, received, answer) {
            (Expect::Closed, Received::Closed, _) | (Expect::Silent, Received::Silent, _) => return Ok(()),
            (Expect::Closed, Received::Silent, _) => return plain(Class::NoAnswer, "the connection stays open".into()),
            (Expect::Silent, Received::Closed, _) => return plain(Class::Closed, "the connection is closed".into()),
            (_, Received::Closed, _) => return plain(Class::Closed, "the connection is closed".into()),
            (_, Received::Silent, _) => return plain(Class::NoAnswer, "no answer comes".into()),
            (_, Received::Broken(what), _) => return breach(Class::WrongBytes, what.clone()),
            (Expect::Silent, Received::Unfinished, _) => return plain(Class::TooLenient, "it is answered".into()),
            (_, Received::Unfinished, _) => return breach(Class::NoAnswer, received.describe()),
            (_, Received::Frame(_), _) if !is_bound => return plain(Class::TooLenient, "it is answered".into()),
            (_, Received::Frame(_), Some(answer)) => answer,
            (_, Received::Frame(_), None) => unreachable!("each frame is read"),
        };
        // The answer to a version without a definition may be in a form that is not known here.
        let malformed = |what: String| match request.is_defined() {
            true => breach(Class::WrongBytes, what),
            false if is_due(expect) => plain(Class::WrongBytes, what),
            false => plain(Class::TooLenient, "it is answered".into()),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(what) => return malformed(what.clone()),
        };
        if answer.correlation_id != request.correlation_id {
            return breach(Class::WrongAnswer, "the correlation id is another".into());
        }
        if let Some(left) = answer.left {
            return malformed(format!("{left} bytes are left over behind the answer"));
        }
        match expect {
            Expect::Error(code) => has_error(answer, *code)?,
            Expect::Values(values) => self.compare_values(values, request, answer)?,
            Expect::Closed | Expect::Silent => return plain(Class::TooLenient, "it is answered".into()),
        }
        if let Some(asked) = &request.body {
            has_results_of(asked, answer)?;
        }
        has_one_value_each(answer)?;
        has_one_range_each(answer)?;
        agrees_with_synonyms(answer)
    }

    fn compare_values(
        &self,
        values: &BTreeMap<String, Matcher>,
        request: &Request,
        answer: &Answer,
    ) -> Result<(), Mismatch> {
        let text = |text: &str| self.names.text(text);
        let mut wrong = Vec::new();
        for (path, matcher) in values {
            let path = Path::parse(&text(path)).expect("paths are linted");
            let versions = path.versions(&request.response).expect("paths are linted");
            if !versions.contains(answer.version) {
                continue;
            }
            let matcher = match matcher {
                Matcher::Is(Json::String(variable)) if variable.strip_prefix('$') == Some(ADVERTISED) => {
                    Matcher::Is(self.broker.listed.clone())
                }
                other => other.map_text(&text),
            };
            if let Err(found) = matcher.check(&path, &answer.body) {
                wrong.push(WrongValue { path, matcher, found });
            }
        }
        match wrong.first() {
            None => Ok(()),
            Some(first) => Err(Mismatch {
                class: first.class(),
                what: first.describe(),
                values: wrong,
                well_formed: true,
                must: false,
                refused: None,
            }),
        }
    }

    fn explain(
        &self,
        index: usize,
        step: &Step,
        request: &Request,
        expect: &Expect,
        received: &Received,
        mismatch: Mismatch,
    ) -> Deviation {
        let masked = match received {
            Received::Frame(frame) => {
                let secrets = known_secrets(&self.case.steps);
                Some(mask(self.broker.protocol, self.broker.address.port(), &secrets, request, frame))
            }
            _ => None,
        };
        let (mut want, mut got) = (Map::new(), Map::new());
        for WrongValue { path, matcher, found } in &mismatch.values {
            // What is shown comes out of the masked bytes: values that are secret or differ by machine are blanked there.
            let shown = masked.as_ref().and_then(|masked| matcher.check(path, masked.body.as_ref()?).err());
            want.insert(path.to_string(), matcher.to_json());
            got.insert(path.to_string(), value_evidence(shown.as_ref().unwrap_or(found).to_json()));
        }
        let got_values = (!got.is_empty()).then_some(Json::Object(got));
        let got = match &masked {
            Some(masked) => json!({ "values": got_values, "frame": evidence(&masked.frame) }),
            None => received.describe().into(),
        };
        let place = match self.case.steps.len() {
            1 => String::new(),
            _ => format!("step {} ({} version {}): ", index + 1, request.api, request.version),
        };
        let moot = step.needs && mismatch.well_formed && !mismatch.must;
        let why = if moot { ", and the case needs it" } else { "" };
        let instead =
            if mismatch.refused.is_some() { Some(Verdict::NotRun) } else { moot.then_some(Verdict::Unsupported) };
        Deviation {
            class: mismatch.class,
            path: mismatch.values.first().map(|wrong| wrong.path.to_string()),
            detail: format!("{place}{}{why}", mismatch.what),
            sent: evidence(&request.frame),
            want: if want.is_empty() { expect.to_json() } else { Json::Object(want) },
            got,
            again: mismatch.well_formed,
            instead,
            refused: mismatch.refused,
            level: mismatch.must.then_some(Level::Must),
        }
    }

    /// The request of a step, encoded.
    fn request(&self, index: usize, step: &Step) -> Result<Request, String> {
        let version = match step.version {
            StepVersion::Case => self.version,
            StepVersion::Exact(version) => version,
            StepVersion::Max => self.broker.highest(&step.api).ok_or("no common version")?,
        };
        let correlation = i32::try_from(index).map_or(self.names.correlation, |index| self.names.correlation ^ index);
        let protocol = self.broker.protocol;
        let mut request = match &step.send {
            Send::Frame(frame) => {
                let mut request = Request::raw(protocol, &step.api, version, correlation, self.begun_frame(index))?;
                request.frame.clone_from(frame);
                request
            }
            Send::Value(json) => {
                let body = map_text(json, &|text| self.names.text(text));
                Request::with(protocol, &step.api, version, correlation, step, Body::Value(&body))?
            }
            Send::Body(bodies) => {
                let body =
                    bodies.iter().find(|(range, _)| range.contains(version)).ok_or("no bytes for this version")?;
                Request::with(protocol, &step.api, version, correlation, step, Body::Bytes(&body.1))?
            }
        };
        request.mutate(step.cut, &step.append);
        Ok(request)
    }

    /// The bytes of a frame that is sent in pieces, each but the last met with silence, up to those of step `index`.
    fn begun_frame(&self, index: usize) -> Vec<u8> {
        let mut pieces = Vec::new();
        for (number, step) in self.case.steps[..=index].iter().enumerate().rev() {
            match &step.send {
                Send::Frame(frame) if number == index || step.expect == Some(Expect::Silent) => pieces.push(frame),
                _ => break,
            }
        }
        pieces.into_iter().rev().flatten().copied().collect()
    }

    fn create_topic(&self, configs: &BTreeMap<String, String>) -> Result<(), Refused> {
        let configs: Vec<Json> = configs.iter().map(|(name, value)| json!({ "Name": name, "Value": value })).collect();
        let topic = json!({
            "Name": self.names.topic(), "NumPartitions": 1, "ReplicationFactor": 1, "Assignments": [], "Configs": configs,
        });
        let request = json!({ "Topics": [topic], "timeoutMs": 5000 });
        let create = || {
            let created = self.broker.ask(CREATE_TOPICS, &request)?;
            let results = created.body["Topics"].as_array().into_iter().flatten();
            let result = results.into_iter().find(|result| result["Name"] == self.names.topic());
            let error = result.and_then(|result| result["ErrorCode"].as_i64());
            error.ok_or_else(|| created.lacking(self.broker, "has no result for the topic"))
        };
        let mut error = create()?;
        if error == TOPIC_ALREADY_EXISTS {
            // An earlier run with the same seed was killed before it cleaned up.
            self.delete_topic();
            error = create()?;
        }
        if error != 0 {
            return Err(Refused::by_error(CREATE_TOPICS, error));
        }
        self.wait_for_topic();
        Ok(())
    }

    /// A created topic may be described as unknown for some milliseconds.
    fn wait_for_topic(&self) {
        let resource = json!({ "ResourceType": 2, "ResourceName": self.names.topic(), "ConfigurationKeys": [] });
        let deadline = Instant::now() + VISIBLE;
        while Instant::now() < deadline {
            match self.broker.ask(DESCRIBE_CONFIGS, &json!({ "Resources": [resource] })) {
                Ok(described) if described.body["Results"][0]["ErrorCode"] != 0 => sleep(Duration::from_millis(2)),
                _ => return,
            }
        }
    }

    fn delete_topic(&self) {
        let topic = self.names.topic();
        let range = self.broker.advertised(DELETE_TOPICS);
        // Up to version 5 topics are named in a list of texts, from 6 on in structures (KIP-516).
        let named = range.intersect(VersionRange::new(ApiVersion(0), ApiVersion(5))).highest();
        let _ = match named {
            Some(version) => {
                let body = json!({ "TopicNames": [topic], "TimeoutMs": 5000 });
                self.broker.ask_at(DELETE_TOPICS, version, &body)
            }
            None => self.broker.ask(DELETE_TOPICS, &json!({ "Topics": [{ "Name": topic }], "TimeoutMs": 5000 })),
        };
    }

    /// Sets back what the case changed, on connections of its own: the case's may be closed or out of step.
    pub fn clean_up(&self) {
        for step in self.case.finally.iter().filter(|_| self.conversed) {
            let version = match step.version {
                StepVersion::Exact(version) => Some(version),
                StepVersion::Case => Some(self.version),
                StepVersion::Max => self.broker.highest(&step.api),
            };
            if let (Some(version), Send::Value(json)) = (version, &step.send) {
                let body = map_text(json, &|text| self.names.text(text));
                let _ = self.broker.ask_at(&step.api, version, &body);
            }
        }
        if self.topic_asked {
            self.delete_topic();
        }
    }
}

/// Whether an answer is due.
fn is_due(expect: &Expect) -> bool {
    matches!(expect, Expect::Error(_) | Expect::Values(_))
}

/// Whether a step's texts hold a variable.
fn holds(step: &Step, variable: &str) -> bool {
    let sent = match &step.send {
        Send::Value(json) => json.to_string(),
        _ => String::new(),
    };
    let expected = step.expect.as_ref().map(|expect| expect.to_json().to_string()).unwrap_or_default();
    sent.contains(variable) || expected.contains(variable)
}

/// What of answers that are as expected is to be told.
#[derive(Default)]
struct Taken {
    /// Variants and liberties that were taken.
    notes: Vec<String>,
    /// The first error code that the guide does not list, where the case does not say which is due.
    unlisted: Option<Box<Deviation>>,
}

impl Taken {
    fn extend(&mut self, more: Taken) {
        self.notes.extend(more.notes);
        self.unlisted = self.unlisted.take().or(more.unlisted);
    }
}

/// Path and value of the first error code of a message that the protocol guide does not list.
fn unlisted_code(json: &Json) -> Option<(String, i64)> {
    match json {
        Json::Object(fields) => fields.iter().find_map(|(name, value)| {
            let code = value.as_i64().filter(|code| name.ends_with("ErrorCode") && error_name(*code).is_none());
            let within = || {
                let (path, code) = unlisted_code(value)?;
                let dot = if path.starts_with('[') { "" } else { "." };
                Some((format!("{name}{dot}{path}"), code))
            };
            code.map(|code| (name.clone(), code)).or_else(within)
        }),
        Json::Array(elements) => elements.iter().enumerate().find_map(|(index, element)| {
            let (path, code) = unlisted_code(element)?;
            Some((format!("[{index}].{path}"), code))
        }),
        _ => None,
    }
}

enum GroupError {
    /// The case could not be put into bytes: a fault of ours.
    Ours(String),
    Deviation(Box<Deviation>),
}

/// How an answer is not as expected, ready for an outcome.
struct Deviation {
    class: Class,
    path: Option<String>,
    detail: String,
    sent: String,
    want: Json,
    got: Json,
    /// Whether asking again makes sense: an answer came that was in order, and its values may change.
    again: bool,
    /// The verdict, where the case is not judged after all: it stands on what is not so here, or it was refused.
    instead: Option<Verdict>,
    /// The error code by which it was refused.
    refused: Option<i16>,
    /// How binding it is, whatever the case is about; as the case unless given.
    level: Option<Level>,
}

/// How an answer is not as expected.
pub(super) struct Mismatch {
    class: Class,
    what: String,
    values: Vec<WrongValue>,
    /// Whether the answer is in order but for its values.
    well_formed: bool,
    /// Whether it is at level `must` whatever the case is about: a secret in clear, a breach of the protocol.
    must: bool,
    /// The error code by which the broker's surroundings refuse what the case is about: it is not judged then.
    refused: Option<i16>,
}

impl Mismatch {
    fn plain(class: Class, what: String) -> Mismatch {
        Mismatch { class, what, values: Vec::new(), well_formed: false, must: false, refused: None }
    }

    /// What an answer that is in order says against itself, whatever the case is about.
    pub(super) fn contradiction(class: Class, what: String) -> Mismatch {
        Mismatch { well_formed: true, must: true, ..Mismatch::plain(class, what) }
    }
}

struct WrongValue {
    path: Path,
    matcher: Matcher,
    found: Found,
}

impl WrongValue {
    /// State that is wrong or changed is a wrong value; a wrong code, echo or type is a wrong answer; a success where
    /// an error is due hides the error.
    fn class(&self) -> Class {
        match self.path.last_field() {
            "ErrorCode" if self.found == Found::One(0.into()) => Class::ErrorHidden,
            "Value" | "ConfigSource" | "IsDefault" | "ReadOnly" | "IsSensitive" | "Source" => Class::WrongValue,
            _ => Class::WrongAnswer,
        }
    }

    fn describe(&self) -> String {
        match &self.found {
            Found::Nothing => format!("{} is not there", self.path),
            Found::One(Json::Number(number)) => {
                format!("{} is {number}, due is {}", self.path, self.matcher.to_json())
            }
            Found::One(_) | Found::Several(_) => format!("{} is not what is due", self.path),
        }
    }
}

/// The answer's own error code, or else those of all its results, of which there is at least one.
pub(super) fn has_error(answer: &Answer, code: i16) -> Result<(), Mismatch> {
    let own = Path::parse("ErrorCode").expect("a path");
    let path = if own.find(&answer.body).is_empty() {
        let results = ["Results", "Responses", "Topics"].into_iter().find(|name| answer.body.get(name).is_some());
        Path::parse(&format!("{}[].ErrorCode", results.unwrap_or("Results"))).expect("a path")
    } else {
        own
    };
    let found = path.find(&answer.body);
    if !found.is_empty() && found.iter().all(|value| **value == code) {
        return Ok(());
    }
    let matcher = Matcher::Is(code.into());
    let found = matcher.check(&path, &answer.body).err().unwrap_or(Found::Nothing);
    let wrong = WrongValue { path, matcher, found };
    Err(Mismatch {
        class: wrong.class(),
        what: wrong.describe(),
        values: vec![wrong],
        well_formed: true,
        must: false,
        refused: None,
    })
}

/// A config has one value in force: where a result of DescribeConfigs lists it again, with the same.
pub(super) fn has_one_value_each(answer: &Answer) -> Result<(), Mismatch> {
    let results = answer.body.get("Results").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    for (number, result) in results.iter().enumerate() {
        let mut values = HashMap::new();
        for config in result.get("Configs").and_then(Json::as_array).into_iter().flatten() {
            let (name, value) = (config["Name"].as_str().unwrap_or_default(), &config["Value"]);
            if values.insert(name, value).is_some_and(|other| other != value) {
                let what = format!("Results[{number}].Configs has a config twice, with different values");
                return Err(Mismatch::plain(Class::WrongValue, what));
            }
        }
    }
    Ok(())
}

/// The number of an API is the key of what ApiVersions lists. An API that is there again with the same versions harms
/// nobody: kafka-clients has the last entry in force, others have the first, so that it is left to a case of level should.
/// With other versions these two speak past each other.
pub(super) fn has_one_range_each(answer: &Answer) -> Result<(), Mismatch> {
    let mut ranges = HashMap::new();
    for api in answer.body.get("ApiKeys").and_then(Json::as_array).into_iter().flatten() {
        let range = (&api["MinVersion"], &api["MaxVersion"]);
        if ranges.insert(api["ApiKey"].as_i64(), range).is_some_and(|other| other != range) {
            let what = format!("ApiKeys has API {} twice, with different versions", api["ApiKey"]);
            return Err(Mismatch::contradiction(Class::WrongValue, what));
        }
    }
    Ok(())
}

/// Each resource asked has one result, and nothing else has: by type and name, in any order. A type that the broker does
/// not know may come back as 0, UNKNOWN; every broker knows topics and brokers.
pub(super) fn has_results_of(asked: &Json, answer: &Answer) -> Result<(), Mismatch> {
    let results = ["Results", "Responses"].into_iter().find_map(|name| answer.body.get(name)?.as_array());
    let (Some(asked), Some(results)) = (asked.get("Resources").and_then(Json::as_array), results) else {
        return Ok(());
    };
    let mut unanswered: Vec<&Json> = asked.iter().collect();
    let mut answers = |result: &Json, unknown: bool| {
        let fits = |resource: &&Json| {
            let asked_type = &resource["ResourceType"];
            let same_type = match unknown {
                true => result["ResourceType"] == 0 && asked_type != TOPIC && asked_type != BROKER,
                false => result["ResourceType"] == *asked_type,
            };
            same_type && result["ResourceName"] == resource["ResourceName"]
        };
        unanswered.iter().position(fits).map(|index| unanswered.swap_remove(index)).is_some()
    };
    let inexact: Vec<&Json> = results.iter().filter(|result| !answers(result, false)).collect();
    let unasked = inexact.into_iter().filter(|result| !answers(result, true)).count();
    if unasked == 0 && unanswered.is_empty() {
        return Ok(());
    }
    let what = format!("the results are not those of the resources asked: {} for {}", results.len(), asked.len());
    Err(Mismatch::plain(Class::WrongAnswer, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_looked_for_in_every_result() {
        let result = |name: &str, code: i64| json!({ "ErrorCode": 0, "Partitions": [{ name: 0 }, { name: code }] });
        let body =
            |name: &str, code: i64| json!({ "ThrottleTimeMs": 999, "Topics": [result(name, 42), result(name, code)] });
        let found = unlisted_code(&body("ErrorCode", 999));
        assert_eq!(found, Some(("Topics[1].Partitions[1].ErrorCode".to_owned(), 999)));
        assert!(unlisted_code(&body("TopicConfigErrorCode", -2)).is_some());
        assert_eq!(unlisted_code(&body("ErrorCode", -1)), None);
        assert_eq!(unlisted_code(&body("PartitionIndex", 999)), None);
    }
}
