/* SPDX-License-Identifier: BSD-2-Clause */
/* probe.c - requests by hand, for tests of the broker itself. */
#include "test/broker/probe.h"

#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/codec/codec.h"
#include "lib/wire/record.h"
#include "test/broker/internal.h"

void kb_probe_batch_default(struct kb_probe_batch *b)
{
    memset(b, 0, sizeof(*b));
    b->records = 1;
    b->producer_id = -1;
    b->epoch = -1;
    b->sequence = -1;
    b->timestamp_ms = INT64_C(1700000000000);
    b->magic = 2;
}

void kb_probe_free(void *p)
{
    kb_free(p);
}

static void put_record(struct buf *out, const struct kb_probe_batch *b,
                       int32_t i)
{
    char key[16], value[16];
    uint8_t *padded = kb_alloc(b->value_size + sizeof(value));
    kp_header headers[8];
    kp_record r;
    int32_t delta = i + (i > 0 ? b->offset_step : 0);
    size_t body, size;
    int h;

    memset(&r, 0, sizeof(r));
    (void)snprintf(key, sizeof(key), "k%d", i);
    (void)snprintf(value, sizeof(value), "v%d", i);
    memset(padded, '.', b->value_size + sizeof(value));
    memcpy(padded, value, strlen(value));
    if (!b->no_key)
        r.key = kp_str(key);
    r.value.data = padded;
    r.value.size =
        b->value_size > strlen(value) ? b->value_size : strlen(value);
    for (h = 0; h < b->header_count && h < 8; h++) {
        headers[h].key = kp_str("h");
        headers[h].value = kp_str("x");
    }
    r.headers = headers;
    r.header_count = (size_t)h;
    body = kp__record_body_size(&r, 0, delta);
    size = kp__record_size(&r, 0, delta);
    (void)kp__record_encode(kp__buf_reserve(out, size), &r, body, 0, delta);
    out->size += size;
    kb_free(padded);
}

static void compress(struct buf *body, int codec_id)
{
    const struct codec *codec = kp__codec((enum codec_id)codec_id);
    struct codec_context *context;
    struct iovec piece = {body->data, body->size};
    size_t capacity = body->size * 2 + 1024;
    uint8_t *out = kb_alloc(capacity);
    size_t n;

    if (codec == NULL)
        kb_die("no such codec in this build");
    context = codec->create(codec->level_default, body->size);
    if (context == NULL)
        kb_die("codec");
    n = codec->compress(context, &piece, 1, out, capacity);
    if (n == 0)
        kb_die("codec: no room");
    kp__buf_clear(body);
    kp__buf_append(body, out, n);
    codec->destroy(context);
    kb_free(out);
}

uint8_t *kb_probe_batch_make(const struct kb_probe_batch *b, size_t *size)
{
    struct record_batch_header h = {
        .base_offset = b->base_offset,
        .partition_leader_epoch = -1,
        .magic = b->magic,
        .attributes = (int16_t)(b->codec | b->attributes),
        .last_offset_delta = b->records - 1 + b->delta_off,
        .base_timestamp_ms = b->timestamp_ms,
        .max_timestamp_ms = b->timestamp_ms,
        .producer_id = b->producer_id,
        .producer_epoch = b->epoch,
        .base_sequence = b->sequence,
        .record_count = b->records + b->count_off};
    struct buf body;
    uint8_t *out;
    int32_t i;

    kp__buf_init(&body);
    for (i = 0; i < b->records; i++)
        put_record(&body, b, i);
    if (b->codec != 0)
        compress(&body, b->codec);
    *size = RECORD_BATCH_HEADER_SIZE + body.size;
    out = kb_alloc(*size);
    kp__record_batch_encode(out, &h, body.size,
                            kp__crc32c(0, body.data, body.size));
    memcpy(out + RECORD_BATCH_HEADER_SIZE, body.data, body.size);
    kp__buf_fini(&body);
    return out;
}

uint8_t *kb_probe_request(int16_t api, int16_t version, int32_t correlation_id,
                          const void *body, size_t *size)
{
    const struct api *a = kp__api(api);
    struct request_header h = {api, version, correlation_id, {"probe", 5}};
    struct writer w;
    uint8_t *out;

    kp__writer_init(&w);
    kp__write_i32(&w, 0);
    kp__request_header_encode(&w, &h);
    kp__schema_encode(a->request, &w, version, kp__api_flexible(a, version),
                      body);
    *size = w.buf.size;
    out = kb_memdup(w.buf.data, *size);
    kp__writer_fini(&w);
    out[0] = (uint8_t)((*size - 4) >> 24);
    out[1] = (uint8_t)((*size - 4) >> 16);
    out[2] = (uint8_t)((*size - 4) >> 8);
    out[3] = (uint8_t)(*size - 4);
    return out;
}

static void group(const struct kb_probe_produce *p,
                  struct produce_request_topic *topics, size_t *topic_count,
                  struct produce_request_partition *parts)
{
    size_t i, n = 0;

    for (i = 0; i < p->count; i++) {
        const struct kb_probe_part *from = &p->parts[i];

        parts[i].index = from->partition;
        parts[i].records.data = from->records;
        parts[i].records.size = from->size;
        if (i == 0 || strcmp(from->topic, p->parts[i - 1].topic) != 0) {
            topics[n].name.data = from->topic;
            topics[n].name.size = strlen(from->topic);
            topics[n].topic_id = from->topic_id;
            topics[n++].partitions.items = &parts[i];
        }
        topics[n - 1].partitions.count++;
    }
    *topic_count = n;
}

