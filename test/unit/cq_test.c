/* SPDX-License-Identifier: BSD-2-Clause */
/* cq_test.c - completion queues: what is polled, when the fd is readable, and
 * ends in every order. */
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "test/support/main.h"
#include "test/unit/accumulator_fixture.h"

static kp_cq *cq;
static kp_report reports[64];

static void set_up(void)
{
    fixture_defaults();
    fixture_start(2);
    ck_assert_int_eq(kp_cq_create(&cq, NULL), KP_OK);
}

static void tear_down(void)
{
    fixture_empty();
    if (cq != NULL)
        kp_cq_destroy(cq);
    fixture_stop();
}

static void send_tagged(int32_t partition, kp_cq *queue, uintptr_t tag)
{
    kp_record r = record_of("v", 1);
    struct append x;
    kp_err err;

    r.queue = queue;
    r.tag = (void *)tag;
    append_init(&x, &r, partition);
    while ((err = kp__append_try(&f.acc, &x)) == KP_PENDING)
        (void)kp__ticket_wait(&x.ticket);
    ck_assert_int_eq(err, KP_OK);
}

static void deliver(int32_t partition, kp_err err)
{
    struct batch *b = drain_head(fixture_queue(partition));

    ck_assert_ptr_nonnull(b);
    fixture_complete(b, err);
}

