//! What the targets share.

use codec::Protocol;
use include_dir::{Dir, include_dir};
use std::sync::LazyLock;

static SCHEMAS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../schemas");

static PROTOCOL: LazyLock<Protocol> = LazyLock::new(|| {
    let files = SCHEMAS.files().filter_map(|file| Some((file.path().to_str()?, file.contents_utf8()?)));
    Protocol::parse(files).expect("bundled definitions parse")
});

/// The definitions, compiled in.
pub fn protocol() -> &'static Protocol {
    &PROTOCOL
}
