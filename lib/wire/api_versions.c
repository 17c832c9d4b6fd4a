/* SPDX-License-Identifier: BSD-2-Clause */
/* api_versions.c - ApiVersions, versions 0 to 5.  Constant tables.
 *
 * Its response has header v0 in every version, since a broker that does not
 * know the asked version answers in version 0.  Kafka:
 * ApiVersionsRequest.json, ApiVersionsResponse.json; KIP-511, KIP-1242 (5). */
#include "lib/wire/api.h"

static const struct field request_fields[] = {
    FIELD(api_versions_request, client_software_name, STRING, .since = 3),
    FIELD(api_versions_request, client_software_version, STRING, .since = 3),
    FIELD(api_versions_request, cluster_id, STRING, .since = 5, NULLABLE(5),
          .default_null = true),
    FIELD(api_versions_request, node_id, I32, .since = 5, .default_value = -1),
};
static const struct schema request =
    SCHEMA(api_versions_request, "ApiVersionsRequest", request_fields);

static const struct field api_key_fields[] = {
    FIELD(api_version, api_key, I16, .since = 0),
    FIELD(api_version, min_version, I16, .since = 0),
    FIELD(api_version, max_version, I16, .since = 0),
};
static const struct schema api_key =
    SCHEMA(api_version, "api_keys", api_key_fields);

static const struct field supported_fields[] = {
    FIELD(supported_feature, name, STRING, .since = 3),
    FIELD(supported_feature, min_version, I16, .since = 3),
    FIELD(supported_feature, max_version, I16, .since = 3),
};
static const struct schema supported =
    SCHEMA(supported_feature, "supported_features", supported_fields);

static const struct field finalized_fields[] = {
    FIELD(finalized_feature, name, STRING, .since = 3),
    FIELD(finalized_feature, max_version_level, I16, .since = 3),
    FIELD(finalized_feature, min_version_level, I16, .since = 3),
};
static const struct schema finalized =
    SCHEMA(finalized_feature, "finalized_features", finalized_fields);

static const struct field response_fields[] = {
    FIELD(api_versions_response, error_code, I16, .since = 0),
    FIELD(api_versions_response, api_keys, ARRAY, OF(api_key)),
    FIELD(api_versions_response, throttle_time_ms, I32, .since = 1),
    FIELD(api_versions_response, supported_features, ARRAY, .since = 3, TAG(0),
          OF(supported)),
    FIELD(api_versions_response, finalized_features_epoch, I64, .since = 3,
          TAG(1), .default_value = -1),
    FIELD(api_versions_response, finalized_features, ARRAY, .since = 3, TAG(2),
          OF(finalized)),
    FIELD(api_versions_response, zk_migration_ready, BOOL, .since = 3, TAG(3)),
};
static const struct schema response =
    SCHEMA(api_versions_response, "ApiVersionsResponse", response_fields);

const struct api kp__api_api_versions = {
    .key = API_API_VERSIONS,
    .name = "API_VERSIONS",
    .min_version = 0,
    .max_version = 5,
    .flexible_since = 3,
    .request = &request,
    .response = &response,
};
