/* SPDX-License-Identifier: BSD-2-Clause */
/* summary.c - counts what a journal holds, after all threads have ended. */
#include "test/integration/sender/summary.h"

#include <inttypes.h>
#include <kp/kp.h>
#include <stdio.h>

#define KINDS_MAX 32

struct tally {
    kp_err err[KINDS_MAX];
    uint64_t count[KINDS_MAX];
    size_t kinds;
};

struct summary {
    uint64_t calls, taken, acked, failed, stored[3], astray;
    struct tally refused, failures;
};

static void tally_add(struct tally *t, kp_err err)
{
    size_t i = 0;
    while (i < t->kinds && t->err[i] != err)
        i++;
    if (i == KINDS_MAX)
        return;
    if (i == t->kinds)
        t->err[t->kinds++] = err;
    t->count[i]++;
}

static void tally_print(const struct tally *t, const char *what)
{
    for (size_t i = 0; i < t->kinds; i++)
        printf("%s %s %" PRIu64 "\n", what, kp_err_name(t->err[i]),
               t->count[i]);
}

static void add(struct summary *s, const struct entry *e)
{
    bool taken = e->send_err == KP_OK;
    s->calls++;
    if (e->reports != (taken ? 1 : 0))
        s->astray++;
    if (!taken) {
        tally_add(&s->refused, e->send_err);
        return;
    }
    s->taken++;
    if (e->reports == 0)
        return;
    if (e->err == KP_OK) {
        s->acked++;
    } else {
        s->failed++;
        tally_add(&s->failures, e->err);
    }
    if (e->stored < 3)
        s->stored[e->stored]++;
}

bool summary_print(const struct journal *j)
{
    struct summary s = {0};
    for (uint32_t l = 0; l < j->head->lane_count; l++)
        for (uint32_t i = 0; i < j->lanes[l].used; i++)
            add(&s, journal_entry(j, l, i));
    printf("calls %" PRIu64 " taken %" PRIu64 " acked %" PRIu64
           " failed %" PRIu64 " yes %" PRIu64 " maybe %" PRIu64 " no %" PRIu64
           " astray %" PRIu64 "\n",
           s.calls, s.taken, s.acked, s.failed, s.stored[KP_STORED_YES],
           s.stored[KP_STORED_MAYBE], s.stored[KP_STORED_NO], s.astray);
    tally_print(&s.refused, "refused");
    tally_print(&s.failures, "failed");
    return s.astray == 0;
}
