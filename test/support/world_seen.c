/* SPDX-License-Identifier: BSD-2-Clause */
/* world_seen.c - what reached the brokers, and whether the reports are true.
 *
 * The two oracles: a sequence number of a producer id, epoch and partition
 * names one record for ever; and what a report says of the log is what the
 * log holds. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/codec/codec.h"
#include "test/support/world_state.h"

#define NO_ID UINT32_MAX
#define CRC_FROM 21 /* what the crc of a batch covers begins here */

/* -- Produce requests, taken apart -- */

static uint32_t id_of(const uint8_t *value, size_t size)
{
    uint32_t id = 0;

    if (value == NULL || size < 9 || value[8] != ':')
        return NO_ID;
    for (int i = 0; i < 8; i++) {
        int c = value[i];

        if (c >= '0' && c <= '9')
            c -= '0';
        else if (c >= 'a' && c <= 'f')
            c -= 'a' - 10;
        else
            return NO_ID;
        id = id << 4 | (uint32_t)c;
    }
    return id;
}

static void name_record(struct world *w, const struct world_attempt *a,
                        int32_t index, uint32_t id)
{
    struct {
        int64_t producer_id;
        int32_t partition, epoch, sequence;
        char topic[44];
    } key;
    void *known;

    if (a->header.producer_id < 0)
        return;
    memset(&key, 0, sizeof(key));
    key.producer_id = a->header.producer_id;
    key.partition = a->partition;
    key.epoch = a->header.producer_epoch;
    key.sequence = (int32_t)(((uint32_t)a->header.base_sequence +
                              (uint32_t)index) &
                             INT32_MAX);
    (void)snprintf(key.topic, sizeof(key.topic), "%.43s", a->topic);
    known = kp__map_get(&w->names, &key, sizeof(key));
    if (known != NULL && (uintptr_t)known != (uintptr_t)id + 1)
        world_fail(w,
                   "I-15: sequence %d of id %lld, epoch %d, %s [%d] was record %u "
                   "and is now record %u",
                   (int)key.sequence, (long long)key.producer_id,
                   (int)key.epoch, a->topic, (int)a->partition,
                   (uint32_t)((uintptr_t)known - 1), id);
    if (!kp__map_put(&w->names, &key, sizeof(key),
                     (void *)((uintptr_t)id + 1)))
        abort();
}

/* I-16: what may be in a log under one identity is not sent under another. */
static void check_identity(struct world *w, const struct world_attempt *a,
                           int32_t index, uint32_t id)
{
    const struct world_record *r = w->records[id];
    int32_t sequence = (int32_t)(((uint32_t)a->header.base_sequence +
                                  (uint32_t)index) &
                                 INT32_MAX);

    if (!r->appended || a->header.producer_id < 0 || w->lost_state ||
        (r->appended_id == a->header.producer_id &&
         r->appended_epoch == a->header.producer_epoch &&
         r->appended_sequence == sequence))
        return;
    world_fail(w,
               "I-16: record %u was appended under epoch %d as %d and is sent "
               "under epoch %d as %d",
               id, (int)r->appended_epoch, (int)r->appended_sequence,
               (int)a->header.producer_epoch, (int)sequence);
}

static void keep_id(struct world *w, uint32_t id)
{
    if (w->id_count == w->id_capacity) {
        w->id_capacity = w->id_capacity == 0 ? 256 : 2 * w->id_capacity;
        w->ids = world_must(
            realloc(w->ids, w->id_capacity * sizeof(*w->ids)));
    }
    w->ids[w->id_count++] = id;
}

static void check_record_of(struct world *w, const struct world_attempt *a,
                            const struct record_view *v, uint32_t id)
{
    const struct world_record *r;

    if (id >= w->record_count)
        world_fail(w, "I-03: a record that nobody sent reached a broker");
    r = w->records[id];
    if ((strcmp(r->topic, a->topic) != 0 && a->topic[0] != '?') ||
        (r->partition >= 0 && r->partition != a->partition))
        world_fail(w, "I-24: record %u went to %s [%d]", id, a->topic,
                   (int)a->partition);
    if (v->value_size != r->size ||
        memcmp(v->value, r->value, r->size) != 0)
        world_fail(w, "I-24: record %u has other bytes", id);
}

