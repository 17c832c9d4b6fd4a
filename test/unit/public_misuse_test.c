/* SPDX-License-Identifier: BSD-2-Clause */
/* What a careless program does: sizes of -1, calls from where they must not
 * be made, two pollers, settings at both ends of their ranges.  Each wrong use
 * that can be seen has an error, and none costs a report, a crash or a hang. */
#include <errno.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/unit/public_fixture.h"

#include "test/support/main.h"

/* Memory that nobody has is refused, by a sanitizer's allocator as by others. */
KP_API const char *__asan_default_options(void);
KP_API const char *__tsan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
}

/* -- sizes that cannot be -- */

/* `size` bytes, and behind them a page that cannot be read. */
static void *at_the_edge(const void *bytes, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(two, MAP_FAILED);
    ck_assert_int_eq(mprotect(two + page, page, PROT_NONE), 0);
    return memcpy(two + page - size, bytes, size);
}

/* Micro- and nanoseconds of now.  The record is sent as it is: its broker knows
 * what it takes; this one does not. */
START_TEST(stamps_that_are_no_milliseconds_are_logged)
{
    static const int64_t by[] = {1000, 1000000};
    kp_config *c = make_config(kp_broker_bootstrap(broker), NULL);
    kp_record r = record_of("t", "v");
    kp_producer *p;

    lines.count = 0;
    kp_config_on_log(c, KP_LOG_WARN, keep_line, &lines);
    p = start_producer(c);
    learn_topic(p, "t");
    r.flags = KP_HAS_TIMESTAMP;
    r.timestamp_ms = wall_ms();
    ASSERT_OK(deliver(p, &r, NULL));
    ck_assert_int_eq(lines.count, 0);
    r.timestamp_ms *= by[_i];
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(deliver(p, &r, NULL), KP_INVALID_TIMESTAMP);
    ck_assert_int_eq(lines_with("send", "not micro- or nanoseconds"), 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static const size_t wild[] = {SIZE_MAX, SIZE_MAX / 2, (size_t)INT32_MAX + 1,
                              INT32_MAX, 1 << 26};
#define WILD ((int)(sizeof(wild) / sizeof(wild[0])))

START_TEST(no_size_is_read_by_that_cannot_be)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), NULL);
    const kp_header header = {{"k", 1}, {"v", 1}};
    kp_record good = record_of("t", "v"), r;
    kp_header long_key = header, long_value = header;
    kp_producer *p;

    kp_config_on_log(c, KP_LOG_DEBUG, keep_line, &lines);
    p = start_producer(c);
    learn_topic(p, "t");
    r = good;
    r.topic = at_the_edge("t", 2);
    r.topic_size = wild[_i];
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOPIC);
    ASSERT_ERR(kp_send_many(p, &r, 1, NULL, NULL), KP_ETOPIC);
    r = good;
    r.key = (kp_bytes){at_the_edge("k", 1), wild[_i]};
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    r = good;
    r.value = (kp_bytes){at_the_edge("v", 1), wild[_i]};
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    r = good;
    r.headers = at_the_edge(&header, sizeof(header));
    r.header_count = wild[_i];
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    long_key.key.size = wild[_i];
    r.headers = &long_key;
    r.header_count = 1;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    long_value.value.size = wild[_i];
    r.headers = &long_value;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    ASSERT_OK(deliver(p, &good, NULL));
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_uint_eq(stored_count("t", 0), 1);
}
END_TEST

START_TEST(an_empty_log_line_is_shown)
{
    const kp_log empty = {0};

    kp_log_stderr(NULL, &empty);
    kp_log_stderr(NULL, NULL);
}
END_TEST

/* -- timeouts at both ends -- */

