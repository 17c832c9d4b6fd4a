/* SPDX-License-Identifier: BSD-2-Clause */
/* yields.h - included in front of every file of the TSAN build: now and then a
 * thread stands back just before an atomic operation, a lock or an unlock.
 *
 * Off unless KP_YIELDS is set in the environment, to a seed.  Which steps a
 * thread stands back at follows from the seed and from how many threads came
 * before it; what the others do meanwhile is the machine's affair.  TSAN sees
 * the same operations, with the same orders, as without it. */
#ifndef KP_TEST_SUPPORT_YIELDS_H
#define KP_TEST_SUPPORT_YIELDS_H

#pragma GCC system_header /* what the macros expand to is not warned about */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define YIELD_ONE_IN 32   /* steps, for sched_yield */
#define SLEEP_ONE_IN 1024 /* and for a sleep of up to SLEEP_MAX_NS */
#define SLEEP_MAX_NS 200000

/* 0: not begun; 1: off.  Each file has its own: nothing else to link. */
static _Thread_local uint64_t kp_yield_state;

__attribute__((unused, cold, noinline)) static void kp_yield_begin(void)
{
    const char *seed = getenv("KP_YIELDS");
    static int threads;
    uint64_t n;

    if (seed == NULL) {
        kp_yield_state = 1;
        return;
    }
    n = (uint64_t)__atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    kp_yield_state =
        ((strtoull(seed, NULL, 10) + n * 7919) * UINT64_C(0x9e3779b97f4a7c15)) |
        2;
}

__attribute__((unused, cold, noinline)) static void kp_yield_step(void)
{
    int saved = errno;

    if (kp_yield_state == 0)
        kp_yield_begin();
    if (kp_yield_state == 1)
        return;
    kp_yield_state ^= kp_yield_state << 13;
    kp_yield_state ^= kp_yield_state >> 7;
    kp_yield_state ^= kp_yield_state << 17;
    if (kp_yield_state < 2)
        kp_yield_state = 2;
    if ((kp_yield_state >> 20) % SLEEP_ONE_IN == 0) {
        struct timespec t = {0, (long)((kp_yield_state >> 32) % SLEEP_MAX_NS)};

        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    } else if ((kp_yield_state >> 20) % YIELD_ONE_IN == 0) {
        (void)sched_yield();
    }
    errno = saved;
}

static inline void kp_yield(void)
{
    if (kp_yield_state != 1)
        kp_yield_step();
}

/* A macro's own name is not expanded again. */
#define pthread_mutex_lock(m) (kp_yield(), pthread_mutex_lock(m))
#define pthread_mutex_trylock(m) (kp_yield(), pthread_mutex_trylock(m))
#define pthread_mutex_unlock(m) (kp_yield(), pthread_mutex_unlock(m))

#ifdef __clang__
#define KP_YIELD_OP(name, ...) (kp_yield(), __c11_atomic_##name(__VA_ARGS__))
#define KP_YIELD_CAS(p, e, v, yes, no) \
    (kp_yield(), __c11_atomic_compare_exchange_strong(p, e, v, yes, no))
#define KP_YIELD_LOAD(p, o) KP_YIELD_OP(load, p, o)
#define KP_YIELD_STORE(p, v, o) KP_YIELD_OP(store, p, v, o)
#define KP_YIELD_SWAP(p, v, o) KP_YIELD_OP(exchange, p, v, o)
#else
#define KP_YIELD_OP(name, ...) (kp_yield(), __atomic_##name(__VA_ARGS__))
#define KP_YIELD_CAS(p, e, v, yes, no) \
    (kp_yield(), __atomic_compare_exchange_n(p, e, v, false, yes, no))
#define KP_YIELD_LOAD(p, o) KP_YIELD_OP(load_n, p, o)
#define KP_YIELD_STORE(p, v, o) KP_YIELD_OP(store_n, p, v, o)
#define KP_YIELD_SWAP(p, v, o) KP_YIELD_OP(exchange_n, p, v, o)
#endif

#include "test/support/own_atomics.h"

#define atomic_load_explicit(p, o) KP_YIELD_LOAD(p, o)
#define atomic_store_explicit(p, v, o) KP_YIELD_STORE(p, v, o)
#define atomic_exchange_explicit(p, v, o) KP_YIELD_SWAP(p, v, o)
#define atomic_fetch_add_explicit(p, v, o) KP_YIELD_OP(fetch_add, p, v, o)
#define atomic_fetch_sub_explicit(p, v, o) KP_YIELD_OP(fetch_sub, p, v, o)
#define atomic_fetch_or_explicit(p, v, o) KP_YIELD_OP(fetch_or, p, v, o)
#define atomic_fetch_and_explicit(p, v, o) KP_YIELD_OP(fetch_and, p, v, o)
#define atomic_compare_exchange_weak_explicit(p, e, v, yes, no) \
    KP_YIELD_CAS(p, e, v, yes, no)
#define atomic_compare_exchange_strong_explicit(p, e, v, yes, no) \
    KP_YIELD_CAS(p, e, v, yes, no)

#define atomic_load(p) KP_YIELD_LOAD(p, __ATOMIC_SEQ_CST)
#define atomic_store(p, v) KP_YIELD_STORE(p, v, __ATOMIC_SEQ_CST)
#define atomic_exchange(p, v) KP_YIELD_SWAP(p, v, __ATOMIC_SEQ_CST)
#define atomic_fetch_add(p, v) KP_YIELD_OP(fetch_add, p, v, __ATOMIC_SEQ_CST)
#define atomic_fetch_sub(p, v) KP_YIELD_OP(fetch_sub, p, v, __ATOMIC_SEQ_CST)
#define atomic_fetch_or(p, v) KP_YIELD_OP(fetch_or, p, v, __ATOMIC_SEQ_CST)
#define atomic_fetch_and(p, v) KP_YIELD_OP(fetch_and, p, v, __ATOMIC_SEQ_CST)
#define atomic_compare_exchange_weak(p, e, v) \
    KP_YIELD_CAS(p, e, v, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define atomic_compare_exchange_strong(p, e, v) \
    KP_YIELD_CAS(p, e, v, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

#endif
