/* SPDX-License-Identifier: BSD-2-Clause */
/* record_accumulator_test.c - appending, as far as one thread can tell: what
 * bytes stand in which batch, what is sealed when, what is refused. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

#include "lib/base/crc32c.h"
#include "lib/wire/record.h"
#include "test/support/main.h"
#include "test/unit/accumulator_fixture.h"

static void set_up(void)
{
    fixture_defaults();
}

/* What keeps the pool full; queue 1's. */
static struct chunk *hoard;

static void release_hoard(void)
{
    kp__pool_give(f.pool, fixture_queue(1), hoard);
    hoard = NULL;
}

static void tear_down(void)
{
    if (hoard != NULL)
        release_hoard();
    fixture_stop();
}

/* The bytes of a record of 1 + n in a batch, of which the deltas are small. */
static size_t record_size(size_t value_size, uint32_t index)
{
    kp_record r = record_of("", value_size);

    return kp__record_size(&r, 0, (int32_t)index);
}

static void check_value(void *arg, uint32_t index, const struct record_view *v)
{
    const size_t *size = arg;

    ck_assert_uint_eq(v->value_size, *size);
    ck_assert_mem_eq(v->value, some_bytes(index, *size), *size);
    ck_assert_ptr_null(v->key);
}

/* Append until a second batch begins; returns how many are in the first. */
static uint32_t fill_one(size_t size, int32_t partition)
{
    uint32_t n = 0;

    for (;;) {
        ck_assert_int_eq(append_bytes(n, size, partition), KP_OK);
        if (look_at(fixture_queue(partition)).batch_count > 1)
            return n;
        n++;
    }
}

/* Drain partition 0 to the end; returns how many records there were. */
static uint32_t drain_and_count(void)
{
    struct batch *b;
    uint32_t n = 0;

    while ((b = drain_head(fixture_queue(0))) != NULL) {
        n += each_record(b, NULL, NULL);
        fixture_complete(b, KP_OK);
    }
    return n;
}

/* -- Records and batches -- */

START_TEST(a_record_stands_in_the_batch_as_it_was_given)
{
    kp_header headers[2] = {{kp_str("h"), kp_str("1")},
                            {kp_str("h"), {NULL, 0}}};
    kp_record r = {.topic = "orders",
                   .key = kp_str("key"),
                   .value = kp_str("value"),
                   .headers = headers,
                   .header_count = 2,
                   .flags = KP_HAS_TIMESTAMP,
                   .timestamp_ms = 1234};
    kp_record late = {
        .topic = "orders", .flags = KP_HAS_TIMESTAMP, .timestamp_ms = 1200};
    uint8_t expected[64], *at;
    struct buf body;
    struct batch *b;

    fixture_start(1);
    ck_assert_int_eq(append_record(&r, 0), KP_OK);
    ck_assert_int_eq(append_record(&late, 0), KP_OK);
    b = drain_head(fixture_queue(0));
    at = kp__record_encode(expected, &r, kp__record_body_size(&r, 0, 0), 0, 0);
    at = kp__record_encode(at, &late, kp__record_body_size(&late, -34, 1), -34,
                           1);
    body_of(b, &body);
    ck_assert_uint_eq(body.size, (size_t)(at - expected));
    ck_assert_mem_eq(body.data, expected, body.size);
    ck_assert_int_eq(b->base_timestamp_ms, 1234);
    ck_assert_int_eq(b->max_timestamp_ms, 1234);
    ck_assert_uint_eq(b->record_count, 2);
    ck_assert_uint_eq(b->max_record_size, kp__record_size(&r, 0, 0));
    ck_assert_int_eq(b->base_sequence, -1);
    ck_assert_uint_eq(b->body_crc, kp__crc32c(0, body.data, body.size));
    ck_assert_uint_eq(b->wire_size, body.size);
    kp__buf_fini(&body);
    fixture_complete(b, KP_OK);
}
END_TEST

/* One record in a batch of two is the second, which takes the usual way; its
 * bytes are those that the encoder writes. */
static void check_encoding(size_t key_size, size_t value_size, int64_t delta)
{
    static uint8_t expected[40000];
    kp_record first = record_of("", 0), r = record_of(NULL, 0);
    uint8_t *at = expected;
    struct buf body;
    struct batch *b;

    first.flags = r.flags = KP_HAS_TIMESTAMP;
    first.timestamp_ms = 1000000000000;
    r.timestamp_ms = first.timestamp_ms + delta;
    r.value = (kp_bytes){some_bytes(1, value_size), value_size};
    if (key_size > 0)
        r.key = (kp_bytes){some_bytes(1, value_size), key_size - 1};
    ck_assert_int_eq(append_record(&first, 0), KP_OK);
    ck_assert_int_eq(append_record(&r, 0), KP_OK);
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(b->record_count, 2);
    at =
        kp__record_encode(at, &first, kp__record_body_size(&first, 0, 0), 0, 0);
    at =
        kp__record_encode(at, &r, kp__record_body_size(&r, delta, 1), delta, 1);
    body_of(b, &body);
    ck_assert_uint_eq(body.size, (size_t)(at - expected));
    ck_assert_mem_eq(body.data, expected, body.size);
    kp__buf_fini(&body);
    fixture_complete(b, KP_OK);
}

START_TEST(records_of_every_size_are_encoded_alike)
{
    f.settings.batch_size = 100000;
    fixture_start(1);
    for (size_t size = 0; size < 200; size++)
        for (size_t key = 0; key < 3; key++)
            check_encoding(key * 20, size, (int64_t)key - 1);
    for (size_t size = 8140; size < 8200; size++)
        check_encoding(0, size, 0);
    for (size_t size = 16300; size < 16420; size += 7)
        check_encoding(60, size, 5000000);
    check_encoding(65, 64, -1000000000000);
    check_encoding(0, 30000, INT64_C(1) << 40);
}
END_TEST

START_TEST(a_record_without_timestamp_is_stamped_with_now)
{
    struct batch *b;

    fixture_start(1);
    ck_assert_int_eq(append_bytes(1, 10, 0), KP_OK);
    f.fake.wall_ms += 40;
    ck_assert_int_eq(append_bytes(2, 10, 0), KP_OK);
    b = drain_head(fixture_queue(0));
    ck_assert_int_eq(b->base_timestamp_ms, START_MS);
    ck_assert_int_eq(b->max_timestamp_ms, START_MS + 40);
    fixture_complete(b, KP_OK);
}
END_TEST

