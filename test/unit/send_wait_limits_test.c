/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends that wait: for a topic, for a partition, for memory; how long, and what
 * they say; and promise 1, the delivery deadline, in every weather. */
#include <stdio.h>
#include <string.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define MS KP_NS_PER_MS
#define BLOCK "max.block.ms", "2000"

static struct world_record *send_to(struct world *w, const char *topic,
                                    int32_t partition, unsigned more)
{
    return world_send_what(
        w, &(struct world_what){.topic = topic,
                                .partition = partition,
                                .flags = WORLD_FUTURE | WORLD_CALLBACK | more});
}

static void returns(struct world *w, struct world_record *r)
{
    ck_assert(world_run_until(w, world_send_returned, r, 3600000));
}

/* -- topics -- */

/* K3: one Metadata request for a new topic, none when it is known. */
START_TEST(one_request_for_a_topic)
{
    struct world *w = world_begin(&(struct world_options){0});
    struct world_record *r[20];
    int64_t asked;

    ck_assert_int_eq(
        kb_topic_create(world_cluster(w), "new", 1, 1, world_now_ns(w)), 0);
    asked = kb_requests(world_cluster(w), -1, 3);
    for (int i = 0; i < 20; i++)
        r[i] = send_to(w, "new", 0, 0);
    world_settle(w);
    for (int i = 0; i < 20; i++) {
        world_expect(r[i], KP_OK, KP_OK, KP_STORED_YES, i);
        ck_assert_int_lt(r[i]->returned_ns - r[i]->called_ns, 50 * MS);
    }
    ck_assert_int_eq(kb_requests(world_cluster(w), -1, 3), asked + 1);
    (void)send_to(w, "new", 0, 0);
    world_settle(w);
    ck_assert_int_eq(kb_requests(world_cluster(w), -1, 3), asked + 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* K4: a topic that is not there: asked for again and again, KP_EMETADATA after
 * max.block.ms and not a moment later; after that at once. */
START_TEST(topic_that_is_not_there)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(BLOCK)});
    struct world_record *r, *again, *nowait;
    kp_error error;
    int64_t asked = kb_requests(world_cluster(w), -1, 3);

    r = send_to(w, "nowhere", -1, 0);
    returns(w, r);
    ck_assert_int_eq(r->refused, KP_EMETADATA);
    ck_assert_int_eq(r->returned_ns - r->called_ns, 2000 * MS);
    ck_assert_int_ge(kb_requests(world_cluster(w), -1, 3) - asked, 4);
    ck_assert_int_eq(kp_status(world_producer(w), "nowhere", &error),
                     KP_UNKNOWN_TOPIC_OR_PARTITION);
    /* UR: the next ones need not wait as long again */
    again = send_to(w, "nowhere", -1, 0);
    returns(w, again);
    ck_assert_int_eq(again->refused, KP_EMETADATA);
    ck_assert_int_eq(again->returned_ns, again->called_ns);
    nowait = send_to(w, "nowhere", -1, WORLD_NOWAIT);
    ck_assert_int_eq(nowait->refused, KP_EMETADATA);
    world_end(w);
}
END_TEST

START_TEST(topic_appears_in_time)
{
    struct world *w = world_begin(&(struct world_options){0});
    struct world_record *r = send_to(w, "later", 0, 0);

    world_run_ms(w, 1500);
    ck_assert_int_eq(r->state, WORLD_WAITING);
    ck_assert_int_eq(
        kb_topic_create(world_cluster(w), "later", 1, 1, world_now_ns(w)), 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_le(r->returned_ns - r->called_ns, 3000 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* A NOWAIT send to a topic not asked about yet says so, and asks. */
START_TEST(nowait_asks)
{
    struct world *w = world_begin(&(struct world_options){0});
    struct world_record *r;

    ck_assert_int_eq(
        kb_topic_create(world_cluster(w), "new", 1, 1, world_now_ns(w)), 0);
    r = send_to(w, "new", 0, WORLD_NOWAIT);
    ck_assert_int_eq(r->refused, KP_EMETADATA);
    ck_assert_int_eq(r->returned_ns, r->called_ns);
    world_run_ms(w, 50);
    r = send_to(w, "new", 0, WORLD_NOWAIT);
    ck_assert_int_eq(r->state, WORLD_TAKEN);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_end(w);
}
END_TEST

/* The record's own limit is shorter. */
START_TEST(max_wait_ms)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(BLOCK)});
    struct world_record *r;

    r = world_send_what(w, &(struct world_what){.topic = "nowhere",
                                                .partition = -1,
                                                .max_wait_ms = 300});
    returns(w, r);
    ck_assert_int_eq(r->refused, KP_EMETADATA);
    ck_assert_int_eq(r->returned_ns - r->called_ns, 300 * MS);
    world_end(w);
}
END_TEST

/* K9: refused by the brokers for good: their code, at once. */
static const int refusing[] = {17, 29};

