/* SPDX-License-Identifier: BSD-2-Clause */
/* topics.h - topics that exist, and names that are asked for.
 *
 * The table only grows; an entry and its queues live as long as the producer.
 * What a send needs is published by the I/O thread with release stores and read
 * with acquire loads: a send takes no lock here and writes nothing.  A name
 * enters the table when a broker has confirmed it, at most 100,000 of them;
 * names asked for and not confirmed stand in a small table of their own, on the
 * slow path. */
#ifndef KP_SHARED_TOPICS_H
#define KP_SHARED_TOPICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "include/kp/kp.h"
#include "lib/base/list.h"
#include "lib/base/mutex.h"
#include "lib/base/wait.h"
#include "lib/shared/batch_result.h"

struct partition_queue;
struct record_accumulator;

#define TOPICS_MAX 100000
#define TOPIC_SIZE_MAX 249 /* of a name; Kafka: Topic.MAX_NAME_LENGTH */
/* Several times what a cluster has, and its largest topic; each partition costs
 * some 1,200 bytes of ours for as long as the producer lives.  So what a broker
 * says cannot take more than PARTITIONS_MAX of that. */
#define TOPIC_PARTITIONS_MAX 200000
#define PARTITIONS_MAX 1000000

/* Which partitions an unkeyed record may go to, and how likely: prefix sums as
 * in Java's BuiltInPartitioner.  Allocated once with a view of the same size
 * and then rewritten in place with relaxed stores: a torn read costs one odd
 * choice, never a bad partition. */
struct topic_weights {
    int32_t capacity;
    _Atomic int32_t count; /* entries in use; 0: uniform over all */
    struct {
        _Atomic int32_t partition;
        _Atomic uint64_t sum; /* 2^32 is soon passed: weights are backlogs */
    } entries[];
};

struct topic_view { /* immutable */
    int32_t count;
    /* These two have room for later views, which share them: who holds this one
     * looks at no more than its count. */
    struct partition_queue **queues;
    struct topic_weights *weights;
    struct partition_queue *made; /* those that came with this view */
    int32_t made_count;
    bool owner; /* of queues and weights: the first that has them */
    struct topic_view *older; /* replaced by this one, kept until destroy */
};

struct topic {
    /* fixed at birth */
    struct topic_name *name;
    uint64_t hash;
    uint32_t number; /* of the topic in this producer */
    /* published by the I/O thread */
    _Atomic(struct topic_view *) view;
    _Atomic int32_t refused; /* a kp_err that brokers now answer; KP_OK: none */
    _Atomic uint32_t version; /* raised by each publication: a wait word */
    /* by senders, once a batch */
    _Atomic int32_t sticky; /* -1: none chosen yet */
    _Atomic uint32_t round_robin;
    /* I/O thread only */
    void *metadata; /* the metadata's own entry */
    struct list_node weigh_link; /* while its weights are out of date */
};

/* A name that is asked for.  Counted; waiters keep it. */
struct topic_wait {
    _Atomic uint32_t version; /* raised by each answer: a wait word */
    _Atomic uint32_t refs;
    /* guarded by the table's lock */
    kp_err err;       /* last answer; KP_OK: none yet */
    int64_t since_ns; /* unknown since */
    int64_t asked_ns; /* last time a sender asked */
    bool posted;      /* the I/O thread knows of it */
    struct topic_name *name;
    struct topic_wait *next; /* of a list at hand */
};

struct topics;

struct topics *kp__topics_create(struct record_accumulator *a);
void kp__topics_destroy(struct topics *t);
/* It holds as many topics as it may. */
bool kp__topics_is_full(const struct topics *t);
/* NULL: not confirmed.  No lock. */
struct topic *kp__topics_find(const struct topics *t, const char *name,
                              size_t size);
/* The same for a name that is likely to be one of the last this thread asked
 * for; size 0: it is terminated. */
struct topic *kp__topics_find_again(const struct topics *t, const char *name,
                                    size_t size);
