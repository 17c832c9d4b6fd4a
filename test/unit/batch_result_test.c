/* SPDX-License-Identifier: BSD-2-Clause */
/* batch_result_test.c - outcomes, parts of batches, references, and a thousand
 * waiters on one result. */
#include <pthread.h>
#include <string.h>

#include "include/kp/kp.h"
#include "lib/api/future.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/thread.h"
#include "lib/shared/batch_result.h"
#include "test/support/aborts.h"
#include "test/support/main.h"

static struct topic_name *name;
static struct batch_result *result;

static const struct outcome good = {.err = KP_OK,
                                    .stored = CERTAIN_YES,
                                    .base_offset = 5000000000,
                                    .append_time_ms = -1};

static void set_up(void)
{
    name = kp__topic_name_create("orders-and-more", 6);
    result = kp__alloc(sizeof(*result));
    kp__result_init(result, name, 3);
}

static void tear_down(void)
{
    kp__topic_name_unref(name);
    ck_assert_int_eq(kp__mem_live(), 0);
}

static kp_report report_of(uint32_t index)
{
    kp_report r;

    memset(&r, 0x5a, sizeof(r));
    ck_assert(kp__result_get(result, index, &name, &r));
    return r;
}

START_TEST(a_result_is_pending_until_it_is_completed)
{
    kp_report r;

    ck_assert(!kp__result_get(result, 0, NULL, &r));
    kp__result_complete(result, &good, NULL);
    ck_assert(kp__result_get(result, 0, NULL, NULL));
    r = report_of(7);
    ck_assert_ptr_eq(r.tag, &name);
    ck_assert_int_eq(r.err, KP_OK);
    ck_assert_int_eq(r.cause, KP_OK);
    ck_assert_int_eq(r.kind, KP_KIND_NONE);
    ck_assert_int_eq(r.stored, KP_STORED_YES);
    ck_assert_int_eq(r.partition, 3);
    ck_assert_int_eq(r.offset, 5000000007);
    ck_assert_int_eq(r.timestamp_ms, -1);
    ck_assert_str_eq(r.topic, "orders");
    ck_assert_ptr_null(r.text);
    ck_assert_int_eq(r.reserved, 0);
    kp__result_unref(result, RESULT_BIAS + 1);
}
END_TEST

START_TEST(a_failure_has_its_cause_and_text)
{
    const struct outcome o = {.err = KP_ETIMEDOUT,
                              .cause = KP_NOT_LEADER_OR_FOLLOWER,
                              .stored = CERTAIN_MAYBE,
                              .base_offset = -1,
                              .append_time_ms = -1};
    kp_report r;

    kp__result_complete(result, &o, "the broker said no");
    r = report_of(2);
    ck_assert_int_eq(r.err, KP_ETIMEDOUT);
    ck_assert_int_eq(r.cause, KP_NOT_LEADER_OR_FOLLOWER);
    ck_assert_int_eq(r.kind, kp__error_info(KP_ETIMEDOUT)->kind);
    ck_assert_int_eq(r.stored, KP_STORED_MAYBE);
    ck_assert_int_eq(r.offset, -1);
    ck_assert_str_eq(r.text, "the broker said no");
    kp__result_unref(result, RESULT_BIAS + 1);
}
END_TEST

#ifdef KP_DEBUG
static void complete_again(void *arg)
{
    kp__result_complete(result, arg, NULL);
}

/* P2, P3: completing twice, whichever way, is a mistake of ours that debug builds
 * stop at; what the first one said stands. */
START_TEST(a_result_is_completed_once)
{
    struct outcome late = {.err = KP_ECLOSED, .base_offset = -1};
    struct outcome again = good;

    kp__result_complete(result, &good, NULL);
    again.base_offset = good.base_offset + 1;
    ck_assert(test_aborts(complete_again, &late));
    ck_assert(test_aborts(complete_again, &again));
    ck_assert_int_eq(report_of(0).err, KP_OK);
    ck_assert_int_eq(report_of(0).offset, good.base_offset);
    kp__result_unref(result, RESULT_BIAS + 1);
}
END_TEST
#endif

