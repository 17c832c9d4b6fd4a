/* SPDX-License-Identifier: BSD-2-Clause */
/* rand.c - xoshiro256** (public domain, Blackman and Vigna), seeded through
 * splitmix64 so that no seed gives the all-zero state.  One thread each. */
#include "lib/base/rand.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/thread.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void kp__rng_seed(struct rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix(&seed);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t kp__rng_next(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint32_t kp__rng_below(struct rng *r, uint32_t bound)
{
    /* Lemire: the top word of the product is the answer; the low words below
     * 2^32 mod bound would come once too often. */
    uint64_t product = (kp__rng_next(r) >> 32) * bound;

    if ((uint32_t)product < bound) {
        uint32_t surplus = (uint32_t)(-bound) % bound;

        while ((uint32_t)product < surplus)
            product = (kp__rng_next(r) >> 32) * bound;
    }
    return (uint32_t)(product >> 32);
}

double kp__rng_unit(struct rng *r)
{
    return (double)(kp__rng_next(r) >> 11) * 0x1.0p-53;
}

/* Different in each process and at each call, though not hard to guess. */
static uint64_t poor_seed(void)
{
    static _Atomic uint64_t counter;
    struct timespec now;
    uint64_t state;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    state = (uint64_t)now.tv_sec * UINT64_C(1000000007);
    state ^= (uint64_t)now.tv_nsec << 20;
    state ^= (uint64_t)getpid() << 44;
    state ^= (uint64_t)(uintptr_t)&now;
    /* Relaxed: only distinct values are wanted. */
    state += atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed) << 32;
    return splitmix(&state);
}

uint64_t kp__rng_system_seed(void)
{
    uint64_t seed;
    int saved = errno, cancel_state = kp__cancel_off();
    bool got;

    /* Early in a machine's life the pool may be empty: never wait for it. */
    got = getrandom(&seed, sizeof(seed), GRND_NONBLOCK) ==
          (ssize_t)sizeof(seed);
    kp__cancel_on(cancel_state);
    errno = saved;
    return got ? seed : poor_seed();
}
