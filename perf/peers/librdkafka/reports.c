/* SPDX-License-Identifier: BSD-2-Clause */
/* reports.c - counts delivery reports.  The poller's thread alone: nobody else
 * polls or flushes.  Invariant: each report is counted once, in the run's
 * counts, or in its slot, which its sending thread counts. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "perf/peers/librdkafka/run.h"

#define POLL_MS 100
#define PATIENCE_S 180 /* longer than a record may be on its way */
#define THREAD_BITS 12

/* The thread's number and, if the record is sampled, when it was sent. */
void *reports_opaque(struct run *run, unsigned thread, int64_t sent_ns)
{
    uintptr_t tag = thread;

    if (sent_ns > run->epoch_ns)
        tag |= (uintptr_t)(sent_ns - run->epoch_ns) << THREAD_BITS;
    return (void *)tag;
}

/* There is one writer, so that no locked instruction is needed. */
static inline void count(_Atomic uint64_t *counter)
{
    /* Relaxed: the poller's fence orders what matters. */
    uint64_t n = atomic_load_explicit(counter, memory_order_relaxed) + 1;

    atomic_store_explicit(counter, n, memory_order_relaxed);
}

static void note(struct run *run, rd_kafka_resp_err_t err)
{
    if (run->failure[0] == '\0')
        (void)snprintf(run->failure, sizeof(run->failure), "%s",
                       rd_kafka_err2str(err));
}

static void count_one(struct run *run, rd_kafka_resp_err_t err)
{
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        count(&run->acked);
    } else {
        count(&run->failed);
        note(run, err);
    }
}

static void count_for(struct worker *w)
{
    if (++w->done == w->wanted)
        (void)sem_post(&w->arrived);
}

static void fill_slot(struct run *run, struct slot *s, rd_kafka_resp_err_t err)
{
    s->err = (int)err;
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        note(run, err);
    else if (s->sent_ns != 0)
        latency_add(run->latency, pace_now_ns() - s->sent_ns);
    /* Sequentially consistent, as are the waiter's accesses: either it sees that
     * this is done, or we see that it is waited for. */
    atomic_store(&s->done, true);
    if (atomic_load(&s->worker->awaited) == s)
        (void)sem_post(&s->worker->arrived);
}

void reports_callback(rd_kafka_t *rk, const rd_kafka_message_t *m, void *arg)
{
    struct run *run = arg;
    uintptr_t tag = (uintptr_t)m->_private;
    uintptr_t sent_after = tag >> THREAD_BITS;

    (void)rk;
    if (run->o->reports == REPORTS_FUTURE) {
        fill_slot(run, m->_private, m->err);
        return;
    }
    if (sent_after != 0 && m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        latency_add(run->latency,
                    pace_now_ns() - run->epoch_ns - (int64_t)sent_after);
    count_one(run, m->err);
    if (run->o->outstanding != 0)
        count_for(&run->workers[tag & ((1 << THREAD_BITS) - 1)]);
}

static uint64_t done(const struct run *run)
{
    return atomic_load(&run->acked) + atomic_load(&run->failed);
}

/* A poll takes all reports there are, so this looks once per many. */
void *reports_poller(void *arg)
{
    struct run *run = arg;

    while (!atomic_load(&run->closing)) {
        (void)rd_kafka_poll(run->rk, POLL_MS);
        /* Sequentially consistent: either we see what is wanted, or whoever
         * wants it sees what is done. */
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load(&run->wanted) == done(run))
            (void)sem_post(&run->all_arrived);
    }
    return NULL;
}

void reports_await(struct run *run, uint64_t total)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    atomic_store(&run->wanted, total);
    while (done(run) < total)
        if (sem_timedwait(&run->all_arrived, &until) != 0 && errno != EINTR)
            break;
}
