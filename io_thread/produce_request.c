/* SPDX-License-Identifier: BSD-2-Clause */
/* produce_request.c - ready batches of a node into Produce requests.  I/O
 * thread.
 *
 * All ready partitions of a node go in one request, one batch each, up to
 * max.request.size; the frame is one buffer of headers, and the batches' own
 * memory by reference.  Java: RecordAccumulator.drain,
 * Sender.sendProduceRequests. */
#include "io_thread/produce_call.h"
#include "io_thread/sender.h"

#include <stdlib.h>
#include <string.h>

#define PRODUCE_TAKEN_MAX 4096 /* batches in one request */

/* Make the head READY if it is not: seal it, compress it. */
static enum queue_answer prepare(struct io_thread *io,
                                 struct sender_partition *sp,
                                 struct queue_view *v)
{
    enum queue_answer answer = kp__queue_look(sp->queue, false, v);
    struct batch *b;

    if (answer != QUEUE_OK)
        return answer;
    if (v->head_place == PLACE_OPEN)
        (void)kp__queue_seal(sp->queue, true, false);
    if (v->head_place != PLACE_READY &&
        kp__queue_claim(sp->queue, true, &b) == QUEUE_OK)
        kp__compress_and_finish(&io->p->accumulator, b,
                                kp__compressors_own(&io->p->compressors));
    return kp__queue_look(sp->queue, true, v);
}

/* -- What is taken for one request -- */

/* Never false at first: a request always takes something. */
static bool room_for_one_more(struct taken *t)
{
    size_t capacity = t->capacity * 2;
    struct batch **grown;

    if (t->count < t->capacity)
        return true;
    if (t->count >= PRODUCE_TAKEN_MAX)
        return false;
    grown = kp__realloc(t->batches, capacity * sizeof(*grown));
    if (grown == NULL)
        return false;
    t->batches = grown;
    t->capacity = capacity;
    return true;
}

static void record_drained(struct io_thread *io, struct sender_partition *sp,
                           const struct batch *b)
{
    struct metrics *m = io->p->metrics;
    double size = (double)(RECORD_BATCH_HEADER_SIZE + b->wire_size);
    double raw = (double)(RECORD_BATCH_HEADER_SIZE + b->raw_size);

    if (sp->metrics == NULL)
        sp->metrics = kp__metrics_topic(m, sp->queue->topic->name->text,
                                        sp->queue->topic->name->size);
    kp__metrics_record(m, SENSOR_BATCH_SIZE, size, io->now_ns);
    kp__metrics_record(m, SENSOR_COMPRESSION, size / raw, io->now_ns);
    kp__metrics_record(m, SENSOR_QUEUE_TIME_MS,
                       (double)(io->now_ns - b->created_ns) / KP_NS_PER_MS,
                       io->now_ns);
    kp__metrics_record(m, SENSOR_RECORD_SIZE, (double)b->max_record_size,
                       io->now_ns);
    kp__metrics_record_topic(m, sp->metrics, TOPIC_RECORDS_SENT,
                             (double)b->record_count, io->now_ns);
    kp__metrics_record_topic(m, sp->metrics, TOPIC_BYTES, size, io->now_ns);
    kp__metrics_record_topic(m, sp->metrics, TOPIC_COMPRESSION, size / raw,
                             io->now_ns);
    if (b->attempts > 1) {
        kp__metrics_record(m, SENSOR_RECORD_RETRIES, (double)b->record_count,
                           io->now_ns);
        kp__metrics_record_topic(m, sp->metrics, TOPIC_RETRIES,
                                 (double)b->record_count, io->now_ns);
    }
}

static void took(struct io_thread *io, struct sender_partition *sp,
                 struct batch *b)
{
    kp__register(io, sp, b);
    kp__split_on_wire(io, b);
    b->attempts++;
    b->leader_term = sp->leader_term;
    sp->on_wire++;
    sp->held = false;
    sp->leader->ready_since_ns = 0; /* until what is left is planned */
    kp__stamp(io, sp, b);
    record_drained(io, sp, b);
}

/* Brokers before 2.1 do not know zstd, and may call it anything. */
static bool is_too_new(const struct sender_node *sn, const struct batch *b)
{
    return b->codec == CODEC_ZSTD &&
           kp__node_version(sn->node, API_PRODUCE, INT16_MAX) < 7;
}

static void refuse(struct io_thread *io, struct sender_partition *sp,
                   struct batch *b)
{
    kp__complete_failed(
        io, sp, b, KP_UNSUPPORTED_COMPRESSION_TYPE, b->last_err,
        "the broker speaks Produce below version 7, which has no zstd: choose "
        "another compression.type, or brokers from 2.1 on");
    kp__release(io, b);
}

