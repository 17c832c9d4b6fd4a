/* SPDX-License-Identifier: BSD-2-Clause */
/* accumulator_fixture.h - an accumulator with its pool, compressors and one
 * topic, under a clock that stands still, and hands to append and drain with.
 * For the tests of what stands in lib/shared. */
#ifndef KP_TEST_UNIT_ACCUMULATOR_FIXTURE_H
#define KP_TEST_UNIT_ACCUMULATOR_FIXTURE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/base/thread.h"
#include "lib/shared/cq.h"
#include "lib/shared/record_accumulator.h"
#include "lib/shared/sticky.h"
#include "lib/shared/topics.h"
#include "lib/wire/record_batch.h"
#include "test/support/fake_clock.h"

#define START_NS (1000 * KP_NS_PER_SEC)
#define START_MS INT64_C(1700000000000)

struct fixture {
    struct settings settings;
    struct fake_clock fake;
    struct clock clock;
    struct buffer_pool *pool;
    struct compressors compressors;
    struct io_bell bell;
    struct record_accumulator acc;
    struct topics *topics;
    struct topic *topic;
};

static struct fixture f;

/* Change f.settings first, if at all. */
static inline void fixture_defaults(void)
{
    memset(&f, 0, sizeof(f));
    f.settings.batch_size = 16384;
    f.settings.max_request_size = 1048576;
    f.settings.buffer_memory = 1048576;
    f.settings.codec = CODEC_NONE;
    f.settings.linger_ns = 5 * KP_NS_PER_MS;
    f.settings.delivery_timeout_ns = 120 * KP_NS_PER_SEC;
}

static inline void fixture_start(int32_t partitions)
{
    kp__thread_rng_seed(7);
    f.fake.mono_ns = START_NS;
    f.fake.wall_ms = START_MS;
    f.clock = fake_clock(&f.fake);
    f.pool = kp__pool_create(f.settings.buffer_memory);
    ck_assert_int_eq(kp__compressors_init(&f.compressors, f.settings.codec,
                                          f.settings.codec_level,
                                          kp__raw_max(&f.settings)),
                     KP_OK);
    ck_assert_int_eq(kp__wakeup_init(&f.bell.wakeup), 0);
    kp__accumulator_init(&f.acc, &f.settings, &f.clock, f.pool, &f.compressors,
                         &f.bell);
    f.topics = kp__topics_create(&f.acc);
    f.topic = kp__topics_publish(f.topics, "orders", 6, partitions);
    ck_assert_ptr_nonnull(f.topic);
}

static inline struct partition_queue *fixture_queue(int32_t partition)
{
    return kp__topic_view(f.topic)->queues[partition];
}

static inline size_t fixture_available(void)
{
    struct pool_stats s;

    kp__pool_stats(f.pool, &s);
    return s.available_bytes;
}

/* An outcome, and everything of the batch goes: what the I/O thread does at
 * last. */
static inline void fixture_complete(struct batch *b, kp_err err)
{
    struct outcome o = {.err = err,
                        .stored = err == KP_OK ? CERTAIN_YES : CERTAIN_NO,
                        .base_offset = err == KP_OK ? 100 : -1,
                        .append_time_ms = -1};

    b->fate = FATE_COMPLETED;
    kp__batch_release_bytes(b);
    kp__result_complete(b->result, &o, NULL);
    for (uint32_t i = 0; i < b->reports.post_count; i++)
        kp__cq_post(b->reports.posts[i].cq, &b->reports.posts[i]);
    kp__batch_unref(b);
}

/* Whatever is left in the queues fails. */
static inline void fixture_empty(void)
{
    const struct topic_view *v = kp__topic_view(f.topic);

    for (int32_t i = 0; i < v->count; i++) {
        struct list out;
        struct list_node *n;

        kp__list_init(&out);
        kp__queue_expire(v->queues[i], KP_NEVER, &out);
        while ((n = kp__list_pop_front(&out)) != NULL)
            fixture_complete(KP_CONTAINER(n, struct batch, link), KP_ECLOSED);
    }
}

