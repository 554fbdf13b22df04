//! Lines and bytes as text. Styles are written as escapes; [`crate::output`] takes them out where nobody would see colours.

use super::{Kind, Line, Message};
use anstyle::{AnsiColor, Style};
use codec::Protocol;
use std::fmt::Write as _;
use std::io;
use std::ops::Range;

/// Bytes a row.
const ROW: usize = 16;
/// A value longer than this does not widen the column for all other lines.
const VALUE_COLUMN: usize = 44;

const BAD: Style = AnsiColor::Red.on_default().bold();
const ODD: Style = AnsiColor::BrightYellow.on_default().bold();
const FAINT: Style = Style::new().dimmed();

impl Kind {
    const ALL: [Kind; 6] = [Kind::Frame, Kind::Header, Kind::Body, Kind::Tags, Kind::Records, Kind::Unread];

    /// Its colour.
    pub(super) fn style(self) -> Style {
        match self {
            Kind::Frame => AnsiColor::Magenta.on_default(),
            Kind::Header => AnsiColor::Cyan.on_default(),
            Kind::Body => AnsiColor::Green.on_default(),
            Kind::Tags => AnsiColor::Yellow.on_default(),
            Kind::Records => AnsiColor::BrightBlue.on_default(),
            Kind::Unread => FAINT,
        }
    }

    /// Its letter beside the bytes, for where there are no colours.
    fn letter(self) -> char {
        match self {
            Kind::Frame => 'f',
            Kind::Header => 'h',
            Kind::Body => 'b',
            Kind::Tags => 't',
            Kind::Records => 'r',
            Kind::Unread => 'x',
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Frame => "frame",
            Kind::Header => "header",
            Kind::Body => "body",
            Kind::Tags => "tagged fields",
            Kind::Records => "records",
            Kind::Unread => "not read",
        }
    }
}

/// Which colour and letter stands for what, as far as the message has it: one line.
pub fn legend(message: &Message<'_>) -> String {
    let kinds = message.kinds();
    let mut text = String::new();
    for kind in Kind::ALL.into_iter().filter(|kind| kinds.contains(kind)) {
        let style = kind.style();
        let _ = write!(
            text,
            "{}{style}{} {}{style:#}",
            if text.is_empty() { "" } else { "   " },
            kind.letter(),
            kind.name()
        );
    }
    text.push('\n');
    text
}

/// Bytes of which nothing is known, 16 a row: offset, hex, text; no styles.
pub fn hex_rows(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (row, bytes) in bytes.chunks(ROW).enumerate() {
        let hex: String = bytes.iter().map(|byte| format!(" {byte:02x}")).collect();
        let shown: String = bytes.iter().map(|&byte| printable(byte)).collect();
        let _ = writeln!(text, "{:04x} {hex:1$}  |{shown}|", row * ROW, 3 * ROW);
    }
    text
}

/// Something to point at in the bytes.
struct Mark {
    span: Range<usize>,
    text: String,
    style: Style,
}

fn marks(message: &Message<'_>) -> Vec<Mark> {
    let remarks = message.remarks().into_iter().map(|remark| Mark {
        span: remark.anomaly.start as usize..remark.anomaly.end as usize,
        text: remark.anomaly.kind.to_string(),
        style: ODD,
    });
    let errors = message.errors().into_iter().map(|error| Mark {
        span: error.offset..error.offset + if error.path == "size" { 4 } else { 1 },
        text: format!("{}{}{}", error.path, if error.path.is_empty() { "" } else { ": " }, error.kind),
        style: BAD,
    });
    remarks.chain(errors).collect()
}

