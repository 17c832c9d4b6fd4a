/* SPDX-License-Identifier: BSD-2-Clause */
/* crc32c_x86.c - CRC-32C with the instructions of x86-64.  Any thread; the
 * constants are written once, before first use.
 *
 * Three ideas.  The crc32 instruction eats eight bytes.  Three of them run side
 * by side on three blocks, joined by carry-less multiplication.  Or blocks of
 * 256 bytes are folded into one another: M(x) x^D + N is the same, modulo the
 * polynomial, as M times the constant x^D mod P, plus N, and a vector holds
 * four such products; the crc32 instruction then reduces the last 16 bytes. */
#include "lib/base/crc32c_impl.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>
#include <string.h>

#define SSE42 __attribute__((target("sse4.2")))
#define PCLMUL __attribute__((target("sse4.2,pclmul")))
#define VPCLMUL256 __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))
#define VPCLMUL512 \
    __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq,avx512f,avx512vl")))

static uint64_t load64(const unsigned char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* -- One stream -- */

SSE42 static uint32_t update_serial(uint32_t reg, const unsigned char *p,
                                    size_t size)
{
    uint64_t wide = reg;

    for (; size >= 8; p += 8, size -= 8)
        wide = _mm_crc32_u64(wide, load64(p));
    reg = (uint32_t)wide;
    for (; size != 0; p++, size--)
        reg = _mm_crc32_u8(reg, *p);
    return reg;
}

/* -- Shifting with the multiplier --
 *
 * The product of two registers, read as eight message bytes by the crc32
 * instruction, comes out as a b x^33: constants are made with 33 less. */

static uint32_t shift_by[64]; /* [k]: x^(8 * 2^k - 33) */

PCLMUL static uint32_t multiply33(uint32_t a, uint32_t b)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a),
                                           _mm_cvtsi32_si128((int)b), 0);

    return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

PCLMUL static uint32_t shift_pclmul(uint32_t a, uint64_t size)
{
    for (int k = 0; size != 0; k++, size >>= 1)
        if (size & 1)
            a = multiply33(a, shift_by[k]);
    return a;
}

/* -- Three streams -- */

#define LONG_BLOCK ((size_t)4096)
#define SHORT_BLOCK ((size_t)256)

static uint32_t over_one_long, over_two_long, over_one_short, over_two_short;

PCLMUL static uint32_t three(uint32_t reg, const unsigned char *p,
                             size_t block, uint32_t over_one,
                             uint32_t over_two)
{
    uint64_t a = reg, b = 0, c = 0;

    for (size_t i = 0; i < block; i += 8) {
        a = _mm_crc32_u64(a, load64(p + i));
        b = _mm_crc32_u64(b, load64(p + block + i));
        c = _mm_crc32_u64(c, load64(p + 2 * block + i));
    }
    return multiply33((uint32_t)a, over_two) ^
           multiply33((uint32_t)b, over_one) ^ (uint32_t)c;
}

PCLMUL static uint32_t update_three(uint32_t reg, const unsigned char *p,
                                    size_t size)
{
    for (; size >= 3 * LONG_BLOCK; p += 3 * LONG_BLOCK, size -= 3 * LONG_BLOCK)
        reg = three(reg, p, LONG_BLOCK, over_one_long, over_two_long);
    for (; size >= 3 * SHORT_BLOCK;
         p += 3 * SHORT_BLOCK, size -= 3 * SHORT_BLOCK)
        reg = three(reg, p, SHORT_BLOCK, over_one_short, over_two_short);
    return update_serial(reg, p, size);
}

/* -- Folding --
 *
 * In a 128-bit lane the low quadword holds the higher powers.  A product of two
 * reflected quadwords reads one power too high, so to move a lane D bits on,
 * the constants are x^(D + 63) for the low quadword and x^(D - 1) for the high.
 * */

struct fold {
    uint64_t low, high;
};

static struct fold by_2048, by_1024, by_512, by_384, by_256, by_128;

