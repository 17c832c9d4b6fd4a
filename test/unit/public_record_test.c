/* SPDX-License-Identifier: BSD-2-Clause */
/* What a record says arrives as it was said: bytes, nulls, headers, timestamps,
 * topic names, partitions, sizes at their limits; and kp_send_many. */
#include "test/unit/public_fixture.h"

#include "test/support/main.h"

static kp_producer *p;

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
    make_topic("wide", 4);
    p = MAKE_PRODUCER("max.request.size", "5000", "linger.ms", "0", NULL);
}

static void teardown(void)
{
    ASSERT_OK(kp_producer_destroy(p));
    teardown_broker();
}

/* -- bytes -- */

static void assert_bytes(const char *got, int64_t got_size, kp_bytes want)
{
    ck_assert_int_eq(got_size, want.data == NULL ? -1 : (int64_t)want.size);
    if (want.size > 0)
        ck_assert_mem_eq(got, want.data, want.size);
}

START_TEST(null_empty_and_bytes_are_three_things)
{
    static const kp_bytes forms[] = {{NULL, 0}, {"", 0}, {"a\0b", 3}};

    for (int i = 0; i < 9; i++) {
        kp_record r = {.topic = "t"};
        struct stored s;

        r.key = forms[i / 3];
        r.value = forms[i % 3];
        ASSERT_OK(deliver(p, &r, NULL));
        s = last_stored("t", 0);
        ck_assert_int_eq(s.offset, i);
        assert_bytes(s.key, s.key_size, r.key);
        assert_bytes(s.value, s.value_size, r.value);
        ck_assert_int_eq(s.header_count, 0);
    }
}
END_TEST

START_TEST(headers_keep_order_equal_keys_and_nulls)
{
    static const kp_header headers[] = {{{"k", 1}, {"first", 5}},
                                        {{"k", 1}, {NULL, 0}},
                                        {{"", 0}, {"", 0}},
                                        {{"\xd1\x8f", 2}, {"\0\1", 2}}};
    kp_record r = record_of("t", "v");
    struct stored s;

    r.headers = headers;
    r.header_count = 4;
    ASSERT_OK(deliver(p, &r, NULL));
    s = last_stored("t", 0);
    ck_assert_int_eq(s.header_count, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(strlen(s.headers[i].key), headers[i].key.size);
        ck_assert_mem_eq(s.headers[i].key, headers[i].key.data,
                         headers[i].key.size);
        assert_bytes(s.headers[i].value, s.headers[i].value_size,
                     headers[i].value);
    }
}
END_TEST

/* UR-076 */
START_TEST(many_headers_arrive)
{
    enum { COUNT = 10000 };
    static kp_header headers[COUNT];
    kp_producer *large = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = record_of("t", "v");

    for (size_t i = 0; i < COUNT; i++)
        headers[i] = (kp_header){{"name", 4}, {"value", 5}};
    r.headers = headers;
    r.header_count = COUNT;
    ASSERT_OK(deliver(large, &r, NULL));
    ck_assert_int_eq(last_stored("t", 0).header_count, COUNT);
    ASSERT_OK(kp_producer_destroy(large));
}
END_TEST

START_TEST(every_argument_is_the_callers_again)
{
    char topic[] = "t", key[] = "key", value[] = "value", name[] = "name";
    kp_header h = {{name, 4}, {value, 5}};
    kp_producer *slow = MAKE_PRODUCER("linger.ms", "60000", NULL);
    kp_record r = {.topic = topic, .key = {key, 3}, .value = {value, 5}};
    kp_future f;
    struct stored s;
    kp_report report;

    learn_topic(slow, "t");
    r.headers = &h;
    r.header_count = 1;
    ASSERT_OK(kp_send(slow, &r, &f));
    memset(topic, 'x', 1);
    memset(key, 'x', 3);
    memset(value, 'x', 5);
    memset(name, 'x', 4);
    memset(&h, 0xff, sizeof(h));
    memset(&r, 0xff, sizeof(r));
    ASSERT_OK(kp_flush(slow, SOON_MS, &error));
    ASSERT_OK(kp_future_wait(&f, 0, &report));
    ck_assert_str_eq(report.topic, "t");
    kp_future_release(&f, 1);
    s = last_stored("t", 0);
    ck_assert_mem_eq(s.key, "key", 3);
    ck_assert_mem_eq(s.value, "value", 5);
    ck_assert_str_eq(s.headers[0].key, "name");
    ASSERT_OK(kp_producer_destroy(slow));
}
END_TEST

