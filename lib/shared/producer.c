/* SPDX-License-Identifier: BSD-2-Clause */
/* producer.c - failures that nobody watched.  I/O thread; flush and close read
 * them. */
#include "lib/shared/producer.h"

void kp__producer_note_unwatched(struct kp_producer *p, kp_err err,
                                 uint64_t count)
{
    kp__mutex_lock(&p->unwatched_lock);
    if (p->unwatched_count == 0)
        p->unwatched_first = err;
    p->unwatched_count += count;
    kp__mutex_unlock(&p->unwatched_lock);
}

uint64_t kp__producer_unwatched(struct kp_producer *p, kp_err *first)
{
    uint64_t count;

    kp__mutex_lock(&p->unwatched_lock);
    count = p->unwatched_count;
    *first = p->unwatched_first;
    p->unwatched_count = 0;
    p->unwatched_first = KP_OK;
    kp__mutex_unlock(&p->unwatched_lock);
    return count;
}
