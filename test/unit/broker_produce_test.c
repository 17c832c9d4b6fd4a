/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker model's judgement of Produce requests: what Kafka 4.4 checks, in
 * its order, and what is in the log afterwards. */
#include <stdlib.h>
#include <string.h>

#include "test/broker/probe.h"
#include "test/support/main.h"

#define MS INT64_C(1000000)

static struct kb_cluster *c;
static struct kb_conn *k;
static int16_t version;

static void open_cluster(int nodes)
{
    struct kb_config g;

    kb_config_default(&g);
    g.nodes = nodes;
    c = kb_create(&g);
    ck_assert_int_eq(kb_topic_create(c, "t", 2, 1, 0), 0);
    k = kb_connect(c, 1, NULL, 0);
    ck_assert_ptr_nonnull(k);
    version = 12;
}

static void setup(void)
{
    open_cluster(1);
}

static void teardown(void)
{
    kb_destroy(c);
}

static struct kb_probe_verdict send_bytes(int16_t acks, const char *topic,
                                          int32_t partition,
                                          const uint8_t *data, size_t n)
{
    struct kb_probe_verdict v;

    kb_probe_send_bytes(k, version, acks, 1000, topic, partition, data, n);
    v = kb_probe_take_verdict(k, version);
    if (v.answered)
        ck_assert_int_eq(v.correlation_id, 7);
    return v;
}

static struct kb_probe_verdict send_batch(int16_t acks,
                                          const struct kb_probe_batch *b)
{
    size_t n;
    uint8_t *data = kb_probe_batch_make(b, &n);
    struct kb_probe_verdict v = send_bytes(acks, "t", 0, data, n);

    kb_probe_free(data);
    return v;
}

static struct kb_probe_batch plain(int32_t records)
{
    struct kb_probe_batch b;

    kb_probe_batch_default(&b);
    b.records = records;
    return b;
}

static struct kb_probe_batch sequenced(int64_t id, int16_t epoch, int32_t first,
                                       int32_t records)
{
    struct kb_probe_batch b = plain(records);

    b.producer_id = id;
    b.epoch = epoch;
    b.sequence = first;
    return b;
}

static int16_t error_of(const struct kb_probe_batch *b)
{
    struct kb_probe_verdict v = send_batch(-1, b);

    ck_assert(v.answered);
    return v.error;
}

START_TEST(every_version_stores_and_answers)
{
    struct kb_probe_batch b = plain(3);
    struct kb_probe_verdict v;

    version = (int16_t)_i;
    v = send_batch(1, &b);
    ck_assert(v.answered);
    ck_assert_int_eq(v.error, 0);
    ck_assert_int_eq(v.base_offset, 0);
    ck_assert_int_eq(v.append_time_ms, -1);
    ck_assert_int_eq(v.start_offset, version >= 5 ? 0 : -1);
    v = send_batch(-1, &b);
    ck_assert_int_eq(v.base_offset, 3);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 6);
    ck_assert_int_eq(kb_version_seen(c, API_PRODUCE), version);
}
END_TEST

START_TEST(versions_it_does_not_speak_end_the_connection)
{
    static const int16_t bad[] = {2, 14, -1, 99};
    uint8_t frame[8] = {0, 0, 0, 0, 0, 0, 0, 1};

    frame[2] = (uint8_t)(bad[_i] >> 8);
    frame[3] = (uint8_t)bad[_i];
    kb_conn_frame(k, frame, sizeof(frame), 0);
    ck_assert_ptr_nonnull(kb_conn_output(k));
    ck_assert_int_eq(kb_conn_output(k)->kind, KB_OUT_CLOSE);
    ck_assert(!kb_conn_wants_input(k));
}
END_TEST

