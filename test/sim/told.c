/* SPDX-License-Identifier: BSD-2-Clause */
/* told.c - what a report may say: no more than the client could know, no less
 * than it must, not before its time, and offsets that grow.
 *
 * Looked at when the turn that brought the report is over.  What the client
 * knew stands in the records (test/support/world_known.c). */
#include <stdlib.h>
#include <string.h>

#include "io_thread/client.h"
#include "io_thread/produce_call.h"
#include "test/sim/sim.h"

#define THREADS (SIM_ACTORS + 2)

struct told {
    size_t seen; /* of w->told */
    /* a batch of it stood in a frame that was not written to its end, when the
     * turn before was over */
    bool handed[SIM_TOPICS][SIM_LANES];
    /* the record with the highest offset told so far */
    const struct world_record *top[THREADS][SIM_TOPICS][SIM_LANES];
};

static int topic_number(const char *name)
{
    if (strcmp(name, "t") == 0)
        return 0;
    return strcmp(name, "later") == 0 ? 1 : -1;
}

static bool has_lane(const struct world_record *r)
{
    return topic_number(r->topic) >= 0 && r->report.partition >= 0 &&
           r->report.partition < SIM_LANES;
}

/* -- certainty -- */

static const char *word(int32_t stored)
{
    return stored == KP_STORED_YES  ? "YES"
           : stored == KP_STORED_NO ? "NO"
                                    : "MAYBE";
}

/* Given up with no answer: by a deadline, a close, or the producer's end. */
static bool was_given_up(const struct sim *s, const struct world_record *r)
{
    return r->report.err == KP_ETIMEDOUT || r->report.err == KP_ECLOSED ||
           atomic_load(&s->w->p->accumulator.taking) == TAKING_FATAL;
}

/* MAYBE is less than was known, and yet right. */
static bool may_know_less(const struct sim *s, const struct world_record *r)
{
    bool late = sim_has(s, F_LAZY) && (r->flags & WORLD_QUEUE) != 0 &&
                (r->flags & WORLD_FUTURE) == 0;

    /* there was no memory to read the answer, or to tell the parts of a batch
     * from each other */
    if (s->w->fails_memory)
        return true;
    if (!was_given_up(s, r) || r->said_stored)
        return late && was_given_up(s, r);
    /* a frame that has begun cannot be taken back */
    return late ||
           (has_lane(r) &&
            s->told->handed[topic_number(r->topic)][r->report.partition]);
}

/* I-05 */
static void check_certainty(const struct sim *s, const struct world_record *r)
{
    int32_t known = r->said_stored        ? KP_STORED_YES
                    : r->maybe_stored > 0 ? KP_STORED_MAYBE
                                          : KP_STORED_NO;

    if (r->report.stored == known ||
        (r->report.stored == KP_STORED_MAYBE && may_know_less(s, r)))
        return;
    world_fail(s->w,
               "I-05: record %u was reported %s (%s), and what is known is "
               "%s: %u attempts, of which %u may have stored it",
               r->id, word(r->report.stored), kp_err_name(r->report.err),
               word(known), r->attempts, r->maybe_stored);
}

/* -- offsets -- */

/* I-13: of one thread, one partition. */
static void check_offset(struct sim *s, const struct world_record *r)
{
    const struct world_record **top, *old;

    if (s->w->lost_records || s->w->lost_state || s->acks != -1 ||
        !has_lane(r) || r->report.stored != KP_STORED_YES ||
        r->report.offset < 0)
        return;
    top = &s->told->top[r->thread][topic_number(r->topic)][r->report.partition];
    old = *top;
    if (old != NULL && ((r->called_at > old->returned_at &&
                         r->report.offset <= old->report.offset) ||
                        (old->called_at > r->returned_at &&
                         r->report.offset >= old->report.offset)))
        world_fail(s->w,
                   "I-13: offset %lld of record %u, and record %u of the same "
                   "thread has %lld",
                   (long long)r->report.offset, r->id, old->id,
                   (long long)old->report.offset);
    if (old == NULL || r->report.offset > old->report.offset)
        *top = r;
}

/* -- why, and when -- */

