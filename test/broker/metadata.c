/* SPDX-License-Identifier: BSD-2-Clause */
/* metadata.c - Metadata 0-13, from the node's own image.
 *
 * KafkaApis.handleTopicMetadataRequest: a topic that is created by asking
 * for it is first answered UNKNOWN_TOPIC_OR_PARTITION, and is there the next
 * time. */
#include <string.h>

#include "test/broker/internal.h"

#define NO_OPERATIONS INT32_MIN

static struct text text_of(const char *s)
{
    struct text t = {s, s == NULL ? 0 : strlen(s)};

    return t;
}

static bool fill_brokers(struct kb_request *q, struct array *out)
{
    struct kb_cluster *c = q->conn->cluster;
    const struct kb_image *image = q->conn->node->image;
    struct metadata_broker *b =
        kp__arena_alloc_array(&q->arena, (size_t)c->node_count, sizeof(*b));
    int i;

    if (b == NULL)
        return false;
    out->items = b;
    for (i = 0; i < c->node_count; i++) {
        if (!image->alive[i])
            continue;
        b[out->count].node_id = c->nodes[i].id;
        b[out->count].host = text_of(c->nodes[i].host);
        b[out->count].port = c->nodes[i].port;
        b[out->count++].rack = text_of(c->nodes[i].rack);
    }
    return true;
}

/* Node ids of the members of a set; `alive`: only those which are (1), which
 * are not (0), or all (-1). */
static bool fill_nodes(struct kb_request *q, const uint16_t *set, int count,
                       int alive, struct array *out)
{
    struct kb_cluster *c = q->conn->cluster;
    const struct kb_image *image = q->conn->node->image;
    int32_t *ids =
        kp__arena_alloc_array(&q->arena, (size_t)count + 1, sizeof(*ids));
    int i;

    if (ids == NULL)
        return false;
    out->items = ids;
    for (i = 0; i < count; i++)
        if (alive == -1 || image->alive[set[i]] == (alive == 1))
            ids[out->count++] = c->nodes[set[i]].id;
    return true;
}

static bool fill_partition(struct kb_request *q, const struct kb_part_image *p,
                           int32_t index, struct metadata_partition *out)
{
    struct kb_cluster *c = q->conn->cluster;
    const struct kb_image *image = q->conn->node->image;
    bool led = p->leader >= 0 && image->alive[p->leader];

    out->error_code = led ? 0 : 5;
    out->partition_index = index;
    out->leader_id = led ? c->nodes[p->leader].id : -1;
    out->leader_epoch = p->leader_epoch;
    return fill_nodes(q, p->replicas, p->replica_count, -1,
                      &out->replica_nodes) &&
           fill_nodes(q, p->isr, p->isr_count, -1, &out->isr_nodes) &&
           fill_nodes(q, p->replicas, p->replica_count, 0,
                      &out->offline_replicas);
}

static bool fill_topic(struct kb_request *q, const struct kb_topic_image *t,
                       struct metadata_topic *out)
{
    struct metadata_partition *p =
        kp__arena_alloc_array(&q->arena, (size_t)t->part_count, sizeof(*p));
    int32_t i;

    if (p == NULL)
        return false;
    out->name = text_of(t->topic->name);
    out->topic_id = t->topic->id;
    out->partitions.items = p;
    out->partitions.count = (size_t)t->part_count;
    for (i = 0; i < t->part_count; i++)
        if (!fill_partition(q, &t->parts[i], i, &p[i]))
            return false;
    return true;
}

static int16_t maybe_create(struct kb_request *q,
                            const struct metadata_request *m,
                            const struct text *name)
{
    struct kb_cluster *c = q->conn->cluster;

    if (!kb_topic_name_valid(name->data, name->size))
        return 17;
    /* Before version 4 there is no such field, and asking creates. */
    if (c->config.auto_create && kb_node_reachable(q->conn->node) &&
        (m->allow_auto_topic_creation || q->header.version < 4))
        (void)kb_controller_create(c, name->data, name->size,
                                   c->config.partitions, c->config.replication);
    return 3;
}

static bool answer_topic(struct kb_request *q, const struct metadata_request *m,
                         const struct metadata_request_topic *asked,
                         struct metadata_topic *out)
{
    const struct kb_image *image = q->conn->node->image;
    const struct kb_topic_image *t;

