/* SPDX-License-Identifier: BSD-2-Clause */
/* replica.c - one node's copy of one partition: its log, its producer state,
 * its part in replication.
 *
 * Invariant: a follower that has caught up with its leader's epoch holds a
 * prefix of the leader's log; the high watermark is the least end offset
 * over the in-sync replicas, and never moves back while one leads. */
#include <string.h>

#include "test/broker/internal.h"

static struct kb_batch *batch_ref(struct kb_batch *b)
{
    b->refs++;
    return b;
}

static void batch_unref(struct kb_batch *b)
{
    if (--b->refs > 0)
        return;
    kb_free(b->data);
    kb_free(b);
}

struct kb_replica *kb_replica_at(const struct kb_topic *t, int32_t partition,
                                 const struct kb_node *n)
{
    const struct kb_part *p = &t->parts[partition];
    int i;

    for (i = 0; i < p->count; i++)
        if (p->replicas[i]->node == n)
            return p->replicas[i];
    return NULL;
}

static void on_fetch(struct kb_cluster *c, struct kb_timer *t)
{
    kb_replica_fetch(c, KP_CONTAINER(t, struct kb_replica, fetch));
}

static void on_lag(struct kb_cluster *c, struct kb_timer *t);

struct kb_replica *kb_replica_get(struct kb_cluster *c, struct kb_topic *t,
                                  int32_t partition, struct kb_node *n)
{
    struct kb_replica *r = kb_replica_at(t, partition, n);
    struct kb_part *p = &t->parts[partition];

    (void)c;
    if (r != NULL)
        return r;
    if (p->count == KB_REPLICAS_MAX * 2)
        kb_die("too many replicas of a partition");
    r = kb_alloc(sizeof(*r));
    r->node = n;
    r->topic = t;
    r->partition = partition;
    r->leader_epoch = -1;
    r->fetched_epoch = -1;
    r->behind_since_ns = KB_NEVER;
    r->fetch.fn = on_fetch;
    r->lag.fn = on_lag;
    kp__list_init(&r->waiting);
    p->replicas[p->count++] = r;
    return r;
}

static void log_push(struct kb_replica *r, struct kb_batch *b)
{
    if (r->count == r->capacity) {
        r->capacity = r->capacity == 0 ? 16 : r->capacity * 2;
        r->batches =
            kb_realloc(r->batches, r->capacity * sizeof(r->batches[0]));
    }
    r->batches[r->count++] = b;
}

void kb_replica_wipe(struct kb_replica *r)
{
    size_t i;

    for (i = 0; i < r->count; i++)
        batch_unref(r->batches[i]);
    r->count = 0;
    r->start_offset = r->end_offset = r->high_watermark = 0;
    kb_producers_fini(&r->producers);
}

void kb_replica_free(struct kb_cluster *c, struct kb_replica *r)
{
    kb_timer_stop(c, &r->fetch);
    kb_timer_stop(c, &r->lag);
    kb_replica_wipe(r);
    kb_free(r->batches);
    kb_free(r);
}

struct kb_part_image *kb_replica_image(const struct kb_replica *r)
{
    struct kb_topic_image *t = kb_image_by_id(r->node->image, &r->topic->id);

    if (t == NULL || r->partition >= t->part_count)
        return NULL;
    return &t->parts[r->partition];
}

static void note_producer(struct kb_replica *r, const struct kb_batch *b)
{
    if (b->header.producer_id < 0)
        return;
    kb_producer_add(&r->producers, &b->header, b->base_offset,
                    b->log_append_time ? b->append_time_ms
                                       : b->header.max_timestamp_ms);
}

/* Kafka rebuilds from a snapshot and the log; the log alone says the same. */
static void rebuild_producers(struct kb_replica *r)
{
    size_t i;

    kb_producers_fini(&r->producers);
    for (i = 0; i < r->count; i++)
        note_producer(r, r->batches[i]);
}

/* Drop what the leader does not have: everything from the first batch that is
 * not the very same one. */
static void truncate_to_leader(struct kb_replica *r, const struct kb_replica *l)
{
    size_t same = 0;

    while (same < r->count && same < l->count &&
           r->batches[same] == l->batches[same])
        same++;
    if (same == r->count)
        return;
    while (r->count > same)
        batch_unref(r->batches[--r->count]);
    r->end_offset = same == 0
                        ? l->start_offset
                        : r->batches[same - 1]->base_offset + 1 +
                              r->batches[same - 1]->header.last_offset_delta;
    if (r->high_watermark > r->end_offset)
        r->high_watermark = r->end_offset;
    rebuild_producers(r);
}

static struct kb_replica *leader_for(struct kb_cluster *c,
                                     const struct kb_replica *r)
{
    const struct kb_part_image *p = kb_replica_image(r);
    struct kb_replica *l;

    if (p == NULL || p->leader < 0 || !kb_node_reachable(r->node))
        return NULL;
    l = kb_replica_at(r->topic, r->partition, &c->nodes[p->leader]);
    if (l == NULL || l == r || !l->is_leader || l->failed ||
        !kb_node_reachable(l->node) || l->leader_epoch != r->leader_epoch)
        return NULL;
    return l;
}

