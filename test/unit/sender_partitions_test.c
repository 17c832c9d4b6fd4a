/* SPDX-License-Identifier: BSD-2-Clause */
/* Where records without a partition go: to leaders that answer, in whole
 * batches; new partitions; topics long unused; connections long idle. */
#include <stdio.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define MS KP_NS_PER_MS

static struct world_record *send_any(struct world *w, int32_t size)
{
    return world_send_what(
        w, &(struct world_what){.partition = -1,
                                .size = size,
                                .flags = WORLD_FUTURE | WORLD_CALLBACK});
}

/* A38, A39, U1: one partition for a batch's worth, then another; all of them in
 * the long run. */
START_TEST(a_batch_to_each_in_turn)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 4,
        .settings = WORLD_SETTINGS("linger.ms", "0", "batch.size", "1000")});
    size_t n[4] = {0};

    for (int i = 0; i < 2000; i++) {
        (void)send_any(w, 100);
        if (i % 10 == 9)
            world_run_ms(w, 1);
    }
    world_settle(w);
    for (uint32_t i = 0; i < 2000; i++)
        n[world_record(w, i)->report.partition]++;
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_gt(n[i], 250);
        ck_assert_uint_lt(n[i], 1000);
    }
    /* far fewer batches than records */
    ck_assert_uint_lt(world_attempts(w), 600);
    world_check(w);
    world_end(w);
}
END_TEST

/* U3, U4: partitions without a leader are not chosen. */
START_TEST(not_to_partitions_without_a_leader)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 4,
        .settings = WORLD_SETTINGS("linger.ms", "0", "batch.size", "500",
                                   "metadata.max.age.ms", "1000")});
    int32_t dead = kb_leader(world_cluster(w), "t", 0);
    struct world_record *r;

    world_run_ms(w, 100);
    kb_node_stop(world_cluster(w), dead, true, world_now_ns(w));
    world_run_ms(w, 3000); /* metadata is fresh */
    for (int i = 0; i < 300; i++) {
        r = send_any(w, 100);
        world_run_ms(w, 5);
        ck_assert(r->reported);
        ck_assert_int_eq(r->report.err, KP_OK);
        ck_assert_int_ne(kb_leader(world_cluster(w), "t",
                                   r->report.partition),
                         -1);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* A41: a leader that has had data ready for longer than
 * partitioner.availability.timeout.ms gets no more. */
START_TEST(not_to_a_leader_that_is_stuck)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .settings = WORLD_SETTINGS(
            "linger.ms", "0", "batch.size", "500",
            "partitioner.availability.timeout.ms", "200",
            "max.in.flight.requests.per.connection", "1")});
    int32_t stuck = kb_leader(world_cluster(w), "t", 0);
    struct world_record *r;
    int bad = 0;

    (void)world_send(w, 0);
    (void)world_send(w, 1);
    world_settle(w);
    world_link(w, stuck)->stall_from = true;
    for (int i = 0; i < 100; i++) {
        (void)send_any(w, 100);
        world_run_ms(w, 5);
    }
    for (int i = 0; i < 200; i++) {
        r = send_any(w, 100);
        world_run_ms(w, 5);
        if (!r->reported)
            bad++;
    }
    ck_assert_int_eq(bad, 0);
    world_link(w, stuck)->stall_from = false;
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

/* KIP-1123: leaders in our own rack, as long as there are any. */
START_TEST(leaders_in_our_rack)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 4,
        .replication = 2,
        .no_wait = true,
        .settings = WORLD_SETTINGS(
            "linger.ms", "0", "batch.size", "500", "client.rack", "b",
            "partitioner.rack.aware", "true", "metadata.max.age.ms", "2000")});

    kb_node_rack(world_cluster(w), 1, "a");
    kb_node_rack(world_cluster(w), 2, "b");
    (void)send_any(w, 10);
    world_settle(w);
    world_run_ms(w, 3000);
    for (int i = 0; i < 100; i++) {
        struct world_record *r = send_any(w, 100);

        world_run_ms(w, 15);
        ck_assert_int_eq(r->report.err, KP_OK);
        ck_assert_int_eq(kb_leader(world_cluster(w), "t",
                                   r->report.partition),
                         2);
    }
    for (int32_t p = 0; p < 4; p++)
        (void)kb_leader_move(world_cluster(w), "t", p, 1, false,
                             world_now_ns(w));
    world_run_ms(w, 5000);
    for (int i = 0; i < 20; i++)
        (void)send_any(w, 100);
    world_settle(w);
    ck_assert_int_eq(
        world_record(w, world_record_count(w) - 1)->report.err, KP_OK);
    world_check(w);
    world_end(w);
}
END_TEST

