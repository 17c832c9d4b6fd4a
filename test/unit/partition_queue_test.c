/* SPDX-License-Identifier: BSD-2-Clause */
/* partition_queue_test.c - places and fates: what the I/O thread does to the
 * batches of a partition, and what a batch is at its end. */
#include <pthread.h>

#include "test/support/aborts.h"
#include "test/support/main.h"
#include "test/unit/accumulator_fixture.h"

static struct partition_queue *q;

static void set_up(void)
{
    fixture_defaults();
    f.settings.batch_size = 2000;
    fixture_start(2);
    q = fixture_queue(0);
}

static void tear_down(void)
{
    fixture_stop();
}

/* n batches, all but the last one READY, one record each. */
static void make_batches(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ck_assert_int_eq(append_bytes(i, 1500, 0), KP_OK);
    ck_assert_uint_eq(look_at(q).batch_count, n);
}

static struct batch *take(void)
{
    struct batch *b = drain_head(q);

    ck_assert_ptr_nonnull(b);
    ck_assert_int_eq(b->place, PLACE_IN_FLIGHT);
    return b;
}

/* -- Places -- */

struct move {
    enum batch_place from, to;
};

static void make_move(void *arg)
{
    const struct move *m = arg;
    struct batch b = {.place = m->from};

    kp__batch_move(&b, m->to);
}

START_TEST(only_legal_moves_are_made)
{
    static const char *const names[] = {
        [PLACE_OPEN] = "open",
        [PLACE_SEALED] = "sealed",
        [PLACE_COMPRESSING] = "compressing",
        [PLACE_READY] = "ready",
        [PLACE_IN_FLIGHT] = "in flight",
        [PLACE_GONE] = "gone",
    };
    static const char legal[6][7] = {
        /* to: O S C R I G */
        [PLACE_OPEN] = "-x---x",        [PLACE_SEALED] = "--x--x",
        [PLACE_COMPRESSING] = "-x-x-x", [PLACE_READY] = "----xx",
        [PLACE_IN_FLIGHT] = "---x-x",   [PLACE_GONE] = "------",
    };

    for (int from = PLACE_OPEN; from <= PLACE_GONE; from++)
        for (int to = PLACE_OPEN; to <= PLACE_GONE; to++) {
            struct move m = {(enum batch_place)from, (enum batch_place)to};

            ck_assert_msg(
                test_aborts(make_move, &m) == (legal[from][to] != 'x'),
                "%s -> %s", names[from], names[to]);
        }
}
END_TEST

/* A8: the open head is sealed when it is wanted, not before. */
START_TEST(a_head_goes_from_open_to_in_flight)
{
    struct batch *b = NULL;

    ck_assert_int_eq(kp__queue_take(q, true, &b), QUEUE_EMPTY);
    ck_assert_int_eq(kp__queue_claim(q, true, &b), QUEUE_EMPTY);
    ck_assert_int_eq(kp__queue_seal(q, true, false), QUEUE_NOT_READY);
    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    ck_assert_int_eq(kp__queue_take(q, true, &b), QUEUE_NOT_READY);
    ck_assert_int_eq(kp__queue_claim(q, true, &b), QUEUE_NOT_READY);
    ck_assert_int_eq(kp__queue_seal(q, true, false), QUEUE_OK);
    ck_assert_int_eq(look_at(q).head_place, PLACE_SEALED);
    ck_assert(look_at(q).head_full);
    ck_assert_int_eq(kp__queue_take(q, true, &b), QUEUE_NOT_READY);
    ck_assert_int_eq(kp__queue_claim(q, true, &b), QUEUE_OK);
    ck_assert_int_eq(look_at(q).head_place, PLACE_COMPRESSING);
    kp__compress_and_finish(&f.acc, b, kp__compressors_own(&f.compressors));
    ck_assert_int_eq(look_at(q).head_place, PLACE_READY);
    ck_assert_uint_eq(look_at(q).head_wire_size, b->raw_size);
    ck_assert_int_eq(kp__queue_take(q, true, &b), QUEUE_OK);
    ck_assert_int_eq(b->place, PLACE_IN_FLIGHT);
    ck_assert_int_eq(kp__queue_take(q, true, &b), QUEUE_EMPTY);
    fixture_complete(b, KP_OK);
}
END_TEST