static inline void fixture_stop(void)
{
    fixture_empty();
    kp__pool_check(f.pool);
    ck_assert_uint_eq(fixture_available(), f.settings.buffer_memory);
    kp__topics_destroy(f.topics);
    kp__compressors_fini(&f.compressors);
    kp__accumulator_fini(&f.acc);
    kp__wakeup_fini(&f.bell.wakeup);
    kp__pool_unref(f.pool);
    ck_assert_int_eq(kp__mem_live(), 0);
}

static inline void append_init(struct append *x, const kp_record *r,
                               int32_t partition)
{
    memset(x, 0x5a, sizeof(*x)); /* nothing but these is looked at */
    x->record = r;
    x->topic = f.topic;
    x->partition = partition;
    x->may_wait = (r->flags & KP_NOWAIT) == 0;
    x->want_future = false;
    x->deadline_ns = KP_NEVER;
    x->timestamp_ms = (r->flags & KP_HAS_TIMESTAMP) != 0 ? r->timestamp_ms : -1;
    x->waiting = x->braking = false;
    x->may_brake = false;
}

static inline kp_err append_record(const kp_record *r, int32_t partition)
{
    struct append x;

    append_init(&x, r, partition);
    return kp__append_try(&f.acc, &x);
}

static inline kp_record record_of(const void *value, size_t size)
{
    return (kp_record){.topic = "orders", .value = {value, size}};
}

/* `size` bytes of a value, the same for the same seed; hard to compress. */
static inline const uint8_t *some_bytes(uint32_t seed, size_t size)
{
    static uint8_t bytes[1 << 20];
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

    ck_assert_uint_le(size, sizeof(bytes));
    for (size_t i = 0; i < size; i++) {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        bytes[i] = (uint8_t)(x * UINT64_C(0x2545f4914f6cdd1d) >> 56);
    }
    return bytes;
}

static inline kp_err append_bytes(uint32_t seed, size_t size, int32_t partition)
{
    kp_record r = record_of(some_bytes(seed, size), size);

    return append_record(&r, partition);
}

/* The head of the queue, sealed and compressed if need be, off the queue. */
static inline struct batch *drain_head(struct partition_queue *q)
{
    struct batch *b = NULL;

    (void)kp__queue_seal(q, true, false);
    if (kp__queue_claim(q, true, &b) == QUEUE_OK)
        kp__compress_and_finish(&f.acc, b, kp__compressors_own(&f.compressors));
    return kp__queue_take(q, true, &b) == QUEUE_OK ? b : NULL;
}

/* The body as it would be sent, decompressed; the caller ends the buffer. */
static inline void body_of(const struct batch *b, struct buf *out)
{
    size_t n = kp__batch_iov_count(b);
    struct iovec *iov = malloc((n + 1) * sizeof(*iov));
    struct buf wire;

    kp__buf_init(&wire);
    kp__buf_init(out);
    ck_assert_uint_eq(kp__batch_iov(b, iov, n), n);
    for (size_t i = 0; i < n; i++)
        kp__buf_append(&wire, iov[i].iov_base, iov[i].iov_len);
    free(iov);
    if (b->codec == CODEC_NONE)
        kp__buf_append(out, wire.data, wire.size);
    else
        ck_assert(kp__codec(b->codec)->decompress(wire.data, wire.size,
                                                  b->raw_size, out));
    kp__buf_fini(&wire);
    ck_assert(!kp__buf_failed(out));
    ck_assert_uint_eq(out->size, b->raw_size);
}

/* Every record of the batch, in order; returns how many. */
static inline uint32_t each_record(const struct batch *b,
                                   void (*fn)(void *arg, uint32_t index,
                                              const struct record_view *v),
                                   void *arg)
{
    struct record_view v;
    struct reader reader;
    struct buf body;
    uint32_t n = 0;

    body_of(b, &body);
    kp__reader_init(&reader, body.data, body.size);
    while (kp__reader_left(&reader) > 0) {
        ck_assert(kp__record_next(&reader, &v));
        ck_assert_int_eq(v.offset_delta, (int32_t)n);
        if (fn != NULL)
            fn(arg, n, &v);
        n++;
    }
    ck_assert_uint_eq(n, b->record_count);
    kp__buf_fini(&body);
    return n;
}

static inline struct queue_view look_at(struct partition_queue *q)
{
    struct queue_view v = {0};

    ck_assert_int_eq(kp__queue_look(q, true, &v), QUEUE_OK);
    return v;
}

#endif
