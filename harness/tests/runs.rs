//! Runs that go wrong: `certify` against brokers that end, hang and come back, and adapters that nothing can be judged of;
//! `matrix` without a peer that can run, and on a disk that is full. The brokers are small TCP servers of this file; their
//! bytes were written by hand from the protocol guide.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kafka_conform::results::{Class, Outcome, Results, Verdict};
use std::io::{Read as _, Write as _};

/// What a server does with a request.
enum Act {
    /// Answers ApiVersions, of which it has version 0 alone.
    Answer,
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Closes the connection.
    Close,
    /// Nothing, and keeps the connection.
    Silence,
    /// Ends: its connection and its port are closed. After that time it listens again, or never.
    End(Option<Duration>),
    /// The same, after an answer.
    AnswerAndEnd(Option<Duration>),
}

/// A broker that handles one connection at a time.
struct Server {
    address: SocketAddr,
    /// Each request that came, size included.
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Server {
    /// `act` is asked with the number of a request, from 0, and its frame.
    fn start(act: fn(usize, &[u8]) -> Act) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let seen = received.clone();
        std::thread::spawn(move || {
            let mut listener = listener;
            while let Some(pause) = serve(&listener, &seen, act) {
                drop(listener);
                std::thread::sleep(pause);
                listener = TcpListener::bind(address).unwrap();
            }
        });
        Server { address, received }
    }

    fn certify(&self, options: &[&str]) -> Certified {
        let address = self.address.to_string();
        // An observed case that this server is not like: after it the suite would look whether the server is there.
        let skip = ["--skip", "broker/api-versions/v0/ranges-hold-the-config-apis"];
        certify(&[&["broker", &address], &skip[..], options].concat(), &[])
    }

    fn last_received(&self) -> String {
        codec::hex(self.received.lock().unwrap().last().expect("it was asked"))
    }

    /// The one fault that was found: that it ended, upon what it received last.
    #[track_caller]
    fn the_crash<'c>(&self, certified: &'c Certified) -> &'c Outcome {
        assert_eq!(certified.code, Some(1), "{}", certified.said);
        let [crash] = certified.faults()[..] else { panic!("{:#?}", certified.faults()) };
        assert_eq!((crash.class, crash.severity), (Some(Class::Crash), Some(1)));
        assert_eq!(crash.sent.as_deref(), Some(&*self.last_received()));
        crash
    }
}

/// Serves until it is to end; gives the time until it is to be there again.
fn serve(listener: &TcpListener, received: &Mutex<Vec<Vec<u8>>>, act: fn(usize, &[u8]) -> Act) -> Option<Duration> {
    for mut stream in listener.incoming().map(|stream| stream.unwrap()) {
        let mut size = [0; 4];
        while stream.read_exact(&mut size).is_ok() {
            let mut frame = size.to_vec();
            frame.resize(4 + usize::try_from(i32::from_be_bytes(size)).unwrap_or(0).min(1 << 20), 0);
            if stream.read_exact(&mut frame[4..]).is_err() {
                break;
            }
            let number = {
                let mut received = received.lock().unwrap();
                received.push(frame.clone());
                received.len() - 1
            };
            let act = act(number, &frame);
            if let Act::Answer | Act::AnswerAndEnd(_) = act {
                // Size 16, the request's correlation id, an error, one API: 18, versions 0 to 0. An answer to a higher
                // version than that says 35, UNSUPPORTED_VERSION, in the same form.
                let error = if frame[6..8] == [0, 0] { 0 } else { 35 };
                let api = [0, 18, 0, 0, 0, 0];
                let answer = [&[0, 0, 0, 16], &frame[8..12], &[0, error, 0, 0, 0, 1], &api].concat();
                stream.write_all(&answer).unwrap();
            }
            match act {
                Act::Send(bytes) => stream.write_all(&bytes).unwrap(),
                Act::Answer | Act::Silence => {}
                Act::Close => break,
                Act::End(pause) | Act::AnswerAndEnd(pause) => return pause,
            }
        }
    }
    None
}

struct Certified {
    code: Option<i32>,
    said: String,
    results: Option<Results>,
}

impl Certified {
    fn outcomes(&self) -> &[Outcome] {
        &self.results.as_ref().expect("there are results").outcomes
    }

    fn faults(&self) -> Vec<&Outcome> {
        self.outcomes().iter().filter(|outcome| outcome.verdict == Verdict::Fail).collect()
    }

    fn not_run(&self, beginning: &str) -> usize {
        let begins = |outcome: &&Outcome| outcome.detail.as_ref().is_some_and(|detail| detail.starts_with(beginning));
        self.outcomes().iter().filter(|outcome| outcome.verdict == Verdict::NotRun).filter(begins).count()
    }
}

