/* SPDX-License-Identifier: BSD-2-Clause */
/* decode_fuzz.c - the decoder of each API, and of headers.
 *
 * An input's first byte is the version, and its top bit set means a request,
 * which the test broker decodes; the rest is the body.
 *
 * Oracle: all that was decoded points into the body or the arena; memory is
 * at most a small multiple of the body; what was decoded can be encoded, in no
 * more bytes, and that decodes to the same again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/api.h"
#include "test/fuzz/fuzz.h"
#include "test/support/golden.h"

#define IS_REQUEST 0x80
/* A struct is at most some 20 times as large as what says that it is there, and
 * an arena asks for at most twice what it gives. */
#define MEMORY_FACTOR 64
#define MEMORY_LEAST 4096

struct message {
    const struct api *api;
    const struct schema *schema;
    int16_t version;
    bool flexible;
    const uint8_t *data; /* what was decoded */
    size_t size;
};

/* -- what was decoded stands where it may -- */

static void walk_struct(const struct message *m, const struct schema *s,
                        const char *value);

static void check_within(const struct message *m, const void *at, size_t size)
{
    const uint8_t *p = at;

    if (p == NULL) {
        FUZZ_CHECK(size == 0);
        return;
    }
    FUZZ_CHECK(p >= m->data && p <= m->data + m->size);
    FUZZ_CHECK(size <= (size_t)(m->data + m->size - p));
}

static void walk_value(const struct message *m, enum kind kind,
                       const struct field *f, const char *at)
{
    const struct text *t = (const void *)at;
    const struct blob *b = (const void *)at;
    const struct array *a = (const void *)at;
    size_t stride;

    switch (kind) {
    case KIND_STRING:
        check_within(m, t->data, t->size);
        break;
    case KIND_BYTES:
    case KIND_RECORDS:
        check_within(m, b->data, b->size);
        break;
    case KIND_STRUCT:
        walk_struct(m, f->schema, at);
        break;
    case KIND_ARRAY:
        FUZZ_CHECK(a->count <= m->size);
        stride = kp__kind_size(f->item, f->schema);
        for (size_t i = 0; i < a->count; i++)
            walk_value(m, f->item, f, (const char *)a->items + i * stride);
        break;
    default:
        break;
    }
}

static void walk_struct(const struct message *m, const struct schema *s,
                        const char *value)
{
    for (size_t i = 0; i < s->field_count; i++)
        if (kp__field_in(&s->fields[i], m->version))
            walk_value(m, s->fields[i].kind, &s->fields[i],
                       value + s->fields[i].offset);
}

/* -- and back -- */

static void check_encoded_again(const struct message *m,
                                const struct writer *first)
{
    union any_message value;
    struct reader r;
    struct arena a;
    struct writer w;

    kp__arena_init(&a);
    kp__writer_init(&w);
    kp__reader_init(&r, first->buf.data, first->buf.size);
    FUZZ_CHECK(
        kp__schema_decode(m->schema, &r, &a, m->version, m->flexible, &value));
    FUZZ_CHECK(kp__reader_left(&r) == 0);
    kp__schema_encode(m->schema, &w, m->version, m->flexible, &value);
    FUZZ_CHECK(!kp__writer_failed(&w) && w.buf.size == first->buf.size);
    FUZZ_CHECK(w.buf.size == 0 ||
               memcmp(w.buf.data, first->buf.data, w.buf.size) == 0);
    kp__writer_fini(&w);
    kp__arena_fini(&a);
}

static void check_encoded(const struct message *m, const void *value,
                          size_t used)
{
    struct writer w;

    kp__writer_init(&w);
    kp__schema_encode(m->schema, &w, m->version, m->flexible, value);
    FUZZ_CHECK(!kp__writer_failed(&w) && w.splice_count == 0);
    FUZZ_CHECK(w.buf.size <= used); /* the shortest form; no unknown tags */
    check_encoded_again(m, &w);
    kp__writer_fini(&w);
}

static void decode(const struct message *m)
{
    struct fuzz_memory memory = fuzz_memory_begin();
    union any_message value;
    struct reader r;
    struct arena a;
    bool ok;

    FUZZ_CHECK(m->schema->size <= sizeof(value));
    kp__arena_init(&a);
    kp__reader_init(&r, m->data, m->size);
    ok = kp__schema_decode(m->schema, &r, &a, m->version, m->flexible, &value);
    FUZZ_CHECK(ok == !r.failed);
    FUZZ_CHECK(ok || r.what != NULL);
    FUZZ_CHECK(fuzz_memory_asked(&memory) <=
               MEMORY_FACTOR * m->size + MEMORY_LEAST);
    if (ok) {
        walk_struct(m, m->schema, (const char *)&value);
        check_encoded(m, &value, m->size - kp__reader_left(&r));
    }
    kp__arena_fini(&a);
    fuzz_memory_end(&memory);
}

static int16_t version_of(const struct api *api, uint8_t byte)
{
    int count = api->max_version - api->min_version + 1;

    return (int16_t)(api->min_version + (byte & ~IS_REQUEST) % count);
}

