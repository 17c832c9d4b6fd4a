/* SPDX-License-Identifier: BSD-2-Clause */
/* check_record.h - is a record one that can be sent?  Pure. */
#ifndef KP_API_CHECK_RECORD_H
#define KP_API_CHECK_RECORD_H

#include <stdbool.h>

#include "include/kp/kp.h"
#include "lib/config/settings.h"

/* KP_OK, KP_EINVAL, KP_EPARTITION, KP_ETIMESTAMP, KP_EHEADER or KP_ETOOBIG.
 * Says nothing about the topic's name. */
kp_err kp__check_record(const kp_record *r, const struct settings *s);
/* Kafka's rule (Topic.validate): 1 to 249 of [a-zA-Z0-9._-], not "." or "..".
 * */
bool kp__topic_is_legal(const char *name, size_t size);

#endif
