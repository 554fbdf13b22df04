#![no_main]
//! Any bytes as any message: `codec::properties::decode_any_is_total` says what must hold.

use codec::properties::decode_any_is_total;

libfuzzer_sys::fuzz_target!(|data: &[u8]| decode_any_is_total(kafka_conform_fuzz::protocol(), data));
