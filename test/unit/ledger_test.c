/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger_test.c - sequences, what may be stamped, settled and bumped.
 * Ids such as T7 are explained in test/README.md. */
#include "io_thread/ledger.h"
#include "lib/shared/batch.h"
#include "test/support/main.h"

#define LIMIT 5

static struct batch batches[LEDGER_MAX + 1];

/* A ledger with an id, proven or not. */
static struct ledger begin(bool proven)
{
    struct ledger l;

    kp__ledger_init(&l);
    kp__ledger_adopt(&l, 77, 0);
    l.proven = proven;
    return l;
}

static struct ledger_entry *stamp(struct ledger *l, int i, int32_t count)
{
    (void)kp__ledger_stamp(l, &batches[i], count);
    return kp__ledger_find(l, &batches[i]);
}

/* The batch of e comes back for another try. */
static void came_back(struct ledger_entry *e, enum certainty c)
{
    e->on_wire = false;
    e->certainty = c;
}

static void reported(struct ledger_entry *e, enum certainty c)
{
    came_back(e, c);
    e->batch = NULL;
}

START_TEST(sequences_wrap_to_zero)
{
    ck_assert_int_eq(kp__sequence_add(INT32_MAX, 1), 0);
    ck_assert_int_eq(kp__sequence_add(INT32_MAX, 100), 99);
    ck_assert_int_eq(kp__sequence_add(0, INT32_MAX), INT32_MAX);
}
END_TEST

START_TEST(numbers_follow_each_other)
{
    struct ledger l = begin(true);

    ck_assert_int_eq(kp__ledger_stamp(&l, &batches[0], 10), 0);
    ck_assert_int_eq(kp__ledger_stamp(&l, &batches[1], 1), 10);
    ck_assert_int_eq(kp__ledger_stamp(&l, &batches[2], 5), 11);
    ck_assert_int_eq(l.next_sequence, 16);
    ck_assert_uint_eq(l.count, 3);
}
END_TEST

START_TEST(numbers_wrap_between_batches)
{
    struct ledger l = begin(true);

    l.next_sequence = INT32_MAX - 4;
    ck_assert_int_eq(kp__ledger_stamp(&l, &batches[0], 10), INT32_MAX - 4);
    ck_assert_int_eq(kp__ledger_stamp(&l, &batches[1], 1), 5);
}
END_TEST

START_TEST(no_id_no_stamp)
{
    struct ledger l;

    kp__ledger_init(&l);
    ck_assert(!kp__ledger_can_stamp(&l, LIMIT));
}
END_TEST

START_TEST(one_until_proven)
{
    struct ledger l = begin(false);

    ck_assert(kp__ledger_can_stamp(&l, LIMIT));
    stamp(&l, 0, 1);
    ck_assert(!kp__ledger_can_stamp(&l, LIMIT));
    l.proven = true;
    ck_assert(kp__ledger_can_stamp(&l, LIMIT));
}
END_TEST

START_TEST(five_at_most)
{
    struct ledger l = begin(true);

    for (int i = 0; i < 5; i++) {
        ck_assert(kp__ledger_can_stamp(&l, LIMIT));
        stamp(&l, i, 1);
    }
    ck_assert(!kp__ledger_can_stamp(&l, LIMIT));
    kp__ledger_remove(&l, kp__ledger_find(&l, &batches[2]));
    ck_assert(kp__ledger_can_stamp(&l, LIMIT));
    ck_assert_ptr_eq(l.entries[2].batch, &batches[3]);
}
END_TEST

START_TEST(nothing_new_behind_a_gone_batch)
{
    struct ledger l = begin(true);

    reported(stamp(&l, 0, 3), CERTAIN_MAYBE);
    ck_assert(!kp__ledger_can_stamp(&l, LIMIT));
}
END_TEST

START_TEST(gone_maybe_alone_calls_for_a_bump)
{
    struct ledger l = begin(true);

    reported(stamp(&l, 0, 3), CERTAIN_MAYBE);
    kp__ledger_settle(&l);
    ck_assert(l.bump);
    ck_assert(kp__ledger_can_bump(&l));
    ck_assert(kp__ledger_bump(&l));
    ck_assert_int_eq(l.epoch, 1);
    ck_assert_int_eq(l.next_sequence, 0);
    ck_assert_uint_eq(l.count, 0);
    ck_assert(!l.proven);
    ck_assert(kp__ledger_can_stamp(&l, LIMIT));
}
END_TEST

START_TEST(gone_on_the_wire_waits_for_its_answer)
{
    struct ledger l = begin(true);
    struct ledger_entry *e = stamp(&l, 0, 3);

    e->batch = NULL;
    e->certainty = CERTAIN_MAYBE;
    kp__ledger_settle(&l);
    ck_assert(!l.bump);
    l.bump = true;
    ck_assert(!kp__ledger_can_bump(&l));
}
END_TEST

START_TEST(maybe_behind_a_gone_maybe_goes_on_first)
{
    struct ledger l = begin(true);

    stamp(&l, 0, 3);
    stamp(&l, 1, 3);
    reported(&l.entries[0], CERTAIN_MAYBE);
    came_back(&l.entries[1], CERTAIN_MAYBE);
    kp__ledger_settle(&l);
    /* Its acknowledgement would prove the first one stored. */
    ck_assert(!l.bump);
    ck_assert(kp__ledger_is_head(&l, &l.entries[1]));
}
END_TEST

