/* SPDX-License-Identifier: BSD-2-Clause */
/* Record batches of Kafka's own classes: uncompressed ones we encode to the
 * same bytes, compressed ones we read back to the same records; sizes and the
 * upper bound agree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/codec/codec.h"
#include "lib/wire/record.h"
#include "lib/wire/record_batch.h"
#include "test/support/golden.h"
#include "test/support/golden_record.h"
#include "test/support/main.h"

#define BATCHES (12 + 5 * 4) /* uncompressed, and four with each codec */
#define BODY_MAX (16 * 1024 * 1024)

static struct golden_file file;

static const struct golden_case *batch(int i)
{
    return &file.cases[i];
}

static const char *codec_of(const struct golden_case *c)
{
    return strrchr(c->title, ' ') + 1;
}

/* A "= name" value of this case, against ours. */
#define CHECK_FIELD(c, h, name) \
    ck_assert_int_eq((long long)(h)->name, golden_number(c, "= " #name))

static void check_header(const struct golden_case *c,
                         const struct record_batch_header *h)
{
    CHECK_FIELD(c, h, base_offset);
    CHECK_FIELD(c, h, batch_length);
    CHECK_FIELD(c, h, partition_leader_epoch);
    CHECK_FIELD(c, h, magic);
    CHECK_FIELD(c, h, crc);
    CHECK_FIELD(c, h, attributes);
    CHECK_FIELD(c, h, last_offset_delta);
    CHECK_FIELD(c, h, base_timestamp_ms);
    CHECK_FIELD(c, h, max_timestamp_ms);
    CHECK_FIELD(c, h, producer_id);
    CHECK_FIELD(c, h, producer_epoch);
    CHECK_FIELD(c, h, base_sequence);
    CHECK_FIELD(c, h, record_count);
}

static uint8_t *bytes_of(const struct golden_case *c, size_t *size)
{
    uint8_t *bytes = golden_bytes(golden_get(c, "bytes"), size);

    ck_assert_uint_gt(*size, RECORD_BATCH_HEADER_SIZE);
    return bytes;
}

START_TEST(there_are_all_batches)
{
    ck_assert_uint_eq(file.count, BATCHES);
}
END_TEST

START_TEST(headers_are_read)
{
    struct record_batch_header h;
    struct reader r;
    size_t size;
    uint8_t *bytes = bytes_of(batch(_i), &size);

    kp__reader_init(&r, bytes, size);
    ck_assert(kp__record_batch_decode(&r, &h));
    check_header(batch(_i), &h);
    ck_assert_uint_eq(kp__reader_left(&r), size - RECORD_BATCH_HEADER_SIZE);
    ck_assert_uint_eq(h.crc, kp__crc32c(0, bytes + RECORD_BATCH_CRC_FROM,
                                        size - RECORD_BATCH_CRC_FROM));
    free(bytes);
}
END_TEST

START_TEST(headers_are_written_with_a_combined_crc)
{
    uint8_t out[RECORD_BATCH_HEADER_SIZE];
    struct record_batch_header h;
    struct reader r;
    size_t size, body;
    uint8_t *bytes = bytes_of(batch(_i), &size);

    kp__reader_init(&r, bytes, size);
    ck_assert(kp__record_batch_decode(&r, &h));
    h.crc = 0;
    h.batch_length = 0; /* neither is taken from what we are given */
    body = size - RECORD_BATCH_HEADER_SIZE;
    kp__record_batch_encode(out, &h, body,
                            kp__crc32c(0, bytes + sizeof out, body));
    ck_assert_mem_eq(out, bytes, sizeof out);
    free(bytes);
}
END_TEST

/* -- records -- */

static void check_record(const struct golden_record *g, uint8_t **at)
{
    size_t body = kp__record_body_size(&g->record, g->timestamp_delta_ms,
                                       g->offset_delta);
    size_t size =
        kp__record_size(&g->record, g->timestamp_delta_ms, g->offset_delta);
    uint8_t *end;

    ck_assert_uint_eq(size, g->size);
    ck_assert_uint_eq(kp__record_upper_bound(&g->record), g->upper_bound);
    end = kp__record_encode(*at, &g->record, body, g->timestamp_delta_ms,
                            g->offset_delta);
    ck_assert_uint_eq((size_t)(end - *at), size);
    *at = end;
}

/* The records of a case, encoded by us; freed by the caller. */
static uint8_t *encode_all(const struct golden_case *c, size_t *size)
{
    struct golden_record g;
    size_t capacity = 0;
    uint8_t *out, *at;

    for (size_t i = 0; golden_record_open(&g, c, i); i++) {
        capacity += g.size;
        golden_record_close(&g);
    }
    out = at = malloc(capacity);
    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; golden_record_open(&g, c, i); i++) {
        check_record(&g, &at);
        golden_record_close(&g);
    }
    *size = (size_t)(at - out);
    ck_assert_uint_eq(*size, capacity);
    return out;
}

START_TEST(records_are_encoded_as_kafka_does)
{
    size_t size, want;
    uint8_t *bytes = bytes_of(batch(_i), &want);
    uint8_t *body = encode_all(batch(_i), &size);

    if (strcmp(codec_of(batch(_i)), "none") == 0) {
        ck_assert_uint_eq(size, want - RECORD_BATCH_HEADER_SIZE);
        ck_assert_mem_eq(body, bytes + RECORD_BATCH_HEADER_SIZE, size);
    }
    free(body);
    free(bytes);
}
END_TEST

static void check_bytes(const uint8_t *got, size_t size, kp_bytes want)
{
    ck_assert((got == NULL) == (want.data == NULL));
    ck_assert_uint_eq(size, want.size);
    if (size != 0)
        ck_assert_mem_eq(got, want.data, size);
}

static void check_headers(const struct record_view *v, const kp_record *want)
{
    struct reader r;

    ck_assert_uint_eq((size_t)v->header_count, want->header_count);
    kp__reader_init(&r, v->headers, v->headers_size);
    for (size_t i = 0; i < want->header_count; i++) {
        for (int part = 0; part < 2; part++) {
            kp_bytes b =
                part == 0 ? want->headers[i].key : want->headers[i].value;
            int32_t n = kp__read_varint(&r);
            ck_assert_int_eq(n, b.data == NULL ? -1 : (int32_t)b.size);
            check_bytes(n < 0 ? NULL : kp__read_bytes(&r, (size_t)n),
                        n < 0 ? 0 : (size_t)n, b);
        }
    }
    ck_assert(!r.failed);
    ck_assert_uint_eq(kp__reader_left(&r), 0);
}

static void check_view(const struct record_view *v,
                       const struct golden_record *g)
{
    ck_assert_int_eq(v->timestamp_delta_ms, g->timestamp_delta_ms);
    ck_assert_int_eq(v->offset_delta, g->offset_delta);
    ck_assert_uint_eq(v->size, g->size);
    check_bytes(v->key, v->key_size, g->record.key);
    check_bytes(v->value, v->value_size, g->record.value);
    check_headers(v, &g->record);
}

static void check_walk(const struct golden_case *c, const uint8_t *body,
                       size_t size)
{
    struct golden_record g;
    struct record_view v;
    struct reader r;
    size_t i;

    kp__reader_init(&r, body, size);
    for (i = 0; golden_record_open(&g, c, i); i++) {
        ck_assert(kp__record_next(&r, &v));
        check_view(&v, &g);
        golden_record_close(&g);
    }
    ck_assert_int_eq((long long)i, golden_number(c, "= record_count"));
    ck_assert(!kp__record_next(&r, &v));
    ck_assert(!r.failed);
}

/* NULL: none, or not in this build. */
static const struct codec *codec_named(const char *name)
{
    for (int id = CODEC_GZIP; id <= CODEC_ZSTD; id++) {
        const struct codec *codec = kp__codec((enum codec_id)id);

        if (codec != NULL && strcmp(codec->name, name) == 0)
            return codec;
    }
    return NULL;
}

START_TEST(records_are_read_with_their_codec)
{
    const struct golden_case *c = batch(_i);
    size_t size;
    uint8_t *bytes = bytes_of(c, &size);
    const uint8_t *body = bytes + RECORD_BATCH_HEADER_SIZE;
    const struct codec *codec = codec_named(codec_of(c));
    struct buf raw;

    kp__buf_init(&raw);
    size -= RECORD_BATCH_HEADER_SIZE;
    if (strcmp(codec_of(c), "none") == 0) {
        check_walk(c, body, size);
    } else if (codec != NULL) { /* else not in this build */
        ck_assert_int_eq((long long)codec->id,
                         golden_number(c, "= attributes") & 7);
        ck_assert(codec->decompress(body, size, BODY_MAX, &raw));
        check_walk(c, raw.data, raw.size);
    }
    kp__buf_fini(&raw);
    free(bytes);
}
END_TEST

static Suite *golden_batch_suite(void)
{
    Suite *s = suite_create("golden batches");
    TCase *t = tcase_create("golden batches");

    golden_open(&file, "batches.txt");
    tcase_add_test(t, there_are_all_batches);
    tcase_add_loop_test(t, headers_are_read, 0, BATCHES);
    tcase_add_loop_test(t, headers_are_written_with_a_combined_crc, 0, BATCHES);
    tcase_add_loop_test(t, records_are_encoded_as_kafka_does, 0, BATCHES);
    tcase_add_loop_test(t, records_are_read_with_their_codec, 0, BATCHES);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(golden_batch_suite)
