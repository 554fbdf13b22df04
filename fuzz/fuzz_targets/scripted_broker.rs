#![no_main]
//! Any bytes from a client to the scripted broker: `kafka_conform::laws::scripted_broker_keeps_to_its_script` says what
//! must hold.

libfuzzer_sys::fuzz_target!(|data: &[u8]| kafka_conform::laws::scripted_broker_keeps_to_its_script(data));
