/* SPDX-License-Identifier: BSD-2-Clause */
/* link.c - the connections of one link.  One thread. */
#include "test/chaos/proxy/link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in address(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET};

    a.sin_port = htons((uint16_t)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static void no_delay(int fd)
{
    int one = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Of this machine, so it connects or fails at once. */
static int connect_to(int port)
{
    struct sockaddr_in a = address(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0) {
        close(fd);
        return -1;
    }
    no_delay(fd);
    return fd;
}

void link_open(struct link *l, int port, int target_port)
{
    struct sockaddr_in a = address(port);
    int one = 1;

    *l = (struct link){.target_port = target_port};
    l->weather[UP].cut = l->weather[DOWN].cut = -1;
    l->listener =
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)setsockopt(l->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(l->listener, (struct sockaddr *)&a, sizeof a) != 0 ||
        listen(l->listener, 128) != 0) {
        perror("proxy");
        exit(2);
    }
}

static void end(int fd, bool reset)
{
    struct linger hard = {1, 0};

    if (fd < 0)
        return;
    if (reset)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
}

static void drop(struct link *l, int i, bool reset)
{
    struct connection *c = l->connections[i];

    end(c->client, reset);
    end(c->broker, reset);
    flow_fini(&c->flows[UP]);
    flow_fini(&c->flows[DOWN]);
    free(c);
    l->connections[i] = l->connections[--l->count];
}

static void accept_one(struct link *l)
{
    int fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC), broker = -1;
    struct connection *c;

    if (fd < 0)
        return;
    if (!l->swallows && !l->refuses)
        broker = connect_to(l->target_port);
    if (l->count == CONNECTIONS_MAX || (broker < 0 && !l->swallows)) {
        end(fd, true);
        end(broker, true);
        return;
    }
    no_delay(fd);
    c = calloc(1, sizeof *c);
    if (c == NULL)
        abort();
    c->client = fd;
    c->broker = broker;
    c->flows[UP].weather = &l->weather[UP];
    c->flows[DOWN].weather = &l->weather[DOWN];
    l->connections[l->count++] = c;
}

static struct pollfd watch(int fd, const struct flow *in,
                           const struct flow *out, int64_t now_ns)
{
    short events = 0;

    if (flow_wants_read(in))
        events |= POLLIN;
    if (flow_wants_write(out, now_ns))
        events |= POLLOUT;
    /* With nothing wanted a hang-up would be told again and again. */
    return (struct pollfd){events != 0 ? fd : -1, events, 0};
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int link_polls(const struct link *l, struct pollfd *polls, int64_t now_ns,
               int64_t *due_ns)
{
    int n = 0;

    polls[n++] = (struct pollfd){l->listener, POLLIN, 0};
    for (int i = 0; i < l->count; i++) {
        const struct connection *c = l->connections[i];
        const struct flow *up = &c->flows[UP], *down = &c->flows[DOWN];

        polls[n++] = watch(c->client, up, down, now_ns);
        polls[n++] = watch(c->broker, down, up, now_ns);
        *due_ns = earlier(*due_ns, flow_due_ns(up, now_ns));
        *due_ns = earlier(*due_ns, flow_due_ns(down, now_ns));
    }
    return n;
}

/* False: the connection is over, *reset tells how. */
static bool move(struct link *l, struct connection *c, int way, int from,
                 int to, short events, int64_t now_ns, bool *reset)
{
    struct flow *f = &c->flows[way];

    if (from >= 0 && flow_wants_read(f) && events != 0)
        flow_read(f, from, now_ns);
    if (to < 0)
        return !f->ended;
    switch (flow_write(f, to, now_ns, &l->weather[way].cut)) {
    case FLOW_OK:
        return true;
    case FLOW_CUT:
    case FLOW_DEAD:
        *reset = true;
        return false;
    }
    return false;
}

static bool serve(struct link *l, struct connection *c,
                  const struct pollfd *polls, int64_t now_ns, bool *reset)
{
    short client = polls[0].revents & (POLLIN | POLLHUP | POLLERR);
    short broker = polls[1].revents & (POLLIN | POLLHUP | POLLERR);

    return move(l, c, UP, c->client, c->broker, client, now_ns, reset) &&
           (c->broker < 0 ||
            move(l, c, DOWN, c->broker, c->client, broker, now_ns, reset)) &&
           !(flow_done(&c->flows[UP]) && flow_done(&c->flows[DOWN]));
}

/* Downwards: a connection that ends is replaced by the last one, which has had
 * its turn. */
void link_turn(struct link *l, const struct pollfd *polls, int64_t now_ns)
{
    int polled = l->count;

    for (int i = polled - 1; i >= 0; i--) {
        bool reset = false;

        if (!serve(l, l->connections[i], polls + 1 + 2 * i, now_ns, &reset))
            drop(l, i, reset);
    }
    if ((polls[0].revents & POLLIN) != 0)
        accept_one(l);
}

void link_end_all(struct link *l, bool reset)
{
    while (l->count > 0)
        drop(l, l->count - 1, reset);
}

void link_restore(struct link *l)
{
    for (int way = UP; way <= DOWN; way++)
        l->weather[way] = (struct weather){.cut = -1};
    l->refuses = l->swallows = false;
    for (int i = l->count - 1; i >= 0; i--)
        if (l->connections[i]->broker < 0)
            drop(l, i, true);
}
