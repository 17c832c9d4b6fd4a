/* SPDX-License-Identifier: BSD-2-Clause */
/* What each answer to a Produce request means for the record: its err, its
 * cause, whether it is in the log, how often it is tried, and that the log
 * agrees. */
#include <limits.h>
#include <stdio.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define FAST "retry.backoff.ms", "10", "retry.backoff.max.ms", "10", \
             "linger.ms", "0"
#define SHORT "delivery.timeout.ms", "3000", "request.timeout.ms", "1000"

static void rule(struct world *w, const char *fmt, int code, const char *more)
{
    char line[200];

    (void)snprintf(line, sizeof(line), fmt, code, more);
    (void)world_rule(w, line);
}

/* -- one attempt, no retries: the table of certainty -- */

static const struct {
    int16_t code;
    int32_t one, all; /* stored, with acks=1 and acks=all */
} table[] = {
    {-1, KP_STORED_MAYBE, KP_STORED_MAYBE},
    {2, KP_STORED_NO, KP_STORED_NO},
    {3, KP_STORED_NO, KP_STORED_MAYBE},
    {5, KP_STORED_NO, KP_STORED_MAYBE},
    {6, KP_STORED_NO, KP_STORED_MAYBE},
    {7, KP_STORED_MAYBE, KP_STORED_MAYBE},
    {9, KP_STORED_NO, KP_STORED_MAYBE},
    {10, KP_STORED_NO, KP_STORED_NO},
    {17, KP_STORED_NO, KP_STORED_NO},
    {18, KP_STORED_NO, KP_STORED_NO},
    {19, KP_STORED_NO, KP_STORED_NO},
    {20, KP_STORED_MAYBE, KP_STORED_MAYBE},
    {21, KP_STORED_NO, KP_STORED_NO},
    {29, KP_STORED_NO, KP_STORED_NO},
    {32, KP_STORED_NO, KP_STORED_NO},
    {42, KP_STORED_NO, KP_STORED_NO},
    {43, KP_STORED_NO, KP_STORED_NO},
    {44, KP_STORED_NO, KP_STORED_NO},
    {45, KP_STORED_NO, KP_STORED_NO},
    {47, KP_STORED_NO, KP_STORED_NO},
    {56, KP_STORED_MAYBE, KP_STORED_MAYBE},
    {59, KP_STORED_NO, KP_STORED_NO},
    {74, KP_STORED_NO, KP_STORED_MAYBE},
    {75, KP_STORED_NO, KP_STORED_MAYBE},
    {76, KP_STORED_NO, KP_STORED_NO},
    {87, KP_STORED_NO, KP_STORED_NO},
    {100, KP_STORED_NO, KP_STORED_MAYBE},
    {103, KP_STORED_NO, KP_STORED_MAYBE},
    {999, KP_STORED_MAYBE, KP_STORED_MAYBE}, /* no such code */
};
#define TABLE ((int)(sizeof(table) / sizeof(table[0])))

static void one_attempt(int16_t code, const char *acks, int32_t stored)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("acks", acks, "enable.idempotence", "false",
                                   "retries", "0", FAST)});
    struct world_record *r, *next;

    rule(w, "api=produce count=1 error=%d %s", code, "");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, code, KP_OK, stored, -1);
    ck_assert_uint_eq(world_requests(w), 1);
    next = world_send(w, 0);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_check(w);
    world_end(w);
}

START_TEST(one_attempt_acks_1)
{
    one_attempt(table[_i].code, "1", table[_i].one);
}
END_TEST

START_TEST(one_attempt_acks_all)
{
    one_attempt(table[_i].code, "all", table[_i].all);
}
END_TEST

/* Negative numbers are the library's own errors: from a broker they say nothing
 * of what they say here. */
START_TEST(a_brokers_number_is_none_of_ours)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;

    rule(w, "api=produce count=1 error=%d %s", KP_EDISCONNECT, "");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_UNKNOWN_SERVER_ERROR, KP_OK, KP_STORED_MAYBE, -1);
    ck_assert_ptr_nonnull(strstr(r->text, "-142"));
    ck_assert_uint_eq(world_requests(w), 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* The leader appends and then says 6: the record is in the log. */
START_TEST(append_then_6_is_no_no)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("acks", "all", "enable.idempotence",
                                   "false", "retries", "0", FAST)});
    struct world_record *r;

    rule(w, "api=produce count=1 error=%d %s", 6, "append");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_NOT_LEADER_OR_FOLLOWER, KP_OK, KP_STORED_MAYBE, -1);
    ck_assert_str_eq(world_log(w, "t", 0), "0");
    world_end(w);
}
END_TEST

