/* SPDX-License-Identifier: BSD-2-Clause */
/* produce_response.c - what a broker, or a dead connection, says of each batch,
 * and what follows.  I/O thread, in the turn's judging steps; user code runs
 * later.
 *
 * Invariant: each batch of a call is judged exactly once; a judged batch is
 * either completed, or back in its queue with its identity.  Java:
 * Sender.completeBatch, canRetry; the differences are in docs/decisions/. */
#include "io_thread/produce_call.h"
#include "io_thread/sender.h"

#include <string.h>

#include "io_thread/backoff.h"
#include "lib/base/str.h"
#include "lib/codec/codec.h"

#define CORRUPT_TRIES 3
#define TEXT_MAX 240
/* What a broker can make us say again and again is said so often. */
#define LOG_EVERY_NS (10 * KP_NS_PER_SEC)

/* One partition's verdict. */
struct verdict {
    kp_err err;
    bool sent; /* the frame's last byte was accepted by the transport */
    int64_t base_offset, append_time_ms, log_start_offset;
    const struct produce_response_partition *answer; /* or NULL */
};

static bool is_fatal(kp_err err)
{
    return err == KP_CLUSTER_AUTHORIZATION_FAILED ||
           err == KP_TRANSACTIONAL_ID_AUTHORIZATION_FAILED ||
           err == KP_UNSUPPORTED_VERSION || err == KP_PRODUCER_FENCED;
}

/* Our own errors of the network are all worth another attempt. */
static bool worth_a_retry(const struct io_thread *io, struct batch *b,
                          kp_err err)
{
    if (err == KP_CORRUPT_MESSAGE)
        b->corrupt++;
    if (b->attempts > (uint32_t)io->settings->retries)
        return false;
    if (err == KP_CORRUPT_MESSAGE && b->corrupt >= CORRUPT_TRIES)
        return false;
    return err < KP_UNKNOWN_SERVER_ERROR || kp__error_info(err)->retriable;
}

static void retry(struct io_thread *io, struct sender_partition *sp,
                  struct batch *b, bool at_once)
{
    int64_t wait_ns = kp__backoff_ns(io->settings->retry_backoff_ns,
                                     io->settings->retry_backoff_max_ns,
                                     sp->failures, &io->rng);

    if (at_once)
        wait_ns = 0;
    else if (sp->failures < UINT32_MAX)
        sp->failures++;
    sp->backoff_until_ns = kp__ns_add(io->now_ns, wait_ns);
    kp__queue_put_back(sp->queue, b);
}

static void text_of(const struct verdict *v, char out[TEXT_MAX])
{
    out[0] = '\0';
    if (v->answer == NULL)
        return;
    if (v->answer->error_code != v->err)
        (void)kp__format(out, TEXT_MAX,
                       "the broker answered with error code %d, which is none "
                       "of Kafka's",
                       v->answer->error_code);
    if (v->answer->error_message.size > 0)
        kp__str_escape(out, TEXT_MAX, v->answer->error_message.data,
                       v->answer->error_message.size);
}

/* Brokers of other make refuse what is compressed with one of these, and say no
 * more than that. */
static void blame_codec(const struct batch *b, kp_err err, char *text)
{
    if (text[0] != '\0' || b->codec == CODEC_NONE ||
        (err != KP_UNSUPPORTED_FOR_MESSAGE_FORMAT &&
         err != KP_UNSUPPORTED_COMPRESSION_TYPE))
        return;
    (void)kp__format(text, TEXT_MAX,
                     "the broker may not take batches compressed with %s: "
                     "choose another compression.type, or none",
                     kp__codec((enum codec_id)b->codec)->name);
}

static void fail(struct io_thread *io, struct sender_partition *sp,
                 struct batch *b, const struct verdict *v)
{
    char text[TEXT_MAX];
    kp_err err = v->err, cause = b->last_err;

    text_of(v, text);
    blame_codec(b, err, text);
    if (v->answer != NULL &&
        kp__note_record_errors(b, &v->answer->record_errors, err,
                               text[0] != '\0' ? text : NULL)) {
        cause = v->err;
        err = KP_EBATCH;
    }
    kp__complete_failed(io, sp, b, err, cause, text[0] != '\0' ? text : NULL);
    kp__release(io, b);
}

/* A retry may have been stored long ago.  What was not stands behind all that
 * was acknowledged, or that is gone: an unclean election, a topic made anew. */
static void watch_offset(struct io_thread *io, struct sender_partition *sp,
                         const struct batch *b, int64_t base_offset, bool fresh)
{
    if (base_offset < 0)
        return;
    if (fresh && base_offset < sp->next_offset)
        kp__log_limited(
            io->p->log, &sp->losses, LOG_EVERY_NS, KP_LOG_WARN, "produce",
            "%s [%d]: stored at offset %lld, though offsets below %lld had "
            "been acknowledged: the log has lost records",
            sp->queue->topic->name->text, (int)sp->queue->partition,
            (long long)base_offset, (long long)sp->next_offset);
    if (fresh || base_offset >= sp->next_offset)
        sp->next_offset = base_offset + b->record_count;
}

