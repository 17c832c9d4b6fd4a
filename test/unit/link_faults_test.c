/* SPDX-License-Identifier: BSD-2-Clause */
/* Ways to brokers that lead nowhere, are slow, come and go: the whole client
 * under a stopped clock.  The ids are those of ../FAULTS.md. */
#include "include/kp/errors.h"
#include "lib/base/rand.h"
#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define MS KP_NS_PER_MS
#define FAST \
    "linger.ms", "0", "retry.backoff.ms", "10", "retry.backoff.max.ms", "10", \
        "reconnect.backoff.ms", "10", "reconnect.backoff.max.ms", "10"
#define SHORT "request.timeout.ms", "2000"
#define ONCE "enable.idempotence", "false", "retries", "0"

static void warm_up(struct world *w, int partitions)
{
    for (int i = 0; i < partitions; i++)
        (void)world_send(w, i);
    world_settle(w);
}

static int64_t connects(struct world *w)
{
    return kb_connects(world_cluster(w), -1);
}

/* No socket is closed, and its other end does not hear or is not heard. */
static void stall(struct world *w, int32_t node, bool to, bool from)
{
    world_link(w, node)->stall_to = to;
    world_link(w, node)->stall_from = from;
}

static void all_ok(struct world *w)
{
    for (uint32_t i = 0; i < world_record_count(w); i++) {
        const struct world_record *r = world_record(w, i);

        world_expect(r, KP_OK, KP_OK, KP_STORED_YES, WORLD_ANY_OFFSET);
        ck_assert_uint_eq(r->callbacks, 1);
    }
    world_check(w);
}

/* -- silence -- */

static const struct {
    bool to, from;
} silences[] = {{true, false}, {false, true}, {true, true}};

/* A15, A16, A17: what is sent, what is answered, or both, get lost, and nobody
 * says so: the request's time-out tells, to the moment; what may have arrived is
 * sent again under its numbers, and is stored once. */
START_TEST(silence_ends_with_the_requests_time)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SHORT)});
    struct world_record *r;
    int64_t before;

    warm_up(w, 1);
    before = connects(w);
    stall(w, 1, silences[_i].to, silences[_i].from);
    r = world_send(w, 0);
    world_run_until_ns(w, r->called_ns + 2000 * MS - 1);
    ck_assert_uint_eq(world_attempts(w), silences[_i].to ? 1 : 2);
    ck_assert(!r->reported);
    world_run_ms(w, 1);
    stall(w, 1, false, false);
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_le(r->reported_ns - r->called_ns, 2100 * MS);
    ck_assert_int_gt(connects(w), before);
    ck_assert_uint_eq(world_attempts(w), 3);
    for (size_t i = 1; i < 3; i++) {
        ck_assert_int_eq(world_attempt(w, i)->header.producer_epoch, 0);
        ck_assert_int_eq(world_attempt(w, i)->header.base_sequence, 1);
    }
    ck_assert_str_eq(world_log(w, "t", 0), "0 1");
    world_check(w);
    world_end(w);
}
END_TEST

/* The same without another attempt: nobody can know. */
START_TEST(silence_is_a_maybe)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SHORT, ONCE)});
    struct world_record *r;

    warm_up(w, 1);
    stall(w, 1, silences[_i].to, silences[_i].from);
    r = world_send(w, 0);
    world_run_until_ns(w, r->called_ns + 2000 * MS - 1);
    ck_assert(!r->reported);
    world_run_ms(w, 1);
    world_expect(r, KP_REQUEST_TIMED_OUT, KP_OK, KP_STORED_MAYBE, -1);
    stall(w, 1, false, false);
    world_run_ms(w, 100);
    world_check(w);
    world_end(w);
}
END_TEST

/* A21: a socket that takes no more for as long as a request may take is given up.
 * Half of a frame was never acted upon; all of it may have been. */
START_TEST(a_peer_that_takes_no_more)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SHORT, ONCE)});
    struct world_record *r, *next;
    int64_t before;

    warm_up(w, 1);
    before = connects(w);
    stall(w, 1, true, false);
    world_link(w, 1)->window = _i == 0 ? 1500 : 10000;
    r = world_send_many(w, 0, 1, 3000);
    world_run_until_ns(w, r->called_ns + 2000 * MS - 1);
    ck_assert(!r->reported);
    world_run_ms(w, 1);
    if (_i == 0)
        world_expect(r, KP_EDISCONNECT, KP_OK, KP_STORED_NO, -1);
    else
        world_expect(r, KP_REQUEST_TIMED_OUT, KP_OK, KP_STORED_MAYBE, -1);
    stall(w, 1, false, false);
    world_link(w, 1)->window = 256 * 1024;
    next = world_send(w, 0);
    world_settle(w);
    world_expect(next, KP_OK, KP_OK, KP_STORED_YES, WORLD_ANY_OFFSET);
    ck_assert_int_gt(connects(w), before);
    world_run_ms(w, 5000);
    ck_assert_str_eq(world_log(w, "t", 0), _i == 0 ? "0 2" : "0 1 2");
    world_check(w);
    world_end(w);
}
END_TEST

