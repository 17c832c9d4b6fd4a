/* SPDX-License-Identifier: BSD-2-Clause */
/* kp_metrics under a stopped clock: times are exact, and each rate is what its
 * total grew by, whatever goes wrong meanwhile. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define MS KP_NS_PER_MS

/* -- all metrics at one moment -- */

struct row {
    char key[160]; /* group/name, and the label beside client-id */
    double value;
};

struct table {
    struct row rows[256];
    size_t count;
};

static void add_row(void *arg, const kp_metric *m)
{
    struct table *t = arg;
    const char *label = "";

    ck_assert_uint_lt(t->count, 256);
    for (size_t i = 0; i < m->label_count; i++)
        if (strcmp(m->labels[i].name, "client-id") != 0)
            label = m->labels[i].value;
    (void)snprintf(t->rows[t->count].key, sizeof(t->rows[0].key), "%s/%s %s",
                   m->group, m->name, label);
    t->rows[t->count++].value = m->value;
}

static void read_all(struct world *w, struct table *t)
{
    t->count = 0;
    kp_metrics(world_producer(w), add_row, t);
}

static double at(const struct table *t, const char *key)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->rows[i].key, key) == 0)
            return t->rows[i].value;
    ck_abort_msg("no %s", key);
    return 0;
}

static void expect_near(const char *what, double got, double want, double part)
{
    ck_assert_msg(fabs(got - want) <= part * fabs(want) + 1e-9,
                  "%s is %.6g, not %.6g", what, got, want);
}

#define EXPECT(t, key, want) expect_near(key, at(t, key), want, 1e-6)

/* -- times and sizes -- */

/* Ten milliseconds to the broker and ten back, and five of linger. */
START_TEST(times_are_exact)
{
    struct world *w = world_begin(&(struct world_options){
        .latency_ns = 10 * MS, .settings = WORLD_SETTINGS("linger.ms", "5")});
    struct table t;

    /* the first one waits for a connection and an id, and is forgotten then */
    (void)world_send(w, 0);
    world_settle(w);
    world_run_ms(w, 70000);
    for (int i = 0; i < 19; i++) {
        (void)world_send(w, 0);
        world_settle(w);
    }
    read_all(w, &t);
    EXPECT(&t, "producer-metrics/request-latency-avg ", 20);
    EXPECT(&t, "producer-metrics/request-latency-max ", 20);
    EXPECT(&t, "producer-node-metrics/request-latency-avg node-1", 20);
    EXPECT(&t, "producer-node-metrics/request-latency-max node-1", 20);
    EXPECT(&t, "producer-metrics/record-queue-time-avg ", 5);
    EXPECT(&t, "producer-metrics/record-queue-time-max ", 5);
    EXPECT(&t, "producer-metrics/records-per-request-avg ", 1);
    EXPECT(&t, "producer-node-metrics/response-total node-1",
           at(&t, "producer-node-metrics/request-total node-1"));
    /* nineteen of a kind, each with its batch and little besides */
    EXPECT(&t, "producer-node-metrics/request-size-max node-1",
           at(&t, "producer-node-metrics/request-size-avg node-1"));
    ck_assert(at(&t, "producer-node-metrics/request-size-max node-1") >
              (double)world_attempt(w, 19)->size);
    ck_assert(at(&t, "producer-node-metrics/request-size-max node-1") <
              (double)world_attempt(w, 19)->size + 120);
    EXPECT(&t, "producer-metrics/batch-size-max ",
           (double)world_attempt(w, 19)->size);
    /* one request is under way: it is counted as that, and not as answered */
    (void)world_send(w, 0);
    world_run_ms(w, 17);
    read_all(w, &t);
    EXPECT(&t, "producer-metrics/requests-in-flight ", 1);
    EXPECT(&t, "producer-metrics/request-total ",
           at(&t, "producer-metrics/response-total ") + 1);
    world_settle(w);
    world_end(w);
}
END_TEST

