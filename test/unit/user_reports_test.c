/* SPDX-License-Identifier: BSD-2-Clause */
/* What users of producers have reported, replayed against a whole client and
 * cluster under a stopped clock.  The ids are those of ../USER_REPORTS.md. */
#include "test/unit/user_reports.h"

/* UR-012: answers that come just before and just after the deadline. */
START_TEST(answers_around_the_deadline)
{
    struct world *w = begin_with(WORLD_SETTINGS(
        FAST, "delivery.timeout.ms", "200", "request.timeout.ms", "190"));

    for (int ms = 190; ms <= 210; ms++)
        for (int i = 0; i < 5; i++) {
            struct world_record *r;

            (void)rule(w, "api=produce count=1 answer_ms=%d", ms);
            r = world_send(w, 0);
            world_settle(w);
            ck_assert_uint_eq(r->callbacks, 1);
            ck_assert_int_le(r->reported_ns - r->returned_ns, 200 * MS);
            ck_assert_int_ge(r->reported_ns - r->returned_ns, 190 * MS);
            world_run_ms(w, 300); /* late ones change nothing */
            ck_assert_uint_eq(r->callbacks, 1);
            world_rule_remove(w, -1);
        }
    ck_assert(metric(w, "requests-in-flight") == 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-021: senders that wait keep the queue younger than the deadline. */
START_TEST(overload_slows_senders_and_expires_nothing)
{
    struct world *w = begin_with(
        WORLD_SETTINGS(FAST, "buffer.memory", "100000", "batch.size", "4000",
                       "delivery.timeout.ms", "2000", "request.timeout.ms",
                       "1000", "max.block.ms", "600000"));
    struct world_record *r;

    (void)world_rule(w, "api=produce count=-1 process_ms=20");
    r = world_send_many(w, 0, 3000, 1000);
    world_settle(w);
    for (uint32_t i = 0; i < 3000; i++)
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK, KP_STORED_YES,
                     WORLD_ANY_OFFSET);
    ck_assert_int_ge(world_now_ms(w), 15000); /* an overload it was */
    ck_assert(metric(w, "record-queue-time-max") < 1000);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-026, C8: everything is cut for five seconds of steady traffic; the requests
 * do not multiply. */
START_TEST(an_outage_makes_no_storm)
{
    struct world *w = begin_with(WORLD_SETTINGS(FAST));
    int64_t connects, metadata, produce;

    (void)world_send(w, 0);
    world_settle(w);
    world_link(w, 1)->refuses = true;
    world_cut(w, 1, true);
    connects = kb_connects(world_cluster(w), -1);
    for (int i = 0; i < 5000; i++) {
        (void)world_send_many(w, 0, 1, 100);
        world_run_ms(w, 1);
    }
    ck_assert_int_eq(kb_connects(world_cluster(w), -1), connects);
    metadata = requests(w, API_METADATA);
    produce = requests(w, API_PRODUCE);
    world_link(w, 1)->refuses = false;
    world_settle(w);
    ck_assert_int_le(kb_connects(world_cluster(w), -1) - connects, 4);
    ck_assert_int_le(requests(w, API_METADATA) - metadata, 4);
    /* 5,000 records of some 110 bytes in batches of 16 KiB */
    ck_assert_int_le(requests(w, API_PRODUCE) - produce,
                     5000 * 110 / 16384 + 10);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-036, UR-037: what an expired record says of why. */
START_TEST(an_expired_record_says_what_kept_it)
{
    struct world *w = begin_with(WORLD_SETTINGS(
        FAST, "delivery.timeout.ms", "500", "request.timeout.ms", "400"));
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    world_link(w, 1)->refuses = true;
    world_cut(w, 1, true);
    r = world_send_many(w, 0, 3, 0);
    world_settle(w);
    world_expect(r, KP_ETIMEDOUT, KP_ECONNECT, KP_STORED_NO, -1);
    ck_assert_msg(strstr(r->text, "3 records for t [0], 500 ms old") != NULL,
                  "%s", r->text);
    /* the address of whom it is about, and what became of it */
    ck_assert_msg(strstr(r->text, "10.0.0.1:9092 (id 1)") != NULL &&
                      strstr(r->text, "refused") != NULL,
                  "%s", r->text);
    world_link(w, 1)->refuses = false;
    world_run_ms(w, 1000);
    (void)rule(w, "api=produce count=-1 error=%d", KP_NOT_ENOUGH_REPLICAS);
    r = world_send(w, 0);
    world_settle(w);
    ck_assert_msg(strstr(r->text, "NOT_ENOUGH_REPLICAS") != NULL, "%s",
                  r->text);
    world_rule_remove(w, -1);
    (void)world_rule(w, "api=produce count=-1 answer=none");
    r = world_send(w, 0);
    world_settle(w);
    ck_assert_int_eq(r->report.err, KP_ETIMEDOUT);
    ck_assert_msg(strstr(r->text, "1 record for t [0]") != NULL &&
                      strstr(r->text, "REQUEST_TIMED_OUT") != NULL,
                  "%s", r->text);
    world_end(w);
}
END_TEST

/* UR-036: nothing was wrong with the broker: it asked to be left alone, or had
 * enough to do with what came before. */
START_TEST(an_expired_record_says_what_it_waited_for)
{
    static const char *const rules[] = {"api=produce count=1 throttle_ms=5000",
                                        "api=produce count=2 process_ms=490"};
    static const char *const says[] = {"throttles", "waited for its turn"};
    struct world *w = begin_with(
        WORLD_SETTINGS(FAST, "batch.size", "0", "delivery.timeout.ms", "500",
                       "request.timeout.ms", "499",
                       "max.in.flight.requests.per.connection", "1"));
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, rules[_i]);
    (void)world_send(w, 0);
    world_run_ms(w, 5);
    (void)world_send(w, 0);
    world_run_ms(w, 5);
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_ETIMEDOUT, KP_OK, KP_STORED_NO, -1);
    ck_assert_msg(strstr(r->text, says[_i]) != NULL, "%s", r->text);
    world_end(w);
}
END_TEST

/* UR-041: batches that were never sent count in the time spent in queues. */
START_TEST(what_expires_counts_as_queued)
{
    struct world *w = begin_with(WORLD_SETTINGS(
        FAST, "delivery.timeout.ms", "700", "request.timeout.ms", "400"));

    world_link(w, 1)->refuses = true;
    world_cut(w, 1, true);
    (void)world_send(w, 0);
    world_settle(w);
    ck_assert(metric(w, "record-queue-time-max") >= 700);
    ck_assert(metric(w, "record-error-total") == 1);
    world_end(w);
}
END_TEST

/* UR-057: stored and called timed out until its deadline: nobody gets its
 * numbers, and what is reported of the next one is true. */
START_TEST(numbers_of_what_may_be_stored_are_burnt)
{
    struct world *w = begin_with(WORLD_SETTINGS(
        FAST, "delivery.timeout.ms", "300", "request.timeout.ms", "200"));
    struct world_record *a, *b;

    (void)rule(w, "api=produce count=1 error=%d append", KP_REQUEST_TIMED_OUT);
    (void)world_rule(w, "api=produce skip=1 count=-1 error=19");
    a = world_send(w, 0);
    world_settle(w);
    world_expect(a, KP_ETIMEDOUT, KP_NOT_ENOUGH_REPLICAS, KP_STORED_MAYBE, -1);
    world_rule_remove(w, -1);
    b = world_send(w, 0);
    world_settle(w);
    world_expect(b, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1");
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-101: no zstd to a broker that does not know it. */
START_TEST(no_zstd_below_produce_7)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true,
        .settings = WORLD_SETTINGS(FAST, "compression.type", "zstd")});
    struct world_record *r, *next;

    kb_node_versions(world_cluster(w), 1, 0, 0, 6);
    r = world_send_many(w, 0, 3, 500);
    world_settle(w);
    world_expect(r, KP_UNSUPPORTED_COMPRESSION_TYPE, KP_OK, KP_STORED_NO, -1);
    ck_assert_ptr_nonnull(strstr(r->text, "zstd"));
    ck_assert_uint_eq(world_attempts(w), 0);
    kb_node_versions(world_cluster(w), 1, 0, 0, 7);
    world_cut(w, 1, false);
    next = world_send_many(w, 0, 3, 500);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_eq(world_attempt(w, 0)->header.attributes & 7, 4);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-097: what is spoken is the highest of both, whatever the lowest is said to
 * be. */
START_TEST(the_highest_common_version_is_spoken)
{
    static const int16_t max[] = {3, 5, 7, 9, 12, 13};
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true, .settings = WORLD_SETTINGS(FAST)});

    kb_node_versions(world_cluster(w), 1, 0, 0, max[_i]);
    (void)world_send(w, 0);
    world_settle(w);
    ck_assert_int_eq(world_attempt(w, 0)->version, max[_i]);
    world_check(w);
    world_end(w);
}
END_TEST

