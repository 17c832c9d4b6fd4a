/* SPDX-License-Identifier: BSD-2-Clause */
/* drive.c - watches a run: progress, Ctrl-C, the two phases and the figures at
 * their borders.  The main thread; it wakes ten times a second. */
#include "perf/lib/drive.h"

#include <signal.h>
#include <string.h>

#define TICK_MS 100
#define CLOSE_MS 30000
#define PATIENCE_NS INT64_C(2000000000) /* from Ctrl-C to closing */
#define AGAIN_NS INT64_C(500000000)
#define STACK_SIZE ((size_t)256 * 1024)

/* When the first signal came; 0: none has.  Its accesses are relaxed: nothing
 * else hangs on it. */
static _Atomic int64_t interrupted_ns;

static void on_signal(int number)
{
    int64_t first = 0, now = pace_now_ns();

    /* Relaxed: see above. */
    if (atomic_compare_exchange_strong_explicit(&interrupted_ns, &first, now,
                                                memory_order_relaxed,
                                                memory_order_relaxed))
        return;
    /* The second one ends the process; but one keystroke, or timeout(1), may
     * send two signals at once. */
    if (now - first < AGAIN_NS)
        return;
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void run_catch_signals(void)
{
    struct sigaction a;

    memset(&a, 0, sizeof(a));
    a.sa_handler = on_signal;
    (void)sigaction(SIGINT, &a, NULL);
    (void)sigaction(SIGTERM, &a, NULL);
}

bool run_interrupted(void)
{
    /* Relaxed: see above. */
    return atomic_load_explicit(&interrupted_ns, memory_order_relaxed) != 0;
}

bool run_start_threads(struct run *run)
{
    pthread_attr_t attr;
    bool ok = true;

    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_SIZE);
    if (run->queue != NULL)
        ok = pthread_create(&run->poller, &attr, reports_poller, run) == 0;
    for (unsigned i = 0; ok && i < run->worker_count; i++)
        ok = pthread_create(&run->workers[i].thread, &attr, worker_main,
                            &run->workers[i]) == 0;
    (void)pthread_attr_destroy(&attr);
    if (!ok)
        (void)fprintf(stderr,
                      TOOL ": --threads %u: the system does not start "
                           "so many; ask for fewer\n",
                      run->worker_count);
    return ok;
}

static void join_threads(struct run *run)
{
    uint64_t taken, refused;
    struct tally sum;

    for (unsigned i = 0; i < run->worker_count; i++)
        (void)pthread_join(run->workers[i].thread, NULL);
    if (run->queue == NULL)
        return;
    reports_totals(run, &taken, &refused, &sum);
    /* Relaxed: the wake-up that follows makes the poller look. */
    atomic_store_explicit(&run->poll_until, taken, memory_order_relaxed);
    kp_cq_wakeup(run->queue);
    (void)pthread_join(run->poller, NULL);
}

struct watch {
    struct run *run;
    struct progress progress;
    int64_t stopped_ns; /* when Ctrl-C came; 0: it has not */
    bool closed;
};

/* What is done every tick.  After Ctrl-C threads end after the record in hand;
 * one that hangs in a send is freed by closing the producer. */
static void attend(struct watch *w)
{
    progress_tick(&w->progress, w->run);
    if (run_interrupted() && w->stopped_ns == 0) {
        w->stopped_ns = pace_now_ns();
        run_stop(w->run);
    }
    if (w->stopped_ns == 0 || w->closed ||
        pace_now_ns() - w->stopped_ns < PATIENCE_NS)
        return;
    (void)kp_close(w->run->producer, CLOSE_MS, NULL);
    w->closed = true;
}

static void await_workers(struct watch *w, unsigned arrivals)
{
    while (!gate_wait_arrived(&w->run->gate, arrivals, TICK_MS))
        attend(w);
}

/* Until every report was made. */
static kp_err await_reports(struct watch *w)
{
    kp_err err;

    while ((err = kp_flush(w->run->producer, TICK_MS, NULL)) == KP_PENDING)
        attend(w);
    return err;
}

/* The poller is behind the reports that flush waited for. */
static void await_poller(struct watch *w)
{
    uint64_t taken, refused;
    struct tally sum;

    if (w->run->queue == NULL)
        return;
    for (;;) {
        reports_totals(w->run, &taken, &refused, &sum);
        if (counter_get(&sum.acked) + counter_get(&sum.failed) >= taken)
            return;
        /* Nobody arrives: this is a short sleep. */
        (void)gate_wait_arrived(&w->run->gate, UINT32_MAX, 1);
        attend(w);
    }
}

/* Acknowledged and failed so far.  Without reports a record was acknowledged
 * unless the producer counts it as an error. */
static void results(const struct run *run, const struct figures *used,
                    uint64_t *acked, uint64_t *failed, uint64_t *refused)
{
    uint64_t taken;
    struct tally sum;

    reports_totals(run, &taken, refused, &sum);
    *acked = counter_get(&sum.acked);
    *failed = counter_get(&sum.failed);
    if (run->o->reports != REPORTS_NONE)
        return;
    *failed = used->record_errors > 0 ? (uint64_t)used->record_errors : 0;
    *acked = taken - (*failed < taken ? *failed : taken);
}

/* The whole run, from the first send to the last report. */
static kp_err drive(struct watch *w, struct outcome *r)
{
    struct run *run = w->run;
    struct figures start, begin, end, before;
    uint64_t warm_acked, failed, refused;
    kp_err err;

    figures_take(&start, run->producer);
    begin = start;
    await_workers(w, run->worker_count);
    if (run->o->warmup_records > 0) {
        (void)await_reports(w);
        await_poller(w);
        figures_take(&begin, run->producer);
    }
    figures_between(&before, &start, &begin);
    results(run, &before, &warm_acked, &failed, &refused);
    /* Release: pairs with the acquire of whoever takes a latency. */
    atomic_store_explicit(&run->latency, &run->measured, memory_order_release);
    gate_open(&run->gate);
    await_workers(w, 2 * run->worker_count);
    err = await_reports(w);
    await_poller(w);
    figures_take(&end, run->producer);
    figures_between(&r->used, &start, &end);
    results(run, &r->used, &r->acked, &r->failed, &r->refused);
    figures_between(&r->used, &begin, &end);
    r->measured = r->acked - warm_acked;
    r->whole_s = (double)(end.at_ns - start.at_ns) / 1e9;
    r->interrupted = w->stopped_ns != 0;
    r->asked = (uint64_t)run->o->num_records;
    return err;
}

kp_err run_drive(struct run *run, FILE *out, struct outcome *r)
{
    struct watch w;
    kp_err err;

    memset(&w, 0, sizeof(w));
    w.run = run;
    progress_start(&w.progress, out);
    err = drive(&w, r);
    join_threads(run);
    return err;
}
