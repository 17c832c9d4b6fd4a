/* SPDX-License-Identifier: BSD-2-Clause */
/* sim.h - the simulator: a seed decides settings, actors, weather; a checker
 * holds the client to its promises after every turn.
 *
 *   plan.c     what the seed switches on, and the producer's settings
 *   actors.c   the application: threads that send, flush, close
 *   weather.c  the network and the brokers
 *   check.c    what must hold after each turn
 *   told.c     what reports may say
 *   bounds.c   what must not grow
 *   calm.c     what must hold when the weather is over
 *   seed.c     the life of one seed
 *   child.c    seeds in a process of their own
 *   shrink.c   the smallest run that still fails
 *   run.c      the program
 *
 * One thread.  Nothing here looks at a clock, an address or the environment, so
 * a seed replays exactly; each feature and each actor draws from a generator of
 * its own, so that taking one away leaves the others as they were. */
#ifndef KP_TEST_SIM_H
#define KP_TEST_SIM_H

#include "lib/base/rand.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define MS KP_NS_PER_MS

enum feature {
#define FEATURE(name, text, percent, what) F_##name,
#include "test/sim/features.def"
#undef FEATURE
    F_COUNT
};
const char *sim_feature_name(enum feature f);
/* F_COUNT: there is none. */
enum feature sim_feature_by_name(const char *name, size_t size);

/* What a shrunk run leaves out; SIM_ALL: nothing. */
struct sim_limits {
    uint64_t off; /* features, by bit */
    int steps, actors, records, faults;
};
#define SIM_ALL \
    ((struct sim_limits){0, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX})

#define SIM_NODES 4 /* at most; ids from 1 */
#define SIM_ACTORS 6
#define SIM_CLAIMS 3
#define SIM_TOPICS 2
#define SIM_NO_TOPICS 5 /* names of topics that there are not */
#define SIM_LANES 16 /* partitions of a topic that are looked at */

struct actor {
    struct rng rng;
    int number;
    unsigned flags; /* of its records */
    uint32_t burst; /* sends in a row, at most */
    uint32_t idle;  /* percent of the steps in which it does nothing */
    uint32_t flush; /* percent that it flushes */
    int32_t size;
    int32_t lane; /* its partition; -1: any */
    const char *topic;
    bool keys, waits; /* waits: for each report before the next send */
    uint32_t max_wait_ms;
    struct world_record *last;
    struct world_call *call;
};

struct sim {
    struct world *w;
    uint64_t seed;
    struct sim_limits limits;
    struct rng rng;
    uint64_t on; /* features */
    struct rng of_feature[F_COUNT];

    /* the plan */
    int nodes, steps;
    int64_t step_ns;
    int32_t partitions;
    bool plain; /* no idempotence */
    int acks;
    uint32_t how_bad; /* percent */

    /* the application */
    struct actor actors[SIM_ACTORS];
    int actor_count;
    int sent;
    struct world_call *close;
    int64_t closed_ns; /* when a callback closed it; 0: none did */

    /* the weather */
    int faults;
    bool down[SIM_NODES + 1], paused[SIM_NODES + 1], cut_off[SIM_NODES + 1];
    bool held, later_made;
    struct {
        struct batch *batch;
        struct compressor *compressor;
    } claims[SIM_CLAIMS];

    struct checker *checker;
    struct told *told;
    struct bounds *bounds;
};

static inline bool sim_has(const struct sim *s, enum feature f)
{
    return (s->on >> f & 1) != 0;
}
static inline bool sim_chance(struct rng *r, uint32_t percent)
{
    return kp__rng_below(r, 100) < percent;
}
#define SIM_PICK(r, ...) \
    (((const char *const[]){__VA_ARGS__})[kp__rng_below( \
        (r), (uint32_t)(sizeof((const char *const[]){__VA_ARGS__}) / \
                        sizeof(const char *)))])

/* plan.c: everything up to a client that is ready. */
void sim_plan(struct sim *s);

/* actors.c */
void sim_actors_init(struct sim *s);
void sim_actors_step(struct sim *s);

/* weather.c */
void sim_weather_step(struct sim *s);
void sim_weather_clear(struct sim *s); /* and all is as it was */

/* check.c */
void sim_check_begin(struct sim *s);
/* What costs more than a turn's check; now and then, and at the end. */
void sim_check_all(struct sim *s);
void sim_check_end(struct sim *s);

/* told.c: the reports that this turn brought. */
void sim_told_begin(struct sim *s);
void sim_told_turn(struct sim *s);
void sim_told_end(struct sim *s);

/* bounds.c */
void sim_bounds_begin(struct sim *s);
void sim_bounds_check(struct sim *s);
void sim_bounds_idle(struct sim *s); /* after a minute with nothing to do */
void sim_bounds_end(struct sim *s);

/* calm.c: after the weather. */
void sim_calm(struct sim *s);

/* seed.c: the whole; returns what happened as one number. */
uint64_t sim_seed(uint64_t seed, const struct sim_limits *limits);
/* Of the last sim_seed: what a smaller run may leave out. */
struct sim_size {
    uint64_t on;
    int steps, actors, records, faults;
};
const struct sim_size *sim_size(void);

/* child.c: a process for the seeds, so that one that crashes or never ends is
 * only one that failed. */
struct sim_failure {
    char text[512];
    struct sim_size size;
};
/* False: nothing was wrong; else *out says what. */
bool sim_fails(uint64_t seed, const struct sim_limits *limits,
               struct sim_failure *out);
/* Runs seeds sim_nth(base, i) for i in [from, to) until one fails: its i, else
 * `to`. One in a hundred is run twice (I-78). */
uint64_t sim_run_some(uint64_t base, uint64_t from, uint64_t to,
                      const struct sim_limits *limits, struct sim_failure *out);
uint64_t sim_nth(uint64_t base, uint64_t i);
/* The planted fault that acts, 0: none.  False: this build has none. */
bool sim_plant(int number);

/* planted.c: each fault of the table must be found: by its kept seed, or by one
 * of 20,000 others.  Prints what was found, and returns how many were not.
 * `only`: this one; 0: all. */
uint64_t sim_planted(const char *table, int only);

/* shrink.c: the smallest limits that were found to fail with the same check. */
struct sim_limits sim_shrink(uint64_t seed, const struct sim_limits *from,
                             const struct sim_failure *known);

#endif
