/* SPDX-License-Identifier: BSD-2-Clause */
/* partition_queue.h - the batches of one partition that are not on a wire.
 *
 * Senders append at the tail under the lock; the I/O thread takes READY batches
 * from the head and puts retries back by ordinal.  Lives as long as the
 * producer.  Kafka: the Deque<ProducerBatch> of RecordAccumulator. */
#ifndef KP_SHARED_PARTITION_QUEUE_H
#define KP_SHARED_PARTITION_QUEUE_H

#include <stdalign.h>

#include "lib/base/list.h"
#include "lib/base/mutex.h"
#include "lib/shared/batch.h"

struct record_accumulator;
struct sender_partition;
struct topic;

struct partition_queue {
    /* guarded by lock: what an append touches, together; neighbours share no
     * line, nor a pair that is prefetched */
    alignas(128) struct mutex lock;
    struct batch *open;      /* the last of `batches`, or NULL */
    uint8_t *at, *limit;     /* where the next record goes in the open batch */
    size_t raw_limit;        /* of the open batch: it takes no more than this */
    size_t raw_cap;          /* of the next ones: what a broker refused as too large
                                was twice this; 0: nothing was.  Only the I/O thread
                                writes it, so it may read it without the lock */
    struct list batches;     /* by ordinal */
    uint64_t next_ordinal;
    struct chunk *spare;     /* for the next growth, without a visit to the pool */
    uint32_t batch_count;
    uint64_t sticky_bytes;   /* appended since it became the sticky partition,
                                and what it got too much of before */
    float ratio;             /* raw to compressed size lately seen, at least 1 */
    bool outgrew_small;      /* the last batch did: the next begins with a block */
    bool expedite;           /* flush, close or pressure: do not linger */
    bool open_is_old;        /* the open batch takes no more records */
    int64_t last_created_ns; /* so that creation follows the ordinals */
    struct list sealed;      /* those of `batches` that are SEALED, by ordinal */

    /* fixed at birth */
    struct topic *topic;
    struct record_accumulator *accumulator;
    int32_t partition;

    /* I/O thread only */
    struct sender_partition *sender;

    /* the pool's, under its lock */
    size_t held_bytes;
    bool unreachable;

    /* the claims', under their lock */
    struct list_node offer_link;
    uint32_t offers; /* how often it was offered */

    /* atomic: as last heard of, for kp_partitions_for; written by the I/O
     * thread, each on its own (relaxed): together they need not be one moment's
     * */
    _Atomic int32_t leader_id, leader_epoch, replica_count, isr_count;

    /* atomic: the drain list */
    _Atomic uint32_t listed;
    _Atomic(struct partition_queue *) drain_next;
};

void kp__queue_init(struct partition_queue *q, struct topic *topic,
                    int32_t partition, struct record_accumulator *a);
void kp__queue_fini(struct partition_queue *q); /* must be empty */

/* -- The senders' side: with the lock held -- */
/* Add an empty batch at the end: the one that records go to. */
void kp__queue_open_locked(struct partition_queue *q, struct batch *b);
/* The open batch takes no more: SEALED, or COMPRESSING and the caller's.
 * Returns it. */
struct batch *kp__queue_seal_locked(struct partition_queue *q,
                                    enum batch_place to);
/* A claim that cannot be carried out: back to SEALED, with the queue on the
 * drain list (or the bytes are given back, if it was completed meanwhile).
 * Takes the lock. */
void kp__queue_unclaim(struct partition_queue *q, struct batch *b);

/* -- The I/O thread's side.  `force` takes the lock however long it takes;
 * otherwise a busy queue answers QUEUE_BUSY and is come back to. -- */
enum queue_answer { QUEUE_OK, QUEUE_BUSY, QUEUE_EMPTY, QUEUE_NOT_READY };

struct queue_view {
    enum batch_place head_place;
    bool head_full;        /* sealed, or no room for more, or batches behind it */
    bool expedite;         /* flush, close, pressure */
    bool retry;            /* the head has been sent before */
    bool stamped;          /* the head has a base_sequence (>= 0) */
    int64_t head_created_ns, head_deadline_ns; /* earliest in the queue */
    int64_t open_created_ns; /* of the open batch; KP_NEVER: none that still
                                takes records */
    size_t head_wire_size; /* READY: exact; else an estimate of the largest */
    uint64_t head_ordinal;
    uint32_t batch_count;
};
/* QUEUE_OK and *out, QUEUE_EMPTY or QUEUE_BUSY. */
enum queue_answer kp__queue_look(struct partition_queue *q, bool force,
                                 struct queue_view *out);
/* Seal the open batch if it is the head; expedite: wherever it stands.  Then,
 * and under pressure, what the queue holds in spare goes back to the pool.
 * QUEUE_NOT_READY: there was none. */
enum queue_answer kp__queue_seal(struct partition_queue *q, bool force,
                                 bool expedite);
/* Claim the head for compression: SEALED -> COMPRESSING, *out gets it. Anyone;
 * QUEUE_NOT_READY if the head is not SEALED. */
enum queue_answer kp__queue_claim(struct partition_queue *q, bool force,
                                  struct batch **out);
/* Claim the oldest SEALED batch, wherever it stands.  Any thread; waits for the
 * lock.  False: there is none. */
bool kp__queue_claim_sealed(struct partition_queue *q, struct batch **out);
/* The claimant is done: -> READY, or, if it was completed meanwhile, the bytes
 * are given back and it is GONE.  Any thread.  Returns whether READY.  `list`: then
 * the queue is put onto the drain list, before others can append to it. */
bool kp__queue_finish(struct partition_queue *q, struct batch *b, bool list);
/* Take the READY head off the queue: -> IN_FLIGHT, then the I/O thread's. */
enum queue_answer kp__queue_take(struct partition_queue *q, bool force,
                                 struct batch **out);
/* A retry: IN_FLIGHT -> READY, back by (ordinal, first_index), so that the
 * children of a split stay in their order.  Waits for the lock. */
void kp__queue_put_back(struct partition_queue *q, struct batch *b);
/* Complete batches where they stand: unlink every batch whose deadline is at or
 * before deadline_ns (KP_NEVER: all), set its fate, and link it (by `link`) to
 * `out` in order.  The caller releases their bytes; of one that is being
 * compressed its claimant does (its place stays COMPRESSING, `abandoned` is
 * set, and kp__batch_release_bytes leaves it alone).  Waits for the lock. */
void kp__queue_expire(struct partition_queue *q, int64_t deadline_ns,
                      struct list *out);
/* Visit for flush: seal the open batch, and call fn for each batch in order
 * under the lock (fn must be short and take no lock). Waits for the lock.
 * Returns whether any batch is SEALED. */
bool kp__queue_visit(struct partition_queue *q, bool seal,
                     void (*fn)(void *arg, struct batch *b), void *arg);
/* An open batch of before_ns or earlier takes no more records, as they would have
 * too little of delivery.timeout.ms left; it goes on lingering.  Appends need
 * not know its age: they find it full.  Waits for the lock. */
void kp__queue_note_age(struct partition_queue *q, int64_t before_ns);
/* A batch of raw_size was refused as too large: fill the next ones less.  Also
 * forgets the compression ratio, as Java does. */
void kp__queue_refused(struct partition_queue *q, size_t raw_size);
/* A batch of raw_size was taken: if that is about all that the cap allows,
 * allow a little more, so that a limit that was raised is found. */
void kp__queue_taken(struct partition_queue *q, size_t raw_size);
/* Give spare chunks back to the pool, if the queue is empty. */
void kp__queue_trim(struct partition_queue *q);

#endif
