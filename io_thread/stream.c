/* SPDX-License-Identifier: BSD-2-Clause */
/* stream.c - bytes in and out of a node's socket.  I/O thread only.
 *
 * Invariant: the poller watches for reading while the connection is up, and
 * for writing exactly while the socket has refused bytes that stand in the
 * queue.  A connection that the poller cannot watch so is over: it would sleep
 * through what comes, or never sleep. */
#include <string.h>

#include "io_thread/client.h"

void kp__stream_watch(struct node *n, uint32_t want)
{
    struct network_client *c = n->client;
    int sys_errno;

    if (n->watched == want)
        return;
    sys_errno = c->env.poller->change(c->poller, n->transport, c->env.transport,
                                      want, n);
    if (sys_errno == 0)
        n->watched = want;
    else
        kp__connection_broken(n, sys_errno);
}

void kp__stream_wake(struct node *n)
{
    bool takes = n->writing == WRITING_FREE || n->writing == WRITING_DRAINING;

    if (takes && !kp__node_linked(&n->write_link) &&
        !kp__list_empty(&n->queue))
        kp__list_push_back(&n->client->writable, &n->write_link);
}

/* -- in -- */

static bool starts_with(const uint8_t *data, size_t size, const char *what)
{
    size_t n = strlen(what);

    return size >= n && memcmp(data, what, n) == 0;
}

/* What answers like this? */
static const char *guess(const uint8_t *d, size_t size)
{
    if (size >= 2 && (d[0] == 0x15 || d[0] == 0x16) && d[1] == 0x03)
        return ": it speaks TLS, see security.protocol";
    if (starts_with(d, size, "HTTP"))
        return ": it speaks HTTP, it is no Kafka listener";
    if (starts_with(d, size, "SSH-"))
        return ": it speaks SSH, it is no Kafka listener";
    return "";
}

static void bad_frame(struct node *n)
{
    const struct frame_reader *f = &n->frames;

    kp__node_fail_text(n, KP_EPROTO,
                       "%.100s: sent an answer of impossible size%s", n->name,
                       guess(f->buf.data + f->start, f->buf.size - f->start));
}

/* False: this connection is over. */
static bool take_frames(struct node *n, uint32_t *answers)
{
    uint32_t generation = n->generation;

    for (;;) {
        const uint8_t *data = NULL;
        size_t size = 0;

        switch (kp__frames_next(&n->frames, &data, &size)) {
        case FRAME_NONE:
            return true;
        case FRAME_BAD:
            bad_frame(n);
            kp__connection_lost(n, REQUEST_DISCONNECTED);
            return false;
        case FRAME_READY:
            break;
        }
        (*answers)++;
        if (!kp__requests_answer(n, data, size)) {
            if (n->generation == generation)
                kp__connection_lost(n, REQUEST_DISCONNECTED);
            return false;
        }
    }
}

static void count_in(struct node *n, size_t bytes)
{
    struct network_client *c = n->client;

    if (bytes == 0)
        return;
    n->used_ns = c->now_ns;
    kp__metrics_record(c->metrics, SENSOR_NETWORK_IO, 1, c->now_ns);
    kp__metrics_record(c->metrics, SENSOR_INCOMING_BYTES, (double)bytes,
                       c->now_ns);
    kp__metrics_record_node(c->metrics, n->metrics, NODE_INCOMING_BYTES,
                            (double)bytes, c->now_ns);
}

static void hung_up(struct node *n, enum io_result result, int sys_errno)
{
    char what[SYSTEM_TEXT_SIZE] = "closed the connection";

    if (result != IO_CLOSED)
        kp__system_error_text(sys_errno, what, sizeof what);
    if (n->state == CONNECTION_HANDSHAKE)
        kp__node_fail_text(n, KP_EDISCONNECT,
                           "%.100s: %s before it answered ApiVersions; older "
                           "than Kafka 0.10, or no plain Kafka listener",
                           n->name, what);
    else
        kp__node_fail_text(n, KP_EDISCONNECT, "%.100s: %s", n->name, what);
    kp__connection_lost(n, REQUEST_DISCONNECTED);
}

/* One read(2) and what it brought.  False: no more now, or the end. */
static bool read_once(struct node *n, size_t *total, bool *is_short,
                      uint32_t *answers)
{
    const struct transport_ops *ops = n->client->env.transport;
    size_t room = 0, got = 0;
    int sys_errno = 0;
    enum io_result result;
    uint8_t *space = kp__frames_space(&n->frames, &room);

    if (space == NULL) {
        kp__node_fail_text(n, KP_ENOMEM, "%.100s: no memory for its answer",
                           n->name);
        kp__connection_lost(n, REQUEST_DISCONNECTED);
        return false;
    }
    result = ops->read(n->transport, space, room, &got, &sys_errno);
    switch (result) {
    case IO_AGAIN:
        return false;
    case IO_CLOSED:
    case IO_ERROR:
        hung_up(n, result, sys_errno);
        return false;
    case IO_DONE:
        break;
    }
    kp__frames_added(&n->frames, got);
    *total += got;
    *is_short = got < room;
    return take_frames(n, answers);
}

