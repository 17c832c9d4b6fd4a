/* SPDX-License-Identifier: BSD-2-Clause */
/* connection.c - the life of a node's connection.  I/O thread only.
 *
 * Invariant: a node has a transport exactly while it is CONNECTING, HANDSHAKE
 * or READY, a look-up exactly while it is RESOLVING, and requests only in the
 * last two.  Kafka: ClusterConnectionStates. */
#include <string.h>

#include "io_thread/backoff.h"
#include "io_thread/client.h"
#include "lib/base/str.h"
#include "lib/base/wait.h"

#define STATES (CONNECTION_READY + 1)
static const bool allowed[STATES][STATES] = {
    [CONNECTION_NONE] = {[CONNECTION_RESOLVING] = true},
    [CONNECTION_RESOLVING] =
        {[CONNECTION_CONNECTING] = true, [CONNECTION_NONE] = true},
    [CONNECTION_CONNECTING] = {[CONNECTION_CONNECTING] = true,
                               [CONNECTION_HANDSHAKE] = true,
                               [CONNECTION_NONE] = true},
    [CONNECTION_HANDSHAKE] = {[CONNECTION_CONNECTING] = true,
                              [CONNECTION_READY] = true,
                              [CONNECTION_NONE] = true},
    [CONNECTION_READY] = {[CONNECTION_NONE] = true},
};

void kp__connection_move(struct node *n, enum connection_state to)
{
    KP_CHECK(allowed[n->state][to]);
    (void)allowed;
    n->state = to;
    if (to == CONNECTION_NONE) {
        n->doom = DOOM_NONE;
        kp__list_remove(&n->doom_link);
    }
}

int64_t kp__connection_setup_deadline(struct node *n)
{
    const struct settings *s = n->client->settings;

    return kp__ns_add(n->client->now_ns,
                      kp__backoff_ns(s->setup_timeout_ns,
                                     s->setup_timeout_max_ns, n->setup_failures,
                                     &n->client->rng));
}

/* -- timers -- */

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static int64_t next_event(const struct node *n)
{
    const struct network_client *c = n->client;
    int64_t at_ns = KP_NEVER;

    switch (n->state) {
    case CONNECTION_NONE:
        return n->wanted ? n->next_attempt_ns : KP_NEVER;
    case CONNECTION_RESOLVING:
    case CONNECTION_CONNECTING:
        return n->setup_deadline_ns;
    case CONNECTION_HANDSHAKE:
        return KP_NEVER; /* its request has a deadline */
    case CONNECTION_READY:
        break;
    }
    if (c->settings->max_idle_ns != KP_NEVER)
        at_ns = kp__ns_add(n->used_ns, c->settings->max_idle_ns);
    if (n->throttled_until_ns != 0)
        at_ns = earlier(at_ns, n->throttled_until_ns);
    return at_ns;
}

void kp__connection_arm(struct node *n)
{
    int64_t at_ns = next_event(n);

    if (at_ns == KP_NEVER)
        kp__heap_remove(&n->client->timers, &n->timer);
    else
        kp__heap_set(&n->client->timers, &n->timer, at_ns);
}

static void setup_late(struct node *n)
{
    char text[ADDRESS_TEXT_SIZE];

    if (n->state == CONNECTION_RESOLVING) {
        kp__addresses_late(n);
        return;
    }
    kp__address_text(&n->current, text);
    kp__node_fail_text(n, KP_ECONNECT,
                       "%.100s: %s: no connection within "
                       "socket.connection.setup.timeout.ms",
                       n->name, text);
    kp__connection_lost(n, REQUEST_DISCONNECTED);
}

static void ready_timer(struct node *n)
{
    struct network_client *c = n->client;

    if (n->throttled_until_ns != 0 && n->throttled_until_ns <= c->now_ns) {
        n->throttled_until_ns = 0;
        kp__connection_arm(n);
        c->events.node_can_send(c->events.arg, n);
        return;
    }
    if (n->request_count > 0)
        n->used_ns = c->now_ns; /* not idle: it waits for answers */
    if (c->settings->max_idle_ns != KP_NEVER &&
        kp__ns_add(n->used_ns, c->settings->max_idle_ns) <= c->now_ns) {
        kp__log(c->log, KP_LOG_DEBUG, "connection",
                "%s: closed, idle for connections.max.idle.ms", n->name);
        kp__connection_close(n);
        return;
    }
    kp__connection_arm(n);
}

