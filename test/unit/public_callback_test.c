/* SPDX-License-Identifier: BSD-2-Clause */
/* Delivery callbacks: when they run, in which order, and what each call of the
 * library does when it is made from one. */
#include "test/unit/public_fixture.h"

#include "test/support/main.h"

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
    make_topic("other", 1);
    atomic_store(&callbacks, 0);
}

static kp_producer *lazy(void)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "60000", "delivery.timeout.ms",
                                   "120000", NULL);

    learn_topic(p, "t");
    learn_topic(p, "other");
    return p;
}

static kp_record watched(const char *topic, struct seen *s)
{
    kp_record r = record_of(topic, "v");

    r.tag = s;
    r.on_delivery = keep_report;
    return r;
}

/* -- reports -- */

START_TEST(each_record_has_one_callback_in_sending_order)
{
    enum { COUNT = 500 };
    static struct seen seen[COUNT];
    kp_producer *p = MAKE_PRODUCER("linger.ms", "2", "batch.size", "300", NULL);

    for (int i = 0; i < COUNT; i++) {
        kp_record r = watched("t", &seen[i]);

        ASSERT_OK(kp_send(p, &r, NULL));
    }
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(atomic_load(&seen[i].count), 1);
        ck_assert_int_eq(seen[i].order, i);
        ck_assert_int_eq(seen[i].report.err, KP_OK);
        ck_assert_int_eq(seen[i].report.offset, i);
        ck_assert_ptr_eq(seen[i].report.tag, &seen[i]);
    }
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_int_eq(atomic_load(&callbacks), COUNT);
}
END_TEST

START_TEST(callbacks_keep_order_across_retries)
{
    static struct seen seen[40];
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", "batch.size", "1",
                                   "retry.backoff.ms", "5", NULL);

    /* Some batches are refused for a while, others go through at once. */
    add_rule("api=produce topic=t error=6 skip=2 count=1");
    add_rule("api=produce topic=t error=7 skip=5 count=2");
    for (int i = 0; i < 40; i++) {
        kp_record r = watched("t", &seen[i]);

        ASSERT_OK(kp_send(p, &r, NULL));
    }
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(seen[i].order, i);
        ck_assert_int_eq(seen[i].report.err, KP_OK);
        ck_assert_int_eq(seen[i].report.offset, i);
    }
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* The callback has run before the future is done. */
struct both {
    struct seen seen;
    _Atomic int may_end;
};

static void slow_callback(const kp_report *report)
{
    struct both *b = report->tag;

    pause_ms(50);
    b->seen.report = *report;
    atomic_store(&b->seen.count, 1);
}

