//! `vectors`: check the cases themselves, ask their authors again, and hand them out.

use super::matrix::{Select, bundled_cases, select_cases};
use super::{Exit, Failure, Outcome};
use crate::attest::{self, Attestation, Change};
use crate::cases::Cases;
use crate::report::words::visible;
use crate::results::{Level, Role};
use crate::vector::{Allowed, Expected, Vector, Vectors};
use crate::{adapter, definitions, dump, process};
use anyhow::Context as _;
use codec::hex;
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
    /// Load every case and say what is wrong: file, case, place
    Lint,
    Attest(Attest),
    Export(Export),
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

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    match args.what {
        What::Lint => lint(),
        What::Attest(args) => attest(args),
        What::Export(args) => export(args),
    }
}

fn lint() -> Outcome {
    match Cases::bundled(definitions::bundled()) {
        Ok(cases) => {
            anstream::println!("{} vectors, 0 errors", cases.vectors.cases.len());
            anstream::println!("{} exchange cases, 0 errors", cases.exchanges.len());
            anstream::println!("{} client cases, 0 errors", cases.clients.len());
            Ok(Exit::Expected)
        }
        Err(lints) => {
            for lint in &lints {
                anstream::println!("{lint}");
            }
            anstream::println!("{} errors", lints.len());
            Ok(Exit::Failed)
        }
    }
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
    process::catch_interrupts();
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
    dump::print(&(visible(&lines.join("\n")) + "\n"))?;
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
        None => dump::print(&text)?,
        Some(path) => std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?,
    }
    Ok(Exit::Expected)
}

/// The full id of a case's parent: at the case's own version where the parent has it.
fn full_id(case: &Vector, parent: &str, ids: &BTreeSet<&str>) -> String {
    if ids.contains(parent) {
        return parent.to_owned();
    }
    let message = case.id.split('/').nth(1).unwrap_or_default();
    let own = format!("codec/{message}/v{}/{parent}", case.version);
    let stands = |id: &&&str| id.split('/').nth(1) == Some(message) && id.split('/').nth(3) == Some(parent);
    match ids.contains(own.as_str()) {
        true => own,
        false => ids.iter().rfind(stands).map_or(own, |id| (*id).to_owned()),
    }
}
