/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_accounts.c - what needs cost, and taking and giving.  Application
 * threads and the I/O thread, under the pool's lock but for what says
 * otherwise.
 *
 *   |------------------------ total: buffer.memory -------------------------|
 *   |-- used: granted --|-- idle: free, and resident --|-- not resident ----|
 *   |-------------- limit: of what is used --------------|-- kept aside ----|
 *
 * A need has a cost (blocks, small chunks, a mapping); a grant charges it to
 * used and to its queue, and gives idle memory back to the system (dooms it)
 * where it needs its room; giving back discharges, chunk by chunk, what each
 * was charged with.
 *
 * Invariants: used is the sum of what was granted and not given back, and with
 * a split's overdraft it alone may pass the limit; used and what is idle
 * together never pass the total, but for the rest of one cut block; a queue's
 * held_bytes is its share of used, and unreachable_bytes the sum of the shares
 * of unreachable queues. */
#include "lib/shared/pool_state.h"

#include "lib/base/mem.h"

#define KEPT_BATCHES_MAX 64 /* structures kept for the next batches */
#define EXTRA_BLOCKS_MAX 7  /* in one grant, besides what was asked for */

/* -- What a need costs -- */

static size_t data_room(size_t chunk_size)
{
    return chunk_size - sizeof(struct chunk);
}

/* A need of `blocks` whole chunks, and of what comes with them, can be met at
 * all: a small pool, or one that keeps much aside, makes do with less. */
static bool can_have(const struct buffer_pool *p, size_t blocks)
{
    return p->arena.block_count >= blocks &&
           p->limit >=
               blocks * CHUNK_SIZE + CHUNK_SMALL_SIZE + BATCH_CHARGE;
}

static void cost_slots(const struct buffer_pool *p, const struct pool_need *n,
                       struct cost *c)
{
    if (!n->slots)
        return;
    c->slots =
        n->full_slots && can_have(p, 2) ? CHUNK_IS_BLOCK : CHUNK_IS_SMALL;
    if (c->slots == CHUNK_IS_BLOCK)
        c->blocks++;
    else
        c->small++;
}

static void cost_data(const struct buffer_pool *p, const struct pool_need *n,
                      struct cost *c)
{
    size_t size = n->record_size;

    if (size == 0)
        return;
    if (size <= data_room(CHUNK_SMALL_SIZE) &&
        (n->small || !can_have(p, 1))) {
        c->data = CHUNK_IS_SMALL;
        c->small++;
    } else if (size <= data_room(CHUNK_SIZE) && can_have(p, 1)) {
        c->data = CHUNK_IS_BLOCK;
        c->blocks++;
    } else {
        c->data = CHUNK_IS_EXTENT;
        c->extent_bytes = kp__extent_charge(size);
    }
}

struct cost kp__pool_cost(const struct buffer_pool *p,
                          const struct pool_need *n)
{
    struct cost c = {.data = CHUNK_IS_SMALL, .slots = CHUNK_IS_SMALL};

    cost_slots(p, n, &c);
    cost_data(p, n, &c);
    c.total = c.blocks * CHUNK_SIZE + c.small * CHUNK_SMALL_SIZE +
              (n->batch ? BATCH_CHARGE : 0);
    /* A record of just buffer.memory is legal: with the pool to itself it fits,
     * whatever its batch and its last page come to. */
    c.extent = c.extent_bytes;
    if (c.total < p->limit && c.extent > p->limit - c.total)
        c.extent = p->limit - c.total;
    c.total += c.extent;
    return c;
}

/* -- May it be had now? -- */

bool kp__pool_fits(const struct buffer_pool *p, const struct cost *c)
{
    const struct chunk_arena *a = &p->arena;
    size_t stuck = a->small_free; /* idle, and not to be given back */

    if (p->used + c->total > p->limit)
        return false;
    if (kp__chunks_blocks(a) < c->blocks)
        return false;
    if (a->small_count < c->small) {
        if (kp__chunks_blocks(a) < c->blocks + 1)
            return false;
        stuck += CHUNK_SIZE;
    }
    stuck -= stuck < c->small * CHUNK_SMALL_SIZE ? stuck
                                                 : c->small * CHUNK_SMALL_SIZE;
    /* What is resident must not pass the total either, by more than the rest of
     * a block that this grant alone is served from. */
    return p->used == 0 || p->used + c->total + stuck <= p->total;
}

/* -- Taking and giving, under the lock -- */

void kp__pool_charge(struct buffer_pool *p, struct partition_queue *q,
                     size_t bytes)
{
    p->used += bytes;
    if (q == NULL)
        return;
    q->held_bytes += bytes;
    if (q->unreachable)
        p->unreachable_bytes += bytes;
}

void kp__pool_discharge(struct buffer_pool *p, struct partition_queue *q,
                        size_t bytes)
{
    KP_CHECK(p->used >= bytes);
    p->used -= bytes;
    if (q == NULL)
        return;
    KP_CHECK(q->held_bytes >= bytes);
    q->held_bytes -= bytes;
    if (q->unreachable)
        p->unreachable_bytes -= bytes;
}

size_t kp__pool_idle(const struct buffer_pool *p)
{
    return kp__chunks_idle(&p->arena) + p->kept_count * sizeof(struct batch);
}

/* Room for what was charged and what will become resident with it. */
void kp__pool_make_room(struct buffer_pool *p, struct doomed *d)
{
    size_t held = p->used + kp__pool_idle(p), moved;

    if (held <= p->total)
        return;
    moved = kp__chunks_doom(&p->arena, held - p->total, d);
    while (moved < held - p->total && p->kept != NULL) {
        struct batch *b = p->kept;

        p->kept = b->pool_next;
        p->kept_count--;
        b->pool_next = d->batches;
        d->batches = b;
        moved += sizeof(*b);
    }
}