fn certify(arguments: &[&str], adapter: &[&str]) -> Certified {
    let out = tempfile::tempdir().expect("there is a temporary folder");
    let output = run(arguments, out.path(), adapter);
    let text = std::fs::read_to_string(out.path().join("results.jsonl")).ok();
    Certified {
        code: output.status.code(),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
        results: text.map(|text| Results::from_jsonl(&text).unwrap()),
    }
}

fn binary() -> std::ffi::OsString {
    // At run time: the compiler wrapper is a shell script, and shells drop variables with a hyphen.
    std::env::var_os("CARGO_BIN_EXE_kafka-conform").expect("cargo says where the binary is")
}

fn run(arguments: &[&str], out: &Path, adapter: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("certify").args(arguments).arg("--out").arg(out);
    if !adapter.is_empty() {
        command.arg("--").args(adapter);
    }
    command.output().expect("the binary runs")
}

#[test]
fn a_mistyped_message_of_a_handshake_is_told() {
    let supports = r#""DescribeConfigRequest":{"decode":"0-4"},"MetadataRequest":{"decode":"0-1"}"#;
    let script = format!(
        r#"read -r line; echo '{{"id":1,"protocol":1,"peer":"p","version":"1","supports":{{{supports}}}}}'; cat >/dev/null"#
    );
    let certified = certify(&["codec", "--case", "codec/metadata-request/*"], &["sh", "-c", &script]);
    let told = "supports names messages without a definition here: DescribeConfigRequest\n";
    assert!(certified.said.contains(told), "{}", certified.said);
}

/// The first request is the one that meets the broker, so that this is the first of the third case.
const IN_A_CASE: usize = 3;

#[test]
fn a_broker_that_ends_within_a_case_crashed_and_the_rest_is_not_run() {
    let server = Server::start(|number, _| if number < IN_A_CASE { Act::Answer } else { Act::End(None) });
    let certified = server.certify(&[]);
    let crash = server.the_crash(&certified);
    assert!(crash.detail.as_ref().unwrap().contains("accepts no connection any more"), "{crash:?}");
    let gone = certified.not_run("the broker is gone: it accepts no connection any more");
    assert!(gone > 0);
    let without_consent = certified.not_run("not without --allow-");
    let not_run = certified.not_run("");
    assert_eq!(gone + without_consent, not_run);
    let hint = format!("\n{without_consent} cases were not run for want of consent (--allow-hostile)\n");
    assert!(format!("\n{}", certified.said).contains(&hint), "{}", certified.said);
}

#[test]
fn a_broker_that_ends_between_two_cases_crashed_by_what_was_sent_last() {
    let server = Server::start(|number, _| if number < IN_A_CASE { Act::Answer } else { Act::AnswerAndEnd(None) });
    let certified = server.certify(&[]);
    let crash = server.the_crash(&certified);
    let detail = crash.detail.as_ref().unwrap();
    assert!(detail.contains("sent last was broker/api-versions/v0/") && !detail.contains(&crash.case), "{crash:?}");
    assert!(certified.not_run("the broker is gone") > 0);
}

#[test]
fn a_broker_that_ends_once_it_was_met_crashed_by_the_suites_own_request() {
    let server = Server::start(|_, _| Act::AnswerAndEnd(None));
    let certified = server.certify(&[]);
    let crash = server.the_crash(&certified);
    assert!(
        crash.detail.as_ref().unwrap().contains("a request of the suite's own, ApiVersions version 0"),
        "{crash:?}"
    );
}

#[test]
fn a_broker_that_closes_one_connection_is_there_for_the_next() {
    let server = Server::start(|number, _| if number == IN_A_CASE { Act::Close } else { Act::Answer });
    let certified = server.certify(&[]);
    assert_eq!(certified.code, Some(1), "{}", certified.said);
    let faults = certified.faults();
    let [closed] = faults.as_slice() else { panic!("{faults:#?}") };
    assert_eq!(closed.class, Some(Class::Closed));
    assert_eq!(certified.not_run("the broker is gone"), 0);
    assert!(certified.outcomes().iter().filter(|outcome| outcome.verdict == Verdict::Pass).count() > 3);
}

#[test]
fn a_broker_that_is_slow_to_take_a_connection_is_waited_for() {
    const PAUSE: Duration = Duration::from_millis(1500);
    let always = Server::start(|_, _| Act::Answer).certify(&[]);
    assert_eq!(always.code, Some(0), "{}", always.said);
    let server = Server::start(|number, _| match number {
        IN_A_CASE => Act::AnswerAndEnd(Some(PAUSE)),
        _ => Act::Answer,
    });
    let verdicts = |certified: &Certified| {
        certified.outcomes().iter().map(|outcome| (outcome.case.clone(), outcome.verdict)).collect::<Vec<_>>()
    };
    let certified = server.certify(&[]);
    assert_eq!((certified.code, verdicts(&certified)), (Some(0), verdicts(&always)), "{}", certified.said);
}

