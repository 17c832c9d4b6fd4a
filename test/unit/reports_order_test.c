/* SPDX-License-Identifier: BSD-2-Clause */
/* How reports come: in which order, to whom first, what a callback may do,
 * record errors, completion queues, and memory given back before them. */
#include <stdio.h>
#include <string.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define MS KP_NS_PER_MS
#define FAST \
    "linger.ms", "0", "retry.backoff.ms", "10", "retry.backoff.max.ms", "10"

static struct world_record *send_as(struct world *w, int32_t partition,
                                    unsigned flags)
{
    return world_send_what(
        w, &(struct world_what){.partition = partition, .flags = flags});
}

/* K20: the callback of a record runs before its future is done. */
START_TEST(callback_before_future)
{
    struct world *w =
        world_begin(&(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r = world_send_many(w, 0, 5, 0);

    world_settle(w);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert(!world_record(w, r->id + i)->public_in_callback);
        ck_assert(world_record(w, r->id + i)->future_done);
    }
    world_end(w);
}
END_TEST

/* ... of a batch that was cut into pieces too. */
START_TEST(callback_before_future_of_a_split)
{
    struct world *w =
        world_begin(&(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;

    ck_assert(kb_topic_set(world_cluster(w), "t", "max.message.bytes", "300"));
    r = world_send_many(w, 0, 10, 50);
    world_settle(w);
    for (uint32_t i = 0; i < 10; i++) {
        ck_assert(!world_record(w, r->id + i)->public_in_callback);
        ck_assert_uint_eq(world_record(w, r->id + i)->callback_at, i);
    }
    world_end(w);
}
END_TEST

/* S23: without one in flight, the second batch is stored while the first is
 * retried: its future is done at once, its callback waits for the first's. */
START_TEST(callbacks_in_order_futures_at_once)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms", "500",
                                   "retry.backoff.max.ms", "500", "batch.size",
                                   "0", "enable.idempotence", "false")});
    struct world_record *a, *b, *c;

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, "api=produce count=1 error=19");
    a = send_as(w, 0, WORLD_CALLBACK);
    b = send_as(w, 0, WORLD_FUTURE);
    c = send_as(w, 0, WORLD_CALLBACK);
    world_run_ms(w, 100);
    ck_assert(!a->reported);
    ck_assert(b->future_done);
    world_expect(b, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert(!c->reported);
    world_settle(w);
    ck_assert_int_eq(a->callback_ns, c->callback_ns);
    ck_assert_uint_eq(a->callback_at + 1, c->callback_at);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 3);
    world_expect(c, KP_OK, KP_OK, KP_STORED_YES, 2);
    world_check(w);
    world_end(w);
}
END_TEST

/* Other partitions do not wait. */
START_TEST(partitions_do_not_wait_for_each_other)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2,
        .settings =
            WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms", "500")});
    struct world_record *a, *b;

    (void)world_rule(w, "api=produce partition=0 count=1 error=19");
    a = world_send(w, 0);
    b = world_send(w, 1);
    world_settle(w);
    ck_assert_int_gt(a->callback_ns - b->callback_ns, 300 * MS);
    world_end(w);
}
END_TEST

