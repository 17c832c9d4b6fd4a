/* SPDX-License-Identifier: BSD-2-Clause */
/* Topics that are not there yet, not there at all, refused, or growing: what
 * sends, kp_partitions_for and kp_status say, and how long they take. */
#include "test/unit/public_fixture.h"

#include "test/support/main.h"

static struct broker_server *strict_broker(void)
{
    memset(&error, 0, sizeof(error));
    return start_broker(1, false, 1); /* topics are not made by asking */
}

static void setup(void)
{
    broker = strict_broker();
    make_topic("here", 2);
}

/* -- unknown topics -- */

START_TEST(a_topic_is_made_by_asking_where_brokers_do_that)
{
    kp_record r = record_of("fresh", "v");
    kp_producer *p;

    teardown_broker();
    broker = start_broker(1, true, 3);
    p = MAKE_PRODUCER(NULL);
    ASSERT_OK(deliver(p, &r, NULL));
    ck_assert_int_eq(kb_topic_partitions(kp_broker_lock(broker), "fresh"), 3);
    kp_broker_unlock(broker);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* The answer may take longer than a send, on some machines; it is asked for
 * again by the next. */
static bool is_said_to_be_unknown(void *producer)
{
    kp_record r = record_of("nope", "v");

    return kp_status(producer, "nope", &error) ==
               KP_UNKNOWN_TOPIC_OR_PARTITION ||
           kp_send(producer, &r, NULL) == KP_OK;
}

START_TEST(an_unknown_topic_takes_max_block_ms)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "400", NULL);
    kp_record r = record_of("nope", "v");
    int64_t began = now_ms(), took;
    kp_future f;
    kp_report report;

    ASSERT_ERR(kp_send(p, &r, &f), KP_EMETADATA);
    took = now_ms() - began;
    ck_assert_int_ge(took, 400);
    ck_assert_int_lt(took, 400 + SOON_MS / 4);
    ASSERT_ERR(kp_future_wait(&f, 0, &report), KP_EMETADATA);
    ck_assert_int_eq(report.kind, KP_KIND_RETRIABLE);
    ck_assert(becomes_true(is_said_to_be_unknown, p));
    ASSERT_ERR(kp_status(p, "nope", &error), KP_UNKNOWN_TOPIC_OR_PARTITION);
    ASSERT_SAYS("nope");
    ASSERT_SAYS("UNKNOWN_TOPIC_OR_PARTITION");
    ASSERT_ERR(kp_status(p, NULL, &error), KP_UNKNOWN_TOPIC_OR_PARTITION);
    ASSERT_OK(kp_status(p, "here", &error));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_known_no_is_not_waited_for_again)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "500", NULL);
    kp_record r = record_of("nope", "v");
    int64_t began = now_ms();

    for (int i = 0; i < 100; i++)
        ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    ck_assert_int_lt(now_ms() - began, 2 * 500 + SOON_MS / 4);
    ck_assert_int_lt(requests_of(API_METADATA), 30);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static bool send_works(void *arg)
{
    kp_record r = record_of("late", "v");

    return kp_send(arg, &r, NULL) == KP_OK;
}

START_TEST(a_topic_made_after_the_no_is_found)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "200", NULL);
    kp_record r = record_of("late", "v");

    ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    make_topic("late", 1);
    ck_assert(becomes_true(send_works, p));
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ck_assert_uint_eq(stored_count("late", 0), 1);
    ASSERT_OK(kp_status(p, "late", &error));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

struct late_topic {
    const char *name;
    int64_t after_ms;
};

static void *make_later(void *arg)
{
    const struct late_topic *l = arg;

    pause_ms(l->after_ms);
    make_topic(l->name, 1);
    return NULL;
}

START_TEST(a_topic_made_while_we_wait_is_found)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "20000", NULL);
    struct late_topic l = {"soon", 300};
    kp_record r = record_of("soon", "v");
    pthread_t maker;

    ck_assert_int_eq(pthread_create(&maker, NULL, make_later, &l), 0);
    ASSERT_OK(deliver(p, &r, NULL));
    (void)pthread_join(maker, NULL);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(max_wait_ms_is_the_records_own_limit)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "20000", NULL);
    kp_record r = record_of("nope", "v");
    int64_t began = now_ms(), took;

    r.max_wait_ms = 150;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    took = now_ms() - began;
    ck_assert_int_ge(took, 150);
    ck_assert_int_lt(took, 10000);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(max_wait_ms_does_not_exceed_max_block_ms)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "150", NULL);
    kp_record r = record_of("nope", "v");
    int64_t began = now_ms();

    r.max_wait_ms = UINT32_MAX;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    ck_assert_int_lt(now_ms() - began, 10000);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- KP_NOWAIT -- */

