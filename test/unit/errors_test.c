/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of errors.def, and that include/kp/errors.h is printed from them. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kp/kp.h>

#include "lib/wire/errors.h"
#include "test/support/main.h"

/* The committed header has every row, with its number. */
#define OUR_ERROR(name, kind, again, one, all, text)
#define KAFKA_ERROR(code, name, kind, again, one, all, text) \
    _Static_assert(KP_##name == (code), "include/kp/errors.h is out of date");
#include "lib/wire/errors.def"
#undef KAFKA_ERROR
#undef OUR_ERROR

static const struct {
    int code;
    const char *name;
} kafka[] = {
#define OUR_ERROR(name, kind, again, one, all, text)
#define KAFKA_ERROR(code, name, kind, again, one, all, text) {code, #name},
#include "lib/wire/errors.def"
#undef KAFKA_ERROR
#undef OUR_ERROR
};
static const struct {
    int code;
    const char *name;
} ours[] = {
#define OUR_ERROR(name, kind, again, one, all, text) {KP_##name, "KP_" #name},
#define KAFKA_ERROR(code, name, kind, again, one, all, text)
#include "lib/wire/errors.def"
#undef KAFKA_ERROR
#undef OUR_ERROR
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

START_TEST(every_code_of_kafka_has_its_row)
{
    ck_assert_uint_eq(COUNT(kafka), 137); /* -1, and 1 to 136 */
    for (size_t i = 0; i < COUNT(kafka); i++) {
        ck_assert_int_eq(kafka[i].code, i == 0 ? -1 : (int)i);
        ck_assert_str_eq(kp_err_name(kafka[i].code), kafka[i].name);
        ck_assert_int_eq(kp__error_info(kafka[i].code)->err, kafka[i].code);
    }
}
END_TEST

START_TEST(every_code_of_ours_has_its_row)
{
    static const kp_err all[] = {
        KP_OK,         KP_PENDING,     KP_EINVAL,   KP_ETOPIC,    KP_EPARTITION,
        KP_ETIMESTAMP, KP_EHEADER,     KP_ETOOBIG,  KP_ESTATE,    KP_EDEADLK,
        KP_EFORK,      KP_ENOTSUP,     KP_ENOMEM,   KP_EMETADATA, KP_EBUFFER,
        KP_ETIMEDOUT,  KP_ECLOSED,     KP_EABORTED, KP_EBATCH,    KP_ERESOLVE,
        KP_ECONNECT,   KP_EDISCONNECT, KP_ETLS,     KP_ESASL,     KP_EPROTO};

    ck_assert_uint_eq(COUNT(ours), COUNT(all));
    for (size_t i = 0; i < COUNT(all); i++) {
        ck_assert_int_eq(ours[i].code, all[i]);
        ck_assert_str_eq(kp_err_name(all[i]), ours[i].name);
        ck_assert_int_eq(kp__error_info(all[i])->err, all[i]);
    }
    ck_assert_str_eq(kp_err_name(KP_OK), "KP_OK");
    ck_assert_str_eq(kp_err_name(KP_EBUFFER), "KP_EBUFFER");
    ck_assert_str_eq(kp_err_name(6), "NOT_LEADER_OR_FOLLOWER");
}
END_TEST

START_TEST(other_codes_are_unknown)
{
    static const kp_err codes[] = {137,       1000,         INT32_MAX, -2,
                                   -99,       -111,         -146,      -1000,
                                   INT32_MIN, INT32_MIN + 1};

    for (size_t i = 0; i < COUNT(codes); i++) {
        const struct error_info *row = kp__error_info(codes[i]);
        ck_assert_str_eq(kp_err_name(codes[i]), "UNKNOWN_ERROR");
        ck_assert(!row->retriable && !row->refresh_metadata);
        ck_assert_int_eq(row->acks_one, CERTAIN_MAYBE);
        ck_assert_int_eq(row->acks_all, CERTAIN_MAYBE);
        ck_assert_int_eq(row->kind, kp_err_kind(KP_UNKNOWN_SERVER_ERROR));
    }
}
END_TEST

static void check_text(kp_err err)
{
    const char *text = kp_err_text(err);
    size_t n = strlen(text);

    ck_assert_msg(n >= 10 && n < 200, "%d: %zu characters", err, n);
    ck_assert_msg(text[n - 1] == '.', "%d: %s", err, text);
    ck_assert_msg(strstr(text, "  ") == NULL, "%d: %s", err, text);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(isprint((unsigned char)text[i]), "%d: %s", err, text);
}

START_TEST(every_row_has_a_sentence_that_fits_a_kp_error)
{
    for (size_t i = 0; i < COUNT(kafka); i++)
        check_text(kafka[i].code);
    for (size_t i = 0; i < COUNT(ours); i++)
        check_text(ours[i].code);
    check_text(4711);
}
END_TEST

static bool among(kp_err err, const kp_err *codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (codes[i] == err)
            return true;
    return false;
}

/* Java's RetriableException and InvalidMetadataException, by number. */
START_TEST(retriable_and_refreshing_are_javas)
{
    static const kp_err refresh[] = {3,  5,  6,  9,  13,  56, 72,
                                     74, 80, 83, 84, 100, 103};
    static const kp_err retry[] = {2,  7,  14, 15, 16, 19,  20,  41,  51, 70,
                                   71, 75, 78, 88, 89, 106, 122, 123, 133};

    for (int32_t err = -1; err <= 136; err++) {
        const struct error_info *row = kp__error_info(err);
        bool in_refresh = among(err, refresh, COUNT(refresh));
        ck_assert_msg(row->refresh_metadata == in_refresh, "%d", err);
        ck_assert_msg(row->retriable ==
                          (in_refresh || among(err, retry, COUNT(retry))),
                      "%d", err);
    }
}
END_TEST

START_TEST(kinds_say_what_to_do)
{
    static const struct {
        kp_err err;
        kp_kind kind;
    } want[] = {
        {KP_OK, KP_KIND_NONE},
        {KP_PENDING, KP_KIND_NONE},
        {KP_NOT_LEADER_OR_FOLLOWER, KP_KIND_RETRIABLE},
        {KP_NOT_ENOUGH_REPLICAS, KP_KIND_RETRIABLE},
        {KP_UNKNOWN_SERVER_ERROR, KP_KIND_RETRIABLE},
        {KP_MESSAGE_TOO_LARGE, KP_KIND_INVALID},
        {KP_TOPIC_AUTHORIZATION_FAILED, KP_KIND_INVALID},
        {KP_SASL_AUTHENTICATION_FAILED, KP_KIND_INVALID},
        {KP_CLUSTER_AUTHORIZATION_FAILED, KP_KIND_FATAL},
        {KP_UNSUPPORTED_VERSION, KP_KIND_FATAL},
        {KP_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, KP_KIND_FATAL},
        {KP_PRODUCER_FENCED, KP_KIND_FATAL},
        {KP_TRANSACTION_ABORTABLE, KP_KIND_ABORTABLE},
        {KP_INVALID_TXN_STATE, KP_KIND_ABORTABLE},
        {KP_EINVAL, KP_KIND_INVALID},
        {KP_ETOOBIG, KP_KIND_INVALID},
        {KP_EDEADLK, KP_KIND_INVALID},
        {KP_EFORK, KP_KIND_FATAL},
        {KP_ECLOSED, KP_KIND_FATAL},
        {KP_EBUFFER, KP_KIND_RETRIABLE},
        {KP_EMETADATA, KP_KIND_RETRIABLE},
        {KP_ETIMEDOUT, KP_KIND_RETRIABLE},
        {KP_EBATCH, KP_KIND_RETRIABLE},
        {KP_ESASL, KP_KIND_INVALID},
    };

    for (size_t i = 0; i < COUNT(want); i++)
        ck_assert_msg(kp_err_kind(want[i].err) == want[i].kind, "%s",
                      kp_err_name(want[i].err));
}
END_TEST

/* What may be tried again by us may be tried again by the application. */
START_TEST(retriable_rows_have_the_retriable_kind)
{
    for (int32_t err = -200; err <= 136; err++)
        if (kp__error_info(err)->retriable)
            ck_assert_msg(kp_err_kind(err) == KP_KIND_RETRIABLE, "%d", err);
}
END_TEST

START_TEST(the_committed_header_has_nothing_else)
{
    const char *srcdir = getenv("srcdir");
    char path[4096], line[256], want[256];
    size_t i = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/include/kp/errors.h",
                   srcdir != NULL ? srcdir : ".");
    f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strstr(line, " = ") == NULL)
            continue;
        ck_assert_uint_lt(i, COUNT(kafka));
        (void)snprintf(want, sizeof want, "    KP_%s = %d%s\n", kafka[i].name,
                       kafka[i].code, i + 1 < COUNT(kafka) ? "," : "");
        ck_assert_str_eq(line, want);
        i++;
    }
    (void)fclose(f);
    ck_assert_uint_eq(i, COUNT(kafka));
}
END_TEST

static Suite *errors_suite(void)
{
    Suite *s = suite_create("errors");
    TCase *t = tcase_create("errors");

    tcase_add_test(t, every_code_of_kafka_has_its_row);
    tcase_add_test(t, every_code_of_ours_has_its_row);
    tcase_add_test(t, other_codes_are_unknown);
    tcase_add_test(t, every_row_has_a_sentence_that_fits_a_kp_error);
    tcase_add_test(t, retriable_and_refreshing_are_javas);
    tcase_add_test(t, kinds_say_what_to_do);
    tcase_add_test(t, retriable_rows_have_the_retriable_kind);
    tcase_add_test(t, the_committed_header_has_nothing_else);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(errors_suite)
