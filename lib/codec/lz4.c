/* SPDX-License-Identifier: BSD-2-Clause */
/* lz4.c - LZ4 frames as Kafka's Java client writes them: independent blocks of
 * 64 KiB, no checksums, no content size.  A context belongs to one thread at a
 * time.
 *
 * The frame is built by hand over the block functions that take their state
 * from the caller, because those never allocate.  Reading goes through the
 * library's frame reader, which also knows the variants that others write.
 *
 * Level 9 is the fast compressor, as in Java; every other level is LZ4 HC.
 * Invariant: no block header announces more than 64 KiB. */
#include "lib/codec/codecs.h"

#ifdef HAVE_LZ4

#include <lz4.h>
#include <lz4frame.h>
#include <lz4hc.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/codec/pieces.h"

#define BLOCK_SIZE ((size_t)64 * 1024)
#define LEVEL_FAST 9
#define RAW_BLOCK UINT32_C(0x80000000) /* the block is not compressed */
#define BLOCK_HEADER_SIZE 4
#define END_MARK_SIZE 4

/* Magic, version 01 with independent blocks, 64 KiB blocks, and the second byte
 * of the xxh32 of the two bytes before it. */
static const uint8_t frame_header[] = {0x04, 0x22, 0x4d, 0x18,
                                       0x60, 0x40, 0x82};

struct codec_context {
    int level;
    void *state;
    uint8_t *scratch; /* a block whose bytes do not lie together */
};

static void lz4_destroy(struct codec_context *c)
{
    if (c == NULL)
        return;
    kp__free(c->state);
    kp__free(c->scratch);
    kp__free(c);
}

static struct codec_context *lz4_create(int level, size_t max_input)
{
    struct codec_context *c = kp__zalloc(sizeof(*c));
    int state_size =
        level == LEVEL_FAST ? LZ4_sizeofState() : LZ4_sizeofStateHC();

    (void)max_input; /* blocks have a size of their own */
    if (c == NULL)
        return NULL;
    c->level = level;
    c->state = kp__alloc((size_t)state_size);
    c->scratch = kp__alloc(BLOCK_SIZE);
    if (c->state == NULL || c->scratch == NULL) {
        lz4_destroy(c);
        return NULL;
    }
    return c;
}

static void put_u32_le(uint8_t *out, uint32_t v)
{
    out[0] = (uint8_t)v;
    out[1] = (uint8_t)(v >> 8);
    out[2] = (uint8_t)(v >> 16);
    out[3] = (uint8_t)(v >> 24);
}

/* 0: did not fit. */
static size_t pack(struct codec_context *c, const uint8_t *in, size_t size,
                   uint8_t *out, size_t capacity)
{
    const char *from = (const char *)in;
    int n;

    if (capacity == 0)
        return 0;
    if (c->level == LEVEL_FAST)
        n = LZ4_compress_fast_extState(c->state, from, (char *)out, (int)size,
                                       (int)capacity, 1);
    else
        n = LZ4_compress_HC_extStateHC(c->state, from, (char *)out, (int)size,
                                       (int)capacity, c->level);
    return n > 0 ? (size_t)n : 0;
}

/* One block with its header.  0: did not fit, neither packed nor as it is. */
static size_t put_block(struct codec_context *c, const uint8_t *in, size_t size,
                        uint8_t *out, size_t capacity)
{
    size_t room, n;

    if (capacity < BLOCK_HEADER_SIZE)
        return 0;
    room = capacity - BLOCK_HEADER_SIZE;
    /* A block that does not shrink is stored as it is. */
    n = pack(c, in, size, out + BLOCK_HEADER_SIZE,
             room < size - 1 ? room : size - 1);
    if (n > 0) {
        put_u32_le(out, (uint32_t)n);
        return BLOCK_HEADER_SIZE + n;
    }
    if (room < size)
        return 0;
    put_u32_le(out, (uint32_t)size | RAW_BLOCK);
    memcpy(out + BLOCK_HEADER_SIZE, in, size);
    return BLOCK_HEADER_SIZE + size;
}

static size_t lz4_compress(struct codec_context *c, const struct iovec *in,
                           int n, uint8_t *out, size_t capacity)
{
    size_t used = sizeof(frame_header);
    struct pieces p;

    if (capacity < sizeof(frame_header) + END_MARK_SIZE)
        return 0;
    capacity -= END_MARK_SIZE;
    memcpy(out, frame_header, sizeof(frame_header));
    kp__pieces_init(&p, in, n);
    while (p.left > 0) {
        size_t size = p.left < BLOCK_SIZE ? p.left : BLOCK_SIZE;
        const uint8_t *block = kp__pieces_next(&p, size, c->scratch);
        size_t put = put_block(c, block, size, out + used, capacity - used);

        if (put == 0)
            return 0;
        used += put;
    }
    put_u32_le(out + used, 0);
    return used + END_MARK_SIZE;
}

/* Read frames, one after another, until the input ends at a frame's end. */
static bool read_frames(LZ4F_dctx *d, const uint8_t *in, size_t size,
                        struct sink *sink)
{
    size_t used = 0, hint = 1;

    while (used < size) {
        size_t from = size - used, room;
        uint8_t *to = kp__sink_room(sink, BLOCK_SIZE, &room);

        if (to == NULL)
            return false;
        hint = LZ4F_decompress(d, to, &room, in + used, &from, NULL);
        if (LZ4F_isError(hint) || !kp__sink_took(sink, room))
            return false;
        /* Neither read nor written: it will never end. */
        if (from == 0 && room == 0)
            return false;
        used += from;
    }
    return hint == 0;
}

static bool lz4_decompress(const uint8_t *in, size_t size, size_t max,
                           struct buf *out)
{
    LZ4F_dctx *d;
    struct sink sink;
    bool ok;

    if (LZ4F_isError(LZ4F_createDecompressionContext(&d, LZ4F_VERSION)))
        return false;
    kp__sink_init(&sink, out, max);
    ok = read_frames(d, in, size, &sink);
    (void)LZ4F_freeDecompressionContext(d);
    return kp__sink_end(&sink, ok);
}

const struct codec kp__codec_lz4 = {
    .id = CODEC_LZ4,
    .name = "lz4",
    .level_min = 1,
    .level_max = 17,
    .level_default = LEVEL_FAST,
    .create = lz4_create,
    .destroy = lz4_destroy,
    .compress = lz4_compress,
    .decompress = lz4_decompress,
};

#endif