START_TEST(an_append_time_is_that_of_every_record)
{
    struct outcome o = good;

    o.append_time_ms = 123456;
    kp__result_complete(result, &o, NULL);
    ck_assert_int_eq(report_of(0).timestamp_ms, 123456);
    ck_assert_int_eq(report_of(9).timestamp_ms, 123456);
    kp__result_unref(result, RESULT_BIAS + 1);
}
END_TEST

/* Parts in any order, with gaps; offsets count from the part's first record. */
START_TEST(parts_have_their_own_outcomes)
{
    struct outcome bad = {.err = KP_INVALID_RECORD,
                          .stored = CERTAIN_NO,
                          .base_offset = -1,
                          .append_time_ms = -1};
    struct outcome whole = {.err = KP_EBATCH,
                            .stored = CERTAIN_NO,
                            .base_offset = -1,
                            .append_time_ms = -1};
    struct outcome moved = good;

    moved.base_offset = 70;
    ck_assert(kp__result_add_part(result, 20, 5, &moved, NULL));
    ck_assert(kp__result_add_part(result, 2, 1, &bad, "record 2"));
    ck_assert(kp__result_add_part(result, 8, 2, &bad, NULL));
    ck_assert(kp__result_add_part(result, 0, 1, &bad, NULL));
    ck_assert(kp__result_add_part(result, 10, 1, &bad, NULL));
    kp__result_complete(result, &whole, "batch");
    for (uint32_t i = 0; i < 30; i++) {
        kp_report r = report_of(i);

        ck_assert_int_eq(r.err, kp__result_err(result, i));
        if (i == 0 || i == 2 || i == 8 || i == 9 || i == 10) {
            ck_assert_int_eq(r.err, KP_INVALID_RECORD);
        } else if (i >= 20 && i < 25) {
            ck_assert_int_eq(r.err, KP_OK);
            ck_assert_int_eq(r.offset, 70 + (int64_t)i - 20);
            ck_assert_int_eq(r.stored, KP_STORED_YES);
        } else {
            ck_assert_int_eq(r.err, KP_EBATCH);
        }
        ck_assert_str_eq(r.text, i == 2 ? "record 2" : "batch");
    }
    kp__result_unref(result, RESULT_BIAS + 1);
}
END_TEST

/* Whoever comes later gets what is left between those that were there. */
START_TEST(a_part_is_of_those_that_have_none)
{
    struct outcome o[4];

    for (int32_t i = 0; i < 4; i++) {
        o[i] = good;
        o[i].err = 1 + i;
        o[i].base_offset = 100 * i;
    }
    ck_assert(kp__result_add_part(result, 4, 1, &o[0], NULL));
    ck_assert(kp__result_add_part(result, 7, 2, &o[0], NULL));
    ck_assert(kp__result_add_part(result, 2, 8, &o[1], "one"));
    ck_assert(kp__result_add_part(result, 2, 8, &o[2], NULL)); /* all have */
    ck_assert(kp__result_add_part(result, 0, 20, &o[3], "three"));
    ck_assert_uint_eq(result->part_count, 7);
    kp__result_complete(result, &good, NULL);
    for (uint32_t i = 0; i < 20; i++) {
        kp_report r = report_of(i);
        bool inner = i == 4 || i == 7 || i == 8;
        bool middle = i >= 2 && i < 10;
        int64_t first = i < 2 ? 0 : i < 4 ? 2 : i < 7 ? 5 : i == 9 ? 9 : 10;

        ck_assert_int_eq(r.err, inner ? 1 : middle ? 2 : 4);
        if (!inner)
            ck_assert_int_eq(r.offset, (middle ? 100 : 300) + (int64_t)i - first);
        if (!inner)
            ck_assert_str_eq(r.text, middle ? "one" : "three");
    }
    kp__result_unref(result, RESULT_BIAS + 1);
}
END_TEST

START_TEST(without_memory_for_a_part_the_whole_outcome_stands)
{
    struct outcome bad = good;

    bad.err = KP_INVALID_RECORD;
    kp__mem_fail_at(1);
    ck_assert(!kp__result_add_part(result, 1, 1, &bad, "text"));
    kp__mem_fail_at(2); /* only the text is lost */
    ck_assert(kp__result_add_part(result, 2, 1, &bad, "text"));
    kp__mem_fail_at(1);
    kp__result_complete(result, &good, "text");
    kp__mem_fail_at(-1);
    ck_assert_int_eq(report_of(1).err, KP_OK);
    ck_assert_int_eq(report_of(2).err, KP_INVALID_RECORD);
    ck_assert_ptr_null(report_of(2).text);
    kp__result_unref(result, RESULT_BIAS + 1);
}
END_TEST

