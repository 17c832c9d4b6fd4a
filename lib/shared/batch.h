/* SPDX-License-Identifier: BSD-2-Clause */
/* batch.h - a batch of records of one partition, from its first record to its
 * last report.
 *
 * place says who may touch the bytes; fate says whether the outcome is decided.
 * Two fields, because a batch may be completed while its bytes are still being
 * compressed or on a wire (KAFKA-19012): memory goes back when the place
 * becomes GONE, whoever makes it so.
 *
 *   OPEN         senders, under the queue's lock
 *   SEALED       nobody: anyone may claim it for compression
 *   COMPRESSING  the claimant
 *   READY        the I/O thread (stamping)
 *   IN_FLIGHT    the connection, read only
 *   GONE         nobody
 *
 * Moves: OPEN -> SEALED -> COMPRESSING -> READY -> IN_FLIGHT -> READY (retry)
 * or GONE; from every place but IN_FLIGHT a completed batch goes to GONE. */
#ifndef KP_SHARED_BATCH_H
#define KP_SHARED_BATCH_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "lib/base/list.h"
#include "lib/codec/codec.h"
#include "lib/shared/batch_result.h"
#include "lib/shared/buffer_pool.h"
#include "lib/wire/record_batch.h"

struct partition_queue;

enum batch_place { PLACE_OPEN, PLACE_SEALED, PLACE_COMPRESSING, PLACE_READY,
                   PLACE_IN_FLIGHT, PLACE_GONE };
enum batch_fate { FATE_PENDING, FATE_COMPLETED };

#define BATCH_MAX_CQS 4

/* Where one record's report goes besides its future: 0 nowhere; up to
 * BATCH_MAX_CQS the completion queue posts[target - 1] of the batch; else a
 * kp_delivery_fn (functions may stand at odd addresses, but not at these). */
struct report_slot {
    uintptr_t target;
    void *tag;
};
/* Slots begin at record slots_from of the batch; a page is a chunk of them,
 * full unless it is the last one. */
static inline bool kp__slot_is_callback(const struct report_slot *s)
{
    return s->target > BATCH_MAX_CQS;
}

/* A batch's entry in one completion queue. */
struct cq_post {
    struct list_node link;
    struct batch *batch;
    struct kp_cq *cq;
    struct chunk *page; /* where polling stands */
    uint32_t page_index, record;
};

struct batch {
    /* fixed at birth */
    struct partition_queue *queue;
    struct buffer_pool *pool; /* counted: slots may outlive the producer */
    struct batch *pool_next;  /* the pool's, while it is free */
    uint32_t charge;          /* what the structures count against the pool */
    struct batch_result *result;
    uint64_t ordinal; /* in its queue; children of a split keep the parent's */
    int64_t created_ns, deadline_ns;

    /* guarded by the queue's lock while in the queue, else the I/O thread's */
    struct list_node link; /* queue->batches */
    struct list_node sealed_link; /* queue->sealed, while SEALED there */
    enum batch_place place;
    enum batch_fate fate;
    size_t ready_size; /* wire_size, copied under the lock when READY: wire_size
                          itself is the claimant's while it compresses */
    bool abandoned; /* completed while COMPRESSING: the claimant gives the bytes
                       back, and the place says so no more */

    /* place says whose */
    struct chunk *chunks, *last_chunk;
    uint32_t record_count;
    uint32_t first_index; /* in the result: 0 but for children of a split */
    size_t raw_size;      /* of the records, uncompressed */
    size_t wire_size;     /* of the body as it is sent; from READY on */
    uint32_t body_crc;    /* of the body as it is sent; from READY on */
    enum codec_id codec;  /* as it is sent */
    int64_t base_timestamp_ms, max_timestamp_ms;
    uint32_t max_record_size;

    /* reports: senders under the lock while OPEN, then the I/O thread, then the
     * queues they were posted to */
    struct chunk *slots, *last_slots;
    uint32_t slots_from;   /* record index of the first slot */
    uint32_t future_refs;  /* futures taken, plain, until sealed */
    bool disowned;         /* the queue may be gone: see kp__batch_disown */
    uint32_t unwatched;    /* records without future, callback or queue */
    bool future_and_callback; /* of one record: the callback comes first */
    struct cq_post posts[BATCH_MAX_CQS];
    uint32_t post_count;

    /* I/O thread only: the sender's view */
    struct list_node order_link; /* all unreported batches of the partition */
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence; /* -1: not stamped */
    uint32_t attempts;
    uint32_t corrupt; /* of them, answered with CORRUPT_MESSAGE */
    uint32_t leader_term; /* the partition's, at the last attempt */
    enum certainty certainty;
    kp_err last_err; /* of the last attempt: the cause of a later failure */
    uint64_t flush_epoch;
    bool registered;
    bool renumbered; /* its numbers were refused, and it got others */
    struct batch *origin;  /* of a split child: whose result and slots */
    const uint8_t *flat;   /* of a split child: its body, not in chunks */
    size_t part_offset;    /* of a split child: where its raw records begin in
                              the memory kept aside for splits */
    uint32_t parts_pending; /* of an origin: children without an outcome */
    bool part_lost; /* of an origin: there was no memory for an outcome */
    uint8_t header[RECORD_BATCH_HEADER_SIZE]; /* as last stamped */

    /* atomic: one for the bytes, one for the reports, one for each post */
    _Atomic uint32_t refs;
};

/* Move to `to`; illegal moves abort in debug builds. The queue's lock or, once
 * taken from the queue, the I/O thread. */
void kp__batch_move(struct batch *b, enum batch_place to);
/* Pieces of the body as it is sent; returns how many (at most max). */
size_t kp__batch_iov(const struct batch *b, struct iovec *out, size_t max);
size_t kp__batch_iov_count(const struct batch *b);
static inline bool kp__batch_has_slot_room(const struct batch *b)
{
    const struct chunk *page = b->last_slots;

    return page != NULL &&
           page->capacity - page->used >= sizeof(struct report_slot);
}
/* The slot of the record that is being added; needs room.  Under the lock. */
void kp__batch_put_slot(struct batch *b, const kp_record *r);
/* The same for a record whose target is known: its callback. */
static inline void kp__batch_put_target(struct batch *b, uintptr_t target,
                                        void *tag)
{
    struct chunk *page = b->last_slots;
    struct report_slot *slot = (void *)(page->data + page->used);

    slot->target = target;
    slot->tag = tag;
    page->used += (uint32_t)sizeof(*slot);
}

/* Before a queue can be polled for the batch: what it still holds (slots, its
 * structures) is the pool's own from here on, no more its partition queue's,
 * which may be freed before the reports are polled.  I/O thread; may be called
 * again. */
void kp__batch_disown(struct batch *b);
/* Drop one reference; the last gives slots and structures back to the pool. */
void kp__batch_unref(struct batch *b);
/* Give the chunks back to the pool and drop the bytes' reference.  Place
 * becomes GONE, unless the batch was abandoned: then its claimant does all
 * this, and the call does nothing.  I/O thread. */
void kp__batch_release_bytes(struct batch *b);
/* The claimant's half of it. */
void kp__batch_release_abandoned(struct batch *b);

#endif
