/* SPDX-License-Identifier: BSD-2-Clause */
/* conn.c - a connection: requests in, one at a time; answers out, in order.
 *
 * As in Kafka's socket server the connection is mute while a request is being
 * handled: the next one is looked at when the answer is out and the throttle
 * time is over. */
#include <string.h>

#include "test/broker/internal.h"

static bool idle(const struct kb_conn *k)
{
    return k->current == NULL &&
           (kp__list_empty(&k->inbox) || k->ended || k->stalled);
}

static void drop_inbox(struct kb_conn *k)
{
    struct list_node *n;

    while ((n = kp__list_pop_front(&k->inbox)) != NULL)
        kb_free(KP_CONTAINER(n, struct kb_frame, in_inbox));
}

static void drop_output(struct kb_conn *k)
{
    while (k->out_first != NULL) {
        struct kb_output *o = k->out_first;

        k->out_first = o->next;
        kb_free(o);
    }
    k->out_last = NULL;
}

void kb_conn_free(struct kb_conn *k)
{
    drop_inbox(k);
    drop_output(k);
    kb_timer_stop(k->cluster, &k->timer);
    kb_timer_stop(k->cluster, &k->out_timer);
    kb_free(k->behind);
    kp__list_remove(&k->in_node);
    kp__list_remove(&k->in_cluster);
    kp__list_remove(&k->in_ready);
    kb_free(k);
}

void kb_conn_note_ready(struct kb_conn *k)
{
    if (!k->abandoned && !kp__node_linked(&k->in_ready))
        kp__list_push_back(&k->cluster->ready, &k->in_ready);
}

static void on_throttle_over(struct kb_cluster *c, struct kb_timer *t)
{
    struct kb_conn *k = KP_CONTAINER(t, struct kb_conn, timer);

    (void)c;
    k->muted = false;
    kb_conn_note_ready(k);
    kb_conn_pump(k);
}

static void on_output_due(struct kb_cluster *c, struct kb_timer *t)
{
    struct kb_conn *k = KP_CONTAINER(t, struct kb_conn, out_timer);
    const struct kb_output *o = k->out_first;

    while (o != NULL && o->due_ns <= c->now_ns)
        o = o->next;
    if (o != NULL)
        kb_timer_set(c, t, o->due_ns);
    kb_conn_note_ready(k);
}

void kb_conn_emit(struct kb_conn *k, enum kb_output_kind kind, const void *data,
                  size_t size, int64_t due_ns)
{
    struct kb_output *o;

    if (k->abandoned || k->ended)
        return;
    o = kb_alloc(sizeof(*o) + size);
    o->kind = kind;
    o->size = size;
    if (size > 0)
        memcpy(o->data, data, size);
    if (due_ns < k->last_due_ns)
        due_ns = k->last_due_ns;
    k->last_due_ns = due_ns;
    o->due_ns = due_ns;
    if (k->out_last != NULL)
        k->out_last->next = o;
    else
        k->out_first = o;
    k->out_last = o;
    if (due_ns > k->cluster->now_ns && !k->out_timer.node.in_heap)
        kb_timer_set(k->cluster, &k->out_timer, due_ns);
    kb_conn_note_ready(k);
}

void kb_conn_end(struct kb_conn *k, enum kb_output_kind kind)
{
    struct kb_request *q = k->current;

    kb_conn_emit(k, kind, NULL, 0, k->cluster->now_ns);
    k->ended = true;
    drop_inbox(k);
    if (q != NULL)
        kb_request_discard(q);
    kb_conn_note_ready(k);
    if (k->abandoned && !k->pumping)
        kb_conn_free(k);
}

static void end_by(struct kb_conn *k, enum kb_answer answer)
{
    if (answer == KB_ANSWER_CLOSE)
        kb_conn_end(k, KB_OUT_CLOSE);
    else if (answer == KB_ANSWER_RESET)
        kb_conn_end(k, KB_OUT_RESET);
    else if (answer != KB_ANSWER)
        k->stalled = true;
}

size_t kb_conn_room(const struct kb_conn *k)
{
    return k->counts && !k->ended && !k->stalled ? (size_t)k->take_left
                                                 : SIZE_MAX;
}

void kb_conn_took(struct kb_conn *k, size_t n, int64_t now_ns)
{
    kb_advance(k->cluster, now_ns);
    if (!k->counts || k->ended || k->stalled)
        return;
    k->take_left -= (int64_t)n;
    if (k->take_left <= 0)
        end_by(k, k->take_end);
}

struct kb_conn *kb_connect(struct kb_cluster *c, int32_t node_id, void *user,
                           int64_t now_ns)
{
    struct kb_node *n = kb_node_by_id(c, node_id);
    struct kb_action action;
    struct kb_conn *k;

    kb_advance(c, now_ns);
    if (n == NULL || !n->up)
        return NULL;
    n->connects++;
    n->open++;
    k = kb_alloc(sizeof(*k));
    k->cluster = c;
    k->node = n;
    k->user = user;
    k->timer.fn = on_throttle_over;
    k->out_timer.fn = on_output_due;
    kp__list_init(&k->inbox);
    kp__node_init(&k->in_ready);
    kp__node_init(&k->in_node);
    kp__node_init(&k->in_cluster);
    kp__list_push_back(&n->conns, &k->in_node);
    kp__list_push_back(&c->conns, &k->in_cluster);
    kb_decide_connect(c, n, user, &action);
    k->counts = action.has_take && action.take > 0;
    k->take_left = action.take;
    k->take_end = action.answer;
    if (!k->counts)
        end_by(k, action.answer);
    return k;
}

