/* SPDX-License-Identifier: BSD-2-Clause */
/* retry_signal_test.c - event loops that sleep on their queue's descriptor after
 * a refused KP_NOWAIT send, and on nothing else: each must be told whenever it
 * may try again.
 *
 * A loop here never sends unless it is told.  Loops live in a world, where no
 * time passes that nobody needs, so a signal that is lost is one that never
 * comes; what real threads may do to each other meanwhile is in
 * public_queue_test. */
#include <poll.h>
#include <string.h>

#include "include/kp/errors.h"
#include "lib/base/rand.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define MS KP_NS_PER_MS
#define LOOPS 6

struct loop {
    struct world *w;
    kp_cq *queue;
    const char *topic;
    int32_t partition; /* -1: any */
    int32_t size;      /* of a value */
    uint32_t sent, want, ended;
    bool refused; /* it sleeps */
    kp_err why;
    uint32_t told; /* how often it woke */
};

static void loop_init(struct loop *l, struct world *w, const char *topic)
{
    *l = (struct loop){.w = w, .topic = topic, .partition = -1, .size = 100,
                       .want = 1};
    ck_assert_int_eq(kp_cq_create(&l->queue, NULL), KP_OK);
    (void)kp_cq_fd(l->queue);
}

static bool is_readable(const struct loop *l)
{
    struct pollfd p = {.fd = kp_cq_fd(l->queue), .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void take_reports(struct loop *l)
{
    l->ended += (uint32_t)world_poll_other(l->w, l->queue);
}

/* As much as goes without waiting. */
static void send_some(struct loop *l)
{
    struct world_what what = {.topic = l->topic,
                              .partition = l->partition,
                              .size = l->size,
                              .flags = WORLD_QUEUE | WORLD_NOWAIT,
                              .queue = l->queue};

    l->refused = false;
    while (l->sent < l->want && !l->refused) {
        const struct world_record *r = world_send_what(l->w, &what);

        if (r->state == WORLD_TAKEN) {
            l->sent++;
        } else {
            l->refused = true;
            l->why = r->refused;
        }
    }
}

/* What the loop does when its poll(2) returns. */
static void look(struct loop *l)
{
    if (!is_readable(l))
        return;
    l->told++;
    take_reports(l);
    send_some(l);
}

static bool is_over(struct world *w, void *arg)
{
    struct loop *l = arg;

    (void)w;
    look(l);
    return l->ended >= l->want;
}

/* Everything that was taken. */
static void all_stored(struct world *w)
{
    for (uint32_t i = 0; i < world_record_count(w); i++)
        if (world_record(w, i)->state == WORLD_TAKEN)
            ck_assert_int_eq(world_record(w, i)->report.err, KP_OK);
    world_check(w);
}

static void loop_fini(struct loop *l)
{
    take_reports(l);
    kp_cq_destroy(l->queue);
}

/* -- topics -- */

START_TEST(a_topic_that_appears)
{
    struct world *w = world_begin(&(struct world_options){.partitions = -1});
    struct loop l;

    loop_init(&l, w, "t");
    send_some(&l);
    ck_assert_int_eq(l.why, KP_EMETADATA);
    world_run_ms(w, 5000);
    ck_assert_int_eq(kb_topic_create(world_cluster(w), "t", 1, 1,
                                     world_now_ns(w)), 0);
    ck_assert(world_run_until(w, is_over, &l, 3000));
    all_stored(w);
    loop_fini(&l);
    world_end(w);
}
END_TEST

/* The client asks for a name as long as somebody does, and a while longer: when
 * it stops, who sleeps is told, and by asking again keeps it asked for. */
START_TEST(a_topic_that_appears_after_an_hour)
{
    struct world *w = world_begin(&(struct world_options){.partitions = -1});
    struct loop l;

    loop_init(&l, w, "t");
    send_some(&l);
    (void)world_run_until(w, is_over, &l, 3600 * 1000);
    ck_assert_uint_eq(l.sent, 0);
    /* that is no reason to wake all the time */
    ck_assert_uint_le(l.told, 3600 / 60 + 1);
    ck_assert_int_eq(kb_topic_create(world_cluster(w), "t", 1, 1,
                                     world_now_ns(w)), 0);
    ck_assert(world_run_until(w, is_over, &l, 5000));
    all_stored(w);
    loop_fini(&l);
    world_end(w);
}
END_TEST

START_TEST(a_partition_that_appears)
{
    struct world *w = world_begin(&(struct world_options){.partitions = 2});
    struct loop l;

    loop_init(&l, w, "t");
    l.partition = 2;
    send_some(&l);
    ck_assert_int_eq(l.why, KP_EMETADATA);
    (void)world_run_until(w, is_over, &l, 1000);
    ck_assert_uint_eq(l.sent, 0);
    ck_assert_int_eq(kb_topic_grow(world_cluster(w), "t", 3, world_now_ns(w)),
                     0);
    ck_assert(world_run_until(w, is_over, &l, 5000));
    all_stored(w);
    loop_fini(&l);
    world_end(w);
}
END_TEST

/* The client gives up asking for a partition after max.block.ms too. */
START_TEST(a_partition_that_appears_after_an_hour)
{
    struct world *w = world_begin(&(struct world_options){.partitions = 2});
    struct loop l;

    loop_init(&l, w, "t");
    l.partition = 2;
    send_some(&l);
    (void)world_run_until(w, is_over, &l, 3600 * 1000);
    ck_assert_uint_eq(l.sent, 0);
    ck_assert_uint_le(l.told, 3600 / 60 + 1);
    ck_assert_int_eq(kb_topic_grow(world_cluster(w), "t", 3, world_now_ns(w)),
                     0);
    ck_assert(world_run_until(w, is_over, &l, 5000));
    all_stored(w);
    loop_fini(&l);
    world_end(w);
}
END_TEST

/* -- memory -- */

/* Nothing is on its way, all lingers: the refused send is a reason to send. */
START_TEST(memory_that_lingers)
{
    struct world *w = world_begin(&(struct world_options){
        .partitions = 8,
        .settings = WORLD_SETTINGS("buffer.memory", "200000", "linger.ms",
                                   "60000", "batch.size", "100000")});
    struct loop small, large;

    loop_init(&small, w, "t");
    small.size = 3000;
    small.want = 200;
    send_some(&small);
    ck_assert_int_eq(small.why, KP_EBUFFER);
    loop_init(&large, w, "t");
    large.partition = 3;
    large.size = 90000;
    large.want = 3;
    send_some(&large);
    ck_assert_int_eq(large.why, KP_EBUFFER);
    /* the last batches may linger; all is taken long before */
    for (int i = 0; i < 2000; i++) {
        world_run_ms(w, 1);
        look(&small);
        look(&large);
    }
    ck_assert_uint_eq(large.sent, large.want);
    ck_assert_uint_eq(small.sent, small.want);
    world_run_ms(w, 61000);
    loop_fini(&small);
    loop_fini(&large);
    ck_assert_uint_eq(small.ended + large.ended, 203);
    all_stored(w);
    world_end(w);
}
END_TEST

/* -- the end -- */

/* A loop that sleeps is told that there is nothing more to wait for. */
START_TEST(close_tells_who_waits)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("buffer.memory", "65536")});
    struct loop name, partition, memory;

    loop_init(&name, w, "unheard-of");
    loop_init(&partition, w, "t");
    partition.partition = 7;
    loop_init(&memory, w, "t");
    memory.want = 1000;
    memory.size = 3000;
    world_link(w, 1)->stall_to = true;
    send_some(&name);
    send_some(&partition);
    send_some(&memory);
    ck_assert_int_eq(memory.why, KP_EBUFFER);
    world_run_ms(w, 100);
    ck_assert(!is_readable(&name));
    ck_assert(!is_readable(&partition));
    ck_assert(!is_readable(&memory));
    (void)world_close(w, KP_FOREVER);
    ck_assert(is_readable(&name));
    ck_assert(is_readable(&partition));
    ck_assert(is_readable(&memory));
    look(&name);
    look(&partition);
    look(&memory);
    ck_assert_int_eq(name.why, KP_ECLOSED);
    ck_assert_int_eq(partition.why, KP_ECLOSED);
    ck_assert_int_eq(memory.why, KP_ECLOSED);
    world_link(w, 1)->stall_to = false;
    world_run_ms(w, 5000);
    loop_fini(&name);
    loop_fini(&partition);
    loop_fini(&memory);
    world_settle(w);
    world_end(w);
}
END_TEST

