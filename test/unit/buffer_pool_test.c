/* SPDX-License-Identifier: BSD-2-Clause */
/* buffer_pool_test.c - buffer.memory: accounts, the line, shares and ends.
 *
 * Waiting is a try and a word, so most cases need no second thread: a waiter
 * stands in line until its word changes. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rand.h"
#include "lib/base/system.h"
#include "lib/shared/buffer_pool.h"
#include "lib/shared/chunk_arena.h"
#include "lib/shared/cq.h"
#include "lib/shared/partition_queue.h"
#include "test/support/main.h"

#define BLOCKS 16
#define TOTAL ((size_t)BLOCKS * CHUNK_SIZE)

static struct buffer_pool *pool;
static struct partition_queue q, q2, q3;

static const struct pool_need full_chunk = {.record_size = 10000};
static const struct pool_need small_chunk = {.record_size = 100, .small = true};

static void init_queue(struct partition_queue *queue)
{
    memset(queue, 0, sizeof(*queue));
    kp__mutex_init(&queue->lock);
}

static void set_up(void)
{
    pool = kp__pool_create(TOTAL);
    ck_assert_ptr_nonnull(pool);
    init_queue(&q);
    init_queue(&q2);
    init_queue(&q3);
}

static void tear_down(void)
{
    kp__pool_check(pool);
    kp__pool_unref(pool);
    ck_assert_uint_eq(q.held_bytes, 0);
    ck_assert_uint_eq(q2.held_bytes, 0);
    ck_assert_uint_eq(q3.held_bytes, 0);
    ck_assert_int_eq(kp__mem_live(), 0);
}

static size_t available(void)
{
    struct pool_stats s;

    kp__pool_stats(pool, &s);
    ck_assert_uint_eq(s.total_bytes, TOTAL);
    kp__pool_check(pool);
    return s.available_bytes;
}

static uint32_t waiting(void)
{
    struct pool_stats s;

    kp__pool_stats(pool, &s);
    return s.waiting_threads;
}

static struct pool_grant take(struct partition_queue *queue,
                              struct pool_need need)
{
    struct pool_waiter w = {0};
    struct pool_grant g = {0};

    ck_assert_int_eq(kp__pool_try(pool, queue, &need, false, 0, &w, &g),
                     POOL_GRANTED);
    return g;
}

static struct chunk *take_chunk(struct partition_queue *queue,
                                struct pool_need need)
{
    struct chunk *c = take(queue, need).data;

    ck_assert_ptr_nonnull(c);
    ck_assert_uint_ge(c->capacity, need.record_size);
    memset(c->data, 0xa5, c->capacity);
    return c;
}

static enum pool_answer try_now(struct partition_queue *queue,
                                struct pool_need need, struct pool_grant *g)
{
    struct pool_waiter w = {0};

    return kp__pool_try(pool, queue, &need, false, 0, &w, g);
}

static void join(struct partition_queue *queue, struct pool_need need,
                 struct pool_waiter *w)
{
    struct pool_grant g;

    memset(w, 0, sizeof(*w));
    ck_assert_int_eq(kp__pool_try(pool, queue, &need, true, 0, w, &g),
                     POOL_WAIT);
}

static uint32_t word_of(struct pool_waiter *w)
{
    return atomic_load(&w->word);
}

static struct pool_grant collect(struct pool_waiter *w)
{
    struct pool_grant g = {0};

    ck_assert_uint_eq(word_of(w), 1);
    ck_assert_int_eq(kp__pool_try(pool, w->queue, &w->need, true, 0, w, &g),
                     POOL_GRANTED);
    return g;
}

static size_t length(const struct chunk *c)
{
    size_t n = 0;

    for (; c != NULL; c = c->next)
        n++;
    return n;
}

/* Every block, one by one, linked. */
static struct chunk *take_all(struct partition_queue *queue)
{
    struct chunk *all = NULL;

    for (int i = 0; i < BLOCKS; i++) {
        struct chunk *c = take_chunk(queue, full_chunk);

        c->next = all;
        all = c;
    }
    ck_assert_uint_eq(available(), 0);
    return all;
}

static struct chunk *split_off(struct chunk **list)
{
    struct chunk *c = *list;

    *list = c->next;
    c->next = NULL;
    return c;
}

/* -- Accounts -- */

/* B1, B2: what is taken is missing, what is given is there again, empty, and
 * the warmest comes first. */
START_TEST(a_chunk_is_charged_and_comes_back_clean)
{
    struct chunk *a = take_chunk(&q, full_chunk), *b;

    ck_assert_uint_eq(available(), TOTAL - CHUNK_SIZE);
    ck_assert_uint_eq(q.held_bytes, CHUNK_SIZE);
    ck_assert_uint_eq(a->capacity + sizeof(*a), CHUNK_SIZE);
    a->used = 77;
    b = take_chunk(&q, full_chunk);
    kp__pool_give(pool, &q, b);
    kp__pool_give(pool, &q, a);
    ck_assert_uint_eq(available(), TOTAL);
    ck_assert_ptr_eq(take_chunk(&q, full_chunk), a);
    ck_assert_uint_eq(a->used, 0);
    ck_assert_ptr_null(a->next);
    kp__pool_give(pool, &q, a);
}
END_TEST