START_TEST(records_can_be_read_back)
{
    struct kb_probe_batch b = sequenced(5, 2, 0, 3);
    struct kb_log *l;
    struct kb_record r;
    struct kb_header h;
    struct kb_header_cursor at = {0, 0};
    int n = 0;

    b.header_count = 2;
    b.codec = _i;
    ck_assert_int_eq(error_of(&b), 0);
    l = kb_log_open(c, "t", 0);
    while (kb_log_next(l, &r)) {
        ck_assert_int_eq(r.offset, n);
        ck_assert_int_eq(r.sequence, n);
        ck_assert_int_eq(r.producer_id, 5);
        ck_assert_int_eq(r.producer_epoch, 2);
        ck_assert_int_eq(r.timestamp_ms, INT64_C(1700000000000));
        ck_assert_int_eq(r.codec, _i);
        ck_assert_uint_eq(r.key_size, 2);
        ck_assert_int_eq(r.key[1], '0' + n);
        ck_assert_uint_eq(r.value_size, 2);
        ck_assert_int_eq(r.value[0], 'v');
        ck_assert_int_eq(r.header_count, 2);
        n++;
    }
    ck_assert_int_eq(n, 3);
    kb_log_close(l);
    l = kb_log_open(c, "t", 0);
    ck_assert(kb_log_next(l, &r));
    ck_assert(kb_header_next(&r, &at, &h) && kb_header_next(&r, &at, &h));
    ck_assert_int_eq(h.key[0], 'h');
    ck_assert_int_eq(h.value[0], 'x');
    ck_assert(!kb_header_next(&r, &at, &h));
    kb_log_close(l);
}
END_TEST

START_TEST(acks_0_is_not_answered)
{
    struct kb_probe_batch b = plain(1);

    ck_assert(!send_batch(0, &b).answered);
    ck_assert_ptr_null(kb_conn_output(k));
    ck_assert_int_eq(kb_log_end(c, "t", 0), 1);
    /* An error can only be told by hanging up. */
    b.count_off = 1;
    ck_assert(!send_batch(0, &b).answered);
    ck_assert_int_eq(kb_conn_output(k)->kind, KB_OUT_CLOSE);
}
END_TEST

START_TEST(other_acks_are_refused)
{
    struct kb_probe_batch b = plain(1);

    ck_assert_int_eq(send_batch(2, &b).error, 21);
    ck_assert_int_eq(send_batch(-2, &b).error, 21);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 0);
}
END_TEST

START_TEST(unknown_topics_and_partitions)
{
    struct kb_probe_batch b = plain(1);
    size_t n;
    uint8_t *data = kb_probe_batch_make(&b, &n);

    ck_assert_int_eq(send_bytes(1, "other", 0, data, n).error, 3);
    ck_assert_int_eq(send_bytes(1, "t", 2, data, n).error, 3);
    ck_assert_int_eq(send_bytes(1, "t", -1, data, n).error, 3);
    version = 13;
    ck_assert_int_eq(send_bytes(1, "other", 0, data, n).error, 100);
    kb_probe_free(data);
}
END_TEST

START_TEST(shape_of_the_records_field)
{
    struct kb_probe_batch b = plain(2);
    size_t n;
    uint8_t *data = kb_probe_batch_make(&b, &n), *two = malloc(2 * n);

    memcpy(two, data, n);
    memcpy(two + n, data, n);
    ck_assert_int_eq(send_bytes(1, "t", 0, NULL, 0).error, 87);
    ck_assert_int_eq(send_bytes(1, "t", 0, data, 16).error, 87);
    ck_assert_int_eq(send_bytes(1, "t", 0, data, n - 1).error, 87);
    ck_assert_int_eq(send_bytes(1, "t", 0, two, 2 * n).error, 87);
    data[16] = 1;
    ck_assert_int_eq(send_bytes(1, "t", 0, data, n).error, 87);
    data[16] = 3;
    ck_assert_int_eq(send_bytes(1, "t", 0, data, n).error, 2);
    data[16] = 0xff;
    ck_assert_int_eq(send_bytes(1, "t", 0, data, n).error, 2);
    data[16] = 2;
    data[11] = 13; /* a batch of 25 bytes cannot be */
    data[10] = 0;
    ck_assert_int_eq(send_bytes(1, "t", 0, data, n).error, 2);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 0);
    kb_probe_free(data);
    free(two);
}
END_TEST

