/* SPDX-License-Identifier: BSD-2-Clause */
/* buffer_pool.h - buffer.memory: chunks, their accounting and the line of
 * those who wait for them.
 *
 * Everything that grows with buffered records is charged here: chunks (of
 * records and of report slots), and each open batch's structures.  The sum
 * never exceeds buffer.memory, and neither does the resident memory: free
 * chunks are given back to the system before an extent needs their room.
 *
 * Application threads and the I/O thread; one lock, nothing held outside the
 * calls.  Kafka: BufferPool, without its piecemeal hoarding.
 *
 * The line.  A waiter holds nothing: no lock, no chunk, no uncompressed batch.
 * First come first served within a partition, and among partitions by their
 * oldest waiter, except that queues marked unreachable may together hold at
 * most half of buffer.memory while some broker is reachable: past that their
 * waiters stand in a second line, with their own deadlines running.  Memory
 * that comes back is granted to the head, then to the next head while it fits:
 * each waiter is woken once, with its grant already in hand.  A newcomer never
 * overtakes a waiter.  A waiter that gives up returns what it was granted,
 * once, and the next is served.  The pool is counted: reports not yet polled
 * keep it. */
#ifndef KP_SHARED_BUFFER_POOL_H
#define KP_SHARED_BUFFER_POOL_H

#include <stdalign.h>
#include <stdint.h>

#include "lib/base/list.h"
#include "lib/base/mutex.h"
#include "lib/base/wait.h"

struct batch;
struct kp_cq;
struct partition_queue;

#define CHUNK_SIZE 16384      /* header included; docs/decisions/batches.md */
#define CHUNK_SMALL_SIZE 2048 /* an eighth of one: a batch's first */

/* A piece of memory that records (or report slots) are written into from the
 * front.  A record never straddles two. */
struct chunk {
    struct chunk *next;
    uint32_t capacity, used; /* of data */
    uint32_t charge;         /* what it counts against buffer.memory */
    uint32_t kind;           /* the pool's own */
    alignas(16) uint8_t data[];
};

/* What a sender needs to go on.  All of it or nothing. */
struct pool_need {
    size_t record_size; /* a chunk with room for so many bytes; 0: none */
    bool small;         /* a small chunk will do, if the record fits it */
    bool slots;         /* a chunk for report slots */
    bool full_slots;    /* ... a full one, if there is one */
    bool batch;         /* a batch and its result */
};
struct pool_grant {
    struct chunk *data;  /* linked; may be more than was asked for */
    struct chunk *slots; /* or NULL */
    struct batch *batch; /* zeroed but for its result; or NULL */
    bool batch_due;      /* charged, not made yet: kp__pool_make_batch */
};

enum pool_answer {
    POOL_GRANTED,
    POOL_WAIT,   /* in line: wait on the ticket, then try again */
    POOL_FULL,   /* and the caller does not wait */
    POOL_CLOSED, /* the producer takes no more */
    POOL_NOMEM   /* the system has none; nothing is held */
};

/* Memory on its way back to the system: to make room for a grant. */
struct doomed {
    struct list_node *blocks; /* by next; NULL at the end */
    struct chunk *extents;
    struct batch *batches;
};

/* One sender's place in the line; on its stack.  Zero before the first try.
 * What is read when it is served stands in front: it is not in the cache. */
struct pool_waiter {
    struct list_node link;
    struct partition_queue *queue;
    struct pool_need need;
    uint64_t arrival;
    int line;              /* guarded by the pool's lock */
    bool in_line;          /* likewise */
    bool joined;           /* the owner's: it has been in line */
    _Atomic uint32_t word; /* 0 waiting, 1 granted, 2 closed; see the ticket */
    struct pool_grant grant;
    struct doomed doomed;
    size_t extent_bytes; /* granted as room, mapped by the waiter itself */
    int64_t since_ns;
};

struct buffer_pool;

/* The smallest pool there is: one small batch with report slots. */
#define POOL_SIZE_MIN 8192

/* NULL: no memory.  buffer_memory bytes (at least POOL_SIZE_MIN) are reserved,
 * not touched. */
struct buffer_pool *kp__pool_create(size_t buffer_memory);
/* Keep `bytes` (at most a quarter) out of all grants: the memory set aside for
 * splits is part of buffer.memory.  Before the first grant. */
void kp__pool_keep_aside(struct buffer_pool *p, size_t bytes);
void kp__pool_ref(struct buffer_pool *p);
void kp__pool_unref(struct buffer_pool *p);

