/* SPDX-License-Identifier: BSD-2-Clause */
/* partition_queue.c - the batches of one partition that are not on a wire.
 * Application threads and the I/O thread, under the queue's lock.
 *
 * Invariants: batches are in order of (ordinal, first_index); only the last can
 * be open, and q->open says so; `sealed` holds just those of them that are
 * SEALED; an empty queue keeps no spare chunks.  Nothing is given back to the
 * pool before the lock is let go. */
#include "lib/shared/partition_queue.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/shared/record_accumulator.h"

/* How fast the ratio follows: up slowly, for a batch that turns out too large
 * is dear; down at once by half of the way. */
#define RATIO_MAX 16.0f
#define RATIO_UP 0.125f
#define RATIO_DOWN 0.5f

static struct batch *batch_of(struct list_node *n)
{
    return n != NULL ? KP_CONTAINER(n, struct batch, link) : NULL;
}

static struct batch *head_of(struct partition_queue *q)
{
    return batch_of(kp__list_first(&q->batches));
}

void kp__queue_init(struct partition_queue *q, struct topic *topic,
                    int32_t partition, struct record_accumulator *a)
{
    memset(q, 0, sizeof(*q));
    kp__mutex_init(&q->lock);
    kp__list_init(&q->batches);
    kp__list_init(&q->sealed);
    kp__node_init(&q->offer_link);
    q->ratio = 1.0f;
    q->topic = topic;
    q->accumulator = a;
    q->partition = partition;
    atomic_init(&q->leader_id, -1);
    atomic_init(&q->leader_epoch, -1);
    atomic_init(&q->drain_next, NULL);
    atomic_init(&q->listed, 0);
}

void kp__queue_fini(struct partition_queue *q)
{
    KP_CHECK(kp__list_empty(&q->batches) && q->spare == NULL);
    kp__mutex_fini(&q->lock);
}

/* -- With the lock held -- */

void kp__queue_open_locked(struct partition_queue *q, struct batch *b)
{
    kp__mutex_check_held(&q->lock);
    KP_CHECK(q->open == NULL && b->place == PLACE_OPEN);
    kp__node_init(&b->sealed_link);
    b->queue = q;
    b->ordinal = q->next_ordinal++;
    if (b->created_ns < q->last_created_ns)
        b->created_ns = q->last_created_ns;
    q->last_created_ns = b->created_ns;
    b->deadline_ns =
        kp__ns_add(b->created_ns, q->accumulator->delivery_timeout_ns);
    kp__list_push_back(&q->batches, &b->link);
    q->batch_count++;
    q->open = b;
    q->at = b->last_chunk->data;
    q->limit = q->at + b->last_chunk->capacity;
    q->expedite = false;
    q->open_is_old = false;
}

/* Into `sealed` by ordinal: nearly always at the end. */
static void add_sealed(struct partition_queue *q, struct batch *b)
{
    struct list_node *at = q->sealed.head.prev;

    while (at != &q->sealed.head &&
           KP_CONTAINER(at, struct batch, sealed_link)->ordinal > b->ordinal)
        at = at->prev;
    kp__list_insert_before(at->next, &b->sealed_link);
}

struct batch *kp__queue_seal_locked(struct partition_queue *q,
                                    enum batch_place to)
{
    struct batch *b = q->open;

    kp__mutex_check_held(&q->lock);
    b->last_chunk->used = (uint32_t)(q->at - b->last_chunk->data);
    kp__batch_end_slots(b);
    q->open = NULL;
    q->at = q->limit = NULL;
    q->outgrew_small = b->raw_size > CHUNK_SMALL_SIZE - sizeof(struct chunk);
    kp__backlog_add(&q->accumulator->backlog, b->raw_size);
    kp__batch_move(b, PLACE_SEALED);
    if (to != PLACE_SEALED)
        kp__batch_move(b, to);
    else
        add_sealed(q, b);
    kp__result_publish(b->result, b->reports.future_refs);
    return b;
}

static void unlink_batch(struct partition_queue *q, struct batch *b)
{
    kp__list_remove(&b->link);
    q->batch_count--;
    kp__backlog_sub(&q->accumulator->backlog, b->raw_size);
}

/* What an empty queue has in spare; for the pool, after the lock. */
static struct chunk *idle_spare(struct partition_queue *q)
{
    struct chunk *spare = NULL;

    if (kp__list_empty(&q->batches)) {
        spare = q->spare;
        q->spare = NULL;
    }
    return spare;
}

static void unlock_and_give(struct partition_queue *q, struct chunk *spare)
{
    kp__mutex_unlock(&q->lock);
    kp__backlog_wake(&q->accumulator->backlog);
    kp__pool_give(q->accumulator->pool, q, spare);
}

