/* SPDX-License-Identifier: BSD-2-Clause */
/* heap.h - an intrusive pairing heap of timers, earliest first.
 *
 * Insert is O(1), removal O(log n) amortised, nothing is allocated.  Equal
 * times come out in no particular order.  One thread, or the caller's lock. */
#ifndef KP_BASE_HEAP_H
#define KP_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    int64_t at_ns;
    struct heap_node *child, *next, *prev; /* prev: sibling before, or parent */
    bool in_heap;
};

struct heap {
    struct heap_node *root;
};

void kp__heap_init(struct heap *h);
/* n must not be in a heap. */
void kp__heap_insert(struct heap *h, struct heap_node *n, int64_t at_ns);
/* Does nothing if n is in no heap. */
void kp__heap_remove(struct heap *h, struct heap_node *n);
/* Insert, or move to another time. */
void kp__heap_set(struct heap *h, struct heap_node *n, int64_t at_ns);
/* The earliest, or NULL. */
static inline struct heap_node *kp__heap_first(const struct heap *h)
{
    return h->root;
}

#endif
