/* SPDX-License-Identifier: BSD-2-Clause */
/* pace.h - time, and when a thread's next record is due. */
#ifndef KP_PERF_PACE_H
#define KP_PERF_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct pace {
    double interval_ns; /* between two records of this thread; 0: no limit */
    int64_t start_ns;
    uint64_t count; /* records due before the next one */
};

int64_t pace_now_ns(void);
struct timespec pace_timespec(int64_t ns);
/* Let the calling thread's sleeps end on time, not up to 50 us late. */
void pace_precisely(void);

/* Begin a schedule of `per_second` records (0: no limit) from start_ns on. */
void pace_start(struct pace *p, double per_second, int64_t start_ns);
/* When the next record is due. */
static inline int64_t pace_due_ns(const struct pace *p)
{
    return p->start_ns + (int64_t)((double)p->count * p->interval_ns);
}
/* Sleep until the next record is due, or *stop.  Behind schedule it returns at
 * once, so that what was missed is caught up. */
void pace_wait(const struct pace *p, const atomic_bool *stop);

#endif
