/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker on real sockets: both ways in, both ways of reading, stopping and
 * starting nodes, ends of connections. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "test/broker/broker.h"
#include "test/broker/probe.h"
#include "test/support/main.h"

#define VERSION 12
#define LIMIT_MS 20000

static struct broker_server *s;

static void start(int nodes, bool discard)
{
    struct broker_options o;

    kp_broker_defaults(&o);
    o.config.nodes = nodes;
    o.config.discard = discard;
    s = kp_broker_start(&o);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(kp_broker_create_topic(s, "t", 2, 1), 0);
}

static void setup(void)
{
    start(2, false);
}

static void setup_discarding(void)
{
    start(1, true);
}

static void teardown(void)
{
    kp_broker_stop(s);
}

static int dial_v4(int32_t node)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    a.sin_port = htons((uint16_t)kp_broker_port(s, node));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static int dial_v6(int32_t node)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);

    a.sin6_port = htons((uint16_t)kp_broker_port(s, node));
    a.sin6_addr = in6addr_loopback;
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* In pieces, so that frames are cut. */
static void write_all(int fd, const uint8_t *data, size_t n, size_t piece)
{
    while (n > 0) {
        size_t now = n < piece ? n : piece;
        ssize_t sent = send(fd, data, now, MSG_NOSIGNAL);

        ck_assert_int_gt(sent, 0);
        data += sent;
        n -= (size_t)sent;
    }
}

/* False: the other side has ended it. */
static bool read_all(int fd, uint8_t *data, size_t n)
{
    while (n > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t got;

        ck_assert_msg(poll(&p, 1, LIMIT_MS) == 1, "nothing came");
        got = recv(fd, data, n, 0);
        if (got <= 0)
            return false;
        data += got;
        n -= (size_t)got;
    }
    return true;
}

static size_t read_frame(int fd, uint8_t *out, size_t capacity)
{
    size_t size;

    if (!read_all(fd, out, 4))
        return 0;
    size = (size_t)out[2] << 8 | out[3];
    ck_assert_uint_le(size + 4, capacity);
    ck_assert(read_all(fd, out + 4, size));
    return size + 4;
}

static uint8_t *request(int32_t partition, int32_t sequence, size_t value_size,
                        size_t *size)
{
    struct kb_probe_batch b;
    struct kb_probe_part part = {.topic = "t", .partition = partition};
    struct kb_probe_produce p = {.version = VERSION,
                                 .acks = -1,
                                 .timeout_ms = 1000,
                                 .correlation_id = sequence,
                                 .parts = &part,
                                 .count = 1};
    uint8_t *data, *frame;

    kb_probe_batch_default(&b);
    b.records = 3;
    b.producer_id = 1;
    b.epoch = 0;
    b.sequence = 3 * sequence;
    b.value_size = value_size;
    data = kb_probe_batch_make(&b, &part.size);
    part.records = data;
    frame = kb_probe_produce_request(&p, size);
    kb_probe_free(data);
    return frame;
}

static void send_request(int fd, int32_t sequence, size_t value_size,
                         size_t piece)
{
    size_t size;
    uint8_t *frame = request(0, sequence, value_size, &size);

    write_all(fd, frame, size, piece);
    kb_probe_free(frame);
}

static int16_t answer(int fd, int32_t sequence, int64_t offset)
{
    struct kb_probe_answer a;
    const struct produce_response_topic *t;
    const struct produce_response_partition *p;
    uint8_t frame[512];
    size_t n = read_frame(fd, frame, sizeof(frame));
    int16_t error;

    ck_assert_uint_gt(n, 0);
    ck_assert(kb_probe_decode(&a, API_PRODUCE, VERSION, frame, n));
    ck_assert_int_eq(a.correlation_id, sequence);
    t = a.body.produce.topics.items;
    p = t->partitions.items;
    error = p->error_code;
    ck_assert_int_eq(p->base_offset, offset);
    kb_probe_answer_fini(&a);
    return error;
}

static int64_t end_offset(void)
{
    struct kb_cluster *c = kp_broker_lock(s);
    int64_t end = kb_log_end(c, "t", 0);

    kp_broker_unlock(s);
    return end;
}

START_TEST(bootstrap_names_every_node)
{
    char want[100];

    (void)snprintf(want, sizeof(want), "127.0.0.1:%d,127.0.0.1:%d",
                   kp_broker_port(s, 1), kp_broker_port(s, 2));
    ck_assert_str_eq(kp_broker_bootstrap(s), want);
    ck_assert_int_eq(kp_broker_port(s, 3), -1);
}
END_TEST

