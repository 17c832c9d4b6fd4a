/* SPDX-License-Identifier: BSD-2-Clause */
/* buffer.memory when it runs short: lingering ends, an unreachable broker
 * takes no more than half, waiters are served in order, and all of it comes
 * back. */
#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define MS KP_NS_PER_MS

static size_t used(struct world *w)
{
    struct pool_stats s;

    kp__pool_stats(w->p->pool, &s);
    return s.total_bytes - s.available_bytes;
}

/* A52: while anyone waits, nothing lingers. */
START_TEST(pressure_ends_the_linger)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 8,
        .settings = WORLD_SETTINGS("linger.ms", "60000", "buffer.memory",
                                   "65536", "batch.size", "16384",
                                   "delivery.timeout.ms", "120000")});
    struct world_record *r = NULL;
    int i;

    for (i = 0; i < 100; i++) {
        r = world_send_many(w, i % 8, 1, 1500);
        if (r->state == WORLD_WAITING)
            break;
    }
    ck_assert_int_lt(i, 100);
    ck_assert_uint_eq(world_attempts(w), 0);
    while (r->state == WORLD_WAITING)
        world_run_ms(w, 1);
    ck_assert_int_eq(r->state, WORLD_TAKEN);
    ck_assert_int_lt(r->returned_ns - r->called_ns, 50 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* A refused KP_NOWAIT send has the same effect. */
START_TEST(a_refused_nowait_ends_the_linger)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 8,
        .settings = WORLD_SETTINGS("linger.ms", "60000", "buffer.memory",
                                   "65536", "batch.size", "16384")});
    struct world_what what = {.size = 1500,
                              .flags = WORLD_NOWAIT | WORLD_FUTURE};
    struct world_record *r = NULL;
    int i;

    for (i = 0; i < 100; i++) {
        what.partition = i % 8;
        r = world_send_what(w, &what);
        if (r->state == WORLD_REFUSED)
            break;
    }
    ck_assert_int_lt(i, 100);
    ck_assert_int_eq(r->refused, KP_EBUFFER);
    world_run_ms(w, 100);
    r = world_send_what(w, &what);
    ck_assert_int_eq(r->state, WORLD_TAKEN);
    world_check(w);
    world_end(w);
}
END_TEST

static struct chunk *take_chunk(struct world *w, struct partition_queue *q)
{
    const struct pool_need need = {.record_size = 10000};
    struct pool_waiter waiter = {0};
    struct pool_grant g = {0};

    return kp__pool_try(w->p->pool, q, &need, false, 0, &waiter, &g) ==
                   POOL_GRANTED
               ? g.data
               : NULL;
}

static void join(struct world *w, struct partition_queue *q,
                 struct pool_waiter *waiter)
{
    const struct pool_need need = {.record_size = 10000};
    struct pool_grant g = {0};

    memset(waiter, 0, sizeof(*waiter));
    ck_assert_int_eq(kp__pool_try(w->p->pool, q, &need, true, w->now_ns,
                                  waiter, &g),
                     POOL_WAIT);
}

static void take_what_came(struct world *w, struct pool_waiter *waiter)
{
    struct pool_grant g = {0};

    ck_assert_int_eq(kp__pool_try(w->p->pool, waiter->queue, &waiter->need,
                                  true, w->now_ns, waiter, &g),
                     POOL_GRANTED);
    kp__pool_give(w->p->pool, waiter->queue, g.data);
}

static struct chunk *take_all_chunks(struct world *w,
                                     struct partition_queue *q)
{
    struct chunk *all = NULL, *c;

    while ((c = take_chunk(w, q)) != NULL) {
        c->next = all;
        all = c;
    }
    return all;
}

static void give_one(struct world *w, struct partition_queue *q,
                     struct chunk **all)
{
    struct chunk *c = *all;

    *all = c->next;
    c->next = NULL;
    kp__pool_give(w->p->pool, q, c);
}

/* A thread that was called for its memory and does not come for it keeps those
 * behind it waiting for a millisecond or two, and no longer. */
START_TEST(who_does_not_come_for_its_memory_holds_up_nobody)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 1,
        .settings = WORLD_SETTINGS("buffer.memory", "1048576")});
    struct partition_queue *q;
    struct pool_waiter away, next;
    struct chunk *all;

    (void)world_send(w, 0);
    world_settle(w);
    q = kp__topic_view(kp__topics_find(w->p->topics, "t", 1))->queues[0];
    all = take_all_chunks(w, q);
    join(w, q, &away);
    join(w, q, &next);
    for (int i = 0; i < 2; i++)
        give_one(w, q, &all);
    ck_assert_uint_ne(atomic_load(&away.word), 0);
    ck_assert_uint_eq(atomic_load(&next.word), 0);
    ck_assert(kp__pool_is_held(w->p->pool));
    (void)world_send(w, 0); /* joins the line, and asks for a turn */
    world_run_ms(w, 2);
    ck_assert_uint_ne(atomic_load(&next.word), 0);
    take_what_came(w, &next);
    take_what_came(w, &away);
    kp__pool_give(w->p->pool, q, all);
    world_check(w);
    world_end(w);
}
END_TEST

