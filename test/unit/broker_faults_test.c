/* SPDX-License-Identifier: BSD-2-Clause */
/* Scripted answers of the broker model: each does what it says, no more. */
#include <string.h>

#include "test/broker/probe.h"
#include "test/support/main.h"

#define MS INT64_C(1000000)
#define VERSION 12

static struct kb_cluster *c;
static struct kb_conn *k;

static void setup(void)
{
    struct kb_config g;

    kb_config_default(&g);
    g.nodes = 2;
    c = kb_create(&g);
    ck_assert_int_eq(kb_topic_create(c, "t", 2, 1, 0), 0);
    ck_assert(kb_leader_move(c, "t", 1, 2, false, 0));
    ck_assert_int_eq(kb_topic_create(c, "u", 1, 1, 0), 0);
    k = kb_connect(c, 1, NULL, 0);
}

static void teardown(void)
{
    kb_destroy(c);
}

static int rule(const char *line)
{
    struct kb_rule r;
    const char *wrong = kb_rule_parse(line, &r);

    ck_assert_msg(wrong == NULL, "%s: %s", line, wrong);
    return kb_rule_add(c, &r);
}

static void send_to(const char *topic, int32_t partition)
{
    struct kb_probe_batch b;

    kb_probe_batch_default(&b);
    kb_probe_send_batch(k, VERSION, -1, 1000, topic, partition, &b);
}

static struct kb_probe_verdict put(void)
{
    send_to("t", 0);
    return kb_probe_take_verdict(k, VERSION);
}

static void expect_end(enum kb_output_kind kind)
{
    ck_assert_ptr_nonnull(kb_conn_output(k));
    ck_assert_int_eq(kb_conn_output(k)->kind, kind);
    kb_conn_pop(k);
    ck_assert_ptr_null(kb_conn_output(k));
}

/* The bytes of the next output; freed with the next call or never. */
static size_t bytes(uint8_t *out, size_t capacity)
{
    struct kb_output *o = kb_conn_output(k);
    size_t n;

    ck_assert_ptr_nonnull(o);
    ck_assert_int_eq(o->kind, KB_OUT_BYTES);
    n = o->size;
    ck_assert_uint_le(n, capacity);
    memcpy(out, o->data, n);
    kb_conn_pop(k);
    return n;
}

static int64_t stored(void)
{
    return kb_log_end(c, "t", 0);
}

START_TEST(errors_with_and_without_append)
{
    int id = rule("api=produce topic=t partition=0 error=19");
    struct kb_probe_verdict v;

    ck_assert_int_eq(put().error, 19);
    ck_assert_int_eq(stored(), 0);
    ck_assert_int_eq(kb_rule_hits(c, id), 1);
    ck_assert_int_eq(put().error, 0); /* once is once */
    rule("api=produce error=6 append count=2");
    v = put();
    ck_assert_int_eq(v.error, 6);
    ck_assert_int_eq(v.leader, 1);
    ck_assert_int_eq(put().error, 6);
    ck_assert_int_eq(stored(), 3);
    ck_assert_int_eq(put().error, 0);
    rule("error=-1 offset=99");
    v = put();
    ck_assert_int_eq(v.error, -1);
    ck_assert_int_eq(v.base_offset, 99);
}
END_TEST

START_TEST(only_what_matches)
{
    int topic = rule("api=produce topic=u error=1 count=-1");
    int node = rule("api=produce node=2 error=1 count=-1");
    int partition = rule("api=produce partition=1 error=1 count=-1");
    int api = rule("api=metadata error=1 count=-1");

    ck_assert_int_eq(put().error, 0);
    ck_assert_int_eq(kb_rule_hits(c, topic), 0);
    ck_assert_int_eq(kb_rule_hits(c, node), 0);
    ck_assert_int_eq(kb_rule_hits(c, partition), 0);
    ck_assert_int_eq(kb_rule_hits(c, api), 0);
    send_to("u", 0);
    ck_assert_int_eq(kb_probe_take_verdict(k, VERSION).error, 1);
    ck_assert_int_eq(kb_rule_hits(c, topic), 1);
    kb_rule_remove(c, topic);
    send_to("u", 0);
    ck_assert_int_eq(kb_probe_take_verdict(k, VERSION).error, 0);
}
END_TEST

