/* SPDX-License-Identifier: BSD-2-Clause */
/* internal.h - the structures of the model, shared by its files.
 *
 * Two kinds of truth.  *Images* are metadata, immutable once published,
 * counted by reference: the controller has the newest, each node the one it
 * has applied.  *Topics, partitions, replicas* are what is on the nodes'
 * disks; they are never freed before the cluster, so that a node with an old
 * image can go on serving a deleted topic, and a test can read its log. */
#ifndef KP_BROKER_INTERNAL_H
#define KP_BROKER_INTERNAL_H

#include "lib/base/heap.h"
#include "lib/base/list.h"
#include "lib/base/rand.h"
#include "test/broker/model.h"

#define KB_REPLICAS_MAX 8
#define KB_RULES_PER_REQUEST 4
#define KB_NEVER INT64_MAX
#define KB_NS_PER_MS INT64_C(1000000)

/* -- memory that does not fail, apart from the library's counted one -- */
void *kb_alloc(size_t size); /* zeroed */
void *kb_realloc(void *p, size_t size);
void *kb_memdup(const void *p, size_t size);
char *kb_strdup(const char *s);
/* A copy in the arena, terminated; NULL: no memory. */
char *kb_strndup(struct arena *a, const void *s, size_t size);
void kb_free(void *p);
_Noreturn void kb_die(const char *what);

/* -- timers -- */
struct kb_timer {
    struct heap_node node;
    void (*fn)(struct kb_cluster *c, struct kb_timer *t);
};
void kb_timer_set(struct kb_cluster *c, struct kb_timer *t, int64_t at_ns);
void kb_timer_stop(struct kb_cluster *c, struct kb_timer *t);

/* -- metadata images -- */
struct kb_part_image {
    int32_t leader_epoch;
    int16_t leader; /* node index; -1: none */
    uint8_t replica_count, isr_count;
    uint16_t replicas[KB_REPLICAS_MAX], isr[KB_REPLICAS_MAX]; /* node indices */
};
struct kb_topic_image {
    int refs;
    struct kb_topic *topic;
    int32_t part_count;
    struct kb_part_image parts[];
};
struct kb_image {
    int refs;
    struct kb_topic_image **by_name, **by_id; /* sorted; hold one reference each
                                                 between them */
    size_t count;
    bool *alive; /* per node index */
    int node_count;
};

struct kb_image *kb_image_new(int node_count);
struct kb_image *kb_image_ref(struct kb_image *i);
void kb_image_unref(struct kb_image *i);
struct kb_image *kb_image_clone(const struct kb_image *i);
struct kb_topic_image *kb_image_by_name(const struct kb_image *i,
                                        const char *name, size_t size);
struct kb_topic_image *kb_image_by_id(const struct kb_image *i,
                                      const struct uuid *id);
/* Takes the reference of t; replaces the entry of the same topic. */
void kb_image_put(struct kb_image *i, struct kb_topic_image *t);
void kb_image_remove(struct kb_image *i, const struct kb_topic *topic);
struct kb_topic_image *kb_topic_image_new(struct kb_topic *topic,
                                          int32_t parts);
struct kb_topic_image *kb_topic_image_clone(const struct kb_topic_image *t,
                                            int32_t parts);
bool kb_part_has(const uint16_t *set, int count, int node);

/* -- producer state of one replica -- */
struct kb_producer_batch {
    int32_t first_sequence, last_sequence;
    int64_t first_offset, last_offset, timestamp_ms;
};
struct kb_producer {
    int64_t id; /* -1: a free slot */
    int16_t epoch;
    int count;
    struct kb_producer_batch batches[5]; /* oldest first */
};
struct kb_producers {
    struct kb_producer *slots;
    size_t capacity, used;
};
struct kb_producer *kb_producer_find(const struct kb_producers *p, int64_t id);
/* Found or made, with epoch -1. */
struct kb_producer *kb_producer_get(struct kb_producers *p, int64_t id);
void kb_producer_drop(struct kb_producers *p, int64_t id); /* -1: all */
void kb_producers_copy(struct kb_producers *to,
                       const struct kb_producers *from);
void kb_producers_fini(struct kb_producers *p);
/* ProducerStateEntry.findDuplicateBatch; NULL: none. */
const struct kb_producer_batch *kb_producer_duplicate(
    const struct kb_producer *p, const struct record_batch_header *h);
