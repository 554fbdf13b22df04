//! What a command says, on standard output and beside it. Nothing else in the suite writes to either:
//! the macros of the standard library end the process where there is no room.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Writes to standard output: plain where it is no terminal or `NO_COLOR` is set. A reader that has gone away, such as
/// `head`, is no error.
pub fn print(text: &str) -> io::Result<()> {
    print_with(|out| out.write_all(text.as_bytes()))
}

/// [`print`] for what is too large to be held as one text, or is told line by line.
pub fn print_with(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::new(anstream::AutoStream::auto(io::stdout()).lock());
    let written = write(&mut out).and_then(|()| out.flush());
    if written.is_err() {
        // What is in the buffer has nowhere to go, so it is not tried again when the buffer is dropped.
        let _ = out.into_parts();
    }
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => {
            other.map_err(|error| io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
        }
    }
}

/// A line on standard error. That nobody can read it is no reason to stop: what counts is in the report.
pub fn tell(line: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}
