/* SPDX-License-Identifier: BSD-2-Clause */
/* cq.c - kp_cq_create, destroy, fd, poll, wakeup.  Application threads: any,
 * but one poller at a time. */
#include "lib/shared/cq.h"

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/thread.h"

kp_err kp_cq_create(kp_cq **out, kp_error *error)
{
    struct kp_cq *cq;
    int sys;

    if (out == NULL)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "kp_cq_create: out is NULL: give the address of "
                             "a kp_cq *");
    cq = kp__alloc_aligned(CQ_ALIGN, sizeof(*cq));
    if (cq == NULL)
        return kp__error_set(error, KP_ENOMEM, KP_OK,
                             "no memory for a completion queue");
    sys = kp__wakeup_init(&cq->wakeup);
    if (sys != 0) {
        kp__free(cq);
        return kp__error_set(error, KP_ENOMEM, KP_OK,
                             "the system gave no file descriptor for a "
                             "completion queue (errno %d): see ulimit -n",
                             sys);
    }
    kp__fork_watch();
    cq->fork_generation = kp__fork_generation();
    kp__mutex_init(&cq->lock);
    kp__list_init(&cq->posts);
    atomic_init(&cq->refs, 1);
    *out = cq;
    return KP_OK;
}

static bool is_inherited(const struct kp_cq *cq)
{
    return cq->fork_generation != kp__fork_generation();
}

void kp_cq_destroy(kp_cq *queue)
{
    int cancel_state;

    if (queue == NULL)
        return;
    /* In a child the lock may be held for ever by a thread that is not there:
     * what the parent's batches hold stays, and only the owner's part ends. */
    cancel_state = kp__cancel_off();
    if (is_inherited(queue))
        kp__cq_unref(queue);
    else
        kp__cq_close(queue);
    kp__cancel_on(cancel_state);
}

int kp_cq_fd(const kp_cq *queue)
{
    struct kp_cq *cq = (struct kp_cq *)(uintptr_t)queue;

    if (cq == NULL)
        return -1;
    /* seq_cst: from here on posts keep the fd true; what came before is looked
     * for now */
    if (!is_inherited(cq) && atomic_exchange(&cq->fd_used, 1) == 0 &&
        kp__cq_has_news(cq))
        kp__wakeup_set(&cq->wakeup);
    return cq->wakeup.read_fd;
}

static size_t poll_until(kp_cq *queue, kp_report *reports, size_t max,
                         int64_t timeout_ms)
{
    struct ticket ticket;
    int64_t deadline_ns;
    bool again, late = false;
    size_t n;

    kp__cq_begin_poll(queue);
    if (timeout_ms == 0)
        return kp__cq_try(queue, reports, max, 0, &again, &ticket);
    deadline_ns = kp__deadline_ns(kp__now_ns(&kp__system_clock), timeout_ms);
    /* seq_cst: before the word is read; see announce in cq.c */
    (void)atomic_fetch_add(&queue->sleepers, 1);
    for (;;) {
        n = kp__cq_try(queue, reports, max, deadline_ns, &again, &ticket);
        if (n > 0 || again || late || max == 0)
            break;
        late = !kp__ticket_wait(&ticket);
    }
    (void)atomic_fetch_sub(&queue->sleepers, 1);
    return n;
}

size_t kp_cq_poll(kp_cq *queue, kp_report *reports, size_t max,
                  int64_t timeout_ms)
{
    size_t n;

    if (queue == NULL || (reports == NULL && max > 0) ||
        timeout_ms < KP_FOREVER || is_inherited(queue))
        return 0;
    /* acquire: what the poller before did comes first.  A second one at the
     * same time is a mistake, which must not cost a report. */
    if (atomic_exchange_explicit(&queue->polled, 1, memory_order_acquire) != 0)
        return 0;
    n = poll_until(queue, reports, max, kp__in_callback() ? 0 : timeout_ms);
    /* release: pairs with the next poller's exchange */
    atomic_store_explicit(&queue->polled, 0, memory_order_release);
    return n;
}

void kp_cq_wakeup(kp_cq *queue)
{
    if (queue != NULL && !is_inherited(queue))
        kp__cq_signal(queue);
}
