/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip_zlib.c - gzip through zlib, for builds without libdeflate.  A context
 * belongs to one thread at a time; zlib takes all its memory when the stream is
 * made, and through our allocator. */
#include "lib/codec/codecs.h"

#if defined(HAVE_ZLIB) && !defined(HAVE_LIBDEFLATE)

#include <limits.h>
#include <zlib.h>

#include "lib/base/mem.h"
#include "lib/codec/pieces.h"

#define WINDOW_BITS (15 + 16) /* the largest window; gzip, not zlib, framing */
#define MEM_LEVEL 8           /* zlib's default */
#define STEP ((size_t)32 * 1024)

struct codec_context {
    z_stream z;
};

static void *z_alloc(void *arg, uInt count, uInt size)
{
    (void)arg;
    return kp__alloc_array(count, size);
}

static void z_free(void *arg, void *p)
{
    (void)arg;
    kp__free(p);
}

void kp__deflate_destroy(struct codec_context *c)
{
    if (c == NULL)
        return;
    (void)deflateEnd(&c->z);
    kp__free(c);
}

struct codec_context *kp__deflate_create(int level, size_t max_input)
{
    struct codec_context *c = kp__zalloc(sizeof(*c));

    (void)max_input; /* a stream takes pieces as they come */
    if (c == NULL)
        return NULL;
    c->z.zalloc = z_alloc;
    c->z.zfree = z_free;
    if (deflateInit2(&c->z, level, Z_DEFLATED, WINDOW_BITS, MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        kp__free(c);
        return NULL;
    }
    return c;
}

/* zlib does not write through next_in, but its type does not say so. */
static Bytef *input_of(const void *p)
{
    union {
        const void *in;
        Bytef *out;
    } u;

    u.in = p;
    return u.out;
}

size_t kp__deflate_compress(struct codec_context *c, const struct iovec *in,
                            int n, uint8_t *out, size_t capacity)
{
    z_stream *z = &c->z;

    (void)deflateReset(z);
    z->next_out = out;
    z->avail_out = capacity > UINT_MAX ? UINT_MAX : (uInt)capacity;
    for (int i = 0; i < n; i++) {
        if (in[i].iov_len > UINT_MAX)
            return 0;
        z->next_in = input_of(in[i].iov_base);
        z->avail_in = (uInt)in[i].iov_len;
        if (z->avail_in > 0 && deflate(z, Z_NO_FLUSH) != Z_OK)
            return 0;
        if (z->avail_in > 0)
            return 0;
    }
    if (deflate(z, Z_FINISH) != Z_STREAM_END)
        return 0;
    return (size_t)(z->next_out - out);
}

/* Member after member, until the input ends with one. */
static bool read_members(z_stream *z, struct sink *sink)
{
    for (;;) {
        size_t room;
        uint8_t *to = kp__sink_room(sink, STEP, &room);
        int r;

        if (to == NULL)
            return false;
        z->next_out = to;
        z->avail_out = (uInt)room;
        r = inflate(z, Z_NO_FLUSH);
        if (!kp__sink_took(sink, room - z->avail_out))
            return false;
        if (r == Z_STREAM_END && z->avail_in == 0)
            return true;
        if (r == Z_STREAM_END)
            r = inflateReset(z);
        /* Z_BUF_ERROR: no input left, and the member has not ended. */
        if (r != Z_OK)
            return false;
    }
}

bool kp__deflate_decompress(const uint8_t *in, size_t size, size_t max,
                            struct buf *out)
{
    z_stream z = {.zalloc = z_alloc, .zfree = z_free};
    struct sink sink;
    bool ok;

    if (size == 0 || size > UINT_MAX || inflateInit2(&z, WINDOW_BITS) != Z_OK)
        return false;
    z.next_in = input_of(in);
    z.avail_in = (uInt)size;
    kp__sink_init(&sink, out, max);
    ok = read_members(&z, &sink);
    (void)inflateEnd(&z);
    return kp__sink_end(&sink, ok);
}

#endif
