/* SPDX-License-Identifier: BSD-2-Clause */
/* shared_small_test.c - ops, status and the bell: small files, one test
 * program. */
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/shared/io_thread.h"
#include "lib/shared/ops.h"
#include "lib/shared/producer.h"
#include "lib/shared/status.h"
#include "test/support/main.h"

/* -- ops -- */

START_TEST(ops_are_taken_oldest_first)
{
    struct op *op[3], *taken;
    struct ops ops;

    kp__ops_init(&ops);
    ck_assert(kp__ops_empty(&ops));
    ck_assert_ptr_null(kp__ops_take(&ops));
    for (int i = 0; i < 3; i++) {
        op[i] = kp__op_create(OP_FLUSH, NULL, 0);
        kp__op_post(&ops, op[i]);
    }
    ck_assert(!kp__ops_empty(&ops));
    taken = kp__ops_take(&ops);
    ck_assert(kp__ops_empty(&ops));
    for (int i = 0; i < 3; i++) {
        struct op *next = taken->next;

        ck_assert_ptr_eq(taken, op[i]);
        kp__op_done(taken);
        kp__op_unref(op[i]);
        taken = next;
    }
    ck_assert_ptr_null(taken);
    ck_assert_int_eq(kp__mem_live(), 0);
}
END_TEST

START_TEST(an_op_copies_its_name_and_is_answered_once)
{
    char name[] = "orders";
    struct op *op = kp__op_create(OP_WANT_TOPIC, name, 6);
    struct ticket ticket;
    struct ops ops;

    kp__ops_init(&ops);
    name[0] = 'x';
    ck_assert_str_eq(op->topic, "orders");
    ck_assert_uint_eq(op->topic_size, 6);
    kp__op_post(&ops, op);
    ck_assert(!kp__op_is_done(op));
    kp__op_ticket(op, 77, &ticket);
    ck_assert_int_eq(ticket.deadline_ns, 77);
    ck_assert_uint_eq(atomic_load(ticket.word), ticket.seen);
    kp__ops_take(&ops)->err = KP_ETIMEDOUT;
    kp__op_done(op);
    ck_assert(kp__op_is_done(op));
    ck_assert_uint_ne(atomic_load(ticket.word), ticket.seen);
    kp__op_ticket(op, 77, &ticket);
    ck_assert_ptr_null(ticket.word);
    ck_assert_int_eq(op->err, KP_ETIMEDOUT);
    kp__op_unref(op);
    ck_assert_int_eq(kp__mem_live(), 0);
}
END_TEST

/* A caller that gives up leaves the op to the I/O thread. */
START_TEST(an_abandoned_op_is_freed_by_its_answer)
{
    struct op *op = kp__op_create(OP_CLOSE, NULL, 0);
    struct ops ops;

    kp__ops_init(&ops);
    kp__op_post(&ops, op);
    kp__op_unref(op);
    kp__op_done(kp__ops_take(&ops));
    ck_assert_int_eq(kp__mem_live(), 0);
}
END_TEST

START_TEST(ops_that_nobody_serves_are_answered_at_the_end)
{
    struct op *op = kp__op_create(OP_FLUSH, NULL, 0);
    struct ops ops;

    kp__ops_init(&ops);
    kp__op_post(&ops, op);
    kp__ops_finish(&ops);
    ck_assert(kp__op_is_done(op));
    ck_assert_int_eq(op->err, KP_ECLOSED);
    kp__op_unref(op);
    ck_assert_int_eq(kp__mem_live(), 0);
}
END_TEST

START_TEST(no_op_without_memory)
{
    for (long i = 1; i <= 2; i++) {
        kp__mem_fail_at(i);
        ck_assert_ptr_null(kp__op_create(OP_WANT_TOPIC, "orders", 6));
        kp__mem_fail_at(-1);
    }
    ck_assert_int_eq(kp__mem_live(), 0);
}
END_TEST

#define POSTERS 4
#define POSTS 5000
static struct ops shared_ops;

