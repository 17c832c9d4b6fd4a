/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger.h - the identities of one partition's batches, and what became of
 * them.
 *
 * Each stamped batch has an entry by value, which outlives it: a batch whose
 * time is up is reported and its memory goes, but its numbers stay unresolved
 * until a late answer, or until a new epoch makes them impossible.  Pure: no
 * queues, no wires.  Java: TxnPartitionMap, TransactionManager's sequence half;
 * differs from it on purpose, see docs/decisions/.
 *
 * A sequence number of a (producer id, epoch) names one record, for ever.
 *
 * An entry, from its stamp on:
 *
 *        stamp              answered: again          kp__ledger_sent
 *   ---> on a wire, batch ------------------> queued, batch ---.
 *          |      ^                             |              |
 *          |      '-----------------------------|--------------'
 *     gone |                               gone |
 *          v                answered            v
 *        on a wire ----------------------> off the wire    (unresolved)
 *
 * It is removed when its batch is gone and certain to be stored, or with all
 * others by a bump.
 *
 * An epoch:
 *
 *   NO ID ---adopt---> UNPROVEN ---an ack---> PROVEN
 *     ^                 ^   ^                    |
 *     |                 |   '--error, new leader-'
 *     |                 |
 *     |          kp__ledger_bump <--can_bump-- DRAINING (bump): nothing new is
 *     |                 |                      stamped until the wire is empty
 *     '----no more------'                      and nothing before a gap may be
 *       epochs, new_id                         in the log
 *
 * UNPROVEN: one batch at a time, so that nothing arrives before what it
 * follows; PROVEN: up to the limit. */
#ifndef KP_IO_LEDGER_H
#define KP_IO_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/errors.h"

#define LEDGER_MAX 32      /* children of splits may push it past the next */
#define LEDGER_IN_FLIGHT 5 /* what a broker remembers (NUM_BATCHES_TO_RETAIN) */

struct batch;

struct ledger_entry {
    struct batch *batch; /* NULL: reported; only the entry is left */
    int32_t first, count;
    enum certainty certainty;
    bool on_wire;
};

struct ledger {
    int64_t producer_id; /* -1: none yet */
    int16_t epoch;
    int32_t next_sequence;
    bool proven;   /* the current leader has acknowledged this id and epoch */
    bool bump;     /* a new epoch is needed before anything new is stamped */
    bool new_id;   /* and a new producer id with it */
    uint32_t count;
    struct ledger_entry entries[LEDGER_MAX]; /* in order of stamping */
};

void kp__ledger_init(struct ledger *l);
/* Adopt an id: only with no entries left, or by kp__ledger_bump. */
void kp__ledger_adopt(struct ledger *l, int64_t producer_id, int16_t epoch);

/* May a batch that has no identity get one now?  No: while a bump is wanted, an
 * entry's batch is gone, `limit` (1..5) are unresolved, or the leader has not
 * proven itself and anything is unresolved. */
bool kp__ledger_can_stamp(const struct ledger *l, uint32_t limit);
/* The next sequence numbers for `count` records; on the wire from now on. */
int32_t kp__ledger_stamp(struct ledger *l, struct batch *b, int32_t count);

struct ledger_entry *kp__ledger_find(struct ledger *l, const struct batch *b);
/* By number, for an answer to a batch that is gone. */
struct ledger_entry *kp__ledger_find_first(struct ledger *l, int32_t first);
void kp__ledger_remove(struct ledger *l, struct ledger_entry *e);
/* Everything before e is settled for good: nothing before it is on a wire or
 * has a batch that may be sent again. */
bool kp__ledger_is_head(const struct ledger *l, const struct ledger_entry *e);
/* The batch of e was refused for being too large and is proven not stored:
 * replace it by two with the same numbers.  False: no room. */
bool kp__ledger_split(struct ledger *l, struct ledger_entry *e,
                      struct batch *left, int32_t left_count,
                      struct batch *right);

/* The batch of e was given to a connection again; or was not, after all. */
void kp__ledger_sent(struct ledger_entry *e);
void kp__ledger_unsent(struct ledger_entry *e);
/* There is an answer, or none will come; so certain is it now that the batch is
 * stored.  e may be removed by it. */
void kp__ledger_answered(struct ledger *l, struct ledger_entry *e,
                         enum certainty certainty);
/* The batch of e has its outcome: only the numbers are left, unless they are
 * resolved.  e may be removed by it. */
void kp__ledger_gone(struct ledger *l, struct ledger_entry *e,
                     enum certainty certainty);

/* Of the id and epoch that are in use. */
static inline bool kp__ledger_is_current(const struct ledger *l,
                                         int64_t producer_id, int16_t epoch)
{
    return producer_id == l->producer_id && epoch == l->epoch;
}
/* The leader has acknowledged a batch of this id and epoch. */
void kp__ledger_prove(struct ledger *l);
/* An error or a new leader: pipelining starts again from one. */
void kp__ledger_unproven(struct ledger *l);
/* Nothing new goes on under this epoch. */
void kp__ledger_want_bump(struct ledger *l);
/* The next bump, whenever it is wanted, is to another producer id. */
void kp__ledger_want_id(struct ledger *l);
/* Settle what can be settled by thought alone: entries without a batch and off
 * the wire, when nothing behind them has a batch, call for a bump. */
void kp__ledger_settle(struct ledger *l);
/* True when a wanted bump may happen now: nothing is on a wire, and no batch
 * that may be in the log still stands before the first that is proven not to
 * be. */
bool kp__ledger_can_bump(const struct ledger *l);
/* The next epoch from sequence 0; every entry goes (the caller takes the
 * numbers off the batches, which are stamped anew).  False: the epoch is used
 * up (32,767): a new id is needed. */
bool kp__ledger_bump(struct ledger *l);
/* a + n modulo 2^31, as sequence numbers wrap. */
int32_t kp__sequence_add(int32_t a, int32_t n);

#endif
