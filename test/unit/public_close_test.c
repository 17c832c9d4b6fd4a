/* SPDX-License-Identifier: BSD-2-Clause */
/* kp_flush, kp_close and kp_producer_destroy: what they wait for, how long, and
 * what they say of failures that nobody watched. */
#include "test/unit/public_fixture.h"

#include "test/support/main.h"

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
    atomic_store(&callbacks, 0);
}

static kp_producer *lazy(void)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "60000", "delivery.timeout.ms",
                                   "120000", NULL);

    learn_topic(p, "t");
    return p;
}

static void send_some(kp_producer *p, int count)
{
    for (int i = 0; i < count; i++) {
        kp_record r = record_of("t", "v");

        ASSERT_OK(kp_send(p, &r, NULL));
    }
}

/* -- flush -- */

START_TEST(a_flush_of_nothing_returns_at_once)
{
    kp_producer *p = lazy();

    ASSERT_OK(kp_flush(p, 0, &error));
    ASSERT_OK(kp_flush(p, KP_FOREVER, NULL));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_flush_ignores_linger)
{
    kp_producer *p = lazy();
    int64_t began = now_ms();

    send_some(p, 100);
    ASSERT_OK(kp_flush(p, KP_FOREVER, &error));
    ck_assert_int_lt(now_ms() - began, 30000);
    ck_assert_uint_eq(stored_count("t", 0), 100);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_flush_keeps_its_limit_and_can_go_on)
{
    kp_producer *p = lazy();
    int64_t began;

    hold_broker(true);
    send_some(p, 1);
    memset(&error, 0, sizeof(error));
    ASSERT_ERR(kp_flush(p, 0, &error), KP_PENDING);
    ck_assert_int_eq(error.err, KP_PENDING);
    ASSERT_SAYS("kp_flush");
    began = now_ms();
    ASSERT_ERR(kp_flush(p, 150, &error), KP_PENDING);
    ck_assert_int_ge(now_ms() - began, 150);
    hold_broker(false);
    ASSERT_OK(kp_flush(p, KP_FOREVER, &error));
    ck_assert_uint_eq(stored_count("t", 0), 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

struct busy {
    kp_producer *p;
    _Atomic int stop;
};

static void *send_on(void *arg)
{
    struct busy *b = arg;

    while (atomic_load(&b->stop) == 0) {
        kp_record r = record_of("t", "v");

        (void)kp_send(b->p, &r, NULL);
    }
    return NULL;
}

START_TEST(a_flush_does_not_wait_for_what_comes_later)
{
    static struct busy b; /* the thread may outlive a test that fails */
    pthread_t thread;

    b.p = MAKE_PRODUCER("linger.ms", "1", NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, send_on, &b), 0);
    for (int i = 0; i < 20; i++)
        ASSERT_OK(kp_flush(b.p, SOON_MS, &error));
    atomic_store(&b.stop, 1);
    (void)pthread_join(thread, NULL);
    ASSERT_OK(kp_close(b.p, KP_FOREVER, &error));
    ASSERT_OK(kp_producer_destroy(b.p));
}
END_TEST

static void *flush_some(void *arg)
{
    kp_producer *p = arg;

    for (int i = 0; i < 50; i++) {
        struct seen s = {0};
        kp_record r = record_of("t", "v");

        r.tag = &s;
        r.on_delivery = keep_report;
        ck_assert_int_eq(kp_send(p, &r, NULL), KP_OK);
        ck_assert_int_eq(kp_flush(p, SOON_MS, NULL), KP_OK);
        ck_assert_int_eq(atomic_load(&s.count), 1);
    }
    return NULL;
}

START_TEST(eight_threads_flush_and_see_their_own)
{
    kp_producer *p = lazy();
    pthread_t threads[8];

    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, flush_some, p), 0);
    for (int i = 0; i < 8; i++)
        (void)pthread_join(threads[i], NULL);
    ck_assert_uint_eq(stored_count("t", 0), 400);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- failures that nobody watched -- */

