/* SPDX-License-Identifier: BSD-2-Clause */
/* server_net.c - listening sockets, one or two a node.
 *
 * A stopped node keeps its port: the socket stays bound and only stops
 * listening, so that nobody else takes the port meanwhile (not even a client
 * that connects to it and would meet itself). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/broker/internal.h"
#include "test/broker/server.h"

#define BACKLOG 1024

static int bind_v4(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    a.sin_port = htons((uint16_t)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static int bind_v6(int port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6};
    int on = 1;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    a.sin6_port = htons((uint16_t)port);
    a.sin6_addr = in6addr_loopback;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static int port_of(int fd)
{
    struct sockaddr_in a;
    socklen_t size = sizeof(a);

    if (getsockname(fd, (struct sockaddr *)&a, &size) != 0)
        return -1;
    return ntohs(a.sin_port);
}

/* A port that is free now: found by binding any, and bound again by its number,
 * because only a port that was asked for survives the end of listening. */
static int bind_any(int *port)
{
    int fd = bind_v4(0);

    if (fd < 0)
        return -1;
    *port = port_of(fd);
    (void)close(fd);
    return bind_v4(*port);
}

static void listener_init(struct listener *l, int fd, int32_t node_id)
{
    l->watched.kind = WATCHED_LISTENER;
    l->watched.fd = fd;
    l->node_id = node_id;
}

static bool listen_node(struct broker_server *s, int index)
{
    int32_t id = kb_node_id(s->cluster, index);
    int port = s->options.port == 0 ? 0 : s->options.port + index;
    int tries, fd = -1;

    for (tries = 0; fd < 0 && tries < 50; tries++)
        fd = s->options.port == 0 ? bind_any(&port) : bind_v4(port);
    if (fd < 0) {
        s->refused_port = port;
        return false;
    }
    listener_init(&s->listeners[2 * index], fd, id);
    listener_init(&s->listeners[2 * index + 1],
                  s->options.ipv6 ? bind_v6(port) : -1, id);
    kb_node_address(s->cluster, id, s->options.config.host, port);
    return true;
}

bool kb_server_listen(struct broker_server *s)
{
    int i, nodes = kb_node_count(s->cluster);

    s->listeners = kb_alloc(2 * (size_t)nodes * sizeof(s->listeners[0]));
    s->listener_count = 2 * nodes;
    for (i = 0; i < s->listener_count; i++)
        s->listeners[i].watched.fd = -1;
    for (i = 0; i < nodes; i++)
        if (!listen_node(s, i))
            return false;
    kb_server_sync_listeners(s);
    return true;
}

/* Of a listening socket, which hands them on to those it accepts: the window that
 * a client is offered is chosen before that. */
static void set_options(const struct broker_server *s, int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (s->options.receive_buffer > 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &s->options.receive_buffer,
                         sizeof(int));
    if (s->options.send_buffer > 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &s->options.send_buffer,
                         sizeof(int));
}

static void set_listening(struct broker_server *s, struct listener *l, bool on)
{
    struct epoll_event e = {.events = EPOLLIN, .data = {.ptr = &l->watched}};

    l->listening = on;
    if (on) {
        set_options(s, l->watched.fd);
        if (listen(l->watched.fd, BACKLOG) != 0)
            kb_die("a stopped node cannot listen again");
        (void)epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, l->watched.fd, &e);
    } else {
        (void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, l->watched.fd, NULL);
        (void)shutdown(l->watched.fd, SHUT_RD);
    }
}

void kb_server_sync_listeners(struct broker_server *s)
{
    int i;

    for (i = 0; i < s->listener_count; i++) {
        struct listener *l = &s->listeners[i];
        bool up = kb_node_up(s->cluster, l->node_id);

        if (l->watched.fd >= 0 && l->listening != up)
            set_listening(s, l, up);
    }
}

void kb_server_accept(struct broker_server *s, struct listener *l)
{
    int fd;

    while (l->listening && (fd = accept4(l->watched.fd, NULL, NULL,
                                         SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        kb_server_socket_new(s, fd, l->node_id);
    }
}

void kb_server_close_listeners(struct broker_server *s)
{
    int i;

    for (i = 0; i < s->listener_count; i++)
        if (s->listeners[i].watched.fd >= 0)
            (void)close(s->listeners[i].watched.fd);
    kb_free(s->listeners);
    s->listeners = NULL;
    s->listener_count = 0;
}
