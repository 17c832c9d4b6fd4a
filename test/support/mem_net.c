/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_net.c - what networks in memory share.  One thread.
 *
 * Invariant: the client adds, changes and removes each socket in an order that
 * a real poller would take, and closes each once. */
#include "test/support/mem_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct poller {
    struct mem_net *net;
    struct wakeup *wakeup;
};

struct resolve {
    struct address address;
    char text[128];
    bool found;
};

static void *must(void *p)
{
    if (p == NULL)
        abort();
    return p;
}

/* -- sockets -- */

void mem_net_add(struct mem_net *net, struct transport *t)
{
    t->net = net;
    *net->end = t;
    net->end = &t->next;
}

void mem_net_check_open(const struct transport *t)
{
    if (t->closed)
        abort();
}

void mem_net_close(struct transport *t)
{
    if (t->closed || t->watched)
        abort(); /* closed twice, or still in the poller */
    t->closed = true;
}

int mem_net_fd(const struct transport *t)
{
    (void)t;
    return -1;
}

/* -- the poller -- */

static struct poller *p_create(void *arg, struct wakeup *wakeup)
{
    struct poller *p = must(calloc(1, sizeof(*p)));

    p->net = arg;
    p->wakeup = wakeup;
    return p;
}

static void p_destroy(struct poller *p)
{
    free(p);
}

static int p_add(struct poller *p, struct transport *t,
                 const struct transport_ops *ops, uint32_t want, void *owner)
{
    (void)p;
    (void)ops;
    if (t->watched || t->closed)
        abort();
    t->watched = true;
    t->want = want;
    t->owner = owner;
    return 0;
}

static int p_change(struct poller *p, struct transport *t,
                    const struct transport_ops *ops, uint32_t want, void *owner)
{
    (void)ops;
    if (!t->watched)
        abort();
    if (p->net->failing_changes > 0) {
        p->net->failing_changes--;
        return ENOMEM;
    }
    t->want = want;
    t->owner = owner;
    return 0;
}

static void p_remove(struct poller *p, struct transport *t,
                     const struct transport_ops *ops)
{
    (void)p;
    (void)ops;
    if (!t->watched)
        abort();
    t->watched = false;
}

static uint32_t events_of(const struct mem_net *net, const struct transport *t)
{
    return t->watched ? net->ready(t) : 0;
}

static int p_wait(struct poller *p, int64_t now_ns, int64_t deadline_ns,
                  struct poll_event *out, int max)
{
    struct mem_net *net = p->net;
    int n = 0;

    (void)now_ns;
    net->sleeps_until_ns = deadline_ns;
    net->paused = false;
    if (net->failing_waits > 0) {
        net->failing_waits--;
        return -1;
    }
    if (p->wakeup != NULL)
        kp__wakeup_clear(p->wakeup);
    for (struct transport *t = net->first; t != NULL && n < max; t = t->next) {
        uint32_t events = events_of(net, t);

        if (events == 0)
            continue;
        out[n].owner = t->owner;
        out[n++].events = events;
    }
    return n;
}

static void p_pause(struct poller *p, int64_t until_ns)
{
    p->net->sleeps_until_ns = until_ns;
    p->net->paused = true;
}

bool mem_net_has_events(const struct mem_net *net)
{
    if (net->failing_waits > 0)
        return !net->paused; /* it fails at once */
    for (const struct transport *t = net->first; t != NULL; t = t->next)
        if (events_of(net, t) != 0)
            return true;
    return false;
}

/* -- names: numbers only -- */

bool mem_net_address(const char *host, uint16_t port, struct address *out)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons(port)};

    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        memcpy(&out->sa, &v4, sizeof(v4));
        out->size = sizeof(v4);
        return true;
    }
    if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
        memcpy(&out->sa, &v6, sizeof(v6));
        out->size = sizeof(v6);
        return true;
    }
    return false;
}

static struct resolve *r_begin(void *arg, const char *host, uint16_t port,
                               bool canonical, struct wakeup *wakeup)
{
    struct resolve *r = must(calloc(1, sizeof(*r)));

    (void)arg;
    (void)canonical;
    (void)wakeup;
    r->found = mem_net_address(host, port, &r->address);
    (void)snprintf(r->text, sizeof(r->text), "no address for \"%.60s\"", host);
    return r;
}

static bool r_poll(struct resolve *r, const struct address **addresses,
                   const char *const **names, size_t *count, kp_err *err,
                   const char **text)
{
    *addresses = &r->address;
    *names = NULL;
    *count = r->found ? 1 : 0;
    *err = r->found ? KP_OK : KP_ERESOLVE;
    *text = r->text;
    return true;
}

static void r_end(struct resolve *r)
{
    free(r);
}

/* -- the whole -- */

void mem_net_init(struct mem_net *net,
                  uint32_t (*ready)(const struct transport *t))
{
    *net = (struct mem_net){
        .ready = ready,
        .poller = {p_create, p_destroy, p_add, p_change, p_remove, p_wait,
                   p_pause, net},
        .resolver = {r_begin, r_poll, r_end, net},
    };
    net->end = &net->first;
}
