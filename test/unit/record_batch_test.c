/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of a batch and walking its records, against hostile bytes.
 * golden_batch_test.c has Kafka's own. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/wire/record.h"
#include "lib/wire/record_batch.h"
#include "test/support/main.h"

static const struct record_batch_header some = {
    .base_offset = 0x0102030405060708,
    .partition_leader_epoch = -1,
    .magic = 2,
    .attributes = 0x0014,
    .last_offset_delta = 9,
    .base_timestamp_ms = 1700000000000,
    .max_timestamp_ms = 1700000000999,
    .producer_id = 4711,
    .producer_epoch = 3,
    .base_sequence = INT32_MAX,
    .record_count = 10,
};
static const uint8_t body[] = "not records, but a body";

static uint8_t batch[RECORD_BATCH_HEADER_SIZE + sizeof body];
static struct reader r;

static void make(void)
{
    kp__record_batch_encode(batch, &some, sizeof body,
                            kp__crc32c(0, body, sizeof body));
    memcpy(batch + RECORD_BATCH_HEADER_SIZE, body, sizeof body);
}

START_TEST(a_header_is_read_as_written)
{
    struct record_batch_header h;

    make();
    kp__reader_init(&r, batch, sizeof batch);
    ck_assert(kp__record_batch_decode(&r, &h));
    ck_assert_int_eq(h.base_offset, some.base_offset);
    ck_assert_int_eq(h.batch_length, (int32_t)sizeof batch - 12);
    ck_assert_int_eq(h.partition_leader_epoch, -1);
    ck_assert_int_eq(h.magic, 2);
    ck_assert_int_eq(h.attributes, some.attributes);
    ck_assert_int_eq(h.last_offset_delta, 9);
    ck_assert_int_eq(h.base_timestamp_ms, some.base_timestamp_ms);
    ck_assert_int_eq(h.max_timestamp_ms, some.max_timestamp_ms);
    ck_assert_int_eq(h.producer_id, 4711);
    ck_assert_int_eq(h.producer_epoch, 3);
    ck_assert_int_eq(h.base_sequence, INT32_MAX);
    ck_assert_int_eq(h.record_count, 10);
    ck_assert_uint_eq(h.crc, kp__crc32c(0, batch + 21, sizeof batch - 21));
    ck_assert_uint_eq(kp__reader_left(&r), sizeof body);
}
END_TEST

START_TEST(a_new_identity_needs_no_look_at_the_body)
{
    struct record_batch_header h = some;
    uint32_t crc = kp__crc32c(0, body, sizeof body);

    make();
    h.producer_epoch = 4;
    h.base_sequence = 0;
    kp__record_batch_encode(batch, &h, sizeof body, crc);
    crc = kp__crc32c(0, batch + 21, sizeof batch - 21);
    kp__reader_init(&r, batch + 17, 4);
    ck_assert_uint_eq(crc, (uint32_t)kp__read_i32(&r));
}
END_TEST

START_TEST(an_empty_body_has_the_headers_crc)
{
    uint8_t out[RECORD_BATCH_HEADER_SIZE];
    struct record_batch_header h;

    kp__record_batch_encode(out, &some, 0, 0);
    kp__reader_init(&r, out, sizeof out);
    ck_assert(kp__record_batch_decode(&r, &h));
    ck_assert_int_eq(h.batch_length, 49);
    ck_assert_uint_eq(h.crc, kp__crc32c(0, out + 21, sizeof out - 21));
}
END_TEST

static bool decode_prefix(size_t size)
{
    struct record_batch_header h = {.record_count = 77};
    uint8_t *copy = malloc(size + (size == 0));
    bool ok;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, batch, size);
    kp__reader_init(&r, copy, size);
    ok = kp__record_batch_decode(&r, &h);
    ck_assert(ok || (r.failed && h.record_count == 77));
    free(copy);
    return ok;
}

START_TEST(a_batch_cut_short_is_refused)
{
    make();
    for (size_t size = 0; size < sizeof batch; size++)
        ck_assert(!decode_prefix(size));
    ck_assert(decode_prefix(sizeof batch));
}
END_TEST

START_TEST(lengths_that_cannot_be_are_refused)
{
    static const uint8_t lengths[][4] = {
        {0, 0, 0, 0},    {0, 0, 0, 48},     {0xff, 0xff, 0xff, 0xff},
        {0x80, 0, 0, 0}, {0, 0, 0, 73 + 1}, {0x7f, 0xff, 0xff, 0xff}};

    ck_assert_uint_eq(sizeof batch - 12, 73);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        make();
        memcpy(batch + 8, lengths[i], 4);
        ck_assert_msg(!decode_prefix(sizeof batch), "length %zu", i);
    }
    make();
    batch[11] = 49; /* more bytes may follow: another batch */
    ck_assert(decode_prefix(sizeof batch));
}
END_TEST

/* -- walking records -- */

static struct record_view v;

#define WALK(...) \
    do { \
        static const uint8_t bytes_[] = {__VA_ARGS__}; \
        uint8_t *copy_ = malloc(sizeof bytes_); \
        ck_assert_ptr_nonnull(copy_); \
        memcpy(copy_, bytes_, sizeof bytes_); \
        kp__reader_init(&r, copy_, sizeof bytes_); \
        while (kp__record_next(&r, &v)) \
            count++; \
        free(copy_); \
    } while (0)

#define REFUSED(reason, ...) \
    do { \
        size_t count = 0; \
        WALK(__VA_ARGS__); \
        ck_assert_uint_eq(count, 0); \
        ck_assert(r.failed); \
        ck_assert_str_eq(r.what, (reason)); \
    } while (0)