uint8_t *kb_probe_produce_request(const struct kb_probe_produce *p,
                                  size_t *size)
{
    struct produce_request_topic *topics =
        kb_alloc((p->count + 1) * sizeof(*topics));
    struct produce_request_partition *parts =
        kb_alloc((p->count + 1) * sizeof(*parts));
    struct produce_request r;
    uint8_t *out;

    memset(&r, 0, sizeof(r));
    r.acks = p->acks;
    r.timeout_ms = p->timeout_ms;
    r.transactional_id.data = p->transactional_id;
    if (p->transactional_id != NULL)
        r.transactional_id.size = strlen(p->transactional_id);
    group(p, topics, &r.topics.count, parts);
    r.topics.items = topics;
    out =
        kb_probe_request(API_PRODUCE, p->version, p->correlation_id, &r, size);
    kb_free(topics);
    kb_free(parts);
    return out;
}

bool kb_probe_decode(struct kb_probe_answer *a, int16_t api, int16_t version,
                     const uint8_t *frame, size_t size)
{
    const struct api *of = kp__api(api);
    struct reader r;

    memset(a, 0, sizeof(*a));
    kp__arena_init(&a->arena);
    a->bytes = kb_memdup(frame, size);
    a->size = size;
    kp__reader_init(&r, a->bytes, size);
    if (kp__read_i32(&r) != (int32_t)(size - 4))
        return false;
    return kp__response_header_decode(&r, api, version, &a->correlation_id) &&
           kp__schema_decode(of->response, &r, &a->arena, version,
                             kp__api_flexible(of, version), &a->body) &&
           kp__reader_left(&r) == 0;
}

void kb_probe_answer_fini(struct kb_probe_answer *a)
{
    kp__arena_fini(&a->arena);
    kb_free(a->bytes);
    memset(a, 0, sizeof(*a));
}

bool kb_probe_take(struct kb_conn *k, struct kb_probe_answer *a, int16_t api,
                   int16_t version)
{
    struct kb_output *o = kb_conn_output(k);
    bool ok;

    memset(a, 0, sizeof(*a));
    if (o == NULL || o->kind != KB_OUT_BYTES)
        return false;
    ok = kb_probe_decode(a, api, version, o->data, o->size);
    kb_conn_pop(k);
    return ok;
}

void kb_probe_send(struct kb_conn *k, uint8_t *frame, size_t size,
                   int64_t now_ns)
{
    kb_conn_frame(k, frame + 4, size - 4, now_ns);
    kb_free(frame);
}

void kb_probe_send_bytes(struct kb_conn *k, int16_t version, int16_t acks,
                         int32_t timeout_ms, const char *topic,
                         int32_t partition, const uint8_t *data, size_t size)
{
    struct kb_probe_part part = {
        .topic = topic, .partition = partition, .records = data, .size = size};
    struct kb_probe_produce p = {.version = version,
                                 .acks = acks,
                                 .timeout_ms = timeout_ms,
                                 .correlation_id = 7,
                                 .parts = &part,
                                 .count = 1};
    size_t n;
    uint8_t *frame;

    (void)kb_topic_id(k->cluster, topic, &part.topic_id);
    frame = kb_probe_produce_request(&p, &n);
    kb_probe_send(k, frame, n, kb_now_ns(k->cluster));
}

void kb_probe_send_batch(struct kb_conn *k, int16_t version, int16_t acks,
                         int32_t timeout_ms, const char *topic,
                         int32_t partition, const struct kb_probe_batch *b)
{
    size_t size;
    uint8_t *data = kb_probe_batch_make(b, &size);

    kb_probe_send_bytes(k, version, acks, timeout_ms, topic, partition, data,
                        size);
    kb_probe_free(data);
}

static void read_verdict(struct kb_probe_verdict *v,
                         const struct kb_probe_answer *a)
{
    const struct produce_response *r = &a->body.produce;
    const struct produce_response_topic *t = r->topics.items;
    const struct produce_response_partition *p = t[0].partitions.items;
    const struct produce_record_error *e = p->record_errors.items;
    const struct node_endpoint *n = r->node_endpoints.items;

    v->answered = true;
    v->correlation_id = a->correlation_id;
    v->error = p->error_code;
    v->base_offset = p->base_offset;
    v->append_time_ms = p->log_append_time_ms;
    v->start_offset = p->log_start_offset;
    v->record_errors = p->record_errors.count;
    v->first_bad = v->record_errors > 0 ? e[0].batch_index : -1;
    v->message = p->error_message.data != NULL;
    v->leader = p->current_leader.leader_id;
    v->leader_epoch = p->current_leader.leader_epoch;
    v->endpoint = r->node_endpoints.count > 0 ? n[0].node_id : -1;
    v->throttle_ms = r->throttle_time_ms;
}

struct kb_probe_verdict kb_probe_take_verdict(struct kb_conn *k,
                                              int16_t version)
{
    struct kb_probe_verdict v;
    struct kb_probe_answer a;

    memset(&v, 0, sizeof(v));
    if (kb_probe_take(k, &a, API_PRODUCE, version) &&
        a.body.produce.topics.count > 0)
        read_verdict(&v, &a);
    kb_probe_answer_fini(&a);
    return v;
}
