/* SPDX-License-Identifier: BSD-2-Clause */
/* plan.c - where each partition stands.  I/O thread.
 *
 * Invariant: a partition whose queue is not empty stands on exactly one list,
 * for one reason, and whatever ends the reason calls kp__plan.  Nothing scans.
 * */
#include "io_thread/sender.h"

#define COMPRESS_BYTES_A_TURN (256 * 1024)

static void leave_list(struct io_thread *io, struct sender_partition *sp)
{
    struct sender_node *sn = sp->leader;

    if (kp__node_linked(&sp->link))
        kp__list_remove(&sp->link);
    kp__heap_remove(kp__times_of(io, sp->standing), &sp->timer);
    if (sp->standing == STANDS_READY && sn != NULL &&
        kp__list_empty(&sn->ready) && kp__node_linked(&sn->link))
        kp__list_remove(&sn->link);
}

static void stand(struct io_thread *io, struct sender_partition *sp,
                  enum standing where)
{
    struct sender_node *sn = sp->leader;

    sp->standing = where;
    /* For another turn, as this one's may be over, or found its lock taken. */
    if (where == STANDS_READY || where == STANDS_SEALED || where == STANDS_BUSY)
        io->progressed = true;
    if (where != STANDS_READY) {
        if (where != STANDS_IDLE)
            kp__list_push_back(&io->standing[where], &sp->link);
        return;
    }
    kp__list_push_back(&sn->ready, &sp->link);
    if (!kp__node_linked(&sn->link))
        kp__list_push_back(&io->nodes_with_data, &sn->link);
}

static void stand_until(struct io_thread *io, struct sender_partition *sp,
                        enum standing where, int64_t at_ns)
{
    stand(io, sp, where);
    kp__heap_set(kp__times_of(io, where), &sp->timer, at_ns);
}

/* The head is OPEN: linger unless there is a reason not to.  One is a leader
 * that cannot be reached: it takes records until it is sent all the same, and
 * whoever the share of the unreachable keeps back waits for somebody to try. */
static void plan_open(struct io_thread *io, struct sender_partition *sp,
                      const struct queue_view *v)
{
    int64_t until_ns = kp__ns_add(v->head_created_ns, io->settings->linger_ns);

    if (v->head_full || v->expedite || io->closing ||
        (sp->leader != NULL && sp->leader->unreachable) ||
        until_ns <= kp__ns_add(io->now_ns, io->linger_less_ns) ||
        kp__pool_pressure(io->p->pool, NULL))
        stand(io, sp, STANDS_READY);
    else
        stand_until(io, sp, STANDS_LINGERING, until_ns);
}

/* What the head waits for besides its senders; STANDS_READY: nothing. */
static enum standing waits_for(const struct io_thread *io,
                               const struct sender_partition *sp,
                               const struct queue_view *v)
{
    if (sp->leader == NULL)
        return STANDS_NO_LEADER;
    if (io->settings->idempotence && sp->ledger.producer_id < 0)
        return STANDS_NO_ID;
    if (!kp__identity_allows(io, sp, v->stamped))
        return STANDS_IN_FLIGHT;
    if ((v->retry || sp->held) && sp->backoff_until_ns > io->now_ns)
        return STANDS_BACKING_OFF;
    return STANDS_READY;
}

static void plan_head(struct io_thread *io, struct sender_partition *sp,
                      const struct queue_view *v)
{
    enum standing why = waits_for(io, sp, v);

    if (why == STANDS_BACKING_OFF) {
        stand_until(io, sp, why, sp->backoff_until_ns);
        return;
    }
    if (why != STANDS_READY) {
        stand(io, sp, why);
        if (why == STANDS_NO_LEADER)
            kp__metadata_stale(io->metadata, io->now_ns);
        return;
    }
    switch (v->head_place) {
    case PLACE_OPEN:
        plan_open(io, sp, v);
        break;
    case PLACE_SEALED:
        stand(io, sp, STANDS_SEALED);
        break;
    case PLACE_COMPRESSING:
        stand(io, sp, STANDS_COMPRESSING);
        break;
    case PLACE_READY:
    case PLACE_IN_FLIGHT:
    case PLACE_GONE:
        KP_CHECK(v->head_place == PLACE_READY);
        stand(io, sp, STANDS_READY);
        break;
    }
}

