/* SPDX-License-Identifier: BSD-2-Clause */
/* latency.c - the histogram.  Any thread.  All accesses are relaxed: a reader
 * wants some recent state while others write, and the last reading comes after
 * the writers were joined or have gone quiet. */
#include "perf/lib/latency.h"

static uint64_t get(const _Atomic uint64_t *v)
{
    /* Relaxed: see above. */
    return atomic_load_explicit(v, memory_order_relaxed);
}

static void add(_Atomic uint64_t *v, uint64_t n)
{
    /* Relaxed: see above. */
    (void)atomic_fetch_add_explicit(v, n, memory_order_relaxed);
}

static void raise_to(_Atomic uint64_t *v, uint64_t to)
{
    uint64_t seen = get(v);

    /* Relaxed: see above. */
    while (seen < to &&
           !atomic_compare_exchange_weak_explicit(
               v, &seen, to, memory_order_relaxed, memory_order_relaxed))
        ;
}

static unsigned bucket_of(uint64_t ns)
{
    unsigned doubling, i;

    if (ns < LATENCY_STEPS)
        return (unsigned)ns;
    doubling = 63 - (unsigned)__builtin_clzll(ns) - LATENCY_STEP_BITS;
    i = (doubling + 1) * LATENCY_STEPS +
        (unsigned)((ns >> doubling) - LATENCY_STEPS);
    return i < LATENCY_BUCKETS ? i : LATENCY_BUCKETS - 1;
}

/* The largest duration that falls into bucket i. */
static uint64_t bucket_top(unsigned i)
{
    unsigned doubling;

    if (i < LATENCY_STEPS)
        return i;
    doubling = i / LATENCY_STEPS - 1;
    return ((uint64_t)(LATENCY_STEPS + i % LATENCY_STEPS + 1) << doubling) - 1;
}

void latency_add(struct latency *l, int64_t duration_ns)
{
    uint64_t ns = duration_ns > 0 ? (uint64_t)duration_ns : 0;

    add(&l->buckets[bucket_of(ns)], 1);
    add(&l->count, 1);
    add(&l->sum_ns, ns);
    raise_to(&l->max_ns, ns);
    raise_to(&l->window_max_ns, ns);
}

void latency_merge(struct latency *l, const struct latency *from)
{
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
        add(&l->buckets[i], get(&from->buckets[i]));
    add(&l->count, get(&from->count));
    add(&l->sum_ns, get(&from->sum_ns));
    raise_to(&l->max_ns, get(&from->max_ns));
}

int64_t latency_percentile_ns(const struct latency *l, double share)
{
    uint64_t count = get(&l->count), seen = 0, max = get(&l->max_ns);
    double want = share * (double)count;

    if (count == 0)
        return -1;
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        seen += get(&l->buckets[i]);
        if ((double)seen >= want && seen > 0)
            return (int64_t)(bucket_top(i) < max ? bucket_top(i) : max);
    }
    return (int64_t)max;
}

uint64_t latency_count(const struct latency *l)
{
    return get(&l->count);
}

uint64_t latency_sum_ns(const struct latency *l)
{
    return get(&l->sum_ns);
}

double latency_mean_ns(const struct latency *l)
{
    uint64_t count = get(&l->count);

    return count == 0 ? -1 : (double)get(&l->sum_ns) / (double)count;
}

uint64_t latency_max_ns(const struct latency *l)
{
    return get(&l->max_ns);
}

uint64_t latency_take_window_max(struct latency *l)
{
    /* Relaxed: a maximum that comes at this moment counts in one window or the
     * next. */
    return atomic_exchange_explicit(&l->window_max_ns, 0, memory_order_relaxed);
}