/* P8: a sealed batch takes no more, however much room it has. */
START_TEST(a_sealed_batch_takes_no_more)
{
    struct batch *b;

    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    ck_assert_int_eq(kp__queue_seal(q, true, false), QUEUE_OK);
    ck_assert_int_eq(append_bytes(1, 10, 0), KP_OK);
    ck_assert_uint_eq(look_at(q).batch_count, 2);
    for (int i = 0; i < 2; i++) {
        b = take();
        ck_assert_uint_eq(b->record_count, 1);
        fixture_complete(b, KP_OK);
    }
}
END_TEST

START_TEST(a_busy_queue_is_not_waited_for)
{
    struct queue_view v;
    struct batch *b;

    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    kp__mutex_take(&q->lock);
    ck_assert_int_eq(kp__queue_look(q, false, &v), QUEUE_BUSY);
    ck_assert_int_eq(kp__queue_seal(q, false, false), QUEUE_BUSY);
    ck_assert_int_eq(kp__queue_claim(q, false, &b), QUEUE_BUSY);
    ck_assert_int_eq(kp__queue_take(q, false, &b), QUEUE_BUSY);
    kp__mutex_drop(&q->lock);
    ck_assert_int_eq(kp__queue_look(q, false, &v), QUEUE_OK);
}
END_TEST

START_TEST(only_the_head_is_sealed_unless_all_is_wanted)
{
    make_batches(2);
    ck_assert_int_eq(kp__queue_seal(q, true, false), QUEUE_NOT_READY);
    ck_assert(!look_at(q).expedite);
    ck_assert_int_eq(kp__queue_seal(q, true, true), QUEUE_OK);
    ck_assert(look_at(q).expedite);
    fixture_complete(take(), KP_OK);
    ck_assert_int_eq(look_at(q).head_place, PLACE_SEALED);
    /* A batch that is opened later lingers again. */
    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    ck_assert(!look_at(q).expedite);
}
END_TEST

static void note_ordinal(void *arg, struct batch *b)
{
    uint64_t *next = arg;

    ck_assert_uint_eq(b->ordinal, *next);
    (*next)++;
}

/* A20: after a visit nothing is open, and all of it was seen in order. */
START_TEST(a_visit_seals_and_sees_everything)
{
    uint64_t next = 0;

    make_batches(4);
    kp__queue_visit(q, false, note_ordinal, &next);
    ck_assert_uint_eq(next, 4);
    ck_assert_ptr_nonnull(q->open);
    next = 0;
    kp__queue_visit(q, true, note_ordinal, &next);
    ck_assert_uint_eq(next, 4);
    ck_assert_ptr_null(q->open);
    for (int i = 0; i < 4; i++)
        fixture_complete(take(), KP_OK);
}
END_TEST

/* -- Order -- */

START_TEST(retries_go_back_by_ordinal)
{
    struct batch *b[3];

    make_batches(5);
    for (int i = 0; i < 3; i++)
        b[i] = take();
    b[1]->attempts = b[2]->attempts = 1;
    b[1]->base_sequence = 7;
    kp__queue_put_back(q, b[2]);
    kp__queue_put_back(q, b[1]);
    ck_assert(look_at(q).retry);
    ck_assert(look_at(q).stamped);
    ck_assert_uint_eq(look_at(q).batch_count, 4);
    kp__queue_put_back(q, b[0]);
    ck_assert(!look_at(q).retry);
    ck_assert(!look_at(q).stamped);
    for (uint64_t i = 0; i < 5; i++) {
        struct batch *next = take();

        ck_assert_uint_eq(next->ordinal, i);
        fixture_complete(next, KP_OK);
    }
}
END_TEST

