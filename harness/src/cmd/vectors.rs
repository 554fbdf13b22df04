//! `vectors`: check the cases themselves, ask their authors again, and hand them out.

use super::matrix::{Select, bundled_cases, select_cases};
use super::{Exit, Failure, Outcome};
use crate::attest::{self, Attestation, Change};
use crate::cases::{Cases, Texts};
use crate::ids::Ids;
use crate::names::kebab;
use crate::promote::Find;
use crate::report::words::visible;
use crate::results::{Level, Role, Verdict};
use crate::vector::{Allowed, Expected, Files, Part, Vector, Vectors};
use crate::{adapter, definitions, derive, output, process, recipe};
use anyhow::Context as _;
use codec::{ApiVersion, hex};
use indicatif::{MultiProgress, ProgressDrawTarget};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Check the cases, ask their authors again, or hand them out.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Lint(Lint),
    Derive(Derive),
    Attest(Attest),
    Export(Export),
    Promote(Promote),
}

/// Load every case and say what is wrong: file, case, place
///
/// Also whether each id stands for what it stood for when it was recorded in `vectors/ids.txt`. Authors, citations and
/// wording may change.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 nothing is wrong, 1 something is.")]
struct Lint {
    /// Add the ids that are new to the checkout's vectors/ids.txt; those that are there stay as they are
    #[arg(long)]
    record: bool,
}

/// Add the cases that follow from the definitions and are not there yet
///
/// Each field at each of its boundaries, each length, count, flag and tag wrong in each way, each value that has no
/// encoding. Valid cases are asked of every codec that `sources.json` lists, and those that two families confirm are
/// written to the checkout's `vectors/codec`; the rest is said, and is left out. Cases that are there are not touched.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kafka-conform vectors derive DescribeConfigsResponse
  kafka-conform vectors derive --check

Exit codes: 0 nothing is missing, or all that was is added; 1 something is missing (--check) or two families do not confirm
it; 3 an author could not be asked.")]
struct Derive {
    /// These messages only; all that have a file of cases unless given
    #[arg(value_name = "MESSAGE")]
    messages: Vec<String>,
    /// Change nothing and ask nobody: say what is missing
    #[arg(long)]
    check: bool,
}

/// Have the authors of valid codec vectors encode and decode them once more, and record who confirms them
///
/// An author is a codec of another project that `source` names. Those that are peers here are built and asked; brokers
/// were recorded once. Without --check the `source` lists in the checkout are rewritten: codecs that confirm a case are
/// added, authors that disagree are taken out where two families are left without them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kafka-conform vectors attest --check
  kafka-conform vectors attest --check --case 'codec/describe-configs-response/*'

Exit codes: 0 every vector is vouched for by two families, 1 an author disagrees, 3 an author could not be asked or the
run was interrupted.")]
struct Attest {
    /// Change nothing; ask the named authors only
    #[arg(long)]
    check: bool,
    /// These cases only, by id or glob; repeatable
    #[arg(long, value_name = "ID|GLOB")]
    case: Vec<String>,
}

