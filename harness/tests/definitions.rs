//! The bundled definitions beside those of Apache Kafka: every layout of ours is, at each version, that of a released
//! kafka-clients jar; and whatever those jars define, the codec can work with.

use codec::{
    ApiVersion, Element, Field, FieldSpec, Layout, MessageSpec, Protocol, StructLayout, VersionRange, WireType, encode,
    properties,
};
use kafka_conform::definitions::{bundled, bundled_texts, from_directory, from_jar};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};
use zip::write::SimpleFileOptions;

/// The newest release that has every version since 2.4, and the newest of all, which dropped some and added others.
const RELEASES: [&str; 2] = ["3.9.2", "4.4.0"];

/// The definitions of each release, or why there are none.
static JARS: LazyLock<Result<Vec<(&str, Protocol)>, String>> = LazyLock::new(|| {
    let parse = |release| {
        let jar = jar(release)?;
        Ok((release, from_jar(&jar).unwrap_or_else(|error| panic!("{error:#}"))))
    };
    RELEASES.into_iter().map(parse).collect()
});

/// A kafka-clients jar of that release from Maven, kept for later runs.
fn jar(release: &str) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kafka-clients");
    let name = format!("kafka-clients-{release}.jar");
    let jar = folder.join(&name);
    if jar.is_file() {
        return Ok(jar);
    }
    // Maven copies into a folder of its own first: a jar that is there is whole.
    let fresh = folder.join(format!("fresh-{release}"));
    let output = Command::new("mvn")
        .args(["-B", "-q", "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy"])
        .arg(format!("-Dartifact=org.apache.kafka:kafka-clients:{release}"))
        .arg(format!("-DoutputDirectory={}", fresh.display()))
        .stdin(Stdio::null())
        .output()
        .map_err(|_| "mvn is not there: install Maven 3.8 or newer, and Java 17".to_owned())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        return Err(format!(
            "Maven could not resolve kafka-clients {release}: {}",
            said.lines().next().unwrap_or_default()
        ));
    }
    std::fs::rename(fresh.join(&name), &jar).unwrap_or_else(|error| panic!("{}: {error}", jar.display()));
    Ok(jar)
}

/// The definitions of each release; `None`, and why on standard error, where there is no Maven. Where everything is
/// meant to be there, that is a failure.
fn jars() -> Option<&'static [(&'static str, Protocol)]> {
    match &*JARS {
        Ok(jars) => Some(jars),
        Err(why) if std::env::var_os("CI").is_some() => panic!("not-run: {why}"),
        Err(why) => {
            // Past the test runner, which hides what passing tests print.
            let _ = writeln!(std::io::stderr(), "not-run: {why}");
            None
        }
    }
}

fn layout(protocol: &Protocol, message: &str, version: ApiVersion) -> Arc<Layout> {
    protocol.layout(message, version).unwrap_or_else(|error| panic!("{message} v{version}: {error}"))
}

/// Where two layouts of a message first differ, and in what; numbers of fields and structs are no difference.
fn difference(ours: &Layout, theirs: &Layout) -> Option<String> {
    Sides { ours, theirs }.structs(ours.root(), theirs.root(), &ours.spec().name)
}

struct Sides<'l> {
    ours: &'l Layout,
    theirs: &'l Layout,
}

