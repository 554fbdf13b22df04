//! Requests of the suite's own, that a case stands on: who the broker is, a scratch topic, whether it is still there. Each
//! is well formed and of a version that both sides have, so that no answer to it is the broker's fault; an answer that
//! is an error is not.

use std::io::ErrorKind;

use codec::ApiVersion;
use serde_json::{Value as Json, json};

use super::connection::{Connection, Received};
use super::environment::Refusal;
use super::evidence::{evidence, known_secrets, mask};
use super::message::{Answer, Request};
use super::{ANSWER, API_VERSIONS, LiveBroker};
use crate::results::Class;

pub(super) const CORRELATION_OF_OUR_OWN: i32 = 7;

/// A request of the suite's own that was answered.
pub(super) struct Asked {
    request: Request,
    frame: Vec<u8>,
    /// The answer.
    pub body: Json,
}

impl Asked {
    /// The answer is in order, but without what each must have: `what` says so with its verb.
    pub fn lacking(&self, broker: &LiveBroker, what: &str) -> Refused {
        let what = format!("the answer to {} version {} {what}", self.request.api, self.request.version);
        Refused::answered(broker, &self.request, &self.frame, Why::Lacking, what)
    }
}

/// That a request of the suite's own has no answer that a case can stand on.
pub(super) struct Refused {
    /// What came instead, in words.
    pub what: String,
    pub why: Why,
    /// What was sent, what is due and what came, where something was sent.
    pub seen: Option<Box<Seen>>,
}

/// The evidence.
pub(super) struct Seen {
    pub sent: String,
    pub want: Json,
    pub got: Json,
}

/// Why it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It could not be sent: a fault of ours, or the API is not advertised.
    Unsent,
    /// There was no connection.
    NoConnection(ErrorKind),
    /// The broker says why not, with this code where it is its surroundings' fault.
    Error(Option<i16>),
    /// The connection was closed.
    Closed,
    /// Nothing came in time.
    Silent,
    /// What came is no frame, or not in time, or cannot be read.
    Unreadable(Class),
    /// An answer, by its correlation id, that cannot be read.
    Misread,
    /// An answer to something else.
    OtherId,
    /// An answer without what each must have.
    Lacking,
}

impl Why {
    /// The class of a broker's fault, and whether it breaks the protocol, which is a `must` whatever the case is about;
    /// `None` where the broker is not at fault.
    pub fn fault(self) -> Option<(Class, bool)> {
        match self {
            Why::Unsent | Why::NoConnection(_) | Why::Error(_) => None,
            Why::Closed => Some((Class::Closed, false)),
            Why::Silent => Some((Class::NoAnswer, false)),
            Why::Unreadable(class) => Some((class, true)),
            Why::Misread => Some((Class::WrongBytes, true)),
            Why::OtherId => Some((Class::WrongAnswer, true)),
            Why::Lacking => Some((Class::WrongAnswer, false)),
        }
    }
}

impl Refused {
    /// It could not be sent.
    pub fn unsent(what: String) -> Refused {
        Refused { what, why: Why::Unsent, seen: None }
    }

    /// The broker answered with an error.
    pub fn by_error(api: &str, error: i64) -> Refused {
        let refusal = Refusal::of(api, error);
        let error = refusal.map_or_else(|| format!("error {error}"), Refusal::text);
        let why = Why::Error(refusal.map(|refusal| refusal.code));
        Refused { what: format!("{api} is answered with {error}"), why, seen: None }
    }

    fn without_answer(request: &Request, why: Why, what: String, got: Json) -> Refused {
        let want = format!("an answer to {} version {}", request.api, request.version).into();
        Refused { what, why, seen: Some(Box::new(Seen { sent: evidence(&request.frame), want, got })) }
    }

    fn answered(broker: &LiveBroker, request: &Request, frame: &[u8], why: Why, what: String) -> Refused {
        let shown = mask(broker.protocol, broker.address.port(), &known_secrets(&[]), request, frame);
        Refused::without_answer(request, why, what, json!({ "frame": evidence(&shown.frame) }))
    }
}

impl LiveBroker<'_> {
    /// One request of the suite's own, on a connection of its own, at the highest common version (ApiVersions: 0).
    pub(super) fn ask(&self, api: &str, body: &Json) -> Result<Asked, Refused> {
        let version = if api == API_VERSIONS { Some(ApiVersion(0)) } else { self.highest(api) };
        let version = version.ok_or_else(|| Refused::unsent(format!("{api} is not advertised")))?;
        self.ask_at(api, version, body)
    }

    pub(super) fn ask_at(&self, api: &str, version: ApiVersion, body: &Json) -> Result<Asked, Refused> {
        let request =
            Request::new(self.protocol, api, version, CORRELATION_OF_OUR_OWN, body).map_err(Refused::unsent)?;
        self.remember(|| format!("a request of the suite's own, {api} version {version}"), &[&request.frame]);
        self.exchange(request)
    }

    /// One request of the suite's own and its answer, on a connection of its own.
    pub(super) fn exchange(&self, request: Request) -> Result<Asked, Refused> {
        let mut connection = Connection::open(self.address).map_err(|error| Refused {
            what: format!("no connection: {}", error.kind()),
            why: Why::NoConnection(error.kind()),
            seen: None,
        })?;
        connection.send(&request.frame);
        let asked = format!("{} version {}", request.api, request.version);
        let received = connection.receive(ANSWER);
        let why = match received {
            Received::Frame(frame) => {
                let (why, what) = match Answer::read(self.protocol, &request, &frame) {
                    Ok(answer) if answer.correlation_id == request.correlation_id => {
                        return Ok(Asked { request, frame, body: answer.body });
                    }
                    Ok(_) => (Why::OtherId, "the correlation id of the answer is another".to_owned()),
                    Err(what) if frame.get(4..8) == Some(&request.correlation_id.to_be_bytes()) => (Why::Misread, what),
                    Err(what) => (Why::Unreadable(Class::WrongBytes), what),
                };
                return Err(Refused::answered(self, &request, &frame, why, format!("{asked}: {what}")));
            }
            Received::Closed => Why::Closed,
            Received::Silent => Why::Silent,
            Received::Unfinished => Why::Unreadable(Class::NoAnswer),
            Received::Broken(_) => Why::Unreadable(Class::WrongBytes),
        };
        if matches!(received, Received::Silent | Received::Unfinished) {
            self.patience.borrow_mut().passed(ANSWER);
        }
        let came = received.describe();
        Err(Refused::without_answer(&request, why, format!("{asked}: {came}"), came.into()))
    }
}
