/* SPDX-License-Identifier: BSD-2-Clause */
/* crc32c.c - CRC-32C: choosing an implementation, the portable one, combining.
 * Any thread.  Everything here is written once, before first use. */
#include "lib/base/crc32c.h"

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/crc32c_impl.h"

#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected */
#define ONE UINT32_C(0x80000000)        /* x^0 */
/* The order of x: powers repeat after so many. */
#define ORDER INT64_C(0x7fffffff)

static uint32_t slices[8][256];
static uint32_t byte_powers[64]; /* [k]: x^(8 * 2^k) */
static struct crc32c_impl impls[CRC32C_NATIVE_MAX + 2];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* -- Arithmetic -- */

static uint32_t times_x(uint32_t a)
{
    return (a >> 1) ^ (POLYNOMIAL & (0U - (a & 1)));
}

uint32_t kp__crc32c_multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (; a != 0; a <<= 1) {
        product ^= b & (0U - (a >> 31));
        b = times_x(b);
    }
    return product;
}

uint32_t kp__crc32c_power(int64_t n)
{
    uint32_t result = ONE, square = ONE >> 1; /* x^1 */

    for (n = (n % ORDER + ORDER) % ORDER; n != 0; n >>= 1) {
        if (n & 1)
            result = kp__crc32c_multiply(result, square);
        square = kp__crc32c_multiply(square, square);
    }
    return result;
}

uint32_t kp__crc32c_shift_portable(uint32_t a, uint64_t size)
{
    for (int k = 0; size != 0; k++, size >>= 1)
        if (size & 1)
            a = kp__crc32c_multiply(byte_powers[k], a);
    return a;
}

/* -- The portable one: eight bytes a step -- */

static uint32_t load32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static uint32_t update_portable(uint32_t reg, const unsigned char *p,
                                size_t size)
{
    for (; size >= 8; p += 8, size -= 8) {
        uint32_t lo = load32(p) ^ reg, hi = load32(p + 4);

        reg = slices[7][lo & 255] ^ slices[6][lo >> 8 & 255] ^
              slices[5][lo >> 16 & 255] ^ slices[4][lo >> 24] ^
              slices[3][hi & 255] ^ slices[2][hi >> 8 & 255] ^
              slices[1][hi >> 16 & 255] ^ slices[0][hi >> 24];
    }
    for (; size != 0; p++, size--)
        reg = reg >> 8 ^ slices[0][(reg ^ *p) & 255];
    return reg;
}

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t reg = i;

        for (int bit = 0; bit < 8; bit++)
            reg = times_x(reg);
        slices[0][i] = reg;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int s = 1; s < 8; s++)
            slices[s][i] = slices[s - 1][i] >> 8 ^
                           slices[0][slices[s - 1][i] & 255];
    byte_powers[0] = kp__crc32c_power(8);
    for (int k = 1; k < 64; k++)
        byte_powers[k] =
            kp__crc32c_multiply(byte_powers[k - 1], byte_powers[k - 1]);
}

/* -- Choosing -- */

/* Null until chosen.  Release and acquire: who reads it sees the tables. */
static _Atomic(const struct crc32c_impl *) chosen;

static void choose(void)
{
    size_t n;

    make_tables();
    n = kp__crc32c_native(impls);
    impls[n] = (struct crc32c_impl){"table", update_portable,
                                    kp__crc32c_shift_portable};
    atomic_store_explicit(&chosen, impls, memory_order_release);
}

const struct crc32c_impl *kp__crc32c_impls(void)
{
    const struct crc32c_impl *i =
        atomic_load_explicit(&chosen, memory_order_acquire);

    if (i != NULL)
        return i;
    (void)pthread_once(&once, choose);
    return impls;
}

uint32_t kp__crc32c(uint32_t crc, const void *data, size_t size)
{
    return ~kp__crc32c_impls()->update(~crc, data, size);
}

uint32_t kp__crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t size_b)
{
    /* The complements cancel out: they are the same zeroes' crc on both sides.
     * */
    return kp__crc32c_impls()->shift(crc_a, size_b) ^ crc_b;
}

uint32_t kp__crc32c_portable(uint32_t crc, const void *data, size_t size)
{
    (void)kp__crc32c_impls();
    return ~update_portable(~crc, data, size);
}

const char *kp__crc32c_name(void)
{
    return kp__crc32c_impls()->name;
}