static void *post_ops(void *arg)
{
    for (uint32_t i = 0; i < POSTS; i++) {
        struct op *op = kp__op_create(OP_FLUSH, NULL, 0);

        if (op == NULL)
            break;
        op->flush_epoch = i;
        op->deadline_ns = (int64_t)(intptr_t)arg;
        kp__op_post(&shared_ops, op);
        kp__op_unref(op);
    }
    return NULL;
}

START_TEST(each_posters_ops_arrive_in_its_order)
{
    uint32_t next[POSTERS] = {0}, total = 0;
    pthread_t threads[POSTERS];

    kp__ops_init(&shared_ops);
    for (intptr_t i = 0; i < POSTERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, post_ops, (void *)i),
                         0);
    while (total < POSTERS * POSTS) {
        struct op *op = kp__ops_take(&shared_ops);

        while (op != NULL) {
            struct op *following = op->next;

            ck_assert_uint_eq(op->flush_epoch, next[op->deadline_ns]++);
            kp__op_done(op);
            total++;
            op = following;
        }
    }
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(kp__mem_live(), 0);
}
END_TEST

/* -- status -- */

START_TEST(status_names_the_nearest_trouble)
{
    struct status s;
    kp_error e;

    kp__status_init(&s);
    memset(&e, 0x5a, sizeof(e));
    ck_assert_int_eq(kp__status_get(&s, "orders", 6, &e), KP_OK);
    ck_assert_int_eq(kp__status_get(&s, NULL, 0, NULL), KP_OK);
    kp__status_cluster(&s, KP_ECONNECT, KP_ERESOLVE, "no broker of %d", 3);
    ck_assert_int_eq(kp__status_get(&s, "orders", 6, &e), KP_ECONNECT);
    ck_assert_int_eq(e.cause, KP_ERESOLVE);
    ck_assert_str_eq(e.text, "no broker of 3");
    kp__status_topic(&s, "orders", 6, KP_TOPIC_AUTHORIZATION_FAILED, KP_OK,
                     "not for %s", "us");
    ck_assert_int_eq(kp__status_get(&s, "orders", 6, &e),
                     KP_TOPIC_AUTHORIZATION_FAILED);
    ck_assert_str_eq(e.text, "not for us");
    ck_assert_int_eq(kp__status_get(&s, "other", 5, &e), KP_ECONNECT);
    ck_assert_int_eq(kp__status_get(&s, NULL, 0, &e),
                     KP_TOPIC_AUTHORIZATION_FAILED);
    kp__status_topic(&s, "orders", 6, KP_EMETADATA, KP_OK, "unknown");
    ck_assert_int_eq(kp__status_get(&s, "orders", 6, &e), KP_EMETADATA);
    kp__status_topic(&s, "orders", 6, KP_OK, KP_OK, NULL);
    ck_assert_int_eq(kp__status_get(&s, "orders", 6, &e), KP_ECONNECT);
    kp__status_cluster(&s, KP_OK, KP_OK, NULL);
    ck_assert_int_eq(kp__status_get(&s, "orders", 6, &e), KP_OK);
    kp__status_fini(&s);
    ck_assert_int_eq(kp__mem_live(), 0);
}
END_TEST

START_TEST(the_first_fatal_error_stays)
{
    struct status s;
    kp_error e;

    kp__status_init(&s);
    kp__status_topic(&s, "orders", 6, KP_EMETADATA, KP_OK, "unknown");
    kp__status_fatal(&s, KP_CLUSTER_AUTHORIZATION_FAILED, "first");
    kp__status_fatal(&s, KP_EPROTO, "second");
    kp__status_topic(&s, "orders", 6, KP_OK, KP_OK, NULL);
    ck_assert_int_eq(kp__status_get(&s, "orders", 6, &e),
                     KP_CLUSTER_AUTHORIZATION_FAILED);
    ck_assert_int_eq(e.kind, KP_KIND_FATAL);
    ck_assert_str_eq(e.text, "first");
    kp__status_fini(&s);
    ck_assert_int_eq(kp__mem_live(), 0);
}
END_TEST

