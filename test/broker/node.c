/* SPDX-License-Identifier: BSD-2-Clause */
/* node.c - one broker: its life, its image, the versions it speaks. */
#include <string.h>

#include "test/broker/internal.h"

/* Fetch and FindCoordinator are listed and not served: librdkafka looks at them
 * to find out which record format and codecs a broker knows. */
static const struct kb_api_range default_apis[KB_API_RANGES] = {
    {API_PRODUCE, 0, 13, true},
    {1, 4, 18, false},
    {API_METADATA, 0, 13, true},
    {10, 0, 6, false},
    {API_API_VERSIONS, 0, 5, true},
    {API_INIT_PRODUCER_ID, 0, 6, true},
    {17, 0, 1, false},
};

void kb_node_apis_init(struct kb_node *n)
{
    memcpy(n->apis, default_apis, sizeof(default_apis));
}

struct kb_api_range *kb_node_api(struct kb_node *n, int16_t key)
{
    int i;

    for (i = 0; i < KB_API_RANGES; i++)
        if (n->apis[i].key == key)
            return &n->apis[i];
    return NULL;
}

struct kb_node *kb_node_by_id(const struct kb_cluster *c, int32_t id)
{
    int64_t index = (int64_t)id - c->config.first_node_id;

    return index < 0 || index >= c->node_count ? NULL : &c->nodes[index];
}

static void apply_part(struct kb_cluster *c, struct kb_node *n,
                       struct kb_topic *t, int32_t index,
                       const struct kb_part_image *p)
{
    struct kb_replica *r = kb_replica_at(t, index, n);

    if (kb_part_has(p->replicas, p->replica_count, n->index))
        r = kb_replica_get(c, t, index, n);
    if (r != NULL)
        kb_replica_role(c, r, p->leader == n->index, p->leader_epoch);
}

void kb_node_apply_topic(struct kb_cluster *c, struct kb_node *n,
                         const struct kb_topic_image *t)
{
    int32_t p;

    for (p = 0; p < t->part_count; p++) {
        struct kb_part_image part = t->parts[p];

        apply_part(c, n, t->topic, p, &part);
    }
}

static void drop_topic(struct kb_cluster *c, struct kb_node *n,
                       struct kb_topic *t)
{
    int32_t p;

    for (p = 0; p < t->part_count; p++) {
        struct kb_replica *r = kb_replica_at(t, p, n);

        if (r != NULL)
            kb_replica_role(c, r, false, -1);
    }
}

static int compare(const struct kb_image *a, size_t ai,
                   const struct kb_image *b, size_t bi)
{
    if (ai == a->count)
        return 1;
    if (bi == b->count)
        return -1;
    return memcmp(&a->by_id[ai]->topic->id, &b->by_id[bi]->topic->id,
                  sizeof(struct uuid));
}

/* Publishing is never nested, so both images stay as they are meanwhile. */
void kb_node_apply(struct kb_cluster *c, struct kb_node *n,
                   struct kb_image *image)
{
    struct kb_image *old = n->image;
    size_t oi = 0, ni = 0;

    if (old == image)
        return;
    n->image = kb_image_ref(image);
    while (oi < old->count || ni < image->count) {
        int d = compare(old, oi, image, ni);

        if (d < 0) {
            drop_topic(c, n, old->by_id[oi++]->topic);
        } else if (d > 0) {
            kb_node_apply_topic(c, n, image->by_id[ni++]);
        } else {
            if (old->by_id[oi] != image->by_id[ni])
                kb_node_apply_topic(c, n, image->by_id[ni]);
            oi++;
            ni++;
        }
    }
    kb_image_unref(old);
}

int kb_node_count(const struct kb_cluster *c)
{
    return c->node_count;
}

int32_t kb_node_id(const struct kb_cluster *c, int index)
{
    return c->nodes[index].id;
}

void kb_node_address(struct kb_cluster *c, int32_t node_id, const char *host,
                     int32_t port)
{
    struct kb_node *n = kb_node_by_id(c, node_id);

    if (n == NULL)
        return;
    kb_free(n->host);
    n->host = kb_strdup(host);
    n->port = port;
}

void kb_node_rack(struct kb_cluster *c, int32_t node_id, const char *rack)
{
    struct kb_node *n = kb_node_by_id(c, node_id);

    if (n == NULL)
        return;
    kb_free(n->rack);
    n->rack = kb_strdup(rack);
}

bool kb_node_up(const struct kb_cluster *c, int32_t node_id)
{
    const struct kb_node *n = kb_node_by_id(c, node_id);

    return n != NULL && n->up;
}

