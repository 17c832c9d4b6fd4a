/* SPDX-License-Identifier: BSD-2-Clause */
/* The answers that only mean something with identities (45, 46, 47, 59),
 * each with nothing known against the batch and with an attempt whose answer
 * was lost; deadlines of what was and was not sent; answers after the
 * deadline. */
#include <stdio.h>
#include <string.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define FAST \
    "retry.backoff.ms", "10", "retry.backoff.max.ms", "10", "linger.ms", "0"
#define SHORT \
    "delivery.timeout.ms", "3000", "request.timeout.ms", "1000", \
        "reconnect.backoff.max.ms", "50"

static struct world *begin(void)
{
    return world_begin(&(struct world_options){
        .partitions = 2, .settings = WORLD_SETTINGS(FAST, SHORT)});
}

static const struct record_batch_header *header(struct world *w, size_t i)
{
    return &world_attempt(w, i)->header;
}

static const struct record_batch_header *last(struct world *w)
{
    return header(w, world_attempts(w) - 1);
}

/* T8: at the head and refused each time: nothing of it is in the
 * log, so it gets new numbers. */
START_TEST(at_the_head_it_is_renumbered)
{
    struct world *w = begin();
    struct world_record *r;

    (void)world_rule(w, "api=produce count=1 error=45");
    r = world_send_many(w, 0, 2, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_uint_eq(world_attempts(w), 2);
    ck_assert_int_eq(header(w, 1)->producer_epoch, 1);
    ck_assert_int_eq(header(w, 1)->base_sequence, 0);
    ck_assert_int_eq(header(w, 1)->record_count, 2);
    world_check(w);
    world_end(w);
}
END_TEST

/* It may be in the log: it keeps its numbers and is asked for again until its
 * deadline; what comes after it waits, and then goes under the next epoch. */
START_TEST(a_maybe_at_the_head_keeps_its_numbers)
{
    struct world *w = begin();
    struct world_record *r, *next;
    char line[80];

    (void)world_rule(w, "api=produce count=1 answer=close");
    (void)snprintf(line, sizeof(line), "api=produce skip=1 count=-1 error=%d",
                   _i);
    (void)world_rule(w, line);
    r = world_send(w, 0);
    world_run_until_attempts(w, 2);
    next = world_send(w, 0);
    world_run_until_ns(w, r->returned_ns + 2960 * KP_NS_PER_MS);
    ck_assert(!r->reported);
    ck_assert_uint_gt(world_attempts(w), 50);
    for (size_t i = 0; i < world_attempts(w); i++) {
        ck_assert_int_eq(header(w, i)->producer_epoch, 0);
        ck_assert_int_eq(header(w, i)->base_sequence, 0);
        ck_assert_uint_eq(world_attempt(w, i)->first_id, 0);
    }
    world_rule_remove(w, -1);
    world_settle(w);
    /* the broker knows it after all */
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1");
    world_check(w);
    world_end(w);
}
END_TEST

START_TEST(a_maybe_until_its_deadline)
{
    struct world *w = begin();
    struct world_record *r, *next;
    char line[80];

    (void)world_rule(w, "api=produce count=1 answer=close");
    (void)snprintf(line, sizeof(line),
                   "api=produce skip=1 count=-1 partition=0 error=%d", _i);
    (void)world_rule(w, line);
    r = world_send(w, 0);
    world_run_until_attempts(w, 2);
    world_run_ms(w, 2000);
    next = world_send(w, 0);
    world_run_ms(w, 800);
    ck_assert(!r->reported);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    ck_assert_uint_eq(world_attempt(w, world_attempts(w) - 1)->first_id, 0);
    world_run_ms(w, 300);
    world_expect(r, KP_ETIMEDOUT, _i, KP_STORED_MAYBE, -1);
    ck_assert_int_eq(r->reported_ns - r->returned_ns, 3000 * KP_NS_PER_MS);
    world_rule_remove(w, -1);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 1);
    if (_i == 47)
        ck_assert_int_ne(last(w)->producer_id, header(w, 0)->producer_id);
    else
        ck_assert_int_ge(last(w)->producer_epoch, 1);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* A duplicate of what may be stored is stored, nobody knows where. */
START_TEST(duplicate_of_a_maybe)
{
    struct world *w = begin();
    struct world_record *r, *next;

    (void)world_rule(w, "api=produce count=1 answer=close");
    (void)world_rule(w, "api=produce skip=1 count=1 error=46");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, -1);
    next = world_send(w, 0);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_eq(last(w)->producer_epoch, 0);
    ck_assert_int_eq(last(w)->base_sequence, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* A duplicate of what was sent once: not ours, so MAYBE, and that identity
 * is not to be trusted any more. */
START_TEST(duplicate_of_a_first_attempt)
{
    struct world *w = begin();
    struct world_record *r, *next;

    (void)world_rule(w, "api=produce count=1 error=46");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_DUPLICATE_SEQUENCE_NUMBER, KP_OK, KP_STORED_MAYBE, -1);
    next = world_send(w, 0);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_ne(last(w)->producer_id, header(w, 0)->producer_id);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* S33 */
START_TEST(duplicate_behind_which_others_are_stored)
{
    struct world *w = begin();
    struct world_record *a, *b, *c;

    a = world_send(w, 0);
    world_settle(w);
    /* b is stored and its answer is lost with the connection; then it is called
     * a duplicate. */
    (void)world_rule(w, "api=produce count=1 answer=close");
    (void)world_rule(w, "api=produce skip=1 count=1 error=46");
    b = world_send(w, 0);
    world_run_until_attempts(w, 2);
    c = world_send(w, 0);
    world_settle(w);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_expect(b, KP_OK, KP_OK, KP_STORED_YES, -1);
    world_expect(c, KP_OK, KP_OK, KP_STORED_YES, 2);
    world_check(w);
    world_end(w);
}
END_TEST

/* 47 and nothing of it in the log: a new id, and it is sent again. */
static const int16_t ids_that_are_gone[] = {47, 49};

START_TEST(the_id_is_good_no_more)
{
    struct world *w = begin();
    struct world_record *r, *other;
    int64_t id;
    char line[80];

    other = world_send(w, 1);
    world_settle(w);
    id = header(w, 0)->producer_id;
    (void)snprintf(line, sizeof(line),
                   "api=produce count=1 partition=0 error=%d",
                   ids_that_are_gone[_i]);
    (void)world_rule(w, line);
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_ne(last(w)->producer_id, id);
    ck_assert_int_eq(last(w)->producer_epoch, 0);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    /* the other partition goes on as it did */
    other = world_send(w, 1);
    world_settle(w);
    world_expect(other, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_eq(last(w)->producer_id, id);
    ck_assert_int_eq(last(w)->base_sequence, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* A broker that wants none of our numbers, whatever we do: each new epoch and
 * each new id waits as a retry does, and the record ends at its deadline. */
static const int16_t refused_numbers[] = {45, 47, 49};

START_TEST(numbers_that_are_never_right)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SHORT)});
    struct world_record *r;
    char line[80];

    (void)snprintf(line, sizeof(line), "api=produce count=-1 error=%d",
                   refused_numbers[_i]);
    (void)world_rule(w, line);
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_ETIMEDOUT, refused_numbers[_i], KP_STORED_NO, -1);
    ck_assert_int_eq(r->reported_ns - r->returned_ns, 3000 * KP_NS_PER_MS);
    /* a backoff of 10 ms, give or take a fifth, and 2 ms for each answer */
    ck_assert_uint_gt(world_attempts(w), 100);
    ck_assert_uint_lt(world_attempts(w), 3000 / 9);
    ck_assert_int_le(kb_requests(world_cluster(w), -1, 22),
                     (int64_t)world_attempts(w) + 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* What a broker refuses for itself tells nothing of its numbers: however many
 * are refused, the next one's turn comes at once. */
START_TEST(refused_records_do_not_slow_the_next)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("retry.backoff.ms", "1000", "batch.size",
                                   "0", "linger.ms", "0")});
    struct world_record *r[20];

    (void)world_rule(w, "api=produce count=20 error=87");
    for (size_t i = 0; i < 20; i++)
        r[i] = world_send(w, 0);
    world_settle(w);
    for (size_t i = 0; i < 20; i++) {
        world_expect(r[i], KP_INVALID_RECORD, KP_OK, KP_STORED_NO, -1);
        ck_assert_int_lt(r[i]->reported_ns - r[i]->returned_ns,
                         500 * KP_NS_PER_MS);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* S36: no log start, no news: the same numbers again. */
START_TEST(unknown_producer_without_log_start)
{
    struct world *w = begin();
    struct world_record *r;

    (void)world_rule(w, "api=produce count=2 error=59");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_uint_eq(world_attempts(w), 3);
    ck_assert_int_eq(last(w)->producer_epoch, 0);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* With a log start there is news, whatever it is: the broker has forgotten us
 * because what we stored is gone (S35: the log begins after our last offset), or
 * for another reason (S38: it does not).  The next epoch, from 0. */
static const int64_t log_starts[] = {0, 2, 3, 1000};

START_TEST(unknown_producer_with_log_start)
{
    struct world *w = begin();
    struct world_record *r, *other;
    char line[80];

    (void)world_send_many(w, 0, 3, 0); /* offsets 0 to 2 */
    (void)world_send(w, 1);
    world_settle(w);
    (void)snprintf(line, sizeof(line),
                   "api=produce count=1 partition=0 error=59 log_start=%lld",
                   (long long)log_starts[_i]);
    (void)world_rule(w, line);
    r = world_send_many(w, 0, 2, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 3);
    world_expect(world_record(w, r->id + 1), KP_OK, KP_OK, KP_STORED_YES, 4);
    ck_assert_int_eq(last(w)->producer_epoch, 1);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    ck_assert_int_eq(last(w)->record_count, 2);
    other = world_send(w, 1);
    world_settle(w);
    world_expect(other, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_eq(last(w)->producer_epoch, 0);
    ck_assert_int_eq(last(w)->base_sequence, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* S37, differently: both on the wire are refused so; the first makes the epoch,
 * and the second follows it there: 0, 1. */
START_TEST(two_unknown_producers_with_log_start)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, SHORT, "batch.size", "1")});
    struct world_record *a, *b;
    size_t n;

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, "api=produce count=2 error=59 log_start=1000");
    a = world_send(w, 0);
    b = world_send(w, 0);
    world_settle(w);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 1);
    world_expect(b, KP_OK, KP_OK, KP_STORED_YES, 2);
    n = world_attempts(w);
    ck_assert_uint_eq(n, 5);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(header(w, 1 + i)->producer_epoch, 0);
        ck_assert_int_eq(header(w, 1 + i)->base_sequence, 1 + (int32_t)i);
        ck_assert_int_eq(header(w, 3 + i)->producer_epoch, 1);
        ck_assert_int_eq(header(w, 3 + i)->base_sequence, (int32_t)i);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* It may be in the log: no new numbers, with a log start or without. */