/* The same while the I/O thread sleeps: whoever brings memory back does not wake
 * it. */
START_TEST(who_does_not_come_is_found_by_a_thread_that_sleeps)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 1,
        .settings = WORLD_SETTINGS("buffer.memory", "1048576")});
    struct partition_queue *q;
    struct pool_waiter away, next;
    struct chunk *all;

    (void)world_send(w, 0);
    world_settle(w);
    q = kp__topic_view(kp__topics_find(w->p->topics, "t", 1))->queues[0];
    all = take_all_chunks(w, q);
    join(w, q, &away);
    join(w, q, &next);
    kp__io_look(&w->p->bell); /* as whoever begins to wait does */
    world_run_ms(w, 10);
    for (int i = 0; i < 2; i++)
        give_one(w, q, &all);
    ck_assert_uint_ne(atomic_load(&away.word), 0);
    ck_assert_uint_eq(atomic_load(&next.word), 0);
    world_run_ms(w, 102);
    ck_assert_uint_ne(atomic_load(&next.word), 0);
    take_what_came(w, &next);
    take_what_came(w, &away);
    kp__pool_give(w->p->pool, q, all);
    world_check(w);
    world_end(w);
}
END_TEST

/* A broker that cannot be reached takes at most half; the others go on. */
START_TEST(a_dead_broker_takes_half)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .settings = WORLD_SETTINGS("linger.ms", "0", "buffer.memory",
                                   "1048576")});
    int32_t dead = kb_leader(world_cluster(w), "t", 0);
    struct world_record *r, *other;
    int i;

    (void)world_send(w, 0);
    (void)world_send(w, 1);
    world_settle(w);
    kb_node_stop(world_cluster(w), dead, false, world_now_ns(w));
    world_run_ms(w, 2000);
    for (i = 0; i < 2000; i++) {
        r = world_send_what(w, &(struct world_what){.size = 1000,
                                                    .flags = WORLD_NOWAIT |
                                                             WORLD_FUTURE});
        if (r->state != WORLD_TAKEN)
            break;
        if (i % 50 == 0)
            world_run_ms(w, 1);
    }
    ck_assert_int_eq(r->refused, KP_EBUFFER);
    ck_assert_uint_le(used(w), 1048576 / 2);
    ck_assert_uint_ge(used(w), 1048576 / 2 - 65536);
    /* one who waits is passed over, and does not hold up the other partition */
    r = world_send_many(w, 0, 1, 1000);
    ck_assert_int_eq(r->state, WORLD_WAITING);
    for (i = 0; i < 200; i++) {
        other = world_send_many(w, 1, 1, 1000);
        ck_assert_int_eq(other->state, WORLD_TAKEN);
        world_run_ms(w, 3);
        ck_assert_int_eq(other->report.err, KP_OK);
        ck_assert(other->reported);
    }
    ck_assert_int_eq(r->state, WORLD_WAITING);
    kb_node_start(world_cluster(w), dead, KB_KEEP_STATE, world_now_ns(w));
    world_settle(w);
    ck_assert_int_eq(r->report.err, KP_OK);
    world_check(w);
    world_end(w);
}
END_TEST

static void set_refused(struct world *w, bool on)
{
    for (int32_t p = 0; p < 2; p++) {
        int32_t node = kb_leader(world_cluster(w), "t", p);

        world_link(w, node)->refuses = on;
        if (on)
            world_cut(w, node, true);
    }
}

/* Two brokers are there again, and nobody knows it yet: what waits for memory
 * behind a record for one of them does not wait for its linger. */