impl Sides<'_> {
    fn structs(&self, ours: &StructLayout, theirs: &StructLayout, place: &str) -> Option<String> {
        if (&ours.name, ours.flexible) != (&theirs.name, theirs.flexible) {
            let side = |side: &StructLayout| format!("struct {}, flexible {}", side.name, side.flexible);
            return Some(format!("{place}: {}; {}", side(ours), side(theirs)));
        }
        // Untagged in wire order, then tagged by tag.
        let fields = |layout: &Layout, side: &StructLayout| -> Vec<Field> {
            side.fields.iter().chain(&side.tagged).map(|&number| layout.field(number).clone()).collect()
        };
        let (ours, theirs) = (fields(self.ours, ours), fields(self.theirs, theirs));
        let pairs = ours.iter().zip(&theirs).find_map(|(ours, theirs)| self.fields(ours, theirs, place));
        pairs.or_else(|| {
            let names = |fields: &[Field]| fields.iter().map(|field| field.name.to_string()).collect::<Vec<_>>();
            (ours.len() != theirs.len()).then(|| format!("{place}: fields {:?}; {:?}", names(&ours), names(&theirs)))
        })
    }

    fn fields(&self, ours: &Field, theirs: &Field, place: &str) -> Option<String> {
        let place = format!("{place}.{}", ours.name);
        // Everything but the number of the struct, which is followed instead.
        let flat = |field: &Field| {
            let wire = match field.wire {
                WireType::Struct { nullable, .. } => WireType::Struct { id: 0, nullable },
                WireType::Array { compact, nullable, element: Element::Struct(_) } => {
                    WireType::Array { compact, nullable, element: Element::Struct(0) }
                }
                other => other,
            };
            (field.name.clone(), wire, field.tag, field.default.clone(), field.map_key)
        };
        if flat(ours) != flat(theirs) {
            return Some(format!("{place}: {:?}; {:?}", flat(ours), flat(theirs)));
        }
        let structure = |wire| match wire {
            WireType::Struct { id, .. } | WireType::Array { element: Element::Struct(id), .. } => Some(id),
            _ => None,
        };
        let (ours, theirs) = (structure(ours.wire)?, structure(theirs.wire)?);
        self.structs(self.ours.structure(ours), self.theirs.structure(theirs), &place)
    }
}

#[test]
fn bundled_layouts_are_those_of_kafka_clients_at_every_version() {
    let Some(jars) = jars() else { return };
    let (mut differences, mut alone) = (Vec::new(), Vec::new());
    for spec in bundled().messages() {
        let mut compared = BTreeSet::new();
        for (release, theirs) in jars {
            let known = theirs.message(&spec.name).map_or(VersionRange::NONE, |theirs| theirs.valid_versions);
            for version in spec.valid_versions.intersect(known).iter() {
                compared.insert(version.0);
                let ours = layout(bundled(), &spec.name, version);
                let found = difference(&ours, &layout(theirs, &spec.name, version));
                differences.extend(found.map(|found| format!("v{version}, {release}: {found}")));
            }
        }
        alone.extend(
            spec.valid_versions
                .iter()
                .filter(|version| !compared.contains(&version.0))
                .map(|version| (&spec.name, version)),
        );
    }
    assert!(differences.is_empty(), "{differences:#?}");
    assert!(alone.is_empty(), "versions that no jar vouches for: {alone:?}");
}

#[test]
fn bundled_definitions_say_of_an_api_what_kafka_clients_says() {
    let Some(jars) = jars() else { return };
    for spec in bundled().messages() {
        for (release, theirs) in jars {
            let theirs = theirs.message(&spec.name).unwrap_or_else(|| panic!("{release} has no {}", spec.name));
            assert_eq!((spec.kind, spec.api_key), (theirs.kind, theirs.api_key), "{}, {release}", spec.name);
            let flexible = |theirs: &MessageSpec, version| theirs.flexible_versions.contains(version);
            for version in spec.valid_versions.intersect(theirs.valid_versions).iter() {
                assert_eq!(flexible(spec, version), flexible(theirs, version), "{} v{version}, {release}", spec.name);
            }
        }
    }
}

/// Paths of the fields that one definition calls ignorable and the other does not. A layout has no such mark, but an
/// encoder goes by it.
fn ignorable_otherwise(ours: &MessageSpec, theirs: &MessageSpec) -> Vec<String> {
    fn walk(
        ours: (&MessageSpec, &[FieldSpec]),
        theirs: (&MessageSpec, &[FieldSpec]),
        place: &str,
        found: &mut Vec<String>,
    ) {
        for our_field in ours.1 {
            let Some(their_field) = theirs.1.iter().find(|field| field.name == our_field.name) else { continue };
            let place = format!("{place}.{}", our_field.name);
            let fields = |spec: &MessageSpec, field: &FieldSpec| {
                field.field_type.struct_name().map(|name| spec.structs[name].fields.clone()).unwrap_or_default()
            };
            walk((ours.0, &fields(ours.0, our_field)), (theirs.0, &fields(theirs.0, their_field)), &place, found);
            if our_field.ignorable != their_field.ignorable {
                found.push(place);
            }
        }
    }
    let mut found = Vec::new();
    walk((ours, &ours.fields), (theirs, &theirs.fields), &ours.name, &mut found);
    found
}

