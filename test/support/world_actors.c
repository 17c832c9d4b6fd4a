/* SPDX-License-Identifier: BSD-2-Clause */
/* world_actors.c - the application threads of a world: sends, flushes and
 * closes as states, and what is reported to them.
 *
 * Each does what the public call of its name does between its waits, and is
 * looked at again when a real thread would wake. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api/flush.h"
#include "lib/api/future.h"
#include "lib/api/producer.h"
#include "lib/base/rand.h"
#include "lib/base/thread.h"
#include "test/support/world_state.h"

/* -- reports -- */

static void note_told(struct world *w, uint32_t id)
{
    if (w->told_count == w->told_capacity) {
        w->told_capacity = w->told_capacity == 0 ? 64 : 2 * w->told_capacity;
        w->told = world_must(
            realloc(w->told, w->told_capacity * sizeof(*w->told)));
    }
    w->told[w->told_count++] = id;
}

static void copy_report(struct world_record *r, const kp_report *report)
{
    struct world *w = r->w;

    r->report = *report;
    if (report->text != NULL) {
        (void)snprintf(r->text, sizeof(r->text), "%s", report->text);
        r->report.text = r->text;
    }
    if (report->topic != NULL) {
        if (strcmp(report->topic, r->topic) != 0)
            world_fail(w, "I-12: record %u of %s was reported for %s", r->id,
                       r->topic, report->topic);
        r->report.topic = r->topic;
    }
    if (r->reported)
        return;
    r->reported = true;
    r->reported_ns = w->now_ns;
    note_told(w, r->id);
    if (w->is_sim && report->stored == KP_STORED_NO && r->appended)
        world_fail(w, "I-04: record %u is reported NO and was appended",
                   r->id);
    w->unreported--;
    world_digest_add(w, (uint64_t)r->id << 32 | (uint32_t)report->err);
    world_trace(w, "record %u: %s, cause %s, stored %d, offset %lld", r->id,
                kp_err_name(report->err), kp_err_name(report->cause),
                (int)report->stored, (long long)report->offset);
}

static void same_report(const struct world_record *r, const kp_report *b)
{
    const kp_report *a = &r->report;

    if (a->err != b->err || a->cause != b->cause || a->kind != b->kind ||
        a->stored != b->stored || a->partition != b->partition ||
        a->offset != b->offset || a->timestamp_ms != b->timestamp_ms)
        world_fail(r->w, "I-01: record %u has two different reports: %s and %s",
                   r->id, kp_err_name(a->err), kp_err_name(b->err));
}

static void take_report(struct world_record *r, const kp_report *report)
{
    if (r->reported)
        same_report(r, report);
    else
        copy_report(r, report);
}

static void on_delivery(const kp_report *report)
{
    struct world_record *r = report->tag;
    struct world *w = r->w;

    if (r->state != WORLD_TAKEN || r->callbacks > 0)
        world_fail(w, "I-01: record %u: callback number %u in state %d", r->id,
                   r->callbacks + 1, (int)r->state);
    if (!kp__in_callback())
        world_fail(w, "I-47: a callback that is not known as one");
    r->callbacks++;
    r->callback_ns = w->now_ns;
    r->callback_at = w->callback_count++;
    if ((r->flags & WORLD_FUTURE) != 0) {
        /* What another thread would see of the future at this moment. */
        kp__set_in_callback(false);
        r->public_in_callback =
            kp_future_wait(&r->future, 0, NULL) != KP_PENDING;
        kp__set_in_callback(true);
    }
    take_report(r, report);
    if (w->on_report != NULL)
        w->on_report(w, r);
}

void world_on_report(struct world *w,
                     void (*fn)(struct world *w, struct world_record *r))
{
    w->on_report = fn;
}

static void look_at_future(struct world_record *r)
{
    kp_report report;
    kp_err err;

    if (r->future_done || r->state != WORLD_TAKEN ||
        (r->flags & WORLD_FUTURE) == 0)
        return;
    err = kp_future_wait(&r->future, 0, &report);
    if (err == KP_PENDING)
        return;
    if (err != report.err)
        world_fail(r->w, "I-07: record %u: wait says %s, its report %s", r->id,
                   kp_err_name(err), kp_err_name(report.err));
    r->future_done = true;
    r->w->open_futures--;
    r->future_ns = r->w->now_ns;
    take_report(r, &report);
    kp_future_release(&r->future, 1);
}

