/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames out of a stream, however it is cut; and sizes that lie. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/wire/frame.h"
#include "test/support/main.h"

static struct frame_reader f;

static void setup(void)
{
    kp__frames_init(&f, 1000000);
}

static void teardown(void)
{
    kp__frames_fini(&f);
}

/* Hand over n bytes, in pieces of at most `piece`. */
static void feed(const void *data, size_t n, size_t piece)
{
    const uint8_t *p = data;

    while (n > 0) {
        size_t capacity = 0;
        uint8_t *space = kp__frames_space(&f, &capacity);
        size_t now = n < piece ? n : piece;
        ck_assert_ptr_nonnull(space);
        ck_assert_uint_gt(capacity, 0);
        now = now < capacity ? now : capacity;
        memcpy(space, p, now);
        kp__frames_added(&f, now);
        p += now;
        n -= now;
    }
}

static void expect(const void *data, size_t n)
{
    const uint8_t *got;
    size_t size;

    ck_assert_int_eq(kp__frames_next(&f, &got, &size), FRAME_READY);
    ck_assert_uint_eq(size, n);
    ck_assert_mem_eq(got, data, n);
}

static void expect_none(void)
{
    const uint8_t *got = NULL;
    size_t size = 7;

    ck_assert_int_eq(kp__frames_next(&f, &got, &size), FRAME_NONE);
    ck_assert_ptr_null(got);
    ck_assert_uint_eq(size, 7);
}

static void expect_bad(void)
{
    const uint8_t *got = NULL;
    size_t size = 7;

    ck_assert_int_eq(kp__frames_next(&f, &got, &size), FRAME_BAD);
    ck_assert_int_eq(kp__frames_next(&f, &got, &size), FRAME_BAD);
    ck_assert_ptr_null(got);
}

START_TEST(nothing_gives_nothing)
{
    expect_none();
    feed("\0\0\0", 3, 3);
    expect_none();
}
END_TEST

START_TEST(an_empty_frame_is_a_frame)
{
    feed("\0\0\0\0", 4, 4);
    expect("", 0);
    expect_none();
}
END_TEST

START_TEST(frames_come_out_whole_however_they_arrive)
{
    static const char stream[] = "\0\0\0\3abc\0\0\0\0\0\0\0\1x\0\0\0\5hello";
    const size_t n = sizeof stream - 1;

    feed(stream, n, (size_t)_i);
    expect("abc", 3);
    expect("", 0);
    expect("x", 1);
    expect("hello", 5);
    expect_none();
}
END_TEST

START_TEST(a_frame_comes_with_its_last_byte)
{
    static const char stream[] = "\0\0\0\3abc";

    for (size_t i = 0; i < sizeof stream - 2; i++) {
        feed(stream + i, 1, 1);
        expect_none();
    }
    feed("c", 1, 1);
    expect("abc", 3);
}
END_TEST

START_TEST(what_is_left_survives_the_next_read)
{
    feed("\0\0\0\1a\0\0\0\6bcd", 12, 12);
    expect("a", 1);
    expect_none();
    feed("efg\0\0\0\1h", 8, 8);
    expect("bcdefg", 6);
    expect("h", 1);
    expect_none();
}
END_TEST

START_TEST(a_negative_size_is_bad)
{
    feed("\377\377\377\377", 4, 4);
    expect_bad();
}
END_TEST

START_TEST(the_limit_is_kept_and_not_one_less)
{
    static const uint8_t zeros[10];

    f.max = 10;
    feed("\0\0\0\12", 4, 4);
    feed(zeros, 10, 10);
    expect(zeros, 10);
    feed("\0\0\0\13", 4, 4);
    expect_bad();
}
END_TEST

START_TEST(a_size_over_the_limit_is_bad_before_its_bytes_come)
{
    feed("\177\377\377\377", 4, 4);
    expect_bad();
}
END_TEST

START_TEST(an_announced_size_takes_no_memory)
{
    size_t capacity;

    f.max = INT32_MAX;
    feed("\177\377\377\377", 4, 4);
    expect_none();
    ck_assert_ptr_nonnull(kp__frames_space(&f, &capacity));
    ck_assert_uint_le(f.buf.capacity, 16384);
}
END_TEST

static uint8_t *long_frame(size_t n)
{
    uint8_t *p = malloc(n + 4);

    ck_assert_ptr_nonnull(p);
    p[0] = (uint8_t)(n >> 24);
    p[1] = (uint8_t)(n >> 16);
    p[2] = (uint8_t)(n >> 8);
    p[3] = (uint8_t)n;
    for (size_t i = 0; i < n; i++)
        p[i + 4] = (uint8_t)(i * 7);
    return p;
}

START_TEST(a_long_frame_grows_by_what_arrived)
{
    uint8_t *p = long_frame(1000000);

    for (size_t i = 0; i < 1000004; i += 4) {
        feed(p + i, 4, 4);
        ck_assert_uint_le(f.buf.capacity, 2 * (i + 4) + 16384);
    }
    expect(p + 4, 1000000);
    expect_none();
    free(p);
}
END_TEST

START_TEST(a_long_frames_memory_is_given_back)
{
    uint8_t *p = long_frame(1000000);

    feed(p, 1000004, 65536);
    expect(p + 4, 1000000);
    feed("\0\0\0\1a", 5, 5);
    expect("a", 1);
    ck_assert_uint_le(f.buf.capacity, 16384);
    free(p);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(no_memory_is_said)
{
    size_t capacity = 7;

    kp__mem_fail_at(1);
    ck_assert_ptr_null(kp__frames_space(&f, &capacity));
    kp__mem_fail_at(-1);
    ck_assert_uint_eq(capacity, 7);
}
END_TEST
#endif

static Suite *frame_suite(void)
{
    Suite *s = suite_create("frame");
    TCase *t = tcase_create("frame");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, nothing_gives_nothing);
    tcase_add_test(t, an_empty_frame_is_a_frame);
    tcase_add_loop_test(t, frames_come_out_whole_however_they_arrive, 1, 26);
    tcase_add_test(t, a_frame_comes_with_its_last_byte);
    tcase_add_test(t, what_is_left_survives_the_next_read);
    tcase_add_test(t, a_negative_size_is_bad);
    tcase_add_test(t, the_limit_is_kept_and_not_one_less);
    tcase_add_test(t, a_size_over_the_limit_is_bad_before_its_bytes_come);
    tcase_add_test(t, an_announced_size_takes_no_memory);
    tcase_add_test(t, a_long_frame_grows_by_what_arrived);
    tcase_add_test(t, a_long_frames_memory_is_given_back);
#ifdef KP_FAILMALLOC
    tcase_add_test(t, no_memory_is_said);
#endif
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(frame_suite)
