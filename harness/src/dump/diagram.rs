//! What a message looks like on the wire, without any bytes: the wire diagram and the schema.

use super::Kind;
use codec::{Element, Field, FrameLayout, Layout, StructLayout, Value, WireType};
use serde_json::Value as Json;
use std::fmt::Write as _;

/// A row of a diagram.
enum Row {
    /// A field: name, then type and size.
    Field(String, String, Kind),
    /// What is inside the field above.
    Inside(String, Vec<Row>),
}

/// The wire diagram of a whole frame, or of a body alone: each struct is a box, fields from top to bottom in wire order,
/// with type and size. `B+` is the least a field of varying size takes.
pub fn wire_diagram(body: &Layout, frame: Option<&FrameLayout>) -> String {
    let mut text = String::new();
    if let Some(frame) = frame {
        let mut rows = vec![Row::Field("message_size".to_owned(), "int32 · 4B".to_owned(), Kind::Frame)];
        rows.extend(struct_rows(&frame.header, frame.header.root(), Kind::Header));
        text.push_str(&boxed(&title(&frame.header), &rows));
    }
    text.push_str(&boxed(&title(body), &struct_rows(body, body.root(), Kind::Body)));
    text
}

fn title(layout: &Layout) -> String {
    format!("{layout}{}", if layout.flexible() { " · flexible" } else { "" })
}

fn struct_rows(layout: &Layout, structure: &StructLayout, kind: Kind) -> Vec<Row> {
    let mut rows = Vec::new();
    for &number in &structure.fields {
        let field = layout.field(number);
        field_rows(&mut rows, layout, field, String::new(), kind);
    }
    if structure.flexible {
        rows.push(Row::Field("tagged".to_owned(), "var · 1B+".to_owned(), Kind::Tags));
        for &number in &structure.tagged {
            let field = layout.field(number);
            let tag = field.tag.map(|tag| format!("tag {tag}: ")).unwrap_or_default();
            field_rows(&mut rows, layout, field, tag, Kind::Tags);
        }
    }
    rows
}

fn field_rows(rows: &mut Vec<Row>, layout: &Layout, field: &Field, before: String, kind: Kind) {
    let name = format!("{before}{}{}", field.name, if field.wire.nullable() { "?" } else { "" });
    rows.push(Row::Field(name, type_and_size(layout, field.wire), kind));
    match field.wire {
        WireType::Struct { id, .. } => {
            let structure = layout.structure(id);
            rows.push(Row::Inside(structure.name.to_string(), struct_rows(layout, structure, kind)));
        }
        WireType::Array { element: Element::Struct(id), .. } => {
            let structure = layout.structure(id);
            let title = format!("{}, each element", structure.name);
            rows.push(Row::Inside(title, struct_rows(layout, structure, kind)));
        }
        _ => {}
    }
}

fn type_and_size(layout: &Layout, wire: WireType) -> String {
    let form = |compact: bool| if compact { " (compact)" } else { "" };
    match wire {
        WireType::Fixed(fixed) => format!("{} · {}B", fixed.name(), fixed.size()),
        WireType::String { compact, .. } => format!("string{} · {}B+", form(compact), if compact { 1 } else { 2 }),
        WireType::Bytes { compact, .. } => {
            format!("{}{} · {}B+", layout.type_name(wire), form(compact), if compact { 1 } else { 4 })
        }
        WireType::Struct { id, nullable } => {
            format!("struct · {}B+", if nullable { 1 } else { layout.structure(id).smallest })
        }
        WireType::Array { compact, element, .. } => {
            let of = match element {
                Element::Struct(_) => String::new(),
                _ => format!(" of {}", layout.type_name(wire).trim_start_matches("[]")),
            };
            format!("array{of}{} · {}B+", form(compact), if compact { 1 } else { 4 })
        }
    }
}

fn boxed(title: &str, rows: &[Row]) -> String {
    let names = widest(rows, 0, &|depth, row| match row {
        Row::Field(name, ..) => 2 * depth + name.chars().count(),
        Row::Inside(..) => 0,
    });
    let inner = widest(rows, 0, &|depth, row| match row {
        Row::Field(_, type_and_size, _) => names + 2 + type_and_size.chars().count() + 2 * depth,
        Row::Inside(title, _) => 4 * depth + title.chars().count() + 10,
    })
    .max(title.chars().count() + 6);
    let mut text = String::new();
    frame_rows(&mut text, title, rows, 0, names, inner);
    text
}

