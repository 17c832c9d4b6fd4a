/* SPDX-License-Identifier: BSD-2-Clause */
/* mutex.c - a lock that is wanted by several.  Any thread.
 *
 * Invariant: whoever sleeps has made the state MUTEX_WANTED before, and whoever
 * was woken takes the lock as MUTEX_WANTED, as others may sleep still; so the
 * one who lets go of it wakes one as long as anybody sleeps.  U. Drepper,
 * "Futexes Are Tricky", the third mutex. */
#include "lib/base/mutex.h"

#include "lib/base/wait.h"

/* A record is written in less than these take; a holder that has not let go by
 * then has lost its processor, and to look for longer keeps it from having it
 * back: eight threads into one partition took 140 ns of CPU a record with 3, 160
 * with 8, 300 with 25, 360 with 100, on two processors. */
#define SPINS 4

void kp__mutex_init(struct mutex *m)
{
    atomic_init(&m->state, MUTEX_FREE);
}

void kp__mutex_fini(struct mutex *m)
{
    /* relaxed: nobody else may know of it any more */
    KP_CHECK(atomic_load_explicit(&m->state, memory_order_relaxed) ==
             MUTEX_FREE);
}

#ifndef KP_MUTEX_SEAM
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Take it if it is let go of within so many looks, with more and more pauses
 * between them.  Where others sleep for it, too: once nobody who finds sleepers
 * looks any more, each who comes sleeps and has to be woken, for ever. */
static bool look(struct mutex *m, int looks, int pauses_max)
{
    int pauses = 1;

    while (looks-- > 0) {
        /* relaxed: only looked at, so that the line stays with its owner */
        if (atomic_load_explicit(&m->state, memory_order_relaxed) ==
                MUTEX_FREE &&
            kp__mutex_try_take(m))
            return true;
        for (int k = 0; k < pauses; k++)
            relax();
        if (pauses < pauses_max)
            pauses *= 2;
    }
    return false;
}

static void sleep_for(struct mutex *m)
{
    /* acquire: as in kp__mutex_try_take */
    while (atomic_exchange_explicit(&m->state, MUTEX_WANTED,
                                    memory_order_acquire) != MUTEX_FREE)
        (void)kp__wait(&m->state, MUTEX_WANTED, KP_NEVER);
}

void kp__mutex_take_slow(struct mutex *m)
{
    if (!look(m, SPINS, 1))
        sleep_for(m);
}

void kp__mutex_wake(struct mutex *m)
{
    kp__wake(&m->state, 1);
}

/* Many look at once, so ever less often, up to some 10 us in all where a pause
 * takes a twentieth of one: that much two switches and a wake-up cost.  Not
 * sched_yield after that: the scheduler takes a whole slice off who yields, and
 * where dozens are to run that is a tenth of a second. */
#define LOOKS 30
#define PAUSES_MAX 8

void kp__mutex_take_patiently(struct mutex *m)
{
    if (!look(m, LOOKS, PAUSES_MAX))
        sleep_for(m);
}
#endif
