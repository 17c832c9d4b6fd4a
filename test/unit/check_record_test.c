/* SPDX-License-Identifier: BSD-2-Clause */
/* Which records can be sent, and which topics have legal names. */
#include "lib/api/check_record.h"

#include <stdlib.h>
#include <string.h>

#include "lib/wire/record.h"
#include "test/support/main.h"

static struct settings settings;
static kp_record r;

static void setup(void)
{
    memset(&settings, 0, sizeof(settings));
    settings.max_request_size = 1000;
    settings.buffer_memory = 2000;
    r = (kp_record){.topic = "t", .value = {"v", 1}};
}

static void says(kp_err want)
{
    kp_err err = kp__check_record(&r, &settings);

    ck_assert_msg(err == want, "%s, not %s", kp_err_name(err),
                  kp_err_name(want));
    if (want != KP_OK)
        ck_assert(!kp__record_is_plain(&r, &settings));
}

START_TEST(the_smallest_record_is_fine)
{
    r = (kp_record){.topic = "t"};
    says(KP_OK);
    r.topic = ""; /* names are judged elsewhere */
    says(KP_OK);
    r.topic = NULL;
    says(KP_EINVAL);
}
END_TEST

/* The glance sees what is usual, and is never wrong the other way: says() holds
 * it against every refusal of this file. */
START_TEST(most_records_are_plain)
{
    static const kp_header h = {{"k", 1}, {NULL, 0}};
    char value[1000] = {0};

    ck_assert(kp__record_is_plain(&r, &settings));
    r.key = (kp_bytes){"k", 1};
    r.flags = KP_NOWAIT;
    ck_assert(kp__record_is_plain(&r, &settings));
    for (r.value = (kp_bytes){value, 800}; r.value.size < 1000; r.value.size++)
        if (kp__record_is_plain(&r, &settings))
            says(KP_OK);
    r.value.size = 1;
    r.headers = &h;
    r.header_count = 1;
    ck_assert(!kp__record_is_plain(&r, &settings));
    says(KP_OK);
}
END_TEST

START_TEST(the_bound_is_javas)
{
    static const kp_header h = {{"12345", 5}, {NULL, 0}};

    /* 61 + 21, key 1, value 1 + 1, header count 1 */
    ck_assert_uint_eq(kp__record_upper_bound(&r), 61 + 21 + 1 + 2 + 1);
    r.key = (kp_bytes){"", 0};
    ck_assert_uint_eq(kp__record_upper_bound(&r), 61 + 21 + 1 + 2 + 1);
    r.key = (kp_bytes){"k", 1};
    ck_assert_uint_eq(kp__record_upper_bound(&r), 61 + 21 + 2 + 2 + 1);
    r.headers = &h;
    r.header_count = 1;
    ck_assert_uint_eq(kp__record_upper_bound(&r), 61 + 21 + 2 + 2 + 1 + 6 + 1);
}
END_TEST

START_TEST(limits_are_exact)
{
    char value[3000] = {0};

    /* a length of two bytes */
    r.value = (kp_bytes){value, 1000 - 61 - 21 - 1 - 1 - 2};
    says(KP_OK);
    r.value.size++;
    says(KP_ETOOBIG);
    settings.max_request_size = 3000;
    says(KP_OK);
    r.value.size += 999;
    says(KP_OK);
    r.value.size++;
    says(KP_ETOOBIG);
    settings.buffer_memory = SIZE_MAX;
    settings.max_request_size = SIZE_MAX;
    says(KP_OK);
}
END_TEST

START_TEST(sizes_never_wrap)
{
    kp_header many[2] = {{{"k", INT32_MAX}, {"v", INT32_MAX}},
                         {{"k", INT32_MAX}, {"v", INT32_MAX}}};

    settings.buffer_memory = settings.max_request_size = SIZE_MAX - 1;
    r.value.size = SIZE_MAX;
    says(KP_ETOOBIG);
    r.value.size = (size_t)UINT32_MAX + 2; /* one, in 32 bits */
    says(KP_ETOOBIG);
    r.value.size = INT32_MAX - 100;
    says(KP_OK);
    r.value.size = INT32_MAX;
    says(KP_ETOOBIG);
    r.value.size = 1;
    r.headers = many;
    r.header_count = 2;
    says(KP_ETOOBIG);
}
END_TEST

START_TEST(what_is_wrong_with_a_header)
{
    kp_header h = {{"", 0}, {NULL, 0}};

    r.headers = &h;
    r.header_count = 1;
    says(KP_OK);
    h.key.data = NULL;
    says(KP_EHEADER);
    h.key.size = 5;
    says(KP_EHEADER);
    h.key = (kp_bytes){"k", 1};
    h.value.size = 5;
    says(KP_EINVAL);
    r.headers = NULL;
    says(KP_EINVAL);
    r.header_count = 0;
    says(KP_OK);
    r.headers = &h; /* none are looked at */
    says(KP_OK);
}
END_TEST

START_TEST(numbers_need_their_flags)
{
    r.flags = KP_HAS_PARTITION | KP_HAS_TIMESTAMP | KP_NOWAIT;
    says(KP_OK);
    r.partition = INT32_MAX;
    r.timestamp_ms = INT64_MAX;
    says(KP_OK);
    r.flags = KP_HAS_TIMESTAMP;
    says(KP_EPARTITION);
    r.flags = KP_HAS_PARTITION;
    says(KP_ETIMESTAMP);
    r.flags = 8;
    says(KP_EINVAL);
}
END_TEST

START_TEST(every_byte_of_a_topic_name_is_judged)
{
    for (int c = 0; c < 256; c++) {
        char name[2] = {(char)c, 'x'};
        bool legal = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';

        ck_assert_int_eq(kp__topic_is_legal(name, 2), legal);
        ck_assert_int_eq(kp__topic_is_legal(name, 1), legal && c != '.');
    }
}
END_TEST

START_TEST(sizes_of_topic_names)
{
    char name[300];

    memset(name, 'x', sizeof(name));
    ck_assert(!kp__topic_is_legal(name, 0));
    ck_assert(kp__topic_is_legal(name, 249));
    ck_assert(!kp__topic_is_legal(name, 250));
    ck_assert(!kp__topic_is_legal("..", 2));
    ck_assert(kp__topic_is_legal("...", 3));
    ck_assert(kp__topic_is_legal(".a", 2));
}
END_TEST

static Suite *check_record_suite(void)
{
    Suite *s = suite_create("check_record");
    TCase *t = tcase_create("records");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, the_smallest_record_is_fine);
    tcase_add_test(t, most_records_are_plain);
    tcase_add_test(t, the_bound_is_javas);
    tcase_add_test(t, limits_are_exact);
    tcase_add_test(t, sizes_never_wrap);
    tcase_add_test(t, what_is_wrong_with_a_header);
    tcase_add_test(t, numbers_need_their_flags);
    tcase_add_test(t, every_byte_of_a_topic_name_is_judged);
    tcase_add_test(t, sizes_of_topic_names);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(check_record_suite)
