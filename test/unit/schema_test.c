/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables, with a message of our own that has every kind of field; and what
 * hostile bytes get. */
#include <stdlib.h>
#include <string.h>

#include "lib/wire/schema.h"
#include "test/support/main.h"
#include "test/support/writer_clear.h"

struct inner {
    int8_t small;
    struct text word;
};
struct outer {
    bool flag;
    int64_t big;
    struct blob bytes, null_bytes;
    struct array words, numbers, inners;
    struct inner in_place, tagged;
    int16_t old, tagged_number;
    struct text tagged_text;
    struct uuid id;
};

static const struct field inner_fields[] = {
    FIELD(inner, small, I8, .default_value = -5),
    FIELD(inner, word, STRING, .since = 0),
};
static const struct schema inner = SCHEMA(inner, "inner", inner_fields);

static const struct field outer_fields[] = {
    FIELD(outer, flag, BOOL, .default_value = true),
    FIELD(outer, big, I64, .since = 0),
    FIELD(outer, bytes, BYTES, .since = 0),
    FIELD(outer, null_bytes, BYTES, NULLABLE(1), .default_null = true,
          .since = 1),
    FIELD(outer, words, ARRAY, .item = KIND_STRING),
    FIELD(outer, numbers, ARRAY, NULLABLE(1), OF_I32),
    FIELD(outer, inners, ARRAY, OF(inner)),
    FIELD(outer, in_place, STRUCT, .schema = &inner),
    FIELD(outer, old, I16, .removed_in = 2, .default_value = 9),
    FIELD(outer, id, UUID, .since = 2),
    FIELD(outer, tagged, STRUCT, TAG(0), .since = 2, .schema = &inner),
    FIELD(outer, tagged_number, I16, TAG(3), .since = 2, .default_value = 1),
    FIELD(outer, tagged_text, STRING, TAG(5), .since = 2, NULLABLE(2)),
};
static const struct schema outer = SCHEMA(outer, "outer", outer_fields);

static struct writer w;
static struct arena arena;
static struct reader r;

static void setup(void)
{
    kp__writer_init(&w);
    kp__arena_init(&arena);
}

static void teardown(void)
{
    kp__writer_fini(&w);
    kp__arena_fini(&arena);
}

static struct text text(const char *s)
{
    return (struct text){.data = s, .size = strlen(s)};
}

static void assert_text(struct text t, const char *want)
{
    ck_assert_ptr_nonnull(t.data);
    ck_assert_uint_eq(t.size, strlen(want));
    ck_assert_mem_eq(t.data, want, t.size);
}

#define ASSERT_BYTES(...) \
    do { \
        static const uint8_t want_[] = {__VA_ARGS__}; \
        ck_assert(!kp__writer_failed(&w)); \
        ck_assert_uint_eq(w.buf.size, sizeof want_); \
        ck_assert_mem_eq(w.buf.data, want_, sizeof want_); \
    } while (0)

static struct text words[] = {{.data = "x", .size = 1},
                              {.data = "", .size = 0}};
static int32_t numbers[] = {1, -1};
static struct inner inners[] = {{.small = 7, .word = {"w", 1}}};

static void fill(struct outer *o)
{
    kp__schema_defaults(&outer, o);
    o->flag = false;
    o->big = 258;
    o->bytes = (struct blob){.data = "B", .size = 1};
    o->words = (struct array){.items = words, .count = 2};
    o->numbers = (struct array){.items = numbers, .count = 2};
    o->inners = (struct array){.items = inners, .count = 1};
    o->in_place.word = text("p");
    o->old = 3;
    memset(o->id.b, 0xab, sizeof o->id.b);
}

static bool decode(struct outer *o, int16_t version, bool flexible)
{
    kp__reader_init(&r, w.buf.data, w.buf.size);
    return kp__schema_decode(&outer, &r, &arena, version, flexible, o);
}

START_TEST(defaults_are_the_tables)
{
    struct outer o;

    memset(&o, 0xff, sizeof o);
    kp__schema_defaults(&outer, &o);
    ck_assert(o.flag);
    ck_assert_int_eq(o.big, 0);
    ck_assert_ptr_nonnull(o.bytes.data);
    ck_assert_uint_eq(o.bytes.size, 0);
    ck_assert_ptr_null(o.bytes.owner);
    ck_assert_ptr_null(o.null_bytes.data);
    ck_assert(!o.words.null && o.words.items == NULL && o.words.count == 0);
    ck_assert_int_eq(o.in_place.small, -5);
    assert_text(o.in_place.word, "");
    ck_assert_int_eq(o.tagged.small, -5);
    ck_assert_int_eq(o.old, 9);
    ck_assert_int_eq(o.tagged_number, 1);
}
END_TEST

