/* SPDX-License-Identifier: BSD-2-Clause */
/* Producer ids and epochs: how they are got, an epoch for each partition,
 * and the ends of their ranges. */
#include <stdio.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define FAST "retry.backoff.ms", "10", "retry.backoff.max.ms", "10", \
             "linger.ms", "0"
#define SINGLES "batch.size", "0"

static const struct record_batch_header *header(struct world *w, size_t i)
{
    return &world_attempt(w, i)->header;
}

static const struct record_batch_header *last(struct world *w)
{
    return header(w, world_attempts(w) - 1);
}

static struct ledger *ledger_of(struct world *w, int32_t partition)
{
    struct topic *t = kp__topics_find(w->p->topics, "t", 1);

    return &kp__topic_view(t)->queues[partition]->sender->ledger;
}

static struct world *begin(int partitions)
{
    return world_begin(&(struct world_options){
        .partitions = partitions, .settings = WORLD_SETTINGS(FAST, SINGLES)});
}

static void expect_ok(struct world *w, struct world_record *r, int64_t offset)
{
    (void)w;
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, offset);
}

/* S20, S21, T73 (Java has one epoch for all): the partition that failed goes on
 * under epoch 1, the others do not notice. */
START_TEST(a_bump_is_the_partitions_own)
{
    struct world *w = begin(2);
    struct world_record *bad, *a, *b;

    (void)world_send(w, 0);
    (void)world_send(w, 1);
    world_settle(w);
    (void)world_rule(w, "api=produce partition=0 count=1 error=87");
    bad = world_send(w, 0);
    b = world_send(w, 1);
    world_settle(w);
    world_expect(bad, KP_INVALID_RECORD, KP_OK, KP_STORED_NO, -1);
    expect_ok(w, b, 1);
    b = world_send(w, 1);
    world_settle(w);
    expect_ok(w, b, 2);
    ck_assert_int_eq(last(w)->producer_epoch, 0);
    ck_assert_int_eq(last(w)->base_sequence, 2);
    a = world_send(w, 0);
    world_settle(w);
    expect_ok(w, a, 1);
    ck_assert_int_eq(last(w)->producer_epoch, 1);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    a = world_send(w, 0);
    world_settle(w);
    expect_ok(w, a, 2);
    ck_assert_int_eq(last(w)->producer_epoch, 1);
    ck_assert_int_eq(last(w)->base_sequence, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* S21: the bump waits until nothing of the partition is on the wire, and does not
 * hold up the other one. */
START_TEST(a_bump_drains_first)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2,
        .latency_ns = 20 * KP_NS_PER_MS,
        .settings = WORLD_SETTINGS(FAST, SINGLES)});
    struct world_record *r;
    size_t first_new = 0;

    (void)world_send(w, 0);
    world_settle(w);
    /* 1 is refused for good, 2..5 are on the wire and get 45 */
    (void)world_rule(w, "api=produce partition=0 count=1 error=87");
    r = world_send_many(w, 0, 8, 0);
    world_settle(w);
    world_expect(r, KP_INVALID_RECORD, KP_OK, KP_STORED_NO, -1);
    for (uint32_t i = 1; i < 8; i++)
        expect_ok(w, world_record(w, r->id + i), (int64_t)i);
    for (size_t i = 0; i < world_attempts(w); i++) {
        if (header(w, i)->producer_epoch == 1 && first_new == 0)
            first_new = i;
        if (first_new > 0)
            ck_assert_int_eq(header(w, i)->producer_epoch, 1);
    }
    ck_assert_uint_eq(first_new, 6);
    ck_assert_int_eq(header(w, 6)->base_sequence, 0);
    ck_assert_uint_eq(world_attempt(w, 6)->first_id, r->id + 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* A MAYBE in front keeps its numbers while those behind it, proven not
 * stored, wait for a new epoch. */
START_TEST(a_maybe_in_front_goes_first)
{
    struct world *w = begin(1);
    struct world_record *r;
    size_t n;

    (void)world_send(w, 0);
    world_settle(w);
    /* 1: stored, answer lost with those of 2 and 3, which never arrive */
    (void)world_rule(w, "api=produce count=1 answer=close");
    (void)world_rule(w, "api=produce skip=1 count=3 error=45");
    r = world_send_many(w, 0, 3, 0);
    world_settle(w);
    for (uint32_t i = 0; i < 3; i++)
        expect_ok(w, world_record(w, r->id + i), 1 + (int64_t)i);
    n = world_attempts(w);
    for (size_t i = 1; i < n; i++)
        if (world_attempt(w, i)->first_id == r->id) {
            ck_assert_int_eq(header(w, i)->producer_epoch, 0);
            ck_assert_int_eq(header(w, i)->base_sequence, 1);
        }
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3");
    world_check(w);
    world_end(w);
}
END_TEST

/* T7: sequence numbers go from 2^31-1 to 0. */
START_TEST(sequences_wrap)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;
    int64_t id;

    id = ledger_of(w, 0)->producer_id;
    ledger_of(w, 0)->next_sequence = INT32_MAX - 1;
    kb_preset_producer(world_cluster(w), "t", 0, id, 0, INT32_MAX - 2);
    r = world_send_many(w, 0, 5, 0);
    world_settle(w);
    expect_ok(w, r, 0);
    ck_assert_int_eq(last(w)->base_sequence, INT32_MAX - 1);
    r = world_send_many(w, 0, 2, 0);
    world_settle(w);
    expect_ok(w, r, 5);
    ck_assert_int_eq(last(w)->base_sequence, 3);
    ck_assert_int_eq(last(w)->producer_epoch, 0);
    ck_assert_uint_eq(world_attempts(w), 2);
    world_check(w);
    world_end(w);
}
END_TEST