START_TEST(the_nth_of_them)
{
    int i;

    rule("api=produce skip=2 count=2 error=7");
    for (i = 0; i < 6; i++)
        ck_assert_int_eq(put().error, i == 2 || i == 3 ? 7 : 0);
}
END_TEST

START_TEST(delays)
{
    rule("api=produce process_ms=30 answer_ms=50");
    send_to("t", 0);
    kb_advance(c, 30 * MS - 1);
    ck_assert_int_eq(stored(), 0);
    ck_assert_int_eq(kb_next_event_ns(c), 30 * MS);
    kb_advance(c, 30 * MS);
    ck_assert_int_eq(stored(), 1);
    ck_assert(!kb_probe_take_verdict(k, VERSION).answered);
    ck_assert(!kb_conn_wants_input(k));
    kb_advance(c, 80 * MS - 1);
    ck_assert(!kb_probe_take_verdict(k, VERSION).answered);
    kb_advance(c, 80 * MS);
    ck_assert_int_eq(kb_probe_take_verdict(k, VERSION).error, 0);
    ck_assert_int_eq(kb_requests(c, 1, API_PRODUCE), 1);
}
END_TEST

START_TEST(no_answer)
{
    rule("api=produce answer=none");
    ck_assert(!put().answered);
    ck_assert_int_eq(stored(), 1);
    ck_assert(put().answered); /* the connection goes on */
    rule("api=produce ignore");
    ck_assert(!put().answered);
    ck_assert_int_eq(stored(), 2);
    rule("api=produce answer=stall");
    ck_assert(!put().answered);
    ck_assert_int_eq(stored(), 3);
    ck_assert(!put().answered); /* it does not */
    ck_assert_int_eq(stored(), 3);
    ck_assert(kb_conn_wants_input(k));
}
END_TEST

START_TEST(ends)
{
    rule("api=produce answer=close");
    send_to("t", 0);
    expect_end(KB_OUT_CLOSE);
    ck_assert_int_eq(stored(), 1);
    k = kb_connect(c, 1, NULL, 0);
    rule("api=produce answer=reset ignore");
    send_to("t", 0);
    expect_end(KB_OUT_RESET);
    ck_assert_int_eq(stored(), 1);
    k = kb_connect(c, 1, NULL, 0);
    rule("api=produce answer=close-after");
    ck_assert(put().answered);
    expect_end(KB_OUT_CLOSE);
    k = kb_connect(c, 1, NULL, 0);
    rule("api=produce answer=half-close");
    ck_assert(put().answered);
    expect_end(KB_OUT_HALF_CLOSE);
    ck_assert(kb_conn_wants_input(k));
}
END_TEST

START_TEST(cut_at_every_byte)
{
    uint8_t whole[256], part[256];
    size_t size, at;
    char line[80];

    send_to("t", 0);
    size = bytes(whole, sizeof(whole));
    for (at = 1; at < size; at++) {
        (void)snprintf(line, sizeof(line), "api=produce answer=cut at=%d",
                       (int)at);
        rule(line);
        send_to("t", 0);
        ck_assert_uint_eq(bytes(part, sizeof(part)), at);
        ck_assert_mem_eq(part, whole, at < 8 ? at : 8);
        expect_end(KB_OUT_CLOSE);
        kb_conn_close(k, true, 0);
        k = kb_connect(c, 1, NULL, 0);
    }
    rule("api=produce answer=cut-reset at=6");
    send_to("t", 0);
    ck_assert_uint_eq(bytes(part, sizeof(part)), 6);
    expect_end(KB_OUT_RESET);
    kb_conn_close(k, true, 0);
    k = kb_connect(c, 1, NULL, 0);
    rule("api=produce answer=cut-stall at=5");
    send_to("t", 0);
    ck_assert_uint_eq(bytes(part, sizeof(part)), 5);
    ck_assert_ptr_null(kb_conn_output(k));
    ck_assert(!put().answered);
}
END_TEST

