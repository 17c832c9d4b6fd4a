/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and responses of Kafka's own classes: every API, direction and
 * version that we speak.  What they wrote we decode to the values they read
 * back, and encode to the same bytes; what is cut short or damaged fails
 * cleanly. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/wire/api.h"
#include "test/support/golden.h"
#include "test/support/main.h"

static struct golden_file files[4];
static const char *const names[4] = {
    "produce.txt", "metadata.txt", "api_versions.txt", "init_producer_id.txt"};

struct kind_of_message { /* all cases of one API, direction and version */
    const struct api *api;
    bool is_request;
    int16_t version;
};
#define MESSAGE_KINDS (2 * (11 + 14 + 6 + 7))
static struct kind_of_message kinds[MESSAGE_KINDS];

struct message { /* one case, taken apart */
    const struct golden_case *c;
    const struct api *api;
    const struct schema *schema;
    bool is_request, has_unknown_tags;
    int16_t version;
    uint8_t *header, *body;
    size_t header_size, body_size;
};

static const char *fill_of(const struct golden_case *c)
{
    return strrchr(c->title, ' ') + 1;
}

static void message_open(struct message *m, const struct kind_of_message *k,
                         const struct golden_case *c)
{
    m->c = c;
    m->api = k->api;
    m->is_request = k->is_request;
    m->version = k->version;
    m->schema = k->is_request ? k->api->request : k->api->response;
    m->has_unknown_tags = strcmp(fill_of(c), "tags") == 0;
    m->header = golden_bytes(golden_get(c, "header"), &m->header_size);
    m->body = golden_bytes(golden_get(c, "body"), &m->body_size);
    ck_assert_uint_le(m->schema->size, sizeof(union any_message));
}

static void message_close(struct message *m)
{
    free(m->header);
    free(m->body);
}

static bool decode_size(const struct message *m, const uint8_t *bytes,
                        size_t size, struct arena *a, union any_message *v,
                        size_t *left)
{
    struct reader r;
    bool ok;

    kp__reader_init(&r, bytes, size);
    ok = kp__schema_decode(m->schema, &r, a, m->version,
                           kp__api_flexible(m->api, m->version), v);
    ck_assert(ok == !r.failed);
    ck_assert(ok || r.what != NULL);
    *left = kp__reader_left(&r);
    return ok;
}

static void assert_text(const struct buf *got, const struct buf *want,
                        const char *title)
{
    size_t n = got->size < want->size ? got->size : want->size;
    size_t at = 0, line = 0;

    while (at < n && got->data[at] == want->data[at]) {
        line = got->data[at] == '\n' ? at + 1 : line;
        at++;
    }
    if (at == n && got->size == want->size)
        return;
    ck_abort_msg("%s: got \"%.*s\", want \"%.*s\"", title,
                 (int)(got->size - line > 200 ? 200 : got->size - line),
                 (const char *)got->data + line,
                 (int)(want->size - line > 200 ? 200 : want->size - line),
                 (const char *)want->data + line);
}

static void check_values(const struct message *m, const union any_message *v)
{
    struct buf got, want;

    kp__buf_init(&got);
    kp__buf_init(&want);
    golden_dump(&got, m->schema, m->version, v);
    golden_lines(&want, m->c, "= ");
    ck_assert(!kp__buf_failed(&got) && !kp__buf_failed(&want));
    assert_text(&got, &want, m->c->title);
    kp__buf_fini(&got);
    kp__buf_fini(&want);
}

static void check_bytes(const struct writer *w, const uint8_t *want,
                        size_t size, const char *title)
{
    size_t at = 0;

    ck_assert(!kp__writer_failed(w));
    ck_assert_uint_eq(w->splice_count, 0);
    while (at < size && at < w->buf.size && w->buf.data[at] == want[at])
        at++;
    ck_assert_msg(w->buf.size == size && at == size,
                  "%s: %zu bytes, want %zu; first difference at %zu", title,
                  w->buf.size, size, at);
}

static void check_body(const struct message *m)
{
    union any_message v;
    struct arena a;
    struct writer w;
    size_t left;

    kp__arena_init(&a);
    kp__writer_init(&w);
    ck_assert_msg(decode_size(m, m->body, m->body_size, &a, &v, &left),
                  "%s does not decode", m->c->title);
    ck_assert_msg(left == 0, "%s: %zu bytes left", m->c->title, left);
    check_values(m, &v);
    if (!m->has_unknown_tags) {
        kp__schema_encode(m->schema, &w, m->version,
                          kp__api_flexible(m->api, m->version), &v);
        check_bytes(&w, m->body, m->body_size, m->c->title);
    }
    kp__writer_fini(&w);
    kp__arena_fini(&a);
}