/* A6: records that fit share a batch, which lingers. */
START_TEST(records_that_fit_share_a_batch)
{
    size_t size = 100;
    struct queue_view v;
    struct batch *b;

    fixture_start(1);
    for (uint32_t i = 0; i < 20; i++)
        ck_assert_int_eq(append_bytes(i, size, 0), KP_OK);
    v = look_at(fixture_queue(0));
    ck_assert_int_eq(v.head_place, PLACE_OPEN);
    ck_assert(!v.head_full);
    ck_assert_uint_eq(v.batch_count, 1);
    ck_assert_int_eq(v.head_created_ns, START_NS);
    ck_assert_int_eq(v.head_deadline_ns, START_NS + 120 * KP_NS_PER_SEC);
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(each_record(b, check_value, &size), 20);
    ck_assert_int_eq(kp__queue_look(fixture_queue(0), true, &v), QUEUE_EMPTY);
    fixture_complete(b, KP_OK);
}
END_TEST

/* A7: batch.size is Java's: 61 bytes of header and the records, no more. The
 * next record makes the first batch ready at once. */
START_TEST(a_batch_is_full_at_batch_size_exactly)
{
    size_t value = 100, first = record_size(value, 0);
    struct queue_view v;
    uint32_t n = 10;
    struct batch *b;

    f.settings.batch_size = RECORD_BATCH_HEADER_SIZE + n * first;
    fixture_start(1);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_int_eq(append_bytes(i, value, 0), KP_OK);
    ck_assert_uint_eq(look_at(fixture_queue(0)).batch_count, 1);
    ck_assert_int_eq(append_bytes(n, value, 0), KP_OK);
    v = look_at(fixture_queue(0));
    ck_assert_uint_eq(v.batch_count, 2);
    ck_assert_int_eq(v.head_place, PLACE_READY); /* compressed by who sealed */
    ck_assert(v.head_full);
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(each_record(b, check_value, &value), n);
    fixture_complete(b, KP_OK);
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(b->record_count, 1);
    ck_assert_uint_eq(b->ordinal, 1);
    fixture_complete(b, KP_OK);
}
END_TEST

START_TEST(one_byte_less_than_needed_and_the_record_goes_next_door)
{
    size_t first = record_size(100, 0);

    f.settings.batch_size = RECORD_BATCH_HEADER_SIZE + 10 * first - 1;
    fixture_start(1);
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_int_eq(append_bytes(i, 100, 0), KP_OK);
    ck_assert_uint_eq(look_at(fixture_queue(0)).batch_count, 2);
}
END_TEST

/* A9: a record larger than batch.size is its own batch, sendable now. */
START_TEST(a_large_record_is_its_own_batch)
{
    size_t size = 2 * 16384;
    struct queue_view v;
    kp_record r = record_of(NULL, 0);
    struct batch *b;

    fixture_start(1);
    r.value = (kp_bytes){some_bytes(0, size), size};
    r.flags = KP_HAS_TIMESTAMP;
    r.timestamp_ms = 77;
    ck_assert_int_eq(append_record(&r, 0), KP_OK);
    v = look_at(fixture_queue(0));
    ck_assert_int_eq(v.head_place, PLACE_READY);
    b = drain_head(fixture_queue(0));
    ck_assert_int_eq(b->base_timestamp_ms, 77);
    ck_assert_uint_eq(each_record(b, check_value, &size), 1);
    fixture_complete(b, KP_OK);
}
END_TEST

START_TEST(batch_size_zero_means_a_batch_for_each_record)
{
    f.settings.batch_size = 0;
    fixture_start(1);
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_int_eq(append_bytes(i, 10, 0), KP_OK);
    ck_assert_uint_eq(look_at(fixture_queue(0)).batch_count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        struct batch *b = drain_head(fixture_queue(0));

        ck_assert_uint_eq(b->record_count, 1);
        ck_assert_uint_eq(b->ordinal, i);
        fixture_complete(b, KP_OK);
    }
}
END_TEST

/* A batch grows by chunks: a small one, then full ones; no record straddles
 * two. */
START_TEST(a_batch_grows_by_chunks)
{
    size_t size = 900;
    const struct chunk *c;
    struct batch *b;
    uint32_t n;

    f.settings.batch_size = 100000;
    fixture_start(1);
    n = fill_one(size, 0);
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(b->chunks->capacity + sizeof(struct chunk),
                      CHUNK_SMALL_SIZE);
    for (c = b->chunks->next; c != NULL; c = c->next)
        ck_assert_uint_eq(c->capacity + sizeof(struct chunk), CHUNK_SIZE);
    ck_assert_uint_eq(each_record(b, check_value, &size), n);
    fixture_complete(b, KP_OK);
    /* The next one starts as the last one grew. */
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(b->chunks->capacity + sizeof(struct chunk), CHUNK_SIZE);
    fixture_complete(b, KP_OK);
}
END_TEST

START_TEST(an_old_batch_takes_no_more)
{
    struct partition_queue *q;
    int64_t began_ns;

    fixture_start(2);
    q = fixture_queue(0);
    began_ns = f.fake.mono_ns;
    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    ck_assert_int_eq(look_at(q).open_created_ns, began_ns);
    kp__queue_note_age(q, began_ns - 1);
    ck_assert_int_eq(append_bytes(1, 10, 0), KP_OK);
    ck_assert_uint_eq(look_at(q).batch_count, 1);
    kp__queue_note_age(q, began_ns);
    /* it lingers on */
    ck_assert(!look_at(q).head_full);
    ck_assert_int_eq(look_at(q).open_created_ns, KP_NEVER);
    f.fake.mono_ns += KP_NS_PER_MS;
    ck_assert_int_eq(append_bytes(2, 10, 0), KP_OK);
    ck_assert_uint_eq(look_at(q).batch_count, 2);
    ck_assert_int_eq(look_at(q).open_created_ns, began_ns + KP_NS_PER_MS);
    ck_assert_int_eq(append_bytes(3, 10, 0), KP_OK);
    ck_assert_uint_eq(look_at(q).batch_count, 2);
}
END_TEST

/* Nor do the caller's timestamps say anything of a batch's age. */
START_TEST(age_is_not_told_by_timestamps)
{
    kp_record r = record_of("v", 1);

    r.flags = KP_HAS_TIMESTAMP;
    fixture_start(1);
    for (int i = 0; i < 10; i++) {
        r.timestamp_ms = i * INT64_C(1000000000);
        ck_assert_int_eq(append_record(&r, 0), KP_OK);
    }
    r.flags = 0;
    for (int i = 0; i < 10; i++) {
        f.fake.wall_ms += i % 2 == 0 ? 1000000000 : -2000000000;
        ck_assert_int_eq(append_record(&r, 0), KP_OK);
    }
    ck_assert_uint_eq(look_at(fixture_queue(0)).batch_count, 1);
}
END_TEST

