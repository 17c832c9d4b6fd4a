/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker model's ApiVersions, Metadata and InitProducerId, all versions. */
#include <string.h>

#include "test/broker/probe.h"
#include "test/support/main.h"

static struct kb_cluster *c;
static struct kb_conn *k;

static void setup(void)
{
    struct kb_config g;

    kb_config_default(&g);
    g.nodes = 3;
    c = kb_create(&g);
    kb_node_rack(c, 2, "r2");
    k = kb_connect(c, 1, NULL, 0);
}

static void teardown(void)
{
    kb_destroy(c);
}

static struct text text(const char *s)
{
    struct text t = {s, s == NULL ? 0 : strlen(s)};

    return t;
}

static void ask(int16_t api, int16_t version, const void *body)
{
    size_t size;
    uint8_t *frame = kb_probe_request(api, version, 11, body, &size);

    kb_probe_send(k, frame, size, kb_now_ns(c));
}

static void expect_closed(void)
{
    ck_assert_ptr_nonnull(kb_conn_output(k));
    ck_assert_int_eq(kb_conn_output(k)->kind, KB_OUT_CLOSE);
    kb_conn_close(k, false, 0);
    k = kb_connect(c, 1, NULL, 0);
}

/* -- ApiVersions -- */

static struct api_versions_request versions_request(void)
{
    struct api_versions_request r;

    memset(&r, 0, sizeof(r));
    r.client_software_name = text("libkp");
    r.client_software_version = text("0.1.0");
    r.node_id = -1;
    return r;
}

static bool listed(const struct kb_probe_answer *a, int16_t key, int16_t min,
                   int16_t max)
{
    const struct api_version *v = a->body.api_versions.api_keys.items;
    size_t i;

    for (i = 0; i < a->body.api_versions.api_keys.count; i++)
        if (v[i].api_key == key)
            return v[i].min_version == min && v[i].max_version == max;
    return false;
}

static int16_t versions_error(int16_t version,
                              const struct api_versions_request *r)
{
    struct kb_probe_answer a;
    int16_t error;

    ask(API_API_VERSIONS, version, r);
    ck_assert(kb_probe_take(k, &a, API_API_VERSIONS, version));
    error = a.body.api_versions.error_code;
    ck_assert_int_eq(error == 0, a.body.api_versions.api_keys.count > 0);
    kb_probe_answer_fini(&a);
    return error;
}

START_TEST(api_versions_in_every_version)
{
    struct api_versions_request r = versions_request();
    struct kb_probe_answer a;

    ask(API_API_VERSIONS, (int16_t)_i, &r);
    ck_assert(kb_probe_take(k, &a, API_API_VERSIONS, (int16_t)_i));
    ck_assert_int_eq(a.correlation_id, 11);
    ck_assert_int_eq(a.body.api_versions.error_code, 0);
    ck_assert(listed(&a, API_PRODUCE, 0, 13));
    ck_assert(listed(&a, API_METADATA, 0, 13));
    ck_assert(listed(&a, API_API_VERSIONS, 0, 5));
    ck_assert(listed(&a, API_INIT_PRODUCER_ID, 0, 6));
    kb_probe_answer_fini(&a);
}
END_TEST

START_TEST(a_version_of_the_future_gets_35_in_version_0)
{
    /* Whatever its header looks like. */
    static const uint8_t frame[] = {0, 18, 0, 6, 0, 0, 0, 9, 0xff, 0xff, 0xff};
    struct kb_probe_answer a;

    kb_conn_frame(k, frame, sizeof(frame), 0);
    ck_assert(kb_probe_take(k, &a, API_API_VERSIONS, 0));
    ck_assert_int_eq(a.correlation_id, 9);
    ck_assert_int_eq(a.body.api_versions.error_code, 35);
    ck_assert_uint_eq(a.body.api_versions.api_keys.count, 1);
    ck_assert(listed(&a, API_API_VERSIONS, 0, 5));
    kb_probe_answer_fini(&a);
}
END_TEST

START_TEST(an_older_broker_says_so)
{
    struct api_versions_request r = versions_request();
    struct kb_probe_answer a;

    kb_node_versions(c, 1, API_API_VERSIONS, 0, 2);
    kb_node_versions(c, 1, API_PRODUCE, 0, 7);
    kb_node_versions(c, 1, API_INIT_PRODUCER_ID, 0, -1);
    ask(API_API_VERSIONS, 3, &r);
    ck_assert(kb_probe_take(k, &a, API_API_VERSIONS, 0));
    ck_assert_int_eq(a.body.api_versions.error_code, 35);
    kb_probe_answer_fini(&a);
    ask(API_API_VERSIONS, 2, &r);
    ck_assert(kb_probe_take(k, &a, API_API_VERSIONS, 2));
    ck_assert(listed(&a, API_PRODUCE, 0, 7));
    ck_assert(!listed(&a, API_INIT_PRODUCER_ID, 0, 6));
    kb_probe_answer_fini(&a);
}
END_TEST

