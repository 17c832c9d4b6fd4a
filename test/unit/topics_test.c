/* SPDX-License-Identifier: BSD-2-Clause */
/* topics_test.c - topics that exist, names that are asked for, and readers
 * beside the writer. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/shared/partition_queue.h"
#include "lib/shared/topics.h"
#include "test/support/main.h"

static struct topics *topics;
static struct record_accumulator *nobody;

static void set_up(void)
{
    topics = kp__topics_create(nobody);
    ck_assert_ptr_nonnull(topics);
}

static void tear_down(void)
{
    kp__topics_destroy(topics);
    ck_assert_int_eq(kp__mem_live(), 0);
}

static struct topic *publish(const char *name, int32_t count)
{
    struct topic *t = kp__topics_publish(topics, name, strlen(name), count);

    if (count > 0)
        kp__topics_announce(topics, t);
    return t;
}

static struct topic *find(const char *name)
{
    return kp__topics_find(topics, name, strlen(name));
}

static struct topic_wait *want(const char *name, int64_t now_ns, bool *post)
{
    struct topic_wait *w = NULL;

    ck_assert_int_eq(
        kp__topics_want(topics, name, strlen(name), now_ns, &w, post), KP_OK);
    ck_assert_ptr_nonnull(w);
    return w;
}

/* -- Topics -- */

START_TEST(a_confirmed_topic_is_found)
{
    struct topic *t;

    ck_assert_ptr_null(find("orders"));
    t = publish("orders", 3);
    ck_assert_ptr_nonnull(t);
    ck_assert_ptr_eq(find("orders"), t);
    ck_assert_ptr_null(find("order"));
    ck_assert_ptr_null(find("orders2"));
    ck_assert_ptr_null(kp__topics_find(topics, "orders", 5));
    ck_assert_str_eq(t->name->text, "orders");
    ck_assert_int_eq(kp__topic_view(t)->count, 3);
    for (int32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(kp__topic_view(t)->queues[i]->partition, i);
        ck_assert_ptr_eq(kp__topic_view(t)->queues[i]->topic, t);
    }
}
END_TEST

/* What a thread found is found again by the text that stands there now, not by
 * where it stands, and in the table that is asked. */
START_TEST(what_was_found_is_found_again_by_its_text)
{
    char text[] = "orders";
    struct topic *orders = publish("orders", 1), *odders = publish("odders", 1);
    struct topics *first = topics;

    for (int i = 0; i < 3; i++) {
        text[1] = 'r';
        ck_assert_ptr_eq(kp__topics_find_again(topics, text, 0), orders);
        ck_assert_ptr_eq(kp__topics_find_again(topics, text, 6), orders);
        text[1] = 'd';
        ck_assert_ptr_eq(kp__topics_find_again(topics, text, 6), odders);
        ck_assert_ptr_null(kp__topics_find_again(topics, text, 5));
        ck_assert_ptr_eq(kp__topics_find_again(topics, text, 0), odders);
    }
    topics = kp__topics_create(nobody);
    ck_assert_ptr_null(kp__topics_find_again(topics, text, 0));
    ck_assert_ptr_eq(kp__topics_find_again(first, text, 0), odders);
    kp__topics_destroy(topics);
    /* Perhaps at the same address: not the one that was. */
    topics = kp__topics_create(nobody);
    ck_assert_ptr_null(kp__topics_find_again(topics, text, 0));
    kp__topics_destroy(topics);
    topics = first;
}
END_TEST

START_TEST(a_topic_grows_and_never_shrinks)
{
    struct topic *t = publish("orders", 2);
    const struct topic_view *old = kp__topic_view(t), *now;
    uint32_t version = atomic_load(&t->version);

    ck_assert_ptr_eq(publish("orders", 5), t);
    now = kp__topic_view(t);
    ck_assert_int_eq(now->count, 5);
    ck_assert_ptr_eq(now->queues[0], old->queues[0]);
    ck_assert_ptr_eq(now->queues[1], old->queues[1]);
    ck_assert_int_eq(now->queues[4]->partition, 4);
    ck_assert_uint_ne(atomic_load(&t->version), version);
    ck_assert_int_eq(old->count, 2); /* who still holds it can go on */
    ck_assert_ptr_eq(publish("orders", 1), t);
    ck_assert_ptr_eq(kp__topic_view(t), now);
}
END_TEST

