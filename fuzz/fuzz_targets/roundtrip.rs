#![no_main]
//! Any value of any message: `codec::properties::any_value_round_trips` says what must hold.

use codec::properties::any_value_round_trips;

libfuzzer_sys::fuzz_target!(|data: &[u8]| any_value_round_trips(kafka_conform_fuzz::protocol(), data));
