/* SPDX-License-Identifier: BSD-2-Clause */
/* complete.c - deciding the fate of batches.  I/O thread.
 *
 * Invariant: a batch is completed once; completing says nothing about its
 * memory, which goes back when nobody can touch the bytes any more. */
#include "io_thread/sender.h"

#include "lib/base/str.h"

void kp__register(struct io_thread *io, struct sender_partition *sp,
                  struct batch *b)
{
    if (b->registered || b->split.origin != NULL)
        return;
    b->registered = true;
    b->certainty = CERTAIN_NO;
    b->flush_epoch = io->flush_epoch;
    io->flush_pending[b->flush_epoch % FLUSH_EPOCHS]++;
    kp__list_push_back(&sp->order, &b->order_link);
    sp->unreported++;
    if (!kp__node_linked(&sp->active_link))
        kp__list_push_back(&io->active, &sp->active_link);
}

void kp__release(struct io_thread *io, struct batch *b)
{
    if (b->split.origin != NULL)
        kp__split_release(io, b);
    else
        kp__batch_release_bytes(b);
}

static void count_errors(struct io_thread *io, struct sender_partition *sp,
                         const struct batch *b, kp_err err)
{
    kp__metrics_record(io->p->metrics, SENSOR_RECORD_ERRORS,
                       (double)b->record_count, io->now_ns);
    if (sp->metrics == NULL)
        sp->metrics = kp__metrics_topic(io->p->metrics,
                                        sp->queue->topic->name->text,
                                        sp->queue->topic->name->size);
    kp__metrics_record_topic(io->p->metrics, sp->metrics, TOPIC_ERRORS,
                             (double)b->record_count, io->now_ns);
    if (err == KP_ECLOSED)
        io->left_over += b->record_count;
}

/* b, whose outcome is known, will be reported in its turn. */
static void queue_report(struct io_thread *io, struct sender_partition *sp,
                         struct batch *b)
{
    /* Once: it has not been reported, and waits for that nowhere. */
    KP_CHECK(kp__node_linked(&b->order_link) && !kp__node_linked(&b->link));
    kp__list_push_back(&io->done, &b->link);
    if (!kp__node_linked(&sp->report_link))
        kp__list_push_back(&io->to_report, &sp->report_link);
}

/* Its numbers may outlive it. */
static void leave_ledger(struct io_thread *io, struct sender_partition *sp,
                         const struct batch *b)
{
    struct ledger_entry *e = io->settings->idempotence && b->base_sequence >= 0
                                 ? kp__ledger_find(&sp->ledger, b)
                                 : NULL;

    if (e != NULL)
        kp__ledger_gone(&sp->ledger, e, b->certainty);
}

/* o: all but `stored`, which is what b is certain of. */
static void complete(struct io_thread *io, struct sender_partition *sp,
                     struct batch *b, struct outcome o, const char *text)
{
    /* First: a batch that was never looked at has no certainty before it. */
    kp__register(io, sp, b);
    o.stored = b->certainty;
    b->fate = FATE_COMPLETED;
    leave_ledger(io, sp, b);
    if (b->split.origin != NULL) {
        if (kp__split_complete(b, &o, text))
            queue_report(io, sp, b->split.origin);
        return;
    }
    b->result->outcome = o;
    if (text != NULL && b->result->text == NULL)
        b->result->text = kp__strdup(text);
    queue_report(io, sp, b);
}

void kp__complete_stored(struct io_thread *io, struct sender_partition *sp,
                         struct batch *b, int64_t base_offset,
                         int64_t append_time_ms)
{
    complete(io, sp, b,
             (struct outcome){.base_offset = base_offset,
                              .append_time_ms = append_time_ms},
             NULL);
}

void kp__complete_failed(struct io_thread *io, struct sender_partition *sp,
                         struct batch *b, kp_err err, kp_err cause,
                         const char *text)
{
    count_errors(io, sp, b, err);
    complete(io, sp, b,
             (struct outcome){.err = err,
                              .cause = cause == err ? KP_OK : cause,
                              .base_offset = -1,
                              .append_time_ms = -1},
             text);
}

