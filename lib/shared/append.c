/* SPDX-License-Identifier: BSD-2-Clause */
/* append.c - one record into its partition's open batch.  Application threads,
 * any number at once: this is the inner loop of a send.
 *
 * The usual append takes one lock, encodes, and is done: no allocation, no
 * system call, nothing written that senders to other partitions write.
 * Whatever is not usual goes on in append_slow.c with the lock held.
 * Invariant: a record is written only where it fits with all that it could
 * need, so that the usual append need not measure it first. */
#include "lib/shared/append.h"

#include "lib/base/clock.h"
#include "lib/shared/sticky.h"
#include "lib/wire/record.h"

/* A record's bytes besides its length, key and value, at least and at most:
 * attributes, timestamp delta, offset delta, two lengths, header count. */
#define AROUND_MIN 6
#define AROUND_MAX 27
#define LENGTH_MAX 3 /* bytes of the record's length, of those that are usual */

/* Smaller ones the processor fetches by itself. */
#define AHEAD_MIN ((size_t)256)
#define AHEAD_MAX ((size_t)2048)
#define AHEAD_LINE 64

/* Bytes that the length of a record with so much key and value takes; 0: it
 * depends on the rest, or the record is large. */
static inline size_t length_bytes(size_t payload)
{
    if (payload + AROUND_MAX < 64)
        return 1;
    if (payload + AROUND_MIN >= 64 && payload + AROUND_MAX < 8192)
        return 2;
    if (payload + AROUND_MIN >= 8192 && payload + AROUND_MAX < 1048576)
        return 3;
    return 0;
}

static inline size_t payload_of(const kp_record *r)
{
    return (r->key.data != NULL ? r->key.size : 0) +
           (r->value.data != NULL ? r->value.size : 0);
}

/* Write a record without headers, whose length is known to take `length` bytes.
 * */
static inline uint8_t *encode(uint8_t *at, size_t length, const kp_record *r,
                              int64_t delta_ms, int32_t index)
{
    uint8_t *body = at + length, *end = body;

    *end++ = 0; /* attributes */
    end = kp__varlong_put(end, delta_ms);
    end = kp__varint_put(end, index);
    end = kp__record_bytes_put(end, r->key);
    end = kp__record_bytes_put(end, r->value);
    *end++ = 0; /* no headers */
    (void)kp__varint_put(at, (int32_t)(end - body));
    return end;
}

/* Append to the open batch of q, which is locked.  Returns the record's size; 0
 * if it is not that simple: then nothing has changed. */
static inline size_t put_usual(const struct record_accumulator *a,
                               struct append *x, struct partition_queue *q,
                               const struct append_now *now)
{
    const kp_record *r = x->record;
    size_t payload = payload_of(r), length = length_bytes(payload);
    size_t most = payload + AROUND_MAX + LENGTH_MAX;
    struct batch *b = q->open;
    size_t size;

    /* relaxed: read under the queue's lock, which whoever changes it takes next
     * */
    if (atomic_load_explicit(&a->taking, memory_order_relaxed) !=
            TAKING_RECORDS ||
        b == NULL || length == 0 || r->header_count != 0)
        return 0;
    if (most > (size_t)(q->limit - q->at) ||
        b->raw_size + most > q->raw_limit || kp__append_past_linger(a, q, now))
        return 0;
    if (r->on_delivery != NULL || b->reports.slot != NULL) {
        if (!kp__batch_has_slot_room(b))
            return 0;
        if (r->queue != NULL && b->reports.post_count == BATCH_MAX_CQS)
            return 0; /* perhaps a fifth */
        if (KP_LIKELY(r->on_delivery != NULL))
            kp__batch_put_target(b, (uintptr_t)r->on_delivery, r->tag);
        else
            kp__batch_put_slot(b, r);
    } else if (r->queue != NULL) {
        return 0;
    }
    size = (size_t) - (intptr_t)q->at;
    q->at = encode(q->at, length, r, now->timestamp_ms - b->base_timestamp_ms,
                   (int32_t)b->record_count);
    size += (size_t)(intptr_t)q->at;
    kp__append_count(x, b, size, now->timestamp_ms,
                     r->on_delivery != NULL || r->queue != NULL);
    return size;
}

static inline void read_time(const struct record_accumulator *a,
                             const struct append *x, struct append_now *now)
{
    const struct clock *c = a->clock;

    /* The wall clock stamps and decides nothing: it may jump. */
    now->timestamp_ms =
        x->timestamp_ms >= 0 ? x->timestamp_ms : c->wall_ms(c->arg);
    now->coarse_ns = a->compresses ? c->mono_coarse_ns(c->arg) : 0;
}

/* The next record is likely to be as large and to go here: by the time it comes
 * the cache has the lines, and its lock is not held until they have come. */
static inline void fetch_ahead(const uint8_t *at, size_t size)
{
    const uint8_t *end = at + (size < AHEAD_MAX ? size : AHEAD_MAX);

    for (; at < end; at += AHEAD_LINE)
        __builtin_prefetch(at, 1);
}

kp_err kp__append_try(struct record_accumulator *a, struct append *x)
{
    struct partition_queue *q;
    struct append_now now;
    const struct report_slot *slot;
    const uint8_t *at;
    bool hopped = false;
    size_t size;

    if (KP_UNLIKELY(x->braking))
        kp__append_braked(a, x);
    read_time(a, x, &now);
    if (KP_UNLIKELY(x->waiting))
        return kp__append_slow(a, x, NULL, &now, false);
    if (x->partition >= 0) {
        q = kp__topic_view(x->topic)->queues[x->partition];
        kp__mutex_lock(&q->lock);
    } else {
        q = kp__sticky_lock(a, x->topic, &hopped);
    }
    size = put_usual(a, x, q, &now);
    if (KP_UNLIKELY(size == 0))
        return kp__append_slow(a, x, q, &now, hopped);
    if (x->partition < 0) {
        q->sticky_bytes += size;
        if (KP_UNLIKELY(q->sticky_bytes >= 2 * a->batch_size))
            kp__sticky_leave(x->topic, q, hopped);
    }
    at = q->at;
    slot = q->open->reports.slot;
    kp__mutex_unlock(&q->lock);
    if (size >= AHEAD_MIN || x->partition >= 0) {
        fetch_ahead(at, size);
        __builtin_prefetch(slot, 1);
    }
    return KP_OK;
}
