/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of APIs, headers, and messages made by hand as the client makes
 * them.  golden_message_test.c has Kafka's own of every version. */
#include <string.h>

#include "lib/wire/api.h"
#include "test/support/main.h"
#include "test/support/writer_clear.h"

static struct writer w;
static struct arena arena;
static struct reader r;

static void setup(void)
{
    kp__writer_init(&w);
    kp__arena_init(&arena);
}

static void teardown(void)
{
    kp__writer_fini(&w);
    kp__arena_fini(&arena);
}

#define ASSERT_BYTES(...) \
    do { \
        static const uint8_t want_[] = {__VA_ARGS__}; \
        ck_assert(!kp__writer_failed(&w)); \
        ck_assert_uint_eq(w.buf.size, sizeof want_); \
        ck_assert_mem_eq(w.buf.data, want_, sizeof want_); \
    } while (0)

START_TEST(the_apis_are_found_by_key)
{
    static const struct {
        int16_t key, min, max, flexible;
        const char *name;
    } want[] = {
        {0, 3, 13, 9, "PRODUCE"},
        {3, 0, 13, 9, "METADATA"},
        {18, 0, 5, 3, "API_VERSIONS"},
        {22, 0, 6, 2, "INIT_PRODUCER_ID"},
    };

    ck_assert_uint_eq(kp__api_count, sizeof want / sizeof want[0]);
    for (size_t i = 0; i < kp__api_count; i++) {
        const struct api *a = kp__api(want[i].key);
        ck_assert_ptr_nonnull(a);
        ck_assert_ptr_eq(a, kp__apis[i]);
        ck_assert_int_eq(a->key, want[i].key);
        ck_assert_int_eq(a->min_version, want[i].min);
        ck_assert_int_eq(a->max_version, want[i].max);
        ck_assert_int_eq(a->flexible_since, want[i].flexible);
        ck_assert_str_eq(a->name, want[i].name);
        ck_assert(!kp__api_flexible(a, (int16_t)(want[i].flexible - 1)));
        ck_assert(kp__api_flexible(a, want[i].flexible));
    }
}
END_TEST

START_TEST(other_keys_are_not_ours)
{
    ck_assert_ptr_null(kp__api(1));
    ck_assert_ptr_null(kp__api(-1));
    ck_assert_ptr_null(kp__api(INT16_MAX));
}
END_TEST

/* Of one kind, at most one field a place, tags in rising order behind. */
static void check_table(const struct schema *s)
{
    int tag = -1;

    for (size_t i = 0; i < s->field_count; i++) {
        const struct field *f = &s->fields[i];
        size_t end = f->offset + kp__kind_size(f->kind, f->schema);
        ck_assert_msg(end <= s->size, "%s.%s", s->name, f->name);
        ck_assert_msg(f->removed_in == 0 || f->removed_in > f->since, "%s.%s",
                      s->name, f->name);
        ck_assert_msg((f->item == KIND_STRUCT || f->kind == KIND_STRUCT) ==
                          (f->schema != NULL),
                      "%s.%s", s->name, f->name);
        ck_assert_msg(!f->default_null || f->nullable, "%s.%s", s->name,
                      f->name);
        if (f->tagged) {
            ck_assert_msg(f->tag > tag, "%s.%s", s->name, f->name);
            tag = f->tag;
        }
        for (size_t k = 0; k < i; k++)
            ck_assert_msg(s->fields[k].offset != f->offset, "%s.%s", s->name,
                          f->name);
        if (f->schema != NULL)
            check_table(f->schema);
    }
}

START_TEST(tables_are_well_formed)
{
    for (size_t i = 0; i < kp__api_count; i++) {
        check_table(kp__apis[i]->request);
        check_table(kp__apis[i]->response);
    }
}
END_TEST

/* -- headers -- */

START_TEST(request_headers_by_version)
{
    struct request_header h = {.api_key = API_METADATA,
                               .version = 8,
                               .correlation_id = 7,
                               .client_id = {"me", 2}};

    kp__request_header_encode(&w, &h);
    ASSERT_BYTES(0, 3, 0, 8, 0, 0, 0, 7, 0, 2, 'm', 'e');
    writer_clear(&w);
    h.version = 9;
    kp__request_header_encode(&w, &h);
    ASSERT_BYTES(0, 3, 0, 9, 0, 0, 0, 7, 0, 2, 'm', 'e', 0);
    writer_clear(&w);
    h.client_id = (struct text){0};
    kp__request_header_encode(&w, &h);
    ASSERT_BYTES(0, 3, 0, 9, 0, 0, 0, 7, 0xff, 0xff, 0);
}
END_TEST

