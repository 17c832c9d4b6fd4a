/* SPDX-License-Identifier: BSD-2-Clause */
/* What users have reported of topics, partitions and metadata, replayed against
 * a whole client and cluster under a stopped clock.  The ids are those of
 * ../USER_REPORTS.md. */
#include <stdlib.h>

#include "lib/base/rand.h"
#include "test/unit/user_reports.h"

static struct world_record *send_to(struct world *w, const char *topic,
                                    int32_t partition, uint32_t max_wait_ms,
                                    unsigned flags)
{
    return world_send_what(
        w,
        &(struct world_what){.topic = topic,
                             .partition = partition,
                             .max_wait_ms = max_wait_ms,
                             .flags = flags | WORLD_FUTURE | WORLD_CALLBACK});
}

static void refused(const struct world_record *r, kp_err err)
{
    ck_assert_int_eq(r->state, WORLD_REFUSED);
    ck_assert_int_eq(r->refused, err);
    ck_assert_uint_eq(r->callbacks, 0);
}

/* UR-001: the send to a missing topic ends when max.block.ms is over, to the
 * moment, and sends to another topic do not notice. */
START_TEST(a_missing_topic_holds_nobody_else)
{
    struct world *w = begin_with(WORLD_SETTINGS(FAST, "max.block.ms", "300"));
    struct world_record *missing = send_to(w, "nope", -1, 0, 0), *r;
    kp_error error;

    for (int i = 0; i < 25; i++) {
        r = world_send(w, 0);
        ck_assert_int_eq(r->state, WORLD_TAKEN);
        world_run_ms(w, 10);
        world_expect(r, KP_OK, KP_OK, KP_STORED_YES, i);
    }
    ck_assert_int_eq(missing->state, WORLD_WAITING);
    world_settle(w);
    refused(missing, KP_EMETADATA);
    ck_assert_int_eq(missing->returned_ns - missing->called_ns, 300 * MS);
    ck_assert_int_eq(kp_status(world_producer(w), "nope", &error),
                     KP_UNKNOWN_TOPIC_OR_PARTITION);
    ck_assert_ptr_nonnull(strstr(error.text, "topic nope"));
    ck_assert_ptr_nonnull(strstr(error.text, "UNKNOWN_TOPIC_OR_PARTITION"));
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-002: a hundred sends to it, one after the other, wait once. */
START_TEST(a_hundred_sends_to_a_missing_topic_wait_once)
{
    struct world *w = begin_with(WORLD_SETTINGS(
        "linger.ms", "0", "retry.backoff.ms", "100", "max.block.ms", "500"));
    int64_t began = world_now_ns(w), asked = requests(w, API_METADATA);

    for (int i = 0; i < 100; i++) {
        struct world_record *r = send_to(w, "nope", -1, 0, 0);

        returns(w, r);
        refused(r, KP_EMETADATA);
    }
    ck_assert_int_ge(world_now_ns(w) - began, 500 * MS);
    ck_assert_int_le(world_now_ns(w) - began, 1000 * MS);
    /* at 0, 100, 300, 700 ms, give or take a fifth */
    ck_assert_int_le(requests(w, API_METADATA) - asked, 6);
    world_end(w);
}
END_TEST

/* N8: a thousand a second to a name that nobody knows, for ten seconds. */
START_TEST(a_wrong_name_is_asked_about_ever_less_often)
{
    struct world *w = begin_with(WORLD_SETTINGS("linger.ms", "0"));
    int64_t asked = requests(w, API_METADATA);

    for (int i = 0; i < 10000; i++) {
        refused(send_to(w, "wrong", -1, 0, WORLD_NOWAIT), KP_EMETADATA);
        world_run_ms(w, 1);
    }
    /* after 100, 200, 400, 800 ms, and then each second, less a fifth */
    ck_assert_int_le(requests(w, API_METADATA) - asked, 5 + 10000 / 800);
    ck_assert_int_ge(requests(w, API_METADATA) - asked, 8);
    world_end(w);
}
END_TEST

/* UR-005: two partitions for 400 ms, then three: a send to the third one waits
 * so long.  A tenth never comes. */
START_TEST(a_partition_just_added_is_waited_for)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2,
        .settings = WORLD_SETTINGS("linger.ms", "0", "max.block.ms", "2000")});
    struct world_record *third = send_to(w, "t", 2, 0, 0), *tenth;
    int64_t asked = requests(w, API_METADATA), grown_ns;

    tenth = send_to(w, "t", 9, 0, 0);
    world_run_ms(w, 400);
    ck_assert_int_eq(third->state, WORLD_WAITING);
    ck_assert_int_eq(kb_topic_grow(world_cluster(w), "t", 3, world_now_ns(w)),
                     0);
    grown_ns = world_now_ns(w);
    ends(w, third);
    world_expect(third, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_eq(third->report.partition, 2);
    /* asked after 0, 100, 300 and 700 ms, give or take a fifth */
    ck_assert_int_le(third->reported_ns - grown_ns, 550 * MS);
    ck_assert_int_le(requests(w, API_METADATA) - asked, 6);
    world_settle(w);
    refused(tenth, KP_EMETADATA);
    ck_assert_int_eq(tenth->returned_ns - tenth->called_ns, 2000 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

enum trouble { NO_LEADER_YET, LOST, LEADERLESS, TROUBLES };

static void give_trouble(struct world *w, enum trouble what)
{
    switch (what) {
    case NO_LEADER_YET:
        (void)world_rule(w, "api=metadata topic=late count=-1 error=5");
        break;
    case LOST:
        (void)world_rule(w, "api=metadata topic=t count=-1 error=3");
        (void)world_rule(w, "api=produce count=-1 error=3");
        break;
    default:
        ck_assert(kb_leader_move(world_cluster(w), "t", 0, -1, true,
                                 world_now_ns(w)));
        (void)world_rule(w, "api=produce count=-1 error=6");
        break;
    }
}

/* UR-006: a topic stays in trouble for an hour, and nothing waits less long: it
 * is told of at once, then ever more seldom, with a count; and counted. */
START_TEST(a_topic_that_stays_in_trouble_is_told_of)
{
    static const char *const parts[] = {"topic late: LEADER_NOT_AVAILABLE",
                                        "topic t: UNKNOWN_TOPIC_OR_PARTITION",
                                        "topic t: LEADER_NOT_AVAILABLE"};
    struct world *w = world_begin(&(struct world_options){
        .watches_log = true,
        .settings = WORLD_SETTINGS("linger.ms", "0", "max.block.ms", "7200000",
                                   "delivery.timeout.ms", "7200000")});
    struct told t = {.component = "metadata", .part = parts[_i]};
    struct world_record *r;
    int64_t began, asked = requests(w, API_METADATA);

    world_on_log(w, keep_told, &t);
    give_trouble(w, (enum trouble)_i);
    r = send_to(w, _i == NO_LEADER_YET ? "late" : "t", 0, 0, 0);
    began = world_now_ns(w);
    world_run_ms(w, 3600 * 1000);
    ck_assert(!r->reported);
    asked = requests(w, API_METADATA) - asked;
    ck_assert_int_ge(t.count, 10);
    ck_assert_int_le(t.count, 20);
    ck_assert_int_le(t.at_ns[0] - began, 300 * MS);
    for (int i = 2; i < t.count; i++)
        ck_assert_int_ge(t.at_ns[i] - t.at_ns[i - 1] + 2 * SEC,
                         t.at_ns[i - 1] - t.at_ns[i - 2]);
    ck_assert_msg(strstr(t.last, " s, in ") != NULL &&
                      strstr(t.last, " answers") != NULL,
                  "%s", t.last);
    ck_assert(metric(w, "metadata-error-total") > 3000);
    ck_assert(metric(w, "metadata-error-total") <= (double)asked);
    ck_assert(metric(w, "metadata-error-rate") > 0.5);
    /* over, it is forgotten */
    world_rule_remove(w, -1);
    if (_i == NO_LEADER_YET)
        ck_assert_int_eq(
            kb_topic_create(world_cluster(w), "late", 1, 1, world_now_ns(w)),
            0);
    if (_i == LEADERLESS)
        ck_assert(
            kb_leader_move(world_cluster(w), "t", 0, 1, true, world_now_ns(w)));
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    t.count = 0;
    world_run_ms(w, 3600 * 1000);
    ck_assert_int_eq(t.count, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-006: requests that fail as a whole count as well. */
START_TEST(metadata_that_fails_is_counted)
{
    struct world *w = begin_with(WORLD_SETTINGS(FAST, "max.block.ms", "500"));

    ck_assert(metric(w, "metadata-error-total") == 0);
    (void)world_rule(w, "api=metadata count=3 answer=close");
    (void)send_to(w, "nope", -1, 0, 0);
    world_settle(w);
    /* and the topic itself, each time it is answered about */
    ck_assert(metric(w, "metadata-error-total") >= 3 + 3);
    world_end(w);
}
END_TEST

/* UR-066: two topics that are refused, between others: only their own sends
 * fail, and when nobody sends to them any more nobody asks about them. */
START_TEST(refused_topics_leave_the_others_alone)
{
    struct world *w = begin_with(WORLD_SETTINGS(FAST));
    int64_t asked;
    struct world_record *a, *b, *r;

    (void)world_rule(w, "api=metadata topic=denied count=-1 error=29");
    (void)world_rule(w, "api=metadata topic=bad count=-1 error=17");
    asked = requests(w, API_METADATA);
    for (int i = 0; i < 20; i++) {
        r = world_send(w, 0);
        a = send_to(w, "denied", -1, 0, 0);
        b = send_to(w, "bad", -1, 0, 0);
        world_run_ms(w, 100);
        world_expect(r, KP_OK, KP_OK, KP_STORED_YES, i);
        refused(a, KP_TOPIC_AUTHORIZATION_FAILED);
        refused(b, KP_INVALID_TOPIC_EXCEPTION);
        ck_assert_int_le(a->returned_ns - a->called_ns, 20 * MS);
        ck_assert_int_le(b->returned_ns - b->called_ns, 20 * MS);
    }
    ck_assert_int_le(requests(w, API_METADATA) - asked, 2);
    /* for a while they are asked about each ten seconds */
    world_run_ms(w, 70000);
    asked = requests(w, API_METADATA);
    for (int i = 0; i < 1200; i++) {
        (void)world_send(w, 0);
        world_run_ms(w, 1000);
    }
    /* what is in use, each five minutes */
    ck_assert_int_le(requests(w, API_METADATA) - asked, 4);
    world_check(w);
    world_end(w);
}
END_TEST

/* N2: one record waits for minutes, and nothing else is sent to its topic: who
 * leads it in the end is learned all the same. */
START_TEST(a_topic_is_not_idle_while_a_record_waits)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .replication = 2,
        .settings = WORLD_SETTINGS(FAST, "delivery.timeout.ms", "7200000",
                                   "metadata.max.age.ms", "60000",
                                   "metadata.max.idle.ms", "10000")});
    struct kb_cluster *c = world_cluster(w);
    int32_t old = kb_leader(c, "t", 0);
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    world_link(w, old)->refuses = true;
    world_cut(w, old, true);
    if (_i == 1)
        ck_assert(kb_leader_move(c, "t", 0, -1, true, world_now_ns(w)));
    r = world_send(w, 0);
    world_run_ms(w, 300 * 1000);
    ck_assert(!r->reported);
    ck_assert(kb_leader_move(c, "t", 0, 3 - old, true, world_now_ns(w)));
    world_run_ms(w, 2000);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-069: unknown at first, then being made, then without a leader, and ready
 * after 800 ms: the first record is delivered. */
START_TEST(the_first_record_to_a_topic_being_made)
{
    struct world *w = begin_with(WORLD_SETTINGS(FAST));
    struct kb_cluster *c = world_cluster(w);
    struct world_record *r;

    ck_assert_int_eq(kb_topic_create(c, "made", 1, 1, world_now_ns(w)), 0);
    ck_assert(kb_leader_move(c, "made", 0, -1, true, world_now_ns(w)));
    (void)world_rule(w, "api=metadata topic=made count=2 error=3");
    (void)world_rule(w, "api=metadata topic=made skip=2 count=2 error=5");
    r = send_to(w, "made", -1, 0, 0);
    world_run_ms(w, 800);
    ck_assert(!r->reported);
    ck_assert(kb_leader_move(c, "made", 0, 1, true, world_now_ns(w)));
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_le(r->reported_ns - r->called_ns, (800 + 120 + 10) * MS);
    ck_assert_int_eq(kb_log_end(c, "made", 0), 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* D8: for five seconds no metadata is to be had, in any way; ten records, and
 * a close when they are taken: all are stored. */
START_TEST(metadata_that_fails_at_first_loses_no_record)
{
    static const char *const fails[] = {
        "api=metadata count=-1 answer=close", "api=metadata count=-1 error=5",
        "api=metadata count=-1 error=15",
        "api=metadata count=-1 answer=short at=7",
        "api=metadata count=-1 no_brokers"};
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true, .settings = WORLD_SETTINGS(FAST)});
    struct world_record *r[10];
    struct world_call *c;

    (void)world_rule(w, fails[_i]);
    for (int i = 0; i < 10; i++)
        r[i] = world_send(w, 0);
    world_run_ms(w, 5000);
    world_rule_remove(w, -1);
    for (int i = 0; i < 10; i++)
        returns(w, r[i]);
    c = world_close(w, 30000);
    world_settle(w);
    ck_assert_int_eq(c->err, KP_OK);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(r[i]->report.err, KP_OK);
    ck_assert_int_eq(kb_log_end(world_cluster(w), "t", 0), 10);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-072: a key keeps its partition though nobody leads that one. */
START_TEST(a_key_stays_where_its_leader_is_gone)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 4,
        .settings = WORLD_SETTINGS(FAST, "metadata.max.age.ms", "1000")});
    struct kb_cluster *c = world_cluster(w);
    int32_t partition = (-790332482 & 0x7fffffff) % 4;
    int32_t leader = kb_leader(c, "t", partition);
    struct world_what what = {.partition = -1,
                              .key = "foobar",
                              .flags = WORLD_FUTURE | WORLD_CALLBACK};
    struct world_record *r;

    kb_node_stop(c, leader, true, world_now_ns(w));
    world_run_ms(w, 5000);
    ck_assert_int_eq(kb_leader(c, "t", partition), -1);
    r = world_send_what(w, &what);
    world_run_ms(w, 5000);
    ck_assert(!r->reported);
    kb_node_start(c, leader, KB_KEEP_STATE, world_now_ns(w));
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_eq(r->report.partition, partition);
    world_check(w);
    world_end(w);
}
END_TEST