START_TEST(a_flipped_bit_is_a_corrupt_message)
{
    struct kb_probe_batch b = plain(2);
    size_t n, at;
    uint8_t *data = kb_probe_batch_make(&b, &n);

    for (at = 17; at < n; at++) {
        data[at] ^= 4;
        ck_assert_int_eq(send_bytes(1, "t", 0, data, n).error, 2);
        data[at] ^= 4;
    }
    ck_assert_int_eq(send_bytes(1, "t", 0, data, n).error, 0);
    kb_probe_free(data);
}
END_TEST

START_TEST(zstd_needs_version_7)
{
    struct kb_probe_batch b = plain(2);

    b.codec = 4;
    version = 6;
    ck_assert_int_eq(error_of(&b), 76);
    version = 7;
    ck_assert_int_eq(error_of(&b), 0);
}
END_TEST

START_TEST(header_fields_must_agree)
{
    struct kb_probe_batch b = plain(3);

    b.base_offset = 1;
    ck_assert_int_eq(error_of(&b), 87);
    b = plain(3);
    b.count_off = 1;
    ck_assert_int_eq(error_of(&b), 87);
    b.delta_off = 1; /* they agree, the body does not */
    ck_assert_int_eq(error_of(&b), 87);
    b = plain(3);
    b.count_off = -1;
    b.delta_off = -1;
    ck_assert_int_eq(error_of(&b), 87);
    b = plain(3);
    b.count_off = -3;
    b.delta_off = -3;
    ck_assert_int_eq(error_of(&b), 87);
    b = plain(3);
    b.offset_step = 1;
    ck_assert_int_eq(error_of(&b), 87);
    b = plain(3);
    b.attributes = 32; /* control */
    ck_assert_int_eq(error_of(&b), 87);
    b = sequenced(1, 0, -1, 1);
    ck_assert_int_eq(error_of(&b), 87);
    b = plain(3);
    b.attributes = 16; /* transactional, and no transactional id */
    ck_assert_int_eq(error_of(&b), 53);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 0);
}
END_TEST

/* What Kafka puts right, and a strict model refuses. */
START_TEST(not_strict)
{
    struct kb_probe_batch b = plain(3);
    struct kb_config g;
    size_t n;
    uint8_t *data = kb_probe_batch_make(&b, &n), *more = calloc(1, n + 40);

    kb_destroy(c);
    kb_config_default(&g);
    g.strict = false;
    c = kb_create(&g);
    ck_assert_int_eq(kb_topic_create(c, "t", 1, 1, 0), 0);
    k = kb_connect(c, 1, NULL, 0);
    memcpy(more, data, n);
    ck_assert_int_eq(send_bytes(1, "t", 0, more, n + 5).error, 0);
    ck_assert_int_eq(send_bytes(1, "t", 0, more, n + 40).error, 2);
    b.offset_step = 1;
    ck_assert_int_eq(error_of(&b), 0);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 6);
    kb_probe_free(data);
    free(more);
}
END_TEST

START_TEST(size_limits_of_cluster_topic_segment)
{
    struct kb_probe_batch b = plain(1);
    size_t n;
    char text[20];

    b.value_size = 1000;
    kb_probe_free(kb_probe_batch_make(&b, &n));
    (void)snprintf(text, sizeof(text), "%d", (int)n - 1);
    ck_assert(kb_set(c, "message.max.bytes", text));
    ck_assert_int_eq(error_of(&b), 10);
    (void)snprintf(text, sizeof(text), "%d", (int)n);
    ck_assert(kb_topic_set(c, "t", "max.message.bytes", text));
    ck_assert_int_eq(error_of(&b), 0);
    ck_assert(kb_topic_set(c, "t", "segment.bytes", "500"));
    ck_assert_int_eq(error_of(&b), 18);
}
END_TEST

