//! Codec cases, `vectors/codec/*.json`: loaded, linted, and expanded to one case a version.

use crate::cite::{About, Authority};
use crate::ids;
use crate::names::kebab;
use crate::recipe;
use crate::results::{CaseInfo, Level};
use codec::{
    AbsentFields, ApiVersion, DecodeError, FrameLayout, Layout, MessageKind, MessageSpec, Protocol, Value, VersionRange,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A rule of the wire, from `vectors/rules.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its id, which cases name.
    pub id: String,
    /// What it says, in one sentence.
    pub sentence: String,
    /// What the bytes of its cases are.
    pub result: Expected,
    /// What a codec may do with them.
    pub outcomes: Vec<Allowed>,
    /// How binding it is.
    pub level: Level,
    /// Where it comes from.
    pub authority: String,
}

/// What the bytes or value of a case are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expected {
    /// A codec must take them.
    Valid,
    /// A codec may take them.
    Acceptable,
    /// A codec must refuse them.
    Invalid,
    /// A value that an encoder must refuse.
    Refused,
}

/// One thing that a codec may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allowed {
    /// Give the value; of an encoder that must refuse a field, write the value without it.
    Value,
    /// Refuse.
    Refuse,
    /// Encode the value to the same bytes again.
    RecodeSame,
    /// Drop unknown tags, or keep them.
    TagsDroppedOrKept,
    /// Write a tagged field that has its default, or leave it out.
    DefaultKeptOrDropped,
    /// Read it as true.
    True,
    /// Read the low 32 bits.
    #[serde(rename = "low-32-bits")]
    Low32Bits,
    /// Read null.
    Null,
    /// Read it as present.
    Present,
    /// Keep the raw bytes.
    RawBytes,
    /// Put U+FFFD for what is not UTF-8.
    ReplacementChar,
    /// Keep all, the first or the last of repeated tags.
    TagsAnyOfRepeated,
    /// Trust the size, or the content.
    EitherReading,
    /// Any NaN.
    AnyNan,
    /// Give the value and say what is left.
    ValueWithLeft,
}

/// What may be cited or named as author, from `vectors/sources.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its versions, where it has any.
    #[serde(default)]
    pub versions: Vec<String>,
    /// Whose codec it is.
    pub family: String,
    /// Whether its messages come from Apache Kafka's definitions, at first or second hand, or from definitions of its own.
    pub definitions: Definitions,
    /// What it is.
    pub what: String,
}

/// Where a source has its messages from. What two copies of one definition agree on need not be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Definitions {
    /// Apache Kafka's definitions.
    Apache,
    /// Definitions that somebody else wrote.
    Own,
}

/// Which part of a frame the bytes of a case are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The body.
    #[default]
    Body,
    /// The header that goes with the message and version.
    Header,
    /// Size, header and body.
    Frame,
}

impl Part {
    /// Its name in the adapter protocol.
    pub fn name(self) -> &'static str {
        match self {
            Part::Body => "body",
            Part::Header => "header",
            Part::Frame => "frame",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(rename = "$schema")]
    _schema: Option<String>,
    message: String,
    cases: Vec<RawCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    id: String,
    rule: String,
    #[serde(default)]
    part: Part,
    versions: String,
    cite: Vec<String>,
    requires: String,
    #[serde(default)]
    bytes: BTreeMap<String, recipe::Bytes>,
    value: Option<Json>,
    #[serde(default)]
    values: Vec<Json>,
    #[serde(default)]
    source: Vec<String>,
    parent: Option<String>,
    mutation: Option<String>,
    level: Option<Level>,
    reasoning: Option<String>,
    /// By version: each prefix of the bytes with one of these lengths is a case, in place of the bytes themselves.
    #[serde(default)]
    cuts: BTreeMap<String, String>,
}

impl RawCase {
    /// A hash of what makes it this case, recipes written out: how it is spelled is not part of it, nor authors, citations
    /// and wording.
    fn content(&self) -> Result<String, String> {
        let bytes =
            |(version, bytes): (&String, &recipe::Bytes)| Ok((version.clone(), codec::hex(&bytes.expand()?).into()));
        let cuts = |(version, cuts): (&String, &String)| {
            let lengths: BTreeSet<usize> = recipe::lengths(cuts)?.into_iter().flatten().collect();
            Ok((version.clone(), recipe::of_lengths(&lengths).into()))
        };
        let mut content = json!({
            "rule": self.rule,
            "part": self.part.name(),
            "versions": self.versions.parse::<VersionRange>().map_err(|error| error.to_string())?.to_string(),
            "bytes": self.bytes.iter().map(bytes).collect::<Result<serde_json::Map<_, _>, String>>()?,
            "cuts": self.cuts.iter().map(cuts).collect::<Result<serde_json::Map<_, _>, String>>()?,
            "value": self.value.as_ref().map(recipe::expand).transpose()?,
            "values": self.values.iter().map(recipe::expand).collect::<Result<Vec<_>, _>>()?,
        });
        // In place of the rule's.
        if let Some(level) = self.level {
            content["level"] = json!(level);
        }
        Ok(ids::hash(content))
    }
}

