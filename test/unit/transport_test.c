/* SPDX-License-Identifier: BSD-2-Clause */
/* transport_test.c - real sockets on the loopback interface, both pollers. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "io_thread/env.h"
#include "lib/base/wait.h"
#include "test/support/main.h"

static const struct transport_ops *const tcp = &kp__tcp_transport;
static const struct poller_ops *const pollers[] = {&kp__system_poller,
                                                   &kp__poll_poller};
#define POLLERS 2

static int64_t now(void)
{
    return kp__now_ns(&kp__system_clock);
}

struct bench {
    const struct poller_ops *ops;
    struct poller *poller;
    struct wakeup wakeup;
    struct address address;
    int listener, peer; /* -1: none */
};

static void listen_on(struct bench *b, int family)
{
    struct sockaddr_storage sa;
    socklen_t size;

    memset(&sa, 0, sizeof sa);
    sa.ss_family = (sa_family_t)family;
    if (family == AF_INET) {
        ((struct sockaddr_in *)(void *)&sa)->sin_addr.s_addr =
            htonl(INADDR_LOOPBACK);
        size = sizeof(struct sockaddr_in);
    } else {
        ((struct sockaddr_in6 *)(void *)&sa)->sin6_addr = in6addr_loopback;
        size = sizeof(struct sockaddr_in6);
    }
    b->listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(b->listener, 0);
    ck_assert_int_eq(bind(b->listener, (void *)&sa, size), 0);
    ck_assert_int_eq(listen(b->listener, 4), 0);
    memset(&b->address, 0, sizeof b->address);
    b->address.size = sizeof b->address.sa;
    ck_assert_int_eq(
        getsockname(b->listener, (void *)&b->address.sa, &b->address.size), 0);
}

static void bench_init(struct bench *b, int which, int family)
{
    memset(b, 0, sizeof *b);
    b->peer = -1;
    b->ops = pollers[which];
    ck_assert_int_eq(kp__wakeup_init(&b->wakeup), 0);
    b->poller = b->ops->create(b->ops->arg, &b->wakeup);
    ck_assert_ptr_nonnull(b->poller);
    listen_on(b, family);
}

static void bench_fini(struct bench *b)
{
    b->ops->destroy(b->poller);
    kp__wakeup_fini(&b->wakeup);
    if (b->listener >= 0)
        (void)close(b->listener);
    if (b->peer >= 0)
        (void)close(b->peer);
}

/* Wait for an event of this owner; the events. */
static uint32_t wait_event(struct bench *b, const void *owner)
{
    struct poll_event e[8];
    int64_t end_ns = now() + 30 * KP_NS_PER_SEC;

    while (now() < end_ns) {
        int n = b->ops->wait(b->poller, now(), end_ns, e, 8);
        ck_assert_int_ge(n, 0);
        for (int i = 0; i < n; i++)
            if (e[i].owner == owner)
                return e[i].events;
    }
    ck_abort_msg("no event within 30 s");
    return 0;
}

static struct transport *begin(struct bench *b)
{
    struct transport *t = NULL;
    int err = 0;

    ck_assert_int_eq(tcp->connect(tcp->arg, &b->address, -1, -1,
                                  30 * KP_NS_PER_SEC, &t, &err),
                     KP_OK);
    ck_assert_int_eq(b->ops->add(b->poller, t, tcp, POLL_WRITE, t), 0);
    return t;
}

static struct transport *connected(struct bench *b)
{
    struct transport *t = begin(b);
    int err = 0;

    ck_assert_uint_eq(wait_event(b, t) & POLL_WRITE, POLL_WRITE);
    ck_assert_int_eq(tcp->finish(t, &err), IO_DONE);
    b->peer = accept(b->listener, NULL, NULL);
    ck_assert_int_ge(b->peer, 0);
    ck_assert_int_eq(b->ops->change(b->poller, t, tcp, POLL_READ, t), 0);
    return t;
}

static void end(struct bench *b, struct transport *t)
{
    b->ops->remove(b->poller, t, tcp);
    tcp->close(t);
}

