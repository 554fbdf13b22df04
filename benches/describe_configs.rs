//! DescribeConfigsResponse: the message of most benches, as the structs that a user of the codec would write for it, and as
//! bytes.

use crate::push_uvarint;
use serde::{Deserialize, Serialize};

/// The definition.
pub const DEFINITION: &str = include_str!("../schemas/DescribeConfigsResponse.json");

/// Documentation of 80 bytes, all ASCII.
pub const ASCII: &str = "How long a closed segment is kept, in milliseconds, before it may be deleted, -1";
/// Documentation of about as many bytes in other scripts.
pub const MULTI_BYTE: &str = "Größe der Äcker, über alle Maße hinaus; ñandú 数据保留时间 (毫秒)";

/// A message that is measured.
#[derive(Clone, Copy)]
pub struct Shape {
    /// As it is called in the rows.
    pub name: &'static str,
    /// The version it is sent at.
    pub version: i16,
    /// How many configs there are of the one topic.
    pub configs: u32,
    /// The documentation of each, from version 3 on.
    pub documentation: &'static str,
}

/// The largest at the newest version, which most is measured on.
pub const LARGE: Shape = Shape { name: "v4-53kB-ascii", version: 4, configs: 300, documentation: ASCII };
/// The oldest version.
pub const OLD: Shape = Shape { name: "v0-11kB-ascii", version: 0, ..LARGE };
/// All of them.
pub const SHAPES: [Shape; 7] = [
    LARGE,
    Shape { name: "v4-53kB-multi-byte", documentation: MULTI_BYTE, ..LARGE },
    Shape { name: "v4-2kB-ascii", configs: 12, ..LARGE },
    Shape { name: "v3-54kB-ascii", version: 3, ..LARGE },
    Shape { name: "v2-29kB-ascii", version: 2, ..LARGE },
    Shape { name: "v1-29kB-ascii", version: 1, ..LARGE },
    OLD,
];

/// The message. A field that a version lacks has the definition's default, or 0 where that is "not said".
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
#[allow(missing_docs, reason = "each is the field of the same name in the definition")]
pub struct Response<'a> {
    pub throttle_time_ms: i32,
    #[serde(borrow)]
    pub results: Vec<ResourceResult<'a>>,
}

/// What is described of one resource.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
#[allow(missing_docs, reason = "each is the field of the same name in the definition")]
pub struct ResourceResult<'a> {
    pub error_code: i16,
    #[serde(borrow)]
    pub error_message: Option<&'a str>,
    pub resource_type: i8,
    pub resource_name: &'a str,
    #[serde(borrow)]
    pub configs: Vec<Config<'a>>,
}

/// One config.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
#[allow(missing_docs, reason = "each is the field of the same name in the definition")]
pub struct Config<'a> {
    pub name: &'a str,
    #[serde(borrow)]
    pub value: Option<&'a str>,
    pub read_only: bool,
    pub config_source: i8,
    pub is_sensitive: bool,
    #[serde(borrow)]
    pub synonyms: Vec<Synonym<'a>>,
    pub config_type: i8,
    #[serde(borrow)]
    pub documentation: Option<&'a str>,
}

/// One synonym of a config.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
#[allow(missing_docs, reason = "each is the field of the same name in the definition")]
pub struct Synonym<'a> {
    pub name: &'a str,
    #[serde(borrow)]
    pub value: Option<&'a str>,
    pub source: i8,
}

/// The message: each config has two synonyms from version 1 on, and documentation from version 3 on.
pub fn response(shape: Shape) -> Response<'static> {
    let Shape { version, configs, documentation, .. } = shape;
    let text = |text: String| -> &'static str { text.leak() };
    let synonym = |config: u32, synonym: u32| Synonym {
        name: text(format!("log.some.config.{config}.{synonym}")),
        value: Some(text((config * 1_000).to_string())),
        source: 4,
    };
    let config = |config: u32| Config {
        name: text(format!("some.config.number.{config}")),
        value: Some(text((config * 10_000).to_string())),
        read_only: false,
        config_source: if version >= 1 { 5 } else { -1 },
        is_sensitive: false,
        synonyms: if version >= 1 { vec![synonym(config, 0), synonym(config, 1)] } else { Vec::new() },
        config_type: if version >= 3 { 5 } else { 0 },
        documentation: (version >= 3).then_some(documentation),
    };
    let result = ResourceResult {
        error_code: 0,
        error_message: None,
        resource_type: 2,
        resource_name: "orders",
        configs: (0..configs).map(config).collect(),
    };
    Response { throttle_time_ms: 0, results: vec![result] }
}

