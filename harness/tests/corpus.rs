//! Every committed seed of the suite's fuzz targets obeys the law its target checks, without a fuzzer at hand.

use kafka_conform::laws::{loaders_are_total, scripted_broker_keeps_to_its_script};
use std::path::Path;

fn replay(target: &str, least: usize, law: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target);
    let paths = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = paths.map(|entry| entry.unwrap_or_else(|error| panic!("{error}")).path());
    let seeds: Vec<_> = paths.filter(|path| path.extension().is_some_and(|found| found == "bin")).collect();
    assert!(seeds.len() >= least, "the corpus is there");
    for seed in seeds {
        law(&std::fs::read(&seed).unwrap_or_else(|error| panic!("{}: {error}", seed.display())));
    }
}

#[test]
fn the_json_corpus_obeys_the_laws() {
    replay("json", 50, loaders_are_total);
}

#[test]
fn the_scripted_broker_corpus_obeys_the_laws() {
    replay("scripted_broker", 10, scripted_broker_keeps_to_its_script);
}