#[test]
fn a_broker_that_is_started_again_after_it_ended_crashed_and_is_judged_on() {
    // A negative frame size, and the size alone: this server ends at it.
    let server = Server::start(|_, frame| {
        if frame == [0xff, 0xff, 0xff, 0xff] { Act::End(Some(Duration::from_secs(1))) } else { Act::Answer }
    });
    let case = |slug: &str| format!("broker/api-versions/v0/{slug}");
    let (negative, answered) = (case("frame-size-negative"), case("null-client-id"));
    let certified = server.certify(&["--allow-hostile", "--case", &negative, "--case", &answered]);
    assert_eq!(certified.code, Some(1), "{}", certified.said);
    let outcome = |id: &str| certified.outcomes().iter().find(|outcome| outcome.case == id).unwrap();
    let crash = outcome(&negative);
    assert_eq!(
        (crash.verdict, crash.class, crash.sent.as_deref()),
        (Verdict::Fail, Some(Class::Crash), Some("ffffffff"))
    );
    assert!(crash.detail.as_ref().unwrap().contains("started again"), "{crash:?}");
    assert_eq!(outcome(&answered).verdict, Verdict::Pass);
}

#[test]
fn what_anybody_may_ask_is_asked_before_what_is_hostile() {
    // Ends at a negative version.
    let server = Server::start(|_, frame| match frame.get(6..8) {
        Some([0xff, 0xff]) => Act::End(None),
        _ => Act::Answer,
    });
    let certified = server.certify(&["--allow-hostile", "--case", "broker/api-versions/v0/*"]);
    assert_eq!(certified.faults().first().unwrap().class, Some(Class::Crash), "{}", certified.said);
    assert!(certified.not_run("the broker is gone") > 0);
    let gentle = Server::start(|_, _| Act::Answer).certify(&["--case", "broker/api-versions/v0/*"]);
    for outcome in gentle.outcomes().iter().filter(|outcome| outcome.verdict != Verdict::NotRun) {
        let now = certified.outcomes().iter().find(|now| now.case == outcome.case).unwrap();
        assert_eq!(now.verdict, outcome.verdict, "{now:?}");
    }
}

#[test]
fn a_broker_that_answers_no_more_hangs_and_the_rest_is_not_run() {
    let server = Server::start(|number, _| if number < IN_A_CASE { Act::Answer } else { Act::Silence });
    let certified = server.certify(&[]);
    assert_eq!(certified.code, Some(1), "{}", certified.said);
    let faults = certified.faults();
    let [hang] = faults.as_slice() else { panic!("{faults:#?}") };
    assert_eq!((hang.class, hang.severity), (Some(Class::Hang), Some(1)));
    assert!(certified.not_run("the broker is gone: ApiVersions is answered no more") > 0);
}

/// A frame with the correlation id of `request`.
fn frame(request: &[u8], rest: &[u8]) -> Act {
    let size = u32::try_from(4 + rest.len()).unwrap().to_be_bytes();
    Act::Send([&size, &request[8..12], rest].concat())
}

/// Answers ApiVersions with these keys, each with one version, and all else by `other`, which gets key and frame.
fn advertise(apis: &[[u8; 2]], request: &[u8], other: impl Fn(u8, &[u8]) -> Act) -> Act {
    if request[5] != 18 {
        return other(request[5], request);
    }
    let entries = apis.iter().flat_map(|&[key, version]| [0, key, 0, version, 0, version]);
    let count = [0, 0, 0, 0, 0, u8::try_from(apis.len()).unwrap()];
    frame(request, &count.into_iter().chain(entries).collect::<Vec<u8>>())
}

const METADATA: u8 = 3;
const CREATE_TOPICS: u8 = 19;
/// A count that no bytes are behind.
const UNREADABLE: [u8; 4] = [0x7f, 0xff, 0xff, 0xff];

