/* SPDX-License-Identifier: BSD-2-Clause */
/* topics.c - senders look for a topic and wait for it while the I/O thread
 * publishes it, lets it grow and announces it.
 *
 * Whoever waits finds it: no look falls between publishing and waking.  What a
 * sender sees is whole: a view of n partitions has n queues. */
#include <string.h>

#include "lib/api/producer.h"
#include "lib/api/send.h"
#include "lib/base/mem.h"
#include "lib/base/thread.h"
#include "lib/shared/partition_queue.h"
#include "test/schedules/scenarios.h"

static struct kp_producer p;
static int32_t seen[ACTORS_MAX];
static int actors;
static bool impatient;
static long live;

static int64_t zero_ns(void *arg)
{
    (void)arg;
    return 0;
}

static void set_up(int count)
{
    live = kp__mem_live();
    memset(&p, 0, sizeof p);
    p.clock = (struct clock){
        .mono_ns = zero_ns, .mono_coarse_ns = zero_ns, .wall_ms = zero_ns};
    p.settings.max_block_ns = KP_NS_PER_SEC;
    kp__ops_init(&p.ops);
    (void)kp__wakeup_init(&p.bell.wakeup);
    p.topics = kp__topics_create(&p.accumulator);
    actors = count;
    impatient = count > 4;
    memset(seen, 0, sizeof seen);
}

/* What the senders posted is dropped: this thread publishes in any case. */
static void publish(void)
{
    for (int32_t n = 1; n <= 2; n++)
        kp__topics_announce(p.topics,
                            kp__topics_publish(p.topics, "orders", 6, n));
}

static bool wait_on(struct send *s)
{
    bool in_time = s->ticket.word == NULL || kp__ticket_wait(&s->ticket);

    kp__topics_relay(&s->ticket);
    return in_time;
}

static void look(int id)
{
    static const kp_record record = {.topic = "orders"};
    struct send s = {.p = &p,
                     .record = &record,
                     .may_wait = true,
                     .name = "orders",
                     .name_size = 6};
    const struct topic_view *v;
    struct topic *t = NULL;
    bool late = false;
    kp_err err;

    s.deadline_ns = impatient && id == 2 ? 1000 : KP_NEVER;
    while ((err = kp__topic_try(&s, &t)) == KP_PENDING && !late)
        late = !wait_on(&s);
    if (err == KP_PENDING) {
        (void)kp__send_give_up(&s);
        return;
    }
    if (err != KP_OK) {
        sched_violation("sender %d got err %d", id, (int)err);
        return;
    }
    v = kp__topic_view(t);
    seen[id] = v->count;
    for (int32_t i = 0; i < v->count; i++)
        if (v->queues[i]->partition != i || v->queues[i]->topic != t)
            sched_violation("queue %d is not of this topic", (int)i);
}

static void actor(int id)
{
    if (id == 0)
        publish();
    else
        look(id);
}

static void tear_down(void)
{
    kp__ops_finish(&p.ops);
    kp__topics_destroy(p.topics);
    if (kp__mem_live() != live)
        sched_violation("%ld allocations are left", kp__mem_live() - live);
}

static void check(void)
{
    for (int i = 1; i < actors; i++)
        if (seen[i] == 0 && !(impatient && i == 2))
            sched_violation("sender %d saw no topic", i);
    tear_down();
}

/* -- News that is none for those who wait -- */

static void refuse_and_publish(void)
{
    kp__topics_refuse(p.topics, "orders", 6, KP_UNKNOWN_TOPIC_OR_PARTITION);
    kp__topics_announce(p.topics, kp__topics_publish(p.topics, "orders", 6, 1));
}

static void refuser_or_sender(int id)
{
    if (id == 0)
        refuse_and_publish();
    else
        look(id);
}

const struct scenario scenario_topics_news = {"topics_news",
                                              3,
                                              6,
                                              set_up,
                                              refuser_or_sender,
                                              check,
                                              PLANT(PLANT_LOST_WAKE) |
                                                  PLANT(PLANT_BLIND_WAIT)};

/* -- The producer closes: nobody publishes anything any more -- */

static kp_err ended[ACTORS_MAX];

static void set_up_known(int count)
{
    set_up(count);
    memset(ended, 0, sizeof ended);
    p.fork_generation = kp__fork_generation();
    p.settings.max_request_size = p.settings.buffer_memory = 1024;
    p.pool = kp__pool_create(POOL_SIZE_MIN);
    (void)kp__topics_publish(p.topics, "orders", 6, 1);
}

/* For a topic that there is not, or a partition. */
static void wait_for_the_end(int id)
{
    static const kp_record records[] = {
        {.topic = "bills"},
        {.topic = "orders", .partition = 1, .flags = KP_HAS_PARTITION}};
    struct send s;

    ended[id] = kp__send_begin(&s, &p, &records[id % 2], false);
    if (ended[id] != KP_OK)
        return;
    s.deadline_ns = KP_NEVER;
    while ((ended[id] = kp__send_try(&s)) == KP_PENDING)
        (void)wait_on(&s);
    (void)kp__send_give_up(&s);
}

static void closer_or_sender(int id)
{
    if (id == 0)
        kp__op_unref(kp__close_begin(&p, 0));
    else
        wait_for_the_end(id);
}

static void check_ends(void)
{
    for (int i = 1; i < actors; i++)
        if (ended[i] != KP_ECLOSED)
            sched_violation("sender %d got err %d", i, (int)ended[i]);
    kp__pool_unref(p.pool);
    tear_down();
}

const struct scenario scenario_topics_close = {"topics_close",
                                               3,
                                               6,
                                               set_up_known,
                                               closer_or_sender,
                                               check_ends,
                                               PLANT(PLANT_LOST_WAKE) |
                                                   PLANT(PLANT_BLIND_WAIT)};

const struct scenario scenario_topics = {"topics",
                                         3,
                                         6,
                                         set_up,
                                         actor,
                                         check,
                                         PLANT(PLANT_LOST_WAKE) |
                                             PLANT(PLANT_BLIND_WAIT)};
