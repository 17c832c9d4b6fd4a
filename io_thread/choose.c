/* SPDX-License-Identifier: BSD-2-Clause */
/* choose.c - which node can take a request, and whether any can be reached.
 * I/O thread only.  Kafka: NetworkClient.leastLoadedNode. */
#include "io_thread/client.h"
#include "lib/base/wait.h"

bool kp__client_is_ready(const struct node *n)
{
    return n->state == CONNECTION_READY;
}

bool kp__client_is_unreachable(const struct node *n)
{
    return n->unreachable;
}

bool kp__client_is_idle(const struct node *n)
{
    return n->state == CONNECTION_NONE && !n->expanded && !n->wanted;
}

bool kp__client_is_throttled(const struct node *n, int64_t now_ns)
{
    return n->throttled_until_ns > now_ns;
}

/* Open for requests, however many are on it. */
static bool open_now(const struct node *n, int64_t now_ns)
{
    return n->state == CONNECTION_READY && n->doom == DOOM_NONE &&
           n->writing == WRITING_FREE && !kp__client_is_throttled(n, now_ns);
}

static uint32_t max_in_flight(const struct network_client *c)
{
    return c->settings->max_in_flight < 1
               ? 1
               : (uint32_t)c->settings->max_in_flight;
}

bool kp__client_can_send(const struct network_client *c, const struct node *n,
                         int64_t now_ns)
{
    /* While one that did not get away has not ended nothing may overtake it. */
    return open_now(n, now_ns) && n->aside_count == 0 &&
           n->request_count < max_in_flight(c);
}

bool kp__client_any_reachable(const struct network_client *c)
{
    for (size_t i = 0; i < c->node_count; i++) {
        const struct node *n = c->nodes[i];
        if (n->state == CONNECTION_READY ||
            (n->listed && n->was_ready && !n->unreachable))
            return true;
    }
    return false;
}

bool kp__client_all_failed(const struct network_client *c)
{
    for (size_t i = 0; i < c->node_count; i++) {
        const struct node *n = c->nodes[i];
        if (n->listed && (n->state != CONNECTION_NONE || !n->unreachable))
            return false;
    }
    return true;
}

void kp__client_connect(struct network_client *c, struct node *n,
                        int64_t now_ns)
{
    c->now_ns = now_ns;
    if (n->state != CONNECTION_NONE || n->expanded)
        return;
    if (n->next_attempt_ns <= now_ns) {
        kp__connection_begin(n);
    } else if (!n->wanted) {
        n->wanted = true;
        kp__connection_arm(n);
    }
}

/* -- the least loaded -- */

struct candidates {
    struct node *ready;   /* fewest requests */
    struct node *pending; /* connecting; the newest */
    struct node *idle;    /* can be tried now; longest not tried */
    struct node *resting; /* backing off; first to end it */
};

static void consider(struct candidates *best, struct node *n, int64_t now_ns,
                     uint32_t limit)
{
    if (n->state == CONNECTION_READY) {
        if (open_now(n, now_ns) && n->request_count <= limit &&
            (best->ready == NULL ||
             n->request_count < best->ready->request_count))
            best->ready = n;
    } else if (n->state != CONNECTION_NONE) {
        if (best->pending == NULL || n->attempt_ns > best->pending->attempt_ns)
            best->pending = n;
    } else if (n->next_attempt_ns <= now_ns) {
        if (best->idle == NULL || n->attempt_ns < best->idle->attempt_ns)
            best->idle = n;
    } else if (best->resting == NULL ||
               n->next_attempt_ns < best->resting->next_attempt_ns) {
        best->resting = n;
    }
}

/* While only bootstrap addresses are listed, a broker of before that is there
 * again (somebody had records for it) is as good as they are. */
static bool may_choose(const struct network_client *c, const struct node *n)
{
    return n->listed || (c->bootstrapping && n->state == CONNECTION_READY);
}

static bool has_old(const struct list *requests, int64_t now_ns)
{
    const struct list_node *first = kp__list_first(requests);

    return first != NULL &&
           kp__ns_add(
               KP_CONTAINER(first, const struct request, link)->queued_ns,
               SECOND_TRY_NS) <= now_ns;
}

/* It is ready, and whatever keeps it from taking a request now has not done so
 * for long, and will not. */
