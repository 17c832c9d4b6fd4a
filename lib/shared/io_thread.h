/* SPDX-License-Identifier: BSD-2-Clause */
/* io_thread.h - start, wake and stop the I/O thread: all that lib/api sees of
 * it.
 *
 * The bell.  `sleeps_until_ns` is 0 while the I/O thread is awake, else the
 * time at which it will wake by itself.  The I/O thread stores it, looks at the
 * drain list and the ops once more, then polls; a sender pushes, then loads it,
 * and rings only if its work is due earlier.  All sequentially consistent, so
 * that one of the two sees the other. */
#ifndef KP_SHARED_IO_THREAD_H
#define KP_SHARED_IO_THREAD_H

#include <stdatomic.h>
#include <stdint.h>

#include "include/kp/kp.h"
#include "lib/base/wakeup.h"

struct io_bell {
    _Atomic int64_t sleeps_until_ns;
    _Atomic uint32_t look; /* something changed that is on no list */
    struct wakeup wakeup;
};

/* Work is due at due_ns (0: now).  Any thread, no lock needed or held. */
void kp__io_wake(struct io_bell *b, int64_t due_ns);
/* Somebody wants memory, which is on no list that is looked at before sleeping:
 * one more turn, from its beginning. */
void kp__io_look(struct io_bell *b);

/* Make the I/O thread's state and start it.  kp_err with text in `error`. */
kp_err kp__io_thread_start(struct kp_producer *p, kp_error *error);
/* The same without a thread, for tests that call kp__io_thread_run_once. */
struct io_env;
kp_err kp__io_thread_attach(struct kp_producer *p, const struct io_env *env,
                            kp_error *error);
/* Wait for the thread's end (after an OP_CLOSE was done) and free its state. */
void kp__io_thread_stop(struct kp_producer *p);
/* The caller is this producer's I/O thread (so it is in a callback). */
bool kp__io_thread_is_me(const struct kp_producer *p);
/* In a forked child: close its descriptors; the rest is the thread's, which is
 * not there. */
void kp__io_thread_abandon(struct kp_producer *p);

#endif
