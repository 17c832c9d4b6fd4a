/* SPDX-License-Identifier: BSD-2-Clause */
/* config_load_test.c - kp_config_load: what a file sets, what is passed over
 * with which line in the log, what is refused, and that a file counts as a
 * whole or not at all. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/main.h"
#include "test/unit/config_fixture.h"

static char path[64];

static void setup_file(void)
{
    int fd;

    setup();
    (void)snprintf(path, sizeof(path), "/tmp/kp-config-XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
}

static void teardown_file(void)
{
    (void)unlink(path);
    teardown();
}

static void write_file(const char *text, size_t size)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

static kp_err load(const char *text)
{
    write_file(text, strlen(text));
    return kp_config_load(config, path, &error);
}

static void load_ok(const char *text)
{
    kp_err err = load(text);

    ck_assert_msg(err == KP_OK, "%s", error.text);
}

/* `wanted` comes after the path. */
static void assert_after_path(const char *text, const char *wanted)
{
    ck_assert_ptr_eq(strstr(text, path), text);
    ck_assert_str_eq(text + strlen(path), wanted);
}

static void load_fails(const char *text, kp_err err, const char *wanted)
{
    ck_assert_int_eq(load(text), err);
    ck_assert_int_eq(error.err, err);
    ck_assert_int_eq(error.kind, kp_err_kind(err));
    assert_after_path(error.text, wanted);
}

static void assert_warned(int i, const char *wanted)
{
    ck_assert_int_lt(i, logged.count);
    ck_assert_int_eq(logged.levels[i], KP_LOG_WARN);
    assert_after_path(logged.texts[i], wanted);
}

static void assert_unset(void *arg, const kp_property *property)
{
    (void)arg;
    ck_assert_msg(!property->is_set, "%s is set", property->name);
}

static void assert_nothing_set(void)
{
    kp_config_properties(config, assert_unset, NULL);
}

/* -- What is set -- */

START_TEST(file_of_the_kafka_tools_is_taken)
{
    load_ok("# a file as it is shared\r\n"
            "bootstrap.servers = kafka-1:9092,\\\r\n"
            "    kafka-2:9092\r\n"
            "\r\n"
            "compression.type: zstd\r\n"
            "client.id caf\\u00e9\r\n"
            "security.protocol=PLAINTEXT\r\n"
            "acks=all  \r\n"
            "transaction.timeout.ms=60000\r\n"
            "linger.ms=20");
    assert_value("bootstrap.servers", "kafka-1:9092,kafka-2:9092", 1);
    assert_value("compression.type", "zstd", 1);
    assert_value("client.id", "caf\xc3\xa9", 1);
    assert_value("security.protocol", "PLAINTEXT", 1);
    assert_value("acks", "all", 1);
    assert_value("linger.ms", "20", 1);
    assert_value("batch.size", "16384", 0);
    ck_assert_int_eq(logged.count, 0);
}
END_TEST

START_TEST(empty_file_is_fine)
{
    load_ok("");
    load_ok("\n# nothing\n");
    assert_nothing_set();
    ck_assert_int_eq(logged.count, 0);
}
END_TEST

START_TEST(alias_in_a_file_sets_its_property)
{
    load_ok("metadata.broker.list=a:1\nqueue.buffering.max.ms=3\n");
    assert_value("bootstrap.servers", "a:1", 1);
    assert_value("linger.ms", "3", 1);
    ck_assert_int_eq(logged.count, 0);
}
END_TEST

START_TEST(last_line_of_a_name_counts)
{
    load_ok("linger.ms=1\nacks=nonsense\nlinger.ms=2\nacks=1\n"
            "security.protocol=SSL\nsecurity.protocol=PLAINTEXT\n");
    assert_value("linger.ms", "2", 1);
    assert_value("acks", "1", 1);
    assert_value("security.protocol", "PLAINTEXT", 1);
}
END_TEST

START_TEST(only_the_last_line_must_be_right)
{
    load_fails("acks=1\nacks=nonsense\n", KP_EINVAL,
               " line 2: acks=\"nonsense\": must be all, -1, 0 or 1");
    assert_nothing_set();
}
END_TEST

