/* SPDX-License-Identifier: BSD-2-Clause */
/* batch_fuzz.c - record batches, and what the codecs make of any bytes.
 *
 * `batch`: a batch's header and body; a compressed body is unpacked first.
 * Oracle: records stand one behind another inside the body, and encode to
 * bytes that are read as the same record.
 *
 * `compressed`: the codec's number, then what is to be unpacked.  Oracle: no
 * more than the limit comes out, what was in the buffer stays, and what came
 * out can be packed and unpacked again. */
#include <stdlib.h>
#include <string.h>

#include "lib/codec/codec.h"
#include "lib/wire/record.h"
#include "lib/wire/record_batch.h"
#include "test/fuzz/fuzz.h"
#include "test/support/golden.h"

#define BODY_MAX ((size_t)1 << 16)
#define HEADERS_MAX 64

/* -- one record -- */

static void check_inside(const struct reader *body, const uint8_t *begin,
                         const uint8_t *at, size_t size)
{
    FUZZ_CHECK(at == NULL ? size == 0
                          : at >= begin && at <= body->end &&
                                size <= (size_t)(body->end - at));
}

static kp_bytes read_sized(struct reader *r)
{
    int32_t n = kp__read_varint(r);
    kp_bytes b = {NULL, 0};

    FUZZ_CHECK(!r->failed && n >= -1);
    if (n < 0)
        return b;
    b.data = kp__read_bytes(r, (size_t)n);
    b.size = (size_t)n;
    FUZZ_CHECK(b.data != NULL);
    return b;
}

/* The headers were checked by the walk: reading them again cannot fail. */
static void read_headers(const struct record_view *v, kp_header *out)
{
    struct reader r;

    kp__reader_init(&r, v->headers, v->headers_size);
    for (int32_t i = 0; i < v->header_count; i++) {
        out[i].key = read_sized(&r);
        FUZZ_CHECK(out[i].key.data != NULL);
        out[i].value = read_sized(&r);
    }
    FUZZ_CHECK(kp__reader_left(&r) == 0);
}

static bool same(kp_bytes a, const uint8_t *data, size_t size)
{
    return (a.data == NULL) == (data == NULL) && a.size == size &&
           (size == 0 || memcmp(a.data, data, size) == 0);
}

static void check_encoded(const struct record_view *v)
{
    kp_header headers[HEADERS_MAX];
    kp_record record = {.key = {v->key, v->key_size},
                        .value = {v->value, v->value_size},
                        .headers = headers,
                        .header_count = (size_t)v->header_count};
    struct record_view again;
    size_t body, size;
    struct reader r;
    uint8_t *out;

    if (v->header_count > HEADERS_MAX)
        return;
    read_headers(v, headers);
    body =
        kp__record_body_size(&record, v->timestamp_delta_ms, v->offset_delta);
    size = kp__record_size(&record, v->timestamp_delta_ms, v->offset_delta);
    FUZZ_CHECK(size <= v->size);
    out = fuzz_copy(v->bytes, size);
    FUZZ_CHECK(kp__record_encode(out, &record, body, v->timestamp_delta_ms,
                                 v->offset_delta) == out + size);
    kp__reader_init(&r, out, size);
    FUZZ_CHECK(kp__record_next(&r, &again) && kp__reader_left(&r) == 0);
    FUZZ_CHECK(same(record.key, again.key, again.key_size));
    FUZZ_CHECK(same(record.value, again.value, again.value_size));
    FUZZ_CHECK(again.timestamp_delta_ms == v->timestamp_delta_ms &&
               again.offset_delta == v->offset_delta &&
               again.header_count == v->header_count);
    free(out);
}

static void check_record(const struct reader *r, const uint8_t *begin,
                         const struct record_view *v)
{
    check_inside(r, begin, v->bytes, v->size);
    check_inside(r, begin, v->key, v->key_size);
    check_inside(r, begin, v->value, v->value_size);
    check_inside(r, begin, v->headers, v->headers_size);
    FUZZ_CHECK(v->size >= 7 && v->header_count >= 0);
    check_encoded(v);
}

static void walk(const uint8_t *body, size_t size)
{
    struct record_view v;
    struct reader r;
    size_t sum = 0;

    kp__reader_init(&r, body, size);
    while (kp__record_next(&r, &v)) {
        FUZZ_CHECK(v.bytes == body + sum);
        sum += v.size;
        check_record(&r, body, &v);
    }
    FUZZ_CHECK(r.failed || sum == size);
}

/* -- one batch -- */

static void unpack_and_walk(const struct codec *codec, const uint8_t *body,
                            size_t size)
{
    struct buf out;

    kp__buf_init(&out);
    if (codec->decompress(body, size, BODY_MAX, &out))
        walk(out.data, out.size);
    kp__buf_fini(&out);
}

