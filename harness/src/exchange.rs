//! Exchange cases: scripted conversations with a broker, as data in `vectors/broker/*.json`. Here they are loaded and
//! linted; `live_broker` runs them.

pub(crate) mod case_file;
mod lint;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use codec::{ApiVersion, Protocol, VersionRange, parse_hex};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

pub use self::case_file::contents;
use self::case_file::{Wrong, at};
use crate::expect::Expect;
use crate::names::kebab;
use crate::results::Level;

/// What a broker's owner must have agreed to before a case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consent {
    /// Nothing beyond asking: well-formed ApiVersions, Metadata and DescribeConfigs requests.
    Describe,
    /// Scratch topics are created, altered and deleted.
    Writes,
    /// The broker's own configs are altered and set back.
    BrokerWrites,
    /// Malformed requests, unknown API keys, versions that were not advertised.
    Hostile,
}

impl Consent {
    /// The option of `certify broker` that gives it; asking needs none.
    pub fn option(self) -> Option<&'static str> {
        match self {
            Consent::Describe => None,
            Consent::Writes => Some("--allow-writes"),
            Consent::BrokerWrites => Some("--allow-broker-writes"),
            Consent::Hostile => Some("--allow-hostile"),
        }
    }
}

/// One case: a conversation on one connection, at each of its versions.
#[derive(Clone, Debug)]
pub struct Case {
    /// File it stands in.
    pub file: String,
    /// The last part of its ids, unique within its API: `unknown-topic`.
    pub slug: String,
    /// The API under test.
    pub api: String,
    /// Versions of that API it runs at.
    pub versions: VersionRange,
    /// True for a case about versions that the broker does not advertise: it runs at those only.
    pub unadvertised: bool,
    /// How binding it is.
    pub level: Level,
    /// What the broker's owner must have agreed to.
    pub consent: Consent,
    /// Definition fields, KIPs, guide sections, public reports.
    pub cite: Vec<String>,
    /// One sentence: what a correct broker does.
    pub requires: String,
    /// Configs of the scratch topic `$topic`, if the case has one.
    pub topic: Option<BTreeMap<String, String>>,
    /// The conversation.
    pub steps: Vec<Step>,
    /// Requests that set back what the conversation changed, sent in any case, not judged.
    pub finally: Vec<Step>,
    /// Answers that are taken too.
    pub variants: Vec<Variant>,
}

impl Case {
    /// The id at one version: `broker/describe-configs/v4/unknown-topic`.
    pub fn id(&self, version: ApiVersion) -> String {
        format!("broker/{}/v{version}/{}", kebab(&self.api), self.slug)
    }

    /// What the broker's owner must have agreed to: a scratch topic is a write, whatever is sent about it.
    pub fn needs(&self) -> BTreeSet<Consent> {
        let topic = self.topic.is_some().then_some(Consent::Writes);
        topic.into_iter().chain([self.consent]).collect()
    }

    /// The options of `certify broker` that it needs beside these consents.
    pub fn lacking(&self, consents: &BTreeSet<Consent>) -> Vec<&'static str> {
        self.needs().difference(consents).filter_map(|consent| consent.option()).collect()
    }
}

impl case_file::Identified for Case {
    fn identity(&self) -> (&str, &str, &str) {
        (&self.file, &self.api, &self.slug)
    }
}

/// One request and what is due in reply.
#[derive(Clone, Debug)]
pub struct Step {
    /// API of the request.
    pub api: String,
    /// Version of the request.
    pub version: StepVersion,
    /// Header fields that differ from the usual ones.
    pub header: Map<String, Json>,
    /// Header version, where it is not the one that goes with the request.
    pub header_version: Option<i16>,
    /// What is sent.
    pub send: Send,
    /// So many bytes are cut off the end of the frame; its size says what is left.
    pub cut: usize,
    /// Bytes added behind the body; the frame's size counts them.
    pub append: Vec<u8>,
    /// Sent together with the next step's request, before anything is read.
    pub pipelined: bool,
    /// What is due; `None` for a step that is not judged.
    pub expect: Option<Expect>,
    /// The request is repeated for so many milliseconds until the answer is as expected.
    pub within_ms: u64,
    /// How long an answer is waited for, where it is not the usual time.
    pub deadline_ms: Option<u64>,
    /// So many milliseconds pass before the request is sent.
    pub after_ms: u64,
    /// The case stands on this answer: where a well-formed one is not as expected, the case is unsupported.
    pub needs: bool,
}

/// The version of a step's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepVersion {
    /// The case's own.
    Case,
    /// The highest that both sides have.
    Max,
    /// This one.
    Exact(ApiVersion),
}

