/* SPDX-License-Identifier: BSD-2-Clause */
/* init_producer_id.c - InitProducerId, versions 0 to 6.  Constant tables.
 *
 * 3: names the id and epoch to bump (KIP-360).  6: two-phase commit, KIP-939.
 * Kafka: InitProducerIdRequest.json, InitProducerIdResponse.json. */
#include "lib/wire/api.h"

static const struct field request_fields[] = {
    FIELD(init_producer_id_request, transactional_id, STRING, NULLABLE(0)),
    FIELD(init_producer_id_request, transaction_timeout_ms, I32, .since = 0),
    FIELD(init_producer_id_request, producer_id, I64, .since = 3,
          .default_value = -1),
    FIELD(init_producer_id_request, producer_epoch, I16, .since = 3,
          .default_value = -1),
    FIELD_AS(init_producer_id_request, enable_2pc, "enable2_pc", BOOL,
             .since = 6),
    FIELD(init_producer_id_request, keep_prepared_txn, BOOL, .since = 6),
};
static const struct schema request =
    SCHEMA(init_producer_id_request, "InitProducerIdRequest", request_fields);

static const struct field response_fields[] = {
    FIELD(init_producer_id_response, throttle_time_ms, I32, .since = 0),
    FIELD(init_producer_id_response, error_code, I16, .since = 0),
    FIELD(init_producer_id_response, producer_id, I64, .default_value = -1),
    FIELD(init_producer_id_response, producer_epoch, I16, .since = 0),
    FIELD(init_producer_id_response, ongoing_txn_producer_id, I64, .since = 6,
          .default_value = -1),
    FIELD(init_producer_id_response, ongoing_txn_producer_epoch, I16,
          .since = 6, .default_value = -1),
};
static const struct schema response = SCHEMA(
    init_producer_id_response, "InitProducerIdResponse", response_fields);

const struct api kp__api_init_producer_id = {
    .key = API_INIT_PRODUCER_ID,
    .name = "INIT_PRODUCER_ID",
    .min_version = 0,
    .max_version = 6,
    .flexible_since = 2,
    .request = &request,
    .response = &response,
};
