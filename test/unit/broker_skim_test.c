/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests without their batch bodies: the same however the stream is cut, and
 * nothing else is lost. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/rand.h"
#include "test/broker/probe.h"
#include "test/broker/skim.h"
#include "test/support/main.h"

#define MAX_FRAME 1000000
#define FRAMES 4

static struct buf stream;
static struct buf kept[FRAMES + 1];
static bool skimmed[FRAMES + 1];
static int frames;

static void setup(void)
{
    int i;

    kp__buf_init(&stream);
    for (i = 0; i <= FRAMES; i++)
        kp__buf_init(&kept[i]);
}

static void teardown(void)
{
    int i;

    kp__buf_fini(&stream);
    for (i = 0; i <= FRAMES; i++)
        kp__buf_fini(&kept[i]);
}

static void add(uint8_t *frame, size_t size)
{
    kp__buf_append(&stream, frame, size);
    kb_probe_free(frame);
}

static uint8_t *batch(int32_t records, size_t value_size, size_t *size)
{
    struct kb_probe_batch b;

    kb_probe_batch_default(&b);
    b.records = records;
    b.value_size = value_size;
    return kb_probe_batch_make(&b, size);
}

static void add_produce(int16_t version)
{
    static const uint8_t few[5] = {1, 2, 3, 4, 5};
    struct kb_probe_part parts[5];
    struct kb_probe_produce p = {.version = version,
                                 .acks = -1,
                                 .timeout_ms = 5,
                                 .correlation_id = 1,
                                 .parts = parts,
                                 .count = 5};
    size_t n[3], size;
    uint8_t *b[3], *frame;
    int i;

    for (i = 0; i < 3; i++)
        b[i] = batch(i + 1, 100 * (size_t)i * (size_t)i, &n[i]);
    memset(parts, 0, sizeof(parts));
    for (i = 0; i < 5; i++) {
        parts[i].topic = i < 3 ? "one" : "another";
        parts[i].topic_id.b[0] = i < 3;
        parts[i].partition = i;
        parts[i].records = i < 3 ? b[i] : i == 3 ? few : NULL;
        parts[i].size = i < 3 ? n[i] : i == 3 ? sizeof(few) : 0;
    }
    frame = kb_probe_produce_request(&p, &size);
    add(frame, size);
    for (i = 0; i < 3; i++)
        kb_probe_free(b[i]);
}

static void add_others(void)
{
    struct metadata_request m;
    struct produce_request empty;
    size_t size;
    uint8_t *frame;

    memset(&m, 0, sizeof(m));
    frame = kb_probe_request(API_METADATA, 9, 2, &m, &size);
    add(frame, size);
    memset(&empty, 0, sizeof(empty));
    frame = kb_probe_request(API_PRODUCE, 12, 3, &empty, &size);
    add(frame, size);
}

static void build(int16_t version)
{
    kp__buf_clear(&stream);
    add_produce(version);
    add_others();
    add_produce(version);
}

static void note(const struct kb_skim *s)
{
    ck_assert_int_lt(frames, FRAMES);
    kp__buf_clear(&kept[frames]);
    kp__buf_append(&kept[frames], s->kept, s->kept_size);
    skimmed[frames++] = s->skimmed;
}

/* Walk the stream in pieces of `piece`; `drop`: throw bodies away unread. */
static enum kb_skim_result walk_all(size_t piece, bool drop)
{
    struct kb_skim s;
    size_t at = 0, have = 0;
    enum kb_skim_result r = KB_SKIM_MORE;

    frames = 0;
    kb_skim_init(&s, MAX_FRAME);
    while (r != KB_SKIM_BAD && (have < stream.size || at < have)) {
        size_t used, skip = drop ? kb_skim_skippable(&s) : 0;

        if (skip > 0 && at == have) {
            skip = skip < stream.size - have ? skip : stream.size - have;
            kb_skim_skipped(&s, skip);
            at = have += skip;
            continue;
        }
        if (have < stream.size)
            have = have + piece < stream.size ? have + piece : stream.size;
        do {
            /* Exactly as large as it is, for the sanitizer. */
            uint8_t *copy = malloc(have - at + 1);

            memcpy(copy + 1, stream.data + at, have - at);
            r = kb_skim_walk(&s, copy + 1, have - at, &used);
            free(copy);
            at += used;
            if (r == KB_SKIM_FRAME)
                note(&s);
        } while (r == KB_SKIM_FRAME);
        if (r == KB_SKIM_MORE && used == 0 && have == stream.size)
            break; /* the end is missing */
    }
    kb_skim_fini(&s);
    return r;
}