/* A topic that grows by one partition each time costs as much memory for each
 * of them as one that has them all at once, not more and more. */
START_TEST(growing_step_by_step_costs_no_more)
{
    enum { STEPS = 4000 };
    size_t before = kp__mem_asked_bytes(), at_once;
    const struct topic_view *first;
    struct topic *t;

    ck_assert_ptr_nonnull(publish("at-once", STEPS));
    at_once = kp__mem_asked_bytes() - before;
    t = publish("grown", 1);
    first = kp__topic_view(t);
    before = kp__mem_asked_bytes();
    for (int32_t i = 2; i <= STEPS; i++)
        ck_assert_ptr_eq(publish("grown", i), t);
    ck_assert_uint_lt(kp__mem_asked_bytes() - before, 2 * at_once);
    ck_assert_int_eq(kp__topic_view(t)->count, STEPS);
    for (int32_t i = 0; i < STEPS; i++)
        ck_assert_int_eq(kp__topic_view(t)->queues[i]->partition, i);
    ck_assert_int_eq(first->count, 1); /* who still holds it can go on */
    ck_assert_ptr_eq(first->queues[0], kp__topic_view(t)->queues[0]);
}
END_TEST

/* Who appends to one partition writes no line of another's. */
START_TEST(queues_share_no_cache_line)
{
    const struct topic_view *v = kp__topic_view(publish("orders", 3));

    for (int32_t i = 0; i < 3; i++)
        ck_assert_uint_eq((uintptr_t)v->queues[i] % 128, 0);
}
END_TEST

static void collect(void *arg, struct topic *t)
{
    uint32_t *next = arg;
    char name[32];

    (void)snprintf(name, sizeof(name), "topic-%u", *next);
    ck_assert_str_eq(t->name->text, name);
    ck_assert_uint_eq(t->number, *next);
    (*next)++;
}

START_TEST(many_topics_are_all_found_in_order)
{
    uint32_t next = 0;
    char name[32];

    for (uint32_t i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), "topic-%u", i);
        ck_assert_ptr_nonnull(publish(name, 1));
    }
    for (uint32_t i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), "topic-%u", i);
        ck_assert_uint_eq(find(name)->number, i);
    }
    kp__topics_each(topics, collect, &next);
    ck_assert_uint_eq(next, 3000);
}
END_TEST

START_TEST(refused_until_it_is_published_again)
{
    struct topic *t = publish("orders", 1);
    uint32_t version = atomic_load(&t->version);

    kp__topics_refuse(topics, "orders", 6, KP_TOPIC_AUTHORIZATION_FAILED);
    ck_assert_int_eq(atomic_load(&t->refused), KP_TOPIC_AUTHORIZATION_FAILED);
    ck_assert_uint_ne(atomic_load(&t->version), version);
    publish("orders", 1);
    ck_assert_int_eq(atomic_load(&t->refused), KP_OK);
    kp__topics_refuse(topics, "unheard-of", 10, KP_INVALID_TOPIC_EXCEPTION);
    ck_assert_ptr_null(find("unheard-of"));
}
END_TEST

START_TEST(without_memory_nothing_changes)
{
    struct topic *t = NULL;

    for (long i = 1; t == NULL; i++) {
        ck_assert_int_lt(i, 20);
        kp__mem_fail_at(i);
        t = publish("orders", 4);
        kp__mem_fail_at(-1);
        ck_assert_ptr_eq(find("orders"), t);
    }
    for (long i = 1; kp__topic_view(t)->count == 4; i++) {
        ck_assert_int_lt(i, 20);
        kp__mem_fail_at(i);
        (void)publish("orders", 8);
        kp__mem_fail_at(-1);
    }
    ck_assert_int_eq(kp__topic_view(t)->queues[7]->partition, 7);
}
END_TEST

