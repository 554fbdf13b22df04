//! Values as the lines of a dump show them.

use super::lines::Writer;
use codec::{Fixed, NodeKind, NodeRef, WireType, hex, uuid_text};

/// Text longer than this is cut in the tree: the columns after it stay in sight.
const TEXT_SHOWN: usize = 48;
/// Bytes of a value shown in hex.
const OCTETS_SHOWN: usize = 12;

impl<'a> Writer<'a> {
    /// The value of a node, with its length as it is on the wire.
    pub(super) fn value_text(&self, node: NodeRef<'a>, wire: WireType) -> String {
        let start = node.node().start as usize;
        let length_text = |compact: bool, size: &str| match compact {
            true => format!("(compact, len+1={})", self.uvarint(start).0),
            false => format!("({size} len={})", node.octets().map_or(0, <[u8]>::len)),
        };
        match (node.node().kind, wire) {
            (NodeKind::Null, WireType::String { compact: true, .. } | WireType::Bytes { compact: true, .. }) => {
                "null (compact, len+1=0)".to_owned()
            }
            (NodeKind::Null, WireType::Array { compact: true, .. }) => "null (compact, n+1=0)".to_owned(),
            (NodeKind::Null, _) => {
                // Plain lengths are shown as they are: below -1 is read as null too.
                let octets = node.bytes();
                let negative = octets.iter().fold(-1_i64, |value, &byte| value << 8 | i64::from(byte));
                format!("null (int{} {negative})", 8 * octets.len())
            }
            (_, WireType::Fixed(fixed)) => self.fixed_text(node, fixed),
            (_, WireType::String { compact, .. }) => {
                let octets = node.octets().unwrap_or_default();
                let text = match std::str::from_utf8(octets) {
                    Ok(text) => quoted(text),
                    Err(_) => octets_text(octets),
                };
                format!("{text} {}", length_text(compact, "int16"))
            }
            (_, WireType::Bytes { compact, .. }) => {
                format!("{} {}", octets_text(node.octets().unwrap_or_default()), length_text(compact, "int32"))
            }
            (_, WireType::Array { .. }) => match node.count().unwrap_or_default() {
                1 => "1 element".to_owned(),
                count => format!("{count} elements"),
            },
            (_, WireType::Struct { .. }) => "struct".to_owned(),
        }
    }

    fn fixed_text(&self, node: NodeRef<'a>, fixed: Fixed) -> String {
        let integer = node.integer().unwrap_or_default();
        match fixed {
            Fixed::Bool => match node.bytes() {
                [byte] if *byte > 1 => format!("true ({byte:#04x})"),
                _ => (integer != 0).to_string(),
            },
            Fixed::Float64 => node.float().unwrap_or_default().to_string(),
            Fixed::Uuid => uuid_text(&node.uuid().unwrap_or_default()),
            _ => match self.number_name(node, integer) {
                Some(name) => format!("{integer} ({name})"),
                None => integer.to_string(),
            },
        }
    }

    /// What a number stands for, where it is an API key or an error code.
    fn number_name(&self, node: NodeRef<'a>, number: i64) -> Option<&'a str> {
        match &*node.layout_field()?.name {
            "RequestApiKey" | "ApiKey" => {
                let key = codec::ApiKey(i16::try_from(number).ok()?);
                Some(self.protocol?.api_by_key(key, codec::MessageKind::Request)?.api_name())
            }
            // 0 is most of them, and goes without saying.
            "ErrorCode" if number != 0 => super::error_name(number),
            _ => None,
        }
    }
}

/// Text in quotes, control characters escaped so that no terminal obeys them; long text is cut.
fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(TEXT_SHOWN).collect();
    let cut = shown.len() < text.len();
    shown = format!("{shown:?}");
    if cut {
        shown.push_str("...");
    }
    shown
}

/// Bytes in hex, cut.
pub(super) fn octets_text(octets: &[u8]) -> String {
    let plural = if octets.len() == 1 { "" } else { "s" };
    let shown = hex(octets.get(..octets.len().min(OCTETS_SHOWN)).unwrap_or_default());
    let dots = if octets.len() > OCTETS_SHOWN { "..." } else { "" };
    match octets.len() {
        0 => "0 bytes".to_owned(),
        length => format!("{length} byte{plural} {shown}{dots}"),
    }
}