/* -- idempotent: retriable codes are tried again under the same numbers -- */

static const int16_t retriable[] = {3, 5, 6, 7, 9, 13, 19, 20, 56, 74, 75,
                                    89, 100};
#define RETRIABLE ((int)(sizeof(retriable) / sizeof(retriable[0])))

static void same_numbers(struct world *w, size_t n)
{
    ck_assert_uint_eq(world_attempts(w), n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(world_attempt(w, i)->header.producer_epoch, 0);
        ck_assert_int_eq(world_attempt(w, i)->header.base_sequence, 0);
    }
}

START_TEST(retriable_then_stored)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;

    rule(w, "api=produce count=2 error=%d %s", retriable[_i], "");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    same_numbers(w, 3);
    ck_assert_str_eq(world_log(w, "t", 0), "0");
    world_check(w);
    world_end(w);
}
END_TEST

/* Stored by the first attempt, which got an error for an answer: the second
 * one is the duplicate that the broker remembers, with its offset. */
START_TEST(appended_then_error_is_stored_once)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;

    rule(w, "api=produce count=1 error=%d %s", retriable[_i], "append");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    same_numbers(w, 2);
    ck_assert_str_eq(world_log(w, "t", 0), "0");
    world_check(w);
    world_end(w);
}
END_TEST

/* Never anything else until the deadline: the cause tells, the certainty is
 * that of the table. */
START_TEST(retriable_until_the_deadline)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SHORT)});
    struct world_record *r;
    int16_t code = retriable[_i];
    int32_t stored = code == 19 ? KP_STORED_NO : KP_STORED_MAYBE;

    rule(w, "api=produce count=-1 error=%d %s", code, "");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_ETIMEDOUT, code, stored, -1);
    ck_assert_int_eq(r->reported_ns - r->returned_ns, 3000 * KP_NS_PER_MS);
    ck_assert_uint_gt(world_attempts(w), 50);
    same_numbers(w, world_attempts(w));
    /* the backoff is 10 ms, give or take a fifth, and each attempt takes 2
     * ms */
    ck_assert_uint_lt(world_attempts(w), 3000 / 9);
    world_rule_remove(w, -1);
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_eq(
        world_attempt(w, world_attempts(w) - 1)->header.producer_epoch, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- idempotent: refusals -- */

static const int16_t refusals[] = {10, 17, 18, 21, 29, 32, 42, 43, 76, 87};
#define REFUSALS ((int)(sizeof(refusals) / sizeof(refusals[0])))

/* S41: a refusal of what was proven not stored is a NO at once; its numbers are
 * gone, so the partition goes on under the next epoch. */
START_TEST(refused)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r, *next;

    rule(w, "api=produce count=1 error=%d %s", refusals[_i], "");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, refusals[_i], KP_OK, KP_STORED_NO, -1);
    ck_assert_int_eq(r->report.kind, kp_err_kind(refusals[_i]));
    same_numbers(w, 1);
    next = world_send(w, 0);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_eq(world_attempt(w, 1)->header.producer_epoch, 1);
    ck_assert_int_eq(world_attempt(w, 1)->header.base_sequence, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* The same refusal after an attempt whose answer was lost says nothing of that
 * one: MAYBE (and in the log, here). */
START_TEST(refused_after_a_lost_answer)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r, *next;

    (void)world_rule(w, "api=produce count=1 answer=close");
    rule(w, "api=produce skip=1 count=1 error=%d %s", refusals[_i], "");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, refusals[_i], KP_EDISCONNECT, KP_STORED_MAYBE, -1);
    ck_assert_str_eq(world_log(w, "t", 0), "0");
    same_numbers(w, 2);
    next = world_send(w, 0);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_eq(world_attempt(w, 2)->header.producer_epoch, 1);
    ck_assert_int_eq(world_attempt(w, 2)->header.base_sequence, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* A bad checksum is tried three times, as it may be the network's doing. */
START_TEST(corrupt_three_times)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;

    (void)world_rule(w, "api=produce count=-1 error=2");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_CORRUPT_MESSAGE, KP_OK, KP_STORED_NO, -1);
    same_numbers(w, 3);
    world_rule_remove(w, -1);
    /* other errors before it do not count */
    (void)world_rule(w, "api=produce count=5 error=19");
    (void)world_rule(w, "api=produce skip=5 count=2 error=2");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- fatal -- */

static const int16_t fatal[] = {31, 35, 53, 90};
#define FATAL ((int)(sizeof(fatal) / sizeof(fatal[0])))