/* The table holds TOPICS_MAX and no more; then names are refused. */
START_TEST(the_table_has_an_end)
{
    struct topic_wait *w;
    char name[32];
    bool post;

    for (uint32_t i = 0; i < TOPICS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "t%u", i);
        if (publish(name, 1) == NULL)
            ck_abort_msg("topic %u", i);
    }
    ck_assert_ptr_null(publish("one-more", 1));
    ck_assert_int_eq(kp__topics_want(topics, "one-more", 8, 0, &w, &post),
                     KP_ETOPIC);
    ck_assert_ptr_nonnull(find("t99999"));
    ck_assert_ptr_nonnull(publish("t99999", 2)); /* growing is no new topic */
}
END_TEST

/* There is room for TOPIC_PARTITIONS_MAX partitions of a topic and no more, and
 * PARTITIONS_MAX of all of them together. */
START_TEST(partitions_have_an_end)
{
    enum { EACH = TOPIC_PARTITIONS_MAX };
    struct topic *last;
    char name[32];

    ck_assert_int_eq(kp__topics_room(topics, NULL), EACH);
    for (int i = 0; i < PARTITIONS_MAX / EACH - 1; i++) {
        (void)snprintf(name, sizeof(name), "t%d", i);
        ck_assert_ptr_nonnull(publish(name, EACH));
    }
    last = publish("last", EACH - 1);
    ck_assert_ptr_nonnull(last);
    ck_assert_int_eq(kp__topics_room(topics, NULL), 1);
    ck_assert_int_eq(kp__topics_room(topics, last), EACH);
    ck_assert_int_eq(kp__topics_room(topics, find("t0")), EACH);
    ck_assert_ptr_eq(publish("last", EACH), last);
    ck_assert_int_eq(kp__topics_room(topics, NULL), 0);
    ck_assert_int_eq(kp__topics_room(topics, last), EACH);
    ck_assert_ptr_eq(publish("last", 3), last); /* it has that many */
}
END_TEST

/* -- Names that are asked for -- */

START_TEST(the_io_thread_is_told_once)
{
    struct topic_wait *a, *b;
    bool post = false;
    int64_t since_ns;

    a = want("orders", 100, &post);
    ck_assert(post);
    b = want("orders", 200, &post);
    ck_assert(!post);
    ck_assert_ptr_eq(a, b);
    ck_assert_int_eq(kp__topics_wait_state(topics, a, &since_ns), KP_OK);
    ck_assert_int_eq(since_ns, 100);
    kp__topics_wait_unref(topics, a);
    kp__topics_wait_unref(topics, b);
}
END_TEST

START_TEST(a_confirmed_name_is_asked_for_no_more)
{
    bool post;
    struct topic_wait *w = want("orders", 100, &post);
    uint32_t version = atomic_load(&w->version);

    publish("orders", 1);
    ck_assert_uint_ne(atomic_load(&w->version), version);
    ck_assert_ptr_nonnull(find("orders"));
    kp__topics_wait_unref(topics, w);
    /* Should anyone ask all the same, the I/O thread hears of it. */
    w = want("orders", 100, &post);
    ck_assert(post);
    kp__topics_wait_unref(topics, w);
}
END_TEST

/* Negative news is kept, with the time since when it is so. */
START_TEST(an_answer_is_remembered)
{
    bool post;
    struct topic_wait *w = want("orders", 100, &post), *again;
    uint32_t version = atomic_load(&w->version);
    int64_t since_ns;

    kp__topics_refuse(topics, "orders", 6, KP_UNKNOWN_TOPIC_OR_PARTITION);
    ck_assert_uint_ne(atomic_load(&w->version), version);
    kp__topics_wait_unref(topics, w);
    again = want("orders", 900, &post);
    ck_assert(!post);
    ck_assert_int_eq(kp__topics_wait_state(topics, again, &since_ns),
                     KP_UNKNOWN_TOPIC_OR_PARTITION);
    ck_assert_int_eq(since_ns, 100);
    kp__topics_wait_unref(topics, again);
}
END_TEST