START_TEST(a_topic_need_not_be_terminated)
{
    kp_record r = record_of("wideness", "v");
    kp_report report;
    kp_future f;

    r.topic_size = 4;
    r.flags = KP_HAS_PARTITION;
    r.partition = 2;
    ASSERT_OK(kp_send(p, &r, &f));
    ASSERT_OK(kp_future_wait(&f, SOON_MS, &report));
    ck_assert_str_eq(report.topic, "wide");
    ck_assert_int_eq(report.partition, 2);
    kp_future_release(&f, 1);
    ck_assert_uint_eq(stored_count("wide", 2), 1);
}
END_TEST

/* -- timestamps -- */

#define COARSE_MS 20 /* a clock that ticks that often is good enough */

START_TEST(timestamps_are_given_or_now)
{
    kp_record r = record_of("t", "v");
    int64_t before = wall_ms() - COARSE_MS;
    kp_report report;
    struct stored s;

    ASSERT_OK(deliver(p, &r, &report));
    ck_assert_int_eq(report.timestamp_ms, -1); /* the topic does not stamp */
    s = last_stored("t", 0);
    ck_assert_int_ge(s.timestamp_ms, before);
    ck_assert_int_le(s.timestamp_ms, wall_ms());
    r.flags = KP_HAS_TIMESTAMP;
    ASSERT_OK(deliver(p, &r, NULL));
    ck_assert_int_eq(last_stored("t", 0).timestamp_ms, 0);
    r.timestamp_ms = 123456789;
    ASSERT_OK(deliver(p, &r, NULL));
    ck_assert_int_eq(last_stored("t", 0).timestamp_ms, 123456789);
}
END_TEST

START_TEST(timestamps_may_go_backwards_within_a_batch)
{
    static const int64_t times[] = {1000000, 5, 2000000, 0, 999999};
    kp_producer *slow = MAKE_PRODUCER("linger.ms", "60000", NULL);
    struct stored all[5];

    learn_topic(slow, "t");
    for (int i = 0; i < 5; i++) {
        kp_record r = record_of("t", "v");

        r.flags = KP_HAS_TIMESTAMP;
        r.timestamp_ms = times[i];
        ASSERT_OK(kp_send(slow, &r, NULL));
    }
    ASSERT_OK(kp_flush(slow, SOON_MS, &error));
    ck_assert_uint_eq(read_log("t", 0, all, 5), 5);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(all[i].timestamp_ms, times[i]);
    ck_assert_int_eq(requests_of(API_PRODUCE), 1);
    ASSERT_OK(kp_producer_destroy(slow));
}
END_TEST

START_TEST(a_topic_that_stamps_says_so_in_the_report)
{
    kp_record r = record_of("t", "v");
    int64_t before = wall_ms();
    kp_report report;

    ck_assert(kb_topic_set(kp_broker_lock(broker), "t",
                           "message.timestamp.type", "LogAppendTime"));
    kp_broker_unlock(broker);
    r.flags = KP_HAS_TIMESTAMP;
    r.timestamp_ms = 7;
    ASSERT_OK(deliver(p, &r, &report));
    ck_assert_int_ge(report.timestamp_ms, before - 1000);
    ck_assert_int_eq(last_stored("t", 0).timestamp_ms, report.timestamp_ms);
}
END_TEST

