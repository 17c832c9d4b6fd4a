/* SPDX-License-Identifier: BSD-2-Clause */
/* client.h - the insides of the network client: nodes, connections, requests.
 * Only the client's own files and metadata include it.  I/O thread only.
 *
 *   network_client.c  create, destroy, the steps of a turn
 *   node.c            nodes and where they are
 *   choose.c          which node to ask; who can be reached
 *   addresses.c       look-ups, one address after another
 *   connection.c      states, attempts, ends of connections
 *   stream.c          bytes in and out
 *   in_flight.c       requests: deadlines, answers, ends
 *   handshake.c       ApiVersions
 *   request.c         frames */
#ifndef KP_IO_CLIENT_H
#define KP_IO_CLIENT_H

#include "io_thread/network_client.h"
#include "lib/base/map.h"
#include "lib/base/rand.h"
#include "lib/base/system_error.h"
#include "lib/wire/frame.h"

#define FRAME_MAX (100 * 1024 * 1024)       /* of an answer */
#define HANDSHAKE_FRAME_MAX (1024 * 1024)   /* before the peer is known */
#define READ_BURST (1024 * 1024)            /* bytes a socket and turn */
#define WRITE_BURST (4 * 1024 * 1024)
#define IOV_BATCH 1024                      /* Linux's IOV_MAX */
#define NODES_MAX 20000
#define RACK_SIZE_MAX 255
#define LOOKUPS_MAX 16 /* at a time: each is a thread */
#define LOG_INTERVAL_NS (10 * KP_NS_PER_SEC)
/* A connection that is not there after so long: ask another node as well. */
#define SECOND_TRY_NS KP_NS_PER_SEC

enum connection_state {
    CONNECTION_NONE,
    CONNECTION_RESOLVING,  /* its name is looked up */
    CONNECTION_CONNECTING, /* a socket, not yet connected */
    CONNECTION_HANDSHAKE,  /* ApiVersions is on its way */
    CONNECTION_READY
};

#define SYSTEM_TEXT_SIZE 128 /* for the words of an errno value */

/* Why a connection is to end.  A callback may find that out in the middle of
 * reading, so the end itself comes in kp__client_timers:
 *
 *   found out                       doom     what is done then
 *   not in the newest metadata      LEAVE    closed as soon as no request is on
 *                                            it, unless it is named again
 *   has another address now         MOVED    closed
 *   no more can be written to it    BROKEN   what the peer has said is read,
 *                                            then it is lost
 *
 * A doom gives way to a later one of this list only.  BROKEN goes with the
 * socket, the others with the whole attempt, whatever ends them.  Meanwhile
 * nothing new is sent. */
enum doom { DOOM_NONE, DOOM_LEAVE, DOOM_MOVED, DOOM_BROKEN };

/* How a connection's socket takes what is queued.
 *
 *   FREE --takes a part--> BLOCKED --POLL_WRITE--> DRAINING --takes all--> FREE
 *                             ^------takes a part------'
 *   from each of them: BROKEN, with DOOM_BROKEN
 *
 * Only while it is FREE more may be sent: so what is queued behind a request
 * that the socket does not take stays small. */
enum writing {
    WRITING_FREE,
    WRITING_BLOCKED,  /* the poller is asked when it takes more */
    WRITING_DRAINING, /* it takes more: the rest of what was held up */
    WRITING_BROKEN
};

struct version_range {
    int16_t min, max; /* what both speak; max < 0: nothing */
    int16_t broker_min, broker_max;
};

struct node {
    /* fixed at birth */
    struct network_client *client;
    int32_t id;
    struct node_metrics *metrics;
    size_t index; /* in client->nodes */

    /* where it is */
    char *host, *rack, *name;
    uint16_t port;
    bool listed;   /* may be chosen: in the newest metadata, or bootstrap */
    bool seed;     /* a bootstrap address of the settings */
    bool expanded; /* a seed that its canonical names stand for now */
    void *slot;    /* the sender's */
    uint32_t metadata_serial; /* of the last answer that named it */