/* A40: the longer the queue, the fewer. */
START_TEST(fewer_to_long_queues)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .settings = WORLD_SETTINGS("linger.ms", "0", "batch.size", "500")});
    int32_t slow = kb_leader(world_cluster(w), "t", 0);
    size_t n[2] = {0};

    (void)world_send(w, 0);
    (void)world_send(w, 1);
    world_settle(w);
    world_link(w, slow)->to_ns = 100 * MS;
    for (int i = 0; i < 3000; i++) {
        (void)send_any(w, 100);
        if (i % 5 == 4)
            world_run_ms(w, 1);
    }
    world_settle(w);
    for (uint32_t i = 2; i < world_record_count(w); i++)
        n[world_record(w, i)->report.partition]++;
    ck_assert_uint_gt(n[1], 2 * n[0]);
    world_check(w);
    world_end(w);
}
END_TEST

/* New partitions get their share when metadata has told. */
START_TEST(new_partitions)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "batch.size", "500",
                                   "metadata.max.age.ms", "5000")});
    bool seen[3] = {false};

    (void)send_any(w, 100);
    world_settle(w);
    ck_assert_int_eq(kb_topic_grow(world_cluster(w), "t", 3, world_now_ns(w)),
                     0);
    world_run_ms(w, 6000);
    for (int i = 0; i < 100; i++) {
        struct world_record *r = send_any(w, 100);

        world_settle(w);
        ck_assert_int_eq(r->report.err, KP_OK);
        seen[r->report.partition] = true;
    }
    ck_assert(seen[0] && seen[1] && seen[2]);
    world_check(w);
    world_end(w);
}
END_TEST

/* S8: a topic not used for metadata.max.idle.ms is not asked about any more; a
 * send to it works all the same, though its leader has moved. */
START_TEST(a_topic_long_unused)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .replication = 2,
        .settings = WORLD_SETTINGS("linger.ms", "0", "metadata.max.idle.ms",
                                   "5000", "metadata.max.age.ms", "10000")});
    int32_t leader = kb_leader(world_cluster(w), "t", 0);
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    world_run_ms(w, 120000);
    ck_assert(kb_leader_move(world_cluster(w), "t", 0, 3 - leader, false,
                             world_now_ns(w)));
    world_run_ms(w, 30000);
    r = world_send(w, 0);
    world_run_ms(w, 1000);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* N10: an idle connection is closed; the next record opens one, and no error is
 * seen. */
START_TEST(a_connection_long_idle)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "connections.max.idle.ms",
                                   "30000", "retries", "1")});
    struct world_record *r;
    int64_t connects;

    (void)world_send(w, 0);
    world_settle(w);
    world_run_ms(w, 200000);
    ck_assert_int_eq(kb_open_connections(world_cluster(w), 1), 0);
    connects = kb_connects(world_cluster(w), 1);
    r = world_send(w, 0);
    world_run_ms(w, 100);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_uint_eq(world_attempts(w), 2);
    ck_assert_int_ge(kb_connects(world_cluster(w), 1), connects + 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* Several topics in one request; one that is not there does not disturb. */
START_TEST(several_topics)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "5", "max.block.ms", "500")});
    struct world_what what = {.flags = WORLD_FUTURE | WORLD_CALLBACK};
    struct world_record *r[3], *nowhere;
    char name[8];
    uint32_t before;

    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof(name), "a%d", i);
        ck_assert_int_eq(
            kb_topic_create(world_cluster(w), name, 1, 1, world_now_ns(w)),
            0);
        what.topic = name;
        (void)world_send_what(w, &what);
    }
    world_settle(w);
    what.topic = "nowhere";
    nowhere = world_send_what(w, &what);
    before = world_requests(w);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof(name), "a%d", i);
        what.topic = name;
        r[i] = world_send_what(w, &what);
    }
    world_settle(w);
    ck_assert_uint_eq(world_requests(w), before + 1);
    for (int i = 0; i < 3; i++)
        world_expect(r[i], KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_eq(nowhere->refused, KP_EMETADATA);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *sender_partitions_suite(void)
{
    Suite *s = suite_create("sender_partitions");
    TCase *t = tcase_create("sender_partitions");

    tcase_add_test(t, a_batch_to_each_in_turn);
    tcase_add_test(t, not_to_partitions_without_a_leader);
    tcase_add_test(t, not_to_a_leader_that_is_stuck);
    tcase_add_test(t, leaders_in_our_rack);
    tcase_add_test(t, fewer_to_long_queues);
    tcase_add_test(t, new_partitions);
    tcase_add_test(t, a_topic_long_unused);
    tcase_add_test(t, a_connection_long_idle);
    tcase_add_test(t, several_topics);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(sender_partitions_suite)
