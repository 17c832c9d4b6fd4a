/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of metrics with a clock that stands still: nodes, topics, gauges, the
 * pool's counts, and that what is recorded where is shown there. */
#include "lib/shared/metrics.h"

#include <math.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/shared/buffer_pool.h"
#include "test/support/main.h"

#define SECOND KP_NS_PER_SEC

static struct metrics *m;
static struct pool_stats pool;
static int64_t now_ns;

static void setup(void)
{
    now_ns = 1000 * SECOND;
    memset(&pool, 0, sizeof(pool));
    m = kp__metrics_create(2, 30 * SECOND, "me", now_ns);
    ck_assert_ptr_nonnull(m);
}

static void teardown(void)
{
    kp__metrics_destroy(m);
}

struct wanted {
    const char *group, *name, *label;
    int found, rows;
    double value;
};

static void look(void *arg, const kp_metric *metric)
{
    struct wanted *w = arg;

    w->rows++;
    if (strcmp(metric->group, w->group) != 0 ||
        strcmp(metric->name, w->name) != 0)
        return;
    if (w->label != NULL && (metric->label_count < 2 ||
                             strcmp(metric->labels[1].value, w->label) != 0))
        return;
    ck_assert_str_eq(metric->labels[0].name, "client-id");
    ck_assert_str_eq(metric->labels[0].value, "me");
    w->found++;
    w->value = metric->value;
}

static double value(const char *group, const char *name, const char *label)
{
    struct wanted w = {.group = group, .name = name, .label = label};

    kp__metrics_visit(m, &pool, now_ns, look, &w);
    ck_assert_msg(w.found == 1, "%s: %d times", name, w.found);
    return w.value;
}

static double of_producer(const char *name)
{
    return value("producer-metrics", name, NULL);
}

START_TEST(a_sensor_feeds_its_rows)
{
    kp__metrics_record(m, SENSOR_BATCH_SIZE, 100, now_ns);
    kp__metrics_record(m, SENSOR_BATCH_SIZE, 300, now_ns);
    ck_assert_double_eq(of_producer("batch-size-avg"), 200);
    ck_assert_double_eq(of_producer("batch-size-max"), 300);
    ck_assert(isnan(of_producer("record-size-max")));
    now_ns += 61 * SECOND;
    ck_assert(isnan(of_producer("batch-size-avg")));
}
END_TEST

START_TEST(nodes_are_kept_apart)
{
    struct node_metrics *a = kp__metrics_node(m, 1);
    struct node_metrics *b = kp__metrics_node(m, -1);

    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_ne(a, b);
    ck_assert_ptr_eq(kp__metrics_node(m, 1), a);
    kp__metrics_record_node(m, a, NODE_REQUEST_SIZE, 10, now_ns);
    kp__metrics_record_node(m, a, NODE_REQUEST_SIZE, 30, now_ns);
    kp__metrics_record_node(m, b, NODE_REQUEST_SIZE, 5, now_ns);
    kp__metrics_record_node(m, NULL, NODE_REQUEST_SIZE, 5, now_ns);
    ck_assert_double_eq(
        value("producer-node-metrics", "request-total", "node-1"), 2);
    ck_assert_double_eq(
        value("producer-node-metrics", "request-size-avg", "node-1"), 20);
    ck_assert_double_eq(
        value("producer-node-metrics", "request-total", "node--1"), 1);
    ck_assert_double_eq(of_producer("request-total"), 0);
}
END_TEST

START_TEST(topics_are_kept_apart)
{
    struct topic_metrics *a = kp__metrics_topic(m, "abc", 1);
    struct topic_metrics *b = kp__metrics_topic(m, "abc", 3);

    ck_assert_ptr_ne(a, b);
    ck_assert_ptr_eq(kp__metrics_topic(m, "ab", 1), a);
    kp__metrics_record_topic(m, a, TOPIC_BYTES, 100, now_ns);
    kp__metrics_record_topic(m, a, TOPIC_RECORDS_SENT, 7, now_ns);
    kp__metrics_record_topic(m, NULL, TOPIC_RECORDS_SENT, 7, now_ns);
    ck_assert_double_eq(value("producer-topic-metrics", "byte-total", "a"),
                        100);
    ck_assert_double_eq(
        value("producer-topic-metrics", "record-send-total", "a"), 7);
    ck_assert_double_eq(value("producer-topic-metrics", "byte-total", "abc"),
                        0);
}
END_TEST

