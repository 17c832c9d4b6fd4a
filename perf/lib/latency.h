/* SPDX-License-Identifier: BSD-2-Clause */
/* latency.h - a histogram of durations, one per cent exact, of fixed size.  Any
 * number of threads may add to it and read it at the same time. */
#ifndef KP_PERF_LATENCY_H
#define KP_PERF_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

/* Below 128 ns exactly; above, 128 steps to each doubling; to about 18 min. */
#define LATENCY_STEP_BITS 7
#define LATENCY_STEPS (1 << LATENCY_STEP_BITS)
#define LATENCY_DOUBLINGS 34
#define LATENCY_BUCKETS (LATENCY_STEPS * LATENCY_DOUBLINGS)

struct latency {
    _Atomic uint64_t count, sum_ns, max_ns;
    _Atomic uint64_t window_max_ns; /* since latency_take_window_max */
    _Atomic uint64_t buckets[LATENCY_BUCKETS];
};

void latency_add(struct latency *l, int64_t ns);
/* Add everything in `from`. */
void latency_merge(struct latency *l, const struct latency *from);
/* The smallest duration that `share` (0 to 1) of them do not exceed; -1 if
 * there are none. */
int64_t latency_percentile_ns(const struct latency *l, double share);
uint64_t latency_count(const struct latency *l);
/* Sum, mean (-1 if there are none) and maximum. */
uint64_t latency_sum_ns(const struct latency *l);
double latency_mean_ns(const struct latency *l);
uint64_t latency_max_ns(const struct latency *l);
uint64_t latency_take_window_max(struct latency *l);

#endif