START_TEST(creation_follows_the_ordinals)
{
    fixture_start(1);
    f.settings.batch_size = 0;
    f.acc.batch_size = 0;
    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    f.fake.mono_ns -= 5 * KP_NS_PER_MS;
    ck_assert_int_eq(append_bytes(1, 10, 0), KP_OK);
    fixture_complete(drain_head(fixture_queue(0)), KP_OK);
    ck_assert_int_eq(look_at(fixture_queue(0)).head_created_ns, START_NS);
}
END_TEST

/* -- Reports -- */

static void on_delivery(const kp_report *report)
{
    (void)report;
}

START_TEST(futures_are_counted_in_the_batch)
{
    kp_record r = record_of("v", 1);
    struct batch_result *result;
    struct append x;
    struct batch *b;

    fixture_start(1);
    for (uint32_t i = 0; i < 5; i++) {
        append_init(&x, &r, 0);
        x.want_future = i != 2;
        ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
        ck_assert_uint_eq(x.index, i);
    }
    result = x.result;
    kp__result_unref(result, 1); /* while it is open */
    b = drain_head(fixture_queue(0));
    ck_assert_ptr_eq(b->result, result);
    ck_assert_uint_eq(b->reports.unwatched, 1);
    ck_assert(!b->reports.future_and_callback);
    ck_assert_uint_eq(atomic_load(&result->refs), 4); /* 4 - 1 futures, batch */
    fixture_complete(b, KP_OK);
    ck_assert_uint_eq(atomic_load(&result->refs), 3);
    kp__result_unref(result, 3);
}
END_TEST

/* The slot of the batch's record `index`; NULL: it has none. */
static const struct report_slot *slot_of(const struct batch *b, uint32_t index)
{
    size_t at = (size_t)index - b->reports.slots_from;

    if (index < b->reports.slots_from)
        return NULL;
    for (const struct chunk *c = b->reports.slots; c != NULL; c = c->next) {
        size_t used = c->used / sizeof(struct report_slot);

        if (at < used)
            return (const struct report_slot *)(const void *)c->data + at;
        at -= used;
    }
    return NULL;
}

START_TEST(reports_have_slots_from_the_first_that_needs_one)
{
    kp_record plain = record_of("v", 1), called = plain, queued = plain;
    const struct report_slot *slot;
    struct append x;
    struct batch *b;
    kp_cq *cq;

    ck_assert_int_eq(kp_cq_create(&cq, NULL), KP_OK);
    called.on_delivery = on_delivery;
    queued.queue = cq;
    fixture_start(1);
    ck_assert_int_eq(append_record(&plain, 0), KP_OK);
    called.tag = &called;
    ck_assert_int_eq(append_record(&called, 0), KP_OK);
    ck_assert_int_eq(append_record(&plain, 0), KP_OK);
    queued.tag = &queued;
    append_init(&x, &queued, 0);
    x.want_future = true;
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(b->reports.slots_from, 1);
    ck_assert_ptr_null(slot_of(b, 0));
    slot = slot_of(b, 1);
    ck_assert(kp__slot_is_callback(slot));
    ck_assert(slot->target == (uintptr_t)on_delivery);
    ck_assert_ptr_eq(slot->tag, &called);
    ck_assert_uint_eq(slot_of(b, 2)->target, 0);
    slot = slot_of(b, 3);
    ck_assert(!kp__slot_is_callback(slot));
    ck_assert_ptr_eq(b->reports.posts[slot->target - 1].cq, cq);
    ck_assert_ptr_eq(slot->tag, &queued);
    ck_assert_ptr_null(slot_of(b, 4));
    ck_assert(b->reports.future_and_callback);
    ck_assert_uint_eq(b->reports.unwatched, 2);
    kp__result_unref(b->result, 1);
    fixture_complete(b, KP_OK);
    kp_cq_destroy(cq);
}
END_TEST

START_TEST(many_slots_fill_page_after_page)
{
    kp_record r = record_of("", 0);
    uint32_t n = 3000;
    struct batch *b;

    r.on_delivery = on_delivery;
    f.settings.batch_size = 1000000;
    fixture_start(1);
    for (uint32_t i = 0; i < n; i++) {
        r.tag = (void *)(uintptr_t)(i + 1);
        ck_assert_int_eq(append_record(&r, 0), KP_OK);
    }
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(b->record_count, n);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_uint_eq((uintptr_t)slot_of(b, i)->tag, i + 1);
    ck_assert_ptr_null(slot_of(b, n));
    fixture_complete(b, KP_OK);
}
END_TEST

START_TEST(a_fifth_queue_begins_a_batch)
{
    kp_record r = record_of("v", 1);
    kp_cq *cq[5];
    struct batch *b;

    fixture_start(1);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(kp_cq_create(&cq[i], NULL), KP_OK);
        r.queue = cq[i];
        ck_assert_int_eq(append_record(&r, 0), KP_OK);
        r.queue = cq[0];
        if (i < 4)
            ck_assert_int_eq(append_record(&r, 0), KP_OK);
    }
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(b->record_count, 8);
    ck_assert_uint_eq(b->reports.post_count, 4);
    fixture_complete(b, KP_OK);
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(b->record_count, 1);
    fixture_complete(b, KP_OK);
    for (int i = 0; i < 5; i++) {
        kp_report reports[16];

        ck_assert_uint_eq(kp_cq_poll(cq[i], reports, 16, 0), i == 0 ? 5 : 1);
        kp_cq_destroy(cq[i]);
    }
}
END_TEST

/* -- What wakes the I/O thread -- */

static struct partition_queue *only_listed(void)
{
    struct partition_queue *q = kp__drain_take(&f.acc);

    if (q != NULL) {
        ck_assert_ptr_null(atomic_load(&q->drain_next));
        kp__drain_unlist(q);
    }
    return q;
}

START_TEST(a_first_record_is_announced_for_the_end_of_its_linger)
{
    struct partition_queue *q;

    fixture_start(1);
    q = fixture_queue(0);
    atomic_store(&f.bell.sleeps_until_ns, START_NS + f.settings.linger_ns);
    ck_assert(kp__drain_empty(&f.acc));
    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    ck_assert_ptr_eq(only_listed(), q);
    /* it wakes in time by itself */
    ck_assert_int_ne(atomic_load(&f.bell.sleeps_until_ns), 0);
    ck_assert_int_eq(append_bytes(1, 10, 0), KP_OK);
    ck_assert(kp__drain_empty(&f.acc)); /* no news */
}
END_TEST

