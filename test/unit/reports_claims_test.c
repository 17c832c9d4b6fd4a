/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches that another thread is compressing when something happens to them:
 * the deadline, a close, a flush, a fatal error.  The test is that thread:
 * it claims a batch, lets the world go on, and finishes late. */
#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define MS KP_NS_PER_MS

struct claim {
    struct partition_queue *queue;
    struct batch *batch;
    struct compressor *compressor;
};

static struct world *begin(void)
{
    return world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "compression.type", "lz4",
                                   "batch.size", "500",
                                   "delivery.timeout.ms", "3000",
                                   "request.timeout.ms", "1000")});
}

/* Fill a batch without compressing it, and claim it. */
static struct world_record *claim_one(struct world *w, struct claim *c)
{
    struct world_record *r = NULL, *first = NULL;
    struct topic *t = kp__topics_find(w->p->topics, "t", 1);
    struct queue_view view;

    c->queue = kp__topic_view(t)->queues[0];
    do {
        r = world_send_what(w, &(struct world_what){
                                   .size = 200,
                                   .flags = WORLD_NOWAIT | WORLD_FUTURE |
                                            WORLD_CALLBACK | WORLD_RANDOM});
        if (first == NULL)
            first = r;
        ck_assert_int_eq(kp__queue_look(c->queue, true, &view), QUEUE_OK);
    } while (view.head_place == PLACE_OPEN);
    ck_assert_int_eq(kp__queue_claim(c->queue, true, &c->batch), QUEUE_OK);
    c->compressor = kp__compressors_take(&w->p->compressors);
    ck_assert_ptr_nonnull(c->compressor);
    return first;
}

static void finish(struct world *w, struct claim *c)
{
    kp__compress_and_finish(&w->p->accumulator, c->batch, c->compressor);
    kp__io_wake(&w->p->bell, 0);
}

/* Nobody waits for the claimant, and what is behind waits for its turn. */
START_TEST(in_time)
{
    struct world *w = begin();
    struct claim c;
    struct world_record *r = claim_one(w, &c);
    uint64_t turns;

    world_run_ms(w, 100);
    turns = world_turns(w);
    world_run_ms(w, 1000);
    ck_assert_uint_le(world_turns(w) - turns, 3);
    ck_assert_uint_eq(world_attempts(w), 0);
    finish(w, &c);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* The deadline comes first: reported in time, and the claimant gives the memory
 * back when it is done. */
START_TEST(after_the_deadline)
{
    struct world *w = begin();
    struct claim c;
    struct world_record *r = claim_one(w, &c);
    struct pool_stats before, after;

    world_run_ms(w, 3100);
    world_expect(r, KP_ETIMEDOUT, KP_OK, KP_STORED_NO, -1);
    ck_assert_int_eq(r->reported_ns - r->returned_ns, 3000 * MS);
    kp__pool_stats(w->p->pool, &before);
    ck_assert_uint_lt(before.available_bytes, before.total_bytes);
    finish(w, &c);
    world_run_ms(w, 10);
    kp__pool_stats(w->p->pool, &after);
    ck_assert_uint_gt(after.available_bytes, before.available_bytes);
    world_settle(w);
    r = world_send(w, 0);
    world_settle(w);
    ck_assert_int_eq(r->report.err, KP_OK);
    world_check(w);
    world_end(w);
}
END_TEST

START_TEST(after_a_forced_close)
{
    struct world *w = begin();
    struct claim c;
    struct world_record *r = claim_one(w, &c);
    struct world_call *call = world_close(w, 100);

    world_run_ms(w, 150);
    /* all is reported; the claimant is a call of its own that has not
     * returned */
    world_expect(r, KP_ECLOSED, KP_OK, KP_STORED_NO, -1);
    ck_assert(call->done);
    ck_assert_int_eq(call->err, KP_ECLOSED);
    finish(w, &c);
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

START_TEST(a_graceful_close_waits)
{
    struct world *w = begin();
    struct claim c;
    struct world_record *r = claim_one(w, &c);
    struct world_call *call = world_close(w, KP_FOREVER);

    world_run_ms(w, 500);
    ck_assert(!call->done);
    finish(w, &c);
    world_settle(w);
    ck_assert_int_eq(call->err, KP_OK);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_check(w);
    world_end(w);
}
END_TEST

START_TEST(a_flush_waits)
{
    struct world *w = begin();
    struct claim c;
    struct world_record *r = claim_one(w, &c);
    struct world_call *call = world_flush(w, KP_FOREVER);

    world_run_ms(w, 500);
    ck_assert(!call->done);
    finish(w, &c);
    world_settle(w);
    ck_assert_int_eq(call->err, KP_OK);
    ck_assert(r->reported);
    world_check(w);
    world_end(w);
}
END_TEST

START_TEST(after_a_fatal_error)
{
    struct world *w = begin();
    struct world_record *first, *r;
    struct claim c;

    (void)world_rule(w, "api=produce count=1 error=31 answer_ms=100");
    first = world_send(w, 0);
    world_run_ms(w, 50);
    r = claim_one(w, &c);
    world_run_ms(w, 200);
    world_expect(first, KP_CLUSTER_AUTHORIZATION_FAILED, KP_OK, KP_STORED_NO,
                 -1);
    world_expect(r, KP_CLUSTER_AUTHORIZATION_FAILED, KP_OK, KP_STORED_NO, -1);
    finish(w, &c);
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

/* The claim is given back undone, as when no compressor is free: the I/O
 * thread does it. */
START_TEST(given_back)
{
    struct world *w = begin();
    struct claim c;
    struct world_record *r = claim_one(w, &c);

    world_run_ms(w, 100);
    kp__queue_unclaim(c.queue, c.batch);
    kp__io_wake(&w->p->bell, 0);
    kp__compressors_give(&w->p->compressors, c.compressor);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *reports_claims_suite(void)
{
    Suite *s = suite_create("reports_claims");
    TCase *t = tcase_create("reports_claims");

    tcase_add_test(t, in_time);
    tcase_add_test(t, after_the_deadline);
    tcase_add_test(t, after_a_forced_close);
    tcase_add_test(t, a_graceful_close_waits);
    tcase_add_test(t, a_flush_waits);
    tcase_add_test(t, after_a_fatal_error);
    tcase_add_test(t, given_back);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(reports_claims_suite)
