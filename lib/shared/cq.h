/* SPDX-License-Identifier: BSD-2-Clause */
/* cq.h - the completion queue: whole batches are posted, records are polled.
 *
 * Counted: by its owner and by each batch with records for it, so queues and
 * producers may be destroyed in any order.  Polling clears the fd *before* it
 * pops and arms it again if anything is left; posting arms it if the queue was
 * empty: so no order of the two loses a wake-up. */
#ifndef KP_SHARED_CQ_H
#define KP_SHARED_CQ_H

#include <stdatomic.h>

#include "include/kp/kp.h"
#include "lib/base/list.h"
#include "lib/base/mutex.h"
#include "lib/base/wait.h"
#include "lib/base/wakeup.h"
#include "lib/shared/batch.h"

#define CQ_ALIGN 64

struct kp_cq {
    /* fixed at birth: read by each send that reports here, so on lines of their
     * own */
    struct wakeup wakeup;
    uint32_t fork_generation;

    /* guarded by lock */
    _Alignas(CQ_ALIGN) struct mutex lock;
    struct list posts;
    bool woken;  /* kp_cq_wakeup was called, or a refused send may try again */
    bool closed; /* its owner is gone: nothing is kept for it any more */
    bool partly; /* `current` was there when the last poll ended */
    /* the poller's */
    struct cq_post *current;    /* taken, and not polled to its end */
    struct batch_result **lent; /* whose texts the last poll lent out */
    size_t lent_count, lent_capacity;
    /* atomic */
    _Atomic uint32_t word;     /* raised by every post, wake-up and signal */
    _Atomic uint32_t sleepers; /* on the word */
    _Atomic uint32_t polled;   /* by a thread, now */
    _Atomic uint32_t fd_used;  /* kp_cq_fd was called: the fd has to be kept true */
    _Atomic uint32_t refs;
};

void kp__cq_ref(struct kp_cq *cq);
void kp__cq_unref(struct kp_cq *cq);
/* A report or a wake-up waits to be polled.  Any thread. */
bool kp__cq_has_news(struct kp_cq *cq);
/* I/O thread: the batch has its outcome; its records for this queue can be
 * polled now.  Takes over one of the batch's references. */
void kp__cq_post(struct kp_cq *cq, struct cq_post *post);
/* One step of kp_cq_poll that never waits: how many reports, and *again whether
 * to return to the caller although there are none; else wait on the ticket. */
size_t kp__cq_try(struct kp_cq *cq, kp_report *reports, size_t max,
                  int64_t deadline_ns, bool *again, struct ticket *out);
void kp__cq_begin_poll(struct kp_cq *cq); /* what was lent ends */
/* The owner is gone: drop what was not polled, and the owner's reference. */
void kp__cq_close(struct kp_cq *cq);
/* A refused KP_NOWAIT send may be tried again. */
void kp__cq_signal(struct kp_cq *cq);

#endif