START_TEST(later_call_wins)
{
    set_ok("linger.ms", "1");
    set_ok("acks", "1");
    load_ok("linger.ms=2\n");
    assert_value("linger.ms", "2", 1);
    assert_value("acks", "1", 1);
    set_ok("linger.ms", "3");
    assert_value("linger.ms", "3", 1);
}
END_TEST

START_TEST(round_robin_class_is_known)
{
    load_ok("partitioner.class="
            "org.apache.kafka.clients.producer.RoundRobinPartitioner\n");
    assert_value("partitioner.class",
                 "org.apache.kafka.clients.producer.RoundRobinPartitioner", 1);
}
END_TEST

START_TEST(pipe_can_be_loaded)
{
    int ends[2];
    char name[32];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "acks=1\n", 7), 7);
    ck_assert_int_eq(close(ends[1]), 0);
    (void)snprintf(name, sizeof(name), "/dev/fd/%d", ends[0]);
    ck_assert_int_eq(kp_config_load(config, name, &error), KP_OK);
    assert_value("acks", "1", 1);
    ck_assert_int_eq(close(ends[0]), 0);
}
END_TEST

/* -- What is passed over -- */

START_TEST(unknown_names_are_logged_and_passed_over)
{
    load_ok("group.id=g\n"
            "acks=1\n"
            "batch.sizes=1\n"
            "auto.offset.reset=earliest\n");
    assert_value("acks", "1", 1);
    assert_value("batch.size", "16384", 0);
    ck_assert_int_eq(logged.count, 3);
    assert_warned(0,
                  " line 1: no property is called \"group.id\": passed over");
    assert_warned(1, " line 3: no property is called \"batch.sizes\": passed "
                     "over; did you mean batch.size?");
    assert_warned(2, " line 4: no property is called \"auto.offset.reset\": "
                     "passed over");
}
END_TEST

START_TEST(value_of_an_unknown_name_is_not_logged)
{
    load_ok("my.password=hunter2\nx\\ny=1\n");
    ck_assert_int_eq(logged.count, 2);
    assert_warned(
        0, " line 1: no property is called \"my.password\": passed over");
    assert_warned(1, " line 2: no property is called \"x\\x0Ay\": passed over");
}
END_TEST

START_TEST(java_classes_are_logged_and_passed_over)
{
    load_ok("key.serializer=org.apache.kafka.common.serialization."
            "StringSerializer\n"
            "value.serializer=x\n"
            "interceptor.classes=\n"
            "metric.reporters=x\n"
            "config.providers=file\n"
            "linger.ms=4\n");
    assert_value("linger.ms", "4", 1);
    ck_assert_int_eq(logged.count, 5);
    assert_warned(0, " line 1: key.serializer means a Java class: passed over "
                     "(kp_send takes bytes)");
    assert_warned(1, " line 2: value.serializer means a Java class: passed "
                     "over (kp_send takes bytes)");
    assert_warned(2, " line 3: interceptor.classes means a Java class: passed "
                     "over (records are sent as they are given)");
    assert_warned(3, " line 4: metric.reporters means a Java class: passed "
                     "over (kp_metrics reads the metrics)");
    assert_warned(4, " line 5: config.providers means a Java class: passed "
                     "over (values are taken as they are written)");
}
END_TEST

START_TEST(fifty_unknown_names_are_logged_and_the_rest_counted)
{
    char text[4096];
    size_t used = 0;
    int i;

    for (i = 0; i < 63; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "consumer.thing.%d=1\n", i);
    load_ok(text);
    ck_assert_int_eq(logged.count, 51);
    assert_warned(49, " line 50: no property is called "
                      "\"consumer.thing.49\": passed over");
    assert_warned(50, ": 13 more names are unknown: passed over");
}
END_TEST

