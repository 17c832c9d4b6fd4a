/* SPDX-License-Identifier: BSD-2-Clause */
/* partitioner.h - which partition a record goes to.  Sending threads, no locks.
 * */
#ifndef KP_API_PARTITIONER_H
#define KP_API_PARTITIONER_H

#include "lib/shared/producer.h"

/* Kafka's murmur2 (Utils.murmur2), seed 0x9747b28c. */
uint32_t kp__murmur2(const void *data, size_t size);
/* The partition of r among `count`: explicit, custom, by key, round robin; -1:
 * the accumulator chooses (sticky). An explicit one may be >= count: the caller
 * waits for the topic to grow.  KP_EPARTITION: the custom function chose out of
 * range. */
kp_err kp__partition_for(struct kp_producer *p, const kp_record *r,
                         struct topic *t, int32_t count, int32_t *out);

#endif
