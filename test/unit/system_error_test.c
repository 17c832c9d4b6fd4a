/* SPDX-License-Identifier: BSD-2-Clause */
/* system_error_test.c - the words for an errno value. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "lib/base/system_error.h"
#include "test/support/main.h"

START_TEST(known_number_has_words)
{
    char text[64];

    kp__system_error_text(ENOENT, text, sizeof(text));
    ck_assert_str_eq(text, "No such file or directory");
    kp__system_error_text(ECONNREFUSED, text, sizeof(text));
    ck_assert_str_eq(text, "Connection refused");
}
END_TEST

START_TEST(unknown_number_is_shown)
{
    char text[64];

    kp__system_error_text(99999, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "99999"));
}
END_TEST

START_TEST(text_fits)
{
    char text[8];

    memset(text, 'x', sizeof(text));
    kp__system_error_text(ENOENT, text, 5);
    ck_assert_ptr_nonnull(memchr(text, '\0', 5));
    ck_assert_int_eq(text[5], 'x');
    kp__system_error_text(ENOENT, text, 0);
    ck_assert_int_eq(text[5], 'x');
}
END_TEST

static Suite *system_error_suite(void)
{
    Suite *suite = suite_create("system_error");
    TCase *tcase = tcase_create("text");

    tcase_add_test(tcase, known_number_has_words);
    tcase_add_test(tcase, unknown_number_is_shown);
    tcase_add_test(tcase, text_fits);
    suite_add_tcase(suite, tcase);
    return suite;
}

KP_TEST_MAIN(system_error_suite)
