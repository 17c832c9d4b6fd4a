/* SPDX-License-Identifier: BSD-2-Clause */
/* settings_test.c - what a producer gets from a config: each default, each
 * property's place in the settings, and Java's cross-checks (K1 and K6 of its
 * producer's tests among them) with the words of each error and line. */
#include "lib/base/clock.h"
#include "lib/base/wait.h"
#include "lib/config/settings.h"
#include "test/support/main.h"
#include "test/unit/config_fixture.h"

#define MS KP_NS_PER_MS
#define YEARS_31_NS (INT64_C(1000000000) * KP_NS_PER_SEC)

static struct settings s;

static void setup_settings(void)
{
    memset(&s, 0, sizeof(s));
    setup();
    set_ok("bootstrap.servers", "a:1");
    set_ok("client.id", "c");
}

static void teardown_settings(void)
{
    kp__settings_fini(&s);
    teardown();
}

static void make_ok(void)
{
    kp_err err;

    kp__settings_fini(&s);
    err = kp__settings_make(&s, config, &error);
    ck_assert_msg(err == KP_OK, "%s", error.text);
}

static void make_silently(void)
{
    make_ok();
    ck_assert_msg(logged.count == 0, "%s", logged.texts[0]);
}

static void make_fails(kp_err wanted, const char *text)
{
    struct settings untouched;

    kp__settings_fini(&s);
    memset(&s, 0x5a, sizeof(s));
    untouched = s;
    assert_error(kp__settings_make(&s, config, &error), wanted, text);
    ck_assert_int_eq(memcmp(&s, &untouched, sizeof(s)), 0);
    memset(&s, 0, sizeof(s));
    ck_assert_int_eq(kp__settings_make(&s, config, NULL), wanted);
    ck_assert_int_eq(logged.count, 0);
}

/* Makes them, with exactly this one line. */
static void make_warns(const char *text)
{
    make_ok();
    ck_assert_int_eq(logged.count, 1);
    assert_logged(0, KP_LOG_WARN, text);
    logged.count = 0;
}

/* -- Values -- */

START_TEST(defaults_are_javas)
{
    make_silently();
    ck_assert_uint_eq(s.bootstrap_count, 1);
    ck_assert_str_eq(s.client_id, "c");
    ck_assert_str_eq(s.client_rack, "");
    ck_assert_int_eq(s.dns_lookup, DNS_USE_ALL_IPS);
    ck_assert_int_eq(s.bootstrap_resolve_timeout_ns, 0);
    ck_assert(s.cluster_check);
    ck_assert_int_eq(s.acks, -1);
    ck_assert(s.idempotence);
    ck_assert_int_eq(s.retries, INT32_MAX);
    ck_assert_int_eq(s.max_in_flight, 5);
    ck_assert_int_eq(s.delivery_timeout_ns, 120000 * MS);
    ck_assert_int_eq(s.request_timeout_ns, 30000 * MS);
    ck_assert_int_eq(s.request_timeout_ms, 30000);
    ck_assert_int_eq(s.linger_ns, 5 * MS);
    ck_assert_int_eq(s.max_block_ns, 60000 * MS);
    ck_assert_uint_eq(s.batch_size, 16384);
    ck_assert_uint_eq(s.max_request_size, 1048576);
    ck_assert_uint_eq(s.buffer_memory, 33554432);
    ck_assert_int_eq(s.codec, CODEC_NONE);
    ck_assert_int_eq(s.codec_level, 0);
    ck_assert_int_eq(s.partitioner, PARTITIONER_BUILT_IN);
    ck_assert(!s.ignore_keys && s.adaptive && !s.rack_aware);
    ck_assert_int_eq(s.availability_timeout_ns, 0);
    ck_assert(s.partitioner_fn == NULL && s.partitioner_arg == NULL);
}
END_TEST

START_TEST(defaults_of_connections_are_javas)
{
    make_silently();
    ck_assert_int_eq(s.metadata_max_age_ns, 300000 * MS);
    ck_assert_int_eq(s.metadata_max_idle_ns, 300000 * MS);
    ck_assert_int_eq(s.recovery, RECOVERY_REBOOTSTRAP);
    ck_assert_int_eq(s.rebootstrap_trigger_ns, 300000 * MS);
    ck_assert_int_eq(s.reconnect_backoff_ns, 50 * MS);
    ck_assert_int_eq(s.reconnect_backoff_max_ns, 1000 * MS);
    ck_assert_int_eq(s.retry_backoff_ns, 100 * MS);
    ck_assert_int_eq(s.retry_backoff_max_ns, 1000 * MS);
    ck_assert_int_eq(s.setup_timeout_ns, 10000 * MS);
    ck_assert_int_eq(s.setup_timeout_max_ns, 30000 * MS);
    ck_assert_int_eq(s.max_idle_ns, 540000 * MS);
    ck_assert_int_eq(s.send_buffer, 131072);
    ck_assert_int_eq(s.receive_buffer, 32768);
    ck_assert_int_eq(s.metrics_samples, 2);
    ck_assert_int_eq(s.metrics_window_ns, 30000 * MS);
    ck_assert_int_eq(s.log_level, KP_LOG_DEBUG);
    ck_assert(s.log_fn == keep_line && s.log_arg == &logged);
}
END_TEST

