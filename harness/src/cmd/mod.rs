//! The subcommands of `kafka-conform`, one file each.

use clap::{Parser, Subcommand};
use codec::{MessageSpec, Protocol};
use std::process::ExitCode;
use std::sync::Arc;

pub mod certify;
pub mod coverage;
pub mod decode;
pub mod encode;
pub mod explain;
pub mod fake;
pub mod known;
pub mod layout;
pub mod list;
pub mod matrix;
pub mod peers;
pub mod replay;
pub mod report;
pub mod vectors;

/// What a command ends with, beside success: see "Exit codes" in docs/formats.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// As expected.
    Expected,
    /// A `fail` or an `unexpected-pass`; bytes that do not decode.
    Failed,
    /// Usage, or a name that is not there.
    Usage,
    /// The environment, or a peer that was asked for by name did not run.
    Environment,
    /// A glob or filter selected nothing.
    NothingSelected,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Expected => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Environment => 3,
            Exit::NothingSelected => 4,
        })
    }
}

/// An error that a command ends with, and its exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What went wrong and what to do about it.
    pub error: anyhow::Error,
}

impl Failure {
    /// A mistake in what was asked.
    pub fn usage(text: impl Into<String>) -> Failure {
        Failure { exit: Exit::Usage, error: anyhow::Error::msg(text.into()) }
    }

    /// Something that selected nothing.
    pub fn nothing_selected(text: impl Into<String>) -> Failure {
        Failure { exit: Exit::NothingSelected, error: anyhow::Error::msg(text.into()) }
    }

    /// A name that is not there, with the nearest that are.
    pub fn unknown<'n>(what: &str, name: &str, known: impl IntoIterator<Item = &'n str>) -> Failure {
        let mut near: Vec<(f64, &str)> = known
            .into_iter()
            .map(|known| (strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase()), known))
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        near.dedup();
        let near: Vec<&str> = near.iter().take(3).map(|&(_, known)| known).collect();
        let hint = if near.is_empty() { String::new() } else { format!("; nearest: {}", near.join(", ")) };
        Failure::usage(format!("no {what} is called {name:?}{hint}"))
    }
}

/// A message by its name, or the nearest names.
fn message<'p>(protocol: &'p Protocol, name: &str) -> Result<&'p Arc<MessageSpec>, Failure> {
    let names = || protocol.messages().map(|spec| &*spec.name);
    protocol.message(name).ok_or_else(|| Failure::unknown("message", name, names()))
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { exit: Exit::Environment, error: error.into() }
    }
}

/// What every command returns.
pub type Outcome = Result<Exit, Failure>;

/// Conformance suite of the Kafka protocol: judges codecs, brokers and clients, with the bytes that prove it.
#[derive(Parser)]
#[command(name = "kafka-conform", version, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Matrix(matrix::Args),
    Certify(certify::Args),
    List(list::Args),
    Explain(explain::Args),
    Replay(replay::Args),
    Decode(decode::Args),
    Encode(encode::Args),
    Layout(layout::Args),
    Peers(peers::Args),
    Fake(fake::Args),
    Coverage(coverage::Args),
    Known(known::Args),
    Vectors(vectors::Args),
    Report(report::Args),
}

impl Cli {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.command {
            Command::Matrix(args) => matrix::run(args),
            Command::Certify(args) => certify::run(args),
            Command::List(args) => list::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Replay(args) => replay::run(args),
            Command::Decode(args) => decode::run(args),
            Command::Encode(args) => encode::run(args),
            Command::Layout(args) => layout::run(args),
            Command::Peers(args) => peers::run(args),
            Command::Fake(args) => fake::run(args),
            Command::Coverage(args) => coverage::run(args),
            Command::Known(args) => known::run(args),
            Command::Vectors(args) => vectors::run(args),
            Command::Report(args) => report::run(args),
        }
    }
}
