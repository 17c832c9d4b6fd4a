/* SPDX-License-Identifier: BSD-2-Clause */
/* crc32c_arm.c - CRC-32C with the ARMv8 instructions, three streams at once.
 * Any thread. */
#include "lib/base/crc32c_impl.h"

#if defined(__aarch64__) && defined(__linux__) && \
    defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#include <arm_acle.h>
#include <asm/hwcap.h>
#include <string.h>
#include <sys/auxv.h>

#if defined(__clang__)
#define WITH_CRC __attribute__((target("crc")))
#else
#define WITH_CRC __attribute__((target("+crc")))
#endif

static uint64_t load64(const unsigned char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

#define BLOCK ((size_t)1024)

/* The instruction takes three cycles and one can start in each, so three
 * streams run side by side; then the first two are shifted over what follows.
 * */
WITH_CRC static uint32_t update_blocks(uint32_t reg, const unsigned char *p)
{
    uint32_t a = reg, b = 0, c = 0;

    for (size_t i = 0; i < BLOCK; i += 8) {
        a = __crc32cd(a, load64(p + i));
        b = __crc32cd(b, load64(p + BLOCK + i));
        c = __crc32cd(c, load64(p + 2 * BLOCK + i));
    }
    return kp__crc32c_shift_portable(a, 2 * BLOCK) ^
           kp__crc32c_shift_portable(b, BLOCK) ^ c;
}

WITH_CRC static uint32_t update(uint32_t reg, const unsigned char *p,
                                size_t size)
{
    for (; size >= 3 * BLOCK; p += 3 * BLOCK, size -= 3 * BLOCK)
        reg = update_blocks(reg, p);
    for (; size >= 8; p += 8, size -= 8)
        reg = __crc32cd(reg, load64(p));
    for (; size != 0; p++, size--)
        reg = __crc32cb(reg, *p);
    return reg;
}

size_t kp__crc32c_native(struct crc32c_impl *out)
{
    if (!(getauxval(AT_HWCAP) & HWCAP_CRC32))
        return 0;
    *out = (struct crc32c_impl){"armv8", update, kp__crc32c_shift_portable};
    return 1;
}

#elif !defined(__x86_64__) || !defined(__GNUC__)

size_t kp__crc32c_native(struct crc32c_impl *out)
{
    (void)out;
    return 0;
}

#else
extern int kp__crc32c_arm_nothing;
#endif
