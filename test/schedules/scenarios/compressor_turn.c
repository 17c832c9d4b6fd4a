/* SPDX-License-Identifier: BSD-2-Clause */
/* compressor_turn.c - several flushes want the one compressor there is, which
 * is in use when they come.
 *
 * Each gets it in its turn; nobody waits for ever; nobody is left in the line. */
#include "lib/base/mem.h"
#include "lib/shared/claims.h"
#include "lib/shared/compressors.h"
#include "test/schedules/scenarios.h"

static const struct codec some_codec;
static struct compressor all[2]; /* the one, and the I/O thread's own */
static struct compressors set;
static struct claims claims;
static struct partition_queue queue; /* with something to compress, always */
static int got[ACTORS_MAX], flushes;
static long live;

static void set_up(int actors)
{
    live = kp__mem_live();
    flushes = actors - 1;
    all[0].codec = all[1].codec = &some_codec;
    set = (struct compressors){.codec = &some_codec, .all = all, .count = 2};
    kp__mutex_init(&set.lock);
    kp__claims_init(&claims);
    kp__node_init(&queue.offer_link);
    kp__claims_offer(&claims, &queue);
    for (int i = 0; i < ACTORS_MAX; i++)
        got[i] = 0;
}

static void give(struct compressor *k)
{
    kp__compressors_give(&set, k);
    kp__claims_chance(&claims);
}

/* As kp__flush_try and its loop do. */
static void flush(int id)
{
    struct op *op = kp__op_create(OP_FLUSH, NULL, 0);
    struct claim_waiter w = {.op = op};
    struct compressor *k = NULL;
    bool awaits = false;
    struct ticket t;

    kp__node_init(&w.link);
    for (;;) {
        kp__op_ticket(op, KP_NEVER, &t);
        k = kp__compressors_take(&set);
        if (k == NULL) {
            awaits = true;
            kp__claims_await(&claims, &w);
            k = kp__compressors_take(&set);
        }
        if (k != NULL)
            break;
        (void)kp__ticket_wait(&t);
    }
    if (awaits && !kp__claims_leave(&claims, &w))
        kp__claims_chance(&claims);
    got[id]++;
    give(k);
    kp__op_unref(op);
    kp__op_unref(op);
}

static void actor(int id)
{
    if (id == 0)
        give(&all[0]);
    else
        flush(id);
}

static void check(void)
{
    for (int i = 1; i <= flushes; i++)
        if (got[i] != 1)
            sched_violation("flush %d had %d turns", i, got[i]);
    if (!kp__list_empty(&claims.waiting) ||
        atomic_load(&claims.waiting_count) != 0)
        sched_violation("somebody is left in the line");
    kp__list_remove(&queue.offer_link);
    kp__claims_fini(&claims);
    kp__mutex_fini(&set.lock);
    if (kp__mem_live() != live)
        sched_violation("%ld allocations are left", kp__mem_live() - live);
}

const struct scenario scenario_compressor_turn = {
    "compressor_turn",
    3,
    5,
    set_up,
    actor,
    check,
    PLANT(PLANT_LOST_WAKE) | PLANT(PLANT_BLIND_WAIT) |
        PLANT(PLANT_NO_EXCLUSION)};