static void succeed(struct io_thread *io, struct sender_partition *sp,
                    struct batch *b, const struct verdict *v)
{
    sp->failures = 0;
    kp__queue_taken(sp->queue, b->raw_size);
    /* A leader that was proves nothing of the one that is. */
    if (io->settings->idempotence && b->leader_term == sp->leader_term &&
        kp__ledger_is_current(&sp->ledger, b->producer_id, b->producer_epoch))
        kp__ledger_prove(&sp->ledger);
    kp__complete_stored(io, sp, b, v->base_offset, v->append_time_ms);
    kp__release(io, b);
}

static void split_or_fail(struct io_thread *io, struct sender_partition *sp,
                          struct batch *b, const struct verdict *v)
{
    /* A refusal says nothing about earlier attempts: children of a batch that
     * may be in the log would be duplicates. */
    if (b->record_count < 2 || b->certainty != CERTAIN_NO) {
        fail(io, sp, b, v);
        return;
    }
    kp__queue_refused(sp->queue, b->raw_size);
    if (kp__split(io, sp, b)) {
        kp__metrics_record(io->p->metrics, SENSOR_BATCH_SPLITS, 1,
                           io->now_ns);
        return;
    }
    b->attempts--; /* no attempt of its own is charged for the wait */
    sp->held = true;
    retry(io, sp, b, false);
}

/* The codes that only mean something with identities. True: dealt with. */
static bool judge_identity(struct io_thread *io, struct sender_partition *sp,
                           struct batch *b, struct ledger_entry *e,
                           const struct verdict *v)
{
    struct ledger *l = &sp->ledger;

    switch (v->err) {
    case KP_DUPLICATE_SEQUENCE_NUMBER:
        if (b->certainty == CERTAIN_YES) {
            struct verdict known = *v;

            known.base_offset = -1;
            known.append_time_ms = -1;
            succeed(io, sp, b, &known);
            return true;
        }
        kp__log_limited(
            io->p->log, &sp->doubles, LOG_EVERY_NS, KP_LOG_ERROR, "idempotence",
            "%s [%d]: a batch sent once was called a duplicate: another "
            "producer may be using our producer id",
            sp->queue->topic->name->text, (int)sp->queue->partition);
        kp__ledger_want_bump(l);
        kp__ledger_want_id(l);
        fail(io, sp, b, v);
        return true;
    case KP_UNKNOWN_PRODUCER_ID:
        if (v->log_start_offset == -1)
            break;
        /* fall through */
    case KP_OUT_OF_ORDER_SEQUENCE_NUMBER:
        if (e != NULL && kp__ledger_is_head(l, e) &&
            b->certainty == CERTAIN_NO)
            kp__ledger_want_bump(l);
        break;
    case KP_INVALID_PRODUCER_EPOCH:
    case KP_INVALID_PRODUCER_ID_MAPPING:
        if (b->certainty == CERTAIN_NO)
            kp__ledger_want_bump(l);
        kp__ledger_want_id(l);
        break;
    default:
        return false;
    }
    b->last_err = v->err;
    /* New numbers go on at once.  If those are refused too, their turn waits as
     * any retry does: a broker may want none of our numbers. */
    retry(io, sp, b, l->bump && !b->renumbered);
    b->renumbered = b->renumbered || l->bump;
    return true;
}

static void judge_error(struct io_thread *io, struct sender_partition *sp,
                        struct batch *b, struct ledger_entry *e,
                        const struct verdict *v)
{
    bool idempotent = io->settings->idempotence;

    if (is_fatal(v->err)) {
        fail(io, sp, b, v);
        kp__fatal(io, v->err,
                  "a broker refused this producer for good; see its "
                  "authorisations");
        return;
    }
    if (v->err == KP_MESSAGE_TOO_LARGE) {
        split_or_fail(io, sp, b, v);
        return;
    }
    if (idempotent && judge_identity(io, sp, b, e, v))
        return;
    if (!worth_a_retry(io, b, v->err)) {
        fail(io, sp, b, v);
        return;
    }
    b->last_err = v->err;
    retry(io, sp, b, false);
}

/* The batch was reported already: only its numbers are of interest. */
static void judge_late(struct io_thread *io, struct sender_partition *sp,
                       struct batch *b, const struct verdict *v)
{
    struct ledger *l = &sp->ledger;
    bool first = b->attempts == 1;
    struct ledger_entry *e =
        io->settings->idempotence &&
                kp__ledger_is_current(l, b->producer_id, b->producer_epoch)
            ? kp__ledger_find_first(l, b->base_sequence)
            : NULL;

