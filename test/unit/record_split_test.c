/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the records of a batch are cut, and the second half's offset deltas from
 * 0.  split_batches_test.c has whole batches that brokers refuse. */
#include <string.h>

#include "lib/wire/record.h"
#include "lib/wire/record_batch.h"
#include "lib/wire/record_split.h"
#include "test/support/main.h"

static uint8_t raw[1 << 16];
static size_t raw_size;

/* A record of so many bytes of value, as the batch's number `index`. */
static void add(size_t value_size, int64_t timestamp_delta_ms, int32_t index)
{
    static uint8_t value[20000];
    kp_header header = {kp_str("h"), kp_str("w")};
    kp_record r = {
        .key = kp_str("k"),
        .value = {value, value_size},
        .headers = &header,
        .header_count = index % 2 == 0 ? 0 : 1,
    };
    size_t body = kp__record_body_size(&r, timestamp_delta_ms, index);

    memset(value, index, value_size);
    raw_size = (size_t)(kp__record_encode(raw + raw_size, &r, body,
                                          timestamp_delta_ms, index) -
                        raw);
}

static void check_cut(uint32_t want_records, size_t want_bytes)
{
    uint32_t records = 0;
    size_t bytes = 0;

    ck_assert(kp__records_cut(raw, raw_size, &records, &bytes));
    ck_assert_uint_eq(records, want_records);
    ck_assert_uint_eq(bytes, want_bytes);
}

START_TEST(one_record_is_not_cut)
{
    uint32_t records = 7;
    size_t bytes = 8;

    raw_size = 0;
    add(100, 0, 0);
    ck_assert(!kp__records_cut(raw, raw_size, &records, &bytes));
    ck_assert_uint_eq(records, 7);
    ck_assert_uint_eq(bytes, 8);
}
END_TEST

START_TEST(equal_records_are_halved)
{
    size_t half = 0;

    raw_size = 0;
    for (int32_t i = 0; i < 10; i++) {
        half = i == 5 ? raw_size : half;
        add((size_t)(i % 2 == 0 ? 104 : 100), 0, i); /* headers have 4 bytes */
    }
    check_cut(5, half);
}
END_TEST

START_TEST(a_large_first_record_goes_alone)
{
    size_t first;

    raw_size = 0;
    add(5000, 0, 0);
    first = raw_size;
    add(10, 0, 1);
    add(10, 0, 2);
    check_cut(1, first);
}
END_TEST

START_TEST(a_large_last_record_stays_alone)
{
    size_t last;

    raw_size = 0;
    add(10, 0, 0);
    add(10, 0, 1);
    last = raw_size;
    add(5000, 0, 2);
    check_cut(2, last);
}
END_TEST

/* From number 8190 on deltas take three bytes: renumbered ones take one. */
START_TEST(renumbered_records_are_the_same_but_for_their_delta)
{
    static const size_t sizes[] = {0, 1, 57, 58, 59, 8170, 20000};
    size_t largest_want = 0;
    uint32_t largest = 0;
    struct record_view v;
    struct reader r;
    size_t size;

    raw_size = 0;
    for (int32_t i = 0; i < 7; i++)
        add(sizes[i], i * INT64_C(1000000), 8190 + i);
    size = kp__records_renumber(raw, raw_size, &largest);
    ck_assert_uint_lt(size, raw_size);
    kp__reader_init(&r, raw, size);
    for (int32_t i = 0; i < 7; i++) {
        ck_assert(kp__record_next(&r, &v));
        ck_assert_int_eq(v.offset_delta, i);
        ck_assert_int_eq(v.timestamp_delta_ms, i * INT64_C(1000000));
        ck_assert_uint_eq(v.key_size, 1);
        ck_assert_uint_eq(v.value_size, sizes[i]);
        for (size_t k = 0; k < v.value_size; k++)
            ck_assert_uint_eq(v.value[k], (uint8_t)(8190 + i));
        ck_assert_int_eq(v.header_count, i % 2);
        largest_want = v.size > largest_want ? v.size : largest_want;
    }
    ck_assert_uint_eq(kp__reader_left(&r), 0);
    ck_assert_uint_eq(largest, largest_want);
}
END_TEST

static Suite *record_split_suite(void)
{
    Suite *s = suite_create("record_split");
    TCase *t = tcase_create("record_split");

    tcase_add_test(t, one_record_is_not_cut);
    tcase_add_test(t, equal_records_are_halved);
    tcase_add_test(t, a_large_first_record_goes_alone);
    tcase_add_test(t, a_large_last_record_stays_alone);
    tcase_add_test(t, renumbered_records_are_the_same_but_for_their_delta);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(record_split_suite)
