/* SPDX-License-Identifier: BSD-2-Clause */
/* wakeup_test.c - the fd that another thread makes readable. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>

#include "lib/base/wakeup.h"
#include "test/support/main.h"

static struct wakeup wakeup;

static void set_up(void)
{
    ck_assert_int_eq(kp__wakeup_init(&wakeup), 0);
}

static void tear_down(void)
{
    kp__wakeup_fini(&wakeup);
}

static int readable(int timeout_ms)
{
    struct pollfd p = {.fd = wakeup.read_fd, .events = POLLIN};

    return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN) != 0;
}

START_TEST(new_is_not_readable)
{
    ck_assert(!readable(0));
    kp__wakeup_clear(&wakeup); /* and clearing it does not wait */
    ck_assert(!readable(0));
}
END_TEST

START_TEST(set_and_cleared)
{
    kp__wakeup_set(&wakeup);
    ck_assert(readable(0));
    ck_assert(readable(0));
    kp__wakeup_clear(&wakeup);
    ck_assert(!readable(0));
    kp__wakeup_set(&wakeup);
    ck_assert(readable(0));
}
END_TEST

/* More than a pipe holds. */
START_TEST(set_often_cleared_once)
{
    errno = 77;
    for (int i = 0; i < 100000; i++)
        kp__wakeup_set(&wakeup);
    ck_assert(readable(0));
    kp__wakeup_clear(&wakeup);
    ck_assert_int_eq(errno, 77);
    ck_assert(!readable(0));
}
END_TEST

START_TEST(descriptors_are_private_and_do_not_wait)
{
    int fds[2] = {wakeup.read_fd, wakeup.write_fd};

    for (int i = 0; i < 2; i++) {
        ck_assert(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
        ck_assert(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
    }
}
END_TEST

static void *set_it(void *arg)
{
    (void)arg;
    kp__wakeup_set(&wakeup);
    return NULL;
}

START_TEST(another_thread_ends_a_poll)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, set_it, NULL), 0);
    ck_assert(readable(30000));
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

START_TEST(no_descriptors_left_is_an_error_number)
{
    struct rlimit limit, none;
    struct wakeup more;
    int err;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    err = kp__wakeup_init(&more);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(err, EMFILE);
}
END_TEST

static Suite *wakeup_suite(void)
{
    Suite *s = suite_create("wakeup");
    TCase *c = tcase_create("wakeup");

    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, new_is_not_readable);
    tcase_add_test(c, set_and_cleared);
    tcase_add_test(c, set_often_cleared_once);
    tcase_add_test(c, descriptors_are_private_and_do_not_wait);
    tcase_add_test(c, another_thread_ends_a_poll);
    tcase_add_test(c, no_descriptors_left_is_an_error_number);
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(wakeup_suite)
