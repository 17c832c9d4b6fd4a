/* SPDX-License-Identifier: BSD-2-Clause */
/* world_net.c - sockets in memory whose other ends are brokers of the model.
 *
 * A stream is a byte queue of which a growing part has arrived; what is
 * written at one moment arrives together, a latency later.  Invariant: the
 * model sees whole frames only, in order, and only when it would read. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/list.h"
#include "lib/wire/reader.h"
#include "test/support/world_state.h"

struct mark {
    int64_t at_ns;
    uint64_t end; /* bytes written so far, when it was made */
};

struct stream {
    uint8_t *data;
    uint64_t taken, arrived, written; /* since the beginning */
    struct mark *marks;
    size_t mark_count;
    int64_t fin_ns, reset_ns; /* when it arrives; KP_NEVER: none */
};

struct world_conn {
    struct transport socket;
    struct world *w;
    int32_t node;
    struct kb_conn *k; /* NULL: not there yet, or gone */
    int64_t connect_ns;
    bool connected, refused, silent;
    bool ended;       /* the broker's end is gone */
    struct stream to, from;
    size_t cut_after;
    bool cut_loses;
    struct known *known;
};

void *world_must(void *p)
{
    if (p == NULL)
        abort();
    return p;
}

/* -- streams -- */

static void stream_init(struct stream *s)
{
    memset(s, 0, sizeof(*s));
    s->fin_ns = s->reset_ns = KP_NEVER;
}

static void stream_write(struct stream *s, const void *data, size_t size,
                         int64_t at_ns)
{
    size_t held = (size_t)(s->written - s->taken);
    struct mark *last = s->mark_count > 0 ? &s->marks[s->mark_count - 1]
                                          : NULL;

    if (size == 0)
        return;
    s->data = world_must(realloc(s->data, held + size));
    memcpy(s->data + held, data, size);
    s->written += size;
    if (last != NULL && last->at_ns >= at_ns) {
        last->end = s->written; /* never before what was written earlier */
        return;
    }
    s->marks = world_must(
        realloc(s->marks, (s->mark_count + 1) * sizeof(*s->marks)));
    s->marks[s->mark_count++] = (struct mark){at_ns, s->written};
}

static void stream_take(struct stream *s, size_t size)
{
    memmove(s->data, s->data + size, (size_t)(s->written - s->taken) - size);
    s->taken += size;
}

static size_t stream_ready(const struct stream *s)
{
    return (size_t)(s->arrived - s->taken);
}

static bool stream_run(struct stream *s, int64_t now_ns)
{
    size_t n = 0;

    while (n < s->mark_count && s->marks[n].at_ns <= now_ns)
        s->arrived = s->marks[n++].end;
    if (n == 0)
        return false;
    s->mark_count -= n;
    memmove(s->marks, s->marks + n, s->mark_count * sizeof(*s->marks));
    return true;
}

/* After everything that was written. */
static int64_t after_all(const struct stream *s, int64_t at_ns)
{
    if (s->mark_count > 0 && s->marks[s->mark_count - 1].at_ns > at_ns)
        return s->marks[s->mark_count - 1].at_ns;
    return at_ns;
}

static void stream_lose(struct stream *s)
{
    s->mark_count = 0;
    s->written = s->arrived;
}

