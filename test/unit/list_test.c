/* SPDX-License-Identifier: BSD-2-Clause */
/* list_test.c - the intrusive list. */
#include "lib/base/list.h"
#include "test/support/aborts.h"
#include "test/support/main.h"

struct item {
    int before;
    struct list_node node;
    int value;
};

static struct list list;
static struct item items[5];

static void set_up(void)
{
    kp__list_init(&list);
    for (int i = 0; i < 5; i++) {
        items[i].value = i;
        kp__node_init(&items[i].node);
    }
}

/* The values in order, as one decimal number: 0, 1, 2 are "12" after a 1. */
static int order(const struct list *l)
{
    int seen = 1;

    for (struct list_node *n = kp__list_first(l); n != NULL;
         n = kp__list_next(l, n))
        seen = seen * 10 + KP_CONTAINER(n, struct item, node)->value;
    return seen;
}

START_TEST(new_list_is_empty)
{
    ck_assert(kp__list_empty(&list));
    ck_assert_ptr_null(kp__list_first(&list));
    ck_assert_ptr_null(kp__list_last(&list));
    ck_assert_ptr_null(kp__list_pop_front(&list));
}
END_TEST

START_TEST(pushing_keeps_order)
{
    kp__list_push_back(&list, &items[1].node);
    kp__list_push_back(&list, &items[2].node);
    kp__list_push_front(&list, &items[0].node);
    ck_assert_int_eq(order(&list), 1012);
    ck_assert_ptr_eq(kp__list_last(&list), &items[2].node);
    ck_assert(!kp__list_empty(&list));
}
END_TEST

START_TEST(insert_before_a_node)
{
    kp__list_push_back(&list, &items[0].node);
    kp__list_push_back(&list, &items[2].node);
    kp__list_insert_before(&items[2].node, &items[1].node);
    kp__list_insert_before(&list.head, &items[3].node);
    ck_assert_int_eq(order(&list), 10123);
}
END_TEST

START_TEST(removing_twice_is_harmless)
{
    for (int i = 0; i < 3; i++)
        kp__list_push_back(&list, &items[i].node);
    ck_assert(kp__node_linked(&items[1].node));
    kp__list_remove(&items[1].node);
    ck_assert(!kp__node_linked(&items[1].node));
    kp__list_remove(&items[1].node);
    ck_assert_int_eq(order(&list), 102);
}
END_TEST

START_TEST(pop_front_until_empty)
{
    for (int i = 0; i < 3; i++)
        kp__list_push_back(&list, &items[i].node);
    for (int i = 0; i < 3; i++) {
        struct list_node *n = kp__list_pop_front(&list);

        ck_assert_ptr_eq(n, &items[i].node);
        ck_assert(!kp__node_linked(n));
    }
    ck_assert(kp__list_empty(&list));
}
END_TEST

START_TEST(splice_moves_everything_to_the_end)
{
    struct list other;

    kp__list_init(&other);
    kp__list_push_back(&list, &items[0].node);
    kp__list_push_back(&other, &items[1].node);
    kp__list_push_back(&other, &items[2].node);
    kp__list_splice_back(&list, &other);
    ck_assert_int_eq(order(&list), 1012);
    ck_assert(kp__list_empty(&other));
    kp__list_splice_back(&list, &other);
    ck_assert_int_eq(order(&list), 1012);
    kp__list_splice_back(&other, &list);
    ck_assert_int_eq(order(&other), 1012);
    ck_assert(kp__list_empty(&list));
}
END_TEST

#ifdef KP_DEBUG
static void push_twice(void *arg)
{
    (void)arg;
    kp__list_push_back(&list, &items[0].node);
    kp__list_push_back(&list, &items[0].node);
}

START_TEST(inserting_what_is_linked_aborts)
{
    ck_assert(test_aborts(push_twice, NULL));
}
END_TEST
#endif

static Suite *list_suite(void)
{
    Suite *s = suite_create("list");
    TCase *c = tcase_create("list");

    tcase_add_checked_fixture(c, set_up, NULL);
    tcase_add_test(c, new_list_is_empty);
    tcase_add_test(c, pushing_keeps_order);
    tcase_add_test(c, insert_before_a_node);
    tcase_add_test(c, removing_twice_is_harmless);
    tcase_add_test(c, pop_front_until_empty);
    tcase_add_test(c, splice_moves_everything_to_the_end);
#ifdef KP_DEBUG
    tcase_add_test(c, inserting_what_is_linked_aborts);
#endif
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(list_suite)
