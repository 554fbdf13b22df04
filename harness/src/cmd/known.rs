//! `known verify`: run the proofs of every listed deviation.

use super::{Exit, Outcome};
use crate::adapter::{PeerVersion, checkout, manifests, run_proof};
use crate::output;
use crate::report::words::visible;
use anyhow::Context as _;
use std::sync::Arc;
use std::time::Duration;

/// The deviations that are listed with their proofs.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Run each proof, which shows the fault without this suite
    Verify,
}

const PROOF_DEADLINE: Duration = Duration::from_secs(300);

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    let What::Verify = args.what;
    let checkout = checkout().context("proofs are run in a checkout of this repository")?;
    let (mut entries, mut reproduced, mut not_run) = (0, 0, 0);
    for manifest in manifests() {
        let manifest = Arc::new(manifest.clone());
        for entry in &manifest.known {
            entries += 1;
            let peer = PeerVersion { manifest: manifest.clone(), version: entry.version.clone() };
            let class = serde_json::to_value(entry.class).unwrap_or_default();
            let line = format!("{} {}: {}", peer.name(), class.as_str().unwrap_or_default(), entry.why);
            if let Some(missing) = peer.missing_tool() {
                not_run += 1;
                output::print(&format!("not-run: {missing}: {line}\n"))?;
                continue;
            }
            crate::matrix::build(&peer, manifest.role[0], &checkout)?;
            let command = peer.fill(&entry.proof.run, &checkout);
            let folder = checkout.join("adapters").join(&manifest.name);
            let shown = run_proof(&command, &folder, PROOF_DEADLINE)?;
            if shown.contains(&entry.proof.shows) {
                reproduced += 1;
                output::print(&format!("reproduced: {line}\n"))?;
            } else {
                let shown = visible(&crate::adapter::cut(&shown));
                output::print(&format!("NOT REPRODUCED: {line}\n  the proof printed: {shown}\n"))?;
            }
        }
    }
    let rest = if not_run > 0 { format!(", {not_run} not run") } else { String::new() };
    output::print(&format!("{entries} entries, {reproduced} reproduced{rest}\n"))?;
    Ok(match (reproduced == entries, reproduced + not_run == entries) {
        (true, _) => Exit::Expected,
        (_, true) => Exit::Environment,
        _ => Exit::Failed,
    })
}
