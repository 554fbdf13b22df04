//! The three config calls: DescribeConfigs, AlterConfigs and IncrementalAlterConfigs.

use std::ffi::{CStr, CString, c_int};
use std::ptr;

use rdkafka_sys as rd;
use serde_json::{Map, Value, json};

use crate::native::{self, Client, ErrorText, Owned, c_string, code_name, text};
use crate::protocol::{Api, Failure, Operation, Resource, Shown};

/// librdkafka's own error codes lie below this one; the broker's begin at -1 (UNKNOWN).
const LOCAL_CODES_END: c_int = -100;

type NativeResource = Owned<rd::rd_kafka_ConfigResource_t>;

/// Makes the call and waits for its event for as long as it takes.
pub(crate) fn call(client: &Client, operation: &Operation) -> Result<Vec<Shown>, Failure> {
    if operation.documentation {
        return Err(Failure::Unsupported("librdkafka does not ask for documentation".to_owned()));
    }
    let resources = operation
        .resources
        .iter()
        .map(|resource| native_resource(operation.api, resource))
        .collect::<Result<Vec<NativeResource>, Failure>>()?;
    let options = native_options(client, operation)?;
    // SAFETY: all objects live until the event has come; librdkafka copies the resources and the options.
    unsafe {
        let queue = rd::rd_kafka_queue_new(client.ptr());
        let queue = Owned::new(queue, rd::rd_kafka_queue_destroy).expect("rd_kafka_queue_new never returns NULL");
        let mut pointers: Vec<_> = resources.iter().map(Owned::ptr).collect();
        let send = match operation.api {
            Api::DescribeConfigs => rd::rd_kafka_DescribeConfigs,
            Api::AlterConfigs => rd::rd_kafka_AlterConfigs,
            Api::IncrementalAlterConfigs => rd::rd_kafka_IncrementalAlterConfigs,
        };
        send(client.ptr(), pointers.as_mut_ptr(), pointers.len(), options.ptr(), queue.ptr());
        // -1: no deadline. The call has its own, and where that does not work the caller is to see it.
        let event = rd::rd_kafka_queue_poll(queue.ptr(), -1);
        let event = Owned::new(event, rd::rd_kafka_event_destroy)
            .ok_or_else(|| Failure::Error { text: "rd_kafka_queue_poll returned no event".to_owned(), code: None })?;
        results(operation.api, event.ptr())
    }
}

fn native_options(client: &Client, operation: &Operation) -> Result<Owned<rd::rd_kafka_AdminOptions_t>, Failure> {
    let for_api = match operation.api {
        Api::DescribeConfigs => rd::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS,
        Api::AlterConfigs => rd::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_ALTERCONFIGS,
        Api::IncrementalAlterConfigs => rd::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_INCREMENTALALTERCONFIGS,
    };
    let timeout_ms = c_int::try_from(operation.timeout_ms).unwrap_or(c_int::MAX);
    let mut why = ErrorText::new();
    let (start, size) = why.space();
    // SAFETY: the options belong to no call yet, and `start` has room for `size` bytes.
    unsafe {
        let options = rd::rd_kafka_AdminOptions_new(client.ptr(), for_api);
        let options = Owned::new(options, rd::rd_kafka_AdminOptions_destroy)
            .ok_or_else(|| Failure::Refused("rd_kafka_AdminOptions_new knows no such call".to_owned()))?;
        let mut code = rd::rd_kafka_AdminOptions_set_request_timeout(options.ptr(), timeout_ms, start, size) as c_int;
        if code == 0 && operation.validate_only {
            code = rd::rd_kafka_AdminOptions_set_validate_only(options.ptr(), 1, start, size) as c_int;
        }
        if code == 0 { Ok(options) } else { Err(Failure::Refused(format!("{}: {why}", code_name(code)))) }
    }
}