static int32_t be32(const uint8_t *p)
{
    return (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
                     (uint32_t)p[2] << 8 | p[3]);
}

START_TEST(broken_frames)
{
    uint8_t good[256], bad[256];
    size_t size, i, differ = 0;

    send_to("t", 0);
    size = bytes(good, sizeof(good));
    ck_assert_int_eq(be32(good), (int32_t)size - 4);
    ck_assert_int_eq(be32(good + 4), 7);

    rule("answer=short at=10");
    send_to("t", 0);
    ck_assert_uint_eq(bytes(bad, sizeof(bad)), 14);
    ck_assert_int_eq(be32(bad), 10);

    rule("answer=garbage");
    send_to("t", 0);
    ck_assert_uint_eq(bytes(bad, sizeof(bad)), size);
    ck_assert_int_eq(be32(bad + 4), 7);
    for (i = 8; i < size; i++)
        differ += bad[i] != good[i];
    ck_assert_uint_gt(differ, (size - 8) / 2);

    rule("answer=flip at=0 ");
    send_to("t", 0);
    ck_assert_uint_eq(bytes(bad, sizeof(bad)), size);
    ck_assert_int_eq(be32(bad + 4), 7 + (1 << 24));

    rule("answer=wrong-id");
    send_to("t", 0);
    ck_assert_uint_eq(bytes(bad, sizeof(bad)), size);
    ck_assert_int_ne(be32(bad + 4), 7);

    rule("answer=lie at=10");
    send_to("t", 0);
    ck_assert_uint_eq(bytes(bad, sizeof(bad)), size);
    ck_assert_int_eq(be32(bad), 10);
    ck_assert_int_eq(be32(bad + 4), 7);

    rule("answer=huge");
    send_to("t", 0);
    (void)bytes(bad, sizeof(bad));
    ck_assert_int_eq(be32(bad), INT32_MAX);

    rule("answer=negative");
    send_to("t", 0);
    (void)bytes(bad, sizeof(bad));
    ck_assert_int_eq(be32(bad), -1);

    rule("answer=tiny");
    send_to("t", 0);
    ck_assert_uint_eq(bytes(bad, sizeof(bad)), 6);
    ck_assert_int_eq(be32(bad), 2);

    rule("answer=other-api");
    send_to("t", 0);
    ck_assert_uint_eq(bytes(bad, sizeof(bad)), 14);
    ck_assert_int_eq(be32(bad + 4), 7);

    rule("answer=twice");
    send_to("t", 0);
    ck_assert_uint_eq(bytes(bad, sizeof(bad)), size);
    ck_assert_uint_eq(bytes(good, sizeof(good)), size);
    ck_assert_mem_eq(good, bad, size);

    rule("answer=unasked");
    send_to("t", 0);
    (void)bytes(bad, sizeof(bad));
    ck_assert_int_ne(be32(bad + 4), 7);
    (void)bytes(bad, sizeof(bad));
    ck_assert_int_eq(be32(bad + 4), 7);
    ck_assert_ptr_null(kb_conn_output(k));
    ck_assert(put().answered);
}
END_TEST

