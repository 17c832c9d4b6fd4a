/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker model as a cluster: leaders, replicas, what waits for them,
 * what is kept and lost when nodes stop, are cut off, pause and come back. */
#include <string.h>

#include "lib/base/rand.h"
#include "test/broker/probe.h"
#include "test/support/main.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define VERSION 12

static struct kb_cluster *c;
static struct kb_conn *k[4]; /* by node id */

static void reconnect(int node)
{
    k[node] = kb_connect(c, node, NULL, kb_now_ns(c));
}

static void open_cluster(int64_t replication_delay_ns)
{
    struct kb_config g;

    kb_config_default(&g);
    g.nodes = 3;
    g.replication_delay_ns = replication_delay_ns;
    c = kb_create(&g);
    ck_assert_int_eq(kb_topic_create(c, "t", 3, 3, 0), 0);
    for (int i = 1; i <= 3; i++)
        reconnect(i);
}

static void setup(void)
{
    open_cluster(0);
}

static void setup_slow(void)
{
    open_cluster(10 * MS);
}

static void teardown(void)
{
    kb_destroy(c);
}

static void tick(int64_t ms)
{
    kb_advance(c, kb_now_ns(c) + ms * MS);
}

static void send_to(int node, int16_t acks, int32_t sequence)
{
    struct kb_probe_batch b;

    kb_probe_batch_default(&b);
    b.producer_id = 5;
    b.epoch = 0;
    b.sequence = sequence;
    kb_probe_send_batch(k[node], VERSION, acks, 1000, "t", 0, &b);
}

static struct kb_probe_verdict taken(int node)
{
    return kb_probe_take_verdict(k[node], VERSION);
}

/* Sends and expects an answer at once. */
static int16_t put(int node, int16_t acks, int32_t sequence)
{
    struct kb_probe_verdict v;

    send_to(node, acks, sequence);
    v = taken(node);
    ck_assert_msg(v.answered, "no answer");
    return v.error;
}

static int stored(int node)
{
    struct kb_log *l = kb_log_open_replica(c, "t", 0, node);
    struct kb_record r;
    int n = 0;

    while (kb_log_next(l, &r))
        n++;
    kb_log_close(l);
    return n;
}

START_TEST(leaders_go_round)
{
    for (int p = 0; p < 3; p++) {
        ck_assert_int_eq(kb_leader(c, "t", p), p + 1);
        ck_assert_int_eq(kb_leader_epoch(c, "t", p), 0);
        for (int n = 1; n <= 3; n++)
            ck_assert(kb_in_sync(c, "t", p, n));
    }
    ck_assert_int_eq(kb_leader(c, "t", 3), -1);
    ck_assert_int_eq(kb_leader(c, "no", 0), -1);
}
END_TEST

START_TEST(all_replicas_get_it)
{
    ck_assert_int_eq(put(1, -1, 0), 0);
    for (int n = 1; n <= 3; n++)
        ck_assert_int_eq(stored(n), 1);
    ck_assert_int_eq(kb_high_watermark(c, "t", 0), 1);
}
END_TEST

START_TEST(the_wrong_node_names_the_right_one)
{
    struct kb_probe_batch b;
    struct kb_probe_verdict v;

    send_to(2, -1, 0);
    v = taken(2);
    ck_assert_int_eq(v.error, 6);
    ck_assert_int_eq(v.leader, 1);
    ck_assert_int_eq(v.leader_epoch, 0);
    ck_assert_int_eq(v.endpoint, 1);
    kb_probe_batch_default(&b);
    kb_probe_send_batch(k[2], 9, -1, 100, "t", 0, &b); /* before KIP-951 */
    v = kb_probe_take_verdict(k[2], 9);
    ck_assert_int_eq(v.error, 6);
    ck_assert_int_eq(v.leader, -1);
    ck_assert_int_eq(v.endpoint, -1);
}
END_TEST

