/* SPDX-License-Identifier: BSD-2-Clause */
/* errors.h - what is known of each error, generated from errors.def by macro.
 *
 * errors.def is the one table: Kafka's codes and ours, their names, kinds,
 * sentences, what a produce attempt answered with them says about the log, and
 * whether they make metadata stale.  include/kp/errors.h is printed from it. */
#ifndef KP_WIRE_ERRORS_H
#define KP_WIRE_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "include/kp/kp.h"

/* The certainty of a record, worst news first in the join's sense. */
enum certainty {
    CERTAIN_MAYBE = KP_STORED_MAYBE,
    CERTAIN_NO = KP_STORED_NO,
    CERTAIN_YES = KP_STORED_YES
};

struct error_info {
    kp_err err;
    const char *name, *text;
    kp_kind kind;
    bool retriable;        /* Java's RetriableException: a produce attempt may
                              be made again under the same identity */
    bool refresh_metadata; /* Java's InvalidMetadataException */
    enum certainty acks_one, acks_all; /* of one attempt; traps: 13.1 */
};
/* Never NULL: an unknown code gets the row of UNKNOWN_SERVER_ERROR's behaviour
 * with a name of its own ("UNKNOWN_ERROR"). */
const struct error_info *kp__error_info(kp_err err);

/* The code of an answer, as we speak of it: negative numbers but -1 are ours,
 * so a broker that sends one of those has said UNKNOWN_SERVER_ERROR. */
kp_err kp__error_answered(int16_t code);

/* Is the question worth asking again that was answered so, about a topic or for
 * a producer id?  Yes for what Java retries, for a broker that failed in a way
 * it has no code for, and for errors of our own but KP_ENOTSUP and KP_ETOPIC. */
bool kp__error_may_pass(kp_err err);

/* What is known after one more attempt: (error of the attempt, acks, whether
 * the frame's last byte was accepted by the transport, certainty so far).  The
 * only function that computes certainty.  YES stays; else MAYBE stays.
 * `first`: there was no attempt before. */
enum certainty kp__certainty(kp_err err, int16_t acks, bool sent, bool first,
                             enum certainty so_far);

#endif