/* Futures may be released while the batch is open; the bias stands for those
 * that are still to come. */
START_TEST(references_are_published_once)
{
    kp__result_unref(result, 3);
    kp__result_publish(result, 10);
    ck_assert_uint_eq(atomic_load(&result->refs), 8);
    kp__result_unref(result, 6);
    kp__result_complete(result, &good, NULL);
    kp__result_unref(result, 1); /* the batch */
    ck_assert_int_eq(report_of(0).err, KP_OK);
    kp__result_unref(result, 1);
}
END_TEST

START_TEST(all_released_while_open_keeps_the_batchs_own)
{
    kp__result_unref(result, 2);
    kp__result_publish(result, 2);
    ck_assert_uint_eq(atomic_load(&result->refs), 1);
    kp__result_complete(result, &good, NULL);
    kp__result_unref(result, 1);
}
END_TEST

START_TEST(a_result_keeps_its_topics_name)
{
    ck_assert_uint_eq(atomic_load(&name->refs), 2);
    kp__result_complete(result, &good, NULL);
    kp__topic_name_unref(name);
    ck_assert_str_eq(report_of(0).topic, "orders");
    kp__topic_name_ref(name);
    kp__result_unref(result, RESULT_BIAS + 1);
}
END_TEST

/* A record with a future and a callback: the callback first. */
START_TEST(a_quiet_result_is_seen_by_callbacks_only)
{
    struct ticket ticket;
    kp_report r;

    kp__result_publish_quietly(result, &good);
    ck_assert(!kp__result_get(result, 0, NULL, &r));
    kp__result_read(result, 0, NULL, &r);
    ck_assert_int_eq(r.offset, good.base_offset);
    kp__set_in_callback(true);
    ck_assert_int_eq(report_of(1).offset, good.base_offset + 1);
    kp__set_in_callback(false);
    kp__result_ticket(result, KP_NEVER, &ticket);
    ck_assert_ptr_eq(ticket.word, &result->word);
    ck_assert_uint_eq(ticket.seen, atomic_load(&result->word));
    kp__result_wake(result);
    ck_assert_uint_ne(ticket.seen, atomic_load(&result->word));
    ck_assert_int_eq(report_of(1).offset, good.base_offset + 1);
    kp__result_unref(result, RESULT_BIAS + 1);
}
END_TEST

START_TEST(a_ticket_for_a_done_result_is_nothing_to_wait_for)
{
    struct ticket ticket;

    kp__result_complete(result, &good, NULL);
    kp__result_ticket(result, KP_NEVER, &ticket);
    ck_assert_ptr_null(ticket.word);
    kp__result_unref(result, RESULT_BIAS + 1);
}
END_TEST

/* -- kp_future -- */

static kp_future future_of(uint32_t index, void *tag)
{
    kp_future future;

    kp__future_take(&future, result, index, tag);
    return future;
}

static kp_future refused(kp_err err, void *tag)
{
    return (kp_future){
        .tag_ = tag, .index_ = (uint32_t)err, .check_ = FUTURE_REFUSED};
}

