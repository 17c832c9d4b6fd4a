/* SPDX-License-Identifier: BSD-2-Clause */
/* pieces.h - reading a body that lies in several pieces, and growing the
 * output of a decompressor within a limit.  Pure. */
#ifndef KP_CODEC_PIECES_H
#define KP_CODEC_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lib/base/buf.h"

struct pieces {
    const struct iovec *iov;
    int n;         /* pieces not yet used up */
    size_t offset; /* in the first of them */
    size_t left;   /* bytes in all of them */
};

void kp__pieces_init(struct pieces *p, const struct iovec *iov, int n);
/* The next `size` (at most p->left) bytes in one run: where they lie if they
 * lie together, else copied to scratch. */
const uint8_t *kp__pieces_next(struct pieces *p, size_t size, uint8_t *scratch);

/* Decompressed bytes on their way into a buffer. */
struct sink {
    struct buf *out;
    size_t start; /* what the buffer held before */
    size_t max;   /* how much may be added */
};

void kp__sink_init(struct sink *s, struct buf *out, size_t max);
/* Room for at least one byte: *size of them, at most `want`.  One byte past
 * the limit is offered, so that going over it shows.  NULL: no memory, or the
 * limit is passed already. */
uint8_t *kp__sink_room(struct sink *s, size_t want, size_t *size);
/* `size` bytes were written there.  False: over the limit. */
bool kp__sink_took(struct sink *s, size_t size);
/* Undo everything if not ok; returns ok. */
bool kp__sink_end(struct sink *s, bool ok);

#endif
