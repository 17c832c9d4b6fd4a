/* SPDX-License-Identifier: BSD-2-Clause */
/* record_accumulator.h - where records wait to be sent, and the drain list.
 *
 * Kafka: RecordAccumulator, whose ready() and drain() are io_thread/sender's.
 * */
#ifndef KP_SHARED_RECORD_ACCUMULATOR_H
#define KP_SHARED_RECORD_ACCUMULATOR_H

#include <stdatomic.h>
#include <stdint.h>

#include "include/kp/kp.h"
#include "lib/base/wait.h"
#include "lib/config/settings.h"
#include "lib/shared/backlog.h"
#include "lib/shared/buffer_pool.h"
#include "lib/shared/claims.h"
#include "lib/shared/compressors.h"
#include "lib/shared/io_thread.h"
#include "lib/shared/partition_queue.h"
#include "lib/shared/topics.h"

/* Read under the queue's lock by every append.  Whoever changes it then visits
 * every queue once: after the visit nothing can be added. */
enum taking { TAKING_RECORDS, TAKING_CLOSED, TAKING_FATAL };

struct record_accumulator {
    /* fixed at birth */
    const struct settings *settings;
    const struct clock *clock;
    struct buffer_pool *pool;
    struct compressors *compressors;
    struct io_bell *bell;
    size_t raw_max; /* the largest raw batch that can be compressed or split */
    size_t batch_size, max_request_size; /* of settings, for the hot path: */
    int64_t linger_ns, delivery_timeout_ns;
    int64_t open_max_ns; /* how long a batch takes records */
    bool compresses;
    /* atomic */
    _Atomic uint32_t taking;
    _Atomic int32_t fatal_err;
    _Atomic(struct partition_queue *) drain_head;
    struct backlog backlog; /* what is sealed and waits for a connection */
    /* under its own lock */
    struct claims claims;
};

void kp__accumulator_init(struct record_accumulator *a,
                          const struct settings *s, const struct clock *clock,
                          struct buffer_pool *pool, struct compressors *c,
                          struct io_bell *bell);
void kp__accumulator_fini(struct record_accumulator *a);

/* The largest raw batch that these settings allow to compress or to split. */
size_t kp__raw_max(const struct settings *s);

/* One append, as far as it can go without waiting.  Set what is "in", and
 * `waiting` false, before the first try. */
struct append {
    /* in */
    const kp_record *record;
    struct topic *topic;
    int32_t partition;  /* -1: choose an available one (sticky) */
    bool may_wait;      /* false: KP_NOWAIT or a callback */
    bool may_brake;     /* see backlog.h; may_wait, and for long enough */
    bool want_future;
    int64_t deadline_ns; /* of the whole call */
    int64_t timestamp_ms; /* of the record; -1: stamp with now */
    /* out */
    struct batch_result *result;
    uint32_t index;
    struct ticket ticket;
    bool braking; /* it waits for the backlog: past its ticket's deadline too it
                     goes on */
    bool waiting; /* it stands in the pool's line */
    /* its own */
    struct pool_waiter waiter;
    struct partition_queue *queue;
    struct brake brake;
};
/* KP_OK: taken, result and index are set (a reference if want_future).
 * KP_PENDING: wait on the ticket, then call again (or kp__append_give_up).
 * KP_EBUFFER, KP_ECLOSED, or the fatal error: nothing was taken. */
kp_err kp__append_try(struct record_accumulator *a, struct append *x);
/* The wait took too long: leave the line.  Returns KP_EBUFFER. */
kp_err kp__append_give_up(struct record_accumulator *a, struct append *x);

/* Put q onto the drain list unless it is there.  Under q's lock, but for the
 * I/O thread: whoever finds under the lock that it is `listed` relies on it. */
void kp__drain_push(struct record_accumulator *a, struct partition_queue *q);
/* I/O thread: the whole list, oldest first, linked by drain_next.  For each:
 * read its drain_next, then kp__drain_unlist it, then look at it. */
struct partition_queue *kp__drain_take(struct record_accumulator *a);
static inline void kp__drain_unlist(struct partition_queue *q)
{
    /* seq_cst: cleared before the queue is looked at, so that a sender who
     * still saw it set had pushed what the look will find */
    atomic_store(&q->listed, 0);
}
bool kp__drain_empty(const struct record_accumulator *a);

/* Compress one batch that is claimed: outside every lock, then finish it and
 * list its queue. `k` is given back to the set unless it is the I/O thread's.
 * */
void kp__compress_and_finish(struct record_accumulator *a, struct batch *b,
                             struct compressor *k);

#endif
