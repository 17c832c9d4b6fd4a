/* SPDX-License-Identifier: BSD-2-Clause */
/* properties_test.c - the .properties format, as java.util.Properties.load
 * reads it: what comes out, byte for byte, and on which line it began. */
#include <check.h>
#include <kp/kp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/config/properties.h"
#include "test/support/main.h"

struct seen {
    char text[4096]; /* line|name|value; and a line feed for each */
    size_t size;
    int count, fail_at;
};

static struct seen seen;
static kp_error error;

static kp_err keep(void *arg, int line, const char *name, const char *value,
                   kp_error *e)
{
    struct seen *s = arg;

    if (++s->count == s->fail_at) {
        memset(e, 0, sizeof(*e));
        e->err = KP_ESTATE;
        return KP_ESTATE;
    }
    s->size += (size_t)snprintf(s->text + s->size, sizeof(s->text) - s->size,
                                "%d|%s|%s\n", line, name, value);
    ck_assert_uint_lt(s->size, sizeof(s->text));
    return KP_OK;
}

static void setup(void)
{
    memset(&seen, 0, sizeof(seen));
    memset(&error, 0, sizeof(error));
}

/* In memory of exactly its size, so that reading past it is seen. */
static kp_err parse_bytes(const char *source, const char *text, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    kp_err err;

    ck_assert_ptr_nonnull(copy);
    if (size > 0)
        memcpy(copy, text, size);
    err = kp__properties_parse(source, copy, size, keep, &seen, &error);
    free(copy);
    return err;
}

static void parses(const char *text, const char *wanted)
{
    kp_err err = parse_bytes("f", text, strlen(text));

    ck_assert_msg(err == KP_OK, "%s", error.text);
    ck_assert_str_eq(seen.text, wanted);
}

static void fails(const char *text, size_t size, const char *wanted)
{
    ck_assert_int_eq(parse_bytes("f", text, size), KP_EINVAL);
    ck_assert_int_eq(error.err, KP_EINVAL);
    ck_assert_str_eq(error.text, wanted);
}

struct example {
    const char *text, *wanted;
};

/* One case each. */
static const struct example separators[] = {
    {"a=b", "1|a|b\n"},
    {"a:b", "1|a|b\n"},
    {"a b", "1|a|b\n"},
    {"a\tb", "1|a|b\n"},
    {"a\fb", "1|a|b\n"},
    {"a = b", "1|a|b\n"},
    {"a \t\f: \t\f b", "1|a|b\n"},
    {"  \t\fa=b", "1|a|b\n"},
    {"a==b", "1|a|=b\n"},
    {"a=:b", "1|a|:b\n"},
    {"a :b", "1|a|b\n"},
    {"a : =b", "1|a|=b\n"},
    {"a  b = c", "1|a|b = c\n"},
    {"a", "1|a|\n"},
    {"a=", "1|a|\n"},
    {"a ", "1|a|\n"},
    {"a = ", "1|a|\n"},
    {"=b", "1||b\n"},
    {"a=b  ", "1|a|b  \n"}, /* blanks at the end belong to the value */
    {"a\\=b=c", "1|a=b|c\n"},
    {"a\\:b:c", "1|a:b|c\n"},
    {"a\\ b c", "1|a b|c\n"},
    {"a\\\\=b", "1|a\\|b\n"},
    {"a=#b", "1|a|#b\n"},
    {"a#b=!c", "1|a#b|!c\n"},
};

static const struct example lines[] = {
    {"", ""},
    {"\n", ""},
    {" \t\f", ""},
    {"a=1\nb=2\n", "1|a|1\n2|b|2\n"},
    {"a=1\r\nb=2\r\n", "1|a|1\n2|b|2\n"},
    {"a=1\rb=2\r", "1|a|1\n2|b|2\n"},
    {"a=1\r\r\nb=2", "1|a|1\n3|b|2\n"},
    {"a=1\nb=2", "1|a|1\n2|b|2\n"},
    {"\n\n  \na=1\n\n", "4|a|1\n"},
    {"# c\na=1", "2|a|1\n"},
    {"! c\na=1", "2|a|1\n"},
    {"  \t# c\r\na=1", "2|a|1\n"},
    {"# c \\\na=1", "2|a|1\n"}, /* a comment does not continue */
    {"#", ""},
    {"a=1\na=2\n", "1|a|1\n2|a|2\n"}, /* who reads it decides */
};

