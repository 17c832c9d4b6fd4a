/* SPDX-License-Identifier: BSD-2-Clause */
/* client_rig.h - a network client on a fake network, one turn at a time.
 *
 *     struct rig r;
 *     rig_init(&r, "10.0.0.1:9092");
 *     struct node *n = rig_connect(&r, "10.0.0.1", 9092);
 *     ...
 *     rig_fini(&r);
 */
#ifndef KP_TEST_SUPPORT_CLIENT_RIG_H
#define KP_TEST_SUPPORT_CLIENT_RIG_H

#include "io_thread/client.h"
#include "test/support/fake_net.h"

#define RIG_LOG_MAX 64

struct rig {
    struct fake_net *net;
    struct io_env env;
    struct settings settings;
    struct host_port bootstrap[8];
    char hosts[8][64];
    struct status status;
    struct metrics *metrics;
    struct logger *log;
    struct wakeup wakeup;
    struct poller *poller;
    struct network_client *client;
    int64_t deadline_ns; /* of the last turn's sleep */
    bool wrote;          /* in the last turn */
    /* what the client said */
    uint32_t ready, can_send, down;
    struct node *last_down;
    kp_err down_err;
    void (*on_down)(struct rig *r, struct node *n); /* or NULL */
    char log_text[32][512]; /* the newest lines */
    size_t log_count;
};

/* `bootstrap`: host:port, blanks between. Java's defaults, except where a test
 * sets r->settings before the first turn. */
void rig_init(struct rig *r, const char *bootstrap);
void rig_fini(struct rig *r);
/* One turn at the network's time: events, read, timers, write. */
void rig_turn(struct rig *r);
/* Turns, with the time going on to each next timer, for so long. */
void rig_run(struct rig *r, int64_t ns);
/* The i-th bootstrap node, connected and through its handshake. */
struct node *rig_bootstrap_node(struct rig *r, size_t i);
struct node *rig_connect(struct rig *r, const char *host, uint16_t port);
/* Answer the handshake on this connection, if it is asked. */
bool rig_shake(struct rig *r, struct fake_conn *c);
/* Does a line with this text stand in the log? */
bool rig_logged(const struct rig *r, const char *text);

/* A request that notes how it ended. */
struct probe {
    struct request *request; /* NULL when it has ended */
    uint32_t ends;
    enum request_end end;
    kp_err err;
    int order; /* of all probes' ends */
    struct metadata_response answer;
    struct arena arena;
    bool decode; /* the answer, as Metadata */
    const char *splice; /* bytes of a splice, or NULL */
};
extern int probe_order;
/* A Metadata request without topics, ready to be sent. */
void probe_init(struct probe *p, struct rig *r, struct node *n);
void probe_send(struct probe *p, struct rig *r, struct node *n);
void probe_fini(struct probe *p);

#endif
