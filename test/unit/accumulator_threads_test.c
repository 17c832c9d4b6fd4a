/* SPDX-License-Identifier: BSD-2-Clause */
/* accumulator_threads_test.c - real senders against a drain loop that stands in
 * for the I/O thread: every record arrives exactly once and in order, whatever
 * the pool, the codec and the time-outs do. */
#include <pthread.h>
#include <stdio.h>

#include "test/support/main.h"
#include "test/unit/accumulator_fixture.h"

#define SENDERS_MAX 8

struct sent { /* the value of a record */
    uint32_t sender, number;
    uint8_t padding[88];
};

static struct {
    int32_t partitions;
    uint32_t senders, records; /* of each */
    bool keyed;                /* else unkeyed */
    bool futures;
    uint32_t impatient;    /* give up each n-th wait at once; 0: never */
    uint32_t expire_every; /* the drain loop fails the queue; 0: never */
} plan;

static struct {
    pthread_t senders[SENDERS_MAX];
    _Atomic uint32_t done;
    _Atomic uint32_t refused[SENDERS_MAX];
    /* the drain loop's */
    uint32_t seen[SENDERS_MAX];
    int64_t last[SENDERS_MAX][16]; /* number last seen in a partition */
    uint32_t failed;               /* records of batches that were expired */
    const char *broken;
} run;

static kp_err send_one(struct append *x, uint32_t *waits)
{
    kp_err err;

    while ((err = kp__append_try(&f.acc, x)) == KP_PENDING) {
        if (plan.impatient != 0 && ++*waits % plan.impatient == 0)
            return kp__append_give_up(&f.acc, x);
        (void)kp__ticket_wait(&x->ticket);
    }
    return err;
}

static void *sender(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg, waits = 0, refused = 0;
    struct sent value = {.sender = me};

    for (uint32_t i = 0; i < plan.records; i++) {
        kp_record r = record_of(&value, sizeof(value));
        struct append x;
        kp_err err;

        value.number = i;
        memset(value.padding, (int)(me + i), sizeof(value.padding));
        append_init(&x, &r, plan.keyed ? (int32_t)(i % 2) : -1);
        x.want_future = plan.futures;
        err = send_one(&x, &waits);
        if (err == KP_EBUFFER)
            refused++;
        else if (err != KP_OK)
            return "an append failed";
        else if (plan.futures)
            kp__result_unref(x.result, 1);
    }
    atomic_store(&run.refused[me], refused);
    atomic_fetch_add(&run.done, 1);
    return NULL;
}

static void check_sent(void *arg, uint32_t index, const struct record_view *v)
{
    int32_t partition = *(int32_t *)arg;
    struct sent value;

    (void)index;
    if (v->value_size != sizeof(value)) {
        run.broken = "a value has another size";
        return;
    }
    memcpy(&value, v->value, sizeof(value));
    for (size_t i = 0; i < sizeof(value.padding); i++)
        if (value.padding[i] != (uint8_t)(value.sender + value.number))
            run.broken = "a value was damaged";
    if (value.sender >= plan.senders || value.number >= plan.records) {
        run.broken = "a record that nobody sent";
        return;
    }
    if (run.last[value.sender][partition] >= (int64_t)value.number)
        run.broken = "out of order, or twice";
    run.last[value.sender][partition] = value.number;
    run.seen[value.sender]++;
}

static void deliver(struct batch *b)
{
    int32_t partition = b->queue->partition;

    (void)each_record(b, check_sent, &partition);
    fixture_complete(b, KP_OK);
}

static void expire(struct partition_queue *q)
{
    struct list out;
    struct list_node *n;

    kp__list_init(&out);
    kp__queue_expire(q, KP_NEVER, &out);
    while ((n = kp__list_pop_front(&out)) != NULL) {
        struct batch *b = KP_CONTAINER(n, struct batch, link);

        run.failed += b->record_count;
        fixture_complete(b, KP_ETIMEDOUT);
    }
}

static bool drain_queue(struct partition_queue *q, bool seal)
{
    bool progress = false;
    struct batch *b;

    if (seal || kp__pool_pressure(f.pool, NULL))
        (void)kp__queue_seal(q, false, false);
    if (kp__queue_claim(q, false, &b) == QUEUE_OK)
        kp__compress_and_finish(&f.acc, b, kp__compressors_own(&f.compressors));
    while (kp__queue_take(q, false, &b) == QUEUE_OK) {
        deliver(b);
        progress = true;
    }
    return progress;
}

