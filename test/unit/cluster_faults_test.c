/* SPDX-License-Identifier: BSD-2-Clause */
/* What a cluster may do to a producer that knows it: versions that change,
 * leaders that stay away, producers that are forgotten, logs that are cut, and
 * machines that stand still: the whole client under a stopped clock.  The ids are
 * those of ../FAULTS.md. */
#include <stdio.h>
#include <string.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define MS KP_NS_PER_MS
#define HOUR_MS (3600 * 1000)
#define FAST \
    "linger.ms", "0", "retry.backoff.ms", "10", "retry.backoff.max.ms", "10", \
        "reconnect.backoff.ms", "10", "reconnect.backoff.max.ms", "50"
#define SHORT "delivery.timeout.ms", "3000", "request.timeout.ms", "1000"
#define SINGLES "batch.size", "0"

static const struct record_batch_header *header(struct world *w, size_t i)
{
    return &world_attempt(w, i)->header;
}

static const struct record_batch_header *last(struct world *w)
{
    return header(w, world_attempts(w) - 1);
}

static void expect_ok(struct world_record *r, int64_t offset)
{
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, offset);
    ck_assert_uint_eq(r->callbacks, 1);
}

static void speaks(struct world *w, int32_t node, int16_t max)
{
    kb_node_versions(world_cluster(w), node, 0, 0, max);
}

/* -- versions -- */

/* C05: a broker of a known topic comes back too old for record batches: what is
 * queued was never sent, and its report says why; a newer one serves the next. */
START_TEST(a_broker_that_became_too_old)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SHORT)});
    struct world_record *r;
    kp_error error;

    (void)world_send(w, 0);
    world_settle(w);
    speaks(w, 1, 2);
    world_cut(w, 1, false);
    world_run_ms(w, 100);
    r = world_send(w, 0);
    world_run_ms(w, 100);
    ck_assert_int_eq(kp_status(world_producer(w), NULL, &error), KP_ENOTSUP);
    ck_assert_ptr_nonnull(strstr(error.text, "Produce"));
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 1);
    if (r->state == WORLD_TAKEN) {
        world_expect(r, KP_ETIMEDOUT, KP_ENOTSUP, KP_STORED_NO, -1);
        ck_assert_int_eq(r->reported_ns - r->returned_ns, 3000 * MS);
    } else {
        ck_assert_int_eq(r->refused, KP_ENOTSUP);
    }
    speaks(w, 1, 13);
    world_run_ms(w, 1000);
    r = world_send(w, 0);
    world_settle(w);
    expect_ok(r, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* C06: each broker is spoken to in its own version, before and after a leader
 * goes from one to the other. */
START_TEST(each_broker_in_its_own_version)
{
    struct world *w =
        world_begin(&(struct world_options){.nodes = 2,
                                            .partitions = 2,
                                            .replication = 2,
                                            .no_wait = true,
                                            .settings = WORLD_SETTINGS(FAST)});
    int32_t was = kb_leader(world_cluster(w), "t", 0);

    speaks(w, 1, 7);
    speaks(w, 2, 12);
    for (int i = 0; i < 10; i++) {
        (void)world_send(w, i % 2);
        if (i == 5)
            ck_assert(kb_leader_move(world_cluster(w), "t", 0, 3 - was, false,
                                     world_now_ns(w)));
        world_run_ms(w, 20);
    }
    world_settle(w);
    for (uint32_t i = 0; i < 10; i++)
        expect_ok(world_record(w, i), i / 2);
    for (size_t i = 0; i < world_attempts(w); i++)
        ck_assert_int_eq(world_attempt(w, i)->version,
                         world_attempt(w, i)->node == 1 ? 7 : 12);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- leaders -- */

/* C15: nobody leads for longer than a record may wait: it was never sent; when
 * somebody does, the next one goes. */
START_TEST(no_leader_for_too_long)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SHORT)});
    struct world_record *r;

    (void)world_send(w, 0);
    world_settle(w);
    ck_assert(
        kb_leader_move(world_cluster(w), "t", 0, -1, false, world_now_ns(w)));
    /* the old one says that it leads no more */
    (void)world_rule(w, "api=produce count=-1 error=6");
    r = world_send(w, 0);
    world_settle(w);
    ck_assert_int_eq(r->report.err, KP_ETIMEDOUT);
    ck_assert_int_eq(r->reported_ns - r->returned_ns, 3000 * MS);
    ck_assert_int_ne(r->report.stored, KP_STORED_YES);
    r = world_send(w, 0); /* known by now to have no leader */
    world_settle(w);
    world_expect(r, KP_ETIMEDOUT, KP_EMETADATA, KP_STORED_NO, -1);
    world_rule_remove(w, -1);
    ck_assert(
        kb_leader_move(world_cluster(w), "t", 0, 1, true, world_now_ns(w)));
    r = world_send(w, 0);
    world_settle(w);
    expect_ok(r, 1);
    world_check(w);
    world_end(w);
}
END_TEST

