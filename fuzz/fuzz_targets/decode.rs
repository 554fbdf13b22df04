#![no_main]
//! Any bytes as any message: `codec::properties::decode_any_is_total` says what must hold.

use codec::Protocol;
use include_dir::{Dir, include_dir};
use std::sync::LazyLock;

static SCHEMAS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../schemas");

static PROTOCOL: LazyLock<Protocol> = LazyLock::new(|| {
    let files = SCHEMAS.files().filter_map(|file| Some((file.path().to_str()?, file.contents_utf8()?)));
    Protocol::parse(files).expect("bundled definitions parse")
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| codec::properties::decode_any_is_total(&PROTOCOL, data));