/* Many requests on a wire, of several sizes, cut in several ways. */
static void pipeline(size_t value_size, size_t piece, int count)
{
    int fd = dial_v4(1), i;
    int64_t from = end_offset();

    ck_assert_int_ge(fd, 0);
    for (i = 0; i < count; i++) {
        send_request(fd, (int32_t)(from / 3) + i, value_size, piece);
        if (i >= 4)
            ck_assert_int_eq(
                answer(fd, (int32_t)(from / 3) + i - 4, from + 3 * (i - 4)), 0);
    }
    for (i = count - 4; i < count; i++)
        ck_assert_int_eq(answer(fd, (int32_t)(from / 3) + i, from + 3 * i), 0);
    ck_assert_int_eq(end_offset(), from + 3 * count);
    (void)close(fd);
}

START_TEST(requests_are_answered_in_order)
{
    pipeline(10, 100000, 200);
    pipeline(10, 7, 50);
    pipeline(2000, 1000, 50);
    pipeline(20000, 100000, 50);
    pipeline(200000, 100000, 10);
    pipeline(20000, 4099, 20);
    pipeline(10, 100000, 50);
}
END_TEST

START_TEST(ipv6)
{
    int fd = dial_v6(1);

    if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
        return; /* no IPv6 here */
    ck_assert_int_ge(fd, 0);
    send_request(fd, 0, 10, 1000);
    ck_assert_int_eq(answer(fd, 0, 0), 0);
    (void)close(fd);
}
END_TEST

START_TEST(bad_frames_end_the_connection)
{
    static const uint8_t bad[][8] = {{0xff, 0xff, 0xff, 0xff},
                                     {0, 0, 0, 0},
                                     {0x7f, 0xff, 0xff, 0xff},
                                     {'G', 'E', 'T', ' ', '/'},
                                     {0, 0, 0, 4, 1, 2, 3, 4}};
    int fd = dial_v4(1);
    uint8_t byte;

    write_all(fd, bad[_i], sizeof(bad[_i]), 8);
    ck_assert(!read_all(fd, &byte, 1));
    (void)close(fd);
}
END_TEST

static bool nobody(struct kb_cluster *c, void *arg)
{
    (void)arg;
    return kb_open_connections(c, -1) == 0;
}

static bool somebody(struct kb_cluster *c, void *arg)
{
    return kb_open_connections(c, 1) == *(int *)arg;
}

START_TEST(clients_that_leave)
{
    int fd[10], i, ten = 10;

    for (i = 0; i < 10; i++)
        fd[i] = dial_v4(1);
    ck_assert(kp_broker_wait(s, somebody, &ten, LIMIT_MS));
    for (i = 0; i < 10; i++) {
        if (i % 2 == 0)
            send_request(fd[i], 0, 10, 11);
        (void)close(fd[i]);
    }
    ck_assert(kp_broker_wait(s, nobody, NULL, LIMIT_MS));
    ck_assert_int_eq(end_offset(), 3); /* one, and four duplicates */
}
END_TEST

START_TEST(a_stopped_node_keeps_its_port)
{
    int fd = dial_v4(1), round;
    uint8_t byte;

    for (round = 0; round < 5; round++) {
        ck_assert_int_ge(fd, 0);
        kp_broker_stop_node(s, 1);
        ck_assert(!read_all(fd, &byte, 1)); /* reset */
        (void)close(fd);
        ck_assert_int_eq(dial_v4(1), -1);
        ck_assert_int_eq(errno, ECONNREFUSED);
        ck_assert_int_eq(dial_v6(1), -1);
        kp_broker_start_node(s, 1);
        fd = dial_v4(1);
        ck_assert_int_ge(fd, 0);
        send_request(fd, round, 10, 1000);
        ck_assert_int_eq(answer(fd, round, 3 * round), 0);
    }
    (void)close(fd);
}
END_TEST

/* Whose port it is that cannot be had, and what to do. */
START_TEST(a_port_that_is_taken_is_named)
{
    struct broker_options o;
    char want[64];

    kp_broker_defaults(&o);
    o.port = kp_broker_port(s, 2);
    errno = 0;
    ck_assert_ptr_null(kp_broker_start(&o));
    ck_assert_int_eq(errno, EADDRINUSE);
    (void)snprintf(want, sizeof(want), "127.0.0.1:%d: Address already in use; ",
                   o.port);
    ck_assert_ptr_eq(strstr(kp_broker_start_error(), want),
                     kp_broker_start_error());
    ck_assert_ptr_nonnull(strstr(kp_broker_start_error(), "--port"));
}
END_TEST