fn native_resource(api: Api, asked: &Resource) -> Result<NativeResource, Failure> {
    let resource_type = match asked.resource_type {
        0 => rd::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_UNKNOWN,
        2 => rd::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC,
        4 => rd::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_BROKER,
        32 => rd::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_GROUP,
        other => return Err(Failure::Unsupported(format!("librdkafka has no resource of type {other}"))),
    };
    let name = c_string(&asked.resource_name)?;
    // SAFETY: the name is copied.
    let resource = unsafe {
        let resource = rd::rd_kafka_ConfigResource_new(resource_type, name.as_ptr());
        Owned::new(resource, rd::rd_kafka_ConfigResource_destroy)
    };
    let resource = resource.ok_or_else(|| {
        Failure::Refused(format!("rd_kafka_ConfigResource_new returns NULL for the name {:?}", asked.resource_name))
    })?;
    match api {
        Api::DescribeConfigs => match asked.configuration_keys.as_deref() {
            None => {}
            Some([]) => {
                let why = "librdkafka has one way to ask for no keys, and it sends null: all configs";
                return Err(Failure::Unsupported(why.to_owned()));
            }
            // The value is not sent, but must not be NULL.
            Some(keys) => keys.iter().try_for_each(|key| set_config(&resource, key, Some("")))?,
        },
        Api::AlterConfigs => {
            asked.configs.iter().try_for_each(|config| set_config(&resource, &config.name, config.value.as_deref()))?;
        }
        Api::IncrementalAlterConfigs => asked.configs.iter().try_for_each(|config| {
            add_incremental_config(&resource, &config.name, config.config_operation, config.value.as_deref())
        })?,
    }
    Ok(resource)
}

fn set_config(resource: &NativeResource, name: &str, value: Option<&str>) -> Result<(), Failure> {
    let name = c_string(name)?;
    let value = value.map(c_string).transpose()?;
    // SAFETY: name and value are copied.
    let code = unsafe {
        rd::rd_kafka_ConfigResource_set_config(resource.ptr(), name.as_ptr(), pointer(value.as_ref())) as c_int
    };
    match code {
        0 => Ok(()),
        code => Err(Failure::Refused(format!("rd_kafka_ConfigResource_set_config: {}", code_name(code)))),
    }
}

fn add_incremental_config(
    resource: &NativeResource,
    name: &str,
    operation: i8,
    value: Option<&str>,
) -> Result<(), Failure> {
    let operation = match operation {
        0 => rd::rd_kafka_AlterConfigOpType_t::RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET,
        1 => rd::rd_kafka_AlterConfigOpType_t::RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE,
        2 => rd::rd_kafka_AlterConfigOpType_t::RD_KAFKA_ALTER_CONFIG_OP_TYPE_APPEND,
        3 => rd::rd_kafka_AlterConfigOpType_t::RD_KAFKA_ALTER_CONFIG_OP_TYPE_SUBTRACT,
        other => return Err(Failure::Unsupported(format!("librdkafka has no config operation {other}"))),
    };
    let name = c_string(name)?;
    let value = value.map(c_string).transpose()?;
    // SAFETY: name and value are copied; the error is ours to end.
    unsafe {
        let error = rd::rd_kafka_ConfigResource_add_incremental_config(
            resource.ptr(),
            name.as_ptr(),
            operation,
            pointer(value.as_ref()),
        );
        match Owned::new(error, rd::rd_kafka_error_destroy) {
            None => Ok(()),
            Some(error) => {
                let name = CStr::from_ptr(rd::rd_kafka_error_name(error.ptr())).to_string_lossy();
                let why = CStr::from_ptr(rd::rd_kafka_error_string(error.ptr())).to_string_lossy();
                Err(Failure::Refused(format!("{name}: {why}")))
            }
        }
    }
}

fn pointer(text: Option<&CString>) -> *const std::ffi::c_char {
    text.map_or(ptr::null(), |text| text.as_ptr())
}

/// What the event of a call says.
///
/// # Safety
/// `event` is the event of a call of this API.
unsafe fn results(api: Api, event: *mut rd::rd_kafka_event_t) -> Result<Vec<Shown>, Failure> {
    unsafe {
        let code = native::rd_kafka_event_error(event);
        if code != 0 {
            return Err(failure(code, text(rd::rd_kafka_event_error_string(event))));
        }
        let mut count = 0;
        let resources = match api {
            Api::DescribeConfigs => {
                let result = rd::rd_kafka_event_DescribeConfigs_result(event);
                (!result.is_null()).then(|| rd::rd_kafka_DescribeConfigs_result_resources(result, &mut count))
            }
            Api::AlterConfigs => {
                let result = rd::rd_kafka_event_AlterConfigs_result(event);
                (!result.is_null()).then(|| rd::rd_kafka_AlterConfigs_result_resources(result, &mut count))
            }
            Api::IncrementalAlterConfigs => {
                let result = rd::rd_kafka_event_IncrementalAlterConfigs_result(event);
                (!result.is_null()).then(|| rd::rd_kafka_IncrementalAlterConfigs_result_resources(result, &mut count))
            }
        };
        let Some(resources) = resources else {
            let name = CStr::from_ptr(rd::rd_kafka_event_name(event)).to_string_lossy().into_owned();
            return Err(Failure::Error { text: format!("an event of another kind: {name}"), code: None });
        };
        let resources = elements(resources, count).iter();
        // The list is in the order asked. Its places are NULL where the broker left out one before the last it answered.
        Ok(resources.filter(|resource| !resource.is_null()).map(|resource| shown(api, *resource)).collect())
    }
}

