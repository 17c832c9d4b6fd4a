/* SPDX-License-Identifier: BSD-2-Clause */
/* partitioner_test.c - murmur2 against Kafka's vectors, and who chooses. */
#include <string.h>

#include "lib/api/partitioner.h"
#include "lib/base/rand.h"
#include "test/support/main.h"

static const struct {
    const char *text;
    size_t size; /* 0: a C string */
    int32_t hash;
} vectors[] = {
    {"21", 0, -973932308},
    {"foobar", 0, -790332482},
    {"a-little-bit-long-string", 0, -985981536},
    {"a-little-bit-longer-string", 0, -1486304829},
    {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", 0, -58897971},
    {"abc", 0, 479470107},
    {"100:48069", 0, 1009543857},
    {"", 0, 275646681},
    {"\0", 1, 375494588},
    {"\x80", 0, 857690492},
    {"\xff", 0, -311467685},
    {"\x80\xff", 0, -80095470},
    {"\x80\x81\xff", 0, 1160459762},
    {"\xff\xfe\xfd", 0, 998637092},
    {"\xff\xff\xff\xff\xff\xff\xff", 0, -71293549},
    {"\xff\xfe\x80\x81", 0, 1055649942},
    {"\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87", 0, 2122343024},
};

static size_t size_of(int i)
{
    return vectors[i].size > 0 ? vectors[i].size : strlen(vectors[i].text);
}

START_TEST(murmur2_is_kafkas) /* U9 */
{
    ck_assert_int_eq((int32_t)kp__murmur2(vectors[_i].text, size_of(_i)),
                     vectors[_i].hash);
}
END_TEST

/* The same again, another way: from the tables of its definition, one byte at a
 * time, in arithmetic without a sign. */
static uint32_t plain_murmur2(const uint8_t *key, uint32_t size)
{
    const uint64_t m = 0x5bd1e995, word = 0xffffffff;
    uint64_t h = 0x9747b28c ^ size, k = 0;

    for (uint32_t i = 0; i < size / 4 * 4; i++) {
        k += (uint64_t)key[i] << i % 4 * 8;
        if (i % 4 != 3)
            continue;
        k = k * m & word;
        k = (k ^ k >> 24) * m & word;
        h = (h * m & word) ^ k;
        k = 0;
    }
    for (uint32_t i = size / 4 * 4; i < size; i++)
        k += (uint64_t)key[i] << i % 4 * 8;
    if (size % 4 != 0)
        h = (h ^ k) * m & word;
    h = (h ^ h >> 13) * m & word;
    return (uint32_t)(h ^ h >> 15);
}

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

    ck_assert_int_eq(kp__partition_for(&producer, r, &topic, count, &p), KP_OK);
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

/* UR-072, P1, P2: keys of any length and bytes, of which half have the top bit of
 * their hash set, go where Java's do. */
START_TEST(random_keys_go_where_javas_go)
{
    static const int32_t counts[] = {1, 3, 6, 10, 12, 50, 1000, INT32_MAX};
    struct rng rng;
    int negative = 0;

    kp__rng_seed(&rng, 72);
    for (int i = 0; i < 100000; i++) {
        uint8_t key[64];
        uint32_t size = kp__rng_below(&rng, 65), hash;
        kp_record r = {.topic = "t", .key = {key, size}};

        for (uint32_t k = 0; k < size; k++)
            key[k] = (uint8_t)(kp__rng_next(&rng) | (i % 3 == 0 ? 0x80 : 0));
        hash = plain_murmur2(key, size);
        negative += hash >> 31 != 0 ? 1 : 0;
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
            ck_assert_int_eq(choose(&r, counts[k]),
                             (int32_t)(hash & 0x7fffffff) % counts[k]);
    }
    ck_assert_int_gt(negative, 40000);
    for (int i = 0; i < (int)(sizeof(vectors) / sizeof(vectors[0])); i++)
        ck_assert_int_eq(
            (int32_t)plain_murmur2((const uint8_t *)vectors[i].text,
                                   (uint32_t)size_of(i)),
            vectors[i].hash);
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
    tcase_add_test(t, random_keys_go_where_javas_go);
    tcase_add_test(t, empty_key_is_a_key);
    tcase_add_test(t, no_key_is_left_to_the_accumulator);
    tcase_add_test(t, keys_can_be_ignored);
    tcase_add_test(t, round_robin_goes_round);
    tcase_add_test(t, custom_function_chooses_in_range);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(partitioner_suite)
