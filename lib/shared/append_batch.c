/* SPDX-License-Identifier: BSD-2-Clause */
/* append_batch.c - the open batch grows, begins and ends.  Application threads,
 * under the queue's lock.
 *
 * Invariant: nothing here allocates or fails: whatever a batch is made of is in
 * hand, as the queue's spare chunk or in the grant.  Java:
 * RecordAccumulator.appendNewBatch, ProducerBatch.tryAppend. */
#include "lib/shared/append.h"

#include "lib/wire/record_batch.h"

/* -- Growing -- */

static bool has_room(const struct chunk *c, size_t size)
{
    return c != NULL && c->capacity >= size;
}

bool kp__attempt_can_grow(const struct attempt *t)
{
    if ((t->lacks & LACKS_BATCH) != 0)
        return false;
    if ((t->lacks & LACKS_CHUNK) != 0 && !has_room(t->q->spare, t->size) &&
        !has_room(t->grant.data, t->size))
        return false;
    return (t->lacks & LACKS_SLOTS) == 0 || t->grant.slots != NULL;
}

static struct chunk *pop_chunk(struct chunk **list)
{
    struct chunk *c = *list;

    *list = c->next;
    c->next = NULL;
    return c;
}

static void add_chunk(struct partition_queue *q, struct chunk *c)
{
    struct batch *b = q->open;

    b->last_chunk->used = (uint32_t)(q->at - b->last_chunk->data);
    b->last_chunk->next = c;
    b->last_chunk = c;
    q->at = c->data;
    q->limit = c->data + c->capacity;
}

void kp__attempt_grow(struct attempt *t)
{
    struct partition_queue *q = t->q;

    if ((t->lacks & LACKS_CHUNK) != 0) {
        if (has_room(q->spare, t->size)) {
            add_chunk(q, pop_chunk(&q->spare));
        } else {
            add_chunk(q, pop_chunk(&t->grant.data));
            t->used_data = true;
        }
    }
    if ((t->lacks & LACKS_SLOTS) != 0) {
        kp__batch_add_slots(q->open, t->grant.slots);
        t->grant.slots = NULL;
    }
}

/* -- Beginning -- */

/* How much uncompressed the next batch of q takes. */
static size_t raw_limit(const struct record_accumulator *a,
                        const struct partition_queue *q)
{
    size_t limit = a->batch_size;

    if (a->compresses) {
        limit = (size_t)((float)limit * q->ratio);
        if (limit > a->max_request_size)
            limit = a->max_request_size;
        if (limit > a->raw_max)
            limit = a->raw_max;
    }
    limit =
        limit > RECORD_BATCH_HEADER_SIZE ? limit - RECORD_BATCH_HEADER_SIZE : 0;
    return q->raw_cap > 0 && q->raw_cap < limit ? q->raw_cap : limit;
}

bool kp__attempt_can_open(const struct attempt *t)
{
    return (t->grant.batch != NULL || t->grant.batch_due) &&
           t->grant.data != NULL &&
           (!t->has_report || t->grant.slots != NULL);
}

void kp__attempt_open(struct attempt *t)
{
    struct batch *b = t->grant.batch;
    struct partition_queue *q = t->q;

    t->grant.batch = NULL;
    kp__result_init(b->result, t->x->topic->name, q->partition);
    kp__node_init(&b->link);
    kp__node_init(&b->order_link);
    b->chunks = b->last_chunk = pop_chunk(&t->grant.data);
    t->used_data = true;
    b->created_ns = t->granted_ns;
    b->base_timestamp_ms = b->max_timestamp_ms = t->now.timestamp_ms;
    b->base_sequence = -1;
    /* relaxed: published with the queue's lock */
    atomic_store_explicit(&b->refs, 2, memory_order_relaxed);
    q->raw_limit = raw_limit(t->a, q);
    kp__queue_open_locked(q, b);
    t->opened = true;
}

/* -- Ending -- */

void kp__attempt_seal(struct attempt *t)
{
    bool claim = t->x->may_wait;
    struct batch *b =
        kp__queue_seal_locked(t->q, claim ? PLACE_COMPRESSING : PLACE_SEALED);

    if (claim) {
        KP_CHECK(t->sealed_count < SEALED_MAX);
        t->sealed[t->sealed_count++] = b;
        return;
    }
    t->left_sealed = true;
    kp__drain_push(t->a, t->q);
}
