/* SPDX-License-Identifier: BSD-2-Clause */
/* network_client_test.c - connections, requests and their ends, on a network in
 * memory.  What the ids (N1 .. N10) ask stands in test/README.md. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io_thread/client.h"
#include "lib/base/mem.h"
#include "lib/base/wait.h"
#include "test/support/client_rig.h"
#include "test/support/main.h"

#define MS KP_NS_PER_MS
#define SEC KP_NS_PER_SEC

static struct fake_conn *conn(struct rig *r)
{
    struct fake_conn *c = fake_net_conn(r->net, "10.0.0.1", 9092);

    ck_assert_ptr_nonnull(c);
    return c;
}

static void answer_metadata(struct fake_conn *c, const struct fake_request *q,
                            int32_t throttle_ms)
{
    struct metadata_response a;
    struct metadata_broker b = {
        .node_id = 1, .host = {"10.0.0.1", 8}, .port = 9092};

    kp__schema_defaults(kp__api(API_METADATA)->response, &a);
    a.throttle_time_ms = throttle_ms;
    a.brokers = (struct array){&b, 1, false};
    fake_conn_answer(c, q, &a);
}

/* -- the handshake -- */

START_TEST(handshake_names_the_client_and_asks_in_the_highest_version)
{
    struct rig r;
    struct fake_request q;
    struct api_versions_request v;
    struct arena a;
    char version[16];

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    ck_assert_int_eq(q.header.api_key, API_API_VERSIONS);
    ck_assert_int_eq(q.header.version, 5);
    ck_assert_mem_eq(q.header.client_id.data, "rig", 3);
    kp__arena_init(&a);
    ck_assert(fake_request_decode(&q, &a, &v));
    ck_assert_uint_eq(v.client_software_name.size, 5);
    ck_assert_mem_eq(v.client_software_name.data, "libkp", 5);
    (void)snprintf(version, sizeof version, "%d.%d.%d", KP_VERSION_MAJOR,
                   KP_VERSION_MINOR, KP_VERSION_PATCH);
    ck_assert_uint_eq(v.client_software_version.size, strlen(version));
    ck_assert_mem_eq(v.client_software_version.data, version, strlen(version));
    /* a bootstrap address has no id to check */
    ck_assert_ptr_null(v.cluster_id.data);
    ck_assert_int_eq(v.node_id, -1);
    kp__arena_fini(&a);
    fake_conn_answer_versions(conn(&r), &q, -1, 0, 0);
    rig_turn(&r);
    ck_assert(kp__client_is_ready(rig_bootstrap_node(&r, 0)));
    ck_assert_uint_eq(r.ready, 1);
    rig_fini(&r);
}
END_TEST

START_TEST(handshake_carries_cluster_and_node_id_once_known)
{
    struct rig r;
    struct fake_request q;
    struct api_versions_request v;
    struct arena a;
    struct node *n;

    rig_init(&r, "10.0.0.9:1");
    r.settings.cluster_check = _i != 1;
    if (_i == 2) /* what could be done about it? */
        r.settings.recovery = RECOVERY_NONE;
    kp__client_set_cluster_id(r.client, "cluster", 7);
    n = kp__client_node(r.client, 3, "10.0.0.1", 8, 9092, NULL, 0);
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    kp__arena_init(&a);
    ck_assert(fake_request_decode(&q, &a, &v));
    if (_i == 0) {
        ck_assert_uint_eq(v.cluster_id.size, 7);
        ck_assert_mem_eq(v.cluster_id.data, "cluster", 7);
        ck_assert_int_eq(v.node_id, 3);
    } else {
        ck_assert_ptr_null(v.cluster_id.data);
        ck_assert_int_eq(v.node_id, -1);
    }
    kp__arena_fini(&a);
    rig_fini(&r);
}
END_TEST

/* The layout of version 0, whatever was asked. */
static void answer_unsupported(struct fake_conn *c,
                               const struct fake_request *q, int16_t named)
{
    struct fake_request plain = *q;
    struct api_versions_response a;
    struct api_version v = {API_API_VERSIONS, 0, named};

    plain.header.version = 0;
    kp__schema_defaults(kp__api(API_API_VERSIONS)->response, &a);
    a.error_code = KP_UNSUPPORTED_VERSION;
    if (named >= 0)
        a.api_keys = (struct array){&v, 1, false};
    fake_conn_answer(c, &plain, &a);
}

/* N3 */
START_TEST(n3_unsupported_version_is_asked_again_as_named)
{
    static const int16_t named[] = {3, 2, 0, -1, 7, 5};
    static const int16_t then[] = {3, 2, 0, 0, 0, 0};
    struct rig r;
    struct fake_request q;
    struct fake_conn *c;

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_turn(&r);
    c = conn(&r);
    ck_assert(fake_conn_request(c, &q));
    answer_unsupported(c, &q, named[_i]);
    rig_turn(&r);
    ck_assert(fake_conn_is_open(c)); /* on the same connection */
    ck_assert(fake_conn_request(c, &q));
    ck_assert_int_eq(q.header.version, then[_i]);
    fake_conn_answer_versions(c, &q, -1, 0, 0);
    rig_turn(&r);
    ck_assert_uint_eq(r.ready, 1);
    ck_assert_uint_eq(fake_net_attempts(r.net), 1);
    rig_fini(&r);
}
END_TEST

START_TEST(unsupported_even_in_version_0_is_an_end)
{
    struct rig r;
    struct fake_request q;
    struct fake_conn *c;

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_turn(&r);
    c = conn(&r);
    ck_assert(fake_conn_request(c, &q));
    answer_unsupported(c, &q, -1);
    rig_turn(&r);
    ck_assert(fake_conn_request(c, &q));
    ck_assert_int_eq(q.header.version, 0);
    answer_unsupported(c, &q, -1);
    rig_turn(&r);
    ck_assert(!fake_conn_is_open(c));
    ck_assert_uint_eq(r.down, 1);
    ck_assert_int_eq(r.down_err, KP_ENOTSUP);
    rig_fini(&r);
}
END_TEST

START_TEST(another_error_in_the_handshake_is_reported)
{
    struct rig r;
    struct fake_request q;
    struct api_versions_response a;
    kp_error e;

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    kp__schema_defaults(kp__api(API_API_VERSIONS)->response, &a);
    a.error_code = KP_INVALID_REQUEST;
    fake_conn_answer(conn(&r), &q, &a);
    rig_turn(&r);
    ck_assert_int_eq(r.down_err, KP_INVALID_REQUEST);
    ck_assert_int_eq(kp__status_get(&r.status, NULL, 0, &e),
                     KP_INVALID_REQUEST);
    ck_assert_ptr_nonnull(strstr(e.text, "INVALID_REQUEST"));
    ck_assert_ptr_nonnull(strstr(e.text, "10.0.0.1:9092"));
    rig_fini(&r);
}
END_TEST

/* How a peer ends a handshake that it does not like: FIN, RST, or silence until
 * we end it. */
static void end_handshake(struct rig *r, int how)
{
    if (how == 0)
        fake_conn_close(conn(r));
    else if (how == 1)
        fake_conn_reset(conn(r));
    else
        rig_run(r, 30 * SEC);
    rig_turn(r);
}

/* A peer that hangs up on, or never answers, our highest version is asked in
 * version 0 next, once; then from the top again. */
START_TEST(cut_off_handshake_is_tried_in_version_0_next)
{
    static const int16_t versions[] = {5, 0, 5, 0};
    struct rig r;
    struct fake_request q;
    struct node *n;

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    n = rig_bootstrap_node(&r, 0);
    for (size_t i = 0; i < 4; i++) {
        kp__client_connect(r.client, n, fake_net_now_ns(r.net));
        rig_turn(&r);
        ck_assert(fake_conn_request(conn(&r), &q));
        ck_assert_int_eq(q.header.version, versions[i]);
        end_handshake(&r, _i);
        ck_assert_uint_eq(r.down, i + 1);
        ck_assert_uint_eq(fake_net_open_count(r.net), 0);
        fake_net_advance_ns(r.net, 2 * SEC);
    }
    ck_assert_uint_eq(fake_net_attempts(r.net),
                      4); /* it asks no one by itself */
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_turn(&r);
    end_handshake(&r, _i);
    fake_net_advance_ns(r.net, 2 * SEC);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    ck_assert_int_eq(q.header.version, 0);
    fake_conn_answer_versions(conn(&r), &q, -1, 0, 0);
    rig_turn(&r);
    ck_assert(kp__client_is_ready(n));
    rig_fini(&r);
}
END_TEST

START_TEST(silent_handshake_says_so_after_request_timeout)
{
    struct rig r;
    struct node *n;
    kp_error e;

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    n = rig_bootstrap_node(&r, 0);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_run(&r, 29 * SEC);
    ck_assert_uint_eq(r.down, 0);
    ck_assert_int_eq(kp__status_get(&r.status, NULL, 0, &e), KP_OK);
    rig_run(&r, 2 * SEC);
    ck_assert_uint_eq(r.down, 1);
    ck_assert_int_eq(kp__status_get(&r.status, NULL, 0, &e), KP_ECONNECT);
    ck_assert_ptr_nonnull(strstr(e.text, "does not answer ApiVersions"));
    ck_assert(kp__client_is_unreachable(n));
    rig_fini(&r);
}
END_TEST

START_TEST(broker_too_old_is_refused_with_both_ranges)
{
    struct rig r;
    struct fake_request q;
    kp_error e;
    const char *text;

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    fake_conn_answer_versions(conn(&r), &q, API_PRODUCE, 0, 2);
    rig_turn(&r);
    ck_assert_uint_eq(r.down, 1);
    ck_assert_int_eq(r.down_err, KP_ENOTSUP);
    ck_assert_int_eq(kp__status_get(&r.status, NULL, 0, &e), KP_ENOTSUP);
    ck_assert_ptr_nonnull(
        strstr(e.text, "Produce versions 0-2, we speak 3-13"));
    ck_assert(rig_logged(&r, "versions 0-2, we speak 3-13"));
    ck_assert_int_eq(kp__node_error(rig_bootstrap_node(&r, 0), &text),
                     KP_ENOTSUP);
    ck_assert_ptr_nonnull(strstr(text, "older than Kafka 0.11"));
    ck_assert_uint_eq(fake_net_open_count(r.net), 0);
    rig_fini(&r);
}
END_TEST

