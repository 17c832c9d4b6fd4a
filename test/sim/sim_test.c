/* SPDX-License-Identifier: BSD-2-Clause */
/* Some seeds of the simulator, always the same ones, for the variants that
 * look at memory and undefined behaviour; and that it is a simulator: a seed
 * is the same run each time, another is another, and what is wrong is said. */
#include <string.h>

#include "test/sim/sim.h"
#include "test/support/main.h"

#define STRIPES 12
#define SEEDS 40 /* a stripe */

START_TEST(nothing_is_wrong)
{
    uint64_t from = (uint64_t)_i * SEEDS, i;
    struct sim_failure f;

    i = sim_run_some(2026, from, from + SEEDS, &SIM_ALL, &f);
    if (i < from + SEEDS)
        ck_abort_msg("test/sim/run --seed %llu: %s",
                     (unsigned long long)sim_nth(2026, i), f.text);
}
END_TEST

START_TEST(a_seed_is_one_run)
{
    uint64_t first = sim_seed(7, &SIM_ALL);

    ck_assert_uint_eq(sim_seed(7, &SIM_ALL), first);
    ck_assert_uint_ne(sim_seed(8, &SIM_ALL), first);
}
END_TEST

/* What is left out of a run leaves the rest as it was drawn. */
START_TEST(a_run_can_be_made_smaller)
{
    struct sim_limits l = SIM_ALL;

    (void)sim_seed(7, &l);
    ck_assert_int_gt(sim_size()->records, 3);
    l.records = 3;
    l.actors = 1;
    l.steps = 5;
    (void)sim_seed(7, &l);
    ck_assert_int_eq(sim_size()->actors, 1);
    ck_assert_int_le(sim_size()->steps, 5);
    ck_assert_int_le(sim_size()->records, 3);
}
END_TEST

START_TEST(features_have_names)
{
    for (int f = 0; f < F_COUNT; f++) {
        const char *name = sim_feature_name((enum feature)f);

        ck_assert_int_eq((int)sim_feature_by_name(name, strlen(name)), f);
    }
    ck_assert_int_eq((int)sim_feature_by_name("no", 2), (int)F_COUNT);
}
END_TEST

static Suite *sim_suite(void)
{
    Suite *s = suite_create("sim");
    TCase *t = tcase_create("sim");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, nothing_is_wrong, 0, STRIPES);
    tcase_add_test(t, a_seed_is_one_run);
    tcase_add_test(t, a_run_can_be_made_smaller);
    tcase_add_test(t, features_have_names);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(sim_suite)
