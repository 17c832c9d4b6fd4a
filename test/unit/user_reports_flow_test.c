/* SPDX-License-Identifier: BSD-2-Clause */
/* What users have reported of how fast records go: what waits for whom, how many
 * requests and wake-ups that takes, and what lies in memory; replayed against a
 * whole client and cluster under a stopped clock.  Speeds are counts here.  The
 * ids are those of ../USER_REPORTS.md. */
#include <unistd.h>

#include "lib/base/rand.h"
#include "test/support/world_state.h"
#include "test/unit/user_reports.h"

/* -- wake-ups -- */

/* How often the bell was rung since it was last heard. */
static uint64_t rings(const struct io_bell *b)
{
    uint64_t n = 0;
    char bytes[4096];

    if (b->wakeup.read_fd == b->wakeup.write_fd) {
        if (read(b->wakeup.read_fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
            n = 0;
    } else {
        ssize_t got = read(b->wakeup.read_fd, bytes, sizeof(bytes));

        n = got > 0 ? (uint64_t)got : 0;
    }
    return n;
}

/* UR-013, C11: the I/O thread gets no processor while 10,000 records are sent:
 * it is rung once, and no sender waits for it. */
START_TEST(one_wakeup_stands_for_many)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 8, .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct io_bell *bell = &w->p->bell;

    for (int32_t i = 0; i < 8; i++)
        (void)world_send(w, i);
    world_settle(w);
    world_run_ms(w, 1000);
    world_hold(w, true);
    ck_assert_uint_eq(rings(bell), 0);
    for (int i = 0; i < 10000; i++) {
        struct world_record *r = world_send_what(
            w, &(struct world_what){.partition = i % 8, .flags = 0});

        ck_assert_int_eq(r->state, WORLD_TAKEN);
        ck_assert_int_eq(r->returned_ns, r->called_ns);
    }
    ck_assert_uint_eq(rings(bell), 1);
    kp__wakeup_set(&bell->wakeup); /* as it was */
    world_hold(w, false);
    world_settle(w);
    world_run_ms(w, 100);
    ck_assert_int_eq(kb_log_end(world_cluster(w), "t", 0), 1251);
    world_end(w);
}
END_TEST

/* -- linger -- */

/* T1, UR-033: records at random, now and then in bursts: none waits longer for a
 * broker that is free than its linger. */
START_TEST(no_record_outwaits_its_linger)
{
    char linger[2] = {(char)('1' + _i), '\0'};
    struct world *w = world_begin(&(struct world_options){
        .partitions = 3,
        .seed = (uint64_t)_i,
        .settings = WORLD_SETTINGS("linger.ms", linger)});
    struct rng rng;

    kp__rng_seed(&rng, (uint64_t)_i);
    for (int32_t i = 0; i < 3; i++)
        (void)world_send(w, i);
    world_settle(w);
    for (int i = 0; i < 6000; i++) {
        (void)world_send(w, (int32_t)kp__rng_below(&rng, 3));
        if (kp__rng_below(&rng, 4) != 0)
            continue;
        world_run_until_ns(w, world_now_ns(w) +
                                  kp__rng_below(&rng, 100) * MS / 10);
        if (kp__rng_below(&rng, 100) == 0)
            world_run_ms(w, kp__rng_below(&rng, 500));
    }
    world_settle(w);
    for (uint32_t i = 3; i < world_record_count(w); i++) {
        const struct world_record *r = world_record(w, i);

        ck_assert_int_eq(r->report.err, KP_OK);
        /* and a millisecond there and one back */
        ck_assert_int_le(r->reported_ns - r->called_ns, (1 + _i + 2) * MS);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-032: records nearly as large as a batch do not wait for the linger. */
START_TEST(large_records_do_not_linger)
{
    struct world *w = begin_with(WORLD_SETTINGS("linger.ms", "1000"));
    struct world_record *r, *last;

    (void)world_send(w, 0);
    world_run_ms(w, 2000);
    r = world_send_many(w, 0, 20, 16384 * 9 / 10);
    last = world_record(w, r->id + 19);
    world_run_ms(w, 200);
    for (uint32_t i = 0; i < 19; i++)
        ck_assert_int_eq(world_record(w, r->id + i)->report.err, KP_OK);
    /* the last has no successor: a flush ends its wait */
    ck_assert(!last->reported);
    (void)world_flush(w, KP_FOREVER);
    world_run_ms(w, 10);
    all_stored(w, r, 20, 1);
    world_end(w);
}
END_TEST

/* -- threads that wait for each record -- */

/* UR-028: 64 of them: they share batches, of 20 and more on average. */
START_TEST(waiting_threads_share_batches)
{
    enum { THREADS = 64, EACH = 40 };
    static const char *const lingers[] = {"1", "2", "5"};
    struct world *w = begin_with(WORLD_SETTINGS("linger.ms", lingers[_i]));
    struct world_record *now[THREADS] = {NULL};
    size_t before;
    int left = THREADS * EACH, sent[THREADS] = {0};

    (void)world_send(w, 0);
    world_settle(w);
    before = world_attempts(w);
    while (left > 0) {
        for (int i = 0; i < THREADS; i++) {
            if (sent[i] == EACH || (now[i] != NULL && !now[i]->reported))
                continue;
            now[i] = world_send(w, 0);
            sent[i]++;
            left--;
            /* they do not all come at the same moment */
            world_run_until_ns(w, world_now_ns(w) + MS / 50);
        }
        world_run_until_ns(w, world_now_ns(w) + MS / 50);
    }
    world_settle(w);
    ck_assert_uint_le(world_attempts(w) - before, THREADS * EACH / 20);
    ck_assert(metric(w, "records-per-request-avg") >= 20);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-029, T8: one thread that waits for each, with the defaults: linger and a
 * round trip each, so more than a hundred a second. */
START_TEST(one_thread_that_waits_for_each)
{
    struct world *w = world_begin(&(struct world_options){0});
    int64_t began;

    (void)world_send(w, 0);
    world_settle(w);
    began = world_now_ns(w);
    for (int i = 0; i < 200; i++) {
        struct world_record *r = world_send(w, 0);

        world_settle(w);
        ck_assert_int_eq(r->report.err, KP_OK);
    }
    ck_assert_int_le(world_now_ns(w) - began, 200 * (5 + 2) * MS);
    world_end(w);
}
END_TEST

/* -- memory -- */

/* Q1: a buffer of which only a part fits at a time, and nobody ever asks for a
 * report: memory comes back by itself. */
START_TEST(memory_comes_back_by_itself)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 3,
        .settings =
            WORLD_SETTINGS("linger.ms", "5", "buffer.memory", "131072")});

    for (int i = 0; i < 3000; i++) {
        struct world_record *r = world_send_what(
            w,
            &(struct world_what){.partition = i % 3, .size = 1000, .flags = 0});

        returns(w, r);
        ck_assert_int_eq(r->state, WORLD_TAKEN);
    }
    world_run_ms(w, 1000);
    for (int32_t i = 0; i < 3; i++)
        ck_assert_int_eq(kb_log_end(world_cluster(w), "t", i), 1000);
    ck_assert(metric(w, "buffer-available-bytes") == 131072);
    ck_assert(metric(w, "buffer-exhausted-total") == 0);
    world_end(w);
}
END_TEST

/* UR-010: nobody answers: sends that must not wait are taken until the memory
 * is gone, and refused with that; nothing else bounds them. */
START_TEST(only_memory_refuses)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 4,
        .settings =
            WORLD_SETTINGS("linger.ms", "0", "buffer.memory", "4000000")});
    struct world_what what = {.size = 50, .flags = WORLD_NOWAIT};
    struct world_record *r;
    uint32_t taken = 0;

    for (int32_t i = 0; i < 4; i++)
        (void)world_send(w, i);
    world_settle(w);
    world_link(w, 1)->stall_to = true;
    do {
        what.partition = (int32_t)taken % 4;
        r = world_send_what(w, &what);
        ck_assert_int_eq(r->returned_ns, r->called_ns);
        if (++taken % 500 == 0)
            world_run_ms(w, 1);
    } while (r->state == WORLD_TAKEN);
    ck_assert_int_eq(r->refused, KP_EBUFFER);
    /* 60 bytes each, and half of the room at least for records */
    ck_assert_uint_ge(taken, 4000000 / 60 / 2);
    ck_assert(metric(w, "buffer-available-bytes") < 4 * 65536);
    world_link(w, 1)->stall_to = false;
    world_settle(w);
    world_run_ms(w, 1000);
    ck_assert(metric(w, "buffer-available-bytes") == 4000000);
    world_end(w);
}
END_TEST

