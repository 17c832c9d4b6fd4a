/* SPDX-License-Identifier: BSD-2-Clause */
/* produce.c - Produce 3-13: judged, appended, perhaps parked, answered.
 *
 * KafkaApis.handleProduceRequest, ReplicaManager.appendRecords and
 * DelayedProduce.  Under acks=all the leader appends first and then waits; what
 * waits can still be answered 6, 3, 7, 20 or 56 with the records in the log. */
#include <string.h>

#include "test/broker/internal.h"

#define ATTRIBUTE_TRANSACTIONAL 16

static struct kb_topic_image *find_topic(const struct kb_request *q,
                                         const struct produce_request_topic *t)
{
    const struct kb_image *image = q->conn->node->image;

    if (q->header.version >= 13)
        return kb_image_by_id(image, &t->topic_id);
    return t->name.data == NULL
               ? NULL
               : kb_image_by_name(image, t->name.data, t->name.size);
}

static int32_t min_isr(const struct kb_cluster *c, const struct kb_topic *t,
                       const struct kb_part_image *p)
{
    int32_t min = t->config.min_insync_replicas >= 0
                      ? t->config.min_insync_replicas
                      : c->config.min_insync_replicas;

    return min < p->replica_count ? min : p->replica_count;
}

static void report(struct kb_request *q, const struct kb_topic *t,
                   int32_t partition, const struct kb_checked *b, int16_t error,
                   int64_t base_offset, bool duplicate)
{
    struct kb_cluster *c = q->conn->cluster;
    struct kb_verdict v;

    if (c->verdict == NULL)
        return;
    memset(&v, 0, sizeof(v));
    v.now_ns = c->now_ns;
    v.node_id = q->conn->node->id;
    v.topic = t->name;
    v.topic_id = t->id;
    v.partition = partition;
    v.acks = q->produce.acks;
    v.error = error;
    v.duplicate = duplicate;
    v.appended = error == 0 && !duplicate;
    v.base_offset = base_offset;
    v.header_valid = b->header_valid;
    v.header = b->header;
    v.batch = b->data;
    v.batch_size = b->size;
    c->verdict(c->verdict_arg, &v);
}

static void refused(struct kb_request *q, struct kb_wait *w, int32_t partition,
                    const struct kb_checked *b, int16_t error)
{
    w->answer->error_code = error;
    w->answer->record_errors = b->record_errors;
    if (b->message != NULL) {
        w->answer->error_message.data = b->message;
        w->answer->error_message.size = strlen(b->message);
    }
    w->topic->topic->totals.refused++;
    report(q, w->topic->topic, partition, b, error, -1, false);
}

static void wait_for(struct kb_wait *w, struct kb_replica *r,
                     int64_t required_offset)
{
    w->required_offset = required_offset;
    kp__list_push_back(&r->waiting, &w->in_replica);
    w->request->waiting++;
}

static void accepted(struct kb_wait *w, struct kb_replica *r,
                     int64_t base_offset, int64_t append_time_ms,
                     int64_t end_offset)
{
    w->answer->base_offset = base_offset;
    w->answer->log_append_time_ms = append_time_ms;
    w->answer->log_start_offset = r->start_offset;
    if (w->request->produce.acks == -1 && r->high_watermark < end_offset)
        wait_for(w, r, end_offset);
}

static void count(struct kb_topic *t, const struct kb_checked *b)
{
    t->totals.batches++;
    t->totals.records += b->header.record_count;
    t->totals.bytes += (int64_t)b->size;
}

/* UnifiedLog.append from the producer state on. */
static void append(struct kb_request *q, struct kb_wait *w,
                   struct kb_replica *r, struct kb_checked *b)
{
    struct kb_cluster *c = q->conn->cluster;
    const struct kb_producer *p =
        kb_producer_find(&r->producers, b->header.producer_id);
    const struct kb_producer_batch *d = kb_producer_duplicate(p, &b->header);
    int16_t error;
    int64_t base;

    w->answer->log_start_offset = r->start_offset;
    if (b->header.producer_id >= 0 && d != NULL) {
        struct kb_producer_batch was = *d;

        r->topic->totals.duplicates++;
        report(q, r->topic, r->partition, b, 0, was.first_offset, true);
        accepted(w, r, was.first_offset, was.timestamp_ms, was.last_offset + 1);
        return;
    }
    error = b->header.producer_id >= 0 ? kb_producer_check(p, &b->header) : 0;
    if (error != 0) {
        refused(q, w, r->partition, b, error);
        return;
    }
    count(r->topic, b);
    b->header.max_timestamp_ms = b->max_timestamp_ms;
    report(q, r->topic, r->partition, b, 0, r->end_offset, false);
    base = kb_replica_append(c, r, &b->header, b->data, b->size);
    accepted(w, r, base, r->topic->config.log_append_time ? kb_wall_ms(c) : -1,
             base + b->header.last_offset_delta + 1);
}

