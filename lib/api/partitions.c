/* SPDX-License-Identifier: BSD-2-Clause */
/* partitions.c - kp_partitions_for.  Application threads.
 * Java: KafkaProducer.partitionsFor. */
#include <string.h>

#include "lib/api/producer.h"
#include "lib/api/send.h"
#include "lib/base/error.h"

/* The caller's topic as a send that goes no further than the topic. */
static kp_err find_topic(kp_producer *p, const char *topic, int64_t timeout_ms,
                         struct topic **out)
{
    kp_record r;
    struct send s;
    kp_err err;

    memset(&r, 0, sizeof(r));
    r.topic = topic;
    err = kp__send_begin(&s, p, &r, false);
    if (err != KP_OK)
        return err;
    s.may_wait = timeout_ms != 0;
    s.deadline_ns = kp__deadline_ns(kp__now_ns(&p->clock), timeout_ms);
    while ((err = kp__topic_try(&s, out)) == KP_PENDING) {
        bool in_time = kp__ticket_wait(&s.ticket);

        kp__topics_relay(&s.ticket);
        if (in_time)
            continue;
        err = kp__topic_try(&s, out); /* what came in the last moment counts */
        break;
    }
    if (err == KP_OK)
        return KP_OK;
    (void)kp__send_give_up(&s);
    return err == KP_PENDING ? KP_EMETADATA : err;
}

static void show(const struct topic_view *v, kp_partition_visit visit,
                 void *arg)
{
    for (int32_t i = 0; i < v->count; i++) {
        struct partition_queue *q = v->queues[i];
        kp_partition out = {
            .id = i,
            /* relaxed: each number by itself, see partition_queue.h */
            .leader = atomic_load_explicit(&q->leader_id, memory_order_relaxed),
            .leader_epoch =
                atomic_load_explicit(&q->leader_epoch, memory_order_relaxed),
            .replica_count =
                atomic_load_explicit(&q->replica_count, memory_order_relaxed),
            .isr_count =
                atomic_load_explicit(&q->isr_count, memory_order_relaxed),
        };

        visit(arg, &out);
    }
}

kp_err kp_partitions_for(kp_producer *p, const char *topic, int64_t timeout_ms,
                         int32_t *count, kp_partition_visit visit, void *arg)
{
    const struct topic_view *v;
    struct topic *t;
    kp_err err =
        kp__check_waiting_call(p, "kp_partitions_for", timeout_ms, NULL);

    if (err == KP_OK && topic == NULL)
        err = KP_EINVAL;
    if (err == KP_OK)
        err = kp__producer_fatal(p, NULL);
    if (err == KP_OK)
        err = find_topic(p, topic, timeout_ms, &t);
    if (err != KP_OK)
        return err;
    v = kp__topic_view(t);
    if (visit != NULL)
        show(v, visit, arg);
    if (count != NULL)
        *count = v->count;
    return KP_OK;
}
