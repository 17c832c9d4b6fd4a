/* SPDX-License-Identifier: BSD-2-Clause */
/* flush.c - kp_flush.  Application threads.  Java: KafkaProducer.flush, with a
 * limit and with an answer. */
#include "lib/api/producer.h"

#include "lib/base/error.h"

/* Has everything taken before now been reported?  Never waits. */
static bool all_reported(struct kp_producer *p)
{
    /* A record taken is announced on the drain list; the I/O thread says that
     * it is busy before it takes the list. seq_cst, in this order. */
    return kp__drain_empty(&p->accumulator) && atomic_load(&p->busy) == 0 &&
           kp__drain_empty(&p->accumulator);
}

static kp_err pending(kp_error *error)
{
    return kp__error_set(error, KP_PENDING, KP_OK,
                         "kp_flush: the timeout came before the last report; "
                         "flush again to go on waiting");
}

static kp_err wait_for(struct op *op, int64_t deadline_ns)
{
    struct ticket t;

    while (!kp__op_is_done(op)) {
        kp__op_ticket(op, deadline_ns, &t);
        if (!kp__ticket_wait(&t) && !kp__op_is_done(op))
            return KP_PENDING;
    }
    return KP_OK;
}

/* Everything is reported: what is there to tell? */
static kp_err result(struct kp_producer *p, kp_error *error)
{
    kp_err err = kp__producer_take_unwatched(p, error);

    return err == KP_OK ? kp__producer_fatal(p, error) : err;
}

kp_err kp_flush(kp_producer *p, int64_t timeout_ms, kp_error *error)
{
    kp_err err = kp__check_waiting_call(p, "kp_flush", timeout_ms, error);
    int64_t began_ns;
    struct op *op;

    if (err != KP_OK)
        return err;
    if (all_reported(p))
        return result(p, error);
    began_ns = kp__now_ns(&p->clock);
    op = kp__op_create(OP_FLUSH, NULL, 0);
    if (op == NULL)
        return kp__error_set(error, KP_ENOMEM, KP_OK, "kp_flush: no memory");
    kp__producer_post_op(p, op);
    err = wait_for(op, kp__deadline_ns(began_ns, timeout_ms));
    kp__op_unref(op);
    kp__metrics_add_flush_ns(p->metrics, kp__now_ns(&p->clock) - began_ns);
    return err == KP_OK ? result(p, error) : pending(error);
}
