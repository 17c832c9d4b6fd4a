/* SPDX-License-Identifier: BSD-2-Clause */
/* ops_answer.c - callers post ops and wait for the answers, while the I/O
 * thread serves them and at last serves no more.
 *
 * Each op is answered exactly once, by the thread or by its poster; nobody
 * waits for ever; nothing is left. */
#include "lib/api/producer.h"
#include "lib/base/mem.h"
#include "test/schedules/scenarios.h"

static struct kp_producer p;
static int answered[ACTORS_MAX], posters;
static long live;

static void set_up(int actors)
{
    live = kp__mem_live();
    posters = actors - 1;
    kp__ops_init(&p.ops);
    atomic_init(&p.ended, 0);
    atomic_init(&p.bell.sleeps_until_ns, 0);
    (void)kp__wakeup_init(&p.bell.wakeup);
    for (int i = 0; i < ACTORS_MAX; i++)
        answered[i] = 0;
}

static int serve(void)
{
    struct op *op = kp__ops_take(&p.ops);
    int n = 0;

    for (; op != NULL; n++) {
        struct op *next = op->next;

        op->err = KP_OK;
        kp__op_done(op);
        op = next;
    }
    return n;
}

/* Serves all but the last op, as kp__io_thread_wait and the turn do, and ends:
 * what comes then is answered by kp__ops_finish, on either side. */
static void io_thread(void)
{
    int served = 0;

    while (served < posters - 1) {
        int n = serve();

        served += n;
        if (n > 0)
            continue;
        atomic_store(&p.bell.sleeps_until_ns, KP_NEVER);
        if (kp__ops_empty(&p.ops))
            sched_poll_fd(&p.bell.wakeup);
        atomic_store(&p.bell.sleeps_until_ns, 0);
        kp__wakeup_clear(&p.bell.wakeup);
    }
    atomic_store(&p.ended, 1);
    kp__ops_finish(&p.ops);
}

static void post(int id)
{
    struct op *op = kp__op_create(OP_FLUSH, NULL, 0);
    struct ticket t;

    kp__producer_post_op(&p, op);
    while (!kp__op_is_done(op)) {
        kp__op_ticket(op, KP_NEVER, &t);
        (void)kp__ticket_wait(&t);
    }
    answered[id]++;
    if (op->err != KP_OK && op->err != KP_ECLOSED)
        sched_violation("poster %d got err %d", id, (int)op->err);
    kp__op_unref(op);
}

static void actor(int id)
{
    if (id == 0)
        io_thread();
    else
        post(id);
}

static void check(void)
{
    for (int i = 1; i <= posters; i++)
        if (answered[i] != 1)
            sched_violation("poster %d got %d answers", i, answered[i]);
    if (kp__mem_live() != live)
        sched_violation("%ld allocations are left", kp__mem_live() - live);
}

const struct scenario scenario_ops_answer = {
    "ops_answer",
    4,
    5,
    set_up,
    actor,
    check,
    PLANT(PLANT_LOST_WAKE) | PLANT(PLANT_BLIND_WAIT) | PLANT(PLANT_LOST_FD) |
        PLANT(PLANT_SPLIT_RMW) | PLANT(PLANT_LATE_STORE)};
