//! Writes the Rust of every definition in `schemas`.

use codec::{FieldDefault, FieldSpec, FieldType, MessageSpec, VersionRange};
use std::fmt::Write as _;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=generate.rs");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    // Definitions of the tests are for the tests alone.
    for (folder, file) in [("../../schemas", "messages.rs"), ("tests/definitions", "tests.rs")] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        let (mut code, names) = code(&folder);
        if file == "messages.rs" {
            let _ = writeln!(
                code,
                "/// Hands the names of all messages to a macro of the caller's: `callback! {{ A, B, C }}`.
                #[macro_export]
                macro_rules! for_each_message {{ ($callback:ident) => {{ $callback! {{ {names} }} }} }}"
            );
        }
        std::fs::write(Path::new(&out).join(file), code).expect("the folder is cargo's");
    }
}

/// The Rust of all definitions in a folder, and their names.
fn code(folder: &Path) -> (String, String) {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    let mut code = String::new();
    let mut names = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let spec = MessageSpec::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if spec.valid_versions.is_none() {
            continue;
        }
        let path = path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        code += &Generator { spec: &spec }.module(&path);
        names.push(spec.name.to_string());
    }
    (code, names.join(", "))
}

/// A default that is not stated.
const ZERO: &str = "::std::default::Default::default()";

struct Generator<'s> {
    spec: &'s MessageSpec,
}

/// One field, and what is written of it.
struct Field<'s> {
    spec: &'s FieldSpec,
    rust: String,
    optional: bool,
}

