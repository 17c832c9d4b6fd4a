/* SPDX-License-Identifier: BSD-2-Clause */
/* rand_test.c - the generator: its published sequence, bounds, evenness. */
#include "lib/base/rand.h"
#include "test/support/main.h"

START_TEST(follows_the_published_algorithm)
{
    /* xoshiro256** from the state 1, 2, 3, 4, as its reference code prints */
    static const uint64_t expected[] = {
        UINT64_C(11520), UINT64_C(0), UINT64_C(1509978240),
        UINT64_C(1215971899390074240)};
    struct rng r = {{1, 2, 3, 4}};

    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(kp__rng_next(&r), expected[i]);
}
END_TEST

START_TEST(seed_zero_is_splitmix)
{
    struct rng r;

    kp__rng_seed(&r, 0);
    ck_assert_uint_eq(r.s[0], UINT64_C(0xe220a8397b1dcdaf));
    ck_assert_uint_eq(r.s[1], UINT64_C(0x6e789e6aa1b965f4));
}
END_TEST

START_TEST(a_seed_repeats_and_seeds_differ)
{
    struct rng a, b, c;
    int equal = 0;

    kp__rng_seed(&a, 7);
    kp__rng_seed(&b, 7);
    kp__rng_seed(&c, 8);
    for (int i = 0; i < 100; i++) {
        uint64_t x = kp__rng_next(&a);

        ck_assert_uint_eq(x, kp__rng_next(&b));
        equal += x == kp__rng_next(&c);
    }
    ck_assert_int_eq(equal, 0);
}
END_TEST

START_TEST(below_stays_below_and_is_even)
{
    enum { BOUND = 10, DRAWS = 100000 };
    int seen[BOUND] = {0};
    struct rng r;

    kp__rng_seed(&r, 1);
    for (int i = 0; i < DRAWS; i++) {
        uint32_t x = kp__rng_below(&r, BOUND);

        ck_assert_uint_lt(x, BOUND);
        seen[x]++;
    }
    for (int i = 0; i < BOUND; i++) {
        ck_assert_int_gt(seen[i], DRAWS / BOUND * 95 / 100);
        ck_assert_int_lt(seen[i], DRAWS / BOUND * 105 / 100);
    }
}
END_TEST

START_TEST(below_extreme_bounds)
{
    struct rng r;
    uint32_t largest = 0;

    kp__rng_seed(&r, 1);
    for (int i = 0; i < 1000; i++) {
        uint32_t x = kp__rng_below(&r, UINT32_MAX);

        ck_assert_uint_eq(kp__rng_below(&r, 1), 0);
        ck_assert_uint_lt(x, UINT32_MAX);
        largest = x > largest ? x : largest;
    }
    ck_assert_uint_gt(largest, UINT32_MAX / 2);
}
END_TEST

START_TEST(unit_stays_in_its_interval)
{
    struct rng r;
    double sum = 0;

    kp__rng_seed(&r, 1);
    for (int i = 0; i < 100000; i++) {
        double x = kp__rng_unit(&r);

        ck_assert(x >= 0 && x < 1);
        sum += x;
    }
    ck_assert(sum > 49000 && sum < 51000);
}
END_TEST

START_TEST(system_seeds_differ)
{
    ck_assert_uint_ne(kp__rng_system_seed(), kp__rng_system_seed());
}
END_TEST

static Suite *rand_suite(void)
{
    Suite *s = suite_create("rand");
    TCase *c = tcase_create("rand");

    tcase_add_test(c, follows_the_published_algorithm);
    tcase_add_test(c, seed_zero_is_splitmix);
    tcase_add_test(c, a_seed_repeats_and_seeds_differ);
    tcase_add_test(c, below_stays_below_and_is_even);
    tcase_add_test(c, below_extreme_bounds);
    tcase_add_test(c, unit_stays_in_its_interval);
    tcase_add_test(c, system_seeds_differ);
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(rand_suite)
