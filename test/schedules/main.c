/* SPDX-License-Identifier: BSD-2-Clause */
/* explore - runs the scenarios of scenarios/ under the schedule explorer.
 *
 *   explore [--cap N] [--seeds N] [--base B] [--plants no] [SCENARIO...]
 *
 * Each scenario: all schedules of its small form, up to --cap of them; if
 * there are more, all those of fewer actors, and those with at most two
 * preemptions; --seeds samples of its large form; and for each fault that it
 * must notice, that it does.  The last line is "N passed, N failed". */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/schedules/explore.h"
#include "test/schedules/scenarios.h"

#define BOUND 2

static uint64_t cap = 3000, seeds = 300, base = 1;
static bool plants = true;
static int passed, failed;

static void verdict(bool good)
{
    *(good ? &passed : &failed) += 1;
}

static void tell(const struct scenario *s, const char *what,
                 const struct explored *e)
{
    printf("%-18s %-34s %8" PRIu64 " schedules explored, %d violations\n",
           s->name, what, e->schedules, e->bad ? 1 : 0);
    if (e->bad) {
        printf("  %s\n", sched_violation_text());
        sched_print_trace();
    }
    fflush(stdout);
    verdict(!e->bad);
}

/* True if there are no more schedules, or one was bad. */
static bool explore_whole(const struct scenario *s, int actors)
{
    struct explored e = explore_all(s, actors, cap);
    char what[64];

    (void)snprintf(what, sizeof what, "%d actors, %s", actors,
                   e.complete ? "all" : "the first, depth first");
    tell(s, what, &e);
    return e.complete || e.bad;
}

static void explore_small(const struct scenario *s)
{
    int actors = s->small;
    struct explored e;
    char what[64];

    if (explore_whole(s, actors))
        return;
    do
        actors--;
    while (actors > 1 && !explore_whole(s, actors));
    e = explore_bounded(s, BOUND, cap);
    (void)snprintf(what, sizeof what, "%d actors, %s %d preemptions", s->small,
                   e.complete ? "all with" : "some with", BOUND);
    tell(s, what, &e);
}

static void explore_large(const struct scenario *s)
{
    struct explored e = explore_seeds(s, base, seeds);
    char what[64];

    (void)snprintf(what, sizeof what, "%d actors, seeds from %" PRIu64,
                   s->large, base);
    if (e.bad)
        (void)snprintf(what, sizeof what, "%d actors, seed %" PRIu64, s->large,
                       e.seed);
    tell(s, what, &e);
}

/* Leaving out equal schedules must not leave out a bad one: if all others were
 * run without noticing what a simpler strategy sees, the explorer is wrong.
 * (Without exclusion plain memory is shared, of which it knows nothing.) */
static bool agrees(const struct scenario *s)
{
    struct explored e;

    if (sched_planted() == PLANT_NO_EXCLUSION)
        return true;
    e = explore_all(s, s->small, cap);
    return e.bad || !e.complete;
}

static bool notices(const struct scenario *s, uint64_t *schedules)
{
    struct explored e = {0};

    if (s->small > 0)
        e = explore_bounded(s, BOUND, cap);
    *schedules = e.schedules;
    if (e.bad)
        return agrees(s);
    e = explore_seeds(s, base, cap);
    *schedules += e.schedules;
    return e.bad;
}

/* Prints the line but for its end; exits 0 if the fault was noticed. */
static void run_planted(const struct scenario *s, enum plant plant)
{
    uint64_t schedules;
    bool noticed;

    sched_plant(plant);
    noticed = notices(s, &schedules);
    printf("%8" PRIu64 " schedules, ", schedules);
    fflush(stdout);
    _exit(noticed ? 0 : 1);
}

/* In a process of its own, for a fault may break memory: a crash is a way of
 * noticing it. */
static void explore_plant(const struct scenario *s, enum plant plant)
{
    bool noticed = false;
    int status = 0;
    pid_t child;

    printf("%-18s planted: %-25s ", s->name, sched_plant_name(plant));
    fflush(stdout);
    child = fork();
    if (child == 0)
        run_planted(s, plant);
    if (child > 0 && waitpid(child, &status, 0) == child)
        noticed = WIFSIGNALED(status) || WEXITSTATUS(status) == 0;
    printf("%s\n", !noticed              ? "NOT NOTICED"
                   : WIFSIGNALED(status) ? "noticed by a crash"
                                         : "noticed");
    fflush(stdout);
    verdict(noticed);
}

static void explore(const struct scenario *s)
{
    sched_on_switch(NULL);
    if (s->small > 0)
        explore_small(s);
    if (seeds > 0)
        explore_large(s);
    for (int p = 1; plants && p < PLANT_COUNT; p++)
        if ((s->plants & PLANT(p)) != 0)
            explore_plant(s, (enum plant)p);
}

static bool wanted(const struct scenario *s, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], s->name) == 0)
            return true;
    return count == 0;
}

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

static void read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"cap", required_argument, NULL, 'c'},
        {"seeds", required_argument, NULL, 's'},
        {"base", required_argument, NULL, 'b'},
        {"plants", required_argument, NULL, 'p'},
        {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 'c')
            cap = number(optarg);
        else if (option == 's')
            seeds = number(optarg);
        else if (option == 'b')
            base = number(optarg);
        else if (option == 'p')
            plants = strcmp(optarg, "no") != 0;
        else
            exit(2);
    }
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    for (size_t i = 0; i < scenario_count; i++)
        if (wanted(scenarios[i], argv + optind, argc - optind))
            explore(scenarios[i]);
    if (passed + failed == 0)
        failed = 1;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