START_TEST(what_may_not_be_reached_is_tried_at_once)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 3,
        .partitions = 3,
        .settings = WORLD_SETTINGS(
            "linger.ms", "500", "buffer.memory", "8192", "max.block.ms", "300",
            "delivery.timeout.ms", "1500", "request.timeout.ms", "300",
            "reconnect.backoff.ms", "10", "reconnect.backoff.max.ms", "50")});
    struct world_record *r;

    for (int32_t p = 0; p < 3; p++) {
        (void)world_send(w, p);
        world_settle(w);
    }
    set_refused(w, true);
    for (int32_t p = 0; p < 2; p++) {
        r = world_send(w, p);
        world_settle(w);
        ck_assert_int_eq(r->report.err, KP_ETIMEDOUT);
    }
    world_run_ms(w, 1000); /* the last attempts to connect have failed too */
    set_refused(w, false);
    (void)world_send(w, 0);
    r = world_send(w, 1);
    ck_assert_int_eq(r->state, WORLD_WAITING);
    world_settle(w);
    ck_assert_int_eq(r->state, WORLD_TAKEN);
    ck_assert_int_lt(r->returned_ns - r->called_ns, 50 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* When no broker can be reached all of it may be used. */
START_TEST(all_dead_takes_all)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "buffer.memory",
                                   "1048576")});
    struct world_record *r;
    int i;

    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    world_run_ms(w, 2000);
    for (i = 0; i < 2000; i++) {
        r = world_send_what(w, &(struct world_what){.size = 1000,
                                                    .flags = WORLD_NOWAIT |
                                                             WORLD_FUTURE});
        if (r->state != WORLD_TAKEN)
            break;
        if (i % 50 == 0)
            world_run_ms(w, 1);
    }
    ck_assert_int_eq(r->refused, KP_EBUFFER);
    ck_assert_uint_ge(used(w), 1048576 - 65536);
    kb_node_start(world_cluster(w), 1, KB_KEEP_STATE, world_now_ns(w));
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

/* Far more than fits goes through, every codec, in order. */
START_TEST(much_through_little)
{
    static const char *const codecs[] = {"none", "gzip", "snappy", "lz4",
                                         "zstd"};
    struct world *w = world_begin(&(struct world_options){
        .partitions = 3,
        .settings = WORLD_SETTINGS("linger.ms", "5", "buffer.memory", "131072",
                                   "batch.size", "16384", "compression.type",
                                   codecs[_i])});

    for (int i = 0; i < 3000; i++) {
        struct world_record *r = world_send_what(
            w, &(struct world_what){
                   .partition = i % 3,
                   .size = 100 + i % 7 * 300,
                   .flags = (i % 2 == 0 ? WORLD_RANDOM : 0) |
                            (i % 3 == 0 ? WORLD_QUEUE : WORLD_CALLBACK)});

        while (r->state == WORLD_WAITING)
            world_run_until_ns(w, world_now_ns(w) + MS / 10);
        ck_assert_int_eq(r->state, WORLD_TAKEN);
        ck_assert_uint_le(used(w), 131072);
    }
    world_settle(w);
    ck_assert_uint_eq(used(w), 0);
    for (uint32_t i = 0; i < 3000; i++)
        ck_assert_int_eq(world_record(w, i)->report.err, KP_OK);
    world_check(w);
    world_end(w);
}
END_TEST

/* Reports that nobody polls hold memory; polling them gives it back. */
START_TEST(unpolled_reports_hold_memory)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "buffer.memory",
                                   "131072")});
    struct world_what what = {.flags = WORLD_QUEUE | WORLD_NOWAIT};
    struct world_record *r = NULL;
    int i;

    world_poll_queue(w, false);
    for (i = 0; i < 100000; i++) {
        r = world_send_what(w, &what);
        if (i % 20 == 0)
            world_run_ms(w, 3);
        if (r->state == WORLD_REFUSED)
            break;
    }
    ck_assert_int_eq(r->refused, KP_EBUFFER);
    world_run_ms(w, 1000);
    r = world_send_what(w, &what);
    ck_assert_int_eq(r->state, WORLD_REFUSED);
    world_poll_now(w, SIZE_MAX);
    r = world_send_what(w, &what);
    ck_assert_int_eq(r->state, WORLD_TAKEN);
    world_poll_queue(w, true);
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

/* A record larger than everything is refused, one just as large is not. */
START_TEST(too_large)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "buffer.memory",
                                   "200000", "max.request.size", "100000")});
    struct world_record *r = world_send_many(w, 0, 1, 100001);

    ck_assert_int_eq(r->state, WORLD_REFUSED);
    ck_assert_int_eq(r->refused, KP_ETOOBIG);
    r = world_send_many(w, 0, 1, 99000);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *memory_pressure_world_suite(void)
{
    Suite *s = suite_create("memory_pressure_world");
    TCase *t = tcase_create("memory_pressure_world");

    tcase_add_test(t, pressure_ends_the_linger);
    tcase_add_test(t, a_refused_nowait_ends_the_linger);
    tcase_add_test(t, who_does_not_come_for_its_memory_holds_up_nobody);
    tcase_add_test(t, who_does_not_come_is_found_by_a_thread_that_sleeps);
    tcase_add_test(t, a_dead_broker_takes_half);
    tcase_add_test(t, what_may_not_be_reached_is_tried_at_once);
    tcase_add_test(t, all_dead_takes_all);
    tcase_add_loop_test(t, much_through_little, 0, 5);
    tcase_add_test(t, unpolled_reports_hold_memory);
    tcase_add_test(t, too_large);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(memory_pressure_world_suite)
