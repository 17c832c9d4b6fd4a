/* SPDX-License-Identifier: BSD-2-Clause */
/* public_fixture.h - what the tests of the public API share: an embedded
 * broker, producers made from pairs of settings, records read back from the
 * model's log, and reports that are kept.
 *
 * Tests here know nothing of the library but <kp/kp.h>. */
#ifndef KP_TEST_UNIT_PUBLIC_FIXTURE_H
#define KP_TEST_UNIT_PUBLIC_FIXTURE_H

#include <check.h>
#include <dirent.h>
#include <kp/kp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/broker/broker.h"

/* Long enough for a loaded machine; nothing waits so long when all is well. */
#define SOON_MS 20000

static struct broker_server *broker;
static kp_error error;

/* -- assertions -- */

#define ASSERT_ERR(call, want) \
    do { \
        kp_err got_ = (call); \
        ck_assert_msg(got_ == (want), "%s: got %s, not %s (%s)", #call, \
                      kp_err_name(got_), kp_err_name(want), error.text); \
    } while (0)
#define ASSERT_OK(call) ASSERT_ERR(call, KP_OK)
/* The last error's text contains it. */
#define ASSERT_SAYS(part) \
    ck_assert_msg(strstr(error.text, part) != NULL, \
                  "\"%s\" does not say \"%s\"", error.text, part)

/* -- time -- */

static inline int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline int64_t wall_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline void pause_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};

    while (nanosleep(&t, &t) != 0)
        continue;
}

/* Look every millisecond until fn(arg) is true. */
static inline bool becomes_true(bool (*fn)(void *arg), void *arg)
{
    int64_t until = now_ms() + SOON_MS;

    while (!fn(arg)) {
        if (now_ms() > until)
            return false;
        pause_ms(1);
    }
    return true;
}

/* -- the broker -- */

static inline struct broker_server *start_broker(int nodes, bool auto_create,
                                                 int32_t partitions)
{
    struct broker_options o;
    struct broker_server *s;

    kp_broker_defaults(&o);
    o.config.nodes = nodes;
    o.config.auto_create = auto_create;
    o.config.partitions = partitions;
    s = kp_broker_start(&o);
    ck_assert_ptr_nonnull(s);
    return s;
}

static inline void setup_broker(void)
{
    memset(&error, 0, sizeof(error));
    broker = start_broker(1, true, 1);
}

static inline void teardown_broker(void)
{
    kp_broker_stop(broker);
    broker = NULL;
}

static inline void add_rule(const char *line)
{
    ck_assert_msg(kp_broker_add_rule(broker, line) >= 0, "bad rule: %s", line);
}

/* Node 1 reads nothing and says nothing until it may go on. */
static inline void hold_broker(bool on)
{
    struct kb_cluster *c = kp_broker_lock(broker);

    kb_node_pause(c, 1, on, kb_now_ns(c));
    kp_broker_unlock(broker);
}

static inline void remove_rules(void)
{
    kb_rule_remove(kp_broker_lock(broker), -1);
    kp_broker_unlock(broker);
}

static inline void make_topic(const char *name, int32_t partitions)
{
    ck_assert_int_eq(kp_broker_create_topic(broker, name, partitions, 1), 0);
}

static inline int64_t requests_of(int16_t api)
{
    int64_t n = kb_requests(kp_broker_lock(broker), -1, api);

    kp_broker_unlock(broker);
    return n;
}

/* -- producers -- */

/* Name, value, ..., NULL. */
static inline void set_all(kp_config *c, va_list settings)
{
    const char *name;

    while ((name = va_arg(settings, const char *)) != NULL) {
        const char *value = va_arg(settings, const char *);

        ASSERT_OK(kp_config_set(c, name, value, &error));
    }
}

