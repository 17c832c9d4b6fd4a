/* SPDX-License-Identifier: BSD-2-Clause */
/* zstd.c - one zstd frame a body.  A context belongs to one thread at a time.
 *
 * zstd fits its tables to the size of each input and so would ask the
 * allocator again whenever sizes change.  We give it an allocator that owns two
 * blocks: one becomes the context, one its tables.  While the context is made,
 * each size class is compressed once and the blocks grow to what that needs;
 * after that the allocator only hands the same blocks out again, and says no to
 * more.
 * Invariant: after create, no memory is asked for or given back. */
#include "lib/codec/codecs.h"

#ifdef HAVE_ZSTD

#define ZSTD_STATIC_LINKING_ONLY /* for ZSTD_customMem */
#include <zstd.h>
#include <zstd_errors.h>

#include "lib/base/mem.h"
#include "lib/codec/pieces.h"

#define LEVEL_MIN (-131072)
#define LEVEL_MAX 22
#define LEVEL_DEFAULT 3
/* The tables of the default level: those that zstd itself takes for inputs of
 * 128 KiB.  See docs/decisions/zstd-tables.md. */
#define HASH_LOG 16
#define CHAIN_LOG 15
#define STEP ((size_t)64 * 1024)

struct block {
    void *data;
    size_t size;
    bool used;
};

struct codec_context {
    ZSTD_CCtx *cctx;
    struct block blocks[2];
    bool closed; /* the blocks have their final size */
    uint8_t *scratch;
    size_t max_input;
};

static bool grow(struct block *b, size_t size)
{
    kp__free(b->data);
    b->data = kp__alloc(size);
    b->size = b->data != NULL ? size : 0;
    return b->data != NULL;
}

static void *take_block(void *arg, size_t size)
{
    struct codec_context *c = arg;

    for (int i = 0; i < 2; i++) {
        struct block *b = &c->blocks[i];

        if (b->used)
            continue;
        if (b->size < size && (c->closed || !grow(b, size)))
            continue;
        b->used = true;
        return b->data;
    }
    return NULL;
}

static void give_block(void *arg, void *p)
{
    struct codec_context *c = arg;

    for (int i = 0; i < 2; i++)
        if (p != NULL && c->blocks[i].data == p)
            c->blocks[i].used = false;
}

/* Let the blocks grow to what inputs of up to max_input bytes need.  zstd has a
 * set of parameters for each of these size classes; within one, a larger input
 * needs more.  The output is of no interest, and may not even fit. */
static bool warm_up(struct codec_context *c)
{
    static const size_t classes[] = {(size_t)16 << 10, (size_t)128 << 10,
                                     (size_t)256 << 10, SIZE_MAX};
    uint8_t out[512];

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        size_t size = classes[i] < c->max_input ? classes[i] : c->max_input;
        size_t n = ZSTD_compress2(c->cctx, out, sizeof(out), c->scratch, size);

        if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
            return false;
    }
    return true;
}

static void zstd_destroy(struct codec_context *c)
{
    if (c == NULL)
        return;
    (void)ZSTD_freeCCtx(c->cctx);
    kp__free(c->blocks[0].data);
    kp__free(c->blocks[1].data);
    kp__free(c->scratch);
    kp__free(c);
}

static bool set(ZSTD_CCtx *cctx, ZSTD_cParameter parameter, int value)
{
    return !ZSTD_isError(ZSTD_CCtx_setParameter(cctx, parameter, value));
}

static bool set_up(ZSTD_CCtx *cctx, int level)
{
    if (!set(cctx, ZSTD_c_compressionLevel, level))
        return false;
    return level != LEVEL_DEFAULT || (set(cctx, ZSTD_c_hashLog, HASH_LOG) &&
                                      set(cctx, ZSTD_c_chainLog, CHAIN_LOG));
}

static struct codec_context *zstd_create(int level, size_t max_input)
{
    struct codec_context *c = kp__zalloc(sizeof(*c));
    ZSTD_customMem mem = {take_block, give_block, c};

    if (c == NULL)
        return NULL;
    c->max_input = max_input;
    c->scratch = kp__zalloc(max_input);
    c->cctx = ZSTD_createCCtx_advanced(mem);
    if (c->scratch == NULL || c->cctx == NULL || !set_up(c->cctx, level) ||
        !warm_up(c)) {
        zstd_destroy(c);
        return NULL;
    }
    c->closed = true;
    return c;
}

static size_t zstd_compress(struct codec_context *c, const struct iovec *in,
                            int n, uint8_t *out, size_t capacity)
{
    struct pieces p;
    const uint8_t *body;
    size_t size, got;

    kp__pieces_init(&p, in, n);
    size = p.left;
    if (size > c->max_input)
        return 0;
    body = kp__pieces_next(&p, size, c->scratch);
    got = ZSTD_compress2(c->cctx, out, capacity, body, size);
    return ZSTD_isError(got) ? 0 : got;
}

static void *mem_alloc(void *arg, size_t size)
{
    (void)arg;
    return kp__alloc(size);
}

static void mem_free(void *arg, void *p)
{
    (void)arg;
    kp__free(p);
}

/* Frame after frame, until the input ends with one. */
static bool read_frames(ZSTD_DCtx *d, const uint8_t *data, size_t size,
                        struct sink *sink)
{
    ZSTD_inBuffer in = {data, size, 0};

    for (;;) {
        ZSTD_outBuffer out = {NULL, 0, 0};
        size_t r;

        out.dst = kp__sink_room(sink, STEP, &out.size);
        if (out.dst == NULL)
            return false;
        r = ZSTD_decompressStream(d, &out, &in);
        if (ZSTD_isError(r) || !kp__sink_took(sink, out.pos))
            return false;
        /* Room left over means that zstd has nothing more to give. */
        if (in.pos == in.size && (r == 0 || out.pos < out.size))
            return r == 0;
    }
}

static bool zstd_decompress(const uint8_t *in, size_t size, size_t max,
                            struct buf *out)
{
    ZSTD_customMem mem = {mem_alloc, mem_free, NULL};
    ZSTD_DCtx *d;
    struct sink sink;
    bool ok;

    if (size == 0)
        return false;
    d = ZSTD_createDCtx_advanced(mem);
    if (d == NULL)
        return false;
    kp__sink_init(&sink, out, max);
    ok = read_frames(d, in, size, &sink);
    (void)ZSTD_freeDCtx(d);
    return kp__sink_end(&sink, ok);
}

const struct codec kp__codec_zstd = {
    .id = CODEC_ZSTD,
    .name = "zstd",
    .level_min = LEVEL_MIN,
    .level_max = LEVEL_MAX,
    .level_default = LEVEL_DEFAULT,
    .create = zstd_create,
    .destroy = zstd_destroy,
    .compress = zstd_compress,
    .decompress = zstd_decompress,
};

#endif
