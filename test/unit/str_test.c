/* SPDX-License-Identifier: BSD-2-Clause */
/* str_test.c - small helpers for text, as tables. */
#include <limits.h>
#include <string.h>

#include "lib/base/str.h"
#include "test/support/main.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

START_TEST(format_returns_what_was_written)
{
    char out[6];

    ck_assert_uint_eq(kp__format(out, sizeof(out), "%d", 123), 3);
    ck_assert_str_eq(out, "123");
    ck_assert_uint_eq(kp__format(out, sizeof(out), "%s", "abcdefgh"), 5);
    ck_assert_str_eq(out, "abcde");
    ck_assert_uint_eq(kp__format(out, 1, "x"), 0);
    ck_assert_str_eq(out, "");
    ck_assert_uint_eq(kp__format(NULL, 0, "x"), 0);
}
END_TEST

/* -- Escaping -- */

static const struct {
    const char *in;
    size_t size;
    const char *out;
} escapes[] = {
    {"orders", 6, "orders"},
    {"", 0, ""},
    {"a\nb", 3, "a\\x0Ab"},
    {"\x00\x1f\x7f", 3, "\\x00\\x1F\\x7F"},
    {"gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f"},
    {"\xe2\x82\xac", 3, "\xe2\x82\xac"},
    {"\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80"},
    /* not UTF-8: alone, cut, too long a form, surrogate, past the end */
    {"\xff", 1, "\\xFF"},
    {"\x80z", 2, "\\x80z"},
    {"\xe2\x82", 2, "\\xE2\\x82"},
    {"\xc0\xaf", 2, "\\xC0\\xAF"},
    {"\xe0\x80\xaf", 3, "\\xE0\\x80\\xAF"},
    {"\xed\xa0\x80", 3, "\\xED\\xA0\\x80"},
    {"\xf0\x80\x80\x80", 4, "\\xF0\\x80\\x80\\x80"},
    {"\xf4\x90\x80\x80", 4, "\\xF4\\x90\\x80\\x80"},
    {"\xf5\x80", 2, "\\xF5\\x80"},
    /* a control character of two bytes */
    {"\xc2\x85", 2, "\\xC2\\x85"},
    {"\xc2\xa9", 2, "\xc2\xa9"},
};

START_TEST(escape)
{
    char out[64];

    kp__str_escape(out, sizeof(out), escapes[_i].in, escapes[_i].size);
    ck_assert_str_eq(out, escapes[_i].out);
}
END_TEST

