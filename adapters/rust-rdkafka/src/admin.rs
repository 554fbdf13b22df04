//! The two config calls that the wrapper has: DescribeConfigs and AlterConfigs.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, ConfigEntry, ConfigSource, OwnedResourceSpecifier, ResourceSpecifier,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::types::RDKafkaErrorCode;
use serde_json::{Value, json};

use crate::protocol::{Api, Failure, Operation, Resource, Shown};

/// librdkafka's own error codes lie below this one; the broker's begin at -1 (UNKNOWN).
const LOCAL_CODES_END: i32 = -100;

/// A client for these brokers. `timeout_ms` bounds each request on its socket; calls bound themselves.
pub(crate) fn connect(operation: &Operation) -> Result<AdminClient<DefaultClientContext>, Failure> {
    ClientConfig::new()
        .set("bootstrap.servers", &operation.bootstrap)
        .set("socket.timeout.ms", operation.timeout_ms.to_string())
        .create()
        .map_err(|error| Failure::Error { text: error.to_string(), code: None })
}

/// Makes the call and waits for its future for as long as it takes.
pub(crate) fn call(client: &AdminClient<DefaultClientContext>, operation: &Operation) -> Result<Vec<Shown>, Failure> {
    let options = AdminOptions::new()
        .request_timeout(Some(Duration::from_millis(operation.timeout_ms.into())))
        .validate_only(operation.validate_only);
    match operation.api {
        Api::DescribeConfigs => describe(client, operation, &options),
        Api::AlterConfigs => alter(client, operation, &options),
        Api::IncrementalAlterConfigs => Err(unsupported("the wrapper has no IncrementalAlterConfigs")),
    }
}

fn describe(
    client: &AdminClient<DefaultClientContext>,
    operation: &Operation,
    options: &AdminOptions,
) -> Result<Vec<Shown>, Failure> {
    if operation.documentation || operation.synonyms {
        return Err(unsupported("the wrapper shows neither synonyms nor documentation"));
    }
    if operation.resources.iter().any(|resource| resource.configuration_keys.is_some()) {
        return Err(unsupported("the wrapper always describes all configs of a resource"));
    }
    let asked = operation.resources.iter().map(specifier).collect::<Result<Vec<_>, Failure>>()?;
    let results = wait(client.describe_configs(&asked, options))?;
    Ok(results
        .into_iter()
        .zip(&operation.resources)
        .map(|(result, asked)| match result {
            Ok(resource) => {
                let (resource_type, resource_name) = identity(&resource.specifier);
                let fields = json!({
                    "ErrorCode": 0,
                    "ResourceType": resource_type,
                    "ResourceName": resource_name,
                    "Configs": resource.entries.iter().map(config).collect::<Vec<Value>>(),
                });
                Shown { resource_type, resource_name, fields }
            }
            // The code comes without the resource it belongs to; results are in the order asked.
            Err(code) => {
                let (resource_type, resource_name) = (asked.resource_type.into(), asked.resource_name.as_str().into());
                let fields = json!({
                    "ErrorCode": code as i32,
                    "ResourceType": resource_type,
                    "ResourceName": asked.resource_name,
                });
                Shown { resource_type, resource_name, fields }
            }
        })
        .collect())
}

fn alter(
    client: &AdminClient<DefaultClientContext>,
    operation: &Operation,
    options: &AdminOptions,
) -> Result<Vec<Shown>, Failure> {
    let asked = operation.resources.iter().map(alteration).collect::<Result<Vec<_>, Failure>>()?;
    let results = wait(client.alter_configs(&asked, options))?;
    Ok(results
        .into_iter()
        .map(|result| {
            let (specifier, code) = match result {
                Ok(specifier) => (specifier, 0),
                Err((specifier, code)) => (specifier, code as i32),
            };
            let (resource_type, resource_name) = identity(&specifier);
            let fields =
                json!({ "ErrorCode": code, "ResourceType": resource_type, "ResourceName": resource_name.clone() });
            Shown { resource_type, resource_name, fields }
        })
        .collect())
}

fn specifier(asked: &Resource) -> Result<ResourceSpecifier<'_>, Failure> {
    let name = asked.resource_name.as_str();
    match asked.resource_type {
        2 => Ok(ResourceSpecifier::Topic(name)),
        // A number that is written otherwise, such as "01", would not be what was asked.
        4 => match name.parse() {
            Ok(node) if i32::to_string(&node) == name => Ok(ResourceSpecifier::Broker(node)),
            _ => Err(unsupported("the wrapper takes a node id for a broker, and only an int32")),
        },
        32 => Ok(ResourceSpecifier::Group(name)),
        other => Err(Failure::Unsupported(format!("the wrapper has no resource of type {other}"))),
    }
}

fn alteration(asked: &Resource) -> Result<AlterConfig<'_>, Failure> {
    let mut alteration = AlterConfig::new(specifier(asked)?);
    for config in &asked.configs {
        let Some(value) = config.value.as_deref() else {
            return Err(unsupported("the wrapper takes no null value"));
        };
        if alteration.entries.insert(&config.name, value).is_some() {
            return Err(unsupported("the wrapper keeps configs in a map: one value a name"));
        }
    }
    Ok(alteration)
}

/// Waits for the wrapper's future without a deadline: where the call's own does not work, the caller is to see it.
fn wait<T>(future: impl Future<Output = KafkaResult<T>>) -> Result<T, Failure> {
    let mut future = pin!(future);
    // What the wrapper refuses while it prepares the call is there at the first poll, before anything was sent.
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error @ (KafkaError::AdminOpCreation(_) | KafkaError::Nul(_)))) => {
            Err(Failure::Refused(error.to_string()))
        }
        Poll::Ready(result) => result.map_err(failure),
        Poll::Pending => futures_executor::block_on(future).map_err(failure),
    }
}

/// The failure of a whole call. Local codes stay in the text: they are librdkafka's, not the broker's.
fn failure(error: KafkaError) -> Failure {
    let text = error.to_string();
    match error {
        KafkaError::AdminOp(
            RDKafkaErrorCode::UnsupportedFeature | RDKafkaErrorCode::InvalidArgument | RDKafkaErrorCode::Conflict,
        ) => Failure::Refused(text),
        KafkaError::AdminOp(code) if code as i32 >= LOCAL_CODES_END => Failure::Error { text, code: Some(code as i32) },
        _ => Failure::Error { text, code: None },
    }
}

fn unsupported(why: &str) -> Failure {
    Failure::Unsupported(why.to_owned())
}

/// The resource type and name as on the wire.
fn identity(specifier: &OwnedResourceSpecifier) -> (i64, Value) {
    match specifier {
        OwnedResourceSpecifier::Topic(name) => (2, name.as_str().into()),
        OwnedResourceSpecifier::Broker(node) => (4, node.to_string().into()),
        OwnedResourceSpecifier::Group(name) => (32, name.as_str().into()),
    }
}

fn config(entry: &ConfigEntry) -> Value {
    let source = match entry.source {
        ConfigSource::Unknown => 0,
        ConfigSource::DynamicTopic => 1,
        ConfigSource::DynamicBroker => 2,
        ConfigSource::DynamicDefaultBroker => 3,
        ConfigSource::StaticBroker => 4,
        ConfigSource::Default => 5,
    };
    json!({
        "Name": entry.name,
        "Value": entry.value,
        "ReadOnly": entry.is_read_only,
        "IsDefault": entry.is_default,
        "ConfigSource": source,
        "IsSensitive": entry.is_sensitive,
    })
}