START_TEST(timeouts_at_both_ends)
{
    kp_producer *p = MAKE_PRODUCER(NULL);
    kp_record r = record_of("t", "v");
    kp_report report;
    kp_future f;
    kp_cq *q;

    ASSERT_OK(kp_cq_create(&q, &error));
    ASSERT_OK(kp_partitions_for(p, "t", INT64_MAX, NULL, NULL, NULL));
    ASSERT_ERR(kp_partitions_for(p, "t", INT64_MIN, NULL, NULL, NULL),
               KP_EINVAL);
    ASSERT_OK(kp_send(p, &r, &f));
    ASSERT_OK(kp_future_wait(&f, INT64_MAX, &report));
    ASSERT_OK(kp_future_wait_all(&f, 1, INT64_MAX));
    ASSERT_ERR(kp_future_wait(&f, INT64_MIN, &report), KP_EINVAL);
    ASSERT_ERR(kp_future_wait_all(&f, 1, INT64_MIN), KP_EINVAL);
    kp_future_release(&f, 1);
    r.max_wait_ms = UINT32_MAX;
    r.queue = q;
    ASSERT_OK(kp_send(p, &r, NULL));
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, INT64_MIN), 0);
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, INT64_MAX), 1);
    ASSERT_ERR(kp_flush(p, INT64_MIN, &error), KP_EINVAL);
    ASSERT_OK(kp_flush(p, INT64_MAX, &error));
    ASSERT_ERR(kp_close(p, INT64_MIN, &error), KP_EINVAL);
    ASSERT_OK(kp_close(p, INT64_MAX, &error));
    ASSERT_OK(kp_close(p, INT64_MAX, &error));
    ASSERT_OK(kp_producer_destroy(p));
    kp_cq_destroy(q);
}
END_TEST

/* -- a log function that calls us, though it must not -- */

static struct caller {
    _Atomic(kp_producer *) producer;
    pthread_t main;
    kp_future future;
    kp_err destroy, flush, wait, partitions, send, close;
    _Atomic int done;
} caller;

static void call_all(void *arg, const kp_log *line)
{
    kp_producer *p = atomic_load(&caller.producer);
    kp_record r = record_of("t", "from a log function");
    int never = 0;

    (void)arg;
    (void)line;
    if (p == NULL || pthread_equal(pthread_self(), caller.main) ||
        !atomic_compare_exchange_strong(&caller.done, &never, 1))
        return;
    caller.destroy = kp_producer_destroy(p);
    caller.flush = kp_flush(p, KP_FOREVER, NULL);
    caller.wait = kp_future_wait(&caller.future, KP_FOREVER, NULL);
    caller.partitions =
        kp_partitions_for(p, "nowhere", KP_FOREVER, NULL, NULL, NULL);
    caller.send = kp_send(p, &r, NULL);
    caller.close = kp_close(p, KP_FOREVER, NULL);
    atomic_store(&caller.done, 2);
}

static bool has_called(void *arg)
{
    (void)arg;
    return atomic_load(&caller.done) == 2;
}