/* S29, S32, T9: past epoch 32,767 the partition gets a new id; the other one
 * keeps the old one. */
START_TEST(epochs_end)
{
    struct world *w = begin(2);
    struct world_record *a, *b;
    int64_t id;

    (void)world_send(w, 1);
    a = world_send(w, 0);
    world_settle(w);
    id = header(w, 0)->producer_id;
    ledger_of(w, 0)->epoch = INT16_MAX;
    ledger_of(w, 0)->next_sequence = 0;
    ledger_of(w, 0)->proven = false;
    a = world_send(w, 0);
    world_settle(w);
    expect_ok(w, a, 1);
    ck_assert_int_eq(last(w)->producer_epoch, INT16_MAX);
    (void)world_rule(w, "api=produce partition=0 count=1 error=45");
    a = world_send(w, 0);
    world_settle(w);
    expect_ok(w, a, 2);
    ck_assert_int_ne(last(w)->producer_id, id);
    ck_assert_int_eq(last(w)->producer_epoch, 0);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    b = world_send(w, 1);
    world_settle(w);
    expect_ok(w, b, 1);
    ck_assert_int_eq(last(w)->producer_id, id);
    ck_assert_int_eq(last(w)->base_sequence, 1);
    ck_assert_int_eq(kb_requests(world_cluster(w), -1, 22), 2);
    world_check(w);
    world_end(w);
}
END_TEST

/* Both need one: each asks once more than was needed at most. */
START_TEST(two_partitions_need_a_new_id)
{
    struct world *w = begin(2);
    struct world_record *a, *b;

    a = world_send(w, 0);
    b = world_send(w, 1);
    world_settle(w);
    (void)world_rule(w, "api=produce count=1 partition=0 error=47");
    (void)world_rule(w, "api=produce count=1 partition=1 error=47");
    a = world_send(w, 0);
    b = world_send(w, 1);
    world_settle(w);
    expect_ok(w, a, 1);
    expect_ok(w, b, 1);
    ck_assert_int_le(kb_requests(world_cluster(w), -1, 22), 3);
    world_check(w);
    world_end(w);
}
END_TEST

/* S11, S13, T38: errors of InitProducerId that pass. */
static const int passing[] = {7, 14, 15, 16, 51};

