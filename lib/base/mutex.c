/* SPDX-License-Identifier: BSD-2-Clause */
/* mutex.c - making and unmaking locks, and the debug builds' rule that a thread
 * holds at most one of them.  Any thread. */
#include "lib/base/mutex.h"

#include <stddef.h>

/* glibc has the type as an enumerator under this feature macro only. */
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
#define LOCK_TYPE PTHREAD_MUTEX_ADAPTIVE_NP
#else
#define LOCK_TYPE PTHREAD_MUTEX_DEFAULT
#endif

void kp__mutex_init(struct mutex *m)
{
    pthread_mutexattr_t attr;

    /* Neither can fail: the type is a valid one, and glibc allocates nothing.
     * */
    (void)pthread_mutexattr_init(&attr);
    (void)pthread_mutexattr_settype(&attr, LOCK_TYPE);
    (void)pthread_mutex_init(&m->m, &attr);
    (void)pthread_mutexattr_destroy(&attr);
}

void kp__mutex_fini(struct mutex *m)
{
    (void)pthread_mutex_destroy(&m->m);
}

#ifdef KP_DEBUG
static _Thread_local const struct mutex *held;

void kp__mutex_note_locked(const struct mutex *m)
{
    held = m;
}

void kp__mutex_note_unlocked(const struct mutex *m)
{
    kp__mutex_check_held(m);
    held = NULL;
}

void kp__mutex_check_held(const struct mutex *m)
{
    KP_CHECK(held == m);
}

void kp__mutex_check_none(void)
{
    KP_CHECK(held == NULL);
}
#endif
