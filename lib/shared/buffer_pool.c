/* SPDX-License-Identifier: BSD-2-Clause */
/* buffer_pool.c - the accounts of buffer.memory and the line of those who wait.
 * Application threads and the I/O thread.
 *
 * Invariants, under the lock: used is the sum of what was granted and not given
 * back, and with a split's overdraft it alone may pass the limit; used + idle never
 * passes total; a queue's held_bytes is its share of used, and unreachable_bytes
 * the sum of the shares of unreachable queues.  Whoever makes room serves the line
 * before it goes.  System calls and wake-ups come after the lock. */
#include "lib/shared/buffer_pool.h"

#include <stdatomic.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/shared/batch.h"
#include "lib/shared/chunk_arena.h"
#include "lib/shared/cq.h"
#include "lib/shared/partition_queue.h"

#define BATCH_CHARGE (sizeof(struct batch) + sizeof(struct batch_result))
#define SPLIT_RESERVE 2     /* a batch is cut in two */
#define KEPT_BATCHES_MAX 64 /* structures kept for the next batches */
#define EXTRA_BLOCKS_MAX 7  /* in one grant, besides what was asked for */
#define WAKES_AT_ONCE 16

enum { WORD_WAITING, WORD_GRANTED, WORD_CLOSED };
enum { LINE_OPEN, LINE_RESTRICTED, LINES };

struct retry {
    struct list_node link;
    struct kp_cq *cq;
    struct partition_queue *queue;
    struct pool_need need;
};

struct buffer_pool {
    size_t total; /* fixed at birth */
    size_t limit; /* of grants: total without what is set aside */
    _Atomic uint32_t refs;
    /* relaxed copies for kp__pool_pressure */
    _Atomic uint32_t pressed;
    _Atomic size_t wanted;

    struct mutex lock;
    /* guarded by lock */
    struct chunk_arena arena;
    size_t used, unreachable_bytes;
    struct list lines[LINES]; /* by arrival */
    size_t line_wanted[LINES];
    uint32_t waiting[LINES];
    uint64_t arrivals;
    struct list retries;
    struct batch *kept;  /* by chunks: free structures, part of what is idle */
    uint32_t kept_count;
    struct batch *reserve; /* for splits: charged to total for good */
    uint32_t reserve_count;
    bool any_reachable, closed, refused;
    bool signal_all; /* the reason for a refusal may be gone */
    int64_t wait_ns_total;
    uint64_t exhausted_total;
};

/* -- Birth and end -- */

static void free_batches(struct batch *b)
{
    while (b != NULL) {
        struct batch *next = b->pool_next;

        kp__free(b);
        b = next;
    }
}

static bool fill_reserve(struct buffer_pool *p)
{
    while (p->reserve_count < SPLIT_RESERVE) {
        struct batch *b = kp__zalloc(sizeof(*b));

        if (b == NULL)
            return false;
        b->pool_next = p->reserve;
        p->reserve = b;
        p->reserve_count++;
    }
    return true;
}

struct buffer_pool *kp__pool_create(size_t buffer_memory)
{
    struct buffer_pool *p = kp__zalloc(sizeof(*p));

    if (p == NULL)
        return NULL;
    p->total = buffer_memory > POOL_SIZE_MIN ? buffer_memory : POOL_SIZE_MIN;
    p->limit = p->total;
    atomic_init(&p->refs, 1);
    kp__mutex_init(&p->lock);
    kp__list_init(&p->lines[LINE_OPEN]);
    kp__list_init(&p->lines[LINE_RESTRICTED]);
    kp__list_init(&p->retries);
    if (!kp__chunks_init(&p->arena, p->total) || !fill_reserve(p)) {
        free_batches(p->reserve);
        if (p->arena.base != NULL)
            kp__chunks_fini(&p->arena);
        kp__mutex_fini(&p->lock);
        kp__free(p);
        return NULL;
    }
    return p;
}

void kp__pool_keep_aside(struct buffer_pool *p, size_t bytes)
{
    p->limit = p->total - (bytes < p->total / 4 ? bytes : p->total / 4);
}

