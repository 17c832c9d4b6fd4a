/* SPDX-License-Identifier: BSD-2-Clause */
/* batch_result.h - what became of a batch: the part that futures hold.
 *
 * O(1) for a batch whatever it carries; per-record errors and the parts of a
 * split hang off a side table made at completion.  The I/O thread writes it
 * until it publishes DONE; afterwards it is constant.  Outlives the batch's
 * memory and the producer. */
#ifndef KP_SHARED_BATCH_RESULT_H
#define KP_SHARED_BATCH_RESULT_H

#include <stdatomic.h>
#include <stdint.h>

#include "include/kp/kp.h"
#include "lib/base/wait.h"
#include "lib/wire/errors.h"

/* A topic's name, counted: reports lend it after the producer is gone. */
struct topic_name {
    _Atomic uint32_t refs;
    uint32_t size;
    char text[]; /* terminated */
};
struct topic_name *kp__topic_name_create(const char *name, size_t size);
void kp__topic_name_ref(struct topic_name *n);
void kp__topic_name_unref(struct topic_name *n);

struct outcome {
    kp_err err, cause;
    enum certainty stored;
    int64_t base_offset;    /* -1: not said */
    int64_t append_time_ms; /* -1: the record's own time stands */
};

#define RESULT_DONE 1u
#define RESULT_WAITERS 2u
#define RESULT_QUIET 4u /* has its outcome, and keeps it from futures for now */

/* Outcome of records [first, first + count): a part of a split batch, or one
 * record that the broker named (KIP-467). */
struct result_part {
    uint32_t first, count;
    struct outcome outcome;
    char *text; /* owned; or NULL */
};

struct batch_result {
    _Atomic uint32_t word; /* RESULT_DONE, _WAITERS and _QUIET */
    _Atomic uint32_t refs; /* futures (biased until the batch is sealed), batch */
    struct topic_name *topic;
    int32_t partition;
    uint32_t fork_generation;
    /* I/O thread until DONE, then constant */
    struct outcome outcome;
    char *text; /* of the broker, escaped; or NULL */
    struct result_part *parts; /* sorted by first; or NULL */
    uint32_t part_count, part_capacity;
};

/* While a batch is open its result carries a bias, so that futures can be
 * released before their number is known; kp__result_publish replaces the bias
 * by the plain count kept under the queue's lock, once, at seal. */
#define RESULT_BIAS (UINT32_C(1) << 30)
void kp__result_init(struct batch_result *r, struct topic_name *topic,
                     int32_t partition);
void kp__result_publish(struct batch_result *r, uint32_t future_refs);
void kp__result_ref(struct batch_result *r);
void kp__result_unref(struct batch_result *r, uint32_t count);

/* I/O thread, these three.  Note the outcome of a part before completion: of
 * those of its records that have none of their own yet.  False: no memory,
 * nothing was noted, and they take the outcome of the batch. */
bool kp__result_add_part(struct batch_result *r, uint32_t first,
                         uint32_t count, const struct outcome *o,
                         const char *text);
/* Room for `count` parts, which lie between those that there are: behind all
 * that begin before `first`.  The caller sets each, in order, and does nothing
 * else before.  NULL: no memory. */
struct result_part *kp__result_add_parts(struct batch_result *r, uint32_t first,
                                         uint32_t count);
/* `text` is copied; without memory there is less to read, nothing else. */
void kp__result_part_set(struct result_part *part, uint32_t first,
                         uint32_t count, const struct outcome *o,
                         const char *text);
/* I/O thread, once: publish DONE and wake two waiters, who wake two each.
 * After it only the address of r is used, unless the caller holds a reference.
 * */
void kp__result_complete(struct batch_result *r, const struct outcome *o,
                         const char *text);
/* The same in two steps, for a batch with records that have a future and a
 * callback: in between only callbacks (kp__in_callback) see that it is done. */
void kp__result_publish_quietly(struct batch_result *r,
                                const struct outcome *o);
void kp__result_wake(struct batch_result *r);
/* The report of a record whose batch has its outcome, public or not.  The I/O
 * thread, or whoever was handed the batch after it. */
void kp__result_read(const struct batch_result *r, uint32_t index, void *tag,
                     kp_report *out);

/* Any thread.  True when DONE; then fill `out` (may be NULL) for the record. */
bool kp__result_get(const struct batch_result *r, uint32_t index, void *tag,
                    kp_report *out);
/* Where to wait for it: marks that someone does.  A caller that was woken calls
 * kp__result_relay first of all. */
void kp__result_ticket(struct batch_result *r, int64_t deadline_ns,
                       struct ticket *out);
void kp__result_relay(struct batch_result *r);
/* Only the err of a record that is known to be DONE. */
kp_err kp__result_err(const struct batch_result *r, uint32_t index);

#endif