/* C13: records with keys while partitions are added: each key goes from its old
 * partition to its new one once, and never back. */
START_TEST(keys_move_once)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f"};
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2,
        .settings = WORLD_SETTINGS(FAST, "metadata.max.age.ms", "1000")});
    int32_t first[6], now[6];
    int moves[6] = {0}, moved = 0;

    for (int i = 0; i < 600; i++) {
        if (i == 150)
            ck_assert_int_eq(
                kb_topic_grow(world_cluster(w), "t", 7, world_now_ns(w)), 0);
        (void)world_send_what(
            w, &(struct world_what){.partition = -1,
                                    .key = keys[i % 6],
                                    .flags = WORLD_FUTURE | WORLD_CALLBACK});
        world_run_ms(w, 10);
    }
    world_settle(w);
    for (int i = 0; i < 600; i++) {
        const struct world_record *r = world_record(w, (uint32_t)i);
        int k = i % 6;

        ck_assert_int_eq(r->report.err, KP_OK);
        if (i < 6)
            first[k] = now[k] = r->report.partition;
        if (r->report.partition != now[k])
            moves[k]++;
        now[k] = r->report.partition;
    }
    for (int k = 0; k < 6; k++) {
        ck_assert_int_le(moves[k], 1);
        ck_assert(moves[k] == 0 || now[k] != first[k]);
        moved += moves[k];
    }
    ck_assert_int_ge(moved, 3); /* of six keys, from two partitions to seven */
    world_check(w);
    world_end(w);
}
END_TEST

/* C12: a topic is deleted and made again with fewer partitions: what goes to one
 * that there still is is stored from 0 on, what goes to one that is no more ends at
 * its deadline, and what may choose goes where it can. */
START_TEST(a_topic_made_again_with_fewer_partitions)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 4,
        .settings = WORLD_SETTINGS(FAST, SHORT, "metadata.max.age.ms", "500")});
    struct world_what any = {.partition = -1,
                             .flags = WORLD_FUTURE | WORLD_CALLBACK};
    struct world_record *gone, *r;

    for (int i = 0; i < 4; i++)
        (void)world_send(w, i);
    world_settle(w);
    ck_assert_int_eq(kb_topic_delete(world_cluster(w), "t", world_now_ns(w)),
                     0);
    ck_assert_int_eq(
        kb_topic_create(world_cluster(w), "t", 2, 1, world_now_ns(w)), 0);
    gone = world_send(w, 3);
    for (int i = 0; i < 2; i++) {
        r = world_send(w, i);
        world_run_ms(w, 1000);
        expect_ok(r, 0);
    }
    world_settle(w);
    ck_assert_int_eq(gone->report.err, KP_ETIMEDOUT);
    ck_assert_int_ne(gone->report.stored, KP_STORED_YES);
    ck_assert_int_eq(gone->reported_ns - gone->returned_ns, 3000 * MS);
    for (int i = 0; i < 20; i++) {
        r = world_send_what(w, &any);
        world_run_ms(w, 100);
        world_expect(r, KP_OK, KP_OK, KP_STORED_YES, WORLD_ANY_OFFSET);
        ck_assert_int_lt(r->report.partition, 2);
    }
    world_forgive(w, true, false);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- producers that are forgotten -- */

/* D14, D16: the brokers have forgotten the producer: after a day of nothing to
 * do, after all that it had stored was deleted, or with records on their way.  It
 * goes on, and nothing is lost or twice. */
START_TEST(a_forgotten_producer_goes_on)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", SINGLES)});
    struct kb_cluster *c;
    struct world_record *r;

    (void)world_send_many(w, 0, 3, 0);
    world_settle(w);
    if (_i == 0)
        world_run_ms(w, 25 * HOUR_MS);
    c = world_cluster(w);
    if (_i == 1)
        kb_trim(c, "t", 0, kb_high_watermark(c, "t", 0));
    if (_i != 2)
        kb_forget_producer(c, "t", 0, -1);
    r = world_send_many(w, 0, 10, 0);
    if (_i == 2) {
        world_run_until_attempts(w, 5);
        kb_forget_producer(world_cluster(w), "t", 0, -1);
    }
    world_settle(w);
    for (uint32_t i = 0; i < 10; i++)
        expect_ok(world_record(w, r->id + i), 3 + (int64_t)i);
    ck_assert_str_eq(world_log(w, "t", 0),
                     _i == 1 ? "3 4 5 6 7 8 9 10 11 12"
                             : "0 1 2 3 4 5 6 7 8 9 10 11 12");
    world_forgive(w, _i == 1, false); /* what was deleted is deleted */
    world_check(w);
    world_end(w);
}
END_TEST

