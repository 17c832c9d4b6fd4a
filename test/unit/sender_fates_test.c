/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a batch, and of its neighbours, when answers are late, lost or
 * refusals: one report each, numbers that follow, memory that comes back once;
 * and batches that a codec makes larger than was guessed. */
#include <stdio.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define MS KP_NS_PER_MS
#define FAST \
    "retry.backoff.ms", "10", "retry.backoff.max.ms", "10", "linger.ms", "0"
#define SINGLES "batch.size", "0"
#define SHORT "delivery.timeout.ms", "3000", "request.timeout.ms", "1000"

static const struct record_batch_header *header(struct world *w, size_t i)
{
    return &world_attempt(w, i)->header;
}

static const struct world_attempt *at(struct world *w, size_t i)
{
    return world_attempt(w, i);
}

static void expect_ok(struct world_record *r, int64_t offset)
{
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, offset);
}

static size_t used(struct world *w)
{
    struct pool_stats s;

    kp__pool_stats(w->p->pool, &s);
    return s.total_bytes - s.available_bytes;
}

static void no_broker(struct world *w, bool on)
{
    world_link(w, 1)->refuses = on;
    if (on)
        world_cut(w, -1, false);
}

/* -- the simple case -- */

/* S1, S43: one record, one request; it carries an id, epoch 0 and number 0, the
 * next one number 1; and when it is acknowledged nothing is left. */
START_TEST(one_record)
{
    struct world *w =
        world_begin(&(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r = world_send(w, 0);

    ck_assert(!world_nothing_left(w));
    world_settle(w);
    expect_ok(r, 0);
    ck_assert_uint_eq(world_requests(w), 1);
    ck_assert(world_nothing_left(w));
    ck_assert_uint_eq(used(w), 0);
    (void)world_send(w, 0);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_ge(header(w, i)->producer_id, 0);
        ck_assert_int_eq(header(w, i)->producer_id, header(w, 0)->producer_id);
        ck_assert_int_eq(header(w, i)->producer_epoch, 0);
        ck_assert_int_eq(header(w, i)->base_sequence, (int32_t)i);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* S15: without idempotence, and with all the retries there are: a topic that is
 * not ours to write to ends the record at once. */
START_TEST(not_authorized_is_not_retried)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "enable.idempotence", "false")});
    struct world_record *r;

    (void)world_rule(w, "api=produce count=-1 error=29");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_TOPIC_AUTHORIZATION_FAILED, KP_OK, KP_STORED_NO, -1);
    world_run_ms(w, 10000);
    ck_assert_uint_eq(world_attempts(w), 1);
    ck_assert_uint_eq(r->callbacks, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* P1: what was completed stays as it was, whatever is answered later. */
START_TEST(a_late_answer_changes_no_report)
{
    static const char *const rules[] = {
        "api=produce count=1 answer_ms=900",
        "api=produce count=1 answer_ms=900 error=87",
        "api=produce count=1 answer_ms=900 error=19",
    };
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SHORT)});
    struct world_record *r;

    no_broker(w, true);
    world_run_ms(w, 5);
    r = world_send(w, 0);
    world_run_ms(w, 2400);
    (void)world_rule(w, rules[_i]);
    no_broker(w, false);
    while (!r->reported)
        world_run_ms(w, 1);
    world_expect(r, KP_ETIMEDOUT, WORLD_ANY_CAUSE, KP_STORED_MAYBE, -1);
    world_run_ms(w, 5000);
    world_expect(r, KP_ETIMEDOUT, WORLD_ANY_CAUSE, KP_STORED_MAYBE, -1);
    ck_assert_uint_eq(r->callbacks, 1);
    ck_assert_uint_eq(world_attempts(w), 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- numbers -- */

/* S19: a batch uses a number for each of its records; one that is called out of
 * order right behind the last acknowledged starts again under epoch 1. */
START_TEST(numbers_count_records)
{
    struct world *w =
        world_begin(&(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r = world_send_many(w, 0, 2, 0);

    world_settle(w);
    expect_ok(r, 0);
    (void)world_rule(w, "api=produce count=1 error=45");
    r = world_send_many(w, 0, 2, 0);
    world_settle(w);
    expect_ok(r, 2);
    ck_assert_uint_eq(world_attempts(w), 3);
    ck_assert_int_eq(header(w, 1)->base_sequence, 2);
    ck_assert_int_eq(header(w, 2)->producer_epoch, 1);
    ck_assert_int_eq(header(w, 2)->base_sequence, 0);
    r = world_send(w, 0);
    world_settle(w);
    expect_ok(r, 4);
    ck_assert_int_eq(header(w, 3)->producer_epoch, 1);
    ck_assert_int_eq(header(w, 3)->base_sequence, 2);
    world_check(w);
    world_end(w);
}
END_TEST

/* S23: the first is stored and answered with a time-out, the second stored: the
 * first is sent again under its number and learns its own offset. */
START_TEST(a_second_one_is_stored_first)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SINGLES)});
    struct world_record *a, *b, *next;

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, "api=produce count=1 error=7 append");
    a = world_send(w, 0);
    b = world_send(w, 0);
    world_settle(w);
    expect_ok(a, 1);
    expect_ok(b, 2);
    ck_assert_uint_eq(world_attempts(w), 4);
    ck_assert_uint_eq(at(w, 3)->first_id, a->id);
    ck_assert_int_eq(header(w, 3)->base_sequence, 1);
    next = world_send(w, 0);
    world_settle(w);
    expect_ok(next, 3);
    ck_assert_int_eq(header(w, 4)->producer_epoch, 0);
    ck_assert_int_eq(header(w, 4)->base_sequence, 3);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3");
    world_check(w);
    world_end(w);
}
END_TEST