static bool is_soon_open(const struct node *n, int64_t now_ns)
{
    return n->state == CONNECTION_READY && n->doom != DOOM_LEAVE &&
           n->throttled_until_ns <= kp__ns_add(now_ns, SECOND_TRY_NS) &&
           !has_old(&n->queue, now_ns) && !has_old(&n->in_flight, now_ns);
}

static bool any_soon_open(const struct network_client *c, int64_t now_ns)
{
    for (size_t i = 0; i < c->node_count; i++)
        if (may_choose(c, c->nodes[i]) && is_soon_open(c->nodes[i], now_ns))
            return true;
    return false;
}

/* None can take it now: make sure that one will.  True: one was tried that
 * cannot even be tried now, so there may be another. */
static bool prepare(struct network_client *c, const struct candidates *best,
                    int64_t now_ns)
{
    if (best->idle != NULL &&
        (best->pending == NULL ||
         best->pending->attempt_ns + SECOND_TRY_NS <= now_ns)) {
        kp__client_connect(c, best->idle, now_ns);
        return best->idle->state == CONNECTION_NONE;
    }
    if (best->pending == NULL && best->resting != NULL)
        kp__client_connect(c, best->resting, now_ns);
    return false;
}

static struct candidates look_at_all(struct network_client *c, int64_t now_ns)
{
    struct candidates best = {NULL, NULL, NULL, NULL};
    size_t first = kp__rng_below(&c->rng, (uint32_t)c->node_count);

    for (size_t i = 0; i < c->node_count; i++) {
        struct node *n = c->nodes[(first + i) % c->node_count];
        if (may_choose(c, n))
            consider(&best, n, now_ns, max_in_flight(c));
    }
    return best;
}

/* Of thousands of brokers without a route the rest is tried later, so that a
 * turn has an end. */
#define TRIES_MAX 16

/* One request above the limit may be put on a node that has it full of records:
 * else they could keep metadata waiting for ever. */
struct node *kp__client_least_loaded(struct network_client *c, int64_t now_ns)
{
    struct candidates best = {NULL, NULL, NULL, NULL};

    c->now_ns = now_ns;
    if (c->node_count == 0)
        return NULL;
    /* Each attempt that fails at once leaves one fewer that can be tried. */
    for (int i = 0; i < TRIES_MAX; i++) {
        best = look_at_all(c, now_ns);
        if (best.ready != NULL || any_soon_open(c, now_ns) ||
            !prepare(c, &best, now_ns))
            break;
    }
    return best.ready;
}

/* -- status -- */

static size_t listed_count(const struct network_client *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->node_count; i++)
        n += c->nodes[i]->listed ? 1 : 0;
    return n;
}

/* Once brokers are known, that a bootstrap address answers says nothing of
 * them. */
static bool may_serve(const struct network_client *c, const struct node *n)
{
    return n->listed && !n->unreachable && (n->id >= 0 || !c->had_metadata);
}

static bool none_may_serve(const struct network_client *c)
{
    for (size_t i = 0; i < c->node_count; i++)
        if (may_serve(c, c->nodes[i]))
            return false;
    return true;
}

bool kp__choose_all_too_old(const struct network_client *c)
{
    for (size_t i = 0; i < c->node_count; i++) {
        const struct node *n = c->nodes[i];
        if (n->listed && (!n->unreachable || n->error != KP_ENOTSUP))
            return false;
    }
    return true;
}

void kp__choose_status(struct network_client *c, const struct node *failed)
{
    bool dark = none_may_serve(c);

    if (!dark || failed == NULL || !failed->unreachable) {
        if (!dark && c->status_set)
            kp__status_cluster(c->status, KP_OK, KP_OK, "%s", "");
        c->status_set = c->status_set && dark;
        return;
    }
    kp__status_cluster(
        c->status, failed->error, KP_OK, "%s%zu tried; last: %s",
        failed->error == KP_ERESOLVE ? "no address of a broker is known, "
                                     : "no broker can be used, ",
        listed_count(c), failed->error_text);
    c->status_set = true;
}

/* Brokers that were all out of reach have been named again: one that nothing is
 * to be sent to now would stay so for long. */
void kp__choose_look_again(struct network_client *c)
{
    kp__choose_status(c, NULL);
    if (!c->status_set)
        return;
    for (size_t i = 0; i < c->node_count; i++)
        if (c->nodes[i]->listed && c->nodes[i]->id >= 0)
            kp__client_connect(c, c->nodes[i], c->now_ns);
}