/// Print every codec vector, one JSON object a line, recipes expanded
#[derive(clap::Args)]
struct Export {
    /// The form: jsonl
    #[arg(long, value_name = "FORMAT", default_value = "jsonl", value_parser = ["jsonl"])]
    format: String,
    /// Where to; standard output unless given
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Make a codec case of bytes that a fuzzer found
///
/// The bytes are made smaller while our codec reads them alike: the same error of the same field, or the same liberties;
/// valid ones stay as they are. The case names the rule that they fall under and the valid case that they are nearest to,
/// and every codec that is built is asked about it. The case goes to standard output, what the codecs say to standard error.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kafka-conform vectors promote fuzz/artifacts/decode/crash-1f2e...
  kafka-conform vectors promote body.bin --message DescribeConfigsResponse --version 4 --write

Exit codes: 0 the case is vouched for: a valid one by two families, others by one that is not ours; 1 it is not, the bytes
are in a case already, or they are no case; 2 wrong usage.")]
struct Promote {
    /// The bytes, raw
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The message they are of; unless given they are an input of the fuzz target `decode`, which names message and version
    #[arg(long, value_name = "MESSAGE", requires = "version")]
    message: Option<String>,
    /// Its version
    #[arg(long, value_name = "N", requires = "message", value_parser = super::layout::version)]
    version: Option<ApiVersion>,
    /// Which part of the message they are
    #[arg(long, value_name = "PART", default_value = "body", value_parser = ["body", "header", "frame"])]
    part: String,
    /// The id of the case in its file; one is made of field and rule unless given
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Add the case to the checkout's vectors/codec, where it is vouched for
    #[arg(long)]
    write: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    match args.what {
        What::Lint(args) => lint(args),
        What::Derive(args) => derive(args),
        What::Attest(args) => attest(args),
        What::Export(args) => export(args),
        What::Promote(args) => promote(args),
    }
}

fn lint(args: Lint) -> Outcome {
    let (cases, contents) = match Texts::bundled().lint(definitions::bundled()) {
        Ok(linted) => linted,
        Err(lints) => return said(&lints),
    };
    let mut text = Cases::bundled_ids().to_owned();
    if args.record {
        let checkout =
            adapter::checkout().context("ids are recorded in a checkout of this repository: run it there")?;
        let path = checkout.join("vectors/ids.txt");
        text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        if let Ok(mut ids) = Ids::parse(&text) {
            let count = ids.record(&contents);
            text = ids.to_text();
            std::fs::write(&path, &text).with_context(|| format!("writing {}", path.display()))?;
            output::print(&format!("{count} ids recorded\n"))?;
        }
    }
    let lints = match Ids::parse(&text) {
        Ok(ids) => ids.lints(&contents).iter().map(|(id, what)| format!("ids.txt: {id}: {what}")).collect(),
        Err(what) => vec![format!("ids.txt: {what}")],
    };
    if !lints.is_empty() {
        return said(&lints);
    }
    let exceptions = cases.vectors.without_own_definitions().count();
    if exceptions > 0 {
        output::print(&format!("{exceptions} valid vectors without an author that has definitions of its own\n"))?;
    }
    output::print(&format!(
        "{} vectors, 0 errors\n{} exchange cases, 0 errors\n{} client cases, 0 errors\n",
        cases.vectors.cases.len(),
        cases.exchanges.len(),
        cases.clients.len()
    ))?;
    Ok(Exit::Expected)
}

/// Prints what is wrong.
fn said(lints: &[String]) -> Outcome {
    let lines: String = lints.iter().map(|lint| format!("{lint}\n")).collect();
    output::print(&format!("{lines}{} errors\n", lints.len()))?;
    Ok(Exit::Failed)
}

fn derive(args: Derive) -> Outcome {
    let (cases, protocol) = (bundled_cases()?, definitions::bundled());
    for name in &args.messages {
        super::message(protocol, name)?;
    }
    let mut exit = Exit::Expected;
    process::catch_interrupts()?;
    for spec in protocol.messages() {
        let named = args.messages.is_empty() || args.messages.iter().any(|name| **name == *spec.name);
        if !named {
            continue;
        }
        let known: Vec<&Vector> = cases.vectors.cases.iter().filter(|case| case.spec.name == spec.name).collect();
        let derived = derive::missing(protocol, spec, &known)?;
        if derived.is_empty() {
            continue;
        }
        if args.check {
            for case in &derived {
                let (lowest, highest) = case.versions;
                output::print(&format!("{} {lowest}-{highest}: {}: missing\n", spec.name, case.slug))?;
            }
            exit = Exit::Failed;
            continue;
        }
        let path = case_file(spec)?;
        let (vouched, unconfirmed) = vouched(protocol, &cases.vectors, spec, derived)?;
        add_cases(&path, spec, &vouched)?;
        let added = format!("{} cases added; `vectors lint --record` records their ids", vouched.len());
        output::print(&format!("{}: {added}\n", spec.name))?;
        for line in &unconfirmed {
            output::print(&format!("{}\n", visible(line)))?;
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

/// Asks the authors about derived cases: those to be written, with their `source`, and a line for each that two families
/// do not confirm.
fn vouched(
    protocol: &codec::Protocol,
    vectors: &Vectors,
    spec: &codec::MessageSpec,
    derived: Vec<derive::Derived>,
) -> anyhow::Result<(Vec<Json>, Vec<String>)> {
    let texts: Vec<Json> = derived.iter().map(|case| case_json(case, &[])).collect();
    let loaded = unasked(protocol, vectors, spec, &texts)
        .map_err(|lints| anyhow::anyhow!("derived cases do not lint: this is a fault of ours\n{}", lints.join("\n")))?;
    let valid = loaded.cases.iter().filter(|case| case.rule.result == Expected::Valid);
    let selected: BTreeSet<String> = valid.map(|case| case.id.clone()).collect();
    let progress = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
    let attestation = attest::attest(protocol, &loaded, &selected, true, &progress)?;
    let changes = attestation.changes(&loaded);
    let mut lines: Vec<String> =
        attestation.not_run.iter().map(|(author, why)| format!("{author} was not asked: {why}")).collect();
    lines.extend(attestation.dissent());
    let mut cases = Vec::new();
    for case in &derived {
        if vectors.rules.get(case.rule).is_none_or(|rule| rule.result != Expected::Valid) {
            cases.push(case_json(case, &[]));
            continue;
        }
        let source = changes.iter().find(|change| change.case == case.slug).map(Change::source).unwrap_or_default();
        if attest::families(&vectors.sources, &source).len() >= 2 && vectors.has_own_definitions(&source) {
            cases.push(case_json(case, &source));
        } else {
            let by = if source.is_empty() { "nobody".to_owned() } else { source.join(", ") };
            lines.push(format!("{}: {}: left out: confirmed by {by} alone", spec.name, case.slug));
        }
    }
    // What was changed of a case that nobody vouches for is left out with it.
    let stands = |case: &Json| {
        let parent = case["parent"].as_str();
        let own = parent.is_none_or(|parent| !derived.iter().any(|case| case.slug == parent));
        own || cases.iter().any(|other| other["id"] == case["parent"])
    };
    let (cases, orphans): (Vec<Json>, Vec<Json>) = cases.iter().cloned().partition(stands);
    if !orphans.is_empty() {
        lines.push(format!("{}: {} more are left out with their parent", spec.name, orphans.len()));
    }
    Ok((cases, lines))
}

fn promote(args: Promote) -> Outcome {
    let (cases, protocol) = (bundled_cases()?, definitions::bundled());
    let input = std::fs::read(&args.file).with_context(|| format!("reading {}", args.file.display()))?;
    let (spec, version, bytes) = match (&args.message, args.version) {
        (Some(name), Some(version)) => (super::message(protocol, name)?.clone(), version, input.as_slice()),
        _ => {
            let named = codec::properties::named_message(protocol, &input);
            let (layout, bytes) = named.ok_or_else(|| Failure::usage("the file names no message: give --message"))?;
            (layout.spec().clone(), layout.version(), bytes)
        }
    };
    super::layout::check_version(&spec, version)?;
    let part: Part = serde_json::from_value(args.part.clone().into())?;
    let mut find = Find::new(protocol, &spec, version, part, bytes)?;
    find.minimise();
    output::tell(format_args!("{} bytes, {} of them needed", bytes.len(), find.bytes().len()));
    let known: Vec<&Vector> = cases.vectors.cases.iter().collect();
    let mut case = match find.case(&known, args.id) {
        Ok(case) => case,
        Err(why) => {
            output::tell(format_args!("no case: {why}"));
            return Ok(Exit::Failed);
        }
    };
    let rule = cases.vectors.rules.get(case.rule).with_context(|| format!("there is no rule {}", case.rule))?;
    case.requires = rule.sentence.clone();
    if rule.result == Expected::Valid {
        case.value = find.value();
    }
    let json = |case: &derive::Derived, source: &[String]| {
        let mut json = case_json(case, source);
        json["part"] = args.part.clone().into();
        json
    };
    let lint = |json: &Json| unasked(protocol, &cases.vectors, &spec, std::slice::from_ref(json));
    let loaded = match lint(&json(&case, &[])) {
        Ok(loaded) => loaded,
        Err(lints) => {
            // Such as readings that must be listed by hand.
            output::tell(visible(&lints.join("\n")));
            output::print(&format!("{:#}\n", json(&case, &[])))?;
            return Ok(Exit::Failed);
        }
    };
    process::catch_interrupts()?;
    let vector = loaded.cases.first().context("one case was loaded")?;
    let (opinions, not_run) = attest::opinions(protocol, vector);
    let mut lines: Vec<String> = not_run.iter().map(|(author, why)| format!("{author}: not asked: {why}")).collect();
    for outcome in opinions.iter().flat_map(|opinion| &opinion.outcomes) {
        let op = serde_json::to_value(outcome.op)?;
        let verdict = serde_json::to_value(outcome.verdict)?;
        let text = [op.as_str(), verdict.as_str(), outcome.detail.as_deref()];
        lines.push(format!("{}: {}", outcome.peer, text.into_iter().flatten().collect::<Vec<_>>().join(": ")));
    }
    let confirming: Vec<_> = opinions.iter().filter(|opinion| opinion.confirms).collect();
    let needed = if rule.result == Expected::Valid { 2 } else { 1 };
    // What a codec reads of merely acceptable bytes stands in the case where one that is not ours reads it as well.
    let reads = |opinion: &&&attest::Opinion| opinion.outcomes.iter().all(|outcome| outcome.verdict == Verdict::Pass);
    if rule.result == Expected::Acceptable && confirming.iter().filter(reads).count() > 0 {
        case.value = find.value();
    }
    let listed = |author: &&String| {
        let (name, version) = author.split_once('@').unwrap_or((author, ""));
        cases.vectors.sources.get(name).is_some_and(|source| source.versions.iter().any(|known| known == version))
    };
    // Authors of a valid case must be listed; to vouch for another one, any codec will do.
    let vouching = confirming.iter().filter(|opinion| rule.result != Expected::Valid || listed(&&opinion.author));
    let families: BTreeSet<&str> = vouching.clone().map(|opinion| opinion.family.as_str()).collect();
    let source: Vec<String> = match rule.result {
        Expected::Valid => vouching.map(|opinion| opinion.author.clone()).collect(),
        _ => Vec::new(),
    };
    if rule.result == Expected::Valid {
        // It stands on its authors: nobody changed a case on purpose.
        (case.parent, case.mutation) = (None, None);
    } else if let Some(mutation) = &mut case.mutation {
        *mutation += " (found by fuzzing)";
    }
    let json = json(&case, &source);
    let mut vouched = families.len() >= needed;
    if !vouched {
        lines.push(format!("not vouched for: {} of {needed} families", families.len()));
    }
    for lint in lint(&json).err().into_iter().flatten() {
        lines.push(lint);
        vouched = false;
    }
    let unreported: Vec<&str> =
        opinions.iter().filter(|opinion| opinion.unreported).map(|opinion| opinion.author.as_str()).collect();
    if !unreported.is_empty() {
        lines.push(format!(
            "not to be published before the maintainers had it (SECURITY.md): {}",
            unreported.join(", ")
        ));
    }
    output::tell(visible(&lines.join("\n")));
    if args.write && vouched && unreported.is_empty() {
        let path = case_file(&spec)?;
        add_cases(&path, &spec, std::slice::from_ref(&json))?;
        output::tell(format_args!("{}: {} added", path.display(), case.slug));
    } else {
        output::print(&format!("{json:#}\n"))?;
    }
    Ok(if vouched && unreported.is_empty() { Exit::Expected } else { Exit::Failed })
}

/// A derived case as the files have it.
fn case_json(case: &derive::Derived, source: &[String]) -> Json {
    let (lowest, highest) = case.versions;
    let mut json = serde_json::json!({
        "id": case.slug, "rule": case.rule, "part": "body",
        "versions": if lowest == highest { lowest.to_string() } else { format!("{lowest}-{highest}") },
        "cite": case.cite, "requires": case.requires,
    });
    let by_version = |of: &mut dyn Iterator<Item = (i16, Json)>| -> Json {
        Json::Object(of.map(|(version, json)| (version.to_string(), json)).collect())
    };
    if !case.bytes.is_empty() {
        json["bytes"] = by_version(&mut case.bytes.iter().map(|(version, bytes)| (*version, recipe::of_bytes(bytes))));
    }
    if !case.cuts.is_empty() {
        json["cuts"] =
            by_version(&mut case.cuts.iter().map(|(version, cuts)| (*version, recipe::of_lengths(cuts).into())));
    }
    let rest = [
        ("value", case.value.clone()),
        ("values", (!case.values.is_empty()).then(|| case.values.clone().into())),
        ("source", (!source.is_empty()).then(|| source.into())),
        ("parent", case.parent.clone().map(Json::from)),
        ("mutation", case.mutation.clone().map(Json::from)),
    ];
    for (name, value) in rest {
        if let Some(value) = value {
            json[name] = value;
        }
    }
    json
}

/// Cases of a message that nobody was asked about yet; the error is what the lint says of them.
fn unasked(
    protocol: &codec::Protocol,
    vectors: &Vectors,
    spec: &codec::MessageSpec,
    cases: &[Json],
) -> Result<Vectors, Vec<String>> {
    let file = serde_json::json!({ "message": &*spec.name, "cases": cases }).to_string();
    let name = format!("{}.json", kebab(&spec.name));
    let loaded = vectors.unasked(protocol, &Files::read(&[(&name, &file)]));
    loaded.map_err(|lints| lints.iter().map(ToString::to_string).collect())
}

/// Where the checkout has the cases of a message.
fn case_file(spec: &codec::MessageSpec) -> anyhow::Result<PathBuf> {
    let checkout = adapter::checkout().context("cases are written to a checkout of this repository: run it there")?;
    Ok(checkout.join(format!("vectors/codec/{}.json", kebab(&spec.name))))
}

/// Adds cases at the end of a case file, each member on a line of its own.
fn add_cases(path: &std::path::Path, spec: &codec::MessageSpec, cases: &[Json]) -> anyhow::Result<()> {
    let end = "\n  ]\n}\n";
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("{{\n  \"message\": {:?},\n  \"cases\": [{end}", &*spec.name)
        }
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let mut text =
        text.strip_suffix(end).with_context(|| format!("{} does not end as case files do", path.display()))?.to_owned();
    for case in cases {
        let members = case.as_object().into_iter().flatten();
        let members: Vec<String> = members.map(|(name, value)| format!("      {name:?}: {value}")).collect();
        let comma = if text.ends_with('[') { "" } else { "," };
        text += &format!("{comma}\n    {{\n{}\n    }}", members.join(",\n"));
    }
    std::fs::write(path, text + end).with_context(|| format!("writing {}", path.display()))
}

fn attest(args: Attest) -> Outcome {
    let cases = bundled_cases()?;
    let select = Select { out: PathBuf::new(), case: args.case, skip: Vec::new(), level: Level::Must, seed: 1 };
    let mut selected = select_cases(&cases, &[Role::Codec], &select)?;
    let valid = |case: &&Vector| case.rule.result == Expected::Valid;
    let ids: BTreeSet<&str> = cases.vectors.cases.iter().filter(valid).map(|case| case.id.as_str()).collect();
    selected.retain(|id| ids.contains(id.as_str()));
    if selected.is_empty() {
        return Err(Failure::nothing_selected("no valid codec case is selected: only these have authors to ask"));
    }
    process::catch_interrupts()?;
    let progress = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
    let protocol = definitions::bundled();
    let attestation = attest::attest(protocol, &cases.vectors, &selected, !args.check, &progress)?;
    let mut lines = attestation.problems();
    if !args.check {
        lines.extend(attestation.dissent());
        lines.extend(record(&attestation, &cases.vectors)?);
    }
    lines.extend(attestation.notes());
    let counts = attestation.counts();
    lines.push(counts.to_string());
    output::print(&(visible(&lines.join("\n")) + "\n"))?;
    Ok(if counts.disagree > 0 {
        Exit::Failed
    } else if counts.not_rerun > 0 || !attestation.not_run.is_empty() {
        Exit::Environment
    } else if counts.two_families < counts.valid {
        Exit::Failed
    } else {
        Exit::Expected
    })
}

/// Rewrites `source` where it should say something else, and says what was done.
fn record(attestation: &Attestation<'_>, vectors: &Vectors) -> anyhow::Result<Vec<String>> {
    let (sound, unsound): (Vec<Change>, Vec<Change>) =
        attestation.changes(vectors).into_iter().partition(|change| change.sound);
    let mut lines = Vec::new();
    for change in unsound {
        let authors = change.remove.join(", ");
        lines.push(format!(
            "{}: {}: left as it is: without {authors} two families do not vouch for it: find another or reason",
            change.file, change.case
        ));
    }
    let mut files: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    for change in sound {
        files.entry(change.file.clone()).or_default().push(change);
    }
    let folder = match adapter::checkout() {
        Some(checkout) => checkout.join("vectors/codec"),
        None => return Ok(lines),
    };
    for (file, changes) in files {
        let path = folder.join(&file);
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        match attest::rewrite(&text, &changes) {
            Ok(text) => {
                std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
                for Change { case, add, remove, .. } in changes {
                    lines.extend(add.iter().map(|author| format!("{file}: {case}: + {author}")));
                    lines.extend(remove.iter().map(|author| format!("{file}: {case}: - {author}")));
                }
            }
            Err(why) => lines.push(format!("{file}: not rewritten: {why}")),
        }
    }
    Ok(lines)
}

/// A line of the export.
#[derive(Serialize)]
struct Exported<'c> {
    id: &'c str,
    message: &'c str,
    api_key: Option<i16>,
    version: i16,
    part: &'static str,
    rule: &'c str,
    result: Expected,
    level: Level,
    outcomes: &'c [Allowed],
    requires: &'c str,
    cite: &'c [String],
    bytes: Option<String>,
    value: Option<&'c Json>,
    values: &'c [Json],
    source: &'c [String],
    parent: Option<String>,
    mutation: Option<&'c str>,
}

fn export(args: Export) -> Outcome {
    let Export { format: _, out } = args;
    let cases = bundled_cases()?;
    let ids: BTreeSet<&str> = cases.vectors.cases.iter().map(|case| case.id.as_str()).collect();
    let mut text = String::new();
    for case in &cases.vectors.cases {
        let line = Exported {
            id: &case.id,
            message: &case.spec.name,
            api_key: case.spec.api_key.map(|key| key.0),
            version: case.version.0,
            part: case.part.name(),
            rule: &case.rule.id,
            result: case.rule.result,
            level: case.level,
            outcomes: &case.rule.outcomes,
            requires: &case.info.requires,
            cite: &case.info.cite,
            bytes: case.bytes.as_deref().map(hex),
            value: case.value.as_ref(),
            values: &case.values,
            source: &case.source,
            parent: case.parent.as_deref().map(|parent| full_id(case, parent, &ids)),
            mutation: case.mutation.as_deref(),
        };
        text += &serde_json::to_string(&line)?;
        text.push('\n');
    }
    match out {
        None => output::print(&text)?,
        Some(path) => std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?,
    }
    Ok(Exit::Expected)
}

/// The full id of a case's parent: at the case's own version where the parent has it.
fn full_id(case: &Vector, parent: &str, ids: &BTreeSet<&str>) -> String {
    if ids.contains(parent) {
        return parent.to_owned();
    }
    let (message, _) = case.place();
    let own = format!("codec/{message}/v{}/{parent}", case.version);
    let stands = |id: &&&str| id.split('/').nth(1) == Some(message) && id.split('/').nth(3) == Some(parent);
    match ids.contains(own.as_str()) {
        true => own,
        false => ids.iter().rfind(stands).map_or(own, |id| (*id).to_owned()),
    }
}
