/* SPDX-License-Identifier: BSD-2-Clause */
/* backoff.c - how long to wait before trying again.  Pure; any thread.
 * Kafka: ExponentialBackoff. */
#include "io_thread/backoff.h"

int64_t kp__backoff_ns(int64_t base_ns, int64_t max_ns, uint32_t attempts,
                       struct rng *r)
{
    int64_t exact = base_ns;
    double jittered;

    if (max_ns <= base_ns)
        return max_ns;
    while (attempts > 0 && exact > 0 && exact < max_ns) {
        exact = exact > max_ns / 2 ? max_ns : exact * 2;
        attempts--;
    }
    jittered = (double)exact * (0.8 + 0.4 * kp__rng_unit(r));
    return jittered >= (double)max_ns ? max_ns : (int64_t)jittered;
}
