/* SPDX-License-Identifier: BSD-2-Clause */
/* server_socket.c - one accepted socket: bytes to the model and back.
 *
 * A socket is read only while the model would read from it, so that a busy,
 * throttled or paused broker fills the client's TCP window as a real one
 * does. Closed sockets are freed at the end of a turn, when no event points
 * to them. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/broker/internal.h"
#include "test/broker/server.h"

#define IOV_COUNT 64
#define READ_LARGE (SCRATCH_SIZE / 2)
#define REST_MAX 64         /* a skim leaves at most 60 bytes */
#define READ_SMALL 1024     /* when most of what comes is thrown away */
#define WORTH_SKIPPING 4096 /* bytes that pay for a system call */
#define FRAMES_A_TURN 256

static void update_interest(struct client_socket *k)
{
    bool read = k->conn != NULL && kb_conn_wants_input(k->conn);
    bool write = k->conn != NULL && kb_conn_output(k->conn) != NULL;
    struct epoll_event e = {.events = (read ? (uint32_t)EPOLLIN : 0) |
                                      (write ? (uint32_t)EPOLLOUT : 0),
                            .data = {.ptr = &k->watched}};

    if (read == k->want_read && write == k->want_write)
        return;
    k->want_read = read;
    k->want_write = write;
    (void)epoll_ctl(k->server->epoll_fd, EPOLL_CTL_MOD, k->watched.fd, &e);
}

void kb_server_socket_new(struct broker_server *s, int fd, int32_t node_id)
{
    struct client_socket *k = kb_alloc(sizeof(*k));
    struct epoll_event e = {.events = EPOLLIN, .data = {.ptr = &k->watched}};
    size_t max = (size_t)s->options.config.request_max_bytes;

    k->watched.kind = WATCHED_SOCKET;
    k->watched.fd = fd;
    k->server = s;
    k->discard = s->options.config.discard;
    k->want_read = true;
    kp__node_init(&k->in_server);
    kp__frames_init(&k->frames, max);
    kb_skim_init(&k->skim, max);
    k->conn = kb_connect(s->cluster, node_id, k, kb_server_now(s));
    if (k->conn == NULL || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e) != 0) {
        if (k->conn != NULL)
            kb_conn_close(k->conn, false, kb_server_now(s));
        (void)close(fd);
        kb_free(k);
        return;
    }
    kp__list_push_back(&s->sockets, &k->in_server);
}

void kb_server_socket_close(struct client_socket *k, bool reset)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};

    if (k->conn == NULL)
        return;
    if (reset)
        (void)setsockopt(k->watched.fd, SOL_SOCKET, SO_LINGER, &hard,
                         sizeof(hard));
    /* Closing is not enough: the child of a fork may hold the socket too, and then
     * epoll would go on to tell of it. */
    (void)epoll_ctl(k->server->epoll_fd, EPOLL_CTL_DEL, k->watched.fd, NULL);
    (void)close(k->watched.fd);
    k->watched.fd = -1;
    kb_conn_close(k->conn, true, kb_server_now(k->server));
    k->conn = NULL;
    kp__list_remove(&k->in_server);
    kp__list_push_back(&k->server->closed, &k->in_server);
}

void kb_server_free_closed(struct broker_server *s)
{
    struct list_node *n;

    while ((n = kp__list_pop_front(&s->closed)) != NULL) {
        struct client_socket *k =
            KP_CONTAINER(n, struct client_socket, in_server);

        kp__frames_fini(&k->frames);
        kb_skim_fini(&k->skim);
        kb_free(k->rest);
        kb_free(k);
    }
}

/* -- reading -- */

static bool would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* False: the connection has ended, or there is nothing now. */
static bool received(struct client_socket *k, ssize_t n)
{
    if (n > 0)
        return true;
    if (n == 0 || !would_block())
        kb_server_socket_close(k, false);
    return false;
}

static void give_frames(struct client_socket *k)
{
    const uint8_t *data;
    size_t size;
    enum frame_result r = FRAME_NONE;

    while (k->conn != NULL &&
           (r = kp__frames_next(&k->frames, &data, &size)) == FRAME_READY)
        kb_conn_frame(k->conn, data, size, kb_server_now(k->server));
    if (k->conn != NULL && r == FRAME_BAD)
        kb_conn_bad_frame(k->conn, kb_server_now(k->server));
}

static void read_whole(struct client_socket *k)
{
    int turns;

    for (turns = 0; turns < 16 && k->conn != NULL; turns++) {
        size_t room = 0;
        uint8_t *to;
        ssize_t n;

        if (!kb_conn_wants_input(k->conn))
            return;
        to = kp__frames_space(&k->frames, &room);
        if (to == NULL) {
            kb_server_socket_close(k, true);
            return;
        }
        if (room > kb_conn_room(k->conn))
            room = kb_conn_room(k->conn);
        n = recv(k->watched.fd, to, room, 0);
        if (!received(k, n))
            return;
        kp__frames_added(&k->frames, (size_t)n);
        give_frames(k);
        if (k->conn != NULL)
            kb_conn_took(k->conn, (size_t)n, kb_server_now(k->server));
        if ((size_t)n < room)
            return;
    }
}

static void keep_rest(struct client_socket *k, const uint8_t *data, size_t n)
{
    if (n > 0 && k->rest == NULL)
        k->rest = kb_alloc(REST_MAX);
    if (n > 0)
        memcpy(k->rest, data, n);
    k->rest_size = n;
}

