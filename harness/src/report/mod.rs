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

use crate::coverage::Coverage;
use crate::results::{CaseInfo, Results};
use matrix::Matrix;

/// The line on trademarks that every published page carries.
pub const NON_AFFILIATION: &str = "Apache Kafka is a trademark of the Apache Software Foundation; this is an \
                                   independent conformance report, not a certificate of the ASF.";

/// What a report is made into, beside `results.jsonl`, which it is made from.
const PAGES: [&str; 4] = ["matrix.json", "matrix.md", "junit.xml", "index.html"];

/// Makes the text of a page.
type Page<'p> = Box<dyn FnOnce() -> String + Send + 'p>;

/// Takes the pages of an earlier run away, so that none stands beside the rows of another one, however that ends.
pub fn remove_pages(out: &Path) -> io::Result<()> {
    for name in PAGES {
        let path = out.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(explain(&path, error)),
            _ => {}
        }
    }
    Ok(())
}

/// An error where a folder stands in place of a page, which nothing here would take away.
pub fn check_pages(out: &Path) -> io::Result<()> {
    let folder = PAGES.iter().map(|name| out.join(name)).find(|path| path.is_dir());
    folder.map_or(Ok(()), |path| Err(explain(&path, io::ErrorKind::IsADirectory.into())))
}

/// Writes `results.jsonl`, `matrix.json`, `matrix.md`, `junit.xml` and `index.html` into the folder `out`, which is
/// made if need be. Rows are brought into file order first, so that equal rows give equal files. `coverage` is told of
/// where it is given.
///
/// Each file appears whole or not at all, and none before all could be written. An error names the file and says what to
/// do.
pub fn write(
    out: &Path,
    results: &Results,
    cases: &BTreeMap<String, CaseInfo>,
    coverage: Option<&Coverage>,
) -> io::Result<()> {
    let mut results = results.clone();
    results.sort();
    let matrix = Matrix { coverage, ..Matrix::of(&results) };
    fs::create_dir_all(out).map_err(|error| explain(out, error))?;
    let pages: [Page<'_>; 4] = [
        Box::new(|| matrix.to_json()),
        Box::new(|| markdown::render(&matrix, cases)),
        Box::new(|| junit::render(&matrix)),
        Box::new(|| html::render(&matrix, cases)),
    ];
    let pages = std::thread::scope(|scope| {
        pages
            .map(|page| scope.spawn(page))
            .map(|page| page.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let rows = ("results.jsonl", results.to_jsonl());
    let files: Vec<(&str, String)> = std::iter::once(rows).chain(PAGES.into_iter().zip(pages)).collect();
    // A temporary file beside each, renamed when all are there: a reader sees the old text or the new one.
    let partial = |name: &str| out.join(format!(".{name}.partial"));
    let each = |step: &dyn Fn(&str, &str) -> io::Result<()>| {
        files.iter().try_for_each(|(name, text)| step(name, text).map_err(|error| explain(&out.join(name), error)))
    };
    let written = each(&|name, text| fs::write(partial(name), text))
        .and_then(|()| each(&|name, _| fs::rename(partial(name), out.join(name))));
    if written.is_err() {
        // What is left of a failed write would only fill the disk further; the first error is the one to tell.
        for (name, _) in &files {
            let _ = fs::remove_file(partial(name));
        }
    }
    written
}

/// An error of the same kind that says which file and what to do about it.
pub(crate) fn explain(path: &Path, error: io::Error) -> io::Error {
    let advice = match error.kind() {
        io::ErrorKind::FileTooLarge => "files may not grow so large here (ulimit -f): choose another folder or limit",
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
