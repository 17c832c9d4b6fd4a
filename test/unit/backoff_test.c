/* SPDX-License-Identifier: BSD-2-Clause */
/* backoff_test.c - exponential backoff with jitter. */
#include "io_thread/backoff.h"

#include <check.h>

#include "test/support/main.h"

START_TEST(doubles_up_to_the_maximum_within_a_fifth)
{
    static const int64_t exact[] = {50, 100, 200, 400, 800, 1000, 1000};
    struct rng r;

    kp__rng_seed(&r, 1);
    for (uint32_t attempts = 0; attempts < 7; attempts++) {
        int64_t lowest = INT64_MAX, highest = 0;
        for (int i = 0; i < 2000; i++) {
            int64_t ns = kp__backoff_ns(50000, 1000000, attempts, &r);
            lowest = ns < lowest ? ns : lowest;
            highest = ns > highest ? ns : highest;
        }
        ck_assert_int_ge(lowest, exact[attempts] * 800);
        ck_assert_int_lt(lowest, exact[attempts] * 820); /* it uses its room */
        ck_assert_int_le(highest, 1000000);
        if (exact[attempts] < 1000)
            ck_assert_int_le(highest, exact[attempts] * 1200);
        if (exact[attempts] <= 800)
            ck_assert_int_gt(highest, exact[attempts] * 1180);
        else
            ck_assert_int_eq(highest, 1000000);
    }
}
END_TEST

START_TEST(is_constant_when_the_maximum_is_no_larger)
{
    struct rng r;

    kp__rng_seed(&r, 2);
    for (uint32_t attempts = 0; attempts < 100; attempts++) {
        ck_assert_int_eq(kp__backoff_ns(500, 500, attempts, &r), 500);
        ck_assert_int_eq(kp__backoff_ns(500, 300, attempts, &r), 300);
        ck_assert_int_eq(kp__backoff_ns(0, 0, attempts, &r), 0);
        ck_assert_int_eq(kp__backoff_ns(0, 300, attempts, &r), 0);
    }
}
END_TEST

START_TEST(never_overflows)
{
    struct rng r;

    kp__rng_seed(&r, 3);
    for (uint32_t attempts = 0; attempts < 200; attempts++) {
        int64_t ns = kp__backoff_ns(1, INT64_MAX - 1, attempts, &r);
        ck_assert_int_ge(ns, 0);
        ck_assert_int_lt(ns, INT64_MAX);
    }
    ck_assert_int_ge(kp__backoff_ns(1, 1000, UINT32_MAX, &r), 800);
}
END_TEST

static Suite *backoff_suite(void)
{
    Suite *s = suite_create("backoff");
    TCase *t = tcase_create("backoff");

    tcase_add_test(t, doubles_up_to_the_maximum_within_a_fifth);
    tcase_add_test(t, is_constant_when_the_maximum_is_no_larger);
    tcase_add_test(t, never_overflows);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(backoff_suite)
