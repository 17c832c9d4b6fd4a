/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole stories: a thousand threads that each send and wait, a producer that
 * lives through outages with its buffer full, and a dead broker beside two live
 * ones. */
#include "test/unit/public_fixture.h"

#include "test/support/main.h"

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
}

/* -- a thousand threads -- */

struct job {
    pthread_t thread;
    kp_producer *p;
    int number;
    kp_err err;
    int64_t offset;
};

static void *send_and_wait(void *arg)
{
    struct job *j = arg;
    char value[16];
    kp_record r;
    kp_report report = {.offset = -2};

    (void)snprintf(value, sizeof(value), "%d", j->number);
    r = record_of("t", value);
    j->err = deliver(j->p, &r, &report);
    j->offset = report.offset;
    return NULL;
}

START_TEST(a_thousand_threads_each_send_and_wait)
{
    enum { COUNT = 1000 };
    kp_producer *p = MAKE_PRODUCER("linger.ms", "5", NULL);
    struct job *jobs = calloc(COUNT, sizeof(*jobs));
    struct stored *all = calloc(COUNT, sizeof(*all));
    pthread_attr_t attr;

    ck_assert(jobs != NULL && all != NULL);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, 256 * 1024);
    for (int i = 0; i < COUNT; i++) {
        jobs[i].p = p;
        jobs[i].number = i;
        ck_assert_int_eq(
            pthread_create(&jobs[i].thread, &attr, send_and_wait, &jobs[i]), 0);
    }
    for (int i = 0; i < COUNT; i++)
        (void)pthread_join(jobs[i].thread, NULL);
    ck_assert_uint_eq(read_log("t", 0, all, COUNT), COUNT);
    for (int i = 0; i < COUNT; i++) {
        char value[16];

        ASSERT_OK(jobs[i].err);
        ck_assert_int_ge(jobs[i].offset, 0);
        ck_assert_int_lt(jobs[i].offset, COUNT);
        (void)snprintf(value, sizeof(value), "%d", i);
        /* What its report names is what it sent. */
        ck_assert_mem_eq(all[jobs[i].offset].value, value, strlen(value));
    }
    ASSERT_OK(kp_producer_destroy(p));
    (void)pthread_attr_destroy(&attr);
    free(jobs);
    free(all);
}
END_TEST

/* -- outages with a full buffer -- */

struct outage {
    const char *batch_size;
    bool callbacks, nowait;
};

static const struct outage outages[] = {
    {"16384", false, false}, {"16384", false, true}, {"16384", true, false},
    {"16384", true, true},   {"0", false, false},    {"0", false, true},
    {"0", true, false},      {"0", true, true},
};

#define SENT_MAX 20000

struct traffic {
    kp_producer *p;
    const struct outage *how;
    struct seen *seen; /* or */
    kp_future *futures;
    int count;
    char value[600];
};

static kp_err send_next(struct traffic *t, uint32_t flags)
{
    kp_record r = {.topic = "t", .value = {t->value, sizeof(t->value)}};
    kp_err err;

    ck_assert_int_lt(t->count, SENT_MAX);
    (void)snprintf(t->value, sizeof(t->value), "%06d", t->count);
    r.flags = flags;
    r.max_wait_ms = 100;
    if (t->how->callbacks) {
        r.on_delivery = keep_report;
        r.tag = &t->seen[t->count];
    }
    err = kp_send(t->p, &r, t->how->callbacks ? NULL : &t->futures[t->count]);
    if (err == KP_OK)
        t->count++;
    return err;
}

/* Until the buffer is full, in the way of this story. */
static void fill(struct traffic *t)
{
    kp_err err;

    do
        err = send_next(t, t->how->nowait ? KP_NOWAIT : 0);
    while (err == KP_OK);
    ASSERT_ERR(err, KP_EBUFFER);
}

static bool can_send_again(void *arg)
{
    return send_next(arg, KP_NOWAIT) == KP_OK;
}

