//! A broker that plays a script to a client. It answers ApiVersions and Metadata as one honest node would and closes the
//! connection on everything else, like Apache Kafka on an API that it does not have, until a [`Reply`] says otherwise.
//! Every request is recorded, whatever its bytes are.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use codec::{
    AbsentFields, ApiKey, ApiVersion, EncodeError, FrameLayout, Layout, MessageKind, MessageSpec, Protocol,
    UNSUPPORTED_VERSION, Value, VersionRange, decode_frame, encode_frame, header_version, parse_hex,
};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value as Json, json};

/// Key of Metadata.
const METADATA: ApiKey = ApiKey(3);
/// Key of ApiVersions.
const API_VERSIONS: ApiKey = ApiKey(18);
/// Error code of a topic that there is not.
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
/// Node id of the broker.
const NODE: i32 = 1;
/// Cluster id of the broker.
const CLUSTER: &str = "kafka-conform";

/// The largest request taken, in bytes: config requests of clients under test take a few hundred. What is recorded is
/// taken apart and judged, which takes some hundred times its bytes in memory.
const FRAME_LIMIT: usize = 128 << 10;
/// Requests recorded at most; a client that sends more is cut off.
const REQUEST_LIMIT: usize = 1_000;
/// Bytes recorded at most, requests and answers together.
const RECORD_LIMIT: usize = 1 << 20;
/// Connections served at one time.
const CONNECTION_LIMIT: usize = 64;
/// Time a client may leave a request unfinished, or an answer unread.
const IO_DEADLINE: Duration = Duration::from_secs(10);
/// How long an answer is held back for a later one to overtake it.
const HOLD: Duration = Duration::from_millis(300);
/// Pause between the pieces of a split answer, so that they travel apart.
const PIECE_PAUSE: Duration = Duration::from_micros(200);
/// What `wrong_correlation` and `stray` add to the correlation id: no client has so many requests under way.
const WRONG_CORRELATION: i32 = 1_000_000;

/// What the broker has and how it answers.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The versions it advertises, by API key.
    pub caps: BTreeMap<i16, VersionRange>,
    /// The topics it has, each with one partition.
    pub topics: Vec<String>,
    /// What overrides the honest answers; the first that fits a request is taken.
    pub replies: Vec<Reply>,
}

/// How requests of one API are answered. Without `value`, `hex` and `frame` the honest answer goes through the rest.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The API, by name; empty in a case file for the API that the file is about.
    #[serde(default)]
    pub api: String,
    /// The first so many requests only.
    pub times: Option<u32>,
    /// Requests of these versions only; of all unless given.
    #[serde(default, deserialize_with = "range")]
    pub versions: Option<VersionRange>,
    /// The body in the definition's structures. Fields that the version lacks are left out, and so are results for
    /// resources that the request does not name, unless `unasked` is set.
    pub value: Option<Json>,
    /// Keeps results for resources that the request does not name.
    #[serde(default)]
    pub unasked: bool,
    /// Header fields that differ, such as `_tags`.
    #[serde(default)]
    pub header: Map<String, Json>,
    /// The bytes of the body, behind an honest size and header.
    pub hex: Option<String>,
    /// All the bytes sent: size, header and body.
    pub frame: Option<String>,
    /// So many bytes are missing at the end of the frame; its size says what is left.
    #[serde(default)]
    pub truncate: usize,
    /// Only so many bytes of the frame are sent, then the connection is closed.
    pub cut: Option<usize>,
    /// The answer comes so many milliseconds late.
    #[serde(default)]
    pub delay_ms: u64,
    /// The frame is written in pieces of so many bytes.
    pub split: Option<usize>,
    /// The connection is closed instead of an answer.
    #[serde(default)]
    pub close: bool,
    /// No answer; the connection stays open.
    #[serde(default)]
    pub silent: bool,
    /// The answer has a correlation id that nobody asked with.
    #[serde(default)]
    pub wrong_correlation: bool,
    /// A body that is sent before the answer, in a frame with a correlation id that nobody asked with.
    pub stray: Option<Json>,
    /// The answer is held back until the next request on its connection was answered, so that they come out of order.
    #[serde(default)]
    pub hold: bool,
}

fn range<'de, D: Deserializer<'de>>(from: D) -> Result<Option<VersionRange>, D::Error> {
    String::deserialize(from)?.parse().map(Some).map_err(de::Error::custom)
}

