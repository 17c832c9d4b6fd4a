/* SPDX-License-Identifier: BSD-2-Clause */
/* partitions.c - the sender's own view of partitions and brokers: who leads
 * what, who can be reached, where unkeyed records should go.  I/O thread.
 *
 * Java: RecordAccumulator.TopicInfo,
 * BuiltInPartitioner.updatePartitionLoadStats. */
#include "io_thread/sender.h"

#include <string.h>

#define WEIGHTS_EVERY_NS (10 * KP_NS_PER_MS)
/* Weighing a partition takes some 150 ns, as hardly any of it is in a cache: so
 * it is a hundredth of the time, however many partitions a topic has. */
#define WEIGHTS_PAUSE_NS 15000 /* for each partition weighed */

struct sender_partition *kp__sp_get(struct io_thread *io,
                                    struct partition_queue *q)
{
    struct sender_partition *sp = q->sender;

    if (sp != NULL)
        return sp;
    sp = kp__zalloc(sizeof(*sp));
    if (sp == NULL)
        return NULL;
    sp->queue = q;
    sp->io = io;
    sp->leader_epoch = -1;
    kp__node_init(&sp->led_link);
    kp__node_init(&sp->link);
    kp__node_init(&sp->active_link);
    kp__node_init(&sp->report_link);
    kp__list_init(&sp->order);
    kp__ledger_init(&sp->ledger);
    if (io->producer_id >= 0)
        kp__ledger_adopt(&sp->ledger, io->producer_id, io->producer_epoch);
    q->sender = sp;
    return sp;
}

struct sender_node *kp__sn_get(struct io_thread *io, struct node *n)
{
    void **slot = kp__node_slot(n);
    struct sender_node *sn = *slot;

    if (sn != NULL)
        return sn;
    sn = kp__zalloc(sizeof(*sn));
    if (sn == NULL)
        return NULL;
    sn->node = n;
    kp__list_init(&sn->ready);
    kp__list_init(&sn->led);
    kp__node_init(&sn->link);
    sn->unreachable = kp__client_is_unreachable(n);
    sn->next = io->nodes;
    io->nodes = sn;
    *slot = sn;
    return sn;
}

void kp__sp_find_leader(struct io_thread *io, struct sender_partition *sp)
{
    int32_t epoch = -1;
    struct node *n = kp__metadata_leader(sp->queue, &epoch);
    struct sender_node *sn = n != NULL ? kp__sn_get(io, n) : NULL;

    if (sn == NULL)
        return;
    sp->leader = sn;
    sp->leader_epoch = epoch;
    kp__list_push_back(&sn->led, &sp->led_link);
    kp__pool_set_unreachable(io->p->pool, sp->queue, sn->unreachable);
}

static void tell_pool(struct io_thread *io, struct sender_partition *sp)
{
    bool unreachable = sp->leader == NULL || sp->leader->unreachable;

    kp__pool_set_unreachable(io->p->pool, sp->queue, unreachable);
}

void kp__sp_leader(void *arg, struct partition_queue *q, struct node *leader,
                   int32_t leader_epoch)
{
    struct io_thread *io = arg;
    struct sender_partition *sp = kp__sp_get(io, q);
    struct sender_node *sn = leader != NULL ? kp__sn_get(io, leader) : NULL;

    if (sp == NULL)
        return;
    /* Take it off the old leader's list first: plan looks at sp->leader. */
    if (sp->standing == STANDS_READY) {
        struct sender_node *old = sp->leader;

        kp__list_remove(&sp->link);
        sp->standing = STANDS_IDLE;
        if (kp__list_empty(&old->ready) && kp__node_linked(&old->link))
            kp__list_remove(&old->link);
    }
    if (sp->leader != NULL && sp->leader != sn)
        sp->leader->ready_since_ns = 0;
    /* A new leader may know nothing of us. */
    if (sp->leader != sn || sp->leader_epoch != leader_epoch) {
        kp__ledger_unproven(&sp->ledger);
        sp->leader_term++;
    }
    /* A batch that waited for the old one need wait no more (KIP-951).  Old
     * brokers tell no epoch: what they say may be old itself, and two that name
     * each other would be asked in turn without a pause. */
    if (leader_epoch >= 0 && sp->leader_epoch != leader_epoch) {
        sp->backoff_until_ns = 0;
        sp->failures = 0;
    }
    if (kp__node_linked(&sp->led_link))
        kp__list_remove(&sp->led_link);
    sp->leader = sn;
    sp->leader_epoch = leader_epoch;
    if (sn != NULL)
        kp__list_push_back(&sn->led, &sp->led_link);
    tell_pool(io, sp);
    kp__weights_touch(io, q->topic);
    kp__plan(io, sp);
}

void kp__sn_reachable(struct io_thread *io, struct sender_node *sn, bool yes)
{
    if (sn->unreachable == !yes)
        return;
    sn->unreachable = !yes;
    for (struct list_node *n = kp__list_first(&sn->led); n != NULL;
         n = kp__list_next(&sn->led, n)) {
        struct sender_partition *sp =
            KP_CONTAINER(n, struct sender_partition, led_link);

        tell_pool(io, sp);
        kp__weights_touch(io, sp->queue->topic);
        if (sn->unreachable && sp->standing == STANDS_LINGERING)
            kp__plan(io, sp);
    }
}

