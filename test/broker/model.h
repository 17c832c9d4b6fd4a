/* SPDX-License-Identifier: BSD-2-Clause */
/* model.h - a Kafka cluster as a value: frames and time in, frames out.
 *
 * No sockets, no clock, no threads: every call that can make something happen
 * is given the time, and time only moves forward.  So a simulator can run a
 * whole cluster under virtual time, and the epoll shell (broker.h) can put the
 * same cluster on real sockets.  The checks are those of Kafka 4.4, in its
 * order (ProduceRequest.validateRecords, Partition.appendRecordsToLeader,
 * UnifiedLog.append, LogValidator, ProducerAppendInfo, DelayedProduce).
 *
 * A node serves from its own metadata image, which the controller publishes to
 * it, at once or after a delay; an isolated or paused node keeps the old one.
 * Every replica has its own log and its own producer state, so leader changes
 * lose, keep and truncate what they do in Kafka.
 *
 * One thread at a time.  Runs out of memory by aborting: it is test code. */
#ifndef KP_BROKER_MODEL_H
#define KP_BROKER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/wire/api.h"
#include "lib/wire/record_batch.h"

/* -- the cluster -- */

struct kb_cluster;
struct kb_conn;

struct kb_config {
    int nodes;                   /* 1 */
    int32_t first_node_id;       /* 1: ids go up from it */
    const char *cluster_id;      /* 22 characters of base64 */
    const char *host;            /* that Metadata names: "127.0.0.1" */
    bool auto_create;            /* true: Metadata may create topics */
    int32_t partitions;          /* 1: of a topic made that way */
    int32_t replication;         /* 0: as many as nodes, at most 3 */
    int32_t min_insync_replicas; /* 1 */
    int32_t message_max_bytes;   /* 1048588 */
    int32_t request_max_bytes;   /* 100 MiB: larger frames end the connection */
    int32_t segment_bytes;       /* 1 GiB: larger batches get error 18 */
    int64_t replication_delay_ns; /* 0: followers have it at once */
    int64_t metadata_delay_ns;    /* 0: nodes learn of a change at once */
    int64_t session_timeout_ns;   /* 0: a dead node is noticed at once */
    int64_t replica_lag_ns; /* 30 s: a follower behind so long leaves the ISR */
    int64_t wall_base_ms;   /* wall clock when now_ns is 0 */
    int64_t first_producer_id; /* 0 */
    int64_t quota_bytes_per_s; /* 0: none.  Of produced bytes, per node */
    uint64_t seed;             /* of topic ids */
    bool unclean;              /* out-of-sync replicas may be elected */
    bool discard;              /* store no batches, check only their headers */
    /* Refuse (87) offset deltas that do not count up from 0, and bytes behind a
     * batch.  Kafka puts such things right; a client of ours must not send
     * them. */
    bool strict; /* true */
};
void kb_config_default(struct kb_config *c);

struct kb_cluster *kb_create(const struct kb_config *config);
void kb_destroy(struct kb_cluster *c);
/* Let everything happen that is due by now_ns. */
void kb_advance(struct kb_cluster *c, int64_t now_ns);
/* When something will happen by itself; INT64_MAX: never. */
int64_t kb_next_event_ns(const struct kb_cluster *c);
int64_t kb_now_ns(const struct kb_cluster *c);
int64_t kb_wall_ms(const struct kb_cluster *c);

/* -- connections -- */

enum kb_output_kind {
    KB_OUT_BYTES,
    KB_OUT_CLOSE,      /* the broker closes: FIN */
    KB_OUT_RESET,      /* the broker closes: RST */
    KB_OUT_HALF_CLOSE, /* no more bytes from the broker, but it still reads */
};
struct kb_output {
    struct kb_output *next;
    enum kb_output_kind kind;
    int64_t due_ns; /* when it came out: never later than now */
    size_t size;
    uint8_t data[]; /* with the size prefix */
};