/// A request, and what was sent in return.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// Number of its connection, from 0 in the order they were accepted.
    pub connection: usize,
    /// API and version as the bytes say; `None` where there are too few.
    pub api: Option<(ApiKey, ApiVersion)>,
    /// The whole request, size included.
    pub request: Vec<u8>,
    /// The request decoded, or what is wrong with it, in one sentence.
    pub decoded: Result<Request, String>,
    /// The frame that answers it, as it is before it is cut short or split.
    pub answer: Option<Vec<u8>>,
    /// Whether the client is to get that frame: to the end, and with the correlation id that it asked with.
    pub delivered: bool,
}

/// A request that decodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its header.
    pub header: Json,
    /// Its body.
    pub body: Json,
    /// The liberties its bytes took that a broker may refuse, each with its offset in the frame.
    pub anomalies: Vec<String>,
}

impl Reply {
    /// Whether the answer comes to its end, with the correlation id asked with.
    fn delivers(&self) -> bool {
        !(self.close || self.silent || self.wrong_correlation || self.cut.is_some())
    }
}

/// A running broker. It ends, with all its connections, when this is dropped.
#[derive(Debug)]
pub struct ScriptedBroker {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl ScriptedBroker {
    /// Starts a broker on a free port of 127.0.0.1.
    pub fn start(protocol: &'static Protocol, script: Script) -> io::Result<ScriptedBroker> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(protocol, script, address));
        let acceptor = thread::spawn({
            let shared = shared.clone();
            move || accept(&listener, &shared)
        });
        Ok(ScriptedBroker { address, shared, acceptor: Some(acceptor) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests so far, in the order they came.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.state().exchanges.clone()
    }
}

impl Drop for ScriptedBroker {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.stop = true;
            for socket in state.sockets.values() {
                let _ = socket.shutdown(Shutdown::Both);
            }
            self.shared.stopped.notify_all();
        }
        // The acceptor sits in accept(): a connection wakes it up. Where there can be none, it is left to itself.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
    }
}

#[derive(Debug)]
struct Shared {
    protocol: &'static Protocol,
    script: Script,
    address: SocketAddr,
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    /// The open connections, so that they can be ended.
    sockets: BTreeMap<usize, TcpStream>,
    exchanges: Vec<Exchange>,
    recorded: usize,
    /// How often each reply was used.
    used: Vec<u32>,
}

impl Shared {
    fn new(protocol: &'static Protocol, script: Script, address: SocketAddr) -> Shared {
        let used = script.replies.iter().map(|_| 0).collect();
        let state = Mutex::new(State { used, ..State::default() });
        Shared { protocol, script, address, state, stopped: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, unless the broker ends before. False if it does.
    fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = self.state();
        while !state.stop {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return true };
            (state, _) = self.stopped.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        false
    }

    /// Notes a request; false when the record is full.
    fn record(&self, exchange: Exchange) -> bool {
        let mut state = self.state();
        let size = exchange.request.len() + exchange.answer.as_ref().map_or(0, Vec::len);
        let room = state.exchanges.len() < REQUEST_LIMIT && state.recorded + size <= RECORD_LIMIT;
        if room {
            state.recorded += size;
            state.exchanges.push(exchange);
        }
        room
    }

    /// Whether requests of this version are answered; ApiVersions always is (KIP-511).
    fn advertises(&self, key: ApiKey, version: ApiVersion) -> bool {
        key == API_VERSIONS || self.script.caps.get(&key.0).is_some_and(|range| range.contains(version))
    }

    /// The first reply for an API at this version that is not used up.
    fn reply(&self, api: &str, version: ApiVersion) -> Option<Reply> {
        let mut state = self.state();
        let fits = |(index, reply): &(usize, &Reply)| {
            reply.api == api
                && reply.versions.is_none_or(|versions| versions.contains(version))
                && reply.times.is_none_or(|times| state.used.get(*index).is_some_and(|used| *used < times))
        };
        let (index, reply) = self.script.replies.iter().enumerate().find(fits)?;
        if let Some(used) = state.used.get_mut(index) {
            *used += 1;
        }
        Some(reply.clone())
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for (number, socket) in listener.incoming().enumerate() {
        threads.retain(|thread| !thread.is_finished());
        let Ok(socket) = socket else {
            // Out of file descriptors, most likely: the next try may do better.
            if !shared.pause(Duration::from_millis(20)) {
                break;
            }
            continue;
        };
        {
            let mut state = shared.state();
            if state.stop {
                break;
            }
            let Ok(clone) = socket.try_clone() else { continue };
            if state.sockets.len() >= CONNECTION_LIMIT {
                continue;
            }
            state.sockets.insert(number, clone);
        }
        let shared = shared.clone();
        threads.push(thread::spawn(move || {
            // However the conversation ends, a client sees its end.
            let ready = socket.set_nodelay(true).and_then(|()| socket.set_write_timeout(Some(IO_DEADLINE)));
            let connection = Connection { shared: &shared, channel: &socket, number, held: None };
            let _ = ready.and_then(|()| connection.serve());
            let _ = socket.shutdown(Shutdown::Both);
            shared.state().sockets.remove(&number);
        }));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// An error that ends the conversation.
fn hang_up(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// What a conversation runs over.
trait Channel: Read + Write {
    /// How long a read waits; for ever where there is no time.
    fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()>;
}

impl Channel for &TcpStream {
    fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        TcpStream::set_read_timeout(self, time)
    }
}

/// A client that has sent all it ever will.
struct Recording<'b> {
    /// What the broker did not read yet.
    sent: &'b [u8],
    /// How many bytes come at once.
    piece: usize,
    answers: Vec<u8>,
}

impl Read for Recording<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = buffer.len().min(self.piece.max(1));
        self.sent.read(buffer.get_mut(..piece).unwrap_or_default())
    }
}

impl Write for Recording<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answers.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Channel for &mut Recording<'_> {
    fn set_read_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

/// The conversation with a client that sends these bytes, `piece` at a time, and then ends the connection: what is
/// recorded, and what the client gets. There is no socket; pauses of the script are real.
pub fn converse(protocol: &'static Protocol, script: Script, sent: &[u8], piece: usize) -> (Vec<Exchange>, Vec<u8>) {
    let shared = Shared::new(protocol, script, SocketAddr::from((Ipv4Addr::LOCALHOST, 9092)));
    let mut client = Recording { sent, piece, answers: Vec::new() };
    // Why it ended is in the record.
    let _ = Connection { shared: &shared, channel: &mut client, number: 0, held: None }.serve();
    let exchanges = std::mem::take(&mut shared.state().exchanges);
    (exchanges, client.answers)
}

struct Connection<'s, C> {
    shared: &'s Shared,
    channel: C,
    number: usize,
    /// An answer that waits for the next one to overtake it.
    held: Option<(Vec<u8>, Reply)>,
}

impl<C: Channel> Connection<'_, C> {
    fn serve(mut self) -> io::Result<()> {
        while let Some(request) = self.read()? {
            self.take(request)?;
        }
        Ok(())
    }

