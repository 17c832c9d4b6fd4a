/* SPDX-License-Identifier: BSD-2-Clause */
/* thread_test.c - our threads: names, signals; forks; the callback mark. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/thread.h"
#include "lib/base/wait.h"
#include "test/support/main.h"

struct seen {
    char name[16];
    sigset_t blocked;
    void *arg;
    bool in_callback;
    _Atomic uint32_t done;
};

static void *look(void *arg)
{
    struct seen *s = arg;

    s->arg = arg;
    (void)pthread_getname_np(pthread_self(), s->name, sizeof(s->name));
    (void)pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
    s->in_callback = kp__in_callback();
    s->done = 1;
    kp__wake(&s->done, 1);
    return arg;
}

START_TEST(runs_with_its_argument_and_name)
{
    struct seen s = {0};
    pthread_t thread;
    void *result;

    ck_assert_int_eq(kp__thread_start(&thread, "kp-io:orders", look, &s), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(s.arg, &s);
    ck_assert_ptr_eq(result, &s);
    ck_assert_str_eq(s.name, "kp-io:orders");
}
END_TEST

START_TEST(a_long_name_is_cut)
{
    struct seen s = {0};
    pthread_t thread;

    ck_assert_int_eq(
        kp__thread_start(&thread, "kp-io:a-long-client-id", look, &s), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_str_eq(s.name, "kp-io:a-long-cl");
}
END_TEST

START_TEST(signals_are_blocked_there_and_not_here)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGPIPE, SIGUSR1, SIGALRM};
    struct seen s = {0};
    sigset_t before, after;
    pthread_t thread;

    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    ck_assert_int_eq(kp__thread_start(&thread, "t", look, &s), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ck_assert(sigismember(&s.blocked, numbers[i]));
        ck_assert_int_eq(sigismember(&after, numbers[i]),
                         sigismember(&before, numbers[i]));
    }
}
END_TEST

static void tell(int sig)
{
    (void)sig;
    _exit(7);
}

static void *go_wrong(void *arg)
{
    (void)arg;
    __builtin_trap();
}

/* A fault in a callback reaches the program's handler, as on its own threads. */
START_TEST(a_fault_finds_its_handler)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT};
    pid_t child = fork();
    int status = -1;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        pthread_t thread;

        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
            (void)signal(faults[i], tell);
        if (kp__thread_start(&thread, "t", go_wrong, NULL) != 0)
            _exit(1);
        (void)pthread_join(thread, NULL);
        _exit(2);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x", status);
}
END_TEST

START_TEST(detached_runs_too)
{
    /* static: the thread may still wake the word after we have seen it */
    static struct seen s;

    ck_assert_int_eq(kp__thread_start_detached("kp-dns", look, &s), 0);
    while (s.done == 0)
        (void)kp__wait(&s.done, 0, KP_NEVER);
    ck_assert_str_eq(s.name, "kp-dns");
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(without_memory_no_thread)
{
    pthread_t thread;

    kp__mem_fail_at(1);
    ck_assert_int_eq(kp__thread_start(&thread, "t", look, NULL), ENOMEM);
    kp__mem_fail_at(1);
    ck_assert_int_eq(kp__thread_start_detached("t", look, NULL), ENOMEM);
}
END_TEST
#endif

/* How a child that forks `more` times below itself answers. */
static int generation_below(int more)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        _exit(more > 0 ? generation_below(more - 1)
                       : (int)kp__fork_generation());
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return 99;
    return WEXITSTATUS(status);
}

START_TEST(forks_are_counted)
{
    int before;

    kp__fork_watch();
    kp__fork_watch(); /* once is enough */
    before = (int)kp__fork_generation();
    ck_assert_int_eq(generation_below(0), before + 1);
    ck_assert_int_eq(generation_below(1), before + 2);
    ck_assert_int_eq((int)kp__fork_generation(), before);
}
END_TEST

START_TEST(the_callback_mark_is_the_threads_own)
{
    struct seen s = {0};
    pthread_t thread;

    ck_assert(!kp__in_callback());
    kp__set_in_callback(true);
    ck_assert(kp__in_callback());
    s.in_callback = true;
    ck_assert_int_eq(kp__thread_start(&thread, "t", look, &s), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(!s.in_callback);
    kp__set_in_callback(false);
    ck_assert(!kp__in_callback());
}
END_TEST

static Suite *thread_suite(void)
{
    Suite *s = suite_create("thread");
    TCase *c = tcase_create("thread");

    tcase_add_test(c, runs_with_its_argument_and_name);
    tcase_add_test(c, a_long_name_is_cut);
    tcase_add_test(c, signals_are_blocked_there_and_not_here);
    tcase_add_test(c, a_fault_finds_its_handler);
    tcase_add_test(c, detached_runs_too);
#ifdef KP_FAILMALLOC
    tcase_add_test(c, without_memory_no_thread);
#endif
    tcase_add_test(c, forks_are_counted);
    tcase_add_test(c, the_callback_mark_is_the_threads_own);
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(thread_suite)