START_TEST(a_long_text_is_cut)
{
    char text[600];
    struct status s;
    kp_error e;

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    kp__status_init(&s);
    kp__status_cluster(&s, KP_ECONNECT, KP_OK, "%s", text);
    ck_assert_int_eq(kp__status_get(&s, NULL, 0, &e), KP_ECONNECT);
    ck_assert_uint_eq(strlen(e.text), sizeof(e.text) - 1);
    kp__status_fini(&s);
}
END_TEST

START_TEST(no_memory_to_explain_a_topic)
{
    struct status s;

    kp__status_init(&s);
    for (long i = 1; i <= 3; i++) {
        kp__mem_fail_at(i);
        kp__status_topic(&s, "orders", 6, KP_EMETADATA, KP_OK, "unknown");
        kp__mem_fail_at(-1);
        ck_assert_int_eq(kp__status_get(&s, "orders", 6, NULL), KP_OK);
    }
    kp__status_fini(&s);
    ck_assert_int_eq(kp__mem_live(), 0);
}
END_TEST

/* -- the bell -- */

static bool rings(struct io_bell *b)
{
    struct pollfd p = {.fd = b->wakeup.read_fd, .events = POLLIN};
    bool yes = poll(&p, 1, 0) == 1;

    kp__wakeup_clear(&b->wakeup);
    return yes;
}

START_TEST(only_a_sleeper_that_would_be_late_is_woken)
{
    struct io_bell b;

    memset(&b, 0, sizeof(b));
    ck_assert_int_eq(kp__wakeup_init(&b.wakeup), 0);
    kp__io_wake(&b, 0); /* awake */
    ck_assert(!rings(&b));
    atomic_store(&b.sleeps_until_ns, 100);
    kp__io_wake(&b, 100); /* in time by itself */
    kp__io_wake(&b, 200);
    ck_assert(!rings(&b));
    ck_assert_int_eq(atomic_load(&b.sleeps_until_ns), 100);
    kp__io_wake(&b, 99);
    ck_assert(rings(&b));
    ck_assert_int_eq(atomic_load(&b.sleeps_until_ns), 0);
    kp__io_wake(&b, 0); /* once is enough */
    ck_assert(!rings(&b));
    atomic_store(&b.sleeps_until_ns, KP_NEVER);
    kp__io_wake(&b, KP_NEVER);
    ck_assert(!rings(&b));
    kp__io_wake(&b, 0);
    ck_assert(rings(&b));
    kp__wakeup_fini(&b.wakeup);
}
END_TEST

/* -- unwatched failures -- */

START_TEST(unwatched_failures_add_up_behind_the_first)
{
    struct kp_producer *p = kp__alloc_aligned(128, sizeof(*p));

    kp__mutex_init(&p->unwatched_lock);
    kp__producer_note_unwatched(p, KP_ETIMEDOUT, 3);
    kp__producer_note_unwatched(p, KP_INVALID_RECORD, 4);
    ck_assert_uint_eq(p->unwatched_count, 7);
    ck_assert_int_eq(p->unwatched_first, KP_ETIMEDOUT);
    kp__mutex_fini(&p->unwatched_lock);
    kp__free(p);
}
END_TEST

static Suite *shared_small_suite(void)
{
    Suite *s = suite_create("shared_small");
    TCase *t = tcase_create("ops");

    tcase_add_test(t, ops_are_taken_oldest_first);
    tcase_add_test(t, an_op_copies_its_name_and_is_answered_once);
    tcase_add_test(t, an_abandoned_op_is_freed_by_its_answer);
    tcase_add_test(t, ops_that_nobody_serves_are_answered_at_the_end);
    tcase_add_test(t, no_op_without_memory);
    tcase_add_test(t, each_posters_ops_arrive_in_its_order);
    suite_add_tcase(s, t);

    t = tcase_create("status");
    tcase_add_test(t, status_names_the_nearest_trouble);
    tcase_add_test(t, the_first_fatal_error_stays);
    tcase_add_test(t, a_long_text_is_cut);
    tcase_add_test(t, no_memory_to_explain_a_topic);
    suite_add_tcase(s, t);

    t = tcase_create("bell");
    tcase_add_test(t, only_a_sleeper_that_would_be_late_is_woken);
    tcase_add_test(t, unwatched_failures_add_up_behind_the_first);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(shared_small_suite)
