/* SPDX-License-Identifier: BSD-2-Clause */
/* sticky.h - which partition an unkeyed record goes to.
 *
 * KIP-794: a topic has one sticky partition, and leaves it for a randomly
 * chosen one after batch.size bytes (BuiltInPartitioner).  Beyond Java: a
 * thread that finds the sticky partition's lock taken hops to another one and
 * stays with it for a few batches, so that threads do not stand in each other's
 * way. */
#ifndef KP_SHARED_STICKY_H
#define KP_SHARED_STICKY_H

#include "lib/base/rand.h"
#include "lib/base/thread.h"
#include "lib/shared/topics.h"

/* Batches' worth of bytes that a thread stays away from the sticky partition.
 * */
#define HOP_BATCHES 4

/* Where this thread has hopped to; one topic at a time. */
struct hop {
    const struct record_accumulator *owner;
    uint32_t topic; /* number */
    uint32_t left;  /* batches; 0: nowhere */
    int32_t partition;
};
extern _Thread_local KP_TLS_FAST struct hop kp__hop;

/* The queue of an unkeyed record, locked: the sticky partition's, or the one
 * this thread has hopped to (*hopped). */
struct partition_queue *kp__sticky_lock(const struct record_accumulator *a,
                                        struct topic *topic, bool *hopped);
/* Enough bytes went to q, which is locked: the topic's next unkeyed records, or
 * this thread's, go elsewhere. */
void kp__sticky_leave(struct topic *topic, struct partition_queue *q,
                      bool hopped);

/* The next partition: by the published weights, else uniformly. */
int32_t kp__partitioner_next(const struct topic_view *v, struct rng *rng);
/* This thread's generator. */
struct rng *kp__thread_rng(void);
/* For tests: from now on it repeats itself. */
void kp__thread_rng_seed(uint64_t seed);

#endif