START_TEST(records_are_walked_one_by_one)
{
    size_t count = 0;

    WALK(12, 0, 0, 0, 1, 1, 0, 16, 0, 1, 2, 2, 'k', 2, 'v', 0);
    ck_assert_uint_eq(count, 2);
    ck_assert(!r.failed);
    ck_assert_int_eq(v.timestamp_delta_ms, -1);
    ck_assert_int_eq(v.offset_delta, 1);
    ck_assert_uint_eq(v.key_size, 1);
    ck_assert_uint_eq(v.value_size, 1);
    ck_assert_uint_eq(v.size, 9);
    ck_assert_int_eq(v.header_count, 0);
}
END_TEST

START_TEST(no_bytes_are_no_records)
{
    kp__reader_init(&r, body, 0);
    ck_assert(!kp__record_next(&r, &v));
    ck_assert(!r.failed);
}
END_TEST

START_TEST(record_lengths_that_lie_are_refused)
{
    REFUSED("negative record length", 1, 0, 0, 0, 1, 1, 0);
    REFUSED("cut short", 14, 0, 0, 0, 1, 1, 0);
    REFUSED("cut short", 0);
    REFUSED("cut short", 10, 0, 0, 0, 1, 1);
    REFUSED("headers do not fit the record", 14, 0, 0, 0, 1, 1, 0, 0);
    REFUSED("varint too long", 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f);
    REFUSED("cut short", 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 1, 1, 0);
}
END_TEST

START_TEST(key_and_value_lengths_that_lie_are_refused)
{
    REFUSED("negative length", 12, 0, 0, 0, 3, 1, 0);
    REFUSED("negative length", 12, 0, 0, 0, 1, 3, 0);
    REFUSED("cut short", 12, 0, 0, 0, 20, 1, 0);
    REFUSED("cut short", 12, 0, 0, 0, 1, 4, 0);
    REFUSED("negative length", 20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0);
}
END_TEST

START_TEST(headers_that_lie_are_refused)
{
    REFUSED("header count", 12, 0, 0, 0, 1, 1, 1);
    REFUSED("headers do not fit the record", 12, 0, 0, 0, 1, 1, 2);
    REFUSED("headers do not fit the record", 20, 0, 0, 0, 1, 1, 0xfe, 0xff,
            0xff, 0xff, 0x0f);
    REFUSED("headers do not fit the record", 16, 0, 0, 0, 1, 1, 2, 1, 1);
    REFUSED("headers do not fit the record", 18, 0, 0, 0, 1, 1, 2, 2, 'k', 4);
    REFUSED("headers do not fit the record", 18, 0, 0, 0, 1, 1, 2, 0, 0, 0);
}
END_TEST

/* Three records with headers, damaged and cut in every place. */
static size_t make_records(uint8_t *out)
{
    kp_header h[] = {{kp_str("a"), kp_str("1")}, {kp_str("b"), {NULL, 0}}};
    kp_record rec = {.key = kp_str("key"),
                     .value = kp_str("value"),
                     .headers = h,
                     .header_count = 2};
    uint8_t *at = out;

    for (int32_t i = 0; i < 3; i++)
        at =
            kp__record_encode(at, &rec, kp__record_body_size(&rec, i, i), i, i);
    return (size_t)(at - out);
}

static size_t walk_copy(const uint8_t *bytes, size_t size, bool *failed)
{
    uint8_t *copy = malloc(size + (size == 0));
    size_t count = 0, walked = 0;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    kp__reader_init(&r, copy, size);
    while (kp__record_next(&r, &v)) {
        ck_assert(v.bytes == copy + walked);
        walked += v.size;
        count++;
    }
    ck_assert_uint_le(walked, size);
    *failed = r.failed;
    free(copy);
    return count;
}

START_TEST(records_cut_short_fail_after_the_last_whole_one)
{
    uint8_t bytes[256];
    size_t size = make_records(bytes);
    bool failed;

    for (size_t n = 0; n <= size; n++) {
        size_t count = walk_copy(bytes, n, &failed);
        ck_assert_uint_eq(count, n / (size / 3));
        ck_assert(failed == (n % (size / 3) != 0));
    }
}
END_TEST

START_TEST(damaged_records_do_no_harm)
{
    uint8_t bytes[256];
    size_t size = make_records(bytes);
    bool failed;

    for (size_t at = 0; at < size; at++)
        for (int with = 0; with < 256; with++) {
            uint8_t was = bytes[at];
            bytes[at] = (uint8_t)with;
            ck_assert_uint_le(walk_copy(bytes, size, &failed), size);
            bytes[at] = was;
        }
}
END_TEST

static Suite *record_batch_suite(void)
{
    Suite *s = suite_create("record batch");
    TCase *t = tcase_create("record batch");

    tcase_add_test(t, a_header_is_read_as_written);
    tcase_add_test(t, a_new_identity_needs_no_look_at_the_body);
    tcase_add_test(t, an_empty_body_has_the_headers_crc);
    tcase_add_test(t, a_batch_cut_short_is_refused);
    tcase_add_test(t, lengths_that_cannot_be_are_refused);
    tcase_add_test(t, records_are_walked_one_by_one);
    tcase_add_test(t, no_bytes_are_no_records);
    tcase_add_test(t, record_lengths_that_lie_are_refused);
    tcase_add_test(t, key_and_value_lengths_that_lie_are_refused);
    tcase_add_test(t, headers_that_lie_are_refused);
    tcase_add_test(t, records_cut_short_fail_after_the_last_whole_one);
    tcase_add_test(t, damaged_records_do_no_harm);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(record_batch_suite)
