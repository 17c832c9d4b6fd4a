/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations on a cluster of three brokers while records flow: none lost, none
 * twice, in order, every report in time.  The ids are those of ../FAULTS.md. */
#include "test/unit/public_fixture.h"

#include "test/support/main.h"

#define FAST \
    "linger.ms", "1", "request.timeout.ms", "400", "retry.backoff.ms", "5", \
        "retry.backoff.max.ms", "50", "reconnect.backoff.ms", "5", \
        "reconnect.backoff.max.ms", "50", \
        "socket.connection.setup.timeout.ms", "400", \
        "socket.connection.setup.timeout.max.ms", "400"
#define PARTITIONS 3
#define RECORDS_MAX 20000

static void setup(void)
{
    struct broker_options o;

    memset(&error, 0, sizeof(error));
    kp_broker_defaults(&o);
    o.config.nodes = 3;
    o.config.auto_create = false;
    o.config.min_insync_replicas = 2;
    o.config.replica_lag_ns = 200 * INT64_C(1000000);
    broker = kp_broker_start(&o);
    ck_assert_ptr_nonnull(broker);
    ck_assert_int_eq(kp_broker_create_topic(broker, "t", PARTITIONS, 3), 0);
}

/* -- a stream of numbered records -- */

struct stream {
    pthread_t thread;
    kp_producer *p;
    _Atomic int stop;
    _Atomic int sent;
    kp_future futures[RECORDS_MAX];
};

static void *flow(void *arg)
{
    struct stream *s = arg;
    char value[16];
    int n;

    while (!atomic_load(&s->stop) &&
           (n = atomic_load(&s->sent)) < RECORDS_MAX) {
        kp_record r = {.topic = "t", .flags = KP_HAS_PARTITION};

        (void)snprintf(value, sizeof(value), "%d", n);
        r.value = kp_str(value);
        r.partition = n % PARTITIONS;
        if (kp_send(s->p, &r, &s->futures[n]) != KP_OK)
            break;
        (void)atomic_fetch_add(&s->sent, 1);
        pause_ms(1);
    }
    return NULL;
}

static struct stream *begin(kp_producer *p)
{
    struct stream *s = calloc(1, sizeof(*s));

    ck_assert_ptr_nonnull(s);
    s->p = p;
    learn_topic(p, "t");
    ck_assert_int_eq(pthread_create(&s->thread, NULL, flow, s), 0);
    return s;
}

/* Until so many more records were taken. */
static void go_on(struct stream *s, int more)
{
    int64_t until = now_ms() + SOON_MS;
    int want = atomic_load(&s->sent) + more;

    while (atomic_load(&s->sent) < want) {
        ck_assert_msg(now_ms() < until, "records flow no more");
        pause_ms(1);
    }
}

static bool last_is_done(void *arg)
{
    struct stream *s = arg;
    int n = atomic_load(&s->sent);

    return n == 0 || kp_future_wait(&s->futures[n - 1], 0, NULL) != KP_PENDING;
}

static void await_all_brokers(struct stream *s)
{
    ck_assert(becomes_true(last_is_done, s));
}

struct outcome {
    kp_err err;
    kp_report report;
    int in_log; /* how often */
};

static void read_partition(struct outcome *all, int sent, int32_t partition)
{
    struct stored *log = calloc(RECORDS_MAX, sizeof(*log));
    size_t n;
    int last = -1;

    ck_assert_ptr_nonnull(log);
    n = read_log("t", partition, log, RECORDS_MAX);
    for (size_t i = 0; i < n; i++) {
        int number = atoi(log[i].value);

        ck_assert_int_lt(number, sent);
        ck_assert_int_eq(number % PARTITIONS, partition);
        ck_assert_int_gt(number, last);
        last = number;
        all[number].in_log++;
        if (all[number].report.stored == KP_STORED_YES &&
            all[number].report.offset >= 0)
            ck_assert_int_eq(all[number].report.offset, log[i].offset);
    }
    free(log);
}

/* Promises 1, 3 and 4; all_stored: no record may have failed.  Returns how many
 * failed. */
