/* SPDX-License-Identifier: BSD-2-Clause */
/* kp_metrics: every row that Java's producer has, with its group and labels,
 * and values that are right for a known piece of work. */
#include <math.h>

#include "test/unit/public_fixture.h"

#include "test/support/main.h"

/* Kafka 4.4's, without those of transactions and authentication, and the
 * errors of metadata. */
static const struct row {
    const char *group, *name;
    const char *label; /* beside client-id */
} rows[] = {
    {"app-info", "commit-id", NULL},
    {"app-info", "start-time-ms", NULL},
    {"app-info", "version", NULL},
    {"kafka-metrics-count", "count", NULL},
    {"producer-metrics", "batch-size-avg", NULL},
    {"producer-metrics", "batch-size-max", NULL},
    {"producer-metrics", "batch-split-rate", NULL},
    {"producer-metrics", "batch-split-total", NULL},
    {"producer-metrics", "buffer-available-bytes", NULL},
    {"producer-metrics", "buffer-exhausted-rate", NULL},
    {"producer-metrics", "buffer-exhausted-total", NULL},
    {"producer-metrics", "buffer-total-bytes", NULL},
    {"producer-metrics", "bufferpool-wait-ratio", NULL},
    {"producer-metrics", "bufferpool-wait-time-ns-total", NULL},
    {"producer-metrics", "compression-rate-avg", NULL},
    {"producer-metrics", "connection-close-rate", NULL},
    {"producer-metrics", "connection-close-total", NULL},
    {"producer-metrics", "connection-count", NULL},
    {"producer-metrics", "connection-creation-rate", NULL},
    {"producer-metrics", "connection-creation-total", NULL},
    {"producer-metrics", "flush-time-ns-total", NULL},
    {"producer-metrics", "incoming-byte-rate", NULL},
    {"producer-metrics", "incoming-byte-total", NULL},
    {"producer-metrics", "io-ratio", NULL},
    {"producer-metrics", "io-time-ns-avg", NULL},
    {"producer-metrics", "io-time-ns-total", NULL},
    {"producer-metrics", "io-wait-ratio", NULL},
    {"producer-metrics", "io-wait-time-ns-avg", NULL},
    {"producer-metrics", "io-wait-time-ns-total", NULL},
    {"producer-metrics", "metadata-age", NULL},
    {"producer-metrics", "metadata-error-rate", NULL},
    {"producer-metrics", "metadata-error-total", NULL},
    {"producer-metrics", "metadata-wait-time-ns-total", NULL},
    {"producer-metrics", "network-io-rate", NULL},
    {"producer-metrics", "network-io-total", NULL},
    {"producer-metrics", "outgoing-byte-rate", NULL},
    {"producer-metrics", "outgoing-byte-total", NULL},
    {"producer-metrics", "produce-throttle-time-avg", NULL},
    {"producer-metrics", "produce-throttle-time-max", NULL},
    {"producer-metrics", "record-error-rate", NULL},
    {"producer-metrics", "record-error-total", NULL},
    {"producer-metrics", "record-queue-time-avg", NULL},
    {"producer-metrics", "record-queue-time-max", NULL},
    {"producer-metrics", "record-retry-rate", NULL},
    {"producer-metrics", "record-retry-total", NULL},
    {"producer-metrics", "record-send-rate", NULL},
    {"producer-metrics", "record-send-total", NULL},
    {"producer-metrics", "record-size-avg", NULL},
    {"producer-metrics", "record-size-max", NULL},
    {"producer-metrics", "records-per-request-avg", NULL},
    {"producer-metrics", "request-latency-avg", NULL},
    {"producer-metrics", "request-latency-max", NULL},
    {"producer-metrics", "request-rate", NULL},
    {"producer-metrics", "request-size-avg", NULL},
    {"producer-metrics", "request-size-max", NULL},
    {"producer-metrics", "request-total", NULL},
    {"producer-metrics", "requests-in-flight", NULL},
    {"producer-metrics", "response-rate", NULL},
    {"producer-metrics", "response-total", NULL},
    {"producer-metrics", "select-rate", NULL},
    {"producer-metrics", "select-total", NULL},
    {"producer-metrics", "waiting-threads", NULL},
    {"producer-node-metrics", "incoming-byte-rate", "node-id"},
    {"producer-node-metrics", "incoming-byte-total", "node-id"},
    {"producer-node-metrics", "outgoing-byte-rate", "node-id"},
    {"producer-node-metrics", "outgoing-byte-total", "node-id"},
    {"producer-node-metrics", "request-latency-avg", "node-id"},
    {"producer-node-metrics", "request-latency-max", "node-id"},
    {"producer-node-metrics", "request-rate", "node-id"},
    {"producer-node-metrics", "request-size-avg", "node-id"},
    {"producer-node-metrics", "request-size-max", "node-id"},
    {"producer-node-metrics", "request-total", "node-id"},
    {"producer-node-metrics", "response-rate", "node-id"},
    {"producer-node-metrics", "response-total", "node-id"},
    {"producer-topic-metrics", "byte-rate", "topic"},
    {"producer-topic-metrics", "byte-total", "topic"},
    {"producer-topic-metrics", "compression-rate", "topic"},
    {"producer-topic-metrics", "record-error-rate", "topic"},
    {"producer-topic-metrics", "record-error-total", "topic"},
    {"producer-topic-metrics", "record-retry-rate", "topic"},
    {"producer-topic-metrics", "record-retry-total", "topic"},
    {"producer-topic-metrics", "record-send-rate", "topic"},
    {"producer-topic-metrics", "record-send-total", "topic"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
}

/* -- looking one up -- */

struct wanted {
    const char *group, *name, *label, *label_value; /* NULL: any */
    int found;
    double value, sum;
    bool is_counter;
};

static const char *label_of(const kp_metric *m, const char *name)
{
    for (size_t i = 0; i < m->label_count; i++)
        if (strcmp(m->labels[i].name, name) == 0)
            return m->labels[i].value;
    return NULL;
}

static void look(void *arg, const kp_metric *m)
{
    struct wanted *w = arg;
    const char *value;

    if (strcmp(m->group, w->group) != 0 || strcmp(m->name, w->name) != 0)
        return;
    value = w->label != NULL ? label_of(m, w->label) : NULL;
    if (w->label != NULL &&
        (value == NULL ||
         (w->label_value != NULL && strcmp(value, w->label_value) != 0)))
        return;
    w->found++;
    w->value = m->value;
    w->sum += m->value;
    w->is_counter = m->is_counter != 0;
}

static struct wanted find(kp_producer *p, const char *group, const char *name,
                          const char *label, const char *value)
{
    struct wanted w = {
        .group = group, .name = name, .label = label, .label_value = value};

    kp_metrics(p, look, &w);
    return w;
}

static double producer_metric(kp_producer *p, const char *name)
{
    struct wanted w = find(p, "producer-metrics", name, NULL, NULL);

    ck_assert_msg(w.found == 1, "%s: %d times", name, w.found);
    return w.value;
}

static double topic_metric(kp_producer *p, const char *name)
{
    struct wanted w = find(p, "producer-topic-metrics", name, "topic", "t");

    ck_assert_msg(w.found == 1, "%s: %d times", name, w.found);
    return w.value;
}

/* Over all nodes, the bootstrap address among them. */
static double node_sum(kp_producer *p, const char *name)
{
    return find(p, "producer-node-metrics", name, "node-id", NULL).sum;
}

#define ASSERT_VALUE(got, want) \
    do { \
        double got_ = (got), want_ = (want); \
        ck_assert_msg(fabs(got_ - want_) < 1e-6 * (1 + fabs(want_)), \
                      "%s is %.12g, not %.12g", #got, got_, want_); \
    } while (0)
#define ASSERT_BETWEEN(got, low, high) \
    do { \
        double got_ = (got); \
        ck_assert_msg(got_ >= (low) && got_ <= (high), \
                      "%s is %.12g, not in [%.12g, %.12g]", #got, got_, \
                      (double)(low), (double)(high)); \
    } while (0)

static void send_some(kp_producer *p, int count, const char *value)
{
    for (int i = 0; i < count; i++) {
        kp_record r = record_of("t", value);

        ASSERT_OK(kp_send(p, &r, NULL));
    }
}

static int64_t requests(int16_t api)
{
    return requests_of(api);
}

static bool nothing_in_flight(void *arg)
{
    return producer_metric(arg, "requests-in-flight") == 0;
}

/* -- which there are -- */

/* S3. */
START_TEST(every_row_of_javas_is_there)
{
    kp_producer *p =
        MAKE_PRODUCER("client.id", "counted", "linger.ms", "0", NULL);
    kp_record r = record_of("t", "v");

    ASSERT_OK(deliver(p, &r, NULL));
    for (size_t i = 0; i < ROWS; i++) {
        struct wanted w = find(p, rows[i].group, rows[i].name, NULL, NULL);

        ck_assert_msg(w.found > 0, "no %s %s", rows[i].group, rows[i].name);
        if (rows[i].label != NULL) {
            w = find(p, rows[i].group, rows[i].name, rows[i].label, NULL);
            ck_assert_msg(w.found > 0, "%s %s has no label %s", rows[i].group,
                          rows[i].name, rows[i].label);
        } else {
            ck_assert_int_eq(w.found, 1);
        }
    }
    ck_assert_int_eq(
        find(p, "producer-topic-metrics", "byte-total", "topic", "t").found, 1);
    ck_assert_int_eq(
        find(p, "producer-node-metrics", "request-total", "node-id", "node-1")
            .found,
        1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

struct all {
    int count;
    double said;
    bool ends_wrong;
    char what[128];
};

static bool ends_with(const char *s, const char *end)
{
    size_t a = strlen(s), b = strlen(end);

    return a >= b && strcmp(s + a - b, end) == 0;
}

static void judge(void *arg, const kp_metric *m)
{
    struct all *a = arg;
    const char *id = label_of(m, "client-id");
    bool total = ends_with(m->name, "-total");

    a->count++;
    if (strcmp(m->group, "kafka-metrics-count") == 0)
        a->said = m->value;
    if (total == (m->is_counter != 0) && id != NULL &&
        strcmp(id, "counted") == 0 && m->help != NULL && m->help[0] != '\0')
        return;
    a->ends_wrong = true;
    (void)snprintf(a->what, sizeof(a->what), "%s", m->name);
}

START_TEST(each_has_help_its_client_and_its_kind)
{
    kp_producer *p = MAKE_PRODUCER("client.id", "counted", NULL);
    kp_record r = record_of("t", "v");
    struct all a = {0};

    ASSERT_OK(deliver(p, &r, NULL));
    kp_metrics(p, judge, &a);
    ck_assert_msg(!a.ends_wrong, "%s", a.what);
    ck_assert_int_ge(a.count, (int)ROWS);
    ASSERT_VALUE(a.said, a.count);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_producer_says_what_and_how_old_it_is)
{
    double before = (double)wall_ms() - 1000;
    kp_producer *p = MAKE_PRODUCER(NULL);
    struct wanted w = find(p, "app-info", "version", "version", kp_version());

    ck_assert_int_eq(w.found, 1);
    w = find(p, "app-info", "start-time-ms", NULL, NULL);
    ck_assert_int_eq(w.found, 1);
    ASSERT_BETWEEN(w.value, before, (double)(wall_ms() + 1000));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(metrics_can_be_read_after_close)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);

    send_some(p, 3, "v");
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ASSERT_VALUE(producer_metric(p, "record-send-total"), 3);
    ASSERT_VALUE(producer_metric(p, "connection-count"), 0);
    ASSERT_VALUE(producer_metric(p, "connection-close-total"),
                 producer_metric(p, "connection-creation-total"));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- counts and sizes of a known piece of work -- */

START_TEST(records_and_batches_are_counted)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "60000", NULL);
    /* one batch of ten: 61 bytes, and ten records of 6 + 1 + 1 + ... bytes */
    struct stored all[10];
    double bytes;

    learn_topic(p, "t");
    for (int i = 0; i < 5; i++) {
        send_some(p, 10, "0123456789");
        ASSERT_OK(kp_flush(p, SOON_MS, &error));
    }
    ck_assert_uint_eq(read_log("t", 0, all, 10), 50);
    ck_assert_int_eq(requests(API_PRODUCE), 5);
    ASSERT_VALUE(producer_metric(p, "record-send-total"), 50);
    ASSERT_VALUE(topic_metric(p, "record-send-total"), 50);
    ASSERT_VALUE(producer_metric(p, "records-per-request-avg"), 10);
    ASSERT_VALUE(producer_metric(p, "record-error-total"), 0);
    ASSERT_VALUE(producer_metric(p, "record-retry-total"), 0);
    ASSERT_VALUE(topic_metric(p, "record-error-total"), 0);
    ASSERT_VALUE(topic_metric(p, "record-retry-total"), 0);
    /* a record: length 1, attributes 1, two deltas 1 to 2 each, null key 1,
     * value 1 + 10, headers 1 */
    bytes = topic_metric(p, "byte-total");
    ASSERT_BETWEEN(bytes, 5 * (61 + 10 * 17), 5 * (61 + 10 * 19));
    ASSERT_VALUE(producer_metric(p, "batch-size-avg"), bytes / 5);
    ASSERT_BETWEEN(producer_metric(p, "batch-size-max"), 61 + 170, 61 + 190);
    ASSERT_BETWEEN(producer_metric(p, "record-size-max"), 17, 110);
    ASSERT_BETWEEN(producer_metric(p, "record-size-avg"), 17, 110);
    ASSERT_VALUE(producer_metric(p, "compression-rate-avg"), 1);
    ASSERT_VALUE(topic_metric(p, "compression-rate"), 1);
    /* 30 s windows, of which one has begun: at most 50 in 30 s. */
    ASSERT_BETWEEN(producer_metric(p, "record-send-rate"), 50 / 60.0,
                   50 / 29.0);
    ASSERT_BETWEEN(topic_metric(p, "record-send-rate"), 50 / 60.0, 50 / 29.0);
    ASSERT_BETWEEN(topic_metric(p, "byte-rate"), bytes / 60, bytes / 29);
    ASSERT_BETWEEN(producer_metric(p, "record-queue-time-avg"), 0, 10000);
    ASSERT_BETWEEN(producer_metric(p, "record-queue-time-max"),
                   producer_metric(p, "record-queue-time-avg") - 1e-9, 10000);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(requests_and_bytes_are_counted)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    int64_t all;

    for (int i = 0; i < 20; i++) {
        kp_record r = record_of("t", "v");

        ASSERT_OK(deliver(p, &r, NULL));
    }
    ck_assert(becomes_true(nothing_in_flight, p));
    all = requests(-1);
    ASSERT_VALUE(producer_metric(p, "request-total"), (double)all);
    ASSERT_VALUE(producer_metric(p, "response-total"), (double)all);
    ASSERT_VALUE(node_sum(p, "request-total"), (double)all);
    ASSERT_VALUE(node_sum(p, "response-total"), (double)all);
    ASSERT_BETWEEN(producer_metric(p, "outgoing-byte-total"), 20 * 100,
                   20 * 1000);
    ASSERT_VALUE(node_sum(p, "outgoing-byte-total"),
                 producer_metric(p, "outgoing-byte-total"));
    ASSERT_BETWEEN(producer_metric(p, "incoming-byte-total"), 20 * 30,
                   20 * 1000);
    ASSERT_VALUE(node_sum(p, "incoming-byte-total"),
                 producer_metric(p, "incoming-byte-total"));
    /* What is sent are requests, with four bytes of size each. */
    ASSERT_VALUE(producer_metric(p, "request-size-avg") * (double)all,
                 producer_metric(p, "outgoing-byte-total"));
    ASSERT_BETWEEN(producer_metric(p, "request-size-max"),
                   producer_metric(p, "request-size-avg"), 2000);
    ASSERT_BETWEEN(producer_metric(p, "request-rate"), (double)all / 60,
                   (double)all / 29);
    ASSERT_BETWEEN(producer_metric(p, "response-rate"), (double)all / 60,
                   (double)all / 29);
    ASSERT_BETWEEN(producer_metric(p, "request-latency-avg"), 0, 10000);
    ASSERT_BETWEEN(producer_metric(p, "request-latency-max"),
                   producer_metric(p, "request-latency-avg") - 1e-9, 10000);
    /* A write may carry two requests, an answer may come in two reads. */
    ASSERT_BETWEEN(producer_metric(p, "network-io-total"), (double)all,
                   5 * (double)all);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(connections_are_counted)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = record_of("t", "v");
    int64_t connects;

    ASSERT_OK(deliver(p, &r, NULL));
    connects = kb_connects(kp_broker_lock(broker), -1);
    kp_broker_unlock(broker);
    ASSERT_VALUE(producer_metric(p, "connection-creation-total"),
                 (double)connects);
    ASSERT_BETWEEN(producer_metric(p, "connection-count"), 1, 2);
    ASSERT_VALUE(producer_metric(p, "connection-count"),
                 (double)connects -
                     producer_metric(p, "connection-close-total"));
    ASSERT_BETWEEN(producer_metric(p, "connection-creation-rate"), 1 / 60.0,
                   2 / 29.0);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(the_thread_counts_its_time)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = record_of("t", "v");

    /* So the first send waits for certain. */
    add_rule("api=metadata process_ms=50 count=1");
    for (int i = 0; i < 50; i++)
        ASSERT_OK(deliver(p, &r, NULL));
    ASSERT_BETWEEN(producer_metric(p, "select-total"), 50, 5000);
    ASSERT_BETWEEN(producer_metric(p, "select-rate"), 50 / 60.0, 5000 / 29.0);
    ASSERT_BETWEEN(producer_metric(p, "io-ratio"), 1e-9, 1);
    ASSERT_BETWEEN(producer_metric(p, "io-wait-ratio"), 1e-9, 1);
    ASSERT_BETWEEN(producer_metric(p, "io-time-ns-total"), 1, 20e9);
    ASSERT_BETWEEN(producer_metric(p, "io-wait-time-ns-total"), 1, 20e9);
    ASSERT_BETWEEN(producer_metric(p, "io-time-ns-avg"), 1, 1e9);
    ASSERT_BETWEEN(producer_metric(p, "io-wait-time-ns-avg"), 1, 10e9);
    ASSERT_BETWEEN(producer_metric(p, "metadata-age"), 0, 20);
    ASSERT_BETWEEN(producer_metric(p, "metadata-wait-time-ns-total"), 1, 20e9);
    ASSERT_VALUE(producer_metric(p, "flush-time-ns-total"), 0);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* K8. */
START_TEST(a_flush_is_timed)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "60000", NULL);
    double before;

    learn_topic(p, "t");
    add_rule("api=produce process_ms=100 count=1");
    send_some(p, 1, "v");
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    before = producer_metric(p, "flush-time-ns-total");
    ASSERT_BETWEEN(before, 90e6, 20e9);
    send_some(p, 1, "v");
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ck_assert(producer_metric(p, "flush-time-ns-total") > before);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- what goes wrong -- */

START_TEST(retries_errors_and_throttling_are_counted)
{
    kp_producer *p =
        MAKE_PRODUCER("linger.ms", "60000", "retry.backoff.ms", "5", NULL);

    learn_topic(p, "t");
    add_rule("api=produce error=6 count=2");
    send_some(p, 7, "v");
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_VALUE(producer_metric(p, "record-retry-total"), 14);
    ASSERT_VALUE(topic_metric(p, "record-retry-total"), 14);
    ASSERT_VALUE(producer_metric(p, "record-error-total"), 0);
    add_rule("api=produce error=87 count=1");
    send_some(p, 3, "v");
    ASSERT_ERR(kp_flush(p, SOON_MS, &error), KP_INVALID_RECORD);
    ASSERT_VALUE(producer_metric(p, "record-error-total"), 3);
    ASSERT_VALUE(topic_metric(p, "record-error-total"), 3);
    ASSERT_BETWEEN(producer_metric(p, "record-error-rate"), 3 / 60.0, 3 / 29.0);
    ASSERT_BETWEEN(producer_metric(p, "record-retry-rate"), 14 / 60.0,
                   14 / 29.0);
    add_rule("api=produce throttle_ms=12 count=1");
    send_some(p, 1, "v");
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_VALUE(producer_metric(p, "produce-throttle-time-max"), 12);
    ASSERT_BETWEEN(producer_metric(p, "produce-throttle-time-avg"), 0.1, 12);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(splits_are_counted)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "60000", NULL);

    learn_topic(p, "t");
    add_rule("api=produce error=10 count=1");
    send_some(p, 8, "0123456789");
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_BETWEEN(producer_metric(p, "batch-split-total"), 1, 1);
    ASSERT_BETWEEN(producer_metric(p, "batch-split-rate"), 1 / 60.0, 1 / 29.0);
    ck_assert_uint_eq(stored_count("t", 0), 8);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(compression_is_measured)
{
    kp_producer *p;
    char value[4001];

    if (strstr(kp_features(), "gzip") == NULL)
        return; /* not in this build */
    p = MAKE_PRODUCER("compression.type", "gzip", "linger.ms", "60000", NULL);
    memset(value, 'v', sizeof(value));
    value[4000] = '\0';
    learn_topic(p, "t");
    send_some(p, 3, value);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_BETWEEN(producer_metric(p, "compression-rate-avg"), 0.001, 0.2);
    ASSERT_VALUE(topic_metric(p, "compression-rate"),
                 producer_metric(p, "compression-rate-avg"));
    ASSERT_BETWEEN(topic_metric(p, "byte-total"), 61, 12000 * 0.2);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(memory_is_measured)
{
    kp_producer *p = MAKE_PRODUCER("buffer.memory", "100000", "linger.ms", "0",
                                   "max.block.ms", "100", NULL);
    char value[5000];
    kp_record r = record_of("t", "");
    int refused = 0;

    r.value = (kp_bytes){value, sizeof(value)};
    memset(value, 'v', sizeof(value));
    learn_topic(p, "t");
    ASSERT_VALUE(producer_metric(p, "buffer-total-bytes"), 100000);
    ASSERT_VALUE(producer_metric(p, "buffer-available-bytes"), 100000);
    ASSERT_VALUE(producer_metric(p, "buffer-exhausted-total"), 0);
    ASSERT_VALUE(producer_metric(p, "bufferpool-wait-time-ns-total"), 0);
    hold_broker(true);
    r.flags = KP_NOWAIT;
    while (kp_send(p, &r, NULL) == KP_OK)
        continue;
    refused++;
    ck_assert(producer_metric(p, "buffer-available-bytes") < 100000);
    for (; refused < 5; refused++)
        ASSERT_ERR(kp_send(p, &r, NULL), KP_EBUFFER);
    ASSERT_VALUE(producer_metric(p, "buffer-exhausted-total"), 5);
    r.flags = 0;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EBUFFER);
    ASSERT_VALUE(producer_metric(p, "buffer-exhausted-total"), 6);
    ASSERT_BETWEEN(producer_metric(p, "bufferpool-wait-time-ns-total"), 90e6,
                   20e9);
    ASSERT_BETWEEN(producer_metric(p, "bufferpool-wait-ratio"), 0.0005, 1);
    ASSERT_BETWEEN(producer_metric(p, "buffer-exhausted-rate"), 6 / 60.0,
                   6 / 29.0);
    hold_broker(false);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_VALUE(producer_metric(p, "buffer-available-bytes"), 100000);
    ASSERT_VALUE(producer_metric(p, "waiting-threads"), 0);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static bool one_in_flight(void *arg)
{
    return producer_metric(arg, "requests-in-flight") == 1;
}

START_TEST(requests_in_flight_are_counted)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);

    send_some(p, 1, "the connection is there");
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ck_assert(becomes_true(nothing_in_flight, p));
    hold_broker(true);
    send_some(p, 1, "v");
    ck_assert(becomes_true(one_in_flight, p));
    hold_broker(false);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ck_assert(becomes_true(nothing_in_flight, p));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static Suite *public_metrics_suite(void)
{
    Suite *s = suite_create("public metrics");
    TCase *t = tcase_create("rows");

    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, every_row_of_javas_is_there);
    tcase_add_test(t, each_has_help_its_client_and_its_kind);
    tcase_add_test(t, a_producer_says_what_and_how_old_it_is);
    tcase_add_test(t, metrics_can_be_read_after_close);
    suite_add_tcase(s, t);
    t = tcase_create("values");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, records_and_batches_are_counted);
    tcase_add_test(t, requests_and_bytes_are_counted);
    tcase_add_test(t, connections_are_counted);
    tcase_add_test(t, the_thread_counts_its_time);
    tcase_add_test(t, a_flush_is_timed);
    tcase_add_test(t, retries_errors_and_throttling_are_counted);
    tcase_add_test(t, splits_are_counted);
    tcase_add_test(t, compression_is_measured);
    tcase_add_test(t, memory_is_measured);
    tcase_add_test(t, requests_in_flight_are_counted);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_metrics_suite)