/* The head of sp goes into the request, if it can go.  False: it can, and there
 * is no room left for it. */
static bool take_head(struct io_thread *io, struct sender_node *sn,
                      struct sender_partition *sp)
{
    struct taken *t = &io->taken;
    struct queue_view v;
    struct batch *b;
    size_t size;

    if (prepare(io, sp, &v) != QUEUE_OK || v.head_place != PLACE_READY ||
        !kp__identity_allows(io, sp, v.stamped))
        return true;
    size = RECORD_BATCH_HEADER_SIZE + v.head_wire_size;
    if (t->count > 0 && t->size + size > io->settings->max_request_size)
        return false;
    if (kp__queue_take(sp->queue, true, &b) != QUEUE_OK)
        return true;
    if (is_too_new(sn, b)) {
        refuse(io, sp, b);
        return true;
    }
    took(io, sp, b);
    t->batches[t->count++] = b;
    t->size += size;
    return true;
}

/* Those that found no room stay at the front, in order: so the size cap rotates.
 * kp__plan has taken the node off its list when that was empty, as it was. */
static void stay_ready(struct io_thread *io, struct sender_node *sn,
                       struct list *rest)
{
    struct list_node *n;

    while ((n = kp__list_last(rest)) != NULL) {
        kp__list_remove(n);
        kp__list_push_front(&sn->ready, n);
    }
    if (!kp__list_empty(&sn->ready) && !kp__node_linked(&sn->link))
        kp__list_push_back(&io->nodes_with_data, &sn->link);
}

/* One head of each partition on the node's ready list into io->taken, while
 * they fit.  Each that was looked at is planned anew. */
static void take_ready(struct io_thread *io, struct sender_node *sn)
{
    struct list todo;
    struct list_node *n;

    io->taken.count = io->taken.size = 0;
    kp__list_init(&todo);
    kp__list_splice_back(&todo, &sn->ready);
    while ((n = kp__list_first(&todo)) != NULL &&
           room_for_one_more(&io->taken)) {
        struct sender_partition *sp =
            KP_CONTAINER(n, struct sender_partition, link);

        if (!take_head(io, sn, sp))
            break;
        kp__list_remove(&sp->link);
        kp__plan(io, sp);
    }
    stay_ready(io, sn, &todo);
}

/* -- The request -- */

static int by_topic(const void *a, const void *b)
{
    const struct partition_queue *x = (*(struct batch *const *)a)->queue;
    const struct partition_queue *y = (*(struct batch *const *)b)->queue;

    if (x->topic->number != y->topic->number)
        return x->topic->number < y->topic->number ? -1 : 1;
    return x->partition < y->partition ? -1 : x->partition > y->partition;
}

static size_t pieces(void *owner, struct iovec *out, size_t max)
{
    struct batch *b = owner;

    if (max == 0)
        return 1 + kp__batch_iov_count(b);
    out[0].iov_base = b->header;
    out[0].iov_len = RECORD_BATCH_HEADER_SIZE;
    return 1 + kp__batch_iov(b, out + 1, max - 1);
}

/* The topics array over call->batches, which stand sorted. */
static bool lay_out(struct io_thread *io, struct produce_call *call,
                    struct produce_request *q)
{
    struct produce_request_topic *topics = kp__arena_alloc_array(
        &io->scratch, call->count, sizeof(*topics));
    struct produce_request_partition *parts = kp__arena_alloc_array(
        &io->scratch, call->count, sizeof(*parts));
    struct produce_request_topic *t = NULL;
    const struct topic *last = NULL;

    if (topics == NULL || parts == NULL)
        return false;
    q->topics.items = topics;
    for (size_t i = 0; i < call->count; i++) {
        struct batch *b = call->batches[i];
        const struct topic *topic = b->queue->topic;

        if (topic != last) {
            t = &topics[q->topics.count++];
            t->name.data = topic->name->text;
            t->name.size = topic->name->size;
            t->topic_id = kp__metadata_topic_id(topic);
            t->partitions.items = &parts[i];
            last = topic;
        }
        parts[i].index = b->queue->partition;
        parts[i].records.size = RECORD_BATCH_HEADER_SIZE + b->wire_size;
        parts[i].records.owner = b;
        t->partitions.count++;
    }
    return true;
}

/* Produce 13 needs every topic's id; without one the names of 12 will do. */
static int16_t choose_version(const struct taken *t, struct sender_node *sn)
{
    static const struct uuid zero;
    int16_t version = kp__node_version(sn->node, API_PRODUCE, INT16_MAX);

    for (size_t i = 0; version > PRODUCE_NAMES_MAX && i < t->count; i++) {
        struct uuid id = kp__metadata_topic_id(t->batches[i]->queue->topic);

        if (memcmp(&id, &zero, sizeof(id)) == 0)
            version = kp__node_version(sn->node, API_PRODUCE,
                                       PRODUCE_NAMES_MAX);
    }
    return version;
}

