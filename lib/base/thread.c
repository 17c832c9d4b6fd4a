/* SPDX-License-Identifier: BSD-2-Clause */
/* thread.c - our own threads, and what is known of the calling one.
 *
 * A thread of ours has all signals blocked from its first instruction, but for
 * those that say that the thread itself has gone wrong: it inherits the mask
 * that its maker has while it makes it. */
#include "lib/base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/mem.h"

struct start {
    void *(*fn)(void *);
    void *arg;
    char name[16]; /* Linux keeps 15 bytes and the terminator */
};

static void *run(void *arg)
{
    struct start s = *(struct start *)arg;

    kp__free(arg);
    /* From inside: from outside it opens a file, which may fail. */
#if defined(__APPLE__)
    (void)pthread_setname_np(s.name);
#elif defined(__linux__)
    (void)pthread_setname_np(pthread_self(), s.name);
#endif
    return s.fn(s.arg);
}

/* A fault in a callback is the program's, and so is the handler that tells of
 * it: blocked, the process would die without a word. */
static void all_but_faults(sigset_t *out)
{
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGTRAP, SIGABRT, SIGSYS};

    (void)sigfillset(out);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        (void)sigdelset(out, faults[i]);
}

static int start(pthread_t *out, const pthread_attr_t *attr, const char *name,
                 void *(*fn)(void *), void *arg)
{
    struct start *s = kp__zalloc(sizeof(*s));
    size_t size = strlen(name);
    sigset_t masked, before;
    int err;

    if (s == NULL)
        return ENOMEM;
    s->fn = fn;
    s->arg = arg;
    memcpy(s->name, name, size < sizeof(s->name) ? size : sizeof(s->name) - 1);
    all_but_faults(&masked);
    (void)pthread_sigmask(SIG_SETMASK, &masked, &before);
    err = pthread_create(out, attr, run, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err != 0)
        kp__free(s);
    return err;
}

int kp__thread_start(pthread_t *out, const char *name, void *(*fn)(void *),
                     void *arg)
{
    pthread_t thread;
    int err = start(&thread, NULL, name, fn, arg);

    if (err == 0)
        *out = thread;
    return err;
}

int kp__thread_start_detached(const char *name, void *(*fn)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    int err = pthread_attr_init(&attr);

    if (err != 0)
        return err;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    err = start(&thread, &attr, name, fn, arg);
    (void)pthread_attr_destroy(&attr);
    return err;
}

_Thread_local KP_TLS_FAST bool kp__thread_in_callback;

/* -- Fork -- */

/* Relaxed throughout: written only in a child that has no other thread yet. */
static _Atomic uint32_t generation;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    /* Nothing of ours stands below this thread any more: it may wait. */
    kp__thread_in_callback = false;
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void watch(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

void kp__fork_watch(void)
{
    (void)pthread_once(&watch_once, watch);
}

uint32_t kp__fork_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

/* -- Callbacks -- */

void kp__set_in_callback(bool on)
{
    kp__thread_in_callback = on;
}
