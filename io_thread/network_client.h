/* SPDX-License-Identifier: BSD-2-Clause */
/* network_client.h - brokers, their connections, requests on the wire.
 *
 * I/O thread only.  Knows nothing of records: a request is bytes out, a
 * response is bytes in.  Kafka: NetworkClient, ClusterConnectionStates,
 * InFlightRequests.
 *
 * The steps of a turn that are this file's are separate calls, so that the
 * turn's order stays in one place (io_thread.c).  Callbacks (`done`, events)
 * run inside those steps; they may call kp__client_send and
 * kp__client_connect, nothing that destroys nodes. */
#ifndef KP_IO_NETWORK_CLIENT_H
#define KP_IO_NETWORK_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "io_thread/env.h"
#include "lib/base/heap.h"
#include "lib/base/list.h"
#include "lib/base/log.h"
#include "lib/config/settings.h"
#include "lib/shared/metrics.h"
#include "lib/shared/status.h"
#include "lib/wire/api.h"

struct network_client;
struct node;

/* How a request ended. */
enum request_end {
    REQUEST_ANSWERED,    /* `body` holds the response body */
    REQUEST_SENT,        /* expects no response (acks=0): last byte accepted */
    REQUEST_TIMED_OUT,   /* no answer in time; its connection was closed */
    REQUEST_DISCONNECTED,/* the connection went away after its last byte */
    REQUEST_UNSENT,      /* ... before the transport accepted the last byte: a
                            broker acts on whole frames only */
    REQUEST_UNSUPPORTED  /* the node speaks no version of it that we do */
};

/* One request.  The owner makes it, kp__client_send takes it, `done` gives it
 * back: exactly once, in the order of sending per connection. */
struct request {
    struct list_node link;
    const struct api *api;
    int16_t version;       /* from kp__node_version when it was built */
    int32_t correlation_id;
    bool expects_response;
    struct writer frame;   /* body by the owner, see kp__request_begin */
    size_t total_size, written;
    struct iovec *iov;     /* made by send from frame and splices */
    size_t iov_count, iov_at;
    int64_t timeout_ns;    /* how long an answer may take, from queueing */
    int64_t queued_ns, sent_ns; /* sent_ns 0: not wholly accepted yet */
    struct node *node;
    struct heap_node deadline; /* queued_ns + timeout_ns, and throttling */
    kp_err refused;            /* why send could not take it */
    /* Pieces of a splice's bytes (writer.h): returns how many, at most max;
     * with max 0 how many there are.  NULL if the frame has no splices. */
    size_t (*pieces)(void *owner, struct iovec *out, size_t max);
    /* The end.  `body` only with REQUEST_ANSWERED, positioned after the
     * response header, valid during the call; if it returns with body->failed
     * set, the answer was not one: the connection is dropped (KP_EPROTO).
     * `err` says what happened otherwise (KP_EDISCONNECT, KP_ECONNECT,
     * KP_EPROTO, ...).  Runs in the turn's judging steps (REQUEST_SENT: in
     * kp__client_write).  Frees r if it likes. */
    void (*done)(void *arg, struct request *r, enum request_end end,
                 struct reader *body, kp_err err);
    void *arg;
};

struct request *kp__request_create(const struct api *api, int16_t version);
void kp__request_destroy(struct request *r);
/* Start the frame: 4 bytes for the size and the header go in front; then the
 * owner encodes its body into r->frame. */
void kp__request_begin(struct request *r, const char *client_id);

struct client_events {
    /* A node's connection is ready: versions known, requests may go. */
    void (*node_ready)(void *arg, struct node *n);
    /* A request that blocked the node has ended: it may be able to take more.
     * Also when a throttle ends, and (in kp__client_write) when a socket that
     * took no more takes bytes again. */
    void (*node_can_send)(void *arg, struct node *n);
    /* A connection, or an attempt at one, failed. Its requests have ended
     * before this call.  Not called when we close an idle connection
     * ourselves. */
    void (*node_down)(void *arg, struct node *n, kp_err err);
    void *arg;
};

struct network_client *kp__client_create(const struct settings *s,
                                         const struct io_env *env,
                                         struct logger *log,
                                         struct metrics *metrics,
                                         struct status *status,
                                         const struct client_events *events);
/* Where sockets are watched, and what a finished look-up sets.  Once, before
 * the first step; the client adds and removes its transports, the caller
 * waits. */
void kp__client_attach(struct network_client *c, struct poller *poller,
                       struct wakeup *wakeup);
/* Closes everything; every request ends first (DISCONNECTED or UNSENT).  Before
 * the poller is destroyed. */
void kp__client_destroy(struct network_client *c);
/* In a forked child, instead of kp__client_destroy: closes our copies of the
 * sockets and leaves all else as it is, since the thread that was changing it
 * is not there, and the poller's registrations are the parent's. */