/// The failure of a whole call. Local codes go into the text: they are librdkafka's, not the broker's.
fn failure(code: c_int, text: Value) -> Failure {
    let text = text.as_str().unwrap_or_default().to_owned();
    if code >= LOCAL_CODES_END {
        return Failure::Error { text, code: Some(code) };
    }
    let refusals = [
        rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE as c_int,
        rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__INVALID_ARG as c_int,
        rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__CONFLICT as c_int,
    ];
    let text = format!("{}: {text}", code_name(code));
    if refusals.contains(&code) { Failure::Refused(text) } else { Failure::Error { text, code: None } }
}

/// # Safety
/// `resource` is a result of a call of this API, and its event lives.
unsafe fn shown(api: Api, resource: *const rd::rd_kafka_ConfigResource_t) -> Shown {
    unsafe {
        // The reverse of `native_resource`; a type of the broker's that librdkafka does not know has become 0.
        let resource_type = match native::rd_kafka_ConfigResource_type(resource) {
            group if group == rd::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_GROUP as c_int => 32,
            other => other,
        };
        let resource_name = text(rd::rd_kafka_ConfigResource_name(resource));
        let mut fields = Map::new();
        fields.insert("ErrorCode".to_owned(), native::rd_kafka_ConfigResource_error(resource).into());
        let message = text(rd::rd_kafka_ConfigResource_error_string(resource));
        if !message.is_null() {
            fields.insert("ErrorMessage".to_owned(), message);
        }
        fields.insert("ResourceType".to_owned(), resource_type.into());
        fields.insert("ResourceName".to_owned(), resource_name.clone());
        if api == Api::DescribeConfigs {
            let mut count = 0;
            let entries = rd::rd_kafka_ConfigResource_configs(resource, &mut count);
            let configs = elements(entries, count).iter().map(|entry| config(*entry)).collect();
            fields.insert("Configs".to_owned(), Value::Array(configs));
        }
        Shown { resource_type: resource_type.into(), resource_name, fields: Value::Object(fields) }
    }
}

/// # Safety
/// `entry` is of a result whose event lives.
unsafe fn config(entry: *const rd::rd_kafka_ConfigEntry_t) -> Value {
    unsafe {
        let mut count = 0;
        let synonyms = rd::rd_kafka_ConfigEntry_synonyms(entry, &mut count);
        let synonyms: Vec<Value> = elements(synonyms, count)
            .iter()
            .map(|synonym| {
                json!({
                    "Name": text(rd::rd_kafka_ConfigEntry_name(*synonym)),
                    "Value": text(rd::rd_kafka_ConfigEntry_value(*synonym)),
                    "Source": native::rd_kafka_ConfigEntry_source(*synonym),
                })
            })
            .collect();
        json!({
            "Name": text(rd::rd_kafka_ConfigEntry_name(entry)),
            "Value": text(rd::rd_kafka_ConfigEntry_value(entry)),
            "ReadOnly": rd::rd_kafka_ConfigEntry_is_read_only(entry) != 0,
            "IsDefault": rd::rd_kafka_ConfigEntry_is_default(entry) != 0,
            "ConfigSource": native::rd_kafka_ConfigEntry_source(entry),
            "IsSensitive": rd::rd_kafka_ConfigEntry_is_sensitive(entry) != 0,
            "Synonyms": synonyms,
        })
    }
}

/// A list of librdkafka's, which is NULL when it is empty.
///
/// # Safety
/// `first` is NULL or points to `count` elements that live as long as the caller's use of them.
unsafe fn elements<'a, T>(first: *mut *const T, count: usize) -> &'a [*const T] {
    if first.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } }
}
