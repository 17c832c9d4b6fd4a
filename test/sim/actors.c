/* SPDX-License-Identifier: BSD-2-Clause */
/* actors.c - the application: a few threads, each with ways of its own.
 *
 * An actor that waits in a call does nothing else until it returns, as a thread
 * would. */
#include "test/sim/sim.h"

#include "lib/base/thread.h"

static const char *const keys[] = {"a", "bb", "ccc", "k4", "key-5", "six"};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* -- drawing one -- */

static unsigned draw_flags(const struct sim *s, struct rng *r)
{
    unsigned flags = WORLD_FUTURE | WORLD_CALLBACK;
    bool queue = sim_chance(r, 50), nowait = sim_chance(r, 50);
    bool unwatched = sim_chance(r, 50);

    if (sim_chance(r, 30))
        flags = WORLD_CALLBACK;
    if (sim_chance(r, 30))
        flags = WORLD_FUTURE;
    if (queue && sim_has(s, F_QUEUE))
        flags = WORLD_QUEUE | (flags == WORLD_FUTURE ? WORLD_FUTURE : 0);
    if (unwatched && sim_has(s, F_UNWATCHED))
        flags = 0;
    if (nowait && sim_has(s, F_NOWAIT))
        flags |= WORLD_NOWAIT;
    if (sim_chance(r, 50))
        flags |= WORLD_RANDOM;
    return flags;
}

static void draw_actor(struct sim *s, int i)
{
    struct actor *a = &s->actors[i];
    struct rng *r = &a->rng;
    uint32_t burst, flush;
    bool topic, with_keys;

    kp__rng_seed(r, s->seed ^ ((uint64_t)i + 1) * UINT64_C(0xd1342543de82ef95));
    burst = 2 + kp__rng_below(r, 12);
    flush = 1 + kp__rng_below(r, 10);
    topic = sim_chance(r, 50);
    with_keys = sim_chance(r, 60);
    a->number = i;
    a->flags = draw_flags(s, r);
    a->burst = sim_has(s, F_BURST) ? burst : 1;
    a->idle = kp__rng_below(r, 80);
    a->flush = sim_has(s, F_FLUSH) ? flush : 0;
    a->size = 9 + (int32_t)kp__rng_below(r, 300);
    a->lane = (int32_t)kp__rng_below(r, 16) - 4;
    a->topic = topic && sim_has(s, F_CREATE) ? "later" : "t";
    a->keys = with_keys && sim_has(s, F_KEYS);
    a->waits = sim_chance(r, 15);
    a->max_wait_ms = sim_chance(r, 20) ? 1 + kp__rng_below(r, 200) : 0;
}

/* -- what callbacks do -- */

static void on_report(struct world *w, struct world_record *r)
{
    struct sim *s = r->user;
    struct rng *rng;
    kp_producer *p = world_producer(w);

    if (s == NULL || !sim_has(s, F_CALLS))
        return;
    rng = &s->of_feature[F_CALLS];
    switch (kp__rng_below(rng, 12)) {
    case 0:
        if (kp_flush(p, 10, NULL) != KP_EDEADLK)
            world_fail(w, "I-47: a flush in a callback waited");
        break;
    case 1:
        if (kp_producer_destroy(p) != KP_EDEADLK)
            world_fail(w, "I-47: destroy in a callback");
        break;
    case 2:
        (void)kp_status(p, "t", NULL);
        break;
    case 3:
    case 4:
        if (s->sent < s->limits.records) {
            struct world_record *more = world_send_what(
                w,
                &(struct world_what){.partition = r->partition,
                                     .topic = r->topic,
                                     .size = 20,
                                     .flags = WORLD_CALLBACK | WORLD_FUTURE});

            s->sent++;
            more->thread = SIM_ACTORS + 1;
            if (more->state == WORLD_WAITING)
                world_fail(w, "I-47: a send in a callback waits");
        }
        break;
    case 5:
        if (s->close != NULL || !sim_has(s, F_CLOSE) || !sim_chance(rng, 10))
            break;
        if (kp_close(p, KP_FOREVER, NULL) != KP_PENDING)
            world_fail(w, "I-47: a close in a callback waited");
        if (s->closed_ns == 0)
            s->closed_ns = world_now_ns(w); /* it gives up at once */
        break;
    default:
        break;
    }
}

