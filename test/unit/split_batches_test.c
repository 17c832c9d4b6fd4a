/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches that a broker calls too large: cut in two, and again, down to single
 * records; their offsets, their numbers, their order, their memory. */
#include <stdio.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define FAST "retry.backoff.ms", "10", "retry.backoff.max.ms", "10", \
             "linger.ms", "0"

static const char *const codecs[] = {"none", "gzip", "snappy", "lz4", "zstd"};
#define CODECS 5

static struct world *begin(int codec, const char *idempotence)
{
    return world_begin(&(struct world_options){
        .partitions = 2,
        .settings = WORLD_SETTINGS(FAST, "compression.type", codecs[codec],
                                   "enable.idempotence", idempotence)});
}

static struct world_record *send_random(struct world *w, int32_t partition,
                                        int count, int32_t size)
{
    struct world_what what = {
        .partition = partition,
        .size = size,
        .flags = WORLD_FUTURE | WORLD_CALLBACK | WORLD_RANDOM,
    };
    struct world_record *first = world_send_what(w, &what);

    for (int i = 1; i < count; i++)
        (void)world_send_what(w, &what);
    return first;
}

static void limit(struct world *w, const char *bytes)
{
    ck_assert(kb_topic_set(world_cluster(w), "t", "max.message.bytes",
                           bytes));
}

static void in_order(struct world *w, struct world_record *first, int count,
                     int64_t offset)
{
    for (int i = 0; i < count; i++) {
        struct world_record *r = world_record(w, first->id + (uint32_t)i);

        world_expect(r, KP_OK, KP_OK, KP_STORED_YES, offset + i);
        ck_assert_uint_eq(r->callback_at, first->callback_at + (uint64_t)i);
        ck_assert_uint_eq(r->callbacks, 1);
        ck_assert(r->future_done);
    }
}

/* S45, A33, P13: two halves, in order, with the numbers that the whole had. */
START_TEST(in_two)
{
    struct world *w = begin(_i, "true");
    struct world_record *r;
    size_t n;

    limit(w, "650");
    r = send_random(w, 0, 10, 100); /* about 1,100 bytes */
    world_settle(w);
    in_order(w, r, 10, 0);
    n = world_attempts(w);
    ck_assert_uint_eq(n, 3);
    ck_assert_int_eq(world_attempt(w, 0)->header.record_count, 10);
    ck_assert_int_eq(world_attempt(w, 1)->header.base_sequence, 0);
    ck_assert_int_eq(world_attempt(w, 1)->header.record_count, 5);
    ck_assert_int_eq(world_attempt(w, 2)->header.base_sequence, 5);
    ck_assert_int_eq(world_attempt(w, 2)->header.record_count, 5);
    /* the second half when the first is stored */
    ck_assert_int_ge(world_attempt(w, 2)->at_ns - world_attempt(w, 1)->at_ns,
                     2 * KP_NS_PER_MS);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(world_attempt(w, i)->header.producer_epoch, 0);
    r = send_random(w, 0, 1, 100);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 10);
    ck_assert_int_eq(world_attempt(w, 3)->header.base_sequence, 10);
    world_check(w);
    world_end(w);
}
END_TEST

/* D24: as large as the topic takes to the byte: whole; a byte less, and it is
 * cut. */
