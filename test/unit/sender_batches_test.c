/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes into which batch and request, and when: linger, full batches,
 * the size of requests and their rotation, retries and backoff, acks,
 * throttling, and how often the I/O thread wakes. */
#include <stdio.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define MS KP_NS_PER_MS

static const struct world_attempt *at(struct world *w, size_t i)
{
    return world_attempt(w, i);
}

/* One record to each partition, so that every connection is there. */
static void warm_up(struct world *w, int partitions)
{
    for (int i = 0; i < partitions; i++)
        (void)world_send(w, i);
    world_settle(w);
}

/* A6, A11: one batch, and it goes at exactly linger.ms. */
START_TEST(linger_to_the_moment)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "10")});
    struct world_record *r;

    warm_up(w, 1);
    r = world_send(w, 0);
    world_run_ms(w, 4);
    (void)world_send(w, 0);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 2);
    ck_assert_int_eq(at(w, 1)->at_ns - r->called_ns, 11 * MS);
    ck_assert_int_eq(at(w, 1)->header.record_count, 2);
    world_check(w);
    world_end(w);
}
END_TEST

/* So does the head that was kept from sending when younger ones of others began
 * to linger. */
START_TEST(an_older_head_is_company_wherever_it_stood)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 3,
        .settings = WORLD_SETTINGS("linger.ms", "10000", "metadata.max.age.ms",
                                   "1000")});
    struct kb_cluster *c = world_cluster(w);
    struct world_record *first, *kept, *younger;

    ck_assert(kb_leader_move(c, "t", 0, -1, true, world_now_ns(w)));
    (void)world_send(w, 1);
    (void)world_send(w, 2);
    world_settle(w);
    first = world_send(w, 1);
    world_run_ms(w, 4000);
    kept = world_send(w, 0);
    world_run_ms(w, 2000);
    younger = world_send(w, 2);
    world_run_ms(w, 500);
    ck_assert(kb_leader_move(c, "t", 0, 1, true, world_now_ns(w)));
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 5);
    ck_assert_int_eq(kept->reported_ns, first->reported_ns);
    ck_assert_int_lt(first->reported_ns - first->called_ns, 10100 * MS);
    ck_assert_int_ge(younger->reported_ns - younger->called_ns, 10000 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* A14: the earlier of two lingers; and what has lingered for half of its own by
 * then goes with it, in one request, unless senders may still compress it. */
START_TEST(each_partition_lingers_for_itself)
{
    bool younger = _i == 0, codec = _i == 2;
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2,
        .settings = WORLD_SETTINGS("linger.ms", "10", "compression.type",
                                   codec ? "gzip" : "none")});
    struct world_record *a, *b;

    warm_up(w, 2);
    a = world_send(w, 0);
    world_run_ms(w, younger ? 6 : 5);
    b = world_send(w, 1);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 4);
    ck_assert_int_eq(at(w, 2)->at_ns - a->called_ns, 11 * MS);
    ck_assert_int_eq(at(w, 3)->at_ns - b->called_ns,
                     (younger || codec ? 11 : 6) * MS);
    ck_assert_uint_eq(at(w, 3)->request - at(w, 2)->request,
                      younger || codec ? 1 : 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* A7, A8, A15: a record that does not fit sends the full batch at once, in
 * order; the new one lingers. */
START_TEST(a_full_batch_does_not_linger)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "50", "batch.size", "1000")});
    struct world_record *r;

    warm_up(w, 1);
    r = world_send_many(w, 0, 10, 100);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 3);
    ck_assert_int_eq(at(w, 1)->at_ns - r->called_ns, 1 * MS);
    ck_assert_int_eq(at(w, 1)->header.record_count, 8);
    ck_assert_uint_le(at(w, 1)->size, 1000);
    ck_assert_int_eq(at(w, 2)->at_ns - r->called_ns, 51 * MS);
    ck_assert_int_eq(at(w, 2)->header.record_count, 2);
    world_check(w);
    world_end(w);
}
END_TEST