void kp__connection_timer(struct node *n)
{
    switch (n->state) {
    case CONNECTION_NONE:
        if (n->wanted && n->next_attempt_ns <= n->client->now_ns)
            kp__connection_begin(n);
        else
            kp__connection_arm(n);
        break;
    case CONNECTION_RESOLVING:
    case CONNECTION_CONNECTING:
        if (n->setup_deadline_ns <= n->client->now_ns)
            setup_late(n);
        else
            kp__connection_arm(n);
        break;
    case CONNECTION_HANDSHAKE:
        break;
    case CONNECTION_READY:
        ready_timer(n);
        break;
    }
}

/* -- the way up -- */

void kp__connection_begin(struct node *n)
{
    n->wanted = false;
    n->attempt_ns = n->client->now_ns;
    kp__addresses_find(n);
}

void kp__connection_up(struct node *n)
{
    struct network_client *c = n->client;

    kp__connection_move(n, CONNECTION_HANDSHAKE);
    kp__connection_arm(n);
    kp__frames_fini(&n->frames);
    kp__frames_init(&n->frames, HANDSHAKE_FRAME_MAX);
    kp__stream_watch(n, POLL_READ);
    c->connections++;
    kp__metrics_record(c->metrics, SENSOR_CONNECTIONS_CREATED, 1, c->now_ns);
    kp__handshake_begin(n);
}

void kp__connection_ready(struct node *n)
{
    struct network_client *c = n->client;

    kp__connection_move(n, CONNECTION_READY);
    n->frames.max = FRAME_MAX;
    n->used_ns = c->now_ns;
    n->failures = 0;
    n->setup_failures = 0;
    n->was_ready = true;
    n->unreachable = false;
    n->error = KP_OK;
    n->handshake_plain = false;
    kp__connection_arm(n);
    kp__log(c->log, KP_LOG_DEBUG, "connection", "%s: connected", n->name);
    kp__choose_status(c, NULL);
    c->events.node_ready(c->events.arg, n);
}

/* -- the ways down -- */

/* Close the socket; the requests are still there. */
static void drop_transport(struct node *n)
{
    struct network_client *c = n->client;
    struct transport *t = n->transport;

    if (t == NULL)
        return;
    if (kp__connection_is_up(n)) {
        c->connections--;
        kp__metrics_record(c->metrics, SENSOR_CONNECTIONS_CLOSED, 1, c->now_ns);
    }
    c->env.poller->remove(c->poller, t, c->env.transport);
    /* First forgotten, then closed: the child of a fork in between must not
     * close whatever has that number by then. */
    n->transport = NULL;
    c->env.transport->close(t);
    n->watched = 0;
    n->generation++;
    n->writing = WRITING_FREE;
    n->throttled_until_ns = 0;
    if (n->doom == DOOM_BROKEN) {
        n->doom = DOOM_NONE;
        kp__list_remove(&n->doom_link);
    }
    kp__list_remove(&n->write_link);
    kp__frames_fini(&n->frames);
    kp__frames_init(&n->frames, HANDSHAKE_FRAME_MAX);
}

/* Never quite none: a node_down that asks again at once must not recurse. */
static void back_off(struct node *n)
{
    const struct settings *s = n->client->settings;
    int64_t ns =
        kp__backoff_ns(s->reconnect_backoff_ns, s->reconnect_backoff_max_ns,
                       n->failures, &n->client->rng);

    if (ns < KP_NS_PER_MS)
        ns = KP_NS_PER_MS;
    n->next_attempt_ns = kp__ns_add(n->client->now_ns, ns);
    if (n->failures < UINT32_MAX)
        n->failures++;
}

static void down(struct node *n)
{
    struct network_client *c = n->client;

    kp__connection_arm(n);
    kp__choose_status(c, n);
    c->events.node_down(c->events.arg, n, n->error);
}

/* A broker whose own address for itself leads nowhere is the commonest
 * mistake in setting one up. */
static void add_hint(struct node *n)
{
    size_t size = strlen(n->error_text);

    if (n->id < 0 || n->was_ready || n->error == KP_ENOTSUP ||
        strstr(n->error_text, "advertised.listeners") != NULL)
        return;
    (void)kp__format(n->error_text + size, sizeof(n->error_text) - size,
                     "; this is the address the broker advertises, see its "
                     "advertised.listeners");
}

void kp__connection_failed(struct node *n)
{
    struct network_client *c = n->client;

    kp__connection_move(n, CONNECTION_NONE);
    back_off(n);
    if (n->setup_failures < UINT32_MAX)
        n->setup_failures++;
    n->unreachable = true;
    add_hint(n);
    kp__log_limited(c->log, &n->limit, LOG_INTERVAL_NS, KP_LOG_WARN,
                    "connection", "cannot reach %s", n->error_text);
    down(n);
}

/* A peer that hangs up while nothing is asked of it does what we do ourselves
 * after connections.max.idle.ms. */
