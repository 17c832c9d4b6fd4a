/* SPDX-License-Identifier: BSD-2-Clause */
/* identity.c - the producer id, and the stamping of batches with it.  I/O
 * thread.
 *
 * Each partition has an epoch of its own (brokers keep producer state per
 * partition, KIP-360), so one partition's trouble is never another's.  Java:
 * TransactionManager without transactions; docs/decisions/ lists the
 * differences. */
#include "io_thread/sender.h"

#include "io_thread/backoff.h"

#define TRANSACTION_TIMEOUT_NONE INT32_MAX

/* -- the producer id -- */

static void adopt_topic(void *arg, struct topic *t)
{
    struct io_thread *io = arg;
    const struct topic_view *v = kp__topic_view(t);

    for (int32_t i = 0; v != NULL && i < v->count; i++) {
        struct sender_partition *sp = v->queues[i]->sender;

        /* Those that use an older id keep it: it is as good as it was. */
        if (sp != NULL && sp->ledger.count == 0 &&
            (sp->ledger.producer_id < 0 || sp->ledger.new_id))
            kp__ledger_adopt(&sp->ledger, io->producer_id, io->producer_epoch);
    }
}

static void id_arrived(struct io_thread *io,
                       const struct init_producer_id_response *answer)
{
    io->producer_id = answer->producer_id;
    io->producer_epoch = answer->producer_epoch;
    io->id_wanted = false;
    io->id_failures = 0;
    kp__log(io->p->log, KP_LOG_DEBUG, "idempotence",
            "producer id %lld, epoch %d", (long long)io->producer_id,
            io->producer_epoch);
    kp__topics_each(io->p->topics, adopt_topic, io);
    kp__plan_all(io, STANDS_NO_ID);
    kp__plan_all(io, STANDS_IN_FLIGHT);
}

static void id_failed(struct io_thread *io, kp_err err)
{
    /* A coordinator that calls the epoch old has seen a newer producer. */
    if (err == KP_INVALID_PRODUCER_EPOCH)
        err = KP_PRODUCER_FENCED;
    if (err > 0 && !kp__error_may_pass(err)) {
        kp__fatal(io, err,
                  "no producer id was given; set enable.idempotence=false to "
                  "send without one, or grant IdempotentWrite on the cluster");
        return;
    }
    io->id_retry_at_ns =
        io->now_ns + kp__backoff_ns(io->settings->retry_backoff_ns,
                                    io->settings->retry_backoff_max_ns,
                                    io->id_failures++, &io->rng);
}

static void id_answered(struct io_thread *io,
                        const struct init_producer_id_response *answer)
{
    if (answer->error_code != 0)
        id_failed(io, kp__error_answered(answer->error_code));
    else if (answer->producer_id < 0 || answer->producer_epoch < 0)
        id_failed(io, KP_EPROTO);
    else
        id_arrived(io, answer);
}

static void id_done(void *arg, struct request *r, enum request_end end,
                    struct reader *body, kp_err err)
{
    struct io_thread *io = arg;
    struct init_producer_id_response answer;
    const struct api *api = r->api;

    io->id_requested = false;
    if (end == REQUEST_UNSUPPORTED) {
        kp__fatal(io, KP_UNSUPPORTED_VERSION,
                  "the broker is too old for idempotence: set "
                  "enable.idempotence=false");
    } else if (end != REQUEST_ANSWERED) {
        id_failed(io, err);
    } else if (!kp__schema_decode(api->response, body, &io->answers, r->version,
                                  kp__api_flexible(api, r->version), &answer)) {
        id_failed(io, KP_EPROTO);
    } else {
        kp__client_throttle(io->client, r, answer.throttle_time_ms);
        id_answered(io, &answer);
    }
    kp__arena_reset(&io->answers);
    kp__request_destroy(r);
}

static void id_send(struct io_thread *io, struct node *n)
{
    const struct api *api = kp__api(API_INIT_PRODUCER_ID);
    struct init_producer_id_request q;
    int16_t version =
        kp__node_version(n, API_INIT_PRODUCER_ID, api->max_version);
    struct request *r = kp__request_create(api, version);

    if (r == NULL) {
        /* Again after the backoff; which may be none, so not at once. */
        io->id_no_node = true;
        id_failed(io, KP_ENOMEM);
        return;
    }
    kp__schema_defaults(api->request, &q);
    q.transactional_id.data = NULL;
    q.transactional_id.size = 0;
    q.transaction_timeout_ms = TRANSACTION_TIMEOUT_NONE;
    q.producer_id = -1;
    q.producer_epoch = -1;
    kp__request_begin(r, io->settings->client_id);
    kp__schema_encode(api->request, &r->frame, version,
                      kp__api_flexible(api, version), &q);
    r->timeout_ns = io->settings->request_timeout_ns;
    r->expects_response = true;
    r->done = id_done;
    r->arg = io;
    io->id_requested = true;
    kp__client_send(io->client, n, r, io->now_ns);
}

/* It is to be asked for, if need be after a backoff.  Of a producer that has
 * come to its end nobody needs it any more. */
static bool is_due(const struct io_thread *io)
{
    return io->id_wanted && !io->id_requested &&
           atomic_load(&io->p->accumulator.taking) != TAKING_FATAL;
}

