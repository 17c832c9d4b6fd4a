/* SPDX-License-Identifier: BSD-2-Clause */
/* Who waits in a flush compresses meanwhile: which batches, how long, and what
 * becomes of a batch that such a thread has claimed when something else
 * happens to it. */
#include "include/kp/errors.h"
#include "lib/api/flush.h"
#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define MS KP_NS_PER_MS

static struct world *begin(const char *codec, int32_t partitions)
{
    return world_begin(&(struct world_options){
        .partitions = partitions,
        .settings = WORLD_SETTINGS(
            "linger.ms", "1000", "compression.type", codec, "batch.size", "500",
            "delivery.timeout.ms", "3000", "request.timeout.ms", "1000")});
}

/* Records that are sealed in batches of two, and not compressed: their senders
 * may not wait. */
static struct world_record *backlog(struct world *w, int32_t partition, int n)
{
    struct world_record *first = NULL;

    for (int i = 0; i < n; i++) {
        struct world_record *r = world_send_what(
            w, &(struct world_what){.partition = partition,
                                    .size = 200,
                                    .flags = WORLD_NOWAIT | WORLD_FUTURE |
                                             WORLD_CALLBACK | WORLD_RANDOM});

        ck_assert_int_eq(r->state, WORLD_TAKEN);
        if (first == NULL)
            first = r;
    }
    return first;
}

static void all_stored(struct world *w)
{
    for (uint32_t i = 0; i < world_record_count(w); i++) {
        ck_assert_int_eq(world_record(w, i)->report.err, KP_OK);
        ck_assert_int_eq(world_record(w, i)->report.stored, KP_STORED_YES);
    }
    world_check(w);
}

static bool call_done(struct world *w, void *arg)
{
    (void)w;
    return ((struct world_call *)arg)->done;
}

static bool has_claimed(struct world *w, void *arg)
{
    const struct world_call *c = arg;

    (void)w;
    return c->flush != NULL && c->flush->claimed != NULL;
}

/* Run until the flush has claimed a batch, and stop its thread there. */
static void stop_with_claim(struct world *w, struct world_call *c)
{
    ck_assert(world_run_until(w, has_claimed, c, 1000));
    c->held = true;
}

static size_t batches_of(const struct world *w)
{
    return world_attempts(w);
}

/* The I/O thread compresses the head and is then busy with its answer; all the
 * rest is ready long before. */
START_TEST(the_waiting_thread_does_it)
{
    struct world *w = begin("lz4", 1);
    struct world_call *c;

    (void)backlog(w, 0, 40);
    c = world_flush(w, KP_FOREVER);
    world_run_ms(w, 0);
    ck_assert_uint_ge(c->compressed, 18);
    world_settle(w);
    ck_assert_int_eq(c->err, KP_OK);
    ck_assert_uint_lt(c->compressed, batches_of(w));
    all_stored(w);
    world_end(w);
}
END_TEST

/* In the middle of a queue too, where the I/O thread never looks, though the
 * broker is away. */
START_TEST(behind_batches_that_are_ready)
{
    struct world *w = begin("gzip", 1);
    struct world_call *c;

    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    world_run_ms(w, 100);
    (void)world_send_many(w, 0, 10, 200); /* they compress what they seal */
    (void)backlog(w, 0, 20);
    c = world_flush(w, KP_FOREVER);
    world_run_ms(w, 1);
    ck_assert_uint_ge(c->compressed, 3);
    kb_node_start(world_cluster(w), 1, KB_KEEP_STATE, world_now_ns(w));
    world_settle(w);
    ck_assert_int_eq(c->err, KP_OK);
    all_stored(w);
    world_end(w);
}
END_TEST

