//! The files of `vectors/` that are compiled in.

use include_dir::{Dir, include_dir};

static VECTORS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../vectors");

/// A file of `vectors/`, such as `rules.json`; empty where there is none.
pub fn text(path: &str) -> &'static str {
    VECTORS.get_file(path).and_then(|file| file.contents_utf8()).unwrap_or_default()
}

/// Name and text of the JSON files of a folder of `vectors/`, by name.
pub fn texts(folder: &str) -> Vec<(&'static str, &'static str)> {
    let Some(folder) = VECTORS.get_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = folder
        .files()
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "json"))
        .filter_map(|file| Some((file.path().file_name()?.to_str()?, file.contents_utf8()?)))
        .collect();
    files.sort_unstable();
    files
}
