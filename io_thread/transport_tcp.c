/* SPDX-License-Identifier: BSD-2-Clause */
/* transport_tcp.c - plain TCP as a byte stream.  I/O thread only.
 *
 * The socket never blocks, is closed on exec, raises no SIGPIPE; EINTR ends in
 * here.  A socket that cannot be had (EMFILE, ENFILE, ENOBUFS) is an attempt to
 * connect that failed, like any other. */
#include "io_thread/env.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* then SO_NOSIGPIPE below */
#endif

struct transport {
    int fd;
};

static int open_socket(int family)
{
    int fd;

#if defined(SOCK_NONBLOCK) && defined(SOCK_CLOEXEC)
    fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
#else
    fd = socket(family, SOCK_STREAM, 0);
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    }
#endif
    return fd;
}

static void set_int(int fd, int level, int option, int value)
{
    /* a wish: a system without the option works without it */
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

static void set_options(int fd, int32_t send_buffer, int32_t receive_buffer,
                        int64_t user_timeout_ns)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef SO_NOSIGPIPE
    set_int(fd, SOL_SOCKET, SO_NOSIGPIPE, 1);
#endif
#ifdef TCP_USER_TIMEOUT
    /* bytes that nobody acknowledges for so long end the connection: this
     * finds a peer that is gone without a word */
    if (user_timeout_ns > 0) {
        int64_t ms = kp__ns_to_ms_up(user_timeout_ns);
        set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
                ms > INT32_MAX ? INT32_MAX : (int)ms);
    }
#else
    (void)user_timeout_ns;
#endif
    if (send_buffer > 0)
        set_int(fd, SOL_SOCKET, SO_SNDBUF, send_buffer);
    if (receive_buffer > 0)
        set_int(fd, SOL_SOCKET, SO_RCVBUF, receive_buffer);
}

/* An interrupted connect(2) goes on by itself, like one that would block. */
static int start_connect(int fd, const struct address *to)
{
    if (connect(fd, (const void *)&to->sa, to->size) == 0)
        return 0;
    return errno == EINPROGRESS || errno == EINTR ? 0 : errno;
}

static kp_err tcp_connect(void *arg, const struct address *to,
                          int32_t send_buffer, int32_t receive_buffer,
                          int64_t user_timeout_ns, struct transport **out,
                          int *sys_errno)
{
    struct transport *t = kp__alloc(sizeof *t);
    int err;

    (void)arg;
    if (t == NULL) {
        *sys_errno = ENOMEM;
        return KP_ENOMEM;
    }
    t->fd = open_socket(to->sa.ss_family);
    if (t->fd < 0) {
        *sys_errno = errno;
        kp__free(t);
        return KP_ECONNECT;
    }
    set_options(t->fd, send_buffer, receive_buffer, user_timeout_ns);
    err = start_connect(t->fd, to);
    if (err != 0) {
        *sys_errno = err;
        (void)close(t->fd);
        kp__free(t);
        return KP_ECONNECT;
    }
    *out = t;
    return KP_OK;
}

/* A loopback connect to a port of the ephemeral range that nobody listens on
 * can meet itself (simultaneous open): that is no broker. */
static bool is_self(const struct sockaddr_storage *peer, int fd)
{
    struct sockaddr_storage own;
    socklen_t size = sizeof own;

    memset(&own, 0, sizeof own);
    return getsockname(fd, (void *)&own, &size) == 0 &&
           own.ss_family == peer->ss_family &&
           memcmp(&own, peer, sizeof own) == 0;
}

static enum io_result tcp_finish(struct transport *t, int *sys_errno)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof(int);
    int err = 0;

    if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &err, &size) != 0)
        err = errno;
    if (err != 0) {
        *sys_errno = err;
        return IO_ERROR;
    }
    memset(&peer, 0, sizeof peer);
    size = sizeof peer;
    if (getpeername(t->fd, (void *)&peer, &size) != 0) {
        if (errno == ENOTCONN)
            return IO_AGAIN;
        *sys_errno = errno;
        return IO_ERROR;
    }
    if (is_self(&peer, t->fd)) {
        *sys_errno = ECONNREFUSED;
        return IO_ERROR;
    }
    return IO_DONE;
}

/* What a failed call means. */
static enum io_result judge(int *sys_errno)
{
    *sys_errno = errno;
    switch (errno) {
    case EAGAIN:
#if EWOULDBLOCK != EAGAIN
    case EWOULDBLOCK:
#endif
    case ENOBUFS: /* the system is short of memory now: as if full */
    case ENOMEM:
        return IO_AGAIN;
    default:
        return IO_ERROR;
    }
}

static enum io_result tcp_writev(struct transport *t, const struct iovec *iov,
                                 int count, size_t *written, int *sys_errno)
{
    struct msghdr m;
    ssize_t n;

    memset(&m, 0, sizeof m);
    m.msg_iov = (struct iovec *)(uintptr_t)iov; /* only read from */
    m.msg_iovlen = (size_t)count;
    do
        n = sendmsg(t->fd, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return judge(sys_errno);
    *written = (size_t)n;
    return IO_DONE;
}

static enum io_result tcp_read(struct transport *t, void *buf, size_t size,
                               size_t *got, int *sys_errno)
{
    ssize_t n;

    do
        n = recv(t->fd, buf, size, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return judge(sys_errno);
    if (n == 0)
        return IO_CLOSED;
    *got = (size_t)n;
    return IO_DONE;
}

static int tcp_fd(const struct transport *t)
{
    return t->fd;
}

static void tcp_close(struct transport *t)
{
    (void)close(t->fd);
    kp__free(t);
}

const struct transport_ops kp__tcp_transport = {
    .connect = tcp_connect,
    .finish = tcp_finish,
    .writev = tcp_writev,
    .read = tcp_read,
    .fd = tcp_fd,
    .close = tcp_close,
    .arg = NULL,
};