/// What a step sends.
#[derive(Clone, Debug)]
pub enum Send {
    /// A body in JSON; texts may hold variables.
    Value(Json),
    /// The bytes of a body for ranges of versions, behind a header that is encoded as usual.
    Body(Vec<(VersionRange, Vec<u8>)>),
    /// Bytes as they are, size included.
    Frame(Vec<u8>),
}

/// Another answer that is taken.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The step it is about, by number from 0.
    pub step: usize,
    /// Releases of Apache Kafka that answer so; any broker may where there are none.
    pub releases: Option<Releases>,
    /// The answer.
    pub expect: Expect,
    /// What is different, for the report.
    pub note: String,
}

/// Releases of Apache Kafka, `2.4` or `1.1-3.9`: a release belongs to `3.9` when it begins with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Releases {
    first: Vec<u32>,
    last: Vec<u32>,
}

impl Releases {
    fn parse(text: &str) -> Result<Releases, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (numbers(first), numbers(last)) {
            (Some(first), Some(last)) => Ok(Releases { first, last }),
            _ => Err(format!("releases {text:?} is not like \"2.4\" or \"1.1-3.9\"")),
        }
    }

    /// Whether `release`, `3.9.2`, is among them.
    pub fn contain(&self, release: &str) -> bool {
        numbers(release).is_some_and(|release| {
            let upper = release.get(..self.last.len()).unwrap_or(&release);
            self.first <= release && upper <= self.last.as_slice()
        })
    }
}

fn numbers(release: &str) -> Option<Vec<u32>> {
    release.split('.').map(|number| number.parse().ok()).collect()
}

/// A case file that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintError {
    /// The file.
    pub file: String,
    /// The case's id in the file, or its number where it has none.
    pub case: String,
    /// Where in the case: `steps[1].expect`.
    pub place: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for LintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = [&self.file, &self.case, &self.place];
        for place in places.into_iter().filter(|place| !place.is_empty()) {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for LintError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    id: String,
    versions: String,
    #[serde(default)]
    unadvertised: bool,
    level: Level,
    #[serde(default = "describe")]
    consent: Consent,
    cite: Vec<String>,
    requires: String,
    #[serde(default)]
    given: RawGiven,
    steps: Vec<Json>,
    #[serde(default)]
    finally: Vec<Json>,
    #[serde(default)]
    variants: Vec<Json>,
}

