//! `report`: compare, merge and render runs.

use super::matrix::{bundled_cases, coverage_for};
use super::{Exit, Failure, Outcome};
use crate::results::Results;
use crate::{output, report};
use std::path::{Path, PathBuf};

/// Compare, merge and render the results of runs.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// What changed from one results.jsonl to another
    Diff {
        /// The earlier one
        before: PathBuf,
        /// The later one
        after: PathBuf,
    },
    /// Put runs of the same cases over different peers together
    Merge {
        /// Folder of the report
        #[arg(long, value_name = "DIR", default_value = "conform-report")]
        out: PathBuf,
        /// The results.jsonl files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Write the report of a results.jsonl again
    Render {
        /// Folder of the report
        #[arg(long, value_name = "DIR", default_value = "conform-report")]
        out: PathBuf,
        /// The results.jsonl
        file: PathBuf,
    },
}

fn load(path: &Path) -> Result<Results, Failure> {
    let text = std::fs::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    Results::from_jsonl(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// The rows were made from certain cases: others would tell lies about them.
fn write(out: &Path, results: &Results) -> Outcome {
    let cases = bundled_cases()?;
    if results.run.cases_sha256 != cases.sha256 {
        return Err(Failure::usage(
            "these results were made with other cases than this binary holds: render them with the suite that made them",
        ));
    }
    report::write(out, results, &cases.infos(), coverage_for(results, &cases)?.as_ref())?;
    output::print(&format!("report: {}\n", out.join("index.html").display()))?;
    Ok(Exit::Expected)
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    match args.what {
        What::Diff { before, after } => {
            let diff = report::diff(&load(&before)?, &load(&after)?);
            output::print(&format!("{diff}\n"))?;
            Ok(if diff.is_empty() { Exit::Expected } else { Exit::Failed })
        }
        What::Merge { out, files } => {
            let runs = files.iter().map(|file| load(file)).collect::<Result<Vec<_>, _>>()?;
            write(&out, &report::merge(runs).map_err(Failure::usage)?)
        }
        What::Render { out, file } => write(&out, &load(&file)?),
    }
}
