//! Peers that misbehave, as real processes: whatever one does is an answer that says so, in time, in bounded memory, and
//! nothing of it is left running.

use kafka_conform::adapter::{Adapter, Answer, Launch};
use kafka_conform::patience::Patience;
use rustix::process::Pid;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
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

/// A peer that the probe refuses, and why.
#[track_caller]
fn check_refused(peer: &Peer, role: &str, says: &str) {
    let out = tempfile::tempdir().expect("there is a temporary folder");
    let output = Command::new(binary())
        .args(["certify", role, "--out"])
        .arg(out.path())
        .arg("--")
        .args(&peer.launch.command)
        .envs(&peer.launch.env)
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains(says), "{output:?}");
    // Once for its handshake, once to be probed.
    peer.check_gone(2);
}

#[test]
fn an_echo_is_refused_by_the_probe() {
    check_refused(&Peer::fake("echo"), "codec", "echoes");
}

#[test]
fn bytes_that_are_handed_back_unread_are_no_recode() {
    // Right about what it decodes, as far as the probe asks; what it is to recode it gives back.
    let script = r#"read -r line
        echo '{"protocol":1,"peer":"shell","version":"1","supports":{"AlterConfigsRequest":{"decode":"0-2","encode":"1-2"}}}'
        while read -r line; do
            id=${line#*\"id\":}; id=${id%%[!0-9]*}; bytes=${line#*\"bytes\":\"}; bytes=${bytes%%\"*}
            case $line in
                *NoSuchMessage*) echo "{\"id\":$id,\"unsupported\":\"no such message\"}" ;;
                *recode*) echo "{\"id\":$id,\"bytes\":\"$bytes\"}" ;;
                *) echo "{\"id\":$id,\"error\":\"no\"}" ;;
            esac
        done"#;
    check_refused(&Peer::shell(script), "codec", "the adapter gives AlterConfigsRequest version 1 back as it was");
}