START_TEST(at_the_limit_to_the_byte)
{
    struct world *w = begin(0, "true"); /* sizes without a codec are known */
    struct world_record *r;
    char bytes[32];
    size_t size, n;

    r = send_random(w, 0, 10, 100);
    world_settle(w);
    in_order(w, r, 10, 0);
    ck_assert_uint_eq(world_attempts(w), 1);
    size = world_attempt(w, 0)->size;
    for (size_t less = 0; less < 2; less++) {
        (void)snprintf(bytes, sizeof(bytes), "%zu", size - less);
        limit(w, bytes);
        n = world_attempts(w);
        r = send_random(w, 0, 10, 100);
        world_settle(w);
        in_order(w, r, 10, 10 + 10 * (int64_t)less);
        ck_assert_uint_eq(world_attempt(w, n)->size, size);
        ck_assert_uint_eq(world_attempts(w), n + (less == 0 ? 1 : 3));
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* Down to single records. */
START_TEST(down_to_single_records)
{
    struct world *w = begin(_i, "true");
    struct world_record *r;

    limit(w, "250");
    r = send_random(w, 0, 16, 100);
    world_settle(w);
    in_order(w, r, 16, 0);
    /* 16; 8 4 2 1 1; 2 1 1; ...: every inner node of a tree of 16 leaves */
    ck_assert_uint_eq(world_attempts(w), 31);
    world_check(w);
    world_end(w);
}
END_TEST

/* A single record that is too large fails alone; its neighbours do not. */
START_TEST(one_of_them_is_too_large)
{
    struct world *w = begin(_i, "true");
    struct world_record *r[5];

    limit(w, "400");
    for (int i = 0; i < 5; i++)
        r[i] = world_send_what(
            w, &(struct world_what){
                   .size = i == 2 ? 1000 : 100,
                   .flags = WORLD_FUTURE | WORLD_CALLBACK | WORLD_RANDOM});
    world_settle(w);
    world_expect(r[0], KP_OK, KP_OK, KP_STORED_YES, 0);
    world_expect(r[1], KP_OK, KP_OK, KP_STORED_YES, 1);
    world_expect(r[2], KP_MESSAGE_TOO_LARGE, KP_OK, KP_STORED_NO, -1);
    world_expect(r[3], KP_OK, KP_OK, KP_STORED_YES, 2);
    world_expect(r[4], KP_OK, KP_OK, KP_STORED_YES, 3);
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(r[i]->callback_at, (uint64_t)i);
    world_check(w);
    world_end(w);
}
END_TEST

/* The first of the batch is the one: its numbers are gone, the others get
 * new ones under the next epoch. */
START_TEST(the_first_is_too_large)
{
    struct world *w = begin(_i, "true");
    struct world_record *r[4];

    limit(w, "400");
    for (int i = 0; i < 4; i++)
        r[i] = world_send_what(
            w, &(struct world_what){
                   .size = i == 0 ? 1000 : 100,
                   .flags = WORLD_FUTURE | WORLD_CALLBACK | WORLD_RANDOM});
    world_settle(w);
    world_expect(r[0], KP_MESSAGE_TOO_LARGE, KP_OK, KP_STORED_NO, -1);
    for (int i = 1; i < 4; i++)
        world_expect(r[i], KP_OK, KP_OK, KP_STORED_YES, i - 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* What may be stored is not cut: its children would be duplicates. */
START_TEST(a_maybe_is_not_split)
{
    struct world *w = begin(_i, "true");
    struct world_record *r;

    r = send_random(w, 0, 1, 100);
    world_settle(w);
    (void)world_rule(w, "api=produce count=1 answer=close");
    r = send_random(w, 0, 6, 100);
    world_run_until_attempts(w, 2);
    limit(w, "300");
    world_settle(w);
    for (uint32_t i = 0; i < 6; i++)
        world_expect(world_record(w, r->id + i), KP_MESSAGE_TOO_LARGE,
                     KP_EDISCONNECT, KP_STORED_MAYBE, -1);
    ck_assert_uint_eq(world_attempts(w), 3);
    ck_assert_int_eq(kb_log_end(world_cluster(w), "t", 0), 7);
    limit(w, "10000");
    r = send_random(w, 0, 1, 100);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 7);
    ck_assert_int_eq(world_attempt(w, 3)->header.producer_epoch, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* A half whose answer is lost is a MAYBE of its own. */
START_TEST(a_half_is_lost_and_retried)
{
    struct world *w = begin(_i, "true");
    struct world_record *r;

    limit(w, "650");
    (void)world_rule(w, "api=produce skip=1 count=1 answer=close");
    r = send_random(w, 0, 10, 100);
    world_settle(w);
    in_order(w, r, 10, 0);
    ck_assert_uint_eq(world_attempts(w), 4);
    world_check(w);
    world_end(w);
}
END_TEST

/* ... and too large at its second attempt: the half fails, the other does
 * not. */
START_TEST(a_half_is_maybe_and_then_too_large)
{
    struct world *w = begin(_i, "true");
    struct world_record *r;

    limit(w, "650");
    (void)world_rule(w, "api=produce skip=1 count=1 answer=close");
    (void)world_rule(w, "api=produce skip=2 count=1 error=10");
    r = send_random(w, 0, 10, 100);
    world_settle(w);
    for (uint32_t i = 0; i < 5; i++)
        world_expect(world_record(w, r->id + i), KP_MESSAGE_TOO_LARGE,
                     KP_EDISCONNECT, KP_STORED_MAYBE, -1);
    for (uint32_t i = 5; i < 10; i++)
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK, KP_STORED_YES,
                     (int64_t)i);
    world_check(w);
    world_end(w);
}
END_TEST

/* Both halves time out: one report each, and the memory comes back. */
START_TEST(halves_run_out_of_time)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "compression.type", codecs[_i],
                                   "delivery.timeout.ms", "3000",
                                   "request.timeout.ms", "1000")});
    struct world_record *r;

    limit(w, "650");
    (void)world_rule(w, "api=produce skip=1 count=-1 error=19");
    r = send_random(w, 0, 10, 100);
    world_settle(w);
    for (uint32_t i = 0; i < 10; i++)
        world_expect(world_record(w, r->id + i), KP_ETIMEDOUT,
                     WORLD_ANY_CAUSE, KP_STORED_NO, -1);
    world_rule_remove(w, -1);
    limit(w, "100000");
    r = send_random(w, 0, 10, 100);
    world_settle(w);
    in_order(w, r, 10, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* One half is on the wire and one in the queue when time is up. */
START_TEST(one_half_on_the_wire_at_the_deadline)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "delivery.timeout.ms", "3000",
                                   "request.timeout.ms", "1000")});
    struct world_record *r;

    limit(w, "650");
    (void)world_rule(w, "api=produce skip=1 count=2 process_ms=990 error=19");
    (void)world_rule(w, "api=produce skip=3 count=1 answer=stall");
    r = send_random(w, 0, 10, 100);
    world_settle(w);
    for (uint32_t i = 0; i < 5; i++)
        world_expect(world_record(w, r->id + i), KP_ETIMEDOUT,
                     KP_NOT_ENOUGH_REPLICAS, KP_STORED_MAYBE, -1);
    for (uint32_t i = 5; i < 10; i++)
        world_expect(world_record(w, r->id + i), KP_ETIMEDOUT,
                     WORLD_ANY_CAUSE, KP_STORED_NO, -1);
    world_check(w);
    world_end(w);
}
END_TEST

