/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics.c - see metrics.h.  The I/O thread records, any thread reads; one
 * lock, never held while the application's visitor runs.
 *
 * A visit copies the values under the lock first and shows them afterwards. */
#include "lib/shared/metrics.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/shared/buffer_pool.h"
#include "lib/shared/stat.h"

enum gauge { GAUGE_BUFFER_AVAILABLE, GAUGE_BUFFER_EXHAUSTED,
             GAUGE_BUFFER_TOTAL, GAUGE_BUFFER_WAIT, GAUGE_CONNECTIONS,
             GAUGE_FLUSH, GAUGE_METADATA_AGE, GAUGE_METADATA_WAIT,
             GAUGE_IN_FLIGHT, GAUGE_WAITING, GAUGE_COUNT };

struct row {
    const char *name, *help;
    int sensor;
    enum stat_kind kind;
};

static const struct row sensor_rows[] = {
#define SENSOR_ROW(name, sensor, stat, help) {name, help, sensor, stat},
#include "lib/shared/metrics.def"
};
static const struct row node_rows[] = {
#define NODE_ROW(name, sensor, stat, help) {name, help, sensor, stat},
#include "lib/shared/metrics.def"
};
static const struct row topic_rows[] = {
#define TOPIC_ROW(name, sensor, stat, help) {name, help, sensor, stat},
#include "lib/shared/metrics.def"
};
static const struct gauge_row {
    const char *name, *help;
    enum gauge id;
    bool counter;
} gauge_rows[] = {
#define GAUGE_ROW(name, id, counter, help) {name, help, id, counter != 0},
#include "lib/shared/metrics.def"
};
#define ROWS(a) (sizeof(a) / sizeof((a)[0]))

struct node_metrics {
    struct node_metrics *next;
    char label[24]; /* "node-3" */
    struct stat stats[NODE_SENSOR_COUNT];
};

struct topic_metrics {
    struct topic_metrics *next;
    char *topic;
    struct stat stats[TOPIC_SENSOR_COUNT];
};

struct metrics {
    /* fixed at birth */
    struct stat_windows windows;
    char *client_id;
    int64_t start_wall_ms, born_ns;
    /* guarded by lock */
    struct mutex lock;
    struct stat stats[SENSOR_COUNT];
    struct node_metrics *nodes;
    struct topic_metrics *topics;
    struct map node_index, topic_index; /* the I/O thread's, which adds */
    size_t node_count, topic_count;
    uint64_t exhausted_seen; /* what the pool had counted at the last look */
    int64_t waited_seen_ns;
    /* atomic */
    _Atomic int64_t flush_ns, metadata_wait_ns, metadata_at_ns;
    _Atomic int32_t connections, in_flight;
};