/* S25, in our own way: the first expires with its fate open while the second is
 * on the wire; a third one waits for that answer, and then goes on.  Java takes
 * the second's success for the first's and keeps the epoch; here the partition
 * goes on under the next one, whatever the broker has forgotten meanwhile. */
START_TEST(behind_an_expired_one_nothing_new_goes)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, SINGLES, "delivery.timeout.ms", "3000",
                                   "request.timeout.ms", "3000")});
    struct world_record *a, *b, *c;

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, "api=produce count=1 error=7 append answer_ms=2900");
    (void)world_rule(w, "api=produce skip=1 count=1 answer_ms=150");
    a = world_send(w, 0);
    world_run_ms(w, 100);
    b = world_send(w, 0);
    while (!a->reported)
        world_run_ms(w, 1);
    world_expect(a, KP_ETIMEDOUT, KP_REQUEST_TIMED_OUT, KP_STORED_MAYBE, -1);
    ck_assert(!b->reported);
    ck_assert_uint_eq(world_attempts(w), 3);
    c = world_send(w, 0);
    world_run_ms(w, 20);
    ck_assert_uint_eq(world_attempts(w), 3); /* it waits */
    world_settle(w);
    expect_ok(b, 2);
    expect_ok(c, 3);
    ck_assert_uint_eq(world_attempts(w), 4);
    ck_assert_int_ge(at(w, 3)->at_ns, b->reported_ns);
    ck_assert_int_eq(header(w, 3)->producer_epoch, 1);
    ck_assert_int_eq(header(w, 3)->base_sequence, 0);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3");
    world_check(w);
    world_end(w);
}
END_TEST

/* S26: the first expires, and the second, sent behind it, was called out of
 * order: both it and a third one go again under the next epoch, in order. */
START_TEST(an_expired_one_costs_an_epoch)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, SINGLES, SHORT)});
    struct world_record *a, *b, *c;
    size_t n;

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, "api=produce count=1 error=7 answer_ms=500");
    (void)world_rule(w, "api=produce skip=2 count=-1 error=7");
    a = world_send(w, 0);
    world_run_ms(w, 400);
    b = world_send(w, 0);
    world_run_ms(w, 1000);
    c = world_send(w, 0);
    while (!a->reported)
        world_run_ms(w, 1);
    world_expect(a, KP_ETIMEDOUT, KP_REQUEST_TIMED_OUT, KP_STORED_MAYBE, -1);
    world_rule_remove(w, -1);
    world_settle(w);
    expect_ok(b, 1);
    expect_ok(c, 2);
    n = world_attempts(w);
    ck_assert_int_eq(header(w, n - 2)->producer_epoch, 1);
    ck_assert_int_eq(header(w, n - 2)->base_sequence, 0);
    ck_assert_uint_eq(at(w, n - 2)->first_id, b->id);
    ck_assert_int_eq(header(w, n - 1)->producer_epoch, 1);
    ck_assert_int_eq(header(w, n - 1)->base_sequence, 1);
    ck_assert_str_eq(world_log(w, "t", 0), "0 2 3");
    world_check(w);
    world_end(w);
}
END_TEST

static struct ledger *ledger_of(struct world *w, int32_t partition)
{
    struct topic *t = kp__topics_find(w->p->topics, "t", 1);

    return &kp__topic_view(t)->queues[partition]->sender->ledger;
}

/* S44: a lost connection at the last epoch is a retry like any other: it needs
 * no new id. */
