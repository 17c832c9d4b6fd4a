/* SPDX-License-Identifier: BSD-2-Clause */
/* snappy.c - snappy in the block stream of the xerial library, which is what
 * Kafka's Java client writes: a 16-byte header, then blocks of at most 32 KiB
 * of input, each with its compressed length in front.  Raw snappy is read too.
 * A context belongs to one thread at a time.
 *
 * libsnappy is a C++ library and takes a working table (at most 68 KB) from
 * operator new for each block; its C functions have no way to report that this
 * failed.  That table is the one allocation in this folder that happens while
 * compressing.  Every other failure means: send raw.
 * Invariant: a block announces no more than was checked to be there. */
#include "lib/codec/codecs.h"

#ifdef HAVE_SNAPPY

#include <snappy-c.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/codec/pieces.h"

#define BLOCK_SIZE ((size_t)32 * 1024)
#define BLOCK_HEADER_SIZE 4

/* Magic, version 1, readable by version 1. */
static const uint8_t stream_header[] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0,
                                        0,    0,   0,   1,   0,   0,   0,   1};
#define MAGIC_SIZE 8

struct codec_context {
    size_t packed_max; /* the most a block can grow to */
    uint8_t *packed;   /* for a block that might not fit where it goes */
    uint8_t *scratch;  /* a block whose bytes do not lie together */
};

static void snappy_destroy(struct codec_context *c)
{
    if (c == NULL)
        return;
    kp__free(c->packed);
    kp__free(c->scratch);
    kp__free(c);
}

static struct codec_context *snappy_create(int level, size_t max_input)
{
    struct codec_context *c = kp__zalloc(sizeof(*c));

    (void)level; /* snappy has none */
    (void)max_input;
    if (c == NULL)
        return NULL;
    c->packed_max = snappy_max_compressed_length(BLOCK_SIZE);
    c->packed = kp__alloc(c->packed_max);
    c->scratch = kp__alloc(BLOCK_SIZE);
    if (c->packed == NULL || c->scratch == NULL) {
        snappy_destroy(c);
        return NULL;
    }
    return c;
}

static void put_i32_be(uint8_t *out, uint32_t v)
{
    out[0] = (uint8_t)(v >> 24);
    out[1] = (uint8_t)(v >> 16);
    out[2] = (uint8_t)(v >> 8);
    out[3] = (uint8_t)v;
}

static uint32_t get_i32_be(const uint8_t *in)
{
    return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 |
           (uint32_t)in[2] << 8 | in[3];
}

/* One block with its length.  0: did not fit. */
static size_t put_block(struct codec_context *c, const uint8_t *in, size_t size,
                        uint8_t *out, size_t capacity)
{
    size_t n = c->packed_max;
    /* The library wants room for the worst case, which rarely comes. */
    bool direct = capacity >= BLOCK_HEADER_SIZE + n;
    uint8_t *to = direct ? out + BLOCK_HEADER_SIZE : c->packed;

    if (snappy_compress((const char *)in, size, (char *)to, &n) != SNAPPY_OK)
        return 0;
    if (!direct) {
        if (capacity < BLOCK_HEADER_SIZE + n)
            return 0;
        memcpy(out + BLOCK_HEADER_SIZE, to, n);
    }
    put_i32_be(out, (uint32_t)n);
    return BLOCK_HEADER_SIZE + n;
}

static size_t snappy_pack(struct codec_context *c, const struct iovec *in,
                          int n, uint8_t *out, size_t capacity)
{
    size_t used = sizeof(stream_header);
    struct pieces p;

    if (capacity < used)
        return 0;
    memcpy(out, stream_header, used);
    kp__pieces_init(&p, in, n);
    while (p.left > 0) {
        size_t size = p.left < BLOCK_SIZE ? p.left : BLOCK_SIZE;
        const uint8_t *block = kp__pieces_next(&p, size, c->scratch);
        size_t put = put_block(c, block, size, out + used, capacity - used);

        if (put == 0)
            return 0;
        used += put;
    }
    return used;
}

/* One raw snappy block into the sink. */
static bool unpack(const uint8_t *in, size_t size, struct sink *sink)
{
    const char *from = (const char *)in;
    size_t n, room;
    uint8_t *to;

    if (snappy_uncompressed_length(from, size, &n) != SNAPPY_OK)
        return false;
    if (n == 0)
        return snappy_validate_compressed_buffer(from, size) == SNAPPY_OK;
    /* The length is the sender's word: hold it against the limit before any
     * memory is asked for. */
    to = kp__sink_room(sink, n, &room);
    if (to == NULL || room < n)
        return false;
    if (snappy_uncompress(from, size, (char *)to, &room) != SNAPPY_OK)
        return false;
    return kp__sink_took(sink, room);
}

static bool is_header(const uint8_t *in, size_t size)
{
    return size >= sizeof(stream_header) &&
           memcmp(in, stream_header, MAGIC_SIZE) == 0;
}

/* Blocks; a header may come again where a block would begin, as it does when
 * streams are written one after another. */
static bool unpack_stream(const uint8_t *in, size_t size, struct sink *sink)
{
    size_t at = 0;

    while (at < size) {
        uint32_t n;

        if (is_header(in + at, size - at)) {
            at += sizeof(stream_header);
            continue;
        }
        if (size - at < BLOCK_HEADER_SIZE)
            return false;
        n = get_i32_be(in + at);
        at += BLOCK_HEADER_SIZE;
        if (n > size - at || !unpack(in + at, n, sink))
            return false;
        at += n;
    }
    return true;
}

static bool snappy_unpack(const uint8_t *in, size_t size, size_t max,
                          struct buf *out)
{
    struct sink sink;
    bool ok;

    kp__sink_init(&sink, out, max);
    ok = is_header(in, size) ? unpack_stream(in, size, &sink)
                             : unpack(in, size, &sink);
    return kp__sink_end(&sink, ok);
}

const struct codec kp__codec_snappy = {
    .id = CODEC_SNAPPY,
    .name = "snappy",
    .level_min = 0,
    .level_max = 0,
    .level_default = 0,
    .create = snappy_create,
    .destroy = snappy_destroy,
    .compress = snappy_pack,
    .decompress = snappy_unpack,
};

#endif