static bool is_readable(void)
{
    struct pollfd p = {.fd = kp_cq_fd(cq), .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static size_t poll_now(size_t max)
{
    return kp_cq_poll(cq, reports, max, 0);
}

/* -- What is polled -- */

START_TEST(reports_come_in_order_and_once)
{
    for (uintptr_t i = 0; i < 10; i++)
        send_tagged(0, i % 3 == 2 ? NULL : cq, i);
    ck_assert_uint_eq(poll_now(64), 0);
    deliver(0, KP_OK);
    ck_assert_uint_eq(poll_now(64), 7);
    for (size_t i = 0, n = 0; i < 10; i++) {
        if (i % 3 == 2)
            continue;
        ck_assert_uint_eq((uintptr_t)reports[n].tag, i);
        ck_assert_int_eq(reports[n].err, KP_OK);
        ck_assert_int_eq(reports[n].offset, 100 + (int64_t)i);
        ck_assert_int_eq(reports[n].partition, 0);
        ck_assert_str_eq(reports[n].topic, "orders");
        n++;
    }
    ck_assert_uint_eq(poll_now(64), 0);
}
END_TEST

START_TEST(a_small_array_is_filled_again_and_again)
{
    for (uintptr_t i = 0; i < 300; i++)
        send_tagged(0, cq, i);
    deliver(0, KP_ETIMEDOUT);
    for (uintptr_t i = 0; i < 300;) {
        size_t n = poll_now(7);

        ck_assert_uint_eq(n, 300 - i < 7 ? 300 - i : 7);
        for (size_t j = 0; j < n; j++, i++) {
            ck_assert_uint_eq((uintptr_t)reports[j].tag, i);
            ck_assert_int_eq(reports[j].err, KP_ETIMEDOUT);
        }
    }
    ck_assert_uint_eq(poll_now(7), 0);
}
END_TEST

START_TEST(several_batches_and_queues_are_kept_apart)
{
    kp_cq *other;

    ck_assert_int_eq(kp_cq_create(&other, NULL), KP_OK);
    send_tagged(0, cq, 1);
    send_tagged(0, other, 2);
    send_tagged(1, other, 3);
    send_tagged(1, cq, 4);
    deliver(1, KP_OK);
    deliver(0, KP_OK);
    ck_assert_uint_eq(poll_now(64), 2);
    ck_assert_uint_eq((uintptr_t)reports[0].tag, 4);
    ck_assert_int_eq(reports[0].partition, 1);
    ck_assert_uint_eq((uintptr_t)reports[1].tag, 1);
    ck_assert_uint_eq(kp_cq_poll(other, reports, 64, 0), 2);
    ck_assert_uint_eq((uintptr_t)reports[0].tag, 3);
    ck_assert_uint_eq((uintptr_t)reports[1].tag, 2);
    kp_cq_destroy(other);
}
END_TEST

/* Topic and text are lent until the next poll, though the memory of the batch
 * went back with its last report: an event loop may need it before it polls
 * again. */
START_TEST(texts_are_lent_and_memory_is_not)
{
    struct outcome o = {.err = KP_INVALID_RECORD, .base_offset = -1};
    struct batch *b;

    send_tagged(0, cq, 1);
    b = drain_head(fixture_queue(0));
    kp__batch_release_bytes(b);
    kp__result_complete(b->result, &o, "what the broker said");
    kp__cq_post(cq, &b->reports.posts[0]);
    kp__batch_unref(b);
    ck_assert_uint_lt(fixture_available(), f.settings.buffer_memory);
    ck_assert_uint_eq(poll_now(64), 1);
    ck_assert_uint_eq(fixture_available(), f.settings.buffer_memory);
    ck_assert_str_eq(reports[0].text, "what the broker said");
    ck_assert_str_eq(reports[0].topic, "orders");
}
END_TEST

START_TEST(without_memory_to_lend_the_batch_waits)
{
    send_tagged(0, cq, 1);
    send_tagged(1, cq, 2);
    deliver(0, KP_OK);
    deliver(1, KP_OK);
    kp__mem_fail_at(1);
    ck_assert_uint_eq(poll_now(64), 1);
    kp__mem_fail_at(-1);
    ck_assert_str_eq(reports[0].topic, "orders");
    ck_assert_uint_eq(poll_now(64), 1);
    ck_assert_uint_eq((uintptr_t)reports[0].tag, 2);
    ck_assert_uint_eq(poll_now(64), 0);
}
END_TEST

START_TEST(wrong_arguments_take_nothing)
{
    kp_error error;

    ck_assert_int_eq(kp_cq_create(NULL, &error), KP_EINVAL);
    ck_assert_str_ne(error.text, "");
    ck_assert_uint_eq(kp_cq_poll(NULL, reports, 64, 0), 0);
    ck_assert_int_eq(kp_cq_fd(NULL), -1);
    kp_cq_wakeup(NULL);
    kp_cq_destroy(NULL);
    send_tagged(0, cq, 1);
    deliver(0, KP_OK);
    ck_assert_uint_eq(kp_cq_poll(cq, NULL, 5, 0), 0);
    ck_assert_uint_eq(kp_cq_poll(cq, reports, 5, -2), 0);
    ck_assert_uint_eq(poll_now(0), 0);
    ck_assert_uint_eq(poll_now(1), 1);
}
END_TEST

START_TEST(no_queue_without_memory)
{
    kp_error error;
    kp_cq *none = cq;

    kp__mem_fail_at(1);
    ck_assert_int_eq(kp_cq_create(&none, &error), KP_ENOMEM);
    kp__mem_fail_at(-1);
    ck_assert_ptr_eq(none, cq);
    ck_assert_int_eq(error.err, KP_ENOMEM);
}
END_TEST

/* -- The fd -- */

START_TEST(the_fd_is_readable_while_there_is_something_to_say)
{
    ck_assert(!is_readable());
    send_tagged(0, cq, 1);
    send_tagged(0, cq, 2);
    ck_assert(!is_readable());
    deliver(0, KP_OK);
    ck_assert(is_readable());
    ck_assert_uint_eq(poll_now(1), 1);
    ck_assert(is_readable()); /* one is left */
    ck_assert_uint_eq(poll_now(1), 1);
    ck_assert_uint_eq(poll_now(1), 0);
    ck_assert(!is_readable());
}
END_TEST

START_TEST(an_fd_asked_for_late_tells_what_came_before)
{
    send_tagged(0, cq, 1);
    deliver(0, KP_OK);
    ck_assert(is_readable());
    ck_assert_uint_eq(poll_now(64), 1);
    ck_assert(!is_readable());
}
END_TEST

START_TEST(a_wake_up_lets_one_poll_return)
{
    ck_assert(!is_readable());
    kp_cq_wakeup(cq);
    ck_assert(is_readable());
    ck_assert_uint_eq(kp_cq_poll(cq, reports, 64, KP_FOREVER), 0);
    ck_assert(!is_readable());
    ck_assert_uint_eq(kp_cq_poll(cq, reports, 64, 1), 0);
}
END_TEST

START_TEST(a_callback_does_not_wait)
{
    kp__set_in_callback(true);
    ck_assert_uint_eq(kp_cq_poll(cq, reports, 64, KP_FOREVER), 0);
    kp__set_in_callback(false);
}
END_TEST

/* -- Ends -- */

START_TEST(a_queue_may_end_before_its_batches)
{
    send_tagged(0, cq, 1);
    send_tagged(1, cq, 2);
    send_tagged(1, cq, 3);
    deliver(1, KP_OK);
    ck_assert_uint_eq(poll_now(1), 1);
    kp_cq_destroy(cq);
    cq = NULL;
    deliver(0, KP_OK); /* nobody hears it */
    ck_assert_uint_eq(fixture_available(), f.settings.buffer_memory);
}
END_TEST

START_TEST(reports_outlive_the_producer)
{
    kp_cq *queue = cq;

    send_tagged(0, queue, 1);
    send_tagged(0, queue, 2);
    deliver(0, KP_OK);
    ck_assert_uint_eq(kp_cq_poll(queue, reports, 1, 0), 1);
    /* What fixture_stop does, but for its look at the pool. */
    kp__topics_destroy(f.topics);
    kp__compressors_fini(&f.compressors);
    kp__wakeup_fini(&f.bell.wakeup);
    kp__pool_unref(f.pool);
    ck_assert_str_eq(reports[0].topic, "orders");
    ck_assert_uint_eq(kp_cq_poll(queue, reports, 64, 0), 1);
    ck_assert_uint_eq((uintptr_t)reports[0].tag, 2);
    ck_assert_int_eq(reports[0].offset, 101);
    ck_assert_str_eq(reports[0].topic, "orders");
    kp_cq_destroy(queue);
    ck_assert_int_eq(kp__mem_live(), 0);
    fixture_start(2);
    cq = NULL;
}
END_TEST

/* -- Threads -- */

#define POSTS 3000

static void *post_all(void *arg)
{
    (void)arg;
    for (uintptr_t i = 0; i < POSTS; i++) {
        send_tagged((int32_t)(i % 2), cq, i);
        deliver((int32_t)(i % 2), KP_OK);
    }
    return NULL;
}

static size_t sleep_in_poll(bool by_fd)
{
    struct pollfd p = {.fd = by_fd ? kp_cq_fd(cq) : -1, .events = POLLIN};
    size_t max = 1 + (size_t)rand() % 5;

    if (!by_fd)
        return kp_cq_poll(cq, reports, max, 20000);
    ck_assert_int_eq(poll(&p, 1, 20000), 1); /* never asleep with work left */
    return poll_now(max);
}

/* No order of posting and polling loses a wake-up, by fd or by waiting. */
START_TEST(no_wake_up_is_lost)
{
    bool by_fd = _i == 1;
    uintptr_t next = 0;
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, post_all, NULL), 0);
    while (next < POSTS) {
        size_t n = sleep_in_poll(by_fd);

        if (!by_fd)
            ck_assert_uint_gt(n, 0);
        for (size_t i = 0; i < n; i++)
            ck_assert_uint_eq((uintptr_t)reports[i].tag, next++);
    }
    pthread_join(thread, NULL);
    ck_assert_uint_eq(poll_now(64), 0);
}
END_TEST