fn widest(rows: &[Row], depth: usize, width: &dyn Fn(usize, &Row) -> usize) -> usize {
    let inside = |row: &Row| match row {
        Row::Inside(_, rows) => widest(rows, depth + 1, width),
        Row::Field(..) => 0,
    };
    rows.iter().map(|row| width(depth, row).max(inside(row))).max().unwrap_or(0)
}

/// A box in `depth` others. `names` and `inner` are where types begin and how wide the outermost box is inside.
fn frame_rows(text: &mut String, title: &str, rows: &[Row], depth: usize, names: usize, inner: usize) {
    let (left, right) = ("| ".repeat(depth), " |".repeat(depth));
    let width = inner.saturating_sub(4 * depth);
    let bold = anstyle::Style::new().bold();
    let line = "-".repeat(width.saturating_sub(title.chars().count() + 2));
    let _ = writeln!(text, "{left}+-- {bold}{title}{bold:#} {line}+{right}");
    for row in rows {
        match row {
            Row::Field(name, type_and_size, kind) => {
                let style = kind.style();
                let name_width = names.saturating_sub(2 * depth);
                let used = name_width + 2 + type_and_size.chars().count();
                let pad = " ".repeat(width.saturating_sub(used));
                let _ = writeln!(text, "{left}| {style}{name:name_width$}{style:#}  {type_and_size}{pad} |{right}");
            }
            Row::Inside(title, rows) => frame_rows(text, title, rows, depth + 1, names, inner),
        }
    }
    let _ = writeln!(text, "{left}+{}+{right}", "-".repeat(width + 2));
}

/// Something written like JSON.
enum Shape {
    Leaf(String),
    Struct(Vec<(String, Shape)>),
    Array(Vec<Shape>),
    Nullable(Box<Shape>),
}

/// The message as JSON with types in place of values; `?` marks what may be null.
pub fn schema_text(layout: &Layout) -> String {
    let mut text = String::new();
    write_shape(&mut text, &schema(layout, layout.root()), 0);
    text
}

fn schema(layout: &Layout, structure: &StructLayout) -> Shape {
    let fields = structure.fields.iter().chain(&structure.tagged).map(|&number| {
        let field = layout.field(number);
        let shape = match field.wire {
            WireType::Struct { id, .. } => schema(layout, layout.structure(id)),
            WireType::Array { element: Element::Struct(id), .. } => {
                Shape::Array(vec![schema(layout, layout.structure(id))])
            }
            WireType::Array { .. } => {
                Shape::Leaf(format!("[{}]", layout.type_name(field.wire).trim_start_matches("[]")))
            }
            wire => Shape::Leaf(layout.type_name(wire)),
        };
        let shape = if field.wire.nullable() { Shape::Nullable(Box::new(shape)) } else { shape };
        (field.name.to_string(), shape)
    });
    Shape::Struct(fields.collect())
}

/// A value as JSON, laid out like the schema.
pub fn json_text(value: &Value) -> String {
    let mut text = String::new();
    write_shape(&mut text, &json_shape(&value.to_json()), 0);
    text
}

fn json_shape(json: &Json) -> Shape {
    match json {
        // Bytes are one value.
        Json::Object(object) if object.len() == 1 && object.contains_key("hex") => Shape::Leaf(json.to_string()),
        Json::Object(object) => {
            Shape::Struct(object.iter().map(|(name, json)| (name.clone(), json_shape(json))).collect())
        }
        Json::Array(elements) if elements.iter().any(Json::is_object) => {
            Shape::Array(elements.iter().map(json_shape).collect())
        }
        Json::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(Json::to_string).collect();
            Shape::Leaf(format!("[{}]", elements.join(", ")))
        }
        leaf => Shape::Leaf(leaf.to_string()),
    }
}

fn write_shape(text: &mut String, shape: &Shape, indent: usize) {
    match shape {
        Shape::Leaf(leaf) => text.push_str(leaf),
        Shape::Nullable(shape) => {
            write_shape(text, shape, indent);
            text.push('?');
        }
        Shape::Struct(fields) => write_fields(text, fields, indent + 2, indent),
        Shape::Array(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                match element {
                    Shape::Struct(fields) => write_fields(text, fields, indent + 4, indent),
                    element => write_shape(text, element, indent),
                }
            }
            text.push(']');
        }
    }
}

fn write_fields(text: &mut String, fields: &[(String, Shape)], indent: usize, close: usize) {
    text.push_str("{\n");
    for (index, (name, field)) in fields.iter().enumerate() {
        let _ = write!(text, "{:indent$}\"{name}\": ", "");
        write_shape(text, field, indent);
        text.push_str(if index + 1 < fields.len() { ",\n" } else { "\n" });
    }
    let _ = write!(text, "{:close$}}}", "");
}