/* S39, S40, S42: everything ends with the code; what was sent may be stored,
 * what was not is not, and every later call says why. */
START_TEST(fatal_ends_all)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .settings = WORLD_SETTINGS(FAST)});
    struct world_record *first, *sent, *queued, *late;
    int other;
    kp_error error;

    ck_assert_int_ne(kb_leader(world_cluster(w), "t", 0),
                     kb_leader(world_cluster(w), "t", 1));
    /* warm up, so that both connections are there */
    (void)world_send(w, 0);
    (void)world_send(w, 1);
    world_settle(w);
    rule(w, "api=produce partition=0 count=1 error=%d %s", fatal[_i], "");
    other = world_rule(w, "api=produce partition=1 count=1 answer_ms=500");
    sent = world_send(w, 1);
    world_run_ms(w, 5);
    first = world_send(w, 0);
    queued = world_send_what(
        w, &(struct world_what){.partition = 0, .flags = WORLD_CALLBACK});
    world_run_ms(w, 50);
    ck_assert_int_eq(kb_rule_hits(world_cluster(w), other), 1);
    world_expect(first, fatal[_i], KP_OK, KP_STORED_NO, -1);
    world_expect(sent, fatal[_i], KP_OK, KP_STORED_MAYBE, -1);
    ck_assert_int_eq(queued->report.err, fatal[_i]);
    ck_assert_int_eq(queued->report.stored, KP_STORED_NO);
    late = world_send(w, 1);
    ck_assert_int_eq(late->state, WORLD_REFUSED);
    ck_assert_int_eq(late->refused, fatal[_i]);
    ck_assert_int_eq(kp_status(world_producer(w), NULL, &error), fatal[_i]);
    ck_assert_int_eq(error.kind, KP_KIND_FATAL);
    world_run_ms(w, 1000); /* the late answer changes nothing */
    world_expect(sent, fatal[_i], KP_OK, KP_STORED_MAYBE, -1);
    world_check(w);
    world_end(w);
}
END_TEST

/* It is too late for sends to hear of it, and not for the close. */
START_TEST(fatal_during_close)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;
    struct world_call *c;
    kp_error error;

    rule(w, "api=produce count=1 error=%d answer_ms=20 %s", fatal[_i], "");
    r = world_send(w, 0);
    world_run_until_attempts(w, 1);
    c = world_close(w, 60000);
    ck_assert_int_eq(world_send(w, 0)->refused, KP_ECLOSED);
    world_settle(w);
    world_expect(r, fatal[_i], KP_OK, KP_STORED_NO, -1);
    ck_assert(c->done);
    ck_assert_int_eq(c->err, fatal[_i]);
    ck_assert_int_eq(c->error.kind, KP_KIND_FATAL);
    ck_assert_int_eq(kp_status(world_producer(w), NULL, &error), fatal[_i]);
    world_check(w);
    world_end(w);
}
END_TEST

/* 9.6: without a poller the I/O thread cannot go on: all ends, and close works.
 * */
START_TEST(poller_fails)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *sent, *queued, *late;
    struct world_call *c;

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, "api=produce count=1 answer_ms=500");
    sent = world_send(w, 0);
    world_run_ms(w, 5);
    world_break_poller(w, 1);
    queued = world_send(w, 0);
    world_run_ms(w, 5);
    world_expect(sent, KP_ECONNECT, KP_OK, KP_STORED_MAYBE, -1);
    world_expect(queued, KP_ECONNECT, KP_OK, KP_STORED_NO, -1);
    late = world_send(w, 0);
    ck_assert_int_eq(late->refused, KP_ECONNECT);
    c = world_close(w, 1000);
    world_settle(w);
    ck_assert_int_eq(c->err, KP_ECONNECT); /* as every call from now on */
    world_check(w);
    world_end(w);
}
END_TEST

/* A poller that stays broken is tried again with pauses: reports go out before
 * the first, and a close need not wait for longer than one. */
START_TEST(poller_stays_broken)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *sent, *queued;
    struct world_call *c;
    uint64_t turns;

    (void)world_rule(w, "api=produce count=1 answer_ms=500");
    sent = world_send(w, 0);
    world_run_ms(w, 5);
    world_break_poller(w, INT_MAX);
    queued = world_send(w, 0);
    world_run_ms(w, 1);
    world_expect(sent, KP_ECONNECT, KP_OK, KP_STORED_MAYBE, -1);
    world_expect(queued, KP_ECONNECT, KP_OK, KP_STORED_NO, -1);
    turns = world_turns(w);
    world_run_ms(w, 1000);
    ck_assert_uint_le(world_turns(w) - turns, 120);
    ck_assert_uint_ge(world_turns(w) - turns, 80);
    c = world_close(w, 1000);
    world_run_ms(w, 15);
    ck_assert(c->done);
    ck_assert_int_eq(c->err, KP_ECONNECT);
    world_check(w);
    world_end(w);
}
END_TEST