void kp__pool_ref(struct buffer_pool *p)
{
    /* relaxed: whoever takes a reference has one */
    (void)atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

static void drop_retries(struct list *l)
{
    struct list_node *n;

    while ((n = kp__list_pop_front(l)) != NULL) {
        struct retry *r = KP_CONTAINER(n, struct retry, link);

        kp__cq_unref(r->cq);
        kp__free(r);
    }
}

void kp__pool_unref(struct buffer_pool *p)
{
    /* acq_rel: the last one sees all that others did with the pool */
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    KP_CHECK(p->used == 0);
    drop_retries(&p->retries);
    free_batches(p->kept);
    free_batches(p->reserve);
    kp__chunks_fini(&p->arena);
    kp__mutex_fini(&p->lock);
    kp__free(p);
}

/* -- What a need costs -- */

struct cost {
    enum chunk_kind data;
    size_t blocks;       /* whole ones that must be free */
    size_t small;        /* small chunks */
    size_t extent_bytes; /* mapped */
    size_t extent;       /* charged: at most what is left of the limit */
    size_t total;
};

static size_t data_room(size_t chunk_size)
{
    return chunk_size - sizeof(struct chunk);
}

static void cost_slots(const struct buffer_pool *p, const struct pool_need *n,
                       struct cost *c)
{
    if (!n->slots)
        return;
    if (n->full_slots && p->arena.block_count > 1)
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
        (n->small || p->arena.block_count == 0)) {
        c->data = CHUNK_IS_SMALL;
        c->small++;
    } else if (size <= data_room(CHUNK_SIZE) && p->arena.block_count > 0) {
        c->data = CHUNK_IS_BLOCK;
        c->blocks++;
    } else {
        c->data = CHUNK_IS_EXTENT;
        c->extent_bytes = kp__extent_charge(size);
    }
}

static struct cost cost_of(const struct buffer_pool *p,
                           const struct pool_need *n)
{
    struct cost c = {.data = CHUNK_IS_SMALL};

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

static bool is_restricted(const struct buffer_pool *p,
                          const struct partition_queue *q)
{
    return q->unreachable && p->any_reachable;
}

static bool share_allows(const struct buffer_pool *p, size_t bytes)
{
    return p->unreachable_bytes + bytes <= p->total / 2 ||
           p->unreachable_bytes == 0;
}

static bool fits(const struct buffer_pool *p, const struct cost *c)
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
    /* What is resident must not pass the total either, by more than the rest of a
     * block that this grant alone is served from. */
    return p->used == 0 || p->used + c->total + stuck <= p->total;
}

static struct pool_waiter *head(const struct buffer_pool *p, int line)
{
    struct list_node *n = kp__list_first(&p->lines[line]);

    return n != NULL ? KP_CONTAINER(n, struct pool_waiter, link) : NULL;
}

/* The waiter to be served next: the oldest that is not kept back by the share of
 * the unreachable; or NULL. */
static struct pool_waiter *next_waiter(const struct buffer_pool *p)
{
    struct pool_waiter *a = head(p, LINE_OPEN);
    struct pool_waiter *b = head(p, LINE_RESTRICTED);

    if (b == NULL || !share_allows(p, cost_of(p, &b->need).total))
        return a;
    return a == NULL || b->arrival < a->arrival ? b : a;
}

static bool may_have(const struct buffer_pool *p,
                     const struct partition_queue *q, const struct cost *c)
{
    if (is_restricted(p, q) &&
        (!kp__list_empty(&p->lines[LINE_RESTRICTED]) ||
         !share_allows(p, c->total)))
        return false;
    return next_waiter(p) == NULL && fits(p, c);
}

/* -- Taking and giving, under the lock -- */

static void charge(struct buffer_pool *p, struct partition_queue *q,
                   size_t bytes)
{
    p->used += bytes;
    if (q == NULL)
        return;
    q->held_bytes += bytes;
    if (q->unreachable)
        p->unreachable_bytes += bytes;
}

