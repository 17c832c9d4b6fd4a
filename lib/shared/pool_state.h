/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_state.h - what the files of the buffer pool share: nobody else includes
 * it.
 *
 * pool_accounts.c: what a need costs, whether it can be had, taking and giving.
 * pool_line.c: who is served next.  buffer_pool.c: the calls.  Everything here
 * but kp__pool_serve_and_unlock is called, and returns, with the pool's lock
 * held. */
#ifndef KP_SHARED_POOL_STATE_H
#define KP_SHARED_POOL_STATE_H

#include <stdatomic.h>

#include "lib/shared/batch.h"
#include "lib/shared/chunk_arena.h"
#include "lib/shared/partition_queue.h"

#define BATCH_CHARGE (sizeof(struct batch) + sizeof(struct batch_result))
#define SPLIT_RESERVE 2 /* a batch is cut in two */

enum { WORD_WAITING, WORD_GRANTED, WORD_CLOSED };
/* Waiters share so many words to sleep on, neighbours in line one, with so many
 * masks. */
enum { POOL_DOORS = 256, DOOR_MASKS = 32, PLACES = POOL_DOORS * DOOR_MASKS };
enum { LINE_OPEN, LINE_RESTRICTED, LINES };

struct buffer_pool {
    size_t total; /* fixed at birth */
    size_t limit; /* of grants: total without what is set aside */
    size_t burst; /* so much is granted at once, whoever is under way */
    bool relieving; /* this once, as they have been for long enough */
    _Atomic uint32_t refs;
    /* relaxed copies for kp__pool_pressure and kp__pool_has_line */
    _Atomic uint32_t pressed, has_line;
    _Atomic size_t wanted;

    struct mutex lock;
    /* guarded by lock */
    struct chunk_arena arena;
    size_t used, unreachable_bytes;
    struct list lines[LINES]; /* by arrival */
    size_t line_wanted[LINES];
    uint32_t waiting[LINES];
    uint64_t arrivals;
    struct list retries;
    struct batch *kept; /* by chunks: free structures, part of what is idle */
    uint32_t kept_count;
    struct batch *reserve; /* for splits: charged to total for good */
    uint32_t reserve_count;
    bool any_reachable, closed, refused;
    bool signal_all; /* the reason for a refusal may be gone */
    uint64_t exhausted_total;

    _Atomic uint32_t doors[POOL_DOORS]; /* changed by every grant */
    _Atomic int64_t wait_ns_total;      /* of waits that ended */
    _Atomic int32_t called; /* granted in line, and not back for it yet */
};

/* What a need costs. */
struct cost {
    enum chunk_kind data, slots;
    size_t blocks;       /* whole ones that must be free */
    size_t small;        /* small chunks */
    size_t extent_bytes; /* mapped */
    size_t extent;       /* charged: at most what is left of the limit */
    size_t total;
};

/* -- pool_accounts.c -- */
struct cost kp__pool_cost(const struct buffer_pool *p,
                          const struct pool_need *n);
bool kp__pool_fits(const struct buffer_pool *p, const struct cost *c);
/* q NULL: nobody's. */
void kp__pool_charge(struct buffer_pool *p, struct partition_queue *q,
                     size_t bytes);
void kp__pool_discharge(struct buffer_pool *p, struct partition_queue *q,
                        size_t bytes);
/* Resident and not in use. */
size_t kp__pool_idle(const struct buffer_pool *p);
/* Move to d what is resident beyond the total. */
void kp__pool_make_room(struct buffer_pool *p, struct doomed *d);
/* After the lock: give it back to the system. */
void kp__pool_end_doomed(struct buffer_pool *p, struct doomed *d);
/* w gets what it needs: chunks now, mappings and structures when it has left
 * the lock.  generous, for who stood in line: and blocks for later, but a batch
 * only when it comes to open one. */
void kp__pool_grant(struct buffer_pool *p, struct pool_waiter *w,
                    const struct cost *c, bool generous);
/* Everything of a grant back, once; resident: what was doomed for it was not
 * given to the system. */
void kp__pool_refund(struct buffer_pool *p, struct pool_waiter *w,
                     bool resident);
void kp__pool_give_chunks(struct buffer_pool *p, struct partition_queue *q,
                          struct chunk *c);
/* Keep a free structure for the next batch or split; false: the caller frees
 * it. */
bool kp__pool_keep_batch(struct buffer_pool *p, struct batch *b);
/* One that was kept, from the reserve if need be; or NULL. */
struct batch *kp__pool_take_kept(struct buffer_pool *p, bool reserve);
bool kp__pool_fill_reserve(struct buffer_pool *p);
void kp__pool_free_batches(struct batch *b); /* no lock needed */

/* -- pool_line.c -- */
bool kp__pool_is_restricted(const struct buffer_pool *p,
                            const struct partition_queue *q);
bool kp__pool_share_allows(const struct buffer_pool *p, size_t bytes);
/* May a newcomer have it, past everybody in line? */
bool kp__pool_may_have(const struct buffer_pool *p,
                       const struct partition_queue *q, const struct cost *c);
void kp__pool_enter_line(struct buffer_pool *p, struct pool_waiter *w);
void kp__pool_leave_line(struct buffer_pool *p, struct pool_waiter *w);
void kp__pool_sort_lines(struct buffer_pool *p);
void kp__pool_update_pressure(struct buffer_pool *p);
/* A waiter is back for what it was granted, or gives it up.  True: it was the
 * last that was called, and is to serve the line. */
bool kp__pool_is_last_back(struct buffer_pool *p);
/* The end of every call that may have made room. */
void kp__pool_serve_and_unlock(struct buffer_pool *p);
void kp__pool_drop_retries(struct list *l);

#endif
