//! `kafka-conform decode`: bytes to fields, with what is odd or wrong about them.

use super::layout::{check_version, messages, unknown_api, version};
use super::{Exit, Failure, Outcome};
use crate::definitions;
use crate::dump::{self, Message, Parts};
use crate::output;
use anyhow::Context as _;
use codec::{ApiKey, ApiVersion, DecodeErrorKind, MessageKind, MessageSpec, Protocol, Value, View, hex, parse_hex};
use serde::Serialize;
use serde::ser::{SerializeSeq as _, Serializer};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::sync::Arc;

/// Take a message apart, byte by byte
///
/// Prints the bytes by kind and the object tree with type, value, place and meaning of each field. What a decoder may
/// take or refuse is pointed out; what it must not take ends the tree where reading stopped.
#[derive(clap::Args)]
#[command(
    group = clap::ArgGroup::new("kind").required(true).args(["request", "response"]),
    after_help = "A request frame names its API and version itself. An ApiVersions answer with error 35 is read in its v0 \
form, whatever version was asked (KIP-511).

JSON output: {message, version, header, value, nodes: [{path, type, offset, length}], anomalies: [{rule, what, path, \
offset, length}], error: null or {path, offset, kind, text}}. Offsets count from the first byte given. Paths of body \
fields are as in the definition (Results[0].Configs[2].Value), those of header fields start with \"header.\" \
(header.CorrelationId); the size of the frame is \"size\", the body itself \"\". A tag section is \"_tags\" and the count \
of an array \"length\", after the path of what they belong to.

Exit codes: 0 the bytes decode, anomalies or not; 1 they do not; 2 wrong usage, unknown API or version.

Examples:
  kafka-conform decode --request 000000100012000300000001ffff000278023100
  kafka-conform decode --response --api DescribeConfigs --version 4 @frame.bin
  kafka-conform decode --response --api 33 --version 2 --body --format json 0000000001 00
  kafka-conform decode --request - < frame.hex"
)]
pub struct Args {
    /// The bytes are a request
    #[arg(long)]
    request: bool,
    /// The bytes are a response
    #[arg(long)]
    response: bool,
    /// Name or key of the API
    #[arg(long)]
    api: Option<String>,
    /// Version of the API
    #[arg(long, value_parser = version, allow_hyphen_values = true)]
    version: Option<ApiVersion>,
    /// Only a body: no size and no header before it
    #[arg(long)]
    body: bool,
    /// No size before the header
    #[arg(long)]
    no_size: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Hex digits, white space anywhere; `-` reads them from standard input; `@FILE` reads a file of hex or raw bytes
    #[arg(required = true, value_name = "HEX")]
    hex: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs: one line
    Json,
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    let protocol = definitions::bundled();
    let parts = Parts { size: !args.body && !args.no_size, header: !args.body };
    let wanted = target(&args, protocol)?;
    let bytes = input(&args.hex.join(" "))?;
    let output = match wanted.or_frame(&bytes, parts, protocol) {
        Named::Message(spec, version) => {
            check_version(&spec, version)?;
            let message = Message::read(protocol, &spec, version, parts, &bytes)?;
            Output { spec: Some((spec, version)), message, unknown: None }
        }
        Named::Unknown(unknown) => {
            let message = Message::read_request_start(protocol, parts.size, &bytes)?;
            Output { spec: None, message, unknown }
        }
    };
    match args.format {
        Format::Text => output::print_with(|out| output.text(protocol, out))?,
        Format::Json => output::print_with(|out| {
            serde_json::to_writer(&mut *out, &output.json())?;
            writeln!(out)
        })?,
    }
    match (output.message.errors().is_empty(), output.unknown) {
        (false, _) => Ok(Exit::Failed),
        (true, Some(unknown)) if args.format == Format::Text => Err(unknown.failure),
        (true, Some(_)) => Ok(Exit::Usage),
        (true, None) => Ok(Exit::Expected),
    }
}

/// What the command line says about the message.
struct Target {
    kind: MessageKind,
    spec: Option<Arc<MessageSpec>>,
    version: Option<ApiVersion>,
}

/// What the message is.
enum Named {
    Message(Arc<MessageSpec>, ApiVersion),
    /// A request frame that names what there is no definition of, or too short to name anything.
    Unknown(Option<Unknown>),
}

/// What a request frame names that there is no definition of.
struct Unknown {
    /// The header field that names it.
    field: &'static str,
    /// How it is called in JSON output.
    kind: &'static str,
    failure: Failure,
}

