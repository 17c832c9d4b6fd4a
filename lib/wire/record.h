/* SPDX-License-Identifier: BSD-2-Clause */
/* record.h - one record of a batch v2: sizes and bytes.  Pure, inline: this is
 * the inner loop of a send.
 *
 * varint length, attributes, timestamp delta, offset delta, key, value,
 * headers.  Kafka: DefaultRecord.writeTo, sizeInBytes.
 *
 * Sizes are exact for records that kp__record_upper_bound accepts; hold a
 * record against that first. */
#ifndef KP_WIRE_RECORD_H
#define KP_WIRE_RECORD_H

#include <string.h>

#include "include/kp/kp.h"
#include "lib/wire/varint.h"

/* Kafka: DefaultRecord.MAX_RECORD_OVERHEAD; length and deltas at widest. */
#define RECORD_MAX_OVERHEAD 21

/* A length varint (-1 is null) and the bytes. */
static inline size_t kp__record_bytes_size(kp_bytes b)
{
    return b.data == NULL ? 1 : kp__varint_size((int32_t)b.size) + b.size;
}

static inline size_t kp__record_headers_size(const kp_record *r)
{
    size_t size = kp__varint_size((int32_t)r->header_count);

    for (size_t i = 0; i < r->header_count; i++)
        size += kp__record_bytes_size(r->headers[i].key) +
                kp__record_bytes_size(r->headers[i].value);
    return size;
}

/* Bytes of the record after its length varint. */
static inline size_t kp__record_body_size(const kp_record *r,
                                          int64_t timestamp_delta_ms,
                                          int32_t offset_delta)
{
    return 1 + kp__varlong_size(timestamp_delta_ms) +
           kp__varint_size(offset_delta) + kp__record_bytes_size(r->key) +
           kp__record_bytes_size(r->value) + kp__record_headers_size(r);
}

/* With the length varint. */
static inline size_t kp__record_size(const kp_record *r,
                                     int64_t timestamp_delta_ms,
                                     int32_t offset_delta)
{
    size_t body = kp__record_body_size(r, timestamp_delta_ms, offset_delta);

    return kp__varint_size((int32_t)body) + body;
}

/* Java's AbstractRecords.estimateSizeInBytesUpperBound for magic 2: 61 for the
 * batch header, 21 for the record's, key, value and headers with their lengths.
 * SIZE_MAX if that is more than an int32 can say.  This is what
 * max.request.size is held against. */
size_t kp__record_upper_bound(const kp_record *r);

static inline uint8_t *kp__record_bytes_put(uint8_t *out, kp_bytes b)
{
    if (b.data == NULL)
        return kp__varint_put(out, -1);
    out = kp__varint_put(out, (int32_t)b.size);
    memcpy(out, b.data, b.size);
    return out + b.size;
}

/* Write it; `body_size` from kp__record_body_size with the same deltas.
 * Returns the end. */
static inline uint8_t *kp__record_encode(uint8_t *out, const kp_record *r,
                                         size_t body_size,
                                         int64_t timestamp_delta_ms,
                                         int32_t offset_delta)
{
    out = kp__varint_put(out, (int32_t)body_size);
    *out++ = 0; /* attributes: none are defined */
    out = kp__varlong_put(out, timestamp_delta_ms);
    out = kp__varint_put(out, offset_delta);
    out = kp__record_bytes_put(out, r->key);
    out = kp__record_bytes_put(out, r->value);
    out = kp__varint_put(out, (int32_t)r->header_count);
    for (size_t i = 0; i < r->header_count; i++) {
        out = kp__record_bytes_put(out, r->headers[i].key);
        out = kp__record_bytes_put(out, r->headers[i].value);
    }
    return out;
}

#endif