/* In one partition, whatever becomes of the batches: done, refused, late. */
START_TEST(callbacks_in_order_whatever_happens)
{
    struct world *w = world_begin(&(struct world_options){
        .settings =
            WORLD_SETTINGS(FAST, "batch.size", "0", "delivery.timeout.ms",
                           "2000", "request.timeout.ms", "1000")});

    (void)world_rule(w, "api=produce skip=3 count=1 error=18");
    (void)world_rule(w, "api=produce skip=8 count=1 answer=close");
    (void)world_rule(w, "api=produce skip=20 count=400 error=19");
    for (int i = 0; i < 60; i++) {
        (void)send_as(
            w, 0, i % 3 == 0 ? WORLD_CALLBACK : WORLD_CALLBACK | WORLD_FUTURE);
        world_run_ms(w, 7);
    }
    world_settle(w);
    for (uint32_t i = 0; i < 60; i++)
        ck_assert_uint_eq(world_record(w, i)->callback_at, i);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- what a callback may do -- */

static void send_again(struct world *w, struct world_record *r)
{
    if (r->id < 100)
        (void)world_send(w, 0);
}

/* S7: sends from callbacks go to a fresh batch and come back. */
START_TEST(send_from_a_callback)
{
    struct world *w =
        world_begin(&(struct world_options){.settings = WORLD_SETTINGS(FAST)});

    world_on_report(w, send_again);
    (void)world_send_many(w, 0, 10, 0);
    world_settle(w);
    ck_assert_uint_eq(world_record_count(w), 110);
    for (uint32_t i = 0; i < 110; i++)
        ck_assert_int_eq(world_record(w, i)->report.err, KP_OK);
    world_check(w);
    world_end(w);
}
END_TEST

/* ... of records that ran out of time. */
START_TEST(send_from_a_callback_at_the_deadline)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "delivery.timeout.ms", "2000",
                                   "request.timeout.ms", "1000")});

    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    world_run_ms(w, 10);
    world_on_report(w, send_again);
    (void)world_send_many(w, 0, 10, 0);
    world_run_ms(w, 2100);
    ck_assert_uint_eq(world_record_count(w), 20);
    kb_node_start(world_cluster(w), 1, KB_KEEP_STATE, world_now_ns(w));
    world_settle(w);
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_int_eq(world_record(w, i)->report.err, KP_ETIMEDOUT);
    for (uint32_t i = 10; i < 110; i++)
        ck_assert_int_eq(world_record(w, i)->report.err, KP_OK);
    world_check(w);
    world_end(w);
}
END_TEST

static void fill_memory(struct world *w, struct world_record *r)
{
    struct world_record *more;

    if (r->id != 0)
        return;
    do {
        more = world_send_many(w, 0, 1, 4000);
    } while (more->state == WORLD_TAKEN && more->id < 1000);
    r->user = more;
}

/* A send from a callback never waits. */
START_TEST(full_memory_in_a_callback)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "buffer.memory", "131072",
                                   "batch.size", "16384")});
    struct world_record *r, *last;

    world_on_report(w, fill_memory);
    r = world_send(w, 0);
    world_settle(w);
    last = r->user;
    ck_assert_ptr_nonnull(last);
    ck_assert_int_eq(last->state, WORLD_REFUSED);
    ck_assert_int_eq(last->refused, KP_EBUFFER);
    ck_assert_uint_gt(last->id, 10);
    world_check(w);
    world_end(w);
}
END_TEST

static void is_memory_back(struct world *w, struct world_record *r)
{
    struct world_record *more;

    (void)r;
    if (world_record_count(w) > 200)
        return;
    more = world_send_what(
        w, &(struct world_what){.size = 4000,
                                .flags = WORLD_NOWAIT | WORLD_FUTURE});
    ck_assert_int_eq(more->state, WORLD_TAKEN);
}

/* 6.2: who reacts to a report by sending again finds the memory given back. */
START_TEST(memory_is_back_before_the_report)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "buffer.memory", "65536", "batch.size",
                                   "60000")});
    struct world_record *r;
    int n = 0;

    do {
        r = world_send_what(
            w, &(struct world_what){.size = 4000,
                                    .flags = WORLD_NOWAIT | WORLD_CALLBACK});
        n++;
    } while (r->state == WORLD_TAKEN);
    ck_assert_int_gt(n, 5);
    world_on_report(w, is_memory_back);
    world_settle(w);
    ck_assert_int_gt((int)world_record_count(w), n + 3);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- KIP-467: some records are to blame -- */

static struct world *strict_topic(void)
{
    struct world *w =
        world_begin(&(struct world_options){.settings = WORLD_SETTINGS(FAST)});

    /* a compacted topic refuses records without a key, by their index */
    ck_assert(kb_topic_set(world_cluster(w), "t", "cleanup.policy", "compact"));
    return w;
}

static struct world_record *send_keyed(struct world *w, const char *key)
{
    return world_send_what(
        w, &(struct world_what){.key = key,
                                .flags = WORLD_FUTURE | WORLD_CALLBACK});
}

/* S49, S62, P9: several are named: each of them is invalid, and has the
 * broker's words about it; the others were only in bad company and may be sent
 * again as they are. */