/* ProducerAppendInfo.checkProducerEpoch and checkSequence: 0, 45 or 47. */
int16_t kb_producer_check(const struct kb_producer *p,
                          const struct record_batch_header *h);
/* ProducerStateEntry.addBatch. */
void kb_producer_add(struct kb_producers *p,
                     const struct record_batch_header *h, int64_t base_offset,
                     int64_t timestamp_ms);
int32_t kb_sequence_add(int32_t sequence, int32_t n);

/* -- logs -- */
struct kb_batch {
    int refs;
    int64_t base_offset, append_time_ms;
    int32_t leader_epoch;
    bool log_append_time;
    struct record_batch_header header; /* as sent */
    size_t size;
    uint8_t *data; /* as sent */
};
struct kb_topic_config {
    int32_t max_message_bytes, min_insync_replicas, segment_bytes; /* -1: the
                                                     cluster's */
    bool compacted, log_append_time;
    int64_t before_max_ms, after_max_ms;
};
struct kb_replica {
    struct kb_node *node;
    struct kb_topic *topic;
    int32_t partition;
    /* the disk */
    struct kb_batch **batches;
    size_t count, capacity;
    int64_t start_offset, end_offset, high_watermark;
    struct kb_producers producers;
    bool failed; /* its disk */
    /* as its node's image says */
    bool is_leader;
    int32_t leader_epoch;
    int32_t fetched_epoch; /* of the leader it last fetched from, or its own */
    /* Members the controller has agreed to add to the ISR and the image does
     * not show yet: Kafka's maximal ISR. */
    uint16_t pending[KB_REPLICAS_MAX];
    uint8_t pending_count;
    bool stalled;
    int64_t behind_since_ns; /* KB_NEVER: caught up */
    struct kb_timer fetch;   /* a follower's next fetch */
    struct kb_timer lag;     /* a leader's look at who is behind */
    struct list waiting;     /* of kb_wait.in_replica */
};
struct kb_part {
    struct kb_replica *replicas[KB_REPLICAS_MAX * 2];
    int count;
    int16_t last_leader; /* node index */
};
struct kb_topic {
    char *name;
    size_t name_size;
    struct uuid id;
    bool deleted;
    struct kb_topic_config config;
    struct kb_part *parts;
    int32_t part_count;
    struct kb_totals totals;
};

struct kb_replica *kb_replica_at(const struct kb_topic *t, int32_t partition,
                                 const struct kb_node *n);
struct kb_replica *kb_replica_get(struct kb_cluster *c, struct kb_topic *t,
                                  int32_t partition, struct kb_node *n);
void kb_replica_free(struct kb_cluster *c, struct kb_replica *r);
/* Append to the leader's log and let the followers know. */
int64_t kb_replica_append(struct kb_cluster *c, struct kb_replica *r,
                          const struct record_batch_header *h,
                          const uint8_t *data, size_t size);
/* A follower takes what its leader has: now, or after the cluster's delay. */
void kb_replica_fetch(struct kb_cluster *c, struct kb_replica *r);
void kb_replica_want_fetch(struct kb_cluster *c, struct kb_replica *r);
/* n can be reached again: its followers fetch, and others from it. */
void kb_replica_resume(struct kb_cluster *c, struct kb_replica *r);
void kb_replica_wipe(struct kb_replica *r);
/* Make r's disk a copy of another's. */
void kb_replica_copy(struct kb_replica *r, const struct kb_replica *from);
/* The image of r's node says: leader or follower, of that epoch. */
void kb_replica_role(struct kb_cluster *c, struct kb_replica *r, bool leader,
                     int32_t epoch);
/* Recompute the high watermark of a leader and look at who waits for it. */
void kb_replica_advance(struct kb_cluster *c, struct kb_replica *r);
struct kb_part_image *kb_replica_image(const struct kb_replica *r);

/* -- nodes -- */
struct kb_api_range {
    int16_t key, min, max;
    bool served; /* we have code for it */
};
#define KB_API_RANGES 7
struct kb_node {
    int index;
    int32_t id;
    char *host, *rack;
    int32_t port;
    bool up, isolated, paused;
    struct kb_image *image;
    struct kb_timer apply;   /* of a newer image */
    struct kb_timer session; /* until the controller notices it is gone */
    struct list conns;       /* of kb_conn.in_node */
    struct kb_api_range apis[KB_API_RANGES];
    int64_t requests[KB_API_RANGES], connects;
    int open;
    double quota_used; /* bytes ahead of the quota */
    int64_t quota_at_ns;
};
static inline bool kb_node_reachable(const struct kb_node *n)
{
    return n->up && !n->isolated && !n->paused;
}
struct kb_api_range *kb_node_api(struct kb_node *n, int16_t key);
void kb_node_apis_init(struct kb_node *n);
struct kb_node *kb_node_by_id(const struct kb_cluster *c, int32_t id);
void kb_node_apply(struct kb_cluster *c, struct kb_node *n,
                   struct kb_image *image);

