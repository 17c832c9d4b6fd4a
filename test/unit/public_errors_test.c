/* SPDX-License-Identifier: BSD-2-Clause */
/* Every call of the public API that is wrong by itself: its code, the text that
 * names value and remedy, and that nothing was taken. */
#include <unistd.h>

#include "test/unit/public_fixture.h"

#include "test/support/main.h"

/* These are part of the ABI. */
_Static_assert(sizeof(kp_record) == 128, "kp_record never changes size");
_Static_assert(sizeof(kp_report) == 64, "kp_report never changes size");
_Static_assert(sizeof(kp_future) == 24, "kp_future never changes size");
_Static_assert(sizeof(kp_error) == 256, "kp_error never changes size");
_Static_assert(sizeof(kp_header) == 32, "kp_header never changes size");
_Static_assert(sizeof(kp_bytes) == 16, "kp_bytes never changes size");
_Static_assert(sizeof(kp_err) == 4 && sizeof(kp_kind) == 4 &&
                   sizeof(kp_level) == 4,
               "codes are 32 bits whatever the compiler makes of enums");

static kp_producer *p;

static _Atomic int reported;

static void count_report(const kp_report *report)
{
    (void)report;
    atomic_fetch_add(&reported, 1);
}

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
    atomic_store(&reported, 0);
    p = MAKE_PRODUCER("max.block.ms", "20000", "linger.ms", "0", NULL);
}

static void teardown(void)
{
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_int_eq(atomic_load(&reported), 0);
    ck_assert_uint_eq(stored_count("t", 0), 0);
    teardown_broker();
}

/* The record is refused with `want`, by send, future and send_many alike, and
 * no report follows (UR-020). */
static void refuse(const kp_record *r, kp_err want)
{
    static int tag;
    kp_record tagged = *r;
    kp_report report;
    kp_future f, many;
    size_t taken = 99;

    tagged.tag = &tag;
    if (tagged.on_delivery == NULL && tagged.queue == NULL)
        tagged.on_delivery = count_report;
    memset(&f, 0xee, sizeof(f));
    ASSERT_ERR(kp_send(p, &tagged, &f), want);
    memset(&report, 0xee, sizeof(report));
    ASSERT_ERR(kp_future_wait(&f, 0, &report), want);
    ck_assert_ptr_eq(report.tag, &tag);
    ck_assert_int_eq(report.err, want);
    ck_assert_int_eq(report.cause, KP_OK);
    ck_assert_int_eq(report.kind, kp_err_kind(want));
    ck_assert_int_eq(report.stored, KP_STORED_NO);
    ck_assert_int_eq(report.partition, -1);
    ck_assert_int_eq(report.reserved, 0);
    ck_assert_int_eq(report.offset, -1);
    ck_assert_int_eq(report.timestamp_ms, -1);
    ck_assert_ptr_null(report.text);
    ASSERT_ERR(kp_send(p, &tagged, NULL), want);
    ASSERT_ERR(kp_send_many(p, &tagged, 1, &many, &taken), want);
    ck_assert_uint_eq(taken, 0);
    ASSERT_ERR(kp_future_wait(&many, KP_FOREVER, NULL), want);
    ASSERT_ERR(kp_future_wait_all(&many, 1, KP_FOREVER), want);
}

/* K19. */
START_TEST(a_record_without_a_topic_is_refused)
{
    kp_record r = record_of(NULL, "v");

    refuse(&r, KP_EINVAL);
}
END_TEST

START_TEST(reserved_fields_must_be_zero)
{
    kp_record r = record_of("t", "v");

    r.reserved32 = 1;
    refuse(&r, KP_EINVAL);
    r.reserved32 = 0;
    r.reserved[0] = 1;
    refuse(&r, KP_EINVAL);
    r.reserved[0] = 0;
    r.reserved[1] = UINT64_C(1) << 63;
    refuse(&r, KP_EINVAL);
}
END_TEST

START_TEST(unknown_flags_are_refused)
{
    for (int bit = 3; bit < 32; bit++) {
        kp_record r = record_of("t", "v");

        r.flags = UINT32_C(1) << bit;
        ASSERT_ERR(kp_send(p, &r, NULL), KP_EINVAL);
    }
}
END_TEST