START_TEST(acks_all_waits_for_the_replicas)
{
    send_to(1, -1, 0);
    ck_assert_int_eq(kb_parked(c), 1);
    ck_assert(!taken(1).answered);
    ck_assert(!kb_conn_wants_input(k[1]));
    tick(9);
    ck_assert(!taken(1).answered);
    tick(1);
    ck_assert_int_eq(kb_parked(c), 0);
    ck_assert_int_eq(taken(1).error, 0);
    ck_assert(kb_conn_wants_input(k[1]));
    ck_assert_int_eq(put(1, 1, 1), 0); /* acks=1 does not */
}
END_TEST

START_TEST(one_request_at_a_time)
{
    send_to(1, -1, 0);
    send_to(1, -1, 1);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 1); /* the second is not read */
    tick(10);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 2);
    ck_assert_int_eq(taken(1).base_offset, 0);
    ck_assert(!taken(1).answered);
    tick(10);
    ck_assert_int_eq(taken(1).base_offset, 1);
}
END_TEST

START_TEST(a_duplicate_waits_too)
{
    send_to(1, 1, 0);
    ck_assert(taken(1).answered);
    send_to(1, -1, 0);
    ck_assert(!taken(1).answered);
    tick(10);
    ck_assert_int_eq(taken(1).base_offset, 0);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 1);
}
END_TEST

START_TEST(time_out_after_append)
{
    kb_follower_stall(c, "t", 0, 2, true, 0);
    send_to(1, -1, 0);
    tick(999);
    ck_assert(!taken(1).answered);
    tick(1);
    ck_assert_int_eq(taken(1).error, 7);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 1);
    ck_assert_int_eq(kb_high_watermark(c, "t", 0), 0);
    kb_follower_stall(c, "t", 0, 2, false, kb_now_ns(c));
    ck_assert_int_eq(kb_high_watermark(c, "t", 0), 1);
}
END_TEST

START_TEST(answers_6_after_appending)
{
    struct kb_probe_verdict v;

    kb_follower_stall(c, "t", 0, 2, true, 0);
    send_to(1, -1, 0);
    ck_assert(kb_leader_move(c, "t", 0, 3, false, kb_now_ns(c)));
    v = taken(1);
    ck_assert_int_eq(v.error, 6);
    ck_assert_int_eq(v.leader, 3);
    ck_assert_int_eq(v.leader_epoch, 1);
    /* And it is in the new leader's log: a retry is a duplicate. */
    ck_assert_int_eq(stored(3), 1);
    kb_follower_stall(c, "t", 0, 2, false, kb_now_ns(c));
    send_to(3, -1, 0);
    v = taken(3);
    ck_assert_int_eq(v.error, 0);
    ck_assert_int_eq(v.base_offset, 0);
    ck_assert_int_eq(stored(3), 1);
}
END_TEST

START_TEST(answers_3_when_the_topic_goes)
{
    kb_follower_stall(c, "t", 0, 2, true, 0);
    send_to(1, -1, 0);
    ck_assert_int_eq(kb_topic_delete(c, "t", 0), 0);
    ck_assert_int_eq(taken(1).error, 3);
}
END_TEST

START_TEST(answers_56_when_the_disk_goes)
{
    kb_follower_stall(c, "t", 0, 2, true, 0);
    send_to(1, -1, 0);
    kb_storage_fail(c, "t", 0, 1, true, 0);
    ck_assert_int_eq(taken(1).error, 56);
    ck_assert_int_eq(put(1, -1, 1), 56);
    kb_storage_fail(c, "t", 0, 1, false, 0);
    ck_assert_int_eq(put(1, 1, 1), 0);
}
END_TEST

START_TEST(not_enough_replicas)
{
    ck_assert(kb_topic_set(c, "t", "min.insync.replicas", "2"));
    kb_node_stop(c, 2, false, 0);
    ck_assert_int_eq(put(1, -1, 0), 0);
    kb_node_stop(c, 3, false, 0);
    ck_assert_int_eq(put(1, -1, 1), 19);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 1); /* before the append */
    ck_assert_int_eq(put(1, 1, 1), 0);
    kb_node_start(c, 2, KB_KEEP_STATE, 0);
    ck_assert(kb_in_sync(c, "t", 0, 2));
    ck_assert_int_eq(put(1, -1, 2), 0);
}
END_TEST

