//! What the benches share: the messages, their bytes written by none of the codecs measured, and the peers, each behind the
//! same few calls.

pub mod describe_configs;
pub mod names;
pub mod peers;
pub mod uvarints;
pub mod yardstick;

use codec::{ApiVersion, Layout, MessageSpec};
use std::sync::Arc;

/// The layout of a bundled definition at one version.
pub fn layout(definition: &str, version: i16) -> Layout {
    let spec = MessageSpec::parse(definition).expect("a definition");
    Layout::new(&Arc::new(spec), ApiVersion(version)).expect("a version of it")
}

/// Appends an unsigned varint, in a way that none of the encoders measured has.
pub fn push_uvarint(out: &mut Vec<u8>, value: u32) {
    let groups = (1..5).take_while(|group| value >> (7 * group) > 0).count();
    out.extend((0..groups).map(|group| (value >> (7 * group)) as u8 | 0x80));
    out.push((value >> (7 * groups)) as u8);
}
