/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose turn it is: which partitions a request carries when it has room for
 * one, when a retry may skip its backoff, what a nearly expired or a split
 * batch still gets, and brokers that have nothing to do. */
#include <stdio.h>
#include <string.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define MS KP_NS_PER_MS

static const struct world_attempt *at(struct world *w, size_t i)
{
    return world_attempt(w, i);
}

static void warm_up(struct world *w, int32_t partitions)
{
    for (int32_t i = 0; i < partitions; i++)
        (void)world_send(w, i);
    world_settle(w);
}

static int64_t gap_ns(struct world *w, size_t i)
{
    return at(w, i)->at_ns - at(w, i - 1)->at_ns;
}

/* -- requests with room for one batch -- */

/* The partitions that `node` got since attempt `first`, in their order. */
static const char *turns_of(struct world *w, int32_t node, size_t first)
{
    static char out[200];
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = first; i < world_attempts(w) && n < sizeof(out) - 8; i++)
        if (at(w, i)->node == node)
            n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%d",
                                  n > 0 ? " " : "", (int)at(w, i)->partition);
    return out;
}

/* A1, A2, A3: two brokers with two partitions each.  Each request has one
 * batch; the first partition is filled anew while its first batch is on the
 * way, and still the second one is next, and only then the first again. */
START_TEST(one_partition_of_each_broker_a_request)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 4,
        .latency_ns = 10 * MS,
        .settings =
            WORLD_SETTINGS("linger.ms", "0", "max.request.size", "1500",
                           "max.in.flight.requests.per.connection", "1")});
    int32_t node[4];
    uint32_t requests;
    size_t first;

    for (int32_t i = 0; i < 4; i++)
        node[i] = kb_leader(world_cluster(w), "t", i);
    ck_assert_int_eq(node[0], node[2]);
    ck_assert_int_eq(node[1], node[3]);
    ck_assert_int_ne(node[0], node[1]);
    warm_up(w, 4);
    first = world_attempts(w);
    requests = world_requests(w);
    for (int32_t i = 0; i < 4; i++)
        (void)world_send_many(w, i, 1, 1000);
    world_run_until_attempts(w, first + 2);
    ck_assert_int_ne(at(w, first)->node, at(w, first + 1)->node);
    (void)world_send_many(w, 0, 1, 1000);
    (void)world_send_many(w, 1, 1, 1000);
    world_settle(w);
    ck_assert_str_eq(turns_of(w, node[0], first), "0 2 0");
    ck_assert_str_eq(turns_of(w, node[1], first), "1 3 1");
    ck_assert_uint_eq(world_requests(w) - requests, 6);
    world_check(w);
    world_end(w);
}
END_TEST

/* A47: a broker that leads nothing we send to is asked for nothing. */
START_TEST(a_broker_without_partitions_gets_no_request)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 3, .settings = WORLD_SETTINGS("linger.ms", "0")});
    int32_t leader = kb_leader(world_cluster(w), "t", 0);
    struct world_record *r = world_send_many(w, 0, 20, 100);

    world_settle(w);
    for (uint32_t i = 0; i < 20; i++)
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK, KP_STORED_YES,
                     (int64_t)i);
    for (int32_t n = 1; n <= 3; n++)
        if (n != leader)
            ck_assert_int_eq(kb_requests(world_cluster(w), n, 0), 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* S12: one request in flight at most, and it is a Metadata request that takes
 * its time: the producer id is asked for after it, and the record goes out. */
START_TEST(an_id_is_got_behind_a_slow_metadata_request)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true,
        .settings = WORLD_SETTINGS(
            "linger.ms", "0", "max.in.flight.requests.per.connection", "1")});
    struct world_record *r;

    (void)world_rule(w, "api=metadata count=2 answer_ms=500");
    r = world_send(w, 0);
    world_run_ms(w, 400);
    ck_assert(!r->reported);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_eq(kb_requests(world_cluster(w), -1, 22), 1);
    ck_assert_int_ge(at(w, 0)->header.producer_id, 0);
    world_check(w);
    world_end(w);
}
END_TEST

