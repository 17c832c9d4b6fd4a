/* SPDX-License-Identifier: BSD-2-Clause */
/* send.h - one send as a state that can be stopped and taken up again: what the
 * public calls loop over, and what a simulator drives. */
#ifndef KP_API_SEND_H
#define KP_API_SEND_H

#include "lib/shared/producer.h"

enum send_step { SEND_TOPIC, SEND_APPEND };

struct send {
    /* in */
    struct kp_producer *p;
    const kp_record *record;
    bool want_future, may_wait;
    int64_t deadline_ns; /* 0: not computed yet; of the whole call */
    /* out */
    struct batch_result *result;
    uint32_t index;
    struct ticket ticket;
    /* its own */
    enum send_step step;
    const char *name;
    size_t name_size; /* 0: the name is terminated, and was not measured yet */
    struct topic_wait *wait;
    struct append append;
};

/* Begin: checks the record. KP_OK, or why it is refused. */
kp_err kp__send_begin(struct send *s, struct kp_producer *p, const kp_record *r,
                      bool want_future);
/* Go as far as possible without waiting.  KP_PENDING: wait on s->ticket, then
 * call again, or kp__send_give_up when its deadline has passed. */
kp_err kp__send_try(struct send *s);
/* Returns why: KP_EMETADATA or KP_EBUFFER. */
kp_err kp__send_give_up(struct send *s);

/* The topic entry for a name, waiting as kp__send_try does; for partitions_for.
 * */
kp_err kp__topic_try(struct send *s, struct topic **out);

#endif
