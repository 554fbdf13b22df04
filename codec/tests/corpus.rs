//! Every committed seed of the fuzz targets obeys the law its target checks, without a fuzzer at hand.

use codec::Protocol;
use std::path::Path;

fn files(folder: &Path, extension: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap_or_else(|error| panic!("{error}")).path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap_or_else(|error| panic!("{error}"))))
        .collect();
    files.sort();
    files
}

#[test]
fn the_decode_corpus_obeys_the_laws() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let schemas = files(&root.join("schemas"), "json");
    let texts = schemas.iter().map(|(file, text)| (file.as_str(), std::str::from_utf8(text).unwrap_or_default()));
    let protocol = Protocol::parse(texts).unwrap_or_else(|error| panic!("{error}"));
    let seeds = files(&root.join("corpus/decode"), "bin");
    assert!(seeds.len() >= 50, "the corpus is there");
    for (_, seed) in seeds {
        codec::properties::decode_any_is_total(&protocol, &seed);
    }
}