/* -- retries -- */

/* D20: the attempts are used up with an unknown fate among them, first or last:
 * the record is reported with the last error, its numbers are the same all the
 * time, and nobody gets them after it. */
static const struct {
    const char *first, *second;
    kp_err err, cause;
    const char *log;
} fates[] = {
    {"answer=close", "error=19", KP_NOT_ENOUGH_REPLICAS, KP_EDISCONNECT,
     "0 1 2"},
    {"error=19", "answer=close", KP_EDISCONNECT, KP_NOT_ENOUGH_REPLICAS,
     "0 1 2"},
    {"error=19", "ignore answer=close", KP_EDISCONNECT, KP_NOT_ENOUGH_REPLICAS,
     "0 2"},
    {"error=7", "error=19", KP_NOT_ENOUGH_REPLICAS, KP_REQUEST_TIMED_OUT,
     "0 2"},
};

START_TEST(attempts_used_up_between_unknown_fates)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST, "retries", "1")});
    struct world_record *r;
    char line[100];

    (void)world_send(w, 0);
    world_settle(w);
    (void)snprintf(line, sizeof(line), "api=produce count=1 %s",
                   fates[_i].first);
    (void)world_rule(w, line);
    (void)snprintf(line, sizeof(line), "api=produce skip=1 count=1 %s",
                   fates[_i].second);
    (void)world_rule(w, line);
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, fates[_i].err, fates[_i].cause, KP_STORED_MAYBE, -1);
    ck_assert_uint_eq(r->callbacks, 1);
    ck_assert_uint_eq(world_attempts(w), 3);
    for (size_t i = 1; i < 3; i++) {
        ck_assert_int_eq(header(w, i)->producer_epoch, 0);
        ck_assert_int_eq(header(w, i)->base_sequence, 1);
    }
    r = world_send(w, 0);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, WORLD_ANY_OFFSET);
    ck_assert_int_eq(last(w)->producer_epoch, 1);
    ck_assert_int_eq(last(w)->base_sequence, 0);
    ck_assert_str_eq(world_log(w, "t", 0), fates[_i].log);
    world_check(w);
    world_end(w);
}
END_TEST

/* F11: a quota of 10,000 bytes a second, of which a second's may come at once: 100
 * kB take nine more, and nothing fails or is sent twice. */
START_TEST(a_quota_is_kept)
{
    struct world *w = world_begin(&(struct world_options){
        .settings =
            WORLD_SETTINGS("linger.ms", "0", "request.timeout.ms", "2000")});
    struct world_record *r;
    int64_t began_ns;

    (void)world_send(w, 0);
    world_settle(w);
    ck_assert(kb_set(world_cluster(w), "quota", "10000"));
    world_run_ms(w, 10000);
    began_ns = world_now_ns(w);
    r = world_send_many(w, 0, 100, 1000);
    world_settle(w);
    for (uint32_t i = 0; i < 100; i++)
        expect_ok(world_record(w, r->id + i), 1 + (int64_t)i);
    r = world_send(w, 0); /* when the last throttling is over */
    world_settle(w);
    expect_ok(r, 101);
    ck_assert_int_ge(world_now_ns(w) - began_ns, 8500 * MS);
    ck_assert_int_le(world_now_ns(w) - began_ns, 10500 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- leaders that die -- */

/* D23: the leader dies before anybody has a copy.  With acks=1 it had said yes,
 * and the record is gone, as is documented; with acks=all it had not, and the
 * record is stored by its successor. */
START_TEST(a_leader_that_dies_with_the_only_copy)
{
    bool all = _i == 1;
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .replication = 2,
        .settings = WORLD_SETTINGS(FAST, "acks", all ? "all" : "1")});
    int32_t old = kb_leader(world_cluster(w), "t", 0);
    struct world_record *r, *next;

    (void)world_send(w, 0);
    world_settle(w);
    world_run_ms(w, 1000);
    ck_assert(kb_set(world_cluster(w), "replication.delay.ms", "50"));
    r = world_send(w, 0);
    world_run_ms(w, 10);
    ck_assert_int_eq(r->reported, !all);
    kb_node_stop(world_cluster(w), old, false, world_now_ns(w));
    world_settle(w);
    expect_ok(r, 1);
    ck_assert_int_ne(kb_leader(world_cluster(w), "t", 0), old);
    next = world_send(w, 0);
    world_settle(w);
    expect_ok(next, all ? 2 : 1);
    ck_assert_str_eq(world_log(w, "t", 0), all ? "0 1 2" : "0 2");
    world_forgive(w, !all, false);
    world_check(w);
    world_end(w);
}
END_TEST