/* -- reports -- */

START_TEST(a_report_tells_all_there_is_to_tell)
{
    kp_record r = record_of("wide", "v");
    kp_report report;
    int tag;

    r.flags = KP_HAS_PARTITION;
    r.partition = 3;
    r.tag = &tag;
    for (int i = 0; i < 3; i++) {
        memset(&report, 0xee, sizeof(report));
        ASSERT_OK(deliver(p, &r, &report));
        ck_assert_ptr_eq(report.tag, &tag);
        ck_assert_int_eq(report.err, KP_OK);
        ck_assert_int_eq(report.cause, KP_OK);
        ck_assert_int_eq(report.kind, KP_KIND_NONE);
        ck_assert_int_eq(report.stored, KP_STORED_YES);
        ck_assert_int_eq(report.partition, 3);
        ck_assert_int_eq(report.reserved, 0);
        ck_assert_int_eq(report.offset, i);
        ck_assert_int_eq(report.timestamp_ms, -1);
        ck_assert_ptr_null(report.text);
    }
}
END_TEST

START_TEST(acks_0_says_maybe_and_no_offset)
{
    kp_producer *hasty = MAKE_PRODUCER("acks", "0", NULL);
    kp_record r = record_of("t", "v");
    kp_report report;

    ASSERT_OK(deliver(hasty, &r, &report));
    ck_assert_int_eq(report.stored, KP_STORED_MAYBE);
    ck_assert_int_eq(report.offset, -1);
    ASSERT_OK(kp_producer_destroy(hasty));
}
END_TEST

START_TEST(a_refusal_by_the_broker_is_reported_with_its_number)
{
    kp_record r = record_of("t", "v");
    kp_report report;
    kp_future f;

    add_rule("api=produce topic=t error=87 count=1");
    ASSERT_OK(kp_send(p, &r, &f));
    ASSERT_ERR(kp_future_wait(&f, SOON_MS, &report), 87);
    ck_assert_int_eq(report.err, 87);
    ck_assert_int_eq(report.kind, KP_KIND_INVALID);
    ck_assert_int_eq(report.stored, KP_STORED_NO);
    ck_assert_int_eq(report.offset, -1);
    ck_assert_str_eq(report.topic, "t");
    kp_future_release(&f, 1);
    ck_assert_uint_eq(stored_count("t", 0), 0);
    ASSERT_OK(deliver(p, &r, NULL));
}
END_TEST

/* -- sizes: 61 of a batch, 21 of a record, then lengths and bytes -- */

/* A record whose upper bound is just `bound`, with a header and a key. */
static kp_record record_bound_by(const char *topic, size_t bound, char *value)
{
    static const kp_header h = {{"name", 4}, {"va", 2}};
    kp_record r = {.topic = topic, .key = {"key", 3}};
    /* 1: header count, 5 + 3: the header, 4: the key, 2 or more: the length */
    size_t rest = bound - 61 - 21 - 1 - 8 - 4;

    r.headers = &h;
    r.header_count = 1;
    r.value.data = value;
    r.value.size = rest - (rest - 2 < 8192 ? 2 : 3);
    return r;
}

START_TEST(max_request_size_counts_everything)
{
    char value[6000];
    kp_record r;

    memset(value, 'v', sizeof(value));
    r = record_bound_by("t", 5000, value);
    ASSERT_OK(deliver(p, &r, NULL));
    ck_assert_int_eq(last_stored("t", 0).value_size, (int64_t)r.value.size);
    r = record_bound_by("t", 5001, value);
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    r = record_bound_by("t", 5000, value);
    r.headers = NULL; /* a header less, as much more of value */
    r.header_count = 0;
    r.value.size += 8;
    ASSERT_OK(deliver(p, &r, NULL));
    r.value.size++;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    r.value.size--;
    r.key.size = 0; /* empty: its bytes are free, its length is not */
    r.value.size += 3;
    ASSERT_OK(deliver(p, &r, NULL));
    r.value.size++;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    ck_assert_uint_eq(stored_count("t", 0), 3);
}
END_TEST

