/* SPDX-License-Identifier: BSD-2-Clause */
/* codec.h - compression of a batch body: one table, one file a codec.  Pure.
 *
 * A context belongs to one compressor at a time.  All memory that compressing
 * needs is allocated when the context is made, so compressing itself cannot run
 * out of it. */
#ifndef KP_CODEC_CODEC_H
#define KP_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lib/base/buf.h"
#include "lib/config/settings.h"

struct codec_context;

struct codec {
    enum codec_id id; /* also the number in a batch's attributes */
    const char *name; /* "lz4" */
    int level_min, level_max, level_default;
    /* NULL: no memory.  max_input: the largest body it will be given. */
    struct codec_context *(*create)(int level, size_t max_input);
    void (*destroy)(struct codec_context *c);
    /* Compress the n pieces into out.  0: would need more than `capacity` (the
     * caller then sends raw).  Never fails otherwise, never allocates. */
    size_t (*compress)(struct codec_context *c, const struct iovec *in, int n,
                       uint8_t *out, size_t capacity);
    /* Append the decompressed bytes to out, at most `max` of them.  False: not
     * what this codec wrote, or too large; out is then as it was.  For tests,
     * splits and the broker. */
    bool (*decompress)(const uint8_t *in, size_t size, size_t max,
                       struct buf *out);
};

/* NULL: not known, or not in this build. */
const struct codec *kp__codec(enum codec_id id);
/* "gzip snappy lz4 zstd", those in this build. */
const char *kp__codec_names(void);

#endif
