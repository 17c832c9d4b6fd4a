/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_clock.c - a clock that stands still until a test moves it. */
#include "test/support/fake_clock.h"

static int64_t mono_ns(void *arg)
{
    return ((struct fake_clock *)arg)->mono_ns;
}

static int64_t wall_ms(void *arg)
{
    return ((struct fake_clock *)arg)->wall_ms;
}

struct clock fake_clock(struct fake_clock *fake)
{
    return (struct clock){
        .mono_ns = mono_ns,
        .mono_coarse_ns = mono_ns,
        .wall_ms = wall_ms,
        .arg = fake,
    };
}
