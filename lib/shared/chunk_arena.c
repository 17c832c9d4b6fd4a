/* SPDX-License-Identifier: BSD-2-Clause */
/* chunk_arena.c - blocks, small chunks and extents.  Any thread, under the
 * pool's lock but for the functions that say otherwise.
 *
 * Invariant: a block is in exactly one state: in use as a whole; free and on
 * hot or cold, or past `fresh`; cut, and on partial while any eighth of it is
 * free.  A block all of whose eighths are free is whole again. */
#include "lib/shared/chunk_arena.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/system.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(p, n) __asan_poison_memory_region(p, n)
#define UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

/* So much of a pool is enough for a producer that is not pressed, and stays in
 * small pages, so that it takes no more than it uses. */
#define SMALL_PAGES_SIZE ((size_t)2 << 20)

/* A pool smaller than this uses what is left behind its last whole block. */
#define TAIL_BELOW (4 * (size_t)CHUNK_SIZE)

static void want_large_pages(struct chunk_arena *a)
{
    if (a->size > SMALL_PAGES_SIZE)
        kp__pages_want_large(a->base + SMALL_PAGES_SIZE,
                             a->size - SMALL_PAGES_SIZE);
}

bool kp__chunks_init(struct chunk_arena *a, size_t bytes)
{
    size_t tail = 0;

    *a = (struct chunk_arena){0};
    kp__list_init(&a->hot);
    kp__list_init(&a->cold);
    kp__list_init(&a->partial);
    a->block_count = bytes / CHUNK_SIZE;
    if (bytes < TAIL_BELOW)
        tail = bytes % CHUNK_SIZE / CHUNK_SMALL_SIZE;
    a->size = a->block_count * CHUNK_SIZE + tail * CHUNK_SMALL_SIZE;
    a->base = kp__pages_map(a->size);
    a->blocks = kp__zalloc((a->block_count + 1) * sizeof(*a->blocks));
    if (a->base == NULL || a->blocks == NULL) {
        kp__chunks_fini(a);
        return false;
    }
    want_large_pages(a);
    POISON(a->base, a->size);
    if (tail > 0) {
        struct block *b = &a->blocks[a->block_count];

        a->has_tail = true;
        a->small_count = tail;
        b->all_mask = b->free_mask = (uint8_t)((1u << tail) - 1);
        kp__node_init(&b->link);
        kp__list_push_back(&a->partial, &b->link);
    }
    return true;
}

static void unmap_extents(struct chunk *c)
{
    while (c != NULL) {
        struct chunk *next = c->next;
        size_t bytes = sizeof(*c) + c->capacity;

        UNPOISON(c, bytes);
        kp__pages_unmap(c, bytes);
        c = next;
    }
}

void kp__chunks_fini(struct chunk_arena *a)
{
    unmap_extents(a->extents);
    if (a->base != NULL)
        UNPOISON(a->base, a->size);
    kp__pages_unmap(a->base, a->size);
    kp__free(a->blocks);
}

static uint8_t *block_memory(const struct chunk_arena *a, const struct block *b)
{
    return a->base + (size_t)(b - a->blocks) * CHUNK_SIZE;
}

static struct chunk *make_chunk(void *at, size_t size, enum chunk_kind kind)
{
    struct chunk *c = at;

    UNPOISON(at, size);
    c->next = NULL;
    c->capacity = (uint32_t)(size - sizeof(*c));
    c->used = 0;
    c->charge = (uint32_t)size;
    c->kind = kind;
    return c;
}

static struct block *pop_block(struct chunk_arena *a)
{
    struct block *b;

    if (a->hot_count > 0) {
        a->hot_count--;
        b = KP_CONTAINER(kp__list_pop_front(&a->hot), struct block, link);
    } else if (a->cold_count > 0) {
        a->cold_count--;
        b = KP_CONTAINER(kp__list_pop_front(&a->cold), struct block, link);
    } else {
        KP_CHECK(a->fresh < a->block_count);
        b = &a->blocks[a->fresh++];
        kp__node_init(&b->link);
    }
    return b;
}

static void push_hot(struct chunk_arena *a, struct block *b)
{
    kp__list_push_front(&a->hot, &b->link);
    a->hot_count++;
}

struct chunk *kp__chunks_take_block(struct chunk_arena *a)
{
    return make_chunk(block_memory(a, pop_block(a)), CHUNK_SIZE,
                      CHUNK_IS_BLOCK);
}

static bool is_tail(const struct chunk_arena *a, const struct block *b)
{
    return b == &a->blocks[a->block_count];
}

struct chunk *kp__chunks_take_small(struct chunk_arena *a)
{
    struct block *b;
    unsigned i;

    if (kp__list_empty(&a->partial)) {
        b = pop_block(a);
        b->all_mask = b->free_mask = UINT8_MAX;
        a->small_free += CHUNK_SIZE;
        a->small_count += SMALL_PER_BLOCK;
        kp__list_push_front(&a->partial, &b->link);
    } else {
        b = KP_CONTAINER(kp__list_first(&a->partial), struct block, link);
    }
    i = (unsigned)__builtin_ctz(b->free_mask);
    b->free_mask &= (uint8_t)(b->free_mask - 1);
    a->small_count--;
    if (b->free_mask == 0)
        kp__list_remove(&b->link);
    if (!is_tail(a, b))
        a->small_free -= CHUNK_SMALL_SIZE;
    return make_chunk(block_memory(a, b) + i * CHUNK_SMALL_SIZE,
                      CHUNK_SMALL_SIZE, CHUNK_IS_SMALL);
}

