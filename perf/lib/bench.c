/* SPDX-License-Identifier: BSD-2-Clause */
/* bench.c - runs and times micro-benchmarks.  The main thread. */
#include "perf/lib/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define RUN_NS 40e6
#define RUNS 9

double bench_cpu_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double time_ns(bench_fn fn, void *arg, uint64_t n)
{
    double start = bench_cpu_ns();

    fn(arg, n);
    return bench_cpu_ns() - start;
}

/* How many operations fill a run. */
static uint64_t calibrate(bench_fn fn, void *arg)
{
    uint64_t n = 1;

    for (;;) {
        double ns = time_ns(fn, arg, n);

        if (ns >= RUN_NS || n > UINT64_MAX / 4)
            return n;
        n = ns > RUN_NS / 20 ? (uint64_t)((double)n * RUN_NS / ns) + 1 : n * 4;
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_run(const char *name, bench_fn fn, void *arg, double bytes)
{
    uint64_t n = calibrate(fn, arg);
    double runs[RUNS], median;

    for (int i = 0; i < RUNS; i++)
        runs[i] = time_ns(fn, arg, n) / (double)n;
    qsort(runs, RUNS, sizeof(runs[0]), by_value);
    median = runs[RUNS / 2];
    (void)printf("%-44s %11.2f ns  (best %.2f)", name, median, runs[0]);
    if (bytes > 0)
        (void)printf("  %8.0f MB/s", bytes / median * 1e3);
    (void)printf("\n");
    (void)fflush(stdout);
    return median;
}

void *bench_need(void *p)
{
    if (p == NULL) {
        (void)fputs("no memory\n", stderr);
        exit(2);
    }
    return p;
}