static void check_traffic(struct traffic *t)
{
    struct stored *all = calloc((size_t)t->count, sizeof(*all));

    ck_assert_ptr_nonnull(all);
    /* Nothing lost, nothing twice, nothing out of order. */
    ck_assert_uint_eq(read_log("t", 0, all, (size_t)t->count),
                      (size_t)t->count);
    for (int i = 0; i < t->count; i++) {
        kp_report report;
        char value[16];

        (void)snprintf(value, sizeof(value), "%06d", i);
        ck_assert_mem_eq(all[i].value, value, 6);
        if (t->how->callbacks) {
            ck_assert_int_eq(atomic_load(&t->seen[i].count), 1);
            report = t->seen[i].report;
        } else {
            ASSERT_OK(kp_future_wait(&t->futures[i], 0, &report));
        }
        ck_assert_int_eq(report.err, KP_OK);
        ck_assert_int_eq(report.offset, i);
    }
    free(all);
}

START_TEST(outages_with_a_full_buffer_lose_nothing)
{
    struct traffic t = {.how = &outages[_i]};

    t.seen = calloc(SENT_MAX, sizeof(*t.seen));
    t.futures = calloc(SENT_MAX, sizeof(*t.futures));
    ck_assert(t.seen != NULL && t.futures != NULL);
    t.p = MAKE_PRODUCER("batch.size", t.how->batch_size, "buffer.memory",
                        "200000", "linger.ms", "0", "reconnect.backoff.ms", "5",
                        "reconnect.backoff.max.ms", "50", "retry.backoff.ms",
                        "5", "request.timeout.ms", "2000", NULL);
    learn_topic(t.p, "t");
    for (int round = 0; round < 3; round++) {
        if (round == 1) { /* full before the outage begins, too */
            add_rule("api=produce answer=none count=-1");
            fill(&t);
        }
        kp_broker_stop_node(broker, 1);
        remove_rules();
        fill(&t);
        kp_broker_start_node(broker, 1);
        ck_assert(becomes_true(can_send_again, &t));
    }
    ASSERT_OK(kp_flush(t.p, 2 * SOON_MS, &error));
    check_traffic(&t);
    kp_future_release(t.futures, SENT_MAX);
    ASSERT_OK(kp_close(t.p, KP_FOREVER, &error));
    ASSERT_OK(kp_producer_destroy(t.p));
    free(t.seen);
    free(t.futures);
}
END_TEST

/* -- a dead broker beside two live ones -- */

struct steady {
    pthread_t thread;
    kp_producer *p;
    int32_t partition;
    int taken, refused;
    _Atomic int delivered, stop;
};

static void *send_steadily(void *arg)
{
    struct steady *s = arg;
    char value[1000];

    memset(value, 'v', sizeof(value));
    while (atomic_load(&s->stop) == 0) {
        kp_record r = {.topic = "wide", .value = {value, sizeof(value)}};
        kp_future f;
        kp_err err;

        r.flags = KP_HAS_PARTITION;
        r.partition = s->partition;
        err = kp_send(s->p, &r, &f);
        if (err == KP_OK) {
            s->taken++;
            if (kp_future_wait(&f, SOON_MS, NULL) == KP_OK)
                (void)atomic_fetch_add(&s->delivered, 1);
        } else {
            s->refused++;
        }
        kp_future_release(&f, 1);
    }
    return NULL;
}

static bool delivers_many(void *arg)
{
    return atomic_load(&((struct steady *)arg)->delivered) >= 20;
}

static void see_leader(void *dead, const kp_partition *p)
{
    if (p->leader == 2)
        *(bool *)dead = true;
}

/* The producer has heard that node 2 leads nothing any more. */
static bool knows_the_dead(void *producer)
{
    bool leads = false;
    int32_t count;

    return kp_partitions_for(producer, "wide", 0, &count, see_leader, &leads) ==
               KP_OK &&
           !leads;
}

static void setup_three(void)
{
    memset(&error, 0, sizeof(error));
    broker = start_broker(3, true, 6);
    make_topic("wide", 6);
}

