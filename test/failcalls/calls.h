/* SPDX-License-Identifier: BSD-2-Clause */
/* calls.h - system calls that fail when a test wants them to.
 *
 * The linker sends every call of a function in calls.def through here.  While
 * armed, calls are counted, over all threads, and one of them fails. */
#ifndef KP_TEST_FAILCALLS_CALLS_H
#define KP_TEST_FAILCALLS_CALLS_H

#include <stdbool.h>
#include <stdint.h>

enum call_group { CALLS, CLOCKS, CALL_GROUPS };

struct failure {
    enum call_group group;
    unsigned long nth; /* the call of the group that fails, from 1; 0: none */
    unsigned way;      /* modulo how many it has */
    unsigned more;     /* calls of the same function that fail after it */
    bool until_end;    /* for life.h: it may be one of close's as well; else
                           all is well again before the last send */
};

/* Count from 0, and let that call fail. */
void calls_arm(const struct failure *f);
void calls_disarm(void);
/* Since calls_arm. */
unsigned long calls_counted(enum call_group group);

/* What failed since calls_arm; name NULL: nothing did. */
struct failed_call {
    const char *name;
    int how;       /* as in calls.def; texts by calls_how */
    unsigned ways; /* that this call has */
    /* An interruption, a part only, no room just now: nothing is lost, so no
     * connection may be. */
    bool harmless;
};
struct failed_call calls_failed(void);
const char *calls_how(int how);

/* Descriptors closed that were not open, since calls_arm. */
unsigned calls_closed_twice(void);
/* The clock, whatever was armed. */
int64_t calls_now_ms(void);

#endif
