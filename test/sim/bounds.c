/* SPDX-License-Identifier: BSD-2-Clause */
/* bounds.c - what must not grow: tables, log lines, counts that are counted
 * twice. */
#include <stdlib.h>
#include <string.h>

#include "io_thread/client.h"
#include "lib/shared/topics_table.h"
#include "test/sim/sim.h"

#define LINES 64 /* that are remembered */

struct bounds {
    struct {
        uint64_t hash;
        int64_t at_ns;
    } lines[LINES];
    size_t next;
};

/* -- log lines -- */

/* Without what says how many were held back. */
static size_t told_size(const char *text)
{
    static const char tail[] = "like it held back)";
    size_t n = strlen(text), end = sizeof(tail) - 1;

    if (n < end || strcmp(text + n - end, tail) != 0)
        return n;
    while (n > 0 && text[n - 1] != '(')
        n--;
    return n;
}

static uint64_t hash_of(const kp_log *line)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    size_t n = told_size(line->text);

    for (const char *c = line->component; *c != '\0'; c++)
        h = (h ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)line->text[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* I-42: the same thing is not said again within a second. */
static void on_log(struct world *w, void *arg, const kp_log *line)
{
    struct bounds *b = arg;
    uint64_t hash;

    if (line->level > KP_LOG_WARN)
        return;
    hash = hash_of(line);
    for (size_t i = 0; i < LINES; i++)
        if (b->lines[i].hash == hash &&
            w->now_ns - b->lines[i].at_ns < KP_NS_PER_SEC)
            world_fail(w, "I-42: twice within %lld ms: %s: %s",
                       (long long)(w->now_ns - b->lines[i].at_ns) / MS,
                       line->component, line->text);
    b->lines[b->next % LINES].hash = hash;
    b->lines[b->next++ % LINES].at_ns = w->now_ns;
}

/* -- tables -- */

/* I-35: topics that brokers have confirmed, names that somebody sent to, each
 * node by its id and as a bootstrap address. */
void sim_bounds_check(struct sim *s)
{
    const struct topics *t = s->w->p->topics;
    unsigned topics = atomic_load(&t->count);

    if (topics > SIM_TOPICS)
        world_fail(s->w, "I-35: %u topics are known, and there are %d", topics,
                   SIM_TOPICS);
    if (t->waits.count > SIM_TOPICS + SIM_NO_TOPICS)
        world_fail(s->w, "I-35: %zu names are asked for", t->waits.count);
    if (!s->w->over && s->w->p->io->client->node_count > 2 * (size_t)s->nodes)
        world_fail(s->w, "I-35: %zu nodes are known, and there are %d",
                   s->w->p->io->client->node_count, s->nodes);
}

/* ... and names that nobody waits for are forgotten.  One that there was no
 * memory to ask for stays until it, or another, is asked for. */
void sim_bounds_idle(struct sim *s)
{
    const struct topics *t = s->w->p->topics;

    if (t->waits.count > 0 && !s->w->fails_memory)
        world_fail(s->w, "I-35: %zu names are still asked for after a minute",
                   t->waits.count);
}

/* -- counts -- */

static void take_metric(void *arg, const kp_metric *m)
{
    if (strcmp(m->group, "producer-metrics") == 0 &&
        strcmp(m->name, "record-error-total") == 0)
        *(double *)arg = m->value;
}

/* I-01: a batch that ends twice is counted twice. */
static void check_errors(struct sim *s)
{
    double counted = -1;
    uint32_t told = 0;

    for (uint32_t i = 0; i < s->w->record_count; i++) {
        const struct world_record *r = s->w->records[i];
        unsigned seen = WORLD_FUTURE | WORLD_CALLBACK | WORLD_QUEUE;

        if (r->state == WORLD_TAKEN && ((r->flags & seen) == 0 || !r->reported))
            return; /* nobody knows how it ended */
        told += r->state == WORLD_TAKEN && r->report.err != KP_OK;
    }
    kp_metrics(s->w->p, take_metric, &counted);
    if (counted >= 0 && counted != (double)told)
        world_fail(s->w, "I-01: %.0f records are counted as failed, and %u are",
                   counted, told);
}

/* -- all of it -- */

void sim_bounds_begin(struct sim *s)
{
    s->bounds = world_must(calloc(1, sizeof(*s->bounds)));
    world_on_log(s->w, on_log, s->bounds);
}

void sim_bounds_end(struct sim *s)
{
    sim_bounds_check(s);
    check_errors(s);
    world_on_log(s->w, NULL, NULL);
    free(s->bounds);
    s->bounds = NULL;
}
