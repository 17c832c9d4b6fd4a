/* SPDX-License-Identifier: BSD-2-Clause */
/* plan.c - what a seed decides beforehand: features, settings, the cluster.
 *
 * Swarm testing: each feature is on in some of the seeds only, for what is
 * always on hides what needs its absence. */
#include <string.h>

#include "test/sim/sim.h"

static const struct {
    const char *name;
    uint32_t percent;
} features[F_COUNT] = {
#define FEATURE(name, text, percent, what) {text, percent},
#include "test/sim/features.def"
#undef FEATURE
};

const char *sim_feature_name(enum feature f)
{
    return features[f].name;
}

enum feature sim_feature_by_name(const char *name, size_t size)
{
    int f = 0;

    while (f < F_COUNT && (strlen(features[f].name) != size ||
                           memcmp(features[f].name, name, size) != 0))
        f++;
    return (enum feature)f;
}

static void draw_features(struct sim *s)
{
    for (int f = 0; f < F_COUNT; f++) {
        kp__rng_seed(&s->of_feature[f],
                     s->seed ^
                         ((uint64_t)f + 1) * UINT64_C(0x9e3779b97f4a7c15));
        if (sim_chance(f < F_NAMES ? &s->rng : &s->of_feature[f],
                       features[f].percent))
            s->on |= UINT64_C(1) << f;
    }
    if (sim_chance(&s->rng, 10))
        s->on = 0; /* fair weather, and a simple application */
    s->on &= ~s->limits.off;
}

/* -- settings -- */

struct settings_list {
    const char *items[64];
    int n;
};

static void set(struct settings_list *l, const char *name, const char *value)
{
    l->items[l->n++] = name;
    l->items[l->n++] = value;
}

static void draw_reliability(struct sim *s, struct settings_list *l)
{
    const char *acks = SIM_PICK(&s->rng, "all", "1", "0");
    const char *in_flight = SIM_PICK(&s->rng, "1", "2", "5", "5");

    s->plain = sim_chance(&s->rng, 25);
    s->acks = -1;
    set(l, "enable.idempotence", s->plain ? "false" : "true");
    if (s->plain) {
        set(l, "acks", acks);
        s->acks = strcmp(acks, "all") == 0 ? -1 : acks[0] - '0';
    }
    set(l, "max.in.flight.requests.per.connection", s->plain ? "1" : in_flight);
}

static void draw_settings(struct sim *s, struct settings_list *l)
{
    struct rng *r = &s->rng;
    const char *small = SIM_PICK(r, "8192", "16384", "40000", "65536");

    draw_reliability(s, l);
    set(l, "linger.ms", SIM_PICK(r, "0", "5", "20", "100"));
    set(l, "batch.size", SIM_PICK(r, "0", "300", "2000", "16384"));
    set(l, "buffer.memory", sim_has(s, F_TIGHT) ? small : "33554432");
    set(l, "max.request.size", SIM_PICK(r, "3000", "6000", "1048576"));
    set(l, "compression.type",
        SIM_PICK(r, "none", "none", "gzip", "snappy", "lz4", "zstd"));
    set(l, "delivery.timeout.ms", SIM_PICK(r, "2000", "4000", "60000"));
    set(l, "request.timeout.ms", SIM_PICK(r, "300", "1000"));
    set(l, "retry.backoff.ms", SIM_PICK(r, "5", "50", "100"));
    set(l, "reconnect.backoff.ms", SIM_PICK(r, "10", "50"));
    set(l, "reconnect.backoff.max.ms", SIM_PICK(r, "50", "1000"));
    set(l, "socket.connection.setup.timeout.ms", SIM_PICK(r, "200", "700"));
    set(l, "socket.connection.setup.timeout.max.ms", "1000");
    set(l, "max.block.ms", SIM_PICK(r, "100", "1000", "5000"));
    if (sim_chance(r, 10))
        set(l, "retries", "2");
    if (sim_chance(r, 20))
        set(l, "metadata.max.age.ms", "1000");
    if (sim_chance(r, 20))
        set(l, "partitioner.ignore.keys", "true");
    if (sim_chance(r, 20))
        set(l, "partitioner.adaptive.partitioning.enable", "false");
}

/* Sequence numbers that soon wrap, epochs that soon end. */
static void near_the_ends(struct sim *s)
{
    struct topic *t = kp__topics_find(s->w->p->topics, "t", 1);
    struct rng *r = &s->of_feature[F_ENDS];

    for (int32_t i = 0; i < s->partitions; i++) {
        struct ledger *l = &kp__topic_view(t)->queues[i]->sender->ledger;

        if (l->producer_id < 0)
            continue;
        if (sim_chance(r, 50))
            l->next_sequence = INT32_MAX - (int32_t)kp__rng_below(r, 50);
        if (sim_chance(r, 50))
            l->epoch = (int16_t)(INT16_MAX - (int)kp__rng_below(r, 3));
    }
}

void sim_plan(struct sim *s)
{
    struct settings_list l = {.n = 0};
    struct rng *r = &s->rng;
    int64_t latency_ms;

    kp__rng_seed(r, s->seed);
    draw_features(s);
    s->nodes = 1 + (int)kp__rng_below(r, SIM_NODES);
    s->partitions = 1 + (int32_t)kp__rng_below(r, sim_chance(r, 10) ? 12 : 3);
    s->steps = 10 + (int)kp__rng_below(r, sim_chance(r, 15) ? 250 : 70);
    s->step_ns = (1 + kp__rng_below(r, 40)) * MS;
    s->how_bad = 2 + kp__rng_below(r, 25);
    latency_ms = 1 + kp__rng_below(r, 10);
    draw_settings(s, &l);
    if (s->steps > s->limits.steps)
        s->steps = s->limits.steps;
    s->w = world_begin(&(struct world_options){
        .nodes = s->nodes,
        .partitions = s->partitions,
        .replication = s->nodes < 3 ? s->nodes : 3,
        .seed = s->seed,
        .latency_ns = latency_ms * MS,
        .settings = l.items,
        .watches_log = true,
        .watches_wire = true,
    });
    world_look_twice(s->w, sim_has(s, F_LOOK));
    if (sim_has(s, F_ENDS) && !s->plain)
        near_the_ends(s);
    if (sim_has(s, F_MEMORY))
        world_fail_memory(
            s->w, 1 + (long)kp__rng_below(&s->of_feature[F_MEMORY], 100),
            2 + (long)kp__rng_below(&s->of_feature[F_MEMORY], 300));
}
