//! The messages of the crate that the suite knows, with the definition's name of each field.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{
    RequestHeader, ResponseHeader, alter_client_quotas_request, alter_client_quotas_response, alter_configs_request,
    alter_configs_response, api_versions_request, api_versions_response, create_topics_request, create_topics_response,
    delete_topics_request, delete_topics_response, describe_configs_request, describe_configs_response,
    describe_topic_partitions_request, describe_topic_partitions_response, incremental_alter_configs_request,
    incremental_alter_configs_response, metadata_request, metadata_response, sasl_authenticate_request,
    sasl_authenticate_response, sasl_handshake_request, sasl_handshake_response,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Message as Versioned, VersionRange};
use serde_json::{Map, Value, json};

use crate::value::{Json, Refusal, at, bad, hex, unhex};

/// A decoded or parsed message.
pub trait Message {
    /// The suite's form of all it holds.
    fn json(&self) -> Value;
    /// Appends it as the crate encodes it.
    fn write(&self, bytes: &mut BytesMut, version: i16) -> anyhow::Result<()>;
}

impl<T: Json + Encodable> Message for T {
    fn json(&self) -> Value {
        Json::json(self)
    }
    fn write(&self, bytes: &mut BytesMut, version: i16) -> anyhow::Result<()> {
        self.encode(bytes, version)
    }
}

/// A message the crate has.
#[derive(Clone, Copy)]
pub struct MessageType {
    /// The definition's name.
    pub name: &'static str,
    /// The versions the crate declares.
    pub versions: VersionRange,
    /// Which header version goes with a version; `None` for the headers themselves.
    pub header: Option<fn(i16) -> i16>,
    /// Decodes a message off the front of the bytes.
    pub read: fn(&mut Bytes, i16) -> anyhow::Result<Box<dyn Message>>,
    /// Makes a message of the suite's form.
    pub parse: fn(&Value) -> Result<Box<dyn Message>, Refusal>,
}

impl MessageType {
    const fn of<T: Json + Versioned + Decodable + Encodable + 'static>(name: &'static str) -> Self {
        MessageType {
            name,
            versions: T::VERSIONS,
            header: None,
            read: |bytes, version| Ok(Box::new(T::decode(bytes, version)?)),
            parse: |value| Ok(Box::new(<T as Json>::parse(value)?)),
        }
    }

    const fn with_header<T: Json + Versioned + Decodable + Encodable + HeaderVersion + 'static>(
        name: &'static str,
    ) -> Self {
        MessageType { header: Some(T::header_version), ..Self::of::<T>(name) }
    }
}

/// Every message this adapter offers.
pub fn all() -> impl Iterator<Item = MessageType> {
    MESSAGES.iter().copied()
}

const MESSAGES: &[MessageType] = &[
    MessageType::of::<RequestHeader>("RequestHeader"),
    MessageType::of::<ResponseHeader>("ResponseHeader"),
    MessageType::with_header::<alter_client_quotas_request::AlterClientQuotasRequest>("AlterClientQuotasRequest"),
    MessageType::with_header::<alter_client_quotas_response::AlterClientQuotasResponse>("AlterClientQuotasResponse"),
    MessageType::with_header::<alter_configs_request::AlterConfigsRequest>("AlterConfigsRequest"),
    MessageType::with_header::<alter_configs_response::AlterConfigsResponse>("AlterConfigsResponse"),
    MessageType::with_header::<api_versions_request::ApiVersionsRequest>("ApiVersionsRequest"),
    MessageType::with_header::<api_versions_response::ApiVersionsResponse>("ApiVersionsResponse"),
    MessageType::with_header::<create_topics_request::CreateTopicsRequest>("CreateTopicsRequest"),
    MessageType::with_header::<create_topics_response::CreateTopicsResponse>("CreateTopicsResponse"),
    MessageType::with_header::<delete_topics_request::DeleteTopicsRequest>("DeleteTopicsRequest"),
    MessageType::with_header::<delete_topics_response::DeleteTopicsResponse>("DeleteTopicsResponse"),
    MessageType::with_header::<describe_configs_request::DescribeConfigsRequest>("DescribeConfigsRequest"),
    MessageType::with_header::<describe_configs_response::DescribeConfigsResponse>("DescribeConfigsResponse"),
    MessageType::with_header::<describe_topic_partitions_request::DescribeTopicPartitionsRequest>(
        "DescribeTopicPartitionsRequest",
    ),
    MessageType::with_header::<describe_topic_partitions_response::DescribeTopicPartitionsResponse>(
        "DescribeTopicPartitionsResponse",
    ),
    MessageType::with_header::<incremental_alter_configs_request::IncrementalAlterConfigsRequest>(
        "IncrementalAlterConfigsRequest",
    ),
    MessageType::with_header::<incremental_alter_configs_response::IncrementalAlterConfigsResponse>(
        "IncrementalAlterConfigsResponse",
    ),
    MessageType::with_header::<metadata_request::MetadataRequest>("MetadataRequest"),
    MessageType::with_header::<metadata_response::MetadataResponse>("MetadataResponse"),
    MessageType::with_header::<sasl_authenticate_request::SaslAuthenticateRequest>("SaslAuthenticateRequest"),
    MessageType::with_header::<sasl_authenticate_response::SaslAuthenticateResponse>("SaslAuthenticateResponse"),
    MessageType::with_header::<sasl_handshake_request::SaslHandshakeRequest>("SaslHandshakeRequest"),
    MessageType::with_header::<sasl_handshake_response::SaslHandshakeResponse>("SaslHandshakeResponse"),
];