/// Runs one case; it fails or differs, and the last request that was answered, of this key, is what the case stands on.
#[track_caller]
fn check_not_answered(act: fn(usize, &[u8]) -> Act, case: &str, key: u8, verdict: Verdict, class: Class) {
    let server = Server::start(act);
    let certified = server.certify(&["--case", case, "--allow-writes"]);
    let [outcome] = certified.outcomes() else { panic!("{:#?}", certified.outcomes()) };
    assert_eq!((outcome.verdict, outcome.class), (verdict, Some(class)), "{outcome:#?}");
    assert_eq!(certified.code, Some(i32::from(verdict == Verdict::Fail)), "{}", certified.said);
    let sent = outcome.sent.as_ref().unwrap();
    let requests = server.received.lock().unwrap().iter().map(|frame| codec::hex(frame)).collect::<Vec<_>>();
    assert!(sent[8..12] == format!("{key:04x}") && requests.contains(sent), "{outcome:#?}");
    let api = if key == METADATA { "Metadata" } else { "CreateTopics" };
    assert!(outcome.detail.as_ref().unwrap().contains(&format!("{api} version ")), "{outcome:#?}");
    assert!(outcome.want.is_some() && outcome.got.is_some(), "{outcome:#?}");
}

/// Metadata 1, whose answer begins with a count of brokers, and DescribeConfigs 1, which is never reached.
fn metadata(request: &[u8], answer: impl Fn(&[u8]) -> Act) -> Act {
    advertise(&[[18, 0], [METADATA, 1], [32, 1]], request, |key, request| match key {
        METADATA => answer(request),
        _ => Act::Close,
    })
}

/// Of level must and observed; both ask about the broker itself.
const OF_THE_BROKER: &str = "broker/describe-configs/v1/broker-all-keys";
const OF_THE_BROKER_OBSERVED: &str = "broker/describe-configs/v1/broker-each-config-once";

#[test]
fn metadata_that_is_not_answered_fails_the_cases_that_stand_on_it() {
    let check = |act, class| check_not_answered(act, OF_THE_BROKER, METADATA, Verdict::Fail, class);
    check(|_, request| metadata(request, |request| frame(request, &UNREADABLE)), Class::WrongBytes);
    check(|_, request| metadata(request, |_| Act::Send(vec![0xff; 64])), Class::WrongBytes);
    check(|_, request| metadata(request, |_| Act::Close), Class::Closed);
    check(|_, request| metadata(request, |_| Act::Silence), Class::NoAnswer);
    // Another correlation id; the answer itself is in order but for its brokers, of which there are none.
    check(|_, request| metadata(request, |_| frame(&[1; 12], &[0; 12])), Class::WrongAnswer);
    check(|_, request| metadata(request, |request| frame(request, &[0; 12])), Class::WrongAnswer);
}

#[test]
fn metadata_that_is_not_answered_differs_where_the_case_is_observed_unless_it_breaks_the_protocol() {
    let check = |act, verdict, class| check_not_answered(act, OF_THE_BROKER_OBSERVED, METADATA, verdict, class);
    check(|_, request| metadata(request, |_| Act::Close), Verdict::Differs, Class::Closed);
    check(|_, request| metadata(request, |request| frame(request, &UNREADABLE)), Verdict::Fail, Class::WrongBytes);
}

#[test]
fn what_a_broker_advertises_is_judged_where_it_cannot_be_read() {
    // An answer that leaves off in its count of APIs, and one to a request that was not made.
    let check = |answer: fn(usize, &[u8]) -> Act, class| {
        let certified = Server::start(answer).certify(&[]);
        assert_eq!(certified.code, Some(1), "{}", certified.said);
        let faults = certified.faults();
        let right = |fault: &&Outcome| fault.class == Some(class) && fault.case.starts_with("broker/api-versions/v0/");
        assert!(!faults.is_empty() && faults.iter().all(right), "{faults:#?}");
        assert!(certified.not_run("the broker does not say what it has: ") > 50);
    };
    check(|_, request| frame(request, &[0, 0, 0, 0]), Class::WrongBytes);
    check(|_, _| frame(&[1; 12], &[0, 0, 0, 0, 0, 0]), Class::WrongAnswer);
    // What answers something else is no broker that could be judged.
    let server = Server::start(|_, _| Act::Send(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()));
    let certified = server.certify(&[]);
    assert_eq!(certified.code, Some(3), "{}", certified.said);
}

#[test]
fn metadata_that_is_refused_is_no_fault() {
    // Version 13, the first with an error of its own: 29, and no brokers and topics.
    let server = Server::start(|_, request| {
        advertise(&[[18, 0], [METADATA, 13], [32, 1]], request, |_, request| {
            frame(request, &[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 29, 0])
        })
    });
    let refused = server.certify(&["--case", OF_THE_BROKER]);
    assert_eq!(refused.not_run("the broker's node id is not known: Metadata is answered with error 29"), 1);
    assert_eq!(refused.code, Some(3), "{}", refused.said);
    let server = Server::start(|_, request| advertise(&[[18, 0], [32, 1]], request, |_, _| Act::Close));
    let lacking = server.certify(&["--case", OF_THE_BROKER]);
    assert_eq!(lacking.outcomes()[0].verdict, Verdict::Unsupported, "{:?}", lacking.outcomes()[0]);
}

