/* SPDX-License-Identifier: BSD-2-Clause */
/* Order and no duplicates: how many batches of a partition are on the wire, and
 * what retries, leader moves and lost answers do to their order. */
#include <stdio.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define FAST "retry.backoff.ms", "10", "retry.backoff.max.ms", "10", \
             "linger.ms", "0"
/* every record its own batch */
#define SINGLES "batch.size", "0"

static const struct world_attempt *at(struct world *w, size_t i)
{
    return world_attempt(w, i);
}

static void all_ok(struct world *w, struct world_record *first, int count)
{
    for (int i = 0; i < count; i++)
        world_expect(world_record(w, first->id + (uint32_t)i), KP_OK, KP_OK,
                     KP_STORED_YES, first->report.offset + i);
}

/* S16: one until the leader has acknowledged one, then five. */
START_TEST(one_until_proven_then_five)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 50 * KP_NS_PER_MS,
        .settings = WORLD_SETTINGS(FAST, SINGLES)});
    struct world_record *r = world_send_many(w, 0, 16, 0);
    int64_t first_ns;

    world_run_until_attempts(w, 1);
    first_ns = world_now_ns(w);
    world_run_until_ns(w, first_ns + 100 * KP_NS_PER_MS - 1);
    ck_assert_uint_eq(world_attempts(w), 1);
    world_run_until_ns(w, first_ns + 150 * KP_NS_PER_MS);
    ck_assert_uint_eq(world_attempts(w), 6);
    world_run_until_ns(w, first_ns + 250 * KP_NS_PER_MS);
    ck_assert_uint_eq(world_attempts(w), 11);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 16);
    for (size_t i = 0; i < 16; i++)
        ck_assert_int_eq(at(w, i)->header.base_sequence, (int)i);
    all_ok(w, r, 16);
    world_check(w);
    world_end(w);
}
END_TEST

/* A broker that remembers one batch gets one at a time: Produce below 5. */
START_TEST(one_at_a_time_for_old_brokers)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 50 * KP_NS_PER_MS,
        .no_wait = true,
        .settings = WORLD_SETTINGS(FAST, SINGLES)});
    struct world_record *r;
    int64_t last_ns = 0;

    kb_node_versions(world_cluster(w), 1, 0, 3, 4);
    r = world_send_many(w, 0, 6, 0);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 6);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_int_ge(at(w, i)->at_ns - last_ns, 100 * KP_NS_PER_MS);
        last_ns = at(w, i)->at_ns;
        ck_assert_int_le(at(w, i)->version, 4);
    }
    all_ok(w, r, 6);
    world_check(w);
    world_end(w);
}
END_TEST

START_TEST(never_more_than_max_in_flight)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 50 * KP_NS_PER_MS,
        .settings = WORLD_SETTINGS(
            FAST, SINGLES, "max.in.flight.requests.per.connection", "2")});
    struct world_record *r = world_send_many(w, 0, 9, 0);
    int64_t first_ns;

    world_run_until_attempts(w, 1);
    first_ns = world_now_ns(w);
    for (int i = 1; i <= 4; i++) {
        world_run_until_ns(w, first_ns + i * 100 * KP_NS_PER_MS);
        ck_assert_uint_eq(world_attempts(w), (size_t)(1 + 2 * i));
    }
    world_settle(w);
    all_ok(w, r, 9);
    world_check(w);
    world_end(w);
}
END_TEST

/* S17, S22: the first of several is refused for now, the broker calls the
 * others out of order; they go again in order, one at a time, and what is
 * new waits. */
