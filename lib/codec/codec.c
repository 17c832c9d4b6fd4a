/* SPDX-License-Identifier: BSD-2-Clause */
/* codec.c - which codecs this build has.  Any thread: the table is constant.
 * Invariant: a codec is in the table exactly if its library was there when the
 * build was configured. */
#include "lib/codec/codec.h"

#include "lib/codec/codecs.h"

#ifdef KP_HAVE_GZIP
#define GZIP_NAME " gzip"
#else
#define GZIP_NAME ""
#endif
#ifdef HAVE_SNAPPY
#define SNAPPY_NAME " snappy"
#else
#define SNAPPY_NAME ""
#endif
#ifdef HAVE_LZ4
#define LZ4_NAME " lz4"
#else
#define LZ4_NAME ""
#endif
#ifdef HAVE_ZSTD
#define ZSTD_NAME " zstd"
#else
#define ZSTD_NAME ""
#endif

#define CODEC_COUNT (CODEC_ZSTD + 1)

static const struct codec *const table[CODEC_COUNT] = {
    [CODEC_NONE] = NULL,
#ifdef KP_HAVE_GZIP
    [CODEC_GZIP] = &kp__codec_gzip,
#endif
#ifdef HAVE_SNAPPY
    [CODEC_SNAPPY] = &kp__codec_snappy,
#endif
#ifdef HAVE_LZ4
    [CODEC_LZ4] = &kp__codec_lz4,
#endif
#ifdef HAVE_ZSTD
    [CODEC_ZSTD] = &kp__codec_zstd,
#endif
};

const struct codec *kp__codec(enum codec_id id)
{
    return (unsigned)id < CODEC_COUNT ? table[id] : NULL;
}

const char *kp__codec_names(void)
{
    static const char names[] = GZIP_NAME SNAPPY_NAME LZ4_NAME ZSTD_NAME;

    /* Each name has a blank before it; the first one's is not wanted. */
    return names[0] == ' ' ? names + 1 : names;
}