START_TEST(escape_path_shows_the_end)
{
    char out[4 + 3];

    kp__str_escape_path(out, sizeof(out), "abc", 3);
    ck_assert_str_eq(out, "abc");
    kp__str_escape_path(out, sizeof(out), "abcd", 3);
    ck_assert_str_eq(out, "...bcd");
    kp__str_escape_path(out, sizeof(out), "abcd", 4);
    ck_assert_str_eq(out, "abc"); /* as many as fit behind dots */
    kp__str_escape_path(out, sizeof(out), "abc\n", 3);
    ck_assert_str_eq(out, "...bc"); /* no half of an escape */
    kp__str_escape_path(out, sizeof(out), "", 3);
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(escape_never_writes_half)
{
    char out[8];

    kp__str_escape(out, 4, "ab\xe2\x82\xac", 5);
    ck_assert_str_eq(out, "ab");
    kp__str_escape(out, 6, "ab\xe2\x82\xac", 5);
    ck_assert_str_eq(out, "ab\xe2\x82\xac");
    kp__str_escape(out, 4, "a\n", 2);
    ck_assert_str_eq(out, "a");
    kp__str_escape(out, 1, "a", 1);
    ck_assert_str_eq(out, "");
    out[0] = 'x';
    kp__str_escape(out, 0, "a", 1);
    ck_assert_int_eq(out[0], 'x');
}
END_TEST

static const struct {
    const char *text;
    size_t size, whole;
} cuts[] = {
    {"abc", 3, 3},
    {"", 0, 0},
    {"ab\xc3", 3, 2},
    {"ab\xc3\xbc", 4, 4},
    {"a\xe2\x82", 3, 1},
    {"a\xe2\x82\xac", 4, 4},
    {"\xf0\x9f\x98", 3, 0},
    {"\xf0\x9f\x98\x80", 4, 4},
};

START_TEST(whole)
{
    ck_assert_uint_eq(kp__str_whole(cuts[_i].text, cuts[_i].size),
                      cuts[_i].whole);
}
END_TEST

/* -- Comparing -- */

START_TEST(ieq)
{
    ck_assert(kp__str_ieq("Acks", "aCKS"));
    ck_assert(kp__str_ieq("", ""));
    ck_assert(!kp__str_ieq("acks", "ack"));
    ck_assert(!kp__str_ieq("ack", "acks"));
    ck_assert(!kp__str_ieq("a@", "a`"));
}
END_TEST

static const char *const names[] = {
    "acks",      "batch.size", "bootstrap.servers", "buffer.memory",
    "client.id", "linger.ms",  "max.block.ms",      "retries",
};

static const struct {
    const char *word, *nearest;
} nearests[] = {
    {"acks", "acks"},
    {"ack", "acks"},
    {"batch_size", "batch.size"},
    {"BATCH-SIZE", "batch.size"},
    {"bathc.size", "batch.size"},
    {"bootstrap.server", "bootstrap.servers"},
    {"buffer.memroy", "buffer.memory"},
    {"linger", NULL},
    {"linger.m", "linger.ms"},
    {"max.blok.ms", "max.block.ms"},
    {"compression.type", NULL},
    {"x", NULL},
    {"", NULL},
};

START_TEST(nearest)
{
    const char *found =
        kp__str_nearest(nearests[_i].word, names, COUNT(names));

    if (nearests[_i].nearest == NULL)
        ck_assert_ptr_null(found);
    else
        ck_assert_str_eq(found, nearests[_i].nearest);
}
END_TEST

START_TEST(nearest_of_long_words)
{
    char word[300];

    memset(word, 'a', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    ck_assert_ptr_null(kp__str_nearest(word, names, COUNT(names)));
    ck_assert_ptr_null(
        kp__str_nearest("acks", &(const char *){word}, 1));
    ck_assert_ptr_null(kp__str_nearest("acks", names, 0));
}
END_TEST

/* -- Numbers -- */

static const struct {
    const char *text;
    bool ok;
    int64_t value;
} numbers[] = {
    {"0", true, 0},
    {"-0", true, 0},
    {"42", true, 42},
    {" \t42\n ", true, 42},
    {"+7", true, 7},
    {"-1", true, -1},
    {"007", true, 7},
    {"9223372036854775807", true, INT64_MAX},
    {"-9223372036854775808", true, INT64_MIN},
    {"9223372036854775808", false, 0},
    {"-9223372036854775809", false, 0},
    {"99999999999999999999", false, 0},
    {"", false, 0},
    {" ", false, 0},
    {"-", false, 0},
    {"--1", false, 0},
    {"- 1", false, 0},
    {"1 2", false, 0},
    {"1.0", false, 0},
    {"1e3", false, 0},
    {"0x10", false, 0},
    {"12k", false, 0},
};

START_TEST(to_i64)
{
    int64_t value = 77;

    ck_assert_int_eq(kp__str_to_i64(numbers[_i].text, &value),
                     numbers[_i].ok);
    ck_assert_int_eq(value, numbers[_i].ok ? numbers[_i].value : 77);
}
END_TEST

static Suite *str_suite(void)
{
    Suite *s = suite_create("str");
    TCase *c = tcase_create("str");

    tcase_add_test(c, format_returns_what_was_written);
    tcase_add_loop_test(c, escape, 0, COUNT(escapes));
    tcase_add_test(c, escape_never_writes_half);
    tcase_add_test(c, escape_path_shows_the_end);
    tcase_add_loop_test(c, whole, 0, COUNT(cuts));
    tcase_add_test(c, ieq);
    tcase_add_loop_test(c, nearest, 0, COUNT(nearests));
    tcase_add_test(c, nearest_of_long_words);
    tcase_add_loop_test(c, to_i64, 0, COUNT(numbers));
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(str_suite)