/* -- weights -- */

struct choice {
    int32_t *partitions;
    uint32_t *weights;
    int32_t count;
    bool uniform; /* all of the topic's partitions, alike */
};

static bool in_our_rack(const struct io_thread *io,
                        const struct sender_partition *sp)
{
    return sp->leader != NULL && strcmp(kp__node_rack(sp->leader->node),
                                        io->settings->client_rack) == 0;
}

/* The leader has had data ready for longer than the availability timeout. */
static bool stuck(const struct io_thread *io, const struct sender_partition *sp)
{
    const struct sender_node *sn = sp->leader;

    return io->settings->availability_timeout_ns > 0 &&
           sn->ready_since_ns > 0 &&
           io->now_ns - sn->ready_since_ns >
               io->settings->availability_timeout_ns;
}

static bool any_in_rack(const struct io_thread *io, const struct topic_view *v)
{
    if (!io->settings->rack_aware)
        return false;
    for (int32_t i = 0; i < v->count; i++)
        if (v->queues[i]->sender != NULL &&
            in_our_rack(io, v->queues[i]->sender))
            return true;
    return false;
}

static void choose(const struct io_thread *io, const struct topic_view *v,
                   struct choice *c)
{
    bool rack = any_in_rack(io, v);
    uint32_t longest = 0;

    c->count = 0;
    c->uniform = true;
    for (int32_t i = 0; i < v->count; i++) {
        const struct sender_partition *sp = v->queues[i]->sender;

        if (sp == NULL || sp->leader == NULL || stuck(io, sp) ||
            (rack && !in_our_rack(io, sp))) {
            c->uniform = false;
            continue;
        }
        c->partitions[c->count] = i;
        c->weights[c->count] = sp->backlog;
        if (sp->backlog > longest)
            longest = sp->backlog;
        c->count++;
    }
    for (int32_t i = 0; i < c->count; i++) {
        uint32_t weight =
            io->settings->adaptive ? longest + 1 - c->weights[i] : 1;

        if (i > 0 && weight != c->weights[0])
            c->uniform = false;
        c->weights[i] = weight;
    }
}

static int32_t weigh(struct io_thread *io, struct topic *t)
{
    const struct topic_view *v = kp__topic_view(t);
    struct choice c;

    c.partitions = kp__arena_alloc_array(&io->scratch, (size_t)v->count,
                                         sizeof(*c.partitions));
    c.weights = kp__arena_alloc_array(&io->scratch, (size_t)v->count,
                                      sizeof(*c.weights));
    if (c.partitions == NULL || c.weights == NULL)
        return v->count;
    choose(io, v, &c);
    kp__topic_set_weights(t, c.partitions, c.weights, c.uniform ? 0 : c.count);
    return v->count;
}

static bool has_choice(const struct topic *t)
{
    const struct topic_view *v = kp__topic_view(t);

    return v != NULL && v->count > 1;
}

void kp__weights_touch(struct io_thread *io, struct topic *t)
{
    if (has_choice(t) && !kp__node_linked(&t->weigh_link))
        kp__list_push_back(&io->to_weigh, &t->weigh_link);
}

void kp__weights_first(void *arg, struct topic *t)
{
    struct io_thread *io = arg;

    if (!has_choice(t))
        return;
    (void)weigh(io, t);
    kp__arena_reset(&io->scratch);
}

void kp__weights_update(struct io_thread *io)
{
    struct list_node *n;
    int64_t pause_ns = 0;

    if (kp__list_empty(&io->to_weigh) || io->now_ns < io->weights_at_ns)
        return;
    while ((n = kp__list_pop_front(&io->to_weigh)) != NULL) {
        pause_ns += (int64_t)WEIGHTS_PAUSE_NS *
                    weigh(io, KP_CONTAINER(n, struct topic, weigh_link));
        kp__arena_reset(&io->scratch);
    }
    if (pause_ns < WEIGHTS_EVERY_NS)
        pause_ns = WEIGHTS_EVERY_NS;
    io->weights_at_ns = io->now_ns + pause_ns;
}

static void free_topic(void *arg, struct topic *t)
{
    struct io_thread *io = arg;
    const struct topic_view *v = kp__topic_view(t);

    for (int32_t i = 0; v != NULL && i < v->count; i++) {
        struct sender_partition *sp = v->queues[i]->sender;

        if (sp == NULL)
            continue;
        kp__heap_remove(kp__times_of(io, sp->standing), &sp->timer);
        kp__heap_remove(&io->deadlines, &sp->deadline);
        kp__free(sp);
        v->queues[i]->sender = NULL;
    }
}

void kp__partitions_free(struct io_thread *io)
{
    kp__topics_each(io->p->topics, free_topic, io);
    while (io->nodes != NULL) {
        struct sender_node *sn = io->nodes;

        io->nodes = sn->next;
        kp__free(sn);
    }
}
