//! `kafka-conform layout`: what a message looks like on the wire.

use super::{Exit, Failure, Outcome};
use crate::definitions;
use crate::dump::{self, Message, Parts};
use crate::output;
use codec::{ApiVersion, FrameLayout, MessageKind, MessageSpec, Protocol, Value, header_version};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

/// Show what a message looks like on the wire: facts, bytes, object tree and definition, or a diagram
///
/// The bytes are those of the smallest legal instance: numbers are zero, text and bytes are empty, each array has one
/// element, records are one empty batch.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kafka-conform layout AlterConfigs 2
  kafka-conform layout DescribeConfigs 4 --response --diagram
  kafka-conform layout 44 1 --request
  kafka-conform layout RequestHeader 2")]
pub struct Args {
    /// Name of the API, its key, or the name of a message: DescribeConfigs, 32, DescribeConfigsRequest, RequestHeader
    api: String,
    /// Version
    #[arg(value_parser = version, allow_hyphen_values = true)]
    version: ApiVersion,
    /// Only the request
    #[arg(long)]
    request: bool,
    /// Only the response
    #[arg(long, conflicts_with = "request")]
    response: bool,
    /// A wire diagram, the schema and an example in place of bytes, tree and definition
    #[arg(long)]
    diagram: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    let protocol = definitions::bundled();
    let only = match (args.request, args.response) {
        (true, _) => Some(MessageKind::Request),
        (_, true) => Some(MessageKind::Response),
        _ => None,
    };
    let specs = messages(protocol, &args.api, only)?;
    for spec in &specs {
        check_version(spec, args.version)?;
    }
    let page = Page { protocol, version: args.version };
    let text = if args.diagram { page.diagrams(&specs)? } else { page.page(&specs)? };
    output::print(&text)?;
    Ok(Exit::Expected)
}

/// Reads a version, `4` or `v4`.
pub(super) fn version(text: &str) -> Result<ApiVersion, String> {
    let number = text.strip_prefix('v').unwrap_or(text).parse();
    number.map(ApiVersion).map_err(|_| format!("{text:?} is not a version such as 4"))
}

/// The messages that go by a name or key: request and response of an API, or one message. `only` leaves one kind.
pub(super) fn messages<'p>(
    protocol: &'p Protocol,
    name: &str,
    only: Option<MessageKind>,
) -> Result<Vec<&'p Arc<MessageSpec>>, Failure> {
    if let Some(spec) = protocol.message(name) {
        return match only {
            Some(kind) if spec.kind != kind && spec.kind != MessageKind::Header => {
                let (what, other) =
                    if kind == MessageKind::Request { ("request", "response") } else { ("response", "request") };
                Err(Failure::usage(format!(
                    "{name} is a {other}, but --{what} is given; {} is the API",
                    spec.api_name()
                )))
            }
            _ => Ok(vec![spec]),
        };
    }
    let kinds = [MessageKind::Request, MessageKind::Response];
    let found: Vec<_> = kinds
        .into_iter()
        .filter(|kind| only.is_none_or(|only| only == *kind))
        .filter_map(|kind| protocol.api(name, kind))
        .collect();
    if found.is_empty() { Err(unknown_api(protocol, name)) } else { Ok(found) }
}

/// The error for an API that there is no definition of, with the nearest names, or the known keys for a key.
pub(super) fn unknown_api(protocol: &Protocol, name: &str) -> Failure {
    if name.parse::<i64>().is_ok() {
        let mut known: Vec<(i16, &str)> = protocol
            .messages()
            .filter(|spec| spec.kind == MessageKind::Request)
            .filter_map(|spec| Some((spec.api_key?.0, spec.api_name())))
            .collect();
        known.sort_unstable();
        let known: Vec<String> = known.into_iter().map(|(key, name)| format!("{key} {name}")).collect();
        return Failure::usage(format!("no API has key {name} here; known: {}", known.join(", ")));
    }
    let whole = name.ends_with("Request") || name.ends_with("Response");
    let names = protocol.messages().map(|spec| if whole { &*spec.name } else { spec.api_name() });
    Failure::unknown("API", name, names)
}