START_TEST(a_log_function_that_waits_is_told_so)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), NULL);
    kp_record r = record_of("t", "v");
    kp_producer *p;

    caller.main = pthread_self();
    kp_config_on_log(c, KP_LOG_DEBUG, call_all, NULL);
    p = start_producer(c);
    ASSERT_OK(kp_send(p, &r, &caller.future));
    atomic_store(&caller.producer, p);
    kp_broker_stop_node(broker, 1);
    (void)kp_send(p, &r, NULL); /* it cannot be reached: there is a line */
    ck_assert(becomes_true(has_called, NULL));
    ASSERT_ERR(caller.destroy, KP_EDEADLK);
    ASSERT_ERR(caller.flush, KP_EDEADLK);
    ASSERT_ERR(caller.wait, KP_EDEADLK);
    ASSERT_ERR(caller.partitions, KP_EDEADLK);
    ASSERT_OK(caller.send);
    ASSERT_ERR(caller.close, KP_PENDING);
    ASSERT_ERR(kp_close(p, KP_FOREVER, &error), KP_ECLOSED);
    (void)kp_future_wait(&caller.future, 0, NULL);
    kp_future_release(&caller.future, 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- several threads that poll one queue -- */

static void *poll_for_ever(void *queue)
{
    kp_report report;

    (void)kp_cq_poll(queue, &report, 1, KP_FOREVER);
    return NULL;
}

/* Nobody else gets a wait out of a queue that is polled, and nothing of it is
 * taken from the one who does. */
START_TEST(a_second_poller_gets_nothing)
{
    kp_cq *q;
    pthread_t first;
    kp_report report;
    int64_t began;

    ASSERT_OK(kp_cq_create(&q, &error));
    ck_assert_int_eq(pthread_create(&first, NULL, poll_for_ever, q), 0);
    pause_ms(50); /* if it is late, it is the second, and is told so */
    began = now_ms();
    kp_cq_wakeup(q);
    (void)kp_cq_poll(q, &report, 1, 100);
    ck_assert_int_lt(now_ms() - began, 5000);
    kp_cq_wakeup(q);
    (void)pthread_join(first, NULL);
    kp_cq_destroy(q);
}
END_TEST

#define POLLERS 4
#define POLLED 20000

static _Atomic int polled;

static void *poll_all(void *queue)
{
    kp_report reports[16];

    while (atomic_load(&polled) < POLLED)
        atomic_fetch_add(&polled, (int)kp_cq_poll(queue, reports, 16, 1));
    return NULL;
}

START_TEST(many_pollers_lose_no_report)
{
    kp_producer *p = MAKE_PRODUCER("batch.size", "200", NULL);
    kp_record r = record_of("t", "v");
    pthread_t threads[POLLERS];
    kp_cq *q;

    atomic_store(&polled, 0);
    ASSERT_OK(kp_cq_create(&q, &error));
    r.queue = q;
    for (int i = 0; i < POLLERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, poll_all, q), 0);
    for (int i = 0; i < POLLED; i++)
        ASSERT_OK(kp_send(p, &r, NULL));
    for (int i = 0; i < POLLERS; i++)
        (void)pthread_join(threads[i], NULL);
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ck_assert_int_eq(atomic_load(&polled), POLLED);
    ck_assert_uint_eq(kp_cq_poll(q, &(kp_report){0}, 1, 0), 0);
    kp_cq_destroy(q);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- errno -- */

#define KEEPS_ERRNO(call) \
    do { \
        errno = 4711; \
        (void)(call); \
        ck_assert_msg(errno == 4711, "%s: errno is %d", #call, errno); \
    } while (0)

static void spoil_errno(void *arg, const kp_log *line)
{
    (void)arg;
    (void)line;
    errno = 1;
}

static void see_metric(void *arg, const kp_metric *m)
{
    (void)arg;
    (void)m;
}

/* Calls of everyday leave it alone, whatever a log function does to it. */
START_TEST(errno_is_left_alone)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), "linger.ms", "20",
                               "max.block.ms", "50", NULL);
    kp_record r = record_of("t", "v"), bad = record_of("no topic", "v");
    kp_record unknown = record_of("t", "v");
    kp_report report;
    kp_future f;
    kp_producer *p;
    kp_cq *q;

    kp_config_on_log(c, KP_LOG_DEBUG, spoil_errno, NULL);
    p = start_producer(c);
    ASSERT_OK(kp_cq_create(&q, &error));
    learn_topic(p, "t");
    KEEPS_ERRNO(kp_send(p, &r, &f));
    KEEPS_ERRNO(kp_future_wait(&f, 0, &report));
    KEEPS_ERRNO(kp_future_wait(&f, 1, &report)); /* not yet: linger */
    KEEPS_ERRNO(kp_future_wait(&f, SOON_MS, &report));
    KEEPS_ERRNO(kp_future_release(&f, 1));
    KEEPS_ERRNO(kp_send(p, &bad, NULL));
    unknown.flags = KP_HAS_PARTITION;
    unknown.partition = 7;
    KEEPS_ERRNO(kp_send(p, &unknown, NULL));
    r.queue = q;
    KEEPS_ERRNO(kp_cq_fd(q));
    KEEPS_ERRNO(kp_send(p, &r, NULL));
    KEEPS_ERRNO(kp_flush(p, SOON_MS, NULL));
    KEEPS_ERRNO(kp_cq_poll(q, &report, 1, SOON_MS));
    KEEPS_ERRNO(kp_cq_poll(q, &report, 1, 1));
    KEEPS_ERRNO(kp_cq_wakeup(q));
    KEEPS_ERRNO(kp_cq_poll(q, &report, 1, 0));
    KEEPS_ERRNO(kp_status(p, "t", &error));
    KEEPS_ERRNO(kp_partitions_for(p, "t", 0, NULL, NULL, NULL));
    KEEPS_ERRNO(kp_metrics(p, see_metric, NULL));
    KEEPS_ERRNO(kp_close(p, KP_FOREVER, NULL));
    kp_cq_destroy(q);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- settings at both ends -- */

