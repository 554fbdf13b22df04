package main

import (
	"encoding/json"
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// message is what requests and responses share.
type message interface {
	Key() int16
	MaxVersion() int16
	SetVersion(int16)
	GetVersion() int16
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

// messages are the messages on offer, by the definition's name; each call makes a new one that holds the defaults.
var messages = func() map[string]func() message {
	all := map[string]func() message{}
	for name, key := range map[string]int16{
		"Metadata": 3, "SaslHandshake": 17, "ApiVersions": 18, "CreateTopics": 19, "DeleteTopics": 20, "DescribeConfigs": 32,
		"AlterConfigs": 33, "SaslAuthenticate": 36, "IncrementalAlterConfigs": 44, "AlterClientQuotas": 49,
		"ControlledShutdown": 7, "DescribeTopicPartitions": 75, "FetchSnapshot": 59,
	} {
		all[name+"Request"] = func() message { return kmsg.RequestForKey(key) }
		all[name+"Response"] = func() message { return kmsg.ResponseForKey(key) }
	}
	return all
}()

// names are kmsg's fields whose name differs from the definition's, by type and field, or by field alone.
var names = map[string]string{
	"BrokerID":              "BrokerId",
	"ClientID":              "ClientId",
	"ClusterID":             "ClusterId",
	"ControllerID":          "ControllerId",
	"CorrelationID":         "CorrelationId",
	"ISR":                   "IsrNodes",
	"Leader":                "LeaderId",
	"LeaderID":              "LeaderId",
	"NodeID":                "NodeId",
	"Partition":             "PartitionIndex",
	"ReplicaDirectoryID":    "ReplicaDirectoryId",
	"ReplicaID":             "ReplicaId",
	"SASLAuthBytes":         "AuthBytes",
	"SessionLifetimeMillis": "SessionLifetimeMs",
	"SnapshotID":            "SnapshotId",
	"ThrottleMillis":        "ThrottleTimeMs",
	"TimeoutMillis":         "TimeoutMs",
	"Topic":                 "Name",
	"TopicID":               "TopicId",
	"UnknownTags":           "_tags",

	"AlterClientQuotasRequestEntryEntity.Name":                   "EntityName",
	"AlterClientQuotasRequestEntryEntity.Type":                   "EntityType",
	"AlterClientQuotasResponseEntryEntity.Name":                  "EntityName",
	"AlterClientQuotasResponseEntryEntity.Type":                  "EntityType",
	"AlterConfigsResponse.Resources":                             "Responses",
	"CreateTopicsRequest.TimeoutMillis":                          "timeoutMs", // the definition writes these two with a small letter
	"CreateTopicsRequest.ValidateOnly":                           "validateOnly",
	"CreateTopicsRequestTopic.ReplicaAssignment":                 "Assignments",
	"CreateTopicsRequestTopicReplicaAssignment.Replicas":         "BrokerIds",
	"CreateTopicsResponseTopic.ConfigErrorCode":                  "TopicConfigErrorCode",
	"CreateTopicsResponseTopicConfig.Source":                     "ConfigSource",
	"ControlledShutdownResponse.PartitionsRemaining":             "RemainingPartitions",
	"ControlledShutdownResponsePartitionsRemaining.Topic":        "TopicName",
	"DeleteTopicsResponse.Topics":                                "Responses",
	"DescribeConfigsRequestResource.ConfigNames":                 "ConfigurationKeys",
	"DescribeConfigsResponse.Resources":                          "Results",
	"DescribeConfigsResponseResourceConfig.ConfigSynonyms":       "Synonyms",
	"DescribeConfigsResponseResourceConfig.Source":               "ConfigSource",
	"DescribeTopicPartitionsRequestCursor.Topic":                 "TopicName",
	"DescribeTopicPartitionsResponseNextCursor.Topic":            "TopicName",
	"DescribeTopicPartitionsResponseTopic.AuthorizedOperations":  "TopicAuthorizedOperations",
	"DescribeTopicPartitionsResponseTopicPartition.LastKnownELR": "LastKnownElr",
	"DescribeTopicPartitionsResponseTopicPartition.Replicas":     "ReplicaNodes",
	"FetchSnapshotRequestTopicPartition.Partition":               "Partition",
	"FetchSnapshotResponseTopicPartition.Bytes":                  "UnalignedRecords",
	"FetchSnapshotResponseTopicPartition.Partition":              "Index",
	"IncrementalAlterConfigsRequestResourceConfig.Op":            "ConfigOperation",
	"IncrementalAlterConfigsResponse.Resources":                  "Responses",
	"MetadataResponse.AuthorizedOperations":                      "ClusterAuthorizedOperations",
	"MetadataResponseTopic.AuthorizedOperations":                 "TopicAuthorizedOperations",
	"MetadataResponseTopicPartition.Replicas":                    "ReplicaNodes",
	"SASLHandshakeResponse.SupportedMechanisms":                  "Mechanisms",
}

// nullable are the arrays that may be null. A nil slice is kmsg's null there, and no more than an empty slice elsewhere.
var nullable = map[string]bool{
	"CreateTopicsResponseTopic.Configs":                                    true,
	"DescribeConfigsRequestResource.ConfigNames":                           true,
	"DescribeTopicPartitionsResponseTopicPartition.EligibleLeaderReplicas": true,
	"DescribeTopicPartitionsResponseTopicPartition.LastKnownELR":           true,
	"MetadataRequest.Topics":                                               true,
}

// defaults are the definition's defaults where the library's own differ. Beside them every nullable text is "" and every
// nullable array is empty by the definition, but nil in the library.
var defaults = map[string]any{
	"ApiVersionsRequest.ClusterID":                                         nil,
	"CreateTopicsRequest.TimeoutMillis":                                    json.Number("60000"),
	"DeleteTopicsRequest.TimeoutMillis":                                    json.Number("0"),
	"DeleteTopicsRequestTopic.Topic":                                       nil,
	"DeleteTopicsResponseTopic.ErrorMessage":                               nil,
	"DescribeTopicPartitionsResponseTopicPartition.EligibleLeaderReplicas": nil,
	"DescribeTopicPartitionsResponseTopicPartition.LastKnownELR":           nil,
	"FetchSnapshotRequest.ClusterID":                                       nil,
	"MetadataRequest.AllowAutoTopicCreation":                               true,
	"MetadataResponse.ClusterID":                                           nil,
	"MetadataResponseBroker.Rack":                                          nil,
}

// name is the definition's name of a field of a structure, and whether it stands in messages at all.
func name(structure reflect.Type, field reflect.StructField) (string, bool) {
	if field.Name == "Version" {
		return "", false
	}
	if name, ok := names[structure.Name()+"."+field.Name]; ok {
		return name, true
	}
	if name, ok := names[field.Name]; ok {
		return name, true
	}
	return field.Name, true
}