/* ... and with retries it is stored, once. */
START_TEST(a_peer_that_takes_no_more_is_left)
{
    struct world *w = world_begin(
        &(struct world_options){.settings = WORLD_SETTINGS(FAST, SHORT)});
    struct world_record *r;

    warm_up(w, 1);
    stall(w, 1, true, false);
    world_link(w, 1)->window = _i == 0 ? 1500 : 10000;
    r = world_send_many(w, 0, 1, 3000);
    world_run_until_ns(w, r->called_ns + 2000 * MS);
    stall(w, 1, false, false);
    world_link(w, 1)->window = 256 * 1024;
    world_settle(w);
    world_expect(r, KP_OK, KP_OK, KP_STORED_YES, 1);
    ck_assert_int_le(r->reported_ns - r->called_ns, 2100 * MS);
    ck_assert_str_eq(world_log(w, "t", 0), "0 1");
    world_check(w);
    world_end(w);
}
END_TEST

/* -- connects -- */

/* A02: connects to one of two brokers never end: each attempt has its limit,
 * which grows, and the other broker's records do not notice. */
START_TEST(connects_that_never_end_hold_up_nobody)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .settings =
            WORLD_SETTINGS(FAST, "socket.connection.setup.timeout.ms", "500",
                           "socket.connection.setup.timeout.max.ms", "2000")});
    int32_t dead = kb_leader(world_cluster(w), "t", 0);
    struct world_record *stuck, *r;
    uint64_t before;

    warm_up(w, 2);
    world_link(w, dead)->silent = true;
    world_cut(w, dead, true);
    world_run_ms(w, 1);
    before = w->connects[dead];
    stuck = world_send(w, 0);
    for (int i = 0; i < 600; i++) {
        r = world_send(w, 1);
        world_run_ms(w, 10);
        ck_assert(r->reported);
        ck_assert_int_le(r->reported_ns - r->called_ns, 3 * MS);
    }
    ck_assert(!stuck->reported);
    /* 6 s: after half a second, one, two, two, each more or less a fifth */
    ck_assert_uint_ge(w->connects[dead] - before, 3);
    ck_assert_uint_le(w->connects[dead] - before, 6);
    world_link(w, dead)->silent = false;
    world_settle(w);
    all_ok(w);
    world_end(w);
}
END_TEST

/* -- links that come and go -- */

static void set_link(struct world *w, int32_t node, bool good, bool tells)
{
    world_link(w, node)->refuses = !good && tells;
    if (!good && tells)
        world_cut(w, node, true);
    if (!tells)
        stall(w, node, !good, !good);
}

/* A18: one of three is gone and back every 100 ms, with or without a word; to the
 * records of the others it makes no difference. */
START_TEST(one_of_three_flaps)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = 3, .partitions = 3, .settings = WORLD_SETTINGS(FAST)});
    int32_t flaps = kb_leader(world_cluster(w), "t", 0);

    warm_up(w, 3);
    for (int i = 0; i < 500; i++) {
        struct world_record *r[3];

        if (i % 10 == 0)
            set_link(w, flaps, i % 20 != 0, _i == 0);
        for (int p = 0; p < 3; p++)
            r[p] = world_send(w, p);
        world_run_ms(w, 10);
        for (int p = 0; p < 3; p++)
            if (kb_leader(world_cluster(w), "t", p) != flaps) {
                ck_assert(r[p]->reported);
                ck_assert_int_le(r[p]->reported_ns - r[p]->called_ns, 3 * MS);
            }
    }
    set_link(w, flaps, true, _i == 0);
    world_settle(w);
    all_ok(w);
    world_end(w);
}
END_TEST

#define NODES 5

static void shuffle(int32_t order[NODES], struct rng *rng)
{
    for (int32_t i = 0; i < NODES; i++)
        order[i] = i + 1;
    for (uint32_t i = NODES - 1; i > 0; i--) {
        uint32_t k = kp__rng_below(rng, i + 1);
        int32_t was = order[i];

        order[i] = order[k];
        order[k] = was;
    }
}

static void flow(struct world *w, struct rng *rng)
{
    int n = 1 + (int)kp__rng_below(rng, 30);

    for (int i = 0; i < n; i++) {
        (void)world_send(w, (int32_t)kp__rng_below(rng, NODES));
        world_run_ms(w, 1 + kp__rng_below(rng, 20));
    }
}

/* A20: links stop one after the other, and go again in another order, while
 * records flow. */
