/* SPDX-License-Identifier: BSD-2-Clause */
/* client.c - the whole library: application threads in its public, waiting
 * calls, its own I/O thread's loop, and brokers (test/broker/model.h) behind a
 * network in memory.
 *
 * Too large for all schedules, so it is sampled.  Whoever waits comes back;
 * each record taken has one report; a close that has time delivers everything,
 * once; a producer can be destroyed when its calls have returned. */
#include "include/kp/kp.h"
#include "io_thread/sender.h"
#include "lib/base/mem.h"
#include "test/schedules/scenarios.h"
#include "test/support/world_state.h"

#define RECORDS 3 /* of each sender */
/* The network's times and a linger, not the timeouts. */
#define NEAR_NS (10 * KP_NS_PER_MS)

static struct world *w;
static int (*collect)(struct poller *p, int64_t now_ns, int64_t deadline_ns,
                      struct poll_event *out, int max);
static struct {
    kp_err sent[ACTORS_MAX][RECORDS];
    int reports[ACTORS_MAX][RECORDS];
    kp_err errs[ACTORS_MAX][RECORDS];
} seen;
static int actors, close_timeout_ms;
static long live;

/* -- The I/O thread: actor 0 -- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int wait_for_events(struct poller *p, int64_t now_ns,
                           int64_t deadline_ns, struct poll_event *out, int max)
{
    const struct wakeup *wakeup = &w->p->bell.wakeup;

    for (;;) {
        int64_t next_ns;
        int n;

        (void)world_net_run(w);
        n = collect(p, now_ns, deadline_ns, out, max);
        if (n != 0 || sched_cleared() || w->now_ns >= deadline_ns)
            return n;
        next_ns = earlier(world_net_next_ns(w), deadline_ns);
        if (next_ns == KP_NEVER) {
            sched_poll_fd(wakeup);
            continue;
        }
        sched_poll_fd_or_time(wakeup, next_ns - w->now_ns <= NEAR_NS);
        if (wakeup->read_fd == 0 && next_ns > w->now_ns)
            w->now_ns = next_ns;
    }
}

/* As io_main does. */
static void io_thread(void)
{
    struct io_thread *io = w->p->io;

    while (!io->finished) {
        kp__io_thread_wait(io);
        kp__io_thread_run_once(io, w->now_ns);
    }
    atomic_store(&w->p->ended, 1);
    kp__ops_finish(&w->p->ops);
}

static void be_thread(int actor)
{
    kp__io_thread_become(actor == 0 ? w->p : NULL);
}

/* -- Application threads -- */

static void on_report(const kp_report *report)
{
    int at = (int)(uintptr_t)report->tag;

    seen.reports[at / RECORDS][at % RECORDS]++;
    seen.errs[at / RECORDS][at % RECORDS] = report->err;
}

/* The world knows its own records by their values: ours have short ones, and
 * their bytes in the key. */
static kp_record record_for(int id, int i)
{
    static const char key[600];

    return (kp_record){.topic = "t",
                       .partition = i % 2,
                       .flags = KP_HAS_PARTITION,
                       .key = {key, sizeof key},
                       .value = {"v", 1},
                       .tag = (void *)(uintptr_t)(id * RECORDS + i)};
}

static void send_and_wait(int id)
{
    for (int i = 0; i < RECORDS; i++) {
        kp_record r = record_for(id, i);
        kp_future future;

        seen.sent[id][i] = kp_send(w->p, &r, &future);
        if (seen.sent[id][i] == KP_OK) {
            seen.errs[id][i] = kp_future_wait(&future, KP_FOREVER, NULL);
            seen.reports[id][i]++;
        }
        kp_future_release(&future, 1);
    }
}

static void send_and_flush(int id)
{
    for (int i = 0; i < RECORDS; i++) {
        kp_record r = record_for(id, i);

        r.on_delivery = on_report;
        r.flags |= i == 1 ? KP_NOWAIT : 0;
        seen.sent[id][i] = kp_send(w->p, &r, NULL);
    }
    (void)kp_flush(w->p, KP_FOREVER, NULL);
    for (int i = 0; i < RECORDS; i++)
        if (seen.sent[id][i] == KP_OK && seen.reports[id][i] != 1)
            sched_violation("record %d of %d has %d reports after a flush", i,
                            id, seen.reports[id][i]);
}

static void actor(int id)
{
    if (id == 0)
        io_thread();
    else if (id == actors - 1)
        (void)kp_close(w->p, close_timeout_ms, NULL);
    else if (id % 2 == 1)
        send_and_wait(id);
    else
        send_and_flush(id);
}

/* -- Before and after -- */

static void set_up(int count)
{
    live = kp__mem_live();
    actors = count;
    memset(&seen, 0, sizeof seen);
    w = world_begin(&(struct world_options){
        .partitions = 2,
        .seed = 1,
        .settings =
            WORLD_SETTINGS("buffer.memory", "8192", "batch.size", "1000",
                           "linger.ms", "1", "max.block.ms", "1000")});
    w->p->io->threaded = true; /* so that a close joins actor 0 */
    collect = w->net.poller.wait;
    w->net.poller.wait = wait_for_events;
    sched_on_switch(be_thread);
}

static void set_up_patient(int count)
{
    close_timeout_ms = KP_FOREVER;
    set_up(count);
}

static void set_up_hasty(int count)
{
    close_timeout_ms = 0;
    set_up(count);
}

/* Taken and reported; how many of them as delivered. */
static int64_t check_reports(int id)
{
    int64_t delivered = 0;

    for (int i = 0; i < RECORDS; i++) {
        bool taken = seen.sent[id][i] == KP_OK;

        if (seen.reports[id][i] != (taken ? 1 : 0))
            sched_violation("record %d of %d: send said %d, %d reports", i, id,
                            (int)seen.sent[id][i], seen.reports[id][i]);
        if (taken && seen.errs[id][i] != KP_OK && close_timeout_ms != 0)
            sched_violation("record %d of %d: %d", i, id,
                            (int)seen.errs[id][i]);
        delivered += taken && seen.errs[id][i] == KP_OK;
    }
    return delivered;
}

static void check(void)
{
    int64_t delivered = 0, stored = 0;

    sched_on_switch(NULL);
    for (int id = 1; id < actors - 1; id++)
        delivered += check_reports(id);
    for (int32_t i = 0; i < 2; i++)
        stored += kb_log_end(w->cluster, "t", i);
    if (stored < delivered || (close_timeout_ms != 0 && stored > delivered))
        sched_violation("%d records are in the logs, %d were delivered",
                        (int)stored, (int)delivered);
    w->over = true;
    world_end(w);
    if (kp__mem_live() != live)
        sched_violation("%ld allocations are left", kp__mem_live() - live);
}

const struct scenario scenario_client = {
    "client",
    0,
    5,
    set_up_patient,
    actor,
    check,
    PLANT(PLANT_LOST_WAKE) | PLANT(PLANT_BLIND_WAIT) | PLANT(PLANT_LOST_FD)};

const struct scenario scenario_client_close_now = {"client_close_now",
                                                   0,
                                                   5,
                                                   set_up_hasty,
                                                   actor,
                                                   check,
                                                   PLANT(PLANT_LOST_WAKE) |
                                                       PLANT(PLANT_BLIND_WAIT)};
