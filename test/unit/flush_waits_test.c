/* SPDX-License-Identifier: BSD-2-Clause */
/* kp_flush: what it waits for, what it does not, and what it returns. */
#include <string.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define MS KP_NS_PER_MS
#define UNWATCHED 0u

static struct world_record *send_plain(struct world *w, int32_t partition)
{
    return world_send_what(w, &(struct world_what){.partition = partition,
                                                   .flags = UNWATCHED});
}

static bool call_done(struct world *w, void *arg)
{
    (void)w;
    return ((struct world_call *)arg)->done;
}

static void wait_for(struct world *w, struct world_call *c)
{
    ck_assert(world_run_until(w, call_done, c, 3600000));
}

/* A20, K8: linger is as long as it may be; the flush sends all at once. */
START_TEST(flush_ends_the_linger)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 3,
        .settings = WORLD_SETTINGS("linger.ms", "60000")});
    struct world_record *r[100];
    struct world_call *c;

    for (int i = 0; i < 100; i++)
        r[i] = world_send(w, i % 3);
    world_run_ms(w, 1000);
    ck_assert_uint_eq(world_attempts(w), 0);
    c = world_flush(w, KP_FOREVER);
    wait_for(w, c);
    ck_assert_int_eq(c->err, KP_OK);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(r[i]->report.err, KP_OK);
    ck_assert_uint_eq(world_requests(w), 1);
    ck_assert_int_lt(c->done_ns - c->called_ns, 10 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* Callbacks have returned by then. */
START_TEST(flush_returns_after_the_callbacks)
{
    struct world *w = world_begin(&(struct world_options){0});
    struct world_record *r = world_send(w, 0);
    struct world_call *c = world_flush(w, KP_FOREVER);

    wait_for(w, c);
    ck_assert_uint_eq(r->callbacks, 1);
    ck_assert_int_le(r->callback_ns, c->done_ns);
    world_end(w);
}
END_TEST

START_TEST(nothing_to_flush)
{
    struct world *w = world_begin(&(struct world_options){0});
    struct world_call *c = world_flush(w, 0);

    /* the public call looks first, and then has nothing to wait for */
    ck_assert_int_eq(kp_flush(world_producer(w), 0, NULL), KP_OK);
    wait_for(w, c);
    world_end(w);
}
END_TEST

#ifdef KP_FAILMALLOC
/* Whichever allocation failed when the topic became known, and whichever fails
 * when the flush comes: a record is waited for. */
START_TEST(flush_waits_for_what_memory_was_short_for)
{
    long nth = 0, used;

    do {
        struct world *w = world_begin(&(struct world_options){
            .settings = WORLD_SETTINGS("linger.ms", "60000")});
        struct world_record *r;
        struct world_call *c;

        ck_assert_int_eq(
            kb_topic_create(world_cluster(w), "u", 1, 1, world_now_ns(w)), 0);
        used = world_allocations(w);
        world_fail_memory(w, ++nth, 0);
        r = world_send_what(
            w, &(struct world_what){.topic = "u", .flags = WORLD_FUTURE});
        ck_assert(world_run_until(w, world_send_returned, r, 60000));
        used = world_allocations(w) - used;
        world_fail_memory(w, 1 + _i, 0);
        c = world_flush(w, KP_FOREVER);
        wait_for(w, c);
        ck_assert_int_eq(c->err, KP_OK);
        ck_assert_msg(r->reported || r->state == WORLD_REFUSED,
                      "allocation %ld", nth);
        world_check(w);
        world_end(w);
    } while (used >= nth);
    ck_assert_int_gt(nth, 5);
}
END_TEST
#endif

/* Records sent after the call are not waited for, even if they fill the
 * batch that the flush found open. */
START_TEST(later_records_are_not_waited_for)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "60000")});
    struct world_record *before = world_send(w, 0), *after;
    struct world_call *c = world_flush(w, KP_FOREVER);

    world_run_ms(w, 1);
    after = world_send(w, 0);
    wait_for(w, c);
    ck_assert_int_eq(before->report.err, KP_OK);
    ck_assert(before->reported);
    ck_assert(!after->reported);
    world_settle(w);
    ck_assert_int_ge(after->reported_ns - after->called_ns, 60000 * MS);
    world_end(w);
}
END_TEST

/* ... though a stream of them never stops. */
START_TEST(flush_ends_under_load)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 3, .settings = WORLD_SETTINGS("linger.ms", "5")});
    struct world_record *last = NULL;
    struct world_call *c = NULL;

    for (int i = 0; i < 2000; i++) {
        struct world_record *r = world_send(w, i % 3);

        if (i == 500) {
            last = r;
            c = world_flush(w, KP_FOREVER);
        }
        world_run_until_ns(w, world_now_ns(w) + MS / 5);
    }
    ck_assert(c->done);
    ck_assert_int_eq(c->err, KP_OK);
    ck_assert(last->reported);
    ck_assert_int_lt(c->done_ns - c->called_ns, 20 * MS);
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