START_TEST(a_fatal_error_tells_who_waits)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0")});
    struct loop name;

    loop_init(&name, w, "unheard-of");
    send_some(&name);
    world_run_ms(w, 100);
    ck_assert(!is_readable(&name));
    (void)world_rule(w, "api=produce count=1 error=31");
    (void)world_send(w, 0);
    world_settle(w);
    ck_assert(is_readable(&name));
    look(&name);
    ck_assert_int_eq(name.why, KP_CLUSTER_AUTHORIZATION_FAILED);
    loop_fini(&name);
    world_end(w);
}
END_TEST

/* -- everything at once, decided by a seed -- */

struct weather {
    struct world *w;
    struct rng rng;
    struct loop loop[LOOPS];
    int32_t partitions;
    bool second; /* the second topic is there */
};

static uint32_t below(struct weather *x, uint32_t n)
{
    return (uint32_t)(kp__rng_next(&x->rng) % n);
}

static void disturb(struct weather *x)
{
    struct kb_cluster *c = world_cluster(x->w);
    int32_t node = 1 + (int32_t)below(x, 2);

    switch (below(x, 8)) {
    case 0:
        world_cut(x->w, node, below(x, 2) != 0);
        break;
    case 1:
        if (kb_node_up(c, 1) && kb_node_up(c, 2))
            kb_node_stop(c, node, false, world_now_ns(x->w));
        break;
    case 2:
        if (!kb_node_up(c, node))
            kb_node_start(c, node, KB_KEEP_STATE, world_now_ns(x->w));
        break;
    case 3:
        if (x->partitions < 6)
            (void)kb_topic_grow(c, "t", ++x->partitions, world_now_ns(x->w));
        break;
    case 4:
        if (!x->second)
            (void)kb_topic_create(c, "second", 2, 1, world_now_ns(x->w));
        x->second = true;
        break;
    case 5:
        world_link(x->w, node)->stall_to ^= true;
        break;
    default:
        break;
    }
}