/* Ask for `need` on behalf of q.  may_wait false: POOL_FULL instead of joining
 * the line.  After POOL_WAIT call again with the same waiter when the ticket
 * says so.  The waiter must leave the line by a grant or by kp__pool_leave. */
enum pool_answer kp__pool_try(struct buffer_pool *p, struct partition_queue *q,
                              const struct pool_need *need, bool may_wait,
                              int64_t now_ns, struct pool_waiter *w,
                              struct pool_grant *out);
/* For a waiter in line.  It sleeps on a word of the pool's: its own may be gone
 * with its thread before the one who grants has made the call that wakes it. */
struct ticket kp__pool_ticket(struct buffer_pool *p,
                              const struct pool_waiter *w, int64_t deadline_ns);
/* Who was granted a batch in line makes it when it comes to open one: most find
 * that another has.  Call it if batch_due, without a lock.  False: the system
 * has no memory, and it is due still. */
bool kp__pool_make_batch(struct buffer_pool *p, struct pool_grant *g);
/* Give up: leave the line, return what was granted meanwhile. */
void kp__pool_leave(struct buffer_pool *p, struct pool_waiter *w,
                    int64_t now_ns);

/* Give back a linked list of chunks that q held, then serve the line. */
void kp__pool_give(struct buffer_pool *p, struct partition_queue *q,
                   struct chunk *chunks);
/* Give back all of a grant that was not used, a batch with its result, and
 * leave it empty: one visit, as the others who were woken come for the same. */
void kp__pool_give_grant(struct buffer_pool *p, struct partition_queue *q,
                         struct pool_grant *g);
/* Give back a batch's structures (its result is counted on its own). */
void kp__pool_give_batch(struct buffer_pool *p, struct partition_queue *q,
                         struct batch *b);
/* One more batch structure for a split, from the reserve: never fails while at
 * most one split is under way.  It has no result.  I/O thread. */
struct batch *kp__pool_split_batch(struct buffer_pool *p);

/* From here on `bytes` that q holds are nobody's: q may be freed before them.
 * */
void kp__pool_disown(struct buffer_pool *p, struct partition_queue *q,
                     size_t bytes);

/* Tell the pool whether q's leader can be reached, and whether any broker can.
 * I/O thread. */
void kp__pool_set_unreachable(struct buffer_pool *p, struct partition_queue *q,
                              bool unreachable);
void kp__pool_set_any_reachable(struct buffer_pool *p, bool any);

/* True while someone waits, or was refused and nothing has come back since:
 * linger is then ignored.  Relaxed read, any thread; *wanted_bytes (may be
 * NULL) gets what the line asks for. */
bool kp__pool_pressure(const struct buffer_pool *p, size_t *wanted_bytes);
/* True while someone is in line whom a newcomer would have to stand behind.  A
 * hint: relaxed read, any thread. */
bool kp__pool_has_line(const struct buffer_pool *p);
/* Memory may be kept back for those in line until threads that were called have
 * come; that should take a moment.  A hint: relaxed read, any thread. */
bool kp__pool_is_held(const struct buffer_pool *p);
/* It has taken longer: serve the line with what there is. */
void kp__pool_relieve(struct buffer_pool *p);
/* From now on every try says POOL_CLOSED and every waiter is woken to hear it.
 * Memory can still be given back. */
void kp__pool_close(struct buffer_pool *p);

/* A KP_NOWAIT send of q's was refused `need`: signal cq when it may be tried
 * again (or at once, if there is no memory to note it). */
void kp__pool_want_retry(struct buffer_pool *p, struct partition_queue *q,
                         const struct pool_need *need, struct kp_cq *cq);

struct pool_stats {
    size_t total_bytes, available_bytes;
    uint32_t waiting_threads;
    int64_t wait_ns_total; /* finished waits */
    uint64_t exhausted_total;
};
void kp__pool_stats(struct buffer_pool *p, struct pool_stats *out);
#ifdef KP_DEBUG
/* Aborts unless the accounts add up. */
void kp__pool_check(struct buffer_pool *p);
#endif
/* A send waited for less to be in use, outside the line. */
void kp__pool_note_waited(struct buffer_pool *p, int64_t wait_ns);
/* A send gave up for want of memory (buffer-exhausted metrics). */
void kp__pool_note_exhausted(struct buffer_pool *p);

#endif
