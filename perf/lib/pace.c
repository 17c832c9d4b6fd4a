/* SPDX-License-Identifier: BSD-2-Clause */
/* pace.c - the schedule of a sending thread.  Each thread has its own. */
#include "perf/lib/pace.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

#define NS_PER_SEC INT64_C(1000000000)
#define NAP_NS INT64_C(100000000) /* how late `stop` may be noticed */

int64_t pace_now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

struct timespec pace_timespec(int64_t ns)
{
    struct timespec t;

    t.tv_sec = (time_t)(ns / NS_PER_SEC);
    t.tv_nsec = (long)(ns % NS_PER_SEC);
    return t;
}

void pace_precisely(void)
{
#ifdef __linux__
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
}

void pace_start(struct pace *p, double per_second, int64_t start_ns)
{
    p->interval_ns = per_second > 0 ? (double)NS_PER_SEC / per_second : 0;
    p->start_ns = start_ns;
    p->count = 0;
}

void pace_wait(const struct pace *p, const atomic_bool *stop)
{
    int64_t due = pace_due_ns(p), now = pace_now_ns();

    /* Relaxed: a request to stop orders nothing else. */
    while (now < due && !atomic_load_explicit(stop, memory_order_relaxed)) {
        int64_t until = due - now < NAP_NS ? due : now + NAP_NS;
        struct timespec t = pace_timespec(until);

        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        now = pace_now_ns();
    }
}
