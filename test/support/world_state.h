/* SPDX-License-Identifier: BSD-2-Clause */
/* world_state.h - the insides of a world, for its own files.
 *
 *   world.c        begin, end, the loop of time
 *   world_net.c    sockets, poller and resolver onto the broker model
 *   world_actors.c sends, flushes, closes, reports
 *   world_seen.c   what reached brokers; the oracle
 *   world_known.c  what the client can know */
#ifndef KP_TEST_SUPPORT_WORLD_STATE_H
#define KP_TEST_SUPPORT_WORLD_STATE_H

#include "io_thread/env.h"
#include "io_thread/state.h"
#include "lib/api/send.h"
#include "lib/base/map.h"
#include "lib/wire/api.h"
#include "test/support/mem_net.h"
#include "test/support/world.h"

#define WORLD_TOPICS_MAX 32

struct world_conn;
struct known;

struct world_sending { /* a send that has not returned */
    struct send send;
    kp_record record;
};

struct world {
    int64_t now_ns, begin_ns;
    bool trace;
    int64_t wall_jump_ms;
    bool wall_jumped;
    uint64_t digest;
    void (*on_turn)(struct world *w, void *arg);
    void *on_turn_arg;
    void (*on_log)(struct world *w, void *arg, const kp_log *line);
    void *on_log_arg;
    struct kb_cluster *cluster;
    struct kp_producer *p;
    uint64_t seed;
    bool idempotent;

    /* the network */
    struct mem_net net;
    struct world_link links[WORLD_NODES_MAX + 1];
    struct transport_ops transport;

    /* the I/O thread */
    bool asleep, over, held, looks_twice;
    int64_t held_since_ns, held_ns; /* the last, and in all */
    uint64_t turns;
    int64_t spin_at_ns;
    uint32_t spins;
    uint32_t short_writes; /* that a link's step cut short, at spin_at_ns */

    /* locks that are tried */
    long taken_in; /* 0: none */
    uint32_t taken_percent;
    struct rng taken_rng;

    /* memory */
    long fails_in, fails_gap; /* -1: never */
    long allocations, calls_before;
    bool fails_memory; /* world_fail_memory was called */

    /* actors */
    struct world_record **records;
    uint32_t record_count, record_capacity;
    uint32_t waiting; /* records still in their send */
    uint32_t unreported;
    uint32_t open_futures;
    struct world_call *calls[1024];
    size_t call_count;
    uint64_t callback_count, polled_count, ticks;
    void (*on_report)(struct world *w, struct world_record *r);
    kp_cq *queue;
    bool poll_queue;
    uint32_t *told; /* ids of records, in the order of their reports */
    size_t told_count, told_capacity;

    /* seen */
    struct world_attempt *attempts;
    size_t attempt_count, attempt_capacity;
    uint32_t request_count;
    uint32_t *ids; /* of the records of all attempts */
    size_t id_count, id_capacity;
    struct map names; /* of sequence numbers: identity -> record id + 1 */
    char *text;
    struct {
        struct uuid id;
        char name[64];
    } topics[WORLD_TOPICS_MAX]; /* that there are or were */
    size_t topic_count;
    bool lost_records, lost_state; /* world_forgive */
    bool is_sim; /* no test that stamps records, or whose brokers lie */
    /* connects to each node: how many, and when the last ones began */
    uint64_t connects[WORLD_NODES_MAX + 1];
    int64_t connected_ns[WORLD_NODES_MAX + 1][16]; /* by number modulo 16 */

    /* known */
    bool watches_wire;
    uint8_t *notes; /* of bytes in and out of the client, this turn */
    size_t noted, notes_capacity;
    int32_t handed;    /* correlation ids from here on are of this turn */
    bool split;        /* a batch was being split when the last turn ended */
    int64_t split_ns;  /* the last turn with such a one */
    bool old_versions; /* brokers may speak older ones: the sim's */
};

/* world.c: around everything that is the library's */
void world_enter(struct world *w);
void world_leave(struct world *w);

/* world_net.c */
void world_net_init(struct world *w);
void world_net_fini(struct world *w);
/* Move what has arrived; true if anything did. */
bool world_net_run(struct world *w);
int64_t world_net_next_ns(const struct world *w);

/* world_actors.c */
bool world_actors_run(struct world *w);
int64_t world_actors_next_ns(const struct world *w);
void world_actors_fini(struct world *w);
void world_collect(struct world *w);

/* world_seen.c */
void world_seen_frame(struct world *w, int32_t node, const uint8_t *frame,
                      size_t size);
void world_seen_verdict(void *world, const struct kb_verdict *v);
void world_seen_fini(struct world *w);
/* The ids of a batch's records (UINT32_MAX: has none), for free(). */
uint32_t *world_ids_of(const uint8_t *batch, size_t size, int32_t *count);
void world_name_topic(struct world *w, const struct produce_request_topic *t,
                      char out[64]);

/* world_known.c: the client's end of a connection; NULL: not watched */
struct known *world_known_begin(struct world *w, int32_t node);
void world_known_note(struct known *k, bool is_out, const void *data,
                      size_t size);
void world_known_run(struct world *w);
void world_known_end(struct known *k);

void *world_must(void *p);
int64_t world_wall_ms(const struct world *w);
void world_digest_add(struct world *w, uint64_t value);
void world_trace(const struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