START_TEST(buffer_memory_bounds_a_record_too)
{
    kp_producer *small =
        MAKE_PRODUCER("buffer.memory", "40000", "max.request.size", "1000000",
                      "max.block.ms", "20000", NULL);
    char *value = malloc(50000);
    kp_record r;

    ck_assert_ptr_nonnull(value);
    memset(value, 'v', 50000);
    r = record_bound_by("t", 40001, value);
    ASSERT_ERR(kp_send(small, &r, NULL), KP_ETOOBIG);
    for (int i = 0; i < 3; i++) {
        /* The whole of it: each waits for the one before. */
        r = record_bound_by("t", 40000, value);
        ASSERT_OK(kp_send(small, &r, NULL));
    }
    ASSERT_OK(kp_flush(small, SOON_MS, &error));
    ck_assert_uint_eq(stored_count("t", 0), 3);
    ASSERT_OK(kp_producer_destroy(small));
    free(value);
}
END_TEST

START_TEST(sizes_that_no_wire_can_say_are_too_big)
{
    kp_record r = record_of("t", "v");
    kp_header h = {{"k", 1}, {"v", (size_t)INT32_MAX + 1}};

    r.value.size = SIZE_MAX;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    r.value.size = (size_t)INT32_MAX + 1;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    r.value.size = 1;
    r.key = (kp_bytes){"k", SIZE_MAX - 100};
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    r.key = (kp_bytes){NULL, 0};
    r.headers = &h;
    r.header_count = 1;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
}
END_TEST

/* -- partitions -- */

START_TEST(keys_choose_as_java_does)
{
    /* murmur2 of the key's bytes, sign bit off, modulo 4. */
    static const struct {
        const char *key;
        int32_t partition;
    } known[] = {{"21", (-973932308 & 0x7fffffff) % 4},
                 {"foobar", (-790332482 & 0x7fffffff) % 4},
                 {"a-little-bit-long-string", (-985981536 & 0x7fffffff) % 4},
                 {"a-little-bit-longer-string", (-1486304829 & 0x7fffffff) % 4},
                 {"abc", (479470107 & 0x7fffffff) % 4}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        kp_record r = record_of("wide", "v");
        kp_report report;

        r.key = kp_str(known[i].key);
        ASSERT_OK(deliver(p, &r, &report));
        ck_assert_int_eq(report.partition, known[i].partition);
    }
}
END_TEST

START_TEST(an_empty_key_is_a_key)
{
    kp_record r = record_of("wide", "v");
    kp_report first, next;

    r.key = kp_str("");
    ASSERT_OK(deliver(p, &r, &first));
    for (int i = 0; i < 20; i++) {
        ASSERT_OK(deliver(p, &r, &next));
        ck_assert_int_eq(next.partition, first.partition);
    }
}
END_TEST

struct choice {
    _Atomic int calls;
    int32_t answer;
    int32_t count;
    bool saw_record;
};

static int32_t choose(void *arg, const kp_record *r, int32_t count)
{
    struct choice *c = arg;

    atomic_fetch_add(&c->calls, 1);
    c->count = count;
    c->saw_record = r->value.size == 1 && r->tag == c;
    return c->answer;
}

/* K10, in our own way: -1 leaves the choice to the built-in one; any other number
 * that is no partition refuses the record. */
