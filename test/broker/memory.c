/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.c - the model's memory: malloc(3) itself, so that a test that makes
 * the library's allocations fail does not make the broker's fail too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/broker/internal.h"

_Noreturn void kb_die(const char *what)
{
    fprintf(stderr, "kp-broker: %s\n", what);
    abort();
}

void *kb_alloc(size_t size)
{
    void *p = calloc(1, size > 0 ? size : 1);

    if (p == NULL)
        kb_die("out of memory");
    return p;
}

void *kb_realloc(void *p, size_t size)
{
    void *q = realloc(p, size > 0 ? size : 1);

    if (q == NULL)
        kb_die("out of memory");
    return q;
}

void *kb_memdup(const void *p, size_t size)
{
    void *q = malloc(size > 0 ? size : 1);

    if (q == NULL)
        kb_die("out of memory");
    if (size > 0)
        memcpy(q, p, size);
    return q;
}

char *kb_strdup(const char *s)
{
    return s == NULL ? NULL : kb_memdup(s, strlen(s) + 1);
}

void kb_free(void *p)
{
    free(p);
}

char *kb_strndup(struct arena *a, const void *s, size_t size)
{
    char *copy = kp__arena_alloc(a, size + 1); /* zeroed */

    if (copy != NULL && size != 0)
        memcpy(copy, s, size);
    return copy;
}
