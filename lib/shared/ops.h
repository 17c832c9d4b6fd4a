/* SPDX-License-Identifier: BSD-2-Clause */
/* ops.h - what application threads ask of the I/O thread.
 *
 * Ops are heap objects with a count, because a caller may give up waiting while
 * the op goes on.  Posted on a lock-free stack that the I/O thread takes whole;
 * it answers by kp__op_done. */
#ifndef KP_SHARED_OPS_H
#define KP_SHARED_OPS_H

#include <stdatomic.h>
#include <stdint.h>

#include "include/kp/kp.h"
#include "lib/base/wait.h"

enum op_kind {
    OP_WANT_TOPIC, /* nobody waits on the op itself but on the topic's word */
    OP_FLUSH,
    OP_CLOSE       /* close by deadline_ns; 0: at once */
};

#define OP_IS_DONE 1u
#define OP_OFFER 2u

struct op {
    struct op *next; /* the stack's */
    enum op_kind kind;
    _Atomic uint32_t refs;
    _Atomic uint32_t word; /* OP_IS_DONE, and a count of offers above it */
    int64_t deadline_ns;
    char *topic;           /* owned; WANT_TOPIC */
    size_t topic_size;
    /* answers: the I/O thread's until done */
    kp_err err;
    /* the I/O thread's own */
    struct op *pending_next;
    uint64_t flush_epoch;
};

struct ops {
    _Atomic(struct op *) head;
};

void kp__ops_init(struct ops *o);
/* One reference for the caller and one for the I/O thread.  NULL: no memory. */
struct op *kp__op_create(enum op_kind kind, const char *topic,
                         size_t topic_size);
void kp__op_ref(struct op *op);
void kp__op_unref(struct op *op);
/* Push; the caller then wakes the I/O thread (kp__io_wake with 0). */
void kp__op_post(struct ops *o, struct op *op);
/* I/O thread: everything posted, oldest first, linked by next; NULL: nothing.
 * */
struct op *kp__ops_take(struct ops *o);
bool kp__ops_empty(const struct ops *o);
/* I/O thread: publish the answer, wake who waits, drop the reference. */
void kp__op_done(struct op *op);
/* The I/O thread has ended: answer whatever is posted. Any thread. */
void kp__ops_finish(struct ops *o);
/* Wake who waits for the op, because there is something that it can do
 * meanwhile. */
void kp__op_offer(struct op *op);
bool kp__op_is_done(const struct op *op);
/* What to sleep on until the op is done or something more is offered.  What is
 * looked for must be looked for after this. */
void kp__op_ticket(struct op *op, int64_t deadline_ns, struct ticket *out);

#endif
