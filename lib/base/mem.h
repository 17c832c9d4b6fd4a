/* SPDX-License-Identifier: BSD-2-Clause */
/* mem.h - the one door to the allocator, so that tests can close it.
 *
 * Same contracts as malloc(3); a size of 0 gives a pointer that can be freed.
 * Counting and failing the n-th allocation is compiled in with KP_FAILMALLOC.
 * */
#ifndef KP_BASE_MEM_H
#define KP_BASE_MEM_H

#include <stddef.h>

void *kp__alloc(size_t size);
void *kp__zalloc(size_t size);                   /* zeroed */
void *kp__alloc_array(size_t count, size_t size); /* NULL on overflow */
void *kp__realloc(void *p, size_t size);
/* `align` a power of two and a multiple of sizeof(void *); freed by kp__free.
 * */
void *kp__alloc_aligned(size_t align, size_t size); /* zeroed */
void kp__free(void *p);                          /* NULL is ignored */
char *kp__strdup(const char *s);
char *kp__strndup(const char *s, size_t size); /* terminated */

#ifdef KP_FAILMALLOC
/* Make the nth allocation from now fail, and only that one: 1 is the next; -1:
 * none.  A later call replaces it. */
void kp__mem_fail_at(long nth);
/* The same, and every one after it, until either is called again. */
void kp__mem_fail_from(long nth);
/* Call fn in front of the next allocation, once: what another thread may do
 * meanwhile. */
void kp__mem_before_next(void (*fn)(void));
long kp__mem_calls(void);       /* allocations asked for so far */
long kp__mem_live(void);        /* not freed yet */
size_t kp__mem_asked_bytes(void); /* by all of those calls together */
#endif

#endif