    /// The next frame, size included; `None` at the end of the stream. A client may keep silent between frames for as
    /// long as the broker lives, but not within one.
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut frame = vec![0; 4];
        self.channel.set_read_timeout(self.held.is_some().then_some(HOLD))?;
        let first = loop {
            match self.channel.read(&mut frame) {
                Ok(read) => break read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    // Nothing came to overtake the answer that is held back.
                    self.release()?;
                    self.channel.set_read_timeout(None)?;
                }
                Err(error) => return Err(error),
            }
        };
        if first == 0 {
            return Ok(None);
        }
        self.channel.set_read_timeout(Some(IO_DEADLINE))?;
        let mut filled = first;
        let mut wanted = 4;
        loop {
            if filled == 4 && wanted == 4 {
                let size = frame.first_chunk().map_or(-1, |size| i32::from_be_bytes(*size));
                match usize::try_from(size) {
                    Ok(size) if size <= FRAME_LIMIT => wanted = 4 + size,
                    _ => {
                        let what = format!("frame size {size} is not between 0 and {FRAME_LIMIT}");
                        self.note_broken(frame, what);
                        return Err(hang_up("frame size"));
                    }
                }
            }
            if filled == wanted {
                frame.truncate(wanted);
                return Ok(Some(frame));
            }
            // The buffer grows with what came, not with what the size promises.
            frame.resize(wanted.min(filled + 8192), 0);
            match self.channel.read(frame.get_mut(filled..).unwrap_or_default()) {
                Ok(0) => {
                    frame.truncate(filled);
                    self.note_broken(frame, format!("the connection ended after {filled} of {wanted} bytes"));
                    return Ok(None);
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    frame.truncate(filled);
                    // When the broker ends, what is under way is nobody's fault.
                    if !self.shared.state().stop {
                        self.note_broken(frame, format!("only {filled} of {wanted} bytes came"));
                    }
                    return Err(error);
                }
            }
        }
    }

    fn note_broken(&self, request: Vec<u8>, what: String) {
        let connection = self.number;
        let decoded = Err(what);
        self.shared.record(Exchange { connection, api: None, request, decoded, answer: None, delivered: false });
    }

    /// Records a request and answers it.
    fn take(&mut self, request: Vec<u8>) -> io::Result<()> {
        let Some((key, version, correlation_id)) = start_of_header(&request) else {
            let what = format!("{} bytes are too few for a request header", request.len().saturating_sub(4));
            self.note_broken(request, what);
            return Err(hang_up("request header"));
        };
        let connection = self.number;
        let decoded = decode_request(self.shared.protocol, key, version, &request);
        let spec = self.shared.protocol.api_by_key(key, MessageKind::Response);
        let spec = spec.filter(|_| self.shared.advertises(key, version));
        let reply = spec.and_then(|spec| self.shared.reply(spec.api_name(), version));
        let answer = spec.and_then(|spec| {
            Answering { shared: self.shared, spec, version, correlation_id, request: decoded.as_ref().ok() }
                .frames(reply.as_ref())
        });
        let exchange = Exchange {
            connection,
            api: Some((key, version)),
            request,
            decoded,
            answer: answer.as_ref().map(|frames| frames.answer.clone()),
            delivered: answer.is_some() && reply.as_ref().is_none_or(Reply::delivers),
        };
        if !self.shared.record(exchange) {
            return Err(hang_up("the record is full"));
        }
        let reply = reply.unwrap_or_default();
        if !self.shared.pause(Duration::from_millis(reply.delay_ms)) || reply.close {
            return Err(hang_up("closed by the script"));
        }
        if reply.silent {
            return Ok(());
        }
        let Some(Frames { stray, answer }) = answer else { return Err(hang_up("no such API")) };
        if let Some(stray) = stray {
            self.write(&stray, None)?;
        }
        if reply.hold && self.held.is_none() {
            self.held = Some((answer, reply));
            return Ok(());
        }
        self.send(&answer, &reply)?;
        self.release()
    }

    /// Sends the answer that is held back, if there is one.
    fn release(&mut self) -> io::Result<()> {
        match self.held.take() {
            Some((answer, reply)) => self.send(&answer, &reply),
            None => Ok(()),
        }
    }

    fn send(&mut self, answer: &[u8], reply: &Reply) -> io::Result<()> {
        let sent = answer.get(..reply.cut.unwrap_or(answer.len())).unwrap_or(answer);
        self.write(sent, reply.split)?;
        if reply.cut.is_some() { Err(hang_up("cut by the script")) } else { Ok(()) }
    }

    fn write(&mut self, bytes: &[u8], split: Option<usize>) -> io::Result<()> {
        let Some(piece) = split else { return self.channel.write_all(bytes) };
        for piece in bytes.chunks(piece.max(1)) {
            self.channel.write_all(piece)?;
            if !self.shared.pause(PIECE_PAUSE) {
                break;
            }
        }
        Ok(())
    }
}

