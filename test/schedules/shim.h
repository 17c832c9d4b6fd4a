/* SPDX-License-Identifier: BSD-2-Clause */
/* shim.h - included in front of every file that is compiled for the schedule
 * explorer: each atomic operation and each lock becomes a point at which the
 * explorer may let another actor go on.
 *
 * The sources are the library's own; only what they call is another.  All runs
 * in one thread, so every operation is done in full before the next one
 * begins: memory orders weaker than sequentially consistent are not explored
 * (but see PLANT_LATE_STORE). */
#ifndef KP_TEST_SCHEDULES_SHIM_H
#define KP_TEST_SCHEDULES_SHIM_H

#pragma GCC system_header /* what the macros expand to is not warned about */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum sched_kind {
    SCHED_START,
    SCHED_DONE,
    SCHED_LOAD,
    SCHED_STORE,
    SCHED_RMW,
    SCHED_LOCK,
    SCHED_TRYLOCK,
    SCHED_UNLOCK,
    SCHED_WAIT,
    SCHED_RESUME, /* asleep; enabled once woken, or if it may be late */
    SCHED_WAKE,
    SCHED_SET_FD,
    SCHED_CLEAR_FD,
    SCHED_POLL_FD,   /* enabled while the fd is readable */
    SCHED_POLL_SOON, /* and at any moment, a number of times */
    SCHED_POLL_TIME, /* and if nobody else can go on */
    SCHED_JOIN       /* enabled when actor 0, the I/O thread, has ended */
};

/* The calling actor is about to do this; returns when it shall. */
void sched_point(enum sched_kind kind, const volatile void *at,
                 const char *file, int line);
/* A read-modify-write is to come apart: a planted fault. */
bool sched_splits(void);
/* Put `size` bytes at `to`, now or, if it is planted, after the next load. */
void sched_store(volatile void *to, const void *from, size_t size);

/* Locks are taken at one point each, by the functions of seams.c. */
#define KP_MUTEX_SEAM

int sched_join(const char *file, int line);
#define pthread_join(thread, result) \
    ((void)(thread), (void)(result), sched_join(__FILE__, __LINE__))

#ifdef __clang__
#define SCHED_GET(p) __c11_atomic_load(p, __ATOMIC_SEQ_CST)
#define SCHED_PUT(p, v) __c11_atomic_store(p, v, __ATOMIC_SEQ_CST)
#define SCHED_ADD(p, v) __c11_atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define SCHED_SUB(p, v) __c11_atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST)
#define SCHED_OR(p, v) __c11_atomic_fetch_or(p, v, __ATOMIC_SEQ_CST)
#define SCHED_AND(p, v) __c11_atomic_fetch_and(p, v, __ATOMIC_SEQ_CST)
#define SCHED_SWAP(p, v) __c11_atomic_exchange(p, v, __ATOMIC_SEQ_CST)
#define SCHED_CAS(p, e, v) \
    __c11_atomic_compare_exchange_strong(p, e, v, __ATOMIC_SEQ_CST, \
                                         __ATOMIC_SEQ_CST)
#else
#define SCHED_GET(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define SCHED_PUT(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define SCHED_ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define SCHED_SUB(p, v) __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST)
#define SCHED_OR(p, v) __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST)
#define SCHED_AND(p, v) __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST)
#define SCHED_SWAP(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define SCHED_CAS(p, e, v) \
    __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST, \
                                __ATOMIC_SEQ_CST)
#endif

#define SCHED_AT(kind, p) sched_point(kind, p, __FILE__, __LINE__)
/* `whole` at one point; if it comes apart, `change` of the old value at a
 * second one. */
#define SCHED_RMW_OF(p, whole, change) \
    __extension__({ \
        SCHED_AT(SCHED_RMW, p); \
        __typeof__(SCHED_GET(p)) sched_old; \
        if (sched_splits()) { \
            sched_old = SCHED_GET(p); \
            SCHED_AT(SCHED_RMW, p); \
            SCHED_PUT(p, change); \
        } else { \
            sched_old = whole; \
        } \
        sched_old; \
    })

#include "test/support/own_atomics.h"

#define atomic_load(p) (SCHED_AT(SCHED_LOAD, p), SCHED_GET(p))
#define atomic_store(p, v) \
    __extension__({ \
        __typeof__(SCHED_GET(p)) sched_new = (v); \
        SCHED_AT(SCHED_STORE, p); \
        sched_store(p, &sched_new, sizeof sched_new); \
    })
#define atomic_exchange(p, v) SCHED_RMW_OF(p, SCHED_SWAP(p, v), v)
#define atomic_fetch_add(p, v) SCHED_RMW_OF(p, SCHED_ADD(p, v), sched_old + (v))
#define atomic_fetch_sub(p, v) SCHED_RMW_OF(p, SCHED_SUB(p, v), sched_old - (v))
#define atomic_fetch_or(p, v) SCHED_RMW_OF(p, SCHED_OR(p, v), sched_old | (v))
#define atomic_fetch_and(p, v) SCHED_RMW_OF(p, SCHED_AND(p, v), sched_old &(v))
#define atomic_compare_exchange_strong(p, e, v) \
    (SCHED_AT(SCHED_RMW, p), SCHED_CAS(p, e, v))
#define atomic_compare_exchange_weak atomic_compare_exchange_strong

#define atomic_load_explicit(p, order) atomic_load(p)
#define atomic_store_explicit(p, v, order) atomic_store(p, v)
#define atomic_exchange_explicit(p, v, order) atomic_exchange(p, v)
#define atomic_fetch_add_explicit(p, v, order) atomic_fetch_add(p, v)
#define atomic_fetch_sub_explicit(p, v, order) atomic_fetch_sub(p, v)
#define atomic_fetch_or_explicit(p, v, order) atomic_fetch_or(p, v)
#define atomic_fetch_and_explicit(p, v, order) atomic_fetch_and(p, v)
#define atomic_compare_exchange_strong_explicit(p, e, v, yes, no) \
    atomic_compare_exchange_strong(p, e, v)
#define atomic_compare_exchange_weak_explicit(p, e, v, yes, no) \
    atomic_compare_exchange_strong(p, e, v)

#endif
