/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of variable length: sizes and bytes as Kafka's own, both ways. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/reader.h"
#include "lib/wire/varint.h"
#include "test/support/golden.h"
#include "test/support/main.h"

static struct golden_file file;

struct number { /* "varint -1 01" */
    char kind[16];
    long long value;
    const char *hex;
};

static struct number number_of(const char *line)
{
    struct number n;

    ck_assert_int_eq(sscanf(line, "%15s %lld", n.kind, &n.value), 2);
    n.hex = strrchr(line, ' ') + 1;
    return n;
}

static void check_written(const struct number *n, const uint8_t *want,
                          size_t size)
{
    uint8_t out[VARLONG_MAX_SIZE];
    uint8_t *end;

    if (strcmp(n->kind, "varint") == 0) {
        end = kp__varint_put(out, (int32_t)n->value);
        ck_assert_uint_eq(kp__varint_size((int32_t)n->value), size);
    } else if (strcmp(n->kind, "varlong") == 0) {
        end = kp__varlong_put(out, n->value);
        ck_assert_uint_eq(kp__varlong_size(n->value), size);
    } else {
        end = kp__uvarint_put(out, (uint64_t)n->value);
        ck_assert_uint_eq(kp__uvarint_size((uint64_t)n->value), size);
    }
    ck_assert_uint_eq((size_t)(end - out), size);
    ck_assert_mem_eq(out, want, size);
}

static long long read_number(const struct number *n, struct reader *r)
{
    if (strcmp(n->kind, "varint") == 0)
        return kp__read_varint(r);
    if (strcmp(n->kind, "varlong") == 0)
        return kp__read_varlong(r);
    return kp__read_uvarint(r);
}

static void check_read(const struct number *n, const uint8_t *bytes,
                       size_t size)
{
    struct reader r;

    kp__reader_init(&r, bytes, size);
    ck_assert_int_eq(read_number(n, &r), n->value);
    ck_assert(!r.failed);
    ck_assert_uint_eq(kp__reader_left(&r), 0);
    kp__reader_init(&r, bytes, size - 1);
    ck_assert_int_eq(read_number(n, &r), 0);
    ck_assert(r.failed);
}

START_TEST(numbers_are_kafkas)
{
    ck_assert_uint_gt(file.line_count, 700);
    for (size_t i = 0; i < file.line_count; i++) {
        struct number n = number_of(file.lines[i]);
        size_t size;
        uint8_t *bytes = golden_bytes(n.hex, &size);
        check_written(&n, bytes, size);
        check_read(&n, bytes, size);
        free(bytes);
    }
}
END_TEST

START_TEST(size_is_what_is_put_for_every_width)
{
    uint8_t out[VARLONG_MAX_SIZE];

    for (unsigned bits = 0; bits < 64; bits++) {
        uint64_t v = UINT64_MAX >> bits;
        ck_assert_uint_eq(kp__uvarint_size(v),
                          (size_t)(kp__uvarint_put(out, v) - out));
    }
    ck_assert_uint_eq(kp__uvarint_size(0), 1);
    ck_assert_uint_eq(kp__uvarint_size(UINT64_MAX), 10);
}
END_TEST

START_TEST(zigzag_goes_back)
{
    static const int64_t v[] = {0,         1,         -1,        63,       -64,
                                INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};

    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        ck_assert_int_eq(kp__unzigzag64(kp__zigzag64(v[i])), v[i]);
        ck_assert_int_eq(kp__unzigzag32(kp__zigzag32((int32_t)v[i])),
                         (int32_t)v[i]);
    }
    ck_assert_uint_eq(kp__zigzag32(-1), 1);
    ck_assert_uint_eq(kp__zigzag32(1), 2);
    ck_assert_uint_eq(kp__zigzag32(INT32_MIN), UINT32_MAX);
}
END_TEST

static Suite *varint_suite(void)
{
    Suite *s = suite_create("varint");
    TCase *t = tcase_create("varint");

    golden_open(&file, "numbers.txt");
    tcase_add_test(t, numbers_are_kafkas);
    tcase_add_test(t, size_is_what_is_put_for_every_width);
    tcase_add_test(t, zigzag_goes_back);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(varint_suite)