static int32_t choose(void *arg, const kp_record *r, int32_t count)
{
    (void)arg;
    (void)r;
    return count - 1;
}

/* Every property its own number, so that no two places can be mixed up. */
START_TEST(each_value_has_its_place)
{
    set_ok("bootstrap.servers", "h1:1,[::1]:2");
    set_ok("client.rack", "r1");
    set_ok("client.dns.lookup", "resolve_canonical_bootstrap_servers_only");
    set_ok("bootstrap.resolve.timeout.ms", "101");
    set_ok("metadata.cluster.check.enable", "false");
    set_ok("retries", "102");
    set_ok("max.in.flight.requests.per.connection", "3");
    set_ok("delivery.timeout.ms", "10400");
    set_ok("request.timeout.ms", "105");
    set_ok("linger.ms", "106");
    set_ok("max.block.ms", "107");
    set_ok("batch.size", "108");
    set_ok("max.request.size", "109");
    set_ok("buffer.memory", "110");
    set_ok("partitioner.ignore.keys", "true");
    set_ok("partitioner.rack.aware", "true");
    set_ok("partitioner.availability.timeout.ms", "111");
    kp_config_set_partitioner(config, choose, &s);
    make_silently();
    ck_assert_uint_eq(s.bootstrap_count, 2);
    ck_assert_str_eq(s.bootstrap[0].host, "h1");
    ck_assert_int_eq(s.bootstrap[0].port, 1);
    ck_assert_str_eq(s.bootstrap[1].host, "::1");
    ck_assert_int_eq(s.bootstrap[1].port, 2);
    ck_assert_str_eq(s.client_rack, "r1");
    ck_assert_int_eq(s.dns_lookup, DNS_RESOLVE_CANONICAL);
    ck_assert_int_eq(s.bootstrap_resolve_timeout_ns, 101 * MS);
    ck_assert(!s.cluster_check);
    ck_assert_int_eq(s.retries, 102);
    ck_assert_int_eq(s.max_in_flight, 3);
    ck_assert_int_eq(s.delivery_timeout_ns, 10400 * MS);
    ck_assert_int_eq(s.request_timeout_ns, 105 * MS);
    ck_assert_int_eq(s.request_timeout_ms, 105);
    ck_assert_int_eq(s.linger_ns, 106 * MS);
    ck_assert_int_eq(s.max_block_ns, 107 * MS);
    ck_assert_uint_eq(s.batch_size, 108);
    ck_assert_uint_eq(s.max_request_size, 109);
    ck_assert_uint_eq(s.buffer_memory, 110);
    ck_assert(s.ignore_keys && s.adaptive && s.rack_aware);
    ck_assert_int_eq(s.availability_timeout_ns, 111 * MS);
    ck_assert(s.partitioner_fn == choose && s.partitioner_arg == &s);
}
END_TEST

