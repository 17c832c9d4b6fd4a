/* SPDX-License-Identifier: BSD-2-Clause */
/* C7, E5: what is done to one batch costs the same however many wait in its
 * partition's queue: neither does the I/O thread's work grow with the square of
 * what is queued, nor do senders wait for a lock that is held meanwhile.
 *
 * Costs are CPU time of this thread.  What went through the whole queue would
 * cost several hundred times as much; the bound is 15. */
#include <stdint.h>
#include <time.h>

#include "test/support/main.h"
#include "test/unit/accumulator_fixture.h"

enum { FEW = 8, MANY = 8000, ROUNDS = 400 };

static struct partition_queue *q;

static void set_up(void)
{
    fixture_defaults();
    f.settings.batch_size = 200;
    f.settings.buffer_memory = (size_t)1 << 30;
    fixture_start(1);
    q = fixture_queue(0);
}

static void tear_down(void)
{
    fixture_stop();
}

/* Until the queue has n batches, each a millisecond younger than the one
 * before. */
static void fill_to(uint32_t n)
{
    uint32_t have = 0;

    for (; have < n; f.fake.mono_ns += KP_NS_PER_MS) {
        ck_assert_int_eq(append_bytes(1, 150, 0), KP_OK);
        have = look_at(q).batch_count;
    }
}

static int64_t cpu_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Five are on the wire, as many as there may be, and come back in any order. */
static void retry_five(void)
{
    static const int order[5] = {3, 0, 4, 1, 2};
    struct batch *b[5];

    for (int i = 0; i < 5; i++) {
        b[i] = drain_head(q);
        ck_assert_ptr_nonnull(b[i]);
        ck_assert_uint_eq(b[i]->ordinal, (uint64_t)i);
    }
    for (int i = 0; i < 5; i++)
        kp__queue_put_back(q, b[order[i]]);
}

static void expire_none(void)
{
    struct list out;

    kp__list_init(&out);
    kp__queue_expire(q, START_NS, &out);
    ck_assert(kp__list_empty(&out));
}

static int64_t cost_of(void (*work)(void))
{
    int64_t best = INT64_MAX;

    for (int run = 0; run < 5; run++) {
        int64_t began = cpu_ns(), took;

        for (int i = 0; i < ROUNDS; i++)
            work();
        took = cpu_ns() - began;
        best = took < best ? took : best;
    }
    return best;
}

static void (*const works[])(void) = {retry_five, expire_none};

START_TEST(a_batch_costs_the_same_before_many)
{
    int64_t few, many;

    fill_to(FEW);
    few = cost_of(works[_i]);
    fill_to(MANY);
    many = cost_of(works[_i]);
    ck_assert_msg(many < 15 * few, "%lld ns before %d, %lld ns before %d",
                  (long long)few, FEW, (long long)many, MANY);
}
END_TEST

/* The same, counted: what is behind one that is not due is not looked at. */
START_TEST(an_expiry_ends_at_the_first_that_is_not_due)
{
    struct list out;
    struct batch *first, *last;
    int64_t timeout_ns = f.settings.delivery_timeout_ns;

    kp__list_init(&out);
    fill_to(5);
    first = KP_CONTAINER(kp__list_first(&q->batches), struct batch, link);
    last = KP_CONTAINER(q->batches.head.prev, struct batch, link);
    ck_assert_int_eq(first->deadline_ns, START_NS + timeout_ns);
    ck_assert_int_gt(last->deadline_ns, first->deadline_ns);
    last->deadline_ns = 0; /* it cannot be; whoever looks would take it */
    kp__queue_expire(q, first->deadline_ns, &out);
    ck_assert_ptr_eq(kp__list_pop_front(&out), &first->link);
    ck_assert(kp__list_empty(&out));
    fixture_complete(first, KP_ETIMEDOUT);
}
END_TEST

static Suite *long_queue_suite(void)
{
    Suite *s = suite_create("long_queue");
    TCase *t = tcase_create("long_queue");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_batch_costs_the_same_before_many, 0, 2);
    tcase_add_test(t, an_expiry_ends_at_the_first_that_is_not_due);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(long_queue_suite)
