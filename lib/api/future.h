/* SPDX-License-Identifier: BSD-2-Clause */
/* future.h - what is inside a kp_future.
 *
 * A record taken: result_ is its batch's result, index_ the record's place in
 * it, check_ FUTURE_TAKEN.  A record refused: result_ is NULL, index_ the
 * kp_err, check_ FUTURE_REFUSED, or FUTURE_FATAL if the producer is fatal by
 * it.  All zero: no future. */
#ifndef KP_API_FUTURE_H
#define KP_API_FUTURE_H

#include "include/kp/kp.h"
#include "lib/shared/batch_result.h"

#define FUTURE_TAKEN 0x6b70f07eu
#define FUTURE_REFUSED 0x6b70dead
#define FUTURE_FATAL 0x6b70fa7a

static inline void kp__future_take(kp_future *f, struct batch_result *r,
                                   uint32_t index, void *tag)
{
    f->result_ = r;
    f->tag_ = tag;
    f->index_ = index;
    f->check_ = FUTURE_TAKEN;
}

static inline void kp__future_refuse(kp_future *f, kp_err err, void *tag)
{
    f->result_ = NULL;
    f->tag_ = tag;
    f->index_ = (uint32_t)err;
    f->check_ = FUTURE_REFUSED;
}

/* The report's err and the report (may be NULL) if it is there; else KP_PENDING
 * and where to wait (`out` NULL: the caller will not).  Never waits. */
kp_err kp__future_try(const kp_future *f, int64_t deadline_ns,
                      kp_report *report, struct ticket *out);

#endif
