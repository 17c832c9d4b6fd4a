/* SPDX-License-Identifier: BSD-2-Clause */
/* compressors_test.c - the fixed set, and a batch before and after. */
#include <stdio.h>

#include "lib/base/crc32c.h"
#include "lib/base/system.h"
#include "test/support/main.h"
#include "test/unit/accumulator_fixture.h"

static enum codec_id codecs[] = {CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4,
                                 CODEC_ZSTD};

static void start_with(enum codec_id id)
{
    fixture_defaults();
    f.settings.codec = id;
    f.settings.codec_level = id != CODEC_NONE && kp__codec(id) != NULL
                                 ? kp__codec(id)->level_default
                                 : 0;
    f.settings.batch_size = 60000;
    fixture_start(1);
}

static void append_lines(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char text[160];
        int size = snprintf(text, sizeof(text),
                            "line %u: the quick brown fox jumps over the "
                            "lazy dog, again and again",
                            i);
        kp_record r = record_of(text, (size_t)size);

        ck_assert_int_eq(append_record(&r, 0), KP_OK);
    }
}

static void check_line(void *arg, uint32_t index, const struct record_view *v)
{
    char text[160];
    int size = snprintf(text, sizeof(text),
                        "line %u: the quick brown fox jumps over the lazy "
                        "dog, again and again",
                        index);

    (void)arg;
    ck_assert_uint_eq(v->value_size, (size_t)size);
    ck_assert_mem_eq(v->value, text, v->value_size);
}

static struct batch *claim(void)
{
    struct batch *b;

    (void)kp__queue_seal(fixture_queue(0), true, false);
    ck_assert_int_eq(kp__queue_claim(fixture_queue(0), true, &b), QUEUE_OK);
    return b;
}

static uint32_t crc_of(const struct batch *b)
{
    struct iovec iov[64];
    size_t n = kp__batch_iov(b, iov, 64);
    uint32_t crc = 0;

    for (size_t i = 0; i < n; i++)
        crc = kp__crc32c(crc, iov[i].iov_base, iov[i].iov_len);
    return crc;
}

/* The result lies in the batch's own first chunks; the others are free. */
START_TEST(a_batch_is_compressed_in_place)
{
    enum codec_id id = codecs[_i];
    size_t charged = 0, surplus_bytes = 0;
    struct chunk *surplus, *c;
    struct batch *b;

    if (kp__codec(id) == NULL)
        return;
    start_with(id);
    append_lines(500);
    b = claim();
    for (c = b->chunks; c != NULL; c = c->next)
        charged += c->charge;
    surplus = kp__compress_batch(kp__compressors_own(&f.compressors), b);
    ck_assert_ptr_nonnull(surplus);
    for (c = surplus; c != NULL; c = c->next)
        surplus_bytes += c->charge;
    ck_assert_uint_lt(b->wire_size, b->raw_size / 2);
    ck_assert_int_eq(b->codec, (int)id);
    ck_assert_uint_lt(charged - surplus_bytes, b->wire_size + CHUNK_SIZE);
    kp__pool_give(f.pool, fixture_queue(0), surplus);
    ck_assert(kp__queue_finish(fixture_queue(0), b, false));
    ck_assert_uint_eq(b->body_crc, crc_of(b));
    ck_assert_uint_eq(each_record(b, check_line, NULL), 500);
    fixture_stop();
}
END_TEST

START_TEST(what_does_not_shrink_stays_raw)
{
    enum codec_id id = codecs[_i];
    struct batch *b;

    if (kp__codec(id) == NULL)
        return;
    start_with(id);
    ck_assert_int_eq(append_bytes(1, 30000, 0), KP_OK);
    b = claim();
    ck_assert_ptr_null(
        kp__compress_batch(kp__compressors_own(&f.compressors), b));
    ck_assert(kp__queue_finish(fixture_queue(0), b, false));
    ck_assert_int_eq(b->codec, CODEC_NONE);
    ck_assert_uint_eq(b->wire_size, b->raw_size);
    ck_assert_uint_eq(b->body_crc, crc_of(b));
    ck_assert_uint_eq(each_record(b, NULL, NULL), 1);
    fixture_stop();
}
END_TEST

