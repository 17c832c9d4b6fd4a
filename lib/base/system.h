/* SPDX-License-Identifier: BSD-2-Clause */
/* system.h - pages and processors, asked of the system directly.
 *
 * Pages are reserved as a whole and become resident when they are touched; they
 * can be given back one by one without losing the reservation.  Any thread. */
#ifndef KP_BASE_SYSTEM_H
#define KP_BASE_SYSTEM_H

#include <stddef.h>

size_t kp__page_size(void);
/* `size` bytes of zeroes (rounded up to pages), none of them resident yet.
 * NULL: no memory.  With KP_FAILMALLOC it fails like an allocation. */
void *kp__pages_map(size_t size);
void kp__pages_unmap(void *p, size_t size); /* the same size; NULL is ignored */
/* The pages wholly inside are no longer resident; they read as zeroes. */
void kp__pages_discard(void *p, size_t size);
/* Wishes: that these pages become resident in large ones where the system has
 * them to give, or in small ones only. */
void kp__pages_want_large(void *p, size_t size);
void kp__pages_want_small(void *p, size_t size);
/* Processors that are online, at least 1. */
unsigned kp__processor_count(void);

#endif
