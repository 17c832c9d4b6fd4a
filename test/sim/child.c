/* SPDX-License-Identifier: BSD-2-Clause */
/* child.c - seeds in a process of their own: one that crashes, hangs or fails
 * ends it, and the parent says which and goes on with another. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/sim/sim.h"

#define SECONDS_A_SEED 4 /* of processor time: then it hangs */
#define STATUS_FAILED 77

/* What the child tells; one page that both see. */
struct told {
    uint64_t at; /* the seed it is at, by number */
    struct sim_failure failure;
};
static struct told *told;

int kp__planted; /* see plant.h; without effect in every other variant */

static void on_fail(const struct world *w, const char *text)
{
    world_trace(w, "%s", text);
    (void)snprintf(told->failure.text, sizeof(told->failure.text), "%s", text);
    told->failure.size = *sim_size();
    _exit(STATUS_FAILED);
}

static void limit_time(void)
{
    struct itimerval t = {.it_value = {.tv_sec = SECONDS_A_SEED}};

    (void)setitimer(ITIMER_VIRTUAL, &t, NULL);
}

static uint64_t run_one(uint64_t seed, const struct sim_limits *limits)
{
    limit_time();
    return sim_seed(seed, limits);
}

static void run_twice(uint64_t seed, const struct sim_limits *limits,
                      uint64_t digest)
{
    if (run_one(seed, limits) == digest)
        return;
    (void)snprintf(told->failure.text, sizeof(told->failure.text),
                   "I-78: two runs differ");
    told->failure.size = *sim_size();
    _exit(STATUS_FAILED);
}

uint64_t sim_nth(uint64_t base, uint64_t i)
{
    /* splitmix64: neighbours have nothing in common */
    uint64_t z = base + i * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* What it said last on stderr: an assertion of the library's, or a
 * sanitizer. */
static void last_words(FILE *said, char *out, size_t size)
{
    char line[256];

    rewind(said);
    while (fgets(line, sizeof(line), said) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strstr(line, "check failed") != NULL ||
            strstr(line, "ERROR:") != NULL || strstr(line, "SUMMARY") != NULL ||
            strstr(line, "runtime error") != NULL || out[0] == '\0')
            (void)snprintf(out, size, "%s", line);
    }
}

static void say_how_it_ended(int status, FILE *said, struct sim_failure *out)
{
    char words[256] = "";

    if (said != NULL)
        last_words(said, words, sizeof(words));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGVTALRM)
        (void)snprintf(out->text, sizeof(out->text), "I-39: it does not end");
    else if (WIFSIGNALED(status))
        (void)snprintf(out->text, sizeof(out->text), "I-31: signal %d: %s",
                       WTERMSIG(status), words);
    else
        (void)snprintf(out->text, sizeof(out->text), "I-31: exit %d: %s",
                       WEXITSTATUS(status), words);
}

/* fn runs in a child.  True: it ended well. */
static bool in_child(void (*fn)(void *arg), void *arg, struct sim_failure *out)
{
    bool quiet = getenv("KP_WORLD_TRACE") == NULL;
    FILE *said = quiet ? tmpfile() : NULL;
    int status;
    pid_t pid;

    memset(&told->failure, 0, sizeof(told->failure));
    (void)fflush(NULL);
    pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        if (said != NULL)
            (void)dup2(fileno(said), STDERR_FILENO);
        world_on_fail(on_fail);
        fn(arg);
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid)
        abort();
    *out = told->failure;
    if (status != 0 &&
        !(WIFEXITED(status) && WEXITSTATUS(status) == STATUS_FAILED))
        say_how_it_ended(status, said, out);
    if (said != NULL)
        (void)fclose(said);
    return status == 0;
}

static void open_page(void)
{
    if (told != NULL)
        return;
    told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        abort();
}

struct job {
    uint64_t base, from, to;
    const struct sim_limits *limits;
};

static void one(void *arg)
{
    const struct job *j = arg;

    (void)run_one(j->base, j->limits);
}

bool sim_fails(uint64_t seed, const struct sim_limits *limits,
               struct sim_failure *out)
{
    struct job j = {seed, 0, 0, limits};

    open_page();
    return !in_child(one, &j, out);
}

static void some(void *arg)
{
    const struct job *j = arg;

    for (uint64_t i = j->from; i < j->to; i++) {
        uint64_t seed = sim_nth(j->base, i), digest;

        told->at = i;
        digest = run_one(seed, j->limits);
        if (i % 100 == 0)
            run_twice(seed, j->limits, digest);
    }
}

uint64_t sim_run_some(uint64_t base, uint64_t from, uint64_t to,
                      const struct sim_limits *limits, struct sim_failure *out)
{
    struct job j = {base, from, to, limits};

    open_page();
    return in_child(some, &j, out) ? to : told->at;
}

bool sim_plant(int number)
{
    kp__planted = number;
#ifdef KP_PLANTED
    return true;
#else
    return number == 0;
#endif
}
