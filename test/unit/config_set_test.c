/* SPDX-License-Identifier: BSD-2-Clause */
/* config_set_test.c - kp_config_set and kp_config_properties: every property of
 * Kafka 4.4's producer, its default and its limits, and the exact words of each
 * refusal. */
#include "test/support/main.h"
#include "test/unit/config_fixture.h"

/* -- Java's table -- */

/* As Kafka 4.4.0 prints it.  A number's good values are its limits. */
struct row {
    const char *name, *default_value;
    const char *good[4], *bad[4];
};

#define INT_MAX_TEXT "2147483647"
#define INT_OVER "2147483648"
#define LONG_MAX_TEXT "9223372036854775807"
#define LONG_OVER "9223372036854775808"
#define BOOLEANS \
    {"true", "FALSE"}, \
    { \
        "yes", "1", "", "truee" \
    }
#define INT_FROM_0 \
    {"0", INT_MAX_TEXT}, \
    { \
        "-1", INT_OVER, "1.5", "" \
    }
#define LONG_FROM_0 \
    {"0", LONG_MAX_TEXT}, \
    { \
        "-1", LONG_OVER, "5s", "" \
    }

static const struct row rows[] = {
    {"acks", "all", {"all", "-1", "0", "1"}, {"2", "-2", "", "quorum"}},
    {"batch.size", "16384", INT_FROM_0},
    {"bootstrap.resolve.timeout.ms", "0", LONG_FROM_0},
    {"bootstrap.servers", "", {"a:1", "a:1,b:2", ""}, {"a", "a:0", "a:b"}},
    {"buffer.memory", "33554432", LONG_FROM_0},
    {"buffer.memory.allocation.strategy",
     "full",
     {"full", "INCREMENTAL"},
     {"none", ""}},
    {"client.dns.lookup",
     "use_all_dns_ips",
     {"use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"},
     {"default", "USE_ALL_DNS_IPS", ""}},
    {"client.id", "", {"", "x", "caf\xc3\xa9"}, {"a\nb", "\xe9", "a\x7f"}},
    {"client.rack", "", {"", "rack 1"}, {"a\tb", "\xed\xa0\x80"}},
    {"compression.gzip.level", "-1", {"-1", "1", "9"}, {"0", "-2", "10", ""}},
    {"compression.lz4.level", "9", {"1", "17"}, {"0", "18", "-1"}},
    {"compression.type",
     "none",
     {"gzip", "snappy", "lz4", "zstd"},
     {"GZIP", "brotli", "", "lz"}},
    {"compression.zstd.level", "3", {"-131072", "22", "0"}, {"-131073", "23"}},
    {"connections.max.idle.ms",
     "540000",
     {"-1", "0", "-9223372036854775808", LONG_MAX_TEXT},
     {"never", "", LONG_OVER, "-9223372036854775809"}},
    {"delivery.timeout.ms", "120000", INT_FROM_0},
    {"enable.idempotence", "true", BOOLEANS},
    {"enable.metrics.push", "true", BOOLEANS},
    {"linger.ms", "5", LONG_FROM_0},
    {"max.block.ms", "60000", LONG_FROM_0},
    {"max.in.flight.requests.per.connection",
     "5",
     {"1", INT_MAX_TEXT},
     {"0", INT_OVER}},
    {"max.request.size", "1048576", INT_FROM_0},
    {"metadata.cluster.check.enable", "true", BOOLEANS},
    {"metadata.max.age.ms", "300000", LONG_FROM_0},
    {"metadata.max.idle.ms",
     "300000",
     {"5000", LONG_MAX_TEXT},
     {"4999", LONG_OVER}},
    {"metadata.recovery.rebootstrap.trigger.ms", "300000", LONG_FROM_0},
    {"metadata.recovery.strategy",
     "rebootstrap",
     {"REBOOTSTRAP", "none"},
     {"retry", ""}},
    {"metrics.num.samples", "2", {"1", INT_MAX_TEXT}, {"0", INT_OVER}},
    {"metrics.recording.level",
     "INFO",
     {"INFO", "DEBUG", "TRACE"},
     {"info", ""}},
    {"metrics.sample.window.ms", "30000", LONG_FROM_0},
    {"partitioner.adaptive.partitioning.enable", "true", BOOLEANS},
    {"partitioner.availability.timeout.ms", "0", LONG_FROM_0},
    {"partitioner.class",
     "",
     {"org.apache.kafka.clients.producer.RoundRobinPartitioner"},
     {"com.example.Mine", "", "null", "RoundRobinPartitioner"}},
    {"partitioner.ignore.keys", "false", BOOLEANS},
    {"partitioner.rack.aware", "false", BOOLEANS},
    {"receive.buffer.bytes", "32768", {"-1", INT_MAX_TEXT}, {"-2", INT_OVER}},
    {"reconnect.backoff.max.ms", "1000", LONG_FROM_0},
    {"reconnect.backoff.ms", "50", LONG_FROM_0},
    {"request.timeout.ms", "30000", INT_FROM_0},
    {"retries", INT_MAX_TEXT, INT_FROM_0},
    {"retry.backoff.max.ms", "1000", LONG_FROM_0},
    {"retry.backoff.ms", "100", LONG_FROM_0},
    {"security.protocol",
     "PLAINTEXT",
     {"PLAINTEXT", "plaintext"},
     {"TLS", "", "PLAIN"}},
    {"send.buffer.bytes", "131072", {"-1", INT_MAX_TEXT}, {"-2", INT_OVER}},
    {"socket.connection.setup.timeout.max.ms", "30000", LONG_FROM_0},
    {"socket.connection.setup.timeout.ms", "10000", LONG_FROM_0},
    {"transaction.timeout.ms", "60000", {"60000"}, {"-1", INT_OVER, "a", ""}},
    {"transaction.two.phase.commit.enable", "false", {"False"}, {"no", ""}},
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

START_TEST(row_is_javas)
{
    const struct row *row = &rows[_i];
    kp_property p = property_of(NULL, row->name);
    size_t i;

    ck_assert_str_eq(p.value, row->default_value);
    ck_assert_str_eq(p.default_value, row->default_value);
    ck_assert_int_eq(p.is_set, 0);
    for (i = 0; i < 4 && row->good[i] != NULL; i++) {
        set_ok(row->name, row->good[i]);
        assert_value(row->name, row->good[i], 1);
    }
    for (i = 0; i < 4 && row->bad[i] != NULL; i++) {
        kp_err err = kp_config_set(config, row->name, row->bad[i], &error);

        ck_assert_msg(err == KP_EINVAL, "%s=%s", row->name, row->bad[i]);
        ck_assert_int_eq(error.err, KP_EINVAL);
        ck_assert_ptr_eq(strstr(error.text, row->name), error.text);
    }
    /* what was good last is still there */
    for (i = 0; i < 3 && row->good[i + 1] != NULL; i++)
        continue;
    assert_value(row->name, row->good[i], 1);
    ck_assert_int_eq(logged.count, 0);
}
END_TEST

static void count_property(void *arg, const kp_property *property)
{
    size_t *i = arg;

    ck_assert_uint_lt(*i, ROW_COUNT);
    ck_assert_str_eq(property->name, rows[*i].name);
    ck_assert_uint_gt(strlen(property->help), 20);
    (*i)++;
}

START_TEST(every_property_is_listed_in_order)
{
    size_t i = 0;

    kp_config_properties(config, count_property, &i);
    ck_assert_uint_eq(i, ROW_COUNT);
    kp_config_properties(config, NULL, NULL);
}
END_TEST

/* -- Values -- */

START_TEST(blanks_around_a_value_are_dropped)
{
    set_ok("linger.ms", " \t\n7\r ");
    assert_value("linger.ms", "7", 1);
    set_ok("client.id", "  my client\x01 ");
    assert_value("client.id", "my client", 1);
    set_ok("acks", " ALL ");
    assert_value("acks", "ALL", 1);
    set_ok("enable.idempotence", " True");
    assert_value("enable.idempotence", "True", 1);
}
END_TEST

START_TEST(setting_again_replaces)
{
    set_ok("linger.ms", "1");
    set_ok("linger.ms", "2");
    assert_value("linger.ms", "2", 1);
    set_ok("queue.buffering.max.ms", "3");
    assert_value("linger.ms", "3", 1);
}
END_TEST

START_TEST(default_set_counts_as_set)
{
    assert_value("linger.ms", "5", 0);
    set_ok("linger.ms", "5");
    assert_value("linger.ms", "5", 1);
}
END_TEST

START_TEST(value_is_copied)
{
    char name[] = "client.id", value[] = "mine";

    set_ok(name, value);
    memset(name, 'x', sizeof(name) - 1);
    memset(value, 'x', sizeof(value) - 1);
    assert_value("client.id", "mine", 1);
}
END_TEST

START_TEST(text_of_32767_bytes_is_the_longest)
{
    char *text = calloc(1, 32769);

    ck_assert_ptr_nonnull(text);
    memset(text, 'a', 32767);
    set_ok("client.id", text);
    text[32767] = 'a';
    set_fails("client.id", text, KP_EINVAL,
              "client.id=\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": "
              "must be UTF-8 text of at most 32767 bytes without control "
              "characters");
    free(text);
}
END_TEST

START_TEST(numbers_keep_out_of_locales_and_bases)
{
    set_ok("linger.ms", "010");
    set_ok("linger.ms", "+10");
    set_fails("linger.ms", "0x10", KP_EINVAL,
              "linger.ms=\"0x10\": must be a whole number of milliseconds from "
              "0 to 9223372036854775807");
    set_fails("linger.ms", "1,000", KP_EINVAL,
              "linger.ms=\"1,000\": must be a whole number of milliseconds "
              "from 0 to 9223372036854775807");
}
END_TEST

/* -- The words of a refusal -- */

struct refusal {
    const char *name, *value;
    kp_err err;
    const char *text;
};

#define SASL_PROTOCOL \
    "\": this version has no TLS or SASL; only PLAINTEXT is possible"
#define NO_TLS \
    ": this version has no TLS or SASL; leave it out only if you can do " \
    "without"
#define NO_TXN \
    ": this version has no transactions; leave it out only if you can do " \
    "without"

static const struct refusal refusals[] = {
    /* values */
    {"batch.size", "-1", KP_EINVAL,
     "batch.size=\"-1\": must be a whole number of bytes from 0 to 2147483647"},
    {"batch.size", "16k", KP_EINVAL,
     "batch.size=\"16k\": must be a whole number of bytes from 0 to "
     "2147483647"},
    {"batch.size", "", KP_EINVAL,
     "batch.size=\"\": must be a whole number of bytes from 0 to 2147483647"},
    {"retries", "99999999999999999999", KP_EINVAL,
     "retries=\"99999999999999999999\": must be a whole number from 0 to "
     "2147483647"},
    {"connections.max.idle.ms", "x", KP_EINVAL,
     "connections.max.idle.ms=\"x\": must be a whole number of milliseconds"},
    {"metadata.max.idle.ms", "1", KP_EINVAL,
     "metadata.max.idle.ms=\"1\": must be a whole number of milliseconds from "
     "5000 to 9223372036854775807"},
    {"compression.gzip.level", "0", KP_EINVAL,
     "compression.gzip.level=\"0\": must be -1, or a whole number from 1 to 9"},
    {"acks", "2", KP_EINVAL, "acks=\"2\": must be all, -1, 0 or 1"},
    {"compression.type", "Zstd", KP_EINVAL,
     "compression.type=\"Zstd\": must be none, gzip, snappy, lz4 or zstd"},
    {"metadata.recovery.strategy", "x", KP_EINVAL,
     "metadata.recovery.strategy=\"x\": must be rebootstrap or none"},
    {"enable.idempotence", "on", KP_EINVAL,
     "enable.idempotence=\"on\": must be true or false"},
    {"client.id", "a\nb\xff", KP_EINVAL,
     "client.id=\"a\\x0Ab\\xFF\": must be UTF-8 text of at most 32767 bytes "
     "without control characters"},
    {"bootstrap.servers", "kafka1", KP_EINVAL,
     "bootstrap.servers: \"kafka1\": the port is missing: write host:9092"},
    {"partitioner.class", "com.example.Mine", KP_EINVAL,
     "partitioner.class=\"com.example.Mine\": a Java class cannot be run here; "
     "use kp_config_set_partitioner"},
    {"partitioner.class",
     "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
     KP_EINVAL,
     "partitioner.class=\"org.apache.kafka.clients.producer.internals."
     "DefaultPartitioner\": leave it out, this is built in"},
    {"partitioner.class",
     "org.apache.kafka.clients.producer.UniformStickyPartitioner", KP_EINVAL,
     "partitioner.class=\"org.apache.kafka.clients.producer."
     "UniformStickyPartitioner\": leave it out and set "
     "partitioner.ignore.keys=true"},

    /* values of aliases: both names */
    {"queue.buffering.max.ms", "0.5", KP_EINVAL,
     "queue.buffering.max.ms=\"0.5\" (linger.ms): must be a whole number of "
     "milliseconds from 0 to 9223372036854775807"},
    {"request.required.acks", "3", KP_EINVAL,
     "request.required.acks=\"3\" (acks): must be all, -1, 0 or 1"},
    {"metadata.broker.list", "kafka1", KP_EINVAL,
     "metadata.broker.list: \"kafka1\": the port is missing: write host:9092"},

    /* names */
    {"batch.sizes", "1", KP_EINVAL,
     "no property is called \"batch.sizes\"; did you mean batch.size?"},
    {"bootstrap_servers", "a:1", KP_EINVAL,
     "no property is called \"bootstrap_servers\"; did you mean "
     "bootstrap.servers?"},
    {"Linger.Ms", "1", KP_EINVAL,
     "no property is called \"Linger.Ms\"; did you mean linger.ms?"},
    {"enable.idempotance", "true", KP_EINVAL,
     "no property is called \"enable.idempotance\"; did you mean "
     "enable.idempotence?"},
    {"max.partition.fetch.bytes.of.a.consumer", "1", KP_EINVAL,
     "no property is called \"max.partition.fetch.bytes.of.a.consumer\"; "
     "kp_config_properties lists them all"},
    {"", "1", KP_EINVAL,
     "no property is called \"\"; kp_config_properties lists them all"},
    {"a\nb", NULL, KP_EINVAL,
     "no property is called \"a\\x0Ab\"; kp_config_properties lists them all"},
    {"linger.ms", NULL, KP_EINVAL,
     "linger.ms=NULL: give a value, or leave the call out to keep the default"},
    {"transactional.id", NULL, KP_EINVAL,
     "transactional.id=NULL: give a value, or leave the call out to keep the "
     "default"},

    /* Java's classes */
    {"key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
     KP_EINVAL,
     "key.serializer means a Java class, which cannot be run here: leave it "
     "out (kp_send takes bytes)"},
    {"value.serializer", "x", KP_EINVAL,
     "value.serializer means a Java class, which cannot be run here: leave it "
     "out (kp_send takes bytes)"},
    {"interceptor.classes", "", KP_EINVAL,
     "interceptor.classes means a Java class, which cannot be run here: leave "
     "it out (records are sent as they are given)"},
    {"metric.reporters", "x", KP_EINVAL,
     "metric.reporters means a Java class, which cannot be run here: leave it "
     "out (kp_metrics reads the metrics)"},
    {"config.providers", "file", KP_EINVAL,
     "config.providers means a Java class, which cannot be run here: leave it "
     "out (values are taken as they are written)"},

    /* what this version lacks */
    {"security.protocol", "SASL_SSL", KP_ENOTSUP,
     "security.protocol=\"SASL_SSL" SASL_PROTOCOL},
    {"security.protocol", "ssl", KP_ENOTSUP,
     "security.protocol=\"ssl" SASL_PROTOCOL},
    {"security.protocol", "Sasl_Plaintext", KP_ENOTSUP,
     "security.protocol=\"Sasl_Plaintext" SASL_PROTOCOL},
    {"security.protocol", "TLS", KP_EINVAL,
     "security.protocol=\"TLS\": must be PLAINTEXT, SSL, SASL_PLAINTEXT or "
     "SASL_SSL"},
    {"ssl.truststore.location", "/x", KP_ENOTSUP,
     "ssl.truststore.location" NO_TLS},
    {"ssl.endpoint.identification.algorithm", "https", KP_ENOTSUP,
     "ssl.endpoint.identification.algorithm" NO_TLS},
    {"ssl.anything", "", KP_ENOTSUP, "ssl.anything" NO_TLS},
    {"sasl.mechanism", "GSSAPI", KP_ENOTSUP, "sasl.mechanism" NO_TLS},
    {"sasl.jaas.config", "secret password=\"hunter2\";", KP_ENOTSUP,
     "sasl.jaas.config" NO_TLS},
    {"security.providers", "x", KP_ENOTSUP, "security.providers" NO_TLS},
    {"sasl.mechanisms", "PLAIN", KP_ENOTSUP, "sasl.mechanisms" NO_TLS},
    {"sasl.username", "alice", KP_ENOTSUP, "sasl.username" NO_TLS},
    {"ssl.ca.location", "/ca.pem", KP_ENOTSUP, "ssl.ca.location" NO_TLS},
    {"enable.ssl.certificate.verification", "false", KP_ENOTSUP,
     "enable.ssl.certificate.verification" NO_TLS},
    {"https.ca.location", "/ca.pem", KP_ENOTSUP, "https.ca.location" NO_TLS},
    {"transactional.id", "t", KP_ENOTSUP, "transactional.id" NO_TXN},
    {"transactional.id", "", KP_ENOTSUP, "transactional.id" NO_TXN},
    {"transaction.timeout.ms", "5000", KP_ENOTSUP,
     "transaction.timeout.ms=\"5000\": this version has no transactions; only "
     "60000 is possible"},
    {"transaction.two.phase.commit.enable", "true", KP_ENOTSUP,
     "transaction.two.phase.commit.enable=\"true\": this version has no "
     "transactions; only false is possible"},

    /* librdkafka's names */
    {"message.max.bytes", "1", KP_EINVAL,
     "message.max.bytes is librdkafka's: use max.request.size"},
    {"queue.buffering.max.kbytes", "1", KP_EINVAL,
     "queue.buffering.max.kbytes is librdkafka's: use buffer.memory (in "
     "bytes)"},
    {"socket.timeout.ms", "1", KP_EINVAL,
     "socket.timeout.ms is librdkafka's: use request.timeout.ms"},
    {"topic.metadata.refresh.interval.ms", "1", KP_EINVAL,
     "topic.metadata.refresh.interval.ms is librdkafka's: use "
     "metadata.max.age.ms"},
    {"compression.level", "1", KP_EINVAL,
     "compression.level is librdkafka's: use compression.gzip.level, "
     "compression.lz4.level or compression.zstd.level"},
    {"partitioner", "murmur2_random", KP_EINVAL,
     "partitioner is librdkafka's: use partitioner.class or "
     "partitioner.ignore.keys (keys are hashed as Java does: murmur2)"},
    {"socket.nagle.disable", "true", KP_EINVAL,
     "socket.nagle.disable is librdkafka's, and has no counterpart in Java or "
     "here: leave it out (Nagle's algorithm is always off)"},
    {"debug", "all", KP_EINVAL,
     "debug is librdkafka's, and has no counterpart in Java or here: leave it "
     "out (kp_config_on_log with KP_LOG_DEBUG)"},
};

START_TEST(refusal_says_what_and_why)
{
    const struct refusal *r = &refusals[_i];

    set_fails(r->name, r->value, r->err, r->text);
    ck_assert_int_eq(logged.count, 0);
    /* and all without a kp_error */
    ck_assert_int_eq(kp_config_set(config, r->name, r->value, NULL), r->err);
}
END_TEST

static void assert_unset(void *arg, const kp_property *property)
{
    (void)arg;
    ck_assert_msg(!property->is_set, "%s is set", property->name);
    ck_assert_str_eq(property->value, property->default_value);
}

START_TEST(refusal_changes_nothing)
{
    size_t i;

    for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        (void)kp_config_set(config, refusals[i].name, refusals[i].value, NULL);
    kp_config_properties(config, assert_unset, NULL);
}
END_TEST

/* Every security property of Kafka 4.4 that has no default we could honour. */
static const char *const security[] = {
    "sasl.client.callback.handler.class", "sasl.jaas.config",
    "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.service.name", "sasl.kerberos.ticket.renew.jitter",
    "sasl.login.class", "sasl.login.connect.timeout.ms", "sasl.mechanism",
    "sasl.oauthbearer.scope", "sasl.oauthbearer.token.endpoint.url",
    "security.providers", "ssl.cipher.suites", "ssl.enabled.protocols",
    "ssl.engine.factory.class", "ssl.key.password", "ssl.keystore.key",
    "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type",
    "ssl.protocol", "ssl.provider", "ssl.truststore.certificates",
    "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type",
    /* librdkafka's */
    "sasl.password", "sasl.oauthbearer.config", "ssl.ca.pem",
    "ssl.key.location", "ssl.certificate.location", "https.ca.pem",
    "enable.sasl.oauthbearer.unsecure.jwt", "oauthbearer_token_refresh_cb"};

START_TEST(security_is_refused_and_its_value_kept_out)
{
    ck_assert_int_eq(kp_config_set(config, security[_i], "s3cr3t", &error),
                     KP_ENOTSUP);
    ck_assert_ptr_eq(strstr(error.text, security[_i]), error.text);
    ck_assert_ptr_null(strstr(error.text, "s3cr3t"));
}
END_TEST

struct alias {
    const char *alias, *name, *value;
};

static const struct alias aliases[] = {
    {"metadata.broker.list", "bootstrap.servers", "a:1,b:2"},
    {"queue.buffering.max.ms", "linger.ms", "17"},
    {"message.send.max.retries", "retries", "3"},
    {"compression.codec", "compression.type", "snappy"},
    {"request.required.acks", "acks", "1"},
    {"message.timeout.ms", "delivery.timeout.ms", "300000"},
    {"max.in.flight", "max.in.flight.requests.per.connection", "2"},
};

START_TEST(alias_sets_its_property)
{
    set_ok(aliases[_i].alias, aliases[_i].value);
    assert_value(aliases[_i].name, aliases[_i].value, 1);
}
END_TEST

/* -- The calls themselves -- */

START_TEST(null_arguments_are_refused)
{
    assert_error(kp_config_set(NULL, "acks", "1", &error), KP_EINVAL,
                 "config is NULL: make one with kp_config_create");
    assert_error(kp_config_set(config, NULL, "1", &error), KP_EINVAL,
                 "name is NULL: give a property's name, such as "
                 "bootstrap.servers");
    ck_assert_int_eq(kp_config_create(NULL), KP_EINVAL);
    kp_config_destroy(NULL);
    kp_config_on_log(NULL, KP_LOG_INFO, NULL, NULL);
    kp_config_set_partitioner(NULL, NULL, NULL);
}
END_TEST

START_TEST(configs_are_independent)
{
    kp_config *other;

    ck_assert_int_eq(kp_config_create(&other), KP_OK);
    set_ok("linger.ms", "9");
    ck_assert_int_eq(property_of(other, "linger.ms").is_set, 0);
    ck_assert_str_eq(property_of(other, "linger.ms").value, "5");
    kp_config_destroy(other);
    assert_value("linger.ms", "9", 1);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(no_memory_changes_nothing)
{
    kp_config *other = (kp_config *)&error;

    kp__mem_fail_at(1);
    ck_assert_int_eq(kp_config_create(&other), KP_ENOMEM);
    ck_assert_ptr_eq(other, (kp_config *)&error);

    set_ok("linger.ms", "9");
    kp__mem_fail_at(1);
    set_fails("linger.ms", "10", KP_ENOMEM, "no memory for linger.ms");
    assert_value("linger.ms", "9", 1);
    set_ok("linger.ms", "10");
    assert_value("linger.ms", "10", 1);
}
END_TEST

START_TEST(nothing_leaks)
{
    long live = kp__mem_live();
    kp_config *other;

    ck_assert_int_eq(kp_config_create(&other), KP_OK);
    ck_assert_int_eq(kp_config_set(other, "acks", "1", NULL), KP_OK);
    ck_assert_int_eq(kp_config_set(other, "acks", "0", NULL), KP_OK);
    ck_assert_int_eq(kp_config_set(other, "acks", "x", NULL), KP_EINVAL);
    ck_assert_int_eq(kp_config_set(other, "client.id", "x", NULL), KP_OK);
    kp_config_destroy(other);
    ck_assert_int_eq(kp__mem_live(), live);
}
END_TEST
#endif

#define ADD_LOOP(tcase, test, table) \
    tcase_add_loop_test(tcase, test, 0, \
                        (int)(sizeof(table) / sizeof((table)[0])))

static Suite *config_set_suite(void)
{
    Suite *suite = suite_create("config_set");
    TCase *tcase = tcase_create("set");

    config_fixture_used();
    tcase_add_checked_fixture(tcase, setup, teardown);
    ADD_LOOP(tcase, row_is_javas, rows);
    ADD_LOOP(tcase, refusal_says_what_and_why, refusals);
    ADD_LOOP(tcase, security_is_refused_and_its_value_kept_out, security);
    ADD_LOOP(tcase, alias_sets_its_property, aliases);
    tcase_add_test(tcase, every_property_is_listed_in_order);
    tcase_add_test(tcase, blanks_around_a_value_are_dropped);
    tcase_add_test(tcase, setting_again_replaces);
    tcase_add_test(tcase, default_set_counts_as_set);
    tcase_add_test(tcase, value_is_copied);
    tcase_add_test(tcase, text_of_32767_bytes_is_the_longest);
    tcase_add_test(tcase, numbers_keep_out_of_locales_and_bases);
    tcase_add_test(tcase, refusal_changes_nothing);
    tcase_add_test(tcase, null_arguments_are_refused);
    tcase_add_test(tcase, configs_are_independent);
#ifdef KP_FAILMALLOC
    tcase_add_test(tcase, no_memory_changes_nothing);
    tcase_add_test(tcase, nothing_leaks);
#endif
    suite_add_tcase(suite, tcase);
    return suite;
}

KP_TEST_MAIN(config_set_suite)
