/* SPDX-License-Identifier: BSD-2-Clause */
/* kp.h - a Kafka producer for C.
 *
 * Names.    kp_verb acts on a producer, kp_noun_verb on a noun.
 * Threads.  Any call may be made from any thread, unless its comment says not.
 *           A kp_config and a kp_future have one owner at a time.
 * Waiting.  A call waits only if it takes a timeout_ms, or is a send, which
 *           waits at most max.block.ms.  KP_FOREVER never times out, 0 never
 *           waits, another negative number is KP_EINVAL.
 * Memory.   Arguments are borrowed: when the call returns, every byte you
 *           passed is yours again.  What *_create gives, *_destroy takes back.
 * Structs.  All-zero is always valid and means "the defaults".  `reserved`
 *           must be zero.  kp_record and kp_report never change size; a struct
 *           lent to a callback may grow at its end, so use it by pointer.
 * Promise.  A send that returns KP_OK has taken the record: exactly one
 *           delivery report follows, within delivery.timeout.ms.  A send that
 *           returns anything else took nothing, and no report follows.
 * Process.  Our threads take no signals, but of a fault in a callback; we raise
 *           none.  No call is a cancellation point.  In a child of fork(2) every
 *           call on what it inherited says KP_EFORK; *_destroy works, and
 *           touches no socket.  dlclose(3) leaves the library mapped.
 *           A child forked in a delivery callback leaves by _exit or exec: if
 *           the callback returns in it, only its thread ends.
 */
#ifndef KP_KP_H
#define KP_KP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "errors.h"

#define KP_VERSION_MAJOR 0
#define KP_VERSION_MINOR 1
#define KP_VERSION_PATCH 0
#define KP_VERSION_NUM 0x000100 /* to compare: 0xMMmmpp */

#if defined(__GNUC__)
#define KP_API __attribute__((visibility("default")))
#else
#define KP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define KP_FOREVER (INT64_C(-1)) /* a timeout that never comes */

typedef struct kp_config kp_config;     /* settings, until a producer is made */
typedef struct kp_producer kp_producer; /* buffers, sockets, one I/O thread */
typedef struct kp_cq kp_cq;             /* a completion queue, with an fd */

/* -- Errors --
 * Zero: success.  Positive: a broker said so, with Kafka's own number; code
 * NAME is KP_NAME in kp/errors.h, which this header includes.  Negative: we
 * said so. Kafka's UNKNOWN_SERVER_ERROR stays -1. */
typedef int32_t kp_err;
enum {
    KP_OK = 0,
    KP_PENDING = -100, /* not an error: your timeout came first */

    /* The call is wrong. */
    KP_EINVAL = -101,     /* any other argument, or a setting */
    KP_ETOPIC = -102,     /* not a legal name; or too many topics or partitions */
    KP_EPARTITION = -103, /* negative, unflagged, or from a partitioner */
    KP_ETIMESTAMP = -104, /* negative, or set without KP_HAS_TIMESTAMP */
    KP_EHEADER = -105,    /* a header without a key */
    KP_ETOOBIG = -106,    /* over max.request.size or buffer.memory */
    KP_ESTATE = -107,     /* right call, wrong moment */
    KP_EDEADLK = -108,    /* a call that waits, made from a callback */
    KP_EFORK = -109,      /* made in a child of the producer's process */
    KP_ENOTSUP = -110,    /* this build, or this broker, cannot do it */

    /* Not now: nothing was taken. */
    KP_ENOMEM = -120,
    KP_EMETADATA = -121, /* topic or partition unknown for max.block.ms */
    KP_EBUFFER = -122,   /* buffer.memory stayed full for max.block.ms */

    /* Taken, and failed. */
    KP_ETIMEDOUT = -130, /* delivery.timeout.ms passed; see the cause */
    KP_ECLOSED = -131,   /* the producer is closed: sends say so too */
    KP_EABORTED = -132,  /* its transaction was aborted */
    KP_EBATCH = -133,    /* another record of its batch was refused */

    /* The network: mostly seen as a cause. */
    KP_ERESOLVE = -140,    /* no address for a host name */
    KP_ECONNECT = -141,    /* refused, unreachable or silent */
    KP_EDISCONNECT = -142, /* the connection went away */
    KP_ETLS = -143,        /* no TLS, or a certificate was not accepted */
    KP_ESASL = -144,       /* the broker refused the credentials */
    KP_EPROTO = -145       /* a broker sent bytes we cannot accept */
};