START_TEST(the_old_form_is_written)
{
    struct outer o;

    fill(&o);
    kp__schema_encode(&outer, &w, 0, false, &o);
    ASSERT_BYTES(0, 0, 0, 0, 0, 0, 0, 1, 2,                    /* flag, big */
                 0, 0, 0, 1, 'B', 0, 0, 0, 2, 0, 1, 'x', 0, 0, /* words */
                 0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 7,
                 0, 1, 'w', /* inners */
                 0xfb, 0, 1, 'p', 0, 3);
}
END_TEST

START_TEST(nulls_are_minus_one_in_the_old_form)
{
    struct outer o;

    kp__schema_defaults(&outer, &o);
    o.numbers.null = true;
    kp__schema_encode(&outer, &w, 1, false, &o);
    ASSERT_BYTES(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* bytes */
                 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0,    /* null_bytes, words */
                 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0,    /* numbers, inners */
                 0xfb, 0, 0, 0, 9);
}
END_TEST

START_TEST(the_flexible_form_is_written)
{
    struct outer o;

    fill(&o);
    o.numbers.null = true;
    o.tagged.small = 1;
    kp__schema_encode(&outer, &w, 2, true, &o);
    ASSERT_BYTES(0, 0, 0, 0, 0, 0, 0, 1, 2,  /* flag, big */
                 2, 'B', 0, 3, 2, 'x', 1, 0, /* bytes, null, words, null */
                 2, 7, 2, 'w', 0,            /* inners */
                 0xfb, 2, 'p', 0,            /* in place */
                 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab,
                 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, /* id */
                 1, 0, 3, 1, 1, 0); /* one tag: 0, of 3 bytes */
}
END_TEST

START_TEST(tags_at_their_default_are_not_written)
{
    struct outer o;
    size_t without;

    fill(&o);
    kp__schema_encode(&outer, &w, 2, true, &o);
    without = w.buf.size;
    ck_assert_uint_eq(w.buf.data[without - 1], 0);
    writer_clear(&w);
    o.tagged_number = -1;
    kp__schema_encode(&outer, &w, 2, true, &o);
    ck_assert_uint_eq(w.buf.size, without + 4);
    ck_assert_mem_eq(w.buf.data + without - 1, "\1\3\2\377\377", 5);
}
END_TEST

START_TEST(a_null_tag_is_written_where_the_default_is_empty)
{
    struct outer o, got;

    fill(&o);
    o.tagged_text = (struct text){0};
    kp__schema_encode(&outer, &w, 2, true, &o);
    ck_assert_mem_eq(w.buf.data + w.buf.size - 4, "\1\5\1\0", 4);
    ck_assert(decode(&got, 2, true));
    ck_assert_ptr_null(got.tagged_text.data);
}
END_TEST

START_TEST(a_long_tag_is_shifted_behind_its_size)
{
    char *long_text = malloc(20000);
    struct outer o, got;

    ck_assert_ptr_nonnull(long_text);
    memset(long_text, 'q', 20000);
    fill(&o);
    o.tagged.word = (struct text){.data = long_text, .size = 20000};
    o.tagged_number = 77;
    kp__schema_encode(&outer, &w, 2, true, &o);
    ck_assert(decode(&got, 2, true));
    ck_assert_uint_eq(kp__reader_left(&r), 0);
    ck_assert_uint_eq(got.tagged.word.size, 20000);
    ck_assert_mem_eq(got.tagged.word.data, long_text, 20000);
    ck_assert_int_eq(got.tagged.small, -5);
    ck_assert_int_eq(got.tagged_number, 77);
    free(long_text);
}
END_TEST

/* Kafka's own readers refuse it in either form; so nothing that is kept of an
 * answer, a rack or a message, is as long as a frame may be. */
START_TEST(a_text_has_32767_bytes_at_most)
{
    char *long_text = malloc(32768);
    struct outer o, got;

    ck_assert_ptr_nonnull(long_text);
    memset(long_text, 'q', 32768);
    for (size_t size = 32767; size <= 32768; size++) {
        fill(&o);
        o.tagged.word = (struct text){.data = long_text, .size = size};
        writer_clear(&w);
        kp__schema_encode(&outer, &w, 2, true, &o);
        ck_assert_int_eq(decode(&got, 2, true), size == 32767);
        if (size == 32768)
            ck_assert_str_eq(r.what, "bad length");
    }
    free(long_text);
}
END_TEST

