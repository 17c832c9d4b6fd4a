/* SPDX-License-Identifier: BSD-2-Clause */
/* request.c - one request: decoded, perhaps delayed, handled, answered.
 *
 * A request belongs to its connection (as its `current`) from begin to end.
 * The bytes it was decoded from are kept only if it has to wait before it is
 * handled; what an answer needs later is in its arena. */
#include <string.h>

#include "test/broker/internal.h"
#include "test/support/writer_clear.h"

static struct kb_request *request_new(struct kb_cluster *c)
{
    struct kb_request *q = c->spare;

    if (q != NULL) {
        c->spare = NULL;
        return q;
    }
    q = kb_alloc(sizeof(*q));
    kp__arena_init(&q->arena);
    kp__writer_init(&q->out);
    return q;
}

static void request_release(struct kb_request *q)
{
    kp__arena_fini(&q->arena);
    kp__writer_fini(&q->out);
    kb_free(q);
}

static void request_recycle(struct kb_cluster *c, struct kb_request *q)
{
    struct arena arena = q->arena;
    struct writer out = q->out;

    if (c->spare != NULL) {
        request_release(q);
        return;
    }
    memset(q, 0, sizeof(*q));
    q->arena = arena;
    q->out = out;
    kp__arena_reset(&q->arena);
    writer_clear(&q->out);
    c->spare = q;
}

void kb_request_spare_free(struct kb_cluster *c)
{
    if (c->spare != NULL)
        request_release(c->spare);
    c->spare = NULL;
}

void kb_request_discard(struct kb_request *q)
{
    struct kb_cluster *c = q->conn->cluster;

    kb_timer_stop(c, &q->timer);
    kb_produce_unlink(q);
    if (q->step == KB_STEP_PARKED)
        c->parked--;
    kb_free(q->frame);
    if (q->conn->current == q)
        q->conn->current = NULL;
    request_recycle(c, q);
}

static void throttle(struct kb_conn *k, int32_t ms)
{
    if (ms <= 0 || k->ended)
        return;
    k->muted = true;
    kb_timer_set(k->cluster, &k->timer, k->cluster->now_ns + ms * KB_NS_PER_MS);
}

void kb_request_end(struct kb_request *q)
{
    struct kb_conn *k = q->conn;
    int32_t throttle_ms = q->throttle_ms;

    kb_request_discard(q);
    throttle(k, throttle_ms);
    kb_conn_note_ready(k);
    kb_conn_pump(k);
}

static void send_now(struct kb_request *q)
{
    struct kb_conn *k = q->conn;

    kb_answer_send(q);
    /* Ending the connection has discarded the request. */
    if (k->current == q)
        kb_request_end(q);
    else
        kb_conn_pump(k);
}

void kb_request_answer(struct kb_request *q)
{
    struct kb_cluster *c = q->conn->cluster;

    if (q->step == KB_STEP_PARKED)
        c->parked--;
    q->step = KB_STEP_ANSWERING;
    if (q->action.answer_ns > 0)
        kb_timer_set(c, &q->timer, c->now_ns + q->action.answer_ns);
    else
        send_now(q);
}

static void refuse(struct kb_request *q)
{
    struct kb_conn *k = q->conn;

    kb_conn_end(k, KB_OUT_CLOSE); /* discards q; k stays while it is pumped */
}

static void run(struct kb_request *q)
{
    q->step = KB_STEP_NONE;
    if (q->action.ignore) {
        q->no_answer = true;
        kb_request_answer(q);
    } else if (!kb_request_handle(q)) {
        refuse(q);
    }
}

static void on_request_timer(struct kb_cluster *c, struct kb_timer *t)
{
    struct kb_request *q = KP_CONTAINER(t, struct kb_request, timer);
    struct kb_conn *k = q->conn;

    (void)c;
    if (k->node->paused) {
        q->late = true; /* looked at again when the node goes on */
        return;
    }
    k->pumping = true; /* holds the connection while the request runs */
    if (q->step == KB_STEP_DELAYED)
        run(q);
    else if (q->step == KB_STEP_PARKED)
        kb_produce_finish(q);
    else
        send_now(q);
    k->pumping = false;
    kb_conn_pump(k);
}

void kb_request_resume(struct kb_request *q)
{
    if (q->late)
        kb_timer_set(q->conn->cluster, &q->timer, q->conn->cluster->now_ns);
    q->late = false;
}

/* Bytes that live only for this call are kept for a request that waits. */
static void delay(struct kb_request *q)
{
    struct kb_cluster *c = q->conn->cluster;

    q->step = KB_STEP_DELAYED;
    kb_timer_set(c, &q->timer, c->now_ns + q->action.process_ns);
}

static bool count_api(struct kb_request *q)
{
    struct kb_cluster *c = q->conn->cluster;
    struct kb_node *n = q->conn->node;
    struct kb_api_range *r = kb_node_api(n, q->header.api_key);
    ptrdiff_t at;

    if (r == NULL || r->max < 0 || !r->served)
        return false;
    at = r - n->apis;
    n->requests[at]++;
    if (q->header.version > c->versions_seen[at])
        c->versions_seen[at] = q->header.version;
    if (q->header.api_key == API_API_VERSIONS)
        return true; /* any version gets some answer */
    return q->header.version >= r->min && q->header.version <= r->max &&
           q->header.version >= q->api->min_version &&
           q->header.version <= q->api->max_version;
}

