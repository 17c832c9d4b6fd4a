/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger.c - see ledger.h.  I/O thread only, pure.
 *
 * Invariant: entries stand in the order of their numbers; an entry with a batch
 * is either on a wire or its batch stands in the queue to be sent again. */
#include "io_thread/ledger.h"

#include <string.h>

#include "lib/base/check.h"

#define EPOCH_MAX INT16_MAX

int32_t kp__sequence_add(int32_t a, int32_t n)
{
    return (int32_t)(((uint32_t)a + (uint32_t)n) & INT32_MAX);
}

void kp__ledger_init(struct ledger *l)
{
    memset(l, 0, sizeof(*l));
    l->producer_id = -1;
    l->epoch = -1;
}

void kp__ledger_adopt(struct ledger *l, int64_t producer_id, int16_t epoch)
{
    KP_CHECK(l->count == 0);
    l->producer_id = producer_id;
    l->epoch = epoch;
    l->next_sequence = 0;
    l->proven = false;
    l->bump = false;
    l->new_id = false;
}

static bool any_gone(const struct ledger *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->entries[i].batch == NULL)
            return true;
    return false;
}

bool kp__ledger_can_stamp(const struct ledger *l, uint32_t limit)
{
    if (l->producer_id < 0 || l->bump || any_gone(l))
        return false;
    if (!l->proven)
        limit = 1;
    return l->count < limit;
}

int32_t kp__ledger_stamp(struct ledger *l, struct batch *b, int32_t count)
{
    struct ledger_entry *e = &l->entries[l->count];
    int32_t first = l->next_sequence;

    KP_CHECK(l->count < LEDGER_MAX && count > 0);
    e->batch = b;
    e->first = first;
    e->count = count;
    e->certainty = CERTAIN_NO;
    e->on_wire = true;
    l->count++;
    l->next_sequence = kp__sequence_add(first, count);
    return first;
}

struct ledger_entry *kp__ledger_find(struct ledger *l, const struct batch *b)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->entries[i].batch == b)
            return &l->entries[i];
    return NULL;
}

struct ledger_entry *kp__ledger_find_first(struct ledger *l, int32_t first)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->entries[i].first == first)
            return &l->entries[i];
    return NULL;
}

void kp__ledger_remove(struct ledger *l, struct ledger_entry *e)
{
    size_t at = (size_t)(e - l->entries);

    KP_CHECK(at < l->count);
    l->count--;
    memmove(e, e + 1, (l->count - at) * sizeof(*e));
}

/* -- What becomes of an entry -- */

void kp__ledger_sent(struct ledger_entry *e)
{
    e->on_wire = true;
}

void kp__ledger_unsent(struct ledger_entry *e)
{
    e->on_wire = false;
}

static void remove_if_resolved(struct ledger *l, struct ledger_entry *e)
{
    if (e->batch == NULL && e->certainty == CERTAIN_YES)
        kp__ledger_remove(l, e);
}

void kp__ledger_answered(struct ledger *l, struct ledger_entry *e,
                         enum certainty certainty)
{
    e->on_wire = false;
    e->certainty = certainty;
    remove_if_resolved(l, e);
}

void kp__ledger_gone(struct ledger *l, struct ledger_entry *e,
                     enum certainty certainty)
{
    e->batch = NULL;
    e->certainty = certainty;
    remove_if_resolved(l, e);
}

bool kp__ledger_is_head(const struct ledger *l, const struct ledger_entry *e)
{
    for (const struct ledger_entry *x = l->entries; x < e; x++)
        if (x->on_wire || x->batch != NULL)
            return false;
    return true;
}

bool kp__ledger_split(struct ledger *l, struct ledger_entry *e,
                      struct batch *left, int32_t left_count,
                      struct batch *right)
{
    size_t at = (size_t)(e - l->entries);

    KP_CHECK(left_count > 0 && left_count < e->count);
    if (l->count == LEDGER_MAX)
        return false;
    memmove(e + 1, e, (l->count - at) * sizeof(*e));
    l->count++;
    e[0].batch = left;
    e[0].count = left_count;
    e[0].on_wire = false;
    e[1].batch = right;
    e[1].first = kp__sequence_add(e[0].first, left_count);
    e[1].count -= left_count;
    e[1].on_wire = false;
    return true;
}

/* -- What becomes of an epoch -- */

void kp__ledger_prove(struct ledger *l)
{
    l->proven = true;
}

void kp__ledger_unproven(struct ledger *l)
{
    l->proven = false;
}

void kp__ledger_want_bump(struct ledger *l)
{
    l->bump = true;
}

void kp__ledger_want_id(struct ledger *l)
{
    l->new_id = true;
}

void kp__ledger_settle(struct ledger *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const struct ledger_entry *e = &l->entries[i];

        /* While something is on a wire an answer may yet come; a batch behind
         * the gap may yet be acknowledged, which proves the gap stored. */
        if (e->on_wire || e->batch != NULL)
            return;
        /* Its numbers will never be stored: nothing behind it can be. */
        if (e->certainty == CERTAIN_NO)
            break;
    }
    if (l->count > 0)
        l->bump = true;
}

bool kp__ledger_can_bump(const struct ledger *l)
{
    if (!l->bump)
        return false;
    for (uint32_t i = 0; i < l->count; i++)
        if (l->entries[i].on_wire)
            return false;
    for (uint32_t i = 0; i < l->count; i++) {
        const struct ledger_entry *e = &l->entries[i];

        /* From the first that is proven not stored on, a broker that knows us
         * cannot have appended anything of this epoch. */
        if (e->certainty == CERTAIN_NO)
            return true;
        if (e->batch != NULL)
            return false;
    }
    return true;
}

bool kp__ledger_bump(struct ledger *l)
{
    KP_CHECK(kp__ledger_can_bump(l));
    l->count = 0;
    l->next_sequence = 0;
    l->proven = false;
    if (l->new_id || l->epoch == EPOCH_MAX) {
        l->new_id = true;
        return false;
    }
    l->epoch++;
    l->bump = false;
    return true;
}
