/* SPDX-License-Identifier: BSD-2-Clause */
/* frame.h - reassembling size-prefixed frames from a byte stream.  Pure.
 *
 * Feed it what a socket gave; take whole frames.  A size that is negative or
 * over `max` fails the stream before anything is allocated for it; memory grows
 * with the bytes that really arrived, not with the size that was announced. */
#ifndef KP_WIRE_FRAME_H
#define KP_WIRE_FRAME_H

#include "lib/base/buf.h"

struct frame_reader {
    struct buf buf;
    size_t start; /* of the first byte not yet taken */
    size_t max;
};

void kp__frames_init(struct frame_reader *f, size_t max);
void kp__frames_fini(struct frame_reader *f);
/* Where to read to: room for at least some bytes; *capacity gets how many.
 * NULL: no memory. */
uint8_t *kp__frames_space(struct frame_reader *f, size_t *capacity);
void kp__frames_added(struct frame_reader *f, size_t n);
enum frame_result { FRAME_NONE, FRAME_READY, FRAME_BAD };
/* The next whole frame's payload, valid until the next call of any of these. */
enum frame_result kp__frames_next(struct frame_reader *f, const uint8_t **data,
                                  size_t *size);

#endif