fn target(args: &Args, protocol: &Protocol) -> Result<Target, Failure> {
    let kind = if args.request { MessageKind::Request } else { MessageKind::Response };
    let spec = match &args.api {
        Some(api) => messages(protocol, api, Some(kind))?.first().map(|&spec| spec.clone()),
        None => None,
    };
    if spec.as_ref().is_some_and(|spec| spec.kind == MessageKind::Header) && !args.body {
        return Err(Failure::usage("a header has no frame of its own; add --body to decode one alone"));
    }
    let what = if args.body { "a body" } else { "a response" };
    if (args.response || args.body) && (spec.is_none() || args.version.is_none()) {
        let missing = match (&spec, args.version) {
            (None, None) => "--api and --version",
            (None, _) => "--api",
            _ => "--version",
        };
        return Err(Failure::usage(format!("{what} does not say what it is: add {missing}")));
    }
    Ok(Target { kind, spec, version: args.version })
}

impl Target {
    /// Takes what the command line does not say from a request frame.
    fn or_frame(self, bytes: &[u8], parts: Parts, protocol: &Protocol) -> Named {
        let start = if parts.size { 4 } else { 0 };
        let number = |at: usize| bytes.get(at..at + 2).and_then(|two| two.try_into().ok()).map(i16::from_be_bytes);
        let key = number(start).map(ApiKey);
        let version = self.version.or_else(|| number(start + 2).map(ApiVersion));
        let spec = self.spec.or_else(|| protocol.api_by_key(key?, self.kind).cloned());
        match (spec, version) {
            (Some(spec), Some(version)) if self.version.is_some() || spec.valid_versions.contains(version) => {
                Named::Message(spec, version)
            }
            (Some(spec), Some(version)) => Named::Unknown(check_version(&spec, version).err().map(|failure| Unknown {
                field: "RequestApiVersion",
                kind: "unknown-version",
                failure,
            })),
            (None, Some(_)) => Named::Unknown(key.map(|key| Unknown {
                field: "RequestApiKey",
                kind: "unknown-api",
                failure: unknown_api(protocol, &key.to_string()),
            })),
            (_, None) => Named::Unknown(None),
        }
    }
}

struct Output<'b> {
    spec: Option<(Arc<MessageSpec>, ApiVersion)>,
    message: Message<'b>,
    unknown: Option<Unknown>,
}

impl Output<'_> {
    fn text(&self, protocol: &Protocol, out: &mut dyn io::Write) -> io::Result<()> {
        let message = &self.message;
        let bold = anstyle::Style::new().bold();
        writeln!(out, "{bold}{}{bold:#}", self.headline())?;
        if let (Some((spec, asked)), Some(body)) = (&self.spec, message.body())
            && body.layout().version() != *asked
        {
            writeln!(out, "Error 35: the answer is in v0 form, not {} v{asked} (KIP-511).", spec.name)?;
        }
        writeln!(out)?;
        dump::byte_rows(message, out)?;
        writeln!(out, "{}", dump::legend(message))?;
        dump::object_tree(message, Some(protocol), out)?;
        let remarks = message.remarks();
        if !remarks.is_empty() {
            writeln!(out, "\nanomalies")?;
        }
        for remark in &remarks {
            let anomaly = &remark.anomaly;
            let at = if remark.path.is_empty() { String::new() } else { format!("{} ", remark.path) };
            let rule = anomaly.kind.rule();
            writeln!(out, "  {at}at {:#x}: {} (rule {rule})", anomaly.start, anomaly.kind)?;
        }
        let more = message.anomaly_count() - remarks.len();
        if more > 0 {
            writeln!(out, "  and {more} more")?;
        }
        for (index, error) in message.errors().iter().enumerate() {
            let gap = if index == 0 { "\n" } else { "" };
            writeln!(out, "{gap}invalid: {error}")?;
        }
        if let Some(DecodeErrorKind::FrameLength { .. }) = message.errors().first().map(|error| error.kind) {
            writeln!(out, "If the bytes have no size in front, add --no-size.")?;
        }
        Ok(())
    }

    fn headline(&self) -> String {
        let verdict = match (self.message.errors().is_empty(), self.message.is_valid(), &self.unknown) {
            (false, ..) => "invalid".to_owned(),
            (_, _, Some(_)) => "not known here".to_owned(),
            (_, false, _) => "acceptable, not valid".to_owned(),
            (_, true, _) => "valid".to_owned(),
        };
        let mut what = match (self.message.body(), &self.spec) {
            (Some(body), _) => body.layout().to_string(),
            (None, Some((spec, version))) => format!("{} v{version}", spec.name),
            (None, None) => "request".to_owned(),
        };
        if let Some(header) = self.message.header() {
            let _ = write!(what, ", header v{}", header.layout().version());
        }
        let length = self.message.bytes().len();
        format!("{what}, {length} byte{}: {verdict}", if length == 1 { "" } else { "s" })
    }

    fn json(&self) -> Document<'_> {
        let message = &self.message;
        let errors = message.errors();
        let anomalies: Vec<Json> = message
            .remarks()
            .iter()
            .map(|remark| {
                let anomaly = &remark.anomaly;
                json!({
                    "rule": anomaly.kind.rule(), "what": anomaly.kind.to_string(), "path": remark.path,
                    "offset": anomaly.start, "length": anomaly.end - anomaly.start,
                })
            })
            .collect();
        let error = match (errors.first(), &self.unknown) {
            (Some(error), _) => json!({
                "path": error.path, "offset": error.offset, "kind": kind_name(error.kind), "text": error.to_string(),
            }),
            (None, Some(Unknown { field, kind, failure })) => {
                let offset = message.header().and_then(|header| header.get(field)).map_or(0, |node| node.node().start);
                let text = failure.error.to_string();
                json!({ "path": format!("header.{field}"), "offset": offset, "kind": kind, "text": text })
            }
            (None, None) => Json::Null,
        };
        let (name, version) = match (message.body(), &self.spec) {
            (Some(body), _) => (json!(&*body.layout().spec().name), json!(body.layout().version().0)),
            (None, Some((spec, version))) => (json!(&*spec.name), json!(version.0)),
            (None, None) => (Json::Null, Json::Null),
        };
        let whole = |view: Option<View<'_>>| view.filter(|view| !view.root().node().is_open()).map(|view| view.value());
        Document {
            message: name,
            version,
            header: whole(message.header()),
            value: if errors.is_empty() { whole(message.body()) } else { None },
            nodes: Nodes(message),
            anomalies,
            error,
        }
    }
}

