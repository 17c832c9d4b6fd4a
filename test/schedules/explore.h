/* SPDX-License-Identifier: BSD-2-Clause */
/* explore.h - all schedules of a scenario, or a random sample of them. */
#ifndef KP_TEST_SCHEDULES_EXPLORE_H
#define KP_TEST_SCHEDULES_EXPLORE_H

#include "test/schedules/sched.h"

#define PLANT(p) (UINT32_C(1) << (p))

struct scenario {
    const char *name;
    int small, large; /* actors: for all schedules (0: not), for samples */
    /* Make what the actors share; outside of every actor. */
    void (*set_up)(int actors);
    void (*actor)(int id);
    /* After the last actor's end: what must hold, and take everything apart.
     * Calls sched_violation. */
    void (*check)(void);
    uint32_t plants; /* the faults that it must notice */
};

struct explored {
    uint64_t schedules;
    bool complete; /* there are no others */
    bool bad;      /* the last one broke something; see sched_print_trace */
    uint64_t seed; /* of the bad one, if it was a sample */
};

/* Depth first, one of all those schedules that differ only in the order of
 * steps that do not depend on each other (dynamic partial order reduction with
 * sleep sets), until `cap` were run or one is bad. */
struct explored explore_all(const struct scenario *s, int actors, uint64_t cap);
/* Every schedule of the small form with at most `bound` preemptions: moments
 * at which an actor that could go on has to stand back. */
struct explored explore_bounded(const struct scenario *s, int bound,
                                uint64_t cap);
/* `count` samples with seeds from `base` on; the large number of actors. */
struct explored explore_seeds(const struct scenario *s, uint64_t base,
                              uint64_t count);

#endif