static void see_records(struct world *w, struct world_attempt *a,
                        const uint8_t *body, size_t size)
{
    struct record_view v;
    struct reader r;
    int32_t n = 0;

    kp__reader_init(&r, body, size);
    while (kp__record_next(&r, &v)) {
        uint32_t id = id_of(v.value, v.value_size);

        if (v.offset_delta != n)
            world_fail(w, "I-24: offset delta %d of record %d in a batch",
                       (int)v.offset_delta, (int)n);
        if (id == NO_ID && v.value_size >= 9)
            world_fail(w, "I-24: a record without an id reached a broker");
        if (id != NO_ID) {
            check_record_of(w, a, &v, id);
            check_identity(w, a, n, id);
            name_record(w, a, n, id);
            if (n == 0)
                a->first_id = id;
        }
        keep_id(w, id);
        n++;
    }
    if (r.failed || n != a->header.record_count)
        world_fail(w, "I-24: a batch of %d records with %d in it",
                   (int)a->header.record_count, (int)n);
}

static void see_body(struct world *w, struct world_attempt *a,
                     const uint8_t *body, size_t size)
{
    enum codec_id id = (enum codec_id)(a->header.attributes & 7);
    struct buf raw;

    if (id == CODEC_NONE) {
        see_records(w, a, body, size);
        return;
    }
    kp__buf_init(&raw);
    if (!kp__codec(id)->decompress(body, size, 64 * 1024 * 1024, &raw))
        world_fail(w, "I-24: a batch that cannot be decompressed");
    see_records(w, a, raw.data, raw.size);
    kp__buf_fini(&raw);
}

static int32_t read_ids(const uint8_t *body, size_t size, uint32_t *ids,
                        int32_t most)
{
    struct record_view v;
    struct reader r;
    int32_t n = 0;

    kp__reader_init(&r, body, size);
    while (n < most && kp__record_next(&r, &v))
        ids[n++] = id_of(v.value, v.value_size);
    return n;
}

uint32_t *world_ids_of(const uint8_t *batch, size_t size, int32_t *count)
{
    struct record_batch_header h;
    struct reader r;
    struct buf raw;
    uint32_t *ids;

    kp__reader_init(&r, batch, size);
    if (!kp__record_batch_decode(&r, &h))
        abort();
    ids = world_must(calloc((size_t)h.record_count + 1, sizeof(*ids)));
    batch += RECORD_BATCH_HEADER_SIZE;
    size -= RECORD_BATCH_HEADER_SIZE;
    kp__buf_init(&raw);
    if ((h.attributes & 7) == CODEC_NONE)
        *count = read_ids(batch, size, ids, h.record_count);
    else if (kp__codec((enum codec_id)(h.attributes & 7))
                 ->decompress(batch, size, 64 * 1024 * 1024, &raw))
        *count = read_ids(raw.data, raw.size, ids, h.record_count);
    else
        *count = 0;
    kp__buf_fini(&raw);
    return ids;
}

static struct world_attempt *new_attempt(struct world *w)
{
    if (w->attempt_count == w->attempt_capacity) {
        w->attempt_capacity = w->attempt_capacity == 0
                                  ? 64
                                  : 2 * w->attempt_capacity;
        w->attempts = world_must(realloc(
            w->attempts, w->attempt_capacity * sizeof(*w->attempts)));
    }
    memset(&w->attempts[w->attempt_count], 0, sizeof(*w->attempts));
    return &w->attempts[w->attempt_count++];
}