START_TEST(a_custom_partitioner_chooses)
{
    struct choice c = {.answer = 2};
    kp_config *config = make_config(kp_broker_bootstrap(broker), NULL);
    kp_record r = record_of("wide", "v");
    kp_producer *custom;
    kp_report report;

    kp_config_set_partitioner(config, choose, &c);
    custom = start_producer(config);
    r.tag = &c;
    r.key = kp_str("key");
    ASSERT_OK(deliver(custom, &r, &report));
    ck_assert_int_eq(report.partition, 2);
    ck_assert_int_eq(c.count, 4);
    ck_assert(c.saw_record);
    ck_assert_int_eq(atomic_load(&c.calls), 1);
    c.answer = 4;
    ASSERT_ERR(deliver(custom, &r, NULL), KP_EPARTITION);
    c.answer = -2;
    ASSERT_ERR(deliver(custom, &r, NULL), KP_EPARTITION);
    c.answer = -1; /* as the built-in one would */
    r.key = kp_str("abc");
    ASSERT_OK(deliver(custom, &r, &report));
    ck_assert_int_eq(report.partition, (479470107 & 0x7fffffff) % 4);
    r.flags = KP_HAS_PARTITION; /* said by the record: nobody is asked */
    r.partition = 1;
    c.answer = 99;
    ASSERT_OK(deliver(custom, &r, &report));
    ck_assert_int_eq(report.partition, 1);
    ck_assert_int_eq(atomic_load(&c.calls), 4);
    ASSERT_OK(kp_producer_destroy(custom));
}
END_TEST

START_TEST(round_robin_takes_turns)
{
    kp_producer *turns = MAKE_PRODUCER("partitioner.class",
                                       "org.apache.kafka.clients.producer."
                                       "RoundRobinPartitioner",
                                       NULL);
    int per[4] = {0};

    for (int i = 0; i < 20; i++) {
        kp_record r = record_of("wide", "v");
        kp_report report;

        r.key = kp_str("same");
        ASSERT_OK(deliver(turns, &r, &report));
        per[report.partition]++;
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(per[i], 5);
    ASSERT_OK(kp_producer_destroy(turns));
}
END_TEST

START_TEST(keys_can_be_ignored)
{
    kp_producer *sticky = MAKE_PRODUCER("partitioner.ignore.keys", "true",
                                        "batch.size", "200", NULL);
    bool seen[4] = {false};
    int used = 0;

    for (int i = 0; i < 400; i++) {
        kp_record r = record_of("wide", "0123456789012345678901234567890123");
        kp_report report;

        r.key = kp_str("same");
        ASSERT_OK(deliver(sticky, &r, &report));
        used += seen[report.partition] ? 0 : 1;
        seen[report.partition] = true;
    }
    ck_assert_int_ge(used, 2);
    ASSERT_OK(kp_producer_destroy(sticky));
}
END_TEST

/* -- kp_send_many -- */

START_TEST(many_records_are_taken_in_order)
{
    kp_record r[100];
    kp_future f[100];
    char values[100][8];
    struct stored all[100];
    size_t taken = 0;

    for (int i = 0; i < 100; i++) {
        (void)snprintf(values[i], sizeof(values[i]), "%d", i);
        r[i] = record_of("t", values[i]);
        r[i].tag = &r[i];
    }
    ASSERT_OK(kp_send_many(p, r, 100, f, &taken));
    ck_assert_uint_eq(taken, 100);
    ASSERT_OK(kp_future_wait_all(f, 100, SOON_MS));
    ck_assert_uint_eq(read_log("t", 0, all, 100), 100);
    for (int i = 0; i < 100; i++) {
        kp_report report;

        ASSERT_OK(kp_future_wait(&f[i], 0, &report));
        ck_assert_int_eq(report.offset, i);
        ck_assert_ptr_eq(report.tag, &r[i]);
        ck_assert_mem_eq(all[i].value, values[i], strlen(values[i]));
    }
    kp_future_release(f, 100);
}
END_TEST

/* O4: each record of one call goes to the partition that it names. */
START_TEST(many_go_where_each_is_sent)
{
    enum { COUNT = 100 };
    kp_record r[COUNT];
    kp_future f[COUNT];
    char values[COUNT][8];
    struct stored all[COUNT];

    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(values[i], sizeof(values[i]), "%d", i);
        r[i] = record_of("wide", values[i]);
        r[i].flags = KP_HAS_PARTITION;
        r[i].partition = i * 7 % 4;
    }
    ASSERT_OK(kp_send_many(p, r, COUNT, f, NULL));
    ASSERT_OK(kp_future_wait_all(f, COUNT, SOON_MS));
    for (int32_t partition = 0; partition < 4; partition++) {
        int at = 0;

        ck_assert_uint_eq(read_log("wide", partition, all, COUNT), COUNT / 4);
        for (int i = 0; i < COUNT; i++) {
            kp_report report;

            if (r[i].partition != partition)
                continue;
            ck_assert_int_eq(all[at].value_size, (int64_t)strlen(values[i]));
            ck_assert_mem_eq(all[at].value, values[i], strlen(values[i]));
            ASSERT_OK(kp_future_wait(&f[i], 0, &report));
            ck_assert_int_eq(report.partition, partition);
            ck_assert_int_eq(report.offset, at++);
        }
        ck_assert_int_eq(at, COUNT / 4);
    }
    kp_future_release(f, COUNT);
}
END_TEST

