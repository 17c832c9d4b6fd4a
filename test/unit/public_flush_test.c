/* SPDX-License-Identifier: BSD-2-Clause */
/* kp_flush with a codec: the thread that waits does its share of the
 * compressing, whatever other threads do meanwhile. */
#include "test/unit/public_fixture.h"

#include "test/support/main.h"

#define VALUE_SIZE 8000

static int64_t ns_of(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Text that takes a codec some time, and another for each record. */
static void fill(char *value, uint32_t seed)
{
    static const char *const words[] = {"broker ",  "record ", "batch ",
                                        "leader ",  "topic ",  "offset ",
                                        "replica ", "lag "};
    uint32_t x = seed * 2654435761u + 1;
    size_t used = (size_t)snprintf(value, VALUE_SIZE, "%08x ", seed);

    while (used < VALUE_SIZE) {
        const char *word;
        size_t n;

        x = x * 1664525u + 1013904223u;
        word = words[x >> 29];
        n = strlen(word);
        if (n > VALUE_SIZE - used)
            n = VALUE_SIZE - used;
        memcpy(value + used, word, n);
        used += n;
    }
}

static void send_nowait(kp_producer *p, uint32_t seed)
{
    static _Thread_local char value[VALUE_SIZE];
    kp_record r = {.topic = "t", .flags = KP_NOWAIT};

    fill(value, seed);
    r.value = (kp_bytes){value, VALUE_SIZE};
    ASSERT_OK(kp_send(p, &r, NULL));
}

/* What the thread that waits in a flush does meanwhile. */
static struct effort {
    clockid_t clock; /* the thread's processor time */
    _Atomic int64_t from_ns;
    bool seen;
} effort;

static bool has_worked(void *arg)
{
    int64_t from_ns = atomic_load(&effort.from_ns);

    (void)arg;
    return from_ns != 0 && ns_of(effort.clock) - from_ns > 5 * 1000000;
}

static void *let_the_broker_go_on(void *arg)
{
    effort.seen = becomes_true(has_worked, NULL);
    hold_broker(false);
    return arg;
}

/* The senders may not wait and so compress nothing; the broker answers nothing,
 * so the I/O thread gets at no more batches of the partition than may be in
 * flight. */
START_TEST(it_costs_the_waiting_thread)
{
    kp_producer *p =
        MAKE_PRODUCER("compression.type", "gzip", "compression.gzip.level", "9",
                      "linger.ms", "60000", NULL);
    pthread_t thread;

    make_topic("t", 1);
    learn_topic(p, "t");
    hold_broker(true);
    for (uint32_t i = 0; i < 300; i++)
        send_nowait(p, i);
    atomic_store(&effort.from_ns, 0);
    ck_assert_int_eq(pthread_getcpuclockid(pthread_self(), &effort.clock), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, let_the_broker_go_on, NULL),
                     0);
    /* 2.4 MB by gzip -9 are tens of milliseconds and more of anyone's
     * processor; waiting alone is microseconds */
    atomic_store(&effort.from_ns, ns_of(effort.clock));
    ASSERT_OK(kp_flush(p, 2 * SOON_MS, &error));
    (void)pthread_join(thread, NULL);
    ck_assert(effort.seen);
    ck_assert_uint_eq(stored_count("t", 0), 300);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

struct worker {
    kp_producer *p;
    uint32_t from, count;
};

static void *send_and_flush(void *arg)
{
    const struct worker *w = arg;

    for (uint32_t i = 0; i < w->count; i++) {
        send_nowait(w->p, w->from + i);
        if (i % 20 == 9)
            ck_assert_int_eq(kp_flush(w->p, SOON_MS, NULL), KP_OK);
        else if (i % 20 == 19)
            (void)kp_flush(w->p, 3, NULL);
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Many threads send, seal and flush: every record is there once, and whole. */
START_TEST(many_threads_flush_at_once)
{
    enum { THREADS = 6, EACH = 60, ALL = THREADS * EACH };
    kp_producer *p = MAKE_PRODUCER("compression.type", "zstd", "linger.ms",
                                   "60000", "batch.size", "20000", NULL);
    struct worker w[THREADS];
    pthread_t thread[THREADS];
    static struct stored stored[ALL];
    static const char *values[ALL];
    static char expect[VALUE_SIZE];
    size_t n = 0;

    make_topic("t", 2);
    learn_topic(p, "t");
    for (uint32_t i = 0; i < THREADS; i++) {
        w[i] = (struct worker){p, i * EACH, EACH};
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, send_and_flush, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    for (int32_t i = 0; i < 2; i++)
        n += read_log("t", i, stored + n, ALL - n);
    ck_assert_uint_eq(n, ALL);
    for (int i = 0; i < ALL; i++) {
        ck_assert_int_eq(stored[i].value_size, VALUE_SIZE);
        values[i] = stored[i].value;
    }
    qsort(values, ALL, sizeof(values[0]), compare);
    for (uint32_t i = 0; i < ALL; i++) {
        fill(expect, i);
        ck_assert_int_eq(memcmp(values[i], expect, 255), 0);
    }
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static Suite *public_flush_suite(void)
{
    Suite *s = suite_create("public_flush");
    TCase *t = tcase_create("public_flush");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup_broker, teardown_broker);
    tcase_add_test(t, it_costs_the_waiting_thread);
    tcase_add_test(t, many_threads_flush_at_once);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_flush_suite)
