/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_line.c - the line of those who wait for memory.  Application threads and
 * the I/O thread, under the pool's lock; wake-ups and system calls come after
 * it.
 *
 * Invariant: both lines are in order of arrival, and each waiter stands in the
 * one that its queue's leader puts it in; whoever makes room serves before it
 * goes. */
#include "lib/shared/pool_state.h"

#include "lib/base/mem.h"
#include "lib/shared/cq.h"

#define GRANTS_AT_ONCE 32

struct retry {
    struct list_node link;
    struct kp_cq *cq;
    struct partition_queue *queue;
    struct pool_need need;
};

void kp__pool_drop_retries(struct list *l)
{
    struct list_node *n;

    while ((n = kp__list_pop_front(l)) != NULL) {
        struct retry *r = KP_CONTAINER(n, struct retry, link);

        kp__cq_unref(r->cq);
        kp__free(r);
    }
}

/* -- Whose turn it is -- */

bool kp__pool_is_restricted(const struct buffer_pool *p,
                            const struct partition_queue *q)
{
    return q->unreachable && p->any_reachable;
}

bool kp__pool_share_allows(const struct buffer_pool *p, size_t bytes)
{
    return p->unreachable_bytes + bytes <= p->total / 2 ||
           p->unreachable_bytes == 0;
}

static struct pool_waiter *head(const struct buffer_pool *p, int line)
{
    struct list_node *n = kp__list_first(&p->lines[line]);

    return n != NULL ? KP_CONTAINER(n, struct pool_waiter, link) : NULL;
}

/* The waiter to be served next: the oldest that is not kept back by the share
 * of the unreachable; or NULL. */
static struct pool_waiter *next_waiter(const struct buffer_pool *p)
{
    struct pool_waiter *a = head(p, LINE_OPEN);
    struct pool_waiter *b = head(p, LINE_RESTRICTED);

    if (b == NULL ||
        !kp__pool_share_allows(p, kp__pool_cost(p, &b->need).total))
        return a;
    return a == NULL || b->arrival < a->arrival ? b : a;
}

bool kp__pool_may_have(const struct buffer_pool *p,
                       const struct partition_queue *q, const struct cost *c)
{
    if (kp__pool_is_restricted(p, q) &&
        (!kp__list_empty(&p->lines[LINE_RESTRICTED]) ||
         !kp__pool_share_allows(p, c->total)))
        return false;
    return next_waiter(p) == NULL && kp__pool_fits(p, c);
}

/* -- Coming and going -- */

/* What a refused send that waits for its signal needs; 0: none does, or only
 * such as the share keeps back, whom sealing would not help. */
static size_t retry_wanted(const struct buffer_pool *p)
{
    for (const struct list_node *n = kp__list_first(&p->retries); n != NULL;
         n = kp__list_next(&p->retries, n)) {
        const struct retry *r = KP_CONTAINER(n, const struct retry, link);

        if (!kp__pool_is_restricted(p, r->queue))
            return kp__pool_cost(p, &r->need).total;
    }
    return 0;
}

void kp__pool_update_pressure(struct buffer_pool *p)
{
    struct pool_waiter *w = next_waiter(p);
    size_t wanted = p->line_wanted[LINE_OPEN], retry = retry_wanted(p);
    bool press = w != NULL || p->refused || retry > 0;

    if (w != NULL && kp__list_empty(&p->lines[LINE_OPEN]))
        wanted = p->line_wanted[LINE_RESTRICTED];
    if (wanted < retry)
        wanted = retry;
    if (wanted == 0 && press)
        wanted = CHUNK_SIZE;
    /* relaxed: a hint; who begins to wait also wakes the I/O thread */
    atomic_store_explicit(&p->pressed, press, memory_order_relaxed);
    atomic_store_explicit(&p->has_line, w != NULL, memory_order_relaxed);
    atomic_store_explicit(&p->wanted, press ? wanted : 0, memory_order_relaxed);
}

static int line_of(const struct buffer_pool *p, const struct pool_waiter *w)
{
    return kp__pool_is_restricted(p, w->queue) ? LINE_RESTRICTED : LINE_OPEN;
}

/* By arrival: nearly always at the end. */
void kp__pool_enter_line(struct buffer_pool *p, struct pool_waiter *w)
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
    p->line_wanted[line] += kp__pool_cost(p, &w->need).total;
}

void kp__pool_leave_line(struct buffer_pool *p, struct pool_waiter *w)
{
    kp__list_remove(&w->link);
    w->in_line = false;
    p->waiting[w->line]--;
    p->line_wanted[w->line] -= kp__pool_cost(p, &w->need).total;
}

/* -- Sleeping and waking -- */

/* Where a waiter sleeps: neighbours in line share a door, so that one call wakes
 * all of them that are served at a time, each with a mask of its own.  Two
 * waiters share a place only if more than all places are taken. */
struct place {
    _Atomic uint32_t *door;
    uint32_t mask;
    int sleepers; /* how many there may be, of those who know its mask */
};

