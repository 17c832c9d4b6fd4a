/* SPDX-License-Identifier: BSD-2-Clause */
/* check.c - what Kafka checks of a batch before it looks at the producer.
 *
 * In its order: ProduceRequest.validateRecords (shape), then base offset,
 * size and crc (UnifiedLog.analyzeAndValidateRecords), then counts, sequence
 * and the single records (LogValidator).  Size and timestamps come before
 * duplicates. */
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/codec/codec.h"
#include "test/broker/internal.h"

#define OVERHEAD 12 /* base offset and length */
#define ATTRIBUTE_CODEC 7
#define ATTRIBUTE_APPEND_TIME 8
#define ATTRIBUTE_TRANSACTIONAL 16
#define ATTRIBUTE_CONTROL 32
#define MAX_UNCOMPRESSED (256u << 20)

static void read_header(const uint8_t *data, struct record_batch_header *h)
{
    struct reader r;

    kp__reader_init(&r, data, RECORD_BATCH_HEADER_SIZE);
    h->base_offset = kp__read_i64(&r);
    h->batch_length = kp__read_i32(&r);
    h->partition_leader_epoch = kp__read_i32(&r);
    h->magic = kp__read_i8(&r);
    h->crc = (uint32_t)kp__read_i32(&r);
    h->attributes = kp__read_i16(&r);
    h->last_offset_delta = kp__read_i32(&r);
    h->base_timestamp_ms = kp__read_i64(&r);
    h->max_timestamp_ms = kp__read_i64(&r);
    h->producer_id = kp__read_i64(&r);
    h->producer_epoch = kp__read_i16(&r);
    h->base_sequence = kp__read_i32(&r);
    h->record_count = kp__read_i32(&r);
}

static int32_t length_of(const uint8_t *data)
{
    struct reader r;

    kp__reader_init(&r, data + 8, 4);
    return kp__read_i32(&r);
}

/* Behind the batch.  Kafka looks at it as at another batch, and passes over
 * what cannot be a whole one; a client of ours must not send anything there. */
static int16_t check_rest(const struct kb_request *q, const uint8_t *rest,
                          size_t n)
{
    int64_t size;

    if (q->conn->cluster->config.strict)
        return 87;
    if (n < 17)
        return 0;
    size = (int64_t)length_of(rest) + OVERHEAD;
    if (size < OVERHEAD + 14 || (int8_t)rest[16] < 0 || (int8_t)rest[16] > 2)
        return 2;
    return size > (int64_t)n ? 0 : 87;
}

int16_t kb_check_shape(struct kb_request *q, const struct blob *records,
                       struct kb_checked *out)
{
    const uint8_t *data = records->data;
    int64_t size;
    int8_t magic;

    memset(out, 0, sizeof(*out));
    if (data == NULL || records->size < 17)
        return 87; /* no whole batch in it */
    size = (int64_t)length_of(data) + OVERHEAD;
    magic = (int8_t)data[16];
    if (size < OVERHEAD + 14 || magic < 0 || magic > 2) {
        out->message = "Invalid size or magic of a record batch";
        return 2;
    }
    if (!q->skimmed && size > (int64_t)records->size)
        return 87;
    if (magic != 2)
        return 87;
    if (records->size < RECORD_BATCH_HEADER_SIZE ||
        size < RECORD_BATCH_HEADER_SIZE)
        return 2;
    read_header(data, &out->header);
    out->header_valid = true;
    out->size = (size_t)size;
    out->data = q->skimmed ? NULL : data;
    if (q->header.version < 7 &&
        (out->header.attributes & ATTRIBUTE_CODEC) == CODEC_ZSTD)
        return 76;
    if (!q->skimmed && (size_t)size != records->size)
        return check_rest(q, data + size, records->size - (size_t)size);
    return 0;
}

static int32_t max_size(const struct kb_cluster *c, const struct kb_topic *t)
{
    return t->config.max_message_bytes >= 0 ? t->config.max_message_bytes
                                            : c->config.message_max_bytes;
}

static int32_t segment_size(const struct kb_cluster *c,
                            const struct kb_topic *t)
{
    return t->config.segment_bytes >= 0 ? t->config.segment_bytes
                                        : c->config.segment_bytes;
}

/* LogValidator.validateBatch. */
static int16_t check_counts(const struct record_batch_header *h)
{
    if (h->last_offset_delta < 0 || h->record_count <= 0 ||
        (int64_t)h->last_offset_delta + 1 != h->record_count)
        return 87;
    if ((h->attributes & ATTRIBUTE_CONTROL) != 0)
        return 87;
    if (h->producer_id >= 0 && h->base_sequence < 0)
        return 87;
    return 0;
}

int16_t kb_batch_body(const struct record_batch_header *h, const uint8_t *data,
                      size_t size, struct buf *space, const uint8_t **body,
                      size_t *body_size)
{
    int id = h->attributes & ATTRIBUTE_CODEC;
    const struct codec *codec;

    *body = data + RECORD_BATCH_HEADER_SIZE;
    *body_size = size - RECORD_BATCH_HEADER_SIZE;
    if (id == 0)
        return 0;
    codec = id > CODEC_ZSTD ? NULL : kp__codec((enum codec_id)id);
    if (codec == NULL)
        return -1;
    kp__buf_clear(space);
    if (!codec->decompress(*body, *body_size, MAX_UNCOMPRESSED, space))
        return -1;
    *body = space->data;
    *body_size = space->size;
    return 0;
}

