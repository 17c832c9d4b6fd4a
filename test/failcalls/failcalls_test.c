/* SPDX-License-Identifier: BSD-2-Clause */
/* A producer's life on real sockets, once for each system call in it: that
 * call fails, in each of the ways in which it can.
 *
 * The calls of one life are counted, then call number i is made to fail, for
 * every i.  Another run may make other calls, so that i is not the same call
 * each time: what is asked for holds whichever it was.
 *
 * KP_FAILCALLS=long: every way of every call, in every kind of life; else each
 * call in one way, and the ways in turn. */
#include <kp/kp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/failcalls/broker_process.h"
#include "test/failcalls/life.h"
#include "test/support/main.h"

#define BOOTSTRAP 1 /* the connection that asks who the brokers are */

static const struct kind_of_life kinds[] = {
    {.name = "plain",
     .settings = "acks=all\n",
     .host = "127.0.0.1",
     .closes = BOOTSTRAP,
     .rule = "",
     .once = true},
    {.name = "name",
     .settings = "compression.type=gzip\nclient.dns.lookup="
                 "resolve_canonical_bootstrap_servers_only\n",
     .host = "localhost",
     .closes = BOOTSTRAP,
     .rule = "",
     .once = true},
    {.name = "loose",
     .settings = "acks=1\nenable.idempotence=false\nbatch.size=0\n",
     .host = "localhost",
     .closes = BOOTSTRAP,
     .rule = "api=produce skip=1 count=2 error=6"},
    {.name = "crowded",
     .settings = "buffer.memory=8000\nbatch.size=1000\n",
     .host = "127.0.0.1",
     .closes = BOOTSTRAP,
     .rule = "api=produce answer_ms=3",
     .once = true,
     .no_queue = true},
    {.name = "cut",
     .settings = "compression.type=zstd\n",
     .host = "localhost",
     .closes = -1,
     .rule = "api=produce skip=2 count=1 answer=close",
     .once = true},
};

#define MORE 4 /* in a row, where not just one fails */

static int port;
static unsigned violations, failures;

static void setup(void)
{
    port = broker_process_start();
}

static void teardown(void)
{
    broker_process_stop();
}

static bool is_long(void)
{
    const char *s = getenv("KP_FAILCALLS");

    return s != NULL && strcmp(s, "long") == 0;
}

/* Returns how many ways the call has that failed; 0: none did. */
static unsigned fail_one(const struct kind_of_life *kind,
                         const struct failure *f)
{
    struct failed_call failed;

    (void)life_live(kind, port, f, &failed, &violations);
    if (failed.name == NULL)
        return 0;
    failures++;
    return failed.ways;
}

/* A clock that a system lacks gives way to another; without any there is
 * nothing to go by. */
static unsigned more_of(enum call_group group)
{
    return group == CLOCKS ? 0 : MORE;
}

static void all_ways(const struct kind_of_life *kind, struct failure *f)
{
    unsigned ways = 1;

    for (f->way = 0; f->way < ways; f->way++) {
        f->until_end = true;
        f->more = 0;
        ways = fail_one(kind, f);
        f->until_end = false;
        f->more = more_of(f->group);
        (void)fail_one(kind, f);
    }
}

/* A build may lack its codec. */
static bool can_live(const struct kind_of_life *kind)
{
    static const char *const codecs[] = {"gzip", "zstd"};

    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
        if (strstr(kind->settings, codecs[i]) != NULL &&
            strstr(kp_features(), codecs[i]) == NULL)
            return false;
    return true;
}

static void sweep(const struct kind_of_life *kind, enum call_group group,
                  unsigned long step)
{
    struct failure f = {.group = group, .until_end = true};
    struct failed_call none;
    unsigned long n;

    if (!can_live(kind))
        return;
    violations = failures = 0;
    n = life_live(kind, port, &f, &none, &violations);
    ck_assert_uint_gt(n, 20);
    for (f.nth = 1; f.nth <= n; f.nth += step) {
        f.until_end = f.nth % 2 == 0;
        f.way = (unsigned)f.nth;
        f.more = f.nth % 3 == 0 ? more_of(group) : 0;
        if (is_long())
            all_ways(kind, &f);
        else
            (void)fail_one(kind, &f);
    }
    (void)printf("%s: %u calls failed, %u violations\n", kind->name, failures,
                 violations);
    (void)fflush(stdout);
    ck_assert_uint_gt(failures, 10);
    ck_assert_uint_eq(violations, 0);
}

START_TEST(each_call_fails)
{
    sweep(&kinds[_i], CALLS, 1);
}
END_TEST

START_TEST(each_clock_fails)
{
    sweep(&kinds[_i], CLOCKS, is_long() ? 1 : 3);
}
END_TEST

static Suite *failcalls_suite(void)
{
    int n = (int)(sizeof(kinds) / sizeof(kinds[0]));
    Suite *s = suite_create("failcalls");
    TCase *t = tcase_create("calls"), *c = tcase_create("clocks");

    tcase_set_timeout(t, 900);
    tcase_set_timeout(c, 900);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(t, each_call_fails, 0, n);
    tcase_add_loop_test(c, each_clock_fails, 0, 1);
    suite_add_tcase(s, t);
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(failcalls_suite)