/* A record that is in the retry loop is waited for. */
START_TEST(flush_waits_for_retries)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms", "100",
                                   "retry.backoff.max.ms", "100")});
    struct world_record *r;
    struct world_call *c;

    (void)world_rule(w, "api=produce count=5 error=19");
    r = world_send(w, 0);
    world_run_ms(w, 50);
    c = world_flush(w, KP_FOREVER);
    wait_for(w, c);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_gt(c->done_ns - c->called_ns, 400 * MS);
    world_end(w);
}
END_TEST

/* KAFKA-19479: the pieces of a split batch are waited for. */
START_TEST(flush_waits_for_the_pieces_of_a_split)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "1000", "retry.backoff.ms",
                                   "10")});
    struct world_record *r;
    struct world_call *c;

    ck_assert(kb_topic_set(world_cluster(w), "t", "max.message.bytes", "300"));
    r = world_send_many(w, 0, 20, 50);
    c = world_flush(w, KP_FOREVER);
    wait_for(w, c);
    ck_assert_int_eq(c->err, KP_OK);
    for (uint32_t i = 0; i < 20; i++) {
        ck_assert(world_record(w, r->id + i)->reported);
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK, KP_STORED_YES,
                     (int64_t)i);
    }
    ck_assert_uint_gt(world_attempts(w), 5);
    world_check(w);
    world_end(w);
}
END_TEST

/* A flush while a batch is in pieces. */
START_TEST(flush_in_the_middle_of_a_split)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms",
                                   "10")});
    struct world_record *r;
    struct world_call *c;

    ck_assert(kb_topic_set(world_cluster(w), "t", "max.message.bytes", "300"));
    r = world_send_many(w, 0, 20, 50);
    world_run_until_attempts(w, (size_t)_i);
    c = world_flush(w, KP_FOREVER);
    wait_for(w, c);
    for (uint32_t i = 0; i < 20; i++)
        ck_assert(world_record(w, r->id + i)->reported);
    world_check(w);
    world_end(w);
}
END_TEST

START_TEST(flush_times_out)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_record *r;
    struct world_call *c;

    (void)world_rule(w, "api=produce count=1 answer_ms=1000");
    r = world_send(w, 0);
    c = world_flush(w, 100);
    wait_for(w, c);
    ck_assert_int_eq(c->err, KP_PENDING);
    ck_assert_int_eq(c->done_ns - c->called_ns, 100 * MS);
    ck_assert(!r->reported);
    c = world_flush(w, 5000);
    wait_for(w, c);
    ck_assert_int_eq(c->err, KP_OK);
    ck_assert(r->reported);
    world_end(w);
}
END_TEST

/* The broker is gone: the flush lasts as long as the records do. */
START_TEST(flush_lasts_as_long_as_the_records)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("delivery.timeout.ms", "5000",
                                   "request.timeout.ms", "1000")});
    struct world_record *r;
    struct world_call *c;

    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    r = world_send(w, 0);
    c = world_flush(w, KP_FOREVER);
    wait_for(w, c);
    ck_assert_int_eq(c->err, KP_OK); /* it was watched */
    ck_assert_int_eq(c->done_ns - r->returned_ns, 5000 * MS);
    world_expect(r, KP_ETIMEDOUT, KP_ECONNECT, KP_STORED_NO, -1);
    world_end(w);
}
END_TEST

/* Promise 10: what nobody watched is told by the next flush, once. */
START_TEST(unwatched_failures)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2, .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_call *c;

    (void)world_rule(w, "api=produce partition=0 count=1 error=18");
    (void)world_rule(w, "api=produce partition=1 count=1 error=87");
    for (int i = 0; i < 3; i++)
        (void)send_plain(w, 0);
    (void)send_plain(w, 1);
    (void)world_send(w, 1); /* watched, in the same batch */
    c = world_flush(w, KP_FOREVER);
    wait_for(w, c);
    ck_assert_int_eq(c->err, KP_RECORD_LIST_TOO_LARGE);
    ck_assert_int_eq(c->error.err, KP_RECORD_LIST_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(c->error.text, "4 record(s)"));
    c = world_flush(w, KP_FOREVER);
    wait_for(w, c);
    ck_assert_int_eq(c->err, KP_OK);
    world_end(w);
}
END_TEST

/* Some of a split batch failed, and only those are told. */
START_TEST(unwatched_failures_of_a_split)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms",
                                   "10")});
    struct world_call *c;

    ck_assert(kb_topic_set(world_cluster(w), "t", "max.message.bytes", "300"));
    (void)send_plain(w, 0);
    (void)world_send_what(w, &(struct world_what){.size = 500});
    (void)send_plain(w, 0);
    c = world_flush(w, KP_FOREVER);
    wait_for(w, c);
    ck_assert_int_eq(c->err, KP_MESSAGE_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(c->error.text, "1 record(s)"));
    ck_assert_str_eq(world_log(w, "t", 0), "0 2");
    world_end(w);
}
END_TEST

