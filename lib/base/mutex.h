/* SPDX-License-Identifier: BSD-2-Clause */
/* mutex.h - a lock that spins briefly before it sleeps.
 *
 * glibc's adaptive mutex where there is one: under contention on short critical
 * sections it was measured at a half to a fifth of the default one's cost.  A
 * thread holds at most one of these at a time; debug builds assert it. */
#ifndef KP_BASE_MUTEX_H
#define KP_BASE_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

#include "lib/base/check.h"

struct mutex {
    pthread_mutex_t m;
};

void kp__mutex_init(struct mutex *m);
void kp__mutex_fini(struct mutex *m);

#ifdef KP_DEBUG
void kp__mutex_note_locked(const struct mutex *m);
void kp__mutex_note_unlocked(const struct mutex *m);
/* Aborts unless the calling thread holds m. */
void kp__mutex_check_held(const struct mutex *m);
/* Aborts if the calling thread holds any. */
void kp__mutex_check_none(void);
#else
static inline void kp__mutex_note_locked(const struct mutex *m) { (void)m; }
static inline void kp__mutex_note_unlocked(const struct mutex *m) { (void)m; }
static inline void kp__mutex_check_held(const struct mutex *m) { (void)m; }
static inline void kp__mutex_check_none(void) {}
#endif

static inline void kp__mutex_lock(struct mutex *m)
{
    kp__mutex_check_none();
    (void)pthread_mutex_lock(&m->m);
    kp__mutex_note_locked(m);
}

/* True if the lock was taken. */
static inline bool kp__mutex_trylock(struct mutex *m)
{
    kp__mutex_check_none();
    if (pthread_mutex_trylock(&m->m) != 0)
        return false;
    kp__mutex_note_locked(m);
    return true;
}

static inline void kp__mutex_unlock(struct mutex *m)
{
    kp__mutex_note_unlocked(m);
    (void)pthread_mutex_unlock(&m->m);
}

#endif
