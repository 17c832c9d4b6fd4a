/* SPDX-License-Identifier: BSD-2-Clause */
/* mutex.h - a lock of one word that spins briefly before it sleeps.
 *
 * A record takes one of these and lets it go, so both are inline: half of what
 * the C library's cost a send, whose mutex has kinds and owners.  A thread holds
 * at most one at a time; debug builds assert it. */
#ifndef KP_BASE_MUTEX_H
#define KP_BASE_MUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/check.h"

enum mutex_state {
    MUTEX_FREE,
    MUTEX_TAKEN,
    MUTEX_WANTED /* taken, and perhaps slept for */
};

struct mutex {
    _Atomic uint32_t state;
};

void kp__mutex_init(struct mutex *m);
void kp__mutex_fini(struct mutex *m); /* nobody may hold it */

#ifdef KP_DEBUG
void kp__mutex_note_locked(const struct mutex *m);
void kp__mutex_note_unlocked(const struct mutex *m);
/* Aborts unless the calling thread holds m. */
void kp__mutex_check_held(const struct mutex *m);
/* Aborts if the calling thread holds any. */
void kp__mutex_check_none(void);
/* A test says of each lock that is tried whether it is to be found taken, as
 * one that another thread holds is; fn NULL: as it is. */
void kp__mutex_doubt(bool (*fn)(void *arg), void *arg);
bool kp__mutex_seems_taken(void);
#else
static inline void kp__mutex_note_locked(const struct mutex *m) { (void)m; }
static inline void kp__mutex_note_unlocked(const struct mutex *m) { (void)m; }
static inline void kp__mutex_check_held(const struct mutex *m) { (void)m; }
static inline void kp__mutex_check_none(void) {}
static inline bool kp__mutex_seems_taken(void) { return false; }
#endif

/* -- The word, without the rule of one lock -- */

#ifdef KP_MUTEX_SEAM /* the schedule explorer has its own */
void kp__mutex_take(struct mutex *m);
bool kp__mutex_try_take(struct mutex *m);
void kp__mutex_drop(struct mutex *m);
#define kp__mutex_take_patiently kp__mutex_take
#else
void kp__mutex_take_patiently(struct mutex *m);
void kp__mutex_take_slow(struct mutex *m);
void kp__mutex_wake(struct mutex *m);

static inline bool kp__mutex_try_take(struct mutex *m)
{
    uint32_t seen = MUTEX_FREE;

    /* acquire: pairs with the release of who held it; relaxed: not taken, so
     * nothing is read that it guards */
    return atomic_compare_exchange_strong_explicit(
        &m->state, &seen, MUTEX_TAKEN, memory_order_acquire,
        memory_order_relaxed);
}

static inline void kp__mutex_take(struct mutex *m)
{
    if (KP_UNLIKELY(!kp__mutex_try_take(m)))
        kp__mutex_take_slow(m);
}

static inline void kp__mutex_drop(struct mutex *m)
{
    /* release: what was written under the lock is there for who takes it next
     */
    if (KP_UNLIKELY(atomic_exchange_explicit(&m->state, MUTEX_FREE,
                                             memory_order_release) ==
                    MUTEX_WANTED))
        kp__mutex_wake(m);
}
#endif

/* -- The lock -- */

static inline void kp__mutex_lock(struct mutex *m)
{
    kp__mutex_check_none();
    kp__mutex_take(m);
    kp__mutex_note_locked(m);
}

/* For a lock that many take at once, at times for several microseconds.  Once a
 * thread sleeps on it each one that comes by does, and each that goes wakes
 * another: so this one looks for longer before it sleeps. */
static inline void kp__mutex_lock_patiently(struct mutex *m)
{
    kp__mutex_check_none();
    kp__mutex_take_patiently(m);
    kp__mutex_note_locked(m);
}

/* True if the lock was taken. */
static inline bool kp__mutex_trylock(struct mutex *m)
{
    kp__mutex_check_none();
    if (kp__mutex_seems_taken() || !kp__mutex_try_take(m))
        return false;
    kp__mutex_note_locked(m);
    return true;
}

static inline void kp__mutex_unlock(struct mutex *m)
{
    kp__mutex_note_unlocked(m);
    kp__mutex_drop(m);
}

#endif