START_TEST(bytes_of_null_with_a_size_are_refused)
{
    static const kp_header null_value = {{"k", 1}, {NULL, 1}};
    kp_record r = record_of("t", "v");

    r.key.size = 1;
    refuse(&r, KP_EINVAL);
    r.key.size = 0;
    r.value = (kp_bytes){NULL, 7};
    refuse(&r, KP_EINVAL);
    r.value = kp_str("v");
    r.headers = &null_value;
    r.header_count = 1;
    refuse(&r, KP_EINVAL);
}
END_TEST

START_TEST(a_header_needs_a_key)
{
    static const kp_header headers[] = {{{"k", 1}, {NULL, 0}},
                                        {{NULL, 0}, {"v", 1}}};
    kp_record r = record_of("t", "v");

    r.headers = headers;
    r.header_count = 2;
    refuse(&r, KP_EHEADER);
    r.headers = NULL;
    refuse(&r, KP_EINVAL);
}
END_TEST

START_TEST(partitions_out_of_range_are_refused)
{
    kp_record r = record_of("t", "v");

    r.partition = 1; /* without the flag */
    refuse(&r, KP_EPARTITION);
    r.partition = -1;
    refuse(&r, KP_EPARTITION);
    r.flags = KP_HAS_PARTITION;
    refuse(&r, KP_EPARTITION);
    r.partition = INT32_MIN;
    refuse(&r, KP_EPARTITION);
}
END_TEST

START_TEST(timestamps_out_of_range_are_refused)
{
    kp_record r = record_of("t", "v");

    r.timestamp_ms = 1; /* without the flag */
    refuse(&r, KP_ETIMESTAMP);
    r.timestamp_ms = -1;
    refuse(&r, KP_ETIMESTAMP);
    r.flags = KP_HAS_TIMESTAMP;
    refuse(&r, KP_ETIMESTAMP);
    r.timestamp_ms = INT64_MIN;
    refuse(&r, KP_ETIMESTAMP);
}
END_TEST

START_TEST(a_callback_and_a_queue_are_refused)
{
    kp_record r = record_of("t", "v");

    ASSERT_OK(kp_cq_create(&r.queue, &error));
    r.on_delivery = keep_report;
    refuse(&r, KP_EINVAL);
    ck_assert_uint_eq(kp_cq_poll(r.queue, NULL, 0, 0), 0);
    kp_cq_destroy(r.queue);
}
END_TEST

START_TEST(illegal_topic_names_are_refused)
{
    static const struct {
        const char *name;
        size_t size; /* 0: a C string */
    } bad[] = {{"", 0},     {".", 0},    {"..", 0},        {"a b", 0},
               {"a/b", 0},  {"a\tb", 0}, {"t\xd0\xb5", 0}, {"\xff\xfe", 0},
               {"a\0b", 3}, {"t\n", 2},  {"a,b", 0},       {"a:b", 0}};
    char name[251];
    int64_t before;

    learn_topic(p, "t");
    before = requests_of(API_METADATA);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        kp_record r = record_of(bad[i].name, "v");

        r.topic_size = bad[i].size;
        refuse(&r, KP_ETOPIC);
    }
    memset(name, 'a', sizeof(name));
    for (size_t size = 250; size <= 251; size++) {
        kp_record r = record_of(name, "v");

        r.topic_size = size;
        refuse(&r, KP_ETOPIC);
    }
    ck_assert_int_eq(requests_of(API_METADATA), before);
}
END_TEST

START_TEST(a_topic_name_of_249_bytes_is_legal)
{
    char name[250];
    kp_record r;

    memset(name, 'a', sizeof(name));
    name[0] = '.';
    name[1] = '_';
    name[2] = '-';
    r = record_of(name, "v");
    r.topic_size = 249;
    ASSERT_OK(deliver(p, &r, NULL));
    name[249] = '\0';
    ck_assert_uint_eq(stored_count(name, 0), 1);
}
END_TEST

START_TEST(sends_need_a_producer_and_a_record)
{
    kp_record r = record_of("t", "v");
    kp_future f[2];
    size_t taken = 99;

    ASSERT_ERR(kp_send(NULL, &r, NULL), KP_EINVAL);
    ASSERT_ERR(kp_send(p, NULL, NULL), KP_EINVAL);
    ASSERT_ERR(kp_send(p, NULL, &f[0]), KP_EINVAL);
    ASSERT_ERR(kp_future_wait(&f[0], 0, NULL), KP_EINVAL);
    ASSERT_ERR(kp_send_many(NULL, &r, 1, NULL, NULL), KP_EINVAL);
    ASSERT_ERR(kp_send_many(p, NULL, 2, f, &taken), KP_EINVAL);
    ck_assert_uint_eq(taken, 0);
    ASSERT_ERR(kp_future_wait(&f[1], 0, NULL), KP_EINVAL);
}
END_TEST

