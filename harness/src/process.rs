//! Processes that never outlive us, and the word that the user wants us to stop.

use crate::output;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

const POLL: Duration = Duration::from_millis(5);
/// Time that the dead may take to be gone: only a process stuck in the kernel takes more.
const DYING: Duration = Duration::from_secs(2);
/// What ends us may say so to us and to our group, as `timeout` does, or a shell and what stands between: one wish.
const ONE_WISH: Duration = Duration::from_millis(500);
/// The variable that marks a child and all that it starts, whatever groups, sessions and parents they choose.
const MARK: &str = "KAFKA_CONFORM_CHILD";
/// Kills the group `$1`, the process `$1` in whatever group it is, and all that bear the mark `$2`, when our end closes.
const GUARD: &str = r#"read line && exit
kill -s KILL -- "-$1"
kill -s KILL "$1"
for found in $(grep -lsF "$2" /proc/[0-9]*/environ); do
    found=${found#/proc/}
    kill -s KILL "${found%/environ}"
done"#;

/// A child in a process group of its own that ends with us, and all that it started with it: by `Drop`, or by its guard
/// when we die without dropping. What leaves the group is found where there is a `/proc`.
#[derive(Debug)]
pub struct Guarded {
    child: Child,
    guard: Child,
    /// The value of [`MARK`].
    mark: String,
    status: Option<ExitStatus>,
}

impl Guarded {
    /// Starts `command`, whose arguments, folder, and streams are set.
    pub fn spawn(command: &mut Command) -> io::Result<Guarded> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // The end keeps one number from being the start of another.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{:x}-{count}.", std::process::id(), since.as_nanos());
        let mut child = command.env(MARK, &mark).process_group(0).spawn()?;
        // The guard waits for a line. It gets one when the child is gone; the end of input means that we are.
        // PR_SET_PDEATHSIG would follow the life of the starting thread, not of the process, and is Linux only.
        let guard = Command::new("sh")
            .args(["-c", GUARD, "guard", &child.id().to_string(), &format!("{MARK}={mark}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match guard {
            Ok(guard) => Ok(Guarded { child, guard, mark, status: None }),
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

    /// Kills it and all that it started, and waits for their end, for a while.
    pub fn kill(&mut self) {
        if self.status.is_some() {
            return;
        }
        let deadline = Instant::now() + DYING;
        loop {
            // Found before anything is killed: who dies leaves its children to others.
            let alive = self.alive(true);
            let _ = kill_process_group(self.pid(), Signal::KILL);
            let _ = self.child.kill();
            alive.iter().for_each(Member::kill);
            if alive.is_empty() || Instant::now() > deadline {
                break;
            }
            sleep(POLL);
        }
        self.status = end_of(&mut self.child);
    }

    /// Resident memory, in bytes, of it and all that it started, as far as they are found; `None` where the system does
    /// not tell. What is over `limit` is counted once more, with shared pages only once.
    pub fn memory(&self, limit: u64) -> Option<u64> {
        let alive = self.alive(false);
        let resident = alive.iter().map(|member| member.resident).sum();
        if resident <= limit || alive.len() == 1 {
            return (!alive.is_empty()).then_some(resident);
        }
        Some(alive.iter().map(|member| proportional(member.pid).unwrap_or(member.resident)).sum())
    }

    /// Itself, its group and its descendants, as far as they live; with those that only bear its mark if `marked`.
    fn alive(&self, marked: bool) -> Vec<Member> {
        let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
        let processes = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let all: Vec<Member> = processes.filter_map(Member::read).collect();
        let own = self.pid().as_raw_nonzero().get();
        let mut found = BTreeSet::from([own]);
        loop {
            let belongs = |member: &&Member| member.group == own || found.contains(&member.parent);
            let more: Vec<i32> = all.iter().filter(belongs).map(|member| member.pid).collect();
            let before = found.len();
            found.extend(more);
            if found.len() == before {
                break;
            }
        }
        let mark = format!("{MARK}={}", self.mark);
        let bears_mark = |member: &Member| {
            let environment = std::fs::read(format!("/proc/{}/environ", member.pid));
            environment.is_ok_and(|text| text.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()))
        };
        let us = rustix::process::getpid().as_raw_nonzero().get();
        let is_in = |member: &Member| found.contains(&member.pid) || marked && bears_mark(member);
        all.into_iter().filter(|member| member.lives && member.pid != us && is_in(member)).collect()
    }
}

/// A process, as `/proc` tells of it.
struct Member {
    pid: i32,
    parent: i32,
    /// -1 of one that is about to be gone.
    group: i32,
    /// Memory in bytes.
    resident: u64,
    /// Whether it runs, and is not only waited for.
    lives: bool,
}

impl Member {
    fn read(pid: i32) -> Option<Member> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may hold anything.
        let mut fields = stat.rsplit_once(") ")?.1.split_ascii_whitespace();
        let lives = !matches!(fields.next()?, "Z" | "X");
        let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        // The 24th of the file.
        let pages: u64 = fields.nth(18)?.parse().ok()?;
        Some(Member { pid, parent, group, resident: pages * rustix::param::page_size() as u64, lives })
    }

    fn kill(&self) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Resident memory of a process in bytes, in which a page that several share counts to each in part.
fn proportional(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kib =
        text.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok())?;
    Some(kib * 1024)
}

/// The end of a process that was killed, if it comes in a while.
fn end_of(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + DYING;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => sleep(POLL),
            ended => return ended.ok().flatten(),
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill();
        let guard = self.guard.stdin.take();
        // What did not end in time is left to the guard, which sees the end of its input.
        if let Some(mut guard) = guard.filter(|_| self.status.is_some()) {
            let _ = guard.write_all(b"gone\n");
        }
        if end_of(&mut self.guard).is_none() {
            let _ = self.guard.kill();
        }
    }
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether Ctrl-C or a request to end has come: stop after the case at hand and write what there is.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// From now on the first Ctrl-C (or SIGTERM, SIGHUP) is remembered for [`interrupted`], and a second one ends us at
/// once; the guards then end what we started.
pub fn catch_interrupts() -> io::Result<()> {
    static CAUGHT: AtomicBool = AtomicBool::new(false);
    if CAUGHT.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            match first {
                None => {
                    first = Some(Instant::now());
                    INTERRUPTED.store(true, Ordering::Relaxed);
                    output::tell("stopping; once more to stop at once");
                }
                Some(first) if first.elapsed() > ONE_WISH => std::process::exit(130),
                Some(_) => {}
            }
        }
    });
    Ok(())
}

/// A file that may not grow any more is an error where it is written, like a full disk, and not the end of us.
pub fn outlive_file_limit() -> io::Result<()> {
    // With a handler, which does nothing: children begin with the default again, as they would not if it were ignored.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(|_| ())
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