START_TEST(a_sleeper_past_the_linger_is_woken)
{
    fixture_start(1);
    atomic_store(&f.bell.sleeps_until_ns, START_NS + f.settings.linger_ns + 1);
    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    ck_assert_int_eq(atomic_load(&f.bell.sleeps_until_ns), 0);
}
END_TEST

START_TEST(a_full_batch_is_announced_when_it_is_ready)
{
    fixture_start(1);
    atomic_store(&f.bell.sleeps_until_ns, START_NS);
    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    ck_assert_ptr_nonnull(only_listed());
    (void)fill_one(1000, 0);
    ck_assert_int_eq(atomic_load(&f.bell.sleeps_until_ns), 0);
    ck_assert_ptr_eq(only_listed(), fixture_queue(0));
    ck_assert_int_eq(look_at(fixture_queue(0)).head_place, PLACE_READY);
}
END_TEST

START_TEST(the_drain_list_has_each_queue_once_oldest_first)
{
    struct partition_queue *q;

    fixture_start(5);
    for (int round = 0; round < 3; round++)
        for (int32_t i = 0; i < 5; i++)
            kp__drain_push(&f.acc, fixture_queue((i * 2) % 5));
    q = kp__drain_take(&f.acc);
    for (int32_t i = 0; i < 5; i++) {
        struct partition_queue *next = atomic_load(&q->drain_next);

        ck_assert_ptr_eq(q, fixture_queue((i * 2) % 5));
        kp__drain_unlist(q);
        q = next;
    }
    ck_assert_ptr_null(q);
    ck_assert(kp__drain_empty(&f.acc));
    kp__drain_push(&f.acc, fixture_queue(3));
    ck_assert_ptr_eq(only_listed(), fixture_queue(3));
}
END_TEST

/* -- Memory -- */

/* Fill the pool: some ready batches in partition 1, and the rest hoarded. */
static void fill_pool(void)
{
    const struct pool_need need = {.record_size = 1, .small = true};
    kp_record r = record_of(some_bytes(1, 12000), 12000);
    struct pool_waiter w = {0};
    struct pool_grant g;

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(append_record(&r, 1), KP_OK);
    (void)kp__queue_seal(fixture_queue(1), true, false);
    while (kp__pool_try(f.pool, fixture_queue(1), &need, false, 0, &w, &g) ==
           POOL_GRANTED) {
        g.data->next = hoard;
        hoard = g.data;
    }
}

START_TEST(a_full_pool_is_waited_for)
{
    kp_record r = record_of("v", 1);
    struct append x;
    struct batch *b;

    f.settings.buffer_memory = 8 * CHUNK_SIZE;
    fixture_start(2);
    fill_pool();
    append_init(&x, &r, 0);
    x.want_future = true;
    atomic_store(&f.bell.sleeps_until_ns, KP_NEVER);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_PENDING);
    ck_assert_int_eq(atomic_load(&f.bell.sleeps_until_ns), 0);
    ck_assert(kp__pool_pressure(f.pool, NULL));
    ck_assert_int_eq(x.ticket.deadline_ns, KP_NEVER);
    ck_assert_uint_eq(atomic_load(x.ticket.word), x.ticket.seen);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_PENDING);
    b = drain_head(fixture_queue(1));
    f.fake.mono_ns += 10 * KP_NS_PER_SEC;
    f.fake.wall_ms += 10000;
    fixture_complete(b, KP_OK);
    ck_assert_uint_ne(atomic_load(x.ticket.word), x.ticket.seen);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    ck_assert_uint_eq(x.index, 0);
    /* Stamped, and its delivery time begun, after the wait. */
    b = drain_head(fixture_queue(0));
    ck_assert_int_eq(b->created_ns, f.fake.mono_ns);
    ck_assert_int_eq(b->base_timestamp_ms, f.fake.wall_ms);
    kp__result_unref(b->result, 1);
    fixture_complete(b, KP_OK);
}
END_TEST

/* A50: while it waited another thread has opened a batch with room. */
START_TEST(a_waiter_looks_again_and_gives_back_what_it_needs_no_more)
{
    kp_record r = record_of("v", 1);
    struct append x, y;
    struct batch *b;

    f.settings.buffer_memory = 8 * CHUNK_SIZE;
    fixture_start(2);
    fill_pool();
    append_init(&x, &r, 0);
    append_init(&y, &r, 0);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_PENDING);
    ck_assert_int_eq(kp__append_try(&f.acc, &y), KP_PENDING);
    while ((b = drain_head(fixture_queue(1))) != NULL)
        fixture_complete(b, KP_OK);
    release_hoard();
    ck_assert_int_eq(kp__append_try(&f.acc, &y), KP_OK);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    ck_assert_uint_eq(y.index, 0);
    ck_assert_uint_eq(x.index, 1);
    ck_assert_uint_eq(look_at(fixture_queue(0)).batch_count, 1);
    b = drain_head(fixture_queue(0));
    fixture_complete(b, KP_OK);
    ck_assert_uint_eq(fixture_available(), f.settings.buffer_memory);
}
END_TEST

static void append_meanwhile(void)
{
    ck_assert_int_eq(append_bytes(3, 1000, 0), KP_OK);
}

/* One record can end three batches: the one that was open when it came, one that
 * another thread opened while this one made its own, and that, as it is full at
 * once. */
START_TEST(a_record_that_ends_three_batches)
{
    static const size_t sizes[] = {10, 1000, 16316};
    kp_record r = record_of(some_bytes(2, 16316), 16316);
    struct append x;
    struct batch *b;

    f.settings.buffer_memory = 16 * CHUNK_SIZE;
    fixture_start(2);
    fill_pool();
    append_init(&x, &r, 0);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_PENDING);
    while ((b = drain_head(fixture_queue(1))) != NULL)
        fixture_complete(b, KP_OK);
    release_hoard();
    ck_assert_int_eq(append_bytes(1, 10, 0), KP_OK);
    kp__mem_before_next(append_meanwhile);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    for (size_t i = 0; i < 3; i++) {
        b = drain_head(fixture_queue(0));
        ck_assert_ptr_nonnull(b);
        ck_assert_uint_eq(b->record_count, 1);
        ck_assert_uint_ge(b->raw_size, sizes[i]);
        ck_assert_uint_lt(b->raw_size, sizes[i] + 20);
        fixture_complete(b, KP_OK);
    }
    ck_assert_ptr_null(drain_head(fixture_queue(0)));
}
END_TEST

