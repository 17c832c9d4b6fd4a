/* SPDX-License-Identifier: BSD-2-Clause */
/* send.c - kp_send and kp_send_many.  Application threads, any number at once.
 *
 * The usual send is: look up the topic without a lock, choose a partition,
 * encode under that partition's lock.  Whatever must wait is a `try` and a
 * ticket. Invariant: KP_OK if and only if the record was taken; while a thread
 * waits it holds nothing.  Java: KafkaProducer.doSend, waitOnMetadata. */
#include "lib/api/send.h"

#include <string.h>

#include "lib/api/check_record.h"
#include "lib/api/future.h"
#include "lib/api/partitioner.h"
#include "lib/api/producer.h"
#include "lib/api/refusal.h"
#include "lib/base/thread.h"
#include "lib/shared/cq.h"

/* A call that waits for less than this is not held up by the backlog. */
#define BRAKE_FROM_NS KP_NS_PER_SEC

/* What more waiting will not change, as Java sees it: a broker's code, that no
 * broker speaks our versions, or that there is no room for another topic. */
static bool is_final(kp_err err)
{
    return err != KP_OK && !kp__error_may_pass(err);
}

/* -- the topic -- */

/* The size of the name, for what needs it: a topic that this thread found before
 * is found again without. */
static size_t name_size(struct send *s)
{
    if (s->name_size == 0)
        s->name_size = strlen(s->name);
    return s->name_size;
}

static void drop_wait(struct send *s)
{
    if (s->wait != NULL)
        kp__topics_wait_unref(s->p->topics, s->wait);
    s->wait = NULL;
}

static kp_err ask_for_topic(struct send *s, int64_t now_ns)
{
    struct topic_wait *w;
    bool post;
    kp_err err;

    if (!kp__topic_is_legal(s->name, name_size(s)))
        return KP_ETOPIC;
    err =
        kp__topics_want(s->p->topics, s->name, name_size(s), now_ns, &w, &post);
    if (err != KP_OK)
        return err;
    drop_wait(s);
    s->wait = w;
    if (!post || kp__producer_post(s->p, OP_WANT_TOPIC, s->name, name_size(s)))
        return KP_OK;
    kp__topics_not_posted(s->p->topics, w);
    return KP_ENOMEM;
}

static kp_err taking(const struct kp_producer *p)
{
    /* acquire: pairs with the release that follows fatal_err */
    switch (
        atomic_load_explicit(&p->accumulator.taking, memory_order_acquire)) {
    case TAKING_CLOSED:
        return KP_ECLOSED;
    case TAKING_FATAL:
        return (kp_err)atomic_load_explicit(&p->accumulator.fatal_err,
                                            memory_order_relaxed);
    default:
        return KP_OK;
    }
}

/* Whoever must not wait may sleep on a queue instead, and be told there.
 * Before the question is asked, as its answer may come at once, and before the
 * last look; a close that came before it is seen by that. */
static kp_err want_retry(const struct send *s)
{
    if (s->may_wait || s->record->queue == NULL)
        return KP_OK;
    kp__topics_want_retry(s->p->topics, s->record->queue);
    return taking(s->p);
}

/* What was asked for could not even be noted. */
static bool has_no_memory(const struct send *s)
{
    int64_t since_ns;

    return s->wait != NULL &&
           kp__topics_wait_state(s->p->topics, s->wait, &since_ns) == KP_ENOMEM;
}

/* Everything that must stand before the question may be asked, and the
 * question. */
static kp_err register_and_ask(struct send *s, int64_t now_ns)
{
    kp_err err = taking(s->p);

    if (err == KP_OK && has_no_memory(s))
        err = KP_ENOMEM;
    if (err == KP_OK)
        err = want_retry(s);
    if (err == KP_OK)
        err = ask_for_topic(s, now_ns);
    return err;
}

/* The topic is not known.  Ask; read the version that each answer raises, and
 * the end of the producer; look for that end, at the answer and for the topic;
 * wait for another version.  In this order no news is missed: what comes before
 * the version is read is seen by the look, what comes after it ends the wait. */
static kp_err wait_for_topic(struct send *s)
{
    int64_t now_ns = kp__now_ns(&s->p->clock), since_ns;
    kp_err err = register_and_ask(s, now_ns), answer;
    bool waited_enough;
    uint32_t seen;

    if (err != KP_OK)
        return err;
    /* seq_cst: read before the state, so that an answer in between changes it
     * */
    seen = atomic_load(&s->wait->version);
    err = taking(s->p);
    if (err != KP_OK)
        return err;
    answer = kp__topics_wait_state(s->p->topics, s->wait, &since_ns);
    if (is_final(answer) || answer == KP_ENOMEM)
        return answer;
    if (kp__topics_find(s->p->topics, s->name, name_size(s)) != NULL) {
        s->ticket = (struct ticket){0};
        return KP_PENDING; /* at once */
    }
    waited_enough = answer != KP_OK &&
                    now_ns - since_ns >= s->p->settings.max_block_ns;
    if (!s->may_wait || waited_enough)
        return KP_EMETADATA;
    s->ticket = kp__topics_ticket(&s->wait->version, seen, s->deadline_ns);
    return KP_PENDING;
}

