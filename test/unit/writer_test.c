/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing primitive types, and noting where bytes of others belong. */
#include <string.h>

#include "lib/base/mem.h"
#include "lib/wire/writer.h"
#include "test/support/main.h"
#include "test/support/writer_clear.h"

static struct writer w;

static void setup(void)
{
    kp__writer_init(&w);
}

static void teardown(void)
{
    kp__writer_fini(&w);
}

#define ASSERT_BYTES(...) \
    do { \
        static const uint8_t want_[] = {__VA_ARGS__}; \
        ck_assert(!kp__writer_failed(&w)); \
        ck_assert_uint_eq(w.buf.size, sizeof want_); \
        ck_assert_mem_eq(w.buf.data, want_, sizeof want_); \
    } while (0)

START_TEST(integers_are_big_endian)
{
    kp__write_i8(&w, -128);
    kp__write_i16(&w, 0x0102);
    kp__write_i32(&w, -2);
    kp__write_i64(&w, INT64_C(0x0102030405060708));
    ASSERT_BYTES(0x80, 1, 2, 0xff, 0xff, 0xff, 0xfe, 1, 2, 3, 4, 5, 6, 7, 8);
}
END_TEST

START_TEST(varints_are_written)
{
    kp__write_uvarint(&w, UINT32_MAX);
    kp__write_uvarint(&w, 0);
    kp__write_uvarint(&w, 300);
    ASSERT_BYTES(0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0xac, 0x02);
}
END_TEST

START_TEST(bytes_are_copied)
{
    char text[] = "abc";

    kp__write_bytes(&w, text, 3);
    kp__write_bytes(&w, NULL, 0);
    memset(text, 0, sizeof text);
    ASSERT_BYTES('a', 'b', 'c');
}
END_TEST

START_TEST(external_bytes_are_noted_where_they_belong)
{
    int one, two;

    kp__write_i8(&w, 1);
    kp__write_external(&w, 100, &one);
    kp__write_i16(&w, 2);
    kp__write_external(&w, 0, &two);
    ASSERT_BYTES(1, 0, 2);
    ck_assert_uint_eq(w.splice_count, 2);
    ck_assert_uint_eq(w.splices[0].at, 1);
    ck_assert_uint_eq(w.splices[0].size, 100);
    ck_assert_ptr_eq(w.splices[0].owner, &one);
    ck_assert_uint_eq(w.splices[1].at, 3);
    ck_assert_ptr_eq(w.splices[1].owner, &two);
    ck_assert_uint_eq(w.external_size, 100);
    ck_assert_uint_eq(kp__writer_size(&w), 103);
}
END_TEST

START_TEST(many_splices_grow)
{
    for (size_t i = 0; i < 1000; i++) {
        kp__write_i8(&w, 0);
        kp__write_external(&w, i, &w);
    }
    ck_assert_uint_eq(w.splice_count, 1000);
    for (size_t i = 0; i < 1000; i++) {
        ck_assert_uint_eq(w.splices[i].at, i + 1);
        ck_assert_uint_eq(w.splices[i].size, i);
    }
    ck_assert_uint_eq(kp__writer_size(&w), 1000 + 999 * 1000 / 2);
}
END_TEST

START_TEST(clear_forgets_what_was_written)
{
    kp__write_i32(&w, 1);
    kp__write_external(&w, 5, &w);
    writer_clear(&w);
    ck_assert_uint_eq(kp__writer_size(&w), 0);
    ck_assert_uint_eq(w.splice_count, 0);
    kp__write_i8(&w, 9);
    ASSERT_BYTES(9);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(no_memory_is_sticky_until_cleared)
{
    kp__mem_fail_at(1);
    kp__write_i32(&w, 1);
    kp__mem_fail_at(-1);
    ck_assert(kp__writer_failed(&w));
    kp__write_i32(&w, 1);
    kp__write_external(&w, 1, &w);
    ck_assert(kp__writer_failed(&w));
    ck_assert_uint_eq(kp__writer_size(&w), 0);
    writer_clear(&w);
    kp__write_i8(&w, 3);
    ASSERT_BYTES(3);
}
END_TEST

START_TEST(no_memory_for_a_splice_fails)
{
    kp__write_i8(&w, 1);
    kp__mem_fail_at(1);
    kp__write_external(&w, 1, &w);
    kp__mem_fail_at(-1);
    ck_assert(kp__writer_failed(&w));
    ck_assert_uint_eq(w.splice_count, 0);
}
END_TEST
#endif

static Suite *writer_suite(void)
{
    Suite *s = suite_create("writer");
    TCase *t = tcase_create("writer");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, integers_are_big_endian);
    tcase_add_test(t, varints_are_written);
    tcase_add_test(t, bytes_are_copied);
    tcase_add_test(t, external_bytes_are_noted_where_they_belong);
    tcase_add_test(t, many_splices_grow);
    tcase_add_test(t, clear_forgets_what_was_written);
#ifdef KP_FAILMALLOC
    tcase_add_test(t, no_memory_is_sticky_until_cleared);
    tcase_add_test(t, no_memory_for_a_splice_fails);
#endif
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(writer_suite)
