/* SPDX-License-Identifier: BSD-2-Clause */
/* link.h - a listening port, the port behind it, and the connections between
 * them.  127.0.0.1 only. */
#ifndef KP_TEST_CHAOS_LINK_H
#define KP_TEST_CHAOS_LINK_H

#include <poll.h>

#include "test/chaos/proxy/flow.h"

#define CONNECTIONS_MAX 256
#define LINK_POLLS (1 + 2 * CONNECTIONS_MAX)

enum { UP, DOWN }; /* from the client, from the broker */

struct connection {
    int client, broker; /* -1: a black hole has none */
    struct flow flows[2];
};

struct link {
    int listener, target_port;
    struct weather weather[2];
    bool refuses, swallows;
    struct connection *connections[CONNECTIONS_MAX];
    int count;
};

/* Exits with a message if the port is taken. */
void link_open(struct link *l, int port, int target_port);
/* What to poll for, at most LINK_POLLS; returns how many.  *due_ns becomes
 * earlier if something is due by time. */
int link_polls(const struct link *l, struct pollfd *polls, int64_t now_ns,
               int64_t *due_ns);
/* The answer to the same polls. */
void link_turn(struct link *l, const struct pollfd *polls, int64_t now_ns);
/* End every connection; `reset`: by RST. */
void link_end_all(struct link *l, bool reset);
/* Every fault is over; black holes are reset. */
void link_restore(struct link *l);

#endif