KP_INLINE kp_err find_topic(struct send *s, struct topic **out)
{
    struct topic *t =
        kp__topics_find_again(s->p->topics, s->name, s->name_size);
    kp_err refused, gone;

    if (KP_UNLIKELY(t == NULL))
        return wait_for_topic(s);
    refused = (kp_err)atomic_load_explicit(&t->refused, memory_order_relaxed);
    if (KP_UNLIKELY(refused != KP_OK && is_final(refused))) {
        gone = taking(s->p); /* that weighs more */
        return gone != KP_OK ? gone : refused;
    }
    drop_wait(s);
    *out = t;
    return KP_OK;
}

kp_err kp__topic_try(struct send *s, struct topic **out)
{
    return find_topic(s, out);
}

/* An explicit partition that the topic does not have (yet): as with a topic,
 * with the version of what is published of it. */
static kp_err wait_for_partition(struct send *s, struct topic *t)
{
    /* seq_cst: read before the producer and the view are looked at */
    uint32_t seen = atomic_load(&t->version);
    kp_err err = taking(s->p);

    if (err == KP_OK)
        err = want_retry(s);
    if (err != KP_OK)
        return err;
    if (!kp__producer_post(s->p, OP_WANT_TOPIC, s->name, name_size(s)))
        return KP_ENOMEM;
    if (s->record->partition < kp__topic_view(t)->count)
        s->ticket = (struct ticket){0};
    else if (!s->may_wait)
        return KP_EMETADATA;
    else
        s->ticket = kp__topics_ticket(&t->version, seen, s->deadline_ns);
    return KP_PENDING;
}

/* A record that is not plain. */
static kp_err check(struct kp_producer *p, const kp_record *r)
{
    kp_err err = kp__check_record(r, &p->settings);

    if (err == KP_OK && kp__record_stamp_is_odd(r))
        kp__stamp_log(p, r);
    return err;
}

/* -- the send: its steps are one piece for kp_send, where each layer would cost
 * as much as what it does -- */

KP_INLINE kp_err begin(struct send *s, struct kp_producer *p,
                       const kp_record *r, bool want_future)
{
    kp_err err;

    if (KP_UNLIKELY(p == NULL || r == NULL))
        return KP_EINVAL;
    if (KP_UNLIKELY(p->fork_generation != kp__fork_generation()))
        return KP_EFORK;
    if (KP_UNLIKELY(!kp__record_is_plain(r, &p->settings))) {
        err = check(p, r);
        if (err != KP_OK)
            return err;
    }
    if (KP_UNLIKELY(r->queue != NULL &&
                    r->queue->fork_generation != p->fork_generation))
        return KP_EFORK;
    s->p = p;
    s->record = r;
    s->want_future = want_future;
    s->may_wait = (r->flags & KP_NOWAIT) == 0 && !kp__in_callback();
    s->step = SEND_TOPIC;
    s->wait = NULL;
    s->name = r->topic;
    s->name_size = r->topic_size;
    return KP_OK;
}

kp_err kp__send_begin(struct send *s, struct kp_producer *p, const kp_record *r,
                      bool want_future)
{
    return begin(s, p, r, want_future);
}

/* What kp__partition_for would leave to the accumulator, at a glance. */
KP_INLINE bool is_left_to_sticky(const struct send *s)
{
    const struct settings *settings = &s->p->settings;

    return s->record->key.data == NULL &&
           (s->record->flags & KP_HAS_PARTITION) == 0 &&
           settings->partitioner_fn == NULL &&
           settings->partitioner == PARTITIONER_BUILT_IN;
}

KP_INLINE kp_err begin_append(struct send *s)
{
    struct append *x = &s->append;
    struct topic *t = NULL;
    int32_t count;
    kp_err err = find_topic(s, &t);

    if (err != KP_OK)
        return err;
    count = kp__topic_view(t)->count;
    x->partition = -1;
    if (!is_left_to_sticky(s)) {
        err = kp__partition_for(s->p, s->record, t, count, &x->partition);
        if (err != KP_OK)
            return err;
    }
    if (KP_UNLIKELY(x->partition >= count))
        return wait_for_partition(s, t);
    x->record = s->record;
    x->topic = t;
    x->may_wait = s->may_wait;
    x->want_future = s->want_future;
    x->timestamp_ms = (s->record->flags & KP_HAS_TIMESTAMP) != 0
                          ? s->record->timestamp_ms
                          : -1;
    x->may_brake = s->may_wait && s->record->max_wait_ms == 0 &&
                   s->p->settings.max_block_ns >= BRAKE_FROM_NS;
    x->waiting = x->braking = false;
    x->queue = NULL;
    s->step = SEND_APPEND;
    return KP_OK;
}

static kp_err append(struct send *s)
{
    kp_err err;

    s->append.deadline_ns = s->deadline_ns;
    err = kp__append_try(&s->p->accumulator, &s->append);
    if (err == KP_PENDING) {
        s->ticket = s->append.ticket;
        return err;
    }
    s->result = s->append.result;
    s->index = s->append.index;
    return err;
}

