/* SPDX-License-Identifier: BSD-2-Clause */
/* ops.c - requests to the I/O thread, on a stack that is taken whole.  Any
 * thread posts, the I/O thread takes and answers.
 *
 * Invariant: an op lives until both its caller and the I/O thread have dropped
 * it; its answer does not change after the word says that it is done. */
#include "lib/shared/ops.h"

#include "lib/base/mem.h"

void kp__ops_init(struct ops *o)
{
    atomic_init(&o->head, NULL);
}

struct op *kp__op_create(enum op_kind kind, const char *topic,
                         size_t topic_size)
{
    struct op *op = kp__zalloc(sizeof(*op));

    if (op == NULL)
        return NULL;
    op->kind = kind;
    atomic_init(&op->refs, 2);
    atomic_init(&op->word, 0);
    op->deadline_ns = KP_NEVER;
    if (topic == NULL)
        return op;
    op->topic = kp__strndup(topic, topic_size);
    op->topic_size = topic_size;
    if (op->topic == NULL) {
        kp__free(op);
        return NULL;
    }
    return op;
}

void kp__op_ref(struct op *op)
{
    /* relaxed: whoever takes a reference has one, or keeps who has it */
    (void)atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
}

void kp__op_unref(struct op *op)
{
    /* acq_rel: what the other holder did comes before the end */
    if (atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) != 1)
        return;
    kp__free(op->topic);
    kp__free(op);
}

void kp__op_post(struct ops *o, struct op *op)
{
    /* relaxed: the exchange below checks it */
    struct op *head = atomic_load_explicit(&o->head, memory_order_relaxed);

    do
        op->next = head;
    /* seq_cst: the poster looks at the bell after it */
    while (!atomic_compare_exchange_weak(&o->head, &head, op));
}

struct op *kp__ops_take(struct ops *o)
{
    struct op *op = atomic_exchange(&o->head, NULL), *oldest = NULL;

    while (op != NULL) {
        struct op *next = op->next;

        op->next = oldest;
        oldest = op;
        op = next;
    }
    return oldest;
}

bool kp__ops_empty(const struct ops *o)
{
    /* seq_cst: the I/O thread's last look before it sleeps */
    return atomic_load(&((struct ops *)(uintptr_t)o)->head) == NULL;
}

void kp__op_done(struct op *op)
{
    /* release: pairs with kp__op_is_done */
    (void)atomic_fetch_or_explicit(&op->word, OP_IS_DONE, memory_order_release);
    /* Several may wait for one op. */
    kp__wake(&op->word, INT32_MAX);
    kp__op_unref(op);
}

void kp__op_offer(struct op *op)
{
    /* release: pairs with kp__op_ticket */
    (void)atomic_fetch_add_explicit(&op->word, OP_OFFER, memory_order_release);
    kp__wake(&op->word, INT32_MAX);
}

void kp__ops_finish(struct ops *o)
{
    struct op *op = kp__ops_take(o);

    while (op != NULL) {
        struct op *next = op->next;

        op->err = KP_ECLOSED;
        kp__op_done(op);
        op = next;
    }
}

bool kp__op_is_done(const struct op *op)
{
    /* acquire: the answer was written before the word */
    return (atomic_load_explicit(&((struct op *)(uintptr_t)op)->word,
                                 memory_order_acquire) &
            OP_IS_DONE) != 0;
}

void kp__op_ticket(struct op *op, int64_t deadline_ns, struct ticket *out)
{
    /* acquire: who sees an offer's count finds what was offered */
    uint32_t seen = atomic_load_explicit(&op->word, memory_order_acquire);
    bool done = (seen & OP_IS_DONE) != 0;

    *out = (struct ticket){done ? NULL : &op->word, seen, deadline_ns, 0};
}
