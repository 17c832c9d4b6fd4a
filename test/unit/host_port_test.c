/* SPDX-License-Identifier: BSD-2-Clause */
/* host_port_test.c - reading bootstrap.servers: the hosts and ports that come
 * out, and what each wrong entry is told. */
#include <check.h>
#include <kp/kp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/config/host_port.h"
#include "test/support/main.h"

static kp_error error;

struct example {
    const char *value, *wanted;
};

/* Wanted: host|port; for each. */
static const struct example good[] = {
    {"", ""},
    {" , ,\t,", ""},
    {"a:1", "a|1;"},
    {"kafka-1.example.com:9092", "kafka-1.example.com|9092;"},
    {"a:9092,b:9093", "a|9092;b|9093;"},
    {" a:9092 ,\n b:9093\t", "a|9092;b|9093;"},
    {",a:9092,,b:9093,", "a|9092;b|9093;"},
    {"127.0.0.1:9092", "127.0.0.1|9092;"},
    {"[::1]:9092", "::1|9092;"},
    {"[2001:db8::7]:1,[fe80::1%eth0]:2", "2001:db8::7|1;fe80::1%eth0|2;"},
    {"[::ffff:10.0.0.1]:9092", "::ffff:10.0.0.1|9092;"},
    {"under_score:65535", "under_score|65535;"},
    {"host.:9092", "host.|9092;"},
    {"a:0009092", "a|9092;"},
};

START_TEST(good_list_is_read)
{
    struct host_port *servers;
    size_t count, i, used = 0;
    char text[512] = "";

    ck_assert_int_eq(
        kp__servers_check("bootstrap.servers", good[_i].value, &error), KP_OK);
    ck_assert_int_eq(
        kp__servers_parse(good[_i].value, &servers, &count, &error), KP_OK);
    for (i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s|%d;",
                                 servers[i].host, servers[i].port);
    ck_assert_str_eq(text, good[_i].wanted);
    kp__servers_free(servers, count);
}
END_TEST

#define PORT "the port must be a number from 1 to 65535"
#define BRACKETS "[ and ] must enclose an IPv6 address, as in [::1]:9092"
#define SCHEME \
    "leave out the part up to ://, write host:9092 (the protocol is " \
    "security.protocol's)"

static const struct example bad[] = {
    {"a", "\"a\": the port is missing: write host:9092"},
    {"ok:1,bad", "\"bad\": the port is missing: write host:9092"},
    {"a:", "\"a:\": " PORT},
    {"a:0", "\"a:0\": " PORT},
    {"a:65536", "\"a:65536\": " PORT},
    {"a:99999999999999999999", "\"a:99999999999999999999\": " PORT},
    {"a:-1", "\"a:-1\": " PORT},
    {"a:+1", "\"a:+1\": " PORT},
    {"a:9092x", "\"a:9092x\": " PORT},
    {"a:9092/path", "\"a:9092/path\": " PORT},
    {":9092", "\":9092\": the host is missing: write host:9092"},
    {"a: 9092", "\"a: 9092\": entries are separated by commas"},
    {"a:9092 b:9092", "\"a:9092 b:9092\": entries are separated by commas"},
    {"a:9092;b:9092", "\"a:9092;b:9092\": entries are separated by commas"},
    {"::1:9092",
     "\"::1:9092\": an IPv6 address needs brackets: write [address]:9092"},
    {"fe80::1:9092",
     "\"fe80::1:9092\": an IPv6 address needs brackets: write [address]:9092"},
    {"[::1", "\"[::1\": the ] after the IPv6 address is missing"},
    {"[::1]", "\"[::1]\": the port is missing: write [address]:9092"},
    {"[::1]9092", "\"[::1]9092\": the port is missing: write [address]:9092"},
    {"[::1]:", "\"[::1]:\": " PORT},
    {"[::1]:x", "\"[::1]:x\": " PORT},
    {"[]:9092", "\"[]:9092\": " BRACKETS},
    {"[kafka]:9092", "\"[kafka]:9092\": " BRACKETS},
    {"[::1%]:9092", "\"[::1%]:9092\": " BRACKETS},
    {"[::1%[x]:9092", "\"[::1%[x]:9092\": " BRACKETS},
    {"[::1%a\x01]:9092", "\"[::1%a\\x01]:9092\": " BRACKETS},
    {"[1:2:3]:9092", "\"[1:2:3]:9092\": " BRACKETS},
    {"PLAINTEXT://a:9092", "\"PLAINTEXT://a:9092\": " SCHEME},
    {"SSL://a:9093", "\"SSL://a:9093\": " SCHEME},
    {"a@b:9092", "\"a@b:9092\": this is not a host name"},
    {"caf\xc3\xa9:9092", "\"caf\xc3\xa9:9092\": this is not a host name"},
    {"a\x01:9092", "\"a\\x01:9092\": this is not a host name"},
};

