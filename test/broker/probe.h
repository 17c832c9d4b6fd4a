/* SPDX-License-Identifier: BSD-2-Clause */
/* probe.h - requests by hand, for tests of the broker itself.
 *
 * Builds request frames with the same tables the library uses, and record
 * batches with every field at the caller's will. */
#ifndef KP_BROKER_PROBE_H
#define KP_BROKER_PROBE_H

#include "test/broker/model.h"

struct kb_probe_batch {
    int32_t records;     /* in the body */
    int64_t producer_id; /* -1: none */
    int16_t epoch;
    int32_t sequence;
    int64_t timestamp_ms; /* of each record */
    int codec;
    size_t value_size;  /* of each record: "v0", "v1", ... padded with dots */
    bool no_key;        /* else "k0", "k1", ... */
    int header_count;   /* "h" = "x" each */
    int16_t attributes; /* or'ed */
    /* Lies; the crc is right all the same. */
    int32_t count_off, delta_off; /* added to count and last offset delta */
    int64_t base_offset;
    int32_t offset_step; /* added to each offset delta but the first */
    int8_t magic;
};
/* One record, no producer id, time 1700000000000, magic 2. */
void kb_probe_batch_default(struct kb_probe_batch *b);
/* Freed with kb_probe_free. */
uint8_t *kb_probe_batch_make(const struct kb_probe_batch *b, size_t *size);
void kb_probe_free(void *p);

struct kb_probe_part {
    const char *topic;
    struct uuid topic_id; /* version 13 */
    int32_t partition;
    const uint8_t *records;
    size_t size;
};
struct kb_probe_produce {
    int16_t version, acks;
    int32_t timeout_ms, correlation_id;
    const char *transactional_id;
    const struct kb_probe_part
        *parts; /* neighbours of one topic are put together */
    size_t count;
};
/* A request of any API with its size prefix; `body` is the struct of
 * lib/wire/api.h. */
uint8_t *kb_probe_request(int16_t api, int16_t version, int32_t correlation_id,
                          const void *body, size_t *size);
uint8_t *kb_probe_produce_request(const struct kb_probe_produce *p,
                                  size_t *size);

/* An answer, decoded.  What it points to lives until kb_probe_answer_fini. */
struct kb_probe_answer {
    int32_t correlation_id;
    struct arena arena;
    uint8_t *bytes; /* of the frame, with its size prefix */
    size_t size;
    union {
        struct produce_response produce;
        struct metadata_response metadata;
        struct api_versions_response api_versions;
        struct init_producer_id_response init_producer_id;
    } body;
};
/* False: these bytes are no such answer. */
bool kb_probe_decode(struct kb_probe_answer *a, int16_t api, int16_t version,
                     const uint8_t *frame, size_t size);
void kb_probe_answer_fini(struct kb_probe_answer *a);
/* Takes the next answer a connection has; false: it has none, or not that. */
bool kb_probe_take(struct kb_conn *k, struct kb_probe_answer *a, int16_t api,
                   int16_t version);
/* Give the model a frame made by kb_probe_request (the prefix is left out), and
 * free it. */
void kb_probe_send(struct kb_conn *k, uint8_t *frame, size_t size,
                   int64_t now_ns);

/* -- the same for one partition -- */

/* What the first partition of a Produce answer says. */
struct kb_probe_verdict {
    bool answered;
    int32_t correlation_id;
    int16_t error;
    int64_t base_offset, append_time_ms, start_offset;
    size_t record_errors;
    int32_t first_bad; /* index of the first record error; -1 */
    bool message;
    int32_t leader, leader_epoch; /* KIP-951; -1 */
    int32_t endpoint;             /* first node id of those named; -1 */
    int32_t throttle_ms;
};
/* Correlation id 7; the topic id is looked up in k's cluster. */
void kb_probe_send_bytes(struct kb_conn *k, int16_t version, int16_t acks,
                         int32_t timeout_ms, const char *topic,
                         int32_t partition, const uint8_t *data, size_t size);
void kb_probe_send_batch(struct kb_conn *k, int16_t version, int16_t acks,
                         int32_t timeout_ms, const char *topic,
                         int32_t partition, const struct kb_probe_batch *b);
/* The next answer; `answered` is false if there is none. */
struct kb_probe_verdict kb_probe_take_verdict(struct kb_conn *k,
                                              int16_t version);

#endif
