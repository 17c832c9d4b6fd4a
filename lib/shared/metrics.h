/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics.h - Java's producer metrics, and errors of metadata.
 *
 * Sensors are recorded by the I/O thread per batch, request or turn, never per
 * record by a sender, under one lock that only kp_metrics also takes.  Windows
 * and means follow Java's SampledStat: metrics.num.samples windows of
 * metrics.sample.window.ms.  metrics.def lists every row. */
#ifndef KP_SHARED_METRICS_H
#define KP_SHARED_METRICS_H

#include <stdint.h>

#include "include/kp/kp.h"
#include "lib/base/mutex.h"

/* What is recorded; each becomes one or several rows (avg, max, rate, total).
 * */
enum sensor {
    SENSOR_BATCH_SIZE,       /* bytes of a drained batch, header included */
    SENSOR_COMPRESSION,      /* wire / raw of a drained batch */
    SENSOR_QUEUE_TIME_MS,    /* creation to drain */
    SENSOR_REQUEST_LATENCY_MS,
    SENSOR_RECORDS_SENT,     /* records of a drained batch */
    SENSOR_RECORDS_PER_REQUEST,
    SENSOR_RECORD_RETRIES,   /* records of a batch sent again */
    SENSOR_RECORD_ERRORS,    /* records of a failed batch */
    SENSOR_RECORD_SIZE,      /* the largest record of a drained batch */
    SENSOR_BATCH_SPLITS,
    SENSOR_THROTTLE_MS,
    SENSOR_CONNECTIONS_CREATED, SENSOR_CONNECTIONS_CLOSED,
    SENSOR_OUTGOING_BYTES,   /* per write */
    SENSOR_INCOMING_BYTES,   /* per read */
    SENSOR_REQUEST_SIZE,     /* per request sent */
    SENSOR_RESPONSES,
    SENSOR_SELECTS,
    SENSOR_IO_WAIT_NS,       /* asleep in poll, per turn */
    SENSOR_IO_NS,            /* at work, per turn */
    SENSOR_NETWORK_IO,       /* per read or write */
    SENSOR_METADATA_ERRORS,  /* per request that failed, per topic in trouble */
    SENSOR_BUFFER_EXHAUSTED, SENSOR_BUFFER_WAIT_NS, /* from the pool's counts */
    SENSOR_COUNT
};
/* Of one node. */
enum node_sensor { NODE_REQUEST_SIZE, NODE_OUTGOING_BYTES, NODE_INCOMING_BYTES,
                   NODE_RESPONSES, NODE_LATENCY_MS, NODE_SENSOR_COUNT };
/* Of one topic. */
enum topic_sensor { TOPIC_RECORDS_SENT, TOPIC_BYTES, TOPIC_COMPRESSION,
                    TOPIC_RETRIES, TOPIC_ERRORS, TOPIC_SENSOR_COUNT };

struct metrics;
struct node_metrics;  /* one a broker id; made once, kept */
struct topic_metrics; /* one a topic; made at its first drain, kept */

struct metrics *kp__metrics_create(int32_t samples, int64_t window_ns,
                                   const char *client_id, int64_t now_ns);
void kp__metrics_destroy(struct metrics *m);
/* I/O thread. */
void kp__metrics_record(struct metrics *m, enum sensor s, double value,
                        int64_t now_ns);
/* NULL: no memory; then recording to it does nothing. */
struct node_metrics *kp__metrics_node(struct metrics *m, int32_t node_id);
struct topic_metrics *kp__metrics_topic(struct metrics *m, const char *topic,
                                        size_t size);
void kp__metrics_record_node(struct metrics *m, struct node_metrics *n,
                             enum node_sensor s, double value, int64_t now_ns);
void kp__metrics_record_topic(struct metrics *m, struct topic_metrics *t,
                              enum topic_sensor s, double value,
                              int64_t now_ns);
/* Gauges that the I/O thread keeps current. */
void kp__metrics_set_connections(struct metrics *m, int32_t open);
void kp__metrics_set_in_flight(struct metrics *m, int32_t requests);
void kp__metrics_metadata_updated(struct metrics *m, int64_t now_ns);
/* Any thread: time spent in flush, waiting for metadata. */
void kp__metrics_add_flush_ns(struct metrics *m, int64_t ns);
void kp__metrics_add_metadata_wait_ns(struct metrics *m, int64_t ns);

struct pool_stats;
/* Every metric there is; `visit` runs without a lock. Any thread. */
void kp__metrics_visit(struct metrics *m, const struct pool_stats *pool,
                       int64_t now_ns, kp_metric_visit visit, void *arg);

#endif