#[test]
fn bundled_fields_are_ignorable_where_those_of_kafka_clients_are() {
    let Some(jars) = jars() else { return };
    for (release, protocol) in jars {
        let theirs = |spec: &MessageSpec| protocol.message(&spec.name).expect("each jar has each message").clone();
        let found: Vec<String> =
            bundled().messages().flat_map(|spec| ignorable_otherwise(spec, &theirs(spec))).collect();
        // Only request header v0 has no client id; where that is gone the mark has nothing to say.
        let differ: &[&str] = if *release == "4.4.0" { &["RequestHeader.ClientId"] } else { &[] };
        assert_eq!(found, differ, "{release}");
    }
}

#[test]
fn every_definition_of_kafka_clients_lowers_and_round_trips() {
    let Some(jars) = jars() else { return };
    for (release, protocol) in jars {
        let mut layouts = 0;
        for spec in protocol.messages() {
            for version in spec.valid_versions.iter() {
                let layout = layout(protocol, &spec.name, version);
                for value in [layout.smallest_instance(), layout.default_value()] {
                    let bytes = encode(&layout, &value).unwrap_or_else(|error| panic!("{release}, {layout}: {error}"));
                    properties::value_round_trips(&layout, &value);
                    properties::decode_is_total(&layout, &bytes);
                }
                layouts += 1;
            }
        }
        // Each has some 190 messages, most of them in several versions.
        assert!(layouts > 500, "{release}: {layouts} layouts");
    }
}

/// A bundled definition with one thing changed, at its highest version, against itself unchanged.
fn check_caught(message: &str, change: &dyn Fn(&mut Json), place: &str) {
    let (_, text) = bundled_texts().find(|(name, _)| *name == format!("{message}.json")).expect("it is bundled");
    let plain: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut json: Json = serde_json::from_str(&plain.join("\n")).expect("it is JSON");
    change(&mut json);
    let mutant = MessageSpec::parse(&json.to_string()).unwrap_or_else(|error| panic!("{place}: {error}"));
    let version = mutant.valid_versions.highest().expect("it has versions");
    let mutant = Layout::new(&Arc::new(mutant), version).unwrap_or_else(|error| panic!("{place}: {error}"));
    let found = difference(&mutant, &layout(bundled(), message, version));
    assert!(found.as_ref().is_some_and(|found| found.starts_with(place)), "{place}: {found:?}");
}

/// The field at a path of names.
fn field<'j>(json: &'j mut Json, path: &[&str]) -> &'j mut Json {
    path.iter().fold(json, |json, name| {
        let fields = json["fields"].as_array_mut().expect("it has fields");
        fields.iter_mut().find(|field| field["name"] == *name).expect("there is such a field")
    })
}

