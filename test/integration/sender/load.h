/* SPDX-License-Identifier: BSD-2-Clause */
/* load.h - threads that send, each through one lane of a journal. */
#ifndef KP_TEST_INTEGRATION_LOAD_H
#define KP_TEST_INTEGRATION_LOAD_H

#include <kp/kp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "test/integration/sender/collect.h"
#include "test/integration/sender/content.h"
#include "test/integration/sender/journal.h"

enum report_kind { REPORT_FUTURE, REPORT_CALLBACK, REPORT_QUEUE, REPORT_COUNT };

struct load {
    kp_producer *producer;
    struct journal *journal;
    const char *topic;
    const char *run;
    enum report_kind kind;
    size_t outstanding; /* futures: at most so many a thread; 1: send, wait */
    uint32_t records;   /* a thread */
    size_t value_size;
    uint32_t key_count;
    int64_t gap_ns;      /* between two sends of a thread; 0: none */
    int64_t end_ns;      /* stop at this time; 0: when all are sent */
    uint32_t partitions; /* explicit: sequence modulo this; 0: not */
    bool by_lane;        /* explicit: lane, not sequence, modulo this */
    int32_t fixed;       /* explicit: this one; -1: not */
    uint32_t flags;      /* KP_NOWAIT or 0 */
    int64_t refused_ns;  /* pause after a refused send */
    bool stamp_odd;
    uint32_t large_seq;   /* this record of each lane has */
    size_t large_size;    /* a value of this size; 0: none does */
    bool tell_status;     /* print kp_status at the first refusal */
    size_t stack_size;    /* of a sending thread; 0: the default */
    struct poller poller; /* kind queue */
};

struct load_lane {
    struct load *load;
    uint32_t lane;
    enum form form;
    pthread_t thread;
};

/* Set by a signal handler: sending threads stop soon. */
extern atomic_bool load_stopped;

/* Start a thread for each of `lanes`, and wait for all; then for their
 * reports if they come by future.  False: no thread, no memory. */
bool load_run(struct load *load, struct load_lane *lanes, uint32_t count);

#endif
