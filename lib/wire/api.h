/* SPDX-License-Identifier: BSD-2-Clause */
/* api.h - the Kafka APIs we speak: keys, versions, headers.
 * Follows kafka clients' ApiKeys and the message JSONs of 4.4.0. */
#ifndef KP_WIRE_API_H
#define KP_WIRE_API_H

#include "lib/wire/schema.h"

enum api_key {
    API_PRODUCE = 0,
    API_METADATA = 3,
    API_API_VERSIONS = 18,
    API_INIT_PRODUCER_ID = 22
};

struct api {
    int16_t key;
    const char *name;                 /* "PRODUCE" */
    int16_t min_version, max_version; /* that we speak */
    int16_t flexible_since;
    const struct schema *request, *response;
};

/* NULL: not one of ours. */
const struct api *kp__api(int16_t key);
extern const struct api *const kp__apis[];
extern const size_t kp__api_count;
/* Each in its own file, beside its tables. */
extern const struct api kp__api_produce, kp__api_metadata, kp__api_api_versions,
    kp__api_init_producer_id;

static inline bool kp__api_flexible(const struct api *a, int16_t version)
{
    return version >= a->flexible_since;
}

struct request_header {
    int16_t api_key, version;
    int32_t correlation_id;
    struct text client_id;
};
/* Header v1 or v2 as the API's version asks. */
void kp__request_header_encode(struct writer *w,
                               const struct request_header *h);
bool kp__request_header_decode(struct reader *r, struct request_header *h);
/* Header v0 or v1; always v0 for ApiVersions. */
void kp__response_header_encode(struct writer *w, int16_t api_key,
                                int16_t version, int32_t correlation_id);
bool kp__response_header_decode(struct reader *r, int16_t api_key,
                                int16_t version, int32_t *correlation_id);

/* -- Produce 3-13 -- */
struct produce_request_partition {
    int32_t index;
    struct blob records;
};
struct produce_request_topic {
    struct text name;     /* up to 12 */
    struct uuid topic_id; /* 13 on */
    struct array partitions;
};
struct produce_request {
    struct text transactional_id;
    int16_t acks;
    int32_t timeout_ms;
    struct array topics;
};
struct produce_record_error {
    int32_t batch_index;
    struct text message;
};
struct leader_id_and_epoch {
    int32_t leader_id, leader_epoch;
};
struct produce_response_partition {
    int32_t index;
    int16_t error_code;
    int64_t base_offset, log_append_time_ms, log_start_offset;
    struct array record_errors;
    struct text error_message;
    struct leader_id_and_epoch current_leader;
};
struct produce_response_topic {
    struct text name;
    struct uuid topic_id;
    struct array partitions;
};
struct node_endpoint {
    int32_t node_id;
    struct text host;
    int32_t port;
    struct text rack;
};
struct produce_response {
    struct array topics;
    int32_t throttle_time_ms;
    struct array node_endpoints;
};

/* -- Metadata 0-13 -- */
struct metadata_request_topic {
    struct uuid topic_id;
    struct text name;
};
struct metadata_request {
    struct array topics; /* null: all */
    bool allow_auto_topic_creation;
    bool include_cluster_authorized_operations;
    bool include_topic_authorized_operations;
};
struct metadata_broker {
    int32_t node_id;
    struct text host;
    int32_t port;
    struct text rack;
};
struct metadata_partition {
    int16_t error_code;
    int32_t partition_index, leader_id, leader_epoch;
    struct array replica_nodes, isr_nodes, offline_replicas; /* of int32_t */
};
struct metadata_topic {
    int16_t error_code;
    struct text name;
    struct uuid topic_id;
    bool is_internal;
    struct array partitions;
    int32_t topic_authorized_operations;
};
struct metadata_response {
    int32_t throttle_time_ms;
    struct array brokers;
    struct text cluster_id;
    int32_t controller_id;
    struct array topics;
    int32_t cluster_authorized_operations;
    int16_t error_code;
};

/* -- ApiVersions 0-5 -- */
struct api_versions_request {
    struct text client_software_name, client_software_version;
    struct text cluster_id; /* 5 on, KIP-1242 */
    int32_t node_id;
};
struct api_version {
    int16_t api_key, min_version, max_version;
};
struct supported_feature {
    struct text name;
    int16_t min_version, max_version;
};
struct finalized_feature {
    struct text name;
    int16_t max_version_level, min_version_level;
};
struct api_versions_response {
    int16_t error_code;
    struct array api_keys;
    int32_t throttle_time_ms;
    struct array supported_features;
    int64_t finalized_features_epoch;
    struct array finalized_features;
    bool zk_migration_ready;
};

/* -- InitProducerId 0-6 -- */
struct init_producer_id_request {
    struct text transactional_id;
    int32_t transaction_timeout_ms;
    int64_t producer_id;
    int16_t producer_epoch;
    bool enable_2pc, keep_prepared_txn;
};
struct init_producer_id_response {
    int32_t throttle_time_ms;
    int16_t error_code;
    int64_t producer_id;
    int16_t producer_epoch;
    int64_t ongoing_txn_producer_id;
    int16_t ongoing_txn_producer_epoch;
};

#endif
