//! Drives the `AdminClient` of the crate `rdkafka` over the adapter protocol.

#![forbid(unsafe_code)]

mod admin;
// The JSON lines and what is asked are the same for both adapters of librdkafka.
#[path = "../../librdkafka/src/protocol.rs"]
mod protocol;

use std::process::ExitCode;

use rdkafka::admin::AdminClient;
use rdkafka::client::DefaultClientContext;
use serde_json::{Value, json};

use crate::protocol::{Failure, Operation, Peer, Shown, serve};

fn main() -> ExitCode {
    // Before any client is made: the wrapper takes librdkafka's own log level from this one.
    if log::set_logger(&StderrLog).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
    ExitCode::from(serve(&RustRdkafka))
}

struct RustRdkafka;

impl Peer for RustRdkafka {
    type Client = AdminClient<DefaultClientContext>;

    fn introduce(&self) -> Value {
        json!({
            "protocol": 1,
            "peer": "rust-rdkafka",
            "version": "0.39.0",
            "language": "rust",
            "supports": {},
            "operations": {
                "describe_configs": {
                    "keys": false,
                    "synonyms": false,
                    "documentation": false,
                    "shows": ["Value", "ReadOnly", "IsDefault", "ConfigSource", "IsSensitive"],
                },
                "alter_configs": { "validate_only": true, "shows": [] },
            },
        })
    }

    fn connect(&self, operation: &Operation) -> Result<Self::Client, Failure> {
        admin::connect(operation)
    }

    fn call(&self, client: &Self::Client, operation: &Operation) -> Result<Vec<Shown>, Failure> {
        admin::call(client, operation)
    }
}

/// Log lines to stderr, where they are evidence.
struct StderrLog;

impl log::Log for StderrLog {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{}: {}", record.level(), record.args());
        }
    }

    fn flush(&self) {}
}
