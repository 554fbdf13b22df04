//! Reports: pure functions of a run's rows and of the cases behind them.
//!
//! Nothing here names a peer or an API: rows, columns and texts all come from [`Results`] and [`CaseInfo`].

mod bytes;
pub mod diff;
mod evidence;
pub mod html;
pub mod junit;
pub mod markdown;
pub mod matrix;
pub mod merge;
pub mod terminal;
pub mod words;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

pub use diff::diff;
pub use merge::merge;

use crate::results::{CaseInfo, Results};
use matrix::Matrix;

/// The line on trademarks that every published page carries.
pub const NON_AFFILIATION: &str = "Apache Kafka is a trademark of the Apache Software Foundation; this is an \
                                   independent conformance report, not a certificate of the ASF.";

/// Writes `results.jsonl`, `matrix.json`, `matrix.md`, `junit.xml` and `index.html` into the folder `out`, which is
/// made if need be. Rows are brought into file order first, so that equal rows give equal files.
///
/// Each file appears whole or not at all. An error names the file and says what to do.
pub fn write(out: &Path, results: &Results, cases: &BTreeMap<String, CaseInfo>) -> io::Result<()> {
    let mut results = results.clone();
    results.sort();
    let matrix = Matrix::of(&results);
    fs::create_dir_all(out).map_err(|error| explain(out, error))?;
    replace(&out.join("results.jsonl"), &results.to_jsonl())?;
    replace(&out.join("matrix.json"), &matrix.to_json())?;
    replace(&out.join("matrix.md"), &markdown::render(&matrix, cases))?;
    replace(&out.join("junit.xml"), &junit::render(&matrix))?;
    replace(&out.join("index.html"), &html::render(&matrix, cases))
}

/// Writes a temporary file beside `path` and renames it, so that a reader sees the old text or the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().expect("report paths end in a file name").to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.partial"));
    let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| {
        // What is left of a failed write would only fill the disk further; the first error is the one to tell.
        let _ = fs::remove_file(&partial);
        explain(path, error)
    })
}

/// An error of the same kind that says which file and what to do about it.
fn explain(path: &Path, error: io::Error) -> io::Error {
    let advice = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space or choose another folder",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "make it writable or choose another folder"
        }
        io::ErrorKind::IsADirectory => "a folder stands where the file belongs: move it away",
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            "a file stands where a folder is needed: move it away or choose another folder"
        }
        _ => "choose another folder",
    };
    io::Error::new(error.kind(), format!("cannot write {}: {error}: {advice}", path.display()))
}