/* Also of topics that will be gone when their id is met. */
static void remember_topic(struct world *w, const char *name,
                           const struct uuid *id)
{
    for (size_t i = 0; i < w->topic_count; i++)
        if (memcmp(&w->topics[i].id, id, sizeof(*id)) == 0)
            return;
    if (w->topic_count == WORLD_TOPICS_MAX)
        return;
    w->topics[w->topic_count].id = *id;
    (void)snprintf(w->topics[w->topic_count++].name, 64, "%s", name);
}

void world_name_topic(struct world *w, const struct produce_request_topic *t,
                      char out[64])
{
    const char *name;
    struct uuid id;

    if (t->name.size > 0) {
        (void)snprintf(out, 64, "%.*s", (int)t->name.size, t->name.data);
        return;
    }
    for (size_t i = 0;
         (name = kb_topic_name(w->cluster, i, &(bool){0})) != NULL; i++)
        if (kb_topic_id(w->cluster, name, &id))
            remember_topic(w, name, &id);
    (void)snprintf(out, 64, "?");
    for (size_t i = 0; i < w->topic_count; i++)
        if (memcmp(&w->topics[i].id, &t->topic_id, sizeof(id)) == 0)
            (void)snprintf(out, 64, "%s", w->topics[i].name);
}

static void see_batch(struct world *w, int32_t node, int16_t version,
                      const struct produce_request *q,
                      const struct produce_request_topic *t,
                      const struct produce_request_partition *p)
{
    struct world_attempt *a = new_attempt(w);
    struct reader r;

    a->at_ns = w->now_ns;
    a->node = node;
    a->request = w->request_count;
    a->acks = q->acks;
    a->version = version;
    world_name_topic(w, t, a->topic);
    a->partition = p->index;
    a->size = p->records.size;
    a->first_id = NO_ID;
    a->ids_at = w->id_count;
    kp__reader_init(&r, p->records.data, p->records.size);
    if (!kp__record_batch_decode(&r, &a->header))
        world_fail(w, "I-30: a batch whose header cannot be read");
    if (kp__crc32c(0, (const uint8_t *)p->records.data + CRC_FROM,
                   p->records.size - CRC_FROM) != a->header.crc)
        world_fail(w, "I-30: a batch whose crc is wrong");
    see_body(w, a, (const uint8_t *)p->records.data + RECORD_BATCH_HEADER_SIZE,
             p->records.size - RECORD_BATCH_HEADER_SIZE);
    world_trace(w,
                "node %d, request %u: %s [%d] epoch %d sequence %d, %d records "
                "from %u",
                (int)node, a->request, a->topic, (int)a->partition,
                (int)a->header.producer_epoch, (int)a->header.base_sequence,
                (int)a->header.record_count, a->first_id);
}

void world_seen_frame(struct world *w, int32_t node, const uint8_t *frame,
                      size_t size)
{
    const struct api *api = kp__api(API_PRODUCE);
    struct request_header h;
    struct produce_request q;
    struct arena arena;
    struct reader r;

    kp__reader_init(&r, frame, size);
    if (!kp__request_header_decode(&r, &h))
        world_fail(w, "I-30: a request whose header cannot be read");
    world_digest_add(w, kp__crc32c(0, frame, size));
    world_trace(w, "node %d: api %d version %d, %zu bytes", (int)node,
                (int)h.api_key, (int)h.version, size);
    if (h.api_key != API_PRODUCE)
        return;
    kp__arena_init(&arena);
    if (!kp__schema_decode(api->request, &r, &arena, h.version,
                           kp__api_flexible(api, h.version), &q))
        world_fail(w, "I-30: a Produce request that cannot be read");
    for (size_t i = 0; i < q.topics.count; i++) {
        const struct produce_request_topic *t = q.topics.items;
        const struct produce_request_partition *p = t[i].partitions.items;

        for (size_t j = 0; j < t[i].partitions.count; j++)
            see_batch(w, node, h.version, &q, &t[i], &p[j]);
    }
    w->request_count++;
    kp__arena_fini(&arena);
}