START_TEST(not_enough_replicas_after_append)
{
    ck_assert(kb_topic_set(c, "t", "min.insync.replicas", "2"));
    ck_assert(kb_set(c, "replica.lag.ms", "500"));
    kb_follower_stall(c, "t", 0, 2, true, 0);
    kb_follower_stall(c, "t", 0, 3, true, 0);
    send_to(1, -1, 0);
    tick(499);
    ck_assert(!taken(1).answered);
    tick(1);
    ck_assert_int_eq(taken(1).error, 20);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 1);
    ck_assert(!kb_in_sync(c, "t", 0, 2));
    /* They come back when they have caught up. */
    kb_follower_stall(c, "t", 0, 2, false, kb_now_ns(c));
    ck_assert(kb_in_sync(c, "t", 0, 2));
}
END_TEST

START_TEST(about_to_be_in_sync_counts)
{
    ck_assert(kb_set(c, "metadata.delay.ms", "50"));
    ck_assert(kb_set(c, "replica.lag.ms", "20"));
    kb_follower_stall(c, "t", 0, 3, true, 0);
    ck_assert_int_eq(put(1, 1, 0), 0);
    tick(20);
    ck_assert(!kb_in_sync(c, "t", 0, 3));
    tick(50); /* the leader knows */
    kb_follower_stall(c, "t", 0, 3, false, kb_now_ns(c));
    ck_assert(kb_in_sync(c, "t", 0, 3)); /* and of this not yet */
    kb_follower_stall(c, "t", 0, 3, true, kb_now_ns(c));
    send_to(1, -1, 1);
    ck_assert(!taken(1).answered);
    ck_assert_int_eq(kb_high_watermark(c, "t", 0), 1);
    kb_follower_stall(c, "t", 0, 3, false, kb_now_ns(c));
    ck_assert_int_eq(taken(1).error, 0);
}
END_TEST

START_TEST(min_isr_is_capped_at_the_replicas)
{
    struct kb_probe_batch b;

    ck_assert_int_eq(kb_topic_create(c, "one", 1, 1, 0), 0);
    ck_assert(kb_topic_set(c, "one", "min.insync.replicas", "2"));
    kb_probe_batch_default(&b);
    kb_probe_send_batch(k[1], VERSION, -1, 100, "one", 0, &b);
    ck_assert_int_eq(taken(1).error, 0);
}
END_TEST

START_TEST(a_stopped_leader_is_replaced)
{
    ck_assert_int_eq(put(1, -1, 0), 0);
    kb_node_stop(c, 1, false, 0);
    ck_assert_int_eq(kb_conn_output(k[1])->kind, KB_OUT_RESET);
    ck_assert_ptr_null(kb_connect(c, 1, NULL, 0));
    ck_assert_int_eq(kb_leader(c, "t", 0), 2);
    ck_assert_int_eq(kb_leader_epoch(c, "t", 0), 1);
    ck_assert(!kb_in_sync(c, "t", 0, 1));
    ck_assert_int_eq(put(2, -1, 0), 0); /* known there: a duplicate */
    ck_assert_int_eq(put(2, -1, 1), 0);
    ck_assert_int_eq(stored(2), 2);
    kb_node_start(c, 1, KB_KEEP_STATE, 0);
    ck_assert_int_eq(stored(1), 2);
    ck_assert(kb_in_sync(c, "t", 0, 1));
    ck_assert_int_eq(kb_leader(c, "t", 0), 2); /* nobody moves it back */
}
END_TEST

