/* SPDX-License-Identifier: BSD-2-Clause */
/* record_errors.c - which records of a refused batch are to blame (KIP-467).
 * I/O thread, in the turn's judging steps.
 *
 * Invariant: the time it takes grows as the records and what is said of them,
 * in whatever order a broker names them, and how often. */
#include "io_thread/sender.h"

#include "lib/base/mem.h"
#include "lib/base/str.h"

#define OWN_TEXT_MAX 240

/* Who is named: for each record the number, from 1, of what is said of it
 * first; what a broker says twice, or of no record, is passed over.  Returns
 * how many are. */
static uint32_t sort_out(const struct batch *b, const struct array *list,
                         uint32_t *named)
{
    const struct produce_record_error *e = list->items;
    uint32_t count = 0;

    for (size_t i = 0; i < list->count && i < UINT32_MAX; i++) {
        uint32_t at = (uint32_t)e[i].batch_index;

        if (e[i].batch_index < 0 || at >= b->record_count || named[at] != 0)
            continue;
        named[at] = (uint32_t)i + 1;
        count++;
    }
    return count;
}

static void set_part(struct result_part *part, uint32_t index,
                     const struct outcome *o,
                     const struct produce_record_error *e, const char *text)
{
    char own[OWN_TEXT_MAX] = "";

    if (e->message.data != NULL)
        kp__str_escape(own, sizeof(own), e->message.data, e->message.size);
    kp__result_part_set(part, index, 1, o, own[0] != '\0' ? own : text);
}

bool kp__note_record_errors(struct batch *b, const struct array *list,
                            kp_err err, const char *text)
{
    const struct produce_record_error *e = list->items;
    const struct batch *origin = b->split.origin;
    struct batch_result *r = origin != NULL ? origin->result : b->result;
    struct outcome o = {
        .err = list->count == 1 ? err : KP_INVALID_RECORD,
        .stored = b->certainty,
        .base_offset = -1,
        .append_time_ms = -1,
    };
    struct result_part *part = NULL;
    uint32_t *named, count;

    if (list->count == 0)
        return false;
    named = kp__zalloc(b->record_count * sizeof(*named));
    if (named == NULL)
        return false;
    count = sort_out(b, list, named);
    if (count > 0)
        part = kp__result_add_parts(r, b->first_index, count);
    for (uint32_t i = 0; part != NULL && i < b->record_count; i++)
        if (named[i] != 0)
            set_part(part++, b->first_index + i, &o, &e[named[i] - 1], text);
    kp__free(named);
    return part != NULL;
}