START_TEST(everything_behind_a_proven_no_is_renumbered)
{
    struct ledger l = begin(true);

    stamp(&l, 0, 3);
    stamp(&l, 1, 3);
    reported(&l.entries[0], CERTAIN_NO);
    came_back(&l.entries[1], CERTAIN_MAYBE);
    kp__ledger_settle(&l);
    ck_assert(l.bump);
    ck_assert(kp__ledger_can_bump(&l));
}
END_TEST

START_TEST(maybe_before_the_no_keeps_its_numbers)
{
    struct ledger l = begin(true);

    stamp(&l, 0, 3);
    stamp(&l, 1, 3);
    came_back(&l.entries[0], CERTAIN_MAYBE);
    came_back(&l.entries[1], CERTAIN_NO);
    l.bump = true;
    ck_assert(!kp__ledger_can_bump(&l));
    kp__ledger_remove(&l, &l.entries[0]);
    ck_assert(kp__ledger_can_bump(&l));
}
END_TEST

START_TEST(head_is_what_nothing_stands_before)
{
    struct ledger l = begin(true);

    stamp(&l, 0, 1);
    stamp(&l, 1, 1);
    ck_assert(kp__ledger_is_head(&l, &l.entries[0]));
    ck_assert(!kp__ledger_is_head(&l, &l.entries[1]));
    came_back(&l.entries[0], CERTAIN_NO);
    ck_assert(!kp__ledger_is_head(&l, &l.entries[1]));
}
END_TEST

START_TEST(split_keeps_each_records_number)
{
    struct ledger l = begin(true);
    struct ledger_entry *e;

    stamp(&l, 0, 4);
    stamp(&l, 1, 10);
    stamp(&l, 2, 6);
    e = kp__ledger_find(&l, &batches[1]);
    ck_assert(kp__ledger_split(&l, e, &batches[3], 7, &batches[4]));
    ck_assert_uint_eq(l.count, 4);
    ck_assert_ptr_eq(l.entries[1].batch, &batches[3]);
    ck_assert_int_eq(l.entries[1].first, 4);
    ck_assert_int_eq(l.entries[1].count, 7);
    ck_assert_ptr_eq(l.entries[2].batch, &batches[4]);
    ck_assert_int_eq(l.entries[2].first, 11);
    ck_assert_int_eq(l.entries[2].count, 3);
    ck_assert(!l.entries[2].on_wire);
    ck_assert_ptr_eq(l.entries[3].batch, &batches[2]);
    ck_assert_int_eq(l.entries[3].first, 14);
}
END_TEST

START_TEST(split_says_when_there_is_no_room)
{
    struct ledger l = begin(true);

    for (int i = 0; i < LEDGER_MAX; i++)
        stamp(&l, i, 2);
    ck_assert(!kp__ledger_split(&l, &l.entries[0], &batches[0], 1,
                                &batches[LEDGER_MAX]));
    ck_assert_uint_eq(l.count, LEDGER_MAX);
    ck_assert_int_eq(l.entries[0].count, 2);
}
END_TEST

START_TEST(last_epoch_needs_a_new_id)
{
    struct ledger l = begin(true);

    l.epoch = INT16_MAX - 1;
    reported(stamp(&l, 0, 1), CERTAIN_NO);
    kp__ledger_settle(&l);
    ck_assert(kp__ledger_bump(&l));
    ck_assert_int_eq(l.epoch, INT16_MAX);
    reported(stamp(&l, 1, 1), CERTAIN_NO);
    kp__ledger_settle(&l);
    ck_assert(!kp__ledger_bump(&l));
    ck_assert(l.new_id);
    ck_assert(!kp__ledger_can_stamp(&l, LIMIT));
    kp__ledger_adopt(&l, 78, 0);
    ck_assert(kp__ledger_can_stamp(&l, LIMIT));
    ck_assert_int_eq(l.epoch, 0);
}
END_TEST

START_TEST(found_by_first_number_when_the_batch_is_gone)
{
    struct ledger l = begin(true);

    stamp(&l, 0, 4);
    stamp(&l, 1, 4);
    l.entries[1].batch = NULL;
    ck_assert_ptr_eq(kp__ledger_find_first(&l, 4), &l.entries[1]);
    ck_assert_ptr_null(kp__ledger_find_first(&l, 5));
}
END_TEST

static Suite *ledger_suite(void)
{
    Suite *s = suite_create("ledger");
    TCase *t = tcase_create("ledger");

    tcase_add_test(t, sequences_wrap_to_zero);
    tcase_add_test(t, numbers_follow_each_other);
    tcase_add_test(t, numbers_wrap_between_batches);
    tcase_add_test(t, no_id_no_stamp);
    tcase_add_test(t, one_until_proven);
    tcase_add_test(t, five_at_most);
    tcase_add_test(t, nothing_new_behind_a_gone_batch);
    tcase_add_test(t, gone_maybe_alone_calls_for_a_bump);
    tcase_add_test(t, gone_on_the_wire_waits_for_its_answer);
    tcase_add_test(t, maybe_behind_a_gone_maybe_goes_on_first);
    tcase_add_test(t, everything_behind_a_proven_no_is_renumbered);
    tcase_add_test(t, maybe_before_the_no_keeps_its_numbers);
    tcase_add_test(t, head_is_what_nothing_stands_before);
    tcase_add_test(t, split_keeps_each_records_number);
    tcase_add_test(t, split_says_when_there_is_no_room);
    tcase_add_test(t, last_epoch_needs_a_new_id);
    tcase_add_test(t, found_by_first_number_when_the_batch_is_gone);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(ledger_suite)