START_TEST(a_client_id_too_long_fails_the_writer)
{
    static char id[32768];
    struct request_header h = {.client_id = {id, sizeof id}};

    kp__request_header_encode(&w, &h);
    ck_assert(kp__writer_failed(&w));
}
END_TEST

START_TEST(a_header_of_an_unknown_api_is_read_for_its_key)
{
    static const uint8_t bytes[] = {0, 99, 0, 1, 0, 0, 0, 7, 0xff, 0xff, 9};
    struct request_header h;

    kp__reader_init(&r, bytes, sizeof bytes);
    ck_assert(kp__request_header_decode(&r, &h));
    ck_assert_int_eq(h.api_key, 99);
    ck_assert_int_eq(h.version, 1);
    ck_assert_int_eq(h.correlation_id, 7);
    ck_assert_ptr_null(h.client_id.data);
    ck_assert_uint_eq(kp__reader_left(&r), 1);
}
END_TEST

START_TEST(a_bad_client_id_is_refused)
{
    static const uint8_t negative[] = {0, 3, 0, 1, 0, 0, 0, 7, 0xff, 0xfe};
    static const uint8_t cut[] = {0, 3, 0, 1, 0, 0, 0, 7, 0, 9, 'x'};
    struct request_header h = {.api_key = 42};

    kp__reader_init(&r, negative, sizeof negative);
    ck_assert(!kp__request_header_decode(&r, &h));
    kp__reader_init(&r, cut, sizeof cut);
    ck_assert(!kp__request_header_decode(&r, &h));
    ck_assert_int_eq(h.api_key, 42);
}
END_TEST

START_TEST(response_headers_by_version)
{
    kp__response_header_encode(&w, API_PRODUCE, 8, 1);
    kp__response_header_encode(&w, API_PRODUCE, 9, 2);
    ASSERT_BYTES(0, 0, 0, 1, 0, 0, 0, 2, 0);
}
END_TEST

START_TEST(responses_to_api_versions_have_header_0_always)
{
    int32_t id;

    kp__response_header_encode(&w, API_API_VERSIONS, 5, 3);
    ASSERT_BYTES(0, 0, 0, 3);
    kp__reader_init(&r, "\0\0\0\4\7", 5);
    ck_assert(kp__response_header_decode(&r, API_API_VERSIONS, 5, &id));
    ck_assert_int_eq(id, 4);
    ck_assert_uint_eq(kp__reader_left(&r), 1);
}
END_TEST

START_TEST(tags_in_a_response_header_are_skipped)
{
    int32_t id;

    kp__reader_init(&r, "\0\0\0\4\1\5\2xy\7", 10);
    ck_assert(kp__response_header_decode(&r, API_PRODUCE, 9, &id));
    ck_assert_int_eq(id, 4);
    ck_assert_uint_eq(kp__reader_left(&r), 1);
}
END_TEST

/* -- messages -- */

static void encode(int16_t key, bool request, int16_t version,
                   const void *value)
{
    const struct api *a = kp__api(key);

    kp__schema_encode(request ? a->request : a->response, &w, version,
                      kp__api_flexible(a, version), value);
}

static void decode(int16_t key, bool request, int16_t version, void *value)
{
    const struct api *a = kp__api(key);

    kp__reader_init(&r, w.buf.data, w.buf.size);
    ck_assert(kp__schema_decode(request ? a->request : a->response, &r, &arena,
                                version, kp__api_flexible(a, version), value));
    ck_assert_uint_eq(kp__reader_left(&r), 0);
}

