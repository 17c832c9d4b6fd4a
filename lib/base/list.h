/* SPDX-License-Identifier: BSD-2-Clause */
/* list.h - an intrusive doubly linked list with a head node.
 *
 * The node lives inside the element, so a list never allocates.  A node that
 * is on no list points to itself after kp__node_init or kp__list_remove: so
 * removing twice is harmless and kp__node_linked can be asked.  No locking:
 * whoever owns the list guards it. */
#ifndef KP_BASE_LIST_H
#define KP_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/check.h"

struct list_node {
    struct list_node *prev, *next;
};

struct list {
    struct list_node head;
};

static inline void kp__node_init(struct list_node *n)
{
    n->prev = n;
    n->next = n;
}

static inline bool kp__node_linked(const struct list_node *n)
{
    return n->next != n;
}

static inline void kp__list_init(struct list *l)
{
    kp__node_init(&l->head);
}

static inline bool kp__list_empty(const struct list *l)
{
    return l->head.next == &l->head;
}

/* Insert n before `at`; `&l->head` as `at` appends. */
static inline void kp__list_insert_before(struct list_node *at,
                                          struct list_node *n)
{
    KP_CHECK(!kp__node_linked(n));
    n->prev = at->prev;
    n->next = at;
    at->prev->next = n;
    at->prev = n;
}

static inline void kp__list_push_back(struct list *l, struct list_node *n)
{
    kp__list_insert_before(&l->head, n);
}

static inline void kp__list_push_front(struct list *l, struct list_node *n)
{
    kp__list_insert_before(l->head.next, n);
}

static inline void kp__list_remove(struct list_node *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    kp__node_init(n);
}

/* The first or last node, or NULL when empty. */
static inline struct list_node *kp__list_first(const struct list *l)
{
    return kp__list_empty(l) ? NULL : l->head.next;
}

static inline struct list_node *kp__list_last(const struct list *l)
{
    return kp__list_empty(l) ? NULL : l->head.prev;
}

/* The node after n, or NULL at the end. */
static inline struct list_node *kp__list_next(const struct list *l,
                                              const struct list_node *n)
{
    return n->next == &l->head ? NULL : n->next;
}

static inline struct list_node *kp__list_pop_front(struct list *l)
{
    struct list_node *n = kp__list_first(l);

    if (n != NULL)
        kp__list_remove(n);
    return n;
}

/* Move everything from `from` to the end of `to`. */
static inline void kp__list_splice_back(struct list *to, struct list *from)
{
    if (kp__list_empty(from))
        return;
    from->head.next->prev = to->head.prev;
    to->head.prev->next = from->head.next;
    from->head.prev->next = &to->head;
    to->head.prev = from->head.prev;
    kp__list_init(from);
}

#endif