START_TEST(a_disconnect_at_the_last_epoch)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SINGLES)});
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    ledger_of(w, 0)->epoch = INT16_MAX;
    ledger_of(w, 0)->next_sequence = 0;
    ledger_of(w, 0)->proven = false;
    (void)world_rule(w, "api=produce count=1 answer=close");
    r = world_send(w, 0);
    world_run_until_attempts(w, 2);
    ck_assert(!r->reported);
    world_settle(w);
    expect_ok(r, 1);
    ck_assert_uint_eq(world_attempts(w), 3);
    for (size_t i = 1; i < 3; i++) {
        ck_assert_int_eq(header(w, i)->producer_epoch, INT16_MAX);
        ck_assert_int_eq(header(w, i)->base_sequence, 0);
    }
    r = world_send(w, 0);
    world_settle(w);
    expect_ok(r, 2);
    ck_assert_int_eq(header(w, 3)->producer_epoch, INT16_MAX);
    ck_assert_int_eq(header(w, 3)->base_sequence, 1);
    ck_assert_int_eq(kb_requests(world_cluster(w), -1, 22), 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* S32: while one partition gets a new id, the other's batch is refused for now
 * again and again: it goes under the old id each time, and is stored. */
START_TEST(retries_keep_the_old_id)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2, .settings = WORLD_SETTINGS(FAST, SINGLES)});
    struct world_record *a, *b;
    int64_t id;
    size_t of_b = 0;

    (void)world_send(w, 0);
    (void)world_send(w, 1);
    world_settle(w);
    id = header(w, 0)->producer_id;
    (void)world_rule(w, "api=produce partition=0 count=1 error=47");
    (void)world_rule(w, "api=produce partition=1 count=20 error=19");
    a = world_send(w, 0);
    b = world_send(w, 1);
    world_run_ms(w, 100);
    expect_ok(a, 1);
    ck_assert(!b->reported);
    ck_assert_int_eq(kb_requests(world_cluster(w), -1, 22), 2);
    world_settle(w);
    expect_ok(b, 1);
    for (size_t i = 2; i < world_attempts(w); i++)
        if (at(w, i)->partition == 1) {
            ck_assert_int_eq(header(w, i)->producer_id, id);
            ck_assert_int_eq(header(w, i)->producer_epoch, 0);
            ck_assert_int_eq(header(w, i)->base_sequence, 1);
            of_b++;
        }
    ck_assert_uint_eq(of_b, 21);
    world_check(w);
    world_end(w);
}
END_TEST

/* S37, in our own way: two on the wire, and the broker has forgotten the producer
 * for both: proven not stored, they go again in order under one new epoch, each
 * once. */
START_TEST(two_forgotten_at_once)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SINGLES)});
    struct world_record *a, *b;

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, "api=produce count=2 error=59 log_start=1");
    a = world_send(w, 0);
    b = world_send(w, 0);
    world_settle(w);
    expect_ok(a, 1);
    expect_ok(b, 2);
    ck_assert_uint_eq(world_attempts(w), 5);
    for (size_t i = 3; i < 5; i++) {
        ck_assert_int_eq(header(w, i)->producer_epoch, 1);
        ck_assert_int_eq(header(w, i)->base_sequence, (int32_t)i - 3);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* -- deadlines and memory -- */

/* S47: no answer until the request's time is up, and the record's with it: one
 * report, and its memory comes back, once. */
START_TEST(timed_out_and_expired_is_given_back_once)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "delivery.timeout.ms", "2000",
                                   "request.timeout.ms", "2000")});
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    ck_assert_uint_eq(used(w), 0);
    (void)world_rule(w, "api=produce count=-1 answer=stall");
    r = world_send_many(w, 0, 3, 1000);
    world_run_ms(w, 10);
    ck_assert_uint_gt(used(w), 0);
    world_settle(w);
    world_run_ms(w, 5000);
    for (uint32_t i = 0; i < 3; i++) {
        world_expect(world_record(w, r->id + i), KP_ETIMEDOUT, WORLD_ANY_CAUSE,
                     KP_STORED_MAYBE, -1);
        ck_assert_uint_eq(world_record(w, r->id + i)->callbacks, 1);
    }
    ck_assert_uint_eq(used(w), 0);
    world_rule_remove(w, -1);
    world_check(w);
    world_end(w);
}
END_TEST

/* S72: half of the frame is written when the record's time is up: it is reported
 * then; its bytes are still the connection's, and come back when that ends. */