/* The newest attempt that a verdict may speak of; or NULL. */
static const struct world_attempt *attempt_of(const struct world *w,
                                              const struct kb_verdict *v)
{
    for (size_t i = w->attempt_count; i-- > 0;) {
        const struct world_attempt *a = &w->attempts[i];

        if (a->node == v->node_id && a->partition == v->partition &&
            a->header.crc == v->header.crc && a->size == v->batch_size)
            return a;
    }
    return NULL;
}

static void note_append(struct world *w, const struct world_attempt *a,
                        int32_t index, uint32_t id)
{
    struct world_record *r = id < w->record_count ? w->records[id] : NULL;

    if (r == NULL)
        return;
    if (w->is_sim && r->reported && r->report.stored == KP_STORED_NO)
        world_fail(w, "I-04: record %u was reported NO and is appended", id);
    r->appended = true;
    r->appended_id = a->header.producer_id;
    r->appended_epoch = a->header.producer_epoch;
    r->appended_sequence = (int32_t)(((uint32_t)a->header.base_sequence +
                                      (uint32_t)index) &
                                     INT32_MAX);
}

void world_seen_verdict(void *world, const struct kb_verdict *v)
{
    struct world *w = world;
    const struct world_attempt *a =
        v->appended && v->header_valid ? attempt_of(w, v) : NULL;

    for (int32_t i = 0; a != NULL && i < a->header.record_count; i++)
        note_append(w, a, i, w->ids[a->ids_at + (size_t)i]);
}

size_t world_attempts(const struct world *w)
{
    return w->attempt_count;
}

const struct world_attempt *world_attempt(const struct world *w, size_t i)
{
    if (i >= w->attempt_count)
        world_fail(w, "there were %zu batches, not %zu", w->attempt_count,
                   i + 1);
    return &w->attempts[i];
}

uint32_t world_requests(const struct world *w)
{
    return w->request_count;
}

/* -- as text -- */

static void add_id(char **text, size_t *size, uint32_t id)
{
    *text = world_must(realloc(*text, *size + 16));
    *size += (size_t)snprintf(*text + *size, 16, "%s%u",
                              *size > 0 ? " " : "", id);
}

static const char *keep_text(struct world *w, char *text)
{
    free(w->text);
    w->text = text;
    return text != NULL ? text : "";
}

const char *world_log(struct world *w, const char *topic, int32_t partition)
{
    struct kb_log *log = kb_log_open(w->cluster, topic, partition);
    struct kb_record r;
    char *text = NULL;
    size_t size = 0;

    while (log != NULL && kb_log_next(log, &r))
        add_id(&text, &size, id_of(r.value, r.value_size));
    if (log != NULL)
        kb_log_close(log);
    return keep_text(w, text);
}

const char *world_callbacks(struct world *w)
{
    char *text = NULL;
    size_t size = 0;

    for (uint64_t at = 0; at < w->callback_count + w->polled_count; at++)
        for (uint32_t i = 0; i < w->record_count; i++) {
            const struct world_record *r = w->records[i];

            if ((r->callbacks > 0 && r->callback_at == at) ||
                (r->polled > 0 && r->polled_at == at))
                add_id(&text, &size, i);
        }
    return keep_text(w, text);
}

/* -- the oracle -- */

struct stored {
    uint32_t times;
    int32_t partition;
    int64_t offset;
    bool at_report; /* one copy stands where the report says */
};

/* A record without a time of its own is stamped by the send. */
static void check_time_of(const struct world *w, const struct world_record *r,
                          const struct kb_record *k)
{
    if (w->wall_jumped || r->state != WORLD_TAKEN ||
        (k->timestamp_ms >= r->called_wall_ms &&
         k->timestamp_ms <= r->returned_wall_ms))
        return;
    world_fail(w, "I-68: record %u is stamped %lld ms off", r->id,
               (long long)(k->timestamp_ms - r->called_wall_ms));
}

