/* SPDX-License-Identifier: BSD-2-Clause */
/* sender.h - the sender's parts, by file.  All of it: I/O thread only.
 *
 * Java: Sender and the draining half of RecordAccumulator. */
#ifndef KP_IO_SENDER_H
#define KP_IO_SENDER_H

#include "io_thread/state.h"

/* -- plan.c: which list a partition stands on -- */
/* The only function that moves a partition: looks at its queue and puts it
 * where it belongs.  Called by everything that ends a reason to stand
 * somewhere. */
void kp__plan(struct io_thread *io, struct sender_partition *sp);
/* Plan what the senders announced.  False: for some of it there was no memory;
 * it is announced still. */
bool kp__plan_drain(struct io_thread *io);
/* Plan all that stand for this reason. */
void kp__plan_all(struct io_thread *io, enum standing standing);
/* Plan those whose linger or backoff is over. */
void kp__plan_timers(struct io_thread *io);
/* The memory for splits is free: those held back for it need not wait for their
 * backoff. */
void kp__plan_split(struct io_thread *io);
/* While senders wait for memory: stop lingering, oldest first. */
void kp__plan_pressure(struct io_thread *io);
/* Queues that were locked at the first look: now wait for the lock. */
void kp__plan_busy(struct io_thread *io);
/* Compress SEALED heads, at most one batch or 256 KiB a turn. */
void kp__plan_compress(struct io_thread *io);
#ifdef KP_DEBUG
/* Every non-empty queue stands on exactly one list, and none that could go now
 * is parked: a full scan. */
void kp__plan_check(struct io_thread *io);
#endif

/* -- partitions.c: sender_partition and sender_node, leaders, weights -- */
struct sender_partition *kp__sp_get(struct io_thread *io,
                                    struct partition_queue *q);
struct sender_node *kp__sn_get(struct io_thread *io, struct node *n);
/* metadata_events.leader */
void kp__sp_leader(void *io, struct partition_queue *q, struct node *leader,
                   int32_t leader_epoch);
/* Ask the metadata for the leader of a partition that was told of none, because
 * there was no memory when it was. */
void kp__sp_find_leader(struct io_thread *io, struct sender_partition *sp);
/* A node has become reachable, or not: tell the pool about its partitions. */
void kp__sn_reachable(struct io_thread *io, struct sender_node *sn, bool yes);
/* What the topic's weights were made from has changed: they will be made anew.
 */
void kp__weights_touch(struct io_thread *io, struct topic *t);
/* Publish the partitions that unkeyed records should go to, of the topics that
 * were touched; often enough, and at a bounded share of the thread's time. */
void kp__weights_update(struct io_thread *io);
/* ... of this one, now: metadata_events.complete */
void kp__weights_first(void *io, struct topic *t);
void kp__partitions_free(struct io_thread *io);

/* -- produce_request.c -- */
/* Send what is ready to every node that can take it. */
void kp__send_ready(struct io_thread *io);

/* -- produce_response.c -- */
/* request.done of a Produce request; arg is its struct produce_call. */
void kp__produce_done(void *arg, struct request *r, enum request_end end,
                      struct reader *body, kp_err err);

/* -- complete.c: deciding fates -- */
/* Give b its outcome: it will be reported in this turn's last step, or when
 * those in front of it are.  Its bytes are not touched.  Whether a failed one
 * is stored is what b->certainty says.  base_offset -1: not said; `text` may be
 * NULL. */
void kp__complete_stored(struct io_thread *io, struct sender_partition *sp,
                         struct batch *b, int64_t base_offset,
                         int64_t append_time_ms);
void kp__complete_failed(struct io_thread *io, struct sender_partition *sp,
                         struct batch *b, kp_err err, kp_err cause,
                         const char *text);
/* The first look at a batch: it counts for flush and stands in line for
 * reports. */
void kp__register(struct io_thread *io, struct sender_partition *sp,
                  struct batch *b);