/* UR-015: one record takes all there is, and fifty small ones wait behind it:
 * when it is stored all of them go on, at once. */
START_TEST(what_a_large_record_leaves_serves_fifty)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 2,
        .settings = WORLD_SETTINGS("linger.ms", "0", "buffer.memory", "500000",
                                   "max.request.size", "600000")});
    struct world_record *large, *small[50];

    (void)world_rule(w, "api=produce count=1 process_ms=500");
    large = world_send_many(w, 0, 1, 490000);
    ck_assert_int_eq(large->state, WORLD_TAKEN);
    for (int i = 0; i < 50; i++) {
        small[i] = world_send_many(w, i % 2, 1, 2000);
        world_run_ms(w, 1);
    }
    ck_assert_int_eq(small[49]->state, WORLD_WAITING);
    ends(w, large);
    world_run_ms(w, 1);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(small[i]->state, WORLD_TAKEN);
    world_settle(w);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(small[i]->report.err, KP_OK);
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-017: a buffer for a few records, a linger of ten seconds: over in less than
 * one. */
START_TEST(a_full_buffer_ends_long_lingers)
{
    struct world *w =
        begin_with(WORLD_SETTINGS("linger.ms", "10000", "buffer.memory",
                                  "65536", "batch.size", "1000000"));

    for (int i = 0; i < 30; i++)
        returns(w, world_send_many(w, 0, 1, 12000));
    ck_assert_int_lt(world_now_ms(w), 1000);
    ck_assert_uint_ge(world_attempts(w), 4);
    world_settle(w);
    all_stored(w, world_record(w, 0), 30, 0);
    world_check(w);
    world_end(w);
}
END_TEST

