/* SPDX-License-Identifier: BSD-2-Clause */
/* clock_test.c - the system's clocks, and arithmetic at the edges. */
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/wait.h"
#include "test/support/fake_clock.h"
#include "test/support/main.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LONGEST INT64_C(1000000000000000000)

START_TEST(monotonic_never_goes_back)
{
    int64_t before = kp__now_ns(&kp__system_clock);

    for (int i = 0; i < 1000; i++) {
        int64_t now = kp__now_ns(&kp__system_clock);

        ck_assert_int_ge(now, before);
        before = now;
    }
    ck_assert_int_gt(before, 0);
}
END_TEST

START_TEST(coarse_is_never_ahead)
{
    const struct clock *c = &kp__system_clock;

    for (int i = 0; i < 1000; i++) {
        int64_t coarse = c->mono_coarse_ns(c->arg);

        ck_assert_int_le(coarse, c->mono_ns(c->arg));
    }
}
END_TEST

START_TEST(wall_is_milliseconds_since_1970)
{
    const struct clock *c = &kp__system_clock;
    int64_t before = time(NULL), ms = c->wall_ms(c->arg);

    /* a tick behind, and the second may turn between the two */
    ck_assert_int_ge(ms, before * 1000 - 100);
    ck_assert_int_le(ms, (int64_t)time(NULL) * 1000 + 1000);
}
END_TEST

static const int64_t ms_to_ns[][2] = {
    {0, 0},
    {1, 1000000},
    {-1, -1000000},
    {1000000000000, LONGEST},
    {1000000000001, LONGEST},
    {INT64_MAX, LONGEST},
    {INT64_MIN, -LONGEST},
};

START_TEST(ms_to_ns_stops_at_the_longest)
{
    ck_assert_int_eq(kp__ms_to_ns(ms_to_ns[_i][0]), ms_to_ns[_i][1]);
}
END_TEST

static const int64_t ns_to_ms[][2] = {
    {0, 0},       {1, 1},        {999999, 1},  {1000000, 1},
    {1000001, 2}, {-1, 0},       {-1000001, -1},
    {INT64_MAX, INT64_MAX / 1000000 + 1},
};

START_TEST(ns_to_ms_rounds_up)
{
    ck_assert_int_eq(kp__ns_to_ms_up(ns_to_ms[_i][0]), ns_to_ms[_i][1]);
}
END_TEST

static const struct {
    int64_t a, b, sum;
} sums[] = {
    {1, 2, 3},
    {5, -7, -2},
    {KP_NEVER, 1, KP_NEVER},
    {KP_NEVER, -1, KP_NEVER},
    {1, KP_NEVER, KP_NEVER},
    {KP_NEVER - 1, 1, KP_NEVER},
    {KP_NEVER - 1, 2, KP_NEVER},
    {INT64_MIN, -1, INT64_MIN},
    {INT64_MIN, INT64_MAX - 1, -2},
};

START_TEST(add_stops_at_never)
{
    ck_assert_int_eq(kp__ns_add(sums[_i].a, sums[_i].b), sums[_i].sum);
}
END_TEST

START_TEST(deadlines)
{
    ck_assert_int_eq(kp__deadline_ns(5, 0), 5);
    ck_assert_int_eq(kp__deadline_ns(5, 2), 2000005);
    ck_assert_int_eq(kp__deadline_ns(5, -1), KP_NEVER);
    ck_assert_int_eq(kp__deadline_ns(5, INT64_MAX), LONGEST + 5);
    ck_assert_int_eq(kp__deadline_ns(KP_NEVER - 5, 1), KP_NEVER);
}
END_TEST

START_TEST(a_fake_clock_moves_when_told)
{
    struct fake_clock fake = {.mono_ns = 3, .wall_ms = 4};
    struct clock c = fake_clock(&fake);

    ck_assert_int_eq(kp__now_ns(&c), 3);
    ck_assert_int_eq(c.wall_ms(c.arg), 4);
    fake.mono_ns += 10;
    ck_assert_int_eq(c.mono_coarse_ns(c.arg), 13);
}
END_TEST

static Suite *clock_suite(void)
{
    Suite *s = suite_create("clock");
    TCase *c = tcase_create("clock");

    tcase_add_test(c, monotonic_never_goes_back);
    tcase_add_test(c, coarse_is_never_ahead);
    tcase_add_test(c, wall_is_milliseconds_since_1970);
    tcase_add_loop_test(c, ms_to_ns_stops_at_the_longest, 0, COUNT(ms_to_ns));
    tcase_add_loop_test(c, ns_to_ms_rounds_up, 0, COUNT(ns_to_ms));
    tcase_add_loop_test(c, add_stops_at_never, 0, COUNT(sums));
    tcase_add_test(c, deadlines);
    tcase_add_test(c, a_fake_clock_moves_when_told);
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(clock_suite)