/* N1: a broker that has just started knows of no topic for ten seconds. */
START_TEST(a_known_topic_that_brokers_forget_for_a_while)
{
    struct world *w = begin_with(WORLD_SETTINGS(FAST));
    struct world_record *r[20];
    int64_t asked;

    (void)world_send(w, 0);
    world_settle(w);
    asked = requests(w, API_METADATA);
    (void)world_rule(w, "api=metadata topic=t count=-1 error=3");
    (void)world_rule(w, "api=produce count=-1 error=3");
    for (int i = 0; i < 20; i++) {
        r[i] = world_send(w, 0);
        world_run_ms(w, 500);
    }
    ck_assert_int_le(requests(w, API_METADATA) - asked, 10000 / 10);
    world_rule_remove(w, -1);
    world_settle(w);
    for (int i = 0; i < 20; i++)
        world_expect(r[i], KP_OK, KP_OK, KP_STORED_YES, 1 + i);
    world_check(w);
    world_end(w);
}
END_TEST

/* N2: with no deadline worth the name a record waits for its topic's return. */
START_TEST(a_very_long_deadline_is_waited_for)
{
    struct world *w =
        begin_with(WORLD_SETTINGS(FAST, "delivery.timeout.ms", "2147483647"));
    struct world_record *r;

    (void)world_rule(w, "api=metadata topic=t count=-1 error=3");
    (void)world_rule(w, "api=produce count=-1 error=3");
    r = world_send(w, 0);
    world_run_ms(w, 600000);
    ck_assert(!r->reported);
    world_rule_remove(w, -1);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* C8, N11: not the leader, for ten seconds: one attempt and one question a
 * backoff. */
START_TEST(not_the_leader_for_long_is_no_storm)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 20, .settings = WORLD_SETTINGS(FAST)});
    int64_t produce, metadata;

    (void)world_send(w, 0);
    world_settle(w);
    produce = requests(w, API_PRODUCE);
    metadata = requests(w, API_METADATA);
    (void)rule(w, "api=produce count=-1 error=%d", KP_NOT_LEADER_OR_FOLLOWER);
    for (int32_t i = 0; i < 20; i++)
        (void)world_send(w, i);
    world_run_ms(w, 10000);
    /* backoffs of 10, 20, 40, 80, 100, ... less a fifth, for each partition */
    ck_assert_int_le(requests(w, API_PRODUCE) - produce, 20 * (5 + 10000 / 80));
    ck_assert_int_le(requests(w, API_METADATA) - metadata, 5 + 10000 / 80);
    world_rule_remove(w, -1);
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

