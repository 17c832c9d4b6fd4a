/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: polling, the fd as an event loop sees it, wake-ups, the
 * retry signal, memory that reports hold, and every order of destruction. */
#include <poll.h>

#include "test/unit/public_fixture.h"

#include "test/support/main.h"

static kp_cq *q;

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
    ASSERT_OK(kp_cq_create(&q, &error));
}

static void teardown(void)
{
    kp_cq_destroy(q);
    teardown_broker();
}

static kp_record queued(const char *topic, kp_cq *queue, void *tag)
{
    kp_record r = record_of(topic, "v");

    r.queue = queue;
    r.tag = tag;
    return r;
}

static bool readable(kp_cq *queue, int timeout_ms)
{
    struct pollfd f = {.fd = kp_cq_fd(queue), .events = POLLIN};

    return poll(&f, 1, timeout_ms) == 1 && (f.revents & POLLIN) != 0;
}

/* -- polling -- */

START_TEST(reports_come_in_order_with_tags)
{
    enum { COUNT = 1000 };
    kp_producer *p = MAKE_PRODUCER("linger.ms", "1", "batch.size", "500", NULL);
    static int tags[COUNT];
    kp_report reports[64];
    size_t got = 0;

    for (int i = 0; i < COUNT; i++) {
        kp_record r = queued("t", q, &tags[i]);

        ASSERT_OK(kp_send(p, &r, NULL));
    }
    while (got < COUNT) {
        size_t n = kp_cq_poll(q, reports, 1 + got % 64, SOON_MS);

        ck_assert_uint_gt(n, 0);
        ck_assert_uint_le(n, 1 + got % 64);
        for (size_t i = 0; i < n; i++, got++) {
            ck_assert_ptr_eq(reports[i].tag, &tags[got]);
            ck_assert_int_eq(reports[i].offset, (int64_t)got);
            ck_assert_int_eq(reports[i].err, KP_OK);
            ck_assert_int_eq(reports[i].stored, KP_STORED_YES);
            ck_assert_str_eq(reports[i].topic, "t");
        }
    }
    ck_assert_uint_eq(kp_cq_poll(q, reports, 64, 0), 0);
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_uint_eq(kp_cq_poll(q, reports, 64, 0), 0);
}
END_TEST

START_TEST(a_poll_keeps_its_limit)
{
    int64_t began = now_ms();
    kp_report report;

    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, 200), 0);
    ck_assert_int_ge(now_ms() - began, 200);
    ck_assert_int_lt(now_ms() - began, 10000);
    began = now_ms();
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, 0), 0);
    ck_assert_int_lt(now_ms() - began, 5000);
}
END_TEST

START_TEST(a_failure_is_reported_to_the_queue)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = queued("t", q, &error);
    kp_report report;

    add_rule("api=produce topic=t error=87 count=1");
    ASSERT_OK(kp_send(p, &r, NULL));
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, SOON_MS), 1);
    ck_assert_int_eq(report.err, KP_INVALID_RECORD);
    ck_assert_int_eq(report.stored, KP_STORED_NO);
    ck_assert_ptr_eq(report.tag, &error);
    /* It was watched: flush has nothing to say. */
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_refused_send_is_not_reported_to_the_queue)
{
    kp_producer *p = MAKE_PRODUCER(NULL);
    kp_record r = queued("t", q, NULL);
    kp_report report;

    r.partition = -3;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EPARTITION);
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, 0), 0);
}
END_TEST