/* A9, A10: larger than batch.size: its own batch, at once. */
START_TEST(a_large_record_is_its_own_batch)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "50", "batch.size", "1000",
                                   "compression.type",
                                   _i == 0 ? "none" : "gzip")});
    struct world_record *r;

    warm_up(w, 1);
    r = world_send_what(
        w, &(struct world_what){.size = 2000,
                                .flags = WORLD_FUTURE | WORLD_RANDOM});
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_eq(at(w, 1)->at_ns - r->called_ns, 1 * MS);
    ck_assert_int_eq(at(w, 1)->header.record_count, 1);
    world_check(w);
    world_end(w);
}
END_TEST

START_TEST(batch_size_0_is_one_record_each)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "50", "batch.size", "0")});

    warm_up(w, 1);
    (void)world_send_many(w, 0, 5, 10);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 6);
    for (size_t i = 0; i < 6; i++)
        ck_assert_int_eq(at(w, i)->header.record_count, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- requests -- */

/* A5: all that is ready for a node goes in one request, a batch of each
 * partition. */
START_TEST(one_request_for_all_partitions_of_a_node)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 20,
        .settings = WORLD_SETTINGS("linger.ms", "5")});
    uint32_t before;

    warm_up(w, 20);
    before = world_requests(w);
    for (int i = 0; i < 20; i++)
        (void)world_send(w, i);
    world_settle(w);
    ck_assert_uint_eq(world_requests(w), before + 2);
    world_check(w);
    world_end(w);
}
END_TEST

/* A2, A3, A12: as many as max.request.size allows, and those left over come
 * first in the next one, even if the first ones are full again. */
START_TEST(requests_rotate)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 4,
        .latency_ns = 10 * MS,
        .settings = WORLD_SETTINGS(
            "linger.ms", "0", "max.request.size", "2500",
            "max.in.flight.requests.per.connection", "1")});
    size_t first;

    warm_up(w, 4);
    first = world_attempts(w);
    for (int i = 0; i < 4; i++)
        (void)world_send_many(w, i, 1, 1000);
    world_run_until_attempts(w, first + 2);
    (void)world_send_many(w, 0, 1, 1000); /* refill */
    (void)world_send_many(w, 1, 1, 1000);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), first + 6);
    for (size_t i = 0; i < 6; i += 2)
        ck_assert_uint_eq(at(w, first + i)->request,
                          at(w, first + i + 1)->request);
    ck_assert_int_eq(at(w, first)->partition, 0);
    ck_assert_int_eq(at(w, first + 1)->partition, 1);
    ck_assert_int_eq(at(w, first + 2)->partition, 2);
    ck_assert_int_eq(at(w, first + 3)->partition, 3);
    ck_assert_int_eq(at(w, first + 4)->partition, 0);
    ck_assert_int_eq(at(w, first + 5)->partition, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* A4, A16, A18, A30: a partition that backs off is passed over, and comes when it
 * is time; what was never tried waits for no backoff. */
START_TEST(a_partition_that_backs_off_is_passed_over)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2,
        .settings = WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms", "100",
                                   "retry.backoff.max.ms", "100")});
    struct world_record *a, *b;
    size_t first;

    warm_up(w, 2);
    first = world_attempts(w);
    (void)world_rule(w, "api=produce partition=0 count=1 error=19");
    a = world_send(w, 0);
    world_run_ms(w, 10);
    b = world_send(w, 1);
    world_settle(w);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 1);
    world_expect(b, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_uint_eq(world_attempts(w), first + 3);
    ck_assert_int_eq(at(w, first + 1)->partition, 1);
    ck_assert_int_eq(at(w, first + 1)->at_ns - b->called_ns, 1 * MS);
    ck_assert_int_ge(at(w, first + 2)->at_ns - a->called_ns, 82 * MS);
    ck_assert_int_le(at(w, first + 2)->at_ns - a->called_ns, 123 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* A17, A34: 100, 200, 400, 800, 1000, 1000 ms, each give or take a
 * fifth. */
START_TEST(backoff_grows)
{
    static const int64_t wait_ms[] = {100, 200, 400, 800, 1000, 1000};
    struct world *w = world_begin(&(struct world_options){
        .seed = (uint64_t)_i, .settings = WORLD_SETTINGS("linger.ms", "0")});
    size_t first;

    warm_up(w, 1);
    first = world_attempts(w);
    (void)world_rule(w, "api=produce count=6 error=19");
    (void)world_send(w, 0);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), first + 7);
    for (size_t i = 0; i < 6; i++) {
        int64_t gap = at(w, first + i + 1)->at_ns - at(w, first + i)->at_ns;

        ck_assert_int_ge(gap, wait_ms[i] * MS * 8 / 10 + 2 * MS);
        ck_assert_int_le(gap, wait_ms[i] * MS * 12 / 10 + 2 * MS);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* It starts from the beginning after a success. */
START_TEST(backoff_starts_again)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    size_t n;

    warm_up(w, 1);
    (void)world_rule(w, "api=produce count=4 error=19");
    (void)world_send(w, 0);
    world_settle(w);
    n = world_attempts(w);
    (void)world_rule(w, "api=produce count=1 error=19");
    (void)world_send(w, 0);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), n + 2);
    ck_assert_int_le(at(w, n + 1)->at_ns - at(w, n)->at_ns, 122 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- retries -- */

/* S4, S5 */
START_TEST(retries_are_counted)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "retries", "1",
                                   "retry.backoff.ms", "10")});
    struct world_record *r;

    (void)world_rule(w, "api=produce count=1 answer=close");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_uint_eq(world_attempts(w), 2);
    (void)world_rule(w, "api=produce count=2 answer=close");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_EDISCONNECT, KP_OK, KP_STORED_MAYBE, -1);
    ck_assert_uint_eq(world_attempts(w), 4);
    world_check(w);
    world_end(w);
}
END_TEST