/* Two answers change places, whatever the second one is; an end lets none out. */
START_TEST(an_answer_behind_the_next)
{
    uint8_t first[256], second[256];

    rule("answer=behind");
    send_to("t", 0);
    ck_assert_ptr_null(kb_conn_output(k));
    rule("answer=wrong-id");
    send_to("t", 0);
    (void)bytes(first, sizeof(first));
    (void)bytes(second, sizeof(second));
    ck_assert_int_ne(be32(first + 4), 7);
    ck_assert_int_eq(be32(second + 4), 7);
    ck_assert_ptr_null(kb_conn_output(k));
    ck_assert_int_eq(stored(), 2);
    ck_assert(put().answered);
    rule("answer=behind");
    send_to("t", 0);
    rule("answer=close");
    send_to("t", 0);
    expect_end(KB_OUT_CLOSE);
}
END_TEST

START_TEST(a_record_is_blamed)
{
    struct kb_probe_verdict v;

    rule("api=produce error=87 blame=2147483647");
    v = put();
    ck_assert_int_eq(v.error, 87);
    ck_assert_uint_eq(v.record_errors, 1);
    ck_assert_int_eq(v.first_bad, INT32_MAX);
    rule("api=produce blame=-1");
    v = put();
    ck_assert_int_eq(v.error, 0);
    ck_assert_int_eq(v.first_bad, -1);
    ck_assert_uint_eq(v.record_errors, 1);
    ck_assert_int_eq(stored(), 1);
}
END_TEST

START_TEST(dribble)
{
    uint8_t one[8];
    size_t got = 0, size;
    int64_t at = 0;
    struct kb_output *o;

    send_to("t", 0);
    size = kb_conn_output(k)->size;
    kb_conn_pop(k);
    rule("answer=dribble dribble_ms=2");
    send_to("t", 0);
    while ((o = kb_conn_output(k)) != NULL ||
           kb_next_event_ns(c) != INT64_MAX) {
        if (o != NULL) {
            ck_assert_uint_eq(bytes(one, sizeof(one)), 1);
            got++;
        }
        kb_advance(c, ++at * MS);
    }
    ck_assert_uint_eq(got, size);
    ck_assert_int_ge(at, 2 * ((int64_t)size - 1));
}
END_TEST

START_TEST(omitted_repeated_and_strange_partitions)
{
    struct kb_probe_answer a;
    const struct produce_response_topic *t;
    const struct produce_response_partition *p;

    rule("api=produce omit");
    send_to("t", 0);
    ck_assert(kb_probe_take(k, &a, API_PRODUCE, VERSION));
    t = a.body.produce.topics.items;
    ck_assert_uint_eq(t->partitions.count, 0);
    kb_probe_answer_fini(&a);
    ck_assert_int_eq(stored(), 1);
    rule("api=produce repeat stranger");
    send_to("t", 0);
    ck_assert(kb_probe_take(k, &a, API_PRODUCE, VERSION));
    t = a.body.produce.topics.items;
    ck_assert_uint_eq(t->partitions.count, 3);
    p = t->partitions.items;
    ck_assert_int_eq(p[0].error_code, 0);
    ck_assert_int_eq(p[1].index, 0);
    ck_assert_int_eq(p[1].error_code, -1);
    ck_assert_int_gt(p[2].index, 1);
    kb_probe_answer_fini(&a);
}
END_TEST

START_TEST(throttle)
{
    struct kb_probe_verdict v;

    rule("api=produce throttle_ms=40");
    v = put();
    ck_assert_int_eq(v.throttle_ms, 40);
    ck_assert(!kb_conn_wants_input(k));
    kb_advance(c, 40 * MS);
    ck_assert(kb_conn_wants_input(k));
    rule("api=produce throttle_ms=-5");
    ck_assert_int_eq(put().throttle_ms, -5);
    ck_assert(kb_conn_wants_input(k));
}
END_TEST

