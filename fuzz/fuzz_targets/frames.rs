#![no_main]
//! Any stream as frames, whole and in pieces: `codec::properties::frames_come_apart_alike` says what must hold.

use codec::properties::frames_come_apart_alike;

libfuzzer_sys::fuzz_target!(|data: &[u8]| frames_come_apart_alike(kafka_conform_fuzz::protocol(), data));
