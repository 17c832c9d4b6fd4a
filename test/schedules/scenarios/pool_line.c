/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_line.c - senders wait for memory while it comes back, and while the
 * pool closes.
 *
 * Each gets what it asked for and gives it back, or has given up by its
 * deadline and holds nothing; nobody sleeps while memory for it is there; who
 * came first is served first. */
#include <string.h>

#include "lib/base/mem.h"
#include "lib/shared/pool_state.h"
#include "test/schedules/scenarios.h"

#define BLOCKS 2
#define TOTAL ((size_t)BLOCKS * CHUNK_SIZE)

static const struct pool_need full_chunk = {.record_size = 10000};

static struct buffer_pool *pool;
static struct partition_queue queues[ACTORS_MAX];
static struct chunk *hoard; /* what actor 0 gives back */
static struct chunk *kept[ACTORS_MAX];
static uint64_t last_served;
static bool closes;
static int actors;
static long live;

static void set_up(int count)
{
    live = kp__mem_live();
    actors = count;
    last_served = 0;
    pool = kp__pool_create(TOTAL);
    hoard = NULL;
    for (int i = 0; i < count; i++) {
        memset(&queues[i], 0, sizeof queues[i]);
        kept[i] = NULL;
        kp__mutex_init(&queues[i].lock);
    }
    for (;;) {
        struct pool_waiter w = {0};
        struct pool_grant g;

        if (kp__pool_try(pool, &queues[0], &full_chunk, false, 0, &w, &g) !=
            POOL_GRANTED)
            break;
        g.data->next = hoard;
        hoard = g.data;
    }
}

static void set_up_line(int count)
{
    closes = false;
    set_up(count);
    /* Nothing is granted while one is on its way, until all is free. */
    pool->burst = TOTAL;
}

static void set_up_close(int count)
{
    closes = true;
    set_up(count);
}

/* One by one, so that grants can fall in between; or not at all. */
static void give_back(void)
{
    if (closes)
        kp__pool_close(pool);
    while (hoard != NULL) {
        struct chunk *c = hoard;

        hoard = c->next;
        c->next = NULL;
        kp__pool_give(pool, &queues[0], c);
    }
}

/* Every other waiter of many may be late. */
static bool is_impatient(int id)
{
    return actors > 3 && id % 2 == 0;
}

/* Few enough for all to have their chunk at a time: then none but who was held
 * back for can serve the next. */
static bool keeps_it(void)
{
    return actors <= BLOCKS + 1;
}

static void ask(int id)
{
    struct pool_waiter w = {0};
    struct pool_grant g;
    enum pool_answer answer;
    int64_t deadline_ns = is_impatient(id) ? 1000 : KP_NEVER;
    bool late = false;

    while ((answer = kp__pool_try(pool, &queues[id], &full_chunk, true, 0, &w,
                                  &g)) == POOL_WAIT) {
        struct ticket t;

        if (late) {
            kp__pool_leave(pool, &w, 0);
            return;
        }
        t = kp__pool_ticket(pool, &w, deadline_ns);
        late = !kp__ticket_wait(&t);
    }
    if (answer == POOL_GRANTED && keeps_it())
        kept[id] = g.data;
    else if (answer == POOL_GRANTED)
        kp__pool_give(pool, &queues[id], g.data);
    else if (answer != POOL_CLOSED || !closes)
        sched_violation("sender %d was told %d", id, (int)answer);
}

static void actor(int id)
{
    if (id == 0)
        give_back();
    else
        ask(id);
}

static void check(void)
{
    struct pool_stats stats;

    for (int i = 0; i < actors; i++)
        kp__pool_give(pool, &queues[i], kept[i]);
    kp__pool_stats(pool, &stats);
    if (stats.available_bytes != TOTAL || stats.waiting_threads != 0)
        sched_violation("%zu bytes of %zu are free, %u wait",
                        stats.available_bytes, TOTAL,
                        (unsigned)stats.waiting_threads);
    for (int i = 0; i < actors; i++)
        if (queues[i].held_bytes != 0)
            sched_violation("queue %d holds %zu bytes", i,
                            queues[i].held_bytes);
    kp__pool_check(pool);
    kp__pool_unref(pool);
    if (kp__mem_live() != live)
        sched_violation("%ld allocations are left", kp__mem_live() - live);
}

const struct scenario scenario_pool_line = {
    "pool_line",
    4,
    6,
    set_up_line,
    actor,
    check,
    PLANT(PLANT_LOST_WAKE) | PLANT(PLANT_BLIND_WAIT) |
        PLANT(PLANT_NO_EXCLUSION) | PLANT(PLANT_LOST_LATER)};

const struct scenario scenario_pool_close = {"pool_close",
                                             4,
                                             6,
                                             set_up_close,
                                             actor,
                                             check,
                                             PLANT(PLANT_LOST_WAKE) |
                                                 PLANT(PLANT_BLIND_WAIT)};
