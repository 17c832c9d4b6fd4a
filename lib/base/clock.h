/* SPDX-License-Identifier: BSD-2-Clause */
/* clock.h - time, as values that a test can supply.
 *
 * Durations and instants inside the library are int64_t nanoseconds of
 * CLOCK_MONOTONIC (names end in _ns); record timestamps are milliseconds since
 * 1970 (names end in _ms). */
#ifndef KP_BASE_CLOCK_H
#define KP_BASE_CLOCK_H

#include <stdint.h>

#define KP_NS_PER_MS INT64_C(1000000)
#define KP_NS_PER_SEC INT64_C(1000000000)

struct clock {
    int64_t (*mono_ns)(void *arg);        /* exact */
    int64_t (*mono_coarse_ns)(void *arg); /* cheap, a tick (4 ms) behind */
    int64_t (*wall_ms)(void *arg);        /* cheap, a tick behind */
    void *arg;
};

extern const struct clock kp__system_clock;

static inline int64_t kp__now_ns(const struct clock *c)
{
    return c->mono_ns(c->arg);
}

/* ms to ns without overflow: anything past about 31 years stays there. */
int64_t kp__ms_to_ns(int64_t ms);
/* Rounded up, so that a sleep of that many ms is not too short. */
int64_t kp__ns_to_ms_up(int64_t ns);
/* now + timeout; KP_NEVER for a negative timeout_ms (KP_FOREVER). */
int64_t kp__deadline_ns(int64_t now_ns, int64_t timeout_ms);
/* a + b, stopping at KP_NEVER. */
int64_t kp__ns_add(int64_t a_ns, int64_t b_ns);

#endif
