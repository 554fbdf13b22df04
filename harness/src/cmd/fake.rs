//! `fake`: peers that are wrong in one known way, which test the tester.

use super::matrix::bundled_cases;
use super::{Exit, Failure, Outcome};
use crate::fake_codec::{self, Deed, FAULTS, Fault, Found};
use crate::{definitions, output};
use serde_json::Value as Json;
use std::io::{BufRead as _, Write as _};
use std::time::Duration;

/// A peer that is wrong in one known way, to see that it is caught.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kafka-conform fake codec --list
  kafka-conform certify codec -- kafka-conform fake codec --fault liar
  kafka-conform fake codec --check

`--check` ends with 1 when a fault is not caught by a case that is about it, or a peer without fault is not clean.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// A plain codec behind an adapter, right but for the fault
    Codec {
        /// The faults there are: name, what is wrong, and public reports of such a fault
        #[arg(long, conflicts_with_all = ["fault", "check"])]
        list: bool,
        /// Speak the adapter protocol with this fault; `none` for the control
        #[arg(long, value_name = "NAME", conflicts_with = "check")]
        fault: Option<String>,
        /// Judge each fault and say which case caught it
        #[arg(long)]
        check: bool,
    },
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    match args.what {
        What::Codec { list: true, .. } => {
            let line = |fault: &Fault| {
                let line = format!("{:30} {} ({})", fault.name(), fault.what, fault.reports.join(", "));
                line.trim_end_matches(" ()").to_owned() + "\n"
            };
            output::print(&FAULTS.iter().map(line).collect::<String>())?;
            Ok(Exit::Expected)
        }
        What::Codec { check: true, .. } => check(),
        What::Codec { fault, .. } => {
            let name = fault.unwrap_or_else(|| Fault::CONTROL.name());
            let mut known = FAULTS.iter().chain([&Fault::CONTROL]);
            match known.find(|fault| fault.name() == name) {
                Some(fault) => serve(fault),
                None => {
                    let names: Vec<String> = FAULTS.iter().map(Fault::name).collect();
                    Err(Failure::unknown("fault", &name, names.iter().map(String::as_str)))
                }
            }
        }
    }
}

/// Speaks the adapter protocol until it is told to stop.
fn serve(fault: &Fault) -> Outcome {
    let protocol = definitions::bundled();
    let mut out = std::io::stdout().lock();
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let request: Json = match line.map_err(anyhow::Error::from).and_then(|line| Ok(serde_json::from_str(&line)?)) {
            Ok(request) => request,
            Err(error) => return Err(Failure::usage(format!("a line that is not JSON: {error}"))),
        };
        let answer = match request["op"].as_str() {
            Some("start") if request["protocol"] != 1 => {
                return Err(Failure::usage("protocol 1 is all that is spoken here"));
            }
            Some("start") => fake_codec::handshake(protocol, fault),
            Some("stop") => return Ok(Exit::Expected),
            _ => match fake_codec::act(protocol, fault.switch, request, number) {
                Deed::Answer(answer) => answer,
                Deed::Ends => return Ok(Exit::Failed),
                Deed::Aborts => std::process::abort(),
                Deed::Hangs => loop {
                    std::thread::sleep(Duration::from_secs(3600));
                },
                Deed::Floods(line) => loop {
                    if writeln!(out, "{line}").is_err() {
                        return Ok(Exit::Failed);
                    }
                },
            },
        };
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(Exit::Expected)
}

/// Judges each fault, and the control.
fn check() -> Outcome {
    let cases = bundled_cases()?;
    let program = std::env::current_exe()?.to_string_lossy().into_owned();
    let found = fake_codec::check(FAULTS, &cases, &program)?;
    let control = fake_codec::control(&cases, &program)?;
    let mut text = String::new();
    for (fault, found) in FAULTS.iter().zip(&found) {
        text += &format!("{} caught-by {found}\n", fault.name());
    }
    for bad in &control {
        text += &format!("control: {bad}\n");
    }
    let caught = found.iter().filter(|found| Found::is_caught(found)).count();
    let clean = if control.is_empty() { "clean" } else { "NOT CLEAN" };
    text += &format!("{caught} of {}, control {clean}\n", FAULTS.len());
    output::print(&text)?;
    Ok(if caught == FAULTS.len() && control.is_empty() { Exit::Expected } else { Exit::Failed })
}
