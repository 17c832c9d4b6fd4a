/* SPDX-License-Identifier: BSD-2-Clause */
/* What users have reported of brokers that cannot be reached, connections that
 * end, and networks that are slow, replayed against a whole client and cluster
 * under a stopped clock.  The ids are those of ../USER_REPORTS.md. */
#include "test/unit/user_reports.h"

/* -- nobody is there -- */

enum gone { REFUSED, NO_CONNECT, SILENT, NO_NAME, GONE_KINDS };

static void go(struct world *w, enum gone how)
{
    switch (how) {
    case REFUSED:
        world_link(w, 1)->refuses = true;
        break;
    case NO_CONNECT:
        world_link(w, 1)->silent = true;
        break;
    case SILENT:
        world_link(w, 1)->stall_from = true;
        return;
    default: /* its name is known no more; metadata still names it */
        world_link(w, 1)->refuses = true;
        kb_node_address(world_cluster(w), 1, "no-such-host.invalid", 9092);
        break;
    }
    world_cut(w, 1, true);
}

/* UR-011: the only broker is gone for good: each record ends at its deadline,
 * and a flush with them. */
START_TEST(gone_for_good_all_ends_in_time)
{
    struct world *w = begin_with(WORLD_SETTINGS(
        FAST, "delivery.timeout.ms", "1000", "request.timeout.ms", "900"));
    struct world_record *r[20];
    struct world_call *c;

    (void)world_send(w, 0);
    world_settle(w);
    go(w, (enum gone)_i);
    for (int i = 0; i < 20; i++) {
        r[i] = world_send(w, 0);
        ck_assert_int_eq(r[i]->state, WORLD_TAKEN);
        world_run_ms(w, 10);
    }
    c = world_flush(w, 2000);
    world_settle(w);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(r[i]->report.err, KP_ETIMEDOUT);
        ck_assert_uint_eq(r[i]->callbacks, 1);
        /* with the first of its batch: at most a quarter earlier */
        ck_assert_int_le(r[i]->reported_ns - r[i]->returned_ns, 1000 * MS);
        ck_assert_int_ge(r[i]->reported_ns - r[i]->returned_ns, 750 * MS);
    }
    ck_assert(c->done);
    ck_assert_int_eq(c->err, KP_OK); /* each was told to its future */
    ck_assert_int_eq(c->done_ns, r[19]->reported_ns);
    world_end(w);
}
END_TEST

/* -- told as such -- */

struct nowhere {
    const char *host;
    int32_t port;
    kp_err err;
    const char *address, *reason;
};
static const struct nowhere nowhere[] = {
    {"no-such-host.invalid", 9092, KP_ERESOLVE, "no-such-host.invalid:9092",
     "no address"},
    {"10.0.0.7", 9093, KP_ECONNECT, "10.0.0.7:9093", "refused"},
    {"10.0.0.200", 9092, KP_ECONNECT, "10.0.0.200:9092", "unreachable"},
};

/* UR-037, UR-085, K4, R4: the bootstrap address is good, and what the broker
 * says of itself leads nowhere: status and log say so within a second, with
 * the address, the reason and the remedy, and so does the record's report. */
START_TEST(an_advertised_address_that_leads_nowhere)
{
    const struct nowhere *n = &nowhere[_i];
    struct world *w = world_begin(&(struct world_options){
        .watches_log = true,
        .no_wait = true,
        .bootstrap = "10.0.0.1:9092",
        .settings = WORLD_SETTINGS("linger.ms", "0", "delivery.timeout.ms",
                                   "30000", "request.timeout.ms", "1000")});
    struct told t = {.part = n->address};
    struct world_record *r;
    kp_error error;

    world_on_log(w, keep_told, &t);
    kb_node_address(world_cluster(w), 1, n->host, n->port);
    r = world_send(w, 0);
    world_run_ms(w, 1000);
    ck_assert_int_eq(r->state, WORLD_TAKEN);
    ck_assert_int_eq(kp_status(world_producer(w), "t", &error), n->err);
    ck_assert_msg(strstr(error.text, n->address) != NULL &&
                      strstr(error.text, n->reason) != NULL &&
                      strstr(error.text, "advertised.listeners") != NULL,
                  "%s", error.text);
    ck_assert_int_ge(t.count, 1);
    ck_assert_msg(strstr(t.last, n->reason) != NULL &&
                      strstr(t.last, "advertise") != NULL,
                  "%s", t.last);
    world_settle(w);
    world_expect(r, KP_ETIMEDOUT, n->err, KP_STORED_NO, -1);
    ck_assert_msg(strstr(r->text, n->address) != NULL &&
                      strstr(r->text, n->reason) != NULL &&
                      strstr(r->text, "advertised.listeners") != NULL,
                  "%s", r->text);
    ck_assert_int_le(t.count, 6); /* in half a minute */
    world_end(w);
}
END_TEST

