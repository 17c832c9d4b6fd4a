/* SPDX-License-Identifier: BSD-2-Clause */
/* collect.h - the three ways a report comes back, into the journal's entry.
 *
 * A record's tag is its entry. */
#ifndef KP_TEST_INTEGRATION_COLLECT_H
#define KP_TEST_INTEGRATION_COLLECT_H

#include <kp/kp.h>
#include <pthread.h>
#include <stdbool.h>

#include "test/integration/sender/journal.h"

/* Write the report into the entry that is its tag; a kp_delivery_fn. */
void entry_report(const kp_report *report);

/* Futures: one thread that waits for them in sending order.  It sees a report
 * no earlier than it came, and as deadlines go up with sending order, a report
 * that it sees in time was in time. */
struct reaper {
    kp_future *ring;
    size_t capacity, head, count; /* guarded by lock */
    bool ended;                   /* guarded by lock: no more will come */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
};
bool reaper_start(struct reaper *r, size_t capacity);
/* Waits while `capacity` futures are outstanding. */
void reaper_give(struct reaper *r, kp_future future);
/* Waits for all that were given. */
void reaper_stop(struct reaper *r);

/* A completion queue and the thread that polls it. */
struct poller {
    kp_cq *queue;
    _Atomic bool ended;
    pthread_t thread;
};
bool poller_start(struct poller *p);
/* Takes what was posted before this call, then ends. */
void poller_stop(struct poller *p);

#endif