START_TEST(a_future_waits_no_longer_than_it_says)
{
    kp_future future = future_of(1, &future);
    int64_t began_ns = kp__now_ns(&kp__system_clock);
    kp_report r = {.offset = 77};

    kp__result_publish(result, 1);
    ck_assert_int_eq(kp_future_wait(&future, 0, &r), KP_PENDING);
    ck_assert_int_eq(kp_future_wait(&future, 30, &r), KP_PENDING);
    ck_assert_int_ge(kp__now_ns(&kp__system_clock) - began_ns,
                     30 * KP_NS_PER_MS);
    ck_assert_int_eq(r.offset, 77); /* written on success only */
    kp__result_complete(result, &good, NULL);
    ck_assert_int_eq(kp_future_wait(&future, 0, &r), KP_OK);
    ck_assert_int_eq(r.offset, good.base_offset + 1);
    ck_assert_ptr_eq(r.tag, &future);
    ck_assert_int_eq(kp_future_wait(&future, KP_FOREVER, NULL), KP_OK);
    kp__result_unref(result, 1);
    kp_future_release(&future, 1);
    ck_assert_ptr_null(future.result_);
    ck_assert_int_eq(kp_future_wait(&future, 0, &r), KP_EINVAL);
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
    kp_future future = future_of(0, NULL), zero = {0}, odd = {0};

    odd.index_ = 5;
    odd.check_ = 77;
    ck_assert_int_eq(kp_future_wait(NULL, 0, NULL), KP_EINVAL);
    ck_assert_int_eq(kp_future_wait(&zero, 0, NULL), KP_EINVAL);
    ck_assert_int_eq(kp_future_wait(&odd, 0, NULL), KP_EINVAL);
    ck_assert_int_eq(kp_future_wait(&future, -2, NULL), KP_EINVAL);
    ck_assert_int_eq(kp_future_wait_all(NULL, 1, 0), KP_EINVAL);
    ck_assert_int_eq(kp_future_wait_all(NULL, 0, 0), KP_OK);
    ck_assert_int_eq(kp_future_wait_all(&zero, 1, 0), KP_OK);
    ck_assert_int_eq(kp_future_wait_all(&zero, 1, -2), KP_EINVAL);
    kp_future_release(NULL, 3);
    kp_future_release(&zero, 1);
    kp__result_publish(result, 1);
    kp__result_unref(result, 1);
    kp_future_release(&future, 1);
}
END_TEST

START_TEST(a_refused_future_says_why)
{
    kp_future future;
    kp_report r;

    future = refused(KP_EBUFFER, &future);
    ck_assert_int_eq(kp_future_wait(&future, 0, &r), KP_EBUFFER);
    ck_assert_int_eq(r.err, KP_EBUFFER);
    ck_assert_int_eq(r.stored, KP_STORED_NO);
    ck_assert_int_eq(r.partition, -1);
    ck_assert_int_eq(r.offset, -1);
    ck_assert_ptr_eq(r.tag, &future);
    ck_assert_int_eq(r.kind, kp__error_info(KP_EBUFFER)->kind);
    ck_assert_int_eq(kp_future_wait_all(&future, 1, KP_FOREVER), KP_EBUFFER);
    kp__result_unref(result, RESULT_BIAS + 1);
}
END_TEST

START_TEST(a_callback_may_look_but_not_wait)
{
    kp_future future = future_of(0, NULL);

    kp__set_in_callback(true);
    ck_assert_int_eq(kp_future_wait(&future, 5, NULL), KP_EDEADLK);
    ck_assert_int_eq(kp_future_wait_all(&future, 1, KP_FOREVER), KP_EDEADLK);
    ck_assert_int_eq(kp_future_wait(&future, 0, NULL), KP_PENDING);
    kp__set_in_callback(false);
    kp__result_publish(result, 1);
    kp__result_unref(result, 1);
    kp_future_release(&future, 1);
}
END_TEST

/* The first failure in array order, however they were completed. */
START_TEST(wait_all_gives_the_first_failure)
{
    struct batch_result *other = kp__alloc(sizeof(*other));
    struct outcome bad = good, worse = good;
    kp_future all[6] = {{0}};

    bad.err = KP_INVALID_RECORD;
    worse.err = KP_ETIMEDOUT;
    kp__result_init(other, name, 4);
    for (uint32_t i = 1; i < 4; i++)
        kp__future_take(&all[i], result, i, NULL);
    kp__future_take(&all[4], other, 0, NULL);
    kp__result_publish(result, 3);
    kp__result_publish(other, 1);
    kp__result_complete(other, &worse, NULL);
    ck_assert_int_eq(kp_future_wait_all(all, 6, 1), KP_PENDING);
    ck_assert_int_eq(kp_future_wait_all(all + 4, 2, 1), KP_ETIMEDOUT);
    ck_assert(kp__result_add_part(result, 2, 1, &bad, NULL));
    kp__result_complete(result, &good, NULL);
    ck_assert_int_eq(kp_future_wait_all(all, 2, 1), KP_OK);
    ck_assert_int_eq(kp_future_wait_all(all, 6, KP_FOREVER), KP_INVALID_RECORD);
    kp__result_unref(result, 1);
    kp__result_unref(other, 1);
    kp_future_release(all, 6);
}
END_TEST