/* UR-094, C1: one broker of three is gone for a minute, with traffic for it: it
 * is knocked at ever more slowly, one attempt at a time, in ten lines at most;
 * the others go on. */
START_TEST(a_broker_down_for_a_minute)
{
    struct world *w = world_begin(
        &(struct world_options){.nodes = 3,
                                .partitions = 3,
                                .watches_log = true,
                                .settings = WORLD_SETTINGS("linger.ms", "5")});
    struct told t = {.part = NULL};
    int32_t gone = kb_leader(world_cluster(w), "t", 0);
    struct world_record *r;
    uint64_t turns;

    for (int32_t i = 0; i < 3; i++)
        (void)world_send(w, i);
    world_settle(w);
    world_on_log(w, keep_told, &t);
    world_link(w, gone)->silent = _i == 1;
    world_link(w, gone)->refuses = _i == 0;
    world_cut(w, gone, true);
    for (int i = 0; i < 600; i++) {
        (void)world_send(w, 0);
        r = world_send(w, 1 + i % 2);
        world_run_ms(w, 100);
        ck_assert(r->reported);
        ck_assert_int_eq(r->report.err, KP_OK);
    }
    ck_assert_int_ge(t.count, 1);
    ck_assert_int_le(t.count, 10);
    turns = world_turns(w);
    world_run_ms(w, 10000);
    ck_assert_uint_le(world_turns(w) - turns, 20 * 10);
    world_link(w, gone)->silent = world_link(w, gone)->refuses = false;
    world_settle(w);
    for (uint32_t i = 0; i < world_record_count(w); i++)
        ck_assert_int_eq(world_record(w, i)->report.err, KP_OK);
    /* C2: and when it is back and all is sent, nothing moves any more */
    world_run_ms(w, 1000);
    turns = world_turns(w);
    world_run_ms(w, 60000);
    ck_assert_uint_le(world_turns(w) - turns, 10);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- connections that end -- */

/* UR-092, I1, R7: the broker hangs up on an idle connection, before the send, at
 * the same moment, or while the request is on its way: nothing is lost, no error
 * is seen and no line is written of it. */
START_TEST(closed_while_idle_or_just_then)
{
    static const char *const acks[] = {"all", "1"};
    struct world *w = world_begin(&(struct world_options){
        .watches_log = true,
        .settings = WORLD_SETTINGS(FAST, "acks", acks[_i % 2])});
    struct told t = {.part = NULL};
    kp_error error;

    world_on_log(w, keep_told, &t);
    for (int i = 0; i < 40; i++) {
        int64_t at_ns = world_now_ns(w) + 400 * MS;

        /* from 1 ms before the send to 1.5 ms after it */
        world_run_until_ns(w, at_ns + (i % 6 - 2) * MS / 2);
        world_cut(w, 1, _i / 2 == 1);
        if (world_now_ns(w) < at_ns)
            world_run_until_ns(w, at_ns);
        ends(w, world_send(w, 0));
        ck_assert_int_eq(kp_status(world_producer(w), NULL, &error), KP_OK);
    }
    world_settle(w);
    for (uint32_t i = 0; i < world_record_count(w); i++) {
        ck_assert_int_eq(world_record(w, i)->report.err, KP_OK);
        ck_assert_int_eq(world_record(w, i)->report.stored, KP_STORED_YES);
    }
    ck_assert_msg(t.count == 0, "%s", t.last);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-092, I2: who says so has idle connections closed before somebody between
 * here and there forgets them; the next record goes over a new one, at once. */
START_TEST(a_record_after_a_long_pause)
{
    struct world *w = world_begin(&(struct world_options){
        .watches_log = true,
        .settings = WORLD_SETTINGS("linger.ms", "0", "connections.max.idle.ms",
                                   "180000")});
    struct told t = {.part = NULL};
    struct world_record *r;
    int64_t connects;

    world_on_log(w, keep_told, &t);
    (void)world_send(w, 0);
    world_settle(w);
    connects = kb_connects(world_cluster(w), -1);
    world_run_ms(w, 240000);
    ck_assert_int_eq(kb_open_connections(world_cluster(w), -1), 0);
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    /* connect, versions, and the request: 2 ms each */
    ck_assert_int_le(r->reported_ns - r->called_ns, 7 * MS);
    ck_assert_int_eq(kb_connects(world_cluster(w), -1), connects + 1);
    ck_assert_int_eq(t.count, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- slow -- */

/* I7: 20 MB over a link of 1 MB/s, and requests of 1 MB: what is in flight is
 * bounded, so none of it waits longer than its time on the link allows; nothing
 * is timed out or sent again. */
START_TEST(a_slow_link_times_nothing_out)
{
    struct world *w =
        begin_with(WORLD_SETTINGS("linger.ms", "0", "batch.size", "1000000"));
    int64_t connects;
    size_t batches;

    (void)world_send(w, 0);
    world_settle(w);
    connects = kb_connects(world_cluster(w), -1);
    world_link(w, 1)->to_ns = 10 * MS;
    world_link(w, 1)->window = 10000;
    for (int i = 0; i < 2000; i++)
        (void)world_send_many(w, 0, 1, 10000);
    world_settle(w);
    ck_assert_int_eq(kb_connects(world_cluster(w), -1), connects);
    ck_assert(metric(w, "record-retry-total") == 0);
    batches = world_attempts(w);
    ck_assert_uint_le(batches, 30);
    for (uint32_t i = 0; i < world_record_count(w); i++)
        ck_assert_int_eq(world_record(w, i)->report.err, KP_OK);
    ck_assert_int_ge(world_now_ms(w), 19000); /* slow it was */
    world_check(w);
    world_end(w);
}
END_TEST

/* T5: whatever its size, a record is written at once and whole: it takes one way
 * there and one back. */
START_TEST(no_size_is_slower_than_another)
{
    struct world *w = begin_with(WORLD_SETTINGS("linger.ms", "0"));
    double ios;

    (void)world_send(w, 0);
    world_settle(w);
    for (int32_t size = 1; size <= 20000; size += 97) {
        struct world_record *r;

        ios = metric(w, "network-io-total");
        r = world_send_many(w, 0, 1, size);
        world_settle(w);
        ck_assert_int_eq(r->report.err, KP_OK);
        ck_assert_int_eq(r->reported_ns - r->called_ns, 2 * MS);
        /* a write, and reads until there is nothing more */
        ck_assert(metric(w, "network-io-total") - ios <= 3);
    }
    world_end(w);
}
END_TEST

/* T10: one broker of three answers after ten seconds: sends to the others are
 * all taken and as quick as ever, and only what is for the slow one is late. */
START_TEST(a_slow_broker_slows_nobody_else)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 3,
        .partitions = 3,
        .settings = WORLD_SETTINGS("linger.ms", "5", "buffer.memory", "1048576",
                                   "delivery.timeout.ms", "8000",
                                   "request.timeout.ms", "7000")});
    int32_t slow = kb_leader(world_cluster(w), "t", 0);
    struct world_what what = {.size = 1000,
                              .flags = WORLD_FUTURE | WORLD_NOWAIT};
    struct world_record *r;
    int late = 0;

    for (int32_t i = 0; i < 3; i++)
        (void)world_send(w, i);
    world_settle(w);
    (void)rule(w, "api=produce node=%d count=-1 process_ms=10000", slow);
    for (int i = 0; i < 2000; i++) {
        for (what.partition = 0; what.partition < 3; what.partition++) {
            r = world_send_what(w, &what);
            ck_assert(what.partition == 0 || r->state == WORLD_TAKEN);
        }
        world_run_ms(w, 10);
    }
    world_settle(w);
    for (uint32_t i = 3; i < world_record_count(w); i++) {
        r = world_record(w, i);
        if (r->partition == 0) {
            late += r->report.err == KP_ETIMEDOUT ? 1 : 0;
            continue;
        }
        ck_assert_int_eq(r->report.err, KP_OK);
        ck_assert_int_le(r->reported_ns - r->called_ns, (5 + 2 + 1) * MS);
    }
    ck_assert_int_gt(late, 100);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- throttled -- */

/* UR-093: in whatever answer a broker asks for it, it gets nothing for so
 * long. */
START_TEST(throttled_by_any_answer)
{
    static const char *const rules[] = {
        "api=metadata count=1 throttle_ms=500",
        "api=init-producer-id count=1 throttle_ms=500",
        "api=produce count=1 error=47 throttle_ms=500"};
    struct world *w = begin_with(WORLD_SETTINGS(FAST));
    struct world_record *r;
    int64_t began;

    (void)world_send(w, 0);
    world_settle(w);
    began = world_now_ns(w);
    (void)world_rule(w, rules[_i]);
    /* which takes a new id, */
    (void)world_rule(w, "api=produce count=1 error=47");
    r = world_send(w, 0);
    if (_i == 0) /* or metadata */
        (void)world_send_what(w, &(struct world_what){.topic = "nope",
                                                      .partition = -1,
                                                      .max_wait_ms = 1,
                                                      .flags = WORLD_FUTURE});
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_uint_eq(world_attempts(w), 3);
    ck_assert_int_ge(world_attempt(w, 2)->at_ns - began, 500 * MS);
    ck_assert_int_le(world_attempt(w, 2)->at_ns - began, 530 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-093: how long is in the metrics, and a request behind it is not called
 * timed out for the broker's pause. */
START_TEST(throttling_is_counted)
{
    struct world *w = begin_with(
        WORLD_SETTINGS(FAST, "request.timeout.ms", "300", "delivery.timeout.ms",
                       "60000", "max.in.flight.requests.per.connection", "2"));
    int64_t connects;

    (void)world_send(w, 0);
    world_settle(w);
    connects = kb_connects(world_cluster(w), -1);
    (void)world_rule(w, "api=produce count=1 throttle_ms=1000");
    (void)world_send(w, 0);
    world_run_until_ns(w, world_now_ns(w) + MS / 2);
    (void)world_send(w, 0); /* on its way when the answer comes */
    world_settle(w);
    all_stored(w, world_record(w, 0), 3, 0);
    ck_assert(metric(w, "produce-throttle-time-max") == 1000);
    ck_assert(metric(w, "produce-throttle-time-avg") > 0);
    ck_assert(metric(w, "record-retry-total") == 0);
    ck_assert_int_eq(kb_connects(world_cluster(w), -1), connects);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- acks=0 -- */

/* I8, UR-065: no answer is waited for, so none can be late: the connection stays
 * as it is, and nothing is said. */
START_TEST(acks_0_times_nothing_out)
{
    struct world *w = world_begin(&(struct world_options){
        .watches_log = true,
        .settings = WORLD_SETTINGS("linger.ms", "0", "acks", "0",
                                   "request.timeout.ms", "1000")});
    struct told t = {.part = NULL};
    int64_t connects;

    world_on_log(w, keep_told, &t);
    (void)world_send(w, 0);
    world_settle(w);
    connects = kb_connects(world_cluster(w), -1);
    for (int i = 0; i < 60; i++) {
        struct world_record *r = world_send(w, 0);

        ck_assert(metric(w, "requests-in-flight") == 0);
        world_run_ms(w, 1000);
        world_expect(r, KP_OK, KP_OK, KP_STORED_MAYBE, -1);
    }
    ck_assert_int_eq(kb_connects(world_cluster(w), -1), connects);
    ck_assert_int_eq(kb_log_end(world_cluster(w), "t", 0), 61);
    ck_assert_int_eq(t.count, 0);
    world_end(w);
}
END_TEST

static Suite *user_reports_network_suite(void)
{
    Suite *s = suite_create("user_reports_network");
    TCase *t = tcase_create("user_reports_network");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, gone_for_good_all_ends_in_time, 0, GONE_KINDS);
    tcase_add_loop_test(t, an_advertised_address_that_leads_nowhere, 0, 3);
    tcase_add_loop_test(t, a_broker_down_for_a_minute, 0, 2);
    tcase_add_loop_test(t, closed_while_idle_or_just_then, 0, 4);
    tcase_add_test(t, a_record_after_a_long_pause);
    tcase_add_test(t, a_slow_link_times_nothing_out);
    tcase_add_test(t, no_size_is_slower_than_another);
    tcase_add_test(t, a_slow_broker_slows_nobody_else);
    tcase_add_loop_test(t, throttled_by_any_answer, 0, 3);
    tcase_add_test(t, throttling_is_counted);
    tcase_add_test(t, acks_0_times_nothing_out);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(user_reports_network_suite)