static bool take_lock(struct partition_queue *q, bool force)
{
    if (!force)
        return kp__mutex_trylock(&q->lock);
    kp__mutex_lock(&q->lock);
    return true;
}

/* -- Claims -- */

static void note_ratio(struct partition_queue *q, const struct batch *b)
{
    float seen =
        b->wire_size > 0 ? (float)b->raw_size / (float)b->wire_size : 1.0f;

    if (seen > RATIO_MAX)
        seen = RATIO_MAX;
    if (seen < 1.0f)
        seen = 1.0f;
    q->ratio += (seen - q->ratio) * (seen > q->ratio ? RATIO_UP : RATIO_DOWN);
}

bool kp__queue_finish(struct partition_queue *q, struct batch *b, bool list)
{
    bool abandoned;

    kp__mutex_lock(&q->lock);
    abandoned = b->abandoned;
    if (q->accumulator->compresses)
        note_ratio(q, b);
    if (!abandoned) {
        kp__batch_move(b, PLACE_READY);
        b->ready_size = b->wire_size;
        if (list)
            kp__drain_push(q->accumulator, q);
    }
    kp__mutex_unlock(&q->lock);
    if (abandoned)
        kp__batch_release_abandoned(b);
    return !abandoned;
}

void kp__queue_unclaim(struct partition_queue *q, struct batch *b)
{
    bool abandoned;

    kp__mutex_lock(&q->lock);
    abandoned = b->abandoned;
    if (!abandoned) {
        kp__batch_move(b, PLACE_SEALED);
        add_sealed(q, b);
        kp__drain_push(q->accumulator, q);
    }
    kp__mutex_unlock(&q->lock);
    if (abandoned)
        kp__batch_release_abandoned(b);
}

static void claim(struct batch *b)
{
    kp__list_remove(&b->sealed_link);
    kp__batch_move(b, PLACE_COMPRESSING);
}

enum queue_answer kp__queue_claim(struct partition_queue *q, bool force,
                                  struct batch **out)
{
    enum queue_answer answer = QUEUE_OK;
    struct batch *b;

    if (!take_lock(q, force))
        return QUEUE_BUSY;
    b = head_of(q);
    if (b == NULL)
        answer = QUEUE_EMPTY;
    else if (b->place != PLACE_SEALED)
        answer = QUEUE_NOT_READY;
    else
        claim(b);
    kp__mutex_unlock(&q->lock);
    if (answer == QUEUE_OK)
        *out = b;
    return answer;
}

bool kp__queue_claim_sealed(struct partition_queue *q, struct batch **out)
{
    struct list_node *n;

    kp__mutex_lock(&q->lock);
    n = kp__list_first(&q->sealed);
    if (n != NULL) {
        *out = KP_CONTAINER(n, struct batch, sealed_link);
        claim(*out);
    }
    kp__mutex_unlock(&q->lock);
    return n != NULL;
}

/* -- The I/O thread -- */

static void view_of(const struct partition_queue *q, const struct batch *b,
                    struct queue_view *out)
{
    out->head_place = b->place;
    out->head_full = b->place != PLACE_OPEN || b->raw_size >= q->raw_limit ||
                     q->batch_count > 1;
    out->expedite = q->expedite;
    out->retry = b->attempts > 0;
    out->stamped = b->base_sequence >= 0;
    out->head_created_ns = b->created_ns;
    out->head_deadline_ns = b->deadline_ns;
    out->open_created_ns = q->open != NULL && !q->open_is_old
                               ? q->open->created_ns
                               : KP_NEVER;
    out->head_wire_size = b->place >= PLACE_READY ? b->ready_size : b->raw_size;
    out->head_ordinal = b->ordinal;
    out->batch_count = q->batch_count;
}

enum queue_answer kp__queue_look(struct partition_queue *q, bool force,
                                 struct queue_view *out)
{
    const struct batch *b;

    if (!take_lock(q, force))
        return QUEUE_BUSY;
    b = head_of(q);
    if (b != NULL)
        view_of(q, b, out);
    kp__mutex_unlock(&q->lock);
    return b != NULL ? QUEUE_OK : QUEUE_EMPTY;
}

enum queue_answer kp__queue_seal(struct partition_queue *q, bool force,
                                 bool expedite)
{
    enum queue_answer answer = QUEUE_NOT_READY;
    struct chunk *spare = NULL;

    if (!take_lock(q, force))
        return QUEUE_BUSY;
    if (q->open != NULL && (expedite || head_of(q) == q->open)) {
        (void)kp__queue_seal_locked(q, PLACE_SEALED);
        answer = QUEUE_OK;
    }
    if (expedite)
        q->expedite = true;
    if (expedite || kp__pool_pressure(q->accumulator->pool, NULL)) {
        spare = q->spare;
        q->spare = NULL;
    }
    unlock_and_give(q, spare);
    return answer;
}