START_TEST(noticed_after_the_session_time_out)
{
    ck_assert(kb_set(c, "session.timeout.ms", "100"));
    kb_node_stop(c, 1, false, 0);
    ck_assert_int_eq(kb_leader(c, "t", 0), 1);
    tick(99);
    ck_assert_int_eq(put(2, -1, 0), 6);
    tick(1);
    ck_assert_int_eq(kb_leader(c, "t", 0), 2);
    ck_assert_int_eq(put(2, -1, 0), 0);
}
END_TEST

START_TEST(a_clean_stop_moves_leaders_first)
{
    ck_assert(kb_set(c, "session.timeout.ms", "100000"));
    kb_follower_stall(c, "t", 0, 3, true, 0);
    send_to(1, -1, 0);
    kb_node_stop(c, 1, true, 0);
    ck_assert_int_eq(kb_leader(c, "t", 0), 2);
    ck_assert_int_eq(taken(1).error, 6); /* still said before it goes */
    ck_assert_int_eq(kb_conn_output(k[1])->kind, KB_OUT_RESET);
    ck_assert_int_eq(stored(2), 1);
}
END_TEST

START_TEST(unreplicated_records_are_lost_with_acks_1)
{
    ck_assert_int_eq(put(1, 1, 0), 0); /* the followers fetch in 10 ms */
    kb_node_stop(c, 1, false, kb_now_ns(c));
    tick(1);
    ck_assert_int_eq(kb_leader(c, "t", 0), 2);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 0);
    send_to(2, -1, 5); /* no state there: any sequence */
    tick(10);
    ck_assert_int_eq(taken(2).error, 0);
    kb_node_start(c, 1, KB_KEEP_STATE, kb_now_ns(c));
    tick(10);
    /* The old leader has thrown its own away. */
    ck_assert_int_eq(stored(1), 1);
    ck_assert_int_eq(stored(2), 1);
    reconnect(1);
    ck_assert(kb_leader_move(c, "t", 0, 1, false, kb_now_ns(c)));
    tick(10);
    ck_assert_int_eq(put(1, 1, 0), 45); /* its producer state is 2's now */
    ck_assert_int_eq(put(1, 1, 6), 0);
}
END_TEST

START_TEST(the_last_replica_of_the_isr)
{
    kb_node_stop(c, 2, false, 0);
    kb_node_stop(c, 3, false, 0);
    ck_assert_int_eq(put(1, -1, 0), 0);
    kb_node_stop(c, 1, false, 0);
    kb_node_start(c, 2, KB_KEEP_STATE, 0);
    ck_assert_int_eq(kb_leader(c, "t", 0), -1); /* 2 was not in sync */
    kb_node_start(c, 1, KB_KEEP_STATE, 0);
    ck_assert_int_eq(kb_leader(c, "t", 0), 1);
    ck_assert_int_eq(stored(1), 1);
    ck_assert_int_eq(stored(2), 1);
    ck_assert(kb_in_sync(c, "t", 0, 2));
}
END_TEST

START_TEST(unclean_elections_lose)
{
    kb_node_stop(c, 2, false, 0);
    kb_node_stop(c, 3, false, 0);
    ck_assert_int_eq(put(1, -1, 0), 0);
    kb_node_stop(c, 1, false, 0);
    kb_node_start(c, 2, KB_KEEP_STATE, 0);
    ck_assert(!kb_leader_move(c, "t", 0, 2, false, 0));
    ck_assert(kb_leader_move(c, "t", 0, 2, true, 0));
    reconnect(2);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 0);
    ck_assert_int_eq(put(2, -1, 3), 0);
    kb_node_start(c, 1, KB_KEEP_STATE, 0);
    ck_assert_int_eq(stored(1), 1);
    ck_assert_int_eq(kb_high_watermark(c, "t", 0), 1);
}
END_TEST

