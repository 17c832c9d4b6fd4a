/* SPDX-License-Identifier: BSD-2-Clause */
/* seed.c - the life of one seed: a plan, steps of work and weather, then calm,
 * and the end. */
#include "test/sim/sim.h"

#include <stdlib.h>
#include <string.h>

static struct sim_size last;

const struct sim_size *sim_size(void)
{
    return &last;
}

static bool is_open(const struct sim *s)
{
    return atomic_load(&s->w->p->accumulator.taking) == TAKING_RECORDS;
}

static void note_size(const struct sim *s, int steps)
{
    last.on = s->on;
    last.steps = steps;
    last.actors = s->actor_count;
    last.records = s->sent;
    last.faults = s->faults;
}

static void step(struct sim *s)
{
    int64_t until_ns;

    sim_weather_step(s);
    sim_actors_step(s);
    until_ns =
        world_now_ns(s->w) +
        (int64_t)kp__rng_below(&s->rng, (uint32_t)(s->step_ns / 1000)) * 1000;
    world_run_until_ns(s->w, until_ns);
    if (sim_chance(&s->rng, 6))
        sim_check_all(s);
}

static void end(struct sim *s)
{
    sim_weather_clear(s);
    if (s->close == NULL && is_open(s) && sim_chance(&s->rng, 30))
        s->close =
            world_close(s->w, sim_chance(&s->rng, 50)
                                  ? KP_FOREVER
                                  : (int64_t)kp__rng_below(&s->rng, 3000));
    world_settle(s->w);
    sim_check_all(s);
    if (is_open(s))
        sim_calm(s);
    sim_check_all(s);
}

uint64_t sim_seed(uint64_t seed, const struct sim_limits *limits)
{
    struct sim *s = world_must(calloc(1, sizeof(*s)));
    uint64_t digest;

    s->seed = seed;
    s->limits = *limits;
    memset(&last, 0, sizeof(last));
    sim_plan(s);
    s->w->is_sim = true;
    sim_check_begin(s);
    sim_actors_init(s);
    for (int i = 0; i < s->steps; i++) {
        note_size(s, i + 1);
        step(s);
        note_size(s, i + 1);
    }
    end(s);
    digest = world_digest(s->w);
    sim_check_end(s);
    world_end(s->w);
    free(s);
    return digest;
}
