/* SPDX-License-Identifier: BSD-2-Clause */
/* rounds.c - how a sending thread waits for its reports.
 *
 * With --outstanding N it sends N, waits for all N, and so on.  Without, only
 * futures make it wait: they are kept in two blocks, and before one is filled
 * again all of it is waited for.  Invariant: every future taken is released
 * once. */
#include <stdlib.h>

#include "perf/lib/run.h"

/* Futures of all threads together where nothing limits them: more than
 * buffer.memory holds of small records, so that waiting does not slow sends. */
#define FUTURES_MAX ((size_t)1 << 19)
#define FUTURES_MIN ((size_t)1 << 10)

static size_t free_block(const struct options *o)
{
    size_t n = FUTURES_MAX / o->threads / 2;

    if ((uint64_t)o->num_records < n * o->threads)
        n = (size_t)o->num_records / o->threads + 1;
    return n < FUTURES_MIN ? FUTURES_MIN : n;
}

bool rounds_init(struct worker *w)
{
    const struct options *o = w->run->o;

    if (sem_init(&w->arrived, 0, 0) != 0)
        return false;
    if (o->reports != REPORTS_FUTURE)
        return true;
    w->blocks = o->outstanding != 0 ? 1 : 2;
    w->block = o->outstanding != 0 ? o->outstanding : free_block(o);
    w->futures = calloc(w->block * w->blocks, sizeof(*w->futures));
    return w->futures != NULL;
}

void rounds_fini(struct worker *w)
{
    free(w->futures);
    (void)sem_destroy(&w->arrived);
}

size_t rounds_room(const struct worker *w)
{
    size_t outstanding = w->run->o->outstanding;

    if (w->futures != NULL)
        return w->block - w->used[w->current];
    return outstanding != 0 ? outstanding - w->in_round : SIZE_MAX;
}

kp_future *rounds_futures(const struct worker *w)
{
    if (w->futures == NULL)
        return NULL;
    return w->futures + w->current * w->block + w->used[w->current];
}

static void collect(struct worker *w, size_t b)
{
    kp_future *f = w->futures + b * w->block;
    size_t n = w->used[b];
    kp_report report;

    if (n == 0)
        return;
    /* All are waited for, and then each is asked for its own result, as the
     * other clients' are. */
    (void)kp_future_wait_all(f, n, KP_FOREVER);
    for (size_t i = 0; i < n; i++) {
        if (kp_future_wait(&f[i], KP_FOREVER, NULL) == KP_OK) {
            counter_add(&w->tally.acked, 1);
            continue;
        }
        (void)kp_future_wait(&f[i], KP_FOREVER, &report);
        reports_count(w->run, &w->tally, &report);
    }
    kp_future_release(f, n);
    w->used[b] = 0;
}

static void wait_for_callbacks(struct worker *w)
{
    uint64_t sent = counter_get(&w->taken);

    /* Sequentially consistent: see on_awaited_report. */
    atomic_store(&w->wanted, sent);
    while (atomic_load(&w->done) < sent)
        (void)sem_wait(&w->arrived);
}

static void wait_for_queue(struct worker *w)
{
    while (w->in_round > 0)
        w->in_round -= reports_poll(w->run, &w->tally, w->queue, 1000);
}

static void wait_for_round(struct worker *w)
{
    switch (w->run->o->reports) {
    case REPORTS_FUTURE:
        collect(w, w->current);
        break;
    case REPORTS_CALLBACK:
        wait_for_callbacks(w);
        break;
    case REPORTS_QUEUE:
        wait_for_queue(w);
        break;
    default:
        (void)kp_flush(w->run->producer, KP_FOREVER, NULL);
        break;
    }
    w->in_round = 0;
}

void rounds_after(struct worker *w, size_t taken)
{
    w->in_round += taken;
    if (w->futures != NULL)
        w->used[w->current] += taken;
    if (rounds_room(w) > 0)
        return;
    if (w->blocks < 2) {
        wait_for_round(w);
        return;
    }
    /* What was sent before the block just filled should be done by now. */
    w->current = 1 - w->current;
    collect(w, w->current);
}

void rounds_settle(struct worker *w)
{
    if (w->blocks == 2)
        collect(w, 1 - w->current);
    if (w->futures != NULL || w->run->o->outstanding != 0)
        wait_for_round(w);
}
