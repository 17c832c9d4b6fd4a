/* SPDX-License-Identifier: BSD-2-Clause */
/* problem.c - one table of problem kinds.  One thread. */
#include "test/integration/verify/problem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KINDS_MAX 64
#define SHOWN 3

static struct {
    const char *name;
    uint64_t count;
} kinds[KINDS_MAX];

static size_t find(const char *name)
{
    size_t i = 0;
    while (i < KINDS_MAX && kinds[i].name != NULL &&
           strcmp(kinds[i].name, name) != 0)
        i++;
    if (i == KINDS_MAX)
        abort();
    kinds[i].name = name;
    return i;
}

void problem(const char *kind, const char *format, ...)
{
    va_list args;
    if (kinds[find(kind)].count++ >= SHOWN)
        return;
    printf("  %s: ", kind);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

uint64_t problems_print(void)
{
    uint64_t all = 0;
    for (size_t i = 0; i < KINDS_MAX && kinds[i].name != NULL; i++) {
        printf("problem %s %" PRIu64 "\n", kinds[i].name, kinds[i].count);
        all += kinds[i].count;
    }
    return all;
}