static void discharge(struct buffer_pool *p, struct partition_queue *q,
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

static size_t idle_bytes(const struct buffer_pool *p)
{
    return kp__chunks_idle(&p->arena) + p->kept_count * sizeof(struct batch);
}

/* Room for what was charged and what will become resident with it. */
static void make_room(struct buffer_pool *p, struct doomed *d)
{
    size_t held = p->used + idle_bytes(p), moved;

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

static void take_batch(struct buffer_pool *p, struct pool_grant *g)
{
    g->batch = p->kept;
    if (g->batch == NULL)
        return; /* made outside the lock */
    p->kept = g->batch->pool_next;
    p->kept_count--;
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
    size_t waiters = 1 + (size_t)p->waiting[LINE_OPEN] +
                     p->waiting[LINE_RESTRICTED];
    size_t n = (p->limit - p->used) / CHUNK_SIZE;

    if (n > kp__chunks_blocks(&p->arena))
        n = kp__chunks_blocks(&p->arena);
    n /= waiters;
    if (n > EXTRA_BLOCKS_MAX)
        n = EXTRA_BLOCKS_MAX;
    if (is_restricted(p, w->queue))
        n = 0;
    while (n-- > 0 &&
           p->used + p->arena.small_free + CHUNK_SIZE <= p->total) {
        struct chunk *c = kp__chunks_take_block(&p->arena);

        charge(p, w->queue, CHUNK_SIZE);
        c->next = w->grant.data->next;
        w->grant.data->next = c;
    }
}

/* w gets what it needs: chunks now, mappings and structures when it has left the
 * lock (kp__pool_try's end). */
static void grant(struct buffer_pool *p, struct pool_waiter *w,
                  const struct cost *c, bool generous)
{
    w->grant = (struct pool_grant){0};
    w->doomed = (struct doomed){0};
    w->extent_bytes = 0;
    charge(p, w->queue, c->total);
    if (w->need.slots)
        w->grant.slots = w->need.full_slots && p->arena.block_count > 1
                             ? kp__chunks_take_block(&p->arena)
                             : kp__chunks_take_small(&p->arena);
    if (w->need.record_size > 0)
        take_data(p, w, c);
    if (w->need.batch)
        take_batch(p, &w->grant);
    if (generous && c->data == CHUNK_IS_BLOCK && w->grant.data != NULL)
        take_extra(p, w);
    make_room(p, &w->doomed);
}

/* Chunks and structures back, of a grant or of a batch. */
static void give_chunks(struct buffer_pool *p, struct partition_queue *q,
                        struct chunk *c)
{
    while (c != NULL) {
        struct chunk *next = c->next;

        discharge(p, q, c->charge);
        kp__chunks_give(&p->arena, c);
        c = next;
    }
}

/* -- The line -- */

static void update_pressure(struct buffer_pool *p)
{
    struct pool_waiter *w = next_waiter(p);
    bool press = w != NULL || p->refused;
    size_t wanted = p->line_wanted[LINE_OPEN];

    if (w != NULL && kp__list_empty(&p->lines[LINE_OPEN]))
        wanted = p->line_wanted[LINE_RESTRICTED];
    if (wanted == 0 && press)
        wanted = CHUNK_SIZE;
    /* relaxed: a hint; who begins to wait also wakes the I/O thread */
    atomic_store_explicit(&p->pressed, press, memory_order_relaxed);
    atomic_store_explicit(&p->wanted, press ? wanted : 0,
                          memory_order_relaxed);
}

static int line_of(const struct buffer_pool *p, const struct pool_waiter *w)
{
    return is_restricted(p, w->queue) ? LINE_RESTRICTED : LINE_OPEN;
}

/* By arrival: nearly always at the end. */
static void enter_line(struct buffer_pool *p, struct pool_waiter *w)
{
    int line = line_of(p, w);
    struct list *l = &p->lines[line];
    struct list_node *at = l->head.prev;

    while (at != &l->head &&
           KP_CONTAINER(at, struct pool_waiter, link)->arrival > w->arrival)
        at = at->prev;
    kp__list_insert_before(at->next, &w->link);
    w->in_line = true;
    w->line = line;
    p->waiting[line]++;
    p->line_wanted[line] += cost_of(p, &w->need).total;
}

static void leave_line(struct buffer_pool *p, struct pool_waiter *w)
{
    kp__list_remove(&w->link);
    w->in_line = false;
    p->waiting[w->line]--;
    p->line_wanted[w->line] -= cost_of(p, &w->need).total;
}

static void tell(struct pool_waiter *w, uint32_t word,
                 _Atomic uint32_t **words, size_t *n)
{
    words[(*n)++] = &w->word;
    /* release: the grant is complete for whoever sees the word; from here on the
     * waiter may be gone */
    atomic_store_explicit(&w->word, word, memory_order_release);
}

/* Grant to the head, then to the next while it fits. */
static size_t serve(struct buffer_pool *p, _Atomic uint32_t **words)
{
    size_t n = 0;
    struct pool_waiter *w;

    while (n < WAKES_AT_ONCE && (w = next_waiter(p)) != NULL) {
        struct cost c = cost_of(p, &w->need);

        if (p->closed) {
            leave_line(p, w);
            tell(w, WORD_CLOSED, words, &n);
            continue;
        }
        if (!fits(p, &c))
            break;
        leave_line(p, w);
        grant(p, w, &c, true);
        tell(w, WORD_GRANTED, words, &n);
    }
    return n;
}

/* Refused sends that would be granted now. */
static void take_retries(struct buffer_pool *p, struct list *out)
{
    struct list_node *n = kp__list_first(&p->retries), *next;

    for (; n != NULL; n = next) {
        struct retry *r = KP_CONTAINER(n, struct retry, link);
        struct cost c = cost_of(p, &r->need);

        next = kp__list_next(&p->retries, n);
        if (!p->closed && !p->signal_all && !may_have(p, r->queue, &c))
            continue;
        kp__list_remove(n);
        kp__list_push_back(out, n);
    }
    p->signal_all = false;
}

static void signal_retries(struct list *l)
{
    for (struct list_node *n = kp__list_first(l); n != NULL;
         n = kp__list_next(l, n))
        kp__cq_signal(KP_CONTAINER(n, struct retry, link)->cq);
    drop_retries(l);
}

/* What was given back to the system: its blocks can be had again. */
static void end_doomed(struct buffer_pool *p, struct doomed *d)
{
    kp__doomed_end(&p->arena, d);
    free_batches(d->batches);
    d->batches = NULL;
}

/* The end of every call that may have made room. */
static void serve_and_unlock(struct buffer_pool *p)
{
    _Atomic uint32_t *words[WAKES_AT_ONCE];
    struct doomed doomed = {0};
    struct list retries;
    size_t n;

    kp__list_init(&retries);
    for (;;) {
        kp__chunks_revive(&p->arena, &doomed, false);
        n = serve(p, words);
        if (n < WAKES_AT_ONCE)
            take_retries(p, &retries);
        update_pressure(p);
        make_room(p, &doomed);
        kp__mutex_unlock(&p->lock);
        for (size_t i = 0; i < n; i++)
            kp__wake(words[i], 1);
        end_doomed(p, &doomed);
        if (n < WAKES_AT_ONCE && doomed.blocks == NULL)
            break;
        kp__mutex_lock(&p->lock);
    }
    signal_retries(&retries);
}

/* -- Asking -- */

/* Everything of a grant back, once. */
static void refund(struct buffer_pool *p, struct pool_waiter *w, bool resident)
{
    struct pool_grant *g = &w->grant;

    if (w->need.record_size > 0 && g->data == NULL) {
        struct cost c = cost_of(p, &w->need);

        discharge(p, w->queue, c.extent);
    }
    give_chunks(p, w->queue, g->data);
    give_chunks(p, w->queue, g->slots);
    if (w->need.batch)
        discharge(p, w->queue, BATCH_CHARGE);
    kp__chunks_revive(&p->arena, &w->doomed, resident);
    *g = (struct pool_grant){0};
}

static bool make_batch(struct buffer_pool *p, struct pool_grant *g)
{
    struct batch_result *r = kp__alloc(sizeof(*r));

    if (r == NULL)
        return false;
    if (g->batch == NULL)
        g->batch = kp__alloc(sizeof(*g->batch));
    if (g->batch == NULL) {
        kp__free(r);
        return false;
    }
    memset(g->batch, 0, sizeof(*g->batch));
    g->batch->result = r;
    g->batch->pool = p;
    g->batch->charge = BATCH_CHARGE;
    kp__pool_ref(p);
    return true;
}

/* The part of a grant that is done without the lock. */
static enum pool_answer finish_grant(struct buffer_pool *p,
                                     struct pool_waiter *w,
                                     struct pool_grant *out)
{
    bool ok = true;
    struct batch *kept = w->grant.batch;

    end_doomed(p, &w->doomed);
    if (w->extent_bytes > 0) {
        w->grant.data = kp__extent_map(w->extent_bytes,
                                       cost_of(p, &w->need).extent);
        ok = w->grant.data != NULL;
    }
    if (ok && w->need.batch)
        ok = make_batch(p, &w->grant);
    w->joined = false;
    if (ok && w->doomed.blocks == NULL) {
        *out = w->grant;
        return POOL_GRANTED;
    }
    kp__mutex_lock(&p->lock);
    if (ok) {
        kp__chunks_revive(&p->arena, &w->doomed, false);
        *out = w->grant;
    } else {
        w->grant.batch = NULL;
        refund(p, w, false);
    }
    serve_and_unlock(p);
    if (!ok)
        kp__free(kept);
    return ok ? POOL_GRANTED : POOL_NOMEM;
}

static void begin_wait(struct buffer_pool *p, struct pool_waiter *w,
                       int64_t now_ns)
{
    w->joined = true;
    w->arrival = p->arrivals++;
    w->since_ns = now_ns;
    atomic_store_explicit(&w->word, WORD_WAITING, memory_order_relaxed);
    kp__node_init(&w->link);
    enter_line(p, w);
    update_pressure(p);
}

static enum pool_answer ask(struct buffer_pool *p, struct pool_waiter *w,
                            bool may_wait, int64_t now_ns,
                            struct pool_grant *out)
{
    struct cost c = cost_of(p, &w->need);

    w->grant = (struct pool_grant){0};
    w->doomed = (struct doomed){0};
    kp__mutex_lock(&p->lock);
    if (p->closed) {
        kp__mutex_unlock(&p->lock);
        return POOL_CLOSED;
    }
    if (may_have(p, w->queue, &c)) {
        grant(p, w, &c, false);
        kp__mutex_unlock(&p->lock);
        return finish_grant(p, w, out);
    }
    if (!may_wait) {
        /* Sealing what lingers elsewhere would not help against the share. */
        if (!is_restricted(p, w->queue) || share_allows(p, c.total))
            p->refused = true;
        update_pressure(p);
        kp__mutex_unlock(&p->lock);
        return POOL_FULL;
    }
    begin_wait(p, w, now_ns);
    kp__mutex_unlock(&p->lock);
    return POOL_WAIT;
}

static void note_waited(struct buffer_pool *p, const struct pool_waiter *w,
                        int64_t now_ns)
{
    if (now_ns > w->since_ns)
        p->wait_ns_total += now_ns - w->since_ns;
}

enum pool_answer kp__pool_try(struct buffer_pool *p, struct partition_queue *q,
                              const struct pool_need *need, bool may_wait,
                              int64_t now_ns, struct pool_waiter *w,
                              struct pool_grant *out)
{
    uint32_t word;

    if (!w->joined) {
        w->queue = q;
        w->need = *need;
        return ask(p, w, may_wait, now_ns, out);
    }
    /* acquire: pairs with tell */
    word = atomic_load_explicit(&w->word, memory_order_acquire);
    if (word == WORD_WAITING)
        return POOL_WAIT;
    kp__mutex_lock(&p->lock);
    note_waited(p, w, now_ns);
    kp__mutex_unlock(&p->lock);
    if (word == WORD_GRANTED)
        return finish_grant(p, w, out);
    w->joined = false;
    return POOL_CLOSED;
}

void kp__pool_leave(struct buffer_pool *p, struct pool_waiter *w,
                    int64_t now_ns)
{
    struct batch *kept = NULL;

    if (!w->joined)
        return;
    w->joined = false;
    kp__mutex_lock(&p->lock);
    note_waited(p, w, now_ns);
    if (w->in_line) {
        leave_line(p, w);
    } else if (atomic_load_explicit(&w->word, memory_order_relaxed) ==
               WORD_GRANTED) {
        /* relaxed: the word was written under this lock */
        kept = w->grant.batch;
        w->grant.batch = NULL;
        refund(p, w, true);
    }
    serve_and_unlock(p);
    end_doomed(p, &w->doomed);
    kp__free(kept);
}

/* -- Giving back -- */

void kp__pool_give(struct buffer_pool *p, struct partition_queue *q,
                   struct chunk *chunks)
{
    if (chunks == NULL)
        return;
    kp__mutex_lock(&p->lock);
    give_chunks(p, q, chunks);
    p->refused = false;
    serve_and_unlock(p);
}

/* Keep the structure for the next batch, or for the next split; else it is freed
 * by the caller. */
static bool keep_batch(struct buffer_pool *p, struct batch *b)
{
    if (p->reserve_count < SPLIT_RESERVE) {
        b->pool_next = p->reserve;
        p->reserve = b;
        p->reserve_count++;
        return true;
    }
    if (p->kept_count >= KEPT_BATCHES_MAX ||
        p->used + idle_bytes(p) + sizeof(*b) > p->total)
        return false;
    b->pool_next = p->kept;
    p->kept = b;
    p->kept_count++;
    return true;
}

void kp__pool_give_batch(struct buffer_pool *p, struct partition_queue *q,
                         struct batch *b)
{
    bool kept;

    kp__mutex_lock(&p->lock);
    discharge(p, q, b->charge);
    kept = keep_batch(p, b);
    serve_and_unlock(p);
    if (!kept)
        kp__free(b);
    kp__pool_unref(p);
}

static void take_reserve(struct buffer_pool *p, struct pool_grant *g)
{
    take_batch(p, g);
    if (g->batch != NULL || p->reserve == NULL)
        return;
    g->batch = p->reserve;
    p->reserve = g->batch->pool_next;
    p->reserve_count--;
}

struct batch *kp__pool_split_batch(struct buffer_pool *p)
{
    struct pool_grant g = {0};

    kp__mutex_lock(&p->lock);
    take_reserve(p, &g);
    if (g.batch != NULL)
        charge(p, NULL, sizeof(*g.batch));
    kp__mutex_unlock(&p->lock);
    if (g.batch == NULL) {
        g.batch = kp__alloc(sizeof(*g.batch));
        if (g.batch == NULL)
            return NULL;
        kp__mutex_lock(&p->lock);
        charge(p, NULL, sizeof(*g.batch));
        kp__mutex_unlock(&p->lock);
    }
    memset(g.batch, 0, sizeof(*g.batch));
    g.batch->pool = p;
    g.batch->charge = sizeof(*g.batch);
    g.batch->disowned = true; /* charged to no queue */
    kp__pool_ref(p);
    return g.batch;
}

void kp__pool_disown(struct buffer_pool *p, struct partition_queue *q,
                     size_t bytes)
{
    kp__mutex_lock(&p->lock);
    discharge(p, q, bytes);
    charge(p, NULL, bytes);
    serve_and_unlock(p);
}

/* -- Who can be reached -- */

/* Waiters whose line has changed, with their place in it by arrival. */
static void sort_lines(struct buffer_pool *p)
{
    for (int line = 0; line < LINES; line++) {
        struct list_node *n = kp__list_first(&p->lines[line]), *next;

        for (; n != NULL; n = next) {
            struct pool_waiter *w = KP_CONTAINER(n, struct pool_waiter, link);

            next = kp__list_next(&p->lines[line], n);
            if (line_of(p, w) == line)
                continue;
            leave_line(p, w);
            enter_line(p, w);
        }
    }
}

void kp__pool_set_unreachable(struct buffer_pool *p, struct partition_queue *q,
                              bool unreachable)
{
    kp__mutex_lock(&p->lock);
    if (q->unreachable == unreachable) {
        kp__mutex_unlock(&p->lock);
        return;
    }
    q->unreachable = unreachable;
    if (unreachable)
        p->unreachable_bytes += q->held_bytes;
    else
        p->unreachable_bytes -= q->held_bytes;
    p->signal_all = true;
    sort_lines(p);
    serve_and_unlock(p);
}

void kp__pool_set_any_reachable(struct buffer_pool *p, bool any)
{
    kp__mutex_lock(&p->lock);
    if (p->any_reachable != any) {
        p->any_reachable = any;
        p->signal_all = true;
        sort_lines(p);
    }
    serve_and_unlock(p);
}

/* -- The rest -- */

bool kp__pool_pressure(const struct buffer_pool *p, size_t *wanted_bytes)
{
    struct buffer_pool *pool = (struct buffer_pool *)(uintptr_t)p;

    /* relaxed: see update_pressure */
    if (atomic_load_explicit(&pool->pressed, memory_order_relaxed) == 0)
        return false;
    if (wanted_bytes != NULL)
        *wanted_bytes =
            atomic_load_explicit(&pool->wanted, memory_order_relaxed);
    return true;
}

void kp__pool_close(struct buffer_pool *p)
{
    kp__mutex_lock(&p->lock);
    p->closed = true;
    /* The share keeps nobody back from hearing it. */
    p->any_reachable = false;
    sort_lines(p);
    serve_and_unlock(p);
}

/* One signal lets the application try everything again: so one entry for a queue
 * is enough, the cheapest, and one for those that the share keeps back. */
static bool merge_retry(struct buffer_pool *p, const struct retry *r)
{
    for (struct list_node *n = kp__list_first(&p->retries); n != NULL;
         n = kp__list_next(&p->retries, n)) {
        struct retry *other = KP_CONTAINER(n, struct retry, link);

        if (other->cq != r->cq || is_restricted(p, other->queue) !=
                                      is_restricted(p, r->queue))
            continue;
        if (cost_of(p, &r->need).total < cost_of(p, &other->need).total) {
            other->need = r->need;
            other->queue = r->queue;
        }
        return true;
    }
    return false;
}

void kp__pool_want_retry(struct buffer_pool *p, struct partition_queue *q,
                         const struct pool_need *need, struct kp_cq *cq)
{
    struct retry *r = kp__alloc(sizeof(*r));

    if (r == NULL) {
        kp__cq_signal(cq);
        return;
    }
    kp__cq_ref(cq);
    r->cq = cq;
    r->queue = q;
    r->need = *need;
    kp__node_init(&r->link);
    kp__mutex_lock(&p->lock);
    if (merge_retry(p, r)) {
        kp__mutex_unlock(&p->lock);
        kp__cq_unref(cq);
        kp__free(r);
        return;
    }
    kp__list_push_back(&p->retries, &r->link);
    /* Memory may have come back since the refusal. */
    serve_and_unlock(p);
}

void kp__pool_stats(struct buffer_pool *p, struct pool_stats *out)
{
    kp__mutex_lock(&p->lock);
    out->total_bytes = p->total;
    out->available_bytes = p->used < p->total ? p->total - p->used : 0;
    out->waiting_threads =
        p->waiting[LINE_OPEN] + p->waiting[LINE_RESTRICTED];
    out->wait_ns_total = p->wait_ns_total;
    out->exhausted_total = p->exhausted_total;
    kp__mutex_unlock(&p->lock);
}

void kp__pool_note_exhausted(struct buffer_pool *p)
{
    kp__mutex_lock(&p->lock);
    p->exhausted_total++;
    kp__mutex_unlock(&p->lock);
}

#ifdef KP_DEBUG
void kp__pool_check(struct buffer_pool *p)
{
    kp__mutex_lock(&p->lock);
    KP_CHECK(p->used + idle_bytes(p) <= p->total + CHUNK_SIZE ||
             p->used > p->limit);
    KP_CHECK(p->waiting[LINE_OPEN] == 0 ||
             p->line_wanted[LINE_OPEN] > 0);
    KP_CHECK(p->unreachable_bytes <= p->used);
    kp__mutex_unlock(&p->lock);
}
#endif