/// Layouts that a case's part is read with.
#[derive(Clone, Debug)]
pub enum PartLayout {
    /// A body or a header alone.
    Single(Arc<Layout>),
    /// A whole frame.
    Frame(FrameLayout),
}

/// A decoded part.
#[derive(Debug)]
pub struct PartDecoded {
    /// Its value; a frame's is header and body.
    pub value: Vec<Value>,
    /// Bytes after it.
    pub left: usize,
    /// Whether nothing about the bytes is merely acceptable.
    pub valid: bool,
    /// Whether encoding gives the bytes again.
    pub canonical: bool,
}

impl PartLayout {
    /// The layouts of a part of a message at one version.
    pub fn new(
        protocol: &Protocol,
        spec: &MessageSpec,
        version: ApiVersion,
        part: Part,
    ) -> Result<PartLayout, codec::SpecError> {
        Ok(match part {
            Part::Body => PartLayout::Single(protocol.layout(&spec.name, version)?),
            Part::Header => PartLayout::Single(protocol.frame_layout(spec, version)?.header),
            Part::Frame => PartLayout::Frame(protocol.frame_layout(spec, version)?),
        })
    }

    /// Its layouts, each with what stands before the paths of its fields.
    pub fn layouts(&self) -> Vec<(&'static str, &Arc<Layout>)> {
        match self {
            PartLayout::Single(layout) => vec![("", layout)],
            PartLayout::Frame(frame) => vec![("header", &frame.header), ("body", &frame.body)],
        }
    }

    /// Reads the JSON form.
    pub fn from_json(&self, json: &Json, absent: AbsentFields) -> Result<Vec<Value>, codec::EncodeError> {
        self.layouts()
            .into_iter()
            .map(|(name, layout)| {
                if name.is_empty() {
                    return Value::from_json(layout, json, absent);
                }
                let empty = serde_json::Map::new().into();
                Value::from_json(layout, json.get(name).unwrap_or(&empty), absent)
                    .map_err(|error| codec::EncodeError { path: format!("{name}.{}", error.path), ..error })
            })
            .collect()
    }

    /// The JSON form.
    pub fn to_json(&self, values: &[Value]) -> Json {
        match (self, values) {
            (PartLayout::Frame(_), [header, body]) => {
                json!({ "header": header.to_json(), "body": body.to_json() })
            }
            (_, values) => values.first().map_or(Json::Null, Value::to_json),
        }
    }

    /// Decodes with our codec.
    pub fn decode(&self, bytes: &[u8]) -> Result<PartDecoded, DecodeError> {
        match self {
            PartLayout::Single(layout) => {
                let decoded = codec::decode(layout, bytes)?;
                Ok(PartDecoded {
                    value: vec![decoded.view().value()],
                    left: decoded.left(),
                    valid: decoded.tree.is_valid(),
                    canonical: decoded.tree.anomaly_count() == 0,
                })
            }
            PartLayout::Frame(layout) => {
                let frame = codec::decode_frame(layout, bytes)?;
                Ok(PartDecoded {
                    value: vec![frame.header().value(), frame.body().value()],
                    left: bytes.len() - frame.end,
                    valid: frame.header.is_valid() && frame.body.is_valid(),
                    canonical: frame.header.anomaly_count() + frame.body.anomaly_count() == 0,
                })
            }
        }
    }

    /// Encodes with our codec.
    pub fn encode(&self, values: &[Value]) -> Result<Vec<u8>, codec::EncodeError> {
        match (self, values) {
            (PartLayout::Frame(layout), [header, body]) => codec::encode_frame(layout, header, body),
            (PartLayout::Single(layout), [value]) => codec::encode(layout, value),
            _ => unreachable!("a part has as many values as layouts"),
        }
    }

    /// Path and span of the first place where two encodings differ, read from the first.
    pub fn locate(&self, want: &[u8], got: &[u8]) -> Option<(String, usize, usize)> {
        let differs = want.iter().zip(got).position(|(want, got)| want != got).unwrap_or(want.len().min(got.len()));
        self.at_offset(want, differs)
    }

    /// Path and span of the innermost field that holds an offset.
    pub fn at_offset(&self, bytes: &[u8], offset: usize) -> Option<(String, usize, usize)> {
        let mut found = None;
        let mut visit = |prefix: &str, view: codec::View| {
            view.walk(&mut |path, _, node| {
                let (start, end) = (node.node().start as usize, node.node().end as usize);
                if start <= offset && offset < end {
                    let path = if prefix.is_empty() { path.to_owned() } else { format!("{prefix}.{path}") };
                    found = Some((path, start, end - start));
                }
            });
        };
        match self {
            PartLayout::Single(layout) => visit("", codec::decode(layout, bytes).ok()?.view()),
            PartLayout::Frame(layout) => {
                let frame = codec::decode_frame(layout, bytes).ok()?;
                visit("header", frame.header());
                visit("body", frame.body());
            }
        }
        found
    }

    /// Path of the first place where two values differ.
    pub fn first_difference(&self, want: &[Value], got: &[Value]) -> Option<String> {
        self.layouts().iter().zip(want.iter().zip(got)).find_map(|((name, _), (want, got))| {
            let path = difference(want, got)?;
            Some(if name.is_empty() { path } else { format!("{name}.{path}") })
        })
    }
}