START_TEST(links_stop_and_go_in_another_order)
{
    struct world *w = world_begin(&(struct world_options){
        .nodes = NODES,
        .partitions = NODES,
        .replication = 3,
        .seed = (uint64_t)_i,
        .settings = WORLD_SETTINGS(FAST, "request.timeout.ms", "300",
                                   "batch.size", _i % 3 == 0 ? "0" : "16384")});
    int32_t order[NODES];
    bool tells[NODES + 1];
    struct rng rng;

    kp__rng_seed(&rng, (uint64_t)_i);
    for (int round = 0; round < 3; round++) {
        shuffle(order, &rng);
        for (int i = 0; i < NODES; i++) {
            tells[order[i]] = kp__rng_below(&rng, 2) == 0;
            set_link(w, order[i], false, tells[order[i]]);
            flow(w, &rng);
        }
        shuffle(order, &rng);
        for (int i = 0; i < NODES; i++) {
            set_link(w, order[i], true, tells[order[i]]);
            flow(w, &rng);
        }
    }
    world_settle(w);
    all_ok(w);
    world_end(w);
}
END_TEST

/* A28: the interface goes, and comes back with another address: connections end,
 * or say nothing more; for a while there is no way out; then all is delivered,
 * once and in order, over new connections. */
START_TEST(the_interface_goes_and_comes_back)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "retry.backoff.ms", "10",
                                   "request.timeout.ms", "1000")});
    uint64_t before;
    int64_t was;

    warm_up(w, 1);
    was = connects(w);
    before = w->connects[1];
    (void)world_send(w, 0); /* one is on its way */
    world_link(w, 1)->unreachable = true;
    if (_i == 0)
        world_cut(w, 1, true);
    else
        stall(w, 1, true, true);
    for (int i = 0; i < 50; i++) {
        (void)world_send(w, 0);
        world_run_ms(w, 100);
    }
    ck_assert_int_eq(connects(w), was);
    /* 50, 100, 200, 400, 800, 1000, ... ms, less a fifth; to the broker, and to
     * the bootstrap address */
    ck_assert_uint_ge(w->connects[1] - before, 3);
    ck_assert_uint_le(w->connects[1] - before, 2 * (5 + 5000 / 800));
    world_link(w, 1)->unreachable = false;
    stall(w, 1, false, false);
    world_settle(w);
    ck_assert_int_gt(connects(w), was);
    all_ok(w);
    world_end(w);
}
END_TEST

/* -- slow links -- */

static double metric_value;

static void keep_retries(void *arg, const kp_metric *m)
{
    if (strcmp(m->group, "producer-metrics") == 0 && strcmp(m->name, arg) == 0)
        metric_value = m->value;
}

/* A19: some 64 kbit/s, 200 ms there and back with jitter, and one time in three
 * nothing moves for a while, as when packets are sent again: it is slow, and
 * nothing fails, is tried again or connected anew. */
START_TEST(a_slow_and_lossy_link)
{
    char name[] = "record-retry-total";
    struct world *w = world_begin(
        &(struct world_options){.latency_ns = 100 * MS,
                                .seed = (uint64_t)_i,
                                .settings = WORLD_SETTINGS("linger.ms", "5")});
    struct world_link *l = world_link(w, 1);
    int64_t before;
    struct rng rng;

    kp__rng_seed(&rng, (uint64_t)_i);
    warm_up(w, 1);
    before = connects(w);
    l->window = 1600;
    for (int i = 0; i < 400; i++) {
        l->to_ns = (100 + kp__rng_below(&rng, 50)) * MS;
        l->from_ns = (100 + kp__rng_below(&rng, 50)) * MS;
        stall(w, 1, kp__rng_below(&rng, 3) == 0, kp__rng_below(&rng, 3) == 0);
        if (i % 2 == 0)
            (void)world_send_many(w, 0, 1, 100);
        world_run_ms(w, 50);
    }
    ck_assert_uint_gt(world_requests(w), 5); /* it goes on all the time */
    stall(w, 1, false, false);
    world_settle(w);
    ck_assert_int_eq(connects(w), before);
    kp_metrics(world_producer(w), keep_retries, name);
    ck_assert(metric_value == 0);
    all_ok(w);
    world_end(w);
}
END_TEST

static Suite *link_faults_suite(void)
{
    Suite *s = suite_create("link_faults");
    TCase *t = tcase_create("link_faults");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, silence_ends_with_the_requests_time, 0, 3);
    tcase_add_loop_test(t, silence_is_a_maybe, 0, 3);
    tcase_add_loop_test(t, a_peer_that_takes_no_more, 0, 2);
    tcase_add_loop_test(t, a_peer_that_takes_no_more_is_left, 0, 2);
    tcase_add_test(t, connects_that_never_end_hold_up_nobody);
    tcase_add_loop_test(t, one_of_three_flaps, 0, 2);
    tcase_add_loop_test(t, links_stop_and_go_in_another_order, 0, 40);
    tcase_add_loop_test(t, the_interface_goes_and_comes_back, 0, 2);
    tcase_add_loop_test(t, a_slow_and_lossy_link, 0, 10);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(link_faults_suite)
