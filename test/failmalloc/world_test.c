/* SPDX-License-Identifier: BSD-2-Clause */
/* A client's work in virtual time, once for each allocation in it that can
 * fail: nothing crashes, every record taken has exactly one report and it is
 * true, what is refused is not stored, and afterwards all goes on. */
#include <stdio.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define STRIPES 20 /* test cases, so that none takes long */

static void send_all(struct world *w)
{
    for (int i = 0; i < 12; i++)
        (void)world_send_what(
            w, &(struct world_what){
                   .partition = i % 3 - 1,
                   .size = 200,
                   .flags = (i % 2 == 0 ? WORLD_RANDOM : 0) |
                            (i % 4 == 0   ? WORLD_QUEUE
                             : i % 4 == 1 ? WORLD_FUTURE
                                          : WORLD_CALLBACK | WORLD_FUTURE)});
}

/* A new topic, retries, a leader that moves, a split, a bump, a new id, a lost
 * connection, a flush. */
static void work(struct world *w, bool forced)
{
    struct kb_cluster *c = world_cluster(w);
    struct world_what what = {.topic = "new",
                              .flags = WORLD_FUTURE | WORLD_CALLBACK};

    send_all(w);
    world_run_ms(w, 100);
    (void)world_rule(w, "api=produce count=1 error=6");
    (void)world_rule(w, "api=produce skip=1 count=1 error=18");
    (void)kb_leader_move(c, "t", 0, 3 - kb_leader(c, "t", 0), false,
                         world_now_ns(w));
    send_all(w);
    world_run_ms(w, 100);
    (void)world_send_what(w, &what);
    (void)kb_topic_set(c, "t", "max.message.bytes", "500");
    send_all(w);
    world_run_ms(w, 200);
    (void)kb_topic_set(c, "t", "max.message.bytes", "100000");
    world_cut(w, -1, true);
    (void)world_rule(w, "api=produce count=1 error=47");
    (void)world_rule(w, "api=produce skip=1 count=1 answer=close");
    send_all(w);
    (void)world_flush(w, 500);
    world_run_ms(w, 600);
    if (forced)
        (void)world_rule(w, "api=produce count=-1 error=19");
    send_all(w);
    world_run_ms(w, 20);
}

static struct world *begin(void)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .replication = 2,
        .settings = WORLD_SETTINGS(
            "linger.ms", "0", "compression.type", "lz4", "batch.size", "1500",
            "retry.backoff.ms", "10", "delivery.timeout.ms", "8000",
            "request.timeout.ms", "1000", "max.block.ms", "3000")});

    ck_assert_int_eq(
        kb_topic_create(world_cluster(w), "new", 1, 1, world_now_ns(w)), 0);
    return w;
}

static void one(long nth, bool forced, bool all)
{
    struct world *w = begin();
    struct world_record *r;

    world_fail_memory(w, nth, all ? 1 : 0);
    work(w, forced);
    if (!forced) {
        world_fail_memory(w, -1, 0);
        world_rule_remove(w, -1);
        world_settle(w);
        r = world_send(w, 0);
        world_settle(w);
        world_expect(r, KP_OK, KP_OK, KP_STORED_YES, WORLD_ANY_OFFSET);
    } else {
        (void)world_close(w, 0);
        world_settle(w);
    }
    world_check(w);
    world_end(w);
}

static long count(bool forced)
{
    struct world *w = begin();
    long before = world_allocations(w);

    work(w, forced);
    before = world_allocations(w) - before;
    (void)world_close(w, forced ? 0 : KP_FOREVER);
    world_settle(w);
    world_end(w);
    return before;
}

START_TEST(each_allocation_fails_once)
{
    bool forced = _i >= STRIPES;
    long n = count(forced);

    ck_assert_int_gt(n, 100);
    for (long nth = 1 + _i % STRIPES; nth <= n; nth += STRIPES)
        one(nth, forced, false);
}
END_TEST

/* There is none from then on, and later there is again. */
START_TEST(all_allocations_fail_for_a_while)
{
    long n = count(false);

    for (long nth = 1 + _i; nth <= n; nth += STRIPES)
        one(nth, false, true);
}
END_TEST

/* What could not be sent for want of memory is not overtaken by what is behind
 * it: numbers reach the broker in their order. */
START_TEST(nothing_overtakes_what_could_not_be_sent)
{
    for (long nth = 1; nth < 60; nth++) {
        struct world *w = world_begin(&(struct world_options){
            .settings = WORLD_SETTINGS("linger.ms", "0", "batch.size", "0",
                                       "retry.backoff.ms", "10")});
        int32_t next = 1;

        (void)world_send(w, 0);
        world_settle(w); /* the leader is proven: pipelining begins */
        (void)world_send_many(w, 0, 5, 50);
        world_fail_memory(w, nth, 0);
        world_settle(w);
        world_fail_memory(w, -1, 0);
        for (size_t i = 1; i < world_attempts(w); i++)
            ck_assert_int_eq(world_attempt(w, i)->header.base_sequence,
                             next++);
        world_check(w);
        world_end(w);
    }
}
END_TEST

static Suite *world_failmalloc_suite(void)
{
    Suite *s = suite_create("world_failmalloc");
    TCase *t = tcase_create("world_failmalloc");

    tcase_add_loop_test(t, each_allocation_fails_once, 0, 2 * STRIPES);
    tcase_add_loop_test(t, all_allocations_fail_for_a_while, 0, STRIPES);
    tcase_add_test(t, nothing_overtakes_what_could_not_be_sent);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(world_failmalloc_suite)