static void read_some(struct node *n, bool stop_when_short, uint32_t *answers)
{
    size_t total = 0;
    bool is_short = false;

    while (total < READ_BURST && read_once(n, &total, &is_short, answers))
        if (is_short && stop_when_short)
            break; /* it is empty; if not, the poller says so */
    count_in(n, total);
}

void kp__stream_read(struct node *n, uint32_t *answers)
{
    if (kp__connection_is_up(n))
        read_some(n, false, answers);
}

/* -- the poller -- */

static void connect_event(struct node *n)
{
    const struct transport_ops *ops = n->client->env.transport;
    char text[ADDRESS_TEXT_SIZE], why[SYSTEM_TEXT_SIZE];
    int sys_errno = 0;

    switch (ops->finish(n->transport, &sys_errno)) {
    case IO_DONE:
        kp__connection_up(n);
        return;
    case IO_AGAIN:
        return;
    case IO_CLOSED:
    case IO_ERROR:
        break;
    }
    kp__address_text(&n->current, text);
    kp__system_error_text(sys_errno, why, sizeof why);
    kp__node_fail_text(n, KP_ECONNECT, "%.100s: %s: %s", n->name, text, why);
    kp__connection_lost(n, REQUEST_DISCONNECTED);
}

void kp__stream_event(struct node *n, uint32_t events, uint32_t *answers)
{
    if (n->state == CONNECTION_CONNECTING) {
        connect_event(n);
        return;
    }
    if (!kp__connection_is_up(n))
        return; /* of a socket that is closed by now */
    if ((events & POLL_WRITE) != 0 && n->writing == WRITING_BLOCKED) {
        n->writing = WRITING_DRAINING;
        kp__stream_wake(n);
    }
    if ((events & POLL_READ) != 0)
        read_some(n, true, answers);
}

/* -- out -- */

/* Pieces of queued requests, in order, from where writing stopped. */
static int gather(struct node *n, size_t *total)
{
    struct iovec *out = n->client->scratch;
    struct list_node *link = kp__list_first(&n->queue);
    int count = 0;

    *total = 0;
    for (; link != NULL; link = kp__list_next(&n->queue, link)) {
        const struct request *r = KP_CONTAINER(link, struct request, link);
        for (size_t i = r->iov_at; i < r->iov_count; i++) {
            if (count == IOV_BATCH || *total >= WRITE_BURST)
                return count;
            out[count] = r->iov[i];
            *total += out[count].iov_len;
            count++;
        }
    }
    return count;
}

/* The socket took n bytes of r at most; returns what is left of them. */
static size_t advance(struct request *r, size_t bytes)
{
    while (bytes > 0 && r->iov_at < r->iov_count) {
        struct iovec *v = &r->iov[r->iov_at];
        size_t part = bytes < v->iov_len ? bytes : v->iov_len;

        v->iov_base = (char *)v->iov_base + part;
        v->iov_len -= part;
        r->written += part;
        bytes -= part;
        if (v->iov_len == 0)
            r->iov_at++;
    }
    return bytes;
}

static void took(struct node *n, size_t bytes)
{
    while (bytes > 0) {
        struct request *r =
            KP_CONTAINER(kp__list_first(&n->queue), struct request, link);
        bytes = advance(r, bytes);
        if (r->written < r->total_size)
            return;
        kp__requests_sent(n, r);
    }
}

static void count_out(struct node *n, size_t bytes)
{
    struct network_client *c = n->client;

    n->used_ns = c->now_ns;
    kp__metrics_record(c->metrics, SENSOR_NETWORK_IO, 1, c->now_ns);
    kp__metrics_record(c->metrics, SENSOR_OUTGOING_BYTES, (double)bytes,
                       c->now_ns);
    kp__metrics_record_node(c->metrics, n->metrics, NODE_OUTGOING_BYTES,
                            (double)bytes, c->now_ns);
}

static void block(struct node *n)
{
    n->writing = WRITING_BLOCKED;
    kp__stream_watch(n, POLL_READ | POLL_WRITE);
}

/* Nothing waits for the socket any more. */
static void unblock(struct node *n)
{
    struct network_client *c = n->client;

    kp__stream_watch(n, POLL_READ);
    if (n->writing != WRITING_DRAINING)
        return;
    n->writing = WRITING_FREE;
    if (n->state == CONNECTION_READY)
        c->events.node_can_send(c->events.arg, n);
}

bool kp__stream_write(struct node *n)
{
    const struct transport_ops *ops = n->client->env.transport;
    size_t total, left = WRITE_BURST;
    bool any = false;

    if (n->writing == WRITING_BROKEN)
        return false; /* it broke while it stood in line */
    while (!kp__list_empty(&n->queue) && left > 0) {
        size_t written = 0;
        int count = gather(n, &total), sys_errno = 0;
        enum io_result result = ops->writev(n->transport, n->client->scratch,
                                            count, &written, &sys_errno);

        if (result == IO_AGAIN) {
            block(n);
            return any;
        }
        if (result != IO_DONE) {
            kp__connection_broken(n, sys_errno);
            return any;
        }
        any = any || written > 0;
        left -= written < left ? written : left;
        count_out(n, written);
        took(n, written);
        if (written < total) {
            block(n);
            return any;
        }
    }
    if (kp__list_empty(&n->queue))
        unblock(n);
    else
        kp__stream_wake(n);
    return any;
}
