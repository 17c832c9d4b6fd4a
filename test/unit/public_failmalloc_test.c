/* SPDX-License-Identifier: BSD-2-Clause */
/* A producer's whole life, once for each allocation in it that can fail:
 * nothing crashes, nothing leaks, and every record taken has exactly one
 * report.
 *
 * The broker is a process of its own, so that only our allocations fail. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/public_fixture.h"

#include "lib/base/mem.h"
#include "test/support/main.h"

/* -- a broker in a process of its own -- */

static pid_t broker_pid;
static char bootstrap[256];

static void serve(int out)
{
    struct broker_options o;
    struct broker_server *s;
    const char *address;

    kp_broker_defaults(&o);
    o.config.partitions = 2;
    s = kp_broker_start(&o);
    if (s == NULL)
        _exit(1);
    address = kp_broker_bootstrap(s);
    if (write(out, address, strlen(address) + 1) < 0)
        _exit(1);
    for (;;)
        (void)pause();
}

static void start(void)
{
    size_t got = 0;
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    broker_pid = fork();
    ck_assert_int_ge(broker_pid, 0);
    if (broker_pid == 0) {
        (void)close(fds[0]);
        serve(fds[1]);
    }
    (void)close(fds[1]);
    while (got == 0 || bootstrap[got - 1] != '\0') {
        ssize_t n = read(fds[0], bootstrap + got, sizeof(bootstrap) - got);

        if (n < 0 && errno == EINTR)
            continue;
        ck_assert_int_gt(n, 0);
        got += (size_t)n;
    }
    (void)close(fds[0]);
}