static void watch_deadline(struct io_thread *io, struct sender_partition *sp,
                           int64_t deadline_ns)
{
    /* A timer that is early finds nothing and is set again: so it is not moved
     * each time a head leaves or another batch is opened. */
    if (!sp->deadline.in_heap || deadline_ns < sp->deadline.at_ns)
        kp__heap_set(&io->deadlines, &sp->deadline, deadline_ns);
}

static void note_active(struct io_thread *io, struct sender_partition *sp,
                        bool queued)
{
    bool active = queued || sp->unreported > 0;

    if (active && !kp__node_linked(&sp->active_link))
        kp__list_push_back(&io->active, &sp->active_link);
    else if (!active && kp__node_linked(&sp->active_link))
        kp__list_remove(&sp->active_link);
}

/* Java: RecordAccumulator.updateNodeLatencyStats. */
static void note_waiting(struct io_thread *io, struct sender_partition *sp)
{
    struct sender_node *sn = sp->leader;

    if (sn == NULL)
        return;
    if (sp->standing == STANDS_IDLE)
        sn->ready_since_ns = 0;
    else if ((sp->standing == STANDS_READY ||
              sp->standing == STANDS_IN_FLIGHT) &&
             sn->ready_since_ns == 0)
        sn->ready_since_ns = io->now_ns;
}

static void plan_look(struct io_thread *io, struct sender_partition *sp,
                      bool force)
{
    struct queue_view v;
    uint32_t backlog;

    leave_list(io, sp);
    if (sp->leader == NULL)
        kp__sp_find_leader(io, sp);
    if (io->settings->idempotence)
        kp__identity_settle(io, sp);
    switch (kp__queue_look(sp->queue, force, &v)) {
    case QUEUE_BUSY:
        stand(io, sp, STANDS_BUSY);
        note_active(io, sp, true);
        return;
    case QUEUE_OK:
        backlog = v.batch_count + sp->on_wire;
        watch_deadline(io, sp, v.head_deadline_ns);
        if (v.open_created_ns != KP_NEVER)
            watch_deadline(
                io, sp,
                kp__ns_add(v.open_created_ns, io->p->accumulator.open_max_ns));
        note_active(io, sp, true);
        plan_head(io, sp, &v);
        break;
    case QUEUE_EMPTY:
    case QUEUE_NOT_READY:
    default:
        backlog = sp->on_wire;
        stand(io, sp, STANDS_IDLE);
        note_active(io, sp, false);
        kp__queue_trim(sp->queue);
        break;
    }
    note_waiting(io, sp);
    if (backlog != sp->backlog) {
        sp->backlog = backlog;
        kp__weights_touch(io, sp->queue->topic);
    }
}

void kp__plan(struct io_thread *io, struct sender_partition *sp)
{
    plan_look(io, sp, false);
}

bool kp__plan_drain(struct io_thread *io)
{
    struct partition_queue *q;
    bool all = true;

    if (kp__drain_empty(&io->p->accumulator))
        return true;
    /* seq_cst: before the list is taken, so that a flush that finds the list
     * empty finds us busy. */
    atomic_store(&io->p->busy, 1);
    q = kp__drain_take(&io->p->accumulator);
    while (q != NULL) {
        /* Read before it is unlisted: a sender may list it again at once. */
        struct partition_queue *next =
            atomic_load_explicit(&q->drain_next, memory_order_relaxed);
        struct sender_partition *sp;

        kp__drain_unlist(q);
        sp = kp__sp_get(io, q);
        if (sp == NULL) {
            /* No memory now: it comes round again. */
            kp__drain_push(&io->p->accumulator, q);
            all = false;
        } else {
            kp__metadata_used(io->metadata, q->topic, io->now_ns);
            if (!kp__fail_if_over(io, sp))
                kp__plan(io, sp);
        }
        io->progressed = true;
        q = next;
    }
    return all;
}

