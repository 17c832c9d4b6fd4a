/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_future.c - futures: taking and releasing them, waiting for those that
 * are done, and waking 1 to 1,000 threads that wait for one batch (completing
 * wakes two, who wake two each). */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api/future.h"
#include "lib/base/mem.h"
#include "perf/lib/bench.h"
#include "perf/lib/pace.h"

#define RECORDS 1000
#define ROUNDS 30

static const struct outcome acked = {KP_OK, KP_OK, CERTAIN_YES, 0, -1};

struct job {
    struct topic_name *topic;
    kp_future futures[RECORDS];
};

/* A batch's result with `count` futures taken. */
static struct batch_result *make(struct topic_name *topic, kp_future *futures,
                                 uint32_t count)
{
    struct batch_result *r = bench_need(kp__alloc(sizeof(*r)));

    kp__result_init(r, topic, 0);
    for (uint32_t i = 0; i < count; i++)
        kp__future_take(&futures[i], r, i, NULL);
    kp__result_publish(r, count);
    return r;
}

static void complete(struct batch_result *r)
{
    kp__result_complete(r, &acked, NULL);
    kp__result_unref(r, 1); /* the batch's own */
}

static void take_and_release(void *arg, uint64_t n)
{
    struct job *j = arg;

    for (uint64_t i = 0; i < n; i += RECORDS) {
        complete(make(j->topic, j->futures, RECORDS));
        kp_future_release(j->futures, RECORDS);
    }
}

static void wait_each(void *arg, uint64_t n)
{
    struct job *j = arg;
    kp_report report;

    for (uint64_t i = 0; i < n; i++)
        if (kp_future_wait(&j->futures[i % RECORDS], KP_FOREVER, &report) !=
            KP_OK)
            abort();
}

static void wait_all(void *arg, uint64_t n)
{
    struct job *j = arg;

    for (uint64_t i = 0; i < n; i += RECORDS)
        if (kp_future_wait_all(j->futures, RECORDS, KP_FOREVER) != KP_OK)
            abort();
}

static void done_futures(struct job *j)
{
    (void)bench_run("take a future, complete, release (of 1,000)",
                    take_and_release, j, 0);
    complete(make(j->topic, j->futures, RECORDS));
    (void)bench_run("kp_future_wait of a done one, with report", wait_each, j,
                    0);
    (void)bench_run("kp_future_wait_all of 1,000, each", wait_all, j, 0);
    kp_future_release(j->futures, RECORDS);
}

/* -- Many threads wait for one batch -- */

struct herd {
    struct topic_name *topic;
    unsigned count;
    kp_future *futures;
    pthread_t *threads;
    atomic_uint at_wait, woken;
    sem_t all_woken, go;
    atomic_bool end;
};

struct member {
    struct herd *herd;
    unsigned index;
};

static void *wait_thread(void *arg)
{
    struct member *m = arg;
    struct herd *h = m->herd;

    for (;;) {
        (void)sem_wait(&h->go);
        if (atomic_load(&h->end))
            return NULL;
        (void)atomic_fetch_add(&h->at_wait, 1);
        if (kp_future_wait(&h->futures[m->index], KP_FOREVER, NULL) != KP_OK)
            abort();
        if (atomic_fetch_add(&h->woken, 1) + 1 == h->count)
            (void)sem_post(&h->all_woken);
    }
}

/* One round: from completing to the last thread's return.  The time that
 * threads need to get to sleep is not counted. */
static void herd_round(struct herd *h, double *wall_ns, double *cpu_ns)
{
    struct batch_result *r = make(h->topic, h->futures, h->count);
    struct timespec nap = {0, 3000000 + (long)h->count * 20000};
    int64_t start;
    double cpu;

    atomic_store(&h->at_wait, 0);
    atomic_store(&h->woken, 0);
    for (unsigned i = 0; i < h->count; i++)
        (void)sem_post(&h->go);
    while (atomic_load(&h->at_wait) < h->count)
        (void)sched_yield();
    /* They are about to sleep; whether all do changes the figure little. */
    (void)nanosleep(&nap, NULL);
    cpu = bench_cpu_ns();
    start = pace_now_ns();
    complete(r);
    (void)sem_wait(&h->all_woken);
    *wall_ns += (double)(pace_now_ns() - start);
    *cpu_ns += bench_cpu_ns() - cpu;
    kp_future_release(h->futures, h->count);
}

static void start_herd(struct herd *h, struct member *members)
{
    pthread_attr_t attr;

    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, (size_t)64 * 1024);
    for (unsigned i = 0; i < h->count; i++) {
        members[i] = (struct member){h, i};
        if (pthread_create(&h->threads[i], &attr, wait_thread, &members[i]))
            bench_need(NULL);
    }
    (void)pthread_attr_destroy(&attr);
}

static void end_herd(struct herd *h)
{
    atomic_store(&h->end, true);
    for (unsigned i = 0; i < h->count; i++)
        (void)sem_post(&h->go);
    for (unsigned i = 0; i < h->count; i++)
        (void)pthread_join(h->threads[i], NULL);
}

static void herd(struct topic_name *topic, unsigned count)
{
    struct member *members = bench_need(calloc(count, sizeof(*members)));
    struct herd h = {.topic = topic, .count = count};
    double wall_ns = 0, cpu_ns = 0;

    h.futures = bench_need(calloc(count, sizeof(*h.futures)));
    h.threads = bench_need(calloc(count, sizeof(*h.threads)));
    (void)sem_init(&h.all_woken, 0, 0);
    (void)sem_init(&h.go, 0, 0);
    start_herd(&h, members);
    for (int i = 0; i < ROUNDS; i++)
        herd_round(&h, &wall_ns, &cpu_ns);
    end_herd(&h);
    (void)printf("wake %4u waiting threads: %8.1f us until the last, %6.2f us "
                 "CPU each\n",
                 count, wall_ns / ROUNDS / 1e3, cpu_ns / ROUNDS / count / 1e3);
    (void)sem_destroy(&h.all_woken);
    (void)sem_destroy(&h.go);
    free(h.threads);
    free(h.futures);
    free(members);
}

int main(void)
{
    static struct job j;

    j.topic = bench_need(kp__topic_name_create("bench", 5));
    done_futures(&j);
    herd(j.topic, 1);
    herd(j.topic, 10);
    herd(j.topic, 100);
    herd(j.topic, 1000);
    kp__topic_name_unref(j.topic);
    return 0;
}
