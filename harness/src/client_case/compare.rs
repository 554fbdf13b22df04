//! Compares what a client shows with what the broker answered.

use std::collections::BTreeMap;

use codec::{FrameLayout, decode_frame};
use serde_json::{Map, Value as Json};

use crate::results::{At, Class};

/// The source of a value that is Kafka's own default (KIP-226).
const DEFAULT_CONFIG: i64 = 5;

/// A way in which a client is not as it should be.
pub(super) struct Deviation {
    /// What kind of fault.
    pub class: Class,
    /// Path in the answer, or in the request.
    pub at: Option<At>,
    /// What was due.
    pub want: Option<Json>,
    /// What came.
    pub got: Option<Json>,
    /// One sentence.
    pub detail: String,
}

impl Deviation {
    /// The same with what came.
    pub(super) fn got(mut self: Box<Self>, got: Json) -> Box<Deviation> {
        self.got = Some(got);
        self
    }
}

/// A deviation without evidence of its own.
pub(super) fn deviation(class: Class, detail: impl Into<String>) -> Box<Deviation> {
    Box::new(Deviation { class, at: None, want: None, got: None, detail: detail.into() })
}

/// A deviation at a path.
pub(super) fn differs(class: Class, path: &str, want: &Json, got: &Json, detail: impl Into<String>) -> Box<Deviation> {
    let at = Some(At { path: path.to_owned(), offset: None, length: None });
    Box::new(Deviation { class, at, want: Some(want.clone()), got: Some(got.clone()), detail: detail.into() })
}

/// A result of the broker's: its path in the answer, its value, and the answer's bytes and layout.
pub(super) struct Truth<'a> {
    pub path: String,
    pub value: Json,
    pub frame: &'a [u8],
    pub layout: FrameLayout,
}

/// Whether errors are shown, and neither success nor values.
pub(super) fn is_failure(results: &[Json]) -> bool {
    let failed = |result: &Json| result.get("error").is_some() || error_code_shown(result) != 0;
    !results.is_empty() && results.iter().all(|result| failed(result) && !has_configs(result))
}

/// Whether a result holds values.
fn has_configs(result: &Json) -> bool {
    result.get("Configs").is_some_and(|configs| configs.as_array().is_none_or(|configs| !configs.is_empty()))
}

pub(super) fn error_code_shown(result: &Json) -> i64 {
    result.get("ErrorCode").and_then(Json::as_i64).unwrap_or(0)
}

pub(super) fn error_code(truth: &Truth<'_>) -> i64 {
    error_code_shown(&truth.value)
}

/// Type and name of a resource, or of a result.
pub(super) fn identity(json: &Json) -> (Option<i64>, Option<&Json>) {
    (json.get("ResourceType").and_then(Json::as_i64), json.get("ResourceName"))
}

/// The broker's result for a resource.
pub(super) fn find<'t, 'a>(truths: &'t [Truth<'a>], resource: &Json) -> Option<&'t Truth<'a>> {
    truths.iter().find(|truth| identity(&truth.value) == identity(resource))
}

/// Compares one result shown with the broker's. `must_show` says of a field that came whether it may not be missing.
pub(super) fn result_of(
    truth: &Truth<'_>,
    shown: &Json,
    must_show: &dyn Fn(&str) -> bool,
) -> Result<(), Box<Deviation>> {
    let (due, got) = (error_code(truth), error_code_shown(shown));
    let path = format!("{}.ErrorCode", truth.path);
    let wrong = |class, what: &str| Err(truth.place(differs(class, &path, &due.into(), &got.into(), what)));
    if let Some(text) = shown.get("error") {
        if has_configs(shown) {
            let what = "values are shown beside a failure";
            return Err(truth.place(differs(Class::InventedValue, &truth.path, &Json::Null, &shown["Configs"], what)));
        }
        // A client may say in its own words that the broker said no.
        if due != 0 {
            return Ok(());
        }
        let what = "the client shows no result where one came without error";
        return Err(truth.place(differs(Class::TooStrict, &truth.path, &Json::Null, text, what)));
    }
    if shown.is_null() {
        let what = "the client shows nothing for a resource that was asked for and answered";
        return Err(truth.place(differs(Class::Lossy, &truth.path, &in_fixed_order(&truth.value), shown, what)));
    }
    match (due, got) {
        (0, 0) => {}
        (_, 0) => return wrong(Class::ErrorHidden, "the broker's error is shown as success"),
        (0, _) => return wrong(Class::WrongValue, "a success is shown as an error"),
        _ if due != got => return wrong(Class::WrongValue, "the broker's error is shown as another one"),
        _ => {}
    }
    let configs = |json: &Json| json.get("Configs").and_then(Json::as_array).is_some_and(|configs| !configs.is_empty());
    if configs(&truth.value) && shown.get("Configs").is_none() {
        let path = format!("{}.Configs", truth.path);
        let what = "the client shows none of the configs that came";
        return Err(truth.place(differs(Class::Lossy, &path, &truth.value["Configs"], &Json::Null, what)));
    }
    let comparable = |(name, value): &(&String, &Json)| {
        // A client may have a text of its own where the broker gives none, and need not keep one beside success.
        name.as_str() != "ErrorMessage" || due != 0 && value.as_str().is_some_and(|text| !text.is_empty())
    };
    let came: Map<String, Json> = truth
        .value
        .as_object()
        .into_iter()
        .flatten()
        .filter(comparable)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut shown = shown.as_object().cloned().unwrap_or_default();
    shown.retain(|name, _| came.contains_key(name) || name != "ErrorMessage");
    // Where there is no error, a client need not say so, nor list what is empty.
    let optional = |name: &str| name == "ErrorCode" || name == "Configs";
    let must_show = |name: &str| !optional(name) && must_show(name);
    compare(&truth.path, &came.into(), &shown.into(), &must_show).map_err(|deviation| truth.place(deviation))
}

