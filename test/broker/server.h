/* SPDX-License-Identifier: BSD-2-Clause */
/* server.h - the shell's own structures. */
#ifndef KP_BROKER_SERVER_H
#define KP_BROKER_SERVER_H

#include <pthread.h>

#include "lib/base/list.h"
#include "lib/wire/frame.h"
#include "test/broker/broker.h"
#include "test/broker/skim.h"

#define SCRATCH_SIZE (128 * 1024)

enum watched_kind { WATCHED_WAKE, WATCHED_LISTENER, WATCHED_SOCKET };

/* What an epoll event points to. */
struct watched {
    enum watched_kind kind;
    int fd;
};

struct listener {
    struct watched watched;
    int32_t node_id;
    bool listening;
};

struct client_socket {
    struct watched watched;
    struct list_node in_server;
    struct broker_server *server;
    struct kb_conn *conn; /* NULL: closed, waiting to be freed */
    bool discard;
    struct frame_reader frames;
    struct kb_skim skim;
    uint8_t *rest; /* bytes skim has not used yet, before what is read next */
    size_t rest_size;
    size_t last_skip; /* of the last batch body: how to read next */
    size_t written;   /* of the first output */
    bool want_read, want_write, half_closed;
};

struct broker_server {
    struct broker_options options;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t turned;
    pthread_t thread;
    bool stopping;
    struct kb_cluster *cluster;
    int64_t origin_ns; /* of the model's time */
    int epoll_fd;
    struct watched wake;
    struct listener *listeners; /* two a node: IPv4, IPv6 (fd -1: none) */
    int listener_count;
    struct list sockets, closed;
    uint8_t *scratch; /* SCRATCH_SIZE bytes to read into */
    char *bootstrap;
    int refused_port; /* that a start wanted and did not get; 0: none */
};

int64_t kb_server_now(const struct broker_server *s);
/* Everything that is due: time, listeners, output.  Lock held. */
void kb_server_settle(struct broker_server *s);

/* server_net.c */
bool kb_server_listen(struct broker_server *s);
void kb_server_sync_listeners(struct broker_server *s);
void kb_server_accept(struct broker_server *s, struct listener *l);
void kb_server_close_listeners(struct broker_server *s);

/* server_socket.c */
void kb_server_socket_new(struct broker_server *s, int fd, int32_t node_id);
void kb_server_socket_event(struct client_socket *k, uint32_t events);
void kb_server_socket_flush(struct client_socket *k);
void kb_server_socket_close(struct client_socket *k, bool reset);
void kb_server_free_closed(struct broker_server *s);

#endif