static bool has_id(struct world *w, void *arg)
{
    (void)arg;
    return w->p->io->producer_id >= 0;
}

static uint64_t connects(const struct world *w)
{
    uint64_t n = 0;

    for (int i = 1; i <= WORLD_NODES_MAX; i++)
        n += w->connects[i];
    return n;
}

static bool has_connected(struct world *w, void *arg)
{
    return connects(w) > *(const uint64_t *)arg;
}

static void set_silent(struct world *w, bool on)
{
    for (int32_t node = 1; node <= 3; node++)
        world_link(w, node)->silent = on;
}

/* Nothing but the id is asked for, no connection is left, and the broker that is
 * tried first says nothing: after a second another one is tried. */
START_TEST(an_id_is_asked_for_elsewhere_after_a_second)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 3,
        .partitions = -1,
        .settings =
            WORLD_SETTINGS("retry.backoff.ms", "5000", "retry.backoff.max.ms",
                           "5000", "connections.max.idle.ms", "1000")});
    uint64_t before;

    (void)world_rule(w, "api=init-producer-id count=1 error=14");
    world_look_twice(w, true);
    world_run_ms(w, 3000);
    ck_assert(!has_id(w, NULL));
    before = connects(w);
    set_silent(w, true);
    ck_assert(world_run_until(w, has_connected, &before, 10000));
    set_silent(w, false);
    ck_assert(world_run_until(w, has_id, NULL, 2000));
    world_end(w);
}
END_TEST

#ifdef KP_FAILMALLOC
/* Whichever allocation fails, once, and though no backoff wakes us. */
START_TEST(an_id_is_got_though_memory_was_short)
{
    long nth = 0, used;

    do {
        struct world *w = world_begin(&(struct world_options){
            .partitions = -1,
            .settings =
                WORLD_SETTINGS("retry.backoff.ms", "0",
                               "max.in.flight.requests.per.connection", "1")});
        bool got;

        world_fail_memory(w, ++nth, 0);
        got = world_run_until(w, has_id, NULL, 5000);
        used = world_allocations(w);
        world_fail_memory(w, -1, 0);
        ck_assert_msg(got, "allocation %ld", nth);
        world_end(w);
    } while (used >= nth);
    ck_assert_int_gt(nth, 20);
}
END_TEST

/* Whichever allocation fails, once: at most the one batch that it was for waits
 * for its backoff.  Each batch needs a request of its own here, and they go in
 * turns that read nothing. */
START_TEST(a_request_without_memory_delays_no_other)
{
    long nth = 0, used;

    do {
        struct world *w = world_begin(&(struct world_options){
            .partitions = 3,
            .settings = WORLD_SETTINGS(
                "linger.ms", "0", "max.request.size", "1500", "acks", "0",
                "enable.idempotence", "false",
                "max.in.flight.requests.per.connection", "1",
                "retry.backoff.ms", "10000", "retry.backoff.max.ms", "10000")});
        int in_time = 0;

        warm_up(w, 3);
        used = world_allocations(w);
        world_fail_memory(w, ++nth, 0);
        for (int i = 0; i < 3; i++)
            (void)world_send_many(w, i, 1, 1000);
        world_run_ms(w, 5000);
        used = world_allocations(w) - used;
        world_fail_memory(w, -1, 0);
        for (uint32_t i = world_record_count(w) - 3; i < world_record_count(w);
             i++)
            in_time += world_record(w, i)->reported ? 1 : 0;
        ck_assert_msg(in_time >= 2, "allocation %ld: %d", nth, in_time);
        world_settle(w);
        world_check(w);
        world_end(w);
    } while (used >= nth);
    ck_assert_int_gt(nth, 5);
}
END_TEST
#endif

