//! Message definitions: those compiled in, a directory of them, or a kafka-clients jar.

use codec::Protocol;
use include_dir::{Dir, include_dir};
use std::path::Path;
use std::sync::LazyLock;

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
    use anyhow::Context as _;
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("definitions in {}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("definition {}", path.display()))?;
            texts.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text));
        }
    }
    anyhow::ensure!(!texts.is_empty(), "{} holds no *.json definition", directory.display());
    texts.sort();
    Ok(Protocol::parse(texts.iter().map(|(file, text)| (file.as_str(), text.as_str())))?)
}
