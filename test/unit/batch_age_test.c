/* SPDX-License-Identifier: BSD-2-Clause */
/* A batch takes records for a quarter of delivery.timeout.ms, and lingers for
 * linger.ms, by the monotonic clock: whatever the wall clock does meanwhile. */
#include "include/kp/errors.h"
#include "test/support/main.h"
#include "test/support/world.h"

#define MS KP_NS_PER_MS
#define HOUR_MS INT64_C(3600000)

static const int64_t jumps_ms[] = {0, HOUR_MS, -HOUR_MS, 2000, -2000};
#define JUMPS (int)(sizeof(jumps_ms) / sizeof(jumps_ms[0]))

/* Every other loop with a codec. */
static struct world *begin(int i, const char *linger_ms)
{
    return world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS("linger.ms", linger_ms,
                                   "delivery.timeout.ms", "120000",
                                   "compression.type",
                                   i % 2 == 0 ? "none" : "lz4")});
}

/* Records of the nth batch that reached the broker. */
static int32_t count_of(const struct world *w, size_t n)
{
    ck_assert_uint_lt(n, world_attempts(w));
    return world_attempt(w, n)->header.record_count;
}

START_TEST(a_batch_takes_records_for_a_quarter)
{
    struct world *w = begin(_i, "60000");
    int64_t jump_ms = jumps_ms[_i / 2];
    struct world_record *first = world_send(w, 0), *late;

    world_run_ms(w, 1000);
    world_jump_wall_ms(w, jump_ms);
    (void)world_send(w, 0);
    world_run_ms(w, 28500);
    world_jump_wall_ms(w, -2 * jump_ms);
    (void)world_send(w, 0); /* after 29.5 s: in time */
    ck_assert_uint_eq(world_attempts(w), 0);
    world_run_ms(w, 600);
    late = world_send(w, 0);
    world_run_ms(w, 100);
    /* the first batch is closed, and gone at once as there is one behind it */
    ck_assert(first->reported);
    ck_assert(!late->reported);
    ck_assert_uint_eq(world_attempts(w), 1);
    ck_assert_int_eq(count_of(w, 0), 3);
    world_settle(w);
    ck_assert_int_eq(count_of(w, 1), 1);
    ck_assert_int_ge(late->reported_ns - late->called_ns, 60000 * MS);
    ck_assert_int_lt(late->reported_ns - late->called_ns, 60100 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* Without a record that finds it closed a batch lingers to its end. */
START_TEST(linger_is_kept)
{
    struct world *w = begin(_i, "50000");
    struct world_record *r = world_send(w, 0);

    world_run_ms(w, 10000);
    world_jump_wall_ms(w, jumps_ms[_i / 2]);
    (void)world_send(w, 0);
    world_run_ms(w, 39900);
    ck_assert_uint_eq(world_attempts(w), 0);
    world_settle(w);
    ck_assert_uint_eq(world_attempts(w), 1);
    ck_assert_int_eq(count_of(w, 0), 2);
    ck_assert_int_lt(r->reported_ns - r->called_ns, 50100 * MS);
    world_check(w);
    world_end(w);
}
END_TEST

/* Behind batches that cannot go, where no linger ends: who comes late has three
 * quarters of the time for itself. */
START_TEST(late_records_have_their_time)
{
    struct world *w = begin(_i, "0");
    struct world_record *r[40];

    kb_node_stop(world_cluster(w), 1, false, world_now_ns(w));
    world_run_ms(w, 100);
    for (int i = 0; i < 40; i++) {
        if (i == 10)
            world_jump_wall_ms(w, jumps_ms[_i / 2]);
        r[i] = world_send(w, 0);
        world_run_ms(w, 2000);
    }
    world_settle(w);
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(r[i]->report.err, KP_ETIMEDOUT);
        ck_assert_int_le(r[i]->reported_ns - r[i]->returned_ns, 120000 * MS);
        ck_assert_int_ge(r[i]->reported_ns - r[i]->returned_ns, 90000 * MS);
    }
    world_check(w);
    world_end(w);
}
END_TEST

static Suite *batch_age_suite(void)
{
    Suite *s = suite_create("batch_age");
    TCase *t = tcase_create("batch_age");

    tcase_add_loop_test(t, a_batch_takes_records_for_a_quarter, 0, 2 * JUMPS);
    tcase_add_loop_test(t, linger_is_kept, 0, 2 * JUMPS);
    tcase_add_loop_test(t, late_records_have_their_time, 0, 2 * JUMPS);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(batch_age_suite)