START_TEST(eight_small_chunks_are_one_block_and_reunite)
{
    struct chunk *small[8], *blocks = NULL;

    for (int i = 0; i < 8; i++) {
        small[i] = take_chunk(&q, small_chunk);
        ck_assert_uint_eq(small[i]->capacity + sizeof(*small[i]),
                          CHUNK_SMALL_SIZE);
        ck_assert_uint_eq(available(),
                          TOTAL - (size_t)(i + 1) * CHUNK_SMALL_SIZE);
    }
    for (int i = 0; i < BLOCKS - 1; i++) {
        struct chunk *c = take_chunk(&q, full_chunk);

        c->next = blocks;
        blocks = c;
    }
    ck_assert_uint_eq(available(), 0);
    for (int i = 0; i < 8; i++) {
        struct pool_grant g;

        /* Seven eighths are no block. */
        ck_assert_int_eq(try_now(&q, full_chunk, &g), POOL_FULL);
        kp__pool_give(pool, &q, small[(i * 3) % 8]);
    }
    kp__pool_give(pool, &q, take_chunk(&q, full_chunk));
    kp__pool_give(pool, &q, blocks);
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

START_TEST(small_chunks_do_not_overlap)
{
    struct chunk *c[16];

    for (int i = 0; i < 16; i++) {
        c[i] = take_chunk(&q, small_chunk);
        memset(c[i]->data, i, c[i]->capacity);
    }
    for (int i = 0; i < 16; i++) {
        for (uint32_t j = 0; j < c[i]->capacity; j++)
            ck_assert_uint_eq(c[i]->data[j], (unsigned)i);
        kp__pool_give(pool, &q, c[i]);
    }
}
END_TEST

/* B3: a record larger than a chunk has an extent of whole pages to itself. */
START_TEST(a_large_record_gets_an_extent)
{
    struct pool_need need = {.record_size = 50000};
    size_t page = kp__page_size();
    size_t charge = (50000 + sizeof(struct chunk) + page - 1) / page * page;
    struct chunk *c = take_chunk(&q, need);

    ck_assert_uint_eq(c->charge, charge);
    ck_assert_uint_eq(available(), TOTAL - charge);
    kp__pool_give(pool, &q, c);
    ck_assert_uint_eq(available(), TOTAL);
    ck_assert_ptr_eq(take_chunk(&q, need), c); /* kept for the next */
    kp__pool_give(pool, &q, c);
}
END_TEST

/* B4: a record of just buffer.memory is legal, with the pool to itself. */
START_TEST(a_record_of_the_whole_pool_fits)
{
    struct pool_need need = {
        .record_size = TOTAL, .slots = true, .batch = true};
    struct chunk *first = take_chunk(&q, small_chunk);
    struct pool_grant g;

    ck_assert_int_eq(try_now(&q, need, &g), POOL_FULL);
    kp__pool_give(pool, &q, first);
    g = take(&q, need);
    ck_assert_uint_ge(g.data->capacity, TOTAL);
    ck_assert_uint_eq(available(), 0);
    kp__pool_give(pool, &q, g.data);
    kp__pool_give(pool, &q, g.slots);
    kp__free(g.batch->result);
    kp__pool_give_batch(pool, &q, g.batch);
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

static size_t resident_pages(struct chunk *c)
{
    unsigned char state[CHUNK_SIZE / 4096];
    size_t n = 0;

    ck_assert_int_eq(mincore(c, CHUNK_SIZE, state), 0);
    for (size_t i = 0; i < sizeof(state); i++)
        n += state[i] & 1;
    return n;
}

/* An extent takes the room of free blocks: they are given back to the system
 * first, so that no more than buffer.memory is ever resident. */
START_TEST(free_blocks_make_room_for_an_extent)
{
    struct pool_need need = {.record_size = TOTAL - 5 * CHUNK_SIZE};
    struct chunk *all = take_all(&q), *extent;
    struct chunk *at[BLOCKS];
    size_t resident = 0;

    if (kp__page_size() != 4096) {
        kp__pool_give(pool, &q, all);
        return;
    }
    for (int i = 0; i < BLOCKS; i++, all = all->next)
        at[i] = all;
    for (int i = 0; i < BLOCKS; i++) {
        ck_assert_uint_eq(resident_pages(at[i]), 4);
        at[i]->next = NULL;
        kp__pool_give(pool, &q, at[i]);
    }
    extent = take_chunk(&q, need);
    for (int i = 0; i < BLOCKS; i++)
        resident += resident_pages(at[i]) * 4096;
    ck_assert_uint_le(resident + extent->charge, TOTAL);
    kp__pool_give(pool, &q, extent);
    kp__pool_give(pool, &q, take_all(&q));
}
END_TEST

/* Room for `size` bytes in p, touched. */
static struct chunk *touch_in(struct buffer_pool *p, size_t size)
{
    struct pool_need need = {.record_size = size};
    struct pool_waiter w = {0};
    struct pool_grant g;

    ck_assert_int_eq(kp__pool_try(p, &q, &need, false, 0, &w, &g),
                     POOL_GRANTED);
    memset(g.data->data, 0xa5, g.data->capacity);
    return g.data;
}

/* The same where the system may have put blocks together into large pages. */
START_TEST(free_blocks_in_large_pages_make_room_too)
{
    enum { MANY = 1024 };
    static struct chunk *at[MANY];
    size_t total = (size_t)MANY * CHUNK_SIZE, resident = 0;
    struct buffer_pool *p = kp__pool_create(total);
    struct chunk *extent;

    ck_assert_ptr_nonnull(p);
    for (int i = 0; i < MANY; i++)
        at[i] = touch_in(p, 10000);
    for (int i = 0; i < MANY; i++) {
        at[i]->next = NULL;
        kp__pool_give(p, &q, at[i]);
    }
    extent = touch_in(p, total - 100 * CHUNK_SIZE);
    for (int i = 0; i < MANY && kp__page_size() == 4096; i++)
        resident += resident_pages(at[i]) * 4096;
    ck_assert_uint_le(resident + extent->charge, total);
    kp__pool_give(p, &q, extent);
    kp__pool_check(p);
    kp__pool_unref(p);
}
END_TEST

START_TEST(structures_are_charged_and_used_again)
{
    struct pool_need need = {.record_size = 100, .small = true, .batch = true};
    struct pool_grant g = take(&q, need);
    struct batch *b = g.batch;

    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_nonnull(b->result);
    ck_assert_uint_eq(b->record_count, 0);
    ck_assert_uint_eq(available(), TOTAL - CHUNK_SMALL_SIZE -
                                       sizeof(struct batch) -
                                       sizeof(struct batch_result));
    b->record_count = 5;
    kp__pool_give(pool, &q, g.data);
    kp__free(b->result);
    kp__pool_give_batch(pool, &q, b);
    ck_assert_uint_eq(available(), TOTAL);
    g = take(&q, need);
    ck_assert_ptr_eq(g.batch, b);
    ck_assert_uint_eq(g.batch->record_count, 0);
    kp__pool_give(pool, &q, g.data);
    kp__free(b->result);
    kp__pool_give_batch(pool, &q, b);
}
END_TEST

/* What came with a grant and was not used goes back whole, and the next in line
 * is served from it. */
START_TEST(a_whole_grant_goes_back_at_once)
{
    struct pool_need need = {
        .record_size = 10000, .slots = true, .full_slots = true, .batch = true};
    struct pool_grant g = take(&q, need), none = {0};
    struct chunk *rest = NULL;
    struct pool_waiter w;

    while (available() >= CHUNK_SIZE) {
        struct chunk *c = take_chunk(&q3, full_chunk);

        c->next = rest;
        rest = c;
    }
    join(&q2, full_chunk, &w);
    kp__pool_give_grant(pool, &q, &none);
    ck_assert_uint_eq(word_of(&w), 0);
    kp__pool_give_grant(pool, &q, &g);
    ck_assert_ptr_null(g.data);
    ck_assert_ptr_null(g.slots);
    ck_assert_ptr_null(g.batch);
    ck_assert_uint_eq(q.held_bytes, 0);
    kp__pool_give(pool, &q2, collect(&w).data);
    kp__pool_give(pool, &q3, rest);
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

/* B12: the system has no memory: everything is refunded, the pool goes on. */
START_TEST(an_allocation_that_fails_is_refunded)
{
    struct pool_need batch = {.record_size = 100, .batch = true};
    struct pool_need extent = {.record_size = 50000, .batch = true};
    struct pool_grant g = {0};

    for (long i = 1; i <= 2; i++) {
        kp__mem_fail_at(i);
        ck_assert_int_eq(try_now(&q, batch, &g), POOL_NOMEM);
        ck_assert_uint_eq(available(), TOTAL);
    }
    for (long i = 1; i <= 3; i++) {
        extent.record_size += 10000; /* none of this size is kept */
        kp__mem_fail_at(i);
        ck_assert_int_eq(try_now(&q, extent, &g), POOL_NOMEM);
        ck_assert_uint_eq(available(), TOTAL);
    }
    kp__mem_fail_at(-1);
    ck_assert_ptr_null(g.data);
    kp__pool_give(pool, &q, take_chunk(&q, full_chunk));
}
END_TEST

START_TEST(a_pool_cannot_be_made_without_memory)
{
    for (long i = 1; i < 20; i++) {
        struct buffer_pool *p;

        kp__mem_fail_at(i);
        p = kp__pool_create(TOTAL);
        kp__mem_fail_at(-1);
        if (p != NULL) {
            ck_assert_int_ge(i, 3);
            kp__pool_unref(p);
            return;
        }
    }
    ck_abort_msg("never made");
}
END_TEST

/* A split must not depend on free memory: that may all be queued behind it. */
START_TEST(a_split_has_structures_when_all_is_taken)
{
    struct chunk *all = take_all(&q);
    struct batch *a, *b;

    a = kp__pool_split_batch(pool);
    b = kp__pool_split_batch(pool);
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_ne(a, b);
    kp__pool_give_batch(pool, NULL, a);
    kp__mem_fail_at(1); /* nor on the system's */
    ck_assert_ptr_eq(kp__pool_split_batch(pool), a);
    kp__mem_fail_at(-1);
    kp__pool_give_batch(pool, NULL, a);
    kp__pool_give_batch(pool, NULL, b);
    kp__pool_give(pool, &q, all);
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

START_TEST(what_is_kept_aside_is_not_granted)
{
    struct pool_grant g;
    struct chunk *list = NULL;
    int n = 0;

    kp__pool_keep_aside(pool, 2 * CHUNK_SIZE);
    while (try_now(&q, full_chunk, &g) == POOL_GRANTED) {
        g.data->next = list;
        list = g.data;
        n++;
    }
    ck_assert_int_eq(n, BLOCKS - 2);
    kp__pool_give(pool, &q, list);
}
END_TEST

START_TEST(a_tiny_pool_works_with_small_chunks)
{
    struct buffer_pool *p = kp__pool_create(10 * 1024);
    struct pool_need need = {
        .record_size = 1000, .small = true, .slots = true, .batch = true};
    struct pool_waiter w = {0};
    struct pool_grant g, other;
    struct pool_stats s;

    ck_assert_int_eq(kp__pool_try(p, &q, &need, false, 0, &w, &g),
                     POOL_GRANTED);
    ck_assert_uint_ge(g.data->capacity, 1000);
    ck_assert_uint_ge(g.slots->capacity, 1000);
    memset(g.data->data, 1, g.data->capacity);
    memset(g.slots->data, 1, g.slots->capacity);
    need.record_size = 4000; /* no whole block: an extent */
    ck_assert_int_eq(kp__pool_try(p, &q, &need, false, 0, &w, &other),
                     POOL_FULL);
    kp__pool_give(p, &q, g.data);
    kp__pool_give(p, &q, g.slots);
    kp__free(g.batch->result);
    kp__pool_give_batch(p, &q, g.batch);
    need = (struct pool_need){.record_size = 4000};
    ck_assert_int_eq(kp__pool_try(p, &q, &need, false, 0, &w, &g),
                     POOL_GRANTED);
    kp__pool_give(p, &q, g.data);
    kp__pool_stats(p, &s);
    ck_assert_uint_eq(s.available_bytes, 10 * 1024);
    kp__pool_check(p);
    kp__pool_unref(p);
}
END_TEST

/* A pool of one block, of which some is kept aside: nobody waits for a whole
 * block, which would never come. */
START_TEST(a_block_that_cannot_be_had_is_not_waited_for)
{
    struct buffer_pool *p = kp__pool_create(CHUNK_SIZE);
    struct pool_need need = {.record_size = 300, .slots = true, .batch = true};
    struct pool_grant grant;
    struct pool_waiter w = {0};

    kp__pool_keep_aside(p, 3000);
    ck_assert_int_eq(kp__pool_try(p, &q, &need, true, 0, &w, &grant),
                     POOL_GRANTED);
    ck_assert_uint_le(grant.data->charge, CHUNK_SMALL_SIZE);
    kp__pool_give(p, &q, grant.data);
    kp__pool_give(p, &q, grant.slots);
    kp__free(grant.batch->result);
    kp__pool_give_batch(p, &q, grant.batch);
    kp__pool_check(p);
    kp__pool_unref(p);
}
END_TEST

/* What is taken is what was charged, also where a page of slots is asked to be
 * a block and there is no room for two blocks in what may be granted. */
START_TEST(a_small_pool_charges_the_slots_that_it_grants)
{
    size_t total = 40 * 1024, aside = 10 * 1024;
    struct buffer_pool *p = kp__pool_create(total);
    struct pool_need need = {.slots = true, .full_slots = true};
    struct pool_waiter w = {0};
    struct pool_grant data, slots;
    struct pool_stats s;

    kp__pool_keep_aside(p, aside);
    ck_assert_int_eq(kp__pool_try(p, &q, &full_chunk, false, 0, &w, &data),
                     POOL_GRANTED);
    ck_assert_int_eq(kp__pool_try(p, &q, &need, false, 0, &w, &slots),
                     POOL_GRANTED);
    ck_assert_uint_eq(q.held_bytes, data.data->charge + slots.slots->charge);
    ck_assert_uint_le(q.held_bytes, total - aside);
    kp__pool_give(p, &q, data.data);
    kp__pool_give(p, &q, slots.slots);
    kp__pool_stats(p, &s);
    ck_assert_uint_eq(s.available_bytes, total);
    kp__pool_check(p);
    kp__pool_unref(p);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__)
/* B11: sizes past 32 bits. */
START_TEST(a_pool_of_many_gigabytes_adds_up)
{
    size_t total = (size_t)20 << 30;
    struct buffer_pool *p = kp__pool_create(total);
    struct pool_need need = {.record_size = 2000000000};
    struct pool_waiter w = {0};
    struct pool_grant a, b;
    struct pool_stats s;

    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(kp__pool_try(p, &q, &need, false, 0, &w, &a),
                     POOL_GRANTED);
    ck_assert_int_eq(kp__pool_try(p, &q, &need, false, 0, &w, &b),
                     POOL_GRANTED);
    kp__pool_stats(p, &s);
    ck_assert_uint_eq(s.available_bytes,
                      total - a.data->charge - b.data->charge);
    ck_assert_uint_ge(a.data->charge, 2000000000);
    kp__pool_give(p, &q, a.data);
    kp__pool_give(p, &q, b.data);
    kp__pool_stats(p, &s);
    ck_assert_uint_eq(s.available_bytes, total);
    kp__pool_unref(p);
}
END_TEST
#endif

/* -- The line -- */

/* B5: a waiter gets what is given back, with its grant in hand. */
START_TEST(a_waiter_is_granted_what_comes_back)
{
    struct chunk *all = take_all(&q), *c;
    struct pool_waiter w;
    struct pool_grant g;

    join(&q2, full_chunk, &w);
    ck_assert_uint_eq(waiting(), 1);
    ck_assert_uint_eq(word_of(&w), 0);
    c = split_off(&all);
    kp__pool_give(pool, &q, c);
    ck_assert_uint_eq(waiting(), 0);
    g = collect(&w);
    ck_assert_ptr_eq(g.data, c);
    ck_assert_uint_eq(q2.held_bytes, CHUNK_SIZE);
    kp__pool_give(pool, &q2, g.data);
    kp__pool_give(pool, &q, all);
}
END_TEST

START_TEST(an_early_return_goes_on_waiting)
{
    struct chunk *all = take_all(&q);
    struct pool_waiter w;
    struct pool_grant g;

    join(&q, full_chunk, &w);
    ck_assert_int_eq(kp__pool_try(pool, &q, &full_chunk, true, 0, &w, &g),
                     POOL_WAIT);
    ck_assert_uint_eq(waiting(), 1);
    kp__pool_give(pool, &q, split_off(&all));
    kp__pool_give(pool, &q, collect(&w).data);
    kp__pool_give(pool, &q, all);
}
END_TEST

/* As soon as a waiter has its word, its frame, its thread and its stack may be
 * gone; the wake-up's system call comes after that. */
START_TEST(a_waiter_sleeps_on_the_pools_own_memory)
{
    struct chunk *all = take_all(&q);
    struct pool_waiter w;
    struct ticket t;
    uintptr_t at;

    join(&q2, full_chunk, &w);
    t = kp__pool_ticket(pool, &w, 77);
    at = (uintptr_t)t.word;
    ck_assert(at < (uintptr_t)&w || at >= (uintptr_t)(&w + 1));
    ck_assert_int_eq(t.deadline_ns, 77);
    ck_assert_uint_eq(atomic_load(t.word), t.seen);
    kp__pool_give(pool, &q, split_off(&all));
    ck_assert_uint_ne(atomic_load(t.word), t.seen);
    t = kp__pool_ticket(pool, &w, 77);
    ck_assert_ptr_null(t.word);
    kp__pool_give(pool, &q2, collect(&w).data);
    kp__pool_give(pool, &q, all);
}
END_TEST

/* Neighbours sleep on few words, so that few calls wake them all; and each can
 * be woken alone. */
START_TEST(neighbours_in_line_share_a_word_and_no_mask)
{
    enum { MANY = 64 };
    struct chunk *all = take_all(&q);
    struct pool_waiter w[MANY];
    struct ticket t[MANY];
    int words = 1;

    for (int i = 0; i < MANY; i++) {
        join(&q2, small_chunk, &w[i]);
        t[i] = kp__pool_ticket(pool, &w[i], KP_NEVER);
        ck_assert_uint_ne(t[i].mask, 0);
        words += i > 0 && t[i].word != t[i - 1].word;
        for (int j = 0; j < i; j++)
            ck_assert(t[j].word != t[i].word || (t[j].mask & t[i].mask) == 0);
    }
    ck_assert_int_le(words, 3);
    kp__pool_give(pool, &q, all);
    for (int i = 0; i < MANY; i++)
        kp__pool_give(pool, &q2, collect(&w[i]).data);
}
END_TEST

/* B7: who gives up leaves nothing behind. */
START_TEST(leaving_the_line_leaves_nothing)
{
    struct chunk *all = take_all(&q);
    struct pool_waiter w;
    struct pool_stats s;

    join(&q, full_chunk, &w);
    w.since_ns = 5;
    kp__pool_leave(pool, &w, 25);
    ck_assert_uint_eq(waiting(), 0);
    kp__pool_stats(pool, &s);
    ck_assert_int_eq(s.wait_ns_total, 20);
    ck_assert(!kp__pool_pressure(pool, NULL));
    kp__pool_give(pool, &q, all);
    ck_assert_uint_eq(word_of(&w), 0);
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

/* A grant that its waiter no longer wants goes back once, whole, and the next
 * in line is served from it. */
START_TEST(a_late_leaver_refunds_once_and_the_next_is_served)
{
    struct chunk *all = take_all(&q);
    struct pool_need need = {
        .record_size = 10000, .slots = true, .full_slots = true, .batch = true};
    struct pool_waiter w, next;
    struct pool_grant g;

    join(&q2, need, &w);
    join(&q3, full_chunk, &next);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(word_of(&w), 0);
        kp__pool_give(pool, &q, split_off(&all));
    }
    ck_assert_uint_eq(word_of(&w), 1);
    ck_assert_uint_eq(word_of(&next), 0);
    kp__pool_leave(pool, &w, 0);
    ck_assert_uint_eq(q2.held_bytes, 0);
    ck_assert_uint_eq(word_of(&next), 1);
    kp__pool_leave(pool, &w, 0); /* harmless */
    g = collect(&next);
    kp__pool_give(pool, &q3, g.data);
    kp__pool_give(pool, &q, all);
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

/* Who was in line is charged for a batch, and gets it when it wants it; if the
 * system has no memory then, it is due still. */
START_TEST(a_batch_from_the_line_is_made_when_it_is_wanted)
{
    struct pool_need need = {.record_size = 100, .small = true, .batch = true};
    struct chunk *all = take_all(&q);
    struct pool_waiter w;
    struct pool_grant g;
    size_t charged;

    join(&q2, need, &w);
    kp__pool_give(pool, &q, all);
    g = collect(&w);
    ck_assert_ptr_null(g.batch);
    ck_assert(g.batch_due);
    charged = q2.held_bytes;
    ck_assert_uint_eq(charged, CHUNK_SMALL_SIZE + sizeof(struct batch) +
                                   sizeof(struct batch_result));
    for (long i = 1; i <= 2; i++) {
        kp__mem_fail_at(i);
        ck_assert(!kp__pool_make_batch(pool, &g));
        ck_assert_ptr_null(g.batch);
        ck_assert(g.batch_due);
        ck_assert_uint_eq(q2.held_bytes, charged);
    }
    kp__mem_fail_at(-1);
    ck_assert(kp__pool_make_batch(pool, &g));
    ck_assert(!g.batch_due);
    ck_assert_ptr_nonnull(g.batch->result);
    ck_assert_uint_eq(g.batch->record_count, 0);
    ck_assert_uint_eq(q2.held_bytes, charged);
    kp__pool_give_grant(pool, &q2, &g);
    ck_assert_uint_eq(available(), TOTAL);
    /* or it is not wanted */
    all = take_all(&q);
    join(&q2, need, &w);
    kp__pool_give(pool, &q, all);
    g = collect(&w);
    kp__pool_give_grant(pool, &q2, &g);
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

START_TEST(first_come_first_served)
{
    struct chunk *all = take_all(&q);
    struct pool_waiter w[8];
    struct pool_grant g[8];

    for (int i = 0; i < 8; i++)
        join(i % 2 == 0 ? &q2 : &q3, full_chunk, &w[i]);
    for (int i = 0; i < 8; i++) {
        for (int j = i; j < 8; j++)
            ck_assert_uint_eq(word_of(&w[j]), 0);
        kp__pool_give(pool, &q, split_off(&all));
        ck_assert_uint_eq(word_of(&w[i]), 1);
        g[i] = collect(&w[i]);
    }
    for (int i = 0; i < 8; i++)
        kp__pool_give(pool, w[i].queue, g[i].data);
    kp__pool_give(pool, &q, all);
}
END_TEST

/* One that was called and does not come keeps nothing from the others for long:
 * whoever waits has it when the line is relieved. */
START_TEST(who_does_not_come_keeps_nobody_waiting)
{
    struct chunk *all = take_all(&q);
    struct pool_waiter w[3];

    for (int i = 0; i < 3; i++)
        join(&q2, full_chunk, &w[i]);
    ck_assert(!kp__pool_is_held(pool));
    kp__pool_give(pool, &q, split_off(&all));
    ck_assert_uint_eq(word_of(&w[0]), 1);
    kp__pool_give(pool, &q, split_off(&all));
    ck_assert(kp__pool_is_held(pool));
    ck_assert_uint_eq(word_of(&w[1]), 0);
    kp__pool_relieve(pool);
    ck_assert_uint_eq(word_of(&w[1]), 1);
    kp__pool_give(pool, &q, split_off(&all));
    ck_assert_uint_eq(word_of(&w[2]), 0); /* once, not from now on */
    kp__pool_relieve(pool);
    ck_assert_uint_eq(word_of(&w[2]), 1);
    ck_assert(!kp__pool_is_held(pool));
    for (int i = 0; i < 3; i++)
        kp__pool_give(pool, &q2, collect(&w[i]).data);
    kp__pool_give(pool, &q, all);
}
END_TEST

/* While one is on its way to what it was granted, what comes back is granted
 * together: by the last one that is back, or once an eighth is free; also if it
 * gives up. */
START_TEST(what_comes_back_meanwhile_is_granted_together)
{
    struct chunk *all = take_all(&q);
    struct pool_waiter w[6];
    struct pool_grant g[6];

    for (int i = 0; i < 6; i++)
        join(&q2, full_chunk, &w[i]);
    kp__pool_give(pool, &q, split_off(&all));
    ck_assert_uint_eq(word_of(&w[0]), 1);
    kp__pool_give(pool, &q, split_off(&all));
    ck_assert_uint_eq(word_of(&w[1]), 0);
    g[0] = collect(&w[0]);
    ck_assert_uint_eq(word_of(&w[1]), 1);
    ck_assert_uint_eq(word_of(&w[2]), 0);
    kp__pool_give(pool, &q, split_off(&all));
    ck_assert_uint_eq(word_of(&w[2]), 0);
    kp__pool_give(pool, &q, split_off(&all)); /* now two of sixteen */
    ck_assert_uint_eq(word_of(&w[2]), 1);
    ck_assert_uint_eq(word_of(&w[3]), 1);
    kp__pool_give(pool, &q, split_off(&all));
    g[1] = collect(&w[1]);
    g[2] = collect(&w[2]);
    ck_assert_uint_eq(word_of(&w[4]), 0);
    kp__pool_leave(pool, &w[3], 0); /* what it leaves and what was kept */
    ck_assert_uint_eq(word_of(&w[4]), 1);
    ck_assert_uint_eq(word_of(&w[5]), 1);
    g[4] = collect(&w[4]);
    g[5] = collect(&w[5]);
    for (int i = 0; i < 6; i++)
        if (i != 3)
            kp__pool_give(pool, &q2, g[i].data);
    kp__pool_give(pool, &q, all);
}
END_TEST

/* B15: a large request is not starved by smaller ones behind it, and B16: what
 * it leaves goes to the next. */
START_TEST(nobody_overtakes_a_large_request)
{
    struct chunk *all = take_all(&q);
    struct pool_need large = {.record_size =
                                  3 * CHUNK_SIZE - sizeof(struct chunk)};
    struct pool_waiter w, small;
    struct pool_grant g;

    join(&q2, large, &w);
    join(&q3, small_chunk, &small);
    for (int i = 0; i < 2; i++) {
        kp__pool_give(pool, &q, split_off(&all));
        ck_assert_uint_eq(word_of(&w), 0);
        ck_assert_uint_eq(word_of(&small), 0);
        /* nor does a newcomer */
        ck_assert_int_eq(try_now(&q, small_chunk, &g), POOL_FULL);
    }
    g.data = split_off(&all);
    g.data->next = split_off(&all);
    kp__pool_give(pool, &q, g.data);
    ck_assert_uint_eq(word_of(&w), 1);
    g = collect(&w);
    ck_assert_uint_eq(word_of(&small), 1);
    ck_assert_uint_eq(g.data->capacity, large.record_size);
    memset(g.data->data, 1, g.data->capacity);
    kp__pool_give(pool, &q2, g.data);
    kp__pool_give(pool, &q3, collect(&small).data);
    kp__pool_give(pool, &q, all);
}
END_TEST

/* One large release serves everybody whom it fits. */
START_TEST(one_release_serves_many)
{
    struct chunk *all = take_all(&q);
    struct pool_waiter w[40];

    for (int i = 0; i < 40; i++)
        join(&q2, small_chunk, &w[i]);
    kp__pool_give(pool, &q, all);
    for (int i = 0; i < 40; i++) {
        struct pool_grant g = collect(&w[i]);

        ck_assert_uint_eq(length(g.data), 1);
        kp__pool_give(pool, &q2, g.data);
    }
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

/* A waiter's part of what is free comes with its grant. */
START_TEST(a_grant_may_carry_several_chunks)
{
    struct chunk *all = take_all(&q);
    struct pool_waiter a, b;
    struct pool_grant ga, gb;
    size_t total;

    join(&q2, full_chunk, &a);
    join(&q3, full_chunk, &b);
    kp__pool_give(pool, &q, all);
    ga = collect(&a);
    gb = collect(&b);
    ck_assert_uint_ge(length(ga.data), 4);
    ck_assert_uint_ge(length(gb.data), 4);
    total = length(ga.data) + length(gb.data);
    ck_assert_uint_le(total, BLOCKS);
    ck_assert_uint_eq(available(), TOTAL - total * CHUNK_SIZE);
    ck_assert_uint_eq(q2.held_bytes, length(ga.data) * CHUNK_SIZE);
    kp__pool_give(pool, &q2, ga.data);
    kp__pool_give(pool, &q3, gb.data);
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

START_TEST(pressure_is_on_while_someone_waits)
{
    struct chunk *all = take_all(&q);
    struct pool_waiter w;
    size_t wanted = 0;

    ck_assert(!kp__pool_pressure(pool, &wanted));
    join(&q, full_chunk, &w);
    ck_assert(kp__pool_pressure(pool, &wanted));
    ck_assert_uint_eq(wanted, CHUNK_SIZE);
    kp__pool_give(pool, &q, split_off(&all));
    ck_assert(!kp__pool_pressure(pool, &wanted));
    kp__pool_give(pool, &q, collect(&w).data);
    kp__pool_give(pool, &q, all);
}
END_TEST

/* Whoever may not wait must be able to come back: what lingers is wanted. */
START_TEST(a_refusal_is_pressure_until_something_comes_back)
{
    struct chunk *all = take_all(&q);
    struct pool_grant g;
    size_t wanted = 0;

    ck_assert_int_eq(try_now(&q, full_chunk, &g), POOL_FULL);
    ck_assert(kp__pool_pressure(pool, &wanted));
    ck_assert_uint_gt(wanted, 0);
    kp__pool_give(pool, &q, split_off(&all));
    ck_assert(!kp__pool_pressure(pool, NULL));
    kp__pool_give(pool, &q, all);
}
END_TEST

/* -- Shares of the unreachable -- */

static struct chunk *fill_share(struct partition_queue *queue)
{
    struct chunk *list = NULL;
    struct pool_grant g;

    while (try_now(queue, full_chunk, &g) == POOL_GRANTED) {
        g.data->next = list;
        list = g.data;
    }
    return list;
}

START_TEST(the_unreachable_hold_half_at_most)
{
    struct chunk *dead, *alive = NULL;
    struct pool_grant g;

    kp__pool_set_any_reachable(pool, true);
    kp__pool_set_unreachable(pool, &q, true);
    kp__pool_set_unreachable(pool, &q2, true);
    dead = fill_share(&q);
    ck_assert_uint_eq(length(dead), BLOCKS / 2);
    ck_assert_int_eq(try_now(&q2, full_chunk, &g), POOL_FULL);
    for (int i = 0; i < BLOCKS / 2; i++) {
        struct chunk *c = take_chunk(&q3, full_chunk);

        c->next = alive;
        alive = c;
    }
    kp__pool_give(pool, &q, dead);
    kp__pool_give(pool, &q3, alive);
}
END_TEST

/* Their waiters are passed over, in order, and come up when the share has room.
 * */
START_TEST(restricted_waiters_are_passed_over)
{
    struct chunk *dead, *alive = NULL, *c;
    struct pool_waiter first, second, third;
    struct pool_grant g;

    kp__pool_set_any_reachable(pool, true);
    kp__pool_set_unreachable(pool, &q, true);
    dead = fill_share(&q);
    join(&q, full_chunk, &first);
    ck_assert(!kp__pool_pressure(pool, NULL)); /* sealing would not help it */
    for (int i = 0; i < BLOCKS / 2; i++) {
        c = take_chunk(&q2, full_chunk);
        c->next = alive;
        alive = c;
    }
    join(&q2, full_chunk, &second);
    join(&q, full_chunk, &third);
    kp__pool_give(pool, &q2, split_off(&alive));
    ck_assert_uint_eq(word_of(&first), 0);
    ck_assert_uint_eq(word_of(&second), 1);
    g = collect(&second);
    kp__pool_give(pool, &q, split_off(&dead));
    ck_assert_uint_eq(word_of(&first), 1);
    ck_assert_uint_eq(word_of(&third), 0);
    kp__pool_give(pool, &q, collect(&first).data);
    ck_assert_uint_eq(word_of(&third), 1);
    kp__pool_give(pool, &q, collect(&third).data);
    kp__pool_give(pool, &q2, g.data);
    kp__pool_give(pool, &q, dead);
    kp__pool_give(pool, &q2, alive);
    kp__pool_set_unreachable(pool, &q, false);
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

START_TEST(with_no_broker_at_all_there_is_no_share)
{
    struct chunk *all;

    kp__pool_set_unreachable(pool, &q, true);
    all = take_all(&q);
    kp__pool_give(pool, &q, all);
}
END_TEST

/* A leader that is found again brings its waiters back to their old places. */
START_TEST(a_waiter_returns_to_its_place_when_reachable)
{
    struct chunk *all = take_all(&q2);
    struct pool_waiter first, second;
    struct pool_grant g;

    kp__pool_set_any_reachable(pool, true);
    join(&q, full_chunk, &first);
    join(&q2, full_chunk, &second);
    kp__pool_set_unreachable(pool, &q, true);
    kp__pool_set_unreachable(pool, &q, false);
    kp__pool_give(pool, &q2, split_off(&all));
    ck_assert_uint_eq(word_of(&first), 1);
    ck_assert_uint_eq(word_of(&second), 0);
    g = collect(&first);
    kp__pool_give(pool, &q, g.data);
    ck_assert_uint_eq(word_of(&second), 1);
    kp__pool_give(pool, &q2, collect(&second).data);
    kp__pool_give(pool, &q2, all);
}
END_TEST

START_TEST(all_brokers_gone_lifts_the_restriction)
{
    struct chunk *dead;
    struct pool_waiter w;

    kp__pool_set_any_reachable(pool, true);
    kp__pool_set_unreachable(pool, &q, true);
    dead = fill_share(&q);
    join(&q, full_chunk, &w);
    kp__pool_set_any_reachable(pool, false);
    ck_assert_uint_eq(word_of(&w), 1);
    kp__pool_give(pool, &q, collect(&w).data);
    kp__pool_give(pool, &q, dead);
    kp__pool_set_unreachable(pool, &q, false);
}
END_TEST

/* -- Refused sends that want to hear -- */

static bool is_readable(kp_cq *cq)
{
    struct pollfd p = {.fd = kp_cq_fd(cq), .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

START_TEST(a_refused_queue_is_signalled_when_there_is_room)
{
    struct chunk *all = take_all(&q);
    struct pool_grant g;
    kp_cq *cq;

    ck_assert_int_eq(kp_cq_create(&cq, NULL), KP_OK);
    ck_assert(!is_readable(cq));
    ck_assert_int_eq(try_now(&q, full_chunk, &g), POOL_FULL);
    kp__pool_want_retry(pool, &q, &full_chunk, cq);
    kp__pool_want_retry(pool, &q, &full_chunk, cq);
    ck_assert(!is_readable(cq));
    kp__pool_give(pool, &q, split_off(&all));
    ck_assert(is_readable(cq));
    ck_assert_uint_eq(kp_cq_poll(cq, NULL, 0, 0), 0);
    ck_assert(!is_readable(cq));
    kp__pool_give(pool, &q, split_off(&all)); /* said once */
    ck_assert(!is_readable(cq));
    kp__pool_give(pool, &q, all);
    kp_cq_destroy(cq);
}
END_TEST

START_TEST(memory_that_came_back_before_the_note_is_signalled_too)
{
    struct chunk *all = take_all(&q);
    struct pool_grant g;
    kp_cq *cq;

    ck_assert_int_eq(kp_cq_create(&cq, NULL), KP_OK);
    (void)kp_cq_fd(cq);
    ck_assert_int_eq(try_now(&q, full_chunk, &g), POOL_FULL);
    kp__pool_give(pool, &q, all);
    kp__pool_want_retry(pool, &q, &full_chunk, cq);
    ck_assert(is_readable(cq));
    kp_cq_destroy(cq);
}
END_TEST

/* ... to whom it is enough, though the queue waits for more already. */
START_TEST(a_smaller_need_is_looked_at_as_well)
{
    static const struct pool_need dear = {.record_size = 3 * CHUNK_SIZE};
    static const struct pool_need cheap = {.record_size = CHUNK_SIZE + 100};
    struct chunk *all = take_all(&q), *back = NULL;
    struct pool_grant g;
    kp_cq *cq;

    ck_assert_int_eq(kp_cq_create(&cq, NULL), KP_OK);
    (void)kp_cq_fd(cq);
    kp__pool_want_retry(pool, &q, &dear, cq);
    ck_assert_int_eq(try_now(&q, cheap, &g), POOL_FULL);
    for (int i = 0; i < 2; i++) {
        struct chunk *c = split_off(&all);

        c->next = back;
        back = c;
    }
    kp__pool_give(pool, &q, back);
    ck_assert(!is_readable(cq));
    kp__pool_want_retry(pool, &q, &cheap, cq);
    ck_assert(is_readable(cq));
    kp__pool_give(pool, &q, all);
    kp_cq_destroy(cq);
}
END_TEST

/* Linger ends for as long as one waits for its signal, not only until anything
 * comes back. */
START_TEST(who_waits_for_a_signal_presses)
{
    static const struct pool_need dear = {.record_size = 3 * CHUNK_SIZE};
    struct chunk *all = take_all(&q);
    struct pool_grant g;
    size_t wanted = 0;
    kp_cq *cq;

    ck_assert_int_eq(kp_cq_create(&cq, NULL), KP_OK);
    (void)kp_cq_fd(cq);
    ck_assert_int_eq(try_now(&q, dear, &g), POOL_FULL);
    kp__pool_want_retry(pool, &q, &dear, cq);
    ck_assert(kp__pool_pressure(pool, &wanted));
    ck_assert_uint_ge(wanted, dear.record_size);
    kp__pool_give(pool, &q, split_off(&all));
    ck_assert(!is_readable(cq));
    ck_assert(kp__pool_pressure(pool, NULL));
    kp__pool_give(pool, &q, all);
    ck_assert(is_readable(cq));
    ck_assert(!kp__pool_pressure(pool, NULL));
    kp_cq_destroy(cq);
}
END_TEST

START_TEST(the_end_of_the_pool_forgets_refused_queues)
{
    struct buffer_pool *p = kp__pool_create(TOTAL);
    struct pool_need whole = {.record_size = TOTAL};
    struct pool_waiter w = {0};
    struct pool_grant g;
    kp_cq *cq;

    ck_assert_int_eq(kp_cq_create(&cq, NULL), KP_OK);
    ck_assert_int_eq(kp__pool_try(p, &q, &small_chunk, false, 0, &w, &g),
                     POOL_GRANTED);
    kp__pool_want_retry(p, &q, &whole, cq);
    kp_cq_destroy(cq); /* the pool's reference keeps it */
    kp__pool_give(p, &q, g.data);
    kp__pool_unref(p);
}
END_TEST

/* -- Ends -- */

/* B13, B14. */
START_TEST(close_tells_all_waiters_and_takes_memory_back)
{
    struct chunk *all = take_all(&q);
    struct pool_waiter w[20];
    struct pool_grant g;

    kp__pool_set_any_reachable(pool, true);
    kp__pool_set_unreachable(pool, &q3, true);
    for (int i = 0; i < 20; i++)
        join(i % 2 == 0 ? &q2 : &q3, full_chunk, &w[i]);
    kp__pool_close(pool);
    for (int i = 0; i < 20; i++) {
        ck_assert_uint_eq(word_of(&w[i]), 2);
        ck_assert_int_eq(
            kp__pool_try(pool, w[i].queue, &full_chunk, true, 0, &w[i], &g),
            POOL_CLOSED);
    }
    ck_assert_uint_eq(waiting(), 0);
    ck_assert_int_eq(try_now(&q, small_chunk, &g), POOL_CLOSED);
    kp__pool_give(pool, &q, all);
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

START_TEST(a_batch_keeps_the_pool)
{
    struct buffer_pool *p = kp__pool_create(TOTAL);
    struct pool_need need = {.record_size = 100, .slots = true, .batch = true};
    struct pool_waiter w = {0};
    struct pool_grant g;

    ck_assert_int_eq(kp__pool_try(p, &q, &need, false, 0, &w, &g),
                     POOL_GRANTED);
    kp__pool_give(p, &q, g.data);
    kp__pool_disown(p, &q, q.held_bytes);
    ck_assert_uint_eq(q.held_bytes, 0);
    kp__pool_unref(p);
    memset(g.slots->data, 1, g.slots->capacity);
    kp__pool_give(p, NULL, g.slots);
    kp__free(g.batch->result);
    kp__pool_give_batch(p, NULL, g.batch); /* and with it the pool ends */
}
END_TEST

/* -- Threads -- */

#define THREADS 10
#define ROUNDS 2000

static void *hammer(void *arg)
{
    struct partition_queue *queue = arg;
    struct rng rng;

    kp__rng_seed(&rng, (uint64_t)(uintptr_t)arg);
    for (int i = 0; i < ROUNDS; i++) {
        struct pool_waiter w = {0};
        struct pool_need need = {.record_size = 1 + kp__rng_below(&rng, 60000),
                                 .small = kp__rng_below(&rng, 2) == 0,
                                 .slots = kp__rng_below(&rng, 2) == 0,
                                 .batch = kp__rng_below(&rng, 2) == 0};
        int64_t deadline = kp__now_ns(&kp__system_clock) + 20 * KP_NS_PER_SEC;
        bool impatient = kp__rng_below(&rng, 16) == 0;
        struct pool_grant g = {0};
        enum pool_answer answer;

        while ((answer = kp__pool_try(pool, queue, &need, true, 0, &w, &g)) ==
               POOL_WAIT) {
            struct ticket t =
                kp__pool_ticket(pool, &w, impatient ? 1 : deadline);

            if (!kp__ticket_wait(&t))
                break;
        }
        if (answer == POOL_WAIT) {
            if (!impatient)
                return "starved";
            kp__pool_leave(pool, &w, 0);
            continue;
        }
        if (answer != POOL_GRANTED || g.data->capacity < need.record_size)
            return "wrong answer";
        memset(g.data->data, 0x11, need.record_size);
        if (g.slots != NULL)
            memset(g.slots->data, 0x22, g.slots->capacity);
        if (g.batch_due && kp__rng_below(&rng, 2) == 0 &&
            (!kp__pool_make_batch(pool, &g) || g.batch_due))
            return "no batch";
        if (need.batch != (g.batch != NULL || g.batch_due))
            return "wrong batch";
        kp__pool_give_grant(pool, queue, &g);
    }
    return NULL;
}

/* B10: many threads, a small pool, mixed sizes: nobody starves, nothing is
 * lost. */
START_TEST(many_threads_share_a_small_pool)
{
    static struct partition_queue queues[THREADS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        init_queue(&queues[i]);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, &queues[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failure;

        pthread_join(threads[i], &failure);
        ck_assert_msg(failure == NULL, "%s", (const char *)failure);
        ck_assert_uint_eq(queues[i].held_bytes, 0);
    }
    ck_assert_uint_eq(available(), TOTAL);
    ck_assert_uint_eq(waiting(), 0);
}
END_TEST

#define SLEEPERS 100
#define RELEASES 20

static struct pool_grant sleepers_got[SLEEPERS];

static void *sleep_in_line(void *arg)
{
    struct pool_grant *g = arg;
    struct pool_waiter w = {0};
    int64_t deadline = kp__now_ns(&kp__system_clock) + 20 * KP_NS_PER_SEC;

    while (kp__pool_try(pool, &q2, &small_chunk, true, 0, &w, g) ==
           POOL_WAIT) {
        struct ticket t = kp__pool_ticket(pool, &w, deadline);

        if (!kp__ticket_wait(&t))
            return "starved";
    }
    return NULL;
}

/* However many are served at a time, and whether they sleep already or not. */
START_TEST(whom_a_release_serves_is_woken)
{
    for (int round = 0; round < RELEASES; round++) {
        struct chunk *all = take_all(&q), *first = split_off(&all);
        pthread_t threads[SLEEPERS];

        for (int i = 0; i < SLEEPERS; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, sleep_in_line,
                                            &sleepers_got[i]),
                             0);
        while (waiting() < SLEEPERS)
            sched_yield();
        kp__pool_give(pool, &q, first); /* for eight of them */
        kp__pool_give(pool, &q, all);
        for (int i = 0; i < SLEEPERS; i++) {
            void *failure;

            pthread_join(threads[i], &failure);
            ck_assert_msg(failure == NULL, "%s", (const char *)failure);
        }
        for (int i = 0; i < SLEEPERS; i++)
            kp__pool_give(pool, &q2, sleepers_got[i].data);
    }
    ck_assert_uint_eq(available(), TOTAL);
}
END_TEST

static Suite *buffer_pool_suite(void)
{
    Suite *s = suite_create("buffer_pool");
    TCase *t = tcase_create("accounts");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_chunk_is_charged_and_comes_back_clean);
    tcase_add_test(t, eight_small_chunks_are_one_block_and_reunite);
    tcase_add_test(t, small_chunks_do_not_overlap);
    tcase_add_test(t, a_large_record_gets_an_extent);
    tcase_add_test(t, a_record_of_the_whole_pool_fits);
    tcase_add_test(t, free_blocks_make_room_for_an_extent);
    tcase_add_test(t, free_blocks_in_large_pages_make_room_too);
    tcase_add_test(t, structures_are_charged_and_used_again);
    tcase_add_test(t, a_whole_grant_goes_back_at_once);
    tcase_add_test(t, an_allocation_that_fails_is_refunded);
    tcase_add_test(t, a_pool_cannot_be_made_without_memory);
    tcase_add_test(t, a_split_has_structures_when_all_is_taken);
    tcase_add_test(t, what_is_kept_aside_is_not_granted);
    tcase_add_test(t, a_tiny_pool_works_with_small_chunks);
    tcase_add_test(t, a_block_that_cannot_be_had_is_not_waited_for);
    tcase_add_test(t, a_small_pool_charges_the_slots_that_it_grants);
#if !defined(__SANITIZE_ADDRESS__)
    tcase_add_test(t, a_pool_of_many_gigabytes_adds_up);
#endif
    suite_add_tcase(s, t);

    t = tcase_create("line");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_waiter_is_granted_what_comes_back);
    tcase_add_test(t, an_early_return_goes_on_waiting);
    tcase_add_test(t, a_waiter_sleeps_on_the_pools_own_memory);
    tcase_add_test(t, neighbours_in_line_share_a_word_and_no_mask);
    tcase_add_test(t, leaving_the_line_leaves_nothing);
    tcase_add_test(t, a_late_leaver_refunds_once_and_the_next_is_served);
    tcase_add_test(t, a_batch_from_the_line_is_made_when_it_is_wanted);
    tcase_add_test(t, first_come_first_served);
    tcase_add_test(t, what_comes_back_meanwhile_is_granted_together);
    tcase_add_test(t, who_does_not_come_keeps_nobody_waiting);
    tcase_add_test(t, nobody_overtakes_a_large_request);
    tcase_add_test(t, one_release_serves_many);
    tcase_add_test(t, a_grant_may_carry_several_chunks);
    tcase_add_test(t, pressure_is_on_while_someone_waits);
    tcase_add_test(t, a_refusal_is_pressure_until_something_comes_back);
    suite_add_tcase(s, t);

    t = tcase_create("shares");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, the_unreachable_hold_half_at_most);
    tcase_add_test(t, restricted_waiters_are_passed_over);
    tcase_add_test(t, with_no_broker_at_all_there_is_no_share);
    tcase_add_test(t, a_waiter_returns_to_its_place_when_reachable);
    tcase_add_test(t, all_brokers_gone_lifts_the_restriction);
    suite_add_tcase(s, t);

    t = tcase_create("retries");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_refused_queue_is_signalled_when_there_is_room);
    tcase_add_test(t, memory_that_came_back_before_the_note_is_signalled_too);
    tcase_add_test(t, a_smaller_need_is_looked_at_as_well);
    tcase_add_test(t, who_waits_for_a_signal_presses);
    tcase_add_test(t, the_end_of_the_pool_forgets_refused_queues);
    suite_add_tcase(s, t);

    t = tcase_create("ends");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, close_tells_all_waiters_and_takes_memory_back);
    tcase_add_test(t, a_batch_keeps_the_pool);
    suite_add_tcase(s, t);

    t = tcase_create("threads");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, many_threads_share_a_small_pool);
    tcase_add_test(t, whom_a_release_serves_is_woken);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(buffer_pool_suite)
