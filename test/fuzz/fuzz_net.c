/* SPDX-License-Identifier: BSD-2-Clause */
/* fuzz_net.c - sockets in memory between the client and the broker model, and
 * what becomes of the answers on their way.  One thread.
 *
 * Invariant: what a connection will still bring stands in `out` from out_at
 * on; it is readable from readable_ns on. */
#include "test/fuzz/fuzz_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/list.h"

#define BEGIN_NS (1000 * KP_NS_PER_SEC)
#define WALL_BASE_MS INT64_C(1700000000000)
#define OUT_MAX ((size_t)1 << 20)

/* -- answers on their way -- */

static void put(struct fuzz_conn *c, const void *data, size_t size)
{
    if (size != 0 && c->out.size < OUT_MAX)
        kp__buf_append(&c->out, data, size);
}

static uint16_t two_bytes(struct fuzz_input *in)
{
    uint8_t high = fuzz_byte(in);

    return (uint16_t)(high << 8 | fuzz_byte(in));
}

static size_t place(struct fuzz_input *in, size_t size)
{
    return size != 0 ? two_bytes(in) % size : 0;
}

/* The honest frame's correlation id, and a body of the input's. */
static void put_other_body(struct fuzz_conn *c, const uint8_t *frame)
{
    uint8_t front[8];
    size_t most = two_bytes(c->net->input), size;
    const uint8_t *body = fuzz_bytes(c->net->input, most, &size);
    uint32_t whole = htonl((uint32_t)size + 4);

    memcpy(front, &whole, 4);
    memcpy(front + 4, frame + 4, 4);
    put(c, front, 8);
    put(c, body, size);
}

static void put_raw(struct fuzz_conn *c)
{
    size_t most = fuzz_byte(c->net->input), size;
    const uint8_t *bytes = fuzz_bytes(c->net->input, most, &size);

    put(c, bytes, size);
}

static void put_changed(struct fuzz_conn *c, const uint8_t *frame, size_t size)
{
    uint8_t *copy = fuzz_copy(frame, size);
    unsigned n = fuzz_byte(c->net->input) % 8 + 1;

    for (unsigned i = 0; i < n; i++)
        copy[place(c->net->input, size)] = fuzz_byte(c->net->input);
    put(c, copy, size);
    free(copy);
}

enum tampering {
    HONEST,
    CHANGED,
    OTHER_BODY,
    RAW,
    CUT,
    LOST,
    DOUBLED,
    LATE,
    RAW_BEFORE,
    RESET,
    TAMPERINGS
};

static void tamper(struct fuzz_conn *c, const uint8_t *frame, size_t size)
{
    struct fuzz_input *in = c->net->input;
    enum tampering how = (enum tampering)(fuzz_byte(in) % TAMPERINGS);

    if (how == CHANGED || how == OTHER_BODY || how == RAW || how == RAW_BEFORE)
        c->net->lied = true;
    switch (how) {
    case CHANGED:
        put_changed(c, frame, size);
        return;
    case OTHER_BODY:
        put_other_body(c, frame);
        return;
    case RAW:
        put_raw(c);
        return;
    case CUT:
        put(c, frame, place(in, size));
        c->fin = true;
        return;
    case LOST:
        return;
    case DOUBLED:
        put(c, frame, size);
        break;
    case LATE:
        c->readable_ns = c->net->now_ns + fuzz_byte(in) * 10 * KP_NS_PER_MS;
        break;
    case RAW_BEFORE:
        put_raw(c);
        break;
    case RESET:
        c->reset = true;
        return;
    default:
        break;
    }
    put(c, frame, size);
}

static void answer(struct fuzz_conn *c, const uint8_t *frame, size_t size)
{
    const struct fuzz_net *n = c->net;

    if (n->input->at < n->input->end && size >= 8)
        tamper(c, frame, size);
    else if (n->ending == ENDS_HONEST)
        put(c, frame, size);
    else if (n->ending == ENDS_CLOSED)
        c->fin = true;
}

/* -- the brokers' side -- */

static void end_broker(struct fuzz_conn *c)
{
    if (c->k != NULL)
        kb_conn_close(c->k, true, c->net->now_ns);
    c->k = NULL;
}

static bool feed(struct fuzz_conn *c)
{
    uint32_t size;

    if (c->k == NULL || c->in.size < 4)
        return false;
    memcpy(&size, c->in.data, 4);
    size = ntohl(size);
    /* the client's own frames are whole and sane */
    FUZZ_CHECK(size >= 8 && size <= OUT_MAX);
    if (c->in.size < 4 + (size_t)size)
        return false;
    kb_conn_frame(c->k, c->in.data + 4, size, c->net->now_ns);
    c->in.size -= 4 + (size_t)size;
    memmove(c->in.data, c->in.data + 4 + size, c->in.size);
    return true;
}

static void drain(struct fuzz_conn *c)
{
    struct kb_output *o;

    while (c->k != NULL && (o = kb_conn_output(c->k)) != NULL) {
        bool over = o->kind != KB_OUT_BYTES;

        if (over)
            c->fin = true;
        else
            answer(c, o->data, o->size);
        kb_conn_pop(c->k);
        if (over)
            end_broker(c);
    }
}

void fuzz_net_run(struct fuzz_net *n)
{
    kb_advance(n->cluster, n->now_ns);
    for (size_t i = 0; i < n->count; i++) {
        struct fuzz_conn *c = &n->conns[i];

        while (feed(c))
            continue;
        drain(c);
    }
    while (kb_next_ready(n->cluster) != NULL)
        continue;
}

