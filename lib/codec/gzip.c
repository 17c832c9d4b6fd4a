/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip.c - RFC 1952 members, with levels as zlib and Java number them.  The
 * work is done in gzip_libdeflate.c or gzip_zlib.c, whichever this build has.
 * A context belongs to one thread at a time. */
#include "lib/codec/codecs.h"

#ifdef KP_HAVE_GZIP

#define LEVEL_UNSET (-1) /* "the default", as Java writes it */
#ifdef HAVE_LIBDEFLATE
#define LEVEL_DEFAULT 3 /* docs/decisions/gzip-libdeflate.md */
#else
#define LEVEL_DEFAULT 6 /* zlib's own */
#endif
#define LEVEL_MAX 9

static struct codec_context *gzip_create(int level, size_t max_input)
{
    if (level < 1)
        level = LEVEL_DEFAULT;
    if (level > LEVEL_MAX)
        level = LEVEL_MAX;
    return kp__deflate_create(level, max_input);
}

const struct codec kp__codec_gzip = {
    .id = CODEC_GZIP,
    .name = "gzip",
    .level_min = LEVEL_UNSET,
    .level_max = LEVEL_MAX,
    .level_default = LEVEL_UNSET,
    .create = gzip_create,
    .destroy = kp__deflate_destroy,
    .compress = kp__deflate_compress,
    .decompress = kp__deflate_decompress,
};

#endif
