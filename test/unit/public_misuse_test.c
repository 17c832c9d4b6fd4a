/* SPDX-License-Identifier: BSD-2-Clause */
/* What a careless program does: sizes of -1, calls from where they must not
 * be made, two pollers, settings at both ends of their ranges.  Each wrong use
 * that can be seen has an error, and none costs a report, a crash or a hang. */
#include <errno.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/unit/public_fixture.h"

#include "test/support/main.h"

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
}

/* -- sizes that cannot be -- */

/* `size` bytes, and behind them a page that cannot be read. */
static void *at_the_edge(const void *bytes, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(two, MAP_FAILED);
    ck_assert_int_eq(mprotect(two + page, page, PROT_NONE), 0);
    return memcpy(two + page - size, bytes, size);
}

static const size_t wild[] = {SIZE_MAX, SIZE_MAX / 2, (size_t)INT32_MAX + 1,
                              INT32_MAX, 1 << 26};
#define WILD ((int)(sizeof(wild) / sizeof(wild[0])))

START_TEST(no_size_is_read_by_that_cannot_be)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), NULL);
    const kp_header header = {{"k", 1}, {"v", 1}};
    kp_record good = record_of("t", "v"), r;
    kp_header long_key = header, long_value = header;
    kp_producer *p;

    kp_config_on_log(c, KP_LOG_DEBUG, keep_line, &lines);
    p = start_producer(c);
    learn_topic(p, "t");
    r = good;
    r.topic = at_the_edge("t", 2);
    r.topic_size = wild[_i];
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOPIC);
    ASSERT_ERR(kp_send_many(p, &r, 1, NULL, NULL), KP_ETOPIC);
    r = good;
    r.key = (kp_bytes){at_the_edge("k", 1), wild[_i]};
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    r = good;
    r.value = (kp_bytes){at_the_edge("v", 1), wild[_i]};
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    r = good;
    r.headers = at_the_edge(&header, sizeof(header));
    r.header_count = wild[_i];
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    long_key.key.size = wild[_i];
    r.headers = &long_key;
    r.header_count = 1;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    long_value.value.size = wild[_i];
    r.headers = &long_value;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ETOOBIG);
    ASSERT_OK(deliver(p, &good, NULL));
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_uint_eq(stored_count("t", 0), 1);
}
END_TEST

static Suite *public_misuse_suite(void)
{
    Suite *s = suite_create("public misuse");
    TCase *t = tcase_create("sizes");

    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_loop_test(t, no_size_is_read_by_that_cannot_be, 0, WILD);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_misuse_suite)