fn describe() -> Consent {
    Consent::Describe
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGiven {
    topic: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    api: Option<String>,
    version: Option<Json>,
    #[serde(default)]
    header: Map<String, Json>,
    header_version: Option<i16>,
    send: Json,
    #[serde(default)]
    cut: usize,
    #[serde(default)]
    append: String,
    #[serde(default)]
    pipelined: bool,
    expect: Option<Json>,
    #[serde(default)]
    within_ms: u64,
    deadline_ms: Option<u64>,
    #[serde(default)]
    after_ms: u64,
    #[serde(default)]
    needs: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVariant {
    step: Option<usize>,
    releases: Option<String>,
    expect: Json,
    note: String,
}

/// Loads and lints case files, each a name and its text. Every error found is given.
pub fn load(files: &[(&str, &str)], protocol: &Protocol) -> Result<Vec<Case>, Vec<LintError>> {
    case_file::load(files, protocol, &read_case, &|request, case| lint::lint(protocol, case, request))
}

fn read_case(file: &str, api: &str, json: &Json) -> Result<Case, Wrong> {
    let raw: RawCase = at("", RawCase::deserialize(json))?;
    let read = |name: &str, list: &[Json]| {
        let steps = list.iter().enumerate().map(|(index, json)| read_step(api, &format!("{name}[{index}]"), json));
        steps.collect::<Result<Vec<Step>, Wrong>>()
    };
    let steps = read("steps", &raw.steps)?;
    let variant = |(index, json)| read_variant(&format!("variants[{index}]"), json, steps.len());
    Ok(Case {
        file: file.to_owned(),
        slug: raw.id,
        api: api.to_owned(),
        versions: at("versions", raw.versions.parse())?,
        unadvertised: raw.unadvertised,
        level: raw.level,
        consent: raw.consent,
        cite: raw.cite,
        requires: raw.requires,
        topic: raw.given.topic,
        finally: read("finally", &raw.finally)?,
        variants: raw.variants.iter().enumerate().map(variant).collect::<Result<_, _>>()?,
        steps,
    })
}

fn read_step(case_api: &str, place: &str, json: &Json) -> Result<Step, Wrong> {
    let inside = |name: &str| format!("{place}.{name}");
    let raw: RawStep = at(place, RawStep::deserialize(json))?;
    let own_api = raw.api.as_deref().is_none_or(|api| api == case_api);
    let version = match &raw.version {
        None if own_api => StepVersion::Case,
        None => StepVersion::Max,
        Some(Json::String(text)) if text == "max" => StepVersion::Max,
        Some(number) => {
            let number = number.as_i64().and_then(|number| i16::try_from(number).ok());
            StepVersion::Exact(ApiVersion(at(inside("version"), number.ok_or("a version is a number or \"max\""))?))
        }
    };
    Ok(Step {
        api: raw.api.unwrap_or_else(|| case_api.to_owned()),
        version,
        header: raw.header,
        header_version: raw.header_version,
        send: at(inside("send"), read_send(raw.send))?,
        cut: raw.cut,
        append: at(inside("append"), parse_hex(&raw.append))?,
        pipelined: raw.pipelined,
        expect: match raw.expect {
            Some(expect) => Some(at(inside("expect"), Expect::parse(&expect))?),
            None => None,
        },
        within_ms: raw.within_ms,
        deadline_ms: raw.deadline_ms,
        after_ms: raw.after_ms,
        needs: raw.needs,
    })
}

fn read_send(json: Json) -> Result<Send, String> {
    let Some(object) = json.as_object() else { return Err("what is sent is an object".to_owned()) };
    let mut entries = object.iter();
    match (entries.next(), entries.next()) {
        (Some((key, Json::String(hex))), None) if key == "frame" => Ok(Send::Frame(parse_hex(hex)?)),
        (Some((key, Json::String(hex))), None) if key == "hex" => {
            Ok(Send::Body(vec![(VersionRange::ALL, parse_hex(hex)?)]))
        }
        (Some((key, Json::Object(ranges))), None) if key == "hex" => {
            let body = |(range, hex): (&String, &Json)| {
                let range: VersionRange = range.parse().map_err(|error: codec::VersionRangeError| error.to_string())?;
                Ok((range, parse_hex(hex.as_str().ok_or("hex is a text")?)?))
            };
            ranges.iter().map(body).collect::<Result<_, String>>().map(Send::Body)
        }
        _ => Ok(Send::Value(json)),
    }
}

fn read_variant(place: &str, json: &Json, steps: usize) -> Result<Variant, Wrong> {
    let raw: RawVariant = at(place, RawVariant::deserialize(json))?;
    Ok(Variant {
        step: raw.step.unwrap_or(steps.saturating_sub(1)),
        releases: at(format!("{place}.releases"), raw.releases.as_deref().map(Releases::parse).transpose())?,
        expect: at(format!("{place}.expect"), Expect::parse(&raw.expect))?,
        note: raw.note,
    })
}

/// The longest time that a case may ask for, in milliseconds.
pub(crate) const LONGEST_MS: u64 = 60_000;

/// The variables that texts of a case may hold.
pub const VARIABLES: [&str; 5] = ["topic", "other_node", "node", "prefix", ADVERTISED];

/// What is expected as `$advertised`, alone: the elements of `ApiKeys` in the broker's first answer.
pub const ADVERTISED: &str = "advertised";

/// Replaces each `$name` in a text by what `value` has for it.
pub fn substitute(text: &str, value: &dyn Fn(&str) -> String) -> String {
    // Longer names come first in VARIABLES where one begins like another.
    VARIABLES.iter().fold(text.to_owned(), |text, name| {
        let variable = format!("${name}");
        if text.contains(&variable) { text.replace(&variable, &value(name)) } else { text }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Cases;
    use crate::definitions;

    #[test]
    fn releases_contain_by_their_beginning() {
        let releases = Releases::parse("1.1-3.9").unwrap();
        assert!(["1.1.0", "2.4.1", "3.9.2"].iter().all(|release| releases.contain(release)));
        assert!(["1.0.9", "3.10.0", "4.0.0", "4"].iter().all(|release| !releases.contain(release)));
        assert!(Releases::parse("2.4").unwrap().contain("2.4.1"));
    }

    #[test]
    fn longer_variable_names_are_replaced_first() {
        assert_eq!(substitute("$other_node/$node/$prefix-x", &|name| name.to_uppercase()), "OTHER_NODE/NODE/PREFIX-x");
    }

    #[test]
    fn ids_hold_role_api_version_and_slug() {
        let cases = Cases::bundled(definitions::bundled()).unwrap().exchanges;
        let case = cases.iter().find(|case| case.slug == "unknown-topic" && case.api == "DescribeConfigs").unwrap();
        assert_eq!(case.id(ApiVersion(4)), "broker/describe-configs/v4/unknown-topic");
    }
}
