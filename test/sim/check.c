/* SPDX-License-Identifier: BSD-2-Clause */
/* check.c - what must hold after every turn of the I/O thread.
 *
 * Each text begins with the id of the invariant that is broken; test/README.md
 * says what each asks for.  The checks of what reached a broker and of what the
 * logs hold are test/support/world_seen.c's. */
#include <stdlib.h>
#include <string.h>

#include "io_thread/client.h"
#include "io_thread/sender.h"
#include "lib/api/partitioner.h"
#include "lib/api/producer.h"
#include "test/sim/sim.h"

#define LANES SIM_LANES

/* One partition as it was after the turn before. */
struct lane {
    bool known;
    int64_t producer_id;
    int16_t epoch;
    int32_t next_sequence;
    int32_t gone; /* first number of an entry whose batch is gone; -1 */
    int32_t leader_epoch;
    bool lied_to; /* the cluster had no such leader epoch when we learnt it */
    uint32_t wire_count;
    int32_t wire[LEDGER_MAX]; /* first numbers of entries on a wire */
};

/* What brokers have seen of one (producer id, epoch, partition). */
struct run {
    int64_t producer_id;
    int16_t epoch;
    int32_t next;
};

struct checker {
    struct sim *s;
    struct lane lanes[SIM_TOPICS][LANES];
    struct run runs[SIM_TOPICS][LANES];
    size_t attempts;
    int32_t counts[8]; /* of partitions that "t" has had */
    int count_count;
    uint64_t connects[SIM_NODES + 1]; /* of which all are checked */
    bool failed_call; /* a flush or close said that something failed */
    size_t calls;     /* of which all before are done and checked */
};

/* -- the ledgers -- */

static bool was_on_wire(const struct lane *l, const struct ledger *g,
                        int32_t first)
{
    if (l->producer_id != g->producer_id || l->epoch != g->epoch)
        return false;
    for (uint32_t i = 0; i < l->wire_count; i++)
        if (l->wire[i] == first)
            return true;
    return false;
}

/* I-20: what is sent is the first that is not acknowledged, or follows what is
 * on the wire. */
static void check_resent(struct checker *c, const struct sender_partition *sp,
                         const struct lane *l)
{
    const struct ledger *g = &sp->ledger;

    for (uint32_t i = 0; i < g->count; i++) {
        if (!g->entries[i].on_wire || was_on_wire(l, g, g->entries[i].first))
            continue;
        for (uint32_t j = 0; j < i; j++)
            if (!g->entries[j].on_wire && g->entries[j].batch != NULL)
                world_fail(c->s->w, "I-20: sequence %d was sent while %d waits",
                           (int)g->entries[i].first, (int)g->entries[j].first);
    }
}

static int32_t first_gone(const struct ledger *g)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (g->entries[i].batch == NULL)
            return g->entries[i].first;
    return -1;
}

static void check_ledger(struct checker *c, const struct sender_partition *sp,
                         const struct lane *l)
{
    const struct ledger *g = &sp->ledger;
    uint32_t limit = LEDGER_IN_FLIGHT, whole = 0;

    if ((uint32_t)c->s->w->p->settings.max_in_flight < limit)
        limit = (uint32_t)c->s->w->p->settings.max_in_flight;
    for (uint32_t i = 0; i < g->count; i++)
        whole += g->entries[i].batch != NULL &&
                 g->entries[i].batch->split.origin == NULL;
    if (whole > limit)
        world_fail(c->s->w, "I-19: %u batches unresolved, the limit is %u",
                   whole, limit);
    if (sp->on_wire > LEDGER_IN_FLIGHT)
        world_fail(c->s->w, "I-19: %u batches of a partition on the wire",
                   sp->on_wire);
    check_resent(c, sp, l);
    if (l->gone >= 0 && l->producer_id == g->producer_id &&
        l->epoch == g->epoch && first_gone(g) == l->gone &&
        l->next_sequence != g->next_sequence)
        world_fail(c->s->w, "I-18: numbers were given while %d is unresolved",
                   (int)l->gone);
    if (g->producer_id >= 0 && g->epoch < 0)
        world_fail(c->s->w, "I-21: epoch %d", (int)g->epoch);
}