/// Path of the first place where two values differ.
fn difference(want: &Value, got: &Value) -> Option<String> {
    let join = |step: String, rest: String| match rest {
        rest if rest.is_empty() || rest.starts_with('[') => step + &rest,
        rest => format!("{step}.{rest}"),
    };
    match (want, got) {
        (Value::Struct(want), Value::Struct(got)) => {
            let field = want.fields.iter().find_map(|(name, value)| match got.get(name) {
                Some(other) => difference(value, other).map(|rest| join(name.to_string(), rest)),
                None => Some(name.to_string()),
            });
            field.or_else(|| (want.tags != got.tags).then(|| "_tags".to_owned()))
        }
        (Value::Array(want), Value::Array(got)) => {
            let element =
                want.iter().zip(got).enumerate().find_map(|(index, (want, got))| {
                    difference(want, got).map(|rest| join(format!("[{index}]"), rest))
                });
            element.or_else(|| (want.len() != got.len()).then(|| format!("[{}]", want.len().min(got.len()))))
        }
        _ => (want != got).then(String::new),
    }
}

/// One codec case at one version.
#[derive(Clone, Debug)]
pub struct Vector {
    /// `codec/describe-configs-response/v4/null-documentation`.
    pub id: String,
    /// The message.
    pub spec: Arc<MessageSpec>,
    /// The version.
    pub version: ApiVersion,
    /// Which part.
    pub part: Part,
    /// Its rule.
    pub rule: Arc<Rule>,
    /// The rule's level, or the case's own.
    pub level: Level,
    /// The bytes; none where a value must be refused.
    pub bytes: Option<Vec<u8>>,
    /// The value, in JSON form.
    pub value: Option<Json>,
    /// Each value of an acceptable case that may be read in several ways.
    pub values: Vec<Json>,
    /// The part's layouts.
    pub layout: PartLayout,
    /// What reports say of it.
    pub info: CaseInfo,
    /// Who made the bytes.
    pub source: Vec<String>,
    /// The case that was changed, as the file has it: an id of the file or a full one.
    pub parent: Option<String>,
    /// How it was changed.
    pub mutation: Option<String>,
}

impl Vector {
    /// File and slug: where it stands, whatever its version.
    pub fn place(&self) -> (&str, &str) {
        let mut parts = self.id.split('/');
        (parts.nth(1).unwrap_or_default(), parts.nth(1).unwrap_or_default())
    }

    /// The last part of its id.
    pub fn slug(&self) -> &str {
        self.place().1
    }
}

/// Every codec case, and what it rests on.
#[derive(Debug)]
pub struct Vectors {
    /// The rules, by id.
    pub rules: BTreeMap<String, Arc<Rule>>,
    /// The sources, by name.
    pub sources: BTreeMap<String, Source>,
    /// The cases, by id.
    pub cases: Vec<Vector>,
}

/// Case files as they were read, each with its name: once for all that looks at them.
pub struct Files<'t> {
    files: Vec<(&'t str, RawFile)>,
    /// What is wrong with those that could not be read.
    unread: Vec<Lint>,
}

impl<'t> Files<'t> {
    /// Reads case files, each a name and a text.
    pub fn read(files: &[(&'t str, &str)]) -> Files<'t> {
        let mut read = Files { files: Vec::with_capacity(files.len()), unread: Vec::new() };
        for (file, text) in files {
            match serde_json::from_str(text) {
                Ok(raw) => read.files.push((file, raw)),
                Err(error) => {
                    // Read again for the place, which takes longer to keep in mind.
                    let again =
                        serde_path_to_error::deserialize::<_, RawFile>(&mut serde_json::Deserializer::from_str(text));
                    let what = again.err().map_or(error.to_string(), |error| error.to_string());
                    read.unread.push(Lint { file: (*file).to_owned(), case: String::new(), what });
                }
            }
        }
        read
    }

    /// A hash of what makes each case, by message and id: `describe-configs-request/keys-null-v0`. It is what ids are held
    /// to, which is no matter of any run. The error is that what was read does not load.
    pub fn contents(&self) -> Result<BTreeMap<String, String>, String> {
        let mut contents = BTreeMap::new();
        for (_, raw) in &self.files {
            let slug = kebab(&raw.message);
            for case in &raw.cases {
                contents.insert(format!("{slug}/{}", case.id), case.content()?);
            }
        }
        Ok(contents)
    }

    /// Long hex that could be a recipe. To look for it takes longer than to load the files, and is no matter of any run.
    pub fn overlong(&self) -> Vec<Lint> {
        let mut lints = Vec::new();
        for (file, raw) in &self.files {
            for case in &raw.cases {
                let overlong = case.bytes.iter().filter(|(_, bytes)| bytes.is_longer_than_needed());
                lints.extend(overlong.map(|(version, _)| Lint {
                    file: (*file).to_owned(),
                    case: case.id.clone(),
                    what: format!("bytes of version {version}: write what repeats or counts up in them as a recipe"),
                }));
            }
        }
        lints
    }
}

/// A hash of what makes each rule, `rule/truncated`: cases mean what theirs says.
pub fn rule_contents(rules: &str) -> Result<BTreeMap<String, String>, String> {
    let rules: Vec<Rule> = serde_json::from_str(rules).map_err(|error| error.to_string())?;
    let content = |rule: &Rule| {
        let outcomes: BTreeSet<String> = rule.outcomes.iter().map(|outcome| json!(outcome).to_string()).collect();
        ids::hash(json!({ "result": rule.result, "outcomes": outcomes, "level": rule.level }))
    };
    Ok(rules.iter().map(|rule| (format!("rule/{}", rule.id), content(rule))).collect())
}

/// Something wrong with a vector file: which file, which case, what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// The file.
    pub file: String,
    /// The case's slug, empty for the file itself.
    pub case: String,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for Lint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.case.is_empty() {
            write!(f, "{}: {}", self.file, self.what)
        } else {
            write!(f, "{}: {}: {}", self.file, self.case, self.what)
        }
    }
}

#[derive(Deserialize)]
struct SourcesFile {
    sources: Vec<Source>,
}

impl Vectors {
    /// Whether one of these authors, `name@version`, has definitions of its own.
    pub fn has_own_definitions(&self, authors: &[String]) -> bool {
        let source = |author: &String| self.sources.get(author.split('@').next()?);
        authors.iter().filter_map(source).any(|source| source.definitions == Definitions::Own)
    }