START_TEST(a_restart_can_lose_producer_state)
{
    ck_assert_int_eq(kb_topic_create(c, "one", 1, 1, 0), 0);
    ck_assert_int_eq(put(1, -1, 0), 0);
    kb_node_stop(c, 1, false, 0);
    kb_node_stop(c, 2, false, 0);
    kb_node_stop(c, 3, false, 0);
    kb_node_start(c, 3, _i == 0 ? KB_KEEP_STATE : KB_LOSE_PRODUCERS, 0);
    ck_assert_int_eq(kb_leader(c, "t", 0), 3); /* the last of the ISR */
    reconnect(3);
    ck_assert_int_eq(put(3, 1, 8), _i == 0 ? 45 : 0);
    ck_assert_int_eq(stored(3), _i == 0 ? 1 : 2);
}
END_TEST

START_TEST(an_isolated_leader_lies)
{
    ck_assert_int_eq(put(1, -1, 0), 0);
    kb_node_isolate(c, 1, true, 0);
    ck_assert_int_eq(kb_leader(c, "t", 0), 2);
    /* It does not know: acks=1 is answered, acks=all waits in vain. */
    ck_assert_int_eq(put(1, 1, 1), 0);
    ck_assert_int_eq(stored(1), 2);
    send_to(1, -1, 2);
    /* The others go on: the same offsets, other records. */
    ck_assert_int_eq(put(2, -1, 1), 0);
    ck_assert_int_eq(put(2, -1, 2), 0);
    ck_assert_int_eq(put(2, -1, 3), 0);
    ck_assert(!taken(1).answered);
    tick(100);
    kb_node_isolate(c, 1, false, kb_now_ns(c));
    ck_assert_int_eq(taken(1).error, 6);
    ck_assert_int_eq(stored(1), 4);
    ck_assert_int_eq(kb_high_watermark(c, "t", 0), 4);
    ck_assert_int_eq(put(1, -1, 4), 6);
    for (int n = 1; n <= 3; n++)
        ck_assert_int_eq(stored(n), 4);
}
END_TEST

START_TEST(an_isolated_leader_times_out)
{
    kb_node_isolate(c, 1, true, 0);
    send_to(1, -1, 0);
    tick(1000);
    ck_assert_int_eq(taken(1).error, 7);
}
END_TEST

START_TEST(a_paused_node_does_nothing)
{
    kb_node_pause(c, 1, true, 0);
    send_to(1, -1, 0);
    ck_assert(!taken(1).answered);
    ck_assert(!kb_conn_wants_input(k[1]));
    ck_assert_int_eq(kb_leader(c, "t", 0), 2);
    ck_assert_int_eq(put(2, -1, 0), 0);
    kb_node_pause(c, 1, false, 0);
    /* It took it while it still believed to lead, and learnt better. */
    ck_assert_int_eq(taken(1).error, 6);
    ck_assert_int_eq(stored(1), 1);
    ck_assert_int_eq(kb_high_watermark(c, "t", 0), 1);
}
END_TEST

START_TEST(a_pause_outlasts_a_time_out)
{
    kb_follower_stall(c, "t", 0, 2, true, 0);
    ck_assert(kb_set(c, "session.timeout.ms", "90000"));
    send_to(1, -1, 0);
    kb_node_pause(c, 1, true, 0);
    tick(5000);
    ck_assert(!taken(1).answered);
    kb_node_pause(c, 1, false, kb_now_ns(c));
    ck_assert_int_eq(taken(1).error, 7);
}
END_TEST

START_TEST(metadata_takes_its_time)
{
    ck_assert(kb_set(c, "metadata.delay.ms", "50"));
    ck_assert(kb_leader_move(c, "t", 0, 2, false, 0));
    ck_assert_int_eq(kb_leader(c, "t", 0), 2);
    ck_assert_int_eq(put(1, 1, 0), 0); /* nobody has told it */
    ck_assert_int_eq(put(2, 1, 0), 6);
    tick(50);
    ck_assert_int_eq(put(1, 1, 1), 6);
    ck_assert_int_eq(put(2, 1, 0), 0);
}
END_TEST

