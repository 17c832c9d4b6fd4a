/* SPDX-License-Identifier: BSD-2-Clause */
/* figures.c - asks the system and the producer.  The main thread. */
#include "perf/lib/figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "perf/lib/pace.h"

#define NS_PER_SEC 1e9

static double ns_of(struct timeval t)
{
    return (double)t.tv_sec * NS_PER_SEC + (double)t.tv_usec * 1e3;
}

static double process_cpu_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * NS_PER_SEC + (double)t.tv_nsec;
}

static void pick(void *arg, const kp_metric *m)
{
    struct figures *f = arg;

    if (strcmp(m->group, "producer-metrics") != 0)
        return;
    if (strcmp(m->name, "request-total") == 0)
        f->requests = m->value;
    if (strcmp(m->name, "record-error-total") == 0)
        f->record_errors = m->value;
}

void figures_take(struct figures *f, kp_producer *p)
{
    struct rusage u;

    f->requests = -1;
    f->record_errors = -1;
    kp_metrics(p, pick, f);
    (void)getrusage(RUSAGE_SELF, &u);
    f->user_ns = ns_of(u.ru_utime);
    f->system_ns = ns_of(u.ru_stime);
    f->voluntary = u.ru_nvcsw;
    f->involuntary = u.ru_nivcsw;
    f->peak_rss_bytes = (double)u.ru_maxrss * 1024;
    f->cpu_ns = process_cpu_ns();
    f->at_ns = pace_now_ns();
}

static double less(double to, double from)
{
    return to < 0 || from < 0 ? -1 : to - from;
}

void figures_between(struct figures *d, const struct figures *from,
                     const struct figures *to)
{
    d->at_ns = to->at_ns - from->at_ns;
    d->cpu_ns = to->cpu_ns - from->cpu_ns;
    d->user_ns = to->user_ns - from->user_ns;
    d->system_ns = to->system_ns - from->system_ns;
    d->voluntary = to->voluntary - from->voluntary;
    d->involuntary = to->involuntary - from->involuntary;
    d->peak_rss_bytes = to->peak_rss_bytes;
    d->requests = less(to->requests, from->requests);
    d->record_errors = less(to->record_errors, from->record_errors);
}

struct lines {
    char **items;
    size_t count, capacity;
};

/* "group:name:{label=value, label=value}" and the value; NULL: no memory. */
static char *format_metric(const kp_metric *m)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (f == NULL)
        return NULL;
    (void)fprintf(f, "%s:%s:{", m->group, m->name);
    for (size_t i = 0; i < m->label_count; i++)
        (void)fprintf(f, "%s%s=%s", i > 0 ? ", " : "", m->labels[i].name,
                      m->labels[i].value);
    (void)fprintf(f, "}%c%.3f", '\0', m->value);
    (void)fclose(f);
    return text;
}

static void keep(void *arg, const kp_metric *m)
{
    struct lines *l = arg;
    char *line;

    if (l->count == l->capacity) {
        size_t capacity = l->capacity == 0 ? 256 : l->capacity * 2;
        char **items = realloc(l->items, capacity * sizeof(*items));

        if (items == NULL)
            return;
        l->items = items;
        l->capacity = capacity;
    }
    line = format_metric(m);
    if (line != NULL)
        l->items[l->count++] = line;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void figures_print_metrics(FILE *out, kp_producer *p)
{
    struct lines l = {NULL, 0, 0};
    size_t width = strlen("Metric Name");

    kp_metrics(p, keep, &l);
    if (l.count > 0)
        qsort(l.items, l.count, sizeof(*l.items), by_text);
    for (size_t i = 0; i < l.count; i++)
        if (strlen(l.items[i]) > width)
            width = strlen(l.items[i]);
    (void)fprintf(out, "%-*s   %s\n", (int)width, "Metric Name", "Value");
    for (size_t i = 0; i < l.count; i++) {
        const char *name = l.items[i];

        (void)fprintf(out, "%-*s : %s\n", (int)width, name,
                      name + strlen(name) + 1);
        free(l.items[i]);
    }
    free(l.items);
}