/* Plan those that were taken off their list. */
static void plan_each(struct io_thread *io, struct list *todo)
{
    struct list_node *n;

    while ((n = kp__list_pop_front(todo)) != NULL)
        kp__plan(io, KP_CONTAINER(n, struct sender_partition, link));
}

void kp__plan_all(struct io_thread *io, enum standing standing)
{
    struct list todo;

    kp__list_init(&todo);
    kp__list_splice_back(&todo, &io->standing[standing]);
    plan_each(io, &todo);
}

/* Some batch goes: those that have lingered for half their time go with it, so
 * that requests follow brokers and not partitions.  Not those that senders may
 * still compress. */
static void plan_company(struct io_thread *io)
{
    struct heap_node *n;
    int64_t by_ns;

    if (io->settings->codec != CODEC_NONE)
        return;
    io->linger_less_ns = io->settings->linger_ns / 2;
    by_ns = kp__ns_add(io->now_ns, io->linger_less_ns);
    while ((n = kp__heap_first(&io->lingers)) != NULL && n->at_ns <= by_ns)
        kp__plan(io, KP_CONTAINER(n, struct sender_partition, timer));
    io->linger_less_ns = 0;
}

/* Plan those whose time has come.  False: none. */
static bool plan_due(struct io_thread *io, const struct heap *times)
{
    struct heap_node *n;
    bool any = false;

    while ((n = kp__heap_first(times)) != NULL && n->at_ns <= io->now_ns) {
        any = true;
        kp__plan(io, KP_CONTAINER(n, struct sender_partition, timer));
    }
    return any;
}

void kp__plan_timers(struct io_thread *io)
{
    (void)plan_due(io, &io->timers);
    if (plan_due(io, &io->lingers))
        plan_company(io);
}

void kp__plan_split(struct io_thread *io)
{
    struct list *waiting = &io->standing[STANDS_BACKING_OFF];

    if (!io->split.freed)
        return;
    io->split.freed = false;
    for (struct list_node *n = kp__list_first(waiting); n != NULL;
         n = kp__list_next(waiting, n)) {
        struct sender_partition *sp =
            KP_CONTAINER(n, struct sender_partition, link);

        if (sp->held)
            sp->backoff_until_ns = 0;
    }
    kp__plan_all(io, STANDS_BACKING_OFF);
}

void kp__plan_pressure(struct io_thread *io)
{
    size_t wanted = 0, freed = 0;
    struct list todo;
    struct heap_node *n;

    if (kp__list_empty(&io->standing[STANDS_LINGERING]) ||
        !kp__pool_pressure(io->p->pool, &wanted))
        return;
    /* Oldest first.  What is being sent already will come back too, but when is
     * not known. */
    kp__list_init(&todo);
    while (freed <= wanted && (n = kp__heap_first(&io->lingers)) != NULL) {
        struct sender_partition *sp =
            KP_CONTAINER(n, struct sender_partition, timer);

        kp__heap_remove(&io->lingers, n);
        kp__list_remove(&sp->link);
        kp__list_push_back(&todo, &sp->link);
        freed += CHUNK_SMALL_SIZE;
    }
    plan_each(io, &todo);
}

void kp__plan_busy(struct io_thread *io)
{
    struct list_node *n;

    while ((n = kp__list_first(&io->standing[STANDS_BUSY])) != NULL) {
        plan_look(io, KP_CONTAINER(n, struct sender_partition, link), true);
        io->progressed = true;
    }
}

/* Claim, compress and finish the head of sp; returns its raw size, 0 if there
 * was nothing to do. */
static size_t compress_head(struct io_thread *io, struct sender_partition *sp)
{
    struct batch *b;
    size_t size;

    if (kp__queue_claim(sp->queue, true, &b) != QUEUE_OK)
        return 0;
    size = b->raw_size;
    kp__compress_and_finish(&io->p->accumulator, b,
                            kp__compressors_own(&io->p->compressors));
    return size;
}

void kp__plan_compress(struct io_thread *io)
{
    size_t done = 0;
    struct list_node *n;

    while (done < COMPRESS_BYTES_A_TURN &&
           (n = kp__list_first(&io->standing[STANDS_SEALED])) != NULL) {
        struct sender_partition *sp =
            KP_CONTAINER(n, struct sender_partition, link);

        done += compress_head(io, sp);
        kp__plan(io, sp);
        io->progressed = true;
    }
}

