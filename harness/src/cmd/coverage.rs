//! `coverage`: which rules the codec cases leave untested.

use super::matrix::bundled_cases;
use super::{Exit, Outcome};
use crate::coverage::{Coverage, measure};
use crate::{definitions, output};

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
        super::message(protocol, name)?;
    }
    let cases = bundled_cases()?;
    let wanted = |message: &str| args.messages.is_empty() || args.messages.iter().any(|name| name == message);
    let covered = measure(protocol, &cases.vectors)?;
    let covered: Vec<_> = covered.into_iter().filter(|mutant| wanted(&mutant.message)).collect();
    let mut text = String::new();
    for mutant in &covered {
        match &mutant.caught_by {
            None => text += &format!("untested: {mutant}\n"),
            Some(case) if args.verbose => text += &format!("caught: {mutant}: {case}\n"),
            Some(_) => {}
        }
    }
    let coverage = Coverage::of(&covered);
    for (message, tally) in &coverage.messages {
        text += &format!("{message}: {tally}\n");
    }
    text += &format!("{}\n", coverage.all);
    output::print(&text)?;
    Ok(if coverage.untested.is_empty() { Exit::Expected } else { Exit::Failed })
}
