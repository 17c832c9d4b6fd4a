/* SPDX-License-Identifier: BSD-2-Clause */
/* cluster.c - the cluster as a whole: its making, its time. */
#include <string.h>

#include "test/broker/internal.h"

void kb_config_default(struct kb_config *g)
{
    memset(g, 0, sizeof(*g));
    g->nodes = 1;
    g->first_node_id = 1;
    g->cluster_id = "kpBrokerModelClusterAA";
    g->host = "127.0.0.1";
    g->auto_create = true;
    g->partitions = 1;
    g->min_insync_replicas = 1;
    g->message_max_bytes = 1048588;
    g->request_max_bytes = 100 * 1024 * 1024;
    g->segment_bytes = 1 << 30;
    g->replica_lag_ns = 30000 * KB_NS_PER_MS;
    g->wall_base_ms = INT64_C(1700000000000);
    g->seed = 1;
    g->strict = true;
}

void kb_timer_set(struct kb_cluster *c, struct kb_timer *t, int64_t at_ns)
{
    kp__heap_set(&c->timers, &t->node, at_ns);
}

void kb_timer_stop(struct kb_cluster *c, struct kb_timer *t)
{
    kp__heap_remove(&c->timers, &t->node);
}

static void on_apply(struct kb_cluster *c, struct kb_timer *t)
{
    struct kb_node *n = KP_CONTAINER(t, struct kb_node, apply);

    if (kb_node_reachable(n))
        kb_controller_apply(c, n);
}

static void on_session(struct kb_cluster *c, struct kb_timer *t)
{
    struct kb_node *n = KP_CONTAINER(t, struct kb_node, session);

    if (!kb_node_reachable(n))
        kb_controller_node_changed(c, n, true);
}

static void node_init(struct kb_cluster *c, int index)
{
    struct kb_node *n = &c->nodes[index];

    n->index = index;
    n->id = c->config.first_node_id + index;
    n->host = kb_strdup(c->host);
    n->port = 9092 + index;
    n->up = true;
    n->image = kb_image_ref(c->image);
    n->apply.fn = on_apply;
    n->session.fn = on_session;
    kp__list_init(&n->conns);
    kb_node_apis_init(n);
}

struct kb_cluster *kb_create(const struct kb_config *config)
{
    struct kb_cluster *c = kb_alloc(sizeof(*c));
    int i;

    c->config = *config;
    c->cluster_id = kb_strdup(config->cluster_id);
    c->host = kb_strdup(config->host);
    c->config.cluster_id = c->cluster_id;
    c->config.host = c->host;
    c->node_count = config->nodes > 0 ? config->nodes : 1;
    c->next_producer_id = config->first_producer_id;
    kp__heap_init(&c->timers);
    kp__rng_seed(&c->rng, config->seed);
    kp__list_init(&c->conns);
    kp__list_init(&c->ready);
    c->image = kb_image_new(c->node_count);
    c->nodes = kb_alloc((size_t)c->node_count * sizeof(c->nodes[0]));
    for (i = 0; i < KB_API_RANGES; i++)
        c->versions_seen[i] = -1;
    for (i = 0; i < c->node_count; i++) {
        node_init(c, i);
        c->image->alive[i] = true;
    }
    return c;
}

static void free_topic(struct kb_cluster *c, struct kb_topic *t)
{
    int32_t p;
    int i;

    for (p = 0; p < t->part_count; p++)
        for (i = 0; i < t->parts[p].count; i++)
            kb_replica_free(c, t->parts[p].replicas[i]);
    kb_free(t->parts);
    kb_free(t->name);
    kb_free(t);
}

static void free_conns(struct kb_cluster *c)
{
    struct list_node *n;

    while ((n = kp__list_first(&c->conns)) != NULL) {
        struct kb_conn *k = KP_CONTAINER(n, struct kb_conn, in_cluster);

        if (k->current != NULL)
            kb_request_discard(k->current);
        kb_conn_free(k);
    }
}

void kb_destroy(struct kb_cluster *c)
{
    size_t t;
    int i;

    if (c == NULL)
        return;
    free_conns(c);
    kb_request_spare_free(c);
    for (t = 0; t < c->topic_count; t++)
        free_topic(c, c->topics[t]);
    for (i = 0; i < c->node_count; i++) {
        kb_image_unref(c->nodes[i].image);
        kb_free(c->nodes[i].host);
        kb_free(c->nodes[i].rack);
    }
    kb_image_unref(c->image);
    kb_free(c->topics);
    kb_free(c->nodes);
    kb_free(c->rules);
    kb_free(c->cluster_id);
    kb_free(c->host);
    kb_free(c);
}

/* A timer fires at its own time, so that what it starts counts from there. */
void kb_advance(struct kb_cluster *c, int64_t now_ns)
{
    struct heap_node *n;

    while ((n = kp__heap_first(&c->timers)) != NULL && n->at_ns <= now_ns) {
        struct kb_timer *t = KP_CONTAINER(n, struct kb_timer, node);

        if (n->at_ns > c->now_ns)
            c->now_ns = n->at_ns;
        kp__heap_remove(&c->timers, n);
        t->fn(c, t);
    }
    if (now_ns > c->now_ns)
        c->now_ns = now_ns;
}

int64_t kb_next_event_ns(const struct kb_cluster *c)
{
    struct heap_node *n = kp__heap_first(&c->timers);

    return n == NULL ? KB_NEVER : n->at_ns;
}

int64_t kb_now_ns(const struct kb_cluster *c)
{
    return c->now_ns;
}

int64_t kb_wall_ms(const struct kb_cluster *c)
{
    return c->config.wall_base_ms + c->now_ns / KB_NS_PER_MS;
}