/* Children of a split keep the parent's ordinal, and their order in it. */
START_TEST(children_stand_where_their_parent_stood)
{
    struct batch *parent, *left, *right, *b;

    make_batches(2);
    parent = take();
    left = kp__pool_split_batch(f.pool);
    right = kp__pool_split_batch(f.pool);
    left->queue = right->queue = q;
    left->place = right->place = PLACE_IN_FLIGHT;
    left->ordinal = right->ordinal = parent->ordinal;
    left->deadline_ns = right->deadline_ns = parent->deadline_ns;
    right->first_index = 1;
    atomic_store(&left->refs, 1);
    atomic_store(&right->refs, 1);
    kp__node_init(&left->link);
    kp__node_init(&right->link);
    kp__queue_put_back(q, right);
    kp__queue_put_back(q, left);
    ck_assert_int_eq(kp__queue_take(q, true, &b), QUEUE_OK);
    ck_assert_ptr_eq(b, left);
    ck_assert_int_eq(kp__queue_take(q, true, &b), QUEUE_OK);
    ck_assert_ptr_eq(b, right);
    kp__batch_unref(left);
    kp__batch_unref(right);
    fixture_complete(parent, KP_OK);
}
END_TEST

/* -- Fates -- */

static uint32_t expire(int64_t deadline_ns, struct list *out)
{
    uint32_t n = 0;

    kp__list_init(out);
    kp__queue_expire(q, deadline_ns, out);
    for (struct list_node *i = kp__list_first(out); i != NULL;
         i = kp__list_next(out, i))
        n++;
    return n;
}

static void fail_all(struct list *out)
{
    struct list_node *n;

    while ((n = kp__list_pop_front(out)) != NULL)
        fixture_complete(KP_CONTAINER(n, struct batch, link), KP_ETIMEDOUT);
}

/* A24, A26, P6: exactly at the deadline, the open one too, and only once. */
START_TEST(batches_expire_at_their_deadline)
{
    int64_t deadline_ns = START_NS + f.settings.delivery_timeout_ns;
    struct list out;

    make_batches(2);
    ck_assert_uint_eq(expire(deadline_ns - 1, &out), 0);
    ck_assert_uint_eq(expire(deadline_ns, &out), 2);
    ck_assert_uint_eq(
        KP_CONTAINER(kp__list_first(&out), struct batch, link)->ordinal, 0);
    ck_assert_ptr_null(q->open);
    fail_all(&out);
    ck_assert_uint_eq(expire(KP_NEVER, &out), 0);
    ck_assert_uint_eq(fixture_available(), f.settings.buffer_memory);
    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
}
END_TEST

/* Who read the clock first may get the queue's lock last: deadlines follow the
 * order of the batches all the same. */
START_TEST(deadlines_are_in_the_order_of_batches)
{
    int64_t first_ns = START_NS + KP_NS_PER_MS;
    int64_t timeout_ns = f.settings.delivery_timeout_ns;
    struct list out;

    f.fake.mono_ns = first_ns;
    make_batches(1);
    f.fake.mono_ns = START_NS;
    ck_assert_int_eq(append_bytes(1, 1500, 0), KP_OK);
    ck_assert_uint_eq(look_at(q).batch_count, 2);
    ck_assert_int_eq(look_at(q).open_created_ns, first_ns);
    ck_assert_uint_eq(expire(first_ns + timeout_ns - 1, &out), 0);
    ck_assert_uint_eq(expire(first_ns + timeout_ns, &out), 2);
    fail_all(&out);
}
END_TEST

/* A25. */
START_TEST(an_endless_delivery_timeout_does_not_overflow)
{
    struct list out;

    f.acc.delivery_timeout_ns = INT64_MAX - 5;
    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    ck_assert_int_eq(look_at(q).head_deadline_ns, KP_NEVER);
    ck_assert_uint_eq(expire(KP_NEVER - 1, &out), 0);
}
END_TEST

/* A25: the largest that can be set, 2^31-1 ms, and it ends just then. */
START_TEST(the_longest_delivery_timeout_ends)
{
    int64_t longest_ns = INT32_MAX * KP_NS_PER_MS;
    struct list out;

    f.acc.delivery_timeout_ns = longest_ns;
    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    ck_assert_uint_eq(expire(START_NS + longest_ns - 1, &out), 0);
    ck_assert_uint_eq(expire(START_NS + longest_ns, &out), 1);
    fail_all(&out);
}
END_TEST

/* A27, P7: by its first creation, whatever happened to it since. */
START_TEST(a_retried_batch_expires_by_its_creation)
{
    struct list out;
    struct batch *b;

    make_batches(1);
    b = take();
    f.fake.mono_ns += 60 * KP_NS_PER_SEC;
    kp__queue_put_back(q, b);
    ck_assert_int_eq(look_at(q).head_deadline_ns,
                     START_NS + f.settings.delivery_timeout_ns);
    ck_assert_uint_eq(expire(START_NS + f.settings.delivery_timeout_ns, &out),
                      1);
    fail_all(&out);
}
END_TEST

