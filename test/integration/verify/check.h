/* SPDX-License-Identifier: BSD-2-Clause */
/* check.h - does the log hold what the reports said?  Problems are told
 * through problem.h. */
#ifndef KP_TEST_INTEGRATION_CHECK_H
#define KP_TEST_INTEGRATION_CHECK_H

#include "test/integration/verify/found.h"
#include "test/integration/verify/known.h"

struct expectations {
    bool all_acked;    /* every record was taken and acknowledged */
    bool all_found;    /* every record taken is in the log, acks=0 too */
    bool copies_ok;    /* a record may be there twice */
    bool any_order;    /* sending order may be broken */
    bool strangers_ok; /* others wrote to this topic too */
    bool stamps;       /* the log keeps the timestamps asked for */
    bool retried;      /* batches may have been sent twice */
    int64_t margin_ns;
};

/* Match one log's records (its number, from 1) to the journals: strangers,
 * copies within it, order, place, timestamp. */
void check_found(struct known_list *known, const struct found_list *found,
                 uint32_t log, const struct expectations *want);
/* Each record of the journals, after all readers: lost, refused but there,
 * reports missing, late or false, wrong partition. */
void check_known(const struct known_list *known,
                 const struct expectations *want);
/* Round robin, sticky and codecs, which are properties of many records. */
void check_lanes(const struct known_list *known);

#endif
