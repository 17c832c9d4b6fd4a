/* SPDX-License-Identifier: BSD-2-Clause */
/* wait.c - sleeping on a word.  Any thread.
 *
 * No wake-up is lost: the word is compared with `seen` after the sleeper is
 * known to whoever wakes (inside the kernel, or under the bucket's mutex), and
 * who wakes has changed the word before. */
#include "lib/base/wait.h"

#include <stddef.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

static struct timespec to_timespec(int64_t ns)
{
    struct timespec t;

    if (ns < 0)
        ns = 0;
    t.tv_sec = (time_t)(ns / KP_NS_PER_SEC);
    t.tv_nsec = (long)(ns % KP_NS_PER_SEC);
    return t;
}

#ifdef HAVE_FUTEX

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where long has 32 bits and time_t 64, the plain call reads another layout. */
#ifdef SYS_futex_time64
#define FUTEX_CALL \
    (sizeof(time_t) > sizeof(long) ? SYS_futex_time64 : SYS_futex)
#else
#define FUTEX_CALL SYS_futex
#endif

bool kp__wait_masked(_Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns,
                     uint32_t mask)
{
    struct timespec until = to_timespec(deadline_ns);
    int saved = errno;
    bool in_time = true;

    kp__mutex_check_none();
    /* WAIT_BITSET, as plain WAIT takes a duration and this an instant. */
    if (syscall(FUTEX_CALL, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen,
                deadline_ns == KP_NEVER ? NULL : &until, NULL, mask) != 0)
        in_time = errno != ETIMEDOUT;
    errno = saved;
    return in_time;
}

void kp__wake_masked(_Atomic uint32_t *word, int n, uint32_t mask)
{
    int saved = errno;

    (void)syscall(SYS_futex, word, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, n,
                  NULL, NULL, mask);
    errno = saved;
}

#else

#include <errno.h>
#include <pthread.h>

#include "lib/base/thread.h"

/* Words share buckets by address.  A wake-up wakes the whole bucket: `n` is a
 * saving, never a promise, and sleepers look at their words again. */
#define BUCKETS 64

static struct bucket {
    pthread_mutex_t lock;
    pthread_cond_t changed;
} buckets[BUCKETS];
static pthread_once_t buckets_once = PTHREAD_ONCE_INIT;

static void make_buckets(void)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    for (int i = 0; i < BUCKETS; i++) {
        (void)pthread_mutex_init(&buckets[i].lock, NULL);
        (void)pthread_cond_init(&buckets[i].changed, &attr);
    }
    (void)pthread_condattr_destroy(&attr);
}

static struct bucket *bucket_of(const _Atomic uint32_t *word)
{
    uint64_t mixed = (uint64_t)(uintptr_t)word * UINT64_C(0x9e3779b97f4a7c15);

    (void)pthread_once(&buckets_once, make_buckets);
    return &buckets[mixed >> 58];
}

bool kp__wait_masked(_Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns,
                     uint32_t mask)
{
    struct bucket *b = bucket_of(word);
    struct timespec until = to_timespec(deadline_ns);
    /* A condition wait is a cancellation point, and none of our calls is. */
    int cancel_state = kp__cancel_off(), result = 0;

    (void)mask;
    kp__mutex_check_none();
    (void)pthread_mutex_lock(&b->lock);
    /* Relaxed: the mutex orders this with the wake that follows a change; the
     * caller reads the word again with the order it needs. */
    if (atomic_load_explicit(word, memory_order_relaxed) == seen)
        result = deadline_ns == KP_NEVER
                     ? pthread_cond_wait(&b->changed, &b->lock)
                     : pthread_cond_timedwait(&b->changed, &b->lock, &until);
    (void)pthread_mutex_unlock(&b->lock);
    kp__cancel_on(cancel_state);
    return result != ETIMEDOUT;
}

void kp__wake_masked(_Atomic uint32_t *word, int n, uint32_t mask)
{
    struct bucket *b = bucket_of(word);

    (void)n;
    (void)mask;
    (void)pthread_mutex_lock(&b->lock);
    (void)pthread_cond_broadcast(&b->changed);
    (void)pthread_mutex_unlock(&b->lock);
}

#endif