/* I-23: of a batch that is too large, only a record that is so by itself. */
static void check_too_large(const struct sim *s, const struct world_record *r)
{
    if (r->report.err == KP_MESSAGE_TOO_LARGE &&
        r->report.stored == KP_STORED_NO && r->too_large != 1)
        world_fail(s->w,
                   "I-23: record %u failed as too large, and was so among %d",
                   r->id, (int)r->too_large);
}

/* I-48: a close gives up what is left, and only when its time is over. */
static void check_given_up(const struct sim *s, const struct world_record *r)
{
    int64_t from_ns = s->closed_ns != 0 ? s->closed_ns : KP_NEVER;

    if (r->report.err != KP_ECLOSED)
        return;
    for (size_t i = 0; i < s->w->call_count; i++)
        if (s->w->calls[i]->is_close && s->w->calls[i]->deadline_ns < from_ns)
            from_ns = s->w->calls[i]->deadline_ns;
    if (from_ns == KP_NEVER)
        world_fail(s->w, "I-48: record %u was given up, though no close may",
                   r->id);
    if (r->reported_ns < from_ns)
        world_fail(s->w, "I-48: record %u was given up %lld ms too early",
                   r->id, (long long)(from_ns - r->reported_ns) / MS);
}

/* What passes, or may: a topic that has vanished comes back. */
static bool may_pass(kp_err err)
{
    static const kp_err passing[] = {
        3,           5,         6,           7,  9,   14,  19,
        20,          56,        74,          75, 100, 103, KP_EDISCONNECT,
        KP_ECONNECT, KP_EPROTO, KP_EMETADATA};

    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        if (passing[i] == err)
            return true;
    return false;
}

/* I-65: it fails no record before retries or delivery.timeout.ms say so.  A
 * batch takes records for a quarter of that time, and ends as one. */
static void check_policy(const struct sim *s, const struct world_record *r)
{
    const struct settings *set = &s->w->p->settings;
    int64_t least_ns = set->delivery_timeout_ns / 4 * 3 - 20 * MS;

    if (may_pass(r->report.err) && set->retries == INT32_MAX)
        world_fail(s->w, "I-65: record %u failed by %s, which may pass", r->id,
                   kp_err_name(r->report.err));
    if (r->report.err == KP_ETIMEDOUT && !sim_has(s, F_HOLD) &&
        r->reported_ns - r->called_ns < least_ns)
        world_fail(s->w, "I-65: record %u timed out after %lld ms", r->id,
                   (long long)(r->reported_ns - r->called_ns) / MS);
}

/* -- each turn -- */

static void note_call(struct told *t, const struct produce_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        const struct partition_queue *q =
            call->batches[i] != NULL ? call->batches[i]->queue : NULL;
        int topic = q != NULL ? topic_number(q->topic->name->text) : -1;

        if (topic >= 0 && q->partition < SIM_LANES)
            t->handed[topic][q->partition] = true;
    }
}

static void note_requests(struct told *t, const struct list *l)
{
    for (struct list_node *at = kp__list_first(l); at != NULL;
         at = kp__list_next(l, at)) {
        const struct request *r = KP_CONTAINER(at, struct request, link);

        if (r->api->key == API_PRODUCE)
            note_call(t, r->arg);
    }
}

static void note_handed(struct sim *s)
{
    const struct network_client *c = s->w->p->io->client;

    memset(s->told->handed, 0, sizeof(s->told->handed));
    note_requests(s->told, &c->refused);
    for (size_t i = 0; i < c->node_count; i++)
        note_requests(s->told, &c->nodes[i]->queue);
}

static void check_new(struct sim *s)
{
    struct world *w = s->w;

    for (; s->told->seen < w->told_count; s->told->seen++) {
        const struct world_record *r = w->records[w->told[s->told->seen]];

        check_certainty(s, r);
        check_offset(s, r);
        check_too_large(s, r);
        check_given_up(s, r);
        check_policy(s, r);
    }
}

void sim_told_turn(struct sim *s)
{
    check_new(s);
    note_handed(s);
}

void sim_told_begin(struct sim *s)
{
    s->told = world_must(calloc(1, sizeof(*s->told)));
}

void sim_told_end(struct sim *s)
{
    check_new(s);
    free(s->told);
    s->told = NULL;
}