/* Of a batch that it had, a broker says the time of its last record. */
static void check_stamp(const struct world *w, const struct world_record *r,
                        const struct kb_record *k)
{
    if (w->lost_records || r->report.stored != KP_STORED_YES ||
        r->report.offset != k->offset || r->report.timestamp_ms < 0 ||
        r->report.timestamp_ms == k->timestamp_ms ||
        (r->report.timestamp_ms > k->timestamp_ms && w->idempotent))
        return;
    world_fail(w, "I-12: record %u was reported with time %lld, not %lld",
               r->id, (long long)r->report.timestamp_ms,
               (long long)k->timestamp_ms);
}

/* A frame on a connection that is gone may be taken in late.  Under a newer
 * epoch of its producer id a broker refuses it; under another id none can tell.
 * Such a record was reported as one that may be stored. */
static bool may_come_late(const struct world_record *r,
                          const struct world_record *latest)
{
    return r->report.stored == KP_STORED_MAYBE &&
           r->appended_id != latest->appended_id;
}

static void read_log(struct world *w, const char *topic, int32_t partition,
                     struct stored *stored)
{
    struct kb_log *log = kb_log_open(w->cluster, topic, partition);
    struct kb_record k;
    const struct world_record *latest = NULL; /* by its call, so far */

    while (log != NULL && kb_log_next(log, &k)) {
        uint32_t id = id_of(k.value, k.value_size);

        if (id >= w->record_count)
            continue; /* too small for an id */
        stored[id].times++;
        stored[id].partition = partition;
        stored[id].offset = k.offset;
        if (w->records[id]->report.offset == k.offset)
            stored[id].at_report = true;
        check_stamp(w, w->records[id], &k);
        if (w->is_sim)
            check_time_of(w, w->records[id], &k);
        if (latest != NULL && w->idempotent && !w->lost_state &&
            w->records[id]->returned_at < latest->called_at &&
            !may_come_late(w->records[id], latest))
            world_fail(w, "I-11: %s [%d]: record %u stands behind record %u",
                       topic, (int)partition, id, latest->id);
        if (latest == NULL || w->records[id]->called_at > latest->called_at)
            latest = w->records[id];
    }
    if (log != NULL)
        kb_log_close(log);
}

static void check_time(const struct world *w, const struct world_record *r)
{
    int64_t limit_ns = w->p->settings.delivery_timeout_ns + w->held_ns;

    if (w->held)
        limit_ns += w->now_ns - w->held_since_ns;
    if (!r->reported && r->state == WORLD_TAKEN &&
        (r->flags & (WORLD_FUTURE | WORLD_CALLBACK)) != 0 &&
        w->now_ns > r->returned_ns + limit_ns)
        world_fail(w, "I-02: record %u has no report", r->id);
    if (r->reported && (r->flags & WORLD_QUEUE) == 0 &&
        r->reported_ns > r->returned_ns + limit_ns)
        world_fail(w, "I-02: record %u was reported %lld ms late", r->id,
                   (long long)((r->reported_ns - r->returned_ns - limit_ns) /
                               KP_NS_PER_MS));
}

static void check_truth(const struct world *w, const struct world_record *r,
                        const struct stored *s)
{
    if (r->state == WORLD_REFUSED && s->times > 0)
        world_fail(w, "I-03: record %u was refused and is in the log", r->id);
    if (w->idempotent && !w->lost_state && s->times > 1)
        world_fail(w, "I-14: record %u is in the log %u times", r->id, s->times);
    if (!r->reported)
        return;
    if (r->report.err == KP_OK && w->p->settings.acks != 0 &&
        r->report.stored != KP_STORED_YES)
        world_fail(w, "I-04: record %u: KP_OK without YES", r->id);
    if (r->report.stored == KP_STORED_NO && s->times > 0)
        world_fail(w, "I-04: record %u was reported NO and is in the log", r->id);
    /* a leader that dies takes with it what no replica has */
    if (r->report.stored != KP_STORED_YES || w->p->settings.acks != -1 ||
        w->lost_records)
        return;
    if (s->times == 0)
        world_fail(w, "I-04: record %u was reported YES and is not in the "
                      "log",
                   r->id);
    if (r->report.offset >= 0 && !s->at_report)
        world_fail(w, "I-12: record %u is not at offset %lld", r->id,
                   (long long)r->report.offset);
    if (r->report.partition != s->partition)
        world_fail(w, "I-12: record %u is in partition %d", r->id,
                   (int)s->partition);
}

