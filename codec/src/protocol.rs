//! Every API that there are definitions of, by key or name.

use crate::error::{SpecError, SpecErrorKind};
use crate::layout::Layout;
use crate::message::{FrameLayout, header_version};
use crate::spec::{MessageKind, MessageSpec};
use crate::version::{ApiKey, ApiVersion};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Layouts by message and version.
type Layouts = BTreeMap<(Arc<str>, i16), Arc<Layout>>;

/// A set of definitions, and the layouts made of them so far.
#[derive(Debug, Default)]
pub struct Protocol {
    messages: BTreeMap<Arc<str>, Arc<MessageSpec>>,
    layouts: Mutex<Layouts>,
}

impl Protocol {
    /// Parses definitions, each a text with a name to say in errors, such as its file's.
    pub fn parse<'t>(texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Protocol, SpecError> {
        let mut protocol = Protocol::default();
        for (file, text) in texts {
            let spec = MessageSpec::parse(text)
                .map_err(|error| SpecError { place: format!("{file}: {}", error.place), ..error })?;
            let duplicate = SpecErrorKind::Duplicate(format!("message {}", spec.name));
            if protocol.messages.insert(spec.name.clone(), Arc::new(spec)).is_some() {
                return Err(SpecError { place: file.to_owned(), kind: duplicate });
            }
        }
        Ok(protocol)
    }

    /// Every definition, by name.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<MessageSpec>> {
        self.messages.values()
    }

    /// A definition by its message's name.
    pub fn message(&self, name: &str) -> Option<&Arc<MessageSpec>> {
        self.messages.get(name)
    }

    /// Request or response of an API, by the API's name or by its key in digits.
    pub fn api(&self, api: &str, kind: MessageKind) -> Option<&Arc<MessageSpec>> {
        let key = api.parse().ok().map(ApiKey);
        self.messages()
            .find(|spec| spec.kind == kind && (spec.api_name() == api || key.is_some() && spec.api_key == key))
    }

    /// Request or response of an API, by its key.
    pub fn api_by_key(&self, key: ApiKey, kind: MessageKind) -> Option<&Arc<MessageSpec>> {
        self.messages().find(|spec| spec.kind == kind && spec.api_key == Some(key))
    }

    /// A message at one version. It is lowered once.
    pub fn layout(&self, message: &str, version: ApiVersion) -> Result<Arc<Layout>, SpecError> {
        let Some(spec) = self.messages.get(message) else {
            let kind = SpecErrorKind::NoSuchMessage(message.to_owned());
            return Err(SpecError { place: "definitions".to_owned(), kind });
        };
        let mut layouts = self.layouts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(layout) = layouts.get(&(spec.name.clone(), version.0)) {
            return Ok(layout.clone());
        }
        let layout = Arc::new(Layout::new(spec, version)?);
        layouts.insert((spec.name.clone(), version.0), layout.clone());
        Ok(layout)
    }

    /// Header and body of a request or response at one version.
    pub fn frame_layout(&self, spec: &MessageSpec, version: ApiVersion) -> Result<FrameLayout, SpecError> {
        let header = if spec.kind == MessageKind::Request { "RequestHeader" } else { "ResponseHeader" };
        let body = self.layout(&spec.name, version)?;
        Ok(FrameLayout { header: self.layout(header, header_version(spec, version))?, body })
    }
}