/* -- batches -- */

/* Its first record has waited for half of five milliseconds at least. */
static void first_age(struct world *w, const struct world_attempt *a)
{
    const struct world_record *r = world_record(w, a->first_id);

    ck_assert_int_ge(a->at_ns - 1 * MS - r->called_ns, 5 * MS / 2);
}

/* C10: the same stream over 12 and over 120 partitions, of three and of eight
 * brokers: the requests are those of the brokers' lingers. */
START_TEST(requests_follow_brokers_not_partitions)
{
    static const int32_t partitions[] = {12, 120, 120};
    static const int nodes[] = {3, 3, 8};
    struct world *w = world_begin(
        &(struct world_options){.nodes = nodes[_i],
                                .partitions = partitions[_i],
                                .settings = WORLD_SETTINGS("linger.ms", "5")});
    uint32_t before;
    struct rng rng;

    kp__rng_seed(&rng, 10);
    for (int32_t i = 0; i < partitions[_i]; i++)
        (void)world_send(w, i);
    world_settle(w);
    before = world_requests(w);
    for (int i = 0; i < 2000; i++) {
        for (int k = 0; k < 10; k++)
            (void)world_send(
                w, (int32_t)kp__rng_below(&rng, (uint32_t)partitions[_i]));
        world_run_until_ns(w, world_now_ns(w) + MS / 2);
    }
    world_settle(w);
    /* a second, and one request of each broker each half of a linger at most */
    ck_assert_uint_le(world_requests(w) - before,
                      (uint32_t)nodes[_i] * 1000 * 2 / 5);
    /* and none of it at the cost of lingering */
    for (size_t i = 0; i < world_attempts(w); i++)
        first_age(w, world_attempt(w, i));
    world_check(w);
    world_end(w);
}
END_TEST

