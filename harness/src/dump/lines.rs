//! The lines of a dump: what each byte of a message is.

use super::value_text::octets_text;
use super::{Message, Part, Remark};
use codec::wire::Reader;
use codec::{
    Anomaly, AnomalyKind, DecodeError, DecodeErrorKind, Element, NodeKind, NodeRef, Protocol, StructLayout, View,
    WireType,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// Name of the line of bytes after a message.
const LEFT_OVER: &str = "left over";

/// What a byte belongs to; each kind has its own colour and letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The frame's size.
    Frame,
    /// The request or response header.
    Header,
    /// The body.
    Body,
    /// A tag section: count, tags, sizes and payloads of unknown tags.
    Tags,
    /// Record batches.
    Records,
    /// Bytes that were not read.
    Unread,
}

/// One line of the object tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How deep it is indented; 0 is the message.
    pub depth: usize,
    /// Its name, `Resources` or `AlterConfigsResource[0]`.
    pub name: String,
    /// Its path, `Resources[0].ResourceName`; of header fields after `header.`. `None` for a heading.
    pub path: Option<String>,
    /// Its type as the definition language writes it.
    pub type_name: String,
    /// Its value, without `= `; empty for a heading.
    pub value: String,
    /// Its bytes.
    pub span: Range<usize>,
    /// Whether reading stopped inside it.
    pub open: bool,
    /// What it means.
    pub note: String,
    /// What its bytes belong to.
    pub kind: Kind,
    /// What is wrong with it.
    pub error: Option<String>,
    /// The liberties its bytes took.
    pub remarks: Vec<String>,
}

/// A name after an outer path.
pub(super) fn join(path: &str, name: &str) -> String {
    match (path.is_empty(), name.is_empty() || name.starts_with('[')) {
        (true, _) => name.to_owned(),
        (false, true) => format!("{path}{name}"),
        (false, false) => format!("{path}.{name}"),
    }
}

/// A liberty, and the number of the line that it is told on.
#[derive(Debug)]
pub(super) struct Remarked {
    pub(super) remark: Remark,
    line: Option<usize>,
}

/// See [`Message::each_line`]. A line is handed out as soon as the next one begins, since there may be more of them than
/// there are bytes.
pub(super) fn each_line(message: &Message<'_>, protocol: Option<&Protocol>, visit: &mut dyn FnMut(Line)) {
    let mut told: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for remarked in message.remarked() {
        if let Some(line) = remarked.line {
            told.entry(line).or_default().push(remarked.remark.anomaly.kind.to_string());
        }
    }
    let mut number = 0;
    each_bare_line(message, protocol, &mut |mut line| {
        line.remarks = told.remove(&number).unwrap_or_default();
        number += 1;
        visit(line);
    });
}

/// Every line, without remarks.
fn each_bare_line(message: &Message<'_>, protocol: Option<&Protocol>, visit: &mut dyn FnMut(Line)) {
    let bytes = message.bytes;
    let mut writer = Writer { last: None, visit, bytes, protocol };
    let outer = usize::from(message.parts.size || message.parts.header);
    if outer == 1 {
        let (name, type_name) = match &message.body {
            Some(part) => (part.layout.spec().name.to_string(), format!("message v{}", part.layout.version())),
            None => ("message".to_owned(), String::new()),
        };
        writer.heading(0, name, type_name, 0..bytes.len(), Kind::Unread, "");
    }
    if message.parts.size {
        let size = bytes.first_chunk::<4>().map(|size| i32::from_be_bytes(*size));
        let span = 0..bytes.len().min(4);
        writer.heading(1, "Frame", "", span.clone(), Kind::Frame, "messages are told apart by their size");
        let line = writer.push(2, "size", Some("size"), "int32", span, Kind::Frame);
        line.value = size.map(|size| size.to_string()).unwrap_or_default();
        line.note = "message_size: how many bytes follow".to_owned();
        let wrong = message.errors.iter().rfind(|fault| fault.error.path == "size");
        line.error = wrong.map(|fault| fault.error.kind.to_string());
    }
    if let Some(part) = &message.header {
        let view = View::new(&part.layout, bytes, &part.tree);
        let at = Place { depth: 1, path: "header", kind: Kind::Header };
        let (spec, version) = (part.layout.spec(), part.layout.version());
        let note = spec.about.as_deref().unwrap_or_default().to_owned();
        writer.message(part, view, at, &format!("v{version}"), note);
    }
    if let Some(part) = &message.body {
        let view = View::new(&part.layout, bytes, &part.tree);
        let version = part.layout.version();
        let at = Place { depth: outer, path: "", kind: Kind::Body };
        writer.message(part, view, at, "struct", format!("message body, version {version}"));
    }
    for fault in message.errors.iter().filter(|fault| fault.error.path != "size") {
        let part = if fault.in_header { &message.header } else { &message.body };
        if let Some(part) = part {
            let at = if fault.in_header {
                Place { depth: 1, path: "header", kind: Kind::Header }
            } else {
                Place { depth: outer, path: "", kind: Kind::Body }
            };
            writer.stop(View::new(&part.layout, bytes, &part.tree), at, &fault.error);
        }
    }
    let anomalies = message.body.as_ref().map_or(&[][..], |part| part.tree.anomalies());
    if let Some(anomaly) = anomalies.iter().find(|anomaly| anomaly.kind == AnomalyKind::LeftOver) {
        let span = anomaly.start as usize..anomaly.end as usize;
        let value = octets_text(bytes.get(span.clone()).unwrap_or_default());
        writer.push(outer, LEFT_OVER, None, "bytes", span, Kind::Unread).value = value;
    }
    if let Some(line) = writer.last {
        (writer.visit)(line);
    }
}