START_TEST(a_produce_request_is_not_copied)
{
    int batch[2];
    struct produce_request_partition partitions[] = {
        {.index = 1, .records = {.size = 300, .owner = &batch[0]}},
        {.index = 2, .records = {.size = 5, .owner = &batch[1]}},
    };
    struct produce_request_topic topic = {
        .name = {"t", 1}, .partitions = {.items = partitions, .count = 2}};
    struct produce_request request = {
        .acks = -1,
        .timeout_ms = 30000,
        .topics = {.items = &topic, .count = 1},
    };

    memset(topic.topic_id.b, 0x11, sizeof topic.topic_id.b);
    encode(API_PRODUCE, true, 9, &request);
    ASSERT_BYTES(0, 0xff, 0xff, 0, 0, 0x75, 0x30, 2, 2, 't', 3, 0, 0, 0, 1,
                 0xad, 2, /* 300 bytes here */ 0, 0, 0, 0, 2, 6,
                 /* 5 bytes here */ 0, 0, 0);
    ck_assert_uint_eq(w.splice_count, 2);
    ck_assert_uint_eq(w.splices[0].at, 17);
    ck_assert_ptr_eq(w.splices[0].owner, &batch[0]);
    ck_assert_uint_eq(w.splices[1].at, 23);
    ck_assert_ptr_eq(w.splices[1].owner, &batch[1]);
    ck_assert_uint_eq(kp__writer_size(&w), w.buf.size + 305);
}
END_TEST

START_TEST(a_topic_goes_by_id_from_produce_13_on)
{
    struct produce_request_topic topic = {.name = {"t", 1}};
    struct produce_request request = {.topics = {.items = &topic, .count = 1}};

    memset(topic.topic_id.b, 0x11, sizeof topic.topic_id.b);
    encode(API_PRODUCE, true, 13, &request);
    ASSERT_BYTES(0, 0, 0, 0, 0, 0, 0, 2, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11,
                 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 1,
                 0, 0);
}
END_TEST

START_TEST(absent_produce_fields_have_their_defaults)
{
    struct produce_response_partition p = {
        .base_offset = 5,
        .log_append_time_ms = 6,
        .log_start_offset = 7,
        .current_leader = {8, 9},
    };
    struct produce_response_topic topic = {
        .name = {"t", 1}, .partitions = {.items = &p, .count = 1}};
    struct produce_response sent = {.topics = {.items = &topic, .count = 1}},
                            got;
    const struct produce_response_topic *t;
    const struct produce_response_partition *q;

    encode(API_PRODUCE, false, 3, &sent);
    decode(API_PRODUCE, false, 3, &got);
    t = got.topics.items;
    q = t->partitions.items;
    ck_assert_int_eq(q->base_offset, 5);
    ck_assert_int_eq(q->log_append_time_ms, 6);
    ck_assert_int_eq(q->log_start_offset, -1);
    ck_assert_int_eq(q->current_leader.leader_id, -1);
    ck_assert_int_eq(q->current_leader.leader_epoch, -1);
    ck_assert_ptr_null(q->error_message.data);
    ck_assert(!q->record_errors.null);
    ck_assert_uint_eq(q->record_errors.count, 0);
    ck_assert_uint_eq(got.node_endpoints.count, 0);
}
END_TEST

START_TEST(leader_hints_come_through)
{
    struct node_endpoint node = {.node_id = 8, .host = {"h", 1}, .port = 9092};
    struct produce_response_partition p = {.error_code = 6,
                                           .current_leader = {8, -1}};
    struct produce_response_topic topic = {
        .partitions = {.items = &p, .count = 1}};
    struct produce_response sent =
                                {
                                    .topics = {.items = &topic, .count = 1},
                                    .node_endpoints = {.items = &node,
                                                       .count = 1},
                                },
                            got;
    const struct produce_response_topic *t;
    const struct produce_response_partition *q;
    const struct node_endpoint *n;

    encode(API_PRODUCE, false, 13, &sent);
    decode(API_PRODUCE, false, 13, &got);
    t = got.topics.items;
    q = t->partitions.items;
    n = got.node_endpoints.items;
    ck_assert_int_eq(q->current_leader.leader_id, 8);
    ck_assert_int_eq(q->current_leader.leader_epoch, -1);
    ck_assert_uint_eq(got.node_endpoints.count, 1);
    ck_assert_int_eq(n->node_id, 8);
    ck_assert_uint_eq(n->host.size, 1);
    ck_assert_int_eq(n->port, 9092);
    ck_assert_ptr_null(n->rack.data);
}
END_TEST

START_TEST(all_topics_are_null_and_none_is_empty)
{
    struct metadata_request request = {.topics = {.null = true}};

    encode(API_METADATA, true, 1, &request);
    ASSERT_BYTES(0xff, 0xff, 0xff, 0xff);
    writer_clear(&w);
    encode(API_METADATA, true, 12, &request);
    ASSERT_BYTES(0, 0, 0, 0);
    writer_clear(&w);
    request.topics.null = false;
    request.allow_auto_topic_creation = true;
    encode(API_METADATA, true, 4, &request);
    ASSERT_BYTES(0, 0, 0, 0, 1);
}
END_TEST

