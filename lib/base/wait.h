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
#include <stdint.h>

#define KP_NEVER INT64_MAX /* a deadline that never comes */

/* Sleep while *word == seen, until kp__wake, at most until deadline_ns
 * (CLOCK_MONOTONIC).  False: the deadline has passed.  EINTR never surfaces. */
bool kp__wait(_Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns);
/* Wake up to n sleepers on word.  Change the word first.  The word must still be
 * there: one in a sleeper's own frame may be gone as soon as it says go. */
void kp__wake(_Atomic uint32_t *word, int n);
/* Many may share a word and be woken apart: a sleeper gives a mask, and only
 * wake-ups whose mask meets it count.  KP_WAKE_ANY meets all. */
#define KP_WAKE_ANY UINT32_MAX
bool kp__wait_masked(_Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns,
                     uint32_t mask);
void kp__wake_masked(_Atomic uint32_t *word, int n, uint32_t mask);

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
bool kp__ticket_wait(const struct ticket *t);

#endif
