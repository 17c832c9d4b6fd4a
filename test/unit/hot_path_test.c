/* SPDX-License-Identifier: BSD-2-Clause */
/* What a send costs, counted instead of timed: locks, sleeps, wake-ups, clocks,
 * allocations, and none of these under a lock.
 *
 * The functions that the library calls for them are defined here and pass the
 * call on.  Counted is what our senders do and what the I/O thread does, each
 * for itself; the embedded broker's threads are neither.  Sanitizers define the
 * same functions, and without futexes sleeping is no call of ours: there the same
 * work is done and nothing is counted. */
#include "test/unit/public_fixture.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/mutex.h"
#include "lib/base/rand.h"
#include "test/support/main.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif
#if defined(__GLIBC__) && defined(HAVE_FUTEX) && !defined(SANITIZED)
#define COUNTS 1
#else
#define COUNTS 0
#endif

enum cost { LOCKS, CLOCKS, ALLOCATIONS, SLEEPS, WAKES, RINGS, KINDS };
static const char *const kinds[KINDS] = {"locks",  "clocks", "allocations",
                                         "sleeps", "wakes",  "rings"};
enum role { UNKNOWN, SENDER, IO, OTHER, ROLES };

static _Atomic long counts[ROLES][KINDS], under_lock[KINDS];
static _Atomic long compressions[ROLES];
static _Thread_local enum role role;

static void reset_counts(void)
{
    for (int k = 0; k < KINDS; k++) {
        for (int r = 0; r < ROLES; r++)
            atomic_store(&counts[r][k], 0);
        atomic_store(&under_lock[k], 0);
    }
    for (int r = 0; r < ROLES; r++)
        atomic_store(&compressions[r], 0);
}

static long count_of(enum role r, enum cost k)
{
    return atomic_load(&counts[r][k]);
}

#if COUNTS

static _Thread_local int locks_held;

static enum role find_role(void)
{
    char name[16] = "";

    role = OTHER; /* what is called from here is not counted */
    (void)pthread_getname_np(pthread_self(), name, sizeof(name));
    return strncmp(name, "kp-io", 5) == 0 ? IO : UNKNOWN;
}

/* A thread has its name soon after its first instruction: until then, and in
 * threads of nobody's, it is looked at again. */
static enum role my_role(void)
{
    if (role == UNKNOWN)
        role = find_role();
    return role;
}

static void note(enum cost k)
{
    enum role r = my_role();

    if (r != SENDER && r != IO)
        return;
    atomic_fetch_add_explicit(&counts[r][k], 1, memory_order_relaxed);
    if (locks_held > 0 && k != LOCKS)
        atomic_fetch_add_explicit(&under_lock[k], 1, memory_order_relaxed);
}

static void *next(const char *name)
{
    void *fn = dlsym(RTLD_NEXT, name);

    if (fn == NULL)
        abort();
    return fn;
}

#define REAL(type, name) \
    static _Atomic(type *) found_; \
    type *real = atomic_load_explicit(&found_, memory_order_relaxed); \
    if (real == NULL) { \
        void *fn_ = next(name); \
        memcpy(&real, &fn_, sizeof(real)); \
        atomic_store_explicit(&found_, real, memory_order_relaxed); \
    }

/* The rule of one lock, which debug builds ask about each lock. */
void kp__mutex_note_locked(const struct mutex *m)
{
    (void)m;
    locks_held++;
    note(LOCKS);
}

void kp__mutex_note_unlocked(const struct mutex *m)
{
    kp__mutex_check_held(m);
    locks_held--;
}

void kp__mutex_check_held(const struct mutex *m)
{
    (void)m;
    if (locks_held != 1)
        abort();
}

void kp__mutex_check_none(void)
{
    if (locks_held != 0)
        abort();
}

bool kp__mutex_seems_taken(void)
{
    return false;
}

typedef int clock_fn(clockid_t id, struct timespec *t);