/// Refuses a version that a message does not have.
pub(super) fn check_version(spec: &MessageSpec, version: ApiVersion) -> Result<(), Failure> {
    if spec.valid_versions.contains(version) {
        return Ok(());
    }
    Err(Failure::usage(match spec.valid_versions.is_none() {
        true => format!("{} has no versions any more: the API was removed", spec.name),
        false => format!("{} has no version {version}; its versions are {}", spec.name, spec.valid_versions),
    }))
}

struct Page<'p> {
    protocol: &'p Protocol,
    version: ApiVersion,
}

impl Page<'_> {
    fn page(&self, specs: &[&Arc<MessageSpec>]) -> Result<String, Failure> {
        let mut text = self.head(specs)?;
        let _ = writeln!(
            text,
            "\nThe bytes are the smallest legal instance: numbers are zero, text and bytes are empty, each array has one\n\
             element, records are one empty batch of 61 bytes. Sizes include the four bytes of the frame's size."
        );
        for spec in specs {
            let bytes = self.smallest(spec)?;
            let message = Message::read(self.protocol, spec, self.version, parts(spec), &bytes)?;
            section(&mut text, &self.title(spec, bytes.len()));
            let mut dump = Vec::new();
            write!(dump, "\n{}", heading("byte layout"))?;
            dump::byte_rows(&message, &mut dump)?;
            write!(dump, "{}\n{}", dump::legend(&message), heading("object tree"))?;
            dump::object_tree(&message, Some(self.protocol), &mut dump)?;
            text += &String::from_utf8_lossy(&dump);
            let _ = write!(text, "\n{}{}", heading("definition"), definition(spec));
        }
        Ok(text)
    }

    fn diagrams(&self, specs: &[&Arc<MessageSpec>]) -> Result<String, Failure> {
        let mut text = self.head(specs)?;
        for spec in specs {
            let layout = self.protocol.layout(&spec.name, self.version)?;
            let frame = self.frame(spec)?;
            section(&mut text, &format!("{layout}"));
            let _ = write!(text, "\n{}{}", heading("wire diagram"), dump::wire_diagram(&layout, frame.as_ref()));
            let _ = writeln!(text, "4B is a size, 1B+ the least that one takes; ? marks what may be null.");
            let _ = writeln!(text, "\n{}{}", heading("schema"), dump::schema_text(&layout));
            let example = dump::example_value(&layout);
            let _ = writeln!(text, "\n{}{}", heading("example"), dump::json_text(&example));
        }
        Ok(text)
    }

    /// Name, one sentence, facts.
    fn head(&self, specs: &[&Arc<MessageSpec>]) -> Result<String, Failure> {
        let Some(first) = specs.first() else { unreachable!("names stand for a message at least") };
        let name = if specs.len() > 1 { first.api_name() } else { &first.name };
        let bold = anstyle::Style::new().bold();
        let mut text = format!("{bold}{name}{bold:#}\n\n{}\n\n", first.about.as_deref().unwrap_or_default());
        let mut fact = |name: &str, value: String| {
            let _ = writeln!(text, "  {name:18}  {value}");
        };
        if let Some(key) = first.api_key {
            fact("API key", key.to_string());
        }
        fact("encoded at", format!("v{}", self.version));
        fact("flexible versions", first.flexible_versions.to_string());
        // Both directions belong to the API, whichever of them is shown.
        let kinds = [MessageKind::Request, MessageKind::Response];
        let both: Vec<_> = match first.api_key {
            Some(key) => kinds.into_iter().filter_map(|kind| self.protocol.api_by_key(key, kind)).collect(),
            None => vec![*first],
        };
        let what = |spec: &MessageSpec| match spec.kind {
            MessageKind::Request => "request ",
            MessageKind::Response => "response ",
            _ => "",
        };
        let framed = both.iter().filter(|spec| spec.api_key.is_some());
        let headers: Vec<String> =
            framed.map(|spec| format!("{}v{}", what(spec), header_version(spec, self.version))).collect();
        if !headers.is_empty() {
            fact("headers", headers.join(", "));
        }
        for spec in &both {
            let mut versions = spec.valid_versions.to_string();
            if !spec.deprecated_versions.is_none() {
                let _ = write!(versions, ", deprecated {}", spec.deprecated_versions);
            }
            if spec.latest_version_unstable {
                versions.push_str(", the highest still unstable");
            }
            fact(&format!("{}versions", what(spec)), versions);
        }
        for spec in both.iter().filter(|spec| spec.valid_versions.contains(self.version)) {
            fact(&format!("{}size", what(spec)), format!("{} bytes", self.smallest(spec)?.len()));
        }
        if !first.listeners.is_empty() {
            fact("served by", first.listeners.join(", "));
        }
        Ok(text)
    }

    fn title(&self, spec: &MessageSpec, length: usize) -> String {
        let version = self.version;
        match spec.kind {
            MessageKind::Request | MessageKind::Response => {
                let what = if spec.kind == MessageKind::Request { "request" } else { "response" };
                let header = header_version(spec, version);
                format!("{} v{version}, {what} header v{header}, {length} bytes on the wire", spec.name)
            }
            _ => format!("{} v{version}, {length} bytes", spec.name),
        }
    }

    fn frame(&self, spec: &MessageSpec) -> Result<Option<FrameLayout>, Failure> {
        let framed = parts(spec).header;
        Ok(if framed { Some(self.protocol.frame_layout(spec, self.version)?) } else { None })
    }

    /// The smallest legal instance: the whole frame, or the message alone where it has none.
    fn smallest(&self, spec: &MessageSpec) -> Result<Vec<u8>, Failure> {
        let layout = self.protocol.layout(&spec.name, self.version)?;
        let body = layout.smallest_instance();
        Ok(match self.frame(spec)? {
            Some(frame) => {
                let mut header = frame.header.smallest_instance();
                name_api(&mut header, spec, self.version);
                codec::encode_frame(&frame, &header, &body)?
            }
            None => codec::encode(&layout, &body)?,
        })
    }
}

