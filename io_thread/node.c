/* SPDX-License-Identifier: BSD-2-Clause */
/* node.c - the brokers we know of, and where they are.  I/O thread only.
 *
 * Nodes live until the client ends: the sender and metadata keep pointers to
 * them.  A node that metadata no longer lists is not chosen, and holds no
 * connection once nothing runs on it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io_thread/client.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

int kp__api_place(int16_t api_key)
{
    for (size_t i = 0; i < kp__api_count; i++)
        if (kp__apis[i]->key == api_key)
            return (int)i;
    return -1;
}

static char *make_name(const struct node *n, const char *host, uint16_t port)
{
    char text[300], shown[256];
    const char *open = strchr(host, ':') != NULL ? "[" : "";
    const char *close = open[0] != 0 ? "]" : "";

    kp__str_escape(shown, sizeof shown, host, strlen(host));
    if (n->id < 0)
        kp__format(text, sizeof text, "%s%s%s:%u (bootstrap)", open, shown,
                   close, (unsigned)port);
    else
        kp__format(text, sizeof text, "%s%s%s:%u (id %d)", open, shown, close,
                   (unsigned)port, (int)n->id);
    return kp__strdup(text);
}

/* All or nothing. */
static bool set_place(struct node *n, const char *host, uint16_t port)
{
    char *name = make_name(n, host, port), *copy = kp__strdup(host);

    if (name == NULL || copy == NULL) {
        kp__free(name);
        kp__free(copy);
        return false;
    }
    kp__free(n->host);
    kp__free(n->name);
    n->host = copy;
    n->name = name;
    n->port = port;
    return true;
}

/* A name that is longer is none: it is kept for each node there ever was. */
static void set_rack(struct node *n, const char *rack, size_t size)
{
    char *copy;

    if (size > RACK_SIZE_MAX)
        size = 0;
    if (n->rack != NULL && strlen(n->rack) == size &&
        (size == 0 || memcmp(n->rack, rack, size) == 0))
        return;
    copy = kp__strndup(rack != NULL ? rack : "", size);
    if (copy == NULL)
        return; /* the old one stands: it only guides a preference */
    kp__free(n->rack);
    n->rack = copy;
}

static void init(struct node *n, struct network_client *c, int32_t id)
{
    n->client = c;
    n->id = id;
    n->listed = true;
    kp__list_init(&n->queue);
    kp__list_init(&n->in_flight);
    kp__node_init(&n->write_link);
    kp__node_init(&n->doom_link);
    kp__node_init(&n->resolve_link);
    kp__frames_init(&n->frames, HANDSHAKE_FRAME_MAX);
    for (size_t i = 0; i < kp__api_count; i++)
        n->versions[i] = (struct version_range){-1, -1, -1, -1};
}

static bool make_room(struct network_client *c)
{
    size_t n = c->node_capacity == 0 ? 8 : c->node_capacity * 2;
    struct node **nodes, **old;

    if (c->node_count < c->node_capacity)
        return true;
    nodes = kp__alloc_array(n, sizeof *nodes);
    if (nodes == NULL)
        return false;
    /* Whole at any moment: the child of a fork walks it (kp__client_abandon).
     * */
    old = c->nodes;
    if (c->node_count > 0)
        memcpy(nodes, old, c->node_count * sizeof *nodes);
    c->nodes = nodes;
    c->node_capacity = n;
    kp__free(old);
    return true;
}

void kp__node_free(struct node *n)
{
    kp__frames_fini(&n->frames);
    kp__free(n->addresses);
    kp__free(n->host);
    kp__free(n->rack);
    kp__free(n->name);
    kp__free(n);
}

static void log_full(struct network_client *c, int32_t id, const char *host,
                     uint16_t port)
{
    char shown[256];

    kp__str_escape(shown, sizeof shown, host, strlen(host));
    kp__log_limited(c->log, &c->full_limit, LOG_INTERVAL_NS, KP_LOG_WARN,
                    "connection",
                    "broker %d at %s:%u is passed over: %d others have been "
                    "named already, and no more are remembered; if all of them "
                    "are real, make a new producer",
                    (int)id, shown, (unsigned)port, NODES_MAX);
}

static struct node *create(struct network_client *c, int32_t id,
                           const char *host, uint16_t port)
{
    struct node *n;

    if (c->node_count >= NODES_MAX) {
        log_full(c, id, host, port);
        return NULL;
    }
    if (!make_room(c))
        return NULL;
    n = kp__zalloc(sizeof *n + kp__api_count * sizeof n->versions[0]);
    if (n == NULL)
        return NULL;
    init(n, c, id);
    n->rack = kp__strdup("");
    if (n->rack == NULL || !set_place(n, host, port) ||
        !kp__map_put(&c->by_id, &id, sizeof id, n)) {
        kp__node_free(n);
        return NULL;
    }
    n->metrics = kp__metrics_node(c->metrics, id);
    n->index = c->node_count;
    c->nodes[c->node_count++] = n;
    return n;
}

struct node *kp__node_bootstrap(struct network_client *c, const char *host,
                                uint16_t port)
{
    struct node *n = create(c, c->next_bootstrap_id, host, port);

    if (n != NULL)
        c->next_bootstrap_id--;
    return n;
}

/* Another address: what runs to the old one ends in the next step, and what was
 * learned about it counts no more. */
