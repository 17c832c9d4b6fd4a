/* SPDX-License-Identifier: BSD-2-Clause */
/* truth.c - what is really in the logs: for tests, checkers and --dump. */
#include <inttypes.h>
#include <string.h>

#include "test/broker/internal.h"

struct kb_log {
    const struct kb_replica *replica;
    size_t next; /* batch */
    const struct kb_batch *batch;
    struct reader body;
    int32_t index; /* of the next record in the batch */
    struct buf space;
};

static const struct kb_replica *authority(const struct kb_cluster *c,
                                          const struct kb_topic *t,
                                          int32_t partition)
{
    const struct kb_topic_image *image = kb_image_by_id(c->image, &t->id);
    const struct kb_part *p;
    int node;

    if (partition < 0 || partition >= t->part_count)
        return NULL;
    p = &t->parts[partition];
    node = image != NULL && image->parts[partition].leader >= 0
               ? image->parts[partition].leader
               : p->last_leader;
    if (node < 0)
        return p->count > 0 ? p->replicas[0] : NULL;
    return kb_replica_at(t, partition, &c->nodes[node]);
}

static struct kb_log *open_replica(const struct kb_replica *r)
{
    struct kb_log *l;

    if (r == NULL)
        return NULL;
    l = kb_alloc(sizeof(*l));
    l->replica = r;
    kp__buf_init(&l->space);
    return l;
}

struct kb_log *kb_log_open(const struct kb_cluster *c, const char *topic,
                           int32_t partition)
{
    const struct kb_topic *t = kb_topic_live(c, topic);

    return t == NULL ? NULL : open_replica(authority(c, t, partition));
}

struct kb_log *kb_log_open_id(const struct kb_cluster *c, struct uuid id,
                              int32_t partition)
{
    size_t i;

    for (i = 0; i < c->topic_count; i++)
        if (memcmp(&c->topics[i]->id, &id, sizeof(id)) == 0)
            return open_replica(authority(c, c->topics[i], partition));
    return NULL;
}

struct kb_log *kb_log_open_replica(const struct kb_cluster *c,
                                   const char *topic, int32_t partition,
                                   int32_t node_id)
{
    const struct kb_topic *t = kb_topic_live(c, topic);
    const struct kb_node *n = kb_node_by_id(c, node_id);

    if (t == NULL || n == NULL || partition < 0 || partition >= t->part_count)
        return NULL;
    return open_replica(kb_replica_at(t, partition, n));
}

void kb_log_close(struct kb_log *l)
{
    if (l == NULL)
        return;
    kp__buf_fini(&l->space);
    kb_free(l);
}

static bool next_batch(struct kb_log *l)
{
    const uint8_t *body;
    size_t size;

    if (l->next == l->replica->count)
        return false;
    l->batch = l->replica->batches[l->next++];
    l->index = 0;
    if (kb_batch_body(&l->batch->header, l->batch->data, l->batch->size,
                      &l->space, &body, &size) != 0)
        kb_die("a stored batch does not decompress");
    kp__reader_init(&l->body, body, size);
    return true;
}

static void fill(const struct kb_log *l, const struct record_view *v,
                 struct kb_record *out)
{
    const struct kb_batch *b = l->batch;

    out->offset = b->base_offset + l->index;
    out->timestamp_ms = b->log_append_time
                            ? b->append_time_ms
                            : (int64_t)((uint64_t)b->header.base_timestamp_ms +
                                        (uint64_t)v->timestamp_delta_ms);
    out->key = v->key;
    out->key_size = v->key_size;
    out->value = v->value;
    out->value_size = v->value_size;
    out->headers = v->headers;
    out->headers_size = v->headers_size;
    out->header_count = v->header_count;
    out->producer_id = b->header.producer_id;
    out->producer_epoch = b->header.producer_epoch;
    out->sequence = b->header.producer_id < 0
                        ? -1
                        : kb_sequence_add(b->header.base_sequence, l->index);
    out->batch_base_offset = b->base_offset;
    out->append_time_ms = b->append_time_ms;
    out->leader_epoch = b->leader_epoch;
    out->codec = b->header.attributes & 7;
}

bool kb_log_next(struct kb_log *l, struct kb_record *out)
{
    struct record_view v;

    if (l == NULL)
        return false;
    for (;;) {
        if (l->batch != NULL && kp__record_next(&l->body, &v)) {
            fill(l, &v, out);
            l->index++;
            if (out->offset >= l->replica->start_offset)
                return true;
        } else if (!next_batch(l)) {
            return false;
        }
    }
}

bool kb_header_next(const struct kb_record *r, struct kb_header_cursor *at,
                    struct kb_header *out)
{
    struct reader in;
    int32_t key_size, value_size;