/// `Json` for structures: each field with its name in the definition; `tags` where the structure keeps unknown tags.
macro_rules! structures {
    ($($structure:path { $($field:ident $name:literal),+ } $($tags:ident)?;)+) => {$(
        impl Json for $structure {
            fn json(&self) -> Value {
                let mut fields = Map::new();
                $(fields.insert($name.to_owned(), self.$field.json());)+
                $(structures!(@$tags self, fields);)?
                Value::Object(fields)
            }

            fn parse(value: &Value) -> Result<Self, Refusal> {
                let fields = value.as_object().ok_or_else(|| bad(format!("not an object: {value}")))?;
                let mut structure = Self::default();
                for (name, value) in fields {
                    match name.as_str() {
                        $($name => structure.$field = Json::parse(value).map_err(|error| at(name, error))?,)+
                        $("_tags" => structures!(@$tags structure, value, parse),)?
                        _ => return Err(bad(format!("no field {name}"))),
                    }
                }
                Ok(structure)
            }
        }
    )+};
    (@tags $structure:ident, $fields:ident) => {
        if !$structure.unknown_tagged_fields.is_empty() {
            // The crate holds the number signed; on the wire it has no sign.
            let json = |(tag, bytes): (&i32, &Bytes)| json!({"tag": tag.cast_unsigned(), "hex": hex(bytes)});
            let tags = $structure.unknown_tagged_fields.iter().map(json);
            $fields.insert("_tags".to_owned(), tags.collect());
        }
    };
    (@tags $structure:ident, $value:ident, parse) => {
        for tag in $value.as_array().ok_or_else(|| bad("_tags is an array"))? {
            let bytes = unhex(tag["hex"].as_str().unwrap_or_default())?;
            let number = tag["tag"].as_u64().and_then(|number| u32::try_from(number).ok());
            let number = number.ok_or_else(|| bad(format!("no tag: {}", tag["tag"])))?;
            $structure.unknown_tagged_fields.insert(number.cast_signed(), bytes.into());
        }
    };
}

