/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of a record after one more attempt: every code, every acks,
 * whether the frame was accepted whole, and everything known before. */
#include "lib/wire/errors.h"
#include "test/support/main.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ACKS_ALL ((int16_t)-1)

static bool among(kp_err err, const kp_err *codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (codes[i] == err)
            return true;
    return false;
}

/* Brokers check these before they append. */
static const kp_err refusals[] = {2,  10, 14, 15, 16, 17, 18, 19, 21,
                                  29, 31, 32, 35, 42, 43, 44, 45, 47,
                                  48, 49, 51, 53, 59, 76, 87, 90, 120};
/* A leader that waits for its replicas has appended already. */
static const kp_err moved[] = {3, 5, 6, 9, 74, 75, 100, 103};
/* We refused, so nothing was ever sent. */
static const kp_err ours[] = {
    KP_EINVAL,    KP_ETOPIC,  KP_EPARTITION, KP_ETIMESTAMP, KP_EHEADER,
    KP_ETOOBIG,   KP_ESTATE,  KP_EDEADLK,    KP_EFORK,      KP_ENOTSUP,
    KP_EMETADATA, KP_EBUFFER, KP_EBATCH};

/* Of the first attempt, sent whole. */
static enum certainty alone(kp_err err, int16_t acks)
{
    if (acks == 0)
        return CERTAIN_MAYBE;
    if (err == KP_OK)
        return CERTAIN_YES;
    if (among(err, refusals, COUNT(refusals)) || among(err, ours, COUNT(ours)))
        return CERTAIN_NO;
    if (among(err, moved, COUNT(moved)))
        return acks == 1 ? CERTAIN_NO : CERTAIN_MAYBE;
    return CERTAIN_MAYBE;
}

static enum certainty join(enum certainty a, enum certainty b)
{
    if (a == CERTAIN_YES || b == CERTAIN_YES)
        return CERTAIN_YES;
    return a == CERTAIN_MAYBE || b == CERTAIN_MAYBE ? CERTAIN_MAYBE
                                                    : CERTAIN_NO;
}

static const int16_t all_acks[] = {0, 1, ACKS_ALL};
static const enum certainty all_certainties[] = {CERTAIN_NO, CERTAIN_MAYBE,
                                                 CERTAIN_YES};

START_TEST(the_first_attempt_alone)
{
    for (int32_t err = -160; err <= 200; err++)
        for (size_t a = 0; a < COUNT(all_acks); a++)
            for (size_t c = 0; c < COUNT(all_certainties); c++)
                ck_assert_msg(kp__certainty(err, all_acks[a], true, true,
                                            all_certainties[c]) ==
                                  alone(err, all_acks[a]),
                              "%d, acks=%d", err, all_acks[a]);
}
END_TEST

START_TEST(what_was_not_sent_whole_is_not_stored)
{
    for (int32_t err = -160; err <= 200; err++)
        for (size_t a = 0; a < COUNT(all_acks); a++)
            ck_assert_int_eq(
                kp__certainty(err, all_acks[a], false, true, CERTAIN_NO),
                CERTAIN_NO);
}
END_TEST

START_TEST(what_was_not_sent_whole_says_nothing_of_before)
{
    for (int32_t err = -160; err <= 200; err++)
        for (size_t a = 0; a < COUNT(all_acks); a++)
            for (size_t c = 0; c < COUNT(all_certainties); c++)
                ck_assert_int_eq(kp__certainty(err, all_acks[a], false, false,
                                               all_certainties[c]),
                                 all_certainties[c]);
}
END_TEST

START_TEST(later_attempts_are_joined)
{
    for (int32_t err = -160; err <= 200; err++)
        for (size_t a = 0; a < COUNT(all_acks); a++)
            for (size_t c = 0; c < COUNT(all_certainties); c++)
                if (err != KP_DUPLICATE_SEQUENCE_NUMBER || all_acks[a] == 0)
                    ck_assert_msg(
                        kp__certainty(err, all_acks[a], true, false,
                                      all_certainties[c]) ==
                            join(alone(err, all_acks[a]), all_certainties[c]),
                        "%d, acks=%d", err, all_acks[a]);
}
END_TEST

START_TEST(a_duplicate_proves_an_attempt_that_may_have_been_stored)
{
    for (size_t a = 1; a < COUNT(all_acks); a++) {
        const int16_t acks = all_acks[a];
        ck_assert_int_eq(kp__certainty(46, acks, true, false, CERTAIN_MAYBE),
                         CERTAIN_YES);
        ck_assert_int_eq(kp__certainty(46, acks, true, false, CERTAIN_YES),
                         CERTAIN_YES);
        ck_assert_int_eq(kp__certainty(46, acks, true, false, CERTAIN_NO),
                         CERTAIN_MAYBE);
        ck_assert_int_eq(kp__certainty(46, acks, true, true, CERTAIN_NO),
                         CERTAIN_MAYBE);
    }
}
END_TEST

/* A story: sent, the leader moved, refused, then out of time. */
START_TEST(a_refusal_leaves_an_earlier_maybe)
{
    enum certainty c;

    c = kp__certainty(KP_NOT_LEADER_OR_FOLLOWER, ACKS_ALL, true, true,
                      CERTAIN_NO);
    ck_assert_int_eq(c, CERTAIN_MAYBE);
    c = kp__certainty(KP_NOT_ENOUGH_REPLICAS, ACKS_ALL, true, false, c);
    ck_assert_int_eq(c, CERTAIN_MAYBE);
    c = kp__certainty(KP_EDISCONNECT, ACKS_ALL, false, false, c);
    ck_assert_int_eq(c, CERTAIN_MAYBE);
}
END_TEST

START_TEST(only_refusals_leave_a_no)
{
    enum certainty c;

    c = kp__certainty(KP_ECONNECT, ACKS_ALL, false, true, CERTAIN_NO);
    ck_assert_int_eq(c, CERTAIN_NO);
    c = kp__certainty(KP_NOT_ENOUGH_REPLICAS, ACKS_ALL, true, false, c);
    ck_assert_int_eq(c, CERTAIN_NO);
    c = kp__certainty(KP_OK, ACKS_ALL, true, false, c);
    ck_assert_int_eq(c, CERTAIN_YES);
    c = kp__certainty(KP_EDISCONNECT, ACKS_ALL, true, false, c);
    ck_assert_int_eq(c, CERTAIN_YES);
}
END_TEST

static Suite *certainty_suite(void)
{
    Suite *s = suite_create("certainty");
    TCase *t = tcase_create("certainty");

    tcase_add_test(t, the_first_attempt_alone);
    tcase_add_test(t, what_was_not_sent_whole_is_not_stored);
    tcase_add_test(t, what_was_not_sent_whole_says_nothing_of_before);
    tcase_add_test(t, later_attempts_are_joined);
    tcase_add_test(t, a_duplicate_proves_an_attempt_that_may_have_been_stored);
    tcase_add_test(t, a_refusal_leaves_an_earlier_maybe);
    tcase_add_test(t, only_refusals_leave_a_no);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(certainty_suite)