impl Generator<'_> {
    fn module(&self, path: &Path) -> String {
        let spec = self.spec;
        let (own_name, name) = (&spec.name, type_name(&spec.name));
        let lifetime = if self.borrows(&spec.fields) { "<'_>" } else { "" };
        let mut structs = self.structure(own_name, &spec.fields, spec.about.as_deref());
        for part in spec.structs.values() {
            structs += &self.structure(&part.name, &part.fields, None);
        }
        let (lowest, highest) = ends(spec.valid_versions);
        let key = spec.api_key.map_or("None".to_owned(), |key| format!("Some(::codec::ApiKey({key}))"));
        let write = match self.condition(spec.flexible_versions).as_str() {
            "true" => "self.write_as::<true>(out, at, version)".to_owned(),
            "false" => "self.write_as::<false>(out, at, version)".to_owned(),
            flexible => format!(
                "if {flexible} {{ self.write_as::<true>(out, at, version) }} \
                 else {{ self.write_as::<false>(out, at, version) }}"
            ),
        };
        let module = snake_case(own_name);
        format!(
            "pub use {module}::{name};
            /// `{name}` and the structs that it is made of.
            #[allow(unused_variables, unused_mut, unused_parens, dead_code, clippy::all)]
            pub mod {module} {{
                impl super::Message for {name}{lifetime} {{
                    const NAME: &'static str = {own_name:?};
                    const DEFINITION: &'static str = include_str!({path:?});
                    const API_KEY: ::std::option::Option<::codec::ApiKey> = {key};
                    const VERSIONS: ::std::ops::RangeInclusive<i16> = {lowest}..={highest};

                    #[inline]
                    fn write(&self, out: &mut ::codec::wire::Writer, at: usize, version: i16) -> ::codec::wire::Written {{
                        {write}
                    }}
                }}
                {structs}
            }}\n"
        )
    }

    fn structure(&self, name: &str, fields: &[FieldSpec], about: Option<&str>) -> String {
        let name = type_name(name);
        let borrows = self.borrows(fields);
        let (of, of_any) = if borrows { ("<'a>", "<'_>") } else { ("", "") };
        let [mut declared, mut defaults, mut at_default, mut untagged, mut tagged] = [const { String::new() }; 5];
        let mut by_tag = Vec::new();
        for spec in fields {
            let field = Field {
                spec,
                rust: snake_case(&spec.name),
                optional: !spec.nullable_versions.intersect(spec.versions).is_none(),
            };
            self.declare(&field, &mut declared);
            let _ = writeln!(defaults, "{}: {},", field.rust, self.default(&field));
            let _ = write!(at_default, " && ({})", self.is_default(&field));
            self.write_untagged(&field, &mut untagged);
            if !spec.tagged_versions.is_none() {
                by_tag.push((spec.tag, field));
            }
        }
        by_tag.sort_by_key(|(tag, _)| *tag);
        let tags = if by_tag.is_empty() {
            "at = out.array(at, [0]);".to_owned()
        } else {
            by_tag.iter().for_each(|(_, field)| self.write_tagged(field, &name, &mut tagged));
            format!(
                "let mut tags: ::std::vec::Vec<(u32, ::std::vec::Vec<u8>)> = ::std::vec::Vec::new();
                {tagged}
                at = out.tags(at, tags.len(), tags.iter().map(|(tag, payload)| (*tag, &**payload)))?;"
            )
        };
        let about = about.map_or_else(|| format!("`{name}` of the definition."), sentence);
        format!(
            "/// {about}
            #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
            #[serde(default)]
            pub struct {name}{of} {{
                {declared}
            }}

            impl ::std::default::Default for {name}{of_any} {{
                fn default() -> Self {{
                    {name} {{ {defaults} }}
                }}
            }}

            impl {name}{of_any} {{
                fn is_default(&self) -> bool {{
                    true{at_default}
                }}

                pub(crate) fn write_as<const FLEXIBLE: bool>(
                    &self,
                    out: &mut ::codec::wire::Writer,
                    mut at: usize,
                    version: i16,
                ) -> ::codec::wire::Written {{
                    {untagged}
                    if FLEXIBLE {{
                        {tags}
                    }}
                    Ok(at)
                }}
            }}\n"
        )
    }

    fn declare(&self, field: &Field<'_>, code: &mut String) {
        let Field { spec, rust, optional } = field;
        let plain = self.rust_type(&spec.field_type);
        let borrow = if plain.contains("'a") { ", borrow" } else { "" };
        let rust_type = if *optional { format!("::std::option::Option<{plain}>") } else { plain };
        let mut about = spec.about.as_deref().map_or_else(String::new, |about| sentence(about) + " ");
        let _ = write!(about, "`{}`, at versions {}", spec.name, spec.versions);
        if !spec.tagged_versions.is_none() {
            let _ = write!(about, "; tag {} at {}", spec.tag.unwrap_or_default(), spec.tagged_versions);
        }
        if *optional {
            let _ = write!(about, "; may be null at {}", spec.nullable_versions.intersect(spec.versions));
        }
        let _ = writeln!(code, "/// {about}.\n#[serde(rename = {:?}{borrow})]\npub {rust}: {rust_type},", spec.name);
    }

    /// What an untagged field writes, at the versions that have it as one.
    fn write_untagged(&self, field: &Field<'_>, code: &mut String) {
        let Field { spec, rust, .. } = field;
        let written = match Fixed::of(&spec.field_type) {
            Some(fixed) => format!("at = {};", fixed.write(&format!("self.{rust}"))),
            None => {
                format!("at = {}.map_err(|error| error.in_field({:?}))?;", self.write(field, "self", false), spec.name)
            }
        };
        let present = self.condition(spec.versions);
        let tagged = self.condition(spec.tagged_versions);
        let lacking = match (&*present, spec.ignorable) {
            ("true", _) | (_, true) => String::new(),
            _ => {
                let refused = format!("::codec::EncodeErrorKind::FieldNotInVersion({:?}.to_owned())", spec.name);
                format!("if !({present}) && !({}) {{ return Err({refused}.into()); }}", self.is_default(field))
            }
        };
        let _ = match (&*present, &*tagged) {
            (_, "true") => writeln!(code, "{lacking}"),
            ("true", "false") => writeln!(code, "{written}"),
            (present, "false") => writeln!(code, "if {present} {{ {written} }} {lacking}"),
            // Tagged at some versions; where it is tagged it may not be present.
            (present, tagged) => writeln!(code, "if ({present}) && !({tagged}) {{ {written} }} {lacking}"),
        };
    }

    fn write_tagged(&self, field: &Field<'_>, owner: &str, code: &mut String) {
        let Field { spec, .. } = field;
        let tagged = self.condition(spec.tagged_versions.intersect(spec.versions));
        let payload = |owner: &str| {
            let (write, name) = (self.write(field, owner, true), &spec.name);
            format!("super::payload(|out, at| {write}).map_err(|error| error.in_field({name:?}))?")
        };
        let (tag, written) = (spec.tag.unwrap_or_default(), payload("self"));
        let _ = match spec.field_type {
            // By what this version has of it.
            FieldType::Struct(_) => writeln!(
                code,
                "if {tagged} {{
                    let (payload, default) = ({written}, <{owner} as ::std::default::Default>::default());
                    if payload != {} {{ tags.push(({tag}, payload)); }}
                }}",
                payload("default")
            ),
            _ => writeln!(code, "if ({tagged}) && !({}) {{ tags.push(({tag}, {written})); }}", self.is_default(field)),
        };
    }

    /// An expression that writes a field of `owner` and gives the offset after it.
    fn write(&self, field: &Field<'_>, owner: &str, tagged: bool) -> String {
        let Field { spec, rust, optional } = field;
        let compact = match spec.flexible_versions {
            None => "FLEXIBLE",
            Some(own) if own.is_none() => "false",
            Some(own) if own == self.spec.flexible_versions => "FLEXIBLE",
            Some(own) => panic!("{}: compact at {own}, unlike its message", spec.name),
        };
        if !optional {
            return self.write_value(&spec.field_type, &format!("{owner}.{rust}"), compact);
        }
        let null = match spec.field_type {
            FieldType::Struct(_) if tagged => "[0]",
            FieldType::Struct(_) => "[0xff]",
            FieldType::String => "[0xff; 2]",
            _ => "[0xff; 4]",
        };
        let null = match (&spec.field_type, compact) {
            (FieldType::Struct(_), _) | (_, "false") => format!("Ok(out.array(at, {null}))"),
            _ => format!("Ok(if {compact} {{ out.array(at, [0]) }} else {{ out.array(at, {null}) }})"),
        };
        let null = match self.condition_within(spec.nullable_versions, spec.versions).as_str() {
            "true" => null,
            allowed => {
                format!("if {allowed} {{ {null} }} else {{ Err(::codec::EncodeErrorKind::NullNotAllowed.into()) }}")
            }
        };
        let value = self.write_value(&spec.field_type, "value", compact);
        let value = match &spec.field_type {
            // 1 in both forms of the marker (KIP-893), where null is allowed.
            FieldType::Struct(_) => {
                let marked = self.condition_within(spec.nullable_versions, spec.versions);
                format!("{{ let at = if {marked} {{ out.array(at, [1]) }} else {{ at }}; {value} }}")
            }
            _ => value,
        };
        format!("match &{owner}.{rust} {{ Some(value) => {value}, None => {null} }}")
    }

    /// An expression that writes a value which is not null.
    fn write_value(&self, field_type: &FieldType, value: &str, compact: &str) -> String {
        match field_type {
            FieldType::String => format!("out.text::<{compact}>(at, {value}.as_bytes())"),
            FieldType::Bytes | FieldType::Records => format!("out.octets::<{compact}>(at, {value})"),
            FieldType::Struct(_) => format!("{value}.write_as::<FLEXIBLE>(out, at, version)"),
            FieldType::Array(element) => {
                let write = self.write_value(element, "element", compact);
                let one = format!("|out: &mut ::codec::wire::Writer, at, element| {write}");
                format!(
                    "out.length::<{compact}>(at, {value}.len()).and_then(|at| super::elements(out, at, &{value}, {one}))"
                )
            }
            scalar => match Fixed::of(scalar) {
                Some(fixed) => format!("Ok({})", fixed.write(value)),
                None => unreachable!("every other type is matched above"),
            },
        }
    }

    fn rust_type(&self, field_type: &FieldType) -> String {
        match field_type {
            FieldType::String => "&'a str".to_owned(),
            FieldType::Bytes | FieldType::Records => "&'a [u8]".to_owned(),
            FieldType::Struct(name) if self.borrows(&self.spec.structs[name].fields) => {
                format!("{}<'a>", type_name(name))
            }
            FieldType::Struct(name) => type_name(name),
            FieldType::Array(element) => format!("::std::vec::Vec<{}>", self.rust_type(element)),
            scalar => Fixed::of(scalar).map(|fixed| fixed.0).unwrap_or_default().to_owned(),
        }
    }

    /// Whether anything in these fields is borrowed.
    fn borrows(&self, fields: &[FieldSpec]) -> bool {
        fn is_borrowed(field_type: &FieldType) -> bool {
            match field_type {
                FieldType::String | FieldType::Bytes | FieldType::Records => true,
                FieldType::Array(element) => is_borrowed(element),
                _ => false,
            }
        }
        fields.iter().any(|field| {
            let part = field.field_type.struct_name().and_then(|name| self.spec.structs.get(name));
            is_borrowed(&field.field_type) || part.is_some_and(|part| self.borrows(&part.fields))
        })
    }

    fn default(&self, field: &Field<'_>) -> String {
        let spec = field.spec;
        let plain = match (&spec.default, &spec.field_type) {
            (FieldDefault::Null, _) => return "None".to_owned(),
            (FieldDefault::Zero, FieldType::Records) if field.optional => return "None".to_owned(),
            (FieldDefault::Integer(value), FieldType::Bool) => (*value != 0).to_string(),
            (FieldDefault::Integer(value), FieldType::Float64) => format!("{value}f64"),
            (FieldDefault::Integer(value), _) => value.to_string(),
            (FieldDefault::Float(value), _) => format!("{value:?}f64"),
            (FieldDefault::Text(text), _) => format!("{text:?}"),
            (FieldDefault::Zero, _) => ZERO.to_owned(),
        };
        if field.optional { format!("Some({plain})") } else { plain }
    }

    /// Whether a field is at its default, as the interpreter has it: floats by their bits.
    fn is_default(&self, field: &Field<'_>) -> String {
        let place = format!("self.{}", field.rust);
        let default = self.default(field);
        match (&field.spec.field_type, &*default) {
            (_, "None") => format!("{place}.is_none()"),
            (FieldType::Struct(_), _) if field.optional => {
                format!("{place}.as_ref().is_some_and(|value| value.is_default())")
            }
            (FieldType::Struct(_), _) => format!("{place}.is_default()"),
            (FieldType::Float64, _) => format!("f64::to_bits({place}) == f64::to_bits({default})"),
            (FieldType::String | FieldType::Bytes | FieldType::Records | FieldType::Array(_), ZERO) => {
                format!("{place}.is_empty()")
            }
            (field_type, _) => {
                let plain = self.rust_type(field_type).replace("'a", "'_");
                let whole = if field.optional { format!("::std::option::Option<{plain}>") } else { plain };
                format!("{{ let default: {whole} = {default}; {place} == default }}")
            }
        }
    }

    /// Whether a version of the message is in a range.
    fn condition(&self, range: VersionRange) -> String {
        self.condition_within(range, VersionRange::ALL)
    }

    /// The same of a version of the message that is known to be in another range.
    fn condition_within(&self, range: VersionRange, known: VersionRange) -> String {
        let known = known.intersect(self.spec.valid_versions);
        let range = range.intersect(known);
        if range.is_none() {
            return "false".to_owned();
        }
        let ((lowest, highest), (first, last)) = (ends(range), ends(known));
        match (lowest > first, highest < last) {
            (false, false) => "true".to_owned(),
            (true, false) => format!("version >= {lowest}"),
            (false, true) => format!("version <= {highest}"),
            (true, true) => format!("({lowest}..={highest}).contains(&version)"),
        }
    }
}

