/* SPDX-License-Identifier: BSD-2-Clause */
/* wait.h - sleeping on a 32-bit word until someone changes it.
 *
 * futex(2) on Linux through the raw system call, so that no call is a
 * cancellation point; a table of mutexes and condition variables elsewhere or
 * with --disable-futex.  Spurious returns are allowed: the caller looks at its
 * word again. */
#ifndef KP_BASE_WAIT_H
#define KP_BASE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KP_NEVER INT64_MAX /* a deadline that never comes */

/* Sleep while *word == seen, until a wake-up, at most until deadline_ns
 * (CLOCK_MONOTONIC).  False: the deadline has passed.  EINTR never surfaces.
 * Many may share a word and be woken apart: a sleeper gives a mask, and only
 * wake-ups whose mask meets it count. */
bool kp__wait_masked(_Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns,
                     uint32_t mask);
/* Wake up to n sleepers on word.  Change the word first.  The word must still be
 * there: one in a sleeper's own frame may be gone as soon as it says go. */
void kp__wake_masked(_Atomic uint32_t *word, int n, uint32_t mask);

#define KP_WAKE_ANY UINT32_MAX /* meets every mask */
static inline bool kp__wait(_Atomic uint32_t *word, uint32_t seen,
                            int64_t deadline_ns)
{
    return kp__wait_masked(word, seen, deadline_ns, KP_WAKE_ANY);
}
static inline void kp__wake(_Atomic uint32_t *word, int n)
{
    kp__wake_masked(word, n, KP_WAKE_ANY);
}

/* What a call that cannot go on waits for: every waiting call of ours is a
 * `try` that never waits and fills one of these, plus kp__ticket_wait.  So a
 * simulator can park a caller here and run it again when it likes. */
struct ticket {
    _Atomic uint32_t *word; /* NULL: nothing to wait for, try again */
    uint32_t seen;
    int64_t deadline_ns;
    uint32_t mask; /* 0: KP_WAKE_ANY */
};
/* False: the deadline has passed. */
static inline bool kp__ticket_wait(const struct ticket *t)
{
    if (t->word == NULL)
        return true;
    return kp__wait_masked(t->word, t->seen, t->deadline_ns,
                           t->mask != 0 ? t->mask : KP_WAKE_ANY);
}

#endif
