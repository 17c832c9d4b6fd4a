/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers to Produce that end early, lie about their size, change places or say
 * what cannot be: at every byte, the whole client under a stopped clock.  The ids
 * are those of ../FAULTS.md. */
#include <stdio.h>
#include <string.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define MS KP_NS_PER_MS
#define FAST \
    "linger.ms", "0", "retry.backoff.ms", "10", "retry.backoff.max.ms", "10", \
        "reconnect.backoff.ms", "10", "reconnect.backoff.max.ms", "10", \
        "request.timeout.ms", "500"
#define ONCE "enable.idempotence", "false", "retries", "0"
#define SIZE_LIMIT 300 /* more than any answer here has */

static void rule(struct world *w, const char *answer, int at)
{
    char line[100];

    (void)snprintf(line, sizeof(line), "api=produce count=1 answer=%s at=%d",
                   answer, at);
    (void)world_rule(w, line);
}

/* One record, acknowledged, so that all connections are there. */
static struct world *begin(const char *const *settings)
{
    struct world *w =
        world_begin(&(struct world_options){.settings = settings});
    struct world_record *r = world_send(w, 0);

    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    return w;
}

static void goes_on(struct world *w)
{
    struct world_record *r = world_send(w, 0);

    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 2);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2");
    world_check(w);
}

/* -- cut -- */

static const struct {
    const char *answer;
    kp_err err;
} cuts[] = {
    {"cut", KP_EDISCONNECT},
    {"cut-reset", KP_EDISCONNECT},
    {"cut-stall", KP_REQUEST_TIMED_OUT},
};

/* A09, B04: cut after any of its bytes the answer is none; the last one makes it
 * one, whatever follows. */
START_TEST(an_answer_cut_at_any_byte_is_a_maybe)
{
    int at = 0;

    for (kp_err err = KP_EDISCONNECT; err != KP_OK; at++) {
        struct world *w = begin(WORLD_SETTINGS(FAST, ONCE));
        struct world_record *r;

        ck_assert_int_lt(at, SIZE_LIMIT);
        rule(w, cuts[_i].answer, at);
        r = world_send(w, 0);
        world_settle(w);
        err = r->report.err;
        if (err == KP_OK)
            world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
        else
            world_expect(r, cuts[_i].err, KP_OK, KP_STORED_MAYBE, -1);
        ck_assert_uint_eq(r->callbacks, 1);
        ck_assert_uint_eq(world_attempts(w), 2);
        world_cut(w, -1, true); /* a whole one, and silence then */
        world_run_ms(w, 100);
        goes_on(w);
        world_end(w);
    }
    ck_assert_int_gt(at, 40); /* it is as long as that */
}
END_TEST

/* ... and with retries it is stored once, and sent once more. */
START_TEST(an_answer_cut_at_any_byte_is_asked_for_again)
{
    size_t attempts = 3;
    int at = 0;

    for (; attempts == 3; at++) {
        struct world *w = begin(WORLD_SETTINGS(FAST));
        struct world_record *r;

        ck_assert_int_lt(at, SIZE_LIMIT);
        rule(w, cuts[_i].answer, at);
        r = world_send(w, 0);
        world_settle(w);
        world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
        ck_assert_uint_eq(r->callbacks, 1);
        attempts = world_attempts(w);
        for (size_t i = 1; i < attempts; i++)
            ck_assert_int_eq(world_attempt(w, i)->header.base_sequence, 1);
        world_cut(w, -1, true);
        world_run_ms(w, 100);
        goes_on(w);
        world_end(w);
    }
    ck_assert_uint_eq(attempts, 2);
    ck_assert_int_gt(at, 40);
}
END_TEST

/* -- sizes -- */

/* B05, B11: the size says less than there is, and what is left over looks like
 * the next answer; or it says more, and the rest never comes.  Only the right one
 * makes it an answer. */
START_TEST(a_size_that_lies)
{
    bool cut = _i == 1; /* the body too: no more than the size says */
    int right = -1;
    int64_t connects;

    for (int size = 0; size < SIZE_LIMIT; size++) {
        struct world *w = begin(WORLD_SETTINGS(FAST, ONCE));
        struct world_record *r;

        connects = kb_connects(world_cluster(w), -1);
        rule(w, cut ? "short" : "lie", size);
        r = world_send(w, 0);
        world_settle(w);
        if (r->report.err == KP_OK) {
            world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
            ck_assert(right < 0 || cut);
            right = size;
        } else if (right < 0) {
            world_expect(r, KP_EPROTO, KP_OK, KP_STORED_MAYBE, -1);
            ck_assert_int_le(r->reported_ns - r->called_ns, 3 * MS);
        } else {
            world_expect(r, KP_REQUEST_TIMED_OUT, KP_OK, KP_STORED_MAYBE, -1);
        }
        goes_on(w);
        if (r->report.err != KP_OK)
            ck_assert_int_gt(kb_connects(world_cluster(w), -1), connects);
        world_end(w);
    }
    ck_assert_int_gt(right, 40);
}
END_TEST

/* -- places -- */

/* B07: two answers change places.  Neither is matched: the connection ends, and
 * both batches may be stored. */