/* Batches of 12,000 bytes, sealed, until that is a long backlog. */
static void make_backlog(void)
{
    kp_record r = record_of(some_bytes(1, 12000), 12000);

    f.settings.buffer_memory = 8 << 20;
    fixture_start(2);
    for (int i = 0; i < 250; i++)
        ck_assert_int_eq(append_record(&r, 1), KP_OK);
    kp__backlog_pressed(&f.acc.backlog);
}

static void end_backlog(void)
{
    struct batch *b;

    while ((b = drain_head(fixture_queue(1))) != NULL)
        fixture_complete(b, KP_OK);
}

/* Who begins a batch waits for a long backlog, with nothing in hand, and then
 * goes on however long it is. */
START_TEST(a_long_backlog_holds_up_who_begins_a_batch)
{
    kp_record r = record_of("v", 1);
    struct pool_stats s;
    struct append x;
    size_t before;

    make_backlog();
    before = fixture_available();
    append_init(&x, &r, 0);
    x.may_brake = true;
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_PENDING);
    ck_assert(x.braking);
    ck_assert_uint_eq(atomic_load(x.ticket.word), x.ticket.seen);
    ck_assert_int_eq(x.ticket.deadline_ns, f.fake.mono_ns + BRAKE_NS);
    ck_assert_uint_eq(fixture_available(), before);
    f.fake.mono_ns += BRAKE_NS;
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    ck_assert(!x.braking);
    kp__pool_stats(f.pool, &s);
    ck_assert_int_eq(s.wait_ns_total, BRAKE_NS);
    /* Into an open batch everybody may go at once. */
    f.fake.mono_ns += KP_NS_PER_SEC / 2;
    append_init(&x, &r, 0);
    x.may_brake = true;
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    ck_assert_uint_eq(x.index, 1);
    end_backlog();
}
END_TEST

START_TEST(a_backlog_that_is_sent_lets_go)
{
    kp_record r = record_of("v", 1);
    struct append x, y;

    make_backlog();
    append_init(&x, &r, 0);
    append_init(&y, &r, 0);
    x.may_brake = y.may_brake = true;
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_PENDING);
    ck_assert_int_eq(kp__append_try(&f.acc, &y), KP_PENDING);
    end_backlog();
    ck_assert_uint_ne(atomic_load(x.ticket.word), x.ticket.seen);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    /* Giving up leaves nothing behind. */
    ck_assert_int_eq(kp__append_give_up(&f.acc, &y), KP_EBUFFER);
    ck_assert_uint_eq(atomic_load(&f.acc.backlog.waiting), 0);
    ck_assert_uint_eq(atomic_load(&f.acc.backlog.bytes), 0);
}
END_TEST

/* A49: giving up leaves nothing behind, granted or not. */
START_TEST(giving_up_leaves_nothing_behind)
{
    kp_record r = record_of("v", 1);
    struct append x, y;
    struct pool_stats s;
    struct batch *b;

    f.settings.buffer_memory = 8 * CHUNK_SIZE;
    fixture_start(2);
    fill_pool();
    kp__pool_stats(f.pool, &s);
    append_init(&x, &r, 0);
    append_init(&y, &r, 0);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_PENDING);
    ck_assert_int_eq(kp__append_try(&f.acc, &y), KP_PENDING);
    ck_assert_int_eq(kp__append_give_up(&f.acc, &x), KP_EBUFFER);
    while ((b = drain_head(fixture_queue(1))) != NULL)
        fixture_complete(b, KP_OK);
    release_hoard();
    ck_assert_int_eq(kp__append_give_up(&f.acc, &y), KP_EBUFFER);
    ck_assert_uint_eq(fixture_available(), f.settings.buffer_memory);
    ck_assert_uint_eq(s.exhausted_total, 0);
    kp__pool_stats(f.pool, &s);
    ck_assert_uint_eq(s.exhausted_total, 2);
    ck_assert_uint_eq(s.waiting_threads, 0);
}
END_TEST

START_TEST(nowait_is_told_at_once_and_seals_without_compressing)
{
    kp_record r = record_of(some_bytes(0, 12000), 12000);
    struct queue_view v;
    struct batch *b;

    r.flags = KP_NOWAIT;
    f.settings.buffer_memory = 8 * CHUNK_SIZE;
    fixture_start(2);
    while (append_record(&r, 0) == KP_OK)
        continue;
    ck_assert_int_eq(append_record(&r, 0), KP_EBUFFER);
    v = look_at(fixture_queue(0));
    ck_assert_int_eq(v.head_place, PLACE_SEALED);
    ck_assert_ptr_eq(only_listed(), fixture_queue(0));
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(b->record_count, 1);
    fixture_complete(b, KP_OK);
    ck_assert_int_eq(append_record(&r, 0), KP_OK);
}
END_TEST

/* A refused KP_NOWAIT send to a queue hears when to try again. */
START_TEST(a_refused_send_to_a_queue_is_called_back)
{
    kp_record r = record_of("v", 1);
    struct pollfd p;
    kp_cq *cq;

    ck_assert_int_eq(kp_cq_create(&cq, NULL), KP_OK);
    p = (struct pollfd){.fd = kp_cq_fd(cq), .events = POLLIN};
    r.flags = KP_NOWAIT;
    r.queue = cq;
    f.settings.buffer_memory = 8 * CHUNK_SIZE;
    fixture_start(2);
    fill_pool();
    atomic_store(&f.bell.sleeps_until_ns, KP_NEVER);
    ck_assert_int_eq(append_record(&r, 0), KP_EBUFFER);
    ck_assert_int_eq(atomic_load(&f.bell.sleeps_until_ns), 0);
    ck_assert_int_eq(poll(&p, 1, 0), 0);
    fixture_complete(drain_head(fixture_queue(1)), KP_OK);
    ck_assert_int_eq(poll(&p, 1, 0), 1);
    ck_assert_int_eq(append_record(&r, 0), KP_OK);
    fixture_empty();
    kp_cq_destroy(cq);
}
END_TEST

