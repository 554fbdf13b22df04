//! The `kafka-conform` command.

use clap::Parser as _;
use kafka_conform::cmd::Cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(exit) => exit.into(),
        Err(failure) => {
            anstream::eprintln!("error: {:#}", failure.error);
            failure.exit.into()
        }
    }
}
