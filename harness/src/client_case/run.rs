//! Drives a client through a case.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use codec::{ApiVersion, MessageKind, Protocol, VersionRange, hex};
use serde_json::{Value as Json, json};

use super::compare::Deviation;
use super::judge::{Judge, Stopped};
use super::{ClientCase, OPERATIONS};
use crate::adapter::{self, Answer, OperationSupport, Said};
use crate::expect::map_text;
use crate::results::{Class, Level, Op, Outcome, Role, Verdict};
use crate::scripted_broker::{Exchange, Reply, Script, ScriptedBroker};

/// What a client is given beyond three times its own time limit before it counts as hung.
const HANG_GRACE: Duration = Duration::from_secs(5);

/// A client that hangs so often in a row while it is met is not met any further: what is left of the time that it may let
/// pass is for cases.
const HUNG_IN_A_ROW: u32 = 3;

/// Asks the client: a message for its adapter, without id, and the time until which an answer must be there.
pub type Drive<'d> = &'d mut dyn FnMut(Json, Duration) -> Answer;

/// A client as it was met: what it says that it can do, and the versions it was seen to have.
#[derive(Clone, Debug)]
pub struct Client {
    /// `name@version`.
    pub name: String,
    operations: BTreeMap<String, OperationSupport>,
    versions: BTreeMap<&'static str, Vec<ApiVersion>>,
    /// The versions that it was not offered, since it hung too often before.
    unmet: BTreeMap<&'static str, Vec<ApiVersion>>,
    /// The APIs that it was seen to send.
    sends: BTreeSet<&'static str>,
}

impl Client {
    /// Meets a client that declares these `operations` in its handshake. It is offered each version of each API that
    /// they call: it has those that it does not refuse, so that a missing version is told from a refusal that is a fault.
    pub fn meet(
        protocol: &'static Protocol,
        name: &str,
        operations: &BTreeMap<String, OperationSupport>,
        drive: Drive<'_>,
    ) -> anyhow::Result<Client> {
        check_declared(protocol, operations).map_err(|what| anyhow::anyhow!(adapter::broke_protocol(&what)))?;
        let mut client = Client {
            name: name.to_owned(),
            operations: operations.clone(),
            versions: BTreeMap::new(),
            unmet: BTreeMap::new(),
            sends: BTreeSet::new(),
        };
        let mut hung = 0;
        for (operation, api) in OPERATIONS.into_iter().filter(|(operation, _)| operations.contains_key(*operation)) {
            let Some(spec) = protocol.api(api, MessageKind::Request) else { continue };
            let mut had = Vec::new();
            for version in spec.valid_versions.iter() {
                if hung == HUNG_IN_A_ROW {
                    client.unmet.entry(api).or_default().push(version);
                    continue;
                }
                let Met { sent, refused, hangs } = meet_version(protocol, operation, api, version, drive)?;
                hung = if hangs { hung + 1 } else { 0 };
                if sent {
                    client.sends.insert(api);
                }
                if sent || !refused {
                    had.push(version);
                }
            }
            client.versions.insert(api, had);
        }
        Ok(client)
    }

    /// The fields of results that the client declares to show; `None` where it declares nothing, and so shows all.
    fn shows(&self, operation: &str) -> Option<&BTreeSet<String>> {
        self.operations.get(operation)?.shows.as_ref()
    }

    /// Why a case at one version is not for this client, by what it declares or was seen to have.
    fn lacks(&self, case: &ClientCase, version: ApiVersion) -> Option<String> {
        let operation = &case.operation;
        let Some(options) = self.operations.get(operation.name) else {
            return Some(format!("the client has no {}", operation.name));
        };
        if let Some(shows) = self.shows(operation.name)
            && let Some(field) = case.expect.shown.iter().find(|field| !shows.contains(*field))
        {
            return Some(format!("the client's {} does not show {field}", operation.name));
        }
        if let Some(option) = operation.needs().find(|option| !options.has(option)) {
            return Some(format!("the client's {} has no option {option}", operation.name));
        }
        let had = has(&self.versions, operation.api, version) || has(&self.unmet, operation.api, version);
        (forces(case) && !had).then(|| format!("the client has no version {version} of {}", operation.api))
    }

    /// Why it is not known whether the client has what a case is about.
    fn unknown(&self, case: &ClientCase, version: ApiVersion) -> Option<String> {
        let api = case.operation.api;
        let hung =
            || format!("the client was not offered version {version} of {api}: it hung {HUNG_IN_A_ROW} times in a row");
        (forces(case) && has(&self.unmet, api, version)).then(hung)
    }
}