START_TEST(a_record_may_have_a_future_besides)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = queued("t", q, &error);
    kp_report by_queue, by_future;
    kp_future f;

    ASSERT_OK(kp_send(p, &r, &f));
    ck_assert_uint_eq(kp_cq_poll(q, &by_queue, 1, SOON_MS), 1);
    ASSERT_OK(kp_future_wait(&f, SOON_MS, &by_future));
    ck_assert_int_eq(by_queue.offset, by_future.offset);
    ck_assert_ptr_eq(by_queue.tag, by_future.tag);
    kp_future_release(&f, 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- the fd -- */

START_TEST(the_fd_is_readable_while_there_is_a_report)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "60000", NULL);
    kp_report report;

    learn_topic(p, "t");
    ck_assert(!readable(q, 0));
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 5; i++) {
            kp_record r = queued("t", q, NULL);

            ASSERT_OK(kp_send(p, &r, NULL));
        }
        ck_assert(!readable(q, 0));
        ASSERT_OK(kp_flush(p, SOON_MS, &error));
        for (int i = 0; i < 5; i++) {
            ck_assert(readable(q, SOON_MS));
            ck_assert_uint_eq(kp_cq_poll(q, &report, 1, 0), 1);
        }
        /* Perhaps once more, for nothing; then no more. */
        (void)kp_cq_poll(q, &report, 1, 0);
        ck_assert(!readable(q, 0));
    }
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(an_fd_asked_for_late_is_true_at_once)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = queued("t", q, NULL);
    kp_report report;
    struct pollfd f = {.events = POLLIN};

    ASSERT_OK(kp_send(p, &r, NULL));
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    f.fd = kp_cq_fd(q);
    ck_assert_int_eq(poll(&f, 1, SOON_MS), 1);
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, 0), 1);
    ck_assert_int_eq(kp_cq_fd(q), f.fd);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

struct loop {
    kp_producer *p;
    int count;
};

static void *send_through(void *arg)
{
    struct loop *l = arg;

    for (int i = 0; i < l->count; i++) {
        kp_record r = queued("t", q, NULL);

        ck_assert_int_eq(kp_send(l->p, &r, NULL), KP_OK);
    }
    return NULL;
}

START_TEST(an_event_loop_misses_nothing)
{
    enum { THREADS = 4, EACH = 2000 };
    struct loop l = {NULL, EACH};
    pthread_t threads[THREADS];
    kp_report reports[7];
    size_t got = 0, n;

    l.p = MAKE_PRODUCER("linger.ms", "0", "batch.size", "200", NULL);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, send_through, &l),
                         0);
    while (got < THREADS * EACH) {
        ck_assert_msg(readable(q, SOON_MS), "a wake-up was lost after %zu",
                      got);
        /* One poll for each event, as a loop does. */
        n = kp_cq_poll(q, reports, 7, 0);
        got += n;
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    ck_assert_uint_eq(got, THREADS * EACH);
    ASSERT_OK(kp_producer_destroy(l.p));
}
END_TEST

/* -- waking up -- */

static void *wake_later(void *arg)
{
    pause_ms(100);
    kp_cq_wakeup(arg);
    return NULL;
}

START_TEST(a_wakeup_ends_one_poll)
{
    pthread_t thread;
    kp_report report;

    ck_assert_int_eq(pthread_create(&thread, NULL, wake_later, q), 0);
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, KP_FOREVER), 0);
    (void)pthread_join(thread, NULL);
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, 50), 0);
    /* Kept until somebody polls. */
    kp_cq_wakeup(q);
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, KP_FOREVER), 0);
    (void)kp_cq_fd(q);
    kp_cq_wakeup(q);
    ck_assert(readable(q, SOON_MS));
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, KP_FOREVER), 0);
    ck_assert(!readable(q, 0));
}
END_TEST

/* Fill the buffer with records that nobody acknowledges. */
static int fill(kp_producer *p, const kp_record *r)
{
    int taken = 0;
    kp_err err;

    while ((err = kp_send(p, r, NULL)) == KP_OK)
        taken++;
    ASSERT_ERR(err, KP_EBUFFER);
    return taken;
}