static char forgotten[256];

static void note_forgotten(void *arg, const char *name, size_t size)
{
    size_t used = strlen(forgotten);

    (void)arg;
    ck_assert_uint_eq(strlen(name), size);
    (void)snprintf(forgotten + used, sizeof(forgotten) - used, "%s ", name);
}

START_TEST(names_that_nobody_wants_are_forgotten)
{
    bool post;
    struct topic_wait *old = want("old", 100, &post);
    struct topic_wait *held = want("held", 100, &post);
    struct topic_wait *young = want("young", 500, &post);

    forgotten[0] = '\0';
    kp__topics_wait_unref(topics, old);
    kp__topics_wait_unref(topics, young);
    kp__topics_expire(topics, 500, note_forgotten, NULL);
    ck_assert_str_eq(forgotten, "old ");
    kp__topics_wait_unref(topics, held);
    kp__topics_expire(topics, 501, note_forgotten, NULL);
    ck_assert(strcmp(forgotten, "old held young ") == 0 ||
              strcmp(forgotten, "old young held ") == 0);
    kp__topics_wait_unref(topics, want("old", 1000, &post));
    ck_assert(post); /* anew */
}
END_TEST

START_TEST(closing_wakes_every_wait)
{
    bool post;
    struct topic_wait *w = want("orders", 100, &post);
    struct topic *t = publish("known", 1);
    uint32_t version = atomic_load(&w->version);
    uint32_t topic_version = atomic_load(&t->version);

    kp__topics_wake_all(topics);
    ck_assert_uint_ne(atomic_load(&w->version), version);
    ck_assert_uint_ne(atomic_load(&t->version), topic_version);
    kp__topics_wait_unref(topics, w);
}
END_TEST

START_TEST(no_memory_to_ask)
{
    struct topic_wait *w = NULL;
    bool post;
    kp_err err = KP_ENOMEM;

    for (long i = 1; err == KP_ENOMEM; i++) {
        ck_assert_int_lt(i, 10);
        kp__mem_fail_at(i);
        err = kp__topics_want(topics, "orders", 6, 1, &w, &post);
        kp__mem_fail_at(-1);
    }
    ck_assert_int_eq(err, KP_OK);
    ck_assert(post);
    kp__topics_wait_unref(topics, w);
}
END_TEST

/* -- Threads -- */

#define WAITERS 200
static _Atomic uint32_t asleep, woken, found;

static void *wait_for_topic(void *arg)
{
    struct topic_wait *w;
    bool post, counted = false;

    (void)arg;
    while (find("orders") == NULL) {
        struct ticket t;

        if (kp__topics_want(topics, "orders", 6, 0, &w, &post) != KP_OK)
            return NULL;
        t = kp__topics_ticket(&w->version, atomic_load(&w->version), KP_NEVER);
        if (find("orders") == NULL) {
            if (!counted)
                atomic_fetch_add(&asleep, 1);
            counted = true;
            (void)kp__ticket_wait(&t);
            kp__topics_relay(&t);
            atomic_fetch_add(&woken, 1);
        }
        kp__topics_wait_unref(topics, w);
    }
    atomic_fetch_add(&found, 1);
    return NULL;
}

static void begin_to_wait(pthread_t threads[WAITERS])
{
    atomic_store(&asleep, 0);
    atomic_store(&woken, 0);
    atomic_store(&found, 0);
    for (int i = 0; i < WAITERS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, wait_for_topic, NULL), 0);
    while (atomic_load(&asleep) < WAITERS)
        sched_yield();
}

static void publish_and_join(pthread_t threads[WAITERS])
{
    publish("orders", 1);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(atomic_load(&found), WAITERS);
}

START_TEST(all_who_wait_for_a_name_are_woken_by_relay)
{
    pthread_t threads[WAITERS];

    begin_to_wait(threads);
    publish_and_join(threads);
}
END_TEST