START_TEST(sending_nothing_is_no_error)
{
    size_t taken = 99;

    ASSERT_OK(kp_send_many(p, NULL, 0, NULL, &taken));
    ck_assert_uint_eq(taken, 0);
    ASSERT_OK(kp_send_many(p, NULL, 0, NULL, NULL));
}
END_TEST

/* Asserts the call's error and its text, filled in from garbage. */
#define ASSERT_TEXT(call, want, ...) \
    do { \
        static const char *const parts_[] = {__VA_ARGS__}; \
        memset(&error, 0xee, sizeof(error)); \
        ASSERT_ERR(call, want); \
        ck_assert_int_eq(error.err, want); \
        ck_assert_int_eq(error.kind, kp_err_kind(want)); \
        ck_assert_int_eq(error.reserved, 0); \
        ck_assert_ptr_nonnull(memchr(error.text, 0, sizeof(error.text))); \
        for (size_t i_ = 0; i_ < sizeof(parts_) / sizeof(parts_[0]); i_++) \
            ASSERT_SAYS(parts_[i_]); \
    } while (0)

START_TEST(calls_that_wait_refuse_other_negative_timeouts)
{
    kp_future f = {0};
    int32_t count;

    ASSERT_TEXT(kp_flush(p, -2, &error), KP_EINVAL, "kp_flush", "-2",
                "KP_FOREVER");
    ASSERT_TEXT(kp_close(p, INT64_MIN, &error), KP_EINVAL, "kp_close",
                "-9223372036854775808");
    ASSERT_ERR(kp_partitions_for(p, "t", -5, &count, NULL, NULL), KP_EINVAL);
    ASSERT_ERR(kp_future_wait(&f, -2, NULL), KP_EINVAL);
    ASSERT_ERR(kp_future_wait_all(&f, 1, -2), KP_EINVAL);
    ASSERT_ERR(kp_future_wait_all(NULL, 0, -2), KP_EINVAL);
    /* The close was refused: the producer is as it was. */
    ASSERT_OK(kp_status(p, NULL, &error));
    learn_topic(p, "t");
}
END_TEST

START_TEST(calls_refuse_a_producer_that_is_none)
{
    int32_t count = 99;

    ASSERT_TEXT(kp_flush(NULL, 0, &error), KP_EINVAL, "NULL",
                "kp_producer_create");
    ASSERT_TEXT(kp_close(NULL, 0, &error), KP_EINVAL, "NULL",
                "kp_producer_create");
    ASSERT_TEXT(kp_status(NULL, "t", &error), KP_EINVAL, "NULL",
                "kp_producer_create");
    ASSERT_ERR(kp_flush(NULL, 0, NULL), KP_EINVAL);
    ASSERT_ERR(kp_close(NULL, 0, NULL), KP_EINVAL);
    ASSERT_ERR(kp_status(NULL, NULL, NULL), KP_EINVAL);
    ASSERT_ERR(kp_partitions_for(NULL, "t", 0, &count, NULL, NULL), KP_EINVAL);
    ASSERT_ERR(kp_partitions_for(p, NULL, 0, &count, NULL, NULL), KP_EINVAL);
    ck_assert_int_eq(count, 99);
    ASSERT_OK(kp_producer_destroy(NULL));
    kp_metrics(NULL, NULL, NULL);
    kp_metrics(p, NULL, NULL);
}
END_TEST

START_TEST(creation_names_what_is_missing)
{
    kp_producer *made = (kp_producer *)&error;
    kp_config *c;

    ASSERT_OK(kp_config_create(&c));
    ASSERT_TEXT(kp_producer_create(&made, NULL, &error), KP_EINVAL, "config");
    ASSERT_TEXT(kp_producer_create(NULL, c, &error), KP_EINVAL, "out");
    ASSERT_TEXT(kp_producer_create(&made, c, &error), KP_EINVAL,
                "bootstrap.servers", "host:9092");
    ASSERT_ERR(kp_producer_create(&made, c, NULL), KP_EINVAL);
    ck_assert_ptr_eq(made, (kp_producer *)&error); /* only written on success */
    kp_config_destroy(c);
}
END_TEST

