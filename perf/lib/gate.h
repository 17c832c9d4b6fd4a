/* SPDX-License-Identifier: BSD-2-Clause */
/* gate.h - where sending threads meet the main thread between two phases.  The
 * main thread waits a little at a time, so that it can do other things. */
#ifndef KP_PERF_GATE_H
#define KP_PERF_GATE_H

#include <pthread.h>
#include <stdbool.h>

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t arrival, opening;
    unsigned arrived, opened; /* threads; phases */
};

void gate_init(struct gate *g);
void gate_fini(struct gate *g);
/* A sending thread: say that a phase is done. */
void gate_arrive(struct gate *g);
/* A sending thread: wait until phase number `phase`, from 1, may begin. */
void gate_wait_open(struct gate *g, unsigned phase);
/* The main thread: have `count` arrivals happened?  Waits at most ms. */
bool gate_wait_arrived(struct gate *g, unsigned count, long ms);
void gate_open(struct gate *g);

#endif
