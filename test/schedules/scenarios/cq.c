/* SPDX-License-Identifier: BSD-2-Clause */
/* cq.c - batches are posted to a completion queue that is polled, by sleeping
 * on it, by its descriptor, or that goes away.
 *
 * Every report is polled exactly once; no poller sleeps while there is one; all
 * memory comes back whoever is last. */
#include "test/schedules/scenarios/fixture.h"

enum way { BY_SLEEP, BY_FD, BY_END };

static struct batch *batches[ACTORS_MAX];
static kp_cq *cq;
static int posters, seen[ACTORS_MAX];
static bool wakes, alone;
static long live;

static struct batch *make_batch(int partition)
{
    kp_record r = record_of("v", 1);
    struct append x;

    r.queue = cq;
    r.tag = (void *)(uintptr_t)partition;
    append_init(&x, &r, partition);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    return drain_head(fixture_queue(partition));
}

/* Two actors: one posts twice.  More: each posts once, and of four or more the
 * last one only wakes the poller. */
static void set_up(int actors)
{
    live = kp__mem_live();
    wakes = actors > 3;
    alone = actors == 2;
    posters = wakes ? actors - 2 : 2;
    fixture_defaults();
    f.settings.buffer_memory = 1 << 18;
    fixture_start(posters);
    ck_assert_int_eq(kp_cq_create(&cq, NULL), KP_OK);
    for (int i = 0; i < posters; i++) {
        batches[i] = make_batch(i);
        seen[i] = 0;
    }
}

static void take(const kp_report *reports, size_t n, int *got)
{
    for (size_t i = 0; i < n; i++) {
        ck_assert(reports[i].offset == 100 && reports[i].err == KP_OK);
        seen[(uintptr_t)reports[i].tag]++;
        *got += 1;
    }
}

static void poll_asleep(void)
{
    kp_report reports[2];
    int got = 0;

    while (got < posters)
        take(reports, kp_cq_poll(cq, reports, 2, KP_FOREVER), &got);
}

/* One at a time, so that something is left each time. */
static void poll_by_fd(void)
{
    kp_report report;
    int got = 0;

    (void)kp_cq_fd(cq);
    while (got < posters) {
        sched_poll_fd(&cq->wakeup);
        take(&report, kp_cq_poll(cq, &report, 1, 0), &got);
    }
}

static void poll_and_end(void)
{
    kp_report report;
    int got = 0;

    take(&report, kp_cq_poll(cq, &report, 1, 0), &got);
    kp_cq_destroy(cq);
    for (int i = 0; i < posters; i++)
        ck_assert(seen[i] <= 1);
}

/* Actor 0 polls, the others post. */
static void run(int id, enum way way)
{
    if (id == 0 && way == BY_SLEEP)
        poll_asleep();
    else if (id == 0 && way == BY_FD)
        poll_by_fd();
    else if (id == 0)
        poll_and_end();
    else if (wakes && id == posters + 1)
        kp_cq_wakeup(cq);
    else if (!alone)
        fixture_complete(batches[id - 1], KP_OK);
    else
        for (int i = 0; i < posters; i++)
            fixture_complete(batches[i], KP_OK);
}

static void actor_sleep(int id)
{
    run(id, BY_SLEEP);
}
static void actor_fd(int id)
{
    run(id, BY_FD);
}

/* Nobody wakes a queue that may be gone. */
static void actor_end(int id)
{
    if (!wakes || id != posters + 1)
        run(id, BY_END);
}

static void check_end(void)
{
    fixture_check(live);
}

static void check(void)
{
    for (int i = 0; i < posters; i++)
        if (seen[i] != 1)
            sched_violation("report %d was polled %d times", i, seen[i]);
    kp_cq_destroy(cq);
    check_end();
}

const struct scenario scenario_cq_poll = {
    "cq_poll",
    4,
    5,
    set_up,
    actor_sleep,
    check,
    PLANT(PLANT_LOST_WAKE) | PLANT(PLANT_BLIND_WAIT) | PLANT(PLANT_SPLIT_RMW)};

const struct scenario scenario_cq_fd = {
    "cq_fd", 4, 5, set_up, actor_fd, check, PLANT(PLANT_LOST_FD)};

const struct scenario scenario_cq_destroy = {
    "cq_destroy", 4, 5, set_up, actor_end, check_end, PLANT(PLANT_SPLIT_RMW)};
