//! The `kafka-conform` command.

use clap::Parser as _;
use kafka_conform::cmd::Cli;
use kafka_conform::report::words::visible;
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // It may quote what a peer said.
            anstream::eprintln!("error: {}", visible(&format!("{:#}", failure.error)));
            failure.exit.into()
        }
    }
}