START_TEST(software_names_are_checked)
{
    static const char *const bad[] = {"",    "-a",       "a.", "a b",
                                      "a_b", "\xc3\xa4", NULL};
    struct api_versions_request r = versions_request();
    int i;

    for (i = 0; bad[i] != NULL; i++) {
        r.client_software_name = text(bad[i]);
        ck_assert_int_eq(versions_error(3, &r), 42);
        r.client_software_name = text("a");
        r.client_software_version = text(bad[i]);
        ck_assert_int_eq(versions_error(4, &r), 42);
        r.client_software_version = text("1.0-b");
    }
    ck_assert_int_eq(versions_error(5, &r), 0);
}
END_TEST

START_TEST(version_5_checks_cluster_and_node)
{
    struct api_versions_request r = versions_request();
    struct kb_config g;

    kb_config_default(&g);
    r.cluster_id = text(g.cluster_id);
    ck_assert_int_eq(versions_error(5, &r), 42); /* one without the other */
    r.node_id = 1;
    ck_assert_int_eq(versions_error(5, &r), 0);
    r.node_id = 2;
    ck_assert_int_eq(versions_error(5, &r), 129);
    r.node_id = 1;
    r.cluster_id = text("somewhereElseAltogethA");
    ck_assert_int_eq(versions_error(5, &r), 129);
    r.cluster_id = text(NULL);
    ck_assert_int_eq(versions_error(5, &r), 42);
}
END_TEST

/* -- Metadata -- */

static struct metadata_response *metadata(int16_t version, const char *name,
                                          bool create,
                                          struct kb_probe_answer *a)
{
    struct metadata_request_topic t;
    struct metadata_request m;

    memset(&t, 0, sizeof(t));
    memset(&m, 0, sizeof(m));
    t.name = text(name);
    m.topics.items = &t;
    m.topics.count = name != NULL;
    m.topics.null = name == NULL && version > 0;
    m.allow_auto_topic_creation = create;
    ask(API_METADATA, version, &m);
    ck_assert(kb_probe_take(k, a, API_METADATA, version));
    return &a->body.metadata;
}

START_TEST(metadata_in_every_version)
{
    struct kb_probe_answer a;
    struct metadata_response *m;
    const struct metadata_broker *b;
    const struct metadata_topic *t;
    const struct metadata_partition *p;
    struct uuid id;
    int16_t v = (int16_t)_i;

    ck_assert_int_eq(kb_topic_create(c, "t", 2, 2, 0), 0);
    ck_assert(kb_topic_id(c, "t", &id));
    kb_node_address(c, 3, "somewhere", 777);
    m = metadata(v, "t", true, &a);
    ck_assert_uint_eq(m->brokers.count, 3);
    b = m->brokers.items;
    ck_assert_int_eq(b[2].node_id, 3);
    ck_assert_int_eq(b[2].port, 777);
    ck_assert_uint_eq(b[2].host.size, 9);
    ck_assert_uint_eq(b[1].rack.size, v >= 1 ? 2 : 0);
    ck_assert_uint_eq(m->cluster_id.size, v >= 2 ? 22 : 0);
    ck_assert_int_eq(m->error_code, 0);
    ck_assert_uint_eq(m->topics.count, 1);
    t = m->topics.items;
    ck_assert_int_eq(t->error_code, 0);
    ck_assert_mem_eq(t->name.data, "t", 1);
    if (v >= 10)
        ck_assert_mem_eq(&t->topic_id, &id, sizeof(id));
    ck_assert_uint_eq(t->partitions.count, 2);
    p = t->partitions.items;
    ck_assert_int_eq(p[1].leader_id, 2);
    ck_assert_int_eq(p[1].leader_epoch, v >= 7 ? 0 : -1);
    ck_assert_uint_eq(p[1].replica_nodes.count, 2);
    ck_assert_int_eq(((int32_t *)p[1].replica_nodes.items)[1], 3);
    ck_assert_uint_eq(p[1].isr_nodes.count, 2);
    kb_probe_answer_fini(&a);
    /* All topics: an empty list in version 0, null from then on. */
    m = metadata(v, NULL, false, &a);
    ck_assert_uint_eq(m->topics.count, 1);
    kb_probe_answer_fini(&a);
}
END_TEST