struct record_check {
    struct kb_request *q;
    const struct kb_topic *topic;
    struct kb_checked *batch;
    struct produce_record_error *errors;
    size_t error_count, error_max; /* as many records as the bytes can hold */
    bool bad_timestamp;
};

/* As Java's long arithmetic, which wraps. */
static int64_t wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t wrap_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static void add_error(struct record_check *k, int32_t index, const char *text)
{
    struct produce_record_error *e;

    if (k->errors == NULL)
        k->errors =
            kp__arena_alloc_array(&k->q->arena, k->error_max, sizeof(*e));
    if (k->errors == NULL || k->error_count == k->error_max)
        return;
    e = &k->errors[k->error_count++];
    e->batch_index = index;
    e->message.data = text;
    e->message.size = strlen(text);
}

static void check_timestamp(struct record_check *k, int32_t index,
                            int64_t timestamp_ms)
{
    const struct kb_topic_config *g = &k->topic->config;
    int64_t now_ms = kb_wall_ms(k->q->conn->cluster);
    int64_t behind = wrap_sub(now_ms, timestamp_ms);

    if (!g->log_append_time && timestamp_ms != -1) {
        if (behind <= g->before_max_ms &&
            wrap_sub(0, behind) <= g->after_max_ms)
            return;
        add_error(k, index, "Timestamp is out of range.");
        k->bad_timestamp = true;
    } else if ((k->batch->header.attributes & ATTRIBUTE_APPEND_TIME) != 0) {
        add_error(k, index,
                  "Producer should not set timestamp type to LogAppendTime.");
        k->bad_timestamp = true;
    }
}

static bool headers_well_formed(const struct record_view *v)
{
    struct kb_record r;
    struct kb_header h;
    struct kb_header_cursor at = {0, 0};

    memset(&r, 0, sizeof(r));
    r.headers = v->headers;
    r.headers_size = v->headers_size;
    r.header_count = v->header_count;
    while (kb_header_next(&r, &at, &h))
        ;
    return at.index == v->header_count && at.used == v->headers_size;
}

static bool check_record(struct record_check *k, int32_t index,
                         const struct record_view *v)
{
    const struct record_batch_header *h = &k->batch->header;
    int64_t timestamp_ms =
        wrap_add(h->base_timestamp_ms, v->timestamp_delta_ms);

    if (k->q->conn->cluster->config.strict && v->offset_delta != index)
        return false;
    if (!headers_well_formed(v))
        return false;
    if (timestamp_ms > k->batch->max_timestamp_ms)
        k->batch->max_timestamp_ms = timestamp_ms;
    if (k->topic->config.compacted && v->key == NULL)
        add_error(k, index,
                  "Compacted topic cannot accept message without key.");
    else
        check_timestamp(k, index, timestamp_ms);
    return true;
}

static int16_t walk(struct record_check *k, const uint8_t *body, size_t size)
{
    struct reader r;
    struct record_view v;
    int32_t n = 0;

    kp__reader_init(&r, body, size);
    while (n < k->batch->header.record_count && kp__record_next(&r, &v))
        if (!check_record(k, n++, &v))
            return 87;
    if (n != k->batch->header.record_count || kp__reader_left(&r) != 0)
        return 87;
    if (k->error_count == 0)
        return 0;
    k->batch->record_errors.items = k->errors;
    k->batch->record_errors.count = k->error_count;
    k->batch->message = "One or more records have been rejected";
    return k->bad_timestamp ? 32 : 87;
}

static int16_t check_records(struct kb_request *q, const struct kb_topic *t,
                             struct kb_checked *b)
{
    struct record_check k = {.q = q, .topic = t, .batch = b};
    struct buf space;
    const uint8_t *body;
    size_t size;
    int16_t error;

    kp__buf_init(&space);
    b->max_timestamp_ms = -1;
    size = 0;
    body = NULL;
    error = kb_batch_body(&b->header, b->data, b->size, &space, &body, &size);
    k.error_max = size / 7 + 1; /* a record has 7 bytes at least */
    if (error == 0)
        error = walk(&k, body, size);
    kp__buf_fini(&space);
    return error;
}

int16_t kb_check_batch(struct kb_request *q, const struct kb_topic *t,
                       struct kb_checked *b)
{
    struct kb_cluster *c = q->conn->cluster;
    bool whole = b->data != NULL && !c->config.discard;
    int16_t error;

    if (b->header.base_offset != 0)
        return 87;
    if (b->size > (size_t)max_size(c, t))
        return 10;
    if (whole && kp__crc32c(0, b->data + RECORD_BATCH_CRC_FROM,
                            b->size - RECORD_BATCH_CRC_FROM) != b->header.crc)
        return 2;
    error = check_counts(&b->header);
    b->max_timestamp_ms = b->header.max_timestamp_ms;
    if (error == 0 && whole)
        error = check_records(q, t, b);
    if (error == 0 && b->size > (size_t)segment_size(c, t))
        error = 18;
    /* This model has no transactions: the log knows of none begun. */
    if (error == 0 && (b->header.attributes & ATTRIBUTE_TRANSACTIONAL) != 0)
        error = 48;
    return error;
}