typedef int32_t kp_kind; /* what to do about an error, in Kafka's words */
enum {
    KP_KIND_NONE = 0,  /* nothing is wrong */
    KP_KIND_RETRIABLE, /* the same call may succeed later */
    KP_KIND_INVALID,   /* the same call will fail again: change it */
    KP_KIND_ABORTABLE, /* kp_txn_abort, then begin again */
    KP_KIND_FATAL      /* destroy this producer; every call now says this err */
};

typedef struct kp_error { /* optional last argument; written on failure */
    kp_err err;
    kp_err cause; /* what stood in the way: the last error before; or KP_OK */
    kp_kind kind;
    int32_t reserved;
    char text[240]; /* what was wrong, with which value, and what to try */
} kp_error;

KP_API const char *kp_err_name(kp_err err); /* "NOT_LEADER_OR_FOLLOWER" */
KP_API const char *kp_err_text(kp_err err); /* one sentence */
/* By the code alone; a kp_report or a kp_error, made on the spot, is exact. */
KP_API kp_kind kp_err_kind(kp_err err);

/* -- Records and delivery reports -- */
typedef struct kp_bytes { /* data NULL: Kafka's null.  Else size may be 0. */
    const void *data;
    size_t size;
} kp_bytes;

static inline kp_bytes kp_str(const char *s) /* a C string's bytes */
{
    kp_bytes b;
    b.data = s;
    b.size = s != NULL ? strlen(s) : 0;
    return b;
}

typedef struct kp_header {
    kp_bytes key; /* not null */
    kp_bytes value;
} kp_header;

/* What a future, callback or queue brings: one for each record taken.  topic
 * and text are lent: until the callback returns, the future is released, or
 * the queue is polled again. */
typedef struct kp_report {
    void *tag;
    kp_err err;       /* KP_OK: acknowledged as `acks` demands */
    kp_err cause;     /* the last error before this one; or KP_OK */
    kp_kind kind;     /* of err, here and now */
    int32_t stored;   /* is it in the log?  below; acks=0: MAYBE */
    int32_t partition;
    int32_t reserved;
    int64_t offset;       /* -1: the broker did not say */
    int64_t timestamp_ms; /* -1: the broker did not say */
    const char *topic;
    const char *text; /* more, if anyone said more; else NULL */
} kp_report;
enum { KP_STORED_MAYBE = 0, KP_STORED_NO, KP_STORED_YES };

/* Runs on the I/O thread, no locks held, in sending order per partition.  It
 * must be quick and must not throw; sends made from it act as KP_NOWAIT. */
typedef void (*kp_delivery_fn)(const kp_report *report);

enum { /* kp_record.flags */
    KP_HAS_PARTITION = 1, /* send to `partition`; else we choose */
    KP_HAS_TIMESTAMP = 2, /* stamp with `timestamp_ms`; else with now */
    KP_NOWAIT = 4         /* fail where a send would wait, with the same err */
};

typedef struct kp_record {
    const char *topic;
    size_t topic_size;        /* 0: topic is a C string */
    kp_bytes key;             /* null: no key */
    kp_bytes value;           /* null: a tombstone */
    const kp_header *headers; /* kept in order; equal keys are allowed */
    size_t header_count;
    int64_t timestamp_ms;       /* since 1970, UTC; after 5138 it is logged */
    int32_t partition;
    uint32_t flags;
    void *tag;                  /* yours; comes back in the report */
    kp_delivery_fn on_delivery; /* where the report goes: to this, */
    kp_cq *queue;               /* or to this; and to the future, if asked */
    uint32_t max_wait_ms;       /* wait at most so long; 0: max.block.ms */
    uint32_t reserved32;
    uint64_t reserved[2];
} kp_record;

/* -- Configuration: Java's property names, Java's defaults -- */
/* KP_EINVAL for NULL, or KP_ENOMEM. */
KP_API kp_err kp_config_create(kp_config **out);
KP_API void kp_config_destroy(kp_config *config); /* NULL is ignored */
/* An unknown name is KP_EINVAL, and the text names the nearest known one.  What
 * this version lacks (TLS, SASL, transactions) is KP_ENOTSUP, here and in a
 * file, and sticks: no producer is made from this config any more, whatever is
 * set later, so that nothing meant to be secret is sent in the clear.  Any
 * other refusal leaves the config as it was. */
KP_API kp_err kp_config_set(kp_config *config, const char *name,
                            const char *value, kp_error *error);
/* Read a Java .properties file (at most 1 MB): the one the Kafka tools already
 * use.  Unknown names are logged and passed over, as Java does.  All of it is
 * taken or nothing; a file that cannot be read is KP_EINVAL. */
KP_API kp_err kp_config_load(kp_config *config, const char *path,
                             kp_error *error);