/* Two partitions at once: there is room for one split at a time, and the
 * other one waits without hammering the broker. */
START_TEST(two_at_once)
{
    struct world *w = begin(_i, "true");
    struct world_record *a, *b;

    limit(w, "250");
    a = send_random(w, 0, 16, 100);
    b = send_random(w, 1, 16, 100);
    world_settle(w);
    for (int i = 0; i < 16; i++) {
        world_expect(world_record(w, a->id + (uint32_t)i), KP_OK, KP_OK,
                     KP_STORED_YES, i);
        world_expect(world_record(w, b->id + (uint32_t)i), KP_OK, KP_OK,
                     KP_STORED_YES, i);
    }
    /* 31 each, and a few more of the second while the first is in pieces:
     * one in 8 ms at most, and the whole takes some 100 ms */
    ck_assert_uint_lt(world_attempts(w), 31 + 31 + 20);
    world_check(w);
    world_end(w);
}
END_TEST

/* ... however long that takes: it is asked again after each backoff, no
 * sooner. */
START_TEST(waiting_for_a_split_backs_off)
{
    struct world *w = begin(_i, "true");
    struct world_record *a, *b;
    size_t n = 0;

    limit(w, "650");
    (void)world_rule(w, "api=produce partition=0 skip=1 count=100 error=19");
    a = send_random(w, 0, 10, 100);
    world_run_until_attempts(w, 2);
    b = send_random(w, 1, 10, 100);
    world_settle(w);
    for (int i = 0; i < 10; i++) {
        world_expect(world_record(w, a->id + (uint32_t)i), KP_OK, KP_OK,
                     KP_STORED_YES, i);
        world_expect(world_record(w, b->id + (uint32_t)i), KP_OK, KP_OK,
                     KP_STORED_YES, i);
    }
    for (size_t i = 0; i < world_attempts(w); i++)
        if (world_attempt(w, i)->partition == 1)
            n++;
    /* the first partition takes 100 backoffs and round trips */
    ck_assert_uint_ge(n, 10);
    ck_assert_uint_le(n, 120);
    world_check(w);
    world_end(w);
}
END_TEST