/* NULL: nobody listens there (the node is stopped).  `user` is the caller's. */
struct kb_conn *kb_connect(struct kb_cluster *c, int32_t node_id, void *user,
                           int64_t now_ns);
/* One whole request, without its size prefix.  Copied if it cannot be handled
 * at once: like Kafka, the broker handles one request of a connection at a
 * time, and the next when the answer is out. */
void kb_conn_frame(struct kb_conn *k, const void *frame, size_t size,
                   int64_t now_ns);
/* The same for a Produce request whose batch bodies were left out: each record
 * field holds only the 61 bytes of the batch header.  For discard mode. */
void kb_conn_skimmed_frame(struct kb_conn *k, const void *frame, size_t size,
                           int64_t now_ns);
/* A frame size that cannot be: negative, or over request_max_bytes. */
void kb_conn_bad_frame(struct kb_conn *k, int64_t now_ns);
/* False: the broker would not read from the socket now (it is busy with a
 * request, throttles the connection, or is paused). */
bool kb_conn_wants_input(const struct kb_conn *k);
/* How many bytes of the connection the broker will still read (SIZE_MAX: all),
 * and that it has read so many.  For a shell that has a stream of bytes. */
size_t kb_conn_room(const struct kb_conn *k);
void kb_conn_took(struct kb_conn *k, size_t n, int64_t now_ns);
/* The first thing to write, or NULL; kb_conn_pop frees it. */
struct kb_output *kb_conn_output(struct kb_conn *k);
void kb_conn_pop(struct kb_conn *k);
/* Connections with output or with another answer of wants_input since they were
 * last returned here; NULL: no more. */
struct kb_conn *kb_next_ready(struct kb_cluster *c);
void *kb_conn_user(const struct kb_conn *k);
int32_t kb_conn_node(const struct kb_conn *k);
/* The client is gone; k is not to be used after this.  process: requests that
 * arrived whole are still handled, in order and when their time comes, and
 * their answers are thrown away.  Otherwise they are dropped, all but what is
 * already in a log. */
void kb_conn_close(struct kb_conn *k, bool process, int64_t now_ns);

/* -- nodes -- */

int kb_node_count(const struct kb_cluster *c);
int32_t kb_node_id(const struct kb_cluster *c, int index);
void kb_node_address(struct kb_cluster *c, int32_t node_id, const char *host,
                     int32_t port);
void kb_node_rack(struct kb_cluster *c, int32_t node_id, const char *rack);
bool kb_node_up(const struct kb_cluster *c, int32_t node_id);
/* clean: leaders are moved away first.  All its connections end; requests that
 * wait for replicas are never answered. */
void kb_node_stop(struct kb_cluster *c, int32_t node_id, bool clean,
                  int64_t now_ns);
enum kb_start { KB_KEEP_STATE, KB_LOSE_PRODUCERS, KB_LOSE_LOGS };
void kb_node_start(struct kb_cluster *c, int32_t node_id, enum kb_start how,
                   int64_t now_ns);
/* Cut it off from the other nodes and the controller, not from clients. */
void kb_node_isolate(struct kb_cluster *c, int32_t node_id, bool on,
                     int64_t now_ns);
/* As SIGSTOP and SIGCONT.  On continuing it first handles what has piled up,
 * believing what it believed before. */
void kb_node_pause(struct kb_cluster *c, int32_t node_id, bool on,
                   int64_t now_ns);
/* Versions it says it speaks and accepts; max -1: the API is not there. */
void kb_node_versions(struct kb_cluster *c, int32_t node_id, int16_t api,
                      int16_t min, int16_t max);

/* -- topics -- */

enum kb_no { KB_NO_PARTITION = -1 };

/* 0 or a Kafka error: 36 exists, 17 bad name, 37, 38. */
int16_t kb_topic_create(struct kb_cluster *c, const char *name,
                        int32_t partitions, int32_t replication,
                        int64_t now_ns);
int16_t kb_topic_delete(struct kb_cluster *c, const char *name, int64_t now_ns);
int16_t kb_topic_grow(struct kb_cluster *c, const char *name,
                      int32_t partitions, int64_t now_ns);