START_TEST(senseless_ranges_are_passed_over)
{
    struct rig r;
    struct fake_request q;
    struct api_versions_response a;
    struct api_version v[] = {
        {API_PRODUCE, 5, 2},                          /* upside down */
        {API_PRODUCE, 3, 9},    {API_PRODUCE, 0, 13}, /* named again */
        {API_METADATA, -1, 13},                       /* negative */
        {API_METADATA, 0, 9},   {API_INIT_PRODUCER_ID, 0, INT16_MAX},
        {9999, 0, 1},
    };
    struct node *n;

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    n = rig_bootstrap_node(&r, 0);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    kp__schema_defaults(kp__api(API_API_VERSIONS)->response, &a);
    a.api_keys = (struct array){v, sizeof v / sizeof v[0], false};
    ck_assert_int_eq(kp__node_version(n, API_PRODUCE, INT16_MAX), -1);
    fake_conn_answer(conn(&r), &q, &a);
    rig_turn(&r);
    ck_assert_int_eq(kp__node_version(n, API_PRODUCE, INT16_MAX), 9);
    ck_assert_int_eq(kp__node_version(n, API_PRODUCE, 8), 8);
    ck_assert_int_eq(kp__node_version(n, API_PRODUCE, 2), -1);
    ck_assert_int_eq(kp__node_version(n, API_METADATA, INT16_MAX), 9);
    ck_assert_int_eq(kp__node_version(n, API_INIT_PRODUCER_ID, INT16_MAX), 6);
    ck_assert_int_eq(kp__node_version(n, 9999, INT16_MAX), -1);
    rig_fini(&r);
}
END_TEST

START_TEST(produce_by_topic_id_needs_metadata_with_ids)
{
    struct rig r;
    struct fake_request q;
    struct node *n;

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    n = rig_bootstrap_node(&r, 0);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    fake_conn_answer_versions(conn(&r), &q, API_METADATA, 0, 9);
    rig_turn(&r);
    ck_assert_int_eq(kp__node_version(n, API_PRODUCE, INT16_MAX), 12);
    rig_fini(&r);
}
END_TEST

/* -- requests -- */

