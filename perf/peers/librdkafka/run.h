/* SPDX-License-Identifier: BSD-2-Clause */
/* run.h - multi_thread_send's work done by librdkafka: what its parts share. */
#ifndef KP_PERF_PEERS_LIBRDKAFKA_RUN_H
#define KP_PERF_PEERS_LIBRDKAFKA_RUN_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include <librdkafka/rdkafka.h>

#include "perf/lib/latency.h"
#include "perf/lib/options.h"
#include "perf/lib/pace.h"
#include "perf/lib/payload.h"

/* What the process has used so far, or between two points. */
struct usage {
    int64_t at_ns;
    double cpu_ns, user_ns, system_ns;
    int64_t voluntary, involuntary;
    double peak_rss_bytes;
    uint64_t requests;
};

/* A future, as an application of this library would make one: the report fills
 * it, and the thread that sent the record can wait for it. */
struct slot {
    struct worker *worker;
    int64_t sent_ns; /* 0: no latency is taken */
    int err;
    atomic_bool done;
};

struct worker {
    _Alignas(128) struct run *run;
    pthread_t thread;
    unsigned index;
    int64_t count; /* records to send in this phase */
    struct pace pace;
    const kp_bytes *value, *key;
    struct slot *slots; /* `outstanding` of them, or NULL */
    uint64_t taken, refused;
    uint64_t acked, failed; /* found in slots */
    struct slot *_Atomic awaited;

    /* Set before a round, so that whoever reports its records can see it. */
    uint64_t wanted;
    /* written where reports come from */
    _Alignas(128) uint64_t done;
    sem_t arrived;
};

struct run {
    const struct options *o;
    struct payload payload;
    rd_kafka_t *rk;
    rd_kafka_topic_t *topic;
    size_t sample_every;
    int64_t epoch_ns;
    struct worker *workers;
    pthread_t poller;
    atomic_bool stop, closing;
    struct latency *latency; /* of this phase; set while nothing is sent */
    struct latency warm_up, measured;
    char failure[256]; /* the first one's text */
    _Atomic uint64_t requests;

    /* Written by the poller. */
    _Alignas(128) _Atomic uint64_t acked, failed;
    _Atomic uint64_t wanted; /* reports that end the phase */
    sem_t all_arrived;
};

/* Everything up to the first record.  False: it went to stderr. */
bool setup(struct run *run, const struct options *o);
void teardown(struct run *run);

/* A record's opaque, and the reports' counts. */
void *reports_opaque(struct run *run, unsigned thread, int64_t sent_ns);
void reports_callback(rd_kafka_t *rk, const rd_kafka_message_t *m, void *run);
void *reports_poller(void *run);
/* Wait until `total` records of the whole run have a report, or too long. */
void reports_await(struct run *run, uint64_t total);

/* Send the phase's records from all threads and wait for their reports.
 * False: the system does not start so many threads. */
bool phase_run(struct run *run, int64_t records, struct latency *latency);
void phase_totals(const struct run *run, uint64_t *acked, uint64_t *failed,
                  uint64_t *refused);

void usage_take(struct usage *u, const struct run *run);
void usage_between(struct usage *d, const struct usage *from,
                   const struct usage *to);

struct result {
    uint64_t acked, failed, refused, missing, measured;
    struct usage used;
};
void result_print(FILE *out, const struct run *run, const struct result *r);
bool result_json(const struct run *run, const struct result *r);

#endif