static bool move(struct node *n, const char *host, uint16_t port)
{
    char old[300];

    kp__format(old, sizeof old, "%s", n->name);
    if (!set_place(n, host, port))
        return false;
    kp__log_limited(n->client->log, &n->client->moved_limit, LOG_INTERVAL_NS,
                    KP_LOG_INFO, "connection", "%s is now at %s", old, n->name);
    n->failures = 0;
    n->setup_failures = 0;
    n->next_attempt_ns = 0;
    n->unreachable = false;
    n->skip_current = false;
    n->address_count = 0;
    n->addresses_left = 0;
    n->error = KP_OK;
    if (n->state != CONNECTION_NONE)
        kp__connection_doom(n, DOOM_MOVED);
    kp__connection_arm(n);
    return true;
}

struct node *kp__client_node(struct network_client *c, int32_t id,
                             const char *host, size_t host_size, int32_t port,
                             const char *rack, size_t rack_size)
{
    struct node *n = kp__client_find(c, id);
    char text[256];

    if (id < 0 || host == NULL || host_size == 0 || host_size >= sizeof text ||
        memchr(host, 0, host_size) != NULL || port <= 0 || port > UINT16_MAX)
        return NULL;
    memcpy(text, host, host_size);
    text[host_size] = 0;
    if (n == NULL) {
        n = create(c, id, text, (uint16_t)port);
        if (n == NULL)
            return NULL;
        n->listed = false; /* until kp__client_keep_only says so */
    } else if ((strcmp(n->host, text) != 0 || n->port != port) &&
               !move(n, text, (uint16_t)port)) {
        return NULL;
    }
    set_rack(n, rack, rack == NULL ? 0 : rack_size);
    return n;
}

struct node *kp__client_find(struct network_client *c, int32_t id)
{
    return kp__map_get(&c->by_id, &id, sizeof id);
}

void kp__node_fail_text(struct node *n, kp_err err, const char *fmt, ...)
{
    va_list args;

    n->error = err;
    va_start(args, fmt);
    (void)vsnprintf(n->error_text, sizeof n->error_text, fmt, args);
    va_end(args);
}

/* -- which nodes are in use -- */

static void unlist(struct node *n)
{
    n->listed = false;
    n->wanted = false;
    if (n->state != CONNECTION_NONE)
        kp__connection_doom(n, DOOM_LEAVE);
    kp__connection_arm(n);
}

void kp__node_list(struct node *n)
{
    n->listed = true;
    if (n->doom != DOOM_LEAVE)
        return;
    n->doom = DOOM_NONE;
    kp__list_remove(&n->doom_link);
}

void kp__client_keep_only(struct network_client *c, const int32_t *ids,
                          size_t count)
{
    for (size_t i = 0; i < c->node_count; i++)
        c->nodes[i]->listed = false;
    for (size_t i = 0; i < count; i++) {
        struct node *n = kp__client_find(c, ids[i]);
        if (n != NULL && n->id >= 0)
            kp__node_list(n);
    }
    for (size_t i = 0; i < c->node_count; i++)
        if (!c->nodes[i]->listed)
            unlist(c->nodes[i]);
    c->bootstrapping = false;
    c->had_metadata = true;
    kp__choose_look_again(c);
}

/* Paced as before: a bootstrap address that has just failed keeps its
 * backoff. */
void kp__client_rebootstrap(struct network_client *c)
{
    kp__log(c->log, KP_LOG_INFO, "metadata",
            "going back to the bootstrap addresses");
    for (size_t i = 0; i < c->node_count; i++) {
        struct node *n = c->nodes[i];
        if (n->seed) {
            kp__node_list(n);
            n->expanded = false;
        } else {
            unlist(n);
        }
    }
    c->bootstrapping = true;
}

void kp__client_set_cluster_id(struct network_client *c, const char *id,
                               size_t size)
{
    char shown[64];
    char *copy;

    if (id == NULL || size == 0 || size > INT16_MAX ||
        (c->cluster_id != NULL && strlen(c->cluster_id) == size &&
         memcmp(c->cluster_id, id, size) == 0))
        return;
    copy = kp__strndup(id, size);
    if (copy == NULL)
        return; /* the check is made with the next answer */
    kp__str_escape(shown, sizeof shown, id, size);
    if (c->cluster_id == NULL)
        kp__log(c->log, KP_LOG_INFO, "metadata", "cluster id %s", shown);
    else
        kp__log_limited(c->log, &c->cluster_limit, LOG_INTERVAL_NS, KP_LOG_WARN,
                        "metadata", "the cluster has another id now: %s",
                        shown);
    kp__free(c->cluster_id);
    c->cluster_id = copy;
}

/* -- looking at a node -- */

int32_t kp__node_id(const struct node *n)
{
    return n->id;
}

const char *kp__node_rack(const struct node *n)
{
    return n->rack;
}

const char *kp__node_name(const struct node *n)
{
    return n->name;
}

struct node_metrics *kp__node_metrics(struct node *n)
{
    return n->metrics;
}

void **kp__node_slot(struct node *n)
{
    return &n->slot;
}

kp_err kp__node_error(const struct node *n, const char **text)
{
    *text = n->error == KP_OK ? "" : n->error_text;
    return n->error;
}

/* Kafka: a broker may offer Produce by topic id and yet have no way to tell the
 * ids (Metadata 10 does): then names. */
static int16_t produce_cap(const struct node *n)
{
    const struct version_range *m = &n->versions[kp__api_place(API_METADATA)];

    return m->max < 10 ? 12 : INT16_MAX;
}

int16_t kp__node_version(const struct node *n, int16_t api_key, int16_t cap)
{
    int place = kp__api_place(api_key);
    const struct version_range *v;
    int16_t max;

    if (place < 0 || n->state != CONNECTION_READY)
        return -1;
    v = &n->versions[place];
    if (v->max < 0)
        return -1;
    if (api_key == API_PRODUCE && cap > produce_cap(n))
        cap = produce_cap(n);
    max = v->max < cap ? v->max : cap;
    return max < v->min ? (int16_t)-1 : max;
}