typedef struct kp_property { /* lent */
    const char *name, *value, *default_value, *help; /* secrets: "********" */
    int32_t is_set;
} kp_property;
typedef void (*kp_property_visit)(void *arg, const kp_property *property);
/* Every property there is, shown before the call returns.  config may be NULL:
 * all at their defaults. */
KP_API void kp_config_properties(const kp_config *config,
                                 kp_property_visit visit, void *arg);

typedef int32_t kp_level;
enum { KP_LOG_ERROR, KP_LOG_WARN, KP_LOG_INFO, KP_LOG_DEBUG };
typedef struct kp_log { /* lent */
    kp_level level;
    int32_t repeated;      /* identical lines held back before this one */
    const char *client_id; /* whose line */
    const char *component; /* "metadata", "connection", "sasl", ... */
    const char *text;      /* one line; never secrets, never record contents */
} kp_log;
/* Any thread, several at once; no locks held; must not call kp_*: what it calls
 * all the same acts as in a delivery callback.  A child forked in it must not
 * return from it. */
typedef void (*kp_log_fn)(void *arg, const kp_log *line);
/* Lines up to `level`, to `fn` (NULL: none).  Until this is called we are
 * silent: call it first. */
KP_API void kp_config_on_log(kp_config *config, kp_level level, kp_log_fn fn,
                             void *arg);
KP_API void kp_log_stderr(void *arg, const kp_log *line); /* a ready one */

/* Choose from [0, count), or -1: as the built-in partitioner would; another
 * number refuses the record with KP_EPARTITION.  Runs on the sending threads,
 * several at once, no locks held. */
typedef int32_t (*kp_partitioner_fn)(void *arg, const kp_record *r,
                                     int32_t count);
KP_API void kp_config_set_partitioner(kp_config *config, kp_partitioner_fn fn,
                                      void *arg);

/* -- Lifetime -- */
/* Start a producer and its I/O thread.  The config is copied.  Checks settings
 * against each other, but does not wait for the network.  KP_EINVAL; KP_ENOTSUP
 * for what was asked and is lacking; KP_ENOMEM, also when the system gives no
 * thread or descriptor.  Java: KafkaProducer's constructor. */
KP_API kp_err kp_producer_create(kp_producer **out, const kp_config *config,
                                 kp_error *error);
/* Take no more, deliver what is buffered, stop the I/O thread; what is left at
 * the timeout fails with KP_ECLOSED.  Every report is made before it returns.
 * May be called again, also by several threads: the earliest end counts.
 * Returns KP_ECLOSED if it failed any record, else as kp_flush.  From one of
 * this producer's callbacks it starts a close with timeout 0 and returns
 * KP_PENDING; from another's it does so with timeout 0, else KP_EDEADLK. */
KP_API kp_err kp_close(kp_producer *p, int64_t timeout_ms, kp_error *error);
/* Close at once if still open, and free.  The last call on this producer: join
 * the threads that use it first; its futures may outlive it.  NULL is ignored.
 * From a callback: KP_EDEADLK, and nothing is done. */
KP_API kp_err kp_producer_destroy(kp_producer *p);
/* What now stands between this topic (NULL: any) and its brokers.  KP_OK:
 * nothing that we know of; KP_ECLOSED after a close.  Never waits; any thread,
 * in callbacks too.  For health checks, and to explain KP_EMETADATA, KP_EBUFFER
 * and KP_KIND_FATAL. */
KP_API kp_err kp_status(kp_producer *p, const char *topic, kp_error *error);

/* -- Sending -- */
typedef struct kp_future { /* a claim ticket: one owner, moved by assignment */
    void *result_;
    void *tag_;
    uint32_t index_;
    uint32_t check_;
} kp_future;

/* Encode one record into its partition's batch.  `future` may be NULL.  After
 * a failure it holds that failure (stored NO, no partition), and need not be
 * released.  Waits, for max.block.ms in all, for the topic and its partition
 * (then KP_EMETADATA) and for memory (then KP_EBUFFER).  A thread that fills a
 * batch also compresses it.  Refused at once: what is wrong with the record
 * (KP_EINVAL to KP_ETOOBIG above); KP_ENOMEM; KP_EFORK; KP_ECLOSED once closed;
 * what the producer is fatal by.  A topic that the brokers refuse is refused
 * with their code at once; kp_err_text says what a code means, kp_status more
 * about this case.  Java: KafkaProducer.send. */
KP_API kp_err kp_send(kp_producer *p, const kp_record *r, kp_future *future);

/* Send in order, up to the first record not taken, whose error is returned.
 * `futures` (one for each record; those past *taken hold the failure) and
 * `taken` may be NULL.  Waits at most max.block.ms in all.  A record with both
 * a callback and a queue is KP_EINVAL. */
