/* SPDX-License-Identifier: BSD-2-Clause */
/* backoff.h - exponential backoff with jitter, as Kafka's ExponentialBackoff:
 * base x 2^attempts x U(0.8, 1.2), at most max; constant without jitter when
 * max <= base.  Pure. */
#ifndef KP_IO_BACKOFF_H
#define KP_IO_BACKOFF_H

#include <stdint.h>

#include "lib/base/rand.h"

int64_t kp__backoff_ns(int64_t base_ns, int64_t max_ns, uint32_t attempts,
                       struct rng *r);

#endif
