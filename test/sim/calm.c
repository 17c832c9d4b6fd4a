/* SPDX-License-Identifier: BSD-2-Clause */
/* calm.c - after the weather: it must simply work again, at once and in time,
 * and then be still. */
#include "test/sim/sim.h"

#define CALM_RECORDS 6

static void settle_down(struct sim *s)
{
    /* backoffs, old epochs and metadata have had their time */
    world_run_ms(s->w, 3000);
    (void)world_flush(s->w, KP_FOREVER);
    world_settle(s->w);
    /* old connections and leaders are found out by using them */
    for (int32_t p = 0; p < kb_topic_partitions(world_cluster(s->w), "t"); p++)
        (void)world_send(s->w, p);
    world_settle(s->w);
    /* what lies said of epochs is believed for 5 s after it was denied first */
    world_run_ms(s->w, sim_has(s, F_LIES) ? 6000 : 3000);
}

/* I-66: it comes back by itself. */
static void works_again(struct sim *s)
{
    int32_t n = kb_topic_partitions(world_cluster(s->w), "t");
    struct world_record *r[CALM_RECORDS];

    for (int i = 0; i < CALM_RECORDS; i++)
        r[i] = world_send(s->w, i % n);
    world_settle(s->w);
    for (int i = 0; i < CALM_RECORDS; i++) {
        if (r[i]->state != WORLD_TAKEN || r[i]->report.err != KP_OK)
            world_fail(s->w, "I-66: in calm weather record %u: %s, %s",
                       r[i]->id, kp_err_name(r[i]->refused),
                       kp_err_name(r[i]->report.err));
        if (s->acks != 0 && r[i]->report.stored != KP_STORED_YES)
            world_fail(s->w, "I-04: in calm weather record %u is not YES",
                       r[i]->id);
    }
}

static const struct world_attempt *attempt_of(struct sim *s,
                                              const struct world_record *r,
                                              size_t from)
{
    for (size_t i = from; i < world_attempts(s->w); i++)
        if (world_attempt(s->w, i)->first_id == r->id)
            return world_attempt(s->w, i);
    return NULL;
}

/* A lonely record leaves when its linger is over: not before, and not much
 * later, for somebody has to wake up for it. */
static void lingers(struct sim *s)
{
    size_t from = world_attempts(s->w);
    int64_t linger_ns = s->w->p->settings.linger_ns;
    int64_t sent_ns = world_now_ns(s->w), left_ns;
    struct world_record *r = world_send(s->w, 0);
    const struct world_attempt *a;

    world_settle(s->w);
    world_run_ms(s->w, 10); /* with acks=0 it is reported when it leaves */
    a = attempt_of(s, r, from);
    if (a == NULL)
        world_fail(s->w, "I-01: record %u was never sent", r->id);
    left_ns = a->at_ns - MS - sent_ns; /* a latency of 1 ms */
    if (left_ns < linger_ns && s->w->p->settings.batch_size > 200)
        world_fail(s->w, "P-linger: record %u left after %lld us", r->id,
                   (long long)left_ns / 1000);
    if (left_ns > linger_ns + 20 * MS)
        world_fail(s->w, "P-wake: record %u left %lld us after its linger",
                   r->id, (long long)(left_ns - linger_ns) / 1000);
}

/* I-45: a flush does not linger, and does not end before what it flushes. */
static void flushes(struct sim *s)
{
    struct world_record *r = world_send(s->w, 0);
    int64_t began_ns = world_now_ns(s->w);
    struct world_call *c = world_flush(s->w, 10000);

    world_settle(s->w);
    if (c->err != KP_OK && !sim_has(s, F_UNWATCHED))
        world_fail(s->w, "I-45: flush in calm weather: %s",
                   kp_err_name(c->err));
    if (!r->reported || r->reported_ns > c->done_ns)
        world_fail(s->w, "I-45: flush ended before record %u", r->id);
    if (c->done_ns - began_ns > 50 * MS)
        world_fail(s->w, "I-45: flush took %lld us in calm weather",
                   (long long)(c->done_ns - began_ns) / 1000);
}

static uint64_t all_connects(const struct sim *s)
{
    uint64_t n = 0;

    for (int i = 1; i <= s->nodes; i++)
        n += s->w->connects[i];
    return n;
}

static void set_dark(struct sim *s, bool on)
{
    for (int32_t i = 1; i <= s->nodes; i++) {
        struct world_link *l = world_link(s->w, i);

        l->refuses = on && sim_chance(&s->of_feature[F_DARK], 60);
        l->silent = on && !l->refuses;
    }
    if (on)
        world_cut(s->w, -1, true);
}

/* I-38: records wait and nobody can be reached.  There is a turn for what an
 * attempt to connect needs (I-40 says how many of those there may be), and none
 * besides. */
static void in_the_dark(struct sim *s)
{
    uint64_t turns, connects;

    set_dark(s, true);
    for (int i = 0; i < 3; i++)
        (void)world_send(s->w, 0);
    world_run_ms(s->w, 500);
    turns = world_turns(s->w);
    connects = all_connects(s);
    world_run_ms(s->w, 3000);
    turns = world_turns(s->w) - turns;
    connects = all_connects(s) - connects;
    if (turns > 60 + 8 * connects)
        world_fail(s->w, "I-38: %llu turns in the dark, for %llu connects",
                   (unsigned long long)turns, (unsigned long long)connects);
    set_dark(s, false);
    settle_down(s);
    works_again(s);
}

/* Promise 9: a minute with nothing to do. */
static void is_idle(struct sim *s)
{
    uint64_t turns;

    world_run_ms(s->w, 2000);
    turns = world_turns(s->w);
    world_run_ms(s->w, 60000);
    if (world_turns(s->w) - turns > 600)
        world_fail(s->w, "I-37: %llu turns in an idle minute",
                   (unsigned long long)(world_turns(s->w) - turns));
}

void sim_calm(struct sim *s)
{
    settle_down(s);
    works_again(s);
    lingers(s);
    flushes(s);
    if (sim_has(s, F_DARK))
        in_the_dark(s);
    is_idle(s);
    sim_bounds_idle(s);
}
