/* SPDX-License-Identifier: BSD-2-Clause */
/* sticky.c - choosing partitions for unkeyed records.  Application threads.
 *
 * Invariant: the answer is always a partition of the view, whatever the weights
 * say while the I/O thread rewrites them; no shared word is written but when a
 * partition is left. */
#include "lib/shared/sticky.h"

#include "lib/base/check.h"
#include "lib/shared/partition_queue.h"
#include "lib/shared/record_accumulator.h"

_Thread_local KP_TLS_FAST struct hop kp__hop;

static _Thread_local struct rng thread_rng;
static _Thread_local bool thread_rng_seeded;

struct rng *kp__thread_rng(void)
{
    if (!thread_rng_seeded)
        kp__thread_rng_seed(kp__rng_system_seed());
    return &thread_rng;
}

void kp__thread_rng_seed(uint64_t seed)
{
    kp__rng_seed(&thread_rng, seed);
    thread_rng_seeded = true;
}

/* relaxed throughout: a torn read of the table costs one odd choice */
static uint64_t sum_at(struct topic_weights *w, int32_t i)
{
    return atomic_load_explicit(&w->entries[i].sum, memory_order_relaxed);
}

/* The first entry whose sum is above `drawn`. */
static int32_t find_entry(struct topic_weights *w, int32_t count,
                          uint64_t drawn)
{
    int32_t low = 0, high = count - 1;

    while (low < high) {
        int32_t mid = low + (high - low) / 2;

        if (sum_at(w, mid) > drawn)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* Uniform in [0, total). */
static uint64_t draw(struct rng *rng, uint64_t total)
{
    uint64_t mask, drawn;

    if (KP_LIKELY(total <= UINT32_MAX))
        return kp__rng_below(rng, (uint32_t)total);
    mask = UINT64_MAX >> __builtin_clzll(total - 1);
    do
        drawn = kp__rng_next(rng) & mask;
    while (drawn >= total);
    return drawn;
}

int32_t kp__partitioner_next(const struct topic_view *v, struct rng *rng)
{
    struct topic_weights *w = v->weights;
    int32_t count, partition;
    uint64_t total;

    if (v->count == 1)
        return 0;
    count =
        w != NULL ? atomic_load_explicit(&w->count, memory_order_relaxed) : 0;
    if (count > 0 && count <= w->capacity) {
        total = sum_at(w, count - 1);
        if (total > 0) {
            int32_t i = find_entry(w, count, draw(rng, total));

            partition = atomic_load_explicit(&w->entries[i].partition,
                                             memory_order_relaxed);
            if (partition >= 0 && partition < v->count)
                return partition;
        }
    }
    return (int32_t)kp__rng_below(rng, (uint32_t)v->count);
}

/* -- Staying and hopping -- */

#define HOP_TRIES 2

static bool hop_is_ours(const struct record_accumulator *a,
                        const struct topic *topic)
{
    return kp__hop.left > 0 && kp__hop.owner == a &&
           kp__hop.topic == topic->number;
}

/* Another partition whose lock is free, or NULL. */
static struct partition_queue *hop(const struct record_accumulator *a,
                                   const struct topic *topic,
                                   const struct topic_view *v, int32_t from)
{
    for (int i = 0; i < HOP_TRIES && v->count > 1; i++) {
        int32_t to = kp__partitioner_next(v, kp__thread_rng());

        if (to == from || !kp__mutex_trylock(&v->queues[to]->lock))
            continue;
        kp__hop = (struct hop){.owner = a,
                               .topic = topic->number,
                               .left = HOP_BATCHES,
                               .partition = to};
        return v->queues[to];
    }
    return NULL;
}

/* relaxed in the next two and in kp__sticky_leave: any partition is right */
static int32_t choose_first(struct topic *topic, const struct topic_view *v)
{
    int32_t p = kp__partitioner_next(v, kp__thread_rng());

    atomic_store_explicit(&topic->sticky, p, memory_order_relaxed);
    return p;
}

static int32_t sticky_of(struct topic *topic, const struct topic_view *v)
{
    int32_t p = atomic_load_explicit(&topic->sticky, memory_order_relaxed);

    return KP_LIKELY(p >= 0 && p < v->count) ? p : choose_first(topic, v);
}

struct partition_queue *kp__sticky_lock(const struct record_accumulator *a,
                                        struct topic *topic, bool *hopped)
{
    const struct topic_view *v = kp__topic_view(topic);
    struct partition_queue *q, *other;
    int32_t p;

    *hopped = hop_is_ours(a, topic) && kp__hop.partition < v->count;
    p = *hopped ? kp__hop.partition : sticky_of(topic, v);
    q = v->queues[p];
    if (KP_LIKELY(kp__mutex_trylock(&q->lock)))
        return q;
    other = hop(a, topic, v, p);
    if (other != NULL) {
        *hopped = true;
        return other;
    }
    kp__mutex_lock(&q->lock);
    return q;
}

/* A partition whose batches wait fills one more where another would be left:
 * what it gets too much of now, up to a batch, it gets less next time. */
static uint64_t too_much(const struct partition_queue *q)
{
    uint64_t size = q->accumulator->batch_size, more;

    if (q->sticky_bytes <= size || size == 0)
        return 0;
    more = q->sticky_bytes - size;
    return more < size ? more : size - 1;
}

void kp__sticky_leave(struct topic *topic, struct partition_queue *q,
                      bool hopped)
{
    const struct topic_view *v = kp__topic_view(topic);
    int32_t from = q->partition, to;

    q->sticky_bytes = too_much(q);
    if (v->count < 2)
        return;
    to = kp__partitioner_next(v, kp__thread_rng());
    if (hopped) {
        kp__hop.left--;
        kp__hop.partition = to;
        return;
    }
    /* Whoever lost the race finds it changed already. */
    (void)atomic_compare_exchange_strong_explicit(
        &topic->sticky, &from, to, memory_order_relaxed, memory_order_relaxed);
}