START_TEST(without_memory_of_the_system_nothing_is_taken)
{
    kp_record r = record_of("v", 1);

    fixture_start(1);
    kp__mem_fail_at(1);
    ck_assert_int_eq(append_record(&r, 0), KP_ENOMEM);
    kp__mem_fail_at(-1);
    ck_assert_uint_eq(fixture_available(), f.settings.buffer_memory);
    ck_assert_int_eq(append_record(&r, 0), KP_OK);
}
END_TEST

/* -- The end -- */

/* A48. */
START_TEST(a_closed_accumulator_takes_nothing)
{
    fixture_start(1);
    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    atomic_store(&f.acc.taking, TAKING_CLOSED);
    ck_assert_int_eq(append_bytes(1, 10, 0), KP_ECLOSED);
    atomic_store(&f.acc.fatal_err, KP_CLUSTER_AUTHORIZATION_FAILED);
    atomic_store(&f.acc.taking, TAKING_FATAL);
    ck_assert_int_eq(append_bytes(1, 10, 0), KP_CLUSTER_AUTHORIZATION_FAILED);
    ck_assert_uint_eq(drain_and_count(), 1);
}
END_TEST

START_TEST(close_ends_a_wait_for_memory)
{
    kp_record r = record_of("v", 1);
    struct append x;

    f.settings.buffer_memory = 8 * CHUNK_SIZE;
    fixture_start(2);
    fill_pool();
    append_init(&x, &r, 0);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_PENDING);
    atomic_store(&f.acc.taking, TAKING_CLOSED);
    kp__pool_close(f.pool);
    ck_assert_uint_ne(atomic_load(x.ticket.word), x.ticket.seen);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_ECLOSED);
}
END_TEST

/* -- Unkeyed records -- */

static int32_t sticky(void)
{
    return atomic_load(&f.topic->sticky);
}

/* A38: unkeyed records fill one batch of one partition, then one of another. */
START_TEST(unkeyed_records_fill_one_partition_then_another)
{
    int32_t first, second;
    size_t bytes = 0;
    uint32_t n = 0;

    fixture_start(8);
    ck_assert_int_eq(sticky(), -1);
    ck_assert_int_eq(append_bytes(0, 100, -1), KP_OK);
    first = sticky();
    ck_assert_int_ge(first, 0);
    while (sticky() == first) {
        ck_assert_int_eq(append_bytes(++n, 100, -1), KP_OK);
        bytes += record_size(100, n);
        ck_assert_uint_lt(bytes, 2 * f.settings.batch_size + 200);
    }
    second = sticky();
    ck_assert_int_ne(first, second);
    ck_assert_uint_le(look_at(fixture_queue(first)).batch_count, 2);
    ck_assert_int_eq(append_bytes(0, 100, -1), KP_OK);
    ck_assert_int_eq(sticky(), second);
}
END_TEST

/* A39, U8: the limit is passed while the batch is incomplete: no switch; the
 * next record that does not fit completes it and goes elsewhere. */
START_TEST(the_switch_waits_for_a_complete_batch)
{
    int32_t first;

    f.settings.batch_size = 1000;
    fixture_start(16);
    ck_assert_int_eq(append_bytes(0, 300, -1), KP_OK);
    first = sticky();
    ck_assert_int_eq(append_bytes(1, 800, -1), KP_OK);
    ck_assert_int_eq(sticky(), first); /* the second batch is not full */
    ck_assert_uint_eq(look_at(fixture_queue(first)).batch_count, 2);
    ck_assert_int_eq(append_bytes(2, 800, -1), KP_OK);
    ck_assert_int_ne(sticky(), first);
    ck_assert_uint_eq(look_at(fixture_queue(first)).batch_count, 2);
    ck_assert_uint_eq(look_at(fixture_queue(sticky())).batch_count, 1);
}
END_TEST

/* U7: batch.size 0 and 1 are legal: a batch for each unkeyed record, and a new
 * partition for the next. */
START_TEST(without_room_each_record_chooses_anew)
{
    bool seen[8] = {false};
    int changes = 0;
    int32_t last = -1;

    f.settings.batch_size = (size_t)_i;
    fixture_start(8);
    for (uint32_t i = 0; i < 200; i++) {
        kp_record r = record_of("v", 1);
        struct append x;

        append_init(&x, &r, -1);
        ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
        ck_assert_uint_eq(x.index, 0);
        changes += x.result->partition != last;
        last = x.result->partition;
        seen[last] = true;
        fixture_empty();
    }
    for (int i = 0; i < 8; i++)
        ck_assert(seen[i]);
    ck_assert_int_gt(changes, 150);
}
END_TEST

/* UR-073: over many records each partition gets the same bytes, whatever their
 * sizes. */
START_TEST(unkeyed_bytes_are_uniform)
{
    uint64_t bytes[4] = {0}, total = 0;

    f.settings.batch_size = 500;
    fixture_start(4);
    for (uint32_t i = 0; i < 200000; i++) {
        size_t size = 10 + i % 97;
        struct append x;
        kp_record r = record_of(some_bytes(1, size), size);

        append_init(&x, &r, -1);
        ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
        bytes[x.result->partition] += size;
        total += size;
        if (i % 64 == 0)
            fixture_empty();
    }
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_gt(bytes[i], total / 4 * 95 / 100);
        ck_assert_uint_lt(bytes[i], total / 4 * 105 / 100);
    }
}
END_TEST

/* U3, A41: a partition that is not in the weights is not chosen. */
START_TEST(partitions_without_weight_are_left_alone)
{
    const int32_t partitions[] = {0, 2};
    const uint32_t weights[] = {1, 1};
    bool seen[3] = {false};

    f.settings.batch_size = 0;
    fixture_start(3);
    kp__topic_set_weights(f.topic, partitions, weights, 2);
    for (uint32_t i = 0; i < 100; i++) {
        kp_record r = record_of("v", 1);
        struct append x;

        append_init(&x, &r, -1);
        ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
        seen[x.result->partition] = true;
        fixture_empty();
    }
    ck_assert(seen[0] && !seen[1] && seen[2]);
}
END_TEST

/* A sticky partition that loses its weight is left at once: its leader is gone.
 * */
START_TEST(a_sticky_partition_without_weight_is_left_at_once)
{
    int32_t partitions[] = {0, 1, 2};
    const uint32_t weights[] = {1, 1};
    int32_t first;

    fixture_start(3);
    ck_assert_int_eq(append_bytes(0, 10, -1), KP_OK);
    first = sticky();
    kp__topic_set_weights(f.topic, partitions, (const uint32_t[]){1, 1, 1}, 3);
    ck_assert_int_eq(sticky(), first);
    partitions[0] = (first + 1) % 3;
    partitions[1] = (first + 2) % 3;
    kp__topic_set_weights(f.topic, partitions, weights, 2);
    ck_assert_int_eq(append_bytes(1, 10, -1), KP_OK);
    ck_assert_int_ne(sticky(), first);
    ck_assert_int_ge(sticky(), 0);
}
END_TEST

