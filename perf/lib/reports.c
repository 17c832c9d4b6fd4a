/* SPDX-License-Identifier: BSD-2-Clause */
/* reports.c - counts delivery reports and takes the latency of sampled ones.
 * Callbacks run on the producer's I/O thread, the rest on the poller or on a
 * sending thread.  Invariant: each report is counted in exactly one tally. */
#include "perf/lib/run.h"

#define POLL_MAX 1024

static struct run *the_run;

void reports_begin(struct run *run)
{
    the_run = run;
}

void *reports_tag(const struct run *run, unsigned thread, int64_t sent_ns)
{
    uintptr_t tag = thread;

#if UINTPTR_MAX > UINT32_MAX
    if (sent_ns > run->epoch_ns)
        tag |= (uintptr_t)(sent_ns - run->epoch_ns) << TAG_THREAD_BITS;
#else
    (void)run;
    (void)sent_ns;
#endif
    return (void *)tag;
}

/* The part of a tag above the thread's number; 0: not a sampled record. */
static uintptr_t sent_after(const kp_report *r)
{
    return (uintptr_t)r->tag >> TAG_THREAD_BITS;
}

static void sample(struct run *run, const kp_report *r)
{
    int64_t sent_ns = run->epoch_ns + (int64_t)sent_after(r);
    /* Acquire: pairs with the release that begins a phase. */
    struct latency *l =
        atomic_load_explicit(&run->latency, memory_order_acquire);

    if (r->err == KP_OK)
        latency_add(l, pace_now_ns() - sent_ns);
}

static void note_failure(struct run *run, const kp_report *r)
{
    const char *text = r->text != NULL ? r->text : kp_err_text(r->err);

    complaint_note(&run->failure, "%s: %s%s%s", kp_err_name(r->err), text,
                   r->cause != KP_OK ? "; before it " : "",
                   r->cause != KP_OK ? kp_err_name(r->cause) : "");
}

void reports_count(struct run *run, struct tally *t, const kp_report *r)
{
    if (r->err == KP_OK) {
        counter_add(&t->acked, 1);
        return;
    }
    counter_add(&t->failed, 1);
    note_failure(run, r);
}

/* Every record's callback. */
static void on_report(const kp_report *r)
{
    struct run *run = the_run;

    reports_count(run, &run->by_callback, r);
    if (sent_after(r) != 0)
        sample(run, r);
}

/* The same where the sending thread waits for it. */
static void on_awaited_report(const kp_report *r)
{
    struct run *run = the_run;
    uintptr_t mask = ((uintptr_t)1 << TAG_THREAD_BITS) - 1;
    struct worker *w = &run->workers[(uintptr_t)r->tag & mask];
    uint64_t done;

    on_report(r);
    /* Sequentially consistent: either we see what the thread wants, or it sees
     * what we have done. */
    done = atomic_fetch_add(&w->done, 1) + 1;
    if (atomic_load(&w->wanted) == done)
        (void)sem_post(&w->arrived);
}

/* A sampled record's where reports are counted in another way. */
static void on_sample(const kp_report *r)
{
    struct run *run = the_run;

    if (r->err != KP_OK)
        note_failure(run, r);
    if (sent_after(r) != 0)
        sample(run, r);
}

kp_delivery_fn reports_callback(const struct run *run)
{
    if (run->o->reports != REPORTS_CALLBACK)
        return NULL;
    return run->gated ? on_awaited_report : on_report;
}

kp_delivery_fn reports_sample_callback(const struct run *run)
{
    if (run->o->reports == REPORTS_QUEUE)
        return NULL;
    return run->o->reports == REPORTS_CALLBACK ? reports_callback(run)
                                               : on_sample;
}

size_t reports_poll(struct run *run, struct tally *t, kp_cq *queue, int ms)
{
    kp_report reports[POLL_MAX];
    size_t n = kp_cq_poll(queue, reports, POLL_MAX, ms);
    uint64_t acked = 0;

    for (size_t i = 0; i < n; i++) {
        if (reports[i].err == KP_OK)
            acked++;
        else
            reports_count(run, t, &reports[i]);
        if (sent_after(&reports[i]) != 0)
            sample(run, &reports[i]);
    }
    counter_add(&t->acked, acked);
    return n;
}

void *reports_poller(void *arg)
{
    struct run *run = arg;
    uint64_t polled = 0;

    /* Relaxed: set once, then the queue is woken. */
    while (polled <
           atomic_load_explicit(&run->poll_until, memory_order_relaxed))
        polled += reports_poll(run, &run->by_poller, run->queue, 1000);
    return NULL;
}

static void add_tally(struct tally *sum, const struct tally *t)
{
    counter_add(&sum->acked, counter_get(&t->acked));
    counter_add(&sum->failed, counter_get(&t->failed));
}

void reports_totals(const struct run *run, uint64_t *taken, uint64_t *refused,
                    struct tally *sum)
{
    *taken = 0;
    *refused = 0;
    atomic_init(&sum->acked, 0);
    atomic_init(&sum->failed, 0);
    add_tally(sum, &run->by_callback);
    add_tally(sum, &run->by_poller);
    for (unsigned i = 0; i < run->worker_count; i++) {
        *taken += counter_get(&run->workers[i].taken);
        *refused += counter_get(&run->workers[i].refused);
        add_tally(sum, &run->workers[i].tally);
    }
}