static void check_leader(struct checker *c, const struct sender_partition *sp)
{
    int32_t epoch = -1;
    struct node *n = kp__metadata_leader(sp->queue, &epoch);

    if (sp->leader == NULL || (n == NULL && epoch == -1))
        return; /* none, or of a partition that is not there any more */
    if (n != sp->leader->node || epoch > sp->leader_epoch)
        world_fail(c->s->w,
                   "I-63: a leader of epoch %d, though epoch %d is known",
                   (int)sp->leader_epoch, (int)epoch);
}

/* A broker that is behind does not make us forget, if what we know is true. */
static void check_epoch(struct checker *c, struct lane *l,
                        const struct sender_partition *sp)
{
    const struct partition_queue *q = sp->queue;
    int32_t epoch = -1;

    (void)kp__metadata_leader(q, &epoch);
    if (l->known && epoch < l->leader_epoch && !l->lied_to &&
        !sim_has(c->s, F_RECREATE))
        world_fail(c->s->w, "I-63: leader epoch %d was known, and now %d is",
                   (int)l->leader_epoch, (int)epoch);
    if (epoch != l->leader_epoch)
        l->lied_to = epoch > kb_leader_epoch(world_cluster(c->s->w),
                                             q->topic->name->text,
                                             q->partition);
    l->leader_epoch = epoch;
}

static void note_lane(struct lane *l, const struct sender_partition *sp)
{
    const struct ledger *g = &sp->ledger;

    l->producer_id = g->producer_id;
    l->epoch = g->epoch;
    l->next_sequence = g->next_sequence;
    l->gone = first_gone(g);
    l->wire_count = 0;
    for (uint32_t i = 0; i < g->count; i++)
        if (g->entries[i].on_wire)
            l->wire[l->wire_count++] = g->entries[i].first;
}

static void check_topic(struct checker *c, const char *name, int number)
{
    struct topic *t = kp__topics_find(c->s->w->p->topics, name, strlen(name));
    const struct topic_view *v = t != NULL ? kp__topic_view(t) : NULL;

    for (int32_t i = 0; v != NULL && i < v->count && i < LANES; i++) {
        const struct sender_partition *sp = v->queues[i]->sender;
        struct lane *l = &c->lanes[number][i];

        if (sp == NULL)
            continue;
        check_epoch(c, l, sp);
        l->known = true;
        if (!c->s->plain) {
            check_ledger(c, sp, l);
            note_lane(l, sp);
        } else if (sp->on_wire > 1) {
            world_fail(c->s->w, "I-19: %u batches of a partition on the wire",
                       sp->on_wire);
        }
        check_leader(c, sp);
    }
}

/* -- what reached brokers -- */

static int32_t distance(int32_t from, int32_t to)
{
    return (int32_t)(((uint32_t)to - (uint32_t)from) & INT32_MAX);
}

/* What was stamped behind a batch that has been given up goes on: it may prove
 * that the other was stored.  It may also arrive late, of a connection that is
 * gone, when the partition has a newer epoch already. */
static bool is_behind_gone(const struct checker *c,
                           const struct world_attempt *a)
{
    struct topic *t =
        kp__topics_find(c->s->w->p->topics, a->topic, strlen(a->topic));
    const struct sender_partition *sp =
        t != NULL ? kp__topic_view(t)->queues[a->partition]->sender : NULL;

    return sp != NULL &&
           (sp->ledger.producer_id != a->header.producer_id ||
            sp->ledger.epoch != a->header.producer_epoch ||
            first_gone(&sp->ledger) >= 0 ||
            c->lanes[strcmp(a->topic, "t") == 0 ? 0 : 1][a->partition].gone >=
                0);
}

