//! A blocking connection with deadlines, and what may come over it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::ANSWER;

/// The largest answer that is read, 16 MiB: a description of a thousand configs with documentation stays far below.
const ANSWER_LIMIT: u32 = 16 * 1024 * 1024;

/// What came within the time an answer is waited for.
pub enum Received {
    /// A whole frame, size included.
    Frame(Vec<u8>),
    /// The end of the connection, without a byte.
    Closed,
    /// Nothing.
    Silent,
    /// The beginning of a frame, and the rest of it not in time.
    Unfinished,
    /// Something that is no frame.
    Broken(String),
}

impl Received {
    /// A word or two for a report.
    pub fn describe(&self) -> String {
        match self {
            Received::Frame(_) => "an answer".to_owned(),
            Received::Closed => "closed".to_owned(),
            Received::Silent => "silent".to_owned(),
            Received::Unfinished => "an answer begins and does not end in time".to_owned(),
            Received::Broken(what) => what.clone(),
        }
    }
}

/// A connection, blocking with deadlines.
pub struct Connection {
    stream: TcpStream,
    /// What was sent over it, a request or a group of them each; what is sent again and again is held once.
    sent: Vec<Vec<u8>>,
}

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, ANSWER)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(ANSWER))?;
        Ok(Connection::over(stream))
    }

    /// A connection that is there.
    pub fn over(stream: TcpStream) -> Connection {
        Connection { stream, sent: Vec::new() }
    }

    /// What was sent over it, in order.
    pub fn sent(&self) -> &[Vec<u8>] {
        &self.sent
    }

    /// Sends bytes. That the broker closed the connection is seen when the answer is read.
    pub fn send(&mut self, bytes: &[u8]) {
        if self.sent.last().is_none_or(|last| last != bytes) {
            self.sent.push(bytes.to_vec());
        }
        let _ = self.stream.write_all(bytes);
    }

    /// Waits for a frame, and no longer than `patience`.
    pub fn receive(&mut self, patience: Duration) -> Received {
        let deadline = Instant::now() + patience;
        let mut size = [0; 4];
        match self.fill(&mut size, deadline) {
            Filled::All => {}
            Filled::Part(0, ended) => return if ended { Received::Closed } else { Received::Silent },
            Filled::Part(_, false) => return Received::Unfinished,
            Filled::Part(_, true) => {
                return Received::Broken("the connection ends within the size of an answer".to_owned());
            }
        }
        let length = match u32::try_from(i32::from_be_bytes(size)) {
            Ok(length) if length <= ANSWER_LIMIT => length as usize,
            _ => return Received::Broken(format!("an answer claims a size of {}", i32::from_be_bytes(size))),
        };
        let mut frame = vec![0; 4 + length];
        frame[..4].copy_from_slice(&size);
        match self.fill(&mut frame[4..], deadline) {
            Filled::All => Received::Frame(frame),
            Filled::Part(_, false) => Received::Unfinished,
            Filled::Part(_, true) => {
                Received::Broken("the connection ends before as much of an answer as its size says".to_owned())
            }
        }
    }

    fn fill(&mut self, buffer: &mut [u8], deadline: Instant) -> Filled {
        let mut filled = 0;
        while filled < buffer.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stream.set_read_timeout(Some(left)).is_err() {
                return Filled::Part(filled, false);
            }
            match self.stream.read(&mut buffer[filled..]) {
                Ok(0) => return Filled::Part(filled, true),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Filled::Part(filled, false);
                }
                Err(_) => return Filled::Part(filled, true),
            }
        }
        Filled::All
    }
}

/// How much of a buffer was filled, and whether the connection ended.
enum Filled {
    All,
    Part(usize, bool),
}
