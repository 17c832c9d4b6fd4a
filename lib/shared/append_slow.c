/* SPDX-License-Identifier: BSD-2-Clause */
/* append_slow.c - appends that lack something: room in the chunk, slots, a
 * batch, memory.  Application threads, any number at once.
 *
 * What an append lacks it asks the pool for with no lock, no chunk and no
 * uncompressed batch in hand, and then looks again.
 * Invariant: whoever seals a batch compresses it before anything that can wait
 * or fail; only an append that may not wait leaves that to the I/O thread.
 * Java: RecordAccumulator.append. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/shared/append.h"
#include "lib/shared/cq.h"
#include "lib/shared/record_accumulator.h"
#include "lib/shared/sticky.h"
#include "lib/wire/record.h"
#include "lib/wire/record_batch.h"

#define LACKS_CHUNK 1u
#define LACKS_SLOTS 2u
#define LACKS_BATCH 4u /* there is none, or it takes no more */

#define SMALL_SLOT_PAGES 4 /* then full ones */

struct attempt {
    struct record_accumulator *a;
    struct append *x;
    const kp_record *r;
    struct partition_queue *q;
    struct append_now now;
    bool has_report;
    bool hopped;
    bool granted;   /* `grant` is in hand */
    bool used_data; /* ... and its first chunk of data is in use */
    bool opened;    /* a batch was opened here */
    struct pool_grant grant;
    int64_t now_ns; /* of the grant */
    struct batch *sealed[2]; /* and claimed: to be compressed */
    unsigned sealed_count;
    bool left_sealed; /* one that the I/O thread is to compress */
    int64_t delta_ms;
    size_t body, size; /* of the record in the open batch */
};

/* -- Which partition -- */

static bool is_unkeyed(const struct attempt *t)
{
    return t->x->partition < 0;
}

/* Java: BuiltInPartitioner.updatePartitionInfo: after batch.size bytes if that
 * leaves no batch part filled, in any case after twice as many. */
static bool sticky_is_over(const struct attempt *t, bool batch_is_full)
{
    uint64_t bytes = t->q->sticky_bytes, size = t->a->batch_size;

    return is_unkeyed(t) &&
           ((batch_is_full && bytes >= size) || bytes >= 2 * size);
}

/* -- What the open batch lacks -- */

static bool has_post_room(const struct batch *b, const struct kp_cq *cq)
{
    if (b->post_count < BATCH_MAX_CQS)
        return true;
    for (uint32_t i = 0; i < BATCH_MAX_CQS; i++)
        if (b->posts[i].cq == cq)
            return true;
    return false;
}

static void measure(struct attempt *t, const struct batch *b)
{
    t->delta_ms = t->now.timestamp_ms - b->base_timestamp_ms;
    t->body = kp__record_body_size(t->r, t->delta_ms, (int32_t)b->record_count);
    t->size = kp__varint_size((int32_t)t->body) + t->body;
}

static unsigned what_lacks(struct attempt *t)
{
    const struct partition_queue *q = t->q;
    const struct batch *b = q->open;
    unsigned lacks = 0;

    if (KP_UNLIKELY(b == NULL))
        return LACKS_BATCH;
    measure(t, b);
    if (KP_UNLIKELY(b->raw_size + t->size > q->raw_limit || q->open_is_old) &&
        b->record_count > 0)
        return LACKS_BATCH;
    if (t->r->queue != NULL && !has_post_room(b, t->r->queue))
        return LACKS_BATCH;
    if (KP_UNLIKELY(t->size > (size_t)(q->limit - q->at)))
        lacks |= LACKS_CHUNK;
    if ((t->has_report || b->slots != NULL) && !kp__batch_has_slot_room(b))
        lacks |= LACKS_SLOTS;
    return lacks;
}

/* -- Growing, opening, sealing; under the lock -- */

static void add_chunk(struct partition_queue *q, struct chunk *c)
{
    struct batch *b = q->open;

    b->last_chunk->used = (uint32_t)(q->at - b->last_chunk->data);
    c->next = NULL;
    b->last_chunk->next = c;
    b->last_chunk = c;
    q->at = c->data;
    q->limit = c->data + c->capacity;
}

