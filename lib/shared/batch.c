/* SPDX-License-Identifier: BSD-2-Clause */
/* batch.c - a batch's moves, its pieces and its end.  Senders under the queue's
 * lock, claimants, the I/O thread; batch.h says who may touch what when.
 *
 * Invariant: memory goes back twice, each time once: the bytes when the place
 * says that nobody reads them, the rest with the last reference. */
#include "lib/shared/batch.h"

#include "lib/shared/cq.h"
#include "lib/shared/partition_queue.h"

_Static_assert(offsetof(struct batch, reports.slots) <= BATCH_ALIGN,
               "an append needs one line of the cache of its batch");

#define BIT(place) (1u << (place))

/* What may follow each place. */
static const unsigned moves[] = {
    [PLACE_OPEN] = BIT(PLACE_SEALED) | BIT(PLACE_GONE),
    [PLACE_SEALED] = BIT(PLACE_COMPRESSING) | BIT(PLACE_GONE),
    /* SEALED again: no compressor was free. */
    [PLACE_COMPRESSING] =
        BIT(PLACE_READY) | BIT(PLACE_SEALED) | BIT(PLACE_GONE),
    [PLACE_READY] = BIT(PLACE_IN_FLIGHT) | BIT(PLACE_GONE),
    [PLACE_IN_FLIGHT] = BIT(PLACE_READY) | BIT(PLACE_GONE),
    [PLACE_GONE] = 0,
};

void kp__batch_move(struct batch *b, enum batch_place to)
{
    KP_CHECK((moves[b->place] & BIT(to)) != 0);
    b->place = to;
}

/* -- Pieces -- */

static size_t body_size(const struct batch *b)
{
    return b->place >= PLACE_READY ? b->wire_size : b->raw_size;
}

size_t kp__batch_iov(const struct batch *b, struct iovec *out, size_t max)
{
    size_t left = body_size(b), n = 0;

    if (b->split.body != NULL && max > 0) {
        out[0].iov_base = (uint8_t *)(uintptr_t)b->split.body;
        out[0].iov_len = left;
        return 1;
    }
    for (struct chunk *c = b->chunks; c != NULL && left > 0 && n < max;
         c = c->next) {
        size_t size = c->used < left ? c->used : left;

        if (size == 0)
            continue;
        out[n].iov_base = c->data;
        out[n].iov_len = size;
        n++;
        left -= size;
    }
    return n;
}

size_t kp__batch_iov_count(const struct batch *b)
{
    size_t n = 0;

    if (b->split.body != NULL)
        return 1;
    for (const struct chunk *c = b->chunks; c != NULL; c = c->next)
        n += c->used > 0;
    return n;
}

/* -- Slots: senders, under the lock -- */

static uintptr_t slot_target(struct batch *b, const kp_record *r)
{
    uint32_t i;

    if (r->on_delivery != NULL)
        return (uintptr_t)r->on_delivery;
    if (r->queue == NULL)
        return 0;
    for (i = 0; i < b->reports.post_count; i++)
        if (b->reports.posts[i].cq == r->queue)
            return i + 1;
    kp__cq_ref(r->queue);
    kp__node_init(&b->reports.posts[i].link);
    b->reports.posts[i].batch = b;
    b->reports.posts[i].cq = r->queue;
    b->reports.post_count++;
    /* relaxed: published with the queue's lock */
    (void)atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return i + 1;
}

void kp__batch_end_slots(struct batch *b)
{
    struct chunk *page = b->reports.last_slots;

    if (page != NULL)
        page->used =
            (uint32_t)((const uint8_t *)b->reports.slot - page->data);
}

void kp__batch_add_slots(struct batch *b, struct chunk *page)
{
    struct batch_reports *r = &b->reports;

    page->next = NULL;
    if (r->slots == NULL) {
        r->slots = page;
        r->slots_from = b->record_count;
    } else {
        kp__batch_end_slots(b);
        r->last_slots->next = page;
    }
    r->last_slots = page;
    r->slot = (void *)page->data;
    r->slot_limit = r->slot + page->capacity / sizeof(*r->slot);
}

void kp__batch_put_slot(struct batch *b, const kp_record *r)
{
    kp__batch_put_target(b, slot_target(b, r), r->tag);
}

/* -- The end -- */

/* The queue that the pool should discharge, if it still is to. */
static struct partition_queue *owner(const struct batch *b)
{
    return b->reports.disowned ? NULL : b->queue;
}

static size_t kept_bytes(const struct batch *b)
{
    size_t bytes = b->charge;

    for (const struct chunk *c = b->reports.slots; c != NULL; c = c->next)
        bytes += c->charge;
    return bytes;
}

void kp__batch_disown(struct batch *b)
{
    if (b->reports.disowned)
        return;
    kp__pool_disown(b->pool, b->queue, kept_bytes(b));
    b->reports.disowned = true;
}

void kp__batch_unref(struct batch *b)
{
    struct chunk *slots;
    struct batch_result *r;

    /* acq_rel: what others did with slots and structures comes before the last
     * one gives them back */
    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    KP_CHECK(b->chunks == NULL);
    r = b->result;
    slots = b->reports.slots;
    b->reports.slots = NULL;
    kp__pool_give(b->pool, owner(b), slots);
    kp__pool_give_batch(b->pool, owner(b), b);
    if (r != NULL)
        kp__result_unref(r, 1);
}

static void release(struct batch *b)
{
    struct chunk *chunks = b->chunks;

    b->chunks = NULL;
    b->last_chunk = NULL;
    kp__pool_give(b->pool, b->queue, chunks);
    kp__batch_unref(b);
}

void kp__batch_release_bytes(struct batch *b)
{
    if (b->abandoned)
        return;
    kp__batch_move(b, PLACE_GONE);
    release(b);
}

void kp__batch_release_abandoned(struct batch *b)
{
    KP_CHECK(b->abandoned);
    release(b);
}
