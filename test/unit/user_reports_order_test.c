/* SPDX-License-Identifier: BSD-2-Clause */
/* What users have reported of order, of retries that overtake, of identities
 * that brokers forget, and of batches that have to be split, replayed against a
 * whole client and cluster under a stopped clock.  The ids are those of
 * ../USER_REPORTS.md. */
#include "lib/base/rand.h"
#include "test/unit/user_reports.h"

#define SINGLES "batch.size", "0"

/* -- order -- */

/* UR-052, O1: without idempotence and with one request in flight: what is
 * refused for now, or whose connection ends before the broker had it, goes
 * before what came after it. */
START_TEST(a_retry_is_not_overtaken)
{
    static const char *const fails[] = {
        "api=produce skip=1 count=2 error=6",
        "api=produce skip=1 count=2 error=19",
        "api=produce skip=1 count=2 error=5",
        "api=produce skip=1 count=2 ignore answer=close",
        "api=produce skip=1 count=2 ignore answer=reset",
        "api=produce skip=1 count=1 ignore answer=none"};
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 10 * MS,
        .settings = WORLD_SETTINGS(
            FAST, SINGLES, "enable.idempotence", "false", "request.timeout.ms",
            "500", "max.in.flight.requests.per.connection", "1")});

    (void)world_rule(w, fails[_i]);
    for (int i = 0; i < 6; i++) {
        (void)world_send(w, 0);
        world_run_ms(w, 7);
    }
    world_settle(w);
    all_stored(w, world_record(w, 0), 6, 0);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3 4 5");
    ck_assert_uint_eq(world_attempts(w), _i == 5 ? 7 : 8);
    ck_assert_int_eq(world_attempt(w, 0)->header.producer_id, -1);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-053: the same when the leader moves while one is unanswered at the old one:
 * the new one gets nothing before it gets that. */
START_TEST(one_in_flight_follows_the_leader_in_order)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .replication = 2,
        .settings = WORLD_SETTINGS(
            FAST, SINGLES, "enable.idempotence", "false", "request.timeout.ms",
            "1000", "metadata.max.age.ms", "100",
            "max.in.flight.requests.per.connection", "1")});
    int32_t old = kb_leader(world_cluster(w), "t", 0);
    size_t before;

    (void)world_send(w, 0); /* 0 */
    (void)world_send(w, 1); /* 1: the other node is connected, too */
    world_settle(w);
    before = world_attempts(w);
    world_link(w, old)->stall_to = true;
    (void)world_send(w, 0);
    world_run_ms(w, 5);
    (void)world_send(w, 0);
    (void)world_send(w, 0);
    ck_assert(kb_leader_move(world_cluster(w), "t", 0, 3 - old, false,
                             world_now_ns(w)));
    world_run_ms(w, 800); /* the client has heard of it long ago */
    ck_assert_uint_eq(world_attempts(w), before);
    world_settle(w);
    ck_assert_str_eq(world_log(w, "t", 0), "0 2 3 4");
    ck_assert_uint_eq(world_attempts(w), before + 3);
    for (size_t i = before; i < before + 3; i++)
        ck_assert_int_eq(world_attempt(w, i)->node, 3 - old);
    world_check(w);
    world_end(w);
}
END_TEST

/* E2, E4: three batches on the wire, and each of them meets one of three fates:
 * stored and its answer lost with the connection; lost with the connection;
 * "not the leader".  All 27 ways: nothing is fatal, lost, doubled or out of
 * order. */
START_TEST(three_in_flight_in_every_way)
{
    static const char *const fates[] = {
        "api=produce skip=%d count=1 answer=close",
        "api=produce skip=%d count=1 ignore answer=reset",
        "api=produce skip=%d count=1 error=6"};
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 5 * MS, .settings = WORLD_SETTINGS(FAST, SINGLES)});
    int fate[3] = {_i / 9, _i / 3 % 3, _i % 3};
    kp_error error;

    (void)world_send(w, 0);
    world_settle(w);
    for (int i = 0; i < 3; i++)
        (void)rule(w, fates[fate[i]], i);
    (void)world_send_many(w, 0, 3, 0);
    world_run_ms(w, 6);
    (void)world_send(w, 0);
    world_settle(w);
    all_stored(w, world_record(w, 0), 5, 0);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3 4");
    ck_assert_int_eq(kp_status(world_producer(w), NULL, &error), KP_OK);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- forgotten -- */