START_TEST(each_value_of_connections_has_its_place)
{
    set_ok("metadata.max.age.ms", "201");
    set_ok("metadata.max.idle.ms", "5202");
    set_ok("metadata.recovery.strategy", "None");
    set_ok("metadata.recovery.rebootstrap.trigger.ms", "203");
    set_ok("reconnect.backoff.ms", "204");
    set_ok("reconnect.backoff.max.ms", "205");
    set_ok("retry.backoff.ms", "206");
    set_ok("retry.backoff.max.ms", "207");
    set_ok("socket.connection.setup.timeout.ms", "208");
    set_ok("socket.connection.setup.timeout.max.ms", "209");
    set_ok("connections.max.idle.ms", "210");
    set_ok("send.buffer.bytes", "211");
    set_ok("receive.buffer.bytes", "-1");
    set_ok("metrics.num.samples", "212");
    set_ok("metrics.sample.window.ms", "213");
    set_ok("partitioner.adaptive.partitioning.enable", "false");
    make_silently();
    ck_assert_int_eq(s.metadata_max_age_ns, 201 * MS);
    ck_assert_int_eq(s.metadata_max_idle_ns, 5202 * MS);
    ck_assert_int_eq(s.recovery, RECOVERY_NONE);
    ck_assert_int_eq(s.rebootstrap_trigger_ns, 203 * MS);
    ck_assert_int_eq(s.reconnect_backoff_ns, 204 * MS);
    ck_assert_int_eq(s.reconnect_backoff_max_ns, 205 * MS);
    ck_assert_int_eq(s.retry_backoff_ns, 206 * MS);
    ck_assert_int_eq(s.retry_backoff_max_ns, 207 * MS);
    ck_assert_int_eq(s.setup_timeout_ns, 208 * MS);
    ck_assert_int_eq(s.setup_timeout_max_ns, 209 * MS);
    ck_assert_int_eq(s.max_idle_ns, 210 * MS);
    ck_assert_int_eq(s.send_buffer, 211);
    ck_assert_int_eq(s.receive_buffer, -1);
    ck_assert_int_eq(s.metrics_samples, 212);
    ck_assert_int_eq(s.metrics_window_ns, 213 * MS);
    ck_assert(!s.adaptive);
}
END_TEST

struct acks {
    const char *value;
    int wanted;
};
static const struct acks acks[] = {
    {"all", -1}, {" ALL ", -1}, {"-1", -1}, {"0", 0}, {"1", 1}};

START_TEST(acks_are_read)
{
    set_ok("acks", acks[_i].value);
    set_ok("enable.idempotence", "false");
    make_ok();
    ck_assert_int_eq(s.acks, acks[_i].wanted);
}
END_TEST

START_TEST(level_is_that_of_the_codec)
{
    set_ok("compression.gzip.level", "7");
    set_ok("compression.lz4.level", "11");
    set_ok("compression.zstd.level", "-5");
    make_silently();
    ck_assert_int_eq(s.codec_level, 0);
#if defined(HAVE_ZLIB) || defined(HAVE_LIBDEFLATE)
    set_ok("compression.type", "gzip");
    make_silently();
    ck_assert_int_eq(s.codec, CODEC_GZIP);
    ck_assert_int_eq(s.codec_level, 7);
#endif
#ifdef HAVE_SNAPPY
    set_ok("compression.type", "snappy");
    make_silently();
    ck_assert_int_eq(s.codec, CODEC_SNAPPY);
    ck_assert_int_eq(s.codec_level, 0);
#endif
#ifdef HAVE_LZ4
    set_ok("compression.type", "lz4");
    make_silently();
    ck_assert_int_eq(s.codec, CODEC_LZ4);
    ck_assert_int_eq(s.codec_level, 11);
#endif
#ifdef HAVE_ZSTD
    set_ok("compression.type", "zstd");
    make_silently();
    ck_assert_int_eq(s.codec, CODEC_ZSTD);
    ck_assert_int_eq(s.codec_level, -5);
#endif
}
END_TEST

START_TEST(default_levels_are_javas)
{
#if defined(HAVE_ZLIB) || defined(HAVE_LIBDEFLATE)
    set_ok("compression.type", "gzip");
    make_silently();
    ck_assert_int_eq(s.codec_level, -1);
#endif
#ifdef HAVE_LZ4
    set_ok("compression.type", "lz4");
    make_silently();
    ck_assert_int_eq(s.codec_level, 9);
#endif
#ifdef HAVE_ZSTD
    set_ok("compression.type", "zstd");
    make_silently();
    ck_assert_int_eq(s.codec_level, 3);
#endif
}
END_TEST

struct codec_name {
    const char *name;
    int built;
};
static const struct codec_name codecs[] = {
    {"none", 1},
#if defined(HAVE_ZLIB) || defined(HAVE_LIBDEFLATE)
    {"gzip", 1},
#else
    {"gzip", 0},
#endif
#ifdef HAVE_SNAPPY
    {"snappy", 1},
#else
    {"snappy", 0},
#endif
#ifdef HAVE_LZ4
    {"lz4", 1},
#else
    {"lz4", 0},
#endif
#ifdef HAVE_ZSTD
    {"zstd", 1},
#else
    {"zstd", 0},
#endif
};

START_TEST(codec_of_another_build_is_refused)
{
    char text[160];

    set_ok("compression.type", codecs[_i].name);
    (void)snprintf(text, sizeof(text),
                   "compression.type=%s: this build was configured without "
                   "it; kp_features lists what it has",
                   codecs[_i].name);
    if (codecs[_i].built)
        make_silently();
    else
        make_fails(KP_ENOTSUP, text);
}
END_TEST