START_TEST(closed_connections_are_still_served)
{
    bool process = _i == 1;

    send_to(1, -1, 0); /* parked: in the log already */
    send_to(1, -1, 1); /* waits behind it */
    kb_conn_close(k[1], process, kb_now_ns(c));
    ck_assert_int_eq(kb_open_connections(c, 1), 0);
    tick(20);
    ck_assert_int_eq(kb_log_end(c, "t", 0), process ? 2 : 1);
    ck_assert_int_eq(kb_parked(c), 0);
    reconnect(1);
    send_to(1, 1, 1);
    ck_assert_int_eq(taken(1).error, 0);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 2); /* known, or new */
}
END_TEST

START_TEST(a_zombie_request_comes_late)
{
    struct kb_rule r;

    ck_assert_ptr_null(kb_rule_parse("api=produce process_ms=500", &r));
    kb_rule_add(c, &r);
    send_to(1, -1, 0);
    kb_conn_close(k[1], true, kb_now_ns(c));
    tick(499);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 0);
    tick(1);
    ck_assert_int_eq(kb_log_end(c, "t", 0), 1);
}
END_TEST

START_TEST(topics_grow_and_are_recreated)
{
    struct uuid before, after;
    struct kb_log *l;
    struct kb_record r;

    ck_assert_int_eq(kb_topic_grow(c, "t", 2, 0), 37);
    ck_assert_int_eq(kb_topic_grow(c, "t", 5, 0), 0);
    ck_assert_int_eq(kb_topic_partitions(c, "t"), 5);
    ck_assert_int_eq(kb_leader(c, "t", 4), 2);
    ck_assert_int_eq(put(1, -1, 0), 0);
    ck_assert(kb_topic_id(c, "t", &before));
    ck_assert_int_eq(kb_topic_delete(c, "t", 0), 0);
    ck_assert_int_eq(kb_topic_delete(c, "t", 0), 3);
    ck_assert(!kb_topic_id(c, "t", &after));
    ck_assert_int_eq(put(1, -1, 1), 3);
    ck_assert_int_eq(kb_topic_create(c, "t", 1, 3, 0), 0);
    ck_assert(kb_topic_id(c, "t", &after));
    ck_assert_mem_ne(&before, &after, sizeof(before));
    ck_assert_int_eq(kb_log_end(c, "t", 0), 0);
    l = kb_log_open_id(c, before, 0); /* the truth about the old one stays */
    ck_assert(kb_log_next(l, &r));
    kb_log_close(l);
    ck_assert_int_eq(kb_topic_create(c, "t", 1, 1, 0), 36);
    ck_assert_int_eq(kb_topic_create(c, "u", 0, 1, 0), 37);
    ck_assert_int_eq(kb_topic_create(c, "u", 1, 4, 0), 38);
    ck_assert_int_eq(kb_topic_create(c, "..", 1, 1, 0), 17);
    ck_assert_int_eq(kb_topic_create(c, "a/b", 1, 1, 0), 17);
}
END_TEST

START_TEST(replicas_are_moved)
{
    int32_t to[] = {3, 2};

    ck_assert_int_eq(put(1, -1, 0), 0);
    ck_assert(kb_reassign(c, "t", 0, to, 2, 0));
    ck_assert_int_eq(kb_leader(c, "t", 0), 3);
    ck_assert(!kb_in_sync(c, "t", 0, 1));
    ck_assert_int_eq(put(1, -1, 1), 6);
    ck_assert_int_eq(put(3, -1, 0), 0); /* a duplicate there */
    ck_assert_int_eq(put(3, -1, 1), 0);
    ck_assert_int_eq(stored(3), 2);
    ck_assert_int_eq(stored(2), 2);
    ck_assert_int_eq(stored(1), 1);
}
END_TEST

START_TEST(no_leader)
{
    struct kb_probe_verdict v;

    ck_assert(kb_leader_move(c, "t", 0, -1, false, 0));
    send_to(1, -1, 0);
    v = taken(1);
    ck_assert_int_eq(v.error, 6);
    ck_assert_int_eq(v.leader, -1);
    ck_assert_int_eq(v.endpoint, -1);
    ck_assert(kb_leader_move(c, "t", 0, 1, false, 0));
    ck_assert_int_eq(put(1, -1, 0), 0);
}
END_TEST