static void give_small(struct chunk_arena *a, struct chunk *c)
{
    size_t at = (size_t)((uint8_t *)c - a->base);
    struct block *b = &a->blocks[at / CHUNK_SIZE];
    uint8_t bit = (uint8_t)(1u << (at % CHUNK_SIZE / CHUNK_SMALL_SIZE));

    KP_CHECK((b->all_mask & bit) != 0 && (b->free_mask & bit) == 0);
    POISON(c, CHUNK_SMALL_SIZE);
    if (b->free_mask == 0)
        kp__list_push_front(&a->partial, &b->link);
    b->free_mask |= bit;
    a->small_count++;
    if (is_tail(a, b))
        return;
    a->small_free += CHUNK_SMALL_SIZE;
    if (b->free_mask == b->all_mask) {
        kp__list_remove(&b->link);
        b->all_mask = 0;
        a->small_free -= CHUNK_SIZE;
        a->small_count -= SMALL_PER_BLOCK;
        push_hot(a, b);
    }
}

static void give_block(struct chunk_arena *a, struct chunk *c)
{
    struct block *b = &a->blocks[(size_t)((uint8_t *)c - a->base) / CHUNK_SIZE];

    KP_CHECK(b->all_mask == 0 && !kp__node_linked(&b->link));
    POISON(c, CHUNK_SIZE);
    push_hot(a, b);
}

size_t kp__extent_charge(size_t size)
{
    size_t page = kp__page_size(), bytes = size + sizeof(struct chunk);

    return (bytes + page - 1) / page * page;
}

struct chunk *kp__extent_map(size_t bytes, size_t charge)
{
    struct chunk *c = kp__pages_map(bytes);

    if (c == NULL)
        return NULL;
    c = make_chunk(c, bytes, CHUNK_IS_EXTENT);
    c->charge = (uint32_t)charge;
    return c;
}

struct chunk *kp__chunks_take_extent(struct chunk_arena *a, size_t bytes)
{
    struct chunk **at = &a->extents;

    /* Not many are looked at: the lock is held. */
    for (int i = 0; i < 8 && *at != NULL; i++, at = &(*at)->next) {
        struct chunk *c = *at;

        if (sizeof(*c) + c->capacity != bytes)
            continue;
        *at = c->next;
        a->extents_bytes -= bytes;
        UNPOISON(c->data, c->capacity);
        c->next = NULL;
        c->used = 0;
        return c;
    }
    return NULL;
}

static void give_extent(struct chunk_arena *a, struct chunk *c)
{
    POISON(c->data, c->capacity);
    c->next = a->extents;
    a->extents = c;
    a->extents_bytes += sizeof(*c) + c->capacity;
}

void kp__chunks_give(struct chunk_arena *a, struct chunk *c)
{
    switch ((enum chunk_kind)c->kind) {
    case CHUNK_IS_SMALL:
        give_small(a, c);
        break;
    case CHUNK_IS_BLOCK:
        give_block(a, c);
        break;
    case CHUNK_IS_EXTENT:
        give_extent(a, c);
        break;
    }
}

size_t kp__chunks_doom(struct chunk_arena *a, size_t bytes, struct doomed *d)
{
    size_t moved = 0;

    while (moved < bytes && a->extents != NULL) {
        struct chunk *c = a->extents;
        size_t size = sizeof(*c) + c->capacity;

        a->extents = c->next;
        a->extents_bytes -= size;
        c->next = d->extents;
        d->extents = c;
        moved += size;
    }
    while (moved < bytes && a->hot_count > 0) {
        /* The coldest of the hot ones. */
        struct list_node *n = kp__list_last(&a->hot);

        kp__list_remove(n);
        a->hot_count--;
        n->next = d->blocks;
        d->blocks = n;
        moved += CHUNK_SIZE;
    }
    return moved;
}

void kp__doomed_end(struct chunk_arena *a, struct doomed *d)
{
    unmap_extents(d->extents);
    d->extents = NULL;
    /* relaxed: asking twice does no harm */
    if (d->blocks != NULL &&
        !atomic_exchange_explicit(&a->small_pages, true, memory_order_relaxed))
        kp__pages_want_small(a->base, a->size);
    for (struct list_node *n = d->blocks; n != NULL; n = n->next)
        kp__pages_discard(block_memory(a, KP_CONTAINER(n, struct block, link)),
                          CHUNK_SIZE);
}

void kp__chunks_revive(struct chunk_arena *a, struct doomed *d, bool resident)
{
    while (d->blocks != NULL) {
        struct list_node *n = d->blocks;

        d->blocks = n->next;
        kp__node_init(n);
        if (resident) {
            push_hot(a, KP_CONTAINER(n, struct block, link));
            continue;
        }
        kp__list_push_front(&a->cold, n);
        a->cold_count++;
    }
}