START_TEST(configs_name_value_and_remedy)
{
    kp_config *c;

    ASSERT_ERR(kp_config_create(NULL), KP_EINVAL);
    ASSERT_OK(kp_config_create(&c));
    ASSERT_TEXT(kp_config_set(NULL, "a", "b", &error), KP_EINVAL,
                "kp_config_create");
    ASSERT_TEXT(kp_config_set(c, NULL, "b", &error), KP_EINVAL, "name");
    ASSERT_ERR(kp_config_set(c, "acks", NULL, &error), KP_EINVAL);
    ASSERT_TEXT(kp_config_set(c, "liner.ms", "5", &error), KP_EINVAL,
                "liner.ms", "linger.ms");
    ASSERT_TEXT(kp_config_set(c, "linger.ms", "soon", &error), KP_EINVAL,
                "linger.ms", "soon");
    ASSERT_TEXT(kp_config_set(c, "sasl.mechanism", "PLAIN", &error), KP_ENOTSUP,
                "sasl.mechanism");
    ASSERT_TEXT(kp_config_set(c, "transactional.id", "x", &error), KP_ENOTSUP,
                "transactional.id");
    ASSERT_TEXT(kp_config_load(c, "/nowhere/at/all", &error), KP_EINVAL,
                "/nowhere/at/all");
    ASSERT_TEXT(kp_config_load(c, NULL, &error), KP_EINVAL, "path");
    ASSERT_TEXT(kp_config_load(NULL, "x", &error), KP_EINVAL, "config");
    kp_config_on_log(NULL, KP_LOG_INFO, kp_log_stderr, NULL);
    kp_config_set_partitioner(NULL, NULL, NULL);
    kp_config_properties(NULL, NULL, NULL);
    kp_config_destroy(c);
    kp_config_destroy(NULL);
}
END_TEST

START_TEST(queues_ignore_what_is_not_there)
{
    kp_report report;
    kp_cq *q;

    ASSERT_TEXT(kp_cq_create(NULL, &error), KP_EINVAL, "out");
    ASSERT_OK(kp_cq_create(&q, NULL));
    ck_assert_int_eq(kp_cq_fd(NULL), -1);
    ck_assert_uint_eq(kp_cq_poll(NULL, &report, 1, KP_FOREVER), 0);
    ck_assert_uint_eq(kp_cq_poll(q, NULL, 1, KP_FOREVER), 0);
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, -2), 0);
    ck_assert_uint_eq(kp_cq_poll(q, &report, 1, 0), 0);
    kp_cq_wakeup(NULL);
    kp_cq_destroy(q);
    kp_cq_destroy(NULL);
}
END_TEST

START_TEST(futures_that_are_none_say_so)
{
    kp_future f = {0};
    kp_report report;

    memset(&report, 0x5a, sizeof(report));
    ASSERT_ERR(kp_future_wait(&f, KP_FOREVER, &report), KP_EINVAL);
    ASSERT_ERR(kp_future_wait(NULL, KP_FOREVER, NULL), KP_EINVAL);
    ASSERT_ERR(kp_future_wait_all(NULL, 1, KP_FOREVER), KP_EINVAL);
    ASSERT_OK(kp_future_wait_all(NULL, 0, KP_FOREVER));
    ASSERT_OK(kp_future_wait_all(&f, 1, KP_FOREVER));
    kp_future_release(&f, 1);
    kp_future_release(NULL, 1);
    kp_future_release(NULL, 0);
}
END_TEST