START_TEST(nowait_says_so_at_once_and_asks)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "20000", NULL);
    kp_record r = record_of("late", "v");
    int64_t began = now_ms();

    r.flags = KP_NOWAIT;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    ck_assert_int_lt(now_ms() - began, 5000);
    make_topic("late", 1);
    ck_assert(becomes_true(send_works, p));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(max_block_ms_0_never_waits)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "0", NULL);
    kp_record r = record_of("here", "v");
    int64_t until = now_ms() + SOON_MS;
    kp_err err;

    add_rule("api=metadata process_ms=300 count=1");
    err = kp_send(p, &r, NULL);
    ASSERT_ERR(err, KP_EMETADATA);
    while (err != KP_OK && now_ms() < until) {
        pause_ms(1);
        err = kp_send(p, &r, NULL);
    }
    ASSERT_OK(err);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(names_asked_for_are_bounded)
{
    enum { MOST = 100000 };
    kp_producer *p;
    char name[32];
    kp_err err = KP_EMETADATA;
    int asked = 0;

    kp_broker_stop_node(broker, 1);
    p = MAKE_PRODUCER(NULL);
    while (err == KP_EMETADATA && asked < MOST + 10) {
        kp_record r;

        (void)snprintf(name, sizeof(name), "name-%d", asked++);
        r = record_of(name, "v");
        r.flags = KP_NOWAIT;
        err = kp_send(p, &r, NULL);
    }
    ASSERT_ERR(err, KP_ETOPIC);
    ck_assert_int_eq(asked, MOST + 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- topics the brokers refuse -- */

START_TEST(a_refused_topic_is_refused_with_the_brokers_code)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "20000", NULL);
    kp_record denied = record_of("denied", "v"), good = record_of("here", "v");
    kp_future f;
    kp_report report;
    int64_t began = now_ms();

    add_rule("api=metadata topic=denied error=29 count=-1");
    ASSERT_ERR(kp_send(p, &denied, &f), KP_TOPIC_AUTHORIZATION_FAILED);
    ck_assert_int_lt(now_ms() - began, 10000);
    ASSERT_ERR(kp_future_wait(&f, 0, &report), KP_TOPIC_AUTHORIZATION_FAILED);
    ck_assert_int_eq(report.stored, KP_STORED_NO);
    ck_assert_int_eq(report.partition, -1);
    ASSERT_OK(deliver(p, &good, NULL));
    ASSERT_ERR(kp_send(p, &denied, NULL), KP_TOPIC_AUTHORIZATION_FAILED);
    ASSERT_ERR(kp_status(p, "denied", &error), KP_TOPIC_AUTHORIZATION_FAILED);
    ASSERT_SAYS("denied");
    ASSERT_OK(kp_status(p, "here", &error));
    ASSERT_OK(deliver(p, &good, NULL));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_refusal_is_logged_once_in_a_while)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), "max.block.ms",
                               "50", "client.id", "teller", NULL);
    kp_record r = record_of("nope", "v");
    kp_producer *p;

    kp_config_on_log(c, KP_LOG_WARN, keep_line, &lines);
    p = start_producer(c);
    for (int i = 0; i < 20; i++)
        ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    ck_assert_int_eq(lines_with("send", "nope"), 1);
    ck_assert_int_eq(lines_with("send", "KP_EMETADATA"), 1);
    r.topic = "here";
    r.timestamp_ms = 77;
    for (int i = 0; i < 20; i++)
        ASSERT_ERR(kp_send(p, &r, NULL), KP_ETIMESTAMP);
    ck_assert_int_eq(lines_with("send", "timestamp_ms=77"), 1);
    r.topic = "a\nb";
    r.timestamp_ms = 0;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOPIC);
    ck_assert_int_eq(lines_with("send", "a\\x0Ab"), 1);
    r.topic = "here";
    r.flags = KP_HAS_PARTITION;
    r.partition = -7;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EPARTITION);
    ck_assert_int_eq(lines_with("send", "partition=-7"), 1);
    r.flags = 0;
    r.partition = 0;
    r.value = (kp_bytes){"v", 1u << 30};
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    ck_assert_int_eq(lines_with("send", "max.request.size=1048576"), 1);
    for (int i = 0; i < lines.count; i++)
        ck_assert_str_eq(lines.line[i].client_id, "teller");
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- partitions -- */