/* Kafka's topic settings by name: max.message.bytes, min.insync.replicas,
 * segment.bytes, cleanup.policy, message.timestamp.type,
 * message.timestamp.before.max.ms, message.timestamp.after.max.ms.  False: not
 * known, or no such topic. */
bool kb_topic_set(struct kb_cluster *c, const char *name, const char *key,
                  const char *value);
/* auto.create.topics.enable, message.max.bytes, min.insync.replicas,
 * num.partitions, quota, and the delays in ms: replication.delay.ms,
 * metadata.delay.ms, session.timeout.ms, replica.lag.ms. */
bool kb_set(struct kb_cluster *c, const char *key, const char *value);
/* False: no such topic. */
bool kb_topic_id(const struct kb_cluster *c, const char *name,
                 struct uuid *out);
int32_t kb_topic_partitions(const struct kb_cluster *c, const char *name);
/* As the controller has it: -1, no leader. */
int32_t kb_leader(const struct kb_cluster *c, const char *topic,
                  int32_t partition);
int32_t kb_leader_epoch(const struct kb_cluster *c, const char *topic,
                        int32_t partition);
bool kb_in_sync(const struct kb_cluster *c, const char *topic,
                int32_t partition, int32_t node_id);
/* Elect node_id, which must be a live replica in the ISR; force: or out of it,
 * an unclean election.  -1: take the leader away.  False: not possible. */
bool kb_leader_move(struct kb_cluster *c, const char *topic, int32_t partition,
                    int32_t node_id, bool force, int64_t now_ns);
/* Another set of replicas, the first of them the leader; new ones get the log
 * at once. */
bool kb_reassign(struct kb_cluster *c, const char *topic, int32_t partition,
                 const int32_t *node_ids, int count, int64_t now_ns);
/* A follower that does not fetch: it falls behind, and out of the ISR after
 * replica_lag_ns. */
void kb_follower_stall(struct kb_cluster *c, const char *topic,
                       int32_t partition, int32_t node_id, bool on,
                       int64_t now_ns);
/* A disk that fails: the node answers KAFKA_STORAGE_ERROR. */
void kb_storage_fail(struct kb_cluster *c, const char *topic, int32_t partition,
                     int32_t node_id, bool on, int64_t now_ns);
/* DeleteRecords. */
void kb_trim(struct kb_cluster *c, const char *topic, int32_t partition,
             int64_t before_offset);
/* Every replica forgets the producer (-1: all), as after
 * producer.id.expiration.ms. */
void kb_forget_producer(struct kb_cluster *c, const char *topic,
                        int32_t partition, int64_t producer_id);
/* Start with this sequence state, for tests near the ends of the ranges. */
void kb_preset_producer(struct kb_cluster *c, const char *topic,
                        int32_t partition, int64_t producer_id, int16_t epoch,
                        int32_t last_sequence);

/* -- faults -- */

enum kb_answer {
    KB_ANSWER,           /* the normal one */
    KB_ANSWER_NONE,      /* none, and on to the next request */
    KB_ANSWER_STALL,     /* none, and the connection is dead silent from now */
    KB_ANSWER_CLOSE,     /* none, and FIN */
    KB_ANSWER_RESET,     /* none, and RST */
    KB_ANSWER_CUT,       /* its first `at` bytes, then FIN */
    KB_ANSWER_CUT_STALL, /* its first `at` bytes, then silence */
    KB_ANSWER_CUT_RESET, /* its first `at` bytes, then RST */
    KB_ANSWER_SHORT,     /* body cut after `at` bytes, the size says so */
    KB_ANSWER_GARBAGE,   /* right size, body of pseudo-random bytes */
    KB_ANSWER_FLIP,      /* bit `at` of the body flipped */
    KB_ANSWER_TWICE,
    KB_ANSWER_WRONG_ID,    /* another correlation id */
    KB_ANSWER_LIE,         /* all of it, behind a size field of `at` */
    KB_ANSWER_HUGE,        /* a size field of INT32_MAX */
    KB_ANSWER_NEGATIVE,    /* a size field of -1 */
    KB_ANSWER_TINY,        /* a frame of 2 bytes */
    KB_ANSWER_UNASKED,     /* one more answer in front, to nobody's request */
    KB_ANSWER_OTHER_API,   /* the right id, another API's body */
    KB_ANSWER_DRIBBLE,     /* one byte every `dribble_ns` */
    KB_ANSWER_HALF_CLOSE,  /* the answer, then the broker's half is closed */
    KB_ANSWER_CLOSE_AFTER, /* the answer, then FIN */
    KB_ANSWER_BEHIND,      /* the answer, behind the next one */
    KB_ANSWER_KINDS
};