/* UR-056, UR-060: a producer that was quiet for long is forgotten by one
 * partition: by a broker as it is, and by ones that answer "unknown producer" or
 * "out of order".  What it sends then is stored once and in order, several at a
 * time, and the other partition goes on as before. */
START_TEST(an_idle_producer_that_was_forgotten)
{
    static const char *const answers[] = {
        NULL, "api=produce partition=0 count=3 error=59 log_start=7",
        "api=produce partition=0 count=3 error=45"};
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2, .settings = WORLD_SETTINGS(FAST, SINGLES)});
    struct world_record *r, *other;
    const struct world_attempt *last;

    for (int i = 0; i < 7; i++)
        (void)world_send(w, 0);
    other = world_send(w, 1);
    world_settle(w);
    world_expect(other, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_run_ms(w, 3600 * 1000);
    if (_i == 0)
        kb_forget_producer(world_cluster(w), "t", 0, -1);
    else
        (void)world_rule(w, answers[_i]);
    r = world_send_many(w, 0, 3, 0);
    world_settle(w);
    all_stored(w, r, 3, 7);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3 4 5 6 8 9 10");
    other = world_send(w, 1);
    world_settle(w);
    world_expect(other, KP_OK, KP_OK, KP_STORED_YES, 1);
    last = world_attempt(w, world_attempts(w) - 1);
    ck_assert_int_eq(last->header.producer_epoch, 0);
    ck_assert_int_eq(last->header.base_sequence, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- splits -- */

/* UR-047: 10,000 records of 1 KB in batches of up to 8 MB, for a topic that
 * takes 100 KB: halved until they fit, all stored in order; and then batches
 * are made that fit. */
START_TEST(eight_megabytes_for_a_topic_that_takes_100_kb)
{
    struct world *w =
        begin_with(WORLD_SETTINGS(FAST, "linger.ms", "50", "batch.size",
                                  "8388608", "max.request.size", "10000000"));
    struct world_record *r;
    size_t first, refused = 0;

    ck_assert(
        kb_topic_set(world_cluster(w), "t", "max.message.bytes", "100000"));
    r = world_send_many(w, 0, 10000, 1000);
    world_settle(w);
    all_stored(w, r, 10000, 0);
    ck_assert_uint_gt(world_attempt(w, 0)->size, 8000000);
    for (size_t i = 0; i < world_attempts(w); i++)
        refused += world_attempt(w, i)->size > 100000 ? 1 : 0;
    /* 8 MB is halved seven times, 2 MB five times: all inner nodes; and those on
     * the wire meanwhile */
    ck_assert_uint_le(refused, 127 + 31 + 10);
    ck_assert_uint_le(world_attempts(w) - refused, 128 + 32);
    first = world_attempts(w);
    r = world_send_many(w, 0, 1000, 1000);
    world_settle(w);
    all_stored(w, r, 1000, 10000);
    for (size_t i = first; i < world_attempts(w); i++)
        ck_assert_uint_le(world_attempt(w, i)->size, 100000);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-049: a split is no retry: with none allowed all is stored nevertheless, and
 * it is counted as what it is. */
START_TEST(a_split_is_no_retry)
{
    struct world *w = begin_with(WORLD_SETTINGS(
        FAST, "linger.ms", "5", "enable.idempotence", "false", "retries", "0"));
    struct world_record *r;

    ck_assert(kb_topic_set(world_cluster(w), "t", "max.message.bytes", "650"));
    r = world_send_many(w, 0, 10, 100);
    world_settle(w);
    all_stored(w, r, 10, 0);
    ck_assert_uint_eq(world_attempts(w), 3);
    ck_assert(metric(w, "batch-split-total") == 1);
    ck_assert(metric(w, "record-error-total") == 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- compression -- */

/* UR-100: a broker that refuses what is compressed, with either code and no word
 * more: it is final at once, and the report says what may be wrong. */
START_TEST(refused_compression_is_named)
{
    static const char *const codecs[] = {"gzip", "snappy", "lz4", "zstd"};
    const char *codec = codecs[_i % 4];
    kp_err err = _i < 4 ? KP_UNSUPPORTED_FOR_MESSAGE_FORMAT
                        : KP_UNSUPPORTED_COMPRESSION_TYPE;
    struct world_record *r;
    struct world *w;

    if (strstr(kp_features(), codec) == NULL)
        return; /* not in this build */
    w = begin_with(WORLD_SETTINGS(FAST, "compression.type", codec));
    (void)rule(w, "api=produce count=-1 error=%d", err);
    r = world_send_many(w, 0, 1, 1000);
    world_settle(w);
    world_expect(r, err, KP_OK, KP_STORED_NO, -1);
    ck_assert_uint_eq(world_attempts(w), 1);
    ck_assert_msg(strstr(r->text, codec) != NULL &&
                      strstr(r->text, "compression.type") != NULL,
                  "%s", r->text);
    world_end(w);
}
END_TEST

/* -- a close in the middle of it -- */

/* UR-106: several requests are in flight and meet errors when a close begins, at
 * any moment: it keeps its limit, and when it returns each record has had its
 * one report. */
START_TEST(a_close_among_errors)
{
    static const char *const rules[] = {"api=produce skip=%d count=3 error=6",
                                        "api=produce skip=%d error=87",
                                        "api=produce skip=%d count=2 error=19",
                                        "api=produce skip=%d error=10",
                                        "api=produce skip=%d answer=close",
                                        "api=produce skip=%d answer=none"};
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2,
        .latency_ns = 10 * MS,
        .seed = (uint64_t)_i,
        .settings =
            WORLD_SETTINGS(FAST, SINGLES, "request.timeout.ms", "200")});
    int64_t limit_ms;
    struct world_call *c;
    struct rng rng;

    kp__rng_seed(&rng, (uint64_t)_i);
    for (int i = 0; i < 2; i++)
        (void)rule(w, rules[kp__rng_below(&rng, 6)],
                   (int)kp__rng_below(&rng, 5));
    for (int32_t i = 0; i < 8; i++)
        (void)world_send(w, i % 2);
    world_run_until_ns(w, world_now_ns(w) + kp__rng_below(&rng, 80) * MS / 2);
    limit_ms = kp__rng_below(&rng, 3) * 50;
    c = world_close(w, limit_ms);
    while (!c->done)
        world_run_until_ns(w, world_now_ns(w) + MS / 10);
    ck_assert_int_le(c->done_ns - c->called_ns, limit_ms * MS);
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert_uint_eq(world_record(w, i)->callbacks, 1);
        ck_assert_int_le(world_record(w, i)->callback_ns, c->done_ns);
    }
    world_run_ms(w, 1000); /* and none after it */
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_uint_eq(world_record(w, i)->callbacks, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* D7: 10,000 records are queued when it is time to end.  With a broker they are
 * delivered; without one each fails, and the close says how many. */
START_TEST(a_close_with_much_to_do)
{
    struct world *w = begin_with(
        WORLD_SETTINGS("linger.ms", "60000", "batch.size", "1000000"));
    struct world_call *c;

    (void)world_send(w, 0);
    world_run_ms(w, 1);
    if (_i == 1) {
        world_link(w, 1)->refuses = true;
        world_cut(w, 1, true);
    }
    for (int i = 1; i < 10000; i++)
        (void)world_send_what(w, &(struct world_what){.flags = 0});
    c = world_close(w, 30000);
    world_settle(w);
    ck_assert_int_eq(c->err, _i == 0 ? KP_OK : KP_ECLOSED);
    ck_assert_int_eq(kb_log_end(world_cluster(w), "t", 0), _i == 0 ? 10000 : 0);
    ck_assert_int_eq(world_record(w, 0)->report.err, c->err);
    if (_i == 1) {
        ck_assert_int_eq(c->done_ns - c->called_ns, 30000 * MS);
        ck_assert(metric(w, "record-error-total") == 10000);
        ck_assert_msg(strstr(c->error.text, "10000 record") != NULL, "%s",
                      c->error.text);
    }
    world_end(w);
}
END_TEST

static Suite *user_reports_order_suite(void)
{
    Suite *s = suite_create("user_reports_order");
    TCase *t = tcase_create("user_reports_order");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_retry_is_not_overtaken, 0, 6);
    tcase_add_test(t, one_in_flight_follows_the_leader_in_order);
    tcase_add_loop_test(t, three_in_flight_in_every_way, 0, 27);
    tcase_add_loop_test(t, an_idle_producer_that_was_forgotten, 0, 3);
    tcase_add_test(t, eight_megabytes_for_a_topic_that_takes_100_kb);
    tcase_add_test(t, a_split_is_no_retry);
    tcase_add_loop_test(t, refused_compression_is_named, 0, 8);
    tcase_add_loop_test(t, a_close_among_errors, 0, 200);
    tcase_add_loop_test(t, a_close_with_much_to_do, 0, 2);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(user_reports_order_suite)