/* Whatever happens, what acks=all acknowledged is in the log of whoever
 * leads, in order and once; and a run repeats exactly. */
struct story {
    uint64_t hash;
    int acknowledged;
};

static void shake(struct rng *rng)
{
    int node = 1 + (int)kp__rng_below(rng, 3);
    int64_t now = kb_now_ns(c);

    switch (kp__rng_below(rng, 12)) {
    case 0:
        kb_node_stop(c, node, kp__rng_below(rng, 2) == 0, now);
        break;
    case 1:
    case 2:
        kb_node_start(c, node, KB_KEEP_STATE, now);
        break;
    case 3:
        kb_node_isolate(c, node, true, now);
        break;
    case 4:
    case 5:
        kb_node_isolate(c, node, false, now);
        break;
    case 6:
        kb_node_pause(c, node, true, now);
        break;
    case 7:
        kb_node_pause(c, node, false, now);
        break;
    case 8:
        (void)kb_leader_move(c, "t", 0, node, false, now);
        break;
    case 9:
        kb_follower_stall(c, "t", 0, node, true, now);
        break;
    default:
        kb_follower_stall(c, "t", 0, node, false, now);
        break;
    }
}

static bool send_record(struct kb_conn *on, int32_t n)
{
    struct kb_probe_batch b;

    kb_probe_batch_default(&b);
    b.producer_id = 5;
    b.epoch = 0;
    b.sequence = n;
    b.timestamp_ms += n;
    kb_probe_send_batch(on, VERSION, -1, 100, "t", 0, &b);
    return true;
}

/* Once: false, it got no yes. */
static bool attempt(struct rng *rng, int32_t n)
{
    int32_t leader = kb_leader(c, "t", 0);
    struct kb_probe_verdict v = {0};
    struct kb_conn *on;
    int wait;

    if (kp__rng_below(rng, 4) == 0)
        leader = 1 + (int32_t)kp__rng_below(rng, 3); /* stale metadata */
    on = kb_connect(c, leader, NULL, kb_now_ns(c));
    if (on == NULL)
        return false;
    send_record(on, n);
    for (wait = 0; wait < 30 && !v.answered; wait++) {
        struct kb_output *o = kb_conn_output(on);

        if (o != NULL && o->kind != KB_OUT_BYTES)
            break;
        v = kb_probe_take_verdict(on, VERSION);
        if (kp__rng_below(rng, 20) == 0)
            shake(rng);
        tick(5);
    }
    kb_conn_close(on, kp__rng_below(rng, 2) == 0, kb_now_ns(c));
    return v.answered && v.error == 0;
}

static void heal(void)
{
    for (int n = 1; n <= 3; n++) {
        kb_node_start(c, n, KB_KEEP_STATE, kb_now_ns(c));
        kb_node_isolate(c, n, false, kb_now_ns(c));
        kb_node_pause(c, n, false, kb_now_ns(c));
        kb_follower_stall(c, "t", 0, n, false, kb_now_ns(c));
    }
    tick(5000);
}

static void check_log(struct story *s, int32_t last)
{
    struct kb_log *l = kb_log_open(c, "t", 0);
    struct kb_record r;
    int32_t n = 0;

    while (kb_log_next(l, &r)) {
        ck_assert_int_eq(r.sequence, n);
        ck_assert_int_eq(r.offset, n);
        ck_assert_int_eq(r.timestamp_ms, INT64_C(1700000000000) + n);
        n++;
    }
    kb_log_close(l);
    ck_assert_int_ge(n, s->acknowledged);
    ck_assert_int_le(n, last + 1);
    ck_assert_int_eq(kb_high_watermark(c, "t", 0), n);
    for (int node = 1; node <= 3; node++)
        ck_assert_int_eq(stored(node), n);
}