START_TEST(topic_refused)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(BLOCK)});
    struct world_record *r;
    char line[80];

    (void)snprintf(line, sizeof(line),
                   "api=metadata topic=secret count=-1 error=%d",
                   refusing[_i]);
    (void)world_rule(w, line);
    r = send_to(w, "secret", -1, 0);
    returns(w, r);
    ck_assert_int_eq(r->refused, refusing[_i]);
    ck_assert_int_lt(r->returned_ns - r->called_ns, 100 * MS);
    r = send_to(w, "secret", -1, WORLD_NOWAIT);
    ck_assert_int_eq(r->refused, refusing[_i]);
    world_end(w);
}
END_TEST

/* A broker that failed has not refused the topic: it is asked again, at the
 * pace of the backoff. */
START_TEST(topic_that_a_broker_fails_over)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true,
        .settings = WORLD_SETTINGS(BLOCK, "retry.backoff.ms", "20")});
    struct world_record *r;

    (void)world_rule(w, "api=metadata topic=t count=2 error=-1");
    r = send_to(w, "t", 0, 0);
    returns(w, r);
    ck_assert_int_eq(r->state, WORLD_TAKEN);
    ck_assert_int_lt(r->returned_ns - r->called_ns, 200 * MS);
    ck_assert_int_le(kb_requests(world_cluster(w), -1, 3), 4);
    world_settle(w);
    world_end(w);
}
END_TEST

START_TEST(illegal_names)
{
    static const char *const names[] = {"", ".", "..", "a b", "a/b", "ü"};
    struct world *w = world_begin(&(struct world_options){0});
    struct world_record *r = send_to(w, names[_i], -1, 0);

    ck_assert_int_eq(r->state, WORLD_REFUSED);
    ck_assert_int_eq(r->refused, KP_ETOPIC);
    world_end(w);
}
END_TEST

/* K5: a partition that the topic does not have: waited for, and found if it
 * comes in time. */
START_TEST(partition_out_of_range)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(BLOCK)});
    struct world_record *r = send_to(w, "t", 3, 0);

    if (_i == 0) {
        returns(w, r);
        ck_assert_int_eq(r->refused, KP_EMETADATA);
        ck_assert_int_eq(r->returned_ns - r->called_ns, 2000 * MS);
        r = send_to(w, "t", 3, WORLD_NOWAIT);
        ck_assert_int_eq(r->refused, KP_EMETADATA);
    } else {
        world_run_ms(w, 500);
        ck_assert_int_eq(
            kb_topic_grow(world_cluster(w), "t", 4, world_now_ns(w)), 0);
        world_settle(w);
        world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
        ck_assert_int_lt(r->returned_ns - r->called_ns, 2000 * MS);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* Nobody can be reached from the beginning. */
START_TEST(no_broker_at_all)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true, .settings = WORLD_SETTINGS(BLOCK)});
    struct world_record *r;
    kp_error error;

    switch (_i) {
    case 0:
        kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
        break;
    case 1:
        world_link(w, 1)->silent = true;
        break;
    case 2:
        world_link(w, 1)->stall_to = true;
        break;
    default:
        world_link(w, 1)->stall_from = true;
        break;
    }
    r = send_to(w, "t", -1, 0);
    returns(w, r);
    ck_assert_int_eq(r->refused, KP_EMETADATA);
    ck_assert_int_eq(r->returned_ns - r->called_ns, 2000 * MS);
    if (_i == 0) {
        ck_assert_int_eq(kp_status(world_producer(w), NULL, &error),
                         KP_ECONNECT);
    }
    world_end(w);
}
END_TEST

START_TEST(no_name_at_all)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true,
        .bootstrap = "no-such-host:9092",
        .settings = WORLD_SETTINGS(BLOCK)});
    struct world_record *r;
    kp_error error;

    r = send_to(w, "t", -1, 0);
    returns(w, r);
    ck_assert_int_eq(r->refused, KP_EMETADATA);
    ck_assert_int_eq(kp_status(world_producer(w), NULL, &error), KP_ERESOLVE);
    world_end(w);
}
END_TEST

/* -- memory -- */

#define SMALL_POOL "buffer.memory", "131072", "batch.size", "16384"

static struct world *stopped_with_a_full_pool(struct world_record **blocked)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", SMALL_POOL, BLOCK,
                                   "delivery.timeout.ms", "20000",
                                   "request.timeout.ms", "5000")});
    int i;

    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    world_run_ms(w, 100);
    for (i = 0; i < 200; i++) {
        *blocked = world_send_many(w, 0, 1, 4000);
        if ((*blocked)->state == WORLD_WAITING)
            break;
    }
    ck_assert_int_lt(i, 200);
    return w;
}

/* B6: full for max.block.ms: KP_EBUFFER, then and not later. */
START_TEST(buffer_full)
{
    struct world_record *r, *nowait;
    struct world *w = stopped_with_a_full_pool(&r);

    nowait = world_send_what(w, &(struct world_what){.size = 4000,
                                                     .flags = WORLD_NOWAIT |
                                                              WORLD_FUTURE});
    ck_assert_int_eq(nowait->refused, KP_EBUFFER);
    ck_assert_int_eq(nowait->returned_ns, nowait->called_ns);
    returns(w, r);
    ck_assert_int_eq(r->refused, KP_EBUFFER);
    ck_assert_int_eq(r->returned_ns - r->called_ns, 2000 * MS);
    /* those taken are reported in time, and then there is room again */
    world_settle(w);
    ck_assert_int_eq(world_record(w, 0)->report.err, KP_ETIMEDOUT);
    ck_assert_int_eq(world_record(w, 0)->report.stored, KP_STORED_NO);
    world_check(w);
    world_end(w);
}
END_TEST

