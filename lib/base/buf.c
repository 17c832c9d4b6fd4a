/* SPDX-License-Identifier: BSD-2-Clause */
/* buf.c - a growable byte buffer, and an arena.  One thread each.
 *
 * size <= capacity always; once failed, a buffer's bytes stay as they were. */
#include "lib/base/buf.h"

#include <stdalign.h>
#include <string.h>

#include "lib/base/mem.h"

#define SMALLEST 64

void kp__buf_init(struct buf *b)
{
    *b = (struct buf){0};
}

void kp__buf_fini(struct buf *b)
{
    kp__free(b->data);
    kp__buf_init(b);
}

void kp__buf_clear(struct buf *b)
{
    b->size = 0;
    b->failed = false;
}

static bool grow(struct buf *b, size_t wanted)
{
    size_t capacity = b->capacity < SMALLEST ? SMALLEST : b->capacity;
    uint8_t *data;

    while (capacity < wanted)
        capacity = capacity > SIZE_MAX / 2 ? wanted : capacity * 2;
    data = kp__realloc(b->data, capacity);
    if (data == NULL)
        return false;
    b->data = data;
    b->capacity = capacity;
    return true;
}

uint8_t *kp__buf_reserve(struct buf *b, size_t n)
{
    if (b->failed)
        return NULL;
    if (n > SIZE_MAX - b->size) {
        b->failed = true;
        return NULL;
    }
    if ((b->data == NULL || n > b->capacity - b->size) &&
        !grow(b, b->size + n)) {
        b->failed = true;
        return NULL;
    }
    return b->data + b->size;
}

void kp__buf_append(struct buf *b, const void *data, size_t n)
{
    uint8_t *to = kp__buf_reserve(b, n);

    if (to == NULL || n == 0)
        return;
    memcpy(to, data, n);
    b->size += n;
}

/* -- Arena -- */

struct arena_block {
    struct arena_block *next; /* older */
    alignas(max_align_t) unsigned char data[];
};

#define FIRST_BLOCK 1024
#define LARGEST_BLOCK (64 * (size_t)1024)

void kp__arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

static void free_blocks(struct arena_block *block)
{
    while (block != NULL) {
        struct arena_block *next = block->next;

        kp__free(block);
        block = next;
    }
}

void kp__arena_fini(struct arena *a)
{
    free_blocks(a->blocks);
    kp__arena_init(a);
}

void kp__arena_reset(struct arena *a)
{
    a->used = 0;
    if (a->blocks == NULL)
        return;
    free_blocks(a->blocks->next);
    a->blocks->next = NULL;
}

static bool add_block(struct arena *a, size_t size)
{
    size_t capacity = a->capacity < FIRST_BLOCK / 2 ? FIRST_BLOCK
                                                    : a->capacity * 2;
    struct arena_block *block;

    if (capacity > LARGEST_BLOCK)
        capacity = LARGEST_BLOCK;
    if (capacity < size)
        capacity = size;
    if (capacity > SIZE_MAX - sizeof(*block))
        return false;
    block = kp__alloc(sizeof(*block) + capacity);
    if (block == NULL)
        return false;
    block->next = a->blocks;
    a->blocks = block;
    a->used = 0;
    a->capacity = capacity;
    return true;
}

void *kp__arena_alloc(struct arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    void *p;

    if (size > SIZE_MAX - align)
        return NULL;
    size = (size + align - 1) / align * align;
    if ((a->blocks == NULL || size > a->capacity - a->used) &&
        !add_block(a, size))
        return NULL;
    p = a->blocks->data + a->used;
    a->used += size;
    return memset(p, 0, size);
}

void *kp__arena_alloc_array(struct arena *a, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    return kp__arena_alloc(a, count * size);
}