/* Why a batch that ran out of time did not get away. */
static kp_err expiry_cause(const struct io_thread *io,
                           const struct sender_partition *sp,
                           const struct batch *b)
{
    const char *text;
    kp_err own;

    if (b->last_err != KP_OK)
        return b->last_err;
    if (sp->leader == NULL)
        return io->last_network_err != KP_OK ? io->last_network_err
                                             : KP_EMETADATA;
    own = kp__node_error(sp->leader->node, &text);
    if (sp->leader->unreachable)
        return own != KP_OK ? own : io->last_network_err;
    return KP_OK;
}

/* How the brokers stand, for a batch that did not get away. */
static const char *what_stands(struct io_thread *io,
                               const struct sender_partition *sp,
                               kp_error *room)
{
    const char *text = NULL;

    if (sp->leader != NULL && sp->leader->unreachable)
        (void)kp__node_error(sp->leader->node, &text);
    else if (sp->leader == NULL &&
             kp__status_get(&io->p->status, sp->queue->topic->name->text,
                            sp->queue->topic->name->size, room) != KP_OK)
        text = room->text;
    return text;
}

/* Whoever reads only the report should know what kept it. */
static const char *expiry_text(struct io_thread *io,
                               const struct sender_partition *sp,
                               const struct batch *b, kp_err err, char *out,
                               size_t size)
{
    const char *why;
    kp_error room;

    if (err != KP_ETIMEDOUT)
        return NULL;
    why = what_stands(io, sp, &room);
    if (why == NULL && b->place != PLACE_IN_FLIGHT && sp->leader != NULL &&
        kp__client_is_throttled(sp->leader->node, io->now_ns))
        why = "the broker throttles this client";
    if (why == NULL && b->last_err != KP_OK)
        why = kp_err_name(b->last_err);
    if (why == NULL)
        why = b->place == PLACE_IN_FLIGHT ? "its request was not answered"
                                          : "it waited for its turn";
    (void)kp__format(out, size, "%u record%s for %.100s [%d], %lld ms old: %.300s",
                   b->record_count, b->record_count == 1 ? "" : "s",
                   sp->queue->topic->name->text,
                   (int)sp->queue->partition,
                   (long long)((io->now_ns - b->created_ns) / KP_NS_PER_MS),
                   why);
    return out;
}

static void give_up(struct io_thread *io, struct sender_partition *sp,
                    struct batch *b, kp_err err)
{
    char text[500];
    const char *said = expiry_text(io, sp, b, err, text, sizeof(text));

    if (err == KP_ETIMEDOUT && b->attempts == 0)
        kp__metrics_record(io->p->metrics, SENSOR_QUEUE_TIME_MS,
                           (double)(io->now_ns - b->created_ns) / KP_NS_PER_MS,
                           io->now_ns);
    kp__complete_failed(io, sp, b, err, expiry_cause(io, sp, b), said);
}

/* Handed to a connection: it cannot be withdrawn from the frame, and no answer
 * has come. */
static void fail_on_wire(struct io_thread *io, struct sender_partition *sp,
                         struct batch *b, kp_err err)
{
    if (b->certainty != CERTAIN_YES)
        b->certainty = CERTAIN_MAYBE;
    give_up(io, sp, b, err);
}

static void fail_in_flight(struct io_thread *io, struct sender_partition *sp,
                           int64_t deadline_ns, kp_err err)
{
    struct list_node *n = kp__list_first(&sp->order);

    while (n != NULL) {
        struct batch *b = KP_CONTAINER(n, struct batch, order_link);

        n = kp__list_next(&sp->order, n);
        /* First: what is younger may still be in the queue, where the place is
         * the senders' too.  By ordinal is by deadline. */
        if (b->deadline_ns > deadline_ns)
            break;
        if (b->fate == FATE_PENDING && b->place == PLACE_IN_FLIGHT)
            fail_on_wire(io, sp, b, err);
    }
}

/* Children of a split stand in for their origin, which alone is in `order`. */
static void fail_children(struct io_thread *io, struct sender_partition *sp,
                          int64_t deadline_ns, kp_err err)
{
    struct list_node *n = kp__list_first(&io->split.on_wire);

    while (n != NULL) {
        struct batch *b = KP_CONTAINER(n, struct batch, order_link);

        n = kp__list_next(&io->split.on_wire, n);
        if (b->queue == sp->queue && b->deadline_ns <= deadline_ns &&
            b->fate == FATE_PENDING)
            fail_on_wire(io, sp, b, err);
    }
}