/* Lines and errors show the path, and each has to stay one line. */
START_TEST(path_is_escaped_wherever_it_is_shown)
{
    static const char odd[] = "\n\x1b[2J", shown[] = "\\x0A\\x1B[2J";
    char text[64 * 4 + 16], plain[sizeof(path)], real[sizeof(path)];
    size_t used = 0, size = strlen(path);

    for (int i = 0; i < 63; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "x=1\n");
    (void)snprintf(text + used, sizeof(text) - used, "key.serializer=x\n");
    memcpy(plain, path, sizeof(path));
    memcpy(path + size, odd, sizeof(odd));
    memcpy(real, path, sizeof(path));
    ck_assert_int_eq(rename(plain, real), 0);
    load_ok(text);
    write_file("acks=nonsense\n", 14);
    ck_assert_int_eq(kp_config_load(config, path, &error), KP_EINVAL);
    ck_assert_int_eq(unlink(real), 0);
    memcpy(path + size, shown, sizeof(shown));
    ck_assert_int_eq(logged.count, 52);
    assert_warned(49, " line 50: no property is called \"x\": passed over");
    assert_warned(50, " line 64: key.serializer means a Java class: passed "
                      "over (kp_send takes bytes)");
    assert_warned(51, ": 13 more names are unknown: passed over");
    assert_after_path(error.text,
                      " line 1: acks=\"nonsense\": must be all, -1, 0 or 1");
}
END_TEST

START_TEST(level_of_the_log_is_kept)
{
    kp_config_on_log(config, KP_LOG_ERROR, keep_line, &logged);
    load_ok("group.id=g\n");
    ck_assert_int_eq(logged.count, 0);
    kp_config_on_log(config, KP_LOG_WARN, keep_line, &logged);
    load_ok("group.id=g\n");
    ck_assert_int_eq(logged.count, 1);
    kp_config_on_log(config, KP_LOG_WARN, NULL, NULL);
    load_ok("group.id=g\n");
    ck_assert_int_eq(logged.count, 1);
}
END_TEST

START_TEST(lines_carry_the_client_id_once_it_is_set)
{
    set_ok("client.id", "orders");
    load_ok("group.id=g\n");
    ck_assert_str_eq(logged.client_id, "orders");
}
END_TEST

/* -- What is refused -- */

struct refusal {
    const char *text;
    kp_err err;
    const char *wanted;
};

#define NO_TLS \
    ": this version has no TLS or SASL; leave it out only if you can do " \
    "without"

/* Each after a line that is right, and before one. */
static const struct refusal refusals[] = {
    {"security.protocol=SASL_SSL", KP_ENOTSUP,
     " line 2: security.protocol=\"SASL_SSL\": this version has no TLS or "
     "SASL; only PLAINTEXT is possible"},
    {"sasl.jaas.config=\\\n org.Plain required password=\"s3cr3t\";",
     KP_ENOTSUP, " line 2: sasl.jaas.config" NO_TLS},
    {"sasl.mechanism=GSSAPI", KP_ENOTSUP, " line 2: sasl.mechanism" NO_TLS},
    {"ssl.truststore.type=JKS", KP_ENOTSUP,
     " line 2: ssl.truststore.type" NO_TLS},
    {"ssl.ca.location=/ca.pem", KP_ENOTSUP, " line 2: ssl.ca.location" NO_TLS},
    {"security.providers=", KP_ENOTSUP, " line 2: security.providers" NO_TLS},
    {"enable.ssl.certificate.verification=true", KP_ENOTSUP,
     " line 2: enable.ssl.certificate.verification" NO_TLS},
    {"transactional.id=t", KP_ENOTSUP,
     " line 2: transactional.id: this version has no transactions; leave it "
     "out only if you can do without"},
    {"transaction.timeout.ms=1", KP_ENOTSUP,
     " line 2: transaction.timeout.ms=\"1\": this version has no transactions; "
     "only 60000 is possible"},
    {"transaction.two.phase.commit.enable=true", KP_ENOTSUP,
     " line 2: transaction.two.phase.commit.enable=\"true\": this version has "
     "no transactions; only false is possible"},
    {"partitioner.class=com.example.Mine", KP_EINVAL,
     " line 2: partitioner.class=\"com.example.Mine\": a Java class cannot be "
     "run here; use kp_config_set_partitioner"},
    {"queue.buffering.max.messages=1", KP_EINVAL,
     " line 2: queue.buffering.max.messages is librdkafka's: use buffer.memory "
     "(in bytes)"},
    {"linger.ms=5s", KP_EINVAL,
     " line 2: linger.ms=\"5s\": must be a whole number of milliseconds from 0 "
     "to 9223372036854775807"},
    {"bootstrap.servers=ok:1,\\\n  bad", KP_EINVAL,
     " line 2: bootstrap.servers: \"bad\": the port is missing: write "
     "host:9092"},
    {"client.id=\xe9", KP_EINVAL,
     " line 2: client.id=\"\\xE9\": must be UTF-8 text of at most 32767 bytes "
     "without control characters"},
    {"client.id=\\u12", KP_EINVAL,
     " line 2: four hexadecimal digits must follow \\u (write \\\\u for a "
     "backslash and a u)"},
};