/* -- sockets that take no more -- */

/* A topic is asked for while the only socket takes a part of a large request,
 * which nobody will answer: it is, as soon as the rest is gone. */
START_TEST(a_topic_is_asked_for_as_soon_as_the_socket_is_free)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "acks", "0",
                                   "enable.idempotence", "false")});
    struct world_record *r;

    ck_assert_int_eq(
        kb_topic_create(world_cluster(w), "u", 1, 1, world_now_ns(w)), 0);
    warm_up(w, 1);
    world_look_twice(w, true);
    world_link(w, 1)->window = 1000;
    (void)world_send_many(w, 0, 1, 20000);
    world_run_ms(w, 1);
    r = world_send_what(
        w, &(struct world_what){.topic = "u", .flags = WORLD_FUTURE});
    ck_assert_int_eq(r->state, WORLD_WAITING);
    world_settle(w);
    ck_assert_int_ge(r->returned_ns - r->called_ns, 10 * MS);
    ck_assert_int_le(r->returned_ns - r->called_ns, 100 * MS);
    world_end(w);
}
END_TEST

/* The connection of a broker that has asked for time is closed as idle, though a
 * record waits for it, and another cannot even be tried then: it is later. */
START_TEST(a_broker_that_cannot_be_tried_is_tried_again)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "connections.max.idle.ms",
                                   "1000")});
    struct world_record *r;

    (void)world_rule(w, "api=produce count=1 throttle_ms=60000");
    warm_up(w, 1);
    world_look_twice(w, true);
    r = world_send(w, 0);
    world_run_ms(w, 500);
    ck_assert(!r->reported);
    world_link(w, 1)->unreachable = true;
    world_run_ms(w, 2500);
    ck_assert(!r->reported);
    world_link(w, 1)->unreachable = false;
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_le(r->reported_ns - r->called_ns, 5000 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- senders that have the lock -- */

/* One try for a lock after another is the one that finds it taken.  The record
 * goes when its linger is over all the same: nothing else would wake the I/O
 * thread for it. */
START_TEST(a_lock_that_is_taken_delays_nothing)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "20")});
    bool found = true;
    long tries = 0;

    warm_up(w, 1);
    while (found) {
        size_t first = world_attempts(w);
        int64_t sent_ns;

        ck_assert_int_lt(++tries, 100);
        (void)world_send(w, 0);
        sent_ns = world_now_ns(w);
        world_find_taken(w, tries, 0);
        world_settle(w);
        found = world_found_taken(w);
        world_find_taken(w, 0, 0);
        ck_assert_uint_eq(world_attempts(w), first + 1);
        ck_assert_int_eq(at(w, first)->at_ns - sent_ns, (20 + 1) * MS);
    }
    /* when the linger begins, when it is over, for the request, and after it */
    ck_assert_int_ge(tries, 5);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- backoff and leaders -- */

static struct world *begin_with_leaders(const char *backoff_ms)
{
    return world_begin(&(struct world_options){
        .nodes = 3,
        .partitions = 3,
        .replication = 3,
        .no_wait = true,
        .settings =
            WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms", backoff_ms,
                           "retry.backoff.max.ms", backoff_ms)});
}

static int32_t move_leader(struct world *w, int32_t partition)
{
    int32_t old = kb_leader(world_cluster(w), "t", partition);

    for (int32_t n = 1; n <= 3; n++)
        if (n != old && kb_leader_move(world_cluster(w), "t", partition, n,
                                       false, world_now_ns(w)))
            return n;
    ck_abort_msg("nobody else can lead");
    return -1;
}

/* A43, A44, A45, A46, S67, P11: news of a newer leader ends a backoff, once:
 * further failures there wait for theirs, and the next news end the wait again,
 * whatever number of attempts it was. */