/// Where the server of the test below listens.
static ITS_PORT: AtomicU16 = AtomicU16::new(0);

/// Metadata 1 lists node 3 at port 2 and node 7 at `port`, under names that nobody resolves (id, host, port, no rack), a
/// controller and no topics. DescribeConfigs 1 is answered with error 42 but for node 7.
fn one_of_two(request: &[u8], port: u16) -> Act {
    advertise(&[[18, 0], [METADATA, 1], [32, 1]], request, |key, request| {
        if key == METADATA {
            let broker = |id: u8, port: u16| {
                let [high, low] = port.to_be_bytes();
                [0, 0, 0, id, 0, 3, b'a', b'.', b'b' + id, 0, 0, high, low, 0xff, 0xff]
            };
            let brokers = [broker(3, 2), broker(7, port)].concat();
            return frame(request, &[&[0, 0, 0, 2], &brokers[..], &[0, 0, 0, 3, 0, 0, 0, 0]].concat());
        }
        // Behind the header, whose client id has 13 bytes, a count and a type: the name, which the answer repeats.
        let name = &request[27 + 5..];
        let name = &name[..2 + usize::from(name[1])];
        // Name, value, read-only, source, sensitive, no synonyms.
        let config = [0, 1, b'a', 0, 1, b'b', 0, 5, 0, 0, 0, 0, 0];
        let (error, configs) = match name {
            [0, 1, b'7'] => (0, [&[0, 0, 0, 1], &config[..]].concat()),
            _ => (42, vec![0; 4]),
        };
        // No throttle time; one result: the error, no message, the type.
        let result = [&[0, 0, 0, 0, 0, 0, 0, 1, 0, error, 0xff, 0xff, 4], name].concat();
        frame(request, &[result, configs].concat())
    })
}

#[test]
fn a_broker_of_several_is_told_by_its_port_and_not_judged_for_another() {
    let found = Server::start(|_, request| one_of_two(request, ITS_PORT.load(Ordering::Relaxed)));
    ITS_PORT.store(found.address.port(), Ordering::Relaxed);
    let certified = found.certify(&["--case", OF_THE_BROKER]);
    assert_eq!(certified.outcomes()[0].verdict, Verdict::Pass, "{:?}", certified.outcomes());

    let mapped = Server::start(|_, request| one_of_two(request, 1));
    let certified = mapped.certify(&["--case", OF_THE_BROKER]);
    let why = "the broker's node id is not known: Metadata lists 2 brokers, and none can be told to be the one at ";
    assert_eq!((certified.not_run(why), certified.code), (1, Some(3)), "{:?}", certified.outcomes());
    // An id that no broker has is known all the same.
    let certified = mapped.certify(&["--case", "broker/describe-configs/v1/other-broker-is-an-error"]);
    assert_eq!(certified.outcomes()[0].verdict, Verdict::Pass, "{:?}", certified.outcomes());
}

/// CreateTopics 0, whose answer begins with a count of topics, and the APIs of the case, which are never reached.
fn create_topics(request: &[u8], answer: impl Fn(&[u8]) -> Act) -> Act {
    advertise(&[[18, 0], [CREATE_TOPICS, 0], [32, 0], [33, 0]], request, |key, request| match key {
        CREATE_TOPICS => answer(request),
        _ => Act::Close,
    })
}

const OF_A_TOPIC: &str = "broker/alter-configs/v0/alter-then-describe";

#[test]
fn a_scratch_topic_that_is_not_answered_fails_the_cases_that_stand_on_it() {
    let check = |act, class| check_not_answered(act, OF_A_TOPIC, CREATE_TOPICS, Verdict::Fail, class);
    check(|_, request| create_topics(request, |request| frame(request, &UNREADABLE)), Class::WrongBytes);
    check(|_, request| create_topics(request, |_| Act::Close), Class::Closed);
    check(|_, request| create_topics(request, |_| Act::Silence), Class::NoAnswer);
    check(|_, request| create_topics(request, |request| frame(request, &[0; 4])), Class::WrongAnswer);
}

