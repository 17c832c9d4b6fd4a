/* SPDX-License-Identifier: BSD-2-Clause */
/* wait_test.c - sleeping on a word: deadlines, wake-ups, signals. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/wait.h"
#include "test/support/main.h"

static _Atomic uint32_t word;

static void set_up(void)
{
    word = 0;
}

static int64_t now_ns(void)
{
    return kp__now_ns(&kp__system_clock);
}

START_TEST(a_changed_word_does_not_wait)
{
    ck_assert(kp__wait(&word, 1, KP_NEVER));
    ck_assert(kp__wait(&word, 1, now_ns() + 10 * KP_NS_PER_SEC));
}
END_TEST

START_TEST(a_deadline_in_the_past_returns_at_once)
{
    ck_assert(!kp__wait(&word, 0, now_ns() - 1));
    ck_assert(!kp__wait(&word, 0, 0));
    ck_assert(!kp__wait(&word, 0, INT64_MIN));
}
END_TEST

START_TEST(a_deadline_is_kept)
{
    int64_t deadline = now_ns() + 20 * KP_NS_PER_MS;

    while (kp__wait(&word, 0, deadline))
        continue; /* spurious returns are allowed */
    ck_assert_int_ge(now_ns(), deadline);
}
END_TEST

START_TEST(errno_is_left_alone)
{
    errno = 77;
    (void)kp__wait(&word, 0, 0);
    ck_assert_int_eq(errno, 77);
    (void)kp__wait(&word, 1, 0);
    ck_assert_int_eq(errno, 77);
    kp__wake(&word, 1);
    ck_assert_int_eq(errno, 77);
}
END_TEST

/* Two threads hand a word to and fro; a lost wake-up would hang them. */
enum { HANDS = 20000 };

static void *other_hand(void *arg)
{
    (void)arg;
    for (uint32_t turn = 0; turn < HANDS; turn++) {
        uint32_t seen;

        while ((seen = word) != 2 * turn + 1)
            (void)kp__wait(&word, seen, KP_NEVER);
        word = 2 * turn + 2;
        kp__wake(&word, 1);
    }
    return NULL;
}

START_TEST(no_wake_up_is_lost)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, other_hand, NULL), 0);
    for (uint32_t turn = 0; turn < HANDS; turn++) {
        uint32_t seen;

        word = 2 * turn + 1;
        kp__wake(&word, 1);
        while ((seen = word) != 2 * turn + 2)
            (void)kp__wait(&word, seen, KP_NEVER);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(word, 2 * HANDS);
}
END_TEST

enum { SLEEPERS = 8 };
static _Atomic int returned;

static void *sleep_until_changed(void *arg)
{
    (void)arg;
    while (word == 0)
        (void)kp__wait(&word, 0, KP_NEVER);
    returned++;
    return NULL;
}

START_TEST(waking_all)
{
    pthread_t threads[SLEEPERS];

    returned = 0;
    for (int i = 0; i < SLEEPERS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, sleep_until_changed, NULL), 0);
    word = 1;
    kp__wake(&word, SLEEPERS);
    for (int i = 0; i < SLEEPERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(returned, SLEEPERS);
}
END_TEST

/* -- Signals and cancelling -- */

static _Atomic int signals;

static void on_signal(int number)
{
    (void)number;
    signals++;
}

static void *wait_bounded(void *arg)
{
    *(int *)arg = 0;
    while (word == 0)
        if (!kp__wait(&word, 0, now_ns() + 60 * KP_NS_PER_SEC))
            *(int *)arg = 1; /* as if the deadline had passed */
    return NULL;
}

START_TEST(a_signal_is_not_a_deadline)
{
    struct sigaction action;
    pthread_t thread;
    int timed_out = -1;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    signals = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_bounded, &timed_out),
                     0);
    /* One after another: each has arrived before the next is sent. */
    for (int i = 1; i <= 20; i++) {
        ck_assert_int_eq(pthread_kill(thread, SIGUSR1), 0);
        while (signals < i)
            (void)kp__wait(&word, 0, now_ns() + KP_NS_PER_MS);
    }
    word = 1;
    kp__wake(&word, 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(timed_out, 0);
}
END_TEST

START_TEST(waiting_is_no_cancellation_point)
{
    pthread_t thread;
    void *result = NULL;

    ck_assert_int_eq(pthread_create(&thread, NULL, sleep_until_changed, NULL),
                     0);
    returned = 0;
    ck_assert_int_eq(pthread_cancel(thread), 0);
    word = 1;
    kp__wake(&word, 1);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_ne(result, PTHREAD_CANCELED);
    ck_assert_int_eq(returned, 1);
}
END_TEST

static void *sleep_with_mask(void *arg)
{
    uint32_t mask = *(uint32_t *)arg, seen;

    while (((seen = atomic_load(&word)) & mask) == 0)
        (void)kp__wait_masked(&word, seen, KP_NEVER, mask);
    return NULL;
}

/* Each of 32 sleeps apart: a wake-up for one is never spent on another. */
START_TEST(masks_wake_one_of_many)
{
    pthread_t threads[32];
    uint32_t masks[32];

    for (size_t i = 0; i < 32; i++) {
        masks[i] = UINT32_C(1) << i;
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, sleep_with_mask, &masks[i]), 0);
    }
    for (size_t i = 32; i-- > 0;) {
        atomic_fetch_or(&word, masks[i]);
        kp__wake_masked(&word, INT32_MAX, masks[i]);
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
}
END_TEST

START_TEST(tickets)
{
    struct ticket nothing = {0};
    struct ticket changed = {&word, 1, KP_NEVER, 0};
    struct ticket late = {&word, 0, 0, 0};

    ck_assert(kp__ticket_wait(&nothing));
    ck_assert(kp__ticket_wait(&changed));
    ck_assert(!kp__ticket_wait(&late));
}
END_TEST

static Suite *wait_suite(void)
{
    Suite *s = suite_create("wait");
    TCase *c = tcase_create("wait");

    tcase_add_checked_fixture(c, set_up, NULL);
    tcase_add_test(c, a_changed_word_does_not_wait);
    tcase_add_test(c, a_deadline_in_the_past_returns_at_once);
    tcase_add_test(c, a_deadline_is_kept);
    tcase_add_test(c, errno_is_left_alone);
    tcase_add_test(c, no_wake_up_is_lost);
    tcase_add_test(c, waking_all);
    tcase_add_test(c, a_signal_is_not_a_deadline);
    tcase_add_test(c, waiting_is_no_cancellation_point);
    tcase_add_test(c, masks_wake_one_of_many);
    tcase_add_test(c, tickets);
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(wait_suite)