/* K2: fifty connections, one report a record. */
START_TEST(reconnects_double_no_report)
{
    struct world *w = begin_with(WORLD_SETTINGS(FAST));

    for (int i = 0; i < 50; i++) {
        (void)world_send_many(w, 0, 3, 0);
        world_run_ms(w, i % 7);
        world_cut(w, 1, i % 2 == 0);
    }
    world_settle(w);
    for (uint32_t i = 0; i < world_record_count(w); i++) {
        ck_assert_uint_eq(world_record(w, i)->callbacks, 1);
        ck_assert_int_eq(world_record(w, i)->report.err, KP_OK);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* K7: a flush that ends as the records do, wherever they are when the broker
 * goes: queued, on the wire, in a backoff, half written. */
START_TEST(a_flush_ends_with_the_deadline)
{
    struct world *w = begin_with(WORLD_SETTINGS(
        FAST, "delivery.timeout.ms", "1000", "request.timeout.ms", "400"));
    struct world_call *c;
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    if (_i == 0)
        world_link(w, 1)->refuses = true;
    else if (_i == 1)
        world_link(w, 1)->stall_from = true;
    else if (_i == 2)
        (void)world_rule(w, "api=produce count=-1 error=19");
    else
        world_link(w, 1)->window = 40;
    if (_i == 0)
        world_cut(w, 1, true);
    if (_i == 3)
        world_link(w, 1)->stall_to = true;
    r = world_send(w, 0);
    c = world_flush(w, 1500);
    world_settle(w);
    ck_assert(c->done);
    ck_assert_int_eq(c->err, KP_OK); /* its failure is in its report */
    ck_assert_int_eq(r->report.err, KP_ETIMEDOUT);
    ck_assert_int_eq(c->done_ns - c->called_ns, 1000 * MS);
    world_end(w);
}
END_TEST

/* K14: a batch of five has five offsets. */
START_TEST(each_record_has_its_own_offset)
{
    struct world *w = begin_with(WORLD_SETTINGS("linger.ms", "5"));
    struct world_record *r = world_send_many(w, 0, 5, 0);

    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 1);
    for (uint32_t i = 0; i < 5; i++)
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK, KP_STORED_YES,
                     i);
    world_end(w);
}
END_TEST