int64_t fuzz_net_next_ns(const struct fuzz_net *n)
{
    int64_t at_ns = kb_next_event_ns(n->cluster);

    for (size_t i = 0; i < n->count; i++) {
        const struct fuzz_conn *c = &n->conns[i];

        if (!c->socket.closed && c->readable_ns > n->now_ns &&
            c->readable_ns < at_ns)
            at_ns = c->readable_ns;
    }
    return at_ns;
}

/* -- transport -- */

static kp_err t_connect(void *arg, const struct address *to,
                        int32_t send_buffer, int32_t receive_buffer,
                        int64_t user_timeout_ns, struct transport **out,
                        int *sys_errno)
{
    struct fuzz_net *n = arg;
    const uint8_t *sa = (const void *)&to->sa;
    struct fuzz_conn *c;

    (void)send_buffer;
    (void)receive_buffer;
    (void)user_timeout_ns;
    if (n->count == FUZZ_CONNS_MAX) {
        *sys_errno = ENETUNREACH;
        return KP_ECONNECT;
    }
    c = &n->conns[n->count++];
    c->net = n;
    kp__buf_init(&c->in);
    kp__buf_init(&c->out);
    /* whatever the address, a broker is there: perhaps not the one meant */
    c->k = kb_connect(n->cluster, sa[7] % 2 == 0 ? 2 : 1, c, n->now_ns);
    mem_net_add(&n->mem, &c->socket);
    *out = &c->socket;
    return KP_OK;
}

static struct fuzz_conn *conn_of(struct transport *t)
{
    mem_net_check_open(t);
    return KP_CONTAINER(t, struct fuzz_conn, socket);
}

static enum io_result t_finish(struct transport *t, int *sys_errno)
{
    (void)sys_errno;
    conn_of(t)->connected = true;
    return IO_DONE;
}

static enum io_result t_writev(struct transport *t, const struct iovec *iov,
                               int count, size_t *written, int *sys_errno)
{
    struct fuzz_conn *c = conn_of(t);

    if (c->reset || c->k == NULL) {
        *sys_errno = EPIPE;
        return IO_ERROR;
    }
    *written = 0;
    for (int i = 0; i < count; i++) {
        kp__buf_append(&c->in, iov[i].iov_base, iov[i].iov_len);
        *written += iov[i].iov_len;
    }
    return IO_DONE;
}

static bool is_readable(const struct fuzz_conn *c)
{
    return c->readable_ns <= c->net->now_ns &&
           (c->out.size > c->out_at || c->fin || c->reset);
}

static enum io_result t_read(struct transport *t, void *buf, size_t size,
                             size_t *got, int *sys_errno)
{
    struct fuzz_conn *c = conn_of(t);
    size_t left = c->out.size - c->out_at;

    *sys_errno = ECONNRESET;
    if (!is_readable(c))
        return IO_AGAIN;
    if (left == 0)
        return c->reset ? IO_ERROR : IO_CLOSED;
    *got = left < size ? left : size;
    memcpy(buf, c->out.data + c->out_at, *got);
    c->out_at += *got;
    return IO_DONE;
}

static void t_close(struct transport *t)
{
    end_broker(conn_of(t));
    mem_net_close(t);
}

static uint32_t ready(const struct transport *t)
{
    const struct fuzz_conn *c = KP_CONTAINER(t, const struct fuzz_conn, socket);
    uint32_t events = POLL_WRITE;

    if (c->connected && is_readable(c))
        events |= POLL_READ;
    return events & t->want;
}

/* -- the whole -- */

static int64_t mono_ns(void *arg)
{
    return ((const struct fuzz_net *)arg)->now_ns;
}

static int64_t wall_ms(void *arg)
{
    return WALL_BASE_MS + mono_ns(arg) / KP_NS_PER_MS;
}

struct io_env fuzz_net_env(struct fuzz_net *n)
{
    return (struct io_env){.clock = {mono_ns, mono_ns, wall_ms, n},
                           .seed = 1,
                           .transport = &n->transport,
                           .poller = &n->mem.poller,
                           .resolver = &n->mem.resolver};
}

struct fuzz_net *fuzz_net_create(struct fuzz_input *input,
                                 enum fuzz_ending ending)
{
    struct fuzz_net *n = calloc(1, sizeof(*n));
    struct kb_config c;

    FUZZ_CHECK(n != NULL);
    kb_config_default(&c);
    c.nodes = 2;
    c.auto_create = false;
    c.wall_base_ms = WALL_BASE_MS;
    n->now_ns = BEGIN_NS;
    n->input = input;
    n->ending = ending;
    n->cluster = kb_create(&c);
    kb_advance(n->cluster, n->now_ns);
    kb_node_address(n->cluster, 1, "10.0.0.1", 9092);
    kb_node_address(n->cluster, 2, "10.0.0.2", 9092);
    FUZZ_CHECK(kb_topic_create(n->cluster, "t", 2, 2, n->now_ns) == 0);
    mem_net_init(&n->mem, ready);
    n->transport = (struct transport_ops){
        t_connect, t_finish, t_writev, t_read, mem_net_fd, t_close, n};
    return n;
}

void fuzz_net_destroy(struct fuzz_net *n)
{
    for (size_t i = 0; i < n->count; i++) {
        FUZZ_CHECK(n->conns[i].socket.closed);
        kp__buf_fini(&n->conns[i].in);
        kp__buf_fini(&n->conns[i].out);
    }
    kb_destroy(n->cluster);
    free(n);
}
