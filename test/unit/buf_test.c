/* SPDX-License-Identifier: BSD-2-Clause */
/* buf_test.c - the growable buffer and the arena. */
#include <stdalign.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "test/support/main.h"

START_TEST(init_allocates_nothing)
{
    struct buf b;

    kp__buf_init(&b);
    ck_assert_ptr_null(b.data);
    ck_assert_uint_eq(b.size, 0);
    ck_assert(!kp__buf_failed(&b));
    kp__buf_fini(&b);
}
END_TEST

START_TEST(append_grows_and_keeps_bytes)
{
    struct buf b;

    kp__buf_init(&b);
    for (int i = 0; i < 1000; i++) {
        uint8_t bytes[3] = {(uint8_t)i, (uint8_t)(i >> 8), 7};

        kp__buf_append(&b, bytes, sizeof(bytes));
    }
    kp__buf_append(&b, NULL, 0);
    ck_assert_uint_eq(b.size, 3000);
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_eq(b.data[3 * i], (uint8_t)i);
        ck_assert_uint_eq(b.data[3 * i + 1], (uint8_t)(i >> 8));
        ck_assert_uint_eq(b.data[3 * i + 2], 7);
    }
    kp__buf_fini(&b);
}
END_TEST

START_TEST(reserve_gives_room_and_leaves_size)
{
    struct buf b;
    uint8_t *to;

    kp__buf_init(&b);
    kp__buf_append(&b, "abc", 3);
    to = kp__buf_reserve(&b, 5000);
    ck_assert_ptr_nonnull(to);
    ck_assert_ptr_eq(to, b.data + 3);
    ck_assert_uint_eq(b.size, 3);
    ck_assert_uint_ge(b.capacity, 5003);
    memset(to, 1, 5000);
    ck_assert_mem_eq(b.data, "abc", 3);
    kp__buf_fini(&b);
}
END_TEST

START_TEST(reserve_of_nothing_is_not_a_failure)
{
    struct buf b;

    kp__buf_init(&b);
    ck_assert_ptr_nonnull(kp__buf_reserve(&b, 0));
    ck_assert(!kp__buf_failed(&b));
    kp__buf_fini(&b);
}
END_TEST

START_TEST(an_impossible_size_fails_and_sticks)
{
    struct buf b;

    kp__buf_init(&b);
    kp__buf_append(&b, "abc", 3);
    ck_assert_ptr_null(kp__buf_reserve(&b, SIZE_MAX));
    ck_assert(kp__buf_failed(&b));
    kp__buf_append(&b, "d", 1);
    ck_assert_ptr_null(kp__buf_reserve(&b, 1));
    ck_assert_uint_eq(b.size, 3);
    kp__buf_clear(&b);
    ck_assert(!kp__buf_failed(&b));
    kp__buf_append(&b, "f", 1);
    ck_assert_uint_eq(b.size, 1);
    ck_assert_int_eq(b.data[0], 'f');
    kp__buf_fini(&b);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(failure_is_sticky)
{
    struct buf b;

    kp__buf_init(&b);
    kp__buf_append(&b, "abc", 3);
    kp__mem_fail_at(1);
    ck_assert_ptr_null(kp__buf_reserve(&b, 1000));
    kp__buf_append(&b, "d", 1);
    ck_assert(kp__buf_failed(&b));
    ck_assert_uint_eq(b.size, 3);
    ck_assert_mem_eq(b.data, "abc", 3);
    kp__buf_fini(&b);
}
END_TEST
#endif

/* -- Arena -- */

static struct arena arena;

static void set_up(void)
{
    kp__arena_init(&arena);
}

static void tear_down(void)
{
    kp__arena_fini(&arena);
}

START_TEST(arena_memory_is_zeroed_aligned_and_apart)
{
    unsigned char *p[300];

    for (size_t i = 0; i < 300; i++) {
        p[i] = kp__arena_alloc(&arena, i);
        ck_assert_ptr_nonnull(p[i]);
        ck_assert_uint_eq((uintptr_t)p[i] % alignof(max_align_t), 0);
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_eq(p[i][j], 0);
        memset(p[i], (int)(i & 255), i);
    }
    for (size_t i = 0; i < 300; i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_eq(p[i][j], i & 255);
}
END_TEST

START_TEST(arena_takes_large_requests)
{
    char *small = kp__arena_alloc(&arena, 8);
    char *large = kp__arena_alloc(&arena, 1 << 20);

    ck_assert_ptr_nonnull(small);
    ck_assert_ptr_nonnull(large);
    memset(large, 1, 1 << 20);
    ck_assert_int_eq(small[0], 0);
}
END_TEST

START_TEST(arena_refuses_what_overflows)
{
    ck_assert_ptr_null(kp__arena_alloc(&arena, SIZE_MAX));
    ck_assert_ptr_null(kp__arena_alloc(&arena, SIZE_MAX - 64));
    ck_assert_ptr_null(kp__arena_alloc_array(&arena, SIZE_MAX / 2, 3));
    ck_assert_ptr_nonnull(kp__arena_alloc_array(&arena, 3, 5));
}
END_TEST

START_TEST(arena_reset_gives_zeroed_memory_again)
{
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            unsigned char *p = kp__arena_alloc(&arena, 100);

            ck_assert_ptr_nonnull(p);
            for (int j = 0; j < 100; j++)
                ck_assert_uint_eq(p[j], 0);
            memset(p, 255, 100);
        }
        kp__arena_reset(&arena);
    }
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(arena_keeps_one_block_over_a_reset)
{
    long live = kp__mem_live();

    for (int i = 0; i < 1000; i++)
        ck_assert_ptr_nonnull(kp__arena_alloc(&arena, 100));
    ck_assert_int_gt(kp__mem_live(), live + 1);
    kp__arena_reset(&arena);
    ck_assert_int_eq(kp__mem_live(), live + 1);
    kp__arena_fini(&arena);
    ck_assert_int_eq(kp__mem_live(), live);
}
END_TEST

START_TEST(arena_without_memory)
{
    ck_assert_ptr_nonnull(kp__arena_alloc(&arena, 10));
    kp__mem_fail_at(1);
    ck_assert_ptr_null(kp__arena_alloc(&arena, 100000));
    ck_assert_ptr_nonnull(kp__arena_alloc(&arena, 10));
}
END_TEST
#endif

static Suite *buf_suite(void)
{
    Suite *s = suite_create("buf");
    TCase *buf = tcase_create("buf"), *a = tcase_create("arena");

    tcase_add_test(buf, init_allocates_nothing);
    tcase_add_test(buf, append_grows_and_keeps_bytes);
    tcase_add_test(buf, reserve_gives_room_and_leaves_size);
    tcase_add_test(buf, reserve_of_nothing_is_not_a_failure);
    tcase_add_test(buf, an_impossible_size_fails_and_sticks);
    tcase_add_checked_fixture(a, set_up, tear_down);
    tcase_add_test(a, arena_memory_is_zeroed_aligned_and_apart);
    tcase_add_test(a, arena_takes_large_requests);
    tcase_add_test(a, arena_refuses_what_overflows);
    tcase_add_test(a, arena_reset_gives_zeroed_memory_again);
#ifdef KP_FAILMALLOC
    tcase_add_test(buf, failure_is_sticky);
    tcase_add_test(a, arena_keeps_one_block_over_a_reset);
    tcase_add_test(a, arena_without_memory);
#endif
    suite_add_tcase(s, buf);
    suite_add_tcase(s, a);
    return s;
}

KP_TEST_MAIN(buf_suite)