/* All samples of `count` stats in one piece of memory. */
static bool stats_init(struct metrics *m, struct stat *stats, size_t count,
                       int64_t now_ns)
{
    uint32_t n = m->windows.samples;
    struct stat_sample *samples =
        kp__alloc_array(count, n * sizeof(*samples));

    if (samples == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        kp__stat_init(&stats[i], samples + i * n, &m->windows, now_ns);
    return true;
}

struct metrics *kp__metrics_create(int32_t samples, int64_t window_ns,
                                   const char *client_id, int64_t now_ns)
{
    struct metrics *m = kp__zalloc(sizeof(*m));

    if (m == NULL)
        return NULL;
    m->windows.samples = samples > 0 ? (uint32_t)samples : 1;
    m->windows.window_ns = window_ns > 0 ? window_ns : 1;
    m->start_wall_ms = kp__system_clock.wall_ms(NULL);
    m->born_ns = now_ns;
    m->metadata_at_ns = -1;
    m->client_id = kp__strdup(client_id);
    if (m->client_id == NULL ||
        !stats_init(m, m->stats, SENSOR_COUNT, now_ns)) {
        kp__free(m->client_id);
        kp__free(m);
        return NULL;
    }
    kp__map_init(&m->node_index);
    kp__map_init(&m->topic_index);
    kp__mutex_init(&m->lock);
    return m;
}

void kp__metrics_destroy(struct metrics *m)
{
    while (m->nodes != NULL) {
        struct node_metrics *n = m->nodes;

        m->nodes = n->next;
        kp__free(n->stats[0].samples);
        kp__free(n);
    }
    while (m->topics != NULL) {
        struct topic_metrics *t = m->topics;

        m->topics = t->next;
        kp__free(t->stats[0].samples);
        kp__free(t->topic);
        kp__free(t);
    }
    kp__map_fini(&m->node_index);
    kp__map_fini(&m->topic_index);
    kp__mutex_fini(&m->lock);
    kp__free(m->stats[0].samples);
    kp__free(m->client_id);
    kp__free(m);
}

/* -- recording -- */

static void record(struct metrics *m, struct stat *s, double value,
                   int64_t now_ns)
{
    kp__mutex_lock(&m->lock);
    kp__stat_record(s, &m->windows, value, now_ns);
    kp__mutex_unlock(&m->lock);
}

void kp__metrics_record(struct metrics *m, enum sensor s, double value,
                        int64_t now_ns)
{
    record(m, &m->stats[s], value, now_ns);
}

void kp__metrics_record_node(struct metrics *m, struct node_metrics *n,
                             enum node_sensor s, double value, int64_t now_ns)
{
    if (n != NULL)
        record(m, &n->stats[s], value, now_ns);
}

void kp__metrics_record_topic(struct metrics *m, struct topic_metrics *t,
                              enum topic_sensor s, double value,
                              int64_t now_ns)
{
    if (t != NULL)
        record(m, &t->stats[s], value, now_ns);
}

struct node_metrics *kp__metrics_node(struct metrics *m, int32_t node_id)
{
    struct node_metrics *n =
        kp__map_get(&m->node_index, &node_id, sizeof(node_id));

    if (n != NULL)
        return n;
    n = kp__zalloc(sizeof(*n));
    if (n == NULL)
        return NULL;
    (void)kp__format(n->label, sizeof(n->label), "node-%d", (int)node_id);
    if (!kp__map_put(&m->node_index, &node_id, sizeof(node_id), n)) {
        kp__free(n);
        return NULL;
    }
    if (!stats_init(m, n->stats, NODE_SENSOR_COUNT, m->born_ns)) {
        (void)kp__map_remove(&m->node_index, &node_id, sizeof(node_id));
        kp__free(n);
        return NULL;
    }
    kp__mutex_lock(&m->lock);
    n->next = m->nodes;
    m->nodes = n;
    m->node_count++;
    kp__mutex_unlock(&m->lock);
    return n;
}

struct topic_metrics *kp__metrics_topic(struct metrics *m, const char *topic,
                                        size_t size)
{
    struct topic_metrics *t = kp__map_get(&m->topic_index, topic, size);

    if (t != NULL)
        return t;
    t = kp__zalloc(sizeof(*t));
    if (t == NULL)
        return NULL;
    t->topic = kp__strndup(topic, size);
    if (t->topic == NULL || !kp__map_put(&m->topic_index, topic, size, t))
        goto no_memory;
    if (!stats_init(m, t->stats, TOPIC_SENSOR_COUNT, m->born_ns)) {
        (void)kp__map_remove(&m->topic_index, topic, size);
        goto no_memory;
    }
    kp__mutex_lock(&m->lock);
    t->next = m->topics;
    m->topics = t;
    m->topic_count++;
    kp__mutex_unlock(&m->lock);
    return t;

no_memory:
    kp__free(t->topic);
    kp__free(t);
    return NULL;
}

/* relaxed, here and below: each number stands for itself */
void kp__metrics_set_connections(struct metrics *m, int32_t open)
{
    atomic_store_explicit(&m->connections, open, memory_order_relaxed);
}

void kp__metrics_set_in_flight(struct metrics *m, int32_t requests)
{
    atomic_store_explicit(&m->in_flight, requests, memory_order_relaxed);
}

void kp__metrics_metadata_updated(struct metrics *m, int64_t now_ns)
{
    atomic_store_explicit(&m->metadata_at_ns, now_ns, memory_order_relaxed);
}

void kp__metrics_add_flush_ns(struct metrics *m, int64_t ns)
{
    atomic_fetch_add_explicit(&m->flush_ns, ns, memory_order_relaxed);
}

void kp__metrics_add_metadata_wait_ns(struct metrics *m, int64_t ns)
{
    atomic_fetch_add_explicit(&m->metadata_wait_ns, ns, memory_order_relaxed);
}

/* -- showing -- */

struct shown {
    const char *group, *name, *help;
    const char *label, *label_value; /* beside client-id; or NULL */
    bool counter;
    double value;
};

struct copy {
    struct shown *rows;
    size_t count, capacity;
};

static void add(struct copy *c, const char *group, const char *name,
                const char *help, const char *label, const char *label_value,
                bool counter, double value)
{
    if (c->count < c->capacity)
        c->rows[c->count++] = (struct shown){group, name,    help, label,
                                             label_value, counter, value};
}

static bool is_counter(enum stat_kind k)
{
    return k == TOTAL || k == COUNT;
}

static void add_stats(struct metrics *m, struct copy *c, const char *group,
                      const struct row *rows, size_t count,
                      struct stat *stats, const char *label,
                      const char *label_value, int64_t now_ns)
{
    for (size_t i = 0; i < count; i++)
        add(c, group, rows[i].name, rows[i].help, label, label_value,
            is_counter(rows[i].kind),
            kp__stat_value(&stats[rows[i].sensor], &m->windows, rows[i].kind,
                           now_ns));
}

static double gauge(struct metrics *m, enum gauge id,
                    const struct pool_stats *pool, int64_t now_ns)
{
    int64_t at_ns;

    switch (id) {
    case GAUGE_BUFFER_AVAILABLE:
        return (double)pool->available_bytes;
    case GAUGE_BUFFER_EXHAUSTED:
        return (double)pool->exhausted_total;
    case GAUGE_BUFFER_TOTAL:
        return (double)pool->total_bytes;
    case GAUGE_BUFFER_WAIT:
        return (double)pool->wait_ns_total;
    case GAUGE_CONNECTIONS:
        return atomic_load_explicit(&m->connections, memory_order_relaxed);
    case GAUGE_FLUSH:
        return (double)atomic_load_explicit(&m->flush_ns,
                                            memory_order_relaxed);
    case GAUGE_METADATA_AGE:
        at_ns = atomic_load_explicit(&m->metadata_at_ns,
                                     memory_order_relaxed);
        /* Never: as old as the producer could be, in Java's words now - 0. */
        return (double)(now_ns - (at_ns < 0 ? 0 : at_ns)) / KP_NS_PER_SEC;
    case GAUGE_METADATA_WAIT:
        return (double)atomic_load_explicit(&m->metadata_wait_ns,
                                            memory_order_relaxed);
    case GAUGE_IN_FLIGHT:
        return atomic_load_explicit(&m->in_flight, memory_order_relaxed);
    case GAUGE_WAITING:
        return (double)pool->waiting_threads;
    case GAUGE_COUNT:
    default:
        return 0;
    }
}

/* What the pool counts by itself enters its windows when somebody looks. */
static void record_pool(struct metrics *m, const struct pool_stats *pool,
                        int64_t now_ns)
{
    uint64_t exhausted = pool->exhausted_total - m->exhausted_seen;
    int64_t waited_ns = pool->wait_ns_total - m->waited_seen_ns;

    if (exhausted > 0)
        kp__stat_record(&m->stats[SENSOR_BUFFER_EXHAUSTED], &m->windows,
                        (double)exhausted, now_ns);
    if (waited_ns > 0)
        kp__stat_record(&m->stats[SENSOR_BUFFER_WAIT_NS], &m->windows,
                        (double)waited_ns, now_ns);
    m->exhausted_seen = pool->exhausted_total;
    m->waited_seen_ns = pool->wait_ns_total;
}

static size_t row_count(const struct metrics *m)
{
    return ROWS(sensor_rows) + ROWS(gauge_rows) +
           m->node_count * ROWS(node_rows) +
           m->topic_count * ROWS(topic_rows);
}

static void take_copy(struct metrics *m, const struct pool_stats *pool,
                      struct copy *c, int64_t now_ns)
{
    record_pool(m, pool, now_ns);
    add_stats(m, c, "producer-metrics", sensor_rows, ROWS(sensor_rows),
              m->stats, NULL, NULL, now_ns);
    for (size_t i = 0; i < ROWS(gauge_rows); i++)
        add(c, "producer-metrics", gauge_rows[i].name, gauge_rows[i].help,
            NULL, NULL, gauge_rows[i].counter,
            gauge(m, gauge_rows[i].id, pool, now_ns));
    for (struct node_metrics *n = m->nodes; n != NULL; n = n->next)
        add_stats(m, c, "producer-node-metrics", node_rows, ROWS(node_rows),
                  n->stats, "node-id", n->label, now_ns);
    for (struct topic_metrics *t = m->topics; t != NULL; t = t->next)
        add_stats(m, c, "producer-topic-metrics", topic_rows,
                  ROWS(topic_rows), t->stats, "topic", t->topic, now_ns);
}

static void show(const struct metrics *m, const struct shown *s,
                 kp_metric_visit visit, void *arg)
{
    kp_label labels[2] = {{"client-id", m->client_id},
                          {s->label, s->label_value}};
    kp_metric out = {
        .group = s->group,
        .name = s->name,
        .help = s->help,
        .labels = labels,
        .label_count = s->label != NULL ? 2 : 1,
        .is_counter = s->counter,
        .value = s->value,
    };

    visit(arg, &out);
}

static void show_app_info(const struct metrics *m, size_t count,
                          kp_metric_visit visit, void *arg)
{
    const struct shown rows[] = {
        {"app-info", "version", "The library's version, as a label",
         "version", kp_version(), false, 1},
        {"app-info", "commit-id", "The library's commit, as a label",
         "commit-id", "unknown", false, 1},
        {"app-info", "start-time-ms", "When the producer was made, ms since "
                                      "1970",
         NULL, NULL, false, (double)m->start_wall_ms},
        {"kafka-metrics-count", "count", "Number of metrics", NULL, NULL,
         false, (double)(count + 4)},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        show(m, &rows[i], visit, arg);
}

void kp__metrics_visit(struct metrics *m, const struct pool_stats *pool,
                       int64_t now_ns, kp_metric_visit visit, void *arg)
{
    struct copy c = {NULL, 0, 0};

    kp__mutex_lock(&m->lock);
    c.capacity = row_count(m);
    kp__mutex_unlock(&m->lock);
    /* Rows that appear between the two looks are shown next time. */
    c.rows = kp__alloc_array(c.capacity, sizeof(*c.rows));
    if (c.rows == NULL)
        return;
    kp__mutex_lock(&m->lock);
    take_copy(m, pool, &c, now_ns);
    kp__mutex_unlock(&m->lock);
    for (size_t i = 0; i < c.count; i++)
        show(m, &c.rows[i], visit, arg);
    show_app_info(m, c.count, visit, arg);
    kp__free(c.rows);
}