static void *wake_later(void *arg)
{
    (void)arg;
    while (atomic_load(&cq->sleepers) == 0)
        sched_yield();
    kp_cq_wakeup(cq);
    return NULL;
}

START_TEST(a_wake_up_ends_a_sleep)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, wake_later, NULL), 0);
    ck_assert_uint_eq(kp_cq_poll(cq, reports, 64, KP_FOREVER), 0);
    pthread_join(thread, NULL);
}
END_TEST

static Suite *cq_suite(void)
{
    Suite *s = suite_create("cq");
    TCase *t = tcase_create("polling");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, reports_come_in_order_and_once);
    tcase_add_test(t, a_small_array_is_filled_again_and_again);
    tcase_add_test(t, several_batches_and_queues_are_kept_apart);
    tcase_add_test(t, texts_are_lent_and_memory_is_not);
    tcase_add_test(t, without_memory_to_lend_the_batch_waits);
    tcase_add_test(t, wrong_arguments_take_nothing);
    tcase_add_test(t, no_queue_without_memory);
    suite_add_tcase(s, t);

    t = tcase_create("fd");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, the_fd_is_readable_while_there_is_something_to_say);
    tcase_add_test(t, an_fd_asked_for_late_tells_what_came_before);
    tcase_add_test(t, a_wake_up_lets_one_poll_return);
    tcase_add_test(t, a_callback_does_not_wait);
    suite_add_tcase(s, t);

    t = tcase_create("ends");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_queue_may_end_before_its_batches);
    tcase_add_test(t, reports_outlive_the_producer);
    suite_add_tcase(s, t);

    t = tcase_create("threads");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_loop_test(t, no_wake_up_is_lost, 0, 2);
    tcase_add_test(t, a_wake_up_ends_a_sleep);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(cq_suite)
