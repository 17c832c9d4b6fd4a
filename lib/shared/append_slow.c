/* SPDX-License-Identifier: BSD-2-Clause */
/* append_slow.c - appends that lack something: room in the chunk, slots, a
 * batch, memory.  Application threads, any number at once.
 *
 * With its queue locked an append looks, takes one step, and looks again:
 *
 *   PUT        nothing lacks: the record is written, and the append ends
 *   GROW       the open batch gets the chunk or the slots, which are in hand
 *   SEAL       the open batch takes no more
 *   ELSEWHERE  another partition's turn has come (unkeyed): its queue is locked
 *   OPEN       a new batch, from the grant in hand
 *   ASK        let go of the lock, ask the pool; granted: lock, else it waits
 *              (KP_PENDING, and begins here again) or ends
 *   STOP       the producer takes no more: the append ends
 *
 * In words: SEAL, ELSEWHERE, ASK, OPEN, PUT is the longest way to a new batch;
 * ASK, GROW, PUT is the one to another chunk.  While the pool was asked others
 * may have opened, filled or sealed the batch, hence the look.
 *
 * Invariant: whoever seals a batch compresses it before anything that can wait
 * or fail (kp__attempt_let_go); only an append that may not wait leaves that to
 * the I/O thread.  Java: RecordAccumulator.append. */
#include "lib/base/clock.h"
#include "lib/shared/append.h"
#include "lib/shared/sticky.h"
#include "lib/wire/record.h"

enum step {
    STEP_PUT,
    STEP_GROW,
    STEP_SEAL,
    STEP_ELSEWHERE,
    STEP_OPEN,
    STEP_ASK,
    STEP_STOP
};

/* -- Which partition -- */

static bool is_unkeyed(const struct attempt *t)
{
    return t->x->partition < 0;
}

/* Java: BuiltInPartitioner.updatePartitionInfo: after batch.size bytes if that
 * leaves no batch part filled, in any case after twice as many. */
static bool sticky_is_over(const struct attempt *t, bool batch_is_full)
{
    uint64_t bytes = t->q->sticky_bytes, size = t->a->batch_size;

    return is_unkeyed(t) &&
           ((batch_is_full && bytes >= size) || bytes >= 2 * size);
}

static void go_elsewhere(struct attempt *t)
{
    kp__sticky_leave(t->x->topic, t->q, t->hopped);
    kp__attempt_let_go(t);
    t->q = kp__sticky_lock(t->a, t->x->topic, &t->hopped);
}

/* -- The look -- */

static bool has_post_room(const struct batch *b, const struct kp_cq *cq)
{
    if (b->reports.post_count < BATCH_MAX_CQS)
        return true;
    for (uint32_t i = 0; i < BATCH_MAX_CQS; i++)
        if (b->reports.posts[i].cq == cq)
            return true;
    return false;
}

static void measure(struct attempt *t, const struct batch *b)
{
    t->delta_ms = t->now.timestamp_ms - b->base_timestamp_ms;
    t->body = kp__record_body_size(t->r, t->delta_ms, (int32_t)b->record_count);
    t->size = kp__varint_size((int32_t)t->body) + t->body;
}

static unsigned what_lacks(struct attempt *t)
{
    const struct partition_queue *q = t->q;
    const struct batch *b = q->open;
    unsigned lacks = 0;

    if (KP_UNLIKELY(b == NULL))
        return LACKS_BATCH;
    measure(t, b);
    if (KP_UNLIKELY(b->raw_size + t->size > q->raw_limit || q->open_is_old) &&
        b->record_count > 0)
        return LACKS_BATCH;
    if (t->r->queue != NULL && !has_post_room(b, t->r->queue))
        return LACKS_BATCH;
    if (KP_UNLIKELY(t->size > (size_t)(q->limit - q->at)))
        lacks |= LACKS_CHUNK;
    if ((t->has_report || b->reports.slot != NULL) &&
        !kp__batch_has_slot_room(b))
        lacks |= LACKS_SLOTS;
    return lacks;
}

/* A batch was opened here and is empty still: it must get its record, as
 * whoever finds it would send a batch of none.  The lock has been held since
 * the last look at `taking`. */
static bool just_opened(const struct attempt *t)
{
    return t->opened && t->q->open != NULL && t->q->open->record_count == 0;
}

/* Something lacks. */
static enum step next_step(const struct attempt *t)
{
    if (kp__attempt_can_grow(t))
        return STEP_GROW;
    if (t->q->open != NULL) {
        /* A grant for a new batch is used for one: the place in the line is not
         * given up because the open batch lacks something else. */
        bool over = (t->lacks & LACKS_BATCH) != 0 || t->grant.batch != NULL ||
                    t->grant.batch_due;

        return over ? STEP_SEAL : STEP_ASK;
    }
    /* Where to go on with a new batch is a new choice; of one that was sent
     * part filled, too: the next one would be cut in the middle. */
    if (!t->granted && t->q->sticky_bytes > 0 && sticky_is_over(t, true))
        return STEP_ELSEWHERE;
    return kp__attempt_can_open(t) ? STEP_OPEN : STEP_ASK;
}

