/* SPDX-License-Identifier: BSD-2-Clause */
/* clock.c - the system's clocks, and arithmetic that cannot overflow.
 * Any thread. */
#include "lib/base/clock.h"

#include <stddef.h>
#include <time.h>

#include "lib/base/wait.h"

/* About 31 years: longer than any process, and far from overflow when added to
 * any instant. */
#define LONGEST_NS (INT64_C(1000000000) * KP_NS_PER_SEC)

#ifndef CLOCK_MONOTONIC_COARSE
#define CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC
#endif
#ifndef CLOCK_REALTIME_COARSE
#define CLOCK_REALTIME_COARSE CLOCK_REALTIME
#endif

/* A system or a sandbox may lack the coarse clocks; it has the others. */
static int64_t read_ns(clockid_t id, clockid_t other)
{
    struct timespec t = {0};

    if (clock_gettime(id, &t) != 0)
        (void)clock_gettime(other, &t);
    return (int64_t)t.tv_sec * KP_NS_PER_SEC + t.tv_nsec;
}

static int64_t system_mono_ns(void *arg)
{
    (void)arg;
    return read_ns(CLOCK_MONOTONIC, CLOCK_MONOTONIC);
}

static int64_t system_mono_coarse_ns(void *arg)
{
    (void)arg;
    return read_ns(CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC);
}

static int64_t system_wall_ms(void *arg)
{
    (void)arg;
    return read_ns(CLOCK_REALTIME_COARSE, CLOCK_REALTIME) / KP_NS_PER_MS;
}

const struct clock kp__system_clock = {
    .mono_ns = system_mono_ns,
    .mono_coarse_ns = system_mono_coarse_ns,
    .wall_ms = system_wall_ms,
    .arg = NULL,
};

int64_t kp__ms_to_ns(int64_t ms)
{
    if (ms > LONGEST_NS / KP_NS_PER_MS)
        return LONGEST_NS;
    if (ms < -LONGEST_NS / KP_NS_PER_MS)
        return -LONGEST_NS;
    return ms * KP_NS_PER_MS;
}

int64_t kp__ns_to_ms_up(int64_t ns)
{
    return ns / KP_NS_PER_MS + (ns % KP_NS_PER_MS > 0);
}

int64_t kp__deadline_ns(int64_t now_ns, int64_t timeout_ms)
{
    if (timeout_ms < 0)
        return KP_NEVER;
    return kp__ns_add(now_ns, kp__ms_to_ns(timeout_ms));
}

int64_t kp__ns_add(int64_t a_ns, int64_t b_ns)
{
    if (a_ns == KP_NEVER || b_ns == KP_NEVER)
        return KP_NEVER;
    if (b_ns > 0 && a_ns > KP_NEVER - b_ns)
        return KP_NEVER;
    if (b_ns < 0 && a_ns < INT64_MIN - b_ns)
        return INT64_MIN;
    return a_ns + b_ns;
}