structures! {
    RequestHeader {
        request_api_key "RequestApiKey", request_api_version "RequestApiVersion", correlation_id "CorrelationId",
        client_id "ClientId"
    } tags;
    ResponseHeader { correlation_id "CorrelationId" } tags;

    alter_client_quotas_request::AlterClientQuotasRequest { entries "Entries", validate_only "ValidateOnly" } tags;
    alter_client_quotas_request::EntryData { entity "Entity", ops "Ops" } tags;
    alter_client_quotas_request::EntityData { entity_type "EntityType", entity_name "EntityName" } tags;
    alter_client_quotas_request::OpData { key "Key", value "Value", remove "Remove" } tags;

    alter_client_quotas_response::AlterClientQuotasResponse {
        throttle_time_ms "ThrottleTimeMs", entries "Entries"
    } tags;
    alter_client_quotas_response::EntryData {
        error_code "ErrorCode", error_message "ErrorMessage", entity "Entity"
    } tags;
    alter_client_quotas_response::EntityData { entity_type "EntityType", entity_name "EntityName" } tags;

    alter_configs_request::AlterConfigsRequest { resources "Resources", validate_only "ValidateOnly" } tags;
    alter_configs_request::AlterConfigsResource {
        resource_type "ResourceType", resource_name "ResourceName", configs "Configs"
    } tags;
    alter_configs_request::AlterableConfig { name "Name", value "Value" } tags;

    alter_configs_response::AlterConfigsResponse { throttle_time_ms "ThrottleTimeMs", responses "Responses" } tags;
    alter_configs_response::AlterConfigsResourceResponse {
        error_code "ErrorCode", error_message "ErrorMessage", resource_type "ResourceType", resource_name "ResourceName"
    } tags;

    api_versions_request::ApiVersionsRequest {
        client_software_name "ClientSoftwareName", client_software_version "ClientSoftwareVersion"
    } tags;

    api_versions_response::ApiVersionsResponse {
        error_code "ErrorCode", api_keys "ApiKeys", throttle_time_ms "ThrottleTimeMs",
        supported_features "SupportedFeatures", finalized_features_epoch "FinalizedFeaturesEpoch",
        finalized_features "FinalizedFeatures", zk_migration_ready "ZkMigrationReady"
    } tags;
    api_versions_response::ApiVersion { api_key "ApiKey", min_version "MinVersion", max_version "MaxVersion" } tags;
    api_versions_response::SupportedFeatureKey { name "Name", min_version "MinVersion", max_version "MaxVersion" } tags;
    api_versions_response::FinalizedFeatureKey {
        name "Name", max_version_level "MaxVersionLevel", min_version_level "MinVersionLevel"
    } tags;

    // Two names begin with a small letter in Kafka's own definition.
    create_topics_request::CreateTopicsRequest {
        topics "Topics", timeout_ms "timeoutMs", validate_only "validateOnly"
    } tags;
    create_topics_request::CreatableTopic {
        name "Name", num_partitions "NumPartitions", replication_factor "ReplicationFactor", assignments "Assignments",
        configs "Configs"
    } tags;
    create_topics_request::CreatableReplicaAssignment { partition_index "PartitionIndex", broker_ids "BrokerIds" } tags;
    create_topics_request::CreatableTopicConfig { name "Name", value "Value" } tags;

    create_topics_response::CreateTopicsResponse { throttle_time_ms "ThrottleTimeMs", topics "Topics" } tags;
    create_topics_response::CreatableTopicResult {
        name "Name", topic_id "TopicId", error_code "ErrorCode", error_message "ErrorMessage",
        topic_config_error_code "TopicConfigErrorCode", num_partitions "NumPartitions",
        replication_factor "ReplicationFactor", configs "Configs"
    } tags;
    create_topics_response::CreatableTopicConfigs {
        name "Name", value "Value", read_only "ReadOnly", config_source "ConfigSource", is_sensitive "IsSensitive"
    } tags;

    delete_topics_request::DeleteTopicsRequest {
        topics "Topics", topic_names "TopicNames", timeout_ms "TimeoutMs"
    } tags;
    delete_topics_request::DeleteTopicState { name "Name", topic_id "TopicId" } tags;

    delete_topics_response::DeleteTopicsResponse { throttle_time_ms "ThrottleTimeMs", responses "Responses" } tags;
    delete_topics_response::DeletableTopicResult {
        name "Name", topic_id "TopicId", error_code "ErrorCode", error_message "ErrorMessage"
    } tags;

    describe_configs_request::DescribeConfigsRequest {
        resources "Resources", include_synonyms "IncludeSynonyms", include_documentation "IncludeDocumentation"
    } tags;
    describe_configs_request::DescribeConfigsResource {
        resource_type "ResourceType", resource_name "ResourceName", configuration_keys "ConfigurationKeys"
    } tags;

    describe_configs_response::DescribeConfigsResponse { throttle_time_ms "ThrottleTimeMs", results "Results" } tags;
    describe_configs_response::DescribeConfigsResult {
        error_code "ErrorCode", error_message "ErrorMessage", resource_type "ResourceType", resource_name "ResourceName",
        configs "Configs"
    } tags;
    describe_configs_response::DescribeConfigsResourceResult {
        name "Name", value "Value", read_only "ReadOnly", config_source "ConfigSource", is_sensitive "IsSensitive",
        synonyms "Synonyms", config_type "ConfigType", documentation "Documentation"
    } tags;
    describe_configs_response::DescribeConfigsSynonym { name "Name", value "Value", source "Source" } tags;

    describe_topic_partitions_request::DescribeTopicPartitionsRequest {
        topics "Topics", response_partition_limit "ResponsePartitionLimit", cursor "Cursor"
    } tags;
    describe_topic_partitions_request::TopicRequest { name "Name" } tags;
    describe_topic_partitions_request::Cursor { topic_name "TopicName", partition_index "PartitionIndex" } tags;

    describe_topic_partitions_response::DescribeTopicPartitionsResponse {
        throttle_time_ms "ThrottleTimeMs", topics "Topics", next_cursor "NextCursor"
    } tags;
    describe_topic_partitions_response::DescribeTopicPartitionsResponseTopic {
        error_code "ErrorCode", name "Name", topic_id "TopicId", is_internal "IsInternal", partitions "Partitions",
        topic_authorized_operations "TopicAuthorizedOperations"
    } tags;
    describe_topic_partitions_response::DescribeTopicPartitionsResponsePartition {
        error_code "ErrorCode", partition_index "PartitionIndex", leader_id "LeaderId", leader_epoch "LeaderEpoch",
        replica_nodes "ReplicaNodes", isr_nodes "IsrNodes", eligible_leader_replicas "EligibleLeaderReplicas",
        last_known_elr "LastKnownElr", offline_replicas "OfflineReplicas"
    } tags;
    describe_topic_partitions_response::Cursor { topic_name "TopicName", partition_index "PartitionIndex" } tags;

    incremental_alter_configs_request::IncrementalAlterConfigsRequest {
        resources "Resources", validate_only "ValidateOnly"
    } tags;
    incremental_alter_configs_request::AlterConfigsResource {
        resource_type "ResourceType", resource_name "ResourceName", configs "Configs"
    } tags;
    incremental_alter_configs_request::AlterableConfig {
        name "Name", config_operation "ConfigOperation", value "Value"
    } tags;

    incremental_alter_configs_response::IncrementalAlterConfigsResponse {
        throttle_time_ms "ThrottleTimeMs", responses "Responses"
    } tags;
    incremental_alter_configs_response::AlterConfigsResourceResponse {
        error_code "ErrorCode", error_message "ErrorMessage", resource_type "ResourceType", resource_name "ResourceName"
    } tags;

    metadata_request::MetadataRequest {
        topics "Topics", allow_auto_topic_creation "AllowAutoTopicCreation",
        include_cluster_authorized_operations "IncludeClusterAuthorizedOperations",
        include_topic_authorized_operations "IncludeTopicAuthorizedOperations"
    } tags;
    metadata_request::MetadataRequestTopic { topic_id "TopicId", name "Name" } tags;

    metadata_response::MetadataResponse {
        throttle_time_ms "ThrottleTimeMs", brokers "Brokers", cluster_id "ClusterId", controller_id "ControllerId",
        topics "Topics", cluster_authorized_operations "ClusterAuthorizedOperations", error_code "ErrorCode"
    } tags;
    metadata_response::MetadataResponseBroker { node_id "NodeId", host "Host", port "Port", rack "Rack" } tags;
    metadata_response::MetadataResponseTopic {
        error_code "ErrorCode", name "Name", topic_id "TopicId", is_internal "IsInternal", partitions "Partitions",
        topic_authorized_operations "TopicAuthorizedOperations"
    } tags;
    metadata_response::MetadataResponsePartition {
        error_code "ErrorCode", partition_index "PartitionIndex", leader_id "LeaderId", leader_epoch "LeaderEpoch",
        replica_nodes "ReplicaNodes", isr_nodes "IsrNodes", offline_replicas "OfflineReplicas"
    } tags;

    sasl_authenticate_request::SaslAuthenticateRequest { auth_bytes "AuthBytes" } tags;
    sasl_authenticate_response::SaslAuthenticateResponse {
        error_code "ErrorCode", error_message "ErrorMessage", auth_bytes "AuthBytes",
        session_lifetime_ms "SessionLifetimeMs"
    } tags;

    // No flexible version, and so no tags to keep.
    sasl_handshake_request::SaslHandshakeRequest { mechanism "Mechanism" };
    sasl_handshake_response::SaslHandshakeResponse { error_code "ErrorCode", mechanisms "Mechanisms" };
}