struct kb_action {
    int64_t process_ns; /* wait so long before handling the request */
    int64_t answer_ns;  /* wait so long before the answer goes out */
    int64_t dribble_ns;
    enum kb_answer answer;
    uint32_t at;
    bool ignore; /* the request is not handled at all */
    bool has_error;
    int16_t error; /* of the partition, the topic, or the whole answer */
    bool append;   /* ... after everything was done as if there were none */
    bool omit;     /* the answer does not speak of the partition */
    bool repeat;   /* ... speaks of it twice, the second time error -1 */
    bool stranger; /* ... speaks of a partition nobody asked about */
    bool has_offset;
    int64_t base_offset; /* answered instead of the real one */
    bool has_log_start;
    int64_t log_start; /* answered instead of the real one, or of -1 */
    bool has_throttle;
    int32_t throttle_ms; /* answered, and enforced if positive */
    bool
        has_take; /* of a connection: not at once, but when so many bytes of it */
    int64_t take;    /* were read, it ends as `answer` says */
    int32_t text;    /* bytes of an error message, none of them fit to print */
    bool has_blame;  /* the answer names this record of the batch as the one */
    int32_t blame;   /* that is to blame */
    bool has_hint;   /* the answer says who leads the partition, true or not */
    int32_t hint;    /* this broker; of one that there is it says where */
    int32_t hint_epoch;
    bool no_brokers; /* Metadata that names none */
};

#define KB_API_CONNECT (-2) /* the moment of connecting, as an API */

struct kb_rule {
    int16_t api;       /* -1: any but KB_API_CONNECT */
    int32_t node_id;   /* -1: any */
    char topic[250];   /* "": any.  Produce and Metadata */
    int32_t partition; /* -1: any.  Produce; Metadata: not the topic, but this
                          one loses its leader, unless `append` */
    int64_t skip;      /* let so many pass first */
    int64_t count;     /* then apply to so many; -1: for ever */
    struct kb_action action;
};
/* api -1, node -1, partition -1, count 1, nothing done. */
void kb_rule_default(struct kb_rule *r);
/* The id.  All rules that match a request apply to it, the oldest first; later
 * ones win where they say something. */
int kb_rule_add(struct kb_cluster *c, const struct kb_rule *r);
void kb_rule_remove(struct kb_cluster *c, int id); /* -1: all */
int64_t kb_rule_hits(const struct kb_cluster *c, int id);
/* One rule as a line of text, as in a script file (README.md has them all):
 *   api=produce node=1 topic=t partition=0 skip=2 count=1 error=6 append
 *   answer=none answer_ms=100 process_ms=10 at=7 throttle_ms=5 offset=3
 *   log_start=2 ...
 * NULL, or what is wrong with it. */
const char *kb_rule_parse(const char *line, struct kb_rule *out);

struct kb_request_info {
    int32_t node_id;
    int16_t api, version;
    int16_t acks;          /* Produce */
    const char *topic;     /* NULL: the request as a whole */
    int32_t partition;     /* -1: the request as a whole */
    const char *client_id; /* may be NULL */
    void *user;            /* of the connection */
};
/* Asked after the rules, for each request as a whole, and for each partition of
 * a Produce request; what it leaves alone stays as the rules said. */
