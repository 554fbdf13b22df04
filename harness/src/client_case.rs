//! Client cases, `vectors/client/*.json`: what a client is asked for, how the scripted broker answers it, what is due.
//! Here they are loaded and linted; [`run`] drives a client through one and judges it.

mod compare;
mod judge;
mod lint;
mod run;

use std::collections::BTreeMap;

use codec::{ApiVersion, MessageKind, Protocol, VersionRange};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

pub use run::{Client, Drive, run};

use crate::exchange::case_file::{self, Wrong, at};
use crate::exchange::{LONGEST_MS, LintError};
use crate::expect::{Matcher, Path};
use crate::names::kebab;
use crate::results::{CaseInfo, Level};
use crate::scripted_broker::{Reply, Script};

/// The operations a client can be asked for, and the API that each calls.
pub const OPERATIONS: [(&str, &str); 3] = [
    ("describe_configs", "DescribeConfigs"),
    ("alter_configs", "AlterConfigs"),
    ("incremental_alter_configs", "IncrementalAlterConfigs"),
];

/// Options of an operation, and the field of the request that each sets.
const OPTIONS: [(&str, &str); 3] =
    [("synonyms", "IncludeSynonyms"), ("documentation", "IncludeDocumentation"), ("validate_only", "ValidateOnly")];

/// Time a client is given for an operation, in milliseconds, unless the case says otherwise.
const TIMEOUT_MS: u64 = 5_000;

/// One case, at each of its versions.
#[derive(Clone, Debug)]
pub struct ClientCase {
    /// File it stands in.
    pub file: String,
    /// The last part of its ids, unique within its API: `resource-error`.
    pub slug: String,
    /// The API under test.
    pub api: String,
    /// The versions of that API that the broker forces on the client, one after the other, by advertising no other; for
    /// ApiVersions the highest that the broker has.
    pub versions: VersionRange,
    /// How binding it is.
    pub level: Level,
    /// Definition fields, KIPs, guide sections, public reports.
    pub cite: Vec<String>,
    /// One sentence: what a correct client does.
    pub requires: String,
    /// What the client is asked for.
    pub operation: Operation,
    /// Versions that the broker advertises beside those forced, by API.
    pub caps: BTreeMap<String, VersionRange>,
    /// Topics of the broker beside those that the operation names.
    pub topics: Vec<String>,
    /// How the broker answers.
    pub replies: Vec<Reply>,
    /// What is due.
    pub expect: Expect,
}

/// What a client is asked for.
#[derive(Clone, Debug)]
pub struct Operation {
    /// `describe_configs`, or another of [`OPERATIONS`].
    pub name: &'static str,
    /// The API it calls.
    pub api: &'static str,
    /// The message for the adapter, without its id; `$bootstrap` stands for the broker's address.
    pub message: Map<String, Json>,
    /// The client's own time limit, in milliseconds.
    pub timeout_ms: u64,
}

impl Operation {
    /// The resources asked for.
    pub fn resources(&self) -> &[Json] {
        self.message.get("resources").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether an option is set.
    fn option(&self, name: &str) -> bool {
        self.message.get(name) == Some(&Json::Bool(true))
    }

    /// The options of the client that it needs.
    fn needs(&self) -> impl Iterator<Item = &'static str> {
        let keys = self.resources().iter().any(|r| r.get("ConfigurationKeys").is_some_and(|keys| !keys.is_null()));
        let set = OPTIONS.iter().map(|(option, _)| *option).filter(|option| self.option(option));
        set.chain(keys.then_some("keys"))
    }
}

/// What is due of a client.
#[derive(Clone, Debug)]
pub struct Expect {
    /// What may come of the operation.
    pub outcome: Vec<Due>,
    /// Paths into each request of the operation's API, and what stands there, beside the resources and options asked.
    pub sent: Vec<(Path, Matcher)>,
    /// APIs of which no request may come.
    pub sent_none: Vec<String>,
    /// Fields of results that the case is about: it is not for a client that declares not to show them.
    pub shown: Vec<String>,
    /// Paths into what the client shows, and what stands there; beside that it shows what the broker answered.
    pub reported: Vec<(Path, Matcher)>,
    /// When it must be done, in milliseconds; three times the client's own limit unless given.
    pub within_ms: u64,
}