int clock_gettime(clockid_t id, struct timespec *t)
{
    REAL(clock_fn, "clock_gettime")

    note(CLOCKS);
    return real(id, t);
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
    note(ALLOCATIONS);
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    note(ALLOCATIONS);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    note(ALLOCATIONS);
    return __libc_realloc(p, size);
}

/* A lock that others hold for a moment is no sleep that is waited for. */
static void note_call(long number, long operation, long seen)
{
    if (number == SYS_futex &&
        (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) {
        if (seen != MUTEX_WANTED)
            note(SLEEPS);
    } else if (number == SYS_futex) {
        note(WAKES);
    } else if (number == SYS_write) {
        note(RINGS);
    }
}

typedef long syscall_fn(long number, ...);

long syscall(long number, ...)
{
    REAL(syscall_fn, "syscall")
    long a[6];
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    note_call(number, a[1], a[2]);
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#ifdef HAVE_ZSTD
typedef size_t zstd_fn(void *c, void *out, size_t capacity, const void *in,
                       size_t size);
size_t ZSTD_compress2(void *c, void *out, size_t capacity, const void *in,
                      size_t size);

size_t ZSTD_compress2(void *c, void *out, size_t capacity, const void *in,
                      size_t size)
{
    REAL(zstd_fn, "ZSTD_compress2")

    atomic_fetch_add(&compressions[my_role()], 1);
    return real(c, out, capacity, in, size);
}
#endif

#endif

/* -- senders -- */

struct sender {
    pthread_t thread;
    kp_producer *p;
    uint32_t flags;
    int count;
    bool noise; /* values that hardly shrink */
    int taken;
    kp_err other; /* the last that was neither KP_OK nor KP_EBUFFER */
};

static void *send_all(void *arg)
{
    struct sender *s = arg;
    char value[100];
    struct rng rng;

    kp__rng_seed(&rng, 30);
    memset(value, 'v', sizeof(value));
    role = SENDER;
    for (int i = 0; i < s->count; i++) {
        kp_record r = {.topic = "t", .value = {value, sizeof(value)}};
        kp_err err;

        for (int k = 0; s->noise && k < 50; k++)
            value[k] = (char)kp__rng_next(&rng);
        r.flags = s->flags;
        err = kp_send(s->p, &r, NULL);
        s->taken += err == KP_OK ? 1 : 0;
        if (err != KP_OK && err != KP_EBUFFER)
            s->other = err;
    }
    return NULL;
}

#define SENDERS_MAX 64

/* Returns how many records were taken. */
static long run_senders(kp_producer *const *p, int producers, int threads,
                        int each, uint32_t flags, bool noise)
{
    static struct sender s[SENDERS_MAX];
    long taken = 0;

    for (int i = 0; i < threads; i++) {
        s[i] = (struct sender){.p = p[i % producers],
                               .flags = flags,
                               .count = each,
                               .noise = noise};
        ck_assert_int_eq(pthread_create(&s[i].thread, NULL, send_all, &s[i]),
                         0);
    }
    for (int i = 0; i < threads; i++)
        (void)pthread_join(s[i].thread, NULL);
    for (int i = 0; i < threads; i++) {
        ASSERT_OK(s[i].other);
        taken += s[i].taken;
    }
    return taken;
}

static void setup(void)
{
    setup_broker();
    make_topic("t", 8);
}

static size_t stored_in_all(void)
{
    size_t n = 0;

    for (int32_t i = 0; i < 8; i++)
        n += stored_count("t", i);
    return n;
}

/* At most so many hundredths of a record each. */
static void at_most(enum role r, enum cost k, long records, long hundredths)
{
    if (COUNTS)
        ck_assert_msg(count_of(r, k) * 100 <= records * hundredths,
                      "%s: %ld for %ld records", kinds[k], count_of(r, k),
                      records);
}

/* C11, C14, UR-013, UR-022: a sender takes one lock for a record and the I/O
 * thread none, but a few for a batch; it reads the clock for its stamp; nobody
 * allocates, sleeps or rings for a record. */
START_TEST(a_record_costs_one_lock)
{
    kp_producer *p =
        MAKE_PRODUCER("linger.ms", "100", "buffer.memory", "67108864", NULL);
    long n;

    learn_topic(p, "t");
    (void)run_senders(&p, 1, 4, 1000, 0, false); /* what is made once is made */
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    reset_counts();
    n = run_senders(&p, 1, 4, 50000, 0, false);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ck_assert_int_eq(n, 200000);
    at_most(SENDER, LOCKS, n, 110);
    at_most(SENDER, CLOCKS, n, 110);
    at_most(SENDER, ALLOCATIONS, n, 5);
    at_most(SENDER, SLEEPS, n, 1);
    at_most(SENDER, WAKES, n, 1);
    at_most(SENDER, RINGS, n, 2);
    at_most(IO, LOCKS, n, 20);
    at_most(IO, ALLOCATIONS, n, 10);
    ck_assert(!COUNTS || count_of(SENDER, LOCKS) >= n); /* they are counted */
    ck_assert_uint_eq(stored_in_all(), 204000);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static void count_metric(void *arg, const kp_metric *m)
{
    (void)m;
    ++*(int *)arg;
}

/* Reports of all kinds, waits of all kinds, too little memory. */
static void *do_everything(void *arg)
{
    kp_producer *p = arg;
    static struct seen seen[4][300];
    static _Atomic int threads;
    struct seen *mine = seen[atomic_fetch_add(&threads, 1) % 4];
    char value[3000];
    kp_report report;
    kp_cq *q;
    int metrics = 0;

    memset(value, 'v', sizeof(value));
    role = SENDER;
    ck_assert_int_eq(kp_cq_create(&q, NULL), KP_OK);
    for (int i = 0; i < 300; i++) {
        kp_record r = {.topic = "t", .value = {value, 100 + (size_t)i * 9}};
        kp_future f = {0};

        if (i % 3 == 0)
            r.queue = q;
        else if (i % 3 == 1)
            r.on_delivery = keep_report, r.tag = &mine[i];
        ck_assert_int_eq(kp_send(p, &r, i % 4 == 0 ? &f : NULL), KP_OK);
        if (i % 20 == 0)
            ck_assert_int_eq(kp_future_wait(&f, SOON_MS, NULL), KP_OK);
        kp_future_release(&f, 1);
        (void)kp_cq_poll(q, &report, 1, i % 7 == 0 ? 1 : 0);
        if (i % 50 == 0) {
            ck_assert_int_eq(kp_flush(p, SOON_MS, NULL), KP_OK);
            kp_metrics(p, count_metric, &metrics);
            (void)kp_status(p, "t", NULL);
        }
    }
    ck_assert_int_eq(kp_flush(p, SOON_MS, NULL), KP_OK);
    while (kp_cq_poll(q, &report, 1, 0) == 1)
        continue;
    kp_cq_destroy(q);
    return NULL;
}

static const char *const some_codecs[] = {"none", "zstd"};

/* UR-023, UR-025: no clock, allocation, sleep, wake-up or write between a lock
 * and its unlock, neither by senders nor by the I/O thread. */
START_TEST(nothing_slow_happens_under_a_lock)
{
    kp_producer *p;
    pthread_t threads[4];

    if (_i > 0 && strstr(kp_features(), some_codecs[_i]) == NULL)
        return; /* not in this build */
    p = MAKE_PRODUCER("linger.ms", "2", "buffer.memory", "200000",
                      "compression.type", some_codecs[_i], NULL);
    learn_topic(p, "t"); /* a name that is new is noted down under one */
    reset_counts();
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, do_everything, p),
                         0);
    for (int i = 0; i < 4; i++)
        (void)pthread_join(threads[i], NULL);
    ASSERT_OK(kp_close(p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_uint_eq(stored_in_all(), 1200);
    for (int k = 0; k < KINDS; k++) {
        ck_assert_msg(atomic_load(&under_lock[k]) == 0, "%s under a lock: %ld",
                      kinds[k], atomic_load(&under_lock[k]));
        ck_assert(!COUNTS ||
                  count_of(SENDER, (enum cost)k) + count_of(IO, (enum cost)k) >
                      0);
    }
}
END_TEST

/* UR-009, UR-010: 64 threads, nobody answers and memory runs out: a send that
 * must not wait never sleeps, and only memory refuses it. */
START_TEST(a_send_that_must_not_wait_never_sleeps)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", "buffer.memory", "2000000",
                                   "max.block.ms", "60000",
                                   "delivery.timeout.ms", "120000", NULL);
    long n;

    learn_topic(p, "t");
    add_rule("api=produce answer=none count=-1");
    reset_counts();
    n = run_senders(&p, 1, 64, 3000, KP_NOWAIT, false);
    /* as many as fit: 110 bytes each, and half of the room at least */
    ck_assert_int_ge(n, 2000000 / 110 / 2);
    ck_assert_int_le(n, 2000000 / 100 + 10000);
    ck_assert_int_eq(count_of(SENDER, SLEEPS), 0);
    ck_assert(!COUNTS || count_of(SENDER, LOCKS) > 0);
    ASSERT_ERR(kp_close(p, 0, &error), KP_ECLOSED);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* UR-030, Z7: the threads that fill batches compress them; the I/O thread does
 * so for what is left over. */
START_TEST(compression_is_the_senders)
{
    kp_producer *p;
    long by_senders, by_io;

    if (strstr(kp_features(), "zstd") == NULL)
        return; /* not in this build */
    /* a slow machine takes its time to fill them, and they are not to be left
     * over by that */
    p = MAKE_PRODUCER("linger.ms", "10000", "batch.size", "100000",
                      "buffer.memory", "67108864", "compression.type", "zstd",
                      NULL);
    learn_topic(p, "t");
    reset_counts();
    ck_assert_int_eq(run_senders(&p, 1, 2, 100000, 0, true), 200000);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    by_senders = atomic_load(&compressions[SENDER]);
    by_io = atomic_load(&compressions[IO]);
    ck_assert_msg(!COUNTS || by_senders >= 4 * by_io,
                  "%ld, and %ld by the "
                  "I/O thread",
                  by_senders, by_io);
    ck_assert(!COUNTS || by_senders > 10);
    ck_assert_uint_eq(stored_in_all(), 200000);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* UR-024: twelve threads with one producer between them make fewer and larger
 * batches than with one each. */
START_TEST(one_producer_serves_twelve_threads)
{
    kp_producer *p[12];
    int64_t before, shared, apart;

    for (int i = 0; i < 12; i++) {
        p[i] = MAKE_PRODUCER("linger.ms", "60000", NULL);
        learn_topic(p[i], "t");
    }
    before = requests_of(API_PRODUCE);
    ck_assert_int_eq(run_senders(p, 1, 12, 50, 0, false), 600);
    ASSERT_OK(kp_flush(p[0], SOON_MS, &error));
    shared = requests_of(API_PRODUCE) - before;
    before = requests_of(API_PRODUCE);
    ck_assert_int_eq(run_senders(p, 12, 12, 50, 0, false), 600);
    for (int i = 0; i < 12; i++)
        ASSERT_OK(kp_flush(p[i], SOON_MS, &error));
    apart = requests_of(API_PRODUCE) - before;
    /* 66 KB in batches of 16 KB, and at least one for each producer */
    ck_assert_msg(shared <= 6, "%lld requests", (long long)shared);
    ck_assert_int_ge(apart, 12);
    ck_assert_uint_eq(stored_in_all(), 1200);
    for (int i = 0; i < 12; i++)
        ASSERT_OK(kp_producer_destroy(p[i]));
}
END_TEST

static Suite *hot_path_suite(void)
{
    Suite *s = suite_create("hot_path");
    TCase *t = tcase_create("hot_path");

    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_record_costs_one_lock);
    tcase_add_loop_test(t, nothing_slow_happens_under_a_lock, 0, 2);
    tcase_add_test(t, a_send_that_must_not_wait_never_sleeps);
    tcase_add_test(t, compression_is_the_senders);
    tcase_add_test(t, one_producer_serves_twelve_threads);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(hot_path_suite)
