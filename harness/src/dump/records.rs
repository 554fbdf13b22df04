//! The inside of a records field, which is opaque to the codec: the headers of its batches.

use super::Kind;
use super::lines::{Place, Writer, join};
use super::value_text::octets_text;
use codec::{NodeRef, WireType};

/// The header of a batch of magic 2: name, type, size in bytes, meaning. Protocol guide, "Record Batch".
const FIELDS: [(&str, &str, usize, &str); 13] = [
    ("baseOffset", "int64", 8, "offset of the first record"),
    ("batchLength", "int32", 4, "bytes after this field"),
    ("partitionLeaderEpoch", "int32", 4, "set by the broker"),
    ("magic", "int8", 1, "format of the batch"),
    ("crc", "uint32", 4, "CRC-32C of everything after it"),
    ("attributes", "int16", 2, "compression, timestamp type, transactional, control"),
    ("lastOffsetDelta", "int32", 4, "last offset less baseOffset"),
    ("baseTimestamp", "int64", 8, "timestamp of the first record, or -1"),
    ("maxTimestamp", "int64", 8, "greatest timestamp, or -1"),
    ("producerId", "int64", 8, "-1 without an idempotent producer"),
    ("producerEpoch", "int16", 2, "-1 without an idempotent producer"),
    ("baseSequence", "int32", 4, "-1 without an idempotent producer"),
    ("recordsCount", "int32", 4, "records that follow, perhaps compressed"),
];
/// Size of such a header in bytes.
const HEADER: usize = 61;

impl<'a> Writer<'a> {
    /// Length and batch headers of a records field that holds batches of magic 2; what is older or cut is not opened.
    pub(super) fn batches(&mut self, records: &[u8], node: NodeRef<'a>, at: Place<'_>) {
        let start = node.node().end as usize - records.len();
        let at = Place { kind: Kind::Records, ..at };
        let (mut position, mut index) = (0, 0);
        while let Some(batch) =
            records.get(position..).filter(|batch| batch.len() >= HEADER && batch.get(16) == Some(&2))
        {
            let length = batch.get(8..12).and_then(|length| length.try_into().ok()).map_or(0, u32::from_be_bytes);
            let size = length as usize + 12;
            if size < HEADER || size > batch.len() {
                break;
            }
            if index == 0 {
                let (path, span) = (join(at.path, "length"), node.node().start as usize..start);
                let compact = matches!(node.wire(), Some(WireType::Bytes { compact: true, .. }));
                let type_name = if compact { "uvarint" } else { "int32" };
                let value = match compact {
                    true => format!("{} (compact, len+1)", self.uvarint(span.start).0),
                    false => records.len().to_string(),
                };
                let line = self.push(at.depth, "length", Some(&path), type_name, span, at.kind);
                (line.value, line.note) = (value, "bytes of records".to_owned());
            }
            let path = format!("{}[{index}]", at.path);
            let name = format!("RecordBatch[{index}]");
            let from = start + position;
            let line = self.push(at.depth, name, Some(&path), "RecordBatch v2", from..from + size, at.kind);
            line.value = "struct".to_owned();
            let mut field_start = 0;
            for (name, type_name, width, note) in FIELDS {
                let octets = batch.get(field_start..field_start + width).unwrap_or_default();
                // Sign-extended from its width, but for the one unsigned field.
                let unsigned = octets.iter().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
                let unused = 64 - 8 * u32::try_from(width).unwrap_or(8);
                let value = match type_name {
                    "uint32" => format!("{unsigned:#010x}"),
                    _ => ((unsigned << unused).cast_signed() >> unused).to_string(),
                };
                let span = from + field_start..from + field_start + width;
                let line = self.push(at.depth + 1, name, Some(&join(&path, name)), type_name, span, at.kind);
                (line.value, line.note) = (value, note.to_owned());
                field_start += width;
            }
            if size > HEADER {
                let span = from + HEADER..from + size;
                self.push(at.depth + 1, "records", Some(&join(&path, "records")), "bytes", span, Kind::Records).value =
                    octets_text(batch.get(HEADER..size).unwrap_or_default());
            }
            (position, index) = (position + size, index + 1);
        }
        if index > 0 && position < records.len() {
            let rest = records.get(position..).unwrap_or_default();
            let span = start + position..start + records.len();
            let line = self.push(at.depth, "rest", Some(&join(at.path, "rest")), "bytes", span, at.kind);
            (line.value, line.note) = (octets_text(rest), "no whole batch of magic 2".to_owned());
        }
    }
}