START_TEST(a_long_host_name_is_whole)
{
    struct broker_options o;
    struct broker_server *other;
    char host[250], want[600];

    memset(host, 'h', sizeof(host));
    host[sizeof(host) - 1] = '\0';
    kp_broker_defaults(&o);
    o.config.host = host;
    o.config.nodes = 2;
    other = kp_broker_start(&o);
    ck_assert_ptr_nonnull(other);
    (void)snprintf(want, sizeof(want), "%s:%d,%s:%d", host,
                   kp_broker_port(other, 1), host, kp_broker_port(other, 2));
    ck_assert_str_eq(kp_broker_bootstrap(other), want);
    kp_broker_stop(other);
}
END_TEST

START_TEST(delays_are_real)
{
    struct timespec before, after;
    int fd = dial_v4(1);
    int64_t ms;

    ck_assert_int_ge(kp_broker_add_rule(s, "api=produce answer_ms=120"), 0);
    ck_assert_int_eq(kp_broker_add_rule(s, "nonsense"), -1);
    (void)clock_gettime(CLOCK_MONOTONIC, &before);
    send_request(fd, 0, 10, 1000);
    ck_assert_int_eq(answer(fd, 0, 0), 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &after);
    ms = (after.tv_sec - before.tv_sec) * 1000 +
         (after.tv_nsec - before.tv_nsec) / 1000000;
    ck_assert_int_ge(ms, 119);
    (void)close(fd);
}
END_TEST

static void park(struct kb_cluster *c, void *arg)
{
    (void)arg;
    ck_assert_int_eq(kb_topic_create(c, "r", 1, 2, kb_now_ns(c)), 0);
    kb_follower_stall(c, "r", 0, 2, true, kb_now_ns(c));
}

static void unpark(struct kb_cluster *c, void *arg)
{
    (void)arg;
    kb_follower_stall(c, "r", 0, 2, false, kb_now_ns(c));
}

static bool parked(struct kb_cluster *c, void *arg)
{
    (void)arg;
    return kb_parked(c) == 1;
}

START_TEST(a_test_thread_lets_an_answer_out)
{
    struct kb_probe_batch b;
    struct kb_probe_part part = {.topic = "r"};
    struct kb_probe_produce p = {.version = VERSION,
                                 .acks = -1,
                                 .timeout_ms = 60000,
                                 .correlation_id = 4,
                                 .parts = &part,
                                 .count = 1};
    int fd = dial_v4(1);
    uint8_t *data, *frame;
    size_t size;

    kp_broker_with(s, park, NULL);
    kb_probe_batch_default(&b);
    data = kb_probe_batch_make(&b, &part.size);
    part.records = data;
    frame = kb_probe_produce_request(&p, &size);
    write_all(fd, frame, size, size);
    ck_assert(kp_broker_wait(s, parked, NULL, LIMIT_MS));
    kp_broker_with(s, unpark, NULL);
    ck_assert_int_eq(answer(fd, 4, 0), 0);
    kb_probe_free(data);
    kb_probe_free(frame);
    (void)close(fd);
}
END_TEST

START_TEST(faults_reach_the_socket)
{
    uint8_t buffer[64];
    int fd = dial_v4(1);

    ck_assert_int_ge(kp_broker_add_rule(s, "api=produce answer=cut at=9"), 0);
    send_request(fd, 0, 10, 1000);
    ck_assert(read_all(fd, buffer, 9));
    ck_assert(!read_all(fd, buffer, 1));
    (void)close(fd);
    ck_assert_int_ge(kp_broker_add_rule(s, "api=produce answer=reset"), 0);
    fd = dial_v4(1);
    send_request(fd, 1, 10, 1000);
    errno = 0;
    ck_assert(!read_all(fd, buffer, 1));
    ck_assert_int_eq(errno, ECONNRESET);
    (void)close(fd);
    ck_assert_int_ge(kp_broker_add_rule(s, "answer=half-close"), 0);
    fd = dial_v4(1);
    send_request(fd, 2, 10, 1000);
    ck_assert_int_eq(answer(fd, 2, 6), 0);
    ck_assert(!read_all(fd, buffer, 1));
    send_request(fd, 3, 10, 1000); /* it still listens */
    (void)shutdown(fd, SHUT_WR);
    ck_assert(kp_broker_wait(s, nobody, NULL, LIMIT_MS));
    ck_assert_int_eq(end_offset(), 12);
    (void)close(fd);
}
END_TEST