START_TEST(many_stop_at_the_first_that_is_not_taken)
{
    kp_record r[5];
    kp_future f[5];
    size_t taken = 99;
    kp_report report;

    for (int i = 0; i < 5; i++) {
        r[i] = record_of("t", "v");
        r[i].tag = &r[i];
    }
    r[2].timestamp_ms = 1; /* without its flag */
    ASSERT_ERR(kp_send_many(p, r, 5, f, &taken), KP_ETIMESTAMP);
    ck_assert_uint_eq(taken, 2);
    for (int i = 2; i < 5; i++) {
        ASSERT_ERR(kp_future_wait(&f[i], 0, &report), KP_ETIMESTAMP);
        ck_assert_ptr_eq(report.tag, &r[i]);
        ck_assert_int_eq(report.stored, KP_STORED_NO);
    }
    ASSERT_OK(kp_future_wait_all(f, 2, SOON_MS));
    ASSERT_ERR(kp_future_wait_all(f, 5, SOON_MS), KP_ETIMESTAMP);
    kp_future_release(f, 5);
    ck_assert_uint_eq(stored_count("t", 0), 2);
    ASSERT_ERR(kp_send_many(p, r + 2, 3, NULL, NULL), KP_ETIMESTAMP);
}
END_TEST

START_TEST(many_wait_no_longer_than_one)
{
    kp_producer *small = MAKE_PRODUCER("buffer.memory", "16384", "batch.size",
                                       "1000", "max.block.ms", "1000", NULL);
    char value[1500];
    kp_record r[64];
    size_t taken = 0;
    int64_t began, took = INT64_MAX;

    memset(value, 'v', sizeof(value));
    for (int i = 0; i < 64; i++)
        r[i] = (kp_record){.topic = "t", .value = {value, sizeof(value)}};
    learn_topic(small, "t");
    add_rule("api=produce answer=stall count=-1");
    began = now_ms();
    ASSERT_ERR(kp_send_many(small, r, 64, NULL, &taken), KP_EBUFFER);
    ck_assert_int_ge(now_ms() - began, 1000);
    ck_assert_int_lt(now_ms() - began, 1000 + SOON_MS / 4);
    ck_assert_uint_gt(taken, 0);
    ck_assert_uint_lt(taken, 64);
    /* A record's own limit is a lower one for it alone; one of several calls
     * shows it, if the machine is not late. */
    r[0].max_wait_ms = 1;
    for (int i = 0; i < 10 && took >= 1000; i++) {
        began = now_ms();
        ASSERT_ERR(kp_send_many(small, r, 64, NULL, &taken), KP_EBUFFER);
        took = now_ms() - began;
        ck_assert_uint_eq(taken, 0);
    }
    ck_assert_int_lt(took, 1000);
    ASSERT_ERR(kp_close(small, 0, &error), KP_ECLOSED);
    ASSERT_OK(kp_producer_destroy(small));
}
END_TEST