static void add_slots(struct batch *b, struct chunk *page)
{
    page->next = NULL;
    page->used = 0;
    if (b->slots == NULL) {
        b->slots = page;
        b->slots_from = b->record_count;
    } else {
        b->last_slots->next = page;
    }
    b->last_slots = page;
}

/* The first chunk of a list that has room for `size` bytes and is the first of
 * the list: the others are of one kind. */
static struct chunk *pop_chunk(struct chunk **list, size_t size)
{
    struct chunk *c = *list;

    if (c == NULL || c->capacity < size)
        return NULL;
    *list = c->next;
    return c;
}

/* What the lack can be made up with: from the queue's spare or the grant. */
static bool supply(struct attempt *t, unsigned lacks)
{
    struct batch *b = t->q->open;

    if ((lacks & LACKS_CHUNK) != 0) {
        struct chunk *c = pop_chunk(&t->q->spare, t->size);

        if (c == NULL) {
            c = pop_chunk(&t->grant.data, t->size);
            t->used_data = c != NULL;
        }
        if (c == NULL)
            return false;
        add_chunk(t->q, c);
    }
    if ((lacks & LACKS_SLOTS) != 0) {
        if (t->grant.slots == NULL)
            return false;
        add_slots(b, t->grant.slots);
        t->grant.slots = NULL;
    }
    return true;
}

static size_t raw_limit(const struct record_accumulator *a,
                        const struct partition_queue *q)
{
    size_t limit = a->batch_size;

    if (a->compresses) {
        limit = (size_t)((float)limit * q->ratio);
        if (limit > a->max_request_size)
            limit = a->max_request_size;
        if (limit > a->raw_max)
            limit = a->raw_max;
    }
    limit =
        limit > RECORD_BATCH_HEADER_SIZE ? limit - RECORD_BATCH_HEADER_SIZE : 0;
    return q->raw_cap > 0 && q->raw_cap < limit ? q->raw_cap : limit;
}

static void open_batch(struct attempt *t)
{
    struct batch *b = t->grant.batch;
    struct partition_queue *q = t->q;

    t->grant.batch = NULL;
    kp__result_init(b->result, t->x->topic->name, q->partition);
    kp__node_init(&b->link);
    kp__node_init(&b->order_link);
    b->chunks = b->last_chunk = t->grant.data;
    t->grant.data = t->grant.data->next;
    b->chunks->next = NULL;
    t->used_data = true;
    b->created_ns = t->now_ns;
    b->base_timestamp_ms = b->max_timestamp_ms = t->now.timestamp_ms;
    b->base_sequence = -1;
    /* relaxed: published with the queue's lock */
    atomic_store_explicit(&b->refs, 2, memory_order_relaxed);
    q->raw_limit = raw_limit(t->a, q);
    kp__queue_open_locked(q, b);
    t->opened = true;
}

static void seal_batch(struct attempt *t)
{
    bool claim = t->x->may_wait;
    struct batch *b =
        kp__queue_seal_locked(t->q, claim ? PLACE_COMPRESSING : PLACE_SEALED);

    if (claim) {
        t->sealed[t->sealed_count++] = b;
        return;
    }
    t->left_sealed = true;
    kp__drain_push(t->a, t->q);
}

/* -- Encoding; under the lock, with nothing lacking -- */

static void put_record(struct attempt *t)
{
    struct partition_queue *q = t->q;
    struct batch *b = q->open;
    struct append *x = t->x;

    q->at = kp__record_encode(q->at, t->r, t->body, t->delta_ms,
                              (int32_t)b->record_count);
    if (b->slots != NULL)
        kp__batch_put_slot(b, t->r);
    x->result = b->result;
    x->index = b->record_count++;
    b->raw_size += t->size;
    if (t->size > b->max_record_size)
        b->max_record_size = (uint32_t)t->size;
    if (t->now.timestamp_ms > b->max_timestamp_ms)
        b->max_timestamp_ms = t->now.timestamp_ms;
    if (x->want_future) {
        b->future_refs++;
        if (t->r->on_delivery != NULL || t->r->queue != NULL)
            b->future_and_callback = true;
    } else if (!t->has_report) {
        b->unwatched++;
    }
}