/// A thing that may come of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Due {
    /// The client shows what the broker answered: values as values, errors as errors.
    Answer,
    /// The client says no before it sends the request.
    Refused,
    /// The client says that it failed, and shows no values.
    Failed,
}

impl case_file::Identified for ClientCase {
    fn identity(&self) -> (&str, &str, &str) {
        (&self.file, &self.api, &self.slug)
    }
}

impl ClientCase {
    /// The id at one version: `client/describe-configs/v1/resource-error`.
    pub fn id(&self, version: ApiVersion) -> String {
        format!("client/{}/v{version}/{}", kebab(&self.api), self.slug)
    }

    /// What a report tells of it.
    pub fn info(&self) -> CaseInfo {
        CaseInfo { requires: self.requires.clone(), cite: self.cite.clone() }
    }

    /// The versions that the broker advertises at one version of the case, by API.
    fn advertised(&self, protocol: &Protocol, version: ApiVersion) -> BTreeMap<String, VersionRange> {
        let apis = ["ApiVersions", "Metadata"].into_iter().chain(OPERATIONS.map(|(_, api)| api));
        let all =
            apis.filter_map(|api| Some((api.to_owned(), protocol.api(api, MessageKind::Request)?.valid_versions)));
        let mut advertised: BTreeMap<String, VersionRange> = all.collect();
        let lowest = if self.api == "ApiVersions" { ApiVersion(0) } else { version };
        advertised.insert(self.api.clone(), VersionRange::new(lowest, version));
        advertised.extend(self.caps.clone());
        advertised
    }

