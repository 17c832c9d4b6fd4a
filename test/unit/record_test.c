/* SPDX-License-Identifier: BSD-2-Clause */
/* One record: bytes, sizes, and the bound that max.request.size is held
 * against.  golden_batch_test.c has Kafka's own. */
#include <string.h>

#include "lib/wire/record.h"
#include "test/support/main.h"

static void assert_encodes(const kp_record *r, int64_t timestamp_delta_ms,
                           int32_t offset_delta, const void *want, size_t n)
{
    uint8_t out[256];
    size_t body = kp__record_body_size(r, timestamp_delta_ms, offset_delta);
    uint8_t *end =
        kp__record_encode(out, r, body, timestamp_delta_ms, offset_delta);

    ck_assert_uint_eq((size_t)(end - out), n);
    ck_assert_mem_eq(out, want, n);
    ck_assert_uint_eq(kp__record_size(r, timestamp_delta_ms, offset_delta), n);
}

START_TEST(nulls_and_empties_differ)
{
    kp_record r = {0};

    assert_encodes(&r, 0, 0, "\14\0\0\0\1\1\0", 7);
    r.key = kp_str("");
    assert_encodes(&r, 0, 0, "\14\0\0\0\0\1\0", 7);
    r.value = kp_str("");
    assert_encodes(&r, 0, 0, "\14\0\0\0\0\0\0", 7);
}
END_TEST

START_TEST(deltas_are_zigzag)
{
    kp_record r = {.value = kp_str("v")};

    assert_encodes(&r, -1, 1, "\16\0\1\2\1\2v\0", 8);
    assert_encodes(&r, 64, 64, "\22\0\200\1\200\1\1\2v\0", 10);
    assert_encodes(&r, -64, 63, "\16\0\177\176\1\2v\0", 8);
}
END_TEST

START_TEST(headers_follow_in_order)
{
    kp_header h[] = {{kp_str("a"), kp_str("1")},
                     {kp_str("a"), {NULL, 0}},
                     {kp_str(""), kp_str("")}};
    kp_record r = {.headers = h, .header_count = 3};

    assert_encodes(&r, 0, 0,
                   "\36\0\0\0\1\1\6\2a\2"
                   "1\2a\1\0\0",
                   16);
}
END_TEST

START_TEST(the_bound_counts_all_overhead)
{
    kp_header h[] = {{kp_str("key"), kp_str("value")},
                     {kp_str("key"), {NULL, 0}}};
    kp_record r = {0};

    ck_assert_uint_eq(kp__record_upper_bound(&r), 61 + 21 + 1 + 1 + 1);
    r.value.data = h;
    r.value.size = 64; /* two bytes of length from here on */
    ck_assert_uint_eq(kp__record_upper_bound(&r), 61 + 21 + 1 + 66 + 1);
    r.headers = h;
    r.header_count = 2;
    ck_assert_uint_eq(kp__record_upper_bound(&r),
                      61 + 21 + 1 + 66 + 1 + (4 + 6) + (4 + 1));
}
END_TEST

START_TEST(the_bound_is_never_below_the_size)
{
    kp_record r = {0};
    size_t size = kp__record_size(&r, INT64_MIN, INT32_MAX);

    ck_assert_uint_ge(kp__record_upper_bound(&r) - 61, size);
    r.key.data = &r; /* only sizes are looked at */
    r.key.size = 100000000;
    size = kp__record_size(&r, INT64_MIN, INT32_MAX);
    ck_assert_uint_ge(kp__record_upper_bound(&r) - 61, size);
}
END_TEST

START_TEST(what_an_int32_cannot_count_is_over_every_limit)
{
    kp_header h[] = {{kp_str("k"), {NULL, 0}}};
    kp_record r = {0};

    r.value.data = h;
    r.value.size = SIZE_MAX;
    ck_assert_uint_eq(kp__record_upper_bound(&r), SIZE_MAX);
    r.value.size = INT32_MAX;
    ck_assert_uint_eq(kp__record_upper_bound(&r), SIZE_MAX);
    r.value.size = INT32_MAX - 61 - 21 - 1 - 5 - 1;
    ck_assert_uint_eq(kp__record_upper_bound(&r), INT32_MAX);
    r.value.size++;
    ck_assert_uint_eq(kp__record_upper_bound(&r), SIZE_MAX);
    r.value.size = 1;
    h[0].value.data = h;
    h[0].value.size = (size_t)INT32_MAX + 1;
    r.headers = h;
    r.header_count = 1;
    ck_assert_uint_eq(kp__record_upper_bound(&r), SIZE_MAX);
    r.header_count = (size_t)INT32_MAX + 1;
    ck_assert_uint_eq(kp__record_upper_bound(&r), SIZE_MAX);
}
END_TEST

START_TEST(sums_do_not_wrap)
{
    kp_header h[2];
    kp_record r = {.headers = h, .header_count = 2};

    for (int i = 0; i < 2; i++) {
        h[i].key = kp_str("k");
        h[i].value.data = h;
        h[i].value.size = INT32_MAX;
    }
    r.key = r.value = h[0].value;
    ck_assert_uint_eq(kp__record_upper_bound(&r), SIZE_MAX);
}
END_TEST

static Suite *record_suite(void)
{
    Suite *s = suite_create("record");
    TCase *t = tcase_create("record");

    tcase_add_test(t, nulls_and_empties_differ);
    tcase_add_test(t, deltas_are_zigzag);
    tcase_add_test(t, headers_follow_in_order);
    tcase_add_test(t, the_bound_counts_all_overhead);
    tcase_add_test(t, the_bound_is_never_below_the_size);
    tcase_add_test(t, what_an_int32_cannot_count_is_over_every_limit);
    tcase_add_test(t, sums_do_not_wrap);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(record_suite)