START_TEST(a_future_is_done_after_its_callback)
{
    struct both b = {0};
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = record_of("t", "v");
    kp_future f;

    r.tag = &b;
    r.on_delivery = slow_callback;
    ASSERT_OK(kp_send(p, &r, &f));
    ASSERT_OK(kp_future_wait(&f, SOON_MS, NULL));
    ck_assert_int_eq(atomic_load(&b.seen.count), 1);
    kp_future_release(&f, 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(flush_waits_for_the_callback_to_return)
{
    struct both b = {0};
    kp_producer *p = lazy();
    kp_record r = record_of("t", "v");

    r.tag = &b;
    r.on_delivery = slow_callback;
    ASSERT_OK(kp_send(p, &r, NULL));
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ck_assert_int_eq(atomic_load(&b.seen.count), 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* K9, in our own way. */
START_TEST(a_refused_send_makes_no_callback)
{
    struct seen s = {0};
    kp_producer *p = lazy();
    kp_record r = watched("t", &s);

    r.partition = -1;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EPARTITION);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_int_eq(atomic_load(&s.count), 0);
}
END_TEST

START_TEST(no_callback_runs_after_close)
{
    static struct seen seen[200];
    kp_producer *p = lazy();
    int before;

    for (int i = 0; i < 200; i++) {
        kp_record r = watched("t", &seen[i]);

        ASSERT_OK(kp_send(p, &r, NULL));
    }
    ASSERT_ERR(kp_close(p, 0, &error), KP_ECLOSED);
    before = atomic_load(&callbacks);
    ck_assert_int_eq(before, 200);
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(seen[i].report.err, KP_ECLOSED);
        ck_assert_int_eq(seen[i].report.stored, KP_STORED_NO);
        ck_assert_int_eq(seen[i].order, i);
    }
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_int_eq(atomic_load(&callbacks), before);
}
END_TEST

/* -- calls from a callback -- */

struct inside {
    kp_producer *own, *other, *third;
    kp_cq *queue;
    kp_future pending, done;
    struct seen nested, nested_many[2];
    kp_report done_report;
    kp_err send, send_unknown, send_many, flush, flush_0, flush_forever, wait,
        wait_0, wait_done, wait_all, wait_all_0, partitions, partitions_0,
        status, other_close, third_close, other_destroy, destroy;
    size_t many_taken, polled;
    int32_t count;
    int metrics;
    int64_t took_ms;
    _Atomic int ran;
};

static void count_metric(void *arg, const kp_metric *metric)
{
    (void)metric;
    ++*(int *)arg;
}

static void call_senders(struct inside *in)
{
    kp_record r = watched("t", &in->nested);
    kp_record many[2] = {watched("t", &in->nested_many[0]),
                         watched("t", &in->nested_many[1])};
    kp_record unknown = record_of("unknown", "v");

    in->send = kp_send(in->own, &r, NULL);
    in->send_many = kp_send_many(in->own, many, 2, NULL, &in->many_taken);
    in->send_unknown = kp_send(in->own, &unknown, NULL);
}

static void call_waiters(struct inside *in)
{
    kp_report report;

    in->flush = kp_flush(in->own, 1000, NULL);
    in->flush_forever = kp_flush(in->own, KP_FOREVER, NULL);
    in->flush_0 = kp_flush(in->own, 0, NULL);
    in->wait = kp_future_wait(&in->pending, 1000, NULL);
    in->wait_0 = kp_future_wait(&in->pending, 0, NULL);
    in->wait_done = kp_future_wait(&in->done, 0, &in->done_report);
    in->wait_all = kp_future_wait_all(&in->pending, 1, KP_FOREVER);
    in->wait_all_0 = kp_future_wait_all(&in->pending, 1, 0);
    in->partitions =
        kp_partitions_for(in->own, "t", 1000, &in->count, NULL, NULL);
    in->partitions_0 =
        kp_partitions_for(in->own, "t", 0, &in->count, NULL, NULL);
    in->polled = kp_cq_poll(in->queue, &report, 1, KP_FOREVER);
}

static void call_everything(const kp_report *report)
{
    struct inside *in = report->tag;
    int64_t began = now_ms();

    call_senders(in);
    call_waiters(in);
    in->status = kp_status(in->own, NULL, NULL);
    kp_metrics(in->own, count_metric, &in->metrics);
    in->other_close = kp_close(in->other, 1000, NULL);
    in->third_close = kp_close(in->third, 0, NULL);
    in->destroy = kp_producer_destroy(in->own);
    in->other_destroy = kp_producer_destroy(in->other);
    kp_future_release(&in->pending, 1);
    in->took_ms = now_ms() - began;
    atomic_store(&in->ran, 1);
}

static bool has_run(void *arg)
{
    return atomic_load((_Atomic int *)arg) != 0;
}

START_TEST(calls_from_a_callback_never_wait)
{
    static struct inside in;
    kp_record first = record_of("t", "first"), slow = record_of("other", "v");

    in.own = MAKE_PRODUCER("linger.ms", "0", "max.block.ms", "60000", NULL);
    in.other = lazy();
    in.third = lazy();
    learn_topic(in.own, "t");
    ASSERT_OK(kp_cq_create(&in.queue, &error));
    ASSERT_OK(kp_send(in.own, &first, &in.done));
    ASSERT_OK(kp_future_wait(&in.done, SOON_MS, NULL));
    ASSERT_OK(kp_send(in.other, &slow, &in.pending));
    first.tag = &in;
    first.on_delivery = call_everything;
    ASSERT_OK(kp_send(in.own, &first, NULL));
    ck_assert(becomes_true(has_run, &in.ran));

    ck_assert_int_lt(in.took_ms, 5000);
    ASSERT_OK(in.send);
    ASSERT_OK(in.send_many);
    ck_assert_uint_eq(in.many_taken, 2);
    ASSERT_ERR(in.send_unknown, KP_EMETADATA);
    ASSERT_ERR(in.flush, KP_EDEADLK);
    ASSERT_ERR(in.flush_forever, KP_EDEADLK);
    ASSERT_ERR(in.flush_0, KP_PENDING);
    ASSERT_ERR(in.wait, KP_EDEADLK);
    ASSERT_ERR(in.wait_0, KP_PENDING);
    ASSERT_OK(in.wait_done);
    ck_assert_int_eq(in.done_report.offset, 0);
    ASSERT_ERR(in.wait_all, KP_EDEADLK);
    ASSERT_ERR(in.wait_all_0, KP_PENDING);
    ASSERT_ERR(in.partitions, KP_EDEADLK);
    ASSERT_OK(in.partitions_0);
    ck_assert_int_eq(in.count, 1);
    ck_assert_uint_eq(in.polled, 0);
    ck_assert_int_gt(in.metrics, 50);
    ASSERT_ERR(in.other_close, KP_EDEADLK);
    ASSERT_ERR(in.third_close, KP_PENDING);
    ASSERT_ERR(kp_status(in.third, NULL, &error), KP_ECLOSED);
    ASSERT_ERR(in.destroy, KP_EDEADLK);
    ASSERT_ERR(in.other_destroy, KP_EDEADLK);

    await_seen(&in.nested);
    await_seen(&in.nested_many[1]);
    ck_assert_int_eq(in.nested.report.offset, 2);
    ck_assert_int_eq(in.nested_many[1].report.offset, 4);
    kp_future_release(&in.done, 1);
    /* Nothing was done to the other producer. */
    ASSERT_OK(kp_close(in.other, KP_FOREVER, &error));
    ck_assert_uint_eq(stored_count("other", 0), 1);
    ASSERT_OK(kp_producer_destroy(in.other));
    ASSERT_OK(kp_producer_destroy(in.third));
    ASSERT_OK(kp_producer_destroy(in.own));
    kp_cq_destroy(in.queue);
}
END_TEST

struct own_result {
    kp_future future;
    kp_err err, wait;
    kp_report report;
    _Atomic int ran, ready;
};

static void look_at_own_future(const kp_report *report)
{
    struct own_result *o = report->tag;

    while (atomic_load(&o->ready) == 0)
        pause_ms(1); /* kp_send has not given it to its caller yet */
    o->err = kp_future_wait(&o->future, 0, &o->report);
    o->wait = kp_future_wait(&o->future, 1000, NULL);
    atomic_store(&o->ran, 1);
}

START_TEST(a_callback_sees_that_its_own_future_is_done)
{
    static struct own_result o;
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = record_of("t", "v");

    learn_topic(p, "t");
    r.tag = &o;
    r.on_delivery = look_at_own_future;
    ASSERT_OK(kp_send(p, &r, &o.future));
    atomic_store(&o.ready, 1);
    ck_assert(becomes_true(has_run, &o.ran));
    ASSERT_OK(o.err);
    ck_assert_int_eq(o.report.offset, 0);
    ASSERT_ERR(o.wait, KP_EDEADLK);
    kp_future_release(&o.future, 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static void release_own_future(const kp_report *report)
{
    struct own_result *o = report->tag;

    while (atomic_load(&o->ready) == 0)
        pause_ms(1);
    o->err = report->err;
    kp_future_release(&o->future, 1);
    atomic_store(&o->ran, 1);
}

/* J09: its own, before anybody could wait for it. */
START_TEST(a_callback_may_release_its_own_future)
{
    static struct own_result o;
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = record_of("t", "v");

    learn_topic(p, "t");
    for (int i = 0; i < 100; i++) {
        atomic_store(&o.ran, 0);
        atomic_store(&o.ready, 0);
        o.err = KP_PENDING;
        r.tag = &o;
        r.on_delivery = release_own_future;
        ASSERT_OK(kp_send(p, &r, &o.future));
        atomic_store(&o.ready, 1);
        ck_assert(becomes_true(has_run, &o.ran));
        ASSERT_OK(o.err);
        ASSERT_ERR(kp_future_wait(&o.future, 0, NULL), KP_EINVAL);
    }
    ASSERT_OK(kp_close(p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_uint_eq(stored_count("t", 0), 100);
}
END_TEST

struct gate {
    struct seen seen;
    _Atomic int inside, may_go;
};

static void wait_at_the_gate(const kp_report *report)
{
    struct gate *g = report->tag;

    atomic_store(&g->inside, 1);
    while (atomic_load(&g->may_go) == 0)
        pause_ms(1);
    g->seen.report = *report;
    (void)atomic_fetch_add(&g->seen.count, 1);
}

/* O18: a callback that blocks for longer than records may take.  The I/O thread
 * stands, and nobody else does; what was sent meanwhile has one report each when
 * it goes on, and that is true. */
START_TEST(a_callback_that_blocks_holds_up_reports_alone)
{
    static struct gate g;
    static struct seen seen[50];
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", "delivery.timeout.ms",
                                   "300", "request.timeout.ms", "200", NULL);
    kp_record r = record_of("t", "v");
    size_t delivered = 0;
    int metrics = 0;
    int64_t began;

    learn_topic(p, "t");
    r.tag = &g;
    r.on_delivery = wait_at_the_gate;
    ASSERT_OK(kp_send(p, &r, NULL));
    ck_assert(becomes_true(has_run, &g.inside));
    began = now_ms();
    for (int i = 0; i < 50; i++) {
        kp_record more = watched("t", &seen[i]);

        ASSERT_OK(kp_send(p, &more, NULL));
    }
    ASSERT_ERR(kp_flush(p, 600, NULL), KP_PENDING);
    (void)kp_status(p, NULL, NULL);
    kp_metrics(p, count_metric, &metrics);
    ck_assert_int_gt(metrics, 50);
    ck_assert_int_lt(now_ms() - began, SOON_MS / 2);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(atomic_load(&seen[i].count), 0);
    atomic_store(&g.may_go, 1);
    for (int i = 0; i < 50; i++) {
        await_seen(&seen[i]);
        if (seen[i].report.err == KP_OK)
            delivered++;
        else
            ASSERT_ERR(seen[i].report.err, KP_ETIMEDOUT);
        ck_assert_int_eq(seen[i].report.stored == KP_STORED_YES,
                         seen[i].report.err == KP_OK);
    }
    ASSERT_OK(kp_flush(p, SOON_MS, NULL));
    delivered += g.seen.report.err == KP_OK ? 1 : 0;
    ck_assert_uint_ge(stored_count("t", 0), delivered);
    ASSERT_OK(kp_close(p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(p));
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(atomic_load(&seen[i].count), 1);
    ck_assert_int_eq(atomic_load(&g.seen.count), 1);
}
END_TEST

struct closing {
    kp_producer *p;
    kp_err close, again, send;
    _Atomic int inside, ran, may_go;
};

static void close_inside(const kp_report *report)
{
    struct closing *c = report->tag;
    kp_record r = record_of("t", "v");

    atomic_store(&c->inside, 1);
    while (atomic_load(&c->may_go) == 0)
        pause_ms(1);
    c->close = kp_close(c->p, KP_FOREVER, NULL);
    c->again = kp_close(c->p, 0, NULL);
    c->send = kp_send(c->p, &r, NULL);
    atomic_store(&c->ran, 1);
}

START_TEST(a_close_from_a_callback_starts_one)
{
    static struct closing c;
    static struct seen left[50];
    kp_record r = record_of("t", "v");

    c.p = lazy();
    r.tag = &c;
    r.on_delivery = close_inside;
    ASSERT_OK(kp_send(c.p, &r, NULL));
    ASSERT_ERR(kp_flush(c.p, 20, &error), KP_PENDING); /* it is kept inside */
    ck_assert(becomes_true(has_run, &c.inside));
    for (int i = 0; i < 50; i++) {
        kp_record more = watched("other", &left[i]);

        ASSERT_OK(kp_send(c.p, &more, NULL));
    }
    atomic_store(&c.may_go, 1);
    ck_assert(becomes_true(has_run, &c.ran));
    ASSERT_ERR(c.close, KP_PENDING);
    ASSERT_ERR(c.again, KP_PENDING);
    ASSERT_ERR(c.send, KP_ECLOSED);
    /* The I/O thread goes on to its end by itself. */
    for (int i = 0; i < 50; i++)
        await_seen(&left[i]);
    ASSERT_ERR(kp_close(c.p, KP_FOREVER, &error), KP_ECLOSED);
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(atomic_load(&left[i].count), 1);
        ck_assert_int_eq(left[i].report.err, KP_ECLOSED);
        ck_assert_int_eq(left[i].report.stored, KP_STORED_NO);
    }
    ASSERT_OK(kp_producer_destroy(c.p));
    ck_assert_uint_eq(stored_count("other", 0), 0);
}
END_TEST

struct chain {
    kp_producer *p;
    _Atomic int left;
};

static void send_next(const kp_report *report)
{
    struct chain *c = report->tag;
    kp_record r = record_of("t", "v");

    ck_assert_int_eq(report->err, KP_OK);
    if (atomic_fetch_sub(&c->left, 1) <= 1)
        return;
    r.tag = c;
    r.on_delivery = send_next;
    ck_assert_int_eq(kp_send(c->p, &r, NULL), KP_OK);
}

static bool chain_is_over(void *arg)
{
    return atomic_load(&((struct chain *)arg)->left) <= 0;
}

START_TEST(a_callback_may_send_the_next_record)
{
    struct chain c = {.left = 200};
    kp_record r = record_of("t", "v");

    c.p = MAKE_PRODUCER("linger.ms", "0", NULL);
    r.tag = &c;
    r.on_delivery = send_next;
    ASSERT_OK(kp_send(c.p, &r, NULL));
    ck_assert(becomes_true(chain_is_over, &c));
    ck_assert_uint_eq(stored_count("t", 0), 200);
    ASSERT_OK(kp_producer_destroy(c.p));
}
END_TEST

/* A callback that fills the buffer is told so and does not wait. */
struct filler {
    kp_producer *p;
    char value[4000];
    kp_err err;
    int taken;
    int64_t took_ms;
    _Atomic int ran;
};

static void fill_buffer(const kp_report *report)
{
    struct filler *f = report->tag;
    kp_record r = record_of("other", "v");
    int64_t began = now_ms();

    r.value = (kp_bytes){f->value, sizeof(f->value)};
    while ((f->err = kp_send(f->p, &r, NULL)) == KP_OK)
        f->taken++;
    f->took_ms = now_ms() - began;
    atomic_store(&f->ran, 1);
}

START_TEST(a_callback_never_waits_for_memory)
{
    static struct filler f;
    kp_record r = record_of("t", "v");

    f.p = MAKE_PRODUCER("linger.ms", "0", "buffer.memory", "100000",
                        "max.block.ms", "60000", "compression.type", "gzip",
                        NULL);
    learn_topic(f.p, "t");
    learn_topic(f.p, "other");
    r.tag = &f;
    r.on_delivery = fill_buffer;
    ASSERT_OK(kp_send(f.p, &r, NULL));
    ck_assert(becomes_true(has_run, &f.ran));
    ASSERT_ERR(f.err, KP_EBUFFER);
    ck_assert_int_gt(f.taken, 5);
    ck_assert_int_lt(f.took_ms, 10000);
    ASSERT_OK(kp_flush(f.p, SOON_MS, &error));
    ck_assert_uint_eq(stored_count("other", 0), (size_t)f.taken);
    ASSERT_OK(kp_producer_destroy(f.p));
}
END_TEST

static Suite *public_callback_suite(void)
{
    Suite *s = suite_create("public callbacks");
    TCase *t = tcase_create("reports");

    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, each_record_has_one_callback_in_sending_order);
    tcase_add_test(t, callbacks_keep_order_across_retries);
    tcase_add_test(t, a_future_is_done_after_its_callback);
    tcase_add_test(t, flush_waits_for_the_callback_to_return);
    tcase_add_test(t, a_refused_send_makes_no_callback);
    tcase_add_test(t, no_callback_runs_after_close);
    suite_add_tcase(s, t);
    t = tcase_create("calls inside");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, calls_from_a_callback_never_wait);
    tcase_add_test(t, a_callback_sees_that_its_own_future_is_done);
    tcase_add_test(t, a_callback_may_release_its_own_future);
    tcase_add_test(t, a_callback_that_blocks_holds_up_reports_alone);
    tcase_add_test(t, a_close_from_a_callback_starts_one);
    tcase_add_test(t, a_callback_may_send_the_next_record);
    tcase_add_test(t, a_callback_never_waits_for_memory);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_callback_suite)
