/* SPDX-License-Identifier: BSD-2-Clause */
/* flush.c - kp_flush.  Application threads.  Java: KafkaProducer.flush, with a
 * limit and with an answer.
 *
 * Invariant: no lock is held while a batch is compressed, and a batch that was
 * claimed is finished by the next step. */
#include "lib/api/flush.h"

#include "lib/base/check.h"
#include "lib/base/error.h"

/* What one batch is thought to take at most, as long as none has taken longer:
 * nothing is begun that might not be done by the call's deadline. */
#define BATCH_TAKES_NS (10 * KP_NS_PER_MS)

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

/* -- Compressing meanwhile -- */

static bool has_time(const struct flush *f)
{
    int64_t takes_ns =
        f->longest_ns > BATCH_TAKES_NS ? f->longest_ns : BATCH_TAKES_NS;

    return f->deadline_ns == KP_NEVER ||
           kp__ns_add(kp__now_ns(&f->p->clock), takes_ns) < f->deadline_ns;
}

static void leave_the_line(struct flush *f)
{
    struct claims *c = &f->p->accumulator.claims;

    /* Whose turn it was is not ours to know: the next one's, then. */
    if (f->awaits && !kp__claims_leave(c, &f->waiter))
        kp__claims_chance(c);
    f->awaits = false;
}

/* NULL: none is free, and we are woken when one is. */
static struct compressor *take_compressor(struct flush *f)
{
    struct record_accumulator *a = &f->p->accumulator;
    struct compressor *k = kp__compressors_take(a->compressors);

    if (k == NULL) {
        f->awaits = true;
        kp__claims_await(&a->claims, &f->waiter);
        /* One may have been given back before we stood in the line. */
        k = kp__compressors_take(a->compressors);
    }
    if (k != NULL)
        leave_the_line(f);
    return k;
}

/* The compressor first: a batch that is claimed for nothing is kept from those
 * who could do it. */
static bool claim(struct flush *f)
{
    struct record_accumulator *a = &f->p->accumulator;

    if (!a->compresses)
        return false;
    if (!has_time(f)) {
        leave_the_line(f); /* it may have been its turn */
        return false;
    }
    f->compressor = take_compressor(f);
    if (f->compressor == NULL)
        return false;
    if (kp__claims_take(&a->claims, &f->claimed))
        return true;
    kp__compressors_give(a->compressors, f->compressor);
    /* Another may have found none meanwhile, and there may be offers by now. */
    kp__claims_chance(&a->claims);
    return false;
}

static void compress(struct flush *f)
{
    struct record_accumulator *a = &f->p->accumulator;
    int64_t began_ns = kp__now_ns(&f->p->clock), took_ns;

    kp__compress_and_finish(a, f->claimed, f->compressor);
    f->claimed = NULL;
    f->compressed++;
    kp__io_wake(a->bell, 0);
    took_ns = kp__now_ns(&f->p->clock) - began_ns;
    if (took_ns > f->longest_ns)
        f->longest_ns = took_ns;
}

/* -- The steps -- */

kp_err kp__flush_begin(struct flush *f, struct kp_producer *p,
                       int64_t deadline_ns)
{
    struct op *op = kp__op_create(OP_FLUSH, NULL, 0);

    if (op == NULL)
        return KP_ENOMEM;
    *f = (struct flush){.p = p, .op = op, .deadline_ns = deadline_ns};
    kp__node_init(&f->waiter.link);
    f->waiter.op = op;
    kp__producer_post_op(p, op);
    return KP_PENDING;
}

kp_err kp__flush_try(struct flush *f)
{
    if (f->claimed != NULL)
        compress(f);
    /* Before the look at what is offered: an offer that comes after it changes
     * the word. */
    kp__op_ticket(f->op, f->deadline_ns, &f->ticket);
    if (kp__op_is_done(f->op))
        return KP_OK;
    if (claim(f))
        f->ticket = (struct ticket){0};
    return KP_PENDING;
}

void kp__flush_end(struct flush *f)
{
    KP_CHECK(f->claimed == NULL);
    leave_the_line(f);
    kp__op_unref(f->op);
    f->op = NULL;
}

/* -- The call -- */

static kp_err wait_for(struct flush *f)
{
    kp_err err;

    while ((err = kp__flush_try(f)) == KP_PENDING) {
        if (!kp__ticket_wait(&f->ticket))
            return kp__op_is_done(f->op) ? KP_OK : KP_PENDING;
    }
    return err;
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
    struct flush f;

    if (err != KP_OK)
        return err;
    if (all_reported(p))
        return result(p, error);
    began_ns = kp__now_ns(&p->clock);
    err = kp__flush_begin(&f, p, kp__deadline_ns(began_ns, timeout_ms));
    if (err == KP_ENOMEM)
        return kp__error_set(error, KP_ENOMEM, KP_OK,
                             "kp_flush: no memory; what was sent is delivered "
                             "all the same: try again, or wait for reports");
    err = wait_for(&f);
    kp__flush_end(&f);
    kp__metrics_add_flush_ns(p->metrics, kp__now_ns(&p->clock) - began_ns);
    return err == KP_OK ? result(p, error) : pending(error);
}