/* Completed while somebody compresses it: the outcome at once, the memory when
 * the claimant is done, from whom nothing is taken before. */
START_TEST(a_claimant_keeps_the_bytes_of_an_expired_batch)
{
    struct outcome o = {.err = KP_ETIMEDOUT, .base_offset = -1};
    struct list out;
    struct batch *b;

    ck_assert_int_eq(append_bytes(3, 1000, 0), KP_OK);
    (void)kp__queue_seal(q, true, false);
    ck_assert_int_eq(kp__queue_claim(q, true, &b), QUEUE_OK);
    ck_assert_uint_eq(expire(KP_NEVER, &out), 1);
    (void)kp__list_pop_front(&out);
    ck_assert_int_eq(b->fate, FATE_COMPLETED);
    kp__batch_release_bytes(b); /* not ours to give */
    kp__result_complete(b->result, &o, NULL);
    ck_assert_mem_eq(b->chunks->data + b->raw_size - 1001, some_bytes(3, 1000),
                     1000);
    kp__batch_unref(b);
    ck_assert_uint_lt(fixture_available(), f.settings.buffer_memory);
    (void)kp__compress_batch(kp__compressors_own(&f.compressors), b);
    ck_assert(!kp__queue_finish(q, b, false));
    ck_assert_uint_eq(fixture_available(), f.settings.buffer_memory);
}
END_TEST

START_TEST(a_claim_given_back_is_sealed_again)
{
    struct batch *b, *again;

    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    (void)kp__queue_seal(q, true, false);
    ck_assert_int_eq(kp__queue_claim(q, true, &b), QUEUE_OK);
    kp__queue_unclaim(q, b);
    ck_assert_int_eq(kp__queue_claim(q, true, &again), QUEUE_OK);
    ck_assert_ptr_eq(again, b);
    kp__compress_and_finish(&f.acc, b, kp__compressors_own(&f.compressors));
}
END_TEST

/* A28: a retried batch that waits is found at its deadline; taken again, it is
 * in flight and not found. */
START_TEST(a_retried_batch_is_found_while_it_waits)
{
    struct list out;
    struct batch *b;

    make_batches(1);
    b = take();
    b->attempts = 1;
    kp__queue_put_back(q, b);
    ck_assert(look_at(q).retry);
    ck_assert_ptr_eq(take(), b);
    ck_assert_uint_eq(expire(KP_NEVER, &out), 0);
    kp__queue_put_back(q, b);
    ck_assert_uint_eq(expire(START_NS + f.settings.delivery_timeout_ns, &out),
                      1);
    fail_all(&out);
}
END_TEST

/* In flight a batch is not the queue's: it neither expires here nor is emptied.
 * */
START_TEST(a_batch_in_flight_is_not_found)
{
    struct list out;
    struct batch *b;

    make_batches(1);
    b = take();
    ck_assert_uint_eq(expire(KP_NEVER, &out), 0);
    fixture_complete(b, KP_OK);
}
END_TEST

/* -- Memory -- */

/* Two events: the bytes go back when nobody reads them, the slots and
 * structures when everything is reported. */
START_TEST(bytes_and_reports_end_on_their_own)
{
    size_t before = fixture_available();
    struct outcome o = {.err = KP_OK};
    kp_record r = record_of("v", 1);
    kp_report report;
    struct batch *b;
    kp_cq *cq;

    ck_assert_int_eq(kp_cq_create(&cq, NULL), KP_OK);
    r.queue = cq;
    ck_assert_int_eq(append_record(&r, 0), KP_OK);
    b = take();
    ck_assert_uint_eq(q->held_bytes, before - fixture_available());
    kp__result_complete(b->result, &o, NULL);
    kp__cq_post(cq, &b->reports.posts[0]);
    kp__batch_unref(b); /* reported, and still on the wire */
    ck_assert_uint_eq(kp_cq_poll(cq, &report, 1, 0), 1);
    ck_assert_uint_eq(kp_cq_poll(cq, &report, 1, 0), 0);
    ck_assert_uint_eq(q->held_bytes, b->chunks->charge);
    ck_assert_uint_lt(fixture_available(), before);
    kp__batch_release_bytes(b);
    ck_assert_uint_eq(fixture_available(), before);
    kp_cq_destroy(cq);
}
END_TEST

