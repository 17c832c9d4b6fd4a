/* SPDX-License-Identifier: BSD-2-Clause */
/* codec_test.c - the codecs: round trips over sizes, pieces and levels, the
 * bytes of their frames, what Kafka's Java client wrote, limits, and hostile
 * input. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rand.h"
#include "lib/codec/codec.h"
#include "test/support/main.h"

#define MAX_INPUT ((size_t)1100000)

enum content { TEXT, NOISE, ZEROES, CONTENTS };

static const enum codec_id ids[] = {CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4,
                                    CODEC_ZSTD};
#define IDS ((int)(sizeof(ids) / sizeof(ids[0])))

/* The codec of a loop test's index; NULL: not in this build. */
static const struct codec *codec_at(int i)
{
    return kp__codec(ids[i]);
}

static void fill(uint8_t *out, size_t size, enum content content)
{
    static const char *const words[] = {"order",    "paid",      "\":",
                                        "{\"id\":", "warehouse", "eu-west-1",
                                        ",\"",      "}"};
    struct rng r;
    size_t at = 0;

    kp__rng_seed(&r, 7);
    memset(out, 0, size);
    while (at < size && content == NOISE)
        out[at++] = (uint8_t)kp__rng_next(&r);
    while (at < size && content == TEXT) {
        const char *w = words[kp__rng_below(&r, 8)];
        size_t n = strlen(w) < size - at ? strlen(w) : size - at;

        memcpy(out + at, w, n);
        at += n;
        if (at < size)
            out[at++] = (uint8_t)('0' + kp__rng_below(&r, 10));
    }
}

/* Cut data into pieces; `how` 0: one, 1: of 16 KiB, else random and some empty.
 * Returns how many. */
static int cut(uint8_t *data, size_t size, unsigned how, struct iovec *iov,
               int max)
{
    struct rng r;
    size_t at = 0;
    int n = 0;

    kp__rng_seed(&r, how);
    while (n < max - 1 && at < size && how > 0) {
        size_t len = how == 1 ? 16384 : kp__rng_below(&r, 20000);

        if (how > 1 && kp__rng_below(&r, 4) == 0)
            len = 0;
        if (len > size - at)
            len = size - at;
        iov[n].iov_base = data + at;
        iov[n++].iov_len = len;
        at += len;
    }
    iov[n].iov_base = data + at;
    iov[n++].iov_len = size - at;
    return n;
}

struct packed {
    uint8_t *data;
    size_t size, capacity;
};

/* Compress with a fresh context; the caller frees data. */
static struct packed pack(const struct codec *c, int level, uint8_t *in,
                          size_t size, unsigned how)
{
    static struct iovec iov[256];
    struct codec_context *x = c->create(level, size);
    struct packed p;
    int n = cut(in, size, how, iov, 256);

    ck_assert_ptr_nonnull(x);
    p.capacity = size + size / 6 + 1024;
    p.data = malloc(p.capacity);
    ck_assert_ptr_nonnull(p.data);
    p.size = c->compress(x, iov, n, p.data, p.capacity);
    c->destroy(x);
    return p;
}

static void assert_unpacks(const struct codec *c, const uint8_t *in,
                           size_t in_size, const void *want, size_t size)
{
    struct buf b;

    kp__buf_init(&b);
    kp__buf_append(&b, "before", 6);
    ck_assert(c->decompress(in, in_size, size, &b));
    ck_assert_uint_eq(b.size, size + 6);
    ck_assert_mem_eq(b.data, "before", 6);
    if (size > 0)
        ck_assert_mem_eq(b.data + 6, want, size);
    kp__buf_fini(&b);
}

/* Refused, and the buffer is as it was. */
static void assert_refused(const struct codec *c, const uint8_t *in,
                           size_t in_size, size_t max)
{
    struct buf b;

    kp__buf_init(&b);
    kp__buf_append(&b, "before", 6);
    ck_assert(!c->decompress(in, in_size, max, &b));
    ck_assert_uint_eq(b.size, 6);
    ck_assert_mem_eq(b.data, "before", 6);
    kp__buf_fini(&b);
}

