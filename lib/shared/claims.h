/* SPDX-License-Identifier: BSD-2-Clause */
/* claims.h - queues whose SEALED batches whoever waits in a flush may compress.
 *
 * The I/O thread offers queues, waiting threads claim batches of them, one at a
 * time and in turn, so that the heads of all partitions are ready early.  An
 * offer is a hint: a batch that nobody claims here is the I/O thread's. */
#ifndef KP_SHARED_CLAIMS_H
#define KP_SHARED_CLAIMS_H

#include "lib/shared/partition_queue.h"

struct claims {
    struct mutex lock;
    struct list offered; /* guarded by lock: partition_queue.offer_link */
};

void kp__claims_init(struct claims *c);
void kp__claims_fini(struct claims *c);
/* Something in q is SEALED.  No lock may be held. */
void kp__claims_offer(struct claims *c, struct partition_queue *q);
/* Claim one batch of those offered: *out is COMPRESSING and the caller's.
 * False: there is none.  No lock may be held. */
bool kp__claims_take(struct claims *c, struct batch **out);

#endif