/* F04: all are away for half of the delivery timeout: all is delivered. */
START_TEST(all_brokers_away_for_half_the_deadline)
{
    struct world *w = world_begin(
        &(struct world_options){.nodes = 3,
                                .partitions = 3,
                                .replication = 3,
                                .settings = WORLD_SETTINGS("linger.ms", "5")});

    for (int i = 0; i < 1200; i++) {
        if (i == 10)
            for (int32_t n = 1; n <= 3; n++)
                kb_node_stop(world_cluster(w), n, false, world_now_ns(w));
        if (i == 610)
            for (int32_t n = 1; n <= 3; n++)
                kb_node_start(world_cluster(w), n, KB_KEEP_STATE,
                              world_now_ns(w));
        (void)world_send(w, i % 3);
        world_run_ms(w, 100);
    }
    world_settle(w);
    for (uint32_t i = 0; i < 1200; i++)
        expect_ok(world_record(w, i), i / 3);
    world_check(w);
    world_end(w);
}
END_TEST

/* Two brokers fail, each in its own way: a report names what kept its own record,
 * whichever failed last. */
START_TEST(each_report_names_its_own_broker)
{
    struct world *w = world_begin(
        &(struct world_options){.nodes = 2,
                                .partitions = 2,
                                .seed = (uint64_t)_i,
                                .settings = WORLD_SETTINGS(FAST, SHORT)});
    int32_t refuses = kb_leader(world_cluster(w), "t", 0);
    struct world_record *a, *b;
    char line[80];

    (void)world_send(w, 0);
    (void)world_send(w, 1);
    world_settle(w);
    world_link(w, refuses)->refuses = true;
    (void)snprintf(line, sizeof(line),
                   "api=connect node=%d count=-1 answer=close",
                   (int)(3 - refuses));
    (void)world_rule(w, line);
    world_cut(w, -1, true);
    a = world_send(w, 0);
    b = world_send(w, 1);
    world_settle(w);
    world_expect(a, KP_ETIMEDOUT, KP_ECONNECT, KP_STORED_NO, -1);
    ck_assert_ptr_nonnull(strstr(a->text, "refused"));
    world_expect(b, KP_ETIMEDOUT, KP_EDISCONNECT, KP_STORED_NO, -1);
    ck_assert_ptr_nonnull(strstr(b->text, "closed the connection"));
    world_check(w);
    world_end(w);
}
END_TEST

/* -- machines that stand still -- */

static int64_t all_requests(struct world *w)
{
    return kb_requests(world_cluster(w), -1, -1);
}

/* O07: the process stands still for a minute with records everywhere: answered
 * meanwhile, never answered, queued behind a broker that is gone.  What had come
 * counts; the rest ends, once each, in the first moment; and nobody is stormed. */
