/* SPDX-License-Identifier: BSD-2-Clause */
/* kp_close: what it delivers, what it fails and with which certainty, from
 * where it may be called, and how often. */
#include <string.h>

#include "include/kp/errors.h"
#include "lib/api/producer.h"
#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define MS KP_NS_PER_MS

static void expect_refused(struct world *w, kp_err err)
{
    struct world_record *r = world_send(w, 0);

    ck_assert_int_eq(r->state, WORLD_REFUSED);
    ck_assert_int_eq(r->refused, err);
}

/* Everything taken is delivered, at once, though it lingers. */
START_TEST(graceful)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 3, .settings = WORLD_SETTINGS("linger.ms", "60000")});
    struct world_record *r[30];
    struct world_call *c;

    for (int i = 0; i < 30; i++)
        r[i] = world_send(w, i % 3);
    c = world_close(w, KP_FOREVER);
    expect_refused(w, KP_ECLOSED);
    world_settle(w);
    ck_assert_int_eq(c->err, KP_OK);
    for (int i = 0; i < 30; i++)
        ck_assert_int_eq(r[i]->report.err, KP_OK);
    ck_assert_int_lt(c->done_ns - c->called_ns, 10 * MS);
    expect_refused(w, KP_ECLOSED);
    world_check(w);
    world_end(w);
}
END_TEST

/* K7: again and again. */
START_TEST(close_twice)
{
    struct world *w = world_begin(&(struct world_options){0});
    struct world_call *a, *b;

    (void)world_send(w, 0);
    a = world_close(w, KP_FOREVER);
    b = world_close(w, KP_FOREVER);
    world_settle(w);
    ck_assert_int_eq(a->err, KP_OK);
    ck_assert_int_eq(b->err, KP_OK);
    ck_assert_int_eq(kp_close(world_producer(w), 0, NULL), KP_OK);
    ck_assert_int_eq(kp_close(world_producer(w), -2, NULL), KP_EINVAL);
    world_end(w);
}
END_TEST

/* The earliest of several limits counts. */
START_TEST(the_shorter_close_forces)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_record *r;
    struct world_call *a, *b;

    (void)world_rule(w, "api=produce count=1 answer_ms=5000");
    r = world_send(w, 0);
    a = world_close(w, KP_FOREVER);
    world_run_ms(w, 100);
    b = world_close(w, 200);
    world_settle(w);
    ck_assert_int_eq(a->err, KP_ECLOSED);
    ck_assert_int_eq(b->err, KP_ECLOSED);
    ck_assert_int_eq(b->done_ns - b->called_ns, 200 * MS);
    world_expect(r, KP_ECLOSED, KP_OK, KP_STORED_MAYBE, -1);
    world_check(w);
    world_end(w);
}
END_TEST

/* A22, A48: timeout 0: what was never sent is NO, what is on a wire is
 * MAYBE. */
START_TEST(forced)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2, .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_record *sent, *queued, *open;
    struct world_call *c;

    (void)world_send(w, 0);
    (void)world_send(w, 1);
    world_settle(w);
    (void)world_rule(w, "api=produce count=-1 answer_ms=5000");
    sent = world_send(w, 0);
    world_run_ms(w, 5);
    world_link(w, 1)->window = 0; /* nothing more leaves */
    queued = world_send(w, 1);
    world_run_ms(w, 5);
    open = world_send(w, 0);
    c = world_close(w, 0);
    world_settle(w);
    ck_assert_int_eq(c->err, KP_ECLOSED);
    ck_assert_int_eq(c->error.err, KP_ECLOSED);
    ck_assert_int_eq(c->done_ns, c->called_ns);
    world_expect(sent, KP_ECLOSED, KP_OK, KP_STORED_MAYBE, -1);
    /* handed to the connection, not a byte of it written: cannot be told */
    world_expect(queued, KP_ECLOSED, KP_OK, KP_STORED_MAYBE, -1);
    world_expect(open, KP_ECLOSED, KP_OK, KP_STORED_NO, -1);
    world_check(w);
    world_end(w);
}
END_TEST

/* Retried before and waiting for its backoff: as its attempts say. */
START_TEST(forced_in_a_backoff)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_record *r;
    struct world_call *c;

    (void)world_rule(w, _i == 0 ? "api=produce count=1 error=19"
                                : "api=produce count=1 error=7");
    r = world_send(w, 0);
    world_run_ms(w, 40);
    ck_assert_uint_eq(world_attempts(w), 1);
    c = world_close(w, 0);
    world_settle(w);
    ck_assert_int_eq(c->err, KP_ECLOSED);
    world_expect(r, KP_ECLOSED, _i == 0 ? 19 : 7,
                 _i == 0 ? KP_STORED_NO : KP_STORED_MAYBE, -1);
    world_end(w);
}
END_TEST