START_TEST(first_of_several_is_retried)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 20 * KP_NS_PER_MS,
        .settings = WORLD_SETTINGS(FAST, SINGLES)});
    struct world_record *warm = world_send(w, 0), *r, *late;

    world_settle(w);
    (void)world_rule(w, "api=produce count=1 error=5");
    r = world_send_many(w, 0, 3, 0);
    world_run_until_attempts(w, 4);
    world_run_ms(w, 25); /* the answers are there */
    late = world_send(w, 0);
    world_settle(w);
    world_expect(warm, KP_OK, KP_OK, KP_STORED_YES, 0);
    all_ok(w, r, 3);
    ck_assert_int_eq(r->report.offset, 1);
    world_expect(late, KP_OK, KP_OK, KP_STORED_YES, 4);
    /* 1; 1 2 3; 1 2 3 again, each with its numbers; then the late one */
    ck_assert_uint_eq(world_attempts(w), 8);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(at(w, 4 + i)->header.producer_epoch, 0);
        ck_assert_int_eq(at(w, 4 + i)->header.base_sequence, 1 + (int)i);
    }
    /* the first of them alone */
    ck_assert_int_ge(at(w, 5)->at_ns - at(w, 4)->at_ns, 40 * KP_NS_PER_MS);
    ck_assert_int_eq(at(w, 7)->header.base_sequence, 4);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3 4");
    world_check(w);
    world_end(w);
}
END_TEST

/* S18: the first of several is refused for good: the others, proven not
 * stored by their 45, get new numbers and go on in order. */
START_TEST(first_of_several_is_refused)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 20 * KP_NS_PER_MS,
        .settings = WORLD_SETTINGS(FAST, SINGLES)});
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, "api=produce count=1 error=18");
    r = world_send_many(w, 0, 4, 0);
    world_settle(w);
    world_expect(r, KP_RECORD_LIST_TOO_LARGE, KP_OK, KP_STORED_NO, -1);
    for (uint32_t i = 1; i < 4; i++)
        world_expect(world_record(w, r->id + i), KP_OK, KP_OK, KP_STORED_YES,
                     (int64_t)i);
    ck_assert_int_eq(at(w, 5)->header.producer_epoch, 1);
    ck_assert_int_eq(at(w, 5)->header.base_sequence, 0);
    ck_assert_str_eq(world_log(w, "t", 0), "0 2 3 4");
    world_check(w);
    world_end(w);
}
END_TEST

/* All answers are lost, some of the batches are stored: the retries are
 * known as what they are. */
START_TEST(lost_answers_of_several)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 20 * KP_NS_PER_MS,
        .settings = WORLD_SETTINGS(FAST, SINGLES)});
    struct world_record *r;
    char line[80];

    (void)world_send(w, 0);
    world_settle(w);
    (void)snprintf(line, sizeof(line), "api=produce skip=%d count=1 %s", _i,
                   _i % 2 == 0 ? "answer=close" : "ignore answer=reset");
    (void)world_rule(w, line);
    r = world_send_many(w, 0, 8, 0);
    world_settle(w);
    all_ok(w, r, 8);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3 4 5 6 7 8");
    world_check(w);
    world_end(w);
}
END_TEST

/* D18: five on the wire, each of which fails so or is stored: every pattern. */
static const struct {
    const char *what;
    bool final;
} failures[] = {
    {"error=19", false},       {"error=7", false}, {"error=7 append", false},
    {"error=6 append", false}, {"omit", false},    {"error=45", false},
    {"error=87", true},
};
#define FAILURES ((int)(sizeof(failures) / sizeof(failures[0])))

START_TEST(five_on_the_wire_in_every_pattern)
{
    for (int pattern = 0; pattern < 32; pattern++) {
        struct world *w = world_begin(&(struct world_options){
            .latency_ns = 20 * KP_NS_PER_MS,
            .settings = WORLD_SETTINGS(FAST, SINGLES)});
        struct world_record *first;
        int64_t offset = 1;
        char line[80];

        (void)world_send(w, 0);
        world_settle(w);
        for (int k = 0; k < 5; k++) {
            (void)snprintf(line, sizeof(line),
                           "api=produce skip=%d count=1 %s", k,
                           failures[_i].what);
            if ((pattern >> k & 1) != 0)
                (void)world_rule(w, line);
        }
        first = world_send_many(w, 0, 7, 0);
        world_run_until_attempts(w, 6);
        ck_assert(!first->reported); /* five, and no answer yet */
        world_settle(w);
        for (uint32_t k = 0; k < 7; k++) {
            struct world_record *r = world_record(w, first->id + k);

            if (failures[_i].final && k < 5 && (pattern >> k & 1) != 0)
                world_expect(r, KP_INVALID_RECORD, KP_OK, KP_STORED_NO, -1);
            else
                world_expect(r, KP_OK, KP_OK, KP_STORED_YES, offset++);
        }
        world_check(w);
        world_end(w);
    }
}
END_TEST

