/* SPDX-License-Identifier: BSD-2-Clause */
/* planted.c - does the simulator find what it is there to find?  For each
 * planted fault its kept seeds first, then fresh ones.
 *
 * Kept seeds stand beside the table, in planted.seeds: "NUMBER SEED" a line.
 * Library and simulator change, and with them what a seed does: one that finds
 * its fault no more costs some time, no more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/sim.h"

#define FRESH 20000
#define FRESH_BASE 1

static void caught(int number, const char *name, uint64_t tries, uint64_t seed,
                   const char *text)
{
    (void)printf("planted %d (%s): caught by seed %llu, try %llu: %s\n", number,
                 name, (unsigned long long)seed, (unsigned long long)tries,
                 text);
    (void)fflush(stdout);
}

/* What fails without the fault too was not found: it is a fault of ours. */
static bool fails_anyway(int number, uint64_t seed)
{
    struct sim_failure f;
    bool fails;

    (void)sim_plant(0);
    fails = sim_fails(seed, &SIM_ALL, &f);
    (void)sim_plant(number);
    if (fails)
        (void)printf("seed %llu fails without any fault: %s\n",
                     (unsigned long long)seed, f.text);
    return fails;
}

static bool kept_seed_finds(const char *table, int number, const char *name)
{
    char path[512], line[128];
    bool found = false;
    FILE *in;

    (void)snprintf(path, sizeof(path), "%s.seeds", table);
    in = fopen(path, "r");
    while (in != NULL && !found && fgets(line, sizeof(line), in) != NULL) {
        unsigned long long seed;
        struct sim_failure f;
        int of;

        if (sscanf(line, "%d %llu", &of, &seed) != 2 || of != number)
            continue;
        found = sim_fails(seed, &SIM_ALL, &f) && !fails_anyway(number, seed);
        if (found)
            caught(number, name, 0, seed, f.text);
    }
    if (in != NULL)
        (void)fclose(in);
    return found;
}

static bool fresh_seed_finds(int number, const char *name)
{
    struct sim_failure f;
    uint64_t i = 0;

    while ((i = sim_run_some(FRESH_BASE, i, FRESH, &SIM_ALL, &f)) < FRESH) {
        if (!fails_anyway(number, sim_nth(FRESH_BASE, i))) {
            caught(number, name, i + 1, sim_nth(FRESH_BASE, i), f.text);
            return true;
        }
        i++;
    }
    return false;
}

static bool finds(const char *table, int number, const char *name)
{
    if (!sim_plant(number))
        abort();
    if (kept_seed_finds(table, number, name) || fresh_seed_finds(number, name))
        return true;
    (void)printf("planted %d (%s): NOT CAUGHT\n", number, name);
    (void)fflush(stdout);
    return false;
}

uint64_t sim_planted(const char *table, int only)
{
    FILE *in = fopen(table, "r");
    char line[256];
    uint64_t all = 0, found = 0;

    if (in == NULL || !sim_plant(1)) {
        (void)printf("nothing is planted in this build\n");
        return 1;
    }
    while (fgets(line, sizeof(line), in) != NULL) {
        char *name;
        int number;

        if (line[0] != '=')
            continue;
        line[strcspn(line, "\n")] = '\0';
        number = (int)strtol(line + 2, &name, 10);
        if (only != 0 && number != only)
            continue;
        all++;
        found += finds(table, number, name + 1) ? 1 : 0;
    }
    (void)fclose(in);
    (void)printf("%llu planted, %llu caught\n", (unsigned long long)all,
                 (unsigned long long)found);
    return all - found;
}