START_TEST(a_flush_tells_of_failures_nobody_watched)
{
    kp_producer *p = lazy();
    kp_future f;
    kp_record r = record_of("t", "v");

    add_rule("api=produce topic=t error=10 count=1");
    add_rule("api=produce topic=t error=87 count=1");
    send_some(p, 3);
    ASSERT_OK(kp_send(p, &r, &f)); /* watched: not counted */
    memset(&error, 0, sizeof(error));
    ASSERT_ERR(kp_flush(p, SOON_MS, &error), KP_INVALID_RECORD);
    ck_assert_int_eq(error.err, KP_INVALID_RECORD);
    ASSERT_SAYS("3 record(s)");
    ASSERT_SAYS("INVALID_RECORD");
    ASSERT_OK(kp_flush(p, SOON_MS, &error)); /* told once */
    kp_future_release(&f, 1);
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_close_tells_of_them_too)
{
    kp_producer *p = lazy();

    add_rule("api=produce topic=t error=87 count=1");
    send_some(p, 5);
    memset(&error, 0, sizeof(error));
    ASSERT_ERR(kp_close(p, KP_FOREVER, &error), KP_INVALID_RECORD);
    ASSERT_SAYS("5 record(s)");
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_watched_failure_is_not_told_again)
{
    static struct seen s;
    kp_producer *p = lazy();
    kp_record r = record_of("t", "v");

    add_rule("api=produce topic=t error=87 count=1");
    r.tag = &s;
    r.on_delivery = keep_report;
    ASSERT_OK(kp_send(p, &r, NULL));
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ck_assert_int_eq(s.report.err, KP_INVALID_RECORD);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- close -- */

START_TEST(a_close_delivers_everything_first)
{
    static struct seen seen[1000];
    kp_producer *p = lazy();

    for (int i = 0; i < 1000; i++) {
        kp_record r = record_of("t", "0123456789");

        r.tag = &seen[i];
        r.on_delivery = keep_report;
        ASSERT_OK(kp_send(p, &r, NULL));
    }
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ck_assert_uint_eq(stored_count("t", 0), 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(seen[i].report.err, KP_OK);
    ASSERT_OK(kp_close(p, 0, &error)); /* again is no error */
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(what_is_left_at_the_timeout_fails)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = record_of("t", "v");
    kp_report report;
    int64_t began;
    kp_future f;

    learn_topic(p, "t");
    add_rule("api=produce answer=none count=-1");
    ASSERT_OK(kp_send(p, &r, &f));
    while (requests_of(API_PRODUCE) == 0)
        pause_ms(1);
    began = now_ms();
    memset(&error, 0, sizeof(error));
    ASSERT_ERR(kp_close(p, 300, &error), KP_ECLOSED);
    ck_assert_int_ge(now_ms() - began, 300);
    ck_assert_int_lt(now_ms() - began, 10000);
    ck_assert_int_eq(error.err, KP_ECLOSED);
    ASSERT_SAYS("timeout");
    ASSERT_ERR(kp_future_wait(&f, 0, &report), KP_ECLOSED);
    ck_assert_int_eq(report.stored, KP_STORED_MAYBE); /* it was sent */
    kp_future_release(&f, 1);
    ASSERT_ERR(kp_close(p, KP_FOREVER, &error), KP_ECLOSED);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_producer_without_a_send_closes)
{
    kp_producer *p = MAKE_PRODUCER(NULL);

    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ASSERT_OK(kp_producer_destroy(p));
    p = MAKE_PRODUCER(NULL);
    ASSERT_OK(kp_producer_destroy(p));
    p = MAKE_PRODUCER(NULL);
    ASSERT_OK(kp_close(p, 0, &error));
    ASSERT_OK(kp_close(p, 0, &error));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_producer_without_brokers_closes)
{
    kp_producer *p;
    kp_record r = record_of("t", "v");
    int64_t began;

    kp_broker_stop_node(broker, 1);
    p = MAKE_PRODUCER("max.block.ms", "200", NULL);
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    began = now_ms();
    ASSERT_OK(kp_close(p, KP_FOREVER, &error)); /* nothing is left */
    ck_assert_int_lt(now_ms() - began, 10000);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(records_for_a_dead_broker_do_not_stop_close_for_long)
{
    kp_producer *p = lazy();
    kp_future f;
    kp_record r = record_of("t", "v");
    kp_report report;
    int64_t began;

    ASSERT_OK(kp_send(p, &r, &f));
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    kp_future_release(&f, 1);
    kp_broker_stop_node(broker, 1);
    ASSERT_OK(kp_send(p, &r, &f));
    began = now_ms();
    ASSERT_ERR(kp_close(p, 200, &error), KP_ECLOSED);
    ck_assert_int_ge(now_ms() - began, 200);
    ck_assert_int_lt(now_ms() - began, 10000);
    ASSERT_ERR(kp_future_wait(&f, 0, &report), KP_ECLOSED);
    ck_assert_int_eq(report.stored, KP_STORED_NO);
    kp_future_release(&f, 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_delivery_timeout_ends_it)
{
    kp_producer *p = MAKE_PRODUCER("delivery.timeout.ms", "400", "linger.ms",
                                   "0", "request.timeout.ms", "200",
                                   "retry.backoff.ms", "10", NULL);
    kp_record r = record_of("t", "v");
    kp_report report;
    int64_t began;
    int tries = 0;
    kp_future f;

    learn_topic(p, "t");
    add_rule("api=produce error=6 count=-1");
    do { /* the machine may take all of the time before an answer comes */
        began = now_ms();
        ASSERT_OK(kp_send(p, &r, &f));
        ASSERT_ERR(kp_future_wait(&f, SOON_MS, &report), KP_ETIMEDOUT);
        ck_assert_int_ge(now_ms() - began, 390);
        ck_assert_int_lt(now_ms() - began, 10000);
    } while (report.cause != KP_NOT_LEADER_OR_FOLLOWER && ++tries < 10);
    ck_assert_int_eq(report.cause, KP_NOT_LEADER_OR_FOLLOWER);
    ck_assert_int_eq(report.stored, KP_STORED_MAYBE);
    kp_future_release(&f, 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

struct closer {
    pthread_t thread;
    kp_producer *p;
    int64_t timeout_ms;
    kp_err err;
};

static void *close_it(void *arg)
{
    struct closer *c = arg;

    c->err = kp_close(c->p, c->timeout_ms, NULL);
    return NULL;
}

START_TEST(eight_threads_close_at_once)
{
    for (int round = 0; round < 20; round++) {
        kp_producer *p = lazy();
        struct closer c[8];

        send_some(p, 20);
        for (int i = 0; i < 8; i++) {
            c[i] = (struct closer){.p = p, .timeout_ms = KP_FOREVER};
            ck_assert_int_eq(
                pthread_create(&c[i].thread, NULL, close_it, &c[i]), 0);
        }
        for (int i = 0; i < 8; i++)
            (void)pthread_join(c[i].thread, NULL);
        for (int i = 0; i < 8; i++)
            ASSERT_OK(c[i].err);
        ASSERT_OK(kp_producer_destroy(p));
    }
    ck_assert_uint_eq(stored_count("t", 0), 400);
}
END_TEST

START_TEST(the_earliest_deadline_of_several_closes_counts)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    struct closer patient = {.p = p, .timeout_ms = KP_FOREVER};
    int64_t began;

    learn_topic(p, "t");
    add_rule("api=produce answer=none count=-1");
    send_some(p, 1);
    ck_assert_int_eq(pthread_create(&patient.thread, NULL, close_it, &patient),
                     0);
    began = now_ms();
    ASSERT_ERR(kp_close(p, 100, &error), KP_ECLOSED);
    ck_assert_int_lt(now_ms() - began, 10000);
    (void)pthread_join(patient.thread, NULL);
    ASSERT_ERR(patient.err, KP_ECLOSED);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- senders that are inside when it closes -- */

struct sender {
    pthread_t thread;
    kp_producer *p;
    _Atomic int taken;
    kp_err err;
};

static void *send_until_refused(void *arg)
{
    struct sender *s = arg;

    do {
        kp_record r = record_of("t", "v");

        s->err = kp_send(s->p, &r, NULL);
        if (s->err == KP_OK)
            atomic_fetch_add(&s->taken, 1);
    } while (s->err == KP_OK);
    return NULL;
}

START_TEST(every_send_is_taken_or_refused)
{
    for (int round = 0; round < 20; round++) {
        kp_producer *p =
            MAKE_PRODUCER("linger.ms", "0", "batch.size", "100", NULL);
        struct sender s[8];
        size_t before = stored_count("t", 0), taken = 0;

        for (int i = 0; i < 8; i++) {
            memset(&s[i], 0, sizeof(s[i]));
            s[i].p = p;
            ck_assert_int_eq(
                pthread_create(&s[i].thread, NULL, send_until_refused, &s[i]),
                0);
        }
        while (atomic_load(&s[7].taken) < 100)
            pause_ms(1);
        ASSERT_OK(kp_close(p, KP_FOREVER, &error));
        for (int i = 0; i < 8; i++)
            (void)pthread_join(s[i].thread, NULL);
        for (int i = 0; i < 8; i++) {
            ASSERT_ERR(s[i].err, KP_ECLOSED);
            taken += (size_t)atomic_load(&s[i].taken);
        }
        ck_assert_uint_eq(stored_count("t", 0) - before, taken);
        ASSERT_OK(kp_producer_destroy(p));
    }
}
END_TEST

static void *send_one_and_wait(void *arg)
{
    struct sender *s = arg;
    kp_record r = record_of("unknown", "v");

    s->err = kp_send(s->p, &r, NULL);
    return NULL;
}

/* K7. */
START_TEST(a_close_wakes_senders_that_wait_for_a_topic)
{
    kp_producer *p;
    struct sender s[8];
    int64_t began;

    kp_broker_stop_node(broker, 1);
    p = MAKE_PRODUCER("max.block.ms", "60000", NULL);
    for (int i = 0; i < 8; i++) {
        memset(&s[i], 0, sizeof(s[i]));
        s[i].p = p;
        ck_assert_int_eq(
            pthread_create(&s[i].thread, NULL, send_one_and_wait, &s[i]), 0);
    }
    pause_ms(100); /* most of them are waiting by now; none need be */
    began = now_ms();
    ASSERT_OK(kp_close(p, 0, &error));
    for (int i = 0; i < 8; i++)
        (void)pthread_join(s[i].thread, NULL);
    for (int i = 0; i < 8; i++)
        ASSERT_ERR(s[i].err, KP_ECLOSED);
    ck_assert_int_lt(now_ms() - began, 10000);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static void *send_large(void *arg)
{
    struct sender *s = arg;
    static char value[3000];
    kp_record r = {.topic = "t", .value = {value, sizeof(value)}};

    while ((s->err = kp_send(s->p, &r, NULL)) == KP_OK)
        atomic_fetch_add(&s->taken, 1);
    return NULL;
}

static void see_waiters(void *arg, const kp_metric *m)
{
    if (strcmp(m->name, "waiting-threads") == 0)
        *(double *)arg = m->value;
}

static bool all_wait(void *arg)
{
    double waiting = 0;

    kp_metrics(arg, see_waiters, &waiting);
    return waiting >= 8;
}

/* K7, B14. */
START_TEST(a_close_wakes_senders_that_wait_for_memory)
{
    kp_producer *p = MAKE_PRODUCER("buffer.memory", "40000", "linger.ms", "0",
                                   "max.block.ms", "60000", NULL);
    struct sender s[8];
    int64_t began;

    learn_topic(p, "t");
    add_rule("api=produce answer=none count=-1");
    for (int i = 0; i < 8; i++) {
        memset(&s[i], 0, sizeof(s[i]));
        s[i].p = p;
        ck_assert_int_eq(pthread_create(&s[i].thread, NULL, send_large, &s[i]),
                         0);
    }
    ck_assert(becomes_true(all_wait, p));
    began = now_ms();
    ASSERT_ERR(kp_close(p, 0, &error), KP_ECLOSED);
    for (int i = 0; i < 8; i++)
        (void)pthread_join(s[i].thread, NULL);
    for (int i = 0; i < 8; i++)
        ASSERT_ERR(s[i].err, KP_ECLOSED);
    ck_assert_int_lt(now_ms() - began, 10000);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- a producer that cannot go on -- */

static void is_fatal(kp_err err)
{
    ck_assert_int_eq(err, KP_CLUSTER_AUTHORIZATION_FAILED);
    ck_assert_int_eq(error.err, err);
    ck_assert_int_eq(error.kind, KP_KIND_FATAL);
}

START_TEST(a_fatal_producer_says_so_in_every_call)
{
    kp_producer *p;
    kp_record r = record_of("t", "v");
    kp_report report;
    int32_t count;
    kp_future f;

    add_rule("api=init-producer-id error=31 count=-1");
    p = MAKE_PRODUCER("linger.ms", "0", NULL);
    if (kp_send(p, &r, &f) == KP_OK) {
        ASSERT_ERR(kp_future_wait(&f, SOON_MS, &report),
                   KP_CLUSTER_AUTHORIZATION_FAILED);
        ck_assert_int_eq(report.stored, KP_STORED_NO);
    }
    kp_future_release(&f, 1);
    ASSERT_ERR(kp_send(p, &r, &f), KP_CLUSTER_AUTHORIZATION_FAILED);
    ASSERT_ERR(kp_future_wait(&f, 0, &report), KP_CLUSTER_AUTHORIZATION_FAILED);
    ck_assert_int_eq(report.kind, KP_KIND_FATAL);
    is_fatal(kp_status(p, "t", &error));
    ASSERT_SAYS("enable.idempotence");
    is_fatal(kp_flush(p, SOON_MS, &error));
    is_fatal(kp_flush(p, 0, &error));
    ASSERT_ERR(kp_partitions_for(p, "t", 0, &count, NULL, NULL),
               KP_CLUSTER_AUTHORIZATION_FAILED);
    ASSERT_ERR(kp_partitions_for(p, "other", SOON_MS, &count, NULL, NULL),
               KP_CLUSTER_AUTHORIZATION_FAILED);
    is_fatal(kp_close(p, SOON_MS, &error));
    is_fatal(kp_status(p, NULL, &error));
    ASSERT_ERR(kp_send(p, &r, NULL), KP_CLUSTER_AUTHORIZATION_FAILED);
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_uint_eq(stored_count("t", 0), 0);
}
END_TEST

static Suite *public_close_suite(void)
{
    Suite *s = suite_create("public close");
    TCase *t = tcase_create("flush");

    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, a_flush_of_nothing_returns_at_once);
    tcase_add_test(t, a_flush_ignores_linger);
    tcase_add_test(t, a_flush_keeps_its_limit_and_can_go_on);
    tcase_add_test(t, a_flush_does_not_wait_for_what_comes_later);
    tcase_add_test(t, eight_threads_flush_and_see_their_own);
    suite_add_tcase(s, t);
    t = tcase_create("unwatched");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, a_flush_tells_of_failures_nobody_watched);
    tcase_add_test(t, a_close_tells_of_them_too);
    tcase_add_test(t, a_watched_failure_is_not_told_again);
    suite_add_tcase(s, t);
    t = tcase_create("close");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, a_close_delivers_everything_first);
    tcase_add_test(t, what_is_left_at_the_timeout_fails);
    tcase_add_test(t, a_producer_without_a_send_closes);
    tcase_add_test(t, a_producer_without_brokers_closes);
    tcase_add_test(t, records_for_a_dead_broker_do_not_stop_close_for_long);
    tcase_add_test(t, a_delivery_timeout_ends_it);
    tcase_add_test(t, eight_threads_close_at_once);
    tcase_add_test(t, the_earliest_deadline_of_several_closes_counts);
    tcase_add_test(t, a_fatal_producer_says_so_in_every_call);
    suite_add_tcase(s, t);
    t = tcase_create("senders inside");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, every_send_is_taken_or_refused);
    tcase_add_test(t, a_close_wakes_senders_that_wait_for_a_topic);
    tcase_add_test(t, a_close_wakes_senders_that_wait_for_memory);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_close_suite)