/// The message as bytes of a version, by hand from the definition. At version 0 each config says that it is a default.
pub fn bytes(response: &Response<'_>, version: i16) -> Vec<u8> {
    let mut writer = Writer { flexible: version >= 4, out: Vec::new() };
    writer.out.extend(response.throttle_time_ms.to_be_bytes());
    writer.count(response.results.len());
    for result in &response.results {
        writer.out.extend(result.error_code.to_be_bytes());
        writer.text(result.error_message);
        writer.out.extend(result.resource_type.to_be_bytes());
        writer.text(Some(result.resource_name));
        writer.count(result.configs.len());
        for config in &result.configs {
            writer.text(Some(config.name));
            writer.text(config.value);
            writer.out.push(config.read_only.into());
            // IsDefault, which ConfigSource replaces.
            writer.out.push(if version >= 1 { config.config_source as u8 } else { 1 });
            writer.out.push(config.is_sensitive.into());
            if version >= 1 {
                writer.count(config.synonyms.len());
                for synonym in &config.synonyms {
                    writer.text(Some(synonym.name));
                    writer.text(synonym.value);
                    writer.out.extend(synonym.source.to_be_bytes());
                    writer.no_tags();
                }
            }
            if version >= 3 {
                writer.out.extend(config.config_type.to_be_bytes());
                writer.text(config.documentation);
            }
            writer.no_tags();
        }
        writer.no_tags();
    }
    writer.no_tags();
    writer.out
}

struct Writer {
    flexible: bool,
    out: Vec<u8>,
}

impl Writer {
    fn count(&mut self, count: usize) {
        if self.flexible {
            push_uvarint(&mut self.out, count as u32 + 1);
        } else {
            self.out.extend((count as u32).to_be_bytes());
        }
    }

    fn text(&mut self, text: Option<&str>) {
        match text {
            Some(text) if self.flexible => push_uvarint(&mut self.out, text.len() as u32 + 1),
            Some(text) => self.out.extend((text.len() as u16).to_be_bytes()),
            None if self.flexible => self.out.push(0),
            None => self.out.extend([0xff, 0xff]),
        }
        self.out.extend_from_slice(text.unwrap_or_default().as_bytes());
    }

    fn no_tags(&mut self) {
        if self.flexible {
            self.out.push(0);
        }
    }
}

/// Looks at every field of a message whose fields have the usual names: the sum of all numbers and of the lengths of all
/// texts. A macro, since each codec has structs of its own.
#[macro_export]
macro_rules! sum_of_fields {
    ($message:expr) => {{
        let message = $message;
        let mut sum = i64::from(message.throttle_time_ms);
        for result in &message.results {
            sum += i64::from(result.error_code) + i64::from(result.resource_type);
            sum += (result.error_message.as_deref().map_or(0, str::len) + result.resource_name.len()) as i64;
            for config in &result.configs {
                sum += i64::from(config.read_only) + i64::from(config.is_sensitive);
                sum += i64::from(config.config_source) + i64::from(config.config_type);
                sum += (config.name.len() + config.value.as_deref().map_or(0, str::len)) as i64;
                sum += config.documentation.as_deref().map_or(0, str::len) as i64;
                for synonym in &config.synonyms {
                    sum += i64::from(synonym.source);
                    sum += (synonym.name.len() + synonym.value.as_deref().map_or(0, str::len)) as i64;
                }
            }
        }
        sum
    }};
}

/// A message whose fields have the usual names as a [`Response`].
#[macro_export]
macro_rules! response_of {
    ($message:expr) => {{
        use $crate::describe_configs::{Config, ResourceResult, Response, Synonym};
        let message = $message;
        let results = message.results.iter().map(|result| ResourceResult {
            error_code: result.error_code,
            error_message: result.error_message.as_deref(),
            resource_type: result.resource_type,
            resource_name: &*result.resource_name,
            configs: result
                .configs
                .iter()
                .map(|config| Config {
                    name: &*config.name,
                    value: config.value.as_deref(),
                    read_only: config.read_only,
                    config_source: config.config_source,
                    is_sensitive: config.is_sensitive,
                    synonyms: config
                        .synonyms
                        .iter()
                        .map(|synonym| Synonym {
                            name: &*synonym.name,
                            value: synonym.value.as_deref(),
                            source: synonym.source,
                        })
                        .collect(),
                    config_type: config.config_type,
                    documentation: config.documentation.as_deref(),
                })
                .collect(),
        });
        Response { throttle_time_ms: message.throttle_time_ms, results: results.collect() }
    }};
}
