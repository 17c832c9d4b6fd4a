/* SPDX-License-Identifier: BSD-2-Clause */
/* record_batch.c - the header of a batch v2, and walking the records of a body.
 * Pure; any thread. */
#include "lib/wire/record_batch.h"

#include "lib/base/check.h"
#include "lib/base/crc32c.h"

#define BASE_OFFSET_AND_LENGTH_SIZE 12 /* batch_length counts from here */

static uint8_t *put(uint8_t *out, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
    return out + n;
}

/* From the attributes on: what the crc covers. */
static void put_covered(uint8_t *out, const struct record_batch_header *h)
{
    out = put(out, (uint64_t)h->attributes, 2);
    out = put(out, (uint64_t)h->last_offset_delta, 4);
    out = put(out, (uint64_t)h->base_timestamp_ms, 8);
    out = put(out, (uint64_t)h->max_timestamp_ms, 8);
    out = put(out, (uint64_t)h->producer_id, 8);
    out = put(out, (uint64_t)h->producer_epoch, 2);
    out = put(out, (uint64_t)h->base_sequence, 4);
    put(out, (uint64_t)h->record_count, 4);
}

void kp__record_batch_encode(uint8_t out[RECORD_BATCH_HEADER_SIZE],
                             const struct record_batch_header *h,
                             size_t body_size, uint32_t body_crc)
{
    uint8_t *covered = out + RECORD_BATCH_CRC_FROM;
    size_t length =
        RECORD_BATCH_HEADER_SIZE - BASE_OFFSET_AND_LENGTH_SIZE + body_size;
    uint32_t crc;

    KP_CHECK(body_size <= INT32_MAX - RECORD_BATCH_HEADER_SIZE);
    put_covered(covered, h);
    crc = kp__crc32c(0, covered,
                     RECORD_BATCH_HEADER_SIZE - RECORD_BATCH_CRC_FROM);
    crc = kp__crc32c_combine(crc, body_crc, body_size);
    out = put(out, (uint64_t)h->base_offset, 8);
    out = put(out, length, 4);
    out = put(out, (uint64_t)h->partition_leader_epoch, 4);
    out = put(out, (uint64_t)h->magic, 1);
    put(out, crc, 4);
}

bool kp__record_batch_decode(struct reader *r, struct record_batch_header *h)
{
    struct record_batch_header d;

    d.base_offset = kp__read_i64(r);
    d.batch_length = kp__read_i32(r);
    if (d.batch_length <
            RECORD_BATCH_HEADER_SIZE - BASE_OFFSET_AND_LENGTH_SIZE ||
        (size_t)d.batch_length > kp__reader_left(r))
        kp__reader_fail(r, "batch length");
    d.partition_leader_epoch = kp__read_i32(r);
    d.magic = kp__read_i8(r);
    d.crc = (uint32_t)kp__read_i32(r);
    d.attributes = kp__read_i16(r);
    d.last_offset_delta = kp__read_i32(r);
    d.base_timestamp_ms = kp__read_i64(r);
    d.max_timestamp_ms = kp__read_i64(r);
    d.producer_id = kp__read_i64(r);
    d.producer_epoch = kp__read_i16(r);
    d.base_sequence = kp__read_i32(r);
    d.record_count = kp__read_i32(r);
    if (r->failed)
        return false;
    *h = d;
    return true;
}

/* A length, -1 for null, and so many bytes. */
static const uint8_t *read_sized(struct reader *r, size_t *size)
{
    int32_t n = kp__read_varint(r);

    *size = 0;
    if (n == -1 || r->failed)
        return NULL;
    if (n < 0) {
        kp__reader_fail(r, "negative length");
        return NULL;
    }
    *size = (size_t)n;
    return kp__read_bytes(r, (size_t)n);
}

/* The header section, whose items must fill what is left of the record.  Each
 * takes at least two bytes, so a false count ends with the bytes. */
static void read_headers(struct reader *r, struct record_view *v)
{
    struct reader walk;
    size_t size;

    v->header_count = kp__read_varint(r);
    if (v->header_count < 0 || r->failed) {
        kp__reader_fail(r, "header count");
        return;
    }
    v->headers = r->at;
    v->headers_size = kp__reader_left(r);
    walk = *r;
    for (int32_t i = 0; i < v->header_count && !walk.failed; i++) {
        if (read_sized(&walk, &size) == NULL)
            kp__reader_fail(&walk, "header without a key");
        read_sized(&walk, &size);
    }
    if (walk.failed || kp__reader_left(&walk) != 0)
        kp__reader_fail(r, "headers do not fit the record");
}

static void read_body(struct reader *r, struct record_view *v)
{
    kp__read_i8(r); /* attributes */
    v->timestamp_delta_ms = kp__read_varlong(r);
    v->offset_delta = kp__read_varint(r);
    v->key = read_sized(r, &v->key_size);
    v->value = read_sized(r, &v->value_size);
    read_headers(r, v);
}

bool kp__record_next(struct reader *r, struct record_view *out)
{
    struct record_view v = {.bytes = r->at};
    struct reader body;
    const uint8_t *at;
    int32_t size;

    if (r->failed || kp__reader_left(r) == 0)
        return false;
    size = kp__read_varint(r);
    if (size < 0)
        kp__reader_fail(r, "negative record length");
    at = kp__read_bytes(r, size < 0 ? 0 : (size_t)size);
    if (at == NULL)
        return false;
    kp__reader_init(&body, at, (size_t)size);
    read_body(&body, &v);
    if (body.failed) {
        kp__reader_fail(r, body.what);
        return false;
    }
    v.size = (size_t)(r->at - v.bytes);
    *out = v;
    return true;
}