kp_err kp__send_try(struct send *s)
{
    kp_err err = s->step == SEND_TOPIC ? begin_append(s) : KP_OK;

    return err == KP_OK ? append(s) : err;
}

kp_err kp__send_give_up(struct send *s)
{
    if (s->step == SEND_APPEND)
        return kp__append_give_up(&s->p->accumulator, &s->append);
    drop_wait(s);
    return KP_EMETADATA;
}

/* -- waiting -- */

/* A call waits for max.block.ms at most, of which it has had waited_ns, and for
 * this record no longer than it says. */
static int64_t deadline_of(const struct send *s, int64_t waited_ns)
{
    int64_t left_ns = s->p->settings.max_block_ns - waited_ns;
    int64_t own_ns = kp__ms_to_ns(s->record->max_wait_ms);

    if (s->record->max_wait_ms != 0 && own_ns < left_ns)
        left_ns = own_ns;
    return kp__ns_add(kp__now_ns(&s->p->clock), left_ns > 0 ? left_ns : 0);
}

/* Sleep on the ticket; false: the deadline has passed. */
static bool wait_on(struct send *s, int64_t *waited_ns)
{
    bool topic = s->step == SEND_TOPIC;
    int64_t began_ns, took_ns;
    bool in_time;

    if (s->ticket.word == NULL)
        return true;
    began_ns = kp__now_ns(&s->p->clock);
    in_time = kp__ticket_wait(&s->ticket);
    if (topic)
        kp__topics_relay(&s->ticket);
    took_ns = kp__now_ns(&s->p->clock) - began_ns;
    *waited_ns += took_ns;
    if (topic)
        kp__metrics_add_metadata_wait_ns(s->p->metrics, took_ns);
    return in_time;
}

/* The producer says this err from now on. */
static bool is_fatal(const struct kp_producer *p, kp_err err)
{
    /* relaxed: err came from there, so it has been seen to be so */
    return p != NULL && err != KP_EINVAL && err != KP_EFORK &&
           atomic_load_explicit(&p->accumulator.taking, memory_order_relaxed) ==
               TAKING_FATAL &&
           taking(p) == err;
}

static void refuse(kp_future *future, const struct kp_producer *p, kp_err err,
                   void *tag)
{
    kp__future_refuse(future, err, tag);
    if (is_fatal(p, err))
        future->check_ = FUTURE_FATAL;
}

static bool is_braking(const struct send *s)
{
    return s->step == SEND_APPEND && s->append.braking;
}

/* The slow half: something must be waited for. */
static kp_err send_waiting(struct send *s, int64_t *waited_ns)
{
    kp_err err = KP_PENDING;

    s->deadline_ns = deadline_of(s, *waited_ns);
    if (!is_braking(s) || s->ticket.deadline_ns > s->deadline_ns)
        s->ticket.deadline_ns = s->deadline_ns;
    while (err == KP_PENDING) {
        /* The brake's end is no reason to give up. */
        bool in_time = wait_on(s, waited_ns) || is_braking(s);

        err = kp__send_try(s); /* what came in the last moment counts */
        if (err == KP_PENDING && !in_time)
            err = kp__send_give_up(s);
    }
    return err;
}

static kp_err send_one(struct kp_producer *p, const kp_record *r,
                       kp_future *future, int64_t *waited_ns)
{
    struct send s;
    kp_err err;

    s.wait = NULL;
    s.deadline_ns = 0;
    err = begin(&s, p, r, future != NULL);
    if (KP_LIKELY(err == KP_OK))
        err = begin_append(&s);
    if (KP_LIKELY(err == KP_OK))
        err = append(&s);
    if (KP_UNLIKELY(err == KP_PENDING))
        err = send_waiting(&s, waited_ns);
    if (KP_LIKELY(err == KP_OK)) {
        if (future != NULL)
            kp__future_take(future, s.result, s.index, r->tag);
        return KP_OK;
    }
    drop_wait(&s);
    if (future != NULL)
        refuse(future, p, err, r != NULL ? r->tag : NULL);
    if (p != NULL && err != KP_EFORK)
        kp__refusal_log(p, r, err);
    return err;
}

kp_err kp_send(kp_producer *p, const kp_record *r, kp_future *future)
{
    int64_t waited_ns = 0;

    return send_one(p, r, future, &waited_ns);
}

kp_err kp_send_many(kp_producer *p, const kp_record *records, size_t count,
                    kp_future *futures, size_t *taken)
{
    int64_t waited_ns = 0;
    kp_err err = KP_OK;
    size_t i;

    if (p == NULL || (records == NULL && count > 0))
        err = KP_EINVAL;
    for (i = 0; i < count && err == KP_OK; i++)
        err = send_one(p, &records[i], futures != NULL ? &futures[i] : NULL,
                       &waited_ns);
    if (err != KP_OK && i > 0)
        i--;
    if (taken != NULL)
        *taken = i;
    for (size_t j = i; futures != NULL && j < count; j++)
        refuse(&futures[j], p, err, records != NULL ? records[j].tag : NULL);
    return err;
}
