//! `coverage`: which rules the codec cases leave untested.

use super::matrix::bundled_cases;
use super::{Exit, Failure, Outcome};
use crate::coverage::measure;
use crate::{definitions, dump};
use std::collections::BTreeMap;

/// Measure what the codec cases cover: every layout that is wrong in one thing must be caught by a case
#[derive(clap::Args)]
#[command(after_help = "Example:
  kafka-conform coverage DescribeConfigsResponse

Ends with 1 when a mutant survives: its rule is untested.")]
pub struct Args {
    /// Only these messages
    #[arg(value_name = "MESSAGE")]
    messages: Vec<String>,
    /// Say which case caught each mutant, too
    #[arg(long)]
    verbose: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    let protocol = definitions::bundled();
    for name in &args.messages {
        if protocol.message(name).is_none() {
            return Err(Failure::unknown("message", name, protocol.messages().map(|spec| &*spec.name)));
        }
    }
    let cases = bundled_cases()?;
    let wanted = |message: &str| args.messages.is_empty() || args.messages.iter().any(|name| name == message);
    let covered = measure(protocol, &cases.vectors)?;
    let covered: Vec<_> = covered.into_iter().filter(|mutant| wanted(&mutant.message)).collect();
    let mut text = String::new();
    let mut by_message: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for mutant in &covered {
        let (all, caught) = by_message.entry(&mutant.message).or_default();
        *all += 1;
        *caught += usize::from(mutant.caught_by.is_some());
        let line = format!("{} v{} {}: {}", mutant.message, mutant.version, mutant.place, mutant.mutation);
        match &mutant.caught_by {
            None => text += &format!("untested: {line}\n"),
            Some(case) if args.verbose => text += &format!("caught: {line}: {case}\n"),
            Some(_) => {}
        }
    }
    for (message, (all, caught)) in by_message {
        text += &format!("{message}: {all} mutants, {caught} caught\n");
    }
    let caught = covered.iter().filter(|mutant| mutant.caught_by.is_some()).count();
    text += &format!("{} mutants, {caught} caught\n", covered.len());
    dump::print(&text)?;
    Ok(if caught == covered.len() { Exit::Expected } else { Exit::Failed })
}
