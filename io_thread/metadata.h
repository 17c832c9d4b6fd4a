/* SPDX-License-Identifier: BSD-2-Clause */
/* metadata.h - which topics exist, who leads their partitions; when to ask
 * again.
 *
 * I/O thread only.  Sends Metadata requests through the network client, at
 * most one at a time, publishes topics (lib/shared/topics) and tells the
 * sender about leaders.  Kafka: Metadata, ProducerMetadata, NetworkClient's
 * DefaultMetadataUpdater. */
#ifndef KP_IO_METADATA_H
#define KP_IO_METADATA_H

#include "io_thread/network_client.h"
#include "lib/shared/partition_queue.h"
#include "lib/shared/status.h"
#include "lib/shared/topics.h"
#include "lib/wire/api.h"

struct metadata;

struct metadata_events {
    /* A queue's leader is now `leader` (NULL: none) in this leader epoch (-1:
     * unknown).  Called for every new queue and for every change of either. */
    void (*leader)(void *arg, struct partition_queue *q, struct node *leader,
                   int32_t leader_epoch);
    /* Any metadata answer has arrived and been taken in. */
    void (*updated)(void *arg);
    void *arg;
    /* All leaders of a published topic were told; who waits for it is woken next.
     * Or NULL. */
    void (*complete)(void *arg, struct topic *t);
};

struct metadata *kp__metadata_create(const struct settings *s,
                                     struct network_client *client,
                                     struct topics *topics,
                                     struct status *status, struct logger *log,
                                     struct metrics *metrics, uint64_t seed,
                                     const struct metadata_events *events,
                                     int64_t now_ns);
void kp__metadata_destroy(struct metadata *m);

/* A sender asks for this name (OP_WANT_TOPIC). */
void kp__metadata_want(struct metadata *m, const char *topic, size_t size,
                       int64_t now_ns);
/* A confirmed topic is in use now: keeps it in the refresh set. */
void kp__metadata_used(struct metadata *m, struct topic *t, int64_t now_ns);
/* Something showed that what we know is stale (an error, a disconnect, a queue
 * without a leader): ask again as soon as the backoff allows. */
void kp__metadata_stale(struct metadata *m, int64_t now_ns);
/* KIP-951: a Produce response named a newer leader. `endpoint` NULL: none was
 * given.  Ignored unless the epoch is newer than known. */
void kp__metadata_hint(struct metadata *m, struct partition_queue *q,
                       int32_t leader_id, int32_t leader_epoch,
                       const struct node_endpoint *endpoint);
/* `n` says that it does not lead q's partition.  If it is who leads it as far as
 * is known, the epoch of that is given up for an older one as soon as metadata
 * insists on that; which is not asked for here: see kp__metadata_stale. */
void kp__metadata_denied(struct partition_queue *q, const struct node *n);
/* Who leads q's partition as far as is known, and in which epoch; NULL: nobody.
 * */
struct node *kp__metadata_leader(const struct partition_queue *q,
                                 int32_t *epoch);
/* The topic's id, zero if unknown (Produce 13 needs it). */
struct uuid kp__metadata_topic_id(const struct topic *t);
/* By id, for Produce 13 responses; NULL: unknown. */
struct topic *kp__metadata_by_id(const struct metadata *m,
                                 const struct uuid *id);
/* A node may be able to take a request now: the next turn asks for one, even if
 * this one found none. */
void kp__metadata_look_again(struct metadata *m);
/* Send a request if one is due and a node can take it; expire idle topics;
 * rebootstrap if needed. */
void kp__metadata_run(struct metadata *m, int64_t now_ns);
int64_t kp__metadata_next_timer(const struct metadata *m, int64_t now_ns);
#ifdef KP_DEBUG
/* All topics in use are asked about, or will be. */
bool kp__metadata_is_asking(const struct metadata *m);
#endif

#endif
