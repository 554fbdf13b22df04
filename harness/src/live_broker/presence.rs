//! Is the broker still there? One that closed a connection goes on with the next one; one that takes no connection any
//! more, or answers on none, is at fault whatever the case was about, and nothing more can be asked of it.

use std::io::ErrorKind;
use std::thread::sleep;
use std::time::{Duration, Instant};

use codec::ApiVersion;
use serde_json::json;

use super::evidence::evidence;
use super::message::Request;
use super::own_request::{CORRELATION_OF_OUR_OWN, Refused, Why};
use super::{API_VERSIONS, LiveBroker};
use crate::results::{Class, Outcome, Verdict};

/// How long a broker that does not serve is asked again, and how often at least: it may be slow.
const PATIENCE: Duration = Duration::from_secs(4);
const ATTEMPTS: usize = 3;

/// What a broker was sent last, and by whom.
#[derive(Debug, Default)]
pub(super) struct LastSent {
    by: String,
    bytes: Vec<u8>,
}

/// What became of a broker.
pub(super) enum Presence {
    /// It answers.
    There,
    /// It refused connections and then took them again: it ended, and somebody started it again.
    CameBack,
    /// It does not answer, tried again and again; why not.
    Gone(Why),
}

impl Presence {
    /// Whether it can be asked something.
    pub(super) fn is_there(&self) -> bool {
        !matches!(self, Presence::Gone(_))
    }
}

impl LiveBroker<'_> {
    /// Notes what is sent, and by which case or request.
    pub(super) fn remember(&self, by: impl FnOnce() -> String, frames: &[impl AsRef<[u8]>]) {
        if !frames.is_empty() {
            let bytes = frames.iter().flat_map(|frame| frame.as_ref().iter().copied()).collect();
            *self.last_sent.borrow_mut() = LastSent { by: by(), bytes };
        }
    }

    /// Asks ApiVersions on new connections, until there is an answer or patience is at its end.
    pub(super) fn presence(&self) -> Presence {
        let request = || {
            Request::new(self.protocol, API_VERSIONS, ApiVersion(0), CORRELATION_OF_OUR_OWN, &json!({}))
                .expect("ApiVersions version 0 is defined")
        };
        let deadline = Instant::now() + PATIENCE;
        let (mut pause, mut refused_once) = (Duration::from_millis(50), false);
        for attempt in 1.. {
            match self.exchange(request()) {
                Ok(_) if refused_once => return Presence::CameBack,
                Ok(_) => return Presence::There,
                // As at the start.
                Err(Refused { why: Why::Misread | Why::OtherId, .. }) if self.unmet.is_some() => {
                    return Presence::There;
                }
                Err(Refused { why, .. }) => {
                    refused_once |= why == Why::NoConnection(ErrorKind::ConnectionRefused);
                    if attempt >= ATTEMPTS && Instant::now() + pause > deadline {
                        return Presence::Gone(why);
                    }
                }
            }
            sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(1));
        }
        unreachable!("the attempts have no end")
    }

    /// Puts what became of the broker into the outcome of the case behind which it was looked for.
    pub(super) fn doubt(&self, outcome: &mut Outcome, presence: Presence) {
        let (class, what) = match presence {
            Presence::There => return,
            Presence::CameBack => {
                (Some(Class::Crash), "it refused connections for a while: it ended and was started again".to_owned())
            }
            Presence::Gone(Why::NoConnection(kind)) => match kind {
                ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::TimedOut
                | ErrorKind::WouldBlock
                | ErrorKind::HostUnreachable => {
                    (Some(Class::Crash), format!("it accepts no connection any more ({kind})"))
                }
                // Our own network, or our own limits.
                _ => (None, format!("no connection can be made from here any more ({kind})")),
            },
            Presence::Gone(Why::Closed) => {
                (Some(Class::Closed), "every new connection is closed without an answer to ApiVersions".to_owned())
            }
            Presence::Gone(Why::Silent) => {
                (Some(Class::Hang), "ApiVersions is answered no more on a new connection".to_owned())
            }
            Presence::Gone(
                Why::Unreadable(_) | Why::Misread | Why::OtherId | Why::Lacking | Why::Error(_) | Why::Unsent,
            ) => (Some(Class::WrongAnswer), "ApiVersions is no more answered as it should be".to_owned()),
        };
        let last = self.last_sent.borrow();
        let before = outcome.detail.take().map(|detail| format!("{detail}; ")).unwrap_or_default();
        let by = if last.by == outcome.case { String::new() } else { format!("; sent last was {}", last.by) };
        outcome.detail = Some(format!("{before}afterwards: {what}{by}"));
        outcome.verdict = if class.is_some() { Verdict::Fail } else { Verdict::HarnessError };
        outcome.class = class;
        outcome.severity = class.map(Class::severity);
        outcome.at = None;
        outcome.sent = Some(evidence(&last.bytes));
        outcome.want = Some("an answer to ApiVersions on a new connection".into());
        outcome.got = Some(what.as_str().into());
        if !presence.is_there() {
            let _ = self.gone.set(format!("{what}, since {}", outcome.case));
        }
    }
}