/* Q7: one thread that waits for memory again and again: taken in order is
 * stored in order. */
START_TEST(a_nearly_full_buffer_keeps_the_order)
{
    struct world *w = begin_with(
        WORLD_SETTINGS(FAST, "buffer.memory", "40000", "batch.size", "3000"));
    char want[4000] = "";
    size_t at = 0;

    for (int i = 0; i < 300; i++) {
        (void)world_send_many(w, 0, 1, 900);
        while (!world_is_settled(w) &&
               world_record(w, (uint32_t)i)->state == WORLD_WAITING)
            world_run_ms(w, 1);
        at += (size_t)snprintf(want + at, sizeof(want) - at, "%s%d",
                               i == 0 ? "" : " ", i);
    }
    world_settle(w);
    ck_assert_str_eq(world_log(w, "t", 0), want);
    world_check(w);
    world_end(w);
}
END_TEST

/* D10: from one partition to eight in the middle of it, with and without keys,
 * and attempts under way: nothing is stuck, and nothing moves. */
START_TEST(partitions_are_added_while_records_flow)
{
    struct world *w =
        begin_with(WORLD_SETTINGS(FAST, "metadata.max.age.ms", "1000"));
    static const char *const keys[] = {"a", "b", "c", NULL};

    for (int i = 0; i < 400; i++) {
        if (i == 100)
            (void)world_rule(w, "api=produce count=3 error=7 append");
        if (i == 150)
            ck_assert_int_eq(
                kb_topic_grow(world_cluster(w), "t", 8, world_now_ns(w)), 0);
        (void)world_send_what(
            w, &(struct world_what){.partition = -1,
                                    .key = keys[i % 4],
                                    .flags = WORLD_FUTURE | WORLD_CALLBACK});
        world_run_ms(w, 10);
    }
    world_settle(w);
    for (uint32_t i = 0; i < world_record_count(w); i++)
        ck_assert_int_eq(world_record(w, i)->report.err, KP_OK);
    ck_assert(world_record(w, 399)->report.partition >= 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* C5: 320 partitions, ten minutes without a broker, a full buffer. */
START_TEST(after_a_long_outage_all_is_quiet_again)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 320,
        .settings = WORLD_SETTINGS(FAST, "delivery.timeout.ms", "3600000",
                                   "buffer.memory", "10000000")});
    uint64_t turns;

    for (int32_t i = 0; i < 320; i++)
        (void)world_send(w, i);
    world_settle(w);
    world_link(w, 1)->refuses = true;
    world_cut(w, 1, true);
    for (int n = 0; n < 5; n++)
        for (int32_t i = 0; i < 320; i++)
            (void)world_send_many(w, i, 1, 500);
    turns = world_turns(w);
    world_run_ms(w, 600000);
    /* an attempt every 80 to 120 ms, a few turns for each */
    ck_assert_uint_le(world_turns(w) - turns, 600000 / 80 * 8);
    world_link(w, 1)->refuses = false;
    world_settle(w);
    world_run_ms(w, 1000);
    turns = world_turns(w);
    world_run_ms(w, 60000);
    ck_assert_uint_le(world_turns(w) - turns, 10);
    world_check(w);
    world_end(w);
}
END_TEST

/* T2: what a socket did not take goes when it takes more, not later. */
START_TEST(the_rest_goes_when_the_socket_takes_it)
{
    struct world *w = begin_with(WORLD_SETTINGS("linger.ms", "0"));
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    world_link(w, 1)->window = 4096;
    world_link(w, 1)->write_step = 4096;
    r = world_send_many(w, 0, 1, 100000);
    world_settle(w);
    /* 25 windows, each a way there and back of a millisecond */
    ck_assert_int_le(r->reported_ns - r->returned_ns, (25 * 2 + 10) * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* T7, T8: the first record, and one every two seconds, with the defaults. */
START_TEST(a_lonely_record_is_acknowledged_soon)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true, .settings = WORLD_SETTINGS("linger.ms", "5")});

    for (int i = 0; i < 5; i++) {
        struct world_record *r = world_send(w, 0);

        world_settle(w);
        /* first: connect, versions, metadata, a node, an id; 2 ms each */
        ck_assert_int_le(r->reported_ns - r->called_ns,
                         (i == 0 ? 30 : 10) * MS);
        world_run_ms(w, 2000);
    }
    world_end(w);
}
END_TEST

