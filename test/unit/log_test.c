/* SPDX-License-Identifier: BSD-2-Clause */
/* log_test.c - what reaches the application's log function, and when. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "test/support/fake_clock.h"
#include "test/support/main.h"

static struct fake_clock fake;
static struct clock clock_;
static struct logger *logger;

/* Lines as "level component text xREPEATED", one below the other. */
static char seen[4096];
static char client_id[64];
static _Atomic long shown, held_back;

static void remember(void *arg, const kp_log *line)
{
    size_t n = strlen(seen);

    ck_assert_ptr_eq(arg, seen);
    (void)snprintf(seen + n, sizeof(seen) - n, "%d %s %s x%d\n",
                   (int)line->level, line->component, line->text,
                   (int)line->repeated);
    (void)snprintf(client_id, sizeof(client_id), "%s", line->client_id);
}

static void set_up(void)
{
    fake.mono_ns = 0;
    clock_ = fake_clock(&fake);
    seen[0] = '\0';
    logger = kp__logger_create(KP_LOG_INFO, remember, seen, "orders", &clock_);
    ck_assert_ptr_nonnull(logger);
}

static void tear_down(void)
{
    kp__logger_destroy(logger);
}

static void expect(const char *lines)
{
    ck_assert_str_eq(seen, lines);
    seen[0] = '\0';
}

START_TEST(a_line_arrives_whole)
{
    kp__log(logger, KP_LOG_WARN, "metadata", "topic %s: %d", "t", 3);
    ck_assert_str_eq(client_id, "orders");
    expect("1 metadata topic t: 3 x0\n");
}
END_TEST

START_TEST(levels_above_are_dropped)
{
    kp__log(logger, KP_LOG_DEBUG, "metadata", "no");
    kp__log(logger, KP_LOG_INFO, "metadata", "yes");
    expect("2 metadata yes x0\n");
}
END_TEST

START_TEST(silent_loggers)
{
    struct log_limit limit = {0};
    struct logger *silent =
        kp__logger_create(KP_LOG_DEBUG, NULL, NULL, NULL, &clock_);

    kp__log(NULL, KP_LOG_ERROR, "c", "x");
    kp__log(silent, KP_LOG_ERROR, "c", "x");
    kp__log_limited(NULL, &limit, 1, KP_LOG_ERROR, "c", "x");
    kp__log_limited(silent, &limit, 1, KP_LOG_ERROR, "c", "x");
    kp__logger_destroy(silent);
    kp__logger_destroy(NULL);
    ck_assert_int_eq(limit.held, 0);
    expect("");
}
END_TEST

START_TEST(a_line_is_one_line)
{
    kp__log(logger, KP_LOG_INFO, "c", "a\nb\tc\x7f");
    expect("2 c a b c  x0\n");
}
END_TEST

START_TEST(a_long_line_is_cut_between_characters)
{
    char text[600];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    memcpy(text + 510, "\xc3\xbc", 2);
    kp__log(logger, KP_LOG_INFO, "c", "%s", text);
    ck_assert_uint_eq(strlen(seen), strlen("2 c  x0\n") + 510);
}
END_TEST

/* -- Repeats -- */

START_TEST(repeats_are_held_back_for_ten_seconds)
{
    for (int second = 0; second < 10; second++) {
        kp__log(logger, KP_LOG_INFO, "c", "again");
        fake.mono_ns += KP_NS_PER_SEC;
    }
    expect("2 c again x0\n");
    kp__log(logger, KP_LOG_INFO, "c", "again");
    expect("2 c again x9\n");
    kp__log(logger, KP_LOG_INFO, "c", "again");
    expect("");
}
END_TEST

START_TEST(another_line_brings_out_what_was_held_back)
{
    for (int i = 0; i < 4; i++)
        kp__log(logger, KP_LOG_INFO, "c", "again");
    kp__log(logger, KP_LOG_INFO, "c", "other");
    expect("2 c again x0\n2 c again x2\n2 c other x0\n");
}
END_TEST

