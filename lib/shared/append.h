/* SPDX-License-Identifier: BSD-2-Clause */
/* append.h - what the files of an append share: nobody else includes it.
 *
 * append.c: the usual one.  append_slow.c: one that lacks something, step by
 * step.  append_batch.c: the open batch grows, begins and ends.
 * append_memory.c: what is asked of the pool. */
#ifndef KP_SHARED_APPEND_H
#define KP_SHARED_APPEND_H

#include "lib/shared/record_accumulator.h"

/* The time of an append, as far as it was read. */
struct append_now {
    int64_t timestamp_ms; /* of the record */
    int64_t coarse_ns;    /* with a codec; else 0 */
};

/* The open batch of q is past its linger and next in line, which with a codec
 * is worth the time of the thread that appends to it. */
static inline bool kp__append_past_linger(const struct record_accumulator *a,
                                          const struct partition_queue *q,
                                          const struct append_now *now)
{
    return a->compresses && a->linger_ns > 0 && q->batch_count == 1 &&
           now->coarse_ns - q->open->created_ns >= a->linger_ns;
}

/* A record of `size` bytes was written to b as its next.  has_report: it is
 * called back or posted. */
static inline void kp__append_count(struct append *x, struct batch *b,
                                    size_t size, int64_t timestamp_ms,
                                    bool has_report)
{
    x->result = b->result;
    x->index = b->record_count++;
    b->raw_size += size;
    if (size > b->max_record_size)
        b->max_record_size = (uint32_t)size;
    if (timestamp_ms > b->max_timestamp_ms)
        b->max_timestamp_ms = timestamp_ms;
    if (x->want_future) {
        b->reports.future_refs++;
        if (has_report)
            b->reports.future_and_callback = true;
    } else if (!has_report) {
        b->reports.unwatched++;
    }
}

/* -- append_slow.c -- */
/* Go on with q, which is locked (NULL: x has waited for memory), to the end
 * that kp__append_try promises. */
kp_err kp__append_slow(struct record_accumulator *a, struct append *x,
                       struct partition_queue *q, const struct append_now *now,
                       bool hopped);

/* -- one append that lacks something -- */

#define LACKS_CHUNK 1u
#define LACKS_SLOTS 2u
#define LACKS_BATCH 4u /* there is none, or it takes no more */

/* While the lock is held: one to begin another, and that if it is full. */
#define SEALED_MAX 2

struct attempt {
    /* the record */
    struct record_accumulator *a;
    struct append *x;
    const kp_record *r;
    struct append_now now;
    bool has_report;

    /* its queue: locked, but while the pool is asked */
    struct partition_queue *q;
    bool hopped; /* see sticky.h */

    /* what the last look found; good while the lock is held */
    unsigned lacks;
    int64_t delta_ms;
    size_t body, size; /* of the record in the open batch */

    /* memory in hand */
    struct pool_grant grant;
    bool granted;   /* there is a grant, perhaps used */
    bool used_data; /* its first chunk of data is in use */
    bool opened;    /* a batch was opened with it */
    int64_t granted_ns;

    /* owed: to be done as soon as the lock is let go */
    struct batch *sealed[SEALED_MAX]; /* and claimed: to be compressed */
    unsigned sealed_count;
    bool left_sealed; /* one that the I/O thread is to compress */
};

/* What the producer says instead of taking a record; KP_OK: it takes it. */
static inline kp_err kp__attempt_taking_err(const struct attempt *t)
{
    /* relaxed: read under the queue's lock, which whoever changes it takes next,
     * or after the pool has said that it is closed, which it said later */
    uint32_t taking = atomic_load_explicit(&t->a->taking, memory_order_relaxed);

    if (KP_LIKELY(taking == TAKING_RECORDS))
        return KP_OK;
    if (taking == TAKING_CLOSED)
        return KP_ECLOSED;
    return (kp_err)atomic_load_explicit(&t->a->fatal_err, memory_order_relaxed);
}

/* What follows is called, and returns, with the queue locked, if nothing else
 * is said. */

/* -- append_batch.c -- */
/* What the open batch lacks can be made up from the queue's spare chunk and the
 * grant. */
bool kp__attempt_can_grow(const struct attempt *t);
void kp__attempt_grow(struct attempt *t);
/* A new batch can be opened with the grant. */
bool kp__attempt_can_open(const struct attempt *t);
void kp__attempt_open(struct attempt *t);
/* The open batch takes no more.  It is this thread's to compress, or, if this
 * thread may not wait, the I/O thread's. */
void kp__attempt_seal(struct attempt *t);

/* -- append_memory.c -- */
/* Let go of the lock and ask the pool for what is lacking.  KP_OK: locked
 * again, with a grant; else the append ends or waits. */
kp_err kp__attempt_ask(struct attempt *t);
/* Make the batch that the grant is due.  The lock is let go of meanwhile: look
 * again.  An error ends the append, without the lock. */
kp_err kp__attempt_make_batch(struct attempt *t);
/* One that waits in the pool's line looks whether its turn has come; not
 * locked before.  As kp__attempt_ask. */
kp_err kp__attempt_resume(struct attempt *t);
/* Unlock, then do what is owed: compress, tell the I/O thread, give back what
 * the grant brought and was not used. */
void kp__attempt_let_go(struct attempt *t);

/* x has waited for the backlog.  No lock. */
void kp__append_braked(struct record_accumulator *a, struct append *x);

#endif