static int32_t leader_of(int32_t partition)
{
    int32_t id = kb_leader(kp_broker_lock(broker), "wide", partition);

    kp_broker_unlock(broker);
    return id;
}

/* What the dead one was to have holds its share of the memory until it expires:
 * others need not wait for that. */
START_TEST(a_dead_broker_does_not_stop_the_others)
{
    kp_producer *p = MAKE_PRODUCER(
        "buffer.memory", "400000", "linger.ms", "0", "max.block.ms", "10000",
        "delivery.timeout.ms", "6000", "request.timeout.ms", "1000",
        "reconnect.backoff.max.ms", "200", NULL);
    static struct steady s[6]; /* threads may outlive a test that fails */
    int live = 0;
    char value[1000];
    kp_err err = KP_OK;
    kp_future first;
    int32_t dead = -1;

    memset(value, 'v', sizeof(value));
    learn_topic(p, "wide");
    for (int32_t i = 0; i < 6; i++) {
        kp_record r = record_of("wide", "first");

        r.flags = KP_HAS_PARTITION;
        r.partition = i;
        ASSERT_OK(deliver(p, &r, NULL));
    }
    for (int32_t k = 0; k < 6; k++)
        dead = leader_of(k) == 2 ? k : dead;
    kp_broker_stop_node(broker, 2);
    {
        kp_record r = record_of("wide", "the dead one's");

        r.flags = KP_HAS_PARTITION;
        r.partition = dead;
        ASSERT_OK(kp_send(p, &r, &first));
    }
    ck_assert(becomes_true(knows_the_dead, p));
    /* All that the dead one's partitions may take, and more. */
    for (int i = 0; i < 3000 && err == KP_OK; i++)
        for (int32_t k = 0; k < 6 && err == KP_OK; k++) {
            kp_record r = {.topic = "wide", .value = {value, sizeof(value)}};

            if (leader_of(k) == 1 || leader_of(k) == 3)
                continue;
            r.flags = KP_HAS_PARTITION | KP_NOWAIT;
            r.partition = k;
            err = kp_send(p, &r, NULL);
        }
    ASSERT_ERR(err, KP_EBUFFER);
    for (int32_t i = 0; i < 6; i++) {
        memset(&s[i], 0, sizeof(s[i]));
        s[i].p = p;
        s[i].partition = i;
        if (leader_of(i) != 1 && leader_of(i) != 3)
            continue;
        live++;
        ck_assert_int_eq(
            pthread_create(&s[i].thread, NULL, send_steadily, &s[i]), 0);
    }
    ck_assert_int_eq(live, 4);
    for (int32_t i = 0; i < 6; i++)
        ck_assert(s[i].thread == 0 || becomes_true(delivers_many, &s[i]));
    ASSERT_ERR(kp_future_wait(&first, 0, NULL), KP_PENDING);
    for (int32_t i = 0; i < 6; i++) {
        if (s[i].thread == 0)
            continue;
        atomic_store(&s[i].stop, 1);
        (void)pthread_join(s[i].thread, NULL);
    }
    for (int32_t i = 0; i < 6; i++) {
        ck_assert_int_eq(s[i].refused, 0);
        ck_assert_int_eq(atomic_load(&s[i].delivered), s[i].taken);
    }
    kp_future_release(&first, 1);
    /* What the dead one was to have fails in time, and says so. */
    ASSERT_ERR(kp_flush(p, SOON_MS, &error), KP_ETIMEDOUT);
    ASSERT_OK(kp_close(p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static Suite *public_story_suite(void)
{
    Suite *s = suite_create("public stories");
    TCase *t = tcase_create("one node");

    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, a_thousand_threads_each_send_and_wait);
    tcase_add_loop_test(t, outages_with_a_full_buffer_lose_nothing, 0, 8);
    suite_add_tcase(s, t);
    t = tcase_create("three nodes");
    tcase_add_checked_fixture(t, setup_three, teardown_broker);
    tcase_add_test(t, a_dead_broker_does_not_stop_the_others);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_story_suite)
