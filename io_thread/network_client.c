/* SPDX-License-Identifier: BSD-2-Clause */
/* network_client.c - making and ending the client, and the steps of a turn.
 * I/O thread only.
 *
 * Time comes in with each call and is read nowhere: client->now_ns is that of
 * the step that runs.  Kafka: NetworkClient. */
#include "io_thread/network_client.h"

#include "io_thread/client.h"
#include "lib/base/mem.h"
#include "lib/base/wait.h"

/* Java keeps the ids above for SASL. */
#define CORRELATION_END 2147483640

static bool add_bootstrap(struct network_client *c)
{
    for (size_t i = 0; i < c->settings->bootstrap_count; i++) {
        const struct host_port *b = &c->settings->bootstrap[i];
        struct node *n = kp__node_bootstrap(c, b->host, b->port);
        if (n == NULL)
            return false;
        n->seed = true;
    }
    return true;
}

static void init(struct network_client *c)
{
    kp__rng_seed(&c->rng, c->env.seed ^ UINT64_C(0x6e6574776f726b));
    kp__map_init(&c->by_id);
    kp__heap_init(&c->timers);
    kp__heap_init(&c->deadlines);
    kp__list_init(&c->writable);
    kp__list_init(&c->doomed);
    kp__list_init(&c->resolving);
    kp__list_init(&c->refused);
    c->next_bootstrap_id = -1;
    c->bootstrapping = true;
}

static void free_all(struct network_client *c)
{
    for (size_t i = 0; i < c->node_count; i++)
        kp__node_free(c->nodes[i]);
    kp__free(c->nodes);
    kp__map_fini(&c->by_id);
    kp__free(c->cluster_id);
    kp__free(c);
}

struct network_client *kp__client_create(const struct settings *s,
                                         const struct io_env *env,
                                         struct logger *log,
                                         struct metrics *metrics,
                                         struct status *status,
                                         const struct client_events *events)
{
    struct network_client *c = kp__zalloc(sizeof *c);

    if (c == NULL)
        return NULL;
    c->settings = s;
    c->env = *env;
    c->log = log;
    c->metrics = metrics;
    c->status = status;
    c->events = *events;
    init(c);
    if (!add_bootstrap(c)) {
        free_all(c);
        return NULL;
    }
    return c;
}

void kp__client_attach(struct network_client *c, struct poller *poller,
                       struct wakeup *wakeup)
{
    c->poller = poller;
    c->wakeup = wakeup;
}

static void show(struct network_client *c)
{
    if (c->shown_requests != c->request_count) {
        c->shown_requests = c->request_count;
        kp__metrics_set_in_flight(c->metrics, (int32_t)c->request_count);
    }
    if (c->shown_connections != c->connections) {
        c->shown_connections = c->connections;
        kp__metrics_set_connections(c->metrics, (int32_t)c->connections);
    }
}

void kp__client_destroy(struct network_client *c)
{
    if (c == NULL)
        return;
    kp__requests_serve_refused(c);
    for (size_t i = 0; i < c->node_count; i++)
        kp__connection_close(c->nodes[i]);
    kp__requests_serve_refused(c);
    show(c); /* the metrics outlive us */
    free_all(c);
}

void kp__client_abandon(struct network_client *c)
{
    /* Lists and maps may have been half changed by a thread that is not here;
     * the table of nodes and each node's transport never are (make_room,
     * drop_transport). */
    for (size_t i = 0; i < c->node_count; i++) {
        struct transport *t = c->nodes[i]->transport;

        c->nodes[i]->transport = NULL;
        if (t != NULL)
            c->env.transport->close(t);
    }
}

/* -- sending -- */

int32_t kp__client_next_correlation(struct network_client *c)
{
    int32_t id = c->next_correlation;

    c->next_correlation = id + 1 >= CORRELATION_END ? 0 : id + 1;
    return id;
}

/* Its end comes in the next judging step, as every end does. */
static void put_aside(struct network_client *c, struct node *n,
                      struct request *r, kp_err err)
{
    r->node = n;
    r->refused = err;
    r->sent_ns = 0;
    c->request_count++;
    n->aside_count++;
    kp__list_push_back(&c->refused, &r->link);
}

static bool fits(const struct node *n, const struct request *r)
{
    const struct version_range *v = &n->versions[kp__api_place(r->api->key)];

    return v->max >= 0 && r->version >= v->min && r->version <= v->max;
}

void kp__client_send(struct network_client *c, struct node *n,
                     struct request *r, int64_t now_ns)
{
    kp_err err;

    c->now_ns = now_ns;
    r->queued_ns = now_ns;
    if (n->state != CONNECTION_READY) {
        put_aside(c, n, r, KP_EDISCONNECT);
        return;
    }
    if (!fits(n, r)) {
        put_aside(c, n, r, KP_ENOTSUP);
        return;
    }
    err = kp__request_seal(r, kp__client_next_correlation(c));
    if (err != KP_OK) {
        put_aside(c, n, r, err);
        return;
    }
    kp__requests_add(n, r);
}

/* -- throttling -- */

/* From this version on a broker answers first and leaves the waiting to us
 * (KIP-219). */
static int16_t throttle_since(int16_t api_key)
{
    switch (api_key) {
    case API_PRODUCE:
    case API_METADATA:
        return 6;
    case API_API_VERSIONS:
        return 2;
    default:
        return 1;
    }
}

static int64_t throttle_limit(const struct network_client *c)
{
    int64_t five_minutes = 300 * KP_NS_PER_SEC;

    return c->settings->request_timeout_ns > five_minutes
               ? c->settings->request_timeout_ns
               : five_minutes;
}

