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
 * BATCH_MAX_CQS the completion queue reports.posts[target - 1]; else a
 * kp_delivery_fn (functions may stand at odd addresses, but not at these). */
struct report_slot {
    uintptr_t target;
    void *tag;
};
/* They begin at record slots_from of the batch, in pages: each a chunk, full
 * unless it is the last one. */
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

/* Who is to hear of a batch's records.  Senders under the queue's lock while it
 * is OPEN; from then on the I/O thread, and after the last report the queues
 * that it was posted to. */
struct batch_reports {
    /* with each record */
    struct report_slot *slot, *slot_limit; /* the next one in the last page; once
                                              sealed the pages say what they hold */
    uint32_t future_refs; /* futures taken, plain, until sealed */
    uint32_t unwatched;   /* records without future, callback or queue */

    /* at times */
    struct chunk *slots, *last_slots; /* pages, if any record needs a slot */
    uint32_t slots_from; /* record index of the first slot */
    bool disowned;       /* the queue may be gone: see kp__batch_disown */
    bool future_and_callback; /* of one record: the callback comes first */
    struct cq_post posts[BATCH_MAX_CQS];
    uint32_t post_count;
};

/* Of a batch that was cut in two (the origin), and of what it was cut into (its
 * children): io_thread/split.c.  I/O thread only. */
struct batch_split {
    /* of a child */
    struct batch *origin; /* whose result and slots; NULL: this is no child */
    const uint8_t *body;  /* as it is sent: not in chunks */
    size_t offset;        /* of its raw records in the memory for splits */
    /* of an origin */
    uint32_t children; /* without an outcome */
    bool lost;         /* there was no memory for the outcome of one */
};

#define BATCH_ALIGN 64

/* What an append needs of a batch stands first and takes one line of the cache,
 * as with keys the batches of hundreds of partitions take turns. */
struct batch {
    /* the records: place says whose */
    struct batch_result *result; /* fixed at birth */
    size_t raw_size;             /* of the records, uncompressed */
    int64_t base_timestamp_ms, max_timestamp_ms;
    uint32_t record_count;
    uint32_t max_record_size;

    struct batch_reports reports;

    /* fixed at birth */
    struct partition_queue *queue;
    struct buffer_pool *pool; /* counted: slots may outlive the producer */
    struct batch *pool_next;  /* the pool's, while it is free */
    uint32_t charge;          /* what the structures count against the pool */
    uint64_t ordinal; /* in its queue; children of a split keep the origin's */
    int64_t created_ns, deadline_ns;

    /* where it stands: guarded by the queue's lock while in the queue, else the
     * I/O thread's */
    struct list_node link; /* queue->batches */
    struct list_node sealed_link; /* queue->sealed, while SEALED there */
    enum batch_place place;
    enum batch_fate fate;
    size_t ready_size; /* wire_size, copied under the lock when READY: wire_size
                          itself is the claimant's while it compresses */
    bool abandoned; /* completed while COMPRESSING: the claimant gives the bytes
                       back, and the place says so no more */

    /* the body: place says whose */
    struct chunk *chunks, *last_chunk;
    uint32_t first_index; /* in the result: 0 but for children of a split */
    size_t wire_size;     /* of the body as it is sent; from READY on */
    uint32_t body_crc;    /* of the body as it is sent; from READY on */
    enum codec_id codec;  /* as it is sent */

    /* from the first look on: I/O thread only */
    bool registered; /* in the line of reports, and in a flush epoch */
    struct list_node order_link; /* sender_partition.order; of a child on a wire
                                    split.on_wire */
    uint64_t flush_epoch;

    /* its attempts: I/O thread only */
    uint32_t attempts;
    uint32_t corrupt; /* of them, answered with CORRUPT_MESSAGE */
    uint32_t leader_term; /* the partition's, at the last attempt */
    enum certainty certainty; /* that it is stored, after all of them */
    kp_err last_err; /* of the last attempt: the cause of a later failure */

    /* its identity, as last stamped: I/O thread only */
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence; /* -1: not stamped */
    bool renumbered; /* its numbers were refused, and it got others */
    uint8_t header[RECORD_BATCH_HEADER_SIZE];

    struct batch_split split;

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
    return b->reports.slot != b->reports.slot_limit;
}
/* A page of slots more, for the records from here on; under the lock. */
void kp__batch_add_slots(struct batch *b, struct chunk *page);
/* No more slots are added: the last page says how many it holds. */
void kp__batch_end_slots(struct batch *b);
/* The slot of the record that is being added; needs room.  Under the lock. */
void kp__batch_put_slot(struct batch *b, const kp_record *r);
/* The same for a record whose target is known: its callback. */
static inline void kp__batch_put_target(struct batch *b, uintptr_t target,
                                        void *tag)
{
    *b->reports.slot++ = (struct report_slot){target, tag};
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
