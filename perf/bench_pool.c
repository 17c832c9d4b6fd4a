/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_pool.c - buffer.memory: taking a chunk and giving it back when there is
 * enough, and handing chunks from thread to thread when there is not: many
 * threads that each want one of the few chunks there are, hold it for a moment,
 * and give it back. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/shared/buffer_pool.h"
#include "lib/shared/partition_queue.h"
#include "perf/lib/bench.h"
#include "perf/lib/pace.h"

#define SMALL_POOL ((size_t)64 * 1024)
#define RUN_NS INT64_C(500000000)

static const struct pool_need need = {.record_size = 1000};

struct job {
    struct buffer_pool *pool;
    struct partition_queue queue;
};

/* One chunk or more; waits as long as it takes.  The pool only keeps the time
 * for its statistics, so the clock is not read here. */
static struct chunk *take(struct buffer_pool *pool, struct partition_queue *q,
                          int64_t now_ns, atomic_ulong *waits)
{
    struct pool_waiter waiter;
    struct pool_grant grant;
    enum pool_answer answer;
    struct ticket ticket;

    memset(&waiter, 0, sizeof(waiter));
    for (;;) {
        answer = kp__pool_try(pool, q, &need, true, now_ns, &waiter, &grant);
        if (answer == POOL_GRANTED)
            return grant.data;
        if (answer != POOL_WAIT)
            abort();
        if (waits != NULL)
            (void)atomic_fetch_add(waits, 1);
        ticket = kp__pool_ticket(pool, &waiter, KP_NEVER);
        (void)kp__ticket_wait(&ticket);
    }
}

static void take_and_give(void *arg, uint64_t n)
{
    struct job *j = arg;

    while (n-- > 0)
        kp__pool_give(j->pool, &j->queue, take(j->pool, &j->queue, 1, NULL));
}

/* -- Hand-off -- */

struct crowd {
    struct buffer_pool *pool;
    struct partition_queue queues[8];
    int64_t start_ns;
    atomic_bool end;
    atomic_ulong grants, waits;
};

static void *crowd_member(void *arg)
{
    struct crowd *c = arg;
    unsigned long n = 0, i = (unsigned long)(uintptr_t)&n / 4096;

    while (!atomic_load_explicit(&c->end, memory_order_relaxed)) {
        struct partition_queue *q = &c->queues[i++ % 8];
        struct chunk *chunk = take(c->pool, q, c->start_ns, &c->waits);

        /* As a record would be: written to. */
        memset(chunk->data, 1, 1000);
        kp__pool_give(c->pool, q, chunk);
        n++;
    }
    (void)atomic_fetch_add(&c->grants, n);
    return NULL;
}

static void crowd(unsigned count)
{
    pthread_t *threads = bench_need(calloc(count, sizeof(*threads)));
    struct crowd *c = bench_need(calloc(1, sizeof(*c)));
    struct timespec nap = pace_timespec(RUN_NS);
    double cpu, grants, waits, wall;
    pthread_attr_t attr;

    c->pool = bench_need(kp__pool_create(SMALL_POOL));
    for (int i = 0; i < 8; i++)
        kp__queue_init(&c->queues[i], NULL, i, NULL);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, (size_t)64 * 1024);
    cpu = bench_cpu_ns();
    c->start_ns = pace_now_ns();
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attr, crowd_member, c) != 0)
            bench_need(NULL);
    (void)nanosleep(&nap, NULL);
    atomic_store_explicit(&c->end, true, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    cpu = bench_cpu_ns() - cpu;
    wall = (double)(pace_now_ns() - c->start_ns);
    grants = (double)atomic_load(&c->grants);
    waits = (double)atomic_load(&c->waits);
    (void)printf("%4u threads, %2zu chunks: %9.0f grants/s, %7.2f us CPU each, "
                 "%3.0f %% waited for\n",
                 count, SMALL_POOL / CHUNK_SIZE, grants / wall * 1e9,
                 cpu / grants / 1e3, 100 * waits / grants);
    (void)pthread_attr_destroy(&attr);
    for (int i = 0; i < 8; i++)
        kp__queue_fini(&c->queues[i]);
    kp__pool_unref(c->pool);
    free(c);
    free(threads);
}

int main(void)
{
    static struct job j;

    j.pool = bench_need(kp__pool_create((size_t)32 << 20));
    kp__queue_init(&j.queue, NULL, 0, NULL);
    (void)bench_run("take a chunk and give it back", take_and_give, &j, 0);
    kp__queue_fini(&j.queue);
    kp__pool_unref(j.pool);
    crowd(8);
    crowd(64);
    crowd(512);
    crowd(2000);
    return 0;
}