/* The batch that was just added to is done: full, or past its linger and next
 * in line, which with a codec is worth this thread's time. */
static bool seals_itself(const struct attempt *t)
{
    const struct partition_queue *q = t->q;
    const struct batch *b = q->open;

    if (b->raw_size >= q->raw_limit)
        return true;
    return t->a->compresses && t->a->linger_ns > 0 && q->batch_count == 1 &&
           t->now.coarse_ns - b->created_ns >= t->a->linger_ns;
}

/* -- After the lock -- */

static void compress_one(struct attempt *t, struct batch *b)
{
    struct compressor *k = kp__compressors_take(t->a->compressors);

    if (k != NULL)
        kp__compress_and_finish(t->a, b, k);
    else
        kp__queue_unclaim(b->queue, b);
    kp__io_wake(t->a->bell, 0);
}

static void compress_sealed(struct attempt *t)
{
    for (unsigned i = 0; i < t->sealed_count; i++)
        compress_one(t, t->sealed[i]);
    t->sealed_count = 0;
}

/* A batch that the I/O thread has to compress. */
static void announce_sealed(struct attempt *t)
{
    if (!t->left_sealed)
        return;
    t->left_sealed = false;
    kp__io_wake(t->a->bell, 0);
}

static void drop_batch(struct attempt *t)
{
    struct batch *b = t->grant.batch;

    if (b == NULL)
        return;
    t->grant.batch = NULL;
    kp__free(b->result);
    kp__pool_give_batch(t->a->pool, t->q, b);
}

/* Give back what the grant brought and was not used. */
static void drop_grant(struct attempt *t)
{
    if (!t->granted)
        return;
    t->granted = t->used_data = false;
    kp__pool_give(t->a->pool, t->q, t->grant.data);
    kp__pool_give(t->a->pool, t->q, t->grant.slots);
    t->grant.data = t->grant.slots = NULL;
    drop_batch(t);
}

static void after_lock(struct attempt *t)
{
    compress_sealed(t);
    announce_sealed(t);
    drop_grant(t);
}

/* -- Asking the pool -- */

static bool want_full_slots(const struct batch *b)
{
    unsigned pages = 0;

    if (b == NULL)
        return false;
    for (const struct chunk *c = b->slots; c != NULL; c = c->next)
        if (++pages >= SMALL_SLOT_PAGES)
            return true;
    return false;
}

/* What is needed to go on; under the lock.  The size is that of a batch's first
 * record, or of this one's in the open batch. */
static void need_of(struct attempt *t, unsigned lacks, struct pool_need *need)
{
    const struct batch *b = t->q->open;

    *need = (struct pool_need){0};
    if ((lacks & LACKS_BATCH) != 0) {
        size_t body = kp__record_body_size(t->r, 0, 0);

        need->record_size = kp__varint_size((int32_t)body) + body;
        need->small = !t->q->outgrew_small;
        need->slots = t->has_report;
        need->batch = true;
        return;
    }
    if ((lacks & LACKS_CHUNK) != 0)
        need->record_size = t->size;
    need->slots = (lacks & LACKS_SLOTS) != 0;
    need->full_slots = need->slots && want_full_slots(b);
}

/* Who has to wait asks for all that it could need when its turn comes: the open
 * batch may be gone by then. */
static void need_everything(const struct attempt *t, struct pool_need *need)
{
    need->batch = true;
    need->slots = need->slots || t->has_report;
    if (need->record_size == 0)
        need->record_size = t->size;
}

static kp_err taking_err(const struct record_accumulator *a)
{
    /* relaxed: read under the queue's lock, which whoever changes it takes next
     * */
    uint32_t taking = atomic_load_explicit(
        &((struct record_accumulator *)(uintptr_t)a)->taking,
        memory_order_relaxed);

    if (KP_LIKELY(taking == TAKING_RECORDS))
        return KP_OK;
    if (taking == TAKING_CLOSED)
        return KP_ECLOSED;
    return (kp_err)atomic_load_explicit(
        &((struct record_accumulator *)(uintptr_t)a)->fatal_err,
        memory_order_relaxed);
}