KP_API kp_err kp_send_many(kp_producer *p, const kp_record *records,
                           size_t count, kp_future *futures, size_t *taken);

/* Wait for the report of every record taken before this call, and for its
 * callback to return; KP_PENDING at the timeout.  Batches are sent without
 * lingering, and with a codec the thread that waits compresses some of them.
 * A failure that nobody watched (no future, callback or queue) is returned by
 * the next flush or close: the first one's err, and in error->text how many;
 * else the fatal error, if there is one.  From a callback KP_EDEADLK, unless
 * timeout_ms is 0.  Java: KafkaProducer.flush. */
KP_API kp_err kp_flush(kp_producer *p, int64_t timeout_ms, kp_error *error);

/* -- Futures -- */
/* Returns the report's err, or KP_PENDING.  `report` may be NULL, and is
 * written only with a report.  May be called again until released.  An all-zero
 * future is KP_EINVAL.  From a callback KP_EDEADLK, unless timeout_ms is 0 or
 * the send was refused. */
KP_API kp_err kp_future_wait(const kp_future *future, int64_t timeout_ms,
                             kp_report *report);
/* KP_PENDING if any is still pending at the timeout; else the first failure in
 * array order; else KP_OK.  Skips all-zero futures.  One timeout for all.  From
 * a callback KP_EDEADLK, unless timeout_ms is 0. */
KP_API kp_err kp_future_wait_all(const kp_future *futures, size_t count,
                                 int64_t timeout_ms);
/* Give up `count` futures, done or not, once each; leaves zeroes behind.  Never
 * waits.  The records go their way all the same. */
KP_API void kp_future_release(kp_future *futures, size_t count);

/* -- Completion queue: for event loops and other languages -- */
/* Needs no capacity: a report not yet polled is part of buffer.memory.
 * KP_EINVAL; KP_ENOMEM, also when the system gives no descriptor. */
KP_API kp_err kp_cq_create(kp_cq **out, kp_error *error);
/* Before or after its producers, with nobody polling.  Reports not yet polled,
 * and those to come, are dropped.  NULL is ignored. */
KP_API void kp_cq_destroy(kp_cq *queue);
/* Readable when kp_cq_poll has something to say: a report; a wake-up; or that
 * a KP_NOWAIT send to this queue, once refused, may now be tried again.  The
 * queue's own: wait for it with poll(2) or the like, and do nothing else with
 * it. */
KP_API int kp_cq_fd(const kp_cq *queue);
/* Take up to `max` reports; returns how many: 0 at the timeout, for a wake-up,
 * for what a KP_NOWAIT send waits for, for a wrong argument, and at once while
 * another thread polls: one at a time.  From a callback it does not wait. */
KP_API size_t kp_cq_poll(kp_cq *queue, kp_report *reports, size_t max,
                         int64_t timeout_ms);
KP_API void kp_cq_wakeup(kp_cq *queue); /* let one kp_cq_poll return */

/* -- Looking in -- */
typedef struct kp_partition { /* lent */
    int32_t id, leader, leader_epoch; /* leader -1: none now */
    int32_t replica_count, isr_count;
} kp_partition;
typedef void (*kp_partition_visit)(void *arg, const kp_partition *partition);
/* *count (may be NULL) gets the number of partitions; `visit` may be NULL and
 * runs in this call, no locks held.  Waits for a topic that is not known yet:
 * KP_EMETADATA at the timeout, or the brokers' code at once; from a callback
 * KP_EDEADLK, unless timeout_ms is 0.  Java: KafkaProducer.partitionsFor. */
KP_API kp_err kp_partitions_for(kp_producer *p, const char *topic,
                                int64_t timeout_ms, int32_t *count,
                                kp_partition_visit visit, void *arg);

typedef struct kp_label {
    const char *name, *value;
} kp_label;
typedef struct kp_metric { /* lent; names and groups are Java's, and stable */
    const char *group, *name, *help;
    const kp_label *labels; /* {"client-id", "orders"}, {"topic", "t"} */
    size_t label_count;
    int32_t is_counter; /* else a gauge */
    double value;
} kp_metric;
typedef void (*kp_metric_visit)(void *arg, const kp_metric *metric);
/* Every metric, shown in this call, no locks held.  Any thread, in callbacks
 * too; shows nothing without memory.  Java: KafkaProducer.metrics. */
KP_API void kp_metrics(kp_producer *p, kp_metric_visit visit, void *arg);
KP_API const char *kp_version(void);  /* of the library actually loaded */
KP_API const char *kp_features(void); /* "tls gzip snappy lz4 zstd ..." */

#ifdef __cplusplus
}
#endif
#endif /* KP_KP_H */