START_TEST(each_new_leader_skips_one_backoff)
{
    static const int64_t wait_ms[] = {100, 200, 400, 800};
    struct world *w = world_begin(&(struct world_options){
        .nodes = 3,
        .partitions = 2,
        .replication = 3,
        .settings =
            WORLD_SETTINGS("linger.ms", "0", "retry.backoff.max.ms", "10000")});
    struct world_record *r;
    int32_t second;
    size_t n;

    warm_up(w, 2);
    world_run_ms(w, 10000);
    n = world_attempts(w);
    second = move_leader(w, 0);
    (void)world_rule(w, "api=produce partition=0 skip=1 count=5 error=19");
    r = world_send(w, 0);
    world_run_until_attempts(w, n + 6);
    /* the old leader names the new one, which is asked at once */
    ck_assert_int_lt(gap_ns(w, n + 1), 10 * MS);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(at(w, n + 1 + i)->node, second);
        ck_assert_int_ge(gap_ns(w, n + 2 + i), wait_ms[i] * MS * 8 / 10);
        ck_assert_int_le(gap_ns(w, n + 2 + i),
                         wait_ms[i] * MS * 12 / 10 + 4 * MS);
    }
    /* 1.6 s are to be waited now; another one is elected, and a record of the
     * other partition, which moves too, has metadata asked for */
    world_run_ms(w, 10);
    ck_assert_int_ne(move_leader(w, 0), second);
    (void)move_leader(w, 1);
    (void)world_send(w, 1);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_lt(r->reported_ns - at(w, n + 5)->at_ns, 1000 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* A19: brokers that tell no leader epochs: another node alone is no proof of
 * news, and the backoff stands. */
START_TEST(without_epochs_the_backoff_stands)
{
    struct world *w = begin_with_leaders("1000");
    struct world_record *r;
    int32_t new;
    size_t n;

    for (int32_t i = 1; i <= 3; i++) {
        kb_node_versions(world_cluster(w), i, 0, 3, 9);
        kb_node_versions(world_cluster(w), i, 3, 0, 6);
    }
    warm_up(w, 1);
    world_run_ms(w, 10000); /* metadata may be asked for at once */
    n = world_attempts(w);
    new = move_leader(w, 0);
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_uint_eq(world_attempts(w), n + 2);
    ck_assert_int_eq(at(w, n + 1)->node, new);
    ck_assert_int_ge(gap_ns(w, n + 1), 800 * MS);
    ck_assert_int_le(gap_ns(w, n + 1), 1210 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* S69: two of three partitions are told 6 and nobody says where else: metadata
 * is asked for, and as long as it has nothing new both wait for the backoff;
 * the third one is stored. */
START_TEST(without_news_both_wait)
{
    struct world *w = begin_with_leaders("1000");
    struct world_record *r[3];
    int64_t asked;
    size_t n, first_of[3] = {0};

    warm_up(w, 3);
    world_run_ms(w, 10000);
    n = world_attempts(w);
    asked = kb_requests(world_cluster(w), -1, 3);
    (void)world_rule(w, "api=produce partition=0 count=1 error=6");
    (void)world_rule(w, "api=produce partition=1 count=1 error=6");
    for (int i = 0; i < 3; i++)
        r[i] = world_send(w, i);
    world_run_ms(w, 500);
    world_expect(r[2], KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert(!r[0]->reported && !r[1]->reported);
    ck_assert_int_gt(kb_requests(world_cluster(w), -1, 3), asked);
    ck_assert_uint_eq(world_attempts(w), n + 3);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), n + 5);
    for (size_t i = n; i < n + 5; i++) {
        size_t p = (size_t)at(w, i)->partition;

        if (first_of[p] == 0)
            first_of[p] = i;
        else
            ck_assert_int_ge(at(w, i)->at_ns - at(w, first_of[p])->at_ns,
                             800 * MS);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* S70: both are told the new leaders with the error: they go there at once, the
 * third is stored where it was, and metadata is asked for all the same. */
START_TEST(with_hints_both_move_at_once)
{
    struct world *w = begin_with_leaders("5000");
    struct world_record *r[3];
    int32_t new[2];
    int64_t asked;
    size_t n;

    warm_up(w, 3);
    n = world_attempts(w);
    for (int i = 0; i < 2; i++)
        new[i] = move_leader(w, i);
    asked = kb_requests(world_cluster(w), -1, 3);
    for (int i = 0; i < 3; i++)
        r[i] = world_send(w, i);
    world_run_ms(w, 100);
    for (int i = 0; i < 3; i++)
        world_expect(r[i], KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_uint_eq(world_attempts(w), n + 5);
    for (size_t i = n + 3; i < n + 5; i++)
        ck_assert_int_eq(at(w, i)->node, new[at(w, i)->partition]);
    world_run_ms(w, 10000);
    ck_assert_int_gt(kb_requests(world_cluster(w), -1, 3), asked);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- late, but ready -- */

/* A37: a few milliseconds before its deadline a batch still goes out. */
START_TEST(a_batch_near_its_deadline_still_goes)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(
            "linger.ms", "0", "delivery.timeout.ms", "3000",
            "request.timeout.ms", "1000", "reconnect.backoff.ms", "1",
            "reconnect.backoff.max.ms", "1", "retry.backoff.ms", "1")});
    struct world_record *r;

    warm_up(w, 1);
    world_link(w, 1)->refuses = true;
    world_cut(w, -1, false);
    world_run_ms(w, 5);
    r = world_send(w, 0);
    world_run_ms(w, 2975);
    ck_assert(!r->reported);
    ck_assert_uint_eq(world_attempts(w), 1);
    world_link(w, 1)->refuses = false;
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_gt(r->reported_ns - r->returned_ns, 2975 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* A34: the pieces of a split batch were never tried, so they wait for no
 * backoff. */
START_TEST(pieces_of_a_split_go_at_once)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms", "5000",
                                   "retry.backoff.max.ms", "5000")});
    struct world_record *r;

    ck_assert(kb_topic_set(world_cluster(w), "t", "max.message.bytes", "650"));
    r = world_send_many(w, 0, 10, 100);
    world_run_ms(w, 50);
    for (uint32_t i = 0; i < 10; i++)
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK, KP_STORED_YES,
                     (int64_t)i);
    ck_assert_uint_eq(world_attempts(w), 3);
    ck_assert_int_lt(gap_ns(w, 1), 5 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- records without a partition -- */

static struct world_record *send_any(struct world *w, int32_t size)
{
    return world_send_what(
        w, &(struct world_what){.partition = -1,
                                .size = size,
                                .flags = WORLD_FUTURE | WORLD_CALLBACK});
}

/* A42: two thirds of a batch, again and again, each sent when its linger is
 * over: none is cut by a change of partitions. */
START_TEST(fractions_of_batches_stay_whole)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 3,
        .settings = WORLD_SETTINGS("linger.ms", "5", "batch.size", "1200")});
    size_t n;

    warm_up(w, 3);
    n = world_attempts(w);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 8; i++)
            (void)send_any(w, 90);
        world_run_ms(w, 20);
        ck_assert_uint_eq(world_attempts(w), n + (size_t)round + 1);
        ck_assert_uint_gt(at(w, n + (size_t)round)->size, 1200 / 2);
        ck_assert_uint_lt(at(w, n + (size_t)round)->size, 1200);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* U5: no partition has a leader: one is chosen all the same, the send does not
 * wait, and the record goes when there is a leader. */