void kp__client_throttle(struct network_client *c, const struct request *r,
                         int32_t throttle_time_ms)
{
    struct node *n = r->node;
    int64_t ns = kp__ms_to_ns(throttle_time_ms > 0 ? throttle_time_ms : 0);
    int64_t until_ns;

    kp__metrics_record(c->metrics, SENSOR_THROTTLE_MS,
                       throttle_time_ms > 0 ? throttle_time_ms : 0, c->now_ns);
    if (ns == 0 || r->version < throttle_since(r->api->key) ||
        !kp__connection_is_up(n))
        return;
    if (ns > throttle_limit(c))
        ns = throttle_limit(c);
    until_ns = kp__ns_add(c->now_ns, ns);
    if (until_ns <= n->throttled_until_ns)
        return;
    kp__log(c->log, KP_LOG_DEBUG, "connection", "%s: throttled for %d ms",
            n->name, (int)throttle_time_ms);
    /* it reads nothing in that time: nothing can be answered */
    kp__requests_extend(n, until_ns - (n->throttled_until_ns > c->now_ns
                                           ? n->throttled_until_ns
                                           : c->now_ns));
    n->throttled_until_ns = until_ns;
    kp__connection_arm(n);
}

/* -- the steps of a turn -- */

uint32_t kp__client_read(struct network_client *c,
                         const struct poll_event *events, size_t count,
                         int64_t now_ns)
{
    uint32_t answers = 0;

    c->now_ns = now_ns;
    for (size_t i = 0; i < count; i++)
        if (events[i].owner != NULL)
            kp__stream_event(events[i].owner, events[i].events, &answers);
    show(c);
    return answers;
}

void kp__client_timers(struct network_client *c, int64_t now_ns)
{
    uint32_t answers = 0;
    struct heap_node *first;

    c->now_ns = now_ns;
    kp__requests_serve_refused(c);
    kp__connection_serve_doomed(c, &answers);
    kp__requests_expire(c, &answers);
    while ((first = kp__heap_first(&c->timers)) != NULL &&
           first->at_ns <= now_ns)
        kp__connection_timer(KP_CONTAINER(first, struct node, timer));
    kp__addresses_poll(c);
    show(c);
}

bool kp__client_write(struct network_client *c, int64_t now_ns)
{
    struct list now;
    struct list_node *link;
    bool any = false;

    c->now_ns = now_ns;
    kp__list_init(&now);
    kp__list_splice_back(&now, &c->writable);
    while ((link = kp__list_pop_front(&now)) != NULL) {
        struct node *n = KP_CONTAINER(link, struct node, write_link);
        uint32_t before = n->request_count;

        any = kp__stream_write(n) || any;
        /* acks=0: what is written is ended */
        if (n->request_count < before && kp__client_can_send(c, n, now_ns))
            c->events.node_can_send(c->events.arg, n);
    }
    show(c);
    return any;
}

int64_t kp__client_next_timer(const struct network_client *c)
{
    const struct heap_node *timer = kp__heap_first(&c->timers);
    const struct heap_node *deadline = kp__heap_first(&c->deadlines);
    int64_t at_ns = KP_NEVER;

    if (!kp__list_empty(&c->refused) || !kp__list_empty(&c->doomed) ||
        !kp__list_empty(&c->writable))
        return c->now_ns;
    if (timer != NULL)
        at_ns = timer->at_ns;
    if (deadline != NULL && deadline->at_ns < at_ns)
        at_ns = deadline->at_ns;
    return at_ns;
}

#ifdef KP_DEBUG
static void check_state(const struct network_client *c, const struct node *n)
{
    switch (n->state) {
    case CONNECTION_NONE:
        KP_CHECK(!n->wanted || n->timer.in_heap);
        KP_CHECK(n->request_count == 0);
        break;
    case CONNECTION_RESOLVING:
        KP_CHECK(n->timer.in_heap && kp__node_linked(&n->resolve_link));
        KP_CHECK(n->resolve != NULL || c->lookups >= LOOKUPS_MAX);
        break;
    case CONNECTION_CONNECTING:
        KP_CHECK(n->timer.in_heap && n->watched == POLL_WRITE);
        break;
    case CONNECTION_HANDSHAKE:
        KP_CHECK(n->request_count > 0 || n->doom == DOOM_BROKEN);
        break;
    case CONNECTION_READY:
        KP_CHECK(n->throttled_until_ns == 0 || n->timer.in_heap);
        break;
    }
}

static void check_end(const struct node *n)
{
    if (n->doom == DOOM_LEAVE)
        KP_CHECK(!n->listed);
    if (n->doom == DOOM_LEAVE && n->request_count > 0)
        return; /* whose ends are awaited */
    KP_CHECK(n->doom == DOOM_NONE || kp__node_linked(&n->doom_link));
}

static void check_writing(const struct node *n)
{
    bool queued = !kp__list_empty(&n->queue);

    switch (n->writing) {
    case WRITING_FREE:
    case WRITING_DRAINING:
        KP_CHECK(!queued || kp__node_linked(&n->write_link));
        break;
    case WRITING_BLOCKED:
        KP_CHECK(queued && (n->watched & POLL_WRITE) != 0);
        break;
    case WRITING_BROKEN:
        KP_CHECK(n->doom == DOOM_BROKEN);
        break;
    }
}

void kp__client_check(const struct network_client *c)
{
    for (size_t i = 0; i < c->node_count; i++) {
        check_state(c, c->nodes[i]);
        check_end(c->nodes[i]);
        check_writing(c->nodes[i]);
    }
}
#endif
