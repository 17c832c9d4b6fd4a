/* SPDX-License-Identifier: BSD-2-Clause */
/* run.c - the simulator as a program.
 *
 *   run --seeds N --base B      N seeds drawn from B
 *   run --seed S [--trace]      one, and its story on stderr
 *   run --kept FILE             those that a file names
 *   run --planted FILE          is each fault of the table found?
 *   run --plant N ...           with this fault (build/planted/test/sim/run)
 *
 * A seed can be made smaller: --off FEATURE,... --steps N --faults N
 * --records N --actors N.  Whatever fails is shrunk (unless --no-shrink) and
 * printed as the command that runs it again.  The last line is
 * "N seeds, V violations"; the exit status is 0 if there were none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/sim/sim.h"

struct options {
    uint64_t seed, base, seeds;
    bool one, trace, shrinks;
    const char *kept, *planted;
    int plant;
    struct sim_limits limits;
    uint64_t violations_max;
};

static _Noreturn void usage(const char *what)
{
    (void)fprintf(stderr,
                  "%s\n"
                  "usage: run --seeds N [--base B] | --seed S [--trace] |\n"
                  "           --kept FILE\n"
                  "       [--off FEATURE,...] [--steps N] [--faults N]\n"
                  "       [--records N] [--actors N] [--no-shrink]\n"
                  "       [--stop-after V]\n",
                  what);
    exit(2);
}

static uint64_t off_of(const char *names)
{
    uint64_t off = 0;

    while (*names != '\0') {
        size_t n = strcspn(names, ",");
        enum feature f = sim_feature_by_name(names, n);

        if (f == F_COUNT)
            usage("--off: no such feature");
        off |= UINT64_C(1) << f;
        names += n + (names[n] == ',');
    }
    return off;
}

/* One option and its value; false: not one of a seed's own. */
static bool limit_option(struct sim_limits *l, const char *name,
                         const char *value)
{
    int n = value != NULL ? (int)strtol(value, NULL, 10) : 0;

    if (strcmp(name, "--off") == 0 && value != NULL)
        l->off = off_of(value);
    else if (strcmp(name, "--steps") == 0)
        l->steps = n;
    else if (strcmp(name, "--faults") == 0)
        l->faults = n;
    else if (strcmp(name, "--records") == 0)
        l->records = n;
    else if (strcmp(name, "--actors") == 0)
        l->actors = n;
    else
        return false;
    if (value == NULL)
        usage(name);
    return true;
}

static void print_limits(const struct sim_limits *l)
{
    const char *before = " --off ";

    for (int f = 0; f < F_COUNT; f++)
        if ((l->off >> f & 1) != 0) {
            (void)printf("%s%s", before, sim_feature_name((enum feature)f));
            before = ",";
        }
    if (l->steps != INT32_MAX)
        (void)printf(" --steps %d", l->steps);
    if (l->faults != INT32_MAX)
        (void)printf(" --faults %d", l->faults);
    if (l->records != INT32_MAX)
        (void)printf(" --records %d", l->records);
    if (l->actors != INT32_MAX)
        (void)printf(" --actors %d", l->actors);
}

static void violation(const struct options *o, uint64_t seed,
                      const struct sim_limits *limits,
                      const struct sim_failure *f)
{
    struct sim_limits small = *limits;

    (void)printf("VIOLATION %s\n  test/sim/run --seed %llu", f->text,
                 (unsigned long long)seed);
    print_limits(limits);
    (void)printf("\n");
    if (o->shrinks) {
        small = sim_shrink(seed, limits, f);
        (void)printf("  shrunk: test/sim/run --seed %llu",
                     (unsigned long long)seed);
        print_limits(&small);
        (void)printf("\n");
    }
    (void)fflush(stdout);
}

static uint64_t run_many(const struct options *o)
{
    uint64_t violations = 0, i = 0;

    while (i < o->seeds) {
        struct sim_failure f;

        i = sim_run_some(o->base, i, o->seeds, &o->limits, &f);
        if (i == o->seeds)
            break;
        violation(o, sim_nth(o->base, i++), &o->limits, &f);
        if (++violations >= o->violations_max)
            break;
    }
    (void)printf("%llu seeds, %llu violations\n", (unsigned long long)i,
                 (unsigned long long)violations);
    return violations;
}

static uint64_t run_one(const struct options *o, uint64_t seed,
                        const struct sim_limits *limits)
{
    struct sim_failure f;

    if (!sim_fails(seed, limits, &f))
        return 0;
    violation(o, seed, limits, &f);
    return 1;
}

/* SEED [OPTION VALUE]... # what it once found */
static uint64_t run_line(const struct options *o, char *line)
{
    struct sim_limits limits = SIM_ALL;
    char *rest, *word = strtok_r(line, " \n", &rest), *value;
    uint64_t seed = strtoull(word, NULL, 10);

    while ((word = strtok_r(NULL, " \n", &rest)) != NULL && word[0] != '#') {
        value = strtok_r(NULL, " \n", &rest);
        if (!limit_option(&limits, word, value))
            usage(word);
    }
    return run_one(o, seed, &limits);
}

static uint64_t run_kept(const struct options *o)
{
    FILE *in = fopen(o->kept, "r");
    char line[1024];
    uint64_t seeds = 0, violations = 0;

    if (in == NULL)
        usage(o->kept);
    while (fgets(line, sizeof(line), in) != NULL) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        seeds++;
        violations += run_line(o, line);
    }
    (void)fclose(in);
    (void)printf("%llu seeds, %llu violations\n", (unsigned long long)seeds,
                 (unsigned long long)violations);
    return violations;
}

static struct options parse(int argc, char **argv)
{
    struct options o = {
        .base = (uint64_t)time(NULL),
        .shrinks = true,
        .limits = SIM_ALL,
        .violations_max = 20,
    };

    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(name, "--trace") == 0)
            o.trace = true;
        else if (strcmp(name, "--no-shrink") == 0)
            o.shrinks = false;
        else if (value == NULL)
            usage(name);
        else if (strcmp(name, "--seed") == 0)
            o.one = true, o.seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(name, "--seeds") == 0)
            o.seeds = strtoull(argv[++i], NULL, 10);
        else if (strcmp(name, "--base") == 0)
            o.base = strtoull(argv[++i], NULL, 10);
        else if (strcmp(name, "--stop-after") == 0)
            o.violations_max = strtoull(argv[++i], NULL, 10);
        else if (strcmp(name, "--kept") == 0)
            o.kept = argv[++i];
        else if (strcmp(name, "--planted") == 0)
            o.planted = argv[++i];
        else if (strcmp(name, "--plant") == 0)
            o.plant = (int)strtol(argv[++i], NULL, 10);
        else if (limit_option(&o.limits, name, value))
            i++;
        else
            usage(name);
    }
    return o;
}

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    uint64_t violations;

    if (o.trace) {
        (void)setenv("KP_WORLD_TRACE", "1", 1);
        o.shrinks = false;
    }
    if (!sim_plant(o.plant))
        usage("--plant: nothing is planted in this build");
    if (o.planted != NULL) {
        violations = sim_planted(o.planted, o.plant);
    } else if (o.kept != NULL) {
        violations = run_kept(&o);
    } else if (o.one) {
        violations = run_one(&o, o.seed, &o.limits);
        (void)printf("1 seeds, %llu violations\n",
                     (unsigned long long)violations);
    } else if (o.seeds > 0) {
        (void)printf("base %llu\n", (unsigned long long)o.base);
        violations = run_many(&o);
    } else {
        usage("nothing to run");
    }
    return violations == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
