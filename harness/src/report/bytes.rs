//! Bytes for the page: 16 a row with offsets and text, the deviating ones marked.

use std::fmt::Write;
use std::ops::Range;

/// How many hex digits of one string are shown.
pub const SHOWN_DIGITS: usize = 4096;

/// Equal rows in a run of more than this many are told by one line where they stand beside what was wanted.
const EQUAL_ROWS: usize = 6;

/// What stands out in a dump.
#[derive(Default)]
pub struct Marks {
    /// Where the outcome says that the deviation is.
    pub at: Option<Range<usize>>,
    /// Where the bytes are not those they are compared with, ascending.
    pub differ: Vec<Range<usize>>,
    /// Leave out long runs of rows without a mark.
    pub fold: bool,
}

/// The bytes of a hex string; spaces are skipped. None when it is not one, or empty.
pub fn parse(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        hex.chars().filter(|c| *c != ' ').map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| !digits.is_empty() && digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Where `want` and `got` differ, in offsets of each. Between a common start and a common end everything differs, unless
/// as many bytes lie there in both: then byte by byte.
pub fn differences(want: &[u8], got: &[u8]) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let start = want.iter().zip(got).take_while(|(a, b)| a == b).count();
    let (want_rest, got_rest) = (&want[start..], &got[start..]);
    let end = want_rest.iter().rev().zip(got_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (want_middle, got_middle) = (&want_rest[..want_rest.len() - end], &got_rest[..got_rest.len() - end]);
    if want_middle.len() != got_middle.len() {
        let range = |middle: &[u8]| (!middle.is_empty()).then(|| start..start + middle.len()).into_iter().collect();
        return (range(want_middle), range(got_middle));
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (index, _) in want_middle.iter().zip(got_middle).enumerate().filter(|(_, (a, b))| a != b) {
        let place = start + index;
        match ranges.last_mut() {
            Some(last) if last.end == place => last.end += 1,
            _ => ranges.push(place..place + 1),
        }
    }
    (ranges.clone(), ranges)
}

/// `first difference at 0x1f; 2 bytes fewer than wanted`; none for equal bytes.
pub fn difference_sentence(want: &[u8], got: &[u8]) -> Option<String> {
    if want == got {
        return None;
    }
    let start = want.iter().zip(got).take_while(|(a, b)| a == b).count();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let length = match (want.len(), got.len()) {
        (want, got) if got < want => format!("{} byte{} fewer than wanted", want - got, plural(want - got)),
        (want, got) if got > want => format!("{} byte{} more than wanted", got - want, plural(got - want)),
        _ => "same length".to_string(),
    };
    Some(format!("first difference at 0x{start:02x}; {length}"))
}

/// The dump as HTML for inside `<pre>`, at most [`SHOWN_DIGITS`]: offset, hex, text; `<b>` where the deviation is,
/// `<u>` where bytes differ.
pub fn html(bytes: &[u8], marks: &Marks) -> String {
    let shown = &bytes[..bytes.len().min(SHOWN_DIGITS / 2)];
    let mut html = String::with_capacity(shown.len() * 6);
    let rows: Vec<(usize, &[u8])> = shown.chunks(16).enumerate().map(|(row, bytes)| (row * 16, bytes)).collect();
    for run in rows.chunk_by(|a, b| marks.touch(a) == marks.touch(b)) {
        if marks.fold && run.len() > EQUAL_ROWS && !marks.touch(&run[0]) {
            row_html(&mut html, run[0], marks);
            let _ = writeln!(html, "<i>  ⋮  {} rows as wanted</i>", run.len() - 2);
            row_html(&mut html, run[run.len() - 1], marks);
        } else {
            run.iter().for_each(|&row| row_html(&mut html, row, marks));
        }
    }
    html
}

/// `4,096 bytes, the first 2,048 shown` when a dump is cut; the length otherwise.
pub fn length_note(bytes: &[u8]) -> String {
    let shown = SHOWN_DIGITS / 2;
    match bytes.len() {
        1 => "1 byte".to_string(),
        length if length > shown => format!("{length} bytes, cut: the first {shown} are shown"),
        length => format!("{length} bytes"),
    }
}

impl Marks {
    /// Which tags the byte at `place` stands in.
    fn on(&self, place: usize) -> (bool, bool) {
        let at = self.at.as_ref().is_some_and(|range| range.contains(&place));
        (at, self.differ.iter().any(|range| range.contains(&place)))
    }

    fn touch(&self, row: &(usize, &[u8])) -> bool {
        (row.0..row.0 + row.1.len()).any(|place| self.on(place) != (false, false))
    }
}

fn row_html(html: &mut String, (offset, bytes): (usize, &[u8]), marks: &Marks) {
    let _ = write!(html, "<i>{offset:04x}</i>  ");
    marked(html, offset, bytes, marks, " ", |html, byte| {
        let _ = write!(html, "{byte:02x}");
    });
    for _ in bytes.len()..16 {
        html.push_str("   ");
    }
    html.push_str("  ");
    marked(html, offset, bytes, marks, "", |html, byte| match byte {
        b'<' => html.push_str("&lt;"),
        b'>' => html.push_str("&gt;"),
        b'&' => html.push_str("&amp;"),
        b' '..=b'~' => html.push(char::from(byte)),
        _ => html.push('·'),
    });
    html.push('\n');
}

/// Writes each byte, separated, with tags around runs of equally marked ones.
fn marked(html: &mut String, offset: usize, bytes: &[u8], marks: &Marks, gap: &str, put: impl Fn(&mut String, u8)) {
    let places: Vec<_> = bytes.iter().enumerate().map(|(index, &byte)| (marks.on(offset + index), byte)).collect();
    for (number, run) in places.chunk_by(|a, b| a.0 == b.0).enumerate() {
        let (open, close) = match run[0].0 {
            (false, false) => ("", ""),
            (true, false) => ("<b>", "</b>"),
            (false, true) => ("<u>", "</u>"),
            (true, true) => ("<b><u>", "</u></b>"),
        };
        html.push_str(if number == 0 { "" } else { gap });
        html.push_str(open);
        for (index, (_, byte)) in run.iter().enumerate() {
            html.push_str(if index == 0 { "" } else { gap });
            put(html, *byte);
        }
        html.push_str(close);
    }
}