static inline const struct topic_view *kp__topic_view(const struct topic *t)
{
    /* acquire: the queues that the view names were made before it */
    return atomic_load_explicit(&((struct topic *)(uintptr_t)t)->view,
                                memory_order_acquire);
}
/* Ask for a name.  *out gets a counted entry; *post says that the I/O thread
 * must be told (OP_WANT_TOPIC).  KP_ETOPIC: the table is full; KP_ENOMEM. */
kp_err kp__topics_want(struct topics *t, const char *name, size_t size,
                       int64_t now_ns, struct topic_wait **out, bool *post);
/* Those who saw the same version are woken apart from all others. */
static inline uint32_t kp__topics_mask(uint32_t seen)
{
    return UINT32_C(1) << (seen % 32);
}
/* What to sleep on until a topic's or a name's version is another than `seen`.
 */
static inline struct ticket kp__topics_ticket(_Atomic uint32_t *version,
                                              uint32_t seen,
                                              int64_t deadline_ns)
{
    return (struct ticket){version, seen, deadline_ns, kp__topics_mask(seen)};
}
/* A waiter that is back from its ticket calls this first of all: a new version
 * wakes two who saw the one before, and each of them two more.  Nobody sleeps
 * who sees that one now: so it comes to an end, though many find nothing for
 * them and wait on. */
static inline void kp__topics_relay(const struct ticket *t)
{
    /* relaxed: only whether there was news */
    if (t->word != NULL &&
        atomic_load_explicit(t->word, memory_order_relaxed) != t->seen)
        kp__wake_masked(t->word, 2, t->mask);
}
/* There was no memory to tell the I/O thread: whoever comes next, or waits,
 * shall. */
void kp__topics_not_posted(struct topics *t, struct topic_wait *w);
/* What the last answer for it was (KP_OK: none yet), and since when it has been
 * unknown. */
kp_err kp__topics_wait_state(struct topics *t, struct topic_wait *w,
                             int64_t *since_ns);
void kp__topics_wait_unref(struct topics *t, struct topic_wait *w);
/* A KP_NOWAIT send to this queue is about to be refused for want of a topic or
 * a partition: signal the queue when there is news.  The caller looks again
 * after it. */
struct kp_cq;
void kp__topics_want_retry(struct topics *t, struct kp_cq *cq);

/* -- I/O thread -- */
/* How many partitions a topic may have now: those of `e` (NULL: a new one), and
 * what the bounds above leave. */
int32_t kp__topics_room(const struct topics *t, const struct topic *e);
/* A broker confirmed the topic with `count` partitions: make the entry or let
 * it grow (never shrink).  `count` is no more than it has, or there is room
 * for.  NULL: no memory, or the table is full. */
struct topic *kp__topics_publish(struct topics *t, const char *name,
                                 size_t size, int32_t count);
/* What was published is complete (leaders too): raise the topic's version and
 * wake, by relay, those who wait for it or its name.  NULL is ignored. */
void kp__topics_announce(struct topics *t, struct topic *e);
/* A broker said no to a name: remember it, wake those who wait. */
void kp__topics_refuse(struct topics *t, const char *name, size_t size,
                       kp_err err);
/* Forget unconfirmed names that nobody waits for and nobody asked for since
 * before_ns; fn hears each name that goes.  Whoever waits on a queue for one of
 * them is signalled: who still wants it must ask again. */
void kp__topics_expire(struct topics *t, int64_t before_ns,
                       void (*fn)(void *arg, const char *name, size_t size),
                       void *arg);
/* Wake everybody who waits for any topic, on a word or on a queue: the producer
 * closes or is fatal.  `taking` says so already. */
void kp__topics_wake_all(struct topics *t);
/* Each entry, in order of confirmation.  Any thread. */
void kp__topics_each(struct topics *t,
                     void (*fn)(void *arg, struct topic *topic), void *arg);
/* Rewrite the weights of the topic's current view: n partitions with their
 * (not summed) weights; n 0: uniform over all. */
void kp__topic_set_weights(struct topic *t, const int32_t *partitions,
                           const uint32_t *weights, int32_t n);

#endif
