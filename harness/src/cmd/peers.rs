//! `peers`: who can be judged here, and building them.

use super::{Exit, Failure, Outcome};
use crate::adapter::checkout;
use crate::matrix::{Candidate, candidates};
use crate::names::{Globs, is_glob};
use crate::output;
use anyhow::Context as _;
use comfy_table::{Table, presets};

/// List the peers that can be judged here, or build them.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(clap::Subcommand)]
enum What {
    /// Who there is, as what, and what is missing to run them
    List,
    /// Build these now, so that a later run need not
    Build {
        /// Names, name@version or globs
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    match args.what.unwrap_or(What::List) {
        What::List => list(),
        What::Build { names } => build(&names),
    }
}

fn list() -> Outcome {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["peer", "role", "language", "runs", "ready"]);
    for candidate in candidates() {
        let (language, ready) = match &candidate {
            Candidate::Reference => ("rust", "built in".to_owned()),
            Candidate::Manifest(peer, _) => {
                let ready = peer.missing_tool().unwrap_or_else(|| "built on demand".to_owned());
                (peer.manifest.language.as_str(), ready)
            }
        };
        let role = serde_json::to_value(candidate.role()).unwrap_or_default();
        let runs = if candidate.is_default() { "by default" } else { "with --all or --peer" };
        table.add_row([&candidate.name(), role.as_str().unwrap_or_default(), language, runs, &ready]);
    }
    output::print(&format!("{table}\n"))?;
    Ok(Exit::Expected)
}

fn build(names: &[String]) -> Outcome {
    let all = candidates();
    let globs = Globs::new(names).map_err(|error| Failure::usage(format!("{error:#}")))?;
    for name in names.iter().filter(|name| !is_glob(name)) {
        let one = Globs::new(std::slice::from_ref(name)).map_err(|error| Failure::usage(format!("{error:#}")))?;
        if !all.iter().any(|candidate| one.matches(&candidate.name())) {
            let known: Vec<String> = all.iter().map(Candidate::name).collect();
            return Err(Failure::unknown("peer", name, known.iter().map(String::as_str)));
        }
    }
    let selected: Vec<&Candidate> = all.iter().filter(|candidate| globs.matches(&candidate.name())).collect();
    if selected.is_empty() {
        return Err(Failure::nothing_selected("no peer is selected: `kafka-conform peers list` shows what there is"));
    }
    for candidate in selected {
        let Candidate::Manifest(peer, role) = candidate else { continue };
        output::tell(format_args!("building {}", candidate.name()));
        if let Some(missing) = peer.missing_tool() {
            return Err(anyhow::Error::msg(missing).into());
        }
        let checkout = checkout().context("adapters are built from a checkout of this repository: run it there")?;
        crate::matrix::build(peer, *role, &checkout)?;
    }
    Ok(Exit::Expected)
}