    if (at->index >= r->header_count)
        return false;
    kp__reader_init(&in, r->headers + at->used, r->headers_size - at->used);
    key_size = kp__read_varint(&in);
    if (key_size < 0)
        return false;
    out->key = kp__read_bytes(&in, (size_t)key_size);
    out->key_size = (size_t)key_size;
    value_size = kp__read_varint(&in);
    if (value_size < -1)
        return false;
    out->value =
        value_size < 0 ? NULL : kp__read_bytes(&in, (size_t)value_size);
    out->value_size = value_size < 0 ? 0 : (size_t)value_size;
    if (in.failed)
        return false;
    at->used = r->headers_size - kp__reader_left(&in);
    at->index++;
    return true;
}

static const struct kb_replica *live(const struct kb_cluster *c,
                                     const char *topic, int32_t partition)
{
    const struct kb_topic *t = kb_topic_live(c, topic);

    return t == NULL ? NULL : authority(c, t, partition);
}

int64_t kb_log_start(const struct kb_cluster *c, const char *topic,
                     int32_t partition)
{
    const struct kb_replica *r = live(c, topic, partition);

    return r == NULL ? -1 : r->start_offset;
}

int64_t kb_log_end(const struct kb_cluster *c, const char *topic,
                   int32_t partition)
{
    const struct kb_replica *r = live(c, topic, partition);

    return r == NULL ? -1 : r->end_offset;
}

int64_t kb_high_watermark(const struct kb_cluster *c, const char *topic,
                          int32_t partition)
{
    const struct kb_replica *r = live(c, topic, partition);

    return r == NULL ? -1 : r->high_watermark;
}

void kb_totals(const struct kb_cluster *c, const char *topic,
               struct kb_totals *out)
{
    size_t i;

    memset(out, 0, sizeof(*out));
    for (i = 0; i < c->topic_count; i++) {
        const struct kb_totals *t = &c->topics[i]->totals;

        if (topic != NULL && strcmp(c->topics[i]->name, topic) != 0)
            continue;
        out->batches += t->batches;
        out->records += t->records;
        out->bytes += t->bytes;
        out->duplicates += t->duplicates;
        out->refused += t->refused;
    }
}

static void print_bytes(FILE *out, const char *name, const uint8_t *data,
                        size_t size)
{
    size_t i;

    if (data == NULL) {
        fprintf(out, " %s=null", name);
        return;
    }
    fprintf(out, " %s=\"", name);
    for (i = 0; i < size; i++)
        if (data[i] < 0x20 || data[i] > 0x7e || data[i] == '"' ||
            data[i] == '\\')
            fprintf(out, "\\x%02x", data[i]);
        else
            fputc(data[i], out);
    fputc('"', out);
}

static void print_record(FILE *out, const char *topic, int32_t partition,
                         const struct kb_record *r)
{
    struct kb_header_cursor at = {0, 0};
    struct kb_header h;

    fprintf(out,
            "%s %" PRId32 " offset=%" PRId64 " ts=%" PRId64 " pid=%" PRId64
            " epoch=%d seq=%" PRId32 " codec=%d",
            topic, partition, r->offset, r->timestamp_ms, r->producer_id,
            r->producer_epoch, r->sequence, r->codec);
    print_bytes(out, "key", r->key, r->key_size);
    print_bytes(out, "value", r->value, r->value_size);
    while (kb_header_next(r, &at, &h)) {
        print_bytes(out, "header", h.key, h.key_size);
        print_bytes(out, "is", h.value, h.value_size);
    }
    fputc('\n', out);
}

static void dump_partition(const struct kb_cluster *c, const struct kb_topic *t,
                           int32_t partition, FILE *out)
{
    struct kb_log *l = kb_log_open_id(c, t->id, partition);
    struct kb_record r;

    while (kb_log_next(l, &r))
        print_record(out, t->name, partition, &r);
    kb_log_close(l);
}

void kb_dump(const struct kb_cluster *c, FILE *out)
{
    size_t i;
    int32_t p;

    for (i = 0; i < c->topic_count; i++)
        for (p = 0; p < c->topics[i]->part_count; p++)
            dump_partition(c, c->topics[i], p, out);
}

void kb_print_totals(const struct kb_cluster *c, FILE *out)
{
    size_t i;

    for (i = 0; i < c->topic_count; i++) {
        const struct kb_topic *t = c->topics[i];

        fprintf(out,
                "topic %s partitions %" PRId32 " records %" PRId64
                " batches %" PRId64 " bytes %" PRId64 " duplicates %" PRId64
                " refused %" PRId64 "%s\n",
                t->name, t->part_count, t->totals.records, t->totals.batches,
                t->totals.bytes, t->totals.duplicates, t->totals.refused,
                t->deleted ? " deleted" : "");
    }
    fflush(out);
}