void kb_node_versions(struct kb_cluster *c, int32_t node_id, int16_t api,
                      int16_t min, int16_t max)
{
    int i;

    for (i = 0; i < c->node_count; i++) {
        struct kb_api_range *r = kb_node_api(&c->nodes[i], api);

        if (r == NULL || (node_id != -1 && c->nodes[i].id != node_id))
            continue;
        r->min = min;
        r->max = max;
    }
}

static void end_connections(struct kb_node *n)
{
    struct list_node *at = kp__list_first(&n->conns);

    while (at != NULL) {
        struct kb_conn *k = KP_CONTAINER(at, struct kb_conn, in_node);

        at = kp__list_next(&n->conns, at);
        kb_conn_end(k, KB_OUT_RESET);
    }
}

/* The process is gone: nobody on this node leads or follows anything. */
static void forget_roles(struct kb_cluster *c, struct kb_node *n)
{
    size_t i;
    int32_t p;

    for (i = 0; i < c->topic_count; i++)
        for (p = 0; p < c->topics[i]->part_count; p++) {
            struct kb_replica *r = kb_replica_at(c->topics[i], p, n);

            if (r == NULL)
                continue;
            r->is_leader = false;
            r->leader_epoch = r->fetched_epoch = -1;
            kb_timer_stop(c, &r->fetch);
            kb_timer_stop(c, &r->lag);
        }
}

void kb_node_stop(struct kb_cluster *c, int32_t node_id, bool clean,
                  int64_t now_ns)
{
    struct kb_node *n = kb_node_by_id(c, node_id);

    kb_advance(c, now_ns);
    if (n == NULL || !n->up)
        return;
    if (clean) {
        kb_controller_leave(c, n);
        kb_advance(c, now_ns);
    }
    n->up = false;
    n->paused = n->isolated = false;
    end_connections(n);
    forget_roles(c, n);
    kb_timer_stop(c, &n->apply);
    kb_controller_node_changed(c, n, false);
    kb_advance(c, now_ns);
}

static void lose(struct kb_cluster *c, struct kb_node *n, enum kb_start how)
{
    size_t i;
    int32_t p;

    for (i = 0; i < c->topic_count; i++)
        for (p = 0; p < c->topics[i]->part_count; p++) {
            struct kb_replica *r = kb_replica_at(c->topics[i], p, n);

            if (r == NULL)
                continue;
            if (how == KB_LOSE_LOGS)
                kb_replica_wipe(r);
            else if (how == KB_LOSE_PRODUCERS)
                kb_producers_fini(&r->producers);
        }
}

void kb_node_start(struct kb_cluster *c, int32_t node_id, enum kb_start how,
                   int64_t now_ns)
{
    struct kb_node *n = kb_node_by_id(c, node_id);

    kb_advance(c, now_ns);
    if (n == NULL || n->up)
        return;
    lose(c, n, how);
    /* It begins with nothing, so that every role is taken anew. */
    kb_image_unref(n->image);
    n->image = kb_image_new(c->node_count);
    n->up = true;
    kb_controller_node_changed(c, n, true);
    kb_advance(c, now_ns);
}

void kb_node_isolate(struct kb_cluster *c, int32_t node_id, bool on,
                     int64_t now_ns)
{
    struct kb_node *n = kb_node_by_id(c, node_id);

    kb_advance(c, now_ns);
    if (n == NULL || !n->up || n->isolated == on)
        return;
    n->isolated = on;
    kb_controller_node_changed(c, n, false);
    kb_advance(c, now_ns);
}

static void pump_all(struct kb_node *n)
{
    struct list_node *at = kp__list_first(&n->conns);

    while (at != NULL) {
        struct kb_conn *k = KP_CONTAINER(at, struct kb_conn, in_node);

        at = kp__list_next(&n->conns, at);
        if (k->current != NULL)
            kb_request_resume(k->current);
        kb_conn_note_ready(k);
        kb_conn_pump(k);
    }
}

void kb_node_pause(struct kb_cluster *c, int32_t node_id, bool on,
                   int64_t now_ns)
{
    struct kb_node *n = kb_node_by_id(c, node_id);

    kb_advance(c, now_ns);
    if (n == NULL || !n->up || n->paused == on)
        return;
    n->paused = on;
    if (!on)
        pump_all(n); /* before it learns what has changed */
    kb_controller_node_changed(c, n, false);
    kb_advance(c, now_ns);
}