    /// The script of the broker at one version of the case.
    pub fn script(&self, protocol: &Protocol, version: ApiVersion) -> Script {
        let key =
            |(api, range): (String, VersionRange)| Some((protocol.api(&api, MessageKind::Request)?.api_key?.0, range));
        let topic = |resource: &Json| {
            let is_topic = resource.get("ResourceType").and_then(Json::as_i64) == Some(2);
            resource.get("ResourceName").filter(|_| is_topic)?.as_str().map(str::to_owned)
        };
        Script {
            caps: self.advertised(protocol, version).into_iter().filter_map(key).collect(),
            topics: self.operation.resources().iter().filter_map(topic).chain(self.topics.clone()).collect(),
            replies: self.replies.clone(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    id: String,
    versions: String,
    level: Level,
    cite: Vec<String>,
    requires: String,
    drive: Json,
    #[serde(default)]
    broker: RawBroker,
    #[serde(default)]
    expect: Option<Json>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDrive {
    op: Option<String>,
    bootstrap: Option<String>,
    resources: Json,
    synonyms: Option<bool>,
    documentation: Option<bool>,
    validate_only: Option<bool>,
    timeout_ms: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBroker {
    #[serde(default)]
    caps: BTreeMap<String, String>,
    #[serde(default)]
    topics: Vec<String>,
    #[serde(default)]
    replies: Vec<Json>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExpect {
    outcome: Option<RawOutcome>,
    #[serde(default)]
    sent: BTreeMap<String, Json>,
    #[serde(default)]
    sent_none: Vec<String>,
    #[serde(default)]
    shown: Vec<String>,
    #[serde(default)]
    reported: BTreeMap<String, Json>,
    within_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawOutcome {
    One(Due),
    Several(Vec<Due>),
}

/// Loads and lints case files, each a name and its text. Every error found is given.
pub fn load(files: &[(&str, &str)], protocol: &Protocol) -> Result<Vec<ClientCase>, Vec<LintError>> {
    case_file::load(files, protocol, &read_case, &|request, case| lint::check(protocol, request, case))
}

fn read_case(file: &str, api: &str, json: &Json) -> Result<ClientCase, Wrong> {
    let raw: RawCase = at("", RawCase::deserialize(json))?;
    let operation = read_drive(api, &raw.drive)?;
    let caps = raw
        .broker
        .caps
        .iter()
        .map(|(api, range)| Ok((api.clone(), at(format!("broker.caps.{api}"), range.parse::<VersionRange>())?)));
    let replies = raw.broker.replies.iter().enumerate().map(|(index, json)| {
        let mut reply: Reply = at(format!("broker.replies[{index}]"), Reply::deserialize(json))?;
        if reply.api.is_empty() {
            reply.api = operation.api.to_owned();
        }
        Ok(reply)
    });
    Ok(ClientCase {
        file: file.to_owned(),
        slug: raw.id,
        api: api.to_owned(),
        versions: at("versions", raw.versions.parse())?,
        level: raw.level,
        cite: raw.cite,
        requires: raw.requires,
        caps: caps.collect::<Result<_, Wrong>>()?,
        topics: raw.broker.topics,
        replies: replies.collect::<Result<_, Wrong>>()?,
        expect: read_expect(&operation, raw.expect.as_ref())?,
        operation,
    })
}

fn read_drive(api: &str, json: &Json) -> Result<Operation, Wrong> {
    let raw: RawDrive = at("drive", RawDrive::deserialize(json))?;
    let found = match &raw.op {
        Some(op) => OPERATIONS.iter().find(|(name, _)| name == op),
        None => OPERATIONS.iter().find(|(_, called)| *called == api),
    };
    let known = OPERATIONS.map(|(name, _)| name).join(", ");
    let &(name, api) = at("drive.op", found.ok_or(format!("an operation is one of {known}")))?;
    let timeout_ms = raw.timeout_ms.unwrap_or(TIMEOUT_MS);
    let mut message = Map::new();
    message.insert("op".to_owned(), name.into());
    message.insert("bootstrap".to_owned(), raw.bootstrap.unwrap_or_else(|| "$bootstrap".to_owned()).into());
    message.insert("resources".to_owned(), raw.resources);
    let options =
        [("synonyms", raw.synonyms), ("documentation", raw.documentation), ("validate_only", raw.validate_only)];
    for (option, set) in options {
        message.extend(set.map(|set| (option.to_owned(), set.into())));
    }
    message.insert("timeout_ms".to_owned(), timeout_ms.into());
    Ok(Operation { name, api, message, timeout_ms })
}

fn read_expect(operation: &Operation, json: Option<&Json>) -> Result<Expect, Wrong> {
    let raw = match json {
        Some(json) => at("expect", RawExpect::deserialize(json))?,
        None => RawExpect::default(),
    };
    let paths = |name: &str, paths: &BTreeMap<String, Json>| {
        let entry = |(path, matcher): (&String, &Json)| {
            let place = format!("expect.{name}");
            let parsed = at(&place, Path::parse(path))?;
            Ok((parsed, at(&place, Matcher::parse(matcher).map_err(|what| format!("{path}: {what}")))?))
        };
        paths.iter().map(entry).collect::<Result<Vec<_>, Wrong>>()
    };
    let outcome = match raw.outcome {
        None => vec![Due::Answer],
        Some(RawOutcome::One(due)) => vec![due],
        Some(RawOutcome::Several(due)) => due,
    };
    let mut sent_none = raw.sent_none;
    if outcome == [Due::Refused] && sent_none.is_empty() {
        sent_none.push(operation.api.to_owned());
    }
    Ok(Expect {
        outcome,
        sent: paths("sent", &raw.sent)?,
        sent_none,
        shown: raw.shown,
        reported: paths("reported", &raw.reported)?,
        within_ms: raw.within_ms.unwrap_or(operation.timeout_ms.saturating_mul(3)),
    })
}

#[cfg(test)]
mod tests;