START_TEST(absent_metadata_fields_have_their_defaults)
{
    struct metadata_partition p = {.leader_epoch = 5};
    struct metadata_topic topic = {.name = {"t", 1},
                                   .partitions = {.items = &p, .count = 1}};
    struct metadata_response sent = {.topics = {.items = &topic, .count = 1}},
                             got;
    struct metadata_request request;
    const struct metadata_topic *t;
    const struct metadata_partition *q;

    encode(API_METADATA, false, 0, &sent);
    decode(API_METADATA, false, 0, &got);
    t = got.topics.items;
    q = t->partitions.items;
    ck_assert_int_eq(q->leader_epoch, -1);
    ck_assert_int_eq(t->topic_authorized_operations, INT32_MIN);
    ck_assert_int_eq(got.cluster_authorized_operations, INT32_MIN);
    ck_assert_int_eq(got.controller_id, -1);
    ck_assert_ptr_null(got.cluster_id.data);
    kp__schema_defaults(kp__api(API_METADATA)->request, &request);
    ck_assert(request.allow_auto_topic_creation);
}
END_TEST

START_TEST(absent_ids_have_their_defaults)
{
    struct init_producer_id_request request;
    struct init_producer_id_response response;
    struct api_versions_request versions;
    struct api_versions_response supported;

    kp__schema_defaults(kp__api(API_INIT_PRODUCER_ID)->request, &request);
    ck_assert_int_eq(request.producer_id, -1);
    ck_assert_int_eq(request.producer_epoch, -1);
    kp__schema_defaults(kp__api(API_INIT_PRODUCER_ID)->response, &response);
    ck_assert_int_eq(response.producer_id, -1);
    ck_assert_int_eq(response.ongoing_txn_producer_id, -1);
    ck_assert_int_eq(response.ongoing_txn_producer_epoch, -1);
    kp__schema_defaults(kp__api(API_API_VERSIONS)->request, &versions);
    ck_assert_ptr_null(versions.cluster_id.data);
    ck_assert_int_eq(versions.node_id, -1);
    kp__schema_defaults(kp__api(API_API_VERSIONS)->response, &supported);
    ck_assert_int_eq(supported.finalized_features_epoch, -1);
}
END_TEST

START_TEST(an_unsupported_version_answer_is_read_as_version_0)
{
    /* error 35, one row: ApiVersions 0 to 3 */
    static const uint8_t bytes[] = {0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 3};
    struct api_versions_response got;
    const struct api_version *row;

    kp__reader_init(&r, bytes, sizeof bytes);
    ck_assert(kp__schema_decode(kp__api(API_API_VERSIONS)->response, &r, &arena,
                                0, false, &got));
    row = got.api_keys.items;
    ck_assert_int_eq(got.error_code, 35);
    ck_assert_uint_eq(got.api_keys.count, 1);
    ck_assert_int_eq(row->api_key, 18);
    ck_assert_int_eq(row->max_version, 3);
}
END_TEST

static Suite *api_suite(void)
{
    Suite *s = suite_create("api");
    TCase *t = tcase_create("api");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_apis_are_found_by_key);
    tcase_add_test(t, other_keys_are_not_ours);
    tcase_add_test(t, tables_are_well_formed);
    tcase_add_test(t, request_headers_by_version);
    tcase_add_test(t, a_client_id_too_long_fails_the_writer);
    tcase_add_test(t, a_header_of_an_unknown_api_is_read_for_its_key);
    tcase_add_test(t, a_bad_client_id_is_refused);
    tcase_add_test(t, response_headers_by_version);
    tcase_add_test(t, responses_to_api_versions_have_header_0_always);
    tcase_add_test(t, tags_in_a_response_header_are_skipped);
    tcase_add_test(t, a_produce_request_is_not_copied);
    tcase_add_test(t, a_topic_goes_by_id_from_produce_13_on);
    tcase_add_test(t, absent_produce_fields_have_their_defaults);
    tcase_add_test(t, leader_hints_come_through);
    tcase_add_test(t, all_topics_are_null_and_none_is_empty);
    tcase_add_test(t, absent_metadata_fields_have_their_defaults);
    tcase_add_test(t, absent_ids_have_their_defaults);
    tcase_add_test(t, an_unsupported_version_answer_is_read_as_version_0);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(api_suite)
