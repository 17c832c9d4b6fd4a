/* SPDX-License-Identifier: BSD-2-Clause */
/* Every fuzz target over what is known: inputs from test/golden, those that
 * fuzzing found, those that failed once; and over each of them damaged a
 * little, by the same rule each time.  So builds without libFuzzer run the
 * targets too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rand.h"
#include "test/fuzz/known.h"
#include "test/support/main.h"

struct replay {
    const struct fuzz_target *t;
    struct rng rng;
    unsigned known, damaged, damage;
};

static void run(void *arg, const char *name, const void *data, size_t size)
{
    struct replay *r = arg;
    uint8_t *copy = fuzz_copy(data, size);

    (void)name;
    r->known++;
    r->t->one(copy, size);
    free(copy);
}

/* -- damage: bytes changed, left out, doubled, or the end cut off -- */

static size_t hurt(struct rng *rng, uint8_t *bytes, size_t size)
{
    size_t at = kp__rng_below(rng, (uint32_t)size);
    size_t n = kp__rng_below(rng, 8) + 1;

    n = n < size - at ? n : size - at;
    switch (kp__rng_below(rng, 5)) {
    case 0:
        bytes[at] ^= (uint8_t)(1u << kp__rng_below(rng, 8));
        return size;
    case 1:
        bytes[at] = (uint8_t)kp__rng_next(rng);
        return size;
    case 2:
        memset(bytes + at, kp__rng_below(rng, 2) == 0 ? 0xff : 0x7f, n);
        return size;
    case 3:
        memmove(bytes + at, bytes + at + n, size - at - n);
        return size - n;
    default:
        return at;
    }
}

static void run_damaged(void *arg, const char *name, const void *data,
                        size_t size)
{
    struct replay *r = arg;
    uint8_t *bytes;
    size_t n;

    (void)name;
    for (unsigned i = 0; i < r->damage && size > 0 && size <= r->t->max_size;
         i++) {
        bytes = fuzz_copy(data, size);
        n = hurt(&r->rng, bytes, size);
        if (n > 0 && kp__rng_below(&r->rng, 3) == 0)
            n = hurt(&r->rng, bytes, n);
        r->t->one(bytes, n);
        free(bytes);
        r->damaged++;
    }
}

START_TEST(known_inputs_hold)
{
    struct replay r = {.t = &fuzz_targets[_i]};

    fuzz_known_corpus(r.t, run, &r);
    ck_assert_uint_gt(r.known, 0);
    fuzz_known_regressions(r.t, run, &r);
    r.t->one((const uint8_t *)"", 0);
}
END_TEST

START_TEST(damaged_inputs_hold)
{
    struct replay count = {.t = &fuzz_targets[_i]}, r = count;

    fuzz_known_corpus(r.t, run, &count);
    kp__rng_seed(&r.rng, (uint64_t)_i + 1);
    r.damage = 1 + r.t->damaged / (count.known + 1);
    fuzz_known_corpus(r.t, run_damaged, &r);
    ck_assert_uint_gt(r.damaged, 0);
}
END_TEST

/* A name in one place that is missing in another would leave files unread. */
START_TEST(targets_are_found_by_name)
{
    for (size_t i = 0; i < fuzz_target_count; i++)
        ck_assert_ptr_eq(fuzz_target_find(fuzz_targets[i].name),
                         &fuzz_targets[i]);
    ck_assert_ptr_null(fuzz_target_find("no such target"));
}
END_TEST

static Suite *replay_suite(void)
{
    Suite *s = suite_create("fuzz replay");
    TCase *t = tcase_create("known"), *d = tcase_create("damaged");

    tcase_add_test(t, targets_are_found_by_name);
    tcase_add_loop_test(t, known_inputs_hold, 0, (int)fuzz_target_count);
    tcase_add_loop_test(d, damaged_inputs_hold, 0, (int)fuzz_target_count);
    suite_add_tcase(s, t);
    suite_add_tcase(s, d);
    return s;
}

KP_TEST_MAIN(replay_suite)