/* ReplicaManager answers the others with UNKNOWN_LOG_APPEND_INFO. */
static bool knows_log_start(int16_t error)
{
    return error != 2 && error != 6 && error != 10 && error != 18 &&
           error != 56;
}

/* ReplicaManager.appendToLocalLog. */
static void judge_local(struct kb_request *q, struct kb_wait *w,
                        int32_t partition, struct kb_checked *b)
{
    struct kb_cluster *c = q->conn->cluster;
    struct kb_topic *t = w->topic->topic;
    struct kb_part_image p = w->topic->parts[partition];
    struct kb_replica *r = kb_replica_at(t, partition, q->conn->node);
    int16_t error = 0;

    if (r != NULL && r->failed)
        error = 56;
    else if (r == NULL || !r->is_leader)
        error = 6;
    else if (q->produce.acks == -1 && p.isr_count < min_isr(c, t, &p))
        error = 19;
    else
        error = kb_check_batch(q, t, b);
    if (error == 0) {
        append(q, w, r, b);
        return;
    }
    if (knows_log_start(error))
        w->answer->log_start_offset = r->start_offset;
    refused(q, w, partition, b, error);
}

static bool acks_valid(int16_t acks)
{
    return acks >= -1 && acks <= 1;
}

static void judge(struct kb_request *q, struct kb_wait *w,
                  const struct produce_request_partition *p)
{
    struct kb_checked b;
    int16_t error;

    if (w->topic == NULL) {
        w->answer->error_code = q->header.version >= 13 ? 100 : 3;
        return;
    }
    if (p->index < 0 || p->index >= w->topic->part_count) {
        w->answer->error_code = 3;
        return;
    }
    error = kb_check_shape(q, &p->records, &b);
    if (b.header_valid && q->produce.transactional_id.data == NULL &&
        (b.header.attributes & ATTRIBUTE_TRANSACTIONAL) != 0)
        error = 53;
    if (error == 0 && !acks_valid(q->produce.acks))
        error = 21;
    if (error != 0)
        refused(q, w, p->index, &b, error);
    else
        judge_local(q, w, p->index, &b);
}

static void answer_defaults(struct produce_response_partition *a, int32_t index)
{
    memset(a, 0, sizeof(*a));
    a->index = index;
    a->base_offset = -1;
    a->log_append_time_ms = -1;
    a->log_start_offset = -1;
    a->current_leader.leader_id = -1;
    a->current_leader.leader_epoch = -1;
}

static const char *topic_label(const struct kb_wait *w,
                               const struct produce_request_topic *t,
                               size_t *size)
{
    if (w->topic != NULL) {
        *size = w->topic->topic->name_size;
        return w->topic->topic->name;
    }
    *size = t->name.data == NULL ? 0 : t->name.size;
    return t->name.data == NULL ? "" : t->name.data;
}

/* What a log or a terminal should never see. */
static struct text hostile_text(struct kb_request *q)
{
    static const char pattern[] = "\033[31m%n%s\n\r\a\x9b\xff\xc0";
    size_t size = (size_t)q->action.text, i;
    char *data = kp__arena_alloc(&q->arena, size);
    struct text t = {data, data == NULL ? 0 : size};

    for (i = 0; i < t.size; i++)
        data[i] = pattern[i % sizeof(pattern)];
    return t;
}

static void judge_part(struct kb_request *q, struct kb_wait *w,
                       const struct produce_request_topic *t,
                       const struct produce_request_partition *p)
{
    struct kb_action *a = &w->action;
    const char *name;
    size_t size;

    answer_defaults(w->answer, p->index);
    name = topic_label(w, t, &size);
    kb_decide_part(q, name, size, p->index, a);
    if (a->has_error) {
        w->forced = true;
        w->forced_error = a->error;
        if (q->action.text > 0)
            w->answer->error_message = hostile_text(q);
    }
    if (!a->has_error || a->append)
        judge(q, w, p);
}

static void judge_topic(struct kb_request *q, size_t *next,
                        const struct produce_request_topic *t,
                        struct produce_response_topic *answer)
{
    const struct produce_request_partition *p = kb_items(&t->partitions);
    struct produce_response_partition *out = kb_items(&answer->partitions);
    size_t i;

    for (i = 0; i < t->partitions.count; i++) {
        struct kb_wait *w = &q->waits[(*next)++];

        kp__node_init(&w->in_replica);
        w->request = q;
        w->answer = &out[i];
        /* looked up each time: an append may bring a new image */
        w->topic = find_topic(q, t);
        judge_part(q, w, t, &p[i]);
        w->topic = NULL; /* the image may go */
    }
}