START_TEST(a_single_tiny_record_is_handled)
{
    enum codec_id id = codecs[_i];
    struct batch *b;

    if (kp__codec(id) == NULL)
        return;
    start_with(id);
    ck_assert_int_eq(append_bytes(0, 0, 0), KP_OK);
    b = drain_head(fixture_queue(0));
    ck_assert_uint_eq(each_record(b, NULL, NULL), 1);
    fixture_complete(b, KP_OK);
    fixture_stop();
}
END_TEST

START_TEST(without_a_codec_only_the_crc_is_made)
{
    struct batch *b;

    start_with(CODEC_NONE);
    for (int i = 0; i < 100; i++) /* as many at once as anyone likes */
        ck_assert_ptr_nonnull(kp__compressors_take(&f.compressors));
    append_lines(300);
    b = drain_head(fixture_queue(0));
    ck_assert_int_eq(b->codec, CODEC_NONE);
    ck_assert_uint_eq(b->body_crc, crc_of(b));
    ck_assert_uint_eq(each_record(b, check_line, NULL), 300);
    fixture_complete(b, KP_OK);
    fixture_stop();
}
END_TEST

START_TEST(the_set_is_fixed_and_the_io_threads_is_its_own)
{
    struct compressor *taken[64];
    unsigned expected = kp__processor_count() < 8 ? kp__processor_count() : 8;
    unsigned n = 0;

    if (kp__codec(CODEC_GZIP) == NULL)
        return;
    start_with(CODEC_GZIP);
    while ((taken[n] = kp__compressors_take(&f.compressors)) != NULL) {
        ck_assert_ptr_ne(taken[n], kp__compressors_own(&f.compressors));
        for (unsigned i = 0; i < n; i++)
            ck_assert_ptr_ne(taken[i], taken[n]);
        n++;
    }
    ck_assert_uint_eq(n, expected);
    kp__compressors_give(&f.compressors, kp__compressors_own(&f.compressors));
    ck_assert_ptr_null(kp__compressors_take(&f.compressors));
    for (unsigned i = 0; i < n; i++)
        kp__compressors_give(&f.compressors, taken[i]);
    ck_assert_ptr_nonnull(kp__compressors_take(&f.compressors));
    fixture_stop();
}
END_TEST

START_TEST(no_set_without_memory)
{
    struct compressors c;
    kp_err err = KP_ENOMEM;

    if (kp__codec(CODEC_GZIP) == NULL)
        return;
    for (long i = 1; err == KP_ENOMEM; i++) {
        ck_assert_int_lt(i, 200);
        kp__mem_fail_at(i);
        err = kp__compressors_init(&c, CODEC_GZIP, 6, 100000);
        kp__mem_fail_at(-1);
        if (err != KP_OK)
            ck_assert_int_eq(kp__mem_live(), 0);
    }
    ck_assert_int_eq(err, KP_OK);
    kp__compressors_fini(&c);
    ck_assert_int_eq(kp__mem_live(), 0);
}
END_TEST

static Suite *compressors_suite(void)
{
    Suite *s = suite_create("compressors");
    TCase *t = tcase_create("compressors");

    tcase_add_loop_test(t, a_batch_is_compressed_in_place, 0, 4);
    tcase_add_loop_test(t, what_does_not_shrink_stays_raw, 0, 4);
    tcase_add_loop_test(t, a_single_tiny_record_is_handled, 0, 4);
    tcase_add_test(t, without_a_codec_only_the_crc_is_made);
    tcase_add_test(t, the_set_is_fixed_and_the_io_threads_is_its_own);
    tcase_add_test(t, no_set_without_memory);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(compressors_suite)
