/* SPDX-License-Identifier: BSD-2-Clause */
/* Futures: waiting, polling and releasing in any order, by any thread, before
 * and after the producer is gone. */
#include "test/unit/public_fixture.h"

#include "test/support/main.h"

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
}

/* A producer whose batches wait until they are flushed, and the topic known. */
static kp_producer *lazy(void)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "60000", "delivery.timeout.ms",
                                   "120000", NULL);

    learn_topic(p, "t");
    return p;
}

START_TEST(a_future_is_pending_then_done_for_ever)
{
    kp_producer *p = lazy();
    kp_record r = record_of("t", "v");
    kp_report report;
    kp_future f;

    ASSERT_OK(kp_send(p, &r, &f));
    memset(&report, 0x5a, sizeof(report));
    ASSERT_ERR(kp_future_wait(&f, 0, &report), KP_PENDING);
    ASSERT_ERR(kp_future_wait(&f, 30, &report), KP_PENDING);
    ck_assert_int_eq(report.err, 0x5a5a5a5a); /* not written while pending */
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(kp_future_wait(&f, 0, &report));
        ck_assert_int_eq(report.offset, 0);
        ASSERT_OK(kp_future_wait(&f, KP_FOREVER, NULL));
    }
    kp_future_release(&f, 1);
    ck_assert_ptr_null(f.result_);
    ck_assert_ptr_null(f.tag_);
    ck_assert_uint_eq(f.index_, 0);
    ck_assert_uint_eq(f.check_, 0);
    ASSERT_ERR(kp_future_wait(&f, 0, NULL), KP_EINVAL);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_wait_keeps_its_limit)
{
    kp_producer *p = lazy();
    kp_record r = record_of("t", "v");
    kp_future f;
    int64_t began;

    ASSERT_OK(kp_send(p, &r, &f));
    began = now_ms();
    ASSERT_ERR(kp_future_wait(&f, 200, NULL), KP_PENDING);
    ck_assert_int_ge(now_ms() - began, 200);
    ck_assert_int_lt(now_ms() - began, 10000);
    began = now_ms();
    ASSERT_ERR(kp_future_wait_all(&f, 1, 200), KP_PENDING);
    ck_assert_int_ge(now_ms() - began, 200);
    kp_future_release(&f, 1);
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(wait_all_says_pending_before_failure_before_ok)
{
    kp_producer *p = lazy();
    kp_producer *q = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = record_of("t", "v"), bad = record_of("t", "v");
    kp_future f[4] = {{0}};

    bad.timestamp_ms = 5;
    learn_topic(q, "t");
    ASSERT_OK(kp_future_wait_all(f, 4, 0)); /* zeroes are skipped */
    ASSERT_OK(kp_send(q, &r, &f[0]));
    ASSERT_OK(kp_future_wait(&f[0], SOON_MS, NULL));
    ASSERT_ERR(kp_send(q, &bad, &f[1]), KP_ETIMESTAMP);
    bad.timestamp_ms = 0;
    bad.partition = 3;
    ASSERT_ERR(kp_send(q, &bad, &f[2]), KP_EPARTITION);
    ASSERT_OK(kp_future_wait_all(f, 1, 0));
    ASSERT_ERR(kp_future_wait_all(f, 3, 0), KP_ETIMESTAMP);
    ASSERT_ERR(kp_future_wait_all(f + 2, 2, 0), KP_EPARTITION);
    ASSERT_OK(kp_send(p, &r, &f[3]));
    ASSERT_ERR(kp_future_wait_all(f, 4, 0), KP_PENDING);
    ASSERT_ERR(kp_future_wait_all(f, 4, 20), KP_PENDING);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_ERR(kp_future_wait_all(f, 4, 0), KP_ETIMESTAMP);
    kp_future_release(f, 4);
    ASSERT_OK(kp_future_wait_all(f, 4, 0));
    ASSERT_OK(kp_producer_destroy(p));
    ASSERT_OK(kp_producer_destroy(q));
}
END_TEST

START_TEST(releasing_early_changes_nothing)
{
    kp_producer *p = lazy();
    kp_future f[1000];

    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < 1000; i++) {
            kp_record r = record_of("t", "value");

            ASSERT_OK(kp_send(p, &r, &f[i]));
            if (i % 3 == 0)
                kp_future_release(&f[i], 1);
        }
        if (round % 2 == 0) /* before they are done, or after */
            kp_future_release(f, 1000);
        ASSERT_OK(kp_flush(p, SOON_MS, &error));
        kp_future_release(f, 1000);
    }
    ck_assert_uint_eq(stored_count("t", 0), 4000);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(futures_move_by_assignment)
{
    kp_producer *p = lazy();
    kp_record r = record_of("t", "v");
    kp_future a, b;
    kp_report report;
    int tag;

    r.tag = &tag;
    ASSERT_OK(kp_send(p, &r, &a));
    b = a;
    memset(&a, 0, sizeof(a));
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_OK(kp_future_wait(&b, 0, &report));
    ck_assert_ptr_eq(report.tag, &tag);
    kp_future_release(&b, 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(futures_outlive_their_producer)
{
    kp_producer *p = lazy();
    kp_record r = record_of("t", "v");
    kp_future f[300];
    kp_report report;

    for (int i = 0; i < 300; i++)
        ASSERT_OK(kp_send(p, &r, &f[i]));
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ASSERT_OK(kp_producer_destroy(p));
    ASSERT_OK(kp_future_wait_all(f, 300, 0));
    for (int i = 299; i >= 0; i--) {
        ASSERT_OK(kp_future_wait(&f[i], KP_FOREVER, &report));
        ck_assert_int_eq(report.offset, i);
        ck_assert_str_eq(report.topic, "t");
        kp_future_release(&f[i], 1);
    }
}
END_TEST

START_TEST(destroying_completes_what_is_pending)
{
    kp_producer *p = lazy();
    kp_record r = record_of("t", "v");
    kp_future f;
    kp_report report;

    ASSERT_OK(kp_send(p, &r, &f));
    ASSERT_OK(kp_producer_destroy(p)); /* as a close with timeout 0 */
    ASSERT_ERR(kp_future_wait(&f, 0, &report), KP_ECLOSED);
    ck_assert_int_eq(report.stored, KP_STORED_NO);
    ck_assert_int_eq(report.offset, -1);
    kp_future_release(&f, 1);
    ck_assert_uint_eq(stored_count("t", 0), 0);
}
END_TEST

/* -- many threads -- */

struct waiter {
    pthread_t thread;
    kp_future future;
    kp_err err;
    kp_report report;
};

static void *wait_for_one(void *arg)
{
    struct waiter *w = arg;

    w->err = kp_future_wait(&w->future, KP_FOREVER, &w->report);
    kp_future_release(&w->future, 1);
    return NULL;
}

static struct waiter *start_waiters(kp_producer *p, int count)
{
    struct waiter *w = calloc((size_t)count, sizeof(*w));
    pthread_attr_t attr;

    ck_assert_ptr_nonnull(w);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, 256 * 1024);
    for (int i = 0; i < count; i++) {
        kp_record r = record_of("t", "v");

        r.tag = &w[i];
        ASSERT_OK(kp_send(p, &r, &w[i].future));
    }
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(
            pthread_create(&w[i].thread, &attr, wait_for_one, &w[i]), 0);
    (void)pthread_attr_destroy(&attr);
    return w;
}

static void join_waiters(struct waiter *w, int count, kp_err err)
{
    for (int i = 0; i < count; i++)
        (void)pthread_join(w[i].thread, NULL);
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(w[i].err, err);
        ck_assert_int_eq(w[i].report.err, err);
        ck_assert_ptr_eq(w[i].report.tag, &w[i]);
    }
    free(w);
}

