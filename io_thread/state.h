/* SPDX-License-Identifier: BSD-2-Clause */
/* state.h - the I/O thread's own state: nobody else reads or writes any of it.
 *
 * Three things: the thread (struct io_thread), what it knows of a partition
 * (struct sender_partition) and of a broker (struct sender_node). */
#ifndef KP_IO_STATE_H
#define KP_IO_STATE_H

#include "io_thread/env.h"
#include "io_thread/ledger.h"
#include "io_thread/metadata.h"
#include "io_thread/network_client.h"
#include "lib/base/heap.h"
#include "lib/base/mem.h"
#include "lib/base/rand.h"
#include "lib/shared/producer.h"

/* Where a partition stands.  Each is one list, for one reason, and every reason
 * has an edge that calls kp__plan again when it ends. */
enum standing {
    STANDS_IDLE,        /* nothing queued; edge: the drain list */
    STANDS_BUSY,        /* its lock was taken; edge: the end of the turn */
    STANDS_LINGERING,   /* edge: timer, drain list, flush, pressure */
    STANDS_BACKING_OFF, /* a retry; edge: timer, new leader */
    STANDS_NO_LEADER,   /* edge: metadata */
    STANDS_NO_ID,       /* no producer id yet; edge: its arrival */
    STANDS_IN_FLIGHT,   /* as much on the wire as is allowed, or a bump draining;
                           edge: an answer, or the death of a connection */
    STANDS_COMPRESSING, /* the head is claimed; edge: the drain list */
    STANDS_SEALED,      /* the head waits for our own compressor; edge: each turn */
    STANDS_READY,       /* on its node's list; edge: the node can send */
    STANDING_COUNT
};

struct sender_node {
    struct node *node;
    struct sender_node *next;   /* io->nodes */
    struct list ready;          /* sender_partition.link, in arrival order */
    struct list_node link;      /* io->nodes_with_data while ready is not empty */
    struct list led;            /* sender_partition.led_link: partitions it leads */
    bool unreachable;
    int64_t ready_since_ns;     /* data waits for it, and nothing was sent or
                                   answered since; 0: none */
    struct log_limit strange, unreadable; /* answers of it */
};

struct sender_partition {
    struct partition_queue *queue;
    struct io_thread *io;
    struct sender_node *leader; /* or NULL */
    int32_t leader_epoch;
    uint32_t leader_term; /* raised with each new leader, or epoch of one */
    struct list_node led_link;

    enum standing standing;
    struct list_node link;          /* of the list that `standing` names */
    struct heap_node timer;         /* lingering or backing off */
    struct heap_node deadline;      /* not later than the earliest deadline, or
                                       than the open batch becomes old */
    struct list_node active_link;   /* io->active while anything is unreported */
    struct list order;              /* batch.order_link: unreported, by ordinal */
    struct list_node report_link;   /* io->to_report */
    uint32_t unreported;
    uint32_t on_wire;               /* batches in flight */
    uint32_t backlog;               /* batches queued when last looked at */
    int64_t backoff_until_ns;
    bool held;                      /* the head backs off, though no attempt of it
                                       counts */
    uint32_t failures;              /* in a row: for the backoff */
    int64_t next_offset;            /* what is sent now is stored at or past it */
    struct topic_metrics *metrics;
    struct log_limit losses, doubles;

    struct ledger ledger; /* idempotence: identities and what became of them */
};

/* Batches that are taken for the request at hand.  See produce_request.c. */
struct taken {
    struct batch **batches;
    size_t count, capacity;
    size_t size; /* of them all, with their headers */
};

/* The batch that is cut in pieces: one at a time.  See split.c. */
struct split {
    uint8_t *raw;        /* its records, of which children are ranges */
    uint8_t *packed;     /* children compressed, at the same offsets */
    size_t size;         /* of each area */
    uint32_t children;   /* that stand there */
    bool freed;          /* this turn: who waits to be cut may try again */
    struct list on_wire; /* children in flight, by order_link */
};

#define FLUSH_EPOCHS 64

struct io_thread {
    struct kp_producer *p;
    const struct settings *settings;
    struct io_env env;
    struct rng rng;
    pthread_t thread;
    bool threaded;
    bool forked; /* in a callback, and this is the child: with it the child ends */
    int64_t now_ns; /* of this turn */

    struct network_client *client;
    struct metadata *metadata;
    struct poller *poller;
    struct poll_event events[64];
    size_t event_count;
    bool poller_broken; /* it failed when we last slept */

    /* planning */
    struct list standing[STANDING_COUNT]; /* all but READY, which is per node */
    struct list nodes_with_data;
    struct sender_node *nodes; /* all there are */
    struct list active;
    struct heap timers;    /* sender_partition.timer */
    struct heap lingers;   /* the same, of those that linger */
    int64_t linger_less_ns; /* while others go, by so much */
    struct heap deadlines; /* sender_partition.deadline */
    bool progressed;       /* this turn did something and more may be possible */

    /* building produce requests */
    struct arena scratch;
    struct taken taken;
    struct arena answers; /* decoded responses */

    /* producer id */
    int64_t producer_id; /* -1: none */
    int16_t producer_epoch;
    bool id_requested, id_wanted;
    bool id_no_node; /* it was due, and no node, or no memory, was there */
    int64_t id_retry_at_ns;
    uint32_t id_failures;

    struct split split;

    /* reports */
    struct list done;        /* batches (link) with an outcome, not yet public */
    struct list to_report;   /* partitions with something to report */

    /* flush: epoch e holds the batches registered in it and not yet reported */
    uint64_t flush_epoch, flush_first;
    bool epoch_shared; /* the newest has to end, when there is room for a next */
    uint64_t flush_pending[FLUSH_EPOCHS];
    struct op *flushes; /* waiting, oldest first, by pending_next */

    /* close */
    struct op *closes;
    bool closing, forced;
    uint64_t left_over; /* records that failed with KP_ECLOSED */
    int64_t close_at_ns;
    int64_t relieve_at_ns; /* see relieve in io_thread.c; KP_NEVER: not */
    bool finished; /* everything is reported: the thread ends */

    /* the cause to report when a batch never got away */
    kp_err last_network_err;

    /* where unkeyed records should go */
    struct list to_weigh; /* topics (weigh_link) whose weights are out of date */
    int64_t weights_at_ns; /* not before */
};

/* Where the timer of a partition that stands so is.  Lingers are apart, so that
 * the oldest can be had: a head that stood elsewhere meanwhile may be older than
 * all that linger already. */
static inline struct heap *kp__times_of(struct io_thread *io,
                                        enum standing where)
{
    return where == STANDS_LINGERING ? &io->lingers : &io->timers;
}

#endif
