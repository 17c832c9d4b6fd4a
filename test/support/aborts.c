/* SPDX-License-Identifier: BSD-2-Clause */
/* aborts.c - whether a function ends its process by abort(3).  The main
 * thread: a child of it has no other. */
#include "test/support/aborts.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_in_child(void (*fn)(void *arg), void *arg)
{
    const struct rlimit no_core = {0, 0};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(SIGABRT, SIG_DFL);
    /* what it says while dying would look like a failure of the test */
    if (null >= 0)
        (void)dup2(null, STDERR_FILENO);
    fn(arg);
    _exit(0);
}

bool test_aborts(void (*fn)(void *arg), void *arg)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        run_in_child(fn, arg);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return false;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}
