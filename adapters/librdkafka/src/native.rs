//! librdkafka's objects with an owner, and its text and codes as values.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Write as _;
use std::ptr::NonNull;

use rdkafka_sys as rd;
use serde_json::{Value, json};

use crate::protocol::Failure;

// Functions whose result the broker chooses. The crate declares them with Rust enums, and an enum may not hold a
// number it does not list (an error code of a newer broker, a config source of 6), so they are declared as the C ints
// they are.
#[allow(clashing_extern_declarations)]
unsafe extern "C" {
    pub(crate) fn rd_kafka_event_error(event: *mut rd::rd_kafka_event_t) -> c_int;
    pub(crate) fn rd_kafka_ConfigResource_type(resource: *const rd::rd_kafka_ConfigResource_t) -> c_int;
    pub(crate) fn rd_kafka_ConfigResource_error(resource: *const rd::rd_kafka_ConfigResource_t) -> c_int;
    pub(crate) fn rd_kafka_ConfigEntry_source(entry: *const rd::rd_kafka_ConfigEntry_t) -> c_int;
    fn rd_kafka_err2name(code: c_int) -> *const c_char;
}

/// An object of librdkafka that ends with its owner.
pub(crate) struct Owned<T> {
    object: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    /// Takes what a constructor of librdkafka returned; none if it was NULL.
    ///
    /// # Safety
    /// `object` is NULL or may be destroyed by `destroy`, once, and by nobody else.
    pub(crate) unsafe fn new(object: *mut T, destroy: unsafe extern "C" fn(*mut T)) -> Option<Self> {
        NonNull::new(object).map(|object| Owned { object, destroy })
    }

    /// The object, for as long as the owner lives.
    pub(crate) fn ptr(&self) -> *mut T {
        self.object.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: `new` was promised that this is the one place where the object ends.
        unsafe { (self.destroy)(self.object.as_ptr()) }
    }
}

/// A client object, `rd_kafka_t`.
pub(crate) struct Client(Owned<rd::rd_kafka_t>);

impl Client {
    /// A client for these brokers. `timeout_ms` bounds each request on its socket; calls bound themselves.
    pub(crate) fn new(bootstrap: &str, timeout_ms: u32) -> Result<Client, Failure> {
        // SAFETY: the configuration is ours until rd_kafka_new takes it, which it does only when it succeeds.
        unsafe {
            let conf = rd::rd_kafka_conf_new();
            let made = set(conf, c"bootstrap.servers", bootstrap)
                .and_then(|()| set(conf, c"socket.timeout.ms", &timeout_ms.to_string()))
                .and_then(|()| {
                    let mut text = ErrorText::new();
                    let (start, size) = text.space();
                    // Admin calls work on a producer and a consumer alike; a producer needs no group.
                    let client = rd::rd_kafka_new(rd::rd_kafka_type_t::RD_KAFKA_PRODUCER, conf, start, size);
                    Owned::new(client, rd::rd_kafka_destroy).ok_or_else(|| local_error(text.to_string()))
                });
            if made.is_err() {
                rd::rd_kafka_conf_destroy(conf);
            }
            made.map(Client)
        }
    }

    /// The object, for as long as the client lives.
    pub(crate) fn ptr(&self) -> *mut rd::rd_kafka_t {
        self.0.ptr()
    }
}

/// # Safety
/// `conf` is a configuration that no client has taken.
unsafe fn set(conf: *mut rd::rd_kafka_conf_t, name: &CStr, value: &str) -> Result<(), Failure> {
    let value = c_string(value)?;
    let mut text = ErrorText::new();
    let (start, size) = text.space();
    match unsafe { rd::rd_kafka_conf_set(conf, name.as_ptr(), value.as_ptr(), start, size) } {
        rd::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK => Ok(()),
        _ => Err(local_error(text.to_string())),
    }
}

fn local_error(text: String) -> Failure {
    Failure::Error { text, code: None }
}

/// The text buffer that librdkafka's functions fill when they fail.
pub(crate) struct ErrorText([u8; 512]);

impl ErrorText {
    pub(crate) fn new() -> ErrorText {
        ErrorText([0; 512])
    }

    /// Where the text goes and how many bytes there are, the closing zero included.
    pub(crate) fn space(&mut self) -> (*mut c_char, usize) {
        (self.0.as_mut_ptr().cast(), self.0.len())
    }
}

impl std::fmt::Display for ErrorText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = CStr::from_bytes_until_nul(&self.0).unwrap_or_default();
        f.write_str(&text.to_string_lossy())
    }
}

/// The version that librdkafka gives of itself, such as `2.12.1`.
pub(crate) fn version() -> Value {
    // SAFETY: a string that is never freed.
    unsafe { text(rd::rd_kafka_version_str()) }
}

/// The name of an error code, such as `_TIMED_OUT` (local ones begin with an underscore) or `POLICY_VIOLATION`.
pub(crate) fn code_name(code: c_int) -> String {
    // SAFETY: librdkafka takes any number here, and the name is never freed.
    unsafe { CStr::from_ptr(rd_kafka_err2name(code)) }.to_string_lossy().into_owned()
}

/// Text for librdkafka. Its strings end at their first zero byte.
pub(crate) fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| Failure::Unsupported("a C string cannot hold a zero byte".to_owned()))
}

/// Text as librdkafka shows it: null, a string, or `{"hex": ...}` where it is not UTF-8.
///
/// # Safety
/// `text` is NULL or a zero-terminated string.
pub(crate) unsafe fn text(text: *const c_char) -> Value {
    if text.is_null() {
        return Value::Null;
    }
    let text = unsafe { CStr::from_ptr(text) };
    match text.to_str() {
        Ok(text) => text.into(),
        Err(_) => json!({ "hex": hex(text.to_bytes()) }),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
