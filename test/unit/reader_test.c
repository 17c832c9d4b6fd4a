/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading primitive types: values, and failing cleanly and for good. */
#include <string.h>

#include "lib/wire/reader.h"
#include "test/support/main.h"

static struct reader r;

#define READ(...) \
    do { \
        static const uint8_t bytes_[] = {__VA_ARGS__}; \
        kp__reader_init(&r, bytes_, sizeof bytes_); \
    } while (0)

static void assert_failed(const char *what)
{
    ck_assert(r.failed);
    ck_assert_str_eq(r.what, what);
    ck_assert_uint_eq(kp__reader_left(&r), 0);
}

START_TEST(integers_are_big_endian_and_signed)
{
    READ(0x80, 0x7f, 0xff, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
         0xff, 0xfe, 0x01);
    ck_assert_int_eq(kp__read_i8(&r), -128);
    ck_assert_int_eq(kp__read_i16(&r), 32767);
    ck_assert_int_eq(kp__read_i32(&r), INT32_MIN);
    ck_assert_int_eq(kp__read_i64(&r), -2);
    ck_assert_int_eq(kp__read_i8(&r), 1);
    ck_assert(!r.failed);
    ck_assert_ptr_null(r.what);
    ck_assert_uint_eq(kp__reader_left(&r), 0);
}
END_TEST

START_TEST(a_failure_stays)
{
    READ(1, 2, 3);
    ck_assert_int_eq(kp__read_i32(&r), 0);
    assert_failed("cut short");
    ck_assert_int_eq(kp__read_i8(&r), 0);
    ck_assert_int_eq(kp__read_i16(&r), 0);
    ck_assert_int_eq(kp__read_i64(&r), 0);
    ck_assert_uint_eq(kp__read_uvarint(&r), 0);
    ck_assert_int_eq(kp__read_varint(&r), 0);
    ck_assert_int_eq(kp__read_varlong(&r), 0);
    ck_assert_ptr_null(kp__read_bytes(&r, 0));
    assert_failed("cut short");
}
END_TEST

START_TEST(the_first_reason_is_kept)
{
    READ(1);
    kp__reader_fail(&r, "one");
    kp__reader_fail(&r, "two");
    assert_failed("one");
}
END_TEST

START_TEST(bytes_are_lent_and_counted)
{
    const uint8_t *p;

    READ(1, 2, 3);
    p = kp__read_bytes(&r, 2);
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq(p[0], 1);
    ck_assert_uint_eq(p[1], 2);
    ck_assert_ptr_null(kp__read_bytes(&r, 2));
    assert_failed("cut short");
}
END_TEST

START_TEST(a_huge_length_does_not_wrap)
{
    READ(1, 2, 3);
    ck_assert_ptr_null(kp__read_bytes(&r, SIZE_MAX));
    assert_failed("cut short");
}
END_TEST

START_TEST(no_bytes_are_not_null)
{
    READ(1);
    kp__read_i8(&r);
    ck_assert_ptr_nonnull(kp__read_bytes(&r, 0));
    kp__reader_init(&r, NULL, 0);
    ck_assert_ptr_nonnull(kp__read_bytes(&r, 0));
    ck_assert(!r.failed);
    ck_assert_int_eq(kp__read_i8(&r), 0);
    assert_failed("cut short");
}
END_TEST

START_TEST(a_varint_has_at_most_five_groups)
{
    READ(0xff, 0xff, 0xff, 0xff, 0x0f);
    ck_assert_uint_eq(kp__read_uvarint(&r), UINT32_MAX);
    ck_assert(!r.failed);
    READ(0x80, 0x80, 0x80, 0x80, 0x80, 0x00);
    ck_assert_uint_eq(kp__read_uvarint(&r), 0);
    assert_failed("varint too long");
    READ(0x80, 0x80, 0x80, 0x80, 0x80);
    ck_assert_int_eq(kp__read_varint(&r), 0);
    assert_failed("varint too long");
}
END_TEST

START_TEST(a_varint_has_at_most_32_bits)
{
    READ(0xff, 0xff, 0xff, 0xff, 0x10);
    ck_assert_uint_eq(kp__read_uvarint(&r), 0);
    assert_failed("varint too long");
    READ(0xff, 0xff, 0xff, 0xff, 0x1f);
    ck_assert_int_eq(kp__read_varint(&r), 0);
    assert_failed("varint too long");
}
END_TEST

START_TEST(a_varlong_has_at_most_ten_groups_and_64_bits)
{
    READ(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
    ck_assert_int_eq(kp__read_varlong(&r), INT64_MIN);
    ck_assert(!r.failed);
    READ(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02);
    ck_assert_int_eq(kp__read_varlong(&r), 0);
    assert_failed("varint too long");
    READ(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00);
    ck_assert_int_eq(kp__read_varlong(&r), 0);
    assert_failed("varint too long");
}
END_TEST

START_TEST(padded_varints_are_let_pass)
{
    READ(0x81, 0x80, 0x80, 0x80, 0x00, 0x07);
    ck_assert_uint_eq(kp__read_uvarint(&r), 1);
    ck_assert_int_eq(kp__read_i8(&r), 7);
    ck_assert(!r.failed);
}
END_TEST

START_TEST(tags_are_skipped)
{
    READ(2, 0, 1, 0xaa, 0x80, 0x01, 2, 0xbb, 0xcc, 5);
    kp__read_skip_tags(&r);
    ck_assert_int_eq(kp__read_i8(&r), 5);
    ck_assert(!r.failed);
}
END_TEST

START_TEST(a_false_count_of_tags_ends_with_the_bytes)
{
    READ(0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0);
    kp__read_skip_tags(&r);
    assert_failed("cut short");
    READ(1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1);
    kp__read_skip_tags(&r);
    assert_failed("cut short");
}
END_TEST

static Suite *reader_suite(void)
{
    Suite *s = suite_create("reader");
    TCase *t = tcase_create("reader");

    tcase_add_test(t, integers_are_big_endian_and_signed);
    tcase_add_test(t, a_failure_stays);
    tcase_add_test(t, the_first_reason_is_kept);
    tcase_add_test(t, bytes_are_lent_and_counted);
    tcase_add_test(t, a_huge_length_does_not_wrap);
    tcase_add_test(t, no_bytes_are_not_null);
    tcase_add_test(t, a_varint_has_at_most_five_groups);
    tcase_add_test(t, a_varint_has_at_most_32_bits);
    tcase_add_test(t, a_varlong_has_at_most_ten_groups_and_64_bits);
    tcase_add_test(t, padded_varints_are_let_pass);
    tcase_add_test(t, tags_are_skipped);
    tcase_add_test(t, a_false_count_of_tags_ends_with_the_bytes);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(reader_suite)