static void maybe_rejoin(struct kb_cluster *c, struct kb_replica *r,
                         struct kb_replica *l)
{
    const struct kb_part_image *p = kb_replica_image(l);

    if (r->end_offset < l->high_watermark || p == NULL ||
        kb_part_has(p->isr, p->isr_count, r->node->index))
        return;
    kb_controller_isr(c, l, r->node->index, true);
}

/* Discard mode keeps no batches: the state is copied as it is. */
static void copy_state(struct kb_replica *r, const struct kb_replica *l)
{
    kb_producers_copy(&r->producers, &l->producers);
    r->end_offset = l->end_offset;
}

void kb_replica_fetch(struct kb_cluster *c, struct kb_replica *r)
{
    struct kb_replica *l = leader_for(c, r);

    if (l == NULL || r->stalled || r->failed)
        return;
    if (c->config.discard) {
        copy_state(r, l);
    } else {
        truncate_to_leader(r, l);
        while (r->count < l->count) {
            struct kb_batch *b = batch_ref(l->batches[r->count]);

            log_push(r, b);
            note_producer(r, b);
        }
        r->end_offset = l->end_offset;
    }
    r->start_offset = l->start_offset;
    r->behind_since_ns = KB_NEVER;
    r->fetched_epoch = l->leader_epoch;
    kb_replica_advance(c, l);
    r->high_watermark =
        l->high_watermark < r->end_offset ? l->high_watermark : r->end_offset;
    maybe_rejoin(c, r, l);
}

void kb_replica_want_fetch(struct kb_cluster *c, struct kb_replica *r)
{
    if (c->config.replication_delay_ns == 0)
        kb_replica_fetch(c, r);
    else if (!r->fetch.node.in_heap)
        kb_timer_set(c, &r->fetch, c->now_ns + c->config.replication_delay_ns);
}

void kb_replica_copy(struct kb_replica *r, const struct kb_replica *from)
{
    size_t i;

    if (r == from)
        return;
    kb_replica_wipe(r);
    for (i = 0; i < from->count; i++)
        log_push(r, batch_ref(from->batches[i]));
    kb_producers_copy(&r->producers, &from->producers);
    r->start_offset = from->start_offset;
    r->end_offset = from->end_offset;
    r->high_watermark = from->high_watermark;
}

static void want_lag_timer(struct kb_cluster *c, struct kb_replica *l)
{
    int64_t at_ns = c->now_ns + c->config.replica_lag_ns;

    if (!l->lag.node.in_heap || l->lag.node.at_ns > at_ns)
        kb_timer_set(c, &l->lag, at_ns);
}

/* One follower hears that there is something new. */
static void notify_follower(struct kb_cluster *c, struct kb_replica *l,
                            int node)
{
    struct kb_replica *r =
        kb_replica_get(c, l->topic, l->partition, &c->nodes[node]);

    if (r == l)
        return;
    if (r->behind_since_ns == KB_NEVER)
        r->behind_since_ns = c->now_ns;
    kb_replica_want_fetch(c, r);
    if (r->behind_since_ns != KB_NEVER)
        want_lag_timer(c, l);
}

static void notify_followers(struct kb_cluster *c, struct kb_replica *l)
{
    const struct kb_part_image *p = kb_replica_image(l);
    struct kb_part_image seen;
    int i;

    if (p == NULL)
        return;
    /* A follower that rejoins the ISR makes a new image. */
    seen = *p;
    for (i = 0; i < seen.replica_count; i++)
        notify_follower(c, l, seen.replicas[i]);
}

/* The leader drops from the ISR who has been behind for too long. */
static void on_lag(struct kb_cluster *c, struct kb_timer *t)
{
    struct kb_replica *l = KP_CONTAINER(t, struct kb_replica, lag);
    struct kb_part *part = &l->topic->parts[l->partition];
    int64_t next = KB_NEVER;
    int i;

    if (!l->is_leader || !kb_node_reachable(l->node))
        return;
    for (i = 0; i < part->count; i++) {
        struct kb_replica *r = part->replicas[i];
        int64_t due = r->behind_since_ns == KB_NEVER
                          ? KB_NEVER
                          : r->behind_since_ns + c->config.replica_lag_ns;

        if (r == l || due == KB_NEVER)
            continue;
        if (due <= c->now_ns)
            kb_controller_isr(c, l, r->node->index, false);
        else if (due < next)
            next = due;
    }
    if (next != KB_NEVER)
        kb_timer_set(c, &l->lag, next);
    kb_replica_advance(c, l);
}

/* What a leader knows of a replica: one that has not fetched under this
 * epoch may hold other records at the same offsets, so nothing of it counts
 * yet. */