/* Records sent meanwhile stay behind the pieces. */
START_TEST(what_is_sent_meanwhile_stays_behind)
{
    struct world *w = begin(_i, "true");
    struct world_record *r, *later;

    limit(w, "650");
    r = send_random(w, 0, 10, 100);
    world_run_until_attempts(w, 1);
    later = send_random(w, 0, 2, 100);
    world_settle(w);
    in_order(w, r, 10, 0);
    in_order(w, later, 2, 10);
    world_check(w);
    world_end(w);
}
END_TEST

/* Several batches of the partition are on the wire when the first is too
 * large. */
START_TEST(with_others_on_the_wire)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 20 * KP_NS_PER_MS,
        .settings = WORLD_SETTINGS(FAST, "compression.type", codecs[_i],
                                   "batch.size", "1200")});
    struct world_record *r;

    r = send_random(w, 0, 1, 100);
    world_settle(w);
    limit(w, "700");
    r = send_random(w, 0, 40, 100);
    world_settle(w);
    in_order(w, r, 40, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* Without idempotence. */
START_TEST(without_numbers)
{
    struct world *w = begin(_i, "false");
    struct world_record *r;

    limit(w, "250");
    r = send_random(w, 0, 16, 100);
    world_settle(w);
    in_order(w, r, 16, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* A batch that shrinks well is cut by what it is raw, and told apart all the
 * same. */
START_TEST(compressible)
{
    struct world *w = begin(_i, "true");
    struct world_record *r;

    r = world_send_many(w, 0, 200, 100);
    world_run_ms(w, 1);
    limit(w, "200");
    world_settle(w);
    in_order(w, r, 200, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* More pieces than the ledger has room for (here it is full of numbers that
 * nobody uses any more): the pieces are numbered afresh under the next epoch,
 * and each record is stored once, in its place. */
START_TEST(no_room_in_the_ledger)
{
    struct world *w = begin(_i, "true");
    struct world_record *r, *next;
    struct partition_queue *q =
        kp__topic_view(kp__topics_find(w->p->topics, "t", 1))->queues[0];
    struct ledger *l;

    limit(w, "300");
    r = send_random(w, 0, 8, 100);
    world_run_until_attempts(w, 1);
    l = &q->sender->ledger;
    ck_assert_uint_eq(l->count, 1);
    for (; l->count < LEDGER_MAX; l->count++)
        l->entries[l->count] = (struct ledger_entry){
            .first = 8 + (int32_t)l->count, .count = 1,
            .certainty = CERTAIN_NO};
    world_settle(w);
    in_order(w, r, 8, 0);
    ck_assert_uint_ge(world_attempts(w), 5);
    for (size_t i = 1; i < world_attempts(w); i++)
        ck_assert_int_eq(world_attempt(w, i)->header.producer_epoch, 1);
    ck_assert_int_eq(world_attempt(w, 1)->header.base_sequence, 0);
    next = world_send(w, 0);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 8);
    ck_assert_int_eq(
        world_attempt(w, world_attempts(w) - 1)->header.base_sequence, 8);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *split_batches_suite(void)
{
    Suite *s = suite_create("split_batches");
    TCase *t = tcase_create("split_batches");

    tcase_add_loop_test(t, no_room_in_the_ledger, 0, CODECS);
    tcase_add_loop_test(t, in_two, 0, CODECS);
    tcase_add_test(t, at_the_limit_to_the_byte);
    tcase_add_loop_test(t, down_to_single_records, 0, CODECS);
    tcase_add_loop_test(t, one_of_them_is_too_large, 0, CODECS);
    tcase_add_loop_test(t, the_first_is_too_large, 0, CODECS);
    tcase_add_loop_test(t, a_maybe_is_not_split, 0, CODECS);
    tcase_add_loop_test(t, a_half_is_lost_and_retried, 0, CODECS);
    tcase_add_loop_test(t, a_half_is_maybe_and_then_too_large, 0, CODECS);
    tcase_add_loop_test(t, halves_run_out_of_time, 0, CODECS);
    tcase_add_test(t, one_half_on_the_wire_at_the_deadline);
    tcase_add_loop_test(t, two_at_once, 0, CODECS);
    tcase_add_loop_test(t, waiting_for_a_split_backs_off, 0, CODECS);
    tcase_add_loop_test(t, what_is_sent_meanwhile_stays_behind, 0, CODECS);
    tcase_add_loop_test(t, with_others_on_the_wire, 0, CODECS);
    tcase_add_loop_test(t, without_numbers, 0, CODECS);
    tcase_add_loop_test(t, compressible, 0, CODECS);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(split_batches_suite)
