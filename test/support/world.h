/* SPDX-License-Identifier: BSD-2-Clause */
/* world.h - a whole client and a whole cluster under one stopped clock.
 *
 *     struct world *w = world_begin(&(struct world_options){.partitions = 2});
 *     struct world_record *r = world_send(w, 0);
 *     world_settle(w);
 *     ck_assert_int_eq(r->report.offset, 0);
 *     world_end(w);
 *
 * One thread, virtual time, one seed.  The producer is the real library with a
 * clock, sockets, a poller and a resolver of ours (io_env); the I/O thread is
 * run turn by turn, as its own loop would run it, and only when that loop would
 * wake. The brokers are test/broker/model.h.  Sends, flushes and closes that
 * wait are actors: they are looked at again when their ticket's word has
 * changed or their time is up.  Nothing ever sleeps.
 *
 * Every Produce frame that reaches a broker is taken apart and remembered, and
 * a sequence number that names two different records aborts the test;
 * world_check holds every report against what the logs really hold.
 *
 * KP_WORLD_TRACE=1 in the environment prints what happens. */
#ifndef KP_TEST_SUPPORT_WORLD_H
#define KP_TEST_SUPPORT_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/kp/kp.h"
#include "lib/base/clock.h"
#include "lib/base/wait.h"
#include "lib/wire/record_batch.h"
#include "test/broker/model.h"

#define WORLD_NODES_MAX 8

struct world_options {
    int nodes;              /* 0: 1.  Their ids are 1, 2, ... */
    int32_t partitions;     /* of topic "t"; 0: 1; -1: there is no such topic */
    int32_t replication;    /* 0: 1 */
    const char *const *settings; /* name, value, ..., NULL */
    uint64_t seed;
    int64_t latency_ns;     /* one way; 0: 1 ms */
    bool watches_log;       /* world_on_log is going to be called */
    bool watches_wire;      /* fill in what is `known` of each record */
    bool no_wait;           /* do not run until "t" is known and has an id */
    const struct kb_config *broker; /* NULL: defaults; nodes is this one's */
    kp_partitioner_fn partitioner;
    const char *bootstrap;  /* NULL: all nodes by address */
};

/* .settings = WORLD_SETTINGS("linger.ms", "0", "acks", "1") */
#define WORLD_SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct world;

/* -- records -- */

enum { /* where a record's report goes */
    WORLD_FUTURE = 1,
    WORLD_CALLBACK = 2,
    WORLD_QUEUE = 4,  /* the world's own completion queue */
    WORLD_NOWAIT = 8, /* KP_NOWAIT */
    WORLD_RANDOM = 16 /* a value that no codec makes smaller */
};

struct world_what {
    const char *topic;  /* NULL: "t" */
    int32_t partition;  /* -1: the client chooses */
    int32_t size;       /* of the value; 0: 20 */
    unsigned flags;
    uint32_t max_wait_ms;
    kp_cq *queue;       /* instead of the world's */
    const char *key;    /* NULL: none */
};

enum world_state { WORLD_WAITING, WORLD_TAKEN, WORLD_REFUSED };

struct world_record {
    /* as sent */
    struct world *w;
    uint32_t id; /* from 0, in the order of the calls */
    char topic[64];
    int32_t partition; /* asked for; -1 */
    unsigned flags;
    size_t size;
    char *value;
    const char *key; /* lent by the test */
    /* the call */
    enum world_state state;
    kp_err refused; /* what a send that took nothing returned */
    int64_t called_ns, returned_ns;
    int64_t called_wall_ms, returned_wall_ms;
    uint64_t called_at, returned_at; /* places among all calls and returns */
    /* the report: as the future has it, else as the callback or queue
     * brought it; topic and text are copies */
    bool reported;
    int64_t reported_ns;
    kp_report report;
    char text[256];
    /* each way */
    unsigned callbacks, polled; /* how often */
    bool future_done;
    int64_t callback_ns, future_ns;
    uint64_t callback_at; /* its place among all callbacks, from 0 */
    uint64_t polled_at;
    /* the last append of it to any log, be it lost later */
    bool appended;
    int64_t appended_id;
    int32_t appended_epoch, appended_sequence;
    uint32_t stored_times; /* in logs, at the last world_check */
    /* known to the client at the end of the last turn: attempts that left it
     * whole and may have stored it, and whether an answer said that one did */
    uint32_t maybe_stored, attempts;
    bool said_stored;
    /* called too large: among how many, when, and how often */
    int32_t too_large;
    int64_t too_large_ns;
    uint32_t too_large_times;
    bool public_in_callback; /* could another thread see the future done? */
    /* for hooks */
    void *user;
    int thread; /* that sent it: as the test numbers them, from 0 */
    /* the world's */
    struct world_sending *sending;
    kp_future future;
};