START_TEST(several_records_to_blame)
{
    struct world *w = strict_topic();
    struct world_record *r[5];

    for (int i = 0; i < 5; i++)
        r[i] = send_keyed(w, i == 0 || i == 2 || i == 3 ? NULL : "k");
    world_settle(w);
    for (int i = 0; i < 5; i++) {
        bool bad = i == 0 || i == 2 || i == 3;

        world_expect(r[i], bad ? KP_INVALID_RECORD : KP_EBATCH,
                     bad ? KP_OK : KP_INVALID_RECORD, KP_STORED_NO, -1);
        ck_assert_int_eq(r[i]->report.kind,
                         bad ? KP_KIND_INVALID : KP_KIND_RETRIABLE);
        ck_assert_str_eq(
            r[i]->report.text,
            bad ? "Compacted topic cannot accept message without key."
                : "One or more records have been rejected");
        ck_assert_uint_eq(r[i]->callback_at, (uint64_t)i);
    }
    ck_assert_uint_eq(world_attempts(w), 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* One is named: it has the partition's error. */
START_TEST(one_record_to_blame)
{
    struct world *w = strict_topic();
    struct world_record *r[3];

    for (int i = 0; i < 3; i++)
        r[i] = send_keyed(w, i == 1 ? NULL : "k");
    world_settle(w);
    world_expect(r[0], KP_EBATCH, KP_INVALID_RECORD, KP_STORED_NO, -1);
    world_expect(r[1], KP_INVALID_RECORD, KP_OK, KP_STORED_NO, -1);
    world_expect(r[2], KP_EBATCH, KP_INVALID_RECORD, KP_STORED_NO, -1);
    world_check(w);
    world_end(w);
}
END_TEST

/* S62: nobody is named, and nothing is said: all have the partition's error, and
 * no text but the code's own sentence. */
START_TEST(no_record_to_blame)
{
    struct world *w =
        world_begin(&(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;

    (void)world_rule(w, "api=produce count=1 error=87");
    r = world_send_many(w, 0, 3, 0);
    world_settle(w);
    for (uint32_t i = 0; i < 3; i++) {
        world_expect(world_record(w, r->id + i), KP_INVALID_RECORD, KP_OK,
                     KP_STORED_NO, -1);
        ck_assert_ptr_null(world_record(w, r->id + i)->report.text);
    }
    ck_assert_uint_gt(strlen(kp_err_text(KP_INVALID_RECORD)), 20);
    world_check(w);
    world_end(w);
}
END_TEST

/* All of them are. */
START_TEST(all_records_to_blame)
{
    struct world *w = strict_topic();
    struct world_record *r = world_send_many(w, 0, 3, 0);

    world_settle(w);
    for (uint32_t i = 0; i < 3; i++)
        world_expect(world_record(w, r->id + i), KP_INVALID_RECORD, KP_OK,
                     KP_STORED_NO, -1);
    ck_assert_uint_eq(world_attempts(w), 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* In a batch that was cut: the piece that was refused names its own. */
START_TEST(a_record_of_a_piece_to_blame)
{
    struct world *w = strict_topic();
    struct world_record *r[10];

    ck_assert(kb_topic_set(world_cluster(w), "t", "max.message.bytes", "300"));
    for (int i = 0; i < 10; i++)
        r[i] = send_keyed(w, i == 7 ? NULL : "k");
    world_settle(w);
    ck_assert_int_eq(r[7]->report.err, KP_INVALID_RECORD);
    ck_assert_int_eq(r[0]->report.err, KP_OK);
    for (int i = 0; i < 10; i++) {
        if (i == 7 || r[i]->report.err == KP_OK)
            continue;
        world_expect(r[i], KP_EBATCH, KP_INVALID_RECORD, KP_STORED_NO, -1);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* -- completion queues -- */

START_TEST(queue_in_order)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2, .settings = WORLD_SETTINGS(FAST, "batch.size", "0")});

    (void)world_rule(w, "api=produce partition=0 skip=2 count=1 error=19");
    for (int i = 0; i < 40; i++)
        (void)send_as(w, i % 2,
                      i % 5 == 0 ? WORLD_QUEUE | WORLD_FUTURE : WORLD_QUEUE);
    world_settle(w);
    for (int p = 0; p < 2; p++) {
        uint64_t last = 0;

        for (uint32_t i = (uint32_t)p; i < 40; i += 2) {
            const struct world_record *r = world_record(w, i);

            ck_assert_uint_eq(r->polled, 1);
            ck_assert_int_eq(r->report.err, KP_OK);
            if (i > 1)
                ck_assert_uint_gt(r->polled_at, last);
            last = r->polled_at;
        }
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* Reports not polled are kept, and are part of buffer.memory; they come, in
 * pieces of any size, later. */
START_TEST(queue_polled_late)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "batch.size", "500")});
    struct world_call *c;

    world_poll_queue(w, false);
    for (int i = 0; i < 100; i++)
        (void)send_as(w, 0, WORLD_QUEUE);
    c = world_flush(w, KP_FOREVER);
    world_run_ms(w, 1000);
    ck_assert(c->done); /* posted is reported */
    for (uint32_t i = 0; i < 100; i++) {
        ck_assert(!world_record(w, i)->reported);
        world_poll_now(w, 1);
        ck_assert(world_record(w, i)->reported);
        ck_assert_int_eq(world_record(w, i)->report.offset, i);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* They stay pollable when the producer is gone. */
START_TEST(queue_polled_after_close)
{
    struct world *w =
        world_begin(&(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_call *c;

    world_poll_queue(w, false);
    for (int i = 0; i < 10; i++)
        (void)send_as(w, 0, WORLD_QUEUE);
    c = world_close(w, KP_FOREVER);
    world_run_ms(w, 1000);
    ck_assert(c->done);
    ck_assert_int_eq(c->err, KP_OK);
    world_poll_now(w, SIZE_MAX);
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_int_eq(world_record(w, i)->report.err, KP_OK);
    world_end(w);
}
END_TEST

/* Callbacks and queue entries of one batch. */
START_TEST(all_ways_in_one_batch)
{
    struct world *w =
        world_begin(&(struct world_options){.settings = WORLD_SETTINGS(FAST)});

    for (unsigned i = 0; i < 64; i++) {
        unsigned flags = i % 4 == 0   ? WORLD_FUTURE
                         : i % 4 == 1 ? WORLD_CALLBACK
                         : i % 4 == 2 ? WORLD_QUEUE
                                      : WORLD_FUTURE | WORLD_CALLBACK;

        (void)send_as(w, 0, flags);
    }
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 1);
    for (uint32_t i = 0; i < 64; i++) {
        const struct world_record *r = world_record(w, i);

        world_expect(r, KP_OK, KP_OK, KP_STORED_YES, (int64_t)i);
        ck_assert_uint_eq(r->callbacks, i % 4 == 1 || i % 4 == 3 ? 1 : 0);
        ck_assert_uint_eq(r->polled, i % 4 == 2 ? 1 : 0);
        ck_assert(r->future_done == (i % 4 == 0 || i % 4 == 3));
    }
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *reports_order_suite(void)
{
    Suite *s = suite_create("reports_order");
    TCase *t = tcase_create("reports_order");

    tcase_add_test(t, callback_before_future);
    tcase_add_test(t, callback_before_future_of_a_split);
    tcase_add_test(t, callbacks_in_order_futures_at_once);
    tcase_add_test(t, partitions_do_not_wait_for_each_other);
    tcase_add_test(t, callbacks_in_order_whatever_happens);
    tcase_add_test(t, send_from_a_callback);
    tcase_add_test(t, send_from_a_callback_at_the_deadline);
    tcase_add_test(t, full_memory_in_a_callback);
    tcase_add_test(t, memory_is_back_before_the_report);
    tcase_add_test(t, several_records_to_blame);
    tcase_add_test(t, one_record_to_blame);
    tcase_add_test(t, no_record_to_blame);
    tcase_add_test(t, all_records_to_blame);
    tcase_add_test(t, a_record_of_a_piece_to_blame);
    tcase_add_test(t, queue_in_order);
    tcase_add_test(t, queue_polled_late);
    tcase_add_test(t, queue_polled_after_close);
    tcase_add_test(t, all_ways_in_one_batch);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(reports_order_suite)
