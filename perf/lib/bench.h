/* SPDX-License-Identifier: BSD-2-Clause */
/* bench.h - the loop of a micro-benchmark: enough operations for a run to be
 * measurable, several runs, the median.  Figures are CPU time of the process,
 * all its threads. */
#ifndef KP_PERF_BENCH_H
#define KP_PERF_BENCH_H

#include <stdint.h>

/* Do the operation n times. */
typedef void (*bench_fn)(void *arg, uint64_t n);

/* Prints one line: the median and the smallest CPU ns of an operation, and MB/s
 * (10^6) if an operation handles `bytes`.  Returns the median. */
double bench_run(const char *name, bench_fn fn, void *arg, double bytes);
double bench_cpu_ns(void);
/* Ends the program if p is NULL; returns p. */
void *bench_need(void *p);
/* Make the compiler believe that *p is read. */
static inline void bench_use(const void *p)
{
    __asm__ volatile("" : : "g"(p) : "memory");
}

#endif
