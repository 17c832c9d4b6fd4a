/* SPDX-License-Identifier: BSD-2-Clause */
/* broker.h - the model on real sockets: one thread, epoll, any number of nodes.
 *
 * For unit tests (in process) and for the program kp-broker.  The model is
 * guarded by one mutex; the thread holds it while it works and gives it back
 * while it sleeps. */
#ifndef KP_BROKER_BROKER_H
#define KP_BROKER_BROKER_H

#include "test/broker/model.h"

struct broker_server;

struct broker_options {
    struct kb_config config;
    int port;           /* of the first node, the others follow; 0: any */
    bool ipv6;          /* listen on ::1 too, where there is IPv6 */
    int receive_buffer; /* SO_RCVBUF of accepted sockets; 0: the system's */
    int send_buffer;
};
void kp_broker_defaults(struct broker_options *o);

/* o NULL: defaults (one node, topics made when asked for).  NULL: it could not
 * be started; errno says why. */
struct broker_server *kp_broker_start(const struct broker_options *o);
/* The same in words, with the address that was not to be had, and the remedy;
 * of the last start that this thread tried. */
const char *kp_broker_start_error(void);
/* "127.0.0.1:1234,127.0.0.1:1235", good until kp_broker_stop. */
const char *kp_broker_bootstrap(const struct broker_server *s);
int kp_broker_port(const struct broker_server *s, int32_t node_id);
/* Between these two the model is the caller's, at time kb_now_ns (which is
 * brought up to date).  The thread looks at what was changed on unlock. */
struct kb_cluster *kp_broker_lock(struct broker_server *s);
void kp_broker_unlock(struct broker_server *s);
void kp_broker_with(struct broker_server *s,
                    void (*fn)(struct kb_cluster *c, void *arg), void *arg);
/* Wait until fn(c, arg) is true; looked at after every turn of the thread.
 * False: not within timeout_ms. */
bool kp_broker_wait(struct broker_server *s,
                    bool (*fn)(struct kb_cluster *c, void *arg), void *arg,
                    int64_t timeout_ms);
/* Shorthands that lock. */
int16_t kp_broker_create_topic(struct broker_server *s, const char *name,
                               int32_t partitions, int32_t replication);
void kp_broker_stop_node(struct broker_server *s, int32_t node_id);
void kp_broker_start_node(struct broker_server *s, int32_t node_id);
int kp_broker_add_rule(struct broker_server *s, const char *line); /* -1: bad */
/* Ends the thread, all sockets and the model. */
void kp_broker_stop(struct broker_server *s);

#endif