/// API key, version and correlation id, which begin every request header of whatever version.
fn start_of_header(frame: &[u8]) -> Option<(ApiKey, ApiVersion, i32)> {
    let header: &[u8; 8] = frame.get(4..)?.first_chunk()?;
    let [k0, k1, v0, v1, correlation @ ..] = *header;
    let number = |high, low| i16::from_be_bytes([high, low]);
    Some((ApiKey(number(k0, k1)), ApiVersion(number(v0, v1)), i32::from_be_bytes(correlation)))
}

fn decode_request(protocol: &Protocol, key: ApiKey, version: ApiVersion, frame: &[u8]) -> Result<Request, String> {
    let spec = protocol.api_by_key(key, MessageKind::Request).ok_or_else(|| format!("there is no API {key}"))?;
    let layout = protocol.frame_layout(spec, version).map_err(|_| format!("{} has no version {version}", spec.name))?;
    let decoded = decode_frame(&layout, frame).map_err(|error| error.to_string())?;
    let anomalies = decoded.header.anomalies().iter().chain(decoded.body.anomalies());
    let anomalies = anomalies.filter(|anomaly| anomaly.kind.is_acceptable());
    Ok(Request {
        header: decoded.header().value().to_json(),
        body: decoded.body().value().to_json(),
        anomalies: anomalies.map(|anomaly| format!("{} at {:#x}", anomaly.kind, anomaly.start)).collect(),
    })
}