START_TEST(round_robin_is_chosen_by_its_class)
{
    set_ok("partitioner.class",
           "org.apache.kafka.clients.producer.RoundRobinPartitioner");
    make_silently();
    ck_assert_int_eq(s.partitioner, PARTITIONER_ROUND_ROBIN);
}
END_TEST

START_TEST(huge_values_are_clamped)
{
    set_ok("max.block.ms", "9223372036854775807");
    set_ok("connections.max.idle.ms", "9223372036854775807");
    set_ok("buffer.memory", "9223372036854775807");
    make_silently();
    ck_assert_int_eq(s.max_block_ns, YEARS_31_NS);
    ck_assert_int_eq(s.max_idle_ns, YEARS_31_NS);
    ck_assert_uint_eq(s.buffer_memory,
                      sizeof(size_t) == 8 ? (size_t)INT64_MAX : SIZE_MAX);
}
END_TEST

START_TEST(zeros_are_legal)
{
    set_ok("batch.size", "0");
    set_ok("linger.ms", "0");
    set_ok("max.block.ms", "0");
    set_ok("request.timeout.ms", "0");
    set_ok("delivery.timeout.ms", "0");
    set_ok("buffer.memory", "0");
    make_silently();
    ck_assert_uint_eq(s.batch_size, 0);
    ck_assert_int_eq(s.delivery_timeout_ns, 0);
    ck_assert_uint_eq(s.buffer_memory, 0);
}
END_TEST

START_TEST(negative_idle_time_is_never)
{
    set_ok("connections.max.idle.ms", "-1");
    make_silently();
    ck_assert_int_eq(s.max_idle_ns, KP_NEVER);
    set_ok("connections.max.idle.ms", "0");
    make_silently();
    ck_assert_int_eq(s.max_idle_ns, 0);
}
END_TEST

START_TEST(settings_outlive_the_config)
{
    set_ok("client.rack", "r");
    make_silently();
    teardown();
    ck_assert_str_eq(s.client_id, "c");
    ck_assert_str_eq(s.client_rack, "r");
    ck_assert_str_eq(s.bootstrap[0].host, "a");
}
END_TEST

/* -- Names -- */

START_TEST(producers_without_a_name_are_counted_from_1)
{
    teardown();
    setup();
    /* one that is refused takes no number */
    ck_assert_int_eq(kp__settings_make(&s, config, &error), KP_EINVAL);
    set_ok("bootstrap.servers", "a:1");
    make_ok();
    ck_assert_str_eq(s.client_id, "producer-1");
    make_ok();
    ck_assert_str_eq(s.client_id, "producer-2");
    set_ok("client.id", "");
    make_ok();
    ck_assert_str_eq(s.client_id, "");
    set_ok("client.id", "mine");
    make_ok();
    ck_assert_str_eq(s.client_id, "mine");
}
END_TEST

/* -- Errors -- */

START_TEST(bootstrap_servers_are_required)
{
    teardown();
    setup();
    make_fails(KP_EINVAL, "bootstrap.servers is not set: name a broker or two, "
                          "as host:9092,host:9092");
    set_ok("bootstrap.servers", " , ");
    make_fails(KP_EINVAL, "bootstrap.servers has no entry: name a broker or "
                          "two, as host:9092,host:9092");
}
END_TEST

#define LACKS \
    " was set on this config and refused: this version lacks it; make a " \
    "config without it if you can do without"

struct lacking {
    const char *name, *value, *text;
};
static const struct lacking lacking[] = {
    {"security.protocol", "SASL_SSL", "security.protocol" LACKS},
    {"ssl.truststore.location", "/x", "ssl.truststore.location" LACKS},
    {"sasl.jaas.config", "s3cr3t", "sasl.jaas.config" LACKS},
    {"ssl.ca.location", "/x", "ssl.ca.location" LACKS},
    {"transactional.id", "t", "transactional.id" LACKS},
    {"transaction.timeout.ms", "1", "transaction.timeout.ms" LACKS},
    {"transaction.two.phase.commit.enable", "true",
     "transaction.two.phase.commit.enable" LACKS},
};

/* Whoever overlooks the first error must not send in the clear. */
START_TEST(what_is_lacking_stays_refused)
{
    ck_assert_int_eq(
        kp_config_set(config, lacking[_i].name, lacking[_i].value, NULL),
        KP_ENOTSUP);
    make_fails(KP_ENOTSUP, lacking[_i].text);
    set_ok("security.protocol", "PLAINTEXT");
    make_fails(KP_ENOTSUP, lacking[_i].text);
}
END_TEST