static const size_t sizes[] = {
    0,      1,      2,      3,      15,     16,      17,       100,
    4096,   16384,  32767,  32768,  32769,  65535,   65536,    65537,
    131072, 131073, 200001, 262144, 262145, 1048576, MAX_INPUT};

START_TEST(round_trips)
{
    const struct codec *c = codec_at(_i);
    uint8_t *in = malloc(MAX_INPUT);

    for (int content = 0; content < CONTENTS; content++) {
        fill(in, MAX_INPUT, (enum content)content);
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            struct packed whole = pack(c, c->level_default, in, sizes[s], 0);

            ck_assert_uint_gt(whole.size, 0);
            assert_unpacks(c, whole.data, whole.size, in, sizes[s]);
            for (unsigned how = 1; how < 4; how++) {
                struct packed p = pack(c, c->level_default, in, sizes[s], how);

                assert_unpacks(c, p.data, p.size, in, sizes[s]);
                free(p.data);
            }
            free(whole.data);
        }
    }
    free(in);
}
END_TEST

/* Codecs that see whole blocks give the same bytes however the input lies. */
START_TEST(pieces_do_not_show)
{
    const struct codec *c = codec_at(_i);
    size_t size = 300000;
    uint8_t *in = malloc(size);

    fill(in, size, TEXT);
    for (unsigned how = 1; how < 12; how++) {
        struct packed a = pack(c, c->level_default, in, size, 0);
        struct packed b = pack(c, c->level_default, in, size, how);

        ck_assert_uint_eq(a.size, b.size);
        ck_assert_mem_eq(a.data, b.data, a.size);
        free(a.data);
        free(b.data);
    }
    free(in);
}
END_TEST

START_TEST(levels)
{
    const struct codec *c = codec_at(_i);
    static const int tried[] = {-131072, -5, -1, 0, 1,  2,  3,  4,  5,
                                6,       7,  8,  9, 10, 12, 17, 19, 22};
    size_t size = 150000, largest = 0, smallest = SIZE_MAX;
    uint8_t *in = malloc(size);

    fill(in, size, TEXT);
    for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
        struct packed p;

        if (tried[i] < c->level_min || tried[i] > c->level_max)
            continue;
        p = pack(c, tried[i], in, size, 1);
        ck_assert_uint_gt(p.size, 0);
        assert_unpacks(c, p.data, p.size, in, size);
        largest = p.size > largest ? p.size : largest;
        smallest = p.size < smallest ? p.size : smallest;
        free(p.data);
    }
    /* Levels make a difference where there are any. */
    ck_assert(c->level_min == c->level_max ? largest == smallest
                                           : largest > smallest);
    free(in);
}
END_TEST

/* lz4 9 is the fast compressor, so it is less thorough than 8 and 10. */
START_TEST(lz4_level_9_is_fast)
{
    const struct codec *c = kp__codec(CODEC_LZ4);
    size_t size = 60000;
    uint8_t *in = malloc(size);
    struct packed p8, p9, p10;

    fill(in, size, TEXT);
    p8 = pack(c, 8, in, size, 0);
    p9 = pack(c, 9, in, size, 0);
    p10 = pack(c, 10, in, size, 0);
    ck_assert_uint_lt(p8.size, p9.size);
    ck_assert_uint_lt(p10.size, p9.size);
    free(p8.data);
    free(p9.data);
    free(p10.data);
    free(in);
}
END_TEST

/* -1: docs/decisions/gzip-libdeflate.md. */
START_TEST(gzip_default_level)
{
#ifdef HAVE_LIBDEFLATE
    const int expected = 3, dearer = 6;
#else
    const int expected = 6, dearer = 9;
#endif
    const struct codec *c = kp__codec(CODEC_GZIP);
    size_t size = 60000;
    uint8_t *in = malloc(size);
    struct packed unset, same, other;

    fill(in, size, TEXT);
    unset = pack(c, -1, in, size, 0);
    same = pack(c, expected, in, size, 0);
    other = pack(c, dearer, in, size, 0);
    ck_assert_uint_eq(unset.size, same.size);
    ck_assert_mem_eq(unset.data, same.data, same.size);
    ck_assert_uint_lt(other.size, unset.size);
    free(unset.data);
    free(same.data);
    free(other.data);
    free(in);
}
END_TEST