START_TEST(request_goes_out_and_comes_back)
{
    struct rig r;
    struct fake_request q;
    struct probe p = {.decode = true};
    struct node *n;

    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    probe_send(&p, &r, n);
    ck_assert_uint_eq(r.client->request_count, 1);
    rig_turn(&r);
    ck_assert(r.wrote);
    ck_assert(fake_conn_request(conn(&r), &q));
    ck_assert_int_eq(q.header.api_key, API_METADATA);
    ck_assert_int_eq(q.header.version, 13);
    answer_metadata(conn(&r), &q, 0);
    rig_turn(&r);
    ck_assert_uint_eq(p.ends, 1);
    ck_assert_int_eq(p.end, REQUEST_ANSWERED);
    ck_assert_uint_eq(p.answer.brokers.count, 1);
    ck_assert_uint_eq(r.client->request_count, 0);
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

START_TEST(requests_are_answered_in_order_and_limited)
{
    struct rig r;
    struct fake_request q;
    struct probe p[4];
    struct node *n;

    memset(p, 0, sizeof p);
    rig_init(&r, "10.0.0.1:9092");
    r.settings.max_in_flight = 3;
    n = rig_connect(&r, "10.0.0.1", 9092);
    for (size_t i = 0; i < 3; i++) {
        ck_assert(kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
        probe_send(&p[i], &r, n);
    }
    ck_assert(!kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    rig_turn(&r);
    ck_assert(!kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    r.can_send = 0;
    for (size_t i = 0; i < 3; i++) {
        ck_assert(fake_conn_request(conn(&r), &q));
        answer_metadata(conn(&r), &q, 0);
    }
    rig_turn(&r);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(p[i].end, REQUEST_ANSWERED);
    ck_assert_int_lt(p[0].order, p[1].order);
    ck_assert_int_lt(p[1].order, p[2].order);
    ck_assert_uint_ge(r.can_send, 1);
    ck_assert(kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    for (size_t i = 0; i < 3; i++)
        probe_fini(&p[i]);
    rig_fini(&r);
}
END_TEST

/* N4 */
START_TEST(n4_nothing_is_sent_behind_a_partly_written_request)
{
    struct rig r;
    struct probe p = {0};
    struct node *n;

    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    fake_conn_limit_writes(conn(&r), SIZE_MAX, 10);
    probe_send(&p, &r, n);
    rig_turn(&r);
    ck_assert_uint_eq(p.request->written, 10);
    ck_assert(!kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    rig_turn(&r);
    ck_assert(!r.wrote); /* full: no busy loop */
    ck_assert_int_gt(r.deadline_ns, fake_net_now_ns(r.net));
    r.can_send = 0;
    fake_conn_limit_writes(conn(&r), SIZE_MAX, SIZE_MAX);
    rig_turn(&r);
    ck_assert_uint_eq(p.request->written, p.request->total_size);
    ck_assert_uint_eq(r.can_send, 1);
    ck_assert(kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    rig_fini(&r);
    ck_assert_int_eq(p.end, REQUEST_DISCONNECTED);
    probe_fini(&p);
}
END_TEST

/* Whatever sizes the socket takes and gives, the bytes are the same. */
START_TEST(any_sizes_of_reads_and_writes_do)
{
    struct rig r;
    struct fake_request q;
    struct probe p[2];
    struct node *n;
    size_t step = (size_t)_i;

    memset(p, 0, sizeof p);
    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    fake_conn_limit_writes(conn(&r), step, SIZE_MAX);
    fake_conn_limit_reads(conn(&r), step);
    p[1].splice = "spliced";
    probe_send(&p[0], &r, n);
    probe_send(&p[1], &r, n);
    for (int i = 0; i < 200; i++)
        rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    answer_metadata(conn(&r), &q, 0);
    ck_assert(fake_conn_request(conn(&r), &q));
    ck_assert_uint_ge(q.body_size, 7);
    ck_assert_mem_eq(q.body + q.body_size - 7, "spliced", 7);
    answer_metadata(conn(&r), &q, 0);
    for (int i = 0; i < 400; i++)
        rig_turn(&r);
    ck_assert_int_eq(p[0].end, REQUEST_ANSWERED);
    ck_assert_int_eq(p[1].end, REQUEST_ANSWERED);
    probe_fini(&p[0]);
    probe_fini(&p[1]);
    rig_fini(&r);
}
END_TEST

/* A poller that speaks of a socket which has nothing, and takes nothing: no
 * byte moves, nothing ends, and it would sleep for as long as before. */
START_TEST(readiness_that_is_none)
{
    struct rig r;
    struct fake_request q;
    struct probe p = {0};
    struct node *n;
    struct poll_event e = {.events = POLL_READ | POLL_WRITE};
    int64_t now_ns, deadline_ns;

    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    fake_conn_limit_writes(conn(&r), SIZE_MAX, 10);
    probe_send(&p, &r, n);
    rig_turn(&r);
    deadline_ns = r.deadline_ns;
    now_ns = fake_net_now_ns(r.net);
    ck_assert_int_gt(deadline_ns, now_ns);
    e.owner = n;
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_eq(kp__client_read(r.client, &e, 1, now_ns), 0);
        kp__client_timers(r.client, now_ns);
        ck_assert(!kp__client_write(r.client, now_ns));
        ck_assert_int_eq(kp__client_next_timer(r.client), deadline_ns);
    }
    ck_assert_uint_eq(p.request->written, 10);
    ck_assert_uint_eq(p.ends, 0);
    fake_conn_limit_writes(conn(&r), SIZE_MAX, SIZE_MAX);
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    answer_metadata(conn(&r), &q, 0);
    rig_turn(&r);
    ck_assert_int_eq(p.end, REQUEST_ANSWERED);
    ck_assert_uint_eq(r.down, 0);
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

/* The same while it connects: it is no more connected than it was. */
START_TEST(readiness_that_is_none_while_connecting)
{
    struct rig r;
    struct node *n;
    struct poll_event e = {.events = POLL_READ | POLL_WRITE};
    int64_t now_ns;

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_SILENT);
    n = rig_bootstrap_node(&r, 0);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_turn(&r);
    now_ns = fake_net_now_ns(r.net);
    e.owner = n;
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_eq(kp__client_read(r.client, &e, 1, now_ns), 0);
        kp__client_timers(r.client, now_ns);
        ck_assert(!kp__client_write(r.client, now_ns));
        ck_assert_int_ge(kp__client_next_timer(r.client), now_ns + 7 * SEC);
    }
    ck_assert_uint_eq(fake_net_attempts(r.net), 1);
    ck_assert_uint_eq(r.down, 0);
    rig_fini(&r);
}
END_TEST

START_TEST(more_pieces_than_one_write_takes)
{
    struct rig r;
    struct fake_request q;
    struct probe p = {0};
    struct node *n;
    char *text = malloc(5001);

    memset(text, 'x', 5000);
    text[4999] = 'y';
    text[5000] = 0;
    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    p.splice = text;
    probe_send(&p, &r, n);
    rig_turn(&r); /* all of it in one turn */
    ck_assert(fake_conn_request(conn(&r), &q));
    ck_assert_mem_eq(q.body + q.body_size - 5000, text, 5000);
    rig_fini(&r);
    probe_fini(&p);
    free(text);
}
END_TEST

START_TEST(a_request_without_an_answer_ends_when_it_is_written)
{
    struct rig r;
    struct probe p[2];
    struct node *n;

    memset(p, 0, sizeof p);
    rig_init(&r, "10.0.0.1:9092");
    r.settings.max_in_flight = 1;
    n = rig_connect(&r, "10.0.0.1", 9092);
    fake_conn_limit_writes(conn(&r), SIZE_MAX, 5);
    probe_init(&p[0], &r, n);
    p[0].request->expects_response = false;
    kp__client_send(r.client, n, p[0].request, fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert_uint_eq(p[0].ends, 0);
    fake_conn_limit_writes(conn(&r), SIZE_MAX, SIZE_MAX);
    rig_turn(&r);
    ck_assert_uint_eq(p[0].ends, 1);
    ck_assert_int_eq(p[0].end, REQUEST_SENT);
    ck_assert(kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    probe_send(&p[1], &r, n);
    rig_turn(&r);
    rig_fini(&r);
    ck_assert_int_eq(p[1].end, REQUEST_DISCONNECTED);
    probe_fini(&p[0]);
    probe_fini(&p[1]);
}
END_TEST

/* UNSENT as long as the transport has not taken the last byte; then it may have
 * been acted on. */
START_TEST(cut_at_every_byte_tells_sent_from_unsent)
{
    for (size_t room = 0;; room++) {
        struct rig r;
        struct probe p = {.splice = "abc"};
        struct node *n;
        size_t total;

        rig_init(&r, "10.0.0.1:9092");
        n = rig_connect(&r, "10.0.0.1", 9092);
        fake_conn_limit_writes(conn(&r), SIZE_MAX, room);
        probe_send(&p, &r, n);
        total = p.request->total_size;
        rig_turn(&r);
        fake_conn_reset(conn(&r));
        rig_turn(&r);
        rig_turn(&r);
        ck_assert_uint_eq(p.ends, 1);
        ck_assert_int_eq(p.end,
                         room < total ? REQUEST_UNSENT : REQUEST_DISCONNECTED);
        ck_assert_int_eq(p.err, KP_EDISCONNECT);
        ck_assert_uint_eq(r.down, 1);
        probe_fini(&p);
        rig_fini(&r);
        if (room == total)
            break;
    }
}
END_TEST

START_TEST(answer_before_the_end_counts)
{
    struct rig r;
    struct fake_request q;
    struct probe p[3];
    struct node *n;

    memset(p, 0, sizeof p);
    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    probe_send(&p[0], &r, n);
    probe_send(&p[1], &r, n);
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    answer_metadata(conn(&r), &q, 0);
    if (_i == 0) {
        fake_conn_close(conn(&r)); /* FIN behind the answer */
    } else {
        /* the write fails first, the answer is read all the same */
        fake_conn_break_writes(conn(&r));
        probe_send(&p[2], &r, n);
        (void)kp__client_write(r.client, fake_net_now_ns(r.net));
        ck_assert_uint_eq(p[0].ends, 0);
        kp__client_timers(r.client, fake_net_now_ns(r.net));
    }
    rig_turn(&r);
    rig_turn(&r);
    ck_assert_int_eq(p[0].end, REQUEST_ANSWERED);
    ck_assert_int_eq(p[1].end, REQUEST_DISCONNECTED);
    ck_assert_int_lt(p[0].order, p[1].order);
    if (_i == 1) {
        ck_assert_int_eq(p[2].end, REQUEST_UNSENT);
        ck_assert_int_lt(p[1].order, p[2].order);
    }
    ck_assert_uint_eq(r.down, 1);
    for (size_t i = 0; i < 3; i++)
        probe_fini(&p[i]);
    rig_fini(&r);
}
END_TEST

/* It would not be told when to go on, or be told without end. */
START_TEST(a_connection_that_cannot_be_watched_is_over)
{
    struct rig r;
    struct node *n;
    struct probe p;

    memset(&p, 0, sizeof p);
    rig_init(&r, "10.0.0.1:9092");
    if (_i == 0) { /* when it comes up */
        n = rig_bootstrap_node(&r, 0);
        fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
        fake_net_fail_changes(r.net, 1);
        kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    } else { /* when the socket is full */
        n = rig_connect(&r, "10.0.0.1", 9092);
        fake_conn_limit_writes(conn(&r), SIZE_MAX, 1);
        fake_net_fail_changes(r.net, 1);
        probe_send(&p, &r, n);
    }
    rig_turn(&r);
    rig_turn(&r);
    ck_assert_uint_eq(r.down, 1);
    ck_assert_int_eq(r.down_err, KP_EDISCONNECT);
    ck_assert_uint_eq(p.ends, (unsigned)_i);
    ck_assert_uint_eq(fake_net_open_count(r.net), 0);
    rig_run(&r, 2 * KP_NS_PER_SEC);
    (void)rig_connect(&r, "10.0.0.1", 9092);
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

/* One that breaks while it stands in line to be written to. */
START_TEST(a_broken_connection_is_written_to_no_more)
{
    size_t before, after;
    struct rig r;
    struct node *n;
    struct probe p;

    memset(&p, 0, sizeof p);
    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    (void)fake_conn_received(conn(&r), &before);
    probe_send(&p, &r, n);
    kp__connection_broken(n, ENOMEM);
    ck_assert(!kp__client_write(r.client, fake_net_now_ns(r.net)));
    (void)fake_conn_received(conn(&r), &after);
    ck_assert_uint_eq(after, before);
    ck_assert_int_eq(n->writing, WRITING_BROKEN);
    rig_turn(&r);
    ck_assert_uint_eq(r.down, 1);
    ck_assert_uint_eq(p.ends, 1);
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

/* N1 */
START_TEST(n1_a_late_answer_ends_the_connection_and_all_on_it)
{
    struct rig r;
    struct probe p[3];
    struct node *n;

    memset(p, 0, sizeof p);
    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    probe_send(&p[0], &r, n);
    rig_turn(&r);
    fake_net_advance_ns(r.net, 20 * SEC);
    fake_conn_limit_writes(conn(&r), SIZE_MAX, p[0].request->total_size + 5);
    probe_send(&p[1], &r, n);
    probe_send(&p[2], &r, n);
    rig_turn(&r);
    ck_assert_int_ne(p[1].request->sent_ns, 0);
    ck_assert_int_eq(p[2].request->sent_ns, 0);
    ck_assert_int_eq(r.deadline_ns, fake_net_now_ns(r.net) + 10 * SEC);
    rig_run(&r, 10 * SEC);
    ck_assert_int_eq(p[0].end, REQUEST_TIMED_OUT);
    ck_assert_int_eq(p[1].end, REQUEST_TIMED_OUT);
    ck_assert_int_eq(p[2].end, REQUEST_UNSENT);
    ck_assert_int_lt(p[0].order, p[1].order);
    ck_assert_int_lt(p[1].order, p[2].order);
    ck_assert_uint_eq(r.down, 1);
    ck_assert_uint_eq(fake_net_open_count(r.net), 0);
    ck_assert(kp__client_is_unreachable(n)); /* until it answers again */
    for (size_t i = 0; i < 3; i++)
        probe_fini(&p[i]);
    rig_fini(&r);
}
END_TEST

/* After a pause of the process all is late; what has been answered meanwhile is
 * not. */
START_TEST(an_answer_that_is_there_beats_the_deadline)
{
    struct rig r;
    struct fake_request q;
    struct probe p = {0};
    struct node *n;

    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    probe_send(&p, &r, n);
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    answer_metadata(conn(&r), &q, 0);
    fake_net_advance_ns(r.net, 60 * SEC);
    /* even if the poller's events are old */
    kp__client_timers(r.client, fake_net_now_ns(r.net));
    ck_assert_int_eq(p.end, REQUEST_ANSWERED);
    ck_assert_uint_eq(r.down, 0);
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

START_TEST(bytes_that_trickle_do_not_put_the_deadline_off)
{
    struct rig r;
    struct fake_request q;
    struct probe p = {0};
    struct node *n;
    struct writer w;
    struct metadata_response a;

    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    probe_send(&p, &r, n);
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    kp__schema_defaults(kp__api(API_METADATA)->response, &a);
    kp__writer_init(&w);
    fake_answer_bytes(&q, &a, &w);
    for (size_t i = 0; i < w.buf.size - 1 && p.ends == 0; i++) {
        fake_conn_send(conn(&r), w.buf.data + i, 1);
        rig_run(&r, 2 * SEC);
    }
    ck_assert_int_eq(p.end, REQUEST_TIMED_OUT);
    kp__writer_fini(&w);
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

START_TEST(a_version_the_node_does_not_speak_is_not_sent)
{
    struct rig r;
    struct fake_request q;
    struct probe p = {0};
    struct node *n;
    size_t size;

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    n = rig_bootstrap_node(&r, 0);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    fake_conn_answer_versions(conn(&r), &q, API_METADATA, 0, 8);
    rig_turn(&r);
    ck_assert(!fake_conn_request(conn(&r), &q)); /* all taken */
    probe_init(&p, &r, n);
    p.request->version = 9;
    kp__client_send(r.client, n, p.request, fake_net_now_ns(r.net));
    ck_assert_uint_eq(p.ends, 0); /* not inside the call */
    ck_assert_int_le(kp__client_next_timer(r.client), fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert_int_eq(p.end, REQUEST_UNSUPPORTED);
    ck_assert_int_eq(p.err, KP_ENOTSUP);
    (void)fake_conn_received(conn(&r), &size);
    ck_assert_uint_eq(size, 0);
    ck_assert(kp__client_is_ready(n));
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

/* -- throttling -- */

/* N2 */
START_TEST(n2_a_throttled_node_waits_and_others_do_not)
{
    struct rig r;
    struct fake_request q;
    struct probe p = {0};
    struct node *n, *other;

    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    other = kp__client_node(r.client, 2, "10.0.0.2", 8, 9092, NULL, 0);
    fake_net_listen(r.net, "10.0.0.2", 9092, FAKE_ACCEPTS);
    kp__client_connect(r.client, other, fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert(rig_shake(&r, fake_net_conn(r.net, "10.0.0.2", 9092)));
    probe_send(&p, &r, n);
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q));
    kp__client_throttle(r.client, p.request, 500);
    ck_assert(!kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    ck_assert(kp__client_can_send(r.client, other, fake_net_now_ns(r.net)));
    r.can_send = 0;
    rig_run(&r, 499 * MS);
    ck_assert(!kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    ck_assert_uint_eq(r.can_send, 0);
    rig_run(&r, 2 * MS);
    ck_assert(kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    ck_assert_uint_eq(r.can_send, 1);
    rig_fini(&r);
    probe_fini(&p);
}
END_TEST

START_TEST(throttling_puts_deadlines_off_and_has_a_limit)
{
    struct rig r;
    struct probe p = {0};
    struct node *n;

    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    probe_send(&p, &r, n);
    rig_turn(&r);
    kp__client_throttle(r.client, p.request, -5);
    ck_assert(kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    kp__client_throttle(r.client, p.request, 20000);
    rig_run(&r, 49 * SEC);
    ck_assert_uint_eq(p.ends, 0); /* 30 s, and 20 s of throttling */
    rig_run(&r, 2 * SEC);
    ck_assert_int_eq(p.end, REQUEST_TIMED_OUT);
    probe_fini(&p);
    fake_net_advance_ns(r.net, SEC);
    n = rig_connect(&r, "10.0.0.1", 9092);
    memset(&p, 0, sizeof p);
    probe_send(&p, &r, n);
    rig_turn(&r);
    kp__client_throttle(r.client, p.request, INT32_MAX);
    fake_net_advance_ns(r.net, 301 * SEC);
    ck_assert(kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    rig_fini(&r);
    probe_fini(&p);
}
END_TEST

START_TEST(old_versions_are_throttled_by_the_broker_itself)
{
    static const struct {
        int16_t key, version;
        bool waits;
    } rows[] = {
        {API_PRODUCE, 5, false},          {API_PRODUCE, 6, true},
        {API_METADATA, 5, false},         {API_METADATA, 6, true},
        {API_API_VERSIONS, 1, false},     {API_API_VERSIONS, 2, true},
        {API_INIT_PRODUCER_ID, 0, false}, {API_INIT_PRODUCER_ID, 1, true},
    };
    struct rig r;
    struct probe p = {0};
    struct node *n;

    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    probe_send(&p, &r, n);
    rig_turn(&r);
    p.request->api = kp__api(rows[_i].key);
    p.request->version = rows[_i].version;
    kp__client_throttle(r.client, p.request, 100);
    ck_assert_int_eq(kp__client_can_send(r.client, n, fake_net_now_ns(r.net)),
                     !rows[_i].waits);
    p.request->api = kp__api(API_METADATA);
    rig_fini(&r);
    probe_fini(&p);
}
END_TEST

/* -- hostile answers -- */

static void raw(struct rig *r, const char *bytes, size_t size)
{
    fake_conn_send(conn(r), bytes, size);
}

START_TEST(what_is_no_answer_ends_the_connection)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *says;
    } rows[] = {
        {"\xff\xff\xff\xff", 4, "impossible size"},
        {"\x7f\xff\xff\xff", 4, "impossible size"},
        {"\x06\x40\x00\x01", 4, "impossible size"}, /* 100 MiB + 1 */
        {"\0\0\0\0", 4, "header cannot be read"},
        {"\0\0\0\3\1\2\3", 7, "header cannot be read"},
        {"\x15\x03\x03\x00\x02\x02\x50", 7, "speaks TLS"},
        {"HTTP/1.1 400 Bad Request\r\n", 26, "speaks HTTP"},
        {"SSH-2.0-OpenSSH_9.2\r\n", 21, "speaks SSH"},
        {"\0\0\0\5\0\0\0\x63\0", 9, "another request"},
        /* the right id, and a tag section that does not end */
        {"\0\0\0\5\0\0\0\1\xff", 9, "header cannot be read"},
    };
    struct rig r;
    struct probe p = {.decode = true};
    struct node *n;

    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    probe_send(&p, &r, n);
    rig_turn(&r);
    raw(&r, rows[_i].bytes, rows[_i].size);
    rig_turn(&r);
    ck_assert_uint_eq(p.ends, 1);
    ck_assert_int_eq(p.end, REQUEST_DISCONNECTED);
    ck_assert_int_eq(p.err, KP_EPROTO);
    ck_assert_int_eq(r.down_err, KP_EPROTO);
    ck_assert(rig_logged(&r, rows[_i].says));
    ck_assert_uint_eq(fake_net_open_count(r.net), 0);
    /* backoff: not connected again at once */
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    ck_assert_uint_eq(fake_net_attempts(r.net), 1);
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

/* Two were asked, and the second one's answer comes first: none is matched, not
 * even the one that fits. */
START_TEST(answers_in_the_wrong_order_end_the_connection)
{
    struct rig r;
    struct fake_request q[2];
    struct probe p[2];
    struct node *n;

    memset(p, 0, sizeof p);
    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    probe_send(&p[0], &r, n);
    probe_send(&p[1], &r, n);
    rig_turn(&r);
    ck_assert(fake_conn_request(conn(&r), &q[0]));
    ck_assert(fake_conn_request(conn(&r), &q[1]));
    answer_metadata(conn(&r), &q[1], 0);
    answer_metadata(conn(&r), &q[0], 0);
    rig_turn(&r);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(p[i].ends, 1);
        ck_assert_int_eq(p[i].end, REQUEST_DISCONNECTED);
        ck_assert_int_eq(p[i].err, KP_EPROTO);
        probe_fini(&p[i]);
    }
    ck_assert(rig_logged(&r, "another request"));
    ck_assert_uint_eq(fake_net_open_count(r.net), 0);
    rig_fini(&r);
}
END_TEST

START_TEST(an_answer_to_nothing_ends_the_connection)
{
    struct rig r;
    struct fake_request q;
    struct probe p = {0};
    struct node *n;

    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    if (_i == 1) { /* twice the same */
        probe_send(&p, &r, n);
        rig_turn(&r);
        ck_assert(fake_conn_request(conn(&r), &q));
        answer_metadata(conn(&r), &q, 0);
        answer_metadata(conn(&r), &q, 0);
    } else {
        raw(&r, "\0\0\0\4\0\0\0\1", 8);
    }
    rig_turn(&r);
    if (_i == 1)
        ck_assert_int_eq(p.end, REQUEST_ANSWERED);
    ck_assert_int_eq(r.down_err, KP_EPROTO);
    ck_assert(!kp__client_is_ready(n));
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

/* Cut anywhere, an answer is none; nothing is read past its end. */
START_TEST(a_short_answer_ends_the_connection)
{
    size_t size = SIZE_MAX; /* known after the first round */

    for (size_t cut = 4; cut < size; cut++) {
        struct rig r;
        struct fake_request q;
        struct probe p = {.decode = true};
        struct metadata_response a;
        struct metadata_broker b = {
            .node_id = 1, .host = {"10.0.0.1", 8}, .port = 9092};
        struct writer w;
        struct node *n;

        rig_init(&r, "10.0.0.1:9092");
        n = rig_connect(&r, "10.0.0.1", 9092);
        probe_send(&p, &r, n);
        rig_turn(&r);
        ck_assert(fake_conn_request(conn(&r), &q));
        kp__schema_defaults(kp__api(API_METADATA)->response, &a);
        a.brokers = (struct array){&b, 1, false};
        kp__writer_init(&w);
        fake_answer_bytes(&q, &a, &w);
        size = w.buf.size;
        w.buf.data[2] = (uint8_t)((cut - 4) >> 8);
        w.buf.data[3] = (uint8_t)(cut - 4);
        fake_conn_send(conn(&r), w.buf.data, cut);
        rig_turn(&r);
        ck_assert_uint_eq(p.ends, 1);
        ck_assert_int_eq(r.down_err, KP_EPROTO);
        ck_assert_uint_eq(fake_net_open_count(r.net), 0);
        kp__writer_fini(&w);
        probe_fini(&p);
        rig_fini(&r);
    }
    ck_assert_uint_gt(size, 20);
    ck_assert_uint_lt(size, 200);
}
END_TEST

/* Any byte of the handshake's answer changed: ready or refused, never worse. */
START_TEST(spoilt_handshakes_do_no_harm)
{
    for (size_t bit = 0; bit < 8 * 60; bit++) {
        struct rig r;
        struct fake_request q;
        struct api_versions_response a;
        struct api_version v[] = {{API_PRODUCE, 3, 13}, {API_METADATA, 0, 13}};
        struct writer w;
        struct node *n;

        rig_init(&r, "10.0.0.1:9092");
        fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
        n = rig_bootstrap_node(&r, 0);
        kp__client_connect(r.client, n, fake_net_now_ns(r.net));
        rig_turn(&r);
        ck_assert(fake_conn_request(conn(&r), &q));
        kp__schema_defaults(kp__api(API_API_VERSIONS)->response, &a);
        a.api_keys = (struct array){v, 2, false};
        kp__writer_init(&w);
        fake_answer_bytes(&q, &a, &w);
        if (bit / 8 < w.buf.size) {
            w.buf.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
            fake_conn_send(conn(&r), w.buf.data, w.buf.size);
            fake_conn_close(conn(&r));
            rig_turn(&r);
            rig_turn(&r);
            ck_assert(!kp__client_is_ready(n)); /* it hung up at the end */
            ck_assert_uint_eq(r.down, 1);
        }
        kp__writer_fini(&w);
        rig_fini(&r);
    }
}
END_TEST

/* -- addresses, backoff, time-outs -- */

/* N8 */
START_TEST(n8_every_address_is_tried_before_it_has_failed)
{
    struct rig r;
    struct node *n;

    rig_init(&r, "kafka:9092");
    fake_net_name(r.net, "kafka", "10.0.0.1 10.0.0.2 ::1 10.0.0.4");
    fake_net_listen(r.net, "10.0.0.2", 9092, FAKE_UNREACHABLE);
    fake_net_listen(r.net, "10.0.0.4", 9092, FAKE_ACCEPTS);
    n = rig_bootstrap_node(&r, 0);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    for (int i = 0; i < 6; i++)
        rig_turn(&r);
    ck_assert_uint_eq(fake_net_attempts(r.net), 4);
    ck_assert_str_eq(fake_net_attempt(r.net, 0), "10.0.0.1:9092");
    ck_assert_str_eq(fake_net_attempt(r.net, 1), "10.0.0.2:9092");
    ck_assert_str_eq(fake_net_attempt(r.net, 2), "[::1]:9092");
    ck_assert_str_eq(fake_net_attempt(r.net, 3), "10.0.0.4:9092");
    ck_assert_uint_eq(r.down, 0);
    ck_assert(rig_shake(&r, fake_net_conn(r.net, "10.0.0.4", 9092)));
    ck_assert(kp__client_is_ready(n));
    rig_fini(&r);
}
END_TEST

/* What the system may have against an address. */
static const struct {
    enum fake_listener how;
    const char *says;
} noes[] = {
    {FAKE_REFUSES, "Connection refused"},
    {FAKE_UNREACHABLE, "Network is unreachable"},
    {FAKE_NO_ROUTE, "No route to host"},
    {FAKE_NO_ADDRESS, "Cannot assign requested address"},
    {FAKE_FORBIDDEN, "Permission denied"},
    {FAKE_NO_SOCKET, "Too many open files"},
};
#define NOES ((int)(sizeof noes / sizeof noes[0]))

/* Whatever it is, the next address of the name is tried in the same moment. */
START_TEST(each_no_of_connect_leads_to_the_next_address)
{
    struct rig r;
    struct node *n;
    int64_t began_ns;

    rig_init(&r, "kafka:9092");
    fake_net_name(r.net, "kafka", "10.0.0.1 10.0.0.2");
    fake_net_listen(r.net, "10.0.0.1", 9092, noes[_i].how);
    fake_net_listen(r.net, "10.0.0.2", 9092, FAKE_ACCEPTS);
    n = rig_bootstrap_node(&r, 0);
    began_ns = fake_net_now_ns(r.net);
    kp__client_connect(r.client, n, began_ns);
    for (int i = 0; i < 4; i++)
        rig_turn(&r);
    ck_assert_uint_eq(fake_net_attempts(r.net), 2);
    ck_assert_int_eq(fake_net_attempt_ns(r.net, 1), began_ns);
    ck_assert(rig_shake(&r, fake_net_conn(r.net, "10.0.0.2", 9092)));
    ck_assert(kp__client_is_ready(n));
    ck_assert_uint_eq(r.down, 0);
    rig_fini(&r);
}
END_TEST

/* An address of a family that leads nowhere costs one time-out of setting up,
 * not the attempt. */
START_TEST(a_family_that_is_black_leads_to_the_other)
{
    static const char *const order[] = {"2001:db8::1 10.0.0.2",
                                        "10.0.0.2 2001:db8::1"};
    const char *dead = _i == 0 ? "2001:db8::1" : "10.0.0.2";
    const char *alive = _i == 0 ? "10.0.0.2" : "2001:db8::1";
    struct rig r;
    struct node *n;

    rig_init(&r, "kafka:9092");
    fake_net_name(r.net, "kafka", order[_i]);
    fake_net_listen(r.net, dead, 9092, FAKE_SILENT);
    fake_net_listen(r.net, alive, 9092, FAKE_ACCEPTS);
    n = rig_bootstrap_node(&r, 0);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_run(&r, 7 * SEC);
    ck_assert_uint_eq(fake_net_attempts(r.net), 1);
    rig_run(&r, 6 * SEC); /* 10 s, give or take a fifth */
    ck_assert_uint_eq(fake_net_attempts(r.net), 2);
    ck_assert(rig_shake(&r, fake_net_conn(r.net, alive, 9092)));
    ck_assert(kp__client_is_ready(n));
    ck_assert_uint_eq(r.down, 0);
    rig_fini(&r);
}
END_TEST

/* A name that is not there yet keeps nobody from the next one, and is looked up
 * again. */
START_TEST(a_name_that_comes_late_is_found)
{
    struct rig r;
    struct node *late, *there;

    rig_init(&r, "late:9092 there:9092");
    fake_net_name(r.net, "there", "10.0.0.2");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    fake_net_listen(r.net, "10.0.0.2", 9092, FAKE_ACCEPTS);
    late = rig_bootstrap_node(&r, 0);
    there = rig_bootstrap_node(&r, 1);
    for (int i = 0; i < 10 && fake_net_lookups(r.net) < 2; i++) {
        (void)kp__client_least_loaded(r.client, fake_net_now_ns(r.net));
        rig_turn(&r);
    }
    kp__client_connect(r.client, late, fake_net_now_ns(r.net));
    for (int i = 0; i < 3; i++)
        rig_turn(&r);
    ck_assert_uint_eq(r.down, 1); /* in no time at all */
    ck_assert_int_eq(r.down_err, KP_ERESOLVE);
    ck_assert(rig_shake(&r, fake_net_conn(r.net, "10.0.0.2", 9092)));
    ck_assert(kp__client_is_ready(there));
    fake_net_name(r.net, "late", "10.0.0.1");
    kp__client_connect(r.client, late, fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert_ptr_null(fake_net_conn(r.net, "10.0.0.1", 9092)); /* backoff */
    rig_run(&r, 100 * MS);
    ck_assert(rig_shake(&r, fake_net_conn(r.net, "10.0.0.1", 9092)));
    ck_assert(kp__client_is_ready(late));
    rig_fini(&r);
}
END_TEST

START_TEST(n8_a_lost_connection_is_looked_up_again)
{
    struct rig r;
    struct node *n;

    rig_init(&r, "kafka:9092");
    fake_net_name(r.net, "kafka", "10.0.0.1 10.0.0.2");
    fake_net_listen(r.net, "10.0.0.2", 9092, FAKE_ACCEPTS);
    n = rig_connect(&r, "10.0.0.1", 9092);
    ck_assert_uint_eq(fake_net_lookups(r.net), 1);
    fake_conn_close(conn(&r));
    rig_turn(&r);
    fake_net_advance_ns(r.net, 100 * MS);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    ck_assert_uint_eq(fake_net_lookups(r.net), 2);
    /* not the one that was just lost */
    ck_assert_str_eq(fake_net_attempt(r.net, 1), "10.0.0.2:9092");
    rig_turn(&r);
    ck_assert(rig_shake(&r, fake_net_conn(r.net, "10.0.0.2", 9092)));
    /* now it means another machine */
    fake_net_name(r.net, "kafka", "10.0.0.7");
    fake_conn_close(fake_net_conn(r.net, "10.0.0.2", 9092));
    rig_turn(&r);
    fake_net_advance_ns(r.net, 100 * MS);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    ck_assert_str_eq(fake_net_attempt(r.net, 2), "10.0.0.7:9092");
    rig_fini(&r);
}
END_TEST

START_TEST(without_a_name_server_the_old_addresses_serve)
{
    struct rig r;
    struct node *n;

    rig_init(&r, "kafka:9092");
    fake_net_name(r.net, "kafka", "10.0.0.1");
    n = rig_connect(&r, "10.0.0.1", 9092);
    fake_net_name(r.net, "kafka", NULL);
    fake_conn_close(conn(&r));
    rig_turn(&r);
    fake_net_advance_ns(r.net, 100 * MS);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert(rig_shake(&r, conn(&r)));
    ck_assert(kp__client_is_ready(n));
    rig_fini(&r);
}
END_TEST

START_TEST(no_address_at_all_is_in_the_status)
{
    struct rig r;
    kp_error e;

    rig_init(&r, "nowhere:9092 neither:9092");
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert_int_eq(r.down_err, KP_ERESOLVE);
    ck_assert_int_eq(kp__status_get(&r.status, NULL, 0, &e), KP_OK);
    kp__client_connect(r.client, rig_bootstrap_node(&r, 1),
                       fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert_int_eq(kp__status_get(&r.status, NULL, 0, &e), KP_ERESOLVE);
    ck_assert_ptr_nonnull(strstr(e.text, "no address"));
    ck_assert_ptr_nonnull(strstr(e.text, "neither"));
    ck_assert(kp__client_all_failed(r.client));
    ck_assert(!kp__client_any_reachable(r.client));
    rig_fini(&r);
}
END_TEST

START_TEST(a_look_up_that_hangs_has_a_limit)
{
    struct rig r;

    rig_init(&r, "slow:9092");
    fake_net_name(r.net, "slow", "10.0.0.1");
    fake_net_hold_name(r.net, "slow", true);
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_run(&r, 7 * SEC);
    ck_assert_uint_eq(r.down, 0);
    rig_run(&r, 6 * SEC); /* 10 s, give or take a fifth */
    ck_assert_uint_eq(r.down, 1);
    ck_assert_int_eq(r.down_err, KP_ERESOLVE);
    ck_assert_uint_eq(fake_net_attempts(r.net), 0);
    rig_fini(&r);
}
END_TEST

/* Each is a thread: a cluster of hundreds must not be as many at once. */
START_TEST(look_ups_are_limited_and_all_get_their_turn)
{
    struct rig r;
    struct node *n[40];

    rig_init(&r, "10.0.0.9:1");
    for (int32_t i = 0; i < 40; i++) {
        char host[16];
        (void)snprintf(host, sizeof host, "b%d", (int)i);
        fake_net_name(r.net, host, "10.0.0.1");
        fake_net_hold_name(r.net, host, true);
        n[i] = kp__client_node(r.client, i, host, strlen(host), 9092, NULL, 0);
        kp__client_connect(r.client, n[i], fake_net_now_ns(r.net));
    }
    rig_turn(&r);
    ck_assert_uint_eq(fake_net_lookups(r.net), LOOKUPS_MAX);
    for (int i = 0; i < 40; i++) {
        char host[16];
        (void)snprintf(host, sizeof host, "b%d", i);
        fake_net_hold_name(r.net, host, false);
    }
    for (int i = 0; i < 4; i++)
        rig_turn(&r);
    ck_assert_uint_eq(fake_net_lookups(r.net), 40);
    ck_assert_uint_eq(fake_net_attempts(r.net), 40);
    ck_assert_uint_eq(r.client->lookups, 0);
    rig_fini(&r);
}
END_TEST

static struct node *overtakes; /* begun when the next node is down */

static void overtake(struct rig *r, struct node *n)
{
    (void)n;
    r->on_down = NULL;
    kp__client_connect(r->client, overtakes, fake_net_now_ns(r->net));
}

static struct node *held_name(struct rig *r, int32_t id, const char *host)
{
    fake_net_name(r->net, host, "10.0.0.1");
    fake_net_hold_name(r->net, host, true);
    return kp__client_node(r->client, id, host, strlen(host), 9092, NULL, 0);
}

/* One that waits may stand before one that takes the place it waits for: it
 * begins when that one ends, and not when something else happens. */
START_TEST(a_look_up_begins_when_another_makes_room)
{
    struct rig r;

    rig_init(&r, "10.0.0.9:1");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_UNREACHABLE);
    for (int32_t i = 0; i <= LOOKUPS_MAX; i++) {
        char host[16];
        (void)snprintf(host, sizeof host, "b%d", (int)i);
        kp__client_connect(r.client, held_name(&r, i, host),
                           fake_net_now_ns(r.net));
    }
    overtakes = held_name(&r, LOOKUPS_MAX + 1, "overtakes");
    r.on_down = overtake;
    fake_net_hold_name(r.net, "b0", false);
    rig_turn(&r);
    ck_assert_uint_eq(r.down, 1);
    ck_assert_uint_eq(fake_net_lookups(r.net), LOOKUPS_MAX + 1);
    fake_net_hold_name(r.net, "overtakes", false);
    rig_turn(&r);
    ck_assert_uint_eq(r.down, 2);
    ck_assert_uint_eq(fake_net_lookups(r.net), LOOKUPS_MAX + 2);
    rig_fini(&r);
}
END_TEST

START_TEST(canonical_names_stand_for_the_bootstrap_name)
{
    struct rig r;
    struct node *a, *b;

    rig_init(&r, "alias:9092");
    r.settings.dns_lookup = DNS_RESOLVE_CANONICAL;
    fake_net_name(r.net, "alias", "10.0.0.1 10.0.0.2");
    fake_net_canonical(r.net, "10.0.0.1", "one.example");
    fake_net_canonical(r.net, "10.0.0.2", "two.example");
    fake_net_name(r.net, "one.example", "10.0.0.1");
    fake_net_name(r.net, "two.example", "10.0.0.2");
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_turn(&r);
    a = rig_bootstrap_node(&r, 1);
    b = rig_bootstrap_node(&r, 2);
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_str_eq(kp__node_name(a), "one.example:9092 (bootstrap)");
    ck_assert_str_eq(kp__node_name(b), "two.example:9092 (bootstrap)");
    ck_assert_ptr_null(rig_bootstrap_node(&r, 3));
    ck_assert_str_eq(fake_net_attempt(r.net, 0), "10.0.0.1:9092");
    rig_fini(&r);
}
END_TEST

/* How long after the end of one attempt the next began, in ms. */
static double gap_ms(const struct rig *r, size_t i)
{
    return (double)(fake_net_attempt_ns(r->net, i + 1) -
                    fake_net_attempt_ns(r->net, i)) /
           (double)MS;
}

static void ask_again(struct rig *r, struct node *n)
{
    kp__client_connect(r->client, n, fake_net_now_ns(r->net));
}

/* R2: a name is not known for ten seconds: it is looked up again at the
 * backoff's pace, and when it is known the connection is made. */
START_TEST(a_look_up_that_fails_is_tried_again)
{
    struct rig r;
    size_t lookups;

    rig_init(&r, "kafka:9092");
    r.on_down = ask_again;
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_run(&r, 10 * SEC);
    lookups = fake_net_lookups(r.net);
    /* at 50, 100, 200, 400, 800 ms and each second, give or take a fifth */
    ck_assert_uint_ge(lookups, 12);
    ck_assert_uint_le(lookups, 6 + 10000 / 800);
    ck_assert_uint_eq(fake_net_attempts(r.net), 0);
    fake_net_name(r.net, "kafka", "10.0.0.1");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    rig_run(&r, 1300 * MS);
    ck_assert(rig_shake(&r, fake_net_conn(r.net, "10.0.0.1", 9092)));
    ck_assert_uint_eq(r.ready, 1);
    rig_fini(&r);
}
END_TEST

/* N9 */
START_TEST(n9_backoff_doubles_with_jitter_and_resets_when_ready)
{
    static const double want[] = {50, 100, 200, 400, 800, 1000, 1000};
    struct rig r;
    struct node *n;
    size_t before;
    bool varied = false;

    rig_init(&r, "10.0.0.1:9092");
    r.on_down = ask_again;
    n = rig_bootstrap_node(&r, 0);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_run(&r, 10 * SEC);
    ck_assert_uint_ge(fake_net_attempts(r.net), 12);
    for (size_t i = 0; i < 7; i++) {
        double exact = want[i];
        ck_assert_double_ge(gap_ms(&r, i), 0.8 * exact - 1);
        ck_assert_double_le(gap_ms(&r, i), 1.2 * exact + 1);
        varied =
            varied || gap_ms(&r, i) < exact - 1 || gap_ms(&r, i) > exact + 1;
    }
    ck_assert(varied);
    for (size_t i = 7; i + 1 < fake_net_attempts(r.net); i++)
        ck_assert_double_le(gap_ms(&r, i), 1001);
    /* accepted and hung up on: an attempt that failed, not a success */
    before = fake_net_attempts(r.net);
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    while (fake_net_attempts(r.net) == before)
        rig_run(&r, 10 * MS);
    rig_turn(&r);
    fake_conn_close(conn(&r));
    rig_turn(&r);
    while (fake_net_attempts(r.net) == before + 1)
        rig_run(&r, 10 * MS);
    ck_assert_double_ge(gap_ms(&r, before), 700);
    /* ready: from the beginning again */
    rig_turn(&r);
    ck_assert(rig_shake(&r, conn(&r)));
    ck_assert(kp__client_is_ready(n));
    fake_conn_close(conn(&r));
    rig_turn(&r);
    before = fake_net_attempts(r.net);
    rig_run(&r, 39 * MS);
    ck_assert_uint_eq(fake_net_attempts(r.net), before);
    rig_run(&r, 25 * MS);
    ck_assert_uint_eq(fake_net_attempts(r.net), before + 1);
    rig_fini(&r);
}
END_TEST

START_TEST(nobody_asks_nothing_is_tried)
{
    struct rig r;

    rig_init(&r, "10.0.0.1:9092");
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_run(&r, 60 * SEC);
    ck_assert_uint_eq(fake_net_attempts(r.net), 1);
    ck_assert_int_eq(r.deadline_ns, KP_NEVER);
    rig_fini(&r);
}
END_TEST

START_TEST(backoff_of_zero_neither_recurses_nor_spins)
{
    struct rig r;

    rig_init(&r, "10.0.0.1:9092");
    r.settings.reconnect_backoff_ns = 0;
    r.settings.reconnect_backoff_max_ns = 0;
    r.on_down = ask_again;
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_NO_SOCKET);
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_run(&r, 100 * MS);
    ck_assert_uint_ge(fake_net_attempts(r.net), 50);
    ck_assert_uint_le(fake_net_attempts(r.net), 102);
    /* sockets can be had again */
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    rig_run(&r, 10 * MS);
    ck_assert(rig_shake(&r, conn(&r)));
    ck_assert(kp__client_is_ready(rig_bootstrap_node(&r, 0)));
    rig_fini(&r);
}
END_TEST

START_TEST(silence_ends_an_attempt_later_each_time)
{
    static const double want[] = {10000, 20000, 30000, 30000};
    struct rig r;
    int64_t began_ns;

    rig_init(&r, "10.0.0.1:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_SILENT);
    for (size_t i = 0; i < 4; i++) {
        double took;
        began_ns = fake_net_now_ns(r.net);
        kp__client_connect(r.client, rig_bootstrap_node(&r, 0), began_ns);
        ck_assert_uint_eq(fake_net_attempts(r.net), i + 1);
        while (r.down == i)
            rig_run(&r, 10 * MS);
        took = (double)(fake_net_now_ns(r.net) - began_ns) / (double)MS;
        ck_assert_double_ge(took, 0.8 * want[i] - 1);
        ck_assert_double_le(took, (i < 2 ? 1.2 : 1.0) * want[i] + 11);
        ck_assert_int_eq(r.down_err, KP_ECONNECT);
        ck_assert_uint_eq(fake_net_open_count(r.net), 0);
        fake_net_advance_ns(r.net, 2 * SEC);
    }
    ck_assert(rig_logged(&r, "socket.connection.setup.timeout.ms"));
    rig_fini(&r);
}
END_TEST

/* N10 */
START_TEST(n10_an_idle_connection_is_closed_and_a_busy_one_is_not)
{
    struct rig r;
    struct fake_request q;
    struct probe p = {0};
    struct node *n;

    rig_init(&r, "10.0.0.1:9092");
    r.settings.max_idle_ns = 10 * SEC;
    r.settings.request_timeout_ns = 60 * SEC;
    n = rig_connect(&r, "10.0.0.1", 9092);
    probe_send(&p, &r, n);
    rig_run(&r, 25 * SEC);
    ck_assert(kp__client_is_ready(n));
    ck_assert(fake_conn_request(conn(&r), &q));
    answer_metadata(conn(&r), &q, 0);
    rig_run(&r, 9 * SEC);
    ck_assert(kp__client_is_ready(n));
    rig_run(&r, 12 * SEC);
    ck_assert(!kp__client_is_ready(n));
    ck_assert_uint_eq(fake_net_open_count(r.net), 0);
    ck_assert_uint_eq(r.down, 0); /* nobody's fault */
    ck_assert(!kp__client_is_unreachable(n));
    /* and no backoff: the next send finds it at once */
    n = rig_connect(&r, "10.0.0.1", 9092);
    ck_assert(kp__client_is_ready(n));
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

/* -- which nodes -- */

static struct node *broker(struct rig *r, int32_t id, const char *host)
{
    return kp__client_node(r->client, id, host, strlen(host), 9092, NULL, 0);
}

START_TEST(a_node_that_is_listed_no_more_ends_when_it_is_quiet)
{
    struct rig r;
    struct fake_request q;
    struct probe p = {0};
    struct node *n;
    int32_t ids[] = {1};

    rig_init(&r, "10.0.0.1:9092");
    n = rig_connect(&r, "10.0.0.1", 9092);
    probe_send(&p, &r, n);
    rig_turn(&r);
    (void)broker(&r, 1, "10.0.0.2");
    kp__client_keep_only(r.client, ids, 1);
    rig_turn(&r);
    ck_assert(kp__client_is_ready(n)); /* a request is on it */
    ck_assert(!kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    ck_assert(fake_conn_request(conn(&r), &q));
    answer_metadata(conn(&r), &q, 0);
    rig_turn(&r);
    rig_turn(&r);
    ck_assert_int_eq(p.end, REQUEST_ANSWERED);
    ck_assert_uint_eq(fake_net_open_count(r.net), 0);
    ck_assert_uint_eq(r.down, 0);
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

/* A partition's leader that the newest metadata does not name: each answer ends
 * the attempt, and whoever has records for it begins another. */
START_TEST(a_node_that_is_wanted_and_not_listed_keeps_its_backoff)
{
    struct rig r;
    struct node *n;
    int32_t ids[] = {1};

    rig_init(&r, "10.0.0.9:1");
    fake_net_listen(r.net, "10.0.0.2", 9092, FAKE_SILENT);
    (void)broker(&r, 1, "10.0.0.1");
    n = broker(&r, 2, "10.0.0.2");
    for (int i = 0; i < 200; i++) { /* a second */
        kp__client_connect(r.client, n, fake_net_now_ns(r.net));
        rig_run(&r, 5 * MS);
        kp__client_keep_only(r.client, ids, 1);
        rig_turn(&r);
    }
    ck_assert_uint_ge(fake_net_attempts(r.net), 10);
    ck_assert_uint_le(fake_net_attempts(r.net), 21);
    rig_fini(&r);
}
END_TEST

START_TEST(a_node_that_moves_is_found_at_its_new_address)
{
    struct rig r;
    struct probe p = {0};
    struct node *n;

    rig_init(&r, "10.0.0.9:1");
    n = broker(&r, 1, "10.0.0.1");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    fake_net_listen(r.net, "10.0.0.2", 9092, FAKE_ACCEPTS);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_turn(&r);
    ck_assert(rig_shake(&r, conn(&r)));
    probe_send(&p, &r, n);
    rig_turn(&r);
    ck_assert_ptr_eq(broker(&r, 1, "10.0.0.2"), n);
    ck_assert_str_eq(kp__node_name(n), "10.0.0.2:9092 (id 1)");
    ck_assert_uint_eq(p.ends, 0); /* not inside the call */
    rig_turn(&r);
    ck_assert_int_eq(p.end, REQUEST_DISCONNECTED);
    ck_assert_uint_eq(r.down, 1);
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    ck_assert_str_eq(fake_net_attempt(r.net, 1), "10.0.0.2:9092");
    probe_fini(&p);
    rig_fini(&r);
}
END_TEST

START_TEST(nonsense_nodes_are_refused)
{
    struct rig r;
    char long_host[300];

    memset(long_host, 'a', sizeof long_host);
    rig_init(&r, "10.0.0.9:1");
    ck_assert_ptr_null(kp__client_node(r.client, -1, "h", 1, 1, NULL, 0));
    ck_assert_ptr_null(kp__client_node(r.client, 1, "h", 1, 0, NULL, 0));
    ck_assert_ptr_null(kp__client_node(r.client, 1, "h", 1, -1, NULL, 0));
    ck_assert_ptr_null(kp__client_node(r.client, 1, "h", 1, 65536, NULL, 0));
    ck_assert_ptr_null(kp__client_node(r.client, 1, "", 0, 1, NULL, 0));
    ck_assert_ptr_null(kp__client_node(r.client, 1, NULL, 0, 1, NULL, 0));
    ck_assert_ptr_null(kp__client_node(r.client, 1, "a\0b", 3, 1, NULL, 0));
    ck_assert_ptr_null(
        kp__client_node(r.client, 1, long_host, sizeof long_host, 1, NULL, 0));
    ck_assert_ptr_null(kp__client_find(r.client, 1));
    ck_assert_ptr_nonnull(
        kp__client_node(r.client, 1, "h", 1, 65535, "rack-a", 6));
    ck_assert_str_eq(kp__node_rack(kp__client_find(r.client, 1)), "rack-a");
    rig_fini(&r);
}
END_TEST

/* What brokers say of others is remembered up to an end, which the log tells;
 * those that are known go on. */
START_TEST(brokers_have_an_end)
{
    struct rig r;
    int32_t id = 0;

    rig_init(&r, "10.0.0.9:1");
    while (kp__client_node(r.client, id, "h", 1, 1, "r", 1) != NULL)
        ck_assert_int_lt(id++, NODES_MAX);
    ck_assert_int_eq(id, NODES_MAX - 1); /* the last is the bootstrap address */
    ck_assert(rig_logged(&r, "broker 19999 at h:1 is passed over: 20000 others"));
    ck_assert_ptr_null(kp__client_find(r.client, id));
    ck_assert_ptr_nonnull(kp__client_node(r.client, 7, "i", 1, 2, "r", 1));
    ck_assert_str_eq(kp__node_name(kp__client_find(r.client, 7)),
                     "i:2 (id 7)");
    rig_fini(&r);
}
END_TEST

START_TEST(a_rack_is_a_short_name)
{
    struct rig r;
    char rack[256];
    struct node *n;

    memset(rack, 'r', sizeof rack);
    rig_init(&r, "10.0.0.9:1");
    n = kp__client_node(r.client, 1, "h", 1, 1, rack, 255);
    ck_assert_uint_eq(strlen(kp__node_rack(n)), 255);
    ck_assert_ptr_eq(kp__client_node(r.client, 1, "h", 1, 1, rack, 256), n);
    ck_assert_str_eq(kp__node_rack(n), "");
    rig_fini(&r);
}
END_TEST

static void up(struct rig *r, struct node *n, const char *host)
{
    fake_net_listen(r->net, host, 9092, FAKE_ACCEPTS);
    kp__client_connect(r->client, n, fake_net_now_ns(r->net));
    rig_turn(r);
    ck_assert(rig_shake(r, fake_net_conn(r->net, host, 9092)));
}

START_TEST(least_loaded_prefers_the_ready_and_quiet)
{
    struct rig r;
    struct probe p[3];
    struct node *a, *b;
    int32_t ids[] = {1, 2};

    memset(p, 0, sizeof p);
    rig_init(&r, "10.0.0.9:1");
    r.settings.max_in_flight = 1;
    a = broker(&r, 1, "10.0.0.1");
    b = broker(&r, 2, "10.0.0.2");
    kp__client_keep_only(r.client, ids, 2);
    up(&r, a, "10.0.0.1");
    up(&r, b, "10.0.0.2");
    probe_send(&p[0], &r, a);
    for (int i = 0; i < 20; i++)
        ck_assert_ptr_eq(
            kp__client_least_loaded(r.client, fake_net_now_ns(r.net)), b);
    /* both are full of records: one more may go, else metadata starves */
    probe_send(&p[1], &r, b);
    ck_assert_ptr_nonnull(
        kp__client_least_loaded(r.client, fake_net_now_ns(r.net)));
    rig_fini(&r);
    for (size_t i = 0; i < 3; i++)
        probe_fini(&p[i]);
}
END_TEST

START_TEST(least_loaded_connects_and_does_not_wait_for_the_silent)
{
    struct rig r;

    rig_init(&r, "10.0.0.1:9092 10.0.0.2:9092");
    fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_SILENT);
    fake_net_listen(r.net, "10.0.0.2", 9092, FAKE_SILENT);
    ck_assert_ptr_null(
        kp__client_least_loaded(r.client, fake_net_now_ns(r.net)));
    ck_assert_uint_eq(fake_net_attempts(r.net), 1);
    ck_assert_ptr_null(
        kp__client_least_loaded(r.client, fake_net_now_ns(r.net)));
    ck_assert_uint_eq(fake_net_attempts(r.net), 1); /* one at a time */
    rig_run(&r, SEC);
    ck_assert_ptr_null(
        kp__client_least_loaded(r.client, fake_net_now_ns(r.net)));
    ck_assert_uint_eq(fake_net_attempts(r.net), 2);
    ck_assert_str_ne(fake_net_attempt(r.net, 0), fake_net_attempt(r.net, 1));
    rig_fini(&r);
}
END_TEST

START_TEST(least_loaded_in_the_dark_wakes_up_by_itself)
{
    struct rig r;

    rig_init(&r, "10.0.0.1:9092 10.0.0.2:9092");
    for (int i = 0; i < 2; i++) {
        (void)kp__client_least_loaded(r.client, fake_net_now_ns(r.net));
        rig_turn(&r);
    }
    ck_assert_uint_eq(r.down, 2);
    ck_assert(kp__client_all_failed(r.client));
    (void)kp__client_least_loaded(r.client, fake_net_now_ns(r.net));
    ck_assert_uint_eq(fake_net_attempts(r.net), 2);
    rig_run(&r, 100 * MS);
    ck_assert_uint_eq(fake_net_attempts(r.net), 3);
    rig_fini(&r);
}
END_TEST

/* No route to one of them is no reason to wait before the next is tried. */
START_TEST(least_loaded_tries_all_that_fail_at_once)
{
    struct rig r;
    char host[16];

    rig_init(&r, "10.0.0.1:9092 10.0.0.2:9092 10.0.0.3:9092");
    for (int i = 1; i <= 3; i++) {
        (void)snprintf(host, sizeof host, "10.0.0.%d", i);
        fake_net_listen(r.net, host, 9092, FAKE_UNREACHABLE);
    }
    ck_assert_ptr_null(
        kp__client_least_loaded(r.client, fake_net_now_ns(r.net)));
    ck_assert_uint_eq(fake_net_attempts(r.net), 3);
    ck_assert_uint_eq(r.down, 3);
    rig_run(&r, 100 * MS); /* and one of them again, after its backoff */
    ck_assert_uint_ge(fake_net_attempts(r.net), 4);
    rig_fini(&r);
}
END_TEST

/* Two brokers are listed, and the first is connected to. */
static struct node *begin_with_two(struct rig *r)
{
    const int32_t ids[] = {1, 2};
    struct node *n;

    rig_init(r, "10.0.0.9:1");
    n = broker(r, 1, "10.0.0.1");
    (void)broker(r, 2, "10.0.0.2");
    kp__client_keep_only(r->client, ids, 2);
    up(r, n, "10.0.0.1");
    return n;
}

/* Nobody can be asked now, and so many have been tried by then. */
static void nobody_can_be_asked(struct rig *r, unsigned attempts)
{
    ck_assert_ptr_null(
        kp__client_least_loaded(r->client, fake_net_now_ns(r->net)));
    ck_assert_uint_eq(fake_net_attempts(r->net), attempts);
}

/* The only connection there is takes no request for long. */
START_TEST(least_loaded_does_not_wait_for_the_throttled)
{
    struct rig r;
    struct probe p = {0};
    struct node *n;

    n = begin_with_two(&r);
    probe_send(&p, &r, n);
    rig_turn(&r);
    kp__client_throttle(r.client, p.request, 500);
    nobody_can_be_asked(&r, 1);
    kp__client_throttle(r.client, p.request, 20000);
    nobody_can_be_asked(&r, 2);
    ck_assert_str_eq(fake_net_attempt(r.net, 1), "10.0.0.2:9092");
    rig_fini(&r);
    probe_fini(&p);
}
END_TEST

START_TEST(least_loaded_does_not_wait_for_the_stuck)
{
    struct rig r;
    struct probe p = {0};
    struct node *n;

    n = begin_with_two(&r);
    fake_conn_limit_writes(conn(&r), SIZE_MAX, 10);
    probe_send(&p, &r, n);
    rig_turn(&r);
    nobody_can_be_asked(&r, 1);
    fake_net_advance_ns(r.net, SEC);
    nobody_can_be_asked(&r, 2);
    rig_fini(&r);
    probe_fini(&p);
}
END_TEST

START_TEST(least_loaded_does_not_wait_for_the_slow)
{
    struct rig r;
    struct probe p[2];
    struct node *n;

    memset(p, 0, sizeof p);
    n = begin_with_two(&r);
    r.settings.max_in_flight = 1;
    for (int i = 0; i < 2; i++)
        probe_send(&p[i], &r, n);
    rig_turn(&r);
    nobody_can_be_asked(&r, 1);
    fake_net_advance_ns(r.net, SEC);
    nobody_can_be_asked(&r, 2);
    rig_fini(&r);
    for (int i = 0; i < 2; i++)
        probe_fini(&p[i]);
}
END_TEST

/* A request that is not answered keeps a connection that is to leave: it does
 * not keep us from the bootstrap addresses. */
START_TEST(least_loaded_does_not_wait_for_those_that_leave)
{
    struct rig r;
    struct probe p = {0};
    struct node *n;
    int32_t ids[] = {1};

    rig_init(&r, "10.0.0.9:1");
    n = broker(&r, 1, "10.0.0.1");
    kp__client_keep_only(r.client, ids, 1);
    up(&r, n, "10.0.0.1");
    probe_send(&p, &r, n);
    rig_turn(&r);
    kp__client_rebootstrap(r.client);
    nobody_can_be_asked(&r, 2);
    ck_assert_str_eq(fake_net_attempt(r.net, 1), "10.0.0.9:1");
    ck_assert_uint_eq(p.ends, 0);
    rig_fini(&r);
    probe_fini(&p);
}
END_TEST

START_TEST(a_node_that_is_listed_again_is_used_at_once)
{
    struct rig r;
    struct probe p = {0};
    struct node *n;
    int32_t ids[] = {2, 1};

    n = begin_with_two(&r);
    probe_send(&p, &r, n);
    rig_turn(&r);
    kp__client_keep_only(r.client, ids, 1);
    rig_turn(&r);
    ck_assert(!kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    kp__client_keep_only(r.client, ids, 2);
    rig_turn(&r);
    ck_assert(kp__client_can_send(r.client, n, fake_net_now_ns(r.net)));
    ck_assert_uint_eq(p.ends, 0);
    rig_fini(&r);
    probe_fini(&p);
}
END_TEST

START_TEST(an_old_broker_that_is_back_serves_while_bootstrapping)
{
    struct rig r;
    struct node *n;
    int32_t ids[] = {1};

    rig_init(&r, "10.0.0.9:1");
    n = broker(&r, 1, "10.0.0.1");
    kp__client_keep_only(r.client, ids, 1);
    kp__client_rebootstrap(r.client);
    up(&r, n, "10.0.0.1"); /* the sender has records for it */
    ck_assert_ptr_eq(kp__client_least_loaded(r.client, fake_net_now_ns(r.net)),
                     n);
    rig_fini(&r);
}
END_TEST

START_TEST(status_comes_and_goes_and_hints_at_listeners)
{
    struct rig r;
    struct node *n;
    kp_error e;
    int32_t ids[] = {1};

    rig_init(&r, "10.0.0.1:9092");
    (void)rig_connect(&r, "10.0.0.1", 9092);
    n = broker(&r, 1, "10.0.0.2");
    kp__client_keep_only(r.client, ids, 1);
    ck_assert(kp__client_any_reachable(r.client)); /* the old one still is */
    kp__client_connect(r.client, n, fake_net_now_ns(r.net));
    rig_turn(&r);
    rig_turn(&r);
    ck_assert_int_eq(kp__status_get(&r.status, NULL, 0, &e), KP_ECONNECT);
    ck_assert_ptr_nonnull(strstr(e.text, "10.0.0.2:9092"));
    ck_assert_ptr_nonnull(strstr(e.text, "refused"));
    ck_assert_ptr_nonnull(strstr(e.text, "advertised.listeners"));
    ck_assert(kp__client_is_unreachable(n));
    ck_assert(!kp__client_any_reachable(r.client));
    fake_net_advance_ns(r.net, SEC);
    up(&r, n, "10.0.0.2");
    ck_assert_int_eq(kp__status_get(&r.status, NULL, 0, &e), KP_OK);
    ck_assert(!kp__client_is_unreachable(n));
    ck_assert(kp__client_any_reachable(r.client));
    rig_fini(&r);
}
END_TEST

START_TEST(one_fault_is_not_logged_without_end)
{
    struct rig r;

    rig_init(&r, "10.0.0.1:9092");
    r.on_down = ask_again;
    fake_net_listen(r.net, "10.0.0.1", 9092, noes[_i].how);
    kp__client_connect(r.client, rig_bootstrap_node(&r, 0),
                       fake_net_now_ns(r.net));
    rig_run(&r, 60 * SEC);
    ck_assert_uint_ge(fake_net_attempts(r.net), 50);
    ck_assert_uint_le(fake_net_attempts(r.net),
                      90); /* a second, less a fifth */
    ck_assert(rig_logged(&r, noes[_i].says));
    {
        size_t warned = 0;
        for (size_t i = 0; i < 32 && i < r.log_count; i++)
            warned += strstr(r.log_text[i], "cannot reach") != NULL ? 1 : 0;
        ck_assert_uint_ge(warned, 1);
        ck_assert_uint_le(warned, 10);
    }
    rig_fini(&r);
}
END_TEST

#ifdef KP_FAILMALLOC
/* Memory that ends at any moment costs an attempt or a request, no more. */
START_TEST(no_memory_at_any_moment)
{
    long live = kp__mem_live();

    for (long nth = 1; nth < 120; nth++) {
        struct rig r;
        struct fake_request q;
        struct probe p = {0};
        struct node *n;

        rig_init(&r, "kafka:9092");
        fake_net_name(r.net, "kafka", "10.0.0.1");
        fake_net_listen(r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
        n = rig_bootstrap_node(&r, 0);
        probe_init(&p, &r, n);
        kp__mem_fail_at(nth);
        for (int i = 0; i < 8; i++) {
            struct fake_conn *c;
            kp__client_connect(r.client, n, fake_net_now_ns(r.net));
            rig_turn(&r);
            c = fake_net_conn(r.net, "10.0.0.1", 9092);
            if (c != NULL && fake_conn_request(c, &q)) {
                kp__mem_fail_at(-1); /* the server's own */
                if (q.header.api_key == API_API_VERSIONS)
                    fake_conn_answer_versions(c, &q, -1, 0, 0);
                else
                    answer_metadata(c, &q, 0);
                kp__mem_fail_at(nth > i ? nth - i : 1);
            }
            if (p.request != NULL && p.request->node == NULL &&
                kp__client_is_ready(n))
                kp__client_send(r.client, n, p.request, fake_net_now_ns(r.net));
            rig_turn(&r);
            fake_net_advance_ns(r.net, 2 * SEC);
        }
        kp__mem_fail_at(-1);
        if (p.request != NULL && p.request->node == NULL) {
            kp__request_destroy(p.request);
            p.ends = 1;
        }
        rig_fini(&r);
        ck_assert_uint_eq(p.ends, 1);
        probe_fini(&p);
    }
    ck_assert_int_eq(kp__mem_live(), live);
}
END_TEST
#endif

static Suite *network_client_suite(void)
{
    Suite *s = suite_create("network_client");
    TCase *t = tcase_create("handshake");

    tcase_add_test(t,
                   handshake_names_the_client_and_asks_in_the_highest_version);
    tcase_add_loop_test(t, handshake_carries_cluster_and_node_id_once_known, 0,
                        3);
    tcase_add_loop_test(t, n3_unsupported_version_is_asked_again_as_named, 0,
                        6);
    tcase_add_test(t, unsupported_even_in_version_0_is_an_end);
    tcase_add_test(t, another_error_in_the_handshake_is_reported);
    tcase_add_loop_test(t, cut_off_handshake_is_tried_in_version_0_next, 0, 3);
    tcase_add_test(t, silent_handshake_says_so_after_request_timeout);
    tcase_add_test(t, broker_too_old_is_refused_with_both_ranges);
    tcase_add_test(t, senseless_ranges_are_passed_over);
    tcase_add_test(t, produce_by_topic_id_needs_metadata_with_ids);
    suite_add_tcase(s, t);

    t = tcase_create("requests");
    tcase_add_test(t, request_goes_out_and_comes_back);
    tcase_add_test(t, requests_are_answered_in_order_and_limited);
    tcase_add_test(t, n4_nothing_is_sent_behind_a_partly_written_request);
    tcase_add_loop_test(t, any_sizes_of_reads_and_writes_do, 1, 12);
    tcase_add_test(t, readiness_that_is_none);
    tcase_add_test(t, readiness_that_is_none_while_connecting);
    tcase_add_test(t, more_pieces_than_one_write_takes);
    tcase_add_test(t, a_request_without_an_answer_ends_when_it_is_written);
    tcase_add_test(t, cut_at_every_byte_tells_sent_from_unsent);
    tcase_add_loop_test(t, answer_before_the_end_counts, 0, 2);
    tcase_add_loop_test(t, a_connection_that_cannot_be_watched_is_over, 0, 2);
    tcase_add_test(t, a_broken_connection_is_written_to_no_more);
    tcase_add_test(t, n1_a_late_answer_ends_the_connection_and_all_on_it);
    tcase_add_test(t, an_answer_that_is_there_beats_the_deadline);
    tcase_add_test(t, bytes_that_trickle_do_not_put_the_deadline_off);
    tcase_add_test(t, a_version_the_node_does_not_speak_is_not_sent);
    suite_add_tcase(s, t);

    t = tcase_create("throttling");
    tcase_add_test(t, n2_a_throttled_node_waits_and_others_do_not);
    tcase_add_test(t, throttling_puts_deadlines_off_and_has_a_limit);
    tcase_add_loop_test(t, old_versions_are_throttled_by_the_broker_itself, 0,
                        8);
    suite_add_tcase(s, t);

    t = tcase_create("hostile");
    tcase_add_loop_test(t, what_is_no_answer_ends_the_connection, 0, 10);
    tcase_add_test(t, answers_in_the_wrong_order_end_the_connection);
    tcase_add_loop_test(t, an_answer_to_nothing_ends_the_connection, 0, 2);
    tcase_add_test(t, a_short_answer_ends_the_connection);
    tcase_add_test(t, spoilt_handshakes_do_no_harm);
    suite_add_tcase(s, t);

    t = tcase_create("addresses");
    tcase_add_test(t, n8_every_address_is_tried_before_it_has_failed);
    tcase_add_loop_test(t, each_no_of_connect_leads_to_the_next_address, 0,
                        NOES);
    tcase_add_loop_test(t, a_family_that_is_black_leads_to_the_other, 0, 2);
    tcase_add_test(t, a_name_that_comes_late_is_found);
    tcase_add_test(t, n8_a_lost_connection_is_looked_up_again);
    tcase_add_test(t, without_a_name_server_the_old_addresses_serve);
    tcase_add_test(t, no_address_at_all_is_in_the_status);
    tcase_add_test(t, a_look_up_that_hangs_has_a_limit);
    tcase_add_test(t, look_ups_are_limited_and_all_get_their_turn);
    tcase_add_test(t, a_look_up_begins_when_another_makes_room);
    tcase_add_test(t, canonical_names_stand_for_the_bootstrap_name);
    tcase_add_test(t, a_look_up_that_fails_is_tried_again);
    tcase_add_test(t, n9_backoff_doubles_with_jitter_and_resets_when_ready);
    tcase_add_test(t, nobody_asks_nothing_is_tried);
    tcase_add_test(t, backoff_of_zero_neither_recurses_nor_spins);
    tcase_add_test(t, silence_ends_an_attempt_later_each_time);
    tcase_add_test(t, n10_an_idle_connection_is_closed_and_a_busy_one_is_not);
    suite_add_tcase(s, t);

    t = tcase_create("nodes");
    tcase_add_test(t, a_node_that_is_listed_no_more_ends_when_it_is_quiet);
    tcase_add_test(t, a_node_that_is_wanted_and_not_listed_keeps_its_backoff);
    tcase_add_test(t, a_node_that_moves_is_found_at_its_new_address);
    tcase_add_test(t, nonsense_nodes_are_refused);
    tcase_add_test(t, brokers_have_an_end);
    tcase_add_test(t, a_rack_is_a_short_name);
    tcase_add_test(t, least_loaded_prefers_the_ready_and_quiet);
    tcase_add_test(t, least_loaded_connects_and_does_not_wait_for_the_silent);
    tcase_add_test(t, least_loaded_in_the_dark_wakes_up_by_itself);
    tcase_add_test(t, least_loaded_tries_all_that_fail_at_once);
    tcase_add_test(t, least_loaded_does_not_wait_for_the_throttled);
    tcase_add_test(t, least_loaded_does_not_wait_for_the_stuck);
    tcase_add_test(t, least_loaded_does_not_wait_for_the_slow);
    tcase_add_test(t, least_loaded_does_not_wait_for_those_that_leave);
    tcase_add_test(t, a_node_that_is_listed_again_is_used_at_once);
    tcase_add_test(t, an_old_broker_that_is_back_serves_while_bootstrapping);
    tcase_add_test(t, status_comes_and_goes_and_hints_at_listeners);
    tcase_add_loop_test(t, one_fault_is_not_logged_without_end, 0, NOES);
#ifdef KP_FAILMALLOC
    tcase_add_test(t, no_memory_at_any_moment);
#endif
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(network_client_suite)