static struct produce_call *make_call(struct io_thread *io,
                                      struct sender_node *sn, int16_t version)
{
    const struct api *api = kp__api(API_PRODUCE);
    size_t count = io->taken.count;
    struct produce_call *call =
        kp__zalloc(sizeof(*call) + count * sizeof(call->batches[0]));
    struct produce_request q;

    if (call == NULL)
        return NULL;
    call->io = io;
    call->node = sn;
    call->count = count;
    memcpy(call->batches, io->taken.batches,
           count * sizeof(call->batches[0]));
    call->request = kp__request_create(api, version);
    kp__schema_defaults(api->request, &q);
    q.transactional_id.data = NULL;
    q.acks = io->settings->acks;
    q.timeout_ms = io->settings->request_timeout_ms;
    if (call->request == NULL || !lay_out(io, call, &q))
        goto no_memory;
    kp__request_begin(call->request, io->settings->client_id);
    kp__schema_encode(api->request, &call->request->frame, version,
                      kp__api_flexible(api, version), &q);
    if (kp__writer_failed(&call->request->frame))
        goto no_memory;
    return call;

no_memory:
    if (call->request != NULL)
        kp__request_destroy(call->request);
    kp__free(call);
    return NULL;
}

/* No memory for the request, or no version for it: put everything back as it
 * was; nothing of it was sent. */
static void put_all_back(struct io_thread *io)
{
    for (size_t i = io->taken.count; i-- > 0;) {
        struct batch *b = io->taken.batches[i];
        struct sender_partition *sp = b->queue->sender;
        struct ledger_entry *e = kp__ledger_find(&sp->ledger, b);

        sp->on_wire--;
        b->attempts--;
        kp__split_off_wire(b);
        if (e != NULL)
            kp__ledger_unsent(e);
        sp->held = true;
        sp->backoff_until_ns =
            kp__ns_add(io->now_ns, io->settings->retry_backoff_ns);
        kp__queue_put_back(b->queue, b);
        kp__plan(io, sp);
    }
}

static void send_call(struct io_thread *io, struct produce_call *call)
{
    struct request *r = call->request;
    double records = 0;

    for (size_t i = 0; i < call->count; i++)
        records += call->batches[i]->record_count;
    r->expects_response = io->settings->acks != 0;
    r->timeout_ns = io->settings->request_timeout_ns;
    r->pieces = pieces;
    r->done = kp__produce_done;
    r->arg = call;
    kp__metrics_record(io->p->metrics, SENSOR_RECORDS_SENT, records,
                       io->now_ns);
    kp__metrics_record(io->p->metrics, SENSOR_RECORDS_PER_REQUEST, records,
                       io->now_ns);
    kp__client_send(io->client, call->node->node, r, io->now_ns);
}

/* One request.  False: there was nothing to send, or no memory for it. */
static bool send_to(struct io_thread *io, struct sender_node *sn)
{
    struct taken *t = &io->taken;
    struct produce_call *call = NULL;
    int16_t version;

    take_ready(io, sn);
    if (kp__list_empty(&sn->ready) && kp__node_linked(&sn->link))
        kp__list_remove(&sn->link);
    if (t->count == 0)
        return false;
    if (kp__node_linked(&sn->link))
        sn->ready_since_ns = io->now_ns;
    qsort(t->batches, t->count, sizeof(t->batches[0]), by_topic);
    version = choose_version(t, sn);
    if (version >= 0)
        call = make_call(io, sn, version);
    kp__arena_reset(&io->scratch);
    if (call == NULL) {
        put_all_back(io);
        io->progressed = true; /* others of this node may go at once */
        return false;
    }
    send_call(io, call);
    return true;
}

void kp__send_ready(struct io_thread *io)
{
    struct list todo;
    struct list_node *n;

    kp__list_init(&todo);
    kp__list_splice_back(&todo, &io->nodes_with_data);
    while ((n = kp__list_pop_front(&todo)) != NULL) {
        struct sender_node *sn = KP_CONTAINER(n, struct sender_node, link);

        kp__list_push_back(&io->nodes_with_data, n);
        /* Twice: an attempt that fails at once is made again after a backoff,
         * if somebody asks for that. */
        for (int i = 0; i < 2 && kp__client_is_idle(sn->node); i++)
            kp__client_connect(io->client, sn->node, io->now_ns);
        while (kp__node_linked(&sn->link) &&
               kp__client_can_send(io->client, sn->node, io->now_ns) &&
               send_to(io, sn))
            io->progressed = true;
    }
}