static bool untouched(const uint8_t *p, size_t size)
{
    while (size > 0 && p[size - 1] == 0xee)
        size--;
    return size == 0;
}

/* Any capacity: a right answer that fits, or 0; never a byte past it. */
START_TEST(capacity)
{
    const struct codec *c = codec_at(_i);
    size_t size = 70000, got;
    uint8_t *in = malloc(size), *out = malloc(2 * size);
    struct codec_context *x;
    struct iovec iov[2];
    struct packed whole;

    for (int content = 0; content < CONTENTS; content++) {
        fill(in, size, (enum content)content);
        whole = pack(c, c->level_default, in, size, 0);
        x = c->create(c->level_default, size);
        ck_assert_ptr_nonnull(x);
        iov[0] = (struct iovec){in, 1000};
        iov[1] = (struct iovec){in + 1000, size - 1000};
        for (size_t cap = 0; cap < whole.size; cap += 1 + whole.size / 97) {
            memset(out, 0xee, whole.size + 16);
            got = c->compress(x, iov, 2, out, cap);
            ck_assert_uint_eq(got, 0);
            ck_assert(untouched(out + cap, whole.size + 16 - cap));
        }
        ck_assert_uint_eq(c->compress(x, iov, 2, out, whole.size - 1), 0);
        /* A refusal leaves the context fit for the next body. */
        got = c->compress(x, iov, 2, out, 2 * size);
        ck_assert_uint_eq(got, whole.size);
        ck_assert_mem_eq(out, whole.data, whole.size);
        c->destroy(x);
        free(whole.data);
    }
    free(in);
    free(out);
}
END_TEST

START_TEST(too_large_for_the_context)
{
    const struct codec *c = codec_at(_i);
    uint8_t *in = calloc(1, 5000), out[6000];
    struct iovec iov = {in, 5000};
    struct codec_context *x;
    size_t n;

    x = c->create(c->level_default, 4999);
    ck_assert_ptr_nonnull(x);
    n = c->compress(x, &iov, 1, out, sizeof(out));
    /* Codecs that hold a whole body refuse; those that do not may go on. */
    if (n > 0)
        assert_unpacks(c, out, n, in, 5000);
    c->destroy(x);
    free(in);
}
END_TEST

