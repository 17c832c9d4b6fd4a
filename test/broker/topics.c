/* SPDX-License-Identifier: BSD-2-Clause */
/* topics.c - topics as things on disks, and their settings. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "test/broker/internal.h"

static void new_id(struct kb_cluster *c, struct uuid *id)
{
    uint64_t high = kp__rng_next(&c->rng), low = kp__rng_next(&c->rng);

    memcpy(&id->b[0], &high, 8);
    memcpy(&id->b[8], &low, 8);
    /* Never the reserved ids, which begin with zeros. */
    id->b[0] |= 0x10;
}

struct kb_topic *kb_topic_new(struct kb_cluster *c, const char *name,
                              size_t size)
{
    struct kb_topic *t = kb_alloc(sizeof(*t));

    t->name = kb_alloc(size + 1);
    memcpy(t->name, name, size);
    t->name_size = size;
    new_id(c, &t->id);
    t->config.max_message_bytes = -1;
    t->config.min_insync_replicas = -1;
    t->config.segment_bytes = -1;
    t->config.before_max_ms = INT64_MAX;
    t->config.after_max_ms = 3600 * 1000;
    c->topics =
        kb_realloc(c->topics, (c->topic_count + 1) * sizeof(c->topics[0]));
    c->topics[c->topic_count++] = t;
    return t;
}

void kb_topic_extend(struct kb_topic *t, int32_t parts)
{
    int32_t i;

    if (parts <= t->part_count)
        return;
    t->parts = kb_realloc(t->parts, (size_t)parts * sizeof(t->parts[0]));
    for (i = t->part_count; i < parts; i++) {
        memset(&t->parts[i], 0, sizeof(t->parts[i]));
        t->parts[i].last_leader = -1;
    }
    t->part_count = parts;
}

struct kb_topic *kb_topic_live(const struct kb_cluster *c, const char *name)
{
    struct kb_topic_image *t = kb_image_by_name(c->image, name, strlen(name));

    return t == NULL ? NULL : t->topic;
}

bool kb_topic_name_valid(const char *name, size_t size)
{
    size_t i;

    if (size == 0 || size > 249)
        return false;
    if (name[0] == '.' && (size == 1 || (size == 2 && name[1] == '.')))
        return false;
    for (i = 0; i < size; i++) {
        char ch = name[i];

        if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
              (ch >= '0' && ch <= '9') || ch == '.' || ch == '_' || ch == '-'))
            return false;
    }
    return true;
}

static bool to_i32(const char *value, int32_t *out)
{
    int64_t v;

    if (!kp__str_to_i64(value, &v) || v < INT32_MIN || v > INT32_MAX)
        return false;
    *out = (int32_t)v;
    return true;
}

bool kb_topic_set(struct kb_cluster *c, const char *name, const char *key,
                  const char *value)
{
    struct kb_topic *t = kb_topic_live(c, name);
    struct kb_topic_config *g;

    if (t == NULL)
        return false;
    g = &t->config;
    if (strcmp(key, "max.message.bytes") == 0)
        return to_i32(value, &g->max_message_bytes);
    if (strcmp(key, "min.insync.replicas") == 0)
        return to_i32(value, &g->min_insync_replicas);
    if (strcmp(key, "segment.bytes") == 0)
        return to_i32(value, &g->segment_bytes);
    if (strcmp(key, "message.timestamp.before.max.ms") == 0)
        return kp__str_to_i64(value, &g->before_max_ms);
    if (strcmp(key, "message.timestamp.after.max.ms") == 0)
        return kp__str_to_i64(value, &g->after_max_ms);
    if (strcmp(key, "cleanup.policy") == 0) {
        g->compacted = strstr(value, "compact") != NULL;
        return true;
    }
    if (strcmp(key, "message.timestamp.type") == 0) {
        g->log_append_time = strcmp(value, "LogAppendTime") == 0;
        return g->log_append_time || strcmp(value, "CreateTime") == 0;
    }
    return false;
}

static bool set_ms(const char *value, int64_t *out_ns)
{
    int64_t ms;

    if (!kp__str_to_i64(value, &ms) || ms < 0 || ms > INT32_MAX)
        return false;
    *out_ns = ms * KB_NS_PER_MS;
    return true;
}

bool kb_set(struct kb_cluster *c, const char *key, const char *value)
{
    struct kb_config *g = &c->config;

    if (strcmp(key, "auto.create.topics.enable") == 0) {
        g->auto_create = strcmp(value, "true") == 0;
        return g->auto_create || strcmp(value, "false") == 0;
    }
    if (strcmp(key, "message.max.bytes") == 0)
        return to_i32(value, &g->message_max_bytes);
    if (strcmp(key, "min.insync.replicas") == 0)
        return to_i32(value, &g->min_insync_replicas);
    if (strcmp(key, "num.partitions") == 0)
        return to_i32(value, &g->partitions) && g->partitions > 0;
    if (strcmp(key, "quota") == 0)
        return kp__str_to_i64(value, &g->quota_bytes_per_s);
    if (strcmp(key, "replication.delay.ms") == 0)
        return set_ms(value, &g->replication_delay_ns);
    if (strcmp(key, "metadata.delay.ms") == 0)
        return set_ms(value, &g->metadata_delay_ns);
    if (strcmp(key, "session.timeout.ms") == 0)
        return set_ms(value, &g->session_timeout_ns);
    if (strcmp(key, "replica.lag.ms") == 0)
        return set_ms(value, &g->replica_lag_ns);
    return false;
}

