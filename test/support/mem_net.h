/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_net.h - what networks in memory share: sockets as the poller sees them,
 * and names that are numbers.
 *
 * A network embeds a struct mem_net, and in each connection a struct transport.
 * What becomes of bytes are its own transport_ops; it says when a socket is
 * ready, and takes poller and resolver from here.  Sockets stay until the
 * network frees them: whatever uses a closed one is told so.  One thread. */
#ifndef KP_TEST_SUPPORT_MEM_NET_H
#define KP_TEST_SUPPORT_MEM_NET_H

#include "io_thread/env.h"

struct mem_net;

/* A client's socket. */
struct transport {
    struct mem_net *net;
    struct transport *next; /* connected after it */
    bool closed;            /* by the client */
    /* the poller's */
    bool watched;
    uint32_t want;
    void *owner;
};

struct mem_net {
    struct transport *first, **end; /* all that ever were */
    uint32_t (*ready)(const struct transport *t);
    int64_t sleeps_until_ns; /* as the poller was asked last */
    bool paused;             /* until then the poller is not used */
    int failing_waits, failing_changes; /* so many more */
    struct poller_ops poller;
    struct resolver_ops resolver;
};

/* ready: the events of a watched socket, those that it wants or errors. */
void mem_net_init(struct mem_net *net,
                  uint32_t (*ready)(const struct transport *t));
/* A socket, zeroed, begins to connect. */
void mem_net_add(struct mem_net *net, struct transport *t);
/* The poller would not sleep. */
bool mem_net_has_events(const struct mem_net *net);
/* An IPv4 or IPv6 number; false: host is none. */
bool mem_net_address(const char *host, uint16_t port, struct address *out);

/* -- for transport_ops -- */
/* Aborts if the client has closed it. */
void mem_net_check_open(const struct transport *t);
/* The client closes it: once, and after it was removed from the poller. */
void mem_net_close(struct transport *t);
int mem_net_fd(const struct transport *t);

#endif