/* I-17: from 0, without a gap, and after 2^31 - 1 comes 0. */
static void check_run(struct checker *c, struct run *n,
                      const struct world_attempt *a)
{
    const struct record_batch_header *h = &a->header;
    int32_t gap;

    if (h->producer_id < n->producer_id)
        return; /* late, of an id that is over */
    if (n->producer_id != h->producer_id || n->epoch < h->producer_epoch) {
        bool first = n->producer_id < 0;

        n->producer_id = h->producer_id;
        n->epoch = h->producer_epoch;
        n->next = first && sim_has(c->s, F_ENDS) ? h->base_sequence : 0;
    } else if (h->producer_epoch < n->epoch) {
        return; /* late, from an epoch that is over */
    }
    gap = distance(n->next, h->base_sequence);
    if (gap > 0 && gap < 1 << 30 && is_behind_gone(c, a))
        n->next = h->base_sequence;
    else if (gap > 0 && gap < 1 << 30)
        world_fail(c->s->w,
                   "I-17: %s [%d] epoch %d: sequence %d, and %d was next",
                   a->topic, (int)a->partition, (int)h->producer_epoch,
                   (int)h->base_sequence, (int)n->next);
    gap =
        distance(n->next, kp__sequence_add(h->base_sequence, h->record_count));
    if (gap < 1 << 30)
        n->next = kp__sequence_add(n->next, gap);
}

static void check_attempts(struct checker *c)
{
    struct world *w = c->s->w;

    for (; c->attempts < w->attempt_count; c->attempts++) {
        const struct world_attempt *a = &w->attempts[c->attempts];
        int topic = strcmp(a->topic, "t") == 0 ? 0 : 1;

        if (a->partition < LANES && a->header.producer_id >= 0 &&
            a->topic[0] != '?' && !w->lost_records)
            check_run(c, &c->runs[topic][a->partition], a);
    }
}

/* -- connections -- */

/* I-19: of one connection. */
static void check_in_flight(struct checker *c, const struct node *n)
{
    int count = 0;

    for (struct list_node *at = kp__list_first(&n->in_flight); at != NULL;
         at = kp__list_next(&n->in_flight, at))
        count +=
            KP_CONTAINER(at, struct request, link)->api->key == API_PRODUCE;
    if (count > c->s->w->p->settings.max_in_flight)
        world_fail(c->s->w, "I-19: %d requests on one connection", count);
}

/* I-40: a bootstrap address, the node behind it and a bootstrap address made
 * anew may try at the same time: of eight attempts three are of one of
 * them. */
static void check_backoff(struct checker *c, int32_t node)
{
    struct world *w = c->s->w;
    int64_t least_ns = w->p->settings.reconnect_backoff_ns * 3 / 4;

    for (; c->connects[node] < w->connects[node]; c->connects[node]++) {
        const int64_t *at_ns = w->connected_ns[node];
        uint64_t i = c->connects[node];

        if (i >= 7 && at_ns[i % 16] - at_ns[(i - 7) % 16] < 2 * least_ns)
            world_fail(w, "I-40: eight connects to node %d within %lld us",
                       (int)node,
                       (long long)(at_ns[i % 16] - at_ns[(i - 7) % 16]) / 1000);
    }
}

static void check_connections(struct checker *c)
{
    const struct sender_node *sn = c->s->w->p->io->nodes;

    for (; sn != NULL; sn = sn->next)
        check_in_flight(c, sn->node);
    for (int32_t i = 1; i <= c->s->nodes; i++)
        check_backoff(c, i);
}

/* -- who waits -- */

/* Memory is wanted, and what has it waits for nothing but its time. */
static bool is_only_lingering(const struct io_thread *io)
{
    for (int i = 0; i < STANDING_COUNT; i++)
        if (i != STANDS_LINGERING && i != STANDS_READY &&
            !kp__list_empty(&io->standing[i]))
            return false;
    return kp__list_empty(&io->nodes_with_data) && kp__list_empty(&io->done) &&
           !kp__list_empty(&io->standing[STANDS_LINGERING]) &&
           io->client->request_count == 0;
}

