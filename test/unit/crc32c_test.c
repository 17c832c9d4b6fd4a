/* SPDX-License-Identifier: BSD-2-Clause */
/* crc32c_test.c - published vectors, every implementation this CPU can run
 * against one computed bit by bit here, and combining. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/crc32c_impl.h"
#include "lib/base/rand.h"
#include "test/support/main.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
enum { DATA_SIZE = 70000 };

static unsigned char *data;

static void set_up(void)
{
    struct rng r;

    data = malloc(DATA_SIZE);
    ck_assert_ptr_nonnull(data);
    kp__rng_seed(&r, 1);
    for (int i = 0; i < DATA_SIZE; i++)
        data[i] = (unsigned char)kp__rng_next(&r);
}

static void tear_down(void)
{
    free(data);
}

/* The definition, one bit at a time. */
static uint32_t by_bits(uint32_t crc, const unsigned char *p, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ UINT32_C(0x82f63b78) : crc >> 1;
    }
    return ~crc;
}

static uint32_t with(const struct crc32c_impl *impl, uint32_t crc,
                     const unsigned char *p, size_t size)
{
    return ~impl->update(~crc, p, size);
}

static const unsigned char zeroes[32], ones[32] = {
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
static const unsigned char counting[32] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
static const unsigned char down[32] = {
    31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
    15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0};

/* RFC 3720 appendix B.4 and the usual ones. */
static const struct {
    const void *data;
    size_t size;
    uint32_t crc;
} vectors[] = {
    {"", 0, 0x00000000},           {"a", 1, 0xc1d04330},
    {"123456789", 9, 0xe3069283},  {zeroes, 32, 0x8a9136aa},
    {ones, 32, 0x62a8ab43},        {counting, 32, 0x46dd794e},
    {down, 32, 0x113fdb5c},
};

START_TEST(vectors_in_every_implementation)
{
    const void *p = vectors[_i].data;
    size_t size = vectors[_i].size;
    uint32_t crc = vectors[_i].crc;

    ck_assert_uint_eq(kp__crc32c(0, p, size), crc);
    ck_assert_uint_eq(kp__crc32c_portable(0, p, size), crc);
    ck_assert_uint_eq(by_bits(0, p, size), crc);
    for (const struct crc32c_impl *i = kp__crc32c_impls(); i->name; i++)
        ck_assert_msg(with(i, 0, p, size) == crc, "%s", i->name);
}
END_TEST

START_TEST(the_table_is_always_there_and_the_first_is_chosen)
{
    const struct crc32c_impl *i = kp__crc32c_impls();

    ck_assert_str_eq(kp__crc32c_name(), i->name);
    while (i[1].name != NULL)
        i++;
    ck_assert_str_eq(i->name, "table");
}
END_TEST

/* Every size up to a few folding steps, at eight alignments. */
START_TEST(all_small_sizes_and_alignments)
{
    const struct crc32c_impl *impls = kp__crc32c_impls();

    for (size_t size = 0; size < 900; size++) {
        size_t from = size % 8;
        uint32_t expected = by_bits(0x12345678, data + from, size);

        for (const struct crc32c_impl *i = impls; i->name; i++)
            ck_assert_msg(
                with(i, 0x12345678, data + from, size) == expected,
                "%s, %zu bytes", i->name, size);
    }
}
END_TEST

START_TEST(sizes_around_block_edges)
{
    static const size_t edges[] = {1024, 3072, 4096, 12288, 24576, 65536};
    const struct crc32c_impl *impls = kp__crc32c_impls();

    for (size_t e = 0; e < COUNT(edges); e++)
        for (size_t size = edges[e] - 9; size <= edges[e] + 9; size++) {
            uint32_t expected = by_bits(7, data + 3, size);

            for (const struct crc32c_impl *i = impls; i->name; i++)
                ck_assert_msg(with(i, 7, data + 3, size) == expected,
                              "%s, %zu bytes", i->name, size);
        }
}
END_TEST

START_TEST(pieces_give_the_crc_of_the_whole)
{
    const struct crc32c_impl *impls = kp__crc32c_impls();
    uint32_t expected = by_bits(0, data, DATA_SIZE);
    struct rng r;

    kp__rng_seed(&r, 2);
    for (const struct crc32c_impl *i = impls; i->name; i++) {
        uint32_t crc = 0;
        size_t at = 0;

        while (at < DATA_SIZE) {
            size_t n = kp__rng_below(&r, 5000);

            n = n < DATA_SIZE - at ? n : DATA_SIZE - at;
            crc = with(i, crc, data + at, n);
            at += n;
        }
        ck_assert_msg(crc == expected, "%s", i->name);
    }
}
END_TEST

START_TEST(combine_equals_the_whole)
{
    struct rng r;

    kp__rng_seed(&r, 3);
    for (int round = 0; round < 200; round++) {
        size_t a = kp__rng_below(&r, 3000), b = kp__rng_below(&r, 60000);
        uint32_t crc_a = kp__crc32c(0, data, a);
        uint32_t crc_b = kp__crc32c(0, data + a, b);
        uint32_t whole = kp__crc32c(0, data, a + b);

        ck_assert_uint_eq(kp__crc32c_combine(crc_a, crc_b, b), whole);
        for (const struct crc32c_impl *i = kp__crc32c_impls(); i->name; i++)
            ck_assert_msg((i->shift(crc_a, b) ^ crc_b) == whole, "%s",
                          i->name);
    }
}
END_TEST

START_TEST(combine_with_nothing)
{
    uint32_t crc = kp__crc32c(0, "123456789", 9);

    ck_assert_uint_eq(kp__crc32c_combine(crc, 0, 0), crc);
    ck_assert_uint_eq(kp__crc32c_combine(0, crc, 9), crc);
}
END_TEST

/* Sizes that no test can hold: moving on by a and then by b is a + b. */
START_TEST(combine_over_huge_sizes)
{
    static const uint64_t sizes[] = {
        UINT64_C(1) << 31, (UINT64_C(1) << 31) - 1, UINT64_C(1) << 40,
        (UINT64_C(1) << 62) + 12345};

    for (size_t s = 0; s < COUNT(sizes); s++) {
        uint64_t half = sizes[s] / 2, rest = sizes[s] - half;

        for (const struct crc32c_impl *i = kp__crc32c_impls(); i->name; i++) {
            uint32_t once = i->shift(0xdeadbeef, sizes[s]);

            ck_assert_uint_eq(
                once, kp__crc32c_shift_portable(0xdeadbeef, sizes[s]));
            ck_assert_uint_eq(i->shift(i->shift(0xdeadbeef, half), rest),
                              once);
        }
    }
}
END_TEST

START_TEST(powers_of_x)
{
    const uint32_t one = UINT32_C(1) << 31;

    ck_assert_uint_eq(kp__crc32c_power(0), one);
    ck_assert_uint_eq(kp__crc32c_power(31), 1);
    ck_assert_uint_eq(kp__crc32c_power(32), UINT32_C(0x82f63b78));
    ck_assert_uint_eq(
        kp__crc32c_multiply(kp__crc32c_power(33), kp__crc32c_power(-33)), one);
}
END_TEST

static Suite *crc32c_suite(void)
{
    Suite *s = suite_create("crc32c");
    TCase *c = tcase_create("crc32c");

    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_loop_test(c, vectors_in_every_implementation, 0,
                        COUNT(vectors));
    tcase_add_test(c, the_table_is_always_there_and_the_first_is_chosen);
    tcase_add_test(c, all_small_sizes_and_alignments);
    tcase_add_test(c, sizes_around_block_edges);
    tcase_add_test(c, pieces_give_the_crc_of_the_whole);
    tcase_add_test(c, combine_equals_the_whole);
    tcase_add_test(c, combine_with_nothing);
    tcase_add_test(c, combine_over_huge_sizes);
    tcase_add_test(c, powers_of_x);
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(crc32c_suite)
