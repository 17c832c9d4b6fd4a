/* SPDX-License-Identifier: BSD-2-Clause */
/* setup.c - properties under Java's names given to librdkafka under its own,
 * and everything a run needs.  The main thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "perf/peers/librdkafka/run.h"

#define METADATA_MS 60000
#define SAMPLE_EVERY 64
#define SAMPLES_MIN 2000
/* Its own default, below which a batch of batch.size would not fit. */
#define MESSAGE_MAX 1000000

static bool put(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[512];

    if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) ==
        RD_KAFKA_CONF_OK)
        return true;
    (void)fprintf(stderr, TOOL ": %s\n", text);
    return false;
}

static bool put_number(rd_kafka_conf_t *conf, const char *name, int64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%" PRId64, value);
    return put(conf, name, text);
}

/* A batch is limited by its bytes alone, as everywhere else. */
static bool put_batch_size(rd_kafka_conf_t *conf, const char *value)
{
    int64_t bytes = atoll(value);

    return put(conf, "batch.size", value) &&
           put(conf, "batch.num.messages", "1000000") &&
           put_number(conf, "message.max.bytes",
                      bytes > MESSAGE_MAX ? bytes : MESSAGE_MAX);
}

/* The limit is on bytes alone, as everywhere else. */
static bool put_buffer_memory(rd_kafka_conf_t *conf, const char *value)
{
    return put_number(conf, "queue.buffering.max.kbytes",
                      atoll(value) / 1024) &&
           put(conf, "queue.buffering.max.messages", "0");
}

static bool put_property(rd_kafka_conf_t *conf, const struct property *p)
{
    if (strcmp(p->name, "batch.size") == 0)
        return put_batch_size(conf, p->value);
    if (strcmp(p->name, "buffer.memory") == 0)
        return put_buffer_memory(conf, p->value);
    if (strcmp(p->name, "delivery.timeout.ms") == 0)
        return put(conf, "message.timeout.ms", p->value);
    if (strcmp(p->name, "max.request.size") == 0)
        return put(conf, "message.max.bytes", p->value);
    return put(conf, p->name, p->value);
}

/* Requests are counted where they are written; nothing is asked per record. */
static rd_kafka_resp_err_t on_request(rd_kafka_t *rk, int sock,
                                      const char *name, int32_t broker,
                                      int16_t api, int16_t version, int32_t id,
                                      size_t size, void *arg)
{
    struct run *run = arg;

    (void)rk, (void)sock, (void)name, (void)broker;
    (void)api, (void)version, (void)id, (void)size;
    (void)atomic_fetch_add(&run->requests, 1);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf,
                                  void *arg, char *text, size_t size)
{
    (void)conf, (void)text, (void)size;
    return rd_kafka_interceptor_add_on_request_sent(rk, "count", on_request,
                                                    arg);
}

static rd_kafka_conf_t *configure(struct run *run)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    const struct options *o = run->o;
    bool ok = put(conf, "client.id", "perf-producer-client") &&
              put(conf, "partitioner", "murmur2_random"); /* Java's */

    for (size_t i = 0; ok && i < o->property_count; i++)
        ok = put_property(conf, &o->properties[i]);
    if (ok && o->bootstrap != NULL)
        ok = put(conf, "bootstrap.servers", o->bootstrap);
    if (!ok) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    rd_kafka_conf_set_opaque(conf, run);
    rd_kafka_conf_set_dr_msg_cb(conf, reports_callback);
    (void)rd_kafka_conf_interceptor_add_on_new(conf, "count", on_new, run);
    return conf;
}

static bool create_producer(struct run *run)
{
    rd_kafka_conf_t *conf = configure(run);
    char text[512];

    if (conf == NULL)
        return false;
    run->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (run->rk != NULL)
        return true;
    (void)fprintf(stderr, TOOL ": %s\n", text);
    rd_kafka_conf_destroy(conf);
    return false;
}

/* Know the topic before the clock runs, and fail early if there is none. */
static bool await_topic(struct run *run)
{
    const struct rd_kafka_metadata *m = NULL;
    rd_kafka_resp_err_t err;

    run->topic = rd_kafka_topic_new(run->rk, run->o->topic, NULL);
    if (run->topic == NULL)
        return options_wrong("%s: no such topic", run->o->topic);
    err = rd_kafka_metadata(run->rk, 0, run->topic, &m, METADATA_MS);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR && m->topic_cnt == 1)
        err = m->topics[0].err;
    if (m != NULL)
        rd_kafka_metadata_destroy(m);
    return err == RD_KAFKA_RESP_ERR_NO_ERROR ||
           options_wrong("%s: %s", run->o->topic, rd_kafka_err2str(err));
}

static size_t sample_every(const struct options *o)
{
    size_t n = (size_t)(o->num_records / SAMPLES_MIN);

    if (o->throughput > 0 || n < 1)
        return 1;
    return n > SAMPLE_EVERY ? SAMPLE_EVERY : n;
}

static bool init_worker(struct run *run, unsigned index)
{
    struct worker *w = &run->workers[index];
    const struct payload *p = &run->payload;
    const struct options *o = run->o;

    w->run = run;
    w->index = index;
    /* Threads begin at different places of the tables. */
    w->value = p->values + p->value_count * index / o->threads;
    if (p->keys != NULL)
        w->key = p->keys + p->key_count * index / o->threads;
    if (sem_init(&w->arrived, 0, 0) != 0)
        return false;
    if (o->reports != REPORTS_FUTURE)
        return true;
    w->slots = calloc(o->outstanding, sizeof(*w->slots));
    for (size_t i = 0; w->slots != NULL && i < o->outstanding; i++)
        w->slots[i].worker = w;
    return w->slots != NULL;
}

static bool init_workers(struct run *run)
{
    size_t size = run->o->threads * sizeof(*run->workers);

    run->workers = aligned_alloc(_Alignof(struct worker), size);
    if (run->workers == NULL)
        return false;
    memset(run->workers, 0, size);
    for (unsigned i = 0; i < run->o->threads; i++)
        if (!init_worker(run, i))
            return false;
    return true;
}

bool setup(struct run *run, const struct options *o)
{
    run->o = o;
    run->sample_every = sample_every(o);
    run->epoch_ns = pace_now_ns();
    if (!payload_make(&run->payload, o))
        return false;
    if (sem_init(&run->all_arrived, 0, 0) != 0 || !init_workers(run))
        return options_wrong("no memory for the run");
    if (!create_producer(run))
        return false;
    if (pthread_create(&run->poller, NULL, reports_poller, run) != 0) {
        rd_kafka_destroy(run->rk);
        run->rk = NULL;
        return options_wrong("no thread for the reports");
    }
    return await_topic(run);
}

void teardown(struct run *run)
{
    if (run->rk != NULL) {
        atomic_store(&run->closing, true);
        (void)pthread_join(run->poller, NULL);
        if (run->topic != NULL)
            rd_kafka_topic_destroy(run->topic);
        rd_kafka_destroy(run->rk);
    }
    for (unsigned i = 0; run->workers != NULL && i < run->o->threads; i++)
        free(run->workers[i].slots);
    free(run->workers);
    payload_free(&run->payload);
}