START_TEST(expired_with_half_a_frame_written)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(
            FAST, SINGLES, "delivery.timeout.ms", "2000", "request.timeout.ms",
            "2000", "max.in.flight.requests.per.connection", "1")});
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    /* the record before is answered after half a second */
    (void)world_rule(w, "api=produce count=1 answer_ms=500");
    (void)world_send(w, 0);
    world_run_ms(w, 5);
    world_link(w, 1)->stall_to = true;
    world_link(w, 1)->window = 1500;
    r = world_send_many(w, 0, 1, 3000);
    while (!r->reported)
        world_run_ms(w, 1);
    ck_assert_int_eq(r->reported_ns - r->returned_ns, 2000 * MS);
    ck_assert_int_eq(r->report.err, KP_ETIMEDOUT);
    world_run_ms(w, 100);
    ck_assert_uint_ge(used(w), 3000);
    world_cut(w, 1, true);
    world_run_ms(w, 5);
    ck_assert_uint_eq(used(w), 0);
    ck_assert_uint_eq(r->callbacks, 1);
    world_link(w, 1)->stall_to = false;
    world_link(w, 1)->window = 256 * 1024;
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 2);
    world_check(w);
    world_end(w);
}
END_TEST

/* T11, in our own way: the request times out, is sent again, and the record's
 * time is up while that is on the wire.  Java uses new numbers at once; here the
 * next record waits until nobody can store the old one any more. */
START_TEST(expired_on_the_wire_the_next_one_waits)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, SINGLES, "delivery.timeout.ms", "1500",
                                   "request.timeout.ms", "1000")});
    struct world_record *a, *b;
    int64_t second_ns;

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, "api=produce count=2 ignore answer=stall");
    a = world_send(w, 0);
    while (!a->reported)
        world_run_ms(w, 1);
    world_expect(a, KP_ETIMEDOUT, WORLD_ANY_CAUSE, KP_STORED_MAYBE, -1);
    ck_assert_int_eq(a->reported_ns - a->returned_ns, 1500 * MS);
    ck_assert_uint_eq(world_attempts(w), 3);
    for (size_t i = 1; i < 3; i++) {
        ck_assert_int_eq(header(w, i)->producer_epoch, 0);
        ck_assert_int_eq(header(w, i)->base_sequence, 1);
    }
    second_ns = at(w, 2)->at_ns;
    b = world_send(w, 0);
    world_settle(w);
    expect_ok(b, 1);
    ck_assert_uint_eq(world_attempts(w), 4);
    ck_assert_int_ge(at(w, 3)->at_ns - second_ns, 990 * MS);
    ck_assert_int_eq(header(w, 3)->producer_epoch, 1);
    ck_assert_int_eq(header(w, 3)->base_sequence, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* S50: one request in flight keeps the order, past a deadline too: the second
 * batch leaves when the first one's late answer has come, no sooner. */
START_TEST(the_second_waits_for_a_late_answer)
{
    struct world *w = world_begin(&(struct world_options){
        .settings =
            WORLD_SETTINGS(FAST, SINGLES, SHORT, "enable.idempotence", "false",
                           "max.in.flight.requests.per.connection", "1")});
    struct world_record *a, *b;

    no_broker(w, true);
    world_run_ms(w, 5);
    a = world_send(w, 0);
    world_run_ms(w, 2400);
    (void)world_rule(w, "api=produce count=1 answer_ms=900");
    no_broker(w, false);
    world_run_until_attempts(w, 1);
    b = world_send(w, 0);
    world_settle(w);
    world_expect(a, KP_ETIMEDOUT, WORLD_ANY_CAUSE, KP_STORED_MAYBE, -1);
    expect_ok(b, 1);
    ck_assert_uint_eq(world_attempts(w), 2);
    ck_assert_int_ge(at(w, 1)->at_ns - at(w, 0)->at_ns, 900 * MS);
    ck_assert_int_gt(at(w, 1)->at_ns, a->reported_ns);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- codecs and sizes -- */

static const char *const codecs[] = {"gzip", "snappy", "lz4", "zstd"};

static struct world_record *send_sized(struct world *w, int32_t size,
                                       unsigned flags)
{
    return world_send_what(
        w, &(struct world_what){.size = size, .flags = WORLD_CALLBACK | flags});
}

/* P5: the pieces of a batch have its codec and magic, and begin at offset 0. */
START_TEST(pieces_are_made_as_the_whole_was)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "compression.type", codecs[_i])});

    ck_assert(kb_topic_set(world_cluster(w), "t", "max.message.bytes", "2000"));
    for (int i = 0; i < 100; i++)
        (void)send_sized(w, i % 2 == 0 ? 400 : 80,
                         i % 2 == 0 ? 0 : WORLD_RANDOM);
    world_settle(w);
    ck_assert_uint_gt(at(w, 0)->size, 2000);
    ck_assert_uint_ge(world_attempts(w), 3);
    for (size_t i = 0; i < world_attempts(w); i++) {
        ck_assert_int_eq(header(w, i)->magic, 2);
        ck_assert_int_eq(header(w, i)->base_offset, 0);
        ck_assert_int_eq(header(w, i)->attributes & 7, _i + 1);
    }
    for (uint32_t i = 0; i < 100; i++)
        expect_ok(world_record(w, i), (int64_t)i);
    world_check(w);
    world_end(w);
}
END_TEST