START_TEST(a_refused_send_is_told_when_to_try_again)
{
    kp_producer *p = MAKE_PRODUCER("buffer.memory", "65536", "linger.ms", "0",
                                   "max.block.ms", "60000", NULL);
    char value[3000];
    kp_record r = queued("t", q, NULL);
    kp_report reports[64];
    int rounds = 0, sent = 0, seen = 0;

    memset(value, 'v', sizeof(value));
    r.value = (kp_bytes){value, sizeof(value)};
    learn_topic(p, "t");
    r.flags = KP_NOWAIT;
    /* The loop of an event-driven program: send until refused, then sleep. */
    while (sent < 300 || rounds < 2) {
        sent += fill(p, &r);
        ck_assert_msg(readable(q, SOON_MS), "asleep with data in hand");
        seen += (int)kp_cq_poll(q, reports, 64, 0);
        rounds++;
    }
    /* A poll may also end because there is room again. */
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    for (int i = 0; i < 10000 && seen < sent; i++)
        seen += (int)kp_cq_poll(q, reports, 64, 0);
    ck_assert_int_eq(seen, sent);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(the_retry_signal_comes_without_a_report)
{
    /* What fills the buffer reports elsewhere: this queue only hears that it
     * may try again. */
    kp_producer *p = MAKE_PRODUCER("buffer.memory", "65536", "linger.ms", "0",
                                   "max.block.ms", "60000", NULL);
    char value[3000];
    kp_record filler = record_of("t", ""), r = queued("t", q, NULL);
    kp_report report;

    memset(value, 'v', sizeof(value));
    filler.value = r.value = (kp_bytes){value, sizeof(value)};
    filler.flags = r.flags = KP_NOWAIT;
    learn_topic(p, "t");
    add_rule("api=produce process_ms=500 count=1");
    (void)fill(p, &filler);
    while (kp_send(p, &r, NULL) == KP_OK)
        ck_assert_uint_eq(kp_cq_poll(q, &report, 1, SOON_MS), 1);
    ck_assert(readable(q, SOON_MS));
    while (kp_cq_poll(q, &report, 1, 0) == 1)
        continue;
    for (int i = 0; i < 100 && kp_send(p, &r, NULL) != KP_OK; i++)
        ck_assert(readable(q, SOON_MS) && kp_cq_poll(q, &report, 1, 0) <= 1);
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, SOON_MS), 1);
    ck_assert_int_eq(report.err, KP_OK);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(an_unknown_topic_signals_the_queue_when_it_is_known)
{
    kp_producer *p = MAKE_PRODUCER("max.block.ms", "60000", NULL);
    kp_record r = queued("fresh", q, NULL);
    kp_report report;
    int tries = 0;
    kp_err err;

    r.flags = KP_NOWAIT;
    add_rule("api=metadata topic=fresh process_ms=200 count=1");
    while ((err = kp_send(p, &r, NULL)) != KP_OK) {
        ASSERT_ERR(err, KP_EMETADATA);
        ck_assert_int_lt(++tries, 50);
        ck_assert_msg(readable(q, SOON_MS), "nobody said that it is known");
        (void)kp_cq_poll(q, &report, 1, 0);
    }
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, SOON_MS), 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- several of each -- */

START_TEST(several_producers_share_a_queue)
{
    kp_producer *p[3];
    int tags[3] = {0};
    kp_report report;

    for (int i = 0; i < 3; i++)
        p[i] = MAKE_PRODUCER("linger.ms", "0", NULL);
    for (int n = 0; n < 100; n++)
        for (int i = 0; i < 3; i++) {
            kp_record r = queued("t", q, &tags[i]);

            ASSERT_OK(kp_send(p[i], &r, NULL));
        }
    for (int n = 0; n < 300; n++) {
        ck_assert_uint_eq(kp_cq_poll(q, &report, 1, SOON_MS), 1);
        ++*(int *)report.tag;
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(tags[i], 100);
        ASSERT_OK(kp_producer_destroy(p[i]));
    }
}
END_TEST

