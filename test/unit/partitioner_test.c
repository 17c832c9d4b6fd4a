/* SPDX-License-Identifier: BSD-2-Clause */
/* partitioner_test.c - murmur2 against Kafka's vectors, and who chooses. */
#include <string.h>

#include "lib/api/partitioner.h"
#include "test/support/main.h"

static const struct {
    const char *text;
    int32_t hash;
} vectors[] = {
    {"21", -973932308},
    {"foobar", -790332482},
    {"a-little-bit-long-string", -985981536},
    {"a-little-bit-longer-string", -1486304829},
    {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
    {"abc", 479470107},
    {"", 275646681},
    {"\x80", 857690492},
    {"\xff\xfe\xfd", 998637092},
};

START_TEST(murmur2_is_kafkas) /* U9 */
{
    ck_assert_int_eq((int32_t)kp__murmur2(vectors[_i].text,
                                          strlen(vectors[_i].text)),
                     vectors[_i].hash);
}
END_TEST

static struct kp_producer producer;
static struct topic topic;

static void setup(void)
{
    memset(&producer, 0, sizeof(producer));
    memset(&topic, 0, sizeof(topic));
}

static int32_t choose(const kp_record *r, int32_t count)
{
    int32_t p = -99;

    ck_assert_int_eq(kp__partition_for(&producer, r, &topic, count, &p),
                     KP_OK);
    return p;
}

START_TEST(explicit_wins)
{
    kp_record r = {.topic = "t", .partition = 3, .flags = KP_HAS_PARTITION};

    r.key = kp_str("abc");
    ck_assert_int_eq(choose(&r, 2), 3);
}
END_TEST

START_TEST(key_decides_among_all)
{
    kp_record r = {.topic = "t"};

    r.key = kp_str("21");
    /* -973932308 & 0x7fffffff is 1173551340. */
    ck_assert_int_eq(choose(&r, 7), 1173551340 % 7);
    ck_assert_int_eq(choose(&r, 1), 0);
}
END_TEST

START_TEST(empty_key_is_a_key)
{
    kp_record r = {.topic = "t"};

    r.key = kp_str("");
    ck_assert_int_eq(choose(&r, 10), 275646681 % 10);
}
END_TEST

START_TEST(no_key_is_left_to_the_accumulator)
{
    kp_record r = {.topic = "t"};

    ck_assert_int_eq(choose(&r, 10), -1);
}
END_TEST

START_TEST(keys_can_be_ignored)
{
    kp_record r = {.topic = "t"};

    producer.settings.ignore_keys = true;
    r.key = kp_str("21");
    ck_assert_int_eq(choose(&r, 10), -1);
}
END_TEST

START_TEST(round_robin_goes_round)
{
    kp_record r = {.topic = "t"};

    producer.settings.partitioner = PARTITIONER_ROUND_ROBIN;
    r.key = kp_str("21");
    for (int32_t i = 0; i < 7; i++)
        ck_assert_int_eq(choose(&r, 3), i % 3);
}
END_TEST

static int32_t chosen;
static int32_t custom(void *arg, const kp_record *r, int32_t count)
{
    (void)r;
    *(int32_t *)arg = count;
    return chosen;
}

START_TEST(custom_function_chooses_in_range)
{
    kp_record r = {.topic = "t"};
    int32_t seen = 0, p = -99;

    producer.settings.partitioner_fn = custom;
    producer.settings.partitioner_arg = &seen;
    chosen = 4;
    ck_assert_int_eq(choose(&r, 5), 4);
    ck_assert_int_eq(seen, 5);
    chosen = -1;
    ck_assert_int_eq(choose(&r, 5), -1);
    chosen = 5;
    ck_assert_int_eq(kp__partition_for(&producer, &r, &topic, 5, &p),
                     KP_EPARTITION);
    chosen = -2;
    ck_assert_int_eq(kp__partition_for(&producer, &r, &topic, 5, &p),
                     KP_EPARTITION);
    ck_assert_int_eq(p, -99);
}
END_TEST

static Suite *partitioner_suite(void)
{
    Suite *s = suite_create("partitioner");
    TCase *t = tcase_create("partitioner");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_loop_test(t, murmur2_is_kafkas, 0,
                        (int)(sizeof(vectors) / sizeof(vectors[0])));
    tcase_add_test(t, explicit_wins);
    tcase_add_test(t, key_decides_among_all);
    tcase_add_test(t, empty_key_is_a_key);
    tcase_add_test(t, no_key_is_left_to_the_accumulator);
    tcase_add_test(t, keys_can_be_ignored);
    tcase_add_test(t, round_robin_goes_round);
    tcase_add_test(t, custom_function_chooses_in_range);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(partitioner_suite)