/* A35: after batches that shrank well the guess is good, and then comes what no
 * codec makes smaller: too large for the topic, it is split, everything is
 * stored in order, and all memory is there again. */
START_TEST(a_wrong_guess_is_split)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "5", "retry.backoff.ms", "10",
                                   "compression.type", codecs[_i], "batch.size",
                                   "4096")});
    size_t n;
    uint32_t first;

    for (int i = 0; i < 3000; i++) {
        (void)send_sized(w, 100, 0);
        if (i % 50 == 0)
            world_run_ms(w, 1);
    }
    world_settle(w);
    ck_assert(kb_topic_set(world_cluster(w), "t", "max.message.bytes", "5000"));
    n = world_attempts(w);
    first = world_record_count(w);
    for (int i = 0; i < 100; i++)
        (void)send_sized(w, 100, WORLD_RANDOM);
    world_settle(w);
    ck_assert_uint_gt(at(w, n)->size, 5000);
    for (uint32_t i = first; i < first + 100; i++)
        expect_ok(world_record(w, i), (int64_t)i);
    ck_assert_uint_eq(used(w), 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* A36: whatever mix of records that shrink well and records that do not, under
 * a topic that takes no more than batch.size: fewer than one batch in ten is
 * split. */
START_TEST(few_batches_are_split)
{
    for (int percent = 1 + _i; percent < 100; percent += 8) {
        struct world *w = world_begin(&(struct world_options){
            .seed = (uint64_t)percent,
            .settings = WORLD_SETTINGS("linger.ms", "5", "batch.size", "1024",
                                       "compression.type", "gzip")});
        uint32_t split = 0;
        struct rng rng;

        ck_assert(
            kb_topic_set(world_cluster(w), "t", "max.message.bytes", "1085"));
        kp__rng_seed(&rng, (uint64_t)percent);
        for (int i = 0; i < 1000; i++) {
            bool good = kp__rng_below(&rng, 100) < (uint32_t)percent;

            (void)send_sized(w, 100, good ? 0 : WORLD_RANDOM);
            if (i % 20 == 0)
                world_run_ms(w, 1);
        }
        world_settle(w);
        for (size_t i = 0; i < world_attempts(w); i++)
            split += at(w, i)->size > 1085 ? 1 : 0;
        ck_assert_uint_gt(world_attempts(w), 10);
        ck_assert_msg(10 * split < world_attempts(w), "%d %%: %u of %zu",
                      percent, split, world_attempts(w));
        for (uint32_t i = 0; i < 1000; i++)
            expect_ok(world_record(w, i), (int64_t)i);
        world_check(w);
        world_end(w);
    }
}
END_TEST

static Suite *sender_fates_suite(void)
{
    Suite *s = suite_create("sender_fates");
    TCase *t = tcase_create("sender_fates");

    tcase_add_test(t, one_record);
    tcase_add_test(t, not_authorized_is_not_retried);
    tcase_add_loop_test(t, a_late_answer_changes_no_report, 0, 3);
    tcase_add_test(t, numbers_count_records);
    tcase_add_test(t, a_second_one_is_stored_first);
    tcase_add_test(t, behind_an_expired_one_nothing_new_goes);
    tcase_add_test(t, an_expired_one_costs_an_epoch);
    tcase_add_test(t, a_disconnect_at_the_last_epoch);
    tcase_add_test(t, retries_keep_the_old_id);
    tcase_add_test(t, two_forgotten_at_once);
    tcase_add_test(t, timed_out_and_expired_is_given_back_once);
    tcase_add_test(t, expired_with_half_a_frame_written);
    tcase_add_test(t, expired_on_the_wire_the_next_one_waits);
    tcase_add_test(t, the_second_waits_for_a_late_answer);
    tcase_add_loop_test(t, pieces_are_made_as_the_whole_was, 0, 4);
    tcase_add_loop_test(t, a_wrong_guess_is_split, 0, 4);
    tcase_add_loop_test(t, few_batches_are_split, 0, 8);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(sender_fates_suite)
