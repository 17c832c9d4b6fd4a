/* SPDX-License-Identifier: BSD-2-Clause */
/* varint.h - base-128 numbers, low groups first; signed ones zigzag.
 *
 * Kafka: ByteUtils.writeVarint, writeVarlong, writeUnsignedVarint.  Writing is
 * here because records are encoded with it; reading untrusted ones is in
 * reader.h.  Pure, inline. */
#ifndef KP_WIRE_VARINT_H
#define KP_WIRE_VARINT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/check.h"

#define VARINT_MAX_SIZE 5
#define VARLONG_MAX_SIZE 10

static inline uint32_t kp__zigzag32(int32_t v)
{
    return ((uint32_t)v << 1) ^ (v < 0 ? UINT32_MAX : 0);
}

static inline uint64_t kp__zigzag64(int64_t v)
{
    return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}

static inline int32_t kp__unzigzag32(uint32_t v)
{
    return (int32_t)((v >> 1) ^ (0u - (v & 1)));
}

static inline int64_t kp__unzigzag64(uint64_t v)
{
    return (int64_t)((v >> 1) ^ (UINT64_C(0) - (v & 1)));
}

/* Bytes that v takes: 1 to 10. */
static inline size_t kp__uvarint_size(uint64_t v)
{
    unsigned bits = 64u - (unsigned)__builtin_clzll(v | 1);

    return (bits * 9 + 64) >> 6; /* ceil(bits / 7) without a division */
}

static inline size_t kp__varint_size(int32_t v)
{
    return kp__uvarint_size(kp__zigzag32(v));
}

static inline size_t kp__varlong_size(int64_t v)
{
    return kp__uvarint_size(kp__zigzag64(v));
}

/* Write v at out, which has room; returns the end. */
static inline uint8_t *kp__uvarint_put(uint8_t *out, uint64_t v)
{
    while (KP_UNLIKELY(v >= 0x80)) {
        *out++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *out++ = (uint8_t)v;
    return out;
}

static inline uint8_t *kp__varint_put(uint8_t *out, int32_t v)
{
    return kp__uvarint_put(out, kp__zigzag32(v));
}

static inline uint8_t *kp__varlong_put(uint8_t *out, int64_t v)
{
    return kp__uvarint_put(out, kp__zigzag64(v));
}

#endif