/// The bytes, 16 a row: offset of the row, hex by kind, a letter for each kind, text. What is wrong or odd is pointed at
/// from below.
pub fn byte_rows(message: &Message<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let (bytes, kinds) = (message.bytes(), message.kinds());
    let marks = marks(message);
    let columns: String = (0..ROW).map(|column| format!("  {column:X}")).collect();
    writeln!(out, "     {columns}")?;
    // An error may stand after the last byte, on a row that has none.
    let past_end = marks.iter().any(|mark| mark.span.start == bytes.len()) && bytes.len().is_multiple_of(ROW);
    for start in (0..bytes.len() + usize::from(past_end)).step_by(ROW) {
        let end = bytes.len().min(start + ROW);
        let row = bytes.get(start..end).unwrap_or_default();
        let row_kinds = kinds.get(start..end).unwrap_or_default();
        let mut text = format!("{FAINT}{start:04x}{FAINT:#} ");
        // A style for each run of bytes of a kind: fewer escapes, and hex that can be copied.
        let mut column = 0;
        for run in row_kinds.chunk_by(|one, other| one == other) {
            let style = run.first().map_or(FAINT, |kind| kind.style());
            let _ = write!(text, "{style}");
            for byte in row.get(column..column + run.len()).unwrap_or_default() {
                let _ = write!(text, " {byte:02x}");
            }
            let _ = write!(text, "{style:#}");
            column += run.len();
        }
        if !row.is_empty() {
            let letters: String = row_kinds.iter().map(|kind| kind.letter()).collect();
            let shown: String = row.iter().map(|&byte| printable(byte)).collect();
            let _ = write!(text, "{:1$}", "", 3 * (ROW - row.len()));
            let _ = write!(text, "  {FAINT}{letters:ROW$}  |{shown}|{FAINT:#}");
        }
        text.push('\n');
        marks.iter().for_each(|mark| pointer(&mut text, mark, start, bytes.len()));
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Points from below at what of a mark is in a row.
fn pointer(text: &mut String, mark: &Mark, row: usize, length: usize) {
    // After the last byte there is a place to point at.
    let from = mark.span.start.clamp(row, row + ROW);
    let to = mark.span.end.min(length.max(mark.span.start + 1)).clamp(row, row + ROW);
    if from >= to {
        return;
    }
    let style = mark.style;
    let carets = vec!["^^"; to - from].join(" ");
    let _ = write!(text, "{:1$}{style}{carets}", "", 6 + 3 * (from - row));
    if mark.span.end <= row + ROW || to == length {
        let _ = write!(text, " {}", mark.text);
    }
    let _ = writeln!(text, "{style:#}");
}

fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { byte.into() } else { '.' }
}

/// The object tree: name, type, value, `[0xOFFSET, LENB]` and note of each line, in columns.
pub fn object_tree(message: &Message<'_>, protocol: Option<&Protocol>, out: &mut dyn io::Write) -> io::Result<()> {
    let (mut name_width, mut type_width, mut value_width, mut span_width) = (0, 0, 0, 0);
    let mut branches = Branches::default();
    message.each_line(protocol, &mut |line| {
        branches.push(line.depth);
        name_width = name_width.max(4 * line.depth + line.name.chars().count());
        type_width = type_width.max(line.type_name.chars().count());
        value_width = value_width.max(value(&line).chars().count());
        span_width = span_width.max(span(&line).chars().count());
    });
    let value_width = value_width.min(VALUE_COLUMN);
    let mut written = Ok(());
    let (mut number, mut more) = (0, Vec::new());
    message.each_line(protocol, &mut |line| {
        let name = branches.before(number, line.depth, &mut more) + &line.name;
        number += 1;
        let style = if line.error.is_some() { BAD } else { line.kind.style() };
        let mut row = format!("{style}{name:name_width$}{style:#}");
        let _ = write!(row, "  {:type_width$}  {:value_width$}", line.type_name, value(&line));
        let span = span(&line);
        let _ = write!(row, "  {style}{span}{style:#}");
        let mut gap = span_width + 3 - span.len();
        if !line.note.is_empty() {
            let _ = write!(row, "{:gap$}{}", "", line.note);
            gap = 2;
        }
        let pointed = line.error.iter().map(|error| (BAD, error));
        for (style, what) in pointed.chain(line.remarks.iter().map(|remark| (ODD, remark))) {
            let _ = write!(row, "{:gap$}{style}<-- {what}{style:#}", "");
            gap = 2;
        }
        if written.is_ok() {
            written = writeln!(out, "{row}");
        }
    });
    written
}

fn value(line: &Line) -> String {
    match (&line.error, line.value.is_empty()) {
        (Some(_), true) => "not read".to_owned(),
        (_, true) => String::new(),
        (_, false) => format!("= {}", line.value),
    }
}

fn span(line: &Line) -> String {
    if line.error.is_some() && line.span.is_empty() {
        return format!("[{:#06x}]", line.span.start);
    }
    format!("[{:#06x}, {}B{}]", line.span.start, line.span.len(), if line.open { "+" } else { "" })
}

/// The branches before the names of a tree whose lines come one by one.
#[derive(Default)]
struct Branches {
    /// Of each line, whether another one follows below the same parent.
    more: Vec<bool>,
    /// The last line of each depth that can still be followed, from the outermost on.
    open: Vec<Option<usize>>,
}

impl Branches {
    /// Takes the depth of the next line, on the first walk.
    fn push(&mut self, depth: usize) {
        self.open.resize(depth + 1, None);
        let number = self.more.len();
        if let Some(last) = self.open.last_mut()
            && let Some(more) = last.replace(number).and_then(|before| self.more.get_mut(before))
        {
            *more = true;
        }
        self.more.push(false);
    }

    /// What stands before the name of a line, on the second walk; `more` tells of each depth whether a line is still to
    /// come there, and starts empty.
    fn before(&self, number: usize, depth: usize, more: &mut Vec<bool>) -> String {
        more.resize(depth + 1, false);
        if let Some(here) = more.last_mut() {
            *here = self.more.get(number).copied().unwrap_or_default();
        }
        let mut name = String::new();
        if depth > 0 {
            for &more in more.get(1..depth).unwrap_or_default() {
                name.push_str(if more { "|   " } else { "    " });
            }
            name.push_str("+-- ");
        }
        name
    }
}