/// What goes out in return for a request.
struct Frames {
    /// A frame that nobody asked for, sent before.
    stray: Option<Vec<u8>>,
    answer: Vec<u8>,
}

/// A request that is to be answered.
struct Answering<'a> {
    shared: &'a Shared,
    spec: &'a MessageSpec,
    version: ApiVersion,
    correlation_id: i32,
    /// Decoded, if it could be.
    request: Option<&'a Request>,
}

impl Answering<'_> {
    /// The frames that answer it; `None` where a broker hangs up.
    fn frames(&self, reply: Option<&Reply>) -> Option<Frames> {
        let Some(reply) = reply else {
            let answer = self.encode(&self.honest()?, &Map::new(), self.correlation_id)?;
            return Some(Frames { stray: None, answer });
        };
        let none = Map::new();
        let wrong_id = self.correlation_id.wrapping_add(WRONG_CORRELATION);
        let stray = match &reply.stray {
            Some(body) => Some(self.encode(body, &none, wrong_id)?),
            None => None,
        };
        let id = if reply.wrong_correlation { wrong_id } else { self.correlation_id };
        let mut answer = match (&reply.frame, &reply.hex) {
            (Some(frame), _) => parse_hex(frame).ok()?,
            (None, Some(body)) => self.with_header(&parse_hex(body).ok()?, &reply.header, id)?,
            (None, None) => {
                let body = match &reply.value {
                    Some(value) if reply.unasked => value.clone(),
                    Some(value) => self.asked_only(value.clone()),
                    None => self.honest()?,
                };
                self.encode(&body, &reply.header, id)?
            }
        };
        if reply.truncate > 0 {
            answer.truncate(answer.len().saturating_sub(reply.truncate).max(4));
            set_size(&mut answer);
        }
        Some(Frames { stray, answer })
    }

    /// The version of an answer with this body: an ApiVersions answer with error 35 has the form of version 0 (KIP-511).
    fn layout(&self, body: &Json) -> Option<FrameLayout> {
        let refused = body.get("ErrorCode").and_then(Json::as_i64) == Some(UNSUPPORTED_VERSION.into());
        let v0 = self.spec.api_key == Some(API_VERSIONS) && refused;
        self.shared.protocol.frame_layout(self.spec, if v0 { ApiVersion(0) } else { self.version }).ok()
    }

    fn encode(&self, body: &Json, header: &Map<String, Json>, correlation_id: i32) -> Option<Vec<u8>> {
        let layout = self.layout(body)?;
        let header = self.header(&layout, header, correlation_id)?;
        let body = fitting_value(&layout.body, body).ok()?;
        encode_frame(&layout, &header, &body).ok()
    }

    fn header(&self, layout: &FrameLayout, header: &Map<String, Json>, correlation_id: i32) -> Option<Value> {
        let mut header = header.clone();
        header.insert("CorrelationId".to_owned(), correlation_id.into());
        fitting_value(&layout.header, &header.into()).ok()
    }

    /// Raw bytes of a body behind a size and a header.
    fn with_header(&self, body: &[u8], header: &Map<String, Json>, correlation_id: i32) -> Option<Vec<u8>> {
        let version = header_version(self.spec, self.version);
        let layout = self.shared.protocol.layout("ResponseHeader", version).ok()?;
        let layout = FrameLayout { header: layout.clone(), body: layout };
        let header = self.header(&layout, header, correlation_id)?;
        let mut frame = vec![0; 4];
        codec::encode_into(&layout.header, &header, &mut frame).ok()?;
        frame.extend_from_slice(body);
        set_size(&mut frame);
        Some(frame)
    }

    /// A body without the results for resources that the request does not name.
    fn asked_only(&self, mut body: Json) -> Json {
        let resource = |json: &Json| Some((json.get("ResourceType")?.as_i64()?, json.get("ResourceName")?.clone()));
        let asked = self.request.and_then(|request| request.body.get("Resources")?.as_array());
        let Some(asked) = asked.map(|asked| asked.iter().filter_map(resource).collect::<Vec<_>>()) else { return body };
        for results in
            body.as_object_mut().into_iter().flat_map(|body| body.values_mut()).filter_map(Json::as_array_mut)
        {
            results.retain(|result| resource(result).is_none_or(|resource| asked.contains(&resource)));
        }
        body
    }

    fn honest(&self) -> Option<Json> {
        match self.spec.api_key? {
            API_VERSIONS => Some(self.api_versions()),
            METADATA => self.metadata(),
            _ => None,
        }
    }

    fn api_versions(&self) -> Json {
        let caps = &self.shared.script.caps;
        let entry = |(key, range): (&i16, &VersionRange)| {
            let (lowest, highest) = (range.lowest()?, range.highest()?);
            Some(json!({ "ApiKey": key, "MinVersion": lowest.0, "MaxVersion": highest.0 }))
        };
        let own = caps.get(&API_VERSIONS.0).copied().unwrap_or(VersionRange::NONE);
        if !own.contains(self.version) {
            let own = caps.get_key_value(&API_VERSIONS.0).and_then(entry);
            return json!({ "ErrorCode": UNSUPPORTED_VERSION, "ApiKeys": own.into_iter().collect::<Vec<_>>() });
        }
        json!({ "ErrorCode": 0, "ApiKeys": caps.iter().filter_map(entry).collect::<Vec<_>>() })
    }

    fn metadata(&self) -> Option<Json> {
        let topics = &self.shared.script.topics;
        let named = self.request?.body.get("Topics")?.as_array();
        // Null means all topics; in version 0 an empty list does.
        let names: Vec<&str> = match named {
            Some(named) if !(named.is_empty() && self.version == ApiVersion(0)) => {
                named.iter().filter_map(|topic| topic.get("Name")?.as_str()).collect()
            }
            _ => topics.iter().map(String::as_str).collect(),
        };
        let partition = json!({
            "ErrorCode": 0, "PartitionIndex": 0, "LeaderId": NODE, "LeaderEpoch": 0, "ReplicaNodes": [NODE],
            "IsrNodes": [NODE], "OfflineReplicas": [],
        });
        let topic = |name: &&str| {
            let there = topics.iter().any(|topic| topic == name);
            json!({
                "ErrorCode": if there { 0 } else { UNKNOWN_TOPIC_OR_PARTITION },
                "Name": name,
                "IsInternal": false,
                "Partitions": if there { vec![partition.clone()] } else { Vec::new() },
            })
        };
        Some(json!({
            "Brokers": [{
                "NodeId": NODE, "Host": self.shared.address.ip().to_string(), "Port": self.shared.address.port(),
                "Rack": null,
            }],
            "ClusterId": CLUSTER,
            "ControllerId": NODE,
            "Topics": names.iter().map(topic).collect::<Vec<_>>(),
        }))
    }
}

/// A header or body at one version: fields and unknown tags that the version cannot have are left out.
pub(crate) fn fitting_value(layout: &Layout, body: &Json) -> Result<Value, EncodeError> {
    fn without_tags(body: &Json) -> Json {
        match body {
            Json::Object(fields) => {
                let kept = fields.iter().filter(|(name, _)| *name != "_tags");
                kept.map(|(name, value)| (name.clone(), without_tags(value))).collect()
            }
            Json::Array(elements) => elements.iter().map(without_tags).collect(),
            other => other.clone(),
        }
    }
    if layout.flexible() {
        return Value::from_json(layout, body, AbsentFields::Drop);
    }
    Value::from_json(layout, &without_tags(body), AbsentFields::Drop)
}

/// Writes the size of a frame anew.
fn set_size(frame: &mut [u8]) {
    let size = i32::try_from(frame.len().saturating_sub(4)).unwrap_or(i32::MAX);
    if let Some(prefix) = frame.first_chunk_mut() {
        *prefix = size.to_be_bytes();
    }
}