/* Deadlines that have passed. */
void kp__expire_due(struct io_thread *io);
/* Complete everything of this partition, wherever it stands. */
void kp__fail_partition(struct io_thread *io, struct sender_partition *sp,
                        kp_err err);
/* The producer has come to its end, and there was no memory then to see that
 * this partition has anything: the same for it now.  False: not so. */
bool kp__fail_if_over(struct io_thread *io, struct sender_partition *sp);
/* The producer can go on no more: everything is completed, sends say err. */
void kp__fatal(struct io_thread *io, kp_err err, const char *text);
/* Drop the bytes of a batch that nobody reads any more. */
void kp__release(struct io_thread *io, struct batch *b);

/* -- reports.c: the last step of a turn, and the only one that runs user code
 * -- */
void kp__report_all(struct io_thread *io);

/* -- identity.c: producer id, stamping, bumps -- */
void kp__id_run(struct io_thread *io);
int64_t kp__id_next_timer(const struct io_thread *io);
/* Give the ledger a chance to settle, to bump, and to get another id. */
void kp__identity_settle(struct io_thread *io, struct sender_partition *sp);
/* How many batches of this partition may be on the wire. */
uint32_t kp__identity_limit(const struct io_thread *io,
                            const struct sender_partition *sp);
/* May the head (stamped before or not) be sent now, as far as identity goes? */
bool kp__identity_allows(const struct io_thread *io,
                         const struct sender_partition *sp, bool stamped);
/* Write id, epoch, sequence and the rest of the header of a batch that is about
 * to be sent. */
void kp__stamp(struct io_thread *io, struct sender_partition *sp,
               struct batch *b);

/* -- record_errors.c -- */
/* Some records of b, which is about to be failed with `err`, are to blame.  One
 * listed: it has the partition's error; several: each has INVALID_RECORD, with
 * its own text or this one (may be NULL); all others only kept bad company.
 * Returns whether any was named; false also without memory. */
bool kp__note_record_errors(struct batch *b, const struct array *list,
                            kp_err err, const char *text);

/* -- split.c: batches that are cut in two.  A batch that was never cut passes
 * on_wire and off_wire unchanged -- */
/* False: no memory. */
bool kp__split_init(struct io_thread *io);
void kp__split_fini(struct io_thread *io);
/* b was refused as too large and is proven not stored: cut it in two and put
 * both back.  False: not possible now (another split is under way: retry b
 * later). */
bool kp__split(struct io_thread *io, struct sender_partition *sp,
               struct batch *b);
/* b is given to a connection, or comes back from it. */
void kp__split_on_wire(struct io_thread *io, struct batch *b);
void kp__split_off_wire(struct batch *b);
/* Note the outcome of a child.  True: it was the last, and the origin is
 * completed. */
bool kp__split_complete(struct batch *child, const struct outcome *o,
                        const char *text);
/* Nobody reads the child any more. */
void kp__split_release(struct io_thread *io, struct batch *child);

/* -- serve_ops.c -- */
void kp__serve_ops(struct io_thread *io);
void kp__serve_pending(struct io_thread *io); /* flushes and closes now done */
/* A close whose time is up: what is left fails.  After the answers that had
 * come. */
void kp__serve_close_due(struct io_thread *io);
/* Everything taken is reported, and nothing new is announced. */
bool kp__nothing_left(const struct io_thread *io);
int64_t kp__serve_next_timer(const struct io_thread *io);

/* -- io_thread.c -- */
/* The calling thread is p's I/O thread from now on (NULL: nobody's): whoever
 * runs turns says so first, for the calls that callbacks make. */
void kp__io_thread_become(const struct kp_producer *p);
/* One turn at now_ns with the events collected before. */
void kp__io_thread_run_once(struct io_thread *io, int64_t now_ns);
/* Sleep until something happens or is due; collects events. */
void kp__io_thread_wait(struct io_thread *io);
/* When the next turn is due if nothing happens before. */
int64_t kp__io_thread_next_timer(const struct io_thread *io);
#endif