static size_t count_parts(const struct kb_request *q)
{
    const struct produce_request_topic *t = kb_items(&q->produce.topics);
    size_t i, n = 0;

    for (i = 0; i < q->produce.topics.count; i++)
        n += t[i].partitions.count;
    return n;
}

/* Room for the answer and for what a script may add to it. */
static bool prepare(struct kb_request *q)
{
    const struct produce_request_topic *t = kb_items(&q->produce.topics);
    struct produce_response_topic *a;
    size_t i;

    q->wait_count = count_parts(q);
    q->waits = kp__arena_alloc_array(&q->arena, q->wait_count + 1,
                                     sizeof(q->waits[0]));
    a = kp__arena_alloc_array(&q->arena, q->produce.topics.count + 1,
                              sizeof(*a));
    if (q->waits == NULL || a == NULL)
        return false;
    q->answer.topics.items = a;
    q->answer.topics.count = q->produce.topics.count;
    for (i = 0; i < q->produce.topics.count; i++) {
        size_t n = t[i].partitions.count;

        a[i].topic_id = t[i].topic_id;
        a[i].name.data = kb_strndup(
            &q->arena, t[i].name.data == NULL ? "" : t[i].name.data,
            t[i].name.size);
        a[i].name.size = t[i].name.size;
        a[i].partitions.count = n;
        a[i].partitions.items = kp__arena_alloc_array(
            &q->arena, 2 * n + 1, sizeof(struct produce_response_partition));
        if (a[i].name.data == NULL || a[i].partitions.items == NULL)
            return false;
    }
    return true;
}

void kb_produce_unlink(struct kb_request *q)
{
    size_t i;

    for (i = 0; i < q->wait_count; i++)
        if (q->waits[i].request != NULL)
            kp__list_remove(&q->waits[i].in_replica);
    q->wait_count = q->waiting = 0;
}

void kb_wait_settle(struct kb_wait *w, int16_t error)
{
    struct kb_request *q = w->request;

    kp__list_remove(&w->in_replica);
    w->answer->error_code = error;
    q->waiting--;
    /* Not from here: who settles is in the middle of a replica's list. */
    if (q->waiting == 0 && q->step == KB_STEP_PARKED)
        kb_timer_set(q->conn->cluster, &q->timer, q->conn->cluster->now_ns);
}

static int32_t quota_throttle_ms(struct kb_request *q)
{
    struct kb_cluster *c = q->conn->cluster;
    struct kb_node *n = q->conn->node;
    double rate = (double)c->config.quota_bytes_per_s;
    double elapsed = (double)(c->now_ns - n->quota_at_ns) / 1e9;

    if (rate <= 0)
        return 0;
    n->quota_used -= elapsed * rate;
    if (n->quota_used < 0)
        n->quota_used = 0;
    n->quota_at_ns = c->now_ns;
    n->quota_used += (double)q->size;
    if (n->quota_used <= rate)
        return 0;
    return (int32_t)((n->quota_used - rate) / rate * 1000.0);
}

static struct kb_part_image *current_part(
    const struct kb_request *q, const struct produce_response_topic *t,
    int32_t index)
{
    const struct kb_image *image = q->conn->node->image;
    struct kb_topic_image *i =
        q->header.version >= 13
            ? kb_image_by_id(image, &t->topic_id)
            : kb_image_by_name(image, t->name.data, t->name.size);

    return i == NULL || index < 0 || index >= i->part_count ? NULL
                                                            : &i->parts[index];
}

static void add_endpoint(struct kb_request *q, const struct kb_node *n)
{
    struct array *a = &q->answer.node_endpoints;
    struct node_endpoint *e = a->items;
    size_t i;

    for (i = 0; i < a->count; i++)
        if (e[i].node_id == n->id)
            return;
    if (e == NULL) {
        e = kp__arena_alloc_array(
            &q->arena, (size_t)q->conn->cluster->node_count, sizeof(*e));
        if (e == NULL)
            return;
        a->items = e;
    }
    e[a->count].node_id = n->id;
    e[a->count].host.data = n->host;
    e[a->count].host.size = strlen(n->host);
    e[a->count].port = n->port;
    e[a->count].rack.data = n->rack;
    e[a->count].rack.size = n->rack == NULL ? 0 : strlen(n->rack);
    a->count++;
}

static void say_leader(struct kb_request *q,
                       struct produce_response_partition *a, int32_t id,
                       int32_t epoch)
{
    const struct kb_node *n = kb_node_by_id(q->conn->cluster, id);

    a->current_leader.leader_id = id;
    a->current_leader.leader_epoch = epoch;
    if (n != NULL)
        add_endpoint(q, n);
}

