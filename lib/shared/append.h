/* SPDX-License-Identifier: BSD-2-Clause */
/* append.h - what append.c and append_slow.c share: nobody else includes it. */
#ifndef KP_SHARED_APPEND_H
#define KP_SHARED_APPEND_H

#include "lib/shared/record_accumulator.h"

/* The time of an append, as far as it was read. */
struct append_now {
    int64_t timestamp_ms; /* of the record */
    int64_t coarse_ns;    /* read if by_coarse, or with a codec */
    bool by_coarse;       /* the timestamp is the caller's: it tells no age */
};

/* An open batch older than a quarter of delivery.timeout.ms takes no more. */
static inline bool kp__append_too_old(const struct record_accumulator *a,
                                      const struct append_now *now,
                                      const struct batch *b)
{
    if (!now->by_coarse)
        return now->timestamp_ms - b->opened_wall_ms >= a->open_max_ms;
    return now->coarse_ns - b->created_ns >= a->open_max_ns;
}

/* Go on with q, which is locked (NULL: x has waited for memory), to the end
 * that kp__append_try promises. */
kp_err kp__append_slow(struct record_accumulator *a, struct append *x,
                       struct partition_queue *q, const struct append_now *now,
                       bool hopped);

/* x has waited for the backlog. */
void kp__append_braked(struct record_accumulator *a, struct append *x);

#endif