START_TEST(file_with_an_error_changes_nothing)
{
    char text[256];

    set_ok("acks", "1");
    (void)snprintf(text, sizeof(text), "acks=0\n%s\nbatch.size=1\n",
                   refusals[_i].text);
    load_fails(text, refusals[_i].err, refusals[_i].wanted);
    ck_assert_int_eq(kp_config_load(config, path, NULL), refusals[_i].err);
    assert_value("acks", "1", 1);
    assert_value("batch.size", "16384", 0);
    assert_value("linger.ms", "5", 0);
    ck_assert_int_eq(logged.count, 0);
}
END_TEST

/* Lines that make a reader stumble, each before one that asks for TLS. */
static const struct refusal stumbling[] = {
    {"acks=1\nclient.id=\\u12", KP_EINVAL,
     " line 2: four hexadecimal digits must follow \\u (write \\\\u for a "
     "backslash and a u)"},
    {"C:\\users=1", KP_EINVAL,
     " line 1: four hexadecimal digits must follow \\u (write \\\\u for a "
     "backslash and a u)"},
    {"linger.ms=5s\nclient.id=\\ud83d", KP_EINVAL,
     " line 1: linger.ms=\"5s\": must be a whole number of milliseconds from 0 "
     "to 9223372036854775807"},
    {"client.id=\\ude00\nlinger.ms=5s", KP_EINVAL,
     " line 1: a low surrogate (\\uDC00 to \\uDFFF) must follow a high one"},
};

/* A program that does not look at what loading says gets no producer that sends
 * in the clear: what we lack is seen behind any line that is wrong, and the
 * first one is told, and nothing is taken. */
START_TEST(what_we_lack_is_seen_behind_a_bad_line)
{
    static const char *const asks[] = {"security.protocol=SASL_SSL",
                                       "sasl.jaas.config=x"};
    const struct refusal *s = &stumbling[_i];
    kp_producer *p = NULL;

    for (int i = 0; i < 2; i++) {
        char text[256];

        (void)snprintf(text, sizeof(text), "%s\n%s\nbatch.size=1\n", s->text,
                       asks[i]);
        load_fails(text, s->err, s->wanted);
        assert_nothing_set();
        set_ok("bootstrap.servers", "127.0.0.1:1");
        ck_assert_int_eq(kp_producer_create(&p, config, &error), KP_ENOTSUP);
        ck_assert_ptr_null(p);
        kp_config_destroy(config);
        ck_assert_int_eq(kp_config_create(&config), KP_OK);
    }
}
END_TEST

START_TEST(nul_is_refused)
{
    write_file("acks=1\nx=\0\n", 11);
    ck_assert_int_eq(kp_config_load(config, path, &error), KP_EINVAL);
    assert_after_path(error.text, " line 2: a NUL byte; a properties file is "
                                  "text in UTF-8");
    assert_nothing_set();
}
END_TEST

/* `size` bytes, all but the first line a comment. */
static kp_err load_of_size(size_t size)
{
    char *text = malloc(size);
    kp_err err;

    ck_assert_ptr_nonnull(text);
    memset(text, '#', size);
    memcpy(text, "acks=1\n", 7);
    write_file(text, size);
    free(text);
    err = kp_config_load(config, path, &error);
    return err;
}