    /// Valid cases that nobody vouches for who has definitions of their own: their `reasoning` says why.
    pub fn without_own_definitions(&self) -> impl Iterator<Item = &Vector> {
        let valid = |case: &&Vector| case.rule.result == Expected::Valid;
        self.cases.iter().filter(valid).filter(|case| !self.has_own_definitions(&case.source))
    }

    /// Loads and lints `rules.json`, `sources.json` and the case files.
    pub fn load(protocol: &Protocol, rules: &str, sources: &str, files: &Files) -> Result<Vectors, Vec<Lint>> {
        let lint = |file: &str, case: &str, what: String| Lint { file: file.to_owned(), case: case.to_owned(), what };
        let rules: Vec<Rule> =
            serde_json::from_str(rules).map_err(|error| vec![lint("rules.json", "", error.to_string())])?;
        let sources: SourcesFile =
            serde_json::from_str(sources).map_err(|error| vec![lint("sources.json", "", error.to_string())])?;
        let mut lints = Vec::new();
        let ids = rules.iter().map(|rule| rule.id.as_str());
        lints.extend(twice(ids).map(|id| lint("rules.json", id, "this id is there twice".to_owned())));
        let names = sources.sources.iter().map(|source| source.name.as_str());
        lints.extend(twice(names).map(|name| lint("sources.json", name, "this name is there twice".to_owned())));
        for rule in &rules {
            let outcomes: Vec<String> = rule.outcomes.iter().map(|outcome| json!(outcome).to_string()).collect();
            let again = twice(outcomes.iter().map(String::as_str));
            lints.extend(
                again.map(|outcome| lint("rules.json", &rule.id, format!("outcomes: {outcome} is there twice"))),
            );
        }
        for source in &sources.sources {
            let again = twice(source.versions.iter().map(String::as_str));
            lints.extend(
                again.map(|version| lint("sources.json", &source.name, format!("version {version} is there twice"))),
            );
        }
        if !lints.is_empty() {
            return Err(lints);
        }
        let rules = rules.into_iter().map(|rule| (rule.id.clone(), Arc::new(rule))).collect();
        let sources = sources.sources.into_iter().map(|source| (source.name.clone(), source)).collect();
        let vectors = Vectors { rules, sources, cases: Vec::new() };
        Loading { protocol, vectors, lints: Vec::new(), parents: Vec::new(), authors: true }.load(files)
    }

    /// Cases on these rules and sources that nobody was asked about yet: all is linted but authors and parents.
    pub fn unasked(&self, protocol: &Protocol, files: &Files) -> Result<Vectors, Vec<Lint>> {
        let (rules, sources) = (self.rules.clone(), self.sources.clone());
        let vectors = Vectors { rules, sources, cases: Vec::new() };
        Loading { protocol, vectors, lints: Vec::new(), parents: Vec::new(), authors: false }.load(files)
    }
}

/// Those that came before, in their order.
fn twice<'t>(texts: impl Iterator<Item = &'t str>) -> impl Iterator<Item = &'t str> {
    let mut seen = BTreeSet::new();
    texts.filter(move |text| !seen.insert(*text))
}

struct Loading<'p> {
    protocol: &'p Protocol,
    vectors: Vectors,
    lints: Vec<Lint>,
    /// File, case and parent of each case that has one.
    parents: Vec<(String, String, String)>,
    /// Whether authors and parents must be there.
    authors: bool,
}

