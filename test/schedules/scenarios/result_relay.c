/* SPDX-License-Identifier: BSD-2-Clause */
/* result_relay.c - threads wait for futures of one batch while it is completed.
 *
 * Completing wakes two waiters, and each of these two more.  Every waiter gets
 * the report, also one that came late or gave up meanwhile; the last reference
 * frees. */
#include <string.h>

#include "lib/api/future.h"
#include "lib/base/mem.h"
#include "test/schedules/scenarios.h"

static struct topic_name *name;
static struct batch_result *result;
static kp_future futures[ACTORS_MAX];
static long live;
static int waiters;

static void set_up(int actors)
{
    live = kp__mem_live();
    waiters = actors - 1;
    name = kp__topic_name_create("orders", 6);
    result = kp__alloc(sizeof *result);
    kp__result_init(result, name, 3);
    for (int i = 1; i <= waiters; i++)
        kp__future_take(&futures[i], result, (uint32_t)i, NULL);
    kp__result_publish(result, (uint32_t)waiters);
}

static void complete(void)
{
    static const struct outcome good = {.err = KP_OK,
                                        .stored = CERTAIN_YES,
                                        .base_offset = 100,
                                        .append_time_ms = -1};

    kp__result_complete(result, &good, NULL);
    kp__result_unref(result, 1);
}

/* The second one is impatient if there are many. */
static void wait_for(int id)
{
    int64_t timeout_ms = id == 2 && waiters > 3 ? 1000 : KP_FOREVER;
    kp_report report;
    kp_err err = kp_future_wait(&futures[id], timeout_ms, &report);

    if (err == KP_PENDING && timeout_ms != KP_FOREVER)
        (void)0; /* it was late, and may be released at any time */
    else if (err != KP_OK || report.offset != 100 + id ||
             strcmp(report.topic, "orders") != 0)
        sched_violation("waiter %d got err %d", id, (int)err);
    kp_future_release(&futures[id], 1);
}

static void actor(int id)
{
    if (id == 0)
        complete();
    else
        wait_for(id);
}

static void check(void)
{
    kp__topic_name_unref(name);
    if (kp__mem_live() != live)
        sched_violation("%ld allocations are left", kp__mem_live() - live);
}

const struct scenario scenario_result_relay = {
    "result_relay",
    4,
    6,
    set_up,
    actor,
    check,
    PLANT(PLANT_LOST_WAKE) | PLANT(PLANT_LOST_LATER) | PLANT(PLANT_BLIND_WAIT) |
        PLANT(PLANT_SPLIT_RMW)};
