/* SPDX-License-Identifier: BSD-2-Clause */
/* queue.c - senders append to one partition while the I/O thread seals,
 * compresses, takes and completes, and while a deadline falls.
 *
 * Each record taken is reported exactly once, in its sender's order; a batch
 * that was completed while it was compressed gives its bytes back once; all of
 * buffer.memory is there again. */
#include "lib/api/future.h"
#include "test/schedules/scenarios/fixture.h"

#define RECORDS 2 /* of each of many senders; each needs a batch of its own */

static struct {
    kp_future futures[ACTORS_MAX][RECORDS];
    int32_t sent[ACTORS_MAX];
    int32_t delivered[ACTORS_MAX]; /* the I/O thread's */
    int32_t last[ACTORS_MAX];      /* number of the last one, from 1 */
    uint32_t expired;
    _Atomic uint32_t left; /* senders that have not ended */
} run;
static int senders, records;
static long live;
static bool expires, flushes;
static _Atomic uint32_t busy; /* as the producer's */

struct content { /* the value of a record */
    int32_t sender, number;
    uint8_t padding[3000]; /* but for flushes, where they share one */
};

static void set_up(int actors)
{
    live = kp__mem_live();
    senders = actors - 1;
    records = senders > 2 ? RECORDS : 1;
    memset(&run, 0, sizeof run);
    atomic_init(&busy, 0);
    atomic_init(&run.left, (uint32_t)senders);
    fixture_defaults();
    f.settings.batch_size = 4096;
    f.settings.max_request_size = 8192;
    f.settings.buffer_memory = 4 * CHUNK_SIZE;
    fixture_start(1);
}

static void set_up_plain(int actors)
{
    expires = flushes = false;
    set_up(actors);
}

static void set_up_flush(int actors)
{
    expires = false;
    flushes = true;
    set_up(actors);
}

static void set_up_expire(int actors)
{
    expires = true;
    flushes = false;
    set_up(actors);
}

static void send_one(int id, int32_t number)
{
    struct content c = {.sender = id, .number = number};
    kp_record r = record_of(&c, flushes ? 8 : sizeof c);
    struct append x;
    kp_err err;

    append_init(&x, &r, 0);
    x.want_future = true;
    while ((err = kp__append_try(&f.acc, &x)) == KP_PENDING)
        (void)kp__ticket_wait(&x.ticket);
    ck_assert_int_eq(err, KP_OK);
    kp__future_take(&run.futures[id][number], x.result, x.index, NULL);
    run.sent[id]++;
    kp__io_wake(&f.bell, 0);
}

/* As kp_flush looks before it asks: if all is reported, then what this sender
 * sent is. */
static void look(int id, int number)
{
    bool all = kp__drain_empty(&f.acc) && atomic_load(&busy) == 0 &&
               kp__drain_empty(&f.acc);

    if (all &&
        kp__future_try(&run.futures[id][number], 0, NULL, NULL) == KP_PENDING)
        sched_violation("record %d of sender %d is taken, not reported, and a "
                        "flush would not wait for it",
                        number, id);
}

static void send_all(int id)
{
    for (int32_t i = 0; i < records; i++) {
        send_one(id, i);
        if (flushes)
            look(id, i);
    }
    (void)atomic_fetch_sub(&run.left, 1);
    kp__io_wake(&f.bell, 0);
}

static void note(void *arg, uint32_t index, const struct record_view *v)
{
    int32_t sender, number;

    (void)arg;
    (void)index;
    ck_assert(v->value_size >= 8);
    memcpy(&sender, v->value, sizeof sender);
    memcpy(&number, (const char *)v->value + sizeof sender, sizeof number);
    if (number < run.last[sender])
        sched_violation("record %d of sender %d comes after %d", number, sender,
                        run.last[sender] - 1);
    run.last[sender] = number + 1;
    run.delivered[sender]++;
}