/* A31, S42: a broker that is too old for record batches. */
START_TEST(too_old_for_batches)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true,
        .settings = WORLD_SETTINGS(FAST, SHORT, "max.block.ms", "2000",
                                   "enable.idempotence", "false")});
    struct world_record *r;
    kp_error error;

    kb_node_versions(world_cluster(w), 1, 0, 0, 2);
    r = world_send(w, 0);
    world_settle(w);
    if (r->state == WORLD_TAKEN)
        ck_assert_int_eq(r->report.stored, KP_STORED_NO);
    ck_assert_int_eq(kp_status(world_producer(w), NULL, &error), KP_ENOTSUP);
    ck_assert_uint_eq(world_attempts(w), 0);
    world_end(w);
}
END_TEST

/* The first one counts: what comes later does not change what calls say. */
START_TEST(fatal_once)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2, .partitions = 2, .settings = WORLD_SETTINGS(FAST)});
    struct world_record *a, *b, *late;
    kp_error error;

    (void)world_send(w, 0);
    (void)world_send(w, 1);
    world_settle(w);
    (void)world_rule(w, "api=produce partition=1 count=1 error=31 "
                        "answer_ms=300");
    (void)world_rule(w, "api=produce partition=0 count=1 error=47");
    (void)world_rule(w, "api=init-producer-id count=1 answer_ms=500 error=53");
    b = world_send(w, 1);
    world_run_ms(w, 10);
    a = world_send(w, 0);
    world_run_ms(w, 1000);
    ck_assert_int_eq(kb_requests(world_cluster(w), -1, 22), 2);
    world_expect(a, KP_CLUSTER_AUTHORIZATION_FAILED,
                 KP_INVALID_PRODUCER_EPOCH, KP_STORED_NO, -1);
    world_expect(b, KP_CLUSTER_AUTHORIZATION_FAILED, KP_OK, KP_STORED_NO, -1);
    late = world_send(w, 0);
    ck_assert_int_eq(late->refused, KP_CLUSTER_AUTHORIZATION_FAILED);
    ck_assert_int_eq(kp_status(world_producer(w), NULL, &error),
                     KP_CLUSTER_AUTHORIZATION_FAILED);
    world_end(w);
}
END_TEST

/* -- answers that are none -- */

/* S54: the answer leaves the partition out. */
START_TEST(omitted_partition_is_maybe)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2,
        .settings = WORLD_SETTINGS(FAST, "enable.idempotence", "false",
                                   "retries", "0")});
    struct world_record *a, *b;

    (void)world_rule(w, "api=produce partition=1 count=1 omit");
    a = world_send(w, 0);
    b = world_send(w, 1);
    world_settle(w);
    ck_assert_uint_eq(world_requests(w), 1);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_expect(b, KP_EPROTO, KP_OK, KP_STORED_MAYBE, -1);
    world_check(w);
    world_end(w);
}
END_TEST

static const char *const spoilt[] = {
    "close", "reset", "cut at=3", "cut at=11", "short at=6", "garbage",
    "wrong-id", "huge", "negative", "tiny", "other-api", "stall", "none",
    "cut-stall at=20", "unasked",
};
#define SPOILT ((int)(sizeof(spoilt) / sizeof(spoilt[0])))

/* Whatever is wrong with the answer, the batch is stored by then, and is stored
 * once. */
START_TEST(spoilt_answer)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "request.timeout.ms", "1000")});
    struct world_record *a, *b;

    rule(w, "api=produce count=%d answer=%s", 1, spoilt[_i]);
    a = world_send(w, 0);
    world_run_until_attempts(w, 1);
    b = world_send(w, 0);
    world_settle(w);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_expect(b, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1");
    world_check(w);
    world_end(w);
}
END_TEST

/* Stored at an offset that is none, or with records whose offsets would be none:
 * not a report that anybody could use, and not a broker to go on with. */
static const char *const impossible[] = {
    "-2", "-9223372036854775808", "9223372036854775807",
    "9223372036854775805"};