/* An attempt that never left is one too; waiting for a connection is none. */
START_TEST(waiting_for_a_broker_is_no_attempt)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "retries", "1",
                                   "reconnect.backoff.max.ms", "50")});
    struct world_record *r;

    world_link(w, 1)->refuses = true;
    world_cut(w, -1, true);
    world_run_ms(w, 1);
    r = world_send(w, 0);
    world_run_ms(w, 5000);
    ck_assert(!r->reported);
    world_link(w, 1)->refuses = false;
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_uint_eq(world_attempts(w), 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* A connection that dies while an answer is due: it is tried again on another,
 * and not before. */
START_TEST(request_timeout)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "request.timeout.ms",
                                   "2000")});
    struct world_record *r;
    int64_t connects;

    warm_up(w, 1);
    connects = kb_connects(world_cluster(w), 1);
    world_link(w, 1)->stall_from = true;
    r = world_send(w, 0);
    world_run_ms(w, 1999);
    ck_assert_int_eq(kb_connects(world_cluster(w), 1), connects);
    world_link(w, 1)->stall_from = false;
    world_cut(w, 1, true);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_gt(kb_connects(world_cluster(w), 1), connects);
    world_check(w);
    world_end(w);
}
END_TEST

/* N1: no answer within request.timeout.ms: the connection goes, and it is tried
 * again on another. */
START_TEST(black_hole)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "request.timeout.ms",
                                   "2000")});
    struct world_record *r;

    warm_up(w, 1);
    (void)world_rule(w, "api=produce count=1 answer=stall");
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_ge(r->reported_ns - r->called_ns, 2000 * MS);
    ck_assert_int_le(r->reported_ns - r->called_ns, 2500 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- acks -- */

START_TEST(acks_0)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "acks", "0")});
    struct world_record *r = world_send_many(w, 0, 3, 0);

    world_settle(w);
    for (uint32_t i = 0; i < 3; i++)
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK,
                     KP_STORED_MAYBE, -1);
    world_run_ms(w, 10);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2");
    ck_assert_int_eq(at(w, 0)->acks, 0);
    world_end(w);
}
END_TEST