START_TEST(releasing_subtracts_in_runs)
{
    struct batch_result *other = kp__alloc(sizeof(*other));
    kp_future all[8] = {{0}};

    kp__result_init(other, name, 4);
    kp__result_publish(result, 4);
    kp__result_publish(other, 2);
    kp__future_take(&all[0], result, 0, NULL);
    kp__future_take(&all[1], result, 1, NULL);
    all[2] = refused(KP_ETOOBIG, NULL);
    kp__future_take(&all[3], result, 2, NULL);
    kp__future_take(&all[4], other, 0, NULL);
    kp__future_take(&all[6], other, 1, NULL);
    kp__future_take(&all[7], result, 3, NULL);
    kp_future_release(all, 7);
    ck_assert_uint_eq(atomic_load(&result->refs), 2);
    ck_assert_uint_eq(atomic_load(&other->refs), 1);
    for (int i = 0; i < 7; i++)
        ck_assert(all[i].result_ == NULL && all[i].check_ == 0);
    kp_future_release(all, 8); /* the released ones are zero now */
    ck_assert_uint_eq(atomic_load(&result->refs), 1);
    kp__result_unref(result, 1);
    kp__result_unref(other, 1);
}
END_TEST

/* -- Relay -- */

#define WAITERS 1000
static _Atomic uint32_t waiting, woken;

static void *wait_for_it(void *arg)
{
    kp_future *future = arg;
    kp_report r;

    atomic_fetch_add(&waiting, 1);
    if (kp_future_wait(future, 60000, &r) == KP_OK &&
        r.offset == good.base_offset + future->index_)
        atomic_fetch_add(&woken, 1);
    kp_future_release(future, 1);
    return NULL;
}

/* Completing wakes two; all thousand wake, and the last one frees the result.
 * */
START_TEST(a_thousand_waiters_are_woken_by_relay)
{
    static kp_future futures[WAITERS];
    static pthread_t threads[WAITERS];
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 * 1024);
    atomic_store(&waiting, 0);
    atomic_store(&woken, 0);
    kp__result_publish(result, WAITERS);
    for (uint32_t i = 0; i < WAITERS; i++) {
        kp__future_take(&futures[i], result, i, NULL);
        ck_assert_int_eq(
            pthread_create(&threads[i], &attr, wait_for_it, &futures[i]), 0);
    }
    while (atomic_load(&waiting) < WAITERS)
        sched_yield();
    kp__result_complete(result, &good, NULL);
    kp__result_unref(result, 1);
    for (uint32_t i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(atomic_load(&woken), WAITERS);
    pthread_attr_destroy(&attr);
}
END_TEST

static Suite *batch_result_suite(void)
{
    Suite *s = suite_create("batch_result");
    TCase *t = tcase_create("result");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_result_is_pending_until_it_is_completed);
    tcase_add_test(t, a_failure_has_its_cause_and_text);
#ifdef KP_DEBUG
    tcase_add_test(t, a_result_is_completed_once);
#endif
    tcase_add_test(t, an_append_time_is_that_of_every_record);
    tcase_add_test(t, parts_have_their_own_outcomes);
    tcase_add_test(t, a_part_is_of_those_that_have_none);
    tcase_add_test(t, without_memory_for_a_part_the_whole_outcome_stands);
    tcase_add_test(t, references_are_published_once);
    tcase_add_test(t, all_released_while_open_keeps_the_batchs_own);
    tcase_add_test(t, a_result_keeps_its_topics_name);
    tcase_add_test(t, a_quiet_result_is_seen_by_callbacks_only);
    tcase_add_test(t, a_ticket_for_a_done_result_is_nothing_to_wait_for);
    suite_add_tcase(s, t);

    t = tcase_create("futures");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_future_waits_no_longer_than_it_says);
    tcase_add_test(t, wrong_arguments_are_refused);
    tcase_add_test(t, a_refused_future_says_why);
    tcase_add_test(t, a_callback_may_look_but_not_wait);
    tcase_add_test(t, wait_all_gives_the_first_failure);
    tcase_add_test(t, releasing_subtracts_in_runs);
    suite_add_tcase(s, t);

    t = tcase_create("relay");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_thousand_waiters_are_woken_by_relay);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(batch_result_suite)
