/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip_libdeflate.c - gzip through libdeflate, which wants the whole body in
 * one run and is two to three times as fast as zlib for the same size.  A
 * context belongs to one thread at a time; it allocates nothing while
 * compressing.
 * Levels: docs/decisions/gzip-libdeflate.md. */
#include "lib/codec/codecs.h"

#ifdef HAVE_LIBDEFLATE

#include <libdeflate.h>

#include "lib/base/mem.h"
#include "lib/codec/pieces.h"

#define GUESS_MIN 4096
#define GUESS_RATIO 4

struct codec_context {
    struct libdeflate_compressor *compressor;
    uint8_t *scratch; /* a body in pieces, put together */
    size_t max_input;
};

/* The level here whose output is about as large as that of zlib's `level`. */
static int libdeflate_level(int level)
{
    return level > 1 ? level - 1 : 1;
}

void kp__deflate_destroy(struct codec_context *c)
{
    if (c == NULL)
        return;
    libdeflate_free_compressor(c->compressor);
    kp__free(c->scratch);
    kp__free(c);
}

struct codec_context *kp__deflate_create(int level, size_t max_input)
{
    struct codec_context *c = kp__zalloc(sizeof(*c));

    if (c == NULL)
        return NULL;
    c->max_input = max_input;
    c->scratch = kp__alloc(max_input);
    c->compressor = libdeflate_alloc_compressor(libdeflate_level(level));
    if (c->scratch == NULL || c->compressor == NULL) {
        kp__deflate_destroy(c);
        return NULL;
    }
    return c;
}

size_t kp__deflate_compress(struct codec_context *c, const struct iovec *in,
                            int n, uint8_t *out, size_t capacity)
{
    struct pieces p;
    const uint8_t *body;
    size_t size;

    kp__pieces_init(&p, in, n);
    size = p.left;
    if (size > c->max_input)
        return 0;
    body = kp__pieces_next(&p, size, c->scratch);
    return libdeflate_gzip_compress(c->compressor, body, size, out, capacity);
}

/* One member.  *used gets its size.  libdeflate must have room for all of it,
 * so guess, and double the guess while it was too small. */
static bool read_member(struct libdeflate_decompressor *d, const uint8_t *in,
                        size_t size, struct sink *sink, size_t *used)
{
    size_t want = size > SIZE_MAX / GUESS_RATIO ? SIZE_MAX : size * GUESS_RATIO;

    for (want += want < GUESS_MIN ? GUESS_MIN : 0;; want *= 2) {
        enum libdeflate_result r;
        size_t room, got;
        uint8_t *to = kp__sink_room(sink, want, &room);

        if (to == NULL)
            return false;
        r = libdeflate_gzip_decompress_ex(d, in, size, to, room, used, &got);
        if (r == LIBDEFLATE_SUCCESS)
            return kp__sink_took(sink, got);
        /* Less room than asked for: that is where the limit is. */
        if (r != LIBDEFLATE_INSUFFICIENT_SPACE || room < want ||
            want > SIZE_MAX / 2)
            return false;
    }
}

bool kp__deflate_decompress(const uint8_t *in, size_t size, size_t max,
                            struct buf *out)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    bool ok = d != NULL && size > 0;
    struct sink sink;
    size_t used;

    kp__sink_init(&sink, out, max);
    for (size_t at = 0; ok && at < size; at += used)
        ok = read_member(d, in + at, size - at, &sink, &used);
    libdeflate_free_decompressor(d);
    return kp__sink_end(&sink, ok);
}

#endif