START_TEST(answers_that_change_places)
{
    struct world *w =
        _i == 0 ? begin(WORLD_SETTINGS(FAST, "batch.size", "0"))
                : begin(WORLD_SETTINGS(FAST, "batch.size", "0", ONCE));
    int64_t connects = kb_connects(world_cluster(w), -1);
    struct world_record *r;

    rule(w, "behind", 0);
    r = world_send_many(w, 0, 2, 0);
    world_settle(w);
    for (uint32_t i = 0; i < 2; i++) {
        if (_i == 0)
            world_expect(world_record(w, r->id + i), KP_OK, KP_OK,
                         KP_STORED_YES, 1 + (int64_t)i);
        else
            world_expect(world_record(w, r->id + i), KP_EPROTO, KP_OK,
                         KP_STORED_MAYBE, -1);
    }
    ck_assert_uint_eq(world_attempts(w), _i == 0 ? 5 : 3);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2");
    (void)world_send(w, 0);
    world_settle(w);
    ck_assert_int_eq(kb_connects(world_cluster(w), -1), connects + 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- what is said of records -- */

static const char *const nobody[] = {"-2147483648", "-1", "3", "2147483647"};

/* B21: the record that is to blame is none of the batch: all have the
 * partition's error, and none another one's. */
START_TEST(a_record_that_is_not_there_is_to_blame)
{
    struct world *w = begin(WORLD_SETTINGS(FAST));
    struct world_record *r, *next;
    char line[100];

    (void)snprintf(line, sizeof(line), "api=produce count=1 error=87 blame=%s",
                   nobody[_i]);
    (void)world_rule(w, line);
    r = world_send_many(w, 0, 3, 0);
    world_settle(w);
    for (uint32_t i = 0; i < 3; i++) {
        world_expect(world_record(w, r->id + i), KP_INVALID_RECORD, KP_OK,
                     KP_STORED_NO, -1);
        ck_assert_uint_eq(world_record(w, r->id + i)->callbacks, 1);
    }
    next = world_send(w, 0);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* Blame in an answer that says all is well is no blame; of one that is there, it
 * is that one's. */
START_TEST(a_record_that_is_there_is_to_blame)
{
    struct world *w = begin(WORLD_SETTINGS(FAST));
    struct world_record *r;

    (void)world_rule(w, "api=produce count=1 blame=1");
    r = world_send_many(w, 0, 3, 0);
    world_settle(w);
    for (uint32_t i = 0; i < 3; i++)
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK, KP_STORED_YES,
                     1 + (int64_t)i);
    (void)world_rule(w, "api=produce count=1 error=87 blame=1");
    r = world_send_many(w, 0, 3, 0);
    world_settle(w);
    world_expect(r, KP_EBATCH, KP_INVALID_RECORD, KP_STORED_NO, -1);
    world_expect(world_record(w, r->id + 1), KP_INVALID_RECORD, KP_OK,
                 KP_STORED_NO, -1);
    world_expect(world_record(w, r->id + 2), KP_EBATCH, KP_INVALID_RECORD,
                 KP_STORED_NO, -1);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- what is said of partitions -- */

static void count_strangers(struct world *w, void *arg, const kp_log *line)
{
    (void)w;
    if (line->level == KP_LOG_WARN && strcmp(line->component, "produce") == 0 &&
        strstr(line->text, "was not in the request") != NULL)
        ++*(int *)arg;
}

/* B17, B18: a second verdict and one on a stranger change nothing, and are each
 * told once. */
START_TEST(verdicts_that_nobody_asked_for)
{
    struct world *w =
        world_begin(&(struct world_options){.partitions = 2,
                                            .watches_log = true,
                                            .settings = WORLD_SETTINGS(FAST)});
    struct world_record *a, *b;
    int told = 0;

    world_on_log(w, count_strangers, &told);
    (void)world_rule(w, _i == 0 ? "api=produce partition=0 count=1 repeat"
                                : "api=produce partition=0 count=1 stranger");
    a = world_send(w, 0);
    b = world_send(w, 1);
    world_settle(w);
    ck_assert_uint_eq(world_requests(w), 1);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_expect(b, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_eq(told, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* B16: what the answer leaves out has its verdict at once, with the others. */
START_TEST(a_partition_left_out_waits_for_nothing)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2, .settings = WORLD_SETTINGS(FAST, ONCE)});
    struct world_record *a, *b;

    (void)world_rule(w, "api=produce partition=1 count=1 omit");
    a = world_send(w, 0);
    b = world_send(w, 1);
    world_settle(w);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_expect(b, KP_EPROTO, KP_OK, KP_STORED_MAYBE, -1);
    ck_assert_int_eq(b->reported_ns, a->reported_ns);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *answer_faults_suite(void)
{
    Suite *s = suite_create("answer_faults");
    TCase *t = tcase_create("answer_faults");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, an_answer_cut_at_any_byte_is_a_maybe, 0, 3);
    tcase_add_loop_test(t, an_answer_cut_at_any_byte_is_asked_for_again, 0, 3);
    tcase_add_loop_test(t, a_size_that_lies, 0, 2);
    tcase_add_loop_test(t, answers_that_change_places, 0, 2);
    tcase_add_loop_test(t, a_record_that_is_not_there_is_to_blame, 0, 4);
    tcase_add_test(t, a_record_that_is_there_is_to_blame);
    tcase_add_loop_test(t, verdicts_that_nobody_asked_for, 0, 2);
    tcase_add_test(t, a_partition_left_out_waits_for_nothing);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(answer_faults_suite)