static size_t poll_up_to(struct world *w, kp_cq *queue, size_t max)
{
    kp_report reports[64];
    size_t n, want, all = 0;

    while (queue != NULL && max > 0) {
        want = max < 64 ? max : 64;
        n = kp_cq_poll(queue, reports, want, 0);
        for (size_t i = 0; i < n; i++) {
            struct world_record *r = reports[i].tag;

            if (++r->polled > 1)
                world_fail(w, "I-01: record %u was polled twice", r->id);
            r->polled_at = w->polled_count++;
            take_report(r, &reports[i]);
        }
        all += n;
        if (n < want)
            break;
        max -= n;
    }
    return all;
}

void world_poll_now(struct world *w, size_t max)
{
    (void)poll_up_to(w, w->queue, max);
}

size_t world_poll_other(struct world *w, kp_cq *queue)
{
    return poll_up_to(w, queue, SIZE_MAX);
}

void world_poll_queue(struct world *w, bool on)
{
    w->poll_queue = on;
}

kp_cq *world_queue(struct world *w)
{
    if (w->queue == NULL && kp_cq_create(&w->queue, NULL) != KP_OK)
        abort();
    return w->queue;
}

/* -- sends -- */

static void make_value(struct world_record *r)
{
    struct rng rng;

    r->value = world_must(malloc(r->size + 1));
    kp__rng_seed(&rng, r->w->seed ^ r->id);
    for (size_t i = 0; i < r->size; i++)
        r->value[i] = (r->flags & WORLD_RANDOM) != 0
                          ? (char)kp__rng_next(&rng)
                          : 'x';
    if (r->size >= 9) {
        char id[16];

        (void)snprintf(id, sizeof(id), "%08x:", r->id);
        memcpy(r->value, id, 9);
    }
}

static struct world_record *new_record(struct world *w,
                                       const struct world_what *what)
{
    struct world_record *r = world_must(calloc(1, sizeof(*r)));

    if (w->record_count == w->record_capacity) {
        w->record_capacity = w->record_capacity == 0
                                 ? 64
                                 : 2 * w->record_capacity;
        w->records = world_must(realloc(
            w->records, w->record_capacity * sizeof(struct world_record *)));
    }
    r->w = w;
    r->id = w->record_count;
    w->records[w->record_count++] = r;
    (void)snprintf(r->topic, sizeof(r->topic), "%s",
                   what->topic != NULL ? what->topic : "t");
    r->partition = what->partition;
    r->flags = what->flags;
    r->key = what->key;
    r->size = what->size > 0 ? (size_t)what->size : 20;
    make_value(r);
    return r;
}

static void sent(struct world_record *r, kp_err err)
{
    struct world *w = r->w;
    struct world_sending *s = r->sending;

    r->sending = NULL;
    w->waiting--;
    r->returned_ns = w->now_ns;
    r->returned_wall_ms = world_wall_ms(w);
    r->returned_at = ++w->ticks;
    if (err != KP_OK) {
        /* as kp_send does when a send took nothing */
        if (s->send.wait != NULL)
            kp__topics_wait_unref(w->p->topics, s->send.wait);
        r->state = WORLD_REFUSED;
        r->refused = err;
        world_trace(w, "record %u: refused, %s", r->id, kp_err_name(err));
        free(s);
        return;
    }
    r->state = WORLD_TAKEN;
    if ((r->flags & (WORLD_FUTURE | WORLD_CALLBACK | WORLD_QUEUE)) != 0)
        w->unreported++;
    if ((r->flags & WORLD_FUTURE) == 0) {
        free(s);
        return;
    }
    w->open_futures++;
    kp__future_take(&r->future, s->send.result, s->send.index, r);
    free(s);
}

/* A send from a callback is part of the turn. */
static void enter_unless_inside(struct world *w)
{
    if (!kp__in_callback())
        world_enter(w);
}

static void leave_unless_inside(struct world *w)
{
    if (!kp__in_callback())
        world_leave(w);
}