/* How often the client connected, to get three records stored once. */
static int64_t three_records(size_t cut_after, bool loses)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, SINGLES), .no_wait = true});
    struct world_record *r;
    int64_t connects;

    world_link(w, 1)->cut_after = cut_after;
    world_link(w, 1)->cut_loses = loses;
    r = world_send_many(w, 0, 3, 0);
    world_run_ms(w, 500);
    world_link(w, 1)->cut_after = SIZE_MAX;
    world_settle(w);
    all_ok(w, r, 3);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2");
    connects = kb_connects(world_cluster(w), -1);
    world_check(w);
    world_end(w);
    return connects;
}

/* A07: every connection is cut at any byte of what the client writes. */
#define STRIPES 8
#define BYTES 1000 /* more than it writes on one connection */

START_TEST(cut_at_any_byte)
{
    int64_t uncut = three_records(SIZE_MAX, false), connects = 0;
    int cuts = 0;

    for (size_t n = 1 + (size_t)_i / 2; n <= BYTES; n += STRIPES / 2) {
        connects = three_records(n, _i % 2 != 0);
        cuts += connects > uncut ? 1 : 0;
    }
    ck_assert_int_eq(connects, uncut); /* it had written less */
    ck_assert_int_gt(cuts, 300 / (STRIPES / 2));
}
END_TEST

/* -- leaders -- */

static struct world *three_nodes(int64_t latency_ms)
{
    return world_begin(&(struct world_options){
        .nodes = 3,
        .partitions = 2,
        .replication = 3,
        .latency_ns = latency_ms * KP_NS_PER_MS,
        .settings = WORLD_SETTINGS(FAST, SINGLES)});
}

static int32_t other_node(struct world *w, int32_t not_this)
{
    for (int32_t i = 1; i <= 3; i++)
        if (i != not_this && kb_in_sync(world_cluster(w), "t", 0, i))
            return i;
    ck_abort_msg("nobody else is in sync");
    return -1;
}

static int32_t move_leader(struct world *w)
{
    int32_t old = kb_leader(world_cluster(w), "t", 0);
    int32_t new = other_node(w, old);

    ck_assert(kb_leader_move(world_cluster(w), "t", 0, new, false,
                             world_now_ns(w)));
    return new;
}

/* S6, S70: the leader moves while batches are on their way: the old one says
 * 6 to them and names the new one, which gets them in order, first one
 * alone. */