static void check_produce(const struct buf *b, int16_t version)
{
    const struct api *api = kp__api(API_PRODUCE);
    struct request_header h;
    struct produce_request p;
    const struct produce_request_topic *t;
    const struct produce_request_partition *part;
    struct arena arena;
    struct reader r;
    size_t n;
    uint8_t *first = batch(1, 0, &n);

    kp__arena_init(&arena);
    kp__reader_init(&r, b->data, b->size);
    ck_assert(kp__request_header_decode(&r, &h));
    ck_assert(kp__schema_decode(api->request, &r, &arena, version,
                                kp__api_flexible(api, version), &p));
    ck_assert_uint_eq(kp__reader_left(&r), 0);
    ck_assert_uint_eq(p.topics.count, 2);
    t = p.topics.items;
    part = t[0].partitions.items;
    ck_assert_uint_eq(t[0].partitions.count, 3);
    ck_assert_uint_eq(part[0].records.size, RECORD_BATCH_HEADER_SIZE);
    ck_assert_mem_eq(part[0].records.data, first, RECORD_BATCH_HEADER_SIZE);
    ck_assert_uint_eq(part[2].records.size, RECORD_BATCH_HEADER_SIZE);
    part = t[1].partitions.items;
    ck_assert_uint_eq(part[0].records.size, 5);
    ck_assert_int_eq(((const uint8_t *)part[0].records.data)[4], 5);
    ck_assert_ptr_null(part[1].records.data);
    kp__arena_fini(&arena);
    kb_probe_free(first);
}

START_TEST(kept_whole_but_for_the_bodies)
{
    int16_t version = (int16_t)_i;

    build(version);
    ck_assert_int_eq(walk_all(stream.size, false), KB_SKIM_MORE);
    ck_assert_int_eq(frames, FRAMES);
    ck_assert(skimmed[0] && !skimmed[1] && !skimmed[2] && skimmed[3]);
    check_produce(&kept[0], version);
    check_produce(&kept[3], version);
}
END_TEST

START_TEST(however_it_is_cut)
{
    struct buf whole[FRAMES];
    size_t piece;
    int i, drop;

    build((int16_t)_i);
    ck_assert_int_eq(walk_all(stream.size, false), KB_SKIM_MORE);
    for (i = 0; i < FRAMES; i++) {
        kp__buf_init(&whole[i]);
        kp__buf_append(&whole[i], kept[i].data, kept[i].size);
    }
    for (piece = 1; piece < 130; piece++)
        for (drop = 0; drop < 2; drop++) {
            ck_assert_int_eq(walk_all(piece, drop), KB_SKIM_MORE);
            ck_assert_int_eq(frames, FRAMES);
            for (i = 0; i < FRAMES; i++) {
                ck_assert_uint_eq(kept[i].size, whole[i].size);
                ck_assert_mem_eq(kept[i].data, whole[i].data, whole[i].size);
            }
        }
    for (i = 0; i < FRAMES; i++)
        kp__buf_fini(&whole[i]);
}
END_TEST

START_TEST(sizes_that_lie)
{
    static const uint8_t sizes[][4] = {
        {0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0, 0x0f, 0x42, 0x41}};

    kp__buf_append(&stream, sizes[_i], 4);
    ck_assert_int_eq(walk_all(4, false), KB_SKIM_BAD);
    ck_assert_int_eq(frames, 0);
}
END_TEST

START_TEST(a_frame_too_small_for_its_fields)
{
    size_t size;

    /* Every size smaller than the real one: some field does not fit. */
    kp__buf_clear(&stream);
    add_produce((int16_t)_i);
    for (size = 9; size < stream.size - 4; size++) {
        stream.data[2] = (uint8_t)(size >> 8);
        stream.data[3] = (uint8_t)size;
        ck_assert_int_eq(walk_all(stream.size, false), KB_SKIM_BAD);
        ck_assert_int_eq(frames, 0);
    }
}
END_TEST

START_TEST(two_batches_are_seen)
{
    struct kb_probe_part part = {.topic = "t"};
    struct kb_probe_produce p = {.version = 9, .parts = &part, .count = 1};
    size_t n, size;
    uint8_t *b = batch(1, 10, &n), *two = malloc(2 * n), *frame;

    memcpy(two, b, n);
    memcpy(two + n, b, n);
    part.records = two;
    part.size = 2 * n;
    frame = kb_probe_produce_request(&p, &size);
    add(frame, size);
    ck_assert_int_eq(walk_all(stream.size, false), KB_SKIM_MORE);
    ck_assert_int_eq(frames, 1);
    /* Its record format is now one that is refused with the same error. */
    ck_assert_int_eq(
        kept[0].data[kept[0].size - RECORD_BATCH_HEADER_SIZE - 3 + 16], 1);
    kb_probe_free(b);
    free(two);
}
END_TEST

