/* SPDX-License-Identifier: BSD-2-Clause */
/* compressors.h - the fixed set of codec contexts of a producer.
 *
 * min(cores, 8) for whoever seals, and one of the I/O thread's own; made at
 * creation, outside buffer.memory (documented).  A compressor has scratch as
 * large as the largest raw batch, so compressing asks nobody for memory. */
#ifndef KP_SHARED_COMPRESSORS_H
#define KP_SHARED_COMPRESSORS_H

#include "lib/base/mutex.h"
#include "lib/codec/codec.h"
#include "lib/shared/batch.h"

struct compressor {
    const struct codec *codec; /* NULL: none, only the crc is computed */
    struct codec_context *context;
    uint8_t *scratch;
    size_t scratch_size;
    struct iovec *pieces; /* of the batch at hand */
    size_t pieces_max;
    struct compressor *next; /* free list */
};

struct compressors {
    struct mutex lock;
    struct compressor *free;   /* guarded by lock */
    struct compressor *all;    /* fixed at birth; the last is the I/O thread's */
    size_t count;
    const struct codec *codec;
    size_t raw_max;            /* the largest raw batch */
};

/* KP_ENOMEM, or KP_ENOTSUP for a codec that this build lacks. */
kp_err kp__compressors_init(struct compressors *c, enum codec_id id, int level,
                            size_t raw_max);
void kp__compressors_fini(struct compressors *c);
/* NULL: all are at work; the batch stays SEALED and the I/O thread will do it.
 * Without a codec there is always one. */
struct compressor *kp__compressors_take(struct compressors *c);
void kp__compressors_give(struct compressors *c, struct compressor *k);
/* The I/O thread's. */
struct compressor *kp__compressors_own(struct compressors *c);

/* b is COMPRESSING and the caller is its claimant: compress the body into the
 * batch's own first chunks and cut the surplus off, which is returned for the
 * pool (or NULL); not smaller: it stays raw.  Sets codec, wire_size, body_crc.
 * Cannot fail.  No lock may be held. */
struct chunk *kp__compress_batch(struct compressor *k, struct batch *b);

#endif