    /* its addresses */
    struct resolve *resolve; /* NULL while RESOLVING: waits for its turn */
    struct address *addresses;
    size_t address_count, address_at;
    size_t addresses_left; /* not tried yet in this attempt */
    struct address current;
    bool skip_current; /* was connected to it, and lost it: try another first */

    /* its connection */
    enum connection_state state;
    enum doom doom;
    struct transport *transport;
    uint32_t watched; /* POLL_READ, POLL_WRITE: what the poller was told */
    struct frame_reader frames;
    struct list queue;     /* requests not wholly written, oldest first */
    struct list in_flight; /* wholly written, no answer yet */
    uint32_t request_count;
    uint32_t aside_count;  /* requests in client->refused */
    enum writing writing;
    int write_errno;       /* of a BROKEN one */
    uint32_t generation;   /* of the connection: raised at each end of one */
    struct list_node write_link;   /* client->writable */
    struct list_node doom_link;    /* client->doomed */
    struct list_node resolve_link; /* client->resolving */
    int16_t handshake_version;
    bool handshake_plain;   /* begin with version 0: the last was cut off */
    bool handshake_refused; /* the reason stands in `error` */

    /* attempts */
    uint32_t failures;       /* ends in a row without a handshake done */
    uint32_t setup_failures; /* attempts in a row that did not get there */
    int64_t attempt_ns, next_attempt_ns, setup_deadline_ns;
    int64_t throttled_until_ns;
    int64_t used_ns; /* last byte in or out */
    bool wanted;     /* somebody waits for the end of the backoff */
    bool was_ready;  /* once, at this address or another */
    bool unreachable;
    struct heap_node timer; /* client->timers */

    /* what stands against it */
    kp_err error;
    char error_text[300];
    struct log_limit limit;

    struct version_range versions[]; /* by place in kp__apis */
};

struct network_client {
    /* fixed at birth */
    const struct settings *settings;
    struct io_env env;
    struct logger *log;
    struct metrics *metrics;
    struct status *status;
    struct client_events events;
    struct poller *poller;
    struct wakeup *wakeup;

    struct rng rng;
    int64_t now_ns; /* of the step that runs, or the last */
    struct node **nodes;
    size_t node_count, node_capacity;
    struct map by_id;
    int32_t next_bootstrap_id;
    bool bootstrapping;   /* only the bootstrap addresses may be chosen */
    bool had_metadata;    /* some broker has been reached and listed others */
    bool misrouted;       /* a handshake was answered REBOOTSTRAP_REQUIRED */
    bool status_set;      /* a cluster status stands */
    char *cluster_id;
    struct log_limit cluster_limit;
    int32_t next_correlation;
    uint32_t request_count, connections;
    uint32_t shown_requests, shown_connections; /* in the metrics */

    struct heap timers;    /* node.timer */
    struct heap deadlines; /* request.deadline */
    struct list writable;  /* nodes with something to write, not blocked */
    struct list doomed;
    struct list resolving; /* whose look-up runs or waits for its turn */
    uint32_t lookups;      /* that run */
    struct list refused;   /* requests that send could not take */
    struct log_limit full_limit, moved_limit;
    struct iovec scratch[IOV_BATCH];
};

/* -- node.c -- */
/* A bootstrap address, with a negative id of its own.  NULL: no memory. */
struct node *kp__node_bootstrap(struct network_client *c, const char *host,
                                uint16_t port);
void kp__node_free(struct node *n);
/* It may be chosen (again).  One that was to leave stays: requests may go at
 * once, and not when those on it have ended. */
void kp__node_list(struct node *n);
void kp__node_fail_text(struct node *n, kp_err err, const char *fmt, ...)
    KP_PRINTF(3, 4);
/* Where the ranges of this API stand in n->versions; -1: not one of ours. */
int kp__api_place(int16_t api_key);

/* -- addresses.c -- */
/* Find the addresses of a node that begins an attempt; then the state is
 * RESOLVING, or the first connect is under way, or the attempt has failed. */