static size_t write_all(struct transport *t, const void *data, size_t size)
{
    struct iovec v = {(void *)(uintptr_t)data, size};
    size_t n = 0;
    int err = 0;

    ck_assert_int_eq(tcp->writev(t, &v, 1, &n, &err), IO_DONE);
    return n;
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6,
                              .sin6_addr = in6addr_loopback};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool yes = fd >= 0 && bind(fd, (void *)&sa, sizeof sa) == 0;

    if (fd >= 0)
        (void)close(fd);
    return yes;
}

/* -- sockets -- */

START_TEST(bytes_go_both_ways)
{
    struct bench b;
    struct transport *t;
    char buf[16];
    struct iovec v[2] = {{(void *)(uintptr_t) "ka", 2},
                         {(void *)(uintptr_t) "fka", 3}};
    size_t n = 0;
    int err = 0;

    if (_i >= 2 && !has_ipv6())
        return; /* a machine without it */
    bench_init(&b, _i % 2, _i < 2 ? AF_INET : AF_INET6);
    t = connected(&b);
    ck_assert_int_eq(tcp->read(t, buf, sizeof buf, &n, &err), IO_AGAIN);
    ck_assert_int_eq(tcp->writev(t, v, 2, &n, &err), IO_DONE);
    ck_assert_uint_eq(n, 5);
    ck_assert_int_eq(read(b.peer, buf, sizeof buf), 5);
    ck_assert_mem_eq(buf, "kafka", 5);
    ck_assert_int_eq(write(b.peer, "log", 3), 3);
    ck_assert_uint_eq(wait_event(&b, t), POLL_READ);
    ck_assert_int_eq(tcp->read(t, buf, sizeof buf, &n, &err), IO_DONE);
    ck_assert_uint_eq(n, 3);
    ck_assert_mem_eq(buf, "log", 3);
    end(&b, t);
    ck_assert_int_eq(read(b.peer, buf, sizeof buf), 0);
    bench_fini(&b);
}
END_TEST

START_TEST(the_socket_is_set_up_as_it_should_be)
{
    struct bench b;
    struct transport *t;
    int value = 0, fd;
    socklen_t size = sizeof value;

    bench_init(&b, 0, AF_INET);
    t = connected(&b);
    fd = tcp->fd(t);
    ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size),
                     0);
    ck_assert_int_ne(value, 0);
    ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &size),
                     0);
    ck_assert_int_ne(value, 0);
#ifdef TCP_USER_TIMEOUT
    ck_assert_int_eq(
        getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
    ck_assert_int_eq(value, 30000);
#endif
    end(&b, t);
    bench_fini(&b);
}
END_TEST

START_TEST(buffers_are_sized_when_asked)
{
    struct bench b;
    struct transport *t = NULL;
    int value = 0, err = 0;
    socklen_t size = sizeof value;

    bench_init(&b, 0, AF_INET);
    ck_assert_int_eq(
        tcp->connect(tcp->arg, &b.address, 16384, 32768, 0, &t, &err), KP_OK);
    ck_assert_int_eq(
        getsockopt(tcp->fd(t), SOL_SOCKET, SO_SNDBUF, &value, &size), 0);
    ck_assert_int_eq(value, 2 * 16384); /* Linux doubles it */
    ck_assert_int_eq(
        getsockopt(tcp->fd(t), SOL_SOCKET, SO_RCVBUF, &value, &size), 0);
    ck_assert_int_eq(value, 2 * 32768);
    tcp->close(t);
    bench_fini(&b);
}
END_TEST

START_TEST(a_closed_port_refuses)
{
    struct bench b;
    struct transport *t = NULL;
    int err = 0;

    bench_init(&b, _i, AF_INET);
    (void)close(b.listener);
    b.listener = -1;
    if (tcp->connect(tcp->arg, &b.address, -1, -1, 0, &t, &err) == KP_OK) {
        ck_assert_int_eq(b.ops->add(b.poller, t, tcp, POLL_WRITE, t), 0);
        (void)wait_event(&b, t);
        ck_assert_int_eq(tcp->finish(t, &err), IO_ERROR);
        end(&b, t);
    }
    ck_assert_int_eq(err, ECONNREFUSED);
    bench_fini(&b);
}
END_TEST