static const struct example continued[] = {
    {"a=b\\\nc", "1|a|bc\n"},
    {"a=b\\\n   \t\fc", "1|a|bc\n"},
    {"a=b\\\r\n c\\\r d", "1|a|bcd\n"},
    {"a=b \\\n c", "1|a|b c\n"},
    {"a=b\\\\\nc=d", "1|a|b\\\n2|c|d\n"},
    {"a=b\\\\\\\nc=d", "1|a|b\\c=d\n"},
    {"a=b\\", "1|a|b\n"},
    {"a=b\\\n", "1|a|b\n"},
    {"a=b\\\n\nc=d", "1|a|b\n3|c|d\n"},
    {"a=b\\\n#c", "1|a|b#c\n"},
    {"a\\\n b\\\n =c\nd=e", "1|ab|c\n4|d|e\n"},
    {"a=\\\n  b", "1|a|b\n"},
    {"\\\na=b", "2|a|b\n"},
    {"\\\n# c\na=b", "3|a|b\n"},
    {"a=b,\\\n  c,\\\n  d\ne=f", "1|a|b,c,d\n4|e|f\n"},
};

static const struct example escapes[] = {
    {"a=\\t\\r\\f|", "1|a|\t\r\f|\n"},
    {"a=x\\ny", "1|a|x\ny\n"},
    {"a=\\\\", "1|a|\\\n"},
    {"a=\\q\\\"\\'\\b", "1|a|q\"'b\n"},
    {"a=\\ b", "1|a| b\n"},
    {"\\u0061=\\u0062", "1|a|b\n"},
    {"a=\\u00e9\\u00E9", "1|a|\xc3\xa9\xc3\xa9\n"},
    {"a=\\u20ac!", "1|a|\xe2\x82\xac!\n"},
    {"a=\\uD83D\\uDE00", "1|a|\xf0\x9f\x98\x80\n"},
    {"a=\\ud800\\udc00\\udbff\\udfff",
     "1|a|\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\n"},
    {"a=\\u007f\\u0080\\u07ff\\u0800\\uffff",
     "1|a|\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\n"},
    {"a=\\u00\\\n41", "1|a|A\n"},     /* lines are joined first */
    {"\\#a=b", "1|#a|b\n"},           /* not a comment */
    {"a\\u003db=c", "1|a=b|c\n"},     /* nor a separator */
    {"a=\\\\u0041", "1|a|\\u0041\n"}, /* nor an escape */
    {"a=\xc3\xa9", "1|a|\xc3\xa9\n"}, /* UTF-8 as it is */
    {"a=\xe9", "1|a|\xe9\n"},         /* and anything else too */
    {"\xef\xbb\xbf"
     "a=b",
     "1|a|b\n"}, /* a byte order mark */
};