static int64_t known_end(const struct kb_replica *l, const struct kb_replica *r)
{
    if (r == NULL || r->fetched_epoch != l->leader_epoch)
        return l->high_watermark;
    return r->end_offset;
}

static int64_t least_of(struct kb_cluster *c, const struct kb_replica *l,
                        const uint16_t *set, int count, int64_t least)
{
    int i;

    for (i = 0; i < count; i++) {
        struct kb_replica *r =
            kb_replica_at(l->topic, l->partition, &c->nodes[set[i]]);
        int64_t end = known_end(l, r);

        if (r != l && end < least)
            least = end;
    }
    return least;
}

/* Over the ISR as the leader has it, and over those about to be in it: one of
 * them may be elected before the leader has heard of it. */
static int64_t least_end(struct kb_cluster *c, const struct kb_replica *l,
                         const struct kb_part_image *p)
{
    int64_t least = least_of(c, l, p->isr, p->isr_count, l->end_offset);

    return least_of(c, l, l->pending, l->pending_count, least);
}

static int16_t wait_verdict(const struct kb_cluster *c,
                            const struct kb_replica *l,
                            const struct kb_part_image *p)
{
    int32_t min = l->topic->config.min_insync_replicas;

    if (min < 0)
        min = c->config.min_insync_replicas;
    if (min > p->replica_count)
        min = p->replica_count;
    return p->isr_count < min ? 20 : 0;
}

static void look_at_waiting(struct kb_cluster *c, struct kb_replica *l,
                            const struct kb_part_image *p)
{
    int16_t verdict = wait_verdict(c, l, p);
    struct list_node *n = kp__list_first(&l->waiting);

    while (n != NULL) {
        struct kb_wait *w = KP_CONTAINER(n, struct kb_wait, in_replica);

        n = kp__list_next(&l->waiting, n);
        if (l->high_watermark >= w->required_offset)
            kb_wait_settle(w, verdict);
    }
}

void kb_replica_advance(struct kb_cluster *c, struct kb_replica *r)
{
    struct kb_part_image *p = kb_replica_image(r);
    struct kb_part_image seen;
    int64_t least;

    if (!r->is_leader || p == NULL)
        return;
    seen = *p; /* settling may end in anything */
    least = least_end(c, r, &seen);
    if (least > r->high_watermark)
        r->high_watermark = least;
    look_at_waiting(c, r, &seen);
}

static struct kb_batch *batch_new(struct kb_cluster *c, struct kb_replica *r,
                                  const struct record_batch_header *h,
                                  const uint8_t *data, size_t size)
{
    struct kb_batch *b = kb_alloc(sizeof(*b));

    b->refs = 1;
    b->base_offset = r->end_offset;
    b->append_time_ms = kb_wall_ms(c);
    b->leader_epoch = r->leader_epoch;
    b->log_append_time = r->topic->config.log_append_time;
    b->header = *h;
    b->size = size;
    b->data = data != NULL ? kb_memdup(data, size) : NULL;
    return b;
}

int64_t kb_replica_append(struct kb_cluster *c, struct kb_replica *r,
                          const struct record_batch_header *h,
                          const uint8_t *data, size_t size)
{
    int64_t base = r->end_offset;

    if (c->config.discard) {
        if (h->producer_id >= 0)
            kb_producer_add(&r->producers, h, base,
                            r->topic->config.log_append_time
                                ? kb_wall_ms(c)
                                : h->max_timestamp_ms);
    } else {
        struct kb_batch *b = batch_new(c, r, h, data, size);

        log_push(r, b);
        note_producer(r, b);
    }
    r->end_offset = base + h->last_offset_delta + 1;
    notify_followers(c, r);
    kb_replica_advance(c, r);
    return base;
}

static void settle_all(struct kb_replica *r, int16_t error)
{
    struct list_node *n;

    while ((n = kp__list_first(&r->waiting)) != NULL)
        kb_wait_settle(KP_CONTAINER(n, struct kb_wait, in_replica), error);
}

void kb_replica_role(struct kb_cluster *c, struct kb_replica *r, bool leader,
                     int32_t epoch)
{
    bool was = r->is_leader;
    bool same = was == leader && r->leader_epoch == epoch;

    r->is_leader = leader;
    r->leader_epoch = epoch;
    r->pending_count = 0; /* the image has them now */
    if (leader) {
        r->fetched_epoch = epoch;
        r->topic->parts[r->partition].last_leader = (int16_t)r->node->index;
        r->behind_since_ns = KB_NEVER;
        if (!same)
            notify_followers(c, r);
        kb_replica_advance(c, r);
        return;
    }
    if (was)
        settle_all(r, kb_replica_image(r) == NULL ? 3 : 6);
    if (!same)
        kb_replica_want_fetch(c, r);
}

void kb_replica_resume(struct kb_cluster *c, struct kb_replica *r)
{
    if (r->is_leader)
        notify_followers(c, r);
    else
        kb_replica_want_fetch(c, r);
}