/* A40, U6: an adaptive table is followed in proportion. */
START_TEST(weights_are_followed_in_proportion)
{
    const int32_t partitions[] = {0, 1, 2};
    const uint32_t weights[] = {7, 1, 6};
    uint32_t counts[3] = {0};
    struct rng rng;

    fixture_start(3);
    kp__topic_set_weights(f.topic, partitions, weights, 3);
    kp__rng_seed(&rng, 1);
    for (int i = 0; i < 140000; i++)
        counts[kp__partitioner_next(kp__topic_view(f.topic), &rng)]++;
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_gt(counts[i], weights[i] * 9500);
        ck_assert_uint_lt(counts[i], weights[i] * 10500);
    }
    kp__topic_set_weights(f.topic, NULL, NULL, 0);
    memset(counts, 0, sizeof(counts));
    for (int i = 0; i < 30000; i++)
        counts[kp__partitioner_next(kp__topic_view(f.topic), &rng)]++;
    for (int i = 0; i < 3; i++)
        ck_assert_uint_gt(counts[i], 9000);
}
END_TEST

/* The sum of long backlogs over many partitions passes 2^32. */
START_TEST(weights_whose_sum_is_large_are_followed)
{
    const int32_t partitions[] = {0, 1, 2, 3};
    const uint32_t weights[] = {3u << 30, 1u << 30, 2u << 30, 2u << 30};
    uint32_t counts[4] = {0};
    struct rng rng;

    fixture_start(4);
    kp__topic_set_weights(f.topic, partitions, weights, 4);
    kp__rng_seed(&rng, 1);
    for (int i = 0; i < 80000; i++)
        counts[kp__partitioner_next(kp__topic_view(f.topic), &rng)]++;
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_gt(counts[i], (weights[i] >> 30) * 9500);
        ck_assert_uint_lt(counts[i], (weights[i] >> 30) * 10500);
    }
}
END_TEST

/* U2. */
START_TEST(one_partition_is_always_chosen)
{
    struct rng rng;

    fixture_start(1);
    kp__rng_seed(&rng, 1);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(kp__partitioner_next(kp__topic_view(f.topic), &rng),
                         0);
}
END_TEST

struct held {
    struct mutex *lock;
    _Atomic uint32_t locked, release;
};

static void *hold(void *arg)
{
    struct held *h = arg;

    /* Beside kp__mutex_lock: with one of ours nobody may sleep. */
    kp__mutex_take(h->lock);
    atomic_store(&h->locked, 1);
    kp__wake(&h->locked, 1);
    while (atomic_load(&h->release) == 0)
        (void)kp__wait(&h->release, 0, KP_NEVER);
    kp__mutex_drop(h->lock);
    return NULL;
}

/* A sender that finds the sticky partition's lock taken goes elsewhere, and
 * stays there for a while; the topic's sticky partition does not change. */
START_TEST(a_taken_lock_makes_an_unkeyed_sender_hop)
{
    struct held held = {0};
    kp_record r = record_of(some_bytes(0, 100), 100);
    struct append x;
    pthread_t thread;
    int32_t first, second;

    fixture_start(8);
    ck_assert_int_eq(append_record(&r, -1), KP_OK);
    first = sticky();
    held.lock = &fixture_queue(first)->lock;
    ck_assert_int_eq(pthread_create(&thread, NULL, hold, &held), 0);
    while (atomic_load(&held.locked) == 0)
        (void)kp__wait(&held.locked, 0, KP_NEVER);
    append_init(&x, &r, -1);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    second = x.result->partition;
    ck_assert_int_ne(first, second);
    ck_assert_int_eq(sticky(), first);
    atomic_store(&held.release, 1);
    kp__wake(&held.release, 1);
    pthread_join(thread, NULL);
    append_init(&x, &r, -1);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    ck_assert_int_eq(x.result->partition, second);
    /* In the end it comes back. */
    for (int i = 0; x.result->partition != first; i++) {
        ck_assert_int_lt(i, 10 * HOP_BATCHES * 16384 / 100);
        append_init(&x, &r, -1);
        ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    }
}
END_TEST

/* -- With a codec -- */

static kp_err append_text(uint32_t seed, int32_t partition)
{
    char text[200];
    int n = snprintf(text, sizeof(text),
                     "{\"id\":%u,\"name\":\"customer\",\"country\":\"NO\","
                     "\"amount\":%u,\"currency\":\"EUR\"}",
                     seed, seed * 7 % 1000);
    kp_record r = record_of(text, (size_t)n);

    return append_record(&r, partition);
}

/* batch.size means the compressed size: after batches that shrink, more fits.
 * */
START_TEST(compressible_batches_hold_more_than_batch_size)
{
    size_t first = 0, last = 0;

    f.settings.codec = CODEC_LZ4;
    f.settings.codec_level = 9;
    f.settings.batch_size = 4096;
    fixture_start(1);
    for (uint32_t i = 0, done = 0; done < 60; i++) {
        struct batch *b;

        ck_assert_int_eq(append_text(i, 0), KP_OK);
        if (look_at(fixture_queue(0)).batch_count < 2)
            continue;
        b = drain_head(fixture_queue(0));
        ck_assert_int_eq(b->codec, CODEC_LZ4);
        if (done == 0)
            first = b->raw_size;
        last = b->raw_size;
        done++;
        fixture_complete(b, KP_OK);
    }
    ck_assert_uint_le(first, 4096);
    ck_assert_uint_gt(last, 3 * 4096);
}
END_TEST

START_TEST(raw_batches_never_pass_max_request_size)
{
    f.settings.codec = CODEC_LZ4;
    f.settings.codec_level = 9;
    f.settings.batch_size = 8192;
    f.settings.max_request_size = 10000;
    fixture_start(1);
    for (uint32_t i = 0, done = 0; done < 40; i++) {
        struct batch *b;

        ck_assert_int_eq(append_text(i % 3, 0), KP_OK);
        if (look_at(fixture_queue(0)).batch_count < 2)
            continue;
        b = drain_head(fixture_queue(0));
        ck_assert_uint_le(b->raw_size + RECORD_BATCH_HEADER_SIZE, 10000);
        done++;
        fixture_complete(b, KP_OK);
    }
    ck_assert_float_gt(fixture_queue(0)->ratio, 2.0f);
}
END_TEST