START_TEST(many_queues_share_a_batch)
{
    enum { QUEUES = 9 };
    kp_producer *p = MAKE_PRODUCER("linger.ms", "20", NULL);
    kp_cq *queues[QUEUES];
    int tags[QUEUES * 20];
    kp_report reports[40];

    for (int i = 0; i < QUEUES; i++)
        ASSERT_OK(kp_cq_create(&queues[i], &error));
    for (int i = 0; i < QUEUES * 20; i++) {
        kp_record r = queued("t", queues[i % QUEUES], &tags[i]);

        ASSERT_OK(kp_send(p, &r, NULL));
    }
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    for (int i = 0; i < QUEUES; i++) {
        size_t got = 0;

        while (got < 20) {
            size_t n = kp_cq_poll(queues[i], reports + got, 40 - got, SOON_MS);

            ck_assert_uint_gt(n, 0);
            for (size_t k = got; k < got + n; k++) {
                size_t at = k * QUEUES + (size_t)i;

                ck_assert_ptr_eq(reports[k].tag, &tags[at]);
                ck_assert_int_eq(reports[k].offset, (int64_t)at);
            }
            got += n;
        }
        ck_assert_uint_eq(kp_cq_poll(queues[i], reports, 40, 0), 0);
        kp_cq_destroy(queues[i]);
    }
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(queues_callbacks_and_futures_share_a_batch)
{
    static struct seen seen[10];
    kp_producer *p = MAKE_PRODUCER("linger.ms", "60000", NULL);
    kp_future f[10];
    kp_report reports[10];
    size_t got = 0;

    learn_topic(p, "t");
    for (int i = 0; i < 40; i++) {
        kp_record r = record_of("t", "v");

        if (i % 4 == 0)
            r.queue = q;
        if (i % 4 == 1)
            r.on_delivery = keep_report;
        r.tag = i % 4 == 1 ? (void *)&seen[i / 4] : (void *)&f[i / 4];
        ASSERT_OK(kp_send(p, &r, i % 4 == 2 ? &f[i / 4] : NULL));
    }
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    while (got < 10) {
        size_t n = kp_cq_poll(q, reports + got, 10 - got, SOON_MS);

        ck_assert_uint_gt(n, 0);
        got += n;
    }
    for (int i = 0; i < 10; i++) {
        kp_report report;

        ck_assert_int_eq(reports[i].offset, i * 4);
        ck_assert_ptr_eq(reports[i].tag, &f[i]);
        ck_assert_int_eq(seen[i].report.offset, i * 4 + 1);
        ASSERT_OK(kp_future_wait(&f[i], 0, &report));
        ck_assert_int_eq(report.offset, i * 4 + 2);
    }
    kp_future_release(f, 10);
    ck_assert_int_eq(requests_of(API_PRODUCE), 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- the end -- */

START_TEST(reports_can_be_polled_after_the_producer_is_gone)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "60000", NULL);
    kp_report reports[100];
    size_t got = 0;

    learn_topic(p, "t");
    for (int i = 0; i < 100; i++) {
        kp_record r = queued("t", q, NULL);

        ASSERT_OK(kp_send(p, &r, NULL));
    }
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    for (int i = 0; i < 7; i++) {
        kp_record r = queued("t", q, NULL);

        ASSERT_OK(kp_send(p, &r, NULL));
    }
    ASSERT_OK(kp_producer_destroy(p)); /* the last seven fail */
    ck_assert(readable(q, 0));
    while (got < 100) {
        size_t n = kp_cq_poll(q, reports, 7, 0);

        ck_assert_uint_gt(n, 0);
        for (size_t i = 0; i < n && got < 100; i++, got++) {
            ck_assert_int_eq(reports[i].offset, (int64_t)got);
            ck_assert_str_eq(reports[i].topic, "t");
        }
    }
}
END_TEST

START_TEST(a_queue_may_go_before_its_producer)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "60000", NULL);
    kp_cq *gone;

    learn_topic(p, "t");
    ASSERT_OK(kp_cq_create(&gone, &error));
    for (int i = 0; i < 500; i++) {
        kp_record r = queued("t", i % 2 == 0 ? gone : q, NULL);

        ASSERT_OK(kp_send(p, &r, NULL));
    }
    kp_cq_destroy(gone);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ck_assert_uint_eq(stored_count("t", 0), 500);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_queue_may_go_with_reports_in_it)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_cq *gone;
    kp_report report;

    ASSERT_OK(kp_cq_create(&gone, &error));
    for (int i = 0; i < 50; i++) {
        kp_record r = queued("t", gone, NULL);

        ASSERT_OK(kp_send(p, &r, NULL));
    }
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ck_assert_uint_eq(kp_cq_poll(gone, &report, 1, SOON_MS), 1);
    kp_cq_destroy(gone);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