#[test]
fn a_scratch_topic_that_is_refused_is_no_fault() {
    let server = Server::start(|_, request| {
        create_topics(request, |request| {
            // Behind the header, whose client id has 13 bytes, and a count: the name, which the answer repeats.
            let name = &request[27 + 4..];
            let name = &name[..2 + usize::from(name[1])];
            frame(request, &[&[0, 0, 0, 1], name, &[0, 29]].concat())
        })
    });
    let refused = server.certify(&["--case", OF_A_TOPIC, "--allow-writes"]);
    let why = "the scratch topic could not be created: CreateTopics is answered with error 29";
    assert_eq!((refused.not_run(why), refused.code), (1, Some(3)), "{:?}", refused.outcomes());
    assert_eq!(refused.outcomes()[0].refused, Some(29));
}

#[test]
fn what_is_denied_to_the_suite_is_not_judged() {
    // DescribeConfigs 1 denies everything: 31, the type and name repeated.
    let act = |_: usize, request: &[u8]| {
        advertise(&[[18, 0], [32, 1]], request, |_, request| {
            let name = &request[27 + 5..];
            let name = &name[..2 + usize::from(name[1])];
            let result = [&[0, 0, 0, 0, 0, 0, 0, 1, 0, 31, 0xff, 0xff, request[31]], name].concat();
            frame(request, &[&result[..], &[0; 4]].concat())
        })
    };
    // Due are success in a must, a code in a should, any error in a must.
    let cases = ["cluster-wide-broker-default", "unknown-topic", "unknown-topic-is-an-error"];
    for case in cases.map(|case| format!("broker/describe-configs/v1/{case}")) {
        let certified = Server::start(act).certify(&["--case", &case]);
        let why = "error 31 CLUSTER_AUTHORIZATION_FAILED: the broker denies it to us";
        assert_eq!((certified.not_run(why), certified.code), (1, Some(3)), "{:?}", certified.outcomes());
        assert_eq!(certified.outcomes()[0].refused, Some(31));
    }
    let judged = ["--case", "broker/api-versions/v0/answered", "--case", "broker/describe-configs/v1/unknown-topic"];
    let certified = Server::start(act).certify(&judged);
    assert_eq!(certified.code, Some(0), "{}", certified.said);
    assert!(certified.said.contains("1 case was not run: the broker denies it to us: "), "{}", certified.said);
}

/// DescribeConfigs 1 of node 7: num.io.threads with that value and source, not sensitive, whose one synonym has "8" and
/// source 5.
fn with_synonym(request: &[u8], value: u8, source: u8) -> Act {
    advertise(&[[18, 0], [METADATA, 1], [32, 1]], request, |key, request| {
        if key == METADATA {
            let broker = [0, 0, 0, 7, 0, 1, b'a', 0, 0, 0, 1, 0xff, 0xff];
            return frame(request, &[&[0, 0, 0, 1], &broker[..], &[0, 0, 0, 7, 0, 0, 0, 0]].concat());
        }
        let name = [&[0, 14][..], b"num.io.threads"].concat();
        let result = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0xff, 0xff, 4, 0, 1, b'7', 0, 0, 0, 1];
        let entry = [0, 1, value, 0, source, 0, 0, 0, 0, 1];
        frame(request, &[&result[..], &name, &entry, &name, &[0, 1, b'8', 5]].concat())
    })
}

#[test]
fn an_entry_against_its_own_synonyms_fails() {
    let judge = |act: fn(usize, &[u8]) -> Act| {
        let case = "broker/describe-configs/v1/broker-values-are-those-of-their-synonyms";
        let certified = Server::start(act).certify(&["--case", case]);
        (certified.outcomes()[0].verdict, certified.outcomes()[0].class)
    };
    assert_eq!(judge(|_, request| with_synonym(request, b'8', 5)), (Verdict::Pass, None));
    let fail = (Verdict::Fail, Some(Class::WrongValue));
    assert_eq!(judge(|_, request| with_synonym(request, b'9', 5)), fail);
    assert_eq!(judge(|_, request| with_synonym(request, b'8', 4)), fail);
}