/* Reported when the transport has the last byte, not before. */
START_TEST(acks_0_waits_for_the_last_byte)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "acks", "0", "retries",
                                   "0")});
    struct world_record *r;

    warm_up(w, 1);
    world_link(w, 1)->stall_to = true;
    world_link(w, 1)->window = 500;
    r = world_send_many(w, 0, 1, 1000);
    world_run_ms(w, 1000);
    ck_assert(!r->reported);
    if (_i == 0) {
        world_link(w, 1)->stall_to = false;
        world_settle(w);
        world_expect(r, KP_OK, KP_OK, KP_STORED_MAYBE, -1);
    } else {
        world_cut(w, 1, true);
        world_settle(w);
        world_expect(r, KP_EDISCONNECT, KP_OK, KP_STORED_NO, -1);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* An error is told by closing the connection: what was written stays as it was
 * reported, what comes after goes over a new one. */
START_TEST(acks_0_error)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "acks", "0")});
    struct world_record *a, *b;

    warm_up(w, 1);
    world_run_ms(w, 10);
    (void)world_rule(w, "api=produce count=1 error=6");
    a = world_send(w, 0);
    world_settle(w);
    world_run_ms(w, 100);
    b = world_send(w, 0);
    world_settle(w);
    world_run_ms(w, 1000);
    world_expect(a, KP_OK, KP_OK, KP_STORED_MAYBE, -1);
    world_expect(b, KP_OK, KP_OK, KP_STORED_MAYBE, -1);
    ck_assert_str_eq(world_log(w, "t", 0), "0 2");
    world_end(w);
}
END_TEST

START_TEST(acks_1)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "acks", "1")});
    struct world_record *r = world_send(w, 0);

    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_eq(at(w, 0)->acks, 1);
    ck_assert_int_eq(at(w, 0)->header.producer_id, -1);
    world_check(w);
    world_end(w);
}
END_TEST

/* The broker's time stands in the report if the topic says so. */
START_TEST(append_time)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct world_record *r;

    r = world_send(w, 0);
    world_settle(w);
    ck_assert_int_eq(r->report.timestamp_ms, -1);
    ck_assert(kb_topic_set(world_cluster(w), "t", "message.timestamp.type",
                           "LogAppendTime"));
    r = world_send(w, 0);
    world_settle(w);
    ck_assert_int_eq(r->report.timestamp_ms,
                     kb_wall_ms(world_cluster(w)) - 1);
    world_end(w);
}
END_TEST

/* -- throttling -- */

/* S9, N2: a node that says so gets nothing for that long; others do. */
START_TEST(throttled)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    int node = (int)kb_leader(world_cluster(w), "t", 0);
    struct world_record *a, *b, *c;
    char line[80];
    size_t n;

    warm_up(w, 2);
    (void)snprintf(line, sizeof(line),
                   "api=produce node=%d count=1 throttle_ms=400", node);
    (void)world_rule(w, line);
    a = world_send(w, 0);
    world_run_ms(w, 5);
    world_expect(a, KP_OK, KP_OK, KP_STORED_YES, 1);
    n = world_attempts(w);
    b = world_send(w, 0);
    c = world_send(w, 1);
    world_run_ms(w, 50);
    world_expect(c, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_uint_eq(world_attempts(w), n + 1);
    world_settle(w);
    world_expect(b, KP_OK, KP_OK, KP_STORED_YES, 2);
    ck_assert_int_ge(at(w, n + 1)->at_ns - a->called_ns, 401 * MS);
    ck_assert_int_le(at(w, n + 1)->at_ns - a->called_ns, 404 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* The client itself waits: while it is throttled, nothing is written that the
 * broker does not read.  A29: and deadlines go on. */
START_TEST(throttled_client_waits_itself)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "delivery.timeout.ms",
                                   "3000", "request.timeout.ms", "1000")});
    struct world_record *r;

    warm_up(w, 1);
    (void)world_rule(w, "api=produce count=1 throttle_ms=5000");
    (void)world_send(w, 0);
    world_run_ms(w, 5);
    r = world_send(w, 0);
    world_run_ms(w, 3100);
    world_expect(r, KP_ETIMEDOUT, KP_OK, KP_STORED_NO, -1);
    world_settle(w);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- waking -- */

