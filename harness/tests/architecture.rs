//! Invariants of ARCHITECTURE.md that are about the sources themselves.

use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Every file below a folder that ends so, but for what was built there.
fn files(folder: &str, ends: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(ROOT).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !["target", ".git", "artifacts", "corpus"].contains(&name.as_str()) {
                folders.push(path);
            } else if ends.iter().any(|end| name.ends_with(end)) {
                found.push((path.clone(), std::fs::read_to_string(&path).unwrap_or_default()));
            }
        }
    }
    found.sort();
    found
}

/// The part of a source before its tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

#[test]
fn the_codec_does_no_io_and_forbids_unsafe() {
    for (path, text) in files("codec/src", &[".rs"]) {
        for word in ["std::fs", "std::net", "std::io", "std::process", "std::env", "std::time", "println!", "unsafe "] {
            assert!(!without_tests(&text).contains(word), "{}: {word}", path.display());
        }
    }
    let manifest = std::fs::read_to_string(format!("{ROOT}/codec/Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    let dependencies = manifest.split("[dependencies]").nth(1).and_then(|rest| rest.split('[').next()).unwrap();
    let names: Vec<&str> = dependencies.lines().filter_map(|line| line.split([' ', '.', '=']).next()).collect();
    assert!(names.iter().all(|name| ["", "#", "serde", "serde_json"].contains(name)), "{names:?}");
}

#[test]
fn what_is_said_goes_one_way() {
    // The macros end the process where nobody can read what it says.
    for (path, text) in files("harness/src", &[".rs"]) {
        for word in ["print!(", "println!("] {
            let found = without_tests(&text).match_indices(word).find(|(at, _)| !text[..*at].ends_with("progress."));
            assert_eq!(found, None, "{}: output::print or output::tell", path.display());
        }
    }
}

#[test]
fn version_arithmetic_is_in_layouts_and_the_header_exceptions_only() {
    for (path, text) in files("codec/src", &[".rs"]) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // `spec` checks ranges against each other, `properties` picks a version that exists.
        if ["version.rs", "layout.rs", "message.rs", "spec.rs", "properties.rs"].contains(&name.as_str()) {
            continue;
        }
        for words in ["versions.contains(", "version >", "version <", "version.0 "] {
            assert!(!without_tests(&text).contains(words), "{name}: {words}");
        }
    }
    let message = std::fs::read_to_string(format!("{ROOT}/codec/src/message.rs")).unwrap();
    assert!(message.contains("KIP-511"), "the exception of ApiVersions has its KIP");
}

#[test]
fn nothing_of_ours_links_a_peer_but_the_benches_and_the_fuzz_targets() {
    let lock = std::fs::read_to_string(format!("{ROOT}/Cargo.lock")).unwrap();
    for peer in ["kafka-protocol", "rdkafka", "rdkafka-sys", "krabka-protocol", "tansu-sans-io"] {
        assert!(!lock.contains(&format!("name = \"{peer}\"")), "{peer} is linked");
    }
}

#[test]
fn nothing_names_a_place_of_one_machine() {
    let ends = [".rs", ".toml", ".json", ".md", ".java", ".go", ".xml", ".properties", ".html", "run", "nightly"];
    for (path, text) in files(".", &ends) {
        if path.ends_with("harness/tests/architecture.rs") {
            continue;
        }
        for words in ["/work/", "/root/", "/tmp/", "/home/", "artifactory"] {
            let line = text.lines().position(|line| line.contains(words));
            assert!(line.is_none(), "{}:{}: {words}", path.display(), line.unwrap_or(0) + 1);
        }
    }
}

#[test]
fn definitions_have_words_of_ours_for_every_message_field_and_version() {
    for spec in kafka_conform::definitions::bundled().messages() {
        assert!(spec.about.is_some(), "{}: about", spec.name);
        for version in spec.valid_versions.iter() {
            assert!(spec.history.contains_key(&version.0), "{}: history of version {version}", spec.name);
        }
        let fields = spec.fields.iter().chain(spec.structs.values().flat_map(|structure| &structure.fields));
        for field in fields {
            assert!(field.about.is_some(), "{}.{}: about", spec.name, field.name);
        }
    }
}
