/* SPDX-License-Identifier: BSD-2-Clause */
/* backlog.h - a brake for senders that are faster than the wire.
 *
 * The backlog is what is sealed and not yet handed to a connection.  More of it
 * than keeps the wire busy gains nothing, and costs: records go into memory
 * that has left the caches, and the many who fill it wake and sleep for each
 * piece that comes back.  So once a sender had to wait for memory, those who
 * are about to begin a batch wait first while the backlog is long, until the
 * wire has shortened it, for BRAKE_NS at most.
 *
 * That is all it may do: nobody is refused, a burst that buffer.memory can take
 * is taken at full speed, a wire that is not quick is left to buffer.memory,
 * and KP_NOWAIT sends and callbacks never wait here. */
#ifndef KP_SHARED_BACKLOG_H
#define KP_SHARED_BACKLOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/wait.h"

#define BRAKE_NS (5 * KP_NS_PER_MS)

struct backlog {
    /* fixed at birth */
    const struct clock *clock;
    size_t limit;
    /* atomic */
    _Atomic size_t bytes;
    _Atomic uint64_t taken;  /* by connections, bytes in all */
    _Atomic uint32_t word;   /* changed by each wake-up */
    _Atomic uint32_t waiting;
    _Atomic size_t wake_at;  /* the next is woken when there is no more */
    _Atomic int64_t on_until_ns, off_until_ns, off_ns;
};

/* One sender's wait. */
struct brake {
    int64_t since_ns, until_ns;
    uint64_t taken; /* when it began */
};

void kp__backlog_init(struct backlog *b, const struct clock *clock,
                      size_t batch_size);
/* A batch of `bytes` was sealed, or is to be sent again.  Any thread, under its
 * queue's lock. */
void kp__backlog_add(struct backlog *b, size_t bytes);
/* It was taken to be sent, or has its outcome without.  Under the queue's lock;
 * then, without it, kp__backlog_wake. */
void kp__backlog_sub(struct backlog *b, size_t bytes);
void kp__backlog_wake(struct backlog *b);

/* A sender has to wait for memory: from now on the brake is on. */
void kp__backlog_pressed(struct backlog *b);
/* The caller is about to begin a batch and may wait.  True: wait on *ticket,
 * then call kp__brake_end, and go on whatever the backlog is. */
bool kp__brake_begin(struct backlog *b, struct brake *brake,
                     struct ticket *ticket);
/* Returns how long the wait was. */
int64_t kp__brake_end(struct backlog *b, const struct brake *brake);

#endif