START_TEST(file_of_one_mebibyte_is_the_largest)
{
    char wanted[160];

    ck_assert_int_eq(load_of_size(1048577), KP_EINVAL);
    (void)snprintf(wanted, sizeof(wanted),
                   "cannot read \"%s\": it is larger than 1048576 bytes", path);
    ck_assert_str_eq(error.text, wanted);
    assert_nothing_set();
    ck_assert_int_eq(load_of_size(1048576), KP_OK);
    assert_value("acks", "1", 1);
}
END_TEST

START_TEST(endless_file_ends)
{
    assert_error(kp_config_load(config, "/dev/zero", &error), KP_EINVAL,
                 "cannot read \"/dev/zero\": it is larger than 1048576 bytes");
}
END_TEST

START_TEST(file_that_cannot_be_read_is_named)
{
    assert_error(kp_config_load(config, "/no/such/file\n", &error), KP_EINVAL,
                 "cannot read \"/no/such/file\\x0A\": No such file or "
                 "directory");
    assert_error(kp_config_load(config, "/tmp", &error), KP_EINVAL,
                 "cannot read \"/tmp\": Is a directory");
    assert_error(kp_config_load(config, "", &error), KP_EINVAL,
                 "cannot read \"\": No such file or directory");
    assert_nothing_set();
}
END_TEST

START_TEST(null_arguments_are_refused)
{
    assert_error(kp_config_load(NULL, path, &error), KP_EINVAL,
                 "config is NULL: make one with kp_config_create");
    assert_error(kp_config_load(config, NULL, &error), KP_EINVAL,
                 "path is NULL: give the path of a .properties file");
}
END_TEST

START_TEST(no_descriptor_is_left_open)
{
    int before = dup(0), after;

    ck_assert_int_ge(before, 0);
    ck_assert_int_eq(close(before), 0);
    load_ok("acks=1\n");
    ck_assert_int_eq(load("acks=2\n"), KP_EINVAL);
    ck_assert_int_eq(kp_config_load(config, "/tmp", NULL), KP_EINVAL);
    after = dup(0);
    ck_assert_int_eq(after, before);
    ck_assert_int_eq(close(after), 0);
}
END_TEST

/* A thread that is being cancelled finishes the call: it ends only at its own
 * cancellation point. */
static void *load_while_cancelled(void *arg)
{
    int *loaded = arg;

    (void)pthread_cancel(pthread_self());
    *loaded = kp_config_load(config, path, NULL) == KP_OK;
    pthread_testcancel();
    *loaded = -1;
    return NULL;
}