/// Whether a case needs its version of the operation's API. Where it is about what is advertised, a version that the
/// client lacks is the point.
fn forces(case: &ClientCase) -> bool {
    case.api == case.operation.api && !case.caps.contains_key(case.operation.api)
}

fn has(versions: &BTreeMap<&'static str, Vec<ApiVersion>>, api: &str, version: ApiVersion) -> bool {
    versions.get(api).is_some_and(|versions| versions.contains(&version))
}

/// Whether what a client declares is there to be declared: what is mistyped would leave cases out.
fn check_declared(protocol: &Protocol, operations: &BTreeMap<String, OperationSupport>) -> Result<(), String> {
    for (name, declared) in operations {
        let Some((_, api)) = OPERATIONS.into_iter().find(|(operation, _)| operation == name) else {
            let names = OPERATIONS.map(|(operation, _)| operation).join(", ");
            return Err(format!("the handshake's operations have {name:?}, and there are {names}"));
        };
        let Some(spec) = protocol.api(api, MessageKind::Response) else { continue };
        let fields = || spec.fields.iter().chain(spec.structs.values().flat_map(|of| &of.fields));
        let unknown = |shown: &&String| !fields().any(|field| *field.name == ***shown);
        if let Some(shown) = declared.shows.iter().flatten().find(unknown) {
            return Err(format!("the handshake's {name} shows {shown:?}, which {} does not have", spec.name));
        }
    }
    Ok(())
}

/// What a client did when one version of an API was all that it was offered.
struct Met {
    sent: bool,
    refused: bool,
    hangs: bool,
}

/// Offers a client one version of an API and nothing else of it.
fn meet_version(
    protocol: &'static Protocol,
    operation: &str,
    api: &'static str,
    version: ApiVersion,
    drive: Drive<'_>,
) -> std::io::Result<Met> {
    let mut caps: BTreeMap<i16, VersionRange> = BTreeMap::new();
    for name in ["ApiVersions", "Metadata", api] {
        if let Some(spec) = protocol.api(name, MessageKind::Request)
            && let Some(key) = spec.api_key
        {
            caps.insert(key.0, if name == api { VersionRange::new(version, version) } else { spec.valid_versions });
        }
    }
    let result = json!({ "ErrorCode": 0, "ResourceType": 2, "ResourceName": "t", "Configs": [] });
    let results = if api == "DescribeConfigs" { "Results" } else { "Responses" };
    let mut value = json!({ results: [result] });
    if api != "DescribeConfigs" {
        value[results][0].as_object_mut().into_iter().for_each(|result| drop(result.remove("Configs")));
    }
    let reply = Reply { api: api.to_owned(), value: Some(value), ..Reply::default() };
    let script = Script { caps, topics: vec!["t".to_owned()], replies: vec![reply] };
    let broker = ScriptedBroker::start(protocol, script)?;
    let resource = if api == "DescribeConfigs" {
        json!({ "ResourceType": 2, "ResourceName": "t" })
    } else {
        json!({ "ResourceType": 2, "ResourceName": "t", "Configs": [{ "Name": "k", "Value": "v" }] })
    };
    let message = json!({
        "op": operation, "bootstrap": broker.address().to_string(), "resources": [resource], "timeout_ms": 5000,
    });
    let answer = drive(message, Duration::from_secs(15) + HANG_GRACE);
    let refused = matches!(&answer, Answer::Line(line)
        if matches!(Said::of(line), Ok(Said::Refused(_) | Said::Unsupported(_))));
    let sent = broker.exchanges().iter().any(|exchange| is_of(exchange, protocol, api));
    Ok(Met { sent, refused, hangs: matches!(answer, Answer::Hung(_)) })
}

/// Whether an exchange is of an API.
pub(super) fn is_of(exchange: &Exchange, protocol: &Protocol, api: &str) -> bool {
    let key = protocol.api(api, MessageKind::Request).and_then(|spec| spec.api_key);
    exchange.api.is_some_and(|(exchanged, _)| Some(exchanged) == key)
}