static int64_t min_ns(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct world_conn *conn_at(struct transport *t)
{
    return t != NULL ? KP_CONTAINER(t, struct world_conn, socket) : NULL;
}

static struct world_conn *first(const struct world *w)
{
    return conn_at(w->net.first);
}

static struct world_conn *next(const struct world_conn *c)
{
    return conn_at(c->socket.next);
}

static struct world_link *link_of(const struct world_conn *c)
{
    return &c->w->links[c->node];
}

/* -- ends -- */

/* The broker's end goes, now. */
static void end_broker(struct world_conn *c)
{
    if (c->k != NULL)
        kb_conn_close(c->k, true, c->w->now_ns);
    c->k = NULL;
    c->ended = true;
}

static void cut(struct world_conn *c, bool lose)
{
    if (lose) {
        stream_lose(&c->to);
        stream_lose(&c->from);
    }
    c->to.fin_ns = min_ns(c->to.fin_ns, after_all(&c->to, c->w->now_ns));
    c->from.reset_ns = after_all(&c->from, c->w->now_ns);
}

void world_cut(struct world *w, int32_t node, bool lose)
{
    for (struct world_conn *c = first(w); c != NULL; c = next(c))
        if ((node == -1 || c->node == node) && c->connected &&
            !c->socket.closed)
            cut(c, lose);
}

void world_uncut(struct world *w)
{
    for (struct world_conn *c = first(w); c != NULL; c = next(c))
        c->cut_after = SIZE_MAX;
}

/* -- transport -- */

static int32_t node_of(struct world *w, const struct address *to)
{
    struct sockaddr_in v4;

    (void)w;
    memcpy(&v4, &to->sa, sizeof(v4));
    return (int32_t)(ntohl(v4.sin_addr.s_addr) & 0xff);
}

static kp_err t_connect(void *arg, const struct address *to,
                        int32_t send_buffer, int32_t receive_buffer,
                        int64_t user_timeout_ns, struct transport **out,
                        int *sys_errno)
{
    struct world *w = arg;
    int32_t node = node_of(w, to);
    struct world_conn *c;

    (void)send_buffer;
    (void)receive_buffer;
    (void)user_timeout_ns;
    if (node >= 1 && node <= WORLD_NODES_MAX)
        w->connected_ns[node][w->connects[node]++ % 16] = w->now_ns;
    if (node < 1 || node > WORLD_NODES_MAX || w->links[node].unreachable) {
        *sys_errno = ENETUNREACH;
        return KP_ECONNECT;
    }
    c = world_must(calloc(1, sizeof(*c)));
    c->w = w;
    c->node = node;
    stream_init(&c->to);
    stream_init(&c->from);
    c->connect_ns = w->now_ns + link_of(c)->to_ns + link_of(c)->from_ns;
    c->silent = link_of(c)->silent;
    c->cut_after = link_of(c)->cut_after;
    c->cut_loses = link_of(c)->cut_loses;
    world_trace(w, "connect to node %d", (int)node);
    if (w->watches_wire)
        c->known = world_known_begin(w, node);
    mem_net_add(&w->net, &c->socket);
    *out = &c->socket;
    return KP_OK;
}

static struct world_conn *conn_of(struct transport *t)
{
    mem_net_check_open(t);
    return KP_CONTAINER(t, struct world_conn, socket);
}

static enum io_result t_finish(struct transport *t, int *sys_errno)
{
    struct world_conn *c = conn_of(t);
    struct world *w = c->w;

    if (c->silent || w->now_ns < c->connect_ns)
        return IO_AGAIN;
    if (!link_of(c)->refuses)
        c->k = kb_connect(w->cluster, c->node, c, w->now_ns);
    if (c->k == NULL) {
        c->refused = c->ended = true;
        *sys_errno = ECONNREFUSED;
        return IO_ERROR;
    }
    c->connected = true;
    return IO_DONE;
}

static size_t room(const struct world_conn *c)
{
    /* a broker that does not read lets them pile up */
    bool reads = c->k != NULL && kb_conn_wants_input(c->k);
    size_t held = (size_t)(c->to.written -
                           (reads ? c->to.arrived : c->to.taken));
    size_t window = link_of(c)->window;

    return held < window ? window - held : 0;
}

static enum io_result t_writev(struct transport *t, const struct iovec *iov,
                               int count, size_t *written, int *sys_errno)
{
    struct world_conn *c = conn_of(t);
    struct world *w = c->w;
    size_t left = room(c);
    uint64_t may = c->cut_after - c->to.written;
    bool cut_now = may <= left && may <= link_of(c)->write_step;

    if (count <= 0 || count > 1024)
        abort();
    if (c->from.reset_ns <= w->now_ns || c->ended) {
        *sys_errno = EPIPE;
        return IO_ERROR;
    }
    if (left > link_of(c)->write_step)
        left = link_of(c)->write_step;
    if (may < left)
        left = (size_t)may;
    *written = 0;
    for (int i = 0; i < count && left > 0; i++) {
        size_t n = iov[i].iov_len < left ? iov[i].iov_len : left;

        stream_write(&c->to, iov[i].iov_base, n,
                     w->now_ns + link_of(c)->to_ns);
        world_known_note(c->known, true, iov[i].iov_base, n);
        left -= n;
        *written += n;
    }
    if (*written == link_of(c)->write_step)
        w->short_writes++;
    if (cut_now && c->to.written == c->cut_after) {
        c->cut_after = SIZE_MAX;
        cut(c, c->cut_loses);
    }
    if (*written == 0) {
        *sys_errno = EAGAIN;
        return IO_AGAIN;
    }
    return IO_DONE;
}

static enum io_result t_read(struct transport *t, void *buf, size_t size,
                             size_t *got, int *sys_errno)
{
    struct world_conn *c = conn_of(t);
    size_t n = stream_ready(&c->from);

    if (n > 0) {
        n = n < size ? n : size;
        n = n < link_of(c)->read_step ? n : link_of(c)->read_step;
        memcpy(buf, c->from.data, n);
        world_known_note(c->known, false, c->from.data, n);
        stream_take(&c->from, n);
        *got = n;
        return IO_DONE;
    }
    if (c->from.reset_ns <= c->w->now_ns) {
        *sys_errno = ECONNRESET;
        return IO_ERROR;
    }
    if (c->from.fin_ns <= c->w->now_ns)
        return IO_CLOSED;
    *sys_errno = EAGAIN;
    return IO_AGAIN;
}

static void t_close(struct transport *t)
{
    struct world_conn *c = conn_of(t);

    world_trace(c->w, "the client closes a connection to node %d",
                (int)c->node);
    mem_net_close(t);
    c->to.fin_ns = min_ns(
        c->to.fin_ns, after_all(&c->to, c->w->now_ns + link_of(c)->to_ns));
    stream_lose(&c->from);
}

/* -- poller -- */

static uint32_t ready(const struct transport *t)
{
    const struct world_conn *c =
        KP_CONTAINER(t, const struct world_conn, socket);
    int64_t now_ns = c->w->now_ns;
    uint32_t events = 0;

    if (!c->connected)
        return !c->silent && !c->refused && c->connect_ns <= now_ns
                   ? POLL_READ | POLL_WRITE
                   : 0;
    if (c->from.reset_ns <= now_ns)
        return POLL_READ | POLL_WRITE;
    if (stream_ready(&c->from) > 0 || c->from.fin_ns <= now_ns)
        events |= POLL_READ;
    if (room(c) > 0)
        events |= POLL_WRITE;
    return events & t->want;
}

void world_break_poller(struct world *w, int times)
{
    w->net.failing_waits = times;
}

/* -- the brokers' side -- */

static bool feed(struct world_conn *c)
{
    struct world *w = c->w;
    struct reader r;
    int32_t size;

    if (c->k == NULL || stream_ready(&c->to) < 4)
        return false;
    kp__reader_init(&r, c->to.data, 4);
    size = kp__read_i32(&r);
    if (size < 0 || size > 200 * 1024 * 1024) {
        kb_conn_bad_frame(c->k, w->now_ns);
        return false;
    }
    if (stream_ready(&c->to) < 4 + (size_t)size || !kb_conn_wants_input(c->k))
        return false;
    world_seen_frame(w, c->node, c->to.data + 4, (size_t)size);
    kb_conn_frame(c->k, c->to.data + 4, (size_t)size, w->now_ns);
    stream_take(&c->to, 4 + (size_t)size);
    return true;
}

static bool drain(struct world_conn *c)
{
    struct world *w = c->w;
    int64_t at_ns = w->now_ns + link_of(c)->from_ns;
    struct kb_output *o;
    bool any = false;

    while (c->k != NULL && (o = kb_conn_output(c->k)) != NULL) {
        any = true;
        if (o->kind == KB_OUT_BYTES)
            stream_write(&c->from, o->data, o->size, at_ns);
        else if (o->kind == KB_OUT_RESET)
            c->from.reset_ns = after_all(&c->from, at_ns);
        else
            c->from.fin_ns = after_all(&c->from, at_ns);
        if (o->kind == KB_OUT_BYTES || o->kind == KB_OUT_HALF_CLOSE) {
            kb_conn_pop(c->k);
            continue;
        }
        kb_conn_pop(c->k);
        end_broker(c);
    }
    return any;
}

static bool run_conn(struct world_conn *c)
{
    int64_t now_ns = c->w->now_ns;
    bool any = false;

    if (!link_of(c)->stall_to)
        any = stream_run(&c->to, now_ns);
    while (feed(c))
        any = true;
    any = drain(c) || any;
    if (!link_of(c)->stall_from || c->from.reset_ns <= now_ns)
        any = stream_run(&c->from, now_ns) || any;
    if (c->k != NULL && c->to.fin_ns <= now_ns &&
        (!link_of(c)->stall_to || c->to.mark_count == 0)) {
        end_broker(c);
        any = true;
    }
    return any;
}

bool world_net_run(struct world *w)
{
    bool any = false;

    kb_advance(w->cluster, w->now_ns);
    for (struct world_conn *c = first(w); c != NULL; c = next(c))
        any = run_conn(c) || any;
    /* We look at all of them each time: nobody need tell us. */
    while (kb_next_ready(w->cluster) != NULL)
        any = true;
    return any;
}

static int64_t later_than(int64_t at_ns, int64_t now_ns)
{
    return at_ns > now_ns ? at_ns : KP_NEVER;
}

static int64_t stream_next(const struct stream *s, bool stalled,
                           int64_t now_ns)
{
    int64_t at_ns = min_ns(later_than(s->fin_ns, now_ns),
                           later_than(s->reset_ns, now_ns));

    if (!stalled && s->mark_count > 0)
        at_ns = min_ns(at_ns, s->marks[0].at_ns);
    return at_ns;
}

int64_t world_net_next_ns(const struct world *w)
{
    int64_t at_ns = kb_next_event_ns(w->cluster);

    for (const struct world_conn *c = first(w); c != NULL; c = next(c)) {
        if (c->socket.closed && c->ended)
            continue;
        if (!c->connected && !c->silent && !c->refused)
            at_ns = min_ns(at_ns, later_than(c->connect_ns, w->now_ns));
        at_ns = min_ns(at_ns, stream_next(&c->to, link_of(c)->stall_to,
                                          w->now_ns));
        at_ns = min_ns(at_ns, stream_next(&c->from, link_of(c)->stall_from,
                                          w->now_ns));
    }
    return at_ns;
}

/* -- the whole -- */

void world_net_init(struct world *w)
{
    mem_net_init(&w->net, ready);
    w->transport = (struct transport_ops){
        t_connect, t_finish, t_writev, t_read, mem_net_fd, t_close, w};
    for (int i = 0; i <= WORLD_NODES_MAX; i++)
        w->links[i] = (struct world_link){
            .window = 256 * 1024,
            .write_step = SIZE_MAX,
            .read_step = SIZE_MAX,
            .cut_after = SIZE_MAX,
        };
}

void world_net_fini(struct world *w)
{
    struct world_conn *c = first(w), *following;

    for (; c != NULL; c = following) {
        following = next(c);
        if (!c->socket.closed)
            world_fail(w, "I-33: a socket to node %d was never closed",
                       (int)c->node);
        end_broker(c);
        world_known_end(c->known);
        free(c->to.data);
        free(c->to.marks);
        free(c->from.data);
        free(c->from.marks);
        free(c);
    }
    free(w->notes);
}