struct memory {
    double available;
};

static void look_at_memory(void *arg, const kp_metric *m)
{
    struct memory *found = arg;

    if (strcmp(m->name, "buffer-available-bytes") == 0)
        found->available = m->value;
}

static double available(kp_producer *p)
{
    struct memory found = {-1};

    kp_metrics(p, look_at_memory, &found);
    return found.available;
}

START_TEST(reports_not_polled_count_as_memory)
{
    kp_producer *p = MAKE_PRODUCER("buffer.memory", "262144", "linger.ms", "0",
                                   "max.block.ms", "300", NULL);
    double all = available(p), after;
    kp_record r = queued("t", q, NULL);
    kp_report reports[64];
    int sent = 0, tries = 0;
    kp_err err;

    learn_topic(p, "t");
    do { /* a broker that is late may be what the first ones wait for */
        while (sent < 100000 && (err = kp_send(p, &r, NULL)) == KP_OK)
            sent++;
        ASSERT_ERR(err, KP_EBUFFER);
        /* everything is delivered, nothing polled */
        ASSERT_OK(kp_flush(p, SOON_MS, &error));
        ck_assert_uint_eq(stored_count("t", 0), (size_t)sent);
        after = available(p);
    } while (after >= 0.7 * all && ++tries < 20);
    ck_assert_msg(after < 0.7 * all, "%f of %f after %d", after, all, sent);
    for (int seen = 0; seen < sent;) {
        size_t n = kp_cq_poll(q, reports, 64, SOON_MS);

        ck_assert_uint_gt(n, 0);
        seen += (int)n;
    }
    (void)kp_cq_poll(q, reports, 64, 0);
    ck_assert(available(p) == all);
    ASSERT_OK(kp_send(p, &r, NULL));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- loops that sleep on nothing else -- */

#define LOOP_TOPICS 12

struct event_loop {
    kp_producer *p;
    int number;
    int slept; /* once in vain: nobody told it */
};

/* Send with KP_NOWAIT until all of it is taken and reported; sleep on the
 * descriptor alone.  False: nothing came. */
static bool send_all(const struct event_loop *l, kp_cq *queue, kp_record *r,
                     int count)
{
    kp_report reports[16];
    int sent = 0, ended = 0;
    size_t n;

    while (ended < count) {
        while (sent < count) {
            kp_err err = kp_send(l->p, r, NULL);

            if (err == KP_EBUFFER || err == KP_EMETADATA)
                break;
            ck_assert_int_eq(err, KP_OK);
            sent++;
        }
        if (!readable(queue, SOON_MS))
            return false;
        while ((n = kp_cq_poll(queue, reports, 16, 0)) > 0)
            ended += (int)n;
    }
    return true;
}

static void let_grow(const char *topic, int32_t partitions)
{
    struct kb_cluster *c = kp_broker_lock(broker);

    (void)kb_topic_grow(c, topic, partitions, kb_now_ns(c));
    kp_broker_unlock(broker);
}

static void *run_loop(void *arg)
{
    struct event_loop *l = arg;
    static const char value[3000] = "v";
    kp_cq *queue;
    kp_record r;
    char name[32];

    ck_assert_int_eq(kp_cq_create(&queue, NULL), KP_OK);
    for (int i = 0; i < LOOP_TOPICS && l->slept == 0; i++) {
        (void)snprintf(name, sizeof(name), "loop-%d", i);
        r = queued(name, queue, NULL);
        r.flags = KP_NOWAIT;
        r.value = (kp_bytes){value, sizeof(value)};
        if (!send_all(l, queue, &r, 30))
            l->slept++;
        /* partitions come one by one, by whichever loop is first */
        r.flags |= KP_HAS_PARTITION;
        r.partition = 1 + i % 3;
        let_grow(name, r.partition + 1);
        if (!send_all(l, queue, &r, 10))
            l->slept++;
    }
    kp_cq_destroy(queue);
    return NULL;
}

/* Topics that are made by the asking, partitions that appear, and a buffer that
 * is always full: every refusal is followed by a signal, however the threads
 * meet. */
START_TEST(no_loop_is_forgotten)
{
    enum { COUNT = 4 };
    kp_producer *p = MAKE_PRODUCER("buffer.memory", "65536", "linger.ms", "2",
                                   "max.block.ms", "60000", NULL);
    struct event_loop l[COUNT];
    pthread_t thread[COUNT];

    for (int i = 0; i < COUNT; i++) {
        l[i] = (struct event_loop){.p = p, .number = i};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_loop, &l[i]), 0);
    }
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < COUNT; i++)
        ck_assert_msg(l[i].slept == 0, "loop %d was not told", i);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