static void restart(struct world *w, struct rng *rng)
{
    struct kb_cluster *c = world_cluster(w);
    int32_t node = 1 + (int32_t)kp__rng_below(rng, 5);

    kb_node_stop(c, node, kp__rng_below(rng, 2) != 0, world_now_ns(w));
    world_run_ms(w, kp__rng_below(rng, 300));
    kb_node_start(c, node, KB_KEEP_STATE, world_now_ns(w));
    world_run_ms(w, kp__rng_below(rng, 300));
}

/* N4: five brokers restart fifty times, and some tell what was true a while
 * ago, or nobody; each partition is written to again soon after. */
START_TEST(after_restarts_the_leaders_are_found)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 5,
        .partitions = 10,
        .replication = 3,
        .seed = (uint64_t)_i,
        .settings = WORLD_SETTINGS(FAST, "metadata.max.age.ms", "1000")});
    struct world_record *r[10];
    struct rng rng;

    kp__rng_seed(&rng, (uint64_t)_i);
    ck_assert(kb_set(world_cluster(w), "metadata.delay.ms", "100"));
    for (int i = 0; i < 50; i++) {
        if (i % 7 == 0)
            (void)world_rule(w, "api=metadata count=2 no_brokers");
        (void)world_send(w, (int32_t)kp__rng_below(&rng, 10));
        restart(w, &rng);
    }
    world_rule_remove(w, -1);
    world_run_ms(w, 5000);
    for (int32_t i = 0; i < 10; i++)
        r[i] = world_send(w, i);
    world_run_ms(w, 100);
    for (int32_t i = 0; i < 10; i++)
        ck_assert_int_eq(r[i]->report.err, KP_OK);
    for (uint32_t i = 0; i < world_record_count(w); i++)
        ck_assert(world_record(w, i)->reported);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *user_reports_topics_suite(void)
{
    Suite *s = suite_create("user_reports_topics");
    TCase *t = tcase_create("user_reports_topics");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_missing_topic_holds_nobody_else);
    tcase_add_test(t, a_hundred_sends_to_a_missing_topic_wait_once);
    tcase_add_test(t, a_wrong_name_is_asked_about_ever_less_often);
    tcase_add_test(t, a_partition_just_added_is_waited_for);
    tcase_add_loop_test(t, a_topic_that_stays_in_trouble_is_told_of, 0,
                        TROUBLES);
    tcase_add_test(t, metadata_that_fails_is_counted);
    tcase_add_test(t, refused_topics_leave_the_others_alone);
    tcase_add_loop_test(t, a_topic_is_not_idle_while_a_record_waits, 0, 2);
    tcase_add_test(t, the_first_record_to_a_topic_being_made);
    tcase_add_loop_test(t, metadata_that_fails_at_first_loses_no_record, 0, 5);
    tcase_add_test(t, a_key_stays_where_its_leader_is_gone);
    tcase_add_loop_test(t, after_restarts_the_leaders_are_found, 0, 5);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(user_reports_topics_suite)