/* The broker comes back while they wait: first come, first served. */
START_TEST(blocked_in_order)
{
    struct world_record *r, *more[5];
    struct world *w = stopped_with_a_full_pool(&r);

    for (int i = 0; i < 5; i++)
        more[i] = world_send_many(w, 0, 1, 4000);
    world_run_ms(w, 500);
    kb_node_start(world_cluster(w), 1, KB_KEEP_STATE, world_now_ns(w));
    world_settle(w);
    ck_assert_int_eq(r->report.err, KP_OK);
    for (int i = 0; i < 5; i++) {
        world_expect(more[i], KP_OK, KP_OK, KP_STORED_YES,
                     r->report.offset + 1 + i);
        ck_assert_int_ge(more[i]->returned_ns,
                         i == 0 ? r->returned_ns : more[i - 1]->returned_ns);
    }
    world_check(w); /* the log is in the order of the calls */
    world_end(w);
}
END_TEST

/* -- promise 1: the deadline, whatever the weather -- */

enum weather {
    BROKER_DOWN,
    NO_LEADER,
    HUNG_CONNECTION, /* everything stops after the handshake */
    HUNG_ANSWERS,
    SILENT_CONNECT,
    NO_METADATA,
    REFUSED_EACH_TIME,
    THROTTLED,
    NO_PRODUCER_ID,
    TINY_WINDOW,
    WEATHERS
};

static void spoil(struct world *w, enum weather weather)
{
    struct world_link *l = world_link(w, 1);

    switch (weather) {
    case BROKER_DOWN:
        kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
        break;
    case NO_LEADER:
        (void)kb_leader_move(world_cluster(w), "t", 0, -1, true,
                             world_now_ns(w));
        break;
    case HUNG_CONNECTION:
        l->stall_to = true;
        break;
    case HUNG_ANSWERS:
        l->stall_from = true;
        break;
    case SILENT_CONNECT:
        l->silent = true;
        world_cut(w, -1, true);
        break;
    case NO_METADATA:
        (void)world_rule(w, "api=metadata count=-1 answer=stall");
        (void)world_rule(w, "api=produce count=-1 error=6");
        break;
    case REFUSED_EACH_TIME:
        (void)world_rule(w, "api=produce count=-1 error=19");
        break;
    case THROTTLED:
        (void)world_rule(w, "api=produce count=-1 error=19 throttle_ms=60000");
        break;
    case NO_PRODUCER_ID:
        (void)world_rule(w, "api=produce count=1 error=47");
        (void)world_rule(w, "api=init-producer-id count=-1 error=15");
        break;
    case TINY_WINDOW:
    default:
        l->window = 20;
        l->stall_to = true;
        break;
    }
}

START_TEST(deadline_in_every_weather)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "delivery.timeout.ms",
                                   "4000", "request.timeout.ms", "1000")});
    struct world_record *r[8];
    bool sent = _i % 2 != 0; /* something was, before */

    if (sent) {
        (void)world_send(w, 0);
        world_settle(w);
    }
    spoil(w, (enum weather)(_i / 2));
    for (int i = 0; i < 8; i++) {
        r[i] = world_send(w, 0);
        ck_assert_int_eq(r[i]->state, WORLD_TAKEN);
        world_run_ms(w, 100);
    }
    world_run_ms(w, 5000);
    for (int i = 0; i < 8; i++) {
        ck_assert(r[i]->reported);
        ck_assert_int_eq(r[i]->report.err, KP_ETIMEDOUT);
        ck_assert_int_le(r[i]->reported_ns - r[i]->returned_ns, 4000 * MS);
        /* not much earlier: an open batch takes no more after a quarter */
        ck_assert_int_ge(r[i]->reported_ns - r[i]->returned_ns, 2900 * MS);
    }
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *send_wait_suite(void)
{
    Suite *s = suite_create("send_wait");
    TCase *t = tcase_create("send_wait");

    tcase_add_test(t, one_request_for_a_topic);
    tcase_add_test(t, topic_that_is_not_there);
    tcase_add_test(t, topic_appears_in_time);
    tcase_add_test(t, nowait_asks);
    tcase_add_test(t, max_wait_ms);
    tcase_add_loop_test(t, topic_refused, 0, 2);
    tcase_add_test(t, topic_that_a_broker_fails_over);
    tcase_add_loop_test(t, illegal_names, 0, 6);
    tcase_add_loop_test(t, partition_out_of_range, 0, 2);
    tcase_add_loop_test(t, no_broker_at_all, 0, 4);
    tcase_add_test(t, no_name_at_all);
    tcase_add_test(t, buffer_full);
    tcase_add_test(t, blocked_in_order);
    tcase_add_loop_test(t, deadline_in_every_weather, 0, 2 * WEATHERS);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(send_wait_suite)