/* A connection that ends in the middle of what it is sent. */
START_TEST(reads_no_more_than_it_takes)
{
    int fd, taken;
    uint8_t byte;

    for (taken = 1; taken < 100; taken += 7) {
        char line[80];

        (void)snprintf(line, sizeof(line), "api=connect take=%d answer=%s",
                       taken, taken % 2 == 0 ? "close" : "reset");
        ck_assert_int_ge(kp_broker_add_rule(s, line), 0);
        fd = dial_v4(1);
        ck_assert_int_ge(fd, 0);
        send_request(fd, 0, 10, 1000);
        errno = 0;
        ck_assert(!read_all(fd, &byte, 1));
        ck_assert_int_eq(errno, taken % 2 == 0 ? 0 : ECONNRESET);
        (void)close(fd);
    }
    ck_assert_int_eq(end_offset(), 0);
    fd = dial_v4(1);
    send_request(fd, 0, 10, 1000);
    ck_assert_int_eq(answer(fd, 0, 0), 0);
    (void)close(fd);
}
END_TEST

/* What a broker that does not read lets a client write: some kilobytes with the
 * smallest receive buffer, and much more with the system's. */
START_TEST(a_small_receive_buffer_is_soon_full)
{
    static const uint8_t zeros[4096];
    int buffers[2] = {1, 1 << 20}, small = 2304;
    size_t took[2] = {0, 0};

    for (int i = 0; i < 2; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET};
        struct broker_options o;
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        struct pollfd full = {.fd = fd, .events = POLLOUT};

        kp_broker_defaults(&o);
        o.receive_buffer = buffers[i];
        teardown();
        s = kp_broker_start(&o);
        ck_assert_ptr_nonnull(s);
        kb_node_pause(kp_broker_lock(s), 1, true, 0);
        kp_broker_unlock(s);
        a.sin_port = htons((uint16_t)kp_broker_port(s, 1));
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
        /* the small one is to be full; the large one only may seem to be, on a
         * machine that stands still */
        while (took[i] < 200000 && poll(&full, 1, i == 0 ? 300 : 3000) == 1) {
            ssize_t n = send(fd, zeros, sizeof(zeros), MSG_DONTWAIT);

            took[i] += n > 0 ? (size_t)n : 0;
        }
        (void)close(fd);
    }
    ck_assert_uint_lt(took[0], 20000);
    ck_assert_uint_gt(took[1], 5 * took[0]);
}
END_TEST

START_TEST(not_read_while_throttled)
{
    size_t size, sent = 0;
    uint8_t *frame = request(0, 1, 50000, &size);
    int fd = dial_v4(1);
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    ck_assert_int_ge(kp_broker_add_rule(s, "api=produce throttle_ms=600000"),
                     0);
    send_request(fd, 0, 10, 1000);
    ck_assert_int_eq(answer(fd, 0, 0), 0);
    /* The window fills up: it takes no more. */
    while (poll(&p, 1, 300) == 1) {
        ssize_t n = send(fd, frame + sent % size, size - sent % size,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n <= 0)
            break;
        sent += (size_t)n;
        ck_assert_uint_lt(sent, 100u << 20);
    }
    ck_assert_int_eq(end_offset(), 3);
    kb_probe_free(frame);
    (void)close(fd);
}
END_TEST

START_TEST(many_start_and_stop)
{
    int i;

    for (i = 0; i < 20; i++) {
        struct broker_server *other = kp_broker_start(NULL);

        ck_assert_ptr_nonnull(other);
        kp_broker_stop(other);
    }
}
END_TEST

static Suite *broker_server_suite(void)
{
    Suite *suite = suite_create("broker_server");
    TCase *t = tcase_create("server");
    TCase *d = tcase_create("discarding server");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, bootstrap_names_every_node);
    tcase_add_test(t, requests_are_answered_in_order);
    tcase_add_test(t, ipv6);
    tcase_add_loop_test(t, bad_frames_end_the_connection, 0, 5);
    tcase_add_test(t, clients_that_leave);
    tcase_add_test(t, a_stopped_node_keeps_its_port);
    tcase_add_test(t, a_port_that_is_taken_is_named);
    tcase_add_test(t, a_long_host_name_is_whole);
    tcase_add_test(t, delays_are_real);
    tcase_add_test(t, a_test_thread_lets_an_answer_out);
    tcase_add_test(t, faults_reach_the_socket);
    tcase_add_test(t, reads_no_more_than_it_takes);
    tcase_add_test(t, a_small_receive_buffer_is_soon_full);
    tcase_add_test(t, not_read_while_throttled);
    tcase_add_test(t, many_start_and_stop);
    suite_add_tcase(suite, t);
    tcase_add_checked_fixture(d, setup_discarding, teardown);
    tcase_add_test(d, requests_are_answered_in_order);
    tcase_add_loop_test(d, bad_frames_end_the_connection, 0, 5);
    tcase_add_test(d, clients_that_leave);
    suite_add_tcase(suite, d);
    return suite;
}

KP_TEST_MAIN(broker_server_suite)
