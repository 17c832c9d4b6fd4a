/* SPDX-License-Identifier: BSD-2-Clause */
/* writer.h - Kafka's primitive types into a growing buffer.
 *
 * Record batches are not copied: kp__write_external notes that `size` bytes
 * belonging to `owner` come here, and the frame is later sent as pieces of the
 * buffer and the owners' memory in turn.  Failure is sticky.  Pure. */
#ifndef KP_WIRE_WRITER_H
#define KP_WIRE_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct splice {
    size_t at;   /* offset in the buffer before which the bytes belong */
    size_t size; /* how many */
    void *owner;
};

struct writer {
    struct buf buf;
    struct splice *splices;
    size_t splice_count, splice_capacity;
    size_t external_size; /* sum over splices */
};

void kp__writer_init(struct writer *w);
void kp__writer_fini(struct writer *w);
bool kp__writer_failed(const struct writer *w);
void kp__write_i8(struct writer *w, int8_t v);
void kp__write_i16(struct writer *w, int16_t v);
void kp__write_i32(struct writer *w, int32_t v);
void kp__write_i64(struct writer *w, int64_t v);
void kp__write_uvarint(struct writer *w, uint32_t v);
void kp__write_bytes(struct writer *w, const void *data, size_t n);
void kp__write_external(struct writer *w, size_t size, void *owner);
/* Buffer and external bytes together. */
size_t kp__writer_size(const struct writer *w);

#endif