static kp_err refused(struct attempt *t, const struct pool_need *need)
{
    kp__pool_note_exhausted(t->a->pool);
    if (t->r->queue != NULL)
        kp__pool_want_retry(t->a->pool, t->q, need, t->r->queue);
    /* What lingers is now wanted back. */
    kp__io_wake(t->a->bell, 0);
    return KP_EBUFFER;
}

/* The pool's answer, as far as it is not a grant. */
static kp_err answered(struct attempt *t, enum pool_answer answer)
{
    struct append *x = t->x;
    kp_err err;

    x->waiting = answer == POOL_WAIT;
    switch (answer) {
    case POOL_GRANTED:
        t->granted = true;
        /* Read after the wait and before the lock. */
        t->now_ns = t->now.coarse_ns = kp__now_ns(t->a->clock);
        if (x->timestamp_ms < 0)
            t->now.timestamp_ms = t->a->clock->wall_ms(t->a->clock->arg);
        return KP_OK;
    case POOL_WAIT:
        kp__backlog_pressed(&t->a->backlog);
        x->queue = t->q;
        x->ticket = kp__pool_ticket(t->a->pool, &x->waiter, x->deadline_ns);
        return KP_PENDING;
    case POOL_CLOSED:
        err = taking_err(t->a);
        return err != KP_OK ? err : KP_ECLOSED;
    case POOL_NOMEM:
        return KP_ENOMEM;
    case POOL_FULL:
        break;
    }
    return KP_EBUFFER;
}

static kp_err ask_pool(struct attempt *t, struct pool_need *need)
{
    struct append *x = t->x;
    enum pool_answer answer;
    int64_t now_ns;

    x->waiter.joined = false;
    answer =
        kp__pool_try(t->a->pool, t->q, need, false, 0, &x->waiter, &t->grant);
    if (answer == POOL_FULL && !x->may_wait)
        return refused(t, need);
    if (answer == POOL_FULL) {
        need_everything(t, need);
        now_ns = kp__now_ns(t->a->clock);
        answer = kp__pool_try(t->a->pool, t->q, need, true, now_ns, &x->waiter,
                              &t->grant);
        if (answer == POOL_WAIT)
            kp__io_wake(t->a->bell, 0);
    }
    return answered(t, answer);
}

/* Its turn has come, or not yet. */
static kp_err resume(struct attempt *t)
{
    struct append *x = t->x;

    t->q = x->queue;
    return answered(t, kp__pool_try(t->a->pool, t->q, &x->waiter.need, true,
                                    kp__now_ns(t->a->clock), &x->waiter,
                                    &t->grant));
}

/* -- The brake -- */

void kp__append_braked(struct record_accumulator *a, struct append *x)
{
    x->braking = false;
    kp__pool_note_waited(a->pool, kp__brake_end(&a->backlog, &x->brake));
}

/* Once an append. */
static bool brakes(struct attempt *t)
{
    struct append *x = t->x;

    if (!x->may_brake)
        return false;
    x->may_brake = false;
    x->braking = kp__brake_begin(&t->a->backlog, &x->brake, &x->ticket);
    return x->braking;
}

/* -- The whole -- */

