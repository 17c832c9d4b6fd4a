/* SPDX-License-Identifier: BSD-2-Clause */
/* serve_ops.c - what application threads ask for: topics, flush, close.
 * I/O thread.
 *
 * Flush by epochs: every batch is counted in the epoch in which it was first
 * seen; a flush sees all there is, ends the epoch, and is done when nothing of
 * it or of earlier ones is unreported. */
#include "io_thread/sender.h"

static void register_one(void *arg, struct batch *b)
{
    struct sender_partition *sp = arg;

    kp__register(sp->io, sp, b);
}

/* Seal and count everything that is in the queues now.  With a codec who waits
 * may compress what is sealed: true if there is any. */
static bool visit_active(struct io_thread *io)
{
    struct record_accumulator *a = &io->p->accumulator;
    bool offered = false;
    struct list todo;
    struct list_node *n;

    kp__list_init(&todo);
    kp__list_splice_back(&todo, &io->active);
    while ((n = kp__list_pop_front(&todo)) != NULL) {
        struct sender_partition *sp =
            KP_CONTAINER(n, struct sender_partition, active_link);

        kp__list_push_back(&io->active, n);
        if (kp__queue_visit(sp->queue, true, register_one, sp) &&
            a->compresses) {
            kp__claims_offer(&a->claims, sp->queue);
            offered = true;
        }
        kp__plan(io, sp);
    }
    return offered;
}

static void end_epoch(struct io_thread *io)
{
    /* All in use: this flush shares the newest epoch, and waits for whatever
     * else enters it until one is free. */
    io->epoch_shared = io->flush_epoch + 1 - io->flush_first >= FLUSH_EPOCHS;
    if (!io->epoch_shared)
        io->flush_epoch++;
}

static void flush(struct io_thread *io, struct op *op)
{
    struct op **tail = &io->flushes;
    bool offered;

    if (!kp__plan_drain(io)) {
        /* What there was no memory to see, it would not wait for. */
        kp__op_post(&io->p->ops, op);
        return;
    }
    offered = visit_active(io);
    op->flush_epoch = io->flush_epoch;
    end_epoch(io);
    while (*tail != NULL)
        tail = &(*tail)->pending_next;
    op->pending_next = NULL;
    *tail = op;
    if (offered)
        kp__op_offer(op);
}

static void seal_topic(void *arg, struct topic *t)
{
    struct io_thread *io = arg;
    const struct topic_view *v = kp__topic_view(t);

    for (int32_t i = 0; v != NULL && i < v->count; i++) {
        struct sender_partition *sp = kp__sp_get(io, v->queues[i]);

        if (sp == NULL)
            continue;
        (void)kp__queue_visit(v->queues[i], true, register_one, sp);
        kp__plan(io, sp);
    }
}

static void close_begin(struct io_thread *io, struct op *op)
{
    struct op **tail = &io->closes;

    if (!io->closing) {
        io->closing = true;
        io->close_at_ns = KP_NEVER;
        /* `taking` says CLOSED: after this visit nothing can be added. */
        (void)kp__plan_drain(io);
        kp__topics_each(io->p->topics, seal_topic, io);
    }
    if (op->deadline_ns < io->close_at_ns)
        io->close_at_ns = op->deadline_ns; /* the earliest forces */
    while (*tail != NULL)
        tail = &(*tail)->pending_next;
    op->pending_next = NULL;
    *tail = op;
}

static void serve(struct io_thread *io, struct op *op)
{
    switch (op->kind) {
    case OP_WANT_TOPIC:
        kp__metadata_want(io->metadata, op->topic, op->topic_size,
                          io->now_ns);
        kp__op_done(op);
        break;
    case OP_FLUSH:
        flush(io, op);
        break;
    case OP_CLOSE:
        close_begin(io, op);
        break;
    }
}

void kp__serve_ops(struct io_thread *io)
{
    struct op *op = kp__ops_take(&io->p->ops);

    while (op != NULL) {
        struct op *next = op->next;

        serve(io, op);
        io->progressed = true;
        op = next;
    }
}

static void serve_flushes(struct io_thread *io)
{
    while (io->flush_first < io->flush_epoch &&
           io->flush_pending[io->flush_first % FLUSH_EPOCHS] == 0)
        io->flush_first++;
    if (io->epoch_shared)
        end_epoch(io);
    while (io->flushes != NULL) {
        struct op *op = io->flushes;
        bool open = op->flush_epoch >= io->flush_first;

        if (open && (op->flush_epoch != io->flush_first ||
                     io->flush_pending[op->flush_epoch % FLUSH_EPOCHS] != 0))
            break;
        io->flushes = op->pending_next;
        kp__op_done(op);
    }
}

static void fail_topic(void *arg, struct topic *t)
{
    struct io_thread *io = arg;
    const struct topic_view *v = kp__topic_view(t);

    for (int32_t i = 0; v != NULL && i < v->count; i++) {
        struct sender_partition *sp = kp__sp_get(io, v->queues[i]);

        if (sp != NULL)
            kp__fail_partition(io, sp, KP_ECLOSED);
    }
}

bool kp__nothing_left(const struct io_thread *io)
{
    if (!kp__list_empty(&io->active) || !kp__list_empty(&io->to_report) ||
        !kp__list_empty(&io->done))
        return false;
    return kp__drain_empty(&io->p->accumulator);
}

void kp__serve_close_due(struct io_thread *io)
{
    if (!io->closing || io->forced || io->now_ns < io->close_at_ns)
        return;
    io->forced = true;
    (void)kp__plan_drain(io);
    kp__topics_each(io->p->topics, fail_topic, io);
    io->progressed = true;
}

static void serve_closes(struct io_thread *io)
{
    if (!io->closing || !kp__nothing_left(io))
        return;
    /* relaxed: kp_close reads it after it has seen an op done */
    atomic_store_explicit(&io->p->left_over, io->left_over,
                          memory_order_relaxed);
    while (io->closes != NULL) {
        struct op *op = io->closes;

        io->closes = op->pending_next;
        kp__op_done(op);
    }
    io->finished = true;
}

void kp__serve_pending(struct io_thread *io)
{
    serve_flushes(io);
    serve_closes(io);
}

int64_t kp__serve_next_timer(const struct io_thread *io)
{
    return io->closing && !io->forced ? io->close_at_ns : KP_NEVER;
}
