/* SPDX-License-Identifier: BSD-2-Clause */
/* phase.c - the sending threads of the warm-up or of the measured part. */
#include <errno.h>

#include "perf/peers/librdkafka/run.h"

#define PATIENCE_S 180

static inline void next(struct worker *w, const kp_bytes **value,
                        const kp_bytes **key)
{
    const struct payload *p = &w->run->payload;

    *value = w->value;
    if (++w->value == p->values + p->value_count)
        w->value = p->values;
    *key = w->key;
    if (w->key != NULL && ++w->key == p->keys + p->key_count)
        w->key = p->keys;
}

/* A copy is taken, and a full queue is waited for, as in kp_send. */
static inline void send_one(struct worker *w, void *opaque)
{
    const kp_bytes *value, *key;

    next(w, &value, &key);
    if (__builtin_expect(
            rd_kafka_produce(w->run->topic, RD_KAFKA_PARTITION_UA,
                             RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK,
                             (void *)(uintptr_t)value->data, value->size,
                             key != NULL ? key->data : NULL,
                             key != NULL ? key->size : 0, opaque) == 0,
            1)) {
        w->taken++;
        return;
    }
    w->refused++;
    (void)fprintf(stderr, TOOL ": not taken: %s\n",
                  rd_kafka_err2str(rd_kafka_last_error()));
    atomic_store(&w->run->stop, true);
}

/* When the record that comes next was sent; when it was due, if the schedule is
 * even, so that a delay of ours counts as latency too. */
static int64_t sent_ns(const struct worker *w)
{
    return w->run->o->paced ? pace_due_ns(&w->pace) : pace_now_ns();
}

static void send_chunk(struct worker *w, size_t n, size_t in_round)
{
    struct run *run = w->run;

    if (w->slots == NULL) {
        void *plain = reports_opaque(run, w->index, 0);

        send_one(w, reports_opaque(run, w->index, sent_ns(w)));
        for (size_t i = 1; i < n; i++)
            send_one(w, plain);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct slot *s = &w->slots[in_round + i];

        s->sent_ns = i == 0 ? sent_ns(w) : 0;
        /* Relaxed: the call that follows hands it on. */
        atomic_store_explicit(&s->done, false, memory_order_relaxed);
        send_one(w, s);
    }
}

/* False: nothing comes any more.  What does come later is not known to be
 * ours, so the run ends. */
static bool await_post(struct worker *w)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    while (sem_timedwait(&w->arrived, &until) != 0)
        if (errno != EINTR) {
            atomic_store(&w->run->stop, true);
            return false;
        }
    return true;
}

static bool await_slot(struct worker *w, struct slot *s)
{
    if (atomic_load(&s->done))
        return true;
    atomic_store(&w->awaited, s);
    while (!atomic_load(&s->done))
        if (!await_post(w))
            return false;
    return true;
}

/* Every future of the round is waited for and asked for its result: from the
 * last on, so that the thread sleeps once for most of them. */
static void collect(struct worker *w, size_t n)
{
    for (size_t i = n; i-- > 0 && await_slot(w, &w->slots[i]);) {
        if (w->slots[i].err == 0)
            w->acked++;
        else
            w->failed++;
    }
    atomic_store(&w->awaited, NULL);
}

static void await_round(struct worker *w, size_t n)
{
    if (w->slots != NULL)
        collect(w, n);
    else
        (void)await_post(w);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Records up to the next wait for all, or all. */
static size_t send_round(struct worker *w, size_t n)
{
    size_t sent = 0;

    while (sent < n && !atomic_load(&w->run->stop)) {
        size_t chunk = least(w->run->sample_every, n - sent);

        if (w->pace.interval_ns > 0)
            pace_wait(&w->pace, &w->run->stop);
        send_chunk(w, chunk, sent);
        w->pace.count += chunk;
        sent += chunk;
    }
    return sent;
}

static void *send_all(void *arg)
{
    struct worker *w = arg;
    const struct options *o = w->run->o;
    double each = o->throughput / o->threads;

    if (o->paced)
        pace_precisely();
    pace_start(&w->pace, each, pace_now_ns());
    w->pace.start_ns += (int64_t)(w->pace.interval_ns / o->threads * w->index);
    while (w->count > 0 && !atomic_load(&w->run->stop)) {
        size_t n = (size_t)w->count;

        if (o->outstanding != 0)
            n = least(n, o->outstanding);
        w->wanted = w->taken + n;
        n = send_round(w, n);
        w->count -= (int64_t)n;
        if (o->outstanding != 0 && !atomic_load(&w->run->stop))
            await_round(w, n);
    }
    return NULL;
}

/* The index-th part when `total` is split among `threads`. */
static int64_t part(int64_t total, unsigned threads, unsigned index)
{
    return total / threads + (index < (unsigned)(total % threads));
}

bool phase_run(struct run *run, int64_t records, struct latency *latency)
{
    uint64_t taken = 0;

    run->latency = latency;
    for (unsigned i = 0; i < run->o->threads; i++) {
        struct worker *w = &run->workers[i];

        w->count = part(records, run->o->threads, i);
        if (pthread_create(&w->thread, NULL, send_all, w) != 0)
            return false;
    }
    for (unsigned i = 0; i < run->o->threads; i++) {
        (void)pthread_join(run->workers[i].thread, NULL);
        taken += run->workers[i].taken;
    }
    if (run->o->reports == REPORTS_CALLBACK)
        reports_await(run, taken);
    return true;
}

void phase_totals(const struct run *run, uint64_t *acked, uint64_t *failed,
                  uint64_t *refused)
{
    *acked = atomic_load(&run->acked);
    *failed = atomic_load(&run->failed);
    *refused = 0;
    for (unsigned i = 0; i < run->o->threads; i++) {
        *acked += run->workers[i].acked;
        *failed += run->workers[i].failed;
        *refused += run->workers[i].refused;
    }
}