START_TEST(size_and_time_come_before_duplicates)
{
    struct kb_probe_batch b = sequenced(9, 0, 0, 2);

    ck_assert_int_eq(error_of(&b), 0);
    ck_assert(kb_topic_set(c, "t", "max.message.bytes", "62"));
    ck_assert_int_eq(error_of(&b), 10);
    ck_assert(kb_topic_set(c, "t", "max.message.bytes", "1000"));
    ck_assert(kb_topic_set(c, "t", "message.timestamp.before.max.ms", "10"));
    kb_advance(c, 11 * MS);
    ck_assert_int_eq(error_of(&b), 32);
    ck_assert(kb_topic_set(c, "t", "message.timestamp.before.max.ms", "99"));
    ck_assert_int_eq(error_of(&b), 0);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 2);
}
END_TEST

START_TEST(timestamps_out_of_range_are_named)
{
    struct kb_probe_batch b = plain(3);
    struct kb_probe_verdict v;

    b.timestamp_ms += 3600 * 1000 + 1; /* an hour ahead is allowed */
    v = send_batch(1, &b);
    ck_assert_int_eq(v.error, 32);
    ck_assert_uint_eq(v.record_errors, 3);
    ck_assert_int_eq(v.first_bad, 0);
    ck_assert(v.message);
    b.timestamp_ms -= 1;
    ck_assert_int_eq(error_of(&b), 0);
    b.timestamp_ms = INT64_MIN;
    ck_assert_int_eq(error_of(&b), 32);
    b.timestamp_ms = -1; /* none at all */
    ck_assert_int_eq(error_of(&b), 0);
    b.attributes = 8; /* append time is not the producer's to say */
    ck_assert_int_eq(error_of(&b), 32);
}
END_TEST

START_TEST(log_append_time)
{
    struct kb_probe_batch b = sequenced(1, 0, 0, 1);
    struct kb_record r;
    struct kb_log *l;
    struct kb_probe_verdict v;

    ck_assert(kb_topic_set(c, "t", "message.timestamp.type", "LogAppendTime"));
    b.timestamp_ms = 5;
    kb_advance(c, 40 * MS);
    v = send_batch(-1, &b);
    ck_assert_int_eq(v.error, 0);
    ck_assert_int_eq(v.append_time_ms, INT64_C(1700000000040));
    l = kb_log_open(c, "t", 0);
    ck_assert(kb_log_next(l, &r));
    ck_assert_int_eq(r.timestamp_ms, INT64_C(1700000000040));
    kb_log_close(l);
    /* A duplicate is answered with the time of the first. */
    kb_advance(c, 90 * MS);
    v = send_batch(-1, &b);
    ck_assert_int_eq(v.append_time_ms, INT64_C(1700000000040));
    ck_assert_int_eq(kb_log_end(c, "t", 0), 1);
}
END_TEST

START_TEST(compacted_topics_want_keys)
{
    struct kb_probe_batch b = plain(2);
    struct kb_probe_verdict v;

    ck_assert(kb_topic_set(c, "t", "cleanup.policy", "compact"));
    ck_assert_int_eq(error_of(&b), 0);
    b.no_key = true;
    v = send_batch(1, &b);
    ck_assert_int_eq(v.error, 87);
    ck_assert_uint_eq(v.record_errors, 2);
}
END_TEST

START_TEST(bodies_that_do_not_decompress)
{
    struct kb_probe_batch b = plain(3);

    b.attributes = (int16_t)_i; /* says compressed, is not */
    ck_assert_int_eq(error_of(&b), -1);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 0);
}
END_TEST

/* -- producer state -- */

static int16_t put(int16_t epoch, int32_t first, int32_t records)
{
    struct kb_probe_batch b = sequenced(77, epoch, first, records);

    return error_of(&b);
}

static int64_t offset_of(int16_t epoch, int32_t first, int32_t records)
{
    struct kb_probe_batch b = sequenced(77, epoch, first, records);
    struct kb_probe_verdict v = send_batch(-1, &b);

    ck_assert_int_eq(v.error, 0);
    return v.base_offset;
}

