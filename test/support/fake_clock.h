/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_clock.h - a clock that stands still until a test moves it.
 *
 *     struct fake_clock fake = {0};
 *     struct clock clock = fake_clock(&fake);
 *     fake.mono_ns += 5 * KP_NS_PER_MS;
 *
 * The words are atomic, so another thread may read the time. */
#ifndef KP_TEST_SUPPORT_FAKE_CLOCK_H
#define KP_TEST_SUPPORT_FAKE_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "lib/base/clock.h"

struct fake_clock {
    _Atomic int64_t mono_ns, wall_ms;
};

/* `fake` must outlive the clock. */
struct clock fake_clock(struct fake_clock *fake);

#endif