START_TEST(no_id_yet)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true, .settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;
    char line[80];

    (void)snprintf(line, sizeof(line),
                   "api=init-producer-id count=3 error=%d", passing[_i]);
    (void)world_rule(w, line);
    r = world_send(w, 0);
    world_settle(w);
    expect_ok(w, r, 0);
    ck_assert_int_eq(kb_requests(world_cluster(w), -1, 22), 4);
    ck_assert_int_eq(header(w, 0)->producer_epoch, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* S13: the connection goes instead of the answer. */
START_TEST(id_answer_lost)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true, .settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;

    (void)world_rule(w, "api=init-producer-id count=2 answer=close");
    r = world_send(w, 0);
    world_settle(w);
    expect_ok(w, r, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* S14, K15, in our own way: no id is given for good: what waits fails with the
 * code, NO.  An epoch that is called old means that a newer producer fences
 * us. */
static const struct {
    int code;
    kp_err shown;
} refusing[] = {{31, 31}, {35, 35}, {53, 53}, {47, KP_PRODUCER_FENCED}};

START_TEST(id_refused)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true, .settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;
    char line[80];

    (void)snprintf(line, sizeof(line),
                   "api=init-producer-id count=-1 error=%d", refusing[_i].code);
    r = world_send(w, 0);
    (void)world_rule(w, line);
    world_settle(w);
    if (r->state == WORLD_REFUSED) {
        ck_assert_int_eq(r->refused, refusing[_i].shown);
    } else {
        world_expect(r, refusing[_i].shown, KP_OK, KP_STORED_NO, -1);
    }
    ck_assert_uint_eq(world_attempts(w), 0);
    world_run_ms(w, 10000);
    ck_assert_int_eq(kb_requests(world_cluster(w), -1, 22), 1);
    ck_assert_int_eq(world_send(w, 0)->refused, refusing[_i].shown);
    world_check(w);
    world_end(w);
}
END_TEST

/* Brokers without InitProducerId: not possible with idempotence. */
START_TEST(too_old_for_ids)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true, .settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;

    kb_node_versions(world_cluster(w), 1, 22, 0, -1);
    r = world_send(w, 0);
    world_settle(w);
    if (r->state == WORLD_REFUSED)
        ck_assert_int_eq(r->refused, KP_UNSUPPORTED_VERSION);
    else
        world_expect(r, KP_UNSUPPORTED_VERSION, KP_OK, KP_STORED_NO, -1);
    world_end(w);
}
END_TEST

/* S30: a graceful close while a new id is on its way delivers all; S31: a
 * forced one does not wait. */
START_TEST(close_while_an_id_is_asked_for)
{
    struct world *w = begin(1);
    struct world_record *r;
    struct world_call *c;

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, "api=produce count=1 error=47");
    (void)world_rule(w, "api=init-producer-id count=1 answer_ms=500");
    r = world_send_many(w, 0, 3, 0);
    world_run_ms(w, 50);
    ck_assert(!r->reported);
    c = world_close(w, _i == 0 ? 10000 : 100);
    world_settle(w);
    if (_i == 0) {
        ck_assert_int_eq(c->err, KP_OK);
        for (uint32_t i = 0; i < 3; i++)
            expect_ok(w, world_record(w, r->id + i), 1 + (int64_t)i);
    } else {
        ck_assert_int_eq(c->err, KP_ECLOSED);
        ck_assert_int_eq(c->done_ns - c->called_ns, 100 * KP_NS_PER_MS);
        for (uint32_t i = 0; i < 3; i++)
            world_expect(world_record(w, r->id + i), KP_ECLOSED,
                         WORLD_ANY_CAUSE, KP_STORED_NO, -1);
    }
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *idempotence_epoch_suite(void)
{
    Suite *s = suite_create("idempotence_epoch");
    TCase *t = tcase_create("idempotence_epoch");

    tcase_add_test(t, a_bump_is_the_partitions_own);
    tcase_add_test(t, a_bump_drains_first);
    tcase_add_test(t, a_maybe_in_front_goes_first);
    tcase_add_test(t, sequences_wrap);
    tcase_add_test(t, epochs_end);
    tcase_add_test(t, two_partitions_need_a_new_id);
    tcase_add_loop_test(t, no_id_yet, 0,
                        (int)(sizeof(passing) / sizeof(passing[0])));
    tcase_add_test(t, id_answer_lost);
    tcase_add_loop_test(t, id_refused, 0,
                        (int)(sizeof(refusing) / sizeof(refusing[0])));
    tcase_add_test(t, too_old_for_ids);
    tcase_add_loop_test(t, close_while_an_id_is_asked_for, 0, 2);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(idempotence_epoch_suite)
