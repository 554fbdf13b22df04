//! Message definitions: those compiled in, a directory of them, or a kafka-clients jar.

use anyhow::Context as _;
use codec::Protocol;
use include_dir::{Dir, include_dir};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::LazyLock;

/// Where a kafka-clients jar holds its definitions.
const JAR_FOLDER: &str = "common/message/";
/// The longest definition is below 10 kB; what claims to be far longer is none.
const DEFINITION_LIMIT: u64 = 1 << 20;

static SCHEMAS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../schemas");

static BUNDLED: LazyLock<Protocol> = LazyLock::new(|| {
    Protocol::parse(bundled_texts()).unwrap_or_else(|error| unreachable!("bundled definitions are tested: {error}"))
});

/// The definitions compiled in.
pub fn bundled() -> &'static Protocol {
    &BUNDLED
}

/// Name and text of each definition compiled in, by name.
pub fn bundled_texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut files: Vec<_> = SCHEMAS
        .files()
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "json"))
        .filter_map(|file| Some((file.path().to_str()?, file.contents_utf8()?)))
        .collect();
    files.sort_unstable();
    files.into_iter()
}

/// The definitions in the `*.json` files of a directory, such as an unpacked `common/message`.
pub fn from_directory(directory: &Path) -> anyhow::Result<Protocol> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("definitions in {}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("definition {}", path.display()))?;
            texts.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text));
        }
    }
    anyhow::ensure!(!texts.is_empty(), "{} holds no *.json definition", directory.display());
    parse(texts)
}

/// The definitions in a kafka-clients jar, every API that release knows.
pub fn from_jar(jar: &Path) -> anyhow::Result<Protocol> {
    let file = File::open(jar).with_context(|| format!("definitions in {}", jar.display()))?;
    let mut archive = zip::ZipArchive::new(file).with_context(|| format!("{} is not a jar", jar.display()))?;
    let mut texts = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).with_context(|| format!("reading {}", jar.display()))?;
        let name = entry.name().with_context(|| format!("reading {}", jar.display()))?.into_owned();
        let Some(name) = name.strip_prefix(JAR_FOLDER).filter(|name| name.ends_with(".json")) else { continue };
        let mut text = String::new();
        entry
            .take(DEFINITION_LIMIT)
            .read_to_string(&mut text)
            .with_context(|| format!("definition {name} in {}", jar.display()))?;
        texts.push((name.to_owned(), text));
    }
    anyhow::ensure!(!texts.is_empty(), "{} holds no {JAR_FOLDER}*.json: is it a kafka-clients jar?", jar.display());
    parse(texts)
}

fn parse(mut texts: Vec<(String, String)>) -> anyhow::Result<Protocol> {
    texts.sort();
    Ok(Protocol::parse(texts.iter().map(|(file, text)| (file.as_str(), text.as_str())))?)
}