static void stop(void)
{
    kp__mem_fail_at(-1);
    (void)kill(broker_pid, SIGKILL);
    while (waitpid(broker_pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* -- one life -- */

#define RECORDS 40

struct life {
    const char *codec, *delivery_ms, *block_ms;
    struct seen seen[RECORDS]; /* every fourth: a callback */
    kp_future futures[RECORDS];
    int taken_by_callback, taken_by_queue, queue_reports;
    int tags[RECORDS];
    bool came_to_its_end;
};

/* What a call may say when there is no memory. */
static void may_lack_memory(kp_err err)
{
    ck_assert_msg(err == KP_OK || err == KP_ENOMEM, "%s: %s", kp_err_name(err),
                  error.text);
}

static bool make(struct life *l, kp_producer **p, kp_cq **q)
{
    const char *const settings[][2] = {
        {"bootstrap.servers", bootstrap},
        {"compression.type", l->codec},
        {"linger.ms", "2"},
        {"delivery.timeout.ms", l->delivery_ms},
        {"request.timeout.ms", "300"},
        {"retry.backoff.ms", "5"},
        {"reconnect.backoff.ms", "5"},
        {"max.block.ms", l->block_ms},
        {"batch.size", "2000"},
        {"client.id", "frugal"},
        {"buffer.memory", "200000"},
        {"reconnect.backoff.max.ms", "20"},
    };
    kp_config *c = NULL;
    kp_err err = kp_config_create(&c);

    may_lack_memory(err);
    for (size_t i = 0; err == KP_OK && i < 12; i++)
        err = kp_config_set(c, settings[i][0], settings[i][1], &error);
    may_lack_memory(err);
    if (err == KP_OK)
        kp_config_on_log(c, KP_LOG_DEBUG, keep_line, &lines);
    if (err == KP_OK)
        err = kp_cq_create(q, &error);
    may_lack_memory(err);
    if (err == KP_OK) {
        err = kp_producer_create(p, c, &error);
        may_lack_memory(err);
        if (err != KP_OK)
            kp_cq_destroy(*q);
    }
    kp_config_destroy(c);
    return err == KP_OK;
}

static void send_one(struct life *l, kp_producer *p, kp_cq *q, int i)
{
    static const kp_header h = {{"name", 4}, {"value", 5}};
    kp_record r = record_of(i % 5 == 0 ? "u" : "t",
                            "some value that is worth compressing a little");
    kp_err err;

    r.key = kp_str(i % 2 == 0 ? "even" : "odd");
    r.headers = &h;
    r.header_count = 1;
    r.tag = &l->tags[i];
    if (i % 4 == 0) {
        r.on_delivery = keep_report;
        r.tag = &l->seen[i];
    } else if (i % 4 == 1) {
        r.queue = q;
    }
    err = kp_send(p, &r, i % 4 >= 2 ? &l->futures[i] : NULL);
    ck_assert_msg(err == KP_OK || err == KP_ENOMEM || err == KP_EMETADATA ||
                      err == KP_EBUFFER,
                  "%s", kp_err_name(err));
    if (err != KP_OK)
        return;
    l->taken_by_callback += i % 4 == 0;
    l->taken_by_queue += i % 4 == 1;
}

static bool is_fair(kp_err err)
{
    return err == KP_OK || err == KP_ENOMEM || err == KP_ECLOSED ||
           err == KP_ETIMEDOUT || err > 0 || err == KP_EBATCH ||
           err == KP_EDISCONNECT || err == KP_EMETADATA || err == KP_EBUFFER;
}

static void check_reports(struct life *l, kp_cq *q)
{
    int seen = 0;
    kp_report reports[8];
    size_t n;

    for (int i = 0; i < RECORDS; i++) {
        int count = atomic_load(&l->seen[i].count);

        ck_assert_int_le(count, 1);
        seen += count;
        if (count > 0)
            ck_assert(is_fair(l->seen[i].report.err));
        if (l->futures[i].check_ != 0)
            ck_assert(is_fair(kp_future_wait(&l->futures[i], 0, NULL)));
    }
    ck_assert_int_eq(seen, l->taken_by_callback);
    while ((n = kp_cq_poll(q, reports, 8, 0)) > 0)
        l->queue_reports += (int)n;
    ck_assert_int_eq(l->queue_reports, l->taken_by_queue);
}

static void count_them(void *arg, const kp_metric *m)
{
    (void)m;
    ++*(int *)arg;
}

static void live(struct life *l)
{
    kp_producer *p;
    kp_cq *q;
    int32_t count;
    int metrics = 0;
    kp_err err;

    if (!make(l, &p, &q))
        return;
    err = kp_partitions_for(p, "t", 1000, &count, NULL, NULL);
    ck_assert(err == KP_OK || err == KP_ENOMEM || err == KP_EMETADATA);
    for (int i = 0; i < RECORDS; i++)
        send_one(l, p, q, i);
    err = kp_flush(p, SOON_MS, &error);
    ck_assert_msg(is_fair(err), "%s", error.text);
    kp_metrics(p, count_them, &metrics);
    (void)kp_status(p, NULL, &error);
    err = kp_close(p, SOON_MS, &error);
    ck_assert_msg(is_fair(err), "%s", error.text);
    ASSERT_OK(kp_producer_destroy(p));
    check_reports(l, q);
    kp_future_release(l->futures, RECORDS);
    kp_cq_destroy(q);
    l->came_to_its_end = true;
}

/* Whatever still runs on a helper thread ends soon. */
static bool nothing_leaks(void *arg)
{
    return kp__mem_live() == *(long *)arg;
}

/* Returns how many allocations were asked for. */
static long live_with(const char *codec, long nth, bool from)
{
    struct life *l = calloc(1, sizeof(*l));
    long before = kp__mem_live(), calls = kp__mem_calls();
    bool ended;

    ck_assert_ptr_nonnull(l);
    l->codec = codec;
    l->delivery_ms = from ? "400" : "5000";
    l->block_ms = from ? "20" : "2000";
    if (from)
        kp__mem_fail_from(nth);
    else
        kp__mem_fail_at(nth);
    live(l);
    kp__mem_fail_at(-1);
    calls = kp__mem_calls() - calls;
    ck_assert_msg(becomes_true(nothing_leaks, &before),
                  "allocation %ld: %ld not freed", nth,
                  kp__mem_live() - before);
    ended = l->came_to_its_end;
    free(l);
    if (nth < 0)
        ck_assert(ended);
    return calls;
}

static const char *const codecs[] = {"none", "gzip", "zstd"};

START_TEST(one_failure_anywhere_is_survived)
{
    long calls;

    if (_i > 0 && strstr(kp_features(), codecs[_i]) == NULL)
        return;                             /* not in this build */
    (void)live_with(codecs[_i], -1, false); /* the topics exist from here on */
    calls = live_with(codecs[_i], -1, false);
    ck_assert_int_gt(calls, 50);
    for (long nth = 1; nth <= calls + 5; nth++)
        (void)live_with(codecs[_i], nth, false);
}
END_TEST

START_TEST(memory_that_is_gone_for_good_is_survived)
{
    long calls;

    (void)live_with("none", -1, false);
    calls = live_with("none", -1, false);
    for (long nth = 1; nth <= calls; nth += 1 + calls / 25)
        (void)live_with("none", nth, true);
}
END_TEST

static Suite *public_failmalloc_suite(void)
{
    Suite *s = suite_create("public failmalloc");
    TCase *t = tcase_create("lives");

    tcase_set_timeout(t, 250);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_loop_test(t, one_failure_anywhere_is_survived, 0,
                        (int)(sizeof(codecs) / sizeof(codecs[0])));
    tcase_add_test(t, memory_that_is_gone_for_good_is_survived);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_failmalloc_suite)