#[test]
fn what_a_client_declares_must_be_there_to_be_declared() {
    for (operations, says) in [
        (r#"{"describe_config":{}}"#, r#"operations have "describe_config", and there are describe_configs"#),
        (
            r#"{"alter_configs":{"shows":["ErrorMesage"]}}"#,
            r#"alter_configs shows "ErrorMesage", which AlterConfigsResponse"#,
        ),
    ] {
        let script = format!(
            "read -r line; echo '{{\"protocol\":1,\"peer\":\"shell\",\"version\":\"1\",\"operations\":{operations}}}'; \
             read -r line; echo '{{\"id\":1,\"unsupported\":\"no such message\"}}'; read -r line"
        );
        check_refused(&Peer::shell(&script), "client", says);
    }
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

#[test]
fn blank_lines_without_end_are_garbage() {
    let peer = Peer::fake("blank-lines");
    let mut adapter = peer.start();
    let (answer, took) = third(&mut adapter, PATIENCE);
    assert!(matches!(&answer, Answer::Garbage(what) if what.contains("nobody asked for: blank lines")), "{answer:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    peer.check_gone(1);
}

#[test]
fn no_line_puts_the_deadline_off() {
    let deadline = Duration::from_millis(500);
    for line in ["", r#"{"level":"info"}"#] {
        // More often than it is looked after.
        let peer = Peer::polite_shell(&format!("read -r line; while :; do echo '{line}'; sleep 0.02; done"));
        let mut adapter = peer.start();
        let started = Instant::now();
        assert_eq!(adapter.ask(request(), deadline), Answer::Hung(deadline));
        assert!(started.elapsed() < deadline + Duration::from_secs(1), "{:?}", started.elapsed());
        peer.check_gone(1);
    }
}

#[test]
fn an_answer_with_another_id_is_garbage_and_no_hang() {
    let deadline = Duration::from_millis(300);
    let peer = Peer::fake("wrong-ids");
    let answer = peer.start().ask(request(), deadline);
    let says = |what: &str| what.contains("no answer to what was asked within 300 ms") && what.contains("\"id\":2");
    assert!(matches!(&answer, Answer::Garbage(what) if says(what)), "{answer:?}");
    for id in [r#""id":"1","#, r#""id":null,"#, r#""id":-1,"#, r#""id":1e400,"#, ""] {
        let peer = Peer::polite_shell(&format!("read -r line; echo '{{{id}\"error\":\"no\"}}'; read -r line"));
        let answer = peer.start().ask(request(), deadline);
        assert!(matches!(&answer, Answer::Garbage(_)), "{id}: {answer:?}");
    }
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
    let grown = highest_resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{} MiB more than before", grown >> 20);
}

#[test]
fn a_flood_of_errors_does_not_block_the_peer_nor_fill_our_memory() {
    let before = highest_resident();
    let script = "read -r line; head -c 100000000 /dev/zero >&2; echo >&2; echo last words >&2; exit 3";
    let peer = Peer::polite_shell(script);
    let mut adapter = peer.start();
    assert_eq!(adapter.ask(request(), PATIENCE), Answer::Crashed("exit status: 3: last words".to_owned()));
    let grown = highest_resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{} MiB more than before", grown >> 20);
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
fn memory_counts_wherever_it_is_taken_and_whatever_is_said_meanwhile() {
    for eater in ["tail /dev/zero", "setsid tail /dev/zero"] {
        let chatter = "while :; do echo '{\"level\":\"info\"}'; sleep 0.04; done";
        let peer = Peer::polite_shell(&format!("read -r line; {eater} & {chatter}"));
        let answer = peer.start().ask(request(), PATIENCE);
        assert!(matches!(answer, Answer::Memory(bytes) if bytes > 1 << 30), "{eater}: {answer:?}");
        peer.check_gone(1);
    }
}

/// Bytes of address space that the suite has: less than the answers of the run below come to.
const ADDRESS_SPACE: u64 = 448 << 20;

#[test]
fn a_run_of_the_largest_answers_takes_bounded_memory() {
    let out = tempfile::tempdir().expect("there is a temporary folder");
    // Some 100 answers of 4 MiB.
    let script = format!(
        "ulimit -v {}; exec \"$0\" certify codec --case 'codec/describe-configs-request/v4/*' --out \"$1\" -- \"$0\" fake codec --fault bloated",
        ADDRESS_SPACE >> 10
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(binary())
        .arg(out.path())
        // Each arena takes address space that is never used.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = std::fs::read_to_string(out.path().join("results.jsonl")).expect("there are results");
    let cut = rows.lines().filter(|row| row.contains("bytes in all)")).count();
    assert!(cut as u64 * (4 << 20) > ADDRESS_SPACE, "{cut} answers were large: too few to tell");
    assert!(rows.len() < 64 << 20, "{} bytes of results", rows.len());
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
    check("read -r line; echo oops >&2; exit 7", &["no handshake: it ended: exit status: 7", "oops"]);
    check("read -r line; echo hello; read -r line", &["no handshake", "not JSON"]);
    check("read -r line; echo '{}'; read -r line", &["the handshake is not one"]);
    let shakes = |with: &str| {
        format!("read -r line; echo '{{\"protocol\":1,\"peer\":\"p\",\"version\":\"1\",{with}}}'; read -r line")
    };
    for range in ["0..4", "4-0", "", " 0-4", "0-99999", "-1"] {
        let script = shakes(&format!("\"supports\":{{\"M\":{{\"decode\":\"0-4\",\"encode\":\"{range}\"}}}}"));
        check(&script, &["supports.M.encode", &format!("{range:?} is not a version range")]);
    }
    for (with, says) in [
        (r#""supports":{"M":{"decode":3}}"#, "supports.M.decode: invalid type: integer `3`"),
        (r#""supports":{"M":{"decodes":"0-4"}}"#, "supports.M.decodes: unknown field"),
        (r#""operations":{"describe_configs":true}"#, "operations.describe_configs: invalid type"),
        (r#""operations":{"describe_configs":{"keys":"yes"}}"#, "operations.describe_configs.keys: invalid type"),
        (r#""operations":{"describe_configs":{"synonym":true}}"#, "operations.describe_configs.synonym: unknown field"),
        (r#""operations":{"describe_configs":{"shows":"Value"}}"#, "operations.describe_configs.shows: invalid type"),
        (r#""language":"a\u001b[2J""#, "language has control characters"),
    ] {
        check(&shakes(with), &["the handshake is not one", says][usize::from(with.contains("language"))..]);
    }
    check(&shakes(&format!("\"language\":\"{}\"", "x".repeat(1000))), &["language has over 200 bytes"]);
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
fn one_that_does_not_start_again_is_given_up_at_once() {
    let once = "[ $(wc -l < \"$PIDS\") -gt 1 ] && exit 9";
    let peer = Peer::shell(&format!("{once}; read -r line; {HANDSHAKE}; read -r line; exit 1"));
    let mut adapter = peer.start();
    assert!(matches!(adapter.ask(request(), PATIENCE), Answer::Crashed(_)));
    for _ in 0..3 {
        let answer = adapter.ask(request(), PATIENCE);
        let says = |why: &str| why.contains("could not be started again") && why.contains("exit status: 9");
        assert!(matches!(&answer, Answer::Gone(why) if says(why)), "{answer:?}");
    }
    peer.check_gone(2);
}

#[test]
fn one_that_hangs_each_time_is_given_up_sooner() {
    let peer = Peer::polite_shell("exec sleep 600");
    let mut adapter = peer.start();
    let deadline = Duration::from_millis(10);
    for _ in 0..Patience::WAITS {
        assert_eq!(adapter.ask(request(), deadline), Answer::Hung(deadline));
    }
    let answer = adapter.ask(request(), deadline);
    let says = format!("given up after {} deadlines that passed", Patience::WAITS);
    assert!(matches!(&answer, Answer::Gone(why) if why.contains(&says)), "{answer:?}");
    peer.check_gone(Patience::WAITS as usize);
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

/// Leaves its parent, its group and its session, and notes its id.
const RUNAWAY: &str = r#"( setsid sh -c 'echo $$ >> "$PIDS"; exec sleep 600' > /dev/null 2>&1 & ); while [ $(wc -l < "$PIDS") -lt 2 ]; do sleep 0.01; done"#;

#[test]
fn what_left_the_group_ends_too() {
    let deadline = Duration::from_millis(200);
    let peer = Peer::polite_shell(&format!("{RUNAWAY}; read -r line; exec sleep 600"));
    let mut adapter = peer.start();
    assert_eq!(adapter.ask(request(), deadline), Answer::Hung(deadline));
    peer.check_gone(2);
    // Where it keeps the output of its dead parent open, too.
    let held = RUNAWAY.replace("> /dev/null 2>&1", "");
    let peer = Peer::polite_shell(&format!("{held}; read -r line; exit 1"));
    let started = Instant::now();
    assert_eq!(peer.start().ask(request(), PATIENCE), Answer::Crashed("exit status: 1".to_owned()));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    peer.check_gone(2);
}

#[test]
fn one_that_joins_another_group_is_ended() {
    let joins = "exec perl -e 'setpgrp(0, getpgrp(getppid())) or die $!; sleep 600'";
    let peer = Peer::polite_shell(joins);
    let mut adapter = peer.start();
    let started = Instant::now();
    let deadline = Duration::from_millis(500);
    assert_eq!(adapter.ask(request(), deadline), Answer::Hung(deadline));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    peer.check_gone(1);
}

/// Starts a suite that certifies a peer, and waits until so many processes are noted.
fn certified(peer: &Peer, out: &TempDir, noted: usize) -> Child {
    let suite = Command::new(binary())
        .args(["certify", "codec", "--out"])
        .arg(out.path())
        .arg("--")
        .args(&peer.launch.command)
        .envs(&peer.launch.env)
        .spawn()
        .expect("the binary runs");
    let deadline = Instant::now() + PATIENCE;
    while peer.pids().len() < noted && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    suite
}

#[test]
fn a_peer_that_goes_on_talking_does_not_hold_up_an_interrupt() {
    let peer = Peer::polite_shell("read -r line; while :; do echo; sleep 0.04; done");
    let out = tempfile::tempdir().expect("there is a temporary folder");
    // The first start is only for the handshake, and the second is asked something.
    let mut suite = certified(&peer, &out, 2);
    std::thread::sleep(Duration::from_millis(500));
    let interrupted = Instant::now();
    rustix::process::kill_process(Pid::from_child(&suite), rustix::process::Signal::INT).expect("it runs");
    let status = suite.wait().expect("it is ours");
    assert_eq!(status.code(), Some(3));
    // It would have been waited for for 5 s.
    assert!(interrupted.elapsed() < Duration::from_secs(3), "{:?}", interrupted.elapsed());
    peer.check_gone(2);
}

#[test]
fn two_signals_at_once_are_one_wish() {
    // Right until it is asked a case.
    let script = r#"read -r line
        echo '{"protocol":1,"peer":"shell","version":"1","supports":{"AlterConfigsRequest":{"decode":"0-2"}}}'
        read -r line; echo '{"id":1,"unsupported":"no such message"}'; read -r line; sleep 600"#;
    let peer = Peer::shell(script);
    let out = tempfile::tempdir().expect("there is a temporary folder");
    let mut suite = certified(&peer, &out, 2);
    std::thread::sleep(Duration::from_millis(300));
    // As `timeout` sends them, which tells its child and then its group.
    for _ in 0..2 {
        rustix::process::kill_process(Pid::from_child(&suite), rustix::process::Signal::TERM).expect("it runs");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(suite.wait().expect("it is ours").code(), Some(3));
    assert!(out.path().join("index.html").is_file(), "there is a partial report");
    peer.check_gone(2);
}

#[test]
fn nothing_outlives_a_suite_that_is_killed() {
    let peer = Peer::polite_shell(&format!("{RUNAWAY}; read -r line; sleep 600"));
    let out = tempfile::tempdir().expect("there is a temporary folder");
    // Each start notes two.
    let mut suite = certified(&peer, &out, 3);
    suite.kill().and_then(|()| suite.wait()).expect("it is ours");
    peer.check_gone(peer.pids().len());
    assert!(peer.pids().len() >= 3, "{:?}", peer.pids());
}
