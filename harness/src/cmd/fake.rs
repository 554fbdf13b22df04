//! `fake`: peers that are wrong in one known way, which test the tester.

use super::matrix::bundled_cases;
use super::{Exit, Failure, Outcome};
use crate::adapter::Launch;
use crate::matrix::{Bench, Plan, Recorder};
use crate::results::{Level, Role, Verdict};
use crate::{definitions, reference};
use indicatif::{MultiProgress, ProgressDrawTarget};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::time::Duration;

/// A peer that is wrong in one known way, to see that it is caught.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kafka-conform fake codec --list
  kafka-conform certify codec -- kafka-conform fake codec --fault liar
  kafka-conform fake codec --check")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// A codec behind an adapter, our own but for the fault
    Codec {
        /// The faults there are
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

/// A fault of the fake codec.
struct Fault {
    name: &'static str,
    what: &'static str,
}

const FAULTS: &[Fault] = &[
    Fault { name: "echo", what: "answers with what it was asked" },
    Fault { name: "liar", what: "decodes everything to the value of all defaults and encodes that" },
    Fault { name: "crasher", what: "ends at the third request" },
    Fault { name: "sleeper", what: "never answers the third request" },
    Fault { name: "flooder", what: "answers the third request without end" },
];

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    match args.what {
        What::Codec { list: true, .. } => {
            for fault in FAULTS {
                anstream::println!("{:10} {}", fault.name, fault.what);
            }
            Ok(Exit::Expected)
        }
        What::Codec { check: true, .. } => check(),
        What::Codec { fault, .. } => {
            let fault = fault.unwrap_or_else(|| "none".to_owned());
            if fault != "none" && !FAULTS.iter().any(|known| known.name == fault) {
                return Err(Failure::unknown("fault", &fault, FAULTS.iter().map(|fault| fault.name)));
            }
            serve(&fault)
        }
    }
}

/// Speaks the adapter protocol until it is told to stop.
fn serve(fault: &str) -> Outcome {
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
            Some("start") => {
                let mut handshake = reference::handshake(protocol);
                handshake["peer"] = format!("fake-{fault}").into();
                handshake
            }
            Some("stop") => return Ok(Exit::Expected),
            _ => match fault {
                "echo" => request,
                // The handshake, the probe, and then the third request.
                "crasher" if number == 3 => return Ok(Exit::Failed),
                "sleeper" if number == 3 => loop {
                    std::thread::sleep(Duration::from_secs(3600));
                },
                "flooder" if number == 3 => loop {
                    if writeln!(out, "{}", json!({ "id": 0, "value": {} })).is_err() {
                        return Ok(Exit::Failed);
                    }
                },
                "liar" => lie(protocol, &request),
                _ => reference::answer(protocol, &request),
            },
        };
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(Exit::Expected)
}

/// The value of all defaults, whatever was asked.
fn lie(protocol: &codec::Protocol, request: &Json) -> Json {
    let mut request = request.clone();
    let op = request["op"].clone();
    request["op"] = "encode".into();
    request["value"] = json!({});
    let encoded = reference::answer(protocol, &request);
    if op != "decode" || encoded.get("bytes").is_none() {
        return encoded;
    }
    request["op"] = op;
    request["bytes"] = encoded["bytes"].clone();
    reference::answer(protocol, &request)
}

/// Judges each fault, and the control, in processes of their own.
fn check() -> Outcome {
    let cases = bundled_cases()?;
    let program = std::env::current_exe()?.to_string_lossy().into_owned();
    // A few cases are enough for these faults, and a sleeper costs its deadline at each.
    let vectors = cases.vectors.cases.iter().filter(|case| &*case.spec.name == "DescribeConfigsResponse").take(3);
    let selected: std::collections::BTreeSet<String> = vectors.map(|case| case.id.clone()).collect();
    let judge = |fault: &str| {
        let plan = Plan { level: Level::Must, jobs: 1, seed: 1, publish: false };
        let bench = Bench {
            protocol: definitions::bundled(),
            cases: &cases,
            plan: &plan,
            selected: selected.clone(),
            recorder: Recorder::new(None),
            progress: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()),
        };
        let command = [&program, "fake", "codec", "--fault", fault].map(str::to_owned).to_vec();
        bench.certify(Role::Codec, Launch { command, env: BTreeMap::new() })
    };
    let mut caught = 0;
    for fault in FAULTS {
        let by = match judge(fault.name) {
            // A peer that is not believed at all is caught by the probe.
            Err(error) => Some(format!("the probe: {error:#}")),
            Ok(results) => results
                .outcomes
                .iter()
                .find(|outcome| matches!(outcome.verdict, Verdict::Fail | Verdict::HarnessError))
                .map(|outcome| format!("{} ({})", outcome.case, outcome.detail.as_deref().unwrap_or_default())),
        };
        caught += usize::from(by.is_some());
        anstream::println!("{} caught-by {}", fault.name, by.as_deref().unwrap_or("NOTHING"));
    }
    let control = judge("none")?;
    let clean = control.outcomes.iter().all(|outcome| outcome.verdict == Verdict::Pass);
    anstream::println!("{caught} of {}, control {}", FAULTS.len(), if clean { "clean" } else { "NOT CLEAN" });
    Ok(if caught == FAULTS.len() && clean { Exit::Expected } else { Exit::Failed })
}
