#![no_main]
//! Any text as a definition, rules, sources, cases or a value: `kafka_conform::laws::loaders_are_total` says what must hold.

libfuzzer_sys::fuzz_target!(|data: &[u8]| kafka_conform::laws::loaders_are_total(data));
