/* SPDX-License-Identifier: BSD-2-Clause */
/* flush_turn.c - two flushes, by their own steps, and the one compressor there
 * is, while the I/O thread offers what they may compress.
 *
 * One of them makes a single step and ends: it may take the compressor before
 * anything is offered, and claim nothing.  The other gets a batch all the
 * same. */
#include "lib/api/flush.h"
#include "lib/base/mem.h"
#include "lib/shared/compressors.h"
#include "test/schedules/scenarios.h"

static const struct codec some_codec;
static struct compressor all[2]; /* the one, and the I/O thread's own */
static struct compressors set;
static struct kp_producer producer;
static struct partition_queue queue;
static struct batch batches[ACTORS_MAX];
static struct flush flushes[ACTORS_MAX];
static struct op *ops[ACTORS_MAX]; /* the I/O thread's: flushes may end first */
static int count; /* of flushes; from 1 on */
static long live;

static void set_up(int actors)
{
    struct record_accumulator *a = &producer.accumulator;

    live = kp__mem_live();
    count = actors - 1;
    all[0] = all[1] = (struct compressor){.codec = &some_codec};
    set = (struct compressors){.codec = &some_codec, .all = all, .count = 2};
    kp__mutex_init(&set.lock);
    kp__compressors_give(&set, &all[0]);
    a->compresses = true;
    a->compressors = &set;
    kp__claims_init(&a->claims);
    kp__queue_init(&queue, NULL, 0, a);
    for (int i = 1; i <= count; i++) {
        ops[i] = kp__op_create(OP_FLUSH, NULL, 0);
        flushes[i] = (struct flush){
            .p = &producer, .op = ops[i], .deadline_ns = KP_NEVER};
        flushes[i].waiter.op = ops[i];
        kp__node_init(&flushes[i].waiter.link);
    }
}

/* The I/O thread: there is a batch for each. */
static void offer(void)
{
    kp__mutex_lock(&queue.lock);
    for (int i = 1; i <= count; i++) {
        batches[i] = (struct batch){.place = PLACE_SEALED};
        kp__node_init(&batches[i].sealed_link);
        kp__list_push_back(&queue.sealed, &batches[i].sealed_link);
    }
    kp__mutex_unlock(&queue.lock);
    kp__claims_offer(&producer.accumulator.claims, &queue);
    for (int i = 1; i <= count; i++) {
        kp__op_offer(ops[i]);
        kp__op_unref(ops[i]);
    }
}

/* What was claimed is done: see kp__compress_and_finish. */
static void give_back(struct flush *f)
{
    if (f->claimed == NULL)
        return;
    f->claimed = NULL;
    kp__compressors_give(&set, f->compressor);
    kp__claims_chance(&producer.accumulator.claims);
}

static void flush(int id)
{
    struct flush *f = &flushes[id];

    (void)kp__flush_try(f);
    while (id > 1 && f->claimed == NULL) {
        (void)kp__ticket_wait(&f->ticket);
        (void)kp__flush_try(f);
    }
    give_back(f);
    kp__flush_end(f);
}

static void actor(int id)
{
    if (id == 0)
        offer();
    else
        flush(id);
}

static void check(void)
{
    struct claims *c = &producer.accumulator.claims;

    if (!kp__list_empty(&c->waiting) || atomic_load(&c->waiting_count) != 0)
        sched_violation("somebody is left in the line");
    kp__claims_fini(c);
    kp__mutex_fini(&queue.lock);
    kp__mutex_fini(&set.lock);
    if (kp__mem_live() != live)
        sched_violation("%ld allocations are left", kp__mem_live() - live);
}

const struct scenario scenario_flush_turn = {
    "flush_turn",
    3,
    5,
    set_up,
    actor,
    check,
    PLANT(PLANT_LOST_WAKE) | PLANT(PLANT_BLIND_WAIT) |
        PLANT(PLANT_NO_EXCLUSION)};
