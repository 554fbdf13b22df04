//! Requests in bytes, and their answers decoded.

use std::sync::Arc;

use codec::{
    AbsentFields, ApiVersion, FrameLayout, MessageKind, MessageSpec, Protocol, Value, VersionRange, decode_frame,
    encode, header_version, response_version,
};
use serde_json::{Map, Value as Json, json};

use crate::exchange::Step;

const CLIENT_ID: &str = "kafka-conform";

/// The body of a request.
pub enum Body<'b> {
    /// As JSON.
    Value(&'b Json),
    /// As bytes.
    Bytes(&'b [u8]),
}

/// A request in bytes, and how its answer is read.
pub struct Request {
    /// The API.
    pub api: String,
    /// Its version.
    pub version: ApiVersion,
    /// The correlation id its answer must have.
    pub correlation_id: i32,
    /// All its bytes, size included.
    pub frame: Vec<u8>,
    /// Bytes of its size and header, where these are as they should be.
    header: Option<usize>,
    /// What its answer is.
    pub response: Arc<MessageSpec>,
    /// The body it was encoded from, where the request is well formed: what the answer is about.
    pub body: Option<Json>,
}

impl Request {
    /// A request as the definition has it.
    pub fn new(
        protocol: &Protocol,
        api: &str,
        version: ApiVersion,
        correlation: i32,
        body: &Json,
    ) -> Result<Request, String> {
        let (header, frame) = frame(protocol, api, version, correlation, &Map::new(), None, &Body::Value(body))?;
        Ok(Request { header: Some(header), ..Request::raw(protocol, api, version, correlation, frame)? })
    }

    /// A request with a step's own header fields and header version.
    pub fn with(
        protocol: &Protocol,
        api: &str,
        version: ApiVersion,
        correlation: i32,
        step: &Step,
        body: Body,
    ) -> Result<Request, String> {
        let (header, frame) = frame(protocol, api, version, correlation, &step.header, step.header_version, &body)?;
        let well_formed = step.header_version.is_none() && step.cut == 0;
        let chosen = step.header.get("CorrelationId").and_then(Json::as_i64);
        let correlation = chosen.and_then(|id| i32::try_from(id).ok()).unwrap_or(correlation);
        let mut request = Request::raw(protocol, api, version, correlation, frame)?;
        request.header = step.header_version.is_none().then_some(header);
        if let Body::Value(json) = body
            && well_formed
        {
            request.body = Some(json.clone());
        }
        Ok(request)
    }

    /// A frame as it is. Its correlation id is the one it holds, where it is long enough to hold one.
    pub fn raw(
        protocol: &Protocol,
        api: &str,
        version: ApiVersion,
        correlation: i32,
        frame: Vec<u8>,
    ) -> Result<Request, String> {
        let response = protocol.api(api, MessageKind::Response).ok_or_else(|| format!("no definition of {api}"))?;
        let held = frame.get(8..12).and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
        Ok(Request {
            api: api.to_owned(),
            version,
            correlation_id: held.unwrap_or(correlation),
            frame,
            header: None,
            response: response.clone(),
            body: None,
        })
    }

    /// Whether its header is as it should be: then an answer can be held to what was asked, whatever the body is.
    pub fn has_header(&self) -> bool {
        self.header.is_some_and(|header| header <= self.frame.len())
    }

    /// Whether the definition of its answer has its version.
    pub fn is_defined(&self) -> bool {
        self.response.valid_versions.contains(self.version)
    }

    /// Cuts bytes off the end and adds others; the size says what is there then.
    pub fn mutate(&mut self, cut: usize, append: &[u8]) {
        if cut == 0 && append.is_empty() {
            return;
        }
        self.frame.truncate(self.frame.len().saturating_sub(cut).max(4));
        self.frame.extend_from_slice(append);
        set_size(&mut self.frame);
    }
}

/// Size, header and body of a request, behind the number of bytes that the first two have.
fn frame(
    protocol: &Protocol,
    api: &str,
    version: ApiVersion,
    correlation: i32,
    header_fields: &Map<String, Json>,
    version_of_header: Option<i16>,
    body: &Body,
) -> Result<(usize, Vec<u8>), String> {
    let request = protocol.api(api, MessageKind::Request).ok_or_else(|| format!("no definition of {api}"))?;
    // A version that no definition has is sent behind the header of the highest that one has.
    let header_version =
        version_of_header.map_or_else(|| header_version(request, nearest(request.valid_versions, version)), ApiVersion);
    let mut header = Map::from_iter([
        ("RequestApiKey".to_owned(), json!(request.api_key.map_or(0, |key| key.0))),
        ("RequestApiVersion".to_owned(), json!(version.0)),
        ("CorrelationId".to_owned(), json!(correlation)),
        ("ClientId".to_owned(), json!(CLIENT_ID)),
    ]);
    header.extend(header_fields.clone());
    let mut frame = vec![0; 4];
    frame.extend(encode_json(protocol, "RequestHeader", header_version, &Json::Object(header))?);
    let header = frame.len();
    match body {
        Body::Value(json) => frame.extend(encode_json(protocol, &request.name, version, json)?),
        Body::Bytes(bytes) => frame.extend_from_slice(bytes),
    }
    set_size(&mut frame);
    Ok((header, frame))
}

pub(super) fn encode_json(
    protocol: &Protocol,
    message: &str,
    version: ApiVersion,
    json: &Json,
) -> Result<Vec<u8>, String> {
    let layout = protocol.layout(message, version).map_err(|error| error.to_string())?;
    let value = Value::from_json(&layout, json, AbsentFields::Keep).map_err(|error| error.to_string())?;
    encode(&layout, &value).map_err(|error| error.to_string())
}

pub(super) fn set_size(frame: &mut [u8]) {
    let size = u32::try_from(frame.len() - 4).expect("requests are small");
    frame[..4].copy_from_slice(&size.to_be_bytes());
}

/// `version`, or the end of the range that is next to it.
fn nearest(range: VersionRange, version: ApiVersion) -> ApiVersion {
    if range.contains(version) { version } else { range.highest().unwrap_or(version) }
}

/// A decoded answer.
pub struct Answer {
    /// The correlation id it came with.
    pub correlation_id: i32,
    /// The version it is in.
    pub version: ApiVersion,
    /// Its values.
    pub body: Json,
    /// Bytes behind the body.
    pub left: Option<usize>,
    /// What the bytes took the liberty of, if anything.
    pub liberty: Option<String>,
}

impl Answer {
    /// Reads the frame that came for `request`.
    pub fn read(protocol: &Protocol, request: &Request, bytes: &[u8]) -> Result<Answer, String> {
        let layout = response_layout(protocol, request, bytes)?;
        let frame = decode_frame(&layout, bytes).map_err(|error| format!("the answer cannot be read: {error}"))?;
        let id = frame.header().get("CorrelationId").and_then(|node| node.integer()).unwrap_or_default();
        let anomalies = frame.header.anomalies().iter().chain(frame.body.anomalies());
        let left = bytes.len().checked_sub(frame.end).filter(|left| *left > 0);
        // One for each kind: there may be as many as there are bytes.
        let mut liberties: Vec<String> = Vec::new();
        for anomaly in anomalies {
            let kind = anomaly.kind.to_string();
            if !liberties.contains(&kind) {
                liberties.push(kind);
            }
        }
        Ok(Answer {
            correlation_id: i32::try_from(id).unwrap_or_default(),
            version: layout.body.version(),
            body: frame.body().value().to_json(),
            left,
            liberty: (!liberties.is_empty()).then(|| format!("in the answer's bytes: {}", liberties.join(", "))),
        })
    }
}

/// The layout an answer is in: an ApiVersions refusal is in version 0 whatever was asked (KIP-511).
pub fn response_layout(protocol: &Protocol, request: &Request, bytes: &[u8]) -> Result<FrameLayout, String> {
    // Behind size and correlation id: an ApiVersions answer has header version 0.
    let body = bytes.get(8..).unwrap_or_default();
    let version = response_version(&request.response, request.version, body);
    let version = nearest(request.response.valid_versions, version);
    protocol.frame_layout(&request.response, version).map_err(|error| error.to_string())
}