static void live_through(uint64_t seed, struct story *s)
{
    struct rng rng;
    int32_t n = 0;
    int tries;

    open_cluster(seed % 3 == 0 ? 0 : 7 * MS);
    ck_assert(kb_set(c, "session.timeout.ms", seed % 2 == 0 ? "0" : "40"));
    ck_assert(kb_set(c, "metadata.delay.ms", seed % 5 == 0 ? "15" : "0"));
    ck_assert(kb_set(c, "replica.lag.ms", "60"));
    kp__rng_seed(&rng, seed);
    for (tries = 0; tries < 300; tries++)
        if (attempt(&rng, n)) {
            s->acknowledged = ++n;
        } else if (kp__rng_below(&rng, 3) == 0) {
            shake(&rng);
        }
    heal();
    check_log(s, n);
    s->hash = (uint64_t)kb_now_ns(c) ^ (uint64_t)kb_leader_epoch(c, "t", 0) ^
              (uint64_t)kb_requests(c, -1, -1) << 32 ^
              (uint64_t)s->acknowledged;
    kb_destroy(c);
}

START_TEST(acknowledged_records_survive)
{
    struct story once = {0, 0}, again = {0, 0};
    int total = 0;

    for (uint64_t seed = (uint64_t)_i * 50; seed < (uint64_t)_i * 50 + 50;
         seed++) {
        once.acknowledged = again.acknowledged = 0;
        live_through(seed, &once);
        live_through(seed, &again);
        ck_assert_uint_eq(once.hash, again.hash);
        total += once.acknowledged;
    }
    ck_assert_int_gt(total, 50 * 20); /* it was not all refusals */
}
END_TEST

static Suite *broker_cluster_suite(void)
{
    Suite *s = suite_create("broker_cluster");
    TCase *t = tcase_create("cluster");
    TCase *slow = tcase_create("slow replicas");
    TCase *chaos = tcase_create("chaos");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, leaders_go_round);
    tcase_add_test(t, all_replicas_get_it);
    tcase_add_test(t, the_wrong_node_names_the_right_one);
    tcase_add_test(t, time_out_after_append);
    tcase_add_test(t, answers_6_after_appending);
    tcase_add_test(t, answers_3_when_the_topic_goes);
    tcase_add_test(t, answers_56_when_the_disk_goes);
    tcase_add_test(t, not_enough_replicas);
    tcase_add_test(t, not_enough_replicas_after_append);
    tcase_add_test(t, about_to_be_in_sync_counts);
    tcase_add_test(t, min_isr_is_capped_at_the_replicas);
    tcase_add_test(t, a_stopped_leader_is_replaced);
    tcase_add_test(t, noticed_after_the_session_time_out);
    tcase_add_test(t, a_clean_stop_moves_leaders_first);
    tcase_add_test(t, the_last_replica_of_the_isr);
    tcase_add_test(t, unclean_elections_lose);
    tcase_add_loop_test(t, a_restart_can_lose_producer_state, 0, 2);
    tcase_add_test(t, an_isolated_leader_lies);
    tcase_add_test(t, an_isolated_leader_times_out);
    tcase_add_test(t, a_paused_node_does_nothing);
    tcase_add_test(t, a_pause_outlasts_a_time_out);
    tcase_add_test(t, metadata_takes_its_time);
    tcase_add_test(t, a_zombie_request_comes_late);
    tcase_add_test(t, topics_grow_and_are_recreated);
    tcase_add_test(t, replicas_are_moved);
    tcase_add_test(t, no_leader);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(slow, setup_slow, teardown);
    tcase_add_test(slow, acks_all_waits_for_the_replicas);
    tcase_add_test(slow, one_request_at_a_time);
    tcase_add_test(slow, a_duplicate_waits_too);
    tcase_add_test(slow, unreplicated_records_are_lost_with_acks_1);
    tcase_add_loop_test(slow, closed_connections_are_still_served, 0, 2);
    suite_add_tcase(s, slow);
    tcase_add_loop_test(chaos, acknowledged_records_survive, 0, 10);
    suite_add_tcase(s, chaos);
    return s;
}

KP_TEST_MAIN(broker_cluster_suite)