static void try_send(struct world_record *r, bool overdue)
{
    struct world_sending *s = r->sending;
    struct world *w = r->w;
    kp_err err;
    int64_t wait_ns = w->p->settings.max_block_ns;

    do {
        enter_unless_inside(w);
        err = kp__send_try(&s->send);
        leave_unless_inside(w);
        if (err == KP_PENDING && s->send.deadline_ns == 0) {
            if (s->record.max_wait_ms > 0 &&
                kp__ms_to_ns(s->record.max_wait_ms) < wait_ns)
                wait_ns = kp__ms_to_ns(s->record.max_wait_ms);
            s->send.deadline_ns = kp__ns_add(w->now_ns, wait_ns);
        }
    } while (err == KP_PENDING && s->send.ticket.word == NULL && !overdue);
    if (err == KP_PENDING && overdue)
        err = kp__send_give_up(&s->send);
    if (err != KP_PENDING)
        sent(r, err);
}

struct world_record *world_send_what(struct world *w,
                                     const struct world_what *what)
{
    struct world_record *r = new_record(w, what);
    struct world_sending *s = world_must(calloc(1, sizeof(*s)));
    kp_err err;

    r->sending = s;
    r->called_ns = w->now_ns;
    r->called_wall_ms = world_wall_ms(w);
    r->called_at = ++w->ticks;
    w->waiting++;
    s->record.topic = r->topic;
    s->record.value = (kp_bytes){r->value, r->size};
    s->record.key = kp_str(r->key);
    s->record.tag = r;
    s->record.max_wait_ms = what->max_wait_ms;
    if (r->partition >= 0) {
        s->record.partition = r->partition;
        s->record.flags |= KP_HAS_PARTITION;
    }
    if ((r->flags & WORLD_NOWAIT) != 0)
        s->record.flags |= KP_NOWAIT;
    if ((r->flags & WORLD_CALLBACK) != 0)
        s->record.on_delivery = on_delivery;
    if ((r->flags & WORLD_QUEUE) != 0)
        s->record.queue = what->queue != NULL ? what->queue : world_queue(w);
    err = kp__send_begin(&s->send, w->p, &s->record,
                         (r->flags & WORLD_FUTURE) != 0);
    if (err != KP_OK)
        sent(r, err);
    else
        try_send(r, false);
    return r;
}

struct world_record *world_send(struct world *w, int32_t partition)
{
    return world_send_what(
        w, &(struct world_what){.partition = partition,
                                .flags = WORLD_FUTURE | WORLD_CALLBACK});
}

struct world_record *world_send_many(struct world *w, int32_t partition,
                                     int count, int32_t size)
{
    struct world_what what = {
        .partition = partition,
        .size = size,
        .flags = WORLD_FUTURE | WORLD_CALLBACK,
    };
    struct world_record *first = world_send_what(w, &what);

    for (int i = 1; i < count; i++)
        (void)world_send_what(w, &what);
    return first;
}

struct world_record *world_record(struct world *w, uint32_t id)
{
    if (id >= w->record_count)
        abort();
    return w->records[id];
}

uint32_t world_record_count(const struct world *w)
{
    return w->record_count;
}

/* When it goes on by itself: a brake lets go long before the call's end. */
static int64_t due_ns(const struct send *s)
{
    return s->step == SEND_APPEND && s->append.braking ? s->ticket.deadline_ns
                                                       : s->deadline_ns;
}

static bool is_due(const struct world_record *r)
{
    const struct send *s = &r->sending->send;

    return s->ticket.word == NULL ||
           atomic_load(s->ticket.word) != s->ticket.seen ||
           r->w->now_ns >= due_ns(s);
}

/* -- calls -- */

static struct world_call *new_call(struct world *w, int64_t timeout_ms)
{
    struct world_call *c = world_must(calloc(1, sizeof(*c)));

    if (w->call_count == sizeof(w->calls) / sizeof(w->calls[0]))
        abort();
    w->calls[w->call_count++] = c;
    c->called_ns = w->now_ns;
    c->called_at = ++w->ticks;
    c->records = w->record_count;
    c->deadline_ns = kp__deadline_ns(w->now_ns, timeout_ms);
    return c;
}

static void returned(struct world *w, struct world_call *c, kp_err err)
{
    c->done = true;
    c->err = err;
    c->done_ns = w->now_ns;
    c->done_at = ++w->ticks;
    if (c->is_close)
        kp__op_unref(c->op);
    else
        kp__flush_end(c->flush);
    free(c->flush);
    c->op = NULL;
    c->flush = NULL;
    world_trace(w, "%s returns %s", c->is_close ? "close" : "flush",
                kp_err_name(err));
}