static void check_round(int16_t version, bool flexible)
{
    struct outer o, got;
    const struct text *t;

    fill(&o);
    kp__schema_encode(&outer, &w, version, flexible, &o);
    memset(&got, 0xff, sizeof got);
    ck_assert(decode(&got, version, flexible));
    ck_assert_uint_eq(kp__reader_left(&r), 0);
    ck_assert(!got.flag);
    ck_assert_int_eq(got.big, 258);
    ck_assert_uint_eq(got.bytes.size, 1);
    ck_assert_ptr_null(got.bytes.owner);
    ck_assert_ptr_null(got.null_bytes.data);
    ck_assert_uint_eq(got.words.count, 2);
    t = got.words.items;
    assert_text(t[0], "x");
    assert_text(t[1], "");
    ck_assert_uint_eq(got.numbers.count, 2);
    ck_assert_int_eq(((const int32_t *)got.numbers.items)[1], -1);
    ck_assert_int_eq(((const struct inner *)got.inners.items)[0].small, 7);
    assert_text(got.in_place.word, "p");
    ck_assert_int_eq(got.old, version < 2 ? 3 : 9);
    ck_assert_uint_eq(got.id.b[15], version < 2 ? 0 : 0xab);
    ck_assert_int_eq(got.tagged_number, 1);
}

START_TEST(what_is_written_is_read)
{
    check_round(0, false);
    writer_clear(&w);
    check_round(1, false);
    writer_clear(&w);
    check_round(2, false);
    writer_clear(&w);
    check_round(2, true);
}
END_TEST

START_TEST(an_owner_is_spliced_in)
{
    struct outer o;
    int owner;

    fill(&o);
    o.bytes = (struct blob){.size = 1000, .owner = &owner};
    kp__schema_encode(&outer, &w, 0, false, &o);
    ck_assert_uint_eq(w.splice_count, 1);
    ck_assert_uint_eq(w.splices[0].at, 13);
    ck_assert_uint_eq(w.splices[0].size, 1000);
    ck_assert_ptr_eq(w.splices[0].owner, &owner);
    ck_assert_mem_eq(w.buf.data + 9, "\0\0\3\350", 4);
    ck_assert_mem_eq(w.buf.data + 13, "\0\0\0\2", 4);
}
END_TEST

START_TEST(a_text_too_long_for_the_old_form_fails_the_writer)
{
    static char long_text[32768];
    struct outer o;

    fill(&o);
    o.in_place.word = (struct text){.data = long_text, .size = 32767};
    kp__schema_encode(&outer, &w, 0, false, &o);
    ck_assert(!kp__writer_failed(&w));
    writer_clear(&w);
    o.in_place.word.size = 32768;
    kp__schema_encode(&outer, &w, 2, true, &o);
    ck_assert(!kp__writer_failed(&w));
    writer_clear(&w);
    kp__schema_encode(&outer, &w, 0, false, &o);
    ck_assert(kp__writer_failed(&w));
}
END_TEST

/* -- hostile bytes: version 0 or 2 up to the field, then a lie -- */

#define REFUSED(version, flexible, reason, ...) \
    do { \
        static const uint8_t bytes_[] = {__VA_ARGS__}; \
        struct outer o_; \
        kp__reader_init(&r, bytes_, sizeof bytes_); \
        ck_assert(!kp__schema_decode(&outer, &r, &arena, (version), \
                                     (flexible), &o_)); \
        ck_assert(r.failed); \
        ck_assert_str_eq(r.what, (reason)); \
        ck_assert_ptr_null(arena.blocks); \
    } while (0)

#define HEAD 0, 0, 0, 0, 0, 0, 0, 0, 0         /* flag, big */
#define FLEX_HEAD HEAD, 1, 0, 1, 1, 1, 1, 1, 0 /* up to in_place, all empty */
#define ID 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

START_TEST(null_is_refused_where_it_is_not_allowed)
{
    REFUSED(0, false, "null not allowed", HEAD, 0xff, 0xff, 0xff, 0xff);
    REFUSED(2, true, "null not allowed", HEAD, 0);
    /* numbers: nullable from version 1 on */
    REFUSED(0, false, "null not allowed", HEAD, 0, 0, 0, 0, 0, 0, 0, 0, 0xff,
            0xff, 0xff, 0xff);
}
END_TEST

START_TEST(items_are_never_null)
{
    static const uint8_t bytes[] = {HEAD, 1, 0, 2, 0, 9, 9, 9};
    struct outer o;

    kp__reader_init(&r, bytes, sizeof bytes);
    ck_assert(!kp__schema_decode(&outer, &r, &arena, 2, true, &o));
    ck_assert_str_eq(r.what, "null not allowed");
}
END_TEST

START_TEST(negative_lengths_are_refused)
{
    REFUSED(0, false, "bad length", HEAD, 0xff, 0xff, 0xff, 0xfe);
    REFUSED(0, false, "bad length", HEAD, 0x80, 0, 0, 0);
    REFUSED(0, false, "bad length", HEAD, 0, 0, 0, 0, 0x80, 0, 0, 0);
}
END_TEST