static void check_body(const struct record_batch_header *h, const uint8_t *body,
                       size_t size)
{
    int id = h->attributes & 7;
    uint8_t *copy = fuzz_copy(body, size);

    if (id == CODEC_NONE)
        walk(copy, size);
    else if (id <= CODEC_ZSTD && kp__codec((enum codec_id)id) != NULL)
        unpack_and_walk(kp__codec((enum codec_id)id), copy, size);
    free(copy);
}

void fuzz_batch(const uint8_t *data, size_t size)
{
    struct fuzz_memory memory = fuzz_memory_begin();
    uint8_t *copy = fuzz_copy(data, size);
    uint8_t again[RECORD_BATCH_HEADER_SIZE];
    struct record_batch_header h, other;
    struct reader r;

    kp__reader_init(&r, copy, size);
    while (kp__record_batch_decode(&r, &h)) {
        size_t body = (size_t)h.batch_length + 12 - RECORD_BATCH_HEADER_SIZE;
        const uint8_t *at = r.at;
        struct reader headers;

        FUZZ_CHECK(at >= copy && at <= copy + size);
        FUZZ_CHECK(body <= kp__reader_left(&r));
        check_body(&h, at, body);
        FUZZ_CHECK(kp__read_bytes(&r, body) == at);
        if (h.magic != 2)
            continue;
        kp__record_batch_encode(again, &h, body, 0);
        kp__reader_init(&headers, again, sizeof(again));
        /* alone it announces a body that is not there */
        FUZZ_CHECK(!kp__record_batch_decode(&headers, &other) || body == 0);
        FUZZ_CHECK(memcmp(again, at - sizeof(again), 17) == 0);
        FUZZ_CHECK(memcmp(again + 21, at - sizeof(again) + 21, 40) == 0);
    }
    free(copy);
    fuzz_memory_end(&memory);
}

void fuzz_batch_seeds(fuzz_seed_fn fn, void *arg)
{
    struct golden_file f;

    golden_open(&f, "batches.txt");
    for (size_t i = 0; i < f.count; i++) {
        size_t size;
        uint8_t *bytes = golden_bytes(golden_get(&f.cases[i], "bytes"), &size);

        fn(arg, f.cases[i].title, bytes, size);
        free(bytes);
    }
    golden_close(&f);
}

/* -- codecs -- */

static void check_packed_again(const struct codec *codec, const uint8_t *data,
                               size_t size)
{
    struct codec_context *c = codec->create(codec->level_default, BODY_MAX);
    struct iovec in = {(void *)(uintptr_t)data, size};
    size_t room = 2 * size + 1024, packed;
    uint8_t *out = malloc(room);
    struct buf again;

    FUZZ_CHECK(c != NULL && out != NULL);
    packed = codec->compress(c, &in, 1, out, room);
    FUZZ_CHECK(packed > 0 && packed <= room);
    kp__buf_init(&again);
    FUZZ_CHECK(codec->decompress(out, packed, size, &again));
    FUZZ_CHECK(again.size == size &&
               (size == 0 || memcmp(again.data, data, size) == 0));
    kp__buf_fini(&again);
    free(out);
    codec->destroy(c);
}

void fuzz_compressed(const uint8_t *data, size_t size)
{
    static const size_t limits[] = {0, 1, 100, 4096, BODY_MAX};
    struct fuzz_memory memory = fuzz_memory_begin();
    const struct codec *codec;
    struct buf out;
    size_t max;
    uint8_t *copy;

    if (size < 2)
        return;
    codec = kp__codec((enum codec_id)(data[0] % CODEC_ZSTD + 1));
    if (codec == NULL)
        return;
    max = limits[data[1] % (sizeof(limits) / sizeof(limits[0]))];
    copy = fuzz_copy(data + 2, size - 2);
    kp__buf_init(&out);
    kp__buf_append(&out, "before", 6);
    if (codec->decompress(copy, size - 2, max, &out)) {
        FUZZ_CHECK(out.size >= 6 && out.size - 6 <= max);
        check_packed_again(codec, out.data + 6, out.size - 6);
    } else {
        FUZZ_CHECK(out.size == 6);
    }
    FUZZ_CHECK(memcmp(out.data, "before", 6) == 0);
    kp__buf_fini(&out);
    free(copy);
    fuzz_memory_end(&memory);
}

void fuzz_compressed_seeds(fuzz_seed_fn fn, void *arg)
{
    struct golden_file f;

    golden_open(&f, "batches.txt");
    for (size_t i = 0; i < f.count; i++) {
        size_t size, left;
        uint8_t *bytes = golden_bytes(golden_get(&f.cases[i], "bytes"), &size);
        uint8_t *front;

        if (size > RECORD_BATCH_HEADER_SIZE && (bytes[22] & 7) != 0) {
            front = bytes + RECORD_BATCH_HEADER_SIZE - 2;
            left = size - RECORD_BATCH_HEADER_SIZE + 2;
            front[0] = (uint8_t)((bytes[22] & 7) - 1);
            front[1] = 4;
            fn(arg, f.cases[i].title, front, left);
        }
        free(bytes);
    }
    golden_close(&f);
}
