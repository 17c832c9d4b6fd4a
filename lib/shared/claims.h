/* SPDX-License-Identifier: BSD-2-Clause */
/* claims.h - queues whose SEALED batches whoever waits in a flush may compress.
 *
 * The I/O thread offers queues, waiting threads claim batches of them, one at a
 * time and in turn, so that the heads of all partitions are ready early.  An
 * offer is a hint: a batch that nobody claims here is the I/O thread's, as soon
 * as it is the first of its queue.  A thread that finds no compressor free waits
 * for its turn here: whoever gives one back wakes it, if there is something to
 * do. */
#ifndef KP_SHARED_CLAIMS_H
#define KP_SHARED_CLAIMS_H

#include "lib/shared/ops.h"
#include "lib/shared/partition_queue.h"

struct claims {
    struct mutex lock;
    /* guarded by lock */
    struct list offered; /* partition_queue.offer_link */
    struct list waiting; /* claim_waiter.link */
    /* atomic; written under the lock */
    _Atomic uint32_t waiting_count;
};

/* Who waits in a flush, and for a compressor.  `op` is the flush's. */
struct claim_waiter {
    struct list_node link; /* guarded by the claims' lock */
    struct op *op;
};

void kp__claims_init(struct claims *c);
void kp__claims_fini(struct claims *c);
/* Something in q is SEALED.  No lock may be held. */
void kp__claims_offer(struct claims *c, struct partition_queue *q);
/* Claim one batch of those offered: *out is COMPRESSING and the caller's.
 * False: there is none.  No lock may be held. */
bool kp__claims_take(struct claims *c, struct batch **out);
/* No compressor was free: wake w's op with an offer when one is.  The caller
 * looks for one again after it.  May be called again. */
void kp__claims_await(struct claims *c, struct claim_waiter *w);
/* w waits no more, and may be freed.  False: it was its turn already. */
bool kp__claims_leave(struct claims *c, struct claim_waiter *w);
/* A compressor was given back: whose turn is it? */
void kp__claims_chance(struct claims *c);

#endif