START_TEST(what_a_file_lacks_stays_refused)
{
    static const char text[] = "acks=1\nsasl.mechanism=PLAIN\n";

    ck_assert_int_eq(kp__config_load(config, "f", text, sizeof(text) - 1, NULL),
                     KP_ENOTSUP);
    make_fails(KP_ENOTSUP, "sasl.mechanism" LACKS);
}
END_TEST

/* Also behind a line that is wrong otherwise, which is the one that is told. */
START_TEST(what_a_bad_file_lacks_stays_refused)
{
    static const char text[] = "acks=few\nbatch.size=x\n"
                               "security.protocol=SASL_SSL\nretries=5\n";

    ck_assert_int_eq(
        kp__config_load(config, "f", text, sizeof(text) - 1, &error),
        KP_EINVAL);
    ck_assert_ptr_nonnull(strstr(error.text, "line 1: acks=\"few\""));
    set_ok("retries", "7");
    make_fails(KP_ENOTSUP, "security.protocol" LACKS);
}
END_TEST

START_TEST(other_refusals_are_forgotten)
{
    ck_assert_int_eq(kp_config_set(config, "acks", "x", NULL), KP_EINVAL);
    ck_assert_int_eq(kp_config_set(config, "nonsense", "x", NULL), KP_EINVAL);
    ck_assert_int_eq(kp_config_set(config, "key.serializer", "x", NULL),
                     KP_EINVAL);
    ck_assert_int_eq(kp_config_set(config, "security.protocol", "x", NULL),
                     KP_EINVAL);
    make_silently();
}
END_TEST

START_TEST(rack_aware_needs_a_rack)
{
    set_ok("partitioner.rack.aware", "true");
    set_ok("client.rack", "  ");
    kp_config_set_partitioner(config, choose, NULL);
    make_fails(KP_EINVAL, "partitioner.rack.aware=true needs client.rack: set "
                          "it to the rack this client stands in, or set "
                          "partitioner.rack.aware=false");
    set_ok("client.rack", "r");
    make_silently();
}
END_TEST

/* -- Idempotence (K1) -- */

struct matrix {
    const char *idempotence, *acks, *retries, *in_flight; /* NULL: not set */
    int on;                                               /* or -1: refused */
    const char *text; /* of the error, or of the one line; NULL: silent */
};

#define ACKS_CONFLICT(n) \
    "enable.idempotence=true and acks=" n " contradict each other: set " \
    "acks=all, or enable.idempotence=false"
#define RETRIES_CONFLICT \
    "enable.idempotence=true and retries=0 contradict each other: raise " \
    "retries, or set enable.idempotence=false"
#define IN_FLIGHT_CONFLICT(n) \
    "max.in.flight.requests.per.connection=" n " is more than idempotence " \
    "allows: set it to 5 or less, or set enable.idempotence=false"
#define ACKS_OFF(n) \
    "acks=" n " turns idempotence off: retries may double or reorder " \
    "records; set enable.idempotence=false to say so, or set acks=all"
#define RETRIES_OFF \
    "retries=0 turns idempotence off: set enable.idempotence=false to say " \
    "so, or raise retries"
#define ORDER(n) \
    "enable.idempotence=false with max.in.flight.requests.per.connection=" n \
    ": a retry may double or reorder records; 1 in flight keeps the order"

static const struct matrix matrix[] = {
    {NULL, NULL, NULL, NULL, 1, NULL},
    {"true", NULL, NULL, NULL, 1, NULL},
    {"true", "all", "1", "5", 1, NULL},
    {"true", "-1", "1", "1", 1, NULL},
    {NULL, "all", "1", "5", 1, NULL},
    {NULL, "-1", NULL, NULL, 1, NULL},
    /* said, and contradicted */
    {"true", "0", NULL, NULL, -1, ACKS_CONFLICT("0")},
    {"true", "1", NULL, NULL, -1, ACKS_CONFLICT("1")},
    {"TRUE", "1", NULL, NULL, -1, ACKS_CONFLICT("1")},
    {"true", NULL, "0", NULL, -1, RETRIES_CONFLICT},
    {"true", NULL, NULL, "6", -1, IN_FLIGHT_CONFLICT("6")},
    {"true", "1", "0", "6", -1, RETRIES_CONFLICT},
    /* not said: it gives way */
    {NULL, "0", NULL, NULL, 0, ACKS_OFF("0")},
    {NULL, "1", NULL, NULL, 0, ACKS_OFF("1")},
    {NULL, NULL, "0", NULL, 0, RETRIES_OFF},
    /* but never to more in flight */
    {NULL, NULL, NULL, "6", -1, IN_FLIGHT_CONFLICT("6")},
    {NULL, NULL, NULL, "2147483647", -1, IN_FLIGHT_CONFLICT("2147483647")},
    {NULL, "1", NULL, "6", -1, IN_FLIGHT_CONFLICT("6")},
    {NULL, "0", "0", "10", -1, IN_FLIGHT_CONFLICT("10")},
    /* off */
    {"false", NULL, NULL, NULL, 0, ORDER("5")},
    {"false", "1", NULL, "100", 0, ORDER("100")},
    {"false", "1", NULL, "1", 0, NULL},
    {"false", "0", "0", "100", 0, NULL},
    {"false", "all", "0", "6", 0, NULL},
};

