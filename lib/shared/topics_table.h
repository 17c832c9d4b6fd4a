/* SPDX-License-Identifier: BSD-2-Clause */
/* topics_table.h - what topics.c and topic_*.c share: nobody else includes it.
 * */
#ifndef KP_SHARED_TOPICS_TABLE_H
#define KP_SHARED_TOPICS_TABLE_H

#include "lib/base/map.h"
#include "lib/shared/topics.h"

/* Open addressing; grown by replacing it. */
struct topic_table {
    struct topic_table *older;
    size_t mask;
    _Atomic(struct topic *) slots[];
};

/* In order of confirmation; grown by replacing it. */
struct topic_list {
    struct topic_list *older;
    uint32_t capacity;
    struct topic *topics[];
};

struct topics {
    /* fixed at birth */
    struct record_accumulator *accumulator;
    uint64_t serial; /* of this table in the process: never 0, never again */
    /* published by the I/O thread */
    _Atomic(struct topic_table *) table;
    _Atomic(struct topic_list *) list;
    _Atomic uint32_t count;
    /* I/O thread only */
    int32_t partition_count; /* of all topics */
    struct mutex lock;
    struct map waits; /* guarded by lock: name -> struct topic_wait * */
    struct topic_retry *retries; /* guarded by lock; see topic_retries.c */
};

/* Raise a version and wake, by relay, all who wait for that. */
void kp__topics_raise(_Atomic uint32_t *version);
/* The name has become a topic: it is asked for no more. */
void kp__topics_confirm(struct topics *t, const char *name, size_t size);
void kp__topics_answer(struct topics *t, const char *name, size_t size,
                       kp_err err);
void kp__topics_wake_waits(struct topics *t);
void kp__topics_free_waits(struct topics *t);
/* There is news of a topic: signal the queues that wait for some. */
void kp__topics_retry(struct topics *t);
void kp__topics_free_retries(struct topics *t);

#endif
