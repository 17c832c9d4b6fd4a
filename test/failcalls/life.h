/* SPDX-License-Identifier: BSD-2-Clause */
/* life.h - a producer's whole life, of which one call may fail, and what must
 * hold whatever fails. */
#ifndef KP_TEST_FAILCALLS_LIFE_H
#define KP_TEST_FAILCALLS_LIFE_H

#include "test/failcalls/calls.h"

struct kind_of_life {
    const char *name;
    const char *settings; /* a .properties text, besides the common ones */
    const char *host;     /* of bootstrap.servers */
    const char *rule;     /* what the broker does wrong besides; "" */
    bool once;            /* idempotent: in order, none twice */
    int closes;           /* connections that end by themselves; -1: any */
    bool no_queue;        /* a sender that also polls must not wait */
};

/* Live once.  What was broken is printed, and counted in *violations.  Returns
 * how many calls of the group there were; *failed: which one failed. */
unsigned long life_live(const struct kind_of_life *kind, int port,
                        const struct failure *f, struct failed_call *failed,
                        unsigned *violations);

#endif