/* Partition by partition in turn: when two of each are done, none has three. */
START_TEST(partitions_take_turns)
{
    struct world *w = begin("lz4", 4);
    const struct topic_view *v =
        kp__topic_view(kp__topics_find(w->p->topics, "t", 1));
    struct claims *claims = &w->p->accumulator.claims;
    struct batch *b[8];
    struct compressor *k;

    for (int32_t p = 0; p < 4; p++)
        (void)backlog(w, p, 12);
    for (int32_t p = 0; p < 4; p++)
        kp__claims_offer(claims, v->queues[p]);
    for (int i = 0; i < 8; i++) {
        ck_assert(kp__claims_take(claims, &b[i]));
        ck_assert_int_eq(b[i]->queue->partition, i % 4);
        ck_assert_uint_eq(b[i]->ordinal, (uint64_t)i / 4);
    }
    for (int i = 0; i < 8; i++) {
        k = kp__compressors_take(&w->p->compressors);
        ck_assert_ptr_nonnull(k);
        kp__compress_and_finish(&w->p->accumulator, b[i], k);
    }
    world_settle(w);
    all_stored(w);
    world_end(w);
}
END_TEST

/* A queue that was offered again while it was found empty is not forgotten, and
 * one in which nothing is sealed is. */
START_TEST(offers_are_not_lost)
{
    struct world *w = begin("lz4", 1);
    struct partition_queue *q =
        kp__topic_view(kp__topics_find(w->p->topics, "t", 1))->queues[0];
    struct claims *claims = &w->p->accumulator.claims;
    struct batch *b = NULL;

    ck_assert(!kp__claims_take(claims, &b));
    kp__claims_offer(claims, q);
    ck_assert(!kp__claims_take(claims, &b));
    ck_assert(!kp__node_linked(&q->offer_link));
    (void)backlog(w, 0, 4);
    kp__claims_offer(claims, q);
    kp__claims_offer(claims, q);
    ck_assert(kp__claims_take(claims, &b));
    /* given back, it can be claimed again, and by place in the queue */
    kp__queue_unclaim(q, b);
    ck_assert(kp__claims_take(claims, &b));
    ck_assert_uint_eq(b->ordinal, 0);
    kp__queue_unclaim(q, b);
    world_settle(w);
    all_stored(w);
    world_end(w);
}
END_TEST

/* Without a codec there is nothing worth a wake-up. */
START_TEST(not_without_a_codec)
{
    struct world *w = begin("none", 1);
    struct world_call *c;

    (void)backlog(w, 0, 40);
    c = world_flush(w, KP_FOREVER);
    world_settle(w);
    ck_assert_uint_eq(c->compressed, 0);
    all_stored(w);
    world_end(w);
}
END_TEST