START_TEST(load_is_no_cancellation_point)
{
    pthread_t thread;
    int loaded = 0;

    write_file("acks=1\n", 7);
    ck_assert_int_eq(
        pthread_create(&thread, NULL, load_while_cancelled, &loaded), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(loaded, 1);
    assert_value("acks", "1", 1);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(no_memory_changes_nothing)
{
    static const char text[] =
        "bootstrap.servers=a:1\nacks=1\nclient.id=x\ngroup.id=g\n";
    long nth = 0, live;
    kp_err err;

    set_ok("acks", "0");
    set_ok("client.id", "before");
    live = kp__mem_live();
    write_file(text, sizeof(text) - 1);
    do {
        kp__mem_fail_at(++nth);
        err = kp_config_load(config, path, &error);
        kp__mem_fail_at(-1);
        if (err != KP_OK) {
            ck_assert_int_eq(err, KP_ENOMEM);
            ck_assert_int_eq(error.err, KP_ENOMEM);
            ck_assert_ptr_nonnull(strstr(error.text, "no memory"));
            ck_assert_int_eq(kp__mem_live(), live);
            assert_value("acks", "0", 1);
            assert_value("client.id", "before", 1);
            assert_value("bootstrap.servers", "", 0);
        }
    } while (err != KP_OK);
    ck_assert_int_ge(nth, 7);
    assert_value("acks", "1", 1);
    assert_value("client.id", "x", 1);
    ck_assert_int_eq(kp__mem_live(), live + 1); /* bootstrap.servers */
}
END_TEST
#endif

/* -- kp_log_stderr -- */

static void capture(const kp_log *line, char *out, size_t capacity)
{
    FILE *f = tmpfile();
    int saved = dup(2);
    size_t n;

    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(saved, 0);
    ck_assert_int_ge(dup2(fileno(f), 2), 0);
    kp_log_stderr(NULL, line);
    ck_assert_int_ge(dup2(saved, 2), 0);
    rewind(f);
    n = fread(out, 1, capacity - 1, f);
    out[n] = '\0';
    (void)fclose(f);
    (void)close(saved);
}

START_TEST(log_stderr_writes_one_line)
{
    kp_log line = {.level = KP_LOG_WARN,
                   .client_id = "orders",
                   .component = "metadata",
                   .text = "no leader"};
    char text[256];

    capture(&line, text, sizeof(text));
    ck_assert_uint_gt(strlen(text), 24);
    ck_assert_int_eq(text[10], 'T');
    ck_assert_int_eq(text[23], 'Z');
    ck_assert_str_eq(text + 24, " kp WARN  orders metadata: no leader\n");
    line.level = KP_LOG_ERROR;
    line.client_id = "";
    line.repeated = 3;
    capture(&line, text, sizeof(text));
    ck_assert_str_eq(text + 24,
                     " kp ERROR metadata: no leader (3 like the last)\n");
}
END_TEST

static Suite *config_load_suite(void)
{
    Suite *suite = suite_create("config_load");
    TCase *tcase = tcase_create("load");

    config_fixture_used();
    tcase_add_checked_fixture(tcase, setup_file, teardown_file);
    tcase_add_test(tcase, file_of_the_kafka_tools_is_taken);
    tcase_add_test(tcase, empty_file_is_fine);
    tcase_add_test(tcase, alias_in_a_file_sets_its_property);
    tcase_add_test(tcase, last_line_of_a_name_counts);
    tcase_add_test(tcase, only_the_last_line_must_be_right);
    tcase_add_test(tcase, later_call_wins);
    tcase_add_test(tcase, round_robin_class_is_known);
    tcase_add_test(tcase, pipe_can_be_loaded);
    tcase_add_test(tcase, unknown_names_are_logged_and_passed_over);
    tcase_add_test(tcase, value_of_an_unknown_name_is_not_logged);
    tcase_add_test(tcase, java_classes_are_logged_and_passed_over);
    tcase_add_test(tcase, fifty_unknown_names_are_logged_and_the_rest_counted);
    tcase_add_test(tcase, path_is_escaped_wherever_it_is_shown);
    tcase_add_test(tcase, level_of_the_log_is_kept);
    tcase_add_test(tcase, lines_carry_the_client_id_once_it_is_set);
    tcase_add_loop_test(tcase, file_with_an_error_changes_nothing, 0,
                        (int)(sizeof(refusals) / sizeof(refusals[0])));
    tcase_add_loop_test(tcase, what_we_lack_is_seen_behind_a_bad_line, 0,
                        (int)(sizeof(stumbling) / sizeof(stumbling[0])));
    tcase_add_test(tcase, nul_is_refused);
    tcase_add_test(tcase, file_of_one_mebibyte_is_the_largest);
    tcase_add_test(tcase, endless_file_ends);
    tcase_add_test(tcase, file_that_cannot_be_read_is_named);
    tcase_add_test(tcase, null_arguments_are_refused);
    tcase_add_test(tcase, no_descriptor_is_left_open);
    tcase_add_test(tcase, load_is_no_cancellation_point);
#ifdef KP_FAILMALLOC
    tcase_add_test(tcase, no_memory_changes_nothing);
#endif
    tcase_add_test(tcase, log_stderr_writes_one_line);
    suite_add_tcase(suite, tcase);
    return suite;
}

KP_TEST_MAIN(config_load_suite)
