/* SPDX-License-Identifier: BSD-2-Clause */
/* record_batch.h - the 61-byte header of a record batch v2.  Pure.
 * Kafka: DefaultRecordBatch. */
#ifndef KP_WIRE_RECORD_BATCH_H
#define KP_WIRE_RECORD_BATCH_H

#include "lib/wire/reader.h"

#define RECORD_BATCH_HEADER_SIZE 61
#define RECORD_BATCH_CRC_FROM 21 /* the crc covers from here to the end */

struct record_batch_header {
    int64_t base_offset;
    int32_t batch_length; /* of what follows this field */
    int32_t partition_leader_epoch;
    int8_t magic;
    uint32_t crc;
    int16_t attributes; /* codec in bits 0-2; 8: append time, 16: transaction,
                           32: control */
    int32_t last_offset_delta;
    int64_t base_timestamp_ms, max_timestamp_ms;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence, record_count;
};

/* Write the header, with batch_length from body_size and the crc combined from
 * the header's own bytes and body_crc: the body is not read. */
void kp__record_batch_encode(uint8_t out[RECORD_BATCH_HEADER_SIZE],
                             const struct record_batch_header *h,
                             size_t body_size, uint32_t body_crc);
/* False: fewer bytes than a header, or a length that does not fit what is left.
 * Does not check the crc. */
bool kp__record_batch_decode(struct reader *r, struct record_batch_header *h);

/* Walking a decoded (uncompressed) body: for splits, tests and the broker. */
struct record_view {
    int64_t timestamp_delta_ms;
    int32_t offset_delta;
    const uint8_t *key, *value; /* NULL: null */
    size_t key_size, value_size;
    const uint8_t *headers; /* the header section after its count */
    size_t headers_size;
    int32_t header_count;
    const uint8_t *bytes; /* the whole record, length varint included */
    size_t size;
};
/* False at the end or when the bytes are no record (r->failed). */
bool kp__record_next(struct reader *r, struct record_view *out);

#endif