/* Threads of this process. */
static inline int threads_now(void)
{
    DIR *d = opendir("/proc/self/task");
    struct dirent *e;
    int n = 0;

    ck_assert_ptr_nonnull(d);
    while ((e = readdir(d)) != NULL)
        n += e->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

static inline bool threads_are(void *count)
{
    return threads_now() == *(const int *)count;
}

/* The same, when none is just ending: one that was joined is listed for a moment
 * yet. */
static inline int threads_at_rest(void)
{
    int n = threads_now();

    for (int looks = 0; looks < 20; looks++) {
        int again;

        pause_ms(1);
        again = threads_now();
        if (again != n)
            looks = 0;
        n = again;
    }
    return n;
}

static inline kp_config *make_config(const char *bootstrap, ...)
{
    kp_config *c;
    va_list settings;

    ASSERT_OK(kp_config_create(&c));
    ASSERT_OK(kp_config_set(c, "bootstrap.servers", bootstrap, &error));
    va_start(settings, bootstrap);
    set_all(c, settings);
    va_end(settings);
    return c;
}

static inline kp_producer *start_producer(kp_config *c)
{
    kp_producer *p = NULL;

    ASSERT_OK(kp_producer_create(&p, c, &error));
    kp_config_destroy(c);
    return p;
}

/* A producer of the fixture's broker, with more settings: name, value, ...,
 * NULL. */
#define MAKE_PRODUCER(...) \
    start_producer(make_config(kp_broker_bootstrap(broker), __VA_ARGS__))

static inline kp_record record_of(const char *topic, const char *value)
{
    kp_record r = {.topic = topic, .value = kp_str(value)};

    return r;
}

/* Send and wait: the report's err. */
static inline kp_err deliver(kp_producer *p, const kp_record *r,
                             kp_report *report)
{
    kp_future f;
    kp_err err = kp_send(p, r, &f);

    if (err == KP_OK)
        err = kp_future_wait(&f, SOON_MS, report);
    kp_future_release(&f, 1);
    return err;
}

/* Makes the topic known, so that sends to it do not wait. */
static inline void learn_topic(kp_producer *p, const char *topic)
{
    int32_t count;

    ASSERT_OK(kp_partitions_for(p, topic, SOON_MS, &count, NULL, NULL));
}

/* -- what the broker stored -- */

struct stored {
    int64_t offset, timestamp_ms;
    char key[256], value[256];
    int64_t key_size, value_size; /* -1: null */
    int32_t header_count;
    struct {
        char key[64], value[64];
        int64_t value_size;
    } headers[4];
    int codec;
    int64_t producer_id;
    int32_t sequence;
};

static inline int64_t copy_bytes(char *out, size_t capacity,
                                 const uint8_t *data, size_t size)
{
    if (data == NULL)
        return -1;
    if (size > 0)
        memcpy(out, data, size < capacity ? size : capacity);
    return (int64_t)size;
}

static inline void copy_record(struct stored *out, const struct kb_record *r)
{
    struct kb_header_cursor at = {0, 0};
    struct kb_header h;
    int n = 0;

    memset(out, 0, sizeof(*out));
    out->offset = r->offset;
    out->timestamp_ms = r->timestamp_ms;
    out->key_size = copy_bytes(out->key, sizeof(out->key), r->key, r->key_size);
    out->value_size =
        copy_bytes(out->value, sizeof(out->value), r->value, r->value_size);
    out->header_count = r->header_count;
    out->codec = r->codec;
    out->producer_id = r->producer_id;
    out->sequence = r->sequence;
    while (n < 4 && kb_header_next(r, &at, &h)) {
        (void)copy_bytes(out->headers[n].key, sizeof(out->headers[n].key) - 1,
                         h.key, h.key_size);
        out->headers[n].value_size =
            copy_bytes(out->headers[n].value, sizeof(out->headers[n].value) - 1,
                       h.value, h.value_size);
        n++;
    }
}

/* Every record of the partition, at most `max`; returns how many there are. */
static inline size_t read_log(const char *topic, int32_t partition,
                              struct stored *out, size_t max)
{
    struct kb_log *l = kb_log_open(kp_broker_lock(broker), topic, partition);
    struct kb_record r;
    size_t n = 0;

    while (l != NULL && kb_log_next(l, &r)) {
        if (n < max)
            copy_record(&out[n], &r);
        n++;
    }
    if (l != NULL)
        kb_log_close(l);
    kp_broker_unlock(broker);
    return n;
}

static inline size_t stored_count(const char *topic, int32_t partition)
{
    return read_log(topic, partition, NULL, 0);
}

static inline struct stored last_stored(const char *topic, int32_t partition)
{
    struct stored *all;
    struct stored last;
    size_t n = stored_count(topic, partition);

    ck_assert_uint_gt(n, 0);
    all = calloc(n, sizeof(*all));
    ck_assert_ptr_nonnull(all);
    ck_assert_uint_eq(read_log(topic, partition, all, n), n);
    last = all[n - 1];
    free(all);
    return last;
}

/* -- reports by callback: the tag is one of these -- */

struct seen {
    _Atomic int count;
    kp_report report;
    int order; /* among all callbacks */
};

static _Atomic int callbacks;

static inline void keep_report(const kp_report *report)
{
    struct seen *s = report->tag;

    s->report = *report;
    s->order = atomic_fetch_add(&callbacks, 1);
    /* seq_cst: whoever sees the count sees the report */
    atomic_fetch_add(&s->count, 1);
}

static inline bool was_seen(void *arg)
{
    return atomic_load(&((struct seen *)arg)->count) > 0;
}

static inline void await_seen(struct seen *s)
{
    ck_assert_msg(becomes_true(was_seen, s), "no report came");
}

/* -- log lines -- */

struct lines {
    pthread_mutex_t lock;
    int count;
    struct {
        kp_level level;
        int32_t repeated;
        char component[32], text[300], client_id[64];
    } line[64];
};

static struct lines lines = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void keep_line(void *arg, const kp_log *l)
{
    struct lines *k = arg;

    (void)pthread_mutex_lock(&k->lock);
    if (k->count < 64) {
        k->line[k->count].level = l->level;
        k->line[k->count].repeated = l->repeated;
        (void)snprintf(k->line[k->count].component, 32, "%s", l->component);
        (void)snprintf(k->line[k->count].text, 300, "%s", l->text);
        (void)snprintf(k->line[k->count].client_id, 64, "%s", l->client_id);
        k->count++;
    }
    (void)pthread_mutex_unlock(&k->lock);
}

/* How many lines of the component contain it. */
static inline int lines_with(const char *component, const char *part)
{
    int n = 0;

    (void)pthread_mutex_lock(&lines.lock);
    for (int i = 0; i < lines.count; i++)
        if (strcmp(lines.line[i].component, component) == 0 &&
            strstr(lines.line[i].text, part) != NULL)
            n++;
    (void)pthread_mutex_unlock(&lines.lock);
    return n;
}

#endif