    if (e != NULL) {
        enum certainty so_far = first ? CERTAIN_NO : e->certainty;

        kp__ledger_answered(l, e,
                            kp__certainty(v->err, io->settings->acks, v->sent,
                                          first, so_far));
    }
    kp__release(io, b);
}

static void judge(struct io_thread *io, struct batch *b,
                  const struct verdict *v)
{
    struct sender_partition *sp = b->queue->sender;
    struct ledger_entry *e =
        io->settings->idempotence ? kp__ledger_find(&sp->ledger, b) : NULL;
    bool fresh = b->certainty == CERTAIN_NO;

    sp->on_wire--;
    kp__split_off_wire(b);
    if (v->err != KP_OK) {
        kp__ledger_unproven(&sp->ledger);
        if (kp__error_info(v->err)->refresh_metadata)
            kp__metadata_stale(io->metadata, io->now_ns);
    }
    if (b->fate == FATE_COMPLETED) {
        judge_late(io, sp, b, v);
        kp__plan(io, sp);
        return;
    }
    b->certainty = kp__certainty(v->err, io->settings->acks, v->sent,
                                 b->attempts == 1, b->certainty);
    if (e != NULL)
        kp__ledger_answered(&sp->ledger, e, b->certainty);
    if (v->err == KP_OK) {
        watch_offset(io, sp, b, v->base_offset, fresh);
        succeed(io, sp, b, v);
    } else {
        judge_error(io, sp, b, e, v);
    }
    kp__plan(io, sp);
}

/* -- the response -- */

static struct batch **find_batch(struct produce_call *call,
                                 const struct topic *t, int32_t partition,
                                 size_t *hint)
{
    /* Brokers answer in the order they were asked: start where we stand. */
    for (size_t i = 0; i < call->count; i++) {
        size_t at = (*hint + i) % call->count;
        struct batch *b = call->batches[at];

        if (b != NULL && b->queue->partition == partition &&
            b->queue->topic == t) {
            *hint = at + 1;
            return &call->batches[at];
        }
    }
    return NULL;
}

static const struct node_endpoint *
find_endpoint(const struct produce_response *answer, int32_t id)
{
    const struct node_endpoint *e = answer->node_endpoints.items;

    for (size_t i = 0; i < answer->node_endpoints.count; i++)
        if (e[i].node_id == id)
            return &e[i];
    return NULL;
}

static void take_hint(struct io_thread *io, struct partition_queue *q,
                      const struct produce_response *answer,
                      const struct produce_response_partition *p)
{
    if (p->current_leader.leader_id < 0 || p->current_leader.leader_epoch < 0)
        return;
    if (p->error_code != KP_NOT_LEADER_OR_FOLLOWER &&
        p->error_code != KP_FENCED_LEADER_EPOCH)
        return;
    kp__metadata_hint(io->metadata, q, p->current_leader.leader_id,
                      p->current_leader.leader_epoch,
                      find_endpoint(answer, p->current_leader.leader_id));
}

/* What an answer about the topic of today says of the partition's leader. */
static void learn_leader(struct io_thread *io, struct produce_call *call,
                         struct partition_queue *q, kp_err err,
                         const struct produce_response *answer,
                         const struct produce_response_partition *p)
{
    if (kp__error_info(err)->refresh_metadata)
        kp__metadata_denied(q, call->node->node);
    take_hint(io, q, answer, p);
}

/* Every record's offset has to be a number: -1 is an unknown one. */
static bool is_offset(int64_t base_offset, uint32_t record_count)
{
    return base_offset >= -1 && base_offset <= INT64_MAX - record_count;
}

/* Does what an answer says of leaders speak of the topic that there is?  Of one
 * that has been made anew meanwhile the epochs have begun again, and an old one
 * would stand above them for ever.  Without ids: nothing has been heard of the
 * leader since the request was sent. */
static bool is_of_today(const struct produce_call *call, const struct uuid *id,
                        const struct batch *b)
{
    struct uuid now;

    if (call->request->version <= PRODUCE_NAMES_MAX)
        return b->leader_term == b->queue->sender->leader_term;
    now = kp__metadata_topic_id(b->queue->topic);
    return memcmp(id, &now, sizeof(now)) == 0;
}

