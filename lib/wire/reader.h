/* SPDX-License-Identifier: BSD-2-Clause */
/* reader.h - Kafka's primitive types out of bytes that cannot be trusted.
 *
 * Failure is sticky: the first thing that does not fit sets `failed`, every
 * later read gives zero, and the caller asks once.  Every length is checked
 * against what is left before it is used.  Borrows the bytes.  Pure. */
#ifndef KP_WIRE_READER_H
#define KP_WIRE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
    const uint8_t *at, *end;
    bool failed;
    const char *what; /* what did not fit, for the log; NULL: nothing */
};

void kp__reader_init(struct reader *r, const void *data, size_t size);
static inline size_t kp__reader_left(const struct reader *r)
{
    return (size_t)(r->end - r->at);
}
void kp__reader_fail(struct reader *r, const char *what);
int8_t kp__read_i8(struct reader *r);
int16_t kp__read_i16(struct reader *r);
int32_t kp__read_i32(struct reader *r);
int64_t kp__read_i64(struct reader *r);
uint32_t kp__read_uvarint(struct reader *r); /* at most 5 bytes */
int32_t kp__read_varint(struct reader *r);   /* zigzag */
int64_t kp__read_varlong(struct reader *r);
/* n bytes; NULL and failed if there are fewer. */
const uint8_t *kp__read_bytes(struct reader *r, size_t n);
/* Skip a tagged-field section. */
void kp__read_skip_tags(struct reader *r);

#endif
