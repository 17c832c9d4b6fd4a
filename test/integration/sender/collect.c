/* SPDX-License-Identifier: BSD-2-Clause */
/* collect.c - reports into the journal.  entry_report runs on whichever thread
 * the report comes to; each entry has one report, so one writer. */
#include "test/integration/sender/collect.h"

#include <stdlib.h>

#include "test/integration/sender/clock.h"

void entry_report(const kp_report *report)
{
    struct entry *e = report->tag;
    e->report_ns = monotonic_ns();
    e->offset = report->offset;
    e->report_ms = report->timestamp_ms;
    e->err = report->err;
    e->cause = report->cause;
    e->partition = report->partition;
    e->stored = (uint16_t)report->stored;
    e->reports++;
}

static bool reaper_take(struct reaper *r, kp_future *future)
{
    pthread_mutex_lock(&r->lock);
    while (r->count == 0 && !r->ended)
        pthread_cond_wait(&r->changed, &r->lock);
    bool some = r->count != 0;
    if (some)
        *future = r->ring[r->head];
    pthread_mutex_unlock(&r->lock);
    return some;
}

/* The place is given back after the wait, so `capacity` bounds what is
 * outstanding and not only what is queued here. */
static void reaper_done(struct reaper *r)
{
    pthread_mutex_lock(&r->lock);
    r->head = (r->head + 1) % r->capacity;
    r->count--;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void *reaper_main(void *arg)
{
    struct reaper *r = arg;
    kp_future future;
    kp_report report;
    while (reaper_take(r, &future)) {
        (void)kp_future_wait(&future, KP_FOREVER, &report);
        entry_report(&report);
        kp_future_release(&future, 1);
        reaper_done(r);
    }
    return NULL;
}

bool reaper_start(struct reaper *r, size_t capacity)
{
    r->ring = calloc(capacity, sizeof *r->ring);
    r->capacity = capacity;
    r->head = r->count = 0;
    r->ended = false;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    return r->ring != NULL &&
           pthread_create(&r->thread, NULL, reaper_main, r) == 0;
}

void reaper_give(struct reaper *r, kp_future future)
{
    pthread_mutex_lock(&r->lock);
    while (r->count == r->capacity)
        pthread_cond_wait(&r->changed, &r->lock);
    r->ring[(r->head + r->count++) % r->capacity] = future;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

void reaper_stop(struct reaper *r)
{
    pthread_mutex_lock(&r->lock);
    r->ended = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r->ring);
}

static void *poller_main(void *arg)
{
    struct poller *p = arg;
    kp_report reports[256];
    for (;;) {
        bool last = p->ended; /* looked at first: then nothing is missed */
        size_t n = kp_cq_poll(p->queue, reports, 256, last ? 0 : 100);
        for (size_t i = 0; i < n; i++)
            entry_report(&reports[i]);
        if (last && n == 0)
            return NULL;
    }
}

bool poller_start(struct poller *p)
{
    p->ended = false;
    return kp_cq_create(&p->queue, NULL) == KP_OK &&
           pthread_create(&p->thread, NULL, poller_main, p) == 0;
}

void poller_stop(struct poller *p)
{
    p->ended = true;
    kp_cq_wakeup(p->queue);
    pthread_join(p->thread, NULL);
    kp_cq_destroy(p->queue);
}
