/* SPDX-License-Identifier: BSD-2-Clause */
/* producers.c - what one replica remembers of idempotent producers.
 *
 * Kafka's ProducerStateManager, ProducerStateEntry and ProducerAppendInfo: the
 * last five batches of each producer id, found again by exact range; any first
 * sequence is accepted from a producer that is not known.  Open addressing with
 * a fixed hash, so that a run repeats exactly. */
#include <string.h>

#include "test/broker/internal.h"

#define NO_EPOCH (-1)
#define ERROR_OUT_OF_ORDER 45
#define ERROR_INVALID_EPOCH 47

static size_t slot_of(const struct kb_producers *p, int64_t id)
{
    uint64_t h = (uint64_t)id * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(h >> 32) & (p->capacity - 1);
}

/* The slot of id, or the free one where it would go. */
static struct kb_producer *probe(const struct kb_producers *p, int64_t id)
{
    size_t at = slot_of(p, id);

    while (p->slots[at].id != -1 && p->slots[at].id != id)
        at = (at + 1) & (p->capacity - 1);
    return &p->slots[at];
}

static void resize(struct kb_producers *p, size_t capacity)
{
    struct kb_producers old = *p;
    size_t i;

    p->capacity = capacity;
    p->slots = kb_alloc(capacity * sizeof(p->slots[0]));
    for (i = 0; i < capacity; i++)
        p->slots[i].id = -1;
    for (i = 0; i < old.capacity; i++)
        if (old.slots[i].id != -1)
            *probe(p, old.slots[i].id) = old.slots[i];
    kb_free(old.slots);
}

struct kb_producer *kb_producer_find(const struct kb_producers *p, int64_t id)
{
    struct kb_producer *e;

    if (p->capacity == 0 || id == -1)
        return NULL;
    e = probe(p, id);
    return e->id == id ? e : NULL;
}

struct kb_producer *kb_producer_get(struct kb_producers *p, int64_t id)
{
    struct kb_producer *e = kb_producer_find(p, id);

    if (e != NULL)
        return e;
    if ((p->used + 1) * 2 > p->capacity)
        resize(p, p->capacity == 0 ? 4 : p->capacity * 2);
    e = probe(p, id);
    memset(e, 0, sizeof(*e));
    e->id = id;
    e->epoch = NO_EPOCH;
    p->used++;
    return e;
}

void kb_producer_drop(struct kb_producers *p, int64_t id)
{
    struct kb_producers old = *p;
    size_t i;

    memset(p, 0, sizeof(*p));
    for (i = 0; id != -1 && i < old.capacity; i++)
        if (old.slots[i].id != -1 && old.slots[i].id != id)
            *kb_producer_get(p, old.slots[i].id) = old.slots[i];
    kb_free(old.slots);
}

void kb_producers_copy(struct kb_producers *to, const struct kb_producers *from)
{
    kb_free(to->slots);
    *to = *from;
    to->slots =
        from->capacity == 0
            ? NULL
            : kb_memdup(from->slots, from->capacity * sizeof(from->slots[0]));
}

void kb_producers_fini(struct kb_producers *p)
{
    kb_free(p->slots);
    memset(p, 0, sizeof(*p));
}

int32_t kb_sequence_add(int32_t sequence, int32_t n)
{
    int64_t sum = (int64_t)sequence + n;

    return (int32_t)(sum > INT32_MAX ? sum - INT32_MAX - 1 : sum);
}

const struct kb_producer_batch *kb_producer_duplicate(
    const struct kb_producer *p, const struct record_batch_header *h)
{
    int32_t last = kb_sequence_add(h->base_sequence, h->last_offset_delta);
    int i;

    if (p == NULL || p->epoch != h->producer_epoch)
        return NULL;
    for (i = 0; i < p->count; i++)
        if (p->batches[i].first_sequence == h->base_sequence &&
            p->batches[i].last_sequence == last)
            return &p->batches[i];
    return NULL;
}

int16_t kb_producer_check(const struct kb_producer *p,
                          const struct record_batch_header *h)
{
    int32_t last;

    if (p == NULL || p->epoch == NO_EPOCH)
        return 0;
    if (h->producer_epoch < p->epoch)
        return ERROR_INVALID_EPOCH;
    if (h->producer_epoch > p->epoch)
        return h->base_sequence == 0 ? 0 : ERROR_OUT_OF_ORDER;
    last = p->count > 0 ? p->batches[p->count - 1].last_sequence : -1;
    if (h->base_sequence == (int64_t)last + 1 ||
        (h->base_sequence == 0 && last == INT32_MAX))
        return 0;
    return ERROR_OUT_OF_ORDER;
}

void kb_producer_add(struct kb_producers *p,
                     const struct record_batch_header *h, int64_t base_offset,
                     int64_t timestamp_ms)
{
    struct kb_producer *e = kb_producer_get(p, h->producer_id);
    struct kb_producer_batch *b;

    if (e->epoch != h->producer_epoch) {
        e->epoch = h->producer_epoch;
        e->count = 0;
    }
    if (e->count == 5) {
        memmove(&e->batches[0], &e->batches[1], 4 * sizeof(e->batches[0]));
        e->count--;
    }
    b = &e->batches[e->count++];
    b->first_sequence = h->base_sequence;
    b->last_sequence = kb_sequence_add(h->base_sequence, h->last_offset_delta);
    b->first_offset = base_offset;
    b->last_offset = base_offset + h->last_offset_delta;
    b->timestamp_ms = timestamp_ms;
}
