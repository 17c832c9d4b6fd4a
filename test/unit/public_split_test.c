/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches that a topic calls too large, seen through the public API: what their
 * records hold is the same afterwards. */
#include "test/unit/public_fixture.h"

#include "test/support/main.h"

#define RECORDS 40
#define VALUE_SIZE 200

static const char *const codecs[] = {"none", "gzip", "snappy", "lz4", "zstd"};

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
}

/* Letters that no codec makes much smaller; record i's are its own. */
static void fill(char value[VALUE_SIZE + 1], int i)
{
    uint32_t x = (uint32_t)i * 2654435761U + 1;

    for (int k = 0; k < VALUE_SIZE; k++) {
        x = x * 1664525U + 1013904223U;
        value[k] = (char)('0' + (x >> 24) % 75);
    }
    value[VALUE_SIZE] = '\0';
}

static void send_all(kp_producer *p, kp_future *f)
{
    for (int i = 0; i < RECORDS; i++) {
        kp_header headers[3] = {{kp_str("number"), {NULL, 0}},
                                {kp_str("null"), {NULL, 0}},
                                {kp_str("empty"), {"", 0}}};
        char value[VALUE_SIZE + 1], number[16];
        kp_record r = {.topic = "t"};

        fill(value, i);
        (void)snprintf(number, sizeof(number), "%d", i);
        headers[0].value = kp_str(number);
        r.value = kp_str(value);
        r.headers = headers;
        r.header_count = 3;
        ASSERT_OK(kp_send(p, &r, &f[i]));
    }
}

static void expect_record(const struct stored *s, int i)
{
    char value[VALUE_SIZE + 1], number[16];

    fill(value, i);
    (void)snprintf(number, sizeof(number), "%d", i);
    ck_assert_int_eq(s->offset, i);
    ck_assert_int_eq(s->sequence, i);
    ck_assert_int_eq(s->value_size, VALUE_SIZE);
    ck_assert_mem_eq(s->value, value, VALUE_SIZE);
    ck_assert_int_eq(s->header_count, 3);
    ck_assert_str_eq(s->headers[0].key, "number");
    ck_assert_str_eq(s->headers[0].value, number);
    ck_assert_str_eq(s->headers[1].key, "null");
    ck_assert_int_eq(s->headers[1].value_size, -1);
    ck_assert_str_eq(s->headers[2].key, "empty");
    ck_assert_int_eq(s->headers[2].value_size, 0);
}

/* P4: headers are kept by a split, whatever the codec. */
START_TEST(headers_are_kept_by_a_split)
{
    kp_producer *p =
        MAKE_PRODUCER("linger.ms", "60000", "delivery.timeout.ms", "120000",
                      "compression.type", codecs[_i], NULL);
    struct stored stored[RECORDS];
    kp_future f[RECORDS];
    kp_report report;

    learn_topic(p, "t");
    ck_assert(
        kb_topic_set(kp_broker_lock(broker), "t", "max.message.bytes", "3000"));
    kp_broker_unlock(broker);
    send_all(p, f);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    for (int i = 0; i < RECORDS; i++) {
        ASSERT_OK(kp_future_wait(&f[i], 0, &report));
        ck_assert_int_eq(report.offset, i);
    }
    kp_future_release(f, RECORDS);
    ck_assert_int_ge(requests_of(0), 3);
    ck_assert_uint_eq(read_log("t", 0, stored, RECORDS), RECORDS);
    for (int i = 0; i < RECORDS; i++) {
        expect_record(&stored[i], i);
        ck_assert_int_eq(stored[i].codec, _i);
    }
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static Suite *public_split_suite(void)
{
    Suite *s = suite_create("public splits");
    TCase *t = tcase_create("splits");

    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_loop_test(t, headers_are_kept_by_a_split, 0, 5);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_split_suite)