START_TEST(unknown_producer_of_a_maybe)
{
    struct world *w = begin();
    struct world_record *r;

    (void)world_rule(w, "api=produce count=1 answer=close");
    (void)world_rule(w, _i == 0 ? "api=produce skip=1 count=4 error=59"
                                : "api=produce skip=1 count=4 error=59 "
                                  "log_start=1000");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_uint_eq(world_attempts(w), 6);
    ck_assert_int_eq(last(w)->producer_epoch, 0);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    ck_assert_str_eq(world_log(w, "t", 0), "0");
    world_check(w);
    world_end(w);
}
END_TEST

/* -- deadlines -- */

/* S24: never sent: NO, and no number was used. */
START_TEST(deadline_of_what_was_never_sent)
{
    struct world *w = begin();
    struct world_record *a, *r, *next;

    a = world_send(w, 0);
    world_settle(w);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 0);
    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    world_run_ms(w, 10);
    r = world_send(w, 0);
    world_settle(w);
    ck_assert_int_eq(r->report.err, KP_ETIMEDOUT);
    ck_assert_int_eq(r->report.cause, KP_ECONNECT);
    ck_assert_int_eq(r->report.stored, KP_STORED_NO);
    ck_assert_int_eq(r->reported_ns - r->returned_ns, 3000 * KP_NS_PER_MS);
    kb_node_start(world_cluster(w), 1, KB_KEEP_STATE, world_now_ns(w));
    next = world_send(w, 0);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_eq(last(w)->producer_epoch, 0);
    ck_assert_int_eq(last(w)->base_sequence, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* S28: sent, refused each time, and late: NO; its numbers are gone. */
START_TEST(deadline_after_refusals)
{
    struct world *w = begin();
    struct world_record *r, *next;

    (void)world_rule(w, "api=produce count=-1 error=19");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_ETIMEDOUT, KP_NOT_ENOUGH_REPLICAS, KP_STORED_NO, -1);
    world_rule_remove(w, -1);
    next = world_send(w, 0);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_eq(last(w)->producer_epoch, 1);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* S73: the answer comes after the record's deadline but within the
 * request's time.  Nothing new goes before it is known; then the numbers go
 * on, and no new epoch is needed. */
START_TEST(late_answer_in_time_for_the_request)
{
    struct world *w = begin();
    struct world_record *r, *next;

    /* the record waits 2.5 s for its broker, then 0.9 s for the answer */
    world_link(w, 1)->refuses = true;
    world_cut(w, -1, false);
    world_run_ms(w, 5);
    r = world_send(w, 0);
    world_run_ms(w, 2400);
    ck_assert_uint_eq(world_attempts(w), 0);
    world_link(w, 1)->refuses = false;
    (void)world_rule(w, "api=produce count=1 answer_ms=980");
    world_run_until_attempts(w, 1);
    next = world_send(w, 0);
    while (!r->reported)
        world_run_ms(w, 1);
    world_expect(r, KP_ETIMEDOUT, WORLD_ANY_CAUSE, KP_STORED_MAYBE, -1);
    ck_assert_int_eq(r->reported_ns - r->returned_ns, 3000 * KP_NS_PER_MS);
    ck_assert_uint_eq(world_attempts(w), 1);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_uint_eq(world_attempts(w), 2);
    ck_assert_int_eq(last(w)->producer_epoch, 0);
    ck_assert_int_eq(last(w)->base_sequence, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* ... or it says that nothing was stored: the numbers are gone. */
START_TEST(late_refusal)
{
    struct world *w = begin();
    struct world_record *r, *next;

    world_link(w, 1)->refuses = true;
    world_cut(w, -1, false);
    world_run_ms(w, 5);
    r = world_send(w, 0);
    world_run_ms(w, 2400);
    world_link(w, 1)->refuses = false;
    (void)world_rule(w, "api=produce count=1 answer_ms=980 error=19");
    world_run_until_attempts(w, 1);
    next = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_ETIMEDOUT, WORLD_ANY_CAUSE, KP_STORED_MAYBE, -1);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_uint_eq(world_attempts(w), 2);
    ck_assert_int_eq(last(w)->producer_epoch, 1);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* S51, S52: an error after the deadline is not retried and splits nothing. */
START_TEST(error_after_the_deadline)
{
    static const char *const rules[] = {
        "api=produce count=1 answer_ms=980 error=6",
        "api=produce count=1 answer_ms=980 error=10",
        "api=produce count=1 answer_ms=980 error=45",
    };
    struct world *w = begin();
    struct world_record *r;

    world_link(w, 1)->refuses = true;
    world_cut(w, -1, false);
    world_run_ms(w, 5);
    r = world_send_many(w, 0, 4, 100);
    world_run_ms(w, 2400);
    world_link(w, 1)->refuses = false;
    (void)world_rule(w, rules[_i]);
    world_settle(w);
    world_run_ms(w, 5000);
    world_expect(r, KP_ETIMEDOUT, WORLD_ANY_CAUSE, KP_STORED_MAYBE, -1);
    ck_assert_uint_eq(world_attempts(w), 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* S48, the other way round: an answer that had come counts, however late the
 * I/O thread gets to read it. */
START_TEST(answer_that_had_come_beats_the_deadline)
{
    struct world *w = begin();
    struct world_record *r;

    r = world_send(w, 0);
    world_run_until_attempts(w, 1);
    world_hold(w, true);
    world_run_ms(w, 10000);
    ck_assert(!r->reported);
    world_hold(w, false);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_uint_eq(world_attempts(w), 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* A frame that the transport did not take to its last byte was never acted
 * upon: NO, even though most of it had left. */
START_TEST(cut_before_the_last_byte)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "enable.idempotence", "false",
                                   "retries", "0")});
    struct world_record *a, *r;
    size_t size;

    a = world_send(w, 0); /* the connection is there */
    world_settle(w);
    ck_assert_int_eq(a->report.err, KP_OK);
    size = world_attempt(w, 0)->size;
    world_link(w, 1)->stall_to = true;
    world_link(w, 1)->window = size + (size_t)_i;
    r = world_send(w, 0);
    world_run_ms(w, 100);
    ck_assert(!r->reported);
    world_link(w, 1)->window = 256 * 1024;
    world_cut(w, 1, true);
    world_settle(w);
    world_expect(r, KP_EDISCONNECT, KP_OK, KP_STORED_NO, -1);
    world_check(w);
    world_end(w);
}
END_TEST

/* The last byte was taken and lost on the way: nobody can know. */
START_TEST(cut_after_the_last_byte)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "enable.idempotence", "false",
                                   "retries", "0")});
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    world_link(w, 1)->stall_to = true;
    r = world_send(w, 0);
    world_run_ms(w, 100);
    world_link(w, 1)->stall_to = false;
    world_cut(w, 1, _i == 0);
    world_settle(w);
    world_expect(r, KP_EDISCONNECT, KP_OK, KP_STORED_MAYBE, -1);
    ck_assert_str_eq(world_log(w, "t", 0), _i == 0 ? "0" : "0 1");
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *verdict_identity_suite(void)
{
    Suite *s = suite_create("verdict_identity");
    TCase *t = tcase_create("verdict_identity");

    tcase_add_test(t, at_the_head_it_is_renumbered);
    tcase_add_loop_test(t, a_maybe_at_the_head_keeps_its_numbers, 45, 46);
    tcase_add_loop_test(t, a_maybe_until_its_deadline, 45, 46);
    tcase_add_loop_test(t, a_maybe_until_its_deadline, 47, 48);
    tcase_add_loop_test(t, a_maybe_until_its_deadline, 59, 60);
    tcase_add_test(t, duplicate_of_a_maybe);
    tcase_add_test(t, duplicate_of_a_first_attempt);
    tcase_add_test(t, duplicate_behind_which_others_are_stored);
    tcase_add_loop_test(t, the_id_is_good_no_more, 0, 2);
    tcase_add_loop_test(t, numbers_that_are_never_right, 0, 3);
    tcase_add_test(t, refused_records_do_not_slow_the_next);
    tcase_add_test(t, unknown_producer_without_log_start);
    tcase_add_loop_test(t, unknown_producer_with_log_start, 0, 4);
    tcase_add_test(t, two_unknown_producers_with_log_start);
    tcase_add_loop_test(t, unknown_producer_of_a_maybe, 0, 2);
    tcase_add_test(t, deadline_of_what_was_never_sent);
    tcase_add_test(t, deadline_after_refusals);
    tcase_add_test(t, late_answer_in_time_for_the_request);
    tcase_add_test(t, late_refusal);
    tcase_add_loop_test(t, error_after_the_deadline, 0, 3);
    tcase_add_test(t, answer_that_had_come_beats_the_deadline);
    tcase_add_loop_test(t, cut_before_the_last_byte, 0, 20);
    tcase_add_loop_test(t, cut_after_the_last_byte, 0, 2);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(verdict_identity_suite)