/// Runs one case at one version and judges it; a deviation from what is less binding than `fails` is none that fails.
/// The broker ends before this returns.
pub fn run(
    protocol: &'static Protocol,
    case: &ClientCase,
    version: ApiVersion,
    client: &Client,
    fails: Level,
    drive: Drive<'_>,
) -> Outcome {
    let mut outcome = Outcome {
        peer: client.name.clone(),
        role: Role::Client,
        message: format!("{}Request", case.api),
        api: case.api.clone(),
        version: version.0,
        case: case.id(version),
        op: Op::Drive,
        level: case.level,
        verdict: Verdict::Pass,
        class: None,
        severity: None,
        at: None,
        sent: None,
        want: None,
        got: None,
        detail: None,
        refused: None,
        elapsed_ms: 0,
    };
    if let Some(lack) = client.lacks(case, version) {
        (outcome.verdict, outcome.detail) = (Verdict::Unsupported, Some(lack));
        return outcome;
    }
    if let Some(why) = client.unknown(case, version) {
        (outcome.verdict, outcome.detail) = (Verdict::NotRun, Some(why));
        return outcome;
    }
    let broker = match ScriptedBroker::start(protocol, case.script(protocol, version)) {
        Ok(broker) => broker,
        Err(error) => {
            let what = format!("the scripted broker did not start: {error}");
            (outcome.verdict, outcome.detail) = (Verdict::HarnessError, Some(what));
            return outcome;
        }
    };
    let address = broker.address();
    let mut message = case.operation.message.clone();
    if let Some(Json::String(bootstrap)) = message.get_mut("bootstrap") {
        *bootstrap = bootstrap.replace("$bootstrap", &address.to_string());
    }
    let started = Instant::now();
    let deadline = Duration::from_millis(3 * case.operation.timeout_ms) + HANG_GRACE;
    let answer = drive(message.into(), deadline);
    let elapsed = started.elapsed();
    let exchanges = broker.exchanges();
    drop(broker);

    let advertised = case.advertised(protocol, version);
    let shows = client.shows(case.operation.name).cloned();
    let sends = client.sends.contains(case.operation.api);
    let judged = Judge { protocol, case, advertised, shows, sends, exchanges: &exchanges }.judge(&answer, elapsed);
    outcome.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    match judged {
        Ok(()) => {}
        Err(Stopped::Unsupported(why)) => {
            (outcome.verdict, outcome.detail) = (Verdict::Unsupported, Some(masked(&why, address.port())));
        }
        Err(Stopped::NotRun(why)) => {
            (outcome.verdict, outcome.detail) = (Verdict::NotRun, Some(masked(&why, address.port())));
        }
        Err(Stopped::Broken(what)) => {
            let what = adapter::broke_protocol(&what);
            (outcome.verdict, outcome.detail) = (Verdict::HarnessError, Some(masked(&what, address.port())));
        }
        Err(Stopped::Deviation(deviation)) => {
            let Deviation { class, at, want, got, detail } = *deviation;
            // Whatever the case is about: no input may do the first three, and a value that never came misleads.
            if matches!(class, Class::Crash | Class::Hang | Class::Memory | Class::InventedValue) {
                outcome.level = Level::Must;
            }
            outcome.verdict = if outcome.level > fails { Verdict::Differs } else { Verdict::Fail };
            (outcome.class, outcome.severity) = (Some(class), Some(class.severity()));
            outcome.sent = sent(protocol, case, &exchanges);
            outcome.at = at;
            outcome.want = want;
            outcome.got = got.map(|got| map_text(&got, &|text| masked(text, address.port())));
            outcome.detail = Some(masked(&detail, address.port()));
        }
    }
    outcome
}

/// The answer that the case is about, in hex; its correlation id, which the client chose, is zero.
fn sent(protocol: &Protocol, case: &ClientCase, exchanges: &[Exchange]) -> Option<String> {
    let last = |api: &str| exchanges.iter().rev().filter(|e| is_of(e, protocol, api)).find_map(|e| e.answer.clone());
    let mut frame = last(case.operation.api).or_else(|| last("ApiVersions"))?;
    if let Some(correlation_id) = frame.get_mut(4..8) {
        correlation_id.fill(0);
    }
    Some(hex(&frame))
}

/// A text without what differs from run to run: the broker's port, times, and numbers of client objects.
fn masked(text: &str, port: u16) -> String {
    let port = port.to_string();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let (digits, after) = from.split_at(from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len()));
        out.push_str(before);
        let counted = ["producer-", "consumer-", "adminclient-"].iter().any(|name| before.ends_with(name));
        out.push_str(match digits {
            _ if digits == port && before.ends_with(':') => "PORT",
            _ if counted || after.starts_with("ms") || after.starts_with(" ms") => "N",
            _ => digits,
        });
        rest = after;
    }
    out + rest
}
