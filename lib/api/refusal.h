/* SPDX-License-Identifier: BSD-2-Clause */
/* refusal.h - a send that was refused, or is doubtful, is told to the log. */
#ifndef KP_API_REFUSAL_H
#define KP_API_REFUSAL_H

#include "lib/shared/producer.h"

/* One WARN line with the value that was wrong, at most one every ten seconds
 * for each err.  r may be NULL. */
void kp__refusal_log(struct kp_producer *p, const kp_record *r, kp_err err);
/* The same for a record that is taken, with a stamp that is no milliseconds. */
void kp__stamp_log(struct kp_producer *p, const kp_record *r);

#endif