START_TEST(an_empty_list_asks_for_no_topic)
{
    struct metadata_request m;
    struct kb_probe_answer a;

    ck_assert_int_eq(kb_topic_create(c, "t", 2, 2, 0), 0);
    memset(&m, 0, sizeof(m));
    ask(API_METADATA, 5, &m);
    ck_assert(kb_probe_take(k, &a, API_METADATA, 5));
    ck_assert_uint_eq(a.body.metadata.topics.count, 0);
    ck_assert_uint_eq(a.body.metadata.brokers.count, 3);
    kb_probe_answer_fini(&a);
}
END_TEST

static int16_t topic_error(int16_t version, const char *name, bool create)
{
    struct kb_probe_answer a;
    struct metadata_response *m = metadata(version, name, create, &a);
    int16_t error = ((struct metadata_topic *)m->topics.items)->error_code;

    kb_probe_answer_fini(&a);
    return error;
}

START_TEST(topics_are_made_by_asking)
{
    ck_assert_int_eq(topic_error(9, "a", false), 3);
    ck_assert_int_eq(topic_error(9, "a", false), 3);
    ck_assert_int_eq(topic_error(9, "a", true), 3); /* being made */
    ck_assert_int_eq(topic_error(9, "a", false), 0);
    ck_assert_int_eq(topic_error(3, "b", false), 3); /* no such field yet */
    ck_assert_int_eq(topic_error(3, "b", false), 0);
    ck_assert_int_eq(topic_error(9, "a/b", true), 17);
    ck_assert_int_eq(topic_error(9, "", true), 17);
    ck_assert(kb_set(c, "auto.create.topics.enable", "false"));
    ck_assert_int_eq(topic_error(9, "x", true), 3);
    ck_assert_int_eq(topic_error(9, "x", true), 3);
    ck_assert_int_eq(kb_topic_partitions(c, "a"), 1);
    ck_assert(kb_in_sync(c, "a", 0, 3));
}
END_TEST

START_TEST(topics_by_id)
{
    struct metadata_request_topic t[2];
    struct metadata_request m;
    struct kb_probe_answer a;
    const struct metadata_topic *got;

    ck_assert_int_eq(kb_topic_create(c, "t", 2, 2, 0), 0);
    memset(t, 0, sizeof(t));
    memset(&m, 0, sizeof(m));
    ck_assert(kb_topic_id(c, "t", &t[0].topic_id));
    t[1].topic_id.b[3] = 9;
    m.topics.items = t;
    m.topics.count = 2;
    ask(API_METADATA, 12, &m);
    ck_assert(kb_probe_take(k, &a, API_METADATA, 12));
    got = a.body.metadata.topics.items;
    ck_assert_int_eq(got[0].error_code, 0);
    ck_assert_uint_eq(got[0].partitions.count, 2);
    ck_assert_mem_eq(got[0].name.data, "t", 1);
    ck_assert_int_eq(got[1].error_code, 100);
    ck_assert_ptr_null(got[1].name.data);
    ck_assert_mem_eq(&got[1].topic_id, &t[1].topic_id, 16);
    kb_probe_answer_fini(&a);
}
END_TEST

START_TEST(dead_nodes_and_leaderless_partitions)
{
    struct kb_probe_answer a;
    struct metadata_response *m;
    const struct metadata_partition *p;

    ck_assert_int_eq(kb_topic_create(c, "t", 3, 2, 0), 0);
    kb_node_stop(c, 3, false, 0);
    kb_node_stop(c, 2, false, 0);
    m = metadata(9, "t", false, &a);
    ck_assert_uint_eq(m->brokers.count, 1);
    p = ((struct metadata_topic *)m->topics.items)->partitions.items;
    ck_assert_int_eq(p[0].leader_id, 1);
    ck_assert_uint_eq(p[0].offline_replicas.count, 1);
    ck_assert_int_eq(p[1].error_code, 5); /* replicas 2 and 3 */
    ck_assert_int_eq(p[1].leader_id, -1);
    kb_probe_answer_fini(&a);
}
END_TEST

