//! Peers that misbehave, as real processes: whatever one does is an answer that says so, in time, in bounded memory, and
//! nothing of it is left running.

use kafka_conform::adapter::{Adapter, Answer, Launch};
use rustix::process::Pid;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than any answer takes here.
const PATIENCE: Duration = Duration::from_secs(20);
/// What a shell peer says at its start.
const HANDSHAKE: &str = r#"echo '{"protocol":1,"peer":"shell","version":"1","supports":{}}'"#;

fn binary() -> PathBuf {
    // At run time: the compiler wrapper is a shell script, and shells drop variables with a hyphen.
    std::env::var_os("CARGO_BIN_EXE_kafka-conform").expect("cargo says where the binary is").into()
}

/// A command whose process, and others it starts, note their ids in a file.
struct Peer {
    launch: Launch,
    folder: TempDir,
}

impl Peer {
    /// A shell script; `$PIDS` is the file.
    fn shell(script: &str) -> Peer {
        let script = format!("echo $$ >> \"$PIDS\"; {script}");
        Peer::new(["sh", "-c", &script].map(str::to_owned).to_vec())
    }

    /// A shell script that shakes hands first.
    fn polite_shell(script: &str) -> Peer {
        Peer::shell(&format!("read -r line; {HANDSHAKE}; {script}"))
    }

    /// Our own codec with a fault.
    fn fake(fault: &str) -> Peer {
        let note = "echo $$ >> \"$PIDS\"; exec \"$@\"";
        let binary = binary().to_string_lossy().into_owned();
        Peer::new(["sh", "-c", note, "peer", &binary, "fake", "codec", "--fault", fault].map(str::to_owned).to_vec())
    }

    fn new(command: Vec<String>) -> Peer {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let pids = folder.path().join("pids").to_string_lossy().into_owned();
        Peer { launch: Launch { command, env: BTreeMap::from([("PIDS".to_owned(), pids)]) }, folder }
    }

