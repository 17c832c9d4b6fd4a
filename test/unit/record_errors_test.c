/* SPDX-License-Identifier: BSD-2-Clause */
/* record_errors_test.c - what a broker says of single records of a batch, in
 * any order and as often as it likes. */
#include <stdlib.h>
#include <string.h>

#include "io_thread/sender.h"
#include "lib/base/mem.h"
#include "test/support/main.h"

#define MANY 100000

static struct topic_name *name;
static struct batch batch;
static struct produce_record_error *errors;
static size_t error_count;

static struct batch_result *make_result(void)
{
    struct batch_result *r = kp__alloc(sizeof(*r));

    ck_assert_ptr_nonnull(r);
    kp__result_init(r, name, 0);
    return r;
}

static void set_up(void)
{
    name = kp__topic_name_create("t", 1);
    memset(&batch, 0, sizeof(batch));
    batch.record_count = MANY;
    batch.certainty = CERTAIN_NO;
    batch.result = make_result();
    errors = calloc(MANY + 10, sizeof(*errors));
    ck_assert_ptr_nonnull(errors);
    error_count = 0;
}

static void tear_down(void)
{
    kp__result_unref(batch.result, RESULT_BIAS + 1);
    kp__topic_name_unref(name);
    free(errors);
    ck_assert_int_eq(kp__mem_live(), 0);
}

static void say(int32_t index, const char *text)
{
    errors[error_count++] = (struct produce_record_error){
        .batch_index = index,
        .message = {text, text != NULL ? strlen(text) : 0}};
}

static bool note_of(struct batch *b)
{
    struct array list = {errors, error_count, false};

    return kp__note_record_errors(b, &list, KP_INVALID_TIMESTAMP, "all");
}

static bool note(void)
{
    return note_of(&batch);
}

static void finish(void)
{
    const struct outcome whole = {.err = KP_EBATCH,
                                  .stored = CERTAIN_NO,
                                  .base_offset = -1,
                                  .append_time_ms = -1};

    kp__result_complete(batch.result, &whole, NULL);
}

static void expect(uint32_t index, kp_err err, const char *text)
{
    kp_report r;

    ck_assert(kp__result_get(batch.result, index, NULL, &r));
    ck_assert_int_eq(r.err, err);
    ck_assert_int_eq(r.stored, KP_STORED_NO);
    ck_assert_int_eq(r.offset, -1);
    if (text != NULL)
        ck_assert_str_eq(r.text, text);
    else
        ck_assert_ptr_null(r.text);
}

/* It would take minutes were each put in front of all others. */
START_TEST(named_from_the_last_to_the_first)
{
    for (int32_t i = MANY - 1; i >= 0; i -= 2)
        say(i, i == 7 ? "seven" : NULL);
    ck_assert(note());
    finish();
    ck_assert_uint_eq(batch.result->part_count, MANY / 2);
    for (uint32_t i = 0; i < MANY; i++)
        if (i % 2 == 0)
            expect(i, KP_EBATCH, NULL);
        else
            expect(i, KP_INVALID_RECORD, i == 7 ? "seven" : "all");
}
END_TEST

/* Every second record of a piece of a split batch is named, then the piece is
 * done, while what stands behind it was so before. */
START_TEST(a_piece_full_of_gaps)
{
    struct batch child = batch;
    const struct outcome o = {.err = KP_EBATCH,
                              .stored = CERTAIN_NO,
                              .base_offset = -1,
                              .append_time_ms = -1};

    child.split.origin = &batch;
    child.first_index = MANY / 2;
    child.record_count = MANY / 2;
    for (int i = 0; i < 2; i++) {
        error_count = 0;
        for (int32_t at = 0; at < MANY / 2; at += 2)
            say(at, NULL);
        ck_assert(note_of(&child));
        ck_assert(kp__result_add_part(batch.result, child.first_index,
                                      child.record_count, &o, NULL));
        child.first_index = 0;
    }
    ck_assert_uint_eq(batch.result->part_count, MANY);
    finish();
    for (uint32_t i = 0; i < MANY; i++)
        expect(i, i % 2 == 0 ? KP_INVALID_RECORD : KP_EBATCH,
               i % 2 == 0 ? "all" : NULL);
}
END_TEST

START_TEST(what_is_said_twice_or_of_none_is_passed_over)
{
    batch.record_count = 10;
    say(5, "first");
    say(-1, "x");
    say(10, "x");
    say(INT32_MAX, "x");
    say(INT32_MIN, "x");
    say(2, "a\nb");
    say(5, "second");
    ck_assert(note());
    finish();
    ck_assert_uint_eq(batch.result->part_count, 2);
    expect(2, KP_INVALID_RECORD, "a\\x0Ab");
    expect(5, KP_INVALID_RECORD, "first");
    expect(9, KP_EBATCH, NULL);
}
END_TEST

START_TEST(nobody_is_named)
{
    ck_assert(!note());
    say(-1, "x");
    ck_assert(!note());
    finish();
    ck_assert_uint_eq(batch.result->part_count, 0);
}
END_TEST

/* The one has the partition's own error. */
START_TEST(one_is_named)
{
    say(3, NULL);
    ck_assert(note());
    finish();
    expect(3, KP_INVALID_TIMESTAMP, "all");
    expect(4, KP_EBATCH, NULL);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(without_memory_nobody_is)
{
    batch.record_count = 10;
    say(3, NULL);
    say(4, NULL);
    for (long nth = 1; nth <= 2; nth++) {
        kp__mem_fail_at(nth);
        ck_assert(!note());
        kp__mem_fail_at(-1);
    }
    kp__mem_fail_at(3); /* only a text is lost */
    ck_assert(note());
    kp__mem_fail_at(-1);
    finish();
    expect(3, KP_INVALID_RECORD, NULL);
    expect(4, KP_INVALID_RECORD, "all");
}
END_TEST
#endif

static Suite *record_errors_suite(void)
{
    Suite *s = suite_create("record_errors");
    TCase *t = tcase_create("record_errors");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, named_from_the_last_to_the_first);
    tcase_add_test(t, a_piece_full_of_gaps);
    tcase_add_test(t, what_is_said_twice_or_of_none_is_passed_over);
    tcase_add_test(t, nobody_is_named);
    tcase_add_test(t, one_is_named);
#ifdef KP_FAILMALLOC
    tcase_add_test(t, without_memory_nobody_is);
#endif
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(record_errors_suite)