START_TEST(refused_at_the_door)
{
    uint8_t frame[8] = {0};

    rule("api=connect answer=close");
    k = kb_connect(c, 1, NULL, 0);
    expect_end(KB_OUT_CLOSE);
    rule("api=connect answer=reset node=1");
    ck_assert_ptr_null(kb_conn_output(kb_connect(c, 2, NULL, 0)));
    k = kb_connect(c, 1, NULL, 0);
    expect_end(KB_OUT_RESET);
    rule("api=connect answer=stall");
    k = kb_connect(c, 1, NULL, 0);
    ck_assert(!put().answered);
    kb_conn_frame(k, frame, sizeof(frame), 0);
    ck_assert_ptr_null(kb_conn_output(k));
    k = kb_connect(c, 1, NULL, 0);
    ck_assert(put().answered);
}
END_TEST

static void ask_metadata(const char *name, struct kb_probe_answer *a)
{
    struct metadata_request m;
    struct metadata_request_topic t;
    size_t size;
    uint8_t *frame;

    memset(&t, 0, sizeof(t));
    memset(&m, 0, sizeof(m));
    t.name.data = name;
    t.name.size = strlen(name);
    m.topics.items = &t;
    m.topics.count = 1;
    frame = kb_probe_request(API_METADATA, 13, 1, &m, &size);
    kb_probe_send(k, frame, size, kb_now_ns(c));
    ck_assert(kb_probe_take(k, a, API_METADATA, 13));
}

static int16_t metadata_error(const char *name, bool whole)
{
    struct kb_probe_answer a;
    const struct metadata_topic *t;
    int16_t error;

    ask_metadata(name, &a);
    t = a.body.metadata.topics.items;
    error = whole ? a.body.metadata.error_code : t->error_code;
    kb_probe_answer_fini(&a);
    return error;
}

static void expect_partition(const struct kb_probe_answer *a, size_t i,
                             int16_t error, int32_t leader)
{
    const struct metadata_topic *t = a->body.metadata.topics.items;
    const struct metadata_partition *p = t->partitions.items;

    ck_assert_int_eq(t->error_code, 0);
    ck_assert_uint_eq(t->partitions.count, 2);
    ck_assert_int_eq(p[i].error_code, error);
    ck_assert_int_eq(p[i].leader_id, leader);
}

/* An error takes the leader away, unless the rule says `append`. */
START_TEST(errors_of_partitions_in_metadata)
{
    struct kb_probe_answer a;

    rule("api=metadata topic=t partition=1 error=5");
    rule("api=metadata topic=t partition=0 error=9 append");
    ask_metadata("t", &a);
    expect_partition(&a, 0, 9, 1);
    expect_partition(&a, 1, 5, -1);
    kb_probe_answer_fini(&a);
    ask_metadata("t", &a);
    expect_partition(&a, 0, 0, 1);
    expect_partition(&a, 1, 0, 2);
    kb_probe_answer_fini(&a);
}
END_TEST

START_TEST(errors_of_other_apis)
{
    struct init_producer_id_request r;
    struct kb_probe_answer a;
    size_t size;
    uint8_t *frame;

    rule("api=metadata topic=t error=29 count=-1");
    ck_assert_int_eq(metadata_error("t", false), 29);
    ck_assert_int_eq(metadata_error("u", false), 0);
    kb_rule_remove(c, -1);
    rule("api=metadata error=129");
    ck_assert_int_eq(metadata_error("t", true), 129);
    ck_assert_int_eq(metadata_error("t", true), 0);
    rule("api=init-producer-id error=31");
    memset(&r, 0, sizeof(r));
    frame = kb_probe_request(API_INIT_PRODUCER_ID, 4, 1, &r, &size);
    kb_probe_send(k, frame, size, 0);
    ck_assert(kb_probe_take(k, &a, API_INIT_PRODUCER_ID, 4));
    ck_assert_int_eq(a.body.init_producer_id.error_code, 31);
    kb_probe_answer_fini(&a);
}
END_TEST