START_TEST(an_isolated_node_tells_old_news)
{
    struct kb_probe_answer a;
    struct metadata_response *m;

    kb_node_isolate(c, 1, true, 0);
    ck_assert_int_eq(kb_topic_create(c, "t", 1, 2, 0), 0);
    ck_assert_int_eq(topic_error(9, "t", true), 3);
    m = metadata(9, NULL, false, &a);
    ck_assert_uint_eq(m->brokers.count, 3);
    kb_probe_answer_fini(&a);
    kb_node_isolate(c, 1, false, 0);
    ck_assert_int_eq(topic_error(9, "t", true), 0);
}
END_TEST

/* -- InitProducerId -- */

START_TEST(producer_ids)
{
    struct init_producer_id_request r;
    struct kb_probe_answer a;
    int64_t last = -1;
    int16_t v;

    memset(&r, 0, sizeof(r));
    r.producer_id = -1;
    r.producer_epoch = -1;
    for (v = 0; v <= 6; v++) {
        ask(API_INIT_PRODUCER_ID, v, &r);
        ck_assert(kb_probe_take(k, &a, API_INIT_PRODUCER_ID, v));
        ck_assert_int_eq(a.body.init_producer_id.error_code, 0);
        ck_assert_int_eq(a.body.init_producer_id.producer_id, last + 1);
        ck_assert_int_eq(a.body.init_producer_id.producer_epoch, 0);
        last = a.body.init_producer_id.producer_id;
        kb_probe_answer_fini(&a);
        r.producer_id = last; /* asking with one gives another all the same */
        r.producer_epoch = 3;
    }
    r.transactional_id = text("x");
    ask(API_INIT_PRODUCER_ID, 4, &r);
    ck_assert(kb_probe_take(k, &a, API_INIT_PRODUCER_ID, 4));
    ck_assert_int_eq(a.body.init_producer_id.error_code, 35);
    ck_assert_int_eq(a.body.init_producer_id.producer_id, -1);
    kb_probe_answer_fini(&a);
}
END_TEST

START_TEST(what_it_does_not_serve_ends_the_connection)
{
    static const uint8_t fetch[] = {0, 1, 0, 4, 0, 0, 0, 1, 0xff, 0xff};
    static const uint8_t nonsense[] = {0x7f, 1, 0, 4, 0, 0, 0, 1, 0xff, 0xff};

    kb_conn_frame(k, fetch, sizeof(fetch), 0);
    expect_closed();
    kb_conn_frame(k, nonsense, sizeof(nonsense), 0);
    expect_closed();
    kb_conn_frame(k, fetch, 0, 0);
    expect_closed();
    kb_conn_bad_frame(k, 0);
    expect_closed();
    kb_node_versions(c, 1, API_METADATA, 0, 5);
    {
        struct metadata_request m;

        memset(&m, 0, sizeof(m));
        ask(API_METADATA, 6, &m);
        expect_closed();
    }
}
END_TEST

START_TEST(counters)
{
    struct kb_probe_answer a;

    (void)metadata(9, NULL, false, &a);
    kb_probe_answer_fini(&a);
    (void)metadata(12, NULL, false, &a);
    kb_probe_answer_fini(&a);
    ck_assert_int_eq(kb_requests(c, 1, API_METADATA), 2);
    ck_assert_int_eq(kb_requests(c, 2, API_METADATA), 0);
    ck_assert_int_eq(kb_requests(c, -1, -1), 2);
    ck_assert_int_eq(kb_version_seen(c, API_METADATA), 12);
    ck_assert_int_eq(kb_version_seen(c, API_PRODUCE), -1);
    ck_assert_int_eq(kb_connects(c, 1), 1);
    ck_assert_int_eq(kb_open_connections(c, -1), 1);
}
END_TEST

static Suite *broker_handshake_suite(void)
{
    Suite *s = suite_create("broker_handshake");
    TCase *t = tcase_create("handshake");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, api_versions_in_every_version, 0, 6);
    tcase_add_test(t, a_version_of_the_future_gets_35_in_version_0);
    tcase_add_test(t, an_older_broker_says_so);
    tcase_add_test(t, software_names_are_checked);
    tcase_add_test(t, version_5_checks_cluster_and_node);
    tcase_add_loop_test(t, metadata_in_every_version, 0, 14);
    tcase_add_test(t, an_empty_list_asks_for_no_topic);
    tcase_add_test(t, topics_are_made_by_asking);
    tcase_add_test(t, topics_by_id);
    tcase_add_test(t, dead_nodes_and_leaderless_partitions);
    tcase_add_test(t, an_isolated_node_tells_old_news);
    tcase_add_test(t, producer_ids);
    tcase_add_test(t, what_it_does_not_serve_ends_the_connection);
    tcase_add_test(t, counters);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(broker_handshake_suite)