impl Loading<'_> {
    fn load(mut self, files: &Files) -> Result<Vectors, Vec<Lint>> {
        self.lints.extend(files.unread.iter().cloned());
        for (file, raw) in &files.files {
            self.file(file, raw);
        }
        self.duplicates();
        if self.authors {
            self.parents();
        }
        let Loading { mut vectors, mut lints, .. } = self;
        vectors.cases.sort_by(|a, b| a.id.cmp(&b.id));
        lints.sort_by(|a, b| (&a.file, &a.case).cmp(&(&b.file, &b.case)));
        if lints.is_empty() { Ok(vectors) } else { Err(lints) }
    }

    fn file(&mut self, file: &str, raw: &RawFile) {
        let lint = |what: String| Lint { file: file.to_owned(), case: String::new(), what };
        let Some(spec) = self.protocol.message(&raw.message).cloned() else {
            return self.lints.push(lint(format!("no message is called {:?}", raw.message)));
        };
        let slug = kebab(&spec.name);
        if file.trim_end_matches(".json") != slug {
            self.lints.push(lint(format!("the file of {} is called {slug}.json", spec.name)));
        }
        let mut slugs = BTreeSet::new();
        for case in &raw.cases {
            self.parents.extend(case.parent.iter().map(|parent| (file.to_owned(), case.id.clone(), parent.clone())));
            let mut whats = Vec::new();
            if !slugs.insert(case.id.clone()) {
                whats.push("this id is there twice".to_owned());
            }
            self.case(&spec, &slug, case, &mut whats);
            self.lints.extend(whats.into_iter().map(|what| Lint {
                file: file.to_owned(),
                case: case.id.clone(),
                what,
            }));
        }
    }

    fn case(&mut self, spec: &Arc<MessageSpec>, slug: &str, case: &RawCase, whats: &mut Vec<String>) {
        if case.id.is_empty()
            || !case.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        {
            whats.push("an id is made of lower-case letters, digits and hyphens".to_owned());
        }
        if case.requires.trim().len() < 2 || !case.requires.ends_with('.') {
            whats.push("requires: one sentence says what a correct codec does, with a full stop".to_owned());
        }
        let Some(rule) = self.vectors.rules.get(&case.rule).cloned() else {
            return whats.push(format!("no rule is called {:?}", case.rule));
        };
        let versions: VersionRange = match case.versions.parse() {
            Ok(versions) => versions,
            Err(error) => return whats.push(format!("versions: {error}")),
        };
        if !spec.valid_versions.includes(versions) {
            whats.push(format!("versions {versions} are not all in {}", spec.valid_versions));
            return;
        }
        self.citations(spec, versions, &rule, case, whats);
        if self.authors {
            self.authors(&rule, case, whats);
        }
        for name in case.bytes.keys() {
            if !name.parse().is_ok_and(|version| versions.contains(ApiVersion(version))) {
                whats.push(format!("bytes for {name:?}, which is not in versions {versions}"));
            }
        }
        let expanded = case.value.as_ref().map(recipe::expand).transpose();
        let several = case.values.iter().map(recipe::expand).collect::<Result<Vec<_>, _>>();
        let (value, values) = match (expanded, several) {
            (Ok(value), Ok(values)) => (value, values),
            (Err(error), _) => return whats.push(format!("value: {error}")),
            (_, Err(error)) => return whats.push(format!("values: {error}")),
        };
        for version in versions.iter() {
            let layout = match PartLayout::new(self.protocol, spec, version, case.part) {
                Ok(layout) => layout,
                Err(error) => return whats.push(error.to_string()),
            };
            let bytes = match case.bytes.get(&version.to_string()).map(recipe::Bytes::expand).transpose() {
                Ok(bytes) => bytes,
                Err(error) => {
                    whats.push(format!("bytes of version {version}: {error}"));
                    continue;
                }
            };
            let id = format!("codec/{slug}/v{version}/{}", case.id);
            let vector = Vector {
                id,
                spec: spec.clone(),
                version,
                part: case.part,
                level: case.level.unwrap_or(rule.level),
                rule: rule.clone(),
                bytes,
                value: value.clone(),
                values: values.clone(),
                layout,
                info: CaseInfo { requires: case.requires.clone(), cite: case.cite.clone() },
                source: case.source.clone(),
                parent: case.parent.clone(),
                mutation: case.mutation.clone(),
            };
            let Some(cuts) = case.cuts.get(&version.to_string()) else {
                shape(&vector, whats);
                self.vectors.cases.push(vector);
                continue;
            };
            match prefixes(&vector, cuts) {
                Ok(prefixes) => {
                    prefixes.iter().for_each(|prefix| shape(prefix, whats));
                    self.vectors.cases.extend(prefixes);
                }
                Err(error) => whats.push(format!("cuts of version {version}: {error}")),
            }
        }
    }

    /// What a case cites, it is about: its own message, and where there is a header in it that header; a case of a header
    /// any message that goes with it.
    fn citations(
        &self,
        spec: &MessageSpec,
        versions: VersionRange,
        rule: &Rule,
        case: &RawCase,
        whats: &mut Vec<String>,
    ) {
        let header = |of: &MessageSpec, version| {
            let layout = self.protocol.frame_layout(of, version).ok()?.header;
            Some((layout.spec().name.clone(), layout.version()))
        };
        let about = |cited: &MessageSpec| {
            let is_header = spec.kind == MessageKind::Header;
            // These are about a field that their version lacks.
            let lacks = matches!(rule.id.as_str(), "encode-field-not-in-version" | "tag-of-other-version");
            if cited.name == spec.name {
                if lacks { About::Message } else { About::Each(versions.iter().collect()) }
            } else if is_header {
                let goes = |version| header(cited, version).is_some_and(|(name, _)| name == spec.name);
                if cited.valid_versions.iter().any(goes) { About::Message } else { About::Nothing }
            } else if case.part != Part::Body {
                let headers = versions.iter().filter_map(|version| header(spec, version));
                let own: Vec<_> = headers.filter(|(name, _)| *name == cited.name).map(|(_, version)| version).collect();
                if own.is_empty() { About::Nothing } else { About::Each(own) }
            } else {
                About::Nothing
            }
        };
        if case.cite.is_empty() {
            whats.push("cite: a case cites at least one source".to_owned());
        }
        whats.extend(twice(case.cite.iter().map(String::as_str)).map(|cite| format!("cite: {cite:?} is there twice")));
        let authors = case.source.iter().map(String::as_str);
        whats.extend(twice(authors).map(|author| format!("source: {author:?} is there twice")));
        let checked: Vec<_> = case.cite.iter().map(|cite| crate::cite::check(self.protocol, cite, &about)).collect();
        if !checked.is_empty() && checked.iter().all(|found| *found == Ok(Authority::Report)) {
            whats.push("cite: a report says where a fault was seen: cite what binds beside it".to_owned());
        }
        whats.extend(checked.into_iter().filter_map(|found| Some(format!("cite: {}", found.err()?))));
    }

    /// Every valid case has two authors of two families, none of them us and one with definitions of its own; every other
    /// case is a mutation of one that has.
    fn authors(&self, rule: &Rule, case: &RawCase, whats: &mut Vec<String>) {
        let mut families = BTreeSet::new();
        let mut own = false;
        for author in &case.source {
            let (name, version) = author.split_once('@').unwrap_or((author, ""));
            match self.vectors.sources.get(name) {
                None => whats.push(format!("source: {author:?} is not in sources.json")),
                Some(source) if !source.versions.iter().any(|known| known == version) => {
                    whats.push(format!("source: {name} has no version {version:?} in sources.json"));
                }
                Some(source) => {
                    families.insert(source.family.as_str());
                    own |= source.definitions == Definitions::Own;
                }
            }
            if name == "reference" || name == "kafka-conform" {
                whats.push("source: this suite's own codec vouches for nothing".to_owned());
            }
        }
        let derived = case.parent.is_some() || case.mutation.is_some();
        match rule.result {
            Expected::Valid if families.len() < 2 && case.reasoning.is_none() => {
                whats.push("source: a valid case has authors of two families".to_owned());
            }
            Expected::Valid if !own && case.reasoning.is_none() => {
                let what =
                    "source: a valid case has an author with definitions of its own, or a reasoning why there is none";
                whats.push(what.to_owned());
            }
            Expected::Acceptable | Expected::Invalid
                if case.source.is_empty() && !(case.parent.is_some() && case.mutation.is_some()) =>
            {
                whats.push("parent and mutation, or a source, are missing".to_owned());
            }
            _ if derived && case.mutation.is_none() => whats.push("mutation: how it was made of its parent".to_owned()),
            _ => {}
        }
    }

    fn duplicates(&mut self) {
        let mut seen: BTreeMap<_, &str> = BTreeMap::new();
        let mut lints = Vec::new();
        for case in &self.vectors.cases {
            let (what, content) = match (&case.bytes, &case.value) {
                (Some(bytes), _) => ("bytes", Cow::from(bytes)),
                // What an encoder must refuse has no bytes.
                (None, Some(value)) => ("value", value.to_string().into_bytes().into()),
                (None, None) => continue,
            };
            let key = (&*case.spec.name, case.version.0, case.part.name(), content);
            if let Some(first) = seen.insert(key, &case.id) {
                lints.push(Lint {
                    file: format!("{}.json", kebab(&case.spec.name)),
                    case: case.id.clone(),
                    what: format!("the same {what} as {first}"),
                });
            }
        }
        self.lints.extend(lints);
    }

    /// A parent is a case of the same file by its id, or any case by its full id.
    fn parents(&mut self) {
        let ids: BTreeSet<&str> = self.vectors.cases.iter().map(|case| case.id.as_str()).collect();
        let places: BTreeSet<(&str, &str)> = self.vectors.cases.iter().map(Vector::place).collect();
        let exists = |file: &str, parent: &str| {
            ids.contains(parent) || places.contains(&(file.trim_end_matches(".json"), parent))
        };
        let unfounded = self.without_a_source();
        let mut lints = Vec::new();
        for (file, case, parent) in &self.parents {
            let what = if !exists(file, parent) {
                format!("parent: there is no case {parent:?}")
            } else if unfounded.contains(&(file.trim_end_matches(".json"), case)) {
                "parent: it leads to no case that has a source".to_owned()
            } else {
                continue;
            };
            lints.push(Lint { file: file.clone(), case: case.clone(), what });
        }
        self.lints.extend(lints);
    }

    /// Places of the cases that have no source, nor a parent that has one, and so on.
    fn without_a_source(&self) -> BTreeSet<(&str, &str)> {
        let by_place: BTreeMap<(&str, &str), &Vector> =
            self.vectors.cases.iter().map(|case| (case.place(), case)).collect();
        let by_id: BTreeMap<&str, &Vector> = self.vectors.cases.iter().map(|case| (case.id.as_str(), case)).collect();
        let parent = |case: &Vector| {
            let parent = case.parent.as_deref()?;
            by_id.get(parent).or_else(|| by_place.get(&(case.place().0, parent))).copied()
        };
        // As many steps as there are cases go in a circle.
        let founded = |case| {
            let mut ancestry = std::iter::successors(Some(case), |case: &&Vector| parent(case)).take(by_place.len());
            ancestry.any(|case: &Vector| !case.source.is_empty())
        };
        self.vectors.cases.iter().filter(|case| case.parent.is_some() && !founded(case)).map(Vector::place).collect()
    }
}