static void set_if(const char *name, const char *value)
{
    if (value != NULL)
        set_ok(name, value);
}

/* K1. */
START_TEST(idempotence_matrix)
{
    const struct matrix *m = &matrix[_i];

    set_if("enable.idempotence", m->idempotence);
    set_if("acks", m->acks);
    set_if("retries", m->retries);
    set_if("max.in.flight.requests.per.connection", m->in_flight);
    if (m->on < 0) {
        make_fails(KP_EINVAL, m->text);
        return;
    }
    if (m->text != NULL)
        make_warns(m->text);
    else
        make_silently();
    ck_assert_int_eq(s.idempotence, m->on);
    if (s.idempotence)
        ck_assert_int_eq(s.acks, -1);
}
END_TEST

START_TEST(both_reasons_are_told)
{
    set_ok("acks", "1");
    set_ok("retries", "0");
    make_ok();
    ck_assert(!s.idempotence);
    ck_assert_int_eq(logged.count, 2);
    assert_logged(0, KP_LOG_WARN, RETRIES_OFF);
    assert_logged(1, KP_LOG_WARN, ACKS_OFF("1"));
}
END_TEST

START_TEST(making_does_not_change_the_config)
{
    set_ok("acks", "1");
    make_warns(ACKS_OFF("1"));
    make_warns(ACKS_OFF("1"));
    assert_value("enable.idempotence", "true", 0);
}
END_TEST

/* -- Delivery timeout (K6) -- */

START_TEST(delivery_timeout_may_equal_the_sum)
{
    set_ok("delivery.timeout.ms", "1000");
    set_ok("linger.ms", "999");
    set_ok("request.timeout.ms", "1");
    make_silently();
    set_ok("linger.ms", "1000");
    make_fails(KP_EINVAL,
               "delivery.timeout.ms=1000 is less than linger.ms=1000 + "
               "request.timeout.ms=1: raise it to 1001, or lower the others");
}
END_TEST

START_TEST(delivery_timeout_not_set_is_raised)
{
    set_ok("request.timeout.ms", "119995");
    make_silently();
    ck_assert_int_eq(s.delivery_timeout_ns, 120000 * MS);
    set_ok("request.timeout.ms", "119996");
    make_warns("delivery.timeout.ms raised from 120000 to 120001: linger.ms=5 "
               "+ request.timeout.ms=119996; set it to that or more");
    ck_assert_int_eq(s.delivery_timeout_ns, 120001 * MS);
    /* its default value, set, is no default */
    set_ok("delivery.timeout.ms", "120000");
    make_fails(KP_EINVAL,
               "delivery.timeout.ms=120000 is less than linger.ms=5 + "
               "request.timeout.ms=119996: raise it to 120001, or lower the "
               "others");
}
END_TEST

START_TEST(sum_stops_at_the_largest_int)
{
    set_ok("linger.ms", "9223372036854775807");
    set_ok("delivery.timeout.ms", "2147483647");
    make_silently();
    ck_assert_int_eq(s.linger_ns, INT32_MAX * MS);
    ck_assert_int_eq(s.delivery_timeout_ns, INT32_MAX * MS);
    set_ok("delivery.timeout.ms", "2147483646");
    make_fails(KP_EINVAL,
               "delivery.timeout.ms=2147483646 is less than "
               "linger.ms=2147483647 + request.timeout.ms=30000: raise it to "
               "2147483647, or lower the others");
}
END_TEST

START_TEST(librdkafkas_endless_timeout_is_refused)
{
    set_ok("message.timeout.ms", "0");
    make_fails(KP_EINVAL,
               "delivery.timeout.ms=0 is less than linger.ms=5 + "
               "request.timeout.ms=30000: raise it to 30005, or lower the "
               "others");
}
END_TEST