static bool may_handle(const struct kb_conn *k)
{
    return k->current == NULL && !k->ended && !k->stalled && !k->muted &&
           !k->node->paused;
}

/* May free k: the caller must not use it after this. */
void kb_conn_pump(struct kb_conn *k)
{
    struct list_node *n;

    if (k->pumping)
        return;
    k->pumping = true;
    while (may_handle(k) && (n = kp__list_pop_front(&k->inbox)) != NULL) {
        struct kb_frame *f = KP_CONTAINER(n, struct kb_frame, in_inbox);

        kb_request_begin(k, f, f->data, f->size, f->skimmed);
    }
    k->pumping = false;
    if (k->abandoned && idle(k))
        kb_conn_free(k);
}

static void enqueue(struct kb_conn *k, const void *data, size_t size,
                    bool skimmed)
{
    struct kb_frame *f = kb_alloc(sizeof(*f) + size);

    kp__node_init(&f->in_inbox);
    f->size = size;
    f->skimmed = skimmed;
    if (size > 0)
        memcpy(f->data, data, size);
    kp__list_push_back(&k->inbox, &f->in_inbox);
}

static void take_frame(struct kb_conn *k, const void *frame, size_t size,
                       bool skimmed, int64_t now_ns)
{
    struct kb_cluster *c = k->cluster;

    kb_advance(c, now_ns);
    if (k->ended || k->stalled)
        return;
    if (!may_handle(k) || !kp__list_empty(&k->inbox)) {
        enqueue(k, frame, size, skimmed);
        return;
    }
    k->pumping = true;
    kb_request_begin(k, NULL, frame, size, skimmed);
    k->pumping = false;
    kb_advance(c, now_ns);
}

void kb_conn_frame(struct kb_conn *k, const void *frame, size_t size,
                   int64_t now_ns)
{
    take_frame(k, frame, size, false, now_ns);
}

void kb_conn_skimmed_frame(struct kb_conn *k, const void *frame, size_t size,
                           int64_t now_ns)
{
    take_frame(k, frame, size, true, now_ns);
}

void kb_conn_bad_frame(struct kb_conn *k, int64_t now_ns)
{
    kb_advance(k->cluster, now_ns);
    if (!k->ended && !k->stalled)
        kb_conn_end(k, KB_OUT_CLOSE);
}

bool kb_conn_wants_input(const struct kb_conn *k)
{
    if (k->stalled)
        return true;
    return may_handle(k) && kp__list_empty(&k->inbox);
}

struct kb_output *kb_conn_output(struct kb_conn *k)
{
    struct kb_output *o = k->out_first;

    return o != NULL && o->due_ns <= k->cluster->now_ns ? o : NULL;
}

void kb_conn_pop(struct kb_conn *k)
{
    struct kb_output *o = k->out_first;

    if (o == NULL)
        return;
    k->out_first = o->next;
    if (k->out_first == NULL)
        k->out_last = NULL;
    kb_free(o);
}

struct kb_conn *kb_next_ready(struct kb_cluster *c)
{
    struct list_node *n = kp__list_pop_front(&c->ready);

    return n == NULL ? NULL : KP_CONTAINER(n, struct kb_conn, in_ready);
}

void *kb_conn_user(const struct kb_conn *k)
{
    return k->user;
}

int32_t kb_conn_node(const struct kb_conn *k)
{
    return k->node->id;
}

void kb_conn_close(struct kb_conn *k, bool process, int64_t now_ns)
{
    struct kb_cluster *c = k->cluster;

    /* First its own end, so that nothing due now still comes out of it. */
    k->abandoned = true;
    k->user = NULL;
    k->node->open--;
    kp__list_remove(&k->in_ready);
    drop_output(k);
    if (!process || k->ended || k->stalled) {
        drop_inbox(k);
        if (k->current != NULL)
            kb_request_discard(k->current);
    }
    if (idle(k))
        kb_conn_free(k);
    kb_advance(c, now_ns);
}

int kb_open_connections(const struct kb_cluster *c, int32_t node_id)
{
    int i, open = 0;

    for (i = 0; i < c->node_count; i++)
        if (node_id == -1 || c->nodes[i].id == node_id)
            open += c->nodes[i].open;
    return open;
}

int64_t kb_connects(const struct kb_cluster *c, int32_t node_id)
{
    int64_t sum = 0;
    int i;

    for (i = 0; i < c->node_count; i++)
        if (node_id == -1 || c->nodes[i].id == node_id)
            sum += c->nodes[i].connects;
    return sum;
}
