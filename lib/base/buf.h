/* SPDX-License-Identifier: BSD-2-Clause */
/* buf.h - a growable byte buffer.  One thread.
 *
 * Failure is sticky: after an allocation failed, every later call does nothing
 * and kp__buf_failed says so, so that a writer checks once at the end. */
#ifndef KP_BASE_BUF_H
#define KP_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/check.h"

struct buf {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
};

void kp__buf_init(struct buf *b); /* allocates nothing */
void kp__buf_fini(struct buf *b);
void kp__buf_clear(struct buf *b); /* keeps the memory, forgives a failure */
/* Room for n more bytes at data + size; NULL if there is none to be had. */
uint8_t *kp__buf_reserve(struct buf *b, size_t n);
void kp__buf_append(struct buf *b, const void *data, size_t n);
static inline bool kp__buf_failed(const struct buf *b)
{
    return b->failed;
}

/* An arena: many small allocations that end together. */
struct arena {
    struct arena_block *blocks;
    size_t used, capacity; /* of the newest block */
};

void kp__arena_init(struct arena *a);
void kp__arena_fini(struct arena *a);
void kp__arena_reset(struct arena *a); /* keeps one block */
/* Zeroed, aligned for any type; NULL if there is no memory. */
void *kp__arena_alloc(struct arena *a, size_t size);
void *kp__arena_alloc_array(struct arena *a, size_t count, size_t size);

#endif
