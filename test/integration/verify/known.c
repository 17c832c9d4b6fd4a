/* SPDX-License-Identifier: BSD-2-Clause */
/* known.c - an open-addressed table from content to journal entry.  One
 * thread.  A record that asked for a timestamp is found by that too, because
 * some forms have no room for a number. */
#include "test/integration/verify/known.h"

#include <stdio.h>
#include <stdlib.h>

#include "test/integration/verify/problem.h"

static void *need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "verify: no memory\n");
        exit(2);
    }
    return memory;
}

static void add_lane(struct known_list *list, const struct journal *j,
                     uint32_t lane)
{
    for (uint32_t seq = 0; seq < j->lanes[lane].used; seq++) {
        struct known *k = &list->at[list->count++];
        *k = (struct known){0};
        k->entry = journal_entry(j, lane, seq);
        k->lane = &j->lanes[lane];
        k->head = j->head;
        k->lane_number = list->lane_count;
        k->seq = seq;
    }
    list->lane_count++;
}

void known_add(struct known_list *list, const char *path)
{
    struct journal j; /* stays mapped: entries are pointed at */
    if (!journal_open(&j, path)) {
        fprintf(stderr, "verify: %s: not a journal\n", path);
        exit(2);
    }
    size_t more = 0;
    for (uint32_t l = 0; l < j.head->lane_count; l++)
        more += j.lanes[l].used;
    list->at =
        need(realloc(list->at, (list->count + more + 1) * sizeof *list->at));
    for (uint32_t l = 0; l < j.head->lane_count; l++)
        add_lane(list, &j, l);
}

static uint64_t entry_hash(const struct known_list *list, const struct entry *e)
{
    return list->whole_hash ? e->all_hash : e->kv_hash;
}

static int64_t entry_stamp(const struct known_list *list, const struct entry *e)
{
    return list->stamps ? e->stamp_ms : -1;
}

static size_t place(const struct known_list *list, uint64_t hash,
                    int64_t stamp_ms)
{
    uint64_t x = hash ^ ((uint64_t)stamp_ms * UINT64_C(0x9e3779b97f4a7c15));
    x ^= x >> 29;
    return (size_t)(x * UINT64_C(0xbf58476d1ce4e5b9) >> 20) & list->index_mask;
}

static struct known *look(const struct known_list *list, uint64_t hash,
                          int64_t stamp_ms, size_t *free_place)
{
    size_t i = place(list, hash, stamp_ms);
    for (; list->index[i] != 0; i = (i + 1) & list->index_mask) {
        struct known *k = &list->at[list->index[i] - 1];
        if (entry_hash(list, k->entry) == hash &&
            entry_stamp(list, k->entry) == stamp_ms)
            return k;
    }
    *free_place = i;
    return NULL;
}

void known_index(struct known_list *list, bool whole_hash, bool stamps)
{
    size_t size = 1024;
    while (size < 2 * list->count)
        size *= 2;
    list->index = need(calloc(size, sizeof *list->index));
    list->index_mask = size - 1;
    list->whole_hash = whole_hash;
    list->stamps = stamps;
    for (size_t i = 0; i < list->count; i++) {
        const struct entry *e = list->at[i].entry;
        size_t at;
        if (look(list, entry_hash(list, e), entry_stamp(list, e), &at) != NULL)
            problem("same-content", "%s record %u", list->at[i].lane->label,
                    (unsigned)list->at[i].seq);
        else
            list->index[at] = (uint32_t)(i + 1);
    }
}

struct known *known_find(const struct known_list *list,
                         const struct found *found)
{
    size_t unused;
    struct known *k = NULL;
    if (list->stamps)
        k = look(list, found->hash, found->stamp_ms, &unused);
    return k != NULL ? k : look(list, found->hash, -1, &unused);
}
