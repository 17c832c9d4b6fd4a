/* SPDX-License-Identifier: BSD-2-Clause */
/* heap_test.c - the pairing heap against a plain array. */
#include <stdlib.h>

#include "lib/base/heap.h"
#include "lib/base/rand.h"
#include "test/support/main.h"

/* The earliest time among those in the heap, by looking at all. */
static int64_t earliest(const struct heap_node *nodes, size_t count)
{
    int64_t at_ns = INT64_MAX;

    for (size_t i = 0; i < count; i++)
        if (nodes[i].in_heap && nodes[i].at_ns < at_ns)
            at_ns = nodes[i].at_ns;
    return at_ns;
}

START_TEST(empty_has_no_first)
{
    struct heap h;

    kp__heap_init(&h);
    ck_assert_ptr_null(kp__heap_first(&h));
}
END_TEST

START_TEST(first_is_the_earliest)
{
    struct heap_node n[3] = {0};
    struct heap h;

    kp__heap_init(&h);
    kp__heap_insert(&h, &n[0], 20);
    kp__heap_insert(&h, &n[1], 10);
    kp__heap_insert(&h, &n[2], 30);
    ck_assert_ptr_eq(kp__heap_first(&h), &n[1]);
    kp__heap_remove(&h, &n[1]);
    ck_assert_ptr_eq(kp__heap_first(&h), &n[0]);
    kp__heap_remove(&h, &n[0]);
    ck_assert_ptr_eq(kp__heap_first(&h), &n[2]);
    kp__heap_remove(&h, &n[2]);
    ck_assert_ptr_null(kp__heap_first(&h));
}
END_TEST

START_TEST(removing_what_is_in_no_heap_does_nothing)
{
    struct heap_node in = {0}, out = {0};
    struct heap h;

    kp__heap_init(&h);
    kp__heap_insert(&h, &in, 1);
    kp__heap_remove(&h, &out);
    ck_assert_ptr_eq(kp__heap_first(&h), &in);
    kp__heap_remove(&h, &in);
    kp__heap_remove(&h, &in);
    ck_assert_ptr_null(kp__heap_first(&h));
}
END_TEST

START_TEST(set_moves_both_ways)
{
    struct heap_node n[3] = {0};
    struct heap h;

    kp__heap_init(&h);
    for (int i = 0; i < 3; i++)
        kp__heap_set(&h, &n[i], 10 * (i + 1));
    kp__heap_set(&h, &n[2], 5);
    ck_assert_ptr_eq(kp__heap_first(&h), &n[2]);
    kp__heap_set(&h, &n[2], 25);
    ck_assert_ptr_eq(kp__heap_first(&h), &n[0]);
    kp__heap_set(&h, &n[0], 100);
    ck_assert_ptr_eq(kp__heap_first(&h), &n[1]);
    ck_assert_int_eq(n[0].at_ns, 100);
}
END_TEST

START_TEST(equal_times_all_come_out)
{
    struct heap_node n[50] = {0}, *first;
    struct heap h;
    int count = 0;

    kp__heap_init(&h);
    for (int i = 0; i < 50; i++)
        kp__heap_insert(&h, &n[i], 7);
    while ((first = kp__heap_first(&h)) != NULL) {
        kp__heap_remove(&h, first);
        count++;
    }
    ck_assert_int_eq(count, 50);
}
END_TEST

START_TEST(extreme_times)
{
    struct heap_node n[3] = {0};
    struct heap h;

    kp__heap_init(&h);
    kp__heap_insert(&h, &n[0], INT64_MAX);
    kp__heap_insert(&h, &n[1], INT64_MIN);
    kp__heap_insert(&h, &n[2], 0);
    ck_assert_ptr_eq(kp__heap_first(&h), &n[1]);
    kp__heap_remove(&h, &n[1]);
    ck_assert_ptr_eq(kp__heap_first(&h), &n[2]);
}
END_TEST

/* Random inserts, moves and removals; `_i` is the seed. */
START_TEST(agrees_with_a_plain_array)
{
    enum { COUNT = 200, STEPS = 20000 };
    struct heap_node *n = calloc(COUNT, sizeof(*n));
    struct heap h;
    struct rng r;

    ck_assert_ptr_nonnull(n);
    kp__heap_init(&h);
    kp__rng_seed(&r, (uint64_t)_i);
    for (int step = 0; step < STEPS; step++) {
        struct heap_node *node = &n[kp__rng_below(&r, COUNT)], *first;

        if (kp__rng_below(&r, 3) == 0)
            kp__heap_remove(&h, node);
        else
            kp__heap_set(&h, node, kp__rng_below(&r, 100));
        first = kp__heap_first(&h);
        if (first == NULL)
            ck_assert_int_eq(earliest(n, COUNT), INT64_MAX);
        else
            ck_assert_int_eq(first->at_ns, earliest(n, COUNT));
    }
    free(n);
}
END_TEST

static Suite *heap_suite(void)
{
    Suite *s = suite_create("heap");
    TCase *c = tcase_create("heap");

    tcase_add_test(c, empty_has_no_first);
    tcase_add_test(c, first_is_the_earliest);
    tcase_add_test(c, removing_what_is_in_no_heap_does_nothing);
    tcase_add_test(c, set_moves_both_ways);
    tcase_add_test(c, equal_times_all_come_out);
    tcase_add_test(c, extreme_times);
    tcase_add_loop_test(c, agrees_with_a_plain_array, 1, 6);
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(heap_suite)