START_TEST(sequences_go_on_without_gaps)
{
    ck_assert_int_eq(put(0, 0, 10), 0);
    ck_assert_int_eq(put(0, 11, 1), 45);
    ck_assert_int_eq(put(0, 20, 1), 45);
    ck_assert_int_eq(put(0, 10, 5), 0);
    ck_assert_int_eq(put(0, 15, 1), 0);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 16);
}
END_TEST

START_TEST(any_first_sequence_without_state)
{
    ck_assert_int_eq(put(0, 10, 10), 0);
    /* What came before is refused for ever. */
    ck_assert_int_eq(put(0, 0, 10), 45);
    ck_assert_int_eq(put(0, 20, 1), 0);
    ck_assert_int_eq(put(0, 0, 10), 45);
}
END_TEST

START_TEST(five_batches_are_remembered_by_exact_range)
{
    int i;

    for (i = 0; i < 6; i++)
        ck_assert_int_eq(put(0, 2 * i, 2), 0);
    for (i = 1; i < 6; i++)
        ck_assert_int_eq(offset_of(0, 2 * i, 2), 2 * i);
    ck_assert_int_eq(put(0, 0, 2), 45);  /* the sixth is forgotten */
    ck_assert_int_eq(put(0, 10, 1), 45); /* another cut of a known one */
    ck_assert_int_eq(put(0, 8, 4), 45);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 12);
}
END_TEST

START_TEST(epochs)
{
    ck_assert_int_eq(put(3, 0, 2), 0);
    ck_assert_int_eq(put(2, 2, 1), 47);
    ck_assert_int_eq(put(2, 0, 2), 47);
    ck_assert_int_eq(put(4, 2, 1), 45); /* a new epoch begins at 0 */
    ck_assert_int_eq(put(5, 0, 1), 0);  /* and may jump */
    ck_assert_int_eq(put(3, 0, 2), 47); /* no duplicate across epochs */
    ck_assert_int_eq(put(5, 0, 1), 0);
    ck_assert_int_eq(put(5, 1, 1), 0);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 4);
}
END_TEST

START_TEST(partitions_have_epochs_of_their_own)
{
    struct kb_probe_batch b = sequenced(77, 0, 0, 1);
    size_t n;
    uint8_t *data;

    ck_assert_int_eq(put(1, 0, 1), 0);
    data = kb_probe_batch_make(&b, &n);
    ck_assert_int_eq(send_bytes(1, "t", 1, data, n).error, 0);
    kb_probe_free(data);
}
END_TEST

START_TEST(sequences_wrap)
{
    kb_preset_producer(c, "t", 0, 77, 0, INT32_MAX - 2);
    ck_assert_int_eq(put(0, INT32_MAX - 1, 4), 0); /* ..., MAX, 0, 1 */
    ck_assert_int_eq(put(0, INT32_MAX - 1, 4), 0); /* a duplicate */
    ck_assert_int_eq(put(0, 3, 1), 45);
    ck_assert_int_eq(put(0, 2, 1), 0);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 5);
    kb_preset_producer(c, "t", 0, 78, 0, INT32_MAX);
    {
        struct kb_probe_batch b = sequenced(78, 0, 0, 1);

        ck_assert_int_eq(error_of(&b), 0);
    }
}
END_TEST

START_TEST(forgotten_producers_begin_anywhere)
{
    ck_assert_int_eq(put(4, 0, 3), 0);
    kb_forget_producer(c, "t", 0, 12);
    ck_assert_int_eq(put(4, 7, 1), 45);
    kb_forget_producer(c, "t", 0, 77);
    ck_assert_int_eq(put(2, 7, 1), 0);
    ck_assert_int_eq(put(2, 8, 1), 0);
}
END_TEST

START_TEST(many_producers)
{
    struct kb_probe_batch b;
    int i, round;

    for (round = 0; round < 3; round++)
        for (i = 0; i < 200; i++) {
            b = sequenced(i * 1000, 0, round, 1);
            ck_assert_int_eq(error_of(&b), 0);
        }
    kb_forget_producer(c, "t", 0, 5000);
    for (i = 0; i < 200; i++) {
        b = sequenced(i * 1000, 0, 99, 1);
        ck_assert_int_eq(error_of(&b), i == 5 ? 0 : 45);
    }
}
END_TEST