/* False: the answer says what cannot be. */
static bool judge_answer(struct io_thread *io, struct produce_call *call,
                         const struct produce_response *answer,
                         const struct topic *t, const struct uuid *id,
                         const struct produce_response_partition *p,
                         size_t *hint)
{
    struct batch **slot = find_batch(call, t, p->index, hint);
    struct partition_queue *q;
    struct batch *b;
    bool of_today;
    struct verdict v = {
        .err = kp__error_answered(p->error_code),
        .sent = true,
        .base_offset = p->base_offset,
        .append_time_ms = p->log_append_time_ms,
        .log_start_offset = p->log_start_offset,
        .answer = p,
    };

    if (slot == NULL) {
        kp__log_limited(io->p->log, &call->node->strange, LOG_EVERY_NS,
                        KP_LOG_WARN, "produce",
                        "%s answered for a partition that was not in the "
                        "request",
                        kp__node_name(call->node->node));
        return true;
    }
    b = *slot;
    q = b->queue;
    if (v.err == KP_OK && !is_offset(v.base_offset, b->record_count))
        return false; /* judged with those that were left out */
    *slot = NULL;
    of_today = is_of_today(call, id, b);
    judge(io, b, &v);
    if (of_today)
        learn_leader(io, call, q, v.err, answer, p);
    return true;
}

static bool judge_response(struct io_thread *io, struct produce_call *call,
                           const struct produce_response *answer)
{
    const struct produce_response_topic *topics = answer->topics.items;
    size_t hint = 0;
    bool possible = true;

    for (size_t i = 0; i < answer->topics.count; i++) {
        const struct produce_response_partition *parts =
            topics[i].partitions.items;
        const struct topic *t =
            call->request->version > PRODUCE_NAMES_MAX
                ? kp__metadata_by_id(io->metadata, &topics[i].topic_id)
                : kp__topics_find(io->p->topics, topics[i].name.data,
                                  topics[i].name.size);

        for (size_t j = 0; t != NULL && j < topics[i].partitions.count; j++)
            possible = judge_answer(io, call, answer, t, &topics[i].topic_id,
                                    &parts[j], &hint) &&
                       possible;
    }
    return possible;
}

/* All that were not answered one by one: the same verdict for each, oldest
 * (lowest partition of each topic) first. */
static void judge_rest(struct io_thread *io, struct produce_call *call,
                       kp_err err, bool sent)
{
    struct verdict v = {
        .err = err,
        .sent = sent,
        .base_offset = -1,
        .append_time_ms = -1,
        .log_start_offset = -1,
    };

    for (size_t i = 0; i < call->count; i++) {
        struct batch *b = call->batches[i];

        call->batches[i] = NULL;
        if (b != NULL)
            judge(io, b, &v);
    }
}

static void read_response(struct io_thread *io, struct produce_call *call,
                          struct reader *body)
{
    const struct api *api = call->request->api;
    int16_t version = call->request->version;
    struct produce_response answer;

    if (!kp__schema_decode(api->response, body, &io->answers, version,
                           kp__api_flexible(api, version), &answer)) {
        kp__log_limited(io->p->log, &call->node->unreadable, LOG_EVERY_NS,
                        KP_LOG_ERROR, "produce",
                        "%s sent a Produce response that cannot be read (%s)",
                        kp__node_name(call->node->node),
                        body->what != NULL ? body->what : "malformed");
    } else {
        kp__client_throttle(io->client, call->request,
                            answer.throttle_time_ms);
        if (!judge_response(io, call, &answer))
            kp__reader_fail(body, "an impossible offset");
    }
    kp__arena_reset(&io->answers);
    /* A partition that the answer leaves out may or may not be stored. */
    judge_rest(io, call, KP_EPROTO, true);
}

static void record_latency(struct io_thread *io, const struct request *r)
{
    double ms = (double)(io->now_ns - r->sent_ns) / KP_NS_PER_MS;

    kp__metrics_record(io->p->metrics, SENSOR_REQUEST_LATENCY_MS, ms,
                       io->now_ns);
    kp__metrics_record_node(io->p->metrics, kp__node_metrics(r->node),
                            NODE_LATENCY_MS, ms, io->now_ns);
}

void kp__produce_done(void *arg, struct request *r, enum request_end end,
                      struct reader *body, kp_err err)
{
    struct produce_call *call = arg;
    struct io_thread *io = call->io;

    switch (end) {
    case REQUEST_ANSWERED:
        record_latency(io, r);
        read_response(io, call, body);
        break;
    case REQUEST_SENT:
        judge_rest(io, call, KP_OK, true);
        break;
    case REQUEST_TIMED_OUT:
        judge_rest(io, call, KP_REQUEST_TIMED_OUT, true);
        break;
    case REQUEST_DISCONNECTED:
        judge_rest(io, call, err != KP_OK ? err : KP_EDISCONNECT, true);
        break;
    case REQUEST_UNSENT:
        judge_rest(io, call, err != KP_OK ? err : KP_EDISCONNECT, false);
        break;
    case REQUEST_UNSUPPORTED:
        judge_rest(io, call, KP_UNSUPPORTED_VERSION, false);
        break;
    }
    io->progressed = true;
    kp__request_destroy(r);
    kp__free(call);
}