static void check_request_header(const struct message *m, struct reader *r,
                                 struct writer *w)
{
    struct request_header h;
    size_t size;
    uint8_t *client = golden_bytes(golden_get(m->c, "client"), &size);

    ck_assert_msg(kp__request_header_decode(r, &h), "%s", m->c->title);
    ck_assert_int_eq(h.api_key, m->api->key);
    ck_assert_int_eq(h.version, m->version);
    ck_assert_int_eq(h.correlation_id, golden_number(m->c, "correlation"));
    ck_assert((h.client_id.data == NULL) == (client == NULL));
    ck_assert_uint_eq(h.client_id.size, size);
    if (client != NULL)
        ck_assert_mem_eq(h.client_id.data, client, size);
    kp__request_header_encode(w, &h);
    free(client);
}

static void check_response_header(const struct message *m, struct reader *r,
                                  struct writer *w)
{
    int32_t id;

    ck_assert(kp__response_header_decode(r, m->api->key, m->version, &id));
    ck_assert_int_eq(id, golden_number(m->c, "correlation"));
    kp__response_header_encode(w, m->api->key, m->version, id);
}

static void check_header(const struct message *m)
{
    struct reader r;
    struct writer w;

    kp__reader_init(&r, m->header, m->header_size);
    kp__writer_init(&w);
    if (m->is_request)
        check_request_header(m, &r, &w);
    else
        check_response_header(m, &r, &w);
    ck_assert_uint_eq(kp__reader_left(&r), 0);
    if (!m->has_unknown_tags)
        check_bytes(&w, m->header, m->header_size, m->c->title);
    kp__writer_fini(&w);
}

/* Calls check with each case of a kind; how many there were. */
static size_t each_case(const struct kind_of_message *k,
                        void (*check)(const struct message *m))
{
    char prefix[64];
    size_t count = 0;

    (void)snprintf(prefix, sizeof prefix, "message %s %s %d ", k->api->name,
                   k->is_request ? "request" : "response", k->version);
    for (size_t f = 0; f < 4; f++)
        for (size_t i = 0; i < files[f].count; i++) {
            struct message m;
            if (strncmp(files[f].cases[i].title, prefix, strlen(prefix)) != 0)
                continue;
            message_open(&m, k, &files[f].cases[i]);
            check(&m);
            message_close(&m);
            count++;
        }
    return count;
}

/* default, min, max, null and mixed always; tags when flexible; many and long
 * in the last version, long in the first too. */
static size_t expected_cases(const struct kind_of_message *k)
{
    bool last = k->version == k->api->max_version;
    bool has_long =
        k->api->key == API_INIT_PRODUCER_ID && (last || k->version == 0);

    return 5u + kp__api_flexible(k->api, k->version) + last + has_long;
}

START_TEST(kafkas_bytes_give_kafkas_values_and_come_out_again)
{
    ck_assert_uint_eq(each_case(&kinds[_i], check_header),
                      expected_cases(&kinds[_i]));
    ck_assert_uint_eq(each_case(&kinds[_i], check_body),
                      expected_cases(&kinds[_i]));
}
END_TEST

static void check_nullables(const struct message *m)
{
    struct buf got, want;

    if (strcmp(fill_of(m->c), "default") != 0)
        return;
    kp__buf_init(&got);
    kp__buf_init(&want);
    golden_nullables(&got, m->schema, m->version);
    golden_lines(&want, m->c, "nullable ");
    ck_assert(!kp__buf_failed(&got) && !kp__buf_failed(&want));
    assert_text(&got, &want, m->c->title);
    kp__buf_fini(&got);
    kp__buf_fini(&want);
}

START_TEST(the_same_fields_may_be_null)
{
    ck_assert_uint_gt(each_case(&kinds[_i], check_nullables), 0);
}
END_TEST

/* In memory of exactly that size, so that reading past it is seen. */
static void try_prefix(const struct message *m, size_t size)
{
    uint8_t *copy = malloc(size != 0 ? size : 1);
    union any_message v;
    struct arena a;
    size_t left;

    ck_assert_ptr_nonnull(copy);
    if (size != 0)
        memcpy(copy, m->body, size);
    kp__arena_init(&a);
    ck_assert_msg(!decode_size(m, copy, size, &a, &v, &left),
                  "%s: the first %zu of %zu bytes decode", m->c->title, size,
                  m->body_size);
    kp__arena_fini(&a);
    free(copy);
}

static void check_truncations(const struct message *m)
{
    size_t step = m->body_size < 300 ? 1 : m->body_size / 150;

    for (size_t size = 0; size < m->body_size; size += step)
        try_prefix(m, size);
    if (m->body_size > 0)
        try_prefix(m, m->body_size - 1);
}

START_TEST(every_truncation_fails)
{
    ck_assert_uint_gt(each_case(&kinds[_i], check_truncations), 0);
}
END_TEST