/* One context, many sizes: small ones in a row, then large ones again. */
START_TEST(context_is_kept)
{
    const struct codec *c = codec_at(_i);
    size_t big = 600000;
    uint8_t *in = malloc(big), *out = malloc(2 * big);
    struct codec_context *x;

    fill(in, big, TEXT);
    x = c->create(c->level_default, big);
    ck_assert_ptr_nonnull(x);
    for (int i = 0; i < 900; i++) {
        size_t size = i % 300 == 0 ? big : (size_t)(i * 131) % 20000;
        struct iovec iov = {in, size};
        size_t n;
#ifdef KP_FAILMALLOC
        long before = kp__mem_calls();
#endif

        n = c->compress(x, &iov, 1, out, 2 * big);
#ifdef KP_FAILMALLOC
        ck_assert_int_eq(kp__mem_calls(), before);
#endif
        ck_assert_uint_gt(n, 0);
        if (i % 50 == 0)
            assert_unpacks(c, out, n, in, size);
    }
    c->destroy(x);
    free(in);
    free(out);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(no_memory)
{
    const struct codec *c = codec_at(_i);
    long live = kp__mem_live();
    int failures = 0;

    for (long nth = 1; nth < 40; nth++) {
        struct codec_context *x;

        kp__mem_fail_at(nth);
        x = c->create(c->level_default, 300000);
        kp__mem_fail_at(-1);
        if (x == NULL) {
            failures++;
            ck_assert_int_eq(kp__mem_live(), live);
            continue;
        }
        c->destroy(x);
        ck_assert_int_eq(kp__mem_live(), live);
    }
    ck_assert_int_ge(failures, 1);
}
END_TEST

START_TEST(no_memory_to_decompress)
{
    const struct codec *c = codec_at(_i);
    uint8_t *in = calloc(1, 100000);
    struct packed p;

    p = pack(c, c->level_default, in, 100000, 0);
    for (long nth = 1; nth < 20; nth++) {
        struct buf b;

        kp__buf_init(&b);
        kp__mem_fail_at(nth);
        if (!c->decompress(p.data, p.size, 100000, &b))
            ck_assert_uint_eq(b.size, 0);
        else
            ck_assert_uint_eq(b.size, 100000);
        kp__mem_fail_at(-1);
        kp__buf_fini(&b);
    }
    free(p.data);
    free(in);
}
END_TEST
#endif

START_TEST(gzip_bytes)
{
    const struct codec *c = kp__codec(CODEC_GZIP);
    uint8_t in[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct packed p;
    size_t n = sizeof(in) - 1;

    p = pack(c, c->level_default, in, n, 0);
    ck_assert_uint_lt(p.size, n);
    /* RFC 1952: magic, deflate, no flags, no time; at the end the size. */
    ck_assert_mem_eq(p.data, "\x1f\x8b\x08\x00\x00\x00\x00\x00", 8);
    ck_assert_mem_eq(p.data + p.size - 4, "\x30\x00\x00\x00", 4);
    free(p.data);
}
END_TEST

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 |
           p[0];
}

START_TEST(snappy_bytes)
{
    const struct codec *c = kp__codec(CODEC_SNAPPY);
    size_t size = 3 * 32768 + 1, at = 16;
    uint8_t *in = malloc(size);
    struct packed p;
    int blocks = 0;

    fill(in, size, TEXT);
    p = pack(c, c->level_default, in, size, 1);
    ck_assert_mem_eq(p.data, "\x82SNAPPY\0\0\0\0\1\0\0\0\1", 16);
    for (; at < p.size; blocks++) {
        uint32_t n = be32(p.data + at);

        /* A raw block begins with its input's size as a varint: 32,768. */
        if (blocks < 3)
            ck_assert_mem_eq(p.data + at + 4, "\x80\x80\x02", 3);
        else
            ck_assert_uint_eq(p.data[at + 4], 1);
        at += 4 + n;
    }
    ck_assert_uint_eq(at, p.size);
    ck_assert_int_eq(blocks, 4);
    free(p.data);
    free(in);
}
END_TEST

static int lz4_blocks(const struct packed *p, int *raw)
{
    size_t at = 7;
    int blocks = 0;

    *raw = 0;
    ck_assert_mem_eq(p->data, "\x04\x22\x4d\x18\x60\x40\x82", 7);
    while (le32(p->data + at) != 0) {
        uint32_t n = le32(p->data + at);

        *raw += (n & UINT32_C(0x80000000)) != 0;
        n &= UINT32_C(0x7fffffff);
        ck_assert_uint_le(n, 65536);
        at += 4 + n;
        blocks++;
        ck_assert_uint_lt(at + 3, p->size);
    }
    ck_assert_uint_eq(at + 4, p->size);
    return blocks;
}

START_TEST(lz4_bytes)
{
    const struct codec *c = kp__codec(CODEC_LZ4);
    size_t size = 2 * 65536 + 5;
    uint8_t *in = malloc(size);
    struct packed p;
    int raw;

    fill(in, size, TEXT);
    p = pack(c, c->level_default, in, size, 2);
    ck_assert_int_eq(lz4_blocks(&p, &raw), 3);
    ck_assert_int_eq(raw, 1); /* five bytes do not shrink */
    free(p.data);
    fill(in, size, NOISE);
    p = pack(c, c->level_default, in, size, 2);
    ck_assert_int_eq(lz4_blocks(&p, &raw), 3);
    ck_assert_int_eq(raw, 3);
    ck_assert_uint_eq(p.size, 7 + 3 * 4 + size + 4);
    free(p.data);
    free(in);
}
END_TEST

START_TEST(zstd_bytes)
{
    const struct codec *c = kp__codec(CODEC_ZSTD);
    uint8_t in[1000] = {0};
    struct packed p;

    p = pack(c, c->level_default, in, sizeof(in), 0);
    ck_assert_mem_eq(p.data, "\x28\xb5\x2f\xfd", 4);
    /* No checksum, no dictionary, and the size in two bytes less 256. */
    ck_assert_uint_eq(p.data[4] & 0x07, 0);
    ck_assert_uint_eq(p.data[4] >> 6, 1);
    ck_assert_mem_eq(p.data + 5, "\xe8\x02", 2);
    free(p.data);
}
END_TEST

/* What Kafka 4.4.0's own classes wrote for the 300 bytes of java_body. */
static const char *const java_hex[] = {
    [CODEC_GZIP] = "1f8b08000000000000ffcbc94cca2e50284ecd4b2956284a4dce2f4a29"
                   "b656c81915c42608003c2981692c010000",
    [CODEC_SNAPPY] = "82534e4150505900000000010000000100000027ac02506c69626b70"
                     "2073656e6473207265636f7264733b20fe1500fe1500fe1500fe1500"
                     "5a1500",
    [CODEC_LZ4] = "04224d1860408221000000ff066c69626b702073656e6473207265636f"
                  "7264733b201500ff005069626b702000000000",
    [CODEC_ZSTD] = "28b52ffd0058e40000a86c69626b702073656e6473207265636f726473"
                   "3b20010029509d4c010000",
};

static size_t from_hex(uint8_t *out, const char *hex)
{
    size_t n = strlen(hex) / 2;

    for (size_t i = 0; i < n; i++) {
        const char pair[] = {hex[2 * i], hex[2 * i + 1], 0};

        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return n;
}

static void java_body(uint8_t out[300])
{
    for (size_t i = 0; i < 300; i++)
        out[i] = (uint8_t) "libkp sends records; "[i % 21];
}

START_TEST(reads_java)
{
    const struct codec *c = codec_at(_i);
    uint8_t in[200], want[300];

    java_body(want);
    assert_unpacks(c, in, from_hex(in, java_hex[c->id]), want, 300);
}
END_TEST

/* Two outputs, one after the other, are both read. */
START_TEST(members_follow_each_other)
{
    const struct codec *c = codec_at(_i);
    uint8_t in[400], want[600];
    size_t n, m;

    java_body(want);
    java_body(want + 300);
    n = from_hex(in, java_hex[c->id]);
    m = from_hex(in + n, java_hex[c->id]);
    assert_unpacks(c, in, n + m, want, 600);
    assert_refused(c, in, n + m, 599);
}
END_TEST

START_TEST(raw_snappy)
{
    const struct codec *c = kp__codec(CODEC_SNAPPY);
    uint8_t in[200], want[300];
    size_t n;

    java_body(want);
    n = from_hex(in, java_hex[CODEC_SNAPPY]);
    assert_unpacks(c, in + 20, n - 20, want, 300);
}
END_TEST

START_TEST(limit)
{
    const struct codec *c = codec_at(_i);
    size_t size = 4000000;
    uint8_t *in = calloc(1, size);
    struct packed p;
    struct buf b;

    p = pack(c, c->level_default, in, size, 0);
    ck_assert_uint_lt(p.size, size / 15);
    assert_unpacks(c, p.data, p.size, in, size);
    assert_refused(c, p.data, p.size, size - 1);
    assert_refused(c, p.data, p.size, 0);
    /* A small limit keeps the memory small, whatever the input claims. */
    kp__buf_init(&b);
    ck_assert(!c->decompress(p.data, p.size, 10000, &b));
    ck_assert_uint_eq(b.size, 0);
    ck_assert_uint_le(b.capacity, 200000);
    kp__buf_fini(&b);
    ck_assert(c->decompress(p.data, p.size, SIZE_MAX, &b));
    ck_assert_uint_eq(b.size, size);
    kp__buf_fini(&b);
    free(p.data);
    free(in);
}
END_TEST

START_TEST(snappy_lies_about_its_size)
{
    const struct codec *c = kp__codec(CODEC_SNAPPY);
    /* Raw: 4 GiB announced, one literal there. */
    static const uint8_t raw[] = {0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 'a'};
    uint8_t stream[16 + 4 + sizeof(raw)];
    struct buf b;

    memcpy(stream, "\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0\0\x07", 20);
    memcpy(stream + 20, raw, sizeof(raw));
    assert_refused(c, raw, sizeof(raw), 1000000);
    assert_refused(c, stream, sizeof(stream), 1000000);
    /* A block longer than what is there, and a negative one. */
    stream[19] = 8;
    assert_refused(c, stream, sizeof(stream), 1000000);
    stream[16] = 0xff;
    assert_refused(c, stream, sizeof(stream), 1000000);
    kp__buf_init(&b);
    ck_assert(!c->decompress(raw, sizeof(raw), 100, &b));
    ck_assert_uint_le(b.capacity, 4096);
    kp__buf_fini(&b);
}
END_TEST

/* Cut anywhere: refused, except a snappy stream between two blocks, where
 * nothing says that more should come. */
START_TEST(cut_short)
{
    const struct codec *c = codec_at(_i);
    size_t size = 80000, refused = 0;
    uint8_t *in = malloc(size);
    struct packed p;

    fill(in, size, TEXT);
    p = pack(c, c->level_default, in, size, 1);
    for (size_t n = 0; n < p.size; n += n < 64 ? 1 : 61) {
        /* A copy of just that size, so that reading past it is seen. */
        uint8_t *some = malloc(n > 0 ? n : 1);
        struct buf b;

        memcpy(some, p.data, n);
        kp__buf_init(&b);
        if (!c->decompress(some, n, size, &b)) {
            refused++;
            ck_assert_uint_eq(b.size, 0);
        } else {
            ck_assert_int_eq(c->id, CODEC_SNAPPY);
            ck_assert_uint_lt(b.size, size);
        }
        kp__buf_fini(&b);
        free(some);
    }
    ck_assert_uint_gt(refused, 64);
    free(p.data);
    free(in);
}
END_TEST

/* Any bit wrong: never past the limit, never past the input, and for gzip,
 * which has a checksum, never other content. */
START_TEST(one_bit_wrong)
{
    const struct codec *c = codec_at(_i);
    uint8_t in[3000], *bad;
    struct packed p;
    size_t accepted = 0;

    fill(in, sizeof(in), TEXT);
    p = pack(c, c->level_default, in, sizeof(in), 0);
    bad = malloc(p.size);
    for (size_t bit = 0; bit < p.size * 8; bit++) {
        struct buf b;
        bool ok;

        memcpy(bad, p.data, p.size);
        bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
        kp__buf_init(&b);
        ok = c->decompress(bad, p.size, sizeof(in), &b);
        ck_assert_uint_le(b.size, sizeof(in));
        if (!ok)
            ck_assert_uint_eq(b.size, 0);
        if (ok && c->id == CODEC_GZIP) {
            ck_assert_uint_eq(b.size, sizeof(in));
            ck_assert_mem_eq(b.data, in, sizeof(in));
        }
        accepted += ok;
        kp__buf_fini(&b);
    }
    /* gzip: nothing checks most of its ten-byte header, or the padding. */
    if (c->id == CODEC_GZIP)
        ck_assert_uint_le(accepted, 10 * 8 + 7);
    free(bad);
    free(p.data);
}
END_TEST

START_TEST(noise_is_refused)
{
    const struct codec *c = codec_at(_i);
    struct rng r;
    int accepted = 0;

    kp__rng_seed(&r, 99);
    for (int i = 0; i < 3000; i++) {
        size_t n = kp__rng_below(&r, 300);
        uint8_t *in = malloc(n + 1);
        struct buf b;

        fill(in, n, NOISE);
        for (size_t k = 0; k < n; k++)
            in[k] = (uint8_t)kp__rng_next(&r);
        kp__buf_init(&b);
        accepted += c->decompress(in, n, 100000, &b);
        ck_assert_uint_le(b.size, 100000);
        kp__buf_fini(&b);
        free(in);
    }
    /* Raw snappy has no magic; the other three refuse everything. */
    ck_assert_int_le(accepted, c->id == CODEC_SNAPPY ? 100 : 0);
}
END_TEST

START_TEST(the_table)
{
    char names[64] = "";

    ck_assert_ptr_null(kp__codec(CODEC_NONE));
    ck_assert_ptr_null(kp__codec((enum codec_id)5));
    ck_assert_ptr_null(kp__codec((enum codec_id)77));
    for (int i = 0; i < IDS; i++) {
        const struct codec *c = codec_at(i);

        if (c == NULL)
            continue;
        ck_assert_int_eq(c->id, ids[i]);
        ck_assert_int_ge(c->level_default, c->level_min);
        ck_assert_int_le(c->level_default, c->level_max);
        strcat(names, names[0] != 0 ? " " : "");
        strcat(names, c->name);
    }
    ck_assert_str_eq(kp__codec_names(), names);
}
END_TEST

/* Java's ranges: compression.{gzip,lz4,zstd}.level. */
START_TEST(levels_are_javas)
{
    static const int want[][3] = {
        [CODEC_GZIP] = {-1, 9, -1},
        [CODEC_SNAPPY] = {0, 0, 0},
        [CODEC_LZ4] = {1, 17, 9},
        [CODEC_ZSTD] = {-131072, 22, 3},
    };
    const struct codec *c = codec_at(_i);

    ck_assert_int_eq(c->level_min, want[c->id][0]);
    ck_assert_int_eq(c->level_max, want[c->id][1]);
    ck_assert_int_eq(c->level_default, want[c->id][2]);
}
END_TEST

/* Once for each codec of this build. */
static void add_all(TCase *t, const TTest *test)
{
    for (int i = 0; i < IDS; i++)
        if (codec_at(i) != NULL)
            tcase_add_loop_test(t, test, i, i + 1);
}

static void add_one(TCase *t, enum codec_id id, const TTest *test)
{
    if (kp__codec(id) != NULL)
        tcase_add_test(t, test);
}

static void add_frames(TCase *t)
{
    add_one(t, CODEC_LZ4, lz4_level_9_is_fast);
    add_one(t, CODEC_GZIP, gzip_default_level);
    add_one(t, CODEC_GZIP, gzip_bytes);
    add_one(t, CODEC_SNAPPY, snappy_bytes);
    add_one(t, CODEC_LZ4, lz4_bytes);
    add_one(t, CODEC_ZSTD, zstd_bytes);
    add_all(t, reads_java);
    add_all(t, members_follow_each_other);
    add_one(t, CODEC_SNAPPY, raw_snappy);
}

static void add_hostile(TCase *t)
{
    add_all(t, limit);
    add_one(t, CODEC_SNAPPY, snappy_lies_about_its_size);
    add_all(t, cut_short);
    add_all(t, one_bit_wrong);
    add_all(t, noise_is_refused);
#ifdef KP_FAILMALLOC
    add_all(t, no_memory);
    add_all(t, no_memory_to_decompress);
#endif
}

static Suite *codec_suite(void)
{
    Suite *s = suite_create("codec");
    TCase *t = tcase_create("codec");

    tcase_set_timeout(t, 120);
    tcase_add_test(t, the_table);
    add_all(t, levels_are_javas);
    add_all(t, round_trips);
    add_all(t, pieces_do_not_show);
    add_all(t, levels);
    add_all(t, capacity);
    add_all(t, too_large_for_the_context);
    add_all(t, context_is_kept);
    add_frames(t);
    add_hostile(t);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(codec_suite)
