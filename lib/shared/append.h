/* SPDX-License-Identifier: BSD-2-Clause */
/* append.h - what append.c and append_slow.c share: nobody else includes it. */
#ifndef KP_SHARED_APPEND_H
#define KP_SHARED_APPEND_H

#include "lib/shared/record_accumulator.h"

/* The time of an append, as far as it was read. */
struct append_now {
    int64_t timestamp_ms; /* of the record */
    int64_t coarse_ns;    /* with a codec; else 0 */
};

/* Go on with q, which is locked (NULL: x has waited for memory), to the end
 * that kp__append_try promises. */
kp_err kp__append_slow(struct record_accumulator *a, struct append *x,
                       struct partition_queue *q, const struct append_now *now,
                       bool hopped);

/* x has waited for the backlog. */
void kp__append_braked(struct record_accumulator *a, struct append *x);

#endif
