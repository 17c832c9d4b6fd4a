/* SPDX-License-Identifier: BSD-2-Clause */
/* gate.c - a mutex and two conditions.  Any thread. */
#include "perf/lib/gate.h"

#include "perf/lib/pace.h"

void gate_init(struct gate *g)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&g->mutex, NULL);
    (void)pthread_cond_init(&g->arrival, &attr);
    (void)pthread_cond_init(&g->opening, &attr);
    (void)pthread_condattr_destroy(&attr);
    g->arrived = 0;
    g->opened = 0;
}

void gate_fini(struct gate *g)
{
    (void)pthread_cond_destroy(&g->arrival);
    (void)pthread_cond_destroy(&g->opening);
    (void)pthread_mutex_destroy(&g->mutex);
}

void gate_arrive(struct gate *g)
{
    (void)pthread_mutex_lock(&g->mutex);
    g->arrived++;
    (void)pthread_cond_signal(&g->arrival);
    (void)pthread_mutex_unlock(&g->mutex);
}

void gate_wait_open(struct gate *g, unsigned phase)
{
    (void)pthread_mutex_lock(&g->mutex);
    while (g->opened < phase)
        (void)pthread_cond_wait(&g->opening, &g->mutex);
    (void)pthread_mutex_unlock(&g->mutex);
}

bool gate_wait_arrived(struct gate *g, unsigned count, long ms)
{
    struct timespec until = pace_timespec(pace_now_ns() + ms * 1000000L);
    bool all;
    int r = 0;

    (void)pthread_mutex_lock(&g->mutex);
    while (g->arrived < count && r == 0)
        r = pthread_cond_timedwait(&g->arrival, &g->mutex, &until);
    all = g->arrived >= count;
    (void)pthread_mutex_unlock(&g->mutex);
    return all;
}

void gate_open(struct gate *g)
{
    (void)pthread_mutex_lock(&g->mutex);
    g->opened++;
    (void)pthread_cond_broadcast(&g->opening);
    (void)pthread_mutex_unlock(&g->mutex);
}