START_TEST(without_any_leader_one_is_chosen_anyway)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = _i,
        .settings =
            WORLD_SETTINGS("linger.ms", "0", "metadata.max.age.ms", "500")});
    struct world_record *r;

    warm_up(w, _i);
    for (int32_t p = 0; p < _i; p++)
        ck_assert(kb_leader_move(world_cluster(w), "t", p, -1, true,
                                 world_now_ns(w)));
    world_run_ms(w, 2000);
    r = send_any(w, 100);
    ck_assert_int_eq(r->state, WORLD_TAKEN);
    ck_assert_int_eq(r->returned_ns, r->called_ns);
    world_run_ms(w, 2000);
    ck_assert(!r->reported);
    for (int32_t p = 0; p < _i; p++)
        ck_assert(
            kb_leader_move(world_cluster(w), "t", p, 1, true, world_now_ns(w)));
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_lt(r->report.partition, _i);
    world_check(w);
    world_end(w);
}
END_TEST

/* U3, from the first record on: records that waited for the topic are sent the
 * moment it is known, and none to a partition without a leader, nor, if there is
 * a choice, to a leader in another rack. */
START_TEST(the_first_records_choose_as_well)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 4,
        .no_wait = true,
        .settings = WORLD_SETTINGS("linger.ms", "0", "batch.size", "500",
                                   "client.rack", "b", "partitioner.rack.aware",
                                   _i == 0 ? "false" : "true")});

    kb_node_rack(world_cluster(w), 1, "a");
    kb_node_rack(world_cluster(w), 2, "b");
    for (int32_t p = 0; _i == 0 && p < 3; p++)
        ck_assert(kb_leader_move(world_cluster(w), "t", p, -1, true,
                                 world_now_ns(w)));
    for (int i = 0; i < 60; i++)
        ck_assert_int_eq(send_any(w, 100)->state, WORLD_WAITING);
    world_run_ms(w, 1000);
    for (uint32_t i = 0; i < 60; i++) {
        const struct world_record *r = world_record(w, i);

        ck_assert(r->reported);
        ck_assert_int_eq(r->report.err, KP_OK);
        if (_i == 0)
            ck_assert_int_eq(r->report.partition, 3);
        else
            ck_assert_int_eq(
                kb_leader(world_cluster(w), "t", r->report.partition), 2);
    }
    world_check(w);
    world_end(w);
}
END_TEST

