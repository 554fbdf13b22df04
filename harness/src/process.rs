//! Processes that never outlive us, and the word that the user wants us to stop.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::{self, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);

/// A child in a process group of its own that ends with us: by `Drop`, or by its guard when we die without dropping.
#[derive(Debug)]
pub struct Guarded {
    child: Child,
    guard: Child,
    status: Option<ExitStatus>,
}

impl Guarded {
    /// Starts `command`, whose arguments, folder, and streams are set.
    pub fn spawn(command: &mut Command) -> io::Result<Guarded> {
        let mut child = command.process_group(0).spawn()?;
        // The guard waits for a line. It gets one when the child is gone; the end of input means that we are.
        // PR_SET_PDEATHSIG would follow the life of the starting thread, not of the process, and is Linux only.
        let guard = Command::new("sh")
            .args(["-c", "read line || kill -s KILL -- \"-$1\"", "guard", &child.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match guard {
            Ok(guard) => Ok(Guarded { child, guard, status: None }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// The child, for its streams.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// How it ended, if it did; what it started and left behind ends with it.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.status.is_none() && waitid(WaitId::Pid(self.pid()), ended)?.is_some() {
            // Until its end is taken note of, its id, which is its group's too, cannot be given to anybody else.
            self.kill();
        }
        Ok(self.status)
    }

    /// Waits until it ends by itself; kills it at the deadline and gives `None`.
    pub fn wait(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        while self.try_wait()?.is_none() {
            if Instant::now() > deadline {
                self.kill();
                return Ok(None);
            }
            sleep(POLL);
        }
        Ok(self.status)
    }

    /// Kills its whole group.
    pub fn kill(&mut self) {
        if self.status.is_none() {
            let _ = kill_process_group(self.pid(), Signal::KILL);
            self.status = self.child.wait().ok();
        }
    }

    /// Resident memory in bytes; `None` where the system does not tell.
    pub fn resident(&self) -> Option<u64> {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.pid().as_raw_nonzero())).ok()?;
        let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill();
        if let Some(stdin) = self.guard.stdin.as_mut() {
            let _ = stdin.write_all(b"gone\n");
        }
        let _ = self.guard.wait();
    }
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether Ctrl-C or a request to end has come: stop after the case at hand and write what there is.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// From now on the first Ctrl-C (or SIGTERM) is remembered for [`interrupted`], and a second one ends us at once; the
/// guards then end what we started.
pub fn catch_interrupts() {
    let caught = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        anstream::eprintln!("stopping after the case at hand; once more to stop at once");
    });
    // A second command in one process (tests) has it caught already.
    let _ = caught;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_ends_the_child_and_its_guard() {
        let process = Guarded::spawn(Command::new("sleep").arg("600")).unwrap();
        let (child, guard) = (process.pid(), Pid::from_child(&process.guard));
        drop(process);
        for pid in [child, guard] {
            assert!(rustix::process::test_kill_process(pid).is_err());
        }
    }
}
