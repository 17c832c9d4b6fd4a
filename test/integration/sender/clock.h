/* SPDX-License-Identifier: BSD-2-Clause */
/* clock.h - the two clocks of the sending programs. */
#ifndef KP_TEST_INTEGRATION_CLOCK_H
#define KP_TEST_INTEGRATION_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

static inline int64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static inline int64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / NS_PER_MS;
}

static inline void sleep_ns(int64_t ns)
{
    struct timespec t = {ns / NS_PER_S, ns % NS_PER_S};
    nanosleep(&t, NULL);
}

#endif