#define LANES 64

/* Reports of one partition leave in the order of its sends. */
static void check_report_order(const struct world *w, bool polled)
{
    uint64_t n = polled ? w->polled_count : w->callback_count;
    const struct world_record **by_place =
        world_must(calloc(n + 1, sizeof(*by_place)));
    const struct world_record *latest[LANES] = {NULL};

    for (uint32_t i = 0; i < w->record_count; i++) {
        const struct world_record *r = w->records[i];

        if (polled && r->polled > 0)
            by_place[r->polled_at] = r;
        else if (!polled && r->callbacks > 0)
            by_place[r->callback_at] = r;
    }
    for (uint64_t i = 0; i < n; i++) {
        const struct world_record *r = by_place[i], **last;

        if (r == NULL || strcmp(r->topic, "t") != 0 ||
            r->report.partition < 0 || r->report.partition >= LANES)
            continue;
        last = &latest[r->report.partition];
        if (*last != NULL && r->returned_at < (*last)->called_at)
            world_fail(w, "I-09: record %u was reported after record %u", r->id,
                       (*last)->id);
        if (*last == NULL || r->called_at > (*last)->called_at)
            *last = r;
    }
    free(by_place);
}

void world_forgive(struct world *w, bool lost_records, bool lost_state)
{
    w->lost_records = w->lost_records || lost_records;
    w->lost_state = w->lost_state || lost_state;
}

void world_check(struct world *w)
{
    struct stored *stored =
        world_must(calloc(w->record_count + 1, sizeof(*stored)));
    const char *topic;
    bool deleted;

    for (size_t i = 0;
         (topic = kb_topic_name(w->cluster, i, &deleted)) != NULL; i++)
        for (int32_t p = 0;
             !deleted && p < kb_topic_partitions(w->cluster, topic); p++)
            read_log(w, topic, p, stored);
    for (uint32_t i = 0; i < w->record_count; i++) {
        w->records[i]->stored_times = stored[i].times;
        check_time(w, w->records[i]);
        check_truth(w, w->records[i], &stored[i]);
    }
    check_report_order(w, false);
    check_report_order(w, true);
    free(stored);
}

void world_expect_at(const char *file, int line, const struct world_record *r,
                     kp_err err, kp_err cause, int32_t stored, int64_t offset)
{
    const kp_report *p = &r->report;

    if (!r->reported)
        world_fail(r->w, "%s:%d: record %u has no report (state %d, refused "
                         "%s)",
                   file, line, r->id, (int)r->state, kp_err_name(r->refused));
    if (p->err != err || (cause != WORLD_ANY_CAUSE && p->cause != cause) ||
        p->stored != stored ||
        (offset != WORLD_ANY_OFFSET && p->offset != offset))
        world_fail(r->w,
                   "%s:%d: record %u: %s, cause %s, stored %d, offset %lld; "
                   "not %s, %s, %d, %lld",
                   file, line, r->id, kp_err_name(p->err),
                   kp_err_name(p->cause), (int)p->stored,
                   (long long)p->offset, kp_err_name(err),
                   cause == WORLD_ANY_CAUSE ? "any" : kp_err_name(cause),
                   (int)stored, (long long)offset);
}

void world_seen_fini(struct world *w)
{
    kp__map_fini(&w->names);
    free(w->attempts);
    free(w->ids);
    free(w->text);
}
