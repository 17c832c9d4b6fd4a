/* SPDX-License-Identifier: BSD-2-Clause */
/* addresses.c - from a name to a socket: look-ups, and one address after
 * another. I/O thread only.
 *
 * An attempt looks the name up anew and tries every address it has, each with
 * the whole set-up time, before it has failed.  If the name server does not
 * answer, the addresses known before are tried.  Kafka:
 * ClusterConnectionStates, with client.dns.lookup. */
#include <string.h>

#include "io_thread/client.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static void connect_failed(struct node *n, int sys_errno)
{
    char text[ADDRESS_TEXT_SIZE], why[SYSTEM_TEXT_SIZE];

    kp__address_text(&n->current, text);
    kp__system_error_text(sys_errno, why, sizeof why);
    kp__node_fail_text(n, KP_ECONNECT, "%.100s: %s: %s", n->name, text, why);
}

/* False: this address cannot be tried at all now; n->error says why. */
static bool start(struct node *n)
{
    struct network_client *c = n->client;
    const struct transport_ops *ops = c->env.transport;
    int sys_errno = 0;
    kp_err err;

    err = ops->connect(ops->arg, &n->current, c->settings->send_buffer,
                       c->settings->receive_buffer,
                       c->settings->request_timeout_ns, &n->transport,
                       &sys_errno);
    if (err != KP_OK) {
        n->transport = NULL;
        connect_failed(n, sys_errno);
        return false;
    }
    sys_errno = c->env.poller->add(c->poller, n->transport, ops, POLL_WRITE, n);
    if (sys_errno != 0) {
        ops->close(n->transport);
        n->transport = NULL;
        connect_failed(n, sys_errno);
        return false;
    }
    n->watched = POLL_WRITE;
    return true;
}

void kp__addresses_next(struct node *n)
{
    while (n->addresses_left > 0) {
        n->current = n->addresses[n->address_at];
        n->address_at = (n->address_at + 1) % n->address_count;
        n->addresses_left--;
        if (start(n)) {
            kp__connection_move(n, CONNECTION_CONNECTING);
            n->setup_deadline_ns = kp__connection_setup_deadline(n);
            kp__connection_arm(n);
            return;
        }
    }
    kp__connection_failed(n);
}

/* Keep a copy; the first to try is not the one that has just been lost. */
static bool keep(struct node *n, const struct address *addresses, size_t count)
{
    struct address *copy = kp__alloc_array(count, sizeof *copy);

    if (copy == NULL)
        return false;
    memcpy(copy, addresses, count * sizeof *copy);
    kp__free(n->addresses);
    n->addresses = copy;
    n->address_count = count;
    n->address_at = 0;
    if (n->skip_current && count > 1 &&
        kp__address_equal(&copy[0], &n->current))
        n->address_at = 1;
    n->skip_current = false;
    return true;
}

static struct node *find_bootstrap(struct network_client *c, const char *host,
                                   uint16_t port)
{
    for (size_t i = 0; i < c->node_count; i++) {
        struct node *n = c->nodes[i];
        if (n->id < 0 && !n->seed && n->port == port &&
            strcmp(n->host, host) == 0)
            return n;
    }
    return NULL;
}

/* resolve_canonical_bootstrap_servers_only: the names stand for the seed. */
static void expand(struct node *seed, const char *const *names, size_t count)
{
    struct network_client *c = seed->client;
    struct node *first = NULL;

    for (size_t i = 0; i < count; i++) {
        struct node *n;
        if (names[i] == NULL)
            continue;
        n = find_bootstrap(c, names[i], seed->port);
        if (n == NULL)
            n = kp__node_bootstrap(c, names[i], seed->port);
        if (n == NULL)
            continue;
        kp__node_list(n);
        if (first == NULL)
            first = n;
    }
    if (first == NULL) {
        kp__node_fail_text(seed, KP_ENOMEM, "%.100s: out of memory",
                           seed->name);
        kp__connection_failed(seed);
        return;
    }
    seed->listed = false;
    seed->expanded = true;
    kp__connection_close(seed);
    if (first->state == CONNECTION_NONE)
        kp__client_connect(c, first, c->now_ns);
}

