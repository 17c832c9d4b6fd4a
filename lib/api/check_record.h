/* SPDX-License-Identifier: BSD-2-Clause */
/* check_record.h - is a record one that can be sent?  Pure. */
#ifndef KP_API_CHECK_RECORD_H
#define KP_API_CHECK_RECORD_H

#include <stdbool.h>

#include "include/kp/kp.h"
#include "lib/config/settings.h"

/* Bytes of a key or a value of what is plain, and the most that stand around
 * them: the batch's header and the record's, and three lengths. */
#define RECORD_PLAIN_MAX 65536
#define RECORD_PLAIN_AROUND 97

/* KP_OK, KP_EINVAL, KP_EPARTITION, KP_ETIMESTAMP, KP_EHEADER or KP_ETOOBIG.
 * Says nothing about the topic's name. */
kp_err kp__check_record(const kp_record *r, const struct settings *s);
/* The same at a glance: true only if it is KP_OK, which is so for most. */
static inline bool kp__record_is_plain(const kp_record *r,
                                       const struct settings *s)
{
    size_t room = s->max_request_size < s->buffer_memory ? s->max_request_size
                                                         : s->buffer_memory;
    uint64_t zeroes = r->header_count | (uint64_t)r->timestamp_ms |
                      (uint32_t)r->partition | r->reserved32 | r->reserved[0] |
                      r->reserved[1] | (r->flags & ~(uint32_t)KP_NOWAIT);
    bool both = r->on_delivery != NULL && r->queue != NULL;

    return r->topic != NULL && zeroes == 0 && !both &&
           (r->key.data != NULL || r->key.size == 0) &&
           (r->value.data != NULL || r->value.size == 0) &&
           r->key.size < RECORD_PLAIN_MAX && r->value.size < RECORD_PLAIN_MAX &&
           r->key.size + r->value.size + RECORD_PLAIN_AROUND <= room;
}
/* A stamp that is no time in milliseconds, but one in micro- or nanoseconds:
 * as milliseconds it is after the year 5138.  Brokers may take it, and then
 * never delete the record for its age. */
#define STAMP_MS_MAX INT64_C(100000000000000)
static inline bool kp__record_stamp_is_odd(const kp_record *r)
{
    return (r->flags & KP_HAS_TIMESTAMP) != 0 && r->timestamp_ms > STAMP_MS_MAX;
}
/* Kafka's rule (Topic.validate): 1 to 249 of [a-zA-Z0-9._-], not "." or "..".
 * */
bool kp__topic_is_legal(const char *name, size_t size);

#endif
