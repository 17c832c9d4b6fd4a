/* SPDX-License-Identifier: BSD-2-Clause */
/* crc32c_impl.h - the ways to compute a CRC-32C, for crc32c*.c and their test.
 *
 * A crc is kept as users see it (complemented) outside, and as the bare
 * register inside the functions here.  Bit 31 of a register stands for x^0, as
 * in every reflected CRC, and all arithmetic is modulo x^32 + ... + 1
 * (0x1EDC6F41). */
#ifndef KP_BASE_CRC32C_IMPL_H
#define KP_BASE_CRC32C_IMPL_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t (*crc32c_fn)(uint32_t reg, const unsigned char *p,
                              size_t size);
/* a times x^(8 size), modulo. */
typedef uint32_t (*crc32c_shift_fn)(uint32_t a, uint64_t size);

struct crc32c_impl {
    const char *name; /* NULL ends a list */
    crc32c_fn update;
    crc32c_shift_fn shift;
};

/* Those that this CPU can run, best first, the portable one last. */
const struct crc32c_impl *kp__crc32c_impls(void);

/* x^n modulo; n may be negative. */
uint32_t kp__crc32c_power(int64_t n);
uint32_t kp__crc32c_multiply(uint32_t a, uint32_t b);
uint32_t kp__crc32c_shift_portable(uint32_t a, uint64_t size);

/* Append what this CPU has, best first; returns how many.  At most
 * CRC32C_NATIVE_MAX.  Called once. */
#define CRC32C_NATIVE_MAX 4
size_t kp__crc32c_native(struct crc32c_impl *out);

#endif