/* -- Backoffs -- */

START_TEST(reconnect_backoff_alone_does_not_grow)
{
    set_ok("reconnect.backoff.ms", "20");
    make_warns("reconnect.backoff.ms=20 without reconnect.backoff.max.ms: the "
               "pause does not grow; set both to let it");
    ck_assert_int_eq(s.reconnect_backoff_ns, 20 * MS);
    ck_assert_int_eq(s.reconnect_backoff_max_ns, 20 * MS);
    set_ok("reconnect.backoff.ms", "2000");
    make_warns("reconnect.backoff.ms=2000 without reconnect.backoff.max.ms: "
               "the pause does not grow; set both to let it");
    ck_assert_int_eq(s.reconnect_backoff_ns, 2000 * MS);
    ck_assert_int_eq(s.reconnect_backoff_max_ns, 2000 * MS);
}
END_TEST

START_TEST(reconnect_backoff_above_its_maximum_is_that)
{
    set_ok("reconnect.backoff.max.ms", "40");
    make_warns("reconnect.backoff.ms=50 is more than "
               "reconnect.backoff.max.ms=40: it is always 40 ms");
    ck_assert_int_eq(s.reconnect_backoff_ns, 40 * MS);
    ck_assert_int_eq(s.reconnect_backoff_max_ns, 40 * MS);
}
END_TEST

START_TEST(retry_backoff_above_its_maximum_is_that)
{
    set_ok("retry.backoff.ms", "1000");
    make_silently();
    set_ok("retry.backoff.ms", "5000");
    make_warns("retry.backoff.ms=5000 is more than retry.backoff.max.ms=1000: "
               "it is always 1000 ms");
    ck_assert_int_eq(s.retry_backoff_ns, 1000 * MS);
    ck_assert_int_eq(s.retry_backoff_max_ns, 1000 * MS);
}
END_TEST

START_TEST(setup_timeout_above_its_maximum_is_that)
{
    set_ok("socket.connection.setup.timeout.max.ms", "9999");
    make_warns("socket.connection.setup.timeout.ms=10000 is more than "
               "socket.connection.setup.timeout.max.ms=9999: it is always "
               "9999 ms");
    ck_assert_int_eq(s.setup_timeout_ns, 9999 * MS);
    ck_assert_int_eq(s.setup_timeout_max_ns, 9999 * MS);
}
END_TEST

/* -- The rest -- */

START_TEST(batch_is_at_most_the_memory)
{
    set_ok("batch.size", "1000");
    set_ok("buffer.memory", "1000");
    make_silently();
    set_ok("buffer.memory", "999");
    make_warns("batch.size=1000 is more than buffer.memory=999: batches are "
               "at most that large");
    ck_assert_uint_eq(s.batch_size, 999);
    ck_assert_uint_eq(s.buffer_memory, 999);
}
END_TEST

START_TEST(partitioner_function_beats_the_class)
{
    set_ok("partitioner.class",
           "org.apache.kafka.clients.producer.RoundRobinPartitioner");
    kp_config_set_partitioner(config, choose, NULL);
    make_warns("partitioner.class="
               "org.apache.kafka.clients.producer.RoundRobinPartitioner gives "
               "way to the function of kp_config_set_partitioner");
    ck_assert(s.partitioner_fn == choose);
}
END_TEST

START_TEST(availability_timeout_without_adaptive_is_told)
{
    set_ok("partitioner.availability.timeout.ms", "10");
    set_ok("partitioner.adaptive.partitioning.enable", "false");
    make_warns("partitioner.availability.timeout.ms=10 has no effect while "
               "partitioner.adaptive.partitioning.enable=false");
}
END_TEST

START_TEST(properties_without_effect_are_accepted)
{
    set_ok("enable.metrics.push", "false");
    set_ok("buffer.memory.allocation.strategy", "incremental");
    set_ok("metrics.recording.level", "TRACE");
    make_silently();
}
END_TEST

START_TEST(log_lines_carry_the_client_id)
{
    set_ok("acks", "1");
    make_ok();
    ck_assert_str_eq(logged.client_id, "c");
}
END_TEST

