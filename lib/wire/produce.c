/* SPDX-License-Identifier: BSD-2-Clause */
/* produce.c - Produce, versions 3 to 13.  Constant tables.
 *
 * 3: the first to carry batches v2.  13: topics by id.  Kafka:
 * ProduceRequest.json, ProduceResponse.json; KIP-467 (8), KIP-951 (10). */
#include "lib/wire/api.h"

static const struct field request_partition_fields[] = {
    FIELD(produce_request_partition, index, I32, .since = 0),
    FIELD(produce_request_partition, records, RECORDS, NULLABLE(0)),
};
static const struct schema request_partition = SCHEMA(
    produce_request_partition, "partition_data", request_partition_fields);

static const struct field request_topic_fields[] = {
    FIELD(produce_request_topic, name, STRING, .removed_in = 13),
    FIELD(produce_request_topic, topic_id, UUID, .since = 13),
    FIELD_AS(produce_request_topic, partitions, "partition_data", ARRAY,
             OF(request_partition)),
};
static const struct schema request_topic =
    SCHEMA(produce_request_topic, "topic_data", request_topic_fields);

static const struct field request_fields[] = {
    FIELD(produce_request, transactional_id, STRING, NULLABLE(3),
          .default_null = true),
    FIELD(produce_request, acks, I16, .since = 0),
    FIELD(produce_request, timeout_ms, I32, .since = 0),
    FIELD_AS(produce_request, topics, "topic_data", ARRAY, OF(request_topic)),
};
static const struct schema request =
    SCHEMA(produce_request, "ProduceRequest", request_fields);

static const struct field record_error_fields[] = {
    FIELD(produce_record_error, batch_index, I32, .since = 8),
    FIELD_AS(produce_record_error, message, "batch_index_error_message", STRING,
             .since = 8, NULLABLE(8), .default_null = true),
};
static const struct schema record_error =
    SCHEMA(produce_record_error, "record_errors", record_error_fields);

static const struct field current_leader_fields[] = {
    FIELD(leader_id_and_epoch, leader_id, I32, .since = 10,
          .default_value = -1),
    FIELD(leader_id_and_epoch, leader_epoch, I32, .since = 10,
          .default_value = -1),
};
static const struct schema current_leader =
    SCHEMA(leader_id_and_epoch, "current_leader", current_leader_fields);

static const struct field response_partition_fields[] = {
    FIELD(produce_response_partition, index, I32, .since = 0),
    FIELD(produce_response_partition, error_code, I16, .since = 0),
    FIELD(produce_response_partition, base_offset, I64, .since = 0),
    FIELD(produce_response_partition, log_append_time_ms, I64, .since = 2,
          .default_value = -1),
    FIELD(produce_response_partition, log_start_offset, I64, .since = 5,
          .default_value = -1),
    FIELD(produce_response_partition, record_errors, ARRAY, .since = 8,
          OF(record_error)),
    FIELD(produce_response_partition, error_message, STRING, .since = 8,
          NULLABLE(8), .default_null = true),
    FIELD(produce_response_partition, current_leader, STRUCT, .since = 10,
          TAG(0), .schema = &current_leader),
};
static const struct schema response_partition =
    SCHEMA(produce_response_partition, "partition_responses",
           response_partition_fields);

static const struct field response_topic_fields[] = {
    FIELD(produce_response_topic, name, STRING, .removed_in = 13),
    FIELD(produce_response_topic, topic_id, UUID, .since = 13),
    FIELD_AS(produce_response_topic, partitions, "partition_responses", ARRAY,
             OF(response_partition)),
};
static const struct schema response_topic =
    SCHEMA(produce_response_topic, "responses", response_topic_fields);

static const struct field node_endpoint_fields[] = {
    FIELD(node_endpoint, node_id, I32, .since = 10),
    FIELD(node_endpoint, host, STRING, .since = 10),
    FIELD(node_endpoint, port, I32, .since = 10),
    FIELD(node_endpoint, rack, STRING, .since = 10, NULLABLE(10),
          .default_null = true),
};
static const struct schema node_endpoint =
    SCHEMA(node_endpoint, "node_endpoints", node_endpoint_fields);

static const struct field response_fields[] = {
    FIELD_AS(produce_response, topics, "responses", ARRAY, OF(response_topic)),
    FIELD(produce_response, throttle_time_ms, I32, .since = 1),
    FIELD(produce_response, node_endpoints, ARRAY, .since = 10, TAG(0),
          OF(node_endpoint)),
};
static const struct schema response =
    SCHEMA(produce_response, "ProduceResponse", response_fields);

const struct api kp__api_produce = {
    .key = API_PRODUCE,
    .name = "PRODUCE",
    .min_version = 3,
    .max_version = 13,
    .flexible_since = 9,
    .request = &request,
    .response = &response,
};
