/* SPDX-License-Identifier: BSD-2-Clause */
/* stats.c - sorts the journals' times.  One thread. */
#include "test/integration/verify/stats.h"

#include <inttypes.h>
#include <kp/kp.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/integration/sender/clock.h"

struct times {
    int64_t *at;
    size_t count;
};

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static struct times times_for(const struct known_list *known)
{
    struct times t = {malloc((known->count + 1) * sizeof *t.at), 0};
    if (t.at == NULL)
        abort();
    return t;
}

static void sort(struct times *t)
{
    qsort(t->at, t->count, sizeof *t->at, by_time);
}

static void print_spread(struct times *t, const char *name)
{
    sort(t);
    if (t->count != 0)
        printf("%s %.3f %.3f\n", name,
               (double)t->at[t->count / 2] / (double)NS_PER_MS,
               (double)t->at[t->count - 1] / (double)NS_PER_MS);
}

static bool reported(const struct known *k)
{
    return k->entry->send_err == KP_OK && k->entry->reports != 0;
}

static void print_blocked(const struct known_list *known, struct times *t)
{
    t->count = 0;
    for (size_t i = 0; i < known->count; i++)
        t->at[t->count++] =
            known->at[i].entry->sent_ns - known->at[i].entry->call_ns;
    print_spread(t, "blocked-ms");
}

static void print_reports(const struct known_list *known, struct times *t)
{
    t->count = 0;
    for (size_t i = 0; i < known->count; i++)
        if (reported(&known->at[i]))
            t->at[t->count++] =
                known->at[i].entry->report_ns - known->at[i].entry->sent_ns;
    print_spread(t, "report-ms");
}

/* Two sorted lists, walked together as time goes on. */
static void print_outstanding(const struct known_list *known, struct times *t)
{
    struct times ends = times_for(known);
    t->count = 0;
    for (size_t i = 0; i < known->count; i++)
        if (reported(&known->at[i])) {
            t->at[t->count++] = known->at[i].entry->sent_ns;
            ends.at[ends.count++] = known->at[i].entry->report_ns;
        }
    sort(t);
    sort(&ends);
    size_t most = 0, done = 0;
    for (size_t i = 0; i < t->count; i++) {
        while (done < ends.count && ends.at[done] <= t->at[i])
            done++;
        if (i + 1 > done && i + 1 - done > most)
            most = i + 1 - done;
    }
    printf("outstanding %zu\n", most);
    free(ends.at);
}

static void print_gap(const struct known_list *known, struct times *t,
                      int32_t partition)
{
    int64_t longest = 0;
    t->count = 0;
    for (size_t i = 0; i < known->count; i++) {
        const struct entry *e = known->at[i].entry;
        if (reported(&known->at[i]) && e->err == KP_OK &&
            e->partition == partition)
            t->at[t->count++] = e->report_ns;
    }
    sort(t);
    for (size_t i = 1; i < t->count; i++)
        if (t->at[i] - t->at[i - 1] > longest)
            longest = t->at[i] - t->at[i - 1];
    if (t->count != 0)
        printf("gap %d %" PRId64 " %zu\n", (int)partition, longest / NS_PER_MS,
               t->count);
}

void stats_print(const struct known_list *known)
{
    struct times t = times_for(known);
    int32_t partitions = 0;
    for (size_t i = 0; i < known->count; i++)
        if (reported(&known->at[i]) &&
            known->at[i].entry->partition >= partitions)
            partitions = known->at[i].entry->partition + 1;
    print_blocked(known, &t);
    print_reports(known, &t);
    print_outstanding(known, &t);
    for (int32_t p = 0; p < partitions; p++)
        print_gap(known, &t, p);
    free(t.at);
}
