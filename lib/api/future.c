/* SPDX-License-Identifier: BSD-2-Clause */
/* future.c - kp_future_wait, wait_all, release.  Application threads; a future
 * has one owner at a time.
 *
 * Futures know no producer and outlive it: all they need is in the batch
 * result. Invariant: waiting only reads the result, and marks that someone
 * waits. */
#include "lib/api/future.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/thread.h"
#include "lib/wire/errors.h"

static bool is_none(const kp_future *f)
{
    return f->result_ == NULL && f->check_ == 0;
}

static bool is_refused(const kp_future *f)
{
    return f->result_ == NULL &&
           (f->check_ == FUTURE_REFUSED || f->check_ == FUTURE_FATAL);
}

static bool is_taken(const kp_future *f)
{
    return f->result_ != NULL && f->check_ == FUTURE_TAKEN;
}

/* The report of a record that was not taken. */
static kp_err refused_report(const kp_future *f, kp_report *report)
{
    kp_err err = (kp_err)f->index_;

    if (report != NULL)
        *report = (kp_report){
            .tag = f->tag_,
            .err = err,
            .kind = f->check_ == FUTURE_FATAL ? KP_KIND_FATAL
                                              : kp__error_info(err)->kind,
            .stored = KP_STORED_NO,
            .partition = -1,
            .offset = -1,
            .timestamp_ms = -1,
        };
    return err;
}

kp_err kp__future_try(const kp_future *f, int64_t deadline_ns,
                      kp_report *report, struct ticket *out)
{
    struct batch_result *r = f->result_;

    if (is_refused(f))
        return refused_report(f, report);
    if (!is_taken(f))
        return KP_EINVAL;
    if (r->fork_generation != kp__fork_generation())
        return KP_EFORK;
    if (kp__result_get(r, f->index_, f->tag_, report))
        return kp__result_err(r, f->index_);
    if (out != NULL)
        kp__result_ticket(r, deadline_ns, out);
    return KP_PENDING;
}

/* Only look. */
static kp_err look(const kp_future *f, kp_report *report)
{
    return kp__future_try(f, 0, report, NULL);
}

static kp_err wait_until(const kp_future *f, int64_t deadline_ns,
                         kp_report *report)
{
    struct ticket ticket;
    bool late = false;
    kp_err err;

    for (;;) {
        err = kp__future_try(f, deadline_ns, report, late ? NULL : &ticket);
        if (err != KP_PENDING || late)
            return err;
        if (ticket.word == NULL)
            continue;
        late = !kp__ticket_wait(&ticket);
        /* First of all wake two others: that is how all get to know of it. */
        if (kp__result_get(f->result_, f->index_, NULL, NULL))
            kp__result_relay(f->result_);
    }
}

static kp_err may_wait(int64_t timeout_ms)
{
    if (timeout_ms < KP_FOREVER)
        return KP_EINVAL;
    return timeout_ms != 0 && kp__in_callback() ? KP_EDEADLK : KP_OK;
}

/* The clock is asked by those who wait alone: most futures are done when they
 * are looked at. */
static int64_t deadline_of(int64_t timeout_ms)
{
    return kp__deadline_ns(kp__now_ns(&kp__system_clock), timeout_ms);
}

kp_err kp_future_wait(const kp_future *future, int64_t timeout_ms,
                      kp_report *report)
{
    kp_err err;

    if (future == NULL)
        return KP_EINVAL;
    if (is_refused(future))
        return refused_report(future, report);
    err = may_wait(timeout_ms);
    if (err != KP_OK)
        return err;
    err = look(future, report);
    if (err != KP_PENDING || timeout_ms == 0)
        return err;
    return wait_until(future, deadline_of(timeout_ms), report);
}

kp_err kp_future_wait_all(const kp_future *futures, size_t count,
                          int64_t timeout_ms)
{
    bool late = timeout_ms == 0, pending = false;
    int64_t deadline_ns = 0; /* from the first that is waited for */
    kp_err first, err;

    if (futures == NULL && count > 0)
        return KP_EINVAL;
    first = may_wait(timeout_ms);
    if (first != KP_OK)
        return first;
    /* From the last on: once that is done most others are, and the thread sleeps
     * once, where from the first on it would sleep for nearly each batch. */
    for (size_t i = count; i-- > 0;) {
        if (is_none(&futures[i]))
            continue;
        err = look(&futures[i], NULL);
        if (err == KP_PENDING && !late) {
            if (deadline_ns == 0)
                deadline_ns = deadline_of(timeout_ms);
            err = wait_until(&futures[i], deadline_ns, NULL);
            late = err == KP_PENDING;
        }
        if (err == KP_PENDING)
            pending = true;
        else if (err != KP_OK)
            first = err; /* of those looked at; the next one comes before it */
    }
    return pending ? KP_PENDING : first;
}

void kp_future_release(kp_future *futures, size_t count)
{
    size_t i = 0;

    while (futures != NULL && i < count) {
        struct batch_result *r = futures[i].result_;
        uint32_t run = 0;

        if (!is_taken(&futures[i])) {
            i++;
            continue;
        }
        /* Neighbours mostly share a batch: one subtraction for all of them. */
        while (i < count && futures[i].result_ == r && is_taken(&futures[i])) {
            run++;
            i++;
        }
        kp__result_unref(r, run);
    }
    if (futures != NULL && count > 0)
        memset(futures, 0, count * sizeof(*futures));
}
