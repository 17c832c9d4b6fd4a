/* SPDX-License-Identifier: BSD-2-Clause */
/* heap.c - an intrusive pairing heap.  One thread, or the caller's lock.
 *
 * A node's time is never later than its children's.  Children form a list
 * through `next`; `prev` of the first child is the parent, of the others the
 * sibling before, and of the root NULL. */
#include "lib/base/heap.h"

#include "lib/base/check.h"

void kp__heap_init(struct heap *h)
{
    h->root = NULL;
}

/* Join two roots; the later one becomes the first child of the other. */
static struct heap_node *merge(struct heap_node *a, struct heap_node *b)
{
    struct heap_node *later;

    if (a == NULL)
        return b;
    if (b == NULL)
        return a;
    later = b;
    if (b->at_ns < a->at_ns) {
        later = a;
        a = b;
    }
    later->next = a->child;
    if (a->child != NULL)
        a->child->prev = later;
    later->prev = a;
    a->child = later;
    return a;
}

static struct heap_node *detach(struct heap_node *n)
{
    n->next = NULL;
    n->prev = NULL;
    return n;
}

/* Make one heap of a list of siblings: join them two by two from the left, then
 * all of these from the right.  This order is what bounds the amortised cost.
 * */
static struct heap_node *merge_siblings(struct heap_node *first)
{
    struct heap_node *pairs = NULL, *root = NULL;

    while (first != NULL) {
        struct heap_node *a = first, *b = a->next, *pair;

        first = b != NULL ? b->next : NULL;
        pair = merge(detach(a), b != NULL ? detach(b) : NULL);
        pair->next = pairs;
        pairs = pair;
    }
    while (pairs != NULL) {
        struct heap_node *pair = pairs;

        pairs = pair->next;
        root = merge(root, detach(pair));
    }
    return root;
}

void kp__heap_insert(struct heap *h, struct heap_node *n, int64_t at_ns)
{
    *n = (struct heap_node){.at_ns = at_ns, .in_heap = true};
    h->root = merge(h->root, n);
}

/* Take n, with what hangs below it, out of its parent's list. */
static void cut(struct heap_node *n)
{
    if (n->prev->child == n)
        n->prev->child = n->next;
    else
        n->prev->next = n->next;
    if (n->next != NULL)
        n->next->prev = n->prev;
    (void)detach(n);
}

void kp__heap_remove(struct heap *h, struct heap_node *n)
{
    if (!n->in_heap)
        return;
    if (h->root == n) {
        h->root = merge_siblings(n->child);
    } else {
        cut(n);
        h->root = merge(h->root, merge_siblings(n->child));
    }
    n->child = NULL;
    n->in_heap = false;
}

void kp__heap_set(struct heap *h, struct heap_node *n, int64_t at_ns)
{
    kp__heap_remove(h, n);
    kp__heap_insert(h, n, at_ns);
}
