/* SPDX-License-Identifier: BSD-2-Clause */
/* backlog_test.c - the brake: when it is on, whom it holds up, for how long,
 * and when it lets go.  Under a clock that is set by hand. */
#include "lib/shared/backlog.h"
#include "test/support/fake_clock.h"
#include "test/support/main.h"

#define BATCH ((size_t)1 << 20)
#define LONG (3 * BATCH) /* longer than is waited for */
#define MS KP_NS_PER_MS

static struct fake_clock fake;
static struct clock fake_at;
static struct backlog backlog;
static struct brake brake;
static struct ticket ticket;

static void set_up(void)
{
    fake = (struct fake_clock){.mono_ns = KP_NS_PER_SEC};
    fake_at = fake_clock(&fake);
    kp__backlog_init(&backlog, &fake_at, BATCH);
}

static bool begins(void)
{
    return kp__brake_begin(&backlog, &brake, &ticket);
}

static void end_after(int64_t ns)
{
    fake.mono_ns += ns;
    ck_assert_int_eq(kp__brake_end(&backlog, &brake), ns);
}

static bool would_sleep(void)
{
    return ticket.word != NULL && atomic_load(ticket.word) == ticket.seen;
}

static void take(size_t bytes)
{
    kp__backlog_sub(&backlog, bytes);
    kp__backlog_wake(&backlog);
}

/* A burst that buffer.memory takes is taken at full speed. */
START_TEST(it_is_off_until_memory_is_waited_for)
{
    kp__backlog_add(&backlog, 60 * BATCH);
    ck_assert(!begins());
    kp__backlog_pressed(&backlog);
    ck_assert(begins());
    ck_assert(would_sleep());
    ck_assert_int_eq(ticket.deadline_ns, fake.mono_ns + BRAKE_NS);
    end_after(1);
}
END_TEST

START_TEST(a_short_backlog_holds_up_nobody)
{
    kp__backlog_pressed(&backlog);
    ck_assert(!begins());
    kp__backlog_add(&backlog, 2 * BATCH);
    ck_assert(!begins());
    kp__backlog_add(&backlog, 1);
    ck_assert(begins());
    end_after(1);
}
END_TEST

START_TEST(it_goes_off_when_nobody_has_waited_for_a_second)
{
    kp__backlog_add(&backlog, LONG);
    kp__backlog_pressed(&backlog);
    fake.mono_ns += KP_NS_PER_SEC - 1;
    ck_assert(begins()); /* and this renews it */
    kp__backlog_sub(&backlog, BATCH);
    kp__backlog_add(&backlog, BATCH);
    end_after(MS);
    fake.mono_ns += KP_NS_PER_SEC / 2;
    ck_assert(begins());
    kp__backlog_sub(&backlog, BATCH);
    kp__backlog_add(&backlog, BATCH);
    end_after(MS);
    fake.mono_ns += KP_NS_PER_SEC;
    ck_assert(!begins());
}
END_TEST

/* One sender for each halving: none but the first if that is enough. */
START_TEST(who_waits_is_woken_when_it_has_shrunk)
{
    uint32_t word;

    kp__backlog_add(&backlog, LONG);
    kp__backlog_pressed(&backlog);
    ck_assert(begins());
    take(BATCH);
    ck_assert(would_sleep());
    take(BATCH);
    ck_assert(!would_sleep());
    word = atomic_load(&backlog.word);
    take(BATCH / 4);
    ck_assert_uint_eq(atomic_load(&backlog.word), word);
    take(BATCH / 4);
    ck_assert_uint_ne(atomic_load(&backlog.word), word);
    end_after(MS);
    word = atomic_load(&backlog.word);
    take(BATCH / 2);
    ck_assert_uint_eq(atomic_load(&backlog.word), word); /* nobody waits */
}
END_TEST

/* What shrank it was before the sender had counted itself. */
START_TEST(a_wait_that_comes_late_does_not_sleep)
{
    kp__backlog_add(&backlog, LONG);
    kp__backlog_pressed(&backlog);
    ck_assert(begins());
    take(LONG - BATCH / 2);
    ck_assert(!would_sleep());
    end_after(1);
}
END_TEST

/* A wire that takes less than half the limit in BRAKE_NS is not braked for, and
 * asked again less and less often. */
START_TEST(a_slow_wire_turns_it_off)
{
    int64_t off_ns = 100 * MS;

    kp__backlog_add(&backlog, LONG);
    for (int i = 0; i < 10; i++) {
        int64_t until_ns = fake.mono_ns + BRAKE_NS + off_ns;

        kp__backlog_pressed(&backlog);
        ck_assert(begins());
        end_after(BRAKE_NS);
        fake.mono_ns = until_ns - 1;
        kp__backlog_pressed(&backlog);
        ck_assert(!begins());
        fake.mono_ns = until_ns;
        off_ns = off_ns < KP_NS_PER_SEC * 5 ? off_ns * 2 : KP_NS_PER_SEC * 10;
    }
}
END_TEST

/* Several who waited in vain at once are one finding. */
START_TEST(a_finding_counts_once)
{
    struct brake other;

    kp__backlog_add(&backlog, LONG);
    kp__backlog_pressed(&backlog);
    ck_assert(begins());
    ck_assert(kp__brake_begin(&backlog, &other, &ticket));
    fake.mono_ns += BRAKE_NS;
    (void)kp__brake_end(&backlog, &brake);
    (void)kp__brake_end(&backlog, &other);
    fake.mono_ns += 100 * MS;
    ck_assert(begins());
    end_after(1);
}
END_TEST

START_TEST(a_wire_that_is_quick_again_is_forgiven)
{
    kp__backlog_add(&backlog, LONG);
    for (int i = 0; i < 6; i++) {
        kp__backlog_pressed(&backlog);
        ck_assert(begins());
        end_after(BRAKE_NS);
        fake.mono_ns += 10 * KP_NS_PER_SEC;
    }
    kp__backlog_pressed(&backlog);
    ck_assert(begins());
    take(BATCH);
    kp__backlog_add(&backlog, BATCH);
    end_after(BRAKE_NS); /* late, but the wire has done its part */
    ck_assert(begins());
    end_after(BRAKE_NS);
    fake.mono_ns += 100 * MS;
    ck_assert(begins());
    end_after(1);
}
END_TEST

static Suite *backlog_suite(void)
{
    Suite *s = suite_create("backlog");
    TCase *t = tcase_create("brake");

    tcase_add_checked_fixture(t, set_up, NULL);
    tcase_add_test(t, it_is_off_until_memory_is_waited_for);
    tcase_add_test(t, a_short_backlog_holds_up_nobody);
    tcase_add_test(t, it_goes_off_when_nobody_has_waited_for_a_second);
    tcase_add_test(t, who_waits_is_woken_when_it_has_shrunk);
    tcase_add_test(t, a_wait_that_comes_late_does_not_sleep);
    tcase_add_test(t, a_slow_wire_turns_it_off);
    tcase_add_test(t, a_finding_counts_once);
    tcase_add_test(t, a_wire_that_is_quick_again_is_forgiven);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(backlog_suite)