/* Many flushes at once, each with its own records. */
START_TEST(many_flushes)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 100 * MS,
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_call *c[60];
    struct world_record *r[60];

    for (int i = 0; i < 60; i++) {
        r[i] = world_send(w, 0);
        c[i] = world_flush(w, KP_FOREVER);
        world_run_ms(w, 1);
    }
    world_settle(w);
    for (int i = 0; i < 60; i++) {
        ck_assert_int_eq(c[i]->err, KP_OK);
        ck_assert_int_ge(c[i]->done_ns, r[i]->reported_ns);
        if (i > 0)
            ck_assert_int_ge(c[i]->done_ns, c[i - 1]->done_ns);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* More than are told apart: each is done all the same, and not before its
 * time. */
START_TEST(very_many_flushes)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 4, .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_call *c[300];
    struct world_record *r[300];

    (void)world_rule(w, "api=produce count=-1 answer_ms=150");
    for (int i = 0; i < 300; i++) {
        r[i] = world_send(w, i % 4);
        c[i] = world_flush(w, KP_FOREVER);
        world_run_ms(w, 1);
    }
    world_settle(w);
    for (int i = 0; i < 300; i++) {
        ck_assert_int_eq(c[i]->err, KP_OK);
        ck_assert_int_ge(c[i]->done_ns, r[i]->reported_ns);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* ... and those that share the last of them do not wait for all that comes
 * after it. */
START_TEST(very_many_flushes_end_under_load)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 4,
        .latency_ns = 100 * MS,
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_call *c[80];

    (void)world_send(w, 0);
    world_settle(w);
    for (int i = 0; i < 80; i++) {
        (void)world_send(w, i % 4);
        c[i] = world_flush(w, KP_FOREVER);
        world_run_ms(w, 1);
    }
    for (int i = 0; i < 3000; i++) {
        (void)world_send(w, i % 4);
        world_run_ms(w, 1);
    }
    for (int i = 0; i < 80; i++) {
        ck_assert(c[i]->done);
        ck_assert_int_eq(c[i]->err, KP_OK);
        ck_assert_int_lt(c[i]->done_ns - c[i]->called_ns, 2000 * MS);
    }
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

/* After as many flushes as 32 bits can count. */
START_TEST(flushes_are_told_apart_for_ever)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 100 * MS,
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_call *c[10];
    struct world_record *r[10];

    w->p->io->flush_first = w->p->io->flush_epoch = UINT32_MAX - 3;
    for (int i = 0; i < 10; i++) {
        r[i] = world_send(w, 0);
        c[i] = world_flush(w, KP_FOREVER);
        world_run_ms(w, 1);
    }
    world_settle(w);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(c[i]->err, KP_OK);
        ck_assert_int_ge(c[i]->done_ns, r[i]->reported_ns);
    }
    world_end(w);
}
END_TEST

/* kp_flush's first look: false as long as anything is unreported, true
 * after. */
START_TEST(first_look)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "20")});
    struct world_record *r;

    world_run_ms(w, 100);
    ck_assert(world_nothing_left(w));
    (void)world_rule(w, "api=produce count=1 error=19");
    r = world_send(w, 0);
    while (!r->reported) {
        ck_assert(!world_nothing_left(w));
        world_run_until_ns(w, world_now_ns(w) + MS / 4);
    }
    ck_assert(world_nothing_left(w));
    world_end(w);
}
END_TEST

static Suite *flush_waits_suite(void)
{
    Suite *s = suite_create("flush_waits");
    TCase *t = tcase_create("flush_waits");

    tcase_add_test(t, flush_ends_the_linger);
    tcase_add_test(t, flush_returns_after_the_callbacks);
    tcase_add_test(t, nothing_to_flush);
#ifdef KP_FAILMALLOC
    tcase_add_loop_test(t, flush_waits_for_what_memory_was_short_for, 0, 8);
#endif
    tcase_add_test(t, later_records_are_not_waited_for);
    tcase_add_test(t, flush_ends_under_load);
    tcase_add_test(t, flush_waits_for_retries);
    tcase_add_test(t, flush_waits_for_the_pieces_of_a_split);
    tcase_add_loop_test(t, flush_in_the_middle_of_a_split, 1, 8);
    tcase_add_test(t, flush_times_out);
    tcase_add_test(t, flush_lasts_as_long_as_the_records);
    tcase_add_test(t, unwatched_failures);
    tcase_add_test(t, unwatched_failures_of_a_split);
    tcase_add_test(t, many_flushes);
    tcase_add_test(t, very_many_flushes);
    tcase_add_test(t, very_many_flushes_end_under_load);
    tcase_add_test(t, flushes_are_told_apart_for_ever);
    tcase_add_test(t, first_look);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(flush_waits_suite)