#[test]
fn a_mutated_definition_is_caught() {
    const DESCRIBE: &str = "DescribeConfigsResponse";
    let documentation = &["Results", "Configs", "Documentation"];
    check_caught(
        DESCRIBE,
        &|json| field(json, documentation)["nullableVersions"] = json!("none"),
        "DescribeConfigsResponse.Results.Configs.Documentation:",
    );
    check_caught(
        DESCRIBE,
        &|json| field(json, documentation)["type"] = json!("bytes"),
        "DescribeConfigsResponse.Results.Configs.Documentation:",
    );
    check_caught(
        DESCRIBE,
        &|json| field(json, documentation)["flexibleVersions"] = json!("none"),
        "DescribeConfigsResponse.Results.Configs.Documentation:",
    );
    check_caught(
        DESCRIBE,
        &|json| field(json, documentation)["name"] = json!("Docs"),
        "DescribeConfigsResponse.Results.Configs.Docs:",
    );
    check_caught(
        DESCRIBE,
        &|json| field(json, documentation)["versions"] = json!("0-3"),
        "DescribeConfigsResponse.Results.Configs:",
    );
    check_caught(
        DESCRIBE,
        &|json| field(json, &["Results", "ErrorCode"])["type"] = json!("int32"),
        "DescribeConfigsResponse.Results.ErrorCode:",
    );
    check_caught(
        DESCRIBE,
        &|json| field(json, &["Results", "ErrorCode"])["default"] = json!("-1"),
        "DescribeConfigsResponse.Results.ErrorCode:",
    );
    check_caught(
        DESCRIBE,
        &|json| field(json, &["Results"])["nullableVersions"] = json!("0+"),
        "DescribeConfigsResponse.Results:",
    );
    check_caught(
        DESCRIBE,
        &|json| field(json, &["Results", "ResourceName"])["mapKey"] = json!(true),
        "DescribeConfigsResponse.Results.ResourceName:",
    );
    check_caught(DESCRIBE, &|json| json["flexibleVersions"] = json!("none"), "DescribeConfigsResponse: struct");
    let swap = |json: &mut Json| field(json, &["Results"])["fields"].as_array_mut().expect("it has fields").swap(0, 1);
    check_caught(DESCRIBE, &swap, "DescribeConfigsResponse.Results.");
    let drop_last = |json: &mut Json| {
        field(json, &["Results"])["fields"].as_array_mut().expect("it has fields").pop();
    };
    check_caught(DESCRIBE, &drop_last, "DescribeConfigsResponse.Results: fields");
    let tagged = &["FinalizedFeaturesEpoch"];
    check_caught("ApiVersionsResponse", &|json| field(json, tagged)["tag"] = json!(9), "ApiVersionsResponse.");
    check_caught(
        "ApiVersionsResponse",
        &|json| field(json, tagged)["default"] = json!("0"),
        "ApiVersionsResponse.FinalizedFeaturesEpoch:",
    );
}

/// A jar with these entries.
fn make_jar(path: &Path, entries: &[(String, &str)]) {
    let mut jar = zip::ZipWriter::new(std::fs::File::create(path).expect("the folder is writable"));
    for (name, text) in entries {
        jar.start_file(name.as_str(), SimpleFileOptions::default()).expect("a jar takes files");
        jar.write_all(text.as_bytes()).expect("a jar takes bytes");
    }
    jar.finish().expect("a jar can be closed");
}

#[test]
fn a_jar_and_a_directory_give_the_definitions_they_hold() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let (jar, directory) = (folder.path().join("some.jar"), folder.path().join("message"));
    std::fs::create_dir(&directory).expect("it is writable");
    let mut entries = vec![
        ("META-INF/MANIFEST.MF".to_owned(), "Manifest-Version: 1.0\n"),
        ("common/message/README.md".to_owned(), "no definition"),
        ("common/other.json".to_owned(), "no definition"),
    ];
    for (name, text) in bundled_texts() {
        std::fs::write(directory.join(name), text).expect("it is writable");
        entries.push((format!("common/message/{name}"), text));
    }
    make_jar(&jar, &entries);
    let specs = |protocol: &Protocol| protocol.messages().map(|spec| (**spec).clone()).collect::<Vec<_>>();
    let ours = specs(bundled());
    assert_eq!(specs(&from_jar(&jar).expect("it is a jar")), ours);
    assert_eq!(specs(&from_directory(&directory).expect("it holds definitions")), ours);
}

#[test]
fn what_is_no_jar_of_definitions_is_named() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let says = |name: &str, text: &str| {
        let error = format!("{:#}", from_jar(&folder.path().join(name)).expect_err(name));
        assert!(error.contains(name) && error.contains(text), "{error}");
    };
    says("missing.jar", "No such file");
    std::fs::write(folder.path().join("text.jar"), "hello").expect("it is writable");
    says("text.jar", "is not a jar");
    make_jar(&folder.path().join("other.jar"), &[("a.json".to_owned(), "{}")]);
    says("other.jar", "is it a kafka-clients jar?");
    let broken = [("common/message/Broken.json".to_owned(), "{\"name\": 1}")];
    make_jar(&folder.path().join("broken.jar"), &broken);
    let error = format!("{:#}", from_jar(&folder.path().join("broken.jar")).expect_err("a broken definition"));
    assert!(error.contains("Broken.json"), "{error}");
}