    if (asked->name.data == NULL) {
        t = kb_image_by_id(image, &asked->topic_id);
        out->topic_id = asked->topic_id;
        out->error_code = t == NULL ? 100 : 0;
    } else {
        t = kb_image_by_name(image, asked->name.data, asked->name.size);
        out->name = asked->name;
        if (t == NULL)
            out->error_code = maybe_create(q, m, &asked->name);
    }
    /* Before version 12 a name cannot be null. */
    if (t == NULL && out->name.data == NULL && q->header.version < 12)
        out->name = text_of("");
    return t == NULL || fill_topic(q, t, out);
}

/* A script's error takes the place of what is known of the topic. */
static void force(struct kb_request *q, struct metadata_topic *t)
{
    struct kb_action a;

    if (t->name.data == NULL)
        return;
    kb_decide_part(q, t->name.data, t->name.size, -1, &a);
    if (!a.has_error)
        return;
    t->error_code = a.error;
    t->partitions.count = 0;
}

/* An error of one partition takes its leader away, unless the script says
 * `append`: as if there were none. */
static void force_partitions(struct kb_request *q, struct metadata_topic *t)
{
    struct metadata_partition *p = kb_items(&t->partitions);
    struct kb_action a;
    size_t i;

    for (i = 0; i < t->partitions.count && q->rule_count > 0; i++) {
        kb_decide_part(q, t->name.data, t->name.size, p[i].partition_index, &a);
        if (!a.has_error)
            continue;
        p[i].error_code = a.error;
        if (!a.append)
            p[i].leader_id = -1;
    }
}

static bool answer_asked(struct kb_request *q, const struct metadata_request *m,
                         struct array *out)
{
    const struct metadata_request_topic *asked = kb_items(&m->topics);
    struct metadata_topic *t =
        kp__arena_alloc_array(&q->arena, m->topics.count + 1, sizeof(*t));
    size_t i;

    if (t == NULL)
        return false;
    out->items = t;
    out->count = m->topics.count;
    for (i = 0; i < m->topics.count; i++) {
        t[i].topic_authorized_operations = NO_OPERATIONS;
        if (!answer_topic(q, m, &asked[i], &t[i]))
            return false;
        force(q, &t[i]);
        force_partitions(q, &t[i]);
    }
    return true;
}

static bool answer_all(struct kb_request *q, struct array *out)
{
    const struct kb_image *image = q->conn->node->image;
    struct metadata_topic *t =
        kp__arena_alloc_array(&q->arena, image->count + 1, sizeof(*t));
    size_t i;

    if (t == NULL)
        return false;
    out->items = t;
    out->count = image->count;
    for (i = 0; i < image->count; i++) {
        t[i].topic_authorized_operations = NO_OPERATIONS;
        if (!fill_topic(q, image->by_name[i], &t[i]))
            return false;
        force(q, &t[i]);
        force_partitions(q, &t[i]);
    }
    return true;
}

static int32_t controller_id(const struct kb_request *q)
{
    const struct kb_cluster *c = q->conn->cluster;
    int i;

    for (i = 0; i < c->node_count; i++)
        if (q->conn->node->image->alive[i])
            return c->nodes[i].id;
    return -1;
}

/* A script's error for the answer as a whole is version 13's. */
static void force_whole(struct kb_request *q, struct metadata_response *a)
{
    struct kb_action part;

    if (q->action.has_throttle)
        a->throttle_time_ms = q->throttle_ms = q->action.throttle_ms;
    kb_decide_part(q, "", 0, -1, &part);
    if (part.has_error && q->header.version >= 13)
        a->error_code = part.error;
    if (q->action.no_brokers)
        a->brokers.count = 0;
}

static bool wants_all(const struct kb_request *q,
                      const struct metadata_request *m)
{
    return m->topics.null || (q->header.version == 0 && m->topics.count == 0);
}

bool kb_metadata_handle(struct kb_request *q)
{
    struct kb_cluster *c = q->conn->cluster;
    struct metadata_request m;
    struct metadata_response a;

    if (!kb_request_body(q, &m))
        return false;
    memset(&a, 0, sizeof(a));
    a.cluster_id = text_of(c->cluster_id);
    a.controller_id = controller_id(q);
    a.cluster_authorized_operations = NO_OPERATIONS;
    if (!(wants_all(q, &m) ? answer_all(q, &a.topics)
                           : answer_asked(q, &m, &a.topics)) ||
        !fill_brokers(q, &a.brokers))
        return false;
    force_whole(q, &a);
    kb_request_encode(q, &a);
    kb_request_answer(q);
    return true;
}