START_TEST(leader_moves_under_way)
{
    struct world *w = three_nodes(10);
    struct world_record *r;
    int32_t new;
    size_t n;

    (void)world_send(w, 0);
    world_settle(w);
    r = world_send_many(w, 0, 9, 0);
    world_run_ms(w, 1 + 5 * _i);
    new = move_leader(w);
    world_settle(w);
    all_ok(w, r, 9);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3 4 5 6 7 8 9");
    n = world_attempts(w);
    ck_assert_int_eq(at(w, n - 1)->node, new);
    for (size_t i = 1; i < n; i++)
        if (at(w, i)->node == new && at(w, i - 1)->node != new &&
            i + 1 < n) {
            /* the first to the new leader went alone */
            ck_assert_int_ge(at(w, i + 1)->at_ns - at(w, i)->at_ns,
                             20 * KP_NS_PER_MS);
            break;
        }
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(at(w, i)->header.producer_epoch, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* Appended by the old leader, replicated, and answered with 6 when it lost the
 * lead before it could say so. */
START_TEST(parked_and_then_6)
{
    struct world *w = three_nodes(1);
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    ck_assert(kb_set(world_cluster(w), "replication.delay.ms", "50"));
    r = world_send(w, 0);
    world_run_until_attempts(w, 2);
    world_run_ms(w, 3);
    ck_assert_int_eq(kb_parked(world_cluster(w)), 1);
    (void)move_leader(w);
    world_settle(w);
    ck_assert_int_eq(r->report.err, KP_OK);
    ck_assert_int_eq(r->report.stored, KP_STORED_YES);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1");
    world_check(w);
    world_end(w);
}
END_TEST

/* The leader dies; others are elected. */
START_TEST(leader_dies)
{
    struct world *w = three_nodes(2);
    struct world_record *r;
    int32_t old;

    (void)world_send(w, 0);
    world_settle(w);
    r = world_send_many(w, 0, 9, 0);
    world_run_ms(w, _i);
    old = kb_leader(world_cluster(w), "t", 0);
    kb_node_stop(world_cluster(w), old, _i % 2 == 0, world_now_ns(w));
    world_settle(w);
    all_ok(w, r, 9);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3 4 5 6 7 8 9");
    ck_assert_int_ne(kb_leader(world_cluster(w), "t", 0), old);
    world_check(w);
    world_end(w);
}
END_TEST

/* A51: nobody leads for a while: nothing is sent, nothing is lost. */
START_TEST(no_leader_for_a_while)
{
    struct world *w = three_nodes(2);
    struct world_record *r, *other;
    int32_t leader;
    size_t n;

    (void)world_send(w, 0);
    world_settle(w);
    leader = kb_leader(world_cluster(w), "t", 0);
    ck_assert(kb_leader_move(world_cluster(w), "t", 0, -1, false,
                             world_now_ns(w)));
    r = world_send_many(w, 0, 3, 0);
    world_run_ms(w, 1000);
    n = world_attempts(w);
    world_run_ms(w, 1000);
    ck_assert_uint_eq(world_attempts(w), n);
    ck_assert(!r->reported);
    /* the other partition does not notice */
    other = world_send(w, 1);
    world_run_ms(w, 30);
    world_expect(other, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert(kb_leader_move(world_cluster(w), "t", 0, leader, true,
                             world_now_ns(w)));
    world_settle(w);
    all_ok(w, r, 3);
    world_check(w);
    world_end(w);
}
END_TEST

/* A newer leader ends a backoff. */
START_TEST(hint_ends_the_backoff)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 3,
        .replication = 3,
        .settings = WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms",
                                   "5000", "retry.backoff.max.ms", "5000")});
    struct world_record *r;
    int64_t sent_ns;

    (void)world_send(w, 0);
    world_settle(w);
    (void)move_leader(w);
    sent_ns = world_now_ns(w);
    r = world_send(w, 0);
    world_run_ms(w, 100);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_lt(r->reported_ns - sent_ns, 50 * KP_NS_PER_MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* A broker names another leader: of an epoch that is past, of the one that is,
 * and one that nobody knows where to find.  None is followed, and none ends the
 * backoff. */
START_TEST(false_hints_move_nothing)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 3,
        .replication = 3,
        .settings = WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms", "500",
                                   "retry.backoff.max.ms", "500")});
    struct kb_cluster *c = world_cluster(w);
    static const int32_t by[] = {-1, 0, 0, 5}; /* to the partition's epoch */
    bool known = _i < 2;
    int32_t leader, epoch;
    struct world_record *r;
    char rule[100];
    size_t n;

    (void)move_leader(w);
    (void)world_send(w, 0);
    world_settle(w);
    leader = kb_leader(c, "t", 0);
    epoch = kb_leader_epoch(c, "t", 0);
    ck_assert_int_gt(epoch, 0);
    (void)snprintf(rule, sizeof(rule),
                   "api=produce error=6 hint=%d hint_epoch=%d",
                   known ? (int)(leader % 3) + 1 : 77,
                   (int)(epoch + by[_i]));
    (void)world_rule(w, rule);
    n = world_attempts(w);
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_uint_eq(world_attempts(w), n + 2);
    ck_assert_int_eq(world_attempt(w, n)->node, leader);
    ck_assert_int_eq(world_attempt(w, n + 1)->node, leader);
    ck_assert_int_ge(world_attempt(w, n + 1)->at_ns -
                         world_attempt(w, n)->at_ns,
                     400 * KP_NS_PER_MS); /* a fifth is jitter */
    world_check(w);
    world_end(w);
}
END_TEST

/* C16: of a newer epoch they are followed, to who does not lead, or is dead; the
 * first answers of metadata are taken for those of brokers that are behind.  The
 * partition is sent to again all the same, however high the epoch: soon, or after
 * half a minute if nobody is there to deny it. */