START_TEST(names_and_texts_are_there_for_every_number)
{
    ck_assert_str_eq(kp_err_name(KP_OK), "KP_OK");
    ck_assert_str_eq(kp_err_name(6), "NOT_LEADER_OR_FOLLOWER");
    ck_assert_str_eq(kp_err_name(-1), "UNKNOWN_SERVER_ERROR");
    ck_assert_int_eq(kp_err_kind(KP_OK), KP_KIND_NONE);
    ck_assert_int_eq(kp_err_kind(KP_EBUFFER), KP_KIND_RETRIABLE);
    ck_assert_int_eq(kp_err_kind(KP_EMETADATA), KP_KIND_RETRIABLE);
    ck_assert_int_eq(kp_err_kind(KP_ETOOBIG), KP_KIND_INVALID);
    for (kp_err err = -200; err <= 200; err++) {
        ck_assert_uint_gt(strlen(kp_err_name(err)), 0);
        ck_assert_uint_gt(strlen(kp_err_text(err)), 0);
        ck_assert_int_ge(kp_err_kind(err), KP_KIND_NONE);
        ck_assert_int_le(kp_err_kind(err), KP_KIND_FATAL);
        if (err != KP_OK && err != KP_PENDING)
            ck_assert_int_ne(kp_err_kind(err), KP_KIND_NONE);
    }
    ck_assert_ptr_nonnull(kp_err_name(INT32_MAX));
    ck_assert_ptr_nonnull(kp_err_text(INT32_MIN));
}
END_TEST

START_TEST(the_ready_log_function_writes_one_line)
{
    const kp_log line = {.level = KP_LOG_WARN,
                         .repeated = 3,
                         .client_id = "orders",
                         .component = "metadata",
                         .text = "something stands in the way"};
    int fds[2], saved = dup(STDERR_FILENO);
    char text[500];
    ssize_t n;

    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
    kp_log_stderr(NULL, &line);
    (void)fflush(stderr);
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    (void)close(fds[1]);
    n = read(fds[0], text, sizeof(text) - 1);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    ck_assert_ptr_eq(strchr(text, '\n'), text + n - 1);
    /* 2031-05-06T07:08:09.010Z kp WARN  orders metadata: ... */
    ck_assert_int_eq(text[4], '-');
    ck_assert_int_eq(text[10], 'T');
    ck_assert_ptr_nonnull(strstr(text, "Z kp WARN "));
    ck_assert_ptr_nonnull(strstr(text, "orders"));
    ck_assert_ptr_nonnull(strstr(text, "metadata"));
    ck_assert_ptr_nonnull(strstr(text, "something stands in the way"));
    ck_assert_ptr_nonnull(strstr(text, "3"));
    (void)close(fds[0]);
    (void)close(saved);
}
END_TEST

START_TEST(the_library_says_what_it_is)
{
    char version[32];

    (void)snprintf(version, sizeof(version), "%d.%d.%d", KP_VERSION_MAJOR,
                   KP_VERSION_MINOR, KP_VERSION_PATCH);
    ck_assert_str_eq(kp_version(), version);
    ck_assert_int_eq(KP_VERSION_NUM, KP_VERSION_MAJOR << 16 |
                                         KP_VERSION_MINOR << 8 |
                                         KP_VERSION_PATCH);
    ck_assert_ptr_nonnull(kp_features());
    ck_assert_ptr_null(strstr(kp_features(), "tls"));
}
END_TEST

static Suite *public_errors_suite(void)
{
    Suite *s = suite_create("public errors");
    TCase *t = tcase_create("refusals");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_record_without_a_topic_is_refused);
    tcase_add_test(t, reserved_fields_must_be_zero);
    tcase_add_test(t, unknown_flags_are_refused);
    tcase_add_test(t, bytes_of_null_with_a_size_are_refused);
    tcase_add_test(t, a_header_needs_a_key);
    tcase_add_test(t, partitions_out_of_range_are_refused);
    tcase_add_test(t, timestamps_out_of_range_are_refused);
    tcase_add_test(t, a_callback_and_a_queue_are_refused);
    tcase_add_test(t, illegal_topic_names_are_refused);
    tcase_add_test(t, a_topic_name_of_249_bytes_is_legal);
    tcase_add_test(t, sends_need_a_producer_and_a_record);
    tcase_add_test(t, sending_nothing_is_no_error);
    tcase_add_test(t, calls_that_wait_refuse_other_negative_timeouts);
    tcase_add_test(t, calls_refuse_a_producer_that_is_none);
    tcase_add_test(t, creation_names_what_is_missing);
    suite_add_tcase(s, t);
    t = tcase_create("alone");
    tcase_add_test(t, configs_name_value_and_remedy);
    tcase_add_test(t, queues_ignore_what_is_not_there);
    tcase_add_test(t, futures_that_are_none_say_so);
    tcase_add_test(t, names_and_texts_are_there_for_every_number);
    tcase_add_test(t, the_ready_log_function_writes_one_line);
    tcase_add_test(t, the_library_says_what_it_is);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_errors_suite)
