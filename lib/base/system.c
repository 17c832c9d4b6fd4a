/* SPDX-License-Identifier: BSD-2-Clause */
/* system.c - mmap(2) and sysconf(3) behind small functions.  Any thread; keeps
 * nothing. */
#include "lib/base/system.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/mem.h"

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

size_t kp__page_size(void)
{
    long size = sysconf(_SC_PAGESIZE);

    return size > 0 ? (size_t)size : 4096;
}

static size_t whole_pages(size_t size)
{
    size_t page = kp__page_size();

    return size > SIZE_MAX - page ? 0 : (size + page - 1) / page * page;
}

#ifdef KP_FAILMALLOC
/* Mapped pages are memory too: the tests' door closes this way as well. */
static bool door_closed(void)
{
    void *probe = kp__alloc(1);

    kp__free(probe);
    return probe == NULL;
}
#else
#define door_closed() 0
#endif

void *kp__pages_map(size_t size)
{
    size_t bytes = whole_pages(size);
    void *p;

    if (bytes == 0 || door_closed())
        return NULL;
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p != MAP_FAILED ? p : NULL;
}

void kp__pages_unmap(void *p, size_t size)
{
    if (p != NULL)
        (void)munmap(p, whole_pages(size));
}

void kp__pages_discard(void *p, size_t size)
{
    uintptr_t page = kp__page_size();
    uintptr_t from = ((uintptr_t)p + page - 1) / page * page;
    uintptr_t to = ((uintptr_t)p + size) / page * page;

    if (from < to)
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

static void advise(void *p, size_t size, int advice)
{
    uintptr_t page = kp__page_size();
    uintptr_t from = (uintptr_t)p / page * page;

    /* a system that knows no such advice has nothing to follow it with */
    (void)madvise((void *)from, (uintptr_t)p + size - from, advice);
}

void kp__pages_want_large(void *p, size_t size)
{
#ifdef MADV_HUGEPAGE
    advise(p, size, MADV_HUGEPAGE);
#else
    (void)p;
    (void)size;
    (void)advise;
#endif
}

void kp__pages_want_small(void *p, size_t size)
{
#ifdef MADV_NOHUGEPAGE
    advise(p, size, MADV_NOHUGEPAGE);
#else
    (void)p;
    (void)size;
#endif
}

unsigned kp__processor_count(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (unsigned)n : 1;
}