typedef void (*kb_decide_fn)(void *arg, const struct kb_request_info *info,
                             struct kb_action *action);
void kb_on_decide(struct kb_cluster *c, kb_decide_fn fn, void *arg);

/* -- ground truth -- */

/* What became of one batch of a Produce request, when it was judged. */
struct kb_verdict {
    int64_t now_ns;
    int32_t node_id;
    const char *topic;
    struct uuid topic_id;
    int32_t partition;
    int16_t acks;
    int16_t error; /* of the checks; 0 for a duplicate too */
    bool appended, duplicate;
    int64_t base_offset; /* -1 unless appended or duplicate */
    bool header_valid;
    struct record_batch_header header;
    const uint8_t *batch; /* the bytes as sent; NULL when skimmed */
    size_t batch_size;
};
typedef void (*kb_verdict_fn)(void *arg, const struct kb_verdict *v);
void kb_on_verdict(struct kb_cluster *c, kb_verdict_fn fn, void *arg);

/* A stored record.  Pointers are good until the iterator moves on. */
struct kb_record {
    int64_t offset, timestamp_ms;
    const uint8_t *key, *value; /* NULL: null */
    size_t key_size, value_size;
    const uint8_t *headers; /* for kb_header_next */
    size_t headers_size;
    int32_t header_count;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t sequence; /* -1: none */
    int64_t batch_base_offset, append_time_ms;
    int32_t leader_epoch;
    int codec;
};
struct kb_header {
    const uint8_t *key, *value; /* value NULL: null */
    size_t key_size, value_size;
};
/* The log of the current leader, or of the one that led last.  Deleted topics
 * can be read through kb_log_open_id. */
struct kb_log;
struct kb_log *kb_log_open(const struct kb_cluster *c, const char *topic,
                           int32_t partition);
struct kb_log *kb_log_open_id(const struct kb_cluster *c, struct uuid id,
                              int32_t partition);
/* Of one node's replica. */
struct kb_log *kb_log_open_replica(const struct kb_cluster *c,
                                   const char *topic, int32_t partition,
                                   int32_t node_id);
/* False: the end.  The log must not change meanwhile. */
bool kb_log_next(struct kb_log *l, struct kb_record *out);
void kb_log_close(struct kb_log *l);
/* Start with *at NULL-initialised: zero. */
struct kb_header_cursor {
    size_t used;
    int32_t index;
};
bool kb_header_next(const struct kb_record *r, struct kb_header_cursor *at,
                    struct kb_header *out);

int64_t kb_log_start(const struct kb_cluster *c, const char *topic,
                     int32_t partition);
int64_t kb_log_end(const struct kb_cluster *c, const char *topic,
                   int32_t partition);
int64_t kb_high_watermark(const struct kb_cluster *c, const char *topic,
                          int32_t partition);
/* Records and bytes appended to a topic's leaders, over all partitions. */
struct kb_totals {
    int64_t batches, records, bytes, duplicates, refused;
};
/* topic NULL: all topics. */
void kb_totals(const struct kb_cluster *c, const char *topic,
               struct kb_totals *out);
/* Requests handled of an API (-1: all) by a node (-1: all). */
int64_t kb_requests(const struct kb_cluster *c, int32_t node_id, int16_t api);
/* Highest version of it seen; -1: none. */
int16_t kb_version_seen(const struct kb_cluster *c, int16_t api);
int64_t kb_connects(const struct kb_cluster *c, int32_t node_id);
int kb_open_connections(const struct kb_cluster *c, int32_t node_id);
/* Produce requests that wait for replicas. */
int kb_parked(const struct kb_cluster *c);
/* Topics in order of creation; NULL: no more.  Deleted ones too. */
const char *kb_topic_name(const struct kb_cluster *c, size_t index,
                          bool *deleted);

/* One line a record, or one a topic. */
void kb_dump(const struct kb_cluster *c, FILE *out);
void kb_print_totals(const struct kb_cluster *c, FILE *out);

#endif