/* N10: twenty batches at one broker when the leader goes to another. */
START_TEST(the_queue_moves_with_the_leader)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .replication = 2,
        .settings = WORLD_SETTINGS(FAST, "batch.size", "0",
                                   "request.timeout.ms", "500")});
    int32_t leader = kb_leader(world_cluster(w), "t", 0);
    struct world_record *r;
    int64_t moved_ns;

    (void)world_send(w, 0);
    world_settle(w);
    world_link(w, leader)->stall_to = true;
    r = world_send_many(w, 0, 20, 0);
    world_run_ms(w, 100);
    kb_node_stop(world_cluster(w), leader, false, world_now_ns(w));
    world_link(w, leader)->stall_to = false;
    world_cut(w, leader, true);
    moved_ns = world_now_ns(w);
    world_settle(w);
    for (uint32_t i = 0; i < 20; i++)
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK, KP_STORED_YES,
                     1 + i);
    ck_assert_int_le(world_now_ns(w) - moved_ns, 1000 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

static void count_losses(struct world *w, void *arg, const kp_log *line)
{
    (void)w;
    if (line->level == KP_LOG_WARN && strcmp(line->component, "produce") == 0 &&
        strstr(line->text, "t [0]: stored at offset 1,") != NULL &&
        strstr(line->text, "below 4 had") != NULL)
        ++*(int *)arg;
}

/* B20, D17: the leader that had it is gone for good, and what it acknowledged
 * with it: the producer goes on, under numbers that are new, and says so once.
 */
START_TEST(an_unclean_election_is_survived)
{
    struct world *w =
        world_begin(&(struct world_options){.nodes = 2,
                                            .replication = 2,
                                            .watches_log = true,
                                            .settings = WORLD_SETTINGS(FAST)});
    struct kb_cluster *c = world_cluster(w);
    int32_t old = kb_leader(c, "t", 0);
    struct world_record *r;
    int told = 0;

    world_on_log(w, count_losses, &told);
    (void)world_send(w, 0);
    world_settle(w);
    kb_follower_stall(c, "t", 0, 3 - old, true, world_now_ns(w));
    world_run_ms(w, 60000); /* it is out of the ISR */
    for (int i = 0; i < 3; i++) {
        (void)world_send(w, 0);
        world_settle(w);
    }
    kb_node_stop(c, old, false, world_now_ns(w));
    ck_assert(kb_leader_move(c, "t", 0, 3 - old, true, world_now_ns(w)));
    ck_assert_str_eq(world_log(w, "t", 0), "0");
    for (int i = 0; i < 3; i++) {
        r = world_send(w, 0);
        world_settle(w);
        world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1 + i);
    }
    ck_assert_str_eq(world_log(w, "t", 0), "0 4 5 6");
    ck_assert_int_eq(told, 1); /* it is not silent */
    world_end(w);
}
END_TEST

static Suite *user_reports_suite(void)
{
    Suite *s = suite_create("user_reports");
    TCase *t = tcase_create("user_reports");

    tcase_add_test(t, answers_around_the_deadline);
    tcase_add_test(t, overload_slows_senders_and_expires_nothing);
    tcase_add_test(t, an_outage_makes_no_storm);
    tcase_add_test(t, an_expired_record_says_what_kept_it);
    tcase_add_loop_test(t, an_expired_record_says_what_it_waited_for, 0, 2);
    tcase_add_test(t, what_expires_counts_as_queued);
    tcase_add_test(t, numbers_of_what_may_be_stored_are_burnt);
    tcase_add_test(t, no_zstd_below_produce_7);
    tcase_add_loop_test(t, the_highest_common_version_is_spoken, 0, 6);
    tcase_add_test(t, a_known_topic_that_brokers_forget_for_a_while);
    tcase_add_test(t, a_very_long_deadline_is_waited_for);
    tcase_add_test(t, not_the_leader_for_long_is_no_storm);
    tcase_add_test(t, reconnects_double_no_report);
    tcase_add_loop_test(t, a_flush_ends_with_the_deadline, 0, 4);
    tcase_add_test(t, each_record_has_its_own_offset);
    tcase_add_test(t, a_nearly_full_buffer_keeps_the_order);
    tcase_add_test(t, partitions_are_added_while_records_flow);
    tcase_add_test(t, after_a_long_outage_all_is_quiet_again);
    tcase_add_test(t, the_rest_goes_when_the_socket_takes_it);
    tcase_add_test(t, a_lonely_record_is_acknowledged_soon);
    tcase_add_test(t, the_queue_moves_with_the_leader);
    tcase_add_test(t, an_unclean_election_is_survived);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(user_reports_suite)
