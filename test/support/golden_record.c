/* SPDX-License-Identifier: BSD-2-Clause */
/* golden_record.c - a "record" line as a kp_record.  One thread.
 *
 * record TIMESTAMP_DELTA OFFSET_DELTA SIZE UPPER_BOUND KEY VALUE
 * [KEY VALUE]... */
#include "test/support/golden_record.h"

#include <stdlib.h>
#include <string.h>

static const char *line_of(const struct golden_case *c, size_t i)
{
    for (size_t k = 0; k < c->count; k++)
        if (strncmp(c->lines[k], "record ", 7) == 0 && i-- == 0)
            return c->lines[k] + 7;
    return NULL;
}

static const char *next_word(const char *s)
{
    s += strcspn(s, " ");
    return *s == ' ' ? s + 1 : s;
}

static long long take_number(const char **s)
{
    long long v = strtoll(*s, NULL, 10);

    *s = next_word(*s);
    return v;
}

static kp_bytes take_bytes(const char **s)
{
    kp_bytes b;

    b.data = golden_bytes(*s, &b.size);
    *s = next_word(*s);
    return b;
}

static size_t count_words(const char *s)
{
    size_t n = 0;

    for (; *s != '\0'; s = next_word(s))
        n++;
    return n;
}

bool golden_record_open(struct golden_record *g, const struct golden_case *c,
                        size_t i)
{
    const char *s = line_of(c, i);

    if (s == NULL)
        return false;
    memset(g, 0, sizeof *g);
    g->timestamp_delta_ms = take_number(&s);
    g->offset_delta = (int32_t)take_number(&s);
    g->size = (size_t)take_number(&s);
    g->upper_bound = (size_t)take_number(&s);
    g->record.key = take_bytes(&s);
    g->record.value = take_bytes(&s);
    g->record.header_count = count_words(s) / 2;
    g->headers = calloc(g->record.header_count + 1, sizeof *g->headers);
    if (g->headers == NULL)
        abort();
    for (size_t h = 0; h < g->record.header_count; h++) {
        g->headers[h].key = take_bytes(&s);
        g->headers[h].value = take_bytes(&s);
    }
    g->record.headers = g->headers;
    return true;
}

static void free_bytes(kp_bytes b)
{
    free((void *)(uintptr_t)b.data);
}

void golden_record_close(struct golden_record *g)
{
    free_bytes(g->record.key);
    free_bytes(g->record.value);
    for (size_t h = 0; h < g->record.header_count; h++) {
        free_bytes(g->headers[h].key);
        free_bytes(g->headers[h].value);
    }
    free(g->headers);
    memset(g, 0, sizeof *g);
}