/* Nothing is begun that might not be done by the call's deadline. */
START_TEST(not_shortly_before_the_deadline)
{
    struct world *w = begin("lz4", 1);
    struct world_call *c;

    world_link(w, 1)->stall_to = true;
    (void)backlog(w, 0, 40);
    c = world_flush(w, 5);
    ck_assert(world_run_until(w, call_done, c, 1000));
    ck_assert_int_eq(c->err, KP_PENDING);
    ck_assert_int_eq(c->done_ns - c->called_ns, 5 * MS);
    ck_assert_uint_eq(c->compressed, 0);
    c = world_flush(w, 0);
    ck_assert(world_run_until(w, call_done, c, 1000));
    ck_assert_int_eq(c->done_ns, c->called_ns);
    ck_assert_uint_eq(c->compressed, 0);
    /* batches take longer here than is left */
    c = world_flush(w, 300);
    c->flush->longest_ns = 400 * MS;
    ck_assert(world_run_until(w, call_done, c, 1000));
    ck_assert_int_eq(c->err, KP_PENDING);
    ck_assert_int_eq(c->done_ns - c->called_ns, 300 * MS);
    ck_assert_uint_eq(c->compressed, 0);
    c = world_flush(w, 300);
    ck_assert(world_run_until(w, call_done, c, 1000));
    ck_assert_int_eq(c->done_ns - c->called_ns, 300 * MS);
    ck_assert_uint_ge(c->compressed, 10);
    world_link(w, 1)->stall_to = false;
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

/* The batch in hand is the last: a flush that is done does not go on with the
 * backlog of others. */
START_TEST(a_finished_flush_does_one_more_at_most)
{
    struct world *w = begin("lz4", 2);
    struct world_call *first, *second;

    (void)backlog(w, 0, 6);
    first = world_flush(w, KP_FOREVER);
    stop_with_claim(w, first);
    (void)backlog(w, 1, 60);
    second = world_flush(w, KP_FOREVER);
    second->held = true;
    /* the first's own batches are compressed by others meanwhile; let the one
     * it holds be done last */
    world_run_ms(w, 50);
    ck_assert_uint_eq(first->compressed, 0);
    first->held = false;
    world_run_ms(w, 50);
    ck_assert(first->done);
    ck_assert_uint_le(first->compressed, 3);
    second->held = false;
    world_settle(w);
    all_stored(w);
    world_end(w);
}
END_TEST

/* What stands behind a batch in hand waits for it, and nothing is lost. */
START_TEST(turns_between_claim_and_finish)
{
    struct world *w = begin("zstd", 1);
    struct world_call *c;
    size_t sent;

    (void)backlog(w, 0, 20);
    c = world_flush(w, KP_FOREVER);
    stop_with_claim(w, c);
    world_run_ms(w, 500);
    sent = batches_of(w);
    ck_assert_uint_le(sent, 2);
    ck_assert(!c->done);
    c->held = false;
    world_settle(w);
    ck_assert_int_eq(c->err, KP_OK);
    all_stored(w);
    world_end(w);
}
END_TEST

/* The records' deadline comes while the thread has a batch in hand: they are
 * reported in time, and its memory comes back when the thread goes on. */
START_TEST(deadline_while_compressing)
{
    struct world *w = begin("lz4", 1);
    struct world_record *last;
    struct world_call *c;

    last = world_record(w, backlog(w, 0, 20)->id + 19);
    c = world_flush(w, KP_FOREVER);
    stop_with_claim(w, c);
    world_run_ms(w, 3100);
    world_expect(last, KP_ETIMEDOUT, KP_OK, KP_STORED_NO, -1);
    ck_assert_int_eq(last->reported_ns - last->returned_ns, 3000 * MS);
    c->held = false;
    world_settle(w);
    ck_assert(c->done);
    world_check(w);
    world_end(w);
}
END_TEST

START_TEST(close_while_compressing)
{
    struct world *w = begin("lz4", 1);
    struct world_call *c, *close;

    (void)backlog(w, 0, 20);
    c = world_flush(w, KP_FOREVER);
    stop_with_claim(w, c);
    close = world_close(w, 0);
    world_run_ms(w, 10);
    ck_assert(close->done);
    ck_assert_int_eq(close->err, KP_ECLOSED);
    c->held = false;
    world_settle(w);
    ck_assert(c->done);
    ck_assert_int_eq(c->err, KP_OK);
    world_check(w);
    world_end(w);
}
END_TEST

#define TAKEN_MAX 16

/* All compressors that there are; returns how many. */
static int take_all(struct record_accumulator *a, struct compressor **taken)
{
    int n = 0;

    while ((taken[n] = kp__compressors_take(a->compressors)) != NULL)
        ck_assert_int_lt(++n, TAKEN_MAX);
    return n;
}

static void give_all(struct record_accumulator *a, struct compressor **taken,
                     int n)
{
    while (n > 0)
        kp__compressors_give(a->compressors, taken[--n]);
}

/* All compressors are in use when the flush begins, by senders or by other
 * flushes: the first that is given back is its. */
START_TEST(a_compressor_that_is_given_back_is_used)
{
    struct world *w = begin("zstd", 1);
    struct record_accumulator *a = &w->p->accumulator;
    struct compressor *taken[TAKEN_MAX];
    struct world_call *c, *other;
    struct batch *b;
    int n = take_all(a, taken);

    ck_assert_int_gt(n, 0);
    (void)backlog(w, 0, 40);
    c = world_flush(w, KP_FOREVER);
    other = world_flush(w, KP_FOREVER);
    world_run_ms(w, 0);
    ck_assert_uint_eq(c->compressed + other->compressed, 0);
    ck_assert(!c->done);
    /* somebody is done with a batch, and does no more */
    ck_assert(kp__claims_take(&a->claims, &b));
    kp__compress_and_finish(a, b, taken[--n]);
    kp__io_wake(&w->p->bell, 0);
    world_run_ms(w, 0);
    ck_assert_uint_ge(c->compressed + other->compressed, 15);
    world_settle(w);
    ck_assert_int_eq(c->err, KP_OK);
    ck_assert_int_eq(other->err, KP_OK);
    ck_assert_uint_eq(atomic_load(&a->claims.waiting_count), 0);
    give_all(a, taken, n);
    all_stored(w);
    world_end(w);
}
END_TEST

/* It waits in that line no longer than it waits at all. */
START_TEST(a_flush_that_gives_up_leaves_the_line)
{
    struct world *w = begin("zstd", 1);
    struct record_accumulator *a = &w->p->accumulator;
    struct compressor *taken[TAKEN_MAX];
    struct world_call *c;
    int n = take_all(a, taken);

    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    (void)backlog(w, 0, 20);
    c = world_flush(w, 100);
    world_run_ms(w, 50);
    ck_assert_uint_eq(atomic_load(&a->claims.waiting_count), 1);
    world_run_ms(w, 100);
    ck_assert(c->done);
    ck_assert_int_eq(c->err, KP_PENDING);
    ck_assert_uint_eq(atomic_load(&a->claims.waiting_count), 0);
    kp__claims_chance(&a->claims); /* nobody is there */
    give_all(a, taken, n);
    kb_node_start(world_cluster(w), 1, KB_KEEP_STATE, world_now_ns(w));
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

/* It is its turn when there is no time left to begin anything: the next one's,
 * then. */
START_TEST(a_turn_that_is_too_late_is_passed_on)
{
    struct world *w = begin("zstd", 1);
    struct record_accumulator *a = &w->p->accumulator;
    struct compressor *taken[TAKEN_MAX];
    struct world_call *late, *other;
    int n = take_all(a, taken);

    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    (void)backlog(w, 0, 20);
    late = world_flush(w, 100);
    other = world_flush(w, KP_FOREVER);
    world_run_ms(w, 50);
    ck_assert_uint_eq(atomic_load(&a->claims.waiting_count), 2);
    late->flush->longest_ns = 60 * MS;
    kp__compressors_give(a->compressors, taken[--n]);
    kp__claims_chance(&a->claims);
    world_run_ms(w, 1);
    ck_assert(!late->done);
    ck_assert_uint_eq(late->compressed, 0);
    ck_assert_uint_ge(other->compressed, 8);
    give_all(a, taken, n);
    kb_node_start(world_cluster(w), 1, KB_KEEP_STATE, world_now_ns(w));
    world_settle(w);
    ck_assert(late->done);
    ck_assert_int_eq(other->err, KP_OK);
    world_check(w);
    world_end(w);
}
END_TEST

/* Several at once: each batch is done once, whoever does it. */
START_TEST(several_flushes)
{
    struct world *w = begin("snappy", 3);
    struct world_call *c[5];
    uint32_t compressed = 0;

    for (int i = 0; i < 5; i++) {
        for (int32_t p = 0; p < 3; p++)
            (void)backlog(w, p, 14);
        c[i] = world_flush(w, KP_FOREVER);
        if (i == _i)
            stop_with_claim(w, c[i]);
        world_run_until_ns(w, world_now_ns(w) + MS / 2);
    }
    if (_i < 5)
        c[_i]->held = false;
    world_settle(w);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(c[i]->err, KP_OK);
        compressed += c[i]->compressed;
    }
    ck_assert_uint_gt(compressed, 20);
    ck_assert_uint_le(compressed, batches_of(w));
    all_stored(w);
    world_end(w);
}
END_TEST

static Suite *flush_compress_suite(void)
{
    Suite *s = suite_create("flush_compress");
    TCase *t = tcase_create("flush_compress");

    tcase_add_test(t, the_waiting_thread_does_it);
    tcase_add_test(t, behind_batches_that_are_ready);
    tcase_add_test(t, partitions_take_turns);
    tcase_add_test(t, offers_are_not_lost);
    tcase_add_test(t, not_without_a_codec);
    tcase_add_test(t, not_shortly_before_the_deadline);
    tcase_add_test(t, a_finished_flush_does_one_more_at_most);
    tcase_add_test(t, turns_between_claim_and_finish);
    tcase_add_test(t, deadline_while_compressing);
    tcase_add_test(t, close_while_compressing);
    tcase_add_test(t, a_compressor_that_is_given_back_is_used);
    tcase_add_test(t, a_flush_that_gives_up_leaves_the_line);
    tcase_add_test(t, a_turn_that_is_too_late_is_passed_on);
    tcase_add_loop_test(t, several_flushes, 0, 6);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(flush_compress_suite)