/// Every liberty kept, header first, each with the innermost line with a path around its bytes: of those that hold them
/// the shortest, and of these the outermost, so that the liberty of a length is its field's where both have the same bytes.
pub(super) fn remarked(message: &Message<'_>) -> Vec<Remarked> {
    let parts = [&message.header, &message.body].into_iter().flatten();
    /// A liberty, and length, number and path of the line found for it so far.
    type Found = (Anomaly, Option<(usize, usize, String)>);
    let mut found: Vec<Found> = parts.flat_map(|part| part.tree.anomalies()).map(|&anomaly| (anomaly, None)).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let mut number = 0;
    each_bare_line(message, None, &mut |line| {
        for (anomaly, best) in &mut found {
            let (start, end) = (anomaly.start as usize, anomaly.end as usize);
            let holds = match &line.path {
                Some(_) => anomaly.kind != AnomalyKind::LeftOver && line.span.start <= start && end <= line.span.end,
                None => anomaly.kind == AnomalyKind::LeftOver && line.name == LEFT_OVER,
            };
            if holds && best.as_ref().is_none_or(|&(length, ..)| line.span.len() < length) {
                *best = Some((line.span.len(), number, line.path.clone().unwrap_or_default()));
            }
        }
        number += 1;
    });
    let remarked = found.into_iter().map(|(anomaly, best)| {
        let path = best.as_ref().map_or("", |(_, _, path)| path);
        // The liberty of a count or of a tag's size is that of what it belongs to; these alone are in lower case.
        let owner = path.rsplit_once('.').filter(|(_, name)| name.starts_with(|first: char| first.is_lowercase()));
        let path = owner.map_or(path, |(owner, _)| owner).to_owned();
        Remarked { remark: Remark { anomaly, path }, line: best.map(|(_, number, _)| number) }
    });
    remarked.collect()
}

/// Where in the tree something is written.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub(super) depth: usize,
    pub(super) path: &'p str,
    pub(super) kind: Kind,
}

/// Writes lines.
pub(super) struct Writer<'a> {
    /// The line being written.
    last: Option<Line>,
    /// Takes each line that is finished.
    visit: &'a mut dyn FnMut(Line),
    bytes: &'a [u8],
    pub(super) protocol: Option<&'a Protocol>,
}

impl<'a> Writer<'a> {
    pub(super) fn push(
        &mut self,
        depth: usize,
        name: impl Into<String>,
        path: Option<&str>,
        type_name: impl Into<String>,
        span: Range<usize>,
        kind: Kind,
    ) -> &mut Line {
        let line = Line {
            depth,
            name: name.into(),
            path: path.map(str::to_owned),
            type_name: type_name.into(),
            value: String::new(),
            span,
            open: false,
            note: String::new(),
            kind,
            error: None,
            remarks: Vec::new(),
        };
        if let Some(finished) = self.last.take() {
            (self.visit)(finished);
        }
        self.last.insert(line)
    }

    fn heading(
        &mut self,
        depth: usize,
        name: impl Into<String>,
        type_name: impl Into<String>,
        span: Range<usize>,
        kind: Kind,
        note: &str,
    ) {
        self.push(depth, name, None, type_name, span, kind).note = note.to_owned();
    }

    /// A header or body.
    fn message(&mut self, part: &Part, view: View<'a>, at: Place<'_>, type_name: &str, note: String) {
        let (root, name) = (view.root(), part.layout.spec().name.to_string());
        let span = root.node().start as usize..part.end;
        let line = self.push(at.depth, name, Some(at.path), type_name, span, at.kind);
        (line.open, line.note) = (root.node().is_open(), note);
        self.fields(view, root, part.layout.root(), Place { depth: at.depth + 1, ..at }, part.end);
    }

