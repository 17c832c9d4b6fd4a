/* SPDX-License-Identifier: BSD-2-Clause */
/* sched.h - actors on coroutines, run by a strategy one point at a time.
 *
 * One thread.  An actor runs from one scheduling point (shim.h) to the next;
 * which one goes on is the strategy's to say.  The same choices give the same
 * run. */
#ifndef KP_TEST_SCHEDULES_SCHED_H
#define KP_TEST_SCHEDULES_SCHED_H

#include <stdint.h>

#include "test/schedules/shim.h"

#define ACTORS_MAX 8

/* What an actor is about to do. */
struct pending {
    enum sched_kind kind;
    const volatile void *at;
    const char *file;
    int line;
};

/* How a run ended. */
enum sched_end {
    END_GOOD,
    END_BAD,   /* sched_violation was called, or nobody can go on */
    END_PRUNED /* the strategy did not want to see the rest */
};

/* Which of the actors in `enabled` goes on; `current` is the last one, or -1.
 * -1: end the run. */
struct strategy {
    int (*choose)(void *arg, uint32_t enabled, int current);
    void *arg;
};

/* Run actors 0 .. count-1 from their beginning.  A wait with a deadline may end
 * by it at any time. */
enum sched_end sched_run(int count, void (*actor)(int id),
                         const struct strategy *strategy);
const struct pending *sched_pending(int actor);
/* Two operations that may stand in either order without any difference. */
bool sched_independent(const struct pending *a, const struct pending *b);
/* Two operations of two actors that may both be enabled at one moment. */
bool sched_together(const struct pending *a, const struct pending *b);

/* From an actor, or after a run: something that must not be. */
__attribute__((format(printf, 1, 2))) void sched_violation(const char *format,
                                                           ...);
const char *sched_violation_text(void); /* of the last run; or NULL */
/* Sleep until the fd of a wake-up (lib/base/wakeup.h) is readable. */
struct wakeup;
void sched_poll_fd(const struct wakeup *w);
/* The fd that was last cleared had been readable. */
bool sched_cleared(void);
/* The same, or until a time of the scenario's own comes.  A `near` one may come
 * at any moment, SCHED_TIMES times in a run; another only when nobody else can
 * go on: or a clock that runs ahead would leave no room for anything else. */
#define SCHED_TIMES 60
void sched_poll_fd_or_time(const struct wakeup *w, bool near);
/* Called before an actor goes on, for what is a thread's own; NULL: nothing. */
void sched_on_switch(void (*fn)(int actor));
/* The last run, one line a step. */
void sched_print_trace(void);

/* -- Planted faults: how a seam may fail, so that a scenario that does not
 * notice is known to be blind -- */
enum plant {
    PLANT_NONE,
    PLANT_LOST_WAKE,    /* every wake-up of a word does nothing */
    PLANT_LOST_LATER,   /* every one but the first of a run */
    PLANT_ONE_WAKE,     /* a wake-up wakes one at most */
    PLANT_BLIND_WAIT,   /* a wait sleeps though the word has changed */
    PLANT_LOST_FD,      /* an fd that is set does not become readable */
    PLANT_NO_EXCLUSION, /* a lock is got though another has it */
    PLANT_SPLIT_RMW,    /* read-modify-writes come apart */
    PLANT_LATE_STORE,   /* a store is seen after the load that follows it */
    PLANT_COUNT
};
void sched_plant(enum plant plant);
enum plant sched_planted(void);
const char *sched_plant_name(enum plant plant);

#endif