/* The record is in: what follows, and the lock goes. */
static kp_err finish(struct attempt *t)
{
    struct partition_queue *q = t->q;
    bool full = seals_itself(t);
    int64_t due_ns;

    if (is_unkeyed(t))
        q->sticky_bytes += t->size;
    if (KP_LIKELY(!full && !t->opened && !t->granted)) {
        if (KP_UNLIKELY(sticky_is_over(t, false)))
            kp__sticky_leave(t->x->topic, t->q, t->hopped);
        kp__mutex_unlock(&q->lock);
        return KP_OK;
    }
    due_ns = kp__ns_add(q->open->created_ns, t->a->linger_ns);
    if (full)
        seal_batch(t);
    if (sticky_is_over(t, full))
        kp__sticky_leave(t->x->topic, t->q, t->hopped);
    /* What a generous grant brought besides stays for the next growth. */
    if (t->used_data && q->spare == NULL && q->open != NULL) {
        q->spare = t->grant.data;
        t->grant.data = NULL;
    }
    /* Before anyone else can append to the batch: with the lock gone a flush
     * must find the queue on the list. */
    if (t->opened && !full)
        kp__drain_push(t->a, q);
    kp__mutex_unlock(&q->lock);
    after_lock(t);
    if (t->opened && !full)
        kp__io_wake(t->a->bell, due_ns);
    return KP_OK;
}

/* The open batch, if there is one, can take the record no more.  True: go on
 * with the queue that is now locked. */
static bool next_batch(struct attempt *t)
{
    if (t->q->open != NULL)
        seal_batch(t);
    /* Where to go on with a new batch is a new choice; of one that was sent part
     * filled, too: the next one would be cut in the middle. */
    if (!t->granted && t->q->sticky_bytes > 0 && sticky_is_over(t, true)) {
        kp__sticky_leave(t->x->topic, t->q, t->hopped);
        kp__mutex_unlock(&t->q->lock);
        after_lock(t);
        t->q = kp__sticky_lock(t->a, t->x->topic, &t->hopped);
        return true;
    }
    if (t->grant.batch == NULL || t->grant.data == NULL ||
        (t->has_report && t->grant.slots == NULL))
        return false;
    open_batch(t);
    return true;
}

/* A batch was opened here and is empty still: it must get its record, as whoever
 * finds it would send a batch of none.  The lock has been held since the last look
 * at `taking`. */
static bool just_opened(const struct attempt *t)
{
    return t->opened && t->q->open != NULL && t->q->open->record_count == 0;
}

/* With t->q locked. */
static kp_err run(struct attempt *t)
{
    struct pool_need need;
    unsigned lacks;
    kp_err err;

    for (;;) {
        err = just_opened(t) ? KP_OK : taking_err(t->a);
        if (KP_UNLIKELY(err != KP_OK)) {
            kp__mutex_unlock(&t->q->lock);
            after_lock(t);
            return err;
        }
        lacks = what_lacks(t);
        if (KP_LIKELY(lacks == 0)) {
            put_record(t);
            return finish(t);
        }
        if ((lacks & LACKS_BATCH) == 0 && supply(t, lacks))
            continue;
        /* A grant for a new batch is used for one: the place in the line is not
         * given up because the open batch lacks something else. */
        if (((lacks & LACKS_BATCH) != 0 || t->grant.batch != NULL) &&
            next_batch(t))
            continue;
        need_of(t, t->q->open == NULL ? LACKS_BATCH : lacks, &need);
        kp__mutex_unlock(&t->q->lock);
        after_lock(t);
        if (need.batch && brakes(t))
            return KP_PENDING;
        err = ask_pool(t, &need);
        if (err != KP_OK)
            return err;
        kp__mutex_lock(&t->q->lock);
    }
}

kp_err kp__append_slow(struct record_accumulator *a, struct append *x,
                       struct partition_queue *q, const struct append_now *now,
                       bool hopped)
{
    struct attempt t = {
        .a = a,
        .x = x,
        .r = x->record,
        .q = q,
        .now = *now,
        .has_report =
            x->record->on_delivery != NULL || x->record->queue != NULL,
        .hopped = hopped,
    };
    kp_err err;

    if (q == NULL) {
        err = resume(&t);
        if (err != KP_OK)
            return err;
        kp__mutex_lock(&t.q->lock);
    }
    return run(&t);
}

kp_err kp__append_give_up(struct record_accumulator *a, struct append *x)
{
    if (x->braking)
        kp__append_braked(a, x);
    if (x->waiting) {
        kp__pool_leave(a->pool, &x->waiter, kp__now_ns(a->clock));
        kp__pool_note_exhausted(a->pool);
        x->waiting = false;
    }
    return KP_EBUFFER;
}