/* -- calls that wait -- */

struct world_call {
    bool done;
    kp_err err;      /* of the whole call, as the public one would return it */
    kp_error error;
    int64_t called_ns, done_ns;
    uint32_t compressed; /* batches, by a flush while it waited */
    uint64_t called_at, done_at; /* as of a record */
    uint32_t records; /* that had been sent before */
    /* the test's: this thread gets no processor */
    bool held;
    /* the world's */
    bool is_close, overdue;
    int64_t deadline_ns;
    struct op *op;       /* of a close */
    struct flush *flush;
};

/* -- what reached a broker -- */

struct world_attempt { /* one batch of one Produce request, on arrival */
    int64_t at_ns;
    int32_t node;
    uint32_t request; /* number of the request, from 0 */
    int16_t acks, version;
    char topic[64];
    int32_t partition;
    struct record_batch_header header;
    size_t size;      /* of the whole batch */
    uint32_t first_id; /* of its first record; UINT32_MAX: unreadable */
    size_t ids_at;     /* the world's: where the ids of its records are kept */
};

/* -- the network, one link a node; change at will -- */

struct world_link {
    int64_t to_ns, from_ns; /* latency to the broker and back */
    bool refuses;           /* connects */
    bool silent;            /* connects never end */
    bool unreachable;       /* connects fail at once */
    bool stall_to;          /* bytes are taken and do not arrive */
    bool stall_from;        /* what the broker says does not arrive */
    size_t window;          /* bytes on their way a socket takes; 256 KiB */
    size_t write_step;      /* at most so many bytes a write; SIZE_MAX */
    size_t read_step;
    size_t cut_after;       /* of each new connection's bytes; SIZE_MAX */
    bool cut_loses;         /* ... and those on their way never arrive */
};

/* -- begin, end -- */
struct world *world_begin(const struct world_options *o);
/* Closes the producer at once unless that was done, and checks that
 * everything was given back. */
void world_end(struct world *w);

struct kb_cluster *world_cluster(struct world *w);
kp_producer *world_producer(struct world *w);
struct world_link *world_link(struct world *w, int32_t node);
kp_cq *world_queue(struct world *w); /* its queue, made when first asked for */
int64_t world_now_ns(const struct world *w);
int64_t world_now_ms(const struct world *w); /* since world_begin */

/* -- actors -- */
struct world_record *world_send(struct world *w, int32_t partition);
struct world_record *world_send_what(struct world *w,
                                     const struct world_what *what);
/* `count` records, the first of them returned; they stand in a row by id. */
struct world_record *world_send_many(struct world *w, int32_t partition,
                                     int count, int32_t size);
struct world_record *world_record(struct world *w, uint32_t id);
uint32_t world_record_count(const struct world *w);
struct world_call *world_flush(struct world *w, int64_t timeout_ms);
struct world_call *world_close(struct world *w, int64_t timeout_ms);
/* Runs in each callback, after the world has noted it. */
void world_on_report(struct world *w,
                     void (*fn)(struct world *w, struct world_record *r));
/* What waits in the world's queue is polled after each turn, unless off. */
void world_poll_queue(struct world *w, bool on);
void world_poll_now(struct world *w, size_t max);
/* Another queue, polled to its end; returns how many reports there were. */
size_t world_poll_other(struct world *w, kp_cq *queue);

/* -- time -- */
void world_run_ms(struct world *w, int64_t ms);
void world_run_until_ns(struct world *w, int64_t at_ns);
/* False: not within limit_ms. */
bool world_run_until(struct world *w, bool (*done)(struct world *w, void *arg),
                     void *arg, int64_t limit_ms);
/* For world_run_until: has the send of this struct world_record returned? */
bool world_send_returned(struct world *w, void *record);
/* Until every call has returned and every record taken is reported. Fails the
 * test if that takes longer than an hour. */