/* One topic of n's image is new or has changed. */
void kb_node_apply_topic(struct kb_cluster *c, struct kb_node *n,
                         const struct kb_topic_image *t);

struct kb_rule_entry {
    int id;
    struct kb_rule rule;
    int64_t seen, hits;
};
struct kb_request;
struct kb_cluster {
    struct kb_config config;
    char *cluster_id, *host;
    int64_t now_ns;
    struct heap timers;
    struct rng rng;
    struct kb_node *nodes;
    int node_count;
    struct kb_image *image; /* the controller's */
    struct kb_topic **topics;
    size_t topic_count;
    struct list conns; /* all, of kb_conn.in_cluster */
    struct list ready; /* of kb_conn.in_ready */
    int64_t next_producer_id;
    struct kb_rule_entry *rules;
    size_t rule_count;
    int next_rule_id;
    kb_decide_fn decide;
    void *decide_arg;
    kb_verdict_fn verdict;
    void *verdict_arg;
    int16_t versions_seen[KB_API_RANGES];
    int parked;
    bool publishing, publish_again;
    struct kb_request *spare; /* one, to save allocations */
};
struct kb_topic *kb_topic_new(struct kb_cluster *c, const char *name,
                              size_t size);
void kb_topic_extend(struct kb_topic *t, int32_t parts);
struct kb_topic *kb_topic_live(const struct kb_cluster *c, const char *name);
bool kb_topic_name_valid(const char *name, size_t size);

/* -- the controller -- */
/* A copy of a topic's image to change, then kb_controller_put it. */
struct kb_topic_image *kb_controller_edit(struct kb_cluster *c,
                                          struct kb_topic *t);
void kb_controller_put(struct kb_cluster *c, struct kb_topic_image *t);
/* Put a new image before all nodes; takes the reference. */
void kb_controller_publish(struct kb_cluster *c, struct kb_image *image);
/* The node learns what the controller knows; changes that brings about are
 * published afterwards. */
void kb_controller_apply(struct kb_cluster *c, struct kb_node *n);
/* A node became reachable or stopped being it. */
void kb_controller_node_changed(struct kb_cluster *c, struct kb_node *n,
                                bool at_once);
/* A controlled shutdown: its leaders move away while it still answers. */
void kb_controller_leave(struct kb_cluster *c, struct kb_node *n);
void kb_controller_isr(struct kb_cluster *c, struct kb_replica *leader,
                       int node, bool in);
int16_t kb_controller_create(struct kb_cluster *c, const char *name,
                             size_t size, int32_t partitions,
                             int32_t replication);

/* -- requests and connections -- */
struct kb_frame {
    struct list_node in_inbox;
    bool skimmed;
    size_t size;
    uint8_t data[];
};
struct kb_conn {
    struct kb_cluster *cluster;
    struct kb_node *node;
    void *user;
    struct list_node in_node, in_cluster, in_ready;
    struct list inbox;
    struct kb_request *current;
    struct kb_output *out_first, *out_last;
    struct kb_timer timer;     /* end of a throttle */
    struct kb_timer out_timer; /* output that is due later */
    int64_t last_due_ns;
    uint8_t *behind; /* an answer that goes out behind the next one; or NULL */
    size_t behind_size;
    bool counts; /* it ends by take_end when take_left bytes were read */
    int64_t take_left;
    enum kb_answer take_end;
    bool muted;
    bool stalled;   /* never handles or says anything again */
    bool ended;     /* the broker has closed it */
    bool abandoned; /* the client has closed it */
    bool pumping;
};
/* One partition of a Produce request; linked while it waits for replicas. */
struct kb_wait {
    struct list_node in_replica;
    struct kb_request *request;
    int64_t required_offset;
    struct produce_response_partition *answer;
    struct kb_topic_image *topic; /* only while the request is judged */
    bool forced; /* a script says what is answered in the end */
    int16_t forced_error;
    struct kb_action action;
};
struct kb_request {
    struct kb_conn *conn;
    struct request_header header;
    const struct api *api;
    struct arena arena;
    struct kb_frame *frame; /* owned, when it came from the inbox */
    const uint8_t *data;
    size_t size;
    bool skimmed;
    struct kb_action action;
    struct kb_rule rules[KB_RULES_PER_REQUEST]; /* that apply to it */
    size_t rule_count;
    struct kb_timer timer; /* process delay, produce time-out, answer delay */
    enum {
        KB_STEP_NONE,
        KB_STEP_DELAYED,
        KB_STEP_PARKED,
        KB_STEP_ANSWERING
    } step;
    bool late; /* its timer fired while the node was paused */
    /* Produce */
    struct produce_request produce;
    struct produce_response answer;
    struct kb_wait *waits;
    size_t wait_count, waiting;
    bool had_error;
    /* the answer, as bytes */
    struct writer out;
    bool no_answer;
    int32_t throttle_ms;
};

