/* SPDX-License-Identifier: BSD-2-Clause */
/* buffer_pool.c - buffer.memory: the calls.  Application threads and the I/O
 * thread.  The accounts are pool_accounts.c, the line is pool_line.c.
 *
 * Invariant: the lock is held for a few list operations at a time; mapping
 * memory, allocating, giving back to the system and waking come after it, in
 * the thread that wants the memory. */
#include "lib/shared/pool_state.h"

#include <string.h>

#include "lib/base/mem.h"

#define BURST_MAX ((size_t)32 * CHUNK_SIZE)

/* -- Birth and end -- */

static void set_limit(struct buffer_pool *p, size_t limit)
{
    p->limit = limit;
    p->burst = limit / 8 < BURST_MAX ? limit / 8 : BURST_MAX;
}

struct buffer_pool *kp__pool_create(size_t buffer_memory)
{
    struct buffer_pool *p = kp__zalloc(sizeof(*p));

    if (p == NULL)
        return NULL;
    p->total = buffer_memory > POOL_SIZE_MIN ? buffer_memory : POOL_SIZE_MIN;
    set_limit(p, p->total);
    atomic_init(&p->refs, 1);
    kp__mutex_init(&p->lock);
    kp__list_init(&p->lines[LINE_OPEN]);
    kp__list_init(&p->lines[LINE_RESTRICTED]);
    kp__list_init(&p->retries);
    if (!kp__chunks_init(&p->arena, p->total) || !kp__pool_fill_reserve(p)) {
        kp__pool_free_batches(p->reserve);
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
    set_limit(p, p->total - (bytes < p->total / 4 ? bytes : p->total / 4));
}

void kp__pool_ref(struct buffer_pool *p)
{
    /* relaxed: whoever takes a reference has one */
    (void)atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void kp__pool_unref(struct buffer_pool *p)
{
    /* acq_rel: the last one sees all that others did with the pool */
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    KP_CHECK(p->used == 0);
    kp__pool_drop_retries(&p->retries);
    kp__pool_free_batches(p->kept);
    kp__pool_free_batches(p->reserve);
    kp__chunks_fini(&p->arena);
    kp__mutex_fini(&p->lock);
    kp__free(p);
}

/* -- Asking -- */

static bool make_batch(struct buffer_pool *p, struct pool_grant *g)
{
    struct batch_result *r = kp__alloc(sizeof(*r));

    if (r == NULL)
        return false;
    if (g->batch == NULL)
        g->batch = kp__alloc_aligned(BATCH_ALIGN, sizeof(*g->batch));
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

    kp__pool_end_doomed(p, &w->doomed);
    if (w->extent_bytes > 0) {
        w->grant.data =
            kp__extent_map(w->extent_bytes, kp__pool_cost(p, &w->need).extent);
        ok = w->grant.data != NULL;
    }
    if (w->need.batch && w->joined)
        w->grant.batch_due = true;
    else if (ok && w->need.batch)
        ok = make_batch(p, &w->grant);
    w->joined = false;
    if (ok && w->doomed.blocks == NULL) {
        *out = w->grant;
        return POOL_GRANTED;
    }
    kp__mutex_lock_patiently(&p->lock);
    if (ok) {
        kp__chunks_revive(&p->arena, &w->doomed, false);
        *out = w->grant;
    } else {
        w->grant.batch = NULL;
        kp__pool_refund(p, w, false);
    }
    kp__pool_serve_and_unlock(p);
    if (!ok)
        kp__free(kept);
    return ok ? POOL_GRANTED : POOL_NOMEM;
}

bool kp__pool_make_batch(struct buffer_pool *p, struct pool_grant *g)
{
    struct batch *kept;

    kp__mutex_lock_patiently(&p->lock);
    kept = kp__pool_take_kept(p, false);
    kp__mutex_unlock(&p->lock);
    g->batch = kept;
    g->batch_due = !make_batch(p, g);
    if (!g->batch_due)
        return true;
    g->batch = NULL;
    kp__free(kept);
    return false;
}

static void begin_wait(struct buffer_pool *p, struct pool_waiter *w,
                       int64_t now_ns)
{
    w->joined = true;
    w->arrival = p->arrivals++;
    w->since_ns = now_ns;
    atomic_store_explicit(&w->word, WORD_WAITING, memory_order_relaxed);
    kp__node_init(&w->link);
    kp__pool_enter_line(p, w);
    kp__pool_update_pressure(p);
}

static enum pool_answer ask(struct buffer_pool *p, struct pool_waiter *w,
                            bool may_wait, int64_t now_ns,
                            struct pool_grant *out)
{
    struct cost c = kp__pool_cost(p, &w->need);

    w->grant = (struct pool_grant){0};
    w->doomed = (struct doomed){0};
    kp__mutex_lock_patiently(&p->lock);
    if (p->closed) {
        kp__mutex_unlock(&p->lock);
        return POOL_CLOSED;
    }
    if (kp__pool_may_have(p, w->queue, &c)) {
        kp__pool_grant(p, w, &c, false);
        kp__mutex_unlock(&p->lock);
        return finish_grant(p, w, out);
    }
    if (!may_wait) {
        /* Sealing what lingers elsewhere would not help against the share. */
        if (!kp__pool_is_restricted(p, w->queue) ||
            kp__pool_share_allows(p, c.total))
            p->refused = true;
        kp__pool_update_pressure(p);
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
        kp__pool_note_waited(p, now_ns - w->since_ns);
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
    note_waited(p, w, now_ns);
    if (word == WORD_GRANTED) {
        if (kp__pool_is_last_back(p)) {
            kp__mutex_lock_patiently(&p->lock);
            kp__pool_serve_and_unlock(p);
        }
        return finish_grant(p, w, out);
    }
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
    note_waited(p, w, now_ns);
    kp__mutex_lock_patiently(&p->lock);
    if (w->in_line) {
        kp__pool_leave_line(p, w);
    } else if (atomic_load_explicit(&w->word, memory_order_relaxed) ==
               WORD_GRANTED) {
        /* relaxed: the word was written under this lock */
        (void)kp__pool_is_last_back(p); /* the line is served in any case */
        kept = w->grant.batch;
        w->grant.batch = NULL;
        kp__pool_refund(p, w, true);
    }
    kp__pool_serve_and_unlock(p);
    kp__pool_end_doomed(p, &w->doomed);
    kp__free(kept);
}

/* -- Giving back -- */

void kp__pool_give(struct buffer_pool *p, struct partition_queue *q,
                   struct chunk *chunks)
{
    if (chunks == NULL)
        return;
    kp__mutex_lock_patiently(&p->lock);
    kp__pool_give_chunks(p, q, chunks);
    p->refused = false;
    kp__pool_serve_and_unlock(p);
}

void kp__pool_give_grant(struct buffer_pool *p, struct partition_queue *q,
                         struct pool_grant *g)
{
    struct batch *b = g->batch;
    struct batch_result *r = b != NULL ? b->result : NULL;
    bool kept = true;

    if (b == NULL && g->data == NULL && g->slots == NULL && !g->batch_due)
        return;
    kp__mutex_lock_patiently(&p->lock);
    if (g->data != NULL || g->slots != NULL)
        p->refused = false;
    kp__pool_give_chunks(p, q, g->data);
    kp__pool_give_chunks(p, q, g->slots);
    if (g->batch_due)
        kp__pool_discharge(p, q, BATCH_CHARGE);
    if (b != NULL) {
        kp__pool_discharge(p, q, b->charge);
        kept = kp__pool_keep_batch(p, b);
    }
    kp__pool_serve_and_unlock(p);
    *g = (struct pool_grant){0};
    if (b == NULL)
        return;
    kp__free(r);
    if (!kept)
        kp__free(b);
    kp__pool_unref(p);
}

void kp__pool_give_batch(struct buffer_pool *p, struct partition_queue *q,
                         struct batch *b)
{
    bool kept;

    kp__mutex_lock_patiently(&p->lock);
    kp__pool_discharge(p, q, b->charge);
    kept = kp__pool_keep_batch(p, b);
    kp__pool_serve_and_unlock(p);
    if (!kept)
        kp__free(b);
    kp__pool_unref(p);
}

struct batch *kp__pool_split_batch(struct buffer_pool *p)
{
    struct batch *b;

    kp__mutex_lock_patiently(&p->lock);
    b = kp__pool_take_kept(p, true);
    kp__mutex_unlock(&p->lock);
    if (b == NULL)
        b = kp__alloc_aligned(BATCH_ALIGN, sizeof(*b));
    if (b == NULL)
        return NULL;
    kp__mutex_lock_patiently(&p->lock);
    kp__pool_charge(p, NULL, sizeof(*b));
    kp__mutex_unlock(&p->lock);
    memset(b, 0, sizeof(*b));
    b->pool = p;
    b->charge = sizeof(*b);
    b->reports.disowned = true; /* charged to no queue */
    kp__pool_ref(p);
    return b;
}

void kp__pool_disown(struct buffer_pool *p, struct partition_queue *q,
                     size_t bytes)
{
    kp__mutex_lock_patiently(&p->lock);
    kp__pool_discharge(p, q, bytes);
    kp__pool_charge(p, NULL, bytes);
    kp__pool_serve_and_unlock(p);
}

/* -- Who can be reached -- */

void kp__pool_set_unreachable(struct buffer_pool *p, struct partition_queue *q,
                              bool unreachable)
{
    kp__mutex_lock_patiently(&p->lock);
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
    kp__pool_sort_lines(p);
    kp__pool_serve_and_unlock(p);
}

void kp__pool_set_any_reachable(struct buffer_pool *p, bool any)
{
    kp__mutex_lock_patiently(&p->lock);
    if (p->any_reachable != any) {
        p->any_reachable = any;
        p->signal_all = true;
        kp__pool_sort_lines(p);
    }
    kp__pool_serve_and_unlock(p);
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

bool kp__pool_has_line(const struct buffer_pool *p)
{
    struct buffer_pool *pool = (struct buffer_pool *)(uintptr_t)p;

    /* relaxed: see update_pressure */
    return atomic_load_explicit(&pool->has_line, memory_order_relaxed) != 0;
}

void kp__pool_close(struct buffer_pool *p)
{
    kp__mutex_lock_patiently(&p->lock);
    p->closed = true;
    /* The share keeps nobody back from hearing it. */
    p->any_reachable = false;
    kp__pool_sort_lines(p);
    kp__pool_serve_and_unlock(p);
}

void kp__pool_stats(struct buffer_pool *p, struct pool_stats *out)
{
    kp__mutex_lock_patiently(&p->lock);
    out->total_bytes = p->total;
    out->available_bytes = p->used < p->total ? p->total - p->used : 0;
    out->waiting_threads = p->waiting[LINE_OPEN] + p->waiting[LINE_RESTRICTED];
    /* relaxed: see kp__pool_note_waited */
    out->wait_ns_total =
        atomic_load_explicit(&p->wait_ns_total, memory_order_relaxed);
    out->exhausted_total = p->exhausted_total;
    kp__mutex_unlock(&p->lock);
}

void kp__pool_note_exhausted(struct buffer_pool *p)
{
    kp__mutex_lock_patiently(&p->lock);
    p->exhausted_total++;
    kp__mutex_unlock(&p->lock);
}

void kp__pool_note_waited(struct buffer_pool *p, int64_t wait_ns)
{
    /* relaxed: a sum that orders nothing; without the lock, as each of those
     * who are woken together would take it once more */
    (void)atomic_fetch_add_explicit(&p->wait_ns_total, wait_ns,
                                    memory_order_relaxed);
}

#ifdef KP_DEBUG
void kp__pool_check(struct buffer_pool *p)
{
    kp__mutex_lock_patiently(&p->lock);
    KP_CHECK(p->used + kp__pool_idle(p) <= p->total + CHUNK_SIZE ||
             p->used > p->limit);
    KP_CHECK(p->waiting[LINE_OPEN] == 0 || p->line_wanted[LINE_OPEN] > 0);
    KP_CHECK(p->unreachable_bytes <= p->used);
    kp__mutex_unlock(&p->lock);
}
#endif