static uint64_t weight_sum(struct world *w, int32_t i)
{
    struct topic *t = kp__topics_find(w->p->topics, "t", 1);
    struct topic_weights *all = kp__topic_view(t)->weights;

    ck_assert_int_gt(atomic_load(&all->count), i);
    ck_assert_int_eq(atomic_load(&all->entries[i].partition), i);
    return atomic_load(&all->entries[i].sum);
}

/* A40, U6: the shares are those that the queues' lengths give: the longest one
 * and one more, less its own. */
START_TEST(shares_are_those_of_the_lengths)
{
    static const struct {
        int32_t count;
        int lengths[5];
        uint32_t shares[5];
    } cases[] = {{3, {1, 7, 2}, {7, 1, 6}},
                 {5, {5, 0, 3, 0, 1}, {1, 6, 3, 6, 5}}};
    struct world *w = world_begin(&(struct world_options){
        .partitions = cases[_i].count,
        .settings = WORLD_SETTINGS("linger.ms", "0", "batch.size", "0")});
    uint32_t sum = 0;

    warm_up(w, cases[_i].count);
    world_run_ms(w, 50);
    world_link(w, 1)->stall_to = true;
    for (int32_t p = 0; p < cases[_i].count; p++)
        for (int i = 0; i < cases[_i].lengths[p]; i++)
            (void)world_send_many(w, p, 1, 10);
    world_run_ms(w, 50);
    for (int32_t p = 0; p < cases[_i].count; p++) {
        sum += cases[_i].shares[p];
        ck_assert_uint_eq(weight_sum(w, p), sum);
    }
    world_link(w, 1)->stall_to = false;
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

/* S10: a broker that had nothing to send is not a slow one: after ten idle
 * seconds, many times the availability timeout, all partitions are chosen. */
START_TEST(an_idle_broker_is_not_taken_for_stuck)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .settings =
            WORLD_SETTINGS("linger.ms", "0", "batch.size", "0",
                           "partitioner.availability.timeout.ms", "200")});
    bool seen[2] = {false};

    warm_up(w, 2);
    world_run_ms(w, 10000);
    for (int i = 0; i < 40; i++)
        (void)send_any(w, 10);
    world_settle(w);
    for (uint32_t i = 2; i < world_record_count(w); i++)
        seen[world_record(w, i)->report.partition] = true;
    ck_assert(seen[0] && seen[1]);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- throttling -- */

