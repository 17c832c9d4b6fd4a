/* SPDX-License-Identifier: BSD-2-Clause */
/* known.h - all records of all journals, and looking them up by content. */
#ifndef KP_TEST_INTEGRATION_KNOWN_H
#define KP_TEST_INTEGRATION_KNOWN_H

#include "test/integration/sender/journal.h"
#include "test/integration/verify/found.h"

struct known {
    const struct entry *entry;
    const struct lane *lane;
    const struct journal_head *head;
    uint32_t lane_number; /* over all journals */
    uint32_t seq;
    uint32_t copies;                 /* how often it was found */
    uint32_t log;                    /* the last one it was found in, or 0 */
    bool at_offset;                  /* a copy is where the report said */
    const struct found *first_found; /* or NULL */
};

struct known_list {
    struct known *at;
    size_t count;
    uint32_t lane_count;
    uint32_t *index; /* open addressing: position + 1, 0: free */
    size_t index_mask;
    bool whole_hash, stamps;
};

/* Add the records of one journal; ends the program if it cannot be read. */
void known_add(struct known_list *list, const char *path);
/* Make ready to look up; `stamps`: the log has the timestamps asked for.
 * Two records that cannot be told apart are a problem. */
void known_index(struct known_list *list, bool whole_hash, bool stamps);
/* NULL: nobody sent this. */
struct known *known_find(const struct known_list *list,
                         const struct found *found);

#endif