#[test]
fn ranges_that_contradict_each_other_fail() {
    let judge = |act: fn(usize, &[u8]) -> Act, case: &str| {
        let certified = Server::start(act).certify(&["--case", case]);
        certified.outcomes()[0].verdict
    };
    // ApiVersions itself, and AlterConfigs with a range that is in order, turned round, or begins below 0.
    fn ranges(request: &[u8], lowest: i8, highest: u8) -> Act {
        let [high, low] = i16::from(lowest).to_be_bytes();
        frame(request, &[0, 0, 0, 0, 0, 2, 0, 18, 0, 0, 0, 0, 0, 33, high, low, 0, highest])
    }
    const ORDER: &str = "broker/api-versions/v0/ranges-are-in-order";
    assert_eq!(judge(|_, request| ranges(request, 1, 2), ORDER), Verdict::Pass);
    assert_eq!(judge(|_, request| ranges(request, 3, 1), ORDER), Verdict::Fail);
    assert_eq!(judge(|_, request| ranges(request, -1, 1), ORDER), Verdict::Fail);

    // ApiVersions to version 1, which says the same as version 0 and a throttle time, or another range.
    fn at_both(request: &[u8], highest_in_1: u8, throttle: u8) -> Act {
        let list = |highest| [0, 0, 0, 0, 0, 2, 0, 18, 0, 0, 0, 1, 0, 33, 0, 0, 0, highest];
        match request[7] {
            0 => frame(request, &list(2)),
            _ => frame(request, &[&list(highest_in_1)[..], &[throttle, 0, 0, 0]].concat()),
        }
    }
    const SAME: &str = "broker/api-versions/v1/same-ranges-at-every-version";
    assert_eq!(judge(|_, request| at_both(request, 2, 0), SAME), Verdict::Pass);
    assert_eq!(judge(|_, request| at_both(request, 1, 0), SAME), Verdict::Differs);
    const THROTTLE: &str = "broker/api-versions/v1/throttle-time-is-not-negative";
    assert_eq!(judge(|_, request| at_both(request, 2, 0), THROTTLE), Verdict::Pass);
    assert_eq!(judge(|_, request| at_both(request, 2, 0x80), THROTTLE), Verdict::Differs);
}

/// What a shell adapter says at its start, and to the probe.
fn adapter(rest: &str) -> String {
    let handshake = r#"read -r line; echo '{"protocol":1,"peer":"shell","version":"1","supports":SUPPORTS}'"#;
    let probe = r#"read -r line; echo '{"id":1,"unsupported":"no such message"}'"#;
    let (supports, rest) = rest.split_once('|').expect("what it supports stands before a bar");
    format!("{}; {probe}; {rest}", handshake.replace("SUPPORTS", supports))
}

#[test]
fn why_nothing_was_judged_is_told_as_it_is() {
    let check = |certified: Certified, says: &str, not: &[&str]| {
        assert_eq!(certified.code, Some(3), "{}", certified.said);
        assert!(certified.said.contains("nothing was judged: ") && certified.said.contains(says), "{}", certified.said);
        assert!(!not.iter().any(|text| certified.said.contains(text)), "{}", certified.said);
    };
    let case = ["codec", "--case", "codec/alter-configs-response/v2/**"];
    let shell = |rest: &str| certify(&case, &["sh", "-c", &adapter(rest)]);
    let nothing = "the peer has nothing that the selected cases are about";
    check(shell("{}|cat > /dev/null"), nothing, &["fault", "consent"]);
    let garbage = r#"{"AlterConfigsResponse":{"decode":"0-2","encode":"0-2"}}|echo hello; cat > /dev/null"#;
    check(shell(garbage), "the adapter broke the protocol", &[nothing, "consent"]);

    let server = Server::start(|_, _| Act::Answer);
    let hostile = server.certify(&["--case", "broker/api-versions/v0/frame-size-*"]);
    check(hostile, "needs consent (--allow-hostile)", &[nothing, "fault"]);
    let lacking = server.certify(&["--case", "broker/describe-configs/v4/broker-all-keys"]);
    check(lacking, "the broker does not advertise DescribeConfigs", &["consent", "fault"]);
}

#[test]
fn a_matrix_of_peers_that_cannot_run_is_no_success() {
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    command.args(["matrix", "--role", "broker", "--out"]).arg(out.path());
    // No program is found there, Java neither.
    let output = command.env("PATH", out.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("no peer could run") && said.contains("apache-kafka@4.4.0: java is not there"), "{said}");
    assert!(out.path().join("index.html").is_file());
}