static void log_lost(struct node *n, bool idle)
{
    struct network_client *c = n->client;

    if (idle && n->error == KP_EDISCONNECT)
        kp__log(c->log, KP_LOG_DEBUG, "connection", "%s", n->error_text);
    else
        kp__log_limited(c->log, &n->limit, LOG_INTERVAL_NS, KP_LOG_WARN,
                        "connection", "%s", n->error_text);
}

void kp__connection_lost(struct node *n, enum request_end end)
{
    kp_err err = n->error;
    bool idle = n->request_count == 0;

    if (n->state == CONNECTION_READY) {
        drop_transport(n);
        kp__connection_move(n, CONNECTION_NONE);
        n->skip_current = true;
        /* Silent for a whole request.timeout.ms: not one that answers, until it
         * does again. */
        if (end == REQUEST_TIMED_OUT)
            n->unreachable = true;
        back_off(n);
        log_lost(n, idle);
        kp__requests_end_all(n, end, err);
        down(n);
        return;
    }
    if (n->state == CONNECTION_HANDSHAKE)
        kp__handshake_cut(n);
    drop_transport(n);
    kp__requests_end_all(n, end, err);
    kp__log(n->client->log, KP_LOG_DEBUG, "connection", "%s", n->error_text);
    kp__addresses_next(n);
}

void kp__connection_close(struct node *n)
{
    if (n->state == CONNECTION_NONE)
        return;
    kp__addresses_cancel(n);
    drop_transport(n);
    kp__connection_move(n, CONNECTION_NONE);
    kp__requests_end_all(n, REQUEST_DISCONNECTED, KP_EDISCONNECT);
    kp__connection_arm(n);
}

/* -- ends that are put off until no callback runs: see enum doom -- */

void kp__connection_doom(struct node *n, enum doom doom)
{
    if (doom > n->doom)
        n->doom = doom;
    if (!kp__node_linked(&n->doom_link))
        kp__list_push_back(&n->client->doomed, &n->doom_link);
}

void kp__connection_broken(struct node *n, int sys_errno)
{
    n->writing = WRITING_BROKEN;
    n->write_errno = sys_errno;
    kp__connection_doom(n, DOOM_BROKEN);
}

void kp__connection_may_leave(struct node *n)
{
    if (n->doom == DOOM_LEAVE && n->request_count == 0)
        kp__connection_doom(n, DOOM_LEAVE);
}

/* Whoever still has something for a node that is listed no more connects to it
 * again, and each answer of metadata may end that: so the attempt that ends
 * here keeps its distance from the next. */
static void leave(struct node *n)
{
    int64_t at_ns = kp__ns_add(n->attempt_ns,
                               n->client->settings->reconnect_backoff_ns);

    if (n->next_attempt_ns < at_ns)
        n->next_attempt_ns = at_ns;
    kp__connection_close(n);
}

static void serve_leave(struct node *n)
{
    if (n->listed)
        n->doom = DOOM_NONE; /* it is back */
    else if (n->state != CONNECTION_READY || n->request_count == 0)
        leave(n);
    /* else: kp__connection_may_leave, when its last request has ended */
}

static void serve_moved(struct node *n)
{
    struct network_client *c = n->client;
    bool had_requests = n->request_count > 0;

    kp__connection_close(n);
    if (had_requests)
        c->events.node_down(c->events.arg, n, KP_EDISCONNECT);
}

static void serve_broken(struct node *n, uint32_t *answers)
{
    uint32_t generation = n->generation;
    char why[SYSTEM_TEXT_SIZE];

    /* The answers that came before the end count. */
    kp__stream_read(n, answers);
    if (n->generation != generation)
        return; /* and one of them was the end */
    kp__system_error_text(n->write_errno, why, sizeof why);
    kp__node_fail_text(n, KP_EDISCONNECT, "%.100s: cannot send: %s", n->name,
                       why);
    kp__connection_lost(n, REQUEST_DISCONNECTED);
}

static void serve_doomed(struct node *n, uint32_t *answers)
{
    switch (n->doom) {
    case DOOM_NONE:
        break;
    case DOOM_LEAVE:
        serve_leave(n);
        break;
    case DOOM_MOVED:
        serve_moved(n);
        break;
    case DOOM_BROKEN:
        serve_broken(n, answers);
        break;
    }
}

void kp__connection_serve_doomed(struct network_client *c, uint32_t *answers)
{
    struct list now;

    kp__list_init(&now);
    kp__list_splice_back(&now, &c->doomed);
    for (;;) {
        struct list_node *link = kp__list_pop_front(&now);
        if (link == NULL)
            return;
        serve_doomed(KP_CONTAINER(link, struct node, doom_link), answers);
    }
}