static void check_memory_line(struct checker *c)
{
    struct pool_stats stats;

    kp__pool_stats(c->s->w->p->pool, &stats);
    if (stats.available_bytes > stats.total_bytes)
        world_fail(c->s->w, "I-26: %zu bytes of %zu are free",
                   stats.available_bytes, stats.total_bytes);
    if (stats.waiting_threads > 0 && stats.available_bytes == stats.total_bytes)
        world_fail(c->s->w, "I-28: %u sends wait, and all memory is free",
                   stats.waiting_threads);
    if (kp__pool_pressure(c->s->w->p->pool, NULL) &&
        stats.waiting_threads > 0 && is_only_lingering(c->s->w->p->io))
        world_fail(c->s->w, "I-28: %u sends wait, and all others linger",
                   stats.waiting_threads);
}

static void check_topic_line(struct checker *c, const struct world_record *r)
{
    const struct send *s = &r->sending->send;
    struct topic *t;

    if (sim_has(c->s, F_MEMORY) || s->step != SEND_TOPIC ||
        s->ticket.word == NULL || atomic_load(s->ticket.word) != s->ticket.seen)
        return;
    t = kp__topics_find(c->s->w->p->topics, r->topic, strlen(r->topic));
    if (t != NULL && kp__topic_view(t) != NULL &&
        r->partition < kp__topic_view(t)->count)
        world_fail(c->s->w, "I-06: record %u waits for a topic that is known",
                   r->id);
}

static void check_waiting(struct checker *c)
{
    struct world *w = c->s->w;

    if (w->waiting == 0)
        return;
    check_memory_line(c);
    for (uint32_t i = 0; i < w->record_count; i++)
        if (w->records[i]->sending != NULL)
            check_topic_line(c, w->records[i]);
}

/* -- calls -- */

static bool must_be_reported(const struct sim *s, const struct world_record *r)
{
    unsigned seen = WORLD_FUTURE | WORLD_CALLBACK;

    if (!sim_has(s, F_LAZY))
        seen |= WORLD_QUEUE;
    return r->state == WORLD_TAKEN && (r->flags & seen) != 0;
}

static void check_flushed(struct checker *c, const struct world_call *call)
{
    struct world *w = c->s->w;

    for (uint32_t i = 0; i < call->records; i++) {
        const struct world_record *r = w->records[i];

        if (must_be_reported(c->s, r) && r->returned_at < call->called_at &&
            (!r->reported || r->reported_ns > call->done_ns))
            world_fail(w, "%s ended before record %u was reported",
                       call->is_close ? "I-46: close" : "I-45: flush", r->id);
    }
}

static void check_closed(struct checker *c, const struct world_call *call)
{
    struct world *w = c->s->w;
    int64_t limit_ns = w->held_ns + 5 * MS;

    for (uint32_t i = 0; i < w->record_count; i++) {
        const struct world_record *r = w->records[i];

        if (must_be_reported(c->s, r) && !r->reported)
            world_fail(w, "I-46: closed, and record %u has no report", i);
        if (r->called_at > call->called_at && r->state != WORLD_REFUSED)
            world_fail(w, "I-46: record %u was taken after close", i);
        if (r->callbacks > 0 && r->callback_ns > call->done_ns)
            world_fail(w, "I-10: record %u: a callback after close", i);
    }
    if (call->deadline_ns != KP_NEVER &&
        call->done_ns > call->deadline_ns + limit_ns)
        world_fail(w, "I-43: close took %lld ms longer than it may",
                   (long long)((call->done_ns - call->deadline_ns) / MS));
}

static void check_calls(struct checker *c)
{
    struct world *w = c->s->w;

    while (c->calls < w->call_count && w->calls[c->calls]->done) {
        const struct world_call *call = w->calls[c->calls++];

        if (call->err != KP_PENDING)
            check_flushed(c, call);
        if (call->err != KP_OK && call->err != KP_PENDING)
            c->failed_call = true;
        if (call->is_close)
            check_closed(c, call);
    }
}

/* -- each turn -- */

static void on_turn(struct world *w, void *arg)
{
    struct checker *c = arg;

    (void)w;
    sim_told_turn(c->s);
    check_attempts(c);
    check_topic(c, "t", 0);
    check_topic(c, "later", 1);
    check_connections(c);
    check_waiting(c);
    check_calls(c);
}

/* -- now and then -- */