START_TEST(noise)
{
    struct rng rng;
    int round, i, changes;

    kp__rng_seed(&rng, (uint64_t)_i);
    for (round = 0; round < 3000; round++) {
        build((int16_t)(3 + kp__rng_below(&rng, 11)));
        changes = 1 + (int)kp__rng_below(&rng, 4);
        for (i = 0; i < changes; i++)
            stream.data[kp__rng_below(&rng, (uint32_t)stream.size)] =
                (uint8_t)kp__rng_next(&rng);
        (void)walk_all(1 + kp__rng_below(&rng, 300), kp__rng_below(&rng, 2));
        ck_assert_int_le(frames, FRAMES);
    }
}
END_TEST

/* -- the model behind it -- */

static struct kb_conn *discarding(struct kb_cluster **c)
{
    struct kb_config g;

    kb_config_default(&g);
    g.discard = true;
    g.nodes = 3;
    *c = kb_create(&g);
    ck_assert_int_eq(kb_topic_create(*c, "one", 5, 3, 0), 0);
    for (int p = 0; p < 5; p++)
        ck_assert(kb_leader_move(*c, "one", p, 1, false, 0));
    return kb_connect(*c, 1, NULL, 0);
}

START_TEST(the_model_takes_skimmed_requests)
{
    struct kb_cluster *c;
    struct kb_conn *k = discarding(&c);
    struct kb_probe_answer a;
    const struct produce_response_topic *t;
    const struct produce_response_partition *p;
    struct kb_totals totals;
    int round;
    size_t n[3];

    for (int i = 0; i < 3; i++)
        kb_probe_free(batch(i + 1, 100 * (size_t)i * (size_t)i, &n[i]));
    build(9);
    (void)walk_all(stream.size, true);
    for (round = 0; round < 2; round++) {
        kb_conn_skimmed_frame(k, kept[0].data, kept[0].size, 0);
        ck_assert(kb_probe_take(k, &a, API_PRODUCE, 9));
        t = a.body.produce.topics.items;
        p = t[0].partitions.items;
        for (int i = 0; i < 3; i++) {
            ck_assert_int_eq(p[i].error_code, 0);
            ck_assert_int_eq(p[i].base_offset, round * (i + 1));
        }
        p = t[1].partitions.items;
        ck_assert_int_eq(p[0].error_code, 3); /* no such topic */
        kb_probe_answer_fini(&a);
    }
    kb_totals(c, "one", &totals);
    ck_assert_int_eq(totals.records, 12);
    ck_assert_int_eq(totals.bytes, (int64_t)(2 * (n[0] + n[1] + n[2])));
    ck_assert_int_eq(kb_high_watermark(c, "one", 2), 6);
    kb_destroy(c);
}
END_TEST

START_TEST(sequences_are_checked_all_the_same)
{
    static const struct {
        int16_t epoch;
        int32_t sequence;
        int16_t error;
        int64_t offset;
    } steps[] = {{0, 0, 0, 0},   {0, 1, 0, 1}, {0, 0, 0, 0},  {0, 3, 45, -1},
                 {1, 2, 45, -1}, {1, 0, 0, 2}, {0, 2, 47, -1}};
    struct kb_cluster *c;
    struct kb_conn *k = discarding(&c);
    struct kb_probe_verdict v;
    struct kb_probe_batch b;

    kb_probe_batch_default(&b);
    b.producer_id = 4;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        b.epoch = steps[i].epoch;
        b.sequence = steps[i].sequence;
        if (i == 3) { /* the state is at every replica */
            ck_assert(kb_leader_move(c, "one", 0, 2, false, 0));
            k = kb_connect(c, 2, NULL, 0);
        }
        kb_probe_send_batch(k, 12, -1, 100, "one", 0, &b);
        v = kb_probe_take_verdict(k, 12);
        ck_assert_int_eq(v.error, steps[i].error);
        ck_assert_int_eq(v.base_offset, steps[i].offset);
    }
    kb_destroy(c);
}
END_TEST

static Suite *broker_skim_suite(void)
{
    Suite *s = suite_create("broker_skim");
    TCase *t = tcase_create("skim");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, kept_whole_but_for_the_bodies, 3, 14);
    tcase_add_loop_test(t, however_it_is_cut, 8, 14);
    tcase_add_loop_test(t, sizes_that_lie, 0, 3);
    tcase_add_loop_test(t, a_frame_too_small_for_its_fields, 8, 10);
    tcase_add_test(t, two_batches_are_seen);
    tcase_add_loop_test(t, noise, 0, 3);
    tcase_add_test(t, the_model_takes_skimmed_requests);
    tcase_add_test(t, sequences_are_checked_all_the_same);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(broker_skim_suite)
