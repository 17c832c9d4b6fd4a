/* SPDX-License-Identifier: BSD-2-Clause */
/* figures.h - what the process and the producer have used so far. */
#ifndef KP_PERF_FIGURES_H
#define KP_PERF_FIGURES_H

#include <stdint.h>
#include <stdio.h>

#include <kp/kp.h>

struct figures {
    int64_t at_ns;
    double cpu_ns, user_ns, system_ns; /* all threads of the process */
    int64_t voluntary, involuntary;    /* context switches */
    double peak_rss_bytes;
    double requests, record_errors; /* of the producer; -1: it does not say */
};

void figures_take(struct figures *f, kp_producer *p);
/* *d gets what was used between the two; peak_rss_bytes is `to`'s. */
void figures_between(struct figures *d, const struct figures *from,
                     const struct figures *to);
/* All of the producer's metrics, a line each, as the Java tool prints them. */
void figures_print_metrics(FILE *out, kp_producer *p);

#endif
