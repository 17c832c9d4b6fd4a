/* SPDX-License-Identifier: BSD-2-Clause */
/* user_reports.h - what the replays of user reports share: a world, its rules,
 * metrics and counts.  The ids are those of ../USER_REPORTS.md. */
#ifndef KP_TEST_UNIT_USER_REPORTS_H
#define KP_TEST_UNIT_USER_REPORTS_H

#include <stdio.h>
#include <string.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define MS KP_NS_PER_MS
#define SEC KP_NS_PER_SEC
#define FAST \
    "retry.backoff.ms", "10", "retry.backoff.max.ms", "100", "linger.ms", "0", \
        "reconnect.backoff.ms", "10", "reconnect.backoff.max.ms", "100"

static inline struct world *begin_with(const char *const *settings)
{
    return world_begin(&(struct world_options){.settings = settings});
}

static inline int rule(struct world *w, const char *fmt, int number)
{
    char line[120];

    (void)snprintf(line, sizeof(line), fmt, number);
    return world_rule(w, line);
}

static inline int64_t hits(struct world *w, int rule_id)
{
    return kb_rule_hits(world_cluster(w), rule_id);
}

struct wanted {
    const char *name;
    double value;
};

static inline void look(void *arg, const kp_metric *m)
{
    struct wanted *x = arg;

    if (strcmp(m->group, "producer-metrics") == 0 &&
        strcmp(m->name, x->name) == 0)
        x->value = m->value;
}

/* -1: there is none of that name. */
static inline double metric(struct world *w, const char *name)
{
    struct wanted x = {name, -1};

    kp_metrics(world_producer(w), look, &x);
    return x.value;
}

/* Requests of an API that brokers have handled. */
static inline int64_t requests(struct world *w, int16_t api)
{
    return kb_requests(world_cluster(w), -1, api);
}
#define API_PRODUCE 0
#define API_METADATA 3

/* Until this send has returned. */
static inline void returns(struct world *w, const struct world_record *r)
{
    while (r->state == WORLD_WAITING)
        world_run_ms(w, 1);
}

/* Until this record is reported. */
static inline void ends(struct world *w, const struct world_record *r)
{
    while (!r->reported && r->state != WORLD_REFUSED)
        world_run_ms(w, 1);
}

/* `count` records in a row, delivered at offsets from `first` on. */
static inline void all_stored(struct world *w, const struct world_record *r,
                              uint32_t count, int64_t first)
{
    for (uint32_t i = 0; i < count; i++)
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK, KP_STORED_YES,
                     first + i);
}

/* -- log lines of one component that are warnings or worse -- */

struct told {
    const char *component, *part; /* NULL: any */
    int count;
    int64_t at_ns[256];
    char last[400];
};

static inline void keep_told(struct world *w, void *arg, const kp_log *line)
{
    struct told *t = arg;

    if (line->level > KP_LOG_WARN ||
        (t->component != NULL && strcmp(line->component, t->component) != 0) ||
        (t->part != NULL && strstr(line->text, t->part) == NULL))
        return;
    if (t->count < 256)
        t->at_ns[t->count] = world_now_ns(w);
    t->count++;
    (void)snprintf(t->last, sizeof(t->last), "%s", line->text);
}

#endif
