/* SPDX-License-Identifier: BSD-2-Clause */
/* mem.c - the one door to the allocator.  Any thread.
 *
 * With KP_FAILMALLOC every allocation is counted, and a test may make one of
 * them fail; the counters then equal what the callers saw. */
#include "lib/base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef KP_FAILMALLOC
#include <stdatomic.h>
#include <stdbool.h>

typedef void void_fn(void);

/* Counters of tests; sequentially consistent, as nobody measures them. */
static atomic_long calls, live;
static atomic_size_t asked_bytes;
static atomic_long until_failure = -1; /* -1: never */
static atomic_bool fails_on;           /* after the first failure */
static _Atomic(void_fn *) before_next;

static void fail(long nth, bool on)
{
    atomic_store(&until_failure, -1);
    atomic_store(&fails_on, on);
    atomic_store(&until_failure, nth > 0 ? nth : -1);
}

void kp__mem_fail_at(long nth)
{
    fail(nth, false);
}

void kp__mem_fail_from(long nth)
{
    fail(nth, nth > 0);
}

void kp__mem_before_next(void (*fn)(void))
{
    atomic_store(&before_next, fn);
}

long kp__mem_calls(void)
{
    return atomic_load(&calls);
}

long kp__mem_live(void)
{
    return atomic_load(&live);
}

size_t kp__mem_asked_bytes(void)
{
    return atomic_load(&asked_bytes);
}

static bool must_fail(size_t size)
{
    long left = atomic_load(&until_failure);
    void_fn *fn = atomic_exchange(&before_next, NULL);

    if (fn != NULL)
        fn();
    atomic_fetch_add(&calls, 1);
    atomic_fetch_add(&asked_bytes, size);
    while (left > 0) {
        long next = left > 1 ? left - 1 : atomic_load(&fails_on) ? 1 : -1;

        if (atomic_compare_exchange_weak(&until_failure, &left, next))
            return left == 1;
    }
    return false;
}

static void *counted(void *p)
{
    if (p != NULL)
        atomic_fetch_add(&live, 1);
    return p;
}

static void note_freed(void)
{
    atomic_fetch_sub(&live, 1);
}
#else
#define must_fail(size) 0
#define counted(p) (p)
#define note_freed() ((void)0)
#endif

/* No object can be larger than this, and sanitizers take such a request for a
 * bug, while ours may come from a length that a peer made up. */
static int too_large(size_t size)
{
    return size > PTRDIFF_MAX;
}

/* malloc(0) may be NULL, which our callers would take for a failure. */
static size_t at_least_one(size_t size)
{
    return size != 0 ? size : 1;
}

void *kp__alloc(size_t size)
{
    if (too_large(size) || must_fail(size))
        return NULL;
    return counted(malloc(at_least_one(size)));
}

void *kp__zalloc(size_t size)
{
    if (too_large(size) || must_fail(size))
        return NULL;
    return counted(calloc(1, at_least_one(size)));
}

void *kp__alloc_array(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    return kp__alloc(count * size);
}

void *kp__realloc(void *p, size_t size)
{
    if (p == NULL)
        return kp__alloc(size);
    if (too_large(size) || must_fail(size))
        return NULL;
    return realloc(p, at_least_one(size));
}

void *kp__alloc_aligned(size_t align, size_t size)
{
    void *p = NULL;

    if (too_large(size) || must_fail(size) ||
        posix_memalign(&p, align, at_least_one(size)) != 0)
        return NULL;
    memset(p, 0, size);
    return counted(p);
}

void kp__free(void *p)
{
    if (p == NULL)
        return;
    note_freed();
    free(p);
}

char *kp__strdup(const char *s)
{
    return kp__strndup(s, strlen(s));
}

char *kp__strndup(const char *s, size_t size)
{
    char *copy = size < SIZE_MAX ? kp__alloc(size + 1) : NULL;

    if (copy == NULL)
        return NULL;
    if (size != 0)
        memcpy(copy, s, size);
    copy[size] = '\0';
    return copy;
}