START_TEST(gauges_are_as_they_were_set)
{
    pool = (struct pool_stats){
        .total_bytes = 1000, .available_bytes = 400, .waiting_threads = 3};
    kp__metrics_set_connections(m, 5);
    kp__metrics_set_in_flight(m, 6);
    kp__metrics_add_flush_ns(m, 70);
    kp__metrics_add_flush_ns(m, 7);
    kp__metrics_add_metadata_wait_ns(m, 8);
    kp__metrics_metadata_updated(m, now_ns - 9 * SECOND);
    ck_assert_double_eq(of_producer("buffer-total-bytes"), 1000);
    ck_assert_double_eq(of_producer("buffer-available-bytes"), 400);
    ck_assert_double_eq(of_producer("waiting-threads"), 3);
    ck_assert_double_eq(of_producer("connection-count"), 5);
    ck_assert_double_eq(of_producer("requests-in-flight"), 6);
    ck_assert_double_eq(of_producer("flush-time-ns-total"), 77);
    ck_assert_double_eq(of_producer("metadata-wait-time-ns-total"), 8);
    ck_assert_double_eq(of_producer("metadata-age"), 9);
}
END_TEST

START_TEST(what_the_pool_counts_becomes_rates)
{
    pool.exhausted_total = 30;
    pool.wait_ns_total = 3 * SECOND;
    ck_assert_double_eq(of_producer("buffer-exhausted-total"), 30);
    ck_assert_double_eq(of_producer("bufferpool-wait-time-ns-total"),
                        3.0 * SECOND);
    now_ns += 30 * SECOND; /* one whole window */
    ck_assert_double_eq(of_producer("buffer-exhausted-rate"), 1);
    ck_assert_double_eq_tol(of_producer("bufferpool-wait-ratio"), 0.1, 1e-9);
    /* Looking again counts nothing again. */
    ck_assert_double_eq(of_producer("buffer-exhausted-rate"), 1);
    now_ns += 61 * SECOND;
    ck_assert_double_eq(of_producer("buffer-exhausted-rate"), 0);
    ck_assert_double_eq(of_producer("buffer-exhausted-total"), 30);
}
END_TEST

START_TEST(the_count_is_the_number_of_rows)
{
    struct wanted w = {.group = "kafka-metrics-count", .name = "count"};

    (void)kp__metrics_node(m, 1);
    (void)kp__metrics_topic(m, "t", 1);
    kp__metrics_visit(m, &pool, now_ns, look, &w);
    ck_assert_int_eq(w.found, 1);
    ck_assert_double_eq(w.value, w.rows);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(without_memory_nothing_is_recorded)
{
    for (long nth = 1; nth <= 3; nth++) {
        kp__mem_fail_at(nth);
        (void)kp__metrics_node(m, (int32_t)nth + 10);
        kp__mem_fail_at(nth);
        (void)kp__metrics_topic(m, "xyz", (size_t)nth);
        kp__mem_fail_at(-1);
    }
    ck_assert_ptr_nonnull(kp__metrics_node(m, 11));
    ck_assert_ptr_nonnull(kp__metrics_topic(m, "x", 1));
    for (long nth = 1; nth <= 3; nth++) {
        long live = kp__mem_live();

        kp__mem_fail_at(nth);
        ck_assert_ptr_null(kp__metrics_create(2, SECOND, "client", now_ns));
        kp__mem_fail_at(-1);
        ck_assert_int_eq(kp__mem_live(), live);
    }
}
END_TEST
#endif

static Suite *metrics_suite(void)
{
    Suite *s = suite_create("metrics");
    TCase *t = tcase_create("table");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_sensor_feeds_its_rows);
    tcase_add_test(t, nodes_are_kept_apart);
    tcase_add_test(t, topics_are_kept_apart);
    tcase_add_test(t, gauges_are_as_they_were_set);
    tcase_add_test(t, what_the_pool_counts_becomes_rates);
    tcase_add_test(t, the_count_is_the_number_of_rows);
#ifdef KP_FAILMALLOC
    tcase_add_test(t, without_memory_nothing_is_recorded);
#endif
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(metrics_suite)