START_TEST(false_hints_of_newer_epochs_are_got_over)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 3,
        .replication = 3,
        .settings = WORLD_SETTINGS("linger.ms", "0", "acks",
                                   _i < 2 ? "all" : "1")});
    struct kb_cluster *c = world_cluster(w);
    int32_t leader, liar;
    struct world_record *r;
    char rule[100];

    (void)world_send(w, 0);
    world_settle(w);
    leader = kb_leader(c, "t", 0);
    liar = leader % 3 + 1;
    if (_i % 2 == 1)
        kb_node_stop(c, liar, false, world_now_ns(w));
    (void)snprintf(rule, sizeof(rule),
                   "api=produce error=6 hint=%d hint_epoch=%d", (int)liar,
                   (int)INT32_MAX);
    (void)world_rule(w, rule);
    r = world_send(w, 0);
    (void)world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_le(r->reported_ns - r->called_ns,
                     (_i % 2 == 0 ? 10 : 40) * KP_NS_PER_SEC);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2");
    world_check(w);
    world_end(w);
}
END_TEST

/* Without a hint (Produce below 10) metadata is asked for. */
START_TEST(without_a_hint_metadata_is_asked)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 3,
        .replication = 3,
        .no_wait = true,
        .settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;
    int64_t asked;

    for (int i = 1; i <= 3; i++)
        kb_node_versions(world_cluster(w), i, 0, 3, 9);
    (void)world_send(w, 0);
    world_settle(w);
    asked = kb_requests(world_cluster(w), -1, 3);
    (void)move_leader(w);
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_gt(kb_requests(world_cluster(w), -1, 3), asked);
    world_check(w);
    world_end(w);
}
END_TEST

/* A topic that is made again has other ids and an empty log. */
START_TEST(topic_made_again)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST)});
    struct world_record *r;

    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_eq(kb_topic_delete(world_cluster(w), "t", world_now_ns(w)),
                     0);
    ck_assert_int_eq(
        kb_topic_create(world_cluster(w), "t", 1, 1, world_now_ns(w)), 0);
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_str_eq(world_log(w, "t", 0), "1");
    world_end(w);
}
END_TEST

/* A broker tells who leads, of a topic that is deleted and made again before the
 * answer comes: its epoch is above those of the new one, and means nothing. */
START_TEST(topic_made_again_before_a_hint_comes)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .replication = 2,
        .settings = WORLD_SETTINGS(FAST, "metadata.max.age.ms", "50",
                                   "delivery.timeout.ms", "5000",
                                   "request.timeout.ms", "2000")});
    struct kb_cluster *c = world_cluster(w);
    int32_t first = kb_leader(c, "t", 0);
    struct world_record *r;

    (void)world_send(w, 0);
    (void)world_send(w, 1); /* the other node can be asked for metadata */
    world_settle(w);
    (void)world_rule(w, "api=produce answer_ms=500");
    r = world_send(w, 0);
    ck_assert(kb_leader_move(c, "t", 0, 3 - first, false, world_now_ns(w)));
    world_run_until_attempts(w, 3);
    ck_assert_int_eq(kb_topic_delete(world_cluster(w), "t", world_now_ns(w)),
                     0);
    ck_assert_int_eq(
        kb_topic_create(world_cluster(w), "t", 2, 2, world_now_ns(w)), 0);
    ck_assert_int_eq(kb_leader(world_cluster(w), "t", 0), first);
    ck_assert_int_eq(kb_leader_epoch(world_cluster(w), "t", 0), 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 0);
    ck_assert_int_lt(r->reported_ns - r->returned_ns, 1000 * KP_NS_PER_MS);
    ck_assert_int_eq(world_attempt(w, 3)->node, first);
    world_forgive(w, true, true);
    world_end(w);
}
END_TEST

/* -- without idempotence -- */

