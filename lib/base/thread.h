/* SPDX-License-Identifier: BSD-2-Clause */
/* thread.h - our own threads: named, all signals blocked but those that a fault
 * of their own raises. */
#ifndef KP_BASE_THREAD_H
#define KP_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* For a few bytes of a thread's own that every send looks at: without a call,
 * also in a shared library. */
#if defined(__GNUC__) && !defined(__APPLE__)
#define KP_TLS_FAST __attribute__((tls_model("initial-exec")))
#else
#define KP_TLS_FAST
#endif

/* Start fn(arg).  `name` is cut to the 15 bytes that Linux keeps.  Returns 0
 * or an errno value. */
int kp__thread_start(pthread_t *out, const char *name, void *(*fn)(void *),
                     void *arg);
int kp__thread_start_detached(const char *name, void *(*fn)(void *), void *arg);

/* No call of ours is a cancellation point: what may sleep or closes descriptors
 * stands between these two.  kp__cancel_on takes what kp__cancel_off returned.
 * */
static inline int kp__cancel_off(void)
{
    int state;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void kp__cancel_on(int state)
{
    (void)pthread_setcancelstate(state, NULL);
}

/* Fork generation: how many fork(2) calls lie between the first producer's
 * process and this one.  A producer remembers its own; a call that sees another
 * is in a child.  kp__fork_watch installs the handler once a process. */
void kp__fork_watch(void);
uint32_t kp__fork_generation(void);

/* True while this thread runs user code for us (callbacks of any producer); not
 * in a child that was forked in it. */
extern _Thread_local KP_TLS_FAST bool kp__thread_in_callback;
static inline bool kp__in_callback(void)
{
    return kp__thread_in_callback;
}
void kp__set_in_callback(bool on);

#endif