static enum step look(struct attempt *t)
{
    if (!just_opened(t) && KP_UNLIKELY(kp__attempt_taking_err(t) != KP_OK))
        return STEP_STOP;
    t->lacks = what_lacks(t);
    return KP_LIKELY(t->lacks == 0) ? STEP_PUT : next_step(t);
}

/* -- The record goes in -- */

static void put_record(struct attempt *t)
{
    struct partition_queue *q = t->q;
    struct batch *b = q->open;

    q->at = kp__record_encode(q->at, t->r, t->body, t->delta_ms,
                              (int32_t)b->record_count);
    if (b->reports.slot != NULL)
        kp__batch_put_slot(b, t->r);
    kp__append_count(t->x, b, t->size, t->now.timestamp_ms, t->has_report);
    if (is_unkeyed(t))
        q->sticky_bytes += t->size;
}

/* What a generous grant brought besides stays for the next growth. */
static void keep_spare(struct attempt *t)
{
    struct partition_queue *q = t->q;

    if (!t->used_data || q->spare != NULL || q->open == NULL)
        return;
    q->spare = t->grant.data;
    t->grant.data = NULL;
}

/* The record is in, and its batch is full or was opened, or a grant is in hand:
 * there is more to do than to unlock. */
static void end_with_batch(struct attempt *t, bool full)
{
    int64_t due_ns = kp__ns_add(t->q->open->created_ns, t->a->linger_ns);
    bool announce = t->opened && !full;

    if (full)
        kp__attempt_seal(t);
    if (sticky_is_over(t, full))
        kp__sticky_leave(t->x->topic, t->q, t->hopped);
    keep_spare(t);
    /* Before anyone else can append to the batch: with the lock gone a flush
     * must find the queue on the list. */
    if (announce)
        kp__drain_push(t->a, t->q);
    kp__attempt_let_go(t);
    if (announce)
        kp__io_wake(t->a->bell, due_ns);
}

static void put_and_end(struct attempt *t)
{
    const struct partition_queue *q = t->q;
    bool full;

    put_record(t);
    full = q->open->raw_size >= q->raw_limit ||
           kp__append_past_linger(t->a, q, &t->now);
    if (KP_UNLIKELY(full || t->opened || t->granted)) {
        end_with_batch(t, full);
        return;
    }
    if (KP_UNLIKELY(sticky_is_over(t, false)))
        kp__sticky_leave(t->x->topic, t->q, t->hopped);
    kp__mutex_unlock(&t->q->lock);
}

/* -- The whole -- */

static kp_err stop(struct attempt *t)
{
    kp_err err = kp__attempt_taking_err(t);

    kp__attempt_let_go(t);
    return err;
}

/* With t->q locked. */
static kp_err run(struct attempt *t)
{
    kp_err err;

    for (;;) {
        switch (look(t)) {
        case STEP_PUT:
            put_and_end(t);
            return KP_OK;
        case STEP_GROW:
            kp__attempt_grow(t);
            break;
        case STEP_SEAL:
            kp__attempt_seal(t);
            break;
        case STEP_ELSEWHERE:
            go_elsewhere(t);
            break;
        case STEP_OPEN:
            if (t->grant.batch_due) {
                err = kp__attempt_make_batch(t);
                if (err != KP_OK)
                    return err;
                break; /* another may have opened one meanwhile */
            }
            kp__attempt_open(t);
            break;
        case STEP_ASK:
            err = kp__attempt_ask(t);
            if (err != KP_OK)
                return err;
            break;
        case STEP_STOP:
            return stop(t);
        }
    }
}

/* What a look finds is set by the look. */
static void begin(struct attempt *t, struct record_accumulator *a,
                  struct append *x, const struct append_now *now)
{
    t->a = a;
    t->x = x;
    t->r = x->record;
    t->now = *now;
    t->has_report = t->r->on_delivery != NULL || t->r->queue != NULL;
    t->grant = (struct pool_grant){0};
    t->granted = t->used_data = t->opened = false;
    t->sealed_count = 0;
    t->left_sealed = false;
}

kp_err kp__append_slow(struct record_accumulator *a, struct append *x,
                       struct partition_queue *q, const struct append_now *now,
                       bool hopped)
{
    struct attempt t;
    kp_err err;

    begin(&t, a, x, now);
    t.q = q;
    t.hopped = hopped;
    if (q == NULL) {
        err = kp__attempt_resume(&t);
        if (err != KP_OK)
            return err;
    }
    return run(&t);
}
