//! `explain`: one case, whole.

use super::matrix::bundled_cases;
use super::{Exit, Failure, Outcome};
use crate::definitions;
use crate::dump::{self, Message, Parts};
use crate::output;
use crate::vector::{Part, PartLayout, Vector};

/// Show a case whole: what it requires, why, its bytes field by field, its value, who vouches for it.
#[derive(clap::Args)]
#[command(after_help = "Example:
  kafka-conform explain codec/alter-configs-request/v2/smallest")]
pub struct Args {
    /// The case's id; `kafka-conform list` shows them
    case: String,
}

/// Runs the command.
pub fn run(args: Args) -> Outcome {
    let cases = bundled_cases()?;
    let list = cases.list();
    let Some(case) = list.iter().find(|case| case.id == args.case) else {
        return Err(Failure::unknown("case", &args.case, list.iter().map(|case| case.id.as_str())));
    };
    let level = serde_json::to_value(case.level).unwrap_or_default();
    let mut text = format!("{}\n\n{}\n\n", case.id, case.info.requires);
    text += &format!("level     {}\ncites     {}\n", level.as_str().unwrap_or_default(), case.info.cite.join(", "));
    if let Some(vector) = cases.vector(&case.id) {
        text += &format!("rule      {}: {}\n", vector.rule.id, vector.rule.sentence);
        text += &format!("authority {}\n", vector.rule.authority);
        if !vector.source.is_empty() {
            text += &format!("bytes by  {}\n", vector.source.join(", "));
        }
        if let Some(value) = &vector.value {
            text += &format!("\nvalue\n{}\n", serde_json::to_string_pretty(value).unwrap_or_default());
        }
        if let Some(bytes) = &vector.bytes {
            text += &format!("\nbytes ({})\n{}", bytes.len(), dissect(vector, bytes)?);
        }
    } else if let Some(json) = cases.raw(case) {
        text += &format!("\n{}\n", serde_json::to_string_pretty(&json).unwrap_or_default());
    }
    output::print(&text)?;
    Ok(Exit::Expected)
}

/// The bytes by kind, the object tree, and what is wrong or odd.
fn dissect(vector: &Vector, bytes: &[u8]) -> Result<String, Failure> {
    let protocol = definitions::bundled();
    let whole = vector.part == Part::Frame;
    let parts = Parts { size: whole, header: whole };
    let (spec, version) = match (&vector.layout, vector.part) {
        (PartLayout::Single(header), Part::Header) => (header.spec().clone(), header.version()),
        _ => (vector.spec.clone(), vector.version),
    };
    let message = Message::read(protocol, &spec, version, parts, bytes)?;
    let mut dump = Vec::new();
    dump::byte_rows(&message, &mut dump)?;
    dump.push(b'\n');
    dump::object_tree(&message, Some(protocol), &mut dump)?;
    let mut text = String::from_utf8_lossy(&dump).into_owned();
    for remark in message.remarks() {
        text += &format!("\n{} at {:#x}: {}", remark.path, remark.anomaly.start, remark.anomaly.kind);
    }
    for error in message.errors() {
        text += &format!("\n{error}");
    }
    Ok(text + "\n")
}