/* What is to be woken when the lock is gone. */
struct wakes {
    struct place places[GRANTS_AT_ONCE];
    size_t count; /* of places */
    int told;     /* waiters */
    int granted;  /* of them */
};

static struct place place_of(struct buffer_pool *p, const struct pool_waiter *w)
{
    return (struct place){&p->doors[w->arrival / DOOR_MASKS % POOL_DOORS],
                          UINT32_C(1) << (w->arrival % DOOR_MASKS), INT32_MAX};
}

/* The kernel looks through all sleepers of a bucket for those who are to be
 * woken, unless it knows when to stop, and the first in line are the first
 * there.  One suffices while all in line arrived within PLACES: whoever takes
 * w's place later than that sleeps behind it. */
static int sleepers(const struct buffer_pool *p)
{
    uint64_t oldest = p->arrivals;

    for (int line = 0; line < LINES; line++) {
        const struct pool_waiter *w = head(p, line);

        if (w != NULL && w->arrival < oldest)
            oldest = w->arrival;
    }
    return p->arrivals - oldest <= PLACES ? 1 : INT32_MAX;
}

struct ticket kp__pool_ticket(struct buffer_pool *p,
                              const struct pool_waiter *w, int64_t deadline_ns)
{
    struct place at = place_of(p, w);
    /* acquire: whoever sees the change of a door sees the word that was written
     * before it; so a door without that change lets the sleeper sleep */
    uint32_t seen = atomic_load_explicit(at.door, memory_order_acquire);

    if (atomic_load_explicit(&w->word, memory_order_acquire) != WORD_WAITING)
        return (struct ticket){0};
    return (struct ticket){at.door, seen, deadline_ns, at.mask};
}

static void add_place(struct wakes *k, const struct place *at)
{
    struct place *last = k->count > 0 ? &k->places[k->count - 1] : NULL;

    if (last == NULL || last->door != at->door) {
        k->places[k->count++] = *at;
        return;
    }
    last->mask |= at->mask;
    if (at->sleepers < INT32_MAX && last->sleepers < INT32_MAX)
        last->sleepers += at->sleepers;
    else
        last->sleepers = INT32_MAX;
}

static void tell(struct buffer_pool *p, struct pool_waiter *w, uint32_t word,
                 int at_most, struct wakes *k)
{
    struct place at = place_of(p, w);

    at.sleepers = at_most;
    add_place(k, &at);
    k->told++;
    k->granted += word == WORD_GRANTED;
    /* release: the grant is complete for whoever sees the word; from here on
     * the waiter may be gone */
    atomic_store_explicit(&w->word, word, memory_order_release);
}

/* Once for all: each such change waits until all that was written before is in
 * the cache, and waiters' frames are not. */
static void count_told(struct buffer_pool *p, const struct wakes *k)
{
    /* release: see kp__pool_ticket */
    for (size_t i = 0; i < k->count; i++)
        atomic_fetch_add_explicit(k->places[i].door, 1, memory_order_release);
    /* relaxed: see kp__pool_is_last_back.  Some may be back already; one of
     * those takes itself for the last only if others were called before, and
     * then serves once more than need be. */
    (void)atomic_fetch_add_explicit(&p->called, k->granted,
                                    memory_order_relaxed);
}

bool kp__pool_is_last_back(struct buffer_pool *p)
{
    /* relaxed: one sees that it is the last, and takes the lock next.  Who held
     * something back had the lock before, and is seen; who has it later sees
     * that nobody is called. */
    return atomic_fetch_sub_explicit(&p->called, 1, memory_order_relaxed) == 1;
}

/* Those who were called are on their way, and the last of them serves: what
 * comes back until then is granted together, as to wake one thread costs
 * several times what one of many does. */
static bool holds_back(struct buffer_pool *p)
{
    /* relaxed: see kp__pool_is_last_back */
    return !p->closed && p->used + p->burst > p->limit &&
           atomic_load_explicit(&p->called, memory_order_relaxed) > 0;
}

/* Without the lock. */
static void wake(const struct wakes *k)
{
    for (size_t i = 0; i < k->count; i++)
        kp__wake_masked(k->places[i].door, k->places[i].sleepers,
                        k->places[i].mask);
}

/* -- Serving -- */

/* Frames of threads that sleep have left the cache long ago, and all who want
 * memory wait for the lock meanwhile. */
static void fetch_next(const struct buffer_pool *p, const struct pool_waiter *w)
{
    const struct list_node *n = kp__list_next(&p->lines[w->line], &w->link);

    if (n == NULL)
        return;
    __builtin_prefetch(n, 1);
    __builtin_prefetch((const char *)n + 64, 1);
    __builtin_prefetch((const char *)n + sizeof(*w) - 1, 1);
}