START_TEST(a_request_of_many_parts)
{
    struct kb_probe_batch good = plain(2), bad = plain(2);
    struct kb_probe_part parts[3];
    struct kb_probe_produce p = {.version = 9,
                                 .acks = -1,
                                 .timeout_ms = 100,
                                 .correlation_id = 7,
                                 .parts = parts,
                                 .count = 3};
    const struct produce_response_topic *t;
    const struct produce_response_partition *a;
    struct kb_probe_answer answer;
    size_t n, m, size;
    uint8_t *x = kb_probe_batch_make(&good, &n), *y, *frame;

    bad.count_off = 1;
    y = kb_probe_batch_make(&bad, &m);
    memset(parts, 0, sizeof(parts));
    parts[0] = (struct kb_probe_part){
        .topic = "t", .partition = 0, .records = x, .size = n};
    parts[1] = (struct kb_probe_part){
        .topic = "t", .partition = 1, .records = y, .size = m};
    parts[2] = (struct kb_probe_part){
        .topic = "none", .partition = 0, .records = x, .size = n};
    frame = kb_probe_produce_request(&p, &size);
    kb_probe_send(k, frame, size, 0);
    ck_assert(kb_probe_take(k, &answer, API_PRODUCE, 9));
    ck_assert_uint_eq(answer.body.produce.topics.count, 2);
    t = answer.body.produce.topics.items;
    ck_assert_uint_eq(t[0].partitions.count, 2);
    a = t[0].partitions.items;
    ck_assert_int_eq(a[0].error_code, 0);
    ck_assert_int_eq(a[1].error_code, 87);
    ck_assert_int_eq(a[1].base_offset, -1);
    a = t[1].partitions.items;
    ck_assert_int_eq(a[0].error_code, 3);
    ck_assert_uint_eq(t[1].name.size, 4);
    ck_assert_mem_eq(t[1].name.data, "none", 4);
    kb_probe_answer_fini(&answer);
    kb_probe_free(x);
    kb_probe_free(y);
}
END_TEST

START_TEST(log_start_moves)
{
    struct kb_probe_batch b = plain(5);
    struct kb_record r;
    struct kb_log *l;

    ck_assert_int_eq(error_of(&b), 0);
    kb_trim(c, "t", 0, 3);
    ck_assert_int_eq(send_batch(1, &b).start_offset, 3);
    l = kb_log_open(c, "t", 0);
    ck_assert(kb_log_next(l, &r));
    ck_assert_int_eq(r.offset, 3);
    kb_log_close(l);
}
END_TEST

START_TEST(quota_throttles_and_stops_reading)
{
    struct kb_probe_batch b = plain(1);
    struct kb_probe_verdict v;

    b.value_size = 2000;
    ck_assert(kb_set(c, "quota", "1000"));
    v = send_batch(1, &b);
    ck_assert_int_eq(v.error, 0);
    ck_assert_int_gt(v.throttle_ms, 1000);
    ck_assert(!kb_conn_wants_input(k));
    ck_assert(!send_batch(1, &b).answered);
    kb_advance(c, kb_now_ns(c) + v.throttle_ms * MS);
    ck_assert(kb_probe_take_verdict(k, version).answered);
}
END_TEST

static int seen;
static void on_verdict(void *arg, const struct kb_verdict *v)
{
    seen++;
    ck_assert_ptr_eq(arg, &seen);
    ck_assert_str_eq(v->topic, "t");
    ck_assert_int_eq(v->appended, seen == 1);
    ck_assert_int_eq(v->duplicate, seen == 2);
    ck_assert_int_eq(v->error, seen == 3 ? 45 : 0);
    ck_assert_int_eq(v->base_offset, seen == 3 ? -1 : 0);
    ck_assert_ptr_nonnull(v->batch);
}