/* Metadata is as old as the last answer to a request for it, in seconds. */
START_TEST(metadata_has_its_age)
{
    struct world *w = world_begin(&(struct world_options){0});
    struct table t;
    double before;

    read_all(w, &t);
    before = at(&t, "producer-metrics/metadata-age ");
    world_run_ms(w, 100000);
    read_all(w, &t);
    expect_near("metadata-age", at(&t, "producer-metrics/metadata-age "),
                before + 100, 0.001);
    world_run_ms(w, 250000); /* metadata.max.age.ms is 300,000 */
    read_all(w, &t);
    ck_assert(at(&t, "producer-metrics/metadata-age ") < 60);
    world_end(w);
}
END_TEST

/* A thread that waits for memory is one, while it waits, and all it waited is
 * counted. */
START_TEST(waiting_threads_are_counted)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "0", "buffer.memory", "65536",
                                   "max.block.ms", "2000")});
    struct world_record *r;
    struct table t;
    int waiting = 0;

    (void)world_send(w, 0);
    world_settle(w);
    world_link(w, 1)->stall_to = true;
    for (int i = 0; i < 100 && waiting < 3; i++) {
        r = world_send_many(w, 0, 1, 4000);
        waiting += r->state == WORLD_WAITING;
    }
    read_all(w, &t);
    EXPECT(&t, "producer-metrics/waiting-threads ", 3);
    EXPECT(&t, "producer-metrics/buffer-exhausted-total ", 0);
    world_run_ms(w, 2500);
    read_all(w, &t);
    EXPECT(&t, "producer-metrics/waiting-threads ", 0);
    EXPECT(&t, "producer-metrics/buffer-exhausted-total ", 3);
    EXPECT(&t, "producer-metrics/bufferpool-wait-time-ns-total ", 3 * 2e9);
    world_link(w, 1)->stall_to = false;
    world_settle(w);
    world_end(w);
}
END_TEST

/* -- rates -- */

/* Ten records a second; each tenth is refused for now, each twentieth for good,
 * one in forty is too large with its neighbours, and every five seconds the
 * connections go. */
static void work(struct world *w, int seconds)
{
    for (int i = 0; i < 10 * seconds; i++) {
        if (i % 10 == 3)
            (void)world_rule(w, "api=produce count=1 error=19");
        if (i % 20 == 7)
            (void)world_rule(w, "api=produce count=1 error=87");
        if (i % 50 == 11)
            world_cut(w, -1, false);
        if (i % 40 == 13) {
            (void)world_rule(w, "api=produce count=1 error=10");
            (void)world_send(w, 0);
        }
        (void)world_send(w, 0);
        world_run_ms(w, 100);
        world_rule_remove(w, -1);
    }
}

/* The rate's total, or "". */
static const char *total_of(const char *key, char out[160])
{
    const char *end = strstr(key, "-rate ");

    out[0] = '\0';
    if (end == NULL || strstr(key, "compression") != NULL)
        return out;
    (void)snprintf(out, 160, "%.*s-total %s", (int)(end - key), key, end + 6);
    return out;
}

/* Over a minute, of which rates remember one half to the whole. */
START_TEST(rates_are_what_totals_grow_by)
{
    struct world *w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", "1", "retry.backoff.ms", "5",
                                   "retry.backoff.max.ms", "5",
                                   "enable.idempotence", "false")});
    static struct table before, after;
    char total[160];
    int rates = 0, moving = 0;

    work(w, 180);
    read_all(w, &before);
    work(w, 60);
    read_all(w, &after);
    for (size_t i = 0; i < after.count; i++) {
        const char *key = after.rows[i].key;
        double grown;

        if (total_of(key, total)[0] == '\0' || strstr(key, "node--") != NULL)
            continue;
        grown = (at(&after, total) - at(&before, total)) / 60;
        expect_near(key, after.rows[i].value, grown, 0.2);
        rates++;
        moving += grown > 0;
    }
    /* 14 of the producer, 4 of the node, 4 of the topic; two stand still: no
     * send was refused for lack of memory, and no metadata */
    ck_assert_int_eq(rates, 22);
    ck_assert_int_eq(moving, 20);
    world_end(w);
}
END_TEST

static Suite *metrics_world_suite(void)
{
    Suite *s = suite_create("metrics_world");
    TCase *t = tcase_create("metrics_world");

    tcase_add_test(t, times_are_exact);
    tcase_add_test(t, metadata_has_its_age);
    tcase_add_test(t, waiting_threads_are_counted);
    tcase_add_test(t, rates_are_what_totals_grow_by);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(metrics_world_suite)