START_TEST(same_text_of_another_component_or_level_is_another_line)
{
    kp__log(logger, KP_LOG_INFO, "c", "x");
    kp__log(logger, KP_LOG_INFO, "d", "x");
    kp__log(logger, KP_LOG_WARN, "d", "x");
    expect("2 c x x0\n2 d x x0\n1 d x x0\n");
}
END_TEST

START_TEST(the_end_brings_out_what_was_held_back)
{
    for (int i = 0; i < 3; i++)
        kp__log(logger, KP_LOG_INFO, "c", "again");
    kp__logger_destroy(logger);
    logger = NULL;
    expect("2 c again x0\n2 c again x1\n");
}
END_TEST

/* -- Rate limits -- */

START_TEST(one_line_an_interval_for_a_site)
{
    struct log_limit limit = {0};

    for (int i = 0; i < 5; i++)
        ck_assert(kp__log_limited(logger, &limit, KP_NS_PER_SEC, KP_LOG_INFO,
                                  "c", "line %d", i) == (i == 0));
    expect("2 c line 0 x0\n");
    fake.mono_ns += KP_NS_PER_SEC;
    kp__log_limited(logger, &limit, KP_NS_PER_SEC, KP_LOG_INFO, "c", "next");
    expect("2 c next (4 like it held back) x0\n");
    fake.mono_ns += KP_NS_PER_SEC;
    kp__log_limited(logger, &limit, KP_NS_PER_SEC, KP_LOG_INFO, "c", "last");
    expect("2 c last x0\n");
}
END_TEST

START_TEST(sites_do_not_share_limits)
{
    struct log_limit a = {0}, b = {0};

    kp__log_limited(logger, &a, KP_NS_PER_SEC, KP_LOG_INFO, "c", "a");
    kp__log_limited(logger, &b, KP_NS_PER_SEC, KP_LOG_INFO, "c", "b");
    expect("2 c a x0\n2 c b x0\n");
}
END_TEST

/* -- Threads: every line is shown or counted -- */

enum { THREADS = 4, LINES = 5000 };

static void count(void *arg, const kp_log *line)
{
    (void)arg;
    shown++;
    held_back += line->repeated;
}

static void *log_much(void *arg)
{
    for (int i = 0; i < LINES; i++)
        kp__log(arg, KP_LOG_INFO, "c", "%s", i % 10 == 0 ? "a" : "b");
    return NULL;
}

START_TEST(no_line_is_lost_between_threads)
{
    struct logger *l =
        kp__logger_create(KP_LOG_INFO, count, NULL, "x", &clock_);
    pthread_t threads[THREADS];

    shown = held_back = 0;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, log_much, l), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    kp__logger_destroy(l);
    ck_assert_int_eq(shown + held_back, THREADS * LINES);
    ck_assert_int_gt(held_back, 0);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(creation_without_memory)
{
    long live = kp__mem_live();

    for (int i = 1; i <= 2; i++) {
        kp__mem_fail_at(i);
        ck_assert_ptr_null(
            kp__logger_create(KP_LOG_INFO, count, NULL, "x", &clock_));
        ck_assert_int_eq(kp__mem_live(), live);
    }
}
END_TEST
#endif

static Suite *log_suite(void)
{
    Suite *s = suite_create("log");
    TCase *c = tcase_create("log");

    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, a_line_arrives_whole);
    tcase_add_test(c, levels_above_are_dropped);
    tcase_add_test(c, silent_loggers);
    tcase_add_test(c, a_line_is_one_line);
    tcase_add_test(c, a_long_line_is_cut_between_characters);
    tcase_add_test(c, repeats_are_held_back_for_ten_seconds);
    tcase_add_test(c, another_line_brings_out_what_was_held_back);
    tcase_add_test(c,
                   same_text_of_another_component_or_level_is_another_line);
    tcase_add_test(c, the_end_brings_out_what_was_held_back);
    tcase_add_test(c, one_line_an_interval_for_a_site);
    tcase_add_test(c, sites_do_not_share_limits);
    tcase_add_test(c, no_line_is_lost_between_threads);
#ifdef KP_FAILMALLOC
    tcase_add_test(c, creation_without_memory);
#endif
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(log_suite)
