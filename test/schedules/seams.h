/* SPDX-License-Identifier: BSD-2-Clause */
/* seams.h - what stands in for lib/base/mutex.c, wait.c and wakeup.c, and the
 * planted faults in them. */
#ifndef KP_TEST_SCHEDULES_SEAMS_H
#define KP_TEST_SCHEDULES_SEAMS_H

#include "test/schedules/sched.h"

/* A store that others do not see yet. */
struct late_store {
    volatile void *to;
    size_t size;
    unsigned char bytes[16];
};
void seams_store_late(struct late_store *s, volatile void *to, const void *from,
                      size_t size);
/* The actor goes on with an operation of this kind. */
void seams_late_store(struct late_store *s, enum sched_kind kind);

void seams_reset(void);
bool seams_enabled(int actor, const struct pending *p);
/* What is a thread's own in the library: the actor's instead of ours, and back
 * again. */
void seams_swap_own(int actor);
/* The actor that runs; -1: none does. */
int sched_current(void);

#endif