struct world_call *world_flush(struct world *w, int64_t timeout_ms)
{
    struct world_call *c = new_call(w, timeout_ms);

    c->flush = world_must(calloc(1, sizeof(*c->flush)));
    if (kp__flush_begin(c->flush, w->p, c->deadline_ns) != KP_PENDING)
        abort();
    return c;
}

struct world_call *world_close(struct world *w, int64_t timeout_ms)
{
    struct world_call *c = new_call(w, timeout_ms);

    c->is_close = true;
    c->op = world_must(kp__close_begin(w->p, timeout_ms));
    return c;
}

static bool run_close(struct world *w, struct world_call *c)
{
    if (!kp__op_is_done(c->op) || !w->over)
        return false; /* it joins the thread */
    /* the I/O thread has ended: this waits for nothing */
    returned(w, c, kp_close(w->p, KP_FOREVER, &c->error));
    return true;
}

/* Would a thread that sleeps on the ticket wake? */
static bool flush_is_due(const struct world *w, const struct world_call *c)
{
    const struct ticket *t = &c->flush->ticket;

    return t->word == NULL || atomic_load(t->word) != t->seen ||
           w->now_ns >= c->deadline_ns;
}

static bool run_flush(struct world *w, struct world_call *c)
{
    kp_err err;

    if (!flush_is_due(w, c))
        return false;
    err = kp__flush_try(c->flush);
    c->compressed = c->flush->compressed;
    if (err == KP_OK)
        returned(w, c, kp__producer_take_unwatched(w->p, &c->error));
    else if (w->now_ns >= c->deadline_ns)
        returned(w, c, KP_PENDING);
    return true;
}

static bool run_call(struct world *w, struct world_call *c)
{
    if (c->held)
        return false;
    return c->is_close ? run_close(w, c) : run_flush(w, c);
}

/* -- the whole -- */

bool world_nothing_left(const struct world *w)
{
    return kp__drain_empty(&w->p->accumulator) &&
           atomic_load(&w->p->busy) == 0;
}

void world_collect(struct world *w)
{
    for (uint32_t i = 0; i < w->record_count && w->open_futures > 0; i++)
        look_at_future(w->records[i]);
    if (w->poll_queue)
        world_poll_now(w, SIZE_MAX);
}

bool world_actors_run(struct world *w)
{
    bool any = false;

    if (w->over)
        world_collect(w); /* there are no turns any more that would */
    for (uint32_t i = 0; i < w->record_count && w->waiting > 0; i++) {
        struct world_record *r = w->records[i];

        if (r->sending != NULL && is_due(r)) {
            try_send(r, w->now_ns >= r->sending->send.deadline_ns);
            any = true;
        }
    }
    for (size_t i = 0; i < w->call_count; i++)
        if (!w->calls[i]->done)
            any = run_call(w, w->calls[i]) || any;
    return any;
}

int64_t world_actors_next_ns(const struct world *w)
{
    int64_t at_ns = KP_NEVER;

    for (uint32_t i = 0; i < w->record_count && w->waiting > 0; i++) {
        const struct world_record *r = w->records[i];

        if (r->sending != NULL && due_ns(&r->sending->send) < at_ns)
            at_ns = due_ns(&r->sending->send);
    }
    for (size_t i = 0; i < w->call_count; i++)
        if (!w->calls[i]->done && !w->calls[i]->is_close &&
            !w->calls[i]->held && w->calls[i]->deadline_ns < at_ns)
            at_ns = w->calls[i]->deadline_ns;
    return at_ns;
}

bool world_is_settled(const struct world *w)
{
    for (size_t i = 0; i < w->call_count; i++)
        if (!w->calls[i]->done)
            return false;
    return w->waiting == 0 && w->unreported == 0 && w->open_futures == 0;
}

void world_actors_fini(struct world *w)
{
    for (uint32_t i = 0; i < w->record_count; i++) {
        struct world_record *r = w->records[i];

        if (r->sending != NULL)
            world_fail(w, "record %u is still being sent", r->id);
        if (!r->future_done)
            kp_future_release(&r->future, 1);
        free(r->value);
        free(r);
    }
    free(w->records);
    free(w->told);
    for (size_t i = 0; i < w->call_count; i++)
        free(w->calls[i]);
    kp_cq_destroy(w->queue);
}