/* Grant to the head, then to the next while it fits. */
static void serve(struct buffer_pool *p, struct wakes *k)
{
    struct pool_waiter *w;
    bool relieving = p->relieving;

    p->relieving = false;
    k->count = 0;
    k->told = k->granted = 0;
    if (!relieving && holds_back(p))
        return;
    while (k->told < GRANTS_AT_ONCE && (w = next_waiter(p)) != NULL) {
        struct cost c = kp__pool_cost(p, &w->need);
        int at_most = sleepers(p); /* while w is one of them */

        fetch_next(p, w);
        if (p->closed) {
            kp__pool_leave_line(p, w);
            tell(p, w, WORD_CLOSED, at_most, k);
            continue;
        }
        if (!kp__pool_fits(p, &c))
            break;
        kp__pool_leave_line(p, w);
        kp__pool_grant(p, w, &c, true);
        tell(p, w, WORD_GRANTED, at_most, k);
    }
    count_told(p, k);
}

/* Refused sends that would be granted now. */
static void take_retries(struct buffer_pool *p, struct list *out)
{
    struct list_node *n = kp__list_first(&p->retries), *next;

    for (; n != NULL; n = next) {
        struct retry *r = KP_CONTAINER(n, struct retry, link);
        struct cost c = kp__pool_cost(p, &r->need);

        next = kp__list_next(&p->retries, n);
        if (!p->closed && !p->signal_all && !kp__pool_may_have(p, r->queue, &c))
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
    kp__pool_drop_retries(l);
}

/* The end of every call that may have made room. */
void kp__pool_serve_and_unlock(struct buffer_pool *p)
{
    struct wakes wakes;
    struct doomed doomed = {0};
    struct list retries;

    kp__list_init(&retries);
    for (;;) {
        kp__chunks_revive(&p->arena, &doomed, false);
        serve(p, &wakes);
        if (wakes.told < GRANTS_AT_ONCE)
            take_retries(p, &retries);
        kp__pool_update_pressure(p);
        kp__pool_make_room(p, &doomed);
        kp__mutex_unlock(&p->lock);
        wake(&wakes);
        kp__pool_end_doomed(p, &doomed);
        if (wakes.told < GRANTS_AT_ONCE && doomed.blocks == NULL)
            break;
        kp__mutex_lock_patiently(&p->lock);
    }
    signal_retries(&retries);
}

bool kp__pool_is_held(const struct buffer_pool *p)
{
    struct buffer_pool *pool = (struct buffer_pool *)(uintptr_t)p;

    /* relaxed: a hint; whoever is called still is so at the next look */
    return kp__pool_has_line(p) &&
           atomic_load_explicit(&pool->called, memory_order_relaxed) > 0;
}

void kp__pool_relieve(struct buffer_pool *p)
{
    kp__mutex_lock_patiently(&p->lock);
    p->relieving = true;
    kp__pool_serve_and_unlock(p);
}

/* Waiters whose line has changed, with their place in it by arrival. */
void kp__pool_sort_lines(struct buffer_pool *p)
{
    for (int line = 0; line < LINES; line++) {
        struct list_node *n = kp__list_first(&p->lines[line]), *next;

        for (; n != NULL; n = next) {
            struct pool_waiter *w = KP_CONTAINER(n, struct pool_waiter, link);

            next = kp__list_next(&p->lines[line], n);
            if (line_of(p, w) == line)
                continue;
            kp__pool_leave_line(p, w);
            kp__pool_enter_line(p, w);
        }
    }
}

/* -- Refused sends -- */

/* Does whatever is enough for the dearer one do for the cheaper? */
static bool same_kind(const struct buffer_pool *p, const struct retry *a,
                      const struct retry *b)
{
    struct cost x = kp__pool_cost(p, &a->need), y = kp__pool_cost(p, &b->need);

    return kp__pool_is_restricted(p, a->queue) ==
               kp__pool_is_restricted(p, b->queue) &&
           x.data == y.data && x.blocks == y.blocks && x.small == y.small;
}

/* One signal lets the application try everything again: so of each kind of need
 * one entry for a queue is enough, the cheapest. */
static bool merge_retry(struct buffer_pool *p, const struct retry *r)
{
    for (struct list_node *n = kp__list_first(&p->retries); n != NULL;
         n = kp__list_next(&p->retries, n)) {
        struct retry *other = KP_CONTAINER(n, struct retry, link);

        if (other->cq != r->cq || !same_kind(p, other, r))
            continue;
        if (kp__pool_cost(p, &r->need).total <
            kp__pool_cost(p, &other->need).total) {
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
    bool merged;

    if (r == NULL) {
        kp__cq_signal(cq);
        return;
    }
    kp__cq_ref(cq);
    r->cq = cq;
    r->queue = q;
    r->need = *need;
    kp__node_init(&r->link);
    kp__mutex_lock_patiently(&p->lock);
    merged = merge_retry(p, r);
    if (!merged)
        kp__list_push_back(&p->retries, &r->link);
    /* Memory may have come back since the refusal, enough for this one and not
     * for the one that it was merged with. */
    kp__pool_serve_and_unlock(p);
    if (!merged)
        return;
    kp__cq_unref(cq);
    kp__free(r);
}