static struct fold make_fold(int bits)
{
    return (struct fold){(uint64_t)kp__crc32c_power(bits + 63) << 32,
                         (uint64_t)kp__crc32c_power(bits - 1) << 32};
}

PCLMUL static __m128i constant(struct fold f)
{
    return _mm_set_epi64x((long long)f.high, (long long)f.low);
}

/* The crc register of 16 folded bytes. */
PCLMUL static uint32_t reduce(__m128i lane)
{
    uint64_t reg = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(lane));

    return (uint32_t)_mm_crc32_u64(reg, (uint64_t)_mm_extract_epi64(lane, 1));
}

VPCLMUL256 static __m256i load256(const unsigned char *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

VPCLMUL256 static __m256i fold256(__m256i x, __m256i k, __m256i next)
{
    __m256i low = _mm256_clmulepi64_epi128(x, k, 0x00);
    __m256i high = _mm256_clmulepi64_epi128(x, k, 0x11);

    return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

VPCLMUL256 static __m128i fold128(__m128i x, struct fold f, __m128i next)
{
    __m128i k = constant(f);
    __m128i low = _mm_clmulepi64_si128(x, k, 0x00);
    __m128i high = _mm_clmulepi64_si128(x, k, 0x11);

    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

#define FOLD256_STEP 128 /* bytes: four vectors */

/* size is at least one step, and a multiple of 32. */
VPCLMUL256 static uint32_t fold_all256(uint32_t reg, const unsigned char *p,
                                       size_t size)
{
    const __m256i k1024 = _mm256_broadcastsi128_si256(constant(by_1024));
    const __m256i k256 = _mm256_broadcastsi128_si256(constant(by_256));
    __m256i x0 = load256(p), x1 = load256(p + 32);
    __m256i x2 = load256(p + 64), x3 = load256(p + 96);

    x0 = _mm256_xor_si256(x0, _mm256_set_epi32(0, 0, 0, 0, 0, 0, 0, (int)reg));
    for (p += FOLD256_STEP, size -= FOLD256_STEP; size >= FOLD256_STEP;
         p += FOLD256_STEP, size -= FOLD256_STEP) {
        x0 = fold256(x0, k1024, load256(p));
        x1 = fold256(x1, k1024, load256(p + 32));
        x2 = fold256(x2, k1024, load256(p + 64));
        x3 = fold256(x3, k1024, load256(p + 96));
    }
    x3 = fold256(fold256(fold256(x0, k256, x1), k256, x2), k256, x3);
    for (; size != 0; p += 32, size -= 32)
        x3 = fold256(x3, k256, load256(p));
    return reduce(fold128(_mm256_castsi256_si128(x3), by_128,
                          _mm256_extracti128_si256(x3, 1)));
}

VPCLMUL256 static uint32_t update_fold256(uint32_t reg, const unsigned char *p,
                                          size_t size)
{
    if (size >= FOLD256_STEP) {
        size_t folded = size & ~(size_t)31;

        reg = fold_all256(reg, p, folded);
        p += folded;
        size -= folded;
    }
    return update_serial(reg, p, size);
}

VPCLMUL512 static __m512i load512(const unsigned char *p)
{
    return _mm512_loadu_si512((const void *)p);
}

VPCLMUL512 static __m512i fold512(__m512i x, __m512i k, __m512i next)
{
    __m512i low = _mm512_clmulepi64_epi128(x, k, 0x00);
    __m512i high = _mm512_clmulepi64_epi128(x, k, 0x11);

    /* 0x96: the exclusive or of all three */
    return _mm512_ternarylogic_epi64(low, high, next, 0x96);
}

/* The four lanes as one. */
VPCLMUL512 static __m128i join512(__m512i x)
{
    __m128i last = _mm512_extracti32x4_epi32(x, 3);

    last = fold128(_mm512_extracti32x4_epi32(x, 2), by_128, last);
    last = fold128(_mm512_extracti32x4_epi32(x, 1), by_256, last);
    return fold128(_mm512_castsi512_si128(x), by_384, last);
}

#define FOLD512_STEP 256 /* bytes: four vectors */

/* size is at least one step, and a multiple of 64. */
VPCLMUL512 static uint32_t fold_all512(uint32_t reg, const unsigned char *p,
                                       size_t size)
{
    const __m512i k2048 = _mm512_broadcast_i32x4(constant(by_2048));
    const __m512i k512 = _mm512_broadcast_i32x4(constant(by_512));
    __m512i x0 = load512(p), x1 = load512(p + 64);
    __m512i x2 = load512(p + 128), x3 = load512(p + 192);

    x0 = _mm512_xor_si512(
        x0, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)reg)));
    for (p += FOLD512_STEP, size -= FOLD512_STEP; size >= FOLD512_STEP;
         p += FOLD512_STEP, size -= FOLD512_STEP) {
        x0 = fold512(x0, k2048, load512(p));
        x1 = fold512(x1, k2048, load512(p + 64));
        x2 = fold512(x2, k2048, load512(p + 128));
        x3 = fold512(x3, k2048, load512(p + 192));
    }
    x3 = fold512(fold512(fold512(x0, k512, x1), k512, x2), k512, x3);
    for (; size != 0; p += 64, size -= 64)
        x3 = fold512(x3, k512, load512(p));
    return reduce(join512(x3));
}