void kp__id_run(struct io_thread *io)
{
    struct node *n;

    if (!is_due(io) || io->now_ns < io->id_retry_at_ns)
        return;
    n = kp__client_least_loaded(io->client, io->now_ns);
    io->id_no_node =
        n == NULL || !kp__client_can_send(io->client, n, io->now_ns);
    if (io->id_no_node)
        return;
    if (kp__node_version(n, API_INIT_PRODUCER_ID, INT16_MAX) < 0) {
        kp__fatal(io, KP_UNSUPPORTED_VERSION,
                  "the broker is too old for idempotence: set "
                  "enable.idempotence=false");
        return;
    }
    id_send(io, n);
}

int64_t kp__id_next_timer(const struct io_thread *io)
{
    if (!is_due(io))
        return KP_NEVER;
    if (io->id_retry_at_ns > io->now_ns)
        return io->id_retry_at_ns;
    /* A node that comes up is an event. */
    return io->id_no_node ? kp__ns_add(io->now_ns, LOOK_AGAIN_NS) : io->now_ns;
}

/* -- the partition's part -- */

static void unstamp(void *arg, struct batch *b)
{
    (void)arg;
    b->base_sequence = -1;
}

/* The partition's own id will not do any more: the producer's, if that is
 * another one by now; else another is asked for. */
static void renew_id(struct io_thread *io, struct ledger *l)
{
    if (io->producer_id != l->producer_id && io->producer_id >= 0)
        kp__ledger_adopt(l, io->producer_id, io->producer_epoch);
    else
        io->id_wanted = true;
}

static void bump(struct io_thread *io, struct sender_partition *sp)
{
    struct ledger *l = &sp->ledger;

    /* Nothing of this partition is on a wire, so every stamped batch is in the
     * queue; in a new epoch they get new numbers, in order, from 0. */
    kp__queue_visit(sp->queue, false, unstamp, NULL);
    if (!kp__ledger_bump(l)) {
        renew_id(io, l);
        return;
    }
    kp__log(io->p->log, KP_LOG_INFO, "idempotence",
            "%s [%d] goes on under producer epoch %d",
            sp->queue->topic->name->text, (int)sp->queue->partition, l->epoch);
}

void kp__identity_settle(struct io_thread *io, struct sender_partition *sp)
{
    struct ledger *l = &sp->ledger;

    if (l->count == 0 && !l->bump)
        return;
    kp__ledger_settle(l);
    if (!kp__ledger_can_bump(l))
        return;
    if (l->new_id && l->count == 0)
        renew_id(io, l); /* it has been waiting for that alone, or does now */
    else
        bump(io, sp);
}

uint32_t kp__identity_limit(const struct io_thread *io,
                            const struct sender_partition *sp)
{
    const struct sender_node *sn = sp->leader;
    uint32_t limit = LEDGER_IN_FLIGHT;

    if ((uint32_t)io->settings->max_in_flight < limit)
        limit = (uint32_t)io->settings->max_in_flight;
    /* Brokers before 1.0 (Produce below 5) remember one batch. */
    if (sn != NULL && kp__client_is_ready(sn->node) &&
        kp__node_version(sn->node, API_PRODUCE, INT16_MAX) < 5)
        limit = 1;
    return limit;
}

bool kp__identity_allows(const struct io_thread *io,
                         const struct sender_partition *sp, bool stamped)
{
    if (!io->settings->idempotence)
        return io->settings->max_in_flight > 1 || sp->on_wire == 0;
    /* A batch that has numbers goes alone until the leader has acknowledged
     * something: what is behind it must not arrive first. */
    if (stamped)
        return sp->on_wire == 0 || sp->ledger.proven;
    return kp__ledger_can_stamp(&sp->ledger, kp__identity_limit(io, sp));
}

static void give_numbers(struct sender_partition *sp, struct batch *b)
{
    struct ledger *l = &sp->ledger;
    struct ledger_entry *e;

    if (b->base_sequence < 0) {
        b->producer_id = l->producer_id;
        b->producer_epoch = l->epoch;
        b->base_sequence = kp__ledger_stamp(l, b, (int32_t)b->record_count);
        return;
    }
    e = kp__ledger_find(l, b);
    KP_CHECK(e != NULL);
    if (e != NULL)
        kp__ledger_sent(e);
}

void kp__stamp(struct io_thread *io, struct sender_partition *sp,
               struct batch *b)
{
    struct record_batch_header h = {
        .base_offset = 0,
        .partition_leader_epoch = -1,
        .magic = 2,
        .attributes = (int16_t)b->codec,
        .last_offset_delta = (int32_t)b->record_count - 1,
        .base_timestamp_ms = b->base_timestamp_ms,
        .max_timestamp_ms = b->max_timestamp_ms,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
        .record_count = (int32_t)b->record_count,
    };

    if (io->settings->idempotence) {
        give_numbers(sp, b);
        h.producer_id = b->producer_id;
        h.producer_epoch = b->producer_epoch;
        h.base_sequence = b->base_sequence;
    }
    kp__record_batch_encode(b->header, &h, b->wire_size, b->body_crc);
}