    /// The fields of a struct, and the tag section that ends it.
    fn fields(&mut self, view: View<'a>, node: NodeRef<'a>, structure: &StructLayout, at: Place<'_>, read: usize) {
        let mut section = None;
        for child in node.children() {
            if child.node().kind == NodeKind::TagSection {
                section = Some(child);
            } else {
                self.field(view, child, at, read);
            }
        }
        match section {
            Some(section) => self.tags(view, section, at, read),
            None if structure.flexible && !node.node().is_open() => {
                let end = node.node().end as usize;
                let path = join(at.path, "_tags");
                let line = self.push(at.depth, "tagged_fields", Some(&path), "uvarint", end - 1..end, Kind::Tags);
                line.value = "0".to_owned();
                line.note = tags_note(at);
            }
            None => {}
        }
    }

    /// A field of a struct.
    fn field(&mut self, view: View<'a>, node: NodeRef<'a>, at: Place<'_>, read: usize) {
        let Some(field) = node.layout_field() else { return };
        let path = join(at.path, &field.name);
        let (name, note) = (field.name.to_string(), field.about.as_deref().unwrap_or_default().to_owned());
        self.value(view, node, name, note, Place { path: &path, ..at }, read);
    }

    /// A field or an element.
    fn value(&mut self, view: View<'a>, node: NodeRef<'a>, name: String, note: String, at: Place<'_>, read: usize) {
        let Some(wire) = node.wire() else { return };
        let type_name = view.layout().type_name(wire);
        let (start, open) = (node.node().start as usize, node.node().is_open());
        let span = start..if open { read } else { node.node().end as usize };
        let value = self.value_text(node, wire);
        let kind = match wire {
            WireType::Bytes { records: true, .. } => Kind::Records,
            _ => at.kind,
        };
        let line = self.push(at.depth, name, Some(at.path), type_name, span, kind);
        (line.value, line.note, line.open) = (value, note, open);
        let inner = Place { depth: at.depth + 1, ..at };
        match (node.node().kind, wire) {
            (NodeKind::Struct, WireType::Struct { id, nullable }) => {
                if nullable {
                    self.marker(node, inner);
                }
                self.fields(view, node, view.layout().structure(id), inner, read);
            }
            (NodeKind::Array | NodeKind::Leaf, WireType::Array { compact, element, .. }) => {
                self.count(node, compact, inner);
                let element_name = match element {
                    Element::Struct(id) => view.layout().structure(id).name.clone(),
                    _ => node.layout_field().map(|field| field.name.clone()).unwrap_or_default(),
                };
                for (index, element) in node.elements().enumerate() {
                    let path = format!("{}[{index}]", at.path);
                    let name = format!("{element_name}[{index}]");
                    self.value(view, element, name, String::new(), Place { path: &path, ..inner }, read);
                }
            }
            (NodeKind::Leaf, WireType::Bytes { records: true, .. }) => {
                if let Some(records) = node.octets() {
                    self.batches(records, node, inner);
                }
            }
            _ => {}
        }
    }

    /// The marker that says that a nullable struct is there (KIP-893).
    fn marker(&mut self, node: NodeRef<'a>, at: Place<'_>) {
        let tagged = node.layout_field().is_some_and(|field| field.tag.is_some());
        let start = node.node().start as usize;
        let end = start + if tagged { self.uvarint(start).1 } else { 1 };
        let Some(&byte) = self.bytes.get(start) else { return };
        let path = join(at.path, "marker");
        let type_name = if tagged { "uvarint" } else { "int8" };
        let line = self.push(at.depth, "marker", Some(&path), type_name, start..end, at.kind);
        line.value = if tagged { byte.to_string() } else { byte.cast_signed().to_string() };
        line.note = "the struct is there".to_owned();
    }

    /// The count before the elements of an array.
    fn count(&mut self, node: NodeRef<'a>, compact: bool, at: Place<'_>) {
        let start = node.node().start as usize;
        let count = node.count().unwrap_or_default();
        let path = join(at.path, "length");
        let type_name = if compact { "uvarint" } else { "int32" };
        let value = if compact { format!("{} (compact, n+1)", self.uvarint(start).0) } else { count.to_string() };
        let line = self.push(at.depth, "length", Some(&path), type_name, start..start + node.prefix_size(), at.kind);
        line.value = value;
        line.note = match count {
            0 => "no element follows".to_owned(),
            1 => "one element follows".to_owned(),
            count => format!("{count} elements follow"),
        };
    }