START_TEST(lengths_past_the_end_are_refused)
{
    REFUSED(0, false, "cut short", HEAD, 0x7f, 0xff, 0xff, 0xff, 1);
    REFUSED(0, false, "cut short", HEAD, 0, 0, 0, 2, 1);
    REFUSED(2, true, "bad length", HEAD, 0xff, 0xff, 0xff, 0xff, 0x0f);
    REFUSED(2, true, "cut short", HEAD, 0x80, 0x80, 0x80, 0x80, 0x08);
}
END_TEST

START_TEST(counts_are_held_against_the_bytes_before_memory_is_taken)
{
    /* words: 2^31 - 1 of them; three in five bytes, at two bytes each */
    REFUSED(0, false, "more items than bytes", HEAD, 0, 0, 0, 0, 0x7f, 0xff,
            0xff, 0xff, 0, 0, 0, 0);
    REFUSED(0, false, "more items than bytes", HEAD, 0, 0, 0, 0, 0, 0, 0, 3, 0,
            0, 0, 0, 0);
    REFUSED(2, true, "more items than bytes", HEAD, 1, 0, 0x80, 0x80, 0x80,
            0x80, 0x08, 1);
    /* inners: at least three bytes each when flexible */
    REFUSED(2, true, "more items than bytes", HEAD, 1, 0, 1, 1, 3, 0, 1, 0, 0,
            1);
}
END_TEST

START_TEST(tags_must_rise)
{
    REFUSED(2, true, "tags out of order", FLEX_HEAD, ID, 2, 3, 2, 0, 5, 3, 2, 0,
            6);
    REFUSED(2, true, "tags out of order", FLEX_HEAD, ID, 2, 9, 0, 8, 0);
}
END_TEST

START_TEST(a_tag_is_held_to_its_size)
{
    REFUSED(2, true, "tagged field too long", FLEX_HEAD, ID, 1, 3, 3, 0, 5, 0);
    REFUSED(2, true, "cut short", FLEX_HEAD, ID, 1, 3, 1, 0, 5);
    REFUSED(2, true, "cut short", FLEX_HEAD, ID, 1, 3, 0xff, 0xff, 0xff, 0xff,
            0x0f, 0, 5);
    REFUSED(2, true, "cut short", FLEX_HEAD, ID, 0xff, 0xff, 0xff, 0xff, 0x0f,
            3, 2, 0, 5);
}
END_TEST

START_TEST(unknown_tags_are_skipped)
{
    static const uint8_t bytes[] = {FLEX_HEAD, ID, 3, 1, 2,    9, 9,
                                    3,         2,  0, 5, 0x80, 1, 0};
    struct outer o;

    kp__reader_init(&r, bytes, sizeof bytes);
    ck_assert(kp__schema_decode(&outer, &r, &arena, 2, true, &o));
    ck_assert_int_eq(o.tagged_number, 5);
    ck_assert_uint_eq(kp__reader_left(&r), 0);
}
END_TEST

START_TEST(a_tag_of_a_later_version_is_unknown)
{
    static const uint8_t bytes[] = {HEAD, 1, 0, 1, 1, 1, 1, 1,
                                    0,    0, 7, 1, 3, 2, 0, 5};
    struct outer o;

    kp__reader_init(&r, bytes, sizeof bytes);
    ck_assert(kp__schema_decode(&outer, &r, &arena, 1, true, &o));
    ck_assert_int_eq(o.tagged_number, 1);
    ck_assert_int_eq(o.old, 7);
}
END_TEST

static Suite *schema_suite(void)
{
    Suite *s = suite_create("schema");
    TCase *t = tcase_create("schema");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, defaults_are_the_tables);
    tcase_add_test(t, the_old_form_is_written);
    tcase_add_test(t, nulls_are_minus_one_in_the_old_form);
    tcase_add_test(t, the_flexible_form_is_written);
    tcase_add_test(t, tags_at_their_default_are_not_written);
    tcase_add_test(t, a_null_tag_is_written_where_the_default_is_empty);
    tcase_add_test(t, a_long_tag_is_shifted_behind_its_size);
    tcase_add_test(t, a_text_has_32767_bytes_at_most);
    tcase_add_test(t, what_is_written_is_read);
    tcase_add_test(t, an_owner_is_spliced_in);
    tcase_add_test(t, a_text_too_long_for_the_old_form_fails_the_writer);
    tcase_add_test(t, null_is_refused_where_it_is_not_allowed);
    tcase_add_test(t, items_are_never_null);
    tcase_add_test(t, negative_lengths_are_refused);
    tcase_add_test(t, lengths_past_the_end_are_refused);
    tcase_add_test(t, counts_are_held_against_the_bytes_before_memory_is_taken);
    tcase_add_test(t, tags_must_rise);
    tcase_add_test(t, a_tag_is_held_to_its_size);
    tcase_add_test(t, unknown_tags_are_skipped);
    tcase_add_test(t, a_tag_of_a_later_version_is_unknown);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(schema_suite)