/* Use what there is from before. */
static void fall_back(struct node *n)
{
    if (n->address_count == 0) {
        kp__connection_failed(n);
        return;
    }
    kp__log_limited(n->client->log, &n->limit, LOG_INTERVAL_NS, KP_LOG_WARN,
                    "connection", "%s; using its last known addresses",
                    n->error_text);
    n->addresses_left = n->address_count;
    kp__addresses_next(n);
}

/* The look-up is over; its answer is still lent until ops->end. */
static struct resolve *release(struct node *n)
{
    struct resolve *r = n->resolve;

    n->resolve = NULL;
    kp__list_remove(&n->resolve_link);
    if (r != NULL)
        n->client->lookups--;
    return r;
}

/* True if the look-up is done; then the attempt has gone on. */
static bool take(struct node *n)
{
    const struct resolver_ops *ops = n->client->env.resolver;
    const struct address *addresses = NULL;
    const char *const *names = NULL;
    const char *text = "";
    size_t count = 0;
    kp_err err = KP_OK;
    struct resolve *r;

    if (!ops->poll(n->resolve, &addresses, &names, &count, &err, &text))
        return false;
    r = release(n);
    if (err == KP_OK && count == 0)
        err = KP_ERESOLVE;
    if (err != KP_OK) {
        kp__node_fail_text(n, err, "%.100s: %s", n->name, text);
        fall_back(n);
    } else if (names != NULL && n->seed) {
        expand(n, names, count);
    } else if (!keep(n, addresses, count)) {
        kp__node_fail_text(n, KP_ENOMEM, "%.100s: out of memory", n->name);
        fall_back(n);
    } else {
        n->addresses_left = count;
        kp__addresses_next(n);
    }
    ops->end(r);
    return true;
}

/* It is the node's turn: begin, and look at once, for a number needs no
 * thread. */
static void look_up(struct node *n)
{
    struct network_client *c = n->client;
    const struct resolver_ops *ops = c->env.resolver;
    bool canonical =
        n->seed && c->settings->dns_lookup == DNS_RESOLVE_CANONICAL;

    n->resolve = ops->begin(ops->arg, n->host, n->port, canonical, c->wakeup);
    if (n->resolve == NULL) {
        (void)release(n);
        kp__node_fail_text(n, KP_ERESOLVE,
                           "%.100s: no memory or thread to look its name up",
                           n->name);
        fall_back(n);
        return;
    }
    c->lookups++;
    (void)take(n);
}

void kp__addresses_find(struct node *n)
{
    struct network_client *c = n->client;

    kp__connection_move(n, CONNECTION_RESOLVING);
    n->setup_deadline_ns = kp__connection_setup_deadline(n);
    kp__list_push_back(&c->resolving, &n->resolve_link);
    kp__connection_arm(n);
    if (c->lookups < LOOKUPS_MAX)
        look_up(n);
}

/* Each node of the list.  What ends here may begin another look-up, which goes
 * to the end of the list, and ends none but its own. */
static void each_resolving(struct network_client *c, void (*fn)(struct node *n))
{
    struct list_node *link = kp__list_first(&c->resolving), *next;

    for (; link != NULL; link = next) {
        next = kp__list_next(&c->resolving, link);
        fn(KP_CONTAINER(link, struct node, resolve_link));
    }
}

static void take_if_done(struct node *n)
{
    if (n->resolve != NULL)
        (void)take(n);
}

static void begin_if_room(struct node *n)
{
    if (n->resolve == NULL && n->client->lookups < LOOKUPS_MAX)
        look_up(n);
}

/* First all that are done: one that waits may stand before one that makes room
 * for it, and nobody else would begin it. */
void kp__addresses_poll(struct network_client *c)
{
    each_resolving(c, take_if_done);
    each_resolving(c, begin_if_room);
}

void kp__addresses_cancel(struct node *n)
{
    struct resolve *r = release(n);

    if (r != NULL)
        n->client->env.resolver->end(r);
}

void kp__addresses_late(struct node *n)
{
    kp__addresses_cancel(n);
    kp__node_fail_text(n, KP_ERESOLVE,
                       "%.100s: the look-up of its name takes too long",
                       n->name);
    fall_back(n);
}