#[test]
fn what_cannot_be_written_is_found_before_the_run() {
    let out = tempfile::tempdir().unwrap();
    let page = out.path().join("junit.xml");
    std::fs::create_dir(&page).unwrap();
    let known = out.path().join("no-such-folder/known.toml");
    let known = known.to_str().unwrap();
    let page = page.to_str().unwrap();
    let check = |options: &[&str], code: i32, says: &[&str]| {
        let mut command = Command::new(binary());
        command.args(["certify", "codec", "--out"]).arg(out.path()).args(options);
        let output = command.arg("--").arg(binary()).args(["fake", "codec"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(says.iter().all(|text| said.contains(text)), "{said}");
        assert!(output.status.code() == Some(code) && output.stdout.is_empty(), "{output:?}");
    };
    check(&[], 3, &[page, "a folder stands where the file belongs"]);
    check(&["--write-known", known], 2, &["--write-known", known, "there is no folder"]);
    check(&["--write-known", page], 2, &["--write-known", page, "it is a folder"]);
    check(&["--known", known], 2, &["--known", known, "No such file"]);
}

#[test]
fn an_interrupt_while_brokers_are_made_ready_is_told_and_leaves_nothing_running() {
    // A checkout as far as the suite looks, where nothing is built; tools that take their time, and say which process they are.
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("adapters/librdkafka")).unwrap();
    std::fs::write(path("adapters/librdkafka/adapter.toml"), "").unwrap();
    let script = "#!/bin/sh\ncase \"$*\" in *-version*) echo 'openjdk version \"17\"' >&2; exit 0;; esac\n\
                  echo $$ > \"$BUSY.new\"; mv \"$BUSY.new\" \"$BUSY\"; exec sleep 600\n";
    for tool in ["java", "mvn"] {
        std::fs::write(path(tool), script).unwrap();
        std::fs::set_permissions(path(tool), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let tools = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(binary());
    command.args(["matrix", "--peer", "apache-kafka", "--role", "broker", "--out"]).arg(path("report"));
    command.current_dir(folder.path()).env("PATH", tools).env("BUSY", path("busy"));
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !path("busy").exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let busy: i32 = std::fs::read_to_string(path("busy")).unwrap().trim().parse().unwrap();
    let pid = |number: i32| rustix::process::Pid::from_raw(number).unwrap();
    rustix::process::kill_process(pid(i32::try_from(run.id()).unwrap()), rustix::process::Signal::INT).unwrap();
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("the run was interrupted before a peer was judged"), "{said}");
    assert!(rustix::process::test_kill_process(pid(busy)).is_err(), "{busy} runs");
    let results = Results::from_jsonl(std::fs::read_to_string(path("report/results.jsonl")).unwrap()).unwrap();
    assert!(results.run.partial && !results.peers.is_empty());
    for peer in &results.peers {
        assert_eq!(peer.why.as_deref(), Some("the run was interrupted"), "{peer:?}");
    }
}

#[test]
fn two_runs_do_not_write_to_one_folder() {
    let out = tempfile::tempdir().unwrap();
    let folder = std::fs::File::open(out.path()).unwrap();
    folder.lock().unwrap();
    let run = || {
        let mut command = Command::new(binary());
        let case = ["--case", "codec/alter-configs-request/v2/smallest"];
        command.args(["matrix", "--peer", "reference", "--out"]).arg(out.path()).args(case).output().unwrap()
    };
    let output = run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains("another run writes to"), "{said}");
    assert!(!out.path().join("results.jsonl").exists());
    drop(folder);
    assert_eq!(run().status.code(), Some(0));
    assert_eq!(run().status.code(), Some(0));
}

/// What ends before it has a row leaves no results, and those of an earlier run as they are.
#[test]
fn a_run_that_judges_nothing_leaves_no_results() {
    let nobody = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let (nobody, exit) = (nobody.to_string(), ["sh", "-c", "exit 1"]);
    let attempts: [(&[&str], &[&str]); 3] =
        [(&["broker", &nobody], &[]), (&["codec"], &exit), (&["client"], &["/nonexistent/adapter"])];
    for (arguments, adapter) in attempts {
        let out = tempfile::tempdir().unwrap();
        let end = |out: &Path| {
            let output = run(arguments, out, adapter);
            assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            std::fs::read(out.join("results.jsonl")).ok()
        };
        assert_eq!(end(out.path()), None, "{arguments:?}");
        std::fs::write(out.path().join("results.jsonl"), "of an earlier run").unwrap();
        assert_eq!(end(out.path()).as_deref(), Some(b"of an earlier run".as_slice()), "{arguments:?}");
    }
    // Where no byte can be written, there is not even a first row.
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 0; exec \"$0\" \"$@\""]).arg(binary());
    command.args(["matrix", "--peer", "reference", "--case", "codec/alter-configs-request/v2/smallest", "--out"]);
    let output = command.arg(out.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}

#[test]
fn a_run_on_a_disk_that_is_full_stops_and_says_so() {
    let out = tempfile::tempdir().unwrap();
    // A file may have 100 blocks of half a KiB or one, which stands for a disk with so much room.
    let script = "ulimit -f 100; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(binary()).args(["matrix", "--peer", "reference", "--out"]).arg(out.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("the run was stopped: cannot write results.jsonl") && said.contains("ulimit -f"), "{said}");
    // What was written until then is left as it is.
    let text = std::fs::read_to_string(out.path().join("results.jsonl")).unwrap();
    assert!(text.lines().next().unwrap().contains("\"partial\":true"), "{said}");
    assert!(text.lines().count() > 50 && text.len() >= 50 * 1024, "{} bytes", text.len());
}