#define EXAMPLE_TEST(name) \
    START_TEST(name##_read) \
    { \
        parses(name[_i].text, name[_i].wanted); \
    } \
    END_TEST
#define ADD_EXAMPLES(tcase, name) \
    tcase_add_loop_test(tcase, name##_read, 0, \
                        (int)(sizeof(name) / sizeof(name[0])))

EXAMPLE_TEST(separators)
EXAMPLE_TEST(lines)
EXAMPLE_TEST(continued)
EXAMPLE_TEST(escapes)

#define DIGITS \
    ": four hexadecimal digits must follow \\u (write \\\\u for a backslash " \
    "and a u)"
#define HIGH \
    ": a high surrogate (\\uD800 to \\uDBFF) must be followed by a low one"
#define LOW ": a low surrogate (\\uDC00 to \\uDFFF) must follow a high one"

static const struct example broken[] = {
    {"a=b\nc=\\u12", "f line 2" DIGITS},
    {"a=\\u", "f line 1" DIGITS},
    {"a=\\u00g0", "f line 1" DIGITS},
    {"a=\\u-123", "f line 1" DIGITS},
    {"C:\\users=b", "f line 1" DIGITS},
    {"a\\u00=4142", "f line 1" DIGITS},
    {"\r\n\r\na\\\r\n=\\u1", "f line 3" DIGITS},
    {"a=\\ud83d", "f line 1" HIGH},
    {"a=\\ud83dx", "f line 1" HIGH},
    {"a=\\ud83d\\u0041", "f line 1" HIGH},
    {"a=\\ud83d\\ud83d", "f line 1" HIGH},
    {"a=\\ud83d\\ue000", "f line 1" HIGH},
    {"a=\\ud83d\\udbff", "f line 1" HIGH},
    {"a=\\ud83d\\ude", "f line 1" HIGH},
    {"a=\\ude00", "f line 1" LOW},
    {"a=\\u0000", "f line 1: \\u0000 cannot be part of a name or a value"},
};

START_TEST(broken_escape_is_refused)
{
    fails(broken[_i].text, strlen(broken[_i].text), broken[_i].wanted);
}
END_TEST

START_TEST(nul_is_refused_with_its_line)
{
    static const char in_value[] = "a=1\r\n# c\nb=\0x\n";
    static const char in_comment[] = "a=1\n#\0";
    static const char utf16[] = "\xff\xfe"
                                "a\0=\0b\0\n\0";

    fails(in_value, sizeof(in_value) - 1,
          "f line 3: a NUL byte; a properties file is text in UTF-8");
    ck_assert_str_eq(seen.text, "1|a|1\n");
    fails(in_comment, sizeof(in_comment) - 1,
          "f line 2: a NUL byte; a properties file is text in UTF-8");
    fails(utf16, sizeof(utf16) - 1,
          "f line 1: a NUL byte; a properties file is text in UTF-8");
}
END_TEST

START_TEST(error_of_the_visitor_is_returned)
{
    seen.fail_at = 2;
    ck_assert_int_eq(parse_bytes("f", "a=1\nb=2\nc=3\n", 12), KP_ESTATE);
    ck_assert_int_eq(error.err, KP_ESTATE);
    ck_assert_str_eq(seen.text, "1|a|1\n3|c|3\n");
}
END_TEST

/* What stands behind a line that is wrong is read, and the first error told. */
START_TEST(lines_behind_a_bad_one_are_read)
{
    static const char text[] = "a=1\nb=\\u1\nc=3\n#\0\nd\0=4\n!\0\n"
                               "e=5\nf=\\ud83d\ng=7";

    fails(text, sizeof(text) - 1, "f line 2" DIGITS);
    ck_assert_str_eq(seen.text, "1|a|1\n3|c|3\n7|e|5\n9|g|7\n");
}
END_TEST

START_TEST(long_source_is_shown_by_its_end)
{
    ck_assert_int_eq(
        parse_bytes("/a/very/long/path/that/nobody/wants/to/read/whole/in/an/"
                    "error/text/client\n.properties",
                    "a=\\u", 4),
        KP_EINVAL);
    ck_assert_str_eq(error.text, "...o/read/whole/in/an/error/text/"
                                 "client\\x0A.properties line 1" DIGITS);
}
END_TEST

/* A line of 200,000 bytes in pieces, and every split of it. */
START_TEST(long_line_is_whole)
{
    size_t pieces = 20000, i;
    char *text = malloc(pieces * 13 + 3), *at = text;

    ck_assert_ptr_nonnull(text);
    at += sprintf(at, "a=");
    for (i = 0; i < pieces; i++)
        at += sprintf(at, "0123456789\\\n ");
    seen.fail_at = 2;
    ck_assert_int_eq(kp__properties_parse("f", text, (size_t)(at - text), keep,
                                          &(struct seen){.fail_at = 1}, &error),
                     KP_ESTATE);
    free(text);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(no_memory_is_handed_on)
{
    static const char text[] = "a="
                               "1\\\n012345678901234567890123456789012345678901"
                               "2345678901234567890123456"
                               "78901234567890123456789\\\n0123456789\nb=c\n";
    long nth = 0, live = kp__mem_live();
    kp_err err;

    do {
        setup();
        kp__mem_fail_at(++nth);
        err = kp__properties_parse("f", text, sizeof(text) - 1, keep, &seen,
                                   &error);
        kp__mem_fail_at(-1);
        ck_assert_int_eq(kp__mem_live(), live);
        if (err != KP_OK) {
            ck_assert_int_eq(err, KP_ENOMEM);
            ck_assert_str_eq(error.text,
                             "no memory to read the properties of a file");
        }
    } while (err != KP_OK);
    ck_assert_int_ge(nth, 3);
    ck_assert_int_eq(seen.count, 2);
}
END_TEST
#endif

static Suite *properties_suite(void)
{
    Suite *suite = suite_create("properties");
    TCase *tcase = tcase_create("format");

    tcase_add_checked_fixture(tcase, setup, NULL);
    ADD_EXAMPLES(tcase, separators);
    ADD_EXAMPLES(tcase, lines);
    ADD_EXAMPLES(tcase, continued);
    ADD_EXAMPLES(tcase, escapes);
    tcase_add_loop_test(tcase, broken_escape_is_refused, 0,
                        (int)(sizeof(broken) / sizeof(broken[0])));
    tcase_add_test(tcase, nul_is_refused_with_its_line);
    tcase_add_test(tcase, error_of_the_visitor_is_returned);
    tcase_add_test(tcase, lines_behind_a_bad_one_are_read);
    tcase_add_test(tcase, long_source_is_shown_by_its_end);
    tcase_add_test(tcase, long_line_is_whole);
#ifdef KP_FAILMALLOC
    tcase_add_test(tcase, no_memory_is_handed_on);
#endif
    suite_add_tcase(suite, tcase);
    return suite;
}

KP_TEST_MAIN(properties_suite)