START_TEST(a_minute_of_standing_still)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 3, .partitions = 3, .settings = WORLD_SETTINGS(FAST, SHORT)});
    struct world_record *answered, *unanswered, *queued, *r;
    int32_t dead = kb_leader(world_cluster(w), "t", 2);
    int64_t connects, requests, woken_ns;

    for (int i = 0; i < 3; i++)
        (void)world_send(w, i);
    world_settle(w);
    (void)world_rule(w, "api=produce partition=0 count=1 answer_ms=500");
    (void)world_rule(w, "api=produce partition=1 count=1 answer=none");
    world_link(w, dead)->refuses = true;
    world_cut(w, dead, true);
    world_run_ms(w, 500);
    answered = world_send(w, 0);
    unanswered = world_send(w, 1);
    queued = world_send_many(w, 2, 50, 100);
    world_run_ms(w, 100);
    connects = kb_connects(world_cluster(w), -1);
    requests = all_requests(w);
    world_hold(w, true);
    world_run_ms(w, 60000);
    ck_assert(!answered->reported && !unanswered->reported &&
              !queued->reported);
    woken_ns = world_now_ns(w);
    world_hold(w, false);
    world_run_ms(w, 1);
    expect_ok(answered, 1);
    world_expect(unanswered, KP_ETIMEDOUT, WORLD_ANY_CAUSE, KP_STORED_MAYBE,
                 -1);
    ck_assert_int_eq(unanswered->reported_ns, woken_ns);
    for (uint32_t i = 0; i < 50; i++)
        world_expect(world_record(w, queued->id + i), KP_ETIMEDOUT, KP_ECONNECT,
                     KP_STORED_NO, -1);
    world_run_ms(w, 1000);
    ck_assert_int_le(kb_connects(world_cluster(w), -1) - connects, 4);
    ck_assert_int_le(all_requests(w) - requests, 10);
    world_link(w, dead)->refuses = false;
    for (int i = 0; i < 3; i++) {
        r = world_send(w, i);
        world_settle(w);
        world_expect(r, KP_OK, KP_OK, KP_STORED_YES, WORLD_ANY_OFFSET);
    }
    for (uint32_t i = 0; i < world_record_count(w); i++)
        ck_assert_uint_eq(world_record(w, i)->callbacks, 1);
    world_check(w);
    world_end(w);
}
END_TEST

static void look_for_negative(void *arg, const kp_metric *m)
{
    const char **name = arg;

    if (m->value < 0 || m->value > 1e15)
        *name = m->name;
}

/* O08: the machine is suspended: for eight hours of everybody else's time, the
 * monotonic clock stands, and all connections are gone.  Nothing has become
 * older, nothing is negative, and the next record goes. */
START_TEST(a_machine_that_was_suspended)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SHORT)});
    struct world_record *under_way, *r;
    const char *negative = NULL;

    (void)world_send(w, 0);
    world_settle(w);
    ck_assert(kb_topic_set(world_cluster(w), "t",
                           "message.timestamp.after.max.ms",
                           "9223372036854775807"));
    (void)world_rule(w, "api=produce count=1 answer=none");
    under_way = world_send(w, 0);
    world_run_ms(w, 5);
    world_jump_wall_ms(w, _i == 0 ? 8 * HOUR_MS : -8 * HOUR_MS);
    world_cut(w, -1, true);
    r = world_send(w, 0);
    world_settle(w);
    expect_ok(under_way, 1);
    expect_ok(r, 2);
    ck_assert_int_le(r->reported_ns - r->called_ns, 200 * MS);
    kp_metrics(world_producer(w), look_for_negative, &negative);
    ck_assert_msg(negative == NULL, "%s", negative);
    world_check(w);
    world_end(w);
}
END_TEST

/* O09: others have the processor for five seconds, again and again, while
 * records flow: what is late is late, and nothing is wrong. */
START_TEST(five_seconds_without_a_processor)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .settings =
            WORLD_SETTINGS("linger.ms", "5", "request.timeout.ms", "2000")});

    for (int i = 0; i < 2000; i++) {
        if (i % 500 == 100)
            world_hold(w, true);
        if (i % 500 == 350) /* 20 ms each */
            world_hold(w, false);
        if (i % 40 == 0)
            (void)world_rule(w, "api=produce count=1 error=7 append");
        (void)world_send(w, i % 2);
        world_run_ms(w, 20);
    }
    world_hold(w, false);
    world_settle(w);
    for (uint32_t i = 0; i < 2000; i++)
        expect_ok(world_record(w, i), i / 2);
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *cluster_faults_suite(void)
{
    Suite *s = suite_create("cluster_faults");
    TCase *t = tcase_create("cluster_faults");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_broker_that_became_too_old);
    tcase_add_test(t, each_broker_in_its_own_version);
    tcase_add_test(t, no_leader_for_too_long);
    tcase_add_test(t, keys_move_once);
    tcase_add_test(t, a_topic_made_again_with_fewer_partitions);
    tcase_add_loop_test(t, a_forgotten_producer_goes_on, 0, 3);
    tcase_add_loop_test(t, attempts_used_up_between_unknown_fates, 0, 4);
    tcase_add_test(t, a_quota_is_kept);
    tcase_add_loop_test(t, a_leader_that_dies_with_the_only_copy, 0, 2);
    tcase_add_test(t, all_brokers_away_for_half_the_deadline);
    tcase_add_loop_test(t, each_report_names_its_own_broker, 0, 5);
    tcase_add_test(t, a_minute_of_standing_still);
    tcase_add_loop_test(t, a_machine_that_was_suspended, 0, 2);
    tcase_add_test(t, five_seconds_without_a_processor);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(cluster_faults_suite)
