/* SPDX-License-Identifier: BSD-2-Clause */
/* append_memory.c - what an append asks of the pool, and what it owes once it
 * has let go of its queue.  Application threads, any number at once.
 *
 * Invariant: the pool is asked, and waited for, with no lock, no chunk and no
 * uncompressed batch in hand. */
#include "lib/shared/append.h"

#include "lib/base/clock.h"
#include "lib/wire/record.h"

#define SMALL_SLOT_PAGES 4 /* then full ones */

/* -- What is owed -- */

static void compress_sealed(struct attempt *t)
{
    for (unsigned i = 0; i < t->sealed_count; i++) {
        struct batch *b = t->sealed[i];
        struct compressor *k = kp__compressors_take(t->a->compressors);

        if (k != NULL)
            kp__compress_and_finish(t->a, b, k);
        else
            kp__queue_unclaim(b->queue, b);
        kp__io_wake(t->a->bell, 0);
    }
    t->sealed_count = 0;
}

/* A batch that the I/O thread has to compress. */
static void announce_sealed(struct attempt *t)
{
    if (!t->left_sealed)
        return;
    t->left_sealed = false;
    kp__io_wake(t->a->bell, 0);
}

/* Give back what the grant brought and was not used. */
static void drop_grant(struct attempt *t)
{
    if (!t->granted)
        return;
    t->granted = t->used_data = false;
    kp__pool_give_grant(t->a->pool, t->q, &t->grant);
}

void kp__attempt_let_go(struct attempt *t)
{
    kp__mutex_unlock(&t->q->lock);
    compress_sealed(t);
    announce_sealed(t);
    drop_grant(t);
}

/* -- What is asked for -- */

static bool want_full_slots(const struct batch *b)
{
    unsigned pages = 0;

    for (const struct chunk *c = b->reports.slots; c != NULL; c = c->next)
        if (++pages >= SMALL_SLOT_PAGES)
            return true;
    return false;
}

/* What is needed to go on; under the lock.  The size is that of a batch's first
 * record, or of this one's in the open batch. */
static void need_of(const struct attempt *t, struct pool_need *need)
{
    *need = (struct pool_need){0};
    if ((t->lacks & LACKS_BATCH) != 0) {
        need->record_size = kp__record_size(t->r, 0, 0);
        need->small = !t->q->outgrew_small;
        need->slots = t->has_report;
        need->batch = true;
        return;
    }
    if ((t->lacks & LACKS_CHUNK) != 0)
        need->record_size = t->size;
    need->slots = (t->lacks & LACKS_SLOTS) != 0;
    need->full_slots = need->slots && want_full_slots(t->q->open);
}

/* Who has to wait asks for all that it could need when its turn comes: the open
 * batch may be gone by then. */
static void need_everything(const struct attempt *t, struct pool_need *need)
{
    need->batch = true;
    need->slots = need->slots || t->has_report;
    if (need->record_size == 0)
        need->record_size = t->size;
}

/* -- The brake -- */

void kp__append_braked(struct record_accumulator *a, struct append *x)
{
    x->braking = false;
    kp__pool_note_waited(a->pool, kp__brake_end(&a->backlog, &x->brake));
}

/* Once an append. */
static bool brakes(struct attempt *t)
{
    struct append *x = t->x;

    if (!x->may_brake)
        return false;
    x->may_brake = false;
    x->braking = kp__brake_begin(&t->a->backlog, &x->brake, &x->ticket);
    return x->braking;
}

/* -- What the pool says -- */

static kp_err refused(struct attempt *t, const struct pool_need *need)
{
    kp__pool_note_exhausted(t->a->pool);
    if (t->r->queue != NULL)
        kp__pool_want_retry(t->a->pool, t->q, need, t->r->queue);
    /* What lingers is now wanted back. */
    kp__io_look(t->a->bell);
    return KP_EBUFFER;
}

static kp_err granted(struct attempt *t)
{
    t->granted = true;
    /* Read after the wait and before the lock. */
    t->granted_ns = t->now.coarse_ns = kp__now_ns(t->a->clock);
    if (t->x->timestamp_ms < 0)
        t->now.timestamp_ms = t->a->clock->wall_ms(t->a->clock->arg);
    kp__mutex_lock(&t->q->lock);
    return KP_OK;
}

static kp_err waits(struct attempt *t)
{
    struct append *x = t->x;

    kp__backlog_pressed(&t->a->backlog);
    x->queue = t->q;
    x->ticket = kp__pool_ticket(t->a->pool, &x->waiter, x->deadline_ns);
    return KP_PENDING;
}

static kp_err answered(struct attempt *t, enum pool_answer answer)
{
    kp_err err;

    t->x->waiting = answer == POOL_WAIT;
    switch (answer) {
    case POOL_GRANTED:
        return granted(t);
    case POOL_WAIT:
        return waits(t);
    case POOL_CLOSED:
        err = kp__attempt_taking_err(t);
        return err != KP_OK ? err : KP_ECLOSED;
    case POOL_NOMEM:
        return KP_ENOMEM;
    case POOL_FULL:
        break;
    }
    return KP_EBUFFER;
}

static enum pool_answer ask(struct attempt *t, const struct pool_need *need,
                            bool may_wait)
{
    return kp__pool_try(t->a->pool, t->q, need, may_wait,
                        may_wait ? kp__now_ns(t->a->clock) : 0, &t->x->waiter,
                        &t->grant);
}

kp_err kp__attempt_make_batch(struct attempt *t)
{
    bool ok;

    /* What was sealed to make place first of all: by the time the lock is taken
     * again there may be another open batch to seal. */
    kp__mutex_unlock(&t->q->lock);
    compress_sealed(t);
    announce_sealed(t);
    ok = kp__pool_make_batch(t->a->pool, &t->grant);
    kp__mutex_lock(&t->q->lock);
    if (ok)
        return KP_OK;
    kp__attempt_let_go(t);
    return KP_ENOMEM;
}

kp_err kp__attempt_ask(struct attempt *t)
{
    enum pool_answer answer;
    struct pool_need need;

    need_of(t, &need);
    kp__attempt_let_go(t);
    if (need.batch && brakes(t))
        return KP_PENDING;
    t->x->waiter.joined = false;
    /* Behind others there is nothing to be had at once. */
    answer = t->x->may_wait && kp__pool_has_line(t->a->pool)
                 ? POOL_FULL
                 : ask(t, &need, false);
    if (answer == POOL_FULL) {
        if (!t->x->may_wait)
            return refused(t, &need);
        need_everything(t, &need);
        answer = ask(t, &need, true);
        if (answer == POOL_WAIT)
            kp__io_look(t->a->bell);
    }
    return answered(t, answer);
}

kp_err kp__attempt_resume(struct attempt *t)
{
    t->q = t->x->queue;
    return answered(t, ask(t, &t->x->waiter.need, true));
}

kp_err kp__append_give_up(struct record_accumulator *a, struct append *x)
{
    if (x->braking)
        kp__append_braked(a, x);
    if (x->waiting) {
        kp__pool_leave(a->pool, &x->waiter, kp__now_ns(a->clock));
        kp__pool_note_exhausted(a->pool);
        x->waiting = false;
    }
    return KP_EBUFFER;
}