bool kb_topic_id(const struct kb_cluster *c, const char *name, struct uuid *out)
{
    const struct kb_topic *t = kb_topic_live(c, name);

    if (t == NULL)
        return false;
    *out = t->id;
    return true;
}

int32_t kb_topic_partitions(const struct kb_cluster *c, const char *name)
{
    struct kb_topic_image *t = kb_image_by_name(c->image, name, strlen(name));

    return t == NULL ? 0 : t->part_count;
}

static const struct kb_part_image *part_image(const struct kb_cluster *c,
                                              const char *topic, int32_t p)
{
    struct kb_topic_image *t = kb_image_by_name(c->image, topic, strlen(topic));

    return t == NULL || p < 0 || p >= t->part_count ? NULL : &t->parts[p];
}

int32_t kb_leader(const struct kb_cluster *c, const char *topic,
                  int32_t partition)
{
    const struct kb_part_image *p = part_image(c, topic, partition);

    return p == NULL || p->leader < 0 ? -1 : c->nodes[p->leader].id;
}

int32_t kb_leader_epoch(const struct kb_cluster *c, const char *topic,
                        int32_t partition)
{
    const struct kb_part_image *p = part_image(c, topic, partition);

    return p == NULL ? -1 : p->leader_epoch;
}

bool kb_in_sync(const struct kb_cluster *c, const char *topic,
                int32_t partition, int32_t node_id)
{
    const struct kb_part_image *p = part_image(c, topic, partition);
    const struct kb_node *n = kb_node_by_id(c, node_id);

    return p != NULL && n != NULL &&
           kb_part_has(p->isr, p->isr_count, n->index);
}

const char *kb_topic_name(const struct kb_cluster *c, size_t index,
                          bool *deleted)
{
    if (index >= c->topic_count)
        return NULL;
    if (deleted != NULL)
        *deleted = c->topics[index]->deleted;
    return c->topics[index]->name;
}

/* The replicas of a live partition; NULL: there is none. */
static struct kb_part *live_part(const struct kb_cluster *c, const char *topic,
                                 int32_t partition)
{
    struct kb_topic *t = kb_topic_live(c, topic);

    return t == NULL || partition < 0 || partition >= t->part_count
               ? NULL
               : &t->parts[partition];
}

void kb_follower_stall(struct kb_cluster *c, const char *topic,
                       int32_t partition, int32_t node_id, bool on,
                       int64_t now_ns)
{
    struct kb_part *p;
    int i;

    kb_advance(c, now_ns);
    p = live_part(c, topic, partition);
    for (i = 0; p != NULL && i < p->count; i++) {
        if (p->replicas[i]->node->id != node_id)
            continue;
        p->replicas[i]->stalled = on;
        if (!on)
            kb_replica_want_fetch(c, p->replicas[i]);
    }
    kb_advance(c, now_ns);
}

void kb_storage_fail(struct kb_cluster *c, const char *topic, int32_t partition,
                     int32_t node_id, bool on, int64_t now_ns)
{
    struct kb_part *p;
    int i;

    kb_advance(c, now_ns);
    p = live_part(c, topic, partition);
    for (i = 0; p != NULL && i < p->count; i++) {
        struct kb_replica *r = p->replicas[i];
        struct list_node *w;

        if (r->node->id != node_id)
            continue;
        r->failed = on;
        while (on && (w = kp__list_first(&r->waiting)) != NULL)
            kb_wait_settle(KP_CONTAINER(w, struct kb_wait, in_replica), 56);
        if (!on)
            kb_replica_want_fetch(c, r);
    }
    kb_advance(c, now_ns);
}

void kb_trim(struct kb_cluster *c, const char *topic, int32_t partition,
             int64_t before_offset)
{
    struct kb_part *p = live_part(c, topic, partition);
    int i;

    for (i = 0; p != NULL && i < p->count; i++) {
        struct kb_replica *r = p->replicas[i];
        int64_t to = before_offset < r->high_watermark ? before_offset
                                                       : r->high_watermark;

        if (to > r->start_offset)
            r->start_offset = to;
    }
}

void kb_forget_producer(struct kb_cluster *c, const char *topic,
                        int32_t partition, int64_t producer_id)
{
    struct kb_part *p = live_part(c, topic, partition);
    int i;

    for (i = 0; p != NULL && i < p->count; i++)
        kb_producer_drop(&p->replicas[i]->producers, producer_id);
}

void kb_preset_producer(struct kb_cluster *c, const char *topic,
                        int32_t partition, int64_t producer_id, int16_t epoch,
                        int32_t last_sequence)
{
    struct kb_part *p = live_part(c, topic, partition);
    struct record_batch_header h = {.producer_id = producer_id,
                                    .producer_epoch = epoch,
                                    .base_sequence = last_sequence};
    int i;

    for (i = 0; p != NULL && i < p->count; i++)
        kb_producer_add(&p->replicas[i]->producers, &h, -1, -1);
}