static int wholes, parts;
static void decide(void *arg, const struct kb_request_info *info,
                   struct kb_action *action)
{
    ck_assert_ptr_eq(arg, &wholes);
    if (info->api == KB_API_CONNECT)
        return;
    ck_assert_int_eq(info->node_id, 1);
    ck_assert_int_eq(info->acks, -1);
    ck_assert_int_eq(info->version, VERSION);
    if (info->topic == NULL) {
        wholes++;
        ck_assert_str_eq(info->client_id, "probe");
        if (wholes == 3)
            action->answer = KB_ANSWER_NONE;
        return;
    }
    parts++;
    ck_assert_str_eq(info->topic, "t");
    ck_assert_int_eq(info->partition, 0);
    if (parts == 2) {
        action->has_error = true;
        action->error = 5;
    }
}

START_TEST(a_decider_is_asked)
{
    wholes = parts = 0;
    kb_on_decide(c, decide, &wholes);
    ck_assert_int_eq(put().error, 0);
    ck_assert_int_eq(put().error, 5);
    ck_assert(!put().answered);
    ck_assert_int_eq(wholes, 3);
    ck_assert_int_eq(parts, 3);
    ck_assert_int_eq(stored(), 2);
}
END_TEST

START_TEST(bad_rules_are_refused)
{
    static const char *const bad[] = {
        "api=fetch", "answer=maybe",     "error=x",    "error=",
        "whatever",  "skip=99999999999", "colour=red", NULL};
    struct kb_rule r;
    int i;

    for (i = 0; bad[i] != NULL; i++)
        ck_assert_msg(kb_rule_parse(bad[i], &r) != NULL, "%s", bad[i]);
    ck_assert_ptr_null(kb_rule_parse("", &r));
    ck_assert_ptr_null(kb_rule_parse(
        "api=any node=3 topic=x.y partition=4 skip=1 count=-1 answer=dribble",
        &r));
    ck_assert_int_eq(r.api, -1);
    ck_assert_int_eq(r.node_id, 3);
    ck_assert_str_eq(r.topic, "x.y");
    ck_assert_int_eq(r.partition, 4);
    ck_assert_int_eq(r.skip, 1);
    ck_assert_int_eq(r.count, -1);
    ck_assert_int_eq(r.action.answer, KB_ANSWER_DRIBBLE);
    ck_assert_int_gt(r.action.dribble_ns, 0);
}
END_TEST

START_TEST(acks_0_has_only_ends)
{
    struct kb_probe_batch b;

    kb_probe_batch_default(&b);
    rule("api=produce error=6");
    kb_probe_send_batch(k, VERSION, 0, 1000, "t", 0, &b);
    expect_end(KB_OUT_CLOSE);
    k = kb_connect(c, 1, NULL, 0);
    rule("api=produce answer=twice");
    kb_probe_send_batch(k, VERSION, 0, 1000, "t", 0, &b);
    ck_assert_ptr_null(kb_conn_output(k));
    ck_assert_int_eq(stored(), 1);
}
END_TEST

static Suite *broker_faults_suite(void)
{
    Suite *s = suite_create("broker_faults");
    TCase *t = tcase_create("faults");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, errors_with_and_without_append);
    tcase_add_test(t, only_what_matches);
    tcase_add_test(t, the_nth_of_them);
    tcase_add_test(t, delays);
    tcase_add_test(t, no_answer);
    tcase_add_test(t, ends);
    tcase_add_test(t, cut_at_every_byte);
    tcase_add_test(t, broken_frames);
    tcase_add_test(t, an_answer_behind_the_next);
    tcase_add_test(t, a_record_is_blamed);
    tcase_add_test(t, dribble);
    tcase_add_test(t, omitted_repeated_and_strange_partitions);
    tcase_add_test(t, throttle);
    tcase_add_test(t, refused_at_the_door);
    tcase_add_test(t, errors_of_partitions_in_metadata);
    tcase_add_test(t, errors_of_other_apis);
    tcase_add_test(t, a_decider_is_asked);
    tcase_add_test(t, bad_rules_are_refused);
    tcase_add_test(t, acks_0_has_only_ends);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(broker_faults_suite)