START_TEST(impossible_offset)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;
    int64_t connects;
    char line[80];

    (void)world_send(w, 0);
    world_settle(w);
    connects = kb_connects(world_cluster(w), -1);
    (void)snprintf(line, sizeof(line), "api=produce count=1 offset=%s",
                   impossible[_i]);
    (void)world_rule(w, line);
    r = world_send_many(w, 0, 3, 0);
    world_settle(w);
    for (uint32_t i = 0; i < 3; i++)
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK, KP_STORED_YES,
                     1 + i);
    ck_assert_int_eq(kb_connects(world_cluster(w), -1), connects + 1);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3");
    world_check(w);
    world_end(w);
}
END_TEST

/* The same without retries: what is certain is certain. */
START_TEST(spoilt_answer_without_retries)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "request.timeout.ms", "1000",
                                   "enable.idempotence", "false", "retries",
                                   "0")});
    struct world_record *a;

    rule(w, "api=produce count=%d answer=%s", 1, spoilt[_i]);
    a = world_send(w, 0);
    world_settle(w);
    ck_assert_int_ne(a->report.err, KP_OK);
    ck_assert_int_eq(a->report.stored, KP_STORED_MAYBE);
    ck_assert_str_eq(world_log(w, "t", 0), "0");
    world_check(w);
    world_end(w);
}
END_TEST

/* Whatever bit of the answer is wrong: one report, and the client goes on. */
#define STRIPES 8
#define BITS 2400

START_TEST(any_bit_of_the_answer)
{
    char line[80];

    for (int bit = _i % STRIPES; bit < BITS; bit += STRIPES) {
        struct world *w = world_begin(&(struct world_options){
            .settings = WORLD_SETTINGS(FAST, "request.timeout.ms", "100",
                                       "delivery.timeout.ms", "400")});
        struct world_record *r;

        if (_i >= STRIPES) /* an answer with errors of single records */
            ck_assert(kb_topic_set(world_cluster(w), "t", "cleanup.policy",
                                   "compact"));
        (void)snprintf(line, sizeof(line),
                       "api=produce count=1 answer=flip at=%d", bit);
        (void)world_rule(w, line);
        r = world_send_many(w, 0, 3, 0);
        world_settle(w);
        for (uint32_t i = 0; i < 3; i++)
            ck_assert_uint_eq(world_record(w, r->id + i)->callbacks, 1);
        ck_assert(kb_topic_set(world_cluster(w), "t", "cleanup.policy",
                               "delete"));
        r = world_send(w, 0);
        world_settle(w);
        if (r->state == WORLD_TAKEN)
            ck_assert(r->reported);
        world_end(w);
    }
}
END_TEST

/* Answers with too much in them: told twice, or about a stranger. */
START_TEST(more_than_was_asked)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;

    (void)world_rule(w, _i == 0 ? "api=produce count=1 repeat"
                                : "api=produce count=1 stranger");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_uint_eq(world_attempts(w), 1);
    ck_assert_uint_eq(r->callbacks, 1);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *verdict_codes_suite(void)
{
    Suite *s = suite_create("verdict_codes");
    TCase *t = tcase_create("verdict_codes");

    tcase_add_loop_test(t, one_attempt_acks_1, 0, TABLE);
    tcase_add_loop_test(t, one_attempt_acks_all, 0, TABLE);
    tcase_add_test(t, a_brokers_number_is_none_of_ours);
    tcase_add_test(t, append_then_6_is_no_no);
    tcase_add_loop_test(t, retriable_then_stored, 0, RETRIABLE);
    tcase_add_loop_test(t, appended_then_error_is_stored_once, 0, RETRIABLE);
    tcase_add_loop_test(t, retriable_until_the_deadline, 0, RETRIABLE);
    tcase_add_loop_test(t, refused, 0, REFUSALS);
    tcase_add_loop_test(t, refused_after_a_lost_answer, 0, REFUSALS);
    tcase_add_test(t, corrupt_three_times);
    tcase_add_loop_test(t, fatal_ends_all, 0, FATAL);
    tcase_add_loop_test(t, fatal_during_close, 0, FATAL);
    tcase_add_test(t, fatal_once);
    tcase_add_test(t, poller_fails);
    tcase_add_test(t, poller_stays_broken);
    tcase_add_test(t, too_old_for_batches);
    tcase_add_loop_test(t, any_bit_of_the_answer, 0, 2 * STRIPES);
    tcase_add_test(t, omitted_partition_is_maybe);
    tcase_add_loop_test(t, spoilt_answer, 0, SPOILT);
    tcase_add_loop_test(t, impossible_offset, 0, 4);
    tcase_add_loop_test(t, spoilt_answer_without_retries, 0, SPOILT);
    tcase_add_loop_test(t, more_than_was_asked, 0, 2);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(verdict_codes_suite)