void world_settle(struct world *w);
bool world_is_settled(const struct world *w);
/* Until n batches (in Produce requests) have reached brokers since the
 * start. */
void world_run_until_attempts(struct world *w, size_t n);
/* The wall clock jumps; the monotonic one does not. */
void world_jump_wall_ms(struct world *w, int64_t by_ms);
/* The I/O thread gets no processor, as after SIGSTOP; all else goes on. */
void world_hold(struct world *w, bool on);
/* Whenever the I/O thread falls asleep, one turn more at that moment has to find
 * nothing to do: whatever it does should have been done before, or has nobody
 * who would wake it up for it.  Nothing else is different. */
void world_look_twice(struct world *w, bool on);
/* Turns of the I/O thread since the start. */
uint64_t world_turns(const struct world *w);

/* What kp_flush sees before it asks: nothing is unreported. */
bool world_nothing_left(const struct world *w);

/* -- faults -- */
/* A rule of the model, as text; aborts if it is wrong.  Returns its id. */
int world_rule(struct world *w, const char *line);
void world_rule_remove(struct world *w, int id);
/* End all connections to this node (-1: any) now; lose: bytes on their way,
 * either way, are lost; else they arrive first. */
void world_cut(struct world *w, int32_t node, bool lose);
/* No connection that there is will end at a byte drawn beforehand. */
void world_uncut(struct world *w);

/* The poller fails, so many times. */
void world_break_poller(struct world *w, int times);
/* The nth lock of a partition that is tried from now on is found taken, as if
 * another thread wrote a record (0: none), and each other one by so many
 * percent. */
void world_find_taken(struct world *w, long nth, uint32_t percent);
/* Has the nth come? */
bool world_found_taken(const struct world *w);
/* The nth allocation of the library from now fails, and then every gap-th
 * (0: none more; with 1 the first of each turn; -1: all); nth -1: none.  Needs
 * KP_FAILMALLOC; those of the brokers do not count. */
void world_fail_memory(struct world *w, long nth, long gap);
/* Allocations of the library since the start. */
long world_allocations(const struct world *w);

/* -- what was seen -- */
size_t world_attempts(const struct world *w);
const struct world_attempt *world_attempt(const struct world *w, size_t i);
/* Produce requests that reached a broker. */
uint32_t world_requests(const struct world *w);
/* The log as ids of our records, "0 1 2"; lent until the next call. */
const char *world_log(struct world *w, const char *topic, int32_t partition);
/* The ids in the order in which their callbacks ran (queue: were polled). */
const char *world_callbacks(struct world *w);

/* -- the oracle -- */
/* Every record: at most one report, in time; YES is in the log where it
 * says, NO is not in it; nothing refused is in it.  With idempotence: no
 * record twice, and where one send had returned before another of its
 * partition was called, so they stand in the log. */
void world_check(struct world *w);
/* Logs lost records (or brokers the state of producers), which is no fault of
 * the client's: what world_check says of YES (of duplicates and order) is not
 * asked any more. */
void world_forgive(struct world *w, bool lost_records, bool lost_state);

/* Fail the test with a text. */
_Noreturn void world_fail(const struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* From now on it calls fn instead, which must not return; NULL: as before. */
void world_on_fail(void (*fn)(const struct world *w, const char *text));
/* Runs after each turn of the I/O thread. */
void world_on_turn(struct world *w, void (*fn)(struct world *w, void *arg),
                   void *arg);
/* Runs for each log line of the library, whatever its level. */
void world_on_log(struct world *w,
                  void (*fn)(struct world *w, void *arg, const kp_log *line),
                  void *arg);
/* Print what happens, as KP_WORLD_TRACE does; for worlds that begin later. */
void world_trace_all(bool on);
/* A number that two runs share only if everything that reached a broker and
 * every report was the same, at the same time. */
uint64_t world_digest(const struct world *w);

/* As ck_assert: everything that a report says of one record. */
#define world_expect(r, e, c, s, o) \
    world_expect_at(__FILE__, __LINE__, r, e, c, s, o)
void world_expect_at(const char *file, int line, const struct world_record *r,
                     kp_err err, kp_err cause, int32_t stored,
                     int64_t offset);
#define WORLD_ANY_OFFSET INT64_MIN
#define WORLD_ANY_CAUSE INT32_MIN

#endif
