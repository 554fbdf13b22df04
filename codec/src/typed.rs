//! A user's own structs, by serde: read from a decoded message with [`deserialize`], written as one with [`serialize`].
//!
//! A field is one of the definition's if it has its name, which `#[serde(rename_all = "PascalCase")]` gives to fields named
//! as Rust does. A struct may have fewer fields than the message: those are passed over, or written with their defaults. Null
//! is `None`. Text and bytes may be borrowed from the input.
//!
//! ```
//! use codec::{ApiVersion, Layout, MessageSpec};
//! use serde::{Deserialize, Serialize};
//! use std::sync::Arc;
//!
//! #[derive(Debug, PartialEq, Deserialize, Serialize)]
//! #[serde(rename_all = "PascalCase")]
//! struct DescribeConfigs<'a> {
//!     #[serde(borrow)]
//!     resources: Vec<Resource<'a>>,
//!     include_synonyms: bool,
//! }
//!
//! #[derive(Debug, PartialEq, Deserialize, Serialize)]
//! #[serde(rename_all = "PascalCase")]
//! struct Resource<'a> {
//!     resource_type: i8,
//!     resource_name: &'a str,
//!     configuration_keys: Option<Vec<&'a str>>,
//! }
//!
//! let definition = r#"{ "name": "DescribeConfigsRequest", "type": "request", "apiKey": 32, "validVersions": "4",
//!     "flexibleVersions": "4+", "fields": [
//!       { "name": "Resources", "type": "[]Resource", "versions": "0+", "fields": [
//!         { "name": "ResourceType", "type": "int8", "versions": "0+" },
//!         { "name": "ResourceName", "type": "string", "versions": "0+" },
//!         { "name": "ConfigurationKeys", "type": "[]string", "versions": "0+", "nullableVersions": "0+" }]},
//!       { "name": "IncludeSynonyms", "type": "bool", "versions": "1+" },
//!       { "name": "IncludeDocumentation", "type": "bool", "versions": "3+" }]}"#;
//! let layout = Layout::new(&Arc::new(MessageSpec::parse(definition)?), ApiVersion(4))?;
//!
//! // One resource: type 2, "t1", all keys; synonyms, no documentation.
//! let bytes = [2, 2, 3, b't', b'1', 0, 0, 1, 0, 0];
//! let decoded = codec::decode(&layout, &bytes)?;
//! let request: DescribeConfigs = codec::deserialize(decoded.view())?;
//! let resource = Resource { resource_type: 2, resource_name: "t1", configuration_keys: None };
//! assert_eq!(request, DescribeConfigs { resources: vec![resource], include_synonyms: true });
//! assert_eq!(codec::serialize(&layout, &request)?, bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod read;
mod write;

pub use read::{DeserializeError, deserialize};
pub use write::{serialize, serialize_into};