/* Nobody can be reached: close takes its time and no more. */
START_TEST(close_with_dead_brokers)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_record *r;
    struct world_call *c;

    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    world_run_ms(w, 100);
    r = world_send(w, 0);
    c = world_close(w, 3000);
    world_settle(w);
    ck_assert_int_eq(c->err, KP_ECLOSED);
    ck_assert_int_eq(c->done_ns - c->called_ns, 3000 * MS);
    world_expect(r, KP_ECLOSED, KP_ECONNECT, KP_STORED_NO, -1);
    world_end(w);
}
END_TEST

/* Without a limit it lasts as long as the records do. */
START_TEST(close_forever_lasts_as_long_as_the_records)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "delivery.timeout.ms",
                                   "5000", "request.timeout.ms", "1000")});
    struct world_record *r;
    struct world_call *c;

    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    world_run_ms(w, 100);
    r = world_send(w, 0);
    c = world_close(w, KP_FOREVER);
    world_settle(w);
    ck_assert_int_eq(c->err, KP_OK);
    ck_assert_int_eq(c->done_ns - r->returned_ns, 5000 * MS);
    world_expect(r, KP_ETIMEDOUT, KP_ECONNECT, KP_STORED_NO, -1);
    world_end(w);
}
END_TEST

/* A close in the middle of a split, graceful and forced. */
START_TEST(close_in_the_middle_of_a_split)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms",
                                   "10")});
    struct world_record *r;
    struct world_call *c;
    bool by_force = _i % 2 != 0;

    ck_assert(kb_topic_set(world_cluster(w), "t", "max.message.bytes", "300"));
    r = world_send_many(w, 0, 20, 50);
    world_run_until_attempts(w, (size_t)_i / 2 + 1);
    world_run_ms(w, 1);
    c = world_close(w, by_force ? 0 : KP_FOREVER);
    world_settle(w);
    ck_assert_int_eq(c->err, by_force ? KP_ECLOSED : KP_OK);
    for (uint32_t i = 0; i < 20; i++) {
        ck_assert(world_record(w, r->id + i)->reported);
        ck_assert_uint_eq(world_record(w, r->id + i)->callbacks, 1);
        if (!by_force)
            world_expect(world_record(w, r->id + i), KP_OK, KP_OK,
                         KP_STORED_YES, (int64_t)i);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* -- from a callback -- */

static kp_err from_callback;

static void close_in_callback(struct world *w, struct world_record *r)
{
    if (r->id == 0)
        from_callback = kp_close(world_producer(w), 1000, NULL);
}

/* It begins a close with timeout 0; the next turn makes it. */
START_TEST(close_from_a_callback)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2, .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_record *a, *b;
    struct world_call *c;

    world_on_report(w, close_in_callback);
    a = world_send(w, 0);
    (void)world_rule(w, "api=produce partition=1 count=-1 error=19");
    b = world_send(w, 1);
    world_settle(w);
    ck_assert_int_eq(from_callback, KP_PENDING);
    ck_assert_int_eq(a->report.err, KP_OK);
    ck_assert_int_eq(b->report.err, KP_ECLOSED);
    ck_assert_int_eq(b->report.stored, KP_STORED_NO);
    expect_refused(w, KP_ECLOSED);
    c = world_close(w, KP_FOREVER);
    world_settle(w);
    ck_assert_int_eq(c->err, KP_ECLOSED);
    world_end(w);
}
END_TEST

static kp_err said[8];

static void deadlocks_in_callback(struct world *w, struct world_record *r)
{
    kp_producer *p = world_producer(w);
    kp_report report;

    (void)r;
    said[0] = kp_flush(p, 1000, NULL);
    said[1] = kp_flush(p, KP_FOREVER, NULL);
    said[2] = kp_producer_destroy(p);
    said[3] = kp_partitions_for(p, "t", 100, &(int32_t){0}, NULL, NULL);
    said[4] = kp_future_wait(&r->future, KP_FOREVER, &report);
    said[5] = kp_future_wait(&r->future, 0, &report);
    said[6] = kp_partitions_for(p, "t", 0, &(int32_t){0}, NULL, NULL);
}

/* 13.4: calls that would wait for the thread they are made on. */
START_TEST(waits_from_a_callback)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0")});

    world_on_report(w, deadlocks_in_callback);
    (void)world_send(w, 0);
    world_settle(w);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(said[i], KP_EDEADLK);
    ck_assert_int_eq(said[5], KP_OK);
    ck_assert_int_eq(said[6], KP_OK);
    world_end(w);
}
END_TEST

/* -- blocked senders -- */

