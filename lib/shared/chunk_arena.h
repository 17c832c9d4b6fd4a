/* SPDX-License-Identifier: BSD-2-Clause */
/* chunk_arena.h - where chunks come from: one reserved stretch of memory cut
 * into blocks, and extents beside it.  The pool's own; its lock guards all of
 * it.
 *
 * A block is one full chunk, or eight small ones.  Free blocks are used again
 * last in, first out, because they are warm; those never touched, or given back
 * to the system, come last.  Past the first 2 MiB the memory is asked for in
 * large pages (docs/decisions/batches.md), until some of it has to be given
 * back: what is given back in pieces would be filled up again otherwise.  No
 * function here gives memory back to the system itself: that is handed out as
 * `struct doomed`, for kp__doomed_end outside the lock. */
#ifndef KP_SHARED_CHUNK_ARENA_H
#define KP_SHARED_CHUNK_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/list.h"
#include "lib/shared/buffer_pool.h"

#define SMALL_PER_BLOCK (CHUNK_SIZE / CHUNK_SMALL_SIZE)

enum chunk_kind { CHUNK_IS_SMALL, CHUNK_IS_BLOCK, CHUNK_IS_EXTENT };

struct block {
    struct list_node link; /* hot, cold or partial */
    uint8_t free_mask;     /* small chunks that are free */
    uint8_t all_mask;      /* 0: not cut */
};

struct chunk_arena {
    uint8_t *base;
    size_t size;          /* mapped */
    _Atomic bool small_pages; /* only: some were given back to the system */
    struct block *blocks; /* one each, and one more for a tail of small ones */
    size_t block_count;   /* whole ones */
    size_t fresh;         /* blocks from here on were never touched */
    struct list hot, cold, partial;
    size_t hot_count, cold_count;
    struct chunk *extents; /* kept for the next of their size */
    size_t extents_bytes;
    size_t small_free;     /* bytes free in cut blocks, the tail's not counted */
    size_t small_count;    /* small chunks free without cutting a block */
    bool has_tail;
};

/* False: no memory. */
bool kp__chunks_init(struct chunk_arena *a, size_t bytes);
void kp__chunks_fini(struct chunk_arena *a); /* with everything given back */

/* Free whole blocks. */
static inline size_t kp__chunks_blocks(const struct chunk_arena *a)
{
    return a->hot_count + a->cold_count + (a->block_count - a->fresh);
}
/* Resident and not in use, and which of it could be given back. */
static inline size_t kp__chunks_idle(const struct chunk_arena *a)
{
    return a->hot_count * CHUNK_SIZE + a->extents_bytes + a->small_free;
}
/* Needs small_count or a free block. */
struct chunk *kp__chunks_take_small(struct chunk_arena *a);
/* Needs a free block. */
struct chunk *kp__chunks_take_block(struct chunk_arena *a);
/* One of just so many bytes that was kept; or NULL: map one, outside the lock.
 * */
struct chunk *kp__chunks_take_extent(struct chunk_arena *a, size_t bytes);
void kp__chunks_give(struct chunk_arena *a, struct chunk *c);

/* What an extent with `size` bytes of data charges. */
size_t kp__extent_charge(size_t size);
/* Map one; no lock needed.  NULL: no memory. */
struct chunk *kp__extent_map(size_t bytes, size_t charge);

/* Move what is idle to `d`, until `bytes` are; returns how much was moved. */
size_t kp__chunks_doom(struct chunk_arena *a, size_t bytes, struct doomed *d);
/* Give it back to the system.  No lock held.  Blocks stay in d for
 * kp__chunks_revive. */
void kp__doomed_end(struct chunk_arena *a, struct doomed *d);
/* Its blocks can be used again, after kp__doomed_end; or, resident, without it.
 * Under the lock. */
void kp__chunks_revive(struct chunk_arena *a, struct doomed *d, bool resident);

#endif