struct first_look {
    _Atomic bool polls;
    int fd;
};

static void *ask_for_the_fd(void *arg)
{
    struct first_look *f = arg;

    while (!atomic_load(&f->polls))
        continue;
    f->fd = kp_cq_fd(q);
    return NULL;
}

/* The descriptor may be asked for by another thread than the one that polls, and
 * is true from then on. */
START_TEST(the_fd_is_asked_for_while_another_thread_polls)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = queued("t", q, NULL);
    struct first_look f = {.fd = -1};
    pthread_t thread;
    kp_report reports[3];
    int got = 0;

    for (int i = 0; i < 200; i++)
        ASSERT_OK(kp_send(p, &r, NULL));
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_for_the_fd, &f), 0);
    while (got < 199) {
        got += (int)kp_cq_poll(q, reports, got < 197 ? 3 : 1, SOON_MS);
        atomic_store(&f.polls, true);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_ge(f.fd, 0);
    ck_assert(readable(q, SOON_MS));
    ck_assert_uint_eq(kp_cq_poll(q, reports, 3, SOON_MS), 200 - (size_t)got);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static Suite *public_queue_suite(void)
{
    Suite *s = suite_create("public queues");
    TCase *t = tcase_create("polling");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, reports_come_in_order_with_tags);
    tcase_add_test(t, a_poll_keeps_its_limit);
    tcase_add_test(t, a_failure_is_reported_to_the_queue);
    tcase_add_test(t, a_refused_send_is_not_reported_to_the_queue);
    tcase_add_test(t, a_record_may_have_a_future_besides);
    suite_add_tcase(s, t);
    t = tcase_create("the fd");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_fd_is_readable_while_there_is_a_report);
    tcase_add_test(t, an_fd_asked_for_late_is_true_at_once);
    tcase_add_test(t, an_event_loop_misses_nothing);
    tcase_add_test(t, a_wakeup_ends_one_poll);
    tcase_add_test(t, a_refused_send_is_told_when_to_try_again);
    tcase_add_test(t, the_retry_signal_comes_without_a_report);
    tcase_add_test(t, an_unknown_topic_signals_the_queue_when_it_is_known);
    tcase_add_test(t, the_fd_is_asked_for_while_another_thread_polls);
    suite_add_tcase(s, t);
    t = tcase_create("loops");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, no_loop_is_forgotten);
    suite_add_tcase(s, t);
    t = tcase_create("several");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, several_producers_share_a_queue);
    tcase_add_test(t, many_queues_share_a_batch);
    tcase_add_test(t, queues_callbacks_and_futures_share_a_batch);
    suite_add_tcase(s, t);
    t = tcase_create("the end");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, reports_can_be_polled_after_the_producer_is_gone);
    tcase_add_test(t, a_queue_may_go_before_its_producer);
    tcase_add_test(t, a_queue_may_go_with_reports_in_it);
    tcase_add_test(t, reports_not_polled_count_as_memory);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_queue_suite)
