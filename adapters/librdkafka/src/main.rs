//! Drives librdkafka's admin calls for configs over the adapter protocol.

mod admin;
mod native;
mod protocol;

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::native::Client;
use crate::protocol::{Failure, Operation, Peer, Shown, serve};

fn main() -> ExitCode {
    ExitCode::from(serve(&Librdkafka))
}

struct Librdkafka;

impl Peer for Librdkafka {
    type Client = Client;

    fn introduce(&self) -> Value {
        json!({
            "protocol": 1,
            "peer": "librdkafka",
            "version": native::version(),
            "language": "c",
            "supports": {},
            "operations": {
                "describe_configs": {
                    "keys": true,
                    "synonyms": true,
                    "documentation": false,
                    "shows": [
                        "ErrorMessage", "Value", "ReadOnly", "IsDefault", "ConfigSource", "IsSensitive", "Synonyms",
                        "Source",
                    ],
                },
                "alter_configs": { "validate_only": true },
                "incremental_alter_configs": { "validate_only": true },
            },
        })
    }

    fn connect(&self, operation: &Operation) -> Result<Client, Failure> {
        Client::new(&operation.bootstrap, operation.timeout_ms)
    }

    fn call(&self, client: &Client, operation: &Operation) -> Result<Vec<Shown>, Failure> {
        admin::call(client, operation)
    }
}
