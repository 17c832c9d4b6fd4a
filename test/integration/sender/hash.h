/* SPDX-License-Identifier: BSD-2-Clause */
/* hash.h - 64-bit FNV-1a over values with their lengths in front. */
#ifndef KP_TEST_INTEGRATION_HASH_H
#define KP_TEST_INTEGRATION_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_octet(uint64_t h, unsigned b)
{
    return (h ^ b) * UINT64_C(0x100000001b3);
}

static inline uint64_t hash_number(uint64_t h, int32_t n)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        h = hash_octet(h, ((uint32_t)n >> shift) & 0xffU);
    return h;
}

/* Data NULL: Kafka's null, whose length is -1. */
static inline uint64_t hash_bytes(uint64_t h, const void *data, size_t size)
{
    const unsigned char *p = data;
    if (p == NULL)
        return hash_number(h, -1);
    h = hash_number(h, (int32_t)size);
    for (size_t i = 0; i < size; i++)
        h = hash_octet(h, p[i]);
    return h;
}

#endif