VPCLMUL512 static uint32_t update_fold512(uint32_t reg, const unsigned char *p,
                                          size_t size)
{
    if (size >= FOLD512_STEP) {
        size_t folded = size & ~(size_t)63;

        reg = fold_all512(reg, p, folded);
        p += folded;
        size -= folded;
    }
    return update_serial(reg, p, size);
}

/* -- What there is -- */

static void make_constants(void)
{
    for (int k = 0; k < 64; k++) {
        uint32_t shifted = kp__crc32c_shift_portable(kp__crc32c_power(-33),
                                                     UINT64_C(1) << k);

        shift_by[k] = shifted;
    }
    over_one_long = kp__crc32c_power(8 * (int64_t)LONG_BLOCK - 33);
    over_two_long = kp__crc32c_power(16 * (int64_t)LONG_BLOCK - 33);
    over_one_short = kp__crc32c_power(8 * (int64_t)SHORT_BLOCK - 33);
    over_two_short = kp__crc32c_power(16 * (int64_t)SHORT_BLOCK - 33);
    by_2048 = make_fold(2048);
    by_1024 = make_fold(1024);
    by_512 = make_fold(512);
    by_384 = make_fold(384);
    by_256 = make_fold(256);
    by_128 = make_fold(128);
}

size_t kp__crc32c_native(struct crc32c_impl *out)
{
    const struct crc32c_impl all[CRC32C_NATIVE_MAX] = {
        {"vpclmulqdq-512", update_fold512, shift_pclmul},
        {"vpclmulqdq-256", update_fold256, shift_pclmul},
        {"sse4.2-pclmul", update_three, shift_pclmul},
        {"sse4.2", update_serial, kp__crc32c_shift_portable},
    };
    const int sse42 = __builtin_cpu_supports("sse4.2");
    const int pclmul = sse42 && __builtin_cpu_supports("pclmul");
    const int fold = pclmul && __builtin_cpu_supports("vpclmulqdq") &&
                     __builtin_cpu_supports("avx2");
    const int can[CRC32C_NATIVE_MAX] = {
        fold && __builtin_cpu_supports("avx512f") &&
            __builtin_cpu_supports("avx512vl"),
        fold, pclmul, sse42};
    size_t n = 0;

    make_constants();
    for (size_t i = 0; i < CRC32C_NATIVE_MAX; i++)
        if (can[i])
            out[n++] = all[i];
    return n;
}

#else
extern int kp__crc32c_x86_nothing;
#endif