START_TEST(silent_without_a_log_function)
{
    kp_config_on_log(config, KP_LOG_DEBUG, NULL, NULL);
    set_ok("acks", "1");
    make_silently();
    ck_assert(!s.idempotence);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(no_memory_is_handed_on)
{
    long nth = 0, live;
    kp_err err;

    set_ok("bootstrap.servers", "a:1,b:2");
    set_ok("client.rack", "r");
    set_ok("acks", "1");
    live = kp__mem_live();
    do {
        kp__mem_fail_at(++nth);
        err = kp__settings_make(&s, config, &error);
        kp__mem_fail_at(-1);
        if (err != KP_OK) {
            ck_assert_int_eq(err, KP_ENOMEM);
            ck_assert_int_eq(error.err, KP_ENOMEM);
            ck_assert_ptr_eq(strstr(error.text, "no memory for "), error.text);
            ck_assert_int_eq(kp__mem_live(), live);
            ck_assert_ptr_null(s.bootstrap);
            ck_assert_int_eq(logged.count, 0);
        }
    } while (err != KP_OK);
    ck_assert_int_eq(nth, 6); /* rack, list, two hosts, client id, and none */
    kp__settings_fini(&s);
    ck_assert_int_eq(kp__mem_live(), live);
}
END_TEST
#endif

#define ADD_LOOP(tcase, test, table) \
    tcase_add_loop_test(tcase, test, 0, \
                        (int)(sizeof(table) / sizeof((table)[0])))

static void add_values(TCase *tcase)
{
    tcase_add_test(tcase, defaults_are_javas);
    tcase_add_test(tcase, defaults_of_connections_are_javas);
    tcase_add_test(tcase, each_value_has_its_place);
    tcase_add_test(tcase, each_value_of_connections_has_its_place);
    ADD_LOOP(tcase, acks_are_read, acks);
    tcase_add_test(tcase, level_is_that_of_the_codec);
    tcase_add_test(tcase, default_levels_are_javas);
    ADD_LOOP(tcase, codec_of_another_build_is_refused, codecs);
    tcase_add_test(tcase, round_robin_is_chosen_by_its_class);
    tcase_add_test(tcase, huge_values_are_clamped);
    tcase_add_test(tcase, zeros_are_legal);
    tcase_add_test(tcase, negative_idle_time_is_never);
    tcase_add_test(tcase, settings_outlive_the_config);
    tcase_add_test(tcase, producers_without_a_name_are_counted_from_1);
}

static void add_cross_checks(TCase *tcase)
{
    tcase_add_test(tcase, bootstrap_servers_are_required);
    ADD_LOOP(tcase, what_is_lacking_stays_refused, lacking);
    tcase_add_test(tcase, what_a_file_lacks_stays_refused);
    tcase_add_test(tcase, what_a_bad_file_lacks_stays_refused);
    tcase_add_test(tcase, other_refusals_are_forgotten);
    tcase_add_test(tcase, rack_aware_needs_a_rack);
    ADD_LOOP(tcase, idempotence_matrix, matrix);
    tcase_add_test(tcase, both_reasons_are_told);
    tcase_add_test(tcase, making_does_not_change_the_config);
    tcase_add_test(tcase, delivery_timeout_may_equal_the_sum);
    tcase_add_test(tcase, delivery_timeout_not_set_is_raised);
    tcase_add_test(tcase, sum_stops_at_the_largest_int);
    tcase_add_test(tcase, librdkafkas_endless_timeout_is_refused);
    tcase_add_test(tcase, reconnect_backoff_alone_does_not_grow);
    tcase_add_test(tcase, reconnect_backoff_above_its_maximum_is_that);
    tcase_add_test(tcase, retry_backoff_above_its_maximum_is_that);
    tcase_add_test(tcase, setup_timeout_above_its_maximum_is_that);
    tcase_add_test(tcase, batch_is_at_most_the_memory);
    tcase_add_test(tcase, partitioner_function_beats_the_class);
    tcase_add_test(tcase, availability_timeout_without_adaptive_is_told);
    tcase_add_test(tcase, properties_without_effect_are_accepted);
    tcase_add_test(tcase, log_lines_carry_the_client_id);
    tcase_add_test(tcase, silent_without_a_log_function);
#ifdef KP_FAILMALLOC
    tcase_add_test(tcase, no_memory_is_handed_on);
#endif
}

static Suite *settings_suite(void)
{
    Suite *suite = suite_create("settings");
    TCase *values = tcase_create("values");
    TCase *cross_checks = tcase_create("cross_checks");

    config_fixture_used();
    tcase_add_checked_fixture(values, setup_settings, teardown_settings);
    tcase_add_checked_fixture(cross_checks, setup_settings, teardown_settings);
    add_values(values);
    add_cross_checks(cross_checks);
    suite_add_tcase(suite, values);
    suite_add_tcase(suite, cross_checks);
    return suite;
}

KP_TEST_MAIN(settings_suite)
