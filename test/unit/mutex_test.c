/* SPDX-License-Identifier: BSD-2-Clause */
/* mutex_test.c - exclusion between threads, and the rule of one lock. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "lib/base/mutex.h"
#include "test/support/aborts.h"
#include "test/support/main.h"

static struct mutex mutex, other;

static void set_up(void)
{
    kp__mutex_init(&mutex);
    kp__mutex_init(&other);
}

static void tear_down(void)
{
    kp__mutex_fini(&mutex);
    kp__mutex_fini(&other);
}

enum { THREADS = 4, ROUNDS = 20000 };
static long counter; /* guarded by mutex */

static void *count(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        kp__mutex_lock(&mutex);
        counter++;
        kp__mutex_unlock(&mutex);
    }
    return NULL;
}

static void *count_by_trying(void *arg)
{
    (void)arg;
    for (int done = 0; done < ROUNDS;) {
        if (!kp__mutex_trylock(&mutex)) {
            (void)sched_yield();
            continue;
        }
        counter++;
        done++;
        kp__mutex_unlock(&mutex);
    }
    return NULL;
}

static void *count_patiently(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        kp__mutex_lock_patiently(&mutex);
        counter++;
        kp__mutex_unlock(&mutex);
    }
    return NULL;
}

/* The lock is held until patience is over, and somebody sleeps. */
START_TEST(who_is_patient_gets_the_lock_in_the_end)
{
    pthread_t threads[THREADS];

    counter = 0;
    kp__mutex_lock(&mutex);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL,
                                        count_patiently, NULL),
                         0);
    while (atomic_load(&mutex.state) != MUTEX_WANTED)
        (void)sched_yield();
    ck_assert_int_eq(counter, 0);
    kp__mutex_unlock(&mutex);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(counter, THREADS * ROUNDS);
}
END_TEST

START_TEST(one_thread_at_a_time)
{
    pthread_t threads[THREADS];

    counter = 0;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL,
                                        i % 2 ? count : count_by_trying,
                                        NULL),
                         0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(counter, THREADS * ROUNDS);
}
END_TEST

static void *try_it(void *arg)
{
    *(int *)arg = kp__mutex_trylock(&mutex);
    if (*(int *)arg)
        kp__mutex_unlock(&mutex);
    return NULL;
}

static int taken_by_another_thread(void)
{
    pthread_t thread;
    int taken = -1;

    ck_assert_int_eq(pthread_create(&thread, NULL, try_it, &taken), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return taken;
}

START_TEST(trylock_says_whether)
{
    ck_assert_int_eq(taken_by_another_thread(), 1);
    kp__mutex_lock(&mutex);
    ck_assert_int_eq(taken_by_another_thread(), 0);
    kp__mutex_unlock(&mutex);
    ck_assert_int_eq(taken_by_another_thread(), 1);
}
END_TEST

#ifdef KP_DEBUG
static void lock_two(void *arg)
{
    (void)arg;
    kp__mutex_lock(&mutex);
    kp__mutex_lock(&other);
}

static void try_second(void *arg)
{
    (void)arg;
    kp__mutex_lock(&mutex);
    (void)kp__mutex_trylock(&other);
}

static void unlock_another(void *arg)
{
    (void)arg;
    kp__mutex_lock(&mutex);
    kp__mutex_unlock(&other);
}

static void claim_to_hold(void *arg)
{
    (void)arg;
    kp__mutex_check_held(&mutex);
}

static void one_after_the_other(void *arg)
{
    (void)arg;
    kp__mutex_lock(&mutex);
    kp__mutex_check_held(&mutex);
    kp__mutex_unlock(&mutex);
    kp__mutex_check_none();
    kp__mutex_lock(&other);
    kp__mutex_unlock(&other);
}

START_TEST(a_second_lock_aborts)
{
    ck_assert(test_aborts(lock_two, NULL));
    ck_assert(test_aborts(try_second, NULL));
}
END_TEST

START_TEST(unlocking_what_is_not_held_aborts)
{
    ck_assert(test_aborts(unlock_another, NULL));
    ck_assert(test_aborts(claim_to_hold, NULL));
}
END_TEST

START_TEST(one_after_the_other_is_allowed)
{
    ck_assert(!test_aborts(one_after_the_other, NULL));
}
END_TEST
#endif

static Suite *mutex_suite(void)
{
    Suite *s = suite_create("mutex");
    TCase *c = tcase_create("mutex");

    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, one_thread_at_a_time);
    tcase_add_test(c, who_is_patient_gets_the_lock_in_the_end);
    tcase_add_test(c, trylock_says_whether);
#ifdef KP_DEBUG
    tcase_add_test(c, a_second_lock_aborts);
    tcase_add_test(c, unlocking_what_is_not_held_aborts);
    tcase_add_test(c, one_after_the_other_is_allowed);
#endif
    suite_add_tcase(s, c);
    return s;
}

KP_TEST_MAIN(mutex_suite)
