/* SPDX-License-Identifier: BSD-2-Clause */
/* record_accumulator.c - the drain list, and compressing what is claimed.
 * Application threads push, the I/O thread takes.
 *
 * Invariant: a queue is on the drain list at most once (`listed`), and one that
 * was pushed is looked at after the push. */
#include "lib/shared/record_accumulator.h"

#include <string.h>

#include "lib/base/clock.h"

size_t kp__raw_max(const struct settings *s)
{
    size_t raw = s->batch_size;

    /* With a codec a batch may hold as much more than batch.size as it shrinks,
     * never more than a request may. Without one only a record of its own is
     * larger, which needs no compressor and is never split. */
    if (s->codec != CODEC_NONE && raw < s->max_request_size)
        raw = s->max_request_size;
    return raw < s->buffer_memory ? raw : s->buffer_memory;
}

void kp__accumulator_init(struct record_accumulator *a,
                          const struct settings *s, const struct clock *clock,
                          struct buffer_pool *pool, struct compressors *c,
                          struct io_bell *bell)
{
    memset(a, 0, sizeof(*a));
    a->settings = s;
    a->clock = clock;
    a->pool = pool;
    a->compressors = c;
    a->bell = bell;
    a->raw_max = kp__raw_max(s);
    a->batch_size = s->batch_size;
    a->max_request_size = s->max_request_size;
    a->linger_ns = s->linger_ns;
    a->delivery_timeout_ns = s->delivery_timeout_ns;
    a->open_max_ns = s->delivery_timeout_ns / 4;
    a->compresses = s->codec != CODEC_NONE;
    kp__backlog_init(&a->backlog, clock, s->batch_size);
    atomic_init(&a->taking, TAKING_RECORDS);
    atomic_init(&a->fatal_err, KP_OK);
    atomic_init(&a->drain_head, NULL);
    kp__claims_init(&a->claims);
    kp__pool_keep_aside(pool, a->raw_max);
}

void kp__accumulator_fini(struct record_accumulator *a)
{
    kp__claims_fini(&a->claims);
}

void kp__drain_push(struct record_accumulator *a, struct partition_queue *q)
{
    struct partition_queue *head;

    /* seq_cst: pairs with kp__drain_unlist */
    if (atomic_exchange(&q->listed, 1) != 0)
        return;
    /* relaxed: the exchange below checks it */
    head = atomic_load_explicit(&a->drain_head, memory_order_relaxed);
    do
        atomic_store_explicit(&q->drain_next, head, memory_order_relaxed);
    /* seq_cst: the sender looks at the bell after it, the I/O thread at the
     * list after it has set the bell */
    while (!atomic_compare_exchange_weak(&a->drain_head, &head, q));
}

struct partition_queue *kp__drain_take(struct record_accumulator *a)
{
    struct partition_queue *q = atomic_exchange(&a->drain_head, NULL);
    struct partition_queue *oldest = NULL;

    /* relaxed: the exchange above acquired what the pushers wrote */
    while (q != NULL) {
        struct partition_queue *next =
            atomic_load_explicit(&q->drain_next, memory_order_relaxed);

        atomic_store_explicit(&q->drain_next, oldest, memory_order_relaxed);
        oldest = q;
        q = next;
    }
    return oldest;
}

bool kp__drain_empty(const struct record_accumulator *a)
{
    struct record_accumulator *r = (struct record_accumulator *)(uintptr_t)a;

    /* seq_cst: see kp__drain_push */
    return atomic_load(&r->drain_head) == NULL;
}

void kp__compress_and_finish(struct record_accumulator *a, struct batch *b,
                             struct compressor *k)
{
    struct partition_queue *q = b->queue;
    struct chunk *surplus = kp__compress_batch(k, b);
    bool own = k == kp__compressors_own(a->compressors);

    kp__compressors_give(a->compressors, k);
    if (!own)
        kp__claims_chance(&a->claims);
    kp__pool_give(a->pool, q, surplus);
    /* The I/O thread looks again by itself. */
    (void)kp__queue_finish(q, b, !own);
}