/* Z4: in a flood of records of any size no batch is larger than batch.size, and
 * none has room for another tenth. */
START_TEST(batches_are_full_in_a_flood)
{
    struct world *w = world_begin(&(struct world_options){
        .settings =
            WORLD_SETTINGS("linger.ms", "1000", "batch.size", "16384")});
    struct rng rng;

    kp__rng_seed(&rng, 4);
    for (int i = 0; i < 5000; i++)
        (void)world_send_many(w, 0, 1, 10 + (int)kp__rng_below(&rng, 1500));
    world_settle(w);
    ck_assert_uint_gt(world_attempts(w), 200);
    for (size_t i = 0; i < world_attempts(w); i++) {
        ck_assert_uint_le(world_attempt(w, i)->size, 16384);
        if (i + 1 < world_attempts(w))
            ck_assert_uint_ge(world_attempt(w, i)->size, 16384 * 9 / 10);
    }
    world_check(w);
    world_end(w);
}
END_TEST

/* UR-073: four partitions, of which one has a leader that is slow.  Evenly, if
 * that is asked for; else it gets less. */
START_TEST(a_slow_leader_gets_its_share_or_less)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 4,
        .partitions = 4,
        .settings = WORLD_SETTINGS("linger.ms", "0", "batch.size", "500",
                                   "partitioner.adaptive.partitioning.enable",
                                   _i == 0 ? "false" : "true")});
    uint32_t n[4] = {0}, count = 12000;
    int32_t slow = 0;

    for (int32_t i = 0; i < 4; i++)
        (void)world_send(w, i);
    world_settle(w);
    world_link(w, kb_leader(world_cluster(w), "t", slow))->to_ns = 100 * MS;
    for (uint32_t i = 0; i < count; i++) {
        (void)world_send_what(w, &(struct world_what){.partition = -1,
                                                      .size = 100,
                                                      .flags = WORLD_FUTURE});
        if (i % 5 == 4)
            world_run_ms(w, 1);
    }
    world_settle(w);
    for (uint32_t i = 4; i < count + 4; i++)
        n[world_record(w, i)->report.partition]++;
    for (int32_t i = 0; i < 4; i++) {
        if (_i == 0) {
            ck_assert_uint_ge(n[i], count / 4 * 92 / 100);
            ck_assert_uint_le(n[i], count / 4 * 108 / 100);
        } else if (i == slow) {
            ck_assert_uint_le(n[i], count / 4 / 2);
        } else {
            ck_assert_uint_ge(n[i], count / 4);
        }
    }
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *user_reports_flow_suite(void)
{
    Suite *s = suite_create("user_reports_flow");
    TCase *t = tcase_create("user_reports_flow");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, one_wakeup_stands_for_many);
    tcase_add_loop_test(t, no_record_outwaits_its_linger, 0, 5);
    tcase_add_test(t, large_records_do_not_linger);
    tcase_add_loop_test(t, waiting_threads_share_batches, 0, 3);
    tcase_add_test(t, one_thread_that_waits_for_each);
    tcase_add_test(t, memory_comes_back_by_itself);
    tcase_add_test(t, only_memory_refuses);
    tcase_add_test(t, what_a_large_record_leaves_serves_fifty);
    tcase_add_test(t, a_full_buffer_ends_long_lingers);
    tcase_add_loop_test(t, requests_follow_brokers_not_partitions, 0, 3);
    tcase_add_test(t, batches_are_full_in_a_flood);
    tcase_add_loop_test(t, a_slow_leader_gets_its_share_or_less, 0, 2);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(user_reports_flow_suite)
