/* SPDX-License-Identifier: BSD-2-Clause */
/* flow.h - one direction of one proxied connection: bytes read from a socket,
 * each piece due for the other one at a time of its own.
 *
 * What was read is passed on even if its sender has gone meanwhile, as a real
 * network does: a request may reach a broker long after its connection died. */
#ifndef KP_TEST_CHAOS_FLOW_H
#define KP_TEST_CHAOS_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The faults of one direction of a link, shared by its connections. */
struct weather {
    int64_t delay_ns;
    bool held;   /* nothing is passed on */
    int64_t cut; /* end the connection after so many more bytes; -1: never */
};

struct piece;
struct flow {
    const struct weather *weather;
    struct piece *first, *last;
    size_t held_bytes;
    bool ended; /* its source will send no more */
    bool shut;  /* and its destination was told */
};

enum flow_result {
    FLOW_OK,
    FLOW_CUT, /* the byte at which the connection is to end was passed on */
    FLOW_DEAD /* the destination takes no more */
};

/* Whether to poll the source for bytes, and the destination for room. */
bool flow_wants_read(const struct flow *f);
bool flow_wants_write(const struct flow *f, int64_t now_ns);
/* When flow_wants_write may change by time alone; INT64_MAX: never. */
int64_t flow_due_ns(const struct flow *f, int64_t now_ns);
/* Take what the source has.  An error of the source is its end. */
void flow_read(struct flow *f, int from, int64_t now_ns);
/* Pass on what is due.  *cut counts down. */
enum flow_result flow_write(struct flow *f, int to, int64_t now_ns,
                            int64_t *cut);
/* All has been passed on and the destination knows the end. */
bool flow_done(const struct flow *f);
void flow_fini(struct flow *f);

#endif