struct end {
    char name[64];
    int64_t value;
};

static struct end ends[256];
static int end_count;

/* The range of a number stands in the text of its refusal. */
static void note_ends(void *arg, const kp_property *property)
{
    kp_error e = {0};
    const char *from;
    long long low, high;

    if (kp_config_set(arg, property->name, "x", &e) == KP_OK ||
        (from = strstr(e.text, " from ")) == NULL ||
        sscanf(from, " from %lld to %lld", &low, &high) != 2)
        return;
    for (int i = 0; i < 2; i++) {
        struct end *at = &ends[end_count++];

        ck_assert_int_le(end_count, 256);
        (void)snprintf(at->name, sizeof(at->name), "%s", property->name);
        at->value = i == 0 ? low : high;
    }
}

static void find_ends(void)
{
    kp_config *c;

    end_count = 0;
    ASSERT_OK(kp_config_create(&c));
    kp_config_properties(NULL, note_ends, c);
    kp_config_destroy(c);
    ck_assert_int_ge(end_count, 40);
}

/* What a send may say then; anything else is a surprise. */
static bool is_expected(kp_err err)
{
    return err == KP_OK || err == KP_EMETADATA || err == KP_EBUFFER ||
           err == KP_ETOOBIG;
}

static void use(const struct end *at, kp_producer *p)
{
    kp_record r = record_of("t", "v");
    kp_future f[5];
    int64_t began = now_ms();
    size_t taken = 0;

    (void)kp_partitions_for(p, "t", 2000, NULL, NULL, NULL);
    r.max_wait_ms = 500;
    for (int i = 0; i < 5; i++) {
        kp_err err = kp_send(p, &r, &f[i]);

        ck_assert_msg(is_expected(err), "%s=%lld: %s", at->name,
                      (long long)at->value, kp_err_name(err));
        taken += err == KP_OK ? 1 : 0;
    }
    (void)kp_close(p, 500, NULL);
    /* each that was taken has its report by now */
    for (int i = 0; i < 5; i++)
        ck_assert_msg(kp_future_wait(&f[i], 0, NULL) != KP_PENDING,
                      "%s=%lld: no report", at->name, (long long)at->value);
    kp_future_release(f, 5);
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_msg(now_ms() - began < 15000, "%s=%lld: took %lld ms, %zu taken",
                  at->name, (long long)at->value,
                  (long long)(now_ms() - began), taken);
}

/* Every number at the least and at the most that is allowed: the producer works,
 * or is refused with the name of the culprit. */
START_TEST(settings_at_both_ends)
{
    find_ends();
    for (int i = 0; i < end_count; i++) {
        kp_config *c = make_config(kp_broker_bootstrap(broker), NULL);
        kp_producer *p = NULL;
        char value[32];
        kp_err err;

        (void)snprintf(value, sizeof(value), "%lld", (long long)ends[i].value);
        memset(&error, 0, sizeof(error));
        err = kp_config_set(c, ends[i].name, value, &error);
        if (err == KP_OK)
            err = kp_producer_create(&p, c, &error);
        kp_config_destroy(c);
        if (err == KP_OK)
            use(&ends[i], p);
        else
            ck_assert_msg(strstr(error.text, ends[i].name) != NULL,
                          "%s=%s: %s", ends[i].name, value, error.text);
    }
}
END_TEST

static Suite *public_misuse_suite(void)
{
    Suite *s = suite_create("public misuse");
    TCase *t = tcase_create("sizes");

    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_loop_test(t, no_size_is_read_by_that_cannot_be, 0, WILD);
    tcase_add_loop_test(t, stamps_that_are_no_milliseconds_are_logged, 0, 2);
    tcase_add_test(t, an_empty_log_line_is_shown);
    tcase_add_test(t, timeouts_at_both_ends);
    suite_add_tcase(s, t);
    t = tcase_create("threads");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, a_log_function_that_waits_is_told_so);
    tcase_add_test(t, a_second_poller_gets_nothing);
    tcase_add_test(t, many_pollers_lose_no_report);
    tcase_add_test(t, errno_is_left_alone);
    suite_add_tcase(s, t);
    t = tcase_create("settings");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, settings_at_both_ends);
    tcase_set_timeout(t, 300);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_misuse_suite)
