/* SPDX-License-Identifier: BSD-2-Clause */
/* frames_fuzz.c - a byte stream cut into frames.
 *
 * An input's first byte picks the largest frame allowed, the next how many
 * bytes a read brings; the rest is the stream.
 *
 * Oracle: whatever way the stream arrives in pieces, the frames and the end are
 * those of a reader that sees all of it at once; memory grows with what
 * arrived, not with what was announced. */
#include <stdlib.h>
#include <string.h>

#include "lib/wire/frame.h"
#include "test/fuzz/fuzz.h"
#include "test/support/golden.h"

struct expected { /* a reader of the whole stream */
    const uint8_t *at, *end;
    size_t max;
};

static enum frame_result next_expected(struct expected *e, const uint8_t **data,
                                       size_t *size)
{
    uint32_t n;

    if (e->end - e->at < 4)
        return FRAME_NONE;
    n = (uint32_t)e->at[0] << 24 | (uint32_t)e->at[1] << 16 |
        (uint32_t)e->at[2] << 8 | e->at[3];
    if (n > e->max)
        return FRAME_BAD;
    if (n > (size_t)(e->end - e->at - 4))
        return FRAME_NONE;
    *data = e->at + 4;
    *size = n;
    e->at += 4 + n;
    return FRAME_READY;
}

/* All frames that are there; false: the stream is bad. */
static bool take(struct frame_reader *f, struct expected *e)
{
    for (;;) {
        const uint8_t *got = NULL, *want = NULL;
        size_t got_size = 0, want_size = 0;
        enum frame_result result = kp__frames_next(f, &got, &got_size);

        FUZZ_CHECK(next_expected(e, &want, &want_size) == result);
        if (result != FRAME_READY)
            return result == FRAME_NONE;
        FUZZ_CHECK(got_size == want_size);
        FUZZ_CHECK(got_size == 0 || memcmp(got, want, got_size) == 0);
    }
}

static void feed(struct frame_reader *f, struct expected *e,
                 const uint8_t *data, size_t size, size_t step)
{
    size_t at = 0;

    e->at = e->end = data;
    while (at < size) {
        size_t room = 0, n = step < size - at ? step : size - at;
        uint8_t *to = kp__frames_space(f, &room);

        FUZZ_CHECK(to != NULL && room > 0);
        n = n < room ? n : room;
        memcpy(to, data + at, n);
        kp__frames_added(f, n);
        at += n;
        e->end = data + at;
        FUZZ_CHECK(f->buf.capacity <= 2 * size + 16384);
        if (!take(f, e))
            return;
    }
}

void fuzz_frames(const uint8_t *data, size_t size)
{
    static const size_t largest[] = {0, 3, 64, 1024, 1 << 20, 100 << 20};
    struct fuzz_memory memory = fuzz_memory_begin();
    struct fuzz_input in = {data, data + size};
    size_t max = largest[fuzz_byte(&in) % (sizeof(largest) / sizeof(*largest))];
    size_t step = fuzz_byte(&in) + (size_t)1;
    struct expected e = {.max = max};
    struct frame_reader f;
    const uint8_t *stream;
    uint8_t *copy;

    stream = fuzz_bytes(&in, SIZE_MAX, &size);
    copy = fuzz_copy(stream, size);
    kp__frames_init(&f, max);
    feed(&f, &e, copy, size, step < 200 ? step : step * 97);
    kp__frames_fini(&f);
    free(copy);
    fuzz_memory_end(&memory);
}

/* Streams of a few answers. */
void fuzz_frames_seeds(fuzz_seed_fn fn, void *arg)
{
    struct golden_file f;
    struct buf stream;

    golden_open(&f, "init_producer_id.txt");
    kp__buf_init(&stream);
    for (size_t i = 0; i < f.count; i++) {
        size_t size;
        uint8_t *body = golden_bytes(golden_get(&f.cases[i], "body"), &size);
        uint8_t front[4] = {0, 0, (uint8_t)(size >> 8), (uint8_t)size};

        if (stream.size == 0)
            kp__buf_append(&stream, (uint8_t[]){3, (uint8_t)(i * 7)}, 2);
        kp__buf_append(&stream, front, 4);
        kp__buf_append(&stream, body, size);
        free(body);
        if (i % 4 != 3)
            continue;
        fn(arg, "stream", stream.data, stream.size);
        kp__buf_clear(&stream);
    }
    kp__buf_fini(&stream);
    golden_close(&f);
}
