/* SPDX-License-Identifier: BSD-2-Clause */
/* producer.h - what a kp_producer is: the two sides' common ground. */
#ifndef KP_SHARED_PRODUCER_H
#define KP_SHARED_PRODUCER_H

#include "lib/base/log.h"
#include "lib/shared/io_thread.h"
#include "lib/shared/metrics.h"
#include "lib/shared/ops.h"
#include "lib/shared/record_accumulator.h"
#include "lib/shared/status.h"
#include "lib/shared/topics.h"

struct io_thread;

#define REFUSED_LIMITS 32

struct kp_producer {
    /* fixed at birth */
    struct settings settings;
    struct clock clock;
    struct logger *log;
    struct buffer_pool *pool;
    struct compressors compressors;
    struct record_accumulator accumulator;
    struct topics *topics;
    struct metrics *metrics;
    struct status status;
    struct ops ops;
    struct io_bell bell;
    uint32_t fork_generation;
    struct io_thread *io; /* the I/O thread's state; lib/api only passes it on */

    /* failures that nobody watched, since the last flush or close */
    struct mutex unwatched_lock;
    uint64_t unwatched_count; /* guarded by unwatched_lock */
    kp_err unwatched_first;

    /* atomic */
    _Atomic(struct op *) spare_close; /* for a close when there is no memory */
    _Atomic uint32_t life;  /* enum life; a wait word */
    _Atomic uint32_t busy;  /* the I/O thread has something unreported: set before
                               it takes from the drain list, judged after its
                               reports */
    _Atomic uint32_t ended; /* the I/O thread serves no more ops */
    _Atomic uint64_t left_over; /* records that close failed with KP_ECLOSED */
    struct log_limit refused_limits[REFUSED_LIMITS]; /* by err */
    struct log_limit stamp_limit;
};

enum life { LIFE_OPEN, LIFE_CLOSING, LIFE_STOPPING, LIFE_STOPPED };

/* How many failures nobody watched since the last call, and the first one's err
 * (KP_OK: none).  Any thread. */
uint64_t kp__producer_unwatched(struct kp_producer *p, kp_err *first);
/* I/O thread: `count` records without future, callback or queue failed. */
void kp__producer_note_unwatched(struct kp_producer *p, kp_err err,
                                 uint64_t count);

#endif