struct partitions {
    int count;
    kp_partition seen[8];
};

static void see(void *arg, const kp_partition *partition)
{
    struct partitions *s = arg;

    if (s->count < 8)
        s->seen[s->count] = *partition;
    s->count++;
}

START_TEST(partitions_are_shown)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "100", NULL);
    struct partitions s = {0};
    int32_t count = 0;

    ASSERT_OK(kp_partitions_for(p, "here", SOON_MS, &count, see, &s));
    ck_assert_int_eq(count, 2);
    ck_assert_int_eq(s.count, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(s.seen[i].id, i);
        ck_assert_int_eq(s.seen[i].leader, 1);
        ck_assert_int_ge(s.seen[i].leader_epoch, 0);
        ck_assert_int_eq(s.seen[i].replica_count, 1);
        ck_assert_int_eq(s.seen[i].isr_count, 1);
    }
    ASSERT_OK(kp_partitions_for(p, "here", 0, NULL, NULL, NULL));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(partitions_of_no_topic_take_their_timeout)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "60000", NULL);
    int64_t began = now_ms();
    int32_t count = 77;

    ASSERT_ERR(kp_partitions_for(p, "nope", 250, &count, NULL, NULL),
               KP_EMETADATA);
    ck_assert_int_ge(now_ms() - began, 250);
    ck_assert_int_lt(now_ms() - began, 10000);
    ASSERT_ERR(kp_partitions_for(p, "no pe", 250, &count, NULL, NULL),
               KP_ETOPIC);
    ASSERT_ERR(kp_partitions_for(p, "never", 0, &count, NULL, NULL),
               KP_EMETADATA);
    add_rule("api=metadata topic=denied error=29 count=-1");
    ASSERT_ERR(kp_partitions_for(p, "denied", SOON_MS, &count, NULL, NULL),
               KP_TOPIC_AUTHORIZATION_FAILED);
    ck_assert_int_eq(count, 77);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_partition_beyond_the_count_waits_for_the_topic_to_grow)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "20000", NULL);
    kp_record r = record_of("here", "v");
    struct kb_cluster *c;
    kp_report report;

    learn_topic(p, "here");
    r.flags = KP_HAS_PARTITION;
    r.partition = 4;
    r.max_wait_ms = 200;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    r.flags |= KP_NOWAIT;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    r.flags = KP_HAS_PARTITION;
    r.max_wait_ms = 0;
    c = kp_broker_lock(broker);
    ck_assert_int_eq(kb_topic_grow(c, "here", 5, kb_now_ns(c)), 0);
    kp_broker_unlock(broker);
    ASSERT_OK(deliver(p, &r, &report));
    ck_assert_int_eq(report.partition, 4);
    ck_assert_uint_eq(stored_count("here", 4), 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_partition_that_never_comes_is_told_by_its_number)
{
    kp_config *c =
        make_config(kp_broker_bootstrap(broker), "max.block.ms", "200", NULL);
    kp_record r = record_of("here", "v");
    kp_producer *p;
    int64_t began;

    kp_config_on_log(c, KP_LOG_WARN, keep_line, &lines);
    p = start_producer(c);
    learn_topic(p, "here");
    r.flags = KP_HAS_PARTITION;
    r.partition = 9;
    began = now_ms();
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    ck_assert_int_ge(now_ms() - began, 200);
    ck_assert_int_eq(lines_with("send", "partition=9"), 1);
    r.partition = INT32_MAX;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- what kp_status says when nobody is there -- */

struct wanted_status {
    kp_producer *p;
    kp_err err;
};

static bool status_is(void *arg)
{
    struct wanted_status *w = arg;

    return kp_status(w->p, NULL, &error) == w->err;
}

START_TEST(no_broker_is_told_with_its_address)
{
    char address[64];
    struct wanted_status w = {.err = KP_ECONNECT};
    kp_record r = record_of("here", "v");

    (void)snprintf(address, sizeof(address), "127.0.0.1:%d",
                   kp_broker_port(broker, 1));
    kp_broker_stop_node(broker, 1);
    w.p = MAKE_PRODUCER("max.block.ms", "300", NULL);
    ASSERT_ERR(kp_send(w.p, &r, NULL), KP_EMETADATA);
    ck_assert(becomes_true(status_is, &w));
    ASSERT_SAYS(address);
    ck_assert_int_eq(error.kind, KP_KIND_RETRIABLE);
    ASSERT_ERR(kp_status(w.p, "here", NULL), KP_ECONNECT);
    kp_broker_start_node(broker, 1);
    w.err = KP_OK;
    ck_assert(becomes_true(status_is, &w));
    r.max_wait_ms = 0;
    ASSERT_OK(kp_producer_destroy(w.p));
}
END_TEST

START_TEST(a_bad_bootstrap_name_is_told)
{
    struct wanted_status w = {.err = KP_ERESOLVE};
    kp_record r = record_of("here", "v");

    w.p = start_producer(
        make_config("no-such-host.invalid:9092", "max.block.ms", "500", NULL));
    ASSERT_ERR(kp_send(w.p, &r, NULL), KP_EMETADATA);
    ck_assert(becomes_true(status_is, &w));
    ASSERT_SAYS("no-such-host.invalid");
    ASSERT_OK(kp_producer_destroy(w.p));
}
END_TEST

START_TEST(a_closed_producer_says_so)
{
    kp_producer *p = MAKE_PRODUCER(NULL);
    kp_record r = record_of("here", "v");

    ASSERT_OK(kp_status(p, NULL, &error));
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ASSERT_ERR(kp_status(p, NULL, &error), KP_ECLOSED);
    ASSERT_SAYS("closed");
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ECLOSED);
    r.topic = "other";
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ECLOSED);
    ASSERT_ERR(kp_partitions_for(p, "other", SOON_MS, NULL, NULL, NULL),
               KP_ECLOSED);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_status_leaves_the_error_alone_when_all_is_well)
{
    kp_producer *p = MAKE_PRODUCER(NULL);
    kp_error untouched;

    learn_topic(p, "here");
    memset(&untouched, 0x5a, sizeof(untouched));
    ASSERT_OK(kp_status(p, "here", &untouched));
    ck_assert_int_eq(untouched.err, 0x5a5a5a5a);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static Suite *public_topic_suite(void)
{
    Suite *s = suite_create("public topics");
    TCase *t = tcase_create("unknown");

    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, a_topic_is_made_by_asking_where_brokers_do_that);
    tcase_add_test(t, an_unknown_topic_takes_max_block_ms);
    tcase_add_test(t, a_known_no_is_not_waited_for_again);
    tcase_add_test(t, a_topic_made_after_the_no_is_found);
    tcase_add_test(t, a_topic_made_while_we_wait_is_found);
    tcase_add_test(t, max_wait_ms_is_the_records_own_limit);
    tcase_add_test(t, max_wait_ms_does_not_exceed_max_block_ms);
    tcase_add_test(t, nowait_says_so_at_once_and_asks);
    tcase_add_test(t, max_block_ms_0_never_waits);
    tcase_add_test(t, names_asked_for_are_bounded);
    tcase_add_test(t, a_refused_topic_is_refused_with_the_brokers_code);
    tcase_add_test(t, a_refusal_is_logged_once_in_a_while);
    suite_add_tcase(s, t);
    t = tcase_create("partitions");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, partitions_are_shown);
    tcase_add_test(t, partitions_of_no_topic_take_their_timeout);
    tcase_add_test(t, a_partition_beyond_the_count_waits_for_the_topic_to_grow);
    tcase_add_test(t, a_partition_that_never_comes_is_told_by_its_number);
    suite_add_tcase(s, t);
    t = tcase_create("status");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, no_broker_is_told_with_its_address);
    tcase_add_test(t, a_bad_bootstrap_name_is_told);
    tcase_add_test(t, a_closed_producer_says_so);
    tcase_add_test(t, a_status_leaves_the_error_alone_when_all_is_well);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_topic_suite)