static void check_key(struct checker *c, const struct world_record *r)
{
    uint32_t hash;

    if (r->key == NULL || !r->reported || strcmp(r->topic, "t") != 0 ||
        r->partition >= 0 || c->s->w->p->settings.ignore_keys)
        return;
    hash = kp__murmur2(r->key, strlen(r->key)) & INT32_MAX;
    for (int i = 0; i < c->count_count; i++)
        if (r->report.partition == (int32_t)(hash % (uint32_t)c->counts[i]))
            return;
    world_fail(c->s->w, "I-64: record %u with key %s went to partition %d",
               r->id, r->key, (int)r->report.partition);
}

/* A future that has a callback too is done after it. */
static void check_callback_first(struct checker *c,
                                 const struct world_record *r)
{
    unsigned both = WORLD_FUTURE | WORLD_CALLBACK;

    if ((r->flags & both) == both && r->public_in_callback)
        world_fail(c->s->w,
                   "I-09: the future of record %u was done before its "
                   "callback",
                   r->id);
}

static void check_block(struct checker *c, const struct world_record *r)
{
    int64_t took_ns = r->returned_ns - r->called_ns;

    if (r->state == WORLD_WAITING)
        return;
    if (took_ns > c->s->w->p->settings.max_block_ns)
        world_fail(c->s->w, "I-29: send %u took %lld ms", r->id,
                   (long long)(took_ns / MS));
    if ((r->flags & WORLD_NOWAIT) != 0 && took_ns > 0)
        world_fail(c->s->w, "I-29: send %u waited", r->id);
}

static void note_count(struct checker *c)
{
    int32_t n = kb_topic_partitions(c->s->w->cluster, "t");

    for (int i = 0; i < c->count_count; i++)
        if (c->counts[i] == n)
            return;
    if (c->count_count < 8 && n > 0)
        c->counts[c->count_count++] = n;
}

void sim_check_all(struct sim *s)
{
    struct checker *c = s->checker;

    world_check(s->w);
    sim_bounds_check(s);
    note_count(c);
    check_calls(c);
    for (uint32_t i = 0; i < s->w->record_count; i++) {
        check_block(c, s->w->records[i]);
        check_callback_first(c, s->w->records[i]);
        if (!sim_has(s, F_GROW) && !sim_has(s, F_RECREATE))
            check_key(c, s->w->records[i]);
    }
    if (!world_nothing_left(s->w))
        return;
    for (uint32_t i = 0; i < s->w->record_count; i++)
        if (must_be_reported(s, s->w->records[i]) &&
            !s->w->records[i]->reported)
            world_fail(s->w,
                       "I-45: record %u has no report, and kp_flush would "
                       "return",
                       i);
}

void sim_check_begin(struct sim *s)
{
    struct checker *c = world_must(calloc(1, sizeof(*c)));

    c->s = s;
    for (int t = 0; t < SIM_TOPICS; t++)
        for (int i = 0; i < LANES; i++)
            c->runs[t][i].producer_id = c->lanes[t][i].producer_id =
                c->lanes[t][i].gone = c->lanes[t][i].leader_epoch = -1;
    s->checker = c;
    sim_told_begin(s);
    sim_bounds_begin(s);
    note_count(c);
    world_on_turn(s->w, on_turn, c);
}

/* Promise 10: with nothing in the way but a failure, somebody was told. */
static void check_unwatched(struct sim *s)
{
    struct world *w = s->w;
    unsigned seen = WORLD_FUTURE | WORLD_CALLBACK | WORLD_QUEUE;

    if (w->lost_records || s->acks != -1 || s->checker->failed_call ||
        kp__producer_take_unwatched(w->p, NULL) != KP_OK)
        return;
    for (uint32_t i = 0; i < w->record_count; i++) {
        const struct world_record *r = w->records[i];

        if (r->state == WORLD_TAKEN && (r->flags & seen) == 0 &&
            r->stored_times == 0)
            world_fail(w, "P-10: record %u is lost, and nobody was told", i);
    }
}

void sim_check_end(struct sim *s)
{
    check_calls(s->checker);
    sim_told_end(s);
    sim_bounds_end(s);
    check_unwatched(s);
    world_on_turn(s->w, NULL, NULL);
    free(s->checker);
}