/* Handle what has arrived, as far as the connection may.  May free k. */
void kb_conn_pump(struct kb_conn *k);
/* Take one request; `owned` is the frame the bytes are in, if it may be
 * kept. */
void kb_request_begin(struct kb_conn *k, struct kb_frame *owned,
                      const uint8_t *data, size_t size, bool skimmed);
void kb_request_resume(struct kb_request *q);
/* Keep a copy of the bytes with the request. */
void kb_request_keep(struct kb_request *q);
/* Decode the body of anything but Produce.  False: malformed. */
bool kb_request_body(struct kb_request *q, void *out);
void kb_conn_emit(struct kb_conn *k, enum kb_output_kind kind, const void *data,
                  size_t size, int64_t due_ns);
void kb_conn_end(struct kb_conn *k, enum kb_output_kind kind);
void kb_conn_free(struct kb_conn *k);
void kb_conn_note_ready(struct kb_conn *k);
/* The answer is in q->out (or q->no_answer): send it as the action says. */
void kb_request_answer(struct kb_request *q);
/* q is done with: free it and let the connection go on. */
void kb_request_end(struct kb_request *q);
void kb_request_spare_free(struct kb_cluster *c);
/* Forget it: it will never be answered. */
void kb_request_discard(struct kb_request *q);
/* Decode, act; q->out gets the answer.  False: not a request we accept, the
 * connection ends. */
bool kb_request_handle(struct kb_request *q);
void kb_request_encode(struct kb_request *q, const void *response);
void kb_answer_send(struct kb_request *q); /* faults.c: shapes the bytes */

bool kb_api_versions_handle(struct kb_request *q);
bool kb_metadata_handle(struct kb_request *q);
bool kb_init_producer_id_handle(struct kb_request *q);
/* May park. */
bool kb_produce_handle(struct kb_request *q);
/* A parked wait is over with this error. */
void kb_wait_settle(struct kb_wait *w, int16_t error);
/* Its time is over, or nothing is waited for any more. */
void kb_produce_finish(struct kb_request *q);
void kb_produce_unlink(struct kb_request *q);

/* -- faults -- */
/* Fill q->action from the rules and the decider, for the request as a whole. */
void kb_decide_request(struct kb_request *q);
void kb_decide_connect(struct kb_cluster *c, struct kb_node *n, void *user,
                       struct kb_action *out);
/* For one topic or partition of q. */
void kb_decide_part(struct kb_request *q, const char *topic, size_t topic_size,
                    int32_t partition, struct kb_action *out);

/* -- checks of a batch -- */
struct kb_checked {
    struct record_batch_header header;
    bool header_valid;
    const uint8_t *data; /* NULL: skimmed */
    size_t size;
    int64_t max_timestamp_ms;
    struct array record_errors; /* of produce_record_error, in the arena */
    const char *message;        /* a literal; NULL: none */
};
/* What ProduceRequest.validateRecords says: 0, 87, 76 or 2. */
int16_t kb_check_shape(struct kb_request *q, const struct blob *records,
                       struct kb_checked *out);
/* UnifiedLog.analyzeAndValidateRecords and LogValidator. */
int16_t kb_check_batch(struct kb_request *q, const struct kb_topic *t,
                       struct kb_checked *b);
/* The records of a batch, uncompressed, into out (its data is used if it must
 * be decompressed).  0, 87, -1. */
int16_t kb_batch_body(const struct record_batch_header *h, const uint8_t *data,
                      size_t size, struct buf *space, const uint8_t **body,
                      size_t *body_size);

static inline void *kb_items(const struct array *a)
{
    return a->items;
}

#endif
