/* SPDX-License-Identifier: BSD-2-Clause */
/* map_test.c - the hash map, and its hash. */
#include <stdio.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "test/support/main.h"

static struct map map;
static int values[2000];

static void set_up(void)
{
    kp__map_init(&map);
}

static void tear_down(void)
{
    kp__map_fini(&map);
    ck_assert_uint_eq(map.count, 0);
}

static size_t key_of(int i, char key[16])
{
    return (size_t)snprintf(key, 16, "topic-%d", i);
}

START_TEST(empty_map_has_nothing)
{
    ck_assert_ptr_null(kp__map_get(&map, "a", 1));
    ck_assert_ptr_null(kp__map_remove(&map, "a", 1));
    ck_assert_uint_eq(map.count, 0);
}
END_TEST

START_TEST(keys_are_bytes_and_copied)
{
    char key[] = {'a', '\0', 'b'};

    ck_assert(kp__map_put(&map, key, 3, &values[0]));
    key[2] = 'c';
    ck_assert(kp__map_put(&map, key, 3, &values[1]));
    ck_assert(kp__map_put(&map, "a", 1, &values[2]));
    ck_assert(kp__map_put(&map, "", 0, &values[3]));
    ck_assert_uint_eq(map.count, 4);
    ck_assert_ptr_eq(kp__map_get(&map, "a\0b", 3), &values[0]);
    ck_assert_ptr_eq(kp__map_get(&map, "a\0c", 3), &values[1]);
    ck_assert_ptr_eq(kp__map_get(&map, "a", 1), &values[2]);
    ck_assert_ptr_eq(kp__map_get(&map, NULL, 0), &values[3]);
}
END_TEST

START_TEST(put_replaces)
{
    ck_assert(kp__map_put(&map, "k", 1, &values[0]));
    ck_assert(kp__map_put(&map, "k", 1, &values[1]));
    ck_assert_uint_eq(map.count, 1);
    ck_assert_ptr_eq(kp__map_get(&map, "k", 1), &values[1]);
}
END_TEST

START_TEST(many_keys_and_removal)
{
    char key[16];

    for (int i = 0; i < 2000; i++)
        ck_assert(kp__map_put(&map, key, key_of(i, key), &values[i]));
    ck_assert_uint_eq(map.count, 2000);
    for (int i = 0; i < 2000; i += 2)
        ck_assert_ptr_eq(kp__map_remove(&map, key, key_of(i, key)),
                         &values[i]);
    ck_assert_uint_eq(map.count, 1000);
    for (int i = 0; i < 2000; i++)
        ck_assert_ptr_eq(kp__map_get(&map, key, key_of(i, key)),
                         i % 2 == 0 ? NULL : &values[i]);
}
END_TEST

struct visit {
    int calls;
    bool remove;
};

static void visit(void *arg, const void *key, size_t size, void *value)
{
    struct visit *v = arg;

    v->calls++;
    ++*(int *)value;
    if (v->remove)
        (void)kp__map_remove(&map, key, size);
}

START_TEST(each_visits_once_and_may_remove)
{
    struct visit v = {0};
    char key[16];

    memset(values, 0, sizeof(values));
    for (int i = 0; i < 100; i++)
        ck_assert(kp__map_put(&map, key, key_of(i, key), &values[i]));
    kp__map_each(&map, visit, &v);
    ck_assert_int_eq(v.calls, 100);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(values[i], 1);
    v = (struct visit){.remove = true};
    kp__map_each(&map, visit, &v);
    ck_assert_int_eq(v.calls, 100);
    ck_assert_uint_eq(map.count, 0);
}
END_TEST

START_TEST(hash_spreads_similar_keys)
{
    enum { KEYS = 4096, BUCKETS = 256 };
    int used[BUCKETS] = {0}, largest = 0;
    char key[16];

    for (int i = 0; i < KEYS; i++)
        used[kp__hash(key, key_of(i, key)) % BUCKETS]++;
    for (int i = 0; i < BUCKETS; i++)
        largest = used[i] > largest ? used[i] : largest;
    /* 16 on average; a hash that clusters puts far more somewhere */
    ck_assert_int_lt(largest, 48);
}
END_TEST

START_TEST(hash_depends_on_every_byte_and_the_size)
{
    unsigned char data[40] = {0};
    uint64_t zero = kp__hash(data, sizeof(data));

    ck_assert_uint_eq(kp__hash(data, sizeof(data)), zero);
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = 1;
        ck_assert_uint_ne(kp__hash(data, sizeof(data)), zero);
        data[i] = 0;
        ck_assert_uint_ne(kp__hash(data, i), zero);
    }
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(without_memory_nothing_changes)
{
    ck_assert(kp__map_put(&map, "a", 1, &values[0]));
    kp__mem_fail_at(1);
    ck_assert(!kp__map_put(&map, "b", 1, &values[1]));
    ck_assert_uint_eq(map.count, 1);
    ck_assert_ptr_null(kp__map_get(&map, "b", 1));
    kp__mem_fail_at(1);
    ck_assert(kp__map_put(&map, "a", 1, &values[2]));
    kp__mem_fail_at(-1);
    ck_assert_ptr_eq(kp__map_get(&map, "a", 1), &values[2]);
}
END_TEST

START_TEST(first_buckets_without_memory)
{
    long live = kp__mem_live();

    kp__mem_fail_at(2);
    ck_assert(!kp__map_put(&map, "a", 1, &values[0]));
    ck_assert_int_eq(kp__mem_live(), live);
    ck_assert(kp__map_put(&map, "a", 1, &values[0]));
}
END_TEST

START_TEST(a_map_that_cannot_grow_works_on)
{
    char key[16];

    for (int i = 0; i < 8; i++)
        ck_assert(kp__map_put(&map, key, key_of(i, key), &values[i]));
    kp__mem_fail_at(2);
    for (int i = 8; i < 20; i++)
        ck_assert(kp__map_put(&map, key, key_of(i, key), &values[i]));
    for (int i = 0; i < 20; i++)
        ck_assert_ptr_eq(kp__map_get(&map, key, key_of(i, key)), &values[i]);
}
END_TEST
#endif

static Suite *map_suite(void)
{
    Suite *s = suite_create("map");
    TCase *c = tcase_create("map");

    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, empty_map_has_nothing);
    tcase_add_test(c, keys_are_bytes_and_copied);
    tcase_add_test(c, put_replaces);
    tcase_add_test(c, many_keys_and_removal);
    tcase_add_test(c, each_visits_once_and_may_remove);
    tcase_add_test(c, hash_spreads_similar_keys);
    tcase_add_test(c, hash_depends_on_every_byte_and_the_size);
#ifdef KP_FAILMALLOC
    tcase_add_test(c, without_memory_nothing_changes);
    tcase_add_test(c, first_buckets_without_memory);
    tcase_add_test(c, a_map_that_cannot_grow_works_on);
#endif
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(map_suite)
