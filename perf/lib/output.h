/* SPDX-License-Identifier: BSD-2-Clause */
/* output.h - what a person, or a program, is told about a run. */
#ifndef KP_PERF_OUTPUT_H
#define KP_PERF_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "perf/lib/figures.h"
#include "perf/lib/run.h"

struct outcome {
    uint64_t asked, acked, failed, refused; /* whole run; asked: to be sent */
    uint64_t measured;                      /* acknowledged after warm-up */
    struct figures used; /* from the first measured send to the end */
    double whole_s;      /* the same from the first send of all */
    struct latency *all; /* warm-up included */
    bool interrupted;
};

/* A line of progress every reporting interval. */
struct progress {
    FILE *out;
    int64_t window_start_ns;
    uint64_t count, samples, sum_ns; /* when the window began */
};

void progress_start(struct progress *p, FILE *out);
/* Prints if it is time to; cheap otherwise. */
void progress_tick(struct progress *p, struct run *run);

/* The closing lines. */
void output_summary(FILE *out, struct run *run, const struct outcome *r);
/* What went wrong, if anything did. */
void output_complaints(const struct run *run, const struct outcome *r);
/* False: the file cannot be written; says so. */
bool output_json(const struct run *run, const struct outcome *r);

#endif
