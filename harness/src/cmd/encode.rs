//! `kafka-conform encode`: a JSON value to bytes.

use super::decode::{hex_line, read_file, stdin};
use super::layout::{check_version, messages, version};
use super::{Exit, Failure, Outcome};
use crate::definitions;
use crate::output;
use codec::{AbsentFields, ApiVersion, EncodeError, Layout, MessageKind, Value, encode, encode_frame};
use serde_json::{Value as Json, json};

/// Write a message as hex
///
/// A field that is left out has its default. A value that the version cannot express is refused with the path to it.
#[derive(clap::Args)]
#[command(
    group = clap::ArgGroup::new("kind").required(true).args(["request", "response"]),
    after_help = "Bytes are written as {\"hex\": \"..\"}, unknown tagged fields as \"_tags\": [{\"tag\": 9, \"hex\": \"..\"}].
`kafka-conform layout API VERSION --diagram` prints the schema and an example to start from.

Exit codes: 0 written; 1 the value has no encoding; 2 wrong usage, unknown API or version, no JSON.

Examples:
  kafka-conform encode --request --api DescribeConfigs --version 4 \\
    --header '{\"CorrelationId\": 7, \"ClientId\": \"lab\"}' \\
    '{\"Resources\": [{\"ResourceType\": 2, \"ResourceName\": \"t1\"}]}'
  kafka-conform encode --response --api AlterConfigs --version 2 --body '{}'
  kafka-conform encode --request --api ApiVersions --version 3 @request.json"
)]
pub struct Args {
    /// The value is a request
    #[arg(long)]
    request: bool,
    /// The value is a response
    #[arg(long)]
    response: bool,
    /// Name or key of the API
    #[arg(long)]
    api: String,
    /// Version of the API
    #[arg(long, value_parser = version, allow_hyphen_values = true)]
    version: ApiVersion,
    /// Header fields that are not to have their defaults; API key and version of a request are filled in
    #[arg(long, value_name = "JSON", conflicts_with = "body")]
    header: Option<String>,
    /// Only the body: no size and no header before it
    #[arg(long)]
    body: bool,
    /// No size before the header
    #[arg(long)]
    no_size: bool,
    /// The body's value; `-` reads it from standard input, `@FILE` from a file
    #[arg(value_name = "JSON")]
    value: String,
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    let protocol = definitions::bundled();
    let kind = if args.request { MessageKind::Request } else { MessageKind::Response };
    let specs = messages(protocol, &args.api, Some(kind))?;
    let Some(&spec) = specs.first() else { unreachable!("names stand for a message at least") };
    check_version(spec, args.version)?;
    if spec.kind == MessageKind::Header && !args.body {
        return Err(Failure::usage("a header has no frame of its own; add --body to encode one alone"));
    }
    let text = match (args.value.as_str(), args.value.strip_prefix('@')) {
        ("-", _) => stdin()?,
        (_, Some(path)) => String::from_utf8(read_file(path)?)
            .map_err(|_| Failure::usage(format!("{path} is not text; the value is written as JSON")))?,
        (text, None) => text.to_owned(),
    };
    let layout = protocol.layout(&spec.name, args.version)?;
    let body = value(&layout, &parse(&text, "the value")?)?;
    let bytes = if args.body {
        encode(&layout, &body).map_err(refused)?
    } else {
        let frame = protocol.frame_layout(spec, args.version)?;
        let mut json = args.header.as_deref().map_or(Ok(json!({})), |text| parse(text, "--header"))?;
        let in_header = |error: EncodeError| {
            let path = if error.path.is_empty() { "header".to_owned() } else { format!("header.{}", error.path) };
            refused(EncodeError { path, ..error })
        };
        if let (MessageKind::Request, Some(header)) = (spec.kind, json.as_object_mut()) {
            header.entry("RequestApiKey").or_insert(spec.api_key.map(|key| key.0).into());
            header.entry("RequestApiVersion").or_insert(args.version.0.into());
        }
        let header = Value::from_json(&frame.header, &json, AbsentFields::Keep).map_err(in_header)?;
        // Alone first, so that what is wrong with a header is said of the header.
        encode(&frame.header, &header).map_err(in_header)?;
        let mut bytes = encode_frame(&frame, &header, &body).map_err(refused)?;
        if args.no_size {
            bytes.drain(..4);
        }
        bytes
    };
    output::print(&hex_line(&bytes))?;
    Ok(Exit::Expected)
}

fn parse(text: &str, what: &str) -> Result<Json, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(format!(
            "{what} is not JSON: {error}; quote it for the shell, as in '{{\"ThrottleTimeMs\": 0}}'"
        ))
    })
}

fn value(layout: &Layout, json: &Json) -> Result<Value, Failure> {
    Value::from_json(layout, json, AbsentFields::Keep).map_err(refused)
}

/// The value is what is wrong, not how the command was called.
fn refused(error: EncodeError) -> Failure {
    Failure { exit: Exit::Failed, error: error.into() }
}