/// A type of always the same size, by its name in Rust.
struct Fixed(&'static str);

impl Fixed {
    fn of(field_type: &FieldType) -> Option<Fixed> {
        Some(Fixed(match field_type {
            FieldType::Bool => "bool",
            FieldType::Int8 => "i8",
            FieldType::Int16 => "i16",
            FieldType::Uint16 => "u16",
            FieldType::Int32 => "i32",
            FieldType::Uint32 => "u32",
            FieldType::Int64 => "i64",
            FieldType::Float64 => "f64",
            FieldType::Uuid => "[u8; 16]",
            _ => return None,
        }))
    }

    /// An expression that writes a value, which may be a reference to one, and gives the offset after it.
    fn write(&self, value: &str) -> String {
        let value = if value.contains('.') { value.to_owned() } else { format!("(*{value})") };
        match self.0 {
            "bool" => format!("out.array(at, [u8::from({value})])"),
            "[u8; 16]" => format!("out.array(at, {value})"),
            _ => format!("out.array(at, {value}.to_be_bytes())"),
        }
    }
}

fn ends(range: VersionRange) -> (i16, i16) {
    match (range.lowest(), range.highest()) {
        (Some(lowest), Some(highest)) => (lowest.0, highest.0),
        _ => unreachable!("it is not empty"),
    }
}

/// On one line, without the full stop that follows it.
fn sentence(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('[', "\\[").replace('<', "\\<");
    if text.ends_with('.') { text } else { text + "." }
}

/// `ThrottleTimeMs` as `throttle_time_ms`; a keyword is written as the name that it is.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (place, &letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|place| letters.get(place));
        let after = letters.get(place + 1);
        // A word starts after a small letter or digit, and with the last capital before a small letter.
        let starts =
            before.is_some_and(|before| !before.is_uppercase() || after.is_some_and(|after| after.is_lowercase()));
        if letter.is_uppercase() && starts {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    match &*snake {
        "self" | "super" | "crate" => snake + "_",
        "abstract" | "as" | "async" | "await" | "become" | "box" | "break" | "const" | "continue" | "do" | "dyn"
        | "else" | "enum" | "extern" | "false" | "final" | "fn" | "for" | "gen" | "if" | "impl" | "in" | "let"
        | "loop" | "macro" | "match" | "mod" | "move" | "mut" | "override" | "priv" | "pub" | "ref" | "return"
        | "static" | "struct" | "trait" | "true" | "try" | "type" | "typeof" | "unsafe" | "unsized" | "use"
        | "virtual" | "where" | "while" | "yield" => format!("r#{snake}"),
        _ => snake,
    }
}

/// The name of a type; the one that is a keyword cannot be written as a name.
fn type_name(name: &str) -> String {
    if name == "Self" { "Self_".to_owned() } else { name.to_owned() }
}