/* KIP-951: who leads instead, as far as this node knows, or as the script says.
 */
static void hint(struct kb_request *q, const struct produce_response_topic *t,
                 struct produce_response_partition *a,
                 const struct kb_action *k)
{
    const struct kb_part_image *p = current_part(q, t, a->index);
    const struct kb_node *nodes = q->conn->cluster->nodes;

    if (q->header.version < 10)
        return;
    if (k->has_hint)
        say_leader(q, a, k->hint, k->hint_epoch);
    else if (p != NULL && a->error_code == 6)
        say_leader(q, a, p->leader < 0 ? -1 : nodes[p->leader].id,
                   p->leader_epoch);
}

/* KIP-467, and a record that the script chose. */
static void blame(struct kb_wait *w)
{
    struct produce_record_error *e =
        kp__arena_alloc_array(&w->request->arena, 1, sizeof(*e));

    if (e == NULL)
        return;
    memset(e, 0, sizeof(*e));
    e->batch_index = w->action.blame;
    w->answer->record_errors.items = e;
    w->answer->record_errors.count = 1;
}

static void force(struct kb_wait *w)
{
    if (w->action.has_blame)
        blame(w);
    if (w->forced)
        w->answer->error_code = w->forced_error;
    if (w->action.has_offset)
        w->answer->base_offset = w->action.base_offset;
    if (w->action.has_log_start)
        w->answer->log_start_offset = w->action.log_start;
}

/* Leave out, repeat, add, as the script says.  `first`: of the topic's. */
static void distort(struct produce_response_topic *t,
                    const struct kb_wait *first)
{
    struct produce_response_partition *a = kb_items(&t->partitions);
    size_t n = t->partitions.count, i, to = 0;
    struct produce_response_partition extra[2];
    size_t extras = 0;

    for (i = 0; i < n; i++) {
        const struct kb_action *k = &first[i].action;

        if (k->repeat && extras < 2) {
            extra[extras] = a[i];
            extra[extras++].error_code = -1;
        }
        if (k->stranger && extras < 2) {
            extra[extras] = a[i];
            extra[extras++].index = 1000000 + a[i].index;
        }
        if (!k->omit)
            a[to++] = a[i];
    }
    for (i = 0; i < extras && to < 2 * n + 1; i++)
        a[to++] = extra[i];
    t->partitions.count = to;
}

static void complete(struct kb_request *q)
{
    struct produce_response_topic *t = kb_items(&q->answer.topics);
    size_t i, p, next = 0;

    for (i = 0; i < q->answer.topics.count; i++) {
        struct produce_response_partition *a = kb_items(&t[i].partitions);
        struct kb_wait *first = &q->waits[next];

        for (p = 0; p < t[i].partitions.count; p++) {
            force(&q->waits[next++]);
            if (a[p].error_code != 0)
                q->had_error = true;
            hint(q, &t[i], &a[p], &first[p].action);
        }
        distort(&t[i], first);
    }
}

void kb_produce_finish(struct kb_request *q)
{
    size_t i;

    kb_timer_stop(q->conn->cluster, &q->timer);
    for (i = 0; q->waiting > 0 && i < q->wait_count; i++)
        if (kp__node_linked(&q->waits[i].in_replica))
            kb_wait_settle(&q->waits[i], 7);
    complete(q);
    q->throttle_ms =
        q->action.has_throttle ? q->action.throttle_ms : quota_throttle_ms(q);
    q->answer.throttle_time_ms = q->throttle_ms;
    if (q->produce.acks == 0) {
        q->no_answer = true;
        if (q->had_error && q->action.answer == KB_ANSWER)
            q->action.answer = KB_ANSWER_CLOSE; /* all it can say */
    } else {
        kb_request_encode(q, &q->answer);
    }
    kb_request_answer(q);
}

bool kb_produce_handle(struct kb_request *q)
{
    const struct produce_request_topic *t = kb_items(&q->produce.topics);
    struct produce_response_topic *a;
    struct kb_cluster *c = q->conn->cluster;
    size_t i, next = 0;

    if (!prepare(q))
        return false;
    a = kb_items(&q->answer.topics);
    for (i = 0; i < q->produce.topics.count; i++)
        judge_topic(q, &next, &t[i], &a[i]);
    if (q->waiting == 0) {
        kb_produce_finish(q);
        return true;
    }
    q->step = KB_STEP_PARKED;
    c->parked++;
    kb_timer_set(c, &q->timer,
                 c->now_ns + (int64_t)q->produce.timeout_ms * KB_NS_PER_MS);
    return true;
}

void kb_on_verdict(struct kb_cluster *c, kb_verdict_fn fn, void *arg)
{
    c->verdict = fn;
    c->verdict_arg = arg;
}