/* Walk over n bytes; what is left over is kept for the next read. */
static void walk(struct client_socket *k, const uint8_t *data, size_t n)
{
    size_t used;

    for (;;) {
        enum kb_skim_result r = kb_skim_walk(&k->skim, data, n, &used);

        data += used;
        n -= used;
        if (kb_skim_skippable(&k->skim) > 0)
            k->last_skip = kb_skim_skippable(&k->skim);
        if (r == KB_SKIM_MORE)
            break;
        if (r == KB_SKIM_BAD) {
            kb_conn_bad_frame(k->conn, kb_server_now(k->server));
            n = 0;
            break;
        }
        if (k->skim.skimmed)
            kb_conn_skimmed_frame(k->conn, k->skim.kept, k->skim.kept_size,
                                  kb_server_now(k->server));
        else
            kb_conn_frame(k->conn, k->skim.kept, k->skim.kept_size,
                          kb_server_now(k->server));
    }
    keep_rest(k, data, n);
}

/* Drop a body in the kernel: TCP's MSG_TRUNC writes nothing.  The buffer is as
 * large as what is asked for all the same, for tools that do not know that.
 * False: nothing more to be had now. */
static bool drop_body(struct client_socket *k)
{
    size_t want;

    while (k->rest_size == 0 &&
           (want = kb_skim_skippable(&k->skim)) >= WORTH_SKIPPING) {
        ssize_t n;

        if (want > SCRATCH_SIZE)
            want = SCRATCH_SIZE;
        n = recv(k->watched.fd, k->server->scratch, want, MSG_TRUNC);
        if (!received(k, n))
            return false;
        kb_skim_skipped(&k->skim, (size_t)n);
        if ((size_t)n < want)
            return false;
    }
    return true;
}

static void read_skimming(struct client_socket *k)
{
    uint8_t *buffer = k->server->scratch;
    int turns;

    for (turns = 0; turns < FRAMES_A_TURN && k->conn != NULL; turns++) {
        size_t room = k->last_skip >= WORTH_SKIPPING ? READ_SMALL : READ_LARGE;
        ssize_t n;

        if (!kb_conn_wants_input(k->conn) || !drop_body(k))
            return;
        if (k->rest_size > 0)
            memcpy(buffer, k->rest, k->rest_size);
        n = recv(k->watched.fd, buffer + k->rest_size, room, 0);
        if (!received(k, n))
            return;
        walk(k, buffer, k->rest_size + (size_t)n);
        if ((size_t)n < room)
            return;
    }
}

/* -- writing -- */

static int gather(struct client_socket *k, struct iovec *v)
{
    struct kb_output *o = kb_conn_output(k->conn);
    int64_t now_ns = kb_now_ns(k->server->cluster);
    int n = 0;

    for (; o != NULL && o->kind == KB_OUT_BYTES && o->due_ns <= now_ns &&
           n < IOV_COUNT;
         o = o->next, n++) {
        size_t from = n == 0 ? k->written : 0;

        v[n].iov_base = o->data + from;
        v[n].iov_len = o->size - from;
    }
    return n;
}

static void account(struct client_socket *k, size_t n)
{
    struct kb_output *o;

    n += k->written;
    while ((o = kb_conn_output(k->conn)) != NULL && o->kind == KB_OUT_BYTES &&
           n >= o->size) {
        n -= o->size;
        kb_conn_pop(k->conn);
    }
    k->written = n;
}

/* False: the socket takes no more now, or is gone. */
static bool write_bytes(struct client_socket *k)
{
    struct iovec v[IOV_COUNT];
    struct msghdr m = {.msg_iov = v};
    int count = gather(k, v);
    ssize_t n;

    m.msg_iovlen = (size_t)count;
    n = sendmsg(k->watched.fd, &m, MSG_NOSIGNAL);
    if (n < 0) {
        if (!would_block())
            kb_server_socket_close(k, false);
        return false;
    }
    account(k, (size_t)n);
    return true;
}

/* A socket that is closed with something unread in it is reset. */
static void drop_unread(struct client_socket *k)
{
    int i;

    for (i = 0; i < 64; i++)
        if (recv(k->watched.fd, k->server->scratch, SCRATCH_SIZE, 0) <= 0)
            return;
}

void kb_server_socket_flush(struct client_socket *k)
{
    struct kb_output *o;

    while (k->conn != NULL && (o = kb_conn_output(k->conn)) != NULL) {
        if (o->kind == KB_OUT_BYTES) {
            if (!write_bytes(k))
                break;
        } else if (o->kind == KB_OUT_HALF_CLOSE) {
            (void)shutdown(k->watched.fd, SHUT_WR);
            kb_conn_pop(k->conn);
        } else {
            if (o->kind == KB_OUT_CLOSE)
                drop_unread(k);
            kb_server_socket_close(k, o->kind == KB_OUT_RESET);
        }
    }
    if (k->conn != NULL)
        update_interest(k);
}

void kb_server_socket_event(struct client_socket *k, uint32_t events)
{
    if (k->conn == NULL)
        return;
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
        if (!kb_conn_wants_input(k->conn) &&
            (events & (EPOLLHUP | EPOLLERR)) != 0)
            kb_server_socket_close(k, false);
        else if (k->discard)
            read_skimming(k);
        else
            read_whole(k);
    }
    if (k->conn != NULL)
        kb_server_socket_flush(k);
}
