/* SPDX-License-Identifier: BSD-2-Clause */
/* claims.c - queues with something to compress.  The I/O thread offers, threads
 * that wait claim.
 *
 * Invariant: a queue with a SEALED batch that was offered stays on the list
 * until somebody has looked at it after the offer and found none: a queue is
 * taken off only if it was not offered again since it was read. */
#include "lib/shared/claims.h"

void kp__claims_init(struct claims *c)
{
    kp__mutex_init(&c->lock);
    kp__list_init(&c->offered);
    kp__list_init(&c->waiting);
    atomic_init(&c->waiting_count, 0);
}

void kp__claims_fini(struct claims *c)
{
    kp__mutex_fini(&c->lock);
}

void kp__claims_offer(struct claims *c, struct partition_queue *q)
{
    kp__mutex_lock(&c->lock);
    q->offers++;
    if (!kp__node_linked(&q->offer_link))
        kp__list_push_back(&c->offered, &q->offer_link);
    kp__mutex_unlock(&c->lock);
}

/* The queue whose turn it is, which goes to the end; NULL: none. */
static struct partition_queue *next(struct claims *c, uint32_t *offers)
{
    struct partition_queue *q = NULL;
    struct list_node *n;

    kp__mutex_lock(&c->lock);
    n = kp__list_pop_front(&c->offered);
    if (n != NULL) {
        kp__list_push_back(&c->offered, n);
        q = KP_CONTAINER(n, struct partition_queue, offer_link);
        *offers = q->offers;
    }
    kp__mutex_unlock(&c->lock);
    return q;
}

static void drop(struct claims *c, struct partition_queue *q, uint32_t offers)
{
    kp__mutex_lock(&c->lock);
    if (q->offers == offers)
        kp__list_remove(&q->offer_link);
    kp__mutex_unlock(&c->lock);
}

bool kp__claims_take(struct claims *c, struct batch **out)
{
    struct partition_queue *q;
    uint32_t offers;

    while ((q = next(c, &offers)) != NULL) {
        if (kp__queue_claim_sealed(q, out))
            return true;
        drop(c, q, offers);
    }
    return false;
}

/* -- Waiting for a compressor -- */

/* Under the lock.  relaxed: see kp__claims_chance */
static void count_waiting(struct claims *c, uint32_t change)
{
    (void)atomic_fetch_add_explicit(&c->waiting_count, change,
                                    memory_order_relaxed);
}

void kp__claims_await(struct claims *c, struct claim_waiter *w)
{
    kp__mutex_lock(&c->lock);
    if (!kp__node_linked(&w->link)) {
        kp__list_push_back(&c->waiting, &w->link);
        count_waiting(c, 1);
    }
    kp__mutex_unlock(&c->lock);
}

bool kp__claims_leave(struct claims *c, struct claim_waiter *w)
{
    bool waits;

    kp__mutex_lock(&c->lock);
    waits = kp__node_linked(&w->link);
    if (waits) {
        kp__list_remove(&w->link);
        count_waiting(c, UINT32_MAX);
    }
    kp__mutex_unlock(&c->lock);
    return waits;
}

void kp__claims_chance(struct claims *c)
{
    struct list_node *n = NULL;
    struct op *op = NULL;

    /* relaxed: who waits looks for a compressor once more after it is counted,
     * under the lock under which ours was given back just now: it found that
     * one, or we see it here */
    if (atomic_load_explicit(&c->waiting_count, memory_order_relaxed) == 0)
        return;
    kp__mutex_lock(&c->lock);
    if (!kp__list_empty(&c->offered))
        n = kp__list_pop_front(&c->waiting);
    if (n != NULL) {
        count_waiting(c, UINT32_MAX);
        /* The waiter may go as soon as it is on no list. */
        op = KP_CONTAINER(n, struct claim_waiter, link)->op;
        kp__op_ref(op);
    }
    kp__mutex_unlock(&c->lock);
    if (op == NULL)
        return;
    kp__op_offer(op);
    kp__op_unref(op);
}