void kp__addresses_find(struct node *n);
/* Look-ups that are done. */
void kp__addresses_poll(struct network_client *c);
/* The look-up has taken too long. */
void kp__addresses_late(struct node *n);
/* Give up a look-up, if there is one. */
void kp__addresses_cancel(struct node *n);
/* Connect to the next address, or fail the attempt if none is left. */
void kp__addresses_next(struct node *n);

/* -- connection.c -- */
void kp__connection_move(struct node *n, enum connection_state to);
/* Begin an attempt; the state is NONE. */
void kp__connection_begin(struct node *n);
/* The socket is connected: shake hands. */
void kp__connection_up(struct node *n);
/* The handshake is done. */
void kp__connection_ready(struct node *n);
/* It is of no use any more, and the reason stands in n->error: end its requests
 * (those wholly written with `end`), then try the next address if it was not
 * ready yet, else the node is down. */
void kp__connection_lost(struct node *n, enum request_end end);
/* The attempt has failed at every address. */
void kp__connection_failed(struct node *n);
/* End it without anybody's fault: idle, moved, no longer listed, destroyed. */
void kp__connection_close(struct node *n);
void kp__connection_doom(struct node *n, enum doom doom);
/* Nothing more can be written to it, and this is why. */
void kp__connection_broken(struct node *n, int sys_errno);
/* A request has ended: one that is to leave may go, if it was the last. */
void kp__connection_may_leave(struct node *n);
void kp__connection_serve_doomed(struct network_client *c, uint32_t *answers);
/* Set the node's timer to what comes first. */
void kp__connection_arm(struct node *n);
/* The node's timer has rung. */
void kp__connection_timer(struct node *n);
static inline bool kp__connection_is_up(const struct node *n)
{
    return n->state == CONNECTION_HANDSHAKE || n->state == CONNECTION_READY;
}
/* When a set-up step that begins now has taken too long. */
int64_t kp__connection_setup_deadline(struct node *n);

/* -- choose.c -- */
/* Say whether any broker can be reached, if that has changed. */
void kp__choose_status(struct network_client *c, const struct node *failed);
/* The list of brokers is new. */
void kp__choose_look_again(struct network_client *c);
/* Every broker was reached last, and speaks no versions that we do. */
bool kp__choose_all_too_old(const struct network_client *c);

/* -- stream.c -- */
/* What the poller said of a node's socket.  `answers` is added to. */
void kp__stream_event(struct node *n, uint32_t events, uint32_t *answers);
/* Read and judge until there is nothing more, READ_BURST, or the end. */
void kp__stream_read(struct node *n, uint32_t *answers);
/* Write until there is nothing more, WRITE_BURST, or the socket is full.
 * Returns whether a byte left. */
bool kp__stream_write(struct node *n);
/* There is something to write. */
void kp__stream_wake(struct node *n);
/* Tell the poller what to watch. */
void kp__stream_watch(struct node *n, uint32_t want);

/* -- in_flight.c -- */
void kp__requests_add(struct node *n, struct request *r);
/* The transport has taken the last byte of the first queued request. */
void kp__requests_sent(struct node *n, struct request *r);
/* A whole frame has come.  False: it is no answer to what we asked (the reason
 * stands in n->error). */
bool kp__requests_answer(struct node *n, const uint8_t *data, size_t size);
/* End all, oldest first: wholly written ones with `end`, others UNSENT. */
void kp__requests_end_all(struct node *n, enum request_end end, kp_err err);
/* Give them more time. */
void kp__requests_extend(struct node *n, int64_t by_ns);
/* Requests without an answer in time. */
void kp__requests_expire(struct network_client *c, uint32_t *answers);
void kp__requests_serve_refused(struct network_client *c);

/* -- handshake.c -- */
void kp__handshake_begin(struct node *n);
/* The connection is lost in the middle of it. */
void kp__handshake_cut(struct node *n);

/* -- request.c -- */
/* Fill in size and correlation id, collect the pieces.  KP_OK, KP_ENOMEM. */
kp_err kp__request_seal(struct request *r, int32_t correlation_id);
int32_t kp__client_next_correlation(struct network_client *c);

#endif