START_TEST(verdicts_are_told)
{
    struct kb_totals t;

    seen = 0;
    kb_on_verdict(c, on_verdict, &seen);
    ck_assert_int_eq(put(0, 0, 2), 0);
    ck_assert_int_eq(put(0, 0, 2), 0);
    ck_assert_int_eq(put(0, 9, 2), 45);
    ck_assert_int_eq(seen, 3);
    kb_totals(c, "t", &t);
    ck_assert_int_eq(t.records, 2);
    ck_assert_int_eq(t.duplicates, 1);
    ck_assert_int_eq(t.refused, 1);
}
END_TEST

START_TEST(cut_and_grown_requests_end_the_connection)
{
    struct kb_probe_batch b = plain(2);
    struct kb_probe_part part = {.topic = "t", .partition = 0};
    struct kb_probe_produce p = {.version = (int16_t)_i,
                                 .acks = 1,
                                 .correlation_id = 7,
                                 .parts = &part,
                                 .count = 1};
    size_t n, size, at;
    uint8_t *data = kb_probe_batch_make(&b, &n), *frame, *grown;

    part.records = data;
    part.size = n;
    frame = kb_probe_produce_request(&p, &size);
    for (at = 0; at + 4 < size; at++) {
        /* Exactly as large as it is, for the sanitizer. */
        uint8_t *copy = malloc(at > 0 ? at : 1);

        memcpy(copy, frame + 4, at);
        kb_conn_frame(k, copy, at, 0);
        ck_assert_int_eq(kb_conn_output(k)->kind, KB_OUT_CLOSE);
        free(copy);
        kb_conn_close(k, false, 0);
        k = kb_connect(c, 1, NULL, 0);
    }
    grown = malloc(size);
    memcpy(grown, frame + 4, size - 4);
    grown[size - 4] = 0;
    kb_conn_frame(k, grown, size - 3, 0);
    ck_assert_int_eq(kb_conn_output(k)->kind, KB_OUT_CLOSE);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 0);
    free(grown);
    kb_probe_free(frame);
    kb_probe_free(data);
}
END_TEST

static Suite *broker_produce_suite(void)
{
    Suite *s = suite_create("broker_produce");
    TCase *t = tcase_create("produce");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, every_version_stores_and_answers, 3, 14);
    tcase_add_loop_test(t, versions_it_does_not_speak_end_the_connection, 0, 4);
    tcase_add_loop_test(t, records_can_be_read_back, 0, 5);
    tcase_add_test(t, acks_0_is_not_answered);
    tcase_add_test(t, other_acks_are_refused);
    tcase_add_test(t, unknown_topics_and_partitions);
    tcase_add_test(t, shape_of_the_records_field);
    tcase_add_test(t, a_flipped_bit_is_a_corrupt_message);
    tcase_add_test(t, zstd_needs_version_7);
    tcase_add_test(t, header_fields_must_agree);
    tcase_add_test(t, not_strict);
    tcase_add_test(t, size_limits_of_cluster_topic_segment);
    tcase_add_test(t, size_and_time_come_before_duplicates);
    tcase_add_test(t, timestamps_out_of_range_are_named);
    tcase_add_test(t, log_append_time);
    tcase_add_test(t, compacted_topics_want_keys);
    tcase_add_loop_test(t, bodies_that_do_not_decompress, 1, 6);
    tcase_add_test(t, sequences_go_on_without_gaps);
    tcase_add_test(t, any_first_sequence_without_state);
    tcase_add_test(t, five_batches_are_remembered_by_exact_range);
    tcase_add_test(t, epochs);
    tcase_add_test(t, partitions_have_epochs_of_their_own);
    tcase_add_test(t, sequences_wrap);
    tcase_add_test(t, forgotten_producers_begin_anywhere);
    tcase_add_test(t, many_producers);
    tcase_add_test(t, a_request_of_many_parts);
    tcase_add_test(t, log_start_moves);
    tcase_add_test(t, quota_throttles_and_stops_reading);
    tcase_add_test(t, verdicts_are_told);
    tcase_add_loop_test(t, cut_and_grown_requests_end_the_connection, 8, 10);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(broker_produce_suite)
