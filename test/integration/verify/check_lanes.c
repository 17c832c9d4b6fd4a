/* SPDX-License-Identifier: BSD-2-Clause */
/* check_lanes.c - what only many records together can show: that round robin
 * is even, that sticky sticks, and that a codec was used.  One thread. */
#include <string.h>

#include "test/integration/verify/check.h"
#include "test/integration/verify/problem.h"

struct run {
    const struct known *first;
    size_t count;
    uint32_t per_partition[PARTITIONS_MAX];
    int32_t partitions; /* those up to the last one used */
    uint32_t changes, compressed, codec_known;
};

static void look(struct run *r)
{
    int32_t before = -1;
    for (size_t i = 0; i < r->count; i++) {
        const struct found *f = r->first[i].first_found;
        if (f == NULL)
            continue;
        r->per_partition[f->partition]++;
        if (r->partitions <= f->partition)
            r->partitions = f->partition + 1;
        r->changes += before >= 0 && before != f->partition;
        r->compressed += f->codec > 0;
        r->codec_known += f->codec >= 0;
        before = f->partition;
    }
}

static void check_even(const struct run *r)
{
    uint32_t low = UINT32_MAX, high = 0;
    for (int i = 0; i < r->partitions; i++) {
        if (r->per_partition[i] < low)
            low = r->per_partition[i];
        if (r->per_partition[i] > high)
            high = r->per_partition[i];
    }
    if (r->partitions != 0 && high - low > 2)
        problem("round-robin", "%s: between %u and %u a partition",
                r->first->lane->label, (unsigned)low, (unsigned)high);
}

static void check_run(struct run *r, int32_t rule)
{
    const struct lane *lane = r->first->lane;
    look(r);
    if (lane->rule != rule && !(rule == RULE_STICKY && lane->rule == RULE_RACK))
        return;
    if (rule == RULE_ROUND_ROBIN)
        check_even(r);
    if (rule == RULE_STICKY && r->changes > r->count / 2)
        problem("sticky", "%s: %u changes in %u records", lane->label,
                (unsigned)r->changes, (unsigned)r->count);
}

static void check_codec(const struct run *r)
{
    const struct lane *lane = r->first->lane;
    if (lane->codec > 0 && r->codec_known != 0 && r->compressed == 0)
        problem("not-compressed", "%s", lane->label);
}

/* Round robin goes round in a producer, over all its lanes; sticky is seen in
 * one thread's lane; a codec, too. */
static size_t next_run(const struct known_list *known, size_t start,
                       struct run *r, bool by_group)
{
    size_t end = start;
    const struct known *k = &known->at[start];
    memset(r, 0, sizeof *r);
    while (end < known->count && known->at[end].head == k->head &&
           (by_group ? known->at[end].lane->group == k->lane->group
                     : known->at[end].lane == k->lane))
        end++;
    r->first = k;
    r->count = end - start;
    return end;
}

void check_lanes(const struct known_list *known)
{
    struct run r;
    for (size_t i = 0; i < known->count;) {
        i = next_run(known, i, &r, true);
        check_run(&r, RULE_ROUND_ROBIN);
    }
    for (size_t i = 0; i < known->count;) {
        i = next_run(known, i, &r, false);
        check_run(&r, RULE_STICKY);
        check_codec(&r);
    }
}
