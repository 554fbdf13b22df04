//! The `kafka-conform` command.

use clap::Parser as _;
use kafka_conform::cmd::{Cli, Exit, Failure};
use kafka_conform::report::words::visible;
use kafka_conform::{output, process};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Without it a file that may not grow ends us without a word: no reason not to try.
    let _ = process::outlive_file_limit();
    let outcome = match Cli::try_parse() {
        Ok(cli) => cli.run(),
        Err(error) if error.use_stderr() => error.exit(),
        // Help and version are output like any other.
        Err(help) => output::print(&help.render().ansi().to_string()).map(|()| Exit::Expected).map_err(Failure::from),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // It may quote what a peer said.
            output::tell(format_args!("error: {}", visible(&format!("{:#}", failure.error))));
            failure.exit.into()
        }
    }
}