START_TEST(bad_entry_is_refused)
{
    struct host_port *servers = NULL;
    size_t count = 77;
    char text[256];

    (void)snprintf(text, sizeof(text), "bootstrap.servers: %s", bad[_i].wanted);
    ck_assert_int_eq(kp__servers_parse(bad[_i].value, &servers, &count, &error),
                     KP_EINVAL);
    ck_assert_str_eq(error.text, text);
    ck_assert_ptr_null(servers);
    ck_assert_uint_eq(count, 77);

    (void)snprintf(text, sizeof(text), "metadata.broker.list: %s",
                   bad[_i].wanted);
    ck_assert_int_eq(
        kp__servers_check("metadata.broker.list", bad[_i].value, &error),
        KP_EINVAL);
    ck_assert_str_eq(error.text, text);
}
END_TEST

START_TEST(host_of_255_bytes_is_the_longest)
{
    char value[300];

    memset(value, 'a', 256);
    memcpy(value + 255, ":9092", 6);
    ck_assert_int_eq(kp__servers_check("n", value, &error), KP_OK);
    memset(value, 'a', 256);
    memcpy(value + 256, ":9092", 6);
    ck_assert_int_eq(kp__servers_check("n", value, &error), KP_EINVAL);
    ck_assert_ptr_nonnull(strstr(error.text, "\": this is not a host name"));
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(no_memory_is_handed_on)
{
    struct host_port *servers = NULL;
    size_t count = 0;
    long nth = 0, live = kp__mem_live();
    kp_err err;

    do {
        kp__mem_fail_at(++nth);
        err = kp__servers_parse("a:1,b:2,c:3", &servers, &count, &error);
        kp__mem_fail_at(-1);
        if (err != KP_OK) {
            ck_assert_int_eq(err, KP_ENOMEM);
            ck_assert_int_eq(error.err, KP_ENOMEM);
            ck_assert_int_eq(kp__mem_live(), live);
            ck_assert_ptr_null(servers);
        }
    } while (err != KP_OK);
    ck_assert_int_eq(nth, 5); /* the array, three hosts, and then none */
    ck_assert_uint_eq(count, 3);
    kp__servers_free(servers, count);
    ck_assert_int_eq(kp__mem_live(), live);
}
END_TEST
#endif

static Suite *host_port_suite(void)
{
    Suite *suite = suite_create("host_port");
    TCase *tcase = tcase_create("bootstrap.servers");

    tcase_add_loop_test(tcase, good_list_is_read, 0,
                        (int)(sizeof(good) / sizeof(good[0])));
    tcase_add_loop_test(tcase, bad_entry_is_refused, 0,
                        (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_test(tcase, host_of_255_bytes_is_the_longest);
#ifdef KP_FAILMALLOC
    tcase_add_test(tcase, no_memory_is_handed_on);
#endif
    suite_add_tcase(suite, tcase);
    return suite;
}

KP_TEST_MAIN(host_port_suite)