static kp_err append_waiting(struct append *x, uint32_t seed)
{
    kp_record r = record_of(some_bytes(seed, 1000), 1000);

    append_init(x, &r, 0);
    return kp__append_try(&f.acc, x);
}

/* What a generous grant left behind goes back when the queue runs empty. */
START_TEST(an_empty_queue_keeps_nothing_in_spare)
{
    const struct pool_need need = {.record_size = 10000};
    struct pool_waiter w = {0};
    struct chunk *all = NULL;
    struct pool_grant g;
    struct append x;
    kp_record r = record_of(some_bytes(0, 5000), 5000);

    while (kp__pool_try(f.pool, q, &need, false, 0, &w, &g) == POOL_GRANTED) {
        g.data->next = all;
        all = g.data;
    }
    append_init(&x, &r, 0);
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_PENDING);
    kp__pool_give(f.pool, q, all);
    f.acc.batch_size = 100000; /* so that the batch stays open */
    ck_assert_int_eq(kp__append_try(&f.acc, &x), KP_OK);
    ck_assert_ptr_nonnull(q->spare);
    ck_assert_int_eq(append_waiting(&x, 1), KP_OK);
    fixture_complete(take(), KP_OK);
    ck_assert_ptr_null(q->spare);
    ck_assert_uint_eq(fixture_available(), f.settings.buffer_memory);
}
END_TEST

START_TEST(pressure_takes_the_spare_back)
{
    size_t before;

    ck_assert_int_eq(append_bytes(0, 10, 0), KP_OK);
    before = fixture_available();
    {
        const struct pool_need need = {.record_size = 10000};
        struct pool_waiter w = {0};
        struct pool_grant g;

        ck_assert_int_eq(kp__pool_try(f.pool, q, &need, false, 0, &w, &g),
                         POOL_GRANTED);
        q->spare = g.data;
    }
    ck_assert_uint_lt(fixture_available(), before);
    ck_assert_int_eq(kp__queue_seal(q, true, true), QUEUE_OK);
    ck_assert_uint_eq(fixture_available(), before);
}
END_TEST

static Suite *partition_queue_suite(void)
{
    Suite *s = suite_create("partition_queue");
    TCase *t = tcase_create("places");

    tcase_add_checked_fixture(t, set_up, tear_down);
#ifdef KP_DEBUG
    tcase_add_test(t, only_legal_moves_are_made);
#endif
    tcase_add_test(t, a_head_goes_from_open_to_in_flight);
    tcase_add_test(t, a_sealed_batch_takes_no_more);
    tcase_add_test(t, a_busy_queue_is_not_waited_for);
    tcase_add_test(t, only_the_head_is_sealed_unless_all_is_wanted);
    tcase_add_test(t, a_visit_seals_and_sees_everything);
    suite_add_tcase(s, t);

    t = tcase_create("order");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, retries_go_back_by_ordinal);
    tcase_add_test(t, children_stand_where_their_parent_stood);
    suite_add_tcase(s, t);

    t = tcase_create("fates");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, batches_expire_at_their_deadline);
    tcase_add_test(t, deadlines_are_in_the_order_of_batches);
    tcase_add_test(t, an_endless_delivery_timeout_does_not_overflow);
    tcase_add_test(t, the_longest_delivery_timeout_ends);
    tcase_add_test(t, a_retried_batch_is_found_while_it_waits);
    tcase_add_test(t, a_retried_batch_expires_by_its_creation);
    tcase_add_test(t, a_claimant_keeps_the_bytes_of_an_expired_batch);
    tcase_add_test(t, a_claim_given_back_is_sealed_again);
    tcase_add_test(t, a_batch_in_flight_is_not_found);
    suite_add_tcase(s, t);

    t = tcase_create("memory");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, bytes_and_reports_end_on_their_own);
    tcase_add_test(t, an_empty_queue_keeps_nothing_in_spare);
    tcase_add_test(t, pressure_takes_the_spare_back);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(partition_queue_suite)
