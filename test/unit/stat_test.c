/* SPDX-License-Identifier: BSD-2-Clause */
/* Time windows of measured quantities, with a clock that stands still. */
#include <math.h>

#include "lib/base/clock.h"
#include "lib/shared/stat.h"
#include "test/support/main.h"

#define SECOND KP_NS_PER_SEC

static const struct stat_windows two = {2, 30 * SECOND};
static struct stat_sample samples[8];
static struct stat s;

static void begin(const struct stat_windows *w, int64_t now_ns)
{
    kp__stat_init(&s, samples, w, now_ns);
}

static double value(enum stat_kind kind, int64_t now_ns)
{
    return kp__stat_value(&s, &two, kind, now_ns);
}

static void record(double v, int64_t now_ns)
{
    kp__stat_record(&s, &two, v, now_ns);
}

static void is_about(double got, double want)
{
    ck_assert_msg(fabs(got - want) <= 1e-9 * (1 + fabs(want)),
                  "%.12g, not %.12g", got, want);
}

START_TEST(nothing_recorded_says_nothing)
{
    begin(&two, 1000);
    ck_assert(isnan(value(AVG, 1000)));
    ck_assert(isnan(value(MAX, 1000)));
    is_about(value(RATE, 1000), 0);
    is_about(value(COUNT_RATE, 1000), 0);
    is_about(value(TIME_RATIO, 1000), 0);
    is_about(value(TOTAL, 1000), 0);
    is_about(value(COUNT, 1000), 0);
}
END_TEST

START_TEST(one_window_of_values)
{
    begin(&two, 0);
    record(3, 0);
    record(-1, SECOND);
    record(10, 2 * SECOND);
    is_about(value(AVG, 2 * SECOND), 4);
    is_about(value(MAX, 2 * SECOND), 10);
    is_about(value(TOTAL, 2 * SECOND), 12);
    is_about(value(COUNT, 2 * SECOND), 3);
}
END_TEST

START_TEST(a_maximum_below_zero)
{
    begin(&two, 0);
    record(-5, 0);
    record(-3, 0);
    is_about(value(MAX, 0), -3);
}
END_TEST

/* Kafka's Rate: all windows but one count as whole, so a rate that has just
 * begun is not overstated. */
START_TEST(a_young_rate_is_not_overstated)
{
    begin(&two, 0);
    record(60, 0);
    is_about(value(RATE, 0), 60 / 30.0);
    is_about(value(RATE, 10 * SECOND), 60 / 40.0);
    is_about(value(COUNT_RATE, 10 * SECOND), 1 / 40.0);
    is_about(value(RATE, 30 * SECOND), 60 / 30.0);
    is_about(value(RATE, 45 * SECOND), 60 / 45.0);
}
END_TEST

START_TEST(a_steady_rate_is_right)
{
    begin(&two, 0);
    for (int i = 0; i <= 300; i++)
        record(7, i * SECOND);
    ck_assert_double_ge(value(RATE, 300 * SECOND), 6.7);
    ck_assert_double_le(value(RATE, 300 * SECOND), 7.5);
    ck_assert_double_ge(value(COUNT_RATE, 300 * SECOND), 0.95);
    ck_assert_double_le(value(COUNT_RATE, 300 * SECOND), 1.08);
    is_about(value(TOTAL, 300 * SECOND), 301 * 7);
}
END_TEST

START_TEST(old_windows_are_forgotten_and_totals_are_not)
{
    begin(&two, 0);
    record(100, 0);
    record(2, 31 * SECOND); /* the second window */
    is_about(value(AVG, 31 * SECOND), 51);
    is_about(value(MAX, 59 * SECOND), 100);
    /* After two windows the first is too old. */
    is_about(value(MAX, 61 * SECOND), 2);
    is_about(value(AVG, 61 * SECOND), 2);
    ck_assert(isnan(value(AVG, 92 * SECOND)));
    is_about(value(RATE, 92 * SECOND), 0);
    is_about(value(TOTAL, 92 * SECOND), 102);
    is_about(value(COUNT, 92 * SECOND), 2);
}
END_TEST

START_TEST(windows_turn_in_a_circle)
{
    begin(&two, 0);
    for (int i = 0; i < 10; i++)
        record(i, i * 31 * SECOND);
    is_about(value(MAX, 9 * 31 * SECOND), 9);
    is_about(value(AVG, 9 * 31 * SECOND), (8 + 9) / 2.0);
    is_about(value(COUNT, 9 * 31 * SECOND), 10);
}
END_TEST

START_TEST(a_value_long_after_the_last_begins_anew)
{
    begin(&two, 0);
    record(100, 0);
    record(1, 1000 * SECOND);
    is_about(value(MAX, 1000 * SECOND), 1);
    is_about(value(RATE, 1000 * SECOND), 1 / 30.0);
}
END_TEST

START_TEST(time_ratios_are_fractions)
{
    begin(&two, 0);
    for (int i = 0; i < 60; i++)
        record(SECOND / 4, (i + 1) * (int64_t)SECOND);
    ck_assert_double_ge(value(TIME_RATIO, 60 * SECOND), 0.2);
    ck_assert_double_le(value(TIME_RATIO, 60 * SECOND), 0.3);
}
END_TEST

START_TEST(one_window_and_huge_windows_do_not_overflow)
{
    static const struct stat_windows one = {1, SECOND};
    static const struct stat_windows huge = {4, INT64_MAX / 2};

    begin(&one, 0);
    kp__stat_record(&s, &one, 5, 0);
    is_about(kp__stat_value(&s, &one, RATE, SECOND / 2), 10);
    ck_assert(isfinite(kp__stat_value(&s, &one, RATE, 0)));
    begin(&huge, 0);
    kp__stat_record(&s, &huge, 5, 0);
    kp__stat_record(&s, &huge, 7, INT64_MAX - 1);
    is_about(kp__stat_value(&s, &huge, TOTAL, INT64_MAX - 1), 12);
    ck_assert(isfinite(kp__stat_value(&s, &huge, RATE, INT64_MAX - 1)));
    is_about(kp__stat_value(&s, &huge, MAX, INT64_MAX - 1), 7);
}
END_TEST

static Suite *stat_suite(void)
{
    Suite *suite = suite_create("stat");
    TCase *t = tcase_create("windows");

    tcase_add_test(t, nothing_recorded_says_nothing);
    tcase_add_test(t, one_window_of_values);
    tcase_add_test(t, a_maximum_below_zero);
    tcase_add_test(t, a_young_rate_is_not_overstated);
    tcase_add_test(t, a_steady_rate_is_right);
    tcase_add_test(t, old_windows_are_forgotten_and_totals_are_not);
    tcase_add_test(t, windows_turn_in_a_circle);
    tcase_add_test(t, a_value_long_after_the_last_begins_anew);
    tcase_add_test(t, time_ratios_are_fractions);
    tcase_add_test(t, one_window_and_huge_windows_do_not_overflow);
    suite_add_tcase(suite, t);
    return suite;
}

KP_TEST_MAIN(stat_suite)