/// Whether a field that did not come may be shown nevertheless: as a placeholder, or derived from one that came.
fn may_stand(name: &str, shown: &Json, came: &Map<String, Json>) -> bool {
    let came = |name: &str| came.get(name);
    match name {
        "IsDefault" if came("ConfigSource").is_some() => {
            shown.is_null() || shown.as_bool() == came("ConfigSource").map(|source| *source == DEFAULT_CONFIG)
        }
        // Version 0 says of the source only whether it is the default.
        "ConfigSource" if came("IsDefault") == Some(&Json::Bool(false)) => *shown != DEFAULT_CONFIG,
        "ConfigSource" if *shown == DEFAULT_CONFIG => came("IsDefault") == Some(&Json::Bool(true)),
        _ => match shown {
            Json::Null | Json::Bool(false) => true,
            Json::Number(number) => matches!(number.as_i64(), Some(-1 | 0)),
            Json::String(text) => text.is_empty(),
            Json::Array(entries) => entries.is_empty(),
            Json::Bool(true) | Json::Object(_) => false,
        },
    }
}

/// Compares what is shown with what came: entries of a list by name where they have different ones, fields by name.
fn compare(path: &str, want: &Json, got: &Json, must_show: &dyn Fn(&str) -> bool) -> Result<(), Box<Deviation>> {
    match (want, got) {
        (Json::Object(want), Json::Object(got)) => {
            for (name, value) in want {
                let path = format!("{path}.{name}");
                match got.get(name) {
                    Some(shown) => compare(&path, value, shown, must_show)?,
                    None if must_show(name) => {
                        let what = "a field that came is not shown";
                        return Err(differs(Class::Lossy, &path, value, &Json::Null, what));
                    }
                    None => {}
                }
            }
            match got.iter().find(|(name, shown)| !want.contains_key(*name) && !may_stand(name, shown, want)) {
                Some((name, shown)) => {
                    let what = "a field is shown that did not come";
                    Err(differs(Class::InventedValue, &format!("{path}.{name}"), &Json::Null, shown, what))
                }
                None => Ok(()),
            }
        }
        (Json::Array(want), Json::Array(got)) => match by_name(want).zip(by_name(got)) {
            Some((want, got)) if path.ends_with(".Configs") => {
                for (name, value) in &want {
                    let path = format!("{path}[Name={name}]");
                    let Some(shown) = got.get(name) else {
                        return Err(differs(
                            Class::Lossy,
                            &path,
                            value,
                            &Json::Null,
                            "a config that came is not shown",
                        ));
                    };
                    compare(&path, value, shown, must_show)?;
                }
                match got.iter().find(|(name, _)| !want.contains_key(*name)) {
                    Some((_, shown)) => {
                        let what = "a config is shown that did not come";
                        Err(differs(Class::InventedValue, path, &Json::Null, shown, what))
                    }
                    None => Ok(()),
                }
            }
            _ if want.len() != got.len() => {
                let (class, what) = match want.len() > got.len() {
                    true => (Class::Lossy, "fewer entries are shown than came"),
                    false => (Class::InventedValue, "more entries are shown than came"),
                };
                Err(differs(class, path, &want.clone().into(), &got.clone().into(), what))
            }
            _ => {
                let mut pairs = want.iter().zip(got).enumerate();
                pairs.try_for_each(|(index, (want, got))| compare(&format!("{path}[{index}]"), want, got, must_show))
            }
        },
        _ if want == got => Ok(()),
        _ => Err(differs(Class::WrongValue, path, want, got, "another value is shown than came")),
    }
}

/// The entries of a list by their names, if they all have different ones.
fn by_name(entries: &[Json]) -> Option<BTreeMap<String, &Json>> {
    let named: BTreeMap<String, &Json> =
        entries.iter().map(|entry| Some((entry.get("Name")?.as_str()?.to_owned(), entry))).collect::<Option<_>>()?;
    (named.len() == entries.len()).then_some(named)
}

/// A resource in a fixed order, without keys where they are null or empty: both ask for all configs.
pub(super) fn without_empty_keys(resource: &Json) -> Json {
    let mut resource = in_fixed_order(resource);
    if let Some(fields) = resource.as_object_mut() {
        let all = |keys: &Json| keys.as_array().is_none_or(Vec::is_empty);
        fields.retain(|name, value| name != "ConfigurationKeys" || !all(value));
    }
    resource
}

/// A value with its entries that have names ordered by name, and lists of texts in order: the order a client sends
/// configs in, or shows them, may be a hash map's.
pub(super) fn in_fixed_order(value: &Json) -> Json {
    match value {
        Json::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), in_fixed_order(value))).collect(),
        Json::Array(entries) => {
            let mut entries: Vec<Json> = entries.iter().map(in_fixed_order).collect();
            entries.sort_by_cached_key(|entry| match entry.get("Name") {
                Some(name) => format!("{name} {entry}"),
                None => entry.to_string(),
            });
            entries.into()
        }
        other => other.clone(),
    }
}

impl Truth<'_> {
    /// Adds where in the bytes sent the value is that a deviation is about.
    fn place(&self, mut deviation: Box<Deviation>) -> Box<Deviation> {
        if let Some(at) = &mut deviation.at
            && let Ok(decoded) = decode_frame(&self.layout, self.frame)
            && let Some(node) = decoded.body().get(&at.path)
        {
            at.offset = Some(node.node().start.into());
            at.length = Some(u64::from(node.node().end - node.node().start));
        }
        deviation
    }
}