    fn start(&self) -> Adapter {
        Adapter::start(self.launch.clone()).unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Why it does not start.
    fn start_error(&self) -> String {
        match Adapter::start(self.launch.clone()) {
            Ok(_) => panic!("it started"),
            Err(error) => format!("{error:#}"),
        }
    }

    fn pids(&self) -> Vec<i32> {
        let noted = std::fs::read_to_string(self.folder.path().join("pids")).unwrap_or_default();
        noted.lines().map(|pid| pid.trim().parse().expect("it is a process id")).collect()
    }

    /// `count` processes were noted, and none of them runs any more.
    fn check_gone(&self, count: usize) {
        let pids = self.pids();
        assert_eq!(pids.len(), count, "{pids:?}");
        let deadline = Instant::now() + Duration::from_secs(5);
        while let Some(pid) = pids.iter().find(|pid| runs(**pid)) {
            assert!(Instant::now() < deadline, "process {pid} is left running");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Whether a process is there, and not merely waits for its end to be noticed.
fn runs(pid: i32) -> bool {
    let there = Pid::from_raw(pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    let dead = stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|state| state.starts_with('Z')));
    there && !dead
}

/// A request that our codec answers with a value.
fn request() -> Json {
    json!({ "op": "decode", "message": "AlterConfigsResponse", "version": 2, "part": "body", "bytes": "0000000002000001000100 00" })
}

#[track_caller]
fn check_value(answer: Answer) {
    let Answer::Line(line) = &answer else { panic!("{answer:?}") };
    assert!(line.get("value").is_some(), "{line}");
}

/// The third request of a fake: what came of it, and how long that took.
fn third(adapter: &mut Adapter, deadline: Duration) -> (Answer, Duration) {
    check_value(adapter.ask(request(), PATIENCE));
    check_value(adapter.ask(request(), PATIENCE));
    let started = Instant::now();
    (adapter.ask(request(), deadline), started.elapsed())
}

#[test]
fn a_good_peer_answers_and_stops_by_itself() {
    let peer = Peer::fake("none");
    let mut adapter = peer.start();
    assert_eq!(adapter.handshake().protocol, 1);
    assert!(!adapter.handshake().range("DescribeConfigsResponse", false).is_none());
    for _ in 0..5 {
        check_value(adapter.ask(request(), PATIENCE));
    }
    assert!(adapter.stop(), "it ends with status 0");
    peer.check_gone(1);
}

#[test]
fn an_echo_is_refused_by_the_probe() {
    let peer = Peer::fake("echo");
    let out = tempfile::tempdir().expect("there is a temporary folder");
    let output = Command::new(binary())
        .args(["certify", "codec", "--out"])
        .arg(out.path())
        .arg("--")
        .args(&peer.launch.command)
        .envs(&peer.launch.env)
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains("echoes"), "{output:?}");
    // Once for its handshake, once to be probed.
    peer.check_gone(2);
}

#[test]
fn a_crash_is_an_answer_and_the_next_case_gets_a_fresh_process() {
    let peer = Peer::fake("crasher");
    let mut adapter = peer.start();
    let (answer, _) = third(&mut adapter, PATIENCE);
    assert_eq!(answer, Answer::Crashed("exit status: 1".to_owned()));
    let (answer, _) = third(&mut adapter, PATIENCE);
    assert!(matches!(answer, Answer::Crashed(_)), "{answer:?}");
    drop(adapter);
    peer.check_gone(2);
}

#[test]
fn last_words_and_signals_are_told() {
    let peer = Peer::polite_shell("read -r line; echo first >&2; echo 'out of cheese' >&2; kill -s SEGV $$");
    let answer = peer.start().ask(request(), PATIENCE);
    let Answer::Crashed(how) = &answer else { panic!("{answer:?}") };
    assert!(how.contains("signal: 11") && how.ends_with("out of cheese"), "{how}");
    peer.check_gone(1);
}

#[test]
fn a_sleeper_is_hung_at_its_deadline() {
    let deadline = Duration::from_millis(300);
    let peer = Peer::fake("sleeper");
    let mut adapter = peer.start();
    let (answer, took) = third(&mut adapter, deadline);
    assert_eq!(answer, Answer::Hung(deadline));
    assert!(took >= deadline && took < deadline + Duration::from_secs(5), "{took:?}");
    // It was ended at once, not when the run is over.
    peer.check_gone(1);
    check_value(adapter.ask(request(), PATIENCE));
    drop(adapter);
    peer.check_gone(2);
}

#[test]
fn a_flood_of_answers_is_garbage() {
    let peer = Peer::fake("flooder");
    let mut adapter = peer.start();
    let (answer, _) = third(&mut adapter, PATIENCE);
    assert!(matches!(&answer, Answer::Garbage(what) if what.contains("nobody asked for")), "{answer:?}");
    peer.check_gone(1);
}

/// Resident memory of this process at its highest, in bytes.
fn highest_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[test]
fn a_line_without_end_is_garbage_and_does_not_fill_our_memory() {
    let before = highest_resident();
    let peer = Peer::polite_shell("read -r line; exec cat /dev/zero");
    let mut adapter = peer.start();
    let answer = adapter.ask(request(), PATIENCE);
    assert!(matches!(&answer, Answer::Garbage(what) if what.contains("over 4 MiB")), "{answer:?}");
    peer.check_gone(1);
    // 64 MiB, in a vector that doubles and is copied while it grows.
    let grown = highest_resident().saturating_sub(before);
    assert!(grown < 256 << 20, "{} MiB more than before", grown >> 20);
}

#[test]
fn a_flood_of_errors_does_not_block_the_peer_nor_fill_our_memory() {
    let before = highest_resident();
    let script = "read -r line; head -c 100000000 /dev/zero >&2; echo >&2; echo last words >&2; exit 3";
    let peer = Peer::polite_shell(script);
    let mut adapter = peer.start();
    assert_eq!(adapter.ask(request(), PATIENCE), Answer::Crashed("exit status: 3: last words".to_owned()));
    let grown = highest_resident().saturating_sub(before);
    assert!(grown < 256 << 20, "{} MiB more than before", grown >> 20);
    peer.check_gone(1);
}

#[test]
fn a_peer_that_eats_memory_is_ended() {
    // `tail` keeps a last line without end.
    let peer = Peer::polite_shell("read -r line; exec tail /dev/zero");
    let mut adapter = peer.start();
    let answer = adapter.ask(request(), PATIENCE);
    assert!(matches!(answer, Answer::Memory(bytes) if bytes > 1 << 30), "{answer:?}");
    peer.check_gone(1);
}

#[test]
fn what_is_not_json_is_garbage() {
    let peer = Peer::polite_shell("read -r line; echo hello; read -r line");
    let answer = peer.start().ask(request(), PATIENCE);
    assert!(
        matches!(&answer, Answer::Garbage(what) if what.contains("not JSON") && what.ends_with("hello")),
        "{answer:?}"
    );
    let peer = Peer::polite_shell("read -r line; printf '\\377\\n'; read -r line");
    let answer = peer.start().ask(request(), PATIENCE);
    assert!(matches!(&answer, Answer::Garbage(what) if what.contains("not UTF-8")), "{answer:?}");
    peer.check_gone(1);
}

#[test]
fn answers_to_earlier_requests_are_passed_over() {
    let answer = r#"read -r line; echo '{"id":7,"error":"late"}'; echo; echo '{"id":1,"error":"mine"}'; read -r line"#;
    let peer = Peer::polite_shell(answer);
    assert_eq!(peer.start().ask(request(), PATIENCE), Answer::Line(json!({ "id": 1, "error": "mine" })));
}

#[test]
fn a_peer_that_never_reads_does_not_block_us() {
    let peer = Peer::shell(&format!("{HANDSHAKE}; exec sleep 600"));
    let mut adapter = peer.start();
    // Far more than a pipe holds.
    let mut large = request();
    large["bytes"] = "00".repeat(4 << 20).into();
    let started = Instant::now();
    let deadline = Duration::from_millis(300);
    assert_eq!(adapter.ask(large, deadline), Answer::Hung(deadline));
    assert!(started.elapsed() < deadline + Duration::from_secs(5), "{:?}", started.elapsed());
    drop(adapter);
    peer.check_gone(1);
}

#[test]
fn a_missing_program_is_named() {
    let error = Peer::new(vec!["/no/such/adapter".to_owned()]).start_error();
    assert!(error.contains("starting /no/such/adapter") && error.contains("No such file"), "{error}");
    let error = Peer::new(Vec::new()).start_error();
    assert!(error.contains("the command is empty"), "{error}");
}

#[test]
fn what_is_no_handshake_is_an_error_that_says_so() {
    let check = |script: &str, says: &[&str]| {
        let peer = Peer::shell(script);
        let error = peer.start_error();
        assert!(says.iter().all(|text| error.contains(text)), "{error}");
        peer.check_gone(1);
    };
    check("read -r line; echo oops >&2; exit 7", &["before its handshake", "exit status: 7", "oops"]);
    check("read -r line; echo hello; read -r line", &["no handshake", "not JSON"]);
    check("read -r line; echo '{}'; read -r line", &["the handshake is not one"]);
    check(
        r#"read -r line; echo '{"protocol":2,"peer":"p","version":"1"}'; read -r line"#,
        &["it speaks protocol 2, not 1"],
    );
}

#[test]
fn one_that_crashes_each_time_is_given_up() {
    let peer = Peer::polite_shell("read -r line; exit 1");
    let mut adapter = peer.start();
    for _ in 0..=Adapter::RESTARTS {
        assert!(matches!(adapter.ask(request(), PATIENCE), Answer::Crashed(_)));
    }
    let answer = adapter.ask(request(), PATIENCE);
    assert!(matches!(&answer, Answer::Gone(why) if why.contains(&Adapter::RESTARTS.to_string())), "{answer:?}");
    assert!(adapter.stop(), "there is nothing to stop");
    peer.check_gone(1 + Adapter::RESTARTS as usize);
}

#[test]
fn stopping_tells_status_0_from_others() {
    let peer = Peer::polite_shell("read -r line; exit 3");
    assert!(!peer.start().stop());
    peer.check_gone(1);
    // Deaf to `stop` and to the end of its input: ended by force.
    let peer = Peer::polite_shell("trap '' TERM INT HUP; sleep 600");
    let started = Instant::now();
    assert!(!peer.start().stop());
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    peer.check_gone(1);
}

#[test]
fn what_a_peer_started_ends_with_it() {
    let peer = Peer::polite_shell("sleep 600 & echo $! >> \"$PIDS\"; read -r line; exec sleep 600");
    let mut adapter = peer.start();
    let deadline = Duration::from_millis(200);
    assert_eq!(adapter.ask(request(), deadline), Answer::Hung(deadline));
    peer.check_gone(2);
}

#[test]
fn what_a_crashed_peer_started_ends_too() {
    let peer = Peer::polite_shell("sleep 600 > /dev/null 2>&1 & echo $! >> \"$PIDS\"; read -r line; exit 1");
    let answer = peer.start().ask(request(), PATIENCE);
    assert_eq!(answer, Answer::Crashed("exit status: 1".to_owned()));
    peer.check_gone(2);
}