enum queue_answer kp__queue_take(struct partition_queue *q, bool force,
                                 struct batch **out)
{
    enum queue_answer answer = QUEUE_OK;
    struct batch *b;

    if (!take_lock(q, force))
        return QUEUE_BUSY;
    b = head_of(q);
    if (b == NULL) {
        answer = QUEUE_EMPTY;
    } else if (b->place != PLACE_READY) {
        answer = QUEUE_NOT_READY;
    } else {
        kp__batch_move(b, PLACE_IN_FLIGHT);
        unlink_batch(q, b);
    }
    unlock_and_give(q, idle_spare(q));
    if (answer == QUEUE_OK)
        *out = b;
    return answer;
}

static bool comes_after(const struct batch *a, const struct batch *b)
{
    return a->ordinal != b->ordinal ? a->ordinal > b->ordinal
                                    : a->first_index > b->first_index;
}

void kp__queue_put_back(struct partition_queue *q, struct batch *b)
{
    struct list_node *at;

    kp__mutex_lock(&q->lock);
    kp__batch_move(b, PLACE_READY);
    b->ready_size = b->wire_size;
    at = q->batches.head.next;
    while (at != &q->batches.head && !comes_after(batch_of(at), b))
        at = at->next;
    kp__list_insert_before(at, &b->link);
    q->batch_count++;
    kp__backlog_add(&q->accumulator->backlog, b->raw_size);
    kp__mutex_unlock(&q->lock);
}

static void complete_here(struct partition_queue *q, struct batch *b,
                          struct list *out)
{
    if (b == q->open)
        (void)kp__queue_seal_locked(q, PLACE_SEALED);
    b->fate = FATE_COMPLETED;
    b->abandoned = b->place == PLACE_COMPRESSING;
    if (b->place == PLACE_SEALED)
        kp__list_remove(&b->sealed_link);
    unlink_batch(q, b);
    kp__list_push_back(out, &b->link);
}

void kp__queue_expire(struct partition_queue *q, int64_t deadline_ns,
                      struct list *out)
{
    struct list_node *n, *next;

    kp__mutex_lock(&q->lock);
    for (n = kp__list_first(&q->batches); n != NULL; n = next) {
        struct batch *b = batch_of(n);

        /* By ordinal is by deadline: a long queue is not gone through for each
         * of its batches. */
        if (b->deadline_ns > deadline_ns)
            break;
        next = kp__list_next(&q->batches, n);
        complete_here(q, b, out);
    }
    unlock_and_give(q, idle_spare(q));
}

bool kp__queue_visit(struct partition_queue *q, bool seal,
                     void (*fn)(void *arg, struct batch *b), void *arg)
{
    bool any_sealed;

    kp__mutex_lock(&q->lock);
    if (seal && q->open != NULL) {
        (void)kp__queue_seal_locked(q, PLACE_SEALED);
        q->expedite = true;
    }
    for (struct list_node *n = kp__list_first(&q->batches); n != NULL;
         n = kp__list_next(&q->batches, n))
        if (fn != NULL)
            fn(arg, batch_of(n));
    any_sealed = !kp__list_empty(&q->sealed);
    kp__mutex_unlock(&q->lock);
    return any_sealed;
}

void kp__queue_note_age(struct partition_queue *q, int64_t before_ns)
{
    kp__mutex_lock(&q->lock);
    if (q->open != NULL && q->open->created_ns <= before_ns) {
        q->open_is_old = true;
        q->limit = q->at; /* so that the usual append looks no further */
    }
    kp__mutex_unlock(&q->lock);
}

#define RAW_CAP_MIN 512

void kp__queue_refused(struct partition_queue *q, size_t raw_size)
{
    size_t cap = raw_size / 2;

    if (cap < RAW_CAP_MIN)
        cap = RAW_CAP_MIN;
    kp__mutex_lock(&q->lock);
    if (q->raw_cap == 0 || cap < q->raw_cap)
        q->raw_cap = cap;
    q->ratio = 1.0f;
    kp__mutex_unlock(&q->lock);
}

void kp__queue_taken(struct partition_queue *q, size_t raw_size)
{
    if (q->raw_cap == 0 || raw_size < q->raw_cap - q->raw_cap / 4)
        return;
    kp__mutex_lock(&q->lock);
    q->raw_cap += q->raw_cap / 32;
    kp__mutex_unlock(&q->lock);
}

void kp__queue_trim(struct partition_queue *q)
{
    kp__mutex_lock(&q->lock);
    unlock_and_give(q, idle_spare(q));
}