static int32_t choose_slowly(void *arg, const kp_record *r, int32_t count)
{
    (void)r;
    (void)count;
    if (!atomic_flag_test_and_set((atomic_flag *)arg))
        pause_ms(4100);
    return -1;
}

/* max.block.ms is of waiting: what the call does besides costs nothing of it. */
START_TEST(many_have_all_of_max_block_to_wait)
{
    kp_config *config =
        make_config(kp_broker_bootstrap(broker), "max.block.ms", "4000", NULL);
    kp_record r[2] = {record_of("one", "v"), record_of("another", "v")};
    atomic_flag was_slow = ATOMIC_FLAG_INIT;
    kp_producer *slow;
    size_t taken;

    kp_config_set_partitioner(config, choose_slowly, &was_slow);
    slow = start_producer(config);
    ASSERT_OK(kp_send_many(slow, r, 2, NULL, &taken));
    ck_assert_uint_eq(taken, 2);
    ASSERT_OK(kp_producer_destroy(slow));
}
END_TEST

START_TEST(one_records_limit_is_not_the_next_ones)
{
    kp_producer *q = MAKE_PRODUCER("max.block.ms", "20000", NULL);
    kp_record r[2] = {record_of("t", "first"), record_of("new", "second")};
    size_t taken;

    /* The first topic is quick to be known, the second is slow. */
    add_rule("api=metadata topic=new error=5 count=3");
    r[0].max_wait_ms = 15000;
    r[1].max_wait_ms = 0;
    ASSERT_OK(kp_send_many(q, r, 2, NULL, &taken));
    ck_assert_uint_eq(taken, 2);
    ASSERT_OK(kp_producer_destroy(q));
}
END_TEST

static Suite *public_record_suite(void)
{
    Suite *s = suite_create("public records");
    TCase *t = tcase_create("bytes");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, null_empty_and_bytes_are_three_things);
    tcase_add_test(t, headers_keep_order_equal_keys_and_nulls);
    tcase_add_test(t, many_headers_arrive);
    tcase_add_test(t, every_argument_is_the_callers_again);
    tcase_add_test(t, a_topic_need_not_be_terminated);
    tcase_add_test(t, timestamps_are_given_or_now);
    tcase_add_test(t, timestamps_may_go_backwards_within_a_batch);
    tcase_add_test(t, a_topic_that_stamps_says_so_in_the_report);
    tcase_add_test(t, a_report_tells_all_there_is_to_tell);
    tcase_add_test(t, acks_0_says_maybe_and_no_offset);
    tcase_add_test(t, a_refusal_by_the_broker_is_reported_with_its_number);
    suite_add_tcase(s, t);
    t = tcase_create("sizes");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, max_request_size_counts_everything);
    tcase_add_test(t, buffer_memory_bounds_a_record_too);
    tcase_add_test(t, sizes_that_no_wire_can_say_are_too_big);
    suite_add_tcase(s, t);
    t = tcase_create("partitions");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, keys_choose_as_java_does);
    tcase_add_test(t, an_empty_key_is_a_key);
    tcase_add_test(t, a_custom_partitioner_chooses);
    tcase_add_test(t, round_robin_takes_turns);
    tcase_add_test(t, keys_can_be_ignored);
    suite_add_tcase(s, t);
    t = tcase_create("many");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, many_records_are_taken_in_order);
    tcase_add_test(t, many_go_where_each_is_sent);
    tcase_add_test(t, many_stop_at_the_first_that_is_not_taken);
    tcase_add_test(t, many_wait_no_longer_than_one);
    tcase_add_test(t, many_have_all_of_max_block_to_wait);
    tcase_add_test(t, one_records_limit_is_not_the_next_ones);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_record_suite)