static void complete(struct batch *b)
{
    (void)each_record(b, note, NULL);
    fixture_complete(b, KP_OK);
}

static void expire(void)
{
    struct list out;
    struct list_node *n;

    kp__list_init(&out);
    kp__queue_expire(fixture_queue(0), KP_NEVER, &out);
    while ((n = kp__list_pop_front(&out)) != NULL) {
        struct batch *b = KP_CONTAINER(n, struct batch, link);

        /* Its bytes may be with a compressing thread: they are not looked at. */
        run.expired += b->record_count;
        fixture_complete(b, KP_ETIMEDOUT);
    }
}

static bool turn(void)
{
    struct batch *b = drain_head(fixture_queue(0));

    if (b == NULL)
        return false;
    complete(b);
    if (expires)
        expire();
    return true;
}

/* As kp__plan_drain takes the list; what is in the queue is then looked at. */
static void take_list(void)
{
    struct partition_queue *q;

    if (kp__drain_empty(&f.acc))
        return;
    atomic_store(&busy, 1);
    q = kp__drain_take(&f.acc);
    while (q != NULL) {
        struct partition_queue *next = atomic_load(&q->drain_next);

        kp__drain_unlist(q);
        q = next;
    }
}

static bool is_idle(void)
{
    struct queue_view v;

    return kp__queue_look(fixture_queue(0), true, &v) == QUEUE_EMPTY &&
           kp__drain_empty(&f.acc);
}

static void io_thread(void)
{
    for (;;) {
        take_list();
        while (turn())
            continue;
        if (atomic_load(&run.left) == 0 && !turn())
            return;
        if (is_idle())
            atomic_store(&busy, 0);
        atomic_store(&f.bell.sleeps_until_ns, KP_NEVER);
        if (kp__drain_empty(&f.acc) && atomic_load(&run.left) != 0)
            sched_poll_fd(&f.bell.wakeup);
        atomic_store(&f.bell.sleeps_until_ns, 0);
        kp__wakeup_clear(&f.bell.wakeup);
    }
}

static void actor(int id)
{
    if (id == 0)
        io_thread();
    else
        send_all(id);
}

/* Each future says what became of its record. */
static void check_sender(int id, uint32_t *expired)
{
    int32_t delivered = 0;

    for (int i = 0; i < records; i++) {
        kp_err err = kp__future_try(&run.futures[id][i], 0, NULL, NULL);

        delivered += err == KP_OK;
        *expired += err == KP_ETIMEDOUT;
    }
    if (run.sent[id] != records || delivered != run.delivered[id])
        sched_violation("sender %d: %d sent, %d of %d delivered", id,
                        run.sent[id], delivered, run.delivered[id]);
    kp_future_release(run.futures[id], (size_t)records);
}

static void check(void)
{
    uint32_t expired = 0, delivered = 0;

    for (int i = 1; i <= senders; i++) {
        check_sender(i, &expired);
        delivered += (uint32_t)run.delivered[i];
    }
    if (expired != run.expired ||
        expired + delivered != (uint32_t)(senders * records))
        sched_violation("%u expired of %u, %u delivered", (unsigned)expired,
                        (unsigned)run.expired, (unsigned)delivered);
    fixture_check(live);
}

const struct scenario scenario_queue = {
    "queue",
    3,
    4,
    set_up_plain,
    actor,
    check,
    PLANT(PLANT_NO_EXCLUSION) | PLANT(PLANT_LOST_WAKE) | PLANT(PLANT_LOST_FD)};

const struct scenario scenario_queue_expire = {
    "queue_expire",           3, 4, set_up_expire, actor, check,
    PLANT(PLANT_NO_EXCLUSION)};

const struct scenario scenario_queue_flush = {
    "queue_flush",
    3,
    4,
    set_up_flush,
    actor,
    check,
    PLANT(PLANT_LOST_FD) | PLANT(PLANT_SPLIT_RMW)};