static void drain_until_done(void)
{
    const struct topic_view *v = kp__topic_view(f.topic);
    uint32_t rounds = 0;

    for (;;) {
        bool all = atomic_load(&run.done) == plan.senders;
        bool progress = false;
        struct partition_queue *q = kp__drain_take(&f.acc);

        while (q != NULL) {
            struct partition_queue *next = atomic_load(&q->drain_next);

            kp__drain_unlist(q);
            q = next;
        }
        for (int32_t i = 0; i < v->count; i++) {
            progress |= drain_queue(v->queues[i], all);
            if (plan.expire_every != 0 && ++rounds % plan.expire_every == 0)
                expire(v->queues[i]);
        }
        if (all && !progress)
            break;
        if (!progress)
            sched_yield();
    }
}

static void run_senders(void)
{
    uint32_t seen = 0, refused = 0;

    memset(&run, 0, sizeof(run));
    memset(run.last, 0xff, sizeof(run.last));
    for (uint32_t i = 0; i < plan.senders; i++)
        ck_assert_int_eq(
            pthread_create(&run.senders[i], NULL, sender, (void *)(uintptr_t)i),
            0);
    drain_until_done();
    for (uint32_t i = 0; i < plan.senders; i++) {
        void *failure;

        pthread_join(run.senders[i], &failure);
        ck_assert_msg(failure == NULL, "%s", (const char *)failure);
        seen += run.seen[i];
        refused += atomic_load(&run.refused[i]);
    }
    ck_assert_msg(run.broken == NULL, "%s", run.broken);
    ck_assert_uint_eq(seen + run.failed + refused, plan.senders * plan.records);
    if (plan.impatient == 0)
        ck_assert_uint_eq(refused, 0);
    if (plan.expire_every == 0)
        ck_assert_uint_eq(run.failed, 0);
    else
        ck_assert_uint_gt(run.failed, 0);
    ck_assert_uint_gt(seen, 0);
}

static void set_up(void)
{
    fixture_defaults();
    memset(&plan, 0, sizeof(plan));
    plan.partitions = 2;
    plan.senders = 5;
    plan.records = 10000;
    plan.keyed = true;
}

static void go(void)
{
    fixture_start(plan.partitions);
    run_senders();
    fixture_stop();
}

/* A13. */
START_TEST(five_senders_and_a_tiny_pool)
{
    f.settings.buffer_memory = 10 * 1024;
    f.settings.batch_size = 1024;
    go();
}
END_TEST

START_TEST(five_senders_with_futures_and_a_small_pool)
{
    plan.futures = true;
    f.settings.buffer_memory = 6 * CHUNK_SIZE;
    go();
}
END_TEST

/* No two of them stand in each other's way, and none loses its order. */
START_TEST(unkeyed_senders_spread_over_partitions)
{
    plan.keyed = false;
    plan.partitions = 8;
    plan.senders = 8;
    f.settings.buffer_memory = 64 * CHUNK_SIZE;
    go();
}
END_TEST

START_TEST(waits_that_are_given_up_lose_nothing)
{
    plan.impatient = 3;
    f.settings.buffer_memory = 4 * CHUNK_SIZE;
    go();
}
END_TEST

/* Batches are completed under the hands of those who compress them. */
START_TEST(expiry_while_others_compress)
{
    plan.expire_every = 7;
    plan.futures = true;
    f.settings.buffer_memory = 16 * CHUNK_SIZE;
    f.settings.batch_size = 4096;
#ifdef HAVE_LZ4
    f.settings.codec = CODEC_LZ4;
    f.settings.codec_level = 9;
#endif
    go();
}
END_TEST

#ifdef HAVE_LZ4
START_TEST(senders_compress_what_they_fill)
{
    f.settings.codec = CODEC_LZ4;
    f.settings.codec_level = 9;
    f.settings.batch_size = 8192;
    f.settings.buffer_memory = 32 * CHUNK_SIZE;
    go();
}
END_TEST
#endif

static Suite *accumulator_threads_suite(void)
{
    Suite *s = suite_create("accumulator_threads");
    TCase *t = tcase_create("senders");

    tcase_add_checked_fixture(t, set_up, NULL);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, five_senders_and_a_tiny_pool);
    tcase_add_test(t, five_senders_with_futures_and_a_small_pool);
    tcase_add_test(t, unkeyed_senders_spread_over_partitions);
    tcase_add_test(t, waits_that_are_given_up_lose_nothing);
    tcase_add_test(t, expiry_while_others_compress);
#ifdef HAVE_LZ4
    tcase_add_test(t, senders_compress_what_they_fill);
#endif
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(accumulator_threads_suite)
