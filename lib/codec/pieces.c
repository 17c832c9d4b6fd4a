/* SPDX-License-Identifier: BSD-2-Clause */
/* pieces.c - pieces in, a limited buffer out.  Any thread, no shared state.
 * Invariant: a sink's buffer never keeps more than `max` added bytes after
 * kp__sink_end, and none if decompressing failed. */
#include "lib/codec/pieces.h"

#include <string.h>

void kp__pieces_init(struct pieces *p, const struct iovec *iov, int n)
{
    p->iov = iov;
    p->n = n;
    p->offset = 0;
    p->left = 0;
    for (int i = 0; i < n; i++)
        p->left += iov[i].iov_len;
}

static void skip_empty(struct pieces *p)
{
    while (p->n > 0 && p->offset == p->iov->iov_len) {
        p->iov++;
        p->n--;
        p->offset = 0;
    }
}

/* Take at most `size` bytes that lie together. */
static const uint8_t *take_run(struct pieces *p, size_t size, size_t *got)
{
    const uint8_t *run;
    size_t here;

    skip_empty(p);
    here = p->iov->iov_len - p->offset;
    run = (const uint8_t *)p->iov->iov_base + p->offset;
    *got = here < size ? here : size;
    p->offset += *got;
    p->left -= *got;
    return run;
}

const uint8_t *kp__pieces_next(struct pieces *p, size_t size, uint8_t *scratch)
{
    size_t done = 0, got;
    const uint8_t *run;

    KP_CHECK(size <= p->left);
    if (size == 0)
        return scratch;
    run = take_run(p, size, &got);
    if (got == size)
        return run;
    for (;;) {
        memcpy(scratch + done, run, got);
        done += got;
        if (done == size)
            return scratch;
        run = take_run(p, size - done, &got);
    }
}

void kp__sink_init(struct sink *s, struct buf *out, size_t max)
{
    s->out = out;
    s->start = out->size;
    s->max = max;
}

uint8_t *kp__sink_room(struct sink *s, size_t want, size_t *size)
{
    size_t added = s->out->size - s->start;
    size_t room = want;
    uint8_t *at;

    if (added > s->max)
        return NULL;
    if (room > s->max - added)
        room = s->max - added + (s->max == SIZE_MAX ? 0 : 1);
    if (room == 0)
        return NULL;
    at = kp__buf_reserve(s->out, room);
    if (at != NULL)
        *size = room;
    return at;
}

bool kp__sink_took(struct sink *s, size_t size)
{
    s->out->size += size;
    return s->out->size - s->start <= s->max;
}

bool kp__sink_end(struct sink *s, bool ok)
{
    if (!ok)
        s->out->size = s->start;
    return ok;
}