/* -- living -- */

/* A name that no broker knows, and not much patience. */
static void send_nowhere(struct sim *s, struct actor *a)
{
    static const char *const names[SIM_NO_TOPICS] = {"no-1", "no-2", "no-3",
                                                     "no-4", "no-5"};
    struct rng *r = &s->of_feature[F_NAMES];

    a->last = world_send_what(
        s->w, &(struct world_what){.topic = names[kp__rng_below(r, 5)],
                                   .partition = -1,
                                   .flags = a->flags,
                                   .max_wait_ms = 1 + kp__rng_below(r, 40)});
    a->last->user = s;
    a->last->thread = 1 + a->number;
}

static void send_one(struct sim *s, struct actor *a)
{
    struct rng *r = &a->rng;
    int32_t known = kb_topic_partitions(s->w->cluster, "t");
    int32_t lanes = known > 0 ? known : s->partitions;
    uint32_t big = kp__rng_below(r, 100), odd = kp__rng_below(r, 100);
    int32_t big_size = 500 + (int32_t)kp__rng_below(r, 2200);
    int32_t any = (int32_t)kp__rng_below(r, (uint32_t)lanes);
    uint32_t key = kp__rng_below(r, KEYS);
    struct world_what what = {
        .topic = a->topic,
        .partition = a->lane >= 0 ? a->lane % lanes : any,
        .size = a->size,
        .flags = a->flags,
        .max_wait_ms = a->max_wait_ms,
    };

    if (odd < 15 || a->keys)
        what.partition = -1;
    if (a->keys)
        what.key = keys[key];
    if (big < 8 && sim_has(s, F_BIG))
        what.size = big_size;
    s->sent++;
    if (sim_has(s, F_NAMES) && sim_chance(&s->of_feature[F_NAMES], 8)) {
        send_nowhere(s, a);
        return;
    }
    a->last = world_send_what(s->w, &what);
    a->last->user = s;
    a->last->thread = 1 + a->number;
}

static bool is_busy(struct actor *a)
{
    if (a->call != NULL && a->call->done)
        a->call = NULL;
    if (a->call != NULL)
        return true;
    if (a->last == NULL)
        return false;
    if (a->last->state == WORLD_WAITING)
        return true;
    return a->waits && a->last->state == WORLD_TAKEN && !a->last->reported &&
           (a->flags & (WORLD_FUTURE | WORLD_CALLBACK)) != 0;
}

static void act(struct sim *s, struct actor *a)
{
    uint32_t n;

    if (is_busy(a) || sim_chance(&a->rng, a->idle))
        return;
    if (sim_chance(&a->rng, a->flush)) {
        uint32_t timeout_ms = kp__rng_below(&a->rng, 1000);

        if (s->w->call_count < 200 && s->close == NULL)
            a->call = world_flush(s->w, timeout_ms);
        return;
    }
    n = 1 + kp__rng_below(&a->rng, a->burst);
    for (uint32_t i = 0; i < n && s->sent < s->limits.records; i++) {
        send_one(s, a);
        if (is_busy(a))
            return;
    }
}

static void close_now(struct sim *s)
{
    struct rng *r = &s->of_feature[F_CLOSE];

    if (!sim_has(s, F_CLOSE) || s->close != NULL || !sim_chance(r, 4))
        return;
    s->close = world_close(
        s->w, sim_chance(r, 30) ? 0 : (int64_t)kp__rng_below(r, 3000));
}

void sim_actors_init(struct sim *s)
{
    s->actor_count = 1 + (int)kp__rng_below(&s->rng, SIM_ACTORS);
    if (s->actor_count > s->limits.actors)
        s->actor_count = s->limits.actors;
    for (int i = 0; i < s->actor_count; i++)
        draw_actor(s, i);
    world_on_report(s->w, on_report);
    if (sim_has(s, F_LAZY))
        world_poll_queue(s->w, false);
}

void sim_actors_step(struct sim *s)
{
    for (int i = 0; i < s->actor_count; i++)
        act(s, &s->actors[i]);
    if (sim_has(s, F_LAZY) && sim_chance(&s->of_feature[F_LAZY], 10))
        world_poll_now(s->w, 1 + kp__rng_below(&s->of_feature[F_LAZY], 40));
    close_now(s);
}