/* K7: who waits for memory or a topic is told. */
START_TEST(close_wakes_blocked_senders)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "buffer.memory", "65536",
                                   "batch.size", "16384")});
    struct world_record *unknown, *blocked = NULL;
    struct world_call *c;
    int i;

    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    world_run_ms(w, 100);
    unknown = world_send_what(w, &(struct world_what){.topic = "nowhere",
                                                      .partition = -1,
                                                      .flags = WORLD_FUTURE});
    ck_assert_int_eq(unknown->state, WORLD_WAITING);
    for (i = 0; i < 100; i++) {
        blocked = world_send_many(w, 0, 1, 4000);
        if (blocked->state == WORLD_WAITING)
            break;
    }
    ck_assert_int_lt(i, 100);
    world_run_ms(w, 10);
    c = world_close(w, 0);
    world_settle(w);
    ck_assert_int_eq(unknown->refused, KP_ECLOSED);
    ck_assert_int_eq(blocked->refused, KP_ECLOSED);
    ck_assert_int_eq(blocked->returned_ns, c->called_ns);
    ck_assert_int_eq(c->err, KP_ECLOSED);
    world_check(w);
    world_end(w);
}
END_TEST

/* Unwatched failures are told by close. */
START_TEST(close_tells_unwatched_failures)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_call *c;

    (void)world_rule(w, "api=produce count=1 error=18");
    (void)world_send_what(w, &(struct world_what){0});
    c = world_close(w, KP_FOREVER);
    while (!c->done)
        world_run_ms(w, 1);
    ck_assert_int_eq(c->err, KP_RECORD_LIST_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(c->error.text, "1 record(s)"));
    world_end(w);
}
END_TEST

/* A topic that is refused besides is no longer what matters. */
START_TEST(closed_weighs_more_than_a_refused_topic)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0")});

    (void)world_rule(w, "api=metadata topic=t count=1 error=29");
    (void)world_rule(w, "api=produce count=1 error=6"); /* asks */
    (void)world_send(w, 0);
    world_settle(w);
    expect_refused(w, KP_TOPIC_AUTHORIZATION_FAILED);
    (void)world_close(w, 1000);
    world_settle(w);
    expect_refused(w, KP_ECLOSED);
    world_end(w);
}
END_TEST

#ifdef KP_FAILMALLOC
static struct topic *topic_of(struct world *w)
{
    return kp__topics_find(w->p->topics, "t", 1);
}

static bool is_known(struct world *w, void *arg)
{
    (void)arg;
    return topic_of(w) != NULL;
}

/* A client that had no memory for what it knows of the partition, when it heard
 * of it. */
static struct world *begin_without_memory(void)
{
    for (long nth = 1; nth < 1000; nth++) {
        struct world *w = world_begin(&(struct world_options){.no_wait = true});

        world_fail_memory(w, nth, 0);
        ck_assert(kp__producer_post(w->p, OP_WANT_TOPIC, "t", 1));
        (void)world_run_until(w, is_known, NULL, 100);
        world_fail_memory(w, -1, 0);
        if (is_known(w, NULL) &&
            kp__topic_view(topic_of(w))->queues[0]->sender == NULL)
            return w;
        world_end(w);
    }
    ck_abort_msg("no allocation is that of a partition");
    return NULL;
}

static bool has_turned(struct world *w, void *arg)
{
    return world_turns(w) >= *(const uint64_t *)arg;
}

/* Nor is there when the time is up: what was sent fails when there is, and not
 * at its own deadline. */
START_TEST(a_close_without_memory_ends)
{
    struct world *w = begin_without_memory();
    struct world_record *r;
    struct world_call *c;
    uint64_t turns;

    world_link(w, 1)->stall_from = true;
    r = world_send(w, 0);
    ck_assert_int_eq(r->state, WORLD_TAKEN);
    world_fail_memory(w, 1, -1);
    c = world_close(w, 0);
    turns = world_turns(w) + 3;
    ck_assert(world_run_until(w, has_turned, &turns, 1));
    ck_assert(!c->done);
    world_fail_memory(w, -1, 0);
    world_run_ms(w, 10);
    ck_assert(c->done);
    world_expect(r, KP_ECLOSED, WORLD_ANY_CAUSE, KP_STORED_NO, -1);
    world_end(w);
}
END_TEST
#endif

static Suite *close_ends_suite(void)
{
    Suite *s = suite_create("close_ends");
    TCase *t = tcase_create("close_ends");

    tcase_add_test(t, graceful);
    tcase_add_test(t, close_twice);
    tcase_add_test(t, the_shorter_close_forces);
    tcase_add_test(t, forced);
    tcase_add_loop_test(t, forced_in_a_backoff, 0, 2);
    tcase_add_test(t, close_with_dead_brokers);
    tcase_add_test(t, close_forever_lasts_as_long_as_the_records);
    tcase_add_loop_test(t, close_in_the_middle_of_a_split, 0, 16);
    tcase_add_test(t, close_from_a_callback);
    tcase_add_test(t, waits_from_a_callback);
    tcase_add_test(t, close_wakes_blocked_senders);
    tcase_add_test(t, closed_weighs_more_than_a_refused_topic);
    tcase_add_test(t, close_tells_unwatched_failures);
#ifdef KP_FAILMALLOC
    tcase_add_test(t, a_close_without_memory_ends);
#endif
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(close_ends_suite)