START_TEST(a_thousand_threads_wait_for_one_batch)
{
    kp_producer *p =
        MAKE_PRODUCER("linger.ms", "60000", "batch.size", "100000", NULL);
    struct waiter *w;

    learn_topic(p, "t");
    w = start_waiters(p, 1000);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    join_waiters(w, 1000, KP_OK);
    ck_assert_int_eq(requests_of(API_PRODUCE), 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(threads_wait_while_the_producer_is_destroyed)
{
    for (int round = 0; round < 5; round++) {
        kp_producer *p = lazy();
        struct waiter *w = start_waiters(p, 50);

        ASSERT_OK(kp_producer_destroy(p));
        join_waiters(w, 50, KP_ECLOSED);
    }
}
END_TEST

struct job {
    kp_producer *p;
    int failures;
};

static void *send_and_wait(void *arg)
{
    struct job *j = arg;

    for (int i = 0; i < 20; i++) {
        kp_record r = record_of("t", "v");

        if (deliver(j->p, &r, NULL) != KP_OK)
            j->failures++;
    }
    return NULL;
}

START_TEST(threads_that_each_send_and_wait)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "1", NULL);
    pthread_t threads[64];
    struct job jobs[64];

    for (int i = 0; i < 64; i++) {
        jobs[i] = (struct job){p, 0};
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, send_and_wait, &jobs[i]), 0);
    }
    for (int i = 0; i < 64; i++)
        (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(jobs[i].failures, 0);
    ck_assert_uint_eq(stored_count("t", 0), 64 * 20);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(thirty_thousand_at_once)
{
    enum { COUNT = 30000 };
    kp_producer *p = MAKE_PRODUCER("linger.ms", "5", NULL);
    kp_future *f = calloc(COUNT, sizeof(*f));
    kp_report report;

    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < COUNT; i++) {
        kp_record r = record_of("t", "0123456789");

        ASSERT_OK(kp_send(p, &r, &f[i]));
    }
    ASSERT_OK(kp_future_wait_all(f, COUNT, SOON_MS));
    for (int i = 0; i < COUNT; i++) {
        ASSERT_OK(kp_future_wait(&f[i], 0, &report));
        ck_assert_int_eq(report.offset, i);
    }
    kp_future_release(f, COUNT);
    free(f);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* The broker names record 1 of three (KIP-467): it has no key, which the topic
 * wants.  It is invalid, and the broker says why; the others only shared its
 * batch, and can be sent again as they are. */
START_TEST(each_record_gets_its_own_error)
{
    kp_producer *p = lazy();
    kp_future f[3];
    kp_report report;

    ck_assert(
        kb_topic_set(kp_broker_lock(broker), "t", "cleanup.policy", "compact"));
    kp_broker_unlock(broker);
    for (int i = 0; i < 3; i++) {
        kp_record r = record_of("t", "v");

        if (i != 1)
            r.key = kp_str("k");
        ASSERT_OK(kp_send(p, &r, &f[i]));
    }
    (void)kp_flush(p, SOON_MS, &error);
    for (int i = 0; i < 3; i++) {
        ASSERT_ERR(kp_future_wait(&f[i], 0, &report),
                   i == 1 ? KP_INVALID_RECORD : KP_EBATCH);
        ck_assert_int_eq(report.cause, i == 1 ? KP_OK : KP_INVALID_RECORD);
        ck_assert_int_eq(report.kind,
                         i == 1 ? KP_KIND_INVALID : KP_KIND_RETRIABLE);
        ck_assert_int_eq(report.stored, KP_STORED_NO);
        if (i == 1)
            ck_assert_str_eq(
                report.text,
                "Compacted topic cannot accept message without key.");
    }
    kp_future_release(f, 3);
    ck_assert_uint_eq(stored_count("t", 0), 0);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static Suite *public_future_suite(void)
{
    Suite *s = suite_create("public futures");
    TCase *t = tcase_create("one thread");

    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, a_future_is_pending_then_done_for_ever);
    tcase_add_test(t, a_wait_keeps_its_limit);
    tcase_add_test(t, wait_all_says_pending_before_failure_before_ok);
    tcase_add_test(t, releasing_early_changes_nothing);
    tcase_add_test(t, futures_move_by_assignment);
    tcase_add_test(t, futures_outlive_their_producer);
    tcase_add_test(t, destroying_completes_what_is_pending);
    tcase_add_test(t, each_record_gets_its_own_error);
    suite_add_tcase(s, t);
    t = tcase_create("threads");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, a_thousand_threads_wait_for_one_batch);
    tcase_add_test(t, threads_wait_while_the_producer_is_destroyed);
    tcase_add_test(t, threads_that_each_send_and_wait);
    tcase_add_test(t, thirty_thousand_at_once);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_future_suite)
