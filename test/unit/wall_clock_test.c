/* SPDX-License-Identifier: BSD-2-Clause */
/* The wall clock may jump as it likes: it stamps records and decides nothing.  A
 * producer whose wall clock is ours, on real sockets. */
#include "test/unit/public_fixture.h"

#include "lib/api/producer.h"
#include "lib/base/clock.h"
#include "test/support/main.h"

#define DAY_MS INT64_C(86400000)

static _Atomic int64_t wall;

static int64_t our_wall_ms(void *arg)
{
    (void)arg;
    return atomic_load(&wall);
}

static kp_producer *start_with_our_clock(const char *linger_ms)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), "linger.ms",
                               linger_ms, "delivery.timeout.ms", "60000",
                               "metadata.max.age.ms", "300000", NULL);
    struct clock clock = kp__system_clock;
    struct kp_producer *p = NULL;

    clock.wall_ms = our_wall_ms;
    ASSERT_OK(kp__producer_make(&p, c, &clock, &error));
    ASSERT_OK(kp__io_thread_start(p, &error));
    kp_config_destroy(c);
    return p;
}

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
    /* The broker takes any stamp. */
    ck_assert(kb_topic_set(kp_broker_lock(broker), "t",
                           "message.timestamp.after.max.ms",
                           "9223372036854775807"));
    kp_broker_unlock(broker);
    atomic_store(&wall, 1700000000000);
}

static const int64_t jumps[] = {DAY_MS, -DAY_MS, -1700000000000,
                                0,      1000,    365 * 100 * DAY_MS};
#define JUMPS (sizeof(jumps) / sizeof(jumps[0]))

START_TEST(a_jump_between_records_changes_only_their_stamps)
{
    kp_producer *p = start_with_our_clock("0");
    int64_t metadata;

    learn_topic(p, "t");
    metadata = requests_of(API_METADATA);
    for (size_t i = 0; i < JUMPS; i++) {
        kp_record r = record_of("t", "v");
        int64_t began = now_ms();

        atomic_store(&wall, 1700000000000 + jumps[i]);
        ASSERT_OK(deliver(p, &r, NULL));
        ck_assert_int_lt(now_ms() - began, 10000);
        ck_assert_int_eq(last_stored("t", 0).timestamp_ms,
                         1700000000000 + jumps[i]);
    }
    ck_assert_int_eq(requests_of(API_METADATA), metadata);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_jump_while_a_batch_is_open_loses_nothing)
{
    kp_producer *p = start_with_our_clock("30000");
    kp_future f[JUMPS];
    struct stored all[JUMPS];

    learn_topic(p, "t");
    for (size_t i = 0; i < JUMPS; i++) {
        kp_record r = record_of("t", "v");

        atomic_store(&wall, 1700000000000 + jumps[i]);
        ASSERT_OK(kp_send(p, &r, &f[i]));
    }
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_OK(kp_future_wait_all(f, JUMPS, 0));
    ck_assert_uint_eq(read_log("t", 0, all, JUMPS), JUMPS);
    for (size_t i = 0; i < JUMPS; i++)
        ck_assert_int_eq(all[i].timestamp_ms, 1700000000000 + jumps[i]);
    kp_future_release(f, JUMPS);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_clock_that_stands_still_stops_nothing)
{
    kp_producer *p = start_with_our_clock("5");
    kp_record r = record_of("t", "v");
    int64_t began;

    for (int i = 0; i < 20; i++)
        ASSERT_OK(deliver(p, &r, NULL));
    began = now_ms();
    add_rule("api=produce answer=none count=-1");
    ASSERT_OK(kp_send(p, &r, NULL));
    ASSERT_ERR(kp_flush(p, 100, &error), KP_PENDING);
    ck_assert_int_ge(now_ms() - began, 100);
    ASSERT_ERR(kp_close(p, 100, &error), KP_ECLOSED);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static Suite *wall_clock_suite(void)
{
    Suite *s = suite_create("wall clock");
    TCase *t = tcase_create("jumps");

    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, a_jump_between_records_changes_only_their_stamps);
    tcase_add_test(t, a_jump_while_a_batch_is_open_loses_nothing);
    tcase_add_test(t, a_clock_that_stands_still_stops_nothing);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(wall_clock_suite)