static void take_data(struct buffer_pool *p, struct pool_waiter *w,
                      const struct cost *c)
{
    switch (c->data) {
    case CHUNK_IS_SMALL:
        w->grant.data = kp__chunks_take_small(&p->arena);
        break;
    case CHUNK_IS_BLOCK:
        w->grant.data = kp__chunks_take_block(&p->arena);
        break;
    case CHUNK_IS_EXTENT:
        w->grant.data = kp__chunks_take_extent(&p->arena, c->extent_bytes);
        if (w->grant.data != NULL)
            w->grant.data->charge = (uint32_t)c->extent;
        else
            w->extent_bytes = c->extent_bytes;
        break;
    }
}

/* Blocks for later growth, so that not each of them costs a wait: this waiter's
 * part of what is free. */
static void take_extra(struct buffer_pool *p, struct pool_waiter *w)
{
    size_t waiters =
        1 + (size_t)p->waiting[LINE_OPEN] + p->waiting[LINE_RESTRICTED];
    size_t n = (p->limit - p->used) / CHUNK_SIZE;

    if (n > kp__chunks_blocks(&p->arena))
        n = kp__chunks_blocks(&p->arena);
    n /= waiters;
    if (n > EXTRA_BLOCKS_MAX)
        n = EXTRA_BLOCKS_MAX;
    if (kp__pool_is_restricted(p, w->queue))
        n = 0;
    while (n-- > 0 && p->used + p->arena.small_free + CHUNK_SIZE <= p->total) {
        struct chunk *c = kp__chunks_take_block(&p->arena);

        kp__pool_charge(p, w->queue, CHUNK_SIZE);
        c->next = w->grant.data->next;
        w->grant.data->next = c;
    }
}

/* w gets what it needs: chunks now, mappings and structures when it has left
 * the lock (kp__pool_try's end). */
void kp__pool_grant(struct buffer_pool *p, struct pool_waiter *w,
                    const struct cost *c, bool generous)
{
    w->grant = (struct pool_grant){0};
    w->doomed = (struct doomed){0};
    w->extent_bytes = 0;
    kp__pool_charge(p, w->queue, c->total);
    if (w->need.slots)
        w->grant.slots = c->slots == CHUNK_IS_BLOCK
                             ? kp__chunks_take_block(&p->arena)
                             : kp__chunks_take_small(&p->arena);
    if (w->need.record_size > 0)
        take_data(p, w, c);
    if (w->need.batch && !generous)
        w->grant.batch = kp__pool_take_kept(p, false);
    if (generous && c->data == CHUNK_IS_BLOCK && w->grant.data != NULL)
        take_extra(p, w);
    kp__pool_make_room(p, &w->doomed);
}

/* Chunks and structures back, of a grant or of a batch. */
void kp__pool_give_chunks(struct buffer_pool *p, struct partition_queue *q,
                          struct chunk *c)
{
    while (c != NULL) {
        struct chunk *next = c->next;

        kp__pool_discharge(p, q, c->charge);
        kp__chunks_give(&p->arena, c);
        c = next;
    }
}

/* Everything of a grant back, once. */
void kp__pool_refund(struct buffer_pool *p, struct pool_waiter *w,
                     bool resident)
{
    struct pool_grant *g = &w->grant;

    if (w->need.record_size > 0 && g->data == NULL) {
        struct cost c = kp__pool_cost(p, &w->need);

        kp__pool_discharge(p, w->queue, c.extent);
    }
    kp__pool_give_chunks(p, w->queue, g->data);
    kp__pool_give_chunks(p, w->queue, g->slots);
    if (w->need.batch)
        kp__pool_discharge(p, w->queue, BATCH_CHARGE);
    kp__chunks_revive(&p->arena, &w->doomed, resident);
    *g = (struct pool_grant){0};
}

/* -- Structures -- */

void kp__pool_free_batches(struct batch *b)
{
    while (b != NULL) {
        struct batch *next = b->pool_next;

        kp__free(b);
        b = next;
    }
}

bool kp__pool_fill_reserve(struct buffer_pool *p)
{
    while (p->reserve_count < SPLIT_RESERVE) {
        struct batch *b = kp__alloc_aligned(BATCH_ALIGN, sizeof(*b));

        if (b == NULL)
            return false;
        b->pool_next = p->reserve;
        p->reserve = b;
        p->reserve_count++;
    }
    return true;
}

/* Keep the structure for the next batch, or for the next split; else it is
 * freed by the caller. */
bool kp__pool_keep_batch(struct buffer_pool *p, struct batch *b)
{
    if (p->reserve_count < SPLIT_RESERVE) {
        b->pool_next = p->reserve;
        p->reserve = b;
        p->reserve_count++;
        return true;
    }
    if (p->kept_count >= KEPT_BATCHES_MAX ||
        p->used + kp__pool_idle(p) + sizeof(*b) > p->total)
        return false;
    b->pool_next = p->kept;
    p->kept = b;
    p->kept_count++;
    return true;
}

struct batch *kp__pool_take_kept(struct buffer_pool *p, bool reserve)
{
    struct batch *b = p->kept;

    if (b != NULL) {
        p->kept = b->pool_next;
        p->kept_count--;
    } else if (reserve && p->reserve != NULL) {
        b = p->reserve;
        p->reserve = b->pool_next;
        p->reserve_count--;
    }
    return b;
}

/* What was given back to the system: its blocks can be had again. */
void kp__pool_end_doomed(struct buffer_pool *p, struct doomed *d)
{
    kp__doomed_end(&p->arena, d);
    kp__pool_free_batches(d->batches);
    d->batches = NULL;
}
