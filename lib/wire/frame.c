/* SPDX-License-Identifier: BSD-2-Clause */
/* frame.c - whole frames out of a byte stream.  Pure; the I/O thread, or the
 * broker of the tests.
 *
 * Invariant: buf.data[start..size) are the bytes received and not yet taken.
 * The buffer at most doubles what has arrived; an announced size never sizes
 * it. */
#include "lib/wire/frame.h"

#include <string.h>

#include "lib/wire/reader.h"

#define SPACE_MIN 4096
#define KEEP_MAX (256 * 1024) /* more is not kept for an idle stream */

void kp__frames_init(struct frame_reader *f, size_t max)
{
    kp__buf_init(&f->buf);
    f->start = 0;
    f->max = max;
}

void kp__frames_fini(struct frame_reader *f)
{
    kp__buf_fini(&f->buf);
    f->start = 0;
}

/* Move what is not yet taken to the front; give back a buffer that one huge
 * frame made and nothing needs now. */
static void compact(struct frame_reader *f)
{
    size_t left = f->buf.size - f->start;

    if (left == 0 && f->buf.capacity > KEEP_MAX) {
        kp__buf_fini(&f->buf);
        kp__buf_init(&f->buf);
    } else if (left != 0 && f->start != 0) {
        memmove(f->buf.data, f->buf.data + f->start, left);
    }
    f->buf.size = left;
    f->start = 0;
}

uint8_t *kp__frames_space(struct frame_reader *f, size_t *capacity)
{
    uint8_t *p;

    compact(f);
    if (f->buf.capacity - f->buf.size < SPACE_MIN) {
        size_t n = f->buf.size > SPACE_MIN ? f->buf.size : SPACE_MIN;
        p = kp__buf_reserve(&f->buf, n);
        if (p == NULL)
            return NULL;
    }
    *capacity = f->buf.capacity - f->buf.size;
    return f->buf.data + f->buf.size;
}

void kp__frames_added(struct frame_reader *f, size_t n)
{
    KP_CHECK(n <= f->buf.capacity - f->buf.size);
    f->buf.size += n;
}

enum frame_result kp__frames_next(struct frame_reader *f, const uint8_t **data,
                                  size_t *size)
{
    struct reader r;
    int32_t n;

    if (f->buf.size - f->start < 4)
        return FRAME_NONE;
    kp__reader_init(&r, f->buf.data + f->start, f->buf.size - f->start);
    n = kp__read_i32(&r);
    if (n < 0 || (size_t)n > f->max)
        return FRAME_BAD;
    if ((size_t)n > kp__reader_left(&r))
        return FRAME_NONE;
    *data = r.at;
    *size = (size_t)n;
    f->start += 4 + (size_t)n;
    return FRAME_READY;
}
