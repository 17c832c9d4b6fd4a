/* SPDX-License-Identifier: BSD-2-Clause */
/* error_test.c - filling a kp_error. */
#include <string.h>

#include "lib/base/error.h"
#include "test/support/main.h"

START_TEST(everything_is_written)
{
    kp_error e;

    memset(&e, 0x5a, sizeof(e));
    ck_assert_int_eq(kp__error_set(&e, KP_EMETADATA, KP_ECONNECT, "%s: %d",
                                   "orders", 7),
                     KP_EMETADATA);
    ck_assert_int_eq(e.err, KP_EMETADATA);
    ck_assert_int_eq(e.cause, KP_ECONNECT);
    ck_assert_int_eq(e.kind, kp_err_kind(KP_EMETADATA));
    ck_assert_int_eq(e.reserved, 0);
    ck_assert_str_eq(e.text, "orders: 7");
}
END_TEST

START_TEST(the_kind_is_the_codes)
{
    kp_error e;

    (void)kp__error_set(&e, KP_EINVAL, KP_OK, "x");
    ck_assert_int_eq(e.kind, KP_KIND_INVALID);
    (void)kp__error_set(&e, KP_EBUFFER, KP_OK, "x");
    ck_assert_int_eq(e.kind, KP_KIND_RETRIABLE);
}
END_TEST

START_TEST(an_old_text_may_go_into_the_new)
{
    kp_error e;

    (void)kp__error_set(&e, KP_EINVAL, KP_OK, "no such name");
    (void)kp__error_set(&e, KP_EINVAL, KP_OK, "line 3: %s", e.text);
    ck_assert_str_eq(e.text, "line 3: no such name");
}
END_TEST

START_TEST(nobody_need_listen)
{
    ck_assert_int_eq(kp__error_set(NULL, KP_EINVAL, KP_OK, "%d", 1),
                     KP_EINVAL);
}
END_TEST

START_TEST(a_long_text_is_cut_between_characters)
{
    kp_error e;
    char text[400];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)kp__error_set(&e, KP_EINVAL, KP_OK, "%s", text);
    ck_assert_uint_eq(strlen(e.text), sizeof(e.text) - 1);
    /* the last byte that fits would be the first of two */
    memcpy(text + sizeof(e.text) - 2, "\xc3\xbc", 2);
    (void)kp__error_set(&e, KP_EINVAL, KP_OK, "%s", text);
    ck_assert_uint_eq(strlen(e.text), sizeof(e.text) - 2);
}
END_TEST

static Suite *error_suite(void)
{
    Suite *s = suite_create("error");
    TCase *c = tcase_create("error");

    tcase_add_test(c, everything_is_written);
    tcase_add_test(c, the_kind_is_the_codes);
    tcase_add_test(c, an_old_text_may_go_into_the_new);
    tcase_add_test(c, nobody_need_listen);
    tcase_add_test(c, a_long_text_is_cut_between_characters);
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(error_suite)
