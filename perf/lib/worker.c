/* SPDX-License-Identifier: BSD-2-Clause */
/* worker.c - a sending thread.  In the timed loop a record costs two loads from
 * the table of values, a store or two, and the call: clocks, schedules and
 * counters are looked at once in a chunk. */
#include <string.h>

#include "perf/lib/run.h"

/* Point the record at the next value and key. */
static inline void next_record(struct worker *w, kp_record *r)
{
    r->value = *w->value;
    if (++w->value == w->values_end)
        w->value = w->run->payload->values;
    if (w->key == NULL)
        return;
    r->key = *w->key;
    if (++w->key == w->keys_end)
        w->key = w->run->payload->keys;
}

/* A record was not taken.  False: the next one would fare no better. */
static bool refused(struct worker *w, kp_err err)
{
    struct run *run = w->run;
    kp_error status;

    counter_add(&w->refused, 1);
    status.text[0] = '\0';
    (void)kp_status(run->producer, run->o->topic, &status);
    /* A close that Ctrl-C began is not worth a complaint. */
    if (!(err == KP_ECLOSED && run_stopped(run)))
        complaint_note(&run->refusal, "%s: %s%s%s", kp_err_name(err),
                       kp_err_text(err), status.text[0] != '\0' ? "; " : "",
                       status.text);
    if (err == KP_EBUFFER)
        return true;
    run_stop(run);
    return false;
}

/* Send one; returns how many were taken. */
static inline size_t send_one(struct worker *w, kp_record *r, kp_future *f)
{
    kp_err err;

    next_record(w, r);
    err = kp_send(w->run->producer, r, f);
    if (__builtin_expect(err == KP_OK, 1))
        return 1;
    (void)refused(w, err);
    return 0;
}

/* When the record that comes next was sent, for its latency: when it was due,
 * if the schedule is even, so that a delay of ours counts as latency too. */
static int64_t sent_ns(const struct worker *w)
{
    return w->run->o->paced ? pace_due_ns(&w->pace) : pace_now_ns();
}

static void mark_sampled(const struct worker *w, kp_record *r)
{
    r->tag = reports_tag(w->run, w->index, sent_ns(w));
    r->on_delivery = reports_sample_callback(w->run);
}

static void mark_plain(const struct worker *w, kp_record *r)
{
    r->tag = reports_tag(w->run, w->index, 0);
    r->on_delivery = reports_callback(w->run);
}

/* Send n one by one, the first of them sampled; returns how many were taken. */
static size_t send_each(struct worker *w, size_t n)
{
    kp_future *f = rounds_futures(w);
    size_t taken;

    mark_sampled(w, &w->record);
    taken = send_one(w, &w->record, f);
    mark_plain(w, &w->record);
    if (f == NULL) {
        for (size_t i = 1; i < n && !run_stopped(w->run); i++)
            taken += send_one(w, &w->record, NULL);
        return taken;
    }
    for (size_t i = 1; i < n && !run_stopped(w->run); i++)
        taken += send_one(w, &w->record, f + taken);
    return taken;
}

/* Send n with as few calls as it takes, the first of them sampled. */
static size_t send_together(struct worker *w, size_t n)
{
    kp_future *f = rounds_futures(w);
    size_t total = 0, at = 0;

    for (size_t i = 0; i < n; i++)
        next_record(w, &w->records[i]);
    mark_sampled(w, &w->records[0]);
    while (at < n && !run_stopped(w->run)) {
        size_t taken = 0;
        kp_err err = kp_send_many(w->run->producer, w->records + at, n - at,
                                  f != NULL ? f + total : NULL, &taken);

        total += taken;
        at += taken;
        if (err == KP_OK)
            break;
        if (!refused(w, err))
            break;
        at++;
    }
    mark_plain(w, &w->records[0]);
    return total;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void send_records(struct worker *w, int64_t count)
{
    while (count > 0 && !run_stopped(w->run)) {
        size_t n = least(least(w->chunk, rounds_room(w)),
                         count < INT32_MAX ? (size_t)count : INT32_MAX);
        size_t taken;

        if (w->pace.interval_ns > 0)
            pace_wait(&w->pace, &w->run->stop);
        taken = w->records != NULL ? send_together(w, n) : send_each(w, n);
        w->pace.count += n;
        count -= (int64_t)n;
        counter_add(&w->taken, taken);
        rounds_after(w, taken);
    }
    rounds_settle(w);
}

/* Threads take turns in an even schedule. */
static void start_schedule(struct worker *w)
{
    const struct options *o = w->run->o;
    double each = o->throughput / o->threads;
    int64_t now = pace_now_ns();

    pace_start(&w->pace, each, now);
    w->pace.start_ns += (int64_t)(w->pace.interval_ns / o->threads * w->index);
}

void *worker_main(void *arg)
{
    struct worker *w = arg;

    mark_plain(w, &w->record);
    if (w->run->o->paced)
        pace_precisely();
    if (w->warm_up_count > 0) {
        start_schedule(w);
        send_records(w, w->warm_up_count);
    }
    gate_arrive(&w->run->gate);
    gate_wait_open(&w->run->gate, 1);
    start_schedule(w);
    send_records(w, w->measured_count);
    gate_arrive(&w->run->gate);
    return NULL;
}