    /// A tag section that is not empty, or whose count is written in an odd way.
    fn tags(&mut self, view: View<'a>, section: NodeRef<'a>, at: Place<'_>, read: usize) {
        let node = section.node();
        let start = node.start as usize;
        let (count, size) = self.uvarint(start);
        let path = join(at.path, "_tags");
        let end = if node.is_open() { read } else { node.end as usize };
        let line = self.push(at.depth, "tagged_fields", Some(&path), "tag section", start..end, Kind::Tags);
        line.value = if count == 1 { "1 tag".to_owned() } else { format!("{count} tags") };
        line.note = tags_note(at);
        line.open = node.is_open();
        let depth = at.depth + 1;
        let line = self.push(depth, "count", Some(&join(&path, "count")), "uvarint", start..start + size, Kind::Tags);
        line.value = count.to_string();
        let mut position = start + size;
        for child in section.children() {
            let (tag, tag_size) = self.uvarint(position);
            let (length, length_size) = self.uvarint(position + tag_size);
            let payload = position + tag_size + length_size;
            let end = (payload + length as usize).min(self.bytes.len());
            let tag_path = format!("{path}[{tag}]");
            let known = child.layout_field();
            let name = format!("tag {tag}");
            let line = self.push(depth, name, Some(&tag_path), "tagged field", position..end, Kind::Tags);
            line.open = child.node().is_open();
            line.note = match known {
                Some(field) => format!("holds {}", field.name),
                None => "unknown at this version: kept as it is, or dropped".to_owned(),
            };
            let split = position + tag_size;
            let depth = depth + 1;
            self.push(depth, "tag", Some(&join(&tag_path, "tag")), "uvarint", position..split, Kind::Tags).value =
                tag.to_string();
            let line = self.push(depth, "size", Some(&join(&tag_path, "size")), "uvarint", split..payload, Kind::Tags);
            line.value = length.to_string();
            line.note = "bytes of the payload, not plus one".to_owned();
            match known {
                Some(_) => self.field(view, child, Place { depth, ..at }, read),
                None => {
                    let octets = self.bytes.get(payload..end).unwrap_or_default();
                    let path = join(&tag_path, "payload");
                    self.push(depth, "payload", Some(&path), "bytes", payload..end, Kind::Tags).value =
                        octets_text(octets);
                }
            }
            position = end;
        }
    }

    /// The field that could not be read, as the last line of its part. `at` is that part's.
    fn stop(&mut self, view: View<'a>, at: Place<'_>, error: &DecodeError) {
        // The nodes that are open are those on the way to the field.
        let (mut open, mut depth, mut path) = (view.root(), at.depth + 1, String::new());
        while let Some((index, inner)) = open.children().enumerate().find(|(_, child)| child.node().is_open()) {
            match (inner.node().kind, inner.layout_field()) {
                (NodeKind::TagSection, _) => {}
                (_, Some(field)) if !inner.node().element => path = join(&path, &field.name),
                _ => path = format!("{path}[{index}]"),
            }
            // Inside a tag section, each field stands below the line of its tag.
            depth += 1 + usize::from(open.node().kind == NodeKind::TagSection);
            open = inner;
        }
        let name = match error.path.strip_prefix(&path).filter(|name| !name.is_empty()) {
            Some(name) => name.trim_start_matches('.').to_owned(),
            None if open.node().kind == NodeKind::TagSection => "tag".to_owned(),
            None if matches!(open.wire(), Some(WireType::Struct { nullable: true, .. }))
                && open.children().next().is_none()
                && error.kind != DecodeErrorKind::TagSectionMissing =>
            {
                "marker".to_owned()
            }
            None => "tagged_fields".to_owned(),
        };
        let name = match name.strip_prefix('[') {
            Some(index) => format!("{}[{index}", open.layout_field().map_or("", |field| &field.name)),
            None => name,
        };
        // The header's failure stands before any later part, but then there is none.
        let line = self.push(depth, name, None, "", error.offset..error.offset, at.kind);
        line.error = Some(error.kind.to_string());
    }

    /// A varint and its size.
    pub(super) fn uvarint(&self, position: usize) -> (u32, usize) {
        let mut reader = Reader::at(self.bytes, position);
        let value = reader.uvarint().map_or(0, |uvarint| uvarint.value);
        (value, reader.position() - position.min(self.bytes.len()))
    }
}

fn tags_note(at: Place<'_>) -> String {
    let of = if at.path == "header" { "the header" } else { "this struct" };
    format!("how many tagged fields {of} has")
}
