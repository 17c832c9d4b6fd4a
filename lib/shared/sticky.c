/* SPDX-License-Identifier: BSD-2-Clause */
/* sticky.c - choosing partitions for unkeyed records.  Application threads.
 *
 * Invariant: the answer is always a partition of the view, whatever the weights say
 * while the I/O thread rewrites them. */
#include "lib/shared/sticky.h"

#include "lib/base/check.h"

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
static uint32_t sum_at(struct topic_weights *w, int32_t i)
{
    return atomic_load_explicit(&w->entries[i].sum, memory_order_relaxed);
}

/* The first entry whose sum is above `drawn`. */
static int32_t find_entry(struct topic_weights *w, int32_t count,
                          uint32_t drawn)
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

int32_t kp__partitioner_next(const struct topic_view *v, struct rng *rng)
{
    struct topic_weights *w = v->weights;
    int32_t count, partition;
    uint32_t total;

    if (v->count == 1)
        return 0;
    count = w != NULL
                ? atomic_load_explicit(&w->count, memory_order_relaxed)
                : 0;
    if (count > 0 && count <= w->capacity) {
        total = sum_at(w, count - 1);
        if (total > 0) {
            int32_t i = find_entry(w, count, kp__rng_below(rng, total));

            partition = atomic_load_explicit(&w->entries[i].partition,
                                             memory_order_relaxed);
            if (partition >= 0 && partition < v->count)
                return partition;
        }
    }
    return (int32_t)kp__rng_below(rng, (uint32_t)v->count);
}
