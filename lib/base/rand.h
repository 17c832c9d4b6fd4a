/* SPDX-License-Identifier: BSD-2-Clause */
/* rand.h - a small fast generator; seeded, so that a run can be repeated.
 * Not for secrets. */
#ifndef KP_BASE_RAND_H
#define KP_BASE_RAND_H

#include <stdint.h>

struct rng {
    uint64_t s[4]; /* xoshiro256** */
};

void kp__rng_seed(struct rng *r, uint64_t seed);
uint64_t kp__rng_next(struct rng *r);
/* Uniform in [0, bound), bound > 0. */
uint32_t kp__rng_below(struct rng *r, uint32_t bound);
/* Uniform in [0, 1). */
double kp__rng_unit(struct rng *r);
/* A seed from the system: getrandom(2), else time and addresses. */
uint64_t kp__rng_system_seed(void);

#endif
