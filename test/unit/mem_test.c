/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_test.c - the door to the allocator, open and closed. */
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "test/support/main.h"

START_TEST(nothing_is_still_a_pointer)
{
    void *p[5] = {kp__alloc(0), kp__zalloc(0), kp__alloc_array(0, 8),
                  kp__alloc_array(8, 0), kp__alloc_aligned(64, 0)};

    for (int i = 0; i < 5; i++) {
        ck_assert_ptr_nonnull(p[i]);
        kp__free(p[i]);
    }
    kp__free(NULL);
}
END_TEST

START_TEST(zalloc_is_zeroed)
{
    unsigned char *p = kp__zalloc(1000);

    ck_assert_ptr_nonnull(p);
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(p[i], 0);
    kp__free(p);
}
END_TEST

START_TEST(arrays_do_not_overflow)
{
    ck_assert_ptr_null(kp__alloc_array(SIZE_MAX / 2, 3));
    ck_assert_ptr_null(kp__alloc_array(3, SIZE_MAX / 2));
}
END_TEST

START_TEST(what_no_object_can_be_is_refused)
{
    void *p = kp__alloc(1);

    ck_assert_ptr_null(kp__alloc((size_t)PTRDIFF_MAX + 1));
    ck_assert_ptr_null(kp__zalloc(SIZE_MAX));
    ck_assert_ptr_null(kp__realloc(p, SIZE_MAX - 100));
    ck_assert_ptr_null(kp__alloc_aligned(64, SIZE_MAX - 4096));
    kp__free(p);
}
END_TEST

START_TEST(aligned_is_aligned_and_zeroed)
{
    for (size_t align = sizeof(void *); align <= 4096; align *= 2) {
        unsigned char *p = kp__alloc_aligned(align, 200);

        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % align, 0);
        for (int i = 0; i < 200; i++)
            ck_assert_uint_eq(p[i], 0);
        kp__free(p);
    }
}
END_TEST

START_TEST(realloc_keeps_bytes)
{
    char *p = kp__realloc(NULL, 4);

    ck_assert_ptr_nonnull(p);
    memcpy(p, "abc", 4);
    p = kp__realloc(p, 100000);
    ck_assert_ptr_nonnull(p);
    ck_assert_str_eq(p, "abc");
    kp__free(p);
}
END_TEST

START_TEST(copies_of_text)
{
    char *a = kp__strdup("kafka"), *b = kp__strndup("kafka", 2);
    char *c = kp__strndup(NULL, 0);

    ck_assert_str_eq(a, "kafka");
    ck_assert_str_eq(b, "ka");
    ck_assert_str_eq(c, "");
    ck_assert_ptr_null(kp__strndup("x", SIZE_MAX));
    kp__free(a);
    kp__free(b);
    kp__free(c);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(live_and_calls_are_counted)
{
    long calls = kp__mem_calls(), live = kp__mem_live();
    void *a = kp__alloc(1), *b = kp__alloc_aligned(64, 1);

    a = kp__realloc(a, 100);
    ck_assert_int_eq(kp__mem_calls(), calls + 3);
    ck_assert_int_eq(kp__mem_live(), live + 2);
    kp__free(a);
    kp__free(b);
    ck_assert_int_eq(kp__mem_live(), live);
}
END_TEST

START_TEST(bytes_asked_for_are_counted)
{
    size_t before = kp__mem_asked_bytes();
    void *a = kp__alloc(10), *b = kp__zalloc(20);

    kp__mem_fail_at(1);
    ck_assert_ptr_null(kp__alloc_array(10, 10));
    a = kp__realloc(a, 1000);
    ck_assert_uint_eq(kp__mem_asked_bytes() - before, 10 + 20 + 100 + 1000);
    kp__free(a);
    kp__free(b);
}
END_TEST

START_TEST(the_nth_fails_and_only_that_one)
{
    long live = kp__mem_live();
    void *p[4];

    kp__mem_fail_at(3);
    for (int i = 0; i < 4; i++)
        p[i] = kp__alloc(1);
    ck_assert_ptr_nonnull(p[0]);
    ck_assert_ptr_nonnull(p[1]);
    ck_assert_ptr_null(p[2]);
    ck_assert_ptr_nonnull(p[3]);
    ck_assert_int_eq(kp__mem_live(), live + 3);
    for (int i = 0; i < 4; i++)
        kp__free(p[i]);
}
END_TEST

START_TEST(never_means_never)
{
    void *p;

    kp__mem_fail_at(1);
    kp__mem_fail_at(-1);
    p = kp__alloc(1);
    ck_assert_ptr_nonnull(p);
    kp__free(p);
}
END_TEST

START_TEST(every_door_can_be_closed)
{
    void *p = kp__alloc(8);

    kp__mem_fail_at(1);
    ck_assert_ptr_null(kp__zalloc(1));
    kp__mem_fail_at(1);
    ck_assert_ptr_null(kp__alloc_array(1, 1));
    kp__mem_fail_at(1);
    ck_assert_ptr_null(kp__alloc_aligned(64, 1));
    kp__mem_fail_at(1);
    ck_assert_ptr_null(kp__strdup("a"));
    kp__mem_fail_at(1);
    ck_assert_ptr_null(kp__realloc(p, 100));
    kp__free(p); /* a realloc that failed left it alone */
}
END_TEST
#endif

static Suite *mem_suite(void)
{
    Suite *s = suite_create("mem");
    TCase *c = tcase_create("mem");

    tcase_add_test(c, nothing_is_still_a_pointer);
    tcase_add_test(c, zalloc_is_zeroed);
    tcase_add_test(c, arrays_do_not_overflow);
    tcase_add_test(c, what_no_object_can_be_is_refused);
    tcase_add_test(c, aligned_is_aligned_and_zeroed);
    tcase_add_test(c, realloc_keeps_bytes);
    tcase_add_test(c, copies_of_text);
#ifdef KP_FAILMALLOC
    tcase_add_test(c, live_and_calls_are_counted);
    tcase_add_test(c, bytes_asked_for_are_counted);
    tcase_add_test(c, the_nth_fails_and_only_that_one);
    tcase_add_test(c, never_means_never);
    tcase_add_test(c, every_door_can_be_closed);
#endif
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(mem_suite)