void kp__client_abandon(struct network_client *c);

/* -- nodes -- */
/* The node with this id, made or moved to this address; lives until destroy. */
struct node *kp__client_node(struct network_client *c, int32_t id,
                             const char *host, size_t host_size,
                             int32_t port, const char *rack,
                             size_t rack_size);
struct node *kp__client_find(struct network_client *c, int32_t id);
/* The cluster's id has become known (metadata), for the cluster check. */
void kp__client_set_cluster_id(struct network_client *c, const char *id,
                               size_t size);
/* Brokers not in the newest metadata: drop their connections when they become
 * idle, never choose them. `ids` are those that are in it. */
void kp__client_keep_only(struct network_client *c, const int32_t *ids,
                          size_t count);
/* Forget all but the bootstrap addresses (KIP-899). */
void kp__client_rebootstrap(struct network_client *c);
int32_t kp__node_id(const struct node *n); /* negative: a bootstrap address */
const char *kp__node_rack(const struct node *n); /* "" if unknown */
const char *kp__node_name(const struct node *n); /* "host:port (id 3)" */
struct node_metrics *kp__node_metrics(struct node *n);
/* The sender's own data on a node (its ready list); NULL at first. */
void **kp__node_slot(struct node *n);

/* -- sending -- */
/* Ready, not throttled, fewer than max.in.flight unanswered, and nothing partly
 * written. */
bool kp__client_can_send(const struct network_client *c, const struct node *n,
                         int64_t now_ns);
bool kp__client_is_ready(const struct node *n); /* connected, versions known */
/* Not connected, and nothing is under way that would change that: whoever has
 * something for it must call kp__client_connect. */
bool kp__client_is_idle(const struct node *n);
/* It asked to be left alone until later than now_ns. */
bool kp__client_is_throttled(const struct node *n, int64_t now_ns);
/* Known not to be reachable now: the last attempt failed and none has succeeded
 * since. */
bool kp__client_is_unreachable(const struct node *n);
bool kp__client_any_reachable(const struct network_client *c);
/* Begin to connect unless connected, connecting or backing off; in the last
 * case it is begun when the backoff ends. */
void kp__client_connect(struct network_client *c, struct node *n,
                        int64_t now_ns);
/* The highest version of the API that both sides speak and `cap` allows; -1:
 * none, or not ready. */
int16_t kp__node_version(const struct node *n, int16_t api_key, int16_t cap);
/* Hand over r, whose version fits the node; needs kp__client_can_send. */
void kp__client_send(struct network_client *c, struct node *n,
                     struct request *r, int64_t now_ns);
/* For metadata and producer ids: the best node to ask, as Java's
 * leastLoadedNode; NULL: none can be used now (one may have been begun to
 * connect to: ask again when the client has an event, and after LOOK_AGAIN_NS,
 * as it may be time to try another one). */
struct node *kp__client_least_loaded(struct network_client *c, int64_t now_ns);
#define LOOK_AGAIN_NS KP_NS_PER_SEC
/* No node is ready, connecting, or will be tried without backoff: every known
 * address has failed since the last success (rebootstrap's condition). */
bool kp__client_all_failed(const struct network_client *c);
/* The owner found throttle_time_ms in r's response (any value, 0 too): noted
 * as a metric, and the node takes nothing for that long if this version of
 * the API leaves the waiting to us (KIP-219).  From `done`, with r still
 * valid. */
void kp__client_throttle(struct network_client *c, const struct request *r,
                         int32_t throttle_time_ms);
/* Why the node is not reachable: the last error and a sentence with its name
 * and address.  KP_OK and "": nothing is known against it. */
kp_err kp__node_error(const struct node *n, const char **text);

/* -- the steps of a turn -- */
/* What the poller reported: finish connects, read every socket that has
 * something, end what was answered. Returns how many responses were read. */
uint32_t kp__client_read(struct network_client *c,
                         const struct poll_event *events, size_t count,
                         int64_t now_ns);
/* Request time-outs (oldest first: the whole connection goes), connection
 * set-up time-outs, reconnects that are due, idle closes, ends of throttling,
 * answers of the resolver. */
void kp__client_timers(struct network_client *c, int64_t now_ns);
/* Write what is queued, as far as the sockets take it. Bytes given back by
 * acks=0 requests end here. Returns whether anything was written. */
bool kp__client_write(struct network_client *c, int64_t now_ns);
/* When kp__client_timers next has something to do; KP_NEVER: nothing. */
int64_t kp__client_next_timer(const struct network_client *c);
#ifdef KP_DEBUG
/* After a turn: whatever a node waits for has a timer, an event that the poller
 * was asked for, or a place on a list that the next turn looks at. */
void kp__client_check(const struct network_client *c);
#endif

#endif