/* Nothing to do: next to no turns in an hour. */
START_TEST(idle_means_idle)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "5")});
    uint64_t turns;

    warm_up(w, 1);
    world_run_ms(w, 1000);
    turns = world_turns(w);
    world_run_ms(w, 3600 * 1000);
    /* metadata every five minutes (a few turns each), idle closes */
    ck_assert_uint_le(world_turns(w) - turns, 12 * 10 + 20);
    world_end(w);
}
END_TEST

/* The same with a broker that cannot be reached: only attempts to reach it. */
START_TEST(idle_with_a_dead_broker)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "5")});
    struct world_record *r;
    uint64_t turns;

    warm_up(w, 1);
    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    r = world_send(w, 0);
    world_run_ms(w, 10000);
    turns = world_turns(w);
    world_run_ms(w, 60000);
    /* two nodes (one by bootstrap address), an attempt a second each at
     * most, two or three turns each */
    ck_assert_uint_le(world_turns(w) - turns, 60 * 2 * 4);
    ck_assert(!r->reported);
    world_settle(w);
    world_expect(r, KP_ETIMEDOUT, KP_ECONNECT, KP_STORED_NO, -1);
    world_end(w);
}
END_TEST

/* S53: a request without an answer: no turns until its time is up. */
START_TEST(idle_with_a_request_in_flight)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    uint64_t turns;

    warm_up(w, 1);
    (void)world_rule(w, "api=produce count=1 answer=stall");
    (void)world_send(w, 0);
    world_run_ms(w, 1000);
    turns = world_turns(w);
    world_run_ms(w, 28000);
    ck_assert_uint_le(world_turns(w) - turns, 3);
    world_settle(w);
    world_end(w);
}
END_TEST

/* A steady stream costs a few turns a request, whatever the number of
 * records. */
START_TEST(turns_per_request)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "5")});
    uint64_t turns;
    uint32_t requests;

    warm_up(w, 1);
    turns = world_turns(w);
    requests = world_requests(w);
    for (int i = 0; i < 1000; i++) {
        (void)world_send_many(w, 0, 10, 10);
        world_run_ms(w, 1);
    }
    world_settle(w);
    requests = world_requests(w) - requests;
    ck_assert_uint_le(requests, 1000 / 5 + 10);
    ck_assert_uint_le(world_turns(w) - turns, 8 * requests);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *sender_batches_suite(void)
{
    Suite *s = suite_create("sender_batches");
    TCase *t = tcase_create("sender_batches");

    tcase_add_test(t, linger_to_the_moment);
    tcase_add_test(t, an_older_head_is_company_wherever_it_stood);
    tcase_add_loop_test(t, each_partition_lingers_for_itself, 0, 3);
    tcase_add_test(t, a_full_batch_does_not_linger);
    tcase_add_loop_test(t, a_large_record_is_its_own_batch, 0, 2);
    tcase_add_test(t, batch_size_0_is_one_record_each);
    tcase_add_test(t, one_request_for_all_partitions_of_a_node);
    tcase_add_test(t, requests_rotate);
    tcase_add_test(t, a_partition_that_backs_off_is_passed_over);
    tcase_add_loop_test(t, backoff_grows, 0, 20);
    tcase_add_test(t, backoff_starts_again);
    tcase_add_test(t, retries_are_counted);
    tcase_add_test(t, waiting_for_a_broker_is_no_attempt);
    tcase_add_test(t, request_timeout);
    tcase_add_test(t, black_hole);
    tcase_add_test(t, acks_0);
    tcase_add_loop_test(t, acks_0_waits_for_the_last_byte, 0, 2);
    tcase_add_test(t, acks_0_error);
    tcase_add_test(t, acks_1);
    tcase_add_test(t, append_time);
    tcase_add_test(t, throttled);
    tcase_add_test(t, throttled_client_waits_itself);
    tcase_add_test(t, idle_means_idle);
    tcase_add_test(t, idle_with_a_dead_broker);
    tcase_add_test(t, idle_with_a_request_in_flight);
    tcase_add_test(t, turns_per_request);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(sender_batches_suite)