static bool decode_produce(struct kb_request *q, struct reader *r)
{
    return kp__schema_decode(q->api->request, r, &q->arena, q->header.version,
                             kp__api_flexible(q->api, q->header.version),
                             &q->produce) &&
           kp__reader_left(r) == 0;
}

static void peek_version(const uint8_t *data, size_t size,
                         struct request_header *h)
{
    struct reader r;

    kp__reader_init(&r, data, size);
    h->api_key = kp__read_i16(&r);
    h->version = kp__read_i16(&r);
    h->correlation_id = kp__read_i32(&r);
}

/* An ApiVersions of the future has a header we cannot know to the end. */
static bool from_the_future(const struct kb_request *q)
{
    return q->header.api_key == API_API_VERSIONS &&
           (q->header.version > q->api->max_version || q->header.version < 0);
}

static bool decode(struct kb_request *q)
{
    struct reader r;

    if (q->size < 8)
        return false;
    peek_version(q->data, q->size, &q->header);
    q->api = kp__api(q->header.api_key);
    if (q->api == NULL)
        return false;
    if (from_the_future(q))
        return count_api(q);
    kp__reader_init(&r, q->data, q->size);
    if (!count_api(q) || !kp__request_header_decode(&r, &q->header))
        return false;
    if (q->header.api_key == API_PRODUCE)
        return decode_produce(q, &r);
    return true;
}

void kb_request_begin(struct kb_conn *k, struct kb_frame *owned,
                      const uint8_t *data, size_t size, bool skimmed)
{
    struct kb_request *q = request_new(k->cluster);

    q->conn = k;
    q->frame = owned;
    q->data = data;
    q->size = size;
    q->skimmed = skimmed;
    q->timer.fn = on_request_timer;
    k->current = q;
    if (!decode(q)) {
        refuse(q);
        return;
    }
    kb_decide_request(q);
    if (q->action.process_ns > 0 && owned == NULL) {
        /* Once more, from bytes that stay. */
        kb_request_keep(q);
        if (!decode(q)) {
            refuse(q);
            return;
        }
    }
    if (q->action.process_ns > 0)
        delay(q);
    else
        run(q);
}

void kb_request_keep(struct kb_request *q)
{
    struct kb_frame *f = kb_alloc(sizeof(*f) + q->size);
    struct kb_node *n = q->conn->node;
    struct kb_api_range *r = kb_node_api(n, q->header.api_key);

    kp__node_init(&f->in_inbox);
    f->size = q->size;
    if (q->size > 0)
        memcpy(f->data, q->data, q->size);
    q->frame = f;
    q->data = f->data;
    n->requests[r - n->apis]--; /* decoding counts it again */
}

bool kb_request_handle(struct kb_request *q)
{
    switch (q->header.api_key) {
    case API_PRODUCE:
        return kb_produce_handle(q);
    case API_METADATA:
        return kb_metadata_handle(q);
    case API_API_VERSIONS:
        return kb_api_versions_handle(q);
    case API_INIT_PRODUCER_ID:
        return kb_init_producer_id_handle(q);
    default:
        return false;
    }
}

void kb_request_encode(struct kb_request *q, const void *response)
{
    size_t size;

    kp__write_i32(&q->out, 0);
    kp__response_header_encode(&q->out, q->header.api_key, q->header.version,
                               q->header.correlation_id);
    kp__schema_encode(q->api->response, &q->out, q->header.version,
                      kp__api_flexible(q->api, q->header.version), response);
    if (kp__writer_failed(&q->out) || q->out.buf.size < 4) {
        q->no_answer = true;
        return;
    }
    size = q->out.buf.size - 4;
    q->out.buf.data[0] = (uint8_t)(size >> 24);
    q->out.buf.data[1] = (uint8_t)(size >> 16);
    q->out.buf.data[2] = (uint8_t)(size >> 8);
    q->out.buf.data[3] = (uint8_t)size;
}

bool kb_request_body(struct kb_request *q, void *out)
{
    struct request_header skip;
    struct reader r;

    kp__reader_init(&r, q->data, q->size);
    return kp__request_header_decode(&r, &skip) &&
           kp__schema_decode(q->api->request, &r, &q->arena, q->header.version,
                             kp__api_flexible(q->api, q->header.version),
                             out) &&
           kp__reader_left(&r) == 0;
}

int64_t kb_requests(const struct kb_cluster *c, int32_t node_id, int16_t api)
{
    int64_t sum = 0;
    int i, a;

    for (i = 0; i < c->node_count; i++)
        for (a = 0; a < KB_API_RANGES; a++)
            if ((node_id == -1 || c->nodes[i].id == node_id) &&
                (api == -1 || c->nodes[i].apis[a].key == api))
                sum += c->nodes[i].requests[a];
    return sum;
}

int16_t kb_version_seen(const struct kb_cluster *c, int16_t api)
{
    int a;

    for (a = 0; a < KB_API_RANGES; a++)
        if (c->nodes[0].apis[a].key == api)
            return c->versions_seen[a];
    return -1;
}

int kb_parked(const struct kb_cluster *c)
{
    return c->parked;
}
