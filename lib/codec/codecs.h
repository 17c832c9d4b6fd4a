/* SPDX-License-Identifier: BSD-2-Clause */
/* codecs.h - the codecs that codec.c puts into its table.  Each exists only in
 * a build that has its library. */
#ifndef KP_CODEC_CODECS_H
#define KP_CODEC_CODECS_H

#include "lib/codec/codec.h"

#if defined(HAVE_LIBDEFLATE) || defined(HAVE_ZLIB)
#define KP_HAVE_GZIP 1
#endif

extern const struct codec kp__codec_gzip;
extern const struct codec kp__codec_snappy;
extern const struct codec kp__codec_lz4;
extern const struct codec kp__codec_zstd;

/* What gzip.c stands on: libdeflate, or zlib where that is missing.  `level` is
 * zlib's: 1 to 9.  The contracts are those of struct codec. */
struct codec_context *kp__deflate_create(int level, size_t max_input);
void kp__deflate_destroy(struct codec_context *c);
size_t kp__deflate_compress(struct codec_context *c, const struct iovec *in,
                            int n, uint8_t *out, size_t capacity);
bool kp__deflate_decompress(const uint8_t *in, size_t size, size_t max,
                            struct buf *out);

#endif
