/* SPDX-License-Identifier: BSD-2-Clause */
/* run.h - one run: what its threads share, and a sending thread. */
#ifndef KP_PERF_RUN_H
#define KP_PERF_RUN_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include <kp/kp.h>

#include "perf/lib/gate.h"
#include "perf/lib/latency.h"
#include "perf/lib/options.h"
#include "perf/lib/pace.h"
#include "perf/lib/payload.h"

#define LINE_SIZE 128 /* two cache lines, which processors fetch together */

/* Reports counted by one thread. */
struct tally {
    _Atomic uint64_t acked, failed;
};

/* The first thing of a kind that went wrong, for a person to read. */
struct complaint {
    pthread_mutex_t mutex;
    char text[400]; /* empty: nothing did */
};

struct run {
    /* fixed before the threads start */
    const struct options *o;
    const struct payload *payload;
    kp_producer *producer;
    kp_cq *queue;        /* the one that `poller` polls, or NULL */
    size_t sample_every; /* one record in so many has its latency taken */
    int64_t epoch_ns;    /* times in tags count from here */
    bool gated;          /* callbacks tell the sending thread */
    struct worker *workers;
    unsigned worker_count;

    struct gate gate;
    struct complaint refusal, failure;
    pthread_t poller;

    /* any thread */
    atomic_bool stop;                /* send no more */
    _Atomic uint64_t poll_until;     /* the poller ends after so many reports */
    struct latency *_Atomic latency; /* where this phase's latencies go */
    _Alignas(LINE_SIZE) struct latency warm_up, measured;

    /* written by the I/O thread, and by the poller */
    _Alignas(LINE_SIZE) struct tally by_callback;
    _Alignas(LINE_SIZE) struct tally by_poller;
};

struct worker {
    _Alignas(LINE_SIZE) struct run *run;
    pthread_t thread;
    unsigned index;
    int64_t warm_up_count, measured_count; /* records to send */
    struct pace pace;
    size_t chunk; /* records between two looks at anything but records */

    kp_record record;   /* the next one, filled again and again */
    kp_record *records; /* send_many of them, or NULL */
    const kp_bytes *value, *values_end, *key, *keys_end;
    kp_cq *queue; /* its own, or NULL */

    kp_future *futures; /* room for `blocks` times `block` of them, or NULL */
    size_t block, blocks;
    size_t current;  /* the block that is being filled */
    size_t used[2];  /* futures in each block */
    size_t in_round; /* records taken since the last wait for all */

    /* read by the main thread */
    _Atomic uint64_t taken, refused;
    struct tally tally;

    /* callbacks that came, the count that is waited for, and its waiter */
    _Alignas(LINE_SIZE) _Atomic uint64_t done;
    _Atomic uint64_t wanted;
    sem_t arrived;
};

/* -- reports.c: what became of records -- */

/* A tag is a thread's number and, in a sampled record, when it was sent.  On
 * 32-bit systems no time fits, and no latency is taken. */
#define TAG_THREAD_BITS 12
void *reports_tag(const struct run *run, unsigned thread, int64_t sent_ns);
/* The callback that records of this run carry: all, and the sampled ones. */
kp_delivery_fn reports_callback(const struct run *run);
kp_delivery_fn reports_sample_callback(const struct run *run);
/* Callbacks have no argument of ours, so there is one run in a process. */
void reports_begin(struct run *run);
void reports_count(struct run *run, struct tally *t, const kp_report *r);
/* Take what the queue has, waiting at most ms for something; says how many. */
size_t reports_poll(struct run *run, struct tally *t, kp_cq *queue, int ms);
void *reports_poller(void *run);
void reports_totals(const struct run *run, uint64_t *taken, uint64_t *refused,
                    struct tally *sum);

/* -- complaint.c -- */
void complaint_init(struct complaint *c);
void complaint_fini(struct complaint *c);
/* Keeps the first. */
void complaint_note(struct complaint *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* -- rounds.c: waiting for the reports of what was sent -- */
/* False: no memory. */
bool rounds_init(struct worker *w);
void rounds_fini(struct worker *w);
/* How many records may be sent before rounds_after must be called. */
size_t rounds_room(const struct worker *w);
/* Where the future of the next record goes, or NULL. */
kp_future *rounds_futures(const struct worker *w);
/* `taken` records were sent; waits if that ends a round. */
void rounds_after(struct worker *w, size_t taken);
/* Wait for everything this thread has sent, as far as its mode waits at all. */
void rounds_settle(struct worker *w);

/* -- worker.c -- */
void *worker_main(void *worker);

static inline bool run_stopped(const struct run *run)
{
    /* Relaxed: a request to stop orders nothing else. */
    return atomic_load_explicit(&run->stop, memory_order_relaxed);
}

static inline void run_stop(struct run *run)
{
    /* Relaxed: as above. */
    atomic_store_explicit(&run->stop, true, memory_order_relaxed);
}

/* A counter that one thread writes and others may look at. */
static inline void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
    /* Relaxed: there is one writer, and nothing else hangs on the value. */
    uint64_t v = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, v + n, memory_order_relaxed);
}

static inline uint64_t counter_get(const _Atomic uint64_t *counter)
{
    /* Relaxed: as above. */
    return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