START_TEST(a_full_socket_says_again_and_then_goes_on)
{
    struct bench b;
    struct transport *t;
    static char block[65536];
    char *buf = malloc(1 << 20);
    size_t sent = 0, n = 0;
    struct iovec v = {block, sizeof block};
    int err = 0;

    bench_init(&b, _i, AF_INET);
    t = connected(&b);
    while (tcp->writev(t, &v, 1, &n, &err) == IO_DONE)
        sent += n;
    ck_assert_int_eq(err, EAGAIN);
    ck_assert_uint_gt(sent, 0);
    ck_assert_int_eq(b.ops->change(b.poller, t, tcp, POLL_READ | POLL_WRITE, t),
                     0);
    while (sent > 0) {
        ssize_t got = read(b.peer, buf, 1 << 20);
        ck_assert_int_gt(got, 0);
        sent -= (size_t)got;
    }
    ck_assert_uint_eq(wait_event(&b, t), POLL_WRITE);
    ck_assert_uint_eq(write_all(t, "x", 1), 1);
    end(&b, t);
    bench_fini(&b);
    free(buf);
}
END_TEST

/* The default disposition of SIGPIPE kills: it must not come. */
START_TEST(writing_to_a_gone_peer_raises_no_signal)
{
    struct bench b;
    struct transport *t;
    struct iovec v = {(void *)(uintptr_t) "x", 1};
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    size_t n = 0;
    int err = 0;
    enum io_result result = IO_DONE;

    ck_assert(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    bench_init(&b, _i, AF_INET);
    t = connected(&b);
    ck_assert_int_eq(
        setsockopt(b.peer, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    ck_assert_int_eq(close(b.peer), 0);
    b.peer = -1;
    ck_assert_uint_eq(wait_event(&b, t) & POLL_READ, POLL_READ);
    for (int i = 0; i < 3 && result == IO_DONE; i++)
        result = tcp->writev(t, &v, 1, &n, &err);
    for (int i = 0; i < 3; i++)
        result = tcp->writev(t, &v, 1, &n, &err);
    ck_assert_int_eq(result, IO_ERROR);
    ck_assert_int_eq(err, EPIPE);
    end(&b, t);
    bench_fini(&b);
}
END_TEST

START_TEST(fin_is_closed_and_reset_is_an_error)
{
    struct bench b;
    struct transport *t;
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    char buf[8];
    size_t n = 0;
    int err = 0;

    bench_init(&b, _i % 2, AF_INET);
    t = connected(&b);
    if (_i >= 2)
        ck_assert_int_eq(
            setsockopt(b.peer, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    else
        ck_assert_int_eq(write(b.peer, "end", 3), 3);
    ck_assert_int_eq(close(b.peer), 0);
    b.peer = -1;
    ck_assert_uint_eq(wait_event(&b, t) & POLL_READ, POLL_READ);
    if (_i >= 2) {
        ck_assert_int_eq(tcp->read(t, buf, sizeof buf, &n, &err), IO_ERROR);
        ck_assert_int_eq(err, ECONNRESET);
    } else {
        ck_assert_int_eq(tcp->read(t, buf, sizeof buf, &n, &err), IO_DONE);
        ck_assert_uint_eq(n, 3);
        ck_assert_int_eq(tcp->read(t, buf, sizeof buf, &n, &err), IO_CLOSED);
    }
    end(&b, t);
    bench_fini(&b);
}
END_TEST

START_TEST(without_file_descriptors_an_attempt_fails)
{
    struct bench b;
    struct transport *t = NULL;
    struct rlimit old, none;
    int err = 0;

    bench_init(&b, 0, AF_INET);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 3;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(tcp->connect(tcp->arg, &b.address, -1, -1, 0, &t, &err),
                     KP_ECONNECT);
    ck_assert_int_eq(err, EMFILE);
    ck_assert_ptr_null(t);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    bench_fini(&b);
}
END_TEST

/* -- pollers -- */

START_TEST(a_wake_up_ends_the_wait_once)
{
    struct bench b;
    struct poll_event e[4];
    int64_t began_ns;

    bench_init(&b, _i, AF_INET);
    kp__wakeup_set(&b.wakeup);
    kp__wakeup_set(&b.wakeup);
    ck_assert_int_eq(b.ops->wait(b.poller, now(), KP_NEVER, e, 4), 1);
    ck_assert_ptr_null(e[0].owner);
    began_ns = now();
    ck_assert_int_eq(b.ops->wait(b.poller, began_ns, began_ns, e, 4), 0);
    bench_fini(&b);
}
END_TEST

START_TEST(waits_no_shorter_than_asked)
{
    struct bench b;
    struct poll_event e[4];

    bench_init(&b, _i, AF_INET);
    for (int64_t ns = 1; ns < 20 * KP_NS_PER_MS; ns = ns * 7 + 3) {
        int64_t began_ns = now();
        ck_assert_int_eq(b.ops->wait(b.poller, began_ns, began_ns + ns, e, 4),
                         0);
        ck_assert_int_ge(now() - began_ns, ns);
    }
    /* what is past is not waited for */
    ck_assert_int_eq(b.ops->wait(b.poller, now(), 0, e, 4), 0);
    bench_fini(&b);
}
END_TEST

static void ring(int signo)
{
    (void)signo;
}

START_TEST(a_signal_is_an_early_return)
{
    struct bench b;
    struct poll_event e[4];
    struct sigaction act;
    struct itimerval often = {.it_interval = {0, 1000}, .it_value = {0, 1000}};
    struct itimerval off = {{0, 0}, {0, 0}};
    int64_t end_ns;

    memset(&act, 0, sizeof act);
    act.sa_handler = ring; /* without SA_RESTART */
    ck_assert_int_eq(sigaction(SIGALRM, &act, NULL), 0);
    bench_init(&b, _i, AF_INET);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
    end_ns = now() + 50 * KP_NS_PER_MS;
    while (now() < end_ns)
        ck_assert_int_eq(b.ops->wait(b.poller, now(), end_ns, e, 4), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &off, NULL), 0);
    bench_fini(&b);
}
END_TEST

START_TEST(many_sockets_all_get_their_turn)
{
    struct bench b;
    struct transport *t[12];
    int peers[12];
    bool seen[12] = {false};
    size_t left = 12;
    struct poll_event e[3]; /* fewer than there are */
    int64_t end_ns = now() + 30 * KP_NS_PER_SEC;

    bench_init(&b, _i, AF_INET);
    for (size_t i = 0; i < 12; i++) {
        t[i] = connected(&b);
        peers[i] = b.peer;
        b.peer = -1;
        ck_assert_int_eq(write(peers[i], "x", 1), 1);
    }
    /* level-triggered and unread: those left over must come all the same */
    while (left > 0 && now() < end_ns) {
        int n = b.ops->wait(b.poller, now(), end_ns, e, 3);
        for (int k = 0; k < n; k++)
            for (size_t i = 0; i < 12; i++)
                if (e[k].owner == t[i] && !seen[i]) {
                    seen[i] = true;
                    left--;
                }
    }
    ck_assert_uint_eq(left, 0);
    for (size_t i = 0; i < 12; i++) {
        end(&b, t[(i * 5) % 12]); /* in another order */
        (void)close(peers[i]);
    }
    ck_assert_int_eq(b.ops->wait(b.poller, now(), 0, e, 3), 0);
    bench_fini(&b);
}
END_TEST

static Suite *transport_suite(void)
{
    Suite *s = suite_create("transport");
    TCase *t = tcase_create("tcp");

    tcase_add_loop_test(t, bytes_go_both_ways, 0, 4);
    tcase_add_test(t, the_socket_is_set_up_as_it_should_be);
    tcase_add_test(t, buffers_are_sized_when_asked);
    tcase_add_loop_test(t, a_closed_port_refuses, 0, POLLERS);
    tcase_add_loop_test(t, a_full_socket_says_again_and_then_goes_on, 0,
                        POLLERS);
    tcase_add_loop_test(t, writing_to_a_gone_peer_raises_no_signal, 0, POLLERS);
    tcase_add_loop_test(t, fin_is_closed_and_reset_is_an_error, 0, 4);
    tcase_add_test(t, without_file_descriptors_an_attempt_fails);
    suite_add_tcase(s, t);

    t = tcase_create("pollers");
    tcase_add_loop_test(t, a_wake_up_ends_the_wait_once, 0, POLLERS);
    tcase_add_loop_test(t, waits_no_shorter_than_asked, 0, POLLERS);
    tcase_add_loop_test(t, a_signal_is_an_early_return, 0, POLLERS);
    tcase_add_loop_test(t, many_sockets_all_get_their_turn, 0, POLLERS);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(transport_suite)