static int finish(struct stream *s, bool all_stored)
{
    struct outcome *all = calloc(RECORDS_MAX, sizeof(*all));
    int sent, failed = 0;

    ck_assert_ptr_nonnull(all);
    atomic_store(&s->stop, 1);
    (void)pthread_join(s->thread, NULL);
    sent = atomic_load(&s->sent);
    for (int i = 0; i < sent; i++) {
        all[i].err = kp_future_wait(&s->futures[i], SOON_MS, &all[i].report);
        ck_assert_int_ne(all[i].err, KP_PENDING);
        if (all_stored)
            ck_assert_msg(all[i].err == KP_OK, "record %d: %s, cause %s", i,
                          kp_err_name(all[i].err),
                          kp_err_name(all[i].report.cause));
        failed += all[i].err != KP_OK ? 1 : 0;
    }
    for (int32_t p = 0; p < PARTITIONS; p++)
        read_partition(all, sent, p);
    for (int i = 0; i < sent; i++) {
        int stored = all[i].report.stored;

        ck_assert_int_le(all[i].in_log, 1);
        if (stored == KP_STORED_YES)
            ck_assert_msg(all[i].in_log == 1, "record %d is lost", i);
        if (stored == KP_STORED_NO)
            ck_assert_msg(all[i].in_log == 0, "record %d is there", i);
    }
    kp_future_release(s->futures, (size_t)sent);
    ASSERT_OK(kp_close(s->p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(s->p));
    free(s);
    free(all);
    return failed;
}

/* -- operations -- */

static void stop_node(int32_t node, bool clean)
{
    struct kb_cluster *c = kp_broker_lock(broker);

    kb_node_stop(c, node, clean, kb_now_ns(c));
    kp_broker_unlock(broker);
}

static void pause_node(int32_t node, bool on)
{
    struct kb_cluster *c = kp_broker_lock(broker);

    kb_node_pause(c, node, on, kb_now_ns(c));
    kp_broker_unlock(broker);
}

static int32_t leader_of(int32_t partition)
{
    int32_t leader = kb_leader(kp_broker_lock(broker), "t", partition);

    kp_broker_unlock(broker);
    return leader;
}

/* F01, F02, F03: each broker in turn, killed or stopped in order. */
START_TEST(brokers_restart_one_after_the_other)
{
    bool clean = _i == 1;
    struct stream *s = begin(MAKE_PRODUCER(FAST, NULL));

    for (int round = 0; round < 2; round++)
        for (int32_t node = 1; node <= 3; node++) {
            go_on(s, 30);
            stop_node(node, clean);
            go_on(s, 30);
            kp_broker_start_node(broker, node);
            await_all_brokers(s);
        }
    ck_assert_int_eq(finish(s, true), 0);
}
END_TEST

/* F04: all are away for less than the delivery timeout. */
START_TEST(all_brokers_away_for_a_while)
{
    struct stream *s =
        begin(MAKE_PRODUCER(FAST, "delivery.timeout.ms", "60000", NULL));

    go_on(s, 50);
    for (int32_t node = 1; node <= 3; node++)
        stop_node(node, false);
    go_on(s, 300);
    for (int32_t node = 1; node <= 3; node++)
        kp_broker_start_node(broker, node);
    go_on(s, 50);
    ck_assert_int_eq(finish(s, true), 0);
}
END_TEST

/* F05: for longer: those fail by then, and later ones are delivered. */
START_TEST(all_brokers_away_for_too_long)
{
    kp_producer *p = MAKE_PRODUCER(FAST, "delivery.timeout.ms", "500", NULL);
    struct stream *s = begin(p);
    kp_record r = {.topic = "t", .flags = KP_HAS_PARTITION};
    kp_future f;
    kp_report report;
    int64_t began;

    go_on(s, 50);
    await_all_brokers(s);
    for (int32_t node = 1; node <= 3; node++)
        stop_node(node, false);
    go_on(s, 10); /* some of these are among the lost */
    began = now_ms();
    ASSERT_OK(kp_send(p, &r, &f));
    ASSERT_ERR(kp_future_wait(&f, SOON_MS, &report), KP_ETIMEDOUT);
    /* a batch takes records for a quarter of the time, and expires with its
     * first */
    ck_assert_int_ge(now_ms() - began, 500 - 500 / 4 - 10);
    ck_assert_int_lt(now_ms() - began, 500 + SOON_MS / 4);
    ck_assert_int_eq(report.stored, KP_STORED_NO);
    kp_future_release(&f, 1);
    for (int32_t node = 1; node <= 3; node++)
        kp_broker_start_node(broker, node);
    r.partition = 1;
    r.value = kp_str("-1");
    r.topic = "u";
    ck_assert_int_eq(kp_broker_create_topic(broker, "u", 2, 3), 0);
    while (deliver(p, &r, &report) != KP_OK)
        continue;
    go_on(s, 50);
    ck_assert_int_ge(finish(s, false), 1);
}
END_TEST

/* F06: a leader stands still for longer than a request may take, another is
 * elected, and the old one goes on believing that it leads. */
START_TEST(a_leader_stands_still_and_goes_on)
{
    struct stream *s = begin(MAKE_PRODUCER(FAST, NULL));

    for (int round = 0; round < 3; round++) {
        int32_t leader = leader_of(0);
        struct kb_cluster *c;

        go_on(s, 30);
        pause_node(leader, true);
        go_on(s, 50);
        if (round > 0) {
            c = kp_broker_lock(broker);
            for (int32_t p = 0; p < PARTITIONS; p++)
                if (kb_leader(c, "t", p) == leader)
                    (void)kb_leader_move(c, "t", p, leader % 3 + 1, false,
                                         kb_now_ns(c));
            kp_broker_unlock(broker);
        }
        go_on(s, 450);
        pause_node(leader, false);
        await_all_brokers(s);
    }
    ck_assert_int_eq(finish(s, true), 0);
}
END_TEST

/* F08: leaders move all the time. */
START_TEST(leaders_move_all_the_time)
{
    struct stream *s = begin(MAKE_PRODUCER(FAST, NULL));

    for (int i = 0; i < 60; i++) {
        struct kb_cluster *c = kp_broker_lock(broker);

        (void)kb_leader_move(c, "t", i % PARTITIONS, (i / PARTITIONS) % 3 + 1,
                             false, kb_now_ns(c));
        kp_broker_unlock(broker);
        go_on(s, 5);
    }
    ck_assert_int_eq(finish(s, true), 0);
}
END_TEST

/* F09: two of three are gone: too few replicas, until one is back. */
START_TEST(too_few_replicas_for_a_while)
{
    struct stream *s = begin(MAKE_PRODUCER(FAST, NULL));

    go_on(s, 50);
    stop_node(2, true);
    stop_node(3, true);
    go_on(s, 300);
    kp_broker_start_node(broker, 2);
    kp_broker_start_node(broker, 3);
    go_on(s, 50);
    ck_assert_int_eq(finish(s, true), 0);
}
END_TEST

/* F10: a leader's disk fails and is mended. */
START_TEST(a_disk_fails)
{
    struct stream *s = begin(MAKE_PRODUCER(FAST, NULL));
    int32_t leader = leader_of(0);
    struct kb_cluster *c;

    go_on(s, 50);
    c = kp_broker_lock(broker);
    kb_storage_fail(c, "t", 0, leader, true, kb_now_ns(c));
    kp_broker_unlock(broker);
    go_on(s, 200);
    c = kp_broker_lock(broker);
    kb_storage_fail(c, "t", 0, leader, false, kb_now_ns(c));
    kp_broker_unlock(broker);
    go_on(s, 50);
    ck_assert_int_eq(finish(s, true), 0);
}
END_TEST

static void keep_throttle(void *arg, const kp_metric *m)
{
    if (strcmp(m->group, "producer-metrics") == 0 &&
        strcmp(m->name, "produce-throttle-time-max") == 0)
        *(double *)arg = m->value;
}

static bool is_throttled(void *producer)
{
    double throttled_ms = 0;

    kp_metrics(producer, keep_throttle, &throttled_ms);
    return throttled_ms > 0;
}

/* F11: a quota. */
START_TEST(a_quota_slows_and_fails_nothing)
{
    struct stream *s = begin(MAKE_PRODUCER(FAST, NULL));

    /* little enough for a slow machine to exceed it */
    ck_assert(kb_set(kp_broker_lock(broker), "quota", "1000"));
    kp_broker_unlock(broker);
    ck_assert(becomes_true(is_throttled, s->p));
    go_on(s, 400);
    ck_assert(kb_set(kp_broker_lock(broker), "quota", "0"));
    kp_broker_unlock(broker);
    ck_assert_int_eq(finish(s, true), 0);
}
END_TEST

/* A18: one of three flaps. */
START_TEST(a_broker_that_comes_and_goes)
{
    struct stream *s = begin(MAKE_PRODUCER(FAST, NULL));

    for (int i = 0; i < 10; i++) {
        stop_node(3, false);
        go_on(s, 20);
        kp_broker_start_node(broker, 3);
        go_on(s, 20);
    }
    ck_assert_int_eq(finish(s, true), 0);
}
END_TEST

/* D01 to D03, D09: every answer may be an error, though the batch was stored. */
static const int stored_and_refused[] = {3, 5, 6, 7, 20, 56, 74, 75, 100};

START_TEST(stored_and_told_otherwise)
{
    struct stream *s = begin(MAKE_PRODUCER(FAST, NULL));
    char line[80];

    for (int i = 0; i < 5; i++) {
        (void)snprintf(line, sizeof(line),
                       "api=produce skip=%d count=2 error=%d append", i,
                       stored_and_refused[_i]);
        add_rule(line);
        go_on(s, 30);
    }
    ck_assert_int_eq(finish(s, true), 0);
}
END_TEST

static Suite *public_cluster_suite(void)
{
    Suite *s = suite_create("public cluster");
    TCase *t = tcase_create("three nodes");

    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_loop_test(t, brokers_restart_one_after_the_other, 0, 2);
    tcase_add_test(t, all_brokers_away_for_a_while);
    tcase_add_test(t, all_brokers_away_for_too_long);
    tcase_add_test(t, a_leader_stands_still_and_goes_on);
    tcase_add_test(t, leaders_move_all_the_time);
    tcase_add_test(t, too_few_replicas_for_a_while);
    tcase_add_test(t, a_disk_fails);
    tcase_add_test(t, a_quota_slows_and_fails_nothing);
    tcase_add_test(t, a_broker_that_comes_and_goes);
    tcase_add_loop_test(t, stored_and_told_otherwise, 0, 9);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_cluster_suite)
