/* SPDX-License-Identifier: BSD-2-Clause */
/* drain_and_bell.c - senders list their queues and ring while the I/O thread
 * drains, looks once more and goes to sleep.
 *
 * Whatever was put into a queue before it was listed is found without another
 * push; the thread never sleeps with a queue on the list.  The sleeping is that
 * of kp__io_thread_wait. */
#include <string.h>

#include "lib/shared/record_accumulator.h"
#include "test/schedules/scenarios.h"

#define PUSHES 2 /* of each sender */
#define QUEUES 2 /* senders share them */

static struct record_accumulator acc;
static struct io_bell bell;
static struct partition_queue queues[QUEUES];
static int work[QUEUES]; /* put in and not found; guarded by the queue's lock */
static int senders, found;

static void set_up(int actors)
{
    memset(&acc, 0, sizeof acc);
    memset(work, 0, sizeof work);
    found = 0;
    senders = actors - 1;
    atomic_init(&bell.sleeps_until_ns, 0);
    (void)kp__wakeup_init(&bell.wakeup);
    for (int i = 0; i < QUEUES; i++) {
        memset(&queues[i], 0, sizeof queues[i]);
        kp__mutex_init(&queues[i].lock);
    }
}

static void send(int id)
{
    int i = id % QUEUES;

    for (int n = 0; n < (senders > 3 ? PUSHES : 1); n++) {
        kp__mutex_lock(&queues[i].lock);
        work[i]++;
        kp__drain_push(&acc, &queues[i]);
        kp__mutex_unlock(&queues[i].lock);
        kp__io_wake(&bell, 0);
    }
}

static void drain(void)
{
    struct partition_queue *q = kp__drain_take(&acc);

    while (q != NULL) {
        struct partition_queue *next = atomic_load(&q->drain_next);

        kp__drain_unlist(q);
        kp__mutex_lock(&q->lock);
        found += work[q - queues];
        work[q - queues] = 0;
        kp__mutex_unlock(&q->lock);
        q = next;
    }
}

static void io_thread(void)
{
    int wanted = senders * (senders > 3 ? PUSHES : 1);

    for (drain(); found < wanted; drain()) {
        atomic_store(&bell.sleeps_until_ns, KP_NEVER);
        if (kp__drain_empty(&acc))
            sched_poll_fd(&bell.wakeup);
        atomic_store(&bell.sleeps_until_ns, 0);
        kp__wakeup_clear(&bell.wakeup);
    }
}

static void actor(int id)
{
    if (id == 0)
        io_thread();
    else
        send(id);
}

static void check(void)
{
    for (int i = 0; i < QUEUES; i++)
        if (work[i] != 0)
            sched_violation("queue %d has %d left", i, work[i]);
}

const struct scenario scenario_drain_and_bell = {
    "drain_and_bell",
    4,
    6,
    set_up,
    actor,
    check,
    PLANT(PLANT_LOST_FD) | PLANT(PLANT_SPLIT_RMW) | PLANT(PLANT_LATE_STORE)};
