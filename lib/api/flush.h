/* SPDX-License-Identifier: BSD-2-Clause */
/* flush.h - one flush as a state that can be stopped and taken up again: what
 * kp_flush loops over, and what a simulator drives.
 *
 * Who waits compresses: between its waits a flush claims batches that are
 * offered, one at a time.  Claiming and compressing are two steps, so that a
 * simulator can let turns of the I/O thread fall between them. */
#ifndef KP_API_FLUSH_H
#define KP_API_FLUSH_H

#include "lib/api/producer.h"

struct flush {
    struct kp_producer *p;
    struct op *op;
    int64_t deadline_ns; /* KP_NEVER: none */
    struct ticket ticket;
    /* its own */
    struct batch *claimed; /* COMPRESSING, and ours; or NULL */
    struct compressor *compressor; /* for it */
    int64_t longest_ns;    /* that one batch has taken */
    uint32_t compressed;   /* batches */
    struct claim_waiter waiter; /* in line for a compressor */
    bool awaits;           /* it stands there, or had its turn */
};

/* Ask for it.  KP_PENDING, or KP_ENOMEM: there is nothing to end. */
kp_err kp__flush_begin(struct flush *f, struct kp_producer *p,
                       int64_t deadline_ns);
/* One step, which waits for nothing but may compress one batch.  KP_OK:
 * everything is reported.  KP_PENDING: wait on the ticket and call again, or
 * stop when the deadline has passed. */
kp_err kp__flush_try(struct flush *f);
/* Done, or given up once the deadline had passed and a step was made since:
 * then nothing is claimed. */
void kp__flush_end(struct flush *f);

#endif