static void check_header_truncations(const struct message *m)
{
    for (size_t size = 0; size < m->header_size; size++) {
        uint8_t *copy = malloc(size != 0 ? size : 1);
        struct request_header h;
        struct reader r;
        int32_t id;
        bool ok;

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, m->header, size);
        kp__reader_init(&r, copy, size);
        ok = m->is_request
                 ? kp__request_header_decode(&r, &h)
                 : kp__response_header_decode(&r, m->api->key, m->version, &id);
        ck_assert_msg(!ok && r.failed, "%s: header of %zu", m->c->title, size);
        free(copy);
    }
}

START_TEST(every_truncated_header_fails)
{
    ck_assert_uint_gt(each_case(&kinds[_i], check_header_truncations), 0);
}
END_TEST

/* Any result will do, but a decoded one must be whole: it encodes again. */
static void try_damage(const struct message *m, size_t at, uint8_t with)
{
    uint8_t *copy = malloc(m->body_size);
    union any_message v;
    struct arena a;
    struct writer w;
    size_t left;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, m->body, m->body_size);
    copy[at] = with;
    kp__arena_init(&a);
    kp__writer_init(&w);
    if (decode_size(m, copy, m->body_size, &a, &v, &left)) {
        kp__schema_encode(m->schema, &w, m->version,
                          kp__api_flexible(m->api, m->version), &v);
        ck_assert(!kp__writer_failed(&w));
    }
    kp__writer_fini(&w);
    kp__arena_fini(&a);
    free(copy);
}

static void check_damage(const struct message *m)
{
    static const uint8_t with[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    size_t step = m->body_size < 300 ? 1 : m->body_size / 150;

    for (size_t at = 0; at < m->body_size; at += step)
        for (size_t i = 0; i < sizeof with; i++)
            try_damage(m, at, with[i]);
}

START_TEST(damaged_bytes_do_no_harm)
{
    ck_assert_uint_gt(each_case(&kinds[_i], check_damage), 0);
}
END_TEST

#ifdef KP_FAILMALLOC
static bool decode_with(const struct message *m, long fail_at)
{
    union any_message v;
    struct arena a;
    size_t left;
    bool ok;

    kp__arena_init(&a);
    kp__mem_fail_at(fail_at);
    ok = decode_size(m, m->body, m->body_size, &a, &v, &left);
    kp__mem_fail_at(-1);
    kp__arena_fini(&a);
    return ok;
}

static void check_no_memory(const struct message *m)
{
    long live = kp__mem_live();
    long n = 1;

    while (!decode_with(m, n) && n < 10000)
        n++;
    ck_assert_int_lt(n, 10000);
    ck_assert_int_eq(kp__mem_live(), live);
}

START_TEST(no_memory_is_a_failure_and_no_leak)
{
    ck_assert_uint_gt(each_case(&kinds[_i], check_no_memory), 0);
}
END_TEST
#endif

START_TEST(the_files_have_nothing_else)
{
    size_t have = 0, want = 0;

    for (size_t f = 0; f < 4; f++)
        have += files[f].count;
    for (size_t i = 0; i < MESSAGE_KINDS; i++)
        want += expected_cases(&kinds[i]);
    ck_assert_uint_eq(have, want);
}
END_TEST

static void list_kinds(void)
{
    size_t n = 0;

    for (size_t i = 0; i < kp__api_count; i++)
        for (int16_t v = kp__apis[i]->min_version;
             v <= kp__apis[i]->max_version; v++)
            for (int request = 0; request <= 1 && n < MESSAGE_KINDS; request++)
                kinds[n++] =
                    (struct kind_of_message){.api = kp__apis[i],
                                             .is_request = request == 1,
                                             .version = v};
    if (n != MESSAGE_KINDS)
        abort();
}

static Suite *golden_message_suite(void)
{
    Suite *s = suite_create("golden messages");
    TCase *t = tcase_create("golden messages");

    for (size_t f = 0; f < 4; f++)
        golden_open(&files[f], names[f]);
    list_kinds();
    tcase_add_test(t, the_files_have_nothing_else);
    tcase_add_loop_test(t, kafkas_bytes_give_kafkas_values_and_come_out_again,
                        0, MESSAGE_KINDS);
    tcase_add_loop_test(t, the_same_fields_may_be_null, 0, MESSAGE_KINDS);
    tcase_add_loop_test(t, every_truncation_fails, 0, MESSAGE_KINDS);
    tcase_add_loop_test(t, every_truncated_header_fails, 0, MESSAGE_KINDS);
    tcase_add_loop_test(t, damaged_bytes_do_no_harm, 0, MESSAGE_KINDS);
#ifdef KP_FAILMALLOC
    tcase_add_loop_test(t, no_memory_is_a_failure_and_no_leak, 0,
                        MESSAGE_KINDS);
#endif
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(golden_message_suite)
