//! Every committed seed of the codec's fuzz targets obeys the law its target checks, without a fuzzer at hand.

use codec::Protocol;
use codec::properties::{any_value_round_trips, decode_any_is_total, frames_come_apart_alike};
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

fn replay(target: &str, least: usize, law: fn(&Protocol, &[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let schemas = files(&root.join("schemas"), "json");
    let texts = schemas.iter().map(|(file, text)| (file.as_str(), std::str::from_utf8(text).unwrap_or_default()));
    let protocol = Protocol::parse(texts).unwrap_or_else(|error| panic!("{error}"));
    let seeds = files(&root.join("corpus").join(target), "bin");
    assert!(seeds.len() >= least, "the corpus is there");
    for (_, seed) in seeds {
        law(&protocol, &seed);
    }
}

#[test]
fn the_decode_corpus_obeys_the_laws() {
    replay("decode", 300, decode_any_is_total);
}

#[test]
fn the_roundtrip_corpus_obeys_the_laws() {
    replay("roundtrip", 50, any_value_round_trips);
}

#[test]
fn the_frames_corpus_obeys_the_laws() {
    replay("frames", 8, frames_come_apart_alike);
}

/// Our half of what the target `differential` checks; no peer is linked here.
#[test]
fn the_differential_corpus_obeys_the_laws() {
    replay("differential", 20, decode_any_is_total);
}