struct wanted {
    const char *name;
    double value;
};

static void look(void *arg, const kp_metric *m)
{
    struct wanted *want = arg;

    if (strcmp(m->group, "producer-metrics") == 0 &&
        strcmp(m->name, want->name) == 0)
        want->value = m->value;
}

static double metric(struct world *w, const char *name)
{
    struct wanted want = {name, -1};

    kp_metrics(world_producer(w), look, &want);
    return want.value;
}

/* S2: the times that brokers ask for, with whatever answer: the largest, and
 * the mean over all answers. */
START_TEST(throttle_times_are_measured)
{
    struct world *w = world_begin(&(struct world_options){
        .no_wait = true, .settings = WORLD_SETTINGS("linger.ms", "0")});
    double total;

    (void)world_rule(w, "api=api-versions count=1 throttle_ms=400");
    (void)world_rule(w, "api=produce count=1 throttle_ms=100");
    (void)world_rule(w, "api=produce skip=1 count=1 throttle_ms=200");
    (void)world_rule(w, "api=produce skip=2 count=1 throttle_ms=300");
    for (int i = 0; i < 3; i++) {
        (void)world_send(w, 0);
        world_settle(w);
    }
    ck_assert_uint_eq(world_attempts(w), 3);
    total =
        metric(w, "produce-throttle-time-avg") * metric(w, "response-total");
    ck_assert_double_eq_tol(metric(w, "produce-throttle-time-max"), 400, 1e-6);
    ck_assert_double_eq_tol(total, 400 + 100 + 200 + 300, 1e-3);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *sender_turns_suite(void)
{
    Suite *s = suite_create("sender_turns");
    TCase *t = tcase_create("sender_turns");

    tcase_add_test(t, one_partition_of_each_broker_a_request);
    tcase_add_test(t, a_broker_without_partitions_gets_no_request);
    tcase_add_test(t, an_id_is_got_behind_a_slow_metadata_request);
    tcase_add_test(t, an_id_is_asked_for_elsewhere_after_a_second);
#ifdef KP_FAILMALLOC
    tcase_add_test(t, an_id_is_got_though_memory_was_short);
    tcase_add_test(t, a_request_without_memory_delays_no_other);
#endif
    tcase_add_test(t, a_topic_is_asked_for_as_soon_as_the_socket_is_free);
    tcase_add_test(t, a_broker_that_cannot_be_tried_is_tried_again);
    tcase_add_test(t, a_lock_that_is_taken_delays_nothing);
    tcase_add_test(t, each_new_leader_skips_one_backoff);
    tcase_add_test(t, without_epochs_the_backoff_stands);
    tcase_add_test(t, without_news_both_wait);
    tcase_add_test(t, with_hints_both_move_at_once);
    tcase_add_test(t, a_batch_near_its_deadline_still_goes);
    tcase_add_test(t, pieces_of_a_split_go_at_once);
    tcase_add_test(t, fractions_of_batches_stay_whole);
    tcase_add_loop_test(t, without_any_leader_one_is_chosen_anyway, 1, 3);
    tcase_add_loop_test(t, the_first_records_choose_as_well, 0, 2);
    tcase_add_loop_test(t, shares_are_those_of_the_lengths, 0, 2);
    tcase_add_test(t, throttle_times_are_measured);
    tcase_add_test(t, an_idle_broker_is_not_taken_for_stuck);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(sender_turns_suite)
