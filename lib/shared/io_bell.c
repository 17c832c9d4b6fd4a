/* SPDX-License-Identifier: BSD-2-Clause */
/* io_bell.c - waking the I/O thread.  Any thread.
 *
 * Invariant: whoever published work that is due before the I/O thread wakes by
 * itself either sees that it sleeps, and rings, or is seen by its last look. */
#include "lib/shared/io_thread.h"

void kp__io_wake(struct io_bell *b, int64_t due_ns)
{
    /* seq_cst throughout: ordered after the caller's push, as the I/O thread's
     * store of the word is before its last look */
    if (atomic_load(&b->sleeps_until_ns) <= due_ns)
        return; /* awake, or awake in time */
    if (atomic_exchange(&b->sleeps_until_ns, 0) != 0)
        kp__wakeup_set(&b->wakeup);
}

void kp__io_look(struct io_bell *b)
{
    /* seq_cst: this is the push that kp__io_wake speaks of */
    atomic_store(&b->look, 1);
    kp__io_wake(b, 0);
}