/// Size and header stand before requests and responses; other messages stand alone.
fn parts(spec: &MessageSpec) -> Parts {
    let framed = matches!(spec.kind, MessageKind::Request | MessageKind::Response);
    Parts { size: framed, header: framed }
}

/// Puts API key and version into a request header.
fn name_api(header: &mut Value, spec: &MessageSpec, version: ApiVersion) {
    let Value::Struct(fields) = header else { return };
    let mut set = |name: &str, value: i16| {
        if let Some(field) = fields.get_mut(name) {
            *field = Value::Integer(value.into());
        }
    };
    set("RequestApiKey", spec.api_key.map_or(0, |key| key.0));
    set("RequestApiVersion", version.0);
}

fn section(text: &mut String, title: &str) {
    let bold = anstyle::Style::new().bold();
    let _ = writeln!(text, "\n{bold}{title}\n{}{bold:#}", "=".repeat(title.chars().count()));
}

fn heading(title: &str) -> String {
    let underline = anstyle::Style::new().underline();
    format!("{underline}{title}{underline:#}\n")
}

/// The definition as it is compiled in; what changed in each version stands as comments, where Kafka's own files have
/// them.
fn definition(spec: &MessageSpec) -> String {
    let file = format!("{}.json", spec.name);
    let text = definitions::bundled_texts().find(|(name, _)| *name == file).map_or("", |(_, text)| text);
    let mut lines = Vec::new();
    let mut in_history = false;
    for line in text.lines() {
        let bare = line.trim();
        if bare.starts_with("\"history\": {") {
            let told = spec.history.iter().map(|(version, what)| format!("  // Version {version}: {what}"));
            lines.extend(told);
            in_history = !bare.contains('}');
        } else if in_history {
            in_history = !bare.starts_with('}');
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n") + "\n"
}