static void fail_where_they_stand(struct io_thread *io,
                                  struct sender_partition *sp,
                                  int64_t deadline_ns, kp_err err)
{
    struct list out;
    struct list_node *n;

    kp__list_init(&out);
    kp__queue_expire(sp->queue, deadline_ns, &out);
    fail_in_flight(io, sp, deadline_ns, err);
    fail_children(io, sp, deadline_ns, err);
    while ((n = kp__list_pop_front(&out)) != NULL) {
        struct batch *b = KP_CONTAINER(n, struct batch, link);
        bool ours = b->place != PLACE_COMPRESSING;

        give_up(io, sp, b, err);
        /* A claimant sees the fate when it is done and gives the bytes back. */
        if (ours)
            kp__release(io, b);
    }
}

static int64_t earliest_deadline(const struct sender_partition *sp)
{
    int64_t at_ns = KP_NEVER;

    for (struct list_node *n = kp__list_first(&sp->order); n != NULL;
         n = kp__list_next(&sp->order, n)) {
        const struct batch *b = KP_CONTAINER(n, struct batch, order_link);

        if (b->fate == FATE_PENDING && b->deadline_ns < at_ns) {
            at_ns = b->deadline_ns;
            break; /* by ordinal is by age */
        }
    }
    return at_ns;
}

void kp__expire_due(struct io_thread *io)
{
    struct heap_node *n;

    while ((n = kp__heap_first(&io->deadlines)) != NULL &&
           n->at_ns <= io->now_ns) {
        struct sender_partition *sp =
            KP_CONTAINER(n, struct sender_partition, deadline);
        int64_t next_ns;

        kp__heap_remove(&io->deadlines, n);
        kp__queue_note_age(sp->queue,
                           io->now_ns - io->p->accumulator.open_max_ns);
        fail_where_they_stand(io, sp, io->now_ns, KP_ETIMEDOUT);
        next_ns = earliest_deadline(sp);
        if (next_ns != KP_NEVER)
            kp__heap_set(&io->deadlines, n, next_ns);
        kp__plan(io, sp); /* sets it earlier or again for what is queued */
        io->progressed = true;
    }
}

void kp__fail_partition(struct io_thread *io, struct sender_partition *sp,
                        kp_err err)
{
    fail_where_they_stand(io, sp, KP_NEVER, err);
    kp__plan(io, sp);
}

static kp_err fatal_err(const struct io_thread *io)
{
    /* relaxed: this thread wrote it */
    return (kp_err)atomic_load_explicit(&io->p->accumulator.fatal_err,
                                        memory_order_relaxed);
}

bool kp__fail_if_over(struct io_thread *io, struct sender_partition *sp)
{
    if (atomic_load(&io->p->accumulator.taking) == TAKING_FATAL)
        kp__fail_partition(io, sp, fatal_err(io));
    else if (io->forced)
        kp__fail_partition(io, sp, KP_ECLOSED);
    else
        return false;
    return true;
}

static void fail_topic(void *arg, struct topic *t)
{
    struct io_thread *io = arg;
    const struct topic_view *v = kp__topic_view(t);
    kp_err err = fatal_err(io);

    for (int32_t i = 0; v != NULL && i < v->count; i++) {
        struct sender_partition *sp = kp__sp_get(io, v->queues[i]);

        if (sp != NULL)
            kp__fail_partition(io, sp, err);
    }
}

void kp__fatal(struct io_thread *io, kp_err err, const char *text)
{
    struct record_accumulator *a = &io->p->accumulator;

    if (atomic_load(&a->taking) == TAKING_FATAL)
        return; /* what every call says does not change any more */
    kp__log(io->p->log, KP_LOG_ERROR, "producer", "fatal: %s: %s",
            kp_err_name(err), text);
    kp__status_fatal(&io->p->status, err, "%s", text);
    /* relaxed: read by senders after they saw `taking` change */
    atomic_store_explicit(&a->fatal_err, err, memory_order_relaxed);
    /* Of a producer that is being closed too: its close says so.  release:
     * fatal_err is seen by whoever sees FATAL */
    atomic_store_explicit(&a->taking, TAKING_FATAL, memory_order_release);
    kp__pool_close(io->p->pool);
    kp__topics_wake_all(io->p->topics);
    /* The visit is the barrier: after it nothing can be added. */
    kp__topics_each(io->p->topics, fail_topic, io);
}