#ifdef KP_DEBUG
#define ANNOUNCED_MS_MAX 10000

static void check_one(struct io_thread *io, struct sender_partition *sp)
{
    bool linked = kp__node_linked(&sp->link);

    KP_CHECK(linked == (sp->standing != STANDS_IDLE));
    KP_CHECK(sp->timer.in_heap == (sp->standing == STANDS_LINGERING ||
                                   sp->standing == STANDS_BACKING_OFF));
    if (sp->standing == STANDS_READY)
        KP_CHECK(sp->leader != NULL && kp__node_linked(&sp->leader->link));
    if (sp->standing != STANDS_IDLE && sp->standing != STANDS_BUSY)
        KP_CHECK(sp->deadline.in_heap);
    /* Somebody is to end the reason. */
    if (sp->standing == STANDS_IN_FLIGHT)
        KP_CHECK(sp->on_wire > 0 || io->id_wanted);
    if (sp->standing == STANDS_NO_ID)
        KP_CHECK(io->id_wanted);
    if (sp->standing == STANDS_NO_LEADER)
        KP_CHECK(kp__metadata_is_asking(io->metadata));
}

/* None is parked for a reason that is gone, or ready while there is one.  What
 * senders may change meanwhile is not looked at. */
static void check_reason(const struct io_thread *io,
                         const struct sender_partition *sp,
                         const struct queue_view *v)
{
    enum standing why = waits_for(io, sp, v);

    if (sp->standing == STANDS_BUSY || sp->standing == STANDS_IDLE)
        return;
    if (why != STANDS_READY)
        KP_CHECK(sp->standing == why);
    else
        KP_CHECK(sp->standing == STANDS_READY ||
                 sp->standing == STANDS_LINGERING ||
                 sp->standing == STANDS_SEALED ||
                 sp->standing == STANDS_COMPRESSING);
}

/* A sender may be held up between making a batch READY and saying so. */
static bool is_announced(struct partition_queue *q)
{
    for (int ms = 0; ms < ANNOUNCED_MS_MAX; ms++) {
        if (atomic_load(&q->listed) != 0)
            return true;
        (void)kp__wait(&q->listed, 0,
                       kp__now_ns(&kp__system_clock) + KP_NS_PER_MS);
    }
    return false;
}

static void check_topic(void *arg, struct topic *t)
{
    struct io_thread *io = arg;
    const struct topic_view *v = kp__topic_view(t);

    for (int32_t i = 0; i < v->count; i++) {
        struct partition_queue *q = v->queues[i];
        struct queue_view view;

        if (q->sender == NULL)
            continue;
        check_one(io, q->sender);
        if (kp__queue_look(q, true, &view) != QUEUE_OK)
            continue;
        check_reason(io, q->sender, &view);
        /* An idle one may only have what a sender is about to announce. */
        if (q->sender->standing == STANDS_IDLE)
            KP_CHECK(view.head_place == PLACE_OPEN ||
                     view.head_place == PLACE_SEALED ||
                     view.head_place == PLACE_COMPRESSING || is_announced(q));
    }
}

/* Before a sleep nothing is left to be done now. */
static void check_done(const struct io_thread *io)
{
    const struct list *nodes = &io->nodes_with_data;

    KP_CHECK(io->progressed ||
             (kp__list_empty(&io->standing[STANDS_BUSY]) &&
              kp__list_empty(&io->standing[STANDS_SEALED]) &&
              kp__list_empty(&io->done) && kp__list_empty(&io->to_report)));
    for (struct list_node *n = kp__list_first(nodes); n != NULL;
         n = kp__list_next(nodes, n)) {
        const struct sender_node *sn =
            KP_CONTAINER(n, const struct sender_node, link);

        KP_CHECK(io->progressed ||
                 (!kp__client_can_send(io->client, sn->node, io->now_ns) &&
                  !kp__client_is_idle(sn->node)));
    }
}

void kp__plan_check(struct io_thread *io)
{
    check_done(io);
    kp__topics_each(io->p->topics, check_topic, io);
}
#endif
