//! `vectors`: check the cases themselves.

use super::{Exit, Outcome};
use crate::cases::Cases;
use crate::definitions;

/// Check the cases.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Load every case and say what is wrong: file, case, place
    Lint,
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    let What::Lint = args.what;
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
