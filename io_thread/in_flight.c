/* SPDX-License-Identifier: BSD-2-Clause */
/* in_flight.c - requests of a node: queued, on the wire, answered, ended.
 * I/O thread only.
 *
 * Invariant: each request handed over stands in exactly one of n->queue (not
 * wholly written), n->in_flight (wholly written, expects an answer) and
 * client->refused, and its `done` is called once, when it leaves them; those
 * of a connection end in the order of sending.  Kafka: InFlightRequests. */
#include "io_thread/client.h"

static void count(struct node *n, int by)
{
    n->request_count += (uint32_t)by;
    n->client->request_count += (uint32_t)by;
}

static void finish(struct request *r, enum request_end end, struct reader *body,
                   kp_err err)
{
    kp__heap_remove(&r->node->client->deadlines, &r->deadline);
    r->done(r->arg, r, end, body, err);
}

void kp__requests_add(struct node *n, struct request *r)
{
    struct network_client *c = n->client;

    r->node = n;
    r->queued_ns = c->now_ns;
    r->sent_ns = 0;
    kp__list_push_back(&n->queue, &r->link);
    count(n, 1);
    kp__heap_set(&c->deadlines, &r->deadline,
                 kp__ns_add(c->now_ns, r->timeout_ns));
    kp__stream_wake(n);
}

void kp__requests_sent(struct node *n, struct request *r)
{
    struct network_client *c = n->client;

    r->sent_ns = c->now_ns != 0 ? c->now_ns : 1;
    kp__metrics_record(c->metrics, SENSOR_REQUEST_SIZE, (double)r->total_size,
                       c->now_ns);
    kp__metrics_record_node(c->metrics, n->metrics, NODE_REQUEST_SIZE,
                            (double)r->total_size, c->now_ns);
    kp__list_remove(&r->link);
    if (r->expects_response) {
        kp__list_push_back(&n->in_flight, &r->link);
        return;
    }
    count(n, -1);
    finish(r, REQUEST_SENT, NULL, KP_OK);
    kp__connection_may_leave(n);
}

static bool not_ours(struct node *n, const char *what)
{
    kp__node_fail_text(n, KP_EPROTO, "%.100s: sent %s", n->name, what);
    return false;
}

/* May more go than before this one ended?  Asked only while READY. */
static void tell_room(struct node *n)
{
    struct network_client *c = n->client;

    if (n->state == CONNECTION_READY && kp__client_can_send(c, n, c->now_ns))
        c->events.node_can_send(c->events.arg, n);
}

bool kp__requests_answer(struct node *n, const uint8_t *data, size_t size)
{
    struct network_client *c = n->client;
    struct list_node *first = kp__list_first(&n->in_flight);
    const char *api_name;
    struct reader body;
    struct request *r;
    int32_t id;

    if (first == NULL)
        return not_ours(n, "an answer to nothing that was asked");
    r = KP_CONTAINER(first, struct request, link);
    kp__reader_init(&body, data, size);
    if (!kp__response_header_decode(&body, r->api->key, r->version, &id))
        return not_ours(n, "an answer whose header cannot be read");
    if (id != r->correlation_id)
        return not_ours(n, "an answer to another request");
    kp__list_remove(&r->link);
    count(n, -1);
    kp__metrics_record(c->metrics, SENSOR_RESPONSES, 1, c->now_ns);
    kp__metrics_record_node(c->metrics, n->metrics, NODE_RESPONSES, 1,
                            c->now_ns);
    api_name = r->api->name;
    finish(r, REQUEST_ANSWERED, &body, KP_OK);
    if (n->handshake_refused) {
        n->handshake_refused = false;
        return false;
    }
    if (body.failed) {
        kp__node_fail_text(
            n, KP_EPROTO, "%.100s: its answer to %s cannot be read (%s)",
            n->name, api_name, body.what != NULL ? body.what : "malformed");
        return false;
    }
    kp__connection_may_leave(n);
    tell_room(n);
    return true;
}

void kp__requests_end_all(struct node *n, enum request_end end, kp_err err)
{
    struct list sent, unsent;
    struct list_node *link;

    kp__list_init(&sent);
    kp__list_init(&unsent);
    kp__list_splice_back(&sent, &n->in_flight);
    kp__list_splice_back(&unsent, &n->queue);
    n->client->request_count -= n->request_count;
    n->request_count = 0;
    while ((link = kp__list_pop_front(&sent)) != NULL)
        finish(KP_CONTAINER(link, struct request, link), end, NULL, err);
    while ((link = kp__list_pop_front(&unsent)) != NULL)
        finish(KP_CONTAINER(link, struct request, link), REQUEST_UNSENT, NULL,
               err);
}

static void extend(struct list *l, struct heap *deadlines, int64_t by_ns)
{
    struct list_node *link = kp__list_first(l);

    for (; link != NULL; link = kp__list_next(l, link)) {
        struct request *r = KP_CONTAINER(link, struct request, link);
        kp__heap_set(deadlines, &r->deadline,
                     kp__ns_add(r->deadline.at_ns, by_ns));
    }
}

void kp__requests_extend(struct node *n, int64_t by_ns)
{
    extend(&n->in_flight, &n->client->deadlines, by_ns);
    extend(&n->queue, &n->client->deadlines, by_ns);
}

static void late(struct node *n, const struct request *r)
{
    long long ms = (long long)(r->timeout_ns / KP_NS_PER_MS);

    if (n->state == CONNECTION_HANDSHAKE)
        kp__node_fail_text(n, KP_ECONNECT,
                           "%.100s: does not answer ApiVersions within %lld "
                           "ms; older than Kafka 0.10, or no Kafka broker",
                           n->name, ms);
    else
        kp__node_fail_text(n, KP_EDISCONNECT,
                           "%.100s: no answer to %s within %lld ms", n->name,
                           r->api->name, ms);
    kp__connection_lost(n, REQUEST_TIMED_OUT);
}

static struct request *first_due(const struct network_client *c)
{
    struct heap_node *h = kp__heap_first(&c->deadlines);

    return h == NULL || h->at_ns > c->now_ns
               ? NULL
               : KP_CONTAINER(h, struct request, deadline);
}

void kp__requests_expire(struct network_client *c, uint32_t *answers)
{
    struct request *r;

    while ((r = first_due(c)) != NULL) {
        struct node *n = r->node;
        uint32_t generation = n->generation;

        /* an answer that has come counts, however late it is read */
        kp__stream_read(n, answers);
        if (n->generation == generation && first_due(c) == r)
            late(n, r);
    }
}

void kp__requests_serve_refused(struct network_client *c)
{
    struct list now;
    struct list_node *link;

    kp__list_init(&now);
    kp__list_splice_back(&now, &c->refused);
    while ((link = kp__list_pop_front(&now)) != NULL) {
        struct request *r = KP_CONTAINER(link, struct request, link);
        c->request_count--;
        r->node->aside_count--;
        finish(r,
               r->refused == KP_ENOTSUP ? REQUEST_UNSUPPORTED : REQUEST_UNSENT,
               NULL, r->refused);
    }
}
