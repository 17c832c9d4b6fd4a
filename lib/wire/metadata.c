/* SPDX-License-Identifier: BSD-2-Clause */
/* metadata.c - Metadata, versions 0 to 13.  Constant tables.
 *
 * 1: null asks for all topics (0: an empty list does).  10: topic ids.  13: an
 * error of the whole.  Kafka: MetadataRequest.json, MetadataResponse.json. */
#include "lib/wire/api.h"

/* What a broker says that was not asked to fill in the operations. */
#define NO_OPERATIONS INT32_MIN

static const struct field request_topic_fields[] = {
    FIELD(metadata_request_topic, topic_id, UUID, .since = 10),
    FIELD(metadata_request_topic, name, STRING, NULLABLE(10)),
};
static const struct schema request_topic =
    SCHEMA(metadata_request_topic, "topics", request_topic_fields);

static const struct field request_fields[] = {
    FIELD(metadata_request, topics, ARRAY, NULLABLE(1), OF(request_topic)),
    FIELD(metadata_request, allow_auto_topic_creation, BOOL, .since = 4,
          .default_value = true),
    FIELD(metadata_request, include_cluster_authorized_operations, BOOL,
          .since = 8, .removed_in = 11),
    FIELD(metadata_request, include_topic_authorized_operations, BOOL,
          .since = 8),
};
static const struct schema request =
    SCHEMA(metadata_request, "MetadataRequest", request_fields);

static const struct field broker_fields[] = {
    FIELD(metadata_broker, node_id, I32, .since = 0),
    FIELD(metadata_broker, host, STRING, .since = 0),
    FIELD(metadata_broker, port, I32, .since = 0),
    FIELD(metadata_broker, rack, STRING, .since = 1, NULLABLE(1),
          .default_null = true),
};
static const struct schema broker =
    SCHEMA(metadata_broker, "brokers", broker_fields);

static const struct field partition_fields[] = {
    FIELD(metadata_partition, error_code, I16, .since = 0),
    FIELD(metadata_partition, partition_index, I32, .since = 0),
    FIELD(metadata_partition, leader_id, I32, .since = 0),
    FIELD(metadata_partition, leader_epoch, I32, .since = 7,
          .default_value = -1),
    FIELD(metadata_partition, replica_nodes, ARRAY, OF_I32),
    FIELD(metadata_partition, isr_nodes, ARRAY, OF_I32),
    FIELD(metadata_partition, offline_replicas, ARRAY, .since = 5, OF_I32),
};
static const struct schema partition =
    SCHEMA(metadata_partition, "partitions", partition_fields);

static const struct field topic_fields[] = {
    FIELD(metadata_topic, error_code, I16, .since = 0),
    FIELD(metadata_topic, name, STRING, NULLABLE(12)),
    FIELD(metadata_topic, topic_id, UUID, .since = 10),
    FIELD(metadata_topic, is_internal, BOOL, .since = 1),
    FIELD(metadata_topic, partitions, ARRAY, OF(partition)),
    FIELD(metadata_topic, topic_authorized_operations, I32, .since = 8,
          .default_value = NO_OPERATIONS),
};
static const struct schema topic =
    SCHEMA(metadata_topic, "topics", topic_fields);

static const struct field response_fields[] = {
    FIELD(metadata_response, throttle_time_ms, I32, .since = 3),
    FIELD(metadata_response, brokers, ARRAY, OF(broker)),
    FIELD(metadata_response, cluster_id, STRING, .since = 2, NULLABLE(2),
          .default_null = true),
    FIELD(metadata_response, controller_id, I32, .since = 1,
          .default_value = -1),
    FIELD(metadata_response, topics, ARRAY, OF(topic)),
    FIELD(metadata_response, cluster_authorized_operations, I32, .since = 8,
          .removed_in = 11, .default_value = NO_OPERATIONS),
    FIELD(metadata_response, error_code, I16, .since = 13),
};
static const struct schema response =
    SCHEMA(metadata_response, "MetadataResponse", response_fields);

const struct api kp__api_metadata = {
    .key = API_METADATA,
    .name = "METADATA",
    .min_version = 0,
    .max_version = 13,
    .flexible_since = 9,
    .request = &request,
    .response = &response,
};