/* One request in flight keeps the order through retries. */
START_TEST(one_in_flight_keeps_the_order)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 10 * KP_NS_PER_MS,
        .settings = WORLD_SETTINGS(
            FAST, SINGLES, "enable.idempotence", "false",
            "max.in.flight.requests.per.connection", "1")});
    struct world_record *r;

    (void)world_rule(w, "api=produce count=2 error=19");
    r = world_send_many(w, 0, 5, 0);
    world_settle(w);
    all_ok(w, r, 5);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1 2 3 4");
    ck_assert_int_eq(at(w, 0)->header.producer_id, -1);
    ck_assert_int_eq(at(w, 0)->header.base_sequence, -1);
    world_check(w);
    world_end(w);
}
END_TEST

/* More than one in flight: a retry goes behind what was stored meanwhile,
 * and two retries keep their own order. */
START_TEST(several_in_flight_reorder)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 10 * KP_NS_PER_MS,
        .settings = WORLD_SETTINGS(FAST, SINGLES, "enable.idempotence",
                                   "false")});

    (void)world_send(w, 0);
    world_settle(w);
    (void)world_rule(w, "api=produce count=2 error=19");
    (void)world_send_many(w, 0, 4, 0);
    world_settle(w);
    ck_assert_str_eq(world_log(w, "t", 0), "0 3 4 1 2");
    world_end(w);
}
END_TEST

/* What the old leader still acknowledges says nothing of the new one: while
 * anything is on the way to the old one, nothing behind it goes to the new. */
START_TEST(an_old_leader_proves_nothing)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .replication = 2,
        .settings = WORLD_SETTINGS(FAST, SINGLES, "metadata.max.age.ms",
                                   "200")});
    int32_t old = kb_leader(world_cluster(w), "t", 0);
    struct world_record *r = world_send(w, 0), *last;
    size_t before;

    (void)world_send(w, 1); /* the other node is connected too */
    world_settle(w);        /* pipelining begins */
    (void)world_send(w, 0);
    world_run_until_attempts(w, 3);
    world_link(w, old)->stall_from = true; /* its answer is late */
    world_link(w, old)->stall_to = true;   /* and the next one on its way */
    (void)world_send(w, 0);
    world_run_ms(w, 5);
    ck_assert(kb_leader_move(world_cluster(w), "t", 0, 3 - old, false,
                             world_now_ns(w)));
    world_run_ms(w, 500); /* the other node says who leads */
    before = world_attempts(w);
    ck_assert_uint_eq(before, 3);
    last = world_send(w, 0);
    world_link(w, old)->stall_from = false;
    world_run_ms(w, 100);
    ck_assert(world_record(w, r->id + 2)->reported);
    ck_assert_uint_eq(world_attempts(w), before);
    world_link(w, old)->stall_to = false;
    world_settle(w);
    world_expect(last, KP_OK, KP_OK, KP_STORED_YES, 3);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *idempotence_order_suite(void)
{
    Suite *s = suite_create("idempotence_order");
    TCase *t = tcase_create("idempotence_order");

    tcase_add_test(t, one_until_proven_then_five);
    tcase_add_test(t, one_at_a_time_for_old_brokers);
    tcase_add_test(t, never_more_than_max_in_flight);
    tcase_add_test(t, first_of_several_is_retried);
    tcase_add_test(t, first_of_several_is_refused);
    tcase_add_loop_test(t, lost_answers_of_several, 0, 8);
    tcase_add_loop_test(t, five_on_the_wire_in_every_pattern, 0, FAILURES);
    tcase_add_loop_test(t, cut_at_any_byte, 0, STRIPES);
    tcase_add_loop_test(t, leader_moves_under_way, 0, 6);
    tcase_add_test(t, parked_and_then_6);
    tcase_add_loop_test(t, leader_dies, 0, 10);
    tcase_add_test(t, no_leader_for_a_while);
    tcase_add_test(t, hint_ends_the_backoff);
    tcase_add_loop_test(t, false_hints_move_nothing, 0, 4);
    tcase_add_loop_test(t, false_hints_of_newer_epochs_are_got_over, 0, 4);
    tcase_add_test(t, without_a_hint_metadata_is_asked);
    tcase_add_test(t, topic_made_again);
    tcase_add_test(t, topic_made_again_before_a_hint_comes);
    tcase_add_test(t, an_old_leader_proves_nothing);
    tcase_add_test(t, one_in_flight_keeps_the_order);
    tcase_add_test(t, several_in_flight_reorder);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(idempotence_order_suite)