static void pause_ms(int64_t ms)
{
    _Atomic uint32_t nobodys = 0;

    (void)kp__wait(&nobodys, 0,
                   kp__now_ns(&kp__system_clock) + ms * KP_NS_PER_MS);
}

/* For a tenth of a second nobody wakes. */
static bool come_to_rest(void)
{
    for (int i = 0; i < 100; i++) {
        uint32_t before = atomic_load(&woken);

        pause_ms(100);
        if (atomic_load(&woken) == before)
            return true;
    }
    return false;
}

/* Those who find nothing for them sleep again, and are left alone. */
START_TEST(news_for_nobody_wakes_each_once)
{
    pthread_t threads[WAITERS];

    begin_to_wait(threads);
    kp__topics_refuse(topics, "orders", 6, KP_UNKNOWN_TOPIC_OR_PARTITION);
    while (atomic_load(&woken) < WAITERS)
        sched_yield();
    ck_assert(come_to_rest());
#ifdef HAVE_FUTEX /* without, each wake-up is everybody's */
    ck_assert_uint_le(atomic_load(&woken), 2 * WAITERS);
#endif
    publish_and_join(threads);
}
END_TEST

static _Atomic bool stop;
static _Atomic uint32_t published;

static void *read_all(void *arg)
{
    char name[32];

    (void)arg;
    while (!atomic_load(&stop)) {
        uint32_t count = atomic_load(&published);
        uint32_t i = count > 0 ? count - 1 : 0;
        struct topic *t;

        (void)snprintf(name, sizeof(name), "topic-%u", i);
        t = find(name);
        if (count > 0 && (t == NULL || kp__topic_view(t)->count < 1 ||
                          kp__topic_view(t)->queues[0]->topic != t))
            return "a published topic was not there";
    }
    return NULL;
}

/* What was published is found by everybody from then on, while tables grow. */
START_TEST(readers_need_no_lock)
{
    pthread_t readers[3];
    char name[32];

    atomic_store(&stop, false);
    atomic_store(&published, 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&readers[i], NULL, read_all, NULL), 0);
    for (uint32_t i = 0; i < 2000; i++) {
        (void)snprintf(name, sizeof(name), "topic-%u", i);
        ck_assert_ptr_nonnull(publish(name, 1));
        atomic_store(&published, i + 1);
        if (i % 3 == 0)
            publish(name, 3);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++) {
        void *failure;

        pthread_join(readers[i], &failure);
        ck_assert_msg(failure == NULL, "%s", (const char *)failure);
    }
}
END_TEST

static Suite *topics_suite(void)
{
    Suite *s = suite_create("topics");
    TCase *t = tcase_create("topics");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_confirmed_topic_is_found);
    tcase_add_test(t, what_was_found_is_found_again_by_its_text);
    tcase_add_test(t, a_topic_grows_and_never_shrinks);
    tcase_add_test(t, growing_step_by_step_costs_no_more);
    tcase_add_test(t, queues_share_no_cache_line);
    tcase_add_test(t, many_topics_are_all_found_in_order);
    tcase_add_test(t, refused_until_it_is_published_again);
    tcase_add_test(t, without_memory_nothing_changes);
    tcase_add_test(t, the_table_has_an_end);
    tcase_add_test(t, partitions_have_an_end);
    suite_add_tcase(s, t);

    t = tcase_create("names");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, the_io_thread_is_told_once);
    tcase_add_test(t, a_confirmed_name_is_asked_for_no_more);
    tcase_add_test(t, an_answer_is_remembered);
    tcase_add_test(t, names_that_nobody_wants_are_forgotten);
    tcase_add_test(t, closing_wakes_every_wait);
    tcase_add_test(t, no_memory_to_ask);
    suite_add_tcase(s, t);

    t = tcase_create("threads");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, all_who_wait_for_a_name_are_woken_by_relay);
    tcase_add_test(t, news_for_nobody_wakes_each_once);
    tcase_add_test(t, readers_need_no_lock);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(topics_suite)