static void fuzz_api(const struct api *api, const uint8_t *data, size_t size)
{
    struct message m = {.api = api};
    uint8_t *body;

    if (size == 0)
        return;
    body = fuzz_copy(data + 1, size - 1);
    m.version = version_of(api, data[0]);
    m.flexible = kp__api_flexible(api, m.version);
    m.schema = (data[0] & IS_REQUEST) != 0 ? api->request : api->response;
    m.data = body;
    m.size = size - 1;
    decode(&m);
    free(body);
}

/* -- headers: the API's place, then as above -- */

static void check_response_header(const struct api *api, int16_t version,
                                  int32_t correlation_id, size_t used)
{
    struct writer w;

    kp__writer_init(&w);
    kp__response_header_encode(&w, api->key, version, correlation_id);
    FUZZ_CHECK(!kp__writer_failed(&w) && w.buf.size <= used);
    kp__writer_fini(&w);
}

static void check_request_header(const struct request_header *h,
                                 const struct message *m, size_t used)
{
    struct writer w;

    check_within(m, h->client_id.data, h->client_id.size);
    if (kp__api(h->api_key) == NULL)
        return;
    kp__writer_init(&w);
    kp__request_header_encode(&w, h);
    FUZZ_CHECK(!kp__writer_failed(&w) && w.buf.size <= used);
    kp__writer_fini(&w);
}

static void decode_header(const struct api *api, int16_t version,
                          bool is_request, const struct message *m)
{
    struct request_header request;
    int32_t correlation_id;
    struct reader r;
    bool ok;

    kp__reader_init(&r, m->data, m->size);
    ok = is_request ? kp__request_header_decode(&r, &request)
                    : kp__response_header_decode(&r, api->key, version,
                                                 &correlation_id);
    FUZZ_CHECK(ok == !r.failed);
    if (ok && is_request)
        check_request_header(&request, m, m->size - kp__reader_left(&r));
    else if (ok)
        check_response_header(api, version, correlation_id,
                              m->size - kp__reader_left(&r));
}

void fuzz_header(const uint8_t *data, size_t size)
{
    struct fuzz_memory memory = fuzz_memory_begin();
    struct message m = {0};
    const struct api *api;
    uint8_t *bytes;

    if (size < 2)
        return;
    api = kp__apis[data[0] % kp__api_count];
    bytes = fuzz_copy(data + 2, size - 2);
    m.data = bytes;
    m.size = size - 2;
    decode_header(api, version_of(api, data[1]), (data[1] & IS_REQUEST) != 0,
                  &m);
    free(bytes);
    fuzz_memory_end(&memory);
}

/* -- inputs from test/golden -- */

static const char *const files[] = {"produce.txt", "metadata.txt",
                                    "api_versions.txt", "init_producer_id.txt"};

static uint8_t choice(const struct api *api, const struct golden_case *c,
                      int *version)
{
    char direction[16];

    if (sscanf(c->title, "message %*s %15s %d", direction, version) != 2)
        fuzz_failed(__FILE__, __LINE__, c->title);
    *version -= api->min_version;
    return strcmp(direction, "request") == 0 ? IS_REQUEST : 0;
}

static void give(fuzz_seed_fn fn, void *arg, const struct golden_case *c,
                 const char *word, const uint8_t *front, size_t front_size)
{
    size_t size;
    uint8_t *bytes = golden_bytes(word, &size);
    uint8_t *whole = malloc(front_size + size);

    if (whole == NULL)
        abort();
    memcpy(whole, front, front_size);
    if (size != 0)
        memcpy(whole + front_size, bytes, size);
    fn(arg, c->title, whole, front_size + size);
    free(whole);
    free(bytes);
}

static void api_seeds(const struct api *api, const char *file, fuzz_seed_fn fn,
                      void *arg)
{
    struct golden_file f;
    int version;

    golden_open(&f, file);
    for (size_t i = 0; i < f.count; i++) {
        const struct golden_case *c = &f.cases[i];
        uint8_t first = choice(api, c, &version);

        first = (uint8_t)(first | version);
        give(fn, arg, c, golden_get(c, "body"), &first, 1);
    }
    golden_close(&f);
}

static void header_seeds_of(uint8_t place, fuzz_seed_fn fn, void *arg)
{
    struct golden_file f;
    int version;

    golden_open(&f, files[place]);
    for (size_t i = 0; i < f.count; i++) {
        const struct golden_case *c = &f.cases[i];
        uint8_t front[2] = {place, choice(kp__apis[place], c, &version)};

        front[1] = (uint8_t)(front[1] | version);
        give(fn, arg, c, golden_get(c, "header"), front, 2);
    }
    golden_close(&f);
}

void fuzz_header_seeds(fuzz_seed_fn fn, void *arg)
{
    for (uint8_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        header_seeds_of(i, fn, arg);
}

#define API_TARGET(name) \
    void fuzz_##name(const uint8_t *data, size_t size) \
    { \
        fuzz_api(&kp__api_##name, data, size); \
    } \
    void fuzz_##name##_seeds(fuzz_seed_fn fn, void *arg) \
    { \
        api_seeds(&kp__api_##name, #name ".txt", fn, arg); \
    }
API_TARGET(produce)
API_TARGET(metadata)
API_TARGET(api_versions)
API_TARGET(init_producer_id)