/* Past its linger, and next in line: the appender compresses it. */
START_TEST(an_appender_compresses_a_batch_past_its_linger)
{
    struct queue_view v;

    f.settings.codec = CODEC_LZ4;
    f.settings.codec_level = 9;
    fixture_start(1);
    ck_assert_int_eq(append_text(0, 0), KP_OK);
    f.fake.mono_ns += f.settings.linger_ns - 1;
    ck_assert_int_eq(append_text(1, 0), KP_OK);
    ck_assert_int_eq(look_at(fixture_queue(0)).head_place, PLACE_OPEN);
    f.fake.mono_ns += 1;
    ck_assert_int_eq(append_text(2, 0), KP_OK);
    v = look_at(fixture_queue(0));
    ck_assert_int_eq(v.head_place, PLACE_READY);
    ck_assert_uint_eq(v.batch_count, 1);
    ck_assert_uint_eq(drain_and_count(), 3);
}
END_TEST

START_TEST(without_a_free_compressor_the_io_thread_does_it)
{
    struct compressor *taken[16];
    size_t n = 0;
    struct compressor *k;

    f.settings.codec = CODEC_LZ4;
    f.settings.codec_level = 9;
    fixture_start(1);
    while ((k = kp__compressors_take(&f.compressors)) != NULL)
        taken[n++] = k;
    ck_assert_uint_ge(n, 1);
    (void)fill_one(1000, 0);
    ck_assert_int_eq(look_at(fixture_queue(0)).head_place, PLACE_SEALED);
    ck_assert_ptr_eq(only_listed(), fixture_queue(0));
    while (n > 0)
        kp__compressors_give(&f.compressors, taken[--n]);
    ck_assert_uint_ge(drain_and_count(), 10);
}
END_TEST

/* A10: larger than batch.size, compressed: its own batch all the same. */
START_TEST(a_large_record_is_its_own_batch_with_a_codec)
{
    size_t size = 2 * 16384;
    struct batch *b;

    f.settings.codec = CODEC_LZ4;
    f.settings.codec_level = 9;
    fixture_start(1);
    ck_assert_int_eq(append_bytes(0, size, 0), KP_OK);
    ck_assert_int_eq(look_at(fixture_queue(0)).head_place, PLACE_READY);
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(each_record(b, check_value, &size), 1);
    fixture_complete(b, KP_OK);
}
END_TEST

static Suite *record_accumulator_suite(void)
{
    Suite *s = suite_create("record_accumulator");
    TCase *t = tcase_create("batches");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_record_stands_in_the_batch_as_it_was_given);
    tcase_add_test(t, records_of_every_size_are_encoded_alike);
    tcase_add_test(t, a_record_without_timestamp_is_stamped_with_now);
    tcase_add_test(t, records_that_fit_share_a_batch);
    tcase_add_test(t, a_batch_is_full_at_batch_size_exactly);
    tcase_add_test(t, one_byte_less_than_needed_and_the_record_goes_next_door);
    tcase_add_test(t, a_large_record_is_its_own_batch);
    tcase_add_test(t, batch_size_zero_means_a_batch_for_each_record);
    tcase_add_test(t, a_batch_grows_by_chunks);
    tcase_add_test(t, an_old_batch_takes_no_more);
    tcase_add_test(t, age_is_not_told_by_timestamps);
    tcase_add_test(t, creation_follows_the_ordinals);
    suite_add_tcase(s, t);

    t = tcase_create("reports");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, futures_are_counted_in_the_batch);
    tcase_add_test(t, reports_have_slots_from_the_first_that_needs_one);
    tcase_add_test(t, many_slots_fill_page_after_page);
    tcase_add_test(t, a_fifth_queue_begins_a_batch);
    suite_add_tcase(s, t);

    t = tcase_create("waking");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_first_record_is_announced_for_the_end_of_its_linger);
    tcase_add_test(t, a_sleeper_past_the_linger_is_woken);
    tcase_add_test(t, a_full_batch_is_announced_when_it_is_ready);
    tcase_add_test(t, the_drain_list_has_each_queue_once_oldest_first);
    suite_add_tcase(s, t);

    t = tcase_create("memory");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_full_pool_is_waited_for);
    tcase_add_test(t,
                   a_waiter_looks_again_and_gives_back_what_it_needs_no_more);
    tcase_add_test(t, a_record_that_ends_three_batches);
    tcase_add_test(t, a_long_backlog_holds_up_who_begins_a_batch);
    tcase_add_test(t, a_backlog_that_is_sent_lets_go);
    tcase_add_test(t, giving_up_leaves_nothing_behind);
    tcase_add_test(t, nowait_is_told_at_once_and_seals_without_compressing);
    tcase_add_test(t, a_refused_send_to_a_queue_is_called_back);
    tcase_add_test(t, without_memory_of_the_system_nothing_is_taken);
    suite_add_tcase(s, t);

    t = tcase_create("ends");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_closed_accumulator_takes_nothing);
    tcase_add_test(t, close_ends_a_wait_for_memory);
    suite_add_tcase(s, t);

    t = tcase_create("sticky");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, unkeyed_records_fill_one_partition_then_another);
    tcase_add_test(t, the_switch_waits_for_a_complete_batch);
    tcase_add_loop_test(t, without_room_each_record_chooses_anew, 0, 2);
    tcase_add_test(t, unkeyed_bytes_are_uniform);
    tcase_add_test(t, partitions_without_weight_are_left_alone);
    tcase_add_test(t, a_sticky_partition_without_weight_is_left_at_once);
    tcase_add_test(t, weights_are_followed_in_proportion);
    tcase_add_test(t, weights_whose_sum_is_large_are_followed);
    tcase_add_test(t, one_partition_is_always_chosen);
    tcase_add_test(t, a_taken_lock_makes_an_unkeyed_sender_hop);
    suite_add_tcase(s, t);

    t = tcase_create("codec");
    tcase_add_checked_fixture(t, set_up, tear_down);
#ifdef HAVE_LZ4
    tcase_add_test(t, compressible_batches_hold_more_than_batch_size);
    tcase_add_test(t, raw_batches_never_pass_max_request_size);
    tcase_add_test(t, an_appender_compresses_a_batch_past_its_linger);
    tcase_add_test(t, without_a_free_compressor_the_io_thread_does_it);
    tcase_add_test(t, a_large_record_is_its_own_batch_with_a_codec);
#endif
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(record_accumulator_suite)