/// The cases that are prefixes of a case's bytes, by lengths such as `0-12,14`: `ID-N` has the first N bytes.
fn prefixes(whole: &Vector, cuts: &str) -> Result<Vec<Vector>, String> {
    let bytes = whole.bytes.as_deref().ok_or("there are no bytes")?;
    let (mut prefixes, mut made) = (Vec::new(), 0);
    for range in recipe::lengths(cuts)? {
        let (lowest, highest) = range.into_inner();
        if highest >= bytes.len() {
            return Err(format!("there is no prefix of {highest} bytes: they are {}", bytes.len()));
        }
        made = (lowest..=highest).fold(made, usize::saturating_add);
        if made > recipe::EXPANDED_LIMIT {
            return Err(recipe::too_large());
        }
        prefixes.extend((lowest..=highest).map(|length| Vector {
            id: format!("{}-{length}", whole.id),
            bytes: bytes.get(..length).map(<[u8]>::to_vec),
            ..whole.clone()
        }));
    }
    Ok(prefixes)
}

/// What a case of its rule's result must hold, and whether its bytes and value are what they say they are.
fn shape(vector: &Vector, whats: &mut Vec<String>) {
    let version = vector.version;
    let value = vector.value.as_ref().map(|json| vector.layout.from_json(json, AbsentFields::Keep));
    let decoded = vector.bytes.as_ref().map(|bytes| vector.layout.decode(bytes));
    match (vector.rule.result, value, decoded) {
        (Expected::Valid, Some(Ok(value)), Some(Ok(decoded))) => {
            if !decoded.valid || decoded.left > 0 {
                whats.push(format!("version {version}: the bytes are merely acceptable, the rule says valid"));
            } else if let Some(path) = vector.layout.first_difference(&value, &decoded.value) {
                whats.push(format!("version {version}: value and bytes differ at {path}"));
            }
        }
        (Expected::Valid | Expected::Invalid | Expected::Acceptable, _, None) => {
            whats.push(format!("bytes for version {version} are missing"));
        }
        (Expected::Valid, None, _) => whats.push("a valid case has a value".to_owned()),
        (Expected::Valid, _, Some(Err(error))) => whats.push(format!("version {version}: {error}")),
        (Expected::Invalid, _, Some(Ok(_))) => {
            whats.push(format!("version {version}: the bytes decode, the rule says invalid"))
        }
        (Expected::Acceptable, value, Some(Ok(decoded))) => {
            // What only a definition says of them is not seen in the bytes.
            let by_definition = matches!(vector.rule.id.as_str(), "nan-payload" | "tag-of-other-version");
            if decoded.valid && decoded.left == 0 && !by_definition {
                whats.push(format!("version {version}: nothing about the bytes is merely acceptable"));
            }
            let ways = vector.values.iter().map(|json| vector.layout.from_json(json, AbsentFields::Keep));
            match ways.collect::<Result<Vec<_>, _>>() {
                Err(error) => whats.push(format!("values: {error}")),
                Ok(ways) if !ways.is_empty() && !ways.contains(&decoded.value) => {
                    whats.push(format!("version {version}: our reading is not among the values"));
                }
                Ok(_) => {}
            }
            let several = vector.rule.outcomes.contains(&Allowed::TagsAnyOfRepeated);
            if several && vector.values.is_empty() {
                whats.push("values: each way to read it is listed".to_owned());
            }
            // Which NaN it is has no JSON form.
            let read = match vector.rule.outcomes.contains(&Allowed::AnyNan) {
                true => vector.layout.from_json(&vector.layout.to_json(&decoded.value), AbsentFields::Keep),
                false => Ok(decoded.value),
            };
            if let (Some(Ok(value)), Ok(read)) = (value, read)
                && let Some(path) = vector.layout.first_difference(&value, &read)
            {
                whats.push(format!("version {version}: value and bytes differ at {path}"));
            }
        }
        (Expected::Refused, None, _) => whats.push("a case that must be refused has a value".to_owned()),
        (Expected::Refused, _, Some(_)) => whats.push("a case that must be refused has no bytes".to_owned()),
        // Which our own encoder sorts.
        (Expected::Refused, Some(Ok(_)), None) if vector.rule.outcomes.contains(&Allowed::TagsDroppedOrKept) => {}
        (Expected::Refused, Some(Ok(value)), None) if vector.layout.encode(&value).is_ok() => {
            whats.push(format!("version {version}: the value encodes, the rule says refused"));
        }
        (Expected::Valid | Expected::Acceptable, Some(Err(error)), _) => whats.push(format!("value: {error}")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundled::text;
    use crate::definitions::bundled;
    use serde_json::json;

    /// Each would fill the memory of any machine, or take for ever.
    #[test]
    fn recipes_of_too_much_are_said_to_be_that() {
        let million = 1 << 20;
        let case = json!({
            "id": "a", "rule": "truncated", "versions": "4", "cite": ["DescribeConfigsResponse"], "requires": "A.",
            "bytes": { "4": [{ "repeat": million, "bytes": "00" }] }, "cuts": { "4": "0-1000000" },
            "parent": "a", "mutation": "b",
        });
        let file = json!({ "message": "DescribeConfigsResponse", "cases": [case] }).to_string();
        let files = [("describe-configs-response.json", file.as_str())];
        let lints =
            Vectors::load(bundled(), text("rules.json"), text("sources.json"), &Files::read(&files)).unwrap_err();
        assert!(lints.iter().any(|lint| lint.what == "cuts of version 4: more than 4 MiB"), "{lints:?}");
    }

    /// What is said of files with these cases of DescribeConfigsRequest.
    fn lints(cases: Json) -> Vec<String> {
        let file = json!({ "message": "DescribeConfigsRequest", "cases": cases }).to_string();
        let files = [("describe-configs-request.json", file.as_str())];
        let loaded = Vectors::load(bundled(), text("rules.json"), text("sources.json"), &Files::read(&files));
        loaded.err().into_iter().flatten().map(|lint| format!("{}: {}", lint.case, lint.what)).collect()
    }

    #[test]
    fn a_chain_of_parents_ends_at_a_source() {
        let case = |id: &str, bytes: &str, parent: &str| {
            json!({
                "id": id, "rule": "truncated", "versions": "0", "cite": ["DescribeConfigsRequest"],
                "requires": "Bytes that end before the message does are refused.",
                "bytes": { "0": bytes }, "parent": parent, "mutation": "Bytes are missing.",
            })
        };
        let unfounded = |id: &str| format!("{id}: parent: it leads to no case that has a source");
        assert_eq!(lints(json!([case("a", "00", "a")])), [unfounded("a")]);
        let circle = json!([case("a", "00", "b"), case("b", "0000", "c"), case("c", "000000", "a")]);
        assert_eq!(lints(circle), ["a", "b", "c"].map(unfounded));
        let mut founded = case("c", "000000", "a");
        founded["source"] = json!(["kmsg@1.15.1"]);
        assert_eq!(lints(json!([case("a", "00", "b"), case("b", "0000", "c"), founded])), [""; 0]);
    }

    #[test]
    fn bytes_that_are_none_are_said_with_their_place_and_what_is_due() {
        let case = |bytes: Json| {
            json!([{
                "id": "a", "rule": "truncated", "versions": "0", "cite": ["DescribeConfigsRequest"],
                "requires": "Bytes that end before the message does are refused.", "bytes": { "0": bytes },
                "source": ["kmsg@1.15.1"],
            }])
        };
        assert_eq!(lints(case(json!([{ "repeat": 2, "bytes": "00" }]))), [""; 0]);
        let wrong = [
            json!(null),
            json!({ "repeat": 2, "bytes": "00" }),
            json!([["00"]]),
            json!([{ "bytes": "00" }]),
            json!([{ "repeat": -1, "bytes": "00" }]),
            json!([{ "repeat": 2, "bytes": "00", "from": "1" }]),
            json!([{ "repeat": 2, "value": "00" }]),
        ];
        for bytes in wrong {
            let lints = lints(case(bytes.clone()));
            let [lint] = &lints[..] else { panic!("{bytes}: {lints:?}") };
            assert!(
                lint.contains("cases[0].bytes.0: ") && lint.contains("of hex and {\"repeat\": n"),
                "{bytes}: {lint}"
            );
        }
    }

    #[test]
    fn a_case_and_a_rule_are_other_ones_at_another_level() {
        let file = |level: &str| {
            let case = format!(r#"{{"id":"a","rule":"truncated","versions":"0","cite":[],"requires":"A."{level}}}"#);
            format!(r#"{{"message":"DescribeConfigsRequest","cases":[{case}]}}"#)
        };
        let hash = |level: &str| Files::read(&[("describe-configs-request.json", &file(level))]).contents().unwrap();
        assert_ne!(hash(""), hash(r#","level":"observed""#));
        let rule = |result: &str, outcomes: &str, level: &str| {
            let rule = format!(
                r#"[{{"id":"r","sentence":"S.","result":"{result}","outcomes":{outcomes},"level":"{level}","authority":"a"}}]"#
            );
            rule_contents(&rule).unwrap()["rule/r"].clone()
        };
        let pinned = rule("acceptable", r#"["value","refuse"]"#, "must");
        assert_eq!(rule("acceptable", r#"["refuse","value"]"#, "must"), pinned);
        for other in [
            rule("invalid", r#"["value","refuse"]"#, "must"),
            rule("acceptable", r#"["value"]"#, "must"),
            rule("acceptable", r#"["value","refuse"]"#, "should"),
        ] {
            assert_ne!(other, pinned);
        }
    }
}