static void heal(struct weather *x)
{
    struct kb_cluster *c = world_cluster(x->w);

    for (int32_t node = 1; node <= 2; node++) {
        world_link(x->w, node)->stall_to = false;
        if (!kb_node_up(c, node))
            kb_node_start(c, node, KB_KEEP_STATE, world_now_ns(x->w));
    }
    if (x->partitions < 6)
        (void)kb_topic_grow(c, "t", 6, world_now_ns(x->w));
    if (!x->second)
        (void)kb_topic_create(c, "second", 2, 1, world_now_ns(x->w));
}

static void make_loops(struct weather *x)
{
    static const int32_t sizes[] = {20, 400, 3000, 20000, 60000};

    for (int i = 0; i < LOOPS; i++) {
        struct loop *l = &x->loop[i];

        loop_init(l, x->w, below(x, 4) == 0 ? "second" : "t");
        l->size = sizes[below(x, 5)];
        l->want = 20 + below(x, 100);
        if (below(x, 2) == 0)
            l->partition = (int32_t)below(x, l->topic[0] == 't' ? 6 : 2);
        send_some(l);
    }
}

static void look_at_all(struct weather *x)
{
    for (int i = 0; i < LOOPS; i++)
        look(&x->loop[i]);
}

/* Some records may run out of time: they end all the same. */
START_TEST(whatever_happens)
{
    static const char *const lingers[] = {"0", "5", "100", "20000"};
    struct weather x = {.partitions = 2};

    kp__rng_seed(&x.rng, (uint64_t)_i);
    x.w = world_begin(&(struct world_options){
        .nodes = 2,
        .partitions = 2,
        .seed = (uint64_t)_i,
        .settings = WORLD_SETTINGS(
            "buffer.memory", below(&x, 2) == 0 ? "100000" : "300000",
            "linger.ms", lingers[below(&x, 4)], "compression.type",
            below(&x, 2) == 0 ? "none" : "lz4", "request.timeout.ms", "2000",
            "delivery.timeout.ms", "30000", "reconnect.backoff.max.ms", "500",
            "max.block.ms", "5000")});
    make_loops(&x);
    for (int i = 0; i < 300; i++) {
        world_run_until_ns(x.w,
                           world_now_ns(x.w) + below(&x, 60) * MS / 2);
        if (below(&x, 10) == 0)
            disturb(&x);
        look_at_all(&x);
    }
    heal(&x);
    for (int i = 0; i < 30000; i++) {
        world_run_until_ns(x.w, world_now_ns(x.w) + MS);
        look_at_all(&x);
    }
    for (int i = 0; i < LOOPS; i++)
        if (x.loop[i].sent < x.loop[i].want)
            world_fail(x.w,
                       "loop %d (%s, partition %d, %d bytes) was refused with "
                       "%s and has heard nothing: %u of %u, woken %u times",
                       i, x.loop[i].topic, (int)x.loop[i].partition,
                       (int)x.loop[i].size, kp_err_name(x.loop[i].why),
                       x.loop[i].sent, x.loop[i].want, x.loop[i].told);
    world_run_ms(x.w, 31000);
    for (int i = 0; i < LOOPS; i++) {
        loop_fini(&x.loop[i]);
        ck_assert_uint_eq(x.loop[i].ended, x.loop[i].want);
    }
    for (uint32_t i = 0; i < world_record_count(x.w); i++) {
        const struct world_record *r = world_record(x.w, i);

        ck_assert_uint_eq(r->polled, r->state == WORLD_TAKEN ? 1 : 0);
    }
    world_end(x.w);
}
END_TEST

static Suite *retry_signal_suite(void)
{
    Suite *s = suite_create("retry_signal");
    TCase *t = tcase_create("retry_signal");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_topic_that_appears);
    tcase_add_test(t, a_topic_that_appears_after_an_hour);
    tcase_add_test(t, a_partition_that_appears);
    tcase_add_test(t, a_partition_that_appears_after_an_hour);
    tcase_add_test(t, memory_that_lingers);
    tcase_add_test(t, close_tells_who_waits);
    tcase_add_test(t, a_fatal_error_tells_who_waits);
    tcase_add_loop_test(t, whatever_happens, 0, 20);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(retry_signal_suite)
