//! `list`: the cases there are.

use super::matrix::bundled_cases;
use super::{Exit, Failure, Outcome};
use crate::names::{Globs, is_glob};
use crate::output;

/// List cases: id, level, and what each requires.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kafka-conform list
  kafka-conform list 'codec/describe-configs-response/v4/*'")]
pub struct Args {
    /// Only ids that match this glob
    glob: Option<String>,
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    let cases = bundled_cases()?;
    let patterns: Vec<String> = args.glob.into_iter().collect();
    let globs = Globs::new(&patterns).map_err(|error| Failure::usage(format!("{error:#}")))?;
    let list = cases.list();
    let mut shown = 0;
    output::print_with(|out| {
        for case in list.iter().filter(|case| globs.is_empty() || globs.matches(&case.id)) {
            shown += 1;
            let level = serde_json::to_value(case.level)?;
            writeln!(out, "{}  {:8}  {}", case.id, level.as_str().unwrap_or_default(), case.info.requires)?;
        }
        Ok(())
    })?;
    if let Some(name) = patterns.first().filter(|name| shown == 0 && !is_glob(name)) {
        return Err(Failure::unknown("case", name, list.iter().map(|case| case.id.as_str())));
    }
    if shown == 0 {
        return Err(Failure::nothing_selected("no case has such an id: `kafka-conform list` shows all"));
    }
    Ok(Exit::Expected)
}
