/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_tool.c - what multi_thread_send itself can do: the same program, with a
 * producer that does nothing.  A record counts as acknowledged in the call that
 * sends it, and no byte goes anywhere.
 *
 *   bench_tool --bootstrap-server none:9092 --topic none --num-records N
 *       --record-size N [any option of multi_thread_send]
 *
 * If what it says per record is not small beside what multi_thread_send says,
 * the tool is measured and not the producer.  One thread: callbacks come from
 * the thread that sends, and the tool counts those of one. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <kp/kp.h>

#include "perf/lib/tool.h"

struct kp_producer {
    bool closed;
};

struct kp_cq {
    _Atomic size_t count; /* sent to it and not polled yet */
};

/* Not NULL, so that a future is a taken one. */
static void *const TAKEN = &(char){0};

kp_err kp_producer_create(kp_producer **out, const kp_config *config,
                          kp_error *error)
{
    (void)config;
    (void)error;
    *out = calloc(1, sizeof(**out));
    return *out != NULL ? KP_OK : KP_ENOMEM;
}

kp_err kp_producer_destroy(kp_producer *p)
{
    free(p);
    return KP_OK;
}

kp_err kp_close(kp_producer *p, int64_t timeout_ms, kp_error *error)
{
    (void)timeout_ms;
    (void)error;
    p->closed = true;
    return KP_OK;
}

kp_err kp_flush(kp_producer *p, int64_t timeout_ms, kp_error *error)
{
    (void)p;
    (void)timeout_ms;
    (void)error;
    return KP_OK;
}

kp_err kp_status(kp_producer *p, const char *topic, kp_error *error)
{
    (void)p;
    (void)topic;
    (void)error;
    return KP_OK;
}

kp_err kp_partitions_for(kp_producer *p, const char *topic, int64_t timeout_ms,
                         int32_t *count, kp_partition_visit visit, void *arg)
{
    (void)p;
    (void)topic;
    (void)timeout_ms;
    (void)count;
    (void)visit;
    (void)arg;
    return KP_OK;
}

void kp_metrics(kp_producer *p, kp_metric_visit visit, void *arg)
{
    (void)p;
    (void)visit;
    (void)arg;
}

/* -- sending -- */

/* Not inlined, as a library's function is not. */
__attribute__((noinline)) kp_err kp_send(kp_producer *p, const kp_record *r,
                                         kp_future *future)
{
    if (p->closed)
        return KP_ECLOSED;
    if (future != NULL)
        *future = (kp_future){.result_ = TAKEN};
    /* relaxed, here and where it is polled: a number and no more */
    if (r->queue != NULL)
        (void)atomic_fetch_add_explicit(&r->queue->count, 1,
                                        memory_order_relaxed);
    if (r->on_delivery != NULL) {
        kp_report report = {.tag = r->tag, .topic = r->topic};

        r->on_delivery(&report);
    }
    return KP_OK;
}

kp_err kp_send_many(kp_producer *p, const kp_record *records, size_t count,
                    kp_future *futures, size_t *taken)
{
    for (size_t i = 0; i < count; i++)
        (void)kp_send(p, &records[i], futures != NULL ? &futures[i] : NULL);
    *taken = count;
    return KP_OK;
}

kp_err kp_future_wait(const kp_future *future, int64_t timeout_ms,
                      kp_report *report)
{
    (void)timeout_ms;
    if (report != NULL)
        *report = (kp_report){.tag = future->tag_};
    return KP_OK;
}

kp_err kp_future_wait_all(const kp_future *futures, size_t count,
                          int64_t timeout_ms)
{
    (void)futures;
    (void)count;
    (void)timeout_ms;
    return KP_OK;
}

void kp_future_release(kp_future *futures, size_t count)
{
    memset(futures, 0, count * sizeof(*futures));
}

kp_err kp_cq_create(kp_cq **out, kp_error *error)
{
    (void)error;
    *out = calloc(1, sizeof(**out));
    return *out != NULL ? KP_OK : KP_ENOMEM;
}

void kp_cq_destroy(kp_cq *queue)
{
    free(queue);
}

size_t kp_cq_poll(kp_cq *queue, kp_report *reports, size_t max,
                  int64_t timeout_ms)
{
    size_t n = atomic_load_explicit(&queue->count, memory_order_relaxed);

    (void)timeout_ms;
    if (n > max)
        n = max;
    memset(reports, 0, n * sizeof(*reports));
    (void)atomic_fetch_sub_explicit(&queue->count, n, memory_order_relaxed);
    return n;
}

void kp_cq_wakeup(kp_cq *queue)
{
    (void)queue;
}

int main(int argc, char **argv)
{
    return tool_main(argc, argv);
}
