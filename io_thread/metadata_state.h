/* SPDX-License-Identifier: BSD-2-Clause */
/* metadata_state.h - what metadata remembers: its own files only.  I/O thread
 * only.
 *
 *   metadata.c         when to ask, whom, and the request
 *   metadata_topics.c  names that are wanted, topics in use
 *   metadata_answer.c  taking an answer in */
#ifndef KP_IO_METADATA_STATE_H
#define KP_IO_METADATA_STATE_H

#include "io_thread/metadata.h"
#include "lib/base/heap.h"
#include "lib/base/map.h"
#include "lib/base/rand.h"

/* A topic that brokers refuse is asked about again after so long, for as long
 * as somebody sends to it. */
#define REFUSED_AGAIN_NS (10 * KP_NS_PER_SEC)
/* A name that nobody waits for is remembered for so long at least. */
#define NAME_KEPT_NS (5 * KP_NS_PER_SEC)
/* A topic that stays in trouble is told of again after so long, then after
 * twice that, and so on up to the longest. */
#define TELL_AGAIN_NS (10 * KP_NS_PER_SEC)
#define TELL_AGAIN_MAX_NS (300 * KP_NS_PER_SEC)

/* What answers say against a topic. */
struct trouble {
    kp_err err; /* KP_OK: nothing */
    uint32_t answers;
    int64_t since_ns, tell_ns;
};

/* A name that no broker has confirmed. */
struct wanted {
    char *name;
    size_t size;
    struct list_node link;   /* m->wanted_due or m->wanted_asked; or none: */
    struct heap_node again;  /* m->refused */
    kp_err err;              /* the last answer */
    struct trouble trouble;
};

struct partition_meta {
    struct node *leader;  /* or NULL */
    int32_t epoch;        /* -1: unknown */
    bool told;            /* the sender knows of this queue */
    bool denied;          /* the leader says that it does not lead */
    int64_t older_since_ns; /* since when answers have named older epochs, and
                               no leader bears out this one; 0: they have not */
};

/* A confirmed topic; topic->metadata. */
struct topic_meta {
    bool announce; /* published, and its waiters not told yet */
    struct topic *topic;
    struct uuid id, previous_id; /* zero: unknown, none */
    int64_t used_ns;
    int64_t asked_until_ns;  /* somebody waits for a partition it lacks */
    bool listed;             /* in the refresh set */
    struct list_node link;   /* m->listed while listed */
    struct list_node due;    /* m->topics_due or m->topics_asked */
    struct list_node all;    /* m->all */
    struct heap_node again;  /* m->refused_topics */
    int32_t count;
    int32_t living; /* of the topic as it is: fewer, if it was made anew so */
    struct partition_meta *partitions;
    kp_err err;              /* of the last answer */
    bool status_set;
    struct trouble trouble;
};

struct metadata {
    /* fixed at birth */
    const struct settings *settings;
    struct network_client *client;
    struct topics *topics;
    struct status *status;
    struct logger *log;
    struct metrics *metrics;
    struct metadata_events events;

    struct rng rng;
    int64_t now_ns;

    struct map wanted; /* name -> struct wanted */
    struct list wanted_due, wanted_asked, wanted_gone;
    struct heap refused, refused_topics;
    struct map by_id; /* uuid -> struct topic_meta */
    struct list all, listed, topics_due, topics_asked;

    bool full_due;   /* everything in use is to be asked about */
    bool fresh;      /* something was never asked about: need not wait */
    bool no_node;    /* due, and no node could take it */
    bool in_flight, in_flight_full;
    uint32_t serial; /* of answers */
    int64_t last_full_ns; /* the last answer about everything */
    int64_t next_allowed_ns;
    int64_t trying_since_ns; /* -1: not trying */
    uint32_t failures, equivalents;

    struct log_limit failed_limit, topic_limit, count_limit, anew_limit,
        older_limit;
};

/* -- metadata_topics.c -- */
struct topic_meta *kp__meta_of(const struct topic *t);
struct wanted *kp__wanted_find(const struct metadata *m, const char *name,
                               size_t size);
/* The name is confirmed, or nobody wants it any more. */
void kp__wanted_drop(struct metadata *m, struct wanted *w);
/* It is to be asked about (again). */
void kp__wanted_due(struct metadata *m, struct wanted *w);
/* A broker has refused it for good, for now. */
void kp__wanted_refused(struct metadata *m, struct wanted *w);
/* Refused names whose time has come. */
void kp__wanted_again(struct metadata *m);
/* Brokers that speak no versions of ours cannot be asked: who waits for a
 * name is told so (KP_ENOTSUP), or, if that was so, that they may be asked
 * again. */
void kp__wanted_tell_too_old(struct metadata *m, bool too_old);
/* Names that nobody wants any more. */
void kp__wanted_expire(struct metadata *m);
/* The same for topics in use; and refused ones whose time has come. */
void kp__meta_refused(struct metadata *m, struct topic_meta *t);
void kp__meta_again(struct metadata *m);
/* Ask about this topic with the next request. */
void kp__meta_due(struct metadata *m, struct topic_meta *t);
/* Room for `count` partitions.  False: no memory. */
bool kp__meta_grow(struct topic_meta *t, int32_t count);
/* A confirmed name: publish it.  NULL: no memory, or the table is full. */
struct topic_meta *kp__meta_confirm(struct metadata *m, const char *name,
                                    size_t size, int32_t count);
/* Topics not used for metadata.max.idle.ms leave the refresh set. */
void kp__meta_expire(struct metadata *m);
/* Remember the id; a change says that the topic was recreated. */
bool kp__meta_set_id(struct metadata *m, struct topic_meta *t,
                     const struct uuid *id);
/* Tell everybody about the leader of a partition if it has changed, and the
 * counts to whoever looks. Returns whether it had. */
bool kp__meta_set_leader(struct metadata *m, struct topic_meta *t, int32_t i,
                         struct node *leader, int32_t epoch);
bool kp__uuid_is_zero(const struct uuid *id);

/* -- metadata_answer.c -- */
/* Take an answer of this version in.  KP_OK; KP_EPROTO, a broker's code, or
 * KP_EMETADATA: it is of no use and the asking has failed.  *news: it told
 * something new. */
kp_err kp__meta_take(struct metadata *m, int16_t version,
                     const struct metadata_response *answer, bool *news);

#endif