/// The JSON output. What is as long as the message is written piece by piece.
#[derive(Serialize)]
struct Document<'m> {
    message: Json,
    version: Json,
    header: Option<Value>,
    value: Option<Value>,
    nodes: Nodes<'m>,
    anomalies: Vec<Json>,
    error: Json,
}

/// What was read, a JSON object for each field, length and tag.
struct Nodes<'m>(&'m Message<'m>);

impl Serialize for Nodes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut nodes = serializer.serialize_seq(None)?;
        let mut written = Ok(());
        self.0.each_line(None, &mut |line| {
            let Some(path) = line.path.as_ref().filter(|_| line.error.is_none() || !line.span.is_empty()) else {
                return;
            };
            let type_name = if path == "header" { "struct" } else { &line.type_name };
            let node = json!({ "path": path, "type": type_name, "offset": line.span.start, "length": line.span.len() });
            if written.is_ok() {
                written = nodes.serialize_element(&node);
            }
        });
        written?;
        nodes.end()
    }
}

/// A kind of error as programs read it.
fn kind_name(kind: DecodeErrorKind) -> &'static str {
    match kind {
        DecodeErrorKind::Truncated { .. } => "truncated",
        DecodeErrorKind::VarintTruncated => "varint-truncated",
        DecodeErrorKind::VarintTooLong => "varint-too-long",
        DecodeErrorKind::LengthExceedsInput { .. } => "length-exceeds-input",
        DecodeErrorKind::CountExceedsInput { .. } => "count-exceeds-input",
        DecodeErrorKind::NegativeLength(_) => "negative-length",
        DecodeErrorKind::NullNotAllowed => "null-not-allowed",
        DecodeErrorKind::TagSectionMissing => "tag-section-missing",
        DecodeErrorKind::TagExceedsInput { .. } => "tag-exceeds-input",
        DecodeErrorKind::FrameSize { .. } => "frame-size",
        DecodeErrorKind::FrameLength { .. } => "frame-length",
        DecodeErrorKind::InputTooLarge => "input-too-large",
    }
}

/// The bytes that the HEX argument stands for.
fn input(text: &str) -> Result<Vec<u8>, Failure> {
    const HELP: &str = "give hex digits, - for standard input, or @FILE for a file of hex or raw bytes";
    if let Some(path) = text.strip_prefix('@') {
        let bytes = read_file(path)?;
        return match std::str::from_utf8(&bytes) {
            Ok(text) if text.chars().all(|digit| digit.is_ascii_hexdigit() || digit.is_whitespace()) => {
                parse_hex(text).map_err(|error| Failure::usage(format!("{path} is hex text, but has {error}")))
            }
            _ => Ok(bytes),
        };
    }
    let (text, place) = if text == "-" { (stdin()?, "standard input is not hex: ") } else { (text.to_owned(), "") };
    // White space counts in the place of an error, so only a leading 0x is taken off.
    let digits = text.trim_start().strip_prefix("0x").unwrap_or(&text);
    parse_hex(digits).map_err(|error| Failure::usage(format!("{place}{error}; {HELP}")))
}

/// A file named on the command line.
pub(super) fn read_file(path: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))
}

/// All of standard input, as text.
pub(super) fn stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage("standard input is not text; put raw bytes in a file and name it as @FILE"))
}

/// Hex as the commands print it.
pub(super) fn hex_line(bytes: &[u8]) -> String {
    format!("{}\n", hex(bytes))
}
